//! RFC 0020 §3.6: a node is killed again and again while it tells many subscribers what changes.
//!
//! Every subscriber reads its journal over a stream, and goes on after its last event when the node is back. Writers
//! publish, move and withdraw records, and send again what was under way, so that in the end everything that happened to
//! a record is known. Then each subscriber must have heard all of it that its intent asks for, once and in order; and
//! after one more kill its journal, read from the beginning, must be what it heard, byte for byte.

use super::ledger::signed;
use super::program::{Line, Program, Running};
use super::{percentiles, soundness, start};
use crate::chance::Chance;
use crate::readers::{Ear, Readers};
use anyhow::{Context, Result, bail, ensure};
use json::{Document, json};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trust::{Digest, SigningKey};

const WRITERS: usize = 4;
/// Records of one writer.
const RECORDS: usize = 40;
/// Subscribers that ask for the same.
const ALIKE: usize = 10;
/// One subscriber in so many asks for every record.
const CURIOUS_ONE_IN: usize = 100;
/// Between two messages of one writer; all of them together stay below what one subscriber is told in a minute.
const PACE: Duration = Duration::from_millis(50);
/// One event in so many has its signature verified.
const VERIFIED_ONE_IN: usize = 50;
/// How long subscribers may need to hear everything, once nothing happens any more.
const SETTLE_MAX: Duration = Duration::from_secs(120);
const RUN: &str = "feed-crash";

/// How a node with subscribers is to be tormented.
#[derive(Clone, Debug)]
pub struct FeedTorment {
    /// How often it is killed.
    pub cycles: usize,
    /// Subscribers, each with a key, an intent and a connection of its own.
    pub subscribers: usize,
    /// The shortest and the longest time between two kills, in milliseconds.
    pub between_ms: (u64, u64),
    /// Decides what is written and when the node is killed.
    pub seed: u64,
}

/// What became of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FeedToll {
    /// Kills.
    pub cycles: usize,
    /// Subscribers.
    pub subscribers: usize,
    /// Messages about records that were acknowledged.
    pub acknowledged: usize,
    /// Messages that were under way at a kill, and were sent again.
    pub under_way: usize,
    /// Events that subscribers heard.
    pub events: usize,
    /// Of those, how many had their signature verified.
    pub verified: usize,
    /// Connections that subscribers opened.
    pub connections: usize,
    /// Events that were read again in the end, after one more kill.
    pub read_again: usize,
    /// What broke a promise.
    pub broken: FeedBroken,
    /// The first broken promises, in words.
    pub told: Vec<String>,
    /// Milliseconds from start to ready after a kill, of each cycle.
    #[serde(skip)]
    pub restarts: Vec<f64>,
    /// Restarts: half took no longer, ninety-nine of a hundred took no longer, and the longest.
    pub restart_ms: (f64, f64, f64),
    /// Changes in the log in the end.
    pub changes: u64,
    /// Seconds in all.
    pub seconds: f64,
}

/// Broken promises, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FeedBroken {
    /// Cursors that were passed over.
    pub gaps: usize,
    /// Cursors with two contents.
    pub conflicts: usize,
    /// Cursors that were told to somebody who had them.
    pub again: usize,
    /// Journals that their own last cursor could not be read after.
    pub refused: usize,
    /// Records of which a subscriber did not hear what happened, once and in order.
    pub histories: usize,
    /// Events that are not signed by the node, or say something else than their frame.
    pub forged: usize,
    /// Flaws that the store finds in itself.
    pub flaws: usize,
}

impl FeedToll {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.broken == FeedBroken::default()
    }

    fn tell(&mut self, what: String) {
        if self.told.len() < 20 {
            self.told.push(what);
        }
    }
}

