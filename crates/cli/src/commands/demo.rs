//! `rialto demo`: a node with a small invented market, three questions over HTTP, the reasons, and a change as it comes.
//!
//! Everything it needs is in the binary; it asks for no file and no key, and leaves nothing behind.

use super::{ask, watch};
use crate::asking::{self, Answered};
use crate::clock::{self, Stopwatch};
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::handshake::{self, Kept};
use crate::keys;
use crate::output::resolution::{self, Layout};
use crate::output::text::wrap;
use crate::output::{self, DIM, GOOD, STRONG, decision, paint};
use crate::peer::{Destination, Message, Peer};
use crate::publication;
use crate::question::{self, Sent};
use crate::serving::Serving;
use node::{Config, Node};
use schema::Agreement;
use std::net::{Ipv4Addr, SocketAddr};
use store::Kind;
use trust::SigningKey;

/// Start a node with a bundled market, ask it three questions and watch a price change
///
/// The node listens on a free port of this machine and stays until Ctrl-C, so that you can go on asking. Questions are
/// signed with a key made for the occasion; answers are verified and held against their questions; one decision is
/// explained. Everything is gone when it ends.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto demo\n  rialto demo --once")]
pub(crate) struct Demo {
    /// End after the questions
    #[arg(long)]
    once: bool,
}

/// A question of the demo.
struct Asked {
    words: &'static str,
    name: &'static str,
    intent: &'static str,
}

const MARKET: &str = concat!(
    include_str!("../../../../examples/market/manifests.ndjson"),
    include_str!("../../../../examples/market/offers.ndjson"),
    include_str!("../../../../examples/market/knowledge.ndjson"),
);

const QUESTIONS: [Asked; 3] = [
    Asked {
        words: "Who translates into Polish, certified, for at most 30 EUR a page, and does not train on our papers?",
        name: "affordable-certified-translation",
        intent: include_str!("../../../../examples/intents/affordable-certified-translation.json"),
    },
    Asked {
        words: "Who brings a parcel before Friday 18:00, and how would 90 EUR be shared by the best three?",
        name: "courier-before-friday-evening",
        intent: include_str!("../../../../examples/intents/courier-before-friday-evening.json"),
    },
    Asked {
        words: "What came out this year about sodium-ion and solid-state cells, in at most 60 pages?",
        name: "battery-reading-list",
        intent: include_str!("../../../../examples/intents/battery-reading-list.json"),
    },
];

/// The candidate of the first question whose decision is explained.
const EXPLAINED: &str = "did:web:quayside-translation-bureau.example";

/// The question that stays open.
const STANDING: &str = include_str!("../../../../examples/intents/watch-translation-prices.json");

/// What the newcomer asks for, and then asks for.
const PRICES: [&str; 2] = ["24.00", "18.50"];

/// Near misses that are shown for each question.
const MISSES: usize = 2;

impl Demo {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let folder = tempfile::Builder::new().prefix("rialto-demo-").tempdir();
        let folder = folder.map_err(|error| Failure::files(format!("there is no place for a node's data: {error}")))?;
        let watch = Stopwatch::start();
        let node = stocked(folder.path())?;
        let serving = Serving::start(node, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, None)?;
        output::print(&introduction(&serving, &watch)?)?;
        let peer = Peer::new(&Destination { to: serving.url().to_owned(), did_document: None })?;
        let asker = keys::fleeting()?;
        handshake::in_agreement(&peer, Kept::Nowhere, clock::now(), |agreed| {
            let asker = Asker { key: &asker, peer: &peer, agreed };
            for (number, asked) in (1..).zip(&QUESTIONS) {
                output::print(&headline(&format!("{number}. {}", asked.words)))?;
                output::print(&asked.answered(&asker)?)?;
            }
            let [first, ..] = &QUESTIONS;
            output::print(&headline("Why is the third answer to the first question flagged?"))?;
            output::print(&first.explained(&asker)?)?;
            output::print(&headline("4. Who changes the price of a translation? Asked once, told as it happens."))?;
            output::print(&watched(&asker)?)
        })?;
        output::print(&next(serving.url()))?;
        if self.once {
            serving.end()?;
        } else {
            output::print(&format!("\n{} Ctrl-C ends it.\n", paint(GOOD, "The node stays up.")))?;
            serving.until_told()?;
        }
        Ok(Exit::Fine)
    }
}

/// Whoever asks the questions of the demo, and in which version.
struct Asker<'a> {
    key: &'a SigningKey,
    peer: &'a Peer,
    agreed: Option<&'a Agreement>,
}

impl Asker<'_> {
    fn signed(&self, text: &Text) -> Result<Sent, Failure> {
        question::to_send(text, || Ok(self.key), clock::now(), self.agreed)
    }
}

/// A node with the bundled market in it.
fn stocked(data: &std::path::Path) -> Result<Node, Failure> {
    let broken = |error: node::Error| Failure::files(format!("the bundled market: {error}"));
    let config = Config { data: data.to_owned(), ..Config::default() };
    let node = Node::open(&config, &mut |_, _| {}).map_err(broken)?;
    node.import(MARKET.as_bytes(), None, &mut |_| {}).map_err(broken)?;
    Ok(node)
}

fn introduction(serving: &Serving, watch: &Stopwatch) -> Result<String, Failure> {
    let counts = serving.node().counts().map_err(|error| Failure::files(error.to_string()))?;
    let number = |wanted: &str| counts.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, count)| *count);
    let market = format!(
        "{} manifests, {} offers, {} knowledge nodes and the evidence about them, stored and indexed in {watch}",
        number("manifests"),
        number("offers"),
        number("knowledge"),
    );
    Ok(format!(
        "{} {}\n{}\n{}\n",
        paint(STRONG, "A node with a small invented market, at"),
        paint(GOOD, serving.url()),
        paint(DIM, format!("as {}", serving.node().identity().did())),
        paint(DIM, market),
    ))
}

