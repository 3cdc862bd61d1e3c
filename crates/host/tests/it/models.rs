//! Models over a real connection: what is sent, and what is made of replies as they really come.

use crate::wire::{Answer, Server, Wire};
use crate::world::read;
use host::{Arguments, Finish, Function, Http, Message, Model, ModelError, Options, Reply, Request, ToolCall, Usage};
use json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

fn model(kind: &str, url: &str, more: &str) -> Arc<dyn Model> {
    let text = format!("models: {{m: {{kind: {kind}, url: '{url}/v1', model: tiny, key: {{env: MARKER}}{more}}}}}");
    let http: Arc<dyn Http> = Arc::new(Wire);
    read(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}")).model("m", &http).unwrap()
}

fn call(id: &str, name: &str, inputs: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: Arguments::Json(inputs) }
}

fn conversation() -> Request {
    let function = |name: &str| Function {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object", "properties": {"id": {"type": "integer"}}}),
    };
    Request {
        system: "You help.".to_owned(),
        messages: vec![
            Message::User { text: "Who is 42?".to_owned() },
            Message::Assistant { text: None, calls: vec![call("c1", "crm.lookup", json!({"id": 42}))] },
            Message::Result {
                id: "c1".to_owned(),
                name: "crm.lookup".to_owned(),
                outputs: json!({"name": "Ada"}),
                failed: false,
            },
            Message::User { text: "And 43?".to_owned() },
        ],
        tools: vec![function("crm.lookup"), function("mail")],
        options: Options::default(),
    }
}

/// A stream of chat completions that has every bad habit at once.
const STREAM: &str = concat!(
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"Let me \"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"sée. \"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"crm_lookup\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"mail\",\"arguments\":\"{\\\"to\\\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"id\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"43}\"}}]},\"finish_reason\":\"\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":5,\"unknown\":{}}}\n\n",
    "data: [DONE]\n\n",
);

fn expected() -> Reply {
    let broken = ToolCall {
        id: "call-3".to_owned(),
        name: "mail".to_owned(),
        arguments: Arguments::Broken("{\"to\"".to_owned()),
    };
    Reply {
        text: Some("Let me sée. ".to_owned()),
        calls: vec![call("a", "crm.lookup", json!({"id": 43})), broken],
        finish: Finish::Calls,
        usage: Usage { input_tokens: 11, output_tokens: 5 },
    }
}

#[tokio::test]
async fn a_streamed_reply_is_the_same_wherever_it_is_cut() {
    for size in [1, 2, 3, 7, 64, 100_000] {
        let server = Server::start(vec![Answer::events(STREAM, size)]).await;
        let heard = Mutex::new(Vec::new());
        let on_text = |words: &str| heard.lock().unwrap().push(words.to_owned());
        let reply = model("openai", &server.url, "").complete(&conversation(), Some(&on_text)).await;
        assert_eq!(reply, Ok(expected()), "pieces of {size}");
        assert_eq!(heard.lock().unwrap().concat(), "Let me sée. ");
    }
}

#[tokio::test]
async fn nothing_counts_after_the_end_of_a_stream_however_it_is_cut() {
    let late = "data: {\"choices\":[{\"delta\":{\"content\":\"And more.\"}}]}\n\n";
    for size in [1, 64, 100_000] {
        let server = Server::start(vec![Answer::events(&format!("{STREAM}{late}"), size)]).await;
        let reply = model("openai", &server.url, "").complete(&conversation(), None).await;
        assert_eq!(reply, Ok(expected()), "pieces of {size}");
    }
}

#[tokio::test]
async fn a_model_is_sent_aliases_and_the_whole_conversation() {
    let server = Server::start(vec![Answer::events(STREAM, 64)]).await;
    model("openai", &server.url, ", max_tokens: 9, extra: {temperature: 0}")
        .complete(&conversation(), None)
        .await
        .unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some("Bearer marker-5f2d"));
    let body = asked.json();
    assert!(!body.to_string().contains("marker-5f2d"), "the key is no part of a document");
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "You help."}));
    assert_eq!(
        body["messages"][2]["tool_calls"][0],
        json!({"id": "c1", "type": "function", "function": {"name": "crm_lookup", "arguments": "{\"id\":42}"}})
    );
    assert_eq!(body["messages"][3], json!({"role": "tool", "tool_call_id": "c1", "content": "{\"name\":\"Ada\"}"}));
    assert_eq!(body["tools"][0]["function"]["name"], "crm_lookup");
    assert_eq!(body["tools"][0]["function"]["description"], "Does crm.lookup.");
    assert_eq!((&body["max_tokens"], &body["temperature"], &body["stream"]), (&json!(9), &json!(0), &json!(true)));
    assert_eq!(body["parallel_tool_calls"], json!(false));
}

