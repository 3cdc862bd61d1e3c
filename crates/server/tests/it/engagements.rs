//! OAS Server over real connections: requirements S1 to S9, and who is told what.

use crate::{Answer, House, NOW, asker, provider};
use host::Configuration;
use json::{Value, json};
use node::{Engagements, Hosting};
use reqwest::Method;
use server::{Bounds, Listening};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use trust::http::{COMPONENTS, Headers, Request, Signing, sign};
use trust::{SecretKey, SigningKey};

const SECONDS: i64 = NOW / 1_000;

const HOST: &str = r#"
tools:
  write: {kind: static, description: Writes., returns: {written: true}}
  judge:
    kind: static
    description: Judges.
    cases: [{contains: secret, returns: {safe: false}}]
    returns: {safe: true}
  dawdle: {kind: command, description: Dawdles., command: [/bin/sleep, "30"]}
  ledger: {kind: static, description: Looks., returns: {balance: 7}}
credentials: {users: [{tool: ledger, user: "ASKER", file: asker-ledger}]}
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: write}, text: "Written."}
        - {when: {result_of: ledger}, text: "Looked."}
        - {when: {contains: balance}, calls: [{tool: ledger, inputs: {}}]}
        - {when: {contains: dawdle}, calls: [{tool: dawdle, inputs: {}}]}
        - {when: {contains: write}, calls: [{tool: write, inputs: {}}]}
        - {when: {contains: tell}, text: "the secret of MARKER"}
        - {when: {turn: 0}, text: "Good day."}
model: m
"#;

/// A document with a comment, so that a copy is told from the original.
fn document(name: &str, owner: &SigningKey) -> String {
    format!(
        "# as its owner wrote it\nkind:   openagentspec:v1/agent\nname: {name}\ndescription: Greets.\nintent: You greet.\n\
         owner: {}\ncapabilities: {{write: {{user_identity: false, input_restriction: {{require_review: owner}}}}, dawdle: {{user_identity: \
         false}}, ledger: {{}}}}\n\
         guardrails: {{output: {{tool_name: judge, assertion: safe}}}}\n",
        owner.did_key()
    )
}

impl House {
    /// A node that hosts two agents of the provider.
    async fn hosting(strangers: bool) -> Self {
        Self::hosting_at(strangers, None).await
    }

    /// The same under a public name.
    async fn hosting_at(strangers: bool, base: Option<&str>) -> Self {
        Self::hosting_with(strangers, base, |bounds| bounds).await
    }

    /// The same with other bounds.
    async fn hosting_with(strangers: bool, base: Option<&str>, bound: impl FnOnce(Bounds) -> Bounds) -> Self {
        Self::hosting_by(HOST, strangers, base, bound).await
    }

    /// The same by another file of the operator's.
    async fn hosting_by(host: &str, strangers: bool, base: Option<&str>, bound: impl FnOnce(Bounds) -> Bounds) -> Self {
        let house = Self::open().await;
        let host = host.replace("ASKER", asker().did_key().as_str());
        let configuration = Configuration::read(host.as_bytes(), house.folder.path(), &|_| None).unwrap();
        let documents = ["greeter", "other.greeter"]
            .map(|name| (format!("{name}.yaml"), document(name, &provider()).into_bytes()))
            .to_vec();
        let options = agent::Options::default();
        let hosting = Hosting { configuration, documents, people: Vec::new(), options, strangers };
        let engagements = Engagements::open(Arc::clone(&house.node), hosting).await.unwrap();
        let listening = Listening::on("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let bounds = bound(listening.bounds());
        let listening = listening.with_bounds(bounds);
        let url = listening.url();
        let router = server::hosting(Arc::clone(&house.node), engagements, base, false);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server::serve(listening, Arc::clone(&house.node), router, async {
            let _ = stopped.await;
        }));
        Self { url, stop: Some(stop), served: Some(served), ..house }
    }

