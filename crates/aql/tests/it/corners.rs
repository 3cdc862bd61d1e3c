//! Corners that random questions hardly come by.

use crate::intent;
use aql::{Constraints, Intent, Limits, Refusal};
use json::{Document, Pointer, Value, json};

fn refused(intent: &Value) -> Refusal {
    Intent::parse(intent.to_string().as_bytes(), &Limits::STANDARD).unwrap_err()
}

#[test]
fn a_question_is_a_conjunction_when_every_leaf_must_hold() {
    let leaf = json!({"path": "/a", "operator": "eq", "value": 1});
    let cases = [
        (leaf.clone(), true),
        (json!([leaf, leaf]), true),
        (json!({"all_of": [leaf, {"all_of": [leaf]}]}), true),
        (json!({"any_of": [leaf]}), false),
        (json!({"not": leaf}), false),
        (json!([leaf, {"all_of": [leaf, {"not": leaf}]}]), false),
    ];
    for (constraints, expected) in cases {
        let document = Document::of(&constraints).unwrap();
        let read = Constraints::read(document.root(), Pointer::root(), &Limits::STANDARD).unwrap();
        assert_eq!(read.is_conjunction(), expected, "{constraints}");
    }
}

#[test]
fn an_assertion_cannot_be_repeated() {
    for pattern in ["^*", "$+", "\\b?", "\\B{2}", "(?=a)*"] {
        let refusal = refused(&intent(json!({"path": "/a", "operator": "matches", "value": pattern})));
        assert_eq!(refusal.code.name(), "invalid_regex", "{pattern}");
        assert!(refusal.detail.starts_with("an assertion cannot be repeated"), "{pattern}: {refusal}");
    }
}

#[test]
fn what_is_repeated_of_a_strangers_words_is_short() {
    for (length, is_cut) in [(40, false), (41, true), (4_000, true)] {
        let mut intent = intent(json!({"path": "/a", "operator": "exists", "value": true}));
        intent["category"] = json!("ä".repeat(length));
        let detail = refused(&intent).detail;
        assert_eq!((detail.matches('ä').count(), detail.contains('…')), (40, is_cut), "{detail}");
    }
}
