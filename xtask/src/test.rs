//! The whole gate, in the order in which it is cheapest to fail.
//!
//! INVARIANT: green means that every step ran to its end; the closing count is printed only when it was read from the
//! runners themselves.

use crate::check::check_with;
use crate::fuzz::{self, Mode};
use crate::run::{Echoed, Steps, cargo, echo, run, succeeds};
use crate::{coverage, delegate};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// Differential evaluations in the gate; a release runs ten million.
const DIFFERENTIAL_EVALUATIONS: &str = "200000";

/// Kills in the gate; a release has thousands.
const CRASH_CYCLES: &str = "50";

/// Runs the gate and stops at the first failure.
pub fn test(root: &Path) -> Result<()> {
    let mut steps = Steps::default();
    check_with(root, &mut steps)?;
    let tests = steps.step("tests", || counted(&mut workspace_tests(root)))?;
    let examples = steps.step("examples in the documentation", || {
        counted(&mut cargo(root, &["test", "--quiet", "--doc", "--workspace"]))
    })?;
    steps.step("demo", || {
        let demo = ["run", "--quiet", "--release", "--package", "rialto", "--bin", "rialto", "--", "demo", "--once"];
        run(&mut cargo(root, &demo))
    })?;
    steps.step("conformance", || delegate::conformance(root, &[]))?;
    steps.step("conformance over HTTP", || delegate::conformance(root, &["--http".to_owned()]))?;
    steps.step("coverage", || coverage::command(root, false))?;
    steps.step("differential run", || {
        delegate::diff(root, &["aql", "--n", DIFFERENTIAL_EVALUATIONS].map(str::to_owned))
    })?;
    steps.step("proofs about schemas", || {
        delegate::diff(root, &["schema", "--n", DIFFERENTIAL_EVALUATIONS].map(str::to_owned))?;
        delegate::diff(root, &["schema-suite", "--n", DIFFERENTIAL_EVALUATIONS].map(str::to_owned))
    })?;
    steps.step("crash loop", || delegate::crash(root, &["--mode", "kill9", "--cycles", CRASH_CYCLES]))?;
    steps.step("fuzz seeds", || fuzz::command(root, &[], Mode::Replay, None))?;
    steps.summary();
    if let (Some(tests), Some(examples)) = (tests, examples) {
        println!("{}", tests.and(examples));
    }
    Ok(())
}

/// nextest where it is installed, else the runner that comes with cargo.
fn workspace_tests(root: &Path) -> Command {
    if succeeds(&mut cargo(root, &["nextest", "--version"])) {
        cargo(root, &["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "fail"])
    } else {
        println!("    cargo-nextest is missing; cargo's own runner takes its place");
        cargo(root, &["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
    }
}

/// Runs tests and reads how many there were.
fn counted(command: &mut Command) -> Result<Option<Count>> {
    let Echoed { output, success } = echo(command)?;
    let count = Count::read(&output);
    match (success, count) {
        (true, count) => Ok(count),
        (false, Some(count)) => bail!("{count}"),
        (false, None) => bail!("the tests did not run to their end"),
    }
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    passed: u64,
    failed: u64,
}

impl Count {
    /// Adds two runs.
    fn and(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }

    /// Reads the closing lines of nextest or of cargo's own runner.
    fn read(output: &str) -> Option<Self> {
        let read = |counts: &str| {
            Some(Self { passed: before(counts, "passed")?, failed: before(counts, "failed").unwrap_or(0) })
        };
        // Nextest shows the output of a test that failed, and in it the closing line of cargo's own runner.
        let summary = output.lines().find_map(|line| line.trim().strip_prefix("Summary [")?.split_once("] "));
        if let Some((_, counts)) = summary {
            return read(counts);
        }
        let closing = output.lines().filter_map(|line| line.trim().strip_prefix("test result: "));
        closing.map(read).reduce(|total, count| Some(total?.and(count?))).flatten()
    }
}

/// The number before a word: 12 in `12 passed`.
fn before(line: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = line.split([' ', ',', ';', ':', '.', '(', ')']).filter(|word| !word.is_empty()).collect();
    words.iter().zip(words.iter().skip(1)).find(|(_, next)| **next == word).and_then(|(number, _)| number.parse().ok())
}

impl std::fmt::Display for Count {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expected: Option<(u64, u64)>) {
        assert_eq!(Count::read(output), expected.map(|(passed, failed)| Count { passed, failed }));
    }

    #[test]
    fn the_closing_line_of_nextest_is_read() {
        check("     Summary [   0.412s] 120 tests run: 118 passed (1 slow), 2 failed, 0 skipped\n", Some((118, 2)));
        check("     Summary [   0.412s] 7 tests run: 7 passed, 0 skipped\n", Some((7, 0)));
        let shown = "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n     Summary [   0.412s] 7 tests run: 6 passed, 1 failed\n";
        check(shown, Some((6, 1)));
    }

    #[test]
    fn the_closing_lines_of_cargo_add_up() {
        let output = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                      noise\n\
                      test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        check(output, Some((7, 1)));
    }

    #[test]
    fn no_closing_line_gives_no_count() {
        check("error: could not compile `x`\n", None);
        check("test result: something else\n", None);
    }
}
