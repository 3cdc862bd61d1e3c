//! RFC 0020 A.3 R2: what the node can answer from, kept level with the change log.
//!
//! The store is the truth; the index and the evidence are read from its log, in order, by whoever first needs them
//! further. A publication is acknowledged after it is in here, so that the next answer knows it.
//!
//! INVARIANT: everything up to `indexes.applied()` is in the indexes and the evidence, and nothing after it.

use crate::collection::{self, Action, Collection};
use crate::evidence::Evidence;
use crate::fact;
use crate::gate::{Notice, View, Viewer};
use crate::indexes::Indexes;
use crate::lanes::stands_back;
use crate::loaded::Loaded;
use crate::refusal::Error;
use index::New;
use json::{Document, Node};
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use store::{Change, Kind, Operation, Sequence, Store};

/// Changes that are read from the log at once.
const STRIDE: usize = 1_000;

/// Fresh units from which on they are written to disk.
const SEAL_AT: usize = 32_768;

/// How long whoever stands back lets a writer go first.
const YIELD: Duration = Duration::from_micros(200);

/// The folder of the index inside the data folder.
const FOLDER: &str = "index";
/// The folder of packed records inside that of the index.
const PACKED: &str = "packed";

/// The index and the evidence.
#[derive(Debug)]
pub(crate) struct Catalog {
    indexes: RwLock<Indexes>,
    /// Held by whoever stands back while it looks, and by whoever changes something: so a writer waits here for a costly
    /// question, and nobody waits behind the writer.
    behind: Mutex<()>,
    /// Writers that wait; they go before the next who stands back.
    writers: AtomicUsize,
    evidence: RwLock<Evidence>,
    loaded: Loaded,
    /// Held by whoever reads the log on.
    reading: Mutex<()>,
    /// Held by whoever writes index files.
    sealing: Mutex<()>,
    /// Whether an import is going on, which writes larger files than a node does and merges them at its end.
    importing: AtomicBool,
}

/// The indexes, looked at.
#[derive(Debug)]
pub(crate) struct Looking<'a> {
    indexes: RwLockReadGuard<'a, Indexes>,
    _behind: Option<MutexGuard<'a, ()>>,
}

impl Deref for Looking<'_> {
    type Target = Indexes;

    fn deref(&self) -> &Indexes {
        &self.indexes
    }
}

/// The indexes, being changed.
struct Changing<'a> {
    indexes: RwLockWriteGuard<'a, Indexes>,
    _behind: MutexGuard<'a, ()>,
}

impl Deref for Changing<'_> {
    type Target = Indexes;

    fn deref(&self) -> &Indexes {
        &self.indexes
    }
}

impl DerefMut for Changing<'_> {
    fn deref_mut(&mut self) -> &mut Indexes {
        &mut self.indexes
    }
}

/// A record ready to be filed.
pub(crate) struct Filing {
    pub(crate) collection: Collection,
    pub(crate) publisher: String,
    /// What everybody may see of it; nothing else of the record is filed.
    view: View,
    actions: Vec<(Action, Vec<u8>)>,
    fact: Vec<u8>,
    notice: Option<Notice>,
    /// When it came, in milliseconds since 1970; nought for what an operator brought in.
    came: i64,
}

impl Filing {
    /// Works out what is filed for a record, away from any lock.
    pub(crate) fn new(kind: Kind, id: &str, publisher: String, body: Document) -> Result<Self, Error> {
        let collection = Collection::of_kind(kind);
        let notice = Notice::of(kind, &body)?;
        let signer = collection::signer(&body).map(str::to_owned);
        let signer = signer.as_deref();
        let view = View::of(body, &Viewer::Public)?;
        let fact = fact::encode(collection, 0, id, signer, view.record());
        let actions = if collection == Collection::Manifests { actions_of(signer, view.record()) } else { Vec::new() };
        Ok(Self { collection, publisher, view, actions, fact, notice, came: 0 })
    }

    /// What it has for a collection.
    fn candidates(&self, collection: Collection, source: u64) -> impl Iterator<Item = New<'_>> {
        let own =
            (collection == self.collection).then(|| New { source, fact: &self.fact, document: self.view.record() });
        let actions = self.actions.iter().filter(move |_| collection == Collection::Actions);
        let actions = actions.map(move |(action, fact)| New { source, fact, document: action.document.root() });
        let notice = self.notice.iter().filter(move |_| collection == Collection::Restricted);
        let notice = notice.map(move |notice| New { source, fact: &notice.fact, document: notice.document.root() });
        own.into_iter().chain(actions).chain(notice)
    }
}

