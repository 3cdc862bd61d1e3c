//! The index from outside: against asking every document, through crashes and damage.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails loudly")]

mod crash;
mod damage;
mod model;
mod paths;

use aql::{Constraints, Limits};
use index::Index;
use json::{Document, Pointer};

/// Reads a question.
fn question(value: &serde_json::Value) -> Option<Constraints> {
    let document = Document::of(value).unwrap();
    Constraints::read(document.root(), Pointer::root(), &Limits::STANDARD).ok()
}

/// Writes whatever is fresh; says whether there was anything.
fn seal(index: &mut Index) -> bool {
    let Some(sealing) = index.freeze(1) else { return false };
    let made = sealing.run().unwrap();
    index.adopt(made).unwrap();
    true
}

/// Merges everything that may become one segment.
fn merge_all(index: &mut Index) -> bool {
    let Some(merging) = index.merge_all() else { return false };
    let made = merging.run().unwrap();
    index.adopt(made).unwrap();
    true
}
