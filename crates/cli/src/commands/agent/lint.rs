//! `rialto agent lint`: what is wrong with an agent's document, and what works but hardly as meant.

use crate::advice;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::hosting::documents;
use crate::output::text::{json_line, shown, wrap};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, count, paint};
use agent::{Agent, Finding, Grade, NameRule};
use json::{Value, json};
use std::path::PathBuf;

/// Find mistakes in agents' documents, with their lines
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto agent lint examples/agents/leave/leave.yaml examples/agents/house

Exits with 1 when a document would not be taken; with --strict also for a warning.")]
pub(crate) struct Lint {
    /// Documents, folders of them as `rialto serve --agents` takes them, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Warnings count like mistakes
    #[arg(long)]
    strict: bool,

    /// Also take names with `_`, as a newer draft of the text has them
    #[arg(long)]
    underscores: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Lint {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let rule = if self.underscores { NameRule::Both } else { NameRule::Text };
        let mut found = Vec::new();
        let mut files = Vec::new();
        for path in self.files {
            if path.is_dir() { files.extend(documents(&path)?) } else { files.push(path) }
        }
        for path in &files {
            let text = Text::read(path)?;
            let findings = match Agent::read_as(&text.bytes, rule) {
                Ok(agent) => agent.warnings,
                Err(findings) => findings,
            };
            found.extend(findings.into_iter().map(|finding| (text.name.clone(), finding)));
        }
        output::print(&if self.json { as_json(&found) } else { described(&found, files.len()) })?;
        let failing = found.iter().any(|(_, finding)| finding.grade() == Grade::Error || self.strict);
        Ok(if failing { Exit::No } else { Exit::Fine })
    }
}

fn described(found: &[(String, Finding)], files: usize) -> String {
    let mut drawn: String = found.iter().map(|(file, finding)| line(file, finding)).collect();
    let errors = found.iter().filter(|(_, finding)| finding.grade() == Grade::Error).count();
    let verdict = match (errors, found.len() - errors) {
        (0, 0) => paint(GOOD, "nothing to say"),
        (errors, warnings) => format!("{}, {}", count(errors, "mistake"), count(warnings, "warning")),
    };
    drawn.push_str(&format!("{}: {verdict}\n", count(files, "document")));
    drawn
}

/// One finding with its file, its place and what to do.
pub(super) fn line(file: &str, finding: &Finding) -> String {
    let room = output::width().saturating_sub(2);
    let style = match finding.grade() {
        Grade::Error => BAD,
        Grade::Warning => WARN,
    };
    let position = finding.position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
    let head = paint(style, format!("{}:", finding.grade().name()));
    let mut drawn = format!("{head} {} {}\n", paint(STRONG, finding.code.name()), shown(&format!("{file}{position}")));
    let place = if finding.at.as_str().is_empty() { "the root" } else { finding.at.as_str() };
    drawn.push_str(&format!("  {}\n", paint(DIM, shown(&format!("at {place}")))));
    let help = advice::on(finding.code.name()).map(|advice| format!("help: {advice}"));
    for words in std::iter::once(shown(&finding.detail)).chain(help) {
        wrap(&words, room).iter().for_each(|line| drawn.push_str(&format!("  {line}\n")));
    }
    drawn.push('\n');
    drawn
}

fn as_json(found: &[(String, Finding)]) -> String {
    let entry = |(file, finding): &(String, Finding)| {
        json!({
            "file": file,
            "line": finding.position.map(|(line, _)| line),
            "column": finding.position.map(|(_, column)| column),
            "grade": finding.grade().name(),
            "code": finding.code.name(),
            "at": finding.at.as_str(),
            "message": finding.detail,
            "advice": advice::on(finding.code.name()),
        })
    };
    let findings: Vec<Value> = found.iter().map(entry).collect();
    json_line(&json::canonical_value(&json!({"findings": findings})))
}
