//! RFC 0020 §5: what was answered, so that the same question gets the same answer and nobody reuses its name.
//!
//! Answers are appended to files and remembered until their intents expire. A file write is enough: a kill does not
//! lose it, and after a loss of power the question is merely answered anew. Files whose intents have all expired are
//! deleted. When the files outgrow their bound the oldest answers go; their names stay taken until they expire. The
//! same happens to an answer that the disk does not take or gives back altered (decisions/0070).
//!
//! Writing an answer takes longer than everything else that is done here, so nobody waits for somebody else's: several
//! files grow side by side, each with a lock of its own, and the lock of all names is held only to put one down.
//!
//! INVARIANT: what is given back is, byte for byte, what was kept.
//! INVARIANT: whoever holds the lock of a file may take the lock of the names, never the other way round.

use crate::refusal::{Class, Error, Refusal};
use rustix::fs::Advice;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// Files that grow at the same time.
const GROWING: usize = 4;
/// Bytes from which on a new file is begun.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes of all files together.
const TOTAL_BYTES: u64 = 1 << 30;
/// Bytes after which a file is let go from memory: hardly anybody asks the same question again, and what the system would
/// keep in memory for that is taken from what every question needs.
const SETTLED_BYTES: u64 = 1 << 20;
/// Names that are remembered.
const NAMES_MAX: usize = 2_000_000;
/// Bytes before each answer: a checksum of the rest, the length, the answer's checksum, the key, the digest, the expiry.
const HEADER: usize = 4 + 4 + 4 + 16 + 16 + 8;

/// The file of an answer that no file has.
const NOWHERE: u32 = u32::MAX;

/// What a message is remembered by: who asked, under which name, for which page.
pub(crate) type Key = [u8; 16];

/// Makes the key of a message.
pub(crate) fn key(issuer: &str, name: &str, cursor: &str) -> Key {
    let mut digest = Sha256::new();
    for part in [issuer, name, cursor] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    short(&digest.finalize())
}

/// Makes the digest of a message's bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    short(&Sha256::digest(bytes))
}

fn short(digest: &[u8]) -> [u8; 16] {
    digest.first_chunk().copied().unwrap_or_default()
}

/// What is known of a message.
#[derive(Debug)]
pub(crate) enum Known {
    /// It is new, and this caller answers it.
    New,
    /// The same bytes were answered with this.
    Answered(Vec<u8>),
    /// Other bytes came under this name.
    Other,
}

/// Answers given, by question.
#[derive(Debug)]
pub(crate) struct Replies {
    folder: PathBuf,
    state: Mutex<State>,
    growing: [Mutex<Option<Growing>>; GROWING],
    done: Condvar,
}

/// A file that answers are appended to.
#[derive(Debug)]
struct Growing {
    number: u32,
    file: Arc<File>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    names: HashMap<Key, Name>,
    files: BTreeMap<u32, Spool>,
    /// Questions that somebody is answering.
    pending: HashSet<Key>,
    /// How many wait for such an answer; telling nobody costs a call of the system, too.
    waiting: usize,
}

#[derive(Clone, Copy, Debug)]
struct Name {
    digest: [u8; 16],
    expires: i64,
    file: u32,
    offset: u64,
    length: u32,
    checksum: u32,
}

#[derive(Debug)]
struct Spool {
    file: Arc<File>,
    bytes: u64,
    expires: i64,
    /// Whether answers are still appended to it; until then it stays.
    grows: bool,
}

