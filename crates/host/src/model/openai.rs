//! Models that speak OpenAI's chat completions, as most servers of models do.
//!
//! A model without calls of its own (`calls: json-schema`) is asked for one JSON document instead: either a call or an
//! answer. Servers that write by a grammar keep to it however small the model is.

use super::budget::Price;
use super::provider::{Dialect, Provider, Said, written};
use super::{Arguments, Function, Message, Model, ModelError, OnText, Reply, Request, ToolCall};
use crate::credentials::World;
use crate::fields::Fields;
use crate::http::Http;
use crate::{Aliases, ConfigurationError, Pending, Secret};
use json::{Map, Value, json};
use std::sync::Arc;

/// An entry of `models` of the kind `openai`.
#[derive(Clone)]
pub(crate) struct Setting {
    provider: Provider,
    /// Whether the model has calls of its own.
    has_calls: bool,
    /// What the provider calls the bound of tokens.
    max_tokens_name: String,
}

/// A model behind chat completions.
pub(crate) struct OpenAi {
    setting: Setting,
    http: Arc<dyn Http>,
}

impl Setting {
    pub(crate) fn read(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        let has_calls = match fields.text("calls")? {
            None | Some("native") => true,
            Some("json-schema") => false,
            Some(_) => return Err(fields.wrong("calls", "calls are `native` or `json-schema`")),
        };
        let max_tokens_name = fields.text("max_tokens_name")?.unwrap_or("max_tokens").to_owned();
        Ok(Self { provider: Provider::read(fields, world)?, has_calls, max_tokens_name })
    }

    pub(crate) fn open(&self, http: &Arc<dyn Http>) -> OpenAi {
        OpenAi { setting: self.clone(), http: Arc::clone(http) }
    }

    fn messages(&self, request: &Request, aliases: &Aliases) -> Vec<Value> {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        messages.extend(request.messages.iter().map(|message| match message {
            Message::User { text } => json!({"role": "user", "content": text}),
            Message::Assistant { text, calls } if calls.is_empty() => json!({"role": "assistant", "content": text}),
            Message::Assistant { text, calls } => {
                let call = |call: &ToolCall| {
                    let (name, arguments) = (aliases.alias(&call.name), written(&call.arguments));
                    json!({"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}})
                };
                let calls: Vec<Value> = calls.iter().map(call).collect();
                json!({"role": "assistant", "content": text, "tool_calls": calls})
            }
            Message::Result { id, outputs, .. } => {
                json!({"role": "tool", "tool_call_id": id, "content": outputs.to_string()})
            }
        }));
        messages
    }
}

impl Dialect for Setting {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn key(&self, key: &Secret) -> (String, String) {
        ("authorization".to_owned(), format!("Bearer {}", key.expose()))
    }

    fn headers(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn body(&self, request: &Request, aliases: &Aliases) -> Value {
        let mut body = self.provider.extra.clone();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", json!(self.provider.model));
        put("messages", Value::Array(self.messages(request, aliases)));
        if !request.tools.is_empty() {
            let function = |tool: &Function| {
                let name = aliases.alias(&tool.name);
                json!({"type": "function",
                    "function": {"name": name, "description": tool.description, "parameters": tool.parameters}})
            };
            put("tools", request.tools.iter().map(function).collect());
            put("parallel_tool_calls", json!(request.options.parallel_calls));
        }
        if let Some(schema) = &request.options.schema {
            put("response_format", json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}));
        }
        if let Some(max) = self.provider.max_tokens(request) {
            put(&self.max_tokens_name, json!(max));
        }
        if self.provider.stream {
            put("stream", json!(true));
            put("stream_options", json!({"include_usage": true}));
        }
        Value::Object(body)
    }

    fn whole(&self, value: &Value) -> Said {
        let mut said = Said::default();
        counted(value, &mut said);
        let choice = value.pointer("/choices/0").unwrap_or(&Value::Null);
        if choice.is_null() || value.get("error").is_some_and(|error| !error.is_null()) {
            said.broke = true;
        }
        take(choice, choice.get("message"), &mut said);
        said
    }

    fn piece(&self, piece: &Value, said: &mut Said) {
        if piece.get("error").is_some_and(|error| !error.is_null()) {
            said.broke = true;
        }
        counted(piece, said);
        if let Some(choice) = piece.pointer("/choices/0") {
            take(choice, choice.get("delta").or_else(|| choice.get("message")), said);
        }
    }
}

fn counted(value: &Value, said: &mut Said) {
    let count = |name: &str| value.get("usage").and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    said.usage.input_tokens = count("prompt_tokens").unwrap_or(said.usage.input_tokens);
    said.usage.output_tokens = count("completion_tokens").unwrap_or(said.usage.output_tokens);
}

/// Takes a message or a piece of one.
fn take(choice: &Value, message: Option<&Value>, said: &mut Said) {
    if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
        said.finish = Some(reason.to_owned());
    }
    let Some(message) = message else { return };
    match message.get("content") {
        Some(Value::String(text)) => said.text.push_str(text),
        Some(Value::Array(parts)) => {
            said.text.extend(parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)));
        }
        _ => {}
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let function = call.get("function").unwrap_or(call);
        // A whole call without number or id is a call of its own.
        let index = call.get("index").and_then(Value::as_u64);
        let is_begun = function.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
        let index = index.or((is_begun && id.is_none()).then_some(u64::MAX - said.calls.len() as u64));
        add(function, said, index, id);
    }
    if let Some(function) = message.get("function_call").filter(|function| function.is_object()) {
        add(function, said, Some(0), None);
    }
}

