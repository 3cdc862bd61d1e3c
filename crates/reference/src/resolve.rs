//! RFC 0020 A.3 R3 to R5: candidates are filtered, projected, ranked and paid.
//!
//! A decision is data: a candidate that is turned away is a `Refused`, never an error. INVARIANT: what is returned
//! without the mark `over_budget` satisfies the intent (RFC 0020 A.4), and no explanation names a value.

#[cfg(test)]
mod tests;

use crate::allocate::{Placed, allocate};
use crate::budget::{Allocation, Budget};
use crate::candidate::Candidate;
use crate::decimal::Decimal;
use crate::evaluate::{LeafRecord, LeafTruth, judge};
use crate::intent::{Intent, read_intent};
use crate::likeness::Front;
use crate::rank::{Standing, rank_order, score};
use crate::refusal::Refusal;
use crate::value::Value;

/// What becomes of a candidate whose only fault is its cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OverBudget {
    /// It is returned with a mark, after all that fit.
    #[default]
    Flag,
    /// It is rejected.
    Reject,
}

/// The answer to an intent over some candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The candidates returned, in rank order.
    pub candidates: Vec<Chosen>,
    /// The candidates refused, in the order in which they came.
    pub rejected: Vec<Refused>,
    /// What each returned candidate that fits is paid, as an id and an amount.
    pub shares: Vec<(String, String)>,
}

/// A candidate that is returned.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The id of the candidate.
    pub id: String,
    /// Its place, from 1.
    pub rank: u64,
    /// Its score.
    pub score: f64,
    /// Whether its cost exceeds the budget.
    pub over_budget: bool,
    /// The outcome, `accept` or `over_budget`.
    pub outcome: &'static str,
    /// The part of its record that the projection shows.
    pub payload: Value,
    /// One entry for each leaf of the constraint tree.
    pub evaluations: Vec<LeafRecord>,
    /// The name, value, weight and contribution of each input of the score.
    pub inputs: Vec<(&'static str, f64, f64, f64)>,
    /// The outcome in words.
    pub explanation: String,
}

/// A candidate that is turned away.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The id of the candidate.
    pub id: String,
    /// The outcome, `reject`, `below_quality_floor` or `over_budget`.
    pub outcome: &'static str,
    /// One entry for each leaf of the constraint tree.
    pub evaluations: Vec<LeafRecord>,
    /// The failing predicate in words.
    pub explanation: String,
}

/// Resolves an intent over candidates, each a bare record or a record with what is known beside it.
pub fn resolve(intent: &Value, candidates: &[Value], over_budget: OverBudget) -> Result<Resolution, Refusal> {
    let intent = read_intent(intent)?;
    let mut matched = Vec::new();
    let mut rejected = Vec::new();
    for (position, candidate) in candidates.iter().enumerate() {
        let candidate = Candidate::read(candidate, position)?;
        match judge_candidate(&intent, candidate)? {
            Verdict::Matched(found) if found.over_budget && over_budget == OverBudget::Reject => {
                rejected.push(found.into_refused());
            }
            Verdict::Matched(found) => matched.push(*found),
            Verdict::Refused(refused) => rejected.push(refused),
        }
    }
    matched.sort_by(|left, right| rank_order(&left.standing(), &right.standing()));
    let mut front = Front::default();
    for found in &mut matched {
        found.repeats = front.enter(found.candidate.record, &found.candidate.id);
    }
    matched.sort_by_key(|found| (found.over_budget, found.repeats.is_some()));
    matched.truncate(places(&intent).unwrap_or(matched.len()));
    let shares = shares(&intent, &matched);
    let candidates = (1..).zip(matched).map(|(rank, found)| found.into_chosen(rank)).collect();
    Ok(Resolution { candidates, rejected, shares })
}

/// A candidate that passed the filter and was projected, perhaps over budget.
struct Matched<'v> {
    candidate: Candidate<'v>,
    cost: Option<Decimal>,
    over_budget: bool,
    payload: Value,
    evaluations: Vec<LeafRecord>,
    inputs: Vec<(&'static str, f64, f64, f64)>,
    score: f64,
    /// The candidate of the same owner that it repeats.
    repeats: Option<String>,
}

enum Verdict<'v> {
    Matched(Box<Matched<'v>>),
    Refused(Refused),
}

