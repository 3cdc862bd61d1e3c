//! A fixed script of writes and questions by one sender, and the books about it.

use super::check;
use super::ledger::Ledger;
use super::load::Kept;
use super::program::{Line, Program, Running};
use super::{Broken, Toll};
use crate::chance::Chance;
use anyhow::{Context, Result, bail, ensure};
use json::Value;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Records of the script.
const SLOTS: usize = 12;
/// A question after so many messages.
const ASKS: usize = 4;

/// What became of a node whose disk failed it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Faults {
    /// What was tried and seen, counted.
    pub counts: BTreeMap<String, usize>,
    /// Broken promises.
    pub broken: Broken,
    /// The first of them, in words.
    pub told: Vec<String>,
    /// Seconds in all.
    pub seconds: f64,
}

impl Faults {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.broken == Broken::default() && self.told.is_empty()
    }

    /// How often something was seen.
    pub fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn note(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn most(&mut self, what: &str, number: usize) {
        let entry = self.counts.entry(what.to_owned()).or_default();
        *entry = number.max(*entry);
    }

    pub(crate) fn tell(&mut self, what: String) {
        if self.told.len() < 20 {
            self.told.push(what);
        }
    }

    /// Plays a scene at every `stride`-th call, in a folder of its own each time, until `play` says that no call is
    /// left; else it says what was done. Whether to go on: what broke stays where it is, for whoever looks.
    pub(crate) fn at_every_call(
        &mut self,
        stride: usize,
        begun: std::time::Instant,
        progress: &mut dyn FnMut(&Self),
        mut play: impl FnMut(usize, &Path, &mut Self) -> Result<Option<String>>,
    ) -> Result<bool> {
        for call in (1..).step_by(stride) {
            let here = tempfile::tempdir()?;
            let Some(done) = play(call, here.path(), self)? else { break };
            self.note(&done);
            self.seconds = begun.elapsed().as_secs_f64();
            progress(self);
            if !self.is_clean() {
                let _ = here.keep();
                return Ok(false);
            }
        }
        self.seconds = begun.elapsed().as_secs_f64();
        Ok(true)
    }

    /// Takes over what a check found, with where it was.
    pub(crate) fn add(&mut self, place: &str, toll: &Toll) {
        let (sum, more) = (&mut self.broken, &toll.broken);
        sum.lost += more.lost;
        sum.phantom += more.phantom;
        sum.unseen += more.unseen;
        sum.replies += more.replies;
        sum.sequence += more.sequence;
        sum.flaws += more.flaws;
        *self.counts.entry("looks at single records".into()).or_default() += toll.looks;
        for told in &toll.told {
            self.tell(format!("{place}: {told}"));
        }
    }
}

/// How far the script came.
pub(crate) enum Ending {
    /// To its end.
    Done,
    /// The node was gone.
    Gone,
    /// A message was refused with this code, and waits.
    Refused(String),
}

/// The sender with the books.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) ledger: Ledger,
    pub(crate) kept: Kept,
    chance: Chance<'static>,
}

impl Sender {
    pub(crate) fn new(seed: u64) -> Self {
        Self { ledger: Ledger::with_slots(seed, 0, SLOTS), kept: Kept::default(), chance: Chance::seeded(seed) }
    }

    /// Sends messages, with a question now and then.
    pub(crate) fn write(&mut self, line: &Line, messages: usize) -> Result<Ending> {
        for number in 0..messages {
            if number % ASKS == ASKS - 1 && !self.ask(line)? {
                return Ok(Ending::Gone);
            }
            match self.send(line)? {
                Ending::Done => {}
                ending => return Ok(ending),
            }
        }
        Ok(Ending::Done)
    }

