//! The head of the change log, kept outside the database file.
//!
//! A damaged write-ahead log makes the engine forget its tail without a word. The head remembers how far we had
//! promised. Two places are written in turn, so that a torn write never destroys the last good one.
//!
//! INVARIANT: the head is never ahead of what the database had made durable when it was written.
//! INVARIANT: both places are on disk before anything is promised, so that a promise never needs room.

use crate::change::{Hash, Sequence};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// One place: sequence, hash, and a checksum over both.
const PLACE: usize = 8 + 32 + 8;
/// The second place lies in another block.
const STRIDE: u64 = 4096;

/// How far the log had come, and the hash it had there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) sequence: Sequence,
    pub(crate) hash: Hash,
}

impl Head {
    fn to_bytes(self) -> [u8; PLACE] {
        let mut bytes = [0; PLACE];
        let (sequence, rest) = bytes.split_at_mut(8);
        sequence.copy_from_slice(&self.sequence.to_be_bytes());
        let (hash, checksum) = rest.split_at_mut(32);
        hash.copy_from_slice(&self.hash.0);
        checksum.copy_from_slice(&self.checksum());
        bytes
    }

    fn checksum(&self) -> [u8; 8] {
        let mut digest = Sha256::new();
        digest.update(b"rialto head");
        digest.update(self.sequence.to_be_bytes());
        digest.update(self.hash.0);
        let mut short = [0; 8];
        short.iter_mut().zip(digest.finalize()).for_each(|(slot, byte)| *slot = byte);
        short
    }

    fn from_bytes(bytes: &[u8; PLACE]) -> Option<Self> {
        let (sequence, rest) = bytes.split_at_checked(8)?;
        let (hash, checksum) = rest.split_at_checked(32)?;
        let head = Self { sequence: u64::from_be_bytes(sequence.try_into().ok()?), hash: Hash::read(hash)? };
        (head.checksum() == checksum).then_some(head)
    }
}

/// Why a head is not on disk.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// It was not written.
    Write(io::Error),
    /// It was written and may be lost.
    Sync(io::Error),
}

impl From<HeadError> for io::Error {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::Write(error) | HeadError::Sync(error) => error,
        }
    }
}

/// The file that holds the head.
#[derive(Debug)]
pub(crate) struct HeadFile {
    file: File,
    second: bool,
}

impl HeadFile {
    /// Opens the file; the better of its two places, if one is readable.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Option<Head>)> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all_at(&[0; PLACE], 0)?;
            file.write_all_at(&[0; PLACE], STRIDE)?;
            file.sync_all()?;
            // Without this the file is there and its name may not be, once the power has gone.
            path.parent().map_or(Ok(()), crate::folder::sync)?;
        }
        let read = |place: u64| {
            let mut bytes = [0; PLACE];
            file.read_exact_at(&mut bytes, place * STRIDE).ok()?;
            Head::from_bytes(&bytes)
        };
        let (first, second) = (read(0), read(1));
        let newer = |head: Option<Head>| head.map_or(0, |head| head.sequence);
        let first_is_newer = newer(first) >= newer(second);
        let head = if first_is_newer { first.or(second) } else { second };
        Ok((Self { file, second: first_is_newer }, head))
    }

    /// Writes a later head into the older place and waits until it is on disk.
    pub(crate) fn write(&mut self, head: Head) -> Result<(), HeadError> {
        let place = u64::from(self.second) * STRIDE;
        self.file.write_all_at(&head.to_bytes(), place).map_err(HeadError::Write)?;
        self.file.sync_data().map_err(HeadError::Sync)?;
        self.second = !self.second;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_readable_place_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let head = |sequence| Head { sequence, hash: Hash::of(&[sequence as u8]) };
        let (mut file, none) = HeadFile::open(&path).unwrap();
        assert_eq!(none, None);
        for sequence in 1..=5 {
            file.write(head(sequence)).unwrap();
            assert_eq!(HeadFile::open(&path).unwrap().1, Some(head(sequence)));
        }
        // A torn write destroys the place that was being written; the other one still speaks.
        let raw = OpenOptions::new().write(true).open(&path).unwrap();
        raw.write_all_at(&[0xff; 20], STRIDE).unwrap();
        assert_eq!(HeadFile::open(&path).unwrap().1, Some(head(4)));
        let (mut file, _) = HeadFile::open(&path).unwrap();
        file.write(head(6)).unwrap();
        assert_eq!(HeadFile::open(&path).unwrap().1, Some(head(6)));
    }
}
