//! RFC 0020 A.3 R2: what came to disk together goes into the index together.
//!
//! A commit holds what many publishers sent. One thread files it for all of them: if each did, all but the first would
//! wait for nothing but to see that it is done, each on a thread of its own.
//!
//! INVARIANT: whoever is answered well finds in the index what was on disk when he asked.
//! INVARIANT: while the index cannot be brought level, `is_behind` says so, whatever the reason.

use crate::catalog::Catalog;
use crate::refusal::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use store::Store;
use tokio::sync::oneshot;

/// Somebody who waits until the index is level with the log.
type Waiting = oneshot::Sender<Result<(), String>>;

/// The thread that files.
#[derive(Debug)]
pub(crate) struct Filer {
    line: Option<Sender<Waiting>>,
    /// Whether the last filing failed.
    failed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filer {
    pub(crate) fn start(catalog: &Arc<Catalog>, store: &Arc<Store>) -> Result<Self, Error> {
        let (catalog, store) = (Arc::clone(catalog), Arc::clone(store));
        Self::with(move || catalog.read_to(&store, store.sequence()).map_err(|error| error.to_string()))
    }

    fn with(file: impl Fn() -> Result<(), String> + Send + 'static) -> Result<Self, Error> {
        let (line, waiting) = channel();
        let failed = Arc::new(AtomicBool::new(false));
        let run = {
            let failed = Arc::clone(&failed);
            move || serve(&waiting, &failed, file)
        };
        let thread = std::thread::Builder::new().name("filer".into()).spawn(run).map_err(Error::fault)?;
        Ok(Self { line: Some(line), failed, thread: Some(thread) })
    }

    /// Whether what is on disk does not get into the index: the last filing failed, or nobody files any more.
    pub(crate) fn is_behind(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until everything that is on disk now is in the index.
    pub(crate) async fn level(&self) -> Result<(), Error> {
        let (waiting, level) = oneshot::channel();
        let gone = || Error::fault("nobody files what comes in; the node must be started again");
        self.line.as_ref().and_then(|line| line.send(waiting).ok()).ok_or_else(gone)?;
        level.await.map_err(|_| gone())?.map_err(Error::fault)
    }
}

fn serve(line: &Receiver<Waiting>, failed: &AtomicBool, file: impl Fn() -> Result<(), String>) {
    while let Ok(first) = line.recv() {
        let waiting: Vec<Waiting> = std::iter::once(first).chain(line.try_iter()).collect();
        let filed = file();
        failed.store(filed.is_err(), Ordering::Release);
        for waiting in waiting {
            // Whoever has gone need not know.
            let _ = waiting.send(filed.clone());
        }
    }
}

impl Drop for Filer {
    fn drop(&mut self) {
        self.line.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Batch, Kind, Put};

    #[tokio::test]
    async fn whoever_asks_after_a_commit_finds_it_in_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&folder.path().join("store")).unwrap());
        let catalog = Arc::new(Catalog::open(folder.path(), &store, &mut |_, _| {}).unwrap());
        let filer = Filer::start(&catalog, &store).unwrap();
        for number in 1..=20 {
            let put = Put {
                id: format!("urn:n:{number}"),
                kind: Kind::Offer,
                publisher: "did:web:p.example".into(),
                body: format!(r#"{{"offer_id": "urn:n:{number}"}}"#).into_bytes(),
            };
            store.commit(Batch { puts: vec![put], ..Batch::default() }).unwrap();
            let (one, other) = tokio::join!(filer.level(), filer.level());
            assert!(one.is_ok() && other.is_ok());
            assert_eq!(catalog.indexes().unwrap().applied(), number);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_filed_is_told_to_everybody_who_waits_and_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&folder.path().join("store")).unwrap());
        let catalog = Arc::new(Catalog::open(folder.path(), &store, &mut |_, _| {}).unwrap());
        let filer = Filer::start(&catalog, &store).unwrap();
        let put = Put { id: "urn:n:1".into(), kind: Kind::Offer, publisher: "p".into(), body: b"no record".to_vec() };
        store.commit(Batch { puts: vec![put], ..Batch::default() }).unwrap();
        for _ in 0..2 {
            let (one, other) = tokio::join!(filer.level(), filer.level());
            assert!(one.unwrap_err().to_string().contains("a stored record"), "the first");
            assert!(other.is_err(), "the second");
            assert!(filer.is_behind());
        }
    }

    #[tokio::test]
    async fn a_filer_that_died_or_fails_is_behind_until_it_files_again() {
        let turns = std::sync::atomic::AtomicUsize::new(0);
        let filer = Filer::with(move || match turns.fetch_add(1, Ordering::SeqCst) {
            1 => Err("the disk".to_owned()),
            3 => panic!("a mistake of ours"),
            _ => Ok(()),
        });
        let filer = filer.unwrap();
        assert!(!filer.is_behind());
        for (is_well, is_behind) in [(true, false), (false, true), (true, false)] {
            assert_eq!((filer.level().await.is_ok(), filer.is_behind()), (is_well, is_behind));
        }
        assert!(filer.level().await.is_err(), "it died over this one");
        while !filer.is_behind() {
            tokio::task::yield_now().await;
        }
        assert!(filer.level().await.is_err() && filer.is_behind());
    }
}
