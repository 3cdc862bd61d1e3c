//! Compares answers with expectations, and runs a whole corpus.

use crate::corpus::{Case, Corpus};
use crate::implementation::{Answer, Implementation};
use serde_json::Value;

/// Whether an answer has everything that is expected.
///
/// Members that `expect` does not name are free; lists are complete; numbers are equal when their canonical texts
/// are; an `explanation` is expected to contain the words given; leaf records are compared whole.
pub fn agrees(expected: &Value, answer: &Value) -> bool {
    // A refusal is only right where one is expected.
    if answer.get("code").is_some() && expected.get("code").is_none() {
        return false;
    }
    match (expected, answer) {
        (Value::Object(expected), Value::Object(answer)) => expected.iter().all(|(name, expected)| {
            let Some(answer) = answer.get(name) else { return false };
            match name.as_str() {
                "explanation" => {
                    let words = expected.as_str().unwrap_or_default();
                    answer.as_str().is_some_and(|text| text.contains(words))
                }
                "payload" | "evaluations" | "canonical" => same(expected, answer),
                _ => agrees(expected, answer),
            }
        }),
        (Value::Array(expected), Value::Array(answer)) => {
            expected.len() == answer.len()
                && expected.iter().zip(answer).all(|(expected, answer)| agrees(expected, answer))
        }
        _ => same(expected, answer),
    }
}

fn same(left: &Value, right: &Value) -> bool {
    json::canonical_value(left) == json::canonical_value(right)
}

/// What became of one case.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// The implementation.
    pub implementation: String,
    /// The theme of the case.
    pub theme: &'a str,
    /// The case.
    pub case: &'a Case,
    /// The answer, where there was one.
    pub answer: Option<Value>,
    /// Whether it was right.
    pub passed: bool,
    /// Whether it was known to fail.
    pub expected_to_fail: bool,
}

/// What became of a corpus.
#[derive(Clone, Debug, Default)]
pub struct Report<'a> {
    /// One verdict for each case that an implementation had an opinion on.
    pub verdicts: Vec<Verdict<'a>>,
    /// Entries of the list of expected failures that no verdict answers to.
    pub stale: Vec<String>,
}

impl Report<'_> {
    /// Verdicts that are not what the list of expected failures says.
    pub fn surprises(&self) -> impl Iterator<Item = &Verdict<'_>> {
        self.verdicts.iter().filter(|verdict| verdict.passed == verdict.expected_to_fail)
    }

    /// Whether everything is as expected: no unlisted failure, no listed pass, no entry without a case.
    pub fn is_green(&self) -> bool {
        self.surprises().next().is_none() && self.stale.is_empty()
    }
}

/// Runs every case of a corpus against every implementation.
pub fn run<'a>(corpus: &'a Corpus, implementations: &[&dyn Implementation]) -> Report<'a> {
    let listed = |implementation: &str, case: &Case| {
        let names = |entry: &&crate::ExpectedFailure| entry.implementation == implementation && entry.case == case.id;
        corpus.expected_failures.iter().find(names).is_some()
    };
    let mut verdicts = Vec::new();
    for implementation in implementations {
        for (theme, case) in corpus.cases() {
            if let Answer::Result(answer) = implementation.answer(case) {
                verdicts.push(Verdict {
                    implementation: implementation.name().to_owned(),
                    theme,
                    case,
                    passed: agrees(&case.expect, &answer),
                    answer: Some(answer),
                    expected_to_fail: listed(implementation.name(), case),
                });
            }
        }
    }
    // An entry that no verdict answers to tests nothing, whether its case or its implementation is missing.
    let answered = |entry: &&crate::ExpectedFailure| {
        let is_it =
            |verdict: &Verdict<'_>| verdict.case.id == entry.case && verdict.implementation == entry.implementation;
        verdicts.iter().any(is_it)
    };
    let stale = corpus.expected_failures.iter().filter(|entry| !answered(entry));
    let stale = stale.map(|entry| format!("{} {}", entry.implementation, entry.case)).collect();
    Report { verdicts, stale }
}
