//! How many requests a second a server proves to be somebody's: `cargo xtask bench did`.
//!
//! Requests with did:wba signatures (RFC 9421) go to the node and to the public Python library's own server, the same work
//! over the same connections, one after the other in one run: the signature is checked, the nonce is used up, the caller
//! is named. The node has the caller's DID document in its cache; the library has no cache and looks it up for every
//! request, so it is measured a second time with the document at hand.
//!
//! INVARIANT: every request has a nonce of its own and was signed before the clock started; answers name the caller.

use anyhow::{Context, Result, ensure};
use bench::http::{Connection, get};
use bench::load::{Served, all_at_once};
use bench::node::Program;
use clap::Parser;
use conformance::crash::clock;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use trust::http::{COMPONENTS, Headers, Request, Signing, WINDOW_SECONDS, sign};
use trust::{ProofForm, SecretKey, SigningKey};

/// Measures authenticated requests beside the public Python library.
#[derive(Parser)]
#[command(name = "cargo xtask bench did")]
struct Arguments {
    /// Seconds of each load.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Requests that are signed for the node at most.
    #[arg(long, default_value_t = 120_000)]
    requests: usize,
    /// Requests that are signed for the library at most.
    #[arg(long, default_value_t = 20_000)]
    peer_requests: usize,
    /// Connections that ask at once.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// The version of the library.
    #[arg(long, default_value = "1.0.7")]
    version: String,
    /// The node's binary; by default the one beside this program.
    #[arg(long)]
    rialto: Option<PathBuf>,
    /// Where the library is installed, and stays for the next run.
    #[arg(long)]
    library: Option<PathBuf>,
    /// Prints one JSON document instead of the table.
    #[arg(long)]
    json: bool,
    /// Writes the table as Markdown, too.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// The goal: so many times the library's own server.
const GOAL: f64 = 30.0;

/// What was measured.
#[derive(Serialize)]
struct Report {
    seconds: u64,
    connections: usize,
    version: String,
    node: Rate,
    library: Rate,
    library_warm: Rate,
}

/// How fast a server was.
#[derive(Serialize)]
struct Rate {
    requests: usize,
    per_second: f64,
}

impl Rate {
    fn of(served: &Served) -> Self {
        Self { requests: served.answers, per_second: served.per_second() }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::Builder::new().prefix("rialto-bench-did-").tempdir()?;
    let report = measure(&arguments, folder.path())?;
    let table = report.markdown();
    println!("{}", if arguments.json { serde_json::to_string_pretty(&report)? } else { table.clone() });
    if let Some(output) = &arguments.output {
        std::fs::write(output, format!("# Requests that are somebody's\n\n`cargo xtask bench did`\n\n{table}"))?;
    }
    Ok(())
}

fn measure(arguments: &Arguments, folder: &Path) -> Result<Report> {
    let python = install(arguments, folder)?;
    let script = folder.join("peer.py");
    std::fs::write(&script, include_str!("peer.py"))?;
    let host = Peer::start(&python, &script, folder, "host")?;
    let caller = Caller::new(host.port)?;
    std::fs::write(folder.join("did.json"), caller.document.to_string())?;
    let limit = Duration::from_secs(arguments.seconds);
    let load = |authority: &str, requests: usize| {
        // The first request fills the caches; it is not timed.
        let signed = caller.requests(authority, requests + 1);
        let (first, rest) = signed.split_first().context("nothing is nothing to measure")?;
        let mut body = Vec::new();
        Connection::open(authority)?.succeed(first, &mut body)?;
        let served = all_at_once(authority, rest, arguments.connections, limit)?;
        for body in &served.kept {
            let named: Value = serde_json::from_slice(body)?;
            ensure!(text_of(&named, "did") == caller.did(), "somebody else was named: {named}");
        }
        Ok(Rate::of(&served))
    };
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("rialto"));
    let program = Program {
        binary: arguments.rialto.clone().or_else(beside).context("where is `rialto`? Say it by `--rialto`")?,
        serve_arguments: ["--private-networks", "--connections-per-source", "1024", "--log", "error"]
            .map(str::to_owned)
            .to_vec(),
        environment: vec![("SSL_CERT_FILE".to_owned(), folder.join("authority.pem").display().to_string())],
        data: folder.join("data"),
        log: folder.join("node.log"),
    };
    let (node, _) = program.serve()?;
    let measured = load(&node.authority, arguments.requests)?;
    node.stop()?;
    let peer = |role: &str| {
        let peer = Peer::start(&python, &script, folder, role)?;
        load(&format!("127.0.0.1:{}", peer.port), arguments.peer_requests)
    };
    let (library, library_warm) = (peer("cold")?, peer("warm")?);
    let Arguments { seconds, connections, version, .. } = arguments;
    Ok(Report {
        seconds: *seconds,
        connections: *connections,
        version: version.clone(),
        node: measured,
        library,
        library_warm,
    })
}

/// Somebody with a name on the host of documents.
struct Caller {
    key: SecretKey,
    document: Value,
}

impl Caller {
    fn new(port: u16) -> Result<Self> {
        let key = SecretKey::from(SigningKey::from_seed([42; 32]));
        let did = trust::bound_name(&format!("localhost:{port}"), &["user"], &key)?;
        let document = trust::wba_document(&did, &key, None, "2026-01-01T00:00:00Z", ProofForm::Sdk)?;
        Ok(Self { key, document })
    }

