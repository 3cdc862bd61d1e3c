//! RFC 0020 A.3 R3, R4: one candidate, checked in the order of the text.

use super::OverBudget;
use crate::budget::Amount;
use crate::candidate::Candidate;
use crate::constraint::{Constraints, Tree};
use crate::evaluate::{EvaluationError, Evaluator};
use crate::intent::Intent;
use crate::quality::Signals;
use json::Writer;

/// Bytes that most candidates show at the most; a guess, for the room to begin with.
const PAYLOAD_BYTES: usize = 512;

/// What became of a candidate; the names are those of the decision record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// In the answer.
    Accept,
    /// Not in the answer.
    Reject,
    /// Satisfies everything but the budget.
    OverBudget,
    /// Not good enough.
    BelowQualityFloor,
}

impl Outcome {
    /// All four with their names on the wire.
    pub const ALL: [(&'static str, Self); 4] = [
        ("accept", Self::Accept),
        ("reject", Self::Reject),
        ("over_budget", Self::OverBudget),
        ("below_quality_floor", Self::BelowQualityFloor),
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::OverBudget => "over_budget",
            Self::BelowQualityFloor => "below_quality_floor",
        }
    }
}

/// How a candidate fared and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What became of it.
    pub outcome: Outcome,
    /// Whether it costs more than the budget.
    pub over_budget: bool,
    /// The truth of each leaf, in reading order.
    pub leaves: Vec<bool>,
    /// The numbers of the leaves that made the tree fail.
    pub failing: Vec<usize>,
    /// Its cost in the budget's currency, where it has one.
    pub cost: Option<Amount>,
    /// Why, in words.
    pub explanation: String,
    /// What it shows, in canonical form; only for a match.
    pub payload: Option<Vec<u8>>,
    /// The name of the policy decision about it, where a policy was asked (RFC 0020 §3.7).
    pub policy_decision_ref: Option<String>,
}

impl Judgement {
    /// Not in the answer, as long as nothing speaks for it.
    fn begun(leaves: Vec<bool>, cost: Option<Amount>) -> Self {
        Self {
            outcome: Outcome::Reject,
            over_budget: false,
            leaves,
            failing: Vec::new(),
            cost,
            explanation: String::new(),
            payload: None,
            policy_decision_ref: None,
        }
    }

    /// Whether it belongs into the answer.
    pub fn is_match(&self, over_budget: OverBudget) -> bool {
        match self.outcome {
            Outcome::Accept => true,
            Outcome::OverBudget => over_budget == OverBudget::Flag,
            Outcome::Reject | Outcome::BelowQualityFloor => false,
        }
    }

    /// Takes a candidate out of the answer that a policy does not let through.
    pub fn block(&mut self, explanation: String) {
        self.outcome = Outcome::Reject;
        self.over_budget = false;
        self.explanation = explanation;
        self.payload = None;
    }
}

/// How a single candidate fares, whatever the others do.
pub fn judge(
    intent: &Intent,
    candidate: &Candidate,
    over_budget: OverBudget,
    evaluator: &mut Evaluator,
) -> Result<Judgement, EvaluationError> {
    let record = candidate.record();
    let holds = evaluator.evaluate(&intent.constraints, record)?;
    let currency = intent.budget.as_ref().map(|budget| budget.ceiling.currency.as_str());
    let cost = currency.and_then(|currency| candidate.cost(intent.category, currency));
    let mut judgement = Judgement::begun(evaluator.leaves.clone(), cost);
    if !holds {
        judgement.failing = intent.constraints.failing(&judgement.leaves);
        judgement.explanation = failed_constraints(intent, &judgement);
        return Ok(judgement);
    }
    let cost = match keeps_out(intent, candidate.quality(), &mut judgement) {
        Some(cost) => cost,
        None => return Ok(judgement),
    };
    let projected = intent.projection.apply(record, &mut evaluator.meter.visits);
    evaluator.meter.within_fuel()?;
    match projected {
        Err(pointers) => {
            judgement.explanation = format!("projection_failure: {}", pointers.join(", "));
            return Ok(judgement);
        }
        Ok(projected) => {
            let mut writer = Writer::with_room(PAYLOAD_BYTES);
            projected.write(&mut writer);
            judgement.payload = Some(writer.finish());
        }
    }
    judgement.over_budget = matches!(cost, Cost::Over(_));
    judgement.outcome = if judgement.over_budget { Outcome::OverBudget } else { Outcome::Accept };
    judgement.explanation = match &cost {
        Cost::Over(reason) => reason.clone(),
        Cost::Fits(reason) => format!("accepted: every constraint holds{reason}"),
        Cost::Undefined(_) => String::new(),
    };
    if judgement.over_budget && over_budget == OverBudget::Reject {
        judgement.payload = None;
    }
    Ok(judgement)
}

