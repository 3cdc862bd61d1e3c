//! RFC 0020 A.3 R3 to R5: the best candidates first, loading no more than are returned.
//!
//! The index says which candidates certainly and which possibly satisfy the constraints, and the facts beside them
//! say how each would rank. So candidates are taken in the order of the answer: they are loaded and judged until the
//! page is full. What ranks below the page is never loaded.
//!
//! INVARIANT: the answer is the one that [`aql::resolve`] gives over all candidates of the collection.

use crate::catalog::parsed;
use crate::collection::{Action, is_publication};
use crate::evidence::Evidence;
use crate::fact::Fact;
use crate::refusal::Error;
use aql::{
    Amount, Candidate, Constraints, Evaluator, Fuel, Instant, Intent, Judgement, Match, OverBudget, Rejection, Signals,
};
use index::{Bounds, Index, Unit};
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use store::Store;

/// Collections up to this size are looked at one by one, so that every candidate's record can say why it failed.
pub(crate) const SMALL: u64 = 64;

/// Refused candidates that are looked at for the answer's list of rejected ones.
const REFUSED_MAX: usize = 64;

/// A candidate in the order of the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    over_budget: bool,
    score: f64,
    /// In units of 10^-18; the greatest number where it has none.
    cost: u128,
    source: u64,
    unit: Unit,
    part: u16,
}

/// Candidates that may be in the answer, the best of them in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: Vec<Entry>,
    /// How many of them are in order already.
    sorted: usize,
    /// How many of them are dealt with.
    taken: usize,
    /// Candidates that satisfy the constraints, as far as is known, and neither cost nor quality; lowest id first.
    refused: Vec<Entry>,
    /// Whether these are all candidates of the category, also those that the index could have left out.
    pub(crate) small: bool,
}

/// A judged candidate.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) candidate: Candidate,
    pub(crate) judgement: Judgement,
}

impl Judged {
    pub(crate) fn to_match(&self, intent: &Intent, rank: usize) -> Match<'_> {
        let ranking = aql::rank(intent, self.candidate.quality(), self.judgement.cost);
        Match { candidate: &self.candidate, judgement: self.judgement.clone(), ranking, rank }
    }

    pub(crate) fn to_rejection(&self) -> Rejection<'_> {
        Rejection { candidate: &self.candidate, judgement: self.judgement.clone() }
    }
}

/// What a question is asked of.
pub(crate) struct Market<'a> {
    pub(crate) index: &'a Index,
    pub(crate) evidence: &'a Evidence,
    pub(crate) label: index::Label,
    /// What the category demands beside the intent's own constraints.
    pub(crate) also: Option<&'a Constraints>,
    pub(crate) now: Instant,
}

impl Market<'_> {
    /// Everything that may be in the answer.
    pub(crate) fn queue(&self, intent: &Intent, over_budget: OverBudget) -> Result<Queue, Error> {
        let members = self.members()?;
        let small = members.len() <= SMALL;
        let possible =
            if small { members } else { members & self.index.enumerate(&intent.constraints, self.label)?.possible };
        let mut queue = Queue { small, ..Queue::default() };
        queue.entries.reserve(usize::try_from(possible.len()).unwrap_or_default());
        let mut refused = Vec::new();
        for unit in &possible {
            let Some((fact, source)) = self.fact(unit) else { continue };
            let (entry, fits) = self.entry(intent, over_budget, &fact, unit, source);
            if fits { queue.entries.push(entry) } else { refused.push(entry) }
        }
        self.first_by_id(&mut refused);
        queue.refused = refused;
        Ok(queue)
    }

    /// The candidates of the category.
    fn members(&self) -> Result<RoaringBitmap, Error> {
        match self.also {
            None => Ok(self.index.alive(self.label).clone()),
            Some(also) => Ok(self.index.enumerate(also, self.label)?.possible),
        }
    }

    /// The bounds of the intent's constraints together with what the category demands.
    pub(crate) fn bounds(&self, constraints: &Constraints) -> Result<Bounds, Error> {
        let mut bounds = self.index.enumerate(constraints, self.label)?;
        if let Some(also) = self.also {
            let also = self.index.enumerate(also, self.label)?;
            bounds.certain &= also.certain;
            bounds.possible &= also.possible;
        }
        Ok(bounds)
    }

    fn fact(&self, unit: Unit) -> Option<(Fact<'_>, u64)> {
        Some((Fact::read(self.index.fact(unit)?)?, self.index.source(unit)?))
    }

    /// Which part of its record a candidate is, and what is known of its quality.
    pub(crate) fn look_at(&self, unit: Unit) -> (u16, Signals) {
        self.fact(unit).map(|(fact, _)| (fact.part, self.signals(&fact))).unwrap_or_default()
    }

    /// What is known about a candidate's quality.
    fn signals(&self, fact: &Fact<'_>) -> Signals {
        let about = |subject| self.evidence.about(subject, self.now);
        let others = if self.evidence.is_empty() { None } else { about(fact.id).or_else(|| about(fact.subject)) };
        fact.signals(others.as_ref())
    }

    /// Where a candidate would stand, and whether cost and quality let it in.
    fn entry(
        &self,
        intent: &Intent,
        over_budget: OverBudget,
        fact: &Fact<'_>,
        unit: Unit,
        source: u64,
    ) -> (Entry, bool) {
        let signals = self.signals(fact);
        let ceiling = intent.budget.as_ref().map(|budget| &budget.ceiling);
        let cost = ceiling.and_then(|ceiling| fact.cost(intent.category, &ceiling.currency));
        let over = ceiling.is_some_and(|ceiling| cost.is_some_and(|cost| cost > ceiling.amount));
        let priced = ceiling.is_none() || cost.is_some();
        let fits = priced && !(over && over_budget == OverBudget::Reject) && intent.quality_floor.is_met_by(&signals);
        let score = if fits { aql::rank(intent, &signals, cost).score } else { 0.0 };
        let cost = cost.map_or(u128::MAX, Amount::units);
        (Entry { over_budget: over, score, cost, source, unit, part: fact.part }, fits)
    }

    /// What fits comes first; then the higher score, the lower cost, the lower id.
    fn order(&self, left: &Entry, right: &Entry) -> Ordering {
        left.over_budget
            .cmp(&right.over_budget)
            .then_with(|| right.score.total_cmp(&left.score))
            .then_with(|| left.cost.cmp(&right.cost))
            .then_with(|| self.by_id(left, right))
    }

    fn by_id(&self, left: &Entry, right: &Entry) -> Ordering {
        let id = |entry: &Entry| self.index.fact(entry.unit).and_then(Fact::read).map(|fact| fact.id);
        id(left).cmp(&id(right))
    }

    fn first_by_id(&self, refused: &mut Vec<Entry>) {
        if refused.len() > REFUSED_MAX {
            refused.select_nth_unstable_by(REFUSED_MAX, |left, right| self.by_id(left, right));
            refused.truncate(REFUSED_MAX);
        }
        refused.sort_unstable_by(|left, right| self.by_id(left, right));
    }

    /// Puts at least `wanted` more entries into order; those before them are there already.
    pub(crate) fn sort(&self, queue: &mut Queue, wanted: usize) {
        let end = queue.taken.saturating_add(wanted).min(queue.entries.len());
        let Some(rest) = queue.entries.get_mut(queue.sorted..).filter(|_| queue.sorted < end) else { return };
        let count = end - queue.sorted;
        if count < rest.len() {
            rest.select_nth_unstable_by(count, |left, right| self.order(left, right));
        }
        if let Some(best) = rest.get_mut(..count) {
            best.sort_unstable_by(|left, right| self.order(left, right));
        }
        queue.sorted = end;
    }

    /// What is known of the quality of entries, for those that will be judged.
    pub(crate) fn signals_of(&self, entries: &[Entry]) -> Vec<Signals> {
        let signals = |entry: &Entry| self.fact(entry.unit).map(|(fact, _)| self.signals(&fact)).unwrap_or_default();
        entries.iter().map(signals).collect()
    }
}

