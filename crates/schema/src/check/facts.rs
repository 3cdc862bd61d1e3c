//! RFC 0024 §3.4: what is known of a document that conforms: the schemas that it satisfies, all at once.

use super::Undeclared;
use crate::dialect::Root;
use json::Value;

/// Kinds of values, as bits; numbers without a fraction are a kind of their own.
pub(crate) type Kinds = u8;

pub(crate) const NULL: Kinds = 1;
pub(crate) const BOOLEAN: Kinds = 2;
pub(crate) const WHOLE: Kinds = 4;
pub(crate) const FRACTION: Kinds = 8;
pub(crate) const STRING: Kinds = 16;
pub(crate) const ARRAY: Kinds = 32;
pub(crate) const OBJECT: Kinds = 64;
pub(crate) const NUMBER: Kinds = WHOLE | FRACTION;
pub(crate) const ALL: Kinds = 127;

/// Beyond this doubles leave out integers, and comparing them proves nothing.
pub(crate) const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

pub(crate) fn kind(value: &Value) -> Kinds {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) => {
            let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            if whole { WHOLE } else { FRACTION }
        }
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// The kinds that a `type` allows; none when it is no `type`.
pub(crate) fn kinds_of_type(value: &Value) -> Option<Kinds> {
    match value {
        Value::String(name) => Some(match name.as_str() {
            "null" => NULL,
            "boolean" => BOOLEAN,
            "integer" => WHOLE,
            "number" => NUMBER,
            "string" => STRING,
            "array" => ARRAY,
            "object" => OBJECT,
            _ => return None,
        }),
        Value::Array(names) => names.iter().try_fold(0, |kinds, name| Some(kinds | kinds_of_type(name)?)),
        _ => None,
    }
}

/// A number that comparing is exact for.
pub(crate) fn exact(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64).filter(|number| number.abs() < EXACT_MAX)
}

/// One schema that the document satisfies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) root: &'a Root<'a>,
    /// Which of its alternatives have been taken apart already.
    pub(crate) split: u8,
}

pub(crate) const SPLIT_ANY: u8 = 1;
pub(crate) const SPLIT_ONE: u8 = 2;
pub(crate) const SPLIT_IF: u8 = 4;

impl<'a> Fact<'a> {
    pub(crate) fn new(schema: &'a Value, root: &'a Root<'a>) -> Self {
        Self { schema, root, split: 0 }
    }

    /// A keyword of the schema, where its dialect knows it.
    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        if self.root.dialect.knows(keyword) { self.schema.get(keyword) } else { None }
    }

    fn map(&self, keyword: &str) -> Option<&'a json::Map> {
        self.get(keyword).and_then(Value::as_object)
    }
}

