//! The real binary as an agent among agents: it introduces itself, is called, keeps descriptions, and takes no call twice.

use crate::node::{Node, stranger};
use crate::run::Home;
use json::{Instant, Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use trust::http::{COMPONENTS, Headers, Request, Signing, sign};
use trust::{ProofForm, SecretKey, SigningKey, wba_document, wba_name};

#[expect(clippy::disallowed_methods, reason = "the node goes by the clock of this machine")]
fn now() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A whole HTTP request that calls the node's own agent, signed.
fn request(node: &Node, key: &SecretKey, keyid: &str, nonce: &str, body: &Value) -> String {
    let (body, target) = (body.to_string(), format!("{}/agents/rialto/rpc", node.url));
    let asked = Request { method: "POST", target: &target, headers: Headers::new(&[]), body: body.as_bytes() };
    let created = now();
    let signing = Signing { key, keyid, created, expires: created + 200, nonce };
    let fields: String =
        sign(&asked, &signing, &COMPONENTS).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST /agents/rialto/rpc HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n{fields}\r\n{body}",
        node.url.trim_start_matches("http://"),
        body.len(),
    )
}

fn sent(node: &Node, request: &str) -> Value {
    serde_json::from_str(&node.send(request)).unwrap()
}

fn code(said: &Value) -> &str {
    said.pointer("/error/details/code").and_then(Value::as_str).unwrap_or_default()
}

fn search(issuer: &str, name: &str) -> Value {
    let at = |seconds: i64| Instant::from_unix(now() + seconds, 0).to_string();
    let intent = json!({
        "intent_id": format!("urn:oap:intent:{name}"), "issuer_did": issuer, "category": "discovery",
        "constraints": {"path": "/products/*/document/beds", "operator": "gte", "value": 2},
        "projection": {"include": ["/name", "/did"]},
        "validity": {"from": at(-60), "to": at(3_000)},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "search", "params": {"intent": intent}})
}

#[test]
fn the_binary_introduces_itself_as_the_strict_want_it() {
    let home = Home::new("introducing-itself");
    let node = Node::start(&home);
    for file in ["ad.json", "interface.json", "did.json"] {
        let shown = home.file(file, &node.get(&format!("/agents/rialto/{file}")));
        match file {
            "did.json" => drop(home.run(&["did", "show", &shown]).exits(0).says("did:wba:localhost:agents:rialto")),
            "ad.json" => drop(home.run(&["describe", &shown, "--strict"]).exits(0)),
            _ => drop(home.run(&["describe", &shown]).exits(0).says("search")),
        }
    }
    let list: Value = serde_json::from_str(&node.get("/.well-known/agent-descriptions")).unwrap();
    assert_eq!(list["items"][0]["@id"], json!("http://localhost/agents/rialto/ad.json"), "as it was asked for");
}

#[test]
fn a_call_is_taken_once_also_after_the_binary_was_killed() {
    let home = Home::new("introducing-once");
    let node = Node::start(&home);
    let key = SigningKey::from_seed([7; 32]);
    let (did, keyid) = (key.did_key().to_string(), key.key_id().to_string());
    let key: SecretKey = key.into();
    let first = request(&node, &key, &keyid, "once", &search(&did, "a"));
    let said = sent(&node, &first);
    assert_eq!(said["result"]["candidates"], json!([]), "{said:#}");
    assert_eq!(code(&sent(&node, &first)), "invalid_nonce");
    let listen = format!("127.0.0.1:{}", node.port());
    drop(node);
    let node = Node::start_with(&home, &listen, &[]);
    assert_eq!(code(&sent(&node, &first)), "invalid_nonce");
    let swapped = first.replace("\"gte\"", "\"lte\"");
    assert_ne!(swapped, first);
    assert_eq!(code(&sent(&node, &swapped)), "invalid_content_digest");
    let elsewhere = first.replace("POST /agents/rialto/rpc", "POST /agents/rialto/rpc?x=1");
    assert_eq!(code(&sent(&node, &elsewhere)), "invalid_signature");
    let again = sent(&node, &request(&node, &key, &keyid, "twice", &search(&did, "b")));
    assert_eq!(again["result"]["candidates"], json!([]), "{again:#}");
}

/// Documents at their paths; whoever tries TLS first is told by the answer that there is none.
fn web() -> (String, Arc<Mutex<HashMap<String, String>>>) {
    let pages: Arc<Mutex<HashMap<String, String>>> = Arc::default();
    let shown = Arc::clone(&pages);
    let url = stranger(move |mut stream| {
        let mut head = [0; 4_096];
        let length = stream.read(&mut head).unwrap_or_default();
        let head = String::from_utf8_lossy(&head[..length]).into_owned();
        let page = head.split(' ').nth(1).and_then(|path| shown.lock().unwrap().get(path).cloned());
        let (status, page) = page.map_or(("404 Not Found", String::new()), |page| ("200 OK", page));
        let length = page.len();
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}");
    });
    (url.replace("http://127.0.0.1", "localhost"), pages)
}

#[test]
fn an_agent_registers_with_the_binary_is_found_and_withdraws() {
    let home = Home::new("introducing-others");
    let node = Node::start_with(&home, "127.0.0.1:0", &["--private-networks"]);
    let (authority, pages) = web();
    let key: SecretKey = SigningKey::from_seed([8; 32]).into();
    let did = wba_name(&authority, &["hotel"]).unwrap();
    let at = |file: &str| format!("https://{authority}/hotel/{file}");
    let document = wba_document(&did, &key, Some(&at("ad.json")), "2026-01-01T00:00:00Z", ProofForm::Sdk).unwrap();
    let description = json!({
        "@context": ["https://agent-network-protocol.com/ad#", {"@language": "en"}],
        "@type": "https://agent-network-protocol.com/ad#AgentDescription", "@id": at("ad.json"), "name": "Hotel",
        "did": did.as_str(), "securityDefinitions": {"s": {"scheme": "didwba", "did": did.as_str()}}, "security": "s",
        "products": [{"@type": "Product", "name": "Suite", "@id": "suite.json"}],
    });
    for (file, page) in [("did.json", &document), ("ad.json", &description), ("suite.json", &json!({"beds": 3}))] {
        pages.lock().unwrap().insert(format!("/hotel/{file}"), page.to_string());
    }
    let keyid = format!("{did}#key-1");
    let call = |nonce: &str, body: &Value| sent(&node, &request(&node, &key, &keyid, nonce, body));
    let about = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"agentDescriptionUrl": at("ad.json")}});
    let registered = call("n1", &about("register"));
    assert_eq!(registered["result"]["output"]["state"], "active", "{registered:#}");
    let found = call("n2", &search(did.as_str(), "a"));
    assert_eq!(found["result"]["candidates"][0]["payload"], json!({"did": did.as_str(), "name": "Hotel"}), "{found:#}");
    // Somebody else may not take it away.
    let other = SigningKey::from_seed([9; 32]);
    let keyid = other.key_id().to_string();
    let taken = sent(&node, &request(&node, &other.into(), &keyid, "n3", &about("withdraw")));
    assert_eq!(taken["error"]["data"]["error"]["details"]["code"], "description_not_yours", "{taken:#}");
    let gone = call("n4", &about("withdraw"));
    assert_eq!(gone["result"]["output"]["state"], "withdrawn", "{gone:#}");
    assert_eq!(call("n5", &search(did.as_str(), "b"))["result"]["candidates"], json!([]));
}
