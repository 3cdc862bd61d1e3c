//! OAS Engagement: an engagement in memory, level with its journal.
//!
//! What is written survives the end of the process at once and the end of power within milliseconds. Whoever must not go
//! on before waits: before a call that may not be made twice, and before anybody outside is told anything
//! (decisions/0262).
//!
//! INVARIANT: steps are written in the order in which they were recorded, each once; a step at another place than the
//! next one is refused by the store, so two tasks can never both move an engagement on.

use super::accounts::Payer;
use super::budget::Worked;
use super::perform::Asked;
use super::{Engagements, RUNNING_MAX};
use crate::clock::Clock;
use crate::publish::commit_refused;
use crate::refusal::Error;
use agent::{Agent, Engagement, Progress, Registry, Step};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use store::{Engaged, Journal, Noted, Reached};
use tokio::sync::{Mutex, oneshot, watch};

/// Bytes of a journal whose engagement is kept in memory while it rests.
const SEEN_BYTES_MAX: usize = 16 * 1024;
/// A disk that takes longer is waited for by a thread of its own, so that nobody else has to.
const SWIFT: Duration = Duration::from_millis(1);

/// What something written must survive before anything follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survives {
    /// The end of the process.
    Kill,
    /// The end of power, too.
    PowerLoss,
}

/// Where whoever moves an engagement sits, and who watches.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) turn: Mutex<()>,
    /// How many steps are written.
    pub(super) tick: watch::Sender<u64>,
    /// Where it has come; nothing when nobody has moved it from here, or when it is left to one that serves it.
    pub(super) reached: watch::Sender<Option<Reached>>,
    /// Who wants it to end.
    pub(super) cancelled: watch::Sender<Option<String>>,
    /// What is to be seen of it while it rests, so that whoever asks for its answer needs no journal.
    seen: std::sync::Mutex<Option<Arc<Seen>>>,
}

/// An engagement as its journal has it, to be looked at.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) engaged: Engaged,
    pub(super) engagement: Engagement,
    pub(super) agent: Arc<Agent>,
}

impl Seat {
    /// What is to be seen of an engagement that rests, if it is kept here.
    pub(super) fn seen(&self) -> Option<Arc<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, seen: Option<Arc<Seen>>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Default for Seat {
    fn default() -> Self {
        Self {
            turn: Mutex::default(),
            tick: watch::Sender::new(0),
            reached: watch::Sender::new(None),
            cancelled: watch::Sender::new(None),
            seen: std::sync::Mutex::new(None),
        }
    }
}

/// An engagement that is being moved.
pub(super) struct Live {
    pub(super) engaged: Engaged,
    pub(super) engagement: Engagement,
    pub(super) agent: Arc<Agent>,
    pub(super) registry: Arc<Registry>,
    pub(super) seat: Arc<Seat>,
    /// Steps that are written, and the last entry of the store about them.
    written: usize,
    pub(super) entry: u64,
    /// Their bytes; more than can be where some were written before this began.
    bytes: usize,
    /// Whether the row beside the journal is there.
    known: bool,
    /// How long it was worked on, and what the journal says of that.
    pub(super) worked: Worked,
    noted_ms: u64,
    /// For whom it works, once somebody asked.
    pub(super) payer: Option<Payer>,
    /// Its own time that is in their accounts.
    pub(super) counted_ms: u64,
    /// A call of which nobody knew what became and that a person wants made again; a crash forgets that.
    pub(super) repeat: Option<usize>,
    /// What the model was last asked; the next time only what came since is added.
    pub(super) asked: Option<Asked>,
}

impl Engagements {
    /// A new engagement, of which nothing is written.
    pub(super) fn live(&self, engaged: Engaged, engagement: Engagement, agent: Arc<Agent>) -> Live {
        let (seat, registry) = (self.seat(&engaged.id), self.registry(&agent, engagement.begun()));
        let (worked, noted_ms, repeat, asked) = (Worked::default(), 0, None, None);
        let (payer, counted_ms) = (None, 0);
        let (written, entry, bytes, known) = (0, 0, 0, false);
        Live {
            engaged,
            engagement,
            agent,
            registry,
            seat,
            written,
            entry,
            bytes,
            known,
            worked,
            noted_ms,
            payer,
            counted_ms,
            repeat,
            asked,
        }
    }
}

impl Live {
    /// The same with everything written, by these steps.
    pub(super) fn written(self, steps: &[Noted]) -> Self {
        let noted_ms = steps.iter().rev().find_map(|noted| Step::worked_ms(&noted.body)).unwrap_or_default();
        let worked = Worked::of(Duration::from_millis(noted_ms));
        Self { written: self.engagement.steps().len(), bytes: usize::MAX, known: true, worked, noted_ms, ..self }
    }

    /// Steps that are recorded and not written.
    pub(super) fn unwritten_steps(&self) -> &[Step] {
        self.engagement.steps().get(self.written..).unwrap_or_default()
    }

    /// Its own time that is in no account yet.
    pub(super) fn uncounted_ms(&self) -> u64 {
        self.worked.own_millis().saturating_sub(self.counted_ms)
    }

    /// The same to be looked at only.
    pub(super) fn seen(self) -> Seen {
        Seen { engaged: self.engaged, engagement: self.engagement, agent: self.agent }
    }

    /// Leaves it at rest, to be seen at its seat where it is small.
    pub(super) fn rest(self) {
        if self.bytes <= SEEN_BYTES_MAX {
            let seat = Arc::clone(&self.seat);
            seat.show(Some(Arc::new(self.seen())));
        }
    }

