//! OAS Engagement: an engagement in memory, level with its journal.
//!
//! INVARIANT: steps are written in the order in which they were recorded, each once; a step at another place than the
//! next one is refused by the store, so two tasks can never both move an engagement on.

use super::Engagements;
use crate::publish::commit_refused;
use crate::refusal::Error;
use agent::{Agent, Engagement, Registry, Step};
use std::sync::Arc;
use std::time::Instant;
use store::{Engaged, Journal, Noted, Reached};
use tokio::sync::{Mutex, oneshot, watch};

/// Where whoever moves an engagement sits, and who watches.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) turn: Mutex<()>,
    /// How many steps are on disk.
    pub(super) tick: watch::Sender<u64>,
    /// Who wants it to end.
    pub(super) cancelled: watch::Sender<Option<String>>,
}

impl Default for Seat {
    fn default() -> Self {
        Self { turn: Mutex::default(), tick: watch::Sender::new(0), cancelled: watch::Sender::new(None) }
    }
}

/// An engagement that is being moved.
pub(super) struct Live {
    pub(super) engaged: Engaged,
    pub(super) engagement: Engagement,
    pub(super) agent: Arc<Agent>,
    pub(super) registry: Arc<Registry>,
    /// Steps that are on disk.
    written: usize,
    /// Whether the row beside the journal is there.
    known: bool,
    /// Since when it is worked on.
    pub(super) since: Instant,
    /// A call of which nobody knew what became and that a person wants made again; a crash forgets that.
    pub(super) repeat: Option<usize>,
}

impl Live {
    /// A new engagement, of which nothing is written.
    pub(super) fn new(engaged: Engaged, engagement: Engagement, agent: Arc<Agent>, registry: Arc<Registry>) -> Self {
        let since = crate::clock::Clock::monotonic();
        Self { engaged, engagement, agent, registry, written: 0, known: false, since, repeat: None }
    }

    /// An engagement as its journal has it.
    pub(super) fn of(engaged: Engaged, engagement: Engagement, agent: Arc<Agent>, registry: Arc<Registry>) -> Self {
        let written = engagement.steps().len();
        Self { written, known: true, ..Self::new(engaged, engagement, agent, registry) }
    }

    /// Takes a step; it is written with the next [`Engagements::write`].
    pub(super) fn record(&mut self, step: Step) -> Result<(), Error> {
        self.engagement.record(step).map_err(Error::fault)
    }
}

impl Engagements {
    /// Writes what is not written, and where the engagement has come; returns when it is on disk.
    pub(super) async fn write(
        &self,
        live: &mut Live,
        reached: Reached,
        asked: Option<(String, i64)>,
    ) -> Result<(), Error> {
        let at = self.node.clock().millis();
        let (reviewer, due) = asked.unzip();
        let engaged = Engaged { reached, reviewer, due: due.unwrap_or_default(), ..live.engaged.clone() };
        let mut journal = Journal::default();
        for (position, step) in live.engagement.steps().iter().enumerate().skip(live.written) {
            let body = serde_json::to_vec(step).map_err(Error::fault)?;
            journal.steps.push(Noted { engagement: engaged.id.clone(), position: position as u64, at, body });
        }
        if !live.known || engaged != live.engaged {
            journal.engagements.push(engaged.clone());
        }
        if journal.is_empty() {
            return Ok(());
        }
        let (told, heard) = oneshot::channel();
        self.node.store.note(journal, |answer| drop(told.send(answer)));
        heard.await.map_err(Error::fault)?.map_err(commit_refused)?;
        (live.engaged, live.known, live.written) = (engaged, true, live.engagement.steps().len());
        self.seat(&live.engaged.id).tick.send_replace(live.written as u64);
        Ok(())
    }
}
