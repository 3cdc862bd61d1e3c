//! RFC 0020 A.3 R5, A.6: a documented, versioned, deterministic order.
//!
//! The score is a weighted sum of five inputs between 0 and 1; whatever is not known counts 0. Every input, weight
//! and contribution stands in the decision record. Ties go to the cheaper candidate, then to the lower id. A change
//! here is a new version of the function (`docs/decisions`).

use super::Match;
use crate::budget::Amount;
use crate::intent::Intent;
use crate::quality::Signals;
use std::cmp::Ordering;

/// The name under which the ranking function is published.
pub const RANKING_ID: &str = "rialto.rank";
/// Its version.
pub const RANKING_VERSION: &str = "1.0";

/// Milliseconds from which on latency earns nothing.
const LATENCY_WORST_MS: f64 = 10_000.0;

/// The inputs of the score and how much each of them counts, in the order in which they are added.
pub(crate) const INPUTS: [(&str, f64); 5] = [
    ("performance_score", 0.35),
    ("provider_reputation", 0.25),
    ("conformance", 0.15),
    ("latency", 0.1),
    ("price", 0.15),
];

/// A score and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The sum of the contributions.
    pub score: f64,
    /// What each input brings.
    pub contributions: [Contribution; 5],
}

/// One input of the score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// What it is called.
    pub name: &'static str,
    /// From 0 to 1.
    pub value: f64,
    /// How much it counts.
    pub weight: f64,
    /// Value times weight.
    pub contribution: f64,
}

/// The score of a candidate with these signals and this cost.
pub fn rank(intent: &Intent, signals: &Signals, cost: Option<Amount>) -> Ranking {
    let mut values = quality(signals).into_iter().chain([price(intent, cost)]);
    let contributions = INPUTS.map(|(name, weight)| contribution(name, values.next().unwrap_or(0.0), weight));
    Ranking { score: sum(contributions.iter().map(|input| input.contribution)), contributions }
}

/// What signals bring, in the order of the first four inputs.
pub(crate) fn quality(signals: &Signals) -> [f64; 4] {
    let latency = |latency: f64| 1.0 - latency.min(LATENCY_WORST_MS) / LATENCY_WORST_MS;
    [
        signals.performance_score.unwrap_or(0.0),
        signals.provider_reputation.unwrap_or(0.0),
        signals.conformance_level.as_ref().map_or(0.0, |level| level.part()),
        signals.latency_p99_ms.map_or(0.0, latency),
    ]
}

/// The score that contributions add up to.
pub(crate) fn sum(contributions: impl Iterator<Item = f64>) -> f64 {
    round(contributions.sum())
}

fn contribution(name: &'static str, value: f64, weight: f64) -> Contribution {
    let value = round(value);
    Contribution { name, value, weight, contribution: round(value * weight) }
}

/// The part of the budget that a candidate leaves.
fn price(intent: &Intent, cost: Option<Amount>) -> f64 {
    let (Some(budget), Some(cost)) = (&intent.budget, cost) else { return 0.0 };
    let ceiling = budget.ceiling.amount;
    if ceiling == Amount::ZERO {
        return if cost == Amount::ZERO { 1.0 } else { 0.0 };
    }
    1.0 - (cost.approximate() / ceiling.approximate()).min(1.0)
}

/// Six decimals: two machines print the same score.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// What fits comes first; then the higher score, the lower cost, the lower id.
pub(super) fn order(left: &Match<'_>, right: &Match<'_>) -> Ordering {
    let cost = |found: &Match<'_>| found.judgement.cost.map_or(u128::MAX, Amount::units);
    left.judgement
        .over_budget
        .cmp(&right.judgement.over_budget)
        .then_with(|| right.ranking.score.total_cmp(&left.ranking.score))
        .then_with(|| cost(left).cmp(&cost(right)))
        .then_with(|| left.candidate.id.cmp(&right.candidate.id))
}
