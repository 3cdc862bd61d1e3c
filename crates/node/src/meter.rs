//! RFC 0020 §3.6 knowledge, RFC 0013 §3.5: what was delivered to whom, proved by receipts and counted.
//!
//! Each answer with knowledge nodes in it is a delivery. Its receipts carry a consumption proof (which nodes, how many
//! units, the digest of what was sent) and cite every provider; they are signed and chained by hash. One line of a file
//! holds them, written before the answer is sent: a kill does not lose it. A question that is answered anew after a
//! kill is delivered once, so a later line of the same question takes the place of the earlier one.
//!
//! INVARIANT: the sums are those of the lines; opening reads them again from the last file, which begins with the sums
//! of the files before, and from those files whose questions may still be sent again.

use crate::chance;
use crate::identity::Identity;
use crate::publish::cannot_write;
use crate::refusal::Error;
use crate::replies::Key;
use aql::Amount;
use json::{Document, Limits, Node, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use store::Cause;
use trust::{Digest, encoding};

/// Bytes from which on a new file is begun.
const FILE_BYTES: u64 = 64 << 20;
/// Deliveries that can be asked for by the name of their answer.
const RECENT_MAX: usize = 262_144;
/// Bytes of what was delivered that count as one token (`docs/decisions/0052`).
const TOKEN_BYTES: u64 = 4;

pub(crate) const RECEIPT: &str = "urn:oap:receipt:";

/// What is delivered: who asked for whom, and under which question.
pub(crate) struct Delivery<'a> {
    pub(crate) key: Key,
    pub(crate) intent_id: &'a str,
    pub(crate) principal: &'a str,
    pub(crate) agent: &'a str,
    /// The digest of the question's bytes.
    pub(crate) input: Digest,
    /// Until when the question may be sent again, in milliseconds since 1970.
    pub(crate) expires: i64,
    pub(crate) at: String,
    pub(crate) nodes: Vec<Delivered>,
}

/// One knowledge node as it was delivered.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) id: String,
    pub(crate) provider: String,
    pub(crate) tariff: Tariff,
    pub(crate) payload: Vec<u8>,
}

/// How a knowledge node is metered; deliveries of one tariff share a receipt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tariff {
    unit: &'static str,
    /// The price of one unit and its currency, as the node declares them.
    price: Option<(String, String)>,
}

/// What a provider's nodes add up to, by unit and currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    nodes: u64,
    count: u64,
    /// In units of 10^-18.
    amount: u128,
}

type Account = (String, String, String);

/// Deliveries, kept.
#[derive(Debug)]
pub(crate) struct Meter {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    number: u32,
    bytes: u64,
    previous: String,
    sums: BTreeMap<Account, Sum>,
    recent: HashMap<Key, Place>,
}

/// A page of the chain.
#[derive(Debug)]
pub(crate) struct Links {
    /// The digest of each receipt, and of the one before it.
    pub(crate) links: Vec<(String, String)>,
    /// Where the next page begins.
    pub(crate) next: Option<(u32, u64)>,
    /// The digest of the last receipt of the chain.
    pub(crate) head: String,
}

/// Where a delivery stands and what it added.
#[derive(Clone, Debug)]
struct Place {
    file: u32,
    offset: u64,
    expires: i64,
    added: Vec<(Account, Sum)>,
}

impl Tariff {
    /// What a knowledge node declares: `metering`, else one unit for its `price`.
    pub(crate) fn of(record: Node<'_>) -> Self {
        let money = |block: Node<'_>, amount: &str| {
            let amount = block.get(amount)?.as_str().filter(|amount| Amount::parse(amount).is_some())?;
            let currency = block.get("currency")?.as_str().filter(|currency| currency.len() == 3)?;
            Some((amount.to_owned(), currency.to_owned()))
        };
        match record.get("metering") {
            Some(block) => {
                let unit = match block.get("unit").and_then(Node::as_str) {
                    Some("token") => "token",
                    Some("byte") => "byte",
                    Some("citation") => "citation",
                    _ => "knowledge_node",
                };
                Self { unit, price: money(block, "price_per_unit") }
            }
            None => {
                let price = record.get("price").and_then(|price| money(price, "amount"));
                Self { unit: "knowledge_node", price }
            }
        }
    }

    /// How many units a payload is.
    fn count(&self, payload: &[u8]) -> u64 {
        match self.unit {
            "byte" => payload.len() as u64,
            "token" => (payload.len() as u64).div_ceil(TOKEN_BYTES),
            _ => 1,
        }
    }
}

