//! Records come in, change and go; what is acknowledged is in the next answer.

use crate::world::{NOON, World, code, did, ids, intent, manifest, parse, person, publication, sign, withdrawal};
use json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Asks for the one manifest with a mark.
fn marked(mark: &str) -> Value {
    json!({"constraints": {"path": "/mark", "operator": "eq", "value": mark}, "projection": {"include": ["/mark"]}})
}

#[test]
fn actions_that_would_copy_a_long_list_too_often_are_refused() {
    let world = World::new();
    let with = |actions: usize, categories: usize| {
        let actions: Vec<_> = (0..actions).map(|n| json!({"id": format!("a{n}")})).collect();
        let mut record = manifest(&person(2), "wide", json!({"actions": actions}));
        record["tool"]["categories"] = (0..categories).map(|n| json!(format!("category-{n:04}"))).collect();
        sign(publication(&person(2), "manifest", record), &person(2))
    };
    world.publish(&with(100, 1_000)).unwrap();
    let Err(node::Error::Refusal(refusal)) = world.publish(&with(1_000, 1_000)) else { panic!("it is kept") };
    assert_eq!((refusal.code, refusal.at.as_str()), ("actions_too_large", "/record/actions"));
    assert_eq!(refusal.limit.unwrap().name, "actions.inherited_bytes");
}

