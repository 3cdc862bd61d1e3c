//! RFC 0020 A.3 R2, turned round: what a document must have if it satisfies a filter.
//!
//! A filter comes down to a list of covers, each of which holds for every document that satisfies it. One of them, the
//! cheapest, is what the filter is filed under. A leaf under `not` says nothing, because nothing reached satisfies it.
//!
//! INVARIANT: the covers of a filter depend on the filter alone, so that it is found again where it was filed.

use super::keys::{About, Keys};
use super::paths::{PathId, Paths};
use super::predicates::{Predicates, Shared};
use super::program::{Part, parts};
use aql::key::{decimal_key, moment_key, number_key};
use aql::{Bound, Comparison, Instant, Literal, Predicate};
use json::Kind;

/// Something that a document has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// A key.
    Key { path: PathId, about: About, key: u64 },
    /// A value at a path whose key lies in a range, ends included.
    Range { path: PathId, table: Table, first: u64, last: u64 },
}

/// Which order a range is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Table {
    Numbers,
    Moments,
}

/// Conditions of which a document has one at least; without any, no document satisfies the filter.
pub(crate) type Cover = Vec<Condition>;

/// Finds the covers of filters.
pub(crate) struct Deriver<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) predicates: &'a Predicates,
    pub(crate) keys: &'a Keys,
}

impl Deriver<'_> {
    /// The covers of a whole filter.
    pub(crate) fn covers(&self, words: &[u32]) -> Vec<Cover> {
        self.all(words, true)
    }

    /// Covers of the parts together, each of which holds, or does not.
    fn all(&self, words: &[u32], holds: bool) -> Vec<Cover> {
        let mut covers = Vec::new();
        for part in parts(words) {
            match part {
                Part::Leaf(number) if holds => covers.extend(self.predicates.get(number).map(|leaf| self.leaf(leaf))),
                Part::Leaf(_) => {}
                Part::All(inner) if holds => covers.extend(self.all(inner, true)),
                Part::All(inner) => covers.extend(self.any(inner, false)),
                Part::Any(inner) if holds => covers.extend(self.any(inner, true)),
                Part::Any(inner) => covers.extend(self.all(inner, false)),
                Part::Not(inner) => covers.extend(self.all(inner, !holds)),
            }
        }
        self.meet(covers)
    }

    /// A cover for one of the parts at least holding, or not, if every one of them has a cover.
    fn any(&self, words: &[u32], holds: bool) -> Option<Cover> {
        let mut union = Cover::new();
        for part in parts(words) {
            let covers = match part {
                Part::Leaf(number) if holds => vec![self.leaf(self.predicates.get(number)?)],
                Part::Leaf(_) => return None,
                Part::All(inner) if holds => self.all(inner, true),
                Part::All(inner) => vec![self.any(inner, false)?],
                Part::Any(inner) if holds => vec![self.any(inner, true)?],
                Part::Any(inner) => self.all(inner, false),
                Part::Not(inner) => self.all(inner, !holds),
            };
            union.extend(covers.into_iter().min_by_key(breadth)?);
        }
        union.sort_unstable();
        union.dedup();
        Some(union)
    }

    /// Makes one range of several about the same single value.
    fn meet(&self, covers: Vec<Cover>) -> Vec<Cover> {
        let mut met: Vec<Cover> = Vec::with_capacity(covers.len());
        for cover in covers {
            let &[Condition::Range { path, table, first, last }] = cover.as_slice() else {
                met.push(cover);
                continue;
            };
            let same = |known: &&mut Cover| match known.as_slice() {
                [Condition::Range { path: known, table: other, .. }] => (*known, *other) == (path, table),
                _ => false,
            };
            let known = if self.paths.is_plain(path) { met.iter_mut().find(same) } else { None };
            match known {
                None => met.push(cover),
                Some(known) => {
                    if let [Condition::Range { first: low, last: high, .. }] = known.as_mut_slice() {
                        (*low, *high) = ((*low).max(first), (*high).min(last));
                        if low > high {
                            known.clear();
                        }
                    }
                }
            }
        }
        met
    }

    fn leaf(&self, shared: &Shared) -> Cover {
        let path = shared.path;
        let key = |about, key| Condition::Key { path, about, key };
        let exists = || vec![key(About::Exists, self.keys.of_path(path))];
        let equal = |literal: &Literal| {
            let about = about(literal);
            key(about, self.keys.of_literal(path, about, literal))
        };
        match &shared.predicate {
            Predicate::Exists | Predicate::Ne(_) | Predicate::NotIn(_) => exists(),
            Predicate::Eq(literal) => vec![equal(literal)],
            Predicate::In(list) => {
                let mut cover: Cover = list.literals().map(|literal| equal(&literal)).collect();
                cover.sort_unstable();
                cover.dedup();
                cover
            }
            Predicate::Contains(literal) => match literal {
                Literal::Text(text, _) if text.is_empty() => exists(),
                // A run of elements begins with its first.
                Literal::Other(document) if document.root().kind() == Kind::Array => match document.root().at(0) {
                    None => exists(),
                    Some(first) => vec![key(About::Element, self.keys.of_node(path, About::Element, first))],
                },
                literal => vec![key(About::Element, self.keys.of_literal(path, About::Element, literal))],
            },
            Predicate::Matches(pattern) => vec![key(About::Pattern, self.keys.of_pattern(path, pattern.source()))],
            Predicate::Compare(comparison, bound) => {
                compare(path, *comparison, bound).map_or_else(exists, |it| vec![it])
            }
            Predicate::Before(moment) => vec![until(path, Table::Moments, moment_key(*moment))],
            Predicate::After(moment) => vec![since(path, Table::Moments, moment_key(*moment))],
            Predicate::Within(start, end) => vec![within(path, *start, *end)],
            Predicate::Outside(start, end) => {
                vec![until(path, Table::Moments, moment_key(*start)), since(path, Table::Moments, moment_key(*end))]
            }
        }
    }
}

