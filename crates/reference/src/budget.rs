//! RFC 0020 §3.4: the budget block, read from an intent.
//!
//! INVARIANT: with `ranked_top_k` the distribution has exactly `top_k` places and sums to one, in exact decimals.

use crate::decimal::Decimal;
use crate::fields::{Field, Fields};
use crate::refusal::{Refusal, member_place};

/// The most places among which a budget is split.
const TOP_K_MAX: usize = 1_000;

/// The cost ceiling of an intent and how it is spent.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) amount: Decimal,
    pub(crate) currency: String,
    pub(crate) allocation: Allocation,
}

/// The allocation policy.
#[derive(Debug, Clone)]
pub(crate) enum Allocation {
    SingleWinner,
    /// One part of the whole for each place.
    RankedTopK(Vec<Decimal>),
    ProportionalQuality,
}

impl Budget {
    /// Reads a budget block.
    pub(crate) fn read(block: &Field) -> Result<Budget, Refusal> {
        let fields = block.closed(&["amount", "currency", "allocation", "top_k", "distribution"])?;
        let amount = fields.required("amount")?.amount()?;
        let currency = fields.required("currency")?.currency()?.to_owned();
        let policy = fields.required("allocation")?;
        let policy = policy.one_of(&["single_winner", "ranked_top_k", "proportional_quality"])?;
        let top_k = fields.optional("top_k").map(|field| read_top_k(&field)).transpose()?;
        let distribution = read_distribution(&fields)?;
        let allocation = match policy {
            "ranked_top_k" => Allocation::RankedTopK(read_places(block, top_k, distribution)?),
            "proportional_quality" => Allocation::ProportionalQuality,
            _ => Allocation::SingleWinner,
        };
        Ok(Budget { amount, currency, allocation })
    }
}

fn read_top_k(field: &Field) -> Result<usize, Refusal> {
    let number = field.integer(1.0)?;
    (1..=TOP_K_MAX).find(|count| *count as f64 == number).ok_or_else(|| field.refusal("invalid_value"))
}

fn read_distribution(fields: &Fields) -> Result<Option<Vec<Decimal>>, Refusal> {
    let Some(list) = fields.optional("distribution") else { return Ok(None) };
    let read = |field: &Field| Decimal::of_number(field.fraction()?).ok_or_else(|| field.refusal("invalid_value"));
    Ok(Some(list.elements()?.iter().map(read).collect::<Result<Vec<Decimal>, Refusal>>()?))
}

fn read_places(
    block: &Field,
    top_k: Option<usize>,
    distribution: Option<Vec<Decimal>>,
) -> Result<Vec<Decimal>, Refusal> {
    let refusal = |code, name| Refusal { code, at: member_place(&block.at, name) };
    let top_k = top_k.ok_or_else(|| refusal("allocation_incomplete", "top_k"))?;
    let places = distribution.ok_or_else(|| refusal("allocation_incomplete", "distribution"))?;
    let sum = places.iter().fold(Decimal::zero(), |sum, part| &sum + part);
    if places.len() == top_k && sum == Decimal::whole(1) {
        Ok(places)
    } else {
        Err(refusal("distribution_invalid", "distribution"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check(block: &str, refused: Option<(&str, &str)>) {
        let block = value(block);
        let refusal = Budget::read(&Field::new(&block, "/budget")).err();
        let refusal = refusal.as_ref().map(|refusal| (refusal.code, refusal.at.as_str()));
        assert_eq!(refusal, refused);
    }

    fn budget(rest: &str) -> String {
        format!(r#"{{"amount":"10.00","currency":"EUR"{rest}}}"#)
    }

    #[test]
    fn amount_and_currency_are_checked() {
        let budget = |amount: &str, currency: &str| {
            format!(r#"{{"amount":{amount},"currency":{currency},"allocation":"single_winner"}}"#)
        };
        check(&budget(r#""0""#, r#""EUR""#), None);
        check(&budget(r#""999999999999999999.999999999999999999""#, r#""USDCX""#), None);
        for amount in ["-1", "1e2", "", "1.", ".5", "1,0", "1000000000000000000", "0.0000000000000000001", "+1"] {
            check(&budget(&format!("\"{amount}\""), r#""EUR""#), Some(("invalid_decimal", "/budget/amount")));
        }
        check(&budget("10", r#""EUR""#), Some(("wrong_type", "/budget/amount")));
        check(&budget(r#""1""#, r#""eur""#), Some(("invalid_value", "/budget/currency")));
        check(&budget(r#""1""#, "1"), Some(("wrong_type", "/budget/currency")));
    }

    #[test]
    fn members_are_required_and_known() {
        check("[]", Some(("wrong_type", "/budget")));
        check(r#"{"currency":"EUR","allocation":"single_winner"}"#, Some(("missing_field", "/budget/amount")));
        check(r#"{"amount":"1","allocation":"single_winner"}"#, Some(("missing_field", "/budget/currency")));
        check(&budget(""), Some(("missing_field", "/budget/allocation")));
        check(&budget(r#","allocation":"best""#), Some(("invalid_value", "/budget/allocation")));
        check(&budget(r#","allocation":"single_winner","x":1"#), Some(("unknown_field", "/budget/x")));
        check(&budget(r#","allocation":"proportional_quality""#), None);
    }

    #[test]
    fn places_are_counted_and_sum_to_one_exactly() {
        let ranked = |top_k: &str, distribution: &str| {
            budget(&format!(r#","allocation":"ranked_top_k","top_k":{top_k},"distribution":{distribution}"#))
        };
        let invalid = Some(("distribution_invalid", "/budget/distribution"));
        check(&ranked("3", "[0.7,0.2,0.1]"), None);
        check(&ranked("2.0", "[1,0]"), None);
        check(&ranked("10", "[0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1]"), None);
        check(&ranked("2", "[0.5,0.4999999999999999]"), invalid);
        check(&ranked("2", "[0.5,0.6]"), invalid);
        check(&ranked("3", "[0.5,0.5]"), invalid);
        check(&ranked("1", "[]"), invalid);
        check(&ranked("1", "[2]"), Some(("invalid_value", "/budget/distribution/0")));
        check(&ranked("1", r#"["1"]"#), Some(("wrong_type", "/budget/distribution/0")));
        check(&ranked("1", "1"), Some(("wrong_type", "/budget/distribution")));
        for top_k in ["0", "1001", "1.5", "-1"] {
            check(&ranked(top_k, "[1]"), Some(("invalid_value", "/budget/top_k")));
        }
        check(&ranked(r#""1""#, "[1]"), Some(("wrong_type", "/budget/top_k")));
    }

    #[test]
    fn ranked_top_k_needs_both_of_its_members() {
        let ranked = |rest: &str| budget(&format!(r#","allocation":"ranked_top_k"{rest}"#));
        check(&ranked(""), Some(("allocation_incomplete", "/budget/top_k")));
        check(&ranked(r#","distribution":[1]"#), Some(("allocation_incomplete", "/budget/top_k")));
        check(&ranked(r#","top_k":1"#), Some(("allocation_incomplete", "/budget/distribution")));
    }
}