impl Queue {
    /// The next entries in order, at most `wanted`.
    pub(crate) fn next(&mut self, wanted: usize) -> Vec<Entry> {
        let end = self.taken.saturating_add(wanted).min(self.sorted);
        let next = self.entries.get(self.taken..end).unwrap_or_default().to_vec();
        self.taken = end;
        next
    }

    /// Gives back entries that were taken and not needed.
    pub(crate) fn give_back(&mut self, count: usize) {
        self.taken -= count;
    }

    /// How far the queue is dealt with, to come back to.
    pub(crate) fn place(&self) -> (usize, Vec<Entry>) {
        (self.taken, self.refused.clone())
    }

    /// Comes back to an earlier place.
    pub(crate) fn return_to(&mut self, (taken, refused): (usize, Vec<Entry>)) {
        (self.taken, self.refused) = (taken, refused);
    }

    /// Whether every entry was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.taken >= self.entries.len()
    }

    /// Entries that are still to come, for whoever keeps the queue.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Candidates that cost or quality keep out.
    pub(crate) fn refused(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.refused)
    }
}

/// Loads and judges candidates, in the order given.
pub(crate) fn judge(
    store: &Store,
    intent: &Intent,
    entries: &[Entry],
    signals: Vec<Signals>,
    over_budget: OverBudget,
    evaluator: &mut Evaluator,
) -> Result<Vec<Judged>, Error> {
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.source).collect();
    let bodies = store.bodies(&numbers)?;
    let mut judged = Vec::with_capacity(entries.len());
    for ((entry, body), signals) in entries.iter().zip(bodies).zip(signals) {
        let missing = || Error::fault(format!("the record {} is missing", entry.source));
        let candidate = candidate(&body.ok_or_else(missing)?, entry.part, signals)?;
        let judgement = aql::judge(intent, &candidate, over_budget, evaluator)?;
        judged.push(Judged { candidate, judgement });
    }
    Ok(judged)
}

/// The candidate in a stored body: the record, or one of the actions of a manifest.
pub(crate) fn candidate(body: &[u8], part: u16, signals: Signals) -> Result<Candidate, Error> {
    let document = parsed(body)?;
    let record = crate::collection::record_of(&document);
    if let Some(position) = usize::from(part).checked_sub(1) {
        let gone = || Error::fault("an action of a stored manifest is missing");
        let action = Action::of(record, position).ok_or_else(gone)?;
        return Ok(Candidate::new(action.id, action.document, None, signals));
    }
    let id = aql::own_id(record).unwrap_or_default();
    let published = is_publication(document.root());
    Ok(if published {
        Candidate::published(id, document, signals)
    } else {
        Candidate::new(id, document, None, signals)
    })
}

/// What one intent's answer may cost.
pub(crate) fn evaluator() -> Evaluator {
    Evaluator::new(Fuel::STANDARD)
}
