//! What an operator allows engagements beyond the text, or less, in `host.yaml` of a real node; and what whoever decides
//! about a call is shown of it.

use crate::node::Node;
use crate::run::Home;
use json::{Document, Limits, Value, json};

const HOST: &str = r#"
tools: {look: {kind: static, description: Looks., returns: {found: "left\u202eright\u009bthere"}}}
credentials: {static: {desk: {env: DESK_TOKEN}}}
model: m
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: ask_user}, text: "You chose {result}."}
        - {when: {result_of: look, failed: true}, text: "I may not."}
        - {when: {result_of: look}, text: "Found."}
        - {when: {contains: look}, calls: [{tool: look, inputs: {where: "up\u202edown"}}]}
        - {when: {contains: choose, offered: ask_user}, calls: [{tool: ask_user, inputs: {question: "Which one?"}}]}
        - {when: {}, text: "I cannot ask."}
"#;

/// The agents of these tests: one without tools, one that may not, one that lends its identity, one that is reviewed.
const AGENTS: [(&str, &str); 4] = [
    ("asker", "x-note: It has no tools."),
    ("strict", "capabilities: {look: {user_identity: false, input_restriction: {assertion: 'false'}}}"),
    ("desk", "capabilities: {look: {user_identity: false, static_identity: desk}}"),
    (
        "reviewed",
        "capabilities: {look: {user_identity: false, output_restriction: {require_review: owner}}}\n\
         exposes: {found: recent.look.outputs.found}",
    ),
];

/// The folder of the agents, whose operator also says this.
fn agents(home: &Home, more: &str) -> String {
    std::fs::create_dir_all(home.path("agents")).unwrap();
    home.file("agents/host.yaml", &format!("{HOST}{more}"));
    for (name, lines) in AGENTS {
        let text = format!(
            "kind: openagentspec:v1/agent\nname: {name}\ndescription: Serves.\nintent: You serve.\nowner: us\n{lines}\n"
        );
        home.file(&format!("agents/{name}.yaml"), &text);
    }
    home.path("agents")
}

fn started(home: &Home, more: &str) -> Node {
    let agents = agents(home, more);
    let listen = ["--agents", agents.as_str(), "--agents-for-strangers"];
    Node::start_in(home, &[("DESK_TOKEN", "marker-5f2d")], "127.0.0.1:0", &listen)
}

fn read(text: &str) -> Value {
    Document::parse(text.as_bytes(), &Limits::OURS).unwrap_or_else(|error| panic!("{error}: {text}")).root().to_value()
}

fn post(node: &Node, path: &str, text: &str) -> Value {
    let body = json!({"text": text}).to_string();
    read(&node.send(&format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )))
}

fn state(node: &Node, id: &str) -> Value {
    read(&node.get(&format!("/engagements/{id}?wait=25")))
}

/// Says something to an agent; how it stands then.
fn said(node: &Node, agent: &str, text: &str) -> Value {
    let begun = post(node, &format!("/agents/{agent}"), text);
    match begun["engagement"].as_str() {
        Some(id) => state(node, id),
        None => begun,
    }
}

#[test]
fn a_model_asks_back_where_the_operator_lets_it() {
    let home = Home::new("allow-ask");
    let node = started(&home, "engagements: {ask_user: true}\n");
    let waits = said(&node, "asker", "choose");
    assert_eq!(waits["status"], "awaiting-input", "{waits}");
    assert!(waits.to_string().contains("Which one?"), "{waits}");
    let id = waits["id"].as_str().unwrap();
    post(&node, &format!("/engagements/{id}/messages"), "The red one");
    let done = state(&node, id);
    assert_eq!(done["result"]["text"], "You chose The red one.", "{done}");
    drop(node);
    let silent = said(&started(&Home::new("allow-ask-not"), ""), "asker", "choose");
    assert_eq!(silent["result"]["text"], "I cannot ask.", "{silent}");

    let file = home.path("agents/asker.yaml");
    let ran = home.run_with(&[("DESK_TOKEN", "x")], "choose\nThe red one\n", &["agent", "run", &file]).exits(0);
    ran.says("Which one?").says("You chose The red one.");
}

#[test]
fn a_denial_ends_an_engagement_where_the_operator_says_so() {
    let goes_on = said(&started(&Home::new("allow-denial-not"), ""), "strict", "look");
    assert_eq!(goes_on["result"]["text"], "I may not.", "{goes_on}");
    let ended = said(&started(&Home::new("allow-denial"), "engagements: {denial_ends: true}\n"), "strict", "look");
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("call_denied")), "{ended}");
}

#[test]
fn strangers_are_lent_an_identity_where_the_operator_says_so() {
    let refused = said(&started(&Home::new("allow-lend-not"), ""), "desk", "look");
    assert!(refused.to_string().contains("authentication_required"), "{refused}");
    let lent = said(&started(&Home::new("allow-lend"), "engagements: {lends_to_strangers: true}\n"), "desk", "look");
    assert_eq!(lent["result"]["text"], "Found.", "{lent}");
}

/// Whether a text has something in it that a terminal would act upon or a reader not see.
fn deceives(text: &str) -> bool {
    text.contains(['\u{202e}', '\u{9b}'])
}

const SHOWN: &str = r#"look {"where":"up\u202edown"} gave {"found":"left\u202eright\u009bthere"}"#;

#[test]
fn whoever_decides_about_an_output_is_shown_it_and_nothing_that_deceives() {
    let home = Home::new("allow-output");
    agents(&home, "");
    let file = home.path("agents/reviewed.yaml");
    let run = |answer: &str| {
        home.run_with(&[("DESK_TOKEN", "marker-5f2d")], &format!("look\n{answer}\n"), &["agent", "run", &file]).exits(0)
    };
    let agreed = run("y");
    agreed.complains(SHOWN).says("Found.").says(r"left\u202eright\u009bthere");
    assert!(!deceives(&agreed.out) && !deceives(&agreed.err), "{}{}", agreed.out, agreed.err);
    run("n").complains(SHOWN).complains("output");
    run("n").says("I may not.");
}

#[test]
fn a_reviewer_rejects_what_was_shown_and_it_is_withheld() {
    let home = Home::new("allow-reject");
    home.run(&["keys", "new"]).exits(0);
    let key = home.run(&["keys", "show", "--json"]).exits(0).json();
    agents(&home, "");
    home.file("agents/people.yaml", &format!("- {{did: {}, id: us}}\n", key["did"].as_str().unwrap()));
    let node = started(&home, "");
    let waits = said(&node, "reviewed", "look");
    assert_eq!((&waits["status"], &waits["review"]["stage"]), (&json!("awaiting-review"), &json!("output")), "{waits}");
    let at = |words: &[&str]| home.run(&[words, &["--to", node.url.as_str()]].concat());
    let listed = at(&["reviews", "list"]).exits(0);
    let flat: String = listed.out.split_whitespace().collect();
    assert!(flat.contains(&SHOWN.split_whitespace().collect::<String>()), "{}", listed.out);
    assert!(!deceives(&listed.out), "{}", listed.out);
    let review = waits["review"]["id"].as_str().unwrap();
    at(&["reviews", "reject", "nothing"]).exits(1).complains("not the beginning of exactly one review");
    at(&["reviews", "reject", review, "--reason", "not for them"]).exits(0).says("rejected look of reviewed");
    let done = state(&node, waits["id"].as_str().unwrap());
    assert_eq!(done["result"], json!({"text": "I may not.", "exposes": {"found": null}}), "{done}");
    at(&["reviews", "reject", review]).exits(1);
    at(&["reviews", "list"]).exits(0).says("nothing waits");
}
