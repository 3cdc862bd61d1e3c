//! Random records, constraints, projections and intents that are likely to meet.
//!
//! A small vocabulary of names and values, full of neighbours (`1`, `1.0`, `"1"`, `"1.00"`, the same instant in two
//! offsets), makes collisions common; paths are drawn from the record at hand half of the time.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use crate::chance::Chance;
use serde_json::{Map, Value, json};

const NAMES: [&str; 12] = ["a", "b", "c", "tags", "price", "0", "1", "", "a/b", "m~n", "*", "\u{1f600}"];

const TEXTS: [&str; 34] = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abc",
    "A",
    "é",
    "e\u{301}",
    "\u{1f600}",
    "a\nb",
    "1",
    "1.0",
    "01",
    "-1",
    "-0",
    "0.1",
    "0.10",
    "100.00",
    "0.30000000000000000001",
    "0.30000000000000000002",
    "12345678901234567890.5",
    "1e3",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    "2026-01-01T00:00:00.000000001Z",
    "2026-01-01T00:00:00",
    "2025-12-31T23:59:60Z",
    "2026-06-01T12:00:00-05:30",
    "2026-02-30",
    "not a date",
    "\u{2028}",
    "aaaa",
];

const NUMBERS: [f64; 14] =
    [0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 2.0, 100.0, 0.3, 1e-7, 123_456.789, -2.5, 9_007_199_254_740_991.0, 3.0];

const PATTERNS: [&str; 40] = [
    "a",
    "^a",
    "b$",
    "^a*b$",
    "^(a|b)+$",
    "[a-c]",
    "[^a]",
    "^[^]$",
    ".",
    "^.$",
    r"\d",
    r"^\d{4}-\d{2}",
    r"\w+",
    r"\s",
    r"\S",
    r"\W",
    r"\bb",
    r"\B",
    r"^\u{1F600}$",
    r"\p{Lu}",
    r"\P{L}",
    "^(?:)$",
    "a{2,3}",
    "^a{0,2}?b",
    r"(a)\1",
    r"^(?:(a)|b)*\1$",
    "(?=a)",
    "a(?!b)",
    "(?<=a)b",
    "(?<!a)b",
    r"^(?=(a+))\1b",
    r"(?<x>a)\k<x>",
    "(",
    "[b-a]",
    r"\1",
    "a**",
    "(?i:a)",
    r"\_",
    "x*",
    r"(?<=(\d)\1)",
];

const OPERATORS: [&str; 15] = [
    "eq", "ne", "lt", "lte", "gt", "gte", "in", "not_in", "contains", "matches", "before", "after", "within",
    "outside", "exists",
];

/// A scalar.
pub fn scalar(chance: &mut Chance<'_>) -> Value {
    match chance.below(8) {
        0 => Value::Null,
        1 => json!(chance.one_in(2)),
        2..=3 => chance.pick(&NUMBERS).map_or(Value::Null, |number| json!(number)),
        _ => json!(chance.word(&TEXTS)),
    }
}

/// Any value, nested at most `depth` levels.
pub fn value(chance: &mut Chance<'_>, depth: usize) -> Value {
    if depth == 0 || chance.one_in(3) {
        return scalar(chance);
    }
    if chance.one_in(2) {
        let len = chance.below(4);
        Value::Array((0..len).map(|_| value(chance, depth - 1)).collect())
    } else {
        object(chance, depth)
    }
}

fn object(chance: &mut Chance<'_>, depth: usize) -> Value {
    let len = chance.below(5);
    let mut members = Map::new();
    for _ in 0..len {
        let name = chance.word(&NAMES);
        members.insert(name.to_owned(), value(chance, depth.saturating_sub(1)));
    }
    Value::Object(members)
}

/// A record: always an object.
pub fn record(chance: &mut Chance<'_>) -> Value {
    let mut record = object(chance, 4);
    if let Value::Object(members) = &mut record {
        members.insert("a".to_owned(), value(chance, 3));
        members.insert("tags".to_owned(), value(chance, 2));
        if chance.one_in(3) {
            members.insert(
                "price".to_owned(),
                json!({"amount": chance.word(&["0", "1.5", "10.00", "x"]), "currency": "EUR"}),
            );
        }
    }
    record
}

