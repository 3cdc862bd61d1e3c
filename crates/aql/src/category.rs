//! RFC 0020 §3.6: the six categories, and where a candidate of each states its cost.

use crate::budget::{Amount, amount_in};
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
