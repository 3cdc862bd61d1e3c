//! Engagements that serve others: what is seen of them, how they end, and what a kill and a wait leave of them.

use crate::engagements::{House, OTHER, OWNER, USER, agent, lines, open, refused, steps, until};
use agent::{Decision, Stage, Step, Usage, Why};
use json::{Map, Value, json};
use node::{Clock, Config, Decided, Engagements, Node};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use store::{Engaged, Journal, Noted, Reached};

/// A head that has a clerk note something; both say what came of it.
const DELEGATES: &str = r#"
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: clerk}, text: "{result}"}
        - {when: {contains: delegate}, calls: [{tool: clerk, inputs: {text: note it}}]}
        - {when: {result_of: note, failed: true}, text: "I may not."}
        - {when: {result_of: note}, text: "Noted."}
        - {when: {contains: dawdle}, calls: [{tool: dawdle, inputs: {}}]}
        - {when: {contains: "Judge the input", offered: dawdle}, calls: [{tool: dawdle, inputs: {}}]}
        - {when: {contains: "Judge the input", offered: lookup}, calls: [{tool: lookup, inputs: {}}]}
        - {when: {contains: note}, calls: [{tool: note, inputs: {text: a}}]}
model: m
"#;

const ASKS_ITS_OWNER: &str =
    "capabilities: {note: {user_identity: false, input_restriction: {require_review: owner}}}\n";

fn asking(reviewer: &str) -> String {
    ASKS_ITS_OWNER.replace("owner", reviewer)
}

/// The name of the engagement that serves a place of another one.
pub(crate) fn serving(id: &str, place: &str) -> String {
    store::Hash::of(format!("rialto engagement\n{id}\n{place}").as_bytes()).to_string()[..40].to_owned()
}

fn documents(head: &str) -> Vec<(String, Vec<u8>)> {
    vec![agent("head", head), agent("clerk", ASKS_ITS_OWNER)]
}

/// What waits for the owner of everything: the engagement, the review, its digest.
fn waiting(engagements: &Engagements) -> (String, String, String) {
    let listed = engagements.reviews(OWNER, None).unwrap().reviews;
    let text = |name: &str| listed[0][name].as_str().unwrap().to_owned();
    (text("engagement"), text("id"), text("digest"))
}

async fn decide(engagements: &Arc<Engagements>, approve: bool) {
    let (id, review, digest) = waiting(engagements);
    engagements.decide(&id, &review, OWNER, Decided { approve, digest, reason: None }).await.unwrap();
}

async fn rested(engagements: &Arc<Engagements>, id: &str) -> Value {
    engagements.wait(id, None, Duration::from_secs(25)).await.unwrap();
    engagements.state(id, Some(USER)).unwrap().0
}

