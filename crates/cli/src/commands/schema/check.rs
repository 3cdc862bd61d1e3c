//! `rialto schema check`: do documents of one version conform to another? (RFC 0024 §3.4)

use super::File;
use crate::failure::{Exit, Failure};
use crate::output::text::{json_line, json_lines, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, paint};
use clap::ValueEnum;
use json::{Value, json};
use schema::{Undeclared, Verdict};
use std::path::PathBuf;

/// Prove that versions of a schema fit each other, or show a document that says otherwise
///
/// The last schema is the new one. `backward`: it reads the documents of the one before it. `forward`: that one reads
/// its documents. `full`: both. The transitive modes look at all earlier schemas instead of the last one only.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto schema check old.json new.json --mode backward
  rialto schema check v1.json v2.json v3.json --mode full-transitive --undeclared tolerant --json

Exits with 0 when all verdicts are `compatible`, and with 1 when one is `broken` or, without
--unknown-passes, `unknown`.")]
pub(crate) struct Check {
    /// Schemas, the oldest first
    #[arg(required = true, num_args = 2.., value_name = "SCHEMA")]
    schemas: Vec<PathBuf>,

    /// Who has to read whom
    #[arg(long, value_enum, default_value_t = Mode::Backward)]
    mode: Mode,

    /// Members that a schema neither declares nor forbids: may they be there?
    #[arg(long, value_enum, default_value_t = Treatment::Strict)]
    undeclared: Treatment,

    /// Let `unknown` pass
    #[arg(long)]
    unknown_passes: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Backward,
    Forward,
    Full,
    BackwardTransitive,
    ForwardTransitive,
    FullTransitive,
}

#[derive(Clone, Copy, ValueEnum)]
enum Treatment {
    /// They may, with any value: the letter of JSON Schema
    Strict,
    /// Nobody sends them: the habit of people
    Tolerant,
}

impl From<Treatment> for Undeclared {
    fn from(treatment: Treatment) -> Self {
        match treatment {
            Treatment::Strict => Self::Strict,
            Treatment::Tolerant => Self::Tolerant,
        }
    }
}

impl Mode {
    fn looks_back(self) -> bool {
        matches!(self, Self::Backward | Self::Full | Self::BackwardTransitive | Self::FullTransitive)
    }

    fn looks_forward(self) -> bool {
        matches!(self, Self::Forward | Self::Full | Self::ForwardTransitive | Self::FullTransitive)
    }

    fn is_transitive(self) -> bool {
        matches!(self, Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive)
    }
}

/// One question and its answer.
struct Finding {
    way: &'static str,
    writer: String,
    reader: String,
    verdict: Verdict,
}

impl Check {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let files: Vec<File> = self.schemas.iter().map(|path| File::read(path)).collect::<Result<_, _>>()?;
        let Some((new, earlier)) = files.split_last() else { return Ok(Exit::Fine) };
        for file in &files {
            file.validator()?;
        }
        let first = if self.mode.is_transitive() { 0 } else { earlier.len().saturating_sub(1) };
        let mut findings = Vec::new();
        for old in earlier.iter().skip(first) {
            if self.mode.looks_back() {
                findings.push(self.ask("backward", old, new)?);
            }
            if self.mode.looks_forward() {
                findings.push(self.ask("forward", new, old)?);
            }
        }
        let treatment = Undeclared::from(self.undeclared);
        output::print(&if self.json { as_json(&findings, treatment) } else { described(&findings, treatment) })?;
        let passes = |finding: &Finding| match finding.verdict {
            Verdict::Compatible => true,
            Verdict::Broken { .. } => false,
            Verdict::Unknown { .. } => self.unknown_passes,
        };
        Ok(if findings.iter().all(passes) { Exit::Fine } else { Exit::No })
    }

    fn ask(&self, way: &'static str, writer: &File, reader: &File) -> Result<Finding, Failure> {
        let verdict = schema::check(&writer.value, &reader.value, self.undeclared.into());
        let verdict = verdict.map_err(|refusal| reader.refused(&refusal))?;
        Ok(Finding { way, writer: writer.text.name.clone(), reader: reader.text.name.clone(), verdict })
    }
}

fn as_json(findings: &[Finding], treatment: Undeclared) -> String {
    let entry = |finding: &Finding| {
        let mut value = json!({
            "direction": finding.way,
            "written_by": finding.writer,
            "read_by": finding.reader,
            "verdict": finding.verdict.name(),
        });
        if let Value::Object(members) = &mut value {
            match &finding.verdict {
                Verdict::Compatible => {}
                Verdict::Broken { counterexample, at } => {
                    members.insert("counterexample".to_owned(), counterexample.clone());
                    members.insert("at".to_owned(), json!(at.as_str()));
                }
                Verdict::Unknown { reasons } => {
                    let reason = |reason: &schema::Reason| json!({"rule": reason.rule, "at": reason.at.as_str()});
                    members.insert("reasons".to_owned(), reasons.iter().map(reason).collect());
                }
            }
        }
        value
    };
    let entries: Vec<Value> = findings.iter().map(entry).collect();
    json_line(&json::canonical_value(&json!({"undeclared": treatment.name(), "findings": entries})))
}

fn described(findings: &[Finding], treatment: Undeclared) -> String {
    let mut text = String::new();
    for finding in findings {
        let style = match finding.verdict {
            Verdict::Compatible => GOOD,
            Verdict::Broken { .. } => BAD,
            Verdict::Unknown { .. } => WARN,
        };
        let names = format!("{} reads what {} describes", finding.reader, finding.writer);
        text.push_str(&format!(
            "{} {}: {}\n",
            paint(style, finding.verdict.name()),
            paint(STRONG, finding.way),
            shown(&names)
        ));
        match &finding.verdict {
            Verdict::Compatible => {}
            Verdict::Broken { counterexample, at } => {
                let place = if at.as_str().is_empty() { "the root" } else { at.as_str() };
                text.push_str(&format!(
                    "  {}\n",
                    paint(DIM, shown(&format!("this document conforms to the one and not to the other, at {place}:")))
                ));
                json_lines(&format!("{counterexample:#}"))
                    .lines()
                    .for_each(|line| text.push_str(&format!("  {line}\n")));
            }
            Verdict::Unknown { reasons } => {
                for reason in reasons {
                    let place = if reason.at.as_str().is_empty() { "the root" } else { reason.at.as_str() };
                    text.push_str(&format!("  not shown: {} at {}\n", reason.rule, shown(place)));
                }
            }
        }
    }
    text + &format!("{}\n", paint(DIM, format!("undeclared members: {}", treatment.name())))
}
