//! The attacks: `cargo xtask attack`, `cargo xtask attack --only E2.6`.

use anyhow::{Context, Result};
use clap::Parser;
use conformance::attack::{Corpus, Verdict, attack, page};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Puts every attack of the corpus to the real binary.
#[derive(Parser)]
struct Arguments {
    /// Only cases whose row or name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// The binary `rialto`; the one beside this program when absent.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Write the page here.
    #[arg(long)]
    report: Option<PathBuf>,
    /// The verdicts as JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let beside = || -> Result<PathBuf> {
        Ok(std::env::current_exe()?.parent().context("this program is nowhere")?.join("rialto"))
    };
    let binary = arguments.binary.map_or_else(beside, Ok)?;
    let corpus = Corpus::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/attacks"))?;
    let attacked = attack(&binary, &corpus, &arguments.only, &mut |verdict: &Verdict| {
        let Verdict { row, id, millis, grown_bytes, .. } = verdict;
        let grown = grown_bytes >> 20;
        match &verdict.wrong {
            None => eprintln!("stood  {row:<6} {id} ({millis} ms, {grown} MiB)"),
            Some(wrong) => eprintln!("FELL   {row:<6} {id}: {wrong}"),
        }
    })?;
    if let Some(report) = &arguments.report {
        let today = aql::Instant::from_unix(conformance::crash::clock(), 0).to_string();
        std::fs::write(report, page(&corpus, &attacked, today.split('T').next().unwrap_or_default()))?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&attacked)?);
    } else {
        let fell = attacked.verdicts.iter().filter(|verdict| verdict.wrong.is_some()).count();
        println!("{} cases, {fell} fell, {:.0} s", attacked.verdicts.len(), attacked.seconds);
        attacked.leaks.iter().for_each(|leak| println!("  {leak}"));
    }
    Ok(if attacked.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
