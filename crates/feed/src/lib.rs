//! RFC 0020 §3.6: who wants to know.
//!
//! The question turned round: many standing intents, one changed document.
//!
//! INVARIANT: no IO, clock, chance, `async` or logging in this crate; time is an argument.

mod audience;
pub mod cursor;
mod event;
pub mod inclusion;
pub mod rate;
pub mod subscription;
pub mod webhook;

pub use audience::{Audience, Found};
pub use cursor::{CursorError, Journal, Place};
pub use event::{Cause, Event, EventType, Seen, SetChange, told};
pub use rate::{Bucket, Waiting};
pub use subscription::{Acknowledgement, Request, Transport};
