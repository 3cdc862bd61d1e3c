//! Documents: bounded strict parsing, places, canonical bytes.
//!
//! Why not plain `serde_json`: a signature covers one reading of a document, so input that two parsers could read
//! differently (duplicate keys, integers beyond 2^53, lone surrogates) is refused before anything else looks at it;
//! every refusal names its place; and a parsed [`Document`] is flat, so that a question touches few cache lines.
//! `serde_json` stays the tool for *building* documents ([`Value`] is its value).
//!
//! INVARIANT: no IO, clock, randomness or logging in this crate.

mod parse;
mod document;
mod shape;
mod pointer;
mod canonical;
mod build;
mod packed;
mod instant;
mod read;
pub mod yaml;

pub use build::{Builder, Open, Piece};
pub use canonical::{Writer, canonical, canonical_value, canonical_without, compare_keys};
pub use document::{Document, Elements, Kind, Members, Node, Text};
pub use instant::Instant;
pub use packed::{Packer, Unpacker};
pub use parse::{Code, Exceeded, Limits, ParseError, number};
pub use pointer::{InvalidPointer, Pointer};
pub use read::{At, Codes, Mistake, Refusal, Refuse};
pub use serde_json::{Value, json};

/// The members of a [`Value`] that is an object.
pub type Map = serde_json::Map<String, Value>;
pub use shape::{Form, Key, Near, Shape, ShapeId, Shapes};
