//! Millions of random questions to both engines: `cargo xtask diff aql --n 10000000`.

use clap::Parser;
use conformance::chance::Chance;
use conformance::differential::round;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Compares the engines on random questions.
#[derive(Parser)]
struct Arguments {
    /// What to compare.
    #[arg(value_parser = ["aql"])]
    what: String,
    /// How many evaluations of a constraint tree over a record.
    #[arg(long, default_value_t = 200_000)]
    n: u64,
    /// The first seed; the same seed asks the same questions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads ask.
    #[arg(long, default_value_t = 2)]
    threads: u64,
}

#[expect(clippy::disallowed_methods, reason = "progress is shown in seconds")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (compared, next, failed) = (AtomicU64::new(0), AtomicU64::new(arguments.seed), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                while compared.load(Ordering::Relaxed) < arguments.n && failed.load(Ordering::Relaxed) == 0 {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    match round(&mut Chance::seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))) {
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
