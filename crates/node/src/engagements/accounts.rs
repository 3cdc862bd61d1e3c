//! OAS Agent: what each user and each owner has used today, in all engagements together.
//!
//! A user is whoever began an engagement, an owner whose agent it was begun with; what serves an engagement counts for the
//! user and the owner of the first one. Those who prove nothing are one user. A day is one of UTC, and what was used stands
//! in the journals: when the node starts, it is counted from there (decisions/0320).
//!
//! INVARIANT: no user uses up what is another user's, as long as no more come in a day than are told apart.

use super::journal::Live;
use super::serving::place_served;
use super::{Engagements, child_id};
use crate::refusal::{Class, Error, Refusal};
use agent::{Step, Usage};
use host::{DayBudget, DayBudgets, Price};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use store::{Engaged, Reached};

const DAY_MS: i64 = 24 * 3_600_000;
/// Users who are told apart in a day; those who come later share one account.
const USERS_MAX: usize = 65_536;

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    tokens: u64,
    calls: u64,
    money_micros: u64,
    time_ms: u64,
}

impl Used {
    /// What a step used: a turn of a model, a call that was begun, a guardrail that was asked.
    fn by(step: &Step, price: &Price) -> Self {
        let turn = |usage: &Usage| {
            let (input_tokens, output_tokens) = (usage.input_tokens, usage.output_tokens);
            let money_micros = price.of(&host::Usage { input_tokens, output_tokens });
            Self { tokens: input_tokens.saturating_add(output_tokens), calls: 1, money_micros, time_ms: 0 }
        };
        match step {
            Step::ModelSaid { usage, .. } => turn(usage),
            Step::Dispatched { .. } | Step::GuardrailReturned { .. } => Self { calls: 1, ..Self::default() },
            Step::Begun(_)
            | Step::UserSaid { .. }
            | Step::GuardrailHeld { .. }
            | Step::Attempted { .. }
            | Step::Denied { .. }
            | Step::ReviewAsked { .. }
            | Step::ReviewDecided { .. }
            | Step::CredentialsMissing { .. }
            | Step::CredentialsArrived { .. }
            | Step::Returned { .. }
            | Step::OutcomeUnknown { .. }
            | Step::Released { .. }
            | Step::Withheld { .. }
            | Step::Asking { .. }
            | Step::Asked { .. }
            | Step::Answered { .. }
            | Step::Failed { .. }
            | Step::Cancelled { .. } => Self::default(),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            calls: self.calls.saturating_add(other.calls),
            money_micros: self.money_micros.saturating_add(other.money_micros),
            time_ms: self.time_ms.saturating_add(other.time_ms),
        }
    }
}

/// For whom something is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payer {
    /// Nobody where nobody proved a name.
    user: Option<String>,
    owner: String,
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UsedUp {
    /// The name of the bound.
    pub(super) name: &'static str,
    most: u64,
    used: u64,
}

/// What the bounds of a user or an owner are called.
struct Names {
    tokens: &'static str,
    calls: &'static str,
    seconds: &'static str,
    money: &'static str,
}

const USERS: Names = Names {
    tokens: "user.tokens_per_day",
    calls: "user.calls_per_day",
    seconds: "user.seconds_per_day",
    money: "user.money_millionths_per_day",
};
const OWNERS: Names = Names {
    tokens: "owner.tokens_per_day",
    calls: "owner.calls_per_day",
    seconds: "owner.seconds_per_day",
    money: "owner.money_millionths_per_day",
};

/// What was used today, and what may be.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    budgets: DayBudgets,
    today: Mutex<Day>,
}

#[derive(Debug, Default)]
struct Day {
    number: i64,
    users: HashMap<Option<String>, Used>,
    owners: HashMap<String, Used>,
}

