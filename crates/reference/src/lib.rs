//! RFC 0020 Appendix A, written down literally and slowly.
//!
//! The definitional twin of the fast engine: every rule is the plainest program that carries it out, so that a
//! reader can lay a file beside its section and compare. Where the two engines differ, one of them has a bug.
//!
//! INVARIANT: nothing here is shared with the other crates of the workspace, not even the JSON reader.

mod refusal;
mod value;

mod canonical;
mod parse;

mod decimal;
mod instant;
mod order;

mod pattern;

mod pointer;

mod constraint;
mod evaluate;
mod projection;

mod budget;
mod fields;
mod intent;
mod payment;
mod quality;
mod window;

mod allocate;
mod candidate;
mod likeness;
mod rank;
mod resolve;

pub use canonical::canonical;
pub use evaluate::{Evaluation, LeafRecord, evaluate};
pub use intent::{Intent, read_intent};
pub use order::order;
pub use parse::{Limits, parse};
pub use pattern::matches;
pub use projection::project;
pub use refusal::Refusal;
pub use resolve::{Chosen, OverBudget, Refused, Resolution, resolve};
pub use value::Value;
pub use window::window;
