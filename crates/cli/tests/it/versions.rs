//! `schema`: comparing, checking, translating, signing and verifying, as people do it.

use crate::run::Home;
use json::json;

const OLD: &str = r#"{"$id": "https://schemas.example/thing.json", "version": "1.0", "type": "object", "properties": {"name": {"type": "string"}, "latency": {"type": "integer"}}, "additionalProperties": false}"#;
const NEW: &str = r#"{"$id": "https://schemas.example/thing.json", "version": "1.1", "type": "object", "properties": {"name": {"type": "string"}, "latency_ms": {"type": "integer"}, "owner": {"type": "string"}}, "required": ["owner"], "additionalProperties": false}"#;

#[test]
fn a_diff_names_its_rules() {
    let home = Home::new("schema-diff");
    let (old, new) = (home.file("old.json", OLD), home.file("new.json", NEW));
    let ran = home.run(&["schema", "diff", &old, &new]).exits(0);
    ran.says("required-added").says("property-removed").says("not all additive");
    let found = home.run(&["schema", "diff", &old, &new, "--json"]).exits(0).json();
    assert_eq!(found["additive"], json!(false));
    home.run(&["schema", "diff", &old, &old]).exits(0).says("nothing changed");
}

#[test]
fn a_check_ends_with_its_verdict_and_says_how_undeclared_members_are_treated() {
    let home = Home::new("schema-check");
    let (old, new) = (home.file("old.json", OLD), home.file("new.json", NEW));
    let ran = home.run(&["schema", "check", &old, &new]).exits(1);
    ran.says("broken").says("undeclared members: strict");
    let found = home.run(&["schema", "check", &old, &new, "--mode", "full", "--json"]).exits(1).json();
    assert_eq!(found["findings"].as_array().unwrap().len(), 2);
    assert_eq!(found["findings"][0]["verdict"], json!("broken"));
    assert_eq!(found["findings"][0]["counterexample"], json!({}));
    home.run(&["schema", "check", &old, &old, "--mode", "full-transitive"]).exits(0).says("compatible");
    let open = |extra: &str| format!(r#"{{"type": "object", "properties": {{"a": {{"type": "string"}}{extra}}}}}"#);
    let (before, after) = (home.file("a.json", &open("")), home.file("b.json", &open(r#", "b": {"type": "integer"}"#)));
    home.run(&["schema", "check", &before, &after]).exits(1);
    home.run(&["schema", "check", &before, &after, "--undeclared", "tolerant"])
        .exits(0)
        .says("undeclared members: tolerant");
    let [one, other] = ["^a{3}$", "^aaa$"].map(|pattern| format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#));
    let (one, other) = (home.file("one.json", &one), home.file("other.json", &other));
    home.run(&["schema", "check", &one, &other]).exits(1).says("unknown").says("not shown: pattern");
    home.run(&["schema", "check", &one, &other, "--unknown-passes"]).exits(0);
}

#[test]
fn a_draft_becomes_a_mapping_that_is_signed_believed_and_applied() {
    let home = Home::new("schema-map");
    home.run(&["keys", "new"]).exits(0);
    let (old, new) = (home.file("old.json", OLD), home.file("new.json", NEW));
    let drafted = home.run(&["schema", "infer", &old, &new]).exits(0);
    drafted.complains("is `latency_ms` what was called `latency`?").complains("`owner` is demanded now");
    let mut mapping = drafted.json();
    mapping["constants"] = json!([{"to": "/owner", "value": "nobody"}]);
    mapping["directionality"] = json!("bidirectional");
    let mapping = home.file("mapping.json", &mapping.to_string());
    let document = home.file("document.json", r#"{"name": "a", "latency": 5}"#);
    let applied = home.run(&["schema", "map", "apply", &mapping, &document, "--conforms-to", &new]).exits(0);
    assert_eq!(applied.json(), json!({"name": "a", "latency_ms": 5, "owner": "nobody"}));
    applied.complains("invented /owner (constant)");
    home.run(&["schema", "map", "test", &mapping, &document, "--from", &old, "--to", &new])
        .exits(0)
        .says("1 document, 0 wrong");

    let signed = home.path("signed.json");
    home.run(&["schema", "map", "sign", &mapping, "-o", &signed]).exits(0);
    let read: json::Value =
        json::Document::parse(home.read("signed.json").as_bytes(), &json::Limits::OURS).unwrap().root().to_value();
    let publisher = read["publisher_did"].as_str().unwrap();
    home.run(&["schema", "map", "verify", &signed, "--publisher", publisher]).exits(0).says("trusted:");
    home.run(&["schema", "map", "verify", &mapping, "--publisher", publisher]).exits(1).complains("mapping_untrusted");

    let back = home.file("back.json", &home.run(&["schema", "map", "invert", &mapping]).exits(0).out);
    let there = home.file("there.json", &applied.out);
    let returned = home.run(&["schema", "map", "apply", &back, &there, "--conforms-to", &old]).exits(0);
    assert_eq!(returned.json(), json!({"name": "a", "latency": 5}));
    home.run(&["schema", "map", "compose", &mapping, &back]).exits(1).complains("mapping_cycle");
}

#[test]
fn the_cards_of_the_examples_pass() {
    let home = Home::new("schema-cards");
    let ran = home.run(&[
        "schema",
        "map",
        "test",
        "spec/families/a2a-card-0.3-to-1.0.json",
        "examples/a2a/cards-0.3.json",
        "--from",
        "spec/families/a2a-card-0.3.schema.json",
        "--to",
        "spec/families/a2a-card-1.0.schema.json",
    ]);
    ran.exits(0).says("0 wrong");
}
