//! `cargo xtask bench node`: the node beside PostgreSQL, in one run and one table.

use anyhow::{Context, Result, ensure};
use bench::report::Report;
use bench::run::{Plan, run};
use bench::{growth, open_to_others};
use clap::Parser;
use std::path::{Path, PathBuf};

/// Measures a node over HTTP beside PostgreSQL.
#[derive(Parser)]
#[command(name = "cargo xtask bench node")]
struct Arguments {
    /// How many manifests the corpus has.
    #[arg(long, default_value_t = 1_000_000, conflicts_with = "growth")]
    manifests: u64,
    /// Measures several sizes instead, such as `10000,100000,1000000,3000000`, and draws charts.
    #[arg(long, value_delimiter = ',')]
    growth: Vec<u64>,
    /// Measures PostgreSQL at every size, too.
    #[arg(long, requires = "growth")]
    with_postgres: bool,
    /// Measures the node alone.
    #[arg(long, conflicts_with_all = ["with_postgres", "only_postgres"])]
    without_postgres: bool,
    /// Measures PostgreSQL alone.
    #[arg(long, conflicts_with = "growth")]
    only_postgres: bool,
    /// Timed questions of each kind.
    #[arg(long, default_value_t = 400)]
    samples: usize,
    /// How many of them PostgreSQL is asked, too.
    #[arg(long, default_value_t = 40)]
    peer_samples: usize,
    /// Seconds of each load by many connections.
    #[arg(long, default_value_t = 10)]
    load_seconds: u64,
    /// Requests that are signed for each load at most.
    #[arg(long, default_value_t = 100_000)]
    load_requests: usize,
    /// Connections that ask at once.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Connections that publish at once.
    #[arg(long, default_value_t = 128)]
    publishers: usize,
    /// What the corpus and the questions are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The node's binary; by default the one beside this program.
    #[arg(long)]
    rialto: Option<PathBuf>,
    /// An argument for `rialto serve`; may be given more than once.
    #[arg(long = "serve-argument", allow_hyphen_values = true)]
    serve_arguments: Vec<String>,
    /// Where the run may write; by default the system's folder for temporary files.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Where the imported data stay for the next run with the same corpus, which then does without the import.
    #[arg(long, conflicts_with = "growth")]
    data: Option<PathBuf>,
    /// Prints one JSON document instead of the table.
    #[arg(long)]
    json: bool,
    /// Writes the table as Markdown, too, and charts beside it.
    #[arg(long)]
    output: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let base = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("rialto-bench-").tempdir_in(base)?;
    open_to_others(folder.path())?;
    let (text, json) = match arguments.growth.as_slice() {
        [] => {
            let report = run(&arguments.plan(arguments.manifests, !arguments.without_postgres, folder.path())?)?;
            (report.markdown(), serde_json::to_string_pretty(&with_goals(&report)?)?)
        }
        sizes => {
            let measure = |size: &u64| run(&arguments.plan(*size, arguments.with_postgres, folder.path())?);
            let reports: Vec<Report> = sizes.iter().map(measure).collect::<Result<_>>()?;
            if let Some(output) = &arguments.output {
                growth::write_charts(&reports, output.parent().unwrap_or(Path::new(".")))?;
            }
            (growth::markdown(&reports), serde_json::to_string_pretty(&reports)?)
        }
    };
    println!("{}", if arguments.json { &json } else { &text });
    if let Some(output) = &arguments.output {
        let title = if arguments.growth.is_empty() { "What a node can do" } else { "How a node grows" };
        std::fs::write(output, format!("# {title}\n\n`{}`\n\n{text}", command()))?;
    }
    Ok(())
}

impl Arguments {
    fn plan(&self, manifests: u64, with_postgres: bool, folder: &Path) -> Result<Plan> {
        ensure!(manifests > 0 && self.samples > 0 && self.peer_samples > 0, "nothing is nothing to measure");
        let beside = || Some(std::env::current_exe().ok()?.with_file_name("rialto"));
        let rialto = match self.only_postgres {
            true => None,
            false => {
                let binary = self.rialto.clone().or_else(beside).context("where is `rialto`? Say it by `--rialto`")?;
                ensure!(
                    binary.exists(),
                    "`{}` is not there; build it, or say where it is by `--rialto`",
                    binary.display()
                );
                Some(binary)
            }
        };
        Ok(Plan {
            manifests,
            seed: self.seed,
            samples: self.samples,
            peer_samples: self.peer_samples,
            load_seconds: if self.growth.is_empty() { self.load_seconds } else { 0 },
            load_requests: self.load_requests,
            connections: self.connections,
            publishers: self.publishers,
            rialto,
            serve_arguments: self.serve_arguments.clone(),
            with_postgres,
            folder: folder.to_owned(),
            data: self.data.clone(),
        })
    }
}

fn with_goals(report: &Report) -> Result<serde_json::Value> {
    let mut value = serde_json::to_value(report)?;
    if let Some(members) = value.as_object_mut() {
        members.insert("goals".to_owned(), serde_json::to_value(report.goals())?);
    }
    Ok(value)
}

/// The command as it was typed, without the places of one machine.
fn command() -> String {
    let mut command = "cargo xtask bench node".to_owned();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if ["--folder", "--data", "--rialto"].contains(&argument.as_str()) {
            arguments.next();
        } else {
            command.push(' ');
            command.push_str(&argument);
        }
    }
    command
}
