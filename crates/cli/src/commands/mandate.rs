//! `rialto mandate` and `rialto confirm`: what a principal says about payments (RFC 0020 B.1).

use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::keys::KeyChoice;
use crate::ledger::refused;
use crate::output::text::{json_line, json_lines, shown};
use crate::output::{self, GOOD, paint};
use crate::purse::{Purse, Said};
use crate::{chance, clock};
use json::{Document, Node, Value, json};
use payment::{Keyring, Mandate};
use std::path::PathBuf;
use trust::Did;

/// Sign a mandate: what an agent may pay, at which wallet
///
/// Fills in a name, the version and you as its principal, checks the rest, and signs.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  rialto mandate draft.json --agent did:key:z6Mk… --wallet did:key:z6Mk… -o mandate.json"
)]
pub(crate) struct Sign {
    /// The mandate or a draft of it; `-` for standard input
    file: PathBuf,

    /// The agent that may pay, where the draft names none
    #[arg(long, value_name = "DID")]
    agent: Option<String>,

    /// The wallet that holds the money, where the draft names none
    #[arg(long, value_name = "DID")]
    wallet: Option<String>,

    /// Where the signed mandate goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    key: KeyChoice,
}

impl Sign {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let text = Text::read(&self.file)?;
        let mut body = text.document(&json::Limits::INTENT)?.root().to_value();
        let key = self.key.stored()?;
        let Value::Object(members) = &mut body else {
            return Err(Failure::refused(format!("{} is no object", text.name)));
        };
        members.remove("signatures");
        let mut fill = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                members.entry(name).or_insert_with(|| json!(value));
            }
        };
        fill("mandate_id", Some(format!("urn:oap:mandate:{}", chance::uuid()?)));
        fill("version", Some("1.0".to_owned()));
        fill("principal_did", Some(key.did_key().as_str().to_owned()));
        fill("agent_did", self.agent);
        fill("wallet_did", self.wallet);
        payment::sign_listed(&mut body, &key);
        let document = Document::of(&body).map_err(|error| text.unreadable(error))?;
        Mandate::verified(&document, &Keyring::default()).map_err(|refusal| refused(&text.name, &refusal))?;
        files::write(self.output.as_deref(), &json_lines(&format!("{body:#}")))?;
        Ok(Exit::Fine)
    }
}

/// Confirm or refuse a payment that waits for its principal
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  rialto confirm urn:oap:session:… --to http://127.0.0.1:7430 --wallet did:key:z6Mk…"
)]
pub(crate) struct Confirm {
    /// The session
    #[arg(value_name = "SESSION_ID")]
    session_id: String,

    /// The address of the wallet: https, or http on this machine
    #[arg(long, value_name = "URL", env = "RIALTO_WALLET")]
    to: String,

    /// Whose word is expected there
    #[arg(long, value_name = "DID")]
    wallet: String,

    /// Refuse the payment
    #[arg(long)]
    reject: bool,

    #[command(flatten)]
    key: KeyChoice,

    /// Print the session as JSON
    #[arg(long)]
    json: bool,
}

impl Confirm {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let wallet = Did::parse(&self.wallet).map_err(|error| Failure::usage(format!("--wallet: {error}")))?;
        let key = self.key.stored()?;
        let purse = Purse::new(&self.to, &wallet)?;
        let keys = purse.with_keys(Keyring::default())?;
        let mut body = payment::approval(&self.session_id, &key.did_key(), !self.reject, clock::now());
        trust::sign(&mut body, &key).map_err(|error| Failure::refused(error.to_string()))?;
        let path = ["oap", "payment", "sessions", &self.session_id, "confirm"];
        match purse.post(&path, &json::canonical_value(&body), &keys)? {
            Said::No(no) => Err(no.failure(purse.address())),
            Said::Document(document) => {
                let session = payment::Session::verified(&document, &keys);
                session.map_err(|refusal| refused(purse.address(), &refusal))?;
                if self.json {
                    output::print(&json_line(&json::canonical(document.root())))?;
                } else {
                    let status = document.root().get("status").and_then(Node::as_str).unwrap_or_default();
                    output::print(&format!("{} {}\n", paint(GOOD, "the session is"), shown(status)))?;
                }
                Ok(Exit::Fine)
            }
        }
    }
}
