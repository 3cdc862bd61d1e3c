//! What strangers send: too much, too slowly, in the wrong form, to the wrong place.

use crate::{Answer, House, NOW, intent, manifest};
use json::json;
use reqwest::{Method, StatusCode};
use server::{Bounds, Listening, Patience};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const KIB: usize = 1024;

/// Speaks to the node byte by byte and reads until it hangs up.
async fn speak(house: &House, words: &[u8]) -> (String, Duration) {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(house.address()).await.unwrap();
    stream.write_all(words).await.unwrap();
    let mut heard = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut heard)).await;
    // A reset after an answer is as good as an end: the node does not wait for what it will not read.
    assert!(reading.is_ok(), "the node hangs up");
    (String::from_utf8_lossy(&heard).into_owned(), begun.elapsed())
}

/// The signed envelope in what was heard.
#[track_caller]
fn refusal(house: &House, heard: &str, status: u16, code: &str) {
    let (head, body) = heard.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {heard:?}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let answer = Answer { status: StatusCode::from_u16(status).unwrap(), headers, bytes: body.as_bytes().to_vec() };
    answer.refused(&house.node, status, code);
}

fn impatient() -> Patience {
    let short = Duration::from_millis(400);
    Patience { head: short, body: short, handshake: short, idle: short * 2, ..Patience::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_and_what_is_not_done_is_said_under_signature() {
    let house = House::open().await;
    house.get("/nothing/here").await.refused(&house.node, 404, "no_such_path");
    house.get("/schemas/other.json").await.refused(&house.node, 404, "no_such_path");
    house.get("/oap/decisions/urn%3Ax").await.refused(&house.node, 404, "decision_not_found");
    house.get("/oap/intent").await.refused(&house.node, 405, "method_not_allowed");
    let put = house.send(Method::PUT, "/oap/records/urn%3Ax", &json!({})).await;
    put.refused(&house.node, 405, "method_not_allowed");
}

/// No other origin may read: a preflight is refused, and no answer carries leave.
#[tokio::test(flavor = "multi_thread")]
async fn no_other_origin_is_let_in() {
    let house = House::open().await;
    let preflight = house.request(Method::OPTIONS, "/oap/intent").header("origin", "https://elsewhere.example");
    let preflight = Answer::of(preflight.header("access-control-request-method", "POST")).await;
    let health = Answer::of(house.request(Method::GET, "/health").header("origin", "https://elsewhere.example")).await;
    for answer in [preflight, health] {
        answer.refused(&house.node, 403, "origin_not_allowed");
        assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("access-control")));
    }
    let own = Answer::of(house.request(Method::GET, "/health").header("origin", &house.url)).await;
    assert_eq!(own.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_than_the_nodes_is_misdirected() {
    let house = House::with(Patience::default(), None, Some("https://node.example")).await;
    for (host, status) in [
        ("evil.example", 421),
        ("node.example", 200),
        ("NODE.example:443", 200),
        ("[::1]:1", 200),
        ("203.0.113.7", 421),
    ] {
        let answer = Answer::of(house.request(Method::GET, "/health").header("host", host)).await;
        assert_eq!(answer.status.as_u16(), status, "{host}");
        if status == 421 {
            answer.refused(&house.node, 421, "misdirected_request");
        }
    }
    let unnamed = House::open().await;
    let answer = Answer::of(unnamed.request(Method::GET, "/health").header("host", "rebound.example")).await;
    answer.refused(&unnamed.node, 421, "misdirected_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_beyond_its_limit_is_refused_before_it_is_read() {
    let house = House::open().await;
    let head =
        "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let (heard, took) = speak(&house, format!("{head}content-length: 1000000000000\r\n\r\n{{").as_bytes()).await;
    refusal(&house, &heard, 413, "json_too_large");
    assert!(heard.contains(r#""limit":{"got":1000000000000,"max":65536,"name":"intent.bytes"}"#), "{heard}");
    assert!(took < Duration::from_secs(10), "{took:?}");

    // Chunked, so that the length is not announced: one byte too many.
    let mut words = format!("{head}transfer-encoding: chunked\r\n\r\n").into_bytes();
    for length in [32 * KIB, 32 * KIB, 1] {
        words.extend(format!("{length:x}\r\n").bytes());
        words.extend(std::iter::repeat_n(b' ', length));
        words.extend(b"\r\n");
    }
    words.extend(b"0\r\n\r\n");
    let (heard, _) = speak(&house, &words).await;
    refusal(&house, &heard, 413, "json_too_large");

    // Exactly the limit is read, and then it is no JSON.
    let spaces = " ".repeat(64 * KIB);
    let request = house.request(Method::POST, "/oap/intent").header("content-type", "application/json");
    Answer::of(request.body(spaces)).await.refused(&house.node, 400, "json_syntax");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_plain_json_in_utf8_is_read() {
    let house = House::open().await;
    let body = intent("plain").to_string();
    let send = |content_type: &'static str, encoding: Option<&'static str>, bytes: Vec<u8>| {
        let request = house.request(Method::POST, "/oap/intent").header("content-type", content_type).body(bytes);
        Answer::of(match encoding {
            Some(encoding) => request.header("content-encoding", encoding),
            None => request,
        })
    };
    for encoding in ["gzip", "br", "zstd", "gzip, gzip", "identity"] {
        let answer = send("application/json", Some(encoding), body.clone().into_bytes()).await;
        answer.refused(&house.node, 415, "content_encoding_not_supported");
    }
    for content_type in
        ["text/plain", "application/json; charset=utf-16", "application/cbor", "", "multipart/form-data"]
    {
        let answer = send(content_type, None, body.clone().into_bytes()).await;
        answer.refused(&house.node, 415, "content_type_not_supported");
    }
    let with_mark = [b"\xEF\xBB\xBF", body.as_bytes()].concat();
    send("application/json", None, with_mark).await.refused(&house.node, 400, "json_syntax");
    let utf16 = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let answer = send("application/json", None, utf16).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    for content_type in ["application/json", "application/oap+json", "Application/JSON; Charset=UTF-8"] {
        send(content_type, None, body.clone().into_bytes()).await.ok(&house.node);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_slow_is_not_waited_for() {
    let house = House::with(impatient(), None, None).await;
    for begun in
        ["G", "GET /health HTTP/1.1\r\nhost: local", "GET / HTTP/1.1\r\nhost: localhost\r\n\r", "\r\n", "PUT /x"]
    {
        let (heard, took) = speak(&house, begun.as_bytes()).await;
        assert!(!heard.is_empty(), "{begun:?}");
        refusal(&house, &heard, 408, "request_timeout");
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{begun:?} {took:?}");
    }
    // Whoever says nothing is hung up on, at the beginning, after an answer, and in the middle of HTTP/2.
    for words in
        [&b""[..], b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PRI"]
    {
        let (heard, took) = speak(&house, words).await;
        assert!(!heard.contains("408") && took >= Duration::from_millis(300), "{heard} {took:?}");
        assert_eq!(heard.starts_with("HTTP/1.1 200 "), words.starts_with(b"GET"), "{heard}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    let head = "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let (heard, took) = speak(&house, format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).await;
    refusal(&house, &heard, 408, "request_timeout");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_too_long_is_given_up() {
    let patience = Patience { answer: Duration::from_millis(200), ..Patience::default() };
    let house = House::with(patience, None, None).await;
    let head = "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let (heard, _) = speak(&house, format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).await;
    refusal(&house, &heard, 504, "answer_timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_beyond_its_bounds_is_refused() {
    let house = House::open().await;
    let long = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "a".repeat(17 * KIB));
    let many = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(64));
    for words in [long, many] {
        let (heard, _) = speak(&house, words.as_bytes()).await;
        refusal(&house, &heard, 431, "head_too_large");
    }
}

/// Whatever could be read in two ways is not read, and what follows on the connection is not served.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_is_refused_under_signature() {
    let house = House::open().await;
    let head = "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\n";
    let smuggled = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for words in [
        format!("{head}content-length: 5\r\ncontent-length: 6\r\n\r\nhello"),
        format!("{head}content-length: -1\r\n\r\n"),
        format!("{head}content-length: 0x5\r\n\r\nhello"),
        format!("{head}content length: 5\r\n\r\nhello"),
        format!("{head}content-length : 5\r\n\r\nhello"),
        format!("{head}x: a\r\n folded\r\n\r\n"),
        format!("{head}transfer-encoding: gzip\r\n\r\n"),
        format!("{head}transfer-encoding: chunked, gzip\r\n\r\n"),
        format!("{head}x: \0\r\n\r\n"),
        "GET /health HTTP/1.2\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET  /health HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET /a b HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}TLS".to_owned(),
        "rubbish\r\n\r\n".to_owned(),
    ] {
        let (heard, took) = speak(&house, format!("{words}{smuggled}").as_bytes()).await;
        refusal(&house, &heard, 400, "http_malformed");
        assert!(took < Duration::from_secs(10), "{words:?} {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_keeps_a_pace() {
    let house = House::with(impatient(), None, None).await;
    let mut stream = TcpStream::connect(house.address()).await.unwrap();
    let body = " ".repeat(8 * KIB);
    let head = format!(
        "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let begun = Instant::now();
    // Four KiB earn four seconds beside the 400 ms.
    for part in body.as_bytes().chunks(4 * KIB) {
        stream.write_all(part).await.unwrap();
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    refusal(&house, &heard, 400, "json_syntax");
    assert!(begun.elapsed() > impatient().body * 2);
}

/// Connections of one source, and of all; whoever is too many is told so and the others are served.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_house_says_so() {
    let ask = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for (source, all, status, code) in [(Some(3), 100, 429, "too_many_connections"), (None, 3, 503, "overloaded")] {
        let bounds = |bounds| Bounds { source_connections: source, connections: all, ..bounds };
        let house = House::bounded(bounds).await;
        let mut inside = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(house.address()).await.unwrap();
            stream.write_all(ask).await.unwrap();
            let mut beginning = [0; 15];
            stream.read_exact(&mut beginning).await.unwrap();
            assert_eq!(&beginning, b"HTTP/1.1 200 OK");
            inside.push(stream);
        }
        let (heard, took) = speak(&house, ask).await;
        refusal(&house, &heard, status, code);
        assert!(heard.contains("\r\nretry-after: 1\r\n") && took < Duration::from_secs(10), "{heard}");
        drop(inside.pop());
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (heard, _) = speak(&house, &[&ask[..ask.len() - 2], b"connection: close\r\n\r\n"].concat()).await;
        assert!(heard.starts_with("HTTP/1.1 200 "), "{heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_work_than_places_is_refused_at_once_and_health_is_told() {
    let house = House::bounded(|bounds| Bounds { requests: 4, ..bounds }).await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(house.address()).await.unwrap();
        let head = "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        stream.write_all(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).await.unwrap();
        slow.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    for number in 0..20 {
        let answer = house.post("/oap/intent", &intent(&format!("busy-{number}"))).await;
        answer.refused(&house.node, 503, "overloaded");
        assert_eq!(answer.header("retry-after"), "1");
    }
    assert_eq!(house.get("/health").await.status, StatusCode::OK);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(slow);
    tokio::time::sleep(Duration::from_millis(200)).await;
    house.post("/oap/intent", &intent("after")).await.ok(&house.node);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_asks_too_often_waits_whatever_it_says_of_itself() {
    let rate = std::num::NonZeroU32::new(1);
    let bounds = |bounds| Bounds { source_requests_per_second: rate, ..bounds };
    let house = House::bounded(bounds).await;
    let (begun, mut refused) = (std::time::Instant::now(), 0);
    for number in 0..40 {
        let request = house.request(Method::GET, "/nowhere").header("x-forwarded-for", format!("192.0.2.{number}"));
        let answer = Answer::of(request.header("forwarded", format!("for=192.0.2.{number}"))).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            answer.refused(&house.node, 429, "too_many_requests");
            refused += 1;
        }
    }
    // One a second is answered, and one to begin with.
    assert!(refused + 2 + begun.elapsed().as_secs() >= 40, "{refused} in {:?}", begun.elapsed());
    assert!(refused > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_have_names() {
    let house = House::open().await;
    let named = Answer::of(house.request(Method::GET, "/nowhere").header("oap-request-id", "mine-1.2:3_x")).await;
    assert_eq!(named.refused(&house.node, 404, "no_such_path")["request_id"], "mine-1.2:3_x");
    let other = Answer::of(house.request(Method::GET, "/health").header("x-request-id", "theirs")).await;
    assert_eq!(other.header("oap-request-id"), "theirs");
    for rubbish in ["a b", "<script>", "", &"x".repeat(65)] {
        let answer = Answer::of(house.request(Method::GET, "/health").header("oap-request-id", rubbish)).await;
        assert_eq!(answer.header("oap-request-id").len(), 22, "{rubbish}");
    }
    let (one, two) = (house.get("/health").await, house.get("/health").await);
    assert_ne!(one.header("oap-request-id"), two.header("oap-request-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_finished_when_the_node_stops() {
    let house = House::open().await;
    house.publish("one", "manifest", manifest()).await;
    let body = intent("last").to_string();
    let (begin, end) = body.split_at(body.len() / 2);
    let mut stream = TcpStream::connect(house.address()).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{begin}").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let address = house.address().to_owned();
    let closing = tokio::spawn(house.close());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody new is let in");
    stream.write_all(end.as_bytes()).await.unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    assert!(heard.starts_with("HTTP/1.1 200 ") && heard.contains("Lagoon Translations"), "{heard}");
    closing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_for_this_machine_only() {
    let refused = Listening::on("0.0.0.0:0".parse().unwrap(), None).await.err().unwrap();
    assert!(refused.to_string().contains("plain HTTP is served on loopback only"), "{refused}");
    assert!(Listening::on("[::1]:0".parse().unwrap(), None).await.is_ok_and(|listening| !listening.is_tls()));
}

/// What OpenMetrics 1.0 demands of the text: types before samples, counters end in `_total`, `# EOF` at the end.
#[tokio::test(flavor = "multi_thread")]
async fn figures_are_openmetrics() {
    let house = House::open().await;
    house.publish("one", "manifest", manifest()).await;
    house.post("/oap/intent", &intent("counted")).await;
    house.get("/a/path/of/a/stranger").await;
    let answer = house.get("/metrics").await;
    assert!(answer.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"));
    let text = String::from_utf8(answer.bytes).unwrap();
    assert!(text.ends_with("# EOF\n"));
    let mut types = std::collections::HashMap::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        match line.strip_prefix("# ") {
            Some(comment) => {
                let mut words = comment.splitn(3, ' ');
                let (keyword, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
                assert!(["HELP", "TYPE", "UNIT"].contains(&keyword), "{line}");
                if keyword == "TYPE" {
                    types.insert(name, rest);
                }
            }
            None => {
                let name = line.split(['{', ' ']).next().unwrap();
                let family = ["_total", "_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                let family = family.filter(|family| types.contains_key(family)).unwrap_or(name);
                let kind = types.get(family).unwrap_or_else(|| panic!("no type for {line}"));
                assert!(*kind != "counter" || name.ends_with("_total"), "{line}");
                line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
            }
        }
    }
    assert!(text.contains("rialto_http_requests_total{route=\"/oap/intent\",status=\"200\"} 1\n"), "{text}");
    assert!(text.contains("route=\"other\",status=\"404\"") && !text.contains("stranger"));
    assert!(
        text.contains("rialto_candidates{collection=\"manifests\"} 1\n") && text.contains("rialto_log_sequence 1\n")
    );
    assert_eq!(house.node.clock().millis(), NOW);
}

/// The intent of the public suite's probe: from a DID that leads nowhere, under a signature that is none.
fn probe(category: &str, issuer: &str) -> json::Value {
    json!({
        "intent_id": format!("urn:oap:intent:probe-{category}-{}", issuer.len()),
        "issuer_did": issuer,
        "category": category,
        "constraints": {"path": "/oap_version", "operator": "exists", "value": true},
        "projection": {"include": ["/"]},
        "validity": {"from": "2026-05-01T11:59:00Z", "to": "2026-05-01T12:01:00Z"},
        "signature": {"alg": "EdDSA", "value": "probe-signature"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_probe_is_answered_under_the_switch_and_refused_without_it() {
    const ISSUER: &str = "did:web:probe.example";
    let strict = House::open().await;
    let refused = strict.post("/oap/intent", &probe("discovery", ISSUER)).await;
    refused.refused(&strict.node, 400, "signature_encoding");

    let open = House::configured(|config| config.unverified_issuer = trust::Did::parse(ISSUER).ok()).await;
    open.publish("one", "manifest", manifest()).await;
    let answer = open.post("/oap/intent", &probe("discovery", ISSUER)).await.ok(&open.node);
    crate::interface::valid("oap-intent-response.schema.json", &answer);
    let candidates = answer["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 1);
    assert!(candidates[0]["decision_record"]["constraint_evaluations"].is_array());
    // Nobody else, nothing else, and nothing altered under a name that was used.
    for (category, issuer) in [("knowledge", ISSUER), ("discovery", "did:web:other.example")] {
        open.post("/oap/intent", &probe(category, issuer)).await.refused(&open.node, 400, "signature_encoding");
    }
    let explained = open.post("/oap/explain", &json!({"intent": probe("discovery", ISSUER)})).await;
    explained.refused(&open.node, 400, "signature_encoding");
}

/// decisions/0257.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_mostly_refused_is_heard_in_the_back_room_and_answered_there() {
    let house = House::bounded(|bounds| Bounds { source_connections: Some(64), ..bounds }).await;
    house.publish("one", "manifest", manifest()).await;
    let mut sent_away = false;
    for _ in 0..40 {
        let refused = house.post("/oap/intent", &json!({})).await;
        assert_eq!(refused.status, 400);
        sent_away |= refused.headers.get("connection").is_some_and(|value| value == "close");
    }
    assert!(sent_away, "the connection in front ends");
    // In the back room questions, publications and refusals are what they are in front.
    house.post("/oap/intent", &crate::intent("back")).await.ok(&house.node);
    house.publish("two", "manifest", manifest()).await;
    house.post("/oap/intent", &json!([])).await.refused(&house.node, 400, "wrong_type");
    house.close().await;
}
