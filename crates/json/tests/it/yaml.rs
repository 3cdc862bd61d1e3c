//! Limits of YAML are exact and named before anything behind them is read; what is no YAML has its line and column.

use json::yaml::{Code, Refusal, parse};
use json::{Exceeded, Limits};

/// Small enough to see each value.
const LIMITS: Limits = Limits { subject: "text", bytes: 400, depth: 5, nodes: 12, ..Limits::INTENT };

/// What nobody who reads so far takes for YAML.
const RUBBISH: &str = "- 0\n- @\n";

/// Checks a text that reaches a limit and one that passes it by one; gives what is said about that.
#[track_caller]
fn exact(fits: &str, passes: &str, code: json::Code, name: &str, max: u32) -> Refusal {
    if let Err(refusal) = parse(fits.as_bytes(), &LIMITS) {
        panic!("{name} of {max} is refused: {refusal}");
    }
    let refusal = parse(passes.as_bytes(), &LIMITS).unwrap_err();
    let (name, got) = (format!("text.{name}"), max + 1);
    assert_eq!(refusal.detail, format!("{name} is at most {max}, here {got}"));
    let limit = Exceeded { name, max: u64::from(max), got: u64::from(got) };
    assert_eq!((refusal.code, &refusal.limit), (Code::Json(code), &Some(limit)));
    refusal
}

fn place(refusal: &Refusal) -> (&str, Option<(usize, usize)>) {
    (refusal.at.as_str(), refusal.position)
}

#[test]
fn as_many_bytes_are_read_as_there_may_be() {
    let padded = |bytes: u32| format!("a: 1 #{}", "x".repeat(bytes as usize - 6));
    let refusal = exact(&padded(400), &padded(401), json::Code::TooLarge, "bytes", 400);
    assert_eq!(place(&refusal), ("", None));
}

#[test]
fn as_many_values_are_read_as_there_may_be_and_nothing_behind_them() {
    // The list is a value, too.
    let list = |values: usize| "- 0\n".repeat(values - 1);
    let passes = list(13) + RUBBISH;
    let refusal = exact(&list(12), &passes, json::Code::TooManyNodes, "nodes", 12);
    assert_eq!(place(&refusal), ("/11", Some((12, 3))));
    // Keys are no values; a map is one.
    let map = |values: usize| (1..values).map(|number| format!("k{number}: 0\n")).collect::<String>();
    exact(&map(12), &map(13), json::Code::TooManyNodes, "nodes", 12);
}

#[test]
fn as_many_containers_are_read_as_there_may_be_and_nothing_behind_them() {
    let nested = |levels: usize| {
        let keys: String = (0..levels).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        format!("{keys}{}0\n", " ".repeat(levels))
    };
    let passes = nested(6) + RUBBISH;
    let refusal = exact(&nested(5), &passes, json::Code::TooDeep, "depth", 5);
    assert_eq!(place(&refusal), ("/a/a/a/a/a", Some((6, 6))));
}

#[test]
fn what_is_no_yaml_has_its_line_and_column() {
    for (text, at, position) in [("a: 1\nb: @x\n", "/b", (2, 4)), ("@", "", (1, 1)), ("- 0\n- 1\n- `", "/2", (3, 3))] {
        let refusal = parse(text.as_bytes(), &LIMITS).unwrap_err();
        assert_eq!((refusal.code, place(&refusal)), (Code::Syntax, (at, Some(position))), "{text}");
    }
}