    /// Sends the message that waits, or the next one.
    pub(crate) fn send(&mut self, line: &Line) -> Result<Ending> {
        let message = match self.ledger.under_way().cloned() {
            Some(message) => message,
            None => self.ledger.next(&mut self.chance)?,
        };
        let Ok(reply) = line.send(message.method, &message.path, &message.body) else { return Ok(Ending::Gone) };
        let said: Value = serde_json::from_slice(&reply.body)?;
        match reply.status {
            200 => {
                let sequence = said.pointer("/output/sequence").and_then(Value::as_u64);
                self.kept.sequence = self.kept.sequence.max(sequence.unwrap_or_default());
                self.kept.acknowledged += 1;
                self.ledger.acknowledge(reply.body);
                Ok(Ending::Done)
            }
            503 => {
                let code = said.pointer("/error/details/code").and_then(Value::as_str);
                Ok(Ending::Refused(code.context("a refusal without a code")?.to_owned()))
            }
            status => bail!("a message has status {status}: {}", String::from_utf8_lossy(&reply.body)),
        }
    }

    /// Asks for one record; false when the node was gone.
    pub(crate) fn ask(&mut self, line: &Line) -> Result<bool> {
        let slot = self.chance.below(self.ledger.slots.len());
        let only = self.ledger.slots.get(slot).map(|slot| slot.id.clone());
        let category = if self.chance.below(2) == 0 { "commercial" } else { "knowledge" };
        let question = self.ledger.question(category, only.as_deref())?;
        let Ok(reply) = line.send("POST", "/oap/intent", &question) else { return Ok(false) };
        if category == "knowledge" && reply.status == 503 {
            // Nothing is delivered that cannot be counted.
            let said: Value = serde_json::from_slice(&reply.body)?;
            let code = said.pointer("/error/details/code").and_then(Value::as_str).unwrap_or_default();
            ensure!(code.starts_with("storage_"), "knowledge is refused with `{code}`");
            return Ok(true);
        }
        ensure!(reply.status == 200, "an intent is refused: {}", String::from_utf8_lossy(&reply.body));
        self.kept.answers.push((question, reply.body));
        self.kept.answered += 1;
        Ok(true)
    }

    /// Holds a node to the books. What it says differently is in the toll.
    pub(crate) fn check(&mut self, node: &Running) -> Result<Toll> {
        let mut toll = Toll::default();
        let ledgers = std::slice::from_mut(&mut self.ledger);
        check::check(node, ledgers, &self.kept, self.kept.sequence, true, &mut self.chance, &mut toll)?;
        Ok(toll)
    }
}

/// Starts a node on what was left, holds it to the books, kills it, and looks at its store.
pub(crate) fn settle(program: &Program, sender: &mut Sender, place: &str, faults: &mut Faults) -> Result<()> {
    match program.serve() {
        Ok((mut node, _)) => {
            let toll = sender.check(&node).with_context(|| place.to_owned())?;
            faults.add(place, &toll);
            node.kill()?;
        }
        Err(error) => {
            faults.broken.flaws += 1;
            faults.tell(format!("{place}: the node does not start: {error:#}: {}", program.said()));
            return Ok(());
        }
    }
    let mut toll = Toll::default();
    match store::Store::open(&program.data().join("store")).map(|store| store.check()) {
        Ok(Ok(soundness)) => {
            toll.broken.flaws += soundness.flaws.len();
            toll.told.extend(soundness.flaws.iter().map(|flaw| format!("the store finds a flaw: {flaw}")));
        }
        Ok(Err(error)) => toll.told.push(format!("the store cannot be checked: {error}")),
        Err(error) => toll.told.push(format!("the store does not open: {error}")),
    }
    faults.add(place, &toll);
    Ok(())
}

/// A folder that a node has written and left, and the books about it.
pub(crate) fn base(program: &Program, seed: u64, messages: usize) -> Result<Sender> {
    let mut sender = Sender::new(seed);
    let (node, _) = program.serve()?;
    ensure!(matches!(sender.write(&node.line(), messages)?, Ending::Done), "the script does not run to its end");
    node.stop()?;
    Ok(sender)
}

/// Copies a folder with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        let Some(name) = path.file_name() else { continue };
        if entry?.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
