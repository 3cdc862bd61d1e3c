//! RFC 0020 A.1: what else a filter asks for, in one row that lies in the list where the filter is filed.
//!
//! A row is asked with what a document has: marks, a bit for each thing that some row asks for or rules out, and
//! registers, the outermost value at a path that some row compares. Marks are sure. A register has the upper half of a
//! value's key, so only a value whose half is that of the bound leaves a doubt.
//!
//! INVARIANT: a document that satisfies a filter passes one of its rows, and a row that is sure speaks for its filter.

/// A filter in a list, and what its documents have beside the reason why it stands there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The filter, and what passing means.
    slot: u32,
    /// What the registers must not exceed.
    words: [u32; CHECKS_MAX],
    /// Which registers; the first bit says that a tie passes, if the value is no more than its half.
    registers: [u8; CHECKS_MAX],
    pub(crate) marks: [u16; MARKS_MAX],
}

/// Marks in a row.
pub(crate) const MARKS_MAX: usize = 4;
/// Comparisons in a row.
pub(crate) const CHECKS_MAX: usize = 4;
/// Registers that a document has, the one that every row passes included.
pub(crate) const REGISTERS_MAX: usize = 128;
/// Marks that there are, the one that every document has included.
pub(crate) const ALL_MARKS: usize = 1 << 16;

const TIE_PASSES: u8 = 0x80;
const REGISTER: u8 = !TIE_PASSES;
/// Whoever passes satisfies the filter.
const DECIDES: u32 = 1 << 31;
/// A tie with the first end of the range under which it is filed passes, and one with the last.
const FIRST_TIE_PASSES: u32 = 1 << 30;
const LAST_TIE_PASSES: u32 = 1 << 29;
/// More filters than fit into any memory.
const SLOT: u32 = LAST_TIE_PASSES - 1;

/// Which value at a path a register has, and what it says when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sense {
    /// Some value lies at or below a bound.
    SomeBelow,
    /// Some value lies at or above a bound.
    SomeAbove,
    /// No value lies above a bound.
    NoneAbove,
    /// No value lies below a bound.
    NoneBelow,
}

impl Sense {
    pub(crate) const ALL: [Self; 4] = [Self::SomeBelow, Self::SomeAbove, Self::NoneAbove, Self::NoneBelow];

    /// What a register says of a document without a value.
    pub(crate) fn nothing(self) -> u32 {
        match self {
            Self::SomeBelow | Self::SomeAbove => u32::MAX,
            Self::NoneAbove | Self::NoneBelow => 0,
        }
    }

    fn is_above(self) -> bool {
        matches!(self, Self::SomeAbove | Self::NoneBelow)
    }

    /// The upper half of a key, turned so that less is nearer to what is asked for.
    fn half(self, key: u64) -> u32 {
        let half = (key >> 32) as u32;
        (if self.is_above() { !half } else { half }).min(u32::MAX - 1)
    }
}

/// A bound that values are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) key: u64,
    /// Whether the bound itself is outside.
    pub(crate) strict: bool,
    /// Whether the key says all about the bound.
    pub(crate) is_number: bool,
}

/// A value that is compared with bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) key: u64,
    /// Whether the upper half of the key says all about the value.
    pub(crate) whole: bool,
}

/// A bound as a row has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    word: u32,
    tie_passes: bool,
}

impl Check {
    pub(crate) fn of(sense: Sense, end: End) -> Self {
        let half = sense.half(end.key);
        let whole = end.is_number && end.key as u32 == 0 && half > 0 && half < u32::MAX - 1;
        match (end.strict && whole, sense.is_above()) {
            (false, _) => Self { word: half, tie_passes: whole && !end.strict },
            // Every value below the bound has a lower half than it.
            (true, false) => Self { word: half - 1, tie_passes: true },
            (true, true) => Self { word: half, tie_passes: false },
        }
    }
}

/// A filter with the range under which it is filed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranged {
    first: u32,
    last: u32,
    row: Row,
}

impl Ranged {
    pub(crate) fn new(first: Check, last: Check, mut row: Row) -> Self {
        row.slot |= if first.tie_passes { FIRST_TIE_PASSES } else { 0 };
        row.slot |= if last.tie_passes { LAST_TIE_PASSES } else { 0 };
        Self { first: first.word, last: last.word, row }
    }

    pub(crate) fn slot(&self) -> u32 {
        self.row.slot()
    }

    /// How far a value may lie on a side of the range.
    pub(crate) fn reach(&self, side: Side) -> u32 {
        match side {
            Side::Above => self.first,
            Side::Below => self.last,
        }
    }
}

/// Where the values of a range with one end lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Above,
    Below,
}

