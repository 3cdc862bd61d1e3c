//! The door to the truth: batches in, records and changes out.
//!
//! One thread writes. It takes what has queued up, makes one transaction of it, waits until that and the head are on
//! disk, and only then answers: a group commit. When the disk fails, the store stops writing and says so; what it
//! acknowledged stays readable.

use crate::change::{Change, Hash, Operation, Sequence};
use crate::check::{Flaw, Soundness};
use crate::engaging::Settler;
use crate::feed::{Event, Feed, Pending, Subscription};
use crate::folder::make_folder;
use crate::head::{Head, HeadError, HeadFile};
use crate::inclusion::Leaf;
use crate::record::{Kind, Listed, Record, State};
use crate::room;
use crate::sqlite::{Answers, Database, EngineError, Reader, Verdict, Work};
use crate::trail::Trail;
use crate::webhook::{DeadLetter, Webhook};
use sha2::{Digest, Sha256};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A record to keep.
#[derive(Clone, Debug)]
pub struct Put {
    /// What it is called.
    pub id: String,
    /// What kind it is.
    pub kind: Kind,
    /// The DID that signed it.
    pub publisher: String,
    /// The bytes, as they came.
    pub body: Vec<u8>,
}

/// A record to take back.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    /// What it is called.
    pub id: String,
    /// The DID that signed the withdrawal.
    pub publisher: String,
}

/// A signed message that was dealt with, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Who signed it.
    pub issuer: String,
    /// What the issuer calls it.
    pub name: String,
    /// The hash of its bytes.
    pub digest: Hash,
    /// Until when it is remembered, in milliseconds since 1970.
    pub expires_at: i64,
}

impl Mark {
    /// What became of the message, as kept beside the mark, with a checksum over both.
    pub(crate) fn kept(&self, committed: &Committed) -> Vec<u8> {
        let mut bytes = committed.to_bytes();
        let checksum = self.checksum(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// Reads what became of the message, unless anything about it was altered.
    pub(crate) fn committed(&self, kept: &[u8]) -> Option<Committed> {
        let (bytes, checksum) = kept.split_last_chunk::<8>()?;
        (self.checksum(bytes) == *checksum).then(|| Committed::from_bytes(bytes)).flatten()
    }

    fn checksum(&self, committed: &[u8]) -> [u8; 8] {
        let mut digest = Sha256::new();
        for text in [self.issuer.as_bytes(), self.name.as_bytes(), committed] {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        digest.update(self.digest.0);
        digest.update(self.expires_at.to_be_bytes());
        digest.finalize().first_chunk().copied().unwrap_or_default()
    }
}

/// What is written together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Records to keep.
    pub puts: Vec<Put>,
    /// Records to take back.
    pub withdrawals: Vec<Withdrawal>,
    /// The message that caused it.
    pub mark: Option<Mark>,
    /// When it happens, in milliseconds since 1970.
    pub at: i64,
}

/// What became of a batch: told again, word for word, when the same message comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// For each put, then for each withdrawal.
    pub outcomes: Vec<Outcome>,
    /// When it happened, in milliseconds since 1970.
    pub at: i64,
}

impl Committed {
    /// As kept beside the mark: the time, then two or three numbers for each outcome.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.at.to_be_bytes().to_vec();
        for outcome in &self.outcomes {
            let (sequence, revision, replaces) = match *outcome {
                Outcome::Changed { sequence, revision, replaces } => (sequence, revision, replaces.unwrap_or(0)),
                Outcome::Unchanged { revision } => (0, revision, 0),
            };
            [sequence, revision, replaces].iter().for_each(|number| bytes.extend(number.to_be_bytes()));
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk::<8>()?;
        let (numbers, over) = rest.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_be_bytes(*number)).collect();
        let (outcomes, odd) = numbers.as_chunks::<3>();
        if !over.is_empty() || !odd.is_empty() {
            return None;
        }
        let outcome = |&[sequence, revision, replaces]: &[u64; 3]| match sequence {
            0 => Outcome::Unchanged { revision },
            _ => Outcome::Changed { sequence, revision, replaces: (replaces > 0).then_some(replaces) },
        };
        Some(Self { outcomes: outcomes.iter().map(outcome).collect(), at: i64::from_be_bytes(*at) })
    }
}

