//! RFC 0020 A.3 R2: the two bounds of a constraint tree in one part.

use crate::answer::Answer;
use crate::error::IndexError;
use crate::leaf::{Estimate, Place};
use crate::part::{Column, Part, Set};
use crate::paths::{Paths, Reached};
use aql::{Leaf, Predicate, Tree};
use roaring::RoaringBitmap;

/// So few units are asked one by one sooner than by another leaf that costs more than this.
const UNITS_TINY: u64 = 32;
const WORK_TINY: u64 = 4_096;

/// Constraints with the paths that their leaves reach.
pub(crate) struct Question<'a> {
    paths: &'a Paths,
    leaves: Vec<(&'a Leaf, Vec<Reached>)>,
}

impl<'a> Question<'a> {
    pub(crate) fn new(leaves: &'a [Leaf], paths: &'a Paths) -> Self {
        let leaves = leaves.iter().map(|leaf| (leaf, paths.reached(&leaf.path))).collect();
        Self { paths, leaves }
    }

    /// What is known about the living units of a part.
    pub(crate) fn ask<P: Part>(&self, tree: &Tree, part: &P, living: &RoaringBitmap) -> Result<Answer, IndexError> {
        let answer = Asked { question: self, part, living }.tree(tree)?;
        // Nothing of another collection and nothing dead is in most answers while there is none in the part.
        Ok(if living.len() == part.len() { answer } else { answer.within(living) })
    }
}

struct Asked<'a, P> {
    question: &'a Question<'a>,
    part: &'a P,
    living: &'a RoaringBitmap,
}

impl<P: Part> Asked<'_, P> {
    fn tree(&self, tree: &Tree) -> Result<Answer, IndexError> {
        match tree {
            Tree::AllOf(parts) => self.all_of(parts),
            Tree::AnyOf(parts) => parts.iter().try_fold(Answer::default(), |sum, part| Ok(sum.or(self.tree(part)?))),
            Tree::Not(inner) => Ok(self.tree(inner)?.not(self.living)),
            Tree::Leaf(number) => self.leaf(*number),
        }
    }

    /// The smallest first; what is expensive is left out when hardly anything is left to decide.
    fn all_of(&self, parts: &[Tree]) -> Result<Answer, IndexError> {
        let mut parts: Vec<(Estimate, &Tree)> = parts.iter().map(|part| (self.estimate(part), part)).collect();
        parts.sort_by_key(|(estimate, _)| (estimate.units, estimate.work));
        let mut common: Option<Answer> = None;
        let mut undecided = false;
        for (estimate, part) in parts {
            common = Some(match common.take() {
                None => self.tree(part)?,
                Some(common) if common.len() == 0 => return Ok(common),
                Some(common) if common.len() <= UNITS_TINY && estimate.work > WORK_TINY => {
                    undecided = true;
                    common
                }
                Some(common) => common.and(self.tree(part)?),
            });
        }
        let common = common.unwrap_or_else(|| Answer::certain(self.living.clone()));
        Ok(if undecided { common.unsure() } else { common })
    }

    fn estimate(&self, tree: &Tree) -> Estimate {
        match tree {
            Tree::AllOf(parts) => parts.iter().map(|part| self.estimate(part)).fold(
                Estimate { units: self.living.len(), work: 0 },
                |all, part| Estimate { units: all.units.min(part.units), work: all.work + part.work },
            ),
            Tree::AnyOf(parts) => {
                parts.iter().map(|part| self.estimate(part)).fold(Estimate::default(), Estimate::plus)
            }
            Tree::Not(inner) => Estimate { units: self.living.len(), work: self.estimate(inner).work },
            Tree::Leaf(number) => self
                .places(*number)
                .fold(Estimate { units: self.part.loose().len(), work: 0 }, |sum, (leaf, _, place)| {
                    sum.plus(place.estimate(&leaf.predicate))
                }),
        }
    }

    fn leaf(&self, number: usize) -> Result<Answer, IndexError> {
        let mut sum = Answer::default();
        for (leaf, reached, place) in self.places(number) {
            sum = sum.or(match (reached.exact, &leaf.predicate) {
                (true, predicate) => place.answer(predicate)?,
                // One element is meant and all are filed together: a value that differs may be the one.
                (false, Predicate::Ne(_) | Predicate::NotIn(_)) => {
                    Answer::open(place.column.set(Set::Present)?.into_owned())
                }
                (false, predicate) => place.answer(predicate)?.unsure(),
            });
        }
        let loose = self.part.loose();
        if !loose.is_empty() {
            sum.certain -= loose;
            sum.open |= loose;
        }
        Ok(sum)
    }

    /// The columns at which a leaf looks.
    fn places(&self, number: usize) -> impl Iterator<Item = (&Leaf, Reached, Place<P::Column<'_>>)> {
        let leaf = self.question.leaves.get(number);
        leaf.into_iter().flat_map(|(leaf, reached)| reached.iter().map(move |reached| (*leaf, *reached))).filter_map(
            |(leaf, reached)| {
                let paths = self.question.paths;
                let elements = || paths.known_element(reached.path).and_then(|path| self.part.column(path));
                let asks_elements = matches!(leaf.predicate, Predicate::Contains(_));
                let elements = if asks_elements { elements() } else { None };
                let place =
                    Place { column: self.part.column(reached.path)?, elements, many: paths.is_many(reached.path) };
                Some((leaf, reached, place))
            },
        )
    }
}
