//! Kills a node again and again, and looks for what it promised and did not keep; and lets its disk fail it.
//!
//! Writers publish, change and withdraw records of their own, and note every acknowledgement in this process, which
//! survives. The node is killed with SIGKILL at a random moment and started on the same folder. Then everything that
//! was acknowledged must be there, byte for byte, and nothing else; what was under way may be there or not.

mod check;
mod ledger;
mod load;
mod program;
mod strace;
mod script;
mod calls;
mod errors;
mod full;
mod flips;
mod feed;
mod payment;
mod engagements;
mod crowd;

pub use calls::calls;
pub use crowd::{Crowd, CrowdReport, CrowdWrong, crowd};
pub use engagements::engagements;
pub use errors::errors;
pub use feed::{FeedBroken, FeedToll, FeedTorment, torment_feed};
pub use flips::flips;
pub use full::{full, mount_is_missing, read_only};
pub use payment::payment;
pub use program::{Program, Running, clock, start};
pub use script::Faults;
pub use strace::is_missing as strace_is_missing;

use crate::chance::Chance;
use anyhow::{Context, Result, ensure};
use aql::Instant;
use json::{Value, json};
use ledger::Ledger;
use load::Kept;
use program::Line;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use trust::{Digest, SigningKey};

/// Threads that publish, each with records of its own.
const WRITERS: usize = 4;
/// Threads that ask.
const ASKERS: usize = 2;
/// How long a node is under load before it is killed, in milliseconds.
const LOAD_MILLIS: (u64, u64) = (200, 1_500);

/// How a node is to be tormented.
#[derive(Clone, Debug)]
pub struct Torment {
    /// How often it is killed.
    pub cycles: usize,
    /// Decides what is written and when the node is killed.
    pub seed: u64,
}

/// What became of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Toll {
    /// Kills.
    pub cycles: usize,
    /// Messages about records that were acknowledged.
    pub acknowledged: usize,
    /// Messages about records that were under way at a kill.
    pub under_way: usize,
    /// Of those, how many had taken effect.
    pub under_way_kept: usize,
    /// Intents that were answered.
    pub answered: usize,
    /// Looks at single records after a restart.
    pub looks: usize,
    /// What broke a promise.
    pub broken: Broken,
    /// The first broken promises, in words.
    pub told: Vec<String>,
    /// Milliseconds from start to ready after a kill, of each cycle.
    #[serde(skip)]
    pub restarts: Vec<f64>,
    /// Half of the restarts took no longer.
    pub restart_p50_ms: f64,
    /// Ninety-nine of a hundred restarts took no longer.
    pub restart_p99_ms: f64,
    /// The longest restart.
    pub restart_max_ms: f64,
    /// Changes in the log in the end.
    pub changes: u64,
    /// Seconds in all.
    pub seconds: f64,
}

/// Broken promises, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Acknowledged and not there.
    pub lost: usize,
    /// There and never accepted.
    pub phantom: usize,
    /// Records that an answer does not show as they are.
    pub unseen: usize,
    /// The same message, another reply.
    pub replies: usize,
    /// A sequence number that went back.
    pub sequence: usize,
    /// Flaws that the store finds in itself.
    pub flaws: usize,
}

impl Toll {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.broken == Broken::default()
    }

    fn tell(&mut self, what: String) {
        if self.told.len() < 20 {
            self.told.push(what);
        }
    }

    fn count_restarts(&mut self) {
        (self.restart_p50_ms, self.restart_p99_ms, self.restart_max_ms) = percentiles(&self.restarts);
    }
}

/// What half, ninety-nine of a hundred and all of some figures do not exceed.
fn percentiles(figures: &[f64]) -> (f64, f64, f64) {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
    };
    (at(0.5), at(0.99), at(1.0))
}

/// Torments a node until it has broken a promise or every cycle is over; `progress` hears of every cycle.
pub fn torment(program: &Program, torment: &Torment, progress: &mut dyn FnMut(&Toll)) -> Result<Toll> {
    let begun = start();
    let mut toll = Toll::default();
    let mut chance = Chance::seeded(torment.seed);
    let mut ledgers: Vec<Ledger> = (0..WRITERS).map(|writer| Ledger::new(torment.seed, writer)).collect();
    let (mut node, _) = program.serve().context("the node does not start")?;
    let mut highest = 0;
    for cycle in 0..torment.cycles {
        let span = LOAD_MILLIS.0 + chance.bits() % (LOAD_MILLIS.1 - LOAD_MILLIS.0);
        let kept = load::run(&mut node, &mut ledgers, ASKERS, Duration::from_millis(span), &mut chance)?;
        highest = highest.max(kept.sequence);
        note(&mut toll, &kept, &ledgers);
        let (restarted, took) =
            program.serve().with_context(|| format!("the node does not start after kill {}", cycle + 1))?;
        node = restarted;
        toll.cycles += 1;
        toll.restarts.push(took * 1_000.0);
        check::check(&node, &mut ledgers, &kept, highest, cycle + 1 == torment.cycles, &mut chance, &mut toll)?;
        toll.seconds = begun.elapsed().as_secs_f64();
        progress(&toll);
        // What comes after a broken promise would be judged by books that no longer hold.
        if !toll.is_clean() {
            break;
        }
    }
    node.stop()?;
    sound(program.data(), &mut toll)?;
    toll.count_restarts();
    toll.seconds = begun.elapsed().as_secs_f64();
    Ok(toll)
}

fn note(toll: &mut Toll, kept: &Kept, ledgers: &[Ledger]) {
    toll.acknowledged += kept.acknowledged;
    toll.answered += kept.answered;
    toll.under_way += ledgers.iter().filter(|ledger| ledger.under_way().is_some()).count();
}

/// What the store says of itself once nobody has it open.
fn soundness(data: &Path) -> Result<store::Soundness> {
    Ok(store::Store::open(&data.join("store"))?.check()?)
}

fn sound(data: &Path, toll: &mut Toll) -> Result<()> {
    let soundness = soundness(data)?;
    toll.changes = soundness.changes;
    toll.broken.flaws += soundness.flaws.len();
    for flaw in &soundness.flaws {
        toll.tell(format!("the store finds a flaw: {flaw:?}"));
    }
    ensure!(soundness.changes > 0 || toll.acknowledged == 0, "the log is empty after a run with acknowledgements");
    Ok(())
}

/// Leaves a standing intent in somebody's name, with a key made of it; tells the path of its journal.
fn subscribe(line: &Line, name: &str, constraints: Value) -> Result<String> {
    let key = SigningKey::from_seed(*Digest::of(name.as_bytes()).as_bytes());
    let time = |seconds: i64| Instant::from_unix(clock() + seconds, 0).to_string();
    let mut intent = json!({
        "intent_id": format!("urn:oap:intent:{}", name.replace(' ', "-")), "issuer_did": key.did_key().as_str(),
        "category": "subscription", "constraints": constraints, "projection": {"include": ["/n"]},
        "max_event_rate_per_minute": 6_000, "validity": {"from": time(-60), "to": time(86_400)},
    });
    trust::sign(&mut intent, &key)?;
    let reply = line.send("POST", "/oap/subscribe", intent.to_string().as_bytes())?;
    ensure!(reply.status == 200, "a standing intent is refused: {}", String::from_utf8_lossy(&reply.body));
    let acknowledged: Value = serde_json::from_slice(&reply.body)?;
    let id = acknowledged.get("subscription_id").and_then(Value::as_str).context("no name in an acknowledgement")?;
    Ok(format!("/oap/subscriptions/{id}/events"))
}
