//! RFC 0020 B.2: what a principal spent in a period, each payment with the question that authorised it.

use crate::confirmation::{Confirmation, Status};
use crate::ledger::Ledger;
use crate::money::sum;
use aql::Amount;
use json::{Instant, Node, Value, json};
use std::collections::BTreeMap;

/// A span of time; the end does not belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// The first moment, where there is one.
    pub from: Option<Instant>,
    /// The first moment after, where there is one.
    pub to: Option<Instant>,
}

impl Period {
    fn holds(&self, at: Instant) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }
}

/// One settled payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// When the money moved.
    pub at: Instant,
    /// Whose it was.
    pub principal: String,
    /// Which question authorised it.
    pub intent_id: String,
    /// Who was paid.
    pub counterparty: String,
    /// What for.
    pub offer_ref: String,
    /// How much.
    pub amount: Amount,
    /// Of what.
    pub currency: String,
    /// The receipt, once there is one.
    pub receipt_id: Option<String>,
}

impl Spending {
    /// The payment for programs.
    pub fn to_value(&self) -> Value {
        json!({
            "at": self.at.to_string(),
            "principal_did": self.principal,
            "intent_id": self.intent_id,
            "counterparty_did": self.counterparty,
            "offer_ref": self.offer_ref,
            "amount": crate::money::written(self.amount),
            "currency": self.currency,
            "receipt_id": self.receipt_id,
        })
    }

    /// What payments sum to, in each currency.
    pub fn totals(all: &[Self]) -> BTreeMap<String, Amount> {
        let mut totals: BTreeMap<String, Amount> = BTreeMap::new();
        for spending in all {
            let total = totals.entry(spending.currency.clone()).or_insert(Amount::ZERO);
            *total = sum(*total, spending.amount).unwrap_or(*total);
        }
        totals
    }
}

/// What was settled in a period, by the time of settlement; of one principal where one is named.
pub fn spending(ledger: &Ledger, principal: Option<&str>, period: Period) -> Vec<Spending> {
    let mut all: Vec<Spending> = Vec::new();
    for (intent_id, story) in ledger.stories() {
        for payment in &story.payments {
            let Some(confirmation) = payment.confirmation.as_ref().and_then(|it| Confirmation::read(it).ok()) else {
                continue;
            };
            let text =
                |node: Node<'_>, name: &str| node.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
            let whose = text(payment.mandate.root(), "principal_did");
            let wanted = principal.is_none_or(|principal| principal == whose) && period.holds(confirmation.at);
            if !wanted || confirmation.status != Status::Settled {
                continue;
            }
            all.push(Spending {
                at: confirmation.at,
                principal: whose,
                intent_id: intent_id.to_owned(),
                counterparty: text(payment.request.root(), "counterparty_did"),
                offer_ref: text(payment.request.root(), "offer_ref"),
                amount: confirmation.amount.amount,
                currency: confirmation.amount.currency,
                receipt_id: payment.receipt.as_ref().map(|receipt| text(receipt.root(), "receipt_id")),
            });
        }
    }
    all.sort_by(|left, right| (left.at, &left.offer_ref).cmp(&(right.at, &right.offer_ref)));
    all
}