impl Day {
    /// The account of a user; those beyond the ones that are told apart have one together.
    fn account(&self, user: &Option<String>) -> Option<String> {
        let is_told_apart = user.is_none() || self.users.contains_key(user) || self.users.len() < USERS_MAX;
        if is_told_apart { user.clone() } else { Some(String::new()) }
    }
}

impl Accounts {
    pub(super) fn new(budgets: DayBudgets) -> Self {
        Self { budgets, today: Mutex::default() }
    }

    fn with<T>(&self, now: i64, look: impl FnOnce(&mut Day) -> T) -> T {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now.div_euclid(DAY_MS);
        if today.number != number {
            *today = Day { number, ..Day::default() };
        }
        look(&mut today)
    }

    /// Counts what was used.
    fn charge(&self, payer: &Payer, used: Used, now: i64) {
        if used == Used::default() {
            return;
        }
        self.with(now, |today| {
            let account = today.account(&payer.user);
            let of_user = today.users.entry(account).or_default();
            *of_user = of_user.and(used);
            let of_owner = today.owners.entry(payer.owner.clone()).or_default();
            *of_owner = of_owner.and(used);
        });
    }

    /// What the user and the owner have used, with what is not counted yet.
    fn used(&self, payer: &Payer, more: Used, now: i64) -> [(DayBudget, Used, &'static Names); 2] {
        let (of_user, of_owner) = self.with(now, |today| {
            let of_user = today.users.get(&today.account(&payer.user)).copied();
            (of_user.unwrap_or_default(), today.owners.get(&payer.owner).copied().unwrap_or_default())
        });
        [(self.budgets.user, of_user.and(more), &USERS), (self.budgets.owner, of_owner.and(more), &OWNERS)]
    }

    /// A budget of the user or the owner that is used up.
    fn used_up(&self, payer: &Payer, more: Used, now: i64) -> Option<UsedUp> {
        self.used(payer, more, now).into_iter().find_map(|(budget, used, names)| {
            let bounds = [
                (names.tokens, Some(budget.tokens), used.tokens),
                (names.calls, Some(budget.calls), used.calls),
                (names.money, budget.money_micros, used.money_micros),
            ];
            let mut bounds = bounds.into_iter().filter_map(|(name, most, used)| Some((name, most?, used)));
            let passed = bounds.find(|(_, most, used)| used >= most);
            let passed = passed.map(|(name, most, used)| UsedUp { name, most, used });
            let is_late = || Duration::from_millis(used.time_ms) >= budget.time;
            let late = || UsedUp { name: names.seconds, most: budget.time.as_secs(), used: used.time_ms / 1_000 };
            passed.or_else(|| is_late().then(late))
        })
    }

    /// How many tokens are left, and by which bound.
    fn tokens_left(&self, payer: &Payer, more: Used, now: i64) -> Option<(u64, &'static str)> {
        let left = self.used(payer, more, now);
        let left =
            left.into_iter().map(|(budget, used, names)| (budget.tokens.saturating_sub(used.tokens), names.tokens));
        left.min_by_key(|(left, _)| *left)
    }

    fn time_left(&self, payer: &Payer, more: Used, now: i64) -> Option<Duration> {
        let left = self.used(payer, more, now).into_iter();
        left.map(|(budget, used, _)| budget.time.saturating_sub(Duration::from_millis(used.time_ms))).min()
    }
}

impl Engagements {
    /// Refuses what would use more where a budget of a day is used up.
    pub(super) fn check_day(&self, payer: &Payer) -> Result<(), Error> {
        let now = self.node.clock().millis();
        let Some(used_up) = self.accounts.used_up(payer, Used::default(), now) else { return Ok(()) };
        let detail = "as much was used today as the operator grants; wait for the next day in UTC";
        let wait = DAY_MS - now.rem_euclid(DAY_MS);
        let refusal = Refusal::new(Class::RateLimited, "day_budget_exhausted", detail);
        let refusal = refusal.limited(used_up.name, used_up.most, used_up.used);
        Err(refusal.retry_after(u64::try_from(wait).unwrap_or_default()).into())
    }

