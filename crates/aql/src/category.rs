//! RFC 0020 §3.6: the six categories, and where a candidate of each states its cost.

use crate::budget::{Amount, Money, amount_in, money_of};
use json::Node;

/// What an intent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// Offers.
    Commercial,
    /// Knowledge nodes.
    Knowledge,
    /// The invocation of an action.
    Action,
    /// Somebody to hand a sub task to.
    Delegation,
    /// Manifest summaries.
    Discovery,
    /// A feed of changes.
    Subscription,
}

impl Category {
    /// All six with their names on the wire.
    pub const ALL: [(&'static str, Self); 6] = [
        ("commercial", Self::Commercial),
        ("knowledge", Self::Knowledge),
        ("action", Self::Action),
        ("delegation", Self::Delegation),
        ("discovery", Self::Discovery),
        ("subscription", Self::Subscription),
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, category)| *category == self).map_or("", |(name, _)| name)
    }

    /// The cost that a record declares in a currency; `None` when it declares none (`docs/decisions`).
    pub fn cost(self, record: Node<'_>, currency: &str) -> Option<Amount> {
        match self {
            Self::Commercial | Self::Knowledge => match record.get("price") {
                Some(price) => amount_in(price, currency),
                None => listed(record, currency),
            },
            Self::Action | Self::Delegation => match record.get("cost") {
                Some(cost) if is_free(cost) => Some(Amount::ZERO),
                Some(cost) => amount_in(cost, currency),
                None => listed(record, currency),
            },
            Self::Discovery | Self::Subscription => listed(record, currency),
        }
    }
}

impl Category {
    /// Everything that a record declares as its cost, in whichever currency; [`Category::cost`] is a look into it.
    pub fn costs(self, record: Node<'_>) -> Costs {
        match self {
            Self::Commercial | Self::Knowledge => match record.get("price") {
                Some(price) => Costs { free: false, listed: money_of(price).into_iter().collect() },
                None => Costs::listed(record),
            },
            Self::Action | Self::Delegation => match record.get("cost") {
                Some(cost) if is_free(cost) => Costs { free: true, listed: Vec::new() },
                Some(cost) => Costs { free: false, listed: money_of(cost).into_iter().collect() },
                None => Costs::listed(record),
            },
            Self::Discovery | Self::Subscription => Costs::listed(record),
        }
    }
}

/// What a record costs, before anybody asked in which currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Nothing, in every currency.
    pub free: bool,
    /// Prices; several may be in one currency.
    pub listed: Vec<Money>,
}

impl Costs {
    /// The lowest cost in a currency.
    pub fn in_currency(&self, currency: &str) -> Option<Amount> {
        let listed = self.listed.iter().filter(|money| money.currency == currency).map(|money| money.amount).min();
        if self.free { Some(Amount::ZERO) } else { listed }
    }

    fn listed(record: Node<'_>) -> Self {
        let mut costs = Self::default();
        let models = record.get("pricing").and_then(|pricing| pricing.get("models"));
        for model in models.into_iter().flat_map(Node::elements) {
            match model.get("type").and_then(Node::as_str) {
                Some("free") => costs.free = true,
                Some("per_call") => costs.listed.extend(money_of(model)),
                _ => {}
            }
        }
        costs
    }
}

/// The lowest of the prices per call that a manifest lists in a currency.
fn listed(record: Node<'_>, currency: &str) -> Option<Amount> {
    let price = |model: Node<'_>| match model.get("type")?.as_str()? {
        "free" => Some(Amount::ZERO),
        "per_call" => amount_in(model, currency),
        _ => None,
    };
    record.get("pricing")?.get("models")?.elements().filter_map(price).min()
}

fn is_free(cost: Node<'_>) -> bool {
    cost.get("type").and_then(Node::as_str) == Some("free")
}
