//! RFC 0024 §2 "A Schema is a JSON Schema document": what we know of one, keyword by keyword.
//!
//! INVARIANT: nothing is fetched. A reference that leads out of the document leads nowhere here.

use json::{Pointer, Value};

/// Which JSON Schema a document is written in, as far as meanings differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Draft 7: what stands beside `$ref` says nothing.
    Seven,
    /// Draft 2019-09: `items` may be a list.
    Nineteen,
    /// Draft 2020-12, and documents that do not say.
    Twenty,
    /// Older or unknown: nothing is concluded from it.
    Other,
}

impl Dialect {
    fn of(root: &Value) -> Self {
        match root.get("$schema").and_then(Value::as_str) {
            None => Self::Twenty,
            Some(name) if name.contains("draft/2020-12/schema") => Self::Twenty,
            Some(name) if name.contains("draft/2019-09/schema") => Self::Nineteen,
            Some(name) if name.contains("draft-07/schema") => Self::Seven,
            Some(_) => Self::Other,
        }
    }

    /// Whether a keyword constrains anything in this dialect.
    pub(crate) fn knows(self, keyword: &str) -> bool {
        match keyword {
            "prefixItems" => self == Self::Twenty,
            "dependentRequired"
            | "dependentSchemas"
            | "minContains"
            | "maxContains"
            | "unevaluatedProperties"
            | "unevaluatedItems" => matches!(self, Self::Twenty | Self::Nineteen),
            _ => self != Self::Other,
        }
    }
}

/// Keywords that describe and forbid nothing.
pub(crate) const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "version",
    "writeOnly",
];

/// Keywords whose value is one schema for the same or a smaller value.
pub(crate) const SCHEMA_KEYWORDS: &[&str] = &[
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas.
pub(crate) const LIST_KEYWORDS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value is a map of schemas.
pub(crate) const MAP_KEYWORDS: &[&str] =
    &["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// A schema document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root<'a> {
    pub(crate) value: &'a Value,
    pub(crate) dialect: Dialect,
    /// Whether references mean what their text says: no part of the document has a name of its own.
    plain: bool,
}

impl<'a> Root<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        let plain = !children(value).any(|child| renames(child, 0));
        Self { value, dialect: Dialect::of(value), plain }
    }

    /// Whether references mean what their text says, wherever they stand.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// What a reference inside the document leads to.
    pub(crate) fn resolve(&self, reference: &str) -> Option<&'a Value> {
        if !self.plain {
            return None;
        }
        let own = self.value.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let fragment = match reference.split_once('#') {
            Some((before, fragment)) if before.is_empty() || Some(before) == own => fragment,
            None if Some(reference) == own => "",
            _ => return None,
        };
        if fragment.is_empty() {
            return Some(self.value);
        }
        if !fragment.starts_with('/') {
            return anchored(self.value, fragment, 0);
        }
        let decoded = percent_decoded(fragment)?;
        Pointer::segments(&decoded).try_fold(self.value, |value, segment| {
            let segment = segment.ok()?;
            match value {
                Value::Object(members) => members.get(&segment),
                Value::Array(elements) => elements.get(Pointer::as_index(&segment)?),
                _ => None,
            }
        })
    }
}

/// The subschemas of a schema, one level down.
pub(crate) fn children(schema: &Value) -> impl Iterator<Item = &Value> {
    let single = SCHEMA_KEYWORDS.iter().filter_map(|name| schema.get(name));
    let lists = LIST_KEYWORDS.iter().chain(&["items"]).filter_map(|name| schema.get(name)?.as_array()).flatten();
    let maps = MAP_KEYWORDS.iter().filter_map(|name| schema.get(name)?.as_object()).flat_map(|map| map.values());
    single.chain(lists).chain(maps)
}

/// The subschemas of a schema, one level down, with their places.
pub(crate) fn placed_children<'a>(schema: &'a Value, at: &Pointer) -> impl Iterator<Item = (&'a Value, Pointer)> {
    let mut found: Vec<(&Value, Pointer)> = Vec::new();
    for name in SCHEMA_KEYWORDS.iter().chain(LIST_KEYWORDS) {
        match schema.get(name) {
            Some(Value::Array(list)) => {
                let at = at.child(name);
                found.extend(list.iter().enumerate().map(|(index, child)| (child, at.child(index))));
            }
            Some(child) => found.push((child, at.child(name))),
            None => {}
        }
    }
    for name in MAP_KEYWORDS {
        if let Some(Value::Object(map)) = schema.get(name) {
            let at = at.child(name);
            found.extend(map.iter().map(|(name, child)| (child, at.child(name))));
        }
    }
    found.into_iter()
}

/// Deeper than any schema that is read here.
const DEPTH_MAX: usize = 128;

fn renames(schema: &Value, depth: usize) -> bool {
    depth > DEPTH_MAX
        || ["$id", "id"].iter().any(|name| schema.get(name).is_some_and(Value::is_string))
        || children(schema).any(|child| renames(child, depth + 1))
}

fn anchored<'a>(schema: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if schema.get("$anchor").and_then(Value::as_str) == Some(name) {
        return Some(schema);
    }
    children(schema).find_map(|child| anchored(child, name, depth + 1))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
