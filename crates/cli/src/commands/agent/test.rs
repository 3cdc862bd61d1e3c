//! `rialto agent test`: scenarios, played without a model, a tool or a network.

use super::lint;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, count, paint};
use agent::{Agent, Check, Scenario};
use json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Play scenarios: a document, a scripted model, tools that answer as written, and what must come of it
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto agent test examples/agents/leave/scenarios

A scenario is a YAML or JSON file; `agent` names the document, relative to the scenario. docs/openagentspec.md has the
fields. Exits with 1 when something came otherwise than expected.")]
pub(crate) struct Test {
    /// Scenarios, or folders of them
    #[arg(required = true, value_name = "FILE|FOLDER")]
    scenarios: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of one scenario.
struct Told {
    name: String,
    why: String,
    mismatches: Vec<String>,
}

impl Test {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut told = Vec::new();
        for path in files(&self.scenarios)? {
            told.push(play(&path)?);
        }
        if told.is_empty() {
            return Err(Failure::usage("there is no scenario here").help("scenarios end in .yaml, .yml or .json"));
        }
        output::print(&if self.json { as_json(&told) } else { described(&told) })?;
        Ok(if told.iter().all(|one| one.mismatches.is_empty()) { Exit::Fine } else { Exit::No })
    }
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| Failure::io("read", path, &error))?;
        let mut inside: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        inside.retain(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json"));
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

fn play(path: &Path) -> Result<Told, Failure> {
    let text = Text::read(path)?;
    let unusable = |why: String| Failure::refused(why).at(text.name.clone());
    let scenario = Scenario::read(&text.bytes).map_err(unusable)?;
    let document = match (&scenario.agent, &scenario.document) {
        (Some(file), None) => Text::read(&path.parent().unwrap_or(Path::new(".")).join(file))?,
        (None, Some(document)) => Text::carried(&text.name, document),
        _ => return Err(unusable("a scenario has either `agent`, a file, or `document`".to_owned())),
    };
    let agent = Agent::read(&document.bytes).map_err(|findings| {
        let lines: String = findings.iter().map(|finding| lint::line(&document.name, finding)).collect();
        output::say(&lines);
        Failure::refused("the agent's document is not taken").at(document.name.clone())
    })?;
    let played = scenario.play(&agent, &compile).map_err(unusable)?;
    Ok(Told { name: text.name, why: scenario.why, mismatches: played.mismatches })
}

/// The schema of a tool's inputs, as a judge.
fn compile(schema: &Value) -> Result<Arc<dyn Check>, String> {
    struct Judge(schema::Validator);
    impl Check for Judge {
        fn check(&self, inputs: &Value) -> Result<(), String> {
            self.0.check(inputs).map_err(|refusal| refusal.detail)
        }
    }
    let validator = schema::Validator::compile(schema).map_err(|refusal| refusal.detail)?;
    Ok(Arc::new(Judge(validator)))
}

fn described(told: &[Told]) -> String {
    let mut drawn = String::new();
    for one in told {
        let verdict = if one.mismatches.is_empty() { paint(GOOD, "as expected") } else { paint(BAD, "otherwise") };
        drawn.push_str(&format!("{verdict}  {}  {}\n", shown(&one.name), paint(DIM, shown(&one.why))));
        one.mismatches.iter().for_each(|mismatch| drawn.push_str(&format!("  {}\n", shown(mismatch))));
    }
    let failed = told.iter().filter(|one| !one.mismatches.is_empty()).count();
    drawn.push_str(&format!("{}, {failed} otherwise than expected\n", count(told.len(), "scenario")));
    drawn
}

fn as_json(told: &[Told]) -> String {
    let entry = |one: &Told| json!({"scenario": one.name, "why": one.why, "mismatches": one.mismatches});
    let entries: Vec<Value> = told.iter().map(entry).collect();
    json_line(&json::canonical_value(&json!({"scenarios": entries})))
}