    /// Takes a step; it is written with the next [`Engagements::write`].
    pub(super) fn record(&mut self, step: Step) -> Result<(), Error> {
        let gives_time = self.gives_time(&step);
        self.engagement.record(step).map_err(Error::fault)?;
        if gives_time {
            self.worked.begin_anew();
        }
        Ok(())
    }

    /// Whether a step gives the engagement its time anew: a word of the user, or of the owner about a lost call. One that
    /// serves another has what was left for it, once (decisions/0290).
    fn gives_time(&self, step: &Step) -> bool {
        let is_lost = |call: &usize| {
            let progress = self.engagement.calls().get(*call).map(|call| &call.progress);
            matches!(progress, Some(Progress::Unknown))
        };
        let is_word = match step {
            Step::UserSaid { .. } => true,
            Step::Dispatched { call, .. } | Step::Returned { call, .. } => is_lost(call),
            Step::Begun(_)
            | Step::GuardrailReturned { .. }
            | Step::GuardrailHeld { .. }
            | Step::ModelSaid { .. }
            | Step::Attempted { .. }
            | Step::Denied { .. }
            | Step::ReviewAsked { .. }
            | Step::ReviewDecided { .. }
            | Step::CredentialsMissing { .. }
            | Step::CredentialsArrived { .. }
            | Step::OutcomeUnknown { .. }
            | Step::Released { .. }
            | Step::Withheld { .. }
            | Step::Asking { .. }
            | Step::Asked { .. }
            | Step::Answered { .. }
            | Step::Failed { .. }
            | Step::Cancelled { .. } => false,
        };
        is_word && self.engagement.begun().allowance.is_none()
    }

    /// What is not written, with the row beside the journal where that is new or says something else now. The last step
    /// says how long the engagement was worked on, where that is not said yet.
    fn unwritten(&self, is_changed: bool, at: i64, worked_ms: u64) -> Result<Journal, Error> {
        let mut journal = Journal::default();
        let steps = self.engagement.steps();
        for (position, step) in steps.iter().enumerate().skip(self.written) {
            let is_news = position + 1 == steps.len() && worked_ms != self.noted_ms;
            let body = step.kept(is_news.then_some(worked_ms)).map_err(Error::fault)?;
            journal.steps.push(Noted { engagement: self.engaged.id.clone(), position: position as u64, at, body });
        }
        if is_changed {
            journal.engagements.push(self.engaged.clone());
        }
        Ok(journal)
    }

    /// Notes where the engagement has come; whether the row beside the journal must be written.
    fn comes_to(&mut self, reached: Reached, asked: Option<(String, i64)>) -> bool {
        let (reviewer, due) = asked.unzip();
        let due = due.unwrap_or_default();
        let same = self.engaged.reached == reached && self.engaged.reviewer == reviewer && self.engaged.due == due;
        (self.engaged.reached, self.engaged.reviewer, self.engaged.due) = (reached, reviewer, due);
        !self.known || !same
    }
}

impl Engagements {
    /// Writes what is not written, and where the engagement has come; returns when it survives what it must.
    pub(super) async fn write(
        &self,
        live: &mut Live,
        reached: Reached,
        asked: Option<(String, i64)>,
        survives: Survives,
    ) -> Result<(), Error> {
        let is_changed = live.comes_to(reached, asked);
        let (worked_ms, used) = (live.worked.millis(), self.uncounted(live));
        let journal = live.unwritten(is_changed, self.node.clock().millis(), worked_ms)?;
        if !journal.is_empty() {
            live.seat.show(None);
            let bytes: usize = journal.steps.iter().map(|step| step.body.len()).sum();
            live.bytes = live.bytes.saturating_add(bytes);
            let says_worked = !journal.steps.is_empty();
            live.entry = self.node.store.note(journal).map_err(commit_refused)?;
            (live.known, live.written) = (true, live.engagement.steps().len());
            if says_worked {
                live.noted_ms = worked_ms;
            }
        }
        self.count(live, used)?;
        if survives == Survives::PowerLoss {
            self.settle_entry(live.entry).await?;
        }
        live.seat.tick.send_replace(live.written as u64);
        live.seat.reached.send_if_modified(|known| known.replace(reached) != Some(reached));
        Ok(())
    }

    /// Waits until an entry is on disk: alone and with a swift disk that is shorter than handing it to somebody else.
    async fn settle_entry(&self, entry: u64) -> Result<(), Error> {
        let alone = self.places.available_permits() + 1 >= RUNNING_MAX;
        if !alone || !self.swift.load(Ordering::Relaxed) {
            return self.settle_with_others(entry).await;
        }
        let begun = Clock::monotonic();
        self.node.store.settle(entry).map_err(commit_refused)?;
        self.note_pace(begun);
        Ok(())
    }

    /// The same together with whatever is written next.
    pub(super) async fn settle_with_others(&self, entry: u64) -> Result<(), Error> {
        let begun = Clock::monotonic();
        let (told, heard) = oneshot::channel();
        self.node.store.settle_with_others(entry, |answer| drop(told.send(answer)));
        heard.await.map_err(Error::fault)?.map_err(commit_refused)?;
        self.note_pace(begun);
        Ok(())
    }

    fn note_pace(&self, begun: Instant) {
        self.swift.store(Clock::monotonic().duration_since(begun) < SWIFT, Ordering::Relaxed);
    }
}
