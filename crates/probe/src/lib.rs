//! Puts the corpus under `conformance/` to implementations of RFC 0020: to the engine of this house, and over HTTP to a
//! live node, anybody's (RFC 0020 §7).
//!
//! A case is data; an [`Implementation`] answers it in the shape of its `expect` member. Over HTTP a case becomes
//! signed publications, a signed intent and what came back; whatever is added to make that possible is first tried on
//! the engine here, so that no case is put that would say something else than the corpus does.

mod corpus;
mod embedded;
mod implementation;
mod requirement;
mod verdict;
pub mod fast;

mod completeness;
mod examine;
mod inclusion;
mod live;
mod parties;
mod question;
mod receipt;
mod receiver;
mod shown;
mod steps;
mod surface;
mod target;
#[cfg(feature = "http")]
mod versions;
mod wire;

pub use anyhow::Error;
pub use completeness::Completeness;
pub use corpus::{Case, Corpus, ExpectedFailure};
pub use examine::{Examination, Finding, Level, Negotiation, Settings, examine};
pub use fast::Fast;
pub use implementation::{Answer, Implementation};
pub use live::Live;
pub use receiver::Receiver;
pub use requirement::Requirement;
pub use surface::Surface;
pub use target::Target;
pub use verdict::{Report, Verdict, agrees, run};
#[cfg(feature = "http")]
pub use wire::Http;
pub use wire::{Exchange, Reply, Request};
