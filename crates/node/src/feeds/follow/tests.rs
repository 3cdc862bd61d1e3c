//! A subscriber whose key is gone does not listen on (RFC 0020 §3.6).

use super::*;
use crate::outbound::{Dids, Door, DoorPolicy};
use crate::{Config, Terms};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trust::SigningKey;

/// A host that shows a DID document, with the key until it is revoked.
async fn host(key: &SigningKey, revoked: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port());
    let (name, key) = (did.clone(), key.public().to_multibase());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let method = format!("{name}#key-1");
            let mut document = json!({"@context": ["https://www.w3.org/ns/did/v1"], "id": name});
            if !revoked.load(Ordering::Acquire) {
                document["verificationMethod"] =
                    json!([{"id": method, "type": "Multikey", "controller": name, "publicKeyMultibase": key}]);
                document["assertionMethod"] = json!([method]);
            }
            let _ = socket.read(&mut [0; 4096]).await;
            let body = document.to_string();
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    did
}

fn signed(mut message: Value, did: &str, key: &SigningKey) -> Vec<u8> {
    let value = trust::encoding::encode(&key.sign(&json::canonical_value(&message)));
    message["signature"] = json!({"alg": "EdDSA", "kid": format!("{did}#key-1"), "value": value});
    json::canonical_value(&message)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_whose_key_is_revoked_is_told_the_end_after_five_minutes() {
    let (key, revoked) = (SigningKey::from_seed([7; 32]), Arc::new(AtomicBool::new(false)));
    let did = host(&key, Arc::clone(&revoked)).await;
    let folder = tempfile::tempdir().unwrap();
    let door = DoorPolicy { private_networks: true, ..DoorPolicy::default() };
    let clock = Clock::Set(Arc::new(1_772_366_400_000.into()));
    let config = Config { data: folder.path().to_owned(), clock, door: door.clone(), ..Config::default() };
    let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
    let intent = json!({
        "intent_id": "urn:oap:intent:revoked", "issuer_did": did, "category": "subscription",
        "constraints": {"path": "/tool/did", "operator": "exists", "value": true},
        "projection": {"include": ["/tool/did"]}, "max_event_rate_per_minute": 60,
        "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-03-20T12:00:00Z"},
    });
    let ack = node.subscribe(&signed(intent, &did, &key), &Terms::default()).await.unwrap();
    let ack = ours(&ack).unwrap();
    let id = ack["subscription_id"].as_str().unwrap();

    // What is remembered of the key is thrown away, as time would do.
    let mut node = Arc::into_inner(node).unwrap();
    node.dids = Dids::new(Arc::new(Door::new(door).unwrap()));
    let node = Arc::new(node);
    let mut follower = node.follow(id, None).await.unwrap();
    follower.checked -= RECHECK;
    assert!(matches!(follower.next(Duration::from_millis(10)).await, Ok(Heard::Silence(_))), "a key that is there");
    revoked.store(true, Ordering::Release);
    assert!(matches!(follower.next(Duration::from_millis(10)).await, Ok(Heard::Silence(_))), "it is not time yet");
    drop(follower);
    let mut node = Arc::into_inner(node).unwrap();
    node.dids = Dids::new(Arc::new(Door::new(DoorPolicy { private_networks: true, ..DoorPolicy::default() }).unwrap()));
    let node = Arc::new(node);
    let mut follower = node.follow(id, None).await.unwrap();
    follower.checked -= RECHECK;
    let heard = follower.next(Duration::from_secs(5)).await.unwrap();
    let Heard::Ended(state) = heard else { panic!("{heard:?}") };
    let state = ours(&state).unwrap();
    assert_eq!((&state["state"], &state["reason"]), (&json!("ended"), &json!("key_revoked")));
}
