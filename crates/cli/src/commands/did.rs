//! `rialto did`: names of agents on the web (did:wba of ANP-03), their documents, and what those are worth.

use crate::clock::{self, Stopwatch};
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::keys::{self, KeyChoice};
use crate::output::text::{json_line, json_lines, shown};
use crate::output::{self, DIM, paint};
use json::{Document, Limits, Node, Pointer, Value, json};
use node::{DidError, Door, DoorPolicy, Errand};
use std::path::PathBuf;
use std::time::Duration;
use trust::{Algorithm, Binding, DidDocument, ProofForm, PublicKey, SecretKey};

/// Make, judge and look up the names of agents: did:wba
#[derive(clap::Subcommand)]
pub(crate) enum Did {
    New(New),
    Show(Show),
    Resolve(Resolve),
}

/// Make a did:wba and the document to publish for it
///
/// With a path the name ends in the fingerprint of your key (`e1_…`), and the document carries a proof, so that whoever
/// runs the host cannot put another key in. Without a path, or with --plain, the host alone answers for the key.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto did new agents.example/user/alice -o did.json
  rialto did new node.example:8443
  rialto did new agents.example/user/bob --secp256k1 bob.json")]
pub(crate) struct New {
    /// Where the document will lie: a host, maybe a port, maybe a path
    #[arg(value_name = "HOST[:PORT][/PATH]")]
    place: String,

    /// No fingerprint in the name
    #[arg(long)]
    plain: bool,

    /// Use the secp256k1 key in this file, which is made when there is none; the name then ends in `k1_…`
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    secp256k1: Option<PathBuf>,

    /// The address of the agent's description, for the document's list of services
    #[arg(long, value_name = "URL")]
    description: Option<String>,

    /// Write the proof as the W3C text has it; agents' libraries before 1.0 do not read it
    #[arg(long)]
    w3c_proof: bool,

    /// Where the document goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    key: KeyChoice,
}

/// Judge a DID document: its keys, what they may sign, and whether it proves its name
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto did show did.json")]
pub(crate) struct Show {
    /// The document; `-` for standard input
    file: PathBuf,

    /// The DID that it must be about [default: its own `id`]
    #[arg(long, value_name = "DID")]
    did: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Fetch the document of a DID and judge it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto did resolve did:wba:agents.example:user:alice")]
pub(crate) struct Resolve {
    /// A did:wba, a did:web or a did:key
    did: String,

    /// Also ask loopback and private addresses; for test networks
    #[arg(long)]
    private_networks: bool,

    /// Print the document as it came
    #[arg(long)]
    json: bool,
}

impl Did {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::New(new) => new.run(),
            Self::Show(show) => show.run(),
            Self::Resolve(resolve) => resolve.run(),
        }
    }
}

impl New {
    fn run(&self) -> Result<Exit, Failure> {
        let (host, path) = self.place.split_once('/').unwrap_or((&self.place, ""));
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let key = match &self.secp256k1 {
            Some(file) => keys::secp256k1(file)?,
            None => SecretKey::from(self.key.stored()?),
        };
        let named = match segments.is_empty() || self.plain {
            true => trust::wba_name(host, &segments),
            false => trust::bound_name(host, &segments, &key),
        };
        let refuse = |error: trust::DidError| {
            Failure::usage(format!("`{}` is no place of a did:wba: {error}", self.place))
                .help("write a host in lower case, maybe a port, maybe a path: agents.example:8443/user/alice")
        };
        let did = named.map_err(refuse)?;
        let form = if self.w3c_proof { ProofForm::W3c } else { ProofForm::Sdk };
        let created = json::Instant::from_unix(clock::now().seconds(), 0).to_string();
        let document = trust::wba_document(&did, &key, self.description.as_deref(), &created, form).map_err(refuse)?;
        files::write(self.output.as_deref(), &json_lines(&format!("{document:#}")))?;
        output::note(&format!("{did} is yours once the document lies at {}", did.document_url().unwrap_or_default()));
        Ok(Exit::Fine)
    }
}

impl Show {
    fn run(&self) -> Result<Exit, Failure> {
        let text = Text::read(&self.file)?;
        let document = text.document(&Limits::DOCUMENT)?;
        let own = document.root().get("id").and_then(Node::as_str).unwrap_or_default();
        let did = parse(self.did.as_deref().unwrap_or(own))?;
        let judged = DidDocument::read(document.root(), &did).map_err(|error| text.unproved(&error))?;
        output::print(&told(&judged, document.root(), self.json))?;
        Ok(Exit::Fine)
    }
}