/// The actions of a manifest as records, with their facts; `signer` is who published it.
pub(crate) fn actions_of(signer: Option<&str>, manifest: Node<'_>) -> Vec<(Action, Vec<u8>)> {
    let (mut actions, mut named) = (Vec::new(), HashSet::new());
    let positions = manifest.get("actions").map_or(0, Node::len);
    for position in 0..positions.min(usize::from(u16::MAX)) {
        // An id stands for one candidate: of two actions with one name the first counts.
        let action = Action::of(manifest, position).filter(|action| named.insert(action.id.clone()));
        if let Some(action) = action {
            let part = u16::try_from(position + 1).unwrap_or_default();
            let fact = fact::encode(Collection::Actions, part, &action.id, signer, action.document.root());
            actions.push((action, fact));
        }
    }
    actions
}

/// What happens to the catalog, in the order of the log.
pub(crate) enum Step {
    /// A record, its source, and the source that it replaces.
    File(Box<Filing>, u64, Option<u64>),
    /// The source that goes, and the change that took it away.
    Remove(u64, Sequence),
}

impl Catalog {
    /// Opens the index and reads the log up to its end. `progress` hears how many changes are read, and of how many.
    pub(crate) fn open(folder: &Path, store: &Store, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, Error> {
        let folder = folder.join(FOLDER);
        let mut indexes = Indexes::open(&folder)?;
        if indexes.furthest() > store.sequence() {
            tracing::warn!("the index has read further than the log goes; it is made again");
            drop(indexes);
            Indexes::discard(&folder)?;
            indexes = Indexes::open(&folder)?;
        }
        let loaded = Loaded::open(&folder.join(PACKED), store.sequence(), indexes.records());
        let mut evidence = Evidence::default();
        take_evidence_up(&indexes, &mut evidence, store)?;
        let catalog = Self {
            indexes: RwLock::new(indexes),
            behind: Mutex::default(),
            writers: AtomicUsize::new(0),
            evidence: RwLock::new(evidence),
            loaded,
            reading: Mutex::default(),
            sealing: Mutex::default(),
            importing: AtomicBool::new(false),
        };
        let end = store.sequence();
        loop {
            let applied = catalog.indexes()?.applied();
            progress(applied, end);
            if applied >= end {
                return Ok(catalog);
            }
            catalog.read_on(store, end.min(applied + SEAL_AT as u64))?;
            catalog.seal(SEAL_AT)?;
        }
    }

    /// Throws the index of a data folder away; the next opening makes it again.
    pub(crate) fn discard(folder: &Path) -> Result<(), Error> {
        let folder = folder.join(FOLDER);
        Loaded::discard(&folder.join(PACKED))?;
        Indexes::discard(&folder)
    }

    /// What everybody may see of records, in the order given.
    pub(crate) fn views(&self, store: &Store, numbers: &[u64]) -> Result<Vec<View>, Error> {
        self.loaded.views(store, numbers)
    }

    /// How many views stay in memory, about.
    pub(crate) fn room_for_views(&self) -> u64 {
        self.loaded.room()
    }

    #[cfg(test)]
    pub(crate) fn views_in_memory(&self) -> usize {
        self.loaded.in_memory()
    }

    /// What everybody may see of one record. Where nothing is hidden it is the stored bytes, held against the log; of a
    /// restricted record nothing but its public view is touched.
    pub(crate) fn view(&self, store: &Store, number: u64) -> Result<View, Error> {
        let missing = || Error::fault(format!("the record {number} is missing"));
        let view = self.views(store, &[number])?.pop().ok_or_else(missing)?;
        if view.is_cut() {
            return Ok(view);
        }
        View::of(parsed(&store.bodies(&[number])?.pop().flatten().ok_or_else(missing)?)?, &Viewer::Public)
    }

    /// The indexes, for questions.
    pub(crate) fn indexes(&self) -> Result<Looking<'_>, Error> {
        let behind = if stands_back() { Some(self.wait_behind()?) } else { None };
        Ok(Looking { indexes: self.indexes.read().map_err(|_| poisoned())?, _behind: behind })
    }

