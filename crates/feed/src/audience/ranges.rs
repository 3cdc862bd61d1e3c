//! RFC 0020 A.1: filters filed under a range of keys; one key finds exactly those whose range holds it.
//!
//! An interval tree without a tree: a range is filed at the first bit in which its ends differ, where the halves of the
//! keys above that bit meet. A key passes at most one such place for each bit, and there one end alone decides.

use std::collections::{BTreeSet, HashMap};

/// Ranges at one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    places: HashMap<(u32, u64), Place>,
    /// Places at each bit, counted.
    levels: Vec<u32>,
    /// Conditions of filters that are ranges here, filed or not.
    pub(crate) mentions: u32,
    /// Some ends of those ranges: whoever asks, asks where values are.
    sample: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Place {
    firsts: BTreeSet<(u64, u32)>,
    lasts: BTreeSet<(u64, u32)>,
}

const SAMPLE: usize = 64;

/// How many low bits the ends of a range do not share.
fn level(first: u64, last: u64) -> u32 {
    u64::BITS - (first ^ last).leading_zeros()
}

fn above(key: u64, level: u32) -> u64 {
    key.checked_shr(level).unwrap_or_default()
}

impl Ranges {
    /// Remembers that somebody asks for a range here.
    pub(crate) fn mention(&mut self, first: u64, last: u64) {
        self.mentions += 1;
        for end in [first, last].into_iter().filter(|end| !matches!(*end, 0 | u64::MAX)) {
            if self.sample.len() < SAMPLE {
                self.sample.push(end);
            } else if let Some(place) = self.sample.get_mut(self.mentions.wrapping_mul(0x9e37_79b1) as usize % SAMPLE) {
                *place = end;
            }
        }
    }

    /// Which part of all values may lie in a range.
    pub(crate) fn share(&self, first: u64, last: u64) -> f64 {
        let inside = self.sample.iter().filter(|end| first <= **end && **end <= last).count();
        (inside as f64 + 0.5) / (self.sample.len() as f64 + 1.0)
    }

    pub(crate) fn insert(&mut self, first: u64, last: u64, slot: u32) {
        let level = level(first, last);
        let levels = &mut self.levels;
        let place = self.places.entry((level, above(last, level))).or_insert_with(|| {
            levels.resize(levels.len().max(level as usize + 1), 0);
            if let Some(count) = levels.get_mut(level as usize) {
                *count += 1;
            }
            Place::default()
        });
        place.firsts.insert((first, slot));
        place.lasts.insert((last, slot));
    }

    pub(crate) fn remove(&mut self, first: u64, last: u64, slot: u32) {
        let level = level(first, last);
        let at = (level, above(last, level));
        let Some(place) = self.places.get_mut(&at) else { return };
        place.firsts.remove(&(first, slot));
        place.lasts.remove(&(last, slot));
        if place.firsts.is_empty() {
            self.places.remove(&at);
            if let Some(count) = self.levels.get_mut(level as usize) {
                *count -= 1;
            }
        }
    }

    /// The filters whose range holds a key.
    pub(crate) fn holding(&self, key: u64, out: &mut Vec<u32>) {
        for (level, _) in (0..).zip(&self.levels).filter(|(_, count)| **count > 0) {
            let Some(place) = self.places.get(&(level, above(key, level))) else { continue };
            let upper = level == 0 || key >> (level - 1) & 1 == 1;
            if upper {
                out.extend(place.lasts.range((key, 0)..).map(|(_, slot)| *slot));
            } else {
                out.extend(place.firsts.range(..=(key, u32::MAX)).map(|(_, slot)| *slot));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end() -> impl Strategy<Value = u64> {
        prop_oneof![0..40u64, Just(u64::MAX), Just(1 << 63), any::<u64>()]
    }

    proptest! {
        #[test]
        fn a_key_finds_exactly_the_ranges_that_hold_it(
            ends in prop::collection::vec((end(), end(), any::<bool>()), 1..40),
            keys in prop::collection::vec(end(), 1..20),
        ) {
            let mut ranges = Ranges::default();
            let ordered: Vec<(u64, u64, bool)> =
                ends.into_iter().map(|(one, other, stays)| (one.min(other), one.max(other), stays)).collect();
            for (slot, (first, last, _)) in (0..).zip(&ordered) {
                ranges.insert(*first, *last, slot);
            }
            for (slot, (first, last, _)) in (0..).zip(&ordered).filter(|(_, (_, _, stays))| !stays) {
                ranges.remove(*first, *last, slot);
            }
            for key in keys.into_iter().chain(ordered.iter().map(|(first, _, _)| *first)) {
                let mut found = Vec::new();
                ranges.holding(key, &mut found);
                found.sort_unstable();
                let expected: Vec<u32> = (0..)
                    .zip(&ordered)
                    .filter(|(_, (first, last, stays))| *stays && *first <= key && key <= *last)
                    .map(|(slot, _)| slot)
                    .collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
