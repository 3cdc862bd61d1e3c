//! OAS Agent, models: what providers reply, whole or as a stream of events, as bytes that came over a connection.
//!
//! The first line says who replies and in pieces of how many bytes: `openai events 7`, `anthropic whole 1`,
//! `schema events 64`. The rest is the body. However it is cut, the reply is the same, and so it is when the events were
//! first taken apart as HTML says it and put together again plainly; the words that are heard are the words of the reply;
//! every call has a name and an id of its own.

#![no_main]

use host::{Body, Configuration, Function, Http, HttpError, HttpRequest, HttpResponse, Message, Model, ModelError};
use host::{Options, Pending, Reply, Request};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime"));

/// A provider that replies with these bytes, in these pieces.
struct Canned {
    kind: &'static str,
    pieces: Mutex<VecDeque<Vec<u8>>>,
}

struct Pieces(VecDeque<Vec<u8>>);

impl Body for Pieces {
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>> {
        Box::pin(std::future::ready(Ok(self.0.pop_front())))
    }
}

impl Http for Canned {
    fn send(&self, _: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        let pieces = std::mem::take(&mut *self.pieces.lock().expect("one at a time"));
        let headers = vec![("content-type".to_owned(), self.kind.to_owned())];
        Box::pin(std::future::ready(Ok(HttpResponse { status: 200, headers, body: Box::new(Pieces(pieces)) })))
    }
}

/// Who replies, and how.
#[derive(Clone, Copy)]
struct Manner<'a> {
    entry: &'a str,
    is_stream: bool,
}

/// What a model of this manner says when these bytes come back in pieces of this size, and the words that were heard.
fn replied(manner: Manner<'_>, body: &[u8], size: usize) -> (Result<Reply, ModelError>, String) {
    let kind = if manner.is_stream { "text/event-stream" } else { "application/json" };
    let pieces = body.chunks(size).map(<[u8]>::to_vec).collect();
    let http: Arc<dyn Http> = Arc::new(Canned { kind, pieces: Mutex::new(pieces) });
    let text = format!("models: {{m: {{{}, url: 'https://models.example/v1', model: m, retries: 0}}}}", manner.entry);
    let configuration = Configuration::read(text.as_bytes(), Path::new("."), &|_| None).expect("a configuration");
    let model: Arc<dyn Model> = configuration.model("m", &http).expect("a model");
    let heard = Mutex::new(String::new());
    let on_text = |words: &str| heard.lock().expect("one at a time").push_str(words);
    let reply = RUNTIME.block_on(model.complete(&conversation(), Some(&on_text)));
    (reply, heard.into_inner().expect("nobody panicked"))
}

fn conversation() -> Request {
    let function = |name: &str| Function {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    };
    Request {
        system: String::new(),
        messages: vec![Message::User { text: "go".to_owned() }],
        tools: vec![function("crm.look-up"), function("mail")],
        options: Options::default(),
    }
}

/// A stream of events, read line by line as HTML defines it and written again without its freedoms.
fn plainly(body: &[u8]) -> Vec<u8> {
    let mut written = Vec::new();
    let mut data: Option<Vec<u8>> = None;
    for line in lines(body) {
        if line.is_empty() {
            if let Some(data) = data.take() {
                for line in data.split(|byte| *byte == b'\n') {
                    written.extend_from_slice(b"data: ");
                    written.extend_from_slice(line);
                    written.push(b'\n');
                }
                written.push(b'\n');
            }
            continue;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line.as_slice(), &line[line.len()..]),
        };
        if name == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            }
        }
    }
    written
}

/// The lines that have an end: a return, a feed, or both.
fn lines(body: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut bytes = body.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte == b'\r' && bytes.peek() == Some(&&b'\n') {
            bytes.next();
        }
        match byte {
            b'\r' | b'\n' => lines.push(Vec::new()),
            other => lines.last_mut().expect("there is one").push(*other),
        }
    }
    lines.pop();
    lines
}

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, body) = (fuzzing::text(&data[..end]), data.get(end + 1..).unwrap_or_default());
    let mut words = first.split_whitespace();
    let entry = match words.next() {
        Some("anthropic") => "kind: anthropic, max_tokens: 9",
        Some("schema") => "kind: openai, calls: json-schema",
        _ => "kind: openai",
    };
    let manner = Manner { entry, is_stream: words.next() != Some("whole") };
    let size = words.next().and_then(|word| word.parse().ok()).unwrap_or(7).clamp(1, 4096);
    let (whole, heard) = replied(manner, body, body.len().max(1));
    assert_eq!(replied(manner, body, size), (whole.clone(), heard.clone()), "in pieces of {size}");
    if manner.is_stream && !body.starts_with(b"\xef\xbb\xbf") {
        assert_eq!(replied(manner, &plainly(body), 64).0, whole, "written plainly");
    }
    let Ok(reply) = whole else { return };
    if manner.entry != "kind: openai, calls: json-schema" {
        assert_eq!(reply.text.unwrap_or_default(), heard);
    }
    let ids: BTreeSet<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), reply.calls.len(), "two calls of one id");
    assert!(reply.calls.iter().all(|call| !call.id.is_empty() && !call.name.is_empty()));
});