impl Replies {
    /// Opens the folder and learns what was answered.
    pub(crate) fn open(folder: &Path, now: i64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut state = State::default();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            if let Some(number) = number.filter(|_| path.extension().is_some_and(|extension| extension == "log")) {
                let spool = state.learn(number, &path, now)?;
                state.files.insert(number, spool);
            }
        }
        let mut room = state.files.iter_mut().rev().filter(|(_, spool)| spool.bytes < FILE_BYTES);
        let growing = std::array::from_fn(|_| {
            let (number, spool) = room.next()?;
            spool.grows = true;
            Some(Growing { number: *number, file: Arc::clone(&spool.file), bytes: spool.bytes })
        });
        let growing = growing.map(Mutex::new);
        let replies = Self { folder: folder.to_owned(), state: Mutex::new(state), growing, done: Condvar::new() };
        replies.forget(now)?;
        Ok(replies)
    }

    /// Looks a message up; whoever hears [`Known::New`] must call [`Replies::keep`] or [`Replies::give_up`].
    ///
    /// Whoever asks the same while it is being answered waits for that answer.
    pub(crate) fn claim(&self, key: Key, digest: [u8; 16], now: i64) -> Result<Known, Error> {
        let mut state = self.lock()?;
        while state.pending.contains(&key) {
            state.waiting += 1;
            state = self.done.wait(state).map_err(|_| poisoned())?;
            state.waiting -= 1;
        }
        match state.names.get(&key).copied().filter(|name| name.expires >= now) {
            Some(name) if name.digest != digest => Ok(Known::Other),
            Some(name) => match state.read(&name) {
                Some(answer) => Ok(Known::Answered(answer)),
                None => {
                    state.pending.insert(key);
                    Ok(Known::New)
                }
            },
            None if state.names.len() + state.pending.len() >= NAMES_MAX => Err(full().into()),
            None => {
                state.pending.insert(key);
                Ok(Known::New)
            }
        }
    }

    /// Whether another message came under this name; looks only.
    pub(crate) fn is_other(&self, key: Key, digest: [u8; 16], now: i64) -> Result<bool, Error> {
        let state = self.lock()?;
        Ok(state.names.get(&key).is_some_and(|name| name.expires >= now && name.digest != digest))
    }

    /// The answer under a key, as long as it is kept.
    pub(crate) fn answer(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        let state = self.lock()?;
        Ok(state.names.get(&key).and_then(|name| state.read(name)))
    }

    /// Remembers an answer before it is sent; when the disk does not take it, only that its name is taken.
    pub(crate) fn keep(&self, key: Key, digest: [u8; 16], expires: i64, answer: &[u8], now: i64) -> Result<(), Error> {
        let mut growing = self.growing();
        let appended = self.append(&mut growing, key, digest, expires, answer);
        let mut state = self.lock()?;
        let (name, begun) = match &appended {
            Ok(appended) => *appended,
            Err(_) => (Name { digest, expires, file: NOWHERE, offset: 0, length: 0, checksum: 0 }, false),
        };
        if let Some((spool, growing)) = state.files.get_mut(&name.file).zip(growing.as_ref()) {
            spool.bytes = growing.bytes;
            spool.expires = spool.expires.max(expires);
        }
        state.names.insert(key, name);
        self.done_with(state, &key);
        drop(growing);
        let kept = appended.and_then(|_| if begun { self.forget(now) } else { Ok(()) });
        if let Err(error) = kept {
            tracing::warn!(%error, "an answer cannot be kept; the same question will be answered anew");
        }
        Ok(())
    }

    /// A file that nobody else appends to at the moment; the first one where all are in use.
    fn growing(&self) -> MutexGuard<'_, Option<Growing>> {
        let [first, ..] = &self.growing;
        let free = self.growing.iter().find_map(|growing| match growing.try_lock() {
            Ok(growing) => Some(growing),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        // What broke off while appending is not counted in, and is written over.
        free.unwrap_or_else(|| first.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Appends an answer; says where it is, and whether a new file was begun for it.
    fn append(
        &self,
        growing: &mut Option<Growing>,
        key: Key,
        digest: [u8; 16],
        expires: i64,
        answer: &[u8],
    ) -> io::Result<(Name, bool)> {
        let length = u32::try_from(answer.len()).map_err(io::Error::other)?;
        let begun = growing.as_ref().is_none_or(|growing| growing.bytes >= FILE_BYTES);
        if begun {
            *growing = Some(self.begin(growing.as_ref().map(|full| full.number))?);
        }
        let Some(Growing { number, file, bytes }) = growing else { return Err(io::ErrorKind::NotFound.into()) };
        let offset = *bytes + HEADER as u64;
        let name = Name { digest, expires, file: *number, offset, length, checksum: crc32fast::hash(answer) };
        let header = write_header(key, &name);
        let written = rustix::io::pwritev(&*file, &[IoSlice::new(&header), IoSlice::new(answer)], *bytes)?;
        // The system rarely takes less than it is given, and then it is given the rest.
        if let Some(rest) = header.get(written..).filter(|rest| !rest.is_empty()) {
            file.write_all_at(rest, *bytes + written as u64)?;
        }
        let told = written.saturating_sub(HEADER);
        if let Some(rest) = answer.get(told..).filter(|rest| !rest.is_empty()) {
            file.write_all_at(rest, offset + told as u64)?;
        }
        let before = *bytes / SETTLED_BYTES;
        *bytes = offset + u64::from(length);
        if *bytes / SETTLED_BYTES > before {
            settle(file, before);
        }
        Ok((name, begun))
    }

    /// Begins a file in place of one that is full.
    fn begin(&self, full: Option<u32>) -> io::Result<Growing> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.files.keys().next_back().map_or(0, |last| last + 1);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path(&self.folder, number))?;
        let file = Arc::new(file);
        state.files.insert(number, Spool { file: Arc::clone(&file), bytes: 0, expires: i64::MIN, grows: true });
        if let Some(full) = full.and_then(|full| state.files.get_mut(&full)) {
            full.grows = false;
        }
        Ok(Growing { number, file, bytes: 0 })
    }

    /// Gives a question back that could not be answered.
    pub(crate) fn give_up(&self, key: Key) {
        if let Ok(state) = self.state.lock() {
            self.done_with(state, &key);
        }
    }

    /// Lets go of a question and tells those who wait.
    fn done_with(&self, mut state: MutexGuard<'_, State>, key: &Key) {
        state.pending.remove(key);
        if state.waiting > 0 {
            self.done.notify_all();
        }
    }

    /// Forgets what has expired, and the oldest answers beyond the bound.
    pub(crate) fn forget(&self, now: i64) -> io::Result<()> {
        let Ok(mut state) = self.state.lock() else { return Ok(()) };
        state.names.retain(|_, name| name.expires >= now);
        let mut total: u64 = state.files.values().map(|spool| spool.bytes).sum();
        let mut gone = Vec::new();
        for (number, spool) in &state.files {
            if !spool.grows && (spool.expires < now || total > TOTAL_BYTES) {
                total -= spool.bytes;
                gone.push(*number);
            }
        }
        for number in gone {
            state.files.remove(&number);
            fs::remove_file(path(&self.folder, number))?;
        }
        Ok(())
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.state.lock().map_err(|_| poisoned())
    }
}

