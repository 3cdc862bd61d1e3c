//! RFC 0020 A.3 R3 to R5, from an intent and its candidates to the answer.

use super::*;
use crate::canonical::canonical;
use crate::parse::value;

/// An intent that asks for `/ok` to be true, with more members put in.
fn intent(more: &str) -> Value {
    value(&format!(
        r#"{{"intent_id":"urn:oap:intent:1","issuer_did":"did:web:issuer.example","category":"discovery",
             "constraints":{{"path":"/ok","operator":"eq","value":true}},"projection":{{"include":["/name"]}},
             "validity":{{"from":"2026-05-04T12:00:00Z","to":"2026-05-04T13:00:00Z"}}{more}}}"#
    ))
}

fn budget(amount: &str, allocation: &str) -> String {
    format!(r#","budget":{{"amount":"{amount}","currency":"EUR","allocation":{allocation}}}"#)
}

/// A good candidate that costs so many euros, with quality signals.
fn candidate(id: &str, cost: &str, quality: &str) -> Value {
    value(&format!(
        r#"{{"id":"{id}","record":{{"ok":true,"name":"{id}"}},"cost":{{"amount":"{cost}","currency":"EUR"}},"quality":{quality}}}"#
    ))
}

fn answer(intent: &Value, candidates: &[Value]) -> Resolution {
    resolve(intent, candidates, OverBudget::Flag).unwrap()
}

#[track_caller]
fn check_one(intent: &Value, candidate: &str, outcome: &str, explanation: &str) {
    let resolution = answer(intent, &[value(candidate)]);
    let chosen = resolution.candidates.iter().map(|chosen| (chosen.outcome, &chosen.explanation));
    let refused = resolution.rejected.iter().map(|refused| (refused.outcome, &refused.explanation));
    let all: Vec<(&str, &String)> = chosen.chain(refused).collect();
    assert_eq!(all, [(outcome, &explanation.to_owned())], "{candidate}");
}

#[test]
fn judging_goes_in_order() {
    let floor = format!("{}{}", budget("10", r#""single_winner""#), r#","quality_floor":{"performance_score":0.5}"#);
    let intent = intent(&floor);
    let candidate = |record: &str, cost: &str, score: &str| {
        format!(
            r#"{{"record":{record},"cost":{{"amount":"{cost}","currency":"EUR"}},"quality":{{"performance_score":{score}}}}}"#
        )
    };
    let (good, nameless, bad) = (r#"{"ok":true,"name":"n"}"#, r#"{"ok":true}"#, r#"{"ok":false}"#);
    check_one(&intent, &candidate(good, "10", "0.5"), "accept", "accept");
    check_one(&intent, &candidate(bad, "11", "0.1"), "reject", "constraints: /ok eq");
    check_one(&intent, &candidate(good, "x", "0.5"), "reject", "cost_undefined");
    check_one(&intent, &candidate(nameless, "x", "0.5"), "reject", "cost_undefined");
    check_one(
        &intent,
        &candidate(good, "x", "0.4"),
        "below_quality_floor",
        "cost_undefined; quality_floor: performance_score",
    );
    check_one(
        &intent,
        &candidate(good, "11", "0.4"),
        "below_quality_floor",
        "over_budget; quality_floor: performance_score",
    );
    check_one(&intent, &candidate(nameless, "10", "0.4"), "below_quality_floor", "quality_floor: performance_score");
    check_one(&intent, &candidate(nameless, "10", "0.5"), "reject", "projection_failure: /name");
    check_one(&intent, &candidate(nameless, "11", "0.5"), "reject", "projection_failure: /name");
    check_one(&intent, &candidate(good, "11", "0.5"), "over_budget", "over_budget");
    check_one(&intent, &candidate(good, "10.000000000000000001", "0.5"), "over_budget", "over_budget");
}

#[test]
fn without_a_budget_cost_does_not_matter() {
    check_one(&intent(""), r#"{"ok":true,"name":"n"}"#, "accept", "accept");
}

#[test]
fn over_budget_is_flagged_or_rejected() {
    let intent = intent(&budget("10", r#""single_winner""#));
    let candidates = [candidate("dear", "11", r#"{"performance_score":1}"#), candidate("fair", "9", "{}")];
    let flagged = answer(&intent, &candidates);
    let found: Vec<(&str, u64, bool)> =
        flagged.candidates.iter().map(|chosen| (chosen.id.as_str(), chosen.rank, chosen.over_budget)).collect();
    assert_eq!(found, [("fair", 1, false), ("dear", 2, true)]);
    assert_eq!(flagged.shares, [("fair".to_owned(), "10.00".to_owned())]);
    assert_eq!(canonical(&flagged.candidates[1].payload), r#"{"name":"dear"}"#);
    let strict = resolve(&intent, &candidates, OverBudget::Reject).unwrap();
    assert_eq!(strict.candidates.len(), 1);
    assert_eq!((strict.rejected[0].id.as_str(), strict.rejected[0].outcome), ("dear", "over_budget"));
    let only_dear = answer(&intent, &candidates[..1]);
    assert_eq!(only_dear.candidates[0].outcome, "over_budget");
    assert!(only_dear.shares.is_empty());
}

#[track_caller]
fn check_ids(more: &str, candidates: &[Value], ids: &[&str]) {
    let resolution = answer(&intent(more), candidates);
    let found: Vec<&str> = resolution.candidates.iter().map(|chosen| chosen.id.as_str()).collect();
    assert_eq!(found, ids, "{more}");
    let ranks: Vec<u64> = resolution.candidates.iter().map(|chosen| chosen.rank).collect();
    assert!(ranks.iter().copied().eq(1..=ids.len() as u64));
}

#[test]
fn candidates_are_ranked_and_cut() {
    let candidates = [
        candidate("c", "1", "{}"),
        candidate("a", "2", "{}"),
        candidate("b", "2", "{}"),
        candidate("best", "3", r#"{"performance_score":1}"#),
        candidate("over", "99", r#"{"performance_score":1}"#),
    ];
    let budget = |allocation: &str| budget("10", allocation);
    let all = ["best", "c", "a", "b", "over"];
    check_ids(&budget(r#""single_winner""#), &candidates, &all);
    check_ids(&format!(r#"{},"resolution_policy":"full_set""#, budget(r#""proportional_quality""#)), &candidates, &all);
    check_ids(
        &format!(r#"{},"resolution_policy":"single_best""#, budget(r#""single_winner""#)),
        &candidates,
        &["best"],
    );
    let top_two = budget(r#""ranked_top_k","top_k":2,"distribution":[0.6,0.4]"#);
    check_ids(&top_two, &candidates, &["best", "c"]);
    check_ids(&format!(r#"{top_two},"resolution_policy":"single_best""#), &candidates, &["best"]);
    check_ids(&top_two, &candidates[3..], &["best", "over"]);
    check_ids(r#","resolution_policy":"single_best""#, &candidates[..3], &["a"]);
    check_ids("", &candidates[..3], &["a", "b", "c"]);
}

#[test]
fn shares_follow_the_places() {
    let candidates =
        [candidate("a", "1", r#"{"performance_score":0.9}"#), candidate("b", "1", r#"{"performance_score":0.6}"#)];
    let shares = |more: &str| {
        let resolution = answer(&intent(more), &candidates);
        resolution.shares.iter().map(|(id, amount)| format!("{id} {amount}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(shares(""), "");
    assert_eq!(shares(&budget("10", r#""single_winner""#)), "a 10.00");
    assert_eq!(shares(&budget("10", r#""ranked_top_k","top_k":2,"distribution":[0.75,0.25]"#)), "a 7.50, b 2.50");
    assert_eq!(shares(&budget("10", r#""ranked_top_k","top_k":3,"distribution":[0.5,0.3,0.2]"#)), "a 5.00, b 3.00");
    assert_eq!(shares(&budget("10", r#""proportional_quality""#)), "a 6.00, b 4.00");
    let floor = format!(r#"{},"quality_floor":{{"performance_score":0.5}}"#, budget("10", r#""proportional_quality""#));
    assert_eq!(shares(&floor), "a 8.00, b 2.00");
    let best = format!(r#"{},"resolution_policy":"single_best""#, budget("10", r#""proportional_quality""#));
    assert_eq!(shares(&best), "a 10.00");
}

#[test]
fn a_chosen_candidate_shows_only_its_projection() {
    let resolution = answer(&intent(""), &[candidate("a", "1", r#"{"performance_score":0.5}"#)]);
    let chosen = &resolution.candidates[0];
    assert_eq!(canonical(&chosen.payload), r#"{"name":"a"}"#);
    assert_eq!(chosen.score, 0.175);
    assert_eq!(chosen.inputs[0], ("performance_score", 0.5, 0.35, 0.175));
    let expected = LeafRecord {
        path: "/ok".to_owned(),
        operator: "eq".to_owned(),
        value: Value::Bool(true),
        passed: true,
        candidate_value: None,
        reason: None,
    };
    assert_eq!(chosen.evaluations, [expected]);
}

#[test]
fn a_refused_candidate_keeps_its_evaluations_and_its_place() {
    let bare = |ok: &str| value(&format!(r#"{{"ok":{ok},"name":"n"}}"#));
    let resolution = answer(&intent(""), &[bare("false"), bare("true"), bare("1"), value("{}")]);
    let refused: Vec<(&str, &str)> = resolution
        .rejected
        .iter()
        .map(|refused| (refused.id.as_str(), refused.evaluations[0].reason.as_deref().unwrap()))
        .collect();
    let expected =
        [("line-1", "no value satisfies"), ("line-3", "no value satisfies"), ("line-4", "nothing at this path")];
    assert_eq!(refused, expected);
    assert_eq!(resolution.candidates[0].id, "line-2");
}

#[test]
fn an_explanation_names_what_speaks_against_the_candidate() {
    let tree =
        r#"{"not":{"any_of":[{"path":"/a","operator":"eq","value":1},{"path":"/b","operator":"exists","value":0}]}}"#;
    let Value::Object(mut members) = intent("") else { panic!("an intent is an object") };
    members.retain(|(key, _)| key != "constraints");
    members.push(("constraints".to_owned(), value(tree)));
    check_one(&Value::object(members), r#"{"a":2,"b":null}"#, "reject", "constraints: /b exists");
}

#[test]
fn flawed_input_is_refused() {
    let refusal = resolve(&value("{}"), &[], OverBudget::default()).unwrap_err();
    assert_eq!(refusal, Refusal::new("missing_field", "/intent_id"));
    let refusal = resolve(&intent(""), &[value("1")], OverBudget::Flag).unwrap_err();
    assert_eq!(refusal, Refusal::new("wrong_type", "/candidates/0"));
    assert!(answer(&intent(""), &[]).candidates.is_empty());
}
