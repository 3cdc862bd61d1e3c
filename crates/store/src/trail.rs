//! OAS Engagement: the file `trail`, where the steps of engagements are written first.
//!
//! A commit of the database writes whole pages and waits for the disk twice; a few steps are a few hundred bytes. So they
//! are put behind each other into this file, which never grows: its two halves are written in turn, and one is written
//! over when everything in it has come into the tables, where many steps go at once. What is in no table yet is read from
//! memory. An entry survives the end of the process when it is written, and the end of power when it is settled
//! (decisions/0261).
//!
//! INVARIANT: what is found after a crash is the beginning of what was written, whole entries in their order, and at least
//! what was settled. Every entry says how far the trail was settled before it, so an entry that is missing is missed.
//! INVARIANT: an entry is written over only when the tables have it, on disk.

use crate::check::Flaw;
use crate::engagement::{Engaged, Journal, Noted, Reached};
use crate::folder;
use crate::store::{Cause, CommitError, OpenError, ReadError};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The name of the file.
const TRAIL: &str = "trail";
/// Bytes of one half.
const HALF: usize = 1024 * 1024;
/// Bytes of an entry; what is larger goes into the tables at once.
const ENTRY_BYTES_MAX: usize = 128 * 1024;
/// Bytes after which entries go into the tables.
const FOLD_BYTES: usize = 256 * 1024;
/// Begins every entry.
const MAGIC: [u8; 4] = *b"step";
/// Before the content: magic, length, number, how far it was settled, checksum of the entry before, checksum of this one.
const HEADER: usize = 4 + 4 + 8 + 8 + 8 + 8;
/// Where an entry may begin.
const STEP: usize = 8;

type Checksum = [u8; 8];

/// The trail of a store.
#[derive(Debug)]
pub(crate) struct Trail {
    folder: PathBuf,
    state: Mutex<State>,
    /// Wakes whoever waits for entries to be in the tables.
    moved: Condvar,
    /// Held by whoever waits for the disk; others may write meanwhile.
    syncing: Mutex<()>,
    /// The last entry that is on disk.
    settled: AtomicU64,
    /// Whether somebody was told to see to it that entries come to the disk.
    expected: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// None until something is written.
    file: Option<Arc<File>>,
    /// The last entry, and its checksum.
    last: u64,
    checksum: Checksum,
    /// The half that is written, and where.
    half: usize,
    offset: usize,
    /// The last entry of each half.
    ends: [u64; 2],
    /// The last entry that the tables have.
    folded: u64,
    /// What is in no table, and what is on its way there.
    recent: Recent,
    bytes: usize,
    folding: Option<Arc<Recent>>,
    /// Why the tables did not take it when it was last tried.
    refused: Option<CommitError>,
    /// Why nothing is written until the store is opened again.
    broken: Option<String>,
}

/// Engagements of which something is in no table, by name.
type Recent = HashMap<String, Unfolded>;

/// What of an engagement is in no table.
#[derive(Clone, Debug, Default)]
struct Unfolded {
    engaged: Option<Engaged>,
    steps: Vec<Noted>,
    /// How many steps the journal has.
    count: u64,
    /// The last entry about it.
    last: u64,
}

/// What became of a journal.
pub(crate) enum Written {
    /// It is this entry; and whether it is time to put entries into the tables.
    Entry(u64, bool),
    /// It is too large for an entry.
    Large(Journal),
}

/// What a table needs to know of an engagement: how many steps it has there; none when it is not there.
pub(crate) type Count<'a> = &'a dyn Fn(&str) -> Result<Option<u64>, ReadError>;

impl Trail {
    /// Finds what was written after an entry that the tables have; that must go into them before anything else is
    /// written.
    pub(crate) fn open(folder: &Path, folded: Option<u64>) -> Result<(Self, Option<Journal>), OpenError> {
        let path = folder.join(TRAIL);
        let failed = |error| OpenError::Io { path: path.clone(), error };
        let mut state = State { last: folded.unwrap_or_default(), ..State::default() };
        let mut journal = None;
        match std::fs::read(&path) {
            Ok(bytes) => {
                let found = read(&bytes, state.last).map_err(OpenError::Damaged)?;
                state.file = Some(Arc::new(prepared(&path, found.unclean).map_err(failed)?));
                (state.last, state.checksum) = (found.last, if found.unclean { [0; 8] } else { found.checksum });
                journal = found.unclean.then_some(found.journal);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && folded.is_none() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::Damaged(Flaw::TrailGone)),
            Err(error) => return Err(failed(error)),
        }
        state.folded = state.last;
        let settled = AtomicU64::new(state.last);
        let (state, moved, syncing) = (Mutex::new(state), Condvar::new(), Mutex::new(()));
        let expected = AtomicBool::new(false);
        Ok((Self { folder: folder.to_owned(), state, moved, syncing, settled, expected }, journal))
    }

