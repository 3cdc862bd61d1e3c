//! `rialto publish`: records to a node, signed by whoever stands for them.

use super::import;
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::keys::KeyChoice;
use crate::output::text::{json_line, shown};
use crate::output::{self, DIM, GOOD, WARN, count, paint};
use crate::peer::{Destination, Message, Peer, Refused, Said};
use crate::publication::{self, Publication, Restriction};
use crate::{clock, house};
use json::{Document, Node, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use store::Kind;

/// Publish records at a node
///
/// Each record is wrapped in a publication and signed with the local key; the node's signed acknowledgement, which means
/// that the record is on its disk, is verified and shown. A record must name you as the one who stands for it. What
/// the node refuses is reported with the reason, and the rest goes on. What is restricted is not there for anybody else:
/// not in answers, not in reasons, not when the record is looked at.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto publish manifest.json --kind manifest
  rialto publish offers.ndjson --kind offer --to https://node.example
  rialto publish manifest.json --restrict /pricing=did:web:buyer.example

Exits with 1 when a record was refused.")]
pub(crate) struct Publish {
    /// One JSON document, or one on each line; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What the records are; seen from each record when absent
    #[arg(long, value_name = "KIND", value_parser = import::kind)]
    kind: Option<Kind>,

    /// Let only these see what a path reaches in each record, such as /pricing=did:web:a.example,did:web:b.example
    #[arg(long, value_name = "PATH=DID[,DID]", value_parser = Restriction::parse)]
    restrict: Vec<Restriction>,

    #[command(flatten)]
    destination: Destination,

    #[command(flatten)]
    key: KeyChoice,

    /// Print the signed acknowledgements and the refusals as JSON, one on each line
    #[arg(long)]
    json: bool,
}

/// Publications that are under way together.
const TOGETHER: usize = 16;

/// Refusals that are shown one by one.
const SHOWN: usize = 20;

/// What came of all records.
#[derive(Default)]
struct Tally {
    kept: usize,
    unchanged: usize,
    refused: usize,
    left_behind: usize,
    /// The last acknowledgement, for whoever publishes a single record.
    last: String,
}

impl Publish {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let peer = Peer::new(&self.destination)?;
        let key = self.key.stored()?;
        let bar = house::bar("publishing", 0);
        let (mut tally, mut waiting) = (Tally::default(), Vec::new());
        for path in &self.files {
            for text in Records::open(path)? {
                let text = text.map_err(|error| Failure::io("read", path, &error))?;
                match publication::of_record(&text, self.kind, &self.restrict, &key, clock::now()) {
                    Ok(publication) => waiting.push((text, publication)),
                    Err(failure) => self.refuse(&text, &failure, &mut tally)?,
                }
                if waiting.len() == TOGETHER {
                    self.send(&peer, std::mem::take(&mut waiting), &mut tally)?;
                    bar.inc(TOGETHER as u64);
                }
            }
        }
        self.send(&peer, waiting, &mut tally)?;
        bar.finish_and_clear();
        self.sum_up(&tally)?;
        Ok(if tally.refused > 0 { Exit::No } else { Exit::Fine })
    }

    fn send(&self, peer: &Peer, batch: Vec<(Text, Publication)>, tally: &mut Tally) -> Result<(), Failure> {
        let message = |(_, publication): &(Text, Publication)| Message::Publish { bytes: publication.bytes.clone() };
        let outcomes = peer.ask_all(batch.iter().map(message).collect());
        for ((text, publication), outcome) in batch.into_iter().zip(outcomes) {
            match outcome {
                Ok(said) => {
                    let acknowledged = Acknowledged::read(&said, &publication)?;
                    tally.left_behind += usize::from(publication.left_behind);
                    *if acknowledged.sequence.is_some() { &mut tally.kept } else { &mut tally.unchanged } += 1;
                    tally.last = acknowledged.described();
                    if self.json {
                        output::print(&json_line(&said.text.bytes))?;
                    }
                }
                // Without a node there is no use in going on.
                Err(Refused::Failure(failure)) => return Err(failure),
                Err(refused) => {
                    // The refusal speaks of the publication; in the file there is only the record.
                    let about = Text { name: text.name, bytes: Vec::new() };
                    self.refuse(&about, &refused.about(&about), tally)?;
                }
            }
        }
        Ok(())
    }

    fn refuse(&self, text: &Text, failure: &Failure, tally: &mut Tally) -> Result<(), Failure> {
        tally.refused += 1;
        if self.json {
            let refused = json!({"error": failure.to_value(), "from": text.name});
            return output::print(&json_line(&json::canonical_value(&refused)));
        }
        if tally.refused <= SHOWN {
            failure.report();
        }
        Ok(())
    }

    fn sum_up(&self, tally: &Tally) -> Result<(), Failure> {
        if tally.left_behind > 0 {
            output::note(&format!(
                "what stood beside {} as its quality was not sent; nobody vouches for themselves",
                count(tally.left_behind, "record")
            ));
        }
        let all = tally.kept + tally.unchanged + tally.refused;
        if self.json {
            return Ok(());
        }
        if all == 1 {
            return output::print(&tally.last);
        }
        if tally.refused > SHOWN {
            output::say(&format!("{} more were refused; --json names them all", tally.refused - SHOWN));
        }
        let refused = format!("{} refused", tally.refused);
        let refused = if tally.refused > 0 { paint(WARN, refused) } else { refused };
        output::print(&format!(
            "{} {} kept, {} unchanged, {refused} {}\n",
            paint(GOOD, "published:"),
            tally.kept,
            tally.unchanged,
            paint(DIM, format!("of {}", count(all, "record")))
        ))
    }
}

