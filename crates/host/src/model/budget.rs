//! What an engagement may cost: tokens, money and time, counted as they are spent.
//!
//! INVARIANT: money is counted in millionths and rounded up, so a budget is never overdrawn unnoticed.

use super::Usage;
use crate::ConfigurationError;
use crate::fields::Fields;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Millionths in one.
const MILLION: u128 = 1_000_000;

/// What may be spent; what is not said is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tokens, read and written together.
    pub tokens: Option<u64>,
    /// Money, in millionths of the currency that prices are given in.
    pub money_micros: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}

/// What somebody may use in a day, in all engagements together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayBudget {
    /// Tokens, read and written together.
    pub tokens: u64,
    /// Calls of models, tools, guardrails and agents.
    pub calls: u64,
    /// Time that is worked.
    pub time: Duration,
    /// Money, in millionths; nobody knows what is much in a currency that only the operator knows.
    pub money_micros: Option<u64>,
}

/// What each user and each owner may use in a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayBudgets {
    /// Each user's, who began the engagements.
    pub user: DayBudget,
    /// Each owner's, whose agents they were begun with.
    pub owner: DayBudget,
}

impl Default for DayBudgets {
    fn default() -> Self {
        let user =
            DayBudget { tokens: 10_000_000, calls: 100_000, time: Duration::from_secs(24 * 3_600), money_micros: None };
        // Names are cheap to make, so what the operator pays for at most is the owner's.
        let owner =
            DayBudget { tokens: 10 * user.tokens, calls: 10 * user.calls, time: 10 * user.time, money_micros: None };
        Self { user, owner }
    }
}

impl DayBudgets {
    pub(crate) fn read(fields: Option<Fields<'_>>) -> Result<Self, ConfigurationError> {
        let usual = Self::default();
        let Some(fields) = fields else { return Ok(usual) };
        let budgets = Self {
            user: DayBudget::read(fields.object("user")?, usual.user)?,
            owner: DayBudget::read(fields.object("owner")?, usual.owner)?,
        };
        fields.finish()?;
        Ok(budgets)
    }
}

impl DayBudget {
    fn read(fields: Option<Fields<'_>>, usual: Self) -> Result<Self, ConfigurationError> {
        let Some(fields) = fields else { return Ok(usual) };
        let budget = Self {
            tokens: fields.count("tokens")?.unwrap_or(usual.tokens),
            calls: fields.count("calls")?.unwrap_or(usual.calls),
            time: fields.count("seconds")?.map_or(usual.time, Duration::from_secs),
            money_micros: micros(&fields, "money")?,
        };
        fields.finish()?;
        Ok(budget)
    }
}

/// What a million tokens cost, in millionths of the operator's currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// For what the model reads.
    pub input_micros: u64,
    /// For what the model writes.
    pub output_micros: u64,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Money, in millionths.
    pub money_micros: u64,
    /// Time, in milliseconds.
    pub time_ms: u64,
}

/// A budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget for {what} is used up")]
pub struct Exceeded {
    /// What there is too much of: `tokens`, `money` or `time`.
    pub what: &'static str,
}

impl Exceeded {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "engagement_budget_exceeded"
    }
}

impl Budget {
    pub(crate) fn read(fields: Option<Fields<'_>>) -> Result<Self, ConfigurationError> {
        let Some(fields) = fields else { return Ok(Self::default()) };
        let budget = Self {
            tokens: fields.count("tokens")?,
            money_micros: micros(&fields, "money")?,
            time: fields.count("seconds")?.map(Duration::from_secs),
        };
        fields.finish()?;
        Ok(budget)
    }

    /// This budget, and what it does not say from another.
    pub fn or(self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.or(other.tokens),
            money_micros: self.money_micros.or(other.money_micros),
            time: self.time.or(other.time),
        }
    }

    /// Whether there is something left.
    pub fn check(&self, spent: &Spent) -> Result<(), Exceeded> {
        let over = |max: Option<u64>, got: u64| max.is_some_and(|max| got >= max);
        let milliseconds = self.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        match () {
            () if over(self.tokens, spent.input_tokens.saturating_add(spent.output_tokens)) => {
                Err(Exceeded { what: "tokens" })
            }
            () if over(self.money_micros, spent.money_micros) => Err(Exceeded { what: "money" }),
            () if over(milliseconds, spent.time_ms) => Err(Exceeded { what: "time" }),
            () => Ok(()),
        }
    }

    /// What of this budget is left, for an engagement within the engagement.
    pub fn left(&self, spent: &Spent) -> Self {
        let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
        Self {
            tokens: self.tokens.map(|max| max.saturating_sub(tokens)),
            money_micros: self.money_micros.map(|max| max.saturating_sub(spent.money_micros)),
            time: self.time.map(|time| time.saturating_sub(Duration::from_millis(spent.time_ms))),
        }
    }
}

