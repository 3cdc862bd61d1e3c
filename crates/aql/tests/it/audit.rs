//! RFC 0020 §3.7, A.4, A.6: good answers are found good, and every single lie in one is found.

use aql::{Audit, Candidate, Fuel, Instant, Intent, Limits, OverBudget, Responder, Rule, audit, resolve};
use conformance::chance::Chance;
use conformance::generate;
use json::{Document, Value, json};
use std::collections::BTreeSet;

/// Random questions that one test asks.
const ROUNDS: usize = 4_000;

const AT: &str = "2026-01-01T06:00:00Z";

/// What the engine answers, unsigned in all but form.
fn answer(intent: &Intent, candidates: &[Value], over_budget: OverBudget) -> Option<Value> {
    let read = |(position, value)| Candidate::read(Document::of(value).unwrap(), position + 1).unwrap();
    let candidates: Vec<Candidate> = candidates.iter().enumerate().map(read).collect();
    let resolution = resolve(intent, &candidates, over_budget, Fuel::STANDARD).ok()?;
    let responder = Responder {
        response_id: "urn:oap:intent-response:audited",
        resolver_did: "did:key:z6Mk",
        evaluated_at: Instant::parse_rfc3339(AT).unwrap(),
        rejected_max: 20,
        next_cursor: None,
        recorded: aql::Recorded::default(),
    };
    let signature = json!({"alg": "EdDSA", "value": "AAAA"});
    let bytes = responder.write(intent, &resolution, Some(&signature)).ok()?;
    Some(Document::parse(&bytes, &json::Limits::OURS).unwrap().root().to_value())
}

fn held(intent: &Intent, answer: &Value) -> Audit {
    audit(intent, Document::of(answer).unwrap().root(), &Limits::STANDARD, 0)
}

fn read(intent: &Value) -> Option<Intent> {
    Intent::read(Document::of(intent).unwrap().root(), &Limits::STANDARD).ok()
}

#[track_caller]
fn conforms(intent: &Value, answer: &Value, audit: &Audit) {
    assert!(audit.conforms(), "{:#?}\n{intent}\n{answer:#}", audit.violations);
}

/// A random question with its answer; `None` for a flawed intent.
fn drawn(chance: &mut Chance<'_>) -> Option<(Value, Intent, Value)> {
    let candidates: Vec<Value> = (0..5).map(|number| generate::candidate(chance, number)).collect();
    let first = candidates[0].get("record").unwrap_or(&candidates[0]);
    let mut question = generate::intent(chance, first);
    if chance.one_in(2) {
        question["constraints"] =
            json!({"any_of": [question["constraints"], {"path": "/a", "operator": "exists", "value": 1}]});
    }
    if chance.one_in(2) {
        question.as_object_mut().unwrap().remove("quality_floor");
    }
    if chance.one_in(4) {
        question["projection"]["include"] = json!(["/"]);
    }
    let over_budget = if chance.one_in(3) { OverBudget::Reject } else { OverBudget::Flag };
    let intent = read(&question)?;
    let answer = answer(&intent, &candidates, over_budget)?;
    Some((question, intent, answer))
}

#[test]
fn whatever_the_engine_answers_has_no_violation() {
    let (mut answers, mut settled, mut open, mut scores) = (0, 0, 0, 0);
    let mut chance = Chance::seeded(20);
    for _ in 0..ROUNDS {
        let Some((question, intent, answer)) = drawn(&mut chance) else { continue };
        let audit = held(&intent, &answer);
        conforms(&question, &answer, &audit);
        answers += 1;
        settled += audit.checked.leaves_settled;
        open += audit.checked.leaves_open;
        scores += audit.checked.scores;
    }
    assert!(
        answers > ROUNDS / 2 && settled > ROUNDS && open > ROUNDS / 10 && scores > ROUNDS / 4,
        "{answers} {settled} {open} {scores}"
    );
}

#[test]
fn a_payload_that_shows_everything_settles_every_leaf() {
    let mut chance = Chance::seeded(21);
    let mut flipped = 0;
    for _ in 0..ROUNDS / 4 {
        let candidates: Vec<Value> = (0..5).map(|number| generate::candidate(&mut chance, number)).collect();
        let mut question = generate::intent(&mut chance, &candidates[0]);
        question["projection"] = json!({"include": ["/"]});
        let Some(intent) = read(&question) else { continue };
        let Some(mut answer) = answer(&intent, &candidates, OverBudget::Flag) else { continue };
        assert_eq!(held(&intent, &answer).checked.leaves_open, 0, "{question}\n{answer}");
        let Some(evaluations) = answer.pointer_mut("/candidates/0/decision_record/constraint_evaluations") else {
            continue;
        };
        let number = chance.below(evaluations.as_array().unwrap().len());
        evaluations[number]["passed"] = json!(evaluations[number]["passed"] == false);
        let at = format!("/candidates/0/decision_record/constraint_evaluations/{number}/passed");
        let found = held(&intent, &answer);
        let untrue = |violation: &aql::Violation| violation.rule == Rule::LeafUntrue && violation.at.as_str() == at;
        assert!(found.violations.iter().any(untrue), "{question}\n{answer}");
        flipped += 1;
    }
    assert!(flipped > ROUNDS / 40, "{flipped}");
}

