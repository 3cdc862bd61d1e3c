//! One altered byte somewhere in the data folder: found or harmless, never a wrong answer.

use super::Toll;
use super::check;
use super::program::{Program, Running};
use super::script::{Ending, Faults, Sender, base, copy};
use crate::chance::Chance;
use anyhow::{Context, Result, ensure};
use json::{Document, Limits};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Messages in the folder.
const WRITES: usize = 60;

/// Alters one byte of a folder that a node has left, `count` times; half of the folders were left by a kill.
pub fn flips(program: &Program, count: usize, seed: u64, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let begun = super::start();
    let (mut faults, mut chance) = (Faults::default(), Chance::seeded(seed));
    let (closed, killed) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let first = base(&program.at(closed.path()), seed, WRITES)?;
    let second = left_by_a_kill(&program.at(killed.path()), seed)?;
    let images = [(closed.path().join("data"), first), (killed.path().join("data"), second)];
    for number in 0..count {
        let Some((image, sender)) = images.get(number % images.len()) else { break };
        let files = files(image)?;
        // Every file in turn, so that the small ones are not forgotten.
        let file = files.get((number / images.len()) % files.len()).context("an empty folder")?;
        let here = tempfile::tempdir()?;
        let program = program.at(here.path());
        copy(image, program.data())?;
        let altered = program.data().join(file.strip_prefix(image)?);
        let (at, from, to) = flip(&altered, &mut chance)?;
        let place = format!("{} byte {at} from {from:#04x} to {to:#04x}", file.strip_prefix(image)?.display());
        judge(&program, sender.clone(), &place, &mut faults)?;
        faults.note("altered bytes");
        faults.seconds = begun.elapsed().as_secs_f64();
        progress(&faults);
    }
    faults.seconds = begun.elapsed().as_secs_f64();
    Ok(faults)
}

fn left_by_a_kill(program: &Program, seed: u64) -> Result<Sender> {
    let mut sender = base(program, seed + 1, WRITES / 2)?;
    let (mut node, _) = program.serve()?;
    ensure!(matches!(sender.write(&node.line(), WRITES / 2)?, Ending::Done), "the script does not run to its end");
    node.kill()?;
    Ok(sender)
}

/// All files that hold something, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.metadata()?.len() > 0 {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn flip(path: &Path, chance: &mut Chance<'_>) -> Result<(u64, u8, u8)> {
    let file = File::options().read(true).write(true).open(path)?;
    let at = chance.bits() % file.metadata()?.len();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    let from = u8::from_ne_bytes(byte);
    let to = from ^ (1 + chance.below(255) as u8);
    file.write_all_at(&[to], at)?;
    Ok((at, from, to))
}

/// The node does not start, or says that it cannot, or is right.
fn judge(program: &Program, mut sender: Sender, place: &str, faults: &mut Faults) -> Result<()> {
    let mut node = match program.serve() {
        Ok((node, _)) => node,
        Err(_) if program.said().trim().is_empty() => {
            faults.tell(format!("{place}: the node does not start, and says nothing"));
            return Ok(());
        }
        Err(_) => {
            faults.note("found at the start");
            return Ok(());
        }
    };
    let (found, toll) = questioned(&node, &mut sender)?;
    node.kill()?;
    faults.note(if found > 0 { "found when it was read" } else { "harmless" });
    faults.add(place, &toll);
    Ok(())
}

/// How many answers were refused because of damage, and what was wrong in the others.
fn questioned(node: &Running, sender: &mut Sender) -> Result<(usize, Toll)> {
    let mut toll = Toll::default();
    let mut found = 0;
    for slot in &sender.ledger.slots {
        toll.looks += 1;
        match check::look(node, &slot.id) {
            Ok(stands) if stands == slot.stands => {}
            Ok(_) => {
                toll.broken.lost += 1;
                toll.told.push(format!("`{}` is not as it was acknowledged", slot.id));
            }
            Err(_) => found += 1,
        }
    }
    for (message, acknowledgement) in &sender.ledger.acknowledged {
        let reply = node.line().send(message.method, &message.path, &message.body)?;
        match reply.status {
            200 if reply.body == *acknowledgement => {}
            500 | 503 => found += 1,
            _ => {
                toll.broken.replies += 1;
                let said = String::from_utf8_lossy(&reply.body).chars().take(300).collect::<String>();
                toll.told.push(format!("an acknowledged message has another reply: {said}"));
            }
        }
    }
    for (question, before) in &sender.kept.answers {
        let reply = node.line().send("POST", "/oap/intent", question)?;
        match reply.status {
            200 if reply.body == *before => {}
            500 | 503 => found += 1,
            // An answer that was lost is given anew, signed by the same node, and shows the records of now.
            200 if signer(&reply.body).is_some_and(|found| Some(found) == signer(before)) => found += 1,
            _ => {
                toll.broken.replies += 1;
                let said = String::from_utf8_lossy(&reply.body).chars().take(300).collect::<String>();
                toll.told.push(format!("a question has another reply: {said}"));
            }
        }
    }
    if check::answers(node, &mut sender.ledger, &mut toll).is_err() {
        found += 1;
    }
    Ok((found, toll))
}

/// Who signed an answer, if anybody did.
fn signer(answer: &[u8]) -> Option<String> {
    let document = Document::parse(answer, &Limits::OURS).ok()?;
    let signed = trust::Signed::read(&document).ok()?;
    signed.verify_own("resolver_did").ok()?;
    document.root().get("resolver_did")?.as_str().map(str::to_owned)
}
