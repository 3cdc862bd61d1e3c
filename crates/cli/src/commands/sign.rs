//! `rialto sign`: a signature over a whole JSON object (RFC 0020 §3.1 `signature`).

use crate::draft::{self, Missing};
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::keys::KeyChoice;
use crate::output::text::{json_line, json_lines};
use crate::question::{SIGNER_MEMBERS, own_issuer};
use crate::{chance, clock, output};
use aql::{Intent, Limits};
use json::{Document, Value};
use std::path::PathBuf;
use trust::SigningKey;

/// Sign an intent, or any JSON object
///
/// An intent is checked first, and what a draft lacks is filled in: an id, you as its issuer, and a window of one
/// hour from now. Any other object is signed when its `issuer_did` is you, or with --as-is.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto sign examples/intents/battery-reading-list.json -o question.json")]
pub(crate) struct Sign {
    /// The JSON object; `-` for standard input
    file: PathBuf,

    /// Where the signed object goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Sign the object as it stands: fill nothing in, check nothing but who signs
    #[arg(long)]
    as_is: bool,

    /// Print the canonical form on one line instead of indented JSON
    #[arg(long)]
    compact: bool,

    #[command(flatten)]
    key: KeyChoice,
}

impl Sign {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let text = Text::read(&self.file)?;
        let document = text.document(&json::Limits::OURS)?;
        let key = self.key.stored()?;
        own_issuer(&text, document.root(), &key)?;
        let mut value = if !self.as_is && draft::is_intent(document.root()) {
            intent(&text, &document, &key)?
        } else {
            self.object(&text, &document)?
        };
        if document.root().get("signature").is_some() {
            output::note("the signature that was there is replaced");
        }
        trust::sign(&mut value, &key).map_err(|error| Failure::refused(format!("{}: {error}", text.name)))?;
        let signed =
            if self.compact { json_line(&json::canonical_value(&value)) } else { json_lines(&format!("{value:#}")) };
        files::write(self.output.as_deref(), &signed)?;
        Ok(Exit::Fine)
    }

    /// An object of another kind must name us, unless it is to be signed as it stands.
    fn object(&self, text: &Text, document: &Document) -> Result<Value, Failure> {
        let root = document.root();
        if !self.as_is && root.is_object() && !SIGNER_MEMBERS.iter().any(|member| root.get(member).is_some()) {
            return Err(Failure::refused(format!("{} is no intent and names no issuer", text.name))
                .help("add your DID as `issuer_did`, or sign it as it stands with --as-is"));
        }
        Ok(root.to_value())
    }
}

/// A complete intent that a resolver will accept.
fn intent(text: &Text, document: &Document, key: &SigningKey) -> Result<Value, Failure> {
    let now = clock::now();
    let missing = Missing { intent_id: draft::intent_id(&chance::uuid()?), issuer: key.did_key(), now };
    let completed = draft::complete(document.root(), missing);
    for filled in &completed.filled {
        output::note(&format!("filled in {filled}"));
    }
    let read = Intent::parse(completed.intent.to_string().as_bytes(), &Limits::STANDARD);
    let (intent, _) = read.map_err(|refusal| text.refused(&refusal))?;
    if let Err(refusal) = intent.check_window(now, &Limits::STANDARD) {
        output::warn(&format!("resolvers will refuse it: {}: {}", refusal.code.name(), refusal.detail));
    }
    Ok(completed.intent)
}
