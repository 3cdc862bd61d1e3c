//! Engagements and their steps: whole, in order, and not in a copy.

use store::{CommitError, Engaged, Hash, Journal, Noted, Reached, Spec, Store};

fn engaged(id: &str, reached: Reached) -> Engaged {
    Engaged {
        id: id.into(),
        agent: "clerk".into(),
        document: "d".into(),
        caller: Some("did:web:a.example".into()),
        parent: Some(("p".into(), "3".into())),
        begun_at: 1_000,
        reached,
        reviewer: (reached == Reached::Waiting).then(|| "did:web:b.example".into()),
        due: 0,
    }
}

fn noted(id: &str, position: u64) -> Noted {
    Noted { engagement: id.into(), position, at: 2_000, body: format!("step {position}").into_bytes() }
}

fn note(store: &Store, journal: Journal) -> Result<(), CommitError> {
    store.settle(store.note(journal)?)
}

#[test]
fn a_journal_is_there_after_a_restart_and_found_by_whom_it_concerns() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let body = b"kind: x".to_vec();
    let spec = Spec { digest: Hash::of(&body).to_string(), agent: "clerk".into(), at: 1, body };
    let journal = Journal {
        specs: vec![spec.clone()],
        engagements: vec![engaged("a", Reached::Running), engaged("b", Reached::Waiting)],
        steps: vec![noted("a", 0), noted("b", 0), noted("a", 1)],
    };
    note(&store, journal).unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.spec(&spec.digest).unwrap(), Some(spec));
    assert_eq!(store.steps("a").unwrap(), [noted("a", 0), noted("a", 1)]);
    assert_eq!((store.step_count("b").unwrap(), store.step_count("c").unwrap()), (1, 0));
    assert_eq!(store.engagement("a").unwrap(), Some(engaged("a", Reached::Running)));
    assert_eq!(store.engagements_at(Reached::Running).unwrap(), [engaged("a", Reached::Running)]);
    assert_eq!(store.engagements_before("did:web:b.example", 9).unwrap(), [engaged("b", Reached::Waiting)]);
    assert_eq!(store.engagements_of("did:web:a.example", 1).unwrap(), [engaged("b", Reached::Waiting)]);
    let last = noted("a", 1).at;
    assert_eq!(store.engagements_since(last).unwrap().len(), 2);
    assert!(store.engagements_since(last + 1).unwrap().is_empty());
    note(&store, Journal { engagements: vec![engaged("b", Reached::Over)], ..Journal::default() }).unwrap();
    assert!(store.engagements_before("did:web:b.example", 9).unwrap().is_empty());
}

#[test]
fn a_step_that_is_not_the_next_one_is_refused_with_everything_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let begun =
        Journal { engagements: vec![engaged("a", Reached::Running)], steps: vec![noted("a", 0)], ..Journal::default() };
    note(&store, begun).unwrap();
    for steps in [vec![noted("a", 0)], vec![noted("a", 2)], vec![noted("a", 1), noted("a", 1)], vec![noted("z", 0)]] {
        let refused = note(&store, Journal { steps, ..Journal::default() });
        assert!(matches!(refused, Err(CommitError::NameTaken { .. })), "{refused:?}");
    }
    assert_eq!(store.steps("a").unwrap(), [noted("a", 0)]);
    note(&store, Journal { steps: vec![noted("a", 1)], ..Journal::default() }).unwrap();
}

#[test]
fn what_was_altered_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let journal =
        Journal { engagements: vec![engaged("a", Reached::Running)], steps: vec![noted("a", 0)], ..Journal::default() };
    note(&store, journal).unwrap();
    drop(store);
    for (change, undo) in [
        ("UPDATE step SET body = 'other'", "UPDATE step SET body = CAST('step 0' AS BLOB)"),
        ("UPDATE step SET position = 1", "UPDATE step SET position = 0"),
    ] {
        let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
        database.execute_batch(change).unwrap();
        drop(database);
        let store = Store::open(folder.path()).unwrap();
        assert!(store.steps("a").is_err(), "{change}");
        drop(store);
        let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
        database.execute_batch(undo).unwrap();
        drop(database);
    }
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.steps("a").unwrap(), [noted("a", 0)]);
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
    database.execute_batch("UPDATE engagement SET caller = 'did:web:x.example'").unwrap();
    drop(database);
    assert!(Store::open(folder.path()).unwrap().engagement("a").is_err());
}

