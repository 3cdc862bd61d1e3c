//! RFC 0020 A.3 R2: of which units a question is asked.
//!
//! The first leaf of a conjunction is asked of a whole part, the others mostly of the few units that are left. What a
//! leaf means does not depend on it: the same code asks either way.

use crate::Unit;
use crate::answer::{Few, Units};
use crate::error::IndexError;
use crate::part::{Column, Lookup, Scan, Table, Verdict};
use roaring::RoaringBitmap;

/// The units that are asked.
pub(crate) trait Scope {
    type Units: Units;

    /// All of them that a question could mean; the living ones, of a whole part.
    fn all(&self) -> Self::Units;
    /// Those that are in a set.
    fn of(&self, set: &RoaringBitmap) -> Self::Units;
    /// Those with one value.
    fn units(&self, column: &impl Column, at: Lookup<'_>) -> Result<Self::Units, IndexError>;
    /// Those with a key from `first` to `last`.
    fn between(&self, column: &impl Column, table: Table, first: u64, last: u64) -> Result<Self::Units, IndexError>;

    /// Asks texts: those that have one with `Yes`, and those that have one with `Unknown`.
    fn scan(
        &self,
        column: &impl Column,
        scan: Scan<'_>,
        ask: &mut dyn FnMut(&str) -> Verdict,
    ) -> Result<(Self::Units, Self::Units), IndexError> {
        let (yes, unknown) = column.scan(scan, ask)?;
        Ok((self.of(&yes), self.of(&unknown)))
    }
}

/// All units of a part.
pub(crate) struct Whole<'a> {
    pub(crate) living: &'a RoaringBitmap,
}

impl Scope for Whole<'_> {
    type Units = RoaringBitmap;

    fn all(&self) -> RoaringBitmap {
        self.living.clone()
    }

    fn of(&self, set: &RoaringBitmap) -> RoaringBitmap {
        set.clone()
    }

    fn units(&self, column: &impl Column, at: Lookup<'_>) -> Result<RoaringBitmap, IndexError> {
        column.units(at)
    }

    fn between(&self, column: &impl Column, table: Table, first: u64, last: u64) -> Result<RoaringBitmap, IndexError> {
        column.between(table, first, last)
    }
}

/// Some units of a part, in order.
pub(crate) struct Among<'a>(pub(crate) &'a [Unit]);

impl Scope for Among<'_> {
    type Units = Few;

    fn all(&self) -> Few {
        Few(self.0.to_vec())
    }

    fn of(&self, set: &RoaringBitmap) -> Few {
        if set.is_empty() {
            return Few::default();
        }
        Few(self.0.iter().copied().filter(|unit| set.contains(*unit)).collect())
    }

    fn units(&self, column: &impl Column, at: Lookup<'_>) -> Result<Few, IndexError> {
        column.among(at, self.0).map(Few)
    }

    fn between(&self, column: &impl Column, table: Table, first: u64, last: u64) -> Result<Few, IndexError> {
        match column.between_among(table, first, last, self.0)? {
            Some(units) => Ok(Few(units)),
            None => Ok(self.of(&column.between(table, first, last)?)),
        }
    }
}
