//! How files are spelled: little-endian numbers, lengths before what they count, a checksum at the end.
//!
//! INVARIANT: whatever the bytes are, reading them ends in a value or in `None`.

use crate::error::IndexError;
use std::path::Path;

/// The first bytes of every file, before its format.
const MAGIC: [u8; 8] = *b"RIALTO-I";
/// The format that this program writes.
const VERSION: u32 = 6;
const FRAME: usize = MAGIC.len() + 4;
const CHECKSUM: usize = 4;

/// A file that has its beginning and waits for the rest.
pub(crate) fn begin() -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.put_u32(VERSION);
    out
}

/// Adds the checksum over everything; returns it.
pub(crate) fn end(out: &mut Vec<u8>) -> u32 {
    let checksum = crc32fast::hash(out);
    out.put_u32(checksum);
    checksum
}

/// Checks the frame of a file: what stands between it, and the checksum.
pub(crate) fn framed<'a>(bytes: &'a [u8], file: &Path) -> Result<(&'a [u8], u32), IndexError> {
    let damaged = || IndexError::damaged(file);
    let (covered, checksum) = bytes.split_at_checked(bytes.len().saturating_sub(CHECKSUM)).ok_or_else(damaged)?;
    let (frame, body) = covered.split_at_checked(FRAME).ok_or_else(damaged)?;
    let version = frame.strip_prefix(&MAGIC).and_then(|version| u32_at(version, 0)).ok_or_else(damaged)?;
    let checksum = u32_at(checksum, 0).filter(|checksum| *checksum == crc32fast::hash(covered)).ok_or_else(damaged)?;
    // Only now: a damaged version is damage.
    match version {
        VERSION => Ok((body, checksum)),
        version => Err(IndexError::OtherFormat { file: file.to_string_lossy().into(), version }),
    }
}

/// Writing numbers.
pub(crate) trait Put {
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// Seven bits a byte, the low ones first.
    fn put_varint(&mut self, value: u32);
}

impl Put for Vec<u8> {
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_varint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// A position in a file that is addressed by 31 bits.
pub(crate) fn position(out: &[u8]) -> Result<u32, IndexError> {
    u32::try_from(out.len()).ok().filter(|at| at >> 31 == 0).ok_or(IndexError::TooLarge)
}

/// Reading from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        u32_at(self.take(4)?, 0)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        u64_at(self.take(8)?, 0)
    }

    pub(crate) fn varint(&mut self) -> Option<u32> {
        let mut value = 0u32;
        for shift in (0..32).step_by(7) {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_they_were_written() {
        let numbers = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u32::MAX];
        let mut out = Vec::new();
        numbers.iter().for_each(|number| out.put_varint(*number));
        out.put_u64(u64::MAX - 1);
        let mut reader = Reader::new(&out);
        assert!(numbers.iter().all(|number| reader.varint() == Some(*number)));
        assert_eq!((reader.u64(), reader.u8()), (Some(u64::MAX - 1), None));
        assert_eq!(Reader::new(&[0xff; 8]).varint(), None);
    }

    #[test]
    fn a_frame_shows_damage_and_other_formats() {
        let file = Path::new("file");
        let mut out = begin();
        out.extend_from_slice(b"body");
        let checksum = end(&mut out);
        assert_eq!(framed(&out, file).unwrap(), (b"body".as_slice(), checksum));
        for position in 0..out.len() {
            let mut flipped = out.clone();
            flipped[position] ^= 0x10;
            assert!(matches!(framed(&flipped, file), Err(IndexError::Damaged(_))));
            assert!(matches!(framed(&out[..position], file), Err(IndexError::Damaged(_))));
        }
        for other in [VERSION - 1, VERSION + 1] {
            let mut file_of_it = MAGIC.to_vec();
            file_of_it.put_u32(other);
            end(&mut file_of_it);
            assert!(
                matches!(framed(&file_of_it, file), Err(IndexError::OtherFormat { version, .. }) if version == other)
            );
        }
    }
}