    /// The last entry.
    pub(crate) fn last(&self) -> u64 {
        self.state().last
    }

    /// Forgets what it held, once the tables have all of it.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match &self.state().file {
            Some(file) => fill(file, 0),
            None => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a journal; it survives the end of the process when this returns. A step that is not the next one is
    /// refused with everything beside it, since somebody else has written it.
    pub(crate) fn write(&self, journal: Journal, count: Count<'_>) -> Result<Written, CommitError> {
        let mut state = self.state();
        if let Some(reason) = &state.broken {
            return Err(failed(reason.clone()));
        }
        let counts = state.counts(&journal, count)?;
        let mut entry = vec![0; HEADER];
        encode(&mut entry, &journal);
        if entry.len() > ENTRY_BYTES_MAX {
            return Ok(Written::Large(journal));
        }
        let file = match state.file.clone() {
            Some(file) => file,
            None => {
                let made = prepared(&self.folder.join(TRAIL), false).map_err(|error| failed(error.to_string()))?;
                folder::sync(&self.folder).map_err(|error| failed(error.to_string()))?;
                Arc::clone(state.file.insert(Arc::new(made)))
            }
        };
        let length = entry.len() - HEADER;
        entry.resize(entry.len().next_multiple_of(STEP), 0);
        while state.offset + entry.len() > HALF {
            state = self.turn(state)?;
        }
        let number = state.last + 1;
        let checksum = seal(&mut entry, length, number, self.settled.load(Ordering::Acquire), state.checksum);
        let place = (state.half * HALF + state.offset) as u64;
        if let Err(error) = file.write_all_at(&entry, place) {
            state.broken = Some(error.to_string());
            return Err(failed(error.to_string()));
        }
        (state.last, state.checksum) = (number, checksum);
        state.offset += entry.len();
        state.bytes += entry.len();
        let half = state.half;
        state.ends.iter_mut().skip(half).take(1).for_each(|end| *end = number);
        state.keep(journal, counts, number);
        Ok(Written::Entry(number, state.bytes >= FOLD_BYTES && state.folding.is_none()))
    }

