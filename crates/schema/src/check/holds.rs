//! RFC 0024 §3.4: does one value conform? Yes, no, or not decided here.
//!
//! A validator would decide it, but only for whole schemas; this looks at any part of one.

use super::facts::{EXACT_MAX, exact, kind, kinds_of_type};
use crate::dialect::{ANNOTATIONS, Root};
use crate::value::same;
use json::Value;

/// References and schemas within schemas that are followed.
const DEPTH_MAX: usize = 32;

/// Whether a value conforms to a schema of a document.
pub(crate) fn holds(value: &Value, schema: &Value, root: &Root<'_>) -> Option<bool> {
    judge(value, schema, root, 0)
}

fn all(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut decided = Some(true);
    for verdict in verdicts {
        match verdict {
            Some(false) => return Some(false),
            Some(true) => {}
            None => decided = None,
        }
    }
    decided
}

fn any(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(verdicts.map(|verdict| verdict.map(|truth| !truth))).map(|truth| !truth)
}

fn judge(value: &Value, schema: &Value, root: &Root<'_>, depth: usize) -> Option<bool> {
    if depth > DEPTH_MAX {
        return None;
    }
    match schema {
        Value::Bool(truth) => Some(*truth),
        // Before 2019 a reference silences what stands beside it.
        Value::Object(keywords) if keywords.contains_key("$ref") && !root.dialect.knows("dependentRequired") => {
            keyword(value, "$ref", keywords.get("$ref")?, schema, root, depth + 1)
        }
        Value::Object(keywords) => {
            all(keywords.iter().map(|(name, operand)| keyword(value, name, operand, schema, root, depth + 1)))
        }
        _ => None,
    }
}

fn keyword(value: &Value, name: &str, operand: &Value, schema: &Value, root: &Root<'_>, depth: usize) -> Option<bool> {
    if !root.dialect.knows(name) {
        return None;
    }
    let below = |value: &Value, schema: &Value| judge(value, schema, root, depth);
    let list = || operand.as_array();
    let number = value.as_f64();
    // A bound beyond exact doubles is not decided, whatever the value.
    let bound = |fits: &dyn Fn(f64, f64) -> bool| match number {
        None => Some(true),
        Some(number) if number.abs() < EXACT_MAX => exact(Some(operand)).map(|bound| fits(number, bound)),
        Some(_) => None,
    };
    let count = |count: Option<usize>, fits: &dyn Fn(f64, f64) -> bool| match count {
        None => Some(true),
        Some(count) => exact(Some(operand)).map(|bound| fits(count as f64, bound)),
    };
    let characters = value.as_str().map(|text| text.chars().count());
    let (elements, members) = (value.as_array(), value.as_object());
    match name {
        "type" => kinds_of_type(operand).map(|kinds| kinds & kind(value) != 0),
        "const" => Some(same(value, operand)),
        "enum" => list().map(|values| values.iter().any(|known| same(known, value))),
        "minimum" => bound(&|number, bound| number >= bound),
        "maximum" => bound(&|number, bound| number <= bound),
        "exclusiveMinimum" => bound(&|number, bound| number > bound),
        "exclusiveMaximum" => bound(&|number, bound| number < bound),
        "multipleOf" => bound(&|number, factor| factor.fract() == 0.0 && number % factor == 0.0).and_then(|is| {
            let whole = number.is_none() || exact(Some(operand)).is_some_and(|factor| factor.fract() == 0.0);
            (is || whole).then_some(is)
        }),
        "minLength" => count(characters, &|count, bound| count >= bound),
        "maxLength" => count(characters, &|count, bound| count <= bound),
        "minItems" => count(elements.map(Vec::len), &|count, bound| count >= bound),
        "maxItems" => count(elements.map(Vec::len), &|count, bound| count <= bound),
        "minProperties" => count(members.map(|members| members.len()), &|count, bound| count >= bound),
        "maxProperties" => count(members.map(|members| members.len()), &|count, bound| count <= bound),
        "pattern" | "format" if value.is_string() => None,
        "pattern" | "format" => Some(true),
        "uniqueItems" => match (elements, operand) {
            (Some(elements), Value::Bool(true)) => {
                let repeats = |position: usize| {
                    elements
                        .iter()
                        .take(position)
                        .any(|other| elements.get(position).is_some_and(|this| same(this, other)))
                };
                Some(!(0..elements.len()).any(repeats))
            }
            _ => Some(true),
        },
        "required" => match members {
            Some(members) => {
                list().map(|names| names.iter().filter_map(Value::as_str).all(|name| members.contains_key(name)))
            }
            None => Some(true),
        },
        "properties" => match (members, operand) {
            (Some(members), Value::Object(schemas)) => {
                all(schemas.iter().filter_map(|(name, schema)| Some(below(members.get(name)?, schema))))
            }
            _ => Some(true),
        },
        "additionalProperties" => match members {
            Some(members) if schema.get("patternProperties").is_none() => {
                let declared = |name: &str| schema.get("properties").and_then(|map| map.get(name)).is_some();
                all(members.iter().filter(|(name, _)| !declared(name)).map(|(_, value)| below(value, operand)))
            }
            Some(members) if members.is_empty() => Some(true),
            Some(_) => None,
            None => Some(true),
        },
        "items" if !operand.is_array() => match elements {
            Some(elements) => {
                let first = schema.get("prefixItems").filter(|_| root.dialect.knows("prefixItems"));
                let first = first.and_then(Value::as_array).map_or(0, Vec::len);
                all(elements.iter().skip(first).map(|element| below(element, operand)))
            }
            None => Some(true),
        },
        "prefixItems" => match (elements, list()) {
            (Some(elements), Some(schemas)) => {
                all(elements.iter().zip(schemas).map(|(element, schema)| below(element, schema)))
            }
            _ => Some(true),
        },
        "allOf" => all(list()?.iter().map(|schema| below(value, schema))),
        "anyOf" => any(list()?.iter().map(|schema| below(value, schema))),
        "oneOf" => {
            let verdicts: Option<Vec<bool>> = list()?.iter().map(|schema| below(value, schema)).collect();
            verdicts.map(|verdicts| verdicts.iter().filter(|truth| **truth).count() == 1)
        }
        "not" => below(value, operand).map(|truth| !truth),
        "if" => {
            let branch = if below(value, operand)? { "then" } else { "else" };
            schema.get(branch).map_or(Some(true), |schema| below(value, schema))
        }
        "then" | "else" => Some(true),
        "$ref" => operand.as_str().and_then(|text| root.resolve(text)).and_then(|found| below(value, found)),
        name if ANNOTATIONS.contains(&name) => Some(true),
        _ => None,
    }
}
