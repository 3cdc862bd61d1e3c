//! RFC 0020 A.3 R3 to R5: the best candidates first, loading no more than are returned.
//!
//! The index says which candidates certainly and which possibly satisfy the constraints, and the facts beside them
//! say how each would rank. So candidates are taken in the order of the answer: they are loaded and judged until the
//! page is full. What ranks below the page is never loaded.
//!
//! INVARIANT: the answer is the one that [`aql::resolve`] gives over all candidates of the collection.

use super::spread::Spread;
use crate::catalog::parsed;
use crate::collection::{Action, Collection, signer};
use crate::evidence::{Evidence, Moment};
use crate::fact::{self, Fact};
use crate::gate::{Own, Truths, View, Viewer, own_views};
use crate::node::Node;
use crate::refusal::Error;
use aql::{
    Amount, Candidate, Constraints, Evaluator, Fuel, Intent, Judgement, Match, OverBudget, Rejection, Scoring, Signals,
};
use index::{Bounds, Index, Unit};
use json::Document;
use roaring::RoaringBitmap;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use store::Store;

/// Collections up to this size are looked at one by one, so that every candidate's record can say why it failed.
pub(crate) const SMALL: u64 = 64;

/// Refused candidates that are looked at for the answer's list of rejected ones.
const REFUSED_MAX: usize = 64;

/// Candidates that are glanced at together: the processor then waits for the memory of many of them once.
const AT_ONCE: usize = 32;

/// A candidate in the order of the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(super) over_budget: bool,
    score: f64,
    /// In units of 10^-18, the higher half first; the greatest number where it has none.
    cost: [u64; 2],
    source: u64,
    pub(crate) unit: Unit,
    part: u16,
    digest: u32,
    /// Whether the index knows that the constraints hold.
    certain: bool,
}

/// Facts of candidates that were replaced or withdrawn while the pages of an answer are read.
type Lost = HashMap<Unit, Box<[u8]>>;

/// Candidates that may be in the answer, the best of them in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(super) entries: Vec<Entry>,
    /// How many of them are in order already.
    pub(super) sorted: usize,
    /// How many of them are dealt with.
    pub(super) taken: usize,
    /// Candidates that satisfy the constraints, as far as is known, and neither cost nor quality; by the digests of
    /// their ids.
    refused: Vec<Entry>,
    /// All of them that were alive when somebody last looked.
    units: RoaringBitmap,
    pub(super) lost: Lost,
    /// Who repeats whom, of those that were taken.
    pub(super) spread: Spread,
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
    pub(crate) fn to_match(&self, intent: &Intent, rank: usize, repeats: Option<&str>) -> Match<'_> {
        let ranking = aql::rank(intent, self.candidate.quality(), self.judgement.cost);
        let ranking = aql::Ranking { repeats: repeats.map(str::to_owned), ..ranking };
        Match { candidate: &self.candidate, judgement: Cow::Borrowed(&self.judgement), ranking, rank }
    }

    pub(crate) fn to_rejection(&self) -> Rejection<'_> {
        Rejection { candidate: &self.candidate, judgement: Cow::Borrowed(&self.judgement) }
    }
}

/// What a question is asked of.
pub(crate) struct Market<'a> {
    pub(crate) index: &'a Index,
    pub(crate) evidence: &'a Evidence,
    pub(crate) collection: Collection,
    /// What the category demands beside the intent's own constraints.
    pub(crate) also: Option<&'a Constraints>,
    pub(crate) moment: Moment,
    /// What looks different to whoever asks; nothing while later pages are made, whose queue knows it.
    pub(crate) own: Own,
}

