//! What each user and each owner may use in a day: by one engagement, by many, by those that serve, over restarts.

use crate::engagements::{House, OTHER, OWNER, USER, agent, open, until};
use crate::serving::{serving, timed};
use agent::Step;
use json::Value;
use node::{Engagements, Error};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{Journal, Noted, Reached};

/// Each turn costs ten tokens, and a token a millionth. `work` never ends by itself, `hello` is one turn.
const MODELS: &str = r#"
models:
  m:
    kind: scripted
    script:
      price: {input_per_million: "1", output_per_million: "1"}
      rules:
        - {when: {contains: hello}, text: "Hello.", usage: {input_tokens: 10}}
        - {when: {result_of: clerk}, text: "{result}", usage: {input_tokens: 10}}
        - {when: {contains: delegate}, usage: {input_tokens: 10}, calls: [{tool: clerk, inputs: {text: work}}]}
        - {when: {contains: greet}, usage: {input_tokens: 10}, calls: [{tool: clerk, inputs: {text: hello}}]}
        - {when: {contains: send}, usage: {input_tokens: 10}, calls: [{tool: clerk, inputs: {text: dawdle}}]}
        - {when: {contains: dawdle}, usage: {input_tokens: 10}, calls: [{tool: dawdle, inputs: {}}]}
        - {when: {result_of: lookup}, usage: {input_tokens: 10}, calls: [{tool: lookup, inputs: {}}]}
        - {when: {contains: work}, usage: {input_tokens: 10}, calls: [{tool: lookup, inputs: {}}]}
        - {when: {result_of: pong}, text: "{result}"}
        - {when: {result_of: ping}, text: "{result}"}
        - {when: {offered: pong}, calls: [{tool: pong, inputs: {text: go}}]}
        - {when: {offered: ping}, calls: [{tool: ping, inputs: {text: go}}]}
model: m
"#;

/// A head of one owner, and a clerk of another.
async fn hosted(house: &House, budgets: &str) -> Arc<Engagements> {
    let tools = "lookup: {user_identity: false}, dawdle: {user_identity: false}";
    let (file, clerk) = agent("clerk", &format!("capabilities: {{{tools}}}\n"));
    let clerk = String::from_utf8(clerk).unwrap().replace("owner: boss", "owner: other").into_bytes();
    let head = agent("head", &format!("capabilities: {{clerk: {{user_identity: false}}, {tools}}}\n"));
    open(house, &format!("{MODELS}budgets_per_day: {budgets}\n"), vec![head, (file, clerk)]).await
}

/// Begins an engagement and waits until it rests.
async fn rested(engagements: &Arc<Engagements>, name: &str, caller: &str, text: &str) -> (String, Value) {
    let id = engagements.begin(name, Some(caller), text).await.unwrap();
    engagements.wait(&id, None, Duration::from_secs(25)).await.unwrap();
    let state = engagements.state(&id, Some(caller)).unwrap().0;
    (id, state)
}

