//! RFC 0020 B.1 and B.3: what a wallet operator grants: mandate and intent intersected, and nothing of the intent's
//! budget, which is the agent's to keep.
//!
//! INVARIANT: an intent only ever narrows its mandate; a limit that cannot be compared is a limit that is not met.

mod book;
mod holdings;

pub use book::{Book, Executing, Granting, MANDATES_MAX, SESSIONS_OPEN_MAX};
pub use holdings::{Counterparty, Holdings, Instrument};

use crate::mandate::Mandate;
use crate::money::sum;
use crate::refusal::{Code, Refusal};
use crate::session::{PARAMETRIC_SECONDS, Request, STANDARD_SECONDS, SessionStatus};
use aql::{Amount, Money};
use json::Instant;

/// What a mandate has spent or promised so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// On this day.
    pub day: Amount,
    /// In this month.
    pub month: Amount,
}

/// What a wallet grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// By which instrument.
    pub instrument: &'a Instrument,
    /// Whether the principal is asked first.
    pub status: SessionStatus,
    /// Whether it is a parametric session of long validity.
    pub parametric: bool,
    /// Whether the counterparty's account was found bound to its DID.
    pub bank_account_verified: bool,
    /// Until when it may be used.
    pub expires_at: Instant,
}

/// Grants a session, or says which limit stands against it.
pub fn decide<'a>(
    request: &Request,
    mandate: &Mandate,
    holdings: &'a Holdings,
    spent: Spent,
    now: Instant,
) -> Result<Grant<'a>, Refusal> {
    mandate.check_window(now)?;
    if request.agent != mandate.agent {
        let detail = "the mandate permits another agent";
        return Err(Refusal::new(Code::LinkBroken, detail).at(&["agent_did"]));
    }
    check_amount(request, mandate, spent)?;
    check_counterparty(request, mandate, holdings)?;
    check_primitive(request, mandate)?;
    let instrument = instrument(request, mandate, holdings)?;
    let bank_account_verified = bank_account(request, holdings)?;
    let asked = mandate.require_confirmation_above.as_ref();
    let asked = asked.map(|threshold| exceeds(&request.amount, threshold, &["amount", "currency"])).transpose()?;
    let parametric = request.constraints.auction_parametric_session;
    let seconds = if parametric { PARAMETRIC_SECONDS } else { STANDARD_SECONDS };
    Ok(Grant {
        instrument,
        status: match asked {
            Some(true) => SessionStatus::PendingPrincipalConfirmation,
            Some(false) | None => SessionStatus::Authorized,
        },
        parametric,
        bank_account_verified,
        expires_at: now.plus(seconds).min(mandate.not_after),
    })
}

/// Whether an amount is above a limit; in another currency nobody can tell, and the payment is refused.
fn exceeds(amount: &Money, limit: &Money, at: &[&str]) -> Result<bool, Refusal> {
    if amount.currency != limit.currency {
        let detail = format!("a limit is in {}, and nothing is converted here", limit.currency);
        return Err(Refusal::new(Code::CurrencyMismatch, detail).at(at));
    }
    Ok(amount.amount > limit.amount)
}

fn check_amount(request: &Request, mandate: &Mandate, spent: Spent) -> Result<(), Refusal> {
    let currency = ["amount", "currency"];
    let refuse = |code, limit: &Money, what: &str| {
        Err(Refusal::new(code, format!("{what} allows {limit}")).at(&["amount", "value"]))
    };
    if request.amount.amount == Amount::ZERO {
        return Err(Refusal::new(Code::InvalidDecimal, "nothing is not paid").at(&["amount", "value"]));
    }
    if exceeds(&request.amount, &mandate.max_single_payment, &currency)? {
        return refuse(Code::MandateLimitSingle, &mandate.max_single_payment, "for one payment the mandate");
    }
    if let Some(limit) = &request.constraints.max_single_payment
        && exceeds(&request.amount, limit, &["intent_payment_constraints", "max_single_payment", "currency"])?
    {
        return refuse(Code::IntentLimitSingle, limit, "for one payment the intent");
    }
    let with = |before: Amount| Money {
        amount: sum(before, request.amount.amount).unwrap_or(Amount::from_units(u128::MAX)),
        currency: request.amount.currency.clone(),
    };
    if exceeds(&with(spent.day), &mandate.max_daily_spend, &currency)? {
        return refuse(Code::MandateLimitDaily, &mandate.max_daily_spend, "for one day the mandate");
    }
    if exceeds(&with(spent.month), &mandate.max_monthly_spend, &currency)? {
        return refuse(Code::MandateLimitMonthly, &mandate.max_monthly_spend, "for one month the mandate");
    }
    Ok(())
}

