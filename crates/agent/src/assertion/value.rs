//! JSON as values of CEL, and back.
//!
//! A number without a fraction is an integer however it is written, because the canonical form of JSON does not tell
//! `1.0` from `1` either; so a journal changes nothing (decisions/0216).

use cel::Value as Cel;
use cel::objects::{Key, Map};
use json::{Instant, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest integer that JSON and doubles agree about.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// The fields of the Engagement as variables, those that are wanted.
pub(super) fn engagement(object: &Value, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Cel)> {
    let members = object.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, value)| {
            let value = match (name.as_str(), value.as_str()) {
                ("started_at", Some(text)) => timestamp(text).unwrap_or(Cel::Null),
                _ => from_json(value),
            };
            (name.clone(), value)
        })
        .collect()
}

/// A tool's output as variables: its members by name where they are identifiers, and the whole as `output`.
pub(super) fn output(output: &Value) -> Vec<(String, Cel)> {
    let mut variables: Vec<(String, Cel)> = Vec::new();
    if output.get("output").is_none() {
        variables.push(("output".to_owned(), from_json(output)));
    }
    for (name, value) in output.as_object().into_iter().flatten() {
        if is_identifier(name) {
            variables.push((name.clone(), from_json(value)));
        }
    }
    variables
}

fn is_identifier(text: &str) -> bool {
    let plain = text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    plain && !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit())
}

fn timestamp(text: &str) -> Option<Cel> {
    let instant = Instant::parse_rfc3339(text)?;
    let moment = chrono::DateTime::from_timestamp(instant.seconds(), instant.nanos())?;
    Some(Cel::Timestamp(moment.fixed_offset()))
}

pub(super) fn from_json(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => number.as_i64().map_or_else(|| double(number.as_f64().unwrap_or_default()), Cel::Int),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(values) => Cel::List(Arc::new(values.iter().map(from_json).collect())),
        Value::Object(members) => {
            let pair = |(name, value): (&String, &Value)| (Key::String(Arc::new(name.clone())), from_json(value));
            let map: HashMap<Key, Cel> = members.iter().map(pair).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

fn double(number: f64) -> Cel {
    if number.fract() == 0.0 && number.abs() <= INTEGER_MAX { Cel::Int(number as i64) } else { Cel::Float(number) }
}

/// The value as JSON; nothing for what JSON does not have.
pub(super) fn to_json(value: &Cel) -> Option<Value> {
    match value {
        Cel::Null => Some(Value::Null),
        Cel::Bool(value) => Some(Value::Bool(*value)),
        Cel::Int(number) => in_range(*number as f64).then(|| Value::from(*number)),
        Cel::UInt(number) => in_range(*number as f64).then(|| Value::from(*number)),
        Cel::Float(number) => number.is_finite().then(|| Value::from(*number)),
        Cel::String(text) => Some(Value::from(text.as_str())),
        Cel::List(values) => values.iter().map(to_json).collect(),
        Cel::Map(map) => {
            let pair = |(key, value): (&Key, &Cel)| match key {
                Key::String(name) => to_json(value).map(|value| (name.to_string(), value)),
                Key::Int(_) | Key::Uint(_) | Key::Bool(_) => None,
            };
            map.map.iter().map(pair).collect::<Option<json::Map>>().map(Value::Object)
        }
        Cel::Timestamp(moment) => Some(Value::from(moment.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))),
        Cel::Duration(_) | Cel::Bytes(_) | Cel::Function(..) | Cel::Opaque(_) | Cel::Struct(_) => None,
    }
}

fn in_range(number: f64) -> bool {
    number.abs() <= INTEGER_MAX
}
