//! OAS Agent: documents and folders of agents that the real binary must refuse, or take.

use super::bytes::{Names, bytes};
use super::case::{Crawl, Hosting, Lint};
use super::stage::SLACK;
use crate::crash::{Program, start};
use anyhow::{Context, Result, ensure};
use json::Value;
use std::fs;
use std::process::Command;

/// Has the binary judge a document; `code` is that of the variant where the step names none.
pub(crate) fn lint(program: &Program, lint: &Lint, names: &Names, code: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("agent.yaml");
    fs::write(&file, bytes(&lint.document, names)?)?;
    let begun = start();
    let ran = Command::new(program.binary()).args(["agent", "lint", "--json"]).arg(&file).output()?;
    let took = begun.elapsed().as_millis() as u64;
    let said = String::from_utf8_lossy(&ran.stdout);
    ensure!(took <= lint.within_ms * SLACK, "it took {took} ms");
    let told: Value = serde_json::from_slice(&ran.stdout).with_context(|| format!("it says {said}"))?;
    let findings = told.get("findings").and_then(Value::as_array).context("no findings")?;
    let errors = || findings.iter().filter(|found| found.get("grade").is_some_and(|grade| grade == "error"));
    let Some(code) = lint.code.as_deref().or(code) else {
        ensure!(errors().count() == 0 && ran.status.success(), "the document is refused: {said}");
        return Ok(());
    };
    let is = |found: &Value, member: &str, wanted: &str| found.get(member).is_some_and(|value| value == wanted);
    let found = errors().find(|found| is(found, "code", code));
    let found = found.with_context(|| format!("nobody finds `{code}`: {said}"))?;
    ensure!(ran.status.code() == Some(1), "the exit code is {:?}", ran.status.code());
    let place = lint.at.as_deref();
    ensure!(place.is_none_or(|place| is(found, "at", place)), "it is found elsewhere: {found}");
    Ok(())
}

/// Has the binary look for agents at an address, into a folder of its own.
pub(crate) fn crawl(program: &Program, crawl: &Crawl, address: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program.binary());
    command.args(["crawl", &format!("{address}/"), "--private-networks", "--per-minute", "60000", "--json", "--data"]);
    let ran = command.arg(folder.path().join("data")).output()?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let told: Value = serde_json::from_slice(&ran.stdout)
        .with_context(|| format!("it says {said}{}", String::from_utf8_lossy(&ran.stderr)))?;
    let list = |name: &str| told.get(name).and_then(Value::as_array).into_iter().flatten();
    let found = list("findings").any(|found| found.get("code").is_some_and(|code| *code == crawl.code));
    ensure!(found, "nobody finds `{}`: {said}", crawl.code);
    let kept = list("agents").filter(|agent| agent.get("outcome").is_some_and(|outcome| outcome == "new")).count();
    ensure!(kept == crawl.kept, "{kept} agents are kept: {said}");
    ensure!(ran.status.code() == Some(1), "the exit code is {:?}: {said}", ran.status.code());
    Ok(())
}

/// Starts a node on a folder of agents; it must end with 3 and say why.
pub(crate) fn refuses(program: &Program, hosting: &Hosting, names: &Names) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let agents = folder.path().join("agents");
    fs::create_dir(&agents)?;
    for (name, spelled) in &hosting.files {
        fs::write(agents.join(name), bytes(spelled, names)?)?;
    }
    let program = program.at(folder.path()).with(&["--agents".to_owned(), agents.display().to_string()]);
    let code = program.refuses_to_start().context("the node starts all the same")?;
    let said = program.said();
    ensure!(code == 3, "the exit code is {code}: {said}");
    for words in &hosting.says {
        ensure!(said.contains(words), "`{words}` is not said: {said}");
    }
    Ok(())
}
