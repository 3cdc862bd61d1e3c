//! RFC 0020 §3.1 `full_set`: pages over one moment of the market.
//!
//! What is still to come of an answer is kept under a name that nobody can guess, for as long as its intent may be
//! answered. Records are never changed, only replaced, so a later page shows what the first one was chosen from.

use super::select::Queue;
use crate::evidence::Moment;
use crate::gate::Viewer;
use crate::refusal::{Class, Error, Refusal};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Candidates that all kept answers together may hold.
const ENTRIES_MAX: usize = 4_000_000;

/// What is still to come of an answer.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Which intent it answers.
    pub(crate) digest: [u8; 16],
    /// When the first page was chosen; what others say about quality afterwards does not count.
    pub(crate) moment: Moment,
    /// Whose eyes it was chosen for.
    pub(crate) viewer: Viewer,
    pub(crate) queue: Queue,
    /// Candidates of the pages before.
    pub(crate) returned: usize,
    /// Until when the intent may be answered, in milliseconds since 1970.
    pub(crate) expires: i64,
}

/// Answers with pages to come, by cursor.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    walks: HashMap<String, (u64, Walk)>,
    entries: usize,
    clock: u64,
}

impl Pages {
    /// Takes what a cursor stands for.
    pub(crate) fn take(&self, cursor: &str, digest: [u8; 16], now: i64) -> Result<Walk, Error> {
        let mut kept = self.lock()?;
        kept.check(cursor, digest, now)?;
        kept.remove(cursor).ok_or_else(|| unknown().into())
    }

    /// Whether a cursor stands for something that can be taken now.
    pub(crate) fn check(&self, cursor: &str, digest: [u8; 16], now: i64) -> Result<(), Error> {
        self.lock()?.check(cursor, digest, now)
    }

    fn lock(&self) -> Result<MutexGuard<'_, Kept>, Error> {
        self.kept.lock().map_err(|_| Error::fault("the pages are lost"))
    }

    /// Keeps what is to come under a cursor; the oldest go when there is no room.
    pub(crate) fn keep(&self, cursor: &str, walk: Walk, now: i64) {
        let Ok(mut kept) = self.kept.lock() else { return };
        let expired: Vec<String> =
            kept.walks.iter().filter(|(_, (_, walk))| walk.expires < now).map(|(cursor, _)| cursor.clone()).collect();
        for cursor in expired {
            kept.remove(&cursor);
        }
        kept.entries += walk.queue.len();
        kept.clock += 1;
        let age = kept.clock;
        kept.walks.insert(cursor.to_owned(), (age, walk));
        while kept.entries > ENTRIES_MAX && kept.walks.len() > 1 {
            let oldest = kept.walks.iter().min_by_key(|(_, (age, _))| *age).map(|(cursor, _)| cursor.clone());
            oldest.and_then(|oldest| kept.remove(&oldest));
        }
    }
}

impl Kept {
    fn check(&self, cursor: &str, digest: [u8; 16], now: i64) -> Result<(), Error> {
        let (_, walk) = self.walks.get(cursor).ok_or_else(unknown)?;
        if walk.digest != digest || walk.expires < now { Err(unknown().into()) } else { Ok(()) }
    }

    fn remove(&mut self, cursor: &str) -> Option<Walk> {
        let (_, walk) = self.walks.remove(cursor)?;
        self.entries -= walk.queue.len();
        Some(walk)
    }
}

pub(super) fn unknown() -> Refusal {
    let detail = "this cursor belongs to another intent, was never given, or is forgotten; ask anew, with a new intent";
    Refusal::new(Class::InvalidInput, "invalid_cursor", detail)
}