    fn did(&self) -> &str {
        text_of(&self.document, "id")
    }

    /// Signed requests, each with a nonce of its own.
    fn requests(&self, authority: &str, count: usize) -> Vec<Vec<u8>> {
        let target = format!("http://{authority}/whoami");
        let keyid = format!("{}#key-1", self.did());
        let request = Request { method: "GET", target: &target, headers: Headers::new(&[]), body: b"" };
        let created = clock();
        let one = |number: usize| {
            let nonce = format!("{created:x}{number:08x}");
            let expires = created + WINDOW_SECONDS;
            let signing = Signing { key: &self.key, keyid: &keyid, created, expires, nonce: &nonce };
            let mut bytes = get(authority, "/whoami");
            bytes.truncate(bytes.len() - 2);
            for (name, value) in sign(&request, &signing, &COMPONENTS) {
                bytes.extend(format!("{name}: {value}\r\n").into_bytes());
            }
            bytes.extend(b"\r\n");
            bytes
        };
        (0..count).map(one).collect()
    }
}

fn text_of<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The library in a process of its own.
struct Peer {
    child: Child,
    port: u16,
}

impl Peer {
    fn start(python: &Path, script: &Path, folder: &Path, role: &str) -> Result<Self> {
        let mut command = Command::new(python);
        command.arg(script).arg(folder).arg(role).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(folder.join(format!("{role}.log")))?);
        let mut child = command.spawn().with_context(|| format!("`{}` cannot be run", python.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the library has no output")?).read_line(&mut line)?;
        let mut peer = Self { child, port: 0 };
        let told: Value = serde_json::from_str(&line).with_context(|| format!("the library broke as {role}"))?;
        let port = told.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        peer.port = port.context("the library says no port")?;
        Ok(peer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter of an environment that has the library.
fn install(arguments: &Arguments, folder: &Path) -> Result<PathBuf> {
    let home = arguments.library.clone().unwrap_or_else(|| folder.join("library"));
    let python = home.join("bin/python");
    let has = |python: &Path| {
        let wanted = ["-c", "import anp, fastapi, uvicorn, uvloop, httptools"];
        Command::new(python).args(wanted).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !has(&python) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        let packages = [format!("anp=={}", arguments.version), "fastapi<1".into(), "uvicorn[standard]<1".into()];
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(pip).args(packages))?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} cannot be run"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

impl Report {
    fn markdown(&self) -> String {
        let Self { seconds, connections, version, node, library, library_warm } = self;
        let row = |who: &str, rate: &Rate| {
            let times = node.per_second / rate.per_second;
            format!("| {who} | {} | {:.0} | {times:.1} |\n", rate.requests, rate.per_second)
        };
        let (times, at_hand) = (node.per_second / library.per_second, node.per_second / library_warm.per_second);
        let verdict = if times >= GOAL { "met" } else { "not met" };
        format!(
            "{connections} connections, {seconds} s each, requests with did:wba signatures (Ed25519, name bound by `e1_`), \
             one node with its nonces on disk beside `anp` {version} on uvicorn (one process; its nonces are in memory).\n\n\
             | Server | Requests | Per second | Times slower than the node |\n|---|---|---|---|\n{}{}{}\n\
             Goal: {GOAL:.0} times the library's own server. Measured: {times:.1} times, {verdict}; {at_hand:.1} times the same \
             server with a cache that it does not have.\n",
            row("node, DID document in its cache", node),
            row("library as it is, looking up the document each time", library),
            row("library with the document at hand", library_warm),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_whether_the_goal_is_met() {
        let rate = |per_second: f64| Rate { requests: 10, per_second };
        let report = |node: f64| Report {
            seconds: 1,
            connections: 2,
            version: "1.0.7".into(),
            node: rate(node),
            library: rate(10.0),
            library_warm: rate(100.0),
        };
        assert!(report(300.0).markdown().contains("Measured: 30.0 times, met; 3.0 times"));
        let table = report(290.0).markdown();
        assert!(table.contains("Measured: 29.0 times, not met; 2.9 times"), "{table}");
        assert!(table.contains("| library as it is, looking up the document each time | 10 | 10 | 29.0 |"), "{table}");
    }

    #[test]
    fn every_request_has_a_nonce_of_its_own() {
        let caller = Caller::new(8443).unwrap();
        let signed = caller.requests("127.0.0.1:7420", 3);
        let heads: Vec<String> = signed.into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
        assert!(heads.iter().all(|head| head.starts_with("GET /whoami HTTP/1.1\r\n") && head.ends_with("\r\n\r\n")));
        assert_ne!(heads[0], heads[1]);
        assert_eq!(heads[0].matches("signature-input: sig1=(\"@method\" \"@target-uri\" \"@authority\")").count(), 1);
    }
}
