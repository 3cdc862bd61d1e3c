//! RFC 0020 A.1: the universe of JSON values, and when two of them are structurally equal.
//!
//! INVARIANT: the members of an object stand in RFC 8785 key order, each key once. Equality is therefore plain
//! comparison from left to right, and "document order" is the order in which the children stand.

use std::cmp::Ordering;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The value `null`.
    Null,
    /// The value `true` or `false`.
    Bool(bool),
    /// A number, which is an IEEE double and finite.
    Number(f64),
    /// A text.
    String(String),
    /// A list of values.
    Array(Vec<Value>),
    /// Named values; `Value::object` puts them in order.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// An object of these members, whose keys must be distinct.
    pub fn object(mut members: Vec<(String, Value)>) -> Value {
        members.sort_by(|(left, _), (right, _)| key_order(left, right));
        Value::Object(members)
    }

    /// The member of an object with this key.
    pub(crate) fn member(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// The children of an array or object, in document order.
    pub(crate) fn children(&self) -> Vec<&Value> {
        match self {
            Value::Array(elements) => elements.iter().collect(),
            Value::Object(members) => members.iter().map(|(_, value)| value).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }

    /// The text, if the value is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// The number, if the value is one.
    pub(crate) fn number(&self) -> Option<f64> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }
}

/// RFC 8785 §3.2.3: keys are ordered by their UTF-16 code units.
pub(crate) fn key_order(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check(left: &str, right: &str, equal: bool) {
        assert_eq!(value(left) == value(right), equal, "{left} against {right}");
    }

    #[test]
    fn equality_is_structural() {
        check("1", "1.0", true);
        check("1", "10e-1", true);
        check("-0", "0", true);
        check("-0.0", "0e5", true);
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true);
        check("[1,2]", "[2,1]", false);
        check("[1,2]", "[1,2,3]", false);
        check(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false);
        check(r#"{"a":[{"b":-0}]}"#, r#"{"a":[{"b":0}]}"#, true);
    }

    #[test]
    fn equality_never_casts() {
        check("1", r#""1""#, false);
        check("0", "false", false);
        check("null", "false", false);
        check(r#""""#, "null", false);
        check("[]", "{}", false);
        check("[1]", "1", false);
    }

    #[test]
    fn texts_are_not_normalised() {
        check("\"\u{e9}\"", "\"e\u{301}\"", false);
        check(r#""\u0061""#, r#""a""#, true);
    }

    #[test]
    fn keys_are_ordered_by_utf_16_code_units() {
        assert_eq!(key_order("\u{1f600}", "\u{fb33}"), Ordering::Less);
        assert_eq!(key_order("a", "aa"), Ordering::Less);
        assert_eq!(key_order("", "a"), Ordering::Less);
        assert_eq!(key_order("b", "a"), Ordering::Greater);
    }

    #[test]
    fn an_object_is_put_in_order() {
        let members = vec![("b".to_owned(), Value::Null), ("a".to_owned(), Value::Bool(true))];
        assert_eq!(Value::object(members), value(r#"{"a":true,"b":null}"#));
    }
}