#[test]
fn the_examples_are_answered_without_a_violation() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut checked = 0;
    for entry in std::fs::read_dir(format!("{folder}/intents")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let mut question: Value =
            Document::parse(&std::fs::read(&path).unwrap(), &json::Limits::OURS).unwrap().root().to_value();
        question["intent_id"] = json!("urn:oap:intent:example");
        question["issuer_did"] = json!("did:key:z6Mk");
        question["validity"] = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T12:00:00Z"});
        let intent = read(&question).unwrap();
        for market in ["knowledge", "manifests", "offers"] {
            let text = std::fs::read_to_string(format!("{folder}/market/{market}.ndjson")).unwrap();
            let parse = |line: &str| Document::parse(line.as_bytes(), &json::Limits::OURS).unwrap().root().to_value();
            let candidates: Vec<Value> = text.lines().filter(|line| !line.trim().is_empty()).map(parse).collect();
            let answer = answer(&intent, &candidates, OverBudget::Flag).unwrap();
            let audit = held(&intent, &answer);
            conforms(&question, &answer, &audit);
            checked += audit.checked.candidates;
        }
    }
    assert!(checked > 10, "{checked}");
}

/// A question with something of everything.
fn question() -> Value {
    json!({
        "intent_id": "urn:oap:intent:audited",
        "issuer_did": "did:key:z6Mk",
        "category": "discovery",
        "constraints": {"all_of": [
            {"path": "/name", "operator": "exists", "value": true},
            {"path": "/tags", "operator": "contains", "value": "eu"},
            {"not": {"path": "/margin", "operator": "gt", "value": 50}},
            {"any_of": [
                {"path": "/size", "operator": "lte", "value": 10},
                {"path": "/rooms/*/beds", "operator": "gte", "value": 2},
            ]},
        ]},
        "projection": {
            "include": ["/name", "/tags", "/size", "/rooms/1/beds", "/owner"],
            "exclude": ["/owner/phone", "/tags/1"],
        },
        "budget": {"amount": "10", "currency": "EUR", "allocation": "ranked_top_k", "top_k": 4,
            "distribution": [0.4, 0.3, 0.2, 0.1]},
        "quality_floor": {"performance_score": 0.5},
        "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T12:00:00Z"},
    })
}

fn offer(id: &str, price: &str, performance: f64, change: impl Fn(&mut Value)) -> Value {
    let mut offer = json!({
        "id": id,
        "record": {
            "name": id, "tags": ["eu", "internal", "green"], "margin": 20, "size": 4,
            "rooms": [{"beds": 1, "key": "x"}, {"beds": 3, "key": "y"}, {"beds": 1}],
            "owner": {"mail": "m", "phone": "p"},
        },
        "cost": {"amount": price, "currency": "EUR"},
        "quality": {"performance_score": performance},
    });
    change(&mut offer);
    offer
}

fn market() -> Vec<Value> {
    vec![
        offer("alpha", "2", 0.9, |_| {}),
        offer("beta", "4", 0.9, |_| {}),
        offer("gamma", "12", 0.95, |_| {}),
        offer("delta", "4", 0.4, |_| {}),
        offer("epsilon", "4", 0.9, |offer| offer["record"]["margin"] = json!(70)),
        offer("zeta", "4", 0.9, |offer| offer["record"]["size"] = json!(12)),
        offer("eta", "4", 0.9, |offer| drop(offer["record"].as_object_mut().unwrap().remove("owner"))),
    ]
}

