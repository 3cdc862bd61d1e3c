//! Who sends a request: proved once, not twice, not elsewhere, not later.

use crate::world::{NOON, World, person};
use json::Value;
use node::{Caller, Error, Presented, Unproved};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trust::http::{COMPONENTS, Headers, Request, Signing, legacy_header, sign};
use trust::{DidUrl, SecretKey};

const TARGET: &str = "http://localhost:7420/whoami";
const SECONDS: i64 = NOON / 1_000;

/// A request and its header fields.
#[derive(Clone)]
struct Sent {
    method: &'static str,
    target: &'static str,
    body: &'static [u8],
    fields: Vec<(String, String)>,
}

fn signed(number: u8, nonce: &str, body: &'static [u8]) -> Sent {
    let (keyid, key) = (person(number).key_id().to_string(), SecretKey::from(person(number)));
    let request = Request { method: "POST", target: TARGET, headers: Headers::new(&[]), body };
    let signing = Signing { key: &key, keyid: &keyid, created: SECONDS, expires: SECONDS + 60, nonce };
    let fields = sign(&request, &signing, &COMPONENTS);
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Sent { method: "POST", target: TARGET, body, fields }
}

fn bearing(token: &str) -> Sent {
    let fields = vec![("authorization".to_owned(), format!("Bearer {token}"))];
    Sent { method: "GET", target: TARGET, body: b"", fields }
}

async fn prove(node: &Arc<node::Node>, sent: &Sent) -> Result<Caller, Unproved> {
    let headers: Vec<(&str, &str)> = sent.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let targets = [sent.target.to_owned()];
    node.authenticate(&Presented { method: sent.method, targets: &targets, headers: &headers, body: sent.body }).await
}

/// Who it is, or the code and the word of the challenge.
fn asked(world: &World, sent: &Sent) -> Result<Caller, (String, Option<String>)> {
    world.runtime.block_on(prove(world.node(), sent)).map_err(|unproved| match unproved.error {
        Error::Refusal(refusal) => (refusal.code.to_owned(), unproved.challenge.and_then(|challenge| challenge.error)),
        other => panic!("no refusal: {other:?}"),
    })
}

fn code(world: &World, sent: &Sent) -> String {
    asked(world, sent).map_or_else(|(code, _)| code, |caller| caller.did.to_string())
}

#[test]
fn a_signature_proves_its_sender_and_earns_a_token() {
    let world = World::new();
    let caller = asked(&world, &signed(1, "n1", b"{}")).unwrap();
    assert_eq!(caller.did, person(1).did_key());
    assert_eq!(caller.must_be(&person(1).did_key()), Ok(()));
    let other = caller.must_be(&person(2).did_key()).unwrap_err();
    assert_eq!((other.code, other.class), ("forbidden_did", node::Class::PolicyBlock));
    let token = caller.token.unwrap();
    let again = asked(&world, &bearing(&token)).unwrap();
    assert_eq!((again.did, again.token), (person(1).did_key(), None), "a token earns no token");
    world.millis.store(NOON + 3_600_000, Ordering::Release);
    assert_eq!(code(&world, &bearing(&token)), "invalid_access_token");
}

#[test]
fn a_token_of_another_node_is_none() {
    let (world, other) = (World::new(), World::new());
    let token = asked(&other, &signed(1, "n1", b"{}")).unwrap().token.unwrap();
    assert_eq!(code(&other, &bearing(&token)), person(1).did_key().as_str());
    assert_eq!(asked(&world, &bearing(&token)).unwrap_err().1.as_deref(), Some("invalid_access_token"));
    assert_eq!(code(&world, &bearing("rubbish")), "invalid_access_token");
}

#[test]
fn a_request_comes_once_over_restarts_and_kills() {
    let mut world = World::new();
    let sent = signed(1, "n1", b"{}");
    assert_eq!(code(&world, &sent), person(1).did_key().as_str());
    assert_eq!(asked(&world, &sent).unwrap_err(), ("invalid_nonce".to_owned(), Some("invalid_nonce".to_owned())));
    world.reopen();
    assert_eq!(code(&world, &sent), "invalid_nonce");
    world.crash();
    assert_eq!(code(&world, &sent), "invalid_nonce");
    // The same nonce under another request is the same nonce; of somebody else it is another one.
    assert_eq!(code(&world, &signed(1, "n1", b"[]")), "invalid_nonce");
    assert_eq!(code(&world, &signed(2, "n1", b"{}")), person(2).did_key().as_str());
    // When it is forgotten, it is too old.
    world.millis.store(NOON + 361_000, Ordering::Release);
    assert_eq!(code(&world, &sent), "request_timestamp");
}