/// A path, often one that the record has.
pub fn path(chance: &mut Chance<'_>, record: &Value) -> String {
    if chance.one_in(24) {
        return chance.word(&["", "/", "a", "/a~2", "/**/**/a", "/a//b", "/a/01", "/tags/-"]).to_owned();
    }
    let mut text = String::new();
    let mut here = Some(record);
    for _ in 0..1 + chance.below(4) {
        let name = match here {
            Some(Value::Object(members)) if !chance.one_in(4) => {
                let names: Vec<&String> = members.keys().collect();
                chance.pick(&names).map_or_else(|| "a".to_owned(), |name| (*name).clone())
            }
            Some(Value::Array(elements)) if !chance.one_in(4) => chance.below(elements.len() + 1).to_string(),
            _ => chance.word(&NAMES).to_owned(),
        };
        let wildcard = chance.below(6);
        here = here.and_then(|value| match value {
            Value::Object(members) => members.get(&name),
            Value::Array(elements) => name.parse::<usize>().ok().and_then(|index| elements.get(index)),
            _ => None,
        });
        text.push('/');
        match wildcard {
            0 => text.push('*'),
            1 if !text.contains("**") => text.push_str("**"),
            _ => text.push_str(&name.replace('~', "~0").replace('/', "~1")),
        }
        if here.is_none() && chance.one_in(2) {
            break;
        }
    }
    text
}

/// A leaf; most operands fit their operator.
pub fn leaf(chance: &mut Chance<'_>, record: &Value) -> Value {
    let operator = if chance.one_in(40) { "starts_with" } else { chance.word(&OPERATORS) };
    json!({"path": path(chance, record), "operator": operator, "value": operand(chance, operator, record)})
}

fn operand(chance: &mut Chance<'_>, operator: &str, record: &Value) -> Value {
    if chance.one_in(30) {
        return value(chance, 1);
    }
    match operator {
        "in" | "not_in" => {
            let len = chance.below(4) + if chance.one_in(8) { 9 } else { 0 };
            Value::Array((0..len).map(|_| known(chance, record)).collect())
        }
        "matches" => json!(chance.word(&PATTERNS)),
        "lt" | "lte" | "gt" | "gte" => scalar_with_order(chance),
        "before" | "after" => json!(timestamp(chance)),
        "within" | "outside" => {
            let (start, end) = (timestamp(chance), timestamp(chance));
            if chance.one_in(2) { json!([start, end]) } else { json!({"from": start, "to": end}) }
        }
        _ => known(chance, record),
    }
}

/// A value that occurs in the record, or any other.
fn known(chance: &mut Chance<'_>, record: &Value) -> Value {
    let mut here = record;
    for _ in 0..chance.below(5) {
        here = match here {
            Value::Object(members) => {
                let values: Vec<&Value> = members.values().collect();
                chance.pick(&values).copied().unwrap_or(here)
            }
            Value::Array(elements) => chance.pick(elements).unwrap_or(here),
            _ => break,
        };
    }
    if chance.one_in(3) { value(chance, 1) } else { here.clone() }
}

fn scalar_with_order(chance: &mut Chance<'_>) -> Value {
    match chance.below(3) {
        0 => chance.pick(&NUMBERS).map_or(Value::Null, |number| json!(number)),
        1 => json!(chance.word(&["1", "0.10", "100.00", "0.30000000000000000001", "-2.50", "12345678901234567890.5"])),
        _ => json!(timestamp(chance)),
    }
}

fn timestamp(chance: &mut Chance<'_>) -> &'static str {
    chance.word(&[
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00+01:00",
        "2026-01-01T00:00:00.000000001Z",
        "2025-12-31T23:59:60Z",
        "2026-06-01T12:00:00-05:30",
        "2026-01-01T00:00:00",
        "2027-01-01T00:00:00z",
    ])
}

/// A constraint tree of at most `depth` levels.
pub fn constraints(chance: &mut Chance<'_>, record: &Value, depth: usize) -> Value {
    let some = |chance: &mut Chance<'_>| {
        let len = if chance.one_in(40) { 0 } else { 1 + chance.below(3) };
        Value::Array((0..len).map(|_| constraints(chance, record, depth.saturating_sub(1))).collect())
    };
    match if depth == 0 { 9 } else { chance.below(10) } {
        0..=1 => json!({"all_of": some(chance)}),
        2..=3 => json!({"any_of": some(chance)}),
        4 => json!({"not": some(chance)}),
        5 => json!({"not": constraints(chance, record, depth - 1)}),
        6 if depth == 3 => some(chance),
        _ => leaf(chance, record),
    }
}

