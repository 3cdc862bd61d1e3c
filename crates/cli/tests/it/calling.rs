//! `call`: agents of others, called as their descriptions say.

use crate::host::{Asked, Host, Reply};
use crate::run::Home;
use json::{Value, json};

/// An agent with a method of JSON-RPC, an HTTP operation and a conversation; `security` is the agent's.
fn agent(security: Value) -> Host {
    Host::start(move |asked, address| match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/ad.json") => Reply::json(&description(address, &security)),
        ("GET", "/interface.json") => Reply::json(&openrpc(address)),
        ("GET", "/openapi.yaml") => Reply::text("application/yaml", OPENAPI),
        ("GET", "/talk.yaml") => {
            Reply::text("application/yaml", &format!("name: talk\nprompt: Ask.\nurl: {address}/talk\n"))
        }
        ("GET", "/.well-known/agent-descriptions") => Reply::json(&json!({
            "@type": "CollectionPage", "items": [{"@id": format!("{address}/ad.json")}],
        })),
        ("POST", "/rpc") => rpc(asked),
        ("GET", "/berths/7%2F8?day=today") => Reply::json(&json!({"free": true})),
        ("POST", "/talk") => Reply::text("text/plain", "Good day."),
        _ => Reply::status(404),
    })
}

fn description(address: &str, security: &Value) -> Value {
    let interface = |name: &str, protocol: &str, file: &str| {
        json!({
            "@type": "ad:APIInterface", "@id": format!("{address}/ad.json#{name}"), "name": name, "description": name,
            "protocol": protocol, "url": file,
        })
    };
    let mut words = interface("words", "YAML", "talk.yaml");
    words["humanAuthorization"] = json!(true);
    json!({
        "@context": "https://agent-network-protocol.com/ad#", "@type": "ad:AgentDescription", "name": "Harbour",
        "description": "Berths and sums.",
        "securityDefinitions": {
            "didwba_sc": {"scheme": "didwba"}, "open": {"scheme": "nosec"}, "key": {"scheme": "apikey"},
        },
        "security": security,
        "interfaces": [
            interface("sums", "JSON-RPC 2.0", "interface.json"), interface("berths", "YAML", "openapi.yaml"), words,
        ],
    })
}

fn openrpc(address: &str) -> Value {
    let number = json!({"type": "integer"});
    let method = |name: &str| {
        json!({
            "name": name, "description": name, "params": [
                {"name": "a", "required": true, "schema": number}, {"name": "b", "required": true, "schema": number},
            ], "result": {"name": "sum", "schema": number},
        })
    };
    json!({
        "openrpc": "1.3.2", "info": {"title": "Sums", "version": "1"}, "servers": [{"url": format!("{address}/rpc")}],
        "methods": [method("add"), method("lie"), method("fail"), method("stray")],
    })
}

const OPENAPI: &str = "\
openapi: 3.0.3
info: {title: Berths, version: '1'}
paths:
  /berths/{berth}:
    get:
      operationId: look
      parameters:
        - {name: berth, in: path, required: true, schema: {type: string}}
        - {name: day, in: query, schema: {type: string, enum: [today, tomorrow]}}
      responses:
        '200': {description: x, content: {application/json: {schema: {type: object, required: [free]}}}}
";

fn rpc(asked: &Asked) -> Reply {
    let call: Value = serde_json::from_slice(&asked.body).unwrap();
    let sum = call["params"]["a"].as_i64().unwrap_or_default() + call["params"]["b"].as_i64().unwrap_or_default();
    let id = if call["method"] == "stray" { json!("another") } else { call["id"].clone() };
    match call["method"].as_str() {
        Some("fail") => {
            Reply::json(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "low tide"}}))
        }
        Some("lie") => Reply::json(&json!({"jsonrpc": "2.0", "id": id, "result": "much"})),
        _ => Reply::json(&json!({"jsonrpc": "2.0", "id": id, "result": sum})),
    }
}

fn call(home: &Home, host: &Host, arguments: &[&str]) -> crate::run::Ran {
    let url = format!("{}/ad.json", host.address);
    home.run(&[&["call", &url, "--private-networks"], arguments].concat())
}

