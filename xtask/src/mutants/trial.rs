//! Tests are run alone to see what they reach, then each mutant is on for the tests that reach it.
//!
//! Time is the processor's and not the clock's, so that a busy machine kills nothing that it should not. Tests of chance
//! draw the same cases each time, a fixed number of them, and what they find is not made smaller.

use super::by_name;
use super::switch::Mutant;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// What tests of one program may take together to be run together; one that takes more is run alone.
const ROUND: Duration = Duration::from_millis(300);
/// Tests that take longer are run only when all others let a mutant live, and when all others have been tried.
const SLOW: Duration = Duration::from_millis(500);
/// Seconds of processor beside what the tests take without a mutant, and how much of that they have in any case.
const SECONDS: (u64, u64) = (2, 4);
/// KiB that a test may hold; a mutant may want all there is.
const MEMORY_KIB: u64 = 4_000_000;
/// How tests of chance are run.
const CHANCE: [(&str, &str); 3] =
    [("PROPTEST_RNG_SEED", "20"), ("PROPTEST_CASES", "64"), ("PROPTEST_MAX_SHRINK_ITERS", "0")];

/// A test, how long it took, and the mutants that it reaches.
#[derive(Debug, PartialEq, Eq)]
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

/// Runs some tests of a program with a variable set; how they ended, and what the processor spent on them.
fn put(program: &Path, names: &[&str], folder: &Path, seconds: u64, variable: (&str, &str)) -> Result<(End, Duration)> {
    let bounds = format!(
        "ulimit -t {seconds}; ulimit -v {MEMORY_KIB}; ulimit -c 0; \"$@\" >/dev/null; status=$?; times; exit $status"
    );
    let output = Command::new("sh")
        .args(["-c", &bounds, "sh"])
        .arg(program)
        .args(["--test-threads=1", "--exact"])
        .args(names)
        .envs(CHANCE)
        .env(variable.0, variable.1)
        .env("RUST_BACKTRACE", "0")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let end = match output.status.code() {
        Some(0) => End::Passed,
        // SIGKILL and SIGXCPU: the time was over.
        Some(137 | 152) => End::TimedOut,
        _ => End::Failed,
    };
    Ok((end, spent(&String::from_utf8_lossy(&output.stdout)).unwrap_or_default()))
}

/// What the children of a shell spent, from what its `times` says: minutes and seconds of two kinds on the second line.
fn spent(times: &str) -> Option<Duration> {
    let kinds = times.lines().nth(1)?.split_whitespace().map(|time| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    });
    Some(Duration::from_secs_f64(kinds.sum::<Option<f64>>()?))
}

/// Runs each test alone, without a mutant; what it reaches is kept as long as the programs are the same.
pub(super) fn record(programs: &[PathBuf], folder: &Path, state: &Path) -> Result<Vec<Test>> {
    let kept = state.join("tests");
    let mut stamp = String::from("of");
    for program in programs {
        stamp.push_str(&format!(" {} {:?}", program.display(), fs::metadata(program)?.modified()?));
    }
    let known = fs::read_to_string(&kept).unwrap_or_default();
    if let Some((_, lines)) = known.split_once('\n').filter(|(first, _)| *first == stamp) {
        return lines.lines().map(|line| read_test(line).context("a test was not kept whole")).collect();
    }
    let mut tests = Vec::new();
    for program in programs {
        tests.extend(record_program(program, folder, &state.join("reached"))?);
    }
    tests.sort_by_key(|test| test.took);
    let lines: String = tests.iter().map(write_test).collect();
    fs::write(&kept, format!("{stamp}\n{lines}"))?;
    Ok(tests)
}

fn record_program(program: &Path, folder: &Path, reached: &Path) -> Result<Vec<Test>> {
    let path = reached.to_str().context("the folder has no name in UTF-8")?;
    let listed = Command::new(program).arg("--list").current_dir(folder).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let alone = |name: &str| {
        let _ = fs::remove_file(reached);
        let (end, took) = put(program, &[name], folder, 3_600, ("MUTANT_REACHED", path))?;
        if end != End::Passed {
            bail!("{name} does not pass without a mutant");
        }
        let numbers = fs::read_to_string(reached).unwrap_or_default();
        let reached = numbers.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Test { program: program.to_owned(), name: name.to_owned(), took, reached })
    };
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(alone).collect()
}

