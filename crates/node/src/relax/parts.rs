//! RFC 0020 §3.2: a constraint tree as parts that must all hold, and sets of candidates around each of them.

use crate::gate::Truths;
use crate::refusal::Error;
use crate::resolve::Market;
use aql::{Constraints, Tree};
use index::Bounds;
use roaring::RoaringBitmap;

/// Failures that are told apart; whoever fails more parts is far away.
const FAILURES: usize = 3;

/// Something that must hold, whatever the others do.
#[derive(Debug)]
pub(super) struct Part<'a> {
    tree: &'a Tree,
    /// Whether it must be true or false.
    wanted: bool,
    /// Its leaves, in reading order.
    pub(super) leaves: Vec<usize>,
}

impl<'a> Part<'a> {
    /// Takes a tree apart as far as all of its parts must hold: `not` of several means that each is false.
    pub(super) fn all(tree: &'a Tree) -> Vec<Self> {
        let mut found = Vec::new();
        Self::collect(tree, true, &mut found);
        found
    }

    fn collect(tree: &'a Tree, wanted: bool, found: &mut Vec<Self>) {
        match (tree, wanted) {
            (Tree::AllOf(inner), true) | (Tree::AnyOf(inner), false) => {
                inner.iter().for_each(|tree| Self::collect(tree, wanted, found));
            }
            (Tree::Not(inner), _) => Self::collect(inner, !wanted, found),
            (Tree::Leaf(_) | Tree::AllOf(_) | Tree::AnyOf(_), _) => {
                let mut leaves = Vec::new();
                numbers(tree, &mut leaves);
                found.push(Self { tree, wanted, leaves });
            }
        }
    }

    /// The number of its leaf, when it is one that must be true.
    pub(super) fn plain_leaf(&self) -> Option<usize> {
        match self.tree {
            Tree::Leaf(number) if self.wanted => Some(*number),
            _ => None,
        }
    }
}

fn numbers(tree: &Tree, found: &mut Vec<usize>) {
    match tree {
        Tree::AllOf(inner) | Tree::AnyOf(inner) => inner.iter().for_each(|tree| numbers(tree, found)),
        Tree::Not(inner) => numbers(inner, found),
        Tree::Leaf(number) => found.push(*number),
    }
}

/// Adds leaves up to trees, set by set.
pub(super) struct Sum<'a> {
    market: &'a Market<'a>,
    constraints: &'a Constraints,
    alive: RoaringBitmap,
    /// What each leaf is for those that look different to whoever asks.
    own: Truths,
    members: Bounds,
    /// Who of the category satisfies each leaf; every leaf stands in exactly one part.
    pub(super) leaves: Vec<Bounds>,
}

impl<'a> Sum<'a> {
    pub(super) fn new(market: &'a Market<'a>, constraints: &'a Constraints) -> Result<Self, Error> {
        let leaves = vec![Bounds::default(); constraints.leaves().len()];
        let own = market.own.ask(constraints);
        Ok(Self { market, constraints, alive: market.alive(), own, members: market.membership()?, leaves })
    }

    /// Who satisfies a part.
    pub(super) fn of(&mut self, part: &Part<'_>) -> Result<Bounds, Error> {
        self.ask(part.tree, part.wanted)
    }

    fn ask(&mut self, tree: &Tree, wanted: bool) -> Result<Bounds, Error> {
        match (tree, wanted) {
            (Tree::Leaf(number), _) => self.leaf(*number, wanted),
            (Tree::Not(inner), _) => self.ask(inner, !wanted),
            (Tree::AllOf(inner), true) | (Tree::AnyOf(inner), false) => {
                let mut sum = Bounds { certain: self.alive.clone(), possible: self.alive.clone() };
                for tree in inner {
                    and(&mut sum, &self.ask(tree, wanted)?);
                }
                Ok(sum)
            }
            (Tree::AnyOf(inner), true) | (Tree::AllOf(inner), false) => {
                let mut sum = Bounds::default();
                for tree in inner {
                    let one = self.ask(tree, wanted)?;
                    sum.certain |= one.certain;
                    sum.possible |= one.possible;
                }
                Ok(sum)
            }
        }
    }

    fn leaf(&mut self, number: usize, wanted: bool) -> Result<Bounds, Error> {
        let bounds = self.market.leaf_bounds(self.constraints, number, &self.own)?;
        if let Some(slot) = self.leaves.get_mut(number) {
            *slot = bounds.clone();
            and(slot, &self.members);
        }
        if wanted {
            return Ok(bounds);
        }
        Ok(Bounds { certain: &self.alive - bounds.possible, possible: &self.alive - bounds.certain })
    }
}

/// Those in both.
pub(super) fn and(bounds: &mut Bounds, other: &Bounds) {
    bounds.certain &= &other.certain;
    bounds.possible &= &other.possible;
}

