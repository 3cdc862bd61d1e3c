//! The checked-in corpus: both engines answer it as it says, and a broken engine does not.

use crate::{repository, the_corpus};
use conformance::{Answer, Case, Fast, Implementation, Report, Twin, run};
use std::collections::BTreeSet;

/// The engine that ships, saying the opposite of what it finds.
struct Contrary;

impl Implementation for Contrary {
    fn name(&self) -> &str {
        "aql"
    }

    fn answer(&self, case: &Case) -> Answer {
        match Fast.answer(case) {
            Answer::Result(mut answer) => {
                if let Some(holds) = answer.get("holds").and_then(serde_json::Value::as_bool) {
                    answer["holds"] = (!holds).into();
                }
                Answer::Result(answer)
            }
            Answer::NoOpinion => Answer::NoOpinion,
        }
    }
}

fn surprises<'a>(report: &'a Report<'_>) -> BTreeSet<&'a str> {
    report.surprises().map(|verdict| verdict.case.id.as_str()).collect()
}

#[test]
fn the_corpus_is_green_against_both_engines() {
    let corpus = the_corpus();
    let report = run(&corpus, &[&Fast, &Twin]);
    let surprises: Vec<String> = report
        .surprises()
        .map(|verdict| format!("{} {}: {:?}", verdict.implementation, verdict.case.id, verdict.answer))
        .collect();
    assert!(report.is_green(), "{}\n{:?}", surprises.join("\n"), report.stale);
    let answered = |name: &str| report.verdicts.iter().filter(|verdict| verdict.implementation == name).count();
    assert_eq!(answered("aql"), corpus.cases().count(), "the engine that ships has an opinion on everything");
    let signatures = corpus.cases().filter(|(_, case)| case.kind == "verify").count();
    assert_eq!(answered("reference"), corpus.cases().count() - signatures, "the twin knows no signatures and all else");
    assert!(corpus.cases().count() >= 400);
}

#[test]
fn an_engine_that_says_the_opposite_turns_the_run_red() {
    let corpus = the_corpus();
    let report = run(&corpus, &[&Contrary]);
    assert!(!report.is_green());
    let decided = corpus.cases().filter(|(_, case)| case.expect.get("holds").is_some());
    assert_eq!(surprises(&report), decided.map(|(_, case)| case.id.as_str()).collect());
}

#[test]
fn every_requirement_that_a_case_names_is_in_the_list() {
    let text = std::fs::read_to_string(repository("spec/requirements.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let requirements = table["requirement"].as_array().unwrap();
    let known: BTreeSet<&str> = requirements.iter().map(|requirement| requirement["id"].as_str().unwrap()).collect();
    assert_eq!(known.len(), requirements.len(), "an id stands once");
    let corpus = the_corpus();
    let strangers: Vec<String> = corpus
        .cases()
        .filter(|(_, case)| !known.contains(case.requirement.as_str()))
        .map(|(theme, case)| format!("{theme} {}: {}", case.id, case.requirement))
        .collect();
    assert_eq!(strangers, [""; 0]);
}

#[test]
fn every_case_can_be_read_by_people() {
    for (theme, case) in the_corpus().cases() {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(!case.id.is_empty() && case.id.chars().all(plain), "{theme}: {}", case.id);
        assert!(case.why.ends_with(['.', '?']), "{theme} {}: say why, in a sentence", case.id);
        assert!(case.expect.is_object(), "{theme} {}", case.id);
    }
}
