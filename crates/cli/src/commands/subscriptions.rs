//! `rialto subscriptions`: the standing intents that were begun here, and what becomes of them (RFC 0020 §3.6).

use super::watch;
use crate::clock;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::keys::KeyChoice;
use crate::output::table::{Align, Table};
use crate::output::text::json_line;
use crate::output::{self, DIM, count, paint};
use crate::peer::{Destination, Message, Peer, Said};
use crate::standing::{self, Note, Shelf};
use json::{Node, Value, json};
use std::path::PathBuf;

/// List, show, pause, resume, withdraw and replay subscriptions
#[derive(clap::Subcommand)]
pub(crate) enum Subscriptions {
    /// Show every subscription that was begun here, and how each stands
    #[command(after_help = "Example:\n  rialto subscriptions list")]
    List(List),
    /// Show how one stands, as its node says
    #[command(after_help = "Example:\n  rialto subscriptions show 3kQ")]
    Show(One),
    /// Be told nothing until it is resumed; the last state of each record is told then
    #[command(after_help = "Example:\n  rialto subscriptions pause 3kQ --seconds 3600")]
    Pause(Pause),
    /// Be told again
    #[command(after_help = "Example:\n  rialto subscriptions resume 3kQ")]
    Resume(Signed),
    /// End one; the node signs a receipt
    #[command(after_help = "Example:\n  rialto subscriptions withdraw 3kQ")]
    Withdraw(Signed),
    /// Show again what was told, or have it brought to the webhook again
    #[command(after_help = "\
Example:
  rialto subscriptions replay 3kQ --from 17
  rialto subscriptions replay 3kQ --from 17 --webhook")]
    Replay(Replay),
    /// Have what is brought to the webhook signed with a secret, too; the one before counts for another day
    #[command(after_help = "Example:\n  rialto subscriptions secret 3kQ secret.txt")]
    Secret(Secret),
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    shelf: Shelf,
}

/// Which subscription.
#[derive(clap::Args)]
pub(crate) struct One {
    /// Its id, or the beginning of what comes after the last colon
    id: String,

    #[command(flatten)]
    shelf: Shelf,

    /// The DID document of a node whose DID is neither a did:key nor at its address
    #[arg(long, value_name = "FILE")]
    did_document: Option<PathBuf>,

    /// Print the signed documents
    #[arg(long)]
    json: bool,
}

/// Which subscription, and with whose key.
#[derive(clap::Args)]
pub(crate) struct Signed {
    #[command(flatten)]
    one: One,

    #[command(flatten)]
    key: KeyChoice,
}

#[derive(clap::Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    signed: Signed,

    /// Resume by itself after so many seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

#[derive(clap::Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    one: One,

    /// The first event that is wanted
    #[arg(long, value_name = "CURSOR", default_value_t = 1)]
    from: u64,

    /// Do not show it: have the node bring it to the webhook again, and go on from there
    #[arg(long)]
    webhook: bool,

    #[command(flatten)]
    key: KeyChoice,
}

#[derive(clap::Args)]
pub(crate) struct Secret {
    #[command(flatten)]
    signed: Signed,

    /// The file with the secret: `whsec_` and 24 to 64 bytes in base64
    file: PathBuf,
}

impl Subscriptions {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(),
            Self::Show(one) => {
                let (note, peer) = one.reach()?;
                let said = peer.ask(Message::Subscription { id: note.subscription_id.clone() }, &about(&note))?;
                one.show(&said)
            }
            Self::Pause(pause) => {
                let seconds = pause.seconds.map(|seconds| ("seconds", json!(seconds)));
                pause.signed.ask("pause", seconds).map(|_| Exit::Fine)
            }
            Self::Resume(signed) => signed.ask("resume", None).map(|_| Exit::Fine),
            Self::Withdraw(signed) => {
                let note = signed.ask("withdraw", None)?;
                signed.one.shelf.forget(&note)?;
                Ok(Exit::Fine)
            }
            Self::Replay(replay) if replay.webhook => {
                let signed = Signed { one: replay.one, key: replay.key };
                signed.ask("replay", Some(("from", json!(replay.from.max(1))))).map(|_| Exit::Fine)
            }
            Self::Replay(replay) => replay.run(),
            Self::Secret(secret) => {
                let text = Text::read(&secret.file)?;
                let written = String::from_utf8_lossy(&text.bytes).trim().to_owned();
                secret.signed.ask("secret", Some(("secret", json!(written)))).map(|_| Exit::Fine)
            }
        }
    }
}

