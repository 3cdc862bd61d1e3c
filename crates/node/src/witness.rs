//! How far the history had come, written down outside of the data folder.
//!
//! A folder that is put back to an earlier state as a whole, head and all, is sound by itself: nothing in it can tell. So
//! an operator may name a file elsewhere, on another disk best, in which the node notes the end of its log every half
//! second. A node whose log does not reach that far, or is another one there, starts and answers, and takes nothing in
//! (decisions/0066).
//!
//! INVARIANT: what is noted never goes back.

use crate::refusal::Error;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use store::{Hash, Store};
use trust::{Did, Digest};

/// A file that remembers how far a log had come.
#[derive(Debug)]
pub(crate) struct Witness {
    path: PathBuf,
    node: String,
    noted: Mutex<u64>,
    /// Whether the log is not the one that was noted; then nothing is noted any more.
    contradicted: bool,
}

/// The end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    sequence: u64,
    hash: String,
    node: String,
}

impl Mark {
    /// One line, with a checksum over it.
    fn line(&self) -> String {
        let said = format!("{} {} {}", self.sequence, self.hash, self.node);
        format!("{said} {}\n", Digest::of(said.as_bytes()))
    }

    fn read(line: &str) -> Option<Self> {
        let (said, digest) = line.trim_end().rsplit_once(' ')?;
        let mut parts = said.splitn(3, ' ');
        let mut next = || parts.next().map(str::to_owned);
        let mark = Self { sequence: next()?.parse().ok()?, hash: next()?, node: next()? };
        (Digest::of(said.as_bytes()) == Digest::read(digest)?).then_some(mark)
    }
}

/// The hash of the log at a change.
fn hash_at(store: &Store, sequence: u64) -> Result<Option<Hash>, Error> {
    let Some(before) = sequence.checked_sub(1) else { return Ok(Some(Hash::GENESIS)) };
    Ok(store.changes_after(before, 1)?.first().filter(|change| change.sequence == sequence).map(|change| change.hash))
}

impl Witness {
    /// Reads what was noted and compares it with the log; when they contradict each other the store takes nothing in.
    pub(crate) fn open(path: &Path, store: &Store, node: &Did) -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::fault(format!("the witness {}: {error}", path.display()));
        let noted = match fs::read_to_string(path) {
            Ok(text) => Some(Mark::read(&text).ok_or_else(|| failed(&"it is damaged; look why, then delete it"))?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&error)),
        };
        let contradicted = match &noted {
            Some(mark) if mark.node != node.as_str() => {
                return Err(failed(&format!("it is that of {}; give each node its own", mark.node)));
            }
            Some(mark) => hash_at(store, mark.sequence)?.map(|hash| hash.to_string()).as_ref() != Some(&mark.hash),
            None => false,
        };
        let sequence = noted.map_or(0, |mark| mark.sequence);
        if contradicted {
            tracing::error!(
                noted = sequence,
                found = store.sequence(),
                "history_rollback_detected: the log is not the one that the witness knows, so nothing is taken in. If an \
                 earlier state was put back on purpose, stop the node and delete the witness"
            );
            store.hold();
        }
        let witness =
            Self { path: path.to_owned(), node: node.as_str().to_owned(), noted: sequence.into(), contradicted };
        witness.note(store)?;
        Ok(witness)
    }

    /// Notes how far the log has come, when it has come further.
    pub(crate) fn note(&self, store: &Store) -> Result<(), Error> {
        let mut noted = self.noted.lock().map_err(Error::fault)?;
        let sequence = store.sequence();
        if self.contradicted || (sequence <= *noted && sequence > 0) {
            return Ok(());
        }
        let Some(hash) = hash_at(store, sequence)? else { return Ok(()) };
        let mark = Mark { sequence, hash: hash.to_string(), node: self.node.clone() };
        let beside = self.path.with_extension("new");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&beside)?;
            file.write_all(mark.line().as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)
        };
        write().map_err(|error| Error::fault(format!("the witness {}: {error}", self.path.display())))?;
        *noted = sequence;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Batch, Kind, Put};

    fn commit(store: &Store, id: &str) {
        let put = Put { id: id.into(), kind: Kind::Manifest, publisher: "did:key:p".into(), body: b"{}".to_vec() };
        store.commit(Batch { puts: vec![put], at: 1, ..Batch::default() }).unwrap();
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    #[test]
    fn a_folder_that_was_put_back_answers_and_takes_nothing_in() {
        let home = tempfile::tempdir().unwrap();
        let [folder, earlier, other] = ["store", "earlier", "other"].map(|name| home.path().join(name));
        let (file, node) = (home.path().join("witness"), Did::parse("did:web:node.example").unwrap());
        let open = |folder: &Path| {
            let store = Store::open(folder).unwrap();
            let witness = Witness::open(&file, &store, &node);
            (store, witness)
        };
        let (store, witness) = open(&folder);
        commit(&store, "a");
        witness.unwrap().note(&store).unwrap();
        drop(store);
        copy(&folder, &earlier);
        let (store, witness) = open(&folder);
        commit(&store, "b");
        assert!(!store.is_stopped());
        witness.unwrap().note(&store).unwrap();
        drop(store);
        // The same folder goes on; the earlier one is held, however often it is opened.
        assert!(!open(&folder).0.is_stopped());
        for _ in 0..2 {
            let (store, witness) = open(&earlier);
            assert!(store.is_stopped() && store.record("a").unwrap().is_some());
            let put = Put { id: "c".into(), kind: Kind::Manifest, publisher: "p".into(), body: b"{}".to_vec() };
            let refused = store.commit(Batch { puts: vec![put], at: 1, ..Batch::default() }).unwrap_err();
            assert!(matches!(refused, store::CommitError::CannotWrite { cause: store::Cause::RolledBack, .. }));
            witness.unwrap().note(&store).unwrap();
        }
        // A history as long and not the same is another one.
        let (another, _) = (Store::open(&other).unwrap(), ());
        ["x", "y", "z"].iter().for_each(|id| commit(&another, id));
        drop(another);
        assert!(open(&other).0.is_stopped());
        // Once the operator has deleted the witness, the earlier state is the history.
        fs::remove_file(&file).unwrap();
        assert!(!open(&earlier).0.is_stopped());
        assert!(open(&earlier).1.is_ok());
        let stranger = Did::parse("did:web:other.example").unwrap();
        assert!(Witness::open(&file, &Store::open(&earlier).unwrap(), &stranger).is_err(), "not this node's");
    }

    #[test]
    fn an_altered_note_counts_for_nothing() {
        let mark = Mark { sequence: 7, hash: "abc".into(), node: "did:key:z".into() };
        let line = mark.line();
        assert_eq!(Mark::read(&line), Some(mark));
        for position in 0..line.len() - 1 {
            let mut bytes = line.clone().into_bytes();
            bytes[position] ^= 1;
            assert_eq!(Mark::read(&String::from_utf8_lossy(&bytes)), None, "byte {position}");
        }
    }
}