/// For each of several sets, who is in all the others and in `rest`.
pub(super) fn all_but_one(each: &[Bounds], rest: Bounds) -> Vec<Bounds> {
    let mut after = vec![rest];
    for bounds in each.iter().skip(1).rev() {
        let mut next = after.last().cloned().unwrap_or_default();
        and(&mut next, bounds);
        after.push(next);
    }
    let mut before: Option<Bounds> = None;
    let mut all = Vec::with_capacity(each.len());
    for (bounds, mut others) in each.iter().zip(after.into_iter().rev()) {
        if let Some(before) = &before {
            and(&mut others, before);
        }
        all.push(others);
        match &mut before {
            Some(before) => and(before, bounds),
            None => before = Some(bounds.clone()),
        }
    }
    all
}

/// The candidates by how many parts they certainly fail; those in the first may fail none.
pub(super) fn by_failures(each: &[Bounds], whole: &Bounds, members: RoaringBitmap) -> Vec<RoaringBitmap> {
    let mut layers = vec![RoaringBitmap::new(); FAILURES + 1];
    if let Some(first) = layers.first_mut() {
        *first = members;
    }
    for bounds in each {
        for here in (0..FAILURES).rev() {
            let Some([stay, go, ..]) = layers.get_mut(here..) else { continue };
            let failing = &*stay - &bounds.possible;
            *stay -= &failing;
            *go |= failing;
        }
    }
    // What is known of the whole is known better than its parts say.
    if let Some([none, one, ..]) = layers.get_mut(..) {
        let failing = &*none - &whole.possible;
        *none -= &failing;
        *one |= failing;
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, Pointer, json};

    fn bounds(certain: &[u32], possible: &[u32]) -> Bounds {
        Bounds { certain: certain.iter().copied().collect(), possible: possible.iter().copied().collect() }
    }

    #[test]
    fn a_tree_falls_into_what_must_hold() {
        let leaf = |name: &str| json!({"path": format!("/{name}"), "operator": "exists", "value": true});
        let tree = json!([
            leaf("a"),
            {"not": [leaf("b"), {"not": leaf("c")}, {"all_of": [leaf("d"), leaf("e")]}]},
            {"any_of": [leaf("f"), leaf("g")]},
            {"all_of": [leaf("h"), {"not": {"any_of": [leaf("i"), leaf("j")]}}]},
        ]);
        let document = Document::of(&tree).unwrap();
        let constraints = Constraints::read(document.root(), Pointer::root(), &aql::Limits::STANDARD).unwrap();
        let parts = Part::all(constraints.tree());
        let shape: Vec<(Vec<usize>, bool)> = parts.iter().map(|part| (part.leaves.clone(), part.wanted)).collect();
        let one = |leaf: usize, wanted: bool| (vec![leaf], wanted);
        let expected = [
            one(0, true),
            one(1, false),
            one(2, true),
            (vec![3, 4], false),
            (vec![5, 6], true),
            one(7, true),
            one(8, false),
            one(9, false),
        ];
        assert_eq!(shape, expected);
        let plain: Vec<usize> = parts.iter().filter_map(Part::plain_leaf).collect();
        assert_eq!(plain, [0, 2, 7]);
    }

    #[test]
    fn everything_but_one_part() {
        let each = [bounds(&[1, 2], &[1, 2, 3]), bounds(&[2, 3], &[2, 3]), bounds(&[3], &[1, 2, 3])];
        let rest = bounds(&[1, 2, 3], &[1, 2, 3]);
        let expected = [bounds(&[3], &[2, 3]), bounds(&[], &[1, 2, 3]), bounds(&[2], &[2, 3])];
        assert_eq!(all_but_one(&each, rest.clone()), expected);
        assert_eq!(all_but_one(&each[..1], rest.clone()), [rest]);
        assert_eq!(all_but_one(&[], Bounds::default()), []);
    }

    #[test]
    fn layers_count_certain_failures() {
        let each = [bounds(&[], &[0, 1]), bounds(&[], &[0, 2]), bounds(&[], &[0]), bounds(&[], &[0, 3])];
        let layers = by_failures(&each, &bounds(&[], &[0]), (0..6).collect());
        let sizes: Vec<Vec<u32>> = layers.iter().map(|layer| layer.iter().collect()).collect();
        assert_eq!(sizes, [vec![0], vec![], vec![], vec![1, 2, 3, 4, 5]]);
        let layers = by_failures(&each[..2], &bounds(&[], &[]), (0..4).collect());
        let sizes: Vec<Vec<u32>> = layers.iter().map(|layer| layer.iter().collect()).collect();
        assert_eq!(sizes, [vec![], vec![0, 1, 2], vec![3], vec![]]);
    }
}
