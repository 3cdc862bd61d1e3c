//! RFC 0020 B.3 under stress: random intents, payments, refusals, failures, lost replies, crashes and sessions that run
//! out, with sixteen workers who take turns at random and know nothing of each other but the ledger.
//!
//! The wallet here keeps its own count of what it moved; the ledger is held against that.

use aql::{Amount, Money};
use payment::{Accounts, State, Step};
use std::collections::HashMap;
use trust::Digest;

const WORKERS: usize = 16;

/// Choices from a seed (SplitMix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// What happened in histories.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) settled: u64,
    pub(crate) failed: u64,
    pub(crate) lapsed: u64,
    pub(crate) over_budget: u64,
    pub(crate) crashes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Open,
    Over,
    Moved,
    Failed,
}

/// A wallet that keeps its promises: the same request has one open session, and a session moves money once.
#[derive(Default)]
struct Wallet {
    sessions: Vec<(usize, u128, Held)>,
    latest: HashMap<usize, usize>,
    moved: u128,
    times: HashMap<usize, u32>,
}

impl Wallet {
    fn ask(&mut self, payment: usize, amount: u128) -> usize {
        if let Some(session) = self.latest.get(&payment)
            && self.sessions[*session].2 != Held::Over
        {
            return *session;
        }
        self.sessions.push((payment, amount, Held::Open));
        self.latest.insert(payment, self.sessions.len() - 1);
        self.sessions.len() - 1
    }

    fn execute(&mut self, session: usize, fails: bool) -> Held {
        let (payment, amount, held) = &mut self.sessions[session];
        if *held == Held::Open {
            *held = if fails { Held::Failed } else { Held::Moved };
            if *held == Held::Moved {
                self.moved += *amount;
                *self.times.entry(*payment).or_default() += 1;
            }
        }
        *held
    }
}

/// What a worker holds in its hands, which a crash takes from it.
#[derive(Clone, Copy)]
enum Hand {
    Empty,
    Looking(usize),
    Refused(usize, u32),
    Granted(usize, u32, usize),
    Confirmed(usize, u32, bool),
    Lapsed(usize, u32),
}

struct World {
    accounts: Accounts,
    wallet: Wallet,
    keys: Vec<Digest>,
    amounts: Vec<Money>,
    budget: u128,
    tally: Tally,
    calm: bool,
}

