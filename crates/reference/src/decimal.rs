//! RFC 0020 §3.4 and A.1: exact decimals, for amounts and for the order of numbers.
//!
//! INVARIANT: a decimal is `units` divided by ten to the power `scale`, with nothing rounded away.

use std::cmp::Ordering;
use std::ops::{Add, Sub};

use num_bigint::BigInt;

use crate::canonical::number_text;

/// The most digits that an amount may have before the point, and after it.
const AMOUNT_DIGITS_MAX: usize = 18;

/// An exact decimal.
#[derive(Debug, Clone)]
pub(crate) struct Decimal {
    units: BigInt,
    scale: u32,
}

impl Decimal {
    /// The decimal zero.
    pub(crate) fn zero() -> Decimal {
        Decimal::whole(0)
    }

    /// An integer.
    pub(crate) fn whole(number: u32) -> Decimal {
        Decimal { units: BigInt::from(number), scale: 0 }
    }

    /// A decimal string: `-?[0-9]+(\.[0-9]+)?`, of any length.
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) if is_digits(whole) && is_digits(fraction) => (whole, fraction),
            None if is_digits(digits) => (digits, ""),
            Some(_) | None => return None,
        };
        let units: BigInt = format!("{whole}{fraction}").parse().ok()?;
        let units = if text.starts_with('-') { -units } else { units };
        Some(Decimal { units, scale: u32::try_from(fraction.len()).ok()? })
    }

    /// An amount of money: a decimal string without a sign and of bounded length.
    pub(crate) fn parse_amount(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let bounded = whole.len() <= AMOUNT_DIGITS_MAX && fraction.len() <= AMOUNT_DIGITS_MAX;
        if bounded && !text.starts_with('-') { Decimal::parse(text) } else { None }
    }

    /// The decimal that the RFC 8785 text of a number denotes, so that 0.1 is exactly one tenth.
    pub(crate) fn of_number(number: f64) -> Option<Decimal> {
        let text = number_text(number);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let decimal = Decimal::parse(mantissa)?;
        let exponent: i32 = exponent.parse().ok()?;
        let power = exponent.unsigned_abs();
        if exponent < 0 {
            Some(Decimal { units: decimal.units, scale: decimal.scale + power })
        } else {
            Some(Decimal { units: decimal.units * power_of_ten(power), scale: decimal.scale })
        }
    }

    /// How many digits stand after the point.
    pub(crate) fn scale(&self) -> u32 {
        self.scale
    }

    /// How often ten to the power `-scale` goes into the decimal, rounded down; it must not be negative.
    pub(crate) fn units_at(&self, scale: u32) -> BigInt {
        &self.units * power_of_ten(scale) / power_of_ten(self.scale)
    }

    /// The nearest double.
    pub(crate) fn to_f64(&self) -> f64 {
        print(&self.units, self.scale).parse().unwrap_or(f64::INFINITY)
    }

    /// How much of an amount a weight among a total earns, rounded down; nothing here is negative.
    pub(crate) fn share_of(&self, amount_units: &BigInt, total: &Decimal) -> BigInt {
        let own = &self.units * power_of_ten(total.scale);
        let all = &total.units * power_of_ten(self.scale);
        amount_units * own / all
    }
}