/// A place, what is put there (nothing: it is taken away), the rule that breaks, and where that is noticed.
type Lie = (&'static str, Option<Value>, &'static str, &'static str);

fn lies() -> Vec<Lie> {
    let put = |value: Value| Some(value);
    vec![
        ("/response_id", None, "shape_missing_member", "/response_id"),
        ("/response_id", put(json!("urn:oap:intent:x")), "shape_invalid_value", "/response_id"),
        ("/response_id", put(json!("urn:oap:intent-response:")), "shape_invalid_value", "/response_id"),
        ("/response_id", put(json!("urn:oap:intent-response:a\nb")), "shape_invalid_value", "/response_id"),
        ("/note", put(json!("hello")), "shape_unknown_member", "/note"),
        ("/resolver_did", put(json!(7)), "shape_wrong_type", "/resolver_did"),
        ("/resolver_did", put(json!("key")), "shape_invalid_value", "/resolver_did"),
        ("/resolver_role", put(json!("king")), "shape_invalid_value", "/resolver_role"),
        ("/evaluated_at", put(json!("2026-01-01")), "shape_invalid_value", "/evaluated_at"),
        ("/evaluated_at", put(json!("2026-01-01T12:00:01Z")), "outside_window", "/evaluated_at"),
        ("/evaluated_at", put(json!("2025-12-31T23:00:00Z")), "outside_window", "/evaluated_at"),
        ("/intent_id", put(json!("urn:oap:intent:other")), "intent_id_differs", "/intent_id"),
        ("/signature/value", None, "shape_missing_member", "/signature/value"),
        ("/signature/alg", put(json!("none")), "shape_invalid_value", "/signature/alg"),
        ("/deprecation_warning", put(json!({})), "shape_missing_member", "/deprecation_warning/sunset"),
        ("/candidates", put(json!({})), "shape_wrong_type", "/candidates"),
        ("/candidates/0", put(json!(1)), "shape_wrong_type", "/candidates/0"),
        ("/candidates/0/extra", put(json!(1)), "shape_unknown_member", "/candidates/0/extra"),
        ("/candidates/0/payload", None, "shape_missing_member", "/candidates/0/payload"),
        ("/candidates/0/payload", put(json!([])), "shape_wrong_type", "/candidates/0/payload"),
        ("/candidates/0/decision_record", None, "shape_missing_member", "/candidates/0/decision_record"),
        (
            "/candidates/0/inclusion_proof",
            put(json!({"root": "r"})),
            "shape_missing_member",
            "/candidates/0/inclusion_proof/path",
        ),
        ("/candidates/1/candidate_id", put(json!("alpha")), "candidate_repeated", "/candidates/1/candidate_id"),
        ("/rejected/0/candidate_id", put(json!("beta")), "candidate_repeated", "/rejected/0/candidate_id"),
        ("/candidates/0/rank", put(json!(2)), "rank_out_of_place", "/candidates/0/rank"),
        ("/candidates/0/rank", put(json!(0)), "shape_invalid_value", "/candidates/0/rank"),
        ("/candidates/0/rank", put(json!(2)), "ranking_differs", "/candidates/0/decision_record/ranking_function/rank"),
        (
            "/candidates/0/score",
            put(json!(0.9)),
            "ranking_differs",
            "/candidates/0/decision_record/ranking_function/score",
        ),
        ("/candidates/1/score", put(json!(0.99)), "score_out_of_order", "/candidates/1/score"),
        ("/candidates/3/over_budget", None, "over_budget_unflagged", "/candidates/3/over_budget"),
        ("/candidates/0/over_budget", put(json!(true)), "over_budget_misflagged", "/candidates/0/over_budget"),
        ("/candidates/0/over_budget", put(json!(true)), "over_budget_out_of_order", "/candidates/1"),
        ("/candidates/0/payload/secret", put(json!(1)), "payload_beyond_include", "/candidates/0/payload/secret"),
        (
            "/candidates/0/payload/rooms/1/key",
            put(json!("y")),
            "payload_beyond_include",
            "/candidates/0/payload/rooms/1/key",
        ),
        (
            "/candidates/0/payload/rooms/0",
            put(json!({"beds": 1})),
            "payload_beyond_include",
            "/candidates/0/payload/rooms/0",
        ),
        ("/candidates/0/payload/rooms/2", put(json!(null)), "payload_beyond_include", "/candidates/0/payload/rooms/2"),
        ("/candidates/0/payload/owner/phone", put(json!("p")), "payload_excluded", "/candidates/0/payload/owner/phone"),
        ("/candidates/0/payload/tags/1", put(json!("internal")), "payload_excluded", "/candidates/0/payload/tags/1"),
        ("/candidates/0/payload/name", None, "include_unsupplied", "/candidates/0/payload"),
        ("/candidates/0/payload/owner", None, "include_unsupplied", "/candidates/0/payload"),
        (
            "/candidates/0/payload/name",
            None,
            "leaf_untrue",
            "/candidates/0/decision_record/constraint_evaluations/0/passed",
        ),
        (
            "/candidates/0/payload/size",
            put(json!(11)),
            "leaf_untrue",
            "/candidates/0/decision_record/constraint_evaluations/3/passed",
        ),
        (
            "/candidates/0/payload/name",
            put(json!("other")),
            "candidate_value_beyond_projection",
            "/candidates/0/decision_record/constraint_evaluations/0/candidate_value",
        ),
        (
            "/candidates/0/decision_record/note",
            put(json!(1)),
            "shape_unknown_member",
            "/candidates/0/decision_record/note",
        ),
        (
            "/candidates/0/decision_record/decision_id",
            None,
            "shape_missing_member",
            "/candidates/0/decision_record/decision_id",
        ),
        (
            "/candidates/1/decision_record/decision_id",
            put(json!("urn:oap:intent-response:audited#candidate-1")),
            "decision_repeated",
            "/candidates/1/decision_record/decision_id",
        ),
        (
            "/candidates/0/decision_record/evaluated_at",
            put(json!("2026-01-02T00:00:00Z")),
            "outside_window",
            "/candidates/0/decision_record/evaluated_at",
        ),
        (
            "/candidates/0/decision_record/outcome",
            put(json!("fine")),
            "shape_invalid_value",
            "/candidates/0/decision_record/outcome",
        ),
        (
            "/candidates/0/decision_record/outcome",
            put(json!("reject")),
            "rejected_returned",
            "/candidates/0/decision_record/outcome",
        ),
        (
            "/candidates/0/decision_record/outcome",
            put(json!("below_quality_floor")),
            "below_floor_returned",
            "/candidates/0/decision_record/outcome",
        ),
        (
            "/candidates/0/decision_record/outcome",
            put(json!("over_budget")),
            "over_budget_unflagged",
            "/candidates/0/over_budget",
        ),
        (
            "/rejected/0/decision_record/outcome",
            put(json!("accept")),
            "accepted_withheld",
            "/rejected/0/decision_record/outcome",
        ),
        (
            "/rejected/1/decision_record/outcome",
            put(json!("below_quality_floor")),
            "outcome_out_of_turn",
            "/rejected/1/decision_record/outcome",
        ),
        (
            "/rejected/2/decision_record/explanation",
            None,
            "rejection_unexplained",
            "/rejected/2/decision_record/outcome",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations",
            put(json!([])),
            "evaluations_miscounted",
            "/candidates/0/decision_record/constraint_evaluations",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/0/path",
            put(json!("/nick")),
            "evaluation_misquoted",
            "/candidates/0/decision_record/constraint_evaluations/0/path",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/2/operator",
            put(json!("gte")),
            "evaluation_misquoted",
            "/candidates/0/decision_record/constraint_evaluations/2/operator",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/2/value",
            put(json!(60)),
            "evaluation_misquoted",
            "/candidates/0/decision_record/constraint_evaluations/2/value",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/1/passed",
            put(json!(false)),
            "leaf_untrue",
            "/candidates/0/decision_record/constraint_evaluations/1/passed",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/2/passed",
            put(json!(true)),
            "constraints_not_met",
            "/candidates/0/decision_record/constraint_evaluations",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/4/passed",
            put(json!(false)),
            "leaf_untrue",
            "/candidates/0/decision_record/constraint_evaluations/4/passed",
        ),
        (
            "/candidates/0/decision_record/constraint_evaluations/2/candidate_value",
            put(json!(20)),
            "candidate_value_beyond_projection",
            "/candidates/0/decision_record/constraint_evaluations/2/candidate_value",
        ),
        (
            "/rejected/0/decision_record/constraint_evaluations/2/candidate_value",
            put(json!(20)),
            "candidate_value_beyond_projection",
            "/rejected/0/decision_record/constraint_evaluations/2/candidate_value",
        ),
        (
            "/rejected/0/decision_record/constraint_evaluations/3/candidate_value",
            put(json!(99)),
            "candidate_value_contradicts",
            "/rejected/0/decision_record/constraint_evaluations/3/candidate_value",
        ),
        (
            "/candidates/0/decision_record/ranking_function/inputs/0/weight",
            put(json!(0.5)),
            "ranking_inputs",
            "/candidates/0/decision_record/ranking_function/inputs",
        ),
        (
            "/candidates/0/decision_record/ranking_function/inputs/0/name",
            put(json!("charm")),
            "ranking_inputs",
            "/candidates/0/decision_record/ranking_function/inputs",
        ),
        (
            "/candidates/0/decision_record/ranking_function/inputs/0/value",
            put(json!(1.5)),
            "ranking_value",
            "/candidates/0/decision_record/ranking_function/inputs/0/value",
        ),
        (
            "/candidates/0/decision_record/ranking_function/inputs/0/value",
            put(json!(0.4)),
            "below_floor_returned",
            "/candidates/0/decision_record/ranking_function/inputs/0/value",
        ),
        (
            "/candidates/3/decision_record/ranking_function/inputs/4/value",
            put(json!(0.2)),
            "ranking_value",
            "/candidates/3/decision_record/ranking_function/inputs/4/value",
        ),
        (
            "/candidates/0/decision_record/ranking_function/inputs/4/contribution",
            put(json!(0.3)),
            "ranking_contribution",
            "/candidates/0/decision_record/ranking_function/inputs/4/contribution",
        ),
        (
            "/candidates/0/decision_record/ranking_function/score",
            put(json!(0.7)),
            "ranking_sum",
            "/candidates/0/decision_record/ranking_function/score",
        ),
        (
            "/candidates/0/decision_record/ranking_function/seed",
            put(json!(1)),
            "shape_unknown_member",
            "/candidates/0/decision_record/ranking_function/seed",
        ),
    ]
}

fn change(document: &mut Value, at: &str, value: Option<Value>) {
    let (parent, name) = at.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("there is no {at}"));
    match (parent, value) {
        (Value::Object(members), Some(value)) => drop(members.insert(name.to_owned(), value)),
        (Value::Object(members), None) => drop(members.remove(name).unwrap_or_else(|| panic!("there is no {at}"))),
        (Value::Array(elements), Some(value)) => {
            let place: usize = name.parse().unwrap();
            elements.truncate(elements.len().max(place));
            if place == elements.len() { elements.push(value) } else { elements[place] = value }
        }
        (parent, _) => panic!("{parent} has no members"),
    }
}

