//! WebSockets of strangers: every message counts as a request does, and whoever breaks RFC 6455 is told how.

use crate::subscriptions::{Socket, control, path, standing};
use crate::{Answer, House, asker, intent, provider, sign};
use json::{Value, json};
use reqwest::Method;
use server::{Bounds, Patience};
use std::num::NonZeroU32;
use trust::{Digest, SigningKey};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Where one source is somebody, who may send so many messages in a second.
async fn house(messages: u32) -> House {
    let bound = |bounds| Bounds { source_requests_per_second: NonZeroU32::new(messages), ..bounds };
    let configure = |config: &mut node::Config| config.requests_per_second = NonZeroU32::new(100_000);
    House::built(Patience::default(), None, None, bound, configure).await
}

/// The intent of somebody whom nobody knows.
fn of_a_stranger(number: usize) -> Value {
    let key = SigningKey::from_seed(*Digest::of(&number.to_be_bytes()).as_bytes());
    let mut body = intent(&format!("stranger-{number}"));
    body["issuer_did"] = json!(key.did_key().as_str());
    body.as_object_mut().unwrap().remove("signature");
    sign(body, &key)
}

fn code(envelope: &Value) -> Option<&str> {
    envelope["error"]["details"]["code"].as_str()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Stream,
    Socket,
}

/// Asks in one way; the code when it is refused.
async fn ask(house: &House, way: Way, intent: &Value) -> Option<String> {
    let request = |accept: &str| {
        let request = house.request(Method::POST, "/oap/intent").header("accept", accept);
        request.header("content-type", "application/json").body(intent.to_string())
    };
    match way {
        Way::Plain | Way::Stream => {
            let accept = if way == Way::Plain { "*/*" } else { "text/event-stream" };
            let answer = Answer::of(request(accept)).await;
            let streamed = answer.header("content-type").starts_with("text/event-stream");
            assert_eq!(streamed, way == Way::Stream && answer.status == 200, "a refusal comes before any stream");
            (answer.status != 200).then(|| code(&answer.signed(&house.node)).unwrap().to_owned())
        }
        Way::Socket => {
            let (status, mut socket) = Socket::open(house, "/oap/intent/socket", "").await;
            assert_eq!(status, 101);
            socket.send(TEXT, intent.to_string().as_bytes()).await;
            let told = socket.text(&house.node).await;
            code(&told["data"]).map(str::to_owned)
        }
    }
}

/// A did:key costs nothing to make, so a source brings thirty in a minute, whichever way it asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_brings_so_many_new_names_whichever_way_it_asks() {
    for first in [Way::Plain, Way::Stream, Way::Socket] {
        let house = house(100_000).await;
        let mut strangers = (0..200).map(of_a_stranger);
        let mut answered = 0;
        for way in [first, Way::Plain, Way::Stream, Way::Socket] {
            let refused = loop {
                let intent = strangers.next().unwrap_or_else(|| panic!("{way:?} after {first:?} bounds no names"));
                match ask(&house, way, &intent).await {
                    None => answered += 1,
                    Some(code) => break code,
                }
            };
            assert_eq!(refused, "too_many_new_names", "{way:?} after {first:?}");
            assert!(answered >= 30, "{way:?} after {first:?}: {answered}");
        }
        // Whoever is known goes on.
        assert_eq!(ask(&house, first, &of_a_stranger(0)).await, None);
        house.close().await;
    }
}

