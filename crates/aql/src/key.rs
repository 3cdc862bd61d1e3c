//! RFC 0020 A.1: values as keys whose order is the order of the language.
//!
//! Whoever files values or bounds uses these: the index of records, and the index of standing filters.

use json::Instant;

/// A number as a key whose order is that of numbers; zero has one key.
pub fn number_key(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    // Negative numbers descend as bits rise, so they are turned round and put below the others.
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Seconds from the first moment that has a key to the epoch; the year 0 lies after it.
const EPOCH: i64 = 1 << 36;
const SECONDS_MAX: i64 = (1 << 39) - 1;
/// A key has no room for the last bits of the nanoseconds.
const NANOS_CUT: u32 = 5;

/// A moment as a key: order is kept, but moments less than 32 ns apart may share one.
pub fn moment_key(moment: Instant) -> u64 {
    let seconds = moment.seconds().saturating_add(EPOCH).clamp(0, SECONDS_MAX);
    (seconds as u64) << (30 - NANOS_CUT) | u64::from(moment.nanos() >> NANOS_CUT)
}

/// Whether a moment is the first of those that share its key.
pub fn is_first_of_key(moment: Instant) -> bool {
    moment.nanos().is_multiple_of(1 << NANOS_CUT)
}

/// A text that takes part in comparisons, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ordered {
    /// A decimal, by its nearest double: order is kept, but neighbours may share a key.
    Decimal(u64),
    /// A moment.
    Moment(u64),
}

impl Ordered {
    /// What a text is, if it has an order.
    pub fn of(text: &str) -> Option<Self> {
        // Most texts are neither, and their beginning says so.
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.as_bytes().first().filter(|first| first.is_ascii_digit())?;
        match Instant::parse(text) {
            Some(instant) => Some(Self::Moment(moment_key(instant))),
            None => decimal_key(text).map(Self::Decimal),
        }
    }
}

/// The nearest double of a decimal string, as a key.
pub fn decimal_key(text: &str) -> Option<u64> {
    is_decimal(text).then(|| text.parse::<f64>().ok()).flatten().map(number_key)
}

fn is_decimal(text: &str) -> bool {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let (integer, fraction) = magnitude.split_once('.').unwrap_or((magnitude, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(integer) && digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_keys_keep_the_order_of_numbers() {
        let numbers = [f64::MIN, -2.5, -1e-300, 0.0, 1e-300, 0.1, 1.0, 1e15, f64::INFINITY];
        assert!(numbers.windows(2).all(|pair| number_key(pair[0]) < number_key(pair[1])));
        assert_eq!(number_key(-0.0), number_key(0.0));
    }

    #[test]
    fn moment_keys_keep_the_order_of_moments() {
        let texts = [
            "0000-01-01T00:00:00+23:59",
            "0000-01-01",
            "1969-12-31T23:59:59.999999999Z",
            "1970-01-01",
            "1970-01-01T00:00:00.000000032Z",
            "2026-11-15T20:40:00.5Z",
            "9999-12-31T23:59:60-00:00",
            "9999-12-31T23:59:59-23:59",
        ];
        let keys: Vec<u64> = texts.iter().map(|text| moment_key(Instant::parse(text).unwrap())).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
    }

    #[test]
    fn a_moment_is_no_decimal_and_words_are_neither() {
        assert!(matches!(Ordered::of("2026-01-01"), Some(Ordered::Moment(_))));
        assert!(matches!(Ordered::of("-12.50"), Some(Ordered::Decimal(_))));
        for text in ["", "-", "-a", "x1", "1e3", "1.", "12a"] {
            assert_eq!(Ordered::of(text), None, "{text}");
        }
    }
}
