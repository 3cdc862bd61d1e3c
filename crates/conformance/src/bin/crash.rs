//! The crash loop: `cargo xtask crash --mode kill9 --cycles 50`.

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use conformance::crash::{Program, Toll, Torment, torment};
use std::path::PathBuf;
use std::process::ExitCode;

/// Kills a node under load, again and again, and checks that it keeps what it acknowledged.
#[derive(Parser)]
struct Arguments {
    /// How the node ends.
    #[arg(long, value_enum, default_value = "kill9")]
    mode: Mode,
    /// How often.
    #[arg(long, default_value_t = 50)]
    cycles: usize,
    /// Decides what is written and when the node is killed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The binary `rialto`; the one beside this program when absent.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// SIGKILL at a random moment.
    Kill9,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let Mode::Kill9 = arguments.mode;
    let beside = || -> Result<PathBuf> {
        Ok(std::env::current_exe()?.parent().context("this program is nowhere")?.join("rialto"))
    };
    let binary = arguments.binary.map_or_else(beside, Ok)?;
    let folder = tempfile::tempdir()?;
    let program = Program::new(&binary, folder.path());
    let wanted = Torment { cycles: arguments.cycles, seed: arguments.seed };
    let toll = torment(&program, &wanted, &mut |toll| {
        if toll.cycles.is_multiple_of(10) {
            let Toll { cycles, acknowledged, seconds, .. } = toll;
            eprintln!("{cycles} kills, {acknowledged} acknowledgements, {seconds:.0} s");
        }
    });
    let toll = toll.inspect_err(|_| eprintln!("seed {}", wanted.seed))?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&toll)?);
    } else {
        print(&toll);
    }
    if toll.is_clean() {
        return Ok(ExitCode::SUCCESS);
    }
    // The folder is what shows how it came about.
    eprintln!("seed {}; the node's folder stays at {}", wanted.seed, folder.keep().display());
    Ok(ExitCode::FAILURE)
}

fn print(toll: &Toll) {
    let broken = &toll.broken;
    println!("kills                       {:>10}", toll.cycles);
    println!("acknowledged messages       {:>10}", toll.acknowledged);
    println!("under way at a kill         {:>10}, of which {} had taken effect", toll.under_way, toll.under_way_kept);
    println!("answered intents            {:>10}", toll.answered);
    println!("looks at single records     {:>10}", toll.looks);
    println!("lost                        {:>10}", broken.lost);
    println!("phantom                     {:>10}", broken.phantom);
    println!("not shown by an answer      {:>10}", broken.unseen);
    println!("other reply than before     {:>10}", broken.replies);
    println!("sequence went back          {:>10}", broken.sequence);
    println!("flaws in the store          {:>10} of {} changes", broken.flaws, toll.changes);
    let Toll { restart_p50_ms, restart_p99_ms, restart_max_ms, .. } = toll;
    println!("restart p50, p99, longest   {restart_p50_ms:>10.0}, {restart_p99_ms:.0}, {restart_max_ms:.0} ms");
    println!("seconds                     {:>10.0}", toll.seconds);
    for told in &toll.told {
        println!("  {told}");
    }
}
