//! Random documents against what was proved: `cargo xtask diff schema --n 10000000`.

#[path = "../tests/it/random.rs"]
#[expect(
    dead_code,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the generators of the tests; this program needs schemas only"
)]
mod random;

use random::{Chance, random_schema};
use schema::{Sampler, Undeclared, Validator, proves};
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

/// Documents tried against one proof.
const DOCUMENTS: u64 = 100;

#[expect(clippy::disallowed_methods, reason = "a program beside the crate: it takes arguments and shows seconds")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, usual: u64| {
        let position = arguments.iter().position(|argument| argument == name);
        position.and_then(|position| arguments.get(position + 1)?.parse().ok()).unwrap_or(usual)
    };
    let (wanted, mut seed) = (option("--n", 100_000), option("--seed", 1));
    let (mut tried, mut conforming, mut pairs, mut proofs) = (0_u64, 0_u64, 0_u64, 0_u64);
    let start = Instant::now();
    while tried < wanted {
        seed += 1;
        pairs += 1;
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let from = random_schema(&mut chance, 3);
        let to = random_schema(&mut chance, 2);
        // Half of the pairs are alike, so that there is something to prove.
        let to = if chance.below(2) == 0 { json!({"anyOf": [to, from]}) } else { to };
        if !proves(&from, &to, Undeclared::Strict) {
            continue;
        }
        let (Ok(one), Ok(other)) = (Validator::compile(&from), Validator::compile(&to)) else { continue };
        proofs += 1;
        let mut sampler = Sampler::new(seed, &[&from, &to], true);
        for round in 0..DOCUMENTS {
            let document = if round % 2 == 0 { sampler.document(&from) } else { sampler.any(3) };
            tried += 1;
            if one.is_valid(&document) {
                conforming += 1;
                if !other.is_valid(&document) {
                    println!("seed {seed}: {document} refutes what was proved\n  from {from}\n  to   {to}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    println!(
        "schema {tried} documents ({conforming} conforming) against {proofs} proofs of {pairs} pairs: 0 refuted, {:.1} s",
        start.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
