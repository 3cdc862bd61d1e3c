//! RFC 0020 §3.6, §3.7: a crowd that listens: how long it takes from a publication to those whom it concerns.
//!
//! Thousands of clients, each with a key, a standing intent and a stream of its own, while publications come at a fixed
//! pace and each concerns a few of them. An event is timed from the moment its publication was due to be sent, so a
//! publisher that falls behind makes every event late. Then every journal is read from its beginning again.

use super::ledger::signed;
use super::program::{Line, Program, Running};
use super::{percentiles, start, subscribe};
use crate::readers::{Ear, Readers};
use anyhow::{Context, Result, ensure};
use json::{Document, json};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trust::{Digest, SigningKey};

/// Threads that publish, each over a connection of its own.
const PUBLISHERS: usize = 8;
/// One event in so many has its signature verified.
const VERIFIED_ONE_IN: usize = 20;
/// How long the last events may take, once nothing is published any more; and all journals, to be read again.
const SETTLE_MAX: Duration = Duration::from_secs(180);
/// How long clients may take to come in.
const ENTER_MAX: Duration = Duration::from_secs(300);
/// Publications before the clock counts, of which nothing is timed.
const WARM_SECONDS: u64 = 2;
const RUN: &str = "crowd";

/// Who listens, and what happens.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// Clients, each with a standing intent and a stream of its own.
    pub clients: usize,
    /// Events in a second, for all of them together.
    pub events_per_second: usize,
    /// Clients whom one publication concerns.
    pub alike: usize,
    /// For how long.
    pub seconds: u64,
}

/// What became of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrowdReport {
    /// Clients.
    pub clients: usize,
    /// Publications that were acknowledged.
    pub publications: usize,
    /// Events that were heard.
    pub events: usize,
    /// Of those, how many had their signature verified.
    pub verified: usize,
    /// Events in a second while publications came.
    pub events_per_second: f64,
    /// Milliseconds from when a publication was due to when a client had its event: of half, of ninety-nine in a
    /// hundred, and of all no more.
    pub delivery_ms: (f64, f64, f64),
    /// Milliseconds from when a publication was due to when it was acknowledged, likewise.
    pub publication_ms: (f64, f64, f64),
    /// Words that there is nothing.
    pub heartbeats: usize,
    /// Connections that were opened; as many as clients when none broke.
    pub connections: usize,
    /// Events that were read again in the end.
    pub read_again: usize,
    /// What the node held in memory when all clients were there, after each tenth of the run, and at its peak.
    pub memory_bytes: Vec<u64>,
    /// What was wrong.
    pub wrong: CrowdWrong,
    /// The first of it, in words.
    pub told: Vec<String>,
    /// Seconds that subscribing and coming in took.
    pub entering_seconds: f64,
    /// Seconds during which publications came.
    pub seconds: f64,
}

/// What was wrong, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CrowdWrong {
    /// Cursors that were passed over.
    pub gaps: usize,
    /// Cursors with two contents.
    pub conflicts: usize,
    /// Events that were told and not published, or published and not told.
    pub histories: usize,
    /// Clients that were refused, or given up.
    pub refused: usize,
    /// Events that are not signed by the node, or say something else than their frame.
    pub forged: usize,
}

impl CrowdReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.wrong == CrowdWrong::default()
    }

    fn tell(&mut self, what: String) {
        if self.told.len() < 20 {
            self.told.push(what);
        }
    }
}

