//! Paths that strangers invent, and positions in arrays.

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

#[test]
fn the_first_element_is_known_and_others_are_possible() {
    let records = [
        serde_json::json!({"a": [{"b": 1, "c": [1, 2]}, {"b": 2}]}),
        serde_json::json!({"a": [{"b": 2, "c": [2]}, {"b": 1, "c": [1]}]}),
        serde_json::json!({"a": {"0": {"b": 1}}}),
        serde_json::json!({"a": [[{"b": 1}], 1]}),
        serde_json::json!({"a": []}),
    ];
    let ask = |index: &Index, path: &str, operator: &str, value: i32| {
        let leaf = serde_json::json!({"path": path, "operator": operator, "value": value});
        let bounds = index.enumerate(&question(&leaf).unwrap()).unwrap();
        (bounds.certain.iter().collect::<Vec<_>>(), bounds.possible.iter().collect::<Vec<_>>())
    };
    let exactly = |units: &[u32]| (units.to_vec(), units.to_vec());
    let mut index = Index::in_memory();
    for (record, number) in records.iter().zip(1..) {
        index.insert(number, b"", Document::of(record).unwrap().root()).unwrap();
        index.advance(number);
    }
    for _ in 0..2 {
        assert_eq!(ask(&index, "/a/0/b", "eq", 1), exactly(&[0, 2]));
        assert_eq!(ask(&index, "/a/0/b", "ne", 1), exactly(&[1]));
        assert_eq!(ask(&index, "/a/0/b", "gt", 1), exactly(&[1]));
        assert_eq!(ask(&index, "/a/0/c", "contains", 1), exactly(&[0]));
        assert_eq!(ask(&index, "/a/*/b", "eq", 1), exactly(&[0, 1, 2]));
        assert_eq!(ask(&index, "/a/1/b", "eq", 1), (vec![], vec![0, 1]));
        assert_eq!(ask(&index, "/a/0/0/b", "eq", 1), (vec![], vec![3]));
        assert_eq!(ask(&index, "/a/0/c/0", "eq", 1), (vec![], vec![0]));
        seal(&mut index);
    }
}
