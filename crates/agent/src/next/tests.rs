//! The table of what follows what, with a scripted model and tools that answer at once.

use super::*;
use crate::{Begun, Check, Message, Misplaced, Name, NameRule, ProposedCall, Status, Tool, Usage, User, messages};
use std::sync::Arc;

struct Whatever;

impl Check for Whatever {
    fn check(&self, inputs: &Value) -> Result<(), String> {
        if inputs.get("wrong").is_some() { Err("wrong".to_owned()) } else { Ok(()) }
    }
}

fn agent(rest: &str) -> Agent {
    let text =
        format!("kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You help.\nowner: o\n{rest}");
    Agent::read(text.as_bytes()).unwrap()
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    for name in ["crm", "mail", "guard"] {
        let tool = Tool::new("A tool.", json!({"type": "object"}), Arc::new(Whatever));
        registry.add_tool(&Name::read(name, NameRule::Text).unwrap(), tool).unwrap();
    }
    registry.add_agent(&Name::read("judge", NameRule::Text).unwrap(), "Judges.").unwrap();
    registry
}

/// An engagement that goes on by itself as far as it can.
struct Going {
    agent: Agent,
    registry: Registry,
    engagement: Engagement,
    model: Vec<Step>,
    outputs: Vec<Value>,
    performed: Vec<String>,
    seen: Vec<Vec<Message>>,
}

fn going(rest: &str, model: Vec<Step>, outputs: Vec<Value>) -> Going {
    let agent = agent(rest);
    let begun = Begun {
        id: "e-1".to_owned(),
        started_at: "2026-11-16T12:00:00Z".to_owned(),
        agent: "a".to_owned(),
        document: agent.digest().to_owned(),
        user: Some(User { id: "u".to_owned(), email: None }),
        ..Begun::default()
    };
    let engagement = Engagement::begin(begun);
    let (performed, seen) = (Vec::new(), Vec::new());
    Going { agent, registry: registry(), engagement, model, outputs, performed, seen }
}

impl Going {
    fn say(mut self, text: &str) -> Self {
        self.record(Step::UserSaid { text: text.to_owned() }).unwrap();
        self.go()
    }

    fn record(&mut self, step: Step) -> Result<(), Misplaced> {
        self.engagement.record(step)?;
        let again = Engagement::fold(self.engagement.steps().to_vec()).unwrap();
        assert_eq!(again.status(), self.engagement.status());
        Ok(())
    }

    fn output(&mut self) -> Outcome {
        Outcome::Output(if self.outputs.is_empty() { json!({}) } else { self.outputs.remove(0) })
    }

    fn go(mut self) -> Self {
        loop {
            match next(&self.agent, &self.registry, &self.engagement) {
                Next::Record(step) => self.record(step).unwrap(),
                Next::Perform(Effect::CallModel { .. }) => {
                    self.performed.push("model".to_owned());
                    self.seen.push(messages(&self.agent, &self.engagement));
                    let step = if self.model.is_empty() { says("done") } else { self.model.remove(0) };
                    self.record(step).unwrap();
                }
                Next::Perform(Effect::CheckGuardrail { place, tool, inputs }) => {
                    self.performed.push(format!("{tool} {inputs}"));
                    let outcome = self.output();
                    self.record(Step::GuardrailReturned { place, outcome }).unwrap();
                }
                Next::Perform(Effect::Dispatch { call, capability, inputs, identity, .. }) => {
                    self.performed.push(format!("{capability} {inputs}"));
                    self.record(Step::Dispatched { call, identity }).unwrap();
                    let outcome = self.output();
                    self.record(Step::Returned { call, outcome }).unwrap();
                }
                Next::Perform(Effect::AskReview { call, stage, reviewer, digest, .. }) => {
                    let expires_at = "2026-11-17T12:00:00Z".to_owned();
                    let review = Review { id: "r".to_owned(), reviewer: reviewer.name(), digest, expires_at };
                    self.record(Step::ReviewAsked { call, stage, review }).unwrap();
                }
                Next::Wait(_) | Next::Over => return self,
            }
        }
    }

    fn decide(mut self, decision: Decision) -> Self {
        let (call, stage, review) = self.engagement.pending_review().map(|(c, s, r)| (c, s, r.clone())).unwrap();
        let by = Some(review.reviewer.clone());
        let digest = "another".to_owned();
        let other = Step::ReviewDecided { call, stage, digest, decision, by: by.clone(), reason: None };
        assert_eq!(self.record(other), Err(Misplaced));
        let step = Step::ReviewDecided { call, stage, digest: review.digest, decision, by, reason: None };
        self.record(step.clone()).unwrap();
        assert_eq!(self.record(step), Err(Misplaced));
        self.go()
    }

