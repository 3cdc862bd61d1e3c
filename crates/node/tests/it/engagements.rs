//! Engagements with hosted agents: begun, performed, reviewed, interrupted and gone on with.

use agent::{Begun, Identity, ProposedCall, Step, Usage, User};
use host::Configuration;
use json::{Value, json};
use node::{Config, Decided, Engagements, Error, Hosting, Node, Person, Settled};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Engaged, Journal, Noted, Reached};
use tempfile::TempDir;

/// A node with a folder.
pub(crate) struct House {
    pub(crate) folder: TempDir,
    pub(crate) node: Arc<Node>,
}

impl House {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data: folder.path().join("node"), ..Config::default() };
        let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
        Self { folder, node }
    }
}

pub(crate) const USER: &str = "did:key:z6MkuserAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
pub(crate) const OWNER: &str = "did:key:z6MkownerAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
pub(crate) const OTHER: &str = "did:key:z6MkotherAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// An agent with these further lines.
pub(crate) fn agent(name: &str, lines: &str) -> (String, Vec<u8>) {
    let text = format!(
        "kind: openagentspec:v1/agent\nname: {name}\ndescription: Serves as an example.\nintent: You do what is asked.\nowner: boss\n{lines}"
    );
    (format!("{name}.yaml"), text.into_bytes())
}

