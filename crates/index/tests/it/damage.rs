//! Bytes that are not what was written are noticed, or do not matter; they never change an answer.

use crate::{question, seal};
use aql::Constraints;
use conformance::chance::Chance;
use index::{Bounds, Index, IndexError};
use json::Document;
use serde_json::json;
use std::path::Path;

fn build(folder: &Path) {
    let mut index = Index::open(folder).unwrap();
    for sequence in 1..=120u64 {
        let text = format!("a text about number {} that is longer than what is filed as a whole", sequence * 7919);
        let document = json!({"n": sequence, "id": format!("id-{sequence:x}"), "text": text, "tags": ["a", "b"]});
        index.insert(sequence, b"fact", Document::of(&document).unwrap().root()).unwrap();
        index.advance(sequence);
        if sequence == 60 {
            seal(&mut index);
        }
    }
    index.remove(3);
    seal(&mut index);
}

fn questions() -> Vec<Constraints> {
    let leaf = |path: &str, operator: &str, value| {
        question(&json!({"path": path, "operator": operator, "value": value})).unwrap()
    };
    vec![
        leaf("/text", "contains", json!("number 4751")),
        leaf("/text", "contains", json!("9190")),
        leaf("/id", "contains", json!("-4a")),
        leaf("/id", "matches", json!("^id-7")),
        leaf("/n", "gt", json!(50)),
        leaf("/**", "eq", json!("b")),
    ]
}

fn answers(folder: &Path, questions: &[Constraints]) -> Result<Vec<Bounds>, IndexError> {
    let index = Index::open(folder)?;
    questions.iter().map(|question| index.enumerate(question)).collect()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    files
}

#[test]
fn flipped_bits_and_cut_files_are_noticed_or_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let questions = questions();
    let truth = answers(folder.path(), &questions).unwrap();
    assert!(truth.iter().all(|bounds| !bounds.possible.is_empty()), "{truth:?}");
    let mut chance = Chance::seeded(1);
    let (mut noticed, mut harmless) = (0, 0);
    for file in files(folder.path()) {
        let bytes = std::fs::read(&file).unwrap();
        for round in 0..150 {
            let mut changed = bytes.clone();
            if round % 5 == 0 {
                changed.truncate(chance.below(bytes.len()));
            } else {
                changed[chance.below(bytes.len())] ^= 1 << chance.below(8);
            }
            std::fs::write(&file, &changed).unwrap();
            match answers(folder.path(), &questions) {
                Ok(answers) => {
                    assert_eq!(answers, truth, "{}", file.display());
                    // Lists of trigrams are read and checked when somebody asks for them.
                    assert_eq!(file.extension().unwrap(), "trigrams");
                    harmless += 1;
                }
                Err(IndexError::Damaged(_)) => noticed += 1,
                Err(other) => panic!("{}: {other}", file.display()),
            }
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    assert!(noticed > 450 && harmless > 0, "{noticed} {harmless}");
    assert_eq!(answers(folder.path(), &questions).unwrap(), truth);
}

#[test]
fn a_missing_or_exchanged_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for file in files(folder.path()).into_iter().filter(|file| !file.ends_with("current")) {
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(matches!(Index::open(folder.path()), Err(IndexError::Damaged(_))), "{}", file.display());
        std::fs::write(&file, &bytes).unwrap();
    }
    let [first, second] = ["0000000000.values", "0000000001.values"].map(|name| folder.path().join(name));
    std::fs::copy(first, second).unwrap();
    assert!(matches!(Index::open(folder.path()), Err(IndexError::Damaged(_))));
    Index::discard(folder.path()).unwrap();
    assert_eq!(Index::open(folder.path()).unwrap().applied(), 0);
}