/// The bound that a day's budget was refused for: its name, what it is, what was used, and how long is to be waited.
#[track_caller]
fn bound<T: std::fmt::Debug>(outcome: Result<T, Error>) -> (String, u64, u64, u64) {
    match outcome {
        Err(Error::Refusal(refusal)) if refusal.code == "day_budget_exhausted" => {
            let limit = refusal.limit.clone().unwrap();
            (limit.name, limit.max, limit.got, refusal.retry_after_ms.unwrap())
        }
        other => panic!("{other:?} is no budget of a day"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_engagement_that_uses_up_a_day_ends_and_the_next_is_not_begun() {
    for (budgets, name, most) in [
        ("{user: {tokens: 25}}", "user.tokens_per_day", 25),
        ("{user: {calls: 4}}", "user.calls_per_day", 4),
        ("{user: {calls: 3}}", "user.calls_per_day", 3),
        ("{user: {money: \"0.000025\"}}", "user.money_millionths_per_day", 25),
        ("{owner: {tokens: 25}}", "owner.tokens_per_day", 25),
    ] {
        let house = House::open();
        let engagements = hosted(&house, budgets).await;
        let (id, state) = rested(&engagements, "head", USER, "work").await;
        assert_eq!(
            (&state["status"], &state["error"]["code"]),
            (&"failed".into(), &"engagement_limit".into()),
            "{state:#}"
        );
        let trail = engagements.audit(&id, OWNER).unwrap();
        let last = trail["steps"].as_array().unwrap().last().unwrap();
        assert_eq!(last["detail"], name, "{last}");
        let (bound, max, got, wait) = bound(engagements.begin("head", Some(USER), "hello").await);
        assert_eq!((bound.as_str(), max), (name, most));
        assert!(got >= most && got < most + 10 && wait > 0 && wait <= 24 * 3_600_000, "{got} {wait}");
        // Another user has their own; an owner has one, whoever asks.
        let another = engagements.begin("head", Some(OTHER), "hello").await;
        assert_eq!(another.is_ok(), name.starts_with("user"), "{another:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_engagements_use_up_a_day_together_and_the_next_day_is_another() {
    let (house, millis) = timed();
    let engagements = hosted(&house, "{user: {calls: 3}}").await;
    let (first, _) = rested(&engagements, "head", USER, "hello").await;
    for _ in 0..2 {
        assert_eq!(rested(&engagements, "head", USER, "hello").await.1["status"], "completed");
    }
    let refused = bound(engagements.begin("head", Some(USER), "hello").await);
    // The clock stands at noon.
    assert_eq!(refused, ("user.calls_per_day".to_owned(), 3, 3, 12 * 3_600_000));
    // What is said to one that has answered is refused as well, and the engagement is there the next day.
    assert_eq!(bound(engagements.say(&first, Some(USER), "hello").await), refused);
    assert_eq!(engagements.state(&first, Some(USER)).unwrap().0["status"], "completed");
    assert_eq!(rested(&engagements, "head", OTHER, "hello").await.1["status"], "completed");
    drop(engagements);
    let later = hosted(&house, "{user: {calls: 3}}").await;
    assert_eq!(bound(later.begin("head", Some(USER), "hello").await), refused, "a restart forgets nothing");
    millis.fetch_add(12 * 3_600_000, Ordering::Relaxed);
    later.say(&first, Some(USER), "hello").await.unwrap();
    until(&later, &first, "completed").await;
    drop(later);
    let later = hosted(&house, "{user: {calls: 3}}").await;
    for _ in 0..2 {
        assert_eq!(rested(&later, "head", USER, "hello").await.1["status"], "completed");
    }
    let refused = bound(later.begin("head", Some(USER), "hello").await);
    assert_eq!((refused.1, refused.2), (3, 3), "what an engagement of yesterday did today is today's");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_serves_counts_for_the_user_and_the_owner_who_asked() {
    let house = House::open();
    let engagements = hosted(&house, "{owner: {tokens: 45}}").await;
    let (id, state) = rested(&engagements, "head", USER, "delegate").await;
    assert_eq!(state["error"]["code"], "engagement_limit", "{state:#}");
    assert!(engagements.audit(&id, OWNER).unwrap().to_string().contains("the agent failed: engagement_limit"));
    let refused = bound(engagements.begin("head", Some(USER), "hello").await);
    assert_eq!((refused.0.as_str(), refused.2), ("owner.tokens_per_day", 50));
    // The clerk did the work, and its owner's budget is whole.
    assert_eq!(rested(&engagements, "clerk", USER, "hello").await.1["status"], "completed");
    drop(engagements);
    let later = hosted(&house, "{owner: {tokens: 45}}").await;
    assert_eq!(bound(later.begin("head", Some(USER), "hello").await).2, 50);
    later.begin("clerk", Some(USER), "hello").await.unwrap();
    drop(later);
    // The user pays for the head, for the clerk that served it, and for the clerk alone.
    let user = hosted(&house, "{user: {tokens: 60}}").await;
    assert_eq!(bound(user.begin("head", Some(USER), "hello").await).0, "user.tokens_per_day");
    user.begin("head", Some(OTHER), "hello").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seconds_of_a_day_cut_what_is_under_way_and_are_not_forgotten() {
    for (text, within) in [("dawdle", None), ("send", Some("0"))] {
        let house = House::open();
        let engagements = hosted(&house, "{user: {seconds: 1}}").await;
        let (id, state) = rested(&engagements, "head", USER, text).await;
        assert_eq!(state["status"], "outcome-unknown", "{state:#}");
        // The one that waits is the head, or the clerk that serves it.
        let waiting = within.map_or(id.clone(), |place| serving(&id, place));
        assert_eq!(house.node.store().engagement(&waiting).unwrap().unwrap().reached, Reached::Waiting);
        let refused = bound(engagements.begin("head", Some(USER), "hello").await);
        assert_eq!((refused.0.as_str(), refused.1), ("user.seconds_per_day", 1));
        engagements.begin("head", Some(OTHER), "hello").await.unwrap();
        drop(engagements);
        // One that serves and is not done has its time in its own journal.
        let later = hosted(&house, "{user: {seconds: 1}}").await;
        assert_eq!(bound(later.begin("head", Some(USER), "hello").await).0, "user.seconds_per_day");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_time_of_one_that_served_is_counted_once() {
    let (house, millis) = timed();
    let engagements = hosted(&house, "{}").await;
    let (id, state) = rested(&engagements, "head", USER, "greet").await;
    assert_eq!(state["status"], "completed", "{state:#}");
    drop(engagements);
    // As if both had worked for a quarter of an hour, which is the clerk's alone.
    for engagement in [id.clone(), serving(&id, "0")] {
        let body = Step::UserSaid { text: "hello".to_owned() }.kept(Some(900_000)).unwrap();
        let (at, position) = (millis.load(Ordering::Relaxed), house.node.store().step_count(&engagement).unwrap());
        let steps = vec![Noted { engagement, position, at, body }];
        house.node.store().note(Journal { steps, ..Journal::default() }).unwrap();
    }
    let later = hosted(&house, "{user: {seconds: 900}}").await;
    assert_eq!(bound(later.begin("head", Some(USER), "hello").await).0, "user.seconds_per_day");
    let later = hosted(&house, "{user: {seconds: 1700}}").await;
    later.begin("head", Some(USER), "hello").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_call_each_other_end_at_a_depth() {
    let house = House::open();
    let documents = vec![
        agent("ping", "capabilities: {pong: {user_identity: false}}\n"),
        agent("pong", "capabilities: {ping: {user_identity: false}}\n"),
    ];
    let engagements = open(&house, MODELS, documents).await;
    let (_, state) = rested(&engagements, "ping", USER, "go").await;
    assert_eq!(state["status"], "completed", "{state:#}");
    let text = state["result"]["text"].as_str().unwrap();
    assert!(text.contains("delegation_depth: 4 engagements within each other are possible"), "{text}");
}