    /// For whom an engagement is begun with an agent, where it serves no other one.
    pub(super) fn payer_of(agent: &agent::Agent, caller: Option<&str>) -> Payer {
        Payer { user: caller.map(str::to_owned), owner: agent.owner.clone() }
    }

    /// For whom an engagement works: whoever began the first of those that it serves.
    pub(super) fn payer(&self, engaged: &Engaged) -> Result<Payer, Error> {
        let mut first = engaged.clone();
        while let Some((parent, _)) = first.parent {
            first = self.engaged(&parent)?;
        }
        let agent = self.document(&first.document)?;
        Ok(Self::payer_of(&agent, first.caller.as_deref()))
    }

    /// A budget of the day that an engagement has used up.
    pub(super) fn day_used_up(&self, live: &Live) -> Option<UsedUp> {
        let payer = live.payer.as_ref()?;
        self.accounts.used_up(payer, self.uncounted(live), self.node.clock().millis())
    }

    /// What is left of the day's tokens, and by which bound.
    pub(super) fn day_tokens_left(&self, live: &Live) -> Option<(u64, &'static str)> {
        let payer = live.payer.as_ref()?;
        self.accounts.tokens_left(payer, self.uncounted(live), self.node.clock().millis())
    }

    /// How long may still be worked today.
    pub(super) fn day_time_left(&self, live: &Live) -> Option<Duration> {
        let payer = live.payer.as_ref()?;
        self.accounts.time_left(payer, self.uncounted(live), self.node.clock().millis())
    }

    /// What an engagement used that is not in the accounts yet: what is not written, and the time since.
    pub(super) fn uncounted(&self, live: &Live) -> Used {
        let price = self.price(live.agent.name.as_str());
        let steps = live.unwritten_steps().iter().map(|step| Used::by(step, &price));
        let time = Used { time_ms: live.uncounted_ms(), ..Used::default() };
        steps.fold(time, Used::and)
    }

    /// Counts what an engagement used.
    pub(super) fn count(&self, live: &mut Live, used: Used) -> Result<(), Error> {
        live.counted_ms = live.counted_ms.saturating_add(used.time_ms);
        if used != Used::default() {
            let payer = match live.payer.take() {
                Some(payer) => payer,
                None => self.payer(&live.engaged)?,
            };
            self.accounts.charge(live.payer.insert(payer), used, self.node.clock().millis());
        }
        Ok(())
    }

    /// Counts what the journals say of today. The time of one that serves is in the other's journal once it is done; until
    /// then it is in its own alone.
    pub(super) fn count_today(&self) -> Result<(), Error> {
        let now = self.node.clock().millis();
        let mut at_work = HashSet::new();
        for engaged in self.node.store.engagements_at(Reached::Running)? {
            match self.load(&engaged.id) {
                Ok(live) => at_work.extend(place_served(&live.engagement).map(|place| child_id(&engaged.id, &place))),
                Err(error) => tracing::warn!(engagement = engaged.id, %error, "an engagement cannot be read"),
            }
        }
        let midnight = now - now.rem_euclid(DAY_MS);
        for engaged in self.node.store.engagements_since(midnight)? {
            let is_timed = engaged.parent.is_none() || at_work.contains(&engaged.id);
            match self.used_since(&engaged, midnight, is_timed) {
                Ok((payer, used)) => self.accounts.charge(&payer, used, now),
                Err(error) => tracing::warn!(engagement = engaged.id, %error, "what was used cannot be counted"),
            }
        }
        Ok(())
    }

