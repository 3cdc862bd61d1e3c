//! One altered byte, one lost tail: found when the store opens, or harmless; never a wrong answer.

use crate::put;
use std::path::Path;
use store::{Flaw, OpenError, Store};

const RECORDS: usize = 40;

fn fill(folder: &Path) {
    let store = Store::open(folder).unwrap();
    for number in 0..RECORDS {
        store.commit(put(&format!("id-{number}"), "p", &format!("body {number} {}", "x".repeat(300)))).unwrap();
    }
}

/// A copy of the files as a crash leaves them: the store is open, so its write-ahead log is still there.
fn crashed(folder: &Path, copy: &Path) {
    let store = Store::open(folder).unwrap();
    store.commit(put("last", "p", "in the write-ahead log")).unwrap();
    std::fs::create_dir_all(copy).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    drop(store);
}

/// Everything that was acknowledged is there and right, or the store says what is wrong.
fn honest(folder: &Path) -> bool {
    let Ok(store) = Store::open(folder) else { return true };
    let right = |id: &str, body: &str| match store.record(id) {
        Ok(Some(record)) => record.body == body.as_bytes(),
        Ok(None) => false,
        Err(_) => true,
    };
    let intact =
        (0..RECORDS).all(|number| right(&format!("id-{number}"), &format!("body {number} {}", "x".repeat(300))));
    // What the engine's own reading does not notice, the check does.
    (intact && right("last", "in the write-ahead log")) || store.check().is_ok_and(|found| !found.flaws.is_empty())
}

#[test]
fn a_flipped_byte_anywhere_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let image = tempfile::tempdir().unwrap();
    crashed(folder.path(), &image.path().join("image"));
    let image = image.path().join("image");
    let mut offset = 12_345u64;
    for round in 0..60 {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(&image).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
        let file = copy.path().join(["rialto.db", "rialto.db-wal", "head"][round % 3]);
        let mut bytes = std::fs::read(&file).unwrap();
        offset = offset.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let position = (offset >> 16) as usize % bytes.len();
        bytes[position] ^= 1 << (round % 8);
        std::fs::write(&file, bytes).unwrap();
        assert!(honest(copy.path()), "byte {position} of {}", file.display());
    }
}

#[test]
fn a_lost_tail_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let image = tempfile::tempdir().unwrap();
    crashed(folder.path(), &image.path().join("image"));
    let image = image.path().join("image");
    std::fs::write(image.join("rialto.db-wal"), b"").unwrap();
    match Store::open(&image) {
        Err(OpenError::Damaged(Flaw::TailMissing { promised, found })) => {
            assert_eq!((promised, found), (RECORDS as u64 + 1, RECORDS as u64));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lost_head_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    std::fs::remove_file(folder.path().join("head")).unwrap();
    assert!(matches!(Store::open(folder.path()), Err(OpenError::Damaged(Flaw::HeadMissing { found: 40 }))));
}
