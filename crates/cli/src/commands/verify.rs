//! `rialto verify`: who signed a document (RFC 0020 A.3 R1), and whether an answer keeps to its question.

mod answer;

use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::keys::KeyChoice;
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, WARN, paint};
use crate::question::{SIGNER_MEMBERS, keys_of, verify_kept};
use crate::{clock, draft};
use anstyle::Style;
use aql::{Code, Instant, Intent, Limits};
use json::{Document, Value, json};
use std::path::PathBuf;
use trust::{Did, Digest, Signed};

/// Verify the signature of an intent, a response or another signed object
///
/// The signer stands in the document: `issuer_did` of an intent, `resolver_did` of a response. A did:key is verified
/// offline; for did:web and did:wba bring the signer's DID document.
///
/// With --intent an answer is held against the question that it answers, offline: its shape, its order, the fields it
/// shows, its scores, and every leaf that the shown fields settle.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto verify question.json
  rialto verify answer.json --json
  rialto verify answer.json --intent question.json --record evidence.json

With --intent it exits with 1 when the answer breaks a rule.")]
pub(crate) struct Verify {
    /// The signed document; `-` for standard input
    file: PathBuf,

    /// The intent that the document answers: hold the answer against it
    #[arg(long, value_name = "FILE")]
    intent: Option<PathBuf>,

    /// With --intent: how many candidates stand on the pages before this one
    #[arg(long, value_name = "N", default_value_t = 0, requires = "intent")]
    earlier: usize,

    /// With --intent: write down what was found, signed by the local key
    #[arg(long, value_name = "FILE", requires = "intent")]
    record: Option<PathBuf>,

    /// The DID document of a signer whose DID is no did:key; may be given twice with --intent
    #[arg(long, value_name = "FILE")]
    did_document: Vec<PathBuf>,

    /// Who should have signed, for a document that does not say
    #[arg(long, value_name = "DID", conflicts_with = "intent")]
    signer: Option<String>,

    #[command(flatten)]
    key: KeyChoice,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is known about a verified document.
struct Proof {
    kind: &'static str,
    signer: Did,
    kid: Option<String>,
    algorithm: &'static str,
    digest: Digest,
    window: Option<Window>,
    /// Of an event: the tree in which its manifest is.
    included: Option<String>,
}

/// How the window of an intent stands, and in words.
struct Window {
    state: State,
    words: String,
}

#[derive(Clone, Copy)]
enum State {
    Open,
    Closed,
    NotYetOpen,
    /// It is no intent that a resolver reads.
    Refused,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::NotYetOpen => "not_yet_open",
            Self::Refused => "refused",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Open => GOOD,
            Self::Closed | Self::NotYetOpen => WARN,
            Self::Refused => BAD,
        }
    }
}

impl Verify {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let verified = match &self.intent {
            Some(intent) => answer::verify(&self, intent),
            None => self.signature(),
        };
        match verified {
            Ok(exit) => Ok(exit),
            Err(failure) => match failure.to_value().filter(|_| self.json) {
                Some(error) => {
                    let value = json!({"error": error, "verified": false});
                    output::print(&json_line(&json::canonical_value(&value)))?;
                    Ok(Exit::No)
                }
                None => Err(failure),
            },
        }
    }

    fn signature(&self) -> Result<Exit, Failure> {
        let text = Text::read(&self.file)?;
        let document = text.document(&json::Limits::OURS)?;
        let signed = Signed::read(&document).map_err(|error| text.unproved(&error))?;
        let signer = self.signer(&text, &document, &signed)?;
        let proof = Proof::of(&text, &document, signer, &self.did_document)?;
        output::print(&if self.json {
            json_line(&json::canonical_value(&proof.to_value()))
        } else {
            proof.described(&text.name)
        })?;
        Ok(Exit::Fine)
    }

    /// Who should have signed: as asked, else as the document says.
    fn signer(&self, text: &Text, document: &Document, signed: &Signed<'_>) -> Result<Did, Failure> {
        if let Some(signer) = &self.signer {
            return Did::parse(signer).map_err(|error| Failure::usage(format!("--signer: {error}")));
        }
        // What a subscriber is told names its publisher.
        let mut members = SIGNER_MEMBERS.into_iter().chain(["publisher_did"]);
        let member = members.find(|member| document.root().get(member).is_some());
        let member = member.ok_or_else(|| {
            Failure::refused(format!("{} does not say who signed it", text.name))
                .help("name the signer with --signer DID")
        })?;
        signed.issuer(member).map_err(|error| text.unproved(&error))
    }
}

