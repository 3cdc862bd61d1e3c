//! Faults of the process and of the disk: `cargo xtask crash --mode kill9 --cycles 50`.

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use conformance::crash::{
    self, Broken, Faults, FeedBroken, FeedToll, FeedTorment, Program, Toll, Torment, torment, torment_feed,
};
use std::path::PathBuf;
use std::process::ExitCode;

/// Lets a node and its disk fail, again and again, and checks that it keeps what it acknowledged.
#[derive(Parser)]
struct Arguments {
    /// What fails.
    #[arg(long, value_enum, default_value = "kill9")]
    mode: Mode,
    /// How often; `calls`, `errors` and `payment` try every call and ignore it.
    #[arg(long, default_value_t = 50)]
    cycles: usize,
    /// In `calls`, `errors` and `payment`: only every so-manieth call.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    stride: u32,
    /// In `feed`: how many are told what changes.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// In `feed`: the longest time between two kills, in milliseconds; the shortest is a quarter of it.
    #[arg(long, default_value_t = 5_000)]
    between_ms: u64,
    /// Decides what is written and where it fails.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The binary `rialto`; the one beside this program when absent.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
    /// Where a mode needs what is not here (strace, a mount), say so and succeed.
    #[arg(long)]
    skip_missing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// SIGKILL at a random moment under load.
    Kill9,
    /// SIGKILL at a random moment while subscribers are told what changes.
    Feed,
    /// SIGKILL at every storage call of a fixed script.
    Calls,
    /// EIO at every sync and write of a fixed script.
    Errors,
    /// A full disk that is emptied again.
    Full,
    /// A read-only disk that becomes writable again.
    ReadOnly,
    /// One altered byte in the data folder.
    Flips,
    /// SIGKILL at every call of a payment to its disk and to the wallet.
    Payment,
    /// SIGKILL at each step of an engagement's journal, `--cycles` times each.
    Engagements,
}

