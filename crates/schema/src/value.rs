//! RFC 0024 §3.3: what the rooms of this crate ask of plain values: are two the same, how large is one.

use json::Value;

/// Structural equality, where `1` is `1.0`.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        // Two integers are compared as integers: doubles would make neighbours of large ones the same.
        (Value::Number(left), Value::Number(right)) => {
            left == right || ((left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let member = |(name, left)| right.get(name).is_some_and(|right| same(left, right));
            left.len() == right.len() && left.iter().all(member)
        }
        _ => left == right,
    }
}

/// About as many bytes as the value has when it is written.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(elements) => 2 + elements.iter().map(|element| size(element) + 1).sum::<usize>(),
        Value::Object(members) => 2 + members.iter().map(|(name, value)| name.len() + 4 + size(value)).sum::<usize>(),
    }
}
