//! The real binary: started as anybody starts it, and killed as nobody should be.

use anyhow::{Context, Result, bail, ensure};
use json::Value;
use probe::{Exchange, Http, Reply, Request};
use rustix::process::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
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
    more: Vec<String>,
}

impl Program {
    /// A node that keeps everything below a folder.
    pub fn new(binary: &Path, folder: &Path) -> Self {
        let (binary, data, log) = (binary.to_owned(), folder.join("data"), folder.join("node.log"));
        Self { binary, data, log, more: Vec::new() }
    }

    /// The same, started with more arguments.
    #[must_use]
    pub fn with(mut self, arguments: &[String]) -> Self {
        self.more = arguments.to_vec();
        self
    }

    /// The binary itself.
    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Where the node keeps everything.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The same binary with another folder.
    pub(crate) fn at(&self, folder: &Path) -> Self {
        Self::new(&self.binary, folder)
    }

    /// What the node said beside its answers.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Starts the node; returns it with the seconds from start to ready.
    pub fn serve(&self) -> Result<(Running, f64)> {
        let begun = start();
        let running = self.begin(Command::new(&self.binary))?.ready()?;
        Ok((running, begun.elapsed().as_secs_f64()))
    }

    /// Starts a node that answers and says of itself that it is not well.
    pub(crate) fn serve_unwell(&self) -> Result<Running> {
        match self.begin(Command::new(&self.binary))?.told(503)? {
            Ok(node) => Ok(node),
            Err(status) => bail!("the node does not start: {status}"),
        }
    }

    /// The exit code of a node that does not start; nothing when it does.
    pub(crate) fn refuses_to_start(&self) -> Option<i32> {
        let starting = self.begin(Command::new(&self.binary)).ok()?;
        starting.ready_or_ended().ok()?.err()?.code()
    }

    /// A process that stands still and becomes the node once it may go on.
    pub(crate) fn pause(&self) -> Result<Starting> {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -STOP $$; exec \"$0\" \"$@\""]).arg(&self.binary);
        let starting = self.begin(command)?;
        let stands = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", starting.child.id())).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
        };
        let begun = start();
        while !stands() {
            ensure!(begun.elapsed() < READY_MAX, "the shell does not stand still");
            std::thread::yield_now();
        }
        Ok(starting)
    }

    fn begin(&self, mut command: Command) -> Result<Starting> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--data"])
            .arg(&self.data)
            .args(&self.more)
            .args(if self.more.iter().any(|argument| argument == "--log") { &[][..] } else { &["--log", "warn"] })
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("`{}` cannot be run", self.binary.display()))?;
        Ok(Starting { child, log: self.log.clone() })
    }
}

/// A node that is not ready yet.
pub(crate) struct Starting {
    child: Child,
    log: PathBuf,
}

impl Starting {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the node answers; an error when it ends before.
    pub(crate) fn ready(self) -> Result<Running> {
        let log = self.log.clone();
        match self.ready_or_ended()? {
            Ok(node) => Ok(node),
            Err(_) => bail!("the node is not ready; {} says why", log.display()),
        }
    }

    /// Waits until the node answers, or has ended.
    pub(crate) fn ready_or_ended(self) -> Result<Result<Running, ExitStatus>> {
        self.told(200)
    }

    /// Waits until the node says with a status how it is, or has ended.
    fn told(mut self, status: u16) -> Result<Result<Running, ExitStatus>> {
        let begun = start();
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().context("the node has no output")?).read_line(&mut line)?;
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            if !line.is_empty() {
                self.child.kill()?;
            }
            return Ok(Err(self.child.wait()?));
        };
        let url = ready.get("address").and_then(Value::as_str).context("the node tells no address")?.to_owned();
        let running = Running { child: self.child, url, http: Arc::new(Http::new()?) };
        loop {
            if running.get("/health").is_ok_and(|reply| reply.status == status) {
                return Ok(Ok(running));
            }
            ensure!(begun.elapsed() < READY_MAX, "`/health` is not {status}; {} says why", self.log.display());
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

    /// What one connects to.
    pub(crate) fn authority(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches('/')
    }

    pub(crate) fn get(&self, path: &str) -> Result<Reply> {
        self.line().send("GET", path, &[])
    }

    /// The process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Asks the node to end, and does not wait.
    pub(crate) fn ask_to_end(&self) -> Result<()> {
        Ok(rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM)?)
    }

    /// Waits for the end; whether it was a good one.
    pub(crate) fn wait(&mut self) -> Result<bool> {
        Ok(self.child.wait()?.success())
    }

    /// Whether the process is there.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// SIGKILL: no farewell, nothing is finished.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks the node to end, and waits.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.ask_to_end()?;
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
