//! RFC 0020 §5: the asker's own receipts: what was asked, what was answered and why, as a chain that nobody can change
//! unseen.
//!
//! One line for each question in `receipts.ndjson`: digests of the signed intent, of each page of the answer and of each
//! decision record, and the digest of the line before. The digest of the last line also stands in `receipts.head`, so
//! that a tail that was cut off is missed.
//!
//! INVARIANT: a line is on disk before the head names it (`node::Log`).

use crate::asking::Answered;
use crate::environment;
use crate::failure::Failure;
use crate::question::Sent;
use aql::Instant;
use json::{Document, Limits, Node, Value, json};
use node::Log;
use std::fs;
use std::path::{Path, PathBuf};
use trust::Digest;

const LOG: &str = "receipts.ndjson";
const HEAD: &str = "receipts.head";
/// What the first line has instead of a digest.
const GENESIS: &str = "genesis";

/// Where a chain is kept.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Place {
    /// The folder of the receipts [default: $RIALTO_HOME or the user's data directory]
    #[arg(long, value_name = "DIR")]
    receipts: Option<PathBuf>,
}

impl Place {
    /// Whether there is a place for receipts.
    pub(crate) fn is_known(&self) -> bool {
        self.folder().is_some()
    }

    fn folder(&self) -> Option<PathBuf> {
        self.receipts.clone().or_else(environment::data_directory)
    }

    /// The chain at this place, whether or not it has begun.
    pub(crate) fn chain(&self) -> Result<Chain, Failure> {
        let folder = self.folder().ok_or_else(|| {
            Failure::files("there is no place for receipts: no home directory is known")
                .help("name a folder with --receipts, or set RIALTO_HOME")
        })?;
        Ok(Chain { folder })
    }
}

/// A log of receipts.
pub(crate) struct Chain {
    folder: PathBuf,
}

/// What is wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A line is no receipt.
    Unreadable(usize),
    /// A line does not hold the digest of the one before, or has another number.
    Broken(usize),
    /// The head names another line than the last one.
    Head,
}

impl Flaw {
    /// In words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Unreadable(line) => format!("line {line} is no receipt"),
            Self::Broken(line) => format!("line {line} does not follow the line before it"),
            Self::Head => "the log does not end where it ended last: lines are missing, or were added".to_owned(),
        }
    }
}

/// A receipt as it stands in the log.
pub(crate) struct Receipt {
    pub(crate) line: Vec<u8>,
    pub(crate) value: Value,
}

impl Chain {
    /// The file of the log.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// Appends what came of a question.
    pub(crate) fn append(&self, sent: &Sent, answered: &Answered, node: &str, now: Instant) -> Result<(), Failure> {
        let path = self.path();
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::InvalidData => Failure::files(format!(
                "`{}`: {}",
                path.display(),
                Flaw::Head.describe()
            ))
            .help("nothing is added to a chain that is not whole; move it away, or name another place with --receipts"),
            _ => Failure::io("write", &path, &error),
        };
        let mut log = Log::open(&self.folder, LOG).map_err(failed)?;
        let mut held = log.hold().map_err(failed)?;
        let lines = held.unread().map_err(failed)?;
        let last = lines.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next());
        let number = lines.iter().filter(|byte| **byte == b'\n').count() + 1;
        let previous = last.map_or_else(|| GENESIS.to_owned(), |line| Digest::of(line).to_string());
        let line = json::canonical_value(&entry(sent, answered, node, now, number, &previous));
        held.append(&line).map_err(failed)
    }

    /// Reads every receipt and says what is wrong with the chain; a chain that has not begun is sound.
    pub(crate) fn read(&self) -> Result<(Vec<Receipt>, Vec<Flaw>), Failure> {
        let log = read_or_nothing(&self.path())?;
        let head = read_or_nothing(&self.folder.join(HEAD))?;
        Ok(follow(&log, String::from_utf8_lossy(&head).trim()))
    }
}

/// Follows a log from its first line to the one that the head names.
fn follow(log: &[u8], head: &str) -> (Vec<Receipt>, Vec<Flaw>) {
    let (mut receipts, mut flaws) = (Vec::new(), Vec::new());
    let (mut previous, mut before) = (GENESIS.to_owned(), String::new());
    let lines = log.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    for (number, line) in (1..).zip(lines) {
        let read = Document::parse(line, &Limits::OURS).ok().filter(|entry| entry.root().is_object());
        let Some(entry) = read else {
            flaws.push(Flaw::Unreadable(number));
            before = std::mem::replace(&mut previous, Digest::of(line).to_string());
            continue;
        };
        let follows = text(entry.root(), "previous") == previous;
        if !follows || entry.root().get("number").and_then(Node::as_u64) != Some(number as u64) {
            flaws.push(Flaw::Broken(number));
        }
        before = std::mem::replace(&mut previous, Digest::of(line).to_string());
        receipts.push(Receipt { line: line.to_vec(), value: entry.root().to_value() });
    }
    // A crash may have come between a line and its head; nothing and `genesis` are the same beginning.
    let head = if head.is_empty() { GENESIS } else { head };
    if head != previous && head != before {
        flaws.push(Flaw::Head);
    }
    (receipts, flaws)
}

