//! RFC 0020 A.1, A.3 R2: what a leaf means for the values at one path.

use crate::answer::{Answer, Units};
use crate::error::IndexError;
use crate::key::{TEXT_MAX, decimal_key, is_first_of_key, long_key, moment_key, number_key};
use crate::part::{Column, Lookup, Scan, Set, Table, Verdict};
use crate::scope::Scope;
use aql::{Bound, Comparison, Fuel, Instant, List, Literal, Pattern, Predicate};
use json::{Kind, Node};

/// What a leaf will cost, before it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    /// About how many units it leaves.
    pub(crate) units: u64,
    /// About how many values have to be touched.
    pub(crate) work: u64,
}

impl Estimate {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { units: self.units + other.units, work: self.work + other.work }
    }
}

/// A path at which a leaf looks, in one part.
pub(crate) struct Place<C> {
    pub(crate) column: C,
    /// The values one level below, in arrays.
    pub(crate) elements: Option<C>,
    /// Whether one unit can have many values here.
    pub(crate) many: bool,
}

impl<C: Column> Place<C> {
    /// Units of a scope with a value here that passes.
    pub(crate) fn answer<S: Scope>(&self, predicate: &Predicate, scope: &S) -> Result<Answer<S::Units>, IndexError> {
        Asked { place: self, scope }.answer(predicate)
    }
}

/// A place and the units that are asked about.
struct Asked<'a, C, S> {
    place: &'a Place<C>,
    scope: &'a S,
}

