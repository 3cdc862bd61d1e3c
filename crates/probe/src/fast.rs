//! The engine that ships: `json`, `trust` and `aql`.

use crate::corpus::Case;
use crate::implementation::{Answer, Implementation};
use crate::shown::{entry, list};
use aql::{
    Candidate, Category, Constraints, Evaluator, Fuel, Instant, Intent, Limits, OverBudget, Pattern, Responder,
    Validity,
};
use json::{Document, Pointer};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// `json`, `trust` and `aql`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fast;

impl Implementation for Fast {
    fn name(&self) -> &str {
        "aql"
    }

    fn answer(&self, case: &Case) -> Answer {
        let result = match case.kind.as_str() {
            "evaluate" => evaluate(case.input("constraints"), case.input("document")),
            "refuse" | "accept" => read_intent(case),
            "parse" => parse(case),
            "project" => project(case.input("projection"), case.input("document")),
            "order" => order(case.input("left"), case.input("right")),
            "pattern" => pattern(text(case, "pattern"), text(case, "subject")),
            "window" => window(case),
            "resolve" => {
                let candidates = case.input("candidates").as_array().map(Vec::as_slice).unwrap_or_default();
                resolve(case.input("intent"), candidates, over_budget(case))
            }
            "verify" => verify(case),
            _ => return Answer::NoOpinion,
        };
        Answer::Result(result.unwrap_or_else(|refused| refused))
    }
}

fn text<'a>(case: &'a Case, name: &str) -> &'a str {
    case.input(name).as_str().unwrap_or_default()
}

fn over_budget(case: &Case) -> OverBudget {
    if text(case, "over_budget") == "reject" { OverBudget::Reject } else { OverBudget::Flag }
}

fn refused(refusal: aql::Refusal) -> Value {
    json!({"code": refusal.code.name(), "at": refusal.at.as_str()})
}

fn stopped(error: aql::EvaluationError) -> Value {
    json!({"code": error.code()})
}

fn document(value: &Value) -> Result<Document, Value> {
    Document::of(value).map_err(|error| refused(error.into()))
}

/// Evaluates constraints over a document.
pub fn evaluate(constraints: &Value, candidate: &Value) -> Result<Value, Value> {
    let (tree, candidate) = (document(constraints)?, document(candidate)?);
    let at = Pointer::root().child("constraints");
    let constraints = Constraints::read(tree.root(), at, &Limits::STANDARD).map_err(refused)?;
    let mut evaluator = Evaluator::new(Fuel::STANDARD);
    let holds = evaluator.evaluate(&constraints, candidate.root()).map_err(stopped)?;
    Ok(json!({"holds": holds, "leaves": evaluator.leaves}))
}

fn read_intent(case: &Case) -> Result<Value, Value> {
    let bytes = case.bytes().unwrap_or_else(|| case.input("intent").to_string().into_bytes());
    Intent::parse(&bytes, &Limits::STANDARD).map_err(refused)?;
    Ok(json!({}))
}

fn parse(case: &Case) -> Result<Value, Value> {
    let limits = if text(case, "limits") == "intent" { json::Limits::INTENT } else { json::Limits::DOCUMENT };
    let bytes = case.bytes().unwrap_or_default();
    let document = Document::parse(&bytes, &limits).map_err(|error| refused(error.into()))?;
    Ok(json!({"canonical": String::from_utf8_lossy(&json::canonical(document.root()))}))
}

/// Applies a projection to a document.
pub fn project(projection: &Value, candidate: &Value) -> Result<Value, Value> {
    let intent = json!({
        "intent_id": "urn:oap:intent:projection", "issuer_did": "did:key:z6Mk", "category": "discovery",
        "constraints": {"path": "", "operator": "exists", "value": true}, "projection": projection,
        "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
    });
    let (intent, candidate) = (document(&intent)?, document(candidate)?);
    let intent = Intent::read(intent.root(), &Limits::STANDARD).map_err(refused)?;
    match intent.projection.apply(candidate.root(), &mut 0) {
        Err(pointers) => Ok(json!({"failure": pointers})),
        Ok(projected) => {
            let mut writer = json::Writer::default();
            projected.write(&mut writer);
            Ok(json!({"payload": read_back(&writer.finish())}))
        }
    }
}

fn read_back(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or(Value::Null)
}

/// Orders two values.
pub fn order(left: &Value, right: &Value) -> Result<Value, Value> {
    let (left, right) = (document(left)?, document(right)?);
    let word = match aql::order(left.root(), right.root()) {
        Some(Ordering::Less) => "less",
        Some(Ordering::Equal) => "equal",
        Some(Ordering::Greater) => "greater",
        None => "incomparable",
    };
    Ok(json!({"order": word}))
}

/// Matches a pattern.
pub fn pattern(pattern: &str, subject: &str) -> Result<Value, Value> {
    let pattern = Pattern::read(pattern, &Pointer::root(), &Limits::STANDARD).map_err(refused)?;
    match pattern.is_match(subject, &mut Fuel::STANDARD.match_steps.clone()) {
        Ok(matches) => Ok(json!({"matches": matches})),
        Err(_) => Err(stopped(aql::EvaluationError::RegexBudgetExceeded)),
    }
}

fn window(case: &Case) -> Result<Value, Value> {
    let validity = document(case.input("validity"))?;
    let validity = Validity::of(validity.root()).map_err(refused)?;
    let named = |entry: &&(&str, Category)| entry.0 == text(case, "category");
    let category = Category::ALL.iter().find(named).map_or(Category::Discovery, |entry| entry.1);
    let now = Instant::parse(text(case, "now")).ok_or_else(|| json!({"code": "case_without_now"}))?;
    validity.check(category, now, &Limits::STANDARD).map_err(refused)?;
    Ok(json!({}))
}

/// Resolves an intent over candidates and shows the answer as the decision records have it.
pub fn resolve(intent: &Value, candidates: &[Value], over_budget: OverBudget) -> Result<Value, Value> {
    let intent_document = document(intent)?;
    let intent = Intent::read(intent_document.root(), &Limits::STANDARD).map_err(refused)?;
    let read = |(position, value): (usize, &Value)| Candidate::read(document(value)?, position + 1).map_err(refused);
    let candidates: Vec<Candidate> = candidates.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let resolution = aql::resolve(&intent, &candidates, over_budget, Fuel::STANDARD).map_err(stopped)?;
    let evaluated_at = intent.validity.from();
    let responder = Responder {
        response_id: "urn:oap:intent-response:case",
        resolver_did: "did:key:z6Mk",
        evaluated_at,
        rejected_max: usize::MAX,
        next_cursor: None,
        recorded: aql::Recorded::default(),
    };
    let response = read_back(&responder.write(&intent, &resolution, None).map_err(stopped)?);
    let scale = intent.budget.as_ref().map_or(2, |budget| budget.scale());
    let shares = resolution.shares(&intent);
    let shares = shares.iter().map(|share| json!({"id": share.candidate_id, "amount": share.amount.with_scale(scale)}));
    Ok(json!({
        "candidates": list(&response, "candidates").iter().map(entry).collect::<Vec<_>>(),
        "rejected": list(&response, "rejected").iter().map(entry).collect::<Vec<_>>(),
        "shares": shares.collect::<Vec<_>>(),
    }))
}

fn verify(case: &Case) -> Result<Value, Value> {
    let document = document(case.input("document"))?;
    let verified = trust::Signed::read(&document).and_then(|signed| signed.verify_own("issuer_did"));
    let verified = verified.map_err(|error| json!({"code": error.code(), "at": error.at.as_str()}))?;
    Ok(json!({"signer": verified.signer().as_str()}))
}
