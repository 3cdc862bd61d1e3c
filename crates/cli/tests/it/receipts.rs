//! `rialto receipts`: the asker's own chain, begun by `rialto ask`.

use crate::node::{Node, stock};
use crate::run::{Home, intent};
use json::{Value, json};

fn asked(home: &Home, node: &Node, more: &[&str]) {
    let question = intent("battery-reading-list");
    home.run(&[&["ask", &question, "--to", &node.url], more].concat()).exits(0).says("4 answers");
}

#[test]
fn every_question_is_noted_with_its_answer_and_its_decisions() {
    let home = Home::new("receipts");
    stock(&home);
    let node = Node::start(&home);
    home.run(&["receipts", "list"]).exits(0).complains("nothing was asked yet");
    home.run(&["receipts", "verify"]).exits(0).says("0 receipts");
    let (answer, question) = (home.path("answer.json"), home.path("question.json"));
    asked(&home, &node, &["--save", &answer, "--save-intent", &question]);
    asked(&home, &node, &["--no-receipt"]);
    asked(&home, &node, &[]);
    let receipts = home.run(&["receipts", "list", "--json"]).exits(0).json();
    assert_eq!(receipts.as_array().unwrap().len(), 2);
    let (first, second) = (&receipts[0], &receipts[1]);
    assert_eq!((&first["previous"], &first["number"], &second["number"]), (&json!("genesis"), &json!(1), &json!(2)));
    assert_eq!((&first["resolver_did"], &first["conforms"]), (&json!(node.did), &json!(true)));
    let said: Value = serde_json::from_str(&home.read("answer.json")).unwrap();
    assert_eq!(first["answers"][0]["response_id"], said["response_id"]);
    let records = ["candidates", "rejected"].map(|list| said[list].as_array().cloned().unwrap_or_default()).concat();
    assert_eq!(first["decisions"].as_array().unwrap().len(), records.len());
    assert_eq!(first["decisions"][0]["decision_id"], records[0]["decision_record"]["decision_id"]);
    home.run(&["receipts", "list"]).exits(0).says("urn:oap:intent:");
    home.run(&["receipts", "verify", &answer, &question]).exits(0).says("2 receipts");
    // What was changed after it was noted is not known to the chain.
    let other = home.file("other.json", &home.read("answer.json").replace("accept", "reject"));
    home.run(&["receipts", "verify", &other]).exits(1).complains("does not know");
    let exported = home.run(&["receipts", "export"]).exits(0).out;
    assert_eq!(exported, home.read("receipts.ndjson"));
    assert_eq!(home.run(&["receipts", "export", "--json"]).exits(0).json(), receipts);
}

#[test]
fn a_chain_that_was_changed_is_found_out() {
    let home = Home::new("receipts-changed");
    stock(&home);
    let node = Node::start(&home);
    for _ in 0..3 {
        asked(&home, &node, &[]);
    }
    let log = home.read("receipts.ndjson");
    let verify = || home.run(&["receipts", "verify", "--json"]);
    assert_eq!(verify().exits(0).json()["receipts"], json!(3));
    home.file("receipts.ndjson", &log.replacen("accept", "reject", 1));
    let found = verify().exits(1).json();
    assert_eq!(
        (&found["sound"], &found["flaws"]),
        (&json!(false), &json!(["line 2 does not follow the line before it"]))
    );
    let shorter: String = log.split_inclusive('\n').take(2).collect();
    home.file("receipts.ndjson", &shorter);
    home.run(&["receipts", "verify"]).exits(1).complains("does not end where it ended last");
    // A line that a crash cut short is written over, and the chain goes on.
    home.file("receipts.ndjson", &format!("{log}{{\"number\":4,\"at\""));
    asked(&home, &node, &[]);
    assert_eq!(verify().exits(0).json()["receipts"], json!(4));
}
