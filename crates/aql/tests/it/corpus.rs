//! The checked-in corpus of cases, as everybody else can run it.

use conformance::{Corpus, Fast, run};
use std::path::Path;

#[test]
fn every_case_of_the_corpus_is_answered_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/aql");
    let corpus = Corpus::read(&folder).unwrap();
    let report = run(&corpus, &[&Fast]);
    let surprises = report.surprises().map(|verdict| format!("{}: {:?}", verdict.case.id, verdict.answer));
    assert!(report.surprises().count() == 0, "{}", surprises.collect::<Vec<_>>().join("\n"));
    assert!(report.verdicts.len() >= 400, "{}", report.verdicts.len());
}