/// Tools that count their calls in a file, and models that say what they are told.
fn configuration(folder: &Path, models: &str) -> Configuration {
    let count = folder.join("count");
    let slow = folder.join("slow");
    let text = format!(
        r#"
tools:
  lookup: {{kind: static, description: Looks up., returns: {{name: Ada}}, idempotent: true}}
  note:
    kind: command
    description: Notes.
    command: ["/bin/sh", "-c", "cat > /dev/null; echo x >> {count}; echo '{{\"noted\": true}}'"]
  dawdle:
    kind: command
    description: Takes its time.
    timeout_seconds: 60
    command: ["/bin/sh", "-c", "cat > /dev/null; echo x >> {slow}; sleep 30; echo '{{}}'"]
  judge: {{kind: static, description: Judges., returns: {{safe: true}}}}
  stern: {{kind: static, description: Judges., returns: {{safe: false}}}}
{models}
"#,
        count = count.display(),
        slow = slow.display(),
    );
    Configuration::read(text.as_bytes(), folder, &|_| None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) async fn open(house: &House, models: &str, documents: Vec<(String, Vec<u8>)>) -> Arc<Engagements> {
    let people = vec![Person { did: OWNER.into(), id: Some("boss".into()), email: Some("boss@a.example".into()) }];
    let hosting = Hosting { people, ..hosting(house, models, documents) };
    Engagements::open(Arc::clone(&house.node), hosting).await.unwrap_or_else(|error| panic!("{error}"))
}

/// What an operator hosts who knows nobody by name.
pub(crate) fn hosting(house: &House, models: &str, documents: Vec<(String, Vec<u8>)>) -> Hosting {
    Hosting {
        configuration: configuration(house.folder.path(), models),
        documents,
        people: Vec::new(),
        options: agent::Options::default(),
        strangers: false,
    }
}

/// Waits until an engagement has this status.
pub(crate) async fn until(engagements: &Engagements, id: &str, status: &str) -> Value {
    for _ in 0..600 {
        let (state, _) = engagements.state(id, Some(USER)).unwrap();
        if state["status"] == status {
            return state;
        }
        assert!(
            !["failed", "cancelled", "completed"].contains(&state["status"].as_str().unwrap()),
            "{state:#} {:#}",
            engagements.audit(id, OWNER).unwrap()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{status} never came: {:#}", engagements.audit(id, OWNER).unwrap());
}

pub(crate) fn lines(house: &House, name: &str) -> usize {
    std::fs::read_to_string(house.folder.path().join(name)).unwrap_or_default().lines().count()
}

pub(crate) fn steps(engagements: &Engagements, id: &str) -> Vec<String> {
    let trail = engagements.audit(id, OWNER).unwrap();
    trail["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>, code: &str) {
    match outcome {
        Err(Error::Refusal(refusal)) if refusal.code == code => {}
        other => panic!("{other:?} is not {code}"),
    }
}

pub(crate) const SCRIPT: &str = r#"
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: lookup}, text: "It is Ada."}
        - {when: {result_of: note, failed: true}, text: "I may not."}
        - {when: {result_of: note}, text: "Noted."}
        - {when: {contains: look}, calls: [{tool: lookup, inputs: {}}]}
        - {when: {contains: note}, calls: [{tool: note, inputs: {text: a}}]}
        - {when: {contains: hello}, text: "Hello."}
model: m
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_looks_something_up_answers_and_hears_more() {
    let house = House::open();
    let document =
        agent("clerk", "capabilities: {lookup: {user_identity: false}}\nexposes: {who: recent.lookup.outputs.name}\n");
    let engagements = open(&house, SCRIPT, vec![document.clone()]).await;
    let id = engagements.begin("clerk", Some(USER), "look it up").await.unwrap();
    let state = until(&engagements, &id, "completed").await;
    assert_eq!(state["result"], json!({"text": "It is Ada.", "exposes": {"who": "Ada"}}));
    let taken = [
        "begun",
        "user_said",
        "model_said",
        "attempted",
        "dispatched",
        "returned",
        "released",
        "model_said",
        "answered",
    ];
    assert_eq!(steps(&engagements, &id), taken);
    engagements.say(&id, Some(USER), "hello").await.unwrap();
    engagements.wait(&id, None, Duration::from_secs(20)).await.unwrap();
    let state = until(&engagements, &id, "completed").await;
    assert_eq!(state["result"]["text"], "Hello.");
    assert_eq!(engagements.agent("clerk").unwrap().agent.source(), document.1);
    assert_eq!(engagements.engagements(USER).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_learns_of_an_engagement() {
    let house = House::open();
    let engagements = open(&house, SCRIPT, vec![agent("clerk", "")]).await;
    let id = engagements.begin("clerk", Some(USER), "hello").await.unwrap();
    until(&engagements, &id, "completed").await;
    for caller in [Some(OTHER), None] {
        refused(engagements.state(&id, caller), "engagement_not_found");
        refused(engagements.say(&id, caller, "hello").await, "engagement_not_found");
        refused(engagements.cancel(&id, caller).await, "engagement_not_found");
    }
    refused(engagements.audit(&id, USER), "engagement_not_found");
    refused(engagements.audit(&id, OTHER), "engagement_not_found");
    refused(engagements.state("nothing", Some(USER)), "engagement_not_found");
    refused(engagements.begin("clerk", None, "hello").await, "authentication_required");
    refused(engagements.begin("nobody", Some(USER), "hello").await, "agent_not_found");
    assert!(engagements.engagements(OTHER).unwrap().is_empty());
    assert!(engagements.state(&id, Some(OWNER)).is_ok());
}

const REVIEWED: &str = "capabilities: {note: {user_identity: false, input_restriction: {require_review: owner}}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_decides_once_about_exactly_what_waits() {
    let house = House::open();
    let engagements = open(&house, SCRIPT, vec![agent("clerk", REVIEWED)]).await;
    let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
    let state = until(&engagements, &id, "awaiting-review").await;
    assert_eq!((state["review"]["reviewer"].as_str(), lines(&house, "count")), (Some("boss"), 0));
    let listed = engagements.reviews(OWNER, None).unwrap().reviews;
    let (review, digest) = (listed[0]["id"].as_str().unwrap(), listed[0]["digest"].as_str().unwrap().to_owned());
    assert_eq!(listed[0]["inputs"], json!({"text": "a"}));
    assert!(engagements.reviews(USER, None).unwrap().reviews.is_empty());
    let decision = |approve, digest: &str| Decided { approve, digest: digest.to_owned(), reason: None };
    refused(engagements.decide(&id, review, USER, decision(true, &digest)).await, "reviewer_not_allowed");
    refused(engagements.decide(&id, review, OTHER, decision(true, &digest)).await, "engagement_not_found");
    refused(engagements.decide(&id, review, OWNER, decision(true, "other")).await, "review_stale");
    refused(engagements.decide(&id, "other", OWNER, decision(true, &digest)).await, "engagement_not_found");
    engagements.decide(&id, review, OWNER, decision(true, &digest)).await.unwrap();
    let state = until(&engagements, &id, "completed").await;
    assert_eq!((state["result"]["text"].as_str(), lines(&house, "count")), (Some("Noted."), 1));
    refused(engagements.decide(&id, review, OWNER, decision(true, &digest)).await, "review_decided");
    assert!(engagements.reviews(OWNER, None).unwrap().reviews.is_empty());

    let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
    until(&engagements, &id, "awaiting-review").await;
    let listed = engagements.reviews(OWNER, None).unwrap().reviews;
    let (review, digest) = (listed[0]["id"].as_str().unwrap(), listed[0]["digest"].as_str().unwrap());
    engagements.decide(&id, review, OWNER, decision(false, digest)).await.unwrap();
    let state = until(&engagements, &id, "completed").await;
    assert_eq!((state["result"]["text"].as_str(), lines(&house, "count")), (Some("I may not."), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_decisions_at_once_are_one() {
    let house = House::open();
    let engagements = open(&house, SCRIPT, vec![agent("clerk", REVIEWED)]).await;
    for round in 1..=5 {
        let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
        until(&engagements, &id, "awaiting-review").await;
        let listed = engagements.reviews(OWNER, None).unwrap().reviews;
        let (review, digest) = (listed[0]["id"].as_str().unwrap(), listed[0]["digest"].as_str().unwrap());
        let decide =
            || engagements.decide(&id, review, OWNER, Decided { approve: true, digest: digest.into(), reason: None });
        let (first, second) = tokio::join!(decide(), decide());
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        until(&engagements, &id, "completed").await;
        assert_eq!(lines(&house, "count"), round);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_outlives_the_node_and_the_document_that_it_began_with_stays() {
    let house = House::open();
    let engagements = open(&house, SCRIPT, vec![agent("clerk", REVIEWED)]).await;
    let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
    let before = until(&engagements, &id, "awaiting-review").await;
    drop(engagements);
    // The next version of the document asks nobody; what has begun goes by the one that does.
    let later = open(&house, SCRIPT, vec![agent("clerk", "capabilities: {note: {user_identity: false}}\n")]).await;
    assert_eq!(later.resume().unwrap(), 0);
    let listed = later.reviews(OWNER, None).unwrap().reviews;
    let (review, digest) = (listed[0]["id"].as_str().unwrap(), listed[0]["digest"].as_str().unwrap());
    assert_eq!((listed.len(), lines(&house, "count")), (1, 0));
    later.decide(&id, review, OWNER, Decided { approve: true, digest: digest.into(), reason: None }).await.unwrap();
    let state = until(&later, &id, "completed").await;
    assert_eq!((state["document"].clone(), lines(&house, "count")), (before["document"].clone(), 1));
}

/// What a node that was killed in the middle of a call leaves behind.
pub(crate) fn interrupted(house: &House, engagements: &Engagements, id: &str, tool: &str) {
    let document = engagements.agent("clerk").unwrap().agent.digest().to_owned();
    let user = Some(User { id: USER.into(), email: None });
    let begun = Begun {
        id: id.into(),
        started_at: "2026-05-01T12:00:00Z".into(),
        agent: "clerk".into(),
        document: document.clone(),
        user,
        ..Begun::default()
    };
    let inputs = json!({"text": "go"});
    let call = ProposedCall { id: "c".into(), name: tool.into(), arguments: inputs.to_string() };
    let steps = [
        Step::Begun(begun),
        Step::UserSaid { text: "go".into() },
        Step::ModelSaid { text: None, calls: vec![call], usage: Usage::default() },
        Step::Attempted { call: 0, capability: tool.into(), inputs },
        Step::Dispatched { call: 0, identity: Identity::Nobody },
    ];
    let steps = steps.iter().enumerate().map(|(position, step)| Noted {
        engagement: id.into(),
        position: position as u64,
        at: 1,
        body: serde_json::to_vec(step).unwrap(),
    });
    let engaged = Engaged {
        id: id.into(),
        agent: "clerk".into(),
        document,
        caller: Some(USER.into()),
        parent: None,
        begun_at: 1,
        reached: Reached::Running,
        reviewer: None,
        due: 0,
    };
    let journal = Journal { engagements: vec![engaged], steps: steps.collect(), ..Journal::default() };
    house.node.store().note(journal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_on_its_way_is_repeated_only_where_that_does_no_harm() {
    let house = House::open();
    let document = agent("clerk", "capabilities: {note: {user_identity: false}, lookup: {user_identity: false}}\n");
    let engagements = open(&house, SCRIPT, vec![document]).await;
    for (id, tool) in [("one", "lookup"), ("two", "note"), ("three", "note"), ("four", "note")] {
        interrupted(&house, &engagements, id, tool);
    }
    assert_eq!(engagements.resume().unwrap(), 4);
    assert_eq!(until(&engagements, "one", "completed").await["result"]["text"], "It is Ada.");
    for id in ["two", "three", "four"] {
        until(&engagements, id, "outcome-unknown").await;
    }
    assert_eq!(lines(&house, "count"), 0, "nobody made it again");
    assert_eq!(engagements.reviews(OWNER, None).unwrap().reviews.len(), 3);
    refused(engagements.settle("two", 0, USER, Settled::Repeat).await, "engagement_not_found");
    refused(engagements.settle("two", 1, OWNER, Settled::Repeat).await, "engagement_not_waiting");
    engagements.settle("two", 0, OWNER, Settled::Repeat).await.unwrap();
    until(&engagements, "two", "completed").await;
    assert_eq!(lines(&house, "count"), 1);
    engagements.settle("three", 0, OWNER, Settled::Output(json!({"noted": true}))).await.unwrap();
    assert_eq!(until(&engagements, "three", "completed").await["result"]["text"], "Noted.");
    engagements.settle("four", 0, OWNER, Settled::Failed("it was not".into())).await.unwrap();
    assert_eq!(until(&engagements, "four", "completed").await["result"]["text"], "I may not.");
    assert_eq!(lines(&house, "count"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guardrail_that_fails_ends_everything_and_shows_nothing() {
    let house = House::open();
    let held = "guardrails: {output: {tool_name: judge, assertion: safe}}\n";
    let fails = "guardrails: {output: {tool_name: stern, assertion: safe}}\n";
    let before =
        "capabilities: {note: {user_identity: false}}\nguardrails: {input: {tool_name: stern, assertion: safe}}\n";
    let documents = vec![agent("held", held), agent("fails", fails), agent("before", before)];
    let engagements = open(&house, SCRIPT, documents).await;
    let id = engagements.begin("held", Some(USER), "hello").await.unwrap();
    until(&engagements, &id, "completed").await;
    for name in ["fails", "before"] {
        let id = engagements.begin(name, Some(USER), "hello, note it").await.unwrap();
        engagements.wait(&id, None, Duration::from_secs(20)).await.unwrap();
        let (state, _) = engagements.state(&id, Some(USER)).unwrap();
        assert_eq!(state["error"]["code"], "guardrail_failed", "{state:#}");
        assert!(state.get("result").is_none() && !state.to_string().contains("Hello."));
        refused(engagements.say(&id, Some(USER), "hello").await, "engagement_over");
    }
    assert_eq!(lines(&house, "count"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_ask_other_agents_and_a_reviewer_that_is_one() {
    let house = House::open();
    let models = r#"
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: clerk}, text: "The clerk was asked."}
        - {when: {contains: delegate}, calls: [{tool: clerk, inputs: {text: look it up}}]}
        - {when: {result_of: lookup}, text: "It is Ada."}
        - {when: {contains: look}, calls: [{tool: lookup, inputs: {}}]}
        - {when: {result_of: note, failed: true}, text: "I may not."}
        - {when: {result_of: note}, text: "Noted."}
        - {when: {contains: "Judge the input"}, text: "Approved, certainly!"}
        - {when: {contains: note}, calls: [{tool: note, inputs: {text: a}}]}
        - {when: {contains: again}, calls: [{tool: again, inputs: {text: again}}]}
        - {when: {result_of: again}, text: "Enough."}
model: m
"#;
    let reviewed = "capabilities: {note: {user_identity: false, input_restriction: {require_review: REVIEWER}}}\n";
    let documents = vec![
        agent("clerk", "capabilities: {lookup: {user_identity: false}}\nexposes: {who: recent.lookup.outputs.name}\n"),
        agent(
            "head",
            "capabilities: {clerk: {}}\nexposes: {who: recent.clerk.outputs.who, words: recent.clerk.outputs.text}\n",
        ),
        agent("again", "capabilities: {'oagent://again': {}}\n"),
        agent("agrees", "exposes: {approved: 'true'}\n"),
        agent("declines", ""),
        agent("with-yes", &reviewed.replace("REVIEWER", "agrees")),
        agent("with-no", &reviewed.replace("REVIEWER", "oagent://declines")),
    ];
    let engagements = open(&house, models, documents).await;
    let id = engagements.begin("head", Some(USER), "delegate").await.unwrap();
    let state = until(&engagements, &id, "completed").await;
    assert_eq!(state["result"]["exposes"], json!({"who": "Ada", "words": "It is Ada."}));
    let id = engagements.begin("again", Some(USER), "again").await.unwrap();
    assert_eq!(until(&engagements, &id, "completed").await["result"]["text"], "Enough.");
    for (name, text, noted) in [("with-yes", "Noted.", 1), ("with-no", "I may not.", 1)] {
        let id = engagements.begin(name, Some(USER), "note it").await.unwrap();
        assert_eq!(until(&engagements, &id, "completed").await["result"]["text"], text);
        assert_eq!(lines(&house, "count"), noted, "words are no approval");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_can_end_what_takes_too_long() {
    let house = House::open();
    let models = "models: {m: {kind: scripted, script: {turns: [{calls: [{tool: dawdle, inputs: {}}]}]}}}\nmodel: m\n";
    let document = agent("slow", "capabilities: {dawdle: {user_identity: false}}\n");
    let engagements = open(&house, models, vec![document]).await;
    let id = engagements.begin("slow", Some(USER), "begin").await.unwrap();
    for _ in 0..600 {
        if lines(&house, "slow") == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    refused(engagements.say(&id, Some(USER), "more").await, "engagement_busy");
    engagements.cancel(&id, Some(USER)).await.unwrap();
    until(&engagements, &id, "cancelled").await;
    assert_eq!(steps(&engagements, &id).last().unwrap(), "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_credentials_waits_for_them_and_nobody_lends_any() {
    let house = House::open();
    std::fs::write(house.folder.path().join("desk"), "marker-desk").unwrap();
    let models = format!("{SCRIPT}credentials: {{static: {{desk: {{file: desk}}}}}}\n");
    let documents = vec![agent("clerk", "capabilities: {note: {static_identity: desk}}\n")];
    let engagements = open(&house, &models, documents).await;
    let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
    let state = until(&engagements, &id, "awaiting-credentials").await;
    assert_eq!((state["credentials"]["capability"].as_str(), lines(&house, "count")), (Some("note"), 0));
    engagements.credentials_arrived(&id, Some(USER)).await.unwrap();
    engagements.wait(&id, None, Duration::from_secs(20)).await.unwrap();
    until(&engagements, &id, "awaiting-credentials").await;
    assert_eq!(lines(&house, "count"), 0);
}