/// Everything that is known of the document.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) list: Vec<Fact<'a>>,
    /// What kinds it can be, beside what the schemas say.
    pub(crate) kinds: Kinds,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(schemas: impl IntoIterator<Item = Fact<'a>>) -> Self {
        let mut facts = Self { list: Vec::new(), kinds: ALL };
        schemas.into_iter().for_each(|fact| facts.add(fact));
        facts
    }

    /// Adds a schema with all that it refers to and joins.
    pub(crate) fn add(&mut self, fact: Fact<'a>) {
        if self.list.iter().any(|known| std::ptr::eq(known.schema, fact.schema)) {
            return;
        }
        let reference = fact.get("$ref").and_then(Value::as_str);
        // Before 2019 what stands beside a reference says nothing.
        let alone = reference.is_some() && !fact.root.dialect.knows("dependentRequired");
        if !alone {
            self.list.push(fact);
        }
        if let Some(found) = reference.and_then(|reference| fact.root.resolve(reference)) {
            self.add(Fact::new(found, fact.root));
        }
        if !alone && let Some(Value::Array(all)) = fact.get("allOf") {
            all.iter().for_each(|schema| self.add(Fact::new(schema, fact.root)));
        }
    }

    pub(crate) fn with(&self, fact: Fact<'a>) -> Self {
        let mut facts = self.clone();
        facts.add(fact);
        facts
    }

    /// The kinds that the document can be.
    pub(crate) fn kinds(&self) -> Kinds {
        self.list.iter().fold(self.kinds, |kinds, fact| {
            let by_type = fact.get("type").and_then(kinds_of_type).unwrap_or(ALL);
            let by_enum = match fact.get("enum") {
                Some(Value::Array(values)) => values.iter().fold(0, |kinds, value| kinds | kind(value)),
                _ => ALL,
            };
            kinds & by_type & by_enum & fact.get("const").map_or(ALL, kind)
        })
    }

    /// Whether no document is like that, as far as it shows at once.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds() == 0 || self.list.iter().any(|fact| *fact.schema == Value::Bool(false))
    }

    /// The values it can be, where there are few.
    pub(crate) fn values(&self) -> Option<Vec<&'a Value>> {
        self.list.iter().find_map(|fact| match (fact.get("const"), fact.get("enum")) {
            (Some(value), _) => Some(vec![value]),
            (None, Some(Value::Array(values))) => Some(values.iter().collect()),
            _ => None,
        })
    }

    /// The greatest number that a keyword gives.
    pub(crate) fn most(&self, keyword: &str) -> Option<f64> {
        self.list.iter().filter_map(|fact| exact(fact.get(keyword))).reduce(f64::max)
    }

    /// The least.
    pub(crate) fn least(&self, keyword: &str) -> Option<f64> {
        self.list.iter().filter_map(|fact| exact(fact.get(keyword))).reduce(f64::min)
    }

    pub(crate) fn requires(&self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    pub(crate) fn required(&self) -> impl Iterator<Item = &'a str> {
        let lists = self.list.iter().filter_map(|fact| fact.get("required")?.as_array()).flatten();
        lists.filter_map(Value::as_str).collect::<Vec<_>>().into_iter()
    }

    /// The names of members that some schema declares.
    pub(crate) fn declared(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self
            .list
            .iter()
            .filter_map(|fact| fact.map("properties"))
            .flat_map(|map| map.keys())
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What is known of a member.
    pub(crate) fn member(&self, name: &str, undeclared: Undeclared) -> Self {
        let mut facts = Self { list: Vec::new(), kinds: ALL };
        let mut declared = false;
        for fact in &self.list {
            if let Some(schema) = fact.map("properties").and_then(|map| map.get(name)) {
                declared = true;
                facts.add(Fact::new(schema, fact.root));
            } else if fact.get("patternProperties").is_none()
                && let Some(schema) = fact.get("additionalProperties")
            {
                facts.add(Fact::new(schema, fact.root));
            }
        }
        if !declared && self.nobody_sends_more(undeclared) {
            facts.kinds = 0;
        }
        facts
    }

    /// What is known of members that nobody names; `patterns` are those that do not match their names.
    pub(crate) fn others(&self, patterns: Option<&Value>, undeclared: Undeclared) -> Self {
        let mut facts = Self { list: Vec::new(), kinds: ALL };
        for fact in &self.list {
            let ours = fact.map("patternProperties").map(|map| map.keys());
            let covered = |name: &String| patterns.and_then(|patterns| patterns.get(name)).is_some();
            if ours.is_none_or(|mut names| names.all(covered))
                && let Some(schema) = fact.get("additionalProperties")
            {
                facts.add(Fact::new(schema, fact.root));
            }
        }
        if self.nobody_sends_more(undeclared) {
            facts.kinds = 0;
        }
        facts
    }

    /// Whether undeclared members are taken to be absent: some are declared, and nothing speaks of others.
    fn nobody_sends_more(&self, undeclared: Undeclared) -> bool {
        let speaks = |fact: &Fact<'_>| {
            let others = [
                "patternProperties",
                "additionalProperties",
                "unevaluatedProperties",
                "dependentSchemas",
                "propertyNames",
            ];
            let open = [("anyOf", SPLIT_ANY), ("oneOf", SPLIT_ONE), ("if", SPLIT_IF)];
            others.iter().any(|name| fact.schema.get(name).is_some())
                || open.iter().any(|(name, bit)| fact.schema.get(name).is_some() && fact.split & bit == 0)
                || (fact.schema.get("$ref").is_some()
                    && fact
                        .schema
                        .get("$ref")
                        .and_then(Value::as_str)
                        .and_then(|text| fact.root.resolve(text))
                        .is_none())
                || fact.schema.get("$dynamicRef").is_some()
                || fact.schema.get("$recursiveRef").is_some()
        };
        undeclared == Undeclared::Tolerant
            && self.list.iter().any(|fact| fact.map("properties").is_some())
            && !self.list.iter().any(speaks)
    }

    /// What is known of the element at a place.
    pub(crate) fn element(&self, index: usize) -> Self {
        let mut facts = Self { list: Vec::new(), kinds: ALL };
        for fact in &self.list {
            let first = fact.get("prefixItems").and_then(Value::as_array);
            let by_place = first.and_then(|list| list.get(index));
            let rest = || fact.get("items").filter(|items| !items.is_array());
            if let Some(schema) = by_place.or_else(rest) {
                facts.add(Fact::new(schema, fact.root));
            }
        }
        facts
    }

    /// How many elements are described one by one.
    pub(crate) fn described(&self) -> usize {
        let lists = self.list.iter().filter_map(|fact| fact.get("prefixItems")?.as_array());
        lists.map(Vec::len).max().unwrap_or(0)
    }
}
