//! RFC 0020 A.7: hostile intents are refused with code, place and limit, early and on a small stack.
//!
//! No clock is asked: what bounds the time is asserted instead, namely how far a flaw is read before it is refused.

use crate::intent;
use aql::{Fuel, Intent, Limits, OverBudget, Refusal, Responder};
use json::{Document, json};

/// A quarter of what a thread usually has.
const STACK_BYTES: usize = 512 * 1024;

/// Runs on a stack that recursion over hostile input would overflow.
fn on_a_small_stack<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(job).unwrap().join().unwrap()
}

/// Checks code, place and limit (name, most, got) of a refusal, as strangers meet it.
#[track_caller]
fn refused(text: String, code: &str, at: &str, limit: Option<(&str, u64, u64)>) {
    refused_within(text, &Limits::STANDARD, code, at, limit);
}

#[track_caller]
fn refused_within(text: String, limits: &Limits, code: &str, at: &str, limit: Option<(&str, u64, u64)>) {
    let limits = limits.clone();
    let refusal = on_a_small_stack(move || Intent::parse(text.as_bytes(), &limits).map(|_| ()).unwrap_err());
    let Refusal { limit: passed, .. } = &refusal;
    assert_eq!((refusal.code.name(), refusal.at.as_str()), (code, at), "{refusal}");
    assert_eq!(passed.as_ref().map(|passed| (passed.name.as_str(), passed.max, passed.got)), limit, "{refusal}");
    assert!(refusal.detail.len() < 512, "a refusal is short, whatever it refuses");
    assert!(refusal.code.section().starts_with("RFC 0020"));
}

/// How many bytes were read before the refusal.
fn bytes_read(text: &str) -> usize {
    Document::parse(text.as_bytes(), &json::Limits::INTENT).unwrap_err().offset
}

/// Limits under which the JSON itself is not what is refused.
fn roomy() -> Limits {
    Limits { json: json::Limits::OURS, ..Limits::STANDARD }
}

/// A complete intent whose constraints are this text.
fn with_constraints(constraints: &str) -> String {
    intent(json!("here")).to_string().replace("\"here\"", constraints)
}

