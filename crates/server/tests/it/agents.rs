//! The agents of a node over real connections: how they introduce themselves, and calls with everything that can be wrong.

use crate::{Answer, House, NOW, asker, intent, manifest};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use description::{Mode, Origin, Page, Stop, Walk};
use json::{Document, Limits, Value, json};
use node::{AgentCall, Answering, Answers, HostedAgent};
use reqwest::Method;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use trust::http::{COMPONENTS, Headers, Request, Signing, sign};
use trust::{Did, DidDocument, ProofForm, SecretKey, SigningKey, wba_document, wba_name};

const SECONDS: i64 = NOW / 1_000;
const RPC: &str = "/agents/rialto/rpc";

/// Documents at their paths, on a port of this machine, which change while it is asked.
#[derive(Clone)]
struct Web {
    authority: String,
    pages: Arc<Mutex<HashMap<String, String>>>,
}

impl Web {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
        let web = Self { authority, pages: Arc::default() };
        let serve = async |State(web): State<Web>, uri: Uri| match web.pages.lock().unwrap().get(uri.path()) {
            Some(page) => (StatusCode::OK, page.clone()),
            None => (StatusCode::NOT_FOUND, String::new()),
        };
        let router = Router::new().fallback(serve).with_state(web.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        web
    }

    fn put(&self, path: &str, document: &Value) -> String {
        self.pages.lock().unwrap().insert(path.to_owned(), document.to_string());
        format!("https://{}{path}", self.authority)
    }

    /// Somebody at this host; `described` is what the DID document lists.
    fn party(&self, name: &str, number: u8, described: Option<&str>) -> Party {
        let key: SecretKey = SigningKey::from_seed([number; 32]).into();
        let did = wba_name(&self.authority, &[name]).unwrap();
        let document = wba_document(&did, &key, described, "2026-05-01T00:00:00Z", ProofForm::Sdk).unwrap();
        self.put(&format!("/{name}/did.json"), &document);
        Party { keyid: format!("{did}#key-1"), did, key }
    }

    /// The description of a party, with a product behind a link.
    fn description(&self, party: &Party, name: &str, title: &str) -> Value {
        let at = |file: &str| format!("https://{}/{name}/{file}", self.authority);
        json!({
            "@context": ["https://agent-network-protocol.com/ad#",
                {"@vocab": "https://schema.org/", "@language": "en", "ad": "https://agent-network-protocol.com/ad#"}],
            "@type": "ad:AgentDescription", "@id": at("ad.json"), "name": title, "did": party.did.as_str(),
            "securityDefinitions": {"didwba_sc": {"scheme": "didwba", "did": party.did.as_str()}},
            "security": "didwba_sc",
            "products": [{"@type": "Product", "name": "Room", "@id": at("room.json")}],
        })
    }
}

struct Party {
    did: Did,
    keyid: String,
    key: SecretKey,
}

/// How a request is signed, and what is sent in place of what was signed.
struct Sending<'a> {
    nonce: &'a str,
    path: &'a str,
    components: &'a [&'a str],
    covers_body: bool,
    target: Option<String>,
    sent: Option<&'a Value>,
    created: i64,
}

impl<'a> Sending<'a> {
    fn new(nonce: &'a str) -> Self {
        Self {
            nonce,
            path: RPC,
            components: &COMPONENTS,
            covers_body: true,
            target: None,
            sent: None,
            created: SECONDS,
        }
    }
}

async fn send(house: &House, party: &Party, sending: &Sending<'_>, body: &Value) -> Answer {
    let bytes = body.to_string();
    let target = sending.target.clone().unwrap_or_else(|| format!("{}{}", house.url, sending.path));
    let covered = if sending.covers_body { bytes.as_bytes() } else { b"" };
    let request = Request { method: "POST", target: &target, headers: Headers::new(&[]), body: covered };
    let (key, keyid, created) = (&party.key, party.keyid.as_str(), sending.created);
    let signing = Signing { key, keyid, created, expires: created + 60, nonce: sending.nonce };
    let mut sent = house.request(Method::POST, sending.path).header("content-type", "application/json");
    for (name, value) in sign(&request, &signing, sending.components) {
        sent = sent.header(name, value);
    }
    Answer::of(sent.body(sending.sent.unwrap_or(body).to_string())).await
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params})
}

