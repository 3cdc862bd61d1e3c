//! Secrets and switches: what is never told, how keys follow one another, and who is let in unchecked.

use crate::node::{Node, stock};
use crate::run::{Home, intent};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The secret of a key file, in every form in which it could leave.
fn forms(key: &str) -> Vec<Vec<u8>> {
    let jwk = json::Document::parse(key.as_bytes(), &json::Limits::INTENT).unwrap();
    let text = jwk.root().get("d").unwrap().as_str().unwrap().to_owned();
    let raw = trust::encoding::decode_url(&text).unwrap();
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    let list: Vec<String> = raw.iter().map(u8::to_string).collect();
    let padded = text.replace('-', "+").replace('_', "/");
    vec![
        text.into_bytes(),
        padded.into_bytes(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
        raw,
        list.join(", ").into_bytes(),
    ]
}

fn holds(hay: &[u8], needle: &[u8]) -> bool {
    hay.windows(needle.len()).any(|window| window == needle)
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn no_secret_is_told_to_a_log_a_page_or_another_file() {
    let home = Home::new("secrets");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    let (data, log) = (home.path("data"), home.path("node.log"));
    let arguments = ["serve", "--json", "--log", "trace", "--data", &data, "--listen", "127.0.0.1:0"];
    let mut child = home.command(&[], &arguments).stderr(File::create(&log).unwrap()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told = json::Document::parse(line.as_bytes(), &json::Limits::OURS).unwrap().root().to_value();
    let url = told["address"].as_str().unwrap().to_owned();
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
    let mut heard = String::new();
    for arguments in [
        &["ask", &intent("affordable-certified-translation"), "--to", &url][..],
        &["ask", &intent("affordable-certified-translation"), "--to", &url, "--json"],
        &["withdraw", "urn:nobody", "--to", &url],
        &["keys", "show"],
        &["keys", "show", "--json"],
        &["doctor", "--data", &data],
        &["conformance", &url, "--only", "signature"],
    ] {
        let ran = home.run(arguments);
        heard.push_str(&ran.out);
        heard.push_str(&ran.err);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let told = home.run(&["keys", "rotate", "--data", &data, "--json"]).exits(0);
    heard.push_str(&told.out);
    let keys = ["key.json", "data/node.key", "data/node.key.next"].map(|file| home.read(file));
    let mut all = Vec::new();
    files(Path::new(&home.path(".")), &mut all);
    let others: Vec<_> = all
        .iter()
        .filter(|path| {
            !["key.json", "node.key", "node.key.next"].contains(&path.file_name().unwrap().to_str().unwrap())
        })
        .collect();
    assert!(fs::metadata(&log).unwrap().len() > 1_000, "the log says something");
    for secret in keys.iter().flat_map(|key| forms(key)) {
        assert!(!holds(heard.as_bytes(), &secret), "a page tells a secret");
        for path in &others {
            assert!(!holds(&fs::read(path).unwrap(), &secret), "{} holds a secret", path.display());
        }
    }
    // The search finds what is there.
    assert!(keys.iter().all(|key| holds(key.as_bytes(), &forms(key)[0])));
}

#[test]
fn a_key_follows_and_what_the_old_one_signed_is_verified_offline() {
    let home = Home::new("rotate");
    let nowhere = home.run(&["keys", "rotate", "--data", &home.path("nowhere")]);
    nowhere.exits(3).complains("there is no store in").complains("help: name the folder of your node with --data");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    let data = home.path("data");
    let named = ["--public-url", "https://node.example"];
    let ask = |node: &Node, answer: &str, question: &str, document: &str| {
        let document = home.file(document, &node.get("/.well-known/did.json"));
        let asked = intent("affordable-certified-translation");
        let kept = ["--save", &home.path(answer), "--save-intent", &home.path(question), "--did-document", &document];
        home.run(&[&["ask", &asked, "--to", &node.url][..], &kept].concat()).exits(0);
    };
    let node = Node::start_with(&home, "127.0.0.1:0", &named);
    ask(&node, "first.json", "asked.json", "before.json");
    home.run(&["keys", "rotate", "--data", &data, "--now"]).exits(3).complains("cannot be rotated");
    drop(node);
    home.run(&["keys", "rotate", "--data", &data, "--now"]).exits(0).says("from");
    // The new one signs from the next whole second on.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let node = Node::start_with(&home, "127.0.0.1:0", &named);
    ask(&node, "second.json", "asked-again.json", "after.json");
    // A question that was answered before is answered with the same words, which the old key signed.
    let again = ["ask", &home.path("asked.json"), "--to", &node.url, "--did-document", &home.path("after.json")];
    home.run(&again).exits(0);
    drop(node);
    for (answer, document, code) in [
        ("first.json", "before.json", 0),
        ("first.json", "after.json", 0),
        ("second.json", "after.json", 0),
        ("second.json", "before.json", 1),
    ] {
        home.run(&["verify", &home.path(answer), "--did-document", &home.path(document)]).exits(code);
    }
    let later = home.read("first.json").replace("\"evaluated_at\":\"2", "\"evaluated_at\":\"3");
    let later = home.file("later.json", &later);
    home.run(&["verify", &later, "--did-document", &home.path("after.json")]).exits(1).complains("key_retired");
    home.run(&["keys", "rotate", "--data", &data]).exits(0).says("without --public-url: its next start");
    home.run(&["keys", "rotate", "--data", &data]).exits(3).complains("announced already");
}

#[test]
fn an_issuer_that_nobody_can_check_is_let_in_on_loopback_only() {
    let home = Home::new("unverified");
    let data = home.path("data");
    let issuer = ["--unverified-issuer", "did:web:probe.example"];
    for (listen, more) in
        [("0.0.0.0:0", &[][..]), ("[::]:0", &[]), ("127.0.0.1:0", &["--public-url", "https://node.example"])]
    {
        let arguments = [&["serve", "--data", &data, "--listen", listen][..], &issuer, more].concat();
        home.run(&arguments).exits(2).complains("--unverified-issuer");
    }
    let node = Node::start_with(&home, "127.0.0.1:0", &issuer);
    let body = json::json!({
        "intent_id": "urn:oap:intent:probe-1",
        "issuer_did": "did:web:probe.example",
        "category": "discovery",
        "constraints": {"path": "/oap_version", "operator": "exists", "value": true},
        "projection": {"include": ["/"]},
        "validity": {"from": "2020-01-01T00:00:00Z", "to": "2020-01-01T00:02:00Z"},
        "signature": {"alg": "EdDSA", "value": "probe-signature"},
    })
    .to_string();
    let head =
        "POST /oap/intent HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/oap+json";
    let reply = node.send(&format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    assert!(reply.contains("intent_expired"), "the other checks stay: {reply}");
}
