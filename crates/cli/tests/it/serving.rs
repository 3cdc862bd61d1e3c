//! `serve`, `ask`, `publish`, `withdraw` and `explain`: the binary against the binary, over HTTP.

use crate::node::{Node, liar, stock, stranger};
use crate::pages::steady;
use crate::run::{Home, Ran, intent};
use json::{Value, json};
use std::io::{Read, Write};

/// Everything of which anything is known by its DID: more than a page of the market.
const EVERYBODY: &str = r#"{"category": "discovery", "resolution_policy": "full_set",
    "constraints": {"path": "/tool/did", "operator": "exists", "value": true},
    "projection": {"include": ["/tool/did"]}}"#;

fn own_did(home: &Home) -> String {
    home.run(&["keys", "show", "--json"]).exits(0).json()["did"].as_str().unwrap().to_owned()
}

fn offer(did: &str, number: usize) -> String {
    json!({"offer_id": format!("urn:oap:offer:mine:{number}"), "provider_did": did, "colour": "vermilion",
        "price": {"amount": format!("{number}.50"), "currency": "EUR"}})
    .to_string()
}

const VERMILION: &str = r#"{"category": "commercial",
    "constraints": {"path": "/colour", "operator": "eq", "value": "vermilion"},
    "projection": {"include": ["/offer_id"]}}"#;

fn ask(home: &Home, node: &Node, intent: &str, more: &[&str]) -> Ran {
    home.run(&[&["ask", intent, "--to", &node.url], more].concat())
}

#[test]
fn a_market_is_asked_and_its_answers_are_proved() {
    let home = Home::new("ask");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    let node = Node::start(&home);
    let page = ask(&home, &node, &intent("affordable-certified-translation"), &[]).exits(0);
    insta::assert_snapshot!(steady(&page.out));
    assert_eq!(page.err, "");

    let (answer, question) = (home.path("answer.json"), home.path("question.json"));
    let kept = ["--json", "--save", &answer, "--save-intent", &question];
    let printed = ask(&home, &node, &intent("courier-before-friday-evening"), &kept).exits(0).json();
    assert_eq!(printed["resolver_did"], node.did);
    assert_eq!(printed["candidates"].as_array().unwrap().len(), 3);
    home.run(&["verify", &answer, "--intent", &question]).exits(0).says("conforms");
    // The same signed bytes again are the same answer.
    ask(&home, &node, &question, &["--save", &home.path("again.json")]).exits(0);
    assert_eq!(home.read("answer.json"), home.read("again.json"));
}

