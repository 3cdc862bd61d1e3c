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

const MARK_WORDS: usize = ALL_MARKS / 64;
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
#[derive(Clone, Debug)]
pub(crate) struct Present {
    marks: Box<[u64; MARK_WORDS]>,
    registers: [u32; REGISTERS_MAX],
    whole: [bool; REGISTERS_MAX],
}

/// A document that has nothing.
impl Default for Present {
    fn default() -> Self {
        let mut present =
            Self { marks: Box::new([0; MARK_WORDS]), registers: [0; REGISTERS_MAX], whole: [true; REGISTERS_MAX] };
        present.set(0);
        present
    }
}

impl Present {
    pub(crate) fn set(&mut self, mark: u16) {
        if let Some(word) = self.marks.get_mut(usize::from(mark >> 6)) {
            *word |= 1 << (mark & 63);
        }
    }

    pub(crate) fn clear(&mut self, mark: u16) {
        if let Some(word) = self.marks.get_mut(usize::from(mark >> 6)) {
            *word &= !(1 << (mark & 63));
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

    #[inline(always)]
    pub(crate) fn has(&self, mark: u16) -> bool {
        self.marks.get(usize::from(mark >> 6)).is_some_and(|word| word >> (mark & 63) & 1 == 1)
    }

    #[inline(always)]
    fn register(&self, register: u8) -> u32 {
        self.registers.get(usize::from(register & REGISTER)).copied().unwrap_or(u32::MAX)
    }

    /// Whether the document may satisfy the filter of a row.
    #[inline(always)]
    pub(crate) fn passes(&self, row: &Row) -> bool {
        let [first, second, third, fourth] = row.marks;
        let [one, two, three, four] = row.registers;
        let [bound_one, bound_two, bound_three, bound_four] = row.words;
        let marks = self.has(first) & self.has(second) & self.has(third) & self.has(fourth);
        marks
            && (self.register(one) <= bound_one)
                & (self.register(two) <= bound_two)
                & (self.register(three) <= bound_three)
                & (self.register(four) <= bound_four)
    }

    /// Whether a document that passes a row satisfies its filter, for sure.
    #[inline]
    pub(crate) fn is_sure(&self, row: &Row) -> bool {
        let sure = |(word, register): (&u32, &u8)| {
            let whole = || self.whole.get(usize::from(register & REGISTER)).is_some_and(|whole| *whole);
            self.register(*register) < *word || (register & TIE_PASSES != 0 && whole())
        };
        row.slot & DECIDES != 0 && row.words.iter().zip(&row.registers).all(sure)
    }

    /// Walks rows with ranges around a value.
    #[inline]
    pub(crate) fn walk_ranges(&self, ranges: &[Ranged], point: Point, met: &mut Met) {
        let (above, below) = (Sense::SomeAbove.half(point.key), Sense::SomeBelow.half(point.key));
        for Ranged { first, last, row } in ranges {
            if (above <= *first) & (below <= *last) && self.passes(row) {
                let tie = |flag: u32| point.whole && row.slot & flag != 0;
                let inside = above < *first || tie(FIRST_TIE_PASSES);
                met.push(row, inside && (below < *last || tie(LAST_TIE_PASSES)) && self.is_sure(row));
            }
        }
    }

    /// Walks rows.
    #[inline]
    pub(crate) fn walk(&self, rows: &[Row], met: &mut Met) {
        for row in rows {
            if self.passes(row) {
                met.push(row, self.is_sure(row));
            }
        }
    }
}

/// The filters that a document met, some of them more than once.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// It satisfies these.
    pub(crate) sure: Vec<u32>,
    /// It may satisfy these.
    pub(crate) likely: Vec<u32>,
}

impl Met {
    #[inline]
    pub(crate) fn push(&mut self, row: &Row, sure: bool) {
        if sure { self.sure.push(row.slot()) } else { self.likely.push(row.slot()) }
    }
}
