//! Agents that a person talks to in the terminal, and that a real node hosts: the examples, as the documents say it.

#[path = "../../../host/tests/it/packages.rs"]
#[expect(dead_code, reason = "servers of npm are for the tests that it was written for")]
mod packages;

use crate::node::{Node, stock};
use crate::run::Home;
use crate::serving::pem;
use json::{Document, Limits, Value, json};
use std::path::Path;

/// What the agent of an example says to these lines; the steps as JSON.
fn talk(home: &Home, agent: &str, lines: &str, more: &[&str]) -> Vec<Value> {
    let file = format!("examples/agents/house/{agent}.yaml");
    let ran = home.run_with(&[], lines, &[&["agent", "run", &file, "--json"], more].concat());
    let read = |line: &str| Document::parse(line.as_bytes(), &Limits::OURS).unwrap().root().to_value();
    assert!(ran.code <= 1, "{}{}", ran.out, ran.err);
    ran.out.lines().map(read).collect()
}

fn answers(steps: &[Value]) -> Vec<String> {
    let answered = steps.iter().filter(|step| step["step"] == "answered");
    answered.map(|step| step["text"].as_str().unwrap().to_owned()).collect()
}

fn has(steps: &[Value], name: &str) -> bool {
    steps.iter().any(|step| step["step"] == name)
}

#[test]
fn the_receptionist_looks_up_withholds_and_is_guarded() {
    let home = Home::new("receptionist");
    let steps = talk(&home, "receptionist", "Where is Moretti?\nAnd Zanon?\nAnd Rossi?\n", &[]);
    let said = answers(&steps);
    assert!(said[0].contains("2.14"), "{said:?}");
    assert_eq!(said[1], "I am sorry, I may not tell you about that person.");
    assert_eq!(said.len(), 3);
    assert!(has(&steps, "withheld"));
    let steps = talk(&home, "receptionist", "What is the number of the director?\n", &[]);
    let last = steps.last().unwrap();
    assert_eq!((last["step"].as_str(), last["failure"].as_str()), (Some("failed"), Some("guardrail_failed")));
    let shown = home.run_with(&[], "Where is Moretti?\n", &["agent", "run", "examples/agents/house/receptionist.yaml"]);
    shown.exits(0).says("2.14");
}

#[test]
fn the_correspondent_sends_what_its_owner_read_and_to_nobody_else() {
    let home = Home::new("correspondent");
    let steps = talk(&home, "correspondent", "Write to the desk\ny\n", &[]);
    assert_eq!(answers(&steps), ["The letter is sent."]);
    assert!(has(&steps, "review_asked") && has(&steps, "dispatched"));
    let steps = talk(&home, "correspondent", "Write to the desk\nn\n", &[]);
    assert_eq!(answers(&steps), ["The letter was not sent."]);
    assert!(!has(&steps, "dispatched"));
    let steps = talk(&home, "correspondent", "Write to a stranger\n", &[]);
    assert_eq!(answers(&steps), ["The letter was not sent."]);
    assert!(has(&steps, "denied") && !has(&steps, "review_asked") && !has(&steps, "dispatched"));
}

