//! The head of the change log, kept outside the database file.
//!
//! A damaged write-ahead log makes the engine forget its tail without a word. The head remembers how far we had
//! promised: which change was the last, and how many times something of standing intents was written. Two places are written in turn, so that a torn write never destroys the last good one.
//!
//! INVARIANT: the head is never ahead of what the database had made durable when it was written.
//! INVARIANT: both places are on disk before anything is promised, so that a promise never needs room.

use crate::change::{Hash, Sequence};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The first part of a place: sequence, hash, and a checksum over both.
const LOG: usize = 8 + 32 + 8;
/// One place: that, how often standing intents were written, and a checksum over all of it; nothing but noughts where
/// an earlier version of the program wrote.
const PLACE: usize = LOG + 8 + 8;
/// The second place lies in another block.
const STRIDE: u64 = 4096;

/// How far the log had come, and the hash it had there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) sequence: Sequence,
    pub(crate) hash: Hash,
    /// How many times something of standing intents was written.
    pub(crate) written: u64,
}

impl Head {
    fn to_bytes(self) -> [u8; PLACE] {
        let mut bytes = [0; PLACE];
        let parts: [&[u8]; 5] = [
            &self.sequence.to_be_bytes(),
            &self.hash.0,
            &self.checksum(None),
            &self.written.to_be_bytes(),
            &self.checksum(Some(self.written)),
        ];
        bytes.iter_mut().zip(parts.into_iter().flatten()).for_each(|(slot, byte)| *slot = *byte);
        bytes
    }

    fn checksum(&self, written: Option<u64>) -> [u8; 8] {
        let mut digest = Sha256::new();
        digest.update(b"rialto head");
        digest.update(self.sequence.to_be_bytes());
        digest.update(self.hash.0);
        if let Some(written) = written {
            digest.update(written.to_be_bytes());
        }
        let mut short = [0; 8];
        short.iter_mut().zip(digest.finalize()).for_each(|(slot, byte)| *slot = byte);
        short
    }

    fn from_bytes(bytes: &[u8; PLACE]) -> Option<Self> {
        let (log, more) = bytes.split_at_checked(LOG)?;
        let (sequence, rest) = log.split_at_checked(8)?;
        let (hash, checksum) = rest.split_at_checked(32)?;
        let (written, whole) = more.split_at_checked(8)?;
        let written = u64::from_be_bytes(written.try_into().ok()?);
        let sequence = u64::from_be_bytes(sequence.try_into().ok()?);
        let head = Self { sequence, hash: Hash::read(hash)?, written };
        let sound = more.iter().all(|byte| *byte == 0) || head.checksum(Some(written)) == whole;
        (head.checksum(None) == checksum && sound).then_some(head)
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
        let length = file.metadata()?.len();
        if length == 0 {
            file.write_all_at(&[0; PLACE], 0)?;
            file.write_all_at(&[0; PLACE], STRIDE)?;
            file.sync_all()?;
            // Without this the file is there and its name may not be, once the power has gone.
            path.parent().map_or(Ok(()), crate::folder::sync)?;
        } else if length == STRIDE + LOG as u64 {
            // An earlier version of the program wrote it, with shorter places.
            file.write_all_at(&[0; PLACE - LOG], length)?;
            file.sync_all()?;
        }
        let read = |place: u64| {
            let mut bytes = [0; PLACE];
            file.read_exact_at(&mut bytes, place * STRIDE).ok()?;
            Head::from_bytes(&bytes)
        };
        let (first, second) = (read(0), read(1));
        let newer = |head: Option<Head>| head.map_or((0, 0), |head| (head.sequence, head.written));
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
        let head = |sequence| Head { sequence, hash: Hash::of(&[sequence as u8]), written: 0 };
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

    #[test]
    fn what_was_written_of_standing_intents_is_promised_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let head = |written| Head { sequence: 4, hash: Hash::of(b"4"), written };
        let (mut file, _) = HeadFile::open(&path).unwrap();
        for written in 1..=5 {
            file.write(head(written)).unwrap();
            assert_eq!(HeadFile::open(&path).unwrap().1, Some(head(written)));
        }
        // The last one went into the second place; half of a write does not count.
        let raw = OpenOptions::new().write(true).open(&path).unwrap();
        raw.write_all_at(&[0xff; 3], STRIDE + LOG as u64 + 6).unwrap();
        assert_eq!(HeadFile::open(&path).unwrap().1, Some(head(4)));
    }

    #[test]
    fn a_head_of_an_earlier_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let head = Head { sequence: 4, hash: Hash::of(b"4"), written: 0 };
        let mut old = vec![0; STRIDE as usize + LOG];
        old[..LOG].copy_from_slice(&head.to_bytes()[..LOG]);
        std::fs::write(&path, old).unwrap();
        let (mut file, read) = HeadFile::open(&path).unwrap();
        assert_eq!(read, Some(head));
        file.write(Head { written: 1, ..head }).unwrap();
        assert_eq!(HeadFile::open(&path).unwrap().1, Some(Head { written: 1, ..head }));
    }
}
