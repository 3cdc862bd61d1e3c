//! RFC 0024 §3.4: do documents of one version conform to another? Proved, or refuted by a document, or not known.
//!
//! A proof is made of rules that each are sound (`inclusion`); a refutation is a document that a validator has accepted
//! under the one schema and rejected under the other. What neither settles is told with its reason.
//!
//! INVARIANT: `compatible` is said only after a proof and `broken` only with a document.

mod facts;
mod holds;
mod inclusion;
mod sample;
mod search;

use crate::refusal::Refusal;
use json::{Pointer, Value};

pub use inclusion::Reason;
pub use sample::Sampler;

/// What is made of members that a schema does not declare and does not forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undeclared {
    /// They may be there, with any value: the letter of JSON Schema.
    Strict,
    /// Nobody sends them: the habit of people.
    Tolerant,
}

impl Undeclared {
    /// The stable word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Tolerant => "tolerant",
        }
    }
}

/// What was found about two schemas.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every document that conforms to the one conforms to the other.
    Compatible,
    /// This one does not.
    Broken {
        /// Conforms to the first schema and not to the second.
        counterexample: Value,
        /// Where it does not.
        at: Pointer,
    },
    /// Neither a proof nor a document was found.
    Unknown {
        /// What could not be shown.
        reasons: Vec<Reason>,
    },
}

impl Verdict {
    /// The stable word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Broken { .. } => "broken",
            Self::Unknown { .. } => "unknown",
        }
    }
}

/// Whether every document of `from` conforms to `to`.
pub fn check(from: &Value, to: &Value, undeclared: Undeclared) -> Result<Verdict, Refusal> {
    let reasons = match inclusion::prove(from, to, undeclared) {
        Ok(()) => return Ok(Verdict::Compatible),
        Err(reasons) => reasons,
    };
    Ok(match search::counterexample(from, to, undeclared)? {
        Some((counterexample, at)) => Verdict::Broken { counterexample, at },
        None => Verdict::Unknown { reasons },
    })
}

/// Whether a proof is found; what is checked most carefully is this.
pub fn proves(from: &Value, to: &Value, undeclared: Undeclared) -> bool {
    inclusion::prove(from, to, undeclared).is_ok()
}