/// The line about a question.
fn entry(sent: &Sent, answered: &Answered, node: &str, now: Instant, number: usize, previous: &str) -> Value {
    let pages = answered.pages.iter().map(|(said, _)| (said.document.root(), said.text.bytes.as_slice()));
    let answers: Vec<Value> = pages
        .clone()
        .map(|(root, bytes)| json!({"response_id": text(root, "response_id"), "digest": Digest::of(bytes).to_string()}))
        .collect();
    let entries =
        pages.flat_map(|(root, _)| ["candidates", "rejected"].into_iter().filter_map(move |list| root.get(list)));
    let decisions: Vec<Value> = entries
        .flat_map(Node::elements)
        .filter_map(|entry| {
            let record = entry.get("decision_record")?;
            Some(json!({
                "candidate_id": text(entry, "candidate_id"),
                "decision_id": text(record, "decision_id"),
                "outcome": text(record, "outcome"),
                "digest": Digest::of(&json::canonical(record)).to_string(),
            }))
        })
        .collect();
    json!({
        "number": number,
        "at": now.to_string(),
        "node": node,
        "resolver_did": answered.pages.first().map(|(said, _)| said.signer.as_str().to_owned()),
        "issuer_did": sent.intent.issuer_did,
        "intent_id": sent.intent.intent_id,
        "intent": Digest::of(&sent.bytes).to_string(),
        "answers": answers,
        "decisions": decisions,
        "conforms": answered.conforms(),
        "previous": previous,
    })
}

fn text(node: Node<'_>, name: &str) -> String {
    node.get(name).and_then(Node::as_str).unwrap_or_default().to_owned()
}

fn read_or_nothing(path: &Path) -> Result<Vec<u8>, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::io("read", path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(count: usize) -> (Vec<u8>, String) {
        let (mut log, mut previous) = (Vec::new(), GENESIS.to_owned());
        for number in 1..=count {
            let line = json::canonical_value(&json!({"number": number, "previous": previous}));
            previous = Digest::of(&line).to_string();
            log.extend([line.as_slice(), b"\n"].concat());
        }
        (log, if count == 0 { String::new() } else { previous })
    }

    fn flaws(log: &[u8], head: &str) -> Vec<Flaw> {
        follow(log, head).1
    }

    #[test]
    fn a_whole_chain_has_no_flaw() {
        for count in [0, 1, 5] {
            let (log, head) = log(count);
            let (receipts, flaws) = follow(&log, &head);
            assert_eq!((receipts.len(), flaws), (count, vec![]));
        }
    }

    #[test]
    fn a_crash_between_a_line_and_its_head_is_no_flaw() {
        for count in 1..=3 {
            assert_eq!(flaws(&log(count).0, &log(count - 1).1), [], "{count}");
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let (log, head) = log(3);
        for position in 0..log.len() {
            let mut changed = log.clone();
            changed[position] ^= 1;
            assert!(!flaws(&changed, &head).is_empty(), "byte {position}");
        }
    }

    #[test]
    fn a_line_that_is_missing_added_or_moved_is_noticed() {
        let (log, head) = log(3);
        let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(flaws(&lines[..2].concat(), &head), [Flaw::Head]);
        assert_eq!(flaws(b"", &head), [Flaw::Head]);
        assert_eq!(flaws(&lines[1..].concat(), &head), [Flaw::Broken(1), Flaw::Broken(2)]);
        assert_eq!(flaws(&[lines[0], lines[2]].concat(), &head), [Flaw::Broken(2)]);
        assert_eq!(flaws(&[lines[1], lines[0], lines[2]].concat(), &head).len(), 3);
        assert_eq!(flaws(&log, ""), [Flaw::Head]);
        assert_eq!(flaws(&log, &Digest::of(lines[0].trim_ascii_end()).to_string()), [Flaw::Head]);
        assert_eq!(flaws(b"x\n", &Digest::of(b"x").to_string()), [Flaw::Unreadable(1)]);
    }
}
