//! `rialto watch`: an intent that stays open, and what a node tells of it as it happens (RFC 0020 §3.6).

use crate::clock;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::handshake::{self, Kept};
use crate::keys::{KeyChoice, Signer};
use crate::output::text::{columns, json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, PLAIN, WARN, paint};
use crate::peer::{Destination, Message, Peer, Refused, Said};
use crate::question::{self, Sent};
use crate::standing::{Note, Shelf};
use anstyle::Style;
use json::{Document, Node, Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Watch what enters, changes and leaves an answer
///
/// Subscribes to a node and shows what it tells, each event verified by itself and none missing. A draft of the category
/// discovery is made into one that stays open. Whoever watches the same file at the same node again goes on after the
/// last event that was shown; a node that is away for a while is waited for.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto watch examples/intents/watch-translation-prices.json
  rialto watch question.json --to https://node.example --json | while read event; do …; done
  rialto watch question.json --webhook https://agent.example/events")]
pub(crate) struct Watch {
    /// The intent: signed, or a draft
    intent: PathBuf,

    #[command(flatten)]
    destination: Destination,

    /// Do not begin with the answer as it stands
    #[arg(long)]
    only_changes: bool,

    /// Begin anew, whatever was watched before
    #[arg(long)]
    anew: bool,

    /// End after so many events
    #[arg(long, value_name = "N")]
    events: Option<u64>,

    /// Let the node bring the events to this https address, and do not watch; the address must say a challenge back
    #[arg(long, value_name = "URL", conflicts_with = "events")]
    webhook: Option<String>,

    #[command(flatten)]
    shelf: Shelf,

    #[command(flatten)]
    key: KeyChoice,

    /// Print each signed event on a line
    #[arg(long)]
    json: bool,
}

/// Events in a minute that are asked for when a draft does not say.
const RATE: u64 = 600;
/// Seconds that the node may let us wait for the next event.
const WAIT_SECONDS: u64 = 20;
/// Attempts to reach a node that has gone, a second after the other at first.
const ATTEMPTS: u32 = 60;

/// What came of one look.
pub(crate) enum Looked {
    /// The page, proved.
    Page(Said),
    /// The node knows nothing of the subscription any more.
    Gone,
}

impl Watch {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let peer = Peer::new(&self.destination)?;
        let text = Text::read(&self.intent)?;
        let key = Shelf::key(&text, peer.address());
        let known = if self.anew { None } else { self.shelf.known(&key)? };
        let mut note = match known {
            Some(note) if self.webhook.is_some() => match self.is_brought(&peer, &note)? {
                true => note,
                false => self.begin(&peer, &text, key.clone())?,
            },
            Some(note) => {
                output::note(&format!("goes on after event {} of {}", note.cursor, note.subscription_id));
                note
            }
            None => self.begin(&peer, &text, key.clone())?,
        };
        if self.webhook.is_some() {
            output::print(&format!("{}\n", shown(&note.subscription_id)))?;
            return Ok(Exit::Fine);
        }
        let mut left = self.events.unwrap_or(u64::MAX);
        if !self.json {
            output::print(&heading())?;
        }
        while left > 0 {
            let said = match look(&peer, &note)? {
                Looked::Page(said) => said,
                Looked::Gone => {
                    output::warn("the node knows this subscription no more; it is begun anew");
                    note = self.begin(&peer, &text, key.clone())?;
                    continue;
                }
            };
            let root = said.document.root();
            if let Some(first) =
                root.get("truncated").and_then(|notice| notice.get("first_cursor")).and_then(Node::as_u64)
            {
                output::warn(&format!("the events from {} to {} are no longer kept", note.cursor + 1, first - 1));
                note.cursor = first - 1;
            }
            for event in root.get("events").into_iter().flat_map(Node::elements) {
                if left == 0 {
                    break;
                }
                note.cursor = check(&peer, &said, event, note.cursor)?;
                output::print(&if self.json { json_line(&json::canonical(event)) } else { row(event) })?;
                left -= 1;
            }
            self.shelf.keep(&note)?;
            if let Some(ended) = root.get("ended").filter(|_| left > 0) {
                let reason = ended.get("reason").and_then(Node::as_str).unwrap_or("no reason");
                output::note(&format!("the subscription is over: {reason}"));
                self.shelf.forget(&note)?;
                return Ok(Exit::Fine);
            }
        }
        Ok(Exit::Fine)
    }

    /// Whether what was watched before is brought to the address already; no when it is over. It is brought to no other
    /// address than the one that it began with.
    fn is_brought(&self, peer: &Peer, note: &Note) -> Result<bool, Failure> {
        let id = &note.subscription_id;
        let said = match peer.try_ask(Message::Subscription { id: id.clone() }) {
            Ok(said) => said,
            Err(refused) if refused.code() == Some("subscription_not_found") => return Ok(false),
            Err(refused) => return Err(refused.about(&Text { name: id.clone(), bytes: Vec::new() })),
        };
        let root = said.document.root();
        if root.get("state").and_then(Node::as_str) == Some("ended") {
            return Ok(false);
        }
        let brought = root.get("webhook").and_then(|webhook| webhook.get("endpoint"));
        if brought.and_then(Node::as_str) == self.webhook.as_deref() {
            output::note("the events of this question are brought there already");
            return Ok(true);
        }
        let failure =
            Failure::usage(format!("this question is watched already, as {id}, and not brought to the address"));
        Err(failure.help(format!("end it with `rialto subscriptions withdraw {id}`, or begin another with --anew")))
    }

    fn begin(&self, peer: &Peer, text: &Text, key: String) -> Result<Note, Failure> {
        let signer = Signer::new(&self.key);
        let open = stays_open(text)?;
        question::to_send(&open, || signer.key(), clock::now(), None)?;
        let note = handshake::in_agreement(peer, Kept::InFile, clock::now(), |agreed| {
            let sent = question::to_send(&open, || signer.key(), clock::now(), agreed)?;
            subscribe(peer, text, &sent, !self.only_changes, self.webhook.clone(), key.clone())
        })?;
        self.shelf.keep(&note)?;
        Ok(note)
    }
}

