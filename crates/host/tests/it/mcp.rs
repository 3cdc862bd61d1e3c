//! MCP servers: real ones by both ways, and one with every bad habit.

use crate::packages::{TIME, node, python};
use crate::wire::Wire;
use crate::world::{open, open_with};
use host::{Identity, Pins, State, ToolError, Toolbox};
use json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a test waits for something that comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The version that is known to work.
const NODE: &str = "2026.8.31";

async fn call(toolbox: &Toolbox, name: &str, inputs: Value) -> Result<Value, ToolError> {
    toolbox.call(name, &inputs, Identity::Nobody, "call-1", Some(PATIENCE)).await
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_python_server_of_time_tells_the_time() {
    let program = python("mcp-server-time", TIME);
    let text = format!("tools: {{time: {{kind: mcp, command: ['{}']}}}}", program.display());
    let toolbox = open(&text, Path::new(".")).await;
    assert_eq!(toolbox.names(), ["time.convert-time", "time.get-current-time"], "{:?}", toolbox.problems());
    let now = call(&toolbox, "time.get-current-time", json!({"timezone": "Europe/Zurich"})).await.unwrap();
    assert_eq!(now["timezone"], "Europe/Zurich", "{now}");
    let refused = call(&toolbox, "time.get-current-time", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), "tool_call_invalid", "its schema is held before it is asked");
    let failed = call(&toolbox, "time.get-current-time", json!({"timezone": "Nowhere/Else"})).await.unwrap_err();
    assert_eq!(failed.code(), "tool_failed", "{failed}");
}

#[tokio::test]
async fn the_node_server_of_everything_answers_over_standard_output() {
    let script = node("server-everything", NODE);
    let text = format!(
        "
tools:
  all:
    kind: mcp
    command: [node, '{}', stdio]
    credential_env: TOKEN
    rename: {{echo: repeat}}
    idempotent: [echo]
    tools: [echo, get-sum, get-structured-content, get-env]
credentials: {{static: {{bot: {{env: MARKER}}}}}}
",
        script.display()
    );
    let toolbox = open(&text, Path::new(".")).await;
    let names = ["all.get-env", "all.get-structured-content", "all.get-sum", "repeat"];
    assert_eq!(toolbox.names(), names, "{:?}", toolbox.problems());
    assert!(toolbox.tool("repeat").unwrap().definition().idempotent);
    assert_eq!(call(&toolbox, "repeat", json!({"message": "hi"})).await, Ok(json!({"text": "Echo: hi"})));
    let sum = call(&toolbox, "all.get-sum", json!({"a": 2, "b": 3})).await.unwrap();
    assert!(sum["text"].as_str().unwrap().contains('5'), "{sum}");
    let weather = call(&toolbox, "all.get-structured-content", json!({"location": "New York"})).await.unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    let anonymous = call(&toolbox, "all.get-env", json!({})).await.unwrap().to_string();
    assert!(!anonymous.contains("TOKEN"), "nobody's call has nobody's credential");
    let env = toolbox.call("all.get-env", &json!({}), Identity::Static("bot"), "c", Some(PATIENCE)).await.unwrap();
    let env = env.to_string();
    assert!(env.contains("TOKEN") && env.contains("[credential withheld]") && !env.contains("marker-5f2d"), "{env}");
}

/// A process that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_node_server_of_everything_answers_over_streamable_http() {
    let script = node("server-everything", NODE);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = || {
        let mut command = Command::new("node");
        command.arg(&script).arg("streamableHttp").env("PORT", port.to_string());
        Ended(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let text = format!("tools: {{all: {{kind: mcp, url: 'http://127.0.0.1:{port}/mcp', timeout_seconds: 60}}}}");
    let toolbox = open_with(&text, Path::new("."), Arc::new(Wire), Pins::new()).await;
    assert!(toolbox.names().is_empty() && toolbox.problems().contains_key("all"), "it does not run yet");
    let server = start();
    until("its tools are there once it runs", || toolbox.tool("all.echo").is_some()).await;
    assert!(toolbox.problems().is_empty(), "{:?}", toolbox.problems());
    assert_eq!(call(&toolbox, "all.echo", json!({"message": "hi"})).await, Ok(json!({"text": "Echo: hi"})));
    let weather = call(&toolbox, "all.get-structured-content", json!({"location": "Chicago"})).await.unwrap();
    assert!(weather["conditions"].is_string(), "{weather}");
    drop(server);
    let error = call(&toolbox, "all.echo", json!({"message": "hi"})).await.unwrap_err();
    assert_eq!(error.code(), "tool_unavailable", "{error}");
    let _again = start();
    let begun = Instant::now();
    while call(&toolbox, "all.echo", json!({"message": "hi"})).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "a session that the server forgot is begun again");
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn the_node_server_of_files_stays_in_its_folder() {
    let (script, folder) = (node("server-filesystem", NODE), tempfile::tempdir().unwrap());
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("note.txt"), "Hello.").unwrap();
    let text =
        format!("tools: {{files: {{kind: mcp, command: [node, '{}', '{}']}}}}", script.display(), folder.display());
    let toolbox = open(&text, Path::new(".")).await;
    assert!(toolbox.names().len() > 10, "{:?} {:?}", toolbox.names(), toolbox.problems());
    let path = folder.join("note.txt");
    let read = call(&toolbox, "files.read-text-file", json!({"path": path.to_str().unwrap()})).await.unwrap();
    assert!(read.to_string().contains("Hello."), "{read}");
    let refused = call(&toolbox, "files.read-text-file", json!({"path": "/etc/passwd"})).await.unwrap_err();
    assert_eq!(refused.code(), "tool_failed", "{refused}");
}