/// What a node says of a record that it took.
pub(super) struct Acknowledged<'a> {
    output: Node<'a>,
    at: &'a str,
    signer: &'a str,
    sequence: Option<u64>,
}

impl<'a> Acknowledged<'a> {
    /// Reads a proved acknowledgement; it must be of what was sent.
    pub(super) fn read(said: &'a Said, sent: &Publication) -> Result<Self, Failure> {
        let root = said.document.root();
        let named = |output: &Node<'_>| {
            output.get("publication_id").and_then(Node::as_str) == Some(&sent.publication_id)
                && output.get("type").and_then(Node::as_str) == Some("oap.record.ack")
        };
        let output = root.get("output").filter(named).ok_or_else(|| {
            Failure::refused(format!("{} acknowledges something else than what was sent", said.text.name))
                .help("ask its operator; the record may or may not be kept")
        })?;
        let at = root.get("timestamp").and_then(Node::as_str).unwrap_or_default();
        let sequence = output.get("sequence").and_then(Node::as_u64);
        Ok(Self { output, at, signer: said.signer.as_str(), sequence })
    }

    /// For people, in a few lines.
    pub(super) fn described(&self) -> String {
        let text = |name: &str| self.output.get(name).and_then(Node::as_str).map(shown).unwrap_or_default();
        let revision = self.output.get("revision").and_then(Node::as_u64).unwrap_or_default();
        let word = match (text("state").as_str(), self.sequence) {
            ("withdrawn", _) => "withdrawn",
            (_, None) => "unchanged",
            (_, Some(_)) => "published",
        };
        let kind = match text("kind") {
            kind if kind.is_empty() => String::new(),
            kind => format!("{kind}, "),
        };
        let change = self.sequence.map(|sequence| format!(", change {sequence} of the log")).unwrap_or_default();
        let told = format!("{kind}revision {revision}{change}; acknowledged {} by {}", shown(self.at), self.signer);
        format!("{} {}\n  {}\n", paint(GOOD, word), text("record_id"), paint(DIM, told))
    }
}

/// The records of a file: the whole of it, or one on each line.
struct Records {
    name: String,
    lines: BufReader<Box<dyn Read>>,
    number: usize,
    /// What was read to see which of the two it is.
    first: Option<Vec<u8>>,
    by_line: bool,
}

impl Records {
    fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::io("read", path, &error);
        let mut lines = BufReader::new(files::open(path)?);
        let mut first = files::line(&mut lines).map_err(failed)?.unwrap_or_default();
        let whole = Document::parse(first.trim_ascii(), &json::Limits::DOCUMENT).is_ok();
        if !whole && first.len() < json::Limits::DOCUMENT.bytes as usize {
            let most = u64::from(json::Limits::DOCUMENT.bytes);
            lines.by_ref().take(most).read_to_end(&mut first).map_err(failed)?;
        }
        Ok(Self { name: files::name(path), lines, number: 0, first: Some(first), by_line: whole })
    }
}

impl Iterator for Records {
    type Item = std::io::Result<Text>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let bytes = match self.first.take() {
                Some(first) => first,
                None if !self.by_line => return None,
                None => match files::line(&mut self.lines) {
                    Ok(line) => line?,
                    Err(error) => return Some(Err(error)),
                },
            };
            self.number += 1;
            let empty = bytes.trim_ascii().is_empty();
            if !empty || !self.by_line {
                let alone = !self.by_line || (self.number == 1 && self.is_at_end());
                let name = if alone { self.name.clone() } else { format!("{} line {}", self.name, self.number) };
                return Some(Ok(Text { name, bytes: bytes.trim_ascii_end().to_vec() }));
            }
        }
    }
}

impl Records {
    fn is_at_end(&mut self) -> bool {
        self.lines.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}
