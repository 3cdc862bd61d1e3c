//! RFC 0020 B.3: what an intent may still spend, as a state machine over payments.
//!
//! Money is reserved before a session is asked for, and a reservation ends as settled, failed or released. A payment has one
//! name, its idempotency key; one that was released or lapsed may be tried again under the next attempt number, so
//! that whoever still acts on an older attempt changes nothing.
//!
//! INVARIANT: what is reserved and settled never sums to more than the budget; what is settled or failed stays so.

use crate::money::{less, sum};
use crate::refusal::{Code, Refusal};
use aql::{Amount, Money};
use std::collections::{HashMap, HashSet};
use trust::Digest;

/// What a payment is about to do.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// An intent gets an account.
    Open {
        /// Which intent.
        intent_id: &'a str,
        /// How much it may spend.
        budget: &'a Money,
    },
    /// Money is set aside; a session may be asked for.
    Reserve {
        /// For which intent.
        intent_id: &'a str,
        /// The payment.
        key: Digest,
        /// How much.
        amount: &'a Money,
    },
    /// The wallet granted a session; it may be executed.
    Grant {
        /// The payment.
        key: Digest,
        /// Which try of it.
        attempt: u32,
        /// The session.
        session_id: &'a str,
    },
    /// The money has moved.
    Settle {
        /// The payment.
        key: Digest,
        /// Which try of it.
        attempt: u32,
    },
    /// The money could not be moved, and never will be in this session.
    Fail {
        /// The payment.
        key: Digest,
        /// Which try of it.
        attempt: u32,
    },
    /// The wallet refused the session.
    Release {
        /// The payment.
        key: Digest,
        /// Which try of it.
        attempt: u32,
    },
    /// The session is over, and nobody used it.
    Lapse {
        /// The payment.
        key: Digest,
        /// Which try of it.
        attempt: u32,
    },
    /// The settled payment has its receipt.
    Receipt {
        /// The payment.
        key: Digest,
        /// Which try of it.
        attempt: u32,
    },
}

/// The money of one intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The ceiling.
    pub budget: Money,
    /// Set aside for payments under way.
    pub reserved: Amount,
    /// Gone.
    pub settled: Amount,
}

impl Account {
    /// What may still be reserved.
    pub fn left(&self) -> Amount {
        less(less(self.budget.amount, self.reserved), self.settled)
    }
}

/// How far a payment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Money is set aside.
    Reserved,
    /// There is a session.
    Granted,
    /// The money has moved; the receipt is missing.
    Settled,
    /// The money has moved, and there is a receipt.
    Receipted,
    /// The wallet failed to move it.
    Failed,
    /// It was given up; it may be tried again.
    Released,
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// Of which intent.
    pub intent_id: String,
    /// How much.
    pub amount: Amount,
    /// Which try it is, counted from one.
    pub attempt: u32,
    /// How far it is.
    pub state: State,
    /// The session of this try, once there is one.
    pub session_id: Option<String>,
}

/// All accounts of an agent.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    accounts: HashMap<String, Account>,
    payments: HashMap<Digest, Paid>,
    sessions: HashSet<String>,
}

impl Accounts {
    /// The account of an intent.
    pub fn account(&self, intent_id: &str) -> Option<&Account> {
        self.accounts.get(intent_id)
    }

    /// A payment.
    pub fn payment(&self, key: Digest) -> Option<&Paid> {
        self.payments.get(&key)
    }

    /// Whether a step follows from what is known.
    pub fn check(&self, step: &Step<'_>) -> Result<(), Refusal> {
        match *step {
            Step::Open { intent_id, .. } => match self.accounts.contains_key(intent_id) {
                false => Ok(()),
                true => Err(out_of_order("the intent has an account already")),
            },
            Step::Reserve { intent_id, key, amount } => self.check_reserve(intent_id, key, amount),
            Step::Grant { key, attempt, session_id } => {
                self.expect(key, attempt, State::Reserved)?;
                match self.sessions.contains(session_id) {
                    false => Ok(()),
                    true => Err(Refusal::new(Code::PaymentConflict, "the session belongs to another payment")),
                }
            }
            Step::Settle { key, attempt } | Step::Fail { key, attempt } | Step::Lapse { key, attempt } => {
                self.expect(key, attempt, State::Granted)
            }
            // One who was refused must not free the money of another who was granted the same request.
            Step::Release { key, attempt } => self.expect(key, attempt, State::Reserved),
            Step::Receipt { key, attempt } => self.expect(key, attempt, State::Settled),
        }
    }

