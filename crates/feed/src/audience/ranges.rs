//! RFC 0020 A.1: filters filed under a range of keys; a key finds those whose range holds it.
//!
//! Keys are cut into pieces of one length, and of four times that length, and so on. A range lies in a few pieces of one
//! of these lengths, whose rows lie side by side; a key lies in one piece of each length.

use super::keys::push;
use super::rows::{Check, End, Point, Present, Ranged, Row, Sense};
use foldhash::quality::RandomState;
use std::collections::HashMap;

/// Ranges at one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    pieces: HashMap<(u32, u64), Vec<Ranged>, RandomState>,
    /// Pieces of each length, counted.
    lengths: Vec<u32>,
    /// Conditions of filters on values here.
    users: u32,
    /// Ranges among them so far, filed or not.
    mentions: u32,
    /// Some ends of those ranges: whoever asks, asks where values are.
    sample: Vec<u64>,
    /// The registers that rows here have, one for each sense; 0 for none yet.
    pub(crate) registers: [u8; 4],
}

/// Where values of a filter's documents lie, ends as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: Option<End>,
    pub(crate) last: Option<End>,
}

const SAMPLE: usize = 64;
/// Pieces that a range lies in, at most; all keys together are so many pieces of the greatest length.
const PIECES_MAX: u64 = 4;
/// Bits by which one length differs from the next.
const STEP: u32 = 2;

impl Range {
    /// The keys between the ends.
    pub(crate) fn keys(self) -> (u64, u64) {
        (self.first.map_or(0, |end| end.key), self.last.map_or(u64::MAX, |end| end.key))
    }

    /// What lies in both ranges.
    pub(crate) fn meet(self, other: Self) -> Self {
        let later = |left: End, right: End| if left.key < right.key { right } else { left };
        let sooner = |left: End, right: End| if left.key < right.key { left } else { right };
        Self { first: joined(self.first, other.first, later), last: joined(self.last, other.last, sooner) }
    }

    /// The ends, each with its sense.
    pub(crate) fn ends(self) -> impl Iterator<Item = (Sense, End)> {
        let first = self.first.map(|end| (Sense::SomeAbove, end));
        first.into_iter().chain(self.last.map(|end| (Sense::SomeBelow, end)))
    }
}

/// The pieces in which a range of keys lies, and their length.
fn pieces(first: u64, last: u64) -> (u32, std::ops::RangeInclusive<u64>) {
    let mut length = 0;
    while (last >> length) - (first >> length) >= PIECES_MAX {
        length += STEP;
    }
    (length, first >> length..=last >> length)
}

fn joined(left: Option<End>, right: Option<End>, choose: impl Fn(End, End) -> End) -> Option<End> {
    match (left, right) {
        // Whose bound it is does not matter, but nothing is known of it that is not known of both.
        (Some(left), Some(right)) if left.key == right.key => {
            let (strict, is_number) = (left.strict || right.strict, left.is_number && right.is_number);
            Some(End { key: left.key, strict, is_number })
        }
        (Some(left), Some(right)) => Some(choose(left, right)),
        (left, right) => left.or(right),
    }
}

impl Ranges {
    /// Counts one more condition here.
    pub(crate) fn retain(&mut self) {
        self.users += 1;
    }

    /// Counts one condition less; says whether that was the last one.
    pub(crate) fn release(&mut self) -> bool {
        self.users -= 1;
        self.users == 0
    }

    /// Remembers that somebody asks for a range here.
    pub(crate) fn mention(&mut self, range: Range) {
        self.mentions = self.mentions.wrapping_add(1);
        for (_, end) in range.ends() {
            if self.sample.len() < SAMPLE {
                self.sample.push(end.key);
            } else if let Some(place) = self.sample.get_mut(self.mentions.wrapping_mul(0x9e37_79b1) as usize % SAMPLE) {
                *place = end.key;
            }
        }
    }

    /// Which part of all values may lie in a range.
    pub(crate) fn share(&self, range: Range) -> f64 {
        let (first, last) = range.keys();
        let inside = self.sample.iter().filter(|end| first <= **end && **end <= last).count();
        (inside as f64 + 0.5) / (self.sample.len() as f64 + 1.0)
    }

    pub(crate) fn insert(&mut self, range: Range, row: Row) {
        let nothing = |key| End { key, strict: false, is_number: false };
        let first = Check::of(Sense::SomeAbove, range.first.unwrap_or(nothing(0)));
        let last = Check::of(Sense::SomeBelow, range.last.unwrap_or(nothing(u64::MAX)));
        let (length, places) = pieces(range.keys().0, range.keys().1);
        let lengths = &mut self.lengths;
        for place in places {
            let piece = self.pieces.entry((length, place)).or_insert_with(|| {
                lengths.resize(lengths.len().max(length as usize + 1), 0);
                if let Some(count) = lengths.get_mut(length as usize) {
                    *count += 1;
                }
                Vec::new()
            });
            push(piece, Ranged::new(first, last, row));
        }
    }

