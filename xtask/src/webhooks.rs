//! What is brought to a webhook, verified by a library of Standard Webhooks that others wrote.

use crate::run;
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The package, as it is published for Python.
const PACKAGE: &str = "standardwebhooks";

/// Verifies a message by each of its secrets, and none that is altered.
const VERIFY: &str = "
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
message = json.load(sys.stdin)
for secret in message['secrets']:
    hook = Webhook(secret)
    hook.verify(message['body'].encode(), message['headers'])
    for body, headers in [
        (message['body'] + ' ', message['headers']),
        (message['body'], {**message['headers'], 'webhook-id': 'evt_x_8'}),
    ]:
        try:
            hook.verify(body.encode(), headers)
        except WebhookVerificationError:
            continue
        sys.exit('an altered message is verified')
print(len(message['secrets']))
";

/// Installs the package beside the build and lets it verify a message of ours.
pub fn command(root: &Path) -> Result<()> {
    let folder = root.join("target/python");
    if !folder.join("bin/python").exists() {
        run::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    run::run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", PACKAGE]))?;
    let example = ["run", "--quiet", "--package", "rialto-feed", "--example", "message"];
    let message = run::capture(&mut run::cargo(root, &example))?;
    let mut python = Command::new(folder.join("bin/python"));
    let mut child = python.args(["-c", VERIFY]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("no standard input")?.write_all(message.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{PACKAGE} does not verify what we sign");
    println!("    {PACKAGE} verifies a message by {} secrets", String::from_utf8_lossy(&output.stdout).trim());
    Ok(())
}
