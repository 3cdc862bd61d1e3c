//! RFC 0020 §3.2: which trees are read and which are refused, as tables.

use super::*;
use crate::parse::value;

#[track_caller]
fn check(constraints: &str) {
    let constraints = value(constraints);
    assert!(Constraint::read(&Field::new(&constraints, "/constraints")).is_ok());
}

#[track_caller]
fn check_refused(constraints: &str, code: &str, at: &str) {
    let constraints = value(constraints);
    let refusal = Constraint::read(&Field::new(&constraints, "/constraints")).unwrap_err();
    assert_eq!((refusal.code, refusal.at), (code, format!("/constraints{at}")));
}

fn leaf(operator: &str, operand: &str) -> String {
    format!(r#"{{"path":"/a","operator":"{operator}","value":{operand}}}"#)
}

const LEAF: &str = r#"{"path":"/a","operator":"exists","value":null}"#;

#[test]
fn every_form_is_read() {
    check(LEAF);
    check(&format!("[{LEAF},{LEAF}]"));
    check(&format!(r#"{{"all_of":[{LEAF}]}}"#));
    check(&format!(r#"{{"any_of":[{LEAF},{{"not":{LEAF}}}]}}"#));
    check(&format!(r#"{{"not":[{LEAF},{LEAF}]}}"#));
}

#[test]
fn what_is_no_form_is_refused() {
    check_refused("1", "wrong_type", "");
    check_refused(r#""/a eq 1""#, "wrong_type", "");
    check_refused("null", "wrong_type", "");
    check_refused("[]", "empty_list", "");
    check_refused("[1]", "wrong_type", "/0");
    check_refused(&format!("[[{LEAF}]]"), "wrong_type", "/0");
    check_refused(&format!(r#"{{"not":[[{LEAF}]]}}"#), "wrong_type", "/not/0");
    check_refused("{}", "missing_field", "/path");
    check_refused(r#"{"all_of":[]}"#, "empty_list", "/all_of");
    check_refused(r#"{"any_of":[]}"#, "empty_list", "/any_of");
    check_refused(r#"{"not":[]}"#, "empty_list", "/not");
    check_refused(r#"{"not":{}}"#, "missing_field", "/not/path");
    check_refused(&format!(r#"{{"all_of":{LEAF}}}"#), "wrong_type", "/all_of");
    check_refused(&format!(r#"{{"all_of":[{LEAF}],"x":1}}"#), "unknown_field", "/x");
    check_refused(&format!(r#"{{"all_of":[{LEAF}],"any_of":[{LEAF}]}}"#), "unknown_field", "/any_of");
    check_refused(&format!(r#"{{"all_of":[{LEAF}],"path":"/a"}}"#), "unknown_field", "/all_of");
    check_refused("{\"all_\u{43e}f\":[]}", "unknown_field", "/all_\u{43e}f");
    check_refused(r#"{"path":"/a"}"#, "missing_field", "/operator");
    check_refused(r#"{"path":"/a","operator":"eq"}"#, "missing_field", "/value");
    check_refused(r#"{"operator":"eq","value":1}"#, "missing_field", "/path");
    check_refused(r#"{"path":"/a","operator":"eq","value":1,"x":2}"#, "unknown_field", "/x");
}

#[test]
fn path_and_operator_are_checked() {
    check_refused(r#"{"path":1,"operator":"eq","value":1}"#, "wrong_type", "/path");
    check_refused(r#"{"path":"a","operator":"eq","value":1}"#, "invalid_pointer", "/path");
    check_refused(r#"{"path":"/**/**","operator":"eq","value":1}"#, "path_too_complex", "/path");
    check_refused(r#"{"path":"/a","operator":1,"value":1}"#, "wrong_type", "/operator");
    for operator in ["EQ", "equals", "", "=", "not"] {
        check_refused(&leaf(operator, "1"), "unknown_operator", "/operator");
    }
}

#[test]
fn operands_must_fit_their_operators() {
    for operator in ["eq", "ne", "contains", "exists"] {
        for operand in ["null", "1", "[]", "{}", r#""x""#] {
            check(&leaf(operator, operand));
        }
    }
    for operator in ["lt", "lte", "gt", "gte"] {
        for operand in ["1", r#""-1.5""#, r#""2026-05-04""#, r#""2026-05-04T12:00:00Z""#] {
            check(&leaf(operator, operand));
        }
        for operand in ["null", "true", "[1]", "{}", r#""abc""#, r#""""#, r#""1e2""#] {
            check_refused(&leaf(operator, operand), "value_incompatible", "/value");
        }
    }
    for operator in ["in", "not_in"] {
        check(&leaf(operator, "[]"));
        check(&leaf(operator, &format!("[{}0]", "0,".repeat(999))));
        check_refused(&leaf(operator, &format!("[{}0]", "0,".repeat(1_000))), "list_too_long", "/value");
        check_refused(&leaf(operator, r#""a""#), "value_incompatible", "/value");
    }
    for operator in ["before", "after"] {
        check(&leaf(operator, r#""2026-05-04""#));
        for operand in ["1", r#""1""#, r#""now""#, r#"["2026-05-04"]"#] {
            check_refused(&leaf(operator, operand), "value_incompatible", "/value");
        }
    }
}

#[test]
fn intervals_have_two_spellings() {
    for operator in ["within", "outside"] {
        for operand in [
            r#"["2026-05-04","2026-05-05"]"#,
            r#"["2026-05-04","2026-05-04T00:00:00Z"]"#,
            r#"{"from":"2026-05-04","to":"2026-05-05"}"#,
        ] {
            check(&leaf(operator, operand));
        }
        for operand in [
            r#""2026-05-04""#,
            "[]",
            r#"["2026-05-04"]"#,
            r#"["2026-05-04","2026-05-05","2026-05-06"]"#,
            r#"["2026-05-05","2026-05-04"]"#,
            "[1,2]",
            r#"{"from":"2026-05-04"}"#,
            r#"{"from":"2026-05-04","to":"2026-05-05","x":1}"#,
            r#"{"from":"2026-05-05","to":"2026-05-04"}"#,
            r#"{"start":"2026-05-04","end":"2026-05-05"}"#,
        ] {
            check_refused(&leaf(operator, operand), "value_incompatible", "/value");
        }
    }
}

#[test]
fn patterns_are_read_with_the_tree() {
    check(&leaf("matches", r#""^a+$""#));
    check_refused(&leaf("matches", "1"), "value_incompatible", "/value");
    check_refused(&leaf("matches", r#""(""#), "invalid_regex", "/value");
    check_refused(&leaf("matches", r#""(?i:a)""#), "regex_feature_unsupported", "/value");
    check_refused(&leaf("matches", &format!("\"{}\"", "a".repeat(1_001))), "regex_too_large", "/value");
    let patterns = |count: usize| format!("[{}]", vec![leaf("matches", r#""a""#); count].join(","));
    check(&patterns(8));
    check_refused(&patterns(9), "too_many_patterns", "/8/value");
}

#[test]
fn the_tree_is_bounded() {
    let many = |count: usize| format!(r#"{{"any_of":[{}]}}"#, vec![LEAF; count].join(","));
    check(&many(256));
    check_refused(&many(257), "too_many_constraints", "");
    let under = |levels: usize| format!("{}{LEAF}{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    check(&under(15));
    check_refused(&under(16), "constraint_too_deep", &"/not".repeat(16));
    let under_list = |levels: usize| format!("{}{LEAF}{}", r#"{"not":["#.repeat(levels), "]}".repeat(levels));
    check(&under_list(15));
    check_refused(&under_list(16), "constraint_too_deep", &"/not/0".repeat(16));
    check(&format!("[{}]", under(14)));
    check_refused(&format!("[{}]", under(15)), "constraint_too_deep", &format!("/0{}", "/not".repeat(15)));
}