/// RFC 0020 A.3 R3 and R4: constraints, cost, quality, projection, in this order.
fn judge_candidate<'v>(intent: &Intent, candidate: Candidate<'v>) -> Result<Verdict<'v>, Refusal> {
    let cut = intent.projection.cut(candidate.record);
    let (holds, leaves) = judge(&intent.constraints, candidate.record)?;
    let evaluations: Vec<LeafRecord> = leaves.iter().map(|leaf| leaf.record(&cut)).collect();
    let refused = |outcome, explanation| {
        Ok(Verdict::Refused(Refused {
            id: candidate.id.clone(),
            outcome,
            evaluations: evaluations.clone(),
            explanation,
        }))
    };
    if !holds {
        return refused("reject", format!("constraints: {}", adverse_leaves(&leaves)));
    }
    let budget = intent.budget.as_ref();
    let cost = budget.and_then(|budget| candidate.cost(intent.category, &budget.currency));
    let cost_flaw = budget.and_then(|budget| cost_flaw(budget, cost.as_ref()));
    let unmet = candidate.quality.unmet(&intent.quality_floor);
    if !unmet.is_empty() {
        let cost_flaw = cost_flaw.map_or(String::new(), |flaw| format!("{flaw}; "));
        return refused("below_quality_floor", format!("{cost_flaw}quality_floor: {}", unmet.join(", ")));
    }
    if cost_flaw == Some(COST_UNDEFINED) {
        return refused("reject", COST_UNDEFINED.to_owned());
    }
    match cut.payload() {
        Err(missing) => refused("reject", format!("projection_failure: {}", missing.join(", "))),
        Ok(payload) => {
            let (inputs, score) = score(&candidate.quality, budget, cost.as_ref());
            let over_budget = cost_flaw.is_some();
            let matched = Matched { candidate, cost, over_budget, payload, evaluations, inputs, score, repeats: None };
            Ok(Verdict::Matched(Box::new(matched)))
        }
    }
}

const COST_UNDEFINED: &str = "cost_undefined";
const OVER_BUDGET: &str = "over_budget";

fn cost_flaw(budget: &Budget, cost: Option<&Decimal>) -> Option<&'static str> {
    match cost {
        None => Some(COST_UNDEFINED),
        Some(cost) if *cost > budget.amount => Some(OVER_BUDGET),
        Some(_) => None,
    }
}

/// The leaves that speak against the candidate, by path and operator.
fn adverse_leaves(leaves: &[LeafTruth]) -> String {
    let adverse = leaves.iter().filter(|leaf| leaf.passed == leaf.negated);
    let named: Vec<String> = adverse.map(|leaf| format!("{} {}", leaf.leaf.path.written, leaf.leaf.operator)).collect();
    named.join(", ")
}

impl Matched<'_> {
    fn standing(&self) -> Standing<'_> {
        Standing { over_budget: self.over_budget, score: self.score, cost: self.cost.as_ref(), id: &self.candidate.id }
    }

    fn into_chosen(self, rank: u64) -> Chosen {
        let outcome = if self.over_budget { OVER_BUDGET } else { "accept" };
        let repetition = self.repeats.map(|_| ("repetition", 1.0, 0.0, 0.0));
        Chosen {
            id: self.candidate.id,
            rank,
            score: self.score,
            over_budget: self.over_budget,
            outcome,
            payload: self.payload,
            evaluations: self.evaluations,
            inputs: self.inputs.into_iter().chain(repetition).collect(),
            explanation: outcome.to_owned(),
        }
    }

    fn into_refused(self) -> Refused {
        Refused {
            id: self.candidate.id,
            outcome: OVER_BUDGET,
            evaluations: self.evaluations,
            explanation: OVER_BUDGET.to_owned(),
        }
    }
}

/// How many candidates may be returned at most, if that is bounded.
fn places(intent: &Intent) -> Option<usize> {
    let single_best = if intent.resolution_policy == "single_best" { Some(1) } else { None };
    let top_k = match intent.budget.as_ref().map(|budget| &budget.allocation) {
        Some(Allocation::RankedTopK(distribution)) => Some(distribution.len()),
        Some(Allocation::SingleWinner | Allocation::ProportionalQuality) | None => None,
    };
    single_best.into_iter().chain(top_k).min()
}

fn shares(intent: &Intent, matched: &[Matched]) -> Vec<(String, String)> {
    let Some(budget) = &intent.budget else { return Vec::new() };
    let fitting = matched.iter().filter(|found| !found.over_budget);
    let placed: Vec<Placed> = fitting
        .map(|found| Placed { id: &found.candidate.id, performance_score: found.candidate.quality.performance_score })
        .collect();
    allocate(budget, intent.quality_floor.performance_score, &placed)
}
