//! The bounds of an engagement: how much of a server one conversation may use.

use crate::assertion;
use crate::document::{CAPABILITIES_MAX, DOCUMENT_LIMITS, EXPOSED_MAX};
use json::{Value, json};

/// What one engagement may use; whatever passes a bound ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that the model may attempt.
    pub calls: usize,
    /// Turns of the model.
    pub turns: usize,
    /// Bytes of everything that was said, put in and brought out.
    pub bytes: usize,
    /// Tokens that the model may read and write together, where somebody counts them.
    pub tokens: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { calls: 50, turns: 100, bytes: 4 * 1024 * 1024, tokens: None }
    }
}

impl Limits {
    /// The limits table: what a server publishes of the bounds of documents, assertions and engagements.
    pub fn table(&self) -> Value {
        json!({
            "document": {
                "bytes": DOCUMENT_LIMITS.bytes, "depth": DOCUMENT_LIMITS.depth, "nodes": DOCUMENT_LIMITS.nodes,
                "capabilities": CAPABILITIES_MAX, "exposes": EXPOSED_MAX,
            },
            "assertion": assertion::limits(),
            "engagement": {"calls": self.calls, "turns": self.turns, "bytes": self.bytes, "tokens": self.tokens},
        })
    }
}
