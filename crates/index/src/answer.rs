//! RFC 0020 A.3 R2: what is known about an answer.

use roaring::RoaringBitmap;

/// Two sets around an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Units that satisfy the question.
    pub certain: RoaringBitmap,
    /// Units that may satisfy it; no other does.
    pub possible: RoaringBitmap,
}

/// The same with the undecided units apart, because most questions leave none.
///
/// INVARIANT: no unit is both certain and open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) certain: RoaringBitmap,
    pub(crate) open: RoaringBitmap,
}

impl Answer {
    pub(crate) fn certain(certain: RoaringBitmap) -> Self {
        Self { certain, open: RoaringBitmap::new() }
    }

    pub(crate) fn open(open: RoaringBitmap) -> Self {
        Self { certain: RoaringBitmap::new(), open }
    }

    pub(crate) fn with_open(mut self, open: RoaringBitmap) -> Self {
        self.open |= open;
        self.open -= &self.certain;
        self
    }

    pub(crate) fn and(self, other: Self) -> Self {
        let mut open = RoaringBitmap::new();
        if !self.open.is_empty() {
            open |= &self.open & &other.certain;
            open |= &self.open & &other.open;
        }
        if !other.open.is_empty() {
            open |= &self.certain & &other.open;
        }
        Self { certain: self.certain & other.certain, open }
    }

    pub(crate) fn or(mut self, other: Self) -> Self {
        self.certain |= other.certain;
        self.with_open(other.open)
    }

    /// What is open stays open; of the rest, what is not certain is.
    pub(crate) fn not(self, universe: &RoaringBitmap) -> Self {
        let mut certain = universe - &self.certain;
        certain -= &self.open;
        Self { certain, open: self.open & universe }
    }

    /// Whatever seemed certain may still fail.
    pub(crate) fn unsure(self) -> Self {
        Self::open(self.certain | self.open)
    }

    pub(crate) fn within(mut self, universe: &RoaringBitmap) -> Self {
        self.certain &= universe;
        self.open &= universe;
        self
    }

    /// How many units may satisfy the question.
    pub(crate) fn len(&self) -> u64 {
        self.certain.len() + self.open.len()
    }
}

impl From<Answer> for Bounds {
    fn from(answer: Answer) -> Self {
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

    #[test]
    fn sets_combine_as_truth_values_do() {
        // Units 0 to 8 are all pairs of no, open and yes.
        let left = Answer { certain: (6..9).collect(), open: (3..6).collect() };
        let right = Answer { certain: [2, 5, 8].into_iter().collect(), open: [1, 4, 7].into_iter().collect() };
        let all: RoaringBitmap = (0..9).collect();
        let and = left.clone().and(right.clone());
        assert_eq!(and, Answer { certain: [8].into_iter().collect(), open: [4, 5, 7].into_iter().collect() });
        let or = left.clone().or(right.clone());
        assert_eq!(
            or,
            Answer { certain: [2, 5, 6, 7, 8].into_iter().collect(), open: [1, 3, 4].into_iter().collect() }
        );
        let neither = or.not(&all);
        assert_eq!(neither, left.not(&all).and(right.not(&all)));
    }
}
