//! Tests are run alone to see what they reach, then each mutant is on for the tests that reach it.
//!
//! Time is the processor's and not the clock's, so that a busy machine kills nothing that it should not.

use super::numbers;
use super::switch::Mutant;
use crate::run::timed;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Tests that are quicker run together.
const QUICK: Duration = Duration::from_millis(300);
/// Seconds of processor beside what the tests take without a mutant, and how much of that they have in any case.
const SECONDS: (u64, u64) = (10, 5);
/// KiB that a test may hold; a mutant may want all there is.
const MEMORY_KIB: u64 = 8_000_000;

/// A test, how long it took, and the mutants that it reaches.
pub(super) struct Test {
    program: PathBuf,
    name: String,
    took: Duration,
    reached: BTreeSet<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    TimedOut,
}

/// What became of the mutants.
#[derive(Default)]
pub(super) struct Tally {
    counts: BTreeMap<&'static str, usize>,
    alive: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, count) in &self.counts {
            writeln!(out, "{word:<12} {count:>6}")?;
        }
        self.alive.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// Runs some tests of a program with a variable set.
fn put(program: &Path, names: &[&str], folder: &Path, seconds: u64, (name, value): (&str, &str)) -> Result<End> {
    let bounds = format!("ulimit -t {seconds}; ulimit -v {MEMORY_KIB}; ulimit -c 0; exec \"$@\"");
    let status = Command::new("sh")
        .args(["-c", &bounds, "sh"])
        .arg(program)
        .args(["--test-threads=1", "--exact"])
        .args(names)
        .env(name, value)
        .env("RUST_BACKTRACE", "0")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(match status.signal() {
        // SIGKILL and SIGXCPU: the time was over.
        Some(9 | 24) => End::TimedOut,
        _ if status.success() => End::Passed,
        _ => End::Failed,
    })
}

/// Runs each test alone, without a mutant.
pub(super) fn record(programs: &[PathBuf], folder: &Path, state: &Path) -> Result<Vec<Test>> {
    let reached = state.join("reached");
    let path = reached.to_str().context("the folder has no name in UTF-8")?;
    let mut tests = Vec::new();
    for program in programs {
        let listed = Command::new(program).arg("--list").current_dir(folder).output()?;
        for name in String::from_utf8_lossy(&listed.stdout).lines().filter_map(|line| line.strip_suffix(": test")) {
            let _ = fs::remove_file(&reached);
            let (end, took) = timed(|| put(program, &[name], folder, 3_600, ("MUTANT_REACHED", path)));
            if end? != End::Passed {
                bail!("{name} does not pass without a mutant");
            }
            let (program, name) = (program.clone(), name.to_owned());
            tests.push(Test { program, name, took, reached: numbers(&reached) });
        }
    }
    tests.sort_by_key(|test| test.took);
    Ok(tests)
}

/// Tries mutants that were not tried before.
pub(super) fn judge_all(
    mutants: &[Mutant],
    chosen: impl Iterator<Item = usize>,
    tests: &[Test],
    folder: &Path,
    state: &Path,
) -> Result<Tally> {
    let results = state.join("results");
    let known = fs::read_to_string(&results).unwrap_or_default();
    let known: BTreeMap<usize, &str> = known
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(id, rest)| Some((id.parse().ok()?, rest)))
        .collect();
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&results)?;
    let mut tally = Tally::default();
    for id in chosen {
        let word = match known.get(&id).and_then(|rest| rest.split('\t').next()) {
            Some(known) => WORDS.into_iter().find(|word| *word == known).context("a result has no meaning")?,
            None => {
                let word = judge(id, tests, folder)?;
                let name = mutants.get(id - 1).map_or("", |mutant| mutant.name.as_str());
                writeln!(file, "{id}\t{word}\t{}", name.replace('\n', " "))?;
                word
            }
        };
        *tally.counts.entry(word).or_default() += 1;
        if ![KILLED, TIMED_OUT].contains(&word) {
            tally.alive.extend(mutants.get(id - 1).map(|mutant| format!("{word}: {}", mutant.name)));
        }
    }
    Ok(tally)
}

const KILLED: &str = "killed";
const TIMED_OUT: &str = "timed out";
const SURVIVED: &str = "survived";
const UNREACHED: &str = "unreached";
const WORDS: [&str; 4] = [KILLED, TIMED_OUT, SURVIVED, UNREACHED];

/// Lets a mutant be on for the tests that reach it, the quick ones first, until one fails.
fn judge(id: usize, tests: &[Test], folder: &Path) -> Result<&'static str> {
    let (quick, slow): (Vec<&Test>, Vec<&Test>) =
        tests.iter().filter(|test| test.reached.contains(&id)).partition(|test| test.took < QUICK);
    if quick.is_empty() && slow.is_empty() {
        return Ok(UNREACHED);
    }
    let mut rounds: BTreeMap<&Path, Vec<&Test>> = BTreeMap::new();
    for test in quick {
        rounds.entry(&test.program).or_default().push(test);
    }
    let rounds = rounds.into_iter().chain(slow.into_iter().map(|test| (test.program.as_path(), vec![test])));
    for (program, round) in rounds {
        let names: Vec<&str> = round.iter().map(|test| test.name.as_str()).collect();
        let usual: Duration = round.iter().map(|test| test.took).sum();
        let (beside, times) = SECONDS;
        match put(program, &names, folder, beside + times * usual.as_secs(), ("MUTANT", &id.to_string()))? {
            End::Passed => {}
            End::Failed => return Ok(KILLED),
            End::TimedOut => return Ok(TIMED_OUT),
        }
    }
    Ok(SURVIVED)
}