/// The narrower of two covers, as far as their form tells.
fn breadth(cover: &Cover) -> (u8, usize) {
    let breadth = |condition: &Condition| match condition {
        Condition::Key { about: About::Equal | About::Container | About::Element | About::Pattern, .. } => 0,
        Condition::Range { .. } => 1,
        Condition::Key { about: About::Exists, .. } => 2,
    };
    (cover.iter().map(breadth).max().unwrap_or_default(), cover.len())
}

/// Scalars and containers are asked for apart, because hashing a container is worth it only where somebody asks.
fn about(literal: &Literal) -> About {
    match literal {
        Literal::Text(..) | Literal::Number(_) => About::Equal,
        Literal::Other(document) => match document.root().kind() {
            Kind::Array | Kind::Object => About::Container,
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => About::Equal,
        },
    }
}

/// Keys keep the order but not every difference, so a bound's own key is always inside.
fn compare(path: PathId, comparison: Comparison, bound: &Bound) -> Option<Condition> {
    let (table, key) = match bound {
        Bound::Number(number) => (Table::Numbers, number_key(*number)),
        Bound::Decimal(text) => (Table::Numbers, decimal_key(text)?),
        Bound::Instant(moment) => (Table::Moments, moment_key(*moment)),
    };
    Some(match comparison {
        Comparison::Less | Comparison::AtMost => until(path, table, key),
        Comparison::Greater | Comparison::AtLeast => since(path, table, key),
    })
}

fn until(path: PathId, table: Table, last: u64) -> Condition {
    Condition::Range { path, table, first: 0, last }
}

fn since(path: PathId, table: Table, first: u64) -> Condition {
    Condition::Range { path, table, first, last: u64::MAX }
}

fn within(path: PathId, start: Instant, end: Instant) -> Condition {
    Condition::Range { path, table: Table::Moments, first: moment_key(start), last: moment_key(end) }
}