#[test]
fn methods_are_listed_called_and_their_answers_checked() {
    let (home, host) = (Home::new("call"), agent(json!("open")));
    let listed = call(&home, &host, &[]).exits(0);
    listed.says("add(a, b)").says("look(berth, day?)  GET /berths/{berth}").says("talk(message)").says("public");
    assert_eq!(call(&home, &host, &["--json"]).exits(0).json()["interfaces"][0]["operations"][0]["name"], "add");
    assert_eq!(call(&home, &host, &["add", "a=10", "b=20"]).exits(0).out, "30\n");
    let told = call(&home, &host, &["add", r#"{"a": 1}"#, "b:=2", "--json"]).exits(0).json();
    assert_eq!((&told["result"], &told["fit"], &told["proved"]), (&json!(3), &json!("fits"), &json!(null)));
    let file = home.file("sum.json", r#"{"a": 6, "b": 7}"#);
    assert_eq!(call(&home, &host, &["add", &format!("@{file}")]).exits(0).out, "13\n");
    let found = call(&home, &host, &["look", "berth=7/8", "day=today"]).exits(0);
    found.says("\"free\": true");
    call(&home, &host, &["lie", "a=1", "b=2"]).exits(1).complains("the answer breaks its schema").says("much");
    call(&home, &host, &["fail", "a=1", "b=2"]).exits(1).complains("low tide").complains("call_answered_with_error");
    call(&home, &host, &["stray", "a=1", "b=2"]).exits(1).complains("error[reply_invalid]");
    let domain = host.address.trim_start_matches("http://");
    home.run(&["call", domain, "add", "a=1", "b=1", "--private-networks"]).exits(0).says("2");
}

#[test]
fn what_the_agent_does_not_take_is_not_sent() {
    let (home, host) = (Home::new("call-wrong"), agent(json!("open")));
    for (arguments, code, words) in [
        (&["ad", "a=1"][..], "method_unknown", "did you mean add"),
        (&["add", "a=1"], "argument_missing", "needs `b`"),
        (&["add", "a=1", "b=2", "bb=3"], "argument_unknown", "did you mean b"),
        (&["add", "a=one", "b=2"], "argument_invalid", "`a`"),
        (&["look", "berth=7", "day=never"], "argument_invalid", "`day`"),
        (&["look", "berth=.."], "argument_invalid", "another path"),
        (&["talk", "message=Hello"], "agreement_required", "--agree"),
    ] {
        call(&home, &host, arguments).exits(1).complains(&format!("error[{code}]")).complains(words);
    }
    assert!(host.asked().iter().all(|asked| asked.method == "GET" && !asked.path.starts_with("/berths")));
    assert_eq!(call(&home, &host, &["talk", "message=Hello", "--agree"]).exits(0).out, "Good day.\n");
    call(&home, &host, &["add", "a"]).exits(2);
    home.run(&["call", &format!("{}/ad.json", host.address)]).exits(3).complains("error[agent_unreachable]");
    home.run(&["call", "not an agent"]).exits(1).complains("error[agent_reference_invalid]");
}

#[test]
fn access_is_what_the_description_says() {
    let home = Home::new("call-access");
    home.run(&["keys", "new"]).exits(0);
    for (security, code) in [
        (json!("didwba_sc"), "identity_required"),
        (json!("key"), "security_refused"),
        (json!("none"), "agent_description_refused"),
    ] {
        let host = agent(security);
        call(&home, &host, &["add", "a=1", "b=2"]).exits(1).complains(&format!("error[{code}]"));
        assert!(host.asked().iter().all(|asked| asked.method == "GET"));
    }
    let host = agent(json!("didwba_sc"));
    let signed = ["add", "a=1", "b=2", "--did", "did:wba:me.example:user:alice", "--json"];
    let told = call(&home, &host, &signed).exits(0).json();
    assert_eq!(told["proved"], "did:wba:me.example:user:alice");
    let sent = host.asked().pop().unwrap();
    let input = sent.header("signature-input").unwrap();
    assert!(input.starts_with(r#"sig1=("@method" "@target-uri" "@authority" "content-digest");created="#), "{input}");
    assert!(input.ends_with(r#"keyid="did:wba:me.example:user:alice#key-1""#), "{input}");
    assert_eq!(sent.header("content-digest"), Some(trust::http::content_digest(&sent.body)).as_deref());
    call(&home, &host, &[&signed[..], &["--legacy"]].concat()).exits(0);
    let legacy = host.asked().pop().unwrap();
    assert!(legacy.header("authorization").unwrap().starts_with("DIDWba v=\"1.1\""));
}

#[test]
fn a_challenge_is_answered_once_and_never_with_less_than_the_whole_request() {
    let home = Home::new("call-challenge");
    home.run(&["keys", "new"]).exits(0);
    let host = Host::start(|asked, address| match asked.path.as_str() {
        "/ad.json" => Reply::json(&description(address, &json!("didwba_sc"))),
        "/interface.json" => Reply::json(&openrpc(address)),
        "/rpc" if asked.header("signature-input").is_some_and(|input| input.contains("nonce=\"n1\"")) => rpc(asked),
        "/rpc" => Reply::status(401)
            .with("WWW-Authenticate", r#"DIDWba realm="x", error="invalid_nonce", nonce="n1""#)
            .with("Accept-Signature", r#"sig1=("@method" "content-type");created;nonce;keyid"#),
        _ => Reply::status(404),
    });
    let signed = ["add", "a=1", "b=2", "--did", "did:wba:me.example"];
    assert_eq!(call(&home, &host, &signed).exits(0).out, "3\n");
    let calls: Vec<Asked> = host.asked().into_iter().filter(|asked| asked.path == "/rpc").collect();
    assert_eq!(calls.len(), 2);
    let covered = r#"("@method" "@target-uri" "@authority" "content-digest" "content-type")"#;
    assert!(calls[1].header("signature-input").unwrap().contains(covered));
    let closed = Host::start(|asked, address| match asked.path.as_str() {
        "/ad.json" => Reply::json(&description(address, &json!("didwba_sc"))),
        "/interface.json" => Reply::json(&openrpc(address)),
        _ => Reply::status(401).with("WWW-Authenticate", r#"DIDWba realm="x", error="invalid_did""#),
    });
    call(&home, &closed, &signed).exits(1).complains("error[authentication_refused]").complains("invalid_did");
    assert_eq!(closed.asked().iter().filter(|asked| asked.path == "/rpc").count(), 1);
}
