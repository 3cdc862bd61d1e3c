//! RFC 0020 §3.6: the standing filters, and which of them a document satisfies.
//!
//! INVARIANT: what is found is what evaluating every filter would find.

use aql::{Constraints, Evaluator, Fuel};
use json::Node;
use std::collections::BTreeMap;

/// The standing filters.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    filters: BTreeMap<u64, Constraints>,
}

/// Whom a document concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Filters that the document satisfies, in rising order.
    pub satisfied: Vec<u64>,
    /// Filters that ran out of fuel or steps before they were decided, in rising order.
    pub undecided: Vec<u64>,
}

impl Audience {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a standing filter, or puts it in the place of the one that has the same id.
    pub fn insert(&mut self, id: u64, constraints: &Constraints) {
        self.filters.insert(id, constraints.clone());
    }

    /// Takes a filter away; says whether there was one.
    pub fn remove(&mut self, id: u64) -> bool {
        self.filters.remove(&id).is_some()
    }

    /// How many filters there are.
    pub fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// The filters that a document satisfies; each of them may spend `fuel` on it.
    pub fn of(&self, document: Node<'_>, fuel: Fuel) -> Found {
        let mut found = Found::default();
        for (id, constraints) in &self.filters {
            match Evaluator::new(fuel).evaluate(constraints, document) {
                Ok(true) => found.satisfied.push(*id),
                Ok(false) => {}
                Err(_) => found.undecided.push(*id),
            }
        }
        found
    }
}