    /// A request of somebody.
    async fn as_whom(&self, key: &SigningKey, method: Method, path: &str, body: Option<&Value>) -> Answer {
        Answer::of(self.signed(key, method, path, body)).await
    }

    /// The same before it is sent.
    pub(crate) fn signed(
        &self,
        key: &SigningKey,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::RequestBuilder {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let body = body.map(Value::to_string);
        let target = format!("{}{path}", self.url);
        let bytes = body.as_deref().unwrap_or_default().as_bytes();
        let request = Request { method: method.as_str(), target: &target, headers: Headers::new(&[]), body: bytes };
        let (keyid, nonce) = (key.key_id().to_string(), format!("n{}", NONCE.fetch_add(1, Ordering::Relaxed)));
        let secret = secret(key);
        let signing = Signing { key: &secret, keyid: &keyid, created: SECONDS, expires: SECONDS + 60, nonce: &nonce };
        let mut sent = self.request(method.clone(), path);
        for (name, value) in sign(&request, &signing, &COMPONENTS) {
            sent = sent.header(name, value);
        }
        if let Some(body) = body {
            sent = sent.header("content-type", "application/json").body(body);
        }
        sent
    }

    /// The provider agrees to what an engagement waits for.
    async fn approve(&self, place: &str) {
        let listed = self.as_whom(&provider(), Method::GET, "/reviews", None).await.json();
        let review = &listed["reviews"][0];
        let decision = json!({"decision": "approve", "digest": review["digest"]});
        let path = format!("{place}/reviews/{}", review["id"].as_str().unwrap());
        let answer = self.as_whom(&provider(), Method::POST, &path, Some(&decision)).await;
        assert_eq!(self.place_of(&answer), place);
    }

    /// Begins an engagement as somebody; the path of its state.
    async fn begin(&self, key: &SigningKey, text: &str) -> String {
        let answer = self.as_whom(key, Method::POST, "/agents/greeter", Some(&json!({"text": text}))).await;
        self.place_of(&answer)
    }

    fn place_of(&self, answer: &Answer) -> String {
        // The client follows a 303 by itself and comes back with what it found there; so nobody is followed here.
        assert_eq!(answer.status.as_u16(), 303, "{}", String::from_utf8_lossy(&answer.bytes));
        answer.header("location").strip_prefix(&self.url).unwrap().to_owned()
    }

    async fn state(&self, key: &SigningKey, place: &str) -> Value {
        let answer = self.as_whom(key, Method::GET, &format!("{place}?wait=20"), None).await;
        assert_eq!(answer.status.as_u16(), 200, "{}", String::from_utf8_lossy(&answer.bytes));
        answer.json()
    }
}

/// The secret of one of those who take part.
fn secret(key: &SigningKey) -> SecretKey {
    let all = [1, 2, 9].map(|number| SigningKey::from_seed([number; 32]));
    all.into_iter().find(|known| known.did_key() == key.did_key()).unwrap().into()
}

/// The same house with a client that is not sent on.
fn not_followed(mut house: House) -> House {
    let tls = crate::client_tls(rustls::RootCertStore::empty(), rustls::DEFAULT_VERSIONS);
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy();
    house.client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_is_shown_at_an_address_of_its_own_as_its_owner_wrote_it() {
    let house = House::hosting(false).await;
    let listed = house.get("/agents").await.json();
    let names: Vec<&Value> = listed["agents"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["greeter", "other.greeter"]);
    for name in ["greeter", "other.greeter"] {
        let answer = house.get(&format!("/agents/{name}")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.bytes, document(name, &provider()).as_bytes(), "byte for byte");
        assert!(answer.header("content-type").starts_with("application/yaml"));
        let etag = answer.header("etag").to_owned();
        let again = house.request(Method::GET, &format!("/agents/{name}")).header("if-none-match", etag);
        assert_eq!(Answer::of(again).await.status, 304);
    }
    house.get("/agents/nobody").await.refused(&house.node, 404, "agent_not_found");
    let plain = House::open().await;
    plain.get("/agents").await.refused(&plain.node, 404, "agent_not_found");
    plain.post("/agents/greeter", &json!({"text": "x"})).await.refused(&plain.node, 404, "agent_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_advertised_as_references_where_they_are_served_by_https() {
    let house = House::hosting_at(false, Some("https://node.example")).await;
    let listed = house.get("/agents").await.json();
    assert_eq!(listed["agents"][0]["reference"], "oagent://node.example/agents/greeter");
    let plain = House::hosting(false).await.get("/agents").await.json();
    assert!(plain["agents"][0].get("reference").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_begins_a_new_engagement_and_answers_303_to_its_state() {
    let house = not_followed(House::hosting(false).await);
    let (first, second) = (house.begin(&asker(), "hello").await, house.begin(&asker(), "hello").await);
    assert_ne!(first, second);
    assert!(first.strip_prefix("/engagements/").unwrap().len() >= 22, "128 bits at least");
    let state = house.state(&asker(), &first).await;
    assert_eq!(state["status"], "completed");
    assert_eq!(state["result"], json!({"text": "Good day.", "exposes": {}}));
    let answer = house.as_whom(&asker(), Method::POST, "/agents/greeter", Some(&json!("hello"))).await;
    house.place_of(&answer);
    for body in [json!({"text": 1}), json!({"text": "a", "more": 1}), json!([]), json!({})] {
        let answer = house.as_whom(&asker(), Method::POST, "/agents/greeter", Some(&body)).await;
        answer.refused(&house.node, 400, "engagement_input_invalid");
    }
    let long = json!({"text": "x".repeat(32 * 1024 + 1)});
    let answer = house.as_whom(&asker(), Method::POST, "/agents/greeter", Some(&long)).await;
    answer.refused(&house.node, 413, "engagement_text_too_long");
    let answer = house.as_whom(&asker(), Method::POST, "/agents/nobody", Some(&json!("x"))).await;
    answer.refused(&house.node, 404, "agent_not_found");
    let answer = house.post("/agents/greeter", &json!("x")).await;
    answer.refused(&house.node, 401, "authentication_required");
    assert!(answer.headers.contains_key("www-authenticate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_let_in_where_the_operator_says_so_and_a_client_follows_the_303() {
    let house = House::hosting(true).await;
    let answer = house.post("/agents/greeter", &json!({"text": "hello"})).await;
    assert_eq!(answer.status, 200, "the client was sent on");
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let state = house.get(&format!("/engagements/{id}?wait=20")).await;
    assert_eq!(state.json()["result"]["text"], "Good day.");
    let etag = state.header("etag").to_owned();
    let again = house.request(Method::GET, &format!("/engagements/{id}")).header("if-none-match", etag);
    assert_eq!(Answer::of(again).await.status, 304);
    let answer = house.post(&format!("/engagements/{id}/messages"), &json!({"text": "hello"})).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_or_moves_the_engagement_of_another() {
    let house = not_followed(House::hosting(false).await);
    let place = house.begin(&asker(), "write").await;
    let stranger = SigningKey::from_seed([9; 32]);
    let state = house.state(&asker(), &place).await;
    assert_eq!(state["status"], "awaiting-review");
    let review = format!("{place}/reviews/{}", state["review"]["id"].as_str().unwrap());
    let decision = json!({"decision": "approve", "digest": "x"});
    let tries = [
        (Method::GET, place.clone(), None),
        (Method::GET, format!("{place}/audit"), None),
        (Method::GET, review.clone(), None),
        (Method::POST, review.clone(), Some(decision)),
        (Method::POST, format!("{place}/messages"), Some(json!("x"))),
        (Method::POST, format!("{place}/cancel"), Some(json!({}))),
        (Method::POST, format!("{place}/outcome"), Some(json!({"call": 0, "decision": "repeat"}))),
        (Method::POST, format!("{place}/credentials"), Some(json!({}))),
        (Method::GET, "/engagements/nothing".to_owned(), None),
    ];
    for (method, path, body) in &tries {
        let answer = house.as_whom(&stranger, method.clone(), path, body.as_ref()).await;
        answer.refused(&house.node, 404, "engagement_not_found");
        let answer = match body {
            Some(body) => house.send(method.clone(), path, body).await,
            None => house.get(path).await,
        };
        answer.refused(&house.node, 401, "authentication_required");
    }
    let answer = house.as_whom(&asker(), Method::GET, &review, None).await;
    answer.refused(&house.node, 403, "reviewer_not_allowed");
    house.as_whom(&asker(), Method::GET, &format!("{place}/audit"), None).await.refused(
        &house.node,
        404,
        "engagement_not_found",
    );
}

/// What a refusal says, without the names that it and its request have, and how long it is with them.
#[track_caller]
fn said(answer: &Answer, house: &House, status: u16, code: &str) -> (usize, Value) {
    let mut envelope = answer.refused(&house.node, status, code);
    for name in ["request_id", "response_id", "signature"] {
        envelope.as_object_mut().unwrap().remove(name);
    }
    (answer.bytes.len(), envelope)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engagement_of_another_looks_like_none_also_while_it_is_at_work() {
    let house = not_followed(House::hosting(false).await);
    let stranger = SigningKey::from_seed([9; 32]);
    let (resting, busy) = (house.begin(&asker(), "hello").await, house.begin(&asker(), "dawdle").await);
    house.state(&asker(), &resting).await;
    let nowhere = format!("/engagements/{}", "0".repeat(resting.len() - "/engagements/".len()));
    let tries = [
        (Method::GET, "", None),
        (Method::GET, "/audit", None),
        (Method::GET, "/reviews/x", None),
        (Method::POST, "/reviews/x", Some(json!({"decision": "approve", "digest": "x"}))),
        (Method::POST, "/messages", Some(json!("x"))),
        (Method::POST, "/cancel", Some(json!({}))),
        (Method::POST, "/outcome", Some(json!({"call": 0, "decision": "repeat"}))),
        (Method::POST, "/credentials", Some(json!({}))),
    ];
    for (method, path, body) in &tries {
        let mut told = Vec::new();
        for place in [&nowhere, &resting, &busy] {
            let answer = house.as_whom(&stranger, method.clone(), &format!("{place}{path}"), body.as_ref()).await;
            told.push(said(&answer, &house, 404, "engagement_not_found"));
        }
        assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{method} {path}: {told:?}");
    }
    let answer = house.as_whom(&asker(), Method::GET, &busy, None).await;
    assert_eq!(answer.json()["status"], "running", "all of that took no longer than the call that it is at");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_used_up_a_day_is_told_which_bound_and_until_when() {
    // A turn and a verdict are two calls.
    let host = format!("{HOST}budgets_per_day: {{user: {{calls: 2}}}}\n");
    let house = not_followed(House::hosting_by(&host, true, None, |bounds| bounds).await);
    let used_up = |answer: &Answer| {
        let refusal = answer.refused(&house.node, 429, "day_budget_exhausted");
        let limit = &refusal["error"]["details"]["limit"];
        assert_eq!((&limit["name"], &limit["max"]), (&json!("user.calls_per_day"), &json!(2)), "{refusal}");
        let until_midnight = 86_400 - SECONDS.rem_euclid(86_400);
        assert_eq!(answer.header("retry-after"), until_midnight.to_string());
    };
    let hello = json!({"text": "hello"});
    let place = house.begin(&asker(), "hello").await;
    assert_eq!(house.state(&asker(), &place).await["status"], "completed");
    used_up(&house.as_whom(&asker(), Method::POST, "/agents/greeter", Some(&hello)).await);
    used_up(&house.as_whom(&asker(), Method::POST, &format!("{place}/messages"), Some(&hello)).await);
    assert_eq!(house.state(&asker(), &place).await["status"], "completed");
    // Somebody else has a budget of their own, and all who prove nothing have one together.
    let other = SigningKey::from_seed([9; 32]);
    assert_eq!(house.state(&other, &house.begin(&other, "hello").await).await["status"], "completed");
    let place = house.place_of(&house.post("/agents/greeter", &hello).await);
    assert_eq!(house.get(&format!("{place}?wait=20")).await.json()["status"], "completed");
    used_up(&house.post("/agents/greeter", &hello).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hundred_guesses_whoever_guesses_waits_and_nobody_else() {
    let bound = |bounds| Bounds { source_requests_per_second: NonZeroU32::new(10_000), ..bounds };
    let house = not_followed(House::hosting_with(true, None, bound).await);
    let stranger = SigningKey::from_seed([9; 32]);
    let place = house.begin(&asker(), "hello").await;
    house.state(&asker(), &place).await;
    let waits = |answer: &Answer| {
        let refusal = answer.refused(&house.node, 429, "too_many_requests");
        assert_eq!(refusal["error"]["details"]["limit"]["name"], "engagement.guesses", "{refusal}");
        assert_eq!(answer.header("retry-after"), "36");
    };
    // Half of the guesses are good ones; that they are good changes nothing.
    for guess in 0..100 {
        let path = if guess % 2 == 0 { place.clone() } else { format!("/engagements/{guess:040x}") };
        let answer = house.as_whom(&stranger, Method::GET, &path, None).await;
        answer.refused(&house.node, 404, "engagement_not_found");
    }
    for path in [place.as_str(), "/engagements/nothing", &format!("{place}/audit")] {
        waits(&house.as_whom(&stranger, Method::GET, path, None).await);
    }
    waits(&house.as_whom(&stranger, Method::POST, &format!("{place}/cancel"), Some(&json!({}))).await);
    for guess in 0..100 {
        let answer = house.get(&format!("/engagements/{guess:040x}")).await;
        answer.refused(&house.node, 401, "authentication_required");
    }
    waits(&house.get("/engagements/nothing").await);
    waits(&house.get(&place).await);
    assert_eq!(house.state(&asker(), &place).await["status"], "completed", "from the same source");
    let answer = house.as_whom(&stranger, Method::POST, "/agents/greeter", Some(&json!("hello"))).await;
    house.place_of(&answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_listed_shown_decided_once_and_audited() {
    let house = not_followed(House::hosting(false).await);
    let place = house.begin(&asker(), "write").await;
    house.state(&asker(), &place).await;
    let listed = house.as_whom(&provider(), Method::GET, "/reviews", None).await.json();
    let review = &listed["reviews"][0];
    let path = format!("{place}/reviews/{}", review["id"].as_str().unwrap());
    assert_eq!(house.as_whom(&provider(), Method::GET, &path, None).await.json(), *review);
    let stale = json!({"decision": "approve", "digest": "0"});
    let answer = house.as_whom(&provider(), Method::POST, &path, Some(&stale)).await;
    answer.refused(&house.node, 409, "review_stale");
    let decision = json!({"decision": "approve", "digest": review["digest"], "reason": "fine"});
    let answer = house.as_whom(&provider(), Method::POST, &path, Some(&decision)).await;
    assert_eq!(house.place_of(&answer), place);
    assert_eq!(house.state(&asker(), &place).await["result"]["text"], "Written.");
    let answer = house.as_whom(&provider(), Method::POST, &path, Some(&decision)).await;
    answer.refused(&house.node, 409, "review_decided");
    let trail = house.as_whom(&provider(), Method::GET, &format!("{place}/audit"), None).await.json();
    let steps: Vec<&str> =
        trail["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    let taken = [
        "begun",
        "user_said",
        "model_said",
        "attempted",
        "review_asked",
        "review_decided",
        "dispatched",
        "returned",
        "released",
        "model_said",
        "guardrail_returned",
        "guardrail_held",
        "answered",
    ];
    assert_eq!(steps, taken);
    let mine = house.as_whom(&asker(), Method::GET, "/engagements", None).await.json();
    assert_eq!(mine["engagements"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_guardrail_held_back_leaves_not_even_in_a_stream() {
    let house = not_followed(House::hosting(false).await);
    let place = house.begin(&asker(), "tell").await;
    let state = house.state(&asker(), &place).await;
    assert_eq!((state["status"].as_str(), state["error"]["code"].as_str()), (Some("failed"), Some("guardrail_failed")));
    assert!(!state.to_string().contains("MARKER"));
    let target = format!("{}{place}", house.url);
    let request = Request { method: "GET", target: &target, headers: Headers::new(&[]), body: b"" };
    let (key, keyid) = (SecretKey::from(asker()), asker().key_id().to_string());
    let signing = Signing { key: &key, keyid: &keyid, created: SECONDS, expires: SECONDS + 60, nonce: "stream" };
    let mut sent = house.request(Method::GET, &place).header("accept", "text/event-stream");
    for (name, value) in sign(&request, &signing, &COMPONENTS) {
        sent = sent.header(name, value);
    }
    let streamed = Answer::of(sent).await;
    assert!(streamed.header("content-type").starts_with("text/event-stream"));
    let text = String::from_utf8(streamed.bytes).unwrap();
    assert!(text.contains("event: status") && text.contains("guardrail_failed") && !text.contains("MARKER"), "{text}");
    let answer = house.as_whom(&asker(), Method::POST, &format!("{place}/messages"), Some(&json!("x"))).await;
    answer.refused(&house.node, 409, "engagement_over");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_knows_a_state_waits_until_it_is_another_one() {
    let house = not_followed(House::hosting(false).await);
    let place = house.begin(&asker(), "write").await;
    assert_eq!(house.state(&asker(), &place).await["status"], "awaiting-review");
    let etag = house.as_whom(&asker(), Method::GET, &place, None).await.header("etag").to_owned();
    let waiting = |seconds: u64| {
        let asked = house.signed(&asker(), Method::GET, &format!("{place}?wait={seconds}"), None);
        Answer::of(asked.header("if-none-match", etag.as_str()))
    };
    let same = waiting(1).await;
    assert_eq!((same.status.as_u16(), same.header("etag")), (304, etag.as_str()));
    let (changed, ()) = tokio::join!(waiting(15), house.approve(&place));
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), etag);
    assert_ne!(changed.json()["status"], "awaiting-review", "it was decided before anything was told");
    assert_eq!(house.state(&asker(), &place).await["result"]["text"], "Written.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_each_state_when_it_comes() {
    let house = not_followed(House::hosting(false).await);
    let place = house.begin(&asker(), "write").await;
    house.state(&asker(), &place).await;
    let asked = house.signed(&asker(), Method::GET, &place, None).header("accept", "text/event-stream");
    let mut stream = asked.send().await.unwrap();
    let mut told = String::new();
    for (words, approves) in [("awaiting-review", true), ("\"completed\"", false)] {
        while !told.contains(words) {
            told.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
        if approves {
            assert!(!told.contains("completed"), "{told}");
            house.approve(&place).await;
        }
    }
    let ids: Vec<u64> = told.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
    assert!(ids.len() >= 2 && ids.is_sorted(), "{told}");
    assert!(told.contains("Written."), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_stands_for_whoever_got_it() {
    let house = not_followed(House::hosting(false).await);
    let token = async |key: &SigningKey| {
        let answer = house.as_whom(key, Method::GET, "/engagements", None).await;
        answer.header("authorization").to_owned()
    };
    let (ours, theirs) = (token(&asker()).await, token(&SigningKey::from_seed([9; 32])).await);
    let bearing = |method: Method, path: &str, token: &str| house.request(method, path).header("authorization", token);
    let begun = bearing(Method::POST, "/agents/greeter", &ours).header("content-type", "application/json");
    let place = house.place_of(&Answer::of(begun.body(json!({"text": "hello"}).to_string())).await);
    let state = Answer::of(bearing(Method::GET, &format!("{place}?wait=20"), &ours)).await;
    assert_eq!((state.status.as_u16(), &state.json()["result"]["text"]), (200, &json!("Good day.")));
    let mine = Answer::of(bearing(Method::GET, "/engagements", &ours)).await.json();
    assert_eq!(mine["engagements"].as_array().unwrap().len(), 1);
    assert_eq!(house.state(&asker(), &place).await["status"], "completed", "by signature it is the same caller");
    Answer::of(bearing(Method::GET, &place, &theirs)).await.refused(&house.node, 404, "engagement_not_found");
    let none = Answer::of(bearing(Method::GET, &place, "Bearer nothing")).await;
    none.refused(&house.node, 401, "invalid_access_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engagement_is_asked_after_and_gone_on_with_by_json_rpc() {
    let house = not_followed(House::hosting(false).await);
    let call = async |key: &SigningKey, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
        house.as_whom(key, Method::POST, "/agents/greeter/rpc", Some(&body)).await.json()
    };
    let begun = call(&asker(), "engage", json!({"text": "write"})).await;
    assert_eq!(begun["result"]["status"], "awaiting-review", "{begun:#}");
    let id = begun["result"]["id"].clone();
    let waits = call(&asker(), "engagement", json!({"id": id})).await;
    assert_eq!(waits["result"]["status"], "awaiting-review", "{waits:#}");
    house.approve(&format!("/engagements/{}", id.as_str().unwrap())).await;
    let done = call(&asker(), "engagement", json!({"id": id})).await;
    assert_eq!(done["result"]["result"]["text"], "Written.", "{done:#}");
    let more = call(&asker(), "engagement", json!({"id": id, "text": "hello"})).await;
    assert_eq!(more["result"]["result"]["text"], "Good day.", "{more:#}");
    for (key, params, code) in [
        (SigningKey::from_seed([9; 32]), json!({"id": id}), "engagement_not_found"),
        (SigningKey::from_seed([9; 32]), json!({"id": id, "text": "hello"}), "engagement_not_found"),
        (asker(), json!({"id": "nothing"}), "engagement_not_found"),
    ] {
        let refused = call(&key, "engagement", params).await;
        assert_eq!(refused["error"]["data"]["error"]["details"]["code"], code, "{refused:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_when_the_credential_of_its_caller_is_there() {
    let house = not_followed(House::hosting(false).await);
    let place = house.begin(&asker(), "balance").await;
    assert_eq!(house.state(&asker(), &place).await["status"], "awaiting-credentials");
    let arrived = format!("{place}/credentials");
    let answer = house.as_whom(&asker(), Method::POST, &arrived, Some(&json!({}))).await;
    assert_eq!(house.place_of(&answer), place);
    let state = house.state(&asker(), &place).await;
    assert_eq!(state["status"], "awaiting-credentials", "nothing is there yet: {state}");
    std::fs::write(house.folder.path().join("asker-ledger"), "a token").unwrap();
    let answer = house.as_whom(&asker(), Method::POST, &arrived, Some(&json!({}))).await;
    assert_eq!(house.place_of(&answer), place);
    let state = house.state(&asker(), &place).await;
    assert_eq!(state["result"]["text"], "Looked.", "{state}");
    let answer = house.as_whom(&asker(), Method::POST, &arrived, Some(&json!({}))).await;
    answer.refused(&house.node, 409, "engagement_not_waiting");
}