/// In which tree the manifest of an event is proved to be.
fn included(text: &Text, event: json::Node<'_>) -> Result<String, Failure> {
    let refused = |error| Failure::refused(format!("{}: {error}", text.name));
    node::check_inclusion(event).map_err(refused)?;
    let proof = |name: &str| event.get("inclusion_proof").and_then(|proof| proof.get(name));
    let root = proof("root").and_then(json::Node::as_str).unwrap_or_default();
    let number = |name: &str| proof(name).and_then(json::Node::as_u64).unwrap_or_default();
    Ok(format!("leaf {} of {} under {root}", number("leaf_index") + 1, number("tree_size")))
}

/// Whether an intent may be answered now; a signature does not make it a good question.
fn window(text: &Text, now: Instant) -> Window {
    let intent = match Intent::parse(&text.bytes, &Limits::STANDARD) {
        Ok((intent, _)) => intent,
        Err(refusal) => {
            let words = format!("no resolver will read it: {} at `{}`", refusal.code.name(), refusal.at);
            return Window { state: State::Refused, words };
        }
    };
    let validity = intent.validity;
    match intent.check_window(now, &Limits::STANDARD) {
        Ok(()) => {
            let left = clock::span(validity.to().seconds() - now.seconds());
            Window { state: State::Open, words: format!("open until {}, for another {left}", validity.to()) }
        }
        Err(refusal) => {
            let state = if refusal.code == Code::IntentExpired {
                State::Closed
            } else if refusal.code == Code::IntentNotYetValid {
                State::NotYetOpen
            } else {
                State::Refused
            };
            Window { state, words: refusal.detail }
        }
    }
}

impl Proof {
    /// Checks the signature of a document against the keys of its signer.
    fn of(text: &Text, document: &Document, signer: Did, did_documents: &[PathBuf]) -> Result<Self, Failure> {
        let signed = Signed::read(document).map_err(|error| text.unproved(&error))?;
        let (algorithm, kid) = (signed.alg().name(), signed.kid().map(str::to_owned));
        let keys = keys_of(&signer, did_documents)?;
        verify_kept(document, &keys).map_err(|error| text.unproved(&error))?;
        let is_intent = draft::is_intent(document.root());
        let digest = Digest::of(&json::canonical_without(document.root(), "signature"));
        let window = is_intent.then(|| window(text, clock::now()));
        let is_response = document.root().get("candidates").is_some();
        let root = document.root();
        let is_event = root.get("type").and_then(json::Node::as_str) == Some("oap.manifest.event");
        let kind = if is_intent {
            "intent"
        } else if is_response {
            "response"
        } else if is_event {
            "event"
        } else {
            "object"
        };
        let included = is_event.then(|| included(text, root)).transpose()?;
        Ok(Self { kind, signer, kid, algorithm, digest, window, included })
    }

    fn described(&self, name: &str) -> String {
        let mut text = format!("{} {}\n", paint(GOOD, "verified"), shown(name));
        let mut row = |name: &str, value: &str| {
            text.push_str(&format!("  {} {value}\n", paint(DIM, format!("{name:<9}"))));
        };
        row("kind", self.kind);
        row("signed by", self.signer.as_str());
        if let Some(kid) = &self.kid {
            row("kid", &shown(kid));
        }
        row("with", self.algorithm);
        row("digest", &format!("{} {}", self.digest, paint(DIM, "of the signed bytes")));
        if let Some(window) = &self.window {
            row("window", &paint(window.state.style(), shown(&window.words)));
        }
        if let Some(included) = &self.included {
            row("included", &shown(included));
        }
        text
    }

    fn to_value(&self) -> Value {
        let window = self.window.as_ref().map(|window| json!({"detail": window.words, "state": window.state.name()}));
        json!({
            "alg": self.algorithm,
            "digest": self.digest.to_string(),
            "kid": self.kid,
            "kind": self.kind,
            "signer": self.signer.as_str(),
            "verified": true,
            "window": window,
            "included": self.included,
        })
    }
}
