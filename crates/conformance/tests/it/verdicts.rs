//! When an answer is right, and when a run is green: the list of expected failures is exact.

use conformance::{Answer, Case, Corpus, ExpectedFailure, Implementation, agrees, run};
use serde_json::{Value, json};

#[test]
fn an_answer_agrees_when_it_has_everything_that_is_expected() {
    for (expected, answer, agreed) in [
        (json!({}), json!({"anything": 1}), true),
        (json!({"holds": true}), json!({"holds": true, "leaves": [true]}), true),
        (json!({"holds": true}), json!({"holds": false}), false),
        (json!({"holds": true}), json!({}), false),
        (json!({"holds": null}), json!({}), false),
        // Lists are complete and in order; what stands in them may have more members.
        (json!({"leaves": [true, false]}), json!({"leaves": [true, false]}), true),
        (json!({"leaves": [true]}), json!({"leaves": [true, false]}), false),
        (json!({"leaves": [true, false]}), json!({"leaves": [false, true]}), false),
        (json!({"candidates": [{"id": "a"}]}), json!({"candidates": [{"id": "a", "rank": 1}]}), true),
        (json!({"candidates": []}), json!({"candidates": [{"id": "a"}]}), false),
        // Numbers are equal when their canonical texts are.
        (json!({"score": 1}), json!({"score": 1.0}), true),
        (json!({"score": 100}), json!({"score": 1e2}), true),
        (json!({"score": 0.1}), json!({"score": 0.100_000_000_000_000_02}), false),
        (json!({"score": 0.1}), json!({"score": "0.1"}), false),
        // Payloads, leaf records and canonical texts are compared whole.
        (json!({"payload": {"a": 1}}), json!({"payload": {"a": 1.0}}), true),
        (json!({"payload": {"a": 1}}), json!({"payload": {"a": 1, "b": 2}}), false),
        (json!({"payload": {}}), json!({"payload": {"b": 2}}), false),
        (json!({"evaluations": [{"passed": true}]}), json!({"evaluations": [{"passed": true, "path": ""}]}), false),
        (json!({"canonical": "{}"}), json!({"canonical": "{}"}), true),
        (json!({"canonical": "{}"}), json!({"canonical": "{ }"}), false),
        // An explanation has the words that are asked for, among others.
        (json!({"explanation": "cost_undefined"}), json!({"explanation": "cost_undefined: no price"}), true),
        (json!({"explanation": "cost_undefined"}), json!({"explanation": "over_budget"}), false),
        (json!({"explanation": "x"}), json!({"explanation": 7}), false),
        // A refusal is not an answer, nor the other way round.
        (json!({"code": "wrong_type", "at": "/a"}), json!({"code": "wrong_type", "at": "/a"}), true),
        (json!({"code": "wrong_type", "at": "/a"}), json!({"code": "wrong_type", "at": "/b"}), false),
        (json!({"code": "wrong_type"}), json!({"holds": true}), false),
        (json!({"holds": false}), json!({"code": "wrong_type"}), false),
        (json!([1]), json!({"0": 1}), false),
    ] {
        assert_eq!(agrees(&expected, &answer), agreed, "{expected} against {answer}");
    }
}

/// Says yes to everything, or has no opinion.
struct Yes(&'static str);

impl Implementation for Yes {
    fn name(&self) -> &str {
        self.0
    }

    fn answer(&self, case: &Case) -> Answer {
        if case.kind == "unheard" { Answer::NoOpinion } else { Answer::Result(json!({"answer": "yes"})) }
    }
}

fn case(id: &str, kind: &str, expect: Value) -> Case {
    let text = str::to_owned;
    let (requirement, why) = (text("R"), text("because"));
    Case { id: text(id), requirement, why, kind: text(kind), expect, inputs: serde_json::Map::new() }
}

fn corpus(expected_failures: &[(&str, &str)]) -> Corpus {
    let cases = vec![
        case("right", "question", json!({"answer": "yes"})),
        case("wrong", "question", json!({"answer": "no"})),
        case("unheard", "unheard", json!({"answer": "no"})),
    ];
    let entry = |(implementation, case): &(&str, &str)| ExpectedFailure {
        implementation: (*implementation).to_owned(),
        case: (*case).to_owned(),
        reason: "known".to_owned(),
    };
    let expected_failures = expected_failures.iter().map(entry).collect();
    Corpus { themes: vec![("tiny".to_owned(), cases)], expected_failures }
}

/// Runs the tiny corpus; `surprises` are `implementation case`.
#[track_caller]
fn check(expected_failures: &[(&str, &str)], surprises: &[&str], stale: &[&str]) {
    let corpus = corpus(expected_failures);
    let report = run(&corpus, &[&Yes("one"), &Yes("two")]);
    let found: Vec<String> =
        report.surprises().map(|verdict| format!("{} {}", verdict.implementation, verdict.case.id)).collect();
    assert_eq!(found, surprises);
    assert_eq!(report.stale, stale);
    assert_eq!(report.is_green(), surprises.is_empty() && stale.is_empty());
    assert_eq!(report.verdicts.len(), 4, "a case without an opinion has no verdict");
}

#[test]
fn a_run_is_green_when_exactly_the_listed_cases_fail() {
    check(&[("one", "wrong"), ("two", "wrong")], &[], &[]);
}

#[test]
fn an_unlisted_failure_is_red() {
    check(&[("one", "wrong")], &["two wrong"], &[]);
    check(&[], &["one wrong", "two wrong"], &[]);
}

#[test]
fn a_listed_pass_is_red() {
    check(&[("one", "wrong"), ("two", "wrong"), ("two", "right")], &["two right"], &[]);
}

#[test]
fn an_entry_without_a_case_is_red() {
    check(&[("one", "wrong"), ("two", "wrong"), ("one", "long gone")], &[], &["one long gone"]);
}

#[test]
fn an_entry_that_no_engine_answers_to_is_red() {
    check(&[("one", "wrong"), ("two", "wrong"), ("one", "unheard")], &[], &["one unheard"]);
    check(&[("one", "wrong"), ("two", "wrong"), ("three", "wrong")], &[], &["three wrong"]);
}
