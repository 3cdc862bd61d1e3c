//! RFC 0020 A.1: the denotation of a constraint tree over a document.
//!
//! A leaf holds iff some node that its path reaches passes, for each of the fifteen operators. INVARIANT: every
//! leaf is evaluated, in reading order, whatever the leaves before it said; RFC 0020 A.6 needs the same records
//! from every resolver.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use crate::constraint::{Constraint, Leaf, Test};
use crate::fields::Field;
use crate::order::{instant, order};
use crate::pointer::Node;
use crate::projection::Cut;
use crate::refusal::Refusal;
use crate::value::Value;

/// What a constraint tree says about a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Whether the tree holds.
    pub holds: bool,
    /// The raw truth of each leaf, in reading order.
    pub leaves: Vec<bool>,
}

/// What a decision record says about one leaf.
#[derive(Debug, Clone, PartialEq)]
pub struct LeafRecord {
    /// The path as it was written.
    pub path: String,
    /// The operator.
    pub operator: String,
    /// The operand as it was written.
    pub value: Value,
    /// The raw truth of the leaf, also under `not`.
    pub passed: bool,
    /// The value that decided, if the projection lets all of it be seen.
    pub candidate_value: Option<Value>,
    /// Why the leaf stands against the candidate, if it does.
    pub reason: Option<String>,
}

/// Evaluates the constraints of an intent over a document.
pub fn evaluate(constraints: &Value, document: &Value) -> Result<Evaluation, Refusal> {
    let constraint = Constraint::read(&Field::new(constraints, "/constraints"))?;
    let (holds, leaves) = judge(&constraint, document)?;
    Ok(Evaluation { holds, leaves: leaves.iter().map(|leaf| leaf.passed).collect() })
}

/// A leaf over a document: its raw truth, and the node that decided it.
pub(crate) struct LeafTruth<'a> {
    pub(crate) leaf: &'a Leaf,
    /// Whether the leaf stands under an odd number of `not`s.
    pub(crate) negated: bool,
    pub(crate) passed: bool,
    /// The first node that passes, else the first node reached.
    witness: Option<Node<'a>>,
}

/// The truth of a tree, and of each of its leaves.
pub(crate) fn judge<'a>(
    constraint: &'a Constraint,
    document: &'a Value,
) -> Result<(bool, Vec<LeafTruth<'a>>), Refusal> {
    let mut leaves = Vec::new();
    let holds = holds(constraint, document, false, &mut leaves)?;
    Ok((holds, leaves))
}

fn holds<'a>(
    constraint: &'a Constraint,
    document: &'a Value,
    negated: bool,
    leaves: &mut Vec<LeafTruth<'a>>,
) -> Result<bool, Refusal> {
    // Each list is evaluated to its end before anything is concluded from it.
    let mut each = |list: &'a [Constraint], negated: bool| -> Result<Vec<bool>, Refusal> {
        list.iter().map(|constraint| holds(constraint, document, negated, leaves)).collect()
    };
    match constraint {
        Constraint::AllOf(list) => Ok(each(list, negated)?.iter().all(|truth| *truth)),
        Constraint::AnyOf(list) => Ok(each(list, negated)?.iter().any(|truth| *truth)),
        Constraint::Not(list) => Ok(!each(list, !negated)?.iter().any(|truth| *truth)),
        Constraint::Leaf(leaf) => {
            let truth = leaf_truth(leaf, document, negated)?;
            let passed = truth.passed;
            leaves.push(truth);
            Ok(passed)
        }
    }
}

fn leaf_truth<'a>(leaf: &'a Leaf, document: &'a Value, negated: bool) -> Result<LeafTruth<'a>, Refusal> {
    let reached = leaf.path.reach(document);
    let mut passing = None;
    for node in &reached {
        if passes(&leaf.test, &leaf.value, node.value)? {
            passing = Some(node);
            break;
        }
    }
    let passed = passing.is_some();
    let witness = passing.or(reached.first()).cloned();
    Ok(LeafTruth { leaf, negated, passed, witness })
}

/// Whether one value passes an operator with its operand.
fn passes(test: &Test, operand: &Value, value: &Value) -> Result<bool, Refusal> {
    let passes = match test {
        Test::Eq => value == operand,
        Test::Ne => value != operand,
        Test::Lt => order(value, operand) == Some(Ordering::Less),
        Test::Lte => matches!(order(value, operand), Some(Ordering::Less | Ordering::Equal)),
        Test::Gt => order(value, operand) == Some(Ordering::Greater),
        Test::Gte => matches!(order(value, operand), Some(Ordering::Greater | Ordering::Equal)),
        Test::In(members) => members.iter().any(|member| value == member),
        Test::NotIn(members) => !members.iter().any(|member| value == member),
        Test::Contains => contains(value, operand),
        Test::Matches(pattern, at) => match value.text() {
            Some(text) => pattern.is_found_in(text).map_err(|code| Refusal::new(code, at))?,
            None => false,
        },
        Test::Before(bound) => instant(value).is_some_and(|instant| instant < *bound),
        Test::After(bound) => instant(value).is_some_and(|instant| *bound < instant),
        Test::Within(start, end) => instant(value).is_some_and(|instant| *start <= instant && instant <= *end),
        Test::Outside(start, end) => instant(value).is_some_and(|instant| instant < *start || *end < instant),
        Test::Exists => true,
    };
    Ok(passes)
}

/// Text in text; an array in an array as a contiguous run; anything else as an element of an array.
fn contains(value: &Value, operand: &Value) -> bool {
    match (value, operand) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Array(elements), Value::Array(run)) => {
            (0..=elements.len()).any(|start| elements.iter().skip(start).take(run.len()).eq(run.iter()))
        }
        (Value::Array(elements), element) => elements.iter().any(|candidate| candidate == element),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_), _) => false,
    }
}

impl LeafTruth<'_> {
    /// The entry of the leaf in a decision record, for a candidate that is cut to this projection.
    pub(crate) fn record(&self, cut: &Cut) -> LeafRecord {
        let visible = self.witness.as_ref().filter(|node| cut.shows_all_of(&node.location));
        LeafRecord {
            path: self.leaf.path.written.clone(),
            operator: self.leaf.operator.clone(),
            value: self.leaf.value.clone(),
            passed: self.passed,
            candidate_value: visible.map(|node| node.value.clone()),
            reason: self.reason(),
        }
    }

    fn reason(&self) -> Option<String> {
        let reason = match (self.passed, &self.witness) {
            (true, _) => "satisfied",
            (false, None) => "nothing at this path",
            (false, Some(_)) => "no value satisfies",
        };
        match (self.passed, self.negated) {
            (true, false) => None,
            (false, false) => Some(reason.to_owned()),
            (_, true) => Some(format!("negated: {reason}")),
        }
    }
}