impl State {
    /// Reads the headers of a file; what follows a damaged or cut one is given up.
    fn learn(&mut self, number: u32, path: &Path, now: i64) -> io::Result<Spool> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let end = file.metadata()?.len();
        let (mut offset, mut latest) = (0, i64::MIN);
        let mut header = [0; HEADER];
        while file.read_exact_at(&mut header, offset).is_ok() {
            let Some((key, mut name)) = read_header(&header) else { break };
            let next = offset + HEADER as u64 + u64::from(name.length);
            if next > end {
                break;
            }
            (name.file, name.offset) = (number, offset + HEADER as u64);
            latest = latest.max(name.expires);
            if name.expires >= now {
                self.names.insert(key, name);
            }
            offset = next;
        }
        file.set_len(offset)?;
        Ok(Spool { file: Arc::new(file), bytes: offset, expires: latest, grows: false })
    }

    fn read(&self, name: &Name) -> Option<Vec<u8>> {
        let spool = self.files.get(&name.file)?;
        let mut answer = vec![0; name.length as usize];
        spool.file.read_exact_at(&mut answer, name.offset).ok()?;
        (crc32fast::hash(&answer) == name.checksum).then_some(answer)
    }
}

/// Lets the system write a stretch of a file, and forget the one before it, which it was told to write the last time.
fn settle(file: &File, number: u64) {
    // It is a hint only: without it the system does the same later.
    let from = number.saturating_sub(1) * SETTLED_BYTES;
    let _ = rustix::fs::fadvise(file, from, NonZeroU64::new(2 * SETTLED_BYTES), Advice::DontNeed);
}

