//! RFC 0020 A.7: costly questions stand in a line of their own, so that cheap ones do not wait behind them.
//!
//! What a question may cost is seen in its constraints before anything is looked up (decisions/0071). One thread of
//! low priority answers the costly ones, one after the other; when its line is full, the next is refused by name.
//!
//! Threads that stand back (this one, and the server's for whoever is mostly refused) are known: they take no turn of
//! the others, and a writer does not make the others wait for them (`catalog`).
//!
//! INVARIANT: the lane decides when a question is answered, never what is answered.

use crate::refusal::{Class, Error, Refusal};
use crate::source;
use aql::{Constraints, Leaf, Predicate, Segment};
use json::Pointer;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// What a cheap question costs at most; an equality at a plain path costs one.
const CHEAP_MAX: u64 = 64;
/// Costly questions that wait for their turn.
pub(crate) const WAITING_MAX: usize = 32;
/// How much a thread that stands back leaves to the others, as `nice` counts.
const NICENESS: i32 = 19;
/// How long until a place in the line may be free.
const RETRY_MS: u64 = 2_000;

thread_local! {
    static STANDS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Lets the thread at hand stand back for all others: it works with what they leave, and holds nobody up.
pub fn stand_back() {
    // Where priorities cannot be changed, it is still one thread and no more.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    STANDS_BACK.set(true);
}

/// Whether the thread at hand stands back.
pub fn stands_back() -> bool {
    STANDS_BACK.get()
}

/// Where a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// At once.
    Cheap,
    /// In the line of costly ones.
    Costly,
}

impl Lane {
    /// The lane that a question belongs to.
    pub(crate) fn of(constraints: &Constraints) -> Self {
        let cost: u64 = constraints.leaves().iter().map(cost).sum();
        if cost > CHEAP_MAX { Self::Costly } else { Self::Cheap }
    }
}

/// What a leaf may cost: how many places its path may lead to, times what it takes to ask at one.
fn cost(leaf: &Leaf) -> u64 {
    let widest = leaf.path.segments().iter().map(|segment| match segment {
        Segment::Name { .. } => 1,
        Segment::Each => 2,
        Segment::Descend => 16,
    });
    let asked = match &leaf.predicate {
        // No index helps where a pattern looks around or back: every candidate is asked.
        Predicate::Matches(pattern) if pattern.is_bounded() => 2 * CHEAP_MAX,
        Predicate::Matches(_) | Predicate::Contains(_) => 4,
        Predicate::Eq(_)
        | Predicate::Ne(_)
        | Predicate::Compare(..)
        | Predicate::In(_)
        | Predicate::NotIn(_)
        | Predicate::Before(_)
        | Predicate::After(_)
        | Predicate::Within(..)
        | Predicate::Outside(..)
        | Predicate::Exists => 1,
    };
    widest.max().unwrap_or(1) * asked
}

type Job = Box<dyn FnOnce() + Send>;

/// The line of costly questions, and the thread at its end.
#[derive(Debug)]
pub(crate) struct Costly {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Costly {
    pub(crate) fn start() -> Result<Self, Error> {
        let (jobs, line) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("costly".into()).spawn(move || serve(&line));
        Ok(Self { jobs: Some(jobs), thread: Some(thread.map_err(Error::fault)?) })
    }

    /// Runs a job when its turn comes; nobody waits for one whose asker has gone.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let span = tracing::Span::current();
        let job = source::carried(job);
        let run: Job = Box::new(move || {
            if !reply.is_closed() {
                let _ = reply.send(span.in_scope(job));
            }
        });
        let jobs = self.jobs.as_ref().ok_or_else(|| Error::fault("the line of costly questions is closed"))?;
        jobs.try_send(run).map_err(|_| full())?;
        answer.await.map_err(|_| Error::fault("a costly question was interrupted"))?
    }
}

fn serve(line: &Receiver<Job>) {
    stand_back();
    while let Ok(job) = line.recv() {
        job();
    }
}

impl Drop for Costly {
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn full() -> Refusal {
    let detail =
        "as many costly questions wait as the node takes; ask with narrower paths and fewer patterns, or later";
    let mut refusal = Refusal::new(Class::RateLimited, "query_cost_exceeded", detail)
        .at(Pointer::root().child("constraints"))
        .limited("costly_waiting", WAITING_MAX as u64, WAITING_MAX as u64 + 1);
    refusal.retry_after_ms = Some(RETRY_MS);
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, Value, json};

    #[track_caller]
    fn check(constraints: &Value, lane: Lane) {
        let document = Document::of(constraints).unwrap();
        let read = Constraints::read(document.root(), Pointer::root(), &aql::Limits::STANDARD).unwrap();
        assert_eq!(Lane::of(&read), lane, "{constraints}");
    }

    fn leaf(path: &str, operator: &str, value: &str) -> Value {
        json!({"path": path, "operator": operator, "value": value})
    }

    #[test]
    fn questions_that_an_index_answers_are_cheap() {
        check(&leaf("/a", "eq", "x"), Lane::Cheap);
        check(&json!(vec![leaf("/a/*/b", "eq", "x"); 16]), Lane::Cheap);
        check(&leaf("/**/a", "eq", "x"), Lane::Cheap);
        check(&leaf("/**/a", "contains", "x"), Lane::Cheap);
        check(&leaf("/name", "matches", "^Am.*t$"), Lane::Cheap);
    }

    #[test]
    fn wide_and_backtracking_questions_are_costly() {
        check(&json!(vec![leaf("/**/a", "eq", "x"); 5]), Lane::Costly);
        check(&json!(vec![leaf("/**", "contains", "x"); 2]), Lane::Costly);
        check(&leaf("/name", "matches", "^(a+)\\1$"), Lane::Costly);
        check(&json!(vec![leaf("/a", "eq", "x"); 65]), Lane::Costly);
    }
}
