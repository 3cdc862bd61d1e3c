//! RFC 0020 A.1, §3.4: exact decimals, for comparisons and for money.
//!
//! A JSON number stands for the decimal that its RFC 8785 text denotes, so `0.1` is one tenth here and nothing else
//! (`docs/decisions`). Comparisons work on digits; nothing is rounded.

use std::cmp::Ordering;

/// Powers of ten that are exact doubles.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A decimal as it is written: sign, integer digits without leading zeros, fraction digits without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
}

impl<'a> Digits<'a> {
    /// Reads `-?[0-9]+(\.[0-9]+)?`; anything else is no decimal.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, magnitude) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (integer, fraction) = match magnitude.split_once('.') {
            Some((integer, fraction)) if !fraction.is_empty() => (integer, fraction),
            Some(_) => return None,
            None => (magnitude, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if integer.is_empty() || !digits(integer) || !digits(fraction) {
            return None;
        }
        let (integer, fraction) = (integer.trim_start_matches('0'), fraction.trim_end_matches('0'));
        // Minus nothing is nothing.
        let negative = negative && !(integer.is_empty() && fraction.is_empty());
        Some(Self { negative, integer, fraction })
    }

    /// The double that stands for exactly this decimal, when the decimal is short enough to have one.
    ///
    /// Up to fifteen digits, decimal to double and back is the identity, so comparing doubles compares decimals.
    pub(crate) fn short(self) -> Option<f64> {
        if self.integer.len() + self.fraction.len() > 15 {
            return None;
        }
        let digits = self.integer.bytes().chain(self.fraction.bytes());
        let mantissa = digits.fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        // Both operands are exact doubles and the division rounds once: this is the nearest double.
        let magnitude = mantissa as f64 / POWERS.get(self.fraction.len())?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        let magnitude = || {
            let integers = self.integer.len().cmp(&other.integer.len()).then_with(|| self.integer.cmp(other.integer));
            // Without trailing zeros, a fraction that continues another one is the larger.
            integers.then_with(|| self.fraction.cmp(other.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// The decimal text of a JSON number, without an exponent.
pub(crate) fn spell(number: f64) -> String {
    let mut writer = json::Writer::default();
    writer.number(number);
    let text = String::from_utf8(writer.finish()).unwrap_or_default();
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    // Numbers stay below 2^53, so an exponent is negative here and the integer part has one digit.
    let places = exponent.trim_start_matches('-').parse::<usize>().unwrap_or_default();
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    format!("{sign}0.{}{}", "0".repeat(places.saturating_sub(1)), digits.replace('.', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: &str, right: &str, expected: Ordering) {
        let (left, right) = (Digits::parse(left).unwrap(), Digits::parse(right).unwrap());
        assert_eq!(left.compare(right), expected);
        assert_eq!(right.compare(left), expected.reverse());
        if let (Some(left), Some(right)) = (left.short(), right.short()) {
            assert_eq!(left.partial_cmp(&right), Some(expected));
        }
    }

    #[test]
    fn decimals_compare_by_value_to_the_last_digit() {
        check("100.00", "100", Ordering::Equal);
        check("0099.9", "100", Ordering::Less);
        check("0.30000000000000000002", "0.30000000000000000001", Ordering::Greater);
        check("-2", "-10", Ordering::Greater);
        check("-0.0", "0", Ordering::Equal);
        check("-0.1", "0", Ordering::Less);
        check("10.5", "10.49", Ordering::Greater);
        check("99999999999999999999", "100000000000000000000", Ordering::Less);
    }

    #[test]
    fn only_plain_decimals_are_decimals() {
        for text in ["", "-", "+1", "1.", ".5", "1e3", "1 ", "0x10", "١", "1.2.3", "--1", "1,5", "Infinity"] {
            assert_eq!(Digits::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_spelled_without_exponents() {
        for (number, expected) in
            [(0.1, "0.1"), (1e-7, "0.0000001"), (-1.5e-9, "-0.0000000015"), (1e15, "1000000000000000"), (0.0, "0")]
        {
            assert_eq!(spell(number), expected);
        }
    }
}
