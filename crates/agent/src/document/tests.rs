//! Documents that are taken, documents that are not, and the line that is named.

use super::*;

const GOOD: &str = r#"
kind: "openagentspec:v1/agent"
name: hr-agent
description: Answers questions about leave.
intent: You help people to plan their leave.
owner: people-team
x-colour: blue
capabilities:
  search-faqs:
    collect_results: true
    input_restriction:
      assertion: 'recent.search-faqs.inputs.query.size() < 100 && history._total < 10'
    output_restriction:
      require_review: owner
  oagent://helper:
  oagent://far.example/agents/helper: {user_identity: false, static_identity: desk}
guardrails:
  input:
    tool_name: moderation
    assertion: flagged == false
exposes:
  links: history.search-faqs.map(call, call.outputs.link)
lifespan:
  retain_memory: false
  short_circuit: 3
"#;

fn read(text: &str) -> Result<Agent, Vec<Finding>> {
    Agent::read(text.as_bytes())
}

#[track_caller]
fn check(change: (&str, &str), code: &str, at: &str, position: (usize, usize)) {
    let text = GOOD.replacen(change.0, change.1, 1);
    assert_ne!(text, GOOD);
    let found = read(&text).unwrap_err();
    let found: Vec<_> =
        found.iter().map(|finding| (finding.code.name(), finding.at.as_str(), finding.position)).collect();
    assert_eq!(found, [(code, at, Some(position))], "{text}");
}

#[test]
fn a_document_is_read_into_what_it_says() {
    let agent = read(GOOD).unwrap();
    assert_eq!((agent.name.as_str(), agent.owner.as_str()), ("hr-agent", "people-team"));
    let keys: Vec<&str> = agent.capabilities.iter().map(|capability| capability.key.as_str()).collect();
    assert_eq!(keys, ["oagent://far.example/agents/helper", "helper", "search-faqs"]);
    let remote = &agent.capabilities[0];
    assert_eq!((remote.user_identity, remote.static_identity.as_deref()), (false, Some("desk")));
    let plain = &agent.capabilities[1];
    assert!(plain.collect_results && plain.user_identity && plain.input.assertion.is_none());
    assert_eq!(agent.capabilities[2].output.review, Some(Reviewer::Owner));
    assert_eq!(agent.lifespan, Lifespan { retain_memory: false, short_circuit: Some(3) });
    assert_eq!(agent.input_guardrail.as_ref().unwrap().tool.as_str(), "moderation");
    assert!(agent.output_guardrail.is_none());
    assert_eq!((agent.source(), agent.digest().len()), (GOOD.as_bytes(), 64));
    assert_eq!(agent.warnings.len(), 1, "{:?}", agent.warnings);
    assert_eq!(agent.warnings[0].code, Code::SharedName);
}

#[test]
fn what_is_absent_has_the_meaning_of_the_text() {
    let agent = read("kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\n").unwrap();
    assert!(agent.capabilities.is_empty() && agent.exposes.is_empty() && agent.warnings.is_empty());
    assert_eq!(agent.lifespan, Lifespan { retain_memory: true, short_circuit: None });
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    check(("\"openagentspec:v1/agent\"", "openagentspec:v2/agent"), "agent_kind", "/kind", (2, 7));
    check(("name: hr-agent", "name: HR"), "invalid_name", "/name", (3, 7));
    check(("owner: people-team", "owner: 7"), "agent_field_type", "/owner", (6, 8));
    check(("owner: people-team", "owner: ''"), "agent_missing_field", "/owner", (6, 8));
    check(("x-colour", "colour"), "agent_unknown_field", "/colour", (7, 1));
    check(("collect_results", "collects"), "agent_unknown_field", "/capabilities/search-faqs/collects", (10, 5));
    check(
        ("collect_results: true", "collect_results: yes"),
        "agent_field_type",
        "/capabilities/search-faqs/collect_results",
        (10, 22),
    );
    check(("oagent://helper:", "oagent://HELPER:"), "invalid_reference", "/capabilities/oagent:~1~1HELPER", (15, 3));
    check(
        ("size() < 100", "size( < 100"),
        "assertion_syntax",
        "/capabilities/search-faqs/input_restriction/assertion",
        (12, 57),
    );
    check(
        ("tool_name: moderation", "tool_name: oagent://moderation"),
        "unknown_guardrail",
        "/guardrails/input/tool_name",
        (19, 16),
    );
    check(("    assertion: flagged == false\n", ""), "agent_missing_field", "/guardrails/input", (19, 5));
    check(("links:", "text:"), "exposed_key", "/exposes/text", (22, 9));
    check(("short_circuit: 3", "short_circuit: 0"), "short_circuit_range", "/lifespan/short_circuit", (25, 18));
    check(("short_circuit: 3", "short_circuit: 2.5"), "agent_field_type", "/lifespan/short_circuit", (25, 18));
}