#[track_caller]
fn finds(audit: &Audit, rule: &str, at: &str) {
    let found = audit.violations.iter().any(|found| found.rule.name() == rule && found.at.as_str() == at);
    assert!(found, "{rule} at {at} is not among {:#?}", audit.violations);
}

#[test]
fn each_lie_is_found_under_its_name() {
    let question = question();
    let intent = read(&question).unwrap();
    let good = answer(&intent, &market(), OverBudget::Flag).unwrap();
    let audit = held(&intent, &good);
    conforms(&question, &good, &audit);
    assert_eq!((audit.checked.candidates, audit.checked.rejected), (4, 3), "{good:#}");
    assert_eq!((audit.checked.leaves_settled, audit.checked.leaves_open), (16, 4), "{good:#}");
    assert_eq!(audit.checked.leaves_rejected, 3 * 5, "{good:#}");
    let lies = lies();
    assert!(lies.len() >= 60, "{}", lies.len());
    for (at, value, rule, noticed) in lies {
        let mut answer = good.clone();
        change(&mut answer, at, value);
        finds(&held(&intent, &answer), rule, noticed);
    }
}

#[test]
fn a_lie_that_takes_several_places_is_found_too() {
    let intent = read(&question()).unwrap();
    let good = answer(&intent, &market(), OverBudget::Flag).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut answer = good.clone();
        change(&mut answer);
        held(&intent, &answer)
    };
    let fifth = with(&|answer| {
        let copy = answer["candidates"][3].clone();
        answer["candidates"].as_array_mut().unwrap().push(copy);
    });
    finds(&fifth, "too_many_candidates", "/candidates");
    let priced = with(&|answer| {
        change(answer, "/candidates/3/over_budget", None);
        change(answer, "/candidates/3/decision_record/ranking_function/inputs/4/value", Some(json!(0.2)));
    });
    finds(&priced, "ranking_value", "/candidates/3/decision_record/ranking_function/inputs/4/value");
    let swapped = with(&|answer| answer["candidates"].as_array_mut().unwrap().swap(0, 1));
    finds(&swapped, "rank_out_of_place", "/candidates/0/rank");
    finds(&swapped, "score_out_of_order", "/candidates/1/score");
    let unsaid = with(&|answer| {
        drop(answer["candidates"][0]["decision_record"]["constraint_evaluations"].as_array_mut().unwrap().pop())
    });
    finds(&unsaid, "evaluations_miscounted", "/candidates/0/decision_record/constraint_evaluations");
    let reordered = with(&|answer| {
        answer["candidates"][0]["decision_record"]["constraint_evaluations"].as_array_mut().unwrap().swap(0, 1)
    });
    finds(&reordered, "evaluation_misquoted", "/candidates/0/decision_record/constraint_evaluations/0/path");
}

