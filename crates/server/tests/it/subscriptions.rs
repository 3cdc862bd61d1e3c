//! Intents that stay open, over real connections.

use crate::{Answer, House, NOW, asker, escaped, manifest, provider, publication, sign, withdrawal};
use json::{Document, Value, json};
use node::{Clock, Node};
use reqwest::Method;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trust::SigningKey;

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

/// A house whose clock can be set.
pub(crate) async fn house() -> (House, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(NOW));
    let clock = Clock::Set(Arc::clone(&time));
    (House::configured(|config| config.clock = clock).await, time)
}

pub(crate) fn standing(name: &str, key: &SigningKey, change: impl FnOnce(&mut Value)) -> Value {
    let mut body = json!({
        "intent_id": format!("urn:oap:intent:{name}"),
        "issuer_did": key.did_key().as_str(),
        "category": "subscription",
        "constraints": {"path": "/tool/categories", "operator": "contains", "value": "translation"},
        "projection": {"include": ["/tool/did", "/pricing"]},
        "max_event_rate_per_minute": 6000,
        "validity": {"from": "2026-05-01T11:55:00Z", "to": "2026-07-20T12:00:00Z"},
    });
    change(&mut body);
    sign(body, key)
}

pub(crate) fn priced(amount: &str) -> Value {
    let mut record = manifest();
    record["pricing"]["models"][0]["amount"] = json!(amount);
    record
}

/// A manifest of its own, by number.
fn numbered(number: usize, amount: &str) -> Value {
    let mut record = priced(amount);
    record["tool"]["did"] = json!(format!("did:web:t{number}.example"));
    record["tool"]["publisher"] = json!({"did": provider().did_key().as_str()});
    record
}

