//! RFC 0020 A.1: filters filed under a range of keys; a key finds those whose range holds it.
//!
//! Keys are cut into pieces of one length, and of four times that length, and so on. A range lies in a few pieces of one
//! of these lengths, whose rows lie side by side; a key lies in one piece of each length. A range with one end would lie
//! in pieces that every key lies in, so those stand in order, and a key goes along them as far as it reaches.

use super::rows::{Check, End, Point, Present, Ranged, Row, Sense, Side, push, remove};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Ranges at one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Ranges with two ends, by [`piece`].
    pieces: HashMap<u64, Vec<Ranged>, RandomState>,
    /// Pieces of each length, counted.
    lengths: Vec<u32>,
    /// Which of these there are, a bit each.
    used: u64,
    above: Sided,
    below: Sided,
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
    let mut length = STEP;
    while (last >> length) - (first >> length) >= PIECES_MAX {
        length += STEP;
    }
    (length, first >> length..=last >> length)
}

/// One number for a piece: below the keys in it stands a bit that tells the length.
fn piece(length: u32, place: u64) -> u64 {
    (place << 1 | 1) << (length - 1)
}

/// The side on which the values of a range with one end lie; none where it has two.
fn side(first: u64, last: u64) -> Option<Side> {
    match (first, last) {
        (_, u64::MAX) => Some(Side::Above),
        (0, _) => Some(Side::Below),
        _ => None,
    }
}

/// Ranges with one end, in runs of some; what is in a run reaches at least as far as what is in the next.
#[derive(Clone, Debug, Default)]
struct Sided {
    /// How far some row of each run reaches, and no other reaches further.
    reaches: Vec<u32>,
    runs: Vec<Vec<Ranged>>,
}

/// Rows of a run: so many may be walked in vain.
const RUN_MAX: usize = 32;

fn furthest(run: &[Ranged], side: Side) -> u32 {
    run.iter().map(|row| row.reach(side)).max().unwrap_or_default()
}

impl Sided {
    fn insert(&mut self, side: Side, row: Ranged) {
        let reach = row.reach(side);
        let place = self.reaches.partition_point(|known| *known > reach).saturating_sub(1);
        if self.runs.is_empty() {
            self.reaches.push(reach);
            self.runs.push(Vec::new());
        }
        let (Some(run), Some(known)) = (self.runs.get_mut(place), self.reaches.get_mut(place)) else { return };
        *known = reach.max(*known);
        push(run, row);
        if run.len() > RUN_MAX {
            let mut rows = std::mem::take(run);
            rows.sort_by_key(|row| std::cmp::Reverse(row.reach(side)));
            let mut rest = Vec::with_capacity(RUN_MAX);
            rows.drain(RUN_MAX / 2..).for_each(|row| push(&mut rest, row));
            rows.into_iter().for_each(|row| push(run, row));
            self.reaches.insert(place + 1, furthest(&rest, side));
            self.runs.insert(place + 1, rest);
        }
    }

    /// Takes out the row of a filter whose range ends at a key.
    fn remove(&mut self, side: Side, key: u64, slot: u32) {
        // A bound that is outside itself may reach less far by one.
        let (most, least) = (side.half(key), side.half(key).saturating_sub(1));
        let start = self.reaches.partition_point(|known| *known > most).saturating_sub(1);
        let near = self.reaches.iter().enumerate().skip(start).take_while(|(_, reach)| **reach >= least);
        let has = |place: &usize| self.runs.get(*place).is_some_and(|run| run.iter().any(|row| row.slot() == slot));
        let Some(place) = near.map(|(place, _)| place).find(has) else { return };
        let (Some(run), Some(reach)) = (self.runs.get_mut(place), self.reaches.get_mut(place)) else { return };
        remove(run, slot);
        *reach = furthest(run, side);
        if run.is_empty() {
            self.runs.remove(place);
            self.reaches.remove(place);
        }
    }

    /// The runs that reach as far as a value.
    fn rows<'a>(&'a self, side: Side, point: Point, out: &mut Vec<(Point, &'a [Ranged])>) {
        let half = side.half(point.key);
        let far = self.reaches.iter().zip(&self.runs).take_while(|(reach, _)| half <= **reach);
        out.extend(far.map(|(_, run)| (point, run.as_slice())));
    }
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
        let row = Ranged::new(first, last, row);
        let (first, last) = range.keys();
        match side(first, last) {
            Some(Side::Above) => return self.above.insert(Side::Above, row),
            Some(Side::Below) => return self.below.insert(Side::Below, row),
            None => {}
        }
        let (length, places) = pieces(first, last);
        for place in places {
            let rows = self.pieces.entry(piece(length, place)).or_default();
            if rows.is_empty() {
                self.lengths.resize(self.lengths.len().max(length as usize + 1), 0);
                if let Some(count) = self.lengths.get_mut(length as usize) {
                    *count += 1;
                }
                self.used |= 1 << length;
            }
            push(rows, row);
        }
    }

    pub(crate) fn remove(&mut self, first: u64, last: u64, slot: u32) {
        match side(first, last) {
            Some(Side::Above) => return self.above.remove(Side::Above, first, slot),
            Some(Side::Below) => return self.below.remove(Side::Below, last, slot),
            None => {}
        }
        let (length, places) = pieces(first, last);
        for place in places {
            let Some(rows) = self.pieces.get_mut(&piece(length, place)) else { continue };
            remove(rows, slot);
            if rows.is_empty() {
                self.pieces.remove(&piece(length, place));
                if let Some(count) = self.lengths.get_mut(length as usize) {
                    *count -= 1;
                    self.used &= !(u64::from(*count == 0) << length);
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
        let mut used = self.used;
        while used != 0 {
            let length = used.trailing_zeros();
            let rows = self.pieces.get(&piece(length, point.key >> length));
            out.extend(rows.map(|rows| (point, rows.as_slice())));
            used &= used - 1;
        }
        self.above.rows(Side::Above, point, out);
        self.below.rows(Side::Below, point, out);
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
            ends in prop::collection::vec((end(), end(), any::<bool>()), 1..160),
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