/// Adds to a journal what a node wrote before it was killed.
fn written(house: &House, id: &str, more: &[Step], reached: Reached) {
    let known = house.node.store().step_count(id).unwrap();
    let steps = more.iter().enumerate().map(|(number, step)| Noted {
        engagement: id.to_owned(),
        position: known + number as u64,
        at: 1,
        body: serde_json::to_vec(step).unwrap(),
    });
    let engaged = house.node.store().engagement(id).unwrap().unwrap();
    let engaged = Engaged { reached, reviewer: None, due: 0, ..engaged };
    let journal = Journal { engagements: vec![engaged], steps: steps.collect(), ..Journal::default() };
    house.node.store().note(journal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_the_last_word_of_one_that_serves_and_the_next_of_the_other_loses_neither() {
    for ends in ["answered", "cancelled"] {
        let house = House::open();
        let engagements = open(&house, DELEGATES, documents("capabilities: {clerk: {}}\n")).await;
        let id = engagements.begin("head", Some(USER), "delegate").await.unwrap();
        for _ in 0..600 {
            if !engagements.reviews(OWNER, None).unwrap().reviews.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        engagements.wait(&id, None, Duration::from_secs(25)).await.unwrap();
        let (child, _, digest) = waiting(&engagements);
        assert_eq!(child, serving(&id, "0"));
        drop(engagements);
        let by = Some(OWNER.to_owned());
        let (decision, stage, text) = (Decision::Rejected, Stage::Input, "I may not.".to_owned());
        let (more, reached) = match ends {
            "answered" => (
                vec![
                    Step::ReviewDecided { call: 0, stage, digest, decision, by, reason: None },
                    Step::Denied { call: 0, why: Why::Review },
                    Step::ModelSaid { text: Some(text.clone()), calls: Vec::new(), usage: Usage::default() },
                    Step::Answered { text, exposes: Map::new(), expose_errors: Vec::new() },
                ],
                Reached::Waiting,
            ),
            _ => (vec![Step::Cancelled { by: OWNER.to_owned() }], Reached::Over),
        };
        written(&house, &child, &more, reached);
        let later = open(&house, DELEGATES, documents("capabilities: {clerk: {}}\n")).await;
        assert_eq!(later.resume().unwrap(), 1);
        let state = until(&later, &id, "completed").await;
        let said = if ends == "answered" { "I may not." } else { "somebody ended" };
        assert!(state["result"]["text"].as_str().unwrap().contains(said), "{state:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_an_earlier_program_left_waiting_for_one_that_is_done_goes_on() {
    for (word, place, said) in [("delegate", "0", "somebody ended"), ("note it", "0/input", "I may not.")] {
        let house = House::open();
        let head = if place == "0" { "capabilities: {clerk: {}}\n".to_owned() } else { asking("clerk") };
        let engagements = open(&house, DELEGATES, documents(&head)).await;
        let id = engagements.begin("head", Some(USER), word).await.unwrap();
        assert_eq!(rested(&engagements, &id).await["status"], "awaiting-review");
        let (child, ..) = waiting(&engagements);
        assert_eq!(child, serving(&id, place));
        drop(engagements);
        // As it was written then: the one that serves is at its end, the other waits and nobody is asked for anything.
        written(&house, &child, &[Step::Cancelled { by: OWNER.to_owned() }], Reached::Over);
        written(&house, &id, &[], Reached::Waiting);
        let later = open(&house, DELEGATES, documents(&head)).await;
        assert_eq!(later.resume().unwrap(), 0);
        let state = until(&later, &id, "completed").await;
        assert!(state["result"]["text"].as_str().unwrap().contains(said), "{state:#}");
    }
}

/// A node whose clock is set by hand.
pub(crate) fn timed() -> (House, Arc<AtomicI64>) {
    let (folder, millis) = (tempfile::tempdir().unwrap(), Arc::new(AtomicI64::new(1_777_636_800_000)));
    let clock = Clock::Set(Arc::clone(&millis));
    let config = Config { data: folder.path().join("node"), clock, ..Config::default() };
    (House { node: Arc::new(Node::open(&config, &mut |_, _| {}).unwrap()), folder }, millis)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_by_an_agent_that_waits_ends_in_its_time_after_a_restart_too() {
    let (house, millis) = timed();
    let models = format!("{DELEGATES}agents: {{scrutiny: {{budget: {{seconds: 1}}}}}}\n");
    let documents = || {
        let scrutiny = agent("scrutiny", "capabilities: {dawdle: {user_identity: false}}\n");
        vec![agent("clerk", &asking("scrutiny")), scrutiny]
    };
    let engagements = open(&house, &models, documents()).await;
    let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
    assert_eq!(rested(&engagements, &id).await["status"], "awaiting-review");
    // What the reviewer called is lost, and nobody says what became of it.
    let (state, _) = engagements.state(&serving(&id, "0/input"), Some(OWNER)).unwrap();
    assert_eq!(state["status"], "outcome-unknown", "{state:#}");
    drop(engagements);
    let later = open(&house, &models, documents()).await;
    later.resume().unwrap();
    assert_eq!(rested(&later, &id).await["status"], "awaiting-review");
    drop(later);
    millis.fetch_add(24 * 3_600_000 + 1, Ordering::Relaxed);
    let later = open(&house, &models, documents()).await;
    later.resume().unwrap();
    assert_eq!(until(&later, &id, "completed").await["result"]["text"], "I may not.");
    assert_eq!(lines(&house, "count"), 0);
    // Nobody waits for the reviewer any more, and it waits for nobody.
    ended(&later, &serving(&id, "0/input")).await;
    assert!(later.reviews(OWNER, None).unwrap().reviews.is_empty());
}

/// Waits until nothing happens any more in an engagement that serves another one. Where its own review expires at the same
/// moment it may hear of that first; its model has nothing to say then, and it fails.
async fn ended(engagements: &Engagements, id: &str) {
    for _ in 0..600 {
        let (state, _) = engagements.state(id, Some(OWNER)).unwrap();
        if state["status"] == "cancelled" || state["status"] == "failed" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:#}", engagements.audit(id, OWNER).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_reviews_is_ended_with_the_time_of_its_review() {
    let (house, millis) = timed();
    let scrutiny = "capabilities: {lookup: {user_identity: false, input_restriction: {require_review: owner}}}\n";
    let documents = vec![agent("clerk", &asking("scrutiny")), agent("scrutiny", scrutiny)];
    let engagements = open(&house, DELEGATES, documents).await;
    let id = engagements.begin("clerk", Some(USER), "note it").await.unwrap();
    assert_eq!(rested(&engagements, &id).await["status"], "awaiting-review");
    let (reviewing, review, digest) = waiting(&engagements);
    assert_eq!(reviewing, serving(&id, "0/input"));
    // The clock is set by hand and wakes nobody, so a start does.
    millis.fetch_add(24 * 3_600_000 + 1, Ordering::Relaxed);
    let late = Decided { approve: true, digest, reason: None };
    refused(engagements.decide(&reviewing, &review, OWNER, late).await, "review_expired");
    engagements.resume().unwrap();
    assert_eq!(until(&engagements, &id, "completed").await["result"]["text"], "I may not.");
    ended(&engagements, &reviewing).await;
    assert!(engagements.reviews(OWNER, None).unwrap().reviews.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_began_an_engagement_is_told_what_one_that_serves_it_waits_for() {
    for (head, is_theirs) in
        [("capabilities: {clerk: {}}\n", true), ("capabilities: {clerk: {user_identity: false}}\n", false)]
    {
        let house = House::open();
        let engagements = open(&house, DELEGATES, documents(head)).await;
        let id = engagements.begin("head", Some(USER), "delegate").await.unwrap();
        let state = rested(&engagements, &id).await;
        assert_eq!(state["status"], "awaiting-review", "{state:#}");
        let (child, review, _) = waiting(&engagements);
        let within = json!({"engagement": child, "agent": "clerk"});
        for (who, sees) in [(USER, is_theirs), (OWNER, true)] {
            let (state, _) = engagements.state(&id, Some(who)).unwrap();
            assert_eq!(state["status"], "awaiting-review");
            assert_eq!(state.get("within"), sees.then_some(&within), "{state:#}");
            assert_eq!(state.pointer("/review/id"), sees.then_some(&json!(review)), "{state:#}");
            assert_eq!(engagements.state(&child, Some(who)).is_ok(), sees);
        }
        refused(engagements.state(&id, Some(OTHER)), "engagement_not_found");
        let mine = engagements.engagements(USER).unwrap();
        assert!(mine.iter().all(|listed| listed["status"] == "awaiting-review"), "{mine:?}");
        let (_, known) = engagements.state(&id, Some(USER)).unwrap();

        // Whoever watches hears that it goes on, and whoever waits hears when it rests.
        decide(&engagements, true).await;
        engagements.wait(&id, Some(known), Duration::from_secs(25)).await.unwrap();
        let (state, number) = engagements.state(&id, Some(USER)).unwrap();
        assert_ne!((number, &state["status"]), (known, &json!("awaiting-review")));
        let state = rested(&engagements, &id).await;
        assert_eq!((&state["status"], &state["result"]["text"]), (&json!("completed"), &json!("Noted.")));
        let (_, number) = engagements.state(&id, Some(USER)).unwrap();
        assert_eq!(number as usize, steps(&engagements, &id).len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_two_levels_down_is_told_at_the_top() {
    let house = House::open();
    let models = DELEGATES.replace("result_of: clerk}", "result_of: clerk, offered: clerk}").replace(
        "      rules:\n",
        "      rules:\n        - {when: {result_of: head}, text: \"{result}\"}\n        \
         - {when: {offered: head}, calls: [{tool: head, inputs: {text: delegate}}]}\n",
    );
    let mut all = documents("capabilities: {clerk: {}}\n");
    all.push(agent("chief", "capabilities: {head: {}}\n"));
    let engagements = open(&house, &models, all.clone()).await;
    let id = engagements.begin("chief", Some(USER), "go").await.unwrap();
    let state = rested(&engagements, &id).await;
    let clerk = serving(&serving(&id, "0"), "0");
    assert_eq!((&state["status"], &state["within"]["engagement"]), (&json!("awaiting-review"), &json!(clerk)));
    drop(engagements);
    let later = open(&house, &models, all).await;
    assert_eq!(later.resume().unwrap(), 2, "the two that wait for the third");
    assert_eq!(rested(&later, &id).await["status"], "awaiting-review");
    decide(&later, true).await;
    assert_eq!(until(&later, &id, "completed").await["result"]["text"], "Noted.");
    assert_eq!(lines(&house, "count"), 1);
}

/// Waits until the tool that takes half a minute was called.
async fn dawdling(house: &House) {
    for _ in 0..600 {
        if lines(house, "slow") == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody dawdles");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_ended_ends_all_that_serve_it() {
    let slow = "capabilities: {dawdle: {user_identity: false}}\n";
    let waits = "capabilities: {lookup: {user_identity: false, input_restriction: {require_review: owner}}}\n";
    for (name, place, all) in [
        // At work, as the one that was called and as the one that reviews.
        ("head", "0", vec![agent("head", "capabilities: {clerk: {}}\n"), agent("clerk", slow)]),
        ("clerk", "0/input", vec![agent("clerk", &asking("scrutiny")), agent("scrutiny", slow)]),
        // At rest.
        ("head", "0", documents("capabilities: {clerk: {}}\n")),
        ("clerk", "0/input", vec![agent("clerk", &asking("scrutiny")), agent("scrutiny", waits)]),
    ] {
        let house = House::open();
        let is_slow = all.iter().any(|(_, text)| String::from_utf8_lossy(text).contains("dawdle"));
        let models = if is_slow { DELEGATES.replace("text: note it", "text: dawdle") } else { DELEGATES.to_owned() };
        let engagements = open(&house, &models, all).await;
        let text = if name == "head" { "delegate" } else { "note it" };
        let id = engagements.begin(name, Some(USER), text).await.unwrap();
        match is_slow {
            true => dawdling(&house).await,
            false => assert_eq!(rested(&engagements, &id).await["status"], "awaiting-review"),
        }
        engagements.cancel(&id, Some(USER)).await.unwrap();
        for ended in [id.clone(), serving(&id, place)] {
            let taken = steps(&engagements, &ended);
            assert_eq!(taken.last().unwrap(), "cancelled", "{name} {place}: {taken:?}");
        }
        assert!(engagements.reviews(OWNER, None).unwrap().reviews.is_empty(), "nobody is asked for nothing");
        assert_eq!(lines(&house, "count"), 0);
    }
}

/// Milliseconds of work that the journal of an engagement ends with, and says with each step of this name.
fn worked(engagements: &Engagements, id: &str, name: &str) -> (u64, Vec<Option<u64>>) {
    let trail = engagements.audit(id, OWNER).unwrap();
    let all = trail["steps"].as_array().unwrap();
    let last = all.iter().rev().find_map(|step| step["worked_ms"].as_u64()).unwrap();
    (last, all.iter().filter(|step| step["step"] == name).map(|step| step["worked_ms"].as_u64()).collect())
}

/// What an engagement that serves a place of another one was given of its time.
fn given(engagements: &Engagements, id: &str, place: &str) -> u64 {
    let trail = engagements.audit(&serving(id, place), OWNER).unwrap();
    trail["steps"][0]["allowance"]["time_ms"].as_u64().unwrap()
}

/// A tool that takes a second.
const PAUSE: &str =
    "  pause: {kind: command, description: Pauses., command: [/bin/sh, -c, 'cat > /dev/null; sleep 1; echo {}']}\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_an_engagement_is_its_work_on_one_message_over_waits_and_restarts() {
    let models = format!(
        "{PAUSE}{}",
        r#"
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: helper}, text: "Done."}
        - {when: {result_of: note}, calls: [{tool: helper, inputs: {text: hello}}]}
        - {when: {result_of: pause}, calls: [{tool: note, inputs: {text: a}}]}
        - {when: {contains: hello}, text: "Hello."}
        - {when: {contains: go}, calls: [{tool: pause, inputs: {}}]}
model: m
agents: {head: {budget: {seconds: 60}}}
"#
    );
    let head = "capabilities: {pause: {user_identity: false}, helper: {user_identity: false}, \
        note: {user_identity: false, input_restriction: {require_review: owner}}}\n";
    let all = || vec![agent("head", head), agent("helper", "")];
    let house = House::open();
    let engagements = open(&house, &models, all()).await;
    let id = engagements.begin("head", Some(USER), "go").await.unwrap();
    assert_eq!(rested(&engagements, &id).await["status"], "awaiting-review");
    drop(engagements);
    let later = open(&house, &models, all()).await;
    later.resume().unwrap();
    let (before, _) = worked(&later, &id, "review_asked");
    assert!(before >= 1_000, "the tool took a second: {before}");
    decide(&later, true).await;
    until(&later, &id, "completed").await;
    let left = given(&later, &id, "2");
    assert!(left <= 60_000 - before, "{left} ms were left after {before} ms");

    // A message gives it its time again.
    later.say(&id, Some(USER), "hello").await.unwrap();
    until(&later, &id, "completed").await;
    let (_, said) = worked(&later, &id, "user_said");
    assert_eq!(said.last(), Some(&Some(0)));
}

/// How long a reviewer thinks.
const WAITED: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread")]
async fn what_one_that_serves_worked_counts_and_what_it_waited_does_not() {
    let models = format!(
        "{PAUSE}{}",
        r#"
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {result_of: other}, text: "Done."}
        - {when: {result_of: helper}, calls: [{tool: other, inputs: {text: hello}}]}
        - {when: {result_of: note}, text: "Noted."}
        - {when: {result_of: pause}, calls: [{tool: note, inputs: {text: a}}]}
        - {when: {contains: hello}, text: "Hello."}
        - {when: {contains: delegate}, calls: [{tool: helper, inputs: {text: go}}]}
        - {when: {contains: go}, calls: [{tool: pause, inputs: {}}]}
model: m
agents: {head: {budget: {seconds: 60}}}
"#
    );
    let helper = "capabilities: {pause: {user_identity: false}, \
        note: {user_identity: false, input_restriction: {require_review: owner}}}\n";
    let head = "capabilities: {helper: {user_identity: false}, other: {user_identity: false}}\n";
    let house = House::open();
    let engagements =
        open(&house, &models, vec![agent("head", head), agent("helper", helper), agent("other", "")]).await;
    let begun = house.node.clock().millis();
    let id = engagements.begin("head", Some(USER), "delegate").await.unwrap();
    assert_eq!(rested(&engagements, &id).await["status"], "awaiting-review");
    tokio::time::sleep(WAITED).await;
    decide(&engagements, true).await;
    until(&engagements, &id, "completed").await;
    let all = house.node.clock().millis() - begun;
    let (first, second) = (given(&engagements, &id, "0"), given(&engagements, &id, "1"));
    assert!(second + 1_000 <= first, "the helper took a second: {first}, {second}");
    let (worked, _) = worked(&engagements, &id, "answered");
    let waited = WAITED.as_millis() as i64;
    assert!(worked >= 1_000 && worked as i64 + waited <= all, "{worked} of {all} ms, {waited} ms of which were waited");
}
