//! Many users at once: nobody's call is ever made in another's name, also beside calls that are given up.

use host::{
    Body, Configuration, Http, HttpError, HttpRequest, HttpResponse, Identity, Means, Pending, Pins, ToolError, Toolbox,
};
use json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const USERS: usize = 64;
const CALLS: usize = 10_000;
/// Calls that are under way at once.
const AT_ONCE: usize = 10_000;

/// How many calls are made: ten thousand, or as many as somebody asks for.
#[expect(clippy::disallowed_methods, reason = "whoever wants more calls than every run makes says so")]
fn wanted() -> usize {
    std::env::var("RIALTO_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(CALLS)
}

/// A tool that says whether the credential is the one of the user whom the inputs name.
#[derive(Default)]
struct Mirror {
    asked: AtomicUsize,
}

struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>> {
        let next = self.0.take();
        Box::pin(async move { Ok(next) })
    }
}

impl Http for Mirror {
    fn send(&self, request: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            let question: Value = serde_json::from_slice(&request.body.unwrap_or_default()).unwrap();
            let user = question["params"]["user"].as_str().unwrap().to_owned();
            // Others come between.
            tokio::time::sleep(Duration::from_micros((number % 5) as u64 * 100)).await;
            let carried: Vec<&String> =
                request.headers.iter().filter(|(name, _)| name == "authorization").map(|(_, value)| value).collect();
            let is_own = carried == [&format!("Bearer token-of-{user}")];
            let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"own": is_own, "user": user}});
            let body = Box::new(Whole(Some(answer.to_string().into_bytes())));
            Ok(HttpResponse { status: 200, headers: Vec::new(), body })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_users_at_once_never_share_a_credential() {
    let mut text = "tools: {whoami: {kind: json-rpc, description: x, url: 'https://a.example/', method: m}}\ncredentials:\n  users:\n".to_owned();
    for user in 0..USERS {
        writeln!(text, "    - {{tool: whoami, user: u{user}, env: U{user}}}").unwrap();
    }
    let environment = |name: &str| Some(format!("token-of-u{}", name.strip_prefix('U')?));
    let configuration = Configuration::read(text.as_bytes(), Path::new("."), &environment).unwrap();
    let mirror = Arc::new(Mirror::default());
    let http: Arc<dyn Http> = Arc::clone(&mirror) as Arc<dyn Http>;
    let toolbox =
        Arc::new(Toolbox::open(&configuration, Means { http, pins: Pins::new(), visits: None }).await.unwrap());
    let (mut calls, mut answered, wanted) = (JoinSet::new(), 0, wanted());
    for number in 0..wanted {
        while calls.len() >= AT_ONCE {
            answered += usize::from(is_own(calls.join_next().await.unwrap().unwrap()));
        }
        let (toolbox, user) = (Arc::clone(&toolbox), format!("u{}", number * 31 % USERS));
        calls.spawn(async move {
            let (inputs, id) = (json!({"user": user}), format!("call-{number}"));
            // Every seventh is given up at once.
            let time = if number % 7 == 0 { Duration::ZERO } else { Duration::from_secs(60) };
            let outcome = toolbox.call("whoami", &inputs, Identity::User(&user), &id, Some(time)).await;
            (user, outcome)
        });
    }
    while let Some(call) = calls.join_next().await {
        answered += usize::from(is_own(call.unwrap()));
    }
    println!("{wanted} calls of {USERS} users, {answered} answered, each in its own name");
    assert!(answered >= wanted * 6 / 7, "{answered}");
    assert!(mirror.asked.load(Ordering::Relaxed) >= answered);
}

/// Whether a call was made in the name of its user; one that was given up was made in nobody's.
fn is_own((user, outcome): (String, Result<Value, ToolError>)) -> bool {
    match outcome {
        Ok(said) => {
            assert_eq!(said, json!({"own": true, "user": user}));
            true
        }
        Err(error) => {
            assert_eq!(error.code(), "tool_timeout", "{error}");
            false
        }
    }
}
