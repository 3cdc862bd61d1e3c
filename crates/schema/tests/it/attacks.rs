//! RFC 0024 §8: what strangers try with schemas and mappings (E5), where data cannot say it.
//!
//! The rest is `conformance/schema/attacks.json` and its neighbours; `conformance/attacks/e5.json` lists the rows.

use crate::mappings::read;
use crate::random::{Chance, document, mapping};
use schema::{Mapping, Validator};
use serde_json::{Value, json};
use std::time::Instant;

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

/// E5.3: a mapping has so many bytes and no more.
#[test]
fn the_bytes_of_a_mapping_are_bounded() {
    let bytes = format!("{{\"mapping_id\":\"{}\"}}", "x".repeat(300_000));
    let refusal = Mapping::parse(bytes.as_bytes()).unwrap_err();
    assert_eq!((refusal.code.name(), refusal.limit.unwrap().name.as_str()), ("json_too_large", "mapping.bytes"));
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
