//! RFC 0020 A.3: the tool `ask`, by which an agent puts an intent to this node and learns whom it could hire.
//!
//! The agent gives a question without the formalities; the node fills in its own name and an hour, signs, and answers as
//! it would answer anybody. The same call asked again is the same intent while that is open, so it has the same answer.

use crate::clock::instant;
use crate::node::Node;
use crate::refusal::Error;
use agent::Step;
use host::{Call, Definition, Hand, Pending, Tool, ToolError};
use json::{Value, json};
use std::sync::{Arc, Weak};

/// The name of the tool.
pub(super) const ASK: &str = "ask";

/// Milliseconds that an intent of an agent is open.
const WINDOW_MS: i64 = 3_600_000;

/// The tool, for the agents of a node.
pub(super) fn asking(node: &Arc<Node>) -> Tool {
    let definition = Definition {
        name: ASK.to_owned(),
        description: "Puts a question to the market of this node and returns the candidates that answer it, the best \
            first. The question is an intent of RFC 0020 without names, times and signature."
            .to_owned(),
        input: json!({
            "type": "object",
            "properties": {
                "category": {"type": "string", "description": "such as discovery, commercial or knowledge"},
                "constraints": {"type": "object", "description": "what candidates must satisfy: leaves of path, operator and value, joined by all_of, any_of and not"},
                "projection": {"type": "object", "description": "which members of a candidate are wanted: {\"include\": [pointers]}"},
                "budget": {"type": "object"},
                "quality_floor": {"type": "object"},
                "resolution_policy": {"enum": ["single_best", "ranked_set", "full_set"]}
            },
            "required": ["category", "constraints", "projection"],
            "additionalProperties": false
        }),
        output: None,
        idempotent: true,
    };
    Tool::new(definition, ASK, Arc::new(Asking(Arc::downgrade(node))))
}

struct Asking(Weak<Node>);

impl Hand for Asking {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let gone = || ToolError::Unavailable("the node is stopping".to_owned());
            let node = self.0.upgrade().ok_or_else(gone)?;
            ask(&node, call.inputs, call.id).await
        })
    }
}

async fn ask(node: &Arc<Node>, question: &Value, id: &str) -> Result<Value, ToolError> {
    let mut intent = question.clone();
    if let Some(members) = intent.as_object_mut() {
        let from = opened_at(written_at(node, id), node.clock.millis());
        let digest = store::Hash::of(format!("{id}\n{from}").as_bytes()).to_string();
        let validity = json!({"from": instant(from).to_string(), "to": instant(from + 2 * WINDOW_MS).to_string()});
        members.insert("intent_id".to_owned(), json!(format!("urn:oap:intent:engagement-{digest}")));
        members.insert("issuer_did".to_owned(), json!(node.identity.did().as_str()));
        members.insert("validity".to_owned(), validity);
    }
    let answer = node.answer(&node.identity.sign(intent), None).await.map_err(|error| match error {
        Error::Refusal(refusal) => ToolError::Failed(format!("{}: {}", refusal.code, refusal.detail)),
        Error::Fault(_) | Error::Exposed(_) => ToolError::Failed("the node could not answer".to_owned()),
    })?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|_| ToolError::Protocol("no answer".to_owned()))?;
    let candidates = answer.get("candidates").cloned().unwrap_or_default();
    Ok(json!({"response_id": answer.get("response_id"), "candidates": candidates}))
}

/// When an intent is open from: the hour of the clock in which its call was written down, so that a call that is made again
/// says the same. One that is made again when that is over is another intent.
fn opened_at(written_at: Option<i64>, now: i64) -> i64 {
    let hour = |at: i64| at / WINDOW_MS * WINDOW_MS;
    let opened = written_at.map(hour).filter(|from| (*from..from + 2 * WINDOW_MS).contains(&now));
    opened.unwrap_or_else(|| hour(now))
}

/// When a call was first written down, in milliseconds since 1970.
fn written_at(node: &Node, id: &str) -> Option<i64> {
    let (engagement, number) = id.rsplit_once('/')?;
    let number: usize = number.parse().ok()?;
    let is_it =
        |body: &[u8]| matches!(serde_json::from_slice(body), Ok(Step::Dispatched { call, .. }) if call == number);
    node.store.steps(engagement).ok()?.into_iter().find(|noted| is_it(&noted.body)).map(|noted| noted.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_made_again_puts_the_same_intent_for_as_long_as_that_is_open() {
        let hour = 500_000 * WINDOW_MS;
        for (written_at, now, from) in [
            (Some(hour + 5), hour + 6, hour),
            (Some(hour + WINDOW_MS - 1), hour + WINDOW_MS + 1, hour),
            (Some(hour), hour + 2 * WINDOW_MS, hour + 2 * WINDOW_MS),
            (Some(hour + 5), hour - 1, hour - WINDOW_MS),
            (None, hour + 5, hour),
        ] {
            assert_eq!(opened_at(written_at, now), from, "{written_at:?} {now}");
        }
    }
}
