//! RFC 0020 A.3 R2: where to look.
//!
//! Every value of every document is filed under its path and itself, without any configuration of fields. A question
//! gets two sets: documents that certainly satisfy it and documents that possibly do. Having both keeps `not` exact.
//! The evaluator decides about the difference; the index alone never does.
//!
//! New documents are filed in memory. From time to time that part is frozen and written as an immutable segment, and
//! neighbouring segments are merged, both beside the questions that go on. The index is derived from the change log:
//! what a crash takes is filed again, and what is damaged is thrown away and built anew.
//!
//! INVARIANT: certain ⊆ answer ⊆ possible, for every constraint tree and every set of documents.

mod index;
mod plan;
mod leaf;
mod scope;
mod answer;
mod part;
mod paths;
mod key;
mod fresh;
mod segment;
mod merge;
mod keyed;
mod texts;
mod trigram;
mod posting;
mod sieve;
mod current;
mod deal;
mod work;
mod bytes;
mod error;

pub use answer::Bounds;
pub use error::{Full, IndexError};
pub use fresh::New;
pub use index::{Index, UNITS_MAX};
pub use work::{Made, Merging, Sealing};

/// The number of one filed document; numbers rise and are never used again.
pub type Unit = u32;

/// How many bytes of a fact [`Index::glance`] shows.
pub const GLANCE: usize = 24;
