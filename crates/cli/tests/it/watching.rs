//! `rialto watch` and `rialto subscriptions` against a real node.

use crate::node::Node;
use crate::run::Home;
use json::{Document, Limits, Value, json};
use std::io::{BufRead, BufReader};

pub(crate) const QUESTION: &str = "examples/intents/watch-translation-prices.json";

pub(crate) fn price(home: &Home, node: &Node, number: usize, amount: &str) {
    let manifest = json!({
        "oap_version": "1.0",
        "tool": {"id": "x", "did": format!("did:web:t{number}.example"), "name": "Footbridge", "categories": ["translation"]},
        "pricing": {"models": [{"type": "per_call", "amount": amount, "currency": "EUR"}]},
    });
    let file = home.file("manifest.json", &own(home, manifest).to_string());
    home.run(&["publish", &file, "--kind", "manifest", "--to", &node.url]).exits(0);
}

/// The manifest in the name of the home's own key.
fn own(home: &Home, mut manifest: Value) -> Value {
    let shown = home.run(&["keys", "show", "--json"]);
    let did = Document::parse(shown.out.as_bytes(), &Limits::OURS).unwrap().root().to_value()["did"].clone();
    manifest["tool"]["publisher"] = json!({"did": did});
    manifest
}

pub(crate) fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| Document::parse(line.as_bytes(), &Limits::OURS).unwrap().root().to_value()).collect()
}

#[test]
fn a_price_change_arrives_and_watching_goes_on_where_it_stopped() {
    let home = Home::new("watching-prices");
    home.run(&["keys", "new"]).exits(0);
    let node = Node::start(&home);
    price(&home, &node, 1, "20.00");
    let watch = |events: &'static str| ["watch", QUESTION, "--to", &node.url, "--json", "--events", events];
    // What is there comes first.
    let first = lines(&home.run(&watch("1")).exits(0).out);
    assert_eq!((&first[0]["cursor"], &first[0]["snapshot"]), (&json!(1), &json!(true)));
    price(&home, &node, 1, "25.00");
    price(&home, &node, 2, "7.00");
    let second = lines(&home.run(&watch("2")).exits(0).out);
    assert_eq!((&second[0]["cursor"], &second[0]["event_type"]), (&json!(2), &json!("updated")));
    assert_eq!(second[0]["payload"]["pricing"]["models"][0]["amount"], "25.00");
    assert_eq!((&second[1]["cursor"], &second[1]["set_change"]), (&json!(3), &json!("entered")));

    let listed = home.run(&["subscriptions", "list"]).exits(0);
    assert!(listed.out.contains("active") && listed.out.contains(QUESTION), "{}", listed.out);
    let id = first[0]["subscription_id"].as_str().unwrap();
    let short = &id.rsplit(':').next().unwrap()[..6];
    home.run(&["subscriptions", "show", short]).exits(0);
    let replayed = lines(&home.run(&["subscriptions", "replay", short, "--from", "2", "--json"]).exits(0).out);
    assert_eq!(replayed, second);
    let paused = lines(&home.run(&["subscriptions", "pause", short, "--json"]).exits(0).out);
    assert_eq!(paused[0]["state"], "paused");
    price(&home, &node, 1, "26.00");
    price(&home, &node, 1, "27.00");
    let resumed = lines(&home.run(&["subscriptions", "resume", short, "--json"]).exits(0).out);
    assert_eq!(resumed[0]["state"], "active");
    let third = home.run(&["watch", QUESTION, "--to", &node.url, "--events", "1"]).exits(0);
    assert!(third.out.contains("changed") && third.out.contains("27.00"), "{}", third.out);
    // It is watched, and not brought anywhere; whoever wants that is told so, and what to do.
    let brought =
        home.run(&["watch", QUESTION, "--to", &node.url, "--webhook", "https://agent.example/events"]).exits(2);
    assert!(
        brought.err.contains("is watched already") && brought.err.contains("subscriptions withdraw"),
        "{}",
        brought.err
    );
    assert_eq!(brought.out, "");
    let over = lines(&home.run(&["subscriptions", "withdraw", short, "--json"]).exits(0).out);
    assert_eq!((&over[0]["state"], &over[0]["receipt"]["type"]), (&json!("ended"), &json!("subscription")));
    home.run(&["subscriptions", "show", short]).exits(2);
}