async fn journal(house: &House) -> (Value, Socket) {
    let ack = house.subscribe("?transport=websocket", &standing("s", &asker(), |_| {})).await;
    let (status, socket) = Socket::open(house, &format!("{}/events", path(&ack)), "").await;
    assert_eq!(status, 101);
    (ack, socket)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_on_a_journal_count_against_their_source() {
    let house = house(5).await;
    let (ack, mut socket) = journal(&house).await;
    let mut codes = Vec::new();
    for number in 0..40 {
        let request = control(&number.to_string(), &ack, &provider(), "pause", json!({}));
        socket.send(TEXT, request.to_string().as_bytes()).await;
        codes.push(code(&socket.text(&house.node).await["data"]).unwrap().to_owned());
    }
    assert!(codes.iter().any(|code| code == "issuer_not_authorized"), "{codes:?}");
    assert!(codes.iter().any(|code| code == "too_many_requests"), "{codes:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_count_too_and_whoever_sends_too_many_is_closed() {
    let house = house(5).await;
    let (_, mut socket) = journal(&house).await;
    for _ in 0..200 {
        socket.send(PING, b"?").await;
    }
    let code = loop {
        let (opcode, payload) = socket.frame().await;
        match opcode {
            PONG => {}
            CLOSE => break u16::from_be_bytes([payload[0], payload[1]]),
            other => panic!("a frame of kind {other}"),
        }
    };
    assert_eq!(code, 1008);
    house.close().await;
}

/// decisions/0063: the line is for whoever is mostly refused, also on a socket.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_mostly_refused_on_a_socket_is_heard_in_the_back_room() {
    let house = House::bounded(|bounds| Bounds { source_connections: Some(64), ..bounds }).await;
    let (ack, mut socket) = journal(&house).await;
    let mut told = 0;
    let code = loop {
        socket.send(TEXT, b"{}").await;
        let (opcode, payload) = socket.frame().await;
        match opcode {
            TEXT => told += 1,
            _ => break u16::from_be_bytes([payload[0], payload[1]]),
        }
        assert!(told < 200, "nobody is sent away");
    };
    assert_eq!(code, 1013, "to come again");
    // In the back room it goes on.
    let (_, mut back) = Socket::open(&house, &format!("{}/events", path(&ack)), "").await;
    for _ in 0..12 {
        back.send(TEXT, b"{}").await;
        assert_eq!(back.text(&house.node).await["event"], "oap.error");
    }
    back.send(TEXT, control("p", &ack, &asker(), "pause", json!({})).to_string().as_bytes()).await;
    assert_eq!(back.text(&house.node).await["event"], "oap.subscription.state");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_that_is_refused_on_a_socket_is_held_against_its_source() {
    let house = House::bounded(|bounds| Bounds { source_connections: Some(64), ..bounds }).await;
    // A connection in front, from before.
    assert_eq!(house.get("/openapi.json").await.status, 200);
    for _ in 0..32 {
        let (_, mut socket) = Socket::open(&house, "/oap/intent/socket", "").await;
        socket.send(TEXT, b"{}").await;
        assert_eq!(socket.text(&house.node).await["event"], "oap.error");
        assert_eq!(socket.closed().await, 1008);
    }
    let refused = house.post("/oap/intent", &json!({})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.header("connection"), "close", "it is to come again, to the back room");
    house.close().await;
}

/// RFC 6455 §7.4.1.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_breaks_the_rules_of_websockets_is_told_which() {
    let house = House::open().await;
    let (ack, _) = journal(&house).await;
    let mask = [0; 4];
    let oversized = [&[0x81, 0xff][..], &(1_u64 << 40).to_be_bytes(), &mask].concat();
    let cases: [(&str, u16, Vec<u8>); 9] = [
        ("a text that is no UTF-8", 1007, [&[0x81, 0x82][..], &mask, b"\xff\xfe"].concat()),
        ("a text that is not masked", 1002, b"\x81\x02{}".to_vec()),
        ("half a ping", 1002, [&[0x09, 0x81][..], &mask, b"a"].concat()),
        ("a ping of 126 bytes", 1002, [&[0x89, 0xfe, 0, 126][..], &mask, &[b'a'; 126]].concat()),
        ("a reserved bit", 1002, [&[0xc1, 0x82][..], &mask, b"{}"].concat()),
        ("an opcode that nobody knows", 1002, [&[0x83, 0x80][..], &mask].concat()),
        ("the rest of nothing", 1002, [&[0x80, 0x81][..], &mask, b"a"].concat()),
        ("a frame of a tebibyte", 1009, oversized),
        ("bytes", 1003, [&[0x82, 0x81][..], &mask, b"a"].concat()),
    ];
    for place in [format!("{}/events", path(&ack)), "/oap/intent/socket".to_owned()] {
        for (what, code, bytes) in &cases {
            let (status, mut socket) = Socket::open(&house, &place, "").await;
            assert_eq!(status, 101);
            socket.raw(bytes).await;
            assert_eq!(socket.closed().await, *code, "{what} at {place}");
        }
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_before_the_intent_is_answered_and_so_are_the_intent_and_a_close() {
    let house = House::open().await;
    let (_, mut socket) = Socket::open(&house, "/oap/intent/socket", "").await;
    socket.send(PING, b"early").await;
    assert_eq!(socket.frame().await, (PONG, b"early".to_vec()));
    socket.send(PONG, b"unasked").await;
    socket.send(TEXT, intent("late").to_string().as_bytes()).await;
    for event in ["oap.intent.ack", "oap.complete"] {
        assert_eq!(socket.text(&house.node).await["event"], event);
    }
    assert_eq!(socket.closed().await, 1000);
    let (_, mut journal) = journal(&house).await;
    let (_, mut early) = Socket::open(&house, "/oap/intent/socket", "").await;
    early.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(early.closed().await, 1000);
    journal.send(PING, b"here").await;
    assert_eq!(journal.frame().await, (PONG, b"here".to_vec()));
    journal.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(journal.closed().await, 1000);
    house.close().await;
}
