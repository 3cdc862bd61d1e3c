//! `rialto trace`: from an intent to its receipts, every signature and every link (RFC 0020 B.2).

use crate::failure::{Exit, Failure};
use crate::ledger::{Place, keyring};
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, count, paint};
use json::{Node, Value, json};
use payment::{ChainFlaw, Trace};
use std::path::PathBuf;

/// Follow the money of an intent
///
/// Shows intent, answers, sessions, confirmations and receipts as one tree, and verifies every signature and every link
/// between them.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto trace urn:oap:intent:lunch-1\n\nExits with 1 when something is wrong.")]
pub(crate) struct Tracing {
    /// The intent; all that the ledger knows when absent
    #[arg(value_name = "INTENT_ID")]
    intent_id: Option<String>,

    /// The DID document of a signer whose DID is no did:key; may be repeated
    #[arg(long = "did-document", value_name = "FILE")]
    did_documents: Vec<PathBuf>,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Tracing {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (ledger, chain) = self.place.look()?;
        let keys = keyring(&self.did_documents)?;
        let wanted = |id: &str| self.intent_id.as_deref().is_none_or(|intent_id| intent_id == id);
        let stories: Vec<_> = ledger.stories().filter(|(id, _)| wanted(id)).collect();
        if stories.is_empty() && self.intent_id.is_some() && chain.is_empty() {
            return Err(Failure::refused("the ledger knows no such intent").help("`rialto trace` lists all of them"));
        }
        let traces: Vec<Trace> = stories
            .iter()
            .map(|(_, story)| {
                let principal = story.intent.root().get("issuer_did").and_then(Node::as_str).unwrap_or_default();
                payment::trace(story, &ledger.receipts(principal), &keys)
            })
            .collect();
        let sound = chain.is_empty() && traces.iter().all(|trace| trace.flaws.is_empty());
        if self.json {
            output::print(&json_line(for_programs(&traces, &chain, sound).to_string().as_bytes()))?;
        } else {
            output::print(&traces.iter().map(for_people).collect::<String>())?;
            for flaw in &chain {
                output::say(&format!("{} the ledger: {}", paint(BAD, "✗"), flaw.describe()));
            }
            if sound && traces.is_empty() {
                output::note("nothing was paid yet; `rialto pay` begins the ledger");
            }
        }
        Ok(if sound { Exit::Fine } else { Exit::No })
    }
}

fn for_programs(traces: &[Trace], chain: &[ChainFlaw], sound: bool) -> Value {
    let trace = |trace: &Trace| {
        let flaws: Vec<Value> = trace
            .flaws
            .iter()
            .map(|flaw| json!({"document": flaw.document, "at": flaw.at.as_str(), "code": flaw.code, "detail": flaw.detail}))
            .collect();
        json!({"tree": trace.tree, "flaws": flaws})
    };
    let chain: Vec<String> = chain.iter().map(ChainFlaw::describe).collect();
    json!({"sound": sound, "ledger_flaws": chain, "intents": traces.iter().map(trace).collect::<Vec<_>>()})
}

fn for_people(trace: &Trace) -> String {
    let tree = &trace.tree;
    let text = |value: &Value, name: &str| shown(value.get(name).and_then(Value::as_str).unwrap_or("–"));
    let at = |pointer: &str| tree.pointer(pointer).cloned().unwrap_or_default();
    let mark = |document: &str| match trace.flaws.iter().any(|flaw| flaw.document == document) {
        true => paint(BAD, "✗"),
        false => paint(GOOD, "✓"),
    };
    let node = |indent: usize, document: &str, name: &str, value: &Value| {
        let by = paint(DIM, format!("by {}", text(value, "by")));
        format!("{:indent$}{} {name} {} {by}\n", "", mark(document), text(value, "id"))
    };
    let intent = at("/intent");
    let mut told = format!("{} {}\n", mark("intent"), paint(STRONG, text(&intent, "id")));
    let list = |name: &str| at(name).as_array().cloned().unwrap_or_default();
    for (number, answer) in list("/answers").iter().enumerate() {
        told.push_str(&node(2, &format!("answers/{number}"), "answer", answer));
    }
    for (number, payment) in list("/payments").iter().enumerate() {
        let amount = payment.get("amount").cloned().unwrap_or_default();
        let what =
            format!("{} {} for {}", text(&amount, "value"), text(&amount, "currency"), text(payment, "offer_ref"));
        told.push_str(&format!("  {} {}\n", paint(STRONG, what), paint(DIM, text(payment, "state"))));
        for name in ["mandate", "request", "session", "confirmation", "receipt"] {
            if let Some(value) = payment.get(name) {
                told.push_str(&node(4, &format!("payments/{number}/{name}"), name, value));
            }
        }
        if payment.get("released").is_some() {
            told.push_str(&format!("    {} {}\n", paint(DIM, "given up:"), text(payment, "released")));
        }
    }
    for flaw in &trace.flaws {
        let place = if flaw.at.as_str().is_empty() { String::new() } else { format!(", {}", flaw.at) };
        let (mark, document) = (paint(BAD, "✗"), shown(&flaw.document));
        told.push_str(&format!("{mark} {document}{}: {} ({})\n", shown(&place), shown(&flaw.detail), flaw.code));
    }
    if trace.flaws.is_empty() {
        let payments = list("/payments").len();
        let verdict = paint(GOOD, "✓ every signature and link holds:");
        told.push_str(&format!("{verdict} {}, {} settled\n", count(payments, "payment"), text(tree, "settled")));
    }
    told
}
