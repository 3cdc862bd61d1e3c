//! RFC 0020 A.1: the natural order on numbers and ISO-8601 strings, behind `lt`, `lte`, `gt` and `gte`.
//!
//! Numbers and decimal strings are ordered by exact decimal value, timestamps as instants, and everything else
//! not at all: nothing is ever cast.

use std::cmp::Ordering;

use crate::decimal::Decimal;
use crate::instant::Instant;
use crate::value::Value;

/// How two values are ordered, or none if they are incomparable.
pub fn order(left: &Value, right: &Value) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (decimal(left), decimal(right)) {
        return Some(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (instant(left), instant(right)) {
        return Some(left.cmp(&right));
    }
    None
}

/// The exact decimal of a number or of a decimal string.
pub(crate) fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::of_number(*number),
        Value::String(text) => Decimal::parse(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The instant of a timestamp.
pub(crate) fn instant(value: &Value) -> Option<Instant> {
    Instant::parse(value.text()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check(left: &str, right: &str, expected: Option<Ordering>) {
        assert_eq!(order(&value(left), &value(right)), expected, "{left} against {right}");
        assert_eq!(order(&value(right), &value(left)), expected.map(Ordering::reverse), "{right} against {left}");
    }

    #[test]
    fn numbers_and_decimal_strings_mix() {
        check("1", "2", Some(Ordering::Less));
        check("-0", "0", Some(Ordering::Equal));
        check("10", r#""9.5""#, Some(Ordering::Greater));
        check(r#""10""#, r#""9""#, Some(Ordering::Greater));
        check("0.1", r#""0.10""#, Some(Ordering::Equal));
        check("0.1", r#""0.1000000000000000000000001""#, Some(Ordering::Less));
        check("0.3", r#""0.30000000000000004""#, Some(Ordering::Less));
        check("9007199254740991", r#""9007199254740992""#, Some(Ordering::Less));
        check(r#""-1""#, r#""-2""#, Some(Ordering::Greater));
    }

    #[test]
    fn timestamps_are_ordered_as_instants() {
        check(r#""2026-05-04""#, r#""2026-05-04T00:00:00Z""#, Some(Ordering::Equal));
        check(r#""2026-05-04T12:00:00+02:00""#, r#""2026-05-04T11:00:00Z""#, Some(Ordering::Less));
    }

    #[test]
    fn everything_else_is_incomparable() {
        for (left, right) in [
            ("null", "null"),
            ("true", "false"),
            ("null", "0"),
            ("true", "1"),
            ("[1]", "1"),
            ("[1]", "[2]"),
            ("{}", "{}"),
            (r#""a""#, r#""b""#),
            (r#""""#, "0"),
            (r#""1e2""#, "100"),
            ("2026", r#""2026-05-04""#),
            (r#""2026""#, r#""2026-05-04""#),
            (r#""x""#, r#""2026-05-04""#),
        ] {
            check(left, right, None);
        }
    }
}