/// Subscribes, and gives what is to be remembered.
pub(crate) fn subscribe(
    peer: &Peer,
    text: &Text,
    sent: &Sent,
    snapshot: bool,
    webhook: Option<String>,
    key: String,
) -> Result<Note, Failure> {
    let said = peer.ask(Message::Subscribe { bytes: sent.message(), snapshot, webhook: webhook.clone() }, text)?;
    let root = said.document.root();
    if let Some(agreement) = &sent.agreement {
        handshake::check(agreement, root, peer.address())?;
    }
    let member = |name: &str| {
        let missing = || Failure::refused(format!("the acknowledgement of {} has no `{name}`", peer.address()));
        root.get(name).and_then(Node::as_str).map(str::to_owned).ok_or_else(missing)
    };
    if member("intent_id")? != sent.intent.intent_id {
        return Err(Failure::refused(format!("{} acknowledges another intent", peer.address())));
    }
    // An intent that came before, signed as it is, gets the acknowledgement that it got then.
    if webhook.is_some() && root.get("endpoint").and_then(Node::as_str) != webhook.as_deref() {
        let message =
            format!("{} acknowledged this intent before, and does not bring it to the address", peer.address());
        return Err(Failure::refused(message).help("sign it again under another `intent_id`"));
    }
    Ok(Note {
        key,
        subscription_id: member("subscription_id")?,
        node: peer.address().to_owned(),
        question: text.name.clone(),
        valid_until: member("valid_until")?,
        cursor: root.get("cursor").and_then(Node::as_u64).unwrap_or_default(),
    })
}

/// A draft that asks once becomes one that stays open; anything signed stays as it is.
pub(crate) fn stays_open(text: &Text) -> Result<Text, Failure> {
    let document = text.document(&aql::Limits::STANDARD.json)?;
    let root = document.root();
    let asks_once = root.get("category").and_then(Node::as_str) == Some("discovery");
    let signed = root.get("signature").is_some();
    if signed || !root.is_object() || (!asks_once && root.get("max_event_rate_per_minute").is_some()) {
        return Ok(Text { name: text.name.clone(), bytes: text.bytes.clone() });
    }
    let mut value = root.to_value();
    if let Some(members) = value.as_object_mut() {
        members.insert("category".to_owned(), json!("subscription"));
        members.remove("resolution_policy");
        members.entry("max_event_rate_per_minute").or_insert(json!(RATE));
    }
    Ok(Text { name: text.name.clone(), bytes: json::canonical_value(&value) })
}