/// A projection.
pub fn projection(chance: &mut Chance<'_>, record: &Value) -> Value {
    let paths = |chance: &mut Chance<'_>, least: usize| {
        let len = least + chance.below(3);
        (0..len).map(|_| if chance.one_in(4) { "/".to_owned() } else { path(chance, record) }).collect::<Vec<_>>()
    };
    let include = paths(chance, 1);
    if chance.one_in(2) {
        json!({"include": include})
    } else {
        json!({"include": include, "exclude": paths(chance, 0)})
    }
}

/// An intent over records like the one given.
pub fn intent(chance: &mut Chance<'_>, record: &Value) -> Value {
    let mut intent = json!({
        "intent_id": "urn:oap:intent:random", "issuer_did": "did:key:z6Mk",
        "category": chance.word(&["discovery", "commercial", "knowledge", "action", "delegation"]),
        "constraints": constraints(chance, record, 3),
        "projection": projection(chance, record),
        "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T12:00:00Z"},
    });
    if chance.one_in(2) {
        intent["budget"] = budget(chance);
    }
    if chance.one_in(3) {
        intent["quality_floor"] = quality(chance);
    }
    if chance.one_in(3) {
        intent["resolution_policy"] = json!(chance.word(&["single_best", "ranked_set", "full_set"]));
    }
    intent
}

fn budget(chance: &mut Chance<'_>) -> Value {
    let amount = chance.word(&["0", "1.5", "5.00", "10.01", "0.000000000000000001", "999999999999999999.5"]);
    let mut budget = json!({"amount": amount, "currency": chance.word(&["EUR", "USD"])});
    match chance.below(3) {
        0 => budget["allocation"] = json!("single_winner"),
        1 => budget["allocation"] = json!("proportional_quality"),
        _ => {
            let distribution: &[f64] = match chance.below(4) {
                0 => &[1.0],
                1 => &[0.7, 0.3],
                2 => &[0.1, 0.2, 0.7],
                _ => &[0.1, 0.2, 0.6],
            };
            budget["allocation"] = json!("ranked_top_k");
            budget["top_k"] = json!(distribution.len());
            budget["distribution"] = json!(distribution);
        }
    }
    budget
}

fn quality(chance: &mut Chance<'_>) -> Value {
    let mut quality = Map::new();
    let mut maybe = |name: &str, value: Value, chance: &mut Chance<'_>| {
        if chance.one_in(2) {
            quality.insert(name.to_owned(), value);
        }
    };
    let scores = [0.0, 0.1, 0.35, 0.5, 0.75, 0.9, 1.0];
    let score = |chance: &mut Chance<'_>| json!(chance.pick(&scores));
    let performance = score(chance);
    maybe("performance_score", performance, chance);
    let reputation = score(chance);
    maybe("provider_reputation", reputation, chance);
    let level = json!(chance.word(&["L0", "L1", "L3", "L1-NC", "Q2"]));
    maybe("conformance_level", level, chance);
    let latency = json!(chance.pick(&[0, 50, 100, 101, 9_999, 20_000]));
    maybe("latency_p99_ms", latency, chance);
    let cooling = json!(chance.pick(&[0, 60, 1440]));
    maybe("cooling_off_minutes", cooling, chance);
    Value::Object(quality)
}

/// A candidate: a bare record, or one with its cost and quality beside it.
pub fn candidate(chance: &mut Chance<'_>, number: usize) -> Value {
    let record = record(chance);
    if chance.one_in(4) {
        return record;
    }
    let mut candidate = json!({"id": format!("candidate-{}", number % 5), "record": record});
    if chance.one_in(2) {
        candidate["quality"] = quality(chance);
    }
    if chance.one_in(2) {
        let amount = chance.word(&["0", "1.5", "5", "10.010", "10.02", "0.000000000000000001"]);
        candidate["cost"] = json!({"amount": amount, "currency": chance.word(&["EUR", "USD"])});
    }
    candidate
}