#[test]
fn of_fifty_who_come_with_one_request_at_once_one_is_let_in() {
    let world = World::new();
    let proved = world.runtime.block_on(async {
        let ask = || {
            let (node, sent) = (Arc::clone(world.node()), signed(1, "n1", b"{}"));
            tokio::spawn(async move { prove(&node, &sent).await.is_ok() })
        };
        let asked: Vec<_> = (0..50).map(|_| ask()).collect();
        let mut proved = 0;
        for one in asked {
            proved += usize::from(one.await.unwrap());
        }
        proved
    });
    assert_eq!(proved, 1);
}

#[test]
fn a_forgery_burns_no_nonce() {
    let world = World::new();
    let good = signed(1, "n1", b"{}");
    let mut forged = good.clone();
    forged.body = b"[]";
    assert_eq!(code(&world, &forged), "invalid_content_digest");
    forged = Sent { target: "http://localhost:7420/other", ..good.clone() };
    assert_eq!(code(&world, &forged), "invalid_signature");
    forged = Sent { method: "PUT", ..good.clone() };
    assert_eq!(code(&world, &forged), "invalid_signature");
    assert_eq!(code(&world, &good), person(1).did_key().as_str());
}

#[test]
fn nothing_is_a_challenge_and_a_did_that_cannot_be_found_proves_nobody() {
    let world = World::new();
    let nothing = Sent { method: "GET", target: TARGET, body: b"", fields: vec![] };
    assert_eq!(asked(&world, &nothing).unwrap_err(), ("authentication_required".to_owned(), None));
    let mut elsewhere = signed(1, "n1", b"{}");
    for (_, value) in &mut elsewhere.fields {
        *value = value.replace(person(1).key_id().to_string().as_str(), "did:wba:localhost%3A1024#key-1");
    }
    let unresolvable = asked(&world, &elsewhere).unwrap_err();
    assert_eq!(unresolvable, ("did_unresolvable".to_owned(), Some("invalid_did".to_owned())));
    let unproved = world.runtime.block_on(prove(world.node(), &nothing)).unwrap_err();
    assert!(unproved.challenge.unwrap().nonce.is_some());
    let Error::Refusal(refusal) = unproved.error else { panic!("no refusal") };
    assert_eq!(refusal.class, node::Class::AuthRequired);
}

#[test]
fn the_older_header_is_taken_where_the_operator_says_so_and_only_for_reading() {
    let (closed, open) = (World::new(), World::with(|config| config.legacy_authentication = true));
    let name = DidUrl::parse(&person(1).key_id().to_string()).unwrap();
    let header = |nonce: &str, host: &str| {
        let value = legacy_header(&person(1).into(), &name, host, nonce, "2026-03-01T12:00:00Z");
        Sent { method: "GET", target: TARGET, body: b"", fields: vec![("authorization".to_owned(), value)] }
    };
    assert_eq!(code(&closed, &header("n1", "localhost")), "invalid_request");
    assert_eq!(code(&open, &header("n1", "localhost")), person(1).did_key().as_str());
    assert_eq!(code(&open, &header("n1", "localhost")), "invalid_nonce");
    assert_eq!(code(&open, &header("n2", "elsewhere.example")), "invalid_signature");
    assert_eq!(code(&open, &Sent { method: "POST", ..header("n3", "localhost") }), "invalid_request");
    assert_eq!(code(&open, &Sent { body: b"{}", ..header("n3", "localhost") }), "invalid_request");
}

#[test]
fn a_node_may_be_called_did_wba() {
    let world = World::with(|config| {
        config.public_url = Some("https://node.example:8443".to_owned());
        config.wba = true;
    });
    let document: Value = world.node().identity().document();
    assert_eq!(document["id"], "did:wba:node.example%3A8443");
    assert_eq!(document["authentication"][0], "did:wba:node.example%3A8443#node-key");
    let token = asked(&world, &signed(1, "n1", b"{}")).unwrap().token.unwrap();
    assert_eq!(code(&world, &bearing(&token)), person(1).did_key().as_str());
}