    fn wait_behind(&self) -> Result<MutexGuard<'_, ()>, Error> {
        while self.writers.load(Ordering::Acquire) > 0 {
            std::thread::sleep(YIELD);
        }
        self.behind.lock().map_err(|_| poisoned())
    }

    /// The evidence, for questions.
    pub(crate) fn evidence(&self) -> Result<RwLockReadGuard<'_, Evidence>, Error> {
        self.evidence.read().map_err(|_| poisoned())
    }

    fn indexes_mut(&self) -> Result<Changing<'_>, Error> {
        self.writers.fetch_add(1, Ordering::AcqRel);
        let behind = self.behind.lock();
        self.writers.fetch_sub(1, Ordering::AcqRel);
        let behind = behind.map_err(|_| poisoned())?;
        Ok(Changing { indexes: self.indexes.write().map_err(|_| poisoned())?, _behind: behind })
    }

    /// Reads the log up to a change, unless somebody did.
    pub(crate) fn read_to(&self, store: &Store, sequence: Sequence) -> Result<(), Error> {
        if self.indexes()?.applied() >= sequence {
            return Ok(());
        }
        self.read_on(store, sequence)
    }

    fn read_on(&self, store: &Store, to: Sequence) -> Result<(), Error> {
        let _reading = self.reading.lock().map_err(|_| poisoned())?;
        loop {
            let applied = self.indexes()?.applied();
            if applied >= to {
                return Ok(());
            }
            let changes = store.changes_after(applied, STRIDE)?;
            let Some(last) = changes.last().map(|change| change.sequence) else {
                return Err(Error::fault(format!("the log ends at {applied}, and {to} was promised")));
            };
            let steps = changes.into_iter().map(|change| step(change, store)).collect::<Result<Vec<_>, _>>()?;
            self.apply(steps, last)?;
        }
    }

    /// Puts steps into the index and the evidence; `last` is the change they end with.
    pub(crate) fn apply(&self, steps: Vec<Step>, last: Sequence) -> Result<(), Error> {
        self.loaded.add(steps.iter().filter_map(|step| match step {
            Step::File(filing, source, _) => Some((*source, &filing.view)),
            Step::Remove(..) => None,
        }));
        let mut indexes = self.indexes_mut()?;
        let mut evidence = self.evidence.write().map_err(|_| poisoned())?;
        let mut waiting: Vec<(&Filing, u64)> = Vec::new();
        for step in &steps {
            let gone = match step {
                Step::File(_, source, replaced) => replaced.map(|replaced| (replaced, *source)),
                Step::Remove(source, at) => Some((*source, *at)),
            };
            if let Some((source, at)) = gone {
                // It may be one that waits.
                file(&mut indexes, &mut evidence, &std::mem::take(&mut waiting))?;
                indexes.remove(source);
                evidence.remove(source, at);
            }
            if let Step::File(filing, source, _) = step {
                waiting.push((filing, *source));
            }
        }
        file(&mut indexes, &mut evidence, &waiting)?;
        indexes.advance(last);
        Ok(())
    }

    /// Writes the fresh part of the index to disk when it has at least so many units, and merges what is due.
    ///
    /// Questions go on meanwhile; whoever comes second leaves it to the first.
    pub(crate) fn seal(&self, at_least: usize) -> Result<(), Error> {
        let Ok(_sealing) = self.sealing.try_lock() else { return Ok(()) };
        self.write_fresh(at_least)?;
        loop {
            let merging = self.indexes()?.mergeable();
            let Some((collection, merging)) = merging else { return Ok(()) };
            let made = merging.run()?;
            self.indexes_mut()?.adopt(collection, made)?;
        }
    }

    /// The same from time to time, unless an import does it.
    pub(crate) fn keep(&self) -> Result<(), Error> {
        if self.importing.load(Ordering::Acquire) { Ok(()) } else { self.seal(SEAL_AT) }
    }

    /// Writes the fresh part of the index to disk when it has at least so many units; for an import.
    pub(crate) fn seal_imported(&self, at_least: usize) -> Result<(), Error> {
        let Ok(_sealing) = self.sealing.try_lock() else { return Ok(()) };
        self.write_fresh(at_least)
    }

    /// Tells that an import begins or ends.
    pub(crate) fn set_importing(&self, importing: bool) {
        self.importing.store(importing, Ordering::Release);
    }

    fn write_fresh(&self, at_least: usize) -> Result<(), Error> {
        // Whoever waits to change the indexes makes all later questions wait; so nobody does without need.
        let ready = self.indexes()?.is_ready(at_least);
        let frozen = if ready { self.indexes_mut()?.freeze(at_least) } else { Vec::new() };
        if !frozen.is_empty() {
            for (collection, sealing) in frozen {
                let made = sealing.run()?;
                self.indexes_mut()?.adopt(collection, made)?;
            }
            self.indexes_mut()?.save()?;
        }
        Ok(())
    }

    /// Leaves the index on disk as it is, so that the next start has nothing to read.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.seal(1)?;
        self.indexes_mut()?.save()
    }

    /// Everything of a collection into one segment; for the end of an import.
    pub(crate) fn compact(&self) -> Result<(), Error> {
        self.seal_imported(1)?;
        let merge = |collection: Collection| -> Result<(), Error> {
            let merging = self.indexes()?.of(collection).merge_all();
            match merging.map(index::Merging::run).transpose()? {
                Some(made) => self.indexes_mut()?.adopt(collection, made),
                None => Ok(()),
            }
        };
        std::thread::scope(|scope| {
            let merging = Collection::ALL.map(|collection| scope.spawn(move || merge(collection)));
            let ended = || Error::fault("a merge of the index ended early");
            merging.into_iter().try_for_each(|merging| merging.join().map_err(|_| ended())?)
        })
    }
}

