//! After a restart: what was acknowledged is there, and nothing else.

use super::Toll;
use super::ledger::Ledger;
use super::load::Kept;
use super::program::Running;
use crate::chance::Chance;
use anyhow::{Context, Result, bail, ensure};
use json::Value;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeMap;

/// Acknowledgements of each writer that are asked for again, and gone records that are looked for.
const SAMPLE: usize = 20;

/// Holds a restarted node to what it said before it was killed.
pub(crate) fn check(
    node: &Running,
    ledgers: &mut [Ledger],
    kept: &Kept,
    highest: u64,
    everything: bool,
    chance: &mut Chance<'_>,
    toll: &mut Toll,
) -> Result<()> {
    let health: Value = serde_json::from_slice(&node.get("/health")?.body)?;
    let sequence = health.get("sequence").and_then(Value::as_u64).context("the node tells no sequence")?;
    if sequence < highest {
        toll.broken.sequence += 1;
        toll.tell(format!("the log ends at {sequence}, and {highest} was acknowledged"));
    }
    for (question, answer) in &kept.answers {
        repeat(node, ("POST", "/oap/intent", question), answer, toll)?;
    }
    let mut living = BTreeMap::new();
    for ledger in ledgers.iter_mut() {
        check_records(node, ledger, &mut living, toll)?;
        check_gone(node, ledger, everything, chance, toll)?;
        let last = ledger.acknowledged.len().saturating_sub(SAMPLE);
        for (message, acknowledgement) in ledger.acknowledged.iter().skip(last) {
            repeat(node, (message.method, &message.path, &message.body), acknowledgement, toll)?;
        }
        settle(node, ledger, &mut living, toll)?;
    }
    match ledgers.first_mut() {
        Some(asker) => check_answers(node, asker, &living, toll),
        None => Ok(()),
    }
}

/// Answers show every living record, as it is, and no other.
fn check_answers(
    node: &Running,
    asker: &mut Ledger,
    living: &BTreeMap<String, Option<Vec<u8>>>,
    toll: &mut Toll,
) -> Result<()> {
    let mut shown = BTreeMap::new();
    for category in ["commercial", "knowledge"] {
        let question = asker.question(category, None)?;
        let mut path = "/oap/intent".to_owned();
        loop {
            let reply = node.line().send("POST", &path, &question)?;
            ensure!(reply.status == 200, "an intent is refused: {}", String::from_utf8_lossy(&reply.body));
            let answer: Value = serde_json::from_slice(&reply.body)?;
            for found in answer.get("candidates").and_then(Value::as_array).into_iter().flatten() {
                let text = |pointer: &str| found.pointer(pointer).map(Value::to_string).unwrap_or_default();
                let id = found.get("candidate_id").and_then(Value::as_str).unwrap_or_default();
                shown.insert(id.to_owned(), text("/payload/n"));
            }
            let Some(cursor) = answer.get("next_cursor").and_then(Value::as_str) else { break };
            path = format!("/oap/intent?cursor={}", utf8_percent_encode(cursor, NON_ALPHANUMERIC));
        }
    }
    let numbered = |bytes: &Vec<u8>| {
        let publication: Value = serde_json::from_slice(bytes).ok()?;
        Some(publication.pointer("/record/n")?.to_string())
    };
    let mut expected = BTreeMap::new();
    for (id, bytes) in living {
        expected.extend(bytes.as_ref().and_then(numbered).map(|number| (id.clone(), number)));
    }
    for (id, number) in &expected {
        if shown.get(id) != Some(number) {
            toll.broken.unseen += 1;
            toll.tell(format!("`{id}` is there and the answer shows {:?} of it", shown.get(id)));
        }
    }
    for id in shown.keys().filter(|id| !expected.contains_key(*id)) {
        toll.broken.phantom += 1;
        toll.tell(format!("an answer shows `{id}`, which is not there"));
    }
    Ok(())
}

