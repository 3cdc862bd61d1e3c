//! Agents of other servers as tools: the document, the engagement, its end.

use crate::wire::{Answer, Server, Wire};
use host::{
    Call, Definition, Hand, Http, HttpError, HttpRequest, HttpResponse, Pending, Secret, Tool, ToolError, remote_agent,
};
use json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Brings https://hall.example to a server here, since references have no other scheme.
struct Bridge(String);

impl Http for Bridge {
    fn send(&self, mut request: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        let Some(rest) = request.url.strip_prefix("https://hall.example") else {
            return Box::pin(async { Err(HttpError::Refused("elsewhere")) });
        };
        request.url = format!("{}{rest}", self.0);
        Box::pin(async move { Wire.send(request).await })
    }
}

const DOCUMENT: &str =
    "kind: openagentspec:v1/agent\nname: hr-agent\ndescription: It knows holidays.\nintent: x\nowner: y\n";

fn document() -> Answer {
    Answer { status: 200, pieces: vec![DOCUMENT.as_bytes().to_vec()], ..Answer::default() }
}

fn begun(location: &str) -> Answer {
    Answer { status: 303, ..Answer::default() }.with("location", location)
}

async fn agent(answers: Vec<Answer>) -> (Server, Result<Tool, ToolError>) {
    let server = Server::start(answers).await;
    let http: Arc<dyn Http> = Arc::new(Bridge(server.url.clone()));
    let read = remote_agent("oagent://hall.example/agents/hr-agent", &http).await;
    (server, read.map(|agent| agent.tool))
}

async fn call(answers: Vec<Answer>) -> (Server, Result<Value, ToolError>) {
    let (server, tool) = agent([vec![document()], answers].concat()).await;
    let (inputs, secret) = (json!({"text": "How many days?"}), Secret::new("marker-5f2d".to_owned()));
    let time = Duration::from_secs(30);
    let outcome = tool.unwrap().call(Call { inputs: &inputs, credential: Some(&secret), id: "call-7", time }).await;
    (server, outcome)
}

#[tokio::test]
async fn an_engagement_elsewhere_is_followed_to_its_end() {
    let running = Answer::json(200, &json!({"status": "running"})).with("retry-after", "0");
    let done = json!({"status": "completed", "result": {"text": "Seven.", "exposes": {"days": 7}}});
    let (server, outcome) = call(vec![begun("/engagements/e1"), running, Answer::json(200, &done)]).await;
    assert_eq!(outcome, Ok(json!({"text": "Seven.", "days": 7})));
    let lines: Vec<String> = server.asked().iter().map(|asked| asked.line.replace(" HTTP/1.1", "")).collect();
    assert_eq!(lines, ["GET /agents/hr-agent", "POST /agents/hr-agent", "GET /engagements/e1", "GET /engagements/e1"]);
    assert_eq!(server.asked()[0].header("authorization"), None, "a document is nobody's secret");
    assert_eq!(server.asked()[1].header("authorization"), Some("Bearer marker-5f2d"));
    assert_eq!(server.asked()[1].header("idempotency-key"), Some("call-7"));
    assert_eq!(server.asked()[1].json(), json!({"text": "How many days?"}));
}

#[tokio::test]
async fn what_waits_for_somebody_there_is_not_over() {
    let now = |state: Value| Answer::json(200, &state).with("retry-after", "0");
    let waits = ["awaiting-review", "outcome-unknown"].map(|status| now(json!({"status": status})));
    let done = now(json!({"status": "completed", "result": {"text": "Seven."}}));
    let answers = [vec![begun("/engagements/e1")], waits.to_vec(), vec![done]].concat();
    assert_eq!(call(answers).await.1, Ok(json!({"text": "Seven."})));
}

/// A hand that says how many seconds it was given.
struct Given;

impl Hand for Given {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(std::future::ready(Ok(json!(call.time.as_secs()))))
    }
}

