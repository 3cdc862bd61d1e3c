//! RFC 0020 §3.4: how the budget is split over the candidates returned.
//!
//! INVARIANT: no share is rounded up, and all shares together never exceed the amount. What rounding down leaves
//! over goes to the first, unless a place of `ranked_top_k` stands empty.

use num_bigint::BigInt;

use crate::budget::{Allocation, Budget};
use crate::decimal::{Decimal, print};

/// The least number of digits after the point of a share.
const SCALE_MIN: u32 = 2;

/// A candidate that fits the budget, in its place.
pub(crate) struct Placed<'a> {
    pub(crate) id: &'a str,
    pub(crate) performance_score: Option<f64>,
}

/// The share of each candidate, as an id and an amount.
pub(crate) fn allocate(budget: &Budget, score_floor: Option<f64>, placed: &[Placed]) -> Vec<(String, String)> {
    let scale = budget.amount.scale().max(SCALE_MIN);
    let amount = budget.amount.units_at(scale);
    let shares = match &budget.allocation {
        Allocation::SingleWinner => vec![amount],
        Allocation::RankedTopK(distribution) => {
            let parts: Vec<Decimal> = distribution.iter().take(placed.len()).cloned().collect();
            let shares = weighted(&amount, &parts, &Decimal::whole(1));
            if placed.len() >= distribution.len() { with_remainder(&amount, shares) } else { shares }
        }
        Allocation::ProportionalQuality => {
            let weights = quality_weights(score_floor, placed);
            let total = weights.iter().fold(Decimal::zero(), |sum, weight| &sum + weight);
            with_remainder(&amount, weighted(&amount, &weights, &total))
        }
    };
    placed.iter().zip(shares).map(|(placed, share)| (placed.id.to_owned(), print(&share, scale))).collect()
}

/// How far each score lies above the floor; if none does, all weigh the same.
fn quality_weights(score_floor: Option<f64>, placed: &[Placed]) -> Vec<Decimal> {
    let decimal = |number: Option<f64>| number.and_then(Decimal::of_number).unwrap_or_else(Decimal::zero);
    let floor = decimal(score_floor);
    let above = |placed: &Placed| (&decimal(placed.performance_score) - &floor).max(Decimal::zero());
    let weights: Vec<Decimal> = placed.iter().map(above).collect();
    if weights.iter().all(|weight| *weight == Decimal::zero()) {
        placed.iter().map(|_| Decimal::whole(1)).collect()
    } else {
        weights
    }
}

fn weighted(amount: &BigInt, weights: &[Decimal], total: &Decimal) -> Vec<BigInt> {
    weights.iter().map(|weight| weight.share_of(amount, total)).collect()
}

fn with_remainder(amount: &BigInt, mut shares: Vec<BigInt>) -> Vec<BigInt> {
    let spent: BigInt = shares.iter().sum();
    if let Some(first) = shares.first_mut() {
        *first += amount - spent;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Field;
    use crate::parse::value;

    #[track_caller]
    fn check(budget: &str, floor: Option<f64>, scores: &[Option<f64>], shares: &[&str]) {
        let block = value(budget);
        let budget = Budget::read(&Field::new(&block, "")).unwrap();
        let placed: Vec<Placed> = scores.iter().map(|score| Placed { id: "x", performance_score: *score }).collect();
        let found: Vec<String> = allocate(&budget, floor, &placed).into_iter().map(|(_, amount)| amount).collect();
        assert_eq!(found, shares);
    }

    #[test]
    fn a_single_winner_takes_all() {
        let budget = |amount: &str| format!(r#"{{"amount":"{amount}","currency":"EUR","allocation":"single_winner"}}"#);
        check(&budget("100"), None, &[None, None], &["100.00"]);
        check(&budget("0.5"), None, &[None], &["0.50"]);
        check(&budget("1.2345"), None, &[None], &["1.2345"]);
        check(&budget("007"), None, &[None], &["7.00"]);
        check(&budget("1"), None, &[], &[]);
    }

    #[test]
    fn places_are_paid_by_the_distribution() {
        let budget = |amount: &str, distribution: &str| {
            let top_k = distribution.split(',').count();
            format!(
                r#"{{"amount":"{amount}","currency":"EUR","allocation":"ranked_top_k","top_k":{top_k},"distribution":[{distribution}]}}"#
            )
        };
        check(&budget("10", "0.5,0.3,0.2"), None, &[None; 3], &["5.00", "3.00", "2.00"]);
        check(&budget("10", "0.5,0.3,0.2"), None, &[None; 2], &["5.00", "3.00"]);
        check(&budget("10", "0.5,0.3,0.2"), None, &[], &[]);
        check(&budget("0.01", "0.5,0.5"), None, &[None; 2], &["0.01", "0.00"]);
        check(&budget("0.01", "0.5,0.5"), None, &[None; 1], &["0.00"]);
        check(&budget("10.00", "0.333,0.333,0.334"), None, &[None; 3], &["3.33", "3.33", "3.34"]);
        check(&budget("1.00", "0.333,0.333,0.334"), None, &[None; 3], &["0.34", "0.33", "0.33"]);
        check(&budget("0.001", "0.5,0.5"), None, &[None; 2], &["0.001", "0.000"]);
    }

    #[test]
    fn quality_above_the_floor_is_paid() {
        let budget =
            |amount: &str| format!(r#"{{"amount":"{amount}","currency":"EUR","allocation":"proportional_quality"}}"#);
        check(&budget("100"), None, &[Some(0.9), Some(0.1)], &["90.00", "10.00"]);
        check(&budget("100"), Some(0.5), &[Some(0.9), Some(0.6)], &["80.00", "20.00"]);
        check(&budget("100"), Some(0.5), &[Some(0.9), Some(0.5), None], &["100.00", "0.00", "0.00"]);
        check(&budget("10"), None, &[None, Some(0.0), None], &["3.34", "3.33", "3.33"]);
        check(&budget("10"), Some(0.9), &[Some(0.9), Some(0.9)], &["5.00", "5.00"]);
        check(&budget("1"), None, &[Some(0.2), Some(0.1)], &["0.67", "0.33"]);
        check(&budget("0"), None, &[Some(1.0)], &["0.00"]);
        check(&budget("1"), None, &[], &[]);
    }
}