impl Side {
    /// How far a value lies on this side.
    pub(crate) fn half(self, key: u64) -> u32 {
        match self {
            Self::Above => Sense::SomeAbove.half(key),
            Self::Below => Sense::SomeBelow.half(key),
        }
    }
}

impl Row {
    /// A row that every document passes.
    pub(crate) fn new(slot: u32, decides: bool) -> Self {
        let flag = if decides { DECIDES } else { 0 };
        Self { slot: slot & SLOT | flag, words: [1; CHECKS_MAX], registers: [0; CHECKS_MAX], marks: [0; MARKS_MAX] }
    }

    #[inline]
    pub(crate) fn slot(&self) -> u32 {
        self.slot & SLOT
    }

    /// Puts a comparison in a place of the row.
    pub(crate) fn compare(&mut self, place: usize, register: u8, check: Check) {
        let flag = if check.tie_passes { TIE_PASSES } else { 0 };
        if let (Some(word), Some(known)) = (self.words.get_mut(place), self.registers.get_mut(place)) {
            (*word, *known) = (check.word, register & REGISTER | flag);
        }
    }
}

/// What a document has, as far as rows ask.
///
/// A mark is a byte, so that a row is asked without a branch; room is taken by those that were given out.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    marks: Box<[u8; ALL_MARKS]>,
    /// Marks from here on were never set.
    used: usize,
    registers: [u32; REGISTERS_MAX],
    whole: [bool; REGISTERS_MAX],
}

/// A document that has nothing.
impl Default for Present {
    fn default() -> Self {
        let marks = vec![0; ALL_MARKS].try_into().unwrap_or_else(|_| Box::new([0; ALL_MARKS]));
        let mut present = Self { marks, used: 0, registers: [0; REGISTERS_MAX], whole: [true; REGISTERS_MAX] };
        present.set(0);
        present
    }
}

impl Present {
    /// Becomes like another.
    pub(crate) fn become_like(&mut self, other: &Self) {
        let used = self.used.max(other.used);
        if let (Some(marks), Some(others)) = (self.marks.get_mut(..used), other.marks.get(..used)) {
            marks.copy_from_slice(others);
        }
        self.used = other.used;
        self.registers = other.registers;
        self.whole = other.whole;
    }

    pub(crate) fn set(&mut self, mark: u16) {
        self.used = self.used.max(usize::from(mark) + 1);
        if let Some(place) = self.marks.get_mut(usize::from(mark)) {
            *place = 1;
        }
    }

    pub(crate) fn clear(&mut self, mark: u16) {
        if let Some(place) = self.marks.get_mut(usize::from(mark)) {
            *place = 0;
        }
    }

    /// Makes a register say that there is no value.
    pub(crate) fn reset(&mut self, register: u8, sense: Sense) {
        if let Some(value) = self.registers.get_mut(usize::from(register & REGISTER)) {
            *value = sense.nothing();
        }
    }

    /// Shows a value to a register.
    pub(crate) fn show(&mut self, register: u8, sense: Sense, point: Point) {
        let place = usize::from(register & REGISTER);
        let (Some(value), Some(whole)) = (self.registers.get_mut(place), self.whole.get_mut(place)) else { return };
        let half = sense.half(point.key);
        let further = match sense {
            Sense::SomeBelow | Sense::SomeAbove => half < *value,
            Sense::NoneAbove | Sense::NoneBelow => half > *value,
        };
        if further {
            (*value, *whole) = (half, point.whole);
        } else if half == *value {
            // One that ties for sure is enough, but none may tie in doubt.
            *whole = match sense {
                Sense::SomeBelow | Sense::SomeAbove => *whole | point.whole,
                Sense::NoneAbove | Sense::NoneBelow => *whole & point.whole,
            };
        }
    }

    /// Whether the document has what a mark stands for: 1 or 0.
    #[inline(always)]
    pub(crate) fn has(&self, mark: u16) -> u8 {
        self.marks.get(usize::from(mark)).copied().unwrap_or_default()
    }

    #[inline(always)]
    fn register(&self, register: u8) -> u32 {
        self.registers.get(usize::from(register & REGISTER)).copied().unwrap_or(u32::MAX)
    }

    /// Whether the document passes the first comparison of a row.
    #[inline(always)]
    fn reaches(&self, row: &Row) -> bool {
        let Row { registers: [register, ..], words: [word, ..], .. } = row;
        self.register(*register) <= *word
    }

    /// Whether the document may satisfy the filter of a row.
    #[inline(always)]
    pub(crate) fn passes(&self, row: &Row) -> bool {
        let [first, second, third, fourth] = row.marks;
        let [one, two, three, four] = row.registers;
        let [bound_one, bound_two, bound_three, bound_four] = row.words;
        (self.has(first) & self.has(second) & self.has(third) & self.has(fourth) == 1)
            & (self.register(one) <= bound_one)
            & (self.register(two) <= bound_two)
            & (self.register(three) <= bound_three)
            & (self.register(four) <= bound_four)
    }

