//! What honest callers wait for, alone and while hostile ones try their worst: `cargo xtask load`.
//!
//! Honest callers ask indexed questions at a fixed pace, each over a connection of its own. Then the same again while
//! hostile callers, each from an address of its own, send what `conformance/attacks` knows as the costliest of E1 and
//! E2, one message after the other without a pause. With `--mode feed`: what a crowd of subscribers waits for.

mod cores;
mod crowd;
mod hostile;

use anyhow::{Context, Result, ensure};
use bench::corpus::Corpus;
use bench::figures::Latency;
use bench::http::{Connection, post};
use bench::intent::Crowd;
use bench::node::{Node, Program};
use bench::question::{Asker, Kind};
use clap::{Parser, ValueEnum};
use conformance::crash::{clock, start};
use cores::Cores;
use hostile::{Away, KINDS, Seen};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Times what honest callers wait for, alone and beside hostile ones.
#[derive(Parser)]
struct Arguments {
    /// Who is there.
    #[arg(long, value_enum, default_value = "hostile")]
    mode: Mode,
    /// In `feed`: how many listen.
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
    /// In `feed`: events in a second, for all of them together.
    #[arg(long, default_value_t = 1_000)]
    events_per_second: usize,
    /// In `feed`: how many a publication concerns.
    #[arg(long, default_value_t = 10)]
    alike: usize,
    /// Manifests in the node.
    #[arg(long, default_value_t = 20_000)]
    manifests: u64,
    /// Seconds of each part.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Hostile callers.
    #[arg(long, default_value_t = 100)]
    hostile: usize,
    /// Only hostile callers of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Honest callers.
    #[arg(long, default_value_t = 4)]
    honest: usize,
    /// Questions of each honest caller in a second.
    #[arg(long, default_value_t = 20)]
    pace: u64,
    /// Hostile callers have processors of their own, and everybody else has none of those.
    #[arg(long)]
    apart: bool,
    /// In `fury`: on which processors they stay.
    #[arg(long, hide = true)]
    core: Vec<usize>,
    /// In `fury`: at whom they rage.
    #[arg(long, hide = true, default_value = "")]
    authority: String,
    /// The binary `rialto`; the one beside this program when absent.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Write the page here.
    #[arg(long)]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Honest callers, alone and beside hostile ones.
    Hostile,
    /// Subscribers, each with a stream of its own.
    Feed,
    /// The hostile callers by themselves, until standard input ends; the first mode starts it.
    Fury,
}

/// The worst that p99 may become, as a multiple of what it is without hostile callers.
const WORSE_MAX: f64 = 2.0;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let beside = || -> Result<PathBuf> {
        Ok(std::env::current_exe()?.parent().context("this program is nowhere")?.join("rialto"))
    };
    let binary = arguments.binary.clone().map_or_else(beside, Ok)?;
    if arguments.mode == Mode::Feed {
        return crowd::run(&arguments, &binary);
    }
    let kinds: Vec<&str> =
        KINDS.into_iter().filter(|kind| arguments.kind.as_deref().is_none_or(|only| only == *kind)).collect();
    ensure!(!kinds.is_empty(), "no hostile caller is of that kind; there are {}", KINDS.join(", "));
    if arguments.mode == Mode::Fury {
        if !arguments.core.is_empty() {
            cores::stay_on(&arguments.core)?;
        }
        hostile::rage(&arguments.authority, arguments.hostile, &kinds)?;
        return Ok(ExitCode::SUCCESS);
    }
    let cores = if arguments.apart { Cores::halved()? } else { None };
    if let Some(cores) = &cores {
        // The node and the honest callers are started from here, and have what this thread has.
        cores::stay_on(&cores.node)?;
    }
    let folder = tempfile::tempdir()?;
    let program = Program {
        binary,
        serve_arguments: ["--requests-per-second", "10", "--connections-per-source", "64", "--log", "error"]
            .map(str::to_owned)
            .to_vec(),
        environment: Vec::new(),
        data: folder.path().join("data"),
        log: folder.path().join("node.log"),
    };
    let corpus = Corpus::new(1);
    let records = folder.path().join("records.ndjson");
    corpus.write_file(arguments.manifests, &records)?;
    program.import(&records)?;
    let (node, _) = program.serve()?;
    let mut asker = Asker::new(&corpus, arguments.manifests, 1);
    let mut crowd = Crowd::new();
    ask(&node, &arguments, &mut asker, &mut crowd, 2)?;
    let alone = ask(&node, &arguments, &mut asker, &mut crowd, arguments.seconds)?;
    let mut crowded = vec!["--hostile".to_owned(), arguments.hostile.to_string()];
    crowded.extend(arguments.kind.iter().flat_map(|kind| ["--kind".to_owned(), kind.clone()]));
    let fury = Away::unleash(&node.authority, &crowded, cores.as_ref())?;
    // A moment for all of them to be at it.
    std::thread::sleep(Duration::from_secs(2));
    let beside = ask(&node, &arguments, &mut asker, &mut crowd, arguments.seconds)?;
    let seen = fury.end()?;
    let memory = node.memory()?;
    node.stop()?;
    let told = tell(&arguments, cores.as_ref(), (&alone, &beside), &seen, memory.peak_bytes);
    println!("{told}");
    if let Some(report) = &arguments.report {
        std::fs::write(report, page(&told))?;
    }
    let held = beside.latency().p99_ms <= WORSE_MAX * alone.latency().p99_ms && beside.refused == 0;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A caller whose questions come so late asks no more of them.
