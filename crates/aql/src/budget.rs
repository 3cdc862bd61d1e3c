//! RFC 0020 §3.4: the cost ceiling and how it is distributed.
//!
//! Money is counted in units of 10^-18, exactly; nothing is rounded before a share is paid out.

use crate::decimal::spell;
use crate::limits::Limits;
use crate::read::{Place, Values, currency};
use crate::refusal::{Code, Refusal};
use json::Node;
use num_bigint::BigUint;
use std::fmt;

/// Digits before and after the point that an amount may have.
pub const AMOUNT_DIGITS_MAX: usize = 18;

/// A millionth, in units.
const MILLIONTH: u128 = 1_000_000_000_000;
/// One, in units.
const UNIT: u128 = 1_000_000_000_000_000_000;

/// An amount of money, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    /// In units of 10^-18.
    units: u128,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self { units: 0 };

    /// Reads `[0-9]+(\.[0-9]+)?` with at most eighteen digits on each side.
    pub fn parse(text: &str) -> Option<Self> {
        let (integer, fraction) = match text.split_once('.') {
            Some((integer, fraction)) => (integer, Some(fraction)),
            None => (text, None),
        };
        let units = u128::from(digits(integer)?) * UNIT;
        let Some(fraction) = fraction else { return Some(Self { units }) };
        let missing = AMOUNT_DIGITS_MAX.checked_sub(fraction.len())?;
        let fraction = digits(fraction)?.checked_mul(10_u64.checked_pow(missing as u32)?)?;
        Some(Self { units: units + u128::from(fraction) })
    }

    /// The amount in units of 10^-18.
    pub fn units(self) -> u128 {
        self.units
    }

    /// An amount of so many units of 10^-18.
    pub fn from_units(units: u128) -> Self {
        Self { units }
    }

    /// The nearest double, for scores only.
    pub(crate) fn approximate(self) -> f64 {
        // Most amounts are so small that a processor divides them by itself.
        if let Ok(units) = u64::try_from(self.units)
            && units.is_multiple_of(MILLIONTH as u64)
        {
            return (units / MILLIONTH as u64) as f64 / 1e6;
        }
        // With at most six decimals and 53 bits both sides of the division are exact, so it rounds once.
        let millionths = self.units / MILLIONTH;
        if millionths < 1 << 53 && self.units.is_multiple_of(MILLIONTH) {
            return millionths as f64 / 1e6;
        }
        self.to_string().parse().unwrap_or_default()
    }

    /// The amount with a fixed number of fraction digits; what is beyond them is cut.
    pub fn with_scale(self, scale: usize) -> String {
        let digits = format!("{:0>width$}", self.units, width = AMOUNT_DIGITS_MAX + 1);
        let (integer, fraction) = digits.split_at(digits.len() - AMOUNT_DIGITS_MAX);
        match fraction.get(..scale) {
            Some("") | None => integer.to_owned(),
            Some(fraction) => format!("{integer}.{fraction}"),
        }
    }
}

/// Prints the shortest decimal of the same value.
impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (integer, mut fraction, mut width) = (self.units / UNIT, (self.units % UNIT) as u64, AMOUNT_DIGITS_MAX);
        match u64::try_from(integer) {
            Ok(integer) => write!(out, "{integer}")?,
            Err(_) => write!(out, "{integer}")?,
        }
        if fraction == 0 {
            return Ok(());
        }
        while fraction.is_multiple_of(10) {
            (fraction, width) = (fraction / 10, width - 1);
        }
        write!(out, ".{fraction:0width$}")
    }
}

/// One to eighteen digits and nothing else.
fn digits(text: &str) -> Option<u64> {
    let sound = (1..=AMOUNT_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| text.parse().ok())?
}

/// An amount in a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    /// How much.
    pub amount: Amount,
    /// Of what.
    pub currency: String,
}

impl Money {
    pub(crate) fn read(place: &Place<'_>) -> Result<Self, Refusal> {
        place.closed(&["amount", "currency"])?;
        Ok(Self { amount: amount(&place.required("amount")?)?, currency: currency(&place.required("currency")?)? })
    }
}

impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.amount, self.currency)
    }
}

pub(crate) fn amount(place: &Place<'_>) -> Result<Amount, Refusal> {
    let text = place.string()?;
    let detail = "an amount is a plain decimal string with at most 18 digits on each side of the point";
    Amount::parse(text).map_or_else(|| place.refuse(Code::InvalidDecimal, detail), Ok)
}

/// How much the issuer pays at most, and to whom.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The ceiling.
    pub ceiling: Money,
    /// Fraction digits of the amount as written; shares have at least as many.
    scale: usize,
    /// How it is distributed.
    pub allocation: Allocation,
}

/// The allocation policies of the text.
#[derive(Clone, Debug)]
pub enum Allocation {
    /// All of it to the best candidate.
    SingleWinner,
    /// Split over the first places by a declared distribution.
    RankedTopK {
        /// One fraction for each place, as exact decimals that sum to one.
        distribution: Vec<Fraction>,
    },
    /// In proportion to quality above the floor.
    ProportionalQuality,
}

/// A number from 0 to 1, as the exact decimal that it is written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: BigUint,
    /// The denominator is ten to this power.
    places: u32,
}

impl Fraction {
    pub(crate) fn of(number: f64) -> Self {
        let text = spell(number.max(0.0));
        let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let numerator = format!("{integer}{fraction}").parse().unwrap_or_default();
        Self { numerator, places: fraction.len() as u32 }
    }

    /// The numerator over ten to the power of `places`.
    fn scaled(&self, places: u32) -> BigUint {
        &self.numerator * BigUint::from(10u8).pow(places - self.places)
    }

    /// The difference to a smaller fraction, zero when it is not smaller.
    fn above(&self, floor: &Self) -> Self {
        let places = self.places.max(floor.places);
        let (this, floor) = (self.scaled(places), floor.scaled(places));
        let numerator = if this > floor { this - floor } else { BigUint::ZERO };
        Self { numerator, places }
    }
}

/// The numerators of fractions over one common denominator, and that denominator's power of ten.
fn align(fractions: &[Fraction]) -> (Vec<BigUint>, u32) {
    let places = fractions.iter().map(|fraction| fraction.places).max().unwrap_or(0);
    (fractions.iter().map(|fraction| fraction.scaled(places)).collect(), places)
}

impl Budget {
    pub(crate) fn read(place: &Place<'_>, limits: &Limits) -> Result<Self, Refusal> {
        place.closed(&["amount", "currency", "allocation", "top_k", "distribution"])?;
        let amount_place = place.required("amount")?;
        let amount = amount(&amount_place)?;
        let scale = amount_place.string()?.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let currency = currency(&place.required("currency")?)?;
        let top_k = place.member("top_k").map(|top_k| top_k_of(&top_k, limits)).transpose()?;
        let distribution = place.member("distribution").map(|given| fractions(&given)).transpose()?;
        let words = [("single_winner", 0), ("ranked_top_k", 1), ("proportional_quality", 2)];
        let allocation = match place.required("allocation")?.word(&words)? {
            0 => Allocation::SingleWinner,
            1 => Allocation::RankedTopK { distribution: complete(place, top_k, distribution)? },
            _ => Allocation::ProportionalQuality,
        };
        Ok(Self { ceiling: Money { amount, currency }, scale, allocation })
    }

    /// How many candidates the allocation leaves room for.
    pub fn top_k(&self) -> Option<usize> {
        match &self.allocation {
            Allocation::RankedTopK { distribution } => Some(distribution.len()),
            Allocation::SingleWinner | Allocation::ProportionalQuality => None,
        }
    }

    /// Fraction digits of a share: cents at least, and no coarser than the amount is written.
    pub fn scale(&self) -> usize {
        self.scale.max(2)
    }