#[test]
fn a_person_is_asked_what_an_agent_that_was_asked_waits_for() {
    let home = Home::new("delegating");
    let document = |name: &str, rest: &str| {
        format!(
            "kind: openagentspec:v1/agent\nname: {name}\ndescription: Serves.\nintent: You serve.\nowner: boss\n{rest}"
        )
    };
    home.file(
        "host.yaml",
        "tools: {post: {kind: static, description: Posts., returns: {}}}\n\
         models: {m: {kind: scripted, script: {rules: [{when: {result_of: clerk}, text: \"{result}\"}, \
         {when: {result_of: post, failed: true}, text: Kept.}, {when: {result_of: post}, text: Sent.}, \
         {when: {offered: clerk}, calls: [{tool: clerk, inputs: {text: go}}]}, \
         {when: {contains: Judge}, text: Well.}, {when: {offered: post}, calls: [{tool: post, inputs: {}}]}]}}}\nmodel: m\n",
    );
    let head = home.file("head.yaml", &document("head", "capabilities: {clerk: {}}\n"));
    let asks = |whom: &str| {
        format!("capabilities: {{post: {{user_identity: false, input_restriction: {{require_review: {whom}}}}}}}\n")
    };
    home.file("clerk.yaml", &document("clerk", &asks("owner")));
    // An agent that reviews is at work, and nobody else is asked meanwhile.
    let judged = home.file("judged.yaml", &document("judged", &asks("judge")));
    home.file("judge.yaml", &document("judge", "exposes: {approved: 'true'}\n"));
    for (agent, lines, said) in [(&head, "go\ny\n", "Sent."), (&head, "go\nn\n", "Kept."), (&judged, "go\n", "Sent.")] {
        home.run_with(&[], lines, &["agent", "run", agent]).exits(0).says(said);
    }
    // What an agent does that was asked stands below the call, and what came of it after.
    let shown = home.run_with(&[], "go\ny\n", &["agent", "run", &head]).exits(0);
    let places =
        ["\n  call 0 is made\n    clerk:\n      the model", "\n      call 0 is made\n", "\n      it says: Sent.\n"];
    let ends = "\n  call 0 comes back\n";
    let mut from = 0;
    for words in places.into_iter().chain([ends]) {
        let at = shown.out[from..].find(words).unwrap_or_else(|| panic!("{words:?} is not there:\n{}", shown.out));
        from += at + words.len() - 1;
    }
    let judged = home.run_with(&[], "go\n", &["agent", "run", &judged]).exits(0);
    judged.says("\n    judge:\n").says("\n      it says: Well.\n  the review of call 0 is approved\n");
    // Lines of JSON are one journal.
    let lines = home.run_with(&[], "go\ny\n", &["agent", "run", &head, "--json"]).exits(0);
    assert_eq!(lines.out.matches("\"begun\"").count(), 1, "{}", lines.out);
}

#[test]
fn the_buyer_procures_through_an_intent_within_its_budget() {
    let home = Home::new("buyer");
    stock(&home);
    let data = home.path("data");
    let steps = talk(&home, "buyer", "My parcel goes to Lyon\n", &["--data", &data]);
    assert_eq!(answers(&steps), ["The offers that fit are exposed beside this, the best one first."]);
    let exposed = steps.iter().find(|step| step["step"] == "answered").unwrap();
    let offers = exposed["exposes"]["offers"].as_array().unwrap();
    assert!(offers[0]["candidate_id"].as_str().unwrap().starts_with("urn:oap:offer:"), "{offers:?}");
    let steps = talk(&home, "buyer", "Buy me a palace\n", &["--data", &data]);
    assert_eq!(answers(&steps), ["I may not ask for that."]);
    assert!(!has(&steps, "dispatched"));
    let steps = talk(&Home::new("empty-market"), "buyer", "My parcel goes to Lyon\n", &[]);
    assert_eq!(answers(&steps), ["Nobody offers that now."]);
}

#[test]
fn the_chief_has_others_do_it() {
    let steps = talk(&Home::new("chief"), "chief", "Where is Moretti?\n", &[]);
    assert!(answers(&steps)[0].contains("2.14"), "{steps:?}");
    let answered = steps.iter().find(|step| step["step"] == "answered").unwrap();
    assert_eq!(answered["exposes"], json!({"room": "2.14"}));
}

#[test]
fn the_timekeeper_asks_a_real_server_and_only_about_europe() {
    let program = packages::python("mcp-server-time", packages::TIME);
    let folder = program.parent().unwrap().to_str().unwrap();
    let path = format!("{folder}:/usr/local/bin:/usr/bin:/bin");
    let home = Home::new("timekeeper");
    let arguments = ["agent", "run", "examples/agents/time/timekeeper.yaml", "--json"];
    let ran = home.run_with(&[("PATH", &path)], "What time is it in Rome?\nAnd in Tokyo?\n", &arguments).exits(0);
    let steps: Vec<Value> = ran.out.lines().map(read).collect();
    let said = answers(&steps);
    assert!(said[0].starts_with("It is ") && said[0].contains("Europe/Rome"), "{said:?}");
    let answered = steps.iter().find(|step| step["step"] == "answered").unwrap();
    assert!(answered["exposes"]["datetime"].as_str().unwrap().starts_with("20"), "{answered}");
    assert_eq!(said[1], "I may not say what time it is there.");
    assert!(has(&steps, "denied"));
}

