//! One altered byte, one lost tail: found when the store opens, or harmless; never a wrong answer.

use crate::put;
use std::path::Path;
use store::{Batch, Flaw, OpenError, Store};

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

/// Above so many changes not all are looked at when the store opens.
const MANY: usize = 10_200;

/// Bodies that were written are given out or nothing is, however long ago they were written.
#[test]
fn a_flipped_byte_in_an_old_record_is_noticed_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let body = |number: usize| format!("body of the record {number:05}, and of no other");
    for block in (1..=MANY).collect::<Vec<_>>().chunks(1_000) {
        let puts = block.iter().flat_map(|number| put(&format!("id-{number}"), "publisher", &body(*number)).puts);
        store.commit(Batch { puts: puts.collect(), at: 1_000, ..Batch::default() }).unwrap();
    }
    drop(store);
    let file = folder.path().join("rialto.db");
    let sound = std::fs::read(&file).unwrap();
    let end = |bytes: &[u8]| sound.windows(bytes.len()).position(|window| window == bytes).unwrap() + bytes.len();
    // In the body, and in who published it, which stands before the body.
    let begin = end(body(7).as_bytes()) - body(7).len();
    let publisher = sound[..begin].windows(9).rposition(|window| window == b"publisher").unwrap();
    for (flipped, what) in [(begin + 20, "body"), (publisher, "publisher")] {
        let mut bytes = sound.clone();
        bytes[flipped] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let store = Store::open(folder.path()).unwrap();
        let told = [
            store.by_number(7).unwrap_err(),
            store.record("id-7").unwrap_err(),
            store.latest("id-7").unwrap_err(),
            store.bodies(&[6, 7, 8]).unwrap_err(),
            store.active_after(0, 10).unwrap_err(),
        ];
        for error in told {
            let told = error.to_string();
            assert!(told.contains("change 7 is not what was written; `rialto store check`"), "{what}: {told}");
        }
        assert_eq!(store.bodies(&[6, 8]).unwrap(), [6, 8].map(|number| Some(body(number).into_bytes())), "{what}");
        assert_eq!(store.record("id-8").unwrap().unwrap().body, body(8).into_bytes(), "{what}");
        assert!(!store.check().unwrap().flaws.is_empty(), "{what}");
    }
}