fn write_header(key: Key, name: &Name) -> Vec<u8> {
    let mut rest = Vec::with_capacity(HEADER);
    rest.extend(name.length.to_le_bytes());
    rest.extend(name.checksum.to_le_bytes());
    rest.extend(key);
    rest.extend(name.digest);
    rest.extend(name.expires.to_le_bytes());
    let mut header = crc32fast::hash(&rest).to_le_bytes().to_vec();
    header.append(&mut rest);
    header
}

fn read_header(header: &[u8; HEADER]) -> Option<(Key, Name)> {
    let (checksum, rest) = header.split_first_chunk::<4>()?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (answer, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_first_chunk::<16>()?;
    let (digest, rest) = rest.split_first_chunk::<16>()?;
    let expires = i64::from_le_bytes(*rest.first_chunk::<8>()?);
    let (length, checksum) = (u32::from_le_bytes(*length), u32::from_le_bytes(*answer));
    Some((*key, Name { digest: *digest, expires, file: 0, offset: 0, length, checksum }))
}

fn path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.log"))
}

fn full() -> Refusal {
    Refusal::new(
        Class::Unavailable,
        "replay_table_full",
        "the node remembers as many open intents as it can; try later",
    )
    .limited("replay.names", NAMES_MAX as u64, NAMES_MAX as u64 + 1)
}

