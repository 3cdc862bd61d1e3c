//! RFC 0020 A.1: filters filed under a range of keys; one key finds exactly those whose range holds it.
//!
//! An interval tree without a tree: a range is filed at the first bit in which its ends differ, where the halves of the
//! keys above that bit meet. A key passes at most one such place for each bit, and walks the ranges there, which lie side
//! by side.
//!
//! A range also has marks, for filters that are filed elsewhere: some bounds at each path are steps, a range is marked by
//! the step just outside each of its ends, and a value has the marks of all steps on its side.

use super::keys::{Marks, NO_MARK, Present};
use std::collections::HashMap;

/// Ranges at one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    places: HashMap<(u32, u64), Vec<Ranged>>,
    /// Places at each bit, counted.
    levels: Vec<u32>,
    /// Conditions of filters that are ranges here, filed or not.
    pub(crate) mentions: u32,
    /// Some ends of those ranges: whoever asks, asks where values are.
    sample: Vec<u64>,
    /// Bounds that values may lie above, and below, in order, with their marks.
    above: Vec<(u64, u16)>,
    below: Vec<(u64, u16)>,
}

/// A filter with its range, and the marks of what else its documents have.
#[derive(Clone, Copy, Debug)]
struct Ranged {
    first: u64,
    last: u64,
    slot: u32,
    marks: Marks,
}

/// On which side of a bound a value lies, the bound included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Above,
    Below,
}

/// Bounds that are steps, on each side.
const STEPS_MAX: usize = 64;

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

    /// The mark of every value that lies on one side of a bound, or further out; `made` makes the mark of a new step.
    pub(crate) fn mark(&mut self, side: Side, bound: u64, made: impl FnOnce() -> u16) -> u16 {
        let steps = match side {
            Side::Above => &mut self.above,
            Side::Below => &mut self.below,
        };
        match steps.binary_search_by_key(&bound, |(step, _)| *step) {
            Ok(place) => steps.get(place).map_or(NO_MARK, |(_, mark)| *mark),
            Err(place) if steps.len() < STEPS_MAX => {
                let mark = made();
                steps.insert(place, (bound, mark));
                mark
            }
            Err(place) => {
                let outside = match side {
                    Side::Above => place.checked_sub(1).and_then(|place| steps.get(place)),
                    Side::Below => steps.get(place),
                };
                outside.map_or(NO_MARK, |(_, mark)| *mark)
            }
        }
    }

    /// Sets the marks that a value has.
    pub(crate) fn set_marks(&self, key: u64, present: &mut Present<'_>) {
        let above = self.above.iter().take_while(|(step, _)| *step <= key);
        let below = self.below.iter().rev().take_while(|(step, _)| key <= *step);
        above.chain(below).for_each(|(_, mark)| present.set(*mark));
    }

    pub(crate) fn insert(&mut self, first: u64, last: u64, slot: u32, marks: Marks) {
        let level = level(first, last);
        let levels = &mut self.levels;
        let place = self.places.entry((level, above(last, level))).or_insert_with(|| {
            levels.resize(levels.len().max(level as usize + 1), 0);
            if let Some(count) = levels.get_mut(level as usize) {
                *count += 1;
            }
            Vec::new()
        });
        place.push(Ranged { first, last, slot, marks });
    }

    pub(crate) fn remove(&mut self, first: u64, last: u64, slot: u32) {
        let level = level(first, last);
        let at = (level, above(last, level));
        let Some(place) = self.places.get_mut(&at) else { return };
        let is_it = |ranged: &Ranged| ranged.slot == slot && (ranged.first, ranged.last) == (first, last);
        if let Some(position) = place.iter().position(is_it) {
            place.swap_remove(position);
        }
        if place.is_empty() {
            self.places.remove(&at);
            if let Some(count) = self.levels.get_mut(level as usize) {
                *count -= 1;
            }
        }
    }

    /// The filters whose range holds a key, and whose marks a document has.
    pub(crate) fn holding(&self, key: u64, present: &Present<'_>, out: &mut Vec<u32>) {
        for (level, _) in (0..).zip(&self.levels).filter(|(_, count)| **count > 0) {
            let Some(place) = self.places.get(&(level, above(key, level))) else { continue };
            for ranged in place {
                if ranged.first <= key && key <= ranged.last && present.has(&ranged.marks) {
                    out.push(ranged.slot);
                }
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
        fn a_value_has_the_marks_of_every_range_that_holds_it(
            ends in prop::collection::vec((end(), end()), 1..200),
            keys in prop::collection::vec(end(), 1..20),
        ) {
            let (mut ranges, mut next) = (Ranges::default(), 0);
            let mut made = || { next += 1; next };
            let marked: Vec<(u64, u64, Marks)> = ends
                .into_iter()
                .map(|(one, other)| {
                    let (first, last) = (one.min(other), one.max(other));
                    let mut marks = Marks::default();
                    marks[0] = ranges.mark(Side::Above, first, &mut made);
                    marks[1] = ranges.mark(Side::Below, last, &mut made);
                    (first, last, marks)
                })
                .collect();
            for key in keys {
                let mut present = Present::new();
                ranges.set_marks(key, &mut present);
                for (first, last, marks) in &marked {
                    let holds = *first <= key && key <= *last;
                    prop_assert!(!holds || present.has(marks));
                    let all_are_steps = marked.len() <= STEPS_MAX / 2;
                    prop_assert!(holds || !all_are_steps || !present.has(marks));
                }
            }
        }

        #[test]
        fn a_key_finds_exactly_the_ranges_that_hold_it(
            ends in prop::collection::vec((end(), end(), any::<bool>()), 1..40),
            keys in prop::collection::vec(end(), 1..20),
        ) {
            let mut ranges = Ranges::default();
            let ordered: Vec<(u64, u64, bool)> =
                ends.into_iter().map(|(one, other, stays)| (one.min(other), one.max(other), stays)).collect();
            for (slot, (first, last, _)) in (0..).zip(&ordered) {
                ranges.insert(*first, *last, slot, Marks::default());
            }
            for (slot, (first, last, _)) in (0..).zip(&ordered).filter(|(_, (_, _, stays))| !stays) {
                ranges.remove(*first, *last, slot);
            }
            for key in keys.into_iter().chain(ordered.iter().map(|(first, _, _)| *first)) {
                let mut found = Vec::new();
                ranges.holding(key, &Present::new(), &mut found);
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
