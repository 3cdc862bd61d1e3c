//! RFC 0020 B.3: a log of lines on disk, for whoever must not forget what it promised: an agent's ledger, a wallet's book.
//!
//! The digest of the last line also stands in a file beside it, its head, so that a tail that was cut off is missed. A line
//! that a crash cut short was never promised to anybody, and is written over.
//!
//! INVARIANT: a line is on disk before anybody is told of it; whoever appends holds the lock and has read what others
//! wrote. The head is one line behind at most: whoever finds it behind after a crash brings it up before the next line.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use trust::Digest;

/// A log that is open.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    /// Where the last whole line that was read or written ends.
    end: u64,
    /// Its digest, and that of the line before it; empty where there is none.
    last: String,
    before: String,
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
        Ok(Self { file, path, end: 0, last: String::new(), before: String::new() })
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
        let lines = tail.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        let newest: Vec<&[u8]> = lines.rev().take(2).collect();
        newest.into_iter().rev().for_each(|line| self.note(line));
        Ok(tail)
    }

    fn note(&mut self, line: &[u8]) {
        self.before = std::mem::replace(&mut self.last, Digest::of(line).to_string());
    }

    /// Whether what was read ends where the head says, or one line later: a crash may have come between a line and its
    /// head.
    pub fn ends_at_its_head(&self) -> Result<bool> {
        let head = self.head()?;
        Ok(head == self.last || head == self.before)
    }

    /// The digest of the last line, as it stands beside the log; empty when there is none.
    fn head(&self) -> Result<String> {
        match fs::read_to_string(self.head_path()) {
            Ok(head) => Ok(head.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// The head is replaced in one step.
    fn write_head(&self) -> Result<()> {
        let beside = self.path.with_extension("head.new");
        let mut head = private(&beside)?;
        head.set_len(0)?;
        head.write_all(format!("{}\n", self.last).as_bytes())?;
        head.sync_data()?;
        fs::rename(&beside, self.head_path())
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

    /// Like [`Log::ends_at_its_head`], while nobody writes on between the one and the other.
    pub fn ends_at_its_head(&self) -> Result<bool> {
        self.0.ends_at_its_head()
    }

    /// Writes a line and its digest; everything before it must have been read.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        let log = &mut *self.0;
        match log.head()? {
            head if head == log.last => {}
            head if head == log.before => log.write_head()?,
            _ => return Err(Error::new(ErrorKind::InvalidData, "the log does not end where it ended last")),
        }
        log.file.set_len(log.end)?;
        log.file.seek(SeekFrom::Start(log.end))?;
        log.file.write_all(&[line, b"\n"].concat())?;
        log.file.sync_data()?;
        log.end += line.len() as u64 + 1;
        log.note(line);
        log.write_head()
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
        one.hold().unwrap().append(b"a").unwrap();
        let mut held = other.hold().unwrap();
        assert_eq!(held.unread().unwrap(), b"a\n");
        held.append(b"b").unwrap();
        drop(held);
        fs::OpenOptions::new().append(true).open(one.path()).unwrap().write_all(b"tor").unwrap();
        let mut held = one.hold().unwrap();
        assert_eq!(held.unread().unwrap(), b"b\n");
        held.append(b"c").unwrap();
        drop(held);
        assert_eq!(fs::read(other.path()).unwrap(), b"a\nb\nc\n");
        assert_eq!(other.unread().unwrap(), b"c\n");
        assert!(other.ends_at_its_head().unwrap());
    }

    #[test]
    fn crashes_between_lines_and_their_heads_do_not_add_up() {
        let folder = tempfile::tempdir().unwrap();
        for count in 1..=4 {
            let mut log = Log::open(folder.path(), "log.ndjson").unwrap();
            log.unread().unwrap();
            assert!(log.ends_at_its_head().unwrap(), "{count}");
            log.hold().unwrap().append(format!("{count}").as_bytes()).unwrap();
            // As if the writer had been killed before the last step.
            match log.before.as_str() {
                "" => fs::remove_file(log.head_path()).unwrap(),
                before => fs::write(log.head_path(), before).unwrap(),
            }
        }
        assert_eq!(fs::read(folder.path().join("log.ndjson")).unwrap(), b"1\n2\n3\n4\n");
    }

    #[test]
    fn a_tail_that_was_cut_off_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "log.ndjson").unwrap();
        for line in [b"a", b"b", b"c"] {
            log.hold().unwrap().append(line).unwrap();
        }
        fs::write(log.path(), b"a\nb\n").unwrap();
        let mut log = Log::open(folder.path(), "log.ndjson").unwrap();
        log.unread().unwrap();
        assert!(!log.ends_at_its_head().unwrap());
        assert_eq!(log.hold().unwrap().append(b"d").unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(fs::read(log.path()).unwrap(), b"a\nb\n");
    }
}
