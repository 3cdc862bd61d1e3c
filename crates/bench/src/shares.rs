//! Where the time goes: what the protocol itself costs for the same intents and answers, in process, with the crates
//! that the node uses.

use crate::clock::timed;
use anyhow::{Context, Result};
use aql::{Intent, Limits};
use json::Document;
use serde::Serialize;
use std::hint::black_box;
use std::time::Duration;
use trust::SigningKey;

/// One piece of work that every answer needs.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// What is done.
    pub name: &'static str,
    /// The median of its durations.
    pub microseconds: f64,
}

/// Takes apart what intents and their answers cost.
pub fn measure(intents: &[Vec<u8>], answers: &[Vec<u8>]) -> Result<Vec<Share>> {
    let key = SigningKey::from_seed([7; 32]);
    let (mut reading, mut verifying, mut writing, mut signing) = (vec![], vec![], vec![], vec![]);
    for (intent, answer) in intents.iter().zip(answers) {
        let (read, took) = timed(|| Intent::parse(black_box(intent), &Limits::STANDARD));
        reading.push(took);
        let (_, document) = read?;
        let (verified, took) = timed(|| trust::verify_did_key(black_box(&document), "issuer_did").map(|_| ()));
        verifying.push(took);
        verified?;
        let answer = Document::parse(answer, &json::Limits::OURS)?;
        let (body, took) = timed(|| json::canonical_without(black_box(answer.root()), "signature"));
        writing.push(took);
        let (_, took) = timed(|| black_box(key.sign(black_box(&body))));
        signing.push(took);
    }
    [
        ("reading the intent: strict JSON, limits, schema, patterns", reading),
        ("verifying it: its canonical form and the signature", verifying),
        ("writing the answer in canonical form", writing),
        ("signing the answer", signing),
    ]
    .into_iter()
    .map(|(name, durations)| Ok(Share { name, microseconds: median(durations).context("nothing was measured")? }))
    .collect()
}

fn median(mut durations: Vec<Duration>) -> Option<f64> {
    durations.sort();
    durations.get(durations.len() / 2).map(|middle| middle.as_secs_f64() * 1e6)
}