fn write_test(test: &Test) -> String {
    let reached: Vec<String> = test.reached.iter().map(usize::to_string).collect();
    format!("{}\t{}\t{}\t{}\n", test.program.display(), test.name, test.took.as_millis(), reached.join(" "))
}

fn read_test(line: &str) -> Option<Test> {
    let mut parts = line.split('\t');
    let (program, name) = (PathBuf::from(parts.next()?), parts.next()?.to_owned());
    let took = Duration::from_millis(parts.next()?.parse().ok()?);
    let reached = parts.next()?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Test { program, name, took, reached })
}

const KILLED: &str = "killed";
const TIMED_OUT: &str = "timed out";
const SURVIVED: &str = "survived";
const UNREACHED: &str = "unreached";
const WORDS: [&str; 4] = [KILLED, TIMED_OUT, SURVIVED, UNREACHED];

/// Mutants before the tests that reach them.
pub(super) struct Trial<'t> {
    pub(super) mutants: &'t [Mutant],
    pub(super) tests: &'t [Test],
    pub(super) folder: &'t Path,
    pub(super) state: &'t Path,
}

/// Tests of one program that are run together.
type Round<'t> = Vec<&'t Test>;

impl<'t> Trial<'t> {
    /// Tries mutants that were not tried before, some at a time; each result is written down as it comes.
    pub(super) fn judge_all(&self, chosen: BTreeSet<usize>, jobs: usize, again: bool) -> Result<Tally> {
        let path = self.state.join("results");
        let mut known = self.known(&fs::read_to_string(&path).unwrap_or_default())?;
        known.retain(|_, word| !again || [KILLED, TIMED_OUT].contains(word));
        let results = Mutex::new(fs::OpenOptions::new().create(true).append(true).open(&path)?);
        let (quick, slow): (Vec<&Test>, Vec<&Test>) = self.tests.iter().partition(|test| test.took <= SLOW);
        for (tests, last) in [(quick, false), (slow, true)] {
            let left: Vec<usize> = chosen.iter().copied().filter(|id| !known.contains_key(id)).collect();
            let queue = Mutex::new(left.into_iter());
            let work = || self.work(&queue, &tests, last, &results);
            let done: Vec<Result<Vec<_>>> = thread::scope(|scope| {
                let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
                let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
                ended.map(|end| end.unwrap_or_else(|_| bail!("a thread has failed"))).collect()
            });
            for part in done {
                known.extend(part?);
            }
        }
        Ok(self.tally(&chosen, &known))
    }

    /// Tries mutants until none is left; one that lives is written down when these are the last tests.
    fn work(
        &self,
        queue: &Mutex<impl Iterator<Item = usize>>,
        tests: &[&'t Test],
        last: bool,
        results: &Mutex<fs::File>,
    ) -> Result<Vec<(usize, &'static str)>> {
        let (mut done, mut killers) = (Vec::new(), Round::new());
        while let Some(id) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let reached = self.tests.iter().any(|test| test.reached.contains(&id));
            let word = if reached { self.judge(id, tests, &mut killers)? } else { UNREACHED };
            if word == SURVIVED && !last {
                continue;
            }
            let line = format!("{word}\t{}\n", self.mutants.get(id - 1).map(Mutant::line).unwrap_or_default());
            let mut file = results.lock().map_err(|_| anyhow!("another thread has failed"))?;
            file.write_all(line.as_bytes())?;
            done.push((id, word));
        }
        Ok(done)
    }

