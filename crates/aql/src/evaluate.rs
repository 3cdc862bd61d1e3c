//! RFC 0020 A.1: what a constraint means for a document.
//!
//! A leaf holds when some value that its path reaches passes; nothing reached is false. Every leaf is visited, so
//! that decision records are the same everywhere (Theorem 3), and every step is counted (Theorem 4).

use crate::constraint::{Constraints, Leaf, Tree};
use crate::limits::Fuel;
use crate::pattern::Pattern;
use json::Node;
use std::ops::ControlFlow;

/// Why an evaluation has no answer. It never becomes "false": under `not` that would be a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// A pattern needs more steps than it may spend.
    #[error("a pattern ran out of steps; simplify it, or avoid backreferences and lookaround")]
    RegexBudgetExceeded,
    /// The intent looks at more than it may.
    #[error("the intent costs more than it may; name fewer or narrower paths")]
    QueryBudgetExceeded,
}

impl EvaluationError {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::RegexBudgetExceeded => "regex_budget_exceeded",
            Self::QueryBudgetExceeded => "query_budget_exceeded",
        }
    }
}

/// Counts what an evaluation costs; one for each intent, so that all candidates draw on the same fuel.
#[derive(Clone, Debug)]
pub struct Meter {
    fuel: Fuel,
    /// Values visited, and blocks of 64 bytes searched.
    pub visits: u64,
    /// Steps of the backtracking engine.
    pub steps: u64,
}

impl Meter {
    /// A meter that has counted nothing yet.
    pub fn new(fuel: Fuel) -> Self {
        Self { fuel, visits: 0, steps: 0 }
    }

    pub(crate) fn bytes(&mut self, bytes: usize) {
        self.visits += bytes as u64 / 64;
    }

    pub(crate) fn is_match(&mut self, pattern: &Pattern, subject: &str) -> Result<bool, EvaluationError> {
        self.bytes(subject.len());
        let allowed = self.fuel.match_steps.min(self.fuel.intent_steps.saturating_sub(self.steps));
        let mut left = allowed;
        let found = pattern.is_match(subject, &mut left);
        self.steps += allowed - left;
        found.map_err(|_| EvaluationError::RegexBudgetExceeded)
    }
}

/// What an evaluation remembers between documents, so that none of them allocates.
#[derive(Clone, Debug)]
pub struct Evaluator {
    /// The truth of each leaf for the last document, in reading order.
    pub leaves: Vec<bool>,
    /// What it has cost so far.
    pub meter: Meter,
}

impl Evaluator {
    /// An evaluator that may spend `fuel`.
    pub fn new(fuel: Fuel) -> Self {
        Self { leaves: Vec::new(), meter: Meter::new(fuel) }
    }

    /// Whether the constraints hold for a document; leaves the truth of each leaf behind.
    pub fn evaluate(&mut self, constraints: &Constraints, document: Node<'_>) -> Result<bool, EvaluationError> {
        self.leaves.clear();
        for leaf in &constraints.leaves {
            let holds = leaf.holds(document, &mut self.meter)?;
            self.leaves.push(holds);
        }
        if self.meter.visits > self.meter.fuel.visits {
            return Err(EvaluationError::QueryBudgetExceeded);
        }
        Ok(holds(&constraints.tree, &self.leaves))
    }
}

pub(crate) fn holds(tree: &Tree, leaves: &[bool]) -> bool {
    match tree {
        Tree::AllOf(parts) => parts.iter().all(|part| holds(part, leaves)),
        Tree::AnyOf(parts) => parts.iter().any(|part| holds(part, leaves)),
        Tree::Not(inner) => !holds(inner, leaves),
        Tree::Leaf(number) => leaves.get(*number).copied().unwrap_or(false),
    }
}

impl Leaf {
    fn holds(&self, document: Node<'_>, meter: &mut Meter) -> Result<bool, EvaluationError> {
        if self.path.is_plain() {
            meter.visits += self.path.segments().len() as u64 + 1;
            return self.path.single(document).map_or(Ok(false), |node| self.predicate.passes(node, meter));
        }
        self.reach(document, meter, |node, meter| self.predicate.passes(node, meter))
    }

    /// The value that the decision record may show: the first that passes, else the first that is reached.
    pub(crate) fn witness<'a>(
        &self,
        document: Node<'a>,
        meter: &mut Meter,
    ) -> Result<Option<Node<'a>>, EvaluationError> {
        let (mut first, mut passing) = (None, None);
        self.reach(document, meter, |node, meter| {
            first = first.or(Some(node));
            let passes = self.predicate.passes(node, meter)?;
            if passes {
                passing = Some(node);
            }
            Ok(passes)
        })?;
        Ok(passing.or(first))
    }

    /// Asks about each reached value until one answers yes.
    fn reach<'a>(
        &self,
        document: Node<'a>,
        meter: &mut Meter,
        mut ask: impl FnMut(Node<'a>, &mut Meter) -> Result<bool, EvaluationError>,
    ) -> Result<bool, EvaluationError> {
        let mut visits = 0;
        let flow = self.path.reach(document, &mut visits, |node| match ask(node, meter) {
            Ok(false) => ControlFlow::Continue(()),
            decided => ControlFlow::Break(decided),
        });
        meter.visits += visits;
        match flow {
            ControlFlow::Continue(()) => Ok(false),
            ControlFlow::Break(decided) => decided,
        }
    }
}
