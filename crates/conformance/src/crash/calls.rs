//! A fixed script, and the node killed at every storage call of it in turn.
//!
//! Five scenes: the first start on an empty folder, writes, questions, the end, and the start after a kill, which is
//! killed a second time at the same call.

use super::program::{Program, Running};
use super::script::{Ending, Faults, Sender, base, copy, settle};
use super::strace::{STORAGE, Strace};
use anyhow::{Result, ensure};
use rustix::process::{Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// Messages of the scene of writes.
const WRITES: usize = 60;
/// Questions of the scene of questions.
const QUESTIONS: usize = 30;
/// Messages before the end and before a start.
const BEFORE: usize = 6;
/// Messages that the folder has before a scene begins.
const BASE: usize = 8;

#[derive(Clone, Copy)]
enum Scene {
    FirstStart,
    Writes,
    Questions,
    End,
    Restart,
}

impl Scene {
    const ALL: [(&'static str, Self); 5] = [
        ("in the first start", Self::FirstStart),
        ("while writing", Self::Writes),
        ("while answering", Self::Questions),
        ("at the end", Self::End),
        ("in a start after a kill", Self::Restart),
    ];

    /// Whether a call of this kind has to do with the disk: while it works, a node uses `write` to wake its threads.
    fn makes(self, kind: &str) -> bool {
        match self {
            Self::Writes | Self::Questions => kind != "write",
            Self::FirstStart | Self::End | Self::Restart => true,
        }
    }
}

/// Kills a node at every `stride`-th storage call of each scene; `progress` hears of every kill.
pub fn calls(program: &Program, stride: usize, seed: u64, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let begun = super::start();
    let mut faults = Faults::default();
    let folder = tempfile::tempdir()?;
    let image = program.at(folder.path());
    let sender = base(&image, seed, BASE)?;
    let kinds = Scene::ALL.into_iter().flat_map(|(name, scene)| STORAGE.map(|kind| (name, scene, kind)));
    for (name, scene, kind) in kinds.filter(|(_, scene, kind)| scene.makes(kind)) {
        let play = |call: usize, here: &Path, faults: &mut Faults| {
            let stage = Stage { program: program.at(here), image: image.data(), kind, call, folder: here };
            let place = format!("{name}, `{kind}` {call}");
            let killed = stage.play(scene, sender.clone(), &place, faults)?;
            Ok(killed.then(|| format!("kills {name}, at `{kind}`")))
        };
        if !faults.at_every_call(stride, begun, progress, play)? {
            break;
        }
    }
    Ok(faults)
}

struct Stage<'a> {
    program: Program,
    image: &'a Path,
    kind: &'static str,
    call: usize,
    folder: &'a Path,
}

impl Stage<'_> {
    /// Plays a scene; false when it ended before its call came, so that there are no more calls.
    fn play(&self, scene: Scene, mut sender: Sender, place: &str, faults: &mut Faults) -> Result<bool> {
        let killed = match scene {
            Scene::FirstStart => {
                sender = Sender::new(1);
                self.start_and_kill()?
            }
            Scene::Writes => self.on_a_copy(|node| self.killed(node, |node| sender.write(&node.line(), WRITES)))?,
            Scene::Questions => self.on_a_copy(|node| {
                self.killed(node, |node| {
                    for _ in 0..QUESTIONS {
                        if !sender.ask(&node.line())? {
                            return Ok(Ending::Gone);
                        }
                    }
                    Ok(Ending::Done)
                })
            })?,
            Scene::End => self.on_a_copy(|node| {
                sender.write(&node.line(), BEFORE)?;
                self.killed(node, |node| {
                    node.ask_to_end()?;
                    Ok(if node.wait()? { Ending::Done } else { Ending::Gone })
                })
            })?,
            Scene::Restart => {
                self.on_a_copy(|node| {
                    sender.write(&node.line(), BEFORE)?;
                    node.kill()?;
                    Ok(true)
                })?;
                self.start_and_kill()? && {
                    self.start_and_kill()?;
                    true
                }
            }
        };
        if killed {
            settle(&self.program, &mut sender, place, faults)?;
        }
        Ok(killed)
    }

    fn on_a_copy(&self, act: impl FnOnce(&mut Running) -> Result<bool>) -> Result<bool> {
        copy(self.image, self.program.data())?;
        let (mut node, _) = self.program.serve()?;
        act(&mut node)
    }

    fn killed(&self, node: &mut Running, act: impl FnOnce(&mut Running) -> Result<Ending>) -> Result<bool> {
        let strace = Strace::attach(node.pid(), self.kind, &self.fault(), &self.folder.join("strace.log"))?;
        let ending = act(node)?;
        strace.detach()?;
        match ending {
            Ending::Gone => Ok(true),
            Ending::Done => Ok(false),
            Ending::Refused(code) => anyhow::bail!("a message is refused with `{code}` before the kill"),
        }
    }

    /// Starts a node that is killed at its call; false when it became ready.
    fn start_and_kill(&self) -> Result<bool> {
        let starting = self.program.pause()?;
        let (pid, log) = (starting.pid(), self.folder.join("strace.log"));
        let strace = Strace::attach(pid, self.kind, &self.fault(), &log)?;
        kill_process(pid, Signal::CONT)?;
        let ready = starting.ready_or_ended()?;
        strace.detach()?;
        match ready {
            Ok(mut node) => {
                node.kill()?;
                Ok(false)
            }
            Err(status) => {
                let killed = status.signal() == Some(Signal::KILL.as_raw());
                ensure!(killed, "the node ended by itself with {status}: {}", self.program.said());
                Ok(true)
            }
        }
    }

    fn fault(&self) -> String {
        format!("signal=KILL:when={}", self.call)
    }
}
