//! RFC 0024 §3.4: what changed between two versions of a schema, keyword by keyword.
//!
//! Every change has a stable rule id and an effect. Whether documents are affected is the question of `check`; this is
//! what people read.

use crate::dialect::ANNOTATIONS;
use crate::value::same;
use json::{Pointer, Value};

/// What a change does to the set of documents, as far as the keyword alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Fewer documents conform.
    Narrows,
    /// More documents conform.
    Widens,
    /// The same documents conform.
    Neutral,
    /// It depends.
    Either,
}

impl Effect {
    /// The stable word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Narrows => "narrows",
            Self::Widens => "widens",
            Self::Neutral => "neutral",
            Self::Either => "either",
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The stable rule id, such as `required-added`.
    pub rule: String,
    /// Where, in the schemas.
    pub at: Pointer,
    /// What it does.
    pub effect: Effect,
    /// What stood there.
    pub old: Option<Value>,
    /// What stands there now.
    pub new: Option<Value>,
}

/// Everything that changed from `old` to `new`, in reading order.
pub fn compare(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    schemas(old, new, &Pointer::root(), &mut changes);
    changes
}

fn change(rule: impl Into<String>, at: Pointer, effect: Effect, old: Option<&Value>, new: Option<&Value>) -> Change {
    Change { rule: rule.into(), at, effect, old: old.cloned(), new: new.cloned() }
}

fn schemas(old: &Value, new: &Value, at: &Pointer, changes: &mut Vec<Change>) {
    if same(old, new) {
        return;
    }
    let (Value::Object(left), Value::Object(right)) = (old, new) else {
        let effect = match (old, new) {
            (_, Value::Bool(true)) | (Value::Bool(false), _) => Effect::Widens,
            (_, Value::Bool(false)) | (Value::Bool(true), _) => Effect::Narrows,
            _ => Effect::Either,
        };
        return changes.push(change("schema-replaced", at.clone(), effect, Some(old), Some(new)));
    };
    let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        keyword(name, left.get(name), right.get(name), &at.child(name), changes);
    }
}

/// Keywords whose number is a lower bound.
const LOWER: [&str; 6] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];

/// Keywords whose number is an upper bound.
const UPPER: [&str; 6] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];

fn keyword(name: &str, old: Option<&Value>, new: Option<&Value>, at: &Pointer, changes: &mut Vec<Change>) {
    if let (Some(old), Some(new)) = (old, new)
        && same(old, new)
    {
        return;
    }
    let dashed = dashed(name);
    let mut push = |rule: String, effect| changes.push(change(rule, at.clone(), effect, old, new));
    match (name, old, new) {
        (name, ..) if ["$defs", "definitions"].contains(&name) => definitions(old, new, at, changes),
        (name, ..) if ANNOTATIONS.contains(&name) => push("annotation-changed".to_owned(), Effect::Neutral),
        ("required", ..) => members(old, new, at, "required", [Effect::Narrows, Effect::Widens], changes),
        ("enum", Some(_), Some(_)) => {
            members(old, new, at, "enum-value", [Effect::Widens, Effect::Narrows], changes);
        }
        ("type", Some(_), Some(_)) => members(old, new, at, "type", [Effect::Widens, Effect::Narrows], changes),
        ("properties", ..) => properties(old, new, at, changes),
        ("additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems", ..) => {
            let open = Value::Bool(true);
            schemas_or_closed(&dashed, old.unwrap_or(&open), new.unwrap_or(&open), at, changes);
        }
        ("propertyNames" | "contains", Some(old), Some(new)) => schemas(old, new, at, changes),
        ("not" | "if" | "then" | "else", Some(old), Some(new)) => {
            // Inside these a narrower schema may make the whole wider.
            let mut inner = Vec::new();
            schemas(old, new, at, &mut inner);
            let effect = |effect| if effect == Effect::Neutral { effect } else { Effect::Either };
            changes.extend(inner.into_iter().map(|change| Change { effect: effect(change.effect), ..change }));
        }
        ("allOf" | "anyOf" | "oneOf" | "prefixItems", Some(Value::Array(old)), Some(Value::Array(new)))
            if old.len() == new.len() =>
        {
            let mut inner = Vec::new();
            for (position, (old, new)) in old.iter().zip(new).enumerate() {
                schemas(old, new, &at.child(position), &mut inner);
            }
            let effect = |effect| if name == "oneOf" && effect != Effect::Neutral { Effect::Either } else { effect };
            changes.extend(inner.into_iter().map(|change| Change { effect: effect(change.effect), ..change }));
        }
        ("patternProperties" | "dependentSchemas", Some(Value::Object(old)), Some(Value::Object(new))) => {
            for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
                let open = Value::Bool(true);
                let (old, new) = (old.get(name).unwrap_or(&open), new.get(name).unwrap_or(&open));
                schemas(old, new, &at.child(name), changes);
            }
        }
        (_, Some(from), Some(to)) if LOWER.contains(&name) || UPPER.contains(&name) => {
            let raised = from.as_f64() < to.as_f64();
            let effect = if raised == LOWER.contains(&name) { Effect::Narrows } else { Effect::Widens };
            push(format!("{dashed}-{}", if raised { "raised" } else { "lowered" }), effect);
        }
        (_, None, Some(_)) => push(format!("{dashed}-added"), Effect::Narrows),
        (_, Some(_), None) => push(format!("{dashed}-removed"), Effect::Widens),
        _ => push(format!("{dashed}-changed"), Effect::Either),
    }
}

