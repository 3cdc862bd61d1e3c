//! `rialto schema infer`: a draft of a mapping, with its open questions (RFC 0024 §3.3).

use super::File;
use crate::failure::{Exit, Failure};
use crate::output::text::{json_line, json_lines, shown};
use crate::output::{self, WARN, count, paint};
use json::{Value, json};
use std::path::PathBuf;

/// Draft a mapping between two schemas; what only people can know is asked
///
/// The draft goes to standard output, the questions to standard error. A rename is always a question.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto schema infer old.json new.json --from 1.1 --to 1.2 > mapping.json")]
pub(crate) struct Infer {
    /// The old schema
    old: PathBuf,

    /// The new schema
    new: PathBuf,

    /// Version of the old schema [default: its `version`]
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,

    /// Version of the new schema [default: its `version`]
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,

    /// Print the draft and the questions as one JSON document
    #[arg(long)]
    json: bool,
}

impl Infer {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (old, new) = (File::read(&self.old)?, File::read(&self.new)?);
        let draft = schema::infer(&old.value, &new.value);
        let (from, to) = (version(self.from.as_deref(), &old, "--from")?, version(self.to.as_deref(), &new, "--to")?);
        let mut mapping = draft.body;
        if let Value::Object(members) = &mut mapping {
            let name = identifier(&new).rsplit(['/', ':']).next().unwrap_or_default().replace(".schema.json", "");
            let head = json!({
                "mapping_id": format!("urn:oap:mapping:{name}-{from}-to-{to}"),
                "source": {"schema": identifier(&old), "version": from},
                "destination": {"schema": identifier(&new), "version": to},
                "directionality": "unidirectional",
            });
            members.extend(head.as_object().cloned().unwrap_or_default());
        }
        if self.json {
            let question = |question: &schema::Question| json!({"at": question.at.as_str(), "question": question.text});
            let questions: Vec<Value> = draft.questions.iter().map(question).collect();
            output::print(&json_line(&json::canonical_value(&json!({"mapping": mapping, "questions": questions}))))?;
            return Ok(Exit::Fine);
        }
        output::print(&json_lines(&format!("{mapping:#}")))?;
        for question in &draft.questions {
            output::say(&format!(
                "{} {}: {}",
                paint(WARN, "question:"),
                shown(question.at.as_str()),
                shown(&question.text)
            ));
        }
        output::note(&format!("{} left to answer", count(draft.questions.len(), "question")));
        Ok(Exit::Fine)
    }
}

fn identifier(file: &File) -> String {
    let id = file.value.get("$id").and_then(Value::as_str);
    id.map_or_else(|| "urn:example:schema".to_owned(), |id| id.trim_end_matches('#').to_owned())
}

fn version(given: Option<&str>, file: &File, option: &str) -> Result<String, Failure> {
    let text = given.or_else(|| file.value.get("version").and_then(Value::as_str));
    let text = text.ok_or_else(|| {
        Failure::usage(format!("`{}` does not say its version", file.text.name)).help(format!("name it with {option}"))
    })?;
    match schema::Version::parse(text) {
        Some(version) => Ok(version.to_string()),
        None => Err(Failure::usage(format!("`{}` is no version", shown(text))).help("a version is `1.2` or `1.2.0`")),
    }
}
