//! OAS Engagement: what is written and read of engagements.
//!
//! Whoever writes alone waits for the disk alone, without another thread; where many write, one thread waits for the disk
//! for all of them. The same thread sees to it that entries of the trail come into the tables.
//!
//! INVARIANT: nothing is read that is not on disk, so nobody is told what a loss of power would take back.

use crate::engagement::{Engaged, Journal, Noted, Reached, Spec};
use crate::feed::Feed;
use crate::store::{Batch, CommitError, Job, ReadError, Reply, Store, gone};
use crate::trail::{Trail, Written};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// After so long without a new entry the entries go into the tables.
const QUIET: Duration = Duration::from_secs(1);
/// After so long an entry is on disk although nobody waits for it.
const SOON: Duration = Duration::from_millis(10);
/// So long whoever waits for the disk with others waits for these others.
const GATHER: Duration = Duration::from_micros(100);

/// Hears whether an entry is on disk, on the thread that waits for it.
type Told = Box<dyn FnOnce(Result<(), CommitError>) + Send>;

enum Request {
    /// Wait until this entry is on disk.
    Settle(u64, Told),
    /// Put entries into the tables.
    Fold,
    /// There is an entry that nobody waits for.
    Soon,
}

/// The thread that waits for the disk where many write.
pub(crate) struct Settler {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Settler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Settler")
    }
}