/// Torments a node with subscribers; `progress` hears of every cycle.
pub fn torment_feed(program: &Program, torment: &FeedTorment, progress: &mut dyn FnMut(&FeedToll)) -> Result<FeedToll> {
    let begun = start();
    let mut chance = Chance::seeded(torment.seed);
    let groups = torment.subscribers.div_ceil(ALIKE);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(torment.seed, number, groups)).collect();
    let (mut node, _) = program.serve().context("the node does not start")?;
    let (mut readers, mut books) = (Readers::new()?, Books::default());
    for number in 0..torment.subscribers {
        let wanted = (number % CURIOUS_ONE_IN != 0).then_some(number / ALIKE);
        let path = subscribe(&node.line(), torment.seed, number, wanted)?;
        readers.add(path);
        books.of.push(Book { wanted, ..Book::default() });
    }
    books.toll.subscribers = torment.subscribers;
    for cycle in 0..torment.cycles {
        readers.go(node.authority());
        let (shortest, longest) = torment.between_ms;
        let span = Duration::from_millis(shortest + chance.bits() % (longest - shortest).max(1));
        load(&mut node, &mut writers, &mut readers, &mut books, span)?;
        readers.take_leave(&mut books)?;
        books.toll.under_way += writers.iter().filter(|writer| writer.sent.is_some()).count();
        let (restarted, took) =
            program.serve().with_context(|| format!("the node does not start after kill {}", cycle + 1))?;
        node = restarted;
        books.toll.cycles += 1;
        books.toll.restarts.push(took * 1_000.0);
        books.toll.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
        books.toll.connections = readers.connections;
        books.toll.seconds = begun.elapsed().as_secs_f64();
        progress(&books.toll);
        if !books.toll.is_clean() {
            break;
        }
    }
    if books.toll.is_clean() {
        settle(&node, &mut writers, &mut readers, &mut books)?;
    }
    if books.toll.is_clean() {
        node.kill()?;
        node = program.serve().context("the node does not start after the last kill")?.0;
        read_again(&node, &mut readers, &mut books)?;
    }
    readers.leave();
    node.stop()?;
    let mut toll = books.toll;
    toll.connections = readers.connections;
    let soundness = soundness(program.data())?;
    toll.changes = soundness.changes;
    toll.broken.flaws += soundness.flaws.len();
    soundness.flaws.iter().for_each(|flaw| toll.tell(format!("the store finds a flaw: {flaw}")));
    toll.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
    toll.restart_ms = percentiles(&toll.restarts);
    toll.seconds = begun.elapsed().as_secs_f64();
    Ok(toll)
}

/// Subscribes with a key of its own; tells the path of the journal.
fn subscribe(line: &Line, seed: u64, number: usize, wanted: Option<usize>) -> Result<String> {
    let name = format!("{RUN} {seed} subscriber {number}");
    let mut constraints = vec![json!({"path": "/run", "operator": "eq", "value": RUN})];
    constraints.extend(wanted.map(|group| json!({"path": "/group", "operator": "eq", "value": group})));
    super::subscribe(line, &name, json!({"all_of": constraints}))
}

/// Lets writers write and readers read for a while, and kills the node.
fn load(
    node: &mut Running,
    writers: &mut [Writer],
    readers: &mut Readers,
    books: &mut Books,
    span: Duration,
) -> Result<()> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let line = node.line();
        let write = |writer| {
            let (line, stop) = (line.clone(), &stop);
            scope.spawn(move || Writer::write(writer, &line, stop))
        };
        let threads: Vec<_> = writers.iter_mut().map(write).collect();
        let begun = start();
        let mut listened = Ok(());
        while begun.elapsed() < span && listened.is_ok() {
            listened = readers.listen(books, Duration::from_millis(5));
        }
        node.kill()?;
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        listened
    })
}

/// Sends what was under way, waits until everybody has heard everything, and holds what they heard against what happened.
fn settle(node: &Running, writers: &mut [Writer], readers: &mut Readers, books: &mut Books) -> Result<()> {
    for writer in writers.iter_mut() {
        ensure!(writer.finish(&node.line())?, "the node is gone without a kill");
    }
    let expected: Vec<HashMap<String, Vec<Told>>> = books.of.iter().map(|book| expected(book, writers)).collect();
    let counts: Vec<usize> = expected.iter().map(|records| records.values().map(Vec::len).sum()).collect();
    readers.go(node.authority());
    let begun = start();
    let lacks = |books: &Books| books.of.iter().zip(&counts).any(|(book, count)| book.digests.len() < *count);
    while lacks(books) && books.toll.is_clean() && begun.elapsed() < SETTLE_MAX {
        readers.listen(books, Duration::from_millis(20))?;
    }
    for (number, expected) in expected.iter().enumerate() {
        let Some(book) = books.of.get(number) else { continue };
        let differs = |record: &&String| book.told.get(*record) != expected.get(*record);
        let wrong: Vec<String> = book.told.keys().chain(expected.keys()).filter(differs).cloned().collect();
        let first = wrong.first().map(|record| {
            let (heard, happened) =
                (book.told.get(record).map_or(0, Vec::len), expected.get(record).map_or(0, Vec::len));
            format!("subscriber {number} heard {heard} events of {record}, and {happened} happened to it")
        });
        books.toll.broken.histories += wrong.len();
        first.into_iter().for_each(|words| books.toll.tell(words));
    }
    readers.leave();
    Ok(())
}

