//! Agents as tools of MCP: message by message, and to the client that asks others for theirs.

use crate::world::open_with;
use host::{
    Agents, Body, Http, HttpError, HttpRequest, HttpResponse, Identity, Offered, Pending, Pins, Served, serve_mcp,
};
use json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Two agents; one always fails.
struct Hall;

impl Agents for Hall {
    fn list(&self) -> Pending<'_, Vec<Offered>> {
        let offered = |name: &str| Offered { name: name.to_owned(), description: format!("Is {name}.") };
        Box::pin(async move { vec![offered("hr-agent"), offered("it.agent")] })
    }

    fn call<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<Value, String>> {
        Box::pin(async move {
            match name {
                "hr-agent" => Ok(json!({"text": format!("You said {text}."), "days": 7})),
                _ => Err("guardrail_failed".to_owned()),
            }
        })
    }
}

async fn ask(message: Value) -> Served {
    serve_mcp(message.to_string().as_bytes(), &Hall).await
}

#[tokio::test]
async fn messages_are_answered_one_by_one() {
    for (message, expected) in [
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
            json!({"/result/protocolVersion": "2025-06-18", "/id": 1}),
        ),
        (
            json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "1999-01-01"}}),
            json!({"/result/protocolVersion": "2025-11-25", "/id": "a"}),
        ),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), json!({"/result": {}})),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), json!({"/result/tools/1/name": "it.agent"})),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}), json!({"/error/code": -32_601})),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}), json!({"/error/code": -32_602})),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "nobody", "arguments": {"text": "x"}}}),
            json!({"/error/code": -32_602}),
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "it.agent", "arguments": {"text": "x"}}}),
            json!({"/result/isError": true, "/result/content/0/text": "guardrail_failed"}),
        ),
    ] {
        let Served::Answer(answer) = ask(message.clone()).await else { panic!("{message}") };
        for (place, value) in expected.as_object().unwrap() {
            assert_eq!(answer.pointer(place), Some(value), "{message}: {answer}");
        }
    }
    assert_eq!(ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await, Served::Accepted);
    for rubbish in [json!([]), json!({"id": 1, "method": "ping"}), json!({"jsonrpc": "2.0", "id": 1})] {
        assert!(matches!(ask(rubbish.clone()).await, Served::Refused(_)), "{rubbish}");
    }
    let Served::Refused(answer) = serve_mcp(b"{\"a\": 1, \"a\": 2}", &Hall).await else { panic!("two members") };
    assert_eq!(answer["error"]["code"], -32_700);
}

/// A way to the hall that needs no network.
struct Inside;

struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>> {
        let next = self.0.take();
        Box::pin(async move { Ok(next) })
    }
}

impl Http for Inside {
    fn send(&self, request: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let (status, body) = match (request.method.as_str(), request.body) {
                ("POST", Some(body)) => match serve_mcp(&body, &Hall).await {
                    Served::Accepted => (202, Vec::new()),
                    Served::Answer(answer) => (200, answer.to_string().into_bytes()),
                    Served::Refused(answer) => (400, answer.to_string().into_bytes()),
                },
                _ => (405, Vec::new()),
            };
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            Ok(HttpResponse { status, headers, body: Box::new(Whole(Some(body))) })
        })
    }
}

#[tokio::test]
async fn an_agent_is_a_tool_for_others() {
    let text = "tools: {hall: {kind: mcp, url: 'https://node.example/mcp'}}";
    let toolbox = open_with(text, Path::new("."), Arc::new(Inside), Pins::new()).await;
    assert_eq!(toolbox.names(), ["hall.hr-agent", "hall.it.agent"], "{:?}", toolbox.problems());
    let inputs = json!({"text": "hello"});
    let outputs = toolbox.call("hall.hr-agent", &inputs, Identity::Nobody, "c", None).await;
    assert_eq!(outputs, Ok(json!({"text": "You said hello.", "days": 7})));
    let failed = toolbox.call("hall.it.agent", &inputs, Identity::Nobody, "c", None).await.unwrap_err();
    assert_eq!((failed.code(), failed.to_string().as_str()), ("tool_failed", "guardrail_failed"));
}
