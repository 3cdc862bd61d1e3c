//! What each door does.

use crate::{put, withdraw};
use std::time::{Duration, Instant};
use store::{Batch, CommitError, Hash, Mark, Marked, OpenError, Operation, Outcome, State, Store};

#[test]
fn a_record_comes_back_as_it_came_and_survives_closing() {
    let folder = tempfile::tempdir().unwrap();
    let body = "{\"a\" :  1}\n";
    let store = Store::open(folder.path()).unwrap();
    let outcome = store.commit(put("urn:a", "did:key:p", body)).unwrap().outcomes;
    assert_eq!(outcome, [Outcome::Changed { sequence: 1, revision: 1, replaces: None }]);
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    let record = store.record("urn:a").unwrap().unwrap();
    assert_eq!((record.body.as_slice(), record.revision, record.state), (body.as_bytes(), 1, State::Active));
    assert_eq!(store.sequence(), 1);
}

#[test]
fn revisions_supersede_and_the_same_bytes_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("a", "p", "1")).unwrap();
    assert_eq!(store.commit(put("a", "p", "1")).unwrap().outcomes, [Outcome::Unchanged { revision: 1 }]);
    assert_eq!(
        store.commit(put("a", "p", "2")).unwrap().outcomes,
        [Outcome::Changed { sequence: 2, revision: 2, replaces: Some(1) }]
    );
    assert_eq!(store.by_number(1).unwrap().unwrap().state, State::Superseded);
    let changes = store.changes_after(0, 10).unwrap();
    assert_eq!(
        changes.iter().map(|change| (change.sequence, change.replaces)).collect::<Vec<_>>(),
        [(1, None), (2, Some(1))]
    );
    assert_eq!(changes[0].hash, changes[0].chained(Hash::GENESIS));
    assert_eq!(changes[1].hash, changes[1].chained(changes[0].hash));
}

#[test]
fn only_the_publisher_changes_or_withdraws() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("a", "p", "1")).unwrap();
    let foreign = CommitError::NotThePublisher { id: "a".into(), publisher: "p".into() };
    assert_eq!(store.commit(put("a", "q", "2")), Err(foreign.clone()));
    assert_eq!(store.commit(withdraw("a", "q")), Err(foreign));
    assert_eq!(store.commit(withdraw("b", "p")), Err(CommitError::NoSuchRecord { id: "b".into() }));
    assert_eq!(
        store.commit(withdraw("a", "p")).unwrap().outcomes,
        [Outcome::Changed { sequence: 2, revision: 1, replaces: Some(1) }]
    );
    assert_eq!(store.commit(withdraw("a", "p")).unwrap().outcomes, [Outcome::Unchanged { revision: 1 }]);
    assert_eq!(store.record("a").unwrap(), None);
    assert_eq!(store.changes_after(1, 10).unwrap()[0].operation, Operation::Withdraw);
    // A withdrawn id speaks again with its next revision, and bytes that were withdrawn are a change.
    assert_eq!(
        store.commit(put("a", "p", "1")).unwrap().outcomes,
        [Outcome::Changed { sequence: 3, revision: 2, replaces: None }]
    );
}

#[test]
fn a_batch_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("mine", "p", "1")).unwrap();
    let mut batch = put("new", "q", "1");
    batch.puts.extend(put("mine", "q", "2").puts);
    assert!(store.commit(batch).is_err());
    assert_eq!(store.record("new").unwrap(), None);
    assert_eq!(store.sequence(), 1);
    assert!(store.check().unwrap().flaws.is_empty());
}

#[test]
fn a_message_is_dealt_with_once_until_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let message = |body: &str, expires_at, at| Batch {
        mark: Some(Mark { issuer: "i".into(), name: "urn:1".into(), digest: Hash::of(body.as_bytes()), expires_at }),
        at,
        ..put("a", "p", body)
    };
    let marked = |issuer, body: &str| store.marked(issuer, "urn:1", Hash::of(body.as_bytes())).unwrap();
    assert_eq!(marked("i", "x"), Marked::New);
    let first = store.commit(message("x", 5_000, 1_000)).unwrap();
    assert_eq!(first.outcomes, [Outcome::Changed { sequence: 1, revision: 1, replaces: None }]);
    assert_eq!(store.commit(message("x", 5_000, 2_000)).unwrap(), first, "the same message, the same answer");
    assert_eq!(marked("i", "x"), Marked::Same(first));
    assert_eq!((marked("i", "y"), marked("j", "y")), (Marked::Other, Marked::New));
    assert_eq!(store.commit(message("y", 5_000, 2_000)), Err(CommitError::NameTaken { name: "urn:1".into() }));
    assert_eq!(store.sequence(), 1);
    let later = store.commit(message("y", 9_000, 6_000)).unwrap();
    assert_eq!(later.outcomes, [Outcome::Changed { sequence: 2, revision: 2, replaces: Some(1) }]);
    assert_eq!(marked("i", "y"), Marked::Same(later));
}

#[test]
fn many_writers_share_commits_and_every_one_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..50 {
                    store.commit(put(&format!("{writer}-{number}"), "p", "x")).unwrap();
                }
            });
        }
    });
    assert_eq!(store.sequence(), 400);
    let soundness = store.check().unwrap();
    assert_eq!((soundness.changes, soundness.active, soundness.flaws.len()), (400, 400, 0));
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("a", "p", "1")).unwrap();
    let target = copy.path().join("copy");
    store.backup(&target).unwrap();
    store.commit(put("b", "p", "1")).unwrap();
    let restored = Store::open(&target).unwrap();
    assert_eq!(restored.sequence(), 1);
    assert!(restored.record("a").unwrap().is_some() && restored.record("b").unwrap().is_none());
    assert!(store.backup(&target).unwrap_err().to_string().contains("empty folder"));
}

#[test]
fn a_store_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert!(matches!(Store::open_within(folder.path(), Duration::ZERO), Err(OpenError::Busy(_))));
    drop(store);
    assert!(Store::open_within(folder.path(), Duration::ZERO).is_ok());
}

#[test]
fn a_lock_that_is_given_back_within_the_bound_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let killed = Store::open(folder.path()).unwrap();
    let dying = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(killed);
    });
    // The bound of a node is two seconds; a loaded machine may need longer for the thread above.
    assert!(Store::open_within(folder.path(), Duration::from_secs(60)).is_ok());
    dying.join().unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "that it waits is the question")]
fn a_lock_that_is_held_is_waited_for_and_then_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _held = Store::open(folder.path()).unwrap();
    let begun = Instant::now();
    assert!(matches!(Store::open(folder.path()), Err(OpenError::Busy(_))));
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn foreign_files_and_later_formats_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rialto.db"), b"this is no database, and long enough to be looked at").unwrap();
    assert!(matches!(Store::open(folder.path()), Err(OpenError::NotAStore(_))));
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    // The format version is the big-endian number at byte 60 of the file (SQLite's user_version).
    let path = folder.path().join("rialto.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&8u32.to_be_bytes());
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(Store::open(folder.path()), Err(OpenError::LaterFormat { found: 8, known: 7 })));
}