/// What a subscriber has to hear of each record.
fn expected(book: &Book, writers: &[Writer]) -> HashMap<String, Vec<Told>> {
    let mut all = HashMap::new();
    for record in writers.iter().flat_map(|writer| &writer.records) {
        let (mut before, mut events) = (None, Vec::new());
        for state in &record.history {
            let after =
                state.filter(|state| book.wanted.is_none_or(|wanted| wanted == state.group)).map(|state| state.n);
            match (before, after) {
                (None, None) => {}
                (None, Some(n)) => events.push(Told::Entered(n)),
                (Some(_), Some(n)) => events.push(Told::Changed(n)),
                (Some(_), None) => events.push(Told::Left),
            }
            before = after;
        }
        if !events.is_empty() {
            all.insert(record.did.clone(), events);
        }
    }
    all
}

/// Reads every journal from its beginning, and compares it with what was heard.
fn read_again(node: &Running, readers: &mut Readers, books: &mut Books) -> Result<()> {
    readers.rewind();
    readers.go(node.authority());
    let mut again = Again { next: vec![1; books.of.len()], read: 0, books };
    let begun = start();
    let all: usize = again.books.of.iter().map(|book| book.digests.len()).sum();
    while again.read < all && again.books.toll.is_clean() && begun.elapsed() < SETTLE_MAX {
        readers.listen(&mut again, Duration::from_millis(20))?;
    }
    let read = again.read;
    books.toll.read_again = read;
    if read < all {
        books.toll.broken.gaps += all - read;
        books.toll.tell(format!("{} events that were heard are no longer in their journals", all - read));
    }
    Ok(())
}

/// What a subscriber hears of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Entered(u64),
    Changed(u64),
    Left,
}

/// What one subscriber has heard.
#[derive(Default)]
struct Book {
    /// The group that it asked for; all of them when absent.
    wanted: Option<usize>,
    digests: Vec<Digest>,
    told: HashMap<String, Vec<Told>>,
}

/// What all of them have heard.
#[derive(Default)]
struct Books {
    of: Vec<Book>,
    toll: FeedToll,
    publisher: Option<String>,
}

impl Books {
    fn read(&mut self, reader: usize, cursor: u64, document: &[u8]) -> Result<()> {
        let document = Document::parse(document, &json::Limits::OURS)?;
        let root = document.root();
        let text = |name: &str| root.get(name).and_then(json::Node::as_str);
        ensure!(root.get("cursor").and_then(json::Node::as_u64) == Some(cursor), "the frame names another cursor");
        let publisher = text("publisher_did").context("nobody tells it")?;
        ensure!(self.publisher.get_or_insert_with(|| publisher.to_owned()) == publisher, "somebody else tells it");
        self.toll.events += 1;
        if self.toll.events.is_multiple_of(VERIFIED_ONE_IN) {
            trust::Signed::read(&document)?.verify_own("publisher_did")?;
            self.toll.verified += 1;
        }
        let n = || root.get("payload").and_then(|payload| payload.get("n")?.as_u64()).context("no payload");
        let told = match text("set_change") {
            Some("entered") => Told::Entered(n()?),
            Some("changed") => Told::Changed(n()?),
            Some("left") => Told::Left,
            _ => bail!("nothing became of the record"),
        };
        let record = text("manifest_id").context("no record")?.to_owned();
        if let Some(book) = self.of.get_mut(reader) {
            book.told.entry(record).or_default().push(told);
        }
        Ok(())
    }
}

impl Ear for Books {
    fn event(&mut self, reader: usize, cursor: u64, document: &[u8]) {
        let Some(book) = self.of.get_mut(reader) else { return };
        let (digest, next) = (Digest::of(document), book.digests.len() as u64 + 1);
        if cursor == next {
            book.digests.push(digest);
            if let Err(error) = self.read(reader, cursor, document) {
                self.toll.broken.forged += 1;
                self.toll.tell(format!("subscriber {reader} at {cursor}: {error:#}"));
            }
            return;
        }
        let known = cursor.checked_sub(1).and_then(|place| book.digests.get(place as usize));
        let (count, words) = match known {
            None => (&mut self.toll.broken.gaps, "a gap before it"),
            Some(known) if *known != digest => (&mut self.toll.broken.conflicts, "two contents"),
            Some(_) => (&mut self.toll.broken.again, "it was told before"),
        };
        *count += 1;
        self.toll.tell(format!("subscriber {reader} at {cursor}, where {next} should come: {words}"));
    }

    fn notice(&mut self, reader: usize, kind: &str, _: &[u8]) {
        if kind != "oap.heartbeat" {
            self.toll.broken.gaps += 1;
            self.toll.tell(format!("subscriber {reader} hears `{kind}`"));
        }
    }

    fn refused(&mut self, reader: usize, status: u16, body: &[u8]) {
        self.toll.broken.refused += 1;
        self.toll.tell(format!("subscriber {reader} is refused with {status}: {}", String::from_utf8_lossy(body)));
    }
}

/// A second reading, from the beginning.
struct Again<'a> {
    next: Vec<u64>,
    read: usize,
    books: &'a mut Books,
}