fn poisoned() -> Error {
    Error::fault("an answer was interrupted; the node must be started again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(known: Known) -> Vec<u8> {
        match known {
            Known::Answered(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_same_question_gets_the_same_answer_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (key("i", "1", ""), key("i", "2", ""));
        let replies = Replies::open(folder.path(), 0).unwrap();
        for (key, answer, expires) in [(one, "first", 100), (two, "second", 50)] {
            assert!(matches!(replies.claim(key, digest(b"q"), 0).unwrap(), Known::New));
            replies.keep(key, digest(b"q"), expires, answer.as_bytes(), 0).unwrap();
        }
        drop(replies);
        let replies = Replies::open(folder.path(), 60).unwrap();
        assert_eq!(answered(replies.claim(one, digest(b"q"), 60).unwrap()), b"first");
        assert!(matches!(replies.claim(one, digest(b"other"), 60).unwrap(), Known::Other));
        assert!(matches!(replies.claim(two, digest(b"q"), 60).unwrap(), Known::New), "expired");
    }

    #[test]
    fn a_cut_tail_is_given_up_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let replies = Replies::open(folder.path(), 0).unwrap();
        for name in ["1", "2"] {
            replies.keep(key("i", name, ""), digest(b"q"), 100, name.repeat(40).as_bytes(), 0).unwrap();
        }
        drop(replies);
        let file = OpenOptions::new().write(true).open(path(folder.path(), 0)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        let replies = Replies::open(folder.path(), 0).unwrap();
        assert_eq!(answered(replies.claim(key("i", "1", ""), digest(b"q"), 0).unwrap()), "1".repeat(40).as_bytes());
        assert!(matches!(replies.claim(key("i", "2", ""), digest(b"q"), 0).unwrap(), Known::New));
        replies.keep(key("i", "2", ""), digest(b"q"), 100, b"again", 0).unwrap();
        drop(replies);
        let replies = Replies::open(folder.path(), 0).unwrap();
        assert_eq!(answered(replies.claim(key("i", "2", ""), digest(b"q"), 0).unwrap()), b"again");
    }

    #[test]
    fn an_altered_answer_is_not_given_back_and_its_name_stays_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (altered, whole) = (key("i", "1", ""), key("i", "2", ""));
        let replies = Replies::open(folder.path(), 0).unwrap();
        for key in [altered, whole] {
            replies.keep(key, digest(b"q"), 100, b"the answer", 0).unwrap();
        }
        drop(replies);
        let file = OpenOptions::new().write(true).open(path(folder.path(), 0)).unwrap();
        file.write_all_at(b"X", HEADER as u64 + 3).unwrap();
        let replies = Replies::open(folder.path(), 0).unwrap();
        assert!(matches!(replies.claim(altered, digest(b"other"), 0).unwrap(), Known::Other));
        assert!(matches!(replies.claim(altered, digest(b"q"), 0).unwrap(), Known::New));
        assert_eq!(answered(replies.claim(whole, digest(b"q"), 0).unwrap()), b"the answer");
    }

    #[test]
    fn what_is_kept_side_by_side_is_given_back_as_it_was_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let of = |thread: usize, number: usize| {
            let answer = format!("{thread} answers {number} ").repeat(1 + (thread * 7 + number) % 900);
            (key("i", &format!("{thread}-{number}"), ""), answer.into_bytes())
        };
        let all = || (0..8).flat_map(|thread| (0..200).map(move |number| of(thread, number)));
        let check = |replies: &Replies| {
            all().for_each(|(key, answer)| {
                assert!(answered(replies.claim(key, digest(b"q"), 0).unwrap()) == answer);
            });
        };
        let replies = Replies::open(folder.path(), 0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let replies = &replies;
                scope.spawn(move || {
                    (0..200).for_each(|number| {
                        let (key, answer) = of(thread, number);
                        replies.keep(key, digest(b"q"), 9, &answer, 0).unwrap();
                    });
                });
            }
        });
        check(&replies);
        // A held file does not hold up whoever keeps the next answer.
        let held = replies.growing();
        let (other, answer) = (key("i", "other", ""), b"beside it");
        replies.keep(other, digest(b"q"), 9, answer, 0).unwrap();
        drop(held);
        let files = || fs::read_dir(folder.path()).unwrap().count();
        let before = files();
        assert!(before <= GROWING, "{before}");
        drop(replies);
        let replies = Replies::open(folder.path(), 0).unwrap();
        check(&replies);
        assert_eq!(answered(replies.claim(other, digest(b"q"), 0).unwrap()), answer);
        // What has room left is filled before another file is begun.
        replies.keep(key("i", "next", ""), digest(b"q"), 9, b"next", 0).unwrap();
        assert_eq!(files(), before);
    }

    #[test]
    fn files_that_grow_stay_and_others_go_once_they_have_expired() {
        let folder = tempfile::tempdir().unwrap();
        let replies = Replies::open(folder.path(), 0).unwrap();
        let full = vec![b'x'; FILE_BYTES as usize];
        for (name, expires) in [("1", 5), ("2", 50)] {
            replies.keep(key("i", name, ""), digest(b"q"), expires, &full, 0).unwrap();
        }
        let numbers = |replies: &Replies| replies.lock().unwrap().files.keys().copied().collect::<Vec<_>>();
        assert_eq!(numbers(&replies), [0, 1]);
        replies.forget(10).unwrap();
        assert_eq!(numbers(&replies), [1], "the first has expired and is full");
        replies.forget(60).unwrap();
        assert_eq!(numbers(&replies), [1], "the second may still grow");
        replies.keep(key("i", "3", ""), digest(b"q"), 90, b"small", 60).unwrap();
        assert_eq!(numbers(&replies), [2], "a new file was begun, and the full one went");
        assert!(matches!(replies.claim(key("i", "2", ""), digest(b"q"), 60).unwrap(), Known::New));
        assert_eq!(answered(replies.claim(key("i", "3", ""), digest(b"q"), 60).unwrap()), b"small");
    }

    #[test]
    fn of_many_who_ask_the_same_at_once_one_answers() {
        let folder = tempfile::tempdir().unwrap();
        let replies = Replies::open(folder.path(), 0).unwrap();
        let key = key("i", "1", "");
        let answers = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match replies.claim(key, digest(b"q"), 0).unwrap() {
                    Known::New => {
                        answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        std::thread::yield_now();
                        replies.keep(key, digest(b"q"), 9, b"the answer", 0).unwrap();
                    }
                    known => assert_eq!(answered(known), b"the answer"),
                });
            }
        });
        assert_eq!(answers.into_inner(), 1);
    }
}
