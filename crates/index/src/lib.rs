//! RFC 0020 A.3 R2: where to look.
//!
//! Every value of every record is filed under its path and itself, without any configuration of fields. A question
//! gets two sets: records that certainly satisfy it and records that possibly do. Having both keeps `not` exact. The
//! evaluator decides about the difference; the index alone never does.
//!
//! The index is derived from the records and can be thrown away.
//!
//! INVARIANT: certain ⊆ answer ⊆ possible, for every constraint tree and every set of records.

mod paths;
mod key;
mod column;
mod leaf;
mod index;

pub use index::{Bounds, Index};