    /// Goes over to the other half as soon as the tables have what is in it.
    fn turn<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>, CommitError> {
        let other = 1 - state.half;
        if state.ends.get(other).is_none_or(|end| *end <= state.folded) {
            (state.half, state.offset) = (other, 0);
            return Ok(state);
        }
        match &state.refused {
            Some(refused) => Err(refused.clone()),
            None => Ok(self.moved.wait(state).unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Whether an entry is on disk.
    pub(crate) fn is_settled(&self, entry: u64) -> bool {
        self.settled.load(Ordering::Acquire) >= entry
    }

    /// Waits until an entry is on disk, with all before it.
    pub(crate) fn settle(&self, entry: u64) -> Result<(), CommitError> {
        if self.is_settled(entry) {
            return Ok(());
        }
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever was before us may have waited for our entry, too.
        if self.is_settled(entry) {
            return Ok(());
        }
        let (file, last) = {
            let state = self.state();
            match (&state.broken, &state.file) {
                (None, Some(file)) => (Arc::clone(file), state.last),
                (broken, _) => return Err(failed(broken.clone().unwrap_or_default())),
            }
        };
        if let Err(error) = file.sync_data() {
            // After a failed sync a later one may claim what is not true.
            let reason = format!("what was written is not known to be on disk: {error}");
            self.state().broken = Some(reason.clone());
            return Err(failed(reason));
        }
        self.settled.fetch_max(last, Ordering::AcqRel);
        Ok(())
    }

    /// Whether somebody must be told to see to it that entries come to the disk.
    pub(crate) fn expect(&self) -> bool {
        !self.expected.swap(true, Ordering::AcqRel)
    }

    /// The last entry, for whoever was told; from now on somebody must be told again.
    pub(crate) fn expected(&self) -> u64 {
        self.expected.store(false, Ordering::Release);
        self.last()
    }

    /// Whether nothing is written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.state().broken.is_some()
    }

    /// The last entry, where some entries are in no table.
    pub(crate) fn unfolded(&self) -> Option<u64> {
        let state = self.state();
        (!state.recent.is_empty() || state.folding.is_some()).then_some(state.last)
    }

    /// What is to go into the tables now, and up to which entry; nothing while something is on its way there.
    /// [`Self::moved`] must follow.
    pub(crate) fn fold(&self) -> Option<(Journal, u64)> {
        let mut state = self.state();
        if state.folding.is_some() || state.recent.is_empty() {
            return None;
        }
        let folding = Arc::new(std::mem::take(&mut state.recent));
        (state.bytes, state.folding, state.refused) = (0, Some(Arc::clone(&folding)), None);
        let last = state.last;
        drop(state);
        // What is new is numbered in the order in which it was begun.
        let mut sorted: Vec<&Unfolded> = folding.values().collect();
        sorted.sort_by_key(|unfolded| (unfolded.engaged.as_ref().map_or(0, |engaged| engaged.begun_at), unfolded.last));
        let engagements = sorted.iter().filter_map(|unfolded| unfolded.engaged.clone()).collect();
        let steps = sorted.iter().flat_map(|unfolded| unfolded.steps.iter().cloned()).collect();
        Some((Journal { engagements, steps, ..Journal::default() }, last))
    }

    /// Hears what became of what was to go into the tables.
    pub(crate) fn moved(&self, upto: u64, answer: Result<(), CommitError>) {
        let mut state = self.state();
        let folding = state.folding.take();
        match answer {
            Ok(()) => state.folded = upto,
            Err(refused) => {
                let newer = std::mem::replace(&mut state.recent, folding.map(|old| (*old).clone()).unwrap_or_default());
                for (id, newer) in newer {
                    state.recent.entry(id).or_default().extend(newer);
                }
                state.bytes = FOLD_BYTES;
                state.refused = Some(refused);
            }
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Waits until what is on its way into the tables is there.
    pub(crate) fn await_fold(&self) -> Result<(), CommitError> {
        let mut state = self.state();
        while state.folding.is_some() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.refused.clone().map_or(Ok(()), Err)
    }

    /// An engagement as it stands here, with the last entry about it.
    pub(crate) fn engaged(&self, id: &str) -> Option<(Engaged, u64)> {
        let state = self.state();
        let last = state.about(id).map(|unfolded| unfolded.last).max()?;
        let engaged = state.about(id).find_map(|unfolded| unfolded.engaged.clone())?;
        Some((engaged, last))
    }

    /// How many steps an engagement has, with the last entry about it; none when the tables know.
    pub(crate) fn count(&self, id: &str) -> Option<(u64, u64)> {
        self.state().about(id).next().map(|unfolded| (unfolded.count, unfolded.last))
    }

    /// The steps of an engagement that may be in no table, in order, with the last entry about it.
    pub(crate) fn steps(&self, id: &str) -> (Vec<Noted>, u64) {
        let state = self.state();
        let mut parts: Vec<&Unfolded> = state.about(id).collect();
        parts.reverse();
        let last = parts.iter().map(|unfolded| unfolded.last).max().unwrap_or_default();
        (parts.iter().flat_map(|unfolded| unfolded.steps.iter().cloned()).collect(), last)
    }
}

impl State {
    /// What is in no table about an engagement, the newest first.
    fn about<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Unfolded> {
        let folding = self.folding.as_ref().and_then(|folding| folding.get(id));
        self.recent.get(id).into_iter().chain(folding)
    }

    /// How many steps each engagement of a journal has with it; refuses steps that are not the next ones.
    fn counts(&self, journal: &Journal, count: Count<'_>) -> Result<Vec<(String, u64)>, CommitError> {
        let mut counts: Vec<(String, u64)> = Vec::new();
        let unread = |error: ReadError| failed(error.to_string());
        for engaged in &journal.engagements {
            let known = match self.about(&engaged.id).next() {
                Some(unfolded) => unfolded.count,
                None => count(&engaged.id).map_err(unread)?.unwrap_or_default(),
            };
            counts.push((engaged.id.clone(), known));
        }
        for step in &journal.steps {
            let taken = || CommitError::NameTaken { name: format!("{}/{}", step.engagement, step.position) };
            let place = match counts.iter().position(|(id, _)| *id == step.engagement) {
                Some(place) => place,
                None => {
                    let known = match self.about(&step.engagement).next() {
                        Some(unfolded) => unfolded.count,
                        None => count(&step.engagement).map_err(unread)?.ok_or_else(taken)?,
                    };
                    counts.push((step.engagement.clone(), known));
                    counts.len() - 1
                }
            };
            match counts.get_mut(place) {
                Some((_, next)) if *next == step.position => *next += 1,
                _ => return Err(taken()),
            }
        }
        Ok(counts)
    }

    fn keep(&mut self, journal: Journal, counts: Vec<(String, u64)>, number: u64) {
        for (id, count) in counts {
            let unfolded = self.recent.entry(id).or_default();
            (unfolded.count, unfolded.last) = (count, number);
        }
        for engaged in journal.engagements {
            if let Some(unfolded) = self.recent.get_mut(&engaged.id) {
                unfolded.engaged = Some(engaged);
            }
        }
        for step in journal.steps {
            if let Some(unfolded) = self.recent.get_mut(&step.engagement) {
                unfolded.steps.push(step);
            }
        }
    }
}

impl Unfolded {
    fn extend(&mut self, newer: Self) {
        self.engaged = newer.engaged.or(self.engaged.take());
        self.steps.extend(newer.steps);
        (self.count, self.last) = (newer.count, newer.last);
    }
}

fn failed(reason: String) -> CommitError {
    CommitError::CannotWrite { cause: Cause::Failed, reason }
}

/// The file with room for both halves, all of it on disk, so that later writes change nothing but bytes.
fn prepared(path: &Path, unclean: bool) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    // What was found in it goes into the tables first.
    if length < 2 * HALF && !unclean {
        fill(&file, length)?;
    }
    Ok(file)
}

fn fill(file: &File, from: usize) -> io::Result<()> {
    let noughts = vec![0; ENTRY_BYTES_MAX];
    for place in (from..2 * HALF).step_by(noughts.len()) {
        let piece = noughts.get(..noughts.len().min(2 * HALF - place)).unwrap_or_default();
        file.write_all_at(piece, place as u64)?;
    }
    file.sync_all()
}

/// What a trail held.
struct Found {
    journal: Journal,
    last: u64,
    checksum: Checksum,
    /// Whether there is anything that the tables may not have.
    unclean: bool,
}

/// One entry, as it was found.
struct Entry {
    number: u64,
    settled: u64,
    before: Checksum,
    checksum: Checksum,
    journal: Journal,
    bytes: usize,
}

/// What follows in a trail after an entry that the tables have.
fn read(bytes: &[u8], folded: u64) -> Result<Found, Flaw> {
    let (mut entries, mut promised) = (BTreeMap::new(), folded);
    for half in bytes.chunks(HALF) {
        let (mut offset, mut next) = (0, None);
        while let Some(entry) =
            half.get(offset..).and_then(entry).filter(|it| next.is_none_or(|next| next == it.number))
        {
            (offset, next, promised) = (offset + entry.bytes, Some(entry.number + 1), promised.max(entry.settled));
            entries.insert(entry.number, entry);
        }
        // Behind a hole nothing counts but what it says about the hole.
        for place in (offset..half.len()).step_by(STEP) {
            let behind = half.get(place..).filter(|rest| rest.starts_with(&MAGIC)).and_then(entry);
            promised = promised.max(behind.map_or(0, |entry| entry.settled));
        }
    }
    let unclean = entries.last_key_value().is_some_and(|(last, _)| *last > folded);
    let mut found = Found { journal: Journal::default(), last: folded, checksum: [0; 8], unclean };
    let mut before = entries.get(&folded).map(|entry| entry.checksum);
    found.checksum = before.unwrap_or_default();
    while let Some(entry) = entries.remove(&(found.last + 1)).filter(|it| before.is_none_or(|sum| sum == it.before)) {
        (found.last, before) = (entry.number, Some(entry.checksum));
        found.journal.engagements.extend(entry.journal.engagements);
        found.journal.steps.extend(entry.journal.steps);
    }
    if promised > found.last {
        return Err(Flaw::TrailMissing { promised, found: found.last });
    }
    Ok(found)
}

/// The entry at the beginning of some bytes, if it is whole.
fn entry(bytes: &[u8]) -> Option<Entry> {
    let mut rest = Rest(bytes.strip_prefix(&MAGIC)?);
    let length = rest.length()?;
    let (number, settled) = (rest.number()?, rest.number()?);
    let before = rest.chunk()?;
    let checksum = rest.chunk()?;
    let whole = bytes.get(..HEADER + length)?;
    let mut content = Rest(whole.get(HEADER..)?);
    if sum(whole) != checksum {
        return None;
    }
    let journal = decode(&mut content)?;
    Some(Entry { number, settled, before, checksum, journal, bytes: (HEADER + length).next_multiple_of(STEP) })
}

/// Fills in the header of an entry.
fn seal(entry: &mut [u8], length: usize, number: u64, settled: u64, before: Checksum) -> Checksum {
    let size = (length as u32).to_be_bytes();
    let parts: [&[u8]; 5] = [&MAGIC, &size, &number.to_be_bytes(), &settled.to_be_bytes(), &before];
    entry.iter_mut().zip(parts.into_iter().flatten()).for_each(|(slot, byte)| *slot = *byte);
    let checksum = sum(entry.get(..HEADER + length).unwrap_or_default());
    entry.iter_mut().skip(HEADER - checksum.len()).zip(checksum).for_each(|(slot, byte)| *slot = byte);
    checksum
}

/// Over the header but its last part, and the content.
fn sum(entry: &[u8]) -> Checksum {
    let mut digest = Sha256::new();
    digest.update(entry.get(..HEADER - 8).unwrap_or_default());
    digest.update(entry.get(HEADER..).unwrap_or_default());
    digest.finalize().first_chunk().copied().unwrap_or_default()
}

/// What is left to read of an entry.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_be_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        self.chunk().map(|bytes| u32::from_be_bytes(bytes) as usize)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn optional(&mut self) -> Option<Option<String>> {
        match self.chunk()? {
            [0] => Some(None),
            _ => self.text().map(Some),
        }
    }
}

fn put(entry: &mut Vec<u8>, bytes: &[u8]) {
    entry.extend((bytes.len() as u32).to_be_bytes());
    entry.extend(bytes);
}

fn put_optional(entry: &mut Vec<u8>, text: Option<&str>) {
    entry.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put(entry, text.as_bytes());
    }
}

