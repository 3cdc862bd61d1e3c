//! RFC 0020 §3.7: a reader goes along a journal, as fast as it takes what it is given.
//!
//! What was just written is handed on from memory; whoever is further behind reads the journal on disk, some events at
//! a time. A reader that stops holds nothing but its place.
//!
//! INVARIANT: a reader gets every cursor after its own, in order, or is told which ones are gone.

use super::webhooks::aside;
use super::{Checked, Feeds, RECENT, Readers, Signal};
use crate::clock::instant;
use crate::node::Node;
use crate::quota::Purpose;
use crate::refusal::{Class, Error, Refusal};
use feed::subscription::{JOURNAL_BYTES_MAX, READERS_MAX};
use feed::{CursorError, Journal, Place, cursor};
use json::{Document, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{Event, Phase, Standing, Subscription};
use tokio::sync::broadcast::{self, error::RecvError};
use trust::Did;

/// Events that are read from a journal at once.
const EVENTS: usize = 128;
/// Bytes after which no more are read at once.
const BYTES: usize = 64 * 1024;

/// What a reader gets.
#[derive(Clone, Debug)]
pub enum Heard {
    /// The next event.
    Event(Arc<Event>),
    /// Some events are no longer kept; it goes on after them.
    Truncated(Vec<u8>),
    /// Nothing happened for a while.
    Silence(Vec<u8>),
    /// Nothing will happen any more.
    Ended(Vec<u8>),
}

/// A reader of a journal.
#[derive(Debug)]
pub struct Follower {
    node: Arc<Node>,
    id: String,
    number: u64,
    /// The last cursor that the reader has.
    after: u64,
    backlog: VecDeque<Arc<Event>>,
    /// Whether the journal on disk may hold more than was heard of.
    behind: bool,
    ended: bool,
    truncated: Option<Vec<u8>>,
    receiver: broadcast::Receiver<Signal>,
    checked: Arc<Checked>,
}

impl Node {
    /// Follows a journal from after a cursor, or from its beginning.
    pub async fn follow(self: &Arc<Self>, id: &str, after: Option<&str>) -> Result<Follower, Error> {
        let after = after.map_or(Ok(0), cursor::read).map_err(invalid_cursor)?;
        let (node, id) = (Arc::clone(self), id.to_owned());
        self.off_thread(move || {
            let subscription = node.feeds.find(&id)?;
            let issuer = Did::parse(&subscription.issuer).map_err(Error::fault)?;
            // Reading again is asking again.
            node.charge(&issuer, Purpose::Explanation)?;
            node.feeds.follower(&node, subscription, after)
        })
        .await
    }

    /// Events after a cursor, waiting a while for the first; signed, as one document.
    pub async fn poll(
        self: &Arc<Self>,
        id: &str,
        after: Option<&str>,
        patience: Duration,
        limit: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut follower = self.follow(id, after).await?;
        let (mut events, mut truncated, mut ended) = (Vec::new(), None, None);
        let mut patience = patience;
        let mut bytes = 0;
        while events.len() < limit && bytes < BYTES {
            match follower.hear(patience).await? {
                Some(Heard::Event(event)) => {
                    bytes += event.body.len();
                    events.push(ours(&event.body)?);
                    // What is there is taken along; nothing more is waited for.
                    patience = Duration::ZERO;
                }
                Some(Heard::Truncated(notice)) => truncated = Some(ours(&notice)?),
                Some(Heard::Silence(_)) | None => break,
                Some(Heard::Ended(notice)) => {
                    ended = Some(ours(&notice)?);
                    break;
                }
            }
        }
        // Whoever gets nothing hears why, as on a stream.
        let nothing = events.is_empty() && truncated.is_none() && ended.is_none();
        let heartbeat = if nothing { follower.silence().await? } else { None };
        let heartbeat = heartbeat.map(|heartbeat| ours(&heartbeat)).transpose()?;
        let mut value = json!({
            "type": "oap.subscription.events",
            "subscription_id": follower.id,
            "publisher_did": self.identity.did().as_str(),
            "events": events,
            "cursor": follower.after,
            "at": self.clock.now().to_string(),
        });
        if let Some(members) = value.as_object_mut() {
            members.extend(truncated.map(|notice| ("truncated".to_owned(), notice)));
            members.extend(ended.map(|notice| ("ended".to_owned(), notice)));
            members.extend(heartbeat.map(|notice| ("heartbeat".to_owned(), notice)));
        }
        Ok(self.identity.sign(value))
    }

    /// Where a replay from a cursor begins; what is no longer kept is refused, not skipped.
    pub fn check_replay(&self, id: &str, from: &str) -> Result<(), Error> {
        let from = cursor::read(from).map_err(invalid_cursor)?;
        Ok(replayable(&self.feeds.find(id)?, from)?)
    }
}

/// Whether everything from a cursor on is still kept.
pub(super) fn replayable(subscription: &Subscription, from: u64) -> Result<(), Refusal> {
    match journal(subscription).after(from.saturating_sub(1)).map_err(invalid_cursor)? {
        Place::After(_) => Ok(()),
        Place::Truncated(before) => {
            let detail = format!("events before {} are no longer kept; replay from there", before + 1);
            Err(Refusal::new(Class::Gone, "cursor_expired", detail))
        }
    }
}

fn ours(bytes: &[u8]) -> Result<Value, Error> {
    Ok(Document::parse(bytes, &json::Limits::OURS).map_err(Error::fault)?.root().to_value())
}

fn journal(subscription: &Subscription) -> Journal {
    Journal { first: subscription.standing.first, last: subscription.standing.cursor }
}

fn invalid_cursor(error: CursorError) -> Refusal {
    let detail = match error {
        CursorError::NotANumber => "a cursor is a whole number, as an event carries it",
        CursorError::Ahead => "no event of this subscription has this cursor yet",
    };
    Refusal::new(Class::InvalidInput, "invalid_cursor", detail)
}

impl Feeds {
    fn follower(self: &Arc<Self>, node: &Arc<Node>, subscription: Subscription, after: u64) -> Result<Follower, Error> {
        let place = journal(&subscription).after(after).map_err(invalid_cursor)?;
        let checked = self.checked(subscription.number);
        let receiver = self.enter(subscription.number)?;
        let (after, truncated) = match place {
            Place::After(after) => (after, None),
            Place::Truncated(first) => (first, Some(self.truncated(&subscription.id, after, first))),
        };
        let mut follower = Follower {
            node: Arc::clone(node),
            id: subscription.id,
            number: subscription.number,
            after,
            backlog: VecDeque::new(),
            behind: true,
            ended: false,
            truncated,
            receiver,
            checked,
        };
        // Looked at once somebody listens: an end before that was told to nobody here.
        follower.ended = self.find(&follower.id)?.standing.phase == Phase::Ended;
        if follower.ended {
            self.checks().remove(&follower.number);
        }
        Ok(follower)
    }

    fn enter(&self, number: u64) -> Result<broadcast::Receiver<Signal>, Refusal> {
        let mut readers = self.readers();
        let entry = readers.entry(number).or_insert_with(|| Readers { sender: broadcast::channel(RECENT).0, count: 0 });
        if entry.count >= READERS_MAX {
            let detail = "this subscription is read by as many as may read one; close some, or subscribe again";
            let refusal = Refusal::new(Class::RateLimited, "too_many_readers", detail).retry_after(5_000);
            return Err(refusal.limited("subscriptions.readers", READERS_MAX as u64, entry.count as u64 + 1));
        }
        entry.count += 1;
        Ok(entry.sender.subscribe())
    }

    fn leave(&self, number: u64) {
        let mut readers = self.readers();
        if let Some(entry) = readers.get_mut(&number) {
            entry.count -= 1;
            if entry.count == 0 {
                readers.remove(&number);
            }
        }
    }

    /// Says that events are gone.
    pub(super) fn truncated(&self, id: &str, after: u64, before_first: u64) -> Vec<u8> {
        self.identity.sign(json!({
            "type": "oap.subscription.truncated",
            "subscription_id": id,
            "publisher_did": self.identity.did().as_str(),
            "asked_after": after,
            "first_cursor": before_first + 1,
            "at": self.clock.now().to_string(),
        }))
    }

    /// Says that there is nothing to be told, how far delivery has come, and what is held back: so silence is told from
    /// a stall (decisions/0284).
    fn heartbeat(&self, subscription: &Subscription) -> Result<Vec<u8>, Error> {
        let (standing, waiting) = (&subscription.standing, self.store.pending_count(subscription.number)?);
        let mut value = json!({
            "type": "oap.heartbeat",
            "subscription_id": subscription.id,
            "publisher_did": self.identity.did().as_str(),
            "cursor": standing.cursor,
            "waiting": waiting,
            "at": self.clock.now().to_string(),
        });
        if let Some(members) = value.as_object_mut() {
            let level_at = Some(self.level_at.load(Ordering::Acquire)).filter(|at| *at != 0);
            members.extend(level_at.map(|at| ("as_of".to_owned(), json!(instant(at).to_string()))));
            members.extend((waiting > 0).then(|| ("held_by".to_owned(), json!(held_by(standing)))));
        }
        Ok(self.identity.sign(value))
    }
}

impl Follower {
    /// The name of the subscription.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next thing to be told; after `patience` without any, that there is none.
    pub async fn next(&mut self, patience: Duration) -> Result<Heard, Error> {
        loop {
            if let Some(heard) = self.hear(patience).await? {
                return Ok(heard);
            }
            if let Some(heartbeat) = self.silence().await? {
                return Ok(Heard::Silence(heartbeat));
            }
        }
    }

    /// The next thing to be told; nothing after `patience` without any.
    async fn hear(&mut self, patience: Duration) -> Result<Option<Heard>, Error> {
        loop {
            // Also when there is much to be read: however a journal is read, and however often somebody comes again.
            if !self.ended && self.checked.is_due() {
                let (node, id) = (Arc::clone(&self.node), self.id.clone());
                node.recheck(&id).await?;
            }
            if let Some(notice) = self.truncated.take() {
                return Ok(Some(Heard::Truncated(notice)));
            }
            if let Some(event) = self.backlog.pop_front() {
                self.after = event.cursor;
                return Ok(Some(Heard::Event(event)));
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            if self.ended {
                let (node, id) = (Arc::clone(&self.node), self.id.clone());
                let notice = self.node.off_thread(move || node.subscription(&id)).await?;
                return Ok(Some(Heard::Ended(notice)));
            }
            match tokio::time::timeout(patience, self.receiver.recv()).await {
                Err(_) => return Ok(None),
                Ok(Ok(Signal::Event(event))) if event.cursor == self.after + 1 => self.backlog.push_back(event),
                Ok(Ok(Signal::Event(event))) => self.behind = event.cursor > self.after,
                Ok(Ok(Signal::Ended)) => (self.behind, self.ended) = (true, true),
                Ok(Err(RecvError::Lagged(_))) => self.behind = true,
                Ok(Err(RecvError::Closed)) => return Err(Error::fault("nobody delivers any more")),
            }
        }
    }

    /// What is said to whoever heard nothing; nothing when the journal has more for him after all.
    async fn silence(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let (feeds, id, after) = (Arc::clone(&self.node.feeds), self.id.clone(), self.after);
        // Not among those who wait for the disk: a node with much to do must not fall silent.
        let looked = aside(move || {
            let subscription = feeds.find(&id)?;
            let is_level = subscription.standing.phase != Phase::Ended && subscription.standing.cursor == after;
            let heartbeat = is_level.then(|| feeds.heartbeat(&subscription)).transpose()?;
            Ok((subscription.standing, heartbeat))
        });
        let (standing, heartbeat) = looked.await?;
        if heartbeat.is_none() {
            (self.behind, self.ended) = (true, standing.phase == Phase::Ended);
            let before_first = standing.first.saturating_sub(1);
            if self.after < before_first {
                self.truncated = Some(self.node.feeds.truncated(&self.id, self.after, before_first));
                self.after = before_first;
            }
        }
        Ok(heartbeat)
    }

    /// Reads what the journal on disk holds after the reader's place.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let (node, number, after) = (Arc::clone(&self.node), self.number, self.after);
        let read = self.node.off_thread(move || Ok(node.store.events_after(number, after, EVENTS, BYTES)?));
        let events = read.await?;
        match events.first() {
            None => self.behind = false,
            Some(first) if first.cursor != self.after + 1 => {
                let before_first = first.cursor - 1;
                self.truncated = Some(self.node.feeds.truncated(&self.id, self.after, before_first));
                self.after = before_first;
            }
            Some(_) => {}
        }
        self.backlog.extend(events.into_iter().map(Arc::new));
        Ok(())
    }
}

/// Why what waits is not told.
fn held_by(standing: &Standing) -> &'static str {
    match standing.phase {
        Phase::Paused => "pause",
        Phase::Active | Phase::Ended if standing.bytes >= JOURNAL_BYTES_MAX => "journal_full",
        Phase::Active | Phase::Ended => "rate",
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.node.feeds.leave(self.number);
    }
}

#[cfg(test)]
mod tests;