#[tokio::test]
async fn no_more_is_asked_for_than_the_operator_says_and_the_budget_has_left() {
    // What is left of the budget, what the operator says, what each kind of provider is asked for.
    for (left, operators, openai, anthropic) in [
        (None, None, None, 4_096),
        (None, Some(900), Some(900), 900),
        (Some(200_000), Some(900), Some(900), 900),
        (Some(200_000), Some(16_000), Some(16_000), 16_000),
        (Some(300), Some(900), Some(300), 300),
        (Some(200_000), None, None, 4_096),
        (Some(4_097), None, None, 4_096),
        (Some(4_096), None, Some(4_096), 4_096),
        (Some(12), None, Some(12), 12),
        (Some(0), None, Some(1), 1),
        (Some(0), Some(900), Some(1), 1),
    ] {
        for (kind, answer, expected) in [
            ("openai", json!({"choices": [{"message": {"content": "Hi"}}]}), openai),
            ("anthropic", json!({"content": [{"type": "text", "text": "Hi"}]}), Some(anthropic)),
        ] {
            let server = Server::start(vec![Answer::json(200, &answer)]).await;
            let said = operators.map(|operators: u64| format!(", max_tokens: {operators}")).unwrap_or_default();
            let options = Options { max_tokens: left, ..Options::default() };
            let request = Request { options, ..conversation() };
            model(kind, &server.url, &format!(", stream: false{said}")).complete(&request, None).await.unwrap();
            let asked = server.asked()[0].json().get("max_tokens").and_then(Value::as_u64);
            assert_eq!(asked, expected, "{kind}: {left:?} left, the operator says {operators:?}");
        }
    }
}

#[tokio::test]
async fn a_whole_reply_is_read_leniently() {
    let says = |message: Value| json!({"id": 1, "choices": [{"message": message, "finish_reason": "weird", "x": 1}]});
    for (message, text, calls) in [
        (json!({"content": "Hi"}), Some("Hi"), vec![]),
        (json!({"content": [{"type": "text", "text": "Hi"}, {"type": "image"}]}), Some("Hi"), vec![]),
        (
            json!({"content": null, "tool_calls": [{"function": {"name": "mail", "arguments": {"id": 1}}},
                {"function": {"name": "mail", "arguments": null}}]}),
            None,
            vec![call("call-2", "mail", json!({"id": 1})), call("call-3", "mail", json!({}))],
        ),
        (
            json!({"tool_calls": [{"id": "c1", "function": {"name": "nobody_offered", "arguments": "{}"}}]}),
            None,
            vec![call("call-2", "nobody_offered", json!({}))],
        ),
        (
            json!({"function_call": {"name": "crm_lookup", "arguments": "{}"}}),
            None,
            vec![call("call-2", "crm.lookup", json!({}))],
        ),
    ] {
        let server = Server::start(vec![Answer::json(200, &says(message.clone()))]).await;
        let reply = model("openai", &server.url, ", stream: false").complete(&conversation(), None).await.unwrap();
        assert_eq!((reply.text.as_deref(), reply.calls), (text, calls), "{message}");
        assert_eq!(reply.finish, Finish::Other("weird".to_owned()));
    }
}

