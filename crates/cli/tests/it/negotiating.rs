//! RFC 0024 between the real binary and a real node: the handshake, its memory, deprecation, who uses what, V1 to V3.

use crate::node::{Node, liar, stock};
use crate::run::Home;
use json::{Document, Limits, Value, json};

const INTENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent.schema.json";
const QUESTION: &str = "examples/intents/affordable-certified-translation.json";

fn parsed(text: &str) -> Value {
    Document::parse(text.as_bytes(), &Limits::OURS).unwrap().root().to_value()
}

#[test]
fn asking_agrees_about_the_version_and_remembers_why() {
    let home = Home::new("negotiating-ask");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    let node = Node::start(&home);
    let (intent, answer) = (home.path("intent.json"), home.path("answer.json"));
    let ask = ["ask", QUESTION, "--to", &node.url, "--save", &answer, "--save-intent", &intent];
    home.run(&ask).exits(0);
    assert_eq!(parsed(&home.read("intent.json"))["schema_version"], "1.3");
    assert_eq!(parsed(&home.read("answer.json"))["schema_version"], "1.3");
    let memory = parsed(&home.read("versions.json"));
    let agreed = &memory["agreements"][0];
    assert_eq!((&agreed["address"], &agreed["did"]), (&json!(node.url), &json!(node.did)));
    assert_eq!((&agreed["version"], &agreed["profile"][INTENT]["default"]), (&json!("1.3"), &json!("1.3")));
    // A signed intent keeps its signature: the version goes around it.
    let signed = home.path("signed.json");
    home.run(&["sign", QUESTION, "-o", &signed]).exits(0);
    home.run(&["ask", &signed, "--to", &node.url, "--save", &answer]).exits(0);
    assert!(parsed(&home.read("signed.json")).get("schema_version").is_none());
    assert_eq!(parsed(&home.read("answer.json"))["schema_version"], "1.3");
}

#[test]
fn a_provider_that_suddenly_offers_less_is_refused_and_reported() {
    let home = Home::new("negotiating-downgrade");
    let node = Node::start(&home);
    let told = home.run(&["schema", "negotiate", &node.url, "--json"]).exits(0).json();
    assert_eq!((&told["agreed"], &told["version"], &told["answer"]), (&json!(true), &json!("1.3"), &json!("1.3")));
    home.run(&["schema", "negotiate", &node.url]).exits(0).says("agreed: 1.3").says("mapping 1.2 to 1.3");
    let between = liar(node.port(), "\"1.3\"", "\"1.1\"");
    home.file("versions.json", &home.read("versions.json").replace(&node.url, &between));
    home.run(&["schema", "negotiate", &between]).exits(1).complains("version_downgrade_refused");
    let told = home.run(&["schema", "negotiate", &between, "--json"]).exits(1).json();
    assert_eq!(told["refused"]["code"], "version_downgrade_refused");
    // The memory is what it was: the attempt is refused again.
    home.run(&["schema", "negotiate", &between]).exits(1).complains("version_downgrade_refused");
}

#[test]
fn explaining_and_watching_agree_first_and_refuse_less_than_before() {
    let home = Home::new("negotiating-others");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    let node = Node::start(&home);
    let watched = "examples/intents/watch-translation-prices.json";
    home.run(&["explain", QUESTION, "--to", &node.url]).exits(0);
    let agreed = parsed(&home.read("versions.json"))["agreements"][0].clone();
    assert_eq!((&agreed["address"], &agreed["version"]), (&json!(node.url), &json!("1.3")));
    home.run(&["watch", watched, "--to", &node.url, "--events", "1"]).exits(0);
    // Somebody stands in between and offers less; what was agreed a day ago is asked for again.
    let between = liar(node.port(), "\"1.3\"", "\"1.1\"");
    let long_ago = home.read("versions.json").replace(&node.url, &between);
    let long_ago = long_ago.replace(agreed["agreed_at"].as_str().unwrap(), "2020-01-01T00:00:00Z");
    for ask in [&["explain", QUESTION][..], &["watch", watched, "--events", "1"], &["ask", QUESTION]] {
        home.file("versions.json", &long_ago);
        home.run(&[ask, &["--to", &between]].concat()).exits(1).complains("version_downgrade_refused");
    }
}

#[test]
fn without_a_common_version_it_is_said_what_would_work() {
    let home = Home::new("negotiating-nothing");
    let node = Node::start(&home);
    let ran = home.run(&["schema", "negotiate", &node.url, "--ours", "0.9,2.0"]).exits(1);
    ran.complains("schema_version_not_accepted").complains("would answer in 1.2, 1.3");
    home.run(&["schema", "negotiate", &node.url, "--ours", "v1"]).exits(2).complains("no version");
    home.run(&["schema", "negotiate", &node.url, "--schema", "thing"]).exits(2).complains("names no schema");
    let ran = home.run(&["schema", "negotiate", &node.url, "--schema", "https://schemas.example/thing.json"]);
    ran.exits(0).says("no profile:");
}