impl Settler {
    pub(crate) fn start(trail: &Arc<Trail>, jobs: &SyncSender<Job>) -> io::Result<Self> {
        let ((requests, queue), trail, jobs) = (channel(), Arc::clone(trail), jobs.clone());
        let thread =
            std::thread::Builder::new().name("store-trail".into()).spawn(move || serve(&queue, &trail, &jobs))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    fn ask(&self, request: Request) {
        let unsent = match &self.requests {
            Some(requests) => requests.send(request).err().map(|unsent| unsent.0),
            None => Some(request),
        };
        if let Some(Request::Settle(_, told)) = unsent {
            told(Err(gone()));
        }
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        self.requests.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(queue: &Receiver<Request>, trail: &Arc<Trail>, jobs: &SyncSender<Job>) {
    let (mut seen, mut soon) = (None, false);
    loop {
        match queue.recv_timeout(if soon { SOON } else { QUIET }) {
            Ok(Request::Soon) => soon = true,
            Ok(Request::Fold) => fold(trail, jobs),
            Ok(Request::Settle(entry, told)) => {
                std::thread::sleep(GATHER);
                let mut waiting = vec![(entry, told)];
                for request in queue.try_iter() {
                    match request {
                        Request::Settle(entry, told) => waiting.push((entry, told)),
                        Request::Fold => fold(trail, jobs),
                        Request::Soon => soon = true,
                    }
                }
                let settled = trail.settle(waiting.iter().map(|(entry, _)| *entry).max().unwrap_or_default());
                waiting.into_iter().for_each(|(_, tell)| tell(settled.clone()));
            }
            Err(RecvTimeoutError::Timeout) if soon => {
                soon = false;
                // Whoever needs it asks again, and hears why it failed.
                let _ = trail.settle(trail.expected());
            }
            Err(RecvTimeoutError::Timeout) => {
                let last = trail.unfolded();
                if last.is_some() && last == seen {
                    fold(trail, jobs);
                }
                seen = last;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Has entries put into the tables.
fn fold(trail: &Arc<Trail>, jobs: &SyncSender<Job>) {
    let Some((journal, upto)) = trail.fold() else { return };
    let heard = Arc::clone(trail);
    let reply: Reply = Box::new(move |answer| heard.moved(upto, answer.map(|_| ())));
    let feed = Feed { journal, folded: Some(upto), ..Feed::default() };
    if let Err(unsent) = jobs.send(Job { work: (Batch::default(), Some(Box::new(feed))), reply }) {
        (unsent.0.reply)(Err(gone()));
    }
}

impl Store {
    /// Writes something of engagements; the entry that it is. It survives the end of the process now, and the end of
    /// power once the entry is settled.
    pub fn note(&self, journal: Journal) -> Result<u64, CommitError> {
        self.taking()?;
        let count = |id: &str| self.read(|reader| reader.step_count(id));
        let written = match journal.specs.is_empty() {
            true => self.trail.write(journal, &count)?,
            false => Written::Large(journal),
        };
        match written {
            Written::Entry(entry, due) => {
                if let Some(settler) = &self.settler {
                    if self.trail.expect() {
                        settler.ask(Request::Soon);
                    }
                    if due {
                        settler.ask(Request::Fold);
                    }
                }
                Ok(entry)
            }
            Written::Large(journal) => {
                self.put_into_tables()?;
                self.write((Batch::default(), Some(Box::new(Feed { journal, ..Feed::default() }))))?;
                Ok(0)
            }
        }
    }

    /// Waits, here and now, until an entry is on disk with all before it.
    pub fn settle(&self, entry: u64) -> Result<(), CommitError> {
        self.trail.settle(entry)
    }

    /// Has another thread wait until an entry is on disk, together with whatever else is written; `told` hears of it on
    /// that thread and must not keep it waiting.
    pub fn settle_with_others(&self, entry: u64, told: impl FnOnce(Result<(), CommitError>) + Send + 'static) {
        match &self.settler {
            Some(_) if self.trail.is_settled(entry) => told(Ok(())),
            Some(settler) => settler.ask(Request::Settle(entry, Box::new(told))),
            None => told(Err(gone())),
        }
    }

    fn put_into_tables(&self) -> Result<(), CommitError> {
        if self.trail.unfolded().is_none() {
            return Ok(());
        }
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        // What is on its way already does not hold what came after.
        let _ = self.trail.await_fold();
        fold(&self.trail, jobs);
        self.trail.await_fold()
    }

    /// Puts all entries into the tables, for whoever looks there.
    pub(crate) fn fold(&self) -> Result<(), ReadError> {
        self.put_into_tables().map_err(|error| ReadError(error.to_string()))
    }

    fn settled(&self, entry: u64) -> Result<(), ReadError> {
        self.trail.settle(entry).map_err(|error| ReadError(error.to_string()))
    }

    /// A document about an agent by its digest.
    pub fn spec(&self, digest: &str) -> Result<Option<Spec>, ReadError> {
        self.read(|reader| reader.spec(digest))
    }

    /// An engagement by its name.
    pub fn engagement(&self, id: &str) -> Result<Option<Engaged>, ReadError> {
        match self.trail.engaged(id) {
            Some((engaged, entry)) => self.settled(entry).map(|()| Some(engaged)),
            None => self.read(|reader| reader.engagement(id)),
        }
    }

    /// Engagements that have come so far, the first one first.
    pub fn engagements_at(&self, reached: Reached) -> Result<Vec<Engaged>, ReadError> {
        self.fold()?;
        self.read(|reader| reader.engagements_at(reached))
    }

    /// Engagements that others serve or served and that wait, and neither for a reviewer nor until some time.
    pub fn engagements_served(&self) -> Result<Vec<Engaged>, ReadError> {
        self.fold()?;
        self.read(|reader| reader.engagements_served())
    }

    /// Engagements whose last step was written then or later, the first one first.
    pub fn engagements_since(&self, at: i64) -> Result<Vec<Engaged>, ReadError> {
        self.fold()?;
        self.read(|reader| reader.engagements_since(at))
    }

    /// The last engagements of a caller, the last one first.
    pub fn engagements_of(&self, caller: &str, limit: usize) -> Result<Vec<Engaged>, ReadError> {
        self.fold()?;
        self.read(|reader| reader.engagements_of(caller, limit))
    }

    /// Engagements that wait for a reviewer, the newest first.
    pub fn engagements_before(&self, reviewer: &str, limit: usize) -> Result<Vec<Engaged>, ReadError> {
        self.fold()?;
        self.read(|reader| reader.engagements_before(reviewer, limit))
    }

    /// How many steps the journal of an engagement has.
    pub fn step_count(&self, engagement: &str) -> Result<u64, ReadError> {
        match self.trail.count(engagement) {
            Some((count, entry)) => self.settled(entry).map(|()| count),
            None => self.read(|reader| reader.step_count(engagement)).map(Option::unwrap_or_default),
        }
    }

    /// The steps of an engagement, in order.
    pub fn steps(&self, engagement: &str) -> Result<Vec<Noted>, ReadError> {
        // Looked at before the tables: what leaves the trail meanwhile is found there.
        let (recent, entry) = self.trail.steps(engagement);
        let mut steps = match recent.first() {
            Some(first) if first.position == 0 => Vec::new(),
            _ => self.read(|reader| reader.steps(engagement))?,
        };
        let known = steps.len() as u64;
        steps.extend(recent.into_iter().filter(|step| step.position >= known));
        self.settled(entry)?;
        Ok(steps)
    }
}
