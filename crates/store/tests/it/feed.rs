//! Standing intents and their journals: kept together, whole, and never in a copy.

use crate::put;
use store::{
    Batch, Branch, DeadLetter, Event, Feed, Flaw, Hash, Leaf, Pending, Phase, Standing, Store, Subscription, Webhook,
};

fn subscription(number: u64, cursor: u64) -> Subscription {
    Subscription {
        number,
        id: format!("urn:rialto:subscription:{number}"),
        issuer: "did:web:a.example".into(),
        principal: "did:web:a.example".into(),
        intent_id: format!("urn:oap:intent:{number}"),
        intent: b"{}".to_vec(),
        acknowledgement: b"{}".to_vec(),
        start: 0,
        expires_at: 9_000,
        standing: Standing { cursor, ..Standing::new(60) },
    }
}

fn event(subscription: u64, cursor: u64) -> Event {
    Event { subscription, cursor, at: 1_000, body: format!("event {cursor}").into_bytes() }
}

fn batch() -> Batch {
    Batch { at: 1_000, ..Batch::default() }
}

#[test]
fn events_and_the_position_are_there_together_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.delivered().unwrap(), None);
    let waiting = |record: &str, since| Pending {
        subscription: 1,
        record: record.into(),
        since,
        told: 3,
        latest: 0,
        evidence: false,
    };
    let feed = Feed {
        position: Some(17),
        subscribed: vec![subscription(1, 3), subscription(2, 0)],
        events: (1..=3).map(|cursor| event(1, cursor)).collect(),
        pending: vec![waiting("b", 9), waiting("a", 12)],
        ..Feed::default()
    };
    store.deliver(batch(), feed).unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.delivered().unwrap(), Some(17));
    assert_eq!(store.subscriptions_after(0, 10).unwrap(), [subscription(1, 3), subscription(2, 0)]);
    assert_eq!(store.subscription("urn:rialto:subscription:2").unwrap(), Some(subscription(2, 0)));
    assert_eq!(store.subscription_of("did:web:a.example", "urn:oap:intent:1").unwrap(), Some(subscription(1, 3)));
    assert_eq!(store.events_after(1, 1, 10, usize::MAX).unwrap(), [event(1, 2), event(1, 3)]);
    assert_eq!(store.events_after(1, 0, 10, 1).unwrap(), [event(1, 1)], "no more once there are so many bytes");
    assert_eq!((store.event_time(1, 2).unwrap(), store.event_time(1, 4).unwrap()), (Some(1_000), None));
    assert_eq!(store.pending(1, 10).unwrap(), [waiting("b", 9), waiting("a", 12)], "the longest first");
    assert!(store.check().unwrap().flaws.is_empty());

    let ended = Standing { phase: Phase::Ended, first: 3, cursor: 3, chain: Hash::of(b"x"), ..Standing::new(60) };
    let feed = Feed {
        standings: vec![(1, ended.clone())],
        forgotten: vec![(1, 3)],
        settled: vec![(1, "a".into())],
        removed: vec![2],
        ..Feed::default()
    };
    store.deliver(batch(), feed).unwrap();
    assert_eq!(store.subscriptions_after(0, 10).unwrap(), [Subscription { standing: ended, ..subscription(1, 3) }]);
    assert_eq!(store.events_after(1, 0, 10, usize::MAX).unwrap(), [event(1, 3)]);
    assert_eq!(store.pending_count(1).unwrap(), 1);
    assert!(store.check().unwrap().flaws.is_empty());
}

#[test]
fn a_cursor_is_given_once_and_a_hole_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let feed = Feed { subscribed: vec![subscription(1, 2)], events: vec![event(1, 2)], ..Feed::default() };
    store.deliver(batch(), feed).unwrap();
    assert_eq!(store.check().unwrap().flaws, [Flaw::Journals { subscriptions: 1 }]);
    let twice = Feed { events: vec![Event { body: b"other".to_vec(), ..event(1, 2) }], ..Feed::default() };
    assert!(store.deliver(batch(), twice).is_err());
    assert_eq!(store.events_after(1, 0, 10, usize::MAX).unwrap(), [event(1, 2)]);
    // The store goes on: it was no fault of the disk.
    store.commit(put("a", "p", "1")).unwrap();
}

