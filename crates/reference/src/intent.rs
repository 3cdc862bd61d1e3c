//! RFC 0020 §3.1: the intent document, read into what resolving it needs.
//!
//! The document is closed: what nobody knows is refused. Whether its signature is true is not decided here, and
//! whether its window is open is decided by `window`, with the time as an argument.

#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::constraint::Constraint;
use crate::fields::{Field, Fields};
use crate::payment::check_payment_constraints;
use crate::projection::Projection;
use crate::quality::Quality;
use crate::refusal::Refusal;
use crate::value::Value;
use crate::window::{CATEGORIES, read_validity};

const MEMBERS: [&str; 17] = [
    "intent_id",
    "issuer_did",
    "agent_did",
    "delegation_chain",
    "category",
    "constraints",
    "projection",
    "budget",
    "quality_floor",
    "validity",
    "resolution_policy",
    "max_event_rate_per_minute",
    "signature",
    "payment_constraints",
    "schema_version",
    "version_negotiation",
    "schema_id",
];

const INTENT_ID_PREFIX: &str = "urn:oap:intent:";
const DID: &str = "^did:[a-z0-9]+:.+$";

/// An intent that was read without a flaw.
#[derive(Debug, Clone)]
pub struct Intent {
    pub(crate) category: &'static str,
    pub(crate) constraints: Constraint,
    pub(crate) projection: Projection,
    pub(crate) budget: Option<Budget>,
    pub(crate) quality_floor: Quality,
    pub(crate) resolution_policy: &'static str,
}

/// Reads an intent document.
pub fn read_intent(document: &Value) -> Result<Intent, Refusal> {
    let fields = Field::new(document, "").closed(&MEMBERS)?;
    check_parties(&fields)?;
    let category = fields.required("category")?.one_of(&CATEGORIES)?;
    let constraints = Constraint::read(&fields.required("constraints")?)?;
    let projection = Projection::read(&fields.required("projection")?)?;
    let budget = fields.optional("budget").map(|block| Budget::read(&block)).transpose()?;
    let quality_floor = fields.optional("quality_floor").map(|block| Quality::read_floor(&block)).transpose()?;
    read_validity(&fields.required("validity")?)?;
    let policy = fields.optional("resolution_policy");
    let policy = policy.map(|policy| policy.one_of(&["single_best", "ranked_set", "full_set"])).transpose()?;
    check_event_rate(&fields, category)?;
    check_signature(&fields)?;
    check_payment(&fields, category)?;
    check_versions(&fields)?;
    Ok(Intent {
        category,
        constraints,
        projection,
        budget,
        quality_floor: quality_floor.unwrap_or_default(),
        resolution_policy: policy.unwrap_or("ranked_set"),
    })
}

fn check_parties(fields: &Fields) -> Result<(), Refusal> {
    let intent_id = fields.required("intent_id")?;
    let name = intent_id.text()?.strip_prefix(INTENT_ID_PREFIX);
    // The published pattern is `.+`, and a dot is no line terminator.
    let is_line = |name: &str| !name.is_empty() && !name.contains(['\n', '\r', '\u{2028}', '\u{2029}']);
    if !name.is_some_and(is_line) {
        return Err(intent_id.refusal("invalid_value"));
    }
    if name.is_some_and(|name| name.chars().any(char::is_control)) {
        return Err(intent_id.refusal("invalid_unicode"));
    }
    fields.required("issuer_did")?.matching(DID)?;
    if let Some(agent) = fields.optional("agent_did") {
        agent.matching(DID)?;
    }
    if let Some(chain) = fields.optional("delegation_chain") {
        for token in chain.elements()? {
            token.object()?;
        }
    }
    Ok(())
}

fn check_event_rate(fields: &Fields, category: &str) -> Result<(), Refusal> {
    match fields.optional("max_event_rate_per_minute") {
        Some(rate) => rate.integer(1.0).map(|_| ()),
        None if category == "subscription" => Err(Refusal::new("event_rate_missing", "/max_event_rate_per_minute")),
        None => Ok(()),
    }
}

fn check_signature(fields: &Fields) -> Result<(), Refusal> {
    let Some(signature) = fields.optional("signature") else { return Ok(()) };
    let fields = signature.closed(&["alg", "value", "kid"])?;
    let algorithm = fields.required("alg")?;
    if !["EdDSA", "ES256", "ES384"].contains(&algorithm.text()?) {
        return Err(algorithm.refusal("alg_not_allowed"));
    }
    fields.required("value")?.text()?;
    if let Some(kid) = fields.optional("kid") {
        kid.text()?;
    }
    Ok(())
}

fn check_payment(fields: &Fields, category: &str) -> Result<(), Refusal> {
    match fields.optional("payment_constraints") {
        Some(block) if category != "commercial" => Err(block.refusal("payment_constraints_misplaced")),
        Some(block) => check_payment_constraints(&block),
        None => Ok(()),
    }
}

fn check_versions(fields: &Fields) -> Result<(), Refusal> {
    for name in ["schema_version", "schema_id"] {
        if let Some(text) = fields.optional(name) {
            text.text()?;
        }
    }
    let Some(negotiation) = fields.optional("version_negotiation") else { return Ok(()) };
    let names = ["permit_upgrade", "permit_downgrade"];
    let fields = negotiation.closed(&names)?;
    for name in names {
        if let Some(switch) = fields.optional(name) {
            switch.boolean()?;
        }
    }
    Ok(())
}
