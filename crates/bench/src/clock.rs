//! The one place that looks at a clock.

use aql::Instant as Moment;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Does some work and measures it.
#[expect(clippy::disallowed_methods, reason = "measuring is what this crate is for")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// A point from which durations are counted.
#[expect(clippy::disallowed_methods, reason = "measuring is what this crate is for")]
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// The time of day, for windows of validity.
#[expect(clippy::disallowed_methods, reason = "an intent is signed for a window around now")]
pub(crate) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::from_unix(since.as_secs() as i64, 0)
}
