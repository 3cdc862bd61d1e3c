//! RFC 0020 §3.6: how often a subscriber is told, and what becomes of what comes too fast.
//!
//! In no minute are there more events than the subscriber takes. Cursors are dense, so the journal itself is the memory:
//! the next event may be written when the one that stands `rate` places before it is a minute old. What comes too fast
//! waits for each record by itself, from what was told last to what is there now (decisions/0092).
//!
//! INVARIANT: of a record that waits, the last state is told sooner or later, or nothing when it is what was told.

use std::collections::VecDeque;

/// A minute, in milliseconds.
pub const MINUTE_MS: i64 = 60_000;

/// The event whose age decides whether one more may follow the last; none when there is room anyway.
pub fn deciding(last: u64, rate: u64) -> Option<u64> {
    (last + 1).checked_sub(rate).filter(|cursor| *cursor > 0)
}

/// Milliseconds until one more event may be written, given when the deciding one was.
pub fn wait(decided_at: i64, now: i64) -> i64 {
    (decided_at.saturating_add(MINUTE_MS) - now).max(0)
}

/// What one principal was told in the last minute, however many subscriptions it has.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    times: VecDeque<i64>,
}

impl Bucket {
    /// Counts one more event, unless there were `most` in the last minute.
    pub fn take(&mut self, now: i64, most: usize) -> bool {
        while self.times.front().is_some_and(|time| wait(*time, now) == 0) {
            self.times.pop_front();
        }
        let fits = self.times.len() < most;
        if fits {
            self.times.push_back(now);
        }
        fits
    }

    /// Counts what was told before, at these times.
    pub fn recall(&mut self, times: Vec<i64>) {
        self.times.extend(times);
        self.times.make_contiguous().sort_unstable();
    }

    /// Whether there was nothing in the last minute.
    pub fn is_idle(&self, now: i64) -> bool {
        self.times.back().is_none_or(|time| wait(*time, now) == 0)
    }
}

/// A record that waits to be told: from which revision to which, by number; nought where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The change that came first.
    pub since: u64,
    /// What was told last.
    pub told: u64,
    /// What is there now.
    pub latest: u64,
    /// Whether only what others say of it changed.
    pub evidence: bool,
}

impl Waiting {
    /// Takes one more change in.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self { latest: later.latest, evidence: self.evidence && later.evidence, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_has_more_events_than_the_rate() {
        for rate in [1_u64, 2, 7, 60] {
            let mut journal: Vec<i64> = Vec::new();
            let mut now = 1_000_000;
            while journal.len() < 300 {
                let last = journal.len() as u64;
                let due = deciding(last, rate).map_or(0, |cursor| wait(journal[cursor as usize - 1], now));
                if due == 0 {
                    journal.push(now);
                }
                // Tries come at uneven times.
                now += (now * 7 + 13) % 977;
            }
            for (position, start) in journal.iter().enumerate() {
                let within = journal[position..].iter().filter(|at| **at < start + MINUTE_MS).count() as u64;
                assert!(within <= rate, "{within} events in a minute at {rate}");
            }
        }
    }

    #[test]
    fn many_subscriptions_of_one_principal_share_a_minute() {
        let mut bucket = Bucket::default();
        assert_eq!((0..100).filter(|_| bucket.take(0, 60)).count(), 60);
        assert!(!bucket.take(59_999, 60));
        assert_eq!((0..100).filter(|_| bucket.take(60_000, 60)).count(), 60);
    }

    #[test]
    fn what_was_told_before_counts_in_its_minute() {
        let mut bucket = Bucket::default();
        assert!(bucket.is_idle(0));
        bucket.recall(vec![30_000, 10_000]);
        bucket.recall(vec![20_000]);
        assert!(!bucket.take(40_000, 3) && !bucket.is_idle(40_000));
        assert!(bucket.take(70_000, 3) && !bucket.take(70_000, 3));
        assert!(!bucket.is_idle(129_999) && bucket.is_idle(130_000));
    }

    #[test]
    fn what_waits_keeps_what_was_told_and_takes_what_is() {
        let first = Waiting { since: 5, told: 2, latest: 5, evidence: true };
        let second = Waiting { since: 9, told: 5, latest: 0, evidence: false };
        assert_eq!(first.and(second), Waiting { since: 5, told: 2, latest: 0, evidence: false });
    }
}