/// Lets a crowd listen to a node; `progress` hears of every tenth of the run.
pub fn crowd(program: &Program, crowd: &Crowd, progress: &mut dyn FnMut(&CrowdReport)) -> Result<CrowdReport> {
    let begun = start();
    let (mut node, _) = program.serve().context("the node does not start")?;
    let groups = (crowd.clients / crowd.alike.max(1)).max(1);
    let mut readers = enter(&node, crowd, groups)?;
    let pace = Pace::new(crowd);
    let mut ears = Ears::new(crowd, groups, &pace);
    while readers.open() < crowd.clients {
        readers.listen(&mut ears, Duration::from_millis(20))?;
        ensure!(begun.elapsed() < ENTER_MAX, "only {} clients came in", readers.open());
    }
    ears.report.entering_seconds = begun.elapsed().as_secs_f64();
    ears.report.memory_bytes.push(resident(&node)?);
    listen(&node, crowd, groups, &mut readers, &mut ears, progress)?;
    ears.settle(crowd, &mut readers)?;
    ears.report.connections = readers.connections;
    ears.read_again(&node, &mut readers)?;
    readers.leave();
    ears.report.memory_bytes.push(peak(&node)?);
    ensure!(node.is_alive(), "the node is gone");
    node.stop()?;
    Ok(ears.finish())
}

/// Subscribes everybody.
fn enter(node: &Running, crowd: &Crowd, groups: usize) -> Result<Readers> {
    let mut readers = Readers::new()?;
    let line = node.line();
    for client in 0..crowd.clients {
        let constraints = json!({"all_of": [
            {"path": "/run", "operator": "eq", "value": RUN},
            {"path": "/group", "operator": "eq", "value": client % groups},
            {"path": "/pricing/models/*/amount", "operator": "lte", "value": "100.00"},
            {"not": {"path": "/risk_class", "operator": "eq", "value": "high"}},
        ]});
        readers.add(subscribe(&line, &format!("{RUN} {client}"), constraints)?);
    }
    readers.go(node.authority());
    Ok(readers)
}

/// When each publication was due, counted from the first.
struct Pace {
    begun: Instant,
    gap: Duration,
    count: usize,
    /// The first that is timed.
    first: usize,
    /// Microseconds that each took until it was acknowledged; nought for those that were not.
    acknowledged: Vec<AtomicU64>,
    next: AtomicUsize,
}

impl Pace {
    fn new(crowd: &Crowd) -> Self {
        let per_second = (crowd.events_per_second as f64 / crowd.alike.max(1) as f64).max(0.1);
        let warm = (WARM_SECONDS as f64 * per_second) as usize;
        let count = warm + (crowd.seconds as f64 * per_second) as usize;
        Self {
            begun: start(),
            gap: Duration::from_secs_f64(1.0 / per_second),
            count,
            first: warm,
            acknowledged: (0..count).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicUsize::new(0),
        }
    }

    fn due(&self, number: usize) -> Duration {
        self.gap.mul_f64(number as f64)
    }
}

/// Publishes at the pace while everybody listens.
fn listen(
    node: &Running,
    crowd: &Crowd,
    groups: usize,
    readers: &mut Readers,
    ears: &mut Ears,
    progress: &mut dyn FnMut(&CrowdReport),
) -> Result<()> {
    let pace = Pace::new(crowd);
    ears.begun = pace.begun;
    let whole = pace.due(pace.count);
    let line = node.line();
    let published = std::thread::scope(|scope| -> Result<()> {
        let publish = |_| scope.spawn(|| publish(&line, groups, &pace));
        let threads: Vec<_> = (0..PUBLISHERS).map(publish).collect();
        let mut tenths = 1;
        while !threads.iter().all(|thread| thread.is_finished()) {
            readers.listen(ears, Duration::from_millis(5))?;
            if pace.begun.elapsed() > whole.mul_f64(f64::from(tenths) / 10.0) && tenths < 10 {
                tenths += 1;
                ears.report.memory_bytes.push(resident(node)?);
                progress(&ears.report);
            }
        }
        ears.report.seconds = pace.begun.elapsed().as_secs_f64();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a publisher panicked"))?)
    });
    published?;
    ears.report.memory_bytes.push(resident(node)?);
    let took: Vec<f64> = pace.acknowledged.iter().map(|micros| micros.load(Ordering::Relaxed) as f64 / 1e3).collect();
    ears.report.publications = took.iter().filter(|millis| **millis > 0.0).count();
    ears.report.publication_ms = percentiles(took.get(pace.first..).unwrap_or_default());
    Ok(())
}

