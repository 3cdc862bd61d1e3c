//! Spans reach a collector, inside the trace that the caller named.

use crate::{Answer, House, intent, manifest};
use host::Configuration;
use node::{Engagements, Hosting};
use reqwest::Method;
use server::Exporter;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt;

type Batches = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that answers every batch with success and keeps it: its head and its body.
async fn collector() -> (String, Batches) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let batches = Batches::default();
    let kept = Arc::clone(&batches);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut heard = Vec::new();
                while stream.read_buf(&mut heard).await.is_ok_and(|read| read > 0) {
                    let Some(end) = heard.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
                    let head = String::from_utf8_lossy(&heard[..end]).to_lowercase();
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                    let whole = end + 4 + length.parse::<usize>().unwrap();
                    if heard.len() >= whole {
                        let body = heard[end + 4..whole].to_vec();
                        kept.lock().unwrap().push((head, body));
                        heard.drain(..whole);
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                    }
                }
            });
        }
    });
    (url, batches)
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// An engagement whose user, model and tool all say the marker.
async fn engage(house: &House, content: &str, marker: &str) {
    let host = format!(
        "tools: {{echo: {{kind: static, description: Echoes., returns: {{said: {marker}-result}}}}}}\nmodel: m\n\
         models: {{m: {{kind: scripted, script: {{rules: [{{when: {{result_of: echo}}, text: {marker}-answer}}, \
         {{when: {{}}, calls: [{{tool: echo, inputs: {{text: {marker}-input}}}}]}}]}}}}}}\n{content}"
    );
    let document = "kind: openagentspec:v1/agent\nname: echoer\ndescription: Echoes.\nintent: You echo.\nowner: us\n\
        capabilities: {echo: {user_identity: false}}\n";
    let hosting = Hosting {
        configuration: Configuration::read(host.as_bytes(), Path::new("."), &|_| None).unwrap(),
        documents: vec![("echoer.yaml".to_owned(), document.as_bytes().to_vec())],
        people: Vec::new(),
        options: agent::Options::default(),
        strangers: true,
    };
    let engagements = Engagements::open(Arc::clone(&house.node), hosting).await.unwrap();
    let id = engagements.begin("echoer", None, marker).await.unwrap();
    engagements.wait(&id, None, Duration::from_secs(25)).await.unwrap();
    assert_eq!(engagements.state(&id, None).unwrap().0["result"]["text"], format!("{marker}-answer"));
}

/// One test, since a process has one subscriber.
#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_a_request_are_spans_of_the_callers_trace() {
    let (url, batches) = collector().await;
    let exporter = Exporter::new(&url).unwrap();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(exporter.layer())).unwrap();
    let house = House::open().await;
    house.publish("traced", "manifest", manifest()).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = house.request(Method::POST, "/oap/intent").header("content-type", "application/json");
    let request =
        request.header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01")).body(intent("traced").to_string());
    Answer::of(request).await.ok(&house.node);
    for (content, marker) in [("", "marker-hidden"), ("telemetry: {content: true}\n", "marker-shown")] {
        engage(&house, content, marker).await;
    }
    house.close().await;
    tokio::task::spawn_blocking(|| exporter.close()).await.unwrap();

    let sent = batches.lock().unwrap();
    let all: Vec<u8> = sent.iter().flat_map(|(_, body)| body.clone()).collect();
    assert!(
        sent.iter()
            .all(|(head, _)| head.starts_with("post /v1/traces http/1.1") && head.contains("application/x-protobuf"))
    );
    let steps =
        ["receive", "parse", "check", "keys", "verify", "enumerate", "judge", "sign", "keep", "commit", "index"];
    for name in ["POST /oap/intent", "POST /oap/records", "http.response.status_code", "rialto"].iter().chain(&steps) {
        assert!(has(&all, name.as_bytes()), "no `{name}`");
    }
    for name in ["invoke_agent echoer", "execute_tool echo", "gen_ai.tool.call.id", "gen_ai.usage.input_tokens"] {
        assert!(has(&all, name.as_bytes()), "no `{name}`");
    }
    assert!(!has(&all, b"marker-hidden"), "nobody asked for content");
    for name in
        ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"]
    {
        assert!(has(&all, name.as_bytes()), "no `{name}`");
    }
    assert!(has(&all, b"marker-shown-result"), "the operator asked for content");
    let id: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&trace[at * 2..at * 2 + 2], 16).unwrap()).collect();
    let within = all.windows(16).filter(|window| *window == id).count();
    // The request and its nine steps; the publication belongs to a trace of its own.
    assert_eq!(within, 10, "spans of the caller's trace");
    assert!(has(&all, &[0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]), "the caller's span is the parent");
}

/// A collector that is away costs requests nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_exporter_without_a_collector_ends_in_time() {
    let begun = std::time::Instant::now();
    let exporter = Exporter::new("http://127.0.0.1:9").unwrap();
    tokio::task::spawn_blocking(|| exporter.close()).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
}
