//! RFC 0020 A.3 R5: the ranking function `rialto.rank`, version 1.1.
//!
//! INVARIANT: the order is total and depends on nothing but the intent and the candidates (RFC 0020 A.6): those
//! that fit the budget first, then by score, then by cost, then by id.

use std::cmp::Ordering;

use crate::budget::Budget;
use crate::decimal::Decimal;
use crate::quality::Quality;

/// The latency from which on a candidate gains nothing.
const LATENCY_MS_MAX: f64 = 10_000.0;

/// The conformance digit from which on a candidate gains no more.
const LEVEL_DIGIT_MAX: f64 = 5.0;

/// An input of the score: its name, its value from 0 to 1, its weight and what it contributes.
pub(crate) type Input = (&'static str, f64, f64, f64);

/// What a candidate is ranked by.
pub(crate) struct Standing<'a> {
    pub(crate) over_budget: bool,
    pub(crate) score: f64,
    pub(crate) cost: Option<&'a Decimal>,
    pub(crate) id: &'a str,
}

/// Whether a standing comes before another.
pub(crate) fn rank_order(left: &Standing, right: &Standing) -> Ordering {
    left.over_budget
        .cmp(&right.over_budget)
        .then_with(|| right.score.total_cmp(&left.score))
        .then_with(|| match (left.cost, right.cost) {
            (Some(left), Some(right)) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        })
        .then_with(|| left.id.as_bytes().cmp(right.id.as_bytes()))
}

/// The inputs of a candidate's score, and the score.
pub(crate) fn score(quality: &Quality, budget: Option<&Budget>, cost: Option<&Decimal>) -> (Vec<Input>, f64) {
    let conformance = quality.conformance_level.as_ref().map(|level| f64::from(level.digit) / LEVEL_DIGIT_MAX);
    let latency = quality.latency_p99_ms.map(|latency| 1.0 - latency.min(LATENCY_MS_MAX) / LATENCY_MS_MAX);
    let values = [
        ("performance_score", quality.performance_score, 0.35),
        ("provider_reputation", quality.provider_reputation, 0.25),
        ("conformance", conformance.map(|part| part.min(1.0)), 0.15),
        ("latency", latency, 0.1),
        ("price", budget.zip(cost).map(|(budget, cost)| price(budget, cost)), 0.15),
    ];
    let mut inputs = Vec::new();
    let mut sum = 0.0;
    for (name, value, weight) in values {
        let value = round6(value.unwrap_or(0.0));
        let contribution = round6(value * weight);
        sum += contribution;
        inputs.push((name, value, weight, contribution));
    }
    (inputs, round6(sum))
}

/// How much of the budget is left over, as a part of it.
fn price(budget: &Budget, cost: &Decimal) -> f64 {
    let (amount, cost) = (budget.amount.to_f64(), cost.to_f64());
    if amount == 0.0 { if cost == 0.0 { 1.0 } else { 0.0 } } else { 1.0 - (cost / amount).min(1.0) }
}

/// Six decimals, halves away from zero.
fn round6(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Field;
    use crate::parse::value;

    fn quality(signals: &str) -> Quality {
        Quality::of_candidate(Some(&value(signals)), &value("{}"))
    }

    fn budget(amount: &str) -> Budget {
        let block = value(&format!(r#"{{"amount":"{amount}","currency":"EUR","allocation":"single_winner"}}"#));
        Budget::read(&Field::new(&block, "")).unwrap()
    }

    #[track_caller]
    fn check(signals: &str, spent: Option<(&str, &str)>, values: [f64; 5], expected: f64) {
        let budget = spent.map(|(amount, _)| budget(amount));
        let cost = spent.map(|(_, cost)| Decimal::parse(cost).unwrap());
        let (inputs, score) = score(&quality(signals), budget.as_ref(), cost.as_ref());
        let found: Vec<f64> = inputs.iter().map(|(_, value, _, _)| *value).collect();
        assert_eq!((found.as_slice(), score), (values.as_slice(), expected), "{signals}");
    }

    #[test]
    fn missing_inputs_are_zero() {
        check("{}", None, [0.0; 5], 0.0);
        check(r#"{"performance_score":1}"#, None, [1.0, 0.0, 0.0, 0.0, 0.0], 0.35);
        check(r#"{"cooling_off_minutes":99}"#, None, [0.0; 5], 0.0);
    }

    #[test]
    fn every_input_has_its_scale() {
        let best = r#"{"performance_score":1,"provider_reputation":1,"conformance_level":"L5","latency_p99_ms":0}"#;
        check(best, Some(("10", "0")), [1.0; 5], 1.0);
        check(r#"{"conformance_level":"Q9-NC"}"#, None, [0.0, 0.0, 1.0, 0.0, 0.0], 0.15);
        check(r#"{"conformance_level":"L3"}"#, None, [0.0, 0.0, 0.6, 0.0, 0.0], 0.09);
        check(r#"{"latency_p99_ms":2500}"#, None, [0.0, 0.0, 0.0, 0.75, 0.0], 0.075);
        check(r#"{"latency_p99_ms":20000}"#, None, [0.0; 5], 0.0);
        check("{}", Some(("10", "2.50")), [0.0, 0.0, 0.0, 0.0, 0.75], 0.1125);
        check("{}", Some(("10", "11")), [0.0; 5], 0.0);
        check("{}", Some(("0", "0")), [0.0, 0.0, 0.0, 0.0, 1.0], 0.15);
        check("{}", Some(("0.00", "0.01")), [0.0; 5], 0.0);
    }

    #[test]
    fn values_and_contributions_are_rounded() {
        check(r#"{"performance_score":0.1234567}"#, None, [0.123457, 0.0, 0.0, 0.0, 0.0], 0.04321);
        check("{}", Some(("3", "1")), [0.0, 0.0, 0.0, 0.0, 0.666667], 0.1);
    }

    #[test]
    fn inputs_are_named_in_order() {
        let (inputs, _) = score(&quality("{}"), None, None);
        let named: Vec<(&str, f64)> = inputs.iter().map(|(name, _, weight, _)| (*name, *weight)).collect();
        let expected = [
            ("performance_score", 0.35),
            ("provider_reputation", 0.25),
            ("conformance", 0.15),
            ("latency", 0.1),
            ("price", 0.15),
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn the_order_is_budget_score_cost_id() {
        let (one, two) = (Decimal::whole(1), Decimal::whole(2));
        let standing = |over_budget, score, cost, id| Standing { over_budget, score, cost, id };
        for (first, second) in [
            (standing(false, 0.1, None, "b"), standing(true, 0.9, None, "a")),
            (standing(false, 0.9, Some(&two), "b"), standing(false, 0.1, Some(&one), "a")),
            (standing(false, 0.5, Some(&one), "b"), standing(false, 0.5, Some(&two), "a")),
            (standing(false, 0.5, Some(&two), "b"), standing(false, 0.5, None, "a")),
            (standing(false, 0.5, None, "B"), standing(false, 0.5, None, "a")),
            (standing(false, 0.5, None, "\u{fb33}"), standing(false, 0.5, None, "\u{1f600}")),
        ] {
            assert_eq!(rank_order(&first, &second), Ordering::Less, "{} before {}", first.id, second.id);
            assert_eq!(rank_order(&second, &first), Ordering::Greater);
        }
    }
}