/// What became of one entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A change was written.
    Changed {
        /// Its place in the log.
        sequence: Sequence,
        /// The revision of the record now.
        revision: u64,
        /// The number of the record that no longer speaks for its id.
        replaces: Option<u64>,
    },
    /// The same bytes were there already, or the record was gone already.
    Unchanged {
        /// The revision of the record.
        revision: u64,
    },
}

impl Outcome {
    /// The place of the change in the log; nought when there was none.
    fn sequence(&self) -> Sequence {
        match *self {
            Self::Changed { sequence, .. } => sequence,
            Self::Unchanged { .. } => 0,
        }
    }
}

/// Why a batch was not written. Nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The id belongs to somebody else.
    #[error("`{id}` was published by {publisher}; nobody else may change it")]
    NotThePublisher {
        /// Which record.
        id: String,
        /// Whose it is.
        publisher: String,
    },
    /// The record is of another kind.
    #[error("`{id}` is {kind}, and stays one")]
    OtherKind {
        /// Which record.
        id: String,
        /// What it is.
        kind: &'static str,
    },
    /// There is no such record.
    #[error("there is no record `{id}`")]
    NoSuchRecord {
        /// Which record.
        id: String,
    },
    /// The same name was used for other bytes.
    #[error("`{name}` was used before for something else")]
    NameTaken {
        /// Which name.
        name: String,
    },
    /// The disk does not take it. Reading goes on; writing ends until the cause is gone.
    #[error("the store cannot write: {reason}")]
    CannotWrite {
        /// What is the matter with the disk.
        cause: Cause,
        /// What the system says.
        reason: String,
    },
}

/// Why the disk does not take a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is no room; writing goes on when there is.
    Full,
    /// It is read-only; writing goes on when it is not.
    ReadOnly,
    /// It failed; nothing is written until the store is opened again.
    Failed,
    /// Nothing is wrong with it: the history in it is not the one that was known.
    RolledBack,
}

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or a file in it cannot be used.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is open already, here or in another process.
    #[error("the store in {0} is open already; close it, or use the node that has it open")]
    Busy(PathBuf),
    /// A later version of the program wrote it.
    #[error("the store has format {found}, this program knows up to {known}; use a later version of it")]
    LaterFormat {
        /// What the file says.
        found: u32,
        /// What we know.
        known: u32,
    },
    /// The file is no store of ours.
    #[error("{0} is not a Rialto store")]
    NotAStore(PathBuf),
    /// What is on disk is not what was acknowledged.
    #[error("the store is damaged: {0}; restore a backup (`rialto store restore`)")]
    Damaged(Flaw),
    /// The engine refuses.
    #[error("the database cannot be used: {0}")]
    Engine(String),
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the store cannot be read: {0}")]
pub struct ReadError(pub(crate) String);

/// Whether a message was dealt with before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It is new.
    New,
    /// The same bytes came before; this was the answer.
    Same(Committed),
    /// Other bytes came under this name.
    Other,
}

/// The truth, opened.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    pub(crate) jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
    readers: Mutex<Vec<Reader>>,
    sequence: Arc<AtomicU64>,
    growth: Arc<Growth>,
    stopped: Arc<AtomicBool>,
    held: AtomicBool,
    pub(crate) trail: Arc<Trail>,
    pub(crate) settler: Option<Settler>,
    /// Held as long as the store is open: two writers would each promise their own history.
    _lock: File,
}

/// Wakes whoever waits for the log to grow.
#[derive(Debug, Default)]
struct Growth {
    lock: Mutex<()>,
    grown: Condvar,
}

impl Growth {
    fn tell(&self) {
        // Taken and given back, so that nobody looks before the number is there and sleeps after.
        drop(self.lock.lock());
        self.grown.notify_all();
    }
}

pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) reply: Reply,
}