    pub(crate) fn remove(&mut self, first: u64, last: u64, slot: u32) {
        let (length, places) = pieces(first, last);
        for place in places {
            let Some(piece) = self.pieces.get_mut(&(length, place)) else { continue };
            if let Some(position) = piece.iter().position(|ranged| ranged.slot() == slot) {
                piece.swap_remove(position);
            }
            if piece.is_empty() {
                self.pieces.remove(&(length, place));
                if let Some(count) = self.lengths.get_mut(length as usize) {
                    *count -= 1;
                }
            }
        }
    }

    /// Shows a value to the registers here.
    pub(crate) fn show(&self, point: Point, present: &mut Present) {
        for (sense, register) in Sense::ALL.into_iter().zip(self.registers).filter(|(_, register)| *register != 0) {
            present.show(register, sense, point);
        }
    }

    /// The rows around a value.
    pub(crate) fn rows<'a>(&'a self, point: Point, out: &mut Vec<(Point, &'a [Ranged])>) {
        for (length, _) in (0..).zip(&self.lengths).filter(|(_, count)| **count > 0) {
            let piece = self.pieces.get(&(length, point.key >> length));
            out.extend(piece.map(|piece| (point, piece.as_slice())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Met;
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = u64> {
        prop_oneof![0..40u64, (0..40u64).prop_map(|half| half << 32), Just(u64::MAX), Just(1 << 63), any::<u64>()]
    }

    fn end() -> impl Strategy<Value = Option<End>> {
        let end = (key(), any::<bool>(), any::<bool>());
        prop::option::of(end.prop_map(|(key, strict, is_number)| End { key, strict, is_number }))
    }

    /// Whether a value lies in a range, if keys alone can tell.
    fn holds(range: Range, key: u64) -> Option<bool> {
        let side = |end: Option<End>, inside: fn(u64, u64) -> bool| match end {
            None => Some(true),
            Some(end) if end.key == key => end.is_number.then_some(!end.strict),
            Some(end) => Some(inside(end.key, key)),
        };
        match (side(range.first, |end, key| end < key), side(range.last, |end, key| key < end)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (first, last) => Some(first? && last?),
        }
    }

    proptest! {
        #[test]
        fn a_key_finds_the_ranges_that_hold_it_and_is_sure_of_no_other(
            ends in prop::collection::vec((end(), end(), any::<bool>()), 1..40),
            keys in prop::collection::vec(key(), 1..20),
        ) {
            let mut ranges = Ranges::default();
            let all: Vec<(Range, bool)> = ends
                .into_iter()
                .map(|(first, last, stays)| (Range { first, last }, stays))
                .filter(|(range, _)| range.keys().0 <= range.keys().1)
                .collect();
            for (slot, (range, _)) in (0..).zip(&all) {
                ranges.insert(*range, Row::new(slot, true));
            }
            for (slot, (range, _)) in (0..).zip(&all).filter(|(_, (_, stays))| !stays) {
                ranges.remove(range.keys().0, range.keys().1, slot);
            }
            for key in keys {
                let (mut met, mut rows) = (Met::default(), Vec::new());
                ranges.rows(Point { key, whole: key as u32 == 0 }, &mut rows);
                rows.iter().for_each(|(point, rows)| Present::default().walk_ranges(rows, *point, &mut met));
                for (slot, (range, stays)) in (0..).zip(&all) {
                    let (sure, likely) = (met.sure.contains(&slot), met.likely.contains(&slot));
                    match holds(*range, key).filter(|_| *stays) {
                        _ if !stays => prop_assert!(!sure && !likely),
                        Some(true) => prop_assert!(sure || likely),
                        Some(false) => prop_assert!(!sure),
                        None => prop_assert!(likely && !sure),
                    }
                }
            }
        }

        #[test]
        fn a_register_tells_what_asking_every_value_tells(
            values in prop::collection::vec(key(), 0..4),
            bound in end(),
        ) {
            let Some(end) = bound else { return Ok(()) };
            for sense in Sense::ALL {
                let mut present = Present::default();
                present.reset(1, sense);
                for key in &values {
                    present.show(1, sense, Point { key: *key, whole: *key as u32 == 0 });
                }
                let mut row = Row::new(0, true);
                row.compare(0, 1, Check::of(sense, end));
                let above = matches!(sense, Sense::SomeAbove | Sense::NoneBelow);
                let range = if above { Range { first: bound, last: None } } else { Range { first: None, last: bound } };
                let each: Vec<Option<bool>> = values.iter().map(|key| holds(range, *key)).collect();
                let expected = match sense {
                    Sense::SomeBelow | Sense::SomeAbove if each.contains(&Some(true)) => Some(true),
                    Sense::SomeBelow | Sense::SomeAbove => (!each.contains(&None)).then_some(false),
                    Sense::NoneAbove | Sense::NoneBelow if each.contains(&Some(false)) => Some(false),
                    Sense::NoneAbove | Sense::NoneBelow => (!each.contains(&None)).then_some(true),
                };
                match (expected, present.passes(&row), present.is_sure(&row)) {
                    (Some(true) | None, passes, _) if !passes => prop_assert!(false, "{sense:?} {end:?} {values:?}"),
                    (Some(false) | None, true, true) => prop_assert!(false, "{sense:?} {end:?} {values:?}"),
                    _ => {}
                }
            }
        }
    }
}