    /// What is written down of the mutants; the last word counts.
    fn known(&self, lines: &str) -> Result<HashMap<usize, &'static str>> {
        let names = by_name(self.mutants);
        let mut known = HashMap::new();
        for (word, name) in lines.lines().filter_map(|line| line.split_once('\t')) {
            let word = WORDS.into_iter().find(|other| *other == word).context("a result has no meaning")?;
            known.extend(names.get(name).map(|id| (*id, word)));
        }
        Ok(known)
    }

    fn tally(&self, chosen: &BTreeSet<usize>, known: &HashMap<usize, &'static str>) -> Tally {
        let mut tally = Tally::default();
        for (id, word) in chosen.iter().filter_map(|id| Some((id, *known.get(id)?))) {
            *tally.counts.entry(word).or_default() += 1;
            if ![KILLED, TIMED_OUT].contains(&word) {
                tally.alive.extend(self.mutants.get(id - 1).map(|mutant| format!("{word}: {}", mutant.line())));
            }
        }
        tally
    }

    /// Lets a mutant be on for those of the tests that reach it, until one fails: those that found its neighbour first,
    /// then the quick ones.
    fn judge(&self, id: usize, tests: &[&'t Test], killers: &mut Round<'t>) -> Result<&'static str> {
        let reaching: Vec<&Test> = tests.iter().copied().filter(|test| test.reached.contains(&id)).collect();
        let (first, others): (Vec<&Test>, Vec<&Test>) =
            reaching.into_iter().partition(|test| killers.iter().any(|killer| std::ptr::eq(*killer, *test)));
        for round in rounds(first).into_iter().chain(rounds(others)) {
            let Some(program) = round.first().map(|test| &test.program) else { continue };
            let names: Vec<&str> = round.iter().map(|test| test.name.as_str()).collect();
            let usual: Duration = round.iter().map(|test| test.took).sum();
            let (beside, times) = SECONDS;
            let bound = beside + times * usual.as_secs();
            match put(program, &names, self.folder, bound, ("MUTANT", &id.to_string()))?.0 {
                End::Passed => {}
                End::Failed => {
                    *killers = round;
                    return Ok(KILLED);
                }
                End::TimedOut => return Ok(TIMED_OUT),
            }
        }
        Ok(SURVIVED)
    }
}

/// Tests in rounds, the quick ones first; within a program several that are quick make one.
fn rounds<'t>(tests: Vec<&'t Test>) -> Vec<Round<'t>> {
    let mut rounds: Vec<(Duration, Round<'t>)> = Vec::new();
    for test in tests {
        let fits = |(took, round): &&mut (Duration, Round<'t>)| {
            *took + test.took <= ROUND && round.iter().all(|other| other.program == test.program)
        };
        match rounds.iter_mut().find(fits) {
            Some((took, round)) => {
                *took += test.took;
                round.push(test);
            }
            None => rounds.push((test.took, vec![test])),
        }
    }
    rounds.sort_by_key(|(took, _)| *took);
    rounds.into_iter().map(|(_, round)| round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(program: &str, name: &str, millis: u64) -> Test {
        let took = Duration::from_millis(millis);
        Test { program: program.into(), name: name.into(), took, reached: BTreeSet::from([1, 20, 300]) }
    }

    #[test]
    fn a_test_is_read_as_it_was_written() {
        let known = test("/some/program", "a::b", 120);
        assert_eq!(read_test(write_test(&known).trim_end()), Some(known));
        assert_eq!(read_test("/some/program\ta::b"), None);
    }

    #[test]
    fn quick_tests_of_a_program_are_run_together_and_slow_ones_last() {
        let all = [("p", "a", 10), ("q", "b", 20), ("p", "c", 280), ("p", "d", 290), ("q", "e", 4_000)];
        let all = all.map(|(program, name, millis)| test(program, name, millis));
        let rounds = rounds(all.iter().collect());
        let names: Vec<Vec<&str>> =
            rounds.iter().map(|round| round.iter().map(|test| test.name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["b"], vec!["a", "c"], vec!["d"], vec!["e"]]);
    }

    #[test]
    fn the_time_of_children_stands_on_the_second_line() {
        assert_eq!(spent("0m0.00s 0m0.00s\n1m2.50s 0m0.25s\n"), Some(Duration::from_millis(62_750)));
        assert_eq!(spent(""), None);
    }
}