#[test]
fn a_version_is_announced_to_a_running_node_or_in_a_folder_and_its_users_are_named() {
    let home = Home::new("negotiating-deprecate");
    stock(&home);
    home.run(&["keys", "new"]).exits(0);
    let (data, node) = (home.path("data"), Node::start(&home));
    let mut question =
        parsed(&std::fs::read_to_string(format!("{}/../../{QUESTION}", env!("CARGO_MANIFEST_DIR"))).unwrap());
    question["schema_version"] = json!("1.2");
    let old = home.file("old.json", &question.to_string());
    let answer = home.path("answer.json");
    home.run(&["ask", &old, "--to", &node.url, "--save", &answer]).exits(0);
    assert_eq!(parsed(&home.read("answer.json"))["schema_version"], "1.2");

    let deprecate = |more: &[&str]| home.run(&[&["schema", "deprecate", "1.2", "--data", &data], more].concat());
    deprecate(&[]).exits(3).complains("--to URL");
    deprecate(&["--to", &node.url, "--days", "30"]).exits(1).complains("deprecation_notice_too_short");
    let told = deprecate(&["--to", &node.url, "--successor", "1.3", "--json"]).exits(0).json();
    assert_eq!((&told["deprecation"]["version"], &told["deprecation"]["successor"]), (&json!("1.2"), &json!("1.3")));
    deprecate(&["--to", &node.url, "--days", "120"]).exits(1).complains("deprecation_reduced");
    home.run(&["ask", &old, "--to", &node.url, "--save", &answer]).exits(0);
    let warning = parsed(&home.read("answer.json"))["deprecation_warning"].clone();
    assert_eq!(warning["sunset"], told["deprecation"]["sunset"]);
    home.run(&["schema", "negotiate", &node.url, "--ours", "1.2"]).exits(0).says("deprecated: 1.2 is withdrawn on");

    drop(node);
    deprecate(&["--days", "100"]).exits(1).complains("deprecation_reduced");
    deprecate(&["--days", "400"]).exits(0).says("announced:");
    let node = Node::start(&home);
    let profile = parsed(&node.get("/.well-known/oap-tool.json"))["schema_compatibility"][INTENT].clone();
    let postponed = profile["deprecations"]["1.2"]["sunset"].as_str().unwrap().to_owned();
    assert!(postponed.as_str() > warning["sunset"].as_str().unwrap(), "{postponed}");
}

#[test]
fn the_plan_names_who_still_asks_in_a_version() {
    let home = Home::new("negotiating-plan");
    home.run(&["keys", "new"]).exits(0);
    let did = home.run(&["keys", "show"]).exits(0).out;
    let did = did.split_whitespace().find(|word| word.starts_with("did:key:")).unwrap().to_owned();
    let data = home.path("data");
    home.run(&["schema", "plan", "--data", &data]).exits(3);
    let node = Node::start(&home);
    home.run(&["ask", QUESTION, "--to", &node.url]).exits(0);
    // Nobody fits, so the node is asked why, too; the intent is counted before its explanation is.
    let counted = || {
        let ran = home.run(&["schema", "plan", "--data", &data, "--json"]);
        let usage = (ran.code == 0).then(|| ran.json()["usage"].as_array().cloned()).flatten()?;
        let of = |schema: &str| usage.iter().find(|used| used["schema"] == schema).cloned();
        of("urn:rialto:schema:explain-request").and(of(INTENT))
    };
    // The node writes it down every few seconds.
    let used = (0..600).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        counted()
    });
    let used = used.unwrap();
    assert_eq!((&used["version"], &used["messages"]), (&json!("1.3"), &json!(2)));
    assert_eq!(used["issuers"][0]["did"], json!(did));
    home.run(&["schema", "plan", "--data", &data]).exits(0).says("2 messages of 1 issuer").says(&did);
}

#[test]
fn a_node_that_trusts_a_publisher_meets_v1_to_v3() {
    let home = Home::new("negotiating-levels");
    let key = home.path("publisher.json");
    home.run(&["keys", "new", "--key", &key]).exits(0);
    let shown = home.run(&["keys", "show", "--key", &key]).exits(0).out;
    let did = shown.split_whitespace().find(|word| word.starts_with("did:key:")).unwrap();
    let node = Node::start_with(&home, "127.0.0.1:0", &["--schema-publisher", &format!("{INTENT}={did}")]);
    let examine = ["conformance", &node.url, "--only", "VER-P", "--level", "V3", "--json"];
    let report = home.run(&[&examine[..], &["--publisher-key", &key]].concat()).exits(0).json();
    assert_eq!((&report["failed"], &report["levels"]["V3"]), (&json!(0), &json!("met")), "{report}");
    assert_eq!((&report["levels"]["V1"], &report["levels"]["V2"]), (&json!("met"), &json!("met")));
    let took = &report["negotiation"];
    assert!(took["p50_us"].as_u64().unwrap() > 0 && took["p50_us"].as_u64() <= took["p95_us"].as_u64(), "{took}");
    // Nobody's key, nobody's mapping.
    let report = home.run(&examine).exits(1).json();
    assert_eq!((&report["failed"], &report["levels"]["V3"]), (&json!(0), &json!("not_shown")));
}
