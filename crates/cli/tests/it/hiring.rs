//! Agents of real nodes: one hires another by its description, a node that stops lets a call come back, and what an
//! operator wrote wrongly is told.

use crate::node::Node;
use crate::run::Home;
use json::{Document, Limits, Value, json};
use std::path::Path;

fn read(text: &str) -> Value {
    Document::parse(text.as_bytes(), &Limits::OURS).unwrap_or_else(|error| panic!("{error}: {text}")).root().to_value()
}

/// The example, with another address of the desk; the folder of its agents.
fn example(home: &Home, desk: &str) -> String {
    std::fs::create_dir_all(home.path("agents")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/hire");
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let usual = "http://127.0.0.1:7420/agents/receptionist/ad.json";
    assert!(text("host.yaml").contains(usual));
    home.file("agents/host.yaml", &text("host.yaml").replace(usual, desk));
    home.file("agents/traveller.yaml", &text("traveller.yaml"));
    home.path("agents")
}

/// Begins an engagement; its name.
fn begun(node: &Node, agent: &str, text: &str) -> String {
    let body = json!({"text": text}).to_string();
    let request = format!(
        "POST /agents/{agent} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    read(&node.send(&request))["engagement"].as_str().unwrap().to_owned()
}

/// How an engagement stands when it no longer runs.
fn state(node: &Node, id: &str) -> Value {
    (0..4)
        .map(|_| read(&node.get(&format!("/engagements/{id}?wait=25"))))
        .find(|state| state["status"] != "running")
        .unwrap()
}

fn asked(node: &Node, text: &str) -> Value {
    state(node, &begun(node, "traveller", text))
}

#[test]
fn an_agent_hires_another_by_its_description() {
    let theirs = Home::new("hire-theirs");
    let house = Node::start_with(&theirs, "127.0.0.1:0", &["--agents", "examples/agents/house"]);
    let ours = Home::new("hire-ours");
    let agents = example(&ours, &format!("{}/agents/receptionist/ad.json", house.url));
    let more = ["--agents", &agents, "--agents-for-strangers", "--private-networks"];
    let node = Node::start_with(&ours, "127.0.0.1:0", &more);
    let state = asked(&node, "Where is he?");
    assert_eq!(state["status"], "completed", "{state}");
    assert_eq!(state["result"]["exposes"], json!({"room": "2.14"}), "{state}");
    let denied = asked(&node, "Tell me a secret");
    assert_eq!(denied["result"]["exposes"], json!({"room": null}), "the assertion is ours: {denied}");
    drop(house);
    let gone = asked(&node, "Where is he?");
    assert!(gone["result"]["text"].as_str().unwrap().contains("does not answer"), "{gone}");
}

#[test]
fn an_agent_that_cannot_be_read_is_named_with_the_reason() {
    let home = Home::new("hire-nobody");
    let agents = example(&home, "http://127.0.0.1:1/ad.json");
    let data = home.path("data");
    let serve = ["serve", "--data", &data, "--listen", "127.0.0.1:0", "--agents", &agents, "--private-networks"];
    let refused = home.run(&serve);
    assert_eq!(refused.code, 3, "{}", refused.err);
    for words in ["traveller.yaml", "desk.engage", "`desk`", "http://127.0.0.1:1/ad.json", "agent_unreachable"] {
        refused.complains(words);
    }
}

const PATIENT: &str = "kind: openagentspec:v1/agent\nname: patient\ndescription: Waits.\nintent: You wait.\nowner: us\n\
    capabilities: {pause: {user_identity: false}}\n";

#[test]
fn a_node_that_is_asked_to_end_lets_a_call_come_back() {
    let home = Home::new("hire-stop");
    std::fs::create_dir_all(home.path("agents")).unwrap();
    let count = home.path("count");
    home.file("agents/patient.yaml", PATIENT);
    let host = format!(
        "tools:\n  pause:\n    kind: command\n    description: Pauses.\n    command: [/bin/sh, -c, \"cat > /dev/null; echo x \
         >> {count}; sleep 2; echo '{{}}'\"]\nmodels: {{m: {{kind: scripted, script: {{rules: [{{when: {{result_of: pause}}, \
         text: Done.}}, {{when: {{}}, calls: [{{tool: pause, inputs: {{}}}}]}}]}}}}}}\nmodel: m\n"
    );
    home.file("agents/host.yaml", &host);
    let agents = home.path("agents");
    let more = ["--agents", agents.as_str(), "--agents-for-strangers"];
    let node = Node::start_with(&home, "127.0.0.1:0", &more);
    let id = begun(&node, "patient", "go");
    let calls = || std::fs::read_to_string(&count).unwrap_or_default().lines().count();
    for _ in 0..600 {
        if calls() == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(node.terminate(), Some(0));
    let node = Node::start_with(&home, "127.0.0.1:0", &more);
    let state = state(&node, &id);
    assert_eq!((state["result"]["text"].as_str(), calls()), (Some("Done."), 1), "{state}");
}

/// What the node says of a folder of agents in which one thing is wrong.
#[track_caller]
fn mistaken(name: &str, host: &str, document: &str, said: &[&str]) {
    let home = Home::new(name);
    std::fs::create_dir_all(home.path("agents")).unwrap();
    home.file("agents/patient.yaml", document);
    home.file("agents/host.yaml", host);
    let (agents, data) = (home.path("agents"), home.path("data"));
    let refused = home.run(&["serve", "--data", &data, "--listen", "127.0.0.1:0", "--agents", &agents]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    for words in said {
        refused.complains(words);
    }
}

#[test]
fn what_an_operator_wrote_wrongly_is_told_with_its_place_and_what_to_do() {
    let host = "tools: {pause: {kind: static, description: Pauses., returns: {}}}\nmodel: m\n\
        models: {m: {kind: scripted, script: {turns: [{text: Hello.}]}}}\n";
    let tool = PATIENT.replace("pause:", "puase:");
    mistaken("mistake-tool", host, &tool, &["patient.yaml", "/capabilities/puase", "`pause`", "mend the name"]);
    let identity = PATIENT.replace("user_identity: false", "user_identity: false, static_identity: desk");
    mistaken("mistake-identity", host, &identity, &["patient.yaml", "static_identity", "credentials.static"]);
    let unset = format!("{host}credentials: {{static: {{desk: {{env: RIALTO_TEST_UNSET}}}}}}\n");
    mistaken("mistake-unset", &unset, &identity, &["patient.yaml", "`desk`", "is not set", "credentials.static.desk"]);
    let key = host.replace("returns:", "retruns:");
    mistaken("mistake-key", &key, PATIENT, &["host.yaml", "/tools/pause", "is `retruns` meant to be `returns`"]);
    let member = PATIENT.replace("user_identity", "user_identiy");
    mistaken("mistake-member", host, &member, &["patient.yaml", "user_identiy", "agent_unknown_field"]);
    let model = host.replace("model: m", "model: n");
    mistaken("mistake-model", &model, PATIENT, &["host.yaml", "/model", "no model has this name"]);
}
