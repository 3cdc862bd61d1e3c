//! RFC 0020 A.3 R2, turned round: what a document must have, or must not, if it satisfies a filter.
//!
//! A filter comes down to parts that all hold, each of them one of several terms; a term is a list of needs. Where needs
//! say less than the filter does, a term does not decide. A document that satisfies the filter has all needs of one term
//! of each part; and one that has all needs of a term of each part satisfies the filter, if those terms decide.
//!
//! INVARIANT: the needs of a filter depend on the filter alone, so that what was counted is counted back.

use super::keys::{About, Key, Keys};
use super::paths::{PathId, Paths};
use super::predicates::{Predicates, Shared};
use super::program::{Part, parts};
use super::ranges::Range;
use super::rows::{End, MARKS_MAX, Sense};
use aql::key::{decimal_key, moment_key, number_key};
use aql::{Bound, Comparison, Instant, Literal, Predicate};
use json::Kind;

/// Something that a filter says about a document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// It has this.
    Has(Thing),
    /// It has not.
    Lacks(Thing),
    /// Some value lies in a range.
    Within(Place, Range),
    /// No value lies beyond a bound.
    Bounded(Place, Sense, End),
}

impl Need {
    /// Whether few documents are likely to have it.
    fn leads(&self) -> bool {
        matches!(self, Self::Has(Thing { about, .. }) if *about != About::Exists)
    }
}

/// What a key stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thing {
    pub(crate) path: PathId,
    pub(crate) about: About,
    pub(crate) key: Key,
}

/// Values of one order at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathId,
    pub(crate) table: Table,
}

/// Which order values have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Numbers,
    Moments,
}

/// Needs that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) needs: Vec<Need>,
    /// Whether having all of them is enough.
    pub(crate) decides: bool,
}

/// Terms of which a document fulfils one at least; without any, no document satisfies the filter.
pub(crate) type Choice = Vec<Term>;

/// Terms of nested choices that are multiplied out.
const PRODUCT_MAX: usize = 8;

/// Finds the needs of a filter.
pub(crate) struct Deriver<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) predicates: &'a Predicates,
    pub(crate) keys: &'a Keys,
    /// All needs, also those that no choice has any more.
    pub(crate) needs: Vec<Need>,
}

