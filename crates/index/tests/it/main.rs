//! The index against asking every record.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use aql::{Constraints, Evaluator, Fuel, Limits};
use conformance::chance::Chance;
use conformance::generate;
use index::Index;
use json::{Document, Pointer};
use roaring::RoaringBitmap;

fn documents(chance: &mut Chance<'_>, count: usize) -> Vec<Document> {
    (0..count).map(|_| Document::of(&generate::record(chance)).unwrap()).collect()
}

fn brute_force(constraints: &Constraints, documents: &[Document], live: &RoaringBitmap) -> Option<RoaringBitmap> {
    let mut evaluator = Evaluator::new(Fuel::OWN);
    let mut found = RoaringBitmap::new();
    for (number, document) in documents.iter().enumerate().filter(|(number, _)| live.contains(*number as u32)) {
        if evaluator.evaluate(constraints, document.root()).ok()? {
            found.insert(number as u32);
        }
    }
    Some(found)
}

#[test]
fn enumeration_misses_nothing_and_promises_nothing_false() {
    let (mut asked, mut width, mut found) = (0u64, 0u64, 0u64);
    for seed in 0..400 {
        let mut chance = Chance::seeded(seed);
        let documents = documents(&mut chance, 24);
        let mut index = Index::in_memory();
        for (number, document) in documents.iter().enumerate() {
            index.insert(number as u64, 0, b"", document.root()).unwrap();
        }
        for _ in 0..20 {
            if chance.one_in(4) {
                let number = chance.below(documents.len());
                index.remove(number as u64);
            }
            let subject = documents[chance.below(documents.len())].root().to_value();
            let tree = Document::of(&generate::constraints(&mut chance, &subject, 3)).unwrap();
            let Ok(constraints) = Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD) else { continue };
            let Some(truth) = brute_force(&constraints, &documents, &index.alive(0)) else { continue };
            let bounds = index.enumerate(&constraints, 0).unwrap();
            let question = tree.root().to_value();
            assert!(bounds.certain.is_subset(&truth), "seed {seed}: {question}\n{:?} {truth:?}", bounds.certain);
            assert!(truth.is_subset(&bounds.possible), "seed {seed}: {question}\n{:?} {truth:?}", bounds.possible);
            asked += 1;
            width += bounds.possible.len() - bounds.certain.len();
            found += truth.len();
        }
    }
    assert!(asked > 3_000 && found > asked, "the questions hardly find anything: {asked} {found}");
    // Most questions are decided by the index alone; this keeps the bounds from growing slack unnoticed.
    assert!(width < 2 * asked, "{width} records left undecided over {asked} questions");
}

#[test]
fn removing_everything_leaves_nothing() {
    let mut chance = Chance::seeded(7);
    let documents = documents(&mut chance, 50);
    let mut index = Index::in_memory();
    for (number, document) in documents.iter().enumerate() {
        index.insert(number as u64, 0, b"", document.root()).unwrap();
    }
    for number in 0..documents.len() {
        index.remove(number as u64);
    }
    let tree = Document::of(&serde_json::json!({"path": "/**", "operator": "exists", "value": true})).unwrap();
    let constraints = Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD).unwrap();
    let bounds = index.enumerate(&constraints, 0).unwrap();
    assert!(bounds.certain.is_empty() && bounds.possible.is_empty());
}

#[test]
fn invented_paths_are_bounded_and_their_records_stay_possible() {
    let mut index = Index::in_memory();
    let mut wide = serde_json::Map::new();
    for number in 0..70 {
        for name in 0..1000 {
            wide.insert(format!("{number}-{name}"), serde_json::json!(1));
        }
        let document = Document::of(&serde_json::Value::Object(std::mem::take(&mut wide))).unwrap();
        index.insert(number, 0, b"", document.root()).unwrap();
    }
    let tree = Document::of(&serde_json::json!({"path": "/69-999", "operator": "eq", "value": 1})).unwrap();
    let constraints = Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD).unwrap();
    let bounds = index.enumerate(&constraints, 0).unwrap();
    assert!(bounds.possible.contains(69) && !bounds.possible.contains(0) && bounds.certain.is_empty());
}