const LATE_MAX: Duration = Duration::from_secs(10);

/// What honest callers were answered.
#[derive(Default)]
struct Asked {
    took: Vec<Duration>,
    refused: usize,
}

impl Asked {
    fn latency(&self) -> Latency {
        Latency::of(&self.took)
    }
}

/// Asks at the pace for some seconds; a question that comes late is timed from when it was due.
fn ask(node: &Node, arguments: &Arguments, asker: &mut Asker<'_>, crowd: &mut Crowd, seconds: u64) -> Result<Asked> {
    let kinds = [Kind::SelectiveConjunction, Kind::ConjunctionWithRanges, Kind::ArrayWildcard];
    let each = arguments.pace * seconds;
    let mut shares = Vec::new();
    for _ in 0..arguments.honest {
        let questions: Vec<_> = kinds.iter().cycle().take(each as usize).map(|kind| asker.ask(*kind)).collect();
        let requests: Vec<Vec<u8>> =
            crowd.sign_all(&questions)?.iter().map(|intent| post(&node.authority, "/oap/intent", intent)).collect();
        shares.push(requests);
    }
    let gap = Duration::from_micros(1_000_000 / arguments.pace.max(1));
    let done: Vec<Result<Asked>> = std::thread::scope(|scope| {
        let asking: Vec<_> = shares.iter().map(|share| scope.spawn(|| ask_one(&node.authority, share, gap))).collect();
        asking
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a caller panicked"))))
            .collect()
    });
    let mut all = Asked::default();
    for asked in done {
        let asked = asked?;
        all.took.extend(asked.took);
        all.refused += asked.refused;
    }
    Ok(all)
}

fn ask_one(authority: &str, requests: &[Vec<u8>], gap: Duration) -> Result<Asked> {
    let mut connection = Connection::open(authority)?;
    let (mut asked, mut body, begun) = (Asked::default(), Vec::new(), start());
    for (number, request) in (0u32..).zip(requests) {
        let due = gap * number;
        // Whoever waits so long has said enough about it.
        if begun.elapsed() > due + LATE_MAX {
            break;
        }
        if let Some(early) = due.checked_sub(begun.elapsed()) {
            std::thread::sleep(early);
        }
        let status = match connection.exchange(request, &mut body) {
            Ok(status) => status,
            // The node closes idle connections; the question is asked again, and the time runs on.
            Err(_) => {
                connection = Connection::open(authority)?;
                connection.exchange(request, &mut body)?
            }
        };
        asked.took.push(begun.elapsed() - due);
        asked.refused += usize::from(status != 200);
    }
    Ok(asked)
}

fn tell(
    arguments: &Arguments,
    cores: Option<&Cores>,
    (alone, beside): (&Asked, &Asked),
    seen: &Seen,
    peak_bytes: u64,
) -> String {
    let today = aql::Instant::from_unix(clock(), 0).to_string();
    let (before, after) = (alone.latency(), beside.latency());
    let processors = match cores {
        Some(Cores { node, crowd }) => format!(
            "processors: {} for the node and the honest callers in both parts, {} for the hostile ones",
            node.len(),
            crowd.len()
        ),
        None => "processors: the same for everybody, the hostile callers in the idle class".to_owned(),
    };
    let mut text = format!(
        "{}, {} build: {} manifests, {} honest callers at {} questions a second each, {} hostile callers, {} s each\n\
         part; {processors}.\n\n\
         | | questions | refused | p50 | p99 |\n|---|---:|---:|---:|---:|\n\
         | alone | {} | {} | {:.1} ms | {:.1} ms |\n| beside hostile callers | {} | {} | {:.1} ms | {:.1} ms |\n\n\
         p99 is {:.2} times what it is alone; the goal is {WORSE_MAX:.0} at most. The node held {} MiB at its peak.\n\n\
         | hostile kind | the node said | how often |\n|---|---|---:|\n",
        today.split('T').next().unwrap_or_default(),
        if cfg!(debug_assertions) { "debug" } else { "release" },
        arguments.manifests,
        arguments.honest,
        arguments.pace,
        arguments.hostile,
        arguments.seconds,
        before.samples,
        alone.refused,
        before.p50_ms,
        before.p99_ms,
        after.samples,
        beside.refused,
        after.p50_ms,
        after.p99_ms,
        after.p99_ms / before.p99_ms,
        peak_bytes >> 20,
    );
    for ((kind, said), count) in seen {
        let _ = writeln!(text, "| {kind} | {said} | {count} |");
    }
    text
}

fn page(told: &str) -> String {
    format!(
        "# Honest callers beside hostile ones\n\n\
         Written by `cargo xtask load --report docs/reliability/load.md`.\n\n\
         Honest callers ask indexed questions at a fixed pace; a question is timed from the moment it was due. Hostile\n\
         callers come from addresses of their own on the same machine; since they stand for other machines, their process\n\
         is in the idle class of the scheduler, or with `--apart` on processors of its own. They send one message after\n\
         the other without a pause: heads that never end, bodies that are too long or too deep, streams opened and reset,\n\
         forged signatures, and signed intents that are as costly as the limits let them be.\n\n\
         {told}"
    )
}
