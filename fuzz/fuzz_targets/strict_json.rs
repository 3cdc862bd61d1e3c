//! RFC 0020 §3.1: arbitrary bytes to the strict reader.
//!
//! Both engines read the same bytes under the same limits and must agree: the same canonical text, or the same code at
//! the same place, which is that of the first flaw in reading order. What is accepted, `serde_json` accepts and
//! understands alike. A third set of tiny limits lets short inputs pass every one of them.

#![no_main]

use fuzzing::{twin_refused, unread};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    check(data, &json::Limits::INTENT, &reference::Limits::intent());
    check(data, &json::Limits::DOCUMENT, &reference::Limits::document());
    let ours =
        json::Limits { bytes: 512, depth: 3, nodes: 9, keys: 2, key_bytes: 3, string_bytes: 5, ..json::Limits::INTENT };
    let theirs = reference::Limits { bytes: 512, depth: 3, nodes: 9, keys: 2, key_bytes: 3, string_bytes: 5 };
    check(data, &ours, &theirs);
});

fn check(data: &[u8], ours: &json::Limits, theirs: &reference::Limits) {
    let read = json::Document::parse(data, ours);
    let canonical = read.as_ref().map(|document| json::canonical(document.root())).map_err(unread);
    let twin = reference::parse(data, theirs).map(|value| reference::canonical(&value).into_bytes());
    assert_eq!(canonical, twin.map_err(|refusal| twin_refused(&refusal)), "the readers differ under {ours:?}");
    if let Ok(canonical) = canonical {
        let serde: serde_json::Value = serde_json::from_slice(data).expect("serde_json refuses what was accepted");
        assert_eq!(json::canonical_value(&serde), canonical, "serde_json reads another document");
    }
}
