//! RFC 0020 A.7: an intent that costs more than it may is an error and never a shorter answer.

use crate::{candidate, intent, read};
use aql::{Candidate, Constraints, EvaluationError, Evaluator, Fuel, Intent, Limits, OverBudget};
use json::{Document, Pointer, Value, json};

fn market() -> Vec<Candidate> {
    let record = |number: usize| {
        let parts: Vec<Value> = (0..number % 7).map(|part| json!({"kind": "part", "size": part})).collect();
        json!({"name": format!("name-{number}"), "parts": parts})
    };
    (0..20).map(|number| candidate(&format!("candidate-{number}"), record(number))).collect()
}

/// The ids of the answer and of those turned away, or why there is none.
fn answer(
    intent: &Intent,
    candidates: &[Candidate],
    visits: u64,
) -> Result<(Vec<String>, Vec<String>), EvaluationError> {
    let fuel = Fuel { visits, ..Fuel::STANDARD };
    let resolution = aql::resolve(intent, candidates, OverBudget::Flag, fuel)?;
    let matches = resolution.matches.iter().map(|found| found.candidate.id.clone()).collect();
    Ok((matches, resolution.rejections.iter().map(|rejection| rejection.candidate.id.clone()).collect()))
}

#[test]
fn visits_beyond_the_budget_are_an_error_and_never_a_partial_answer() {
    let market = market();
    for constraints in [
        json!({"path": "/**/size", "operator": "gte", "value": 3}),
        json!({"not": {"path": "/parts/*/size", "operator": "eq", "value": 2}}),
        json!([{"path": "/name", "operator": "exists", "value": true}, {"path": "/**", "operator": "eq", "value": "x"}]),
    ] {
        let intent = read(&intent(constraints.clone()));
        let whole = answer(&intent, &market, u64::MAX).unwrap();
        let enough = (0..).find(|&visits| answer(&intent, &market, visits).is_ok()).unwrap();
        assert!(enough > market.len() as u64, "{constraints}");
        for visits in 0..enough {
            let spent = answer(&intent, &market, visits);
            assert_eq!(spent, Err(EvaluationError::QueryBudgetExceeded), "{constraints} with {visits} of {enough}");
        }
        for visits in [enough, enough + 1, 2 * enough] {
            assert_eq!(answer(&intent, &market, visits).as_ref(), Ok(&whole), "{constraints}");
        }
    }
}

#[test]
fn what_a_leaf_costs_is_counted_to_the_visit() {
    let record = Document::of(&json!({"a": [1, 2], "b": {"c": 3}})).unwrap();
    let leaf = |path: &str, value: i32| json!({"path": path, "operator": "eq", "value": value});
    for (constraints, cost) in [
        // Each step by name once, and each leaf.
        (leaf("", 1), 1),
        (leaf("/a", 1), 2),
        (leaf("/b/c", 1), 3),
        (leaf("/nowhere", 1), 2),
        (json!([leaf("/b/c", 1), leaf("/b/c", 2), leaf("/b", 1)]), 2 + 3),
        // Beyond a name every value that is looked at, until one passes.
        (leaf("/a/*", 9), 1 + 3 + 1),
        (leaf("/a/*", 1), 1 + 2 + 1),
        (leaf("/*/c", 9), 3 + 1 + 1),
        (leaf("/**", 9), 6 + 1),
        (leaf("/a/**", 9), 1 + 3 + 1),
    ] {
        let tree = Document::of(&constraints).unwrap();
        let read = Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD).unwrap();
        let ask = |visits: u64| {
            let mut evaluator = Evaluator::new(Fuel { visits, ..Fuel::STANDARD });
            evaluator.evaluate(&read, record.root()).map(|_| evaluator.meter.visits)
        };
        assert_eq!(ask(u64::MAX), Ok(cost), "{constraints}");
        assert_eq!(ask(cost), Ok(cost), "{constraints}");
        assert_eq!(ask(cost - 1), Err(EvaluationError::QueryBudgetExceeded), "{constraints}");
    }
}

#[test]
fn what_the_projection_looks_at_is_paid_for() {
    let parts: Vec<Value> = (0..100).map(|size| json!({"size": size})).collect();
    let market = [candidate("wide", json!({"name": "wide", "parts": parts}))];
    let mut question = intent(json!({"path": "/name", "operator": "exists", "value": true}));
    let needed = |question: &Value| {
        let intent = read(question);
        (0..).find(|&visits| answer(&intent, &market, visits).is_ok()).unwrap()
    };
    let narrow = needed(&question);
    question["projection"] = json!({"include": ["/parts/*/size"], "exclude": ["/**/secret"]});
    assert!(needed(&question) > narrow + 300, "{narrow} against {}", needed(&question));
}

#[test]
fn the_budget_of_strangers_is_finite_and_roomy() {
    let market = market();
    let tree = json!(vec![json!({"path": "/**/size", "operator": "lt", "value": 9}); 11]);
    let intent = read(&intent(tree));
    assert!(answer(&intent, &market, Fuel::STANDARD.visits).is_ok());
    let wide = json!({"name": "wide", "parts": vec![json!({"size": 10}); 6_000]});
    let wide: Vec<Candidate> = (0..20).map(|number| candidate(&format!("wide-{number}"), wide.clone())).collect();
    assert_eq!(answer(&intent, &wide, Fuel::STANDARD.visits), Err(EvaluationError::QueryBudgetExceeded));
}
