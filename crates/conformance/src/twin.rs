//! The definitional twin, `reference`. It knows no signatures.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use probe::{Answer, Case, Implementation};
use reference::{Limits, OverBudget, Refusal};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// `reference`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Twin;

impl Implementation for Twin {
    fn name(&self) -> &str {
        "reference"
    }

    fn answer(&self, case: &Case) -> Answer {
        let text = |name: &str| case.input(name).as_str().unwrap_or_default();
        let result = match case.kind.as_str() {
            "evaluate" => evaluate(case.input("constraints"), case.input("document")),
            "refuse" | "accept" => {
                let bytes = case.bytes().unwrap_or_else(|| case.input("intent").to_string().into_bytes());
                let intent =
                    reference::parse(&bytes, &Limits::intent()).and_then(|value| reference::read_intent(&value));
                intent.map(|_| json!({})).map_err(refused)
            }
            "parse" => {
                let limits = if text("limits") == "intent" { Limits::intent() } else { Limits::document() };
                let value = reference::parse(&case.bytes().unwrap_or_default(), &limits);
                value.map(|value| json!({"canonical": reference::canonical(&value)})).map_err(refused)
            }
            "project" => project(case.input("projection"), case.input("document")),
            "order" => order(case.input("left"), case.input("right")),
            "pattern" => pattern(text("pattern"), text("subject")),
            "window" => read(case.input("validity")).and_then(|validity| {
                reference::window(&validity, text("category"), text("now")).map(|()| json!({})).map_err(refused)
            }),
            "resolve" => {
                let candidates = case.input("candidates").as_array().map(Vec::as_slice).unwrap_or_default();
                let switch = if text("over_budget") == "reject" { OverBudget::Reject } else { OverBudget::Flag };
                resolve(case.input("intent"), candidates, switch)
            }
            _ => return Answer::NoOpinion,
        };
        Answer::Result(result.unwrap_or_else(|refused| refused))
    }
}

fn refused(refusal: Refusal) -> Value {
    json!({"code": refusal.code, "at": refusal.at})
}

fn read(value: &Value) -> Result<reference::Value, Value> {
    reference::parse(value.to_string().as_bytes(), &Limits::document()).map_err(refused)
}

fn show(value: &reference::Value) -> Value {
    serde_json::from_str(&reference::canonical(value)).unwrap_or(Value::Null)
}

/// Evaluates constraints over a document.
pub(crate) fn evaluate(constraints: &Value, document: &Value) -> Result<Value, Value> {
    let evaluation = reference::evaluate(&read(constraints)?, &read(document)?).map_err(refused)?;
    Ok(json!({"holds": evaluation.holds, "leaves": evaluation.leaves}))
}

/// Applies a projection to a document.
pub(crate) fn project(projection: &Value, document: &Value) -> Result<Value, Value> {
    match reference::project(&read(projection)?, &read(document)?).map_err(refused)? {
        Ok(payload) => Ok(json!({"payload": show(&payload)})),
        Err(pointers) => Ok(json!({"failure": pointers})),
    }
}

/// Orders two values.
pub(crate) fn order(left: &Value, right: &Value) -> Result<Value, Value> {
    let word = match reference::order(&read(left)?, &read(right)?) {
        Some(Ordering::Less) => "less",
        Some(Ordering::Equal) => "equal",
        Some(Ordering::Greater) => "greater",
        None => "incomparable",
    };
    Ok(json!({"order": word}))
}

/// Matches a pattern.
pub(crate) fn pattern(pattern: &str, subject: &str) -> Result<Value, Value> {
    reference::matches(pattern, subject).map(|matches| json!({"matches": matches})).map_err(refused)
}

/// Resolves an intent over candidates.
pub(crate) fn resolve(intent: &Value, candidates: &[Value], over_budget: OverBudget) -> Result<Value, Value> {
    let candidates: Vec<reference::Value> = candidates.iter().map(read).collect::<Result<_, _>>()?;
    let resolution = reference::resolve(&read(intent)?, &candidates, over_budget).map_err(refused)?;
    let chosen = resolution.candidates.iter().map(|chosen| {
        let inputs = chosen.inputs.iter().map(|(name, value, weight, contribution)| {
            json!({"name": name, "value": value, "weight": weight, "contribution": contribution})
        });
        json!({
            "id": chosen.id, "rank": chosen.rank, "score": chosen.score, "over_budget": chosen.over_budget,
            "outcome": chosen.outcome, "payload": show(&chosen.payload), "evaluations": evaluations(&chosen.evaluations),
            "inputs": inputs.collect::<Vec<_>>(), "explanation": chosen.explanation,
        })
    });
    let rejected = resolution.rejected.iter().map(|refused| {
        json!({
            "id": refused.id, "outcome": refused.outcome, "evaluations": evaluations(&refused.evaluations),
            "explanation": refused.explanation,
        })
    });
    let shares = resolution.shares.iter().map(|(id, amount)| json!({"id": id, "amount": amount}));
    Ok(json!({
        "candidates": chosen.collect::<Vec<_>>(),
        "rejected": rejected.collect::<Vec<_>>(),
        "shares": shares.collect::<Vec<_>>(),
    }))
}

fn evaluations(leaves: &[reference::LeafRecord]) -> Vec<Value> {
    let entry = |leaf: &reference::LeafRecord| {
        let mut shown = json!({
            "path": leaf.path, "operator": leaf.operator, "value": show(&leaf.value), "passed": leaf.passed,
        });
        if let Some(value) = &leaf.candidate_value {
            shown["candidate_value"] = show(value);
        }
        if let Some(reason) = &leaf.reason {
            shown["reason"] = json!(reason);
        }
        shown
    };
    leaves.iter().map(entry).collect()
}
