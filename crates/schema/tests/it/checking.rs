//! RFC 0024 §3.4: verdicts about two schemas, each with its proof or its document.

use crate::random::{Chance, random_schema};
use proptest::prelude::*;
use schema::{Sampler, Undeclared, Validator, Verdict, additive, check, compare, infer, proves};
use serde_json::{Value, json};

#[track_caller]
fn verdict(from: Value, to: Value, expected: &str) {
    let verdict = check(&from, &to, Undeclared::Strict).unwrap();
    assert_eq!(verdict.name(), expected, "{from} to {to}: {verdict:?}");
    if let Verdict::Broken { counterexample, .. } = verdict {
        assert!(Validator::compile(&from).unwrap().is_valid(&counterexample));
        assert!(!Validator::compile(&to).unwrap().is_valid(&counterexample));
    }
}

#[test]
fn what_is_narrower_conforms_to_what_is_wider() {
    for (narrow, wide) in [
        (json!({"type": "integer"}), json!({"type": "number"})),
        (json!({"enum": [1, "a"]}), json!({"type": ["integer", "string"]})),
        (json!({"const": 5}), json!({"minimum": 5, "multipleOf": 5})),
        (json!({"type": "integer", "minimum": 2}), json!({"type": "integer", "exclusiveMinimum": 1})),
        (json!({"maxLength": 3, "type": "string"}), json!({"maxLength": 4})),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}),
            json!({"items": {"type": "number"}, "contains": {"type": "number"}}),
        ),
        (json!({"multipleOf": 6}), json!({"multipleOf": 3})),
        (
            json!({"required": ["a", "b"]}),
            json!({"required": ["a"], "type": ["object", "array", "string", "number", "boolean", "null"]}),
        ),
        (
            json!({"type": "object", "required": ["k"], "properties": {"k": {"const": "a"}}}),
            json!({"oneOf": [{"required": ["k"], "properties": {"k": {"const": "a"}}}, {"required": ["k"], "properties": {"k": {"const": "b"}}}]}),
        ),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), json!({"type": ["string", "number"]})),
        (json!({"type": ["string", "integer"]}), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        (json!({"type": "string"}), json!({"not": {"type": "integer"}})),
        (
            json!({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}),
            json!({"properties": {"a": {"type": "number"}}}),
        ),
        (
            json!({"properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}}),
            json!({"properties": {"next": {"$ref": "#"}, "v": {"type": "number"}}}),
        ),
        (
            json!({"additionalProperties": false, "properties": {"a": {}}, "type": "object"}),
            json!({"propertyNames": {"maxLength": 1}, "maxProperties": 1}),
        ),
        (
            json!({"patternProperties": {"^x": {"type": "integer"}}}),
            json!({"patternProperties": {"^x": {"type": "number"}}}),
        ),
        (
            json!({"pattern": "^a", "format": "uri", "if": {"minLength": 1}, "then": {"maxLength": 9}}),
            json!({"pattern": "^a", "format": "uri", "if": {"minLength": 1}, "then": {"maxLength": 9}}),
        ),
        (json!(false), json!({"type": "string"})),
        (json!({"type": "string"}), json!(true)),
        (
            json!({"uniqueItems": true, "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
            json!({"prefixItems": [true, {"type": "number"}], "uniqueItems": true}),
        ),
        (json!({"dependentRequired": {"a": ["b", "c"]}}), json!({"dependentRequired": {"a": ["b"]}})),
    ] {
        verdict(narrow, wide, "compatible");
    }
}

#[test]
fn what_breaks_is_shown_by_a_document() {
    for (from, to) in [
        (json!({"type": "number"}), json!({"type": "integer"})),
        (json!({"properties": {"a": {}}}), json!({"properties": {"a": {}}, "required": ["a"]})),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]})),
        (json!({"type": "string"}), json!({"type": "string", "maxLength": 5})),
        (json!({"type": "object"}), json!({"type": "object", "additionalProperties": false, "properties": {"a": {}}})),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"oneOf": [{"type": "string"}, {"minLength": 0}]}),
        ),
        (
            json!({"items": {"properties": {"x": {"type": "integer"}}}, "type": "array"}),
            json!({"items": {"properties": {"x": {"type": "string"}}}}),
        ),
        (
            json!({"type": "string", "pattern": "^urn:[a-z]+:.+$"}),
            json!({"type": "string", "pattern": "^urn:[a-z]+:[0-9]+$"}),
        ),
        (json!(true), json!({"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a"})),
        (json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "string"}), json!({"type": "integer"})),
    ] {
        verdict(from, to, "broken");
    }
}

