//! Objects with the same names share them, also where somebody searched for names that are hard to tell apart.

use json::{Document, Limits, ShapeId, Shapes, canonical};

/// Found by search: ten names with one hash.
const SAME: [&str; 10] =
    ["1jyloxy", "kpzaod0", "i2wk50c", "gebbmqd", "bs9rkd4", "wkin7t2", "35a6ooe", "ovrei9i", "zx2eqmc", "vjszzkg"];

/// Found by search: ten names whose hashes differ in four bits only.
const CLOSE: [&str; 10] =
    ["xfqcvvi", "93y0d6r", "68yqgg9", "rwnejkx", "jtxq2gn", "x4vytxg", "hhuqtu5", "pwi9ywu", "ojzok9m", "383ua92"];

/// Reads an object with each of the names, as it was written, and gives their shapes.
fn read(names: &[&str], shapes: &mut Shapes) -> Vec<ShapeId> {
    let mut ids = Vec::new();
    for name in names {
        let text = format!(r#"{{"{name}":"{name}"}}"#);
        let document = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, shapes).unwrap();
        assert_eq!(canonical(document.root()), text.as_bytes());
        ids.push(document.root().shape_id().unwrap());
    }
    assert!((1..ids.len()).all(|place| !ids[..place].contains(&ids[place])), "others have other names");
    ids
}

#[test]
fn names_with_hashes_close_to_each_other_are_all_shared() {
    let mut shapes = Shapes::default();
    assert_eq!(read(&CLOSE, &mut shapes), read(&CLOSE, &mut shapes));
}

/// Each of them would be compared with all others, so whoever makes very many gains nothing by it.
#[test]
fn of_names_with_one_hash_eight_are_shared_and_all_are_right() {
    let mut shapes = Shapes::default();
    let (once, again) = (read(&SAME, &mut shapes), read(&SAME, &mut shapes));
    let shared: Vec<bool> = once.iter().zip(&again).map(|(once, again)| once == again).collect();
    assert_eq!(shared, (0..10).map(|place| place < 8).collect::<Vec<_>>());
}
