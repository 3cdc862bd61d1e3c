//! RFC 0020 §3.1: questions as intents, signed before anything is timed.
//!
//! Many issuers ask, as in life; a node that counts per issuer sees a crowd and not one who shouts.

use crate::clock;
use crate::question::Question;
use anyhow::Result;
use aql::Instant;
use serde_json::{Value, json};
use trust::SigningKey;

/// How many issuers take turns.
const ISSUERS: u8 = 64;
/// How long an intent stays open; a run is shorter.
const OPEN_SECONDS: i64 = 6 * 3600;

/// Those who ask and publish.
#[derive(Debug)]
pub struct Crowd {
    keys: Vec<SigningKey>,
    /// Tells the intents of one run from those of another.
    run: i64,
    signed: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        Self::new()
    }
}

impl Crowd {
    /// A crowd for one run.
    pub fn new() -> Self {
        let keys = (0..ISSUERS).map(|number| SigningKey::from_seed([number; 32])).collect();
        Self { keys, run: clock::now().seconds(), signed: 0 }
    }

    /// A signed intent of its own for each question, as bytes.
    pub fn sign_all(&mut self, questions: &[Question]) -> Result<Vec<Vec<u8>>> {
        questions.iter().map(|question| self.sign_intent(question)).collect()
    }

    fn sign_intent(&mut self, question: &Question) -> Result<Vec<u8>> {
        let (run, number) = (self.run, self.signed);
        self.sign(|issuer| intent(question, &format!("urn:oap:intent:bench-{run}-{number}"), issuer, clock::now()))
    }

    /// A signed publication of a manifest, as bytes.
    pub fn sign_publication(&mut self, manifest: &str) -> Result<Vec<u8>> {
        let (run, number) = (self.run, self.signed);
        let mut record: Value = serde_json::from_str(manifest)?;
        self.sign(|publisher| {
            if let Some(named) = record.pointer_mut("/tool/publisher").and_then(Value::as_object_mut) {
                named.insert("did".to_owned(), json!(publisher));
            }
            json!({
                "publication_id": format!("urn:rialto:publication:bench-{run}-{number}"),
                "kind": "manifest",
                "record": record,
                "publisher_did": publisher,
                "issued_at": clock::now().to_string(),
            })
        })
    }

    fn sign(&mut self, body: impl FnOnce(&str) -> Value) -> Result<Vec<u8>> {
        let turn = (self.signed % u64::from(ISSUERS)) as usize;
        self.signed += 1;
        let key = self.keys.get(turn).ok_or_else(|| anyhow::anyhow!("nobody is in the crowd"))?;
        let mut body = body(key.did_key().as_str());
        trust::sign(&mut body, key)?;
        Ok(body.to_string().into_bytes())
    }
}

/// A question as an unsigned intent: the ten best under a budget in EUR, showing a few fields.
pub fn intent(question: &Question, intent_id: &str, issuer: &str, now: Instant) -> Value {
    json!({
        "intent_id": intent_id,
        "issuer_did": issuer,
        "category": "discovery",
        "constraints": question.constraints,
        "projection": {"include": ["/tool/did", "/tool/name", "/sla", "/pricing/models"]},
        "budget": {
            "amount": question.ceiling,
            "currency": "EUR",
            "allocation": "ranked_top_k",
            "top_k": 10,
            "distribution": [0.19, 0.17, 0.15, 0.13, 0.11, 0.09, 0.07, 0.05, 0.03, 0.01],
        },
        "validity": {"from": now.plus(-60).to_string(), "to": now.plus(OPEN_SECONDS).to_string()},
        "resolution_policy": "ranked_set",
    })
}