    #[track_caller]
    fn check(&self, status: Status, performed: &[&str]) {
        assert_eq!(
            (self.engagement.status(), self.performed.as_slice()),
            (status, performed.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice()),
            "{:#?}",
            self.engagement.steps()
        );
    }

    fn last_result(&self) -> &str {
        match self.seen.last().unwrap().last().unwrap() {
            Message::Tool { text, .. } => text,
            other => panic!("{other:?}"),
        }
    }
}

fn says(text: &str) -> Step {
    Step::ModelSaid { text: Some(text.to_owned()), calls: Vec::new(), usage: Usage::default() }
}

fn calls(calls: &[(&str, &str)]) -> Step {
    let proposed = |(name, arguments): &(&str, &str)| ProposedCall {
        id: format!("call-{name}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Step::ModelSaid { text: None, calls: calls.iter().map(proposed).collect(), usage: Usage::default() }
}

#[test]
fn a_call_is_made_and_its_result_seen() {
    let going = going(
        "capabilities: {crm: {}}\nexposes: {name: 'recent.crm.outputs.name', none: 'recent.x'}\n",
        vec![calls(&[("crm", "{\"id\": 7}")])],
        vec![json!({"name": "Ada"})],
    )
    .say("who is 7?");
    going.check(Status::Completed, &["model", "crm {\"id\":7}", "model"]);
    assert_eq!(going.last_result(), "{\"name\":\"Ada\"}");
    let (text, exposes, errors) = going.engagement.answer().unwrap();
    assert_eq!(
        (text, exposes["name"].clone(), exposes["none"].clone(), errors),
        ("done", json!("Ada"), json!(null), ["none".to_owned()].as_slice())
    );
    let object = going.engagement.object(&going.agent);
    assert_eq!(
        object["history"],
        json!({"_list": ["crm"], "_total": 1, "crm": [{"inputs": {"id": 7}, "outputs": {"name": "Ada"}}]})
    );
    assert_eq!(object["recent"], json!({"_name": "crm", "crm": {"inputs": {"id": 7}, "outputs": {"name": "Ada"}}}));
    let again = going.say("and now?");
    again.check(Status::Completed, &["model", "crm {\"id\":7}", "model", "model"]);
}

#[test]
fn what_the_input_assertion_sees_at_that_moment() {
    let rest = "capabilities:\n  crm:\n    input_restriction:\n      assertion: \
                'recent.crm.inputs.id < 10 && !has(recent.crm.outputs) && history._total == size(history.crm)'\n";
    let script =
        vec![calls(&[("crm", "{\"id\": 1}")]), calls(&[("crm", "{\"id\": 2}")]), calls(&[("crm", "{\"id\": 11}")])];
    let going = going(rest, script, vec![json!({"x": 1})]).say("go");
    going.check(Status::Completed, &["model", "crm {\"id\":1}", "model", "crm {\"id\":2}", "model", "model"]);
    assert!(going.last_result().contains("denied by policy"));
    assert_eq!(going.engagement.object(&going.agent)["recent"]["crm"]["inputs"]["id"], json!(2));
}

#[test]
fn a_withheld_output_reaches_nobody() {
    let rest = "capabilities:\n  crm:\n    output_restriction: {assertion: '!recent.crm.outputs.secret'}\nexposes: {all: 'history.crm'}\n";
    let going = going(rest, vec![calls(&[("crm", "{}")])], vec![json!({"secret": true, "marker": "m-4711"})]).say("go");
    going.check(Status::Completed, &["model", "crm {}", "model"]);
    assert!(!format!("{:?}", going.seen).contains("m-4711"));
    assert_eq!(going.engagement.answer().unwrap().1["all"], json!([{"inputs": {}}]));
    assert_eq!(going.engagement.object(&going.agent)["history"]["_total"], json!(1));
}

#[test]
fn results_that_are_not_collected_go_to_the_model_alone() {
    let rest = "capabilities:\n  crm:\n    collect_results: false\n    output_restriction: {assertion: 'recent.crm.outputs.ok'}\n";
    let going = going(rest, vec![calls(&[("crm", "{}")])], vec![json!({"ok": true})]).say("go");
    assert_eq!(going.last_result(), "{\"ok\":true}");
    assert_eq!(going.engagement.object(&going.agent)["history"]["crm"], json!([{"inputs": {}}]));
}

#[test]
fn a_review_stops_everything_until_it_is_decided() {
    let rest = "capabilities:\n  crm:\n    input_restriction: {require_review: owner}\n    output_restriction: {require_review: judge}\n";
    let script = || vec![calls(&[("crm", "{}"), ("crm", "{\"id\": 2}")])];
    let asked = going(rest, script(), vec![json!({"marker": "m-4711"})]).say("go");
    asked.check(Status::AwaitingReview, &["model"]);
    assert_eq!(asked.engagement.pending_review().unwrap().2.reviewer, "o");
    let called = asked.decide(Decision::Approved);
    called.check(Status::AwaitingReview, &["model", "crm {}"]);
    assert_eq!(called.engagement.pending_review().unwrap().2.reviewer, "oagent://judge");
    let withheld = called.decide(Decision::Expired);
    withheld.check(Status::AwaitingReview, &["model", "crm {}"]);
    let done = withheld.decide(Decision::Rejected);
    done.check(Status::Completed, &["model", "crm {}", "model"]);
    assert!(!format!("{:?}", done.seen).contains("m-4711"));
}

#[test]
fn nothing_runs_after_a_failed_guardrail() {
    let rest = "capabilities: {crm: {}}\nguardrails:\n  input: {tool_name: guard, assertion: '!bad'}\n  output: {tool_name: guard, assertion: '!bad'}\n";
    let failed = going(rest, Vec::new(), vec![json!({"bad": true})]).say("hello");
    failed.check(Status::Failed, &["guard {\"text\":\"hello\"}"]);
    assert_eq!(failed.engagement.failure(), Some(Failure::GuardrailFailed));
    let silent = going(rest, vec![says("m-4711")], vec![json!({"bad": false}), json!({"bad": true})]).say("hello");
    silent.check(Status::Failed, &["guard {\"text\":\"hello\"}", "model", "guard {\"text\":\"m-4711\"}"]);
    assert!(silent.engagement.answer().is_none());
    let fine = going(rest, Vec::new(), vec![json!({"bad": false}); 4]).say("one").say("two");
    assert_eq!(fine.performed.iter().filter(|line| line.starts_with("guard")).count(), 4);
    let odd = going(rest, Vec::new(), vec![json!("?")]).say("hello");
    odd.check(Status::Failed, &["guard {\"text\":\"hello\"}"]);
}

#[test]
fn going_round_ends_the_engagement_before_any_call_of_the_batch() {
    let rest = "capabilities: {crm: {}, mail: {}}\nlifespan: {short_circuit: 3}\n";
    let one = || calls(&[("crm", "{}")]);
    let going_on = going(rest, vec![one(), one(), one()], Vec::new()).say("go");
    going_on.check(Status::Failed, &["model", "crm {}", "model", "crm {}", "model"]);
    assert_eq!(going_on.engagement.failure(), Some(Failure::ShortCircuit));
    let batch = going(rest, vec![calls(&[("crm", "{}"), ("crm", "{}"), ("crm", "{}")])], Vec::new()).say("go");
    batch.check(Status::Failed, &["model"]);
    let spoken = going(rest, vec![one(), says("?"), one(), says("?"), one()], Vec::new()).say("a").say("b").say("c");
    assert_eq!(spoken.engagement.status(), Status::Completed);
}

#[test]
fn odd_calls_are_told_apart_and_counted() {
    let rest = "capabilities: {crm: {}}\nlifespan: {short_circuit: 3}\n";
    let script = vec![calls(&[("nothing", "{}")]), calls(&[("crm", "{\"wrong\": 1}")]), calls(&[("crm", "[1]")])];
    let going_on = going(rest, script, Vec::new()).say("go");
    going_on.check(Status::Completed, &["model"; 4]);
    assert_eq!(going_on.engagement.attempts(), ["crm", "crm"]);
    let mut many = going("capabilities: {crm: {}}\n", vec![calls(&[("crm", ""); 51])], Vec::new());
    many.registry.options.limits.calls = 50;
    let many = many.say("go");
    assert_eq!((many.engagement.failure(), many.performed.len()), (Some(Failure::Limit), 1));
}

#[test]
fn the_user_can_be_asked_back_when_the_server_allows_it() {
    let script = || vec![calls(&[("ask_user", "{\"question\": \"which?\"}"), ("crm", "{}")])];
    let refused = going("capabilities: {crm: {}}\n", script(), Vec::new()).say("go");
    refused.check(Status::Completed, &["model", "crm {}", "model"]);
    let mut asks = going("capabilities: {crm: {}}\n", script(), Vec::new());
    asks.registry.options.ask_user = true;
    let asked = asks.say("go");
    asked.check(Status::AwaitingInput, &["model"]);
    assert_eq!(asked.engagement.answer().unwrap().0, "which?");
    let done = asked.say("that one");
    done.check(Status::Completed, &["model", "crm {}", "model"]);
    let told = done
        .seen
        .last()
        .unwrap()
        .iter()
        .filter(|message| matches!(message, Message::Tool { text, .. } if text == "\"that one\""));
    assert_eq!(told.count(), 1);
    assert_eq!(done.seen.last().unwrap().iter().filter(|message| matches!(message, Message::User { .. })).count(), 1);
}

#[test]
fn a_call_that_never_came_back_waits_for_a_person_or_is_made_again() {
    let mut on_its_way = going("capabilities: {crm: {}}\n", Vec::new(), Vec::new());
    for step in [Step::UserSaid { text: "go".to_owned() }, calls(&[("crm", "{}")])] {
        on_its_way.record(step).unwrap();
    }
    on_its_way.record(Step::Attempted { call: 0, capability: "crm".to_owned(), inputs: json!({}) }).unwrap();
    on_its_way.record(Step::Dispatched { call: 0, identity: Identity::User }).unwrap();
    let seen = |going: &Going| next(&going.agent, &going.registry, &going.engagement);
    assert!(matches!(seen(&on_its_way), Next::Wait(Wait::Return { call: 0, idempotent: false, .. })));
    on_its_way.record(Step::OutcomeUnknown { call: 0 }).unwrap();
    assert_eq!(seen(&on_its_way), Next::Wait(Wait::Outcome { call: 0, capability: "crm".to_owned() }));
    assert_eq!(on_its_way.engagement.status(), Status::OutcomeUnknown);
    assert_eq!(on_its_way.engagement.object(&on_its_way.agent)["history"]["_total"], json!(1));
    on_its_way.record(Step::Returned { call: 0, outcome: Outcome::Output(json!({"ok": 1})) }).unwrap();
    on_its_way.go().check(Status::Completed, &["model"]);
}

#[test]
fn credentials_that_are_missing_are_waited_for() {
    let mut waits = going("capabilities: {crm: {}}\n", Vec::new(), Vec::new());
    for step in [Step::UserSaid { text: "go".to_owned() }, calls(&[("crm", "{}")])] {
        waits.record(step).unwrap();
    }
    waits.record(Step::Attempted { call: 0, capability: "crm".to_owned(), inputs: json!({}) }).unwrap();
    waits.record(Step::CredentialsMissing { call: 0 }).unwrap();
    let waits = waits.go();
    waits.check(Status::AwaitingCredentials, &[]);
    let mut arrived = waits;
    arrived.record(Step::CredentialsArrived { call: 0 }).unwrap();
    arrived.go().check(Status::Completed, &["crm {}", "model"]);
}

#[test]
fn words_from_a_tool_do_not_lead_to_a_tool_that_writes() {
    let script = || vec![calls(&[("crm", "{}")]), calls(&[("mail", "{}")])];
    let mut writes = going("capabilities: {crm: {}, mail: {}}\n", script(), Vec::new());
    let mail = Tool { writes: true, ..Tool::new("Sends.", json!({}), Arc::new(Whatever)) };
    let mut registry = Registry::default();
    for (name, tool) in [("crm", Tool::new("Reads.", json!({}), Arc::new(Whatever))), ("mail", mail.clone())] {
        registry.add_tool(&Name::read(name, NameRule::Text).unwrap(), tool).unwrap();
    }
    writes.registry = registry.clone();
    writes.say("go").check(Status::Completed, &["model", "crm {}", "model", "model"]);
    let mut reviewed =
        going("capabilities: {crm: {}, mail: {input_restriction: {require_review: user}}}\n", script(), Vec::new());
    reviewed.registry = registry;
    reviewed
        .say("go")
        .decide(Decision::Approved)
        .check(Status::Completed, &["model", "crm {}", "model", "mail {}", "model"]);
}

#[test]
fn another_version_of_the_document_decides_nothing() {
    let mut other = going("capabilities: {crm: {}}\n", Vec::new(), Vec::new());
    other.agent = agent("capabilities: {mail: {}}\n");
    let other = other.say("go");
    assert_eq!(other.engagement.failure(), Some(Failure::Internal));
}
