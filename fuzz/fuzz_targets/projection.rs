//! RFC 0020 §3.3, A.3 R4: what crosses the boundary.
//!
//! Both engines make the same payload or name the same failures. Beyond that the payload itself is searched: every
//! value in it stands at its old place and equals what stood there, is covered by an include, and nothing an exclude
//! reaches, or what lies below that, is in it.

#![no_main]

use aql::{Intent, Limits, Path, Projection};
use conformance::chance::Chance;
use conformance::differential::compare_projection;
use conformance::generate;
use fuzzing::{document, places};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::ops::ControlFlow;

fuzz_target!(|data: &[u8]| {
    let mut chance = Chance::from_bytes(data);
    let record = generate::record(&mut chance);
    let mut projection = generate::projection(&mut chance, &record);
    for _ in 0..chance.below(4) {
        if let Some(Value::Array(exclude)) = projection.get_mut("exclude") {
            exclude.push(json!(generate::path(&mut chance, &record)));
        }
    }
    if let Err(difference) = compare_projection(&projection, &record) {
        panic!("question {}\naql {}\nreference {}", difference.question, difference.fast, difference.twin);
    }
    search_payload(&projection, &record);
});

fn search_payload(projection: &Value, record: &Value) {
    let (intent, subject) = (document(&intent(projection)), document(record));
    let Ok(intent) = Intent::read(intent.root(), &Limits::STANDARD) else { return };
    let Ok(projected) = intent.projection.apply(subject.root(), &mut 0) else { return };
    let mut writer = json::Writer::default();
    projected.write(&mut writer);
    let payload: Value = serde_json::from_slice(&writer.finish()).expect("a payload is JSON");

    let (included, excluded) = reached(&intent.projection, &subject, record);
    for place in places(&payload) {
        let (at, shown) = (place.as_str(), payload.pointer(place.as_str()).expect("the place was found there"));
        let stood = record.pointer(at).unwrap_or_else(|| panic!("`{at}` is not in the record: {payload}"));
        let hole = shown.is_null() && in_array(record, at);
        if covers(&excluded, at) {
            assert!(hole, "`{at}` is excluded: {payload}");
        } else if !hole {
            let container = matches!(shown, Value::Array(_) | Value::Object(_));
            let same_kind =
                matches!((shown, stood), (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)));
            let same = json::canonical_value(shown) == json::canonical_value(stood);
            assert!(if container { same_kind } else { same }, "`{at}` was changed: {payload}");
            let way = container && included.iter().any(|below| is_below(below, at));
            assert!(way || covers(&included, at), "`{at}` was not asked for: {payload}");
        }
    }
}

fn intent(projection: &Value) -> Value {
    json!({
        "intent_id": "urn:oap:intent:projection", "issuer_did": "did:key:z6Mk", "category": "discovery",
        "constraints": {"path": "", "operator": "exists", "value": true}, "projection": projection,
        "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
    })
}

/// The places that the includes reach, and those that the excludes reach.
fn reached(projection: &Projection, subject: &json::Document, record: &Value) -> (HashSet<String>, HashSet<String>) {
    let all = places(record);
    let reach = |paths: &[Path]| {
        let mut positions = HashSet::new();
        for path in paths {
            let _: ControlFlow<()> = path.reach(subject.root(), &mut 0, |node| {
                positions.insert(node.position());
                ControlFlow::Continue(())
            });
        }
        let at = |place: &&json::Pointer| {
            place.find(subject.root()).is_some_and(|node| positions.contains(&node.position()))
        };
        all.iter().filter(at).map(|place| place.to_string()).collect()
    };
    (reach(projection.include()), reach(projection.exclude()))
}

/// Whether a place or one above it is in the set.
fn covers(places: &HashSet<String>, at: &str) -> bool {
    at.match_indices('/').map(|(end, _)| &at[..end]).chain([at]).any(|above| places.contains(above))
}

fn is_below(place: &str, at: &str) -> bool {
    place.strip_prefix(at).is_some_and(|rest| rest.starts_with('/'))
}

fn in_array(record: &Value, at: &str) -> bool {
    at.rsplit_once('/').is_some_and(|(above, _)| record.pointer(above).is_some_and(Value::is_array))
}
