//! What a node adds to each call of a tool, with every step journaled: `cargo xtask bench agent`.
//!
//! The model is a script and the tool answers from memory, so what is measured is the node: checks, journal, bookkeeping.
//! Twice: with a tool that may not be called again, for which the disk is waited for before each call, and with one that
//! may. LangGraph runs the same loop in the same run where `--python` names an interpreter that has it with its SQLite
//! checkpointer.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark measures and prints")]

use host::Configuration;
use json::{Value, json};
use node::{Config, Engagements, Hosting, Node};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The same loop for LangGraph.
const PEER: &str = include_str!("bench-agent.py");

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How much is measured.
struct Wanted {
    calls: usize,
    engagements: usize,
    at_once: usize,
    python: Option<PathBuf>,
    report: Option<PathBuf>,
}

impl Wanted {
    fn read() -> Done<Self> {
        let mut wanted = Self { calls: 20, engagements: 100, at_once: 32, python: None, report: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or("every option has a value")?;
            match name.as_str() {
                "--calls" => wanted.calls = value.parse()?,
                "--engagements" => wanted.engagements = value.parse()?,
                "--at-once" => wanted.at_once = value.parse()?,
                "--python" => wanted.python = Some(value.into()),
                "--report" => wanted.report = Some(value.into()),
                _ => return Err(format!("`{name}` is no option").into()),
            }
        }
        Ok(wanted)
    }
}

/// What was measured of one.
struct Figures {
    /// Microseconds that one call takes, one engagement after the other.
    call_micros: f64,
    /// Engagements in a second, many at once.
    per_second: f64,
    steps: u64,
}

fn main() -> Done<()> {
    let wanted = Wanted::read()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(agent::ROOMY_STACK_BYTES)
        .on_thread_start(agent::has_room)
        .enable_all()
        .build()?;
    let wanted = Arc::new(wanted);
    let measured = |idempotent| -> Done<Figures> {
        // On a thread that serves, as a request would be.
        let wanted = Arc::clone(&wanted);
        runtime.block_on(runtime.spawn(async move { measure(&wanted, idempotent).await }))?
    };
    let ours = [measured(false)?, measured(true)?];
    let theirs = wanted.python.as_deref().map(|python| peer(python, &wanted)).transpose()?;
    let text = report(&wanted, &ours, theirs.as_ref());
    print!("{text}");
    match &wanted.report {
        Some(path) => Ok(std::fs::write(path, text)?),
        None => Ok(()),
    }
}

/// An agent that calls a tool so many times and answers then.
fn hosting(calls: usize, idempotent: bool) -> Done<Hosting> {
    let mut turns: Vec<Value> = (0..calls).map(|_| json!({"calls": [{"tool": "look", "inputs": {"n": 1}}]})).collect();
    turns.push(json!({"text": "done"}));
    let configuration = json!({
        "tools": {"look": {"kind": "static", "description": "Looks.", "returns": {"found": true}, "idempotent": idempotent, "input": {
            "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]
        }}},
        "models": {"script": {"kind": "scripted", "script": {"turns": turns}}},
        "model": "script",
    });
    let configuration = Configuration::read(configuration.to_string().as_bytes(), Path::new("."), &|_| None)?;
    let document = "kind: openagentspec:v1/agent\nname: looker\ndescription: Looks.\nintent: You look.\nowner: me\n\
        capabilities: {look: {user_identity: false, input_restriction: {assertion: recent.look.inputs.n == 1}}}\n";
    let mut options = agent::Options::default();
    (options.limits.calls, options.limits.turns) = (calls + 1, calls + 2);
    let documents = vec![("looker.yaml".to_owned(), document.as_bytes().to_vec())];
    Ok(Hosting { configuration, documents, people: Vec::new(), options, strangers: true })
}

async fn measure(wanted: &Wanted, idempotent: bool) -> Done<Figures> {
    let folder = tempfile::tempdir()?;
    let config = Config { data: folder.path().to_owned(), ..Config::default() };
    let node = Arc::new(Node::open(&config, &mut |_, _| {})?);
    let engagements = Engagements::open(node, hosting(wanted.calls, idempotent)?).await?;
    one(&engagements).await?;
    let begun = Instant::now();
    let mut steps = 0;
    for _ in 0..wanted.engagements {
        steps = one(&engagements).await?;
    }
    let calls = (wanted.engagements * wanted.calls) as f64;
    let call_micros = begun.elapsed().as_secs_f64() * 1e6 / calls;
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..wanted.at_once {
        let (engagements, share) = (Arc::clone(&engagements), wanted.engagements.div_ceil(wanted.at_once));
        tasks.spawn(async move {
            for _ in 0..share {
                one(&engagements).await.map_err(|error| format!("{worker}: {error}"))?;
            }
            Ok::<usize, String>(share)
        });
    }
    let mut done = 0;
    while let Some(share) = tasks.join_next().await {
        done += share??;
    }
    Ok(Figures { call_micros, per_second: done as f64 / begun.elapsed().as_secs_f64(), steps })
}

/// One engagement from its first word to its answer; how many steps its journal has.
async fn one(engagements: &Arc<Engagements>) -> Done<u64> {
    let id = engagements.begin("looker", None, "look").await?;
    engagements.wait(&id, None, Duration::from_secs(25)).await?;
    let (state, steps) = engagements.state(&id, None)?;
    if state.get("status").and_then(Value::as_str) == Some("completed") {
        Ok(steps)
    } else {
        Err(format!("{state}").into())
    }
}

fn peer(python: &Path, wanted: &Wanted) -> Done<(Figures, String)> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(python)
        .arg("-c")
        .arg(PEER)
        .arg(folder.path().join("checkpoints.db"))
        .args([wanted.calls, wanted.engagements].map(|number| number.to_string()))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| told.get(name).and_then(Value::as_f64).unwrap_or_default();
    let version = told.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    let figures =
        Figures { call_micros: number("call_micros"), per_second: number("per_second"), steps: number("steps") as u64 };
    Ok((figures, version))
}

fn report(wanted: &Wanted, ours: &[Figures; 2], theirs: Option<&(Figures, String)>) -> String {
    let Wanted { calls, engagements, at_once, .. } = wanted;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut text = format!(
        "# Hosted agents: what a node adds to a call\n\n\
        Written by `cargo xtask bench agent --python PYTHON --report docs/bench/agent.md`.\n\n\
        {engagements} engagements of {calls} calls each; model and tool answer at once, every step is in the journal before\n\
        the next effect. One after the other for the time of a call, {at_once} at once for engagements in a second.\n\
        A {build} build.\n\n\
        | | µs per call | engagements per second | steps in a journal |\n|---|---|---|---|\n"
    );
    let mut row = |name: &str, figures: &Figures| {
        let Figures { call_micros, per_second, steps } = figures;
        let _ = writeln!(text, "| {name} | {call_micros:.0} | {per_second:.1} | {steps} |");
    };
    let [strict, repeatable] = ours;
    row("Rialto, a tool that may not be called again: on disk before each call", strict);
    row("Rialto, a tool that may be called again", repeatable);
    if let Some((figures, version)) = theirs {
        row(&format!("LangGraph {version}, SQLite checkpointer, `durability=\"sync\"`"), figures);
        let times = |ours: &Figures| figures.call_micros / ours.call_micros;
        let (first, second) = (times(strict), times(repeatable));
        let _ = writeln!(text, "\nLangGraph takes {first:.1} and {second:.1} times as long for a call.");
    }
    text
}