async fn outcome(answers: Vec<Answer>, more: &str, listening: bool) -> (Result<Reply, ModelError>, usize) {
    let server = Server::start(answers).await;
    let on_text = |_: &str| {};
    let model = model("openai", &server.url, more);
    let reply = model.complete(&conversation(), listening.then_some(&on_text as host::OnText<'_>)).await;
    (reply, server.asked().len())
}

#[tokio::test]
async fn a_request_is_repeated_where_that_helps_and_only_there() {
    let secret = json!({"error": {"message": "marker-body"}});
    let busy = |status| Answer::json(status, &secret).with("retry-after", "0");
    let good = Answer::events(STREAM, 64);
    let (reply, asked) = outcome(vec![busy(429), busy(503), good.clone()], "", true).await;
    assert_eq!((reply, asked), (Ok(expected()), 3));
    let (reply, asked) = outcome(vec![busy(500)], ", retries: 2", false).await;
    assert_eq!((reply.unwrap_err().code(), asked), ("model_unavailable", 3));
    for (answers, code) in [
        (vec![busy(400)], "model_refused"),
        (vec![busy(401)], "model_refused"),
        (vec![busy(302)], "model_refused"),
        (vec![Answer { pieces: vec![b"<html>".to_vec()], ..busy(200) }], "model_protocol_error"),
        (vec![Answer::events("data: {]\n\n", 64)], "model_protocol_error"),
        (vec![Answer::events(&format!("data: {}\n\n", "x".repeat(1_100_000)), 65_536)], "model_protocol_error"),
    ] {
        let (reply, asked) = outcome(answers, "", false).await;
        let error = reply.unwrap_err();
        assert_eq!((error.code(), asked), (code, 1));
        assert!(!format!("{error} {error:?}").contains("marker"), "{error:?}");
    }
}

#[tokio::test]
async fn words_that_were_heard_are_not_heard_again() {
    let half = STREAM.find("crm_lookup").unwrap();
    let cut = Answer { cut: true, ..Answer::events(&STREAM[..half], 16) };
    let good = Answer::events(STREAM, 64);
    let (reply, asked) = outcome(vec![cut.clone(), good.clone()], "", false).await;
    assert_eq!((reply, asked), (Ok(expected()), 2), "nobody listened, so it may be asked again");
    let (reply, asked) = outcome(vec![cut, good.clone()], "", true).await;
    assert_eq!((reply.unwrap_err().code(), asked), ("model_unavailable", 1));
    let ended = Answer::events(&STREAM[..STREAM.find("[DONE]").unwrap() - 6], 16);
    let (reply, asked) = outcome(vec![ended], "", true).await;
    assert_eq!((reply, asked), (Ok(expected()), 1), "a reason to end is an end");
    let broke = Answer::events("data: {\"error\": {\"message\": \"overloaded\"}}\n\n", 16);
    let (reply, asked) = outcome(vec![broke, good], "", true).await;
    assert_eq!((reply, asked), (Ok(expected()), 2));
}

#[tokio::test]
async fn a_silent_model_and_a_missing_key_have_an_end() {
    let silent = Answer { silent: true, ..Answer::default() };
    let (reply, _) = outcome(vec![silent], ", timeout_seconds: 1", false).await;
    assert_eq!(reply, Err(ModelError::Timeout));
    let server = Server::start(vec![Answer::events(STREAM, 64)]).await;
    let text = format!("models: {{m: {{kind: openai, url: '{}', model: x, key: {{env: UNSET}}}}}}", server.url);
    let http: Arc<dyn Http> = Arc::new(Wire);
    let unset = read(&text, Path::new(".")).unwrap().model("m", &http).unwrap();
    assert_eq!(unset.complete(&conversation(), None).await, Err(ModelError::Credential));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_model_without_calls_writes_them() {
    let written = |text: &str| Answer::json(200, &json!({"choices": [{"message": {"content": text}}]}));
    let server = Server::start(vec![
        written("{\"call\": {\"name\": \"crm.lookup\", \"inputs\": {\"id\": 43}}}"),
        written("{\"answer\": \"It is Bob.\"}"),
        written("It is Bob."),
    ])
    .await;
    let model = model("openai", &server.url, ", calls: json-schema, stream: false");
    let reply = model.complete(&conversation(), None).await.unwrap();
    assert_eq!((reply.finish, reply.calls), (Finish::Calls, vec![call("call-2", "crm.lookup", json!({"id": 43}))]));
    for _ in 0..2 {
        assert_eq!(model.complete(&conversation(), None).await.unwrap().text.as_deref(), Some("It is Bob."));
    }
    let body = server.asked()[0].json();
    assert!(body.get("tools").is_none());
    let schema = &body["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["anyOf"][0]["properties"]["call"]["properties"]["name"], json!({"const": "crm.lookup"}));
    assert_eq!(body["messages"][3]["content"], "Result of crm.lookup: {\"name\":\"Ada\"}");
}

/// A stream of the Messages API.
const MESSAGES: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Let me \"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"sée. \"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"crm_lookup\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"id\\\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\": 43}\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

#[tokio::test]
async fn the_messages_interface_says_the_same() {
    let reply = Reply { calls: vec![expected().calls[0].clone()], ..expected() };
    for size in [1, 5, 100_000] {
        let server = Server::start(vec![Answer::events(MESSAGES, size)]).await;
        let heard = model("anthropic", &server.url, "").complete(&conversation(), None).await;
        assert_eq!(heard, Ok(reply.clone()), "pieces of {size}");
    }
    let whole = json!({"content": [{"type": "text", "text": "Let me sée. "},
        {"type": "tool_use", "id": "a", "name": "crm_lookup", "input": {"id": 43}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 11, "output_tokens": 5}});
    let server = Server::start(vec![Answer::json(200, &whole)]).await;
    let heard = model("anthropic", &server.url, ", stream: false").complete(&conversation(), None).await;
    assert_eq!(heard, Ok(reply));
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /v1/messages HTTP/1.1");
    assert_eq!(asked.header("x-api-key"), Some("marker-5f2d"));
    assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
    let body = asked.json();
    assert_eq!(body["system"], "You help.");
    let roles: Vec<&Value> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "the user and the model alternate");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "c1");
    assert_eq!(body["messages"][2]["content"][1]["text"], "And 43?");
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
}
