//! Millions of random questions to both engines: `cargo xtask diff aql --n 10000000`. Patterns, to the engine of others
//! as well: `cargo xtask diff patterns --n 10000000`.

use clap::Parser;
use conformance::chance::Chance;
use conformance::differential::round;
use conformance::patterns::{Compared, Peer};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Compares the engines on random questions.
#[derive(Parser)]
struct Arguments {
    /// What to compare.
    #[arg(value_parser = ["aql", "patterns"])]
    what: String,
    /// How many evaluations of a constraint tree over a record, or pairs of a pattern and a subject.
    #[arg(long, default_value_t = 200_000)]
    n: u64,
    /// The first seed; the same seed asks the same questions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads ask.
    #[arg(long, default_value_t = 2)]
    threads: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.what.as_str() {
        "patterns" => patterns(&arguments),
        _ => questions(&arguments),
    }
}

/// The choices of a round, by its number.
fn chance(seed: u64) -> Chance<'static> {
    Chance::seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Patterns and subjects to `aql` and to Node.
#[expect(clippy::disallowed_methods, reason = "progress is shown in seconds")]
fn patterns(arguments: &Arguments) -> ExitCode {
    // A program that is missing is no difference.
    if let Err(error) = Peer::start() {
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    let (next, all, start) = (AtomicU64::new(arguments.seed), Mutex::new((Compared::default(), None)), Instant::now());
    let lock = || all.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || -> Result<(), (u64, anyhow::Error)> {
        let mut peer = Peer::start().map_err(|error| (0, error))?;
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let compared = peer.compare(&mut chance(seed)).map_err(|error| (seed, error))?;
            let (sum, failed) = &mut *lock();
            let before = sum.pairs >> 20;
            sum.add(compared);
            if sum.pairs >> 20 > before {
                eprintln!("{:>12} of {} pairs compared", sum.pairs, arguments.n);
            }
            if sum.pairs >= arguments.n || failed.is_some() {
                return Ok(());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| work().map_err(|failed| lock().1 = Some(failed)));
        }
    });
    let (compared, failed) = &*lock();
    let Compared { pairs, invalid, unsupported, out_of_steps } = compared;
    println!(
        "{pairs} pairs of a pattern and a subject from seed {}: {} differences, {:.1} s; {invalid} patterns that both \
         refuse, {unsupported} that aql says it cannot, {out_of_steps} pairs out of steps",
        arguments.seed,
        u8::from(failed.is_some()),
        start.elapsed().as_secs_f64(),
    );
    match failed {
        None => ExitCode::SUCCESS,
        Some((seed, error)) => {
            println!("seed {seed}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Constraint trees, projections and resolutions to `aql` and its twin.
#[expect(clippy::disallowed_methods, reason = "progress is shown in seconds")]
fn questions(arguments: &Arguments) -> ExitCode {
    let (compared, next, failed) = (AtomicU64::new(0), AtomicU64::new(arguments.seed), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                while compared.load(Ordering::Relaxed) < arguments.n && failed.load(Ordering::Relaxed) == 0 {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    match round(&mut chance(seed)) {
                        Ok(count) => compared.fetch_add(count, Ordering::Relaxed),
                        Err(difference) => {
                            println!("seed {seed}: the engines differ");
                            println!("  question  {}", difference.question);
                            println!("  aql       {}", difference.fast);
                            println!("  reference {}", difference.twin);
                            failed.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                }
            });
        }
        scope.spawn(|| {
            let mut shown = Duration::from_secs(10);
            while compared.load(Ordering::Relaxed) < arguments.n && failed.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(50));
                if start.elapsed() >= shown {
                    shown += Duration::from_secs(10);
                    eprintln!("{:>12} of {} evaluations compared", compared.load(Ordering::Relaxed), arguments.n);
                }
            }
        });
    });
    let (compared, failed) = (compared.into_inner(), failed.into_inner());
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} {compared} evaluations from seed {}: {failed} differences, {seconds:.1} s, {:.0} a second",
        arguments.what,
        arguments.seed,
        compared as f64 / seconds
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
