//! RFC 0020 §3.6: the audience finds what asking every filter would find.
#![cfg(test)]

use aql::{Constraints, Evaluator, Fuel, Limits};
use conformance::chance::Chance;
use conformance::generate;
use conformance::market::Corpus;
use conformance::standing::Population;
use feed::Audience;
use json::{Document, Pointer, Shapes};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Standing filters, each evaluated by itself.
#[derive(Default)]
struct Plain(BTreeMap<u64, Constraints>);

impl Plain {
    fn of(&self, document: &Document) -> Vec<u64> {
        let holds = |constraints| Evaluator::new(Fuel::STANDARD).evaluate(constraints, document.root());
        self.0.iter().filter(|(_, constraints)| holds(constraints) == Ok(true)).map(|(id, _)| *id).collect()
    }

    fn undecided(&self, document: &Document) -> usize {
        let holds = |constraints| Evaluator::new(Fuel::STANDARD).evaluate(constraints, document.root());
        self.0.values().filter(|constraints| holds(constraints).is_err()).count()
    }
}

/// Documents that share the names of their objects, as those of one node do.
fn document(record: &Value, shapes: &mut Shapes) -> Document {
    Document::parse_with(record.to_string().as_bytes(), &json::Limits::OURS, shapes).unwrap()
}

fn read(tree: &Value) -> Option<Constraints> {
    let tree = Document::of(tree).ok()?;
    Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD).ok()
}

/// Filters come and go while documents arrive; some filters are random, the others ask for what a document has.
fn compare(seed: u64, steps: usize, ids: usize) {
    let mut chance = Chance::seeded(seed);
    let chance = &mut chance;
    let (mut audience, mut plain) = (Audience::new(), Plain::default());
    let mut records: Vec<Value> = (0..6).map(|_| generate::record(chance)).collect();
    let mut shapes = Shapes::default();
    for _ in 0..steps {
        match chance.below(8) {
            0 => {
                let place = chance.below(records.len());
                records[place] = generate::record(chance);
            }
            1 => {
                let id = chance.below(ids) as u64;
                assert_eq!(audience.remove(id), plain.0.remove(&id).is_some());
            }
            2 => {
                let record = chance.pick(&records).unwrap();
                let document = document(record, &mut shapes);
                let found = audience.of(document.root(), Fuel::STANDARD);
                assert_eq!(plain.undecided(&document), 0, "the vocabulary has no pattern that runs out of steps");
                assert_eq!((found.satisfied, found.undecided), (plain.of(&document), vec![]), "{record}");
            }
            _ => {
                let record = chance.pick(&records).unwrap().clone();
                let tree = generate::constraints(chance, &record, 3);
                if let Some(constraints) = read(&tree) {
                    let id = chance.below(ids) as u64;
                    audience.insert(id, &constraints);
                    plain.0.insert(id, constraints);
                }
            }
        }
        assert_eq!(audience.len(), plain.0.len());
    }
    for record in &records {
        let document = document(record, &mut shapes);
        let found = audience.of(document.root(), Fuel::STANDARD);
        assert_eq!((found.satisfied, found.undecided), (plain.of(&document), vec![]), "{record}");
    }
    let all: Vec<u64> = plain.0.keys().copied().collect();
    assert!(all.iter().all(|id| audience.remove(*id)) && audience.is_empty());
    for record in &records {
        let found = audience.of(Document::of(record).unwrap().root(), Fuel::STANDARD);
        assert_eq!((found.satisfied.len(), found.evaluated), (0, 0), "nobody is left");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_found_is_what_evaluating_every_filter_finds(seed in any::<u64>()) {
        compare(seed, 400, 60);
    }
}

#[test]
fn many_filters_that_come_and_go_are_found_as_well() {
    compare(7, 4_000, 1_000);
}

#[test]
fn the_twin_finds_the_same() {
    let mut chance = Chance::seeded(11);
    let chance = &mut chance;
    let (mut compared, mut held) = (0, 0);
    for _ in 0..150 {
        let records: Vec<Value> = (0..4).map(|_| generate::record(chance)).collect();
        let trees: Vec<Value> = (0..12).map(|_| generate::constraints(chance, &records[0], 3)).collect();
        let mut audience = Audience::new();
        for (id, tree) in (0..).zip(&trees) {
            if let Some(constraints) = read(tree) {
                audience.insert(id, &constraints);
            }
        }
        for record in &records {
            let parse = |value: &Value| reference::parse(value.to_string().as_bytes(), &reference::Limits::document());
            let twin = |tree: &Value| reference::evaluate(&parse(tree).unwrap(), &parse(record).unwrap());
            let expected: Vec<u64> = (0..)
                .zip(&trees)
                .filter(|(_, tree)| twin(tree).is_ok_and(|evaluation| evaluation.holds))
                .map(|(id, _)| id)
                .collect();
            let found = audience.of(Document::of(record).unwrap().root(), Fuel::STANDARD);
            assert_eq!(found.satisfied, expected, "{record}");
            (compared, held) = (compared + trees.len(), held + expected.len());
        }
    }
    assert!(held > compared / 20, "{held} of {compared}");
}

/// What `cargo xtask bench feed` measures, small.
#[test]
fn standing_intents_like_those_of_the_benchmark_are_found() {
    let corpus = Corpus::new(5);
    let mut population = Population::new(corpus.clone(), 2_000, 5);
    let (mut audience, mut plain) = (Audience::new(), Plain::default());
    for id in 0..3_000 {
        let standing = population.draw();
        let constraints = read(&standing.constraints).unwrap();
        assert!((5..=10).contains(&constraints.leaves().len()), "{}", standing.constraints);
        audience.insert(id, &constraints);
        plain.0.insert(id, constraints);
    }
    let (mut evaluated, mut satisfied) = (0, 0);
    let mut shapes = Shapes::default();
    for number in 0..100 {
        let mut text = String::new();
        corpus.write(number * 17, &mut text);
        let document = Document::parse_with(text.as_bytes(), &json::Limits::DOCUMENT, &mut shapes).unwrap();
        let found = audience.of(document.root(), Fuel::STANDARD);
        assert_eq!((&found.satisfied, &found.undecided), (&plain.of(&document), &vec![]), "{text}");
        (evaluated, satisfied) = (evaluated + found.evaluated, satisfied + found.satisfied.len());
    }
    assert!(satisfied > 0, "some intent is satisfied by some manifest");
    assert!(evaluated < 3_000 * 100 / 100, "one in a hundred is evaluated at most, not {evaluated}");
}

#[test]
fn a_pattern_that_runs_out_of_steps_leaves_only_those_undecided_to_whom_it_matters() {
    let hard = json!({"path": "/a", "operator": "matches", "value": r"^(a+)+\1$"});
    let no = json!({"path": "/b", "operator": "eq", "value": 2});
    let yes = json!({"path": "/b", "operator": "eq", "value": 1});
    let trees = [
        json!({"all_of": [hard, yes]}),
        json!({"all_of": [hard, no]}),
        json!({"any_of": [hard, yes]}),
        json!({"any_of": [hard, no]}),
        json!({"not": hard}),
    ];
    let mut audience = Audience::new();
    for (id, tree) in (0..).zip(&trees) {
        audience.insert(id, &read(tree).unwrap());
    }
    let document = Document::of(&json!({"a": format!("{}!", "a".repeat(40)), "b": 1})).unwrap();
    let found = audience.of(document.root(), Fuel { match_steps: 1_000, ..Fuel::STANDARD });
    assert_eq!((found.satisfied, found.undecided), (vec![2], vec![0, 3, 4]));
}
