//! One call to the disk fails with EIO: the node stops writing and says so, and loses nothing that it acknowledged.

use super::program::{Program, Running};
use super::script::{Ending, Faults, Sender, base, copy, settle};
use super::strace::Strace;
use anyhow::{Result, ensure};
use rustix::process::{Signal, kill_process};
use std::path::Path;

/// Messages of the script; the disk fails somewhere in it.
const WRITES: usize = 20;
/// Messages that the folder has before.
const BASE: usize = 8;

/// The calls that fail, with the names they have in the report.
const CALLS: [(&str, &str); 3] =
    [("failed `fsync`", "fsync"), ("failed `fdatasync`", "fdatasync"), ("failed `pwrite64`", "pwrite64")];

/// What the node says when its disk failed.
const FAILED: &str = "storage_unavailable";

/// Lets every `stride`-th sync and write of a script fail, and of a start; `progress` hears of every failure.
pub fn errors(program: &Program, stride: usize, seed: u64, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let begun = super::start();
    let mut faults = Faults::default();
    let folder = tempfile::tempdir()?;
    let image = program.at(folder.path());
    let sender = base(&image, seed, BASE)?;
    for (name, calls) in CALLS {
        for (scene, failed) in [("while writing", Trial::write as Play), ("at a start", Trial::start as Play)] {
            let play = |call: usize, here: &Path, faults: &mut Faults| {
                let program = program.at(here);
                copy(image.data(), program.data())?;
                let place = format!("{name} {scene}, call {call}");
                let fault = format!("error=EIO:when={call}");
                let mut trial = Trial { program, calls, fault, sender: sender.clone(), place: place.clone() };
                if !failed(&mut trial, faults)? {
                    return Ok(None);
                }
                settle(&trial.program, &mut trial.sender, &place, faults)?;
                Ok(Some(format!("{name} {scene}")))
            };
            if !faults.at_every_call(stride, begun, progress, play)? {
                return Ok(faults);
            }
        }
    }
    Ok(faults)
}

type Play = fn(&mut Trial, &mut Faults) -> Result<bool>;

struct Trial {
    program: Program,
    calls: &'static str,
    fault: String,
    sender: Sender,
    place: String,
}

impl Trial {
    /// Writes until the disk has failed, and looks at the node then; false when no call failed.
    fn write(&mut self, faults: &mut Faults) -> Result<bool> {
        let (mut node, _) = self.program.serve()?;
        let log = self.program.data().with_extension("strace");
        let strace = Strace::attach(node.pid(), self.calls, &self.fault, &log)?;
        let ending = self.sender.write(&node.line(), WRITES)?;
        let failed = strace.detach()?;
        match ending {
            Ending::Gone => faults.tell(format!("{}: the node is gone", self.place)),
            Ending::Done if failed => faults.note("failures that no message met"),
            Ending::Done => {}
            Ending::Refused(code) if code == FAILED => self.is_stopped(&node, faults)?,
            Ending::Refused(code) => faults.tell(format!("{}: refused with `{code}`", self.place)),
        }
        node.kill()?;
        Ok(failed)
    }

    /// It says that it writes no more, takes no message, and goes on answering.
    fn is_stopped(&mut self, node: &Running, faults: &mut Faults) -> Result<()> {
        faults.note("times the node stopped writing and said so");
        if node.get("/health")?.status != 503 {
            faults.tell(format!("{}: the node does not say that it stopped writing", self.place));
        }
        for _ in 0..3 {
            match self.sender.send(&node.line())? {
                Ending::Refused(code) if code == FAILED => {}
                _ => faults.tell(format!("{}: a message is taken after the disk failed", self.place)),
            }
        }
        ensure!(self.sender.ask(&node.line())?, "the node is gone");
        Ok(())
    }

    /// Starts a node whose disk fails; it may start or say why not. False when no call failed.
    fn start(&mut self, faults: &mut Faults) -> Result<bool> {
        let starting = self.program.pause()?;
        let (pid, log) = (starting.pid(), self.program.data().with_extension("strace"));
        let strace = Strace::attach(pid, self.calls, &self.fault, &log)?;
        kill_process(pid, Signal::CONT)?;
        let ready = starting.ready();
        let failed = strace.detach()?;
        match ready {
            Ok(mut node) => {
                faults.note("starts in spite of it");
                node.kill()?;
            }
            Err(_) if self.program.said().is_empty() => {
                faults.tell(format!("{}: the node does not start, and says nothing", self.place));
            }
            Err(_) => faults.note("starts that were refused with a reason"),
        }
        Ok(failed)
    }
}