impl List {
    fn run(self) -> Result<Exit, Failure> {
        let notes = self.shelf.all()?;
        let headings = [
            ("subscription", Align::Left),
            ("state", Align::Left),
            ("read", Align::Right),
            ("told", Align::Right),
            ("question", Align::Left),
        ];
        let mut table = Table::new(0, &headings);
        for note in &notes {
            let (state, told) = match standing_of(note) {
                Ok(said) => {
                    let root = said.document.root();
                    let state = root.get("state").and_then(Node::as_str).unwrap_or_default().to_owned();
                    (state, root.get("cursor").and_then(Node::as_u64).unwrap_or_default().to_string())
                }
                Err(_) => ("not known".to_owned(), String::new()),
            };
            let question = format!("{} at {}, until {}", note.question, note.node, note.valid_until);
            table.row(vec![
                note.subscription_id.clone().into(),
                state.into(),
                note.cursor.to_string().into(),
                told.into(),
                question.into(),
            ]);
        }
        if !notes.is_empty() {
            output::print(&table.draw(output::width()))?;
        }
        output::note(&format!("{} remembered here", count(notes.len(), "subscription")));
        Ok(Exit::Fine)
    }
}

fn standing_of(note: &Note) -> Result<Said, Failure> {
    let peer = Peer::new(&Destination { to: note.node.clone(), did_document: None })?;
    peer.ask(Message::Subscription { id: note.subscription_id.clone() }, &about(note))
}

fn about(note: &Note) -> Text {
    Text { name: note.subscription_id.clone(), bytes: Vec::new() }
}

impl One {
    fn reach(&self) -> Result<(Note, Peer), Failure> {
        let note = self.shelf.find(&self.id)?;
        let peer = Peer::new(&Destination { to: note.node.clone(), did_document: self.did_document.clone() })?;
        Ok((note, peer))
    }

    fn show(&self, said: &Said) -> Result<Exit, Failure> {
        if self.json {
            output::print(&json_line(&said.text.bytes))?;
            return Ok(Exit::Fine);
        }
        let mut lines = String::new();
        for (name, value) in said.document.root().members() {
            let value = match value.as_str() {
                Some(text) => text.to_owned(),
                None if value.is_object() => continue,
                None => value.to_value().to_string(),
            };
            let name = paint(DIM, format!("{:>26}", output::text::shown(name)));
            lines.push_str(&format!("{name}  {}\n", output::text::shown(&value)));
        }
        output::print(&lines)?;
        Ok(Exit::Fine)
    }
}

impl Signed {
    fn ask(&self, request: &str, more: Option<(&str, Value)>) -> Result<Note, Failure> {
        let (note, peer) = self.one.reach()?;
        let bytes = standing::control(&note.subscription_id, request, more, &self.key.stored()?, clock::now())?;
        let said = peer.ask(Message::Control { id: note.subscription_id.clone(), bytes }, &about(&note))?;
        self.one.show(&said)?;
        Ok(note)
    }
}

impl Replay {
    fn run(self) -> Result<Exit, Failure> {
        let (note, peer) = self.one.reach()?;
        let mut from = self.from.max(1);
        if !self.one.json {
            output::print(&watch::heading())?;
        }
        loop {
            let said = peer.ask(Message::Replay { id: note.subscription_id.clone(), from }, &about(&note))?;
            let events = said.document.root().get("events");
            if events.is_none_or(Node::is_empty) {
                return Ok(Exit::Fine);
            }
            for event in events.into_iter().flat_map(Node::elements) {
                from = watch::check(&peer, &said, event, from - 1)? + 1;
                output::print(&if self.one.json { json_line(&json::canonical(event)) } else { watch::row(event) })?;
            }
        }
    }
}
