//! RFC 0020 §3.2, A.1: the closed set of fifteen operators and what each one means.
//!
//! An operand is checked and prepared when the intent is read, so that evaluation has nothing left to doubt.
//! A value that an operator does not speak about never satisfies it.

use crate::decimal::{Digits, spell};
use crate::evaluate::{EvaluationError, Meter};
use crate::limits::Limits;
use crate::pattern::Pattern;
use crate::read::{Place, shorten};
use crate::refusal::{Code, Refusal};
use json::Instant;
use json::{Document, Kind, Node};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The operators of the language; there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// structurally equal
    Eq,
    /// structurally different
    Ne,
    /// less than
    Lt,
    /// less than or equal
    Lte,
    /// greater than
    Gt,
    /// greater than or equal
    Gte,
    /// equal to a member of the list
    In,
    /// equal to no member of the list
    NotIn,
    /// text in text, run in array, element of array
    Contains,
    /// an ECMA-262 pattern matches somewhere
    Matches,
    /// strictly earlier
    Before,
    /// strictly later
    After,
    /// inside an interval, its ends included
    Within,
    /// before or after an interval
    Outside,
    /// the path reaches something
    Exists,
}

impl Operator {
    /// All fifteen, in the order of the text.
    pub const ALL: [Self; 15] = [
        Self::Eq,
        Self::Ne,
        Self::Lt,
        Self::Lte,
        Self::Gt,
        Self::Gte,
        Self::In,
        Self::NotIn,
        Self::Contains,
        Self::Matches,
        Self::Before,
        Self::After,
        Self::Within,
        Self::Outside,
        Self::Exists,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::In => "in",
            Self::NotIn => "not_in",
            Self::Contains => "contains",
            Self::Matches => "matches",
            Self::Before => "before",
            Self::After => "after",
            Self::Within => "within",
            Self::Outside => "outside",
            Self::Exists => "exists",
        }
    }

    pub(crate) fn read(place: &Place<'_>) -> Result<Self, Refusal> {
        let text = place.string()?;
        Self::ALL.into_iter().find(|operator| operator.name() == text).map_or_else(
            || {
                let known: Vec<&str> = Self::ALL.iter().map(|operator| operator.name()).collect();
                let detail = format!("`{}` is no operator; the closed set is {}", shorten(text), known.join(", "));
                place.refuse(Code::UnknownOperator, detail)
            },
            Ok,
        )
    }
}

/// An operator with its operand, ready to be asked about values.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `eq`
    Eq(Literal),
    /// `ne`
    Ne(Literal),
    /// `lt`, `lte`, `gt`, `gte`
    Compare(Comparison, Bound),
    /// `in`
    In(List),
    /// `not_in`
    NotIn(List),
    /// `contains`
    Contains(Literal),
    /// `matches`
    Matches(Pattern),
    /// `before`
    Before(Instant),
    /// `after`
    After(Instant),
    /// `within`
    Within(Instant, Instant),
    /// `outside`
    Outside(Instant, Instant),
    /// `exists`
    Exists,
}

/// Which side of a bound is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `lt`
    Less,
    /// `lte`
    AtMost,
    /// `gt`
    Greater,
    /// `gte`
    AtLeast,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order == Ordering::Less,
            Self::AtMost => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::AtLeast => order != Ordering::Less,
        }
    }
}

/// A constant of the intent; scalars apart, because they are most of them.
#[derive(Clone, Debug)]
pub enum Literal {
    /// text, also in the form in which documents hold it where it is short
    Text(Box<str>, Option<json::Text>),
    /// a number
    Number(f64),
    /// anything else
    Other(Document),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(left, _), Self::Text(right, _)) => left == right,
            (Self::Number(left), Self::Number(right)) => left == right,
            (Self::Other(left), Self::Other(right)) => left.root() == right.root(),
            (Self::Text(..) | Self::Number(_) | Self::Other(_), _) => false,
        }
    }
}

impl Literal {
    fn of(node: Node<'_>) -> Self {
        match (node.as_str(), node.as_f64()) {
            (Some(text), _) => Self::text(text.into()),
            (_, Some(number)) => Self::Number(number),
            _ => Self::Other(node.to_document()),
        }
    }

    fn text(text: Box<str>) -> Self {
        let short = Some(json::Text::new(&text)).filter(|text| matches!(text, json::Text::Short { .. }));
        Self::Text(text, short)
    }

    pub(crate) fn equals(&self, node: Node<'_>) -> bool {
        match self {
            Self::Text(_, Some(short)) => node.is_text(short),
            Self::Text(long, None) => node.as_str() == Some(&**long),
            Self::Number(number) => node.as_f64() == Some(*number),
            Self::Other(document) => document.root() == node,
        }
    }
}