impl Deriver<'_> {
    /// The choices that a filter consists of.
    pub(crate) fn choices(&mut self, words: &[u32]) -> Vec<Choice> {
        let mut choices = Vec::new();
        self.all(words, true, &mut choices);
        choices
    }

    /// Choices for parts that all hold, or none of which does.
    fn all(&mut self, words: &[u32], hold: bool, out: &mut Vec<Choice>) {
        for part in parts(words) {
            match part {
                Part::All(inner) if hold => self.all(inner, hold, out),
                Part::Any(inner) if !hold => self.all(inner, hold, out),
                Part::Not(inner) => self.all(inner, !hold, out),
                part => {
                    let choice = self.one(part, hold);
                    out.push(choice);
                }
            }
        }
    }

    /// The choice for one part that holds, or does not.
    fn one(&mut self, part: Part<'_>, holds: bool) -> Choice {
        match part {
            Part::Leaf(number) => self.leaf(number, holds),
            Part::All(inner) if !holds => parts(inner).flat_map(|part| self.one(part, false)).collect(),
            Part::Any(inner) if holds => parts(inner).flat_map(|part| self.one(part, true)).collect(),
            Part::All(inner) | Part::Any(inner) => self.nested(inner, holds),
            Part::Not(inner) => self.nested(inner, !holds),
        }
    }

    /// The choice for parts below another choice.
    fn nested(&mut self, words: &[u32], hold: bool) -> Choice {
        let mut choices = Vec::new();
        self.all(words, hold, &mut choices);
        let leads = |choice: &Choice| matches!(choice.as_slice(), [term] if term.needs.iter().any(Need::leads));
        let shortest = || (0..choices.len()).min_by_key(|place| choices.get(*place).map(Vec::len));
        let first = if choices.iter().any(leads) { None } else { shortest() };
        product(choices, first)
    }

    fn leaf(&mut self, number: u32, holds: bool) -> Choice {
        let Some(shared) = self.predicates.get(number) else { return Choice::new() };
        let choice = if holds { self.holding(shared) } else { self.failing(shared) };
        self.needs.extend(choice.iter().flat_map(|term| &term.needs));
        choice
    }

    /// A leaf holds when some value that its path reaches passes.
    fn holding(&self, shared: &Shared) -> Choice {
        let path = shared.path;
        let number = |range| Need::Within(Place { path, table: Table::Numbers }, range);
        let moment = |range| Need::Within(Place { path, table: Table::Moments }, range);
        match &shared.predicate {
            Predicate::Eq(literal) => enough([Need::Has(self.equal(path, literal))]),
            Predicate::In(list) => {
                let mut things: Vec<Thing> = list.literals().map(|literal| self.equal(path, &literal)).collect();
                things.sort_unstable_by_key(|thing| thing.key);
                things.dedup_by_key(|thing| thing.key);
                things.into_iter().flat_map(|thing| enough([Need::Has(thing)])).collect()
            }
            // Where there is one value at most, that it is another one is that it is there and not this one.
            Predicate::Ne(literal) if self.paths.is_plain(path) => {
                enough([Need::Has(self.exists(path)), Need::Lacks(self.equal(path, literal))])
            }
            Predicate::Exists => enough([Need::Has(self.exists(path))]),
            Predicate::Ne(_) | Predicate::NotIn(_) => part([Need::Has(self.exists(path))]),
            Predicate::Contains(literal) => match self.contained(path, literal) {
                Ok(thing) => enough([Need::Has(thing)]),
                Err(Some(first)) => part([Need::Has(first)]),
                Err(None) => part([Need::Has(self.exists(path))]),
            },
            Predicate::Matches(pattern) => {
                let key = self.keys.of_pattern(path, pattern.source());
                part([Need::Has(Thing { path, about: About::Pattern, key })])
            }
            Predicate::Compare(comparison, bound) => match side(*comparison, bound) {
                Some((Table::Numbers, range)) => enough([number(range)]),
                Some((Table::Moments, range)) => enough([moment(range)]),
                None => part([Need::Has(self.exists(path))]),
            },
            Predicate::Before(bound) => enough([moment(until(strictly(*bound)))]),
            Predicate::After(bound) => enough([moment(since(strictly(*bound)))]),
            Predicate::Within(start, end) => {
                let range = Range { first: Some(including(*start)), last: Some(including(*end)) };
                if self.paths.is_plain(path) { enough([moment(range)]) } else { part([moment(range)]) }
            }
            Predicate::Outside(start, end) => {
                let (before, after) = (moment(until(strictly(*start))), moment(since(strictly(*end))));
                enough([before]).into_iter().chain(enough([after])).collect()
            }
        }
    }

    /// A leaf fails when no value that its path reaches passes.
    fn failing(&self, shared: &Shared) -> Choice {
        let path = shared.path;
        let moment = |sense, moment: Instant| {
            enough([Need::Bounded(Place { path, table: Table::Moments }, sense, including(moment))])
        };
        match &shared.predicate {
            Predicate::Eq(literal) => enough([Need::Lacks(self.equal(path, literal))]),
            Predicate::In(list) if list.len() < MARKS_MAX => {
                enough(list.literals().map(|literal| Need::Lacks(self.equal(path, &literal))))
            }
            Predicate::Exists => enough([Need::Lacks(self.exists(path))]),
            Predicate::Contains(literal) => match self.contained(path, literal) {
                Ok(thing) => enough([Need::Lacks(thing)]),
                Err(_) => part([]),
            },
            Predicate::Compare(comparison, bound) => match side(*comparison, bound) {
                Some((table, range)) => enough(range.ends().map(|(sense, end)| {
                    let beyond = End { strict: !end.strict, ..end };
                    let sense = if sense == Sense::SomeBelow { Sense::NoneBelow } else { Sense::NoneAbove };
                    Need::Bounded(Place { path, table }, sense, beyond)
                })),
                None => part([]),
            },
            Predicate::Before(bound) => moment(Sense::NoneBelow, *bound),
            Predicate::After(bound) => moment(Sense::NoneAbove, *bound),
            Predicate::In(_)
            | Predicate::Ne(_)
            | Predicate::NotIn(_)
            | Predicate::Matches(_)
            | Predicate::Within(..)
            | Predicate::Outside(..) => part([]),
        }
    }

    fn exists(&self, path: PathId) -> Thing {
        Thing { path, about: About::Exists, key: self.keys.of_path(path) }
    }

    fn equal(&self, path: PathId, literal: &Literal) -> Thing {
        let about = about(literal);
        Thing { path, about, key: self.keys.of_literal(path, about, literal) }
    }

    /// What containing a literal is; or, where keys do not say as much, what a container of it has.
    fn contained(&self, path: PathId, literal: &Literal) -> Result<Thing, Option<Thing>> {
        let about = About::Element;
        match literal {
            Literal::Text(text, _) if text.is_empty() => Err(None),
            // A run of elements begins with its first.
            Literal::Other(document) if document.root().kind() == Kind::Array => {
                let first = document.root().at(0);
                Err(first.map(|first| Thing { path, about, key: self.keys.of_node(path, about, first) }))
            }
            literal => Ok(Thing { path, about, key: self.keys.of_literal(path, about, literal) }),
        }
    }
}

