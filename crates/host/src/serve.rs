//! The agents of a node as tools of MCP, for whoever speaks that: from the body of a POST to the answer.
//!
//! There is no session: each message is answered by itself, and what an engagement is about is known by the engagement.
//! Who asks, and whether they may, is known before a message comes here.

use crate::Pending;
use json::{Document, Limits, Value, json};

/// The versions of the protocol that are spoken, the newest first.
const VERSIONS: [&str; 3] = [VERSION, "2025-06-18", "2025-03-26"];

/// The newest of them.
const VERSION: &str = "2025-11-25";

/// How large a message may be.
const MESSAGE_LIMITS: Limits = Limits { subject: "MCP message", ..Limits::DOCUMENT };

/// JSON-RPC: the bytes are no JSON.
const PARSE_ERROR: i64 = -32_700;
/// JSON-RPC: it is no request.
const INVALID_REQUEST: i64 = -32_600;
/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: i64 = -32_601;
/// JSON-RPC: the parameters do not fit.
const INVALID_PARAMS: i64 = -32_602;

/// An agent that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
}

/// The agents that somebody may call.
pub trait Agents: Send + Sync {
    /// Who they are.
    fn list(&self) -> Pending<'_, Vec<Offered>>;

    /// Begins an engagement and waits for its result; `Err` is what the caller is told of a failure.
    fn call<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<Value, String>>;
}

/// What is answered to a POST.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    /// Status 202 and nothing more: a notification was taken.
    Accepted,
    /// Status 200 and this document.
    Answer(Value),
    /// Status 400 and this document.
    Refused(Value),
}

/// Answers the body of a POST to the address of MCP.
pub async fn serve_mcp(body: &[u8], agents: &dyn Agents) -> Served {
    let Ok(document) = Document::parse(body, &MESSAGE_LIMITS) else {
        return Served::Refused(error(&Value::Null, PARSE_ERROR, "this is no JSON that is read here"));
    };
    let message = document.root().to_value();
    let id = match message.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => Some(id.clone()),
        _ => None,
    };
    let method = message.get("method").and_then(Value::as_str);
    let Some(method) = method.filter(|_| message.get("jsonrpc") == Some(&json!("2.0"))) else {
        return Served::Refused(error(&Value::Null, INVALID_REQUEST, "this is no request of JSON-RPC 2.0"));
    };
    let Some(id) = id else { return Served::Accepted };
    let params = message.get("params").unwrap_or(&Value::Null);
    Served::Answer(match answer(method, params, agents).await {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, words)) => error(&id, code, words),
    })
}

fn error(id: &Value, code: i64, words: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}})
}

async fn answer(method: &str, params: &Value, agents: &dyn Agents) -> Result<Value, (i64, &'static str)> {
    match method {
        "initialize" => {
            let wanted = params.get("protocolVersion").and_then(Value::as_str);
            let version = VERSIONS.iter().find(|known| Some(**known) == wanted).unwrap_or(&VERSION);
            Ok(json!({
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "rialto", "version": env!("CARGO_PKG_VERSION")},
            }))
        }
        "ping" => Ok(json!({})),
        "tools/list" => {
            let tools: Vec<Value> = agents.list().await.iter().map(tool).collect();
            Ok(json!({"tools": tools}))
        }
        "tools/call" => call(params, agents).await,
        _ => Err((METHOD_NOT_FOUND, "there is no such method")),
    }
}

fn tool(agent: &Offered) -> Value {
    let text = json!({"type": "string", "description": "What you want of the agent, in words."});
    json!({
        "name": agent.name,
        "description": agent.description,
        "inputSchema": {
            "type": "object", "properties": {"text": text}, "required": ["text"], "additionalProperties": false,
        },
    })
}

async fn call(params: &Value, agents: &dyn Agents) -> Result<Value, (i64, &'static str)> {
    let name = params.get("name").and_then(Value::as_str);
    let text = params.pointer("/arguments/text").and_then(Value::as_str);
    let (Some(name), Some(text)) = (name, text) else {
        return Err((INVALID_PARAMS, "a call has a `name`, and `arguments` with a `text`"));
    };
    if !agents.list().await.iter().any(|agent| agent.name == name) {
        return Err((INVALID_PARAMS, "there is no agent of this name"));
    }
    Ok(match agents.call(name, text).await {
        Ok(outputs) => {
            let words = outputs.get("text").and_then(Value::as_str).map_or_else(|| outputs.to_string(), str::to_owned);
            json!({"content": [{"type": "text", "text": words}], "structuredContent": outputs, "isError": false})
        }
        Err(words) => json!({"content": [{"type": "text", "text": words}], "isError": true}),
    })
}
