//! RFC 0020 §3.2, A.1: every operator with a value of every kind, asked of values of every kind; the node says what the model
//! says, also where that is no.

use super::bytes::Names;
use super::case::Types;
use super::wire::Reply;
use anyhow::{Context, Result, ensure};
use json::{Value, json};
use reference::Limits;
use std::collections::BTreeSet;

/// One question and what must come of it.
pub(crate) struct Asked {
    pub(crate) changes: Value,
    expected: Result<BTreeSet<String>, (&'static str, String)>,
}

/// The record that holds a value.
pub(crate) fn record(place: usize, value: &Value, names: &Names) -> Value {
    json!({"id": id(place, names), "run": names.get("run"), "value": value})
}

fn id(place: usize, names: &Names) -> String {
    let run = names.get("run").map(String::as_str).unwrap_or_default();
    format!("urn:x:{run}:{place}")
}

/// All questions: each operator with each value.
pub(crate) fn questions(types: &Types, names: &Names) -> Result<Vec<Asked>> {
    let mut questions = Vec::new();
    for operator in aql::Operator::ALL {
        for operand in &types.values {
            let leaf = json!({"path": "/value", "operator": operator.name(), "value": operand});
            let run = json!({"path": "/run", "operator": "eq", "value": names.get("run")});
            let constraints = json!({"all_of": [run, leaf]});
            let expected = expected(types, &constraints, names)?;
            let projection = json!({"include": ["/id"]});
            let changes = json!({"set": {"/constraints": constraints, "/projection": projection}});
            questions.push(Asked { changes, expected });
        }
    }
    Ok(questions)
}

/// What the model says of each record, or how it refuses the question.
fn expected(
    types: &Types,
    constraints: &Value,
    names: &Names,
) -> Result<Result<BTreeSet<String>, (&'static str, String)>> {
    let parse = |value: &Value| reference::parse(value.to_string().as_bytes(), &Limits::document());
    let constraints = parse(constraints).context("the model does not read the question")?;
    let mut found = BTreeSet::new();
    for (place, value) in types.values.iter().enumerate() {
        let record = parse(&record(place, value, names)).context("the model does not read the record")?;
        match reference::evaluate(&constraints, &record) {
            Ok(evaluation) if evaluation.holds => {
                found.insert(id(place, names));
            }
            Ok(_) => {}
            Err(refusal) => return Ok(Err((refusal.code, refusal.at))),
        }
    }
    Ok(Ok(found))
}

/// Whether the node said what the model says.
pub(crate) fn judge(asked: &Asked, reply: &Reply) -> Result<()> {
    let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let shown = || format!("{}: {}", asked.changes, said);
    match &asked.expected {
        Ok(expected) => {
            let candidates = said.get("candidates").and_then(Value::as_array).with_context(shown)?;
            let id = |one: &Value| one.get("candidate_id").and_then(Value::as_str).map(str::to_owned);
            let found: BTreeSet<String> = candidates.iter().filter_map(id).collect();
            ensure!(found == *expected, "the model finds {expected:?}, the node {found:?}; {}", asked.changes);
        }
        Err((code, at)) => {
            let detail = |name: &str| said.pointer(&format!("/error/details/{name}")).and_then(Value::as_str);
            ensure!(reply.status == 400, "the status is {}; {}", reply.status, shown());
            ensure!(detail("code") == Some(code), "the model says {code}; {}", shown());
            ensure!(detail("pointer") == Some(at.as_str()), "the model says {at}; {}", shown());
        }
    }
    Ok(())
}
