//! ADP Table 1, ADP Table 5, ADP Table 2: the corpus of Agent Descriptions against this crate, theme by theme and requirement
//! by requirement: `cargo xtask conformance`.

#[path = "../tests/it/corpus.rs"]
#[expect(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "the corpus as the tests read it")]
mod corpus;

use corpus::Verdict;
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let only = arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let verdicts = corpus::run(only.map_or("", String::as_str));
    match arguments.iter().any(|argument| argument == "--json") {
        true => print_json(&verdicts),
        false => print_tables(&verdicts),
    }
    let failed = verdicts.iter().filter(|verdict| verdict.wrong.is_some()).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_tables(verdicts: &[Verdict]) {
    for (theme, (passed, all)) in counted(verdicts, |verdict| &verdict.theme) {
        println!("{:<10} {theme:<48} {passed:>4} of {all}", "description");
    }
    println!();
    for (requirement, (passed, all)) in counted(verdicts, |verdict| &verdict.requirement) {
        println!("{requirement:<10} {passed:>4} of {all}");
    }
    for (id, wrong) in verdicts.iter().filter_map(|verdict| Some((&verdict.id, verdict.wrong.as_ref()?))) {
        println!("\n{id}: {wrong}");
    }
    let passed = verdicts.iter().filter(|verdict| verdict.wrong.is_none()).count();
    println!("\nconformance of description: {passed} passed, {} failed", verdicts.len() - passed);
}

fn print_json(verdicts: &[Verdict]) {
    let green = verdicts.iter().all(|verdict| verdict.wrong.is_none());
    let verdicts = verdicts.iter().map(|verdict| {
        json!({
            "implementation": "description", "theme": verdict.theme, "case": verdict.id,
            "requirement": verdict.requirement, "passed": verdict.wrong.is_none(),
        })
    });
    println!("{}", json!({"green": green, "verdicts": verdicts.collect::<Vec<_>>()}));
}

/// How many passed of how many, under each heading.
fn counted(verdicts: &[Verdict], heading: impl Fn(&Verdict) -> &String) -> BTreeMap<&str, (usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for verdict in verdicts {
        let (passed, all) = counts.entry(heading(verdict)).or_default();
        *passed += usize::from(verdict.wrong.is_none());
        *all += 1;
    }
    counts
}