fn encode(entry: &mut Vec<u8>, journal: &Journal) {
    entry.extend((journal.engagements.len() as u32).to_be_bytes());
    for engaged in &journal.engagements {
        for text in [&engaged.id, &engaged.agent, &engaged.document] {
            put(entry, text.as_bytes());
        }
        let (parent, place) = engaged.parent.as_ref().map(|(parent, place)| (parent.as_str(), place.as_str())).unzip();
        for text in [engaged.caller.as_deref(), parent, place, engaged.reviewer.as_deref()] {
            put_optional(entry, text);
        }
        entry.extend(engaged.begun_at.to_be_bytes());
        entry.extend(engaged.due.to_be_bytes());
        entry.push(engaged.reached.number());
    }
    entry.extend((journal.steps.len() as u32).to_be_bytes());
    for step in &journal.steps {
        put(entry, step.engagement.as_bytes());
        entry.extend(step.position.to_be_bytes());
        entry.extend(step.at.to_be_bytes());
        put(entry, &step.body);
    }
}

fn decode(rest: &mut Rest<'_>) -> Option<Journal> {
    let mut journal = Journal::default();
    for _ in 0..rest.length()? {
        let (id, agent, document) = (rest.text()?, rest.text()?, rest.text()?);
        let (caller, parent, place, reviewer) =
            (rest.optional()?, rest.optional()?, rest.optional()?, rest.optional()?);
        let (begun_at, due) = (rest.number()? as i64, rest.number()? as i64);
        let [reached] = rest.chunk()?;
        let (parent, reached) = (parent.zip(place), Reached::of(reached)?);
        journal.engagements.push(Engaged { id, agent, document, caller, parent, begun_at, reached, reviewer, due });
    }
    for _ in 0..rest.length()? {
        let engagement = rest.text()?;
        let (position, at) = (rest.number()?, rest.number()? as i64);
        journal.steps.push(Noted { engagement, position, at, body: rest.bytes()?.to_vec() });
    }
    Some(journal)
}

#[cfg(test)]
mod tests;
