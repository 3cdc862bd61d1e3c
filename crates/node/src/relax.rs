//! RFC 0020 §3.7: what a question as a whole runs into.

use crate::node::Node;
use crate::refusal::Error;
use crate::resolve::Accepted;
use json::{Value, json};

impl Node {
    /// How many candidates satisfy the question and each of its leaves.
    pub(crate) fn explain_question(&self, accepted: &Accepted) -> Result<Value, Error> {
        let intent = &accepted.intent;
        let bounds = self.with_market(intent, |market| market.bounds(&intent.constraints))?;
        Ok(json!({
            "type": "oap.explanation",
            "intent_id": intent.intent_id,
            "resolver_did": self.identity.did().as_str(),
            "satisfied": {"at_least": bounds.certain.len(), "at_most": bounds.possible.len()},
        }))
    }
}
