//! Asks a real server of models, over the node's own way out, what `cargo xtask model` reports.
//!
//! It is a test of the wire, not of judgement: the model is small enough to run anywhere.

use host::{Arguments, Configuration, Function, Http, Message, Model, Options, Reply, Request, ToolCall};
use json::json;
use node::{Door, DoorPolicy, Hosted};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let url = std::env::args().nth(1).ok_or("the address of the server is missing")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ask(&url))
}

async fn ask(url: &str) -> Outcome {
    let text = format!(
        "
models:
  streamed: {{kind: openai, url: '{url}', model: small, max_tokens: 64}}
  whole: {{kind: openai, url: '{url}', model: small, max_tokens: 64, stream: false}}
  written: {{kind: openai, url: '{url}', model: small, max_tokens: 64, calls: json-schema}}
"
    );
    let configuration = Configuration::read(text.as_bytes(), Path::new("."), &|_| None)?;
    let http: Arc<dyn Http> = Arc::new(Hosted::new(Arc::new(Door::new(DoorPolicy::default())?))?);
    let model = |name: &str| configuration.model(name, &http).ok_or("no such model");
    words(model("streamed")?.as_ref()).await?;
    for name in ["streamed", "whole", "written"] {
        call(name, model(name)?.as_ref()).await?;
    }
    schema(model("whole")?.as_ref()).await
}

fn line(what: &str, held: bool, reply: &Reply, seen: &str) {
    let seen: String = seen.chars().map(|letter| if letter == '|' || letter == '\n' { ' ' } else { letter }).collect();
    let held = if held { "yes" } else { "no" };
    let usage = reply.usage;
    println!("| {what} | {held} | `{seen}` | {} / {} |", usage.input_tokens, usage.output_tokens);
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

async fn words(model: &dyn Model) -> Outcome {
    let pieces = AtomicUsize::new(0);
    let heard = |_: &str| {
        pieces.fetch_add(1, Ordering::Relaxed);
    };
    let request = Request { messages: vec![user("What is the capital of France?")], ..Request::default() };
    let reply = model.complete(&request, Some(&heard)).await?;
    let text = reply.text.clone().unwrap_or_default();
    let held = text.contains("Paris") && pieces.load(Ordering::Relaxed) > 1;
    line("words, streamed in pieces", held, &reply, &text);
    Ok(())
}

fn customers() -> Request {
    let result = |id: &str, name: &str| Message::Result {
        id: id.to_owned(),
        name: "crm".to_owned(),
        outputs: json!({"name": name}),
        failed: false,
    };
    let called = |id: &str, number: u64| Message::Assistant {
        text: None,
        calls: vec![ToolCall {
            id: id.to_owned(),
            name: "crm".to_owned(),
            arguments: Arguments::Json(json!({"id": number})),
        }],
    };
    let parameters = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    Request {
        messages: vec![
            user("Look up customer 7"),
            called("a", 7),
            result("a", "Bob"),
            Message::Assistant { text: Some("Bob".to_owned()), calls: Vec::new() },
            user("Look up customer 42"),
        ],
        tools: vec![Function { name: "crm".to_owned(), description: "Looks a customer up.".to_owned(), parameters }],
        ..Request::default()
    }
}

async fn call(name: &str, model: &dyn Model) -> Outcome {
    let mut request = customers();
    let reply = model.complete(&request, None).await?;
    let seen = match reply.calls.first() {
        Some(ToolCall { name, arguments: Arguments::Json(inputs), .. }) => format!("{name} {inputs}"),
        Some(ToolCall { name, .. }) => format!("{name} with broken inputs"),
        None => reply.text.clone().unwrap_or_default(),
    };
    line(&format!("a call, {name}"), seen == "crm {\"id\":42}", &reply, &seen);
    let Some(first) = reply.calls.first().cloned() else { return Ok(()) };
    let id = first.id.clone();
    request.messages.push(Message::Assistant { text: None, calls: vec![first] });
    let outputs = json!({"name": "Alice"});
    request.messages.push(Message::Result { id, name: "crm".to_owned(), outputs, failed: false });
    let reply = model.complete(&request, None).await?;
    let text = reply.text.clone().unwrap_or_default();
    line(&format!("its result used, {name}"), text.contains("Alice"), &reply, &text);
    Ok(())
}

async fn schema(model: &dyn Model) -> Outcome {
    let schema = json!({"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"],
        "additionalProperties": false});
    let request = Request {
        messages: vec![user("May the intern delete the database? Say approved true or false.")],
        options: Options { schema: Some(schema), ..Options::default() },
        ..Request::default()
    };
    let reply = model.complete(&request, None).await?;
    let text = reply.text.clone().unwrap_or_default();
    let document = json::Document::parse(text.as_bytes(), &json::Limits::DOCUMENT)?;
    let held = document.root().get("approved").is_some_and(|value| value.as_bool().is_some());
    line("a document of a schema", held, &reply, &text);
    Ok(())
}
