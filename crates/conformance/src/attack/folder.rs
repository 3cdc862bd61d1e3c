//! What somebody does to the folder of a node that is not running: turn its time on, or put an earlier state back.

use super::case::Folder;
use crate::crash::{Program, Running, clock};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trust::Digest;

/// Where a node keeps the latest moment that it has seen.
const MARK_FILE: &str = "clock.mark";
/// A witness is written every half second.
const WITNESSED: Duration = Duration::from_millis(1_200);

/// Stops the node, changes its folder, and starts it again; what it says at its start is looked at.
pub(crate) fn change(program: &Program, node: &mut Running, change: &Folder) -> Result<()> {
    std::thread::sleep(WITNESSED);
    node.ask_to_end()?;
    node.wait()?;
    let (data, said_before) = (program.data(), program.said().len());
    let kept = beside(program, "kept")?;
    let says = match change {
        Folder::Keep => {
            copy(data, &kept)?;
            None
        }
        Folder::Remove { beside: name } => {
            fs::remove_file(beside(program, name)?)?;
            None
        }
        Folder::PutBack { says } => {
            fs::remove_dir_all(data)?;
            copy(&kept, data)?;
            Some(says)
        }
        Folder::ClockAhead { seconds, says } => {
            let millis = ((clock() + seconds) * 1_000).to_string();
            fs::write(data.join(MARK_FILE), format!("{millis} {}\n", Digest::of(millis.as_bytes())))?;
            Some(says)
        }
    };
    *node = if matches!(change, Folder::PutBack { .. }) { program.serve_unwell()? } else { program.serve()?.0 };
    let said = program.said().get(said_before..).unwrap_or_default().to_owned();
    ensure!(says.is_none_or(|says| said.contains(says)), "it says: {said}");
    Ok(())
}

fn beside(program: &Program, name: &str) -> Result<PathBuf> {
    Ok(program.data().parent().context("the data folder is nowhere")?.join(name))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}