#[test]
fn a_leaf_that_is_misquoted_counts_for_nothing() {
    let intent = read(&question()).unwrap();
    let good = answer(&intent, &market(), OverBudget::Flag).unwrap();
    for (member, value) in [
        ("path", Some(json!("/nick"))),
        ("operator", Some(json!("eq"))),
        ("value", Some(json!(1))),
        ("path", None),
        ("operator", None),
        ("value", None),
    ] {
        let mut answer = good.clone();
        // The payload would settle it, and the tree would fail by it.
        let at = "/candidates/0/decision_record/constraint_evaluations/0";
        change(&mut answer, &format!("{at}/passed"), Some(json!(false)));
        change(&mut answer, &format!("{at}/candidate_value"), None);
        change(&mut answer, &format!("{at}/{member}"), value.clone());
        let audit = held(&intent, &answer);
        let rule = if value.is_some() { "evaluation_misquoted" } else { "shape_missing_member" };
        finds(&audit, rule, &format!("{at}/{member}"));
        assert_eq!(audit.violations.len(), 1, "{:#?}", audit.violations);
        assert_eq!((audit.checked.leaves_settled, audit.checked.leaves_open), (15, 4), "{member}");
    }
}

#[test]
fn what_is_free_leaves_all_of_a_budget_of_nothing() {
    let priced = |ceiling: &str, value: f64| {
        let mut question = question();
        question["budget"] = json!({"amount": ceiling, "currency": "EUR", "allocation": "single_winner"});
        let intent = read(&question).unwrap();
        let mut answer = answer(&intent, &[offer("a", "0", 0.9, |_| {})], OverBudget::Flag).unwrap();
        let at = "/candidates/0/decision_record/ranking_function/inputs/4/value";
        assert_eq!(answer.pointer(at), Some(&json!(1)), "{answer:#}");
        change(&mut answer, at, Some(json!(value)));
        let wrong = |violation: &aql::Violation| violation.rule == Rule::RankingValue && violation.at.as_str() == at;
        held(&intent, &answer).violations.iter().any(wrong)
    };
    assert!(!priced("0", 1.0) && priced("0", 0.5) && priced("0", 0.0));
    assert!(!priced("10", 0.5), "a price is not told by a payload");
}

#[test]
fn the_edges_of_the_window_belong_to_it_and_clocks_may_differ_a_little() {
    let intent = read(&question()).unwrap();
    let good = answer(&intent, &market(), OverBudget::Flag).unwrap();
    for (moment, is_inside) in [
        ("2025-12-31T23:54:59.999999999Z", false),
        ("2025-12-31T23:55:00Z", true),
        ("2026-01-01T00:00:00Z", true),
        ("2026-01-01T12:00:00Z", true),
        ("2026-01-01T12:00:00.000000001Z", false),
    ] {
        let mut answer = good.clone();
        answer["evaluated_at"] = json!(moment);
        assert_eq!(held(&intent, &answer).conforms(), is_inside, "{moment}");
    }
}