#[test]
fn a_copy_has_no_standing_intents() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("a", "p", "1")).unwrap();
    let feed =
        Feed { position: Some(1), subscribed: vec![subscription(1, 1)], events: vec![event(1, 1)], ..Feed::default() };
    store.deliver(batch(), feed).unwrap();
    store.backup(&copy.path().join("copy")).unwrap();
    let restored = Store::open(&copy.path().join("copy")).unwrap();
    assert!(restored.record("a").unwrap().is_some());
    assert_eq!((restored.subscriptions_after(0, 10).unwrap(), restored.delivered().unwrap()), (Vec::new(), None));
    assert!(restored.events_after(1, 0, 10, usize::MAX).unwrap().is_empty());
}

#[test]
fn a_store_of_the_first_format_is_brought_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("a", "p", "1")).unwrap();
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
    let later = "DROP TABLE webhook; DROP TABLE dead_letter; DROP TABLE leaf; DROP TABLE branch;
        DROP TABLE told; DROP TABLE step; DROP TABLE engagement; DROP TABLE spec;";
    let earlier = "DROP TABLE subscription; DROP TABLE event; DROP TABLE pending; DROP TABLE delivery;
        PRAGMA user_version = 1;";
    database.execute_batch(&format!("{later}{earlier}")).unwrap();
    drop(database);
    let store = Store::open(folder.path()).unwrap();
    assert!(store.record("a").unwrap().is_some());
    store.deliver(batch(), Feed { subscribed: vec![subscription(1, 0)], ..Feed::default() }).unwrap();
    drop(store);
    assert_eq!(Store::open(folder.path()).unwrap().subscriptions_after(0, 10).unwrap().len(), 1);
}

#[test]
fn a_store_of_the_second_format_is_brought_up_with_its_journals() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let feed = Feed { subscribed: vec![subscription(1, 1)], events: vec![event(1, 1)], ..Feed::default() };
    store.deliver(batch(), feed).unwrap();
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
    let earlier = "DROP TABLE webhook; DROP TABLE dead_letter; DROP TABLE leaf; DROP TABLE branch;
        DROP TABLE told; DROP TABLE step; DROP TABLE engagement; DROP TABLE spec; PRAGMA user_version = 2;";
    database.execute_batch(earlier).unwrap();
    drop(database);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.events_after(1, 0, 10, usize::MAX).unwrap(), [event(1, 1)]);
    let webhook = Webhook::new("https://example.com/".into(), None);
    store.deliver(batch(), Feed { webhooks: vec![(1, webhook.clone())], ..Feed::default() }).unwrap();
    assert_eq!(store.webhooks().unwrap(), [(1, webhook)]);
}

#[test]
fn a_store_of_the_sixth_format_remembers_what_its_journals_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let told = |subscription: u64, cursor: u64, record: &str, change: &str| Event {
        body: format!(r#"{{"cursor":{cursor},"manifest_id":"{record}","set_change":"{change}"}}"#).into_bytes(),
        ..event(subscription, cursor)
    };
    let floor =
        Subscription { intent: br#"{"quality_floor":{"performance_score":0.5}}"#.to_vec(), ..subscription(2, 4) };
    let feed = Feed {
        subscribed: vec![subscription(1, 1), floor],
        events: vec![
            event(1, 1),
            told(2, 1, "a", "entered"),
            told(2, 2, "b", "entered"),
            told(2, 3, "a", "changed"),
            told(2, 4, "b", "left"),
        ],
        ..Feed::default()
    };
    store.deliver(batch(), feed).unwrap();
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
    database.execute_batch("DROP TABLE told; PRAGMA user_version = 6;").unwrap();
    drop(database);
    let store = Store::open(folder.path()).unwrap();
    let known = |subscription: u64, record: &str| store.told(subscription, record).unwrap();
    assert_eq!((known(2, "a"), known(2, "b"), known(2, "c")), (Some(true), Some(false), None));
    assert_eq!(known(1, "a"), None);
    let told = vec![(2, "a".to_owned(), None), (2, "c".to_owned(), Some(true))];
    store.deliver(batch(), Feed { told, ..Feed::default() }).unwrap();
    assert_eq!((known(2, "a"), known(2, "c")), (None, Some(true)));
    store.deliver(batch(), Feed { removed: vec![2], ..Feed::default() }).unwrap();
    assert_eq!(known(2, "c"), None);
}

#[test]
fn a_store_of_the_third_format_is_brought_up_and_takes_descriptions() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.commit(put("a", "p", "1")).unwrap();
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("rialto.db")).unwrap();
    database
        .execute_batch(
            "DROP TABLE told; DROP TABLE step; DROP TABLE engagement; DROP TABLE spec; PRAGMA user_version = 3;",
        )
        .unwrap();
    drop(database);
    let store = Store::open(folder.path()).unwrap();
    let mut described = put("b", "p", "1");
    described.puts[0].kind = store::Kind::Description;
    store.commit(described).unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.record("a").unwrap().unwrap().kind, store::Kind::Manifest);
    assert_eq!(store.record("b").unwrap().unwrap().kind, store::Kind::Description);
}