/// A number of units of ten to the power `-scale`, as a plain decimal.
pub(crate) fn print(units: &BigInt, scale: u32) -> String {
    let digits = units.magnitude().to_string();
    let sign = if *units < BigInt::ZERO { "-" } else { "" };
    let scale = usize::try_from(scale).unwrap_or(usize::MAX);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale.saturating_add(1));
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// The units of two decimals over the scale of the finer one, and that scale.
fn aligned(left: &Decimal, right: &Decimal) -> (BigInt, BigInt, u32) {
    let scale = left.scale.max(right.scale);
    let raise = |decimal: &Decimal| &decimal.units * power_of_ten(scale - decimal.scale);
    (raise(left), raise(right), scale)
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let (left, right, _) = aligned(self, other);
        left.cmp(&right)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl Add for &Decimal {
    type Output = Decimal;
    fn add(self, other: &Decimal) -> Decimal {
        let (left, right, scale) = aligned(self, other);
        Decimal { units: left + right, scale }
    }
}

impl Sub for &Decimal {
    type Output = Decimal;
    fn sub(self, other: &Decimal) -> Decimal {
        let (left, right, scale) = aligned(self, other);
        Decimal { units: left - right, scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: Option<Decimal>, right: &str, order: Ordering) {
        assert_eq!(left.unwrap().cmp(&Decimal::parse(right).unwrap()), order, "{right}");
    }

    #[test]
    fn only_decimal_strings_are_read() {
        for text in ["0", "-0", "007", "1.0", "-12.50", "0.30000000000000000001"] {
            assert!(Decimal::parse(text).is_some(), "{text}");
        }
        for text in
            ["", "-", "+1", ".5", "5.", "1e2", "1_0", " 1", "1 ", "--1", "-.5", "1.2.3", "0x1", "\u{661}", "1,0"]
        {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
        assert!(Decimal::parse(&"9".repeat(5_000)).is_some());
    }

    #[test]
    fn amounts_are_bounded_and_have_no_sign() {
        let nines = "9".repeat(18);
        assert!(Decimal::parse_amount(&format!("{nines}.{nines}")).is_some());
        for text in [format!("{nines}9"), format!("0.{nines}9"), "-1".to_owned(), "1e2".to_owned(), "1.".to_owned()] {
            assert!(Decimal::parse_amount(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_order_is_exact() {
        check(Decimal::parse("0.30000000000000000002"), "0.30000000000000000001", Ordering::Greater);
        check(Decimal::parse("1.50"), "1.5", Ordering::Equal);
        check(Decimal::parse("-0"), "0.00", Ordering::Equal);
        check(Decimal::parse("-2"), "-1", Ordering::Less);
        check(Decimal::parse("9"), "10", Ordering::Less);
    }

    #[test]
    fn a_number_is_the_decimal_of_its_text() {
        check(Decimal::of_number(0.1), "0.1", Ordering::Equal);
        check(Decimal::of_number(0.1), "0.1000000000000000055511151231257827", Ordering::Less);
        check(Decimal::of_number(1e-7), "0.0000001", Ordering::Equal);
        check(Decimal::of_number(-1.5e-7), "-0.00000015", Ordering::Equal);
        check(Decimal::of_number(1e21), "1000000000000000000000", Ordering::Equal);
        check(Decimal::of_number(-0.0), "0", Ordering::Equal);
    }

    #[test]
    fn sums_and_differences_are_exact() {
        let [tenth, fifth, third] = ["0.1", "0.2", "0.3"].map(|text| Decimal::parse(text).unwrap());
        assert_eq!(&tenth + &fifth, third);
        assert_eq!(&third - &fifth, tenth);
        assert_eq!(&tenth - &third, Decimal::parse("-0.2").unwrap());
    }

    #[test]
    fn amounts_are_printed_plainly() {
        assert_eq!(print(&BigInt::from(10_000), 2), "100.00");
        assert_eq!(print(&BigInt::from(5), 2), "0.05");
        assert_eq!(print(&BigInt::from(-5), 2), "-0.05");
        assert_eq!(print(&BigInt::from(0), 3), "0.000");
        assert_eq!(print(&BigInt::from(7), 0), "7");
        assert_eq!(Decimal::parse("12.5").unwrap().units_at(2), BigInt::from(1_250));
        assert_eq!(Decimal::parse("0.30").unwrap().to_f64(), 0.3);
    }

    #[test]
    fn a_share_is_rounded_down() {
        let third = Decimal::whole(1).share_of(&BigInt::from(10_000), &Decimal::whole(3));
        assert_eq!(third, BigInt::from(3_333));
        let weight = Decimal::parse("0.25").unwrap();
        assert_eq!(weight.share_of(&BigInt::from(10), &Decimal::parse("0.5").unwrap()), BigInt::from(5));
    }
}