#[test]
fn an_outcome_without_ground_and_ties_against_the_rule_are_found() {
    let mut question = question();
    for name in ["budget", "quality_floor"] {
        question.as_object_mut().unwrap().remove(name);
    }
    let intent = read(&question).unwrap();
    let good =
        answer(&intent, &[offer("a", "1", 0.9, |_| {}), offer("b", "1", 0.9, |_| {})], OverBudget::Flag).unwrap();
    conforms(&question, &good, &held(&intent, &good));
    let mut groundless = good.clone();
    for outcome in ["over_budget", "below_quality_floor"] {
        groundless["candidates"][1]["decision_record"]["outcome"] = json!(outcome);
        finds(&held(&intent, &groundless), "outcome_groundless", "/candidates/1/decision_record/outcome");
    }
    let audit = held(&intent, &swapped(&good));
    finds(&audit, "tie_out_of_order", "/candidates/1");
    assert_eq!(audit.violations.len(), 1, "{:#?}", audit.violations);
}

/// The answer with its first two candidates in each other's place.
fn swapped(answer: &Value) -> Value {
    let mut answer = answer.clone();
    let candidates = answer["candidates"].as_array_mut().unwrap();
    candidates.swap(0, 1);
    for (place, candidate) in candidates.iter_mut().enumerate() {
        candidate["rank"] = json!(place + 1);
        candidate["decision_record"]["ranking_function"]["rank"] = json!(place + 1);
    }
    answer
}

#[test]
fn a_tie_is_judged_as_far_as_the_answer_shows_what_things_cost() {
    let tied = |ceiling: &str, first: (&str, f64), second: (&str, f64)| {
        let mut question = question();
        question["budget"] = json!({"amount": ceiling, "currency": "EUR", "allocation": "single_winner"});
        let intent = read(&question).unwrap();
        let offers = [offer("a", first.0, first.1, |_| {}), offer("b", second.0, second.1, |_| {})];
        let good = answer(&intent, &offers, OverBudget::Flag).unwrap();
        conforms(&question, &good, &held(&intent, &good));
        assert_eq!(good["candidates"][0]["score"], good["candidates"][1]["score"]);
        let found = held(&intent, &swapped(&good)).violations;
        found.iter().map(|violation| violation.rule.name()).collect::<Vec<_>>()
    };
    // Of what is free the lower id comes first; so does the cheaper of two with one score.
    assert_eq!(tied("0", ("0", 0.9), ("0", 0.9)), ["tie_out_of_order"]);
    assert_eq!(tied("10", ("3", 0.6), ("10", 0.9)), ["tie_out_of_order"]);
    // What is beyond the budget may have any price, and prices that are nearly the same may differ.
    assert_eq!(tied("0", ("1", 0.9), ("1", 0.9)), [""; 0]);
    assert_eq!(tied("10", ("3", 0.9), ("3", 0.9)), [""; 0]);
}

#[test]
fn evaluations_of_one_record_agree_with_each_other() {
    let mut question = question();
    question["constraints"] = json!({"any_of": [
        {"path": "/hidden", "operator": "eq", "value": 1},
        {"path": "/hidden", "operator": "exists", "value": true},
        {"path": "/hidden", "operator": "eq", "value": 1.0},
        {"path": "/name", "operator": "exists", "value": true},
    ]});
    let intent = read(&question).unwrap();
    let good = answer(&intent, &market(), OverBudget::Flag).unwrap();
    conforms(&question, &good, &held(&intent, &good));
    for (number, noticed) in [(0, 1), (2, 2)] {
        let mut answer = good.clone();
        answer["candidates"][0]["decision_record"]["constraint_evaluations"][number]["passed"] = json!(true);
        let at = format!("/candidates/0/decision_record/constraint_evaluations/{noticed}/passed");
        finds(&held(&intent, &answer), "leaves_contradict", &at);
    }
}

#[test]
fn other_questions_about_one_path_may_have_other_answers() {
    let mut question = question();
    question["constraints"] = json!({"any_of": [
        {"path": "/hidden", "operator": "gt", "value": 1},
        {"path": "/hidden", "operator": "lte", "value": 1},
        {"path": "/hidden", "operator": "gt", "value": 9},
        {"path": "/elsewhere", "operator": "gt", "value": 1},
        {"path": "/name", "operator": "exists", "value": true},
    ]});
    let intent = read(&question).unwrap();
    let found = |hidden: i32| {
        let mut market = market();
        market.iter_mut().for_each(|offer| offer["record"]["hidden"] = json!(hidden));
        let good = answer(&intent, &market, OverBudget::Flag).unwrap();
        let told = good.pointer("/candidates/0/decision_record/constraint_evaluations").unwrap().as_array().unwrap();
        let truths: Vec<bool> = told.iter().map(|evaluation| evaluation["passed"] == true).collect();
        conforms(&question, &good, &held(&intent, &good));
        truths
    };
    assert_eq!(found(5), [true, false, false, false, true]);
    assert_eq!(found(1), [false, true, false, false, true]);
    assert_eq!(found(10), [true, false, true, false, true]);
}