#[test]
fn an_answer_is_followed_to_its_last_page() {
    let home = Home::new("ask-all");
    stock(&home);
    let node = Node::start(&home);
    let everybody = home.file("everybody.json", EVERYBODY);
    let first = ask(&home, &node, &everybody, &[]).exits(0);
    first.says("100 answers, and there are more").complains("--all fetches the rest");

    let (answer, question) = (home.path("all.json"), home.path("question.json"));
    let all = ask(&home, &node, &everybody, &["--all", "--save", &answer, "--save-intent", &question]).exits(0);
    all.says("112 answers\n");
    let later = home.path("all.json.2");
    home.run(&["verify", &later, "--intent", &question, "--earlier", "100"]).exits(0).says("12 candidates");
    let lines = ask(&home, &node, &everybody, &["--all", "--json"]).exits(0).out;
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn records_come_and_go_with_their_publisher() {
    let home = Home::new("publish");
    home.run(&["publish", "-"]).exits(3).complains("rialto keys new");
    home.run(&["keys", "new"]).exits(0);
    let (did, node) = (own_did(&home), Node::start(&home));
    let publish = |input: &str, more: &[&str]| {
        home.run_with(&[("RIALTO_NODE", &node.url)], input, &[&["publish", "-"], more].concat())
    };
    publish(&offer(&did, 1), &[]).exits(0).says("published urn:oap:offer:mine:1\n").says("offer, revision 1, change 1");
    let lines: Vec<String> = (1..=18).map(|number| offer(&did, number)).collect();
    publish(&(lines.join("\n\n") + "\n"), &["--kind", "offer"])
        .exits(0)
        .says("published: 18 kept, 0 unchanged, 0 refused of 18 records");
    let indented = format!("{:#}", json!({"id": "urn:x:note", "text": "one document on many lines"}));
    publish(&indented, &[]).exits(1).complains("--kind manifest, offer");
    let acknowledged = publish(&indented, &["--kind", "knowledge", "--json"]).exits(0).json();
    assert_eq!(acknowledged["output"]["record_id"], "urn:x:note");

    let question = home.file("vermilion.json", VERMILION);
    ask(&home, &node, &question, &[]).exits(0).says("18 answers\n");
    for number in 1..=17 {
        home.run(&["withdraw", &format!("urn:oap:offer:mine:{number}"), "--to", &node.url])
            .exits(0)
            .says(&format!("withdrawn urn:oap:offer:mine:{number}\n"));
    }
    ask(&home, &node, &question, &[]).exits(0).says("1 answer\n").says("1 candidate satisfies all the conditions");
    home.run(&["withdraw", "urn:oap:offer:nobody", "--to", &node.url]).exits(1).complains("record_not_found");
}

#[test]
fn what_is_restricted_is_there_for_those_who_are_named() {
    let home = Home::new("restrict");
    home.run(&["keys", "new"]).exits(0);
    let friend = home.path("friend.json");
    home.run(&["keys", "new", "--file", &friend]).exits(0);
    let shown = home.run(&["keys", "show", "--json", "--file", &friend]).exits(0).json();
    let (did, node) = (own_did(&home), Node::start(&home));
    let restrict = format!("/price={}", shown["did"].as_str().unwrap());
    let file = home.file("offer.json", &offer(&did, 1));
    home.run(&["publish", &file, "--to", &node.url, "--restrict", &restrict]).exits(0).says("published");
    let question = home.file(
        "price.json",
        r#"{"category": "commercial", "constraints": {"path": "/price/amount", "operator": "eq", "value": "1.50"},
            "projection": {"include": ["/price"]}}"#,
    );
    ask(&home, &node, &question, &["--key", &friend]).exits(0).says("1 answer\n").says("1.50");
    let stranger = ask(&home, &node, &question, &["--json"]).exits(0).out;
    assert!(stranger.contains("\"candidates\":[]"), "{stranger}");
    let view = node.get("/oap/records/urn%3Aoap%3Aoffer%3Amine%3A1");
    assert!(view.contains("oap.record.view") && view.contains("vermilion") && !view.contains("1.50"), "{view}");

    home.run(&["publish", &file, "--to", &node.url, "--restrict", "/price"]).exits(2).complains("PATH=DID");
    home.run(&["publish", &file, "--to", &node.url, "--restrict", "/price=somebody"]).exits(2).complains("DID");
    let name = format!("/offer_id={did}");
    let refused = home.run(&["publish", &file, "--to", &node.url, "--restrict", &name]).exits(1);
    refused.complains("error[record_name_restricted]");
    // Restrictions beside an unsigned record are taken along.
    let beside = json!({"record": serde_json::from_str::<Value>(&offer(&did, 2)).unwrap(),
        "restricted": [{"path": "/price", "audience": [did]}]});
    let beside = home.file("beside.json", &beside.to_string());
    home.run(&["publish", &beside, "--to", &node.url]).exits(0).says("published");
    assert!(!node.get("/oap/records/urn%3Aoap%3Aoffer%3Amine%3A2").contains("2.50"));
}

#[test]
fn nobody_publishes_in_the_name_of_another() {
    let home = Home::new("publish-others");
    home.run(&["keys", "new"]).exits(0);
    home.run(&["keys", "new", "--file", &home.path("other.json")]).exits(0);
    let (did, node) = (own_did(&home), Node::start(&home));
    let file =
        home.file("offers.ndjson", &format!("{}\n{}\nnonsense\n", offer(&did, 1), offer("did:web:a.example", 2)));
    let ran = home.run(&["publish", &file, "--to", &node.url]).exits(1);
    ran.says("published: 1 kept, 0 unchanged, 2 refused of 3 records");
    ran.complains("error[publisher_not_authorized]").complains("offers.ndjson line 2, /publisher_did");
    ran.complains("error[json_syntax]").complains("offers.ndjson line 3:1:2");
    let told = home.run(&["publish", &file, "--to", &node.url, "--json"]).exits(1).out;
    let refused: Vec<&str> = told.lines().filter(|line| line.contains("publisher_not_authorized")).collect();
    assert_eq!((told.lines().count(), refused.len()), (3, 1), "{told}");
    let other = ["withdraw", "urn:oap:offer:mine:1", "--to", &node.url, "--key", &home.path("other.json")];
    home.run(&other).exits(1).complains("error[publisher_not_authorized]");
}

#[test]
fn a_node_explains_its_decisions() {
    let home = Home::new("explain-node");
    stock(&home);
    let node = Node::start(&home);
    let translation = intent("affordable-certified-translation");
    let explain = |words: &[&str]| home.run(&[&["explain", "--to", &node.url], words].concat());
    explain(&[&translation, "did:web:vistula-language-house.example"])
        .exits(0)
        .says("accept, rank 1\n")
        .says("✓ /tool/categories/* eq \"translation.certified\"")
        .says("score by rialto.rank 1.1");
    explain(&["--intent", &translation, "did:web:tagus-translation-rooms.example"])
        .exits(0)
        .says("✗ not /data_policy/training_on_principal_data eq \"by_default\"");
    explain(&[&translation]).exits(0).says("satisfy all the conditions");
    let unknown = [translation.as_str(), "did:web:nobody.example"];
    explain(&unknown).exits(1).complains("holds no candidate `did:web:nobody.example`");
    let signed = explain(&[&unknown[..], &["--json"]].concat()).exits(1).json();
    assert_eq!((&signed["output"]["held"], &signed["status"]), (&json!(false), &json!("ok")));
    explain(&[&translation, "a", "b"]).exits(2);
    explain(&[]).exits(2).complains("no intent is named");
}

