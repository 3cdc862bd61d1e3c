//! RFC 0020 A.3 R2: the two bounds of a constraint tree in one part.
//!
//! A conjunction asks its smallest part first, of everybody, and the others of those that are left.

use crate::answer::{Answer, Few, Units};
use crate::error::IndexError;
use crate::leaf::{Estimate, Place, number_range};
use crate::part::{Column, Lookup, Part, Set, Table};
use crate::paths::{PathId, Paths, Reached};
use crate::scope::{Among, Scope, Whole};
use aql::{Leaf, Predicate, Tree};
use roaring::RoaringBitmap;

/// So few units are asked one by one sooner than by another leaf that costs more than this.
const UNITS_TINY: u64 = 32;
const WORK_TINY: u64 = 4_096;
/// So few units are asked sooner than everybody, whatever the next leaf is.
const UNITS_FEW: u64 = 16_384;
/// Units are asked sooner than everybody when the next leaf has so many times more.
const FEW_TIMES: u64 = 8;

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
    pub(crate) fn ask<P: Part>(
        &self,
        tree: &Tree,
        part: &P,
        living: &RoaringBitmap,
    ) -> Result<Answer<RoaringBitmap>, IndexError> {
        let asked = Asked { question: self, part, scope: Whole { living } };
        let answer = asked.tree(tree)?;
        // Nothing of another collection and nothing dead is in most answers while there is none in the part.
        Ok(if living.len() == part.len() { answer } else { answer.within(living) })
    }
}

/// A part of a conjunction.
#[derive(Clone, Copy)]
enum Conjunct<'t> {
    Tree(&'t Tree),
    /// Numbers from the first key to the last, where a unit has one at most.
    Between(PathId, u64, u64),
}

impl Conjunct<'_> {
    /// The path and the last key of a range.
    fn upper_bound(&self) -> Option<(PathId, u64)> {
        match *self {
            Self::Between(path, _, last) => Some((path, last)),
            Self::Tree(_) => None,
        }
    }
}

/// A question, the part of the index that it is put to, and the units of it that are asked.
struct Asked<'a, P, S> {
    question: &'a Question<'a>,
    part: &'a P,
    scope: S,
}

/// How a conjunction is asked of a scope.
trait Conjoin: Scope + Sized {
    fn all_of(asked: &Asked<'_, impl Part, Self>, parts: &[Tree]) -> Result<Answer<Self::Units>, IndexError>;
}

impl Conjoin for Whole<'_> {
    fn all_of(asked: &Asked<'_, impl Part, Self>, parts: &[Tree]) -> Result<Answer<RoaringBitmap>, IndexError> {
        asked.narrowed(parts)
    }
}

impl Conjoin for Among<'_> {
    fn all_of(asked: &Asked<'_, impl Part, Self>, parts: &[Tree]) -> Result<Answer<Few>, IndexError> {
        parts.iter().try_fold(Answer::certain(asked.scope.all()), |common, part| match common.len() {
            0 => Ok(common),
            _ => Ok(common.and(asked.tree(part)?)),
        })
    }
}

impl<P: Part> Asked<'_, P, Whole<'_>> {
    /// The smallest first; as soon as few are left, only they are asked.
    fn narrowed(&self, parts: &[Tree]) -> Result<Answer<RoaringBitmap>, IndexError> {
        let mut conjuncts = self.conjuncts(parts);
        conjuncts.sort_by_key(|(estimate, _)| (estimate.units, estimate.work));
        if let Some(common) = self.in_common(&mut conjuncts)? {
            return Ok(self.narrow(common, conjuncts.into_iter())?.into());
        }
        if let Some(common) = self.first_range(&conjuncts)? {
            return Ok(self.narrow(common, conjuncts.into_iter().skip(1))?.into());
        }
        let mut rest = conjuncts.into_iter();
        let Some((_, first)) = rest.next() else { return Ok(Answer::certain(self.scope.all())) };
        let mut common = self.conjunct(first)?;
        while let Some((estimate, conjunct)) = rest.next() {
            let left = common.len();
            if left <= UNITS_FEW || left * FEW_TIMES <= estimate.units {
                let rest = [(estimate, conjunct)].into_iter().chain(rest);
                return Ok(self.narrow(common.to_few(), rest)?.into());
            }
            common = common.and(self.conjunct(conjunct)?);
        }
        Ok(common)
    }

