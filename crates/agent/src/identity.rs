//! OAS Agent: whose credentials go with a call.
//!
//! | `user_identity` | `static_identity` | caller | credentials |
//! |---|---|---|---|
//! | true | any | known | the caller's own, and no others |
//! | true | set | unknown | the static ones, where the server lends them to strangers |
//! | true | none | unknown | the call is refused |
//! | false | set | any | the static ones; to strangers where the server lends them |
//! | false | none | any | none |
//!
//! INVARIANT: what is decided here is a name; credentials themselves are never a value of this crate.

use crate::Capability;
use serde::{Deserialize, Serialize};

/// Whose credentials go with a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// Those of the engagement's user for this tool.
    User,
    /// Those that the server knows by this name.
    Static(String),
    /// None.
    Nobody,
}

impl Identity {
    /// Whose credentials a call needs; nothing when it must be refused.
    pub fn of(capability: &Capability, caller_known: bool, lends_to_strangers: bool) -> Option<Self> {
        let lent = caller_known || lends_to_strangers;
        match (capability.user_identity, &capability.static_identity) {
            (true, _) if caller_known => Some(Self::User),
            (true, Some(identity)) | (false, Some(identity)) if lent => Some(Self::Static(identity.clone())),
            (true, _) | (false, Some(_)) => None,
            (false, None) => Some(Self::Nobody),
        }
    }
}