impl Ear for Again<'_> {
    fn event(&mut self, reader: usize, cursor: u64, document: &[u8]) {
        let (Some(book), Some(next)) = (self.books.of.get(reader), self.next.get_mut(reader)) else { return };
        if cursor != *next {
            self.books.toll.broken.gaps += 1;
            self.books.toll.tell(format!("the journal of subscriber {reader} has {cursor} where {next} should stand"));
            return;
        }
        let known = book.digests.get(cursor as usize - 1);
        // What nobody heard is nothing that happened.
        let toll = &mut self.books.toll;
        if known != Some(&Digest::of(document)) {
            toll.broken.conflicts += 1;
            toll.tell(format!("{cursor} of subscriber {reader} is not what was heard"));
        }
        *next += 1;
        self.read += 1;
    }

    fn notice(&mut self, reader: usize, kind: &str, document: &[u8]) {
        self.books.notice(reader, kind, document);
    }

    fn refused(&mut self, reader: usize, status: u16, body: &[u8]) {
        self.books.refused(reader, status, body);
    }
}

/// What a record says, while it is there.
#[derive(Clone, Copy)]
struct Stand {
    group: usize,
    n: u64,
}

struct Record {
    did: String,
    /// Everything that it was, `None` while it was withdrawn.
    history: Vec<Option<Stand>>,
}

struct Message {
    record: usize,
    method: &'static str,
    path: String,
    body: Vec<u8>,
    leaves: Option<Stand>,
}

/// Somebody who publishes, one message at a time.
struct Writer {
    key: SigningKey,
    name: String,
    groups: usize,
    chance: Chance<'static>,
    count: u64,
    records: Vec<Record>,
    /// What was sent and not acknowledged.
    sent: Option<Message>,
    acknowledged: usize,
}

impl Writer {
    fn new(seed: u64, number: usize, groups: usize) -> Self {
        let name = format!("{RUN} {seed} writer {number}");
        let record =
            |record: usize| Record { did: format!("did:web:w{number}-r{record}.example"), history: Vec::new() };
        Self {
            key: SigningKey::from_seed(*Digest::of(name.as_bytes()).as_bytes()),
            name: format!("{RUN}-{number}"),
            groups,
            chance: Chance::seeded(seed.wrapping_add(number as u64)),
            count: 0,
            records: (0..RECORDS).map(record).collect(),
            sent: None,
            acknowledged: 0,
        }
    }

    /// Writes until the node is gone; first of all what was under way when it went last.
    fn write(&mut self, line: &Line, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            if self.sent.is_none() {
                self.sent = Some(self.next()?);
            }
            if !self.finish(line)? {
                break;
            }
            std::thread::sleep(PACE);
        }
        Ok(())
    }

    /// Sends what has to be sent; whether the node is there.
    fn finish(&mut self, line: &Line) -> Result<bool> {
        let Some(message) = &self.sent else { return Ok(true) };
        let Ok(reply) = line.send(message.method, &message.path, &message.body) else { return Ok(false) };
        ensure!(reply.status == 200, "a publication is refused: {}", String::from_utf8_lossy(&reply.body));
        if let Some(record) = self.records.get_mut(message.record) {
            record.history.push(message.leaves);
        }
        self.acknowledged += 1;
        self.sent = None;
        Ok(true)
    }

    /// Mostly changes a record, moves it now and then, and seldom withdraws it.
    fn next(&mut self) -> Result<Message> {
        let place = self.chance.below(self.records.len());
        let record = self.records.get(place).context("no record")?;
        let (did, last) = (record.did.clone(), record.history.last().copied().flatten());
        self.count += 1;
        if last.is_some() && self.chance.one_in(8) {
            let body = signed(&self.key, &format!("{}:{}", self.name, self.count), json!({"withdraw": did}))?;
            let path = format!("/oap/records/{}", utf8_percent_encode(&did, NON_ALPHANUMERIC));
            return Ok(Message { record: place, method: "DELETE", path, body, leaves: None });
        }
        let moved = self.chance.below(self.groups.max(1));
        let group = last.filter(|_| !self.chance.one_in(5)).map_or(moved, |last| last.group);
        let stand = Stand { group, n: self.count };
        let manifest = json!({
            "oap_version": "1.0", "run": RUN, "group": group, "n": stand.n,
            "tool": {"did": did, "name": "T", "publisher": {"did": self.key.did_key().as_str()}},
        });
        let body = signed(
            &self.key,
            &format!("{}:{}", self.name, self.count),
            json!({"kind": "manifest", "record": manifest}),
        )?;
        Ok(Message { record: place, method: "POST", path: "/oap/records".into(), body, leaves: Some(stand) })
    }
}
