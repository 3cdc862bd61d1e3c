//! RFC 0020 §3.6: standing intents as the asker remembers them: where each is kept, and how far it was read.
//!
//! One small file for each in the folder `subscriptions`; whoever watches the same question at the same node again goes
//! on where it stopped.

use crate::environment;
use crate::failure::Failure;
use crate::files::Text;
use aql::Instant;
use json::{Document, Limits, Node, Value, json};
use std::fs;
use std::path::PathBuf;
use trust::{Digest, SigningKey};

/// Where they are remembered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Shelf {
    /// The folder of the subscriptions [default: subscriptions in $RIALTO_HOME or the user's data directory]
    #[arg(long, value_name = "DIR")]
    subscriptions: Option<PathBuf>,
}

/// A standing intent that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Which question at which node: the name of the file.
    pub(crate) key: String,
    pub(crate) subscription_id: String,
    pub(crate) node: String,
    /// The file that the question came from.
    pub(crate) question: String,
    pub(crate) valid_until: String,
    /// The last event that was shown.
    pub(crate) cursor: u64,
}

impl Shelf {
    fn folder(&self) -> Result<PathBuf, Failure> {
        let usual = || environment::data_directory().map(|folder| folder.join("subscriptions"));
        self.subscriptions.clone().or_else(usual).ok_or_else(|| {
            Failure::files("there is no place to remember subscriptions: no home directory is known")
                .help("name a folder with --subscriptions, or set RIALTO_HOME")
        })
    }

    /// What a question at a node is remembered under.
    pub(crate) fn key(text: &Text, node: &str) -> String {
        let digest = Digest::of(&[node.as_bytes(), b"\n", &text.bytes].concat()).to_string();
        digest.trim_start_matches("sha256:").chars().take(16).collect()
    }

    /// All that are remembered, by name.
    pub(crate) fn all(&self) -> Result<Vec<Note>, Failure> {
        let folder = self.folder()?;
        let Ok(files) = fs::read_dir(&folder) else { return Ok(Vec::new()) };
        let mut notes: Vec<Note> = files.flatten().filter_map(|file| read(&file.path())).collect();
        notes.sort_by(|left, right| (&left.node, &left.subscription_id).cmp(&(&right.node, &right.subscription_id)));
        Ok(notes)
    }

    /// The one that a question is remembered under.
    pub(crate) fn known(&self, key: &str) -> Result<Option<Note>, Failure> {
        Ok(read(&self.folder()?.join(format!("{key}.json"))))
    }

    /// The one that somebody names: by its subscription id, or by the beginning of what comes after the last colon.
    pub(crate) fn find(&self, name: &str) -> Result<Note, Failure> {
        let last = |id: &str| id.rsplit(':').next().unwrap_or_default().to_owned();
        let mut fitting = self
            .all()?
            .into_iter()
            .filter(|note| note.subscription_id == name || last(&note.subscription_id).starts_with(name));
        match (fitting.next(), fitting.next()) {
            (Some(note), None) => Ok(note),
            (Some(_), Some(_)) => Err(Failure::usage(format!("several subscriptions begin with `{name}`"))),
            (None, _) => Err(Failure::usage(format!("no subscription `{name}` is remembered here"))
                .help("`rialto subscriptions list` shows those that are; `rialto watch` begins one")),
        }
    }

    /// Remembers one, whole or not at all.
    pub(crate) fn keep(&self, note: &Note) -> Result<(), Failure> {
        let folder = self.folder()?;
        let path = folder.join(format!("{}.json", note.key));
        let failed = |error: std::io::Error| Failure::io("write", &path, &error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let value = json!({
            "subscription_id": note.subscription_id,
            "node": note.node,
            "question": note.question,
            "valid_until": note.valid_until,
            "cursor": note.cursor,
        });
        let new = path.with_extension("new");
        fs::write(&new, format!("{value:#}\n")).and_then(|()| fs::rename(&new, &path)).map_err(failed)
    }

    /// Forgets one.
    pub(crate) fn forget(&self, note: &Note) -> Result<(), Failure> {
        let path = self.folder()?.join(format!("{}.json", note.key));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", &path, &error)),
            _ => Ok(()),
        }
    }
}

fn read(path: &std::path::Path) -> Option<Note> {
    let key = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
    let document = Document::parse(&fs::read(path).ok()?, &Limits::INTENT).ok()?;
    let text = |name: &str| document.root().get(name).and_then(Node::as_str).map(str::to_owned);
    Some(Note {
        key,
        subscription_id: text("subscription_id")?,
        node: text("node")?,
        question: text("question")?,
        valid_until: text("valid_until")?,
        cursor: document.root().get("cursor")?.as_u64()?,
    })
}

/// A signed request about a subscription.
pub(crate) fn control(
    id: &str,
    request: &str,
    more: Option<(&str, Value)>,
    key: &SigningKey,
    now: Instant,
) -> Result<Vec<u8>, Failure> {
    let mut message: Value = json!({
        "control_id": format!("urn:rialto:control:{}", crate::chance::uuid()?),
        "subscription_id": id,
        "request": request,
        "issuer_did": key.did_key().as_str(),
        "issued_at": now.to_string(),
    });
    if let (Some((name, value)), Some(members)) = (more, message.as_object_mut()) {
        members.insert(name.to_owned(), value);
    }
    trust::sign(&mut message, key).map_err(|error| Failure::refused(format!("{id}: {error}")))?;
    Ok(json::canonical_value(&message))
}
