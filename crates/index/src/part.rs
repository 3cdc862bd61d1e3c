//! What every part of the index can tell, whether it lies in memory or in a file.
//!
//! The units of a part are a run of numbers, and those of different parts are disjoint; so a question is asked of each
//! part by itself and the answers are put side by side.

use crate::Unit;
use crate::error::IndexError;
use crate::paths::PathId;
use roaring::RoaringBitmap;

/// Units by the kind of value that they have at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// Any value.
    Present,
    Nulls,
    Trues,
    Falses,
    Arrays,
    Objects,
    /// A text that is not filed whole.
    Longs,
}

impl Set {
    pub(crate) const COUNT: usize = Self::ALL.len();
    pub(crate) const ALL: [Self; 7] =
        [Self::Present, Self::Nulls, Self::Trues, Self::Falses, Self::Arrays, Self::Objects, Self::Longs];
}

/// Values at a path that are filed by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Numbers, in their order.
    Numbers,
    /// Texts that are decimals, in the order of their nearest doubles.
    Decimals,
    /// Texts that are moments, in their order.
    Moments,
    /// Texts that are not filed whole, by their hash.
    Longs,
}

impl Table {
    pub(crate) const COUNT: usize = Self::ALL.len();
    pub(crate) const ALL: [Self; 4] = [Self::Numbers, Self::Decimals, Self::Moments, Self::Longs];
}

/// What was found out about one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    No,
    Unknown,
}

/// Which texts to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scan<'a> {
    /// Those that begin with this; all begin with nothing.
    Prefix(&'a str),
    /// Those that are not found by trigrams.
    Uncovered,
}

/// Where units with one value are filed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lookup<'a> {
    Set(Set),
    Key(Table, u64),
    /// A text that is short enough to be filed whole.
    Text(&'a str),
}

/// The values at one path in one part.
pub(crate) trait Column {
    /// Units with one value.
    fn units(&self, at: Lookup<'_>) -> Result<RoaringBitmap, IndexError>;
    fn count(&self, at: Lookup<'_>) -> u64;
    /// Those of some rising units that have it.
    fn among(&self, at: Lookup<'_>, units: &[Unit]) -> Result<Vec<Unit>, IndexError>;

    /// Units with a key from `first` to `last`.
    fn between(&self, table: Table, first: u64, last: u64) -> Result<RoaringBitmap, IndexError>;
    /// The same as a list in order, where few are expected.
    fn between_list(&self, table: Table, first: u64, last: u64) -> Result<Vec<Unit>, IndexError> {
        Ok(self.between(table, first, last)?.iter().collect())
    }
    /// About how many those are.
    fn between_len(&self, table: Table, first: u64, last: u64) -> u64;
    /// Those of some rising units; `None` when asking for all is as cheap.
    fn between_among(
        &self,
        table: Table,
        first: u64,
        last: u64,
        units: &[Unit],
    ) -> Result<Option<Vec<Unit>>, IndexError>;

    /// How many distinct texts a scan asks.
    fn texts(&self) -> u64;
    /// Asks distinct texts one by one: units that have a text with `Yes`, and units that have one with `Unknown`.
    fn scan(
        &self,
        scan: Scan<'_>,
        ask: &mut dyn FnMut(&str) -> Verdict,
    ) -> Result<(RoaringBitmap, RoaringBitmap), IndexError>;

    /// Units with a covered text that may contain one of the needles; `None` when trigrams do not help.
    fn candidates(&self, needles: &[Box<[u8]>]) -> Result<Option<RoaringBitmap>, IndexError>;
}

/// A run of units and what is filed about them.
pub(crate) trait Part {
    type Column<'a>: Column
    where
        Self: 'a;

    /// How many units it has, dead or alive.
    fn len(&self) -> u64;
    fn column(&self, path: PathId) -> Option<Self::Column<'_>>;
    /// The units that have each of several values; `None` when asking for one after the other is as good.
    ///
    /// Whoever has no number up to a bound at its path may be left out.
    fn common(
        &self,
        values: &[(PathId, Lookup<'_>)],
        bounds: &[(PathId, u64)],
    ) -> Result<Option<Vec<Unit>>, IndexError>;
    /// Units with values that found no room; anything may be true of them.
    fn loose(&self) -> &RoaringBitmap;
}
