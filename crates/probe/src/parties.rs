//! Who asks and who publishes in a run: keys made for it, and the moment.

use aql::Instant;
use json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trust::{Digest, SigningKey};

/// Tells the seconds since 1970.
pub(crate) type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Seconds before now from which intents of a run are valid, so that clocks may differ a little.
const EARLIER: i64 = 120;
/// Seconds for which intents of a run stay valid.
const LATER: i64 = 900;

/// The keys of a run.
pub(crate) struct Parties {
    seed: [u8; 32],
    /// A word that no other run has.
    pub(crate) run: String,
    /// Publishes and asks.
    pub(crate) first: SigningKey,
    /// Somebody else: gives evidence, and tries what is not theirs.
    pub(crate) second: SigningKey,
    clock: Clock,
    count: AtomicU64,
}

impl Parties {
    pub(crate) fn new(seed: [u8; 32], clock: Clock) -> Self {
        let named = Digest::of(&[b"run".as_slice(), &seed].concat()).to_string();
        let run = named.chars().skip("sha256:".len()).take(12).collect();
        let parties = |name: &str| key(&seed, name);
        Self { seed, run, first: parties("first"), second: parties("second"), clock, count: AtomicU64::new(0) }
    }

    /// A key by the name that a case gives it.
    pub(crate) fn key(&self, name: &str) -> SigningKey {
        key(&self.seed, name)
    }

    /// The first party's DID.
    pub(crate) fn did(&self) -> String {
        self.first.did_key().as_str().to_owned()
    }

    /// A word that stands once in the run.
    pub(crate) fn fresh(&self) -> String {
        format!("{}-{}", self.run, self.count.fetch_add(1, Ordering::Relaxed))
    }

    /// Now, in seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// A time some seconds from now.
    pub(crate) fn time(&self, seconds: i64) -> String {
        Instant::from_unix(self.now() + seconds, 0).to_string()
    }

    /// A window that is open now.
    pub(crate) fn window(&self) -> Value {
        json!({"from": self.time(-EARLIER), "to": self.time(LATER)})
    }
}

fn key(seed: &[u8; 32], name: &str) -> SigningKey {
    SigningKey::from_seed(*Digest::of(&[seed.as_slice(), name.as_bytes()].concat()).as_bytes())
}