/// Plays one history; says what broke, if anything did.
pub(crate) fn play(seed: u64) -> Result<Tally, String> {
    let mut chance = Chance(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut world = World::new(&mut chance);
    let mut hands = [Hand::Empty; WORKERS];
    for _ in 0..40 + chance.below(120) {
        let worker = chance.below(WORKERS as u64) as usize;
        if chance.one_in(40) {
            hands[worker] = Hand::Empty;
            world.tally.crashes += 1;
        }
        hands[worker] = world.act(hands[worker], &mut chance);
        world.check()?;
        if chance.one_in(25) {
            world.run_out(&mut chance);
        }
    }
    // Everybody crashes; one worker who meets no more trouble takes every payment to its end.
    world.calm = true;
    for payment in 0..world.keys.len() {
        let mut hand = Hand::Looking(payment);
        for _ in 0..64 {
            hand = world.act(hand, &mut chance);
            world.check()?;
            if matches!(hand, Hand::Empty) {
                break;
            }
        }
    }
    world.finish()
}

impl World {
    fn new(chance: &mut Chance) -> Self {
        let grain = 10_u128.pow(16);
        let budget = u128::from(1 + chance.below(10_000)) * grain;
        let count = 1 + chance.below(8) as usize;
        let money = |units| Money { amount: Amount::from_units(units), currency: "EUR".to_owned() };
        // Together they may well ask for more than there is.
        let share = |chance: &mut Chance| money((budget * u128::from(1 + chance.below(80)) / 100).max(1));
        let amounts: Vec<Money> = (0..count).map(|_| share(chance)).collect();
        let mut accounts = Accounts::default();
        accounts.apply(&Step::Open { intent_id: "i", budget: &money(budget) }).unwrap();
        let keys = (0..count).map(|number| Digest::of(&[number as u8])).collect();
        Self { accounts, wallet: Wallet::default(), keys, amounts, budget, tally: Tally::default(), calm: false }
    }

    /// One small act of a worker; between two of them anything can happen.
    fn act(&mut self, hand: Hand, chance: &mut Chance) -> Hand {
        self.tally.steps += 1;
        match hand {
            Hand::Empty => Hand::Looking(chance.below(self.keys.len() as u64) as usize),
            Hand::Looking(payment) => self.look(payment, chance),
            Hand::Refused(payment, attempt) => {
                let _ = self.accounts.apply(&Step::Release { key: self.keys[payment], attempt });
                Hand::Empty
            }
            Hand::Granted(payment, attempt, session) => {
                let session_id = session.to_string();
                let _ = self.accounts.apply(&Step::Grant { key: self.keys[payment], attempt, session_id: &session_id });
                Hand::Looking(payment)
            }
            Hand::Confirmed(payment, attempt, true) => {
                let _ = self.accounts.apply(&Step::Settle { key: self.keys[payment], attempt });
                Hand::Looking(payment)
            }
            Hand::Confirmed(payment, attempt, false) => {
                let _ = self.accounts.apply(&Step::Fail { key: self.keys[payment], attempt });
                Hand::Looking(payment)
            }
            Hand::Lapsed(payment, attempt) => {
                let _ = self.accounts.apply(&Step::Lapse { key: self.keys[payment], attempt });
                self.tally.lapsed += 1;
                Hand::Looking(payment)
            }
        }
    }

    /// What the ledger says is next.
    fn look(&mut self, payment: usize, chance: &mut Chance) -> Hand {
        let key = self.keys[payment];
        let known = self.accounts.payment(key).map(|paid| (paid.state, paid.attempt, paid.session_id.clone()));
        let lost = !self.calm && chance.one_in(8);
        match known {
            None | Some((State::Released, ..)) => {
                let amount = self.amounts[payment].clone();
                match self.accounts.apply(&Step::Reserve { intent_id: "i", key, amount: &amount }) {
                    Ok(()) => Hand::Looking(payment),
                    Err(_) => {
                        self.tally.over_budget += 1;
                        Hand::Empty
                    }
                }
            }
            Some((State::Reserved, attempt, _)) => {
                if !self.calm && chance.one_in(10) {
                    return Hand::Refused(payment, attempt);
                }
                let session = self.wallet.ask(payment, self.amounts[payment].amount.units());
                if lost { Hand::Empty } else { Hand::Granted(payment, attempt, session) }
            }
            Some((State::Granted, attempt, session)) => {
                let session = session.and_then(|session| session.parse().ok()).unwrap();
                let held = self.wallet.execute(session, !self.calm && chance.one_in(9));
                match held {
                    _ if lost => Hand::Empty,
                    Held::Open | Held::Over => Hand::Lapsed(payment, attempt),
                    Held::Moved => Hand::Confirmed(payment, attempt, true),
                    Held::Failed => Hand::Confirmed(payment, attempt, false),
                }
            }
            Some((State::Settled, attempt, _)) => {
                let _ = self.accounts.apply(&Step::Receipt { key, attempt });
                Hand::Empty
            }
            Some((State::Receipted | State::Failed, ..)) => Hand::Empty,
        }
    }

    /// A session that nobody used in time.
    fn run_out(&mut self, chance: &mut Chance) {
        let count = self.wallet.sessions.len() as u64;
        if count > 0 {
            let session = chance.below(count) as usize;
            if self.wallet.sessions[session].2 == Held::Open {
                self.wallet.sessions[session].2 = Held::Over;
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let account = self.accounts.account("i").unwrap();
        let held = account.reserved.units() + account.settled.units();
        if held > self.budget || self.wallet.moved > held {
            return Err(format!("{} moved, {held} held, {} the budget", self.wallet.moved, self.budget));
        }
        match self.wallet.times.iter().find(|(_, times)| **times > 1) {
            Some((payment, times)) => Err(format!("payment {payment} was paid {times} times")),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Tally, String> {
        let account = self.accounts.account("i").unwrap();
        if account.settled.units() != self.wallet.moved || account.reserved != Amount::ZERO {
            return Err(format!("in the end {account:?}, and {} moved", self.wallet.moved));
        }
        for key in &self.keys {
            match self.accounts.payment(*key).map(|paid| paid.state) {
                Some(State::Receipted) => self.tally.settled += 1,
                Some(State::Failed) => self.tally.failed += 1,
                None | Some(State::Released) => {}
                Some(other) => return Err(format!("a payment is left {other:?}")),
            }
        }
        Ok(self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settled_sum_never_exceeds_the_budget_and_nothing_is_paid_twice() {
        let mut all = Tally::default();
        for seed in 0..3_000 {
            let tally = play(seed).unwrap_or_else(|broken| panic!("history {seed}: {broken}"));
            all.settled += tally.settled;
            all.failed += tally.failed;
            all.lapsed += tally.lapsed;
            all.over_budget += tally.over_budget;
            all.crashes += tally.crashes;
        }
        // Without these there would be nothing to be seen.
        let seen = [all.settled, all.failed, all.lapsed, all.over_budget, all.crashes];
        assert!(seen.iter().all(|count| *count > 300), "{all:?}");
    }
}