    /// Whether a document that passes a row satisfies its filter, for sure.
    #[inline]
    pub(crate) fn is_sure(&self, row: &Row) -> bool {
        let sure = |(word, register): (&u32, &u8)| {
            let whole = self.whole.get(usize::from(register & REGISTER)).copied().unwrap_or_default();
            (self.register(*register) < *word) | ((register & TIE_PASSES != 0) & whole)
        };
        (row.slot & DECIDES != 0) & row.words.iter().zip(&row.registers).fold(true, |all, one| all & sure(one))
    }

    /// Walks rows with ranges around a value.
    #[inline]
    pub(crate) fn walk_ranges(&self, ranges: &[Ranged], point: Point, met: &mut Met) {
        let (above, below) = (Sense::SomeAbove.half(point.key), Sense::SomeBelow.half(point.key));
        let passes = |ranged: &Ranged| (above <= ranged.first) & (below <= ranged.last) & self.passes(&ranged.row);
        sift(ranges, self, passes, |Ranged { first, last, row }| {
            let tie = |flag: u32| point.whole && row.slot & flag != 0;
            let inside = above < *first || tie(FIRST_TIE_PASSES);
            met.push(row, inside && (below < *last || tie(LAST_TIE_PASSES)) && self.is_sure(row));
        });
    }

    /// Walks rows.
    #[inline]
    pub(crate) fn walk(&self, rows: &[Row], met: &mut Met) {
        sift(rows, self, |row| self.passes(row), |row| met.push(row, self.is_sure(row)));
    }
}

/// Does something with those that pass.
///
/// Whether some pass is found out without a branch: half of all rows pass one test or another, so a processor that
/// guesses is wrong all the time, and one that does not wait has the next rows on their way.
#[inline(always)]
fn sift<'a, T: Sorted>(all: &'a [T], present: &Present, passes: impl Fn(&T) -> bool, mut met: impl FnMut(&'a T)) {
    for some in all.chunks(SIFTED) {
        if let (Some(first), Some(last)) = (some.first(), some.last())
            && first.order() >> 32 == last.order() >> 32
            && !present.reaches(first.row())
        {
            continue;
        }
        let bit = |bits: u32, one: &T| bits >> 1 | u32::from(passes(one)) << (SIFTED - 1);
        let mut passed = some.iter().fold(0, bit) >> (SIFTED - some.len());
        while passed != 0 {
            some.get(passed.trailing_zeros() as usize).into_iter().for_each(&mut met);
            passed &= passed - 1;
        }
    }
}

/// Rows that are asked together.
const SIFTED: usize = 8;

/// Rows in order of their first comparison, those that reach furthest first: where one is out of reach, so are those
/// that follow it.
pub(crate) trait Sorted: Copy {
    fn row(&self) -> &Row;

    /// The first register, and how little the value in it may be.
    #[inline(always)]
    fn order(&self) -> u64 {
        let Row { registers: [register, ..], words: [word, ..], .. } = self.row();
        u64::from(register & REGISTER) << 32 | u64::from(!word)
    }
}

impl Sorted for Row {
    #[inline(always)]
    fn row(&self) -> &Row {
        self
    }
}

impl Sorted for Ranged {
    #[inline(always)]
    fn row(&self) -> &Row {
        &self.row
    }
}

/// Rows that are in order; in a long list some are moved for each that comes, not all.
const SORTED: usize = 128 * SIFTED;

/// Adds a row; there are many short lists, so they grow by little.
pub(crate) fn push<T: Sorted>(rows: &mut Vec<T>, row: T) {
    if rows.len() == rows.capacity() {
        rows.reserve_exact(1 + rows.len() / 8);
    }
    let start = rows.len() / SORTED * SORTED;
    rows.push(row);
    settle(rows.get_mut(start..).unwrap_or_default());
}

/// Puts the last of some rows where it belongs among the others.
fn settle<T: Sorted>(rows: &mut [T]) {
    let Some((last, others)) = rows.split_last() else { return };
    let place = others.partition_point(|row| row.order() <= last.order());
    rows.get_mut(place..).unwrap_or_default().rotate_right(1);
}

