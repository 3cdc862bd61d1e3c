//! RFC 0020 §3.6 knowledge: what is delivered is proved, attributed and counted.
//!
//! An answer is a closed document, so its proofs stand beside it, under its own name: `/oap/consumption/{response_id}`
//! has the receipts of an answer, and each receipt is found by its own name for as long as its file is kept.

use crate::collection::{Collection, subject};
use crate::meter::{Delivered, Delivery, RECEIPT, Tariff};
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use crate::replies::Key;
use crate::resolve::{Accepted, Decided, expiry, key_of};
use aql::Category;
use json::json;
use trust::Digest;

impl Node {
    /// Writes down what an answer is about to deliver; answers of other categories deliver nothing.
    pub(crate) fn meter(&self, accepted: &Accepted, matches: &[Decided], key: Key) -> Result<(), Error> {
        let intent = &accepted.intent;
        if intent.category != Category::Knowledge || matches.is_empty() {
            return Ok(());
        }
        let delivery = Delivery {
            key,
            intent_id: &intent.intent_id,
            principal: &intent.issuer_did,
            agent: intent.agent_did.as_deref().unwrap_or(&intent.issuer_did),
            input: Digest::of(&json::canonical(accepted.document.root())),
            expires: expiry(intent),
            at: self.clock.now().to_string(),
            nodes: matches.iter().map(|decided| self.delivered(decided)).collect::<Result<_, _>>()?,
        };
        self.meter.deliver(&delivery, &self.identity, self.clock.millis())
    }

    fn delivered(&self, decided: &Decided) -> Result<Delivered, Error> {
        let candidate = &decided.judged.candidate;
        let record = candidate.record();
        let provider = match subject(Collection::Knowledge, record) {
            Some(provider) => provider.to_owned(),
            // A record that names nobody is its publisher's.
            None => self.store.latest(&candidate.id)?.map(|record| record.publisher).unwrap_or_default(),
        };
        Ok(Delivered {
            id: candidate.id.clone(),
            provider,
            tariff: Tariff::of(record),
            payload: decided.judged.judgement.payload.clone().unwrap_or_default(),
        })
    }

    /// The receipts of an answer, or one receipt by its own name, signed.
    pub fn consumption(&self, name: &str) -> Result<Vec<u8>, Error> {
        let receipts = match key_of(name) {
            _ if name.starts_with(RECEIPT) => self.meter.receipt(name)?.into_iter().collect(),
            Some(key) if self.is_answer(key, name)? => self.meter.receipts_of(key)?,
            _ => Vec::new(),
        };
        if receipts.is_empty() {
            let detail = "no delivery has this name; answers are known until their intents expire, receipts for good";
            return Err(Refusal::new(Class::NotFound, "receipt_not_found", detail).into());
        }
        let output = json!({
            "type": "oap.consumption",
            "receipts": receipts,
            "resolver_did": self.identity.did().as_str(),
        });
        Ok(self.envelope(name, output, self.clock.millis()))
    }

    /// What the nodes of a provider add up to since the node began, signed.
    pub fn metering(&self, provider: &str) -> Result<Vec<u8>, Error> {
        let output = json!({
            "type": "oap.metering",
            "provider_did": provider,
            "sums": self.meter.sums(provider)?,
            "resolver_did": self.identity.did().as_str(),
        });
        let name = format!("urn:rialto:metering:{}", Digest::of(provider.as_bytes()));
        Ok(self.envelope(&name, output, self.clock.millis()))
    }
}