pub(crate) fn control(name: &str, ack: &Value, key: &SigningKey, request: &str, more: Value) -> Value {
    let mut body = json!({
        "control_id": format!("urn:rialto:control:{name}"),
        "subscription_id": ack["subscription_id"],
        "request": request,
        "issuer_did": key.did_key().as_str(),
        "issued_at": "2026-05-01T11:59:00Z",
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sign(body, key)
}

pub(crate) fn path(ack: &Value) -> String {
    format!("/oap/subscriptions/{}", escaped(ack["subscription_id"].as_str().unwrap()))
}

/// Checks a document that the node signed by itself.
#[track_caller]
fn verified(node: &Node, value: &Value) {
    let document = Document::of(value).unwrap();
    let keys = Document::of(&node.identity().document()).unwrap();
    let keys = trust::DidDocument::read(keys.root(), node.identity().did()).unwrap();
    trust::Signed::read(&document).unwrap().verify_with(&keys).unwrap();
}

impl House {
    pub(crate) async fn subscribe(&self, query: &str, intent: &Value) -> Value {
        self.post(&format!("/oap/subscribe{query}"), intent).await.ok(&self.node)
    }

    /// Events after a cursor, each checked by itself.
    async fn poll(&self, ack: &Value, after: u64, wait: u64) -> Value {
        let page = self.get(&format!("{}/events?after={after}&wait={wait}", path(ack))).await.ok(&self.node);
        crate::interface::valid("rialto-subscription-events.schema.json", &page);
        for event in page["events"].as_array().unwrap() {
            verified(&self.node, event);
        }
        page
    }

    /// The next events, waited for until there are so many.
    pub(crate) async fn events(&self, ack: &Value, after: u64, wanted: usize) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        for _ in 0..20 {
            let page = self.poll(ack, after + events.len() as u64, 5).await;
            events.extend(page["events"].as_array().unwrap().clone());
            if events.len() >= wanted {
                return events;
            }
        }
        panic!("{} of {wanted} events", events.len());
    }
}

/// A stream of events as a client reads it.
struct Stream {
    response: reqwest::Response,
    read: String,
}

/// One frame of a stream.
#[derive(Debug, Default, Clone, PartialEq)]
struct Frame {
    id: Option<String>,
    seq: Option<String>,
    event: String,
    data: String,
}

impl Stream {
    async fn open(house: &House, ack: &Value, last: Option<u64>) -> Self {
        let request = house.client.get(format!("{}{}/events", house.url, path(ack)));
        let request = request.header("accept", "text/event-stream");
        let request = match last {
            Some(last) => request.header("last-event-id", last.to_string()),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        Self { response, read: String::new() }
    }

    /// The next frame as the standard's algorithm reads it; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((block, rest)) = self.read.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.read = rest;
                let mut frame = Frame::default();
                for line in block.split('\n') {
                    let (field, value) = line.split_once(':').unwrap_or((line, ""));
                    let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
                    match field {
                        "id" => frame.id = Some(value),
                        "seq" => frame.seq = Some(value),
                        "event" => frame.event = value,
                        "data" => frame.data += &value,
                        _ => {}
                    }
                }
                if !frame.data.is_empty() {
                    return Some(frame);
                }
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await.unwrap().unwrap()?;
            self.read += std::str::from_utf8(&chunk).unwrap();
        }
    }

    async fn event(&mut self, node: &Node) -> Value {
        let frame = self.next().await.unwrap();
        let value = Document::parse(frame.data.as_bytes(), &json::Limits::OURS).unwrap().root().to_value();
        verified(node, &value);
        if frame.event == "oap.manifest.event" {
            assert_eq!(frame.id, Some(value["cursor"].to_string()));
            assert_eq!(frame.seq, frame.id);
        }
        value
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_enters_changes_and_leaves_the_answer_is_told_in_order_each_signed() {
    let (house, _) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    crate::interface::valid("rialto-subscription-ack.schema.json", &ack);
    assert_eq!((&ack["cursor"], &ack["retention_days"], &ack["transport"]), (&json!(0), &json!(30), &json!("sse")));
    assert_eq!(ack["max_event_rate_per_minute"], 6000);
    let mut stream = Stream::open(&house, &ack, None).await;
    let mut other = manifest();
    other["tool"]["categories"] = json!(["maps"]);
    let mut certified = priced("0.30");
    certified["conformance"] = json!({"claimed_levels": ["L1"]});
    house.publish("1", "manifest", other.clone()).await;
    house.publish("2", "manifest", manifest()).await;
    house.publish("3", "manifest", priced("0.30")).await;
    // Nothing that the subscriber sees.
    house.publish("4", "manifest", certified.clone()).await;
    house.publish("5", "manifest", other).await;
    house.publish("6", "manifest", manifest()).await;
    let id = provider().did_key().as_str().to_owned();
    let gone = withdrawal(&provider(), "7", &id);
    house.send(Method::DELETE, &format!("/oap/records/{}", escaped(&id)), &gone).await.ok(&house.node);
    let expected = [
        ("entered", "created", Some("0.20")),
        ("changed", "updated", Some("0.30")),
        ("left", "superseded", None),
        ("entered", "created", Some("0.20")),
        ("left", "withdrawn", None),
    ];
    let mut hash = Value::Null;
    for (number, (change, by, price)) in expected.into_iter().enumerate() {
        let event = stream.event(&house.node).await;
        assert_eq!((&event["set_change"], &event["event_type"]), (&json!(change), &json!(by)), "{event:#}");
        assert_eq!(event["cursor"], json!(number as u64 + 1));
        assert_eq!((&event["manifest_id"], &event["subscription_id"]), (&json!(id), &ack["subscription_id"]));
        assert_eq!(event["payload"]["pricing"]["models"][0]["amount"].as_str(), price);
        assert!(event["payload"]["tool"].get("name").is_none(), "outside of the projection");
        if change == "changed" {
            assert_eq!(event["manifest_hash_before"], hash);
        }
        hash = event["manifest_hash_after"].clone();
    }
    // Whoever goes on after an event gets what follows it, the same as before.
    let mut again = Stream::open(&house, &ack, Some(3)).await;
    assert_eq!(again.event(&house.node).await["cursor"], 4);
    let all = house.events(&ack, 0, 5).await;
    assert_eq!(again.event(&house.node).await, all[4]);
    house.close().await;
}

impl Stream {
    /// The answer to an intent, candidate by candidate.
    async fn answer(house: &House, intent: &Value, last: Option<u64>) -> Self {
        let request = house.client.post(format!("{}/oap/intent", house.url)).body(intent.to_string());
        let request = request.header("accept", "text/event-stream").header("content-type", "application/json");
        let request = match last {
            Some(last) => request.header("last-event-id", last.to_string()),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, read: String::new() }
    }

    async fn until_the_end(mut self, node: &Node) -> Vec<(Frame, Value)> {
        let mut parts = Vec::new();
        while let Some(frame) = self.next().await {
            let value = Document::parse(frame.data.as_bytes(), &json::Limits::OURS).unwrap().root().to_value();
            verified(node, &value);
            parts.push((frame, value));
        }
        parts
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_streamed_candidate_by_candidate_and_goes_on_after_a_break() {
    let (house, _) = house().await;
    for number in 0..130 {
        house.publish(&format!("{number}"), "manifest", numbered(number, "0.10")).await;
    }
    let mut intent = crate::intent("stream");
    intent.as_object_mut().unwrap().remove("signature");
    intent["resolution_policy"] = json!("full_set");
    let intent = sign(intent, &asker());
    let parts = Stream::answer(&house, &intent, None).await.until_the_end(&house.node).await;
    let events: Vec<&str> = parts.iter().map(|(frame, _)| frame.event.as_str()).collect();
    assert_eq!((events[0], *events.last().unwrap()), ("oap.intent.ack", "oap.complete"));
    for (seq, (frame, _)) in parts.iter().enumerate() {
        assert_eq!(frame.id, Some(seq.to_string()));
    }
    let found: Vec<&Value> =
        parts.iter().filter(|(frame, _)| frame.event == "oap.intent.candidate").map(|(_, value)| value).collect();
    assert_eq!(found.len(), 130);
    for (rank, value) in (1..).zip(&found) {
        crate::interface::valid("oap-intent-response.schema.json", value);
        assert_eq!(value["candidates"].as_array().unwrap().len(), 1);
        assert_eq!(value["candidates"][0]["rank"], json!(rank));
        assert!(value["candidates"][0]["decision_record"].is_object());
    }
    let complete = &parts.last().unwrap().1;
    crate::interface::valid("oap-response-envelope.schema.json", complete);
    assert_eq!((&complete["status"], &complete["output"]["candidates"]), (&json!("ok"), &json!(130)));
    assert_eq!(complete["output"]["receipt"]["type"], "invocation");
    crate::interface::valid("oap-response-envelope.schema.json", &parts[0].1);
    assert_eq!(parts[0].1["status"], "accepted");
    let rest = Stream::answer(&house, &intent, Some(57)).await.until_the_end(&house.node).await;
    assert_eq!(rest, parts[58..], "the same bytes");
    // A refusal comes before any stream.
    let mut forged = intent.clone();
    forged["intent_id"] = json!("urn:oap:intent:other");
    let request = house.request(Method::POST, "/oap/intent").header("accept", "text/event-stream");
    let answer = Answer::of(request.header("content-type", "application/json").body(forged.to_string())).await;
    answer.refused(&house.node, 401, "signature_invalid");
    house.close().await;
}

/// A WebSocket, frame by frame (RFC 6455).
pub(crate) struct Socket(tokio::net::TcpStream);

impl Socket {
    /// Asks for a socket; gives the status, too.
    pub(crate) async fn open(house: &House, path: &str, more: &str) -> (u16, Self) {
        let mut stream = tokio::net::TcpStream::connect(house.address()).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n",
            house.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), Self(stream))
    }

    pub(crate) async fn send(&mut self, opcode: u8, payload: &[u8]) {
        let mut frame = vec![0x80 | opcode];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        // A mask of noughts is a mask.
        frame.extend([0; 4]);
        frame.extend(payload);
        let _ = self.0.write_all(&frame).await;
    }

    /// Bytes as they are, which may be no frame.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// The next frame: what it is, and its payload.
    pub(crate) async fn frame(&mut self) -> (u8, Vec<u8>) {
        let reading = async {
            let opcode = self.0.read_u8().await.unwrap() & 0x0f;
            let length = match self.0.read_u8().await.unwrap() {
                126 => u64::from(self.0.read_u16().await.unwrap()),
                127 => self.0.read_u64().await.unwrap(),
                length => u64::from(length),
            };
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.unwrap();
            (opcode, payload)
        };
        tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap()
    }

    /// The next text, its document checked.
    pub(crate) async fn text(&mut self, node: &Node) -> Value {
        let (opcode, payload) = self.frame().await;
        assert_eq!(opcode, 1, "{}", String::from_utf8_lossy(&payload));
        let text = Document::parse(&payload, &json::Limits::OURS).unwrap().root().to_value();
        verified(node, &text["data"]);
        text
    }

    /// The code with which the socket is closed.
    pub(crate) async fn closed(&mut self) -> u16 {
        let (opcode, payload) = self.frame().await;
        assert_eq!(opcode, 8, "{}", String::from_utf8_lossy(&payload));
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_tells_the_same_as_a_stream_and_takes_requests() {
    let (house, _) = house().await;
    let ack = house.subscribe("?transport=websocket", &standing("s", &asker(), |_| {})).await;
    let events = format!("{}/events", path(&ack));
    let (status, mut socket) = Socket::open(&house, &events, "").await;
    assert_eq!(status, 101);
    house.publish("1", "manifest", priced("1")).await;
    let told = socket.text(&house.node).await;
    assert_eq!((&told["seq"], &told["event"]), (&json!(1), &json!("oap.manifest.event")));
    assert_eq!(told["data"], house.events(&ack, 0, 1).await[0]);
    let slower = control("1", &ack, &asker(), "back_pressure", json!({"max_event_rate_per_minute": 100}));
    socket.send(1, slower.to_string().as_bytes()).await;
    assert_eq!(socket.text(&house.node).await["data"]["max_event_rate_per_minute"], 100);
    socket.send(1, control("2", &ack, &provider(), "pause", json!({})).to_string().as_bytes()).await;
    let refused = socket.text(&house.node).await;
    assert_eq!(refused["data"]["error"]["details"]["code"], "issuer_not_authorized");
    // Whoever hangs up because it is too much is told less.
    socket.send(8, &1009_u16.to_be_bytes()).await;
    for _ in 0..50 {
        if house.get(&path(&ack)).await.ok(&house.node)["max_event_rate_per_minute"] == json!(50) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(house.get(&path(&ack)).await.ok(&house.node)["max_event_rate_per_minute"], 50);
    let (_, mut again) = Socket::open(&house, &format!("{events}?after=0"), "").await;
    assert_eq!(again.text(&house.node).await["data"], told["data"]);
    let (_, mut loud) = Socket::open(&house, &events, "").await;
    assert_eq!(loud.text(&house.node).await["seq"], 1);
    loud.send(1, &vec![b' '; 300 * 1024]).await;
    assert_eq!(loud.closed().await, 1009);
    let (status, _) = Socket::open(&house, &events, "origin: https://elsewhere.example\r\n").await;
    assert_eq!(status, 403, "a page of another origin gets no socket");
    house.post(&format!("{}/control", path(&ack)), &control("3", &ack, &asker(), "withdraw", json!({}))).await;
    assert_eq!(again.text(&house.node).await["event"], "oap.subscription.ended");
    assert_eq!(again.closed().await, 1000);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_over_a_socket_and_a_node_that_stops_says_so() {
    let (house, _) = house().await;
    house.publish("1", "manifest", priced("0.10")).await;
    let (status, mut socket) = Socket::open(&house, "/oap/intent/socket", "").await;
    assert_eq!(status, 101);
    let intent = crate::intent("socket");
    socket.send(1, intent.to_string().as_bytes()).await;
    let mut told = Vec::new();
    for event in ["oap.intent.ack", "oap.intent.candidate", "oap.complete"] {
        let text = socket.text(&house.node).await;
        assert_eq!((&text["event"], &text["seq"]), (&json!(event), &json!(told.len())));
        told.push(text);
    }
    assert_eq!(socket.closed().await, 1000);
    let (_, mut rest) = Socket::open(&house, "/oap/intent/socket?after=0", "").await;
    rest.send(1, intent.to_string().as_bytes()).await;
    assert_eq!(rest.text(&house.node).await, told[1]);
    house.get("/oap/intent/socket").await.refused(&house.node, 400, "upgrade_required");
    let (_, mut wrong) = Socket::open(&house, "/oap/intent/socket", "").await;
    wrong.send(1, b"{}").await;
    assert_eq!(wrong.text(&house.node).await["event"], "oap.error");
    assert_eq!(wrong.closed().await, 1008);
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    let (_, mut open) = Socket::open(&house, &format!("{}/events", path(&ack)), "").await;
    let farewell = async { open.closed().await };
    let (code, ()) = tokio::join!(farewell, house.close());
    assert_eq!(code, 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_it_says_of_its_conformance_makes_it_recertified() {
    let (house, _) = house().await;
    let intent = standing("s", &asker(), |body| body["projection"]["include"] = json!([""]));
    let ack = house.subscribe("", &intent).await;
    let mut certified = manifest();
    certified["conformance"] = json!({"claimed_levels": ["L1"]});
    house.publish("1", "manifest", manifest()).await;
    house.publish("2", "manifest", certified).await;
    let events = house.events(&ack, 0, 2).await;
    assert_eq!((&events[1]["set_change"], &events[1]["event_type"]), (&json!("changed"), &json!("recertified")));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_say_lets_a_record_enter_and_leave() {
    let (house, _) = house().await;
    let intent = standing("s", &asker(), |body| body["quality_floor"] = json!({"performance_score": 0.8}));
    let ack = house.subscribe("", &intent).await;
    house.publish("1", "manifest", manifest()).await;
    let judge = SigningKey::from_seed([9; 32]);
    let say = |score: f64, name: &str| {
        let record = json!({"id": "urn:x:evidence:1", "subject_did": provider().did_key().as_str(),
            "issuer_did": judge.did_key().as_str(), "performance_score": score});
        publication(&judge, name, "evidence", record)
    };
    house.post("/oap/records", &say(0.9, "e1")).await.ok(&house.node);
    house.post("/oap/records", &say(0.1, "e2")).await.ok(&house.node);
    let events = house.events(&ack, 0, 2).await;
    let told: Vec<_> =
        events.iter().map(|event| (event["set_change"].as_str(), event["event_type"].as_str())).collect();
    assert_eq!(told, [(Some("entered"), Some("recertified")), (Some("left"), Some("recertified"))]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_as_it_stands_comes_first_and_nothing_is_missing_after_it() {
    let (house, _) = house().await;
    for number in 0..5 {
        house.publish(&format!("a{number}"), "manifest", numbered(number, "1")).await;
    }
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let publishing = async {
        for number in 5..25 {
            house.publish(&format!("b{number}"), "manifest", numbered(number, "1")).await;
        }
        stop.store(true, Ordering::Release);
    };
    let subscribing = async {
        let mut acks = Vec::new();
        let mut number = 0;
        while !stop.load(Ordering::Acquire) {
            let intent = standing(&format!("s{number}"), &asker(), |_| {});
            acks.push(house.subscribe("?snapshot=true", &intent).await);
            number += 1;
        }
        acks
    };
    let ((), acks) = tokio::join!(publishing, subscribing);
    assert!(acks.len() > 2);
    for ack in acks {
        let snapshot = ack["snapshot"]["records"].as_u64().unwrap();
        let events = house.events(&ack, 0, 25).await;
        let mut seen = std::collections::BTreeSet::new();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["cursor"], json!(number as u64 + 1));
            assert_eq!(event.get("snapshot").is_some(), (number as u64) < snapshot);
            assert!(seen.insert(event["manifest_id"].as_str().unwrap().to_owned()), "told twice");
        }
        assert_eq!(seen.len(), 25);
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_intent_is_the_same_subscription_by_either_door() {
    let (house, _) = house().await;
    let intent = standing("s", &asker(), |_| {});
    let ack = house.subscribe("?transport=poll", &intent).await;
    assert_eq!(house.subscribe("", &intent).await, ack);
    assert_eq!(house.post("/oap/intent", &intent).await.ok(&house.node), ack);
    let other = standing("s", &asker(), |body| body["max_event_rate_per_minute"] = json!(1));
    house.post("/oap/subscribe", &other).await.refused(&house.node, 409, "intent_id_reused");
    house.post("/oap/subscribe", &crate::intent("q")).await.refused(&house.node, 400, "category_not_supported");
    let explained = house.post("/oap/explain", &json!({"intent": intent})).await;
    explained.refused(&house.node, 400, "category_not_supported");
    let unsigned = {
        let mut intent = standing("u", &asker(), |_| {});
        intent["max_event_rate_per_minute"] = json!(7);
        intent
    };
    house.post("/oap/subscribe", &unsigned).await.refused(&house.node, 401, "signature_invalid");
    for query in ["?transport=pigeon", "?snapshot=1"] {
        let answer = house.post(&format!("/oap/subscribe{query}"), &standing("q", &asker(), |_| {})).await;
        answer.refused(&house.node, 400, "invalid_value");
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_intent_is_acknowledged_also_to_whoever_takes_streams() {
    let (house, _) = house().await;
    for (number, accept) in ["text/event-stream", "application/json, text/event-stream"].into_iter().enumerate() {
        let intent = standing(&format!("s{number}"), &asker(), |_| {});
        let request = house.request(Method::POST, "/oap/intent?snapshot=true").header("accept", accept);
        let answer = Answer::of(request.header("content-type", "application/json").body(intent.to_string())).await;
        let ack = answer.ok(&house.node);
        crate::interface::valid("rialto-subscription-ack.schema.json", &ack);
        assert_eq!(ack["snapshot"]["records"], 0, "what the address says counts");
        assert_eq!(house.subscribe("", &intent).await, ack);
    }
    // What is wrong with one is said as always.
    let forged = {
        let mut intent = standing("f", &asker(), |_| {});
        intent["max_event_rate_per_minute"] = json!(7);
        intent
    };
    let request = house.request(Method::POST, "/oap/intent").header("accept", "text/event-stream");
    let answer = Answer::of(request.header("content-type", "application/json").body(forged.to_string())).await;
    answer.refused(&house.node, 401, "signature_invalid");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_on_which_nothing_happens_says_so_and_what_is_held_back() {
    let patience = server::Patience { silence: Duration::from_millis(100), ..server::Patience::default() };
    let house = House::with(patience, None, None).await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    let mut stream = Stream::open(&house, &ack, None).await;
    let quiet = stream.event(&house.node).await;
    crate::interface::valid("rialto-heartbeat.schema.json", &quiet);
    assert_eq!((&quiet["type"], &quiet["cursor"], &quiet["waiting"]), (&json!("oap.heartbeat"), &json!(0), &json!(0)));
    assert!(quiet.get("held_by").is_none());
    // It is no event: whoever comes again with the last event that he has misses nothing.
    let pause = control("1", &ack, &asker(), "pause", json!({}));
    house.post(&format!("{}/control", path(&ack)), &pause).await.ok(&house.node);
    house.publish("1", "manifest", priced("1")).await;
    let mut held = stream.event(&house.node).await;
    for _ in 0..100 {
        if held["waiting"] == json!(1) {
            break;
        }
        held = stream.event(&house.node).await;
    }
    crate::interface::valid("rialto-heartbeat.schema.json", &held);
    assert_eq!((&held["waiting"], &held["held_by"], &held["cursor"]), (&json!(1), &json!("pause"), &json!(0)));
    assert!(held["as_of"].is_string(), "{held:#}");
    let page = house.poll(&ack, 0, 0).await;
    assert_eq!((&page["events"], &page["heartbeat"]["held_by"]), (&json!([]), &json!("pause")));
    let resume = control("2", &ack, &asker(), "resume", json!({}));
    house.post(&format!("{}/control", path(&ack)), &resume).await.ok(&house.node);
    let event = loop {
        let event = stream.event(&house.node).await;
        if event["type"] != "oap.heartbeat" {
            break event;
        }
    };
    assert_eq!(event["cursor"], 1);
    let after = stream.event(&house.node).await;
    assert_eq!((&after["type"], &after["cursor"], &after["waiting"]), (&json!("oap.heartbeat"), &json!(1), &json!(0)));
    assert!(house.poll(&ack, 0, 0).await.get("heartbeat").is_none(), "whoever gets something needs no reason");
    drop(stream);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_too_fast_is_told_later_and_the_last_state_is_never_lost() {
    let (house, time) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |body| body["max_event_rate_per_minute"] = json!(2))).await;
    for number in 0..2 {
        house.publish(&format!("a{number}"), "manifest", numbered(number, "1")).await;
    }
    assert_eq!(house.events(&ack, 0, 2).await.len(), 2);
    for price in 2..20 {
        house.publish(&format!("b{price}"), "manifest", numbered(0, &price.to_string())).await;
    }
    // There and back again is nothing to be told.
    house.publish("c1", "manifest", numbered(1, "7")).await;
    house.publish("c2", "manifest", numbered(1, "1")).await;
    // Here and gone, too.
    house.publish("d1", "manifest", numbered(2, "7")).await;
    let gone = withdrawal(&provider(), "d2", "did:web:t2.example");
    house.send(Method::DELETE, &format!("/oap/records/{}", escaped("did:web:t2.example")), &gone).await.ok(&house.node);
    assert_eq!(house.poll(&ack, 2, 1).await["events"], json!([]));
    let state = house.get(&path(&ack)).await.ok(&house.node);
    assert!(state["waiting"].as_u64().unwrap() >= 1, "{state:#}");
    time.fetch_add(MINUTE, Ordering::AcqRel);
    let events = house.events(&ack, 2, 1).await;
    assert_eq!(events[0]["payload"]["pricing"]["models"][0]["amount"], "19");
    assert_eq!((&events[0]["cursor"], &events[0]["set_change"]), (&json!(3), &json!("changed")));
    assert_eq!(house.poll(&ack, 3, 1).await["events"], json!([]));
    let state = house.get(&path(&ack)).await.ok(&house.node);
    assert_eq!(state["waiting"], 0);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_pauses_slows_down_goes_on_and_withdraws() {
    let (house, _) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    let at = format!("{}/control", path(&ack));
    let none = json!({});
    let paused = house.post(&at, &control("1", &ack, &asker(), "pause", none.clone())).await.ok(&house.node);
    assert_eq!(paused["state"], "paused");
    house.publish("1", "manifest", priced("1")).await;
    house.publish("2", "manifest", priced("2")).await;
    assert_eq!(house.poll(&ack, 0, 1).await["events"], json!([]));
    let resume = control("2", &ack, &asker(), "resume", none.clone());
    assert_eq!(house.post(&at, &resume).await.ok(&house.node)["state"], "active");
    let events = house.events(&ack, 0, 1).await;
    assert_eq!((events.len(), &events[0]["payload"]["pricing"]["models"][0]["amount"]), (1, &json!("2")));
    // A message that is heard again changes nothing.
    let again = control("1", &ack, &asker(), "pause", none.clone());
    assert_eq!(house.post(&at, &again).await.ok(&house.node)["state"], "active");
    let slower = control("3", &ack, &asker(), "back_pressure", json!({"max_event_rate_per_minute": 1}));
    assert_eq!(house.post(&at, &slower).await.ok(&house.node)["max_event_rate_per_minute"], 1);
    let refusals = [
        (control("4", &ack, &provider(), "pause", none.clone()), 403, "issuer_not_authorized"),
        (control("1", &ack, &asker(), "resume", none.clone()), 409, "request_id_reused"),
        (control("5", &ack, &asker(), "dance", none.clone()), 400, "invalid_value"),
        (control("6", &ack, &asker(), "back_pressure", none.clone()), 400, "missing_field"),
        (control("7", &ack, &asker(), "pause", json!({"seconds": 0})), 400, "invalid_value"),
        (control("8", &ack, &asker(), "pause", json!({"until": 1})), 400, "unknown_field"),
    ];
    for (message, status, code) in refusals {
        house.post(&at, &message).await.refused(&house.node, status, code);
    }
    let mut stream = Stream::open(&house, &ack, Some(1)).await;
    let withdraw = control("9", &ack, &asker(), "withdraw", none.clone());
    let over = house.send(Method::DELETE, &path(&ack), &withdraw).await.ok(&house.node);
    crate::interface::valid("rialto-subscription-state.schema.json", &over);
    crate::interface::valid("rialto-subscription-control.schema.json", &withdraw);
    assert_eq!((&over["state"], &over["reason"]), (&json!("ended"), &json!("withdrawn")));
    assert_eq!(over["receipt"]["type"], "subscription");
    let last = stream.event(&house.node).await;
    assert_eq!((&last["type"], &last["receipt"]), (&over["type"], &over["receipt"]));
    assert_eq!(stream.next().await, None);
    house.publish("3", "manifest", priced("3")).await;
    assert_eq!(house.poll(&ack, 1, 1).await["ended"]["receipt"], over["receipt"]);
    let late = house.post(&at, &control("10", &ack, &asker(), "resume", none)).await;
    late.refused(&house.node, 410, "subscription_ended");
    house.get("/oap/subscriptions/urn%3Arialto%3Asubscription%3Ax").await.refused(
        &house.node,
        404,
        "subscription_not_found",
    );
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_for_a_while_ends_by_itself_and_validity_ends_everything() {
    let (house, time) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    let pause = control("1", &ack, &asker(), "pause", json!({"seconds": 60}));
    house.post(&format!("{}/control", path(&ack)), &pause).await.ok(&house.node);
    house.publish("1", "manifest", manifest()).await;
    assert_eq!(house.poll(&ack, 0, 1).await["events"], json!([]));
    time.fetch_add(MINUTE, Ordering::AcqRel);
    assert_eq!(house.events(&ack, 0, 1).await.len(), 1);
    time.store(NOW + 81 * DAY, Ordering::Release);
    let page = house.poll(&ack, 1, 10).await;
    assert_eq!(page["ended"]["reason"], "expired");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_past_retention_is_said_to_be_gone() {
    let (house, time) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    for price in 1..4 {
        house.publish(&format!("{price}"), "manifest", priced(&price.to_string())).await;
    }
    assert_eq!(house.events(&ack, 0, 3).await.len(), 3);
    time.fetch_add(31 * DAY, Ordering::AcqRel);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let mut stream = Stream::open(&house, &ack, Some(1)).await;
    let notice = stream.event(&house.node).await;
    assert_eq!((&notice["type"], &notice["first_cursor"]), (&json!("oap.subscription.truncated"), &json!(4)));
    let page = house.poll(&ack, 0, 0).await;
    assert_eq!((&page["truncated"]["first_cursor"], &page["cursor"]), (&json!(4), &json!(3)));
    let replay = house.get(&format!("{}/events?replay_from=2", path(&ack))).await;
    replay.refused(&house.node, 410, "cursor_expired");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_is_none_is_refused() {
    let (house, _) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    house.publish("1", "manifest", manifest()).await;
    house.events(&ack, 0, 1).await;
    for cursor in ["-1", "2", "9223372036854775808", "18446744073709551616", "01", "x", "1.0", ""] {
        let answer = house.get(&format!("{}/events?after={cursor}", path(&ack))).await;
        answer.refused(&house.node, 400, "invalid_cursor");
    }
    let replayed = house.get(&format!("{}/events?replay_from=1", path(&ack))).await.ok(&house.node);
    assert_eq!(replayed["events"].as_array().unwrap().len(), 1);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_again_is_charged_like_asking() {
    let house = House::configured(|config| config.requests_per_second = std::num::NonZeroU32::new(5)).await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    let mut refused = 0;
    for _ in 0..60 {
        let answer = house.get(&format!("{}/events?replay_from=1", path(&ack))).await;
        if answer.status == 429 {
            answer.refused(&house.node, 429, "too_many_requests");
            refused += 1;
        }
    }
    assert!(refused > 0);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_subscription_are_charged_like_asking() {
    let house = House::configured(|config| config.requests_per_second = std::num::NonZeroU32::new(5)).await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    let mut refused = 0;
    for number in 0..60 {
        let request = if number % 2 == 0 { "pause" } else { "resume" };
        let message = control(&format!("{number}"), &ack, &asker(), request, json!({}));
        let answer = house.post(&format!("{}/control", path(&ack)), &message).await;
        if answer.status == 429 {
            answer.refused(&house.node, 429, "too_many_requests");
            refused += 1;
        }
    }
    assert!(refused > 0);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_may_not_see_is_no_event_for_him() {
    let (house, _) = house().await;
    let (insider, outsider) = (SigningKey::from_seed([3; 32]), SigningKey::from_seed([4; 32]));
    let everything = |body: &mut Value| {
        body["projection"]["include"] = json!([""]);
        body["constraints"] = json!({"path": "/tool/did", "operator": "exists", "value": true});
    };
    let inside = house.subscribe("", &standing("i", &insider, everything)).await;
    let outside = house.subscribe("", &standing("o", &outsider, everything)).await;
    let secret = |name: &str, value: &str| {
        let mut record = manifest();
        record["margin"] = json!(value);
        let body = json!({
            "publication_id": format!("urn:rialto:publication:{name}"),
            "kind": "manifest",
            "record": record,
            "restricted": [{"path": "/margin", "audience": [insider.did_key().as_str()]}],
            "publisher_did": provider().did_key().as_str(),
            "issued_at": "2026-05-01T11:59:00Z",
        });
        sign(body, &provider())
    };
    for number in 0..50 {
        let publication = secret(&format!("p{number}"), &number.to_string());
        house.post("/oap/records", &publication).await.ok(&house.node);
    }
    let told = house.events(&inside, 0, 50).await;
    assert_eq!(told[49]["payload"]["margin"], "49");
    let seen = house.events(&outside, 0, 1).await;
    assert_eq!(seen.len(), 1);
    assert!(seen[0]["payload"].get("margin").is_none());
    // And nothing in the one event says that there is more to be seen.
    assert!(!seen[0].to_string().contains("margin") && seen[0].get("manifest_hash_before").is_none());
    assert_eq!(house.poll(&outside, 1, 1).await["events"], json!([]));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_cannot_break_out_of_its_line() {
    let (house, _) = house().await;
    let intent = standing("s", &asker(), |body| body["projection"]["include"] = json!(["/tool/name"]));
    let ack = house.subscribe("", &intent).await;
    let mut stream = Stream::open(&house, &ack, None).await;
    let names = ["a\n\nevent: x\ndata: y", "\r\rid: 99\r\n", "\u{2028}\u{2029}\u{85}", "\u{0}:\u{feff}", "data: \\n"];
    for (number, name) in names.iter().enumerate() {
        let mut record = manifest();
        record["tool"]["name"] = json!(name);
        house.publish(&format!("{number}"), "manifest", record).await;
    }
    for (number, name) in names.iter().enumerate() {
        let event = stream.event(&house.node).await;
        assert_eq!((&event["cursor"], &event["payload"]["tool"]["name"]), (&json!(number + 1), &json!(name)));
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_has_so_many_standing_intents_and_a_journal_so_many_readers() {
    let (house, _) = house().await;
    let mut acks = Vec::new();
    for number in 0..100 {
        acks.push(house.subscribe("", &standing(&format!("s{number}"), &asker(), |_| {})).await);
    }
    let refused = house.post("/oap/subscribe", &standing("one-more", &asker(), |_| {})).await;
    let refused = refused.refused(&house.node, 429, "too_many_subscriptions");
    assert_eq!(refused["error"]["details"]["limit"]["name"], "subscriptions.issuer");
    let withdraw = control("w", &acks[0], &asker(), "withdraw", json!({}));
    house.post(&format!("{}/control", path(&acks[0])), &withdraw).await.ok(&house.node);
    house.subscribe("", &standing("another", &asker(), |_| {})).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(Stream::open(&house, &acks[1], None).await);
    }
    let one_more = house.request(Method::GET, &format!("{}/events", path(&acks[1])));
    let refused = Answer::of(one_more.header("accept", "text/event-stream")).await;
    refused.refused(&house.node, 429, "too_many_readers");
    // All of one issuer's subscriptions share what it may be told in a minute.
    for number in 0..61 {
        house.publish(&format!("{number}"), "manifest", numbered(number, "1")).await;
    }
    while house.node.standing().unwrap().1 > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut told = 0;
    for ack in &acks[1..] {
        told += house.get(&path(ack)).await.ok(&house.node)["cursor"].as_u64().unwrap();
    }
    assert!(told > 5_900 && told <= 6_000, "{told} events in a minute");
    drop(streams);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_stops_holds_nobody_up_and_gets_everything_later() {
    let (house, _) = house().await;
    let fat = standing("s", &asker(), |body| body["projection"]["include"] = json!([""]));
    let ack = house.subscribe("", &fat).await;
    let lean = house.subscribe("", &standing("t", &asker(), |_| {})).await;
    let mut stalled = Stream::open(&house, &ack, None).await;
    for number in 0..300 {
        let mut record = priced(&number.to_string());
        record["padding"] = json!("x".repeat(20_000));
        house.publish(&format!("{number}"), "manifest", record).await;
    }
    assert_eq!(house.events(&lean, 0, 300).await.len(), 300);
    for number in 1..=300_u64 {
        assert_eq!(stalled.event(&house.node).await["cursor"], number);
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_it_goes_on_where_it_was() {
    let (mut house, _) = house().await;
    let ack = house.subscribe("", &standing("s", &asker(), |_| {})).await;
    house.publish("1", "manifest", priced("1")).await;
    let before = house.events(&ack, 0, 1).await;
    let mut open = Stream::open(&house, &ack, Some(1)).await;
    let _ = house.stop.take().unwrap().send(());
    house.served.take().unwrap().await.unwrap();
    assert_eq!(open.next().await, None, "a node that stops ends its streams");
    let folder = house.folder.path().to_owned();
    let House { mut node, folder: kept, .. } = house;
    // What was under way may hold it a moment longer.
    let closed = loop {
        match Arc::try_unwrap(node) {
            Ok(last) => break last,
            Err(shared) => node = shared,
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    closed.close().unwrap();
    let config = node::Config {
        data: folder,
        clock: Clock::Set(Arc::new(AtomicI64::new(NOW + MINUTE))),
        ..node::Config::default()
    };
    let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
    let publication = publication(&provider(), "2", "manifest", priced("2"));
    node.publish(publication.to_string().as_bytes()).await.unwrap();
    let id = ack["subscription_id"].as_str().unwrap();
    let page = node.poll(id, Some("0"), Duration::from_secs(10), 2).await.unwrap();
    let page = Document::parse(&page, &json::Limits::OURS).unwrap().root().to_value();
    let page = match page["events"].as_array().unwrap().len() {
        1 => {
            let rest = node.poll(id, Some("1"), Duration::from_secs(10), 2).await.unwrap();
            let rest = Document::parse(&rest, &json::Limits::OURS).unwrap().root().to_value();
            vec![page["events"][0].clone(), rest["events"][0].clone()]
        }
        _ => page["events"].as_array().unwrap().clone(),
    };
    assert_eq!(page[0], before[0]);
    assert_eq!((&page[1]["cursor"], &page[1]["event_type"]), (&json!(2), &json!("updated")));
    assert!(node.store().check().unwrap().flaws.is_empty());
    drop(kept);
}
