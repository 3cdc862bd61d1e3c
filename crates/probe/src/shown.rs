//! What an answer shows of its candidates, in the shape in which cases expect it.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use json::{Value, json};

/// A candidate or a rejected one as an IntentResponse has it.
pub(crate) fn entry(found: &Value) -> Value {
    let record = &found["decision_record"];
    let mut shown = json!({
        "id": found["candidate_id"], "outcome": record["outcome"], "explanation": record["explanation"],
        "evaluations": record["constraint_evaluations"],
    });
    for name in ["rank", "payload", "score"] {
        if let Some(value) = found.get(name) {
            shown[name] = value.clone();
        }
    }
    if found.get("payload").is_some() {
        shown["over_budget"] = found.get("over_budget").cloned().unwrap_or(json!(false));
        shown["inputs"] = record["ranking_function"]["inputs"].clone();
    }
    shown
}

/// A list of an answer.
pub(crate) fn list(answer: &Value, name: &str) -> Vec<Value> {
    answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}
