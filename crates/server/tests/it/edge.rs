//! What strangers send: too much, too slowly, in the wrong form, to the wrong place.

use crate::{Answer, House, NOW, intent, manifest};
use json::json;
use reqwest::{Method, StatusCode};
use server::{Listening, Patience};
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
    let _ = reading.expect("the node hangs up");
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
    Patience { head: short, body: short, handshake: short, ..Patience::default() }
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
    preflight.refused(&house.node, 405, "method_not_allowed");
    let health = Answer::of(house.request(Method::GET, "/health").header("origin", "https://elsewhere.example")).await;
    for answer in [preflight, health] {
        assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("access-control")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_than_the_nodes_is_misdirected() {
    let house = House::with(Patience::default(), None, Some("https://node.example")).await;
    for (host, status) in [("evil.example", 421), ("node.example", 200), ("NODE.example:443", 200), ("[::1]:1", 200)] {
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
    assert!(took < Duration::from_secs(2), "{took:?}");

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
    let (heard, took) = speak(&house, b"GET /health HTTP/1.1\r\nhost: local").await;
    assert!(
        heard.is_empty() && took >= Duration::from_millis(300) && took < Duration::from_secs(5),
        "{heard} {took:?}"
    );

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
        assert!(heard.starts_with("HTTP/1.1 431 "), "{heard}");
    }
    let both = "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello";
    let (heard, _) = speak(&house, both.as_bytes()).await;
    assert!(heard.starts_with("HTTP/1.1 400 "), "{heard}");
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
