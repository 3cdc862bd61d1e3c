//! RFC 8785: one text for each value.
//!
//! Reading the canonical bytes of a document gives the document back and its canonical bytes again; the twin writes
//! the same ones, and so do the other ways to the same value.

#![no_main]

use json::{Document, Limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(document) = Document::parse(data, &Limits::DOCUMENT) else { return };
    let canonical = json::canonical(document.root());

    let again = Document::parse(&canonical, &Limits::OURS).expect("canonical bytes are readable");
    assert!(again.root() == document.root(), "canonical bytes are another document");
    assert_eq!(json::canonical(again.root()), canonical, "canonical bytes are no fixed point");

    let twin = reference::parse(data, &reference::Limits::document()).expect("the twin reads what was read");
    assert_eq!(reference::canonical(&twin).as_bytes(), canonical, "the twin writes other bytes");

    assert_eq!(json::canonical_value(&document.root().to_value()), canonical, "the value is written otherwise");
    let copy = document.root().to_document();
    assert!(copy.root() == document.root() && copy.nodes() == document.nodes(), "the copy is another document");
    if document.root().is_object() {
        assert_eq!(json::canonical_without(document.root(), "\u{0}no such member"), canonical, "a member is missing");
    }
});
