//! RFC 0020 A.3 R5, A.6: a documented, versioned, deterministic order.
//!
//! The score is a weighted sum of five inputs between 0 and 1; whatever is not known counts 0. Every input, weight
//! and contribution stands in the decision record. Ties go to the cheaper candidate, then to the lower id; what only
//! repeats another candidate of its owner comes after the others (decisions/0255). A change here is a new version of
//! the function (`docs/decisions`).

use super::Match;
use crate::budget::Amount;
use crate::intent::Intent;
use crate::quality::Signals;
use std::cmp::Ordering;

/// The name under which the ranking function is published.
pub const RANKING_ID: &str = "rialto.rank";
/// Its version.
pub const RANKING_VERSION: &str = "1.1";

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

/// What a candidate has beside its inputs that repeats another one; it counts nothing.
pub(crate) const REPETITION: &str = "repetition";

/// A score and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The sum of the contributions.
    pub score: f64,
    /// What each input brings.
    pub contributions: [Contribution; 5],
    /// The candidate of the same owner that this one repeats, behind all that repeat nobody.
    pub repeats: Option<String>,
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
    let mut values = quality(signals).into_iter().chain([Scoring::of(intent).price(cost)]);
    let contributions = INPUTS.map(|(name, weight)| contribution(name, values.next().unwrap_or(0.0), weight));
    Ranking { score: sum(contributions.iter().map(|input| input.contribution)), contributions, repeats: None }
}

/// The score alone; many candidates are only put into order.
#[derive(Clone, Copy, Debug)]
pub struct Scoring {
    /// What may be spent, exactly and nearly.
    ceiling: Option<(Amount, f64)>,
}

impl Scoring {
    /// What the scores of all candidates of an intent have in common.
    pub fn of(intent: &Intent) -> Self {
        Self::within(intent.budget.as_ref().map(|budget| budget.ceiling.amount))
    }

    /// What all have in common who ask for no more than this, or for whatever it costs.
    pub fn within(ceiling: Option<Amount>) -> Self {
        Self { ceiling: ceiling.map(|ceiling| (ceiling, ceiling.approximate())) }
    }

    /// The score of a candidate with these signals and this cost.
    pub fn score(&self, signals: &Signals, cost: Option<Amount>) -> f64 {
        let [performance, reputation, conformance, latency] = quality(signals);
        let values = [performance, reputation, conformance, latency, self.price(cost)];
        let inputs = values.into_iter().zip(INPUTS);
        // Contributions are whole millionths, and what a sum of five of them is wrong by is far below half of one.
        let millionths = inputs.map(|(value, (_, weight))| match value == 0.0 {
            true => 0.0,
            false => nearest(round(value) * weight * 1e6),
        });
        millionths.sum::<f64>() / 1e6
    }

    /// The part of the budget that a candidate leaves.
    fn price(&self, cost: Option<Amount>) -> f64 {
        let (Some((ceiling, nearly)), Some(cost)) = (self.ceiling, cost) else { return 0.0 };
        if ceiling == Amount::ZERO {
            return if cost == Amount::ZERO { 1.0 } else { 0.0 };
        }
        1.0 - (cost.approximate() / nearly).min(1.0)
    }
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

/// Six decimals: two machines print the same score.
pub(crate) fn round(value: f64) -> f64 {
    nearest(value * 1e6) / 1e6
}

/// The nearest whole number. Where it fits an integer it is there at once; halves go up, as `f64::round` has it there.
fn nearest(value: f64) -> f64 {
    if (0.0..1e15).contains(&value) {
        let whole = value as i64;
        return (whole + i64::from(value - whole as f64 >= 0.5)) as f64;
    }
    value.round()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_what_the_language_has() {
        let mut values = vec![0.0, 1.0, 0.5, 0.000_000_5, 0.000_001_5, 0.999_999_5, 1e9, 1e10, 1e300, -0.25, -1.5e-6];
        // Numbers without a pattern, and their neighbours.
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let half = ((value * 1e6).floor() + 0.5) / 1e6;
            values.extend([value, half, f64::from_bits(half.to_bits() - 1), f64::from_bits(half.to_bits() + 1)]);
        }
        for value in values {
            assert_eq!(round(value).to_bits(), ((value * 1e6).round() / 1e6).to_bits(), "{value:e}");
        }
    }

    #[test]
    fn the_score_alone_is_the_score_of_the_ranking() {
        let intent = json::json!({"intent_id": "urn:oap:intent:1", "issuer_did": "did:web:a.example",
            "category": "discovery", "constraints": {"path": "/a", "operator": "eq", "value": 1},
            "projection": {"include": ["/a"]}, "resolution_policy": "ranked_set",
            "budget": {"amount": "3.70", "currency": "EUR", "allocation": "single_winner"},
            "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}});
        let document = json::Document::of(&intent).unwrap();
        let intent = Intent::read(document.root(), &crate::Limits::STANDARD).unwrap();
        let shares = [None, Some(0.0), Some(0.123_456_7), Some(1.0)];
        for performance_score in shares {
            for provider_reputation in shares {
                for latency_p99_ms in [None, Some(0.0), Some(317.0), Some(9_999.999), Some(20_000.0)] {
                    for cost in [None, Some("0"), Some("0.37"), Some("3.70"), Some("0.000000000000000001"), Some("99")]
                    {
                        let cost = cost.and_then(Amount::parse);
                        let conformance_level = crate::quality::Level::parse("L3").filter(|_| cost.is_some());
                        let signals = Signals {
                            performance_score,
                            provider_reputation,
                            latency_p99_ms,
                            conformance_level,
                            cooling_off_minutes: None,
                        };
                        let ranking = rank(&intent, &signals, cost);
                        assert_eq!(
                            Scoring::of(&intent).score(&signals, cost).to_bits(),
                            ranking.score.to_bits(),
                            "{signals:?}"
                        );
                    }
                }
            }
        }
    }
}
