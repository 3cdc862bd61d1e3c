//! What we remember for a while, within bounds.
//!
//! Time is an argument. What is too old is as good as forgotten; when there is no room, the oldest goes.
//!
//! INVARIANT: nothing is handed out after its time; entries and bytes stay within their bounds.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How long and how much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) keep: Duration,
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

/// A bounded memory.
pub(super) struct Cache<K, V> {
    bounds: Bounds,
    entries: HashMap<K, Entry<V>>,
    /// Every storing, oldest first; a number that is no longer its entry's belongs to one stored anew.
    order: VecDeque<(K, u64)>,
    bytes: usize,
    stored: u64,
}

struct Entry<V> {
    value: V,
    until: Instant,
    bytes: usize,
    number: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: HashMap::new(), order: VecDeque::new(), bytes: 0, stored: 0 }
    }

    /// What was stored under this key, while it may be used.
    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        self.entries.get(key).filter(|entry| now < entry.until).map(|entry| entry.value.clone())
    }

    /// Stores a value that takes about so many bytes.
    pub(super) fn put(&mut self, key: K, value: V, bytes: usize, now: Instant) {
        self.remove(&key);
        self.stored += 1;
        let entry = Entry { value, until: now + self.bounds.keep, bytes, number: self.stored };
        self.order.push_back((key.clone(), self.stored));
        self.entries.insert(key, entry);
        self.bytes += bytes;
        self.make_room();
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Drops the oldest until all fits. What was stored anew leaves a mark behind that counts as an entry until here,
    /// so the marks are bounded like the entries.
    fn make_room(&mut self) {
        while self.order.len() > self.bounds.entries || self.bytes > self.bounds.bytes {
            let Some((key, number)) = self.order.pop_front() else { return };
            if self.entries.get(&key).is_some_and(|entry| entry.number == number) {
                self.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { keep: Duration::from_secs(300), entries: 3, bytes: 100 };

    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made from nothing; the test moves it itself")]
    fn start() -> Instant {
        Instant::now()
    }

    fn held(cache: &Cache<&'static str, u32>, now: Instant) -> String {
        ["a", "b", "c", "d"].into_iter().filter(|key| cache.get(key, now).is_some()).collect()
    }

    #[test]
    fn an_entry_ends_with_its_time() {
        let (mut cache, start) = (Cache::new(BOUNDS), start());
        cache.put("a", 1, 1, start);
        assert_eq!(cache.get(&"a", start + Duration::from_millis(299_999)), Some(1));
        assert_eq!(cache.get(&"a", start + Duration::from_secs(300)), None);
        cache.put("a", 2, 1, start + Duration::from_secs(400));
        assert_eq!(cache.get(&"a", start + Duration::from_secs(699)), Some(2));
    }

    #[test]
    fn the_oldest_makes_room() {
        let (mut cache, start) = (Cache::new(BOUNDS), start());
        for key in ["a", "b", "c", "d"] {
            cache.put(key, 1, 1, start);
        }
        assert_eq!(held(&cache, start), "bcd");
    }

    #[test]
    fn bytes_are_bounded_like_entries() {
        let (mut cache, start) = (Cache::new(BOUNDS), start());
        cache.put("a", 1, 40, start);
        cache.put("b", 1, 60, start);
        assert_eq!(held(&cache, start), "ab");
        cache.put("c", 1, 1, start);
        assert_eq!(held(&cache, start), "bc");
        cache.put("d", 1, 101, start);
        assert_eq!(held(&cache, start), "");
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn storing_anew_a_million_times_leaves_nothing_behind() {
        let (mut cache, start) = (Cache::new(BOUNDS), start());
        for round in 0..1_000_000 {
            cache.put("a", round, 30, start);
        }
        assert_eq!((cache.entries.len(), cache.bytes), (1, 30));
        assert!(cache.order.len() <= BOUNDS.entries);
        assert_eq!(cache.get(&"a", start), Some(999_999));
    }
}