/// Nothing of this is a change of the log, so only the count beside it tells that the end is gone.
#[test]
fn a_journal_that_lost_its_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("rialto.db");
    let store = Store::open(folder.path()).unwrap();
    store.deliver(batch(), Feed { subscribed: vec![subscription(1, 0)], ..Feed::default() }).unwrap();
    drop(store);
    let before = std::fs::read(&database).unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.deliver(batch(), Feed { events: vec![event(1, 1)], ..Feed::default() }).unwrap();
    drop(store);
    let after = std::fs::read(&database).unwrap();
    std::fs::write(&database, before).unwrap();
    let refused = Store::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("the last 1 times are missing"), "{refused}");
    std::fs::write(&database, after).unwrap();
    assert_eq!(Store::open(folder.path()).unwrap().events_after(1, 0, 10, usize::MAX).unwrap().len(), 1);
}

#[test]
fn what_was_brought_and_given_up_goes_with_its_subscription() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let webhook = Webhook::new("https://example.com/".into(), Some("whsec_x".into()));
    let letter = |cursor| DeadLetter { subscription: 1, cursor, at: 5, attempts: 3, status: 500 };
    let feed = Feed {
        subscribed: vec![subscription(1, 0)],
        webhooks: vec![(1, webhook)],
        dead_letters: vec![letter(1), letter(2)],
        ..Feed::default()
    };
    store.deliver(batch(), feed).unwrap();
    store.deliver(batch(), Feed { buried: vec![(1, 1)], ..Feed::default() }).unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.dead_letters(1).unwrap(), [letter(2)]);
    assert_eq!(store.webhooks().unwrap().len(), 1);
    store.deliver(batch(), Feed { removed: vec![1], ..Feed::default() }).unwrap();
    assert_eq!((store.dead_letters(1).unwrap(), store.webhooks().unwrap()), (Vec::new(), Vec::new()));
}

#[test]
fn the_leaf_of_a_manifest_is_the_last_one_up_to_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let leaf = |index: u64, manifest: &str, sequence| Leaf {
        index,
        manifest: manifest.into(),
        sequence,
        public: Hash::of(&[index as u8]),
        withdrawn: index == 2,
    };
    let branch = Branch { level: 0, position: 0, hash: Hash::of(b"x") };
    let leaves = vec![leaf(0, "a", 3), leaf(1, "b", 4), leaf(2, "a", 9)];
    let feed = Feed { indexed: Some(9), leaves, branches: vec![branch], ..Feed::default() };
    store.deliver(batch(), feed).unwrap();
    assert_eq!(store.tree().unwrap(), (9, 3));
    let of = |manifest: &str, at| store.leaf_of(manifest, at).unwrap().map(|leaf| leaf.index);
    assert_eq!(
        [of("a", 2), of("a", 3), of("a", 8), of("a", 9), of("b", 9)],
        [None, Some(0), Some(0), Some(2), Some(1)]
    );
    assert_eq!((store.branch(0, 0).unwrap(), store.branch(1, 0).unwrap()), (Some(branch.hash), None));
    store.deliver(batch(), Feed { felled: true, indexed: Some(0), ..Feed::default() }).unwrap();
    assert_eq!((store.tree().unwrap(), store.branch(0, 0).unwrap()), ((0, 0), None));
}
