//! `store` and `doctor`: the data folder of a node, looked at from outside.

use crate::node::{Node, stock};
use crate::run::{Home, intent};
use json::json;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};

#[test]
fn a_store_is_checked_rebuilt_copied_and_put_back() {
    let home = Home::new("store");
    let (data, copy, new) = (home.path("data"), home.path("copy"), home.path("new"));
    home.run(&["store", "check", "--data", &data]).exits(3).complains("there is no store");
    stock(&home);
    let checked = home.run(&["store", "check", "--data", &data, "--json"]).exits(0).json();
    assert_eq!((&checked["changes"], &checked["active"], &checked["flaws"]), (&json!(460), &json!(460), &json!([])));
    assert_eq!(checked["index_behind"], 0);
    let rebuilt = home.run(&["store", "rebuild", "--data", &data]).exits(0);
    rebuilt.says("rebuilt the index from 460 changes").says("112 manifests, 72 offers, 57 knowledge");
    home.run(&["store", "check", "--data", &data]).exits(0).says("sound: 460 changes").says("level with the log");

    home.run(&["store", "backup", &copy, "--data", &data]).exits(0).says("backed up 460 changes");
    home.run(&["store", "backup", &copy, "--data", &data]).exits(3).complains("is not empty");
    home.run(&["store", "restore", &copy, "--data", &data]).exits(3).complains("is not empty");
    home.run(&["store", "restore", &home.path("nowhere"), "--data", &new]).exits(3).complains("there is no store");
    home.run(&["store", "restore", &copy, "--data", &new]).exits(0).says("restored 460 changes");
    let mode = fs::metadata(home.path("new/node.key")).unwrap().permissions().mode();
    assert_eq!((home.read("new/node.key"), mode & 0o777), (home.read("data/node.key"), 0o600));
    home.run(&["store", "check", "--data", &new]).exits(0).says("read 460 changes from the log");
}

#[test]
fn a_restored_node_answers_as_the_same() {
    let home = Home::new("store-same");
    stock(&home);
    home.run(&["store", "backup", &home.path("copy"), "--data", &home.path("data")]).exits(0);
    let before = Node::start(&home).did.clone();
    fs::remove_dir_all(home.path("data")).unwrap();
    home.run(&["store", "restore", &home.path("copy"), "--data", &home.path("data")]).exits(0);
    let node = Node::start(&home);
    assert_eq!(node.did, before);
    home.run(&["ask", &intent("battery-reading-list"), "--to", &node.url]).exits(0).says("4 answers\n");
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let home = Home::new("store-busy");
    let data = home.path("data");
    let node = Node::start(&home);
    let copy = home.path("copy");
    let commands = [
        &["store", "check"][..],
        &["store", "rebuild"],
        &["store", "backup", &copy],
        &["import", "examples/market/offers.ndjson"],
    ];
    // At once, because each waits a while for the node to close the store.
    std::thread::scope(|threads| {
        for command in commands {
            let arguments = [command, &["--data", &data]].concat();
            let home = &home;
            threads.spawn(move || {
                home.run(&arguments).exits(3).complains("is open already");
            });
        }
    });
    let listen = node.url.trim_start_matches("http://");
    home.run(&["doctor", "--data", &data, "--listen", listen])
        .exits(0)
        .says("a node has it open")
        .says(&format!("a node answers at {listen}:"))
        .says(&node.did);
}

#[test]
fn a_damaged_store_is_named_and_not_used() {
    let home = Home::new("store-damaged");
    stock(&home);
    let path = home.path("data/store/rialto.db");
    let bytes = fs::read(&path).unwrap();
    let word = b"Family-run inns.";
    let place = bytes.windows(word.len()).position(|window| window == word).unwrap();
    fs::File::options().write(true).open(&path).unwrap().write_all_at(b"Family-run inks.", place as u64).unwrap();
    let ran = home.run(&["store", "check", "--data", &home.path("data")]);
    assert!(ran.code == 1 || ran.code == 3, "{}{}", ran.out, ran.err);
    assert!((ran.out + &ran.err).contains("did:web:lamplight-inns.example"), "the record is named");
}

#[test]
fn the_doctor_says_what_to_do() {
    let home = Home::new("doctor");
    let data = home.path("data");
    let listen = ["--listen", "127.0.0.1:0"];
    let doctor = || home.run(&[&["doctor", "--data", &data], &listen[..]].concat());
    doctor().exits(0).says("the first start makes it").says("`rialto keys new` makes one").says("a node can run here");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    doctor().exits(0).says("460 changes in the log").says("level with the log");
    let key = home.path("data/node.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    doctor().exits(1).says("others can read the key file").says("chmod 600").says("1 thing to mend first");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    std::thread::spawn(move || taken.incoming().for_each(drop));
    let told = home.run(&["doctor", "--data", &data, "--listen", &listen, "--json"]).exits(1).json();
    assert_eq!(told["ready"], false);
    let port = told["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "port").unwrap().clone();
    assert_eq!(port["state"], "bad");
}

/// Blank lines count as lines and for nothing else.
const LINES: &str = concat!(
    "{\"id\": \"urn:n:1\", \"title\": \"one\"}\n",
    "\n",
    "{\"id\": \"urn:n:2\"\n",
    "{\"title\": \"nameless\"}\n",
    "[1]\n",
    "{\"id\": \"urn:n:3\"}\n",
);

#[test]
fn refused_lines_are_named_with_their_reason_and_the_rest_is_kept() {
    let home = Home::new("import-refused");
    let file = home.file("lines.ndjson", LINES);
    let told = home.run(&["import", &file, "--kind", "knowledge", "--data", &home.path("data")]).exits(1);
    told.says("imported: 2 kept, 0 unchanged, 3 refused of 5 lines");
    told.complains("refused line 3: ")
        .complains("refused line 4: a record has a name of its own")
        .complains("refused line 5: a record is an object");
    let again = home.run(&["import", &file, "--kind", "knowledge", "--data", &home.path("data"), "--json"]).exits(1);
    let told = again.json();
    let counts = ["lines", "kept", "unchanged", "refused"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [5, 0, 2, 3]);
    let refusals = told["refusals"].as_array().unwrap();
    let lines: Vec<_> = refusals.iter().map(|refusal| refusal["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 4, 5]);
    assert_eq!(refusals[2]["reason"], "a record is an object");
    // Nobody says what they are.
    let told = home.run(&["import", &file, "--data", &home.path("other")]).exits(1);
    told.complains("refused line 1: say what these records are with --kind");
    home.run(&["import", &file, "--kind", "rumour"]).exits(2).complains("one of manifest");
}

#[test]
fn twenty_refused_lines_are_shown_and_all_are_named_to_programs() {
    let home = Home::new("import-many-refused");
    let file = home.file("lines.ndjson", &"[]\n".repeat(50));
    let told = home.run(&["import", &file, "--kind", "knowledge", "--data", &home.path("data")]).exits(1);
    assert_eq!(told.err.matches("refused line ").count(), 20, "{}", told.err);
    told.complains("30 more lines were refused; --json names them all");
    let told = home.run(&["import", &file, "--kind", "knowledge", "--data", &home.path("data"), "--json"]).exits(1);
    assert_eq!(told.json()["refusals"].as_array().unwrap().len(), 50);
}
