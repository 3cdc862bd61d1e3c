//! Recorded engagements against another document.

use crate::corpus::compile;
use agent::{Agent, Next, Replay, Scenario, Step, Why, replay};
use json::json;

const HEAD: &str = "kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\n";

fn agent(rest: &str) -> Agent {
    Agent::read(format!("{HEAD}{rest}").as_bytes()).unwrap()
}

/// What happened under the first document, through a journal.
fn recorded(rest: &str) -> Vec<Step> {
    let scenario = Scenario::of(json!({
        "user": {"id": "ada"},
        "tools": {"crm": {"returns": [{"n": 1}, {"n": 20}]}, "guard": {"returns": [{"ok": true}]}},
        "says": ["go"],
        "model": [{"calls": [{"crm": {"id": 1}}, {"crm": {"id": 2}}, {"nothing": {}}]}, {"say": "done"}],
        "reviews": ["approved", "approved"],
        "expect": {},
    }));
    let played = scenario.unwrap().play(&agent(rest), &compile).unwrap();
    let lines: Vec<String> =
        played.engagement.steps().iter().map(|step| serde_json::to_string(step).unwrap()).collect();
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const PLAIN: &str = "capabilities: {crm: {}}\n";

#[track_caller]
fn check(was: &str, now: &str, differs: Option<Step>) {
    let found = match replay(&agent(now), &recorded(was)).unwrap() {
        Replay::Same => None,
        Replay::Differs { would, .. } => match *would {
            Next::Record(step) => Some(step),
            other => panic!("{other:?}"),
        },
    };
    assert_eq!(found, differs);
}

#[test]
fn a_document_decides_its_own_records_as_before() {
    for rest in [
        PLAIN,
        "capabilities: {crm: {input_restriction: {assertion: 'recent.crm.inputs.id < 2', require_review: owner}}}\n",
        "capabilities: {crm: {output_restriction: {assertion: 'recent.crm.outputs.n < 2', require_review: user}}}\n",
        "capabilities: {crm: {}}\nguardrails: {input: {tool_name: guard, assertion: ok}, output: {tool_name: guard, assertion: ok}}\nexposes: {n: history._total}\n",
        "capabilities: {crm: {}}\nlifespan: {short_circuit: 2}\n",
    ] {
        check(rest, rest, None);
    }
}

#[test]
fn a_stricter_document_is_told_by_its_first_other_decision() {
    let denied = |call| Some(Step::Denied { call, why: Why::Assertion });
    check(PLAIN, "capabilities: {crm: {input_restriction: {assertion: 'recent.crm.inputs.id < 2'}}}\n", denied(1));
    check(PLAIN, "capabilities: {crm: {input_restriction: {assertion: 'false'}}}\n", denied(0));
    let withheld = Some(Step::Withheld { call: 1, why: Why::Assertion });
    check(PLAIN, "capabilities: {crm: {output_restriction: {assertion: 'recent.crm.outputs.n < 2'}}}\n", withheld);
    check(PLAIN, "capabilities: {mail: {}}\n", Some(Step::Denied { call: 0, why: Why::Unknown }));
    check(PLAIN, "capabilities: {crm: {input_restriction: {assertion: 'recent.crm.inputs.id < 9'}}}\n", None);
}

#[test]
fn a_review_or_a_guardrail_that_was_not_asked_for_is_a_difference() {
    for now in [
        "capabilities: {crm: {input_restriction: {require_review: owner}}}\n",
        "capabilities: {crm: {}}\nguardrails: {input: {tool_name: guard, assertion: ok}}\n",
    ] {
        let replayed = replay(&agent(now), &recorded(PLAIN)).unwrap();
        assert!(matches!(replayed, Replay::Differs { would, .. } if matches!(*would, Next::Perform(_))));
    }
    let without =
        replay(&agent(PLAIN), &recorded("capabilities: {crm: {input_restriction: {require_review: owner}}}\n"));
    assert!(matches!(without.unwrap(), Replay::Differs { was, .. } if matches!(*was, Step::ReviewAsked { .. })));
}

#[test]
fn what_is_no_record_is_refused() {
    assert!(replay(&agent(PLAIN), &[]).is_err());
    let mut steps = recorded(PLAIN);
    steps.remove(0);
    assert!(replay(&agent(PLAIN), &steps).is_err());
}
