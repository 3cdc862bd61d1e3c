//! `rialto lint`: what is wrong with an intent, and what is allowed and probably not meant.

use crate::draft::{self, Missing};
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::output::text::{json_line, shown, wrap};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, count, paint};
use crate::{advice, candidates, chance, clock, keys};
use aql::{Candidate, Limits, Refusal};
use json::{Document, Pointer, Value, json};
use std::path::PathBuf;
use trust::Did;

/// Find mistakes in intents, and questions that do not ask what their author meant
///
/// Drafts are completed first, so that a missing id, issuer or window is no finding.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto lint examples/intents/broken/*.json
  rialto lint draft.json --candidates examples/market/manifests.ndjson

Exits with 1 when an intent would be refused; with --strict also on warnings.")]
pub(crate) struct Lint {
    /// Intents or drafts; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Also warn about paths that none of these candidates has
    #[arg(long, value_name = "FILE")]
    candidates: Option<PathBuf>,

    /// Let warnings fail, too
    #[arg(long)]
    strict: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One finding with its place in a file.
struct Finding {
    file: String,
    position: Option<(usize, usize)>,
    refused: bool,
    code: &'static str,
    at: Pointer,
    section: &'static str,
    message: String,
    advice: String,
}

impl Lint {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let candidates = self.candidates.as_deref().map(candidates::read).transpose()?;
        let candidates = candidates.map(|candidates| candidates.list).unwrap_or_default();
        let issuer = keys::fleeting()?.did_key();
        let (mut findings, mut completed, mut unread) = (Vec::new(), 0, 0);
        for path in &self.files {
            match Text::read(path) {
                Ok(text) => completed += usize::from(lint(&text, &candidates, &issuer, &mut findings)?),
                Err(failure) => {
                    failure.report();
                    unread += 1;
                }
            }
        }
        if completed > 0 {
            output::note(&format!(
                "completed {}: id, issuer and window need not stand there",
                count(completed, "draft")
            ));
        }
        output::print(&if self.json { as_json(&findings) } else { described(&findings, self.files.len() - unread) })?;
        let failing = findings.iter().any(|finding| finding.refused || self.strict);
        Ok(if unread > 0 {
            Exit::Files
        } else if failing {
            Exit::No
        } else {
            Exit::Fine
        })
    }
}

/// Collects the findings of one file; says whether it was a draft.
fn lint(text: &Text, candidates: &[Candidate], issuer: &Did, findings: &mut Vec<Finding>) -> Result<bool, Failure> {
    let document = match Document::parse(&text.bytes, &Limits::STANDARD.json) {
        Ok(document) => document,
        Err(error) => {
            let position = Some(text.locate_error(&error));
            let refusal = Refusal::from(error);
            findings.push(Finding {
                file: text.name.clone(),
                position,
                refused: true,
                code: refusal.code.name(),
                section: refusal.code.section(),
                at: refusal.at,
                message: refusal.detail,
                advice: advice::on(refusal.code.name()).unwrap_or_default(),
            });
            return Ok(false);
        }
    };
    let missing = Missing { intent_id: draft::intent_id(&chance::uuid()?), issuer: issuer.clone(), now: clock::now() };
    let draft = draft::complete(document.root(), missing);
    let complete = Document::of(&draft.intent).map_err(|error| text.unreadable(error))?;
    for finding in aql::lint(complete.root(), candidates, &Limits::STANDARD) {
        findings.push(Finding {
            file: text.name.clone(),
            position: text.locate(&finding.at),
            refused: finding.refused,
            code: finding.code,
            at: finding.at,
            section: finding.section,
            message: finding.message,
            advice: advice::on(finding.code).unwrap_or(finding.advice),
        });
    }
    Ok(!draft.filled.is_empty())
}

fn described(findings: &[Finding], files: usize) -> String {
    let room = output::width().saturating_sub(2);
    let mut text = String::new();
    for finding in findings {
        let (word, style) = if finding.refused { ("refused", BAD) } else { ("warning", WARN) };
        let position = finding.position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
        text.push_str(&format!(
            "{} {} {}\n",
            paint(style, format!("{word}:")),
            paint(STRONG, finding.code),
            shown(&format!("{}{position}", finding.file))
        ));
        let place = format!(
            "at {}, {}",
            if finding.at.as_str().is_empty() { "the root" } else { finding.at.as_str() },
            finding.section
        );
        text.push_str(&format!("  {}\n", paint(DIM, shown(&place))));
        let mut paragraph =
            |words: &str| wrap(words, room).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        paragraph(&shown(&finding.message));
        paragraph(&format!("help: {}", shown(&finding.advice)));
        text.push('\n');
    }
    let refused = findings.iter().filter(|finding| finding.refused).count();
    let summary = match (refused, findings.len() - refused) {
        (0, 0) => paint(GOOD, "nothing to mend"),
        (0, warnings) => paint(WARN, count(warnings, "warning")),
        (refused, 0) => paint(BAD, count(refused, "refusal")),
        (refused, warnings) => {
            format!("{}, {}", paint(BAD, count(refused, "refusal")), paint(WARN, count(warnings, "warning")))
        }
    };
    text + &format!("{summary} in {}\n", count(files, "file"))
}

fn as_json(findings: &[Finding]) -> String {
    let entry = |finding: &Finding| {
        json!({
            "advice": finding.advice,
            "at": finding.at.as_str(),
            "code": finding.code,
            "column": finding.position.map(|(_, column)| column),
            "file": finding.file,
            "line": finding.position.map(|(line, _)| line),
            "message": finding.message,
            "section": finding.section,
            "severity": if finding.refused { "refused" } else { "warning" },
        })
    };
    let refused = findings.iter().filter(|finding| finding.refused).count();
    let entries: Vec<Value> = findings.iter().map(entry).collect();
    let value = json!({"findings": entries, "refused": refused, "warnings": findings.len() - refused});
    json_line(&json::canonical_value(&value))
}
