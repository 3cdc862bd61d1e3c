//! RFC 0020 A.1: what a constraint means for a document.
//!
//! A leaf holds when some value that its path reaches passes; nothing reached is false. Every leaf is visited, so
//! that decision records are the same everywhere (Theorem 3), and every step is counted (Theorem 4).

use crate::constraint::{Constraints, Leaf, Step, Tree};
use crate::limits::Fuel;
use crate::path;
use crate::pattern::Pattern;
use json::{Near, Node};
use std::ops::ControlFlow;
use std::sync::Arc;

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

    /// Whether what was counted so far may be spent.
    pub(crate) fn within_fuel(&self) -> Result<(), EvaluationError> {
        if self.visits > self.fuel.visits { Err(EvaluationError::QueryBudgetExceeded) } else { Ok(()) }
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
    /// Where each shared step arrived, step by step and within a step document by document.
    places: Vec<u32>,
    /// Where the step being taken arrived.
    arrived: Vec<u32>,
    /// Where the names of each step, and of each leaf's segments after its step, stood in the last object.
    near_steps: Vec<Near>,
    near_leaves: Vec<Vec<Near>>,
    /// The steps that these memories belong to.
    steps: Option<Arc<[Step]>>,
    /// The truth of each leaf, document by document and within a document leaf by leaf.
    truths: Vec<bool>,
}

/// A step that arrived nowhere.
const NOWHERE: u32 = u32::MAX;

/// Documents that are asked together. Each step is taken in all of them before the next one, so that the processor
/// waits for their memory at the same time instead of one after the other.
const BATCH: usize = 32;

impl Evaluator {
    /// An evaluator that may spend `fuel`.
    pub fn new(fuel: Fuel) -> Self {
        Self {
            leaves: Vec::new(),
            meter: Meter::new(fuel),
            places: Vec::new(),
            arrived: Vec::new(),
            near_steps: Vec::new(),
            near_leaves: Vec::new(),
            steps: None,
            truths: Vec::new(),
        }
    }

    /// Whether the constraints hold for a document; leaves the truth of each leaf behind.
    pub fn evaluate(&mut self, constraints: &Constraints, document: Node<'_>) -> Result<bool, EvaluationError> {
        self.ask(constraints, &[document])?;
        self.leaves.clone_from(&self.truths);
        Ok(holds(&constraints.tree, &self.truths))
    }

    /// Asks many documents; tells for each of them, in order, whether the constraints hold and the truth of each leaf.
    pub fn evaluate_all<'a>(
        &mut self,
        constraints: &Constraints,
        documents: impl IntoIterator<Item = Node<'a>>,
        mut tell: impl FnMut(bool, &[bool]),
    ) -> Result<(), EvaluationError> {
        let mut documents = documents.into_iter();
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            batch.clear();
            batch.extend(documents.by_ref().take(BATCH));
            if batch.is_empty() {
                return Ok(());
            }
            self.ask(constraints, &batch)?;
            for leaves in self.truths.chunks(constraints.leaves.len().max(1)) {
                tell(holds(&constraints.tree, leaves), leaves);
            }
        }
    }

    /// Finds the truth of every leaf in every document of a batch.
    fn ask(&mut self, constraints: &Constraints, documents: &[Node<'_>]) -> Result<(), EvaluationError> {
        self.remember(constraints);
        if documents.len() > 1 {
            std::hint::black_box(documents.iter().map(|document| document.glance()).sum::<usize>());
        }
        self.walk(constraints, documents);
        let count = constraints.leaves.len().max(1);
        self.truths.clear();
        self.truths.resize(count * documents.len(), false);
        for ((column, leaf), near) in constraints.leaves.iter().enumerate().zip(&mut self.near_leaves) {
            let plain = leaf.path.is_plain();
            let places = row(&self.places, leaf.start, documents.len());
            let rows = self.truths.chunks_exact_mut(count);
            for ((document, place), truths) in documents.iter().zip(places).zip(rows) {
                let holds = match at(*document, place) {
                    None => false,
                    Some(node) if plain => leaf.predicate.passes(node, &mut self.meter)?,
                    Some(node) => leaf.holds_below(node, near, &mut self.meter)?,
                };
                if let Some(truth) = truths.get_mut(column) {
                    *truth = holds;
                }
            }
            self.meter.visits += documents.len() as u64;
            self.meter.within_fuel()?;
        }
        Ok(())
    }

    /// Forgets what belongs to other constraints.
    fn remember(&mut self, constraints: &Constraints) {
        if self.steps.as_ref().is_some_and(|steps| Arc::ptr_eq(steps, &constraints.steps)) {
            return;
        }
        let rest = |leaf: &Leaf| vec![Near::default(); leaf.path.segments().len() - leaf.done];
        self.near_steps = vec![Near::default(); constraints.steps.len()];
        self.near_leaves = constraints.leaves.iter().map(rest).collect();
        self.steps = Some(constraints.steps.clone());
    }

    /// Takes every shared step once in every document.
    fn walk(&mut self, constraints: &Constraints, documents: &[Node<'_>]) {
        self.places.clear();
        for (step, near) in constraints.steps.iter().zip(&mut self.near_steps) {
            self.arrived.clear();
            let places = row(&self.places, step.from, documents.len());
            for (document, place) in documents.iter().zip(places) {
                let place = at(*document, place).and_then(|node| path::step(node, &step.key, step.index, Some(near)));
                self.arrived.push(place.map_or(NOWHERE, |node| node.position() as u32));
            }
            self.places.append(&mut self.arrived);
        }
        self.meter.visits += (constraints.steps.len() * documents.len()) as u64;
    }
}

/// The record itself, as a place.
const HERE: u32 = u32::MAX - 1;

/// Where a step arrived in each document of a batch; without a step, the records themselves.
fn row(places: &[u32], step: Option<usize>, documents: usize) -> impl Iterator<Item = u32> {
    let arrived = step.and_then(|step| places.get(step * documents..(step + 1) * documents));
    let here = if step.is_none() { documents } else { 0 };
    arrived.unwrap_or_default().iter().copied().chain(std::iter::repeat_n(HERE, here))
}

fn at(document: Node<'_>, place: u32) -> Option<Node<'_>> {
    match place {
        NOWHERE => None,
        HERE => Some(document),
        place => Some(document.elsewhere(place as usize)),
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
    /// Whether some value below the leaf's first step passes.
    fn holds_below(&self, node: Node<'_>, near: &mut [Near], meter: &mut Meter) -> Result<bool, EvaluationError> {
        self.reach(self.done, node, near, meter, |node, meter| self.predicate.passes(node, meter))
    }

    /// The value that the decision record may show: the first that passes, else the first that is reached.
    pub(crate) fn witness<'a>(
        &self,
        document: Node<'a>,
        meter: &mut Meter,
    ) -> Result<Option<Node<'a>>, EvaluationError> {
        let (mut first, mut passing) = (None, None);
        self.reach(0, document, &mut [], meter, |node, meter| {
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
        done: usize,
        node: Node<'a>,
        near: &mut [Near],
        meter: &mut Meter,
        mut ask: impl FnMut(Node<'a>, &mut Meter) -> Result<bool, EvaluationError>,
    ) -> Result<bool, EvaluationError> {
        let mut visits = 0;
        let flow = self.path.reach_from(done, node, &mut visits, near, |node| match ask(node, meter) {
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