/// How a candidate fares whose constraints all hold and whom quality, or having no price, keeps out; `None` where that
/// takes its record.
pub fn refuse(intent: &Intent, quality: &Signals, cost: Option<Amount>) -> Option<Judgement> {
    let mut judgement = Judgement::begun(vec![true; intent.constraints.leaves().len()], cost);
    keeps_out(intent, quality, &mut judgement).is_none().then_some(judgement)
}

/// How the cost stands to the budget, unless quality, or having no price, keeps the candidate out; then it is judged.
fn keeps_out(intent: &Intent, quality: &Signals, judgement: &mut Judgement) -> Option<Cost> {
    let cost = cost(intent, judgement);
    let unmet = intent.quality_floor.unmet(quality);
    if !unmet.is_empty() {
        judgement.outcome = Outcome::BelowQualityFloor;
        let mut reasons = vec![format!("quality: {}", unmet.join("; "))];
        reasons.extend(cost.trouble());
        judgement.explanation = reasons.join(" | ");
        return None;
    }
    if let Cost::Undefined(reason) = cost {
        judgement.explanation = reason;
        return None;
    }
    Some(cost)
}

/// How a candidate's cost stands to the budget.
enum Cost {
    Fits(String),
    Over(String),
    Undefined(String),
}

impl Cost {
    fn trouble(&self) -> Option<String> {
        match self {
            Self::Fits(_) => None,
            Self::Over(reason) | Self::Undefined(reason) => Some(reason.clone()),
        }
    }
}

fn cost(intent: &Intent, judgement: &Judgement) -> Cost {
    let Some(budget) = &intent.budget else { return Cost::Fits(String::new()) };
    let ceiling = &budget.ceiling;
    match judgement.cost {
        None => Cost::Undefined(format!("cost_undefined: no price in {} is declared", ceiling.currency)),
        Some(cost) if cost > ceiling.amount => Cost::Over(format!("over_budget: costs {cost} of {ceiling}")),
        Some(cost) => Cost::Fits(format!("; costs {cost} of {ceiling}")),
    }
}

impl Constraints {
    /// The numbers of the leaves that make the tree fail, given the truth of each; none when it holds.
    pub fn failing(&self, leaves: &[bool]) -> Vec<usize> {
        let mut failing = Vec::new();
        culprits(self.tree(), leaves, true, &mut failing);
        failing
    }
}

/// Collects the leaves by which a subtree is not what it should be.
fn culprits(tree: &Tree, leaves: &[bool], wanted: bool, found: &mut Vec<usize>) {
    if holds(tree, leaves) == wanted {
        return;
    }
    match tree {
        Tree::AllOf(parts) | Tree::AnyOf(parts) => parts.iter().for_each(|part| culprits(part, leaves, wanted, found)),
        Tree::Not(inner) => culprits(inner, leaves, !wanted, found),
        Tree::Leaf(number) => found.push(*number),
    }
}

fn holds(tree: &Tree, leaves: &[bool]) -> bool {
    crate::evaluate::holds(tree, leaves)
}

fn failed_constraints(intent: &Intent, judgement: &Judgement) -> String {
    let name = |number: &usize| {
        let leaf = intent.constraints.leaves().get(*number)?;
        let not = if leaf.negated { "not " } else { "" };
        Some(format!("{not}{} {}", leaf.path.text(), leaf.operator.name()))
    };
    let names: Vec<String> = judgement.failing.iter().filter_map(name).collect();
    format!("constraints: {}", names.join(", "))
}
