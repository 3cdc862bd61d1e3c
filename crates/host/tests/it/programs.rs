//! Tools that are programs: bounded, ended with everything they started, and silent about credentials.

use crate::world::open;
use host::{Identity, ToolError, Toolbox};
use json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How long a test waits for something that comes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn program(script: &str, more: &str, folder: &Path) -> Toolbox {
    let script = script.replace('\'', "''");
    let text = format!(
        "
tools:
  it:
    kind: command
    description: Runs.
    command: [sh, -c, '{script}']
    credential_env: TOKEN
    {more}
credentials: {{static: {{bot: {{env: MARKER}}}}}}
"
    );
    open(&text, folder).await
}

async fn run(script: &str, inputs: Value) -> Result<Value, ToolError> {
    let folder = tempfile::tempdir().unwrap();
    program(script, "", folder.path())
        .await
        .call("it", &inputs, Identity::Static("bot"), "call-7", Some(PATIENCE))
        .await
}

#[tokio::test]
async fn inputs_go_in_and_outputs_come_out_as_json() {
    assert_eq!(run("cat", json!({"a": [1, "ü"]})).await, Ok(json!({"a": [1, "ü"]})));
    assert_eq!(run("echo \\\"$RIALTO_CALL_ID\\\"", json!({})).await, Ok(json!("call-7")));
    assert_eq!(run("echo 7", json!({"long": "x".repeat(200_000)})).await, Ok(json!(7)), "unread inputs do no harm");
}

#[tokio::test]
async fn what_a_program_says_wrongly_is_told_apart() {
    for (script, error) in [
        ("echo hello", ToolError::Protocol("the program said something that is no JSON".to_owned())),
        ("head -c 2000000 /dev/zero", ToolError::Protocol("the program said more than is taken".to_owned())),
        ("exit 3", ToolError::Failed("the program failed".to_owned())),
        ("echo {\\\"error\\\": \\\"no such customer\\\"}; exit 1", ToolError::Failed("no such customer".to_owned())),
    ] {
        assert_eq!(run(script, json!({})).await, Err(error), "{script}");
    }
    let folder = tempfile::tempdir().unwrap();
    let missing = "tools: {it: {kind: command, description: x, command: [/nowhere/at-all]}}";
    let error = open(missing, folder.path()).await.call("it", &json!({}), Identity::Nobody, "c", None).await;
    assert_eq!(error.unwrap_err().code(), "tool_unavailable");
}

#[tokio::test]
async fn a_credential_reaches_the_program_and_nobody_else() {
    let printed = run("printf '{\"length\": %s, \"said\": \"%s\"}' ${#TOKEN} $TOKEN", json!({})).await.unwrap();
    assert_eq!(printed, json!({"length": 11, "said": "[credential withheld]"}));
    let failed = run("printf '{\"error\": \"bad %s\"}' $TOKEN; exit 1", json!({})).await.unwrap_err();
    assert_eq!(failed, ToolError::Failed("bad [credential withheld]".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let toolbox = program("echo \\\"$TOKEN\\\"", "", folder.path()).await;
    assert_eq!(toolbox.call("it", &json!({}), Identity::Nobody, "c", Some(PATIENCE)).await, Ok(json!("")));
    let error = toolbox.call("it", &json!({}), Identity::User("ada"), "c", Some(PATIENCE)).await;
    assert_eq!(error, Err(ToolError::Credential), "a user's call never uses another credential");
    let tool = toolbox.tool("it").unwrap();
    let shown = format!("{toolbox:?} {tool:?} {:?} {:?}", toolbox.vault(), tool.definition());
    assert!(!shown.contains("marker-5f2d"), "{shown}");
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_program_that_nobody_waits_for_ends_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = program("sleep 600 & echo $! > begun; mv begun started; sleep 600", "", folder.path()).await;
    let (started, inputs) = (folder.path().join("started"), json!({}));
    tokio::select! {
        outcome = toolbox.call("it", &inputs, Identity::Nobody, "c", None) => panic!("{outcome:?}"),
        () = until("the program begins", || started.exists()) => {}
    }
    let process = std::fs::read_to_string(started).unwrap();
    let status = Path::new("/proc").join(process.trim()).join("status");
    // A process that nobody has asked about yet is a zombie, and that is dead.
    let is_dead = || !std::fs::read_to_string(&status).is_ok_and(|status| !status.contains("State:\tZ"));
    until("what the program started ends", is_dead).await;
    let late = toolbox.call("it", &inputs, Identity::Nobody, "c", Some(Duration::from_millis(50))).await;
    assert_eq!(late, Err(ToolError::Timeout));
}

#[tokio::test]
async fn a_program_is_not_started_for_inputs_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = program("touch started; echo 1", "input: {type: object, required: [id]}", folder.path()).await;
    let refused = toolbox.call("it", &json!({}), Identity::Nobody, "c", Some(PATIENCE)).await.unwrap_err();
    assert_eq!(refused.code(), "tool_call_invalid");
    assert!(!folder.path().join("started").exists());
    assert_eq!(toolbox.call("it", &json!({"id": 1}), Identity::Nobody, "c", Some(PATIENCE)).await, Ok(json!(1)));
    assert!(folder.path().join("started").exists());
}
