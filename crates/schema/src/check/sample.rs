//! RFC 0024 §3.4: documents that probably conform to a schema, to look for one that does not conform to another.
//!
//! Nothing here is random: the same seed makes the same documents in the same order.

use super::facts::{ALL, ARRAY, BOOLEAN, FRACTION, Fact, Facts, Kinds, NULL, OBJECT, STRING, WHOLE};
use crate::dialect::{Root, children};
use json::{Map, Value, json};

/// Members and elements within members and elements.
const DEPTH_MAX: usize = 6;

/// Makes documents.
#[derive(Clone, Debug)]
pub struct Sampler {
    state: u64,
    /// Values that some schema names.
    pool: Vec<Value>,
    names: Vec<String>,
    /// Whether members that nobody declares are made.
    undeclared: bool,
}

impl Sampler {
    /// A sampler that knows the values and names of these schemas.
    pub fn new(seed: u64, schemas: &[&Value], undeclared: bool) -> Self {
        let mut sampler = Self { state: seed, pool: Vec::new(), names: vec!["other".to_owned()], undeclared };
        schemas.iter().for_each(|schema| sampler.collect(schema, 0));
        sampler
    }

    fn collect(&mut self, schema: &Value, depth: usize) {
        if depth > 64 {
            return;
        }
        let listed = ["enum", "examples"].iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
        self.pool.extend(listed.chain(["const", "default"].iter().filter_map(|name| schema.get(name))).cloned());
        for name in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            if let Some(number) = schema.get(name).and_then(Value::as_f64) {
                let near = [number, number - 1.0, number + 1.0, number + 0.5, number * 2.0];
                self.pool.extend(near.into_iter().filter_map(tidy));
            }
        }
        for name in ["minLength", "maxLength"] {
            if let Some(length) = schema.get(name).and_then(Value::as_u64).filter(|length| *length < 10_000) {
                let lengths = [length.saturating_sub(1), length, length + 1];
                self.pool.extend(lengths.map(|length| json!("x".repeat(length as usize))));
            }
        }
        let members = ["properties", "dependentSchemas"].iter().filter_map(|name| schema.get(name)?.as_object());
        self.names.extend(members.flat_map(|map| map.keys().cloned()));
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        self.names.extend(required.filter_map(Value::as_str).map(str::to_owned));
        children(schema).for_each(|child| self.collect(child, depth + 1));
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let position = self.below(choices.len());
        choices.get(position).cloned()
    }

    /// A document that probably conforms.
    pub fn document(&mut self, schema: &Value) -> Value {
        let root = Root::of(schema);
        self.value(Facts::of([Fact::new(schema, &root)]), 0)
    }

    /// A document that knows nothing of any schema but its words.
    pub fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 | 1 => self.scalar(ALL),
            2 | 3 => self.pick(&self.pool.clone()).unwrap_or(Value::Null),
            4 => (0..self.below(4)).map(|_| self.any(depth - 1)).collect(),
            _ => {
                let mut members = Map::new();
                for _ in 0..self.below(4) {
                    if let Some(name) = self.pick(&self.names.clone()) {
                        members.insert(name, self.any(depth - 1));
                    }
                }
                Value::Object(members)
            }
        }
    }

    fn value(&mut self, mut facts: Facts<'_>, depth: usize) -> Value {
        self.choose(&mut facts, depth);
        if let Some(values) = facts.values().filter(|values| !values.is_empty()) {
            return self.pick(&values).cloned().unwrap_or(Value::Null);
        }
        let kinds = facts.kinds();
        let named: Vec<&Value> = self.pool.iter().filter(|value| super::facts::kind(value) & kinds != 0).collect();
        if !named.is_empty() && self.state.is_multiple_of(3) {
            let position = (self.state >> 8) as usize % named.len();
            let value = named.get(position).map(|value| (*value).clone());
            self.below(2);
            return value.unwrap_or(Value::Null);
        }
        let bits: Vec<Kinds> = (0..7).map(|bit| 1 << bit).filter(|bit| kinds & bit != 0).collect();
        match self.pick(&bits) {
            Some(OBJECT) => self.object(&facts, depth),
            Some(ARRAY) => self.array(&facts, depth),
            Some(STRING) => self.string(&facts),
            Some(kind @ (WHOLE | FRACTION)) => self.number(&facts, kind),
            Some(kind) => self.scalar(kind),
            None => Value::Null,
        }
    }

    /// Takes one of each set of alternatives.
    fn choose(&mut self, facts: &mut Facts<'_>, depth: usize) {
        let mut position = 0;
        while let Some(fact) = facts.list.get(position).copied() {
            for name in ["anyOf", "oneOf"] {
                if let Some(branch) = fact
                    .get(name)
                    .and_then(Value::as_array)
                    .and_then(|list| self.pick(&list.iter().collect::<Vec<_>>()))
                {
                    facts.add(Fact::new(branch, fact.root));
                }
            }
            if fact.get("if").is_some() {
                let names: &[&str] = if self.one_in(2) { &["if", "then"] } else { &["else"] };
                let branches: Vec<&Value> = names.iter().filter_map(|name| fact.get(name)).collect();
                branches.into_iter().for_each(|branch| facts.add(Fact::new(branch, fact.root)));
            }
            position += 1;
            if position > 64 + depth {
                break;
            }
        }
    }

    fn object(&mut self, facts: &Facts<'_>, depth: usize) -> Value {
        let mut members = Map::new();
        let required: Vec<String> = facts.required().map(str::to_owned).collect();
        let sparse = depth >= DEPTH_MAX || self.one_in(3);
        let optional: Vec<String> = facts.declared().into_iter().map(str::to_owned).collect();
        for name in optional.into_iter().chain(required.iter().cloned()) {
            let wanted = required.contains(&name) || (!sparse && !self.one_in(3));
            let known = facts.member(&name, super::Undeclared::Strict);
            if wanted && !members.contains_key(&name) && !known.is_empty() && depth < DEPTH_MAX * 3 {
                let value = self.value(known, depth + 1);
                members.insert(name, value);
            }
        }
        let others = facts.others(None, super::Undeclared::Strict);
        let described = facts.list.iter().any(|fact| fact.get("properties").is_some());
        if !others.is_empty() && depth < DEPTH_MAX && (self.undeclared || !described) {
            for _ in 0..self.below(3) {
                let name = self.pick(&self.names.clone()).unwrap_or_default();
                if !members.contains_key(&name) {
                    let value = self.value(facts.member(&name, super::Undeclared::Strict), depth + 2);
                    members.insert(name, value);
                }
            }
        }
        Value::Object(members)
    }

    fn array(&mut self, facts: &Facts<'_>, depth: usize) -> Value {
        let least = facts.most("minItems").unwrap_or(0.0).min(20.0) as usize;
        let most = facts.least("maxItems").unwrap_or(least as f64 + 3.0).min(least as f64 + 4.0) as usize;
        let count = if depth >= DEPTH_MAX { least } else { least + self.below(most.saturating_sub(least) + 1) };
        (0..count).map(|index| self.value(facts.element(index), depth + 1)).collect()
    }

    fn number(&mut self, facts: &Facts<'_>, kind: Kinds) -> Value {
        let low = facts.most("minimum").or(facts.most("exclusiveMinimum").map(|low| low + 1.0));
        let high = facts.least("maximum").or(facts.least("exclusiveMaximum").map(|high| high - 1.0));
        let factor = facts.most("multipleOf").filter(|factor| *factor > 0.0);
        let base = match (low, high, self.below(3)) {
            (Some(low), _, 0) | (Some(low), None, _) => low + if self.one_in(2) { 0.0 } else { self.below(9) as f64 },
            (_, Some(high), _) => high - if self.one_in(2) { 0.0 } else { self.below(9) as f64 },
            _ => self.below(41) as f64 - 20.0,
        };
        let base = factor.map_or(base, |factor| (base / factor).ceil() * factor);
        let number = if kind == FRACTION && factor.is_none() { base.floor() + 0.5 } else { base };
        tidy(number).unwrap_or_else(|| json!(0))
    }

    fn string(&mut self, facts: &Facts<'_>) -> Value {
        let text = |name: &str| facts.list.iter().find_map(|fact| fact.get(name)?.as_str());
        if let Some(pattern) = text("pattern") {
            return json!(super::search::spelled(pattern, self.below(3)));
        }
        match text("format") {
            Some("date-time") => return json!("2026-06-01T12:00:00Z"),
            Some("date") => return json!("2026-06-01"),
            Some("uri" | "uri-reference" | "iri") => return json!("https://a.example/b"),
            Some("email") => return json!("desk@a.example"),
            _ => {}
        }
        let least = facts.most("minLength").unwrap_or(0.0).min(1e5) as usize;
        let most = facts.least("maxLength").map_or(least + 4, |most| most.min(1e5) as usize);
        let length = if self.one_in(3) { most } else { least + self.below(most.saturating_sub(least).min(4) + 1) };
        json!(self.pick(&["x", "a", "é"]).unwrap_or_default().repeat(length))
    }

    fn scalar(&mut self, kinds: Kinds) -> Value {
        let all = [
            (NULL, json!(null)),
            (BOOLEAN, json!(true)),
            (BOOLEAN, json!(false)),
            (WHOLE, json!(0)),
            (WHOLE, json!(1)),
            (WHOLE, json!(-7)),
            (FRACTION, json!(0.5)),
            (STRING, json!("")),
            (STRING, json!("x")),
            (ARRAY, json!([])),
            (OBJECT, json!({})),
        ];
        let fitting: Vec<Value> =
            all.into_iter().filter(|(kind, _)| kind & kinds != 0).map(|(_, value)| value).collect();
        self.pick(&fitting).unwrap_or(Value::Null)
    }

    /// A document that is a little different.
    pub(crate) fn changed(&mut self, value: &Value, depth: usize) -> Value {
        match value {
            Value::Object(members) if !members.is_empty() && (depth == 0 || !self.one_in(6)) => {
                let mut members = members.clone();
                let names: Vec<String> = members.keys().cloned().collect();
                let Some(name) = self.pick(&names) else { return value.clone() };
                match self.below(4) {
                    0 => {
                        members.remove(&name);
                    }
                    1 if self.undeclared => {
                        if let Some(name) = self.pick(&self.names.clone()) {
                            members.insert(name, self.any(1));
                        }
                    }
                    _ => {
                        let inner = members.get(&name).cloned().unwrap_or(Value::Null);
                        members.insert(name, self.changed(&inner, depth + 1));
                    }
                }
                Value::Object(members)
            }
            Value::Array(elements) if !elements.is_empty() && !self.one_in(6) => {
                let mut elements = elements.clone();
                let position = self.below(elements.len());
                match self.below(4) {
                    0 => {
                        elements.remove(position);
                    }
                    1 => {
                        let again = elements.get(position).cloned().unwrap_or(Value::Null);
                        elements.push(again);
                    }
                    _ => {
                        if let Some(element) = elements.get_mut(position) {
                            *element = self.changed(&element.clone(), depth + 1);
                        }
                    }
                }
                Value::Array(elements)
            }
            _ => {
                if self.undeclared || self.one_in(2) {
                    self.any(1)
                } else {
                    self.scalar(ALL & !OBJECT)
                }
            }
        }
    }
}

fn tidy(number: f64) -> Option<Value> {
    if !number.is_finite() || number.abs() > 9e15 {
        return None;
    }
    Some(if number.fract() == 0.0 { json!(number as i64) } else { json!(number) })
}
