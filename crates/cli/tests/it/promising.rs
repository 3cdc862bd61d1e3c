//! `agent`: documents judged, scenarios played, records replayed, as people do it.

use crate::run::Home;
use json::{Value, json};

const AGENT: &str = "kind: openagentspec:v1/agent\nname: desk\ndescription: Answers.\nintent: You answer.\nowner: people\n\
                     capabilities:\n  crm:\n    input_restriction:\n      assertion: recent.crm.inputs.id < 10\n";

#[test]
fn the_examples_are_taken_and_their_scenarios_come_out() {
    let home = Home::new("agent-examples");
    home.run(&["agent", "lint", "--strict", "examples/agents/leave/leave.yaml"]).exits(0).says("nothing to say");
    let ran = home.run(&["agent", "test", "examples/agents/leave/scenarios"]).exits(0);
    ran.says("2 scenarios, 0 otherwise than expected").says("nobody-files-for-others.yaml");
}

#[test]
fn a_mistake_is_shown_with_its_line_and_what_to_do() {
    let home = Home::new("agent-lint");
    let file = home.file("desk.yaml", &AGENT.replace("< 10", "< "));
    let ran = home.run(&["agent", "lint", &file]).exits(1);
    ran.says("assertion_syntax").says("desk.yaml:9:").says("help:").says("1 mistake, 0 warnings");
    let file = home.file("odd.yaml", &AGENT.replace("recent.crm.inputs.id < 10", "now > started_at"));
    home.run(&["agent", "lint", &file]).exits(0).says("assertion_unknown_variable");
    let ran = home.run(&["agent", "lint", "--strict", "--json", &file]).exits(1);
    let found = ran.json();
    assert_eq!((&found["findings"][0]["line"], &found["findings"][0]["grade"]), (&json!(9), &json!("warning")));
    let file = home.file("new.yaml", &AGENT.replace("crm", "my_crm"));
    home.run(&["agent", "lint", &file]).exits(1).says("invalid_reference");
    home.run(&["agent", "lint", "--underscores", &file]).exits(0);
    home.run(&["agent", "lint", "nowhere.yaml"]).exits(3);
}

#[test]
fn a_scenario_that_comes_out_otherwise_says_how() {
    let home = Home::new("agent-test");
    home.file("desk.yaml", AGENT);
    let scenario = |calls: Value| {
        json!({
            "why": "One call.", "agent": "desk.yaml", "user": {"id": "ada"}, "says": ["go"],
            "tools": {"crm": {"parameters": {"type": "object", "required": ["id"]}}},
            "model": [{"calls": [{"crm": {"id": 12}}, {"crm": {"id": 7}}, {"crm": {}}]}],
            "expect": {"calls": calls, "denied": ["crm assertion", "crm arguments"]},
        })
    };
    let good = home.file("good.json", &scenario(json!([{"crm": {"id": 7}}])).to_string());
    home.run(&["agent", "test", &good]).exits(0).says("as expected");
    let bad = home.file("bad.json", &scenario(json!([])).to_string());
    let ran = home.run(&["agent", "test", &good, &bad]).exits(1);
    ran.says(r#"calls: expected [], got [{"crm":{"id":7}}]"#).says("2 scenarios, 1 otherwise than expected");
    let none = home.file("none.yaml", "says: [go]\nexpect: {}\n");
    home.run(&["agent", "test", &none]).exits(1).complains("either `agent`, a file, or `document`");
    let odd = home.file("odd.yaml", "says: [go]\nexpects: {}\n");
    home.run(&["agent", "test", &odd]).exits(1).complains("expects");
}

#[test]
fn records_are_replayed_against_another_document() {
    let home = Home::new("agent-replay");
    let same = home.file("desk.yaml", AGENT);
    let stricter = home.file("stricter.yaml", &AGENT.replace("< 10", "< 5"));
    let steps = json!([
        {"step": "begun", "id": "e", "started_at": "2026-01-01T00:00:00Z", "agent": "desk", "document": "d", "user": {"id": "ada"}},
        {"step": "user_said", "text": "go"},
        {"step": "model_said", "calls": [{"id": "1", "name": "crm", "arguments": "{\"id\": 7}"}]},
        {"step": "attempted", "call": 0, "capability": "crm", "inputs": {"id": 7}},
        {"step": "dispatched", "call": 0, "identity": "user"},
        {"step": "returned", "call": 0, "outcome": {"output": {"n": 1}}},
        {"step": "released", "call": 0},
    ]);
    let lines: String = steps.as_array().unwrap().iter().map(|step| format!("{step}\n")).collect();
    let timed: Vec<Value> = steps.as_array().unwrap().iter().map(|step| json!({"at": "now", "step": step})).collect();
    let records = [
        home.file("array.json", &steps.to_string()),
        home.file("lines.jsonl", &lines),
        home.file("object.json", &json!({"steps": timed}).to_string()),
    ];
    for record in &records {
        home.run(&["agent", "replay", "--against", &same, record]).exits(0).says("the same");
        let ran = home.run(&["agent", "replay", "--against", &stricter, record]).exits(1);
        ran.says("step 4").says("was:   call 0 is made").says("would: call 0 is denied (assertion)");
    }
    let found = home.run(&["agent", "replay", "--json", "--against", &stricter, &records[0]]).exits(1).json();
    assert_eq!(found["engagements"][0]["step"], json!(4));
    let odd = home.file("odd.json", "[]");
    home.run(&["agent", "replay", "--against", &same, &odd]).exits(1);
}
