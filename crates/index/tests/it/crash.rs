//! A crash takes what was not sealed, and the index says where to go on.

use crate::{question, seal};
use index::Index;
use json::Document;
use serde_json::json;
use std::path::Path;

fn put(index: &mut Index, sequence: u64) {
    let document = Document::of(&json!({"n": sequence, "name": format!("name {sequence}")})).unwrap();
    index.insert(sequence, &sequence.to_le_bytes(), document.root()).unwrap();
    index.advance(sequence);
}

fn found(index: &Index) -> Vec<u64> {
    let constraints = question(&json!({"path": "/n", "operator": "gt", "value": 3})).unwrap();
    let bounds = index.enumerate(&constraints).unwrap();
    assert_eq!(bounds.certain, bounds.possible);
    bounds.certain.iter().map(|unit| index.source(unit).unwrap()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_was_fresh_or_frozen_is_filed_again_from_where_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut index = Index::open(folder.path()).unwrap();
    (1..=10).for_each(|sequence| put(&mut index, sequence));
    seal(&mut index);
    (11..=14).for_each(|sequence| put(&mut index, sequence));
    let lost = index.freeze(1).unwrap();
    index.remove(5);
    index.advance(15);
    put(&mut index, 16);
    let before = found(&index);
    lost.run().unwrap();
    drop(index);

    let mut index = Index::open(folder.path()).unwrap();
    assert_eq!(index.applied(), 10);
    assert_eq!(names(folder.path()), ["0000000000.trigrams", "0000000000.values", "current"]);
    (11..=14).for_each(|sequence| put(&mut index, sequence));
    index.remove(5);
    index.remove(5);
    index.advance(15);
    put(&mut index, 16);
    assert_eq!(found(&index), before);
}

#[test]
fn removals_while_a_part_is_written_stay_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut index = Index::open(folder.path()).unwrap();
    (1..=10).for_each(|sequence| put(&mut index, sequence));
    let sealing = index.freeze(1).unwrap();
    assert!(index.freeze(1).is_none(), "one part is written at a time");
    index.remove(7);
    index.advance(11);
    index.adopt(sealing.run().unwrap()).unwrap();
    let before = found(&index);
    drop(index);
    let index = Index::open(folder.path()).unwrap();
    assert_eq!((index.applied(), found(&index)), (11, before));
}

#[test]
fn a_part_whose_writing_was_given_up_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut index = Index::open(folder.path()).unwrap();
    (1..=10).for_each(|sequence| put(&mut index, sequence));
    drop(index.freeze(1).unwrap());
    assert_eq!(found(&index).len(), 7);
    drop(index.freeze(1_000).unwrap().run().unwrap());
    assert!(seal(&mut index));
    drop(index);
    assert_eq!(Index::open(folder.path()).unwrap().applied(), 10);
}

#[test]
fn a_part_is_not_frozen_in_the_middle_of_a_change() {
    let mut index = Index::in_memory();
    let document = Document::of(&json!({})).unwrap();
    index.insert(1, b"", document.root()).unwrap();
    assert!(index.freeze(1).is_none());
    index.insert(1, b"", document.root()).unwrap();
    index.advance(1);
    assert_eq!(index.units_of(1).collect::<Vec<u32>>(), [0, 1]);
    assert!(index.freeze(3).is_none() && index.freeze(2).is_some());
}

#[test]
fn a_stop_after_nothing_but_removals_leaves_nothing_to_catch_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut index = Index::open(folder.path()).unwrap();
    (1..=10).for_each(|sequence| put(&mut index, sequence));
    seal(&mut index);
    index.remove(9);
    index.advance(11);
    assert!(index.freeze(1).is_none());
    index.save().unwrap();
    let before = found(&index);
    drop(index);
    let index = Index::open(folder.path()).unwrap();
    assert_eq!((index.applied(), found(&index)), (11, before));
}

#[test]
fn a_segment_made_elsewhere_is_not_adopted() {
    let (mut index, mut other) = (Index::in_memory(), Index::in_memory());
    put(&mut other, 1);
    let made = other.freeze(1).unwrap().run().unwrap();
    assert!(matches!(index.adopt(made), Err(index::IndexError::Misplaced)));
    put(&mut index, 1);
    assert!(seal(&mut index));
}

#[test]
fn discarding_leaves_other_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "mine").unwrap();
    let mut index = Index::open(folder.path()).unwrap();
    put(&mut index, 1);
    seal(&mut index);
    drop(index);
    Index::discard(folder.path()).unwrap();
    assert_eq!(names(folder.path()), ["note.txt"]);
    assert_eq!(Index::open(folder.path()).unwrap().applied(), 0);
    Index::discard(&folder.path().join("nowhere")).unwrap();
}