fn check_counterparty(request: &Request, mandate: &Mandate, holdings: &Holdings) -> Result<(), Refusal> {
    let (name, at) = (request.counterparty.as_str(), ["counterparty_did"]);
    let listed = |list: &[String]| list.iter().any(|entry| entry == name);
    let allowed = mandate.allowed_counterparties.as_deref().is_none_or(listed);
    if !allowed || listed(&mandate.blocked_counterparties) {
        return Err(Refusal::new(Code::CounterpartyBlocked, "the mandate does not permit this counterparty").at(&at));
    }
    let known = holdings.counterparties.get(name);
    if let Some(permitted) = &mandate.allowed_jurisdictions {
        let country = known.and_then(|known| known.jurisdiction.as_ref());
        if !country.is_some_and(|country| permitted.contains(country)) {
            let detail = "the mandate names jurisdictions, and the counterparty is not known to be in one of them";
            return Err(Refusal::new(Code::JurisdictionBlocked, detail).at(&at));
        }
    }
    let categories = known.map(|known| known.categories.as_slice()).unwrap_or_default();
    if categories.iter().any(|category| mandate.blocked_categories.contains(category)) {
        return Err(Refusal::new(Code::CategoryBlocked, "the mandate excludes this kind of counterparty").at(&at));
    }
    Ok(())
}

fn check_primitive(request: &Request, mandate: &Mandate) -> Result<(), Refusal> {
    let listed =
        |list: &Option<Vec<String>>| list.as_ref().is_none_or(|list| list.contains(&request.commerce_primitive));
    let by = match (listed(&mandate.allowed_primitives), listed(&request.constraints.allowed_commerce_primitives)) {
        (true, true) => return Ok(()),
        (false, _) => "mandate",
        (true, false) => "intent",
    };
    let detail = format!("the {by} does not permit this commerce primitive");
    Err(Refusal::new(Code::PrimitiveNotPermitted, detail).at(&["commerce_primitive"]))
}

/// The instrument that was asked for, or the best that both permit: the preferred one, then in the wallet's order.
fn instrument<'a>(request: &Request, mandate: &Mandate, holdings: &'a Holdings) -> Result<&'a Instrument, Refusal> {
    let own: Vec<String> = holdings.instruments.iter().map(|instrument| instrument.id.clone()).collect();
    let by_mandate = mandate.allowed_instruments.as_ref().unwrap_or(&own);
    let permits = |id: &str| request.constraints.permits_instrument(id, by_mandate);
    if let Some(wanted) = &request.instrument_id {
        let at = ["instrument_id"];
        if mandate.allowed_instruments.is_some() && !by_mandate.contains(wanted) {
            let detail = "the mandate does not permit this instrument";
            return Err(Refusal::new(Code::InstrumentNotPermitted, detail).at(&at));
        }
        let found = holdings.instruments.iter().find(|instrument| instrument.id == *wanted);
        // What the intent excludes is excluded, whether or not the wallet has it.
        let by_intent = request.constraints.permits_instrument(wanted, std::slice::from_ref(wanted));
        return match found {
            _ if !by_intent => {
                let detail = "the intent's constraints exclude this instrument";
                Err(Refusal::new(Code::InstrumentNotPermitted, detail).at(&at))
            }
            None => Err(Refusal::new(Code::InstrumentUnavailable, "the wallet has no such instrument").at(&at)),
            Some(found) if found.currency != request.amount.currency => {
                let detail = format!("the instrument settles in {}, and nothing is converted here", found.currency);
                Err(Refusal::new(Code::InstrumentUnavailable, detail).at(&at))
            }
            Some(found) => Ok(found),
        };
    }
    let mut permitted = holdings.instruments.iter().filter(|instrument| permits(&instrument.id)).peekable();
    if permitted.peek().is_none() {
        let detail = "there is no instrument that the mandate and the intent both permit";
        return Err(Refusal::new(Code::InstrumentNotPermitted, detail).at(&["intent_payment_constraints"]));
    }
    let fitting: Vec<&Instrument> = permitted.filter(|one| one.currency == request.amount.currency).collect();
    let preferred = request.constraints.preferred_instrument.as_ref();
    let first = fitting.iter().find(|one| Some(&one.id) == preferred).or_else(|| fitting.first());
    first.copied().ok_or_else(|| {
        let detail = format!("no permitted instrument settles in {}", request.amount.currency);
        Refusal::new(Code::InstrumentUnavailable, detail).at(&["amount", "currency"])
    })
}

/// Whether the counterparty's account is bound to its DID, where somebody wants to know.
fn bank_account(request: &Request, holdings: &Holdings) -> Result<bool, Refusal> {
    if !request.constraints.require_bank_account_vc && !holdings.require_bank_account_vc {
        return Ok(false);
    }
    let known = holdings.counterparties.get(request.counterparty.as_str());
    match known.is_some_and(|known| known.bank_account_bound) {
        true => Ok(true),
        false => {
            let detail = "no bank account is proved to belong to this counterparty";
            Err(Refusal::new(Code::BankAccountUnbound, detail).at(&["counterparty_did"]))
        }
    }
}
