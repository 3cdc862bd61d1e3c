//! `lint`: each finding with its code, its place and its advice.

use crate::run::{Home, intent, market};
use json::json;

#[test]
fn each_broken_example_is_found_out() {
    let home = Home::new("lint-broken");
    for (name, severity, code, at, line) in [
        ("unknown-operator", "refused", "unknown_operator", "/constraints/operator", 3),
        ("pattern-not-closed", "refused", "invalid_regex", "/constraints/value", 3),
        ("path-without-slash", "refused", "invalid_pointer", "/constraints/path", 3),
        ("exists-with-false", "warning", "exists_false", "/constraints/all_of/1", 6),
        ("range-that-cannot-hold", "warning", "cannot_hold", "/constraints/all_of/1", 6),
    ] {
        let ran = home.run(&["lint", &intent(&format!("broken/{name}")), "--json"]);
        assert_eq!(ran.code, i32::from(severity == "refused"), "{name}");
        let findings = ran.json()["findings"].clone();
        assert_eq!(findings.as_array().unwrap().len(), 1, "{name}");
        let found = &findings[0];
        assert_eq!(
            (&found["severity"], &found["code"], &found["at"], &found["line"]),
            (&json!(severity), &json!(code), &json!(at), &json!(line)),
        );
        assert!(found["section"].as_str().unwrap().starts_with("RFC 0020"));
        assert!(!found["message"].as_str().unwrap().is_empty() && !found["advice"].as_str().unwrap().is_empty());
    }
}

#[test]
fn good_drafts_have_nothing_to_mend() {
    let home = Home::new("lint-good");
    let names = ["affordable-certified-translation", "battery-reading-list", "final-steps-with-second-thoughts"];
    let files: Vec<String> = names.iter().map(|name| intent(name)).collect();
    let arguments: Vec<&str> = ["lint", "--strict"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let ran = home.run(&arguments).exits(0);
    ran.says("nothing to mend in 3 files").complains("completed 3 drafts");
}

#[test]
fn warnings_fail_only_when_they_should() {
    let home = Home::new("lint-strict");
    let file = intent("broken/exists-with-false");
    home.run(&["lint", &file]).exits(0).says("1 warning in 1 file");
    home.run(&["lint", "--strict", &file]).exits(1);
}

#[test]
fn several_mistakes_are_told_at_once() {
    let home = Home::new("lint-several");
    let draft = r#"{
  "category": "discovery",
  "constraints": {"all_of": [
    {"path": "/a", "operator": "is", "value": 1},
    {"path": "b", "operator": "eq", "value": 1}
  ]},
  "projection": {"include": ["/a"]}
}"#;
    let file = home.file("draft.json", draft);
    let ran = home.run(&["lint", &file]).exits(1);
    ran.says("unknown_operator").says("draft.json:4:32").says("invalid_pointer").says("draft.json:5:14");
    ran.says("2 refusals in 1 file");
}

#[test]
fn what_is_no_json_is_told_with_line_and_column() {
    let home = Home::new("lint-json");
    let file = home.file("draft.json", "{\n  \"category\": \"discovery\",\n  \"category\": 1\n}");
    home.run(&["lint", &file]).exits(1).says("json_duplicate_key").says("draft.json:2:15");
    let file = home.file("cut.json", "{\n  \"category\":");
    home.run(&["lint", &file]).exits(1).says("json_syntax").says("cut.json:2:");
}

#[test]
fn paths_that_no_candidate_has_are_told() {
    let home = Home::new("lint-paths");
    let draft = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/intents/quick-weather-for-europe.json"
    ))
    .unwrap();
    let file = home.file("draft.json", &draft.replace("/sla/uptime_target", "/sla/uptime"));
    home.run(&["lint", "--strict", &file]).exits(0);
    let ran = home.run(&["lint", &file, "--candidates", &market("manifests")]).exits(0);
    ran.says("unknown_path").says("none of the 112 candidates has anything at `/sla/uptime`");
}

#[test]
fn a_missing_file_does_not_hide_the_others() {
    let home = Home::new("lint-missing");
    let ran = home.run(&["lint", "no-such-file.json", &intent("broken/unknown-operator")]).exits(3);
    ran.says("unknown_operator").complains("no-such-file.json");
    home.run(&["lint"]).exits(2);
}
