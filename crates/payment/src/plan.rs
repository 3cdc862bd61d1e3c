//! RFC 0020 §3.4 and B.3: from an answered commercial intent to the sessions that its allocation asks for.
//!
//! Each candidate that fits gets the share of `aql::Budget::shares`, cut to the eight decimals that a settlement
//! carries; what is cut stays unspent. A share of nothing needs no session.
//!
//! INVARIANT: the amounts of a plan never sum to more than the budget.

use crate::money::{less, money, payable};
use crate::refusal::{Code, Refusal};
use aql::{Amount, Category, Intent, Money};
use json::Node;
use trust::Did;

/// What a candidate is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Terms {
    /// Its share of the budget, as the allocation says.
    #[default]
    Share,
    /// Its price where the answer shows one within its share; otherwise nothing.
    Price,
}

/// The sessions that are to be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In rank order.
    pub sessions: Vec<Planned>,
    /// Candidates that get no session, and why.
    pub left_out: Vec<LeftOut>,
}

/// One session that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The candidate, which is what the session is for.
    pub offer_ref: String,
    /// Who is paid.
    pub counterparty: Did,
    /// How much.
    pub amount: Money,
}

/// A candidate without a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which.
    pub offer_ref: String,
    /// Why.
    pub why: Why,
}

/// Why a candidate is not paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It costs more than the budget.
    OverBudget,
    /// The allocation leaves nothing for it.
    NoShare,
    /// Its price is not shown, or in another currency.
    NoPrice,
    /// Its price is higher than its share.
    PriceAboveShare,
}

impl Why {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::OverBudget => "over_budget",
            Self::NoShare => "no_share",
            Self::NoPrice => "no_price",
            Self::PriceAboveShare => "price_above_share",
        }
    }
}

impl Plan {
    /// What all of its sessions cost.
    pub fn total(&self) -> Amount {
        let units = self.sessions.iter().map(|planned| planned.amount.amount.units());
        Amount::from_units(units.fold(0, u128::saturating_add))
    }
}

/// Plans the payments for an answer, whose pages come in their order.
pub fn plan(intent: &Intent, pages: &[Node<'_>], terms: Terms) -> Result<Plan, Refusal> {
    if intent.category != Category::Commercial {
        return Err(Refusal::new(Code::NothingToPay, "only a commercial intent is paid for").at(&["category"]));
    }
    let budget = intent.budget.as_ref().ok_or_else(|| {
        Refusal::new(Code::NothingToPay, "the intent has no budget; nothing is paid without one").at(&["budget"])
    })?;
    let mut plan = Plan::default();
    let mut fitting: Vec<(Node<'_>, String)> = Vec::new();
    for page in pages {
        check_page(intent, *page)?;
        for candidate in page.get("candidates").into_iter().flat_map(Node::elements) {
            let offer_ref = candidate.get("candidate_id").and_then(Node::as_str).unwrap_or_default().to_owned();
            if fitting.iter().any(|(_, other)| *other == offer_ref) {
                continue;
            }
            if candidate.get("over_budget").and_then(Node::as_bool) == Some(true) {
                plan.left_out.push(LeftOut { offer_ref, why: Why::OverBudget });
            } else {
                fitting.push((candidate, offer_ref));
            }
        }
    }
    fitting.truncate(intent.room());
    let qualities: Vec<f64> = fitting.iter().map(|(candidate, _)| quality(*candidate)).collect();
    let shares = budget.shares(&qualities, intent.quality_floor.performance_score.unwrap_or(0.0));
    let shares = shares.into_iter().map(payable).chain(std::iter::repeat(Amount::ZERO));
    let mut left = budget.ceiling.amount;
    for ((candidate, offer_ref), share) in fitting.into_iter().zip(shares) {
        match due(candidate, share, &budget.ceiling.currency, terms) {
            Ok(amount) if amount <= left => {
                left = less(left, amount);
                let counterparty = counterparty(candidate, &offer_ref)?;
                let amount = money(amount, &budget.ceiling.currency);
                plan.sessions.push(Planned { offer_ref, counterparty, amount });
            }
            Ok(_) => plan.left_out.push(LeftOut { offer_ref, why: Why::NoShare }),
            Err(why) => plan.left_out.push(LeftOut { offer_ref, why }),
        }
    }
    Ok(plan)
}

fn check_page(intent: &Intent, page: Node<'_>) -> Result<(), Refusal> {
    match page.get("intent_id").and_then(Node::as_str) {
        Some(id) if id == intent.intent_id => Ok(()),
        _ => Err(Refusal::new(Code::LinkBroken, "the answer is to another intent").at(&["intent_id"])),
    }
}

/// How much a candidate is due of its share.
fn due(candidate: Node<'_>, share: Amount, currency: &str, terms: Terms) -> Result<Amount, Why> {
    if share == Amount::ZERO {
        return Err(Why::NoShare);
    }
    match (terms, price(candidate, currency)) {
        (Terms::Share, _) => Ok(share),
        (Terms::Price, None) => Err(Why::NoPrice),
        (Terms::Price, Some(Amount::ZERO)) => Err(Why::NoShare),
        (Terms::Price, Some(price)) if price > share => Err(Why::PriceAboveShare),
        (Terms::Price, Some(price)) => Ok(price),
    }
}

/// The price of an offer, as far as the projection shows it; it must be one that a settlement can carry.
fn price(candidate: Node<'_>, currency: &str) -> Option<Amount> {
    let price = candidate.get("payload")?.get("price")?;
    let same = price.get("currency")?.as_str()? == currency;
    let amount = Amount::parse(price.get("amount")?.as_str()?)?;
    (same && payable(amount) == amount).then_some(amount)
}

/// The score that a proportional allocation counts with, as the answer's decision record states it.
fn quality(candidate: Node<'_>) -> f64 {
    let function = candidate.get("decision_record").and_then(|record| record.get("ranking_function"));
    let mut inputs = function.and_then(|function| function.get("inputs")).into_iter().flat_map(Node::elements);
    let score = inputs.find(|input| input.get("name").and_then(Node::as_str) == Some("performance_score"));
    score.and_then(|input| input.get("value")).and_then(Node::as_f64).unwrap_or(0.0)
}

/// Who gets the money: the offer's provider, or the tool itself.
fn counterparty(candidate: Node<'_>, offer_ref: &str) -> Result<Did, Refusal> {
    let payload = candidate.get("payload");
    let member = |name: &str| payload.and_then(|payload| payload.get(name)).and_then(Node::as_str);
    let tool = payload.and_then(|payload| payload.get("tool")?.get("did")).and_then(Node::as_str);
    let named = member("provider_did").or(tool).or(member("did")).unwrap_or(offer_ref);
    Did::parse(named).map_err(|_| {
        let detail = "the answer does not say who is paid; ask with `/provider_did` in the projection";
        Refusal::new(Code::CounterpartyUnknown, detail).at(&["projection", "include"])
    })
}