/// Takes a filter's row out of some.
pub(crate) fn remove<T: Sorted>(rows: &mut Vec<T>, slot: u32) {
    let Some(place) = rows.iter().position(|row| row.row().slot() == slot) else { return };
    let start = place / SORTED * SORTED;
    if let Some(last) = rows.pop()
        && let Some(after) = rows.get_mut(place..)
        && !after.is_empty()
    {
        // The last of all takes its place, among those that are in order there.
        let end = (start + SORTED - place).min(after.len());
        let here = after.get_mut(..end).unwrap_or_default();
        here.rotate_left(1);
        here.last_mut().into_iter().for_each(|row| *row = last);
        settle(rows.get_mut(start..place + end).unwrap_or_default());
    }
    if rows.len() < rows.capacity() / 4 {
        rows.shrink_to(2 * rows.len());
    }
}

/// The filters that a document met, some of them more than once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met {
    /// It satisfies these.
    pub(crate) sure: Vec<u32>,
    /// It may satisfy these.
    pub(crate) likely: Vec<u32>,
}

impl Met {
    pub(crate) fn clear(&mut self) {
        self.sure.clear();
        self.likely.clear();
    }

    #[inline]
    pub(crate) fn push(&mut self, row: &Row, sure: bool) {
        if sure { self.sure.push(row.slot()) } else { self.likely.push(row.slot()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Registers 1 to 3 and marks 1 to 3, each of which some rows ask for.
    fn row() -> impl Strategy<Value = Row> {
        let check = (1..4u8, 0..8u64, any::<bool>());
        (prop::collection::vec(check, 0..3), 0..4u16).prop_map(|(checks, mark)| {
            let mut row = Row::new(0, true);
            row.marks = [mark, 0, 0, 0];
            for (place, (register, bound, strict)) in checks.into_iter().enumerate() {
                let end = End { key: bound << 32, strict, is_number: true };
                row.compare(place, register, Check::of(Sense::SomeBelow, end));
            }
            row
        })
    }

    fn present(values: [u64; 3], marks: [bool; 3]) -> Present {
        let mut present = Present::default();
        for (number, (value, marked)) in (1..).zip(values.into_iter().zip(marks)) {
            present.reset(number, Sense::SomeBelow);
            present.show(number, Sense::SomeBelow, Point { key: value << 32, whole: true });
            if marked {
                present.set(number.into());
            }
        }
        present
    }

    fn compare(kinds: &[Row], steps: &[(usize, bool)], present: &Present) {
        let (mut rows, mut plain): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
        for (slot, (kind, goes)) in (0..).zip(steps) {
            let row = Row { slot: slot | DECIDES, ..kinds[kind % kinds.len()] };
            push(&mut rows, row);
            plain.push(row);
            if *goes {
                let gone = plain.swap_remove(kind * 7 % plain.len());
                remove(&mut rows, gone.slot());
            }
        }
        assert_eq!(rows.len(), plain.len());
        let mut met = Met::default();
        present.walk(&rows, &mut met);
        met.sure.extend(&met.likely);
        met.sure.sort_unstable();
        let mut expected: Vec<u32> = plain.iter().filter(|row| present.passes(row)).map(Row::slot).collect();
        expected.sort_unstable();
        assert_eq!(met.sure, expected);
    }

    proptest! {
        #[test]
        fn rows_that_come_and_go_are_found_as_if_each_were_asked(
            kinds in prop::collection::vec(row(), 1..40),
            steps in prop::collection::vec((0..1000usize, prop::bool::weighted(0.3)), 1..200),
            values in any::<[u8; 3]>(),
            marks in any::<[bool; 3]>(),
        ) {
            compare(&kinds, &steps, &present(values.map(|value| u64::from(value % 8)), marks));
        }

        #[test]
        fn what_one_document_has_does_not_stay_for_the_next(marks in prop::collection::vec(1..300u16, 0..20)) {
            let (mut room, mut empty) = (Present::default(), Present::default());
            empty.set(77);
            for mark in &marks {
                room.set(*mark);
            }
            room.become_like(&empty);
            for mark in 0..400 {
                prop_assert_eq!(room.has(mark), empty.has(mark));
            }
        }
    }

    #[test]
    fn a_list_longer_than_what_is_kept_in_order_at_once_is_walked_as_a_whole() {
        let kinds: Vec<Row> = (0..60)
            .map(|number| {
                let mut row = Row::new(0, true);
                let end = End { key: (number % 9) << 32, strict: false, is_number: true };
                row.compare(0, 1 + (number % 3) as u8, Check::of(Sense::SomeBelow, end));
                row
            })
            .collect();
        let steps: Vec<(usize, bool)> =
            (0..4 * SORTED).map(|number| (number.wrapping_mul(2_654_435_761) >> 7, number % 5 == 0)).collect();
        for values in [[0, 4, 8], [3, 3, 3], [8, 0, 1]] {
            compare(&kinds, &steps, &present(values, [false; 3]));
        }
    }
}