impl<C: Column, S: Scope> Asked<'_, C, S> {
    fn answer(&self, predicate: &Predicate) -> Result<Answer<S::Units>, IndexError> {
        match predicate {
            Predicate::Exists => self.units(Lookup::Set(Set::Present)).map(Answer::certain),
            Predicate::Eq(literal) => self.equal(literal),
            Predicate::In(list) => self.listed(list),
            Predicate::Ne(literal) => self.other(self.equal(literal)?),
            Predicate::NotIn(list) => self.other(self.listed(list)?),
            Predicate::Compare(comparison, bound) => self.compare(*comparison, bound),
            Predicate::Contains(literal) => self.contains(literal),
            Predicate::Matches(pattern) => self.matches(pattern),
            Predicate::Before(moment) => self.moments(Comparison::Less, *moment),
            Predicate::After(moment) => self.moments(Comparison::Greater, *moment),
            Predicate::Within(start, end) => self.within(*start, *end),
            Predicate::Outside(start, end) => {
                Ok(self.moments(Comparison::Less, *start)?.or(self.moments(Comparison::Greater, *end)?))
            }
        }
    }

    fn units(&self, at: Lookup<'_>) -> Result<S::Units, IndexError> {
        self.scope.units(&self.place.column, at)
    }

    fn between(&self, table: Table, first: u64, last: u64) -> Result<S::Units, IndexError> {
        self.scope.between(&self.place.column, table, first, last)
    }

    fn equal(&self, literal: &Literal) -> Result<Answer<S::Units>, IndexError> {
        equal(literal, &self.place.column, self.scope)
    }

    fn listed(&self, list: &List) -> Result<Answer<S::Units>, IndexError> {
        list.literals().try_fold(Answer::default(), |sum: Answer<_>, literal| Ok(sum.or(self.equal(&literal)?)))
    }

    /// Some value is not among `equal`: certainly where none is; where there are many values, possibly everywhere.
    fn other(&self, equal: Answer<S::Units>) -> Result<Answer<S::Units>, IndexError> {
        let present = self.units(Lookup::Set(Set::Present))?;
        if !self.place.many {
            return Ok(equal.not(present));
        }
        let open = equal.unsure().open.and(&present);
        Ok(Answer { certain: present.minus(&open), open })
    }

    fn compare(&self, comparison: Comparison, bound: &Bound) -> Result<Answer<S::Units>, IndexError> {
        match bound {
            Bound::Instant(moment) => self.moments(comparison, *moment),
            Bound::Number(number) => {
                let key = number_key(*number);
                let (first, last) = range(comparison, key);
                let numbers = Answer::certain(self.between(Table::Numbers, first, last)?);
                Ok(numbers.or(self.near(Table::Decimals, comparison, key)?))
            }
            Bound::Decimal(text) => match decimal_key(text) {
                Some(key) => {
                    let numbers = self.near(Table::Numbers, comparison, key)?;
                    Ok(numbers.or(self.near(Table::Decimals, comparison, key)?))
                }
                None => self.units(Lookup::Set(Set::Present)).map(Answer::open),
            },
        }
    }

    /// Keys that keep the order but not every difference: what shares the bound's key is open.
    fn near(&self, table: Table, comparison: Comparison, key: u64) -> Result<Answer<S::Units>, IndexError> {
        let (first, last) = range(strict(comparison), key);
        let certain = self.between(table, first, last)?;
        Ok(Answer::certain(certain).with_open(self.units(Lookup::Key(table, key))?))
    }

    fn moments(&self, comparison: Comparison, moment: Instant) -> Result<Answer<S::Units>, IndexError> {
        let key = moment_key(moment);
        let from_here = matches!(comparison, Comparison::Less | Comparison::AtLeast);
        if from_here && is_first_of_key(moment) {
            // All moments that share the key are on one side of the bound.
            let (first, last) = range(comparison, key);
            return self.between(Table::Moments, first, last).map(Answer::certain);
        }
        self.near(Table::Moments, comparison, key)
    }

    fn within(&self, start: Instant, end: Instant) -> Result<Answer<S::Units>, IndexError> {
        let (first, last) = (moment_key(start), moment_key(end));
        let inner = match (first.checked_add(u64::from(!is_first_of_key(start))), last.checked_sub(1)) {
            (Some(first), Some(last)) => self.between(Table::Moments, first, last)?,
            _ => S::Units::default(),
        };
        let ends = self.units(Lookup::Key(Table::Moments, first))?.or(self.units(Lookup::Key(Table::Moments, last))?);
        Ok(Answer::certain(inner).with_open(ends))
    }

    /// Text in text, or an element by the values one level below.
    fn contains(&self, literal: &Literal) -> Result<Answer<S::Units>, IndexError> {
        let in_array = match literal {
            // A run of elements is decided by the document.
            Literal::Other(document) if document.root().kind() == Kind::Array => {
                Answer::open(self.units(Lookup::Set(Set::Arrays))?)
            }
            literal => match &self.place.elements {
                Some(elements) => equal(literal, elements, self.scope)?,
                None => Answer::default(),
            },
        };
        match literal {
            Literal::Text(needle, _) if has_texts(&self.place.column) => {
                let finder = memchr::memmem::Finder::new(needle.as_bytes());
                let mut has = |text: &str| match finder.find(text.as_bytes()) {
                    Some(_) => Verdict::Yes,
                    None => Verdict::No,
                };
                let in_text = self.texts("", &[needle.as_bytes().into()], &mut has)?;
                Ok(in_array.or(in_text))
            }
            Literal::Text(..) | Literal::Number(_) | Literal::Other(_) => Ok(in_array),
        }
    }

    fn matches(&self, pattern: &Pattern) -> Result<Answer<S::Units>, IndexError> {
        // All texts together may cost what an intent may; what is not asked for want of steps stays open.
        let mut left = Fuel::STANDARD.intent_steps;
        let mut matches = |text: &str| {
            let allowed = Fuel::STANDARD.match_steps.min(left);
            let mut steps = allowed;
            let found = pattern.is_match(text, &mut steps);
            left -= allowed - steps;
            match found {
                Ok(true) => Verdict::Yes,
                Ok(false) => Verdict::No,
                Err(_) => Verdict::Unknown,
            }
        };
        self.texts(pattern.prefix(), pattern.required(), &mut matches)
    }

    /// Texts that begin with `prefix`, contain one of `needles`, if there are any, and pass.
    fn texts(
        &self,
        prefix: &str,
        needles: &[Box<[u8]>],
        passes: &mut dyn FnMut(&str) -> Verdict,
    ) -> Result<Answer<S::Units>, IndexError> {
        // The sorted texts are the shorter way to those with a known beginning.
        let candidates = if prefix.is_empty() { self.place.column.candidates(needles)? } else { None };
        let scan = if candidates.is_some() { Scan::Uncovered } else { Scan::Prefix(prefix) };
        // A needle that is not there is found out faster than that a pattern does not match.
        let finders: Vec<_> = needles.iter().map(|needle| memchr::memmem::Finder::new(&**needle)).collect();
        let may_pass = |text: &str| finders.is_empty() || finders.iter().any(|it| it.find(text.as_bytes()).is_some());
        let mut ask = |text: &str| if may_pass(text) { passes(text) } else { Verdict::No };
        let (certain, open) = self.scope.scan(&self.place.column, scan, &mut ask)?;
        let more = match candidates {
            Some(candidates) => self.scope.of(&candidates),
            None => self.units(Lookup::Set(Set::Longs))?,
        };
        Ok(Answer::certain(certain).with_open(open.or(more)))
    }
}

/// Where a value is filed, and whether being there is being equal.
fn lookup(literal: &Literal) -> (Lookup<'_>, bool) {
    match literal {
        Literal::Number(number) => (Lookup::Key(Table::Numbers, number_key(*number)), true),
        Literal::Text(text, _) if text.len() <= TEXT_MAX => (Lookup::Text(text), true),
        Literal::Text(text, _) => (Lookup::Key(Table::Longs, long_key(text)), false),
        Literal::Other(document) => {
            let (set, decided) = set_of(document.root());
            (Lookup::Set(set), decided)
        }
    }
}

fn has_texts(column: &impl Column) -> bool {
    column.texts() > 0 || column.count(Lookup::Set(Set::Longs)) > 0
}