impl Meter {
    /// Opens the folder and adds up what was delivered.
    pub(crate) fn open(folder: &Path, now: i64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let named = |entry: io::Result<fs::DirEntry>| entry.ok()?.path().file_stem()?.to_str()?.parse::<u32>().ok();
        let number = fs::read_dir(folder)?.filter_map(named).max().unwrap_or_default();
        let mut state = State {
            file: OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path(folder, number))?,
            number,
            bytes: 0,
            previous: "genesis".to_owned(),
            sums: BTreeMap::new(),
            recent: HashMap::new(),
        };
        for earlier in first_needed(folder, number, now)?..number {
            state.number = earlier;
            state.learn(&File::open(path(folder, earlier))?, now)?;
        }
        state.number = number;
        state.bytes = state.learn(&state.file.try_clone()?, now)?;
        state.file.set_len(state.bytes)?;
        Ok(Self { folder: folder.to_owned(), state: Mutex::new(state) })
    }

    /// Writes the receipts of a delivery down.
    pub(crate) fn deliver(&self, delivery: &Delivery<'_>, identity: &Identity, now: i64) -> Result<(), Error> {
        let mut state = self.lock()?;
        if state.bytes >= FILE_BYTES {
            state.begin_file(&self.folder, now).map_err(unwritten)?;
        }
        let (receipts, previous) = state.receipts(delivery, identity)?;
        let line = json!({
            "key": encoding::encode(&delivery.key), "expires": delivery.expires, "receipts": receipts,
        });
        state.append(&line).map_err(unwritten)?;
        state.previous = previous;
        Ok(())
    }

    /// The receipts of an answer, as long as its question may be sent again; none when it delivered nothing.
    pub(crate) fn receipts_of(&self, key: Key) -> Result<Vec<Value>, Error> {
        let place = self.lock()?.recent.get(&key).map(|place| (place.file, place.offset));
        match place {
            Some((file, offset)) => self.line_at(file, offset),
            None => Ok(Vec::new()),
        }
    }

    /// A receipt by its name, however old.
    pub(crate) fn receipt(&self, id: &str) -> Result<Option<Value>, Error> {
        let place = || {
            let mut parts = id.strip_prefix(RECEIPT)?.split('-');
            Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u64>().ok()?))
        };
        let Some((file, offset)) = place() else { return Ok(None) };
        let receipts = self.line_at(file, offset)?;
        Ok(receipts.into_iter().find(|receipt| receipt.get("receipt_id").and_then(Value::as_str) == Some(id)))
    }

    /// Links of the chain from a place on, of so many deliveries at most; nothing when no line begins there.
    pub(crate) fn links(&self, (file, offset): (u32, u64), deliveries: usize) -> Result<Option<Links>, Error> {
        let (last, bytes, head) = {
            let state = self.lock()?;
            (state.number, state.bytes, state.previous.clone())
        };
        let known = file < last || (file == last && offset <= bytes);
        let opened = if known { open_at(&path(&self.folder, file), offset).map_err(Error::fault)? } else { None };
        let Some(mut reader) = opened else { return Ok(None) };
        let (mut links, mut offset, mut line) = (Vec::new(), offset, Vec::new());
        for _ in 0..deliveries {
            line.clear();
            let length = if file == last && offset >= bytes { 0 } else { read_whole(&mut reader, &mut line)? };
            if length == 0 {
                let next = (file < last).then_some((file + 1, 0));
                return Ok(Some(Links { links, next, head }));
            }
            offset += length;
            let entry = Document::parse(&line, &Limits::OURS).map_err(Error::fault)?;
            for receipt in entry.root().get("receipts").into_iter().flat_map(Node::elements) {
                let previous = receipt.get("previous_receipt_hash").and_then(Node::as_str).unwrap_or_default();
                links.push((Digest::of(&json::canonical(receipt)).to_string(), previous.to_owned()));
            }
        }
        Ok(Some(Links { links, next: Some((file, offset)), head }))
    }

    /// What the nodes of a provider add up to.
    pub(crate) fn sums(&self, provider: &str) -> Result<Vec<Value>, Error> {
        let state = self.lock()?;
        let of_provider = state.sums.iter().filter(|((named, ..), _)| named == provider);
        Ok(of_provider
            .map(|((_, unit, currency), sum)| {
                let mut entry = json!({"unit": unit, "nodes": sum.nodes, "count": sum.count});
                if let Some(members) = entry.as_object_mut().filter(|_| !currency.is_empty()) {
                    members.insert("amount".into(), json!(Amount::from_units(sum.amount).to_string()));
                    members.insert("currency".into(), json!(currency));
                }
                entry
            })
            .collect())
    }

    /// The receipts of the line at a place; none when no line begins there.
    fn line_at(&self, file: u32, offset: u64) -> Result<Vec<Value>, Error> {
        let file = match File::open(path(&self.folder, file)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::fault(error)),
        };
        let line = read_line(&file, offset).map_err(Error::fault)?;
        let Ok(line) = Document::parse(&line, &Limits::OURS) else { return Ok(Vec::new()) };
        Ok(line.root().get("receipts").into_iter().flat_map(Node::elements).map(Node::to_value).collect())
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.state.lock().map_err(|_| Error::fault("a delivery was interrupted; the node must be started again"))
    }
}

