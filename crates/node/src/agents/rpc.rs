//! ADP Interface: calls by JSON-RPC 2.0.
//!
//! One call at a time, with parameters by name. A refusal of ours is an error with the signed envelope as its `data`, so
//! that a caller has the same codes and places as everywhere; what is wrong with the call itself has the numbers of
//! JSON-RPC. Whatever comes back, HTTP says 200: known clients read nothing else.

use super::own::{self, AGENT};
use super::{AgentCall, Node};
use crate::refusal::{Class, Error, Refusal};
use json::{Document, Kind, Limits, Node as JsonNode, Writer, json};
use std::sync::Arc;
use trust::Did;

/// What a call may be: room for a description or an intent, and what is around it.
pub const RPC_LIMITS: Limits = Limits {
    subject: "call",
    bytes: Limits::DOCUMENT.bytes + 16 * 1024,
    depth: Limits::DOCUMENT.depth + 2,
    nodes: Limits::DOCUMENT.nodes + 16,
    ..Limits::DOCUMENT
};

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL_ERROR: i32 = -32_603;
/// A refusal of ours, which says more in its `data`.
const REFUSED: i32 = -32_000;

/// What is answered to a call.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// The response; none to a notification.
    pub bytes: Option<Vec<u8>>,
    /// What kind of no it is, when it is one; for whoever counts refusals.
    pub refused: Option<Class>,
}

/// A call that is one.
struct Call<'a> {
    id: Option<JsonNode<'a>>,
    method: &'a str,
    params: Option<JsonNode<'a>>,
}

/// What went wrong, with the number of JSON-RPC.
struct Failure {
    number: i32,
    error: Error,
}

impl Failure {
    fn refusal(number: i32, code: &'static str, detail: &str) -> Self {
        Self { number, error: Refusal::new(Class::InvalidInput, code, detail).into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let number = match &error {
            Error::Refusal(refusal) if ["missing_field", "unknown_field", "wrong_type"].contains(&refusal.code) => {
                INVALID_PARAMS
            }
            Error::Refusal(_) => REFUSED,
            Error::Fault(_) | Error::Exposed(_) => INTERNAL_ERROR,
        };
        Self { number, error }
    }
}

impl Node {
    /// Answers a call of an agent; `caller` proved to have sent it, where somebody did.
    pub async fn rpc(self: &Arc<Self>, agent: &str, bytes: &[u8], caller: Option<&Did>, request_id: &str) -> Rpc {
        let document = match Document::parse(bytes, &RPC_LIMITS) {
            Ok(document) => document,
            Err(error) => {
                let failure = Failure { number: PARSE_ERROR, error: error.into() };
                return self.failed(None, &failure, request_id);
            }
        };
        let call = match read(document.root()) {
            Ok(call) => call,
            Err(failure) => return self.failed(document.root().get("id").filter(is_id), &failure, request_id),
        };
        let answered = self.called(agent, &call, caller).await;
        let Some(id) = call.id else { return Rpc { bytes: None, refused: None } };
        match answered {
            Ok(result) => Rpc { bytes: Some(written(id, &result)), refused: None },
            Err(failure) => self.failed(Some(id), &failure, request_id),
        }
    }

    async fn called(self: &Arc<Self>, agent: &str, call: &Call<'_>, caller: Option<&Did>) -> Result<Vec<u8>, Failure> {
        let empty = Document::of(&json!({})).map_err(Error::fault)?;
        let params = call.params.unwrap_or(empty.root());
        if agent == AGENT {
            let answer = own::call(self, call.method, params, caller).await?;
            return answer.ok_or_else(unknown_method);
        }
        let none = || Error::from(Refusal::new(Class::NotFound, "agent_not_found", "this agent is gone"));
        let hosted = self.agents.find(agent).ok_or_else(none)?;
        let known = hosted.methods.iter().any(|method| method["name"].as_str() == Some(call.method));
        if !known {
            return Err(unknown_method());
        }
        let caller = own::proved(caller).map_err(Error::from)?.clone();
        let call = AgentCall { method: call.method.to_owned(), params: params.to_document(), caller };
        Ok(json::canonical_value(&hosted.answers.call(call).await?))
    }

    fn failed(&self, id: Option<JsonNode<'_>>, failure: &Failure, request_id: &str) -> Rpc {
        let refusal = match &failure.error {
            Error::Refusal(refusal) => (**refusal).clone(),
            Error::Fault(fault) | Error::Exposed(fault) => {
                tracing::error!(request_id, fault, "a call failed");
                let detail = "the node failed here, and its operator is told; the same call may be made again";
                Refusal::new(Class::Internal, "internal_error", detail)
            }
        };
        let mut writer = Writer::default();
        writer.object();
        writer.name("error");
        writer.object();
        writer.name("code");
        writer.number(f64::from(failure.number));
        writer.name("data");
        writer.canonical(&self.refuse(request_id, &refusal));
        writer.name("message");
        writer.string(&refusal.detail);
        writer.end_object();
        writer.name("id");
        match id {
            Some(id) => writer.node(id),
            None => writer.null(),
        }
        writer.name("jsonrpc");
        writer.string("2.0");
        writer.end_object();
        Rpc { bytes: Some(writer.finish()), refused: Some(refusal.class) }
    }
}

fn unknown_method() -> Failure {
    let detail = "there is no such method; the agent's interface lists what there is";
    let error = Refusal::new(Class::NotFound, "rpc_method_not_found", detail).into();
    Failure { number: METHOD_NOT_FOUND, error }
}

fn read(root: JsonNode<'_>) -> Result<Call<'_>, Failure> {
    let invalid = |detail: &str| Failure::refusal(INVALID_REQUEST, "rpc_invalid_request", detail);
    if root.kind() == Kind::Array {
        return Err(Failure::refusal(
            INVALID_REQUEST,
            "rpc_batch_refused",
            "batches are not taken; send one call at a time",
        ));
    }
    if root.get("jsonrpc").and_then(JsonNode::as_str) != Some("2.0") {
        return Err(invalid("a call is an object with `jsonrpc: \"2.0\"`"));
    }
    if let Some((_, _)) = root.members().find(|(name, _)| !["id", "jsonrpc", "method", "params"].contains(name)) {
        return Err(invalid("a call has `jsonrpc`, `id`, `method` and `params`"));
    }
    let id = root.get("id");
    if id.is_some_and(|id| !is_id(&id)) {
        return Err(invalid("`id` is a text, a number or null"));
    }
    let method = root.get("method").and_then(JsonNode::as_str).ok_or_else(|| invalid("`method` is a text"))?;
    let params = root.get("params");
    if params.is_some_and(|params| !params.is_object()) {
        return Err(Failure::refusal(INVALID_PARAMS, "wrong_type", "parameters are given by name, in an object"));
    }
    Ok(Call { id, method, params })
}

fn is_id(id: &JsonNode<'_>) -> bool {
    matches!(id.kind(), Kind::String | Kind::Number | Kind::Null)
}

fn written(id: JsonNode<'_>, result: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.object();
    writer.name("id");
    writer.node(id);
    writer.name("jsonrpc");
    writer.string("2.0");
    writer.name("result");
    writer.canonical(result);
    writer.end_object();
    writer.finish()
}