fn file(indexes: &mut Indexes, evidence: &mut Evidence, filings: &[(&Filing, u64)]) -> Result<(), Error> {
    for (filing, source) in filings {
        if filing.collection == Collection::Evidence && indexes.is_new(*source, Collection::Evidence) {
            evidence.insert(*source, filing.came, &filing.publisher, filing.view.record());
        }
    }
    for collection in Collection::ALL {
        let candidates = filings.iter().flat_map(|(filing, source)| filing.candidates(collection, *source));
        indexes.insert(collection, candidates.collect())?;
    }
    Ok(())
}

/// Reads the evidence that the index knows of.
fn take_evidence_up(indexes: &Indexes, evidence: &mut Evidence, store: &Store) -> Result<(), Error> {
    let index = indexes.of(Collection::Evidence);
    for unit in index.alive().iter() {
        let Some(record) = index.source(unit).map(|source| store.by_number(source)).transpose()?.flatten() else {
            continue;
        };
        let body = parsed(&record.body)?;
        let came = came(&body, &record);
        let view = View::of(body, &Viewer::Public)?;
        evidence.insert(record.number, came, &record.publisher, view.record());
    }
    Ok(())
}

fn step(change: Change, store: &Store) -> Result<Step, Error> {
    match change.operation {
        Operation::Withdraw => Ok(Step::Remove(change.replaces.unwrap_or_default(), change.sequence)),
        Operation::Put => {
            let missing = || Error::fault(format!("the record of change {} is missing", change.sequence));
            let record = store.by_number(change.sequence)?.ok_or_else(missing)?;
            let body = parsed(&record.body)?;
            let (came, number) = (came(&body, &record), record.number);
            let filing = Filing { came, ..Filing::new(record.kind, &record.id, record.publisher, body)? };
            Ok(Step::File(Box::new(filing), number, change.replaces))
        }
    }
}

/// When a record came, if its publisher sent it; the operator vouches for what he brought in himself.
fn came(body: &Document, record: &store::Record) -> i64 {
    if collection::is_publication(body.root()) { record.received_at } else { 0 }
}

/// A stored body was read once already, when it came in.
pub(crate) fn parsed(body: &[u8]) -> Result<Document, Error> {
    collection::read_stored(body).map_err(|error| Error::fault(format!("a stored record: {error}")))
}

fn poisoned() -> Error {
    Error::fault("a job ended in the middle of a change; the node must be started again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn catalog() -> (tempfile::TempDir, Catalog) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let catalog = Catalog::open(folder.path(), &store, &mut |_, _| {}).unwrap();
        (folder, catalog)
    }

    #[test]
    fn nobody_waits_for_a_writer_who_waits_for_a_costly_question() {
        let (_folder, catalog) = catalog();
        let ((begun, told), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
        let catalog = &catalog;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                crate::lanes::stand_back();
                let looking = catalog.indexes().unwrap();
                begun.send(()).unwrap();
                let _ = ended.recv();
                drop(looking);
            });
            told.recv().unwrap();
            let writer = scope.spawn(|| catalog.indexes_mut().unwrap().applied());
            while catalog.writers.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            // The writer waits, and this does not.
            assert_eq!(catalog.indexes().unwrap().applied(), 0);
            assert!(!writer.is_finished());
            drop(end);
            assert_eq!(writer.join().unwrap(), 0);
        });
    }
}