/// Nothing is delivered that cannot be counted: whoever asks hears what is wrong with the disk.
fn unwritten(error: io::Error) -> Error {
    tracing::error!(%error, "a delivery cannot be written down");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            cannot_write(Cause::Full).into()
        }
        io::ErrorKind::ReadOnlyFilesystem => cannot_write(Cause::ReadOnly).into(),
        _ => Error::fault(error),
    }
}

impl State {
    /// Adds up the lines of a file and says where they end; a cut or damaged tail is given up, since its answer was
    /// never sent.
    fn learn(&mut self, file: &File, now: i64) -> io::Result<u64> {
        let mut reader = BufReader::new(file);
        let (mut offset, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            let Ok(entry) = Document::parse(&line, &Limits::OURS) else { break };
            if length == 0 || line.last() != Some(&b'\n') {
                break;
            }
            self.take(entry.root(), offset, now);
            offset += length as u64;
        }
        Ok(offset)
    }

    /// Adds a line to the sums.
    fn take(&mut self, entry: Node<'_>, offset: u64, now: i64) {
        let text = |node: Node<'_>, name: &str| node.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
        for carried in entry.get("carried").into_iter().flat_map(Node::elements) {
            let account = (text(carried, "provider"), text(carried, "unit"), text(carried, "currency"));
            let number = |name: &str| carried.get(name).and_then(Node::as_u64).unwrap_or_default();
            let amount = text(carried, "amount").parse().unwrap_or_default();
            self.sums.insert(account, Sum { nodes: number("nodes"), count: number("count"), amount });
        }
        if let Some(previous) = entry.get("previous").and_then(Node::as_str) {
            self.previous = previous.to_owned();
        }
        let receipts = || entry.get("receipts").into_iter().flat_map(Node::elements);
        let Some(last) = receipts().last() else { return };
        self.previous = Digest::of(&json::canonical(last)).to_string();
        let key = encoding::decode_url(&text(entry, "key")).and_then(|key| Key::try_from(key.as_slice()).ok());
        let expires = entry.get("expires").and_then(Node::as_f64).unwrap_or_default() as i64;
        let added: Vec<_> = receipts().flat_map(added).collect();
        if let Some(key) = key {
            let place = Place { file: self.number, offset, expires, added: added.clone() };
            // The same question again is one delivery: what it added before goes.
            for (account, sum) in self.recent.insert(key, place).into_iter().flat_map(|place| place.added) {
                let known = self.sums.entry(account).or_default();
                known.nodes = known.nodes.saturating_sub(sum.nodes);
                known.count = known.count.saturating_sub(sum.count);
                known.amount = known.amount.saturating_sub(sum.amount);
            }
        }
        for (account, sum) in added {
            let known = self.sums.entry(account).or_default();
            known.nodes += sum.nodes;
            known.count = known.count.saturating_add(sum.count);
            known.amount = known.amount.saturating_add(sum.amount);
        }
        if self.recent.len() > RECENT_MAX {
            self.recent.retain(|_, place| place.expires >= now);
        }
    }

