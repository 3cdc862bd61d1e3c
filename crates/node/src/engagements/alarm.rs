//! OAS Agent, `require_review`: when the time of a review is over, whoever waits for it is looked at again.
//!
//! One task keeps the time of all of them, so somebody who waits holds none.

use super::Engagements;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

/// When, in milliseconds since 1970, and which engagement.
type Due = (i64, String);

/// Who hears of reviews that are asked for.
pub(super) struct Alarm(UnboundedSender<Due>);

impl Alarm {
    /// An alarm, and what it hears.
    pub(super) fn new() -> (Self, UnboundedReceiver<Due>) {
        let (asks, asked) = unbounded_channel();
        (Self(asks), asked)
    }
}

impl Engagements {
    /// Has an engagement looked at when the time of its review is over.
    pub(super) fn wake_at(&self, id: String, due: i64) {
        // Who hears it ends when this is dropped, and not before.
        let _ = self.alarm.0.send((due, id));
    }

    /// Keeps the time, as long as there are engagements.
    pub(super) fn keep_time(self: &Arc<Self>, asked: UnboundedReceiver<Due>) {
        tokio::spawn(keep(Arc::downgrade(self), asked));
    }
}

async fn keep(engagements: Weak<Engagements>, mut asked: UnboundedReceiver<Due>) {
    let mut waiting: BTreeSet<Due> = BTreeSet::new();
    loop {
        let Some(this) = engagements.upgrade() else { return };
        let now = this.node.clock().millis();
        while let Some(first) = waiting.first().filter(|(due, _)| *due <= now).cloned() {
            waiting.remove(&first);
            this.start_again(first.1);
        }
        // While somebody is waited for, nobody is kept alive by it.
        drop(this);
        let left = waiting.first().map(|(due, _)| u64::try_from(due - now).unwrap_or_default());
        tokio::select! {
            due = asked.recv() => match due {
                Some(due) => drop(waiting.insert(due)),
                None => return,
            },
            () = sleep(Duration::from_millis(left.unwrap_or_default() + 1)), if left.is_some() => {}
        }
    }
}
