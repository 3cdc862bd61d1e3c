//! RFC 0020 A.2: a candidate: a record, its cost, and what is known of its quality.

use crate::budget::{Amount, Money};
use crate::category::Category;
use crate::likeness;
use crate::quality::Signals;
use crate::read::Place;
use crate::refusal::{Code, Refusal};
use json::{Document, Kind, Node};
use std::sync::Arc;

/// Something that may answer an intent; not judged yet.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it is called.
    pub id: String,
    document: Arc<Document>,
    /// Whether the record is the document itself or its member `record`.
    wrapped: bool,
    costs: Option<Vec<Money>>,
    quality: Signals,
    /// Who published it, where that is known beside the record.
    publisher: Option<String>,
}

/// The members of a line that brings a record together with what is known of it.
const WRAPPER: [&str; 4] = ["id", "record", "cost", "quality"];

impl Candidate {
    /// Reads a bare record, or a record with its id, cost and quality beside it; `number` counts lines from 1.
    pub fn read(document: Document, number: usize) -> Result<Self, Refusal> {
        let root = Place::root(document.root());
        let record = root.node.get("record").filter(|record| record.is_object());
        let wrapped = record.is_some() && root.closed(&WRAPPER).is_ok();
        if root.node.kind() != Kind::Object {
            return root.refuse(Code::WrongType, "a record is an object");
        }
        let (mut id, mut costs, mut quality) = (None, None, Signals::default());
        if wrapped {
            id = root.member("id").map(|id| id.string().map(str::to_owned)).transpose()?;
            costs = root.member("cost").map(|cost| read_costs(&cost));
            quality = root.member("quality").map_or_else(|| Ok(Signals::default()), |given| Signals::read(&given))?;
        }
        let record = record.filter(|_| wrapped).unwrap_or(root.node);
        let id = id.or_else(|| own_id(record)).unwrap_or_else(|| format!("line-{number}"));
        let quality = quality.or_declared_latency(record);
        Ok(Self { id, wrapped, costs, quality, document: document.into(), publisher: None })
    }

    /// A record of which everything is known already.
    pub fn new(id: String, document: impl Into<Arc<Document>>, costs: Option<Vec<Money>>, quality: Signals) -> Self {
        let document = document.into();
        let quality = quality.or_declared_latency(document.root());
        Self { id, document, wrapped: false, costs, quality, publisher: None }
    }

    /// A record inside the publication that brought it, as its member `record`.
    pub fn published(id: String, publication: impl Into<Arc<Document>>, quality: Signals) -> Self {
        let publication = publication.into();
        let publisher = publication.root().get("publisher_did").and_then(Node::as_str).map(str::to_owned);
        let mut candidate = Self { id, document: publication, wrapped: true, costs: None, quality, publisher };
        candidate.quality = candidate.quality.clone().or_declared_latency(candidate.record());
        candidate
    }

    /// The record as a document of its own root, with its enclosing document where it has one.
    pub fn record(&self) -> Node<'_> {
        let root = self.document.root();
        if self.wrapped { root.get("record").unwrap_or(root) } else { root }
    }

    /// The cost in a currency: as given beside the record, else as the record declares it for the category.
    pub fn cost(&self, category: Category, currency: &str) -> Option<Amount> {
        match &self.costs {
            Some(costs) => costs.iter().filter(|money| money.currency == currency).map(|money| money.amount).min(),
            None => category.cost(self.record(), currency),
        }
    }

    /// The same, published by somebody.
    #[must_use]
    pub fn published_by(mut self, publisher: &str) -> Self {
        self.publisher = Some(publisher.to_owned());
        self
    }

    /// Whose it is.
    pub fn owner(&self) -> String {
        likeness::owner(self.publisher.as_deref(), self.record(), &self.id)
    }

    /// What is known of its quality.
    pub fn quality(&self) -> &Signals {
        &self.quality
    }
}

/// What cannot be read as a price is no price; the decision record then says that the cost is undefined.
fn read_costs(place: &Place<'_>) -> Vec<Money> {
    let prices = place.elements().unwrap_or_else(|_| vec![place.clone()]);
    let read = |price: &Place<'_>| {
        let amount = Amount::parse(price.node.get("amount")?.as_str()?)?;
        Some(Money { amount, currency: price.node.get("currency")?.as_str()?.to_owned() })
    };
    prices.iter().filter_map(read).collect()
}

/// What a record calls itself.
pub fn own_id(record: Node<'_>) -> Option<String> {
    let tool = record.get("tool");
    let named = [
        tool.and_then(|tool| tool.get("did")),
        record.get("offer_id"),
        record.get("id"),
        tool.and_then(|tool| tool.get("id")),
        record.get("action_id"),
    ];
    named.into_iter().flatten().find_map(Node::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn of_several_prices_in_one_currency_the_lowest_counts() {
        let cost = |cost: json::Value| {
            let line = Document::of(&json!({"record": {}, "cost": cost})).unwrap();
            let cost = Candidate::read(line, 1).unwrap().cost(Category::Discovery, "EUR");
            cost.map(|cost| cost.to_string())
        };
        let price = |amount: &str, currency: &str| json!({"amount": amount, "currency": currency});
        assert_eq!(cost(json!([price("9", "EUR"), price("1", "USD"), price("2.50", "EUR")])).as_deref(), Some("2.5"));
        assert_eq!(cost(json!({"amount": "3", "currency": "EUR", "unit": "page"})).as_deref(), Some("3"));
        for unreadable in [json!([]), json!("3 EUR"), price("3", "USD"), price("-3", "EUR"), price("3.", "EUR")] {
            assert_eq!(cost(unreadable.clone()), None, "{unreadable}");
        }
    }
}