/// Takes the next publication whenever it is due, until there is none left.
fn publish(line: &Line, groups: usize, pace: &Pace) -> Result<()> {
    loop {
        let number = pace.next.fetch_add(1, Ordering::Relaxed);
        let Some(acknowledged) = pace.acknowledged.get(number) else { return Ok(()) };
        let group = number % groups;
        let key = SigningKey::from_seed(*Digest::of(format!("{RUN} publisher {group}").as_bytes()).as_bytes());
        let manifest = json!({
            "oap_version": "1.0", "run": RUN, "group": group, "n": number, "risk_class": "low",
            "tool": {"did": format!("did:web:g{group}.example"), "name": "T", "publisher": {"did": key.did_key().as_str()}},
            "pricing": {"models": [{"type": "per_call", "amount": format!("{}.00", number % 90), "currency": "EUR"}]},
        });
        let body = signed(&key, &format!("{RUN}:{number}"), json!({"kind": "manifest", "record": manifest}))?;
        if let Some(early) = pace.due(number).checked_sub(pace.begun.elapsed()) {
            std::thread::sleep(early);
        }
        let reply = line.send("POST", "/oap/records", &body)?;
        ensure!(reply.status == 200, "a publication is refused: {}", String::from_utf8_lossy(&reply.body));
        let took = pace.begun.elapsed().saturating_sub(pace.due(number));
        acknowledged.store(took.as_micros().max(1) as u64, Ordering::Relaxed);
    }
}

/// Everybody who listens.
struct Ears {
    clients: Vec<Client>,
    groups: usize,
    begun: Instant,
    gap: Duration,
    /// The first publication that is timed.
    first: usize,
    count: usize,
    millis: Vec<f64>,
    /// Whether journals are read again, and no longer as they grow.
    again: bool,
    report: CrowdReport,
}

#[derive(Default)]
struct Client {
    digests: Vec<Digest>,
    /// The publications that it heard of.
    heard: Vec<usize>,
    /// How far its journal is read again.
    read: usize,
}

impl Ears {
    fn new(crowd: &Crowd, groups: usize, pace: &Pace) -> Self {
        Self {
            clients: (0..crowd.clients).map(|_| Client::default()).collect(),
            groups,
            begun: pace.begun,
            gap: pace.gap,
            first: pace.first,
            count: pace.count,
            millis: Vec::new(),
            again: false,
            report: CrowdReport { clients: crowd.clients, ..CrowdReport::default() },
        }
    }

    /// The publications that concern a client, in order.
    fn expected(&self, client: usize) -> impl Iterator<Item = usize> + use<> {
        (client % self.groups..self.count).step_by(self.groups)
    }

    /// Waits for the last events, and holds what was heard against what was published.
    fn settle(&mut self, crowd: &Crowd, readers: &mut Readers) -> Result<()> {
        let begun = start();
        let all: usize = (0..crowd.clients).map(|client| self.expected(client).count()).sum();
        while self.report.events < all && self.report.is_clean() && begun.elapsed() < SETTLE_MAX {
            readers.listen(self, Duration::from_millis(20))?;
        }
        for client in 0..crowd.clients {
            let expected = self.expected(client);
            // Two publishers may overtake each other.
            let mut heard = self.clients.get(client).map(|client| client.heard.clone()).unwrap_or_default();
            heard.sort_unstable();
            if !expected.eq(heard.iter().copied()) {
                let words = format!("client {client} heard {} events, {all} are due to all", heard.len());
                self.report.wrong.histories += 1;
                self.report.tell(words);
            }
        }
        Ok(())
    }

    /// Reads every journal from its beginning.
    fn read_again(&mut self, node: &Running, readers: &mut Readers) -> Result<()> {
        let begun = start();
        self.again = true;
        readers.rewind();
        readers.go(node.authority());
        while self.report.read_again < self.report.events && self.report.is_clean() && begun.elapsed() < SETTLE_MAX {
            readers.listen(self, Duration::from_millis(20))?;
        }
        let lost = self.report.events.saturating_sub(self.report.read_again);
        if lost > 0 {
            self.report.wrong.gaps += lost;
            self.report.tell(format!("{lost} events that were heard were not read again"));
        }
        Ok(())
    }