#[test]
fn the_leave_desk_files_for_whoever_asks_once_its_owner_agrees() {
    let home = Home::new("leave");
    let run = |lines: &str| {
        let arguments = ["agent", "run", "examples/agents/leave/leave.yaml", "--json"];
        let ran = home.run_with(&[], lines, &arguments);
        ran.out.lines().map(read).collect::<Vec<Value>>()
    };
    let steps = run("How much leave is there?\n");
    assert_eq!(answers(&steps), ["Everybody has 30 days of leave a year."], "{steps:?}");
    let steps = run("Please file ten days\ny\n");
    assert_eq!(answers(&steps), ["Your request is L-17."], "{steps:?}");
    let answered = steps.iter().find(|step| step["step"] == "answered").unwrap();
    assert_eq!(answered["exposes"], json!({"requests": ["L-17"]}));
    assert_eq!(answers(&run("Please file ten days\nn\n")), ["I may not file that."]);
    let steps = run("Please file ten days for Bob\n");
    assert_eq!(answers(&steps), ["I may not file that."]);
    assert!(has(&steps, "denied") && !has(&steps, "review_asked"), "{steps:?}");
    let steps = run("What are the salaries?\n");
    assert!(has(&steps, "withheld") && answers(&steps) == ["I may not tell you that."], "{steps:?}");
    assert_eq!(run("My password is hunter2\n").last().unwrap()["failure"], "guardrail_failed");
}

/// Requirements S1 to S9 of the text's section on servers, at the real binary.
#[test]
fn a_node_hosts_agents_as_the_text_says() {
    let home = Home::new("hosting");
    let node = Node::start_with(&home, "127.0.0.1:0", &["--agents", "examples/agents/house", "--agents-for-strangers"]);
    for name in ["buyer", "chief", "correspondent", "receptionist"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/house");
        let written = std::fs::read_to_string(root.join(format!("{name}.yaml"))).unwrap();
        assert_eq!(node.get(&format!("/agents/{name}")), written, "S1, S4: byte for byte");
        let to = ["--to", &node.url];
        assert_eq!(home.run(&[&["agent", "show", name], &to[..]].concat()).exits(0).out, written);
    }
    home.run(&["agent", "list", "--to", &node.url]).exits(0).says("receptionist");
    let post = |path: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        read(&node.send(&request))
    };
    let mut begun = Vec::new();
    for _ in 0..2 {
        let told = post("/agents/receptionist", r#"{"text": "Where is Moretti?"}"#);
        let id = told["engagement"].as_str().unwrap().to_owned();
        assert!(told["location"].as_str().unwrap().ends_with(&format!("/engagements/{id}")), "S9");
        begun.push(id);
    }
    assert_ne!(begun[0], begun[1], "S8: each is new");
    for id in &begun {
        let state = read(&node.get(&format!("/engagements/{id}?wait=20")));
        assert_eq!(state["status"], "completed", "{state}");
        assert_eq!(state["result"]["exposes"], json!({"room": "2.14"}));
    }
    let called = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "receptionist", "arguments": {"text": "Where is Moretti?"}}});
    assert!(post("/mcp", &called.to_string()).to_string().contains("2.14"));
    let described = node.get("/agents/receptionist/ad.json");
    assert!(described.contains("Tells visitors where people of the house are"), "{described}");
    let question = home.file("engage.json", WHO_ENGAGES);
    let asked = home.run(&["ask", &question, "--to", &node.url]).exits(0);
    for name in ["buyer", "chief", "correspondent", "receptionist"] {
        asked.says(name);
    }
}

/// Everybody who can be engaged.
const WHO_ENGAGES: &str = r#"{"category": "discovery", "resolution_policy": "full_set",
    "constraints": {"all_of": [
        {"path": "/record_type", "operator": "eq", "value": "agent_description"},
        {"path": "/interfaces/*/operations/*/name", "operator": "eq", "value": "engage"}]},
    "projection": {"include": ["/name", "/url"]}}"#;