/// The members of an `in` or `not_in` list.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// Text members of a long list; a short one is compared one by one.
    texts: HashSet<Box<str>>,
    members: Vec<Literal>,
}

/// Lists up to this length are faster to walk than to hash.
const SHORT_LIST: usize = 8;

impl List {
    fn of(place: &Place<'_>) -> Self {
        let (mut texts, mut members) = (HashSet::new(), Vec::new());
        for node in place.node.elements() {
            match Literal::of(node) {
                Literal::Text(text, _) if place.node.len() > SHORT_LIST => {
                    texts.insert(text);
                }
                other => members.push(other),
            }
        }
        Self { texts, members }
    }

    fn has(&self, node: Node<'_>, meter: &mut Meter) -> bool {
        // Members that are compared one by one are charged as a block of them is.
        meter.visits += (self.members.len() / SHORT_LIST) as u64;
        let listed = || node.as_str().is_some_and(|text| self.texts.contains(text));
        self.members.iter().any(|member| member.equals(node)) || (!self.texts.is_empty() && listed())
    }

    /// How many different members there are, at most.
    pub fn len(&self) -> usize {
        self.members.len() + self.texts.len()
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The members, in no particular order.
    pub fn literals(&self) -> impl Iterator<Item = Literal> + '_ {
        self.members.iter().cloned().chain(self.texts.iter().map(|text| Literal::text(text.clone())))
    }
}

/// What `lt`, `lte`, `gt` and `gte` compare with.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number, or a decimal short enough to be one.
    Number(f64),
    /// A decimal that no double stands for.
    Decimal(Box<str>),
    /// A moment.
    Instant(Instant),
}

impl Bound {
    /// Reads a number, a decimal string or a timestamp; nothing else has an order.
    pub fn of(node: Node<'_>) -> Option<Self> {
        if let Some(number) = node.as_f64() {
            return Some(Self::Number(number));
        }
        let text = node.as_str()?;
        match Digits::parse(text) {
            Some(digits) => Some(digits.short().map_or_else(|| Self::Decimal(text.into()), Self::Number)),
            None => Instant::parse(text).map(Self::Instant),
        }
    }

    /// How a value stands to this bound; `None` when the two have no order.
    pub fn compare(&self, node: Node<'_>) -> Option<Ordering> {
        match (self, node.as_f64(), node.as_str()) {
            (Self::Number(bound), Some(number), _) => number.partial_cmp(bound),
            (Self::Number(bound), _, Some(text)) => {
                let digits = Digits::parse(text)?;
                match digits.short() {
                    Some(number) => number.partial_cmp(bound),
                    None => Some(digits.compare(Digits::parse(&spell(*bound))?)),
                }
            }
            (Self::Decimal(bound), Some(number), _) => {
                Some(Digits::parse(&spell(number))?.compare(Digits::parse(bound)?))
            }
            (Self::Decimal(bound), _, Some(text)) => Some(Digits::parse(text)?.compare(Digits::parse(bound)?)),
            (Self::Instant(bound), _, Some(text)) => Some(Instant::parse(text)?.cmp(bound)),
            _ => None,
        }
    }
}

/// How two values stand to each other under `lt`, `lte`, `gt` and `gte`; `None` when they have no order.
pub fn order(left: Node<'_>, right: Node<'_>) -> Option<Ordering> {
    Bound::of(right)?.compare(left)
}

impl Predicate {
    pub(crate) fn read(operator: Operator, value: &Place<'_>, limits: &Limits) -> Result<Self, Refusal> {
        Ok(match operator {
            Operator::Eq => Self::Eq(Literal::of(value.node)),
            Operator::Ne => Self::Ne(Literal::of(value.node)),
            Operator::Lt => Self::Compare(Comparison::Less, bound(value)?),
            Operator::Lte => Self::Compare(Comparison::AtMost, bound(value)?),
            Operator::Gt => Self::Compare(Comparison::Greater, bound(value)?),
            Operator::Gte => Self::Compare(Comparison::AtLeast, bound(value)?),
            Operator::In => Self::In(list(value, limits)?),
            Operator::NotIn => Self::NotIn(list(value, limits)?),
            Operator::Contains => Self::Contains(Literal::of(value.node)),
            Operator::Matches => match value.node.as_str() {
                Some(source) => Self::Matches(Pattern::read(source, &value.at, limits)?),
                None => return value.refuse(Code::ValueIncompatible, "`matches` takes a pattern as a string"),
            },
            Operator::Before => Self::Before(instant(value)?),
            Operator::After => Self::After(instant(value)?),
            Operator::Within => interval(value).map(|(start, end)| Self::Within(start, end))?,
            Operator::Outside => interval(value).map(|(start, end)| Self::Outside(start, end))?,
            Operator::Exists => Self::Exists,
        })
    }

