//! RFC 0020 A.1: values as keys whose order is the order of the language.

use aql::Instant;
use json::Node;

/// A number whose order as a key is its order as a number; zero has one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NumberKey(u64);

impl NumberKey {
    pub(crate) fn of(number: f64) -> Self {
        let bits = if number == 0.0 { 0 } else { number.to_bits() };
        // Negative numbers descend as bits rise, so they are turned round and put below the others.
        Self(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
    }
}

/// A text that takes part in comparisons, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ordered {
    /// A decimal, by its nearest double: order is kept, but neighbours may share a key.
    Decimal(NumberKey),
    /// A moment, exactly.
    Moment(Instant),
}

impl Ordered {
    pub(crate) fn of(text: &str) -> Option<Self> {
        if let Some(instant) = Instant::parse(text) {
            return Some(Self::Moment(instant));
        }
        is_decimal(text).then(|| text.parse::<f64>().ok()).flatten().map(|number| Self::Decimal(NumberKey::of(number)))
    }
}

/// The nearest double of a decimal string, as a key.
pub(crate) fn decimal_key(text: &str) -> Option<NumberKey> {
    match Ordered::of(text) {
        Some(Ordered::Decimal(key)) => Some(key),
        _ => None,
    }
}

fn is_decimal(text: &str) -> bool {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let (integer, fraction) = magnitude.split_once('.').unwrap_or((magnitude, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(integer) && digits(fraction)
}

/// Texts beyond this are filed by their beginning and stay possible only.
pub(crate) const TEXT_MAX: usize = 256;

/// The part of a text that is filed, and whether it is all of it.
pub(crate) fn filed(text: &str) -> (&str, bool) {
    if text.len() <= TEXT_MAX {
        return (text, true);
    }
    let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (text.get(..end).unwrap_or_default(), false)
}

/// What a value is filed as.
pub(crate) enum Filed<'a> {
    Null,
    Bool(bool),
    Number(NumberKey),
    Text(&'a str),
    Array,
    Object,
}

impl<'a> Filed<'a> {
    pub(crate) fn of(node: Node<'a>) -> Self {
        match node.kind() {
            json::Kind::Null => Self::Null,
            json::Kind::Bool => Self::Bool(node.as_bool().unwrap_or_default()),
            json::Kind::Number => Self::Number(NumberKey::of(node.as_f64().unwrap_or_default())),
            json::Kind::String => Self::Text(node.as_str().unwrap_or_default()),
            json::Kind::Array => Self::Array,
            json::Kind::Object => Self::Object,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_keys_keep_the_order_of_numbers() {
        let numbers = [f64::MIN, -2.5, -1e-300, 0.0, 1e-300, 0.1, 1.0, 1e15];
        assert!(numbers.windows(2).all(|pair| NumberKey::of(pair[0]) < NumberKey::of(pair[1])));
        assert_eq!(NumberKey::of(-0.0), NumberKey::of(0.0));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "é".repeat(200);
        let (part, whole) = filed(&text);
        assert!(!whole && part.len() <= TEXT_MAX && text.starts_with(part));
        assert_eq!(filed("short"), ("short", true));
    }
}