fn leaves(count: usize) -> String {
    format!("[{}]", vec![r#"{"path":"/a","operator":"eq","value":1}"#; count].join(","))
}

#[test]
fn twenty_thousand_levels_are_refused_at_the_thirty_third() {
    let limit = Some(("intent.depth", 32, 33));
    for (bracket, step) in [("[", "/0"), ("{\"k\":", "/k")] {
        // Half of the braces come with five bytes each, so that the text stays below the limit of bytes.
        let text = bracket.repeat(if bracket.len() == 1 { 20_000 } else { 12_000 });
        assert!(bytes_read(&text) <= 33 * bracket.len());
        refused(text, "json_too_deep", &step.repeat(32), limit);
    }
    let place = format!("/constraints{}", "/not".repeat(31));
    refused(with_constraints(&r#"{"not":"#.repeat(9_000)), "json_too_deep", &place, limit);
}

#[test]
fn twenty_thousand_levels_do_not_reach_the_stack_of_a_roomy_reader_either() {
    let text = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let limit = Some(("own document.depth", 256, 257));
    refused_within(text, &roomy(), "json_too_deep", &"/0".repeat(256), limit);
    let deep = format!("{}{}{}", r#"{"not":"#.repeat(200), leaves(1), "}".repeat(200));
    let place = format!("/constraints{}", "/not".repeat(16));
    let limit = Some(("tree_depth", 16, 17));
    refused_within(with_constraints(&deep), &roomy(), "constraint_too_deep", &place, limit);
}

#[test]
fn a_tree_is_as_deep_as_its_nodes_whatever_they_are() {
    let leaf = r#"{"path":"/a","operator":"eq","value":1}"#;
    for (open, close, step) in [
        (r#"{"all_of":["#, "]}", "/all_of/0"),
        (r#"{"any_of":["#, "]}", "/any_of/0"),
        (r#"{"not":["#, "]}", "/not/0"),
        (r#"{"not":"#, "}", "/not"),
    ] {
        let nested = |levels: usize| format!("{}{leaf}{}", open.repeat(levels), close.repeat(levels));
        let read = |levels: usize| Intent::parse(with_constraints(&nested(levels)).as_bytes(), &roomy());
        assert!(read(15).is_ok(), "{open}");
        let place = format!("/constraints{}", step.repeat(16));
        let limit = Some(("tree_depth", 16, 17));
        refused_within(with_constraints(&nested(16)), &roomy(), "constraint_too_deep", &place, limit);
    }
    // A list at the top is a node, too.
    let listed = |levels: usize| format!("[{}{leaf}{}]", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    assert!(Intent::parse(with_constraints(&listed(14)).as_bytes(), &roomy()).is_ok());
    let place = format!("/constraints/0{}", "/not".repeat(15));
    refused_within(
        with_constraints(&listed(15)),
        &roomy(),
        "constraint_too_deep",
        &place,
        Some(("tree_depth", 16, 17)),
    );
}

#[test]
fn two_megabytes_are_refused_unread() {
    let text = with_constraints(&leaves(60_000));
    assert!(text.len() > 2 * 1024 * 1024);
    assert_eq!(bytes_read(&text), 0);
    let got = text.len() as u64;
    refused(text, "json_too_large", "", Some(("intent.bytes", 65_536, got)));
}

#[test]
fn ten_thousand_leaves_are_refused_at_the_first_too_many() {
    let limit = Some(("leaves", 256, 257));
    refused(with_constraints(&leaves(257)), "too_many_constraints", "/constraints", limit);
    let many = with_constraints(&leaves(10_000));
    let got = many.len() as u64;
    refused_within(many.clone(), &roomy(), "too_many_constraints", "/constraints", limit);
    refused(many, "json_too_large", "", Some(("intent.bytes", 65_536, got)));
    let short = with_constraints(&format!("[{}]", vec!["{}"; 10_000].join(",")));
    refused(short, "json_too_many_nodes", "/constraints/3997", Some(("intent.nodes", 4_000, 4_001)));
}

#[test]
fn a_path_of_a_hundred_kilobytes_is_refused_before_it_is_split() {
    let leaf = |path: &str| with_constraints(&format!(r#"{{"path":"{path}","operator":"eq","value":1}}"#));
    let long = |bytes: usize| "/a".repeat(bytes / 2);
    refused(leaf(&long(514)), "path_too_long", "/constraints/path", Some(("path_bytes", 512, 514)));
    refused(leaf(&long(512)), "path_too_complex", "/constraints/path", Some(("path_segments", 32, 256)));
    refused(
        leaf(&long(20_000)),
        "json_string_too_long",
        "/constraints/path",
        Some(("intent.string_bytes", 8_192, 20_000)),
    );
    let huge = leaf(&long(100_000));
    let got = huge.len() as u64;
    refused(huge.clone(), "json_too_large", "", Some(("intent.bytes", 65_536, got)));
    refused_within(huge, &roomy(), "path_too_long", "/constraints/path", Some(("path_bytes", 512, 100_000)));
}

#[test]
fn numbers_that_are_no_doubles_are_refused_where_they_stand() {
    for number in ["1e400", "-1e400", "1e-400", "9007199254740992", "1e16", "1E+9999999"] {
        let leaf = format!(r#"{{"path":"/a","operator":"eq","value":[0,{number}]}}"#);
        refused(with_constraints(&leaf), "number_out_of_range", "/constraints/value/1", None);
    }
    let digits = format!(r#"{{"path":"/a","operator":"eq","value":{}}}"#, "1".repeat(50_000));
    refused(
        with_constraints(&digits),
        "number_too_long",
        "/constraints/value",
        Some(("intent.number_chars", 32, 50_000)),
    );
}

#[test]
fn duplicate_keys_are_refused_where_they_stand() {
    for (leaf, at) in [
        (r#"{"path":"/a","operator":"eq","value":1,"value":2}"#, "/constraints/value"),
        (r#"{"path":"/a","operator":"eq","value":1,"\u0076alue":1}"#, "/constraints/value"),
        (r#"{"path":"/a","operator":"eq","value":{"x":[{"k":1,"j":2,"k":1}]}}"#, "/constraints/value/x/0/k"),
    ] {
        refused(with_constraints(leaf), "json_duplicate_key", at, None);
    }
    let text = intent(json!({})).to_string().replacen('{', r#"{"category":"knowledge","#, 1);
    refused(text, "json_duplicate_key", "/category", None);
}

#[test]
fn lists_keys_and_texts_have_their_limits() {
    let list = format!(r#"{{"path":"/a","operator":"in","value":[{}0]}}"#, "0,".repeat(1_000));
    refused(with_constraints(&list), "list_too_long", "/constraints/value", Some(("list", 1_000, 1_001)));
    let values = format!(r#"{{"path":"/a","operator":"eq","value":[{}0]}}"#, "0,".repeat(20_000));
    let limit = Some(("intent.nodes", 4_000, 4_001));
    assert!(bytes_read(&with_constraints(&values)) < 10_000);
    // Six values come before the elements: the whole, the category, the constraint and its three members.
    refused(with_constraints(&values), "json_too_many_nodes", "/constraints/value/3994", limit);
    let key = format!(r#"{{"{}":1}}"#, "k".repeat(60_000));
    refused(with_constraints(&key), "json_key_too_long", "/constraints", Some(("intent.key_bytes", 256, 60_000)));
    let pattern = format!(r#"{{"path":"/a","operator":"matches","value":"{}"}}"#, "(".repeat(8_000));
    refused(with_constraints(&pattern), "regex_too_large", "/constraints/value", Some(("pattern_chars", 1_000, 8_000)));
    let patterns = leaves(9).replace(r#""eq","value":1"#, r#""matches","value":"a""#);
    refused(with_constraints(&patterns), "too_many_patterns", "/constraints/8/value", Some(("patterns", 8, 9)));
}

#[test]
fn patterns_nested_to_their_limit_do_not_overflow_a_small_stack() {
    for source in
        ["(".repeat(1_000), format!("{}a{}", "(".repeat(499), ")".repeat(499)), "(?:".repeat(333), "[".repeat(1_000)]
    {
        let leaf = json!({"path": "/a", "operator": "matches", "value": source}).to_string();
        let text = with_constraints(&leaf);
        let read = on_a_small_stack(move || Intent::parse(text.as_bytes(), &Limits::STANDARD).map(|_| ()));
        if let Err(refusal) = read {
            assert!(["invalid_regex", "regex_too_large", "regex_feature_unsupported"].contains(&refusal.code.name()));
            assert_eq!(refusal.at.as_str(), "/constraints/value");
        }
    }
}

#[test]
fn the_deepest_record_is_judged_and_shown_on_a_small_stack() {
    // Four times as deep as a stored document may be: a wrapper, the record, and what is below it.
    let (levels, open, close) = (250, r#"{"name":"#, "}");
    let line = format!(r#"{{"record":{}1{}}}"#, open.repeat(levels), close.repeat(levels));
    let mut question = intent(json!({"not": {"path": "/**/name/**/name", "operator": "eq", "value": 2}}));
    question["projection"] = json!({"include": ["/**/name"], "exclude": ["/**/other"]});
    let written = on_a_small_stack(move || {
        let intent = crate::read(&question);
        let line = Document::parse(line.as_bytes(), &json::Limits::OURS).unwrap();
        let candidates = [aql::Candidate::read(line, 1).unwrap()];
        let resolution = aql::resolve(&intent, &candidates, OverBudget::Flag, Fuel::STANDARD).unwrap();
        let responder = Responder {
            response_id: "urn:oap:intent-response:deep",
            resolver_did: "did:key:z6Mk",
            evaluated_at: intent.validity.from(),
            rejected_max: 1,
            next_cursor: None,
            recorded: aql::Recorded::default(),
        };
        String::from_utf8(responder.write(&intent, &resolution, None).unwrap()).unwrap()
    });
    assert!(written.contains(&format!(r#""payload":{}1{}"#, open.repeat(levels), close.repeat(levels))));
}
