//! Programs that run for us, ended with everything they started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// What of our own environment a program gets; everything else is given by name.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// How a program is started; never by a shell.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
}

/// A program and whatever it starts; dropped, all of it ends.
pub(crate) struct Group {
    pub(crate) child: Child,
    leader: Option<Pid>,
}

impl Program {
    /// Starts it in a process group of its own; `more` are variables for this time only.
    pub(crate) fn start(&self, more: &[(&str, &str)]) -> io::Result<Group> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).current_dir(&self.folder).process_group(0).kill_on_drop(true);
        command.env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(&self.variables).envs(more.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn()?;
        let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Group { child, leader })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // Nobody may be left in it, and that is as good.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