#[test]
fn an_agent_has_an_agent_of_another_server_do_it() {
    let theirs = Home::new("far-theirs");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = theirs.file("chain.pem", &pem("CERTIFICATE", made.cert.der()));
    let key = theirs.file("key.pem", &pem("PRIVATE KEY", &made.signing_key.serialize_der()));
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("https://localhost:{port}");
    let tls = ["--public-url", &url, "--certificate", &certificate, "--certificate-key", &key];
    let agents = ["--agents", "examples/agents/house", "--agents-for-strangers"];
    let node = Node::start_with(&theirs, &format!("127.0.0.1:{port}"), &[&tls[..], &agents].concat());

    let ours = Home::new("far-ours");
    std::fs::create_dir_all(ours.path("agents/scripts")).unwrap();
    let reference = format!("oagent://localhost:{port}/agents/receptionist");
    let agent = ours.file(
        "agents/far.yaml",
        &format!(
            "kind: openagentspec:v1/agent\nname: far\ndescription: Asks a receptionist far away.\n\
         intent: You ask the receptionist.\nowner: us\ncapabilities:\n  {reference}: {{user_identity: false}}\n\
         exposes: {{room: recent.receptionist.outputs.room}}\n"
        ),
    );
    ours.file("agents/host.yaml", "models: {m: {kind: scripted, file: scripts/far.yaml}}\nagents: {far: {model: m}}\n");
    ours.file(
        "agents/scripts/far.yaml",
        "rules:\n  - {when: {result_of: receptionist}, text: 'It says: {result}'}\n\
        \x20 - {when: {turn: 0}, calls: [{tool: receptionist, inputs: {text: 'Where is Moretti?'}}]}\n",
    );
    let run = |certificate: &str| {
        ours.run_with(&[("SSL_CERT_FILE", certificate)], "Where?\n", &["agent", "run", &agent, "--json"])
    };
    let ran = run(&certificate).exits(0);
    let steps: Vec<Value> = ran.out.lines().map(read).collect();
    assert!(answers(&steps)[0].contains("2.14"), "{steps:?}");
    assert_eq!(steps.iter().find(|step| step["step"] == "answered").unwrap()["exposes"], json!({"room": "2.14"}));
    drop(node);
    let gone = run(&certificate);
    assert_ne!(gone.code, 0);
    gone.complains(&reference);
}

fn read(text: &str) -> Value {
    Document::parse(text.as_bytes(), &Limits::OURS).unwrap_or_else(|error| panic!("{error}: {text}")).root().to_value()
}

#[test]
fn a_reviewer_decides_at_the_command_line() {
    let home = Home::new("reviewer");
    home.run(&["keys", "new"]).exits(0);
    let key = home.run(&["keys", "show", "--json"]).exits(0).json();
    std::fs::create_dir_all(home.path("agents")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/house");
    for name in ["correspondent.yaml", "receptionist.yaml", "buyer.yaml", "chief.yaml"] {
        std::fs::copy(root.join(name), home.path(&format!("agents/{name}"))).unwrap();
    }
    let people = format!("- {{did: {}, id: house-keeper}}\n", key["did"].as_str().unwrap());
    home.file("agents/people.yaml", &people);
    let config = root.join("host.yaml");
    let (agents, config) = (home.path("agents"), config.to_str().unwrap());
    let more = ["--agents", &agents, "--agents-config", config, "--agents-for-strangers"];
    let node = Node::start_with(&home, "127.0.0.1:0", &more);
    let body = r#"{"text": "Write"}"#;
    let request = format!(
        "POST /agents/correspondent HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let id = read(&node.send(&request))["engagement"].as_str().unwrap().to_owned();
    let state = read(&node.get(&format!("/engagements/{id}?wait=20")));
    assert_eq!(state["status"], "awaiting-review", "{state}");
    let to = ["--to", node.url.as_str()];
    home.run(&[&["reviews", "list"], &to[..]].concat()).exits(0).says("desk@house.example");
    let review = state["review"]["id"].as_str().unwrap();
    home.run(&[&["reviews", "approve", "nothing"], &to[..]].concat()).exits(1);
    home.run(&[&["reviews", "approve", review, "--reason", "fine"], &to[..]].concat()).exits(0).says("approved");
    let state = read(&node.get(&format!("/engagements/{id}?wait=20")));
    assert_eq!(state["result"]["text"], "The letter is sent.", "{state}");
    home.run(&[&["reviews", "list"], &to[..]].concat()).exits(0).says("nothing waits");
}

#[test]
fn a_folder_is_linted_as_it_is_hosted() {
    let home = Home::new("lint-folder");
    home.run(&["agent", "lint", "examples/agents/house"]).exits(0).says("4 documents: nothing to say");
    std::fs::create_dir_all(home.path("agents")).unwrap();
    home.file("agents/host.yaml", "tools: {}\n");
    home.file("agents/wrong.yaml", "kind: openagentspec:v1/agent\nname: wrong\n");
    let agents = home.path("agents");
    home.run(&["agent", "lint", &agents]).exits(1).says("wrong.yaml").says("1 document:");
}