async fn hostile(folder: &Path) -> Toolbox {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hostile.py");
    let text = format!(
        "
tools:
  bad: {{kind: mcp, command: [python3, '{}'], credential_env: TOKEN}}
credentials:
  users: [{{tool: bad, user: ada, env: MARKER}}]
",
        script.display()
    );
    open(&text, folder).await
}

fn starts(folder: &Path) -> usize {
    std::fs::read(folder.join("starts")).unwrap().len()
}

#[tokio::test]
async fn what_a_server_offers_is_judged_tool_by_tool() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = hostile(folder.path()).await;
    assert_eq!(toolbox.tool("bad.echo").unwrap().state(), &State::Ready);
    assert!(matches!(toolbox.tool("bad.bidi").unwrap().state(), State::Rejected(_)));
    assert_eq!(call(&toolbox, "bad.bidi", json!({})).await.unwrap_err().code(), "tool_unknown");
    assert!(toolbox.tool("bad.two-names").is_none(), "two tools of one name are both left out");
    let problem = &toolbox.problems()["bad"];
    assert!(problem.contains("`bad.two-names`") && problem.contains("cannot be written"), "{problem}");
}

#[tokio::test]
async fn a_dead_server_is_started_again_and_its_call_has_an_unknown_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = hostile(folder.path()).await;
    let said = call(&toolbox, "bad.echo", json!({"a": 1})).await.unwrap();
    assert_eq!(said, json!({"said": {"a": 1}, "token": null}));
    let lost = call(&toolbox, "bad.die", json!({})).await.unwrap_err();
    assert!(lost.is_outcome_unknown() && lost.code() == "tool_outcome_unknown", "{lost}");
    let begun = Instant::now();
    while call(&toolbox, "bad.echo", json!({})).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "it is started again");
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(starts(folder.path()), 2, "after a pause, and not again and again");
}

#[tokio::test]
async fn each_credential_has_a_session_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = hostile(folder.path()).await;
    let as_user = |user| toolbox.call("bad.echo", const { &Value::Null }, Identity::User(user), "c", Some(PATIENCE));
    assert_eq!(
        as_user("bob").await,
        Err(ToolError::Inputs("the inputs: the document breaks the schema's rule `/type` at ``".to_owned()))
    );
    let inputs = json!({});
    let said = toolbox.call("bad.echo", &inputs, Identity::User("ada"), "c", Some(PATIENCE)).await.unwrap();
    assert_eq!(said["token"], "[credential withheld]");
    assert_eq!(call(&toolbox, "bad.echo", json!({})).await.unwrap()["token"], Value::Null);
    let bob = toolbox.call("bad.echo", &inputs, Identity::User("bob"), "c", Some(PATIENCE)).await;
    assert_eq!(bob, Err(ToolError::Credential));
    assert_eq!(starts(folder.path()), 2);
}

#[tokio::test]
async fn a_definition_that_changes_while_it_runs_is_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = hostile(folder.path()).await;
    let first = toolbox.tool("bad.echo").unwrap().digest().to_owned();
    assert_eq!(call(&toolbox, "bad.change", json!({})).await, Ok(json!({"text": "changed"})));
    let quarantined = State::Quarantined { approved: first };
    until("the list is read again", || *toolbox.tool("bad.echo").unwrap().state() == quarantined).await;
    assert_eq!(call(&toolbox, "bad.echo", json!({})).await, Err(ToolError::Changed));
    let now = toolbox.tool("bad.echo").unwrap();
    assert!(toolbox.approve("bad.echo", now.digest()));
    assert!(call(&toolbox, "bad.echo", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_server_gets_neither_a_person_nor_a_model_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = hostile(folder.path()).await;
    let heard = call(&toolbox, "bad.ask", json!({})).await.unwrap()["text"].as_str().unwrap().to_owned();
    assert!(heard.contains("\"error\"") && !heard.contains("accept"), "{heard}");
}

#[tokio::test]
async fn too_much_ends_the_server_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = hostile(folder.path()).await;
    assert_eq!(call(&toolbox, "bad.big", json!({})).await.unwrap_err().code(), "tool_protocol_error");
    let late = toolbox.call("bad.hang", &json!({}), Identity::Nobody, "c", Some(Duration::from_millis(300))).await;
    assert_eq!(late, Err(ToolError::Timeout));
    for habit in ["bad.flood", "bad.endless"] {
        let begun = Instant::now();
        let error = loop {
            match call(&toolbox, habit, json!({})).await.unwrap_err() {
                ToolError::Unavailable(_) if begun.elapsed() < PATIENCE => sleep(Duration::from_millis(100)).await,
                error => break error,
            }
        };
        assert_eq!(error.code(), "tool_outcome_unknown", "{habit}: {error}");
    }
}
