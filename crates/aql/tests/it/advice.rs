//! RFC 0020 §3.2, §3.3, A.1: what `lint` says about an intent, and about which it is silent.

use crate::{candidate, intent};
use aql::{Finding, Limits, lint};
use json::{Document, Value, json};

fn leaf(path: &str, operator: &str, value: Value) -> Value {
    json!({"path": path, "operator": operator, "value": value})
}

fn findings(intent: &Value) -> Vec<Finding> {
    lint(Document::of(intent).unwrap().root(), &[], &Limits::STANDARD)
}

/// What is said about an intent with these constraints: codes and places.
fn said(constraints: Value) -> Vec<(&'static str, String)> {
    findings(&intent(constraints)).into_iter().map(|finding| (finding.code, finding.at.to_string())).collect()
}

#[test]
fn a_leaf_is_warned_about_when_it_hardly_means_what_it_says() {
    for (path, operator, value, expected) in [
        ("/a", "exists", json!(false), Some("exists_false")),
        ("/a", "exists", json!(null), Some("exists_false")),
        ("/a", "exists", json!(true), None),
        ("/a", "exists", json!(0), None),
        ("/a", "eq", json!(false), None),
        ("/a", "eq", json!(null), None),
        ("/a/*", "ne", json!(1), Some("existential_negation")),
        ("/**/a", "not_in", json!([1]), Some("existential_negation")),
        ("/a/*", "outside", json!(["2026-01-01", "2026-01-02"]), Some("existential_negation")),
        ("/a/*", "eq", json!(1), None),
        ("/a/0", "ne", json!(1), None),
        ("/a", "in", json!([]), Some("never_holds")),
        ("/a", "in", json!([1]), None),
        ("/a", "not_in", json!([]), None),
        ("/a", "contains", json!(""), Some("always_holds")),
        ("/a", "contains", json!("a"), None),
        ("/a", "matches", json!("(?=a)b"), Some("bounded_pattern")),
        ("/a", "matches", json!("a+"), None),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|code| (code, "/constraints".to_owned())).collect();
        assert_eq!(said(leaf(path, operator, value.clone())), expected, "{path} {operator} {value}");
    }
}

