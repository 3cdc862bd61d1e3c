//! RFC 0024 §8: what strangers try with schemas and mappings, row by row of the list of attacks (E5).

use crate::mappings::read;
use crate::random::{Chance, document, mapping};
use schema::{Mapping, Validator};
use serde_json::{Value, json};
use std::time::Instant;

fn plain() -> Value {
    let edition = |version: &str| json!({"schema": "https://schemas.example/a.json", "version": version});
    json!({
        "mapping_id": "urn:oap:mapping:a", "source": edition("1.0"), "destination": edition("1.1"),
        "directionality": "unidirectional", "rules": [],
    })
}

#[track_caller]
fn refused(mapping: &Value, code: &str, at: &str) {
    let refusal = read(mapping).unwrap_err();
    assert_eq!((refusal.code.name(), refusal.at.as_str()), (code, at), "{refusal}");
}

/// E5.3: code where a function belongs.
#[test]
fn functions_outside_the_list_are_refused() {
    for name in ["eval", "regex_replace", "repeat", "Multiply", "jsonata", ""] {
        let mut convert = plain();
        convert["rules"] = json!([{"op": "convert", "from": "/a", "to": "/b", "fn": name}]);
        refused(&convert, "mapping_function_unknown", "/rules/0/fn");
        let mut derived = plain();
        derived["derived"] = json!([{"to": "/b", "fn": name, "from": ["/a"]}]);
        refused(&derived, "mapping_function_unknown", "/derived/0/fn");
    }
    let mut wrapped = plain();
    wrapped["rules"] = json!([{"op": "convert", "from": "/a", "to": "/b", "fn": "multiply", "args": {"by": 1e12}}]);
    refused(&wrapped, "invalid_value", "/rules/0/args/by");
}

/// E5.3: a translation stays in proportion to its source.
#[test]
fn a_translation_has_at_most_four_times_its_source() {
    let big = "x".repeat(60_000);
    let mut constant = plain();
    constant["rules"] = json!([{"op": "each", "from": "/l", "to": "/l", "body": {"rules": [], "constants": [{"to": "/c", "value": big}]}}]);
    let mut prefix = plain();
    let long = "y".repeat(256);
    prefix["rules"] = json!([{"op": "each", "from": "/l", "to": "/l", "body": {"rules": [{"op": "convert", "from": "", "to": "/a", "fn": "add_prefix", "args": {"text": long}}]}}]);
    let mut copies = plain();
    let copy = |number: usize| json!({"op": "copy", "from": "/l", "to": format!("/c{number}")});
    copies["rules"] = (0..200).map(copy).collect();
    let source = json!({"l": vec!["a"; 2_000]});
    for mapping in [constant, prefix, copies] {
        let refusal = read(&mapping).unwrap().translate(&source).unwrap_err();
        assert_eq!(refusal.code.name(), "mapping_output_too_large");
        assert_eq!(refusal.limit.unwrap().name, "mapping.output_bytes");
    }
}

/// E5.3, E5.4: bounded in rules, levels, places and entries.
#[test]
fn oversized_mappings_are_refused() {
    let mut many = plain();
    many["rules"] = (0..257).map(|number| json!({"op": "copy", "from": "/a", "to": format!("/b{number}")})).collect();
    refused(&many, "mapping_too_large", "/rules/256");

    let mut deep = plain();
    let mut body = json!({"rules": []});
    for _ in 0..8 {
        body = json!({"rules": [{"op": "each", "from": "/l", "to": "/l", "body": body}]});
    }
    deep["rules"] = body["rules"].clone();
    assert_eq!(read(&deep).unwrap_err().code.name(), "mapping_too_large");

    let mut long = plain();
    long["rules"] = json!([{"op": "copy", "from": "/a".repeat(300), "to": "/b"}]);
    refused(&long, "mapping_too_large", "/rules/0/from");
    long["rules"] = json!([{"op": "copy", "from": "/a".repeat(33), "to": "/b"}]);
    refused(&long, "mapping_too_large", "/rules/0/from");

    let mut entries = plain();
    entries["rules"] =
        json!([{"op": "enum", "from": "/a", "to": "/a", "map": (0..257).map(|n| json!([n, n])).collect::<Vec<_>>()}]);
    refused(&entries, "mapping_too_large", "/rules/0/map");

    let bytes = format!("{{\"mapping_id\":\"{}\"}}", "x".repeat(300_000));
    assert_eq!(Mapping::parse(bytes.as_bytes()).unwrap_err().code.name(), "json_too_large");
}

