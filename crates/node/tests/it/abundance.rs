//! Attacks on hosted agents in numbers: credentials that are looked for everywhere, verdicts that are waited for, guesses.
//!
//! Every run makes a few of each; `RIALTO_RUNS` and `RIALTO_GUESSES` ask for as many as the design wants (10,000 and 10^6).

use crate::engagements::{House, OTHER, OWNER, USER, agent, open, refused, until};
use json::{Value, json};
use node::{Clock, Config, Engagements, Error, Node};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Engagements that are watched, and guesses that are made, where nobody asks for more.
const RUNS: usize = 200;
const GUESSES: usize = 20_000;
/// Engagements that are watched at once.
const AT_ONCE: usize = 32;
/// Credentials of each kind that are looked for: of the operator, and of users.
const CANARIES: usize = 10;

#[expect(clippy::disallowed_methods, reason = "whoever wants more than every run makes says so")]
fn wanted(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|wanted| wanted.parse().ok()).unwrap_or(usual)
}

fn user(number: usize) -> String {
    format!("did:key:z6Mkabundant{number:034}")
}

fn canary(kind: &str, number: usize) -> String {
    format!("canary-{kind}-{number:02}-XYZZY")
}

/// A node with ten static credentials and ten of users, all in the hands of tools that repeat what they are given.
async fn entrusted(house: &House) -> Arc<Engagements> {
    let folder = house.folder.path();
    let tool = |name: &str| {
        format!(
            "  {name}:\n    kind: command\n    description: Repeats.\n    credential_env: TOKEN\n    command: [/bin/sh, -c, \
             'cat > /dev/null; echo \"$TOKEN\" >> {}/seen; printf \"{{\\\"said\\\": \\\"%s\\\"}}\" \"$TOKEN\"']\n",
            folder.display()
        )
    };
    let (mut tools, mut statics, mut users) = (tool("ledger"), String::new(), String::new());
    let (mut calls, mut capabilities) = (Vec::new(), String::new());
    for number in 0..CANARIES {
        for kind in ["static", "user"] {
            std::fs::write(folder.join(format!("{kind}-{number}")), canary(kind, number)).unwrap();
        }
        tools.push_str(&tool(&format!("tool{number}")));
        statics.push_str(&format!("    s{number}: {{file: static-{number}}}\n"));
        users.push_str(&format!("    - {{tool: ledger, user: '{}', file: user-{number}}}\n", user(number)));
        calls.push(format!("{{tool: tool{number}, inputs: {{}}}}"));
        capabilities.push_str(&format!("  tool{number}: {{user_identity: false, static_identity: s{number}}}\n"));
    }
    calls.push("{tool: ledger, inputs: {}}".to_owned());
    let host = format!(
        "{tools}credentials:\n  static:\n{statics}  users:\n{users}models:\n  m:\n    kind: scripted\n    script:\n      \
         rules:\n        - {{when: {{result_of: ledger}}, text: 'It says {{result}}'}}\n        - {{when: {{}}, calls: \
         [{}]}}\nmodel: m\n",
        calls.join(", ")
    );
    let exposes = "exposes: {whole: engagement, user: user, recent: recent, history: history, since: started_at}\n";
    let document = agent("teller", &format!("capabilities:\n{capabilities}  ledger: {{}}\n{exposes}"));
    open(house, &host, vec![document]).await
}

/// Every file below a folder that holds one of these words.
fn holding(folder: &Path, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, words));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let held = words.iter().filter(|word| bytes.windows(word.len()).any(|window| window == word.as_bytes()));
        found.extend(held.map(|word| format!("{word} in {}", path.display())));
    }
    found
}

