//! Faults at the n-th call of the system, made by strace from outside: the node knows nothing of them.
//!
//! strace counts for each thread and each kind of call by itself. All writes of the truth are made by one thread, so
//! its n-th call of a kind is what `when` means, as long as the other threads make fewer.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Calls that change what is on disk; files are made and opened without harm until one of these comes.
pub(crate) const STORAGE: [&str; 10] =
    ["pwrite64", "write", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "renameat", "unlink", "mkdir"];

/// How long strace may take to hold every thread.
const ATTACH_MAX: Duration = Duration::from_secs(10);
/// How long it may take to let go of a process that lives, and of one that does not.
const DETACH_MAX: Duration = Duration::from_secs(5);
const DEATH_MAX: Duration = Duration::from_millis(300);

/// Why strace cannot be used here, if it cannot.
pub fn is_missing() -> Option<String> {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => None,
        Ok(_) => Some("strace may not trace here".into()),
        Err(_) => Some("strace is not installed (`apt-get install strace`)".into()),
    }
}

/// A fault that waits for a process.
pub(crate) struct Strace {
    child: Child,
    pid: Pid,
    log: PathBuf,
}

impl Strace {
    /// Lets calls of a process fail: `fault` is `signal=KILL:when=3` or `error=EIO:when=3`.
    pub(crate) fn attach(pid: Pid, calls: &str, fault: &str, log: &Path) -> Result<Self> {
        let mut child = Command::new("strace")
            .args(["-f", "-qq", "-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{fault}"), "-o"])
            .arg(log)
            .args(["-p", &pid.as_raw_nonzero().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("strace cannot be run")?;
        let begun = super::start();
        while !is_held(pid) {
            let waits = child.try_wait()?.is_none() && begun.elapsed() < ATTACH_MAX;
            ensure!(waits, "strace does not get hold of the node");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { child, pid, log: log.to_owned() })
    }

    /// Lets go of the process; whether a call was made to fail.
    pub(crate) fn detach(mut self) -> Result<bool> {
        let lives = fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero())).is_ok() && !is_dying(self.pid);
        if lives {
            // It may end with its process at this moment.
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
        self.end(if lives { DETACH_MAX } else { DEATH_MAX })?;
        Ok(fs::read_to_string(&self.log)?.contains("(INJECTED)"))
    }

    /// Waits for strace; one that waits for a thread that is no more is ended, which hurts nobody.
    fn end(&mut self, patience: Duration) -> Result<()> {
        let begun = super::start();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > patience {
                self.child.kill()?;
                self.child.wait()?;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

fn is_dying(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether every thread of a process is traced.
fn is_held(pid: Pid) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else { return false };
    tasks.flatten().all(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
    })
}
