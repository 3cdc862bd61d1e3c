//! Whether the disk takes anything: asked by writing, because nothing else tells the truth.

use crate::store::Cause;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is written and removed again.
const TRIAL_FILE: &str = "trial";
/// Room for a few records and their entries in the log.
const TRIAL_BYTES: usize = 256 * 1024;

/// Whether the disk still takes nothing.
pub(crate) fn is_wanting(folder: &Path) -> bool {
    attempt(folder).is_err()
}

/// What is the matter with a disk that just refused a write.
pub(crate) fn cause(folder: &Path) -> Cause {
    match attempt(folder).map_err(|error| error.kind()) {
        Err(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Cause::Full,
        Err(ErrorKind::ReadOnlyFilesystem) => Cause::ReadOnly,
        // A disk that refuses one write and takes the next is not to be trusted either.
        Ok(()) | Err(_) => Cause::Failed,
    }
}

fn attempt(folder: &Path) -> io::Result<()> {
    let path = folder.join(TRIAL_FILE);
    let written = File::create(&path).and_then(|file| {
        file.write_all_at(&vec![0; TRIAL_BYTES], 0)?;
        file.sync_data()
    });
    written.and(fs::remove_file(&path))
}
