//! Folders that are still there when the power comes back: the name of what is made in a folder lasts once the folder is
//! synced, and not before.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::Path;

/// Makes a folder and those above it, as far as they are missing, and waits until their names are on disk.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = match folder.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Ok(()),
    };
    make_folder(above)?;
    match DirBuilder::new().create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !folder.is_dir() => return Err(error),
        Ok(()) | Err(_) => {}
    }
    sync(above)
}

/// Waits until the names in a folder are on disk.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_with_those_above_it_and_one_that_is_there_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b/c");
        make_folder(&deep).unwrap();
        std::fs::write(deep.join("kept"), "x").unwrap();
        make_folder(&deep).unwrap();
        assert!(deep.join("kept").exists());
        let file = home.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(make_folder(&file).is_err() && make_folder(&file.join("below")).is_err());
    }
}
