//! The benchmark from outside: its corpus, its questions, the peer, and a stand-in for a node.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

mod agreement;
mod corpus;
mod standin;