    fn append(&mut self, line: &Value) -> io::Result<()> {
        let mut bytes = json::canonical_value(line);
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, self.bytes)?;
        let offset = self.bytes;
        self.bytes += bytes.len() as u64;
        let entry = Document::parse(&bytes, &Limits::OURS).map_err(io::Error::other)?;
        self.take(entry.root(), offset, i64::MIN);
        Ok(())
    }

    /// Begins a file with the sums of those before; deliveries that may still be asked for stay known.
    fn begin_file(&mut self, folder: &Path, now: i64) -> io::Result<()> {
        let carried: Vec<Value> = self
            .sums
            .iter()
            .map(|((provider, unit, currency), sum)| {
                json!({"provider": provider, "unit": unit, "currency": currency, "nodes": sum.nodes,
                    "count": sum.count, "amount": sum.amount.to_string()})
            })
            .collect();
        // Until when questions of the files before may be sent again, and so must be known to be the same.
        let until = self.recent.values().map(|place| place.expires).max().unwrap_or(i64::MIN);
        let line = json!({"carried": carried, "previous": self.previous, "until": until});
        let number = self.number + 1;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path(folder, number))?;
        self.file.sync_all()?;
        (self.file, self.number, self.bytes) = (file, number, 0);
        self.recent.retain(|_, place| place.expires >= now);
        self.append(&line)
    }

    /// The signed receipts of a delivery, one for each tariff, and the digest that the next one chains to.
    fn receipts(&self, delivery: &Delivery<'_>, identity: &Identity) -> Result<(Vec<Value>, String), Error> {
        let mut tariffs: BTreeMap<&Tariff, Vec<&Delivered>> = BTreeMap::new();
        for node in &delivery.nodes {
            tariffs.entry(&node.tariff).or_default().push(node);
        }
        let (mut receipts, mut previous) = (Vec::new(), self.previous.clone());
        for (position, (tariff, nodes)) in tariffs.into_iter().enumerate() {
            let id = format!("{RECEIPT}{}-{}-{position}-{}", self.number, self.bytes, chance::name()?);
            let receipt = receipt(delivery, identity, &id, tariff, &nodes, &previous);
            previous = Digest::of(&json::canonical_value(&receipt)).to_string();
            receipts.push(receipt);
        }
        Ok((receipts, previous))
    }
}