    fn check_reserve(&self, intent_id: &str, key: Digest, amount: &Money) -> Result<(), Refusal> {
        let account = self.accounts.get(intent_id).ok_or_else(|| out_of_order("the intent has no account yet"))?;
        match self.payments.get(&key).map(|payment| payment.state) {
            None | Some(State::Released) => {}
            Some(State::Settled | State::Receipted) => {
                return Err(Refusal::new(Code::AlreadyPaid, "this was paid already; nothing is paid twice"));
            }
            Some(State::Failed) => {
                return Err(Refusal::new(Code::SessionClosed, "the wallet failed to pay this; its session is over"));
            }
            Some(State::Reserved | State::Granted) => {
                return Err(Refusal::new(Code::PaymentUnderWay, "this is being paid already; go on with that"));
            }
        }
        if amount.currency != account.budget.currency {
            return Err(Refusal::new(Code::CurrencyMismatch, "the budget is in another currency").at(&["amount"]));
        }
        if amount.amount == Amount::ZERO {
            return Err(Refusal::new(Code::InvalidDecimal, "nothing is not paid").at(&["amount", "value"]));
        }
        if amount.amount > account.left() {
            let detail = format!(
                "{} {} would exceed the budget of {}: {} is left",
                amount.amount,
                amount.currency,
                account.budget,
                account.left()
            );
            return Err(Refusal::new(Code::BudgetExceeded, detail).at(&["amount", "value"]));
        }
        Ok(())
    }

    fn expect(&self, key: Digest, attempt: u32, state: State) -> Result<(), Refusal> {
        match self.payments.get(&key) {
            Some(payment) if payment.attempt == attempt && payment.state == state => Ok(()),
            Some(payment) if payment.attempt == attempt => {
                Err(out_of_order(&format!("the payment is {:?}, not {state:?}", payment.state).to_lowercase()))
            }
            Some(_) => Err(out_of_order("the payment is at another attempt")),
            None => Err(out_of_order("there is no such payment")),
        }
    }

    /// Takes a step.
    pub fn apply(&mut self, step: &Step<'_>) -> Result<(), Refusal> {
        self.check(step)?;
        match *step {
            Step::Open { intent_id, budget } => {
                let account = Account { budget: budget.clone(), reserved: Amount::ZERO, settled: Amount::ZERO };
                self.accounts.insert(intent_id.to_owned(), account);
            }
            Step::Reserve { intent_id, key, amount } => {
                let attempt = self.payments.get(&key).map_or(0, |payment| payment.attempt) + 1;
                let amount = amount.amount;
                let (intent_id, state) = (intent_id.to_owned(), State::Reserved);
                let payment = Paid { intent_id, amount, attempt, state, session_id: None };
                if let Some(account) = self.accounts.get_mut(&payment.intent_id) {
                    // `left` has room for it, so the sum cannot overflow.
                    account.reserved = sum(account.reserved, amount).unwrap_or(account.reserved);
                }
                self.payments.insert(key, payment);
            }
            Step::Grant { key, session_id, .. } => {
                self.sessions.insert(session_id.to_owned());
                if let Some(payment) = self.payments.get_mut(&key) {
                    payment.session_id = Some(session_id.to_owned());
                }
                self.advance(key, State::Granted);
            }
            Step::Settle { key, .. } => {
                self.free(key);
                if let Some(payment) = self.payments.get(&key)
                    && let Some(account) = self.accounts.get_mut(&payment.intent_id)
                {
                    account.settled = sum(account.settled, payment.amount).unwrap_or(account.settled);
                }
                self.advance(key, State::Settled);
            }
            Step::Fail { key, .. } => {
                self.free(key);
                self.advance(key, State::Failed);
            }
            Step::Release { key, .. } | Step::Lapse { key, .. } => {
                self.free(key);
                self.advance(key, State::Released);
            }
            Step::Receipt { key, .. } => self.advance(key, State::Receipted),
        }
        Ok(())
    }

    fn free(&mut self, key: Digest) {
        if let Some(payment) = self.payments.get(&key)
            && let Some(account) = self.accounts.get_mut(&payment.intent_id)
        {
            account.reserved = less(account.reserved, payment.amount);
        }
    }