/// The result of a call that went well.
#[track_caller]
fn result(answer: &Answer) -> Value {
    let said = answer.json();
    assert_eq!(answer.status, 200, "{said:#}");
    assert!(said.get("error").is_none(), "{said:#}");
    assert_eq!((&said["jsonrpc"], &said["id"]), (&json!("2.0"), &json!("x")));
    said["result"].clone()
}

/// The number and the code of a call that was refused; the refusal is signed.
#[track_caller]
fn refused(house: &House, answer: &Answer) -> (i64, String) {
    let said = answer.json();
    assert_eq!(answer.status, 200, "{said:#}");
    assert!(said.get("result").is_none() && said["error"]["message"].is_string(), "{said:#}");
    signed(house, &said["error"]["data"]);
    crate::interface::valid("oap-response-envelope.schema.json", &said["error"]["data"]);
    let code = said["error"]["data"]["error"]["details"]["code"].as_str().unwrap().to_owned();
    (said["error"]["code"].as_f64().unwrap() as i64, code)
}

#[track_caller]
fn signed(house: &House, said: &Value) {
    let document = Document::of(said).unwrap();
    let own = Document::of(&house.node.identity().document()).unwrap();
    let keys = DidDocument::read(own.root(), house.node.identity().did()).unwrap();
    trust::Signed::read(&document).unwrap().verify_with(&keys).unwrap();
}

/// An intent of a party without a signature.
fn unsigned(party: &Did, name: &str, constraints: Value) -> Value {
    json!({
        "intent_id": format!("urn:oap:intent:{name}"), "issuer_did": party.as_str(), "category": "discovery",
        "constraints": constraints, "projection": {"include": ["/name"]},
        "validity": {"from": "2026-05-01T11:55:00Z", "to": "2026-05-01T12:55:00Z"},
    })
}

fn room() -> Value {
    json!({"path": "/products/*/document/beds", "operator": "eq", "value": 2})
}

struct Echo;

impl Answers for Echo {
    fn call(&self, call: AgentCall) -> Answering<'_> {
        Box::pin(async move {
            Ok(json!({"method": call.method, "params": call.params.root().to_value(), "caller": call.caller.as_str()}))
        })
    }
}

