//! OAS Engagement: how a node that stops leaves its engagements.
//!
//! Nothing new is begun; what is under way has a while to come back, and is written down when it does. What has not come
//! back by then is cut: a call that may not be repeated is written down as one of which nobody knows what became, and
//! everything else is simply done again after the next start.

use super::{Engagements, RUNNING_MAX};
use std::time::Duration;
use tokio::time::timeout;

/// How long calls may take to come back when the node stops.
pub const FAREWELL: Duration = Duration::from_secs(10);

/// How long writing down may take that a call was cut.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How far a node has come with stopping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// It works.
    #[default]
    Not,
    /// Nothing new is begun.
    Resting,
    /// Nobody is waited for.
    Cut,
}

impl Engagements {
    /// Lets engagements come to rest; whether all of them did within the time.
    pub async fn rest(&self, time: Duration) -> bool {
        self.stop.send_replace(Stop::Resting);
        let all = u32::try_from(RUNNING_MAX).unwrap_or(u32::MAX);
        if timeout(time, self.places.acquire_many(all)).await.is_ok() {
            return true;
        }
        tracing::warn!("some calls of agents have not come back and are cut off");
        self.stop.send_replace(Stop::Cut);
        // What cannot be written now is found in the journal by the next start.
        let _ = timeout(LAST_WORDS, self.places.acquire_many(all)).await;
        false
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow() != Stop::Not
    }

    pub(super) fn is_cut(&self) -> bool {
        *self.stop.borrow() == Stop::Cut
    }

    /// Ends when nobody is waited for any more.
    pub(super) async fn cut(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as this.
        let _ = stop.wait_for(|stop| *stop == Stop::Cut).await;
    }
}
