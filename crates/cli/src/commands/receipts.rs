//! `rialto receipts`: what was asked and answered, as a chain of digests (RFC 0020 §5).

use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, count, paint};
use crate::receipts::{Flaw, Place, Receipt};
use json::{Value, json};
use std::path::PathBuf;
use trust::Digest;

/// List, verify and export what was asked and answered
///
/// `rialto ask` notes each question: digests of the signed intent, of the answer and of every decision record, each line
/// with the digest of the line before.
#[derive(clap::Subcommand)]
pub(crate) enum Receipts {
    List(List),
    Verify(Verify),
    Export(Export),
}

/// List the questions that were asked, the latest last
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto receipts list")]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Follow the chain from its beginning to its end
///
/// With an answer or an intent also whether the chain holds its digest.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  rialto receipts verify\n  rialto receipts verify answer.json\n\nExits with 1 when something is wrong."
)]
pub(crate) struct Verify {
    /// Answers or signed intents that the chain must know, byte for byte
    #[arg(value_name = "FILE")]
    documents: Vec<PathBuf>,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Write the chain out, as it is, for somebody else to follow
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto receipts export --output receipts.ndjson")]
pub(crate) struct Export {
    #[command(flatten)]
    place: Place,

    /// Where it goes; standard output when absent
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// One JSON array instead of a line for each question
    #[arg(long)]
    json: bool,
}

impl Receipts {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(),
            Self::Verify(verify) => verify.run(),
            Self::Export(export) => export.run(),
        }
    }
}

impl List {
    fn run(self) -> Result<Exit, Failure> {
        let (receipts, flaws) = self.place.chain()?.read()?;
        if self.json {
            output::print(&all(&receipts))?;
        } else if receipts.is_empty() {
            output::note("nothing was asked yet; `rialto ask` begins the chain");
        } else {
            let lines: String = receipts.iter().map(described).collect();
            output::print(&lines)?;
        }
        tell(&flaws);
        Ok(if flaws.is_empty() { Exit::Fine } else { Exit::No })
    }
}

impl Verify {
    fn run(self) -> Result<Exit, Failure> {
        let chain = self.place.chain()?;
        let (receipts, flaws) = chain.read()?;
        let mut unknown = Vec::new();
        for path in &self.documents {
            let document = Text::read(path)?;
            let digest = Digest::of(document.bytes.trim_ascii_end()).to_string();
            if !receipts.iter().any(|receipt| knows(&receipt.value, &digest)) {
                unknown.push(document.name);
            }
        }
        let sound = flaws.is_empty() && unknown.is_empty();
        if self.json {
            let flaws: Vec<String> = flaws.iter().map(Flaw::describe).collect();
            let report = json!({"sound": sound, "receipts": receipts.len(), "flaws": flaws, "unknown": unknown});
            output::print(&json_line(report.to_string().as_bytes()))?;
        } else {
            tell(&flaws);
            for name in &unknown {
                output::say(&format!("{} the chain does not know `{}`", paint(BAD, "✗"), shown(name)));
            }
            if sound {
                let path = chain.path().display().to_string();
                let text = format!("{} {}", paint(GOOD, "✓ the chain is whole:"), count(receipts.len(), "receipt"));
                output::print(&format!("{text}\n  {}\n", paint(DIM, shown(&path))))?;
            }
        }
        Ok(if sound { Exit::Fine } else { Exit::No })
    }
}

impl Export {
    fn run(self) -> Result<Exit, Failure> {
        let (receipts, flaws) = self.place.chain()?.read()?;
        let text = match self.json {
            true => all(&receipts),
            false => receipts.iter().map(|receipt| json_line(&receipt.line)).collect(),
        };
        files::write(self.output.as_deref(), &text)?;
        tell(&flaws);
        Ok(if flaws.is_empty() { Exit::Fine } else { Exit::No })
    }
}

fn all(receipts: &[Receipt]) -> String {
    let values: Vec<&Value> = receipts.iter().map(|receipt| &receipt.value).collect();
    json_line(json!(values).to_string().as_bytes())
}

fn tell(flaws: &[Flaw]) {
    for flaw in flaws {
        output::say(&format!("{} {}", paint(BAD, "✗"), flaw.describe()));
    }
}

/// Whether a receipt holds a digest of a whole document.
fn knows(receipt: &Value, digest: &str) -> bool {
    let is_it = |value: Option<&Value>| value.and_then(Value::as_str) == Some(digest);
    let answers = receipt.get("answers").and_then(Value::as_array);
    is_it(receipt.get("intent")) || answers.into_iter().flatten().any(|answer| is_it(answer.get("digest")))
}

fn described(receipt: &Receipt) -> String {
    let text = |name: &str| shown(receipt.value.get(name).and_then(Value::as_str).unwrap_or_default());
    let number = receipt.value.get("number").and_then(Value::as_u64).unwrap_or_default();
    let decisions = receipt.value.get("decisions").and_then(Value::as_array).map_or(0, Vec::len);
    let verdict = match receipt.value.get("conforms").and_then(Value::as_bool) {
        Some(true) => String::new(),
        _ => format!(", {}", paint(BAD, "breaks its question")),
    };
    format!(
        "{:>4}  {}  {}\n      {}\n",
        number,
        text("at"),
        paint(STRONG, text("intent_id")),
        format_args!("{} {}{verdict}", count(decisions, "decision"), paint(DIM, format!("by {}", text("node")))),
    )
}
