//! The clock: the only place of the node where time enters.

use aql::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What tells the time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that is set by hand, in milliseconds since 1970.
    Set(Arc<AtomicI64>),
}

impl Clock {
    /// Milliseconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "the node is where time enters")]
    pub fn millis(&self) -> i64 {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
            Self::Set(millis) => millis.load(Ordering::Acquire),
        }
    }

    /// The clock that never goes back, for how long something has been known.
    #[expect(clippy::disallowed_methods, reason = "the node is where time enters")]
    pub(crate) fn monotonic() -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Now, to the millisecond.
    pub fn now(&self) -> Instant {
        instant(self.millis())
    }
}

/// A moment given in milliseconds since 1970.
pub(crate) fn instant(millis: i64) -> Instant {
    let nanos = u32::try_from(millis.rem_euclid(1_000)).unwrap_or_default() * 1_000_000;
    Instant::from_unix(millis.div_euclid(1_000), nanos)
}
