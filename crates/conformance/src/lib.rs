//! Runs the corpus under `conformance/` against every implementation of the language, and compares them on random
//! questions.
//!
//! A case is data; an [`Implementation`] answers it in the shape of its `expect` member. `aql` and `reference` answer
//! now; a live node over HTTP is the third.

mod corpus;
mod implementation;
mod fast;
mod twin;
mod verdict;
pub mod chance;
pub mod generate;
pub mod differential;

pub use corpus::{Case, Corpus, ExpectedFailure};
pub use fast::Fast;
pub use implementation::{Answer, Implementation};
pub use twin::Twin;
pub use verdict::{Report, Verdict, agrees, run};
