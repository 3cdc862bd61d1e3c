//! The change log: one entry for each thing that happened, each holding the hash of the one before.
//!
//! INVARIANT: `hash = SHA-256(previous hash ‖ entry)`; an entry cannot change without every later hash changing.

use crate::record::Kind;
use sha2::{Digest, Sha256};
use std::fmt;

/// The place of a change in the log, from 1, without gaps.
pub type Sequence = u64;

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash before the first change.
    pub const GENESIS: Self = Self([0; 32]);

    /// The hash of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Brought a record that supersedes an earlier revision, if there was one.
    Put,
    /// Took a record back.
    Withdraw,
}

impl Operation {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Put => 0,
            Self::Withdraw => 1,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Put, Self::Withdraw].get(usize::from(number)).copied()
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place in the log.
    pub sequence: Sequence,
    /// What it did.
    pub operation: Operation,
    /// To which record.
    pub id: String,
    /// Of which kind.
    pub kind: Kind,
    /// Its revision.
    pub revision: u64,
    /// Who did it.
    pub publisher: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The number of the record that stopped speaking by it, if one did.
    pub replaces: Option<u64>,
    /// The hash of the record's bytes.
    pub body: Hash,
    /// The hash of everything up to here.
    pub hash: Hash,
}

impl Change {
    /// The hash that this change must have after the one before it.
    pub fn chained(&self, previous: Hash) -> Hash {
        let mut digest = Sha256::new();
        digest.update(previous.0);
        digest.update(self.sequence.to_be_bytes());
        digest.update([self.operation.number(), self.kind.number()]);
        digest.update(self.revision.to_be_bytes());
        digest.update(self.at.to_be_bytes());
        digest.update(self.replaces.unwrap_or(0).to_be_bytes());
        // Lengths go before texts, so that no two entries have the same bytes.
        for text in [&self.id, &self.publisher] {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text.as_bytes());
        }
        digest.update(self.body.0);
        Hash(digest.finalize().into())
    }
}