impl Asked {
    fn text(&self) -> Text {
        Text::carried(&format!("examples/intents/{}.json", self.name), self.intent)
    }

    fn answered(&self, asker: &Asker<'_>) -> Result<String, Failure> {
        let sent = asker.signed(&self.text())?;
        let watch = Stopwatch::start();
        let answered = asking::ask(asker.peer, &self.text(), &sent, true)?;
        let asked = format!(
            "{} intent, signed by {}, answered in {watch}",
            sent.intent.category.name(),
            cut(&sent.intent.issuer_did)
        );
        check(&answered)?;
        let layout = Layout { width: output::width(), rejected_max: MISSES, hint: "" };
        let table = resolution::show(&sent.intent, &answered.page, &layout);
        Ok(format!("{}\n{table}{}", paint(DIM, asked), ask::proof(&answered, asker.peer)))
    }

    fn explained(&self, asker: &Asker<'_>) -> Result<String, Failure> {
        let sent = asker.signed(&self.text())?;
        let said = asking::ask_why(asker.peer, &self.text(), &sent, Some(EXPLAINED))?;
        let record = said.document.root().get("output").and_then(|output| output.get("decision_record"));
        let record = record.ok_or_else(|| Failure::refused(format!("the market has no `{EXPLAINED}`")))?;
        Ok(decision::show_record(&sent.intent, EXPLAINED, record))
    }
}

/// A question that stays open, and a newcomer who lowers its price.
fn watched(asker: &Asker<'_>) -> Result<String, Failure> {
    let peer = asker.peer;
    let text = Text::carried("examples/intents/watch-translation-prices.json", STANDING);
    let sent = asker.signed(&text)?;
    let mut note = watch::subscribe(peer, &text, &sent, false, None, String::new())?;
    let newcomer = keys::fleeting()?;
    let mut lines = paint(DIM, format!("a standing intent; {} promises to tell what changes", peer.address())) + "\n";
    lines.push_str(&watch::heading());
    for price in PRICES {
        let watch = Stopwatch::start();
        let manifest = json::canonical_value(&newcomers_manifest(&newcomer, price));
        let about = Text { name: "a newcomer's manifest".to_owned(), bytes: manifest };
        let published = publication::of_record(&about, Some(Kind::Manifest), &[], &newcomer, clock::now())?;
        peer.ask(Message::Publish { bytes: published.bytes }, &about)?;
        let watch::Looked::Page(said) = watch::look(peer, &note)? else {
            return Err(Failure::refused("the node forgot what it promised"));
        };
        for event in said.document.root().get("events").into_iter().flat_map(json::Node::elements) {
            note.cursor = watch::check(peer, &said, event, note.cursor)?;
            lines.push_str(&watch::row(event));
        }
        lines.push_str(&paint(DIM, format!("{:>6}  published, indexed, matched, signed and here after {watch}\n", "")));
    }
    Ok(lines)
}

fn newcomers_manifest(newcomer: &SigningKey, price: &str) -> json::Value {
    let did = newcomer.did_key();
    json::json!({
        "oap_version": "1.0",
        "tool": {"did": did.as_str(), "name": "Footbridge Translations", "categories": ["translation"]},
        "pricing": {"models": [{"type": "per_call", "amount": price, "currency": "EUR"}]},
    })
}

fn check(answered: &Answered) -> Result<(), Failure> {
    match answered.pages.iter().find_map(|(_, audit)| audit.violations.first()) {
        None => Ok(()),
        Some(violation) => Err(Failure::refused(format!("the node's answer breaks a rule: {}", violation.detail))),
    }
}

fn headline(words: &str) -> String {
    let lines: String = wrap(words, output::width()).iter().map(|line| format!("{}\n", paint(STRONG, line))).collect();
    format!("\n{lines}\n")
}

/// A DID that nobody will see again needs no more than its beginning.
fn cut(did: &str) -> String {
    format!("{}…", did.get(..20).unwrap_or(did))
}

fn next(url: &str) -> String {
    let commands = [
        (
            "a question that nobody can answer, and what it runs into",
            format!("rialto ask examples/intents/broken/range-that-cannot-hold.json --to {url}"),
        ),
        (
            "why somebody was turned away",
            format!(
                "rialto explain examples/intents/legal-research-inside-the-eu.json \\\n      did:web:precedent-harbour.example --to {url}"
            ),
        ),
        (
            "what changes, as it changes; the same command later goes on where this one stopped",
            format!("rialto watch examples/intents/watch-translation-prices.json --to {url}"),
        ),
        (
            "the same by hand",
            format!(
                "rialto keys new && rialto sign examples/intents/quick-weather-for-europe.json -o question.json\n    curl --json @question.json {url}/oap/intent > answer.json\n    rialto verify answer.json --intent question.json"
            ),
        ),
        (
            "who the node is, what it can do, how it fares",
            format!("curl {url}/.well-known/oap-tool.json {url}/metrics"),
        ),
        ("the interface, for a browser", format!("{url}/docs")),
    ];
    let lines: String =
        commands.iter().map(|(what, command)| format!("  {}\n    {command}\n", paint(DIM, what))).collect();
    format!("\n{}\n{lines}", paint(STRONG, "Now you"))
}
