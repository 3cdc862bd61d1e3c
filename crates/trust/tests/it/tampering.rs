//! RFC 0020 A.3 R1: whoever changes a signed document changes its fate.

use json::{Document, Limits, Value, json};
use proptest::prelude::*;
use trust::{SigningKey, encoding, sign, verify_did_key};

fn key() -> SigningKey {
    SigningKey::from_seed([3; 32])
}

fn verifies(document: &Value) -> bool {
    verify_did_key(&Document::of(document).unwrap(), "issuer_did").is_ok()
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| json!(number)),
        "\\PC{0,8}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("\\PC{0,6}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn members() -> impl Strategy<Value = Value> {
    proptest::collection::hash_map("[a-z€\u{1f600}]{1,6}", value(), 1..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// The places of all values below the root that the signature covers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut visit = |segment: &str, child: &Value| {
        let at = format!("{at}/{}", segment.replace('~', "~0").replace('/', "~1"));
        places(child, &at, found);
        found.push(at);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, child)| visit(name, child)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, child)| visit(&index.to_string(), child))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove(document: &mut Value, place: &str) {
    let (parent, segment) = place.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(members) => {
            members.remove(&segment.replace("~1", "/").replace("~0", "~"));
        }
        Value::Array(elements) => {
            elements.remove(segment.parse().unwrap());
        }
        _ => unreachable!("a place has a container above it"),
    }
}

fn signed(mut body: Value) -> Value {
    body["issuer_did"] = json!(key().did_key().as_str());
    sign(&mut body, &key()).unwrap();
    body
}

proptest! {
    #[test]
    fn any_single_change_breaks_the_signature(
        body in members(), other in value(), name in "\\PC{0,6}", chosen: prop::sample::Index,
    ) {
        let original = signed(body);
        prop_assert!(verifies(&original));
        let mut covered = original.clone();
        covered.as_object_mut().unwrap().remove("signature");
        let mut all = Vec::new();
        places(&covered, "", &mut all);
        let place = chosen.get(&all);

        let mut replaced = original.clone();
        *replaced.pointer_mut(place).unwrap() = other.clone();
        prop_assert_eq!(verifies(&replaced), json::canonical_value(&replaced) == json::canonical_value(&original), "replaced {}", place);

        let mut removed = original.clone();
        remove(&mut removed, place);
        prop_assert!(!verifies(&removed), "removed {}", place);

        let mut added = original.clone();
        if added.get(&name).is_none() {
            added[name.as_str()] = other;
            prop_assert!(!verifies(&added), "added {}", name);
        }
    }

    #[test]
    fn a_document_reads_the_same_in_any_member_order(body in members()) {
        let document = signed(body);
        // Written backwards by hand, since the value type keeps its own order.
        let backwards: Vec<String> =
            document.as_object().unwrap().iter().rev().map(|(name, value)| format!("{}: {value}", json!(name))).collect();
        let text = format!("{{ {} }}", backwards.join(" ,\n"));
        let document = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
        prop_assert!(verify_did_key(&document, "issuer_did").is_ok());
    }
}

#[test]
fn every_flipped_bit_of_the_wire_is_noticed() {
    let original = signed(json!({"intent_id": "urn:oap:intent:1", "n": [1.5, true, null], "é": "\u{1f600}\n"}));
    let wire = original.to_string().into_bytes();
    let signed_bytes = |document: &Document| json::canonical_without(document.root(), "signature");
    let reference = signed_bytes(&Document::of(&original).unwrap());
    let mut survived = 0;
    for position in 0..wire.len() * 8 {
        let mut flipped = wire.clone();
        flipped[position / 8] ^= 1 << (position % 8);
        let Ok(document) = Document::parse(&flipped, &Limits::DOCUMENT) else { continue };
        if let Ok(verified) = verify_did_key(&document, "issuer_did") {
            survived += 1;
            // What still verifies says the same: only names inside `signature` are outside the signed bytes.
            assert_eq!(signed_bytes(verified.value()), reference, "bit {position}");
        }
    }
    // Seven bits of each letter of `kid`: renamed, it is a member nobody reads, and the only key is meant.
    assert_eq!(survived, 21);
}

#[test]
fn every_flipped_bit_of_a_signature_is_noticed() {
    let original = signed(json!({"n": 1}));
    let value = encoding::decode(original["signature"]["value"].as_str().unwrap()).unwrap();
    for position in 0..value.len() * 8 {
        let mut flipped = value.clone();
        flipped[position / 8] ^= 1 << (position % 8);
        let mut document = original.clone();
        document["signature"]["value"] = json!(encoding::encode(&flipped));
        assert!(!verifies(&document), "bit {position}");
    }
}