/// Hears what became of a batch, on the thread that writes.
pub(crate) type Reply = Box<dyn FnOnce(Result<Committed, CommitError>) + Send>;

/// Batches that wait for the writer; more of them make their senders wait.
const QUEUE: usize = 4096;
/// Batches in one transaction.
const GROUP: usize = 1024;
/// Changes that are verified whenever the store opens; a store with no more of them is checked as a whole.
const TAIL: u64 = 10_000;
/// How often a disk that took nothing is tried.
const TRIAL: Duration = Duration::from_millis(500);
/// How long a store that is open elsewhere is waited for. After a `kill -9` the lock lives on until the killed process is
/// taken apart, and with a child that it had forked and that has not come to its `exec`; under load that takes a while.
/// A command on the store of a node that serves waits as long before it is refused, which nobody is hurt by.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked for meanwhile.
const LOCK_POLL: Duration = Duration::from_millis(10);

const DATABASE: &str = "rialto.db";
const HEAD: &str = "head";
const LOCK: &str = "lock";

/// Takes the lock, which std opens so that no program started from here inherits it past its `exec`. Another holder is
/// asked again until `patience` is over.
fn lock(folder: &Path, patience: Duration) -> Result<File, OpenError> {
    let path = folder.join(LOCK);
    let failed = |error| OpenError::Io { path: path.clone(), error };
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if waited < patience => {
                std::thread::sleep(LOCK_POLL);
                waited = waited.saturating_add(LOCK_POLL);
            }
            Err(TryLockError::WouldBlock) => return Err(OpenError::Busy(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

impl Store {
    /// Opens the store in a folder, or makes one; what was acknowledged must be there, or it does not open. A store that
    /// another process has open is waited for two seconds, and then refused.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_within(folder, LOCK_PATIENCE)
    }

    /// The same for who knows better how long to wait for another process.
    pub fn open_within(folder: &Path, patience: Duration) -> Result<Self, OpenError> {
        let io = |path: &Path, error| OpenError::Io { path: path.to_owned(), error };
        make_folder(folder).map_err(|error| io(folder, error))?;
        let lock = lock(folder, patience)?;
        let mut database = Database::open(&folder.join(DATABASE))?;
        let path = folder.join(HEAD);
        let (mut head_file, promised) = HeadFile::open(&path).map_err(|error| io(&path, error))?;
        let reader = database.reader()?;
        let head = verify_tail(&reader, promised)?;
        let (trail, head) = follow(folder, &mut database, &reader, head)?;
        if promised != Some(head) {
            head_file.write(head).map_err(|error| io(&path, error.into()))?;
        }
        let sequence = Arc::new(AtomicU64::new(head.sequence));
        let (growth, stopped) = (Arc::new(Growth::default()), Arc::new(AtomicBool::new(false)));
        let (jobs, queue) = sync_channel(QUEUE);
        let writer = Writer {
            database,
            folder: folder.to_owned(),
            head,
            head_file,
            sequence: sequence.clone(),
            growth: growth.clone(),
            stopped: stopped.clone(),
            given_up: None,
        };
        let writer = std::thread::Builder::new().name("store-writer".into()).spawn(move || writer.run(&queue));
        let settler = Settler::start(&trail, &jobs).map_err(|error| io(folder, error))?;
        Ok(Self {
            folder: folder.to_owned(),
            jobs: Some(jobs),
            writer: Some(writer.map_err(|error| io(folder, error))?),
            readers: Mutex::new(vec![reader]),
            sequence,
            growth,
            stopped,
            held: AtomicBool::new(false),
            trail,
            settler: Some(settler),
            _lock: lock,
        })
    }

    /// Writes a batch and waits until it is on disk.
    pub fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.write((batch, None))
    }

    /// The same without waiting: `reply` hears what came of it, on the writer's thread, which it must not hold up.
    pub fn commit_then(&self, batch: Batch, reply: impl FnOnce(Result<Committed, CommitError>) + Send + 'static) {
        self.send((batch, None), Box::new(reply));
    }

    /// The same with what delivery made: both are on disk or neither. Where the batch has a mark that is known, nothing
    /// of either is written again.
    pub fn deliver(&self, batch: Batch, feed: Feed) -> Result<Committed, CommitError> {
        self.write((batch, Some(Box::new(feed))))
    }

    /// Takes nothing in from now on: somebody outside knows a history that this one contradicts.
    pub fn hold(&self) {
        self.held.store(true, Ordering::Release);
    }

    pub(crate) fn write(&self, work: Work) -> Result<Committed, CommitError> {
        let (reply, answer) = channel();
        // Nobody waits for a reply that was given up.
        self.send(work, Box::new(move |committed| drop(reply.send(committed))));
        answer.recv().map_err(|_| gone())?
    }

    fn send(&self, work: Work, reply: Reply) {
        if let Err(held) = self.taking() {
            return reply(Err(held));
        }
        match &self.jobs {
            Some(jobs) => {
                if let Err(unsent) = jobs.send(Job { work, reply }) {
                    (unsent.0.reply)(Err(gone()));
                }
            }
            None => reply(Err(gone())),
        }
    }

    /// Whether anything is taken in.
    pub(crate) fn taking(&self) -> Result<(), CommitError> {
        if self.held.load(Ordering::Acquire) {
            let reason = "the history is not the one that was known".to_owned();
            return Err(CommitError::CannotWrite { cause: Cause::RolledBack, reason });
        }
        Ok(())
    }

    /// The last change that is on disk.
    pub fn sequence(&self) -> Sequence {
        self.sequence.load(Ordering::Acquire)
    }

    /// Waits until the log has grown past a change, somebody wakes the waiting, or the time is over.
    pub fn wait_past(&self, sequence: Sequence, patience: Duration) {
        let Ok(lock) = self.growth.lock.lock() else { return };
        if self.sequence() <= sequence {
            let _ = self.growth.grown.wait_timeout(lock, patience);
        }
    }

    /// Wakes whoever waits for the log to grow.
    pub fn wake(&self) {
        self.growth.tell();
    }

    /// Standing intents after a number, in order, at most `limit` of them.
    pub fn subscriptions_after(&self, number: u64, limit: usize) -> Result<Vec<Subscription>, ReadError> {
        self.read(|reader| reader.subscriptions_after(number, limit))
    }

    /// A standing intent by its name.
    pub fn subscription(&self, id: &str) -> Result<Option<Subscription>, ReadError> {
        self.read(|reader| reader.subscription(id))
    }

    /// A standing intent by what its issuer calls it.
    pub fn subscription_of(&self, issuer: &str, intent_id: &str) -> Result<Option<Subscription>, ReadError> {
        self.read(|reader| reader.subscription_of(issuer, intent_id))
    }

    /// Events of a journal after a cursor, in order, at most `limit`, and no more once there are so many bytes.
    pub fn events_after(
        &self,
        subscription: u64,
        cursor: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Event>, ReadError> {
        self.read(|reader| reader.events_after(subscription, cursor, limit, bytes))
    }

    /// When an event was written, in milliseconds since 1970; `None` when there is none at this cursor.
    pub fn event_time(&self, subscription: u64, cursor: u64) -> Result<Option<i64>, ReadError> {
        self.read(|reader| reader.event_time(subscription, cursor))
    }

    /// The first events of a journal: cursor, time, bytes.
    pub fn oldest_events(&self, subscription: u64, limit: usize) -> Result<Vec<(u64, i64, u64)>, ReadError> {
        self.read(|reader| reader.oldest_events(subscription, limit))
    }

    /// What waits for a subscriber, the longest first.
    pub fn pending(&self, subscription: u64, limit: usize) -> Result<Vec<Pending>, ReadError> {
        self.read(|reader| reader.pending(subscription, limit))
    }

    /// What waits for a subscriber about one record.
    pub fn pending_about(&self, subscription: u64, record: &str) -> Result<Option<Pending>, ReadError> {
        self.read(|reader| reader.pending_about(subscription, record))
    }

    /// Whether a subscriber was told last that a record is in its answer; `None` when it was told nothing of it.
    pub fn told(&self, subscription: u64, record: &str) -> Result<Option<bool>, ReadError> {
        self.read(|reader| reader.told(subscription, record))
    }

    /// How many records wait for a subscriber.
    pub fn pending_count(&self, subscription: u64) -> Result<u64, ReadError> {
        self.read(|reader| reader.pending_count(subscription))
    }

    /// How far the change log is delivered; `None` when it never was.
    pub fn delivered(&self) -> Result<Option<Sequence>, ReadError> {
        self.read(|reader| reader.delivered())
    }

    /// Everywhere that events are brought, by the number of the standing intent.
    pub fn webhooks(&self) -> Result<Vec<(u64, Webhook)>, ReadError> {
        self.read(|reader| reader.webhooks())
    }

    /// The events of a subscriber that were given up, the first one first.
    pub fn dead_letters(&self, subscription: u64) -> Result<Vec<DeadLetter>, ReadError> {
        self.read(|reader| reader.dead_letters(subscription))
    }

    /// How far the tree over public manifests is level with the log, and how many leaves it has.
    pub fn tree(&self) -> Result<(Sequence, u64), ReadError> {
        self.read(|reader| Ok((reader.indexed()?, reader.leaf_count()?)))
    }

    /// The leaf that speaks for a manifest at a change.
    pub fn leaf_of(&self, manifest: &str, at: Sequence) -> Result<Option<Leaf>, ReadError> {
        self.read(|reader| reader.leaf_of(manifest, at))
    }

    /// The hash of a whole subtree; none when it is not there, or not what was written.
    pub fn branch(&self, level: u8, position: u64) -> Result<Option<Hash>, ReadError> {
        self.read(|reader| reader.branch(level, position))
    }

    /// Whether the disk took nothing when it was last tried, or nothing is to be taken in.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) || self.held.load(Ordering::Acquire) || self.trail.is_broken()
    }

    /// Changes after a place in the log, in order, at most `limit` of them.
    pub fn changes_after(&self, sequence: Sequence, limit: usize) -> Result<Vec<Change>, ReadError> {
        self.read(|reader| reader.changes_after(sequence, limit))
    }

    /// The active record of an id.
    pub fn record(&self, id: &str) -> Result<Option<Record>, ReadError> {
        self.read(|reader| reader.latest(id)).map(|found| found.filter(|record| record.state == State::Active))
    }

    /// Which record an id stands for; its body is not touched, so this takes as long for a long one as for a short one.
    pub fn listed(&self, id: &str) -> Result<Option<Listed>, ReadError> {
        self.read(|reader| reader.listed(id))
    }

    /// The latest revision of an id, whatever its state.
    pub fn latest(&self, id: &str) -> Result<Option<Record>, ReadError> {
        self.read(|reader| reader.latest(id))
    }

    /// A record by its number.
    pub fn by_number(&self, number: u64) -> Result<Option<Record>, ReadError> {
        self.read(|reader| reader.by_number(number))
    }

    /// The bodies of records by their numbers, in the order asked; `None` for a number that no record has.
    pub fn bodies(&self, numbers: &[u64]) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
        self.read(|reader| reader.bodies(numbers))
    }

    /// Shows active records after a number, in order, at most `limit`; for whoever builds an index.
    pub fn active_after(&self, number: u64, limit: usize) -> Result<Vec<Record>, ReadError> {
        self.read(|reader| reader.active_after(number, limit))
    }

    /// Whether a message was dealt with before.
    pub fn marked(&self, issuer: &str, name: &str, digest: Hash) -> Result<Marked, ReadError> {
        self.read(|reader| reader.mark(issuer, name)).map(|found| match found {
            None => Marked::New,
            Some(mark) if mark.digest != digest => Marked::Other,
            // What is in the database and not yet in the head is not acknowledged: the writer decides about it.
            Some(mark) if mark.committed.outcomes.iter().any(|outcome| outcome.sequence() > self.sequence()) => {
                Marked::New
            }
            Some(mark) => Marked::Same(mark.committed),
        })
    }

    /// Reads everything and compares it with the log.
    pub fn check(&self) -> Result<Soundness, ReadError> {
        self.fold()?;
        self.read(|reader| reader.check(true))
    }

    /// Copies the store into an empty or new folder while it goes on.
    pub fn backup(&self, folder: &Path) -> Result<(), crate::BackupError> {
        make_folder(folder)?;
        let copy = folder.join(DATABASE);
        if copy.exists() {
            return Err(crate::BackupError::NotEmpty(folder.to_owned()));
        }
        crate::sqlite::backup(&self.folder.join(DATABASE), &copy)?;
        // The copy is its own promise: its head is what it holds, once that is verified.
        let broken = |error: &dyn std::fmt::Display| crate::BackupError::Copy(error.to_string());
        let reader = Reader::open(&copy).map_err(|error| broken(&error))?;
        let head = reader.verify(0, true).map_err(|error| broken(&error))?.map_err(|flaw| broken(&flaw))?;
        let (mut head_file, _) = HeadFile::open(&folder.join(HEAD))?;
        Ok(head_file.write(head).map_err(std::io::Error::from)?)
    }

    pub(crate) fn read<T>(&self, ask: impl Fn(&Reader) -> Result<T, EngineError>) -> Result<T, ReadError> {
        let spare = self.readers.lock().ok().and_then(|mut readers| readers.pop());
        let reader = match spare {
            Some(reader) => reader,
            None => Reader::open(&self.folder.join(DATABASE)).map_err(|error| ReadError(error.to_string()))?,
        };
        let answer = ask(&reader).map_err(|error| ReadError(error.to_string()));
        if let Ok(mut readers) = self.readers.lock() {
            readers.push(reader);
        }
        answer
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Whoever opens the store next finds everything in the tables, if the disk takes it.
        let _ = self.fold();
        self.settler.take();
        // The writer's connection must be the last to close: it folds the write-ahead log in.
        if let Ok(mut readers) = self.readers.lock() {
            readers.clear();
        }
        self.jobs.take();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Compares the end of the log with what the head promises.
fn verify_tail(reader: &Reader, promised: Option<Head>) -> Result<Head, OpenError> {
    let engine = |error: EngineError| OpenError::Engine(error.to_string());
    let last = reader.last_sequence().map_err(engine)?;
    if let Some(promised) = promised {
        if promised.sequence > last {
            let missing = Flaw::TailMissing { promised: promised.sequence, found: last };
            return Err(OpenError::Damaged(missing));
        }
        let there = reader.hash_at(promised.sequence).map_err(engine)?;
        if there != Some(promised.hash) {
            return Err(OpenError::Damaged(Flaw::OtherHistory { sequence: promised.sequence }));
        }
        let written = reader.written().map_err(engine)?;
        if promised.written > written {
            let missing = Flaw::JournalsMissing { promised: promised.written, found: written };
            return Err(OpenError::Damaged(missing));
        }
    } else if last > 0 {
        return Err(OpenError::Damaged(Flaw::HeadMissing { found: last }));
    }
    let head = reader.verify(last.saturating_sub(TAIL), true).map_err(engine)?.map_err(OpenError::Damaged)?;
    // What is small enough is looked at as a whole, so that damage is found before anybody is answered from it.
    if last <= TAIL
        && let Some(flaw) = reader.check(false).map_err(engine)?.flaws.into_iter().next()
    {
        return Err(OpenError::Damaged(flaw));
    }
    Ok(head)
}

/// Puts what a crash left in the trail of engagements into the tables, and promises it.
fn follow(
    folder: &Path,
    database: &mut Database,
    reader: &Reader,
    head: Head,
) -> Result<(Arc<Trail>, Head), OpenError> {
    let engine = |error: EngineError| OpenError::Engine(error.to_string());
    let (trail, left) = Trail::open(folder, reader.folded().map_err(engine)?)?;
    let Some(journal) = left else { return Ok((Arc::new(trail), head)) };
    let feed = Feed { journal, folded: Some(trail.last()), ..Feed::default() };
    let (head, answers) = database.write(head, &[(Batch::default(), Some(Box::new(feed)))]).map_err(engine)?;
    if let Some(Err(refused)) = answers.into_iter().next() {
        return Err(OpenError::Damaged(Flaw::Trail(refused.to_string())));
    }
    trail.clear().map_err(|error| OpenError::Io { path: folder.to_owned(), error })?;
    Ok((Arc::new(trail), head))
}

struct Writer {
    database: Database,
    folder: PathBuf,
    head: Head,
    head_file: HeadFile,
    sequence: Arc<AtomicU64>,
    growth: Arc<Growth>,
    stopped: Arc<AtomicBool>,
    /// Why nothing is written until the store is opened again.
    given_up: Option<String>,
}

impl Writer {
    fn run(mut self, queue: &Receiver<Job>) {
        while let Some(first) = self.next(queue) {
            let mut jobs = vec![first];
            jobs.extend(queue.try_iter().take(GROUP - 1));
            let (batches, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.work, job.reply)).unzip();
            let answers = self.write(&batches);
            for (reply, answer) in replies.into_iter().zip(answers) {
                reply(answer);
            }
        }
    }

    /// The next job; while the disk takes nothing, it is tried from time to time.
    fn next(&mut self, queue: &Receiver<Job>) -> Option<Job> {
        while self.given_up.is_none() && self.stopped.load(Ordering::Acquire) {
            match queue.recv_timeout(TRIAL) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.stopped.store(room::is_wanting(&self.folder), Ordering::Release),
            }
        }
        queue.recv().ok()
    }

    /// Writes a group of batches; a batch that cannot be is left out, the others go on.
    fn write(&mut self, batches: &[Work]) -> Answers {
        if let Some(reason) = &self.given_up {
            return refuse(batches, Cause::Failed, reason);
        }
        match self.write_and_promise(batches) {
            Ok(answers) => {
                if self.sequence.swap(self.head.sequence, Ordering::AcqRel) != self.head.sequence {
                    self.growth.tell();
                }
                self.stopped.store(false, Ordering::Release);
                answers
            }
            Err(error) => {
                self.stopped.store(true, Ordering::Release);
                let (reason, verdict) = (error.to_string(), error.verdict());
                let cause = match verdict {
                    Verdict::Full => Cause::Full,
                    Verdict::Unclear => room::cause(&self.folder),
                    Verdict::Broken | Verdict::Passing => Cause::Failed,
                };
                if cause == Cause::Failed && verdict != Verdict::Passing {
                    self.given_up = Some(reason.clone());
                }
                refuse(batches, cause, &reason)
            }
        }
    }

    fn write_and_promise(&mut self, batches: &[Work]) -> Result<Answers, EngineError> {
        let (head, answers) = self.database.write(self.head, batches)?;
        // From here on the database has it, whatever becomes of the head; the next promise covers it, too.
        let grown = head != self.head;
        self.head = head;
        if grown {
            self.head_file.write(head).map_err(|error| match error {
                HeadError::Write(error) => EngineError::Unwritten(error),
                HeadError::Sync(error) => EngineError::Unsynced(error),
            })?;
        }
        Ok(answers)
    }
}

pub(crate) fn gone() -> CommitError {
    CommitError::CannotWrite { cause: Cause::Failed, reason: "the writer has ended".to_owned() }
}

fn refuse(batches: &[Work], cause: Cause, reason: &str) -> Answers {
    batches.iter().map(|_| Err(CommitError::CannotWrite { cause, reason: reason.to_owned() })).collect()
}

/// What a batch does to the log, before it is written.
pub(crate) fn change(head: Head, operation: Operation, record: &Record, replaces: Option<u64>, at: i64) -> Change {
    let mut change = Change {
        sequence: head.sequence + 1,
        operation,
        id: record.id.clone(),
        kind: record.kind,
        revision: record.revision,
        publisher: record.publisher.clone(),
        at,
        replaces,
        body: Hash::of(&record.body),
        hash: Hash::GENESIS,
    };
    change.hash = change.chained(head.hash);
    change
}
