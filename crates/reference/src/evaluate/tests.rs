//! RFC 0020 A.1, sentence by sentence.

use super::*;
use crate::canonical::canonical;
use crate::parse::value;
use crate::projection::Projection;

fn leaf(path: &str, operator: &str, operand: &str) -> String {
    format!(r#"{{"path":"{path}","operator":"{operator}","value":{operand}}}"#)
}

#[track_caller]
fn check_tree(constraints: &str, document: &str, holds: bool, leaves: &[bool]) {
    let evaluation = evaluate(&value(constraints), &value(document)).unwrap();
    assert_eq!(evaluation, Evaluation { holds, leaves: leaves.to_vec() }, "{constraints} over {document}");
}

#[track_caller]
fn check(operator: &str, operand: &str, document: &str, holds: bool) {
    check_tree(&leaf("/", operator, operand), document, holds, &[holds]);
}

#[track_caller]
fn check_at(path: &str, operator: &str, operand: &str, document: &str, holds: bool) {
    check_tree(&leaf(path, operator, operand), document, holds, &[holds]);
}

const EVERY_OPERATOR: [(&str, &str); 15] = [
    ("eq", "1"),
    ("ne", "1"),
    ("lt", "1"),
    ("lte", "1"),
    ("gt", "1"),
    ("gte", "1"),
    ("in", "[1]"),
    ("not_in", "[1]"),
    ("contains", "1"),
    ("matches", r#""a""#),
    ("before", r#""2026-05-04""#),
    ("after", r#""2026-05-04""#),
    ("within", r#"["2026-05-04","2026-05-05"]"#),
    ("outside", r#"["2026-05-04","2026-05-05"]"#),
    ("exists", "true"),
];

#[test]
fn nothing_reached_is_false_for_every_operator() {
    for (operator, operand) in EVERY_OPERATOR {
        check_at("/zz", operator, operand, "{}", false);
        check_at("/a/*", operator, operand, r#"{"a":[]}"#, false);
    }
}

#[test]
fn one_passing_value_is_enough_for_every_operator() {
    for (operator, operand, document) in [
        ("eq", "1", "[2,1]"),
        ("ne", "1", "[1,2]"),
        ("lt", "1", "[1,0]"),
        ("lte", "1", "[2,1]"),
        ("gt", "1", "[1,2]"),
        ("gte", "1", "[0,1]"),
        ("in", "[1]", "[2,1]"),
        ("not_in", "[1]", "[1,2]"),
        ("contains", r#""b""#, r#"["a","abc"]"#),
        ("matches", r#""^b""#, r#"["a","b"]"#),
        ("before", r#""2026-05-04""#, r#"["2027-01-01","2025-01-01"]"#),
        ("after", r#""2026-05-04""#, r#"["2025-01-01","2027-01-01"]"#),
        ("within", r#"["2026-05-04","2026-05-05"]"#, r#"["2025-01-01","2026-05-04"]"#),
        ("outside", r#"["2026-05-04","2026-05-05"]"#, r#"["2026-05-04","2025-01-01"]"#),
        ("exists", "false", "[null]"),
    ] {
        check_at("/*", operator, operand, document, true);
    }
    check_at("/*", "ne", "1", "[1,1]", false);
    check_at("/*", "not_in", "[1,2]", "[1,2]", false);
    check_at("/*", "outside", r#"["2026-05-04","2026-05-05"]"#, r#"["2026-05-04","x"]"#, false);
}

#[test]
fn equality_is_structural_and_never_casts() {
    for (left, right, equal) in [
        ("1", "1.0", true),
        ("-0", "0", true),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#, true),
        ("[1,2]", "[2,1]", false),
        (r#""10""#, "10", false),
        ("null", "false", false),
        (r#""2026-05-04""#, r#""2026-05-04T00:00:00Z""#, false),
        (r#""1.0""#, r#""1""#, false),
    ] {
        check("eq", left, right, equal);
        check("ne", left, right, !equal);
        check("in", &format!("[9,{left}]"), right, equal);
        check("not_in", &format!("[9,{left}]"), right, !equal);
    }
    check("in", "[]", "1", false);
    check("not_in", "[]", "1", true);
    check("in", "[1,2]", "[1,2]", false);
    check("in", "[[1,2]]", "[1,2]", true);
}

#[test]
fn comparisons_follow_the_order() {
    for (value, operand, [lt, lte, gt, gte]) in [
        ("1", "2", [true, true, false, false]),
        ("2", "2.0", [false, true, false, true]),
        ("3", "2", [false, false, true, true]),
        (r#""99.99""#, r#""100.00""#, [true, true, false, false]),
        ("100", r#""100.00""#, [false, true, false, true]),
        ("0.1", r#""0.10000000000000000555""#, [true, true, false, false]),
        (r#""2026-06-01T12:00:00Z""#, r#""2026-07-01""#, [true, true, false, false]),
        (r#""2026-06-01T12:00:00Z""#, r#""2026-06-01T14:00:00+02:00""#, [false, true, false, true]),
        ("null", "1", [false; 4]),
        ("true", "1", [false; 4]),
        ("[0]", "1", [false; 4]),
        (r#""""#, "1", [false; 4]),
        ("2026", r#""2026-07-01""#, [false; 4]),
        (r#""2026""#, r#""2026-07-01""#, [false; 4]),
        (r#""a""#, r#""2026-07-01""#, [false; 4]),
    ] {
        for (operator, holds) in [("lt", lt), ("lte", lte), ("gt", gt), ("gte", gte)] {
            check(operator, operand, value, holds);
        }
    }
}

#[test]
fn contains_looks_for_text_runs_and_elements() {
    for (document, operand, holds) in [
        (r#""hello""#, r#""ell""#, true),
        (r#""hello""#, r#""""#, true),
        (r#""hello""#, r#""ELL""#, false),
        (r#""12""#, "1", false),
        (r#""null""#, "null", false),
        (r#""a""#, r#"["a"]"#, false),
        ("[1,2,3]", "[2,3]", true),
        ("[1,2,3]", "[1,3]", false),
        ("[1,2,3]", "[3,2]", false),
        ("[1,2,3]", "[1,2,3,4]", false),
        ("[1,1,2]", "[1,2]", true),
        ("[1,2]", "[]", true),
        ("[]", "[]", true),
        ("[[1],2]", "[1]", false),
        ("[[1],2]", "[[1]]", true),
        (r#"["a","b"]"#, r#""a""#, true),
        (r#"["ab"]"#, r#""a""#, false),
        ("[1,2]", "1.0", true),
        (r#"[{"a":1,"b":2}]"#, r#"{"b":2,"a":1}"#, true),
        (r#"[{"a":1,"b":2}]"#, r#"{"a":1}"#, false),
        ("[null]", "null", true),
        ("[]", "null", false),
        (r#"{"a":1}"#, r#""a""#, false),
        (r#"{"a":1}"#, r#"{"a":1}"#, false),
        (r#"{"a":1}"#, "[]", false),
        ("12", "1", false),
        ("null", "null", false),
    ] {
        check("contains", operand, document, holds);
    }
}

#[test]
fn matches_is_for_texts() {
    check("matches", r#""ell""#, r#""hello""#, true);
    check("matches", r#""^ell""#, r#""hello""#, false);
    check("matches", r#""1""#, "1", false);
    check("matches", r#""null""#, "null", false);
    check("matches", r#""a""#, r#"["a"]"#, false);
}

#[test]
fn before_and_after_are_strict() {
    check("before", r#""2026-05-04""#, r#""2026-05-03T23:59:59.999999999Z""#, true);
    check("before", r#""2026-05-04""#, r#""2026-05-04T02:00:00+02:00""#, false);
    check("after", r#""2026-05-04""#, r#""2026-05-04T00:00:00""#, false);
    check("after", r#""2026-05-04""#, r#""2026-05-04T00:00:00.1""#, true);
    for document in ["1", r#""1""#, "null", r#""soon""#, r#"["2026-05-04"]"#] {
        check("before", r#""9999-12-31""#, document, false);
        check("after", r#""0000-01-01""#, document, false);
    }
}

#[test]
fn both_ends_are_within() {
    let may = r#"["2026-05-01","2026-05-31"]"#;
    let may_object = r#"{"from":"2026-05-01","to":"2026-05-31"}"#;
    for interval in [may, may_object] {
        for (document, within, outside) in [
            (r#""2026-05-01""#, true, false),
            (r#""2026-05-31T00:00:00Z""#, true, false),
            (r#""2026-05-15T12:00:00+05:00""#, true, false),
            (r#""2026-04-30T23:59:59Z""#, false, true),
            (r#""2026-05-31T00:00:00.000000001Z""#, false, true),
            (r#""later""#, false, false),
            ("5", false, false),
            ("null", false, false),
        ] {
            check("within", interval, document, within);
            check("outside", interval, document, outside);
        }
    }
}

#[test]
fn exists_ignores_its_operand() {
    for operand in ["true", "false", "null", "0", r#""""#] {
        check_at("/a", "exists", operand, r#"{"a":null}"#, true);
        check_at("/b", "exists", operand, r#"{"a":null}"#, false);
        check_at("", "exists", operand, "null", true);
    }
}

#[test]
fn combinators_are_propositional_and_visit_every_leaf() {
    let (yes, no) = (leaf("/a", "eq", "1"), leaf("/a", "eq", "2"));
    let document = r#"{"a":1}"#;
    for (tree, holds, leaves) in [
        (format!(r#"{{"all_of":[{yes},{yes}]}}"#), true, vec![true, true]),
        (format!(r#"{{"all_of":[{no},{yes}]}}"#), false, vec![false, true]),
        (format!(r#"{{"any_of":[{yes},{no}]}}"#), true, vec![true, false]),
        (format!(r#"{{"any_of":[{no},{no}]}}"#), false, vec![false, false]),
        (format!(r#"{{"not":{no}}}"#), true, vec![false]),
        (format!(r#"{{"not":{yes}}}"#), false, vec![true]),
        (format!(r#"{{"not":[{no},{no}]}}"#), true, vec![false, false]),
        (format!(r#"{{"not":[{no},{yes}]}}"#), false, vec![false, true]),
        (format!(r#"{{"not":[{yes},{no}]}}"#), false, vec![true, false]),
        (format!(r#"{{"not":{{"not":{yes}}}}}"#), true, vec![true]),
        (format!("[{yes},{no}]"), false, vec![true, false]),
        (format!("[{yes},{yes}]"), true, vec![true, true]),
        (format!(r#"{{"not":{}}}"#, leaf("/zz", "eq", "1")), true, vec![false]),
        (
            format!(r#"{{"any_of":[{{"all_of":[{no},{yes}]}},{{"not":{{"any_of":[{yes},{no}]}}}},{yes}]}}"#),
            true,
            vec![false, true, true, false, true],
        ),
    ] {
        check_tree(&tree, document, holds, &leaves);
    }
}

#[track_caller]
fn check_record(
    constraints: &str,
    projection: &str,
    document: &str,
    passed: bool,
    shown: Option<&str>,
    reason: Option<&str>,
) {
    let (constraints, projection, document) = (value(constraints), value(projection), value(document));
    let constraint = Constraint::read(&Field::new(&constraints, "/constraints")).unwrap();
    let projection = Projection::read(&Field::new(&projection, "/projection")).unwrap();
    let (_, leaves) = judge(&constraint, &document).unwrap();
    let record = leaves[0].record(&projection.cut(&document));
    let candidate_value = record.candidate_value.as_ref().map(canonical);
    assert_eq!((record.passed, candidate_value.as_deref(), record.reason.as_deref()), (passed, shown, reason));
}

const ALL: &str = r#"{"include":["/"]}"#;

#[test]
fn a_reason_stands_beside_what_speaks_against_the_candidate() {
    let document = r#"{"a":1}"#;
    let (yes, no, nothing) = (leaf("/a", "eq", "1"), leaf("/a", "eq", "2"), leaf("/b", "eq", "1"));
    check_record(&yes, ALL, document, true, Some("1"), None);
    check_record(&no, ALL, document, false, Some("1"), Some("no value satisfies"));
    check_record(&nothing, ALL, document, false, None, Some("nothing at this path"));
    let not = |inner: &str| format!(r#"{{"not":{inner}}}"#);
    check_record(&not(&yes), ALL, document, true, Some("1"), Some("negated: satisfied"));
    check_record(&not(&no), ALL, document, false, Some("1"), Some("negated: no value satisfies"));
    check_record(&not(&nothing), ALL, document, false, None, Some("negated: nothing at this path"));
    check_record(&not(&not(&yes)), ALL, document, true, Some("1"), None);
    check_record(&not(&not(&no)), ALL, document, false, Some("1"), Some("no value satisfies"));
    check_record(&not(&format!("[{yes}]")), ALL, document, true, Some("1"), Some("negated: satisfied"));
}

#[test]
fn the_witness_is_the_first_that_passes_else_the_first() {
    check_record(&leaf("/*", "gt", "1"), ALL, "[1,2,3]", true, Some("2"), None);
    check_record(&leaf("/*", "gt", "9"), ALL, "[1,2,3]", false, Some("1"), Some("no value satisfies"));
    check_record(&leaf("/*", "gt", "0"), ALL, r#"{"b":2,"a":1}"#, true, Some("1"), None);
    check_record(&leaf("/**", "exists", "0"), ALL, r#"{"a":1}"#, true, Some(r#"{"a":1}"#), None);
    check_record(&leaf("/**/x", "exists", "0"), ALL, r#"{"a":{"x":1},"x":2}"#, true, Some("1"), None);
}

#[test]
fn a_hidden_witness_is_not_shown() {
    let document = r#"{"a":{"b":1,"c":2},"d":3}"#;
    let only = r#"{"include":["/a"],"exclude":["/a/c"]}"#;
    check_record(&leaf("/d", "eq", "3"), only, document, true, None, None);
    check_record(&leaf("/a/b", "eq", "1"), only, document, true, Some("1"), None);
    check_record(&leaf("/a/c", "eq", "2"), only, document, true, None, None);
    check_record(&leaf("/a", "exists", "0"), only, document, true, None, None);
    check_record(&leaf("/**", "eq", "2"), only, document, true, None, None);
    check_record(&leaf("/a/*", "gt", "1"), only, document, true, None, None);
}

#[test]
fn the_record_repeats_the_leaf_as_written() {
    let (constraints, document) = (value(&leaf("/x~1y", "in", "[1.0]")), value("{}"));
    let constraint = Constraint::read(&Field::new(&constraints, "")).unwrap();
    let (_, leaves) = judge(&constraint, &document).unwrap();
    let projection = value(ALL);
    let record = leaves[0].record(&Projection::read(&Field::new(&projection, "")).unwrap().cut(&document));
    assert_eq!((record.path.as_str(), record.operator.as_str()), ("/x~1y", "in"));
    assert_eq!(record.value, value("[1]"));
}

#[test]
fn flawed_constraints_are_refused_with_their_place() {
    let refusal = evaluate(&value(&leaf("/a", "like", "1")), &value("{}")).unwrap_err();
    assert_eq!(refusal, Refusal::new("unknown_operator", "/constraints/operator"));
}
