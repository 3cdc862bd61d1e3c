//! RFC 0020 §3.7, §5: why one candidate is or is not in the answer.

use crate::world::{World, code, did, intent, manifest, person, sign};
use json::{Value, json};

/// A decision record without its own name and time.
fn lasting(record: &Value) -> Value {
    let mut record = record.clone();
    for member in ["decision_id", "evaluated_at", "policy_decision_ref"] {
        record.as_object_mut().unwrap().remove(member);
    }
    record
}

/// Every candidate that an answer names, accepted or rejected, must be explained as the answer says.
#[track_caller]
fn check_named(world: &World, with: Value, expected: usize) {
    let message = sign(intent(&person(1), with), &person(1));
    let page = world.pages(&message).unwrap().remove(0);
    let entries = ["candidates", "rejected"].map(|list| page[list].as_array().cloned().unwrap_or_default()).concat();
    assert_eq!(entries.len(), expected, "{page}");
    for entry in entries {
        let id = entry["candidate_id"].as_str().unwrap();
        let said = world.explain(&message, Some(id)).unwrap();
        assert_eq!((&said["type"], &said["held"]), (&json!("oap.explanation"), &json!(true)), "{id}");
        assert_eq!((&said["candidate_id"], &said["intent_id"]), (&json!(id), &page["intent_id"]));
        assert_eq!(lasting(&said["decision_record"]), lasting(&entry["decision_record"]), "{id}");
    }
}

#[track_caller]
fn check_held(world: &World, with: Value, id: &str, held: bool) {
    let message = sign(intent(&person(1), with), &person(1));
    let said = world.explain(&message, Some(id)).unwrap();
    assert_eq!((&said["candidate_id"], &said["held"]), (&json!(id), &json!(held)));
    assert_eq!(said["decision_record"].is_object(), held);
}

fn world() -> World {
    let (world, owner) = (World::new(), person(2));
    for number in 0..10 {
        let record = json!({
            "n": number,
            "delegation": {"supported": number % 2 == 0},
            "pricing": {"models": [{"type": "per_call", "amount": format!("{number}.50"), "currency": "EUR"}]},
            "sla": {"latency_p99_ms": number * 100},
            "actions": [{"id": "do", "n": number}, {"id": "undo", "n": number + 100}],
        });
        world.put(&owner, "manifest", manifest(&owner, &format!("t{number}"), record));
    }
    world.put(&owner, "offer", json!({"offer_id": "urn:o:1", "provider_did": did(&owner)}));
    world
}

#[test]
fn an_explanation_says_what_the_answer_says() {
    let world = world();
    let numbers = json!({"path": "/n", "operator": "gte", "value": 3});
    let budget = json!({"amount": "6.5", "currency": "EUR", "allocation": "proportional_quality"});
    check_named(&world, json!({"constraints": numbers}), 10);
    check_named(&world, json!({"constraints": numbers, "budget": budget}), 10);
    check_named(
        &world,
        json!({"constraints": numbers, "quality_floor": {"latency_p99_ms": 500}, "budget": budget}),
        10,
    );
    check_named(&world, json!({"constraints": numbers, "projection": {"include": ["/n", "/none"]}}), 10);
    check_named(&world, json!({"constraints": numbers, "category": "delegation"}), 5);
    check_named(&world, json!({"constraints": numbers, "category": "action", "projection": {"include": ["/n"]}}), 20);
}

#[test]
fn it_is_said_when_a_candidate_is_not_held() {
    let world = world();
    check_held(&world, json!({}), "did:web:t1.example", true);
    check_held(&world, json!({}), "did:web:nobody.example", false);
    check_held(&world, json!({}), "", false);
    check_held(&world, json!({"category": "commercial"}), "urn:o:1", true);
    check_held(&world, json!({"category": "commercial"}), "did:web:t1.example", false);
    check_held(&world, json!({"category": "action"}), "did:web:t1.example#do", true);
    check_held(&world, json!({"category": "action"}), "did:web:t1.example#dance", false);
    check_held(&world, json!({"category": "action"}), "did:web:t1.example", false);
    check_held(&world, json!({}), "did:web:t1.example#do", false);
    check_held(&world, json!({"category": "delegation"}), "did:web:t2.example", true);
    check_held(&world, json!({"category": "delegation"}), "did:web:t1.example", false);
    world.take_back(&person(2), "did:web:t1.example");
    check_held(&world, json!({}), "did:web:t1.example", false);
    check_held(&world, json!({"category": "action"}), "did:web:t1.example#do", false);
}

#[test]
fn whoever_is_left_out_by_the_policy_has_no_place() {
    let world = world();
    let message = sign(intent(&person(1), json!({"resolution_policy": "single_best"})), &person(1));
    let best = world.explain(&message, Some("did:web:t0.example")).unwrap();
    assert_eq!(best["decision_record"]["ranking_function"]["rank"], 1);
    let second = world.explain(&message, Some("did:web:t1.example")).unwrap();
    assert_eq!(second["decision_record"]["outcome"], "accept");
    assert!(second["decision_record"]["ranking_function"].is_null());
}

#[test]
fn a_request_for_an_explanation_has_a_shape() {
    let world = world();
    let ask = |request: Value| code(world.runtime.block_on(world.node().explain(&json::canonical_value(&request))));
    let signed = crate::world::parse(&sign(intent(&person(1), json!({})), &person(1))).root().to_value();
    assert_eq!(ask(json!({"candidate_id": "x"})), "missing_field");
    assert_eq!(ask(json!({"intent": signed, "candidate_id": 1})), "wrong_type");
    assert_eq!(ask(json!({"intent": signed, "why": 1})), "unknown_field");
    assert_eq!(ask(json!({"intent": {}})), "missing_field");
    assert_eq!(ask(json!([])), "missing_field");
}

#[test]
fn what_may_be_asked_may_be_asked_about() {
    let world = world();
    let mut deep = json!({"path": "/n", "operator": "eq", "value": vec![vec!["x".repeat(8_000)]; 7]});
    for _ in 0..14 {
        deep = json!({"not": deep});
    }
    let message = sign(intent(&person(1), json!({"constraints": deep})), &person(1));
    assert!(message.len() > 56_000);
    world.answer(&message, None).unwrap();
    assert_eq!(world.explain(&message, None).unwrap()["satisfied"]["at_most"], 0);
    world.explain(&message, Some(&format!("did:web:{}", "x".repeat(1_000)))).unwrap();
    // Nothing is remembered of an explanation, so the question itself may still be asked.
    let message = sign(intent(&person(1), json!({})), &person(1));
    let before = world.written();
    world.explain(&message, None).unwrap();
    assert_eq!(world.written(), before);
    world.answer(&message, None).unwrap();
}
