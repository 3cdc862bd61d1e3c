//! RFC 0020 A.3 R5: who will be in most answers is in memory before anybody asks.
//!
//! Views stay in memory once somebody asked for them (decisions/0305); a node that begins to serve has none yet. Which
//! will be asked for can be told beforehand: whoever ranks high under budgets that are usual in this market. So one thread
//! that stands back puts all candidates into the order of a few such budgets and reads the best.
//!
//! INVARIANT: what is in memory decides how long an answer takes, never what is answered.

use super::select::Market;
use crate::collection::Collection;
use crate::evidence::Moment;
use crate::gate::Own;
use crate::lanes::stand_back;
use crate::node::Node;
use crate::refusal::Error;
use aql::{Amount, Category, Scoring};
use index::Unit;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Markets with fewer records than this are in memory soon enough by themselves.
const FEW: u64 = 10_000;
/// Of the prices in a market so many in a hundred are within each of the budgets that are tried.
const WITHIN_BUDGET: [usize; 4] = [25, 50, 75, 95];
/// Candidates whose prices are looked at to find such budgets.
const SAMPLE: usize = 4_096;
/// Candidates that are ranked without letting go of the index: a publication waits for no more than these.
const AT_ONCE: usize = 8_192;
/// Views that are read together.
const READ_AT_ONCE: usize = 64;
/// The collections whose candidates are records, and the category that most often asks for them.
const ASKED: [(Collection, Category); 3] = [
    (Collection::Manifests, Category::Discovery),
    (Collection::Offers, Category::Commercial),
    (Collection::Knowledge, Category::Knowledge),
];

/// Whoever brings the foremost into memory, until they are there or nobody needs them any more.
#[derive(Debug)]
pub struct Foremost {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Foremost {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Node {
    /// Begins to bring into memory whoever will be in most answers.
    pub fn bring_foremost(self: &Arc<Self>) -> Foremost {
        let (node, over) = (Arc::clone(self), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&over);
        let run = move || {
            stand_back();
            match node.read_foremost(FEW, node.catalog.room_for_views(), &stop) {
                Ok(read) => tracing::debug!(read = read.len(), "whoever will be in most answers is in memory"),
                Err(error) => tracing::warn!(%error, "the first answers may take longer: not all views are in memory"),
            }
        };
        let thread = std::thread::Builder::new().name("foremost".into()).spawn(run);
        Foremost { over, thread: thread.inspect_err(|error| tracing::warn!(%error, "no thread to read views")).ok() }
    }

    /// Reads the views of the foremost, as many as there is room for, unless there are few records; tells whose they are.
    fn read_foremost(&self, few: u64, room: u64, over: &AtomicBool) -> Result<Vec<u64>, Error> {
        let (records, mut numbers) = (self.catalog.indexes()?.records(), BTreeSet::new());
        if records < few {
            return Ok(Vec::new());
        }
        for (collection, category) in ASKED {
            let share = self.catalog.indexes()?.of(collection).count().saturating_mul(room) / records;
            self.add_foremost(collection, category, usize::try_from(share).unwrap_or_default(), over, &mut numbers)?;
        }
        // In the order in which they lie in the file.
        let numbers: Vec<u64> = numbers.into_iter().collect();
        for some in numbers.chunks(READ_AT_ONCE).take_while(|_| !over.load(Ordering::Relaxed)) {
            self.catalog.views(&self.store, some)?;
        }
        Ok(numbers)
    }

    /// Adds the records of a collection that rank highest, as many as are wanted at the most.
    fn add_foremost(
        &self,
        collection: Collection,
        category: Category,
        wanted: usize,
        over: &AtomicBool,
        numbers: &mut BTreeSet<u64>,
    ) -> Result<(), Error> {
        let alive = self.catalog.indexes()?.of(collection).alive();
        let units: Vec<Unit> = alive.iter().collect();
        let sample: Vec<Unit> = units.iter().step_by(units.len().div_ceil(SAMPLE).max(1)).copied().collect();
        let (currency, budgets) = self.within_market(collection, |market| usual(market, category, &sample))?;
        let each = wanted / budgets.len().max(1);
        let mut bests: Vec<Best> = budgets.into_iter().map(|budget| Best::new(budget, each)).collect();
        for some in units.chunks(AT_ONCE).take_while(|_| !over.load(Ordering::Relaxed)) {
            self.within_market(collection, |market| {
                for (fact, number) in some.iter().filter_map(|unit| market.glance(*unit)) {
                    let (signals, cost) = (market.signals(&fact), fact.cost(category, &currency));
                    bests.iter_mut().for_each(|best| best.hear(number, cost, |scoring| scoring.score(&signals, cost)));
                }
            })?;
        }
        numbers.extend(bests.into_iter().flat_map(Best::numbers));
        Ok(())
    }

