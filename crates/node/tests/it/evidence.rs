//! RFC 0020 §3.5: floors and places follow what others say, and nothing else.

use crate::world::{NOON, World, did, ids, manifest, person};
use json::{Value, json};
use std::sync::atomic::Ordering;
use trust::SigningKey;

const TOOLS: [&str; 3] = ["did:web:a.example", "did:web:b.example", "did:web:c.example"];

fn world() -> World {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.put(&person(2), "manifest", manifest(&person(2), name, json!({})));
    }
    world
}

fn say(world: &World, issuer: &SigningKey, id: &str, subject: &str, more: Value) {
    let mut record = json!({"id": id, "issuer_did": did(issuer), "subject_did": subject});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.put(issuer, "evidence", record);
}

fn order(world: &World) -> Vec<String> {
    ids(&world.ask(&person(1), json!({})))
}

fn above(world: &World, floor: Value) -> Vec<String> {
    ids(&world.ask(&person(1), json!({"quality_floor": floor})))
}

#[test]
fn places_and_floors_follow_the_word_of_others() {
    let mut world = world();
    assert_eq!(order(&world), TOOLS);
    assert!(above(&world, json!({"performance_score": 0})).is_empty(), "nobody knows anything");
    say(&world, &person(5), "urn:e:1", TOOLS[2], json!({"performance_score": 0.8}));
    say(&world, &person(6), "urn:e:2", TOOLS[1], json!({"performance_score": 0.9, "conformance_level": "L2"}));
    assert_eq!(order(&world), [TOOLS[1], TOOLS[2], TOOLS[0]]);
    assert_eq!(above(&world, json!({"performance_score": 0.85})), [TOOLS[1]]);
    assert_eq!(above(&world, json!({"conformance_level": "L2"})), [TOOLS[1]]);
    assert!(above(&world, json!({"conformance_level": "L3"})).is_empty());
    // A second voice is averaged with the first, and a later word of the same voice takes the place of its earlier one.
    say(&world, &person(5), "urn:e:3", TOOLS[1], json!({"performance_score": 0.3}));
    assert_eq!(above(&world, json!({"performance_score": 0.6})), [TOOLS[2], TOOLS[1]]);
    say(&world, &person(5), "urn:e:4", TOOLS[1], json!({"performance_score": 0.9}));
    assert_eq!(above(&world, json!({"performance_score": 0.9})), [TOOLS[1]]);
    for _ in 0..2 {
        assert_eq!(order(&world), [TOOLS[1], TOOLS[2], TOOLS[0]]);
        world.reopen();
    }
}

#[test]
fn nobody_praises_himself() {
    let world = world();
    let tool = person(7);
    let own = did(&tool);
    world.put(&tool, "manifest", json!({"tool": {"did": own}, "performance_score": 1.0, "provider_reputation": 1.0}));
    say(&world, &tool, "urn:e:1", &own, json!({"performance_score": 1.0}));
    assert!(above(&world, json!({"performance_score": 0.1})).is_empty());
    say(&world, &person(5), "urn:e:2", &own, json!({"performance_score": 0.2}));
    assert_eq!(above(&world, json!({"performance_score": 0.1})), [own]);
}

#[test]
fn evidence_ends_with_its_date_or_its_withdrawal() {
    let mut world = world();
    let judge = person(5);
    say(&world, &judge, "urn:e:1", TOOLS[1], json!({"performance_score": 0.9, "valid_until": "2026-03-01T12:30:00Z"}));
    say(&world, &judge, "urn:e:2", TOOLS[2], json!({"performance_score": 0.5}));
    let known = |world: &World| above(world, json!({"performance_score": 0.1}));
    assert_eq!(known(&world), [TOOLS[1], TOOLS[2]]);
    world.millis.store(NOON + 30 * 60_000, Ordering::Release);
    assert_eq!(known(&world), [TOOLS[1], TOOLS[2]], "the last moment belongs to it");
    world.millis.store(NOON + 30 * 60_000 + 1, Ordering::Release);
    assert_eq!(known(&world), [TOOLS[2]]);
    world.take_back(&judge, "urn:e:2");
    for _ in 0..2 {
        assert!(known(&world).is_empty());
        world.crash();
    }
}

#[test]
fn a_word_about_the_record_counts_before_one_about_its_provider() {
    let world = World::new();
    let (provider, judge) = (person(2), person(5));
    for offer in ["urn:o:1", "urn:o:2"] {
        world.put(&provider, "offer", json!({"offer_id": offer, "provider_did": did(&provider)}));
    }
    say(&world, &judge, "urn:e:1", &did(&provider), json!({"performance_score": 0.5}));
    say(&world, &judge, "urn:e:2", "urn:o:2", json!({"performance_score": 0.9, "valid_until": "2026-03-01T12:30:00Z"}));
    let known = |floor: f64| {
        let with = json!({"category": "commercial", "constraints": {"path": "/offer_id", "operator": "exists", "value": 1},
            "projection": {"include": ["/offer_id"]}, "quality_floor": {"performance_score": floor}});
        ids(&world.ask(&person(1), with))
    };
    assert_eq!(known(0.5), ["urn:o:2", "urn:o:1"]);
    assert_eq!(known(0.9), ["urn:o:2"]);
    // Past its date it is as if it had not been said, and the provider's stands again.
    world.millis.store(NOON + 31 * 60_000, Ordering::Release);
    assert_eq!(known(0.5), ["urn:o:1", "urn:o:2"]);
}