fn hosted(name: &str) -> HostedAgent {
    let method = json!({
        "name": "echo", "description": "Says what was said", "params": [], "result": {"name": "said", "schema": {}},
    });
    HostedAgent {
        name: name.to_owned(),
        title: format!("Agent {name}"),
        description: "Says what was said".to_owned(),
        version: "1.0.0".to_owned(),
        methods: vec![method],
        answers: Arc::new(Echo),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_introduce_themselves_so_that_the_strict_accept_them() {
    let house = House::open().await;
    house.node.host(hosted("echo")).unwrap();
    for name in ["", "Echo", "a/b", "rialto", &"a".repeat(64)] {
        assert!(house.node.host(hosted(name)).is_err(), "{name}");
    }
    for name in ["rialto", "echo"] {
        let at = |file: &str| format!("/agents/{name}/{file}");
        let (ad, own) = (house.get(&at("ad.json")).await, house.get(&at("did.json")).await);
        assert_eq!(ad.header("content-type"), "application/json; charset=utf-8");
        let document = Document::parse(&own.bytes, &Limits::DOCUMENT).unwrap();
        let url = format!("{}{}", house.url, at("ad.json"));
        let reading = description::read(&ad.bytes, None).unwrap();
        let worst: Vec<_> = reading.findings.of(Mode::Strict).map(|(_, finding)| finding.rule.number()).collect();
        assert!(reading.findings.passes(Mode::Strict), "{worst:?}");
        // On this machine it is called by digits, and its DID has a name.
        let did = reading.agent.did.clone().unwrap();
        let keys = DidDocument::read(document.root(), &did).unwrap();
        assert!(trust::verify_proof(reading.document().root(), &keys).is_ok());
        assert_eq!(keys.descriptions().collect::<Vec<_>>(), [url.as_str()]);
        let interface = house.get(&at("interface.json")).await;
        let definition = description::Definition::parse(&interface.bytes).unwrap();
        assert!(definition.findings.all().is_empty(), "{:?}", definition.findings.all());
        assert_eq!(definition.servers, [format!("{}{}", house.url, at("rpc"))]);
        assert!(!String::from_utf8_lossy(&interface.bytes).contains("$ref"));
    }
    house.get("/agents/nobody/ad.json").await.refused(&house.node, 404, "agent_not_found");
    let own = house.get("/.well-known/did.json").await.json();
    assert_eq!(own["service"][0]["serviceEndpoint"], json!(format!("{}/agents/rialto/ad.json", house.url)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_node_is_bound_to_the_address_of_its_description() {
    let house = House::with(server::Patience::default(), None, Some("https://node.example/")).await;
    let ad = house.get("/agents/rialto/ad.json").await;
    let own = house.get("/agents/rialto/did.json").await;
    let document = Document::parse(&own.bytes, &Limits::DOCUMENT).unwrap();
    let url = "https://node.example/agents/rialto/ad.json";
    let origin = Origin { url, did_document: Some(document.root()) };
    let reading = description::read(&ad.bytes, Some(&origin)).unwrap();
    assert_eq!(reading.agent.did.as_ref().unwrap().as_str(), "did:wba:node.example:agents:rialto");
    assert_eq!(origin.binds(&reading.agent), Ok(()));
    let told: Vec<_> = reading.findings.of(Mode::Lenient).collect();
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(ad.bytes, house.get("/agents/rialto/ad.json").await.bytes, "the same each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_agents_is_read_page_by_page() {
    let house = House::open().await;
    for number in 0..249 {
        house.node.host(hosted(&format!("a{number}"))).unwrap();
    }
    let mut url = format!("{}{}", house.url, description::WELL_KNOWN);
    let (mut walk, mut found, mut pages) = (Walk::begin(&url), BTreeSet::new(), 0);
    loop {
        let page = house.get(url.strip_prefix(&house.url).unwrap()).await;
        let page = Page::read(&page.bytes, &url).unwrap();
        assert!(page.findings.all().is_empty());
        found.extend(page.items.iter().map(|item| item.url.clone()));
        pages += 1;
        match walk.onward(&page) {
            Ok(next) => url = next,
            Err(stop) => break assert_eq!(stop, Stop::End),
        }
    }
    assert_eq!((pages, found.len()), (3, 250));
    assert!(found.contains(&format!("{}/agents/rialto/ad.json", house.url)));
    for (page, status, code) in [("4", 404, "no_such_page"), ("0", 404, "no_such_page"), ("x", 400, "invalid_value")] {
        let answer = house.get(&format!("{}?page={page}", description::WELL_KNOWN)).await;
        answer.refused(&house.node, status, code);
    }
    assert!(house.node.dismiss("a7") && !house.node.dismiss("a7"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_calls_is_answered_in_his_own_name_or_for_whoever_signed() {
    let (house, web) = (House::open().await, Web::open().await);
    house.publish("p1", "manifest", manifest()).await;
    let party = web.party("alice", 5, None);
    let own = unsigned(&party.did, "own", json!({"path": "/tool/did", "operator": "exists", "value": true}));
    let answer = send(&house, &party, &Sending::new("n1"), &call("search", json!({"intent": own}))).await;
    let said = result(&answer);
    signed(&house, &said);
    assert_eq!(said["candidates"].as_array().unwrap().len(), 0, "it has no `name`");
    assert_eq!(said["rejected"].as_array().unwrap().len(), 1);
    let token = answer.header("authentication-info").split('"').nth(1).unwrap().to_owned();
    // The same again is the same answer, also by the token.
    let bearing = |body: &Value, token: &str| {
        let request = house.request(Method::POST, RPC).header("content-type", "application/json");
        request.header("authorization", format!("Bearer {token}")).body(body.to_string())
    };
    let again = Answer::of(bearing(&call("search", json!({"intent": own})), &token)).await;
    assert_eq!(result(&again), said);
    // Whoever signed is whose question it is.
    let other = send(&house, &party, &Sending::new("n2"), &call("search", json!({"intent": intent("i1")}))).await;
    assert_eq!(result(&other)["candidates"][0]["payload"]["tool"]["name"], "Lagoon Translations");
    let foreign = unsigned(&asker().did_key(), "f", room());
    let answer = send(&house, &party, &Sending::new("n3"), &call("search", json!({"intent": foreign}))).await;
    assert_eq!(refused(&house, &answer), (-32_000, "forbidden_did".to_owned()));
    let mut altered = intent("i2");
    altered["projection"] = json!({"include": ["/tool"]});
    let answer = send(&house, &party, &Sending::new("n4"), &call("search", json!({"intent": altered}))).await;
    assert_eq!(refused(&house, &answer), (-32_000, "signature_invalid".to_owned()));
    let why = json!({"intent": own, "candidate_id": crate::provider().did_key().as_str()});
    let answer = send(&house, &party, &Sending::new("n5"), &call("explain", why)).await;
    assert_eq!(result(&answer)["output"]["held"], json!(true));
    let foreign = House::open().await;
    let request = foreign.request(Method::POST, RPC).header("content-type", "application/json");
    let answer = Answer::of(request.header("authorization", format!("Bearer {token}")).body("{}")).await;
    answer.refused(&foreign.node, 401, "invalid_access_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_calls_without_a_proof_unless_the_operator_lets_signed_intents_in() {
    let strict = House::open().await;
    let body = call("search", json!({"intent": intent("i1")}));
    let answer = strict.post(RPC, &body).await;
    answer.refused(&strict.node, 401, "authentication_required");
    assert!(answer.header("www-authenticate").starts_with("DIDWba "));
    let open = House::configured(|config| config.anonymous_search = true).await;
    open.publish("p1", "manifest", manifest()).await;
    assert_eq!(result(&open.post(RPC, &body).await)["candidates"].as_array().unwrap().len(), 1);
    let nobody = unsigned(&asker().did_key(), "n", room());
    for (body, told) in [
        (call("search", json!({"intent": nobody})), (-32_000, "signature_missing")),
        (call("register", json!({"agentDescriptionUrl": "https://a.example/ad.json"})), (-32_000, "caller_unknown")),
        (call("withdraw", json!({"agentDescriptionUrl": "https://a.example/ad.json"})), (-32_000, "caller_unknown")),
    ] {
        assert_eq!(refused(&open, &open.post(RPC, &body).await), (told.0, told.1.to_owned()));
    }
    let request = open.request(Method::POST, RPC).header("authorization", "Bearer x");
    let answer = Answer::of(request.header("content-type", "application/json").body(body.to_string())).await;
    answer.refused(&open.node, 401, "invalid_access_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_signed_for_something_else_or_was_sent_before_is_no_call() {
    let (house, web) = (House::open().await, Web::open().await);
    let party = web.party("alice", 5, None);
    let body = call("search", json!({"intent": unsigned(&party.did, "a", room())}));
    let other = call("register", json!({"agentDescriptionUrl": "https://evil.example/ad.json"}));
    let new = Sending::new;
    let cases = [
        (Sending { target: Some(format!("{}/whoami", house.url)), ..new("n1") }, "invalid_signature"),
        (Sending { target: Some(format!("https://evil.example{RPC}")), ..new("n2") }, "invalid_signature"),
        (Sending { components: &["@method"], ..new("n3") }, "invalid_request"),
        (Sending { covers_body: false, ..new("n4") }, "invalid_request"),
        (Sending { sent: Some(&other), ..new("n5") }, "invalid_content_digest"),
        (Sending { created: SECONDS - 400, ..new("n6") }, "request_timestamp"),
        (Sending { created: SECONDS + 400, ..new("n7") }, "request_timestamp"),
    ];
    for (sending, code) in &cases {
        let answer = send(&house, &party, sending, &body).await;
        answer.refused(&house.node, 401, code);
    }
    let stranger = Party { key: SigningKey::from_seed([6; 32]).into(), ..web.party("alice", 5, None) };
    send(&house, &stranger, &new("n8"), &body).await.refused(&house.node, 401, "invalid_signature");
    result(&send(&house, &party, &new("n9"), &body).await);
    send(&house, &party, &new("n9"), &body).await.refused(&house.node, 401, "invalid_nonce");
    let again = new("n10");
    let all = [(); 8].map(|()| send(&house, &party, &again, &body));
    let mut statuses = Vec::new();
    for answer in futures(all).await {
        statuses.push(answer.status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401, 401, 401, 401, 401, 401], "of several at once one is let in");
    assert_eq!(house.node.store().sequence(), 0, "nothing changed");
}

/// All of them at once, to the end.
async fn futures<T: Send + 'static>(all: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        all.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_none_have_the_numbers_of_json_rpc() {
    let (house, web) = (House::open().await, Web::open().await);
    house.node.host(hosted("echo")).unwrap();
    let party = web.party("alice", 5, None);
    let good = call("search", json!({}));
    let with = |member: &str, value: Value| {
        let mut call = good.clone();
        call[member] = value;
        call
    };
    let cases = [
        (json!([good.clone()]), -32_600, "rpc_batch_refused"),
        (json!([]), -32_600, "rpc_batch_refused"),
        (json!("x"), -32_600, "rpc_invalid_request"),
        (with("jsonrpc", json!("1.0")), -32_600, "rpc_invalid_request"),
        (with("id", json!({})), -32_600, "rpc_invalid_request"),
        (with("method", json!(7)), -32_600, "rpc_invalid_request"),
        (with("extra", json!(7)), -32_600, "rpc_invalid_request"),
        (with("params", json!([1])), -32_602, "wrong_type"),
        (with("method", json!("destroy")), -32_601, "rpc_method_not_found"),
        (good.clone(), -32_602, "missing_field"),
        (with("params", json!({"intent": {}, "x": 1})), -32_602, "unknown_field"),
        (with("params", json!({"intent": {}, "cursor": 1})), -32_602, "wrong_type"),
    ];
    for (number, (body, expected, code)) in cases.iter().enumerate() {
        let nonce = format!("n{number}");
        let answer = send(&house, &party, &Sending::new(&nonce), body).await;
        assert_eq!(refused(&house, &answer), (*expected, (*code).to_owned()), "{body}");
    }
    let mut silent = good.clone();
    silent.as_object_mut().unwrap().remove("id");
    let answer = send(&house, &party, &Sending::new("s"), &silent).await;
    assert_eq!((answer.status.as_u16(), answer.bytes.len()), (204, 0));
    let path = "/agents/echo/rpc";
    let sending = |nonce| Sending { path, ..Sending::new(nonce) };
    let echoed = result(&send(&house, &party, &sending("e1"), &call("echo", json!({"a": 1}))).await);
    assert_eq!(echoed, json!({"method": "echo", "params": {"a": 1}, "caller": party.did.as_str()}));
    let answer = send(&house, &party, &sending("e2"), &call("search", json!({}))).await;
    assert_eq!(refused(&house, &answer).0, -32_601, "another agent's method");
    let nowhere = Sending { path: "/agents/nobody/rpc", ..Sending::new("e3") };
    send(&house, &party, &nowhere, &good).await.refused(&house.node, 404, "agent_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_registers_its_own_description_and_nobody_elses() {
    let (house, web) = (House::open().await, Web::open().await);
    let url = format!("https://{}/alice/ad.json", web.authority);
    let (alice, bob) = (web.party("alice", 5, Some(&url)), web.party("bob", 6, Some(&url)));
    web.put("/alice/room.json", &json!({"beds": 2}));
    web.put("/alice/ad.json", &web.description(&alice, "alice", "Alice"));
    let params = json!({"agentDescriptionUrl": url});
    let register = call("register", params.clone());
    let answer = send(&house, &bob, &Sending::new("n1"), &register).await;
    assert_eq!(refused(&house, &answer), (-32_000, "description_not_yours".to_owned()));
    assert_eq!(house.node.store().sequence(), 0, "nothing changed");
    let registered = result(&send(&house, &alice, &Sending::new("n2"), &register).await);
    signed(&house, &registered);
    let told = &registered["output"];
    assert_eq!((&told["revision"], &told["accepted"]["strict"]), (&json!(1), &json!(true)), "{registered:#}");
    // The product behind the link was fetched, and is asked for by somebody else.
    let search = |name: &str| call("search", json!({"intent": unsigned(&bob.did, name, room())}));
    let found = result(&send(&house, &bob, &Sending::new("n3"), &search("s1")).await);
    assert_eq!(found["candidates"][0]["candidate_id"], told["record_id"], "{found:#}");
    let record = house.get(&format!("/oap/records/{}", crate::escaped(told["record_id"].as_str().unwrap()))).await;
    assert_eq!(record.header("oap-record-kind"), "description");
    let record = &record.json()["record"];
    assert_eq!((&record["vouched_by"], &record["bound"]), (&json!(alice.did.as_str()), &json!(true)));
    // Sent along, it is believed because the DID lists the address; Bob's lists it, too, and it is not his.
    let next = web.description(&alice, "alice", "Alice again");
    let along = |ad: &Value| call("register", json!({"agentDescriptionUrl": url, "agentDescription": ad}));
    let answer = send(&house, &bob, &Sending::new("n4"), &along(&web.description(&bob, "alice", "Bob"))).await;
    assert_eq!(refused(&house, &answer), (-32_000, "description_not_yours".to_owned()));
    let answer = send(&house, &bob, &Sending::new("n5"), &along(&next)).await;
    assert_eq!(refused(&house, &answer), (-32_000, "description_not_yours".to_owned()));
    let updated = result(&send(&house, &alice, &Sending::new("n6"), &along(&next)).await);
    assert_eq!(updated["output"]["revision"], json!(2), "{updated:#}");
    let elsewhere =
        json!({"agentDescriptionUrl": format!("https://{}/carol/ad.json", web.authority), "agentDescription": next});
    let answer = send(&house, &alice, &Sending::new("n7"), &call("register", elsewhere)).await;
    assert_eq!(refused(&house, &answer), (-32_000, "description_not_bound".to_owned()));
    let answer = send(&house, &bob, &Sending::new("n8"), &call("withdraw", params.clone())).await;
    assert_eq!(refused(&house, &answer), (-32_000, "description_not_yours".to_owned()));
    let gone = result(&send(&house, &alice, &Sending::new("n9"), &call("withdraw", params.clone())).await);
    assert_eq!(gone["output"]["state"], "withdrawn");
    let found = result(&send(&house, &bob, &Sending::new("n10"), &search("s2")).await);
    assert_eq!(found["candidates"].as_array().unwrap().len(), 0);
    let answer = send(&house, &alice, &Sending::new("n11"), &call("withdraw", params)).await;
    assert_eq!(refused(&house, &answer), (-32_000, "record_not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_that_cannot_be_had_or_used_is_refused_by_name() {
    let (house, web) = (House::open().await, Web::open().await);
    let alice = web.party("alice", 5, None);
    let mut invalid = web.description(&alice, "alice", "Alice");
    invalid["security"] = json!("nobody");
    web.put("/invalid.json", &invalid);
    web.put("/large.json", &json!({"name": "x".repeat(600_000)}));
    let at = |path: &str| format!("https://{}{path}", web.authority);
    for (number, (url, code)) in [
        (at("/nothing.json"), "description_unreachable"),
        (at("/invalid.json"), "description_invalid"),
        (at("/large.json"), "description_too_large"),
        ("https://user@a.example/ad.json".to_owned(), "invalid_value"),
        ("ftp://a.example/ad.json".to_owned(), "invalid_value"),
        ("https://a.example:25/ad.json".to_owned(), "description_address_forbidden"),
    ]
    .into_iter()
    .enumerate()
    {
        let nonce = format!("n{number}");
        let body = call("register", json!({"agentDescriptionUrl": url}));
        let answer = send(&house, &alice, &Sending::new(&nonce), &body).await;
        assert_eq!(refused(&house, &answer).1, code, "{url}");
    }
    assert_eq!(house.node.store().sequence(), 0, "nothing changed");
}
