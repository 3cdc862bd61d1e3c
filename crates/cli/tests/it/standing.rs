//! The node under faults and attacks, as far as every day allows; the long runs are `cargo xtask crash` and `attack`.

use crate::run::Home;
use conformance::attack::{Corpus, attack};
use conformance::crash::{self, Faults, Program};
use std::path::Path;

fn program(home: &Home) -> Program {
    Program::new(Path::new(env!("CARGO_BIN_EXE_rialto")), Path::new(&home.path("")))
}

/// Whether a run is impossible on this machine; it is left out by name.
fn skipped(reason: Option<String>) -> bool {
    reason.inspect(|reason| eprintln!("skipped: {reason}")).is_some()
}

#[track_caller]
fn clean(faults: Faults) -> Faults {
    assert!(faults.is_clean(), "{faults:#?}");
    faults
}

#[test]
fn a_kill_at_any_storage_call_loses_nothing() {
    if skipped(crash::strace_is_missing()) {
        return;
    }
    let faults = clean(crash::calls(&program(&Home::new("calls")), 37, 5, &mut |_| {}).unwrap());
    assert!(faults.counts.values().sum::<usize>() > 20, "{faults:?}");
}

#[test]
fn a_disk_that_fails_once_ends_writing_and_loses_nothing() {
    if skipped(crash::strace_is_missing()) {
        return;
    }
    let faults = clean(crash::errors(&program(&Home::new("errors")), 31, 5, &mut |_| {}).unwrap());
    assert!(faults.count("times the node stopped writing and said so") >= 5, "{faults:?}");
}

#[test]
fn a_full_disk_refuses_writes_by_name_and_is_written_to_again() {
    if skipped(crash::mount_is_missing()) {
        return;
    }
    let faults = clean(crash::full(&program(&Home::new("full")), 3, 5, &mut |_| {}).unwrap());
    assert_eq!(faults.count("recoveries without a restart"), 3, "{faults:?}");
}

#[test]
fn a_read_only_disk_refuses_writes_by_name_and_is_written_to_again() {
    if skipped(crash::strace_is_missing()) {
        return;
    }
    let faults = clean(crash::read_only(&program(&Home::new("read-only")), 3, 5, &mut |_| {}).unwrap());
    assert_eq!(faults.count("recoveries without a restart"), 3, "{faults:?}");
}

#[test]
fn an_altered_byte_is_found_or_harmless() {
    let faults = clean(crash::flips(&program(&Home::new("flips")), 40, 5, &mut |_| {}).unwrap());
    assert!(faults.count("found at the start") > 0 && faults.count("harmless") > 0, "{faults:?}");
}

#[test]
fn every_attack_of_the_corpus_fails() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/attacks");
    let corpus = Corpus::read(&folder).unwrap();
    let attacked = attack(Path::new(env!("CARGO_BIN_EXE_rialto")), &corpus, "", &mut |_| {}).unwrap();
    let fell: Vec<_> = attacked.verdicts.iter().filter(|verdict| verdict.wrong.is_some()).collect();
    assert!(fell.is_empty() && attacked.leaks.is_empty(), "{fell:#?} {:?}", attacked.leaks);
    assert_eq!(attacked.verdicts.len(), corpus.cases().count());
}