    /// The units of a range, when it comes first and leaves so few that only they are asked the rest.
    fn first_range(&self, conjuncts: &[(Estimate, Conjunct<'_>)]) -> Result<Option<Answer<Few>>, IndexError> {
        let [(first, Conjunct::Between(path, from, to)), (second, _), ..] = conjuncts else { return Ok(None) };
        let few = first.units <= UNITS_FEW || first.units * FEW_TIMES <= second.units;
        if !few || !self.part.loose().is_empty() {
            return Ok(None);
        }
        let Some(column) = self.part.column(*path) else { return Ok(Some(Answer::default())) };
        Ok(Some(Answer::certain(Few(column.between_list(Table::Numbers, *from, *to)?))))
    }

    /// Takes out the parts that ask for one value each and answers them together, when there are several of them and
    /// the smallest is not much larger than what could be asked first instead.
    fn in_common(&self, conjuncts: &mut Vec<(Estimate, Conjunct<'_>)>) -> Result<Option<Answer<Few>>, IndexError> {
        let values: Vec<_> = conjuncts.iter().map(|(_, conjunct)| self.one_value(*conjunct)).collect();
        let several = values.iter().flatten().count() > 1 && self.part.loose().is_empty();
        let smallest = conjuncts.first().map_or(0, |(estimate, _)| estimate.units);
        let of_values = conjuncts.iter().zip(&values).find(|(_, value)| value.is_some());
        if !several || of_values.is_none_or(|((estimate, _), _)| estimate.units > smallest * FEW_TIMES) {
            return Ok(None);
        }
        let asked: Vec<(PathId, Lookup<'_>)> = values.iter().flatten().map(|(path, at, _)| (*path, *at)).collect();
        // What a range would sort out afterwards, unit by unit, is mostly left out here, a set at a time.
        let bounds: Vec<(PathId, u64)> = conjuncts.iter().filter_map(|(_, conjunct)| conjunct.upper_bound()).collect();
        let Some(units) = self.part.common(&asked, &bounds)? else { return Ok(None) };
        let decided = values.iter().flatten().all(|(.., decided)| *decided);
        let mut values = values.iter();
        conjuncts.retain(|_| values.next().is_some_and(Option::is_none));
        Ok(Some(if decided { Answer::certain(Few(units)) } else { Answer::open(Few(units)) }))
    }

    /// The one value that a part asks for, where it is filed, and whether being there decides it.
    fn one_value(&self, conjunct: Conjunct<'_>) -> Option<(PathId, Lookup<'_>, bool)> {
        let Conjunct::Tree(Tree::Leaf(number)) = conjunct else { return None };
        let (leaf, reached) = self.question.leaves.get(*number)?;
        let [Reached { path, exact }] = reached.as_slice() else { return None };
        let (_, _, place) = self.places(*number).next()?;
        let (in_element, at, decided) = place.one_value(&leaf.predicate)?;
        let path = if in_element { self.question.paths.known_element(*path)? } else { *path };
        Some((path, at, decided && *exact))
    }

    /// What is expensive is left out when hardly anything is left to decide.
    fn narrow<'t>(
        &self,
        mut common: Answer<Few>,
        conjuncts: impl Iterator<Item = (Estimate, Conjunct<'t>)>,
    ) -> Result<Answer<Few>, IndexError> {
        let mut undecided = false;
        for (estimate, conjunct) in conjuncts {
            match common.len() {
                0 => return Ok(common),
                ..=UNITS_TINY if estimate.work > WORK_TINY => undecided = true,
                _ => {
                    let asked = |units| Asked { question: self.question, part: self.part, scope: Among(units) };
                    let certain = asked(&common.certain.0).conjunct(conjunct)?;
                    let open = match common.open.is_empty() {
                        true => Few::default(),
                        false => asked(&common.open.0).conjunct(conjunct)?.unsure().open,
                    };
                    common = certain.with_open(open);
                }
            }
        }
        Ok(if undecided { common.unsure() } else { common })
    }
}

impl<P: Part, S: Conjoin> Asked<'_, P, S> {
    fn tree(&self, tree: &Tree) -> Result<Answer<S::Units>, IndexError> {
        match tree {
            Tree::AllOf(parts) => S::all_of(self, parts),
            Tree::AnyOf(parts) => {
                parts.iter().try_fold(Answer::default(), |sum: Answer<_>, part| Ok(sum.or(self.tree(part)?)))
            }
            Tree::Not(inner) => Ok(self.tree(inner)?.not(self.scope.all())),
            Tree::Leaf(number) => self.leaf(*number),
        }
    }

    fn conjunct(&self, conjunct: Conjunct<'_>) -> Result<Answer<S::Units>, IndexError> {
        match conjunct {
            Conjunct::Tree(tree) => self.tree(tree),
            Conjunct::Between(path, first, last) => {
                let units = match self.part.column(path) {
                    Some(column) => self.scope.between(&column, Table::Numbers, first, last)?,
                    None => S::Units::default(),
                };
                Ok(self.with_loose(Answer::certain(units)))
            }
        }
    }

    fn leaf(&self, number: usize) -> Result<Answer<S::Units>, IndexError> {
        let mut sum = Answer::default();
        for (leaf, reached, place) in self.places(number) {
            sum = sum.or(match (reached.exact, &leaf.predicate) {
                (true, predicate) => place.answer(predicate, &self.scope)?,
                // One element is meant and all are filed together: a value that differs may be the one.
                (false, Predicate::Ne(_) | Predicate::NotIn(_)) => {
                    Answer::open(self.scope.units(&place.column, Lookup::Set(Set::Present))?)
                }
                (false, predicate) => place.answer(predicate, &self.scope)?.unsure(),
            });
        }
        Ok(self.with_loose(sum))
    }

    /// Units with values that found no room are open, whatever is filed of them.
    fn with_loose(&self, answer: Answer<S::Units>) -> Answer<S::Units> {
        let loose = self.part.loose();
        if loose.is_empty() {
            return answer;
        }
        let loose = self.scope.of(loose);
        Answer { certain: answer.certain.minus(&loose), open: answer.open.or(loose) }
    }

    /// The parts of a conjunction; two bounds of one number are one range.
    fn conjuncts<'t>(&self, parts: &'t [Tree]) -> Vec<(Estimate, Conjunct<'t>)> {
        let mut ranges: Vec<(PathId, u64, u64)> = Vec::new();
        let mut conjuncts = Vec::new();
        for part in parts {
            match self.range(part) {
                Some((path, first, last)) => match ranges.iter_mut().find(|(known, ..)| *known == path) {
                    Some(range) => *range = (path, range.1.max(first), range.2.min(last)),
                    None => ranges.push((path, first, last)),
                },
                None => conjuncts.push((self.estimate(part), Conjunct::Tree(part))),
            }
        }
        conjuncts.extend(ranges.into_iter().map(|(path, first, last)| {
            let column = self.part.column(path);
            let units = column.map_or(0, |column| column.between_len(Table::Numbers, first, last));
            let units = units + self.part.loose().len();
            (Estimate { units, work: units }, Conjunct::Between(path, first, last))
        }));
        conjuncts
    }

    /// The range that a leaf is, when a unit has one number at most at its path, and nothing that could be taken for one.
    fn range(&self, tree: &Tree) -> Option<(PathId, u64, u64)> {
        let Tree::Leaf(number) = tree else { return None };
        let (leaf, reached) = self.question.leaves.get(*number)?;
        let (first, last) = number_range(&leaf.predicate)?;
        let [Reached { path, exact: true }] = reached.as_slice() else { return None };
        let column = self.part.column(*path)?;
        let decimals = column.between_len(Table::Decimals, 0, u64::MAX);
        (decimals == 0 && !self.question.paths.is_many(*path)).then_some((*path, first, last))
    }

    fn estimate(&self, tree: &Tree) -> Estimate {
        match tree {
            Tree::AllOf(parts) => parts.iter().map(|part| self.estimate(part)).fold(
                Estimate { units: self.part.len(), work: 0 },
                |all, part| Estimate { units: all.units.min(part.units), work: all.work + part.work },
            ),
            Tree::AnyOf(parts) => {
                parts.iter().map(|part| self.estimate(part)).fold(Estimate::default(), Estimate::plus)
            }
            Tree::Not(inner) => Estimate { units: self.part.len(), work: self.estimate(inner).work },
            Tree::Leaf(number) => self
                .places(*number)
                .fold(Estimate { units: self.part.loose().len(), work: 0 }, |sum, (leaf, _, place)| {
                    sum.plus(place.estimate(&leaf.predicate))
                }),
        }
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
