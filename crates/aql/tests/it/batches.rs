//! RFC 0020 A.6: what a document is asked before, and beside which others, changes no answer.

use aql::{Constraints, EvaluationError, Evaluator, Fuel, Limits};
use conformance::chance::Chance;
use conformance::generate;
use json::{Document, Pointer, Value};

type Truth = Result<(bool, Vec<bool>), EvaluationError>;

fn tree(chance: &mut Chance<'_>, record: &Value) -> Constraints {
    loop {
        let tree = Document::of(&generate::constraints(chance, record, 3)).unwrap();
        if let Ok(constraints) = Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD) {
            return constraints;
        }
    }
}

fn asked(evaluator: &mut Evaluator, constraints: &Constraints, document: &Document) -> Truth {
    let holds = evaluator.evaluate(constraints, document.root())?;
    Ok((holds, evaluator.leaves.clone()))
}

#[test]
fn one_evaluator_for_everything_says_what_a_new_one_says() {
    let mut used = Evaluator::new(Fuel::OWN);
    for seed in 0..300 {
        let mut chance = Chance::seeded(seed);
        let records: Vec<Value> = (0..10).map(|_| generate::record(&mut chance)).collect();
        let constraints = tree(&mut chance, &records[0]);
        for record in &records {
            let document = Document::of(record).unwrap();
            let fresh = asked(&mut Evaluator::new(Fuel::OWN), &constraints, &document);
            assert_eq!(asked(&mut used, &constraints, &document), fresh, "seed {seed}: {record}");
        }
    }
}

#[test]
fn many_documents_at_once_are_answered_as_one_by_one() {
    for seed in 0..150 {
        let mut chance = Chance::seeded(seed);
        // Less than a batch, exactly one, and one with a rest.
        for count in [0, 1, 15, 16, 17, 40] {
            let records: Vec<Value> = (0..count).map(|_| generate::record(&mut chance)).collect();
            let constraints = tree(&mut chance, records.first().unwrap_or(&Value::Null));
            let documents: Vec<Document> = records.iter().map(|record| Document::of(record).unwrap()).collect();
            let mut alone = Evaluator::new(Fuel::OWN);
            let expected: Vec<Truth> =
                documents.iter().map(|document| asked(&mut alone, &constraints, document)).collect();
            let (mut together, mut told) = (Evaluator::new(Fuel::OWN), Vec::new());
            let nodes = documents.iter().map(Document::root);
            let end = together.evaluate_all(&constraints, nodes, |holds, leaves| told.push((holds, leaves.to_vec())));
            assert_eq!(end, Ok(()));
            assert_eq!(told.into_iter().map(Ok).collect::<Vec<Truth>>(), expected, "seed {seed}");
            assert_eq!(together.meter.visits, alone.meter.visits, "seed {seed}: a batch costs what its documents cost");
        }
    }
}

#[test]
fn a_batch_beyond_the_budget_is_an_error() {
    let mut chance = Chance::seeded(1);
    let documents: Vec<Document> = (0..40).map(|_| Document::of(&generate::record(&mut chance)).unwrap()).collect();
    let leaf = Document::of(&json::json!({"path": "/**", "operator": "eq", "value": "nowhere"})).unwrap();
    let constraints = Constraints::read(leaf.root(), Pointer::root(), &Limits::STANDARD).unwrap();
    let ask = |visits: u64| {
        let mut evaluator = Evaluator::new(Fuel { visits, ..Fuel::STANDARD });
        let mut told = 0;
        let end = evaluator.evaluate_all(&constraints, documents.iter().map(Document::root), |_, _| told += 1);
        (end, told, evaluator.meter.visits)
    };
    let (end, told, whole) = ask(u64::MAX);
    assert_eq!((end, told), (Ok(()), documents.len()));
    for visits in [0, whole / 3, whole - 1] {
        let (end, told, _) = ask(visits);
        assert_eq!(end, Err(EvaluationError::QueryBudgetExceeded));
        assert!(told < documents.len());
    }
}
