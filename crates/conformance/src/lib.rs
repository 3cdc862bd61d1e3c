//! Runs the corpus under `conformance/` against both engines, and compares them on random questions.
//!
//! A case is data; an [`Implementation`] answers it in the shape of its `expect` member. `aql` and `reference` answer
//! here; the crate `probe` puts the same cases to a live node over HTTP.

mod twin;
pub mod chance;
#[cfg(feature = "live")]
pub mod attack;
#[cfg(feature = "live")]
pub mod crash;
#[cfg(feature = "live")]
pub mod readers;
pub mod generate;
pub mod market;
pub mod standing;
pub mod differential;
pub mod patterns;

pub use probe::{Answer, Case, Corpus, ExpectedFailure, Fast, Implementation, Report, Verdict, agrees, run};
pub use twin::Twin;