/// `additionalProperties` is `additional-properties`.
fn dashed(name: &str) -> String {
    let mut dashed = String::with_capacity(name.len() + 4);
    for character in name.trim_start_matches('$').chars() {
        if character.is_ascii_uppercase() {
            dashed.push('-');
        }
        dashed.push(character.to_ascii_lowercase());
    }
    dashed
}

fn schemas_or_closed(name: &str, old: &Value, new: &Value, at: &Pointer, changes: &mut Vec<Change>) {
    let rule = match (old, new) {
        (_, Value::Bool(false)) => "closed",
        (Value::Bool(false), _) => "opened",
        _ => return schemas(old, new, at, changes),
    };
    let effect = if rule == "closed" { Effect::Narrows } else { Effect::Widens };
    changes.push(change(format!("{name}-{rule}"), at.clone(), effect, Some(old), Some(new)));
}

/// What entered and what left a list of words or values; effects are those of entering and of leaving.
fn members(
    old: Option<&Value>,
    new: Option<&Value>,
    at: &Pointer,
    rule: &str,
    [entering, leaving]: [Effect; 2],
    changes: &mut Vec<Change>,
) {
    let list = |value: Option<&Value>| match value {
        Some(Value::Array(list)) => list.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    let (old, new) = (list(old), list(new));
    for value in new.iter().filter(|value| !old.iter().any(|old| same(old, value))) {
        changes.push(change(format!("{rule}-added"), at.clone(), entering, None, Some(value)));
    }
    for value in old.iter().filter(|value| !new.iter().any(|new| same(new, value))) {
        changes.push(change(format!("{rule}-removed"), at.clone(), leaving, Some(value), None));
    }
}

fn properties(old: Option<&Value>, new: Option<&Value>, at: &Pointer, changes: &mut Vec<Change>) {
    let empty = Default::default();
    let map =
        |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned().unwrap_or_else(|| Clone::clone(&empty));
    let (old, new) = (map(old), map(new));
    for (name, schema) in &old {
        match new.get(name) {
            Some(later) => schemas(schema, later, &at.child(name), changes),
            None => changes.push(change("property-removed", at.child(name), Effect::Either, Some(schema), None)),
        }
    }
    for (name, schema) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        changes.push(change("property-added", at.child(name), Effect::Either, None, Some(schema)));
    }
}

/// A definition says nothing by itself; what refers to it does.
fn definitions(old: Option<&Value>, new: Option<&Value>, at: &Pointer, changes: &mut Vec<Change>) {
    let get = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
    let names =
        |value: Option<&Value>| value.and_then(Value::as_object).map(|map| map.keys().cloned().collect::<Vec<_>>());
    let mut all: Vec<String> = names(old).into_iter().chain(names(new)).flatten().collect();
    all.sort();
    all.dedup();
    for name in all {
        match (get(old, &name), get(new, &name)) {
            (Some(old), Some(new)) => schemas(&old, &new, &at.child(&name), changes),
            (old, new) => {
                let rule = if old.is_none() { "definition-added" } else { "definition-removed" };
                changes.push(change(rule, at.child(&name), Effect::Neutral, old.as_ref(), new.as_ref()));
            }
        }
    }
}
