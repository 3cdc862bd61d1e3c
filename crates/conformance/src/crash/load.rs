//! Mixed load: publications, changes, withdrawals and questions, until the node is gone.

use super::ledger::Ledger;
use super::program::{Line, Running};
use crate::chance::Chance;
use anyhow::{Result, bail};
use json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Replies that are kept of each cycle, to be asked for again.
const KEPT_MAX: usize = 20;

/// What was seen before the kill.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) acknowledged: usize,
    pub(crate) answered: usize,
    /// The highest sequence number that was acknowledged.
    pub(crate) sequence: u64,
    /// Some intents with their answers.
    pub(crate) answers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Kept {
    fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.answered += other.answered;
        self.sequence = self.sequence.max(other.sequence);
        self.answers.extend(other.answers);
    }
}

/// Puts the node under load for a while, kills it, and returns what was seen.
pub(crate) fn run(
    node: &mut Running,
    ledgers: &mut [Ledger],
    askers: usize,
    span: Duration,
    chance: &mut Chance<'_>,
) -> Result<Kept> {
    let (stop, mut kept) = (AtomicBool::new(false), Kept::default());
    let mut questions: Vec<Vec<Vec<u8>>> = Vec::new();
    for asker in 0..askers {
        let mut prepared = Vec::new();
        for _ in 0..200 {
            let Some(ledger) = ledgers.get_mut(asker) else { break };
            let only = ledger.slots.get(chance.below(ledger.slots.len())).map(|slot| slot.id.clone());
            let category = if chance.below(2) == 0 { "commercial" } else { "knowledge" };
            prepared.push(ledger.question(category, only.as_deref())?);
        }
        questions.push(prepared);
    }
    let seeds: Vec<u64> = ledgers.iter().map(|_| chance.bits()).collect();
    std::thread::scope(|scope| {
        let line = node.line();
        let mut threads = Vec::new();
        for (ledger, seed) in ledgers.iter_mut().zip(seeds) {
            let (line, stop) = (line.clone(), &stop);
            threads.push(scope.spawn(move || write(&line, ledger, &mut Chance::seeded(seed), stop)));
        }
        for asked in &questions {
            let (line, stop) = (line.clone(), &stop);
            threads.push(scope.spawn(move || ask(&line, asked, stop)));
        }
        std::thread::sleep(span);
        node.kill()?;
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            match thread.join() {
                Ok(seen) => kept.add(seen?),
                Err(_) => bail!("a thread of the load panicked"),
            }
        }
        Ok(kept)
    })
}

/// Writes until the node is gone. What fails for want of a node is under way; every other failure is a finding.
fn write(line: &Line, ledger: &mut Ledger, chance: &mut Chance<'_>, stop: &AtomicBool) -> Result<Kept> {
    let mut kept = Kept::default();
    ledger.acknowledged.clear();
    while !stop.load(Ordering::Relaxed) {
        if chance.below(20) == 0 {
            let forged = ledger.forged()?;
            let Ok(reply) = line.send("POST", "/oap/records", &forged) else { break };
            if reply.status != 401 {
                bail!("a forged publication is answered with status {}", reply.status);
            }
        }
        let message = ledger.next(chance)?;
        let Ok(reply) = line.send(message.method, &message.path, &message.body) else { break };
        if reply.status != 200 {
            bail!("a publication is refused: {}", String::from_utf8_lossy(&reply.body));
        }
        let said: Value = serde_json::from_slice(&reply.body)?;
        let sequence = said.pointer("/output/sequence").and_then(Value::as_u64);
        kept.sequence = kept.sequence.max(sequence.unwrap_or_default());
        kept.acknowledged += 1;
        ledger.acknowledge(reply.body);
    }
    Ok(kept)
}

fn ask(line: &Line, questions: &[Vec<u8>], stop: &AtomicBool) -> Result<Kept> {
    let mut kept = Kept::default();
    for question in questions {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Ok(reply) = line.send("POST", "/oap/intent", question) else { break };
        if reply.status != 200 {
            bail!("an intent is refused: {}", String::from_utf8_lossy(&reply.body));
        }
        kept.answered += 1;
        kept.answers.push((question.clone(), reply.body));
        if kept.answers.len() > KEPT_MAX {
            kept.answers.remove(0);
        }
    }
    Ok(kept)
}