impl<C: Column> Place<C> {
    /// The one value that a predicate asks for: whether it is one of an element, where it is filed, and whether being
    /// there decides it.
    pub(crate) fn one_value<'p>(&self, predicate: &'p Predicate) -> Option<(bool, Lookup<'p>, bool)> {
        let (literal, in_element) = match predicate {
            Predicate::Eq(literal) => (literal, false),
            Predicate::Contains(literal) if self.elements.is_some() && !has_texts(&self.column) => (literal, true),
            _ => return None,
        };
        let is_run = in_element && matches!(literal, Literal::Other(document) if document.root().kind() == Kind::Array);
        let (at, decided) = lookup(literal);
        (!is_run).then_some((in_element, at, decided))
    }
}

fn equal<S: Scope>(literal: &Literal, column: &impl Column, scope: &S) -> Result<Answer<S::Units>, IndexError> {
    let (at, decided) = lookup(literal);
    let units = scope.units(column, at)?;
    Ok(if decided { Answer::certain(units) } else { Answer::open(units) })
}

/// The set in which a value that is neither number nor text would be, and whether being there is being equal.
fn set_of(node: Node<'_>) -> (Set, bool) {
    match (node.kind(), node.as_bool()) {
        (Kind::Null, _) => (Set::Nulls, true),
        (_, Some(true)) => (Set::Trues, true),
        (_, Some(false)) => (Set::Falses, true),
        (Kind::Array, _) => (Set::Arrays, false),
        (Kind::Object | Kind::Bool | Kind::Number | Kind::String, None) => (Set::Objects, false),
    }
}

/// The keys of numbers that a predicate allows, when it is about numbers alone.
pub(crate) fn number_range(predicate: &Predicate) -> Option<(u64, u64)> {
    match predicate {
        Predicate::Compare(comparison, Bound::Number(number)) => Some(range(*comparison, number_key(*number))),
        _ => None,
    }
}

/// The first and the last key that a comparison allows; out of order when there is none.
fn range(comparison: Comparison, key: u64) -> (u64, u64) {
    match comparison {
        Comparison::Less => key.checked_sub(1).map_or((1, 0), |last| (0, last)),
        Comparison::AtMost => (0, key),
        Comparison::Greater => key.checked_add(1).map_or((1, 0), |first| (first, u64::MAX)),
        Comparison::AtLeast => (key, u64::MAX),
    }
}

fn strict(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less | Comparison::AtMost => Comparison::Less,
        Comparison::Greater | Comparison::AtLeast => Comparison::Greater,
    }
}

/// Literals of a list that are looked up to guess about all of it.
const SAMPLE: usize = 16;
/// Values that could be touched while one text is searched.
const TEXT_WORK: u64 = 16;
/// Units that a set holds in the space of one value in a list.
const SET_WORK: u64 = 32;

impl<C: Column> Place<C> {
    /// What asking will cost, without asking.
    pub(crate) fn estimate(&self, predicate: &Predicate) -> Estimate {
        let present = || self.column.count(Lookup::Set(Set::Present));
        let set = |units: u64| Estimate { units, work: 1 + units / SET_WORK };
        let ordered = |table, (first, last)| {
            let units = self.column.between_len(table, first, last);
            Estimate { units, work: units }
        };
        match predicate {
            Predicate::Exists | Predicate::Ne(_) | Predicate::NotIn(_) => set(present()),
            Predicate::Eq(literal) => set(equal_len(literal, &self.column)),
            Predicate::In(list) => {
                let (count, sample) = list
                    .literals()
                    .take(SAMPLE)
                    .fold((0, 0), |(count, sum), literal| (count + 1, sum + equal_len(&literal, &self.column)));
                set(sample * (list.len() as u64) / count.max(1))
            }
            Predicate::Compare(comparison, bound) => match bound {
                Bound::Instant(moment) => ordered(Table::Moments, range(*comparison, moment_key(*moment))),
                Bound::Number(number) => {
                    let keys = range(*comparison, number_key(*number));
                    ordered(Table::Numbers, keys).plus(ordered(Table::Decimals, keys))
                }
                Bound::Decimal(_) => Estimate { units: present(), work: present() },
            },
            Predicate::Before(moment) => ordered(Table::Moments, range(Comparison::Less, moment_key(*moment))),
            Predicate::After(moment) => ordered(Table::Moments, range(Comparison::Greater, moment_key(*moment))),
            Predicate::Within(start, end) => ordered(Table::Moments, (moment_key(*start), moment_key(*end))),
            Predicate::Outside(start, end) => ordered(Table::Moments, range(Comparison::Less, moment_key(*start)))
                .plus(ordered(Table::Moments, range(Comparison::Greater, moment_key(*end)))),
            Predicate::Contains(_) | Predicate::Matches(_) => {
                Estimate { units: present(), work: present() / SET_WORK + TEXT_WORK * self.column.texts() }
            }
        }
    }
}

fn equal_len(literal: &Literal, column: &impl Column) -> u64 {
    column.count(lookup(literal).0)
}
