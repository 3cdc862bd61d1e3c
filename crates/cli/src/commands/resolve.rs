//! `rialto resolve`: an intent, a file of candidates, and the answer (RFC 0020 A.3 R1 to R6).

use super::OverBudgetChoice;
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::keys::{KeyChoice, Signer};
use crate::output::resolution::{self, Layout};
use crate::output::text::{json_line, json_lines};
use crate::page::Page;
use crate::{answer, candidates, clock, output, question};
use aql::Fuel;
use json::{Document, Limits};
use std::path::PathBuf;

/// Answer an intent from a file of candidates
///
/// Shows who fits, in order and with the reasons, then the nearest misses and what each one lacked. With --json the
/// answer is a response signed by the local key, which `rialto verify` accepts.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto resolve --intent examples/intents/battery-reading-list.json \\
    --candidates examples/market/knowledge.ndjson

Lines that are no candidates are reported and skipped.
An empty answer is an answer: it exits with 0.")]
pub(crate) struct Resolve {
    /// The intent: signed, or a draft that is completed and signed by the local key; `-` for standard input
    #[arg(long, value_name = "FILE")]
    intent: PathBuf,

    /// The candidates, one JSON object on each line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    candidates: PathBuf,

    /// Where candidates go that cost more than the budget
    #[arg(long, value_enum, default_value = "flag")]
    over_budget: OverBudgetChoice,

    /// The DID document of an issuer whose DID is no did:key
    #[arg(long, value_name = "FILE")]
    did_document: Option<PathBuf>,

    #[command(flatten)]
    key: KeyChoice,

    /// How many rejected candidates are named
    #[arg(long, value_name = "N", default_value_t = 20)]
    rejected: usize,

    /// Print the signed response
    #[arg(long)]
    json: bool,

    /// With --json: indent it
    #[arg(long, requires = "json")]
    pretty: bool,
}

const HINT: &str = "; --rejected N shows more";

impl Resolve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        files::check_streams(&self.intent, &self.candidates)?;
        let now = clock::now();
        let signer = Signer::new(&self.key);
        let text = Text::read(&self.intent)?;
        let question = question::read(&text, self.did_document.as_deref(), || signer.key(), now)?;
        if let Some(closed) = question.closed {
            return Err(closed);
        }
        let intent = question.intent.value();
        let candidates = candidates::read(&self.candidates)?;
        let resolution = aql::resolve(intent, &candidates.list, self.over_budget.into(), Fuel::OWN);
        let resolution = resolution.map_err(answer::unanswered)?;
        let text = if self.json {
            self.printed(&answer::sign(intent, &resolution, signer.key()?, now, self.rejected)?)?
        } else {
            let layout = Layout { width: output::width(), rejected_max: self.rejected, hint: HINT };
            resolution::show(intent, &Page::of(intent, &resolution), &layout) + &skipped(candidates.skipped)
        };
        output::print(&text)?;
        Ok(Exit::Fine)
    }

    fn printed(&self, response: &[u8]) -> Result<String, Failure> {
        if !self.pretty {
            return Ok(json_line(response));
        }
        let document = Document::parse(response, &Limits::OURS);
        let document = document.map_err(|error| Failure::refused(format!("the response: {error}")))?;
        Ok(json_lines(&format!("{:#}", document.root().to_value())))
    }
}

fn skipped(lines: usize) -> String {
    match lines {
        0 => String::new(),
        lines => format!("\n{} skipped, see above\n", output::count(lines, "line")),
    }
}