    /// What each of the candidates that fit receives, in rank order; `quality` is each one's score and the floor's.
    ///
    /// Shares are cut to [`Budget::scale`]; what is left when every place is filled goes to the first
    /// (`docs/decisions`).
    pub fn shares(&self, qualities: &[f64], floor: f64) -> Vec<Amount> {
        let count = qualities.len();
        let (weights, total, filled) = match &self.allocation {
            Allocation::SingleWinner => (vec![BigUint::from(1u8)], BigUint::from(1u8), true),
            Allocation::RankedTopK { distribution } => {
                let (weights, places) = align(distribution);
                (weights, BigUint::from(10u8).pow(places), count >= distribution.len())
            }
            Allocation::ProportionalQuality => {
                let floor = Fraction::of(floor);
                let above: Vec<Fraction> = qualities.iter().map(|&score| Fraction::of(score).above(&floor)).collect();
                let (mut weights, _) = align(&above);
                if weights.iter().all(|weight| *weight == BigUint::ZERO) {
                    weights = vec![BigUint::from(1u8); count];
                }
                let total = weights.iter().sum();
                (weights, total, true)
            }
        };
        if count == 0 || total == BigUint::ZERO {
            return Vec::new();
        }
        let grain = 10u128.pow((AMOUNT_DIGITS_MAX - self.scale()) as u32);
        let whole = self.ceiling.amount.units / grain;
        let mut parts: Vec<u128> = weights
            .iter()
            .take(count)
            .map(|weight| u128::try_from(weight * BigUint::from(whole) / &total).unwrap_or_default())
            .collect();
        if filled {
            let paid: u128 = parts.iter().sum();
            if let Some(first) = parts.first_mut() {
                *first += whole.saturating_sub(paid);
            }
        }
        parts.into_iter().map(|part| Amount { units: part * grain }).collect()
    }
}

fn top_k_of(place: &Place<'_>, limits: &Limits) -> Result<u64, Refusal> {
    let top_k = place.integer(1)?;
    if top_k > limits.top_k {
        return place.refuse(Code::InvalidValue, format!("`top_k` is at most {}", limits.top_k));
    }
    Ok(top_k)
}

fn fractions(place: &Place<'_>) -> Result<Vec<Fraction>, Refusal> {
    place.elements()?.iter().map(|element| element.fraction().map(Fraction::of)).collect()
}

/// `ranked_top_k` needs both its number and a distribution over exactly that many places that sums to one.
fn complete(
    place: &Place<'_>,
    top_k: Option<u64>,
    distribution: Option<Vec<Fraction>>,
) -> Result<Vec<Fraction>, Refusal> {
    let incomplete = |name: &str| {
        Refusal::new(Code::AllocationIncomplete, place.at.child(name), format!("`ranked_top_k` needs `{name}`"))
    };
    let top_k = top_k.ok_or_else(|| incomplete("top_k"))?;
    let distribution = distribution.ok_or_else(|| incomplete("distribution"))?;
    let invalid = |detail: String| Refusal::new(Code::DistributionInvalid, place.at.child("distribution"), detail);
    if distribution.len() as u64 != top_k {
        return Err(invalid(format!("{} fractions for {top_k} places", distribution.len())));
    }
    let (numerators, places) = align(&distribution);
    let sum: BigUint = numerators.iter().sum();
    if sum != BigUint::from(10u8).pow(places) {
        let digits = format!("{sum:0>width$}", width = places as usize + 1);
        let (integer, fraction) = digits.split_at(digits.len() - places as usize);
        return Err(invalid(format!("the fractions sum to {integer}.{fraction}, not to exactly 1")));
    }
    Ok(distribution)
}

/// Reads the amount of a `{amount, currency}` object in the wanted currency.
pub(crate) fn money_of(node: Node<'_>) -> Option<Money> {
    let currency = node.get("currency")?.as_str()?;
    Some(Money { amount: Amount::parse(node.get("amount")?.as_str()?)?, currency: currency.to_owned() })
}