    fn within_market<T>(&self, collection: Collection, look: impl FnOnce(&Market<'_>) -> T) -> Result<T, Error> {
        let (indexes, evidence) = (self.catalog.indexes()?, self.catalog.evidence()?);
        let moment = Moment { now: self.clock.now(), sequence: indexes.applied() };
        let index = indexes.of(collection);
        Ok(look(&Market { index, evidence: &evidence, collection, also: None, moment, own: Own::default() }))
    }
}

/// The currency in which most prices are, and budgets that are usual in it; one without a budget where there are no prices.
fn usual(market: &Market<'_>, category: Category, sample: &[Unit]) -> (String, Vec<Option<Amount>>) {
    let mut prices: HashMap<&[u8], Vec<Amount>> = HashMap::new();
    for (fact, _) in sample.iter().filter_map(|unit| market.glance(*unit)) {
        fact.prices(category).for_each(|(currency, amount)| prices.entry(currency).or_default().push(amount));
    }
    let Some((currency, mut amounts)) = prices.into_iter().max_by_key(|(name, amounts)| (amounts.len(), *name)) else {
        return (String::new(), vec![None]);
    };
    amounts.sort_unstable();
    let budget = |within: usize| amounts.get(amounts.len() * within / 100).copied();
    (String::from_utf8_lossy(currency).into_owned(), WITHIN_BUDGET.into_iter().map(budget).collect())
}

/// The best under one budget, so far.
struct Best {
    budget: Option<Amount>,
    scoring: Scoring,
    wanted: usize,
    /// The worst of them on top; scores as their bits, which keep the order of what is not negative.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Best {
    fn new(budget: Option<Amount>, wanted: usize) -> Self {
        Self { budget, scoring: Scoring::within(budget), wanted, heap: BinaryHeap::with_capacity(wanted) }
    }

    /// Takes a record in that is within the budget and better than one of those it has.
    fn hear(&mut self, number: u64, cost: Option<Amount>, score: impl FnOnce(&Scoring) -> f64) {
        if self.budget.is_some_and(|budget| cost.is_none_or(|cost| cost > budget)) {
            return;
        }
        let score = score(&self.scoring).to_bits();
        if self.heap.len() < self.wanted {
            self.heap.push(Reverse((score, number)));
        } else if let Some(mut worst) = self.heap.peek_mut().filter(|worst| worst.0.0 < score) {
            *worst = Reverse((score, number));
        }
    }

    fn numbers(self) -> impl Iterator<Item = u64> {
        self.heap.into_iter().map(|Reverse((_, number))| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Config;
    use json::{Value, json};

    /// A manifest with a price in cents and a latency.
    fn manifest(number: u64, cents: u64, latency: u64) -> Value {
        let price =
            json!({"type": "per_call", "amount": format!("{}.{:02}", cents / 100, cents % 100), "currency": "EUR"});
        json!({
            "schema_version": "0.1",
            "tool": {"did": format!("did:web:tool-{number}.example"), "name": format!("Tool {number}")},
            "pricing": {"models": [price]},
            "sla": {"latency_p99_ms": latency},
        })
    }

    #[test]
    fn whoever_is_quick_and_cheap_is_in_memory_before_anybody_asks() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data: folder.path().to_owned(), ..Config::default() };
        let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
        // The first are the dearest and the slowest.
        let lines = (1..=100).map(|number| format!("{}\n", manifest(number, 1_000 - 10 * number, 5_000 - 40 * number)));
        let lines = lines.collect::<String>().into_bytes();
        let imported = node.import(lines.as_slice(), Some(store::Kind::Manifest), &mut |_| {}).unwrap();
        assert_eq!((imported.kept, imported.refused), (100, 0));
        drop(node);
        let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
        let (goes_on, over) = (AtomicBool::new(false), AtomicBool::new(true));
        assert!(node.read_foremost(101, 20, &goes_on).unwrap().is_empty());
        node.read_foremost(1, 20, &over).unwrap();
        assert_eq!(node.catalog.views_in_memory(), 0);
        let foremost = node.read_foremost(1, 20, &goes_on).unwrap();
        // All budgets put the same ones first.
        assert_eq!(foremost, [96, 97, 98, 99, 100]);
        assert_eq!(node.catalog.views_in_memory(), 5);
        // A whole market that there is room for is in memory as a whole, but for what no usual budget reaches.
        assert!((90..=100).contains(&node.read_foremost(1, 1_000, &goes_on).unwrap().len()));
        drop(node.bring_foremost());
    }
}
