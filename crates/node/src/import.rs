//! Many records at once, from the operator of the node.
//!
//! A line is a record, a signed publication, or a record with its quality beside it, which becomes the operator's
//! evidence about that record. Lines are read and parsed by one thread, written by the store's, filed by a third, and
//! what is filed is sealed by a fourth. A line that cannot be kept is reported with its number and the reason; the rest goes on.

use crate::catalog::{Filing, Step};
use crate::collection::{is_publication, record_of};
use crate::descriptions;
use crate::gate::{self, Restrictions};
use crate::node::Node;
use crate::publish::{ID_BYTES_MAX, check_authority};
use crate::refusal::Error;
use json::{Document, Limits, Node as JsonNode, Pointer, Shapes, json};
use std::io::BufRead;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use store::{Batch, Committed, Kind, Outcome, Put};

/// Records that are written in one commit; each waits for the disk twice.
const BATCH: usize = 4_000;

/// Batches that may wait for the next thread.
const WAITING: usize = 4;

/// Fresh candidates from which on they are written to disk: more than while questions are answered, because larger
/// segments are merged less often.
const SEAL_AT: usize = 131_072;

/// How far an import is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Lines that were looked at, empty ones not counted.
    pub lines: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Records that are new or changed.
    pub kept: u64,
    /// Records that were there already, byte for byte.
    pub unchanged: u64,
    /// Lines that were refused.
    pub refused: u64,
}

/// What an import tells while it runs.
#[derive(Debug)]
pub enum Told {
    /// A line that cannot be kept: its number, from 1, and why.
    Refused(u64, String),
    /// How far it is.
    Progress(Imported),
}

/// A line that can be kept.
struct Prepared {
    line: u64,
    put: Put,
    filing: Filing,
}

impl Node {
    /// Keeps every record of a text with one JSON document on each line.
    ///
    /// `kind` is what bare records are; signed publications say it themselves. Nothing else may write meanwhile.
    pub fn import(
        &self,
        mut lines: impl BufRead + Send,
        kind: Option<Kind>,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Imported, Error> {
        self.catalog.set_importing(true);
        let imported = self.import_lines(&mut lines, kind, tell);
        self.catalog.set_importing(false);
        imported
    }

    fn import_lines(
        &self,
        lines: &mut (impl BufRead + Send),
        kind: Option<Kind>,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Imported, Error> {
        let (to_store, for_store) = sync_channel(WAITING);
        let (to_index, for_index) = sync_channel(WAITING);
        let (told, telling) = sync_channel(1024);
        std::thread::scope(|scope| {
            let reading = scope.spawn({
                let told = told.clone();
                move || self.prepare(lines, kind, &to_store, &told)
            });
            let writing = scope.spawn(move || self.write_batches(&for_store, &to_index, &told));
            let (to_disk, for_disk) = sync_channel(1);
            let filing = scope.spawn(move || self.file_batches(&for_index, &to_disk));
            let sealing = scope.spawn(move || for_disk.iter().try_for_each(|()| self.catalog.seal_imported(SEAL_AT)));
            let mut sum = Imported::default();
            for news in telling {
                sum.add(&news);
                match news {
                    News::Refused(line, reason) => tell(Told::Refused(line, reason)),
                    News::Read { .. } => {}
                    News::Written { .. } => tell(Told::Progress(sum)),
                }
            }
            let ended = || Error::fault("a thread of the import ended early");
            reading.join().map_err(|_| ended())??;
            writing.join().map_err(|_| ended())??;
            filing.join().map_err(|_| ended())??;
            sealing.join().map_err(|_| ended())??;
            self.catalog.compact()?;
            Ok(sum)
        })
    }

    fn prepare(
        &self,
        lines: &mut impl BufRead,
        kind: Option<Kind>,
        to_store: &SyncSender<Vec<Prepared>>,
        told: &SyncSender<News>,
    ) -> Result<(), Error> {
        let (mut shapes, mut batch, mut number) = (Shapes::default(), Vec::new(), 0);
        let (mut line, mut read, mut seen) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).map_err(Error::fault)?;
            if length == 0 {
                break;
            }
            number += 1;
            read += length as u64;
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            seen += 1;
            match self.prepare_line(text, number, kind, &mut shapes) {
                Ok(prepared) => batch.extend(prepared),
                Err(reason) => drop(told.send(News::Refused(number, reason))),
            }
            if batch.len() >= BATCH {
                let (bytes, lines) = (std::mem::take(&mut read), std::mem::take(&mut seen));
                drop(told.send(News::Read { bytes, lines }));
                if to_store.send(std::mem::take(&mut batch)).is_err() {
                    return Ok(());
                }
            }
        }
        drop(told.send(News::Read { bytes: read, lines: seen }));
        drop(to_store.send(batch));
        Ok(())
    }

