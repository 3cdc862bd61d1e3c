//! The units that have one value.

use crate::Unit;
use roaring::RoaringBitmap;

/// Lists beyond this are kept as a set.
const FEW_MAX: usize = 64;

/// Units with one value in the part that still grows; most values belong to one unit only.
#[derive(Clone, Debug)]
pub(crate) enum Growing {
    One(Unit),
    Few(Vec<Unit>),
    Many(RoaringBitmap),
}

impl Growing {
    /// Adds a unit that is not below the last one.
    pub(crate) fn push(&mut self, unit: Unit) {
        match self {
            Self::One(first) if *first != unit => *self = Self::Few(vec![*first, unit]),
            Self::Few(units) if units.last() != Some(&unit) => {
                units.push(unit);
                if units.len() > FEW_MAX {
                    *self = Self::Many(units.iter().copied().collect());
                }
            }
            Self::Many(units) => {
                units.insert(unit);
            }
            Self::One(_) | Self::Few(_) => {}
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Few(units) => units.len() as u64,
            Self::Many(units) => units.len(),
        }
    }

    pub(crate) fn to_set(&self) -> RoaringBitmap {
        match self {
            Self::One(unit) => RoaringBitmap::from_iter([*unit]),
            Self::Few(units) => units.iter().copied().collect(),
            Self::Many(units) => units.clone(),
        }
    }

    pub(crate) fn add_to(&self, set: &mut RoaringBitmap) {
        match self {
            Self::One(unit) => {
                set.insert(*unit);
            }
            Self::Few(units) => set.extend(units.iter().copied()),
            Self::Many(units) => *set |= units,
        }
    }

    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Few(units) => units.capacity() * size_of::<Unit>(),
            Self::Many(units) => units.serialized_size(),
        }
    }
}
