//! Fuzz targets, one at a time: a search for a while, or a replay of the committed seeds.
//!
//! The targets live in `fuzz/`, outside the workspace, because they need a nightly toolchain and sanitizers. Where
//! those are missing the run says so and passes: the gate must work with the pinned toolchain alone.

use crate::run;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What a run does with each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Executes the seeds of `fuzz/seeds/<target>` once.
    Replay,
    /// Looks for new inputs.
    Search {
        /// How long, for each target.
        seconds: u64,
    },
}

/// What became of one target.
struct Row {
    target: String,
    executions: Option<u64>,
    took: Duration,
    findings: usize,
}

/// Runs the wanted targets, or all of them, and fails when one has a finding.
pub fn command(root: &Path, wanted: &[String], mode: Mode, report: Option<&Path>) -> Result<()> {
    let targets = targets(root)?;
    if targets.is_empty() {
        println!("    no fuzz crate");
        return Ok(());
    }
    let targets = choose(targets, wanted)?;
    if let Some(reason) = missing(root) {
        println!("    skipped: {reason}");
        return Ok(());
    }
    let mut rows = Vec::new();
    for target in targets {
        rows.push(fuzz(root, &target, mode)?);
    }
    let table = table(&rows, mode);
    println!("{table}");
    if let Some(path) = report {
        fs::write(path, &table).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let bad: Vec<&str> = rows.iter().filter(|row| row.findings > 0).map(|row| row.target.as_str()).collect();
    if !bad.is_empty() {
        bail!("findings in {}; the inputs are below `fuzz/artifacts`", bad.join(", "));
    }
    Ok(())
}

/// The names of the targets, sorted; none without a fuzz crate.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some("rs"), Some(name)) =
            (path.extension().and_then(|end| end.to_str()), path.file_stem().and_then(|name| name.to_str()))
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn choose(targets: Vec<String>, wanted: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains(name)) {
        bail!("no fuzz target `{unknown}`; there are: {}", targets.join(", "));
    }
    Ok(targets.into_iter().filter(|name| wanted.is_empty() || wanted.contains(name)).collect())
}

/// Why fuzzing is impossible here.
fn missing(root: &Path) -> Option<&'static str> {
    if !run::succeeds(&mut run::nightly(root, &["--version"])) {
        Some("no nightly toolchain")
    } else if !run::succeeds(&mut run::nightly(root, &["fuzz", "--version"])) {
        Some("cargo-fuzz is not installed")
    } else {
        None
    }
}

fn fuzz(root: &Path, target: &str, mode: Mode) -> Result<Row> {
    let seeds = format!("fuzz/seeds/{target}");
    let corpus = format!("fuzz/corpus/{target}");
    let has_seeds = root.join(&seeds).is_dir();
    let mut arguments = vec!["fuzz", "run", target];
    let limit = match mode {
        Mode::Replay => {
            if has_seeds {
                arguments.push(&seeds);
            }
            "-runs=0".to_owned()
        }
        Mode::Search { seconds } => {
            // New inputs are written to the first folder, so the committed seeds come second.
            fs::create_dir_all(root.join(&corpus))?;
            arguments.push(&corpus);
            if has_seeds {
                arguments.push(&seeds);
            }
            format!("-max_total_time={seconds}")
        }
    };
    arguments.extend(["--", &limit, "-print_final_stats=1"]);
    let before = artifacts(root, target);
    let (outcome, took) = run::timed(|| run::echo(&mut run::nightly(root, &arguments)));
    let outcome = outcome?;
    let executions = executions(&outcome.output);
    // The measured time includes building the target, which is no searching.
    let took = searched(&outcome.output).unwrap_or(took);
    let new = artifacts(root, target).saturating_sub(before);
    if !outcome.success && executions.is_none() && new == 0 {
        bail!("fuzz target `{target}` did not run to its end");
    }
    let findings = if outcome.success { new } else { new.max(1) };
    Ok(Row { target: target.to_owned(), executions, took, findings })
}

fn artifacts(root: &Path, target: &str) -> usize {
    fs::read_dir(root.join("fuzz/artifacts").join(target)).map_or(0, Iterator::count)
}

/// What libFuzzer counted.
fn executions(output: &str) -> Option<u64> {
    let counts = output.lines().filter_map(|line| line.trim().strip_prefix("stat::number_of_executed_units:"));
    counts.filter_map(|count| count.trim().parse().ok()).next_back()
}

/// How long libFuzzer says it ran.
fn searched(output: &str) -> Option<Duration> {
    let done = output.lines().rev().find(|line| line.starts_with("Done "))?;
    let (_, after) = done.split_once(" runs in ")?;
    after.split(' ').next()?.parse().ok().map(Duration::from_secs)
}

/// The table, which is Markdown and reads well as it is.
fn table(rows: &[Row], mode: Mode) -> String {
    let width = rows.iter().map(|row| row.target.len()).max().unwrap_or(0).max("target".len());
    let mut table = match mode {
        Mode::Replay => String::from("Seeds replayed once.\n\n"),
        Mode::Search { seconds } => format!("Each target searched for {seconds} s.\n\n"),
    };
    let _ = writeln!(table, "| {:width$} | executions | seconds | findings |", "target");
    let _ = writeln!(table, "|{}|-----------:|--------:|---------:|", "-".repeat(width + 2));
    for Row { target, executions, took, findings } in rows {
        let executions = executions.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let _ = writeln!(table, "| {target:width$} | {executions:>10} | {:>7.0} | {findings:>8} |", took.as_secs_f64());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_from_the_final_statistics() {
        let output = "#2 INITED\nstat::number_of_executed_units: 1234567\nstat::average_exec_per_sec:     4000\n";
        assert_eq!(executions(output), Some(1_234_567));
        assert_eq!(executions("error: no such target"), None);
        assert_eq!(searched("Done 2086911 runs in 5 second(s)\n"), Some(Duration::from_secs(5)));
        assert_eq!(searched(output), None);
    }

    #[test]
    fn unknown_targets_are_refused_with_the_list() {
        let all = || vec!["did".to_owned(), "pointer".to_owned()];
        assert_eq!(choose(all(), &[]).unwrap(), all());
        assert_eq!(choose(all(), &["pointer".to_owned()]).unwrap(), ["pointer"]);
        let error = choose(all(), &["points".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("did, pointer"), "{error}");
    }

    #[test]
    fn a_repository_without_a_fuzz_crate_passes() {
        let folder = std::env::temp_dir().join(format!("xtask-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        command(&folder, &[], Mode::Replay, None).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_table_lines_up() {
        let row = |target: &str, findings| Row {
            target: target.to_owned(),
            executions: Some(10),
            took: Duration::from_secs(300),
            findings,
        };
        let table = table(&[row("did", 0), row("strict_json", 1)], Mode::Search { seconds: 300 });
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
        assert!(lines[2].contains("| did         |         10 |     300 |        0 |"), "{table}");
    }
}
