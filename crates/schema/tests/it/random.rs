//! RFC 0024 §3.3 and §3.4: random documents, mappings between them, and schemas.

use serde_json::{Map, Value, json};

/// A source of choices; the same seed gives the same ones.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }

    pub(crate) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "kind", "list"];

pub(crate) fn scalar(chance: &mut Chance) -> Value {
    let texts = ["x", "y", "true", "1", "1.50", "a,b", "", "urn:x", "0.3.0", "0.3", "2026-01-01T00:00:00Z"];
    match chance.below(6) {
        0 => Value::Null,
        1 => json!(chance.one_in(2)),
        2 => json!(chance.below(100) as i64 - 50),
        3 => json!(chance.below(100) as f64 / 8.0),
        _ => json!(chance.pick(&texts)),
    }
}

pub(crate) fn document(chance: &mut Chance, depth: usize) -> Value {
    let mut members = Map::new();
    for _ in 0..chance.below(6) {
        members.insert(chance.pick(&NAMES).to_owned(), value(chance, depth));
    }
    Value::Object(members)
}

fn value(chance: &mut Chance, depth: usize) -> Value {
    match chance.below(5) {
        0 if depth > 0 => document(chance, depth - 1),
        1 if depth > 0 => (0..chance.below(4)).map(|_| value(chance, depth - 1)).collect(),
        _ => scalar(chance),
    }
}

fn path(chance: &mut Chance) -> String {
    match chance.below(8) {
        0..=3 => format!("/{}", chance.pick(&NAMES)),
        4..=5 => format!("/{}/{}", chance.pick(&NAMES), chance.pick(&NAMES)),
        6 => format!("/{}/0", chance.pick(&NAMES)),
        _ => format!("/{}/0/{}", chance.pick(&NAMES), chance.pick(&NAMES)),
    }
}

fn function(chance: &mut Chance) -> (Value, Option<Value>) {
    chance.pick(&[
        (json!("number_to_string"), None),
        (json!("string_to_number"), None),
        (json!("string_to_boolean"), None),
        (json!("negate"), None),
        (json!("multiply"), Some(json!({"by": 60}))),
        (json!("divide"), Some(json!({"by": 7}))),
        (json!("decimal_scale"), Some(json!({"digits": -2}))),
        (json!("wrap_array"), None),
        (json!("first"), None),
        (json!("join"), Some(json!({"separator": ","}))),
        (json!("split"), Some(json!({"separator": ","}))),
        (json!("add_prefix"), Some(json!({"text": "urn:"}))),
        (json!("strip_prefix"), Some(json!({"text": "urn:"}))),
        (json!("major_minor"), None),
        (json!("timestamp_to_seconds"), None),
    ])
}

fn rule(chance: &mut Chance, depth: usize) -> Value {
    let (from, to) = (path(chance), path(chance));
    let mut rule = match chance.below(9) {
        0 => json!({"op": "copy", "from": from, "to": to}),
        1 | 2 => json!({"op": "move", "from": from, "to": to}),
        3 => json!({"op": "rename", "from": from, "to": chance.pick(&NAMES)}),
        4 => {
            let map = [json!([["x", "y"], ["y", 1], ["true", "y"]]), json!([[true, "x"], [false, "y"]])];
            json!({"op": "enum", "from": from, "to": to, "map": chance.pick(&map)})
        }
        5 | 6 => {
            let (name, arguments) = function(chance);
            let mut rule = json!({"op": "convert", "from": from, "to": to, "fn": name});
            if let Some(arguments) = arguments {
                rule["args"] = arguments;
            }
            rule
        }
        7 if depth > 0 => {
            let mut rule = json!({"op": "each", "from": from, "to": to, "body": body(chance, depth - 1)});
            match chance.below(4) {
                0 => rule["over"] = json!("members"),
                1 => rule["to_index"] = json!(1),
                2 => rule["from_index"] = json!(1),
                _ => {}
            }
            rule
        }
        _ => {
            let direction = chance.pick(&["tag_to_member", "member_to_tag"]);
            let cases = json!([{"tag": "x", "member": "a", "body": {"rules": [{"op": "rename", "from": "/b", "to": "c"}], "passthrough": true}}, {"tag": "y", "member": "b"}]);
            json!({"op": "variant", "from": from, "to": to, "direction": direction, "tag": "kind", "cases": cases})
        }
    };
    let takes_default = ["copy", "move", "rename", "enum"].contains(&rule["op"].as_str().unwrap());
    if takes_default && chance.one_in(4) {
        rule["default"] = scalar(chance);
    }
    rule
}