impl Mode {
    /// Why it cannot be run here, if it cannot.
    fn lacks(self) -> Option<String> {
        match self {
            Self::Calls | Self::Errors | Self::ReadOnly | Self::Payment => crash::strace_is_missing(),
            Self::Full => crash::mount_is_missing(),
            Self::Kill9 | Self::Feed | Self::Flips | Self::Engagements => None,
        }
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let beside = || -> Result<PathBuf> {
        Ok(std::env::current_exe()?.parent().context("this program is nowhere")?.join("rialto"))
    };
    let binary = arguments.binary.clone().map_or_else(beside, Ok)?;
    if let Some(reason) = arguments.mode.lacks() {
        eprintln!("skipped: {reason}");
        return Ok(if arguments.skip_missing { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let folder = tempfile::tempdir()?;
    let program = Program::new(&binary, folder.path());
    match arguments.mode {
        Mode::Kill9 => kill(&arguments, &program, folder),
        Mode::Feed => kill_while_told(&arguments, &program, folder),
        Mode::Calls | Mode::Errors | Mode::Full | Mode::ReadOnly | Mode::Flips | Mode::Payment | Mode::Engagements => {
            fail(&arguments, &program)
        }
    }
}

/// Faults of the disk.
fn fail(arguments: &Arguments, program: &Program) -> Result<ExitCode> {
    let (count, stride, seed) = (arguments.cycles, arguments.stride as usize, arguments.seed);
    let mut heard = 0;
    let mut progress = |faults: &Faults| {
        heard += 1;
        if heard % 50 == 0 {
            eprintln!("{heard} faults, {:.0} s", faults.seconds);
        }
    };
    let faults = match arguments.mode {
        Mode::Kill9 | Mode::Feed => return Ok(ExitCode::SUCCESS),
        Mode::Calls => crash::calls(program, stride, seed, &mut progress),
        Mode::Errors => crash::errors(program, stride, seed, &mut progress),
        Mode::Full => crash::full(program, count, seed, &mut progress),
        Mode::ReadOnly => crash::read_only(program, count, seed, &mut progress),
        Mode::Flips => crash::flips(program, count, seed, &mut progress),
        Mode::Payment => crash::payment(program, stride, &mut progress),
        Mode::Engagements => crash::engagements(program, count, &mut progress),
    }?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&faults)?);
    } else {
        for (what, count) in &faults.counts {
            println!("{what:<44} {count:>10}");
        }
        print_broken(&faults.broken);
        println!("{:<44} {:>10.0}", "seconds", faults.seconds);
        faults.told.iter().for_each(|told| println!("  {told}"));
    }
    Ok(if faults.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn kill(arguments: &Arguments, program: &Program, folder: tempfile::TempDir) -> Result<ExitCode> {
    let wanted = Torment { cycles: arguments.cycles, seed: arguments.seed };
    let toll = torment(program, &wanted, &mut |toll| {
        if toll.cycles.is_multiple_of(10) {
            let Toll { cycles, acknowledged, seconds, .. } = toll;
            let kept = if toll.is_clean() { "every promise kept" } else { "promises broken" };
            eprintln!("{cycles} kills, {acknowledged} acknowledgements, {kept}, {seconds:.0} s");
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

fn kill_while_told(arguments: &Arguments, program: &Program, folder: tempfile::TempDir) -> Result<ExitCode> {
    let wanted = FeedTorment {
        cycles: arguments.cycles,
        subscribers: arguments.subscribers,
        between_ms: (arguments.between_ms / 4, arguments.between_ms),
        seed: arguments.seed,
    };
    let toll = torment_feed(program, &wanted, &mut |toll| {
        if toll.cycles.is_multiple_of(10) {
            let FeedToll { cycles, acknowledged, events, seconds, .. } = toll;
            let kept = if toll.is_clean() { "every promise kept" } else { "promises broken" };
            eprintln!("{cycles} kills, {acknowledged} acknowledgements, {events} events, {kept}, {seconds:.0} s");
        }
    });
    let toll = toll.inspect_err(|_| eprintln!("seed {}", wanted.seed))?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&toll)?);
    } else {
        print_told(&toll);
    }
    if toll.is_clean() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("seed {}; the node's folder stays at {}", wanted.seed, folder.keep().display());
    Ok(ExitCode::FAILURE)
}

fn print_told(toll: &FeedToll) {
    let FeedBroken { gaps, conflicts, again, refused, histories, forged, flaws } = &toll.broken;
    let rows = [
        ("kills", toll.cycles),
        ("subscribers", toll.subscribers),
        ("acknowledged messages", toll.acknowledged),
        ("under way at a kill", toll.under_way),
        ("events heard", toll.events),
        ("of which the signature was verified", toll.verified),
        ("connections opened", toll.connections),
        ("events read again in the end", toll.read_again),
        ("gaps", *gaps),
        ("cursors with two contents", *conflicts),
        ("told again", *again),
        ("journals that could not be resumed", *refused),
        ("histories that were told wrongly", *histories),
        ("events not signed, or not what they seem", *forged),
        ("flaws in the store", *flaws),
    ];
    for (what, count) in rows {
        println!("{what:<44} {count:>10}");
    }
    println!("{:<44} {:>10}", "changes in the log", toll.changes);
    let (half, most, longest) = toll.restart_ms;
    println!("{:<44} {half:>10.0}, {most:.0}, {longest:.0} ms", "restart p50, p99, longest");
    println!("{:<44} {:>10.0}", "seconds", toll.seconds);
    toll.told.iter().for_each(|told| println!("  {told}"));
}

fn print(toll: &Toll) {
    println!("{:<44} {:>10}", "kills", toll.cycles);
    println!("{:<44} {:>10}", "acknowledged messages", toll.acknowledged);
    println!("{:<44} {:>10}", "under way at a kill", toll.under_way);
    println!("{:<44} {:>10}", "of which had taken effect", toll.under_way_kept);
    println!("{:<44} {:>10}", "answered intents", toll.answered);
    println!("{:<44} {:>10}", "looks at single records", toll.looks);
    print_broken(&toll.broken);
    println!("{:<44} {:>10}", "changes in the log", toll.changes);
    let Toll { restart_p50_ms, restart_p99_ms, restart_max_ms, .. } = toll;
    println!("{:<44} {restart_p50_ms:>10.0}, {restart_p99_ms:.0}, {restart_max_ms:.0} ms", "restart p50, p99, longest");
    println!("{:<44} {:>10.0}", "seconds", toll.seconds);
    toll.told.iter().for_each(|told| println!("  {told}"));
}

fn print_broken(broken: &Broken) {
    let Broken { lost, phantom, unseen, replies, sequence, flaws } = broken;
    let rows = [
        ("lost", lost),
        ("phantom", phantom),
        ("not shown by an answer", unseen),
        ("other reply than before", replies),
        ("sequence went back", sequence),
        ("flaws in the store", flaws),
    ];
    for (what, count) in rows {
        println!("{what:<44} {count:>10}");
    }
}