/// All that is logged, to the last detail.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Listens to this thread; everything of an engagement happens on it where the runtime has no other.
    fn listen(&self) -> DefaultGuard {
        let log = self.clone();
        let all = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_span_events(FmtSpan::FULL);
        tracing::subscriber::set_default(all.with_ansi(false).with_writer(move || log.clone()).finish())
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn none_of_twenty_credentials_is_exposed_told_logged_or_written_down() {
    let (house, log) = (House::open(), Log::default());
    let _listening = log.listen();
    let engagements = entrusted(&house).await;
    let canaries: Vec<String> =
        (0..CANARIES).flat_map(|number| [canary("static", number), canary("user", number)]).collect();
    for number in 0..CANARIES {
        let id = engagements.begin("teller", Some(&user(number)), "go").await.unwrap();
        engagements.wait(&id, None, Duration::from_secs(25)).await.unwrap();
        let (state, _) = engagements.state(&id, Some(&user(number))).unwrap();
        assert_eq!(state["status"], "completed", "{state:#}");
        assert!(state["result"]["exposes"]["history"].is_object(), "{state:#}");
        // The members of an engagement have names; the whole of it has none.
        assert!(state["result"]["exposes"].get("whole").is_some_and(Value::is_null), "{state:#}");
        let shown = format!("{state}{}", engagements.audit(&id, OWNER).unwrap());
        let told: Vec<&String> = canaries.iter().filter(|word| shown.contains(*word)).collect();
        assert!(told.is_empty(), "{told:?} in {shown}");
    }
    let logged = log.text();
    assert!(logged.contains("execute_tool tool0") && logged.contains("execute_tool ledger"), "{logged}");
    let told: Vec<&String> = canaries.iter().filter(|word| logged.contains(*word)).collect();
    assert!(told.is_empty(), "{told:?} in {logged}");
    let seen = std::fs::read_to_string(house.folder.path().join("seen")).unwrap();
    let unseen: Vec<&String> = canaries.iter().filter(|word| !seen.contains(*word)).collect();
    assert!(unseen.is_empty(), "no tool was given {unseen:?}");
    drop(engagements);
    let data = house.folder.path().join("node");
    assert_eq!(holding(&data, &canaries), [""; 0]);
    drop(house.node);
    assert_eq!(holding(&data, &canaries), [""; 0], "after the node closed its store");
}

const GUARDED: &str = r#"
  verdict:
    kind: static
    description: Judges.
    cases: [{contains: forbidden, returns: {safe: false}}]
    returns: {safe: true}
models:
  m:
    kind: scripted
    script:
      rules:
        - {when: {contains: tell}, text: "forbidden words of MARKER"}
        - {when: {}, text: "kind words of MARKER"}
model: m
"#;

/// Watches an engagement, state by state; whether the words of the model were told in the end.
async fn watched(engagements: &Arc<Engagements>, id: &str) -> bool {
    let mut told = false;
    loop {
        let (state, known) = engagements.state(id, Some(USER)).unwrap();
        if !told && state.to_string().contains("MARKER") {
            told = true;
            // The journal only grows: what stands in it now stood in it when the state was told, or came after.
            let trail = engagements.audit(id, OWNER).unwrap();
            let steps: Vec<&Value> = trail["steps"].as_array().unwrap().iter().collect();
            let place = |name: &str| steps.iter().position(|step| step["step"] == name);
            let (verdict, answered) = (place("guardrail_returned"), place("answered"));
            assert!(verdict.is_some() && verdict < answered, "{trail:#}");
        }
        if state["status"] != "running" {
            return told;
        }
        engagements.wait(id, Some(known), Duration::from_secs(20)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_word_of_a_model_leaves_before_the_verdict_however_often_somebody_looks() {
    let runs = wanted("RIALTO_RUNS", RUNS);
    let house = House::open();
    let guarded = agent("speaker", "guardrails: {output: {tool_name: verdict, assertion: safe}}\n");
    let engagements = open(&house, GUARDED, vec![guarded]).await;
    let (mut going, mut told) = (JoinSet::new(), [0, 0]);
    for run in 0..runs {
        while going.len() >= AT_ONCE {
            let (kind, was_told): (usize, bool) = going.join_next().await.unwrap().unwrap();
            told[kind] += usize::from(was_told);
        }
        let (engagements, kind) = (Arc::clone(&engagements), run % 2);
        going.spawn(async move {
            let words = if kind == 0 { "tell me" } else { "greet me" };
            let id = engagements.begin("speaker", Some(USER), words).await.unwrap();
            (kind, watched(&engagements, &id).await)
        });
    }
    while let Some(done) = going.join_next().await {
        let (kind, was_told) = done.unwrap();
        told[kind] += usize::from(was_told);
    }
    println!("{runs} runs, told where it was held back: {}, where it was let pass: {}", told[0], told[1]);
    assert_eq!(told, [0, runs / 2]);
}

/// The refusal that somebody hears.
fn heard(outcome: Result<(Value, u64), Error>) -> (String, String) {
    match outcome {
        Err(Error::Refusal(refusal)) => (refusal.code.to_string(), format!("{refusal:?}")),
        other => panic!("{other:?} is no refusal"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_names_of_engagements_learns_nothing_and_is_stopped_after_a_hundred() {
    let guesses = wanted("RIALTO_GUESSES", GUESSES);
    let (folder, millis) = (tempfile::tempdir().unwrap(), Arc::new(AtomicI64::new(1_777_636_800_000)));
    let clock = Clock::Set(Arc::clone(&millis));
    let config = Config { data: folder.path().join("node"), clock, ..Config::default() };
    let house = House { node: Arc::new(Node::open(&config, &mut |_, _| {}).unwrap()), folder };
    let engagements = open(&house, GUARDED, vec![agent("speaker", "")]).await;
    let id = engagements.begin("speaker", Some(USER), "greet me").await.unwrap();
    until(&engagements, &id, "completed").await;
    let (mut not_found, mut stopped) = (0, 0);
    let mut words = None;
    for guess in 0..guesses {
        // Every third names an engagement that is there.
        let name = if guess % 3 == 0 { id.clone() } else { format!("{guess:040x}") };
        let (code, said) = heard(engagements.state(&name, Some(OTHER)));
        match code.as_str() {
            "engagement_not_found" => {
                not_found += 1;
                assert_eq!(*words.get_or_insert(said.clone()), said, "one of another is told like none");
            }
            "too_many_requests" => stopped += 1,
            other => panic!("{other}"),
        }
    }
    println!("{guesses} guesses: {not_found} not found, {stopped} stopped");
    assert_eq!((not_found, stopped), (100, guesses - 100));
    // Others are not held up by that, each for his own.
    for guesser in 0..guesses / 1_000 {
        for guess in 0..100 {
            refused(engagements.state(&format!("{guess:040x}"), Some(&user(guesser))), "engagement_not_found");
        }
        refused(engagements.state(&id, Some(&user(guesser))), "too_many_requests");
    }
    assert_eq!(engagements.state(&id, Some(USER)).unwrap().0["status"], "completed");
    // Who waits may guess again, as slowly as before.
    millis.fetch_add(36_000, Ordering::Relaxed);
    refused(engagements.state(&id, Some(OTHER)), "engagement_not_found");
    refused(engagements.state(&id, Some(OTHER)), "too_many_requests");
    assert_eq!(json!(house.node.store().engagement(&id).unwrap().unwrap().caller), json!(USER));
}
