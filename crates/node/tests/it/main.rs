//! The node from outside: signed messages in, signed messages out, and the slow engine beside it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails loudly, and a JSON value indexed by name yields null"
)]

mod abundance;
mod accounts;
mod answers;
mod authentication;
mod decisions;
mod descriptions;
mod duties;
mod engagements;
mod evidence;
mod explanations;
mod feeds;
mod gate;
mod hosting;
mod inclusion;
mod market;
mod paging;
mod publishing;
mod questions;
mod repetition;
mod replay;
mod secrets;
mod serving;
mod timing;
mod trust_order;
mod versions;
mod world;