/// Every record stands as it was acknowledged, or as the message under way would leave it.
fn check_records(
    node: &Running,
    ledger: &Ledger,
    living: &mut BTreeMap<String, Option<Vec<u8>>>,
    toll: &mut Toll,
) -> Result<()> {
    for (position, slot) in ledger.slots.iter().enumerate() {
        let found = look(node, &slot.id)?;
        toll.looks += 1;
        let under_way = ledger.under_way().filter(|message| message.slot == position);
        if found != slot.stands {
            let took_effect = under_way.is_some_and(|message| found == message.leaves);
            toll.under_way_kept += usize::from(took_effect);
            if !took_effect {
                let (kind, what) = match &found {
                    None => (&mut toll.broken.lost, "is gone"),
                    Some(_) if slot.stands.is_some() => (&mut toll.broken.lost, "is not as it was acknowledged"),
                    Some(_) => (&mut toll.broken.phantom, "is there"),
                };
                *kind += 1;
                toll.tell(format!("`{}` {what}", slot.id));
            }
        }
        living.insert(slot.id.clone(), found);
    }
    Ok(())
}

/// What was withdrawn or refused is not there.
fn check_gone(
    node: &Running,
    ledger: &Ledger,
    everything: bool,
    chance: &mut Chance<'_>,
    toll: &mut Toll,
) -> Result<()> {
    for gone in [&ledger.retired, &ledger.refused] {
        let count = if everything { gone.len() } else { SAMPLE.min(gone.len()) };
        for step in 0..count {
            let position = if everything { step } else { chance.below(gone.len()) };
            let Some(id) = gone.get(position) else { continue };
            toll.looks += 1;
            if look(node, id)?.is_some() {
                toll.broken.phantom += 1;
                toll.tell(format!("`{id}` was withdrawn or refused, and is there"));
            }
        }
    }
    Ok(())
}

/// The same message again has the same reply.
fn repeat(node: &Running, message: (&str, &str, &[u8]), before: &[u8], toll: &mut Toll) -> Result<()> {
    let (method, path, body) = message;
    let reply = node.line().send(method, path, body)?;
    if reply.body != before {
        toll.broken.replies += 1;
        let said = String::from_utf8_lossy(&reply.body).chars().take(200).collect::<String>();
        toll.tell(format!("the same message to {path} has another reply than before: {said}"));
    }
    Ok(())
}

/// Sends the message that was under way again, so that its record is certain.
///
/// It was good before the kill. A node that refuses it now has forgotten what the message rests on.
fn settle(
    node: &Running,
    ledger: &mut Ledger,
    living: &mut BTreeMap<String, Option<Vec<u8>>>,
    toll: &mut Toll,
) -> Result<()> {
    let Some(message) = ledger.under_way().cloned() else { return Ok(()) };
    let reply = node.line().send(message.method, &message.path, &message.body)?;
    if reply.status != 200 {
        toll.broken.lost += 1;
        let said = String::from_utf8_lossy(&reply.body).chars().take(200).collect::<String>();
        toll.tell(format!("a message that was under way is refused when it is sent again: {said}"));
        return Ok(());
    }
    if let Some(slot) = ledger.slots.get(message.slot) {
        living.insert(slot.id.clone(), message.leaves.clone());
    }
    ledger.acknowledge(reply.body);
    Ok(())
}

/// Whether every record stands as it was acknowledged, and nothing more.
pub(crate) fn look_at_all(node: &Running, ledger: &Ledger) -> Result<Toll> {
    let mut toll = Toll::default();
    check_records(node, ledger, &mut BTreeMap::new(), &mut toll)?;
    Ok(toll)
}

/// Whether answers show every record as it was acknowledged, and no other.
pub(crate) fn answers(node: &Running, ledger: &mut Ledger, toll: &mut Toll) -> Result<()> {
    let living = ledger.slots.iter().map(|slot| (slot.id.clone(), slot.stands.clone())).collect();
    check_answers(node, ledger, &living, toll)
}

/// The record at an id, byte for byte.
pub(crate) fn look(node: &Running, id: &str) -> Result<Option<Vec<u8>>> {
    let path = format!("/oap/records/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
    let reply = node.get(&path)?;
    match reply.status {
        200 => Ok(Some(reply.body)),
        404 => Ok(None),
        status => bail!("`{id}` is answered with status {status}: {}", String::from_utf8_lossy(&reply.body)),
    }
}