#[test]
fn a_node_that_is_gone_for_a_while_is_waited_for() {
    let home = Home::new("watching-a-restart");
    home.run(&["keys", "new"]).exits(0);
    let node = Node::start(&home);
    let (url, port) = (node.url.clone(), node.port());
    price(&home, &node, 1, "1.00");
    let arguments = ["watch", QUESTION, "--to", &url, "--json", "--events", "2"];
    let mut child = home.command(&[], &arguments).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(lines(&line)[0]["cursor"], 1);
    drop(node);
    let node = Node::start_with(&home, &format!("127.0.0.1:{port}"), &[]);
    price(&home, &node, 1, "2.00");
    line.clear();
    out.read_line(&mut line).unwrap();
    let event = &lines(&line)[0];
    assert_eq!((&event["cursor"], &event["event_type"]), (&json!(2), &json!("updated")));
    assert!(child.wait().unwrap().success());
}

/// Kills while subscribers are told: no gap, and no cursor with two contents.
#[test]
fn kills_leave_no_gap_and_no_cursor_with_two_contents() {
    let home = Home::new("watching-kills");
    home.run(&["keys", "new"]).exits(0);
    let mut node = Node::start(&home);
    let port = node.port();
    let folders: Vec<String> = (0..3).map(|number| home.path(&format!("shelf-{number}"))).collect();
    let replay = |folder: &str| {
        let listed = home.run(&["subscriptions", "list", "--subscriptions", folder]).exits(0);
        let id = listed.out.lines().find_map(|line| line.split_whitespace().next().filter(|id| id.starts_with("urn:")));
        let id = id.unwrap_or_else(|| panic!("{}", listed.out)).to_owned();
        lines(&home.run(&["subscriptions", "replay", &id, "--json", "--subscriptions", folder]).exits(0).out)
    };
    let url = node.url.clone();
    price(&home, &node, 0, "0.50");
    for folder in &folders {
        let arguments = ["watch", QUESTION, "--to", &url, "--events", "1", "--subscriptions", folder];
        home.run(&arguments).exits(0);
    }
    let mut known: Vec<Vec<Value>> = folders.iter().map(|folder| replay(folder)).collect();
    let mut published = 1;
    for round in 1..=4_usize {
        // A publication is under way when the node dies.
        let manifest = own(
            &home,
            json!({"tool": {"did": "did:web:t9.example", "categories": ["translation"]},
            "pricing": {"models": [{"amount": format!("{round}.99"), "currency": "EUR"}]}}),
        );
        let file = home.file("late.json", &manifest.to_string());
        for number in 0..6 {
            price(&home, &node, number, &format!("{round}.{number}0"));
            published += 1;
        }
        let arguments = ["publish", &file, "--kind", "manifest", "--to", &url];
        let mut late = home.command(&[], &arguments).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(7 * round as u64));
        drop(node);
        let _ = late.wait();
        node = Node::start_with(&home, &format!("127.0.0.1:{port}"), &[]);
        for (folder, before) in folders.iter().zip(&mut known) {
            let mut now = replay(folder);
            for _ in 0..50 {
                if now.len() >= published {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
                now = replay(folder);
            }
            assert!(now.len() >= published, "{} events of {published}", now.len());
            assert_eq!(now[..before.len()], before[..], "a cursor has two contents");
            for (cursor, event) in (1..).zip(&now) {
                assert_eq!(event["cursor"], json!(cursor), "a gap");
            }
            *before = now;
        }
    }
}
