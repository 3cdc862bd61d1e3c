//! RFC 0024 §3.4: is a change additive? Only optional fields more, and nothing that was there is altered.
//!
//! What is additive may be republished under the same identifier and version. Everything else is a new version.

use crate::compare::{Change, Effect, compare};
use crate::refusal::{Code, Refusal};
use json::Value;

/// Whether `new` may take the place of `old` under the same identifier; names the first change that may not.
pub fn additive(old: &Value, new: &Value) -> Result<(), Refusal> {
    match compare(old, new).into_iter().find(|change| !is_additive(change)) {
        None => Ok(()),
        Some(change) => {
            let detail = format!("`{}` is more than an optional field; publish a new version", change.rule);
            Err(Refusal::new(Code::ChangedIncompatibly, change.at, detail))
        }
    }
}

/// An added member that is also demanded shows as a change of `required` by itself.
fn is_additive(change: &Change) -> bool {
    change.rule == "property-added" || change.effect == Effect::Neutral
}
