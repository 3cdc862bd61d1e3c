//! `rialto explain`: the whole decision about one candidate, or what a question runs into (RFC 0020 §3.7).

use super::OverBudgetChoice;
use crate::explanation::Explanation;
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::handshake::{self, Kept};
use crate::keys::{KeyChoice, Signer};
use crate::nearest::nearest;
use crate::output::text::json_line;
use crate::output::{self, decision, question as whole};
use crate::peer::{Destination, Peer};
use crate::{asking, candidates, clock, question};
use aql::Candidate;
use json::Node;
use std::path::{Path, PathBuf};

/// Names that are suggested for an unknown id.
const SUGGESTIONS: usize = 3;

/// Explain why one candidate is in the answer or not, or what a question runs into
///
/// Asks a node, or a file of candidates. About a candidate: every condition with what was found, and how the score
/// comes about; from a file also the cost against the budget, each quality signal against its floor, and what the
/// projection asks for. Without a candidate the node tells how many satisfy each condition, what almost fits, and
/// which small change would let more through.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto explain examples/intents/quick-weather-for-europe.json
  rialto explain examples/intents/quick-weather-for-europe.json did:web:fjordcast.example --to https://node.example
  rialto explain --intent examples/intents/quick-weather-for-europe.json \\
    --candidates examples/market/manifests.ndjson did:web:fjordcast.example")]
pub(crate) struct Explain {
    /// The intent, unless --intent names it; then the id of a candidate, as `rialto ask` prints it
    #[arg(value_name = "INTENT] [ID", num_args = 0..=2)]
    words: Vec<String>,

    /// The intent: signed, or a draft that is completed and signed by the local key; `-` for standard input
    #[arg(long, value_name = "FILE")]
    intent: Option<PathBuf>,

    /// Explain from this file instead of asking a node: one candidate on each line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    candidates: Option<PathBuf>,

    /// With --candidates: where candidates go that cost more than the budget
    #[arg(long, value_enum, default_value = "flag", requires = "candidates")]
    over_budget: OverBudgetChoice,

    #[command(flatten)]
    destination: Destination,

    #[command(flatten)]
    key: KeyChoice,

    /// Print JSON; of a node its signed explanation
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (intent, id) = self.asked()?;
        match &self.candidates {
            Some(candidates) => {
                let id = id.ok_or_else(|| {
                    Failure::usage("no candidate is named").help("give its id; only a node explains a whole question")
                })?;
                self.read_file(&intent, candidates, &id)
            }
            None => self.ask_node(&intent, id.as_deref()),
        }
    }

    /// The intent and the candidate that the words name.
    fn asked(&self) -> Result<(PathBuf, Option<String>), Failure> {
        let mut words = self.words.iter().cloned();
        let intent = self.intent.clone().or_else(|| words.next().map(PathBuf::from));
        let intent = intent.ok_or_else(|| {
            Failure::usage("no intent is named").help("rialto explain INTENT.json [ID], or --intent INTENT.json ID")
        })?;
        let id = words.next();
        match words.next() {
            None => Ok((intent, id)),
            Some(_) => Err(Failure::usage("there is an id too many").help("one candidate is explained at a time")),
        }
    }

    fn ask_node(&self, intent: &Path, id: Option<&str>) -> Result<Exit, Failure> {
        let peer = Peer::new(&self.destination)?;
        let text = Text::read(intent)?;
        let signer = Signer::new(&self.key);
        // What can be seen to be wrong is said before anybody is asked.
        question::to_send(&text, || signer.key(), clock::now(), None)?;
        let (sent, said) = handshake::in_agreement(&peer, Kept::InFile, clock::now(), |agreed| {
            let sent = question::to_send(&text, || signer.key(), clock::now(), agreed)?;
            let said = asking::ask_why(&peer, &text, &sent, id)?;
            Ok((sent, said))
        })?;
        let output = said.document.root().get("output").ok_or_else(|| {
            Failure::refused(format!("{} explains nothing", peer.address())).help("it may be a node of another kind")
        })?;
        let held = output.get("held").and_then(Node::as_bool) != Some(false);
        if self.json {
            output::print(&json_line(&said.text.bytes))?;
        } else {
            match (id, output.get("decision_record")) {
                (Some(id), Some(record)) => output::print(&decision::show_record(&sent.intent, id, record))?,
                (Some(id), None) => {
                    let category = sent.intent.category.name();
                    return Err(Failure::refused(format!(
                        "{} holds no candidate `{id}` for {category}",
                        peer.address()
                    ))
                    .help("`rialto ask` prints the ids; the node signed that it does not hold this one (--json)"));
                }
                (None, _) => output::print(&whole::show(&sent.intent, output, output::width()))?,
            }
        }
        Ok(if held { Exit::Fine } else { Exit::No })
    }

    fn read_file(&self, intent: &Path, candidates: &Path, id: &str) -> Result<Exit, Failure> {
        files::check_streams(intent, candidates)?;
        let now = clock::now();
        let signer = Signer::new(&self.key);
        let text = Text::read(intent)?;
        let question = question::read(&text, self.destination.did_document.as_deref(), || signer.key(), now)?;
        // Why something was rejected yesterday is still a good question today.
        if question.closed.is_some() {
            output::warn("the intent's window is not open; this is how it would be judged");
        }
        let intent = question.intent.value();
        let candidates = candidates::read(candidates)?.list;
        let candidate = find(&candidates, id)?;
        let explanation = Explanation::of(intent, &candidates, candidate, self.over_budget.into(), now)?;
        output::print(&if self.json {
            json_line(&json::canonical_value(&explanation.to_value()))
        } else {
            decision::show(&explanation)
        })?;
        Ok(Exit::Fine)
    }
}

/// The candidate of that name; when several have it, the first.
fn find<'a>(candidates: &'a [Candidate], id: &str) -> Result<&'a Candidate, Failure> {
    let mut named = candidates.iter().filter(|candidate| candidate.id == id);
    if let Some(candidate) = named.next() {
        match named.count() {
            0 => {}
            more => output::note(&format!("{more} more lines have this id; this is the first one")),
        }
        return Ok(candidate);
    }
    let likely = nearest(id, candidates.iter().map(|candidate| candidate.id.as_str()), SUGGESTIONS);
    let help = match likely.as_slice() {
        [] => "`rialto resolve` prints the ids".to_owned(),
        likely => format!("did you mean {}?", likely.join(" or ")),
    };
    Err(Failure::refused(format!("there is no candidate `{id}` among {}", candidates.len())).help(help))
}