/// One term that decides.
fn enough(needs: impl IntoIterator<Item = Need>) -> Choice {
    vec![Term { needs: needs.into_iter().collect(), decides: true }]
}

/// One term that does not.
fn part(needs: impl IntoIterator<Item = Need>) -> Choice {
    vec![Term { needs: needs.into_iter().collect(), decides: false }]
}

/// The terms of all choices together; `first` is multiplied out whatever it costs, the others as long as they are short.
pub(crate) fn product(mut choices: Vec<Choice>, first: Option<usize>) -> Choice {
    let first = first.filter(|first| *first < choices.len()).map(|first| choices.swap_remove(first));
    choices.sort_by_key(Vec::len);
    let mut terms = vec![Term { needs: Vec::with_capacity(8), decides: true }];
    let order = first.map(|choice| (true, choice)).into_iter().chain(choices.into_iter().map(|choice| (false, choice)));
    for (is_first, choice) in order {
        match choice.as_slice() {
            [term] => {
                for known in &mut terms {
                    known.needs.extend_from_slice(&term.needs);
                    known.decides &= term.decides;
                }
            }
            many if is_first || many.len() * terms.len() <= PRODUCT_MAX => {
                let joined = |(known, term): (&Term, &Term)| Term {
                    needs: known.needs.iter().chain(&term.needs).copied().collect(),
                    decides: known.decides && term.decides,
                };
                terms = terms.iter().flat_map(|known| many.iter().map(move |term| joined((known, term)))).collect();
            }
            _ => terms.iter_mut().for_each(|known| known.decides = false),
        }
    }
    terms
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

fn side(comparison: Comparison, bound: &Bound) -> Option<(Table, Range)> {
    let (table, key) = match bound {
        Bound::Number(number) => (Table::Numbers, number_key(*number)),
        Bound::Decimal(text) => (Table::Numbers, decimal_key(text)?),
        Bound::Instant(moment) => (Table::Moments, moment_key(*moment)),
    };
    let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
    let end = End { key, strict, is_number: matches!(bound, Bound::Number(_)) };
    Some(match comparison {
        Comparison::Less | Comparison::AtMost => (table, until(end)),
        Comparison::Greater | Comparison::AtLeast => (table, since(end)),
    })
}

fn until(last: End) -> Range {
    Range { first: None, last: Some(last) }
}

fn since(first: End) -> Range {
    Range { first: Some(first), last: None }
}

fn strictly(moment: Instant) -> End {
    End { key: moment_key(moment), strict: true, is_number: false }
}

fn including(moment: Instant) -> End {
    End { key: moment_key(moment), strict: false, is_number: false }
}