#[test]
fn a_question_that_nobody_can_answer_says_what_it_runs_into() {
    let home = Home::new("ask-nothing");
    stock(&home);
    let node = Node::start(&home);
    let ran = ask(&home, &node, &intent("broken/range-that-cannot-hold"), &[]).exits(0);
    ran.says("no answer\n")
        .says("✓ verified: keeps to its question\n")
        .says("no candidate satisfies all the conditions");
}

#[test]
fn a_word_changed_on_the_way_is_noticed() {
    let home = Home::new("liar");
    stock(&home);
    let node = Node::start(&home);
    let url = liar(node.port(), "Vistula Language House", "Vistula Language Hours");
    let question = intent("affordable-certified-translation");
    home.run(&["ask", &question, "--to", &url]).exits(1).complains("error[signature_invalid]").complains(&url);
    home.run(&["explain", &question, "--to", &url]).exits(0);
    let url = liar(node.port(), "record_not_found", "record_not_happy");
    home.run(&["keys", "new"]).exits(0);
    let withdrawal = ["withdraw", "urn:x:nobody", "--to", &url];
    home.run(&withdrawal).exits(1).complains("error[signature_invalid]");
}

#[test]
fn mistakes_are_named() {
    let home = Home::new("ask-mistakes");
    let question = intent("quick-weather-for-europe");
    let to = |url: &str| home.run(&["ask", &question, "--to", url]);
    to("http://127.0.0.1:9").exits(3).complains("nobody answers at http://127.0.0.1:9").complains("rialto serve");
    to("http://node.example").exits(2).complains("plain http is spoken with this machine only");
    to("http://10.1.2.3:7420").exits(2).complains("use its https address");
    to("node.example").exits(2).complains("is no address of a node");
    let other = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 65_536]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
    });
    to(&other).exits(3).complains("does not answer like a node: HTTP status 200");
    let elsewhere = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 65_536]);
        let _ = stream.write_all(b"HTTP/1.1 302 Found\r\nlocation: https://a.example/\r\ncontent-length: 0\r\n\r\n");
    });
    to(&elsewhere).exits(3).complains("we were sent elsewhere");

    let node = Node::start(&home);
    ask(&home, &node, &intent("broken/unknown-operator"), &[]).exits(1).complains("error[unknown_operator]");
    let expired = home.file("old.json", &expired());
    ask(&home, &node, &expired, &[]).exits(1).complains("error[intent_expired]");
    let standing = home.file(
        "standing.json",
        &VERMILION.replace("commercial", "subscription").replacen(
            '{',
            "{\"subscription\": {\"deliver_to\": \"https://a.example/x\"},",
            1,
        ),
    );
    let ran = ask(&home, &node, &standing, &[]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    home.run(&["serve", "--data", &home.path("data"), "--listen", "127.0.0.1:0"]).exits(3).complains("is open already");
    home.run(&["serve", "--data", &home.path("free"), "--listen", "0.0.0.0:0"]).exits(3).complains("plain HTTP");
}

/// A draft whose window closed long ago.
fn expired() -> String {
    let window = json!({"from": "2025-01-01T00:00:00Z", "to": "2025-01-01T01:00:00Z"});
    let mut draft: Value = parsed(VERMILION);
    draft.as_object_mut().unwrap().insert("validity".to_owned(), window);
    draft.to_string()
}

fn parsed(text: &str) -> Value {
    json::Document::parse(text.as_bytes(), &json::Limits::OURS).unwrap().root().to_value()
}

/// PEM wants the other alphabet of base64, padded.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let mut text = trust::encoding::encode(der).replace('-', "+").replace('_', "/");
    text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[test]
fn a_named_node_is_proved_by_its_own_host() {
    let home = Home::new("ask-tls");
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = home.file("chain.pem", &pem("CERTIFICATE", made.cert.der()));
    let key = home.file("key.pem", &pem("PRIVATE KEY", &made.signing_key.serialize_der()));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("https://localhost:{port}");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let more = ["--public-url", &url, "--certificate", &certificate, "--certificate-key", &key];
    let node = Node::start_with(&home, &format!("127.0.0.1:{port}"), &more);
    assert_eq!(node.did, format!("did:web:localhost%3A{port}"));

    let question = home.file("everybody.json", EVERYBODY);
    let trusting = |to: &str, more: &[&str]| {
        home.run_with(&[("SSL_CERT_FILE", &certificate)], "", &[&["ask", &question, "--to", to], more].concat())
    };
    trusting(&url, &[]).exits(0).says(&format!("signed by {}, from {url}", node.did));
    home.run(&["ask", &question, "--to", &url]).exits(3).complains("certificate");
    // Another host cannot vouch for the name, even when its certificate holds.
    let other = format!("https://127.0.0.1:{port}");
    trusting(&other, &[]).exits(1).complains("--did-document FILE");
    trusting(&format!("http://127.0.0.1:{port}"), &[]).exits(3);
}