impl Market<'_> {
    /// Everything that may be in the answer.
    pub(crate) fn queue(&self, intent: &Intent, over_budget: OverBudget) -> Result<Queue, Error> {
        // Most questions ask the whole collection: then there is no set of members to be made.
        let (small, possible, open) = match self.also {
            None if self.is_large() => {
                let (possible, open) = self.possible(&intent.constraints)?;
                (false, possible, open)
            }
            _ => {
                let members = self.members()?;
                let small = members.len() <= SMALL;
                let possible = if small { members } else { members & self.possible(&intent.constraints)?.0 };
                (small, possible.clone(), possible)
            }
        };
        let mut queue = Queue { small, ..Queue::default() };
        queue.entries.reserve(usize::try_from(possible.len()).unwrap_or_default());
        let mut highest = u32::MAX;
        let scoring = Scoring::of(intent);
        let (mut units, mut glances) = (possible.iter(), Vec::with_capacity(AT_ONCE));
        loop {
            glances.extend(units.by_ref().take(AT_ONCE).map(|unit| (unit, self.index.glance(unit))));
            if glances.is_empty() {
                break;
            }
            for (unit, shown) in glances.drain(..) {
                let Some((fact, source)) = self.understood(unit, shown) else { continue };
                let (mut entry, fits) = self.entry((intent, &scoring), over_budget, &fact, unit, source);
                if fits {
                    queue.entries.push(entry);
                } else if entry.digest <= highest {
                    entry.certain = !open.contains(unit);
                    queue.refused.push(entry);
                    if queue.refused.len() > 2 * REFUSED_MAX {
                        highest = self.first_refused(&mut queue.refused);
                    }
                }
            }
        }
        self.first_refused(&mut queue.refused);
        queue.units = possible;
        for (unit, fact) in self.own.facts() {
            queue.units.remove(unit);
            queue.lost.insert(unit, fact.into());
        }
        Ok(queue)
    }

    /// Whether there are more candidates than are looked at one by one.
    fn is_large(&self) -> bool {
        if self.own.is_empty() { self.index.count() > SMALL } else { self.alive().len() > SMALL }
    }

    /// The living candidates of the collection.
    pub(crate) fn alive(&self) -> RoaringBitmap {
        let mut alive = self.index.alive();
        self.own.add_all(&mut alive);
        alive
    }

    /// The candidates of a record.
    pub(crate) fn units_of(&self, source: u64) -> Vec<Unit> {
        let mut own: Vec<Unit> = self.own.units_of(source).collect();
        own.extend(self.index.units_of(source).filter(|unit| !self.own.replaces(*unit)));
        own
    }

    /// The candidates of the category.
    fn members(&self) -> Result<RoaringBitmap, Error> {
        Ok(self.membership()?.possible)
    }

    /// Who certainly and who possibly satisfies constraints, of whatever category.
    pub(crate) fn enumerate(&self, constraints: &Constraints) -> Result<Bounds, Error> {
        let mut bounds = self.index.enumerate(constraints)?;
        if !self.own.is_empty() {
            self.own.amend(&mut bounds, &self.own.ask(constraints), |holds, _| holds);
        }
        Ok(bounds)
    }

    /// Who possibly satisfies constraints, and who of them perhaps does not.
    fn possible(&self, constraints: &Constraints) -> Result<(RoaringBitmap, RoaringBitmap), Error> {
        if self.own.is_empty() {
            return Ok(self.index.possible(constraints)?);
        }
        let Bounds { certain, possible } = self.enumerate(constraints)?;
        let open = &possible - certain;
        Ok((possible, open))
    }

    /// The same for one leaf by itself; `own` is what the own views say.
    pub(crate) fn leaf_bounds(&self, constraints: &Constraints, leaf: usize, own: &Truths) -> Result<Bounds, Error> {
        let mut bounds = self.index.leaf_bounds(constraints, leaf)?;
        self.own.amend(&mut bounds, own, |_, leaves| leaves.get(leaf).copied().unwrap_or_default());
        Ok(bounds)
    }

    /// Who certainly and who possibly is of the category.
    pub(crate) fn membership(&self) -> Result<Bounds, Error> {
        match self.also {
            Some(also) => self.enumerate(also),
            None => Ok(Bounds { certain: self.alive(), possible: self.alive() }),
        }
    }

    fn fact(&self, unit: Unit) -> Option<(Fact<'_>, u64)> {
        let filed = || Some((self.index.fact(unit)?, self.index.source(unit)?));
        let (fact, source) = self.own.fact(unit).or_else(filed)?;
        Some((Fact::read(fact)?, source))
    }

    /// What ranks a candidate; its names are not in it.
    pub(super) fn glance(&self, unit: Unit) -> Option<(Fact<'_>, u64)> {
        self.understood(unit, self.index.glance(unit))
    }

    /// The same from what the index showed, where that is enough.
    fn understood<'a>(&'a self, unit: Unit, shown: Option<(&'a [u8], u64)>) -> Option<(Fact<'a>, u64)> {
        let enough = |(shown, source)| Fact::glance(shown).map(|fact| (fact, source));
        let shown = shown.filter(|_| self.evidence.is_empty() && !Own::is_own(unit));
        shown.and_then(enough).or_else(|| self.fact(unit))
    }

    /// What a candidate is called.
    pub(crate) fn id(&self, unit: Unit) -> Option<&str> {
        self.fact(unit).map(|(fact, _)| fact.id())
    }

    /// Which part of its record a candidate is, and what is known of its quality.
    pub(crate) fn look_at(&self, unit: Unit) -> (u16, Signals) {
        self.fact(unit).map(|(fact, _)| (fact.part, self.signals(&fact))).unwrap_or_default()
    }

    /// What is known about a candidate's quality.
    pub(super) fn signals(&self, fact: &Fact<'_>) -> Signals {
        let about = |subject| self.evidence.about(subject, self.moment);
        let others = if self.evidence.is_empty() { None } else { about(fact.id()).or_else(|| about(fact.subject())) };
        fact.signals(others.as_ref())
    }

    /// Where a candidate would stand, and whether cost and quality let it in.
    fn entry(
        &self,
        (intent, scoring): (&Intent, &Scoring),
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
        let score = if fits { scoring.score(&signals, cost) } else { 0.0 };
        let cost = cost.map_or(u128::MAX, Amount::units);
        let cost = [(cost >> 64) as u64, cost as u64];
        (
            Entry {
                over_budget: over,
                score,
                cost,
                source,
                unit,
                part: fact.part,
                digest: fact.digest,
                certain: false,
            },
            fits,
        )
    }

    /// What fits comes first; then the higher score, the lower cost, the lower id.
    fn order(&self, lost: &Lost, left: &Entry, right: &Entry) -> Ordering {
        left.over_budget
            .cmp(&right.over_budget)
            .then_with(|| right.score.total_cmp(&left.score))
            .then_with(|| left.cost.cmp(&right.cost))
            .then_with(|| self.by_id(lost, left, right))
    }

    fn by_id(&self, lost: &Lost, left: &Entry, right: &Entry) -> Ordering {
        let id = |entry: &Entry| self.remembered(lost, entry.unit).map(|fact| fact.id());
        id(left).cmp(&id(right))
    }

    /// Keeps the refused candidates that come first, in their order; says what the last of them has for a digest.
    fn first_refused(&self, refused: &mut Vec<Entry>) -> u32 {
        let none = Lost::new();
        refused.sort_unstable_by(|left, right| {
            left.digest.cmp(&right.digest).then_with(|| self.by_id(&none, left, right))
        });
        refused.truncate(REFUSED_MAX);
        refused.last().map_or(u32::MAX, |last| last.digest)
    }

    /// The fact of a candidate, also of one that is gone meanwhile.
    pub(super) fn remembered<'a>(&'a self, lost: &'a Lost, unit: Unit) -> Option<Fact<'a>> {
        match lost.get(&unit) {
            Some(fact) => Fact::read(fact),
            None => self.fact(unit).map(|(fact, _)| fact),
        }
    }

    /// Keeps the facts of candidates that went since the last look: the index forgets them, the answer must not.
    pub(crate) fn recall(&self, store: &Store, queue: &mut Queue) -> Result<(), Error> {
        if self.index.applied() == self.moment.sequence {
            return Ok(());
        }
        let gone = &queue.units - self.alive();
        if gone.is_empty() {
            return Ok(());
        }
        let waiting = queue.entries.iter().skip(queue.taken).chain(&queue.refused).chain(queue.spread.waiting());
        for entry in waiting.filter(|entry| gone.contains(entry.unit)) {
            let known = self.index.fact(entry.unit).filter(|fact| Fact::read(fact).is_some());
            let fact = known.map_or_else(|| self.made_again(store, entry), |fact| Ok(fact.to_vec()))?;
            queue.lost.insert(entry.unit, fact.into());
        }
        queue.units -= gone;
        Ok(())
    }

    fn made_again(&self, store: &Store, entry: &Entry) -> Result<Vec<u8>, Error> {
        let missing = || Error::fault(format!("the record {} is missing", entry.source));
        let body = parsed(&store.bodies(&[entry.source])?.pop().flatten().ok_or_else(missing)?)?;
        // Own views are remembered from the first page on, so this is one that the index knew.
        let signer = signer(&body).map(str::to_owned);
        let candidate = candidate(View::of(body, &Viewer::Public)?, entry.part, Signals::default())?;
        Ok(fact::encode(self.collection, entry.part, &candidate.id, signer.as_deref(), candidate.record()))
    }

    /// The best of some candidates in the order of the answer, those that cost or quality keep out of it last.
    pub(crate) fn best(
        &self,
        intent: &Intent,
        over_budget: OverBudget,
        units: &RoaringBitmap,
        wanted: usize,
    ) -> Vec<Entry> {
        let about = (intent, &Scoring::of(intent));
        let known = |unit| self.glance(unit).map(|(fact, source)| self.entry(about, over_budget, &fact, unit, source));
        let (fit, unfit): (Vec<_>, Vec<_>) = units.iter().filter_map(known).partition(|(_, fits)| *fits);
        let first = |entries: Vec<(Entry, bool)>, wanted: usize| {
            let entries = entries.into_iter().map(|(entry, _)| entry).collect();
            let mut queue = Queue { entries, ..Queue::default() };
            self.sort(&mut queue, wanted);
            queue.next(wanted)
        };
        let mut best = first(fit, wanted);
        best.extend(first(unfit, wanted - best.len()));
        best
    }

    /// The first candidates that cost or quality keep out, judged without their records; `None` where that takes some.
    pub(crate) fn refusals(&self, intent: &Intent, queue: &Queue, most: usize) -> Option<Vec<Judged>> {
        // A decision shows what the projection shows of the values that were asked.
        let shown = || intent.constraints.leaves().iter().any(|leaf| !intent.projection.hides(&leaf.path));
        if queue.small || self.also.is_some() || !intent.constraints.is_conjunction() || shown() {
            return None;
        }
        let currency = intent.budget.as_ref().map(|budget| budget.ceiling.currency.as_str());
        let refuse = |entry: &Entry| {
            let fact =
                self.remembered(&queue.lost, entry.unit).filter(|_| entry.certain && !Own::is_own(entry.unit))?;
            let (signals, id) = (self.signals(&fact), fact.id().to_owned());
            let cost = currency.and_then(|currency| fact.cost(intent.category, currency));
            let judgement = aql::refuse(intent, &signals, cost)?;
            Some(Judged { candidate: Candidate::new(id, Document::default(), None, signals), judgement })
        };
        queue.refused.iter().take(most).map(refuse).collect()
    }

    /// What a candidate would cost in the intent's currency, and what is known of its quality.
    pub(crate) fn standing(&self, intent: &Intent, unit: Unit) -> Option<(Option<Amount>, Signals)> {
        let (fact, _) = self.fact(unit)?;
        let currency = intent.budget.as_ref().map(|budget| budget.ceiling.currency.as_str());
        Some((currency.and_then(|currency| fact.cost(intent.category, currency)), self.signals(&fact)))
    }

    /// Puts at least `wanted` more entries into order; those before them are there already.
    pub(crate) fn sort(&self, queue: &mut Queue, wanted: usize) {
        let Queue { entries, sorted, taken, lost, .. } = queue;
        let end = taken.saturating_add(wanted).min(entries.len());
        let Some(rest) = entries.get_mut(*sorted..).filter(|_| *sorted < end) else { return };
        let count = end - *sorted;
        if count < rest.len() {
            rest.select_nth_unstable_by(count, |left, right| self.order(lost, left, right));
        }
        if let Some(best) = rest.get_mut(..count) {
            best.sort_unstable_by(|left, right| self.order(lost, left, right));
        }
        *sorted = end;
    }

    /// What is known of the quality of entries, for those that will be judged.
    pub(crate) fn signals_of(&self, queue: &Queue, entries: &[Entry]) -> Vec<Signals> {
        let fact = |entry: &Entry| self.remembered(&queue.lost, entry.unit);
        entries.iter().map(|entry| fact(entry).map(|fact| self.signals(&fact)).unwrap_or_default()).collect()
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

    /// How far the queue is dealt with, to come back to.
    pub(crate) fn place(&self) -> (usize, Vec<Entry>, Spread) {
        (self.taken, self.refused.clone(), self.spread.clone())
    }

    /// Comes back to an earlier place.
    pub(crate) fn return_to(&mut self, (taken, refused, spread): (usize, Vec<Entry>, Spread)) {
        (self.taken, self.refused, self.spread) = (taken, refused, spread);
    }

    /// Whether every entry was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.taken >= self.entries.len() && self.spread.is_empty()
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

impl Node {
    /// Loads candidates, in the order given, as `viewer` sees them.
    pub(crate) fn load(
        &self,
        viewer: &Viewer,
        entries: &[Entry],
        signals: Vec<Signals>,
    ) -> Result<Vec<Candidate>, Error> {
        let (own, public): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| Own::is_own(entry.unit));
        let sources = |entries: &[&Entry]| entries.iter().map(|entry| entry.source).collect::<Vec<u64>>();
        let public = self.catalog.views(&self.store, &sources(&public))?;
        // The processor waits for the memory of all of them together, and not for one after the other.
        std::hint::black_box(public.iter().map(|view| view.document().root().glance()).sum::<usize>());
        let mut public = public.into_iter();
        let mut own = own_views(&self.store, &sources(&own), viewer)?.into_iter();
        let seen = |(entry, signals): (&Entry, Signals)| {
            let view = if Own::is_own(entry.unit) { own.next() } else { public.next() };
            candidate(view.ok_or_else(|| Error::fault("a view is missing"))?, entry.part, signals)
        };
        entries.iter().zip(signals).map(seen).collect()
    }

    /// Judges a candidate.
    pub(crate) fn judge(
        &self,
        intent: &Intent,
        candidate: Candidate,
        evaluator: &mut Evaluator,
    ) -> Result<Judged, Error> {
        let judgement = aql::judge(intent, &candidate, self.over_budget, evaluator)?;
        Ok(Judged { candidate, judgement })
    }
}

/// The candidate in a view of a stored record: the record, or one of the actions of a manifest.
pub(crate) fn candidate(view: View, part: u16, signals: Signals) -> Result<Candidate, Error> {
    if let Some(position) = usize::from(part).checked_sub(1) {
        let gone = || Error::fault("an action of a stored manifest is missing");
        let action = Action::of(view.record(), position).ok_or_else(gone)?;
        return Ok(Candidate::new(action.id, action.document, None, signals));
    }
    Ok(view.into_candidate(signals))
}

/// What one intent's answer may cost.
pub(crate) fn evaluator() -> Evaluator {
    Evaluator::new(Fuel::STANDARD)
}