#[test]
fn a_later_page_counts_on() {
    let mut question = question();
    question["budget"]["allocation"] = json!("single_winner");
    for name in ["top_k", "distribution"] {
        question["budget"].as_object_mut().unwrap().remove(name);
    }
    let intent = read(&question).unwrap();
    let mut page = answer(&intent, &market(), OverBudget::Flag).unwrap();
    for (place, candidate) in page["candidates"].as_array_mut().unwrap().iter_mut().enumerate() {
        candidate["rank"] = json!(place + 101);
        candidate["decision_record"]["ranking_function"]["rank"] = json!(place + 101);
    }
    let document = Document::of(&page).unwrap();
    assert!(audit(&intent, document.root(), &Limits::STANDARD, 100).conforms());
    finds(&audit(&intent, document.root(), &Limits::STANDARD, 0), "rank_out_of_place", "/candidates/0/rank");
}

#[test]
fn a_ranking_function_that_nobody_knows_is_only_compared_with_its_candidate() {
    let question = question();
    let intent = read(&question).unwrap();
    let mut answer = answer(&intent, &market(), OverBudget::Flag).unwrap();
    for (place, candidate) in answer["candidates"].as_array_mut().unwrap().iter_mut().enumerate() {
        let score = json!(9 - place);
        candidate["score"] = score.clone();
        candidate["decision_record"]["ranking_function"] = json!({"function_id": "other.rank", "function_version": "7", "inputs": [], "score": score, "rank": place + 1});
    }
    let audit = held(&intent, &answer);
    conforms(&question, &answer, &audit);
    assert_eq!(audit.checked.scores, 0);
    answer["candidates"][0]["score"] = json!(10);
    let at = "/candidates/0/decision_record/ranking_function/score";
    finds(&held(&intent, &answer), "ranking_differs", at);
}

