//! RFC 0020 §3.6: what finding the subscribers of a change costs: `cargo xtask bench feed`.
//!
//! CPU time of one thread, since the machine is shared, without what reading the clock takes. First one audience grows to
//! all sizes and is measured at each; then the same population, as far as the peer can express it, goes to us, to brute
//! force and to `a-tree` in turn. A document is read right before it is matched, as it is when a record changes, and as
//! the peer's event is made right before its search.

use a_tree::{ATree, AttributeDefinition};
use anyhow::{Context, Result, ensure};
use aql::{Constraints, Evaluator, Fuel, Limits};
use clap::Parser;
use conformance::market::{Corpus, Facts, country};
use conformance::standing::{NEGATIONS_MAX, Population, Standing};
use feed::{Audience, Found};
use json::{Document, Pointer, Shapes};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Measures the matcher.
#[derive(Parser)]
struct Arguments {
    /// Standing intents at which to measure, rising.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000,5000000")]
    intents: Vec<usize>,
    /// Standing intents at which to measure beside the others, rising.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
    beside: Vec<usize>,
    /// Changed manifests that are matched at each size.
    #[arg(long, default_value_t = 2_000)]
    changes: usize,
    /// Changed manifests that are put to the slow ones.
    #[arg(long, default_value_t = 20)]
    slow_changes: usize,
    /// Writes the tables as Markdown, too.
    #[arg(long)]
    report: Option<PathBuf>,
}

const SEED: u64 = 5;
/// Manifests that intents are about.
const MANIFESTS: u64 = 1_000_000;
/// Additions and removals that are timed one by one at each size.
const TIMED: usize = 2_000;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let corpus = Corpus::new(SEED);
    let changes = changes(&corpus, arguments.changes);
    let mut page = String::new();
    writeln!(
        page,
        "One changed manifest against standing intents of 5 to 10 leaves. One thread, CPU time, without the {:.0} ns that \
         reading the clock takes. {} different changes at each size, each of them read right before it is matched; every \
         figure is of one run.\n",
        clock_seconds() * 1e9,
        changes.len()
    )?;
    growth(&arguments, &corpus, &changes, &mut page)?;
    beside(&arguments, &corpus, &changes, &mut page)?;
    println!("{page}");
    if let Some(path) = &arguments.report {
        let sizes = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let command = format!(
            "cargo xtask bench feed --intents {} --beside {} --changes {} --slow-changes {}",
            sizes(&arguments.intents),
            sizes(&arguments.beside),
            arguments.changes,
            arguments.slow_changes
        );
        std::fs::write(path, format!("# What finding the subscribers costs\n\n`{command}`\n\n{page}"))?;
    }
    Ok(())
}

/// A manifest that has changed.
struct Change {
    facts: Facts,
    text: String,
}

impl Change {
    fn read(&self, shapes: &mut Shapes) -> Result<Document> {
        Ok(Document::parse_with(self.text.as_bytes(), &json::Limits::DOCUMENT, shapes)?)
    }
}

fn changes(corpus: &Corpus, count: usize) -> Vec<Change> {
    let change = |number: usize| {
        let number = (number as u64).wrapping_mul(0x9e37_79b9) % MANIFESTS;
        let mut text = String::new();
        corpus.write(number, &mut text);
        Change { facts: corpus.facts(number), text }
    };
    (0..count).map(change).collect()
}

fn read(standing: &Standing) -> Result<Constraints> {
    let tree = Document::of(&standing.constraints)?;
    Ok(Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD)?)
}

