//! RFC 0020 A.3 R1: a message that fails at one step never reaches the next one.
//!
//! Each message fails at its step and at every later one. Its issuer is a did:web whose host counts connections, so it
//! shows when somebody was asked too early; and what is on disk shows when something was written.

use crate::world::{World, code, intent, manifest, person, publication, sign, withdrawal};
use json::{Value, json};
use node::Error;
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A host that hangs up on everybody and counts them.
struct Host {
    did: String,
    visitors: Arc<AtomicUsize>,
}

impl Host {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port());
        let visitors = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&visitors);
        std::thread::spawn(move || {
            for visitor in listener.incoming() {
                drop(visitor);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { did, visitors }
    }

    fn visitors(&self) -> usize {
        self.visitors.load(Ordering::Relaxed)
    }
}

/// Members put into a message whose signature does not hold.
fn forged(mut message: Value, with: Value) -> Vec<u8> {
    message.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    if message["signature"].is_null() {
        message["signature"] = json!({"alg": "EdDSA", "value": "A".repeat(86)});
    }
    json::canonical_value(&message)
}

fn world() -> World {
    World::with(|config| config.requests_per_second = NonZeroU32::new(1))
}

#[track_caller]
fn check(world: &World, host: &Host, outcome: Result<Vec<u8>, Error>, expected: &str, before: (u64, u64)) {
    assert_eq!(code(outcome), expected);
    assert_eq!(host.visitors(), 0, "{expected}: somebody was asked");
    assert_eq!(world.written(), before, "{expected}: something was written");
}

#[test]
fn an_intent_that_fails_at_one_step_never_reaches_the_next() {
    let (world, host) = (world(), Host::new());
    world.put(&person(2), "manifest", manifest(&person(2), "a", json!({})));
    let own = json!({"issuer_did": host.did});
    let expired = json!({"from": "2026-03-01T10:00:00Z", "to": "2026-03-01T11:00:00Z"});
    let leaf = json!({"path": "/a", "operator": "exists", "value": true});
    let with = |more: Value| {
        let mut members = own.clone();
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        forged(intent(&person(1), json!({})), members)
    };
    let mut torn = with(json!({"validity": expired}));
    torn.pop();
    let cases = [
        ("json_too_large", [torn.as_slice(), b" ".repeat(70_000).as_slice()].concat()),
        ("json_syntax", torn),
        (
            "unknown_operator",
            with(json!({"constraints": {"path": "/a", "operator": "like", "value": 1}, "validity": expired})),
        ),
        ("too_many_constraints", with(json!({"constraints": vec![leaf; 257], "validity": expired}))),
        ("intent_expired", with(json!({"validity": expired, "signature": {"alg": "EdDSA", "value": ""}}))),
        ("signature_missing", with(json!({"signature": {"alg": "EdDSA", "value": ""}}))),
        ("signature_encoding", with(json!({"signature": {"alg": "EdDSA", "value": "*"}}))),
    ];
    let before = world.written();
    for (expected, message) in &cases {
        check(&world, &host, world.answer(message, Some("nonsense")), expected, before);
        let nested = [b"{\"intent\":".as_slice(), message, b"}"].concat();
        let explained = world.runtime.block_on(world.node().explain(&nested));
        if *expected != "json_too_large" {
            check(&world, &host, explained, expected, before);
        }
    }
}

#[test]
fn an_intent_is_looked_up_then_its_issuer_is_asked_then_it_is_counted() {
    let (world, host) = (world(), Host::new());
    let first = intent(&person(1), json!({}));
    let answer = world.answer(&sign(first.clone(), &person(1)), None).unwrap();
    // The issuer has used up his quota; a name that was used is refused before that is known.
    let before = world.written();
    let reused = forged(first.clone(), json!({"resolution_policy": "full_set"}));
    check(&world, &host, world.answer(&reused, None), "intent_id_reused", before);
    let forgery = forged(intent(&person(1), json!({})), json!({}));
    check(&world, &host, world.answer(&forgery, None), "signature_invalid", before);
    let one_more = sign(intent(&person(1), json!({})), &person(1));
    check(&world, &host, world.answer(&one_more, None), "too_many_requests", before);
    // What was answered is answered again, whoever asks.
    assert_eq!(world.answer(&sign(first, &person(1)), None).unwrap(), answer);
    let elsewhere = forged(intent(&person(1), json!({})), json!({"issuer_did": host.did}));
    assert_eq!(code(world.answer(&elsewhere, Some("nonsense"))), "did_unresolvable");
    assert!(host.visitors() > 0, "the last local step has passed");
    assert_eq!(world.written(), before);
}

#[test]
fn nobody_uses_up_the_quota_of_another() {
    let world = world();
    let issuer = person(1);
    let answered = intent(&issuer, json!({}));
    for _ in 0..20 {
        let forgery = forged(intent(&issuer, json!({})), json!({}));
        assert_eq!(code(world.answer(&forgery, None)), "signature_invalid");
        let stranger = sign(intent(&issuer, json!({})), &person(4));
        assert_eq!(code(world.answer(&stranger, None)), "kid_not_authorized");
        let record = manifest(&issuer, "a", json!({}));
        let forgery = forged(publication(&issuer, "manifest", record), json!({}));
        assert_eq!(code(world.publish(&forgery)), "signature_invalid");
    }
    let message = sign(answered, &issuer);
    let answer = world.answer(&message, None).unwrap();
    // Whoever overheard it sends it again and again, asks why, and guesses at pages.
    for number in 0..20 {
        assert_eq!(world.answer(&message, None).unwrap(), answer);
        let _ = world.explain(&message, None);
        assert_eq!(code(world.answer(&message, Some(&format!("page-{number}")))), "invalid_cursor");
    }
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    for number in 0..20 {
        assert_eq!(world.answer(&message, None).unwrap(), answer);
        let _ = world.explain(&message, None);
        assert_eq!(code(world.answer(&message, Some(&format!("again-{number}")))), "invalid_cursor");
    }
    world.answer(&sign(intent(&issuer, json!({})), &issuer), None).unwrap();
}

#[test]
fn without_a_signature_nothing_is_evaluated() {
    let world = World::new();
    world.put(&person(2), "manifest", manifest(&person(2), "a", json!({})));
    let before = world.written();
    let message = sign(intent(&person(1), json!({})), &person(1));
    let mut altered = crate::world::parse(&message).root().to_value();
    altered["projection"]["include"] = json!(["/"]);
    let wrong = [
        ("signature_invalid", json::canonical_value(&altered)),
        ("signature_invalid", forged(intent(&person(1), json!({})), json!({}))),
        ("kid_not_authorized", sign(intent(&person(1), json!({})), &person(4))),
    ];
    for (expected, message) in wrong {
        assert_eq!(code(world.answer(&message, Some("nonsense"))), expected);
        assert_eq!(code(world.explain(&message, None)), expected);
        assert_eq!(world.written(), before);
    }
    // The forgery has not burnt the name.
    world.answer(&message, None).unwrap();
}

#[test]
fn a_publication_that_fails_at_one_step_never_reaches_the_next() {
    let (world, host) = (world(), Host::new());
    let (owner, record) = (person(2), manifest(&person(2), "a", json!({})));
    let taken = publication(&owner, "manifest", record.clone());
    world.publish(&sign(taken.clone(), &owner)).unwrap();
    let old = "2026-02-27T12:00:00Z";
    let with = |more: Value| {
        let mut members = json!({"publisher_did": host.did, "issued_at": old});
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        forged(publication(&owner, "manifest", record.clone()), members)
    };
    let mut torn = with(json!({}));
    torn.pop();
    let cases = [
        ("json_too_large", [torn.as_slice(), b" ".repeat(300_000).as_slice()].concat()),
        ("json_syntax", torn),
        ("unknown_field", with(json!({"more": 1}))),
        ("invalid_value", with(json!({"publication_id": "urn:other:1"}))),
        ("invalid_timestamp", with(json!({"issued_at": "yesterday"}))),
        ("signature_missing", with(json!({"signature": {"alg": "EdDSA", "value": ""}}))),
        ("invalid_value", with(json!({"kind": "poem"}))),
        ("record_without_id", with(json!({"record": {"name": "x"}}))),
        ("wrong_type", with(json!({"record": []}))),
        ("publication_expired", with(json!({}))),
        ("publication_not_yet_valid", with(json!({"issued_at": "2026-03-01T12:05:01Z"}))),
    ];
    let before = world.written();
    for (expected, message) in &cases {
        check(&world, &host, world.publish(message), expected, before);
    }
    // Looked up, then the publisher is asked, then it is counted.
    let reused = forged(taken, json!({"kind": "offer"}));
    check(&world, &host, world.publish(&reused), "publication_id_reused", before);
    let forgery = forged(publication(&owner, "manifest", record.clone()), json!({}));
    check(&world, &host, world.publish(&forgery), "signature_invalid", before);
    let one_more = sign(publication(&owner, "manifest", record.clone()), &owner);
    check(&world, &host, world.publish(&one_more), "too_many_requests", before);
    assert_eq!(code(world.publish(&with(json!({"issued_at": "2026-03-01T12:00:00Z"})))), "did_unresolvable");
    assert!(host.visitors() > 0);
    assert_eq!(world.written(), before);
}

#[test]
fn a_forged_publication_is_refused_before_anybody_looks_who_owns_the_record() {
    let world = World::new();
    let owner = person(2);
    world.put(&owner, "manifest", manifest(&owner, "a", json!({})));
    let before = world.written();
    let stranger = person(3);
    let forgery = forged(publication(&stranger, "manifest", manifest(&owner, "a", json!({"x": 1}))), json!({}));
    assert_eq!(code(world.publish(&forgery)), "signature_invalid");
    let id = "did:web:a.example";
    let forgery = forged(withdrawal(&owner, id), json!({}));
    assert_eq!(code(world.withdraw(id, &forgery)), "signature_invalid");
    let elsewhere = sign(withdrawal(&owner, id), &owner);
    assert_eq!(code(world.withdraw("did:web:b.example", &elsewhere)), "invalid_value");
    assert_eq!(code(world.withdraw(id, &sign(withdrawal(&stranger, id), &stranger))), "publisher_not_authorized");
    assert_eq!(code(world.withdraw("urn:x", &sign(withdrawal(&owner, "urn:x"), &owner))), "record_not_found");
    assert_eq!(world.written(), before);
}
