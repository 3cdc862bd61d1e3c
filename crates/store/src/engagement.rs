//! OAS Engagement: journals of engagements, and the documents that they go by.
//!
//! A journal is the steps of one engagement, in order. Beside it stands a row that says where the engagement has come,
//! so that whoever starts again finds what is unfinished, and a reviewer what waits for a decision, without reading
//! every journal.
//!
//! INVARIANT: the steps of a journal are dense from 0, and what stands at a place never changes.

use crate::change::Hash;
use sha2::{Digest, Sha256};

/// An engagement: who began it with what, and where it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engaged {
    /// What it is called; nobody can guess it.
    pub id: String,
    /// The agent's name.
    pub agent: String,
    /// The digest of the document that it goes by.
    pub document: String,
    /// Who began it; nobody when nobody proved to be somebody.
    pub caller: Option<String>,
    /// The engagement that it serves, and the place in it.
    pub parent: Option<(String, String)>,
    /// When it was begun, in milliseconds since 1970.
    pub begun_at: i64,
    /// Where it has come.
    pub reached: Reached,
    /// Who is asked to decide something.
    pub reviewer: Option<String>,
    /// Until when that is waited for, in milliseconds since 1970; nought when nothing is.
    pub due: i64,
}

/// Where an engagement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Something is to be done.
    Running,
    /// Somebody else has to act.
    Waiting,
    /// Nothing ever happens again.
    Over,
}

impl Reached {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Running => 0,
            Self::Waiting => 1,
            Self::Over => 2,
        }
    }

    pub(crate) fn of(number: u8) -> Option<Self> {
        [Self::Running, Self::Waiting, Self::Over].get(usize::from(number)).copied()
    }
}

impl Engaged {
    pub(crate) fn checksum(&self) -> [u8; 8] {
        let mut digest = Sha256::new();
        let (parent, place) = self.parent.clone().unwrap_or_default();
        let texts = [
            Some(&self.id),
            Some(&self.agent),
            Some(&self.document),
            self.caller.as_ref(),
            Some(&parent),
            Some(&place),
            self.reviewer.as_ref(),
        ];
        for text in texts {
            digest.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
            digest.update(text.map_or("", String::as_str));
        }
        digest.update(self.begun_at.to_be_bytes());
        digest.update(self.due.to_be_bytes());
        digest.update([self.reached.number()]);
        digest.finalize().first_chunk().copied().unwrap_or_default()
    }
}

/// One step of a journal, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Of which engagement.
    pub engagement: String,
    /// Its place, from 0, without gaps.
    pub position: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: i64,
    /// The step.
    pub body: Vec<u8>,
}

impl Noted {
    pub(crate) fn checksum(&self) -> [u8; 8] {
        let mut digest = Sha256::new();
        digest.update((self.engagement.len() as u64).to_be_bytes());
        digest.update(&self.engagement);
        digest.update(self.position.to_be_bytes());
        digest.update(self.at.to_be_bytes());
        digest.update(&self.body);
        digest.finalize().first_chunk().copied().unwrap_or_default()
    }
}

/// A document about an agent, kept as long as an engagement may go by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The SHA-256 of its bytes, in hexadecimal.
    pub digest: String,
    /// The name in it.
    pub agent: String,
    /// When it came, in milliseconds since 1970.
    pub at: i64,
    /// The bytes, as they came.
    pub body: Vec<u8>,
}

impl Spec {
    pub(crate) fn is_sound(&self) -> bool {
        Hash::of(&self.body).to_string() == self.digest
    }
}

/// What is written of engagements, all of it together or nothing.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// New documents; one that is there already stays as it is.
    pub specs: Vec<Spec>,
    /// Engagements that are new, or have come elsewhere.
    pub engagements: Vec<Engaged>,
    /// New steps.
    pub steps: Vec<Noted>,
}

impl Journal {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty() && self.engagements.is_empty() && self.steps.is_empty()
    }
}
