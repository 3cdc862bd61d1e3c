//! Models behind Anthropic's Messages API.

use super::budget::Price;
use super::provider::{Dialect, MAX_TOKENS_SAFE, Provider, Said};
use super::{Arguments, Function, Message, Model, ModelError, OnText, Reply, Request, ToolCall};
use crate::credentials::World;
use crate::fields::Fields;
use crate::http::Http;
use crate::{Aliases, ConfigurationError, Pending, Secret};
use json::{Value, json};
use std::sync::Arc;

/// The version of the interface that is spoken.
const VERSION: &str = "2023-06-01";

/// An entry of `models` of the kind `anthropic`.
#[derive(Clone)]
pub(crate) struct Setting(Provider);

/// A model behind the Messages API.
pub(crate) struct Anthropic {
    setting: Setting,
    http: Arc<dyn Http>,
}

impl Setting {
    pub(crate) fn read(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        Provider::read(fields, world).map(Self)
    }

    pub(crate) fn open(&self, http: &Arc<dyn Http>) -> Anthropic {
        Anthropic { setting: self.clone(), http: Arc::clone(http) }
    }
}

/// The conversation in turns: the interface wants the user and the model to alternate.
fn turns(request: &Request, aliases: &Aliases) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::User { text } => ("user", vec![json!({"type": "text", "text": text})]),
            Message::Assistant { text, calls } => {
                let text = text.iter().map(|text| json!({"type": "text", "text": text}));
                let calls = calls.iter().map(|call| used(call, aliases));
                ("assistant", text.chain(calls).collect())
            }
            Message::Result { id, outputs, failed, .. } => {
                let block = json!({"type": "tool_result", "tool_use_id": id, "content": outputs.to_string(),
                    "is_error": failed});
                ("user", vec![block])
            }
        };
        match turns.last_mut() {
            Some((last, known)) if *last == role => known.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn used(call: &ToolCall, aliases: &Aliases) -> Value {
    let input = match &call.arguments {
        Arguments::Json(value @ Value::Object(_)) => value.clone(),
        Arguments::Json(other) => json!({"value": other}),
        Arguments::Broken(text) => json!({"broken": text}),
    };
    json!({"type": "tool_use", "id": call.id, "name": aliases.alias(&call.name), "input": input})
}

impl Dialect for Setting {
    fn path(&self) -> &'static str {
        "/messages"
    }

    fn key(&self, key: &Secret) -> (String, String) {
        ("x-api-key".to_owned(), key.expose().to_owned())
    }

    fn headers(&self) -> Vec<(String, String)> {
        vec![("anthropic-version".to_owned(), VERSION.to_owned())]
    }

    fn body(&self, request: &Request, aliases: &Aliases) -> Value {
        let mut body = self.0.extra.clone();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", json!(self.0.model));
        put("messages", Value::Array(turns(request, aliases)));
        // This interface wants a number also where nobody says one.
        put("max_tokens", json!(self.0.max_tokens(request).unwrap_or(MAX_TOKENS_SAFE)));
        let mut system = request.system.clone();
        if let Some(schema) = &request.options.schema {
            system.push_str(&format!("\n\nReply with one JSON document of this schema and nothing else: {schema}"));
        }
        if !system.is_empty() {
            put("system", json!(system));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &Function| {
                json!({"name": aliases.alias(&tool.name), "description": tool.description,
                    "input_schema": tool.parameters})
            };
            put("tools", request.tools.iter().map(tool).collect());
            let alone = !request.options.parallel_calls;
            put("tool_choice", json!({"type": "auto", "disable_parallel_tool_use": alone}));
        }
        if self.0.stream {
            put("stream", json!(true));
        }
        Value::Object(body)
    }

    fn whole(&self, value: &Value) -> Said {
        let mut said = Said { broke: value.get("content").is_none(), ..Said::default() };
        counted(value.get("usage"), &mut said);
        said.finish = value.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
        let blocks = value.get("content").and_then(Value::as_array);
        for (position, block) in blocks.into_iter().flatten().enumerate() {
            begin(position as u64, block, &mut said);
        }
        said
    }

    fn piece(&self, piece: &Value, said: &mut Said) {
        let text = |name: &str| piece.pointer(name).and_then(Value::as_str);
        let index = piece.get("index").and_then(Value::as_u64);
        match text("/type") {
            Some("error") => said.broke = true,
            Some("message_start") => counted(piece.pointer("/message/usage"), said),
            Some("content_block_start") => {
                begin(index.unwrap_or_default(), piece.get("content_block").unwrap_or(&Value::Null), said);
            }
            Some("content_block_delta") => {
                said.text.push_str(text("/delta/text").unwrap_or_default());
                if let Some(part) = text("/delta/partial_json")
                    && let Some(call) = said.call(index, None)
                {
                    call.arguments.push_str(part);
                }
            }
            Some("message_delta") => {
                counted(piece.get("usage"), said);
                said.finish = text("/delta/stop_reason").map(str::to_owned).or(said.finish.take());
            }
            Some("message_stop") => said.ended = true,
            _ => {}
        }
    }
}

fn counted(usage: Option<&Value>, said: &mut Said) {
    let count = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    // What was read from or written to a cache was read all the same.
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"].iter().filter_map(|name| count(name));
    if let Some(input) = count("input_tokens") {
        said.usage.input_tokens = input.saturating_add(cached.sum());
    }
    said.usage.output_tokens = count("output_tokens").unwrap_or(said.usage.output_tokens);
}

/// A block begins, or is there whole.
fn begin(index: u64, block: &Value, said: &mut Said) {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => said.text.push_str(text("text").unwrap_or_default()),
        Some("tool_use") => {
            let Some(call) = said.call(Some(index), text("id")) else { return };
            text("name").unwrap_or_default().clone_into(&mut call.name);
            // While it streams the inputs begin as an empty object and come in pieces.
            let input = block.get("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
            call.arguments = input.map(Value::to_string).unwrap_or_default();
        }
        _ => {}
    }
}

impl Model for Anthropic {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_text: Option<OnText<'a>>,
    ) -> Pending<'a, Result<Reply, ModelError>> {
        Box::pin(self.setting.0.complete(&self.setting, &self.http, request, on_text))
    }

    fn provider(&self) -> &str {
        "anthropic"
    }

    fn name(&self) -> &str {
        &self.setting.0.model
    }

    fn price(&self) -> Price {
        self.setting.0.price
    }
}
