//! RFC 0020 A.3 R2: what is known about an answer.

use crate::Unit;
use roaring::RoaringBitmap;

/// Two sets around an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Units that satisfy the question.
    pub certain: RoaringBitmap,
    /// Units that may satisfy it; no other does.
    pub possible: RoaringBitmap,
}

/// A set of units, in the form that suits how many they are.
pub(crate) trait Units: Clone + Default {
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool;
    fn or(self, other: Self) -> Self;
    fn and(self, other: &Self) -> Self;
    fn minus(self, other: &Self) -> Self;
}

impl Units for RoaringBitmap {
    fn len(&self) -> u64 {
        self.len()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self | other }
    }

    fn and(self, other: &Self) -> Self {
        self & other
    }

    fn minus(self, other: &Self) -> Self {
        self - other
    }
}

/// Few units, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Few(pub(crate) Vec<Unit>);

impl Few {
    /// Keeps the units that stand in another list, or those that do not.
    fn keep(mut self, other: &Self, found: bool) -> Self {
        let mut others = other.0.as_slice();
        self.0.retain(|unit| {
            // Neighbours are mostly close, and one search goes far when they are not.
            while others.first().is_some_and(|first| first < unit) {
                let near = others.get(8).is_some_and(|later| later < unit);
                let passed = if near { others.partition_point(|other| other < unit) } else { 1 };
                others = others.get(passed..).unwrap_or_default();
            }
            (others.first() == Some(unit)) == found
        });
        self
    }
}

impl Units for Few {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn or(mut self, mut other: Self) -> Self {
        if self.0.is_empty() || other.0.is_empty() {
            self.0.append(&mut other.0);
            return self;
        }
        self.0.append(&mut other.0);
        // Two runs in order: the stable sort merges them.
        self.0.sort();
        self.0.dedup();
        self
    }

    fn and(self, other: &Self) -> Self {
        self.keep(other, true)
    }

    fn minus(self, other: &Self) -> Self {
        self.keep(other, false)
    }
}

/// The same with the undecided units apart, because most questions leave none.
///
/// INVARIANT: no unit is both certain and open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer<U> {
    pub(crate) certain: U,
    pub(crate) open: U,
}

impl<U: Units> Answer<U> {
    pub(crate) fn certain(certain: U) -> Self {
        Self { certain, open: U::default() }
    }

    pub(crate) fn open(open: U) -> Self {
        Self { certain: U::default(), open }
    }

    pub(crate) fn with_open(self, open: U) -> Self {
        if open.is_empty() {
            return Self { open: self.open.minus(&self.certain), ..self };
        }
        let open = self.open.or(open).minus(&self.certain);
        Self { certain: self.certain, open }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        let mut open = U::default();
        if !other.open.is_empty() {
            open = other.open.clone().and(&self.certain);
        }
        if !self.open.is_empty() {
            open = open.or(self.open.and(&other.certain.clone().or(other.open)));
        }
        Self { certain: self.certain.and(&other.certain), open }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        let (certain, open) = (self.certain.or(other.certain), self.open);
        Self { certain, open }.with_open(other.open)
    }

    /// What is open stays open; of the rest, what is not certain is.
    pub(crate) fn not(self, universe: U) -> Self {
        let open = if self.open.is_empty() { self.open } else { self.open.and(&universe) };
        let mut certain = universe.minus(&self.certain);
        if !open.is_empty() {
            certain = certain.minus(&open);
        }
        Self { certain, open }
    }

    /// Whatever seemed certain may still fail.
    pub(crate) fn unsure(self) -> Self {
        Self::open(self.certain.or(self.open))
    }

    pub(crate) fn within(self, universe: &U) -> Self {
        Self { certain: self.certain.and(universe), open: self.open.and(universe) }
    }

    /// How many units may satisfy the question.
    pub(crate) fn len(&self) -> u64 {
        self.certain.len() + self.open.len()
    }
}

impl Answer<RoaringBitmap> {
    pub(crate) fn to_few(&self) -> Answer<Few> {
        let few = |units: &RoaringBitmap| Few(units.iter().collect());
        Answer { certain: few(&self.certain), open: few(&self.open) }
    }
}

impl From<Answer<Few>> for Answer<RoaringBitmap> {
    fn from(few: Answer<Few>) -> Self {
        let set = |units: Few| crate::posting::sorted_set(&units.0);
        Self { certain: set(few.certain), open: set(few.open) }
    }
}

impl From<Answer<RoaringBitmap>> for Bounds {
    fn from(answer: Answer<RoaringBitmap>) -> Self {
        let possible = match answer.open.is_empty() {
            true => answer.certain.clone(),
            false => &answer.certain | &answer.open,
        };
        Self { certain: answer.certain, possible }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<U: Units + PartialEq + std::fmt::Debug>(set: impl Fn(&[Unit]) -> U) {
        // Units 0 to 8 are all pairs of no, open and yes.
        let left = Answer { certain: set(&[6, 7, 8]), open: set(&[3, 4, 5]) };
        let right = Answer { certain: set(&[2, 5, 8]), open: set(&[1, 4, 7]) };
        let all = set(&(0..9).collect::<Vec<_>>());
        let and = left.clone().and(right.clone());
        assert_eq!(and, Answer { certain: set(&[8]), open: set(&[4, 5, 7]) });
        let or = left.clone().or(right.clone());
        assert_eq!(or, Answer { certain: set(&[2, 5, 6, 7, 8]), open: set(&[1, 3, 4]) });
        let neither = or.not(all.clone());
        assert_eq!(neither, left.not(all.clone()).and(right.not(all)));
    }

    #[test]
    fn sets_combine_as_truth_values_do() {
        check(|units| units.iter().copied().collect::<RoaringBitmap>());
        check(|units| Few(units.to_vec()));
    }

    #[test]
    fn few_units_are_kept_as_sets_keep_them() {
        let (left, right) = ((0..900).step_by(3).collect::<Vec<_>>(), (0..900).step_by(40).collect::<Vec<_>>());
        let sets = [&left, &right].map(|units| units.iter().copied().collect::<RoaringBitmap>());
        for (ours, others, our_set, other_set) in
            [(&left, &right, &sets[0], &sets[1]), (&right, &left, &sets[1], &sets[0])]
        {
            let (few, other) = (Few(ours.clone()), Few(others.clone()));
            assert_eq!(few.clone().and(&other).0, (our_set & other_set).iter().collect::<Vec<_>>());
            assert_eq!(few.clone().minus(&other).0, (our_set - other_set).iter().collect::<Vec<_>>());
            assert_eq!(few.or(other).0, (our_set | other_set).iter().collect::<Vec<_>>());
        }
    }
}