/// Looks for events after the last; a node that is away is waited for.
pub(crate) fn look(peer: &Peer, note: &Note) -> Result<Looked, Failure> {
    let message = Message::Events { id: note.subscription_id.clone(), after: note.cursor, wait_seconds: WAIT_SECONDS };
    let about = Text { name: note.subscription_id.clone(), bytes: Vec::new() };
    for attempt in 0..ATTEMPTS {
        match peer.try_ask(message.clone()) {
            Ok(said) => return Ok(Looked::Page(said)),
            Err(refused) if refused.code() == Some("subscription_not_found") => return Ok(Looked::Gone),
            Err(refused @ Refused::ByNode(_)) => return Err(refused.about(&about)),
            Err(Refused::Failure(_)) if attempt == 0 => output::note("the node does not answer; it is waited for"),
            Err(Refused::Failure(_)) => {}
        }
        std::thread::sleep(Duration::from_millis(500 * u64::from(attempt.min(10) + 1)));
    }
    peer.ask(message, &about).map(Looked::Page)
}

/// Checks an event by itself: its signature, that its manifest is in the node's tree, and that it follows the last.
pub(crate) fn check(peer: &Peer, said: &Said, event: Node<'_>, last: u64) -> Result<u64, Failure> {
    let document: Document = event.to_document();
    peer.verify_as(&document, said)?;
    node::check_inclusion(event).map_err(|error| Failure::refused(format!("{}: {error}", peer.address())))?;
    let cursor = event.get("cursor").and_then(Node::as_u64).unwrap_or_default();
    if cursor != last + 1 {
        return Err(Failure::refused(format!("event {cursor} came after event {last}: the node left a hole")));
    }
    Ok(cursor)
}

const WIDTHS: [usize; 4] = [6, 19, 8, 11];

pub(crate) fn heading() -> String {
    line(&["#", "when", "answer", "by", "record and what is shown of it"], DIM)
}

/// An event as a line of the table.
pub(crate) fn row(event: Node<'_>) -> String {
    let text = |name: &str| event.get(name).and_then(Node::as_str).unwrap_or_default();
    let cursor = event.get("cursor").and_then(Node::as_u64).unwrap_or_default().to_string();
    let when: String = text("emitted_at").chars().take(19).collect();
    let style = match text("set_change") {
        "entered" => GOOD,
        "left" => BAD,
        "changed" => WARN,
        _ => PLAIN,
    };
    let payload = event.get("payload").map(|payload| brief(&payload.to_value())).unwrap_or_default();
    let what = format!("{}  {payload}", text("manifest_id"));
    line(&[&cursor, &when, text("set_change"), text("event_type"), what.trim_end()], style)
}

fn line(cells: &[&str; 5], style: Style) -> String {
    let [number, when, change, by, what] = cells.map(shown);
    let [first, second, third, fourth] = WIDTHS;
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(columns(text)));
    format!(
        "{}{number}  {when}{}  {}{}  {by}{}  {what}\n",
        pad(&number, first),
        pad(&when, second),
        paint(style, &change),
        pad(&change, third),
        pad(&by, fourth),
    )
}

/// The leaves of a payload, one after the other.
fn brief(payload: &Value) -> String {
    let mut leaves = Vec::new();
    gather(payload, &mut leaves);
    leaves.join(" ")
}

fn gather(value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.values().for_each(|member| gather(member, leaves)),
        Value::Array(elements) => elements.iter().for_each(|element| gather(element, leaves)),
        Value::String(text) => leaves.push(text.clone()),
        Value::Null => {}
        other => leaves.push(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_asks_once_is_made_to_stay_open() {
        let open = |value: Value| {
            let text = Text { name: "x".into(), bytes: value.to_string().into_bytes() };
            Document::parse(&stays_open(&text).unwrap().bytes, &json::Limits::INTENT).unwrap().root().to_value()
        };
        let once = json!({"category": "discovery", "resolution_policy": "full_set", "constraints": {}});
        let stays = json!({"category": "subscription", "max_event_rate_per_minute": RATE, "constraints": {}});
        assert_eq!(open(once), stays);
        let slow = json!({"category": "subscription", "max_event_rate_per_minute": 1});
        assert_eq!(open(slow.clone()), slow);
        let signed = json!({"category": "discovery", "signature": {}});
        assert_eq!(open(signed.clone()), signed);
    }
}