fn receipt(
    delivery: &Delivery<'_>,
    identity: &Identity,
    id: &str,
    tariff: &Tariff,
    nodes: &[&Delivered],
    previous: &str,
) -> Value {
    let total: u64 = nodes.iter().map(|node| tariff.count(&node.payload)).sum();
    let cited = |node: &&Delivered| {
        let count = tariff.count(&node.payload);
        let weight = (count as f64 / total.max(1) as f64 * 1e6).round() / 1e6;
        json!({
            "provider_did": node.provider,
            "knowledge_node_id": node.id,
            "count": count,
            "contribution_weight": weight,
            "output_segment_hash": Digest::of(&node.payload).to_string(),
        })
    };
    let content: Vec<u8> = nodes.iter().flat_map(|node| node.payload.iter().copied()).collect();
    let mut proof = json!({
        "knowledge_node_ids": nodes.iter().map(|node| node.id.as_str()).collect::<Vec<_>>(),
        "unit": tariff.unit,
        "count": total,
        "content_hash": Digest::of(&content).to_string(),
        "metering_mechanism": "volume",
    });
    if let (Some(members), Some((price, currency))) = (proof.as_object_mut(), &tariff.price) {
        members.insert("price_per_unit".into(), json!(price));
        members.insert("currency".into(), json!(currency));
    }
    identity.sign_receipt(json!({
        "receipt_id": id,
        "type": "invocation",
        "timestamp": delivery.at,
        "principal_did": delivery.principal,
        "agent_did": delivery.agent,
        "tool_did": identity.did().as_str(),
        "action_id": delivery.intent_id,
        "input_hash": delivery.input.to_string(),
        "consumption_proof": proof,
        "citations": nodes.iter().map(cited).collect::<Vec<_>>(),
        "previous_receipt_hash": previous,
    }))
}

/// What a receipt adds to the accounts of the providers that it cites.
fn added(receipt: Node<'_>) -> Vec<(Account, Sum)> {
    let text = |node: Node<'_>, name: &str| node.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
    let Some(proof) = receipt.get("consumption_proof") else { return Vec::new() };
    let (unit, currency) = (text(proof, "unit"), text(proof, "currency"));
    let price = Amount::parse(&text(proof, "price_per_unit")).map_or(0, Amount::units);
    let cited = receipt.get("citations").into_iter().flat_map(Node::elements);
    cited
        .map(|citation| {
            let count = citation.get("count").and_then(Node::as_u64).unwrap_or_default();
            let amount = price.saturating_mul(u128::from(count));
            ((text(citation, "provider_did"), unit.clone(), currency.clone()), Sum { nodes: 1, count, amount })
        })
        .collect()
}

/// The first file that has to be read: one whose deliveries are over tells the files after it all they need.
fn first_needed(folder: &Path, last: u32, now: i64) -> io::Result<u32> {
    let mut number = last;
    while number > 0 {
        let mut line = Vec::new();
        BufReader::new(File::open(path(folder, number))?).read_until(b'\n', &mut line)?;
        let first = Document::parse(&line, &Limits::OURS).ok();
        // A kill can leave a file without its first line; then the file before has the sums.
        let until = first.and_then(|line| line.root().get("until").and_then(Node::as_f64));
        if until.is_some_and(|until| (until as i64) < now) {
            break;
        }
        number -= 1;
    }
    Ok(number)
}

/// A reader of a file from a place on where a line begins.
fn open_at(path: &Path, offset: u64) -> io::Result<Option<BufReader<File>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut before = [0];
    if offset > 0 && (file.read_at(&mut before, offset - 1)? == 0 || before != *b"\n") {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(offset))?;
    Ok(Some(BufReader::new(file)))
}

/// The next line with its end, and how long it is; a line that is being written is none yet.
fn read_whole(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> Result<u64, Error> {
    let length = reader.read_until(b'\n', line).map_err(Error::fault)?;
    Ok(if line.last() == Some(&b'\n') { length as u64 } else { 0 })
}

fn read_line(file: &File, mut offset: u64) -> io::Result<Vec<u8>> {
    let (mut line, mut block) = (Vec::new(), [0; 8_192]);
    loop {
        let length = file.read_at(&mut block, offset)?;
        let read = block.get(..length).unwrap_or_default();
        if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(read.get(..end).unwrap_or_default());
            return Ok(line);
        }
        line.extend_from_slice(read);
        offset += length as u64;
        if length == 0 || line.len() > Limits::OURS.bytes as usize {
            return Ok(Vec::new());
        }
    }
}

