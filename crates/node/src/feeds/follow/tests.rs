//! A subscriber whose key is gone does not listen on, and whoever hears nothing hears why (RFC 0020 §3.6).

use super::super::RECHECK;
use super::*;
use crate::clock::Clock;
use crate::outbound::{Dids, Door, DoorPolicy};
use crate::{Config, Terms};
use feed::subscription::{PENDING_MAX, UNDECIDED_MAX};
use std::sync::atomic::{AtomicBool, AtomicI64};
use store::{Batch, Course, Feed, Pending, Webhook};
use tempfile::TempDir;
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

/// 2026-03-01T12:00:00Z, in milliseconds since 1970.
const NOON: i64 = 1_772_366_400_000;
const DAY: i64 = 86_400_000;

/// A node in a folder of its own, and its clock.
fn house() -> (TempDir, Arc<AtomicI64>, Config, Arc<Node>) {
    let (folder, time) = (tempfile::tempdir().unwrap(), Arc::new(AtomicI64::new(NOON)));
    let door = DoorPolicy { private_networks: true, ..DoorPolicy::default() };
    let clock = Clock::Set(Arc::clone(&time));
    let config = Config { data: folder.path().to_owned(), clock, door, ..Config::default() };
    let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
    (folder, time, config, node)
}

async fn subscribe(node: &Arc<Node>, name: &str, did: &str, key: &SigningKey) -> String {
    let intent = json!({
        "intent_id": format!("urn:oap:intent:{name}"), "issuer_did": did, "category": "subscription",
        "constraints": {"path": "/tool/did", "operator": "exists", "value": true},
        "projection": {"include": ["/tool/did"]}, "max_event_rate_per_minute": 60,
        "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-03-20T12:00:00Z"},
    });
    let ack = node.subscribe(&signed(intent, did, key), &Terms::default()).await.unwrap();
    ours(&ack).unwrap()["subscription_id"].as_str().unwrap().to_owned()
}

/// A subscription of somebody whose key is his name.
async fn subscribed(node: &Arc<Node>) -> (String, u64) {
    let key = SigningKey::from_seed([8; 32]);
    let mut intent = json!({
        "intent_id": "urn:oap:intent:own", "issuer_did": key.did_key().as_str(), "category": "subscription",
        "constraints": {"path": "/tool/did", "operator": "exists", "value": true},
        "projection": {"include": ["/tool/did"]}, "max_event_rate_per_minute": 60,
        "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-03-20T12:00:00Z"},
    });
    trust::sign(&mut intent, &key).unwrap();
    let ack = node.subscribe(&json::canonical_value(&intent), &Terms::default()).await.unwrap();
    let id = ours(&ack).unwrap()["subscription_id"].as_str().unwrap().to_owned();
    let number = node.feeds.find(&id).unwrap().number;
    (id, number)
}