#[test]
fn what_cannot_be_decided_is_said_to_be_unknown_with_its_reason() {
    let from = json!({"type": "string", "pattern": "^a{3}$"});
    let Verdict::Unknown { reasons } =
        check(&from, &json!({"type": "string", "pattern": "^aaa$"}), Undeclared::Strict).unwrap()
    else {
        panic!("decided");
    };
    assert_eq!(reasons[0].rule, "pattern");
}

#[test]
fn an_added_optional_member_is_compatible_only_for_the_tolerant() {
    let old = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let new = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    assert_eq!(check(&old, &new, Undeclared::Strict).unwrap().name(), "broken");
    assert_eq!(check(&old, &new, Undeclared::Tolerant).unwrap().name(), "compatible");
    assert_eq!(check(&new, &old, Undeclared::Tolerant).unwrap().name(), "compatible");
}

#[test]
fn every_change_has_its_rule_and_effect() {
    let old = json!({"type": ["string", "null"], "minimum": 1, "required": ["a"], "enum": [1], "properties": {"a": {"type": "string"}, "z": {}}, "title": "x"});
    let new = json!({"type": "string", "minimum": 2, "required": ["b"], "enum": [1, 2], "properties": {"a": {"type": "string", "maxLength": 3}, "b": {}}, "additionalProperties": false});
    let found: Vec<String> = compare(&old, &new)
        .iter()
        .map(|change| format!("{} {} {}", change.rule, change.at, change.effect.name()))
        .collect();
    assert_eq!(
        found,
        [
            "additional-properties-closed /additionalProperties narrows",
            "enum-value-added /enum widens",
            "minimum-raised /minimum narrows",
            "max-length-added /properties/a/maxLength narrows",
            "property-removed /properties/z either",
            "property-added /properties/b either",
            "required-added /required narrows",
            "required-removed /required widens",
            "annotation-changed /title neutral",
            "type-removed /type narrows",
        ]
    );
    assert!(additive(&old, &old).is_ok());
}

#[test]
fn a_draft_asks_what_it_cannot_know() {
    let old = json!({"type": "object", "properties": {
        "latency": {"type": "integer"}, "risk": {"enum": ["low", "high"]}, "gone": {"type": "boolean"},
        "actions": {"type": "array", "items": {"type": "object", "properties": {"rate_per_minute": {"type": "integer"}}}},
    }});
    let new = json!({"type": "object", "required": ["owner"], "properties": {
        "latency_ms": {"type": "integer"}, "risk": {"enum": ["minimal", "high"]}, "owner": {"type": "string"},
        "actions": {"type": "array", "items": {"type": "object", "properties": {"rate_minute": {"type": "integer"}}}},
    }});
    let draft = infer(&old, &new);
    assert_eq!(
        draft.body,
        json!({
            "rules": [
                {"op": "each", "from": "/actions", "to": "/actions", "body": {"rules": [{"op": "rename", "from": "/rate_per_minute", "to": "rate_minute"}], "constants": [], "unset": [], "passthrough": true}},
                {"op": "rename", "from": "/latency", "to": "latency_ms"},
                {"op": "enum", "from": "/risk", "to": "/risk", "map": [["low", "minimal"], ["high", "high"]]},
            ],
            "unset": ["/gone"],
            "passthrough": true,
        })
    );
    let places: Vec<&str> = draft.questions.iter().map(|question| question.at.as_str()).collect();
    assert_eq!(places, ["/actions/*/rate_minute", "/gone", "/latency_ms", "/risk", "/owner"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_refutes_what_was_proved(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        let from = random_schema(&mut chance, 3);
        let to = random_schema(&mut chance, 2);
        // Half of the pairs are alike, so that there is something to prove.
        let to = if chance.below(2) == 0 { json!({"anyOf": [to, from]}) } else { to };
        if proves(&from, &to, Undeclared::Strict) {
            let (Ok(one), Ok(other)) = (Validator::compile(&from), Validator::compile(&to)) else { return Ok(()) };
            let mut sampler = Sampler::new(seed, &[&from, &to], true);
            for round in 0..60 {
                let document = if round % 2 == 0 { sampler.document(&from) } else { sampler.any(3) };
                prop_assert!(
                    !one.is_valid(&document) || other.is_valid(&document),
                    "{} refutes {} to {}", document, from, to
                );
            }
        }
    }

    #[test]
    fn a_counterexample_is_one(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        let (from, to) = (random_schema(&mut chance, 2), random_schema(&mut chance, 2));
        if chance.below(16) == 0
            && let Ok(Verdict::Broken { counterexample, .. }) = check(&from, &to, Undeclared::Strict)
        {
            prop_assert!(Validator::compile(&from).unwrap().is_valid(&counterexample));
            prop_assert!(!Validator::compile(&to).unwrap().is_valid(&counterexample));
        }
    }
}
