//! RFC 0020 §3.6: standing intents as they are kept: who asked for what, and the journal of what each was told.
//!
//! INVARIANT: the cursors of a journal are dense, and what stands at one never changes. The position up to which the
//! change log is delivered is written together with the events that it led to.

use crate::change::{Hash, Sequence};
use crate::engagement::Journal;
use crate::inclusion::{Branch, Leaf};
use crate::webhook::{DeadLetter, Webhook};
use sha2::{Digest, Sha256};

/// A standing intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its number here.
    pub number: u64,
    /// What it is called; nobody can guess it.
    pub id: String,
    /// Who signed the intent.
    pub issuer: String,
    /// On whose account it stands: the issuer, or whoever the issuer acts for.
    pub principal: String,
    /// What the issuer calls the intent.
    pub intent_id: String,
    /// The intent as it was signed.
    pub intent: Vec<u8>,
    /// What the issuer was answered.
    pub acknowledgement: Vec<u8>,
    /// The last change of the log that it is not told of.
    pub start: Sequence,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: i64,
    /// What changes about it.
    pub standing: Standing,
}

/// What changes about a standing intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is told anything.
    pub phase: Phase,
    /// Events that it takes in a minute.
    pub rate: u64,
    /// When a pause ends by itself, in milliseconds since 1970; nought when it does not.
    pub resumes_at: i64,
    /// The last event of its journal; nought when there is none.
    pub cursor: u64,
    /// The first event that is still kept, or the next one when none is.
    pub first: u64,
    /// The bytes of the events that are kept.
    pub bytes: u64,
    /// The hash over all events so far.
    pub chain: Hash,
    /// When it ended, in milliseconds since 1970; nought while it has not.
    pub ended_at: i64,
    /// Why it ended.
    pub reason: String,
}

/// Whether a standing intent is told anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is.
    Active,
    /// It wants to be told later.
    Paused,
    /// It is over.
    Ended,
}

impl Standing {
    /// A new one, with nothing in its journal.
    pub fn new(rate: u64) -> Self {
        Self {
            phase: Phase::Active,
            rate,
            resumes_at: 0,
            cursor: 0,
            first: 1,
            bytes: 0,
            chain: Hash::GENESIS,
            ended_at: 0,
            reason: String::new(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![match self.phase {
            Phase::Active => 0,
            Phase::Paused => 1,
            Phase::Ended => 2,
        }];
        for number in [self.rate, self.cursor, self.first, self.bytes] {
            bytes.extend(number.to_be_bytes());
        }
        for moment in [self.resumes_at, self.ended_at] {
            bytes.extend(moment.to_be_bytes());
        }
        bytes.extend(self.chain.0);
        bytes.extend(self.reason.as_bytes());
        bytes
    }

    /// As kept beside its subscription, with a checksum.
    pub(crate) fn kept(&self, subscription: u64) -> Vec<u8> {
        let mut bytes = self.to_bytes();
        let checksum = checksum(subscription, &bytes);
        bytes.extend(checksum);
        bytes
    }

    /// Reads what [`Self::kept`] wrote, unless anything of it was altered.
    pub(crate) fn read(subscription: u64, kept: &[u8]) -> Option<Self> {
        let (bytes, told) = kept.split_last_chunk::<8>()?;
        (checksum(subscription, bytes) == *told).then(|| Self::from_bytes(bytes)).flatten()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&phase, rest) = bytes.split_first()?;
        let phase = *[Phase::Active, Phase::Paused, Phase::Ended].get(usize::from(phase))?;
        let mut rest = rest;
        let mut number = || {
            let (number, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_be_bytes(*number))
        };
        let [rate, cursor, first, kept] = [number()?, number()?, number()?, number()?];
        let [resumes_at, ended_at] = [number()?.cast_signed(), number()?.cast_signed()];
        let (chain, reason) = rest.split_first_chunk::<32>()?;
        let reason = String::from_utf8(reason.to_vec()).ok()?;
        Some(Self { phase, rate, resumes_at, cursor, first, bytes: kept, chain: Hash(*chain), ended_at, reason })
    }
}

fn checksum(subscription: u64, bytes: &[u8]) -> [u8; 8] {
    let digest = Sha256::new().chain_update(subscription.to_be_bytes()).chain_update(bytes).finalize();
    digest.first_chunk().copied().unwrap_or_default()
}

impl Subscription {
    /// Over everything that does not change about it.
    pub(crate) fn checksum(&self) -> [u8; 8] {
        let mut digest = Sha256::new();
        for part in [
            self.id.as_bytes(),
            self.issuer.as_bytes(),
            self.principal.as_bytes(),
            self.intent_id.as_bytes(),
            &self.intent,
            &self.acknowledgement,
        ] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        for number in [self.number, self.start, self.expires_at.cast_unsigned()] {
            digest.update(number.to_be_bytes());
        }
        digest.finalize().first_chunk().copied().unwrap_or_default()
    }
}

/// Something that a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// To whom.
    pub subscription: u64,
    /// Its place in the journal, from 1, without gaps.
    pub cursor: u64,
    /// When it was written, in milliseconds since 1970; negative when it does not count as one of the minute.
    pub at: i64,
    /// The signed document.
    pub body: Vec<u8>,
}