/// Lets five minutes pass for the key behind a subscription, and what is remembered of it be thrown away.
fn later(node: Arc<Node>, number: u64) -> Arc<Node> {
    *node.feeds.checked(number).0.lock().unwrap() -= RECHECK;
    let mut node = Arc::into_inner(node).unwrap();
    node.dids = Dids::new(Arc::new(Door::new(DoorPolicy { private_networks: true, ..DoorPolicy::default() }).unwrap()));
    Arc::new(node)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_whose_key_is_revoked_is_told_the_end_after_five_minutes() {
    let (key, revoked) = (SigningKey::from_seed([7; 32]), Arc::new(AtomicBool::new(false)));
    let did = host(&key, Arc::clone(&revoked)).await;
    let (_folder, _, _, node) = house();
    let id = subscribe(&node, "revoked", &did, &key).await;
    let number = node.feeds.find(&id).unwrap().number;

    let node = later(node, number);
    let mut follower = node.follow(&id, None).await.unwrap();
    assert!(matches!(follower.next(Duration::from_millis(10)).await, Ok(Heard::Silence(_))), "a key that is there");
    revoked.store(true, Ordering::Release);
    assert!(matches!(follower.next(Duration::from_millis(10)).await, Ok(Heard::Silence(_))), "it is not time yet");
    drop(follower);
    let node = later(node, number);
    let mut follower = node.follow(&id, None).await.unwrap();
    let heard = follower.next(Duration::from_secs(5)).await.unwrap();
    let Heard::Ended(state) = heard else { panic!("{heard:?}") };
    let state = ours(&state).unwrap();
    assert_eq!((&state["state"], &state["reason"]), (&json!("ended"), &json!("key_revoked")));
}

/// However short each visit is: the five minutes are those of the subscription.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_again_and_again_is_looked_at_all_the_same() {
    let (key, revoked) = (SigningKey::from_seed([7; 32]), Arc::new(AtomicBool::new(false)));
    let did = host(&key, Arc::clone(&revoked)).await;
    let (_folder, _, _, node) = house();
    let id = subscribe(&node, "polled", &did, &key).await;
    let number = node.feeds.find(&id).unwrap().number;
    revoked.store(true, Ordering::Release);
    let poll = async |node: &Arc<Node>| ours(&node.poll(&id, None, Duration::ZERO, 10).await.unwrap()).unwrap();
    assert!(poll(&node).await.get("ended").is_none(), "it is not time yet");
    // The subscription is five minutes old, and nobody stays for longer than a moment.
    *node.feeds.checked(number).0.lock().unwrap() -= RECHECK / 2;
    assert!(poll(&node).await.get("ended").is_none(), "it is not time yet");
    *node.feeds.checked(number).0.lock().unwrap() -= RECHECK / 2;
    let node = later(node, number);
    assert_eq!(poll(&node).await["ended"]["reason"], "key_revoked");
    assert!(node.feeds.checks().is_empty(), "nothing is remembered of what is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_between_looking_and_listening_is_heard() {
    let (_folder, _, _, node) = house();
    let (id, number) = subscribed(&node).await;
    let looked = node.feeds.find(&id).unwrap();
    node.feeds.end_now(number, "withdrawn").unwrap();
    let mut follower = node.feeds.follower(&node, looked, 0).unwrap();
    let heard = follower.next(Duration::from_secs(5)).await.unwrap();
    assert!(matches!(heard, Heard::Ended(_)), "{heard:?}");
}

/// What a reader hears who hears nothing, once it is as expected.
async fn silence(node: &Arc<Node>, id: &str, expected: impl Fn(&Value) -> bool) -> Value {
    let mut follower = node.follow(id, None).await.unwrap();
    let mut said = Value::Null;
    for _ in 0..400 {
        let heard = follower.next(Duration::from_millis(20)).await.unwrap();
        let Heard::Silence(heartbeat) = heard else { panic!("{heard:?}") };
        said = ours(&heartbeat).unwrap();
        if expected(&said) {
            return said;
        }
    }
    panic!("{said:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_told_from_a_stall() {
    let (_folder, time, _, node) = house();
    let (id, number) = subscribed(&node).await;
    let quiet = silence(&node, &id, |said| said["as_of"] == "2026-03-01T12:00:00Z").await;
    assert_eq!((&quiet["waiting"], quiet.get("held_by"), &quiet["cursor"]), (&json!(0), None, &json!(0)));
    let page = ours(&node.poll(&id, None, Duration::ZERO, 10).await.unwrap()).unwrap();
    assert_eq!((&page["heartbeat"]["type"], &page["heartbeat"]["waiting"]), (&json!("oap.heartbeat"), &json!(0)));

    // Delivery goes on as time does, also when nothing happens.
    time.fetch_add(60_000, Ordering::AcqRel);
    silence(&node, &id, |said| said["as_of"] == "2026-03-01T12:01:00Z").await;

    // A journal that is full is told of, to whoever listens and to whoever runs the node.
    let full = |bytes: u64| {
        let mut state = node.feeds.state().unwrap();
        let standing = store::Standing { bytes, ..state.live[&number].standing.clone() };
        state.live.get_mut(&number).unwrap().standing = standing.clone();
        standing
    };
    let standing = full(JOURNAL_BYTES_MAX);
    let batch = Batch { at: NOON, ..Batch::default() };
    node.store.deliver(batch, Feed { standings: vec![(number, standing)], ..Feed::default() }).unwrap();
    publish(&node, 1).await;
    let held = silence(&node, &id, |said| said["waiting"] == 1).await;
    assert_eq!(held["held_by"], "journal_full");
    assert_eq!(node.full_journals().unwrap(), 1);
    full(0);
    let mut follower = node.follow(&id, None).await.unwrap();
    assert!(matches!(follower.next(Duration::from_secs(20)).await, Ok(Heard::Event(_))));
    assert_eq!(node.full_journals().unwrap(), 0);
    drop(follower);

    // While delivery fails, it says no longer that everything was looked at.
    let lock = Arc::clone(&node);
    let broken = std::thread::spawn(move || {
        let state = lock.feeds.state.lock();
        assert!(state.is_err(), "in the middle of a step");
    });
    assert!(broken.join().is_err());
    let before = node.feeds.level_at.load(Ordering::Acquire);
    time.fetch_add(600_000, Ordering::AcqRel);
    let mut follower = node.follow(&id, Some("1")).await.unwrap();
    for _ in 0..3 {
        let heard = follower.next(Duration::from_millis(500)).await.unwrap();
        let Heard::Silence(heartbeat) = heard else { panic!("{heard:?}") };
        let said = ours(&heartbeat).unwrap();
        assert_eq!((&said["as_of"], &said["at"]), (&json!("2026-03-01T12:01:00Z"), &json!("2026-03-01T12:11:00Z")));
    }
    assert_eq!(node.feeds.level_at.load(Ordering::Acquire), before);
}

async fn publish(node: &Arc<Node>, number: u64) {
    let publisher = SigningKey::from_seed([9; 32]);
    let mut publication = json!({
        "publication_id": format!("urn:rialto:publication:{number}"), "kind": "manifest",
        "record": {"oap_version": "1.0", "tool": {
            "did": format!("did:web:t{number}.example"), "publisher": {"did": publisher.did_key().as_str()}}},
        "publisher_did": publisher.did_key().as_str(), "issued_at": "2026-03-01T12:00:00Z",
    });
    trust::sign(&mut publication, &publisher).unwrap();
    node.publish(&json::canonical_value(&publication)).await.unwrap();
}

/// What a subscriber is told about the end of its subscription.
async fn end(node: &Arc<Node>, id: &str) -> Value {
    let page = node.poll(id, None, Duration::from_secs(20), 10).await.unwrap();
    ours(&page).unwrap()["ended"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_falls_too_far_behind_is_given_up() {
    let (_folder, time, _, node) = house();
    let (id, number) = subscribed(&node).await;
    {
        // Delivery must not tell of what is not there.
        let mut state = node.feeds.state().unwrap();
        let standing = store::Standing { phase: Phase::Paused, ..state.live[&number].standing.clone() };
        let pending = |record: u64| Pending {
            subscription: number,
            record: format!("did:web:t{record}.example"),
            since: 1,
            told: 0,
            latest: 1,
            evidence: false,
        };
        let feed = Feed {
            standings: vec![(number, standing.clone())],
            pending: (0..=PENDING_MAX).map(pending).collect(),
            ..Feed::default()
        };
        node.store.deliver(Batch { at: NOON, ..Batch::default() }, feed).unwrap();
        state.live.get_mut(&number).unwrap().standing = standing;
        state.lagging.insert(number);
        // The next step looks at the clock again.
        time.fetch_add(1_000, Ordering::AcqRel);
    }
    assert_eq!(end(&node, &id).await["reason"], "fell_behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_is_too_costly_is_given_up_also_when_a_step_failed_in_between() {
    let (_folder, _, _, node) = house();
    let (_, number) = subscribed(&node).await;
    let mut state = node.feeds.state().unwrap();
    state.live.get_mut(&number).unwrap().undecided = UNDECIDED_MAX + 3;
    let mut draft = super::super::deliver::Draft::default();
    super::super::deliver::undecided(&mut state, &mut draft, number, NOON);
    super::super::deliver::undecided(&mut state, &mut draft, number, NOON);
    assert_eq!(draft.ended, [number], "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_is_forgotten_in_time_though_nobody_else_subscribes() {
    let (_folder, time, config, node) = house();
    let (id, number) = subscribed(&node).await;
    publish(&node, 1).await;
    let mut follower = node.follow(&id, None).await.unwrap();
    assert!(matches!(follower.next(Duration::from_secs(20)).await, Ok(Heard::Event(_))));
    drop(follower);
    node.feeds.end_now(number, "withdrawn").unwrap();
    let webhook = Webhook { course: Course::GivenUp, ..Webhook::new("https://example.com/".into(), None) };
    let feed = Feed { webhooks: vec![(number, webhook)], ..Feed::default() };
    node.store.deliver(Batch { at: NOON, ..Batch::default() }, feed).unwrap();
    Arc::into_inner(node).unwrap().close().unwrap();
    let stopped = |node: &Node| node.feeds.brought_figures().stopped;
    let gone = async |node: &Node| {
        for _ in 0..400 {
            if node.feeds.find(&id).is_err() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    };
    time.fetch_add(29 * DAY, Ordering::AcqRel);
    let node = Node::open(&config, &mut |_, _| {}).unwrap();
    assert_eq!((node.feeds.find(&id).is_ok(), stopped(&node)), (true, 1), "it is kept as long as was promised");
    node.close().unwrap();
    time.fetch_add(2 * DAY, Ordering::AcqRel);
    let node = Node::open(&config, &mut |_, _| {}).unwrap();
    assert!(gone(&node).await, "it is kept for longer than was promised");
    assert_eq!(stopped(&node), 0, "and nobody waits to bring it");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_withdraws_or_waits_for_a_restart_is_told_no_more_in_the_minute() {
    let (_folder, time, config, node) = house();
    let (id, number) = subscribed(&node).await;
    publish(&node, 1).await;
    let mut follower = node.follow(&id, None).await.unwrap();
    assert!(matches!(follower.next(Duration::from_secs(20)).await, Ok(Heard::Event(_))));
    drop(follower);
    let told = |node: &Node| {
        let state = node.feeds.state().unwrap();
        state.principals.values().map(|account| (account.subscriptions, account.told.is_idle(NOON))).collect::<Vec<_>>()
    };
    assert_eq!(told(&node), [(1, false)]);
    node.feeds.end_now(number, "withdrawn").unwrap();
    assert_eq!(told(&node), [(0, false)], "a withdrawal");
    Arc::into_inner(node).unwrap().close().unwrap();
    let node = Node::open(&config, &mut |_, _| {}).unwrap();
    assert_eq!(told(&node), [(0, false)], "a restart");
    time.fetch_add(60_000, Ordering::AcqRel);
    node.feeds.state().unwrap().forget_parted(NOON + 60_000);
    assert_eq!(told(&node), [], "the minute is over");
}