fn body(chance: &mut Chance, depth: usize) -> Value {
    let mut body = json!({"rules": (0..chance.below(4)).map(|_| rule(chance, depth)).collect::<Vec<_>>()});
    body["passthrough"] = json!(!chance.one_in(3));
    if chance.one_in(3) {
        let mut constant = json!({"to": path(chance), "value": value(chance, 1)});
        if chance.one_in(2) {
            constant["when_absent"] = json!(true);
        }
        body["constants"] = json!([constant]);
    }
    if chance.one_in(3) {
        let unset = path(chance);
        body["unset"] = if chance.one_in(2) { json!([unset]) } else { json!([{"at": unset, "value": scalar(chance)}]) };
    }
    if chance.one_in(4) {
        let (to, one, other) = (path(chance), path(chance), path(chance));
        body["derived"] =
            json!([{"to": to, "fn": chance.pick(&["concat", "first_present", "count"]), "from": [one, other]}]);
    }
    body
}

/// A mapping that may well be refused.
pub(crate) fn mapping(chance: &mut Chance, from: &str, to: &str) -> Value {
    let mut mapping = body(chance, 2);
    let schema = "https://schemas.example/thing.json";
    mapping["mapping_id"] = json!(format!("urn:oap:mapping:thing-{from}-to-{to}"));
    mapping["source"] = json!({"schema": schema, "version": from});
    mapping["destination"] = json!({"schema": schema, "version": to});
    mapping["directionality"] = json!("bidirectional");
    mapping
}

/// A random schema over the keywords of the JSON Schema Test Suite.
pub(crate) fn random_schema(chance: &mut Chance, depth: usize) -> Value {
    if chance.below(12) == 0 {
        return json!(chance.below(4) != 0);
    }
    let mut schema = json!({});
    for _ in 0..1 + chance.below(3) {
        let (name, operand) = random_keyword(chance, depth);
        schema[name] = operand;
    }
    schema
}

fn random_keyword(chance: &mut Chance, depth: usize) -> (&'static str, Value) {
    let small = chance.below(4);
    let names = ["a", "b", "c"];
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let values = [json!(1), json!("a"), json!(null), json!([]), json!({"a": 1}), json!(2.5), json!(true), json!("aa")];
    if depth > 0 && chance.below(2) == 0 {
        let one = random_schema(chance, depth - 1);
        let other = random_schema(chance, depth - 1);
        let name = chance.pick(&names);
        return match chance.below(20) {
            0 => ("allOf", json!([one, other])),
            1 | 2 => ("anyOf", json!([one, other])),
            3 | 4 => ("oneOf", json!([one, other])),
            5 => ("not", one),
            6 => ("if", one),
            7 => ("then", one),
            8 => ("else", one),
            9..=11 => ("properties", json!({name: one, "b": other})),
            12 => ("additionalProperties", one),
            13 => ("patternProperties", json!({"^a": one})),
            14 => ("items", one),
            15 => ("prefixItems", json!([one, other])),
            16 => ("contains", one),
            17 => ("propertyNames", one),
            18 => ("dependentSchemas", json!({name: one})),
            _ => ("unevaluatedProperties", one),
        };
    }
    match chance.below(22) {
        0..=3 => ("type", json!(chance.pick(&types))),
        4 => ("type", json!(["integer", chance.pick(&["string", "object", "array"])])),
        5 => ("const", chance.pick(&values)),
        6 | 7 => ("enum", json!([chance.pick(&values), chance.pick(&values)])),
        8 => ("minimum", json!(small)),
        9 => ("maximum", json!(small)),
        10 => ("exclusiveMinimum", json!(small)),
        11 => ("multipleOf", chance.pick(&[json!(1), json!(2), json!(0.5), json!(4)])),
        12 => ("minLength", json!(small)),
        13 => ("maxLength", json!(small)),
        14 => ("minItems", json!(small)),
        15 => ("maxItems", json!(small)),
        16 => ("uniqueItems", json!(chance.below(2) == 0)),
        17 => ("minProperties", json!(small)),
        18 => ("maxProperties", json!(small)),
        19 => ("required", json!([chance.pick(&names)])),
        20 => ("dependentRequired", json!({chance.pick(&names): [chance.pick(&names)]})),
        _ => chance.pick(&[
            ("pattern", json!("^a")),
            ("minContains", json!(small)),
            ("maxContains", json!(small)),
            ("format", json!("date")),
        ]),
    }
}
