//! RFC 0020 B.2: a log whose lines nobody can change unseen: each holds the digest of the line before.
//!
//! INVARIANT: a line is canonical JSON, so that it has one spelling and one digest.

use crate::refusal::{Code, Refusal};
use json::{Document, Instant, Limits, Map, Node, Value, json};
use trust::Digest;

/// What the first line has instead of a digest.
pub(crate) const GENESIS: &str = "genesis";

/// The end of a log: how many lines there are, and the digest of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    number: u64,
    digest: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A line is no entry.
    Unreadable(u64),
    /// A line does not hold the digest of the one before, or has another number.
    Broken(u64),
    /// A line says something that does not follow from the lines before.
    Impossible(u64, String),
    /// The end is not where it was.
    Head,
}

impl Flaw {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Unreadable(line) => format!("line {line} is no entry"),
            Self::Broken(line) => format!("line {line} does not follow the line before it"),
            Self::Impossible(line, why) => format!("line {line} cannot be: {why}"),
            Self::Head => "the log does not end where it ended last: lines are missing, or were changed".to_owned(),
        }
    }
}

impl Default for Tip {
    fn default() -> Self {
        Self { number: 0, digest: GENESIS.to_owned() }
    }
}

impl Tip {
    /// How many lines there are.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The digest of the last line, or `genesis`.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The line that follows, in canonical form.
    pub(crate) fn line(&self, at: Instant, step: &str, mut members: Map) -> Vec<u8> {
        members.insert("at".to_owned(), json!(at.to_string()));
        members.insert("number".to_owned(), json!(self.number + 1));
        members.insert("previous".to_owned(), json!(self.digest));
        members.insert("step".to_owned(), json!(step));
        json::canonical_value(&Value::Object(members))
    }

    /// Reads a line; says whether it is the one that follows.
    pub(crate) fn follow(&self, line: &[u8]) -> (Self, Option<Document>, Option<Flaw>) {
        let number = self.number + 1;
        let after = Self { number, digest: Digest::of(line).to_string() };
        let read = Document::parse(line, &Limits::OURS).ok();
        // Another spelling of the same entry is a line that somebody rewrote.
        let read = read.filter(|entry| entry.root().is_object() && json::canonical(entry.root()) == line);
        let Some(entry) = read else { return (after, None, Some(Flaw::Unreadable(number))) };
        let follows = entry.root().get("previous").and_then(Node::as_str) == Some(self.digest.as_str())
            && entry.root().get("number").and_then(Node::as_u64) == Some(number);
        (after, Some(entry), (!follows).then_some(Flaw::Broken(number)))
    }
}

/// The whole lines of a log; what a crash cut short at its end was never promised to anybody.
pub fn lines(log: &[u8]) -> impl Iterator<Item = &[u8]> {
    log.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"))
}

/// The member of an entry that must be a document.
pub(crate) fn document(entry: &Document, name: &str) -> Result<Document, Refusal> {
    let found = entry.root().get(name).filter(|node| node.is_object()).map(Node::to_document);
    found.ok_or_else(|| Refusal::new(Code::MissingField, format!("the entry has no `{name}`")).at(&[name]))
}