    /// What an engagement used since then, by its journal.
    fn used_since(&self, engaged: &Engaged, since: i64, is_timed: bool) -> Result<(Payer, Used), Error> {
        let (price, mut used, mut worked_ms) = (self.price(&engaged.agent), Used::default(), 0);
        for noted in self.node.store.steps(&engaged.id)? {
            let said = Step::worked_ms(&noted.body);
            if noted.at >= since {
                let step: Step = serde_json::from_slice(&noted.body).map_err(Error::fault)?;
                used = used.and(Used::by(&step, &price));
                // It is counted from nought again with every word of the user.
                let more = said.map_or(0, |said| said.checked_sub(worked_ms).unwrap_or(said));
                used.time_ms = used.time_ms.saturating_add(if is_timed { more } else { 0 });
            }
            worked_ms = said.unwrap_or(worked_ms);
        }
        Ok((self.payer(engaged)?, used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payer(user: &str) -> Payer {
        Payer { user: Some(user.to_owned()), owner: "boss".to_owned() }
    }

    fn accounts(user_calls: u64, owner_calls: u64) -> Accounts {
        let usual = DayBudgets::default();
        let user = DayBudget { calls: user_calls, ..usual.user };
        Accounts::new(DayBudgets { user, owner: DayBudget { calls: owner_calls, ..usual.owner } })
    }

    const CALL: Used = Used { tokens: 7, calls: 1, money_micros: 0, time_ms: 1_000 };

    #[test]
    fn what_one_user_uses_up_another_has_and_the_owner_pays_for_both() {
        let accounts = accounts(2, 3);
        let refused = |user: &str, now: i64| {
            accounts
                .used_up(&payer(user), Used::default(), now)
                .map(|used_up| (used_up.name, used_up.most, used_up.used))
        };
        accounts.charge(&payer("ada"), CALL, 5);
        assert_eq!(refused("ada", 5), None);
        assert_eq!(accounts.used_up(&payer("ada"), CALL, 5).unwrap().name, "user.calls_per_day", "not counted yet");
        accounts.charge(&payer("ada"), CALL, 5);
        assert_eq!((refused("ada", 5), refused("bob", 5)), (Some(("user.calls_per_day", 2, 2)), None));
        accounts.charge(&payer("bob"), CALL, 5);
        assert_eq!(refused("cy", DAY_MS - 1), Some(("owner.calls_per_day", 3, 3)));
        assert_eq!((refused("ada", DAY_MS), refused("cy", DAY_MS)), (None, None), "a new day");
    }

    #[test]
    fn the_least_that_is_left_counts() {
        let mut budgets = DayBudgets::default();
        (budgets.user.tokens, budgets.owner.tokens) = (100, 10);
        (budgets.user.time, budgets.owner.time) = (Duration::from_secs(2), Duration::from_secs(60));
        let accounts = Accounts::new(budgets);
        assert_eq!(accounts.tokens_left(&payer("ada"), CALL, 0), Some((3, "owner.tokens_per_day")));
        assert_eq!(accounts.time_left(&payer("ada"), CALL, 0), Some(Duration::from_secs(1)));
        accounts.charge(&payer("ada"), CALL, 0);
        let used_up = accounts.used_up(&payer("ada"), Used { time_ms: 1_000, ..Used::default() }, 0).unwrap();
        assert_eq!(used_up, UsedUp { name: "user.seconds_per_day", most: 2, used: 2 });
    }

    #[test]
    fn users_beyond_those_that_are_told_apart_share_an_account() {
        let accounts = accounts(2, u64::MAX);
        (0..USERS_MAX).for_each(|number| accounts.charge(&payer(&number.to_string()), CALL, 0));
        ["late", "later"].into_iter().for_each(|user| accounts.charge(&payer(user), CALL, 0));
        assert!(accounts.used_up(&payer("last"), Used::default(), 0).is_some());
        assert!(accounts.used_up(&payer("0"), Used::default(), 0).is_none());
        accounts.charge(&Payer { user: None, owner: String::new() }, CALL, 0);
        assert!(accounts.with(0, |today| today.users.len()) <= USERS_MAX + 2);
    }
}
