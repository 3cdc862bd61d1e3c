//! What a plain scalar is, one by one; the table is the core schema of YAML 1.2 and nothing of YAML 1.1.

use super::*;
use serde_json::json;

fn parse_yaml(bytes: &[u8]) -> Result<Document, Refusal> {
    parse(bytes, &Limits::DOCUMENT).map(|yaml| yaml.document)
}

#[track_caller]
fn check(text: &str, value: Value) {
    let document = parse_yaml(format!("- {text}\n").as_bytes()).unwrap();
    assert_eq!(document.root().to_value(), json!([value]), "{text}");
}

#[track_caller]
fn check_refused(text: &str, code: &str) {
    assert_eq!(parse_yaml(text.as_bytes()).unwrap_err().code.name(), code, "{text}");
}

#[test]
fn words_that_were_booleans_once_are_texts() {
    for text in ["no", "No", "NO", "yes", "Yes", "on", "off", "Off", "y", "n", "Y", "tRUE", "nULL", "None", "nil"] {
        check(text, json!(text));
    }
    for (text, value) in
        [("true", true), ("True", true), ("TRUE", true), ("false", false), ("False", false), ("FALSE", false)]
    {
        check(text, json!(value));
    }
    for text in ["null", "Null", "NULL", "~", ""] {
        check(text, Value::Null);
    }
}

#[test]
fn numbers_are_those_of_the_core_schema() {
    for (text, value) in [
        ("0", json!(0)),
        ("-0", json!(0)),
        ("7", json!(7)),
        ("+7", json!(7)),
        ("-7", json!(-7)),
        ("007", json!(7)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("1.5", json!(1.5)),
        ("-1.5e3", json!(-1500)),
        (".5", json!(0.5)),
        ("5.", json!(5)),
        ("1e3", json!(1000)),
        ("1E-2", json!(0.01)),
        ("9007199254740991", json!(9_007_199_254_740_991_i64)),
    ] {
        check(text, value);
    }
    for text in [
        "1_000",
        "0b11",
        "0o8",
        "0xg",
        "1e",
        "e3",
        ".",
        "+",
        "-",
        "1.2.3",
        "12:30:45",
        "2026-01-31",
        "1,000",
        "0o",
        "0x",
    ] {
        let quoted = if text == "-" { "\"-\"" } else { text };
        check(quoted, json!(text));
    }
    for text in [
        ".inf",
        "-.inf",
        "+.INF",
        ".nan",
        ".NaN",
        "9007199254740992",
        "-9007199254740992",
        "0x20000000000000",
        "1e400",
        "1e16",
        "99999999999999999999",
    ] {
        check_refused(&format!("- {text}"), "yaml_not_json");
    }
}

#[test]
fn what_is_quoted_is_a_text_and_what_is_a_block_keeps_its_lines() {
    for (text, value) in [("'true'", "true"), ("\"7\"", "7"), ("\"a\\tb\\u00e9\"", "a\tbé"), ("'it''s'", "it's")] {
        check(text, json!(value));
    }
    let document = parse_yaml(b"a: |\n  x\n  y\nb: >-\n  x\n  y\n").unwrap();
    assert_eq!(document.root().to_value(), json!({"a": "x\ny\n", "b": "x y"}));
}

#[test]
fn keys_are_what_stands_there() {
    let document = parse_yaml(b"200: a\ntrue: b\n~: c\n1.0: d\n'x y': e\n").unwrap();
    assert_eq!(document.root().to_value(), json!({"200": "a", "true": "b", "~": "c", "1.0": "d", "x y": "e"}));
    check_refused("a: 1\na: 2\n", "yaml_duplicate_key");
    check_refused("{a: 1, 'a': 2}", "yaml_duplicate_key");
    check_refused("{[a]: 1}", "yaml_not_json");
}

#[test]
fn more_than_json_is_refused() {
    check_refused("&a x", "yaml_alias_not_allowed");
    check_refused("- &a x\n- *a\n", "yaml_alias_not_allowed");
    check_refused("<<: {a: 1}", "yaml_alias_not_allowed");
    check_refused("!!str 5", "yaml_tag_not_allowed");
    check_refused("!local {a: 1}", "yaml_tag_not_allowed");
    check_refused("--- a\n--- b\n", "yaml_many_documents");
    check_refused("a: [", "yaml_syntax");
    check_refused("*nobody", "yaml_syntax");
    check_refused("a: \"\\ud800\"", "yaml_syntax");
}

#[test]
fn a_refusal_knows_its_line() {
    let refusal = parse_yaml(b"a:\n  b: 1\n  b: 2\n").unwrap_err();
    assert_eq!((refusal.at.as_str(), refusal.position), ("/a/b", Some((3, 3))));
}

#[test]
fn nothing_is_a_document_of_null() {
    for text in ["", "# only a comment\n", "---\n"] {
        assert!(parse_yaml(text.as_bytes()).unwrap().root().is_null(), "{text:?}");
    }
}

#[test]
fn every_value_is_found_again_in_its_line() {
    let text = b"a:\n  b: 1\n  'c':\n  - x\n  - \"y\"\nd: |\n  two\n  lines\ne: >-\n  x\n";
    let yaml = parse(text, &Limits::DOCUMENT).unwrap();
    let mark = |at: &str| yaml.mark(&Pointer::parse(at).unwrap()).unwrap();
    assert_eq!(mark("/a/b"), Mark { key: Some((2, 3)), value: (2, 6), style: Style::Plain });
    assert_eq!(mark("/a/c").key, Some((3, 3)));
    assert_eq!(mark("/a/c/1"), Mark { key: None, value: (5, 5), style: Style::Quoted });
    assert_eq!((mark("/d").style, mark("/e").style), (Style::Literal, Style::Folded));
    assert_eq!(mark("/d").value, (7, 3));
    assert_eq!(yaml.mark(&Pointer::parse("/f").unwrap()), None);
}