impl Price {
    pub(crate) fn read(fields: Option<Fields<'_>>) -> Result<Self, ConfigurationError> {
        let Some(fields) = fields else { return Ok(Self::default()) };
        let price = Self {
            input_micros: micros(&fields, "input_per_million")?.unwrap_or_default(),
            output_micros: micros(&fields, "output_per_million")?.unwrap_or_default(),
        };
        fields.finish()?;
        Ok(price)
    }

    /// What a reply cost, rounded up.
    pub fn of(&self, usage: &Usage) -> u64 {
        let cost = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let whole = cost(usage.input_tokens, self.input_micros) + cost(usage.output_tokens, self.output_micros);
        u64::try_from(whole.div_ceil(MILLION)).unwrap_or(u64::MAX)
    }
}

impl Spent {
    /// Adds what a reply cost.
    pub fn add(&mut self, usage: &Usage, price: &Price, time: Duration) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.money_micros = self.money_micros.saturating_add(price.of(usage));
        self.time_ms = self.time_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }
}

/// A decimal with at most six digits behind the point, in millionths.
fn micros(fields: &Fields<'_>, name: &'static str) -> Result<Option<u64>, ConfigurationError> {
    let Some(text) = fields.text(name)? else { return Ok(None) };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !whole.is_empty() && fraction.len() <= 6 && digits(whole) && digits(fraction);
    let number = fits.then(|| format!("{whole}{fraction:0<6}").parse().ok()).flatten();
    match number {
        Some(micros) => Ok(Some(micros)),
        None => Err(fields.wrong(name, "an amount is a text like \"1.50\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Pointer, Value, json};

    fn budget(value: &Value) -> Result<Budget, ConfigurationError> {
        Budget::read(Some(Fields::of(value, &Pointer::root())?))
    }

    #[test]
    fn amounts_are_exact() {
        for (text, micros) in [("1.50", 1_500_000), ("0.000001", 1), ("12", 12_000_000)] {
            assert_eq!(budget(&json!({"money": text})).unwrap().money_micros, Some(micros), "{text}");
        }
        for text in ["", ".5", "1.0000001", "-1", "1e3", "1,5", "99999999999999999999"] {
            assert!(budget(&json!({"money": text})).is_err(), "{text}");
        }
        assert!(budget(&json!({"money": 1.5})).is_err());
    }

    #[test]
    fn what_is_not_said_of_a_day_is_as_usual() {
        let usual = DayBudgets::default();
        let read = |value: &Value| DayBudgets::read(Some(Fields::of(value, &Pointer::root())?));
        assert_eq!(DayBudgets::read(None).unwrap(), usual);
        assert_eq!(read(&json!({})).unwrap(), usual);
        let given = read(&json!({"user": {"calls": 3, "money": "1.50"}, "owner": {"seconds": 60}})).unwrap();
        let user = DayBudget { calls: 3, money_micros: Some(1_500_000), ..usual.user };
        assert_eq!(given.user, user);
        assert_eq!(given.owner, DayBudget { time: Duration::from_secs(60), ..usual.owner });
        assert_eq!(read(&json!({"node": {}})).unwrap_err().at.to_string(), "/node");
        assert_eq!(read(&json!({"user": {"turns": 1}})).unwrap_err().at.to_string(), "/user/turns");
    }

    #[test]
    fn costs_are_rounded_up_and_end_at_the_budget() {
        let price = Price { input_micros: 3_000_000, output_micros: 15_000_000 };
        let usage = Usage { input_tokens: 1, output_tokens: 0 };
        assert_eq!(price.of(&usage), 3);
        assert_eq!(Price { input_micros: 1, output_micros: 0 }.of(&usage), 1);
        let (mut spent, budget) = (Spent::default(), budget(&json!({"money": "0.000007", "tokens": 100})).unwrap());
        for _ in 0..2 {
            spent.add(&usage, &price, Duration::from_millis(1));
            assert_eq!(budget.check(&spent), Ok(()));
        }
        spent.add(&usage, &price, Duration::from_millis(1));
        assert_eq!(budget.check(&spent), Err(Exceeded { what: "money" }));
        assert_eq!(budget.left(&spent).tokens, Some(97));
        let time = Budget { time: Some(Duration::from_millis(3)), ..Budget::default() };
        assert_eq!(time.check(&spent), Err(Exceeded { what: "time" }));
        let tokens = Budget { tokens: Some(3), ..Budget::default() };
        assert_eq!(tokens.check(&spent), Err(Exceeded { what: "tokens" }));
    }
}