fn path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.ndjson"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::of_seed([9; 32])
    }

    fn delivery(key: u8, nodes: &[(&str, &str, Value)]) -> Delivery<'static> {
        let node = |(id, provider, record): &(&str, &str, Value)| Delivered {
            id: (*id).to_owned(),
            provider: (*provider).to_owned(),
            tariff: Tariff::of(Document::of(record).unwrap().root()),
            payload: b"0123456789".to_vec(),
        };
        Delivery {
            key: [key; 16],
            intent_id: "urn:oap:intent:x",
            principal: "did:key:asker",
            agent: "did:key:asker",
            input: Digest::of(b"question"),
            expires: 100,
            at: "2026-03-01T12:00:00Z".into(),
            nodes: nodes.iter().map(node).collect(),
        }
    }

    fn mixed() -> Vec<(&'static str, &'static str, Value)> {
        let priced = |unit: &str| json!({"metering": {"unit": unit, "price_per_unit": "0.25", "currency": "EUR"}});
        vec![
            ("a", "did:web:p", json!({"price": {"amount": "2", "currency": "EUR"}})),
            ("b", "did:web:q", json!({"price": {"amount": "2", "currency": "EUR"}})),
            ("c", "did:web:p", priced("byte")),
            ("d", "did:web:p", priced("token")),
            ("e", "did:web:q", json!({})),
        ]
    }

    #[test]
    fn receipts_are_signed_chained_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(1, &mixed()), &identity(), 0).unwrap();
        drop(meter);
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(2, &mixed()[..1]), &identity(), 0).unwrap();
        let mut receipts = meter.receipts_of([1; 16]).unwrap();
        assert_eq!(receipts.len(), 4, "one for each tariff");
        receipts.extend(meter.receipts_of([2; 16]).unwrap());
        let mut previous = "genesis".to_owned();
        for receipt in &receipts {
            assert_eq!(receipt["previous_receipt_hash"], json!(previous));
            previous = Digest::of(&json::canonical_value(receipt)).to_string();
            let id = receipt["receipt_id"].as_str().unwrap();
            assert_eq!(meter.receipt(id).unwrap().as_ref(), Some(receipt));
            let document = Document::of(receipt).unwrap();
            let keys = trust::DidDocument::of_key(identity().did()).unwrap();
            trust::SignedList::read(&document, "signatures").unwrap().verify_with(&keys).unwrap();
        }
        for unknown in ["urn:oap:receipt:0-0-0-x", "urn:oap:receipt:9-0-0-x", "urn:oap:receipt:0-7-0-x", "x"] {
            assert_eq!(meter.receipt(unknown).unwrap(), None, "{unknown}");
        }
        assert!(meter.receipts_of([3; 16]).unwrap().is_empty());
    }

    #[test]
    fn sums_follow_the_tariffs_and_survive_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let expected = json!([
            {"unit": "byte", "nodes": 1, "count": 10, "amount": "2.5", "currency": "EUR"},
            {"unit": "knowledge_node", "nodes": 1, "count": 1, "amount": "2", "currency": "EUR"},
            {"unit": "token", "nodes": 1, "count": 3, "amount": "0.75", "currency": "EUR"},
        ]);
        for _ in 0..3 {
            let meter = Meter::open(folder.path(), 0).unwrap();
            // The same question, answered anew after a kill, is one delivery.
            meter.deliver(&delivery(1, &mixed()), &identity(), 0).unwrap();
            assert_eq!(json!(meter.sums("did:web:p").unwrap()), expected);
        }
        let free = json!({"unit": "knowledge_node", "nodes": 1, "count": 1});
        assert!(Meter::open(folder.path(), 0).unwrap().sums("did:web:q").unwrap().contains(&free));
    }

    #[test]
    fn a_cut_tail_is_given_up_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(1, &mixed()[..1]), &identity(), 0).unwrap();
        meter.deliver(&delivery(2, &mixed()[..1]), &identity(), 0).unwrap();
        drop(meter);
        let file = OpenOptions::new().write(true).open(path(folder.path(), 0)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        let count = |meter: &Meter| meter.sums("did:web:p").unwrap()[0]["count"].clone();
        assert_eq!(count(&meter), json!(1));
        meter.deliver(&delivery(3, &mixed()[..1]), &identity(), 0).unwrap();
        drop(meter);
        assert_eq!(count(&Meter::open(folder.path(), 0).unwrap()), json!(2));
    }

    #[test]
    fn a_question_answered_anew_after_a_change_of_file_is_still_one_delivery() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(1, &mixed()), &identity(), 0).unwrap();
        let sums = meter.sums("did:web:p").unwrap();
        for _ in 0..2 {
            meter.lock().unwrap().begin_file(folder.path(), 0).unwrap();
        }
        drop(meter);
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(1, &mixed()), &identity(), 0).unwrap();
        assert_eq!(meter.sums("did:web:p").unwrap(), sums);
        drop(meter);
        assert_eq!(Meter::open(folder.path(), 0).unwrap().sums("did:web:p").unwrap(), sums);
        // When the question can no longer be sent, the files before are not read any more.
        assert_eq!(first_needed(folder.path(), 2, 0).unwrap(), 0);
        assert_eq!(first_needed(folder.path(), 2, 101).unwrap(), 2);
    }

    #[test]
    fn a_kill_before_the_first_line_of_a_file_loses_no_sum() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(1, &mixed()), &identity(), 0).unwrap();
        let (sums, head) = (meter.sums("did:web:p").unwrap(), meter.lock().unwrap().previous.clone());
        drop(meter);
        File::create(path(folder.path(), 1)).unwrap();
        for _ in 0..2 {
            let meter = Meter::open(folder.path(), 1_000).unwrap();
            assert_eq!(meter.sums("did:web:p").unwrap(), sums);
            assert_eq!(meter.lock().unwrap().previous, head);
        }
    }

    #[test]
    fn the_chain_is_read_page_by_page_over_every_file() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        for key in 0..5 {
            meter.deliver(&delivery(key, &mixed()), &identity(), 0).unwrap();
            if key % 2 == 1 {
                meter.lock().unwrap().begin_file(folder.path(), 0).unwrap();
            }
        }
        let (mut place, mut previous, mut count) = (Some((0, 0)), "genesis".to_owned(), 0);
        while let Some(from) = place {
            let page = meter.links(from, 2).unwrap().unwrap();
            for (hash, before) in page.links {
                assert_eq!(before, previous);
                (previous, count) = (hash, count + 1);
            }
            assert_eq!(page.head, meter.lock().unwrap().previous);
            place = page.next;
        }
        assert_eq!((count, previous), (20, meter.lock().unwrap().previous.clone()));
        for beyond in [(0, 1), (9, 0), (2, 1 << 40)] {
            assert!(meter.links(beyond, 2).unwrap().is_none(), "{beyond:?}");
        }
    }

    #[test]
    fn a_new_file_begins_with_the_sums_of_those_before() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::open(folder.path(), 0).unwrap();
        meter.deliver(&delivery(1, &mixed()), &identity(), 0).unwrap();
        let (first, sums) = (meter.receipts_of([1; 16]).unwrap(), meter.sums("did:web:p").unwrap());
        meter.lock().unwrap().begin_file(folder.path(), 0).unwrap();
        assert_eq!(meter.sums("did:web:p").unwrap(), sums);
        meter.deliver(&delivery(2, &mixed()[..1]), &identity(), 0).unwrap();
        drop(meter);
        let meter = Meter::open(folder.path(), 0).unwrap();
        let second = meter.receipts_of([2; 16]).unwrap();
        let last = Digest::of(&json::canonical_value(first.last().unwrap())).to_string();
        assert_eq!(second[0]["previous_receipt_hash"], json!(last));
        assert_eq!(meter.receipt(first[0]["receipt_id"].as_str().unwrap()).unwrap().as_ref(), first.first());
        assert_eq!(meter.sums("did:web:p").unwrap()[1]["count"], json!(2));
    }
}