    fn advance(&mut self, key: Digest, state: State) {
        if let Some(payment) = self.payments.get_mut(&key) {
            payment.state = state;
        }
    }
}

fn out_of_order(detail: &str) -> Refusal {
    Refusal::new(Code::StepOutOfOrder, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::money;

    fn euros(amount: &str) -> Money {
        money(Amount::parse(amount).unwrap(), "EUR")
    }

    fn open() -> Accounts {
        let mut accounts = Accounts::default();
        accounts.apply(&Step::Open { intent_id: "i", budget: &euros("100") }).unwrap();
        accounts
    }

    fn key(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    fn reserve(accounts: &mut Accounts, name: &str, amount: &str) -> Result<(), &'static str> {
        let step = Step::Reserve { intent_id: "i", key: key(name), amount: &euros(amount) };
        accounts.apply(&step).map_err(|refusal| refusal.code.name())
    }

    fn code(outcome: Result<(), Refusal>) -> Option<&'static str> {
        outcome.err().map(|refusal| refusal.code.name())
    }

    #[test]
    fn the_sum_of_sessions_stays_within_the_budget_to_the_last_cent() {
        let mut accounts = open();
        assert_eq!(reserve(&mut accounts, "a", "60"), Ok(()));
        assert_eq!(reserve(&mut accounts, "b", "40.00000001"), Err("budget_exceeded"));
        assert_eq!(reserve(&mut accounts, "b", "40"), Ok(()));
        assert_eq!(reserve(&mut accounts, "c", "0.00000001"), Err("budget_exceeded"));
        assert_eq!(reserve(&mut accounts, "c", "0"), Err("invalid_decimal"));
        assert_eq!(code(accounts.apply(&Step::Release { key: key("a"), attempt: 1 })), None);
        assert_eq!(reserve(&mut accounts, "c", "60"), Ok(()));
    }

    #[test]
    fn nothing_is_paid_twice_and_an_older_attempt_changes_nothing() {
        let mut accounts = open();
        let a = key("a");
        reserve(&mut accounts, "a", "60").unwrap();
        assert_eq!(reserve(&mut accounts, "a", "60"), Err("payment_under_way"));
        assert_eq!(code(accounts.apply(&Step::Settle { key: a, attempt: 1 })), Some("step_out_of_order"));
        accounts.apply(&Step::Grant { key: a, attempt: 1, session_id: "s1" }).unwrap();
        assert_eq!(code(accounts.apply(&Step::Release { key: a, attempt: 1 })), Some("step_out_of_order"));
        accounts.apply(&Step::Lapse { key: a, attempt: 1 }).unwrap();
        reserve(&mut accounts, "a", "70").unwrap();
        assert_eq!(code(accounts.apply(&Step::Release { key: a, attempt: 1 })), Some("step_out_of_order"));
        let again = Step::Grant { key: a, attempt: 2, session_id: "s1" };
        assert_eq!(code(accounts.apply(&again)), Some("payment_conflict"));
        accounts.apply(&Step::Grant { key: a, attempt: 2, session_id: "s2" }).unwrap();
        accounts.apply(&Step::Settle { key: a, attempt: 2 }).unwrap();
        assert_eq!(code(accounts.apply(&Step::Settle { key: a, attempt: 2 })), Some("step_out_of_order"));
        assert_eq!(reserve(&mut accounts, "a", "1"), Err("already_paid"));
        accounts.apply(&Step::Receipt { key: a, attempt: 2 }).unwrap();
        assert_eq!(reserve(&mut accounts, "a", "1"), Err("already_paid"));
        let account = accounts.account("i").unwrap();
        assert_eq!((account.reserved, account.settled), (Amount::ZERO, euros("70").amount));
    }

    #[test]
    fn a_failed_session_frees_its_money_and_stays_failed() {
        let mut accounts = open();
        reserve(&mut accounts, "a", "100").unwrap();
        accounts.apply(&Step::Grant { key: key("a"), attempt: 1, session_id: "s" }).unwrap();
        accounts.apply(&Step::Fail { key: key("a"), attempt: 1 }).unwrap();
        assert_eq!(reserve(&mut accounts, "a", "1"), Err("session_closed"));
        assert_eq!(reserve(&mut accounts, "b", "100"), Ok(()));
    }
}
