//! A disk that is full, and one that is read-only, under a node that goes on: questions are answered, writes are refused
//! by name, and when the cause is gone the node writes again without a restart.
//!
//! The full disk is a small file system in memory, filled and emptied. A mounted file system with open files cannot be
//! made read-only, so there strace answers every writing call with EROFS for a while.

use super::program::{Program, Running};
use super::script::{Ending, Faults, Sender, settle};
use super::strace::Strace;
use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size of the small file system.
const SIZE: &CStr = c"size=64m";
/// Messages before the disk fails for the first time, and after each recovery.
const WRITES: usize = 8;
/// Messages that a full disk may still take: what was allocated before is written over.
const TAKEN_MAX: usize = 64;
/// How long the node may take to write again.
const RECOVERY_MAX: Duration = Duration::from_secs(5);
/// Calls that a read-only disk refuses.
const WRITING: &str = "pwrite64,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,mkdir";

/// Fills the disk under a node and empties it again, `rounds` times; an error says why it cannot be done here.
pub fn full(program: &Program, rounds: usize, seed: u64, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let folder = tempfile::tempdir()?;
    let small = Small::mount(folder.path())?;
    let program = program.at(folder.path());
    let ballast = small.0.join("ballast");
    let fill = |_: &Running| -> Result<Box<dyn FnOnce() -> Result<()>>> {
        let mut file = File::create(&ballast)?;
        for size in [1 << 20, 4096] {
            let block = vec![0; size];
            while file.write_all(&block).is_ok() {}
        }
        let ballast = ballast.clone();
        Ok(Box::new(move || Ok(fs::remove_file(ballast)?)))
    };
    suffer(&program, rounds, seed, "storage_full", &fill, progress)
}

/// Makes the disk read-only under a node and writable again, `rounds` times.
pub fn read_only(program: &Program, rounds: usize, seed: u64, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let folder = tempfile::tempdir()?;
    let program = program.at(folder.path());
    let log = folder.path().join("strace.log");
    let hold = |node: &Running| -> Result<Box<dyn FnOnce() -> Result<()>>> {
        let strace = Strace::attach(node.pid(), WRITING, "error=EROFS", &log)?;
        Ok(Box::new(move || strace.detach().map(|_| ())))
    };
    suffer(&program, rounds, seed, "storage_read_only", &hold, progress)
}

/// Why no small file system can be had here, if none can.
pub fn mount_is_missing() -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    Small::mount(folder.path()).err().map(|error| format!("{error:#}"))
}

type Hurt<'a> = dyn Fn(&Running) -> Result<Box<dyn FnOnce() -> Result<()>>> + 'a;

/// Hurts the disk and heals it, again and again, under one node.
fn suffer(
    program: &Program,
    rounds: usize,
    seed: u64,
    expected: &str,
    hurt: &Hurt<'_>,
    progress: &mut dyn FnMut(&Faults),
) -> Result<Faults> {
    let begun = super::start();
    let (mut faults, mut sender) = (Faults::default(), Sender::new(seed));
    let (mut node, _) = program.serve()?;
    sender.write(&node.line(), WRITES)?;
    for round in 1..=rounds {
        let place = format!("round {round}");
        let heal = hurt(&node)?;
        let refused = write_until_refused(&mut sender, &node, expected, &place, &mut faults)?;
        reads_go_on(&mut sender, &node, &place, &mut faults)?;
        if refused && node.get("/health")?.status != 503 {
            faults.tell(format!("{place}: the node does not say that it cannot write"));
        }
        heal()?;
        recovers(&mut sender, &node, &place, &mut faults)?;
        faults.note("rounds");
        faults.seconds = begun.elapsed().as_secs_f64();
        progress(&faults);
        if !faults.is_clean() {
            break;
        }
    }
    if !node.is_alive() {
        faults.tell("the node is gone".into());
    }
    node.kill()?;
    settle(program, &mut sender, "after a restart", &mut faults)?;
    faults.seconds = begun.elapsed().as_secs_f64();
    Ok(faults)
}

fn write_until_refused(
    sender: &mut Sender,
    node: &Running,
    expected: &str,
    place: &str,
    faults: &mut Faults,
) -> Result<bool> {
    for _ in 0..TAKEN_MAX {
        match sender.send(&node.line())? {
            Ending::Done => faults.note("messages that still had room"),
            Ending::Refused(code) => {
                faults.note(&format!("messages refused with `{code}`"));
                if code != expected {
                    faults.tell(format!("{place}: a message is refused with `{code}`"));
                }
                return Ok(true);
            }
            Ending::Gone => anyhow::bail!("{place}: the node is gone"),
        }
    }
    faults.tell(format!("{place}: the disk took {TAKEN_MAX} messages"));
    Ok(false)
}

/// Records are there as acknowledged, and new questions are answered.
fn reads_go_on(sender: &mut Sender, node: &Running, place: &str, faults: &mut Faults) -> Result<()> {
    for _ in 0..3 {
        // What is answered now may be answered anew later (decisions/0070), so it is not kept.
        let kept = sender.kept.clone();
        anyhow::ensure!(sender.ask(&node.line()).with_context(|| place.to_owned())?, "{place}: the node is gone");
        sender.kept = kept;
        faults.note("questions answered meanwhile");
    }
    let before = faults.told.len();
    let toll = super::check::look_at_all(node, &sender.ledger)?;
    faults.add(place, &toll);
    if faults.told.len() == before {
        faults.note("times every record was read meanwhile");
    }
    Ok(())
}

/// The node is healthy again by itself, and takes the message that it refused.
fn recovers(sender: &mut Sender, node: &Running, place: &str, faults: &mut Faults) -> Result<()> {
    let begun = super::start();
    while node.get("/health")?.status != 200 {
        if begun.elapsed() > RECOVERY_MAX {
            faults.tell(format!("{place}: the node is not healthy after {} s", RECOVERY_MAX.as_secs()));
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    faults.most("longest recovery in milliseconds", begun.elapsed().as_millis() as usize);
    match sender.write(&node.line(), WRITES)? {
        Ending::Done => faults.note("recoveries without a restart"),
        Ending::Refused(code) => faults.tell(format!("{place}: a message is refused with `{code}` after recovery")),
        Ending::Gone => faults.tell(format!("{place}: the node is gone after recovery")),
    }
    Ok(())
}

/// A small file system, as long as this lives.
struct Small(PathBuf);

impl Small {
    fn mount(at: &Path) -> Result<Self> {
        mount("tmpfs", at, "tmpfs", MountFlags::empty(), Some(SIZE)).context("no file system can be mounted here")?;
        Ok(Self(at.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