    fn finish(mut self) -> CrowdReport {
        self.report.delivery_ms = percentiles(&self.millis);
        self.report.events_per_second = self.report.events as f64 / self.report.seconds.max(f64::MIN_POSITIVE);
        self.report
    }

    fn read(&mut self, client: usize, cursor: u64, document: &[u8]) -> Result<()> {
        let now = self.begun.elapsed();
        let document = Document::parse(document, &json::Limits::OURS)?;
        let root = document.root();
        ensure!(root.get("cursor").and_then(json::Node::as_u64) == Some(cursor), "the frame names another cursor");
        if self.report.events.is_multiple_of(VERIFIED_ONE_IN) {
            trust::Signed::read(&document)?.verify_own("publisher_did")?;
            self.report.verified += 1;
        }
        let number = root.get("payload").and_then(|payload| payload.get("n")?.as_u64()).context("no payload")? as usize;
        if number >= self.first {
            self.millis.push(now.saturating_sub(self.gap.mul_f64(number as f64)).as_secs_f64() * 1e3);
        }
        if let Some(client) = self.clients.get_mut(client) {
            client.heard.push(number);
        }
        Ok(())
    }

    fn wrong(&mut self, client: usize, cursor: u64, words: &str) {
        self.report.tell(format!("client {client} at {cursor}: {words}"));
    }
}

impl Ear for Ears {
    fn event(&mut self, reader: usize, cursor: u64, document: &[u8]) {
        let Some(client) = self.clients.get_mut(reader) else { return };
        let digest = Digest::of(document);
        let place = cursor as usize;
        if self.again {
            if place != client.read + 1 {
                self.report.wrong.gaps += 1;
                self.wrong(reader, cursor, "a gap when it is read again");
            } else if client.digests.get(client.read) != Some(&digest) {
                self.report.wrong.conflicts += 1;
                self.wrong(reader, cursor, "another content when it is read again");
            } else {
                client.read += 1;
                self.report.read_again += 1;
            }
            return;
        }
        if place != client.digests.len() + 1 {
            let known = client.digests.get(place.wrapping_sub(1));
            let conflicts = known.is_some_and(|known| *known != digest);
            self.report.wrong.conflicts += usize::from(conflicts);
            self.report.wrong.gaps += usize::from(!conflicts);
            return self.wrong(reader, cursor, "not the next");
        }
        client.digests.push(digest);
        if let Err(error) = self.read(reader, cursor, document) {
            self.report.wrong.forged += 1;
            self.wrong(reader, cursor, &format!("{error:#}"));
        }
        self.report.events += 1;
    }

    fn notice(&mut self, reader: usize, kind: &str, _: &[u8]) {
        if kind == "oap.heartbeat" {
            self.report.heartbeats += 1;
        } else {
            self.report.wrong.refused += 1;
            self.report.tell(format!("client {reader} hears `{kind}`"));
        }
    }

    fn refused(&mut self, reader: usize, status: u16, body: &[u8]) {
        self.report.wrong.refused += 1;
        self.report.tell(format!("client {reader} is refused with {status}: {}", String::from_utf8_lossy(body)));
    }
}

fn resident(node: &Running) -> Result<u64> {
    memory(node, "VmRSS:")
}

fn peak(node: &Running) -> Result<u64> {
    memory(node, "VmHWM:")
}

/// What the kernel says of a node's memory.
fn memory(node: &Running, line: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid().as_raw_nonzero()))?;
    let kilobytes =
        status.lines().find_map(|found| found.strip_prefix(line)?.trim().split(' ').next()?.parse::<u64>().ok());
    Ok(kilobytes.context("the kernel does not say what the node holds in memory")? * 1024)
}
