//! Paths that strangers invent.

use crate::{question, seal};
use index::Index;
use json::Document;

#[test]
fn invented_paths_are_bounded_and_their_units_stay_possible() {
    let mut index = Index::in_memory();
    let mut wide = serde_json::Map::new();
    for number in 0..70 {
        for name in 0..1000 {
            wide.insert(format!("{number}-{name}"), serde_json::json!(1));
        }
        let document = Document::of(&serde_json::Value::Object(std::mem::take(&mut wide))).unwrap();
        index.insert(number, b"", document.root()).unwrap();
        index.advance(number);
    }
    let constraints = question(&serde_json::json!({"path": "/69-999", "operator": "eq", "value": 1})).unwrap();
    for _ in 0..2 {
        let bounds = index.enumerate(&constraints).unwrap();
        assert!(bounds.possible.contains(69) && !bounds.possible.contains(0) && bounds.certain.is_empty());
        seal(&mut index);
    }
}