/// What a payload settles about one leaf, and what it leaves open.
#[track_caller]
fn settles(projection: Value, payload: Value, leaf: Value, truth: Option<bool>) {
    let mut question = question();
    question["projection"] = projection;
    question["constraints"] = json!({"any_of": [leaf, {"not": leaf}]});
    let intent = read(&question).unwrap();
    let mut answer = answer(&intent, &market(), OverBudget::Flag).unwrap();
    answer["rejected"] = json!([]);
    let evaluation = |passed: bool| {
        let mut evaluation = leaf.clone();
        evaluation["passed"] = json!(passed);
        evaluation
    };
    for passed in [true, false] {
        answer["candidates"] = json!([{
            "candidate_id": "one",
            "payload": payload,
            "decision_record": {
                "decision_id": "d", "evaluated_at": AT, "outcome": "accept",
                "constraint_evaluations": [evaluation(passed), evaluation(passed)],
            },
        }]);
        let audit = held(&intent, &answer);
        let open = if truth.is_none() { 2 } else { 0 };
        assert_eq!(audit.checked.leaves_open, open, "{payload} {leaf}");
        let untrue = audit.violations.iter().filter(|found| found.rule == Rule::LeafUntrue).count();
        assert_eq!(untrue, if truth.is_none_or(|truth| truth == passed) { 0 } else { 2 }, "{:#?}", audit.violations);
        let others: Vec<_> = audit.violations.iter().filter(|found| found.rule != Rule::LeafUntrue).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}

#[test]
fn what_a_projection_hides_settles_nothing() {
    let leaf = |path: &str, operator: &str, value: Value| json!({"path": path, "operator": operator, "value": value});
    let some = || json!({"include": ["/a"]});
    settles(some(), json!({"a": 1}), leaf("/a", "eq", json!(1)), Some(true));
    settles(some(), json!({"a": 1}), leaf("/a/b", "exists", json!(1)), Some(false));
    settles(some(), json!({"a": 1}), leaf("/b", "exists", json!(1)), None);
    settles(some(), json!({"a": 1}), leaf("/**", "eq", json!(2)), None);
    settles(some(), json!({"a": 1}), leaf("/**", "eq", json!(1)), Some(true));
    settles(some(), json!({"a": 1}), leaf("/", "exists", json!(1)), Some(true));
    settles(some(), json!({"a": 1}), leaf("/", "eq", json!({"a": 1})), None);
    settles(some(), json!({"a": 1}), leaf("/", "lt", json!(1)), Some(false));
    settles(some(), json!({"a": 1}), leaf("/", "ne", json!("x")), Some(true));
    settles(some(), json!({"a": [1, 2]}), leaf("/a/2", "exists", json!(1)), Some(false));

    let partly = || json!({"include": ["/a"], "exclude": ["/a/b", "/a/*/c"]});
    settles(partly(), json!({"a": {"d": 1}}), leaf("/a/b", "exists", json!(1)), None);
    settles(partly(), json!({"a": {"d": 1}}), leaf("/a/d", "eq", json!(1)), Some(true));
    settles(partly(), json!({"a": {"d": 1}}), leaf("/a/e", "exists", json!(1)), Some(false));
    settles(partly(), json!({"a": {"d": 1}}), leaf("/a", "eq", json!({"d": 1})), None);
    settles(partly(), json!({"a": {"d": 1}}), leaf("/a/*", "eq", json!(2)), None);
    settles(partly(), json!({"a": {"d": {}}}), leaf("/a/d/c", "exists", json!(1)), None);
    settles(partly(), json!({"a": {"d": {}}}), leaf("/a/d/f", "exists", json!(1)), Some(false));
    settles(partly(), json!({"a": {"d": {}}}), leaf("/a/d", "in", json!([1, "x"])), Some(false));
    settles(partly(), json!({"a": [{}, {}]}), leaf("/a", "contains", json!({})), None);
    settles(partly(), json!({"a": [{}, 7]}), leaf("/a", "contains", json!(7)), Some(true));
    settles(partly(), json!({"a": [{}, 7]}), leaf("/a", "contains", json!(8)), None);
    settles(partly(), json!({"a": [{}, 7]}), leaf("/a", "contains", json!([7])), None);
    settles(partly(), json!({"a": {"d": 1}}), leaf("/a", "contains", json!(1)), Some(false));
    settles(partly(), json!({"a": [1]}), leaf("/a/1", "exists", json!(1)), Some(false));
}

#[test]
fn holes_and_cut_tails_settle_no_more_than_that_something_was_there() {
    let leaf = |path: &str, operator: &str, value: Value| json!({"path": path, "operator": operator, "value": value});
    let second = || json!({"include": ["/a/1"]});
    settles(second(), json!({"a": [null, 5]}), leaf("/a/0", "exists", json!(1)), Some(true));
    settles(second(), json!({"a": [null, 5]}), leaf("/a/0", "eq", json!(null)), None);
    settles(second(), json!({"a": [null, 5]}), leaf("/a/0/x", "exists", json!(1)), None);
    settles(second(), json!({"a": [null, 5]}), leaf("/a/1", "gt", json!(4)), Some(true));
    settles(second(), json!({"a": [null, 5]}), leaf("/a/2", "exists", json!(1)), None);
    settles(second(), json!({"a": [null, 5]}), leaf("/a/*", "eq", json!(5)), Some(true));
    settles(second(), json!({"a": [null, 5]}), leaf("/a/*", "eq", json!(6)), None);
    settles(second(), json!({"a": [null, 5]}), leaf("/a/x", "exists", json!(1)), Some(false));

    let each = || json!({"include": ["/a/*/x"]});
    settles(each(), json!({"a": [{"x": 1}, {"x": 2}]}), leaf("/a/*/x", "eq", json!(3)), None);
    let all = || json!({"include": ["/a/*"]});
    settles(all(), json!({"a": [1, null]}), leaf("/a/*", "eq", json!(3)), Some(false));
    settles(all(), json!({"a": [1, null]}), leaf("/a/1", "eq", json!(null)), Some(true));
    let gap = || json!({"include": ["/a/*"], "exclude": ["/a/2"]});
    settles(gap(), json!({"a": [1, 2]}), leaf("/a/2", "exists", json!(1)), None);
    settles(gap(), json!({"a": [1, 2]}), leaf("/a/3", "exists", json!(1)), Some(false));
    settles(gap(), json!({"a": [1]}), leaf("/a/2", "exists", json!(1)), Some(false));
}

#[test]
fn the_page_lists_the_rules_as_the_code_does() {
    let page = include_str!("../../../../docs/violations.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |rule: &Rule| format!("| `{}` | {} | {} |", rule.name(), rule.meaning(), rule.section());
    assert_eq!(rows, Rule::ALL.iter().map(row).collect::<Vec<_>>());
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn each_rule_is_broken_by_some_test() {
    let source = include_str!("audit.rs");
    let broken = |rule: &&Rule| source.contains(&format!("\"{}\"", rule.name()));
    let unbroken: Vec<&str> = Rule::ALL.iter().filter(|rule| !broken(rule)).map(|rule| rule.name()).collect();
    assert!(unbroken.is_empty(), "{unbroken:?}");
}

#[test]
fn rubbish_is_no_answer_and_no_harm() {
    let intent = read(&question()).unwrap();
    for rubbish in
        [json!(null), json!([]), json!("x"), json!({}), json!({"candidates": [null, [], {}], "rejected": [3]})]
    {
        assert!(!held(&intent, &rubbish).conforms(), "{rubbish}");
    }
    let many: Vec<Value> = (0..1_500).map(|_| json!(1)).collect();
    let audit = held(&intent, &json!({"candidates": many}));
    // Each candidate, that there are too many, and what the answer does not have.
    assert_eq!((audit.violations.len(), audit.untold), (1_000, 500 + 1 + 5));
    let mut deep = answer(&intent, &market(), OverBudget::Flag).unwrap();
    for number in 0..1_500 {
        deep["candidates"][0]["payload"]["rooms"][1][format!("k{number}")] = json!(number);
    }
    let audit = held(&intent, &deep);
    assert_eq!((audit.violations.len(), audit.untold), (1_000, 500));
}
