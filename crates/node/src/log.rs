//! RFC 0020 B.3: a log of lines on disk, for whoever must not forget what it promised: an agent's ledger, a wallet's book.
//!
//! The digest of the last line also stands in a file beside it, so that a tail that was cut off is missed. A line that a
//! crash cut short was never promised to anybody, and is written over.
//!
//! INVARIANT: a line is on disk before anybody is told of it; whoever appends holds the lock and has read what others
//! wrote.

use std::fs::{self, File};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A log that is open.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    /// Where the last whole line that was read or written ends.
    end: u64,
}

/// A log that nobody else writes to.
#[derive(Debug)]
pub struct Held<'a>(&'a mut Log);

impl Log {
    /// Opens a log, and begins it where there is none.
    pub fn open(folder: &Path, name: &str) -> Result<Self> {
        private_folder(folder)?;
        let path = folder.join(name);
        let file = private(&path)?;
        // The name of a new file must survive, too.
        File::open(folder)?.sync_all()?;
        Ok(Self { file, path, end: 0 })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until nobody else writes.
    pub fn hold(&mut self) -> Result<Held<'_>> {
        self.file.lock()?;
        Ok(Held(self))
    }

    /// Whole lines that were written since the last look, each with its end.
    pub fn unread(&mut self) -> Result<Vec<u8>> {
        let mut tail = Vec::new();
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.read_to_end(&mut tail)?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        tail.truncate(whole);
        self.end += whole as u64;
        Ok(tail)
    }

    /// The digest of the last line, as it stands beside the log; empty when there is none.
    pub fn head(&self) -> Result<String> {
        match fs::read_to_string(self.head_path()) {
            Ok(head) => Ok(head.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    fn head_path(&self) -> PathBuf {
        self.path.with_extension("head")
    }
}

impl Held<'_> {
    /// Whole lines that were written since the last look, each with its end.
    pub fn unread(&mut self) -> Result<Vec<u8>> {
        self.0.unread()
    }

    /// Writes a line, and the digest by which it will be known; everything before it must have been read.
    pub fn append(&mut self, line: &[u8], digest: &str) -> Result<()> {
        let log = &mut *self.0;
        log.file.set_len(log.end)?;
        log.file.seek(SeekFrom::Start(log.end))?;
        log.file.write_all(&[line, b"\n"].concat())?;
        log.file.sync_data()?;
        log.end += line.len() as u64 + 1;
        let beside = log.path.with_extension("head.new");
        let mut head = private(&beside)?;
        head.set_len(0)?;
        head.write_all(format!("{digest}\n").as_bytes())?;
        head.sync_data()?;
        fs::rename(&beside, log.head_path())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Closing the file would let go of it, too.
        let _ = self.0.file.unlock();
    }
}

/// What somebody pays is nobody else's business.
#[cfg(unix)]
fn private(path: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private(path: &Path) -> Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(unix)]
fn private_folder(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writers_see_each_others_lines_and_a_torn_line_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = Log::open(folder.path(), "log.ndjson").unwrap();
        let mut other = Log::open(folder.path(), "log.ndjson").unwrap();
        one.hold().unwrap().append(b"a", "1").unwrap();
        let mut held = other.hold().unwrap();
        assert_eq!(held.unread().unwrap(), b"a\n");
        held.append(b"b", "2").unwrap();
        drop(held);
        fs::OpenOptions::new().append(true).open(one.path()).unwrap().write_all(b"tor").unwrap();
        let mut held = one.hold().unwrap();
        assert_eq!(held.unread().unwrap(), b"b\n");
        held.append(b"c", "3").unwrap();
        drop(held);
        assert_eq!(fs::read(other.path()).unwrap(), b"a\nb\nc\n");
        assert_eq!(other.head().unwrap(), "3");
    }
}