    fn prepare_line(
        &self,
        text: &[u8],
        line: u64,
        kind: Option<Kind>,
        shapes: &mut Shapes,
    ) -> Result<Vec<Prepared>, String> {
        let document = Document::parse_with(text, &Limits::DOCUMENT, shapes).map_err(|error| error.to_string())?;
        let root = document.root();
        if !root.is_object() {
            return Err("a record is an object".to_owned());
        }
        if root.get("record").is_some() && root.get(gate::MEMBER).is_some() && !is_publication(root) {
            return Err("what is restricted stands in a signed publication; let its publisher sign one".to_owned());
        }
        if let Some(record) = root.get("record").filter(|record| record.is_object() && !is_publication(root)) {
            let bare = self.prepare_record(json::canonical(record), line, kind, record.to_document())?;
            let quality = root.get("quality").map(|quality| self.operators_word(&bare.put.id, quality));
            let said =
                quality.map(|said| self.prepare_record(said.0, line, Some(Kind::Evidence), said.1)).transpose()?;
            return Ok([Some(bare), said].into_iter().flatten().collect());
        }
        Ok(vec![self.prepare_record(text.to_vec(), line, kind, document)?])
    }

    fn prepare_record(
        &self,
        body: Vec<u8>,
        line: u64,
        kind: Option<Kind>,
        document: Document,
    ) -> Result<Prepared, String> {
        let root = document.root();
        let (kind, publisher) = if is_publication(root) {
            let named = root.get("kind").and_then(JsonNode::as_str).and_then(Kind::parse);
            let verified = trust::verify_did_key(&document, "publisher_did").map_err(|error| error.to_string())?;
            let kind = named.ok_or("the publication names no kind we know")?;
            let publisher = verified.signer().to_string();
            check_authority(kind, record_of(&document), &publisher).map_err(|error| error.to_string())?;
            self.check_restricted(&document).map_err(|error| error.to_string())?;
            (kind, publisher)
        } else {
            let kind = kind.or_else(|| kind_of(root)).ok_or("say what these records are with --kind")?;
            (kind, self.publisher(kind, root))
        };
        let id = aql::own_id(record_of(&document)).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
        let id = id.ok_or("a record has a name of its own: `tool.did`, `offer_id` or `id`, of at most 1,024 bytes")?;
        descriptions::check_no_claim(record_of(&document), &id, Pointer::root()).map_err(|refusal| refusal.detail)?;
        if kind == Kind::Description {
            return Err("descriptions are read where they stand; let the node register or crawl them".to_owned());
        }
        let filing = Filing::new(kind, &id, publisher.clone(), document).map_err(|error| error.to_string())?;
        Ok(Prepared { line, put: Put { id, kind, publisher, body }, filing })
    }

    /// The same checks that a publication over the network meets.
    fn check_restricted(&self, publication: &Document) -> Result<(), Error> {
        let (restrictions, record) = (Restrictions::read(publication.root())?, record_of(publication));
        restrictions.check(record)?;
        self.check_audience(&restrictions, &aql::own_id(record).unwrap_or_default(), publication)
    }

    /// What the operator says about a record's quality, as evidence.
    fn operators_word(&self, about: &str, quality: JsonNode<'_>) -> (Vec<u8>, Document) {
        let mut said = quality.to_value();
        if let Some(members) = said.as_object_mut() {
            members.insert("id".into(), json!(format!("urn:rialto:evidence:{}", trust::Digest::of(about.as_bytes()))));
            members.insert("issuer_did".into(), json!(self.identity.did().as_str()));
            members.insert("subject_did".into(), json!(about));
        }
        let bytes = json::canonical_value(&said);
        let document = Document::of(&said).unwrap_or_else(|_| quality.to_document());
        (bytes, document)
    }