#[test]
fn a_copy_has_documents_and_nothing_that_could_be_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let body = b"kind: x".to_vec();
    let spec = Spec { digest: Hash::of(&body).to_string(), agent: "clerk".into(), at: 1, body };
    let journal = Journal {
        specs: vec![spec.clone()],
        engagements: vec![engaged("a", Reached::Running)],
        steps: vec![noted("a", 0)],
    };
    note(&store, journal).unwrap();
    let copy = tempfile::tempdir().unwrap();
    store.backup(&copy.path().join("copy")).unwrap();
    let copied = Store::open(&copy.path().join("copy")).unwrap();
    assert_eq!(copied.engagement("a").unwrap(), None);
    assert_eq!(copied.spec(&spec.digest).unwrap(), Some(spec));
}

#[test]
fn what_is_in_no_table_yet_is_read_and_is_there_after_the_process_ended() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let begun =
        Journal { engagements: vec![engaged("a", Reached::Running)], steps: vec![noted("a", 0)], ..Journal::default() };
    note(&store, begun).unwrap();
    store.note(Journal { steps: vec![noted("a", 1), noted("a", 2)], ..Journal::default() }).unwrap();
    let large = Noted { body: vec![7; 300_000], ..noted("a", 3) };
    // The folder as a kill would leave it.
    let copy = |name: &str| {
        let copy = folder.path().join(name);
        std::fs::create_dir(&copy).unwrap();
        for file in ["rialto.db", "rialto.db-wal", "head", "trail"] {
            std::fs::copy(folder.path().join(file), copy.join(file)).unwrap();
        }
        Store::open(&copy).unwrap()
    };
    let killed = copy("killed");
    for store in [&store, &killed] {
        assert_eq!(store.steps("a").unwrap(), [noted("a", 0), noted("a", 1), noted("a", 2)]);
        assert_eq!(store.step_count("a").unwrap(), 3);
        assert_eq!(store.engagement("a").unwrap(), Some(engaged("a", Reached::Running)));
    }
    assert_eq!(killed.check().unwrap().flaws, []);
    note(&store, Journal { steps: vec![large.clone()], ..Journal::default() }).unwrap();
    note(&store, Journal { steps: vec![noted("a", 4)], ..Journal::default() }).unwrap();
    for store in [&store, &copy("killed later")] {
        let steps = store.steps("a").unwrap();
        assert_eq!((steps.len(), &steps[3], &steps[4]), (5, &large, &noted("a", 4)));
        assert_eq!(store.engagements_at(Reached::Running).unwrap(), [engaged("a", Reached::Running)]);
    }
}

#[test]
fn a_store_of_the_format_before_the_trail_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let begun =
        Journal { engagements: vec![engaged("a", Reached::Running)], steps: vec![noted("a", 0)], ..Journal::default() };
    note(&store, begun).unwrap();
    drop(store);
    std::fs::remove_file(folder.path().join("trail")).unwrap();
    assert!(Store::open(folder.path()).is_err(), "a trail that is gone is missed");
    let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
    database.execute_batch("DELETE FROM delivery WHERE one = 4; DROP TABLE told; PRAGMA user_version = 5;").unwrap();
    drop(database);
    let store = Store::open(folder.path()).unwrap();
    note(&store, Journal { steps: vec![noted("a", 1)], ..Journal::default() }).unwrap();
    assert_eq!(store.steps("a").unwrap(), [noted("a", 0), noted("a", 1)]);
}
