//! Random histories of payments against what the wallet moved: `cargo xtask diff payment --n 1000000`.

#[path = "../tests/it/histories.rs"]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the histories of the tests; a broken one ends the program"
)]
mod histories;

use std::process::ExitCode;
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a program beside the crate: it takes arguments and shows seconds")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, usual: u64| {
        let position = arguments.iter().position(|argument| argument == name);
        position.and_then(|position| arguments.get(position + 1)?.parse().ok()).unwrap_or(usual)
    };
    let (wanted, seed) = (option("--n", 100_000), option("--seed", 1));
    let (start, mut all) = (Instant::now(), histories::Tally::default());
    for number in 0..wanted {
        match histories::play(seed.wrapping_add(number)) {
            Ok(tally) => {
                all.steps += tally.steps;
                all.settled += tally.settled;
                all.failed += tally.failed;
                all.lapsed += tally.lapsed;
                all.over_budget += tally.over_budget;
                all.crashes += tally.crashes;
            }
            Err(broken) => {
                eprintln!("history {}: {broken}", seed.wrapping_add(number));
                return ExitCode::FAILURE;
            }
        }
    }
    let histories::Tally { steps, settled, failed, lapsed, over_budget, crashes } = all;
    println!("histories {wanted}, steps {steps}, settled {settled}, failed {failed}, lapsed {lapsed}");
    println!(
        "refused for the budget {over_budget}, crashes {crashes}, {:.0} s, none broken",
        start.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