    /// The operator vouches for what a bare record says of its publisher.
    fn publisher(&self, kind: Kind, record: JsonNode<'_>) -> String {
        let own = |path: &[&str]| {
            let found = path.iter().try_fold(record, |node, name| node.get(name));
            found.and_then(JsonNode::as_str)
        };
        let named = match kind {
            Kind::Manifest => own(&["tool", "publisher", "did"]).or_else(|| own(&["tool", "did"])),
            Kind::Offer => own(&["provider_did"]),
            Kind::Knowledge => own(&["publisher_did"]),
            Kind::Receipt => own(&["principal_did"]),
            Kind::Evidence => own(&["issuer_did"]),
            Kind::Description => None,
        };
        named.unwrap_or(self.identity.did().as_str()).to_owned()
    }

    fn write_batches(
        &self,
        batches: &Receiver<Vec<Prepared>>,
        to_index: &SyncSender<(Vec<Filing>, Committed)>,
        told: &SyncSender<News>,
    ) -> Result<(), Error> {
        for batch in batches {
            let (mut lines, mut puts, mut filings) = (Vec::new(), Vec::new(), Vec::new());
            for Prepared { line, put, filing } in batch {
                lines.push(line);
                puts.push(put);
                filings.push(filing);
            }
            let commit = |puts| self.store.commit(Batch { puts, at: self.clock.millis(), ..Batch::default() });
            match commit(puts.clone()) {
                Ok(committed) => self.pass_on(filings, committed, to_index, told)?,
                // One of them is not acceptable: each by itself, so that the others are kept.
                Err(_) => {
                    for ((line, put), filing) in lines.into_iter().zip(puts).zip(filings) {
                        match commit(vec![put]) {
                            Ok(committed) => self.pass_on(vec![filing], committed, to_index, told)?,
                            Err(error) if self.store.is_stopped() => return Err(Error::fault(error)),
                            Err(error) => drop(told.send(News::Refused(line, error.to_string()))),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn pass_on(
        &self,
        filings: Vec<Filing>,
        committed: Committed,
        to_index: &SyncSender<(Vec<Filing>, Committed)>,
        told: &SyncSender<News>,
    ) -> Result<(), Error> {
        let kept = committed.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Changed { .. })).count();
        let unchanged = committed.outcomes.len() - kept;
        to_index.send((filings, committed)).map_err(|_| Error::fault("the index stopped"))?;
        drop(told.send(News::Written { kept: kept as u64, unchanged: unchanged as u64 }));
        Ok(())
    }

    fn file_batches(
        &self,
        batches: &Receiver<(Vec<Filing>, Committed)>,
        to_disk: &SyncSender<()>,
    ) -> Result<(), Error> {
        for (filings, committed) in batches {
            let (mut steps, mut last) = (Vec::with_capacity(filings.len()), None);
            for (filing, outcome) in filings.into_iter().zip(committed.outcomes) {
                if let Outcome::Changed { sequence, replaces, .. } = outcome {
                    steps.push(Step::File(Box::new(filing), sequence, replaces));
                    last = Some(sequence);
                }
            }
            if let Some(last) = last {
                self.catalog.apply(steps, last)?;
            }
            // Whoever seals now looks again; nobody waits for it unless it falls far behind.
            let far_behind = self.catalog.indexes()?.unsealed() > 2 * SEAL_AT;
            let _told = if far_behind { to_disk.send(()).is_ok() } else { to_disk.try_send(()).is_ok() };
        }
        Ok(())
    }
}

/// What a bare record is, by what only its kind has.
pub fn kind_of(record: JsonNode<'_>) -> Option<Kind> {
    let has = |name: &str| record.get(name).is_some();
    match () {
        () if has("tool") => Some(Kind::Manifest),
        () if has("offer_id") => Some(Kind::Offer),
        () if has("receipt_id") => Some(Kind::Receipt),
        () if has("subject_did") => Some(Kind::Evidence),
        () if has("@type") => Some(Kind::Knowledge),
        () => None,
    }
}

/// What the threads tell each other's listener.
enum News {
    Read { bytes: u64, lines: u64 },
    Refused(u64, String),
    Written { kept: u64, unchanged: u64 },
}

impl Imported {
    fn add(&mut self, news: &News) {
        match news {
            News::Read { bytes, lines } => {
                self.bytes += bytes;
                self.lines += lines;
            }
            News::Refused(..) => {
                self.refused += 1;
            }
            News::Written { kept, unchanged } => {
                self.kept += kept;
                self.unchanged += unchanged;
            }
        }
    }
}
