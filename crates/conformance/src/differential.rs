//! The same random question to both engines: one differing byte is a bug in one of them.
//!
//! RFC 0020 A.6 Theorem 3 (determinism) is what makes the comparison fair: outcomes, leaf truths, payloads, scores,
//! shares and refusals are functions of the intent and the candidates.

use crate::chance::Chance;
use crate::{generate, twin};
use aql::{Constraints, Evaluator, Fuel, Limits};
use json::{Document, Pointer};
use probe::fast;
use serde_json::{Value, json};

/// Two answers that differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What was asked.
    pub question: Value,
    /// What the fast engine said.
    pub fast: Value,
    /// What the twin said.
    pub twin: Value,
}

/// One round: a constraint tree over several records, and now and then a whole resolution.
///
/// Returns how many evaluations of a tree over a record were compared.
pub fn round(chance: &mut Chance<'_>) -> Result<u64, Box<Difference>> {
    let records: Vec<Value> = (0..8).map(|_| generate::record(chance)).collect();
    let subject = records.first().cloned().unwrap_or_default();
    let constraints = generate::constraints(chance, &subject, 3);
    let compared = compare_evaluations(&constraints, &records)?;
    compare_projection(&generate::projection(chance, &subject), &subject)?;
    let (left, right) = (generate::scalar(chance), generate::scalar(chance));
    same(json!({"left": left, "right": right}), fast::order(&left, &right), twin::order(&left, &right))?;
    if chance.one_in(8) {
        let candidates: Vec<Value> = (0..6).map(|number| generate::candidate(chance, number)).collect();
        let intent = generate::intent(chance, candidates.first().unwrap_or(&subject));
        compare_resolution(&intent, &candidates, chance.one_in(4))?;
        return Ok(compared + candidates.len() as u64);
    }
    Ok(compared)
}

/// Compares one tree over many records; each engine reads the tree once.
pub fn compare_evaluations(constraints: &Value, records: &[Value]) -> Result<u64, Box<Difference>> {
    let tree = Document::of(constraints).map_err(|error| broken(constraints, &error.to_string()))?;
    let fast = Constraints::read(tree.root(), Pointer::root().child("constraints"), &Limits::STANDARD);
    for record in records {
        let twin = twin::evaluate(constraints, record);
        let fast = match &fast {
            Err(refusal) => Err(json!({"code": refusal.code.name(), "at": refusal.at.as_str()})),
            Ok(constraints) => {
                let document = Document::of(record).map_err(|error| broken(record, &error.to_string()))?;
                let mut evaluator = Evaluator::new(Fuel::STANDARD);
                match evaluator.evaluate(constraints, document.root()) {
                    Ok(holds) => Ok(json!({"holds": holds, "leaves": evaluator.leaves})),
                    Err(error) => Err(json!({"code": error.code()})),
                }
            }
        };
        same(json!({"constraints": constraints, "document": record}), fast, twin)?;
    }
    Ok(records.len() as u64)
}

/// Compares what a projection makes of a record.
pub fn compare_projection(projection: &Value, record: &Value) -> Result<(), Box<Difference>> {
    let question = json!({"projection": projection, "document": record});
    same(question, fast::project(projection, record), twin::project(projection, record))
}

/// Compares whole answers, explanations aside: their words are free.
pub fn compare_resolution(intent: &Value, candidates: &[Value], reject: bool) -> Result<(), Box<Difference>> {
    let (ours, theirs) = match reject {
        true => (aql::OverBudget::Reject, reference::OverBudget::Reject),
        false => (aql::OverBudget::Flag, reference::OverBudget::Flag),
    };
    let plain = |answer: Result<Value, Value>| answer.map(without_explanations);
    same(
        json!({"intent": intent, "candidates": candidates, "over_budget_rejected": reject}),
        plain(fast::resolve(intent, candidates, ours)),
        plain(twin::resolve(intent, candidates, theirs)),
    )
}

/// Compares what a pattern says about a subject.
pub fn compare_pattern(pattern: &str, subject: &str) -> Result<(), Box<Difference>> {
    let question = json!({"pattern": pattern, "subject": subject});
    same(question, fast::pattern(pattern, subject), twin::pattern(pattern, subject))
}

fn same(question: Value, fast: Result<Value, Value>, twin: Result<Value, Value>) -> Result<(), Box<Difference>> {
    let flat = |answer: Result<Value, Value>| answer.unwrap_or_else(|refused| json!({"refused": refused}));
    let (fast, twin) = (flat(fast), flat(twin));
    if json::canonical_value(&fast) == json::canonical_value(&twin) {
        return Ok(());
    }
    Err(Box::new(Difference { question, fast, twin }))
}

fn without_explanations(mut answer: Value) -> Value {
    for list in ["candidates", "rejected"] {
        for entry in answer.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(entry) = entry {
                entry.remove("explanation");
            }
        }
    }
    answer
}

fn broken(value: &Value, reason: &str) -> Box<Difference> {
    Box::new(Difference { question: value.clone(), fast: json!(reason), twin: Value::Null })
}
