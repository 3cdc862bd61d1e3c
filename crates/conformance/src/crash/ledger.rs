//! What one writer sent, what was acknowledged, and what may therefore be there.
//!
//! INVARIANT: a writer has one message under way at most, so after a kill one message at most is uncertain.

use super::clock;
use crate::chance::Chance;
use anyhow::Result;
use aql::Instant;
use json::{Value, json};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;
use trust::{Digest, SigningKey};

/// Records that a writer has at once.
const SLOTS: usize = 64;

/// A message about a record.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Which record.
    pub(crate) slot: usize,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    /// What the record is afterwards; `None` when it is withdrawn.
    pub(crate) leaves: Option<Vec<u8>>,
}

/// A record of a writer.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    /// What was acknowledged last: the bytes, or that there are none.
    pub(crate) stands: Option<Vec<u8>>,
    /// Whether anything was ever acknowledged about it.
    pub(crate) known: bool,
}

/// The books of one writer.
#[derive(Clone)]
pub(crate) struct Ledger {
    key: Arc<SigningKey>,
    name: String,
    count: u64,
    pub(crate) slots: Vec<Slot>,
    /// Records that were withdrawn for good.
    pub(crate) retired: Vec<String>,
    /// Records that were refused and must never be there.
    pub(crate) refused: Vec<String>,
    sent: Option<Message>,
    /// The last acknowledged messages, with their acknowledgements.
    pub(crate) acknowledged: Vec<(Message, Vec<u8>)>,
}

/// The word by which answers find every record of a run.
pub(crate) const RUN: &str = "crash";

impl Ledger {
    pub(crate) fn new(seed: u64, writer: usize) -> Self {
        Self::with_slots(seed, writer, SLOTS)
    }

    /// The books of a writer with so many records.
    pub(crate) fn with_slots(seed: u64, writer: usize, slots: usize) -> Self {
        let seed = Digest::of(format!("{RUN} {seed} {writer}").as_bytes());
        let name = format!("urn:rialto:{RUN}:{writer}");
        let mut ledger = Self {
            key: Arc::new(SigningKey::from_seed(*seed.as_bytes())),
            name,
            count: 0,
            slots: Vec::new(),
            retired: Vec::new(),
            refused: Vec::new(),
            sent: None,
            acknowledged: Vec::new(),
        };
        for _ in 0..slots {
            let slot = ledger.fresh();
            ledger.slots.push(slot);
        }
        ledger
    }

    fn fresh(&mut self) -> Slot {
        self.count += 1;
        let kind = if self.count.is_multiple_of(2) { "offer" } else { "knowledge" };
        Slot { id: format!("{}:{}", self.name, self.count), kind, stands: None, known: false }
    }

    /// The message that was under way when the node was killed.
    pub(crate) fn under_way(&self) -> Option<&Message> {
        self.sent.as_ref()
    }

    /// What the writer does next: mostly publishes or changes a record, now and then withdraws one.
    pub(crate) fn next(&mut self, chance: &mut Chance<'_>) -> Result<Message> {
        let slot = chance.below(self.slots.len());
        let gone = self.slots.get(slot).is_some_and(|slot| slot.known && slot.stands.is_none());
        if gone && chance.below(2) == 0 {
            let fresh = self.fresh();
            if let Some(old) = self.slots.get_mut(slot) {
                self.retired.push(std::mem::replace(old, fresh).id);
            }
        }
        let Some(Slot { id, kind, stands, .. }) = self.slots.get(slot).cloned() else { anyhow::bail!("no slot") };
        let message = if stands.is_some() && chance.below(5) == 0 {
            let body = self.signed(json!({"withdraw": id}))?;
            let path = format!("/oap/records/{}", utf8_percent_encode(&id, NON_ALPHANUMERIC));
            Message { slot, method: "DELETE", path, body, leaves: None }
        } else {
            let text = "x".repeat(chance.below(2_000));
            let record = json!({"id": id, "run": RUN, "n": self.count, "text": text, "@type": "oap.knowledge"});
            let body = self.signed(json!({"kind": kind, "record": record}))?;
            Message { slot, method: "POST", path: "/oap/records".into(), leaves: Some(body.clone()), body }
        };
        self.sent = Some(message.clone());
        Ok(message)
    }

    /// A publication that must be refused: the signature is of another document.
    pub(crate) fn forged(&mut self) -> Result<Vec<u8>> {
        let id = self.fresh().id;
        let record = json!({"id": id, "run": RUN, "@type": "oap.knowledge"});
        let mut forged: Value = serde_json::from_slice(&self.signed(json!({"kind": "knowledge", "record": record}))?)?;
        if let Some(members) = forged.as_object_mut() {
            members.insert("kind".into(), json!("offer"));
        }
        self.refused.push(id);
        Ok(forged.to_string().into_bytes())
    }

    fn signed(&mut self, message: Value) -> Result<Vec<u8>> {
        self.count += 1;
        signed(&self.key, &format!("{}:{}", self.name, self.count), message)
    }

    /// A signed question for every record of a kind.
    pub(crate) fn question(&mut self, category: &str, only: Option<&str>) -> Result<Vec<u8>> {
        self.count += 1;
        let mut constraints = vec![json!({"path": "/run", "operator": "eq", "value": RUN})];
        constraints.extend(only.map(|id| json!({"path": "/id", "operator": "eq", "value": id})));
        let time = |seconds: i64| Instant::from_unix(clock() + seconds, 0).to_string();
        let mut intent = json!({
            "intent_id": format!("urn:oap:intent:{}:{}", self.name, self.count),
            "issuer_did": self.key.did_key().as_str(), "category": category, "constraints": constraints,
            "projection": {"include": ["/id", "/n"]}, "resolution_policy": "full_set",
            "validity": {"from": time(-60), "to": time(7_200)},
        });
        trust::sign(&mut intent, &self.key)?;
        Ok(intent.to_string().into_bytes())
    }

    /// Notes that the message under way was acknowledged.
    pub(crate) fn acknowledge(&mut self, acknowledgement: Vec<u8>) {
        let Some(message) = self.sent.take() else { return };
        if let Some(slot) = self.slots.get_mut(message.slot) {
            slot.stands.clone_from(&message.leaves);
            slot.known = true;
        }
        self.acknowledged.push((message, acknowledgement));
    }
}

/// A message about a record, with a name of its own, signed by whoever publishes it.
pub(crate) fn signed(key: &SigningKey, name: &str, mut message: Value) -> Result<Vec<u8>> {
    if let Some(members) = message.as_object_mut() {
        members.insert("publication_id".into(), json!(format!("urn:rialto:publication:{name}")));
        members.insert("publisher_did".into(), json!(key.did_key().as_str()));
        members.insert("issued_at".into(), json!(Instant::from_unix(clock(), 0).to_string()));
    }
    trust::sign(&mut message, key)?;
    Ok(message.to_string().into_bytes())
}
