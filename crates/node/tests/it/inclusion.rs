//! Every event proves that its manifest is in the tree, and the tree shows nothing that is hidden.

use crate::feeds::{journal, settle, value};
use crate::world::{World, did, intent, person, publication, sign};
use json::{Document, Value, json};
use node::Terms;

fn manifest(number: u64, amount: u64) -> Value {
    json!({
        "tool": {"did": format!("did:web:t{number}.example"), "publisher": {"did": did(&person(1))}},
        "amount": amount,
    })
}

fn subscribed(world: &World, issuer: u8) -> String {
    let open = json!({
        "category": "subscription", "projection": {"include": ["/tool/did", "/amount"]},
        "max_event_rate_per_minute": 6_000,
        "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-05-01T00:00:00Z"},
    });
    let open = sign(intent(&person(issuer), open), &person(issuer));
    let terms = Terms { snapshot: true, ..Terms::default() };
    let ack = world.runtime.block_on(world.node().subscribe(&open, &terms)).unwrap();
    value(&ack)["subscription_id"].as_str().unwrap().to_owned()
}

/// All events of a journal, each with a proof that holds.
#[track_caller]
fn proved(world: &World, id: &str) -> Vec<Value> {
    settle(world, &[id.to_owned()]);
    let events = journal(world, id);
    for event in &events {
        node::check_inclusion(Document::of(event).unwrap().root()).unwrap();
    }
    events
}

fn size(event: &Value) -> u64 {
    event["inclusion_proof"]["tree_size"].as_u64().unwrap()
}

#[test]
fn what_was_there_before_anybody_asked_is_in_the_tree_too() {
    let mut world = World::new();
    for number in 0..30 {
        world.put(&person(1), "manifest", manifest(number, 1));
    }
    world.take_back(&person(1), "did:web:t7.example");
    let id = subscribed(&world, 2);
    let snapshot = proved(&world, &id);
    assert_eq!(snapshot.len(), 29);
    assert!(snapshot.iter().all(|event| size(event) == 31), "thirty manifests, and one that was taken back");
    world.put(&person(1), "manifest", manifest(3, 2));
    world.take_back(&person(1), "did:web:t4.example");
    let told = proved(&world, &id);
    let leaf = |event: &Value| event["inclusion_proof"]["leaf"].clone();
    assert_eq!(leaf(&told[29])["manifest_hash"], told[29]["manifest_hash_after"]);
    assert_eq!(leaf(&told[30])["status"], "withdrawn");
    // It is the same tree after a crash, and one that grows on.
    world.crash();
    world.put(&person(1), "manifest", manifest(99, 2));
    let told = proved(&world, &id);
    assert_eq!((told.len(), size(&told[31])), (32, 34));
}

#[test]
fn what_is_hidden_moves_no_leaf() {
    let world = World::new();
    let (insider, outsider) = (subscribed(&world, 3), subscribed(&world, 4));
    let secret = |margin: u64| {
        let mut record = manifest(1, 5);
        record["margin"] = json!(margin);
        let mut message = publication(&person(1), "manifest", record);
        message["restricted"] = json!([{"path": "/margin", "audience": [did(&person(3))]}]);
        world.publish(&sign(message, &person(1))).unwrap();
    };
    (0..20).for_each(secret);
    let told = proved(&world, &outsider);
    assert_eq!((told.len(), size(&told[0])), (1, 1));
    // Whoever sees more proves what everybody sees.
    let inside = proved(&world, &insider);
    assert!(!inside.is_empty() && inside.iter().all(|event| size(event) == 1));
    assert_eq!(inside[0]["inclusion_proof"]["leaf"], told[0]["inclusion_proof"]["leaf"]);
    assert_ne!(inside[0]["manifest_hash_after"], inside[0]["inclusion_proof"]["leaf"]["manifest_hash"]);
}

#[test]
fn a_tree_that_is_not_what_was_written_is_made_again() {
    let mut world = World::new();
    let id = subscribed(&world, 2);
    for number in 0..9 {
        world.put(&person(1), "manifest", manifest(number, 1));
    }
    let before = proved(&world, &id);
    world.alter_store("UPDATE branch SET hash = zeroblob(32) WHERE level = 3");
    world.put(&person(1), "manifest", manifest(1, 2));
    let after = proved(&world, &id);
    assert_eq!((after.len(), size(&after[9])), (10, 10));
    assert_eq!(after[..9], before[..]);
}