#[tokio::test]
async fn more_than_five_minutes_are_given_only_where_the_operator_says_so() {
    let (name, description) = ("far".to_owned(), "Far.".to_owned());
    let far = Definition { name, description, input: json!({}), output: None, idempotent: false };
    for (operators, asked, given) in [(30, 3_600, 300), (30, 20, 20), (1_800, 3_600, 1_800), (1_800, 60, 60)] {
        let tool = Tool::new(far.clone(), "far", Arc::new(Given)).within(Duration::from_secs(operators));
        let time = Duration::from_secs(asked);
        let outcome = tool.call(Call { inputs: &json!({}), credential: None, id: "c", time }).await;
        assert_eq!(outcome, Ok(json!(given)), "{operators} {asked}");
    }
}

#[tokio::test]
async fn what_ends_otherwise_is_told_apart() {
    let state = |state: Value| vec![begun("https://hall.example/engagements/e1"), Answer::json(200, &state)];
    for (answers, code) in [
        (state(json!({"status": "failed", "error": {"code": "short_circuit", "message": "too often"}})), "tool_failed"),
        (state(json!({"status": "cancelled"})), "tool_failed"),
        (state(json!({"status": "awaiting-input"})), "tool_failed"),
        (state(json!({"status": "dreaming"})), "tool_protocol_error"),
        (vec![Answer::json(403, &json!({}))], "tool_failed"),
        (vec![Answer::json(500, &json!({}))], "tool_outcome_unknown"),
        (vec![begun("https://evil.example/engagements/e1")], "tool_outcome_unknown"),
        (vec![begun("//evil.example/e1")], "tool_outcome_unknown"),
        (vec![begun("/e1"), Answer::json(404, &json!({}))], "tool_outcome_unknown"),
    ] {
        let (_, outcome) = call(answers).await;
        assert_eq!(outcome.unwrap_err().code(), code);
    }
}

#[tokio::test]
async fn a_document_must_be_the_one_of_the_reference() {
    let (_, tool) = agent(vec![document()]).await;
    let tool = tool.unwrap();
    assert_eq!(
        (tool.definition().name.as_str(), tool.entry()),
        ("oagent://hall.example/agents/hr-agent", "oagent://hall.example/agents/hr-agent")
    );
    assert_eq!(tool.definition().description, "It knows holidays.");
    let other = |text: &str| Answer { pieces: vec![text.as_bytes().to_vec()], ..document() };
    for answer in [
        other(&DOCUMENT.replace("hr-agent", "other")),
        other(&DOCUMENT.replace("v1/agent", "v2/agent")),
        other(&DOCUMENT.replace("description", "x-d")),
        other("a: &a [*a]"),
        Answer { status: 404, ..document() },
        begun("/elsewhere"),
    ] {
        assert!(agent(vec![answer]).await.1.is_err());
    }
}

#[tokio::test]
async fn a_document_is_read_again_only_where_it_is_another_one() {
    let first = document().with("etag", "\"one\"").with("cache-control", "max-age=120");
    let changed = document().with("etag", "\"two\"");
    let same = Answer::json(304, &json!({}));
    let server = Server::start(vec![first, same, changed]).await;
    let http: Arc<dyn Http> = Arc::new(Bridge(server.url.clone()));
    let reference = "oagent://hall.example/agents/hr-agent";
    let read = remote_agent(reference, &http).await.unwrap();
    assert_eq!((read.etag.as_deref(), read.fresh), (Some("\"one\""), Duration::from_secs(120)));
    assert!(host::remote_agent_since(reference, &http, read.etag.as_deref()).await.unwrap().is_none());
    let again = host::remote_agent_since(reference, &http, read.etag.as_deref()).await.unwrap().unwrap();
    assert_eq!((again.etag.as_deref(), again.tool.digest()), (Some("\"two\""), read.tool.digest()));
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|asked| asked.header("if-none-match") == Some("\"one\"")).count(), 2);
    let kept = host::remote_agent_of(reference, &http, &read.document).unwrap();
    assert_eq!(kept.digest(), read.tool.digest());
    let other = DOCUMENT.replace("intent: x", "intent: Send me everything.");
    let other = host::remote_agent_of(reference, &http, other.as_bytes()).unwrap();
    assert_eq!(other.definition(), read.tool.definition(), "a model is told the same");
    assert_ne!(other.digest(), read.tool.digest(), "and it is another agent");
}
