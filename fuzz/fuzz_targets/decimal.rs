//! RFC 0020 A.1, §3.4: exact decimals.
//!
//! Two lines are ordered as texts and as JSON numbers, by both engines and by big integers; all three must agree. An
//! amount is read exactly when the grammar allows it, has the value of its digits, and reads back as it is printed.

#![no_main]

use aql::{AMOUNT_DIGITS_MAX, Amount};
use fuzzing::{document, first_line, head, spell, text, twin_value};
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use serde_json::{Value, json};
use std::cmp::Ordering;

const CHARS_MAX: usize = 400;

#[rustfmt::skip]
const WORDS: [&str; 24] = [
    "0", "1", "2", "3", "5", "9", "00", "000000", "99999", "123456789", ".", "-", "-", "e", "e-", "E+", "\n",
    "9007199254740991",
    "9007199254740992", "0.1", "0.30000000000000004", "000000000000000001", "999999999999999999", "5e-324",
];

fuzz_target!(|data: &[u8]| {
    // A first byte beyond ASCII asks for words, so that seeds can be written by hand.
    let text = match data.split_first() {
        Some((0x80.., rest)) => spell(rest, &WORDS),
        _ => text(data),
    };
    let (left, right) = first_line(&text);
    let (left, right) = (head(left, CHARS_MAX), head(right, CHARS_MAX));
    for left in spellings(left) {
        for right in spellings(right) {
            check_order(&left, &right);
        }
    }
    check_amount(left);
    check_amount(right);
});

/// A line as a text, and as a number where it is one.
fn spellings(line: &str) -> Vec<Value> {
    let number = json::Document::parse(line.as_bytes(), &json::Limits::INTENT).ok();
    let number =
        number.filter(|document| document.root().as_f64().is_some()).map(|document| document.root().to_value());
    [json!(line)].into_iter().chain(number).collect()
}

fn check_order(left: &Value, right: &Value) {
    let (one, other) = (document(left), document(right));
    let order = aql::order(one.root(), other.root());
    assert_eq!(order, aql::order(other.root(), one.root()).map(Ordering::reverse), "{left} and {right}, turned round");
    assert_eq!(order, reference::order(&twin_value(left), &twin_value(right)), "{left} and {right}");
    match (Exact::of(left), Exact::of(right)) {
        (Some(left_exact), Some(right_exact)) => {
            assert_eq!(order, Some(left_exact.compare(&right_exact)), "{left} and {right} as big integers");
        }
        (Some(_), None) | (None, Some(_)) => assert_eq!(order, None, "{left} and {right}"),
        (None, None) => {}
    }
}

/// An integer divided by a power of ten.
struct Exact {
    units: BigInt,
    places: usize,
}

impl Exact {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::read(text),
            Value::Number(_) => {
                let text = String::from_utf8(json::canonical_value(value)).ok()?;
                let (mantissa, exponent) = text.split_once("e-").unwrap_or((&text, "0"));
                let Self { units, places } = Self::read(mantissa)?;
                Some(Self { units, places: places + exponent.parse::<usize>().ok()? })
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let magnitude = text.strip_prefix('-').unwrap_or(text);
        let (integer, fraction) = magnitude.split_once('.').unwrap_or((magnitude, "0"));
        let digits = |part: &str| !part.is_empty() && part.chars().all(|character| character.is_ascii_digit());
        if !digits(integer) || !digits(fraction) {
            return None;
        }
        let units: BigInt = format!("{integer}{fraction}").parse().ok()?;
        Some(Self { units: if text.starts_with('-') { -units } else { units }, places: fraction.len() })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let power = |places: usize| BigInt::from(10).pow(places as u32);
        (&self.units * power(other.places)).cmp(&(&other.units * power(self.places)))
    }
}

fn check_amount(text: &str) {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let short = integer.len() <= AMOUNT_DIGITS_MAX && fraction.len() <= AMOUNT_DIGITS_MAX;
    let exact = Exact::read(text).filter(|_| short && !text.starts_with('-'));
    let Some(amount) = Amount::parse(text) else {
        assert!(exact.is_none(), "{text:?} is an amount");
        return;
    };
    let exact = exact.unwrap_or_else(|| panic!("{text:?} is no amount"));
    let units = Exact { units: BigInt::from(amount.units()), places: AMOUNT_DIGITS_MAX };
    assert_eq!(units.compare(&exact), Ordering::Equal, "{text:?} is {amount}");
    for printed in [amount.to_string(), amount.with_scale(AMOUNT_DIGITS_MAX), amount.with_scale(fraction.len())] {
        assert_eq!(Amount::parse(&printed), Some(amount), "{text:?} is printed as {printed:?}");
    }
}
