//! RFC 0020 §3.2, RFC 6901: pointers and paths over generated documents.
//!
//! A path is read or refused as the twin does it, and it reaches something exactly where the twin's `exists` holds. A
//! path without wildcards reaches what [`json::Pointer`] finds, and the pointer of every value finds that value.

#![no_main]

use aql::{Constraints, Limits, Path};
use conformance::chance::Chance;
use conformance::generate;
use fuzzing::{document, first_line, head, places, refused, spell, text, twin_refused, twin_value};
use json::Pointer;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::ops::ControlFlow;

#[rustfmt::skip]
const SEGMENTS: [&str; 40] = [
    "/", "/a", "/b", "/c", "/tags", "/price", "/0", "/1", "/2", "/*", "/**", "/a~1b", "/m~0n", "/\u{1f600}", "//", "a",
    "0", "~", "~0", "~1", "~2", "~01", "*", "**", "/-", "/01", "/00", "/10", "/+1", "/18446744073709551616", "/amount",
    "/currency", " ", "/é", "/**/a", "/*/*", "/~", "b", "/a/b", "\u{0}",
];

fuzz_target!(|data: &[u8]| {
    // A first byte beyond ASCII asks for words, so that seeds can be written by hand: a path and a document below it.
    let (path, value) = match data.split_first() {
        Some((&first @ 0x80.., rest)) => {
            let (path, choices) = rest.split_at(rest.len().min(usize::from(first % 64)));
            (spell(path, &SEGMENTS), generate::record(&mut Chance::from_bytes(choices)))
        }
        _ => {
            let text = text(data);
            let (path, document) = first_line(&text);
            let read = json::Document::parse(document.as_bytes(), &json::Limits::INTENT);
            (head(path, 600).to_owned(), read.map_or(Value::Null, |document| document.root().to_value()))
        }
    };
    exists(&path, &value);
    same_as_pointer(&path, &value);
    every_place_is_found(&value);
});

fn exists(path: &str, value: &Value) {
    let leaf = json!({"path": path, "operator": "exists", "value": true});
    let (tree, subject) = (document(&leaf), document(value));
    let at = Pointer::root().child("constraints");
    let reached = Constraints::read(tree.root(), at, &Limits::STANDARD).map(|constraints| {
        let mut evaluator = aql::Evaluator::new(aql::Fuel::OWN);
        evaluator.evaluate(&constraints, subject.root()).expect("there is fuel enough")
    });
    let twin = reference::evaluate(&twin_value(&leaf), &twin_value(value)).map(|evaluation| evaluation.holds);
    let (reached, twin) =
        (reached.map_err(|refusal| refused(&refusal)), twin.map_err(|refusal| twin_refused(&refusal)));
    assert_eq!(reached, twin, "{path:?} over {value}");
}

fn same_as_pointer(path: &str, value: &Value) {
    let wild = path.split('/').skip(1).any(|segment| segment == "*" || segment == "**");
    let (read, pointer) = (Path::read(path, &Pointer::root(), &Limits::STANDARD), Pointer::parse(path));
    if let Err(refusal) = &read {
        let bound = matches!(refusal.code, aql::Code::PathTooLong | aql::Code::PathTooComplex);
        assert!(bound || pointer.is_err(), "{path:?} is a pointer and no path: {refusal}");
        return;
    }
    let (path, pointer) = (read.unwrap(), pointer.expect("every path is written like a pointer"));
    // `/` is the whole document here and the member of the empty name in RFC 6901.
    if wild || path.text() == "/" {
        return;
    }
    let subject = document(value);
    let mut reached = Vec::new();
    let flow: ControlFlow<()> = path.reach(subject.root(), &mut 0, |node| {
        reached.push(node.position());
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    let found: Vec<usize> = pointer.find(subject.root()).map(|node| node.position()).into_iter().collect();
    assert_eq!(reached, found, "{pointer} over {value}");
}

fn every_place_is_found(value: &Value) {
    let subject = document(value);
    let places = places(value);
    assert_eq!(places.len(), subject.nodes(), "{value}");
    for place in places {
        assert_eq!(Pointer::parse(place.as_str()).as_ref(), Ok(&place));
        let found = place.find(subject.root()).map(|node| node.to_value());
        let expected = value.pointer(place.as_str());
        assert_eq!(
            found.as_ref().map(json::canonical_value),
            expected.map(json::canonical_value),
            "{place} in {value}"
        );
    }
}
