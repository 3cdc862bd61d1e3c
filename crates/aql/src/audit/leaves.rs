//! RFC 0020 §3.7, A.1, A.6: the evaluations of a decision record, leaf by leaf.
//!
//! Of a returned candidate every leaf that its payload settles is computed again. Of a rejected one nothing is shown
//! but the record, which must at least agree with itself.

use super::Auditor;
use super::payload::{Payload, may_show};
use super::rule::Rule;
use crate::constraint::Leaf;
use crate::operator::Operator;
use crate::read::Place;

const EVALUATION: [&str; 6] = ["path", "operator", "value", "passed", "candidate_value", "reason"];

impl<'a> Auditor<'a> {
    /// The reported truth of each leaf; `payload` is `None` for a rejected candidate.
    pub(super) fn leaves(&mut self, place: &Place<'a>, payload: Option<Option<&Payload<'_>>>) -> Vec<Option<bool>> {
        let leaves = self.intent.constraints.leaves();
        let mut truths = vec![None; leaves.len()];
        let Some(evaluations) = self.required(place, "constraint_evaluations", Place::elements) else { return truths };
        if evaluations.len() != leaves.len() {
            let detail = format!("the intent has {} leaves, the record {}", leaves.len(), evaluations.len());
            self.findings.push(Rule::EvaluationsMiscounted, place.at.child("constraint_evaluations"), detail);
        }
        for ((number, leaf), evaluation) in leaves.iter().enumerate().zip(&evaluations) {
            let Some(passed) = self.evaluation(number, leaf, evaluation) else { continue };
            if let Some(truth) = truths.get_mut(number) {
                *truth = Some(passed);
            }
            self.shown_value(number, leaf, evaluation, passed, payload);
            match payload {
                None => self.checked.leaves_rejected += 1,
                Some(payload) => self.truth(leaf, evaluation, passed, payload),
            }
        }
        self.agreement(&evaluations, &truths);
        truths
    }

    /// The truth that an evaluation reports, when it speaks of this leaf.
    fn evaluation(&mut self, number: usize, leaf: &Leaf, place: &Place<'a>) -> Option<bool> {
        if !self.closed(place, &EVALUATION) {
            return None;
        }
        let path = self.required(place, "path", Place::string);
        let operator = self.required(place, "operator", Place::string);
        let value = self.required(place, "value", |value| Ok(value.node));
        self.optional(place, "reason", Place::string);
        let passed = self.required(place, "passed", Place::boolean);
        let operand = self.operands.get(number).and_then(Option::as_ref);
        let quoted = [
            ("path", path.map(|path| path == leaf.path.text())),
            ("operator", operator.map(|operator| operator == leaf.operator.name())),
            ("value", value.map(|value| operand.is_some_and(|operand| operand.root() == value))),
        ];
        let mut same = true;
        for (name, equal) in quoted {
            same &= equal == Some(true);
            if equal == Some(false) {
                let detail = format!("the leaf at `{}` of the intent has another {name}", leaf.at);
                self.findings.push(Rule::EvaluationMisquoted, place.at.child(name), detail);
            }
        }
        passed.filter(|_| same)
    }

    /// Computes a leaf again on what the payload shows.
    fn truth(&mut self, leaf: &Leaf, place: &Place<'a>, passed: bool, payload: Option<&Payload<'_>>) {
        let truth = payload.and_then(|payload| payload.truth(leaf, &mut self.meter).ok().flatten());
        match truth {
            None => self.checked.leaves_open += 1,
            Some(truth) => {
                self.checked.leaves_settled += 1;
                if truth != passed {
                    let detail = format!("by the payload the leaf at `{}` of the intent is {truth}", leaf.at);
                    self.findings.push(Rule::LeafUntrue, place.at.child("passed"), detail);
                }
            }
        }
    }

    /// A shown value is one that the projection lets through and that fits the reported truth.
    fn shown_value(
        &mut self,
        number: usize,
        leaf: &Leaf,
        place: &Place<'a>,
        passed: bool,
        payload: Option<Option<&Payload<'_>>>,
    ) {
        let Some(shown) = place.member("candidate_value") else { return };
        let allowed = match payload {
            Some(Some(payload)) => payload.shows(leaf, shown.node),
            Some(None) | None => self.leaf_may_show(number, leaf),
        };
        if !allowed {
            let detail = "the leaf reaches no such value inside the projection";
            self.findings.push(Rule::ValueBeyondProjection, shown.at.clone(), detail);
        }
        let Ok(passes) = leaf.predicate.passes(shown.node, &mut self.meter) else { return };
        // Of several values that a path reaches another one may have passed; none can when the leaf is false.
        let contradicts = if passed { !passes && leaf.path.is_plain() } else { passes };
        if contradicts {
            let detail = format!("this value makes the leaf {passes}, and the record says {passed}");
            self.findings.push(Rule::ValueContradicts, shown.at, detail);
        }
    }

    fn leaf_may_show(&mut self, number: usize, leaf: &Leaf) -> bool {
        let projection = &self.intent.projection;
        match self.may_show.get_mut(number) {
            Some(known) => *known.get_or_insert_with(|| may_show(projection, &leaf.path)),
            None => true,
        }
    }

    /// One record cannot say of one path that it reaches nothing and that a value there passes, nor yes and no to one
    /// question.
    fn agreement(&mut self, evaluations: &[Place<'a>], truths: &[Option<bool>]) {
        let leaves = self.intent.constraints.leaves();
        let reported: Vec<(&Leaf, &Place<'a>, bool)> = leaves
            .iter()
            .zip(evaluations)
            .zip(truths)
            .filter_map(|((leaf, place), truth)| Some((leaf, place, (*truth)?)))
            .collect();
        for (position, (leaf, place, passed)) in reported.iter().enumerate() {
            let contradicted = reported.iter().take(position).any(|(other, _, said)| {
                leaf.path.text() == other.path.text() && contradict((leaf, *passed), (other, *said))
            });
            if contradicted {
                let detail = "an evaluation further up says the opposite";
                self.findings.push(Rule::LeavesContradict, place.at.child("passed"), detail);
            }
        }
    }
}

/// Whether two leaves over one path cannot have these truths together.
fn contradict(one: (&Leaf, bool), other: (&Leaf, bool)) -> bool {
    let absent = |(leaf, passed): (&Leaf, bool)| leaf.operator == Operator::Exists && !passed;
    let same = one.0.operator == other.0.operator && one.0.value == other.0.value;
    (same && one.1 != other.1) || (absent(one) && other.1) || (absent(other) && one.1)
}