fn growth(arguments: &Arguments, corpus: &Corpus, changes: &[Change], page: &mut String) -> Result<()> {
    writeln!(
        page,
        "| intents | find: median | p99 | most | evaluated: median | concerned: median | memory per intent | add: median | p99 | remove: median | p99 |\n\
         |---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    let mut population = Population::new(corpus.clone(), MANIFESTS, SEED);
    let mut audience = Audience::new();
    let mut loading = 0.0;
    let before = resident_bytes()?;
    for &intents in &arguments.intents {
        let mut adding = Vec::with_capacity(TIMED);
        for id in audience.len()..intents {
            let constraints = read(&population.draw())?;
            let (_, seconds) = timed(|| audience.insert(id as u64, &constraints));
            loading += seconds;
            if intents - id <= TIMED {
                adding.push(seconds);
            }
        }
        let memory = resident_bytes()?.saturating_sub(before) as f64 / intents as f64;
        let (found, finding) = find(&mut audience, changes)?;
        let mut removing = Vec::with_capacity(TIMED);
        let mut again = Population::new(corpus.clone(), MANIFESTS, SEED + 1);
        for number in 0..TIMED.min(intents) {
            let id = (number as u64).wrapping_mul(0x9e37_79b9) % intents as u64;
            let constraints = read(&again.draw())?;
            removing.push(timed(|| audience.remove(id)).1);
            audience.insert(id, &constraints);
        }
        writeln!(
            page,
            "| {intents} | {} | {} | {} | {} | {} | {memory:.0} B | {} | {} | {} | {} |",
            micros(part(&finding, 0.5)),
            micros(part(&finding, 0.99)),
            micros(part(&finding, 1.0)),
            part(&found.iter().map(|found| found.evaluated as f64).collect::<Vec<_>>(), 0.5),
            part(&found.iter().map(|found| found.satisfied.len() as f64).collect::<Vec<_>>(), 0.5),
            micros(part(&adding, 0.5)),
            micros(part(&adding, 0.99)),
            micros(part(&removing, 0.5)),
            micros(part(&removing, 0.99)),
        )?;
        eprintln!("{intents} intents: median {}, {memory:.0} B each", micros(part(&finding, 0.5)));
    }
    writeln!(
        page,
        "\nMemory is what the process has grown by, so it has the allocator's slack in it. Adding all of them took \
         {loading:.1} s of CPU, reading their JSON aside; after a restart that is what has to be done again. {} of the \
         last size say only what a manifest must not have and stand before every change; a population has at most \
         {NEGATIONS_MAX} of those.\n",
        audience.unfiled(),
    )?;
    Ok(())
}

/// Matches every change; tells what was found and the seconds that each took.
fn find(audience: &mut Audience, changes: &[Change]) -> Result<(Vec<Found>, Vec<f64>)> {
    let mut shapes = Shapes::default();
    let mut all = Vec::with_capacity(changes.len());
    for change in changes {
        let document = change.read(&mut shapes)?;
        all.push(timed(|| audience.of(document.root(), Fuel::STANDARD)));
    }
    Ok(all.into_iter().unzip())
}

fn beside(arguments: &Arguments, corpus: &Corpus, changes: &[Change], page: &mut String) -> Result<()> {
    writeln!(
        page,
        "| intents that `a-tree` can express | | find: median | p99 | times ours | add: mean |\n|---|---|---|---|---|---|"
    )?;
    let mut population = Population::new(corpus.clone(), MANIFESTS, SEED);
    let (mut plain, mut words): (Vec<Constraints>, Vec<String>) = (Vec::new(), Vec::new());
    let mut audience = Audience::new();
    let mut tree = ATree::new(&attributes()).map_err(|error| anyhow::anyhow!("{error}"))?;
    let slow = changes.get(..arguments.slow_changes).unwrap_or(changes);
    for &intents in &arguments.beside {
        let from = words.len();
        while words.len() < intents {
            let standing = population.draw();
            if let Some(peer) = &standing.peer {
                plain.push(read(&standing)?);
                words.push(peer.clone());
            }
        }
        let new = || plain.iter().zip(&words).enumerate().skip(from);
        let added = (words.len() - from) as f64;
        let ((), ours_adding) =
            timed(|| new().for_each(|(id, (constraints, _))| audience.insert(id as u64, constraints)));
        let (inserted, peer_adding) = timed(|| {
            new().try_for_each(|(id, (_, words))| tree.insert(&(id as u64), words).map_err(|error| error.to_string()))
        });
        inserted.map_err(|error| anyhow::anyhow!(error))?;
        eprintln!("{intents} intents are in all three");

        let (found, ours) = find(&mut audience, changes)?;
        let mut shapes = Shapes::default();
        let (mut brute_found, mut brute) = (Vec::new(), Vec::new());
        for change in slow {
            let document = change.read(&mut shapes)?;
            let (found, seconds) = timed(|| evaluate_all(&plain, &document));
            brute_found.push(found);
            brute.push(seconds);
        }
        let mut peer = Vec::new();
        for ((change, found), expected) in slow.iter().zip(&found).zip(&brute_found) {
            let event = event(&tree, &change.facts)?;
            let (matches, seconds) = timed(|| tree.search(&event).map(|report| sorted(report.matches())));
            peer.push(seconds);
            ensure!(found.satisfied == *expected, "ours and brute force differ");
            ensure!(matches.map_err(|error| anyhow::anyhow!("{error}"))? == *expected, "`a-tree` differs");
        }
        let ours_median = part(&ours, 0.5);
        let mut row = |name: &str, finding: &[f64], adding: Option<f64>| -> Result<()> {
            let (median, slowest) = (part(finding, 0.5), part(finding, 0.99));
            let adding = adding.map_or_else(|| "–".to_owned(), |seconds| micros(seconds / added));
            let times = median / ours_median;
            writeln!(
                page,
                "| {intents} | {name} | {} | {} | {times:.0} | {adding} |",
                micros(median),
                micros(slowest)
            )?;
            Ok(())
        };
        row("ours", &ours, Some(ours_adding))?;
        row("every one evaluated by `aql`", &brute, None)?;
        row("`a-tree` 0.6.1", &peer, Some(peer_adding))?;
    }
    writeln!(
        page,
        "\nAll three found the same intents for each of the {} changes that were put to all; ours was timed over {}. What \
         `a-tree` cannot say and is left out here: patterns, `**`, and a comparison with some element of an array.",
        slow.len(),
        changes.len()
    )?;
    Ok(())
}

fn evaluate_all(plain: &[Constraints], document: &Document) -> Vec<u64> {
    let mut evaluator = Evaluator::new(Fuel::OWN);
    let mut holds = |constraints: &Constraints| evaluator.evaluate(constraints, document.root()) == Ok(true);
    (0..).zip(plain).filter(|(_, constraints)| holds(constraints)).map(|(id, _)| id).collect()
}

fn sorted(matches: &[&u64]) -> Vec<u64> {
    let mut ids: Vec<u64> = matches.iter().map(|id| **id).collect();
    ids.sort_unstable();
    ids
}

fn attributes() -> [AttributeDefinition; 13] {
    [
        AttributeDefinition::string_list("categories"),
        AttributeDefinition::string_list("jurisdictions"),
        AttributeDefinition::string_list("actions"),
        AttributeDefinition::string_list("effects"),
        AttributeDefinition::string("risk"),
        AttributeDefinition::string("training"),
        AttributeDefinition::string("did"),
        AttributeDefinition::boolean("verified"),
        AttributeDefinition::integer("latency"),
        AttributeDefinition::integer("uptime"),
        AttributeDefinition::integer("retention"),
        AttributeDefinition::integer("incidents"),
        AttributeDefinition::integer("updated"),
    ]
}

fn event(tree: &ATree<u64>, facts: &Facts) -> Result<a_tree::Event> {
    let mut event = tree.make_event();
    let (categories, actions) = (facts.category_names(), facts.action_ids());
    let jurisdictions: Vec<&str> = facts.jurisdictions.iter().map(|rank| country(*rank)).collect();
    let categories: Vec<&str> = categories.iter().map(String::as_str).collect();
    let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
    event.with_string_list("categories", &categories)?;
    event.with_string_list("jurisdictions", &jurisdictions)?;
    event.with_string_list("actions", &actions)?;
    event.with_string_list("effects", &facts.action_effects())?;
    event.with_string("risk", facts.risk_class())?;
    event.with_string("training", facts.training())?;
    event.with_string("did", &facts.did())?;
    event.with_boolean("verified", facts.verified)?;
    event.with_integer("latency", facts.latency_p95_ms.into())?;
    event.with_integer("uptime", facts.uptime_in_ten_thousandths().into())?;
    event.with_integer("retention", facts.retention_days.into())?;
    event.with_integer("incidents", facts.incidents().into())?;
    event.with_integer("updated", facts.updated)?;
    event.build().context("an event is incomplete")
}

/// What this process holds in memory.
fn resident_bytes() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no `VmRSS` in the status")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = cpu_seconds();
    let done = work();
    let seconds = cpu_seconds() - start;
    (done, (seconds - clock_seconds()).max(0.0))
}

/// What reading the clock adds to a time at least; so never more is taken off than was added.
fn clock_seconds() -> f64 {
    static CLOCK: OnceLock<f64> = OnceLock::new();
    *CLOCK.get_or_init(|| {
        let nothing = |_| {
            let start = cpu_seconds();
            cpu_seconds() - start
        };
        (0..1_001).map(nothing).fold(f64::MAX, f64::min)
    })
}

/// What this thread has spent on a processor.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The smallest value that at least this part of all values does not exceed.
fn part(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn micros(seconds: f64) -> String {
    let micros = seconds * 1e6;
    if micros >= 1_000.0 { format!("{:.2} ms", micros / 1e3) } else { format!("{micros:.1} µs") }
}