fn add(function: &Value, said: &mut Said, index: Option<u64>, id: Option<&str>) {
    let Some(call) = said.call(index, id) else { return };
    if let Some(name) = function.get("name").and_then(Value::as_str).filter(|_| call.name.is_empty()) {
        name.clone_into(&mut call.name);
    }
    match function.get("arguments") {
        Some(Value::String(text)) => call.arguments.push_str(text),
        Some(value @ Value::Object(_)) => call.arguments = value.to_string(),
        _ => {}
    }
}

impl Model for OpenAi {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_text: Option<OnText<'a>>,
    ) -> Pending<'a, Result<Reply, ModelError>> {
        let Setting { provider, has_calls, .. } = &self.setting;
        if *has_calls || request.tools.is_empty() {
            return Box::pin(provider.complete(&self.setting, &self.http, request, on_text));
        }
        Box::pin(async move {
            let asked = in_words(request);
            let reply = provider.complete(&self.setting, &self.http, &asked, None).await?;
            let reply = from_words(request, reply);
            if let (Some(on_text), Some(text)) = (on_text, &reply.text) {
                on_text(text);
            }
            Ok(reply)
        })
    }

    fn provider(&self) -> &str {
        "openai"
    }

    fn name(&self) -> &str {
        &self.setting.provider.model
    }

    fn price(&self) -> Price {
        self.setting.provider.price
    }
}

/// The same request for a model that only writes: calls and results as texts, and a schema for what it writes.
fn in_words(request: &Request) -> Request {
    let tools =
        request.tools.iter().map(|tool| format!("- {}: {} Inputs: {}", tool.name, tool.description, tool.parameters));
    let tools: Vec<String> = tools.collect();
    let system = format!(
        "{}\n\nReply with one JSON object. To use a tool write {{\"call\": {{\"name\": ..., \"inputs\": ...}}}}; to \
         answer write {{\"answer\": \"...\"}}. The tools:\n{}",
        request.system,
        tools.join("\n")
    );
    let messages = request.messages.iter().flat_map(|message| match message {
        Message::User { text } => vec![Message::User { text: text.clone() }],
        Message::Assistant { text, calls } => {
            let said = |text: String| Message::Assistant { text: Some(text), calls: Vec::new() };
            let answer = text.as_ref().map(|text| said(json!({"answer": text}).to_string()));
            let calls = calls.iter().map(|call| {
                let inputs = match &call.arguments {
                    Arguments::Json(value) => value.clone(),
                    Arguments::Broken(text) => json!(text),
                };
                said(json!({"call": {"name": call.name, "inputs": inputs}}).to_string())
            });
            answer.filter(|_| calls.len() == 0).into_iter().chain(calls).collect()
        }
        Message::Result { name, outputs, .. } => vec![Message::User { text: format!("Result of {name}: {outputs}") }],
    });
    let call = |tool: &Function| {
        object(&[("call", object(&[("name", json!({"const": tool.name})), ("inputs", tool.parameters.clone())]))])
    };
    let answer = object(&[("answer", json!({"type": "string"}))]);
    let any: Vec<Value> = request.tools.iter().map(call).chain([answer]).collect();
    let options = super::Options { schema: Some(json!({"anyOf": any})), ..request.options.clone() };
    Request { system, messages: messages.collect(), tools: Vec::new(), options }
}

fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map = members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

/// What such a model wrote, as a reply; what is no such document is an answer.
fn from_words(request: &Request, reply: Reply) -> Reply {
    let written: Option<Value> = reply.text.as_ref().and_then(|text| serde_json::from_str(text.trim()).ok());
    let Some(written) = written else { return reply };
    if let (Some(name), Some(inputs)) = (
        written.pointer("/call/name").and_then(Value::as_str).filter(|name| !name.is_empty()),
        written.pointer("/call/inputs"),
    ) {
        let calls = request.messages.iter().filter(|message| matches!(message, Message::Result { .. })).count();
        let arguments = Arguments::Json(crate::tool::faithful(inputs.clone()));
        let call = ToolCall { id: format!("call-{}", calls + 1), name: name.to_owned(), arguments };
        return Reply { text: None, calls: vec![call], finish: super::Finish::Calls, ..reply };
    }
    match written.get("answer").and_then(Value::as_str) {
        Some(answer) => Reply { text: Some(answer.to_owned()), ..reply },
        None => reply,
    }
}