impl Resolve {
    fn run(&self) -> Result<Exit, Failure> {
        let did = parse(&self.did)?;
        let (judged, document) = match DidDocument::of_key(&did) {
            Ok(judged) => {
                let document = Document::of(&judged.to_value());
                (judged, document.map_err(|error| Failure::refused(error.to_string()))?)
            }
            Err(_) => self.fetch(&did)?,
        };
        output::print(&match self.json {
            true => json_lines(&format!("{:#}", document.root().to_value())),
            false => told(&judged, document.root(), false),
        })?;
        Ok(Exit::Fine)
    }

    fn fetch(&self, did: &trust::Did) -> Result<(DidDocument, Document), Failure> {
        let refuse =
            |error: DidError| Failure::refused(format!("{did}: {error}")).coded(error.code(), &Pointer::root());
        let url = did.document_url().ok_or_else(|| refuse(DidError::MethodNotSupported))?;
        let policy = DoorPolicy { private_networks: self.private_networks, ..DoorPolicy::default() };
        let door = Door::new(policy).map_err(|error| Failure::files(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("no thread to ask with: {error}")))?;
        let fetched = runtime.block_on(door.fetch(Errand::DidDocument, &url, Stopwatch::start().begun()));
        // A name that the system still looks up would hold us up for nothing.
        runtime.shutdown_timeout(Duration::ZERO);
        let text = Text { name: url, bytes: fetched.map_err(|error| refuse(error.into()))? };
        let document = text.document(&Limits::DOCUMENT)?;
        let judged = DidDocument::read(document.root(), did).map_err(|error| text.unproved(&error))?;
        Ok((judged, document))
    }
}

fn parse(text: &str) -> Result<trust::Did, Failure> {
    trust::Did::parse(text)
        .map_err(|error| Failure::refused(format!("`{}`: {error}", shown(text))).coded(error.code(), &Pointer::root()))
}

/// What a sound document says.
fn told(judged: &DidDocument, root: Node<'_>, as_json: bool) -> String {
    let did = judged.did();
    let bound = match did.binding() {
        None => None,
        Some(Binding::E1(_)) => Some("its Ed25519 key, by the proof"),
        Some(Binding::K1(_)) => Some("its secp256k1 key"),
    };
    let proof = trust::verify_proof(root, judged).ok().map(|proof| match proof.form {
        ProofForm::Sdk => "eddsa-jcs-2022, as agents' libraries write it",
        ProofForm::W3c => "eddsa-jcs-2022, as the W3C text has it",
    });
    let mut keys: Vec<(&str, &PublicKey, Vec<&str>)> = Vec::new();
    let listed = [("authentication", judged.authenticating_keys().collect::<Vec<_>>())]
        .into_iter()
        .chain([("assertionMethod", judged.asserting_keys().collect())]);
    for (purpose, list) in listed {
        for (name, key) in list {
            match keys.iter_mut().find(|(known, ..)| *known == name) {
                Some((.., purposes)) => purposes.push(purpose),
                None => keys.push((name, key, vec![purpose])),
            }
        }
    }
    if as_json {
        let key = |(name, key, purposes): &(&str, &PublicKey, Vec<&str>)| json!({"name": name, "algorithm": key.algorithm().name(), "thumbprint": key.thumbprint(), "purposes": purposes});
        let keys: Vec<Value> = keys.iter().map(key).collect();
        let value = json!({"did": did.as_str(), "url": did.document_url(), "bound": bound.is_some(), "proof": proof.is_some(), "keys": keys});
        return json_line(&json::canonical_value(&value));
    }
    let mut rows = vec![("did", did.to_string())];
    rows.extend(did.document_url().map(|url| ("at", url)));
    rows.push(("bound", bound.map_or("to no key: its host answers for it".to_owned(), |bound| format!("to {bound}"))));
    rows.extend(proof.map(|proof| ("proof", proof.to_owned())));
    for (name, key, purposes) in keys {
        rows.push(("key", format!("{}: {}, {}", shown(name), kind(key), purposes.join(" and "))));
    }
    rows.iter().map(|(name, value)| format!("{} {value}\n", paint(DIM, format!("{name:<5}")))).collect()
}

fn kind(key: &PublicKey) -> &'static str {
    match key.algorithm() {
        Algorithm::EdDsa => "Ed25519",
        Algorithm::Es256 => "P-256",
        Algorithm::Es384 => "P-384",
        Algorithm::Es256k => "secp256k1",
    }
}