#[test]
fn a_finding_says_what_is_the_matter_and_what_to_do() {
    let warning = findings(&intent(leaf("/a", "exists", json!(false)))).remove(0);
    assert!(!warning.refused);
    assert_eq!(warning.section, "RFC 0020 A.1");
    assert!(warning.message.contains("`/a`") && warning.advice.contains(r#""not""#), "{warning:?}");
    let refusal = findings(&intent(leaf("/a", "like", json!("b")))).remove(0);
    assert!(refusal.refused);
    assert_eq!((refusal.code, refusal.section), ("unknown_operator", "RFC 0020 A.8"));
    assert!(refusal.message.contains("`like`") && refusal.advice.contains("`unknown_operator`"), "{refusal:?}");
}

#[test]
fn conditions_on_one_value_that_exclude_each_other_are_found() {
    let cases: [(&str, Value, &str, Value, bool); 30] = [
        ("eq", json!(1), "eq", json!(1), false),
        ("eq", json!(1), "eq", json!("1"), true),
        ("eq", json!(1), "ne", json!(1), true),
        ("ne", json!(1), "eq", json!(1), true),
        ("ne", json!(1), "ne", json!(2), false),
        ("eq", json!(3), "in", json!([1, 2]), true),
        ("in", json!([1, 2]), "eq", json!(2), false),
        ("eq", json!("abc"), "matches", json!("^b"), true),
        ("eq", json!("abc"), "contains", json!("b"), false),
        ("lt", json!(5), "gt", json!(5), true),
        ("lt", json!(5), "gte", json!(5), true),
        ("lte", json!(5), "gt", json!(5), true),
        ("lte", json!(5), "gte", json!(5), false),
        ("gte", json!(5), "lte", json!(4), true),
        ("gt", json!(4), "lt", json!(5), false),
        ("lt", json!(5), "lt", json!(1), false),
        ("gt", json!(5), "gte", json!(9), false),
        ("lt", json!("0.30000000000000000001"), "gt", json!("0.30000000000000000001"), true),
        ("lte", json!("0.30000000000000000001"), "gte", json!("0.30000000000000000001"), false),
        ("lt", json!("2026-01-01"), "gt", json!("2026-01-02"), true),
        ("lt", json!(5), "gt", json!("2026-01-02"), true),
        ("before", json!("2026-01-01"), "after", json!("2026-01-01"), true),
        ("before", json!("2026-01-02"), "after", json!("2026-01-01"), false),
        ("before", json!("2026-01-01"), "gte", json!("2026-01-01"), true),
        ("within", json!(["2026-01-01", "2026-01-02"]), "after", json!("2026-01-02"), true),
        ("within", json!(["2026-01-01", "2026-01-02"]), "gte", json!("2026-01-02"), false),
        ("within", json!(["2026-01-01", "2026-01-02"]), "before", json!("2026-01-01"), true),
        ("within", json!(["2026-01-01", "2026-01-02"]), "lte", json!("2026-01-01"), false),
        ("within", json!(["2026-01-01", "2026-01-02"]), "within", json!(["2026-01-03", "2026-01-04"]), true),
        ("contains", json!("a"), "lt", json!(5), false),
    ];
    for (one, left, other, right, excluded) in cases {
        let found = said(json!([leaf("/a", one, left.clone()), leaf("/a", other, right.clone())]));
        let expected = [("cannot_hold", "/constraints/1".to_owned())];
        assert_eq!(found, &expected[..usize::from(excluded)], "{one} {left} and {other} {right}");
    }
}

#[test]
fn only_conditions_that_must_all_hold_for_one_value_can_exclude_each_other() {
    let (low, high) = (leaf("/a", "lt", json!(1)), leaf("/a", "gt", json!(2)));
    let here = |places: &[&str]| -> Vec<(&'static str, String)> {
        places.iter().map(|place| ("cannot_hold", (*place).to_owned())).collect()
    };
    assert_eq!(said(json!([low, high])), here(&["/constraints/1"]));
    assert_eq!(said(json!([low, {"all_of": [{"all_of": [high]}]}])), here(&["/constraints/1/all_of/0/all_of/0"]));
    assert_eq!(said(json!([low, high, high])), here(&["/constraints/1", "/constraints/2"]));
    assert_eq!(said(json!({"any_of": [low, high]})), []);
    assert_eq!(said(json!([low, {"any_of": [high]}])), []);
    assert_eq!(said(json!([low, {"not": high}])), []);
    assert_eq!(said(json!([leaf("/a/*", "lt", json!(1)), leaf("/a/*", "gt", json!(2))])), []);
    assert_eq!(said(json!([low, leaf("/b", "gt", json!(2))])), []);
    let told = findings(&intent(json!([low, high]))).remove(0);
    assert!(told.message.contains("/a lt 1") && told.message.contains("gt 2"), "{told:?}");
    assert!(told.advice.contains("/constraints/0"), "{told:?}");
}

#[test]
fn every_flawed_leaf_is_named_once() {
    let flawed = |operator: &str| leaf("/a", operator, json!(1));
    let constraints = json!([
        leaf("/a", "eq", json!(1)),
        flawed("like"),
        {"any_of": [flawed("eq"), {"not": flawed("near")}]},
        {"not": [flawed("far")]},
    ]);
    let places: Vec<String> = said(constraints).into_iter().map(|(_, at)| at).collect();
    let expected = ["/constraints/1/operator", "/constraints/2/any_of/1/not/operator", "/constraints/3/not/0/operator"];
    assert_eq!(places, expected);
    // What is wrong elsewhere comes first and hides no leaf.
    let mut flawed = intent(leaf("/a", "like", json!(1)));
    flawed["category"] = json!("gossip");
    let places: Vec<String> = findings(&flawed).iter().map(|finding| finding.at.to_string()).collect();
    assert_eq!(places, ["/category", "/constraints/operator"]);
}

#[test]
fn a_projection_that_takes_away_what_it_asks_for_is_named() {
    for (include, exclude, expected) in [
        (json!(["/a"]), json!(["/a"]), 1),
        (json!(["/a/b"]), json!(["/a"]), 1),
        (json!(["/a/b", "/a/c"]), json!(["/a"]), 2),
        (json!(["/a"]), json!(["/a/b"]), 0),
        (json!(["/ab"]), json!(["/a"]), 0),
        (json!(["/a"]), json!(["/"]), 1),
        (json!(["/a"]), json!([]), 0),
    ] {
        let mut question = intent(leaf("/a", "eq", json!(1)));
        question["projection"] = json!({"include": include, "exclude": exclude});
        let found = findings(&question);
        let about = |finding: &Finding| (finding.code, finding.at.to_string(), finding.section);
        let conflict = ("projection_conflict", "/projection".to_owned(), "RFC 0020 §3.3");
        assert_eq!(found.iter().map(about).collect::<Vec<_>>(), vec![conflict; expected], "{include} {exclude}");
    }
}

#[test]
fn paths_that_no_candidate_has_are_named_when_there_are_candidates() {
    let mut question = intent(json!([leaf("/name", "eq", json!("x")), leaf("/nmae", "eq", json!("x"))]));
    question["projection"] = json!({"include": ["/name", "/pirce", "/parts/*/size"]});
    let document = Document::of(&question).unwrap();
    let market =
        [candidate("a", json!({"name": "a"})), candidate("b", json!({"name": "b", "parts": [{}, {"size": 1}]}))];
    let said = |market: &[aql::Candidate]| -> Vec<(&'static str, String)> {
        let found = lint(document.root(), market, &Limits::STANDARD);
        found.into_iter().map(|finding| (finding.section, finding.at.to_string())).collect()
    };
    let spelled = ("RFC 0020 §3.2", "/constraints/1/path".to_owned());
    let shown = |number: usize| ("RFC 0020 §3.3", format!("/projection/include/{number}"));
    assert_eq!(said(&market), [spelled.clone(), shown(1)]);
    assert_eq!(said(&market[..1]), [spelled, shown(1), shown(2)]);
    assert_eq!(said(&[]), []);
    let told = lint(document.root(), &market, &Limits::STANDARD).remove(0);
    assert!(told.message.contains("2 candidates") && told.message.contains("`/nmae`"), "{told:?}");
}

#[test]
fn flaws_are_looked_for_as_deep_as_a_tree_may_be_and_no_deeper() {
    let flawed = leaf("/a", "like", json!(1));
    let nested = |levels: usize, wrap: fn(Value) -> Value| (0..levels).fold(flawed.clone(), |inner, _| wrap(inner));
    let not: fn(Value) -> Value = |inner| json!({"not": inner});
    let all_of: fn(Value) -> Value = |inner| json!({"all_of": [inner]});
    let codes = |constraints: Value| said(constraints).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    for (levels, wrap, is_found) in [
        (20, not, true),
        (33, not, true),
        (34, not, false),
        (16, all_of, true),
        (17, all_of, false),
        (40, all_of, false),
    ] {
        let expected = ["constraint_too_deep", "unknown_operator"];
        assert_eq!(codes(nested(levels, wrap)), &expected[..1 + usize::from(is_found)], "{levels}");
    }
}
