//! `rialto watch --webhook` against a real node that is killed: nothing is left out, and a repeat is the same message.

use crate::node::Node;
use crate::run::Home;
use crate::watching::{QUESTION, lines, price};
use json::{Document, Limits, json};
use probe::Receiver;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The messages with an event, by cursor, once there are so many; each time the same bytes.
fn brought(receiver: &Receiver, wanted: u64) -> Vec<(u64, String)> {
    for _ in 0..600 {
        let (mut first, mut order) = (BTreeMap::new(), Vec::new());
        for (id, body) in receiver.told() {
            let cursor = Document::parse(&body, &Limits::OURS).unwrap().root().get("cursor").unwrap().as_u64().unwrap();
            let known = first.entry(cursor).or_insert_with(|| (id.clone(), body.clone()));
            assert_eq!(*known, (id.clone(), body), "event {cursor} came in two forms");
            order.push((cursor, id));
        }
        if first.len() as u64 >= wanted {
            return order;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} messages, and {wanted} events are expected", receiver.told().len());
}

#[test]
fn kills_leave_no_event_out_of_what_is_brought() {
    let (home, receiver) = (Home::new("bringing-kills"), Receiver::open().unwrap());
    home.run(&["keys", "new"]).exits(0);
    let more = ["--private-networks", "--feed-retention-days", "7"];
    let mut node = Node::start_with(&home, "127.0.0.1:0", &more);
    let (url, port) = (node.url.clone(), node.port());
    price(&home, &node, 0, "0.50");
    let begun = home.run(&["watch", QUESTION, "--to", &url, "--webhook", &receiver.url()]).exits(0);
    let id = begun.out.trim().to_owned();
    let again = home.run(&["watch", QUESTION, "--to", &url, "--webhook", &receiver.url()]).exits(0);
    assert_eq!(again.out, begun.out, "what is brought there already is not begun twice");
    let mut published = 1;
    for round in 1..=4_u64 {
        for number in 0..5 {
            price(&home, &node, number, &format!("{round}.{number}0"));
            published += 1;
        }
        std::thread::sleep(Duration::from_millis(3 * round));
        drop(node);
        node = Node::start_with(&home, &format!("127.0.0.1:{port}"), &more);
    }
    let order = brought(&receiver, published);
    let mut last = 0;
    for (cursor, _) in &order {
        assert!(*cursor == last + 1 || *cursor == last, "event {cursor} came after event {last}");
        last = *cursor;
    }
    let before = receiver.told().len();
    let replayed = home.run(&["subscriptions", "replay", &id, "--from", "2", "--webhook", "--json"]).exits(0);
    let webhook = lines(&replayed.out)[0]["webhook"].clone();
    assert_eq!((&webhook["state"], &webhook["endpoint"]), (&json!("running"), &json!(receiver.url())));
    // What was brought just before the last kill may come once more meanwhile; so each is waited for by its cursor.
    let wanted: BTreeSet<u64> = (2..=published).collect();
    let since = || -> BTreeSet<u64> {
        brought(&receiver, published).into_iter().skip(before).map(|(cursor, _)| cursor).collect()
    };
    for _ in 0..600 {
        if since().is_superset(&wanted) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(since().is_superset(&wanted), "{:?}", since());
    let secret = home.file("secret.txt", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    home.run(&["subscriptions", "secret", &id, &secret]).exits(0);
    home.run(&["subscriptions", "withdraw", &id]).exits(0);
}

#[test]
fn an_event_is_verified_offline_with_the_tree_that_its_manifest_is_in() {
    let home = Home::new("bringing-proofs");
    home.run(&["keys", "new"]).exits(0);
    let node = Node::start(&home);
    price(&home, &node, 1, "1.00");
    let told = home.run(&["watch", QUESTION, "--to", &node.url, "--json", "--events", "1"]).exits(0).out;
    drop(node);
    let event = home.file("event.json", &told);
    let verified = lines(&home.run(&["verify", &event, "--json"]).exits(0).out);
    assert_eq!(verified[0]["kind"], "event");
    let root = lines(&told)[0]["inclusion_proof"]["root"].as_str().unwrap().to_owned();
    assert_eq!(verified[0]["included"], json!(format!("leaf 1 of 1 under {root}")));
    // A proof that leads elsewhere breaks the signature, and would break itself without one.
    let forged = home.file("forged.json", &told.replace("\"leaf_index\":0", "\"leaf_index\":1"));
    assert_ne!(home.run(&["verify", &forged]).code, 0);
}