pub(crate) fn amount_in(node: Node<'_>, wanted: &str) -> Option<Amount> {
    let currency = node.get("currency")?.as_str()?;
    (currency == wanted).then(|| Amount::parse(node.get("amount")?.as_str()?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, json};

    #[test]
    fn an_amount_is_near_the_double_that_its_digits_name() {
        for text in
            ["0", "0.000001", "0.37", "18.446744", "18.446745", "99999.999999", "0.0000001", "123456789012345678"]
        {
            assert_eq!(Amount::parse(text).unwrap().approximate(), text.parse::<f64>().unwrap(), "{text}");
        }
    }

    fn budget(value: json::Value) -> Result<Budget, Refusal> {
        let document = Document::of(&value).unwrap();
        Budget::read(&Place::root(document.root()), &Limits::STANDARD)
    }

    fn shares(value: json::Value, qualities: &[f64], floor: f64) -> Vec<String> {
        let budget = budget(value).unwrap();
        budget.shares(qualities, floor).iter().map(|share| share.with_scale(budget.scale())).collect()
    }

    #[test]
    fn amounts_are_exact() {
        assert!(Amount::parse("0.300000000000000002") > Amount::parse("0.300000000000000001"));
        assert_eq!(Amount::parse("001.50").unwrap().to_string(), "1.5");
        for text in ["", "1e9", "-1", "+1", "0x10", "1.", "1234567890123456789", "0.1234567890123456789", "١"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }

    /// Beside the digits one after the other, as a person would write them.
    #[test]
    fn amounts_are_written_and_read_as_their_digits_say() {
        let mut state = 1_u128;
        for round in 0..20_000_u32 {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            let unit = 10_u128.pow(round % 19);
            let units = (state >> 8) % 10_u128.pow(1 + round % 36) / unit * unit;
            let amount = Amount::from_units(units);
            let digits = format!("{units:0>19}");
            let (integer, fraction) = digits.split_at(digits.len() - AMOUNT_DIGITS_MAX);
            let plain = format!("{integer}.{fraction}");
            assert_eq!(amount.to_string(), plain.trim_end_matches('0').trim_end_matches('.'));
            assert_eq!(Amount::parse(&amount.to_string()), Some(amount));
            assert_eq!(Amount::parse(&plain), Some(amount));
        }
        let beyond = Amount::from_units(u128::MAX);
        assert_eq!(beyond.to_string(), "340282366920938463463.374607431768211455");
    }

    #[test]
    fn a_distribution_sums_to_exactly_one() {
        let tenths = vec![0.1; 10];
        let given = |fractions: &[f64]| {
            budget(
                json!({"amount": "1", "currency": "EUR", "allocation": "ranked_top_k", "top_k": fractions.len(), "distribution": fractions}),
            )
        };
        assert!(given(&tenths).is_ok());
        let error = given(&[0.3, 0.3, 0.3]).unwrap_err();
        assert_eq!(error.code, Code::DistributionInvalid);
        assert!(error.detail.contains("0.9"), "{error}");
    }

    #[test]
    fn shares_add_up() {
        let ranked = |amount: &str| json!({"amount": amount, "currency": "EUR", "allocation": "ranked_top_k", "top_k": 3, "distribution": [0.5, 0.3, 0.2]});
        assert_eq!(shares(ranked("10.00"), &[0.9, 0.8, 0.7], 0.0), ["5.00", "3.00", "2.00"]);
        assert_eq!(shares(ranked("0.05"), &[0.9, 0.8, 0.7], 0.0), ["0.03", "0.01", "0.01"]);
        assert_eq!(shares(ranked("10"), &[0.9], 0.0), ["5.00"]);
        let proportional = json!({"amount": "1.00", "currency": "EUR", "allocation": "proportional_quality"});
        assert_eq!(shares(proportional.clone(), &[0.9, 0.8, 0.7], 0.6), ["0.51", "0.33", "0.16"]);
        assert_eq!(shares(proportional.clone(), &[0.5, 0.5, 0.5], 0.5), ["0.34", "0.33", "0.33"]);
        assert_eq!(shares(proportional, &[], 0.5), Vec::<String>::new());
        let winner = json!({"amount": "1.005", "currency": "EUR", "allocation": "single_winner"});
        assert_eq!(shares(winner, &[0.2, 0.9], 0.0), ["1.005"]);
    }
}