/// E5.4: chains that come round.
#[test]
fn a_composed_mapping_comes_to_no_version_twice() {
    let step = |from: &str, to: &str| {
        let edition = |version: &str| json!({"schema": "https://schemas.example/a.json", "version": version});
        json!({"source": edition(from), "destination": edition(to), "rules": []})
    };
    let mut round = plain();
    round.as_object_mut().unwrap().remove("rules");
    round["steps"] = json!([step("1.0", "1.1"), step("1.1", "1.0"), step("1.0", "1.1")]);
    refused(&round, "mapping_cycle", "/steps/1");
    round["steps"] = json!([step("1.0", "1.2"), step("1.1", "1.1")]);
    refused(&round, "mapping_route_missing", "/steps/1");
    round["steps"] = json!([step("1.0", "1.2")]);
    refused(&round, "mapping_route_missing", "/steps");
    round["steps"] = (0..5).map(|n| step(&format!("2.{n}"), &format!("2.{}", n + 1))).collect();
    refused(&round, "mapping_too_large", "/steps");
}

/// E5.5: what calls itself bidirectional is, on ten thousand documents, or it is refused when it is read.
#[test]
fn no_mapping_lies_about_its_way_back() {
    let (mut documents, mut seed) = (0, 0);
    while documents < 10_000 {
        seed += 1;
        let mut chance = Chance(seed * 7_919);
        let Ok(mapping) = read(&mapping(&mut chance, "1.0", "1.1")) else { continue };
        let back = mapping.invert().unwrap();
        for _ in 0..4 {
            documents += 1;
            let source = document(&mut chance, 2);
            let Ok(there) = mapping.translate(&source) else { continue };
            let Ok(again) = back.translate(&there.document) else { continue };
            if there.losses.is_empty() && again.losses.is_empty() {
                let bytes = json::canonical_value;
                assert_eq!(bytes(&again.document), bytes(&source), "{}", mapping.to_value());
            }
        }
    }
}

/// E5.10: schemas that only serve to keep a validator busy.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is the question")]
fn bomb_schemas_are_refused_at_once() {
    let mut doubling = json!({"$defs": {"d0": {"type": "string"}}, "$ref": "#/$defs/d40"});
    let mut all = doubling.clone();
    for level in 1..=40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        doubling["$defs"][format!("d{level}")] = json!({"anyOf": [below, below]});
        all["$defs"][format!("d{level}")] = json!({"allOf": [below, below]});
    }
    let mut deep = json!({});
    for _ in 0..80 {
        deep = json!({"not": deep});
    }
    let branch = json!({"properties": {"a": {"$ref": "#"}}});
    let bombs = [
        json!({"$ref": "https://elsewhere.example/schema.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"properties": {"a": {"$ref": "other.json#/a"}}}),
        json!({"$ref": "#/nowhere"}),
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}),
        json!({"$dynamicRef": "#meta", "$dynamicAnchor": "meta"}),
        json!({"$recursiveRef": "#"}),
        json!({"pattern": "a".repeat(1_001)}),
        json!({"patternProperties": {"a".repeat(1_001): true}}),
        json!({"anyOf": vec![json!({"type": "string"}); 10_001]}),
        json!({"anyOf": [branch, branch]}),
        json!({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}),
        json!({"allOf": [{"additionalProperties": {"$ref": "#"}}, {"patternProperties": {"x": {"$ref": "#"}}}]}),
        doubling,
        all,
        deep,
    ];
    for bomb in bombs {
        let start = Instant::now();
        let refusal = Validator::compile(&bomb).unwrap_err();
        assert_eq!(refusal.code.name(), "schema_too_complex", "{}", bomb.to_string().get(..80).unwrap_or_default());
        // Far beyond what it takes, since tests run side by side and unoptimised.
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
    // What people write passes.
    let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "list": {"items": {"$ref": "#"}}}});
    assert!(Validator::compile(&tree).unwrap().is_valid(&json!({"left": {"right": {}}})));
}

/// E5.10: patterns that hurt backtracking engines, and numbers that hurt arithmetic.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is the question")]
fn hostile_patterns_and_numbers_end() {
    let start = Instant::now();
    let validator =
        Validator::compile(&json!({"pattern": "^(a+)+$", "multipleOf": 1e-308, "uniqueItems": true})).unwrap();
    assert!(!validator.is_valid(&json!(format!("{}!", "a".repeat(50_000)))));
    validator.is_valid(&json!(9_007_199_254_740_991_i64));
    validator.is_valid(&(0..2_000).collect::<Value>());
    assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    assert_eq!(Validator::compile(&json!({"pattern": "(?=a)b"})).unwrap_err().code.name(), "schema_invalid");
}
