//! The real binary: started as anybody starts it, and killed as nobody should be.

use anyhow::{Context, Result, bail, ensure};
use json::Value;
use probe::{Exchange, Http, Reply, Request};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A node that is not ready by then will not be.
const READY_MAX: Duration = Duration::from_secs(60);

/// The binary `rialto` and its folder.
#[derive(Clone, Debug)]
pub struct Program {
    binary: PathBuf,
    data: PathBuf,
    log: PathBuf,
}

impl Program {
    /// A node that keeps everything below a folder.
    pub fn new(binary: &Path, folder: &Path) -> Self {
        Self { binary: binary.to_owned(), data: folder.join("data"), log: folder.join("node.log") }
    }

    /// Where the node keeps everything.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts the node; returns it with the seconds from start to ready.
    pub fn serve(&self) -> Result<(Running, f64)> {
        let begun = start();
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut child = Command::new(&self.binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--log", "warn", "--data"])
            .arg(&self.data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("`{}` cannot be run", self.binary.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the node has no output")?).read_line(&mut line)?;
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            let _ = child.kill();
            bail!("the node is not ready; {} says why", self.log.display())
        };
        let url = ready.get("address").and_then(Value::as_str).context("the node tells no address")?.to_owned();
        let running = Running { child, url, http: Arc::new(Http::new()?) };
        loop {
            if running.get("/health").is_ok_and(|reply| reply.status == 200) {
                return Ok((running, begun.elapsed().as_secs_f64()));
            }
            ensure!(begun.elapsed() < READY_MAX, "the node is not healthy; {} says why", self.log.display());
        }
    }
}

/// A node that is ready.
pub struct Running {
    child: Child,
    /// Where it is.
    pub url: String,
    http: Arc<Http>,
}

impl Running {
    /// Somebody who can ask while the node is being killed.
    pub(crate) fn line(&self) -> Line {
        Line { url: self.url.clone(), http: Arc::clone(&self.http) }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Reply> {
        self.line().send("GET", path, &[])
    }

    /// SIGKILL: no farewell, nothing is finished.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks the node to end, and waits.
    pub(crate) fn stop(mut self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the node ended with {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A way to a node.
#[derive(Clone)]
pub(crate) struct Line {
    url: String,
    http: Arc<Http>,
}

impl Line {
    pub(crate) fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<Reply> {
        let url = format!("{}{path}", self.url);
        self.http.exchange(&Request { method, url: &url, media_type: "application/oap+json", body })
    }
}

/// A moment to measure from.
#[expect(clippy::disallowed_methods, reason = "how long a restart takes is measured here")]
pub fn start() -> Instant {
    Instant::now()
}

/// The seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a publication names the moment it is issued at")]
pub fn clock() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
