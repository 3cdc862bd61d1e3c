//! Attacks on the real binary, as data: what is sent, and what a node must say to it.
//!
//! The cases lie in `conformance/attacks`, one file for each entry point. Beside code, place and limit every case
//! demands the same four things: the process lives, it is healthy, its memory has grown by no more than the case
//! allows, and every refusal is a signed envelope that repeats nothing of the message.

mod bytes;
mod case;
mod crowd;
mod folder;
mod h2;
mod host;
mod hosted;
mod message;
mod page;
mod rotation;
mod secure;
mod socket;
mod stage;
mod storm;
mod types;
mod wire;

pub use case::{Case, Corpus, Row};
pub use page::page;

use crate::crash::{Program, start};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use stage::Stage;
use std::collections::BTreeMap;
use std::path::Path;

/// What became of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The row it belongs to.
    pub row: String,
    /// Its name.
    pub id: String,
    /// What is wrong; nothing when the node stood its ground.
    pub wrong: Option<String>,
    /// Messages that were sent.
    pub messages: usize,
    /// Bytes by which the node's memory had grown afterwards.
    pub grown_bytes: u64,
    /// Milliseconds in all.
    pub millis: u64,
}

/// What became of all of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Attacked {
    /// Case by case.
    pub verdicts: Vec<Verdict>,
    /// What was found after all of them, in logs and folders.
    pub leaks: Vec<String>,
    /// Seconds in all.
    pub seconds: f64,
}

impl Attacked {
    /// Whether the node stood its ground.
    pub fn is_clean(&self) -> bool {
        self.leaks.is_empty() && self.verdicts.iter().all(|verdict| verdict.wrong.is_none())
    }
}

/// Runs the cases whose row or name contains `only`, all of them when it is empty; `progress` hears each verdict.
pub fn attack(binary: &Path, corpus: &Corpus, only: &str, progress: &mut dyn FnMut(&Verdict)) -> Result<Attacked> {
    let begun = start();
    let mut attacked = Attacked::default();
    // Cases that want a node of their own kind share it with the others of that kind.
    let mut kinds: BTreeMap<&[String], Vec<&Case>> = BTreeMap::new();
    for case in corpus.cases().filter(|case| case.row.contains(only) || case.id.contains(only)) {
        kinds.entry(&case.node).or_default().push(case);
    }
    ensure!(!kinds.is_empty(), "no case has `{only}` in its row or its name");
    for (arguments, cases) in kinds {
        let folder = tempfile::tempdir()?;
        let host = host::Host::start()?;
        let program =
            Program::new(binary, folder.path()).with(&stage::arguments(arguments, corpus.folder(), folder.path()));
        let mut stage = Stage::open(&program, &host).context("the node does not start")?;
        for case in cases {
            let verdict = stage.play(case)?;
            progress(&verdict);
            attacked.verdicts.push(verdict);
        }
        attacked.leaks.extend(stage.close()?);
    }
    attacked.verdicts.sort_by_key(|verdict| case::order(&verdict.row));
    attacked.seconds = begun.elapsed().as_secs_f64();
    Ok(attacked)
}
