//! RFC 0024 §3.3: real versions of real documents, there and back, with what is lost on the way.

use crate::mappings::{read, told};
use schema::{Mapping, Validator};
use serde_json::{Value, json};
use std::path::PathBuf;

fn file(path: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    serde_json::from_slice(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

fn mapping(name: &str) -> Mapping {
    read(&file(&format!("spec/families/{name}.json"))).unwrap()
}

fn validator(name: &str) -> Validator {
    Validator::compile(&file(&format!("{name}.schema.json"))).unwrap()
}

fn cards(name: &str) -> Vec<Value> {
    file(&format!("examples/a2a/{name}.json")).as_array().unwrap().clone()
}

#[test]
fn every_card_of_0_3_becomes_one_of_1_0_and_comes_back() {
    let (there, old, new) = (
        mapping("a2a-card-0.3-to-1.0"),
        validator("spec/families/a2a-card-0.3"),
        validator("spec/families/a2a-card-1.0"),
    );
    let back = there.invert().unwrap();
    let cards = cards("cards-0.3");
    assert!(cards.len() >= 12, "{}", cards.len());
    for card in &cards {
        old.check(card).unwrap_or_else(|error| panic!("{}: {error}", card["name"]));
        let translated = there.translate(card).unwrap();
        new.check(&translated.document)
            .unwrap_or_else(|error| panic!("{}: {error}\n{:#}", card["name"], translated.document));
        let returned = back.translate(&translated.document).unwrap();
        old.check(&returned.document).unwrap_or_else(|error| panic!("{}: {error}", card["name"]));
        let lost = told(&translated);
        if lost.is_empty() {
            assert_eq!(returned.document, *card);
        }
        for name in
            ["name", "description", "version", "url", "defaultInputModes", "skills", "securitySchemes", "security"]
        {
            let told = lost.iter().any(|(_, place)| place.contains(&format!("/{name}")));
            assert!(
                told || returned.document.get(name) == card.get(name),
                "{} lost `{name}` in silence: {lost:?}",
                card["name"]
            );
        }
    }
}

#[test]
fn every_card_of_1_0_becomes_one_of_0_3_and_comes_back() {
    let (there, old, new) = (
        mapping("a2a-card-0.3-to-1.0"),
        validator("spec/families/a2a-card-0.3"),
        validator("spec/families/a2a-card-1.0"),
    );
    let back = there.invert().unwrap();
    let cards = cards("cards-1.0");
    assert!(cards.len() >= 10, "{}", cards.len());
    for card in &cards {
        new.check(card).unwrap_or_else(|error| panic!("{}: {error}", card["name"]));
        let translated = back.translate(card).unwrap();
        old.check(&translated.document)
            .unwrap_or_else(|error| panic!("{}: {error}\n{:#}", card["name"], translated.document));
        let returned = there.translate(&translated.document).unwrap();
        new.check(&returned.document).unwrap_or_else(|error| panic!("{}: {error}", card["name"]));
        assert_eq!(returned.document["supportedInterfaces"][0]["url"], card["supportedInterfaces"][0]["url"]);
        if told(&translated).is_empty() {
            let invented: Vec<String> = told(&returned).into_iter().map(|(_, place)| place).collect();
            assert!(returned.document == *card || !invented.is_empty(), "{}", card["name"]);
        }
    }
}

#[test]
fn what_a_card_loses_is_told() {
    let there = mapping("a2a-card-0.3-to-1.0");
    let all = cards("cards-0.3");
    let of = |name: &str| all.iter().find(|card| card["name"] == name).unwrap();
    let lost = |card: &Value| -> Vec<String> {
        told(&there.translate(card).unwrap()).into_iter().map(|(kind, place)| format!("{kind} {place}")).collect()
    };
    assert!(lost(of("Tide tables")).contains(&"dropped /signatures>".to_owned()));
    assert!(lost(of("Night clerk")).contains(&"dropped /capabilities/stateTransitionHistory>".to_owned()));
    assert!(
        lost(of("Plain echo"))
            .contains(&"invented /preferredTransport>/supportedInterfaces/0/protocolBinding".to_owned())
    );
    // Downwards a tenant has no place.
    let back = there.invert().unwrap();
    let new = cards("cards-1.0");
    let tenant = new.iter().find(|card| card["name"] == "Many houses").unwrap();
    let told = told(&back.translate(tenant).unwrap());
    assert!(told.contains(&("dropped".to_owned(), "/supportedInterfaces/0/tenant>".to_owned())), "{told:?}");
}

#[test]
fn an_intent_of_1_3_loses_its_payment_terms_on_the_way_to_1_2_and_says_so() {
    let (down, old) = (mapping("oap-intent-1.3-to-1.2"), validator("spec/families/oap-intent-1.2"));
    let new = validator("spec/schemas/oap-intent");
    let intent = json!({
        "intent_id": "urn:oap:intent:i-1", "issuer_did": "did:web:desk.example", "category": "commercial",
        "constraints": {"path": "/goods", "operator": "exists", "value": true}, "projection": {"include": ["/price"]},
        "validity": {"from": "2026-06-01T08:00:00Z", "to": "2026-06-01T09:00:00Z"},
        "payment_constraints": {"allowed_instruments": ["sepa"]}, "signature": {"alg": "EdDSA", "value": "c2ln"},
    });
    new.check(&intent).unwrap();
    assert!(!old.is_valid(&intent));
    let translated = down.translate(&intent).unwrap();
    old.check(&translated.document).unwrap();
    assert_eq!(told(&translated), [("dropped".to_owned(), "/payment_constraints>".to_owned())]);
    // Upwards nothing is lost.
    let up = down.invert().unwrap().translate(&translated.document).unwrap();
    new.check(&up.document).unwrap();
    assert_eq!((told(&up), up.document), (Vec::new(), translated.document));
}
