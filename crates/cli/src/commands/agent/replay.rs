//! `rialto agent replay --against NEW.yaml`: which recorded engagements another document would have decided otherwise.

use super::lint;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::output::text::{json_line, shown};
use crate::output::{self, GOOD, WARN, count, paint};
use agent::{Agent, NameRule, Step, in_words, step_in_words};
use json::{Limits, Value, json};
use std::path::PathBuf;

/// Say which recorded engagements another document would have decided otherwise, and where
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto agent replay --against stricter.yaml records/*.json

A record is the audit trail of an engagement: a JSON array of steps, an object with `steps`, or one step per line.
Exits with 1 when an engagement would have gone otherwise.")]
pub(crate) struct Replay {
    /// The document that decides now
    #[arg(long, value_name = "FILE")]
    against: PathBuf,

    /// Recorded engagements
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where an engagement would have gone otherwise.
struct Told {
    name: String,
    differs: Option<(usize, String, String)>,
}

impl Replay {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let text = Text::read(&self.against)?;
        let agent = Agent::read_as(&text.bytes, NameRule::Both).map_err(|findings| {
            let lines: String = findings.iter().map(|finding| lint::line(&text.name, finding)).collect();
            output::say(&lines);
            Failure::refused("the document is not taken").at(text.name.clone())
        })?;
        let mut told = Vec::new();
        for path in &self.records {
            let record = Text::read(path)?;
            let name = record.name.clone();
            let steps = steps(&record)?;
            let replayed = agent::replay(&agent, &steps)
                .map_err(|_| Failure::refused("these steps do not follow from one another").at(name.clone()))?;
            let differs = match replayed {
                agent::Replay::Same => None,
                agent::Replay::Differs { at, was, would } => Some((at, step_in_words(&was), in_words(&would))),
            };
            told.push(Told { name, differs });
        }
        output::print(&if self.json { as_json(&told) } else { described(&told) })?;
        Ok(if told.iter().all(|one| one.differs.is_none()) { Exit::Fine } else { Exit::No })
    }
}

/// The steps of a record, whichever of the three forms it has.
fn steps(record: &Text) -> Result<Vec<Step>, Failure> {
    let unusable = |why: &str| Failure::refused(why).at(record.name.clone());
    let values: Vec<Value> = match json::Document::parse(&record.bytes, &Limits::OURS) {
        Ok(document) => match document.root().to_value() {
            Value::Array(values) => values,
            Value::Object(mut members) => match members.remove("steps") {
                Some(Value::Array(values)) => values,
                _ => vec![Value::Object(members)],
            },
            _ => return Err(unusable("this is no list of steps")),
        },
        Err(_) => {
            let lines = record.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let parsed =
                lines.map(|line| json::Document::parse(line, &Limits::OURS).map(|line| line.root().to_value()));
            parsed.collect::<Result<_, _>>().map_err(|error| record.unreadable(error))?
        }
    };
    let step = |value: Value| {
        // An audit trail may put more around a step, such as its time.
        let value = match value.get("step") {
            Some(inner) if inner.is_object() => inner.clone(),
            _ => value,
        };
        serde::Deserialize::deserialize(value)
    };
    let read: Result<Vec<Step>, _> = values.into_iter().map(step).collect();
    read.map_err(|error: serde_json::Error| unusable(&format!("this is no step: {error}")))
}

fn described(told: &[Told]) -> String {
    let mut drawn = String::new();
    for one in told {
        match &one.differs {
            None => drawn.push_str(&format!("{}  {}\n", paint(GOOD, "the same"), shown(&one.name))),
            Some((at, was, would)) => {
                drawn.push_str(&format!("{}  {}, step {at}\n", paint(WARN, "otherwise"), shown(&one.name)));
                drawn.push_str(&format!("  was:   {}\n  would: {}\n", shown(was), shown(would)));
            }
        }
    }
    let otherwise = told.iter().filter(|one| one.differs.is_some()).count();
    drawn.push_str(&format!("{}, {otherwise} decided otherwise\n", count(told.len(), "engagement")));
    drawn
}

fn as_json(told: &[Told]) -> String {
    let entry = |one: &Told| match &one.differs {
        None => json!({"record": one.name, "same": true}),
        Some((at, was, would)) => json!({"record": one.name, "same": false, "step": at, "was": was, "would": would}),
    };
    let entries: Vec<Value> = told.iter().map(entry).collect();
    json_line(&json::canonical_value(&json!({"engagements": entries})))
}
