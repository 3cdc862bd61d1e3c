//! `rialto demo`: three questions to a small invented market, signed, answered, verified and explained.
//!
//! Everything it needs is in the binary; it asks for no file, no key and no network.

use crate::explanation::Explanation;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::output::resolution::{self, Layout};
use crate::output::text::wrap;
use crate::output::{self, DIM, GOOD, STRONG, count, decision, paint};
use crate::{answer, candidates, clock, keys, question};
use aql::{Candidate, Fuel, Instant, Intent, OverBudget};
use json::{Document, Limits};
use trust::{Digest, SigningKey};

/// Ask a small bundled market three questions
///
/// Signs three intents with a key made for the occasion, answers them, verifies the answers, and explains one decision.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto demo")]
pub(crate) struct Demo {}

/// A question of the demo.
struct Asked {
    words: &'static str,
    name: &'static str,
    intent: &'static str,
    candidates: &'static str,
}

const MANIFESTS: &str = include_str!("../../../../examples/market/manifests.ndjson");
const OFFERS: &str = include_str!("../../../../examples/market/offers.ndjson");
const KNOWLEDGE: &str = include_str!("../../../../examples/market/knowledge.ndjson");

const QUESTIONS: [Asked; 3] = [
    Asked {
        words: "Who translates into Polish, certified, for at most 30 EUR a page, and does not train on our papers?",
        name: "affordable-certified-translation",
        intent: include_str!("../../../../examples/intents/affordable-certified-translation.json"),
        candidates: MANIFESTS,
    },
    Asked {
        words: "Who brings a parcel before Friday 18:00, and how would 90 EUR be shared by the best three?",
        name: "courier-before-friday-evening",
        intent: include_str!("../../../../examples/intents/courier-before-friday-evening.json"),
        candidates: OFFERS,
    },
    Asked {
        words: "What came out this year about sodium-ion and solid-state cells, in at most 60 pages?",
        name: "battery-reading-list",
        intent: include_str!("../../../../examples/intents/battery-reading-list.json"),
        candidates: KNOWLEDGE,
    },
];

/// The candidate of the first question whose decision is explained.
const EXPLAINED: &str = "did:web:quayside-translation-bureau.example";

/// Near misses that are shown for each question.
const MISSES: usize = 2;

impl Demo {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let now = clock::now();
        let (asker, resolver) = (keys::fleeting()?, keys::fleeting()?);
        output::print(&format!(
            "{}\n{}\n",
            paint(STRONG, "Three signed questions to a small invented market"),
            paint(DIM, "Keys are made for this run, nothing is stored, no network is used."),
        ))?;
        for (number, asked) in QUESTIONS.iter().enumerate() {
            output::print(&headline(&format!("{}. {}", number + 1, asked.words)))?;
            let (intent, candidates) = asked.question(&asker, now)?;
            output::print(&answered(&intent, &candidates, &resolver, now)?)?;
        }
        let [first, ..] = &QUESTIONS;
        let (intent, candidates) = first.question(&asker, now)?;
        output::print(&headline("Why is the third answer to the first question flagged?"))?;
        output::print(&explained(&intent, &candidates, now)?)?;
        output::print(&next())?;
        Ok(Exit::Fine)
    }
}

impl Asked {
    /// The signed question and those it is put to.
    fn question(&self, asker: &SigningKey, now: Instant) -> Result<(Intent, Vec<Candidate>), Failure> {
        let text = Text::carried(&format!("examples/intents/{}.json", self.name), self.intent);
        let question = question::read(&text, None, || Ok(asker), now)?;
        let candidates = candidates::from_lines(self.candidates.as_bytes(), |_, _| {});
        let candidates = candidates.map_err(|error| Failure::files(format!("the bundled market: {error}")))?;
        Ok((question.intent.into_value(), candidates.list))
    }
}

fn headline(words: &str) -> String {
    let lines: String = wrap(words, output::width()).iter().map(|line| format!("{}\n", paint(STRONG, line))).collect();
    format!("\n{lines}\n")
}

fn answered(intent: &Intent, candidates: &[Candidate], resolver: &SigningKey, now: Instant) -> Result<String, Failure> {
    let resolution = aql::resolve(intent, candidates, OverBudget::Flag, Fuel::OWN).map_err(answer::unanswered)?;
    let response = answer::sign(intent, &resolution, resolver, now, MISSES)?;
    let layout = Layout { width: output::width(), rejected_max: MISSES, hint: "" };
    let asked = format!("{} intent, signed by {}", intent.category.name(), cut(&intent.issuer_did));
    Ok(format!("{}\n{}{}", paint(DIM, asked), resolution::show(intent, &resolution, &layout), proof(&response)?))
}

/// Reads the answer as its receiver will.
fn proof(response: &[u8]) -> Result<String, Failure> {
    let refused = |what: String| Failure::refused(format!("the answer of the demo does not verify: {what}"));
    let document = Document::parse(response, &Limits::OURS).map_err(|error| refused(error.to_string()))?;
    let verified = trust::verify_did_key(&document, "resolver_did").map_err(|error| refused(error.to_string()))?;
    let digest = Digest::of(&json::canonical_without(verified.value().root(), "signature")).to_string();
    let digest = digest.get(..19).unwrap_or_default();
    let signed = format!("{}, {digest}…, by {}", count(response.len(), "byte"), cut(verified.signer().as_str()));
    Ok(format!("\n{} {}\n", paint(GOOD, "✓ verified answer:"), paint(DIM, signed)))
}

fn explained(intent: &Intent, candidates: &[Candidate], now: Instant) -> Result<String, Failure> {
    let candidate = candidates.iter().find(|candidate| candidate.id == EXPLAINED);
    let candidate = candidate.ok_or_else(|| Failure::refused(format!("the market has no `{EXPLAINED}`")))?;
    let explanation = Explanation::of(intent, candidates, candidate, OverBudget::Flag, now)?;
    Ok(decision::show(&explanation))
}

/// A DID that nobody will see again needs no more than its beginning.
fn cut(did: &str) -> String {
    format!("{}…", did.get(..20).unwrap_or(did))
}

fn next() -> String {
    let commands = [
        (
            "the same questions, in full",
            "rialto resolve --intent examples/intents/affordable-certified-translation.json \\\n      --candidates examples/market/manifests.ndjson",
        ),
        (
            "why somebody was turned away",
            "rialto explain --intent examples/intents/legal-research-inside-the-eu.json \\\n      --candidates examples/market/manifests.ndjson did:web:precedent-harbour.example",
        ),
        ("mistakes, found before anybody asks", "rialto lint examples/intents/broken/*.json"),
        (
            "a key that stays, and a signed question",
            "rialto keys new && rialto sign examples/intents/quick-weather-for-europe.json",
        ),
    ];
    let lines: String =
        commands.iter().map(|(what, command)| format!("  {}\n    {command}\n", paint(DIM, what))).collect();
    format!("\n{}\n{lines}", paint(STRONG, "Now you"))
}