impl Event {
    pub(crate) fn checksum(&self) -> [u8; 8] {
        let mut digest = Sha256::new();
        for number in [self.subscription, self.cursor, self.at.cast_unsigned()] {
            digest.update(number.to_be_bytes());
        }
        digest.update(&self.body);
        digest.finalize().first_chunk().copied().unwrap_or_default()
    }
}

/// A record about which a subscriber is to be told when there is room: from what was told to what is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// To whom.
    pub subscription: u64,
    /// Of which record.
    pub record: String,
    /// The change that came first; what waits longest is told first.
    pub since: Sequence,
    /// The number of the record that was told of last; nought when none was there.
    pub told: u64,
    /// The number of the record that is there now; nought when none is.
    pub latest: u64,
    /// Whether only what others say of it changed.
    pub evidence: bool,
}

/// What delivery writes, all of it together or nothing.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// How far the change log is delivered.
    pub position: Option<Sequence>,
    /// How far the trail of engagements is in the tables.
    pub folded: Option<u64>,
    /// New standing intents.
    pub subscribed: Vec<Subscription>,
    /// New entries of journals.
    pub events: Vec<Event>,
    /// How standing intents stand now.
    pub standings: Vec<(u64, Standing)>,
    /// What waits now.
    pub pending: Vec<Pending>,
    /// What no longer waits.
    pub settled: Vec<(u64, String)>,
    /// Whether a subscriber was told that a record is in its answer; none when the record is gone. Only for those whose
    /// answers depend on more than records.
    pub told: Vec<(u64, String, Option<bool>)>,
    /// Journals of which the events before a cursor are forgotten.
    pub forgotten: Vec<(u64, u64)>,
    /// Standing intents of which nothing is kept any more.
    pub removed: Vec<u64>,
    /// Where events are brought, and how that goes now.
    pub webhooks: Vec<(u64, Webhook)>,
    /// Events that were given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Given up events that are forgotten, by standing intent and cursor.
    pub buried: Vec<(u64, u64)>,
    /// How far the tree is level with the log.
    pub indexed: Option<Sequence>,
    /// Whether the tree is to be made again from its first leaf.
    pub felled: bool,
    /// New leaves of the tree.
    pub leaves: Vec<Leaf>,
    /// New whole subtrees.
    pub branches: Vec<Branch>,
    /// What is written of engagements.
    pub journal: Journal,
}

impl Feed {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.position.is_none()
            && self.folded.is_none()
            && self.subscribed.is_empty()
            && self.events.is_empty()
            && self.standings.is_empty()
            && self.pending.is_empty()
            && self.settled.is_empty()
            && self.told.is_empty()
            && self.forgotten.is_empty()
            && self.removed.is_empty()
            && self.webhooks.is_empty()
            && self.dead_letters.is_empty()
            && self.buried.is_empty()
            && self.indexed.is_none()
            && !self.felled
            && self.leaves.is_empty()
            && self.branches.is_empty()
            && self.journal.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_is_read_as_it_was_written() {
        let standing = Standing {
            phase: Phase::Paused,
            rate: 60,
            resumes_at: 17,
            cursor: 9,
            first: 3,
            bytes: 4_096,
            chain: Hash::of(b"x"),
            ended_at: -1,
            reason: "expired".into(),
        };
        let kept = standing.kept(4);
        assert_eq!(Standing::read(4, &kept), Some(standing));
        assert_eq!(Standing::read(5, &kept), None);
        for position in 0..kept.len() {
            let mut altered = kept.clone();
            altered[position] ^= 1;
            assert_eq!(Standing::read(4, &altered), None, "{position}");
        }
    }
}