    /// Whether one value passes.
    pub fn passes(&self, node: Node<'_>, meter: &mut Meter) -> Result<bool, EvaluationError> {
        Ok(match self {
            Self::Eq(literal) => literal.equals(node),
            Self::Ne(literal) => !literal.equals(node),
            Self::Compare(comparison, bound) => {
                meter.bytes(node.text_bytes());
                bound.compare(node).is_some_and(|order| comparison.holds(order))
            }
            Self::In(list) => list.has(node, meter),
            Self::NotIn(list) => !list.has(node, meter),
            Self::Contains(literal) => contains(literal, node, meter)?,
            Self::Matches(pattern) => match node.as_str() {
                Some(subject) => meter.is_match(pattern, subject)?,
                None => false,
            },
            Self::Before(bound) => charged_moment(node, meter).is_some_and(|instant| instant < *bound),
            Self::After(bound) => charged_moment(node, meter).is_some_and(|instant| instant > *bound),
            Self::Within(start, end) => {
                charged_moment(node, meter).is_some_and(|instant| *start <= instant && instant <= *end)
            }
            Self::Outside(start, end) => {
                charged_moment(node, meter).is_some_and(|instant| instant < *start || *end < instant)
            }
            Self::Exists => true,
        })
    }
}

/// Text in text; a run of elements in an array; anything else as an element of an array.
fn contains(literal: &Literal, node: Node<'_>, meter: &mut Meter) -> Result<bool, EvaluationError> {
    Ok(match node.kind() {
        Kind::String => match (literal, node.as_str()) {
            (Literal::Text(needle, _), Some(text)) => {
                meter.bytes(text.len());
                text.contains(&**needle)
            }
            _ => false,
        },
        Kind::Array => {
            meter.visits += node.len() as u64;
            match literal {
                Literal::Other(document) if document.root().kind() == Kind::Array => run(document.root(), node, meter)?,
                literal => node.elements().any(|element| literal.equals(element)),
            }
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::Object => false,
    })
}

fn run(needle: Node<'_>, array: Node<'_>, meter: &mut Meter) -> Result<bool, EvaluationError> {
    if needle.is_empty() {
        return Ok(true);
    }
    // Quadratic in the worst case, so it is charged as such, and stopped before the whole of it is spent.
    let starts = (array.len() + 1).saturating_sub(needle.len());
    for start in 0..starts {
        meter.within_fuel()?;
        let mut pairs = needle.elements().enumerate();
        let found = pairs.all(|(offset, wanted)| {
            meter.visits += 1;
            array.at(start + offset).is_some_and(|element| element == wanted)
        });
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A moment may be written with a fraction of any length, all of which is read.
fn charged_moment(node: Node<'_>, meter: &mut Meter) -> Option<Instant> {
    meter.bytes(node.as_str()?.len());
    moment(node)
}

fn moment(node: Node<'_>) -> Option<Instant> {
    Instant::parse(node.as_str()?)
}

fn bound(value: &Place<'_>) -> Result<Bound, Refusal> {
    Bound::of(value.node).map_or_else(
        || value.refuse(Code::ValueIncompatible, "a number, a decimal string or a timestamp belongs here"),
        Ok,
    )
}

fn list(value: &Place<'_>, limits: &Limits) -> Result<List, Refusal> {
    if value.node.kind() != Kind::Array {
        return value.refuse(Code::ValueIncompatible, "`in` and `not_in` take an array");
    }
    if value.node.len() > limits.list {
        return Err(Refusal::limit(Code::ListTooLong, value.at.clone(), "list", limits.list, value.node.len()));
    }
    Ok(List::of(value))
}

fn instant(value: &Place<'_>) -> Result<Instant, Refusal> {
    moment(value.node).map_or_else(
        || value.refuse(Code::ValueIncompatible, "a timestamp such as `2026-06-01T12:00:00Z` belongs here"),
        Ok,
    )
}

/// Reads `[start, end]` or `{"from": start, "to": end}`.
fn interval(value: &Place<'_>) -> Result<(Instant, Instant), Refusal> {
    let (start, end) = match value.node.kind() {
        Kind::Array if value.node.len() == 2 => (value.node.at(0), value.node.at(1)),
        Kind::Object if value.node.len() == 2 => (value.node.get("from"), value.node.get("to")),
        _ => (None, None),
    };
    match (start.and_then(moment), end.and_then(moment)) {
        (Some(start), Some(end)) if start <= end => Ok((start, end)),
        _ => value.refuse(
            Code::ValueIncompatible,
            "an interval `[start, end]` or `{\"from\", \"to\"}` of timestamps belongs here, in order",
        ),
    }
}