#[test]
fn what_is_acknowledged_is_in_the_next_answer() {
    const WRITERS: usize = 8;
    const EACH: usize = 125;
    let world = World::new();
    world.runtime.block_on(async {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let node = Arc::clone(world.node());
                tokio::spawn(async move {
                    let key = person(10 + writer as u8);
                    for number in 0..EACH {
                        let mark = format!("w{writer}-{number}");
                        let record = manifest(&key, &mark, json!({"mark": mark}));
                        node.publish(&sign(publication(&key, "manifest", record), &key)).await.unwrap();
                        let asked = sign(intent(&key, marked(&mark)), &key);
                        let answer = parse(&node.answer(&asked, None).await.unwrap()).root().to_value();
                        assert_eq!(ids(&answer), [format!("did:web:{mark}.example")]);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
    assert_eq!(world.node().counts().unwrap()[0], ("manifests", (WRITERS * EACH) as u64));
}

#[test]
fn an_update_supersedes_and_a_withdrawal_removes() {
    let mut world = World::new();
    let (owner, asker, id) = (person(2), person(1), "did:web:a.example");
    let first = world.put(&owner, "manifest", manifest(&owner, "a", json!({"mark": "old", "actions": [{"id": "x"}]})));
    let second = world.put(&owner, "manifest", manifest(&owner, "a", json!({"mark": "new"})));
    let told = |ack: &Value| (ack["revision"].clone(), ack["state"].clone(), ack["kind"].clone());
    assert_eq!(told(&first), (json!(1), json!("active"), json!("manifest")));
    assert_eq!(told(&second), (json!(2), json!("active"), json!("manifest")));
    assert!(second["sequence"].as_u64() > first["sequence"].as_u64());
    let found = |world: &World, mark: &str| ids(&world.ask(&asker, marked(mark)));
    let actions = |world: &World| {
        let with = json!({"category": "action", "constraints": {"path": "/id", "operator": "exists", "value": 1},
            "projection": {"include": ["/id"]}});
        ids(&world.ask(&asker, with)).len()
    };
    for _ in 0..2 {
        assert_eq!((found(&world, "old"), found(&world, "new")), (vec![], vec![id.to_owned()]));
        assert_eq!(actions(&world), 0);
        world.crash();
    }
    assert!(world.node().store().record(id).unwrap().unwrap().body.windows(5).any(|bytes| bytes == b"\"new\""));
    let gone = world.take_back(&owner, id);
    assert_eq!((&gone["state"], &gone["record_id"]), (&json!("withdrawn"), &json!(id)));
    for _ in 0..2 {
        assert_eq!((found(&world, "old"), found(&world, "new")), (vec![], vec![]));
        assert_eq!(code(world.node().record(id)), "record_not_found");
        world.forget_index();
    }
    // The name stays with its publisher.
    let stranger = person(3);
    let taken = json!({"tool": {"did": id}});
    let message = sign(publication(&stranger, "manifest", taken), &stranger);
    assert_eq!(code(world.publish(&message)), "publisher_not_authorized");
    world.put(&owner, "manifest", manifest(&owner, "a", json!({"mark": "back"})));
    assert_eq!(found(&world, "back"), [id]);
}

#[test]
fn the_same_publication_again_is_acknowledged_in_the_same_bytes() {
    let mut world = World::new();
    let owner = person(2);
    let put = sign(publication(&owner, "manifest", manifest(&owner, "a", json!({}))), &owner);
    let taken_back = sign(withdrawal(&owner, "did:web:a.example"), &owner);
    let first = world.publish(&put).unwrap();
    world.put(&owner, "manifest", manifest(&owner, "b", json!({})));
    let second = world.withdraw("did:web:a.example", &taken_back).unwrap();
    let sequence = world.node().store().sequence();
    for _ in 0..3 {
        world.millis.fetch_add(1_000, Ordering::AcqRel);
        assert_eq!(world.publish(&put).unwrap(), first);
        assert_eq!(world.withdraw("did:web:a.example", &taken_back).unwrap(), second);
        assert_eq!(world.node().store().sequence(), sequence, "nothing is done twice");
        world.reopen();
    }
    let record = parse(&first).root().to_value()["output"].clone();
    assert_eq!(record["record_hash"], json!(format!("sha256:{}", store::Hash::of(&put))));
    world.millis.store(NOON + 25 * 3_600_000, Ordering::Release);
    assert_eq!(code(world.publish(&put)), "publication_expired");
}

#[test]
fn a_publication_has_a_name_of_its_own() {
    let mut world = World::new();
    let owner = person(2);
    let mut message = publication(&owner, "manifest", manifest(&owner, "a", json!({})));
    world.publish(&sign(message.clone(), &owner)).unwrap();
    message["record"]["mark"] = json!("other");
    for _ in 0..2 {
        assert_eq!(code(world.publish(&sign(message.clone(), &owner))), "publication_id_reused");
        world.crash();
    }
    // Somebody else may use the name, too.
    let other = person(3);
    message["publisher_did"] = json!(did(&other));
    message["record"] = manifest(&other, "b", json!({}));
    world.publish(&sign(message, &other)).unwrap();
}

#[test]
fn a_publication_is_taken_for_a_day() {
    let world = World::new();
    let owner = person(2);
    let at = |moment: &str| {
        let mut message = publication(&owner, "manifest", manifest(&owner, "a", json!({})));
        message["issued_at"] = json!(moment);
        world.publish(&sign(message, &owner))
    };
    at("2026-02-28T12:00:00Z").unwrap();
    at("2026-03-01T12:05:00Z").unwrap();
    assert_eq!(code(at("2026-02-28T11:59:59Z")), "publication_expired");
    assert_eq!(code(at("2026-03-01T12:05:01Z")), "publication_not_yet_valid");
    assert_eq!(code(at("2026-03-01T12:00:00")), "invalid_timestamp");
}

#[test]
fn a_record_stays_what_it_is() {
    let world = World::new();
    let owner = person(2);
    world.put(&owner, "knowledge", json!({"id": "urn:x:1"}));
    let message = sign(publication(&owner, "offer", json!({"id": "urn:x:1"})), &owner);
    assert_eq!(code(world.publish(&message)), "record_kind_differs");
}

#[test]
fn nobody_publishes_in_anothers_name() {
    let world = World::new();
    let (owner, stranger) = (person(2), person(3));
    let (own, foreign) = (did(&owner), did(&stranger));
    let cases = [
        ("manifest", json!({"tool": {"did": own}}), true),
        ("manifest", json!({"tool": {"did": "did:web:x.example", "publisher": {"did": own}}}), true),
        ("manifest", json!({"tool": {"did": "did:web:y.example", "publisher": {"did": foreign}}}), false),
        ("manifest", json!({"tool": {"did": foreign}}), false),
        ("manifest", json!({"tool": {"id": "nameless"}}), true),
        ("offer", json!({"offer_id": "urn:o:1", "provider_did": own}), true),
        ("offer", json!({"offer_id": "urn:o:2", "provider_did": foreign, "broker_did": own}), true),
        ("offer", json!({"offer_id": "urn:o:3", "provider_did": foreign}), false),
        ("offer", json!({"offer_id": "urn:o:4"}), true),
        ("knowledge", json!({"id": "urn:k:1", "publisher_did": own}), true),
        ("knowledge", json!({"id": "urn:k:2", "publisher_did": foreign}), false),
        ("receipt", json!({"id": "urn:r:1", "principal_did": own}), true),
        ("receipt", json!({"id": "urn:r:2", "agent_did": own, "principal_did": foreign}), true),
        ("receipt", json!({"id": "urn:r:3", "tool_did": own, "principal_did": foreign}), true),
        ("receipt", json!({"id": "urn:r:4", "principal_did": foreign}), false),
        ("evidence", json!({"id": "urn:e:1", "issuer_did": own, "subject_did": foreign}), true),
        ("evidence", json!({"id": "urn:e:2", "issuer_did": foreign, "subject_did": own}), false),
    ];
    for (kind, record, allowed) in cases {
        let outcome = world.publish(&sign(publication(&owner, kind, record.clone()), &owner));
        match allowed {
            true => assert!(outcome.is_ok(), "{kind} {record} {outcome:?}"),
            false => assert_eq!(code(outcome), "publisher_not_authorized", "{kind} {record}"),
        }
    }
}

#[test]
fn an_import_takes_publications_of_those_who_may_speak() {
    let world = World::new();
    let (owner, stranger) = (person(2), person(3));
    let own = sign(publication(&owner, "manifest", manifest(&owner, "a", json!({}))), &owner);
    let foreign = sign(publication(&stranger, "manifest", manifest(&owner, "b", json!({}))), &stranger);
    let mut altered = parse(&own).root().to_value();
    altered["record"]["x"] = json!(1);
    let lines = [own, foreign, json::canonical_value(&altered)].join(&b'\n');
    let mut refused = Vec::new();
    let imported = world
        .node()
        .import(std::io::Cursor::new(lines), None, &mut |told| {
            if let node::Told::Refused(line, reason) = told {
                refused.push((line, reason.split(':').next().unwrap().to_owned()));
            }
        })
        .unwrap();
    assert_eq!((imported.kept, imported.refused), (1, 2));
    assert_eq!(refused[0], (2, "publisher_not_authorized".to_owned()));
    assert_eq!(refused[1].0, 3);
}

#[test]
fn an_action_has_one_candidate_for_each_name() {
    let world = World::new();
    let owner = person(2);
    let actions = json!([{"id": "x", "n": 1}, {"id": "x", "n": 2}, {"n": 3}, {"id": "y", "n": 4}, "z"]);
    world.put(&owner, "manifest", manifest(&owner, "a", json!({"actions": actions})));
    let with = json!({"category": "action", "constraints": {"path": "/n", "operator": "gt", "value": 0},
        "projection": {"include": ["/n"]}});
    let page = world.ask(&person(1), with);
    assert_eq!(ids(&page), ["did:web:a.example#x", "did:web:a.example#y"]);
    assert_eq!(
        (&page["candidates"][0]["payload"], &page["candidates"][1]["payload"]),
        (&json!({"n": 1}), &json!({"n": 4}))
    );
}