#[test]
fn a_capability_that_stands_twice_is_refused_with_its_line() {
    let text = GOOD.replace("guardrails:", "  search-faqs: {}\nguardrails:");
    let found = read(&text).unwrap_err();
    assert_eq!((found[0].code.name(), found[0].position), ("yaml_duplicate_key", Some((17, 3))));
    for (text, code) in [
        ("a: &x 1", "yaml_alias_not_allowed"),
        ("a: !!str 1", "yaml_tag_not_allowed"),
        ("a: 1\n---\nb: 1", "yaml_many_documents"),
        ("a: [", "yaml_syntax"),
        ("- a", "agent_field_type"),
    ] {
        assert_eq!(read(text).unwrap_err()[0].code.name(), code, "{text}");
    }
    let large = format!("{GOOD}x-more: {}", "x".repeat(256 * 1024));
    assert_eq!(read(&large).unwrap_err()[0].code.name(), "json_too_large");
    let deep = format!("x-a: {}{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(read(&deep).unwrap_err()[0].code.name(), "json_too_deep");
}

#[test]
fn several_mistakes_are_told_at_once() {
    let found = read("kind: x\nname: A\n").unwrap_err();
    let codes: Vec<&str> = found.iter().map(|finding| finding.code.name()).collect();
    assert_eq!(
        codes,
        ["agent_kind", "invalid_name", "agent_missing_field", "agent_missing_field", "agent_missing_field"]
    );
}

#[test]
fn too_many_capabilities_are_refused() {
    let text = |count: usize| {
        let lines: String = (0..count).map(|number| format!("  t{number}: {{}}\n")).collect();
        format!(
            "kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\ncapabilities:\n{lines}"
        )
    };
    assert!(read(&text(128)).is_ok());
    let found = read(&text(129)).unwrap_err();
    assert_eq!((found[0].code.name(), found[0].limit.as_ref().unwrap().max), ("agent_limit", 128));
}

#[test]
fn a_mistake_inside_an_assertion_is_found_where_it_stands() {
    let base = "kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\nexposes:\n";
    for (field, position) in [
        ("  x: recent.a.[0] ==\n", (7, 21)),
        ("  x: \"1 + + 2\"\n", (7, 11)),
        ("  x: |\n    1 ==\n      + 2\n", (9, 7)),
        ("  x: >-\n    1 ==\n    + 2\n", (8, 5)),
    ] {
        let found = read(&format!("{base}{field}")).unwrap_err();
        assert_eq!((found[0].code.name(), found[0].position), ("assertion_syntax", Some(position)), "{field}");
    }
}

#[test]
fn assertions_that_speak_of_what_is_not_there_are_warned_about() {
    let text = |assertion: &str| {
        format!(
            "kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\ncapabilities:\n  \
             crm: {{collect_results: false, output_restriction: {{assertion: 'recent.crm.outputs.ok'}}}}\n  mail-out:\n    \
             input_restriction: {{assertion: '{assertion}'}}\n"
        )
    };
    for (assertion, code) in [
        ("history._total < 3 && recent._name == user.id && started_at > timestamp(0)", None),
        ("history.crm.all(c, c.inputs.id > 0) && type(1) == int", None),
        ("now > started_at", Some("assertion_unknown_variable")),
        ("inputs.x == 1", Some("assertion_unknown_variable")),
        ("recent.mail.inputs.x == 1", Some("assertion_unknown_capability")),
        ("recent[\"mail-in\"].inputs.x == 1", Some("assertion_unknown_capability")),
        ("recent.crm.outputs.x == 1", Some("assertion_not_collected")),
        ("history.crm.exists(c, c.outputs.x == 1)", Some("assertion_not_collected")),
        ("history.crm.[0].?outputs.orValue(1) == 1", Some("assertion_not_collected")),
        ("history._list.exists(x, x == recent._name)", None),
    ] {
        let agent = read(&text(assertion)).unwrap();
        let codes: Vec<&str> = agent.warnings.iter().map(|finding| finding.code.name()).collect();
        assert_eq!(codes, code.into_iter().collect::<Vec<_>>(), "{assertion}");
    }
}

#[test]
fn names_that_read_two_ways_are_warned_about() {
    let base = "kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\n";
    for (rest, code) in [
        ("capabilities: {crm: {}, crm.outputs: {}}", "name_ambiguous"),
        ("capabilities: {x: {}, 'oagent://x': {}}", "name_shared"),
        ("capabilities: {a..b: {}}", "name_labels"),
        ("lifespan: {short_circuit: 1}", "short_circuit_forbids_all"),
    ] {
        let agent = read(&format!("{base}{rest}\n")).unwrap();
        assert_eq!(agent.warnings[0].code.name(), code, "{rest}");
    }
    let agent = read(&base.replace("An a.", "You are an a.").replace("You a.", "I am an a.")).unwrap();
    assert_eq!(agent.warnings.len(), 2);
}
