//! RFC 0020 §3.2: advice about intents that are allowed and probably not meant.
//!
//! Refusals come first, as many as can be told apart; then warnings about what surprises people: `exists` with
//! `false`, existential negation over many values, conditions that exclude each other, projections that take away
//! what they ask for.

use crate::candidate::Candidate;
use crate::constraint::{Constraints, Leaf, Tree};
use crate::evaluate::Meter;
use crate::intent::Intent;
use crate::limits::{Fuel, Limits};
use crate::operator::{Bound, Comparison, Literal, Operator, Predicate};
use crate::refusal::Refusal;
use json::{Document, Kind, Node, Pointer, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Something to mend in an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the intent would be refused.
    pub refused: bool,
    /// A stable name.
    pub code: &'static str,
    /// Where.
    pub at: Pointer,
    /// What it follows from.
    pub section: &'static str,
    /// What is the matter.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// Looks for mistakes in an intent; with candidates, also for paths that none of them has.
pub fn lint(node: Node<'_>, candidates: &[Candidate], limits: &Limits) -> Vec<Finding> {
    let mut findings = Vec::new();
    let intent = Intent::read(node, limits);
    if let Err(refusal) = &intent {
        findings.push(Finding::refused(refusal));
        if let Some(constraints) = node.get("constraints") {
            let mut refusals = Vec::new();
            leaf_refusals(constraints, Pointer::root().child("constraints"), limits, &mut refusals);
            findings.extend(refusals.iter().map(Finding::refused).filter(|other| other.at != refusal.at));
        }
    }
    if let Ok(intent) = &intent {
        intent.constraints.leaves().iter().for_each(|leaf| leaf_findings(leaf, &mut findings));
        contradictions(&intent.constraints, &mut findings);
        projection_findings(intent, &mut findings);
        if !candidates.is_empty() {
            unknown_paths(intent, candidates, &mut findings);
        }
    }
    findings
}

impl Finding {
    fn refused(refusal: &Refusal) -> Self {
        Self {
            refused: true,
            code: refusal.code.name(),
            at: refusal.at.clone(),
            section: refusal.code.section(),
            message: refusal.detail.clone(),
            advice: format!("see `{}` in docs/refusals.md", refusal.code.name()),
        }
    }

    fn warning(
        code: &'static str,
        at: &Pointer,
        section: &'static str,
        message: String,
        advice: impl Into<String>,
    ) -> Self {
        Self { refused: false, code, at: at.clone(), section, message, advice: advice.into() }
    }
}

/// Reads each leaf by itself, so that one mistake does not hide the next.
fn leaf_refusals(node: Node<'_>, at: Pointer, limits: &Limits, found: &mut Vec<Refusal>) {
    // A tree that is too deep was refused as a whole.
    if at.as_str().matches('/').count() > 2 * limits.tree_depth + 2 {
        return;
    }
    if node.kind() == Kind::Array {
        let elements = node.elements().enumerate();
        return elements.for_each(|(position, element)| leaf_refusals(element, at.child(position), limits, found));
    }
    for name in ["all_of", "any_of", "not"] {
        if let Some(inner) = node.get(name) {
            return leaf_refusals(inner, at.child(name), limits, found);
        }
    }
    found.extend(Constraints::read(node, at, limits).err());
}

fn leaf_findings(leaf: &Leaf, findings: &mut Vec<Finding>) {
    let (path, operator) = (leaf.path.text(), leaf.operator.name());
    let mut warn = |code, message: String, advice: String| {
        findings.push(Finding::warning(code, &leaf.at, "RFC 0020 A.1", message, advice));
    };
    if leaf.operator == Operator::Exists && matches!(leaf.value, Value::Bool(false) | Value::Null) {
        warn(
            "exists_false",
            format!("`exists` ignores its value: this holds when `{path}` is there"),
            format!(r#"for "not there" write {{"not": {{"path": "{path}", "operator": "exists", "value": true}}}}"#),
        );
    }
    let negative = matches!(leaf.operator, Operator::Ne | Operator::NotIn | Operator::Outside);
    if negative && !leaf.path.is_plain() {
        warn(
            "existential_negation",
            format!("`{operator}` holds as soon as one of the values of `{path}` passes"),
            "for \"none of them\" put the opposite operator under `not`".to_owned(),
        );
    }
    match &leaf.predicate {
        Predicate::In(list) if list.literals().next().is_none() => {
            warn("never_holds", "nothing is in an empty list".to_owned(), "name what is allowed".to_owned());
        }
        Predicate::Contains(Literal::Text(text, _)) if text.is_empty() => {
            warn("always_holds", "every text contains the empty text".to_owned(), "use `exists`".to_owned());
        }
        Predicate::Matches(pattern) if pattern.is_bounded() => warn(
            "bounded_pattern",
            "lookaround and backreferences run on an engine with a step limit".to_owned(),
            "a pattern without them is linear and always decided".to_owned(),
        ),
        _ => {}
    }
}

/// Conditions on one value that exclude each other, where all of them must hold.
fn contradictions(constraints: &Constraints, findings: &mut Vec<Finding>) {
    let mut numbers = Vec::new();
    conjuncts(constraints.tree(), &mut numbers);
    let mut by_path: BTreeMap<&str, Vec<&Leaf>> = BTreeMap::new();
    for leaf in numbers.iter().filter_map(|number| constraints.leaves().get(*number)) {
        // Over many values, each condition may be met by another one.
        if leaf.path.is_plain() {
            by_path.entry(leaf.path.text()).or_default().push(leaf);
        }
    }
    for leaves in by_path.values() {
        let pairs =
            leaves.iter().enumerate().flat_map(|(n, left)| leaves.iter().skip(n + 1).map(move |right| (*left, *right)));
        for (left, right) in pairs.filter(|(left, right)| exclude_each_other(left, right)) {
            let message = format!(
                "`{} {} {}` and `{} {}` cannot both hold",
                left.path.text(),
                left.operator.name(),
                left.value,
                right.operator.name(),
                right.value
            );
            let advice = format!("no record can satisfy both; the other condition stands at {}", left.at);
            findings.push(Finding::warning("cannot_hold", &right.at, "RFC 0020 §3.2", message, advice));
        }
    }
}

/// The leaves that must all hold.
fn conjuncts(tree: &Tree, found: &mut Vec<usize>) {
    match tree {
        Tree::AllOf(parts) => parts.iter().for_each(|part| conjuncts(part, found)),
        Tree::Leaf(number) => found.push(*number),
        Tree::AnyOf(_) | Tree::Not(_) => {}
    }
}

fn exclude_each_other(left: &Leaf, right: &Leaf) -> bool {
    match (&left.predicate, &right.predicate) {
        (Predicate::Eq(_), Predicate::Eq(_)) => left.value != right.value,
        (Predicate::Eq(_), other) => !value_could_pass(&left.value, other),
        (other, Predicate::Eq(_)) => !value_could_pass(&right.value, other),
        _ => match (interval(&left.predicate), interval(&right.predicate)) {
            (Some(left), Some(right)) => disjoint(&left, &right) || disjoint(&right, &left),
            _ => false,
        },
    }
}

fn value_could_pass(value: &Value, predicate: &Predicate) -> bool {
    let Ok(document) = Document::of(value) else { return true };
    predicate.passes(document.root(), &mut Meter::new(Fuel::STANDARD)).unwrap_or(true)
}

/// The range of a comparison: its lower and upper end, each with whether the end itself belongs to it.
type Range = (Option<(Document, bool)>, Option<(Document, bool)>);

fn interval(predicate: &Predicate) -> Option<Range> {
    let instant = |instant: &crate::Instant| Document::of(&Value::from(instant.to_string())).ok();
    match predicate {
        Predicate::Compare(comparison, bound) => {
            let value = match bound {
                Bound::Number(number) => Document::of(&Value::from(*number)).ok()?,
                Bound::Decimal(text) => Document::of(&Value::from(&**text)).ok()?,
                Bound::Instant(moment) => instant(moment)?,
            };
            Some(match comparison {
                Comparison::Less => (None, Some((value, false))),
                Comparison::AtMost => (None, Some((value, true))),
                Comparison::Greater => (Some((value, false)), None),
                Comparison::AtLeast => (Some((value, true)), None),
            })
        }
        Predicate::Before(moment) => Some((None, Some((instant(moment)?, false)))),
        Predicate::After(moment) => Some((Some((instant(moment)?, false)), None)),
        Predicate::Within(start, end) => Some((Some((instant(start)?, true)), Some((instant(end)?, true)))),
        _ => None,
    }
}

/// Whether everything of `low` lies below everything of `high`, or the two have no order at all.
fn disjoint(low: &Range, high: &Range) -> bool {
    match (&low.1, &high.0) {
        (Some((end, end_belongs)), Some((start, start_belongs))) => {
            match crate::operator::order(end.root(), start.root()) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => !(*end_belongs && *start_belongs),
                Some(Ordering::Greater) => false,
                None => true,
            }
        }
        _ => false,
    }
}

fn projection_findings(intent: &Intent, findings: &mut Vec<Finding>) {
    let at = Pointer::root().child("projection");
    for include in intent.projection.include() {
        let removes = |exclude: &&crate::Path| {
            let (outer, inner) = (exclude.text().trim_end_matches('/'), include.text());
            inner == outer || inner.starts_with(&format!("{outer}/"))
        };
        if let Some(exclude) = intent.projection.exclude().iter().find(removes) {
            findings.push(Finding::warning(
                "projection_conflict",
                &at,
                "RFC 0020 §3.3",
                format!("`exclude {}` takes away `include {}`", exclude.text(), include.text()),
                "every candidate fails with `projection_failure`; drop one of the two",
            ));
        }
    }
}

fn unknown_paths(intent: &Intent, candidates: &[Candidate], findings: &mut Vec<Finding>) {
    let reached = |path: &crate::Path| {
        candidates.iter().any(|candidate| path.reach(candidate.record(), &mut 0, |_| ControlFlow::Break(())).is_break())
    };
    let mut warn = |path: &crate::Path, at: Pointer, section: &'static str| {
        let message = format!("none of the {} candidates has anything at `{}`", candidates.len(), path.text());
        findings.push(Finding::warning("unknown_path", &at, section, message, "check the spelling against a record"));
    };
    for leaf in intent.constraints.leaves().iter().filter(|leaf| !reached(&leaf.path)) {
        warn(&leaf.path, leaf.at.child("path"), "RFC 0020 §3.2");
    }
    for (position, path) in intent.projection.include().iter().enumerate().filter(|(_, path)| !reached(path)) {
        let at = Pointer::root().child("projection").child("include").child(position);
        warn(path, at, "RFC 0020 §3.3");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    fn codes(constraints: json::Value) -> Vec<(&'static str, String)> {
        let document = Document::of(&json!({
            "intent_id": "urn:oap:intent:t", "issuer_did": "did:key:z6Mk", "category": "discovery",
            "constraints": constraints, "projection": {"include": ["/a"], "exclude": []},
            "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
        }))
        .unwrap();
        lint(document.root(), &[], &Limits::STANDARD)
            .into_iter()
            .map(|finding| (finding.code, finding.at.to_string()))
            .collect()
    }

    fn leaf(path: &str, operator: &str, value: impl Into<json::Value>) -> json::Value {
        json!({"path": path, "operator": operator, "value": value.into()})
    }

    #[test]
    fn what_surprises_people_is_said() {
        assert_eq!(codes(leaf("/a", "exists", false)), [("exists_false", "/constraints".into())]);
        assert_eq!(codes(leaf("/a/*", "ne", 1)), [("existential_negation", "/constraints".into())]);
        assert_eq!(codes(leaf("/a", "in", json!([]))), [("never_holds", "/constraints".into())]);
        assert!(codes(leaf("/a", "ne", 1)).is_empty());
    }

    #[test]
    fn ranges_that_cannot_hold_are_found() {
        let both = |left, right| codes(json!({"all_of": [left, right]}));
        let found = [("cannot_hold", "/constraints/all_of/1".to_owned())];
        assert_eq!(both(leaf("/a", "gt", 10), leaf("/a", "lt", 5)), found);
        assert_eq!(both(leaf("/a", "lt", "5.0"), leaf("/a", "gte", 5)), found);
        assert_eq!(both(leaf("/a", "eq", 1), leaf("/a", "eq", 2)), found);
        assert_eq!(both(leaf("/a", "eq", 7), leaf("/a", "lte", 5)), found);
        assert_eq!(both(leaf("/a", "before", "2026-01-01"), leaf("/a", "after", "2026-02-01")), found);
        assert!(both(leaf("/a", "lte", 5), leaf("/a", "gte", 5)).is_empty());
        assert!(both(leaf("/a/*", "gt", 10), leaf("/a/*", "lt", 5)).is_empty());
        assert!(codes(json!({"any_of": [leaf("/a", "gt", 10), leaf("/a", "lt", 5)]})).is_empty());
    }

    #[test]
    fn one_mistake_does_not_hide_the_next() {
        let constraints = json!({"all_of": [leaf("/a", "starts_with", 1), leaf("/b", "in", 3), leaf("c", "eq", 1)]});
        assert_eq!(
            codes(constraints),
            [
                ("unknown_operator", "/constraints/all_of/0/operator".to_owned()),
                ("value_incompatible", "/constraints/all_of/1/value".to_owned()),
                ("invalid_pointer", "/constraints/all_of/2/path".to_owned()),
            ]
        );
    }
}
