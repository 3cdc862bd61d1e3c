//! RFC 0020 §3.6: who wants to know.
//!
//! The question turned round: many standing intents, one changed document.
//!
//! INVARIANT: no IO, clock, chance, `async` or logging in this crate; time is an argument.

mod audience;
pub mod webhook;

pub use audience::{Audience, Found};
