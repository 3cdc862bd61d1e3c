//! The clock: the only place of the command line where time enters.

use aql::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, to the millisecond; a clock before 1970 reads as 1970.
#[expect(clippy::disallowed_methods, reason = "the command line is where time enters")]
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Instant::from_unix(seconds, since.subsec_millis() * 1_000_000)
}

/// This moment on a clock that never goes back.
#[expect(clippy::disallowed_methods, reason = "the command line is where time enters")]
pub(crate) fn moment() -> std::time::Instant {
    std::time::Instant::now()
}

/// What time has passed since it was started.
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the command line is where time enters")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// The moment at which it was started.
    pub(crate) fn begun(&self) -> std::time::Instant {
        self.0
    }

    /// Milliseconds so far.
    pub(crate) fn millis(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Stopwatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let elapsed = self.0.elapsed();
        match elapsed.as_millis() {
            0..10 => write!(out, "{:.1} ms", elapsed.as_secs_f64() * 1e3),
            millis @ 10..10_000 => write!(out, "{millis} ms"),
            _ => write!(out, "{:.1} s", elapsed.as_secs_f64()),
        }
    }
}

/// A span of seconds in the words people use.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.unsigned_abs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_say_them() {
        let spans = [(0, "0 s"), (-119, "119 s"), (3_599, "59 min"), (7_200, "2 h"), (-400_000, "4 days")];
        for (seconds, text) in spans {
            assert_eq!(span(seconds), text);
        }
    }
}
