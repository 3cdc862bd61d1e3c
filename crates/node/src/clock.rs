//! The clock: the only place of the node where time enters.
//!
//! A node's time does not go back, not even over a restart: the latest moment that it has seen is kept in its folder, and
//! a machine whose clock says less is not believed (decisions/0113).

use aql::Instant;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use trust::Digest;

/// Where the latest moment is kept, in the data folder.
pub(crate) const MARK_FILE: &str = "clock.mark";
/// Milliseconds after which the moment is written down again.
const MARK_EVERY: i64 = 60_000;
/// Milliseconds by which a clock may be set back without a word: that is how clocks are set right.
const SET_BACK: i64 = 5_000;

/// What tells the time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that is set by hand, in milliseconds since 1970.
    Set(Arc<AtomicI64>),
    /// A clock that never goes back.
    Kept(Arc<Kept>),
}

/// A clock and the latest moment that it told, which is kept in a folder.
#[derive(Debug)]
pub struct Kept {
    inner: Clock,
    latest: AtomicI64,
    written: AtomicI64,
    path: PathBuf,
}

impl Kept {
    /// A clock that goes on from the latest moment that the folder knows of, or `at_least`.
    pub(crate) fn open(inner: &Clock, folder: &Path, at_least: i64) -> Clock {
        let path = folder.join(MARK_FILE);
        let written = fs::read_to_string(&path).ok().and_then(|text| read(&text)).unwrap_or_default();
        let (now, latest) = (inner.millis(), written.max(at_least));
        if latest > now + SET_BACK {
            tracing::error!(
                behind_ms = latest - now,
                file = MARK_FILE,
                "clock_rolled_back: the machine's clock says an earlier time than this node has seen; its time stands \
                 still until the clock has caught up. If the clock was wrong before and is right now, stop the node and \
                 delete the file"
            );
        }
        let kept = Self { inner: inner.clone(), latest: latest.into(), written: written.into(), path };
        Clock::Kept(Arc::new(kept))
    }

    fn millis(&self) -> i64 {
        let now = self.inner.millis();
        self.latest.fetch_max(now, Ordering::AcqRel).max(now)
    }

    /// Writes the latest moment down when it is a while since; a disk that takes nothing is told of elsewhere.
    fn write(&self, every: i64) {
        let now = self.millis();
        if now - self.written.load(Ordering::Acquire) < every {
            return;
        }
        let beside = self.path.with_extension("new");
        if fs::write(&beside, written(now)).and_then(|()| fs::rename(&beside, &self.path)).is_ok() {
            self.written.store(now, Ordering::Release);
        }
    }
}

/// A moment and its digest: an altered byte must not send the node into the future.
fn written(millis: i64) -> String {
    format!("{millis} {}\n", Digest::of(millis.to_string().as_bytes()))
}

fn read(text: &str) -> Option<i64> {
    let (millis, digest) = text.trim_end().split_once(' ')?;
    (Digest::of(millis.as_bytes()) == Digest::read(digest)?).then(|| millis.parse().ok()).flatten()
}

impl Clock {
    /// Writes down how late it is, now and then.
    pub(crate) fn keep(&self) {
        if let Self::Kept(kept) = self {
            kept.write(MARK_EVERY);
        }
    }

    /// Writes down how late it is.
    pub(crate) fn keep_now(&self) {
        if let Self::Kept(kept) = self {
            kept.write(1);
        }
    }

    /// Milliseconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "the node is where time enters")]
    pub fn millis(&self) -> i64 {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
            Self::Set(millis) => millis.load(Ordering::Acquire),
            Self::Kept(kept) => kept.millis(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set(millis: i64) -> (Clock, Arc<AtomicI64>) {
        let hand = Arc::new(AtomicI64::new(millis));
        (Clock::Set(Arc::clone(&hand)), hand)
    }

    #[test]
    fn time_does_not_go_back_while_a_node_runs_nor_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, hand) = set(1_000_000);
        let clock = Kept::open(&inner, folder.path(), 0);
        assert_eq!(clock.millis(), 1_000_000);
        hand.store(900_000, Ordering::Release);
        assert_eq!(clock.millis(), 1_000_000);
        hand.store(1_200_000, Ordering::Release);
        clock.keep_now();
        let (yesterday, hand) = set(1_000);
        let clock = Kept::open(&yesterday, folder.path(), 0);
        assert_eq!(clock.millis(), 1_200_000);
        hand.store(1_200_001, Ordering::Release);
        assert_eq!(clock.millis(), 1_200_001);
        assert_eq!(Kept::open(&yesterday, folder.path(), 5_000_000).millis(), 5_000_000);
    }

    #[test]
    fn a_mark_is_written_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, hand) = set(1_000_000);
        let clock = Kept::open(&inner, folder.path(), 0);
        let kept = || fs::read_to_string(folder.path().join(MARK_FILE)).ok().and_then(|text| read(&text));
        for (now, expected) in [(1_000_000, 1_000_000), (1_059_999, 1_000_000), (1_060_000, 1_060_000)] {
            hand.store(now, Ordering::Release);
            clock.keep();
            assert_eq!(kept(), Some(expected));
        }
    }

    #[test]
    fn an_altered_mark_counts_for_nothing() {
        let text = written(1_772_366_400_000);
        assert_eq!(read(&text), Some(1_772_366_400_000));
        for position in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= 1;
            assert_eq!(read(&String::from_utf8_lossy(&bytes)), None, "byte {position}");
        }
    }
}
