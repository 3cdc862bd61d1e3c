//! RFC 0020 A.3 R5: what only repeats another candidate of its owner comes after the others (decisions/0255).
//!
//! Candidates are taken in the order of the ranking. One that is near to a candidate that its owner has in the answer
//! already waits until all others that fit were taken. That is seen by its fact, so a thousand copies are passed over
//! without being loaded.
//!
//! INVARIANT: every entry is drawn, once; the order is the one of [`aql::resolve`].

use super::select::{Entry, Market, Queue};
use aql::Leaders;
use std::collections::{BTreeMap, VecDeque};

/// An entry that is to be judged now.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) entry: Entry,
    /// Its place by score, cost and id.
    place: usize,
    /// Whose it is, and its sketch.
    likeness: Option<(String, u64)>,
    /// Whom it repeats, when it comes after the others for that.
    pub(crate) repeats: Option<String>,
}

/// Who repeats whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    leaders: Leaders,
    /// Those that wait for the others, by their places.
    behind: BTreeMap<usize, Drawn>,
    /// Those that were drawn and not needed.
    given_back: VecDeque<Drawn>,
}

impl Spread {
    /// Entries that were taken and are still to come.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.behind.values().chain(&self.given_back).map(|drawn| &drawn.entry)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.behind.is_empty() && self.given_back.is_empty()
    }

    fn repeated(&self, likeness: Option<&(String, u64)>) -> Option<String> {
        let (owner, sketch) = likeness?;
        self.leaders.repeated(owner, *sketch).map(str::to_owned)
    }
}

impl Market<'_> {
    /// The next entries in order, at most `wanted`; no fewer than one while there is one.
    pub(super) fn draw(&self, queue: &mut Queue, wanted: usize) -> Vec<Drawn> {
        let mut drawn: Vec<Drawn> = Vec::new();
        drawn.extend(std::iter::from_fn(|| queue.spread.given_back.pop_front()).take(wanted));
        let mut ahead = wanted;
        while drawn.len() < wanted {
            if queue.taken == queue.sorted {
                // Among many copies the steps grow, so that putting into order stays cheap.
                self.sort(queue, ahead);
                ahead *= 2;
            }
            let next = queue.entries.get(queue.taken).copied();
            // What is over budget waits for all that fit: those behind, and those that may yet have to go there.
            let fits = |drawn: &Drawn| !drawn.entry.over_budget;
            let fit_to_come = queue.spread.behind.values().next().is_some_and(fits) || drawn.last().is_some_and(fits);
            match next.filter(|next| !(next.over_budget && fit_to_come)) {
                Some(entry) => {
                    let likeness = self.remembered(&queue.lost, entry.unit).and_then(|fact| fact.likeness());
                    let repeats = queue.spread.repeated(likeness.as_ref());
                    let taken = Drawn { entry, place: queue.taken, likeness, repeats };
                    queue.taken += 1;
                    match taken.repeats {
                        Some(_) => drop(queue.spread.behind.insert(taken.place, taken)),
                        None => drawn.push(taken),
                    }
                }
                None if drawn.is_empty() => {
                    drawn.extend(std::iter::from_fn(|| Some(queue.spread.behind.pop_first()?.1)).take(wanted));
                    return drawn;
                }
                None => return drawn,
            }
        }
        drawn
    }
}

impl Queue {
    /// Whether a drawn candidate that belongs into the answer has its place now; one that repeats another waits.
    pub(super) fn places(&mut self, drawn: &mut Drawn, id: &str) -> bool {
        if drawn.repeats.is_some() {
            return true;
        }
        drawn.repeats = self.spread.repeated(drawn.likeness.as_ref());
        if drawn.repeats.is_some() {
            self.spread.behind.insert(drawn.place, drawn.clone());
            return false;
        }
        if let Some((owner, sketch)) = &drawn.likeness {
            self.spread.leaders.add(owner.clone(), *sketch, id);
        }
        true
    }

    /// Gives back what was drawn and not judged, in its order.
    pub(super) fn give_back(&mut self, drawn: impl DoubleEndedIterator<Item = Drawn>) {
        drawn.rev().for_each(|drawn| self.spread.given_back.push_front(drawn));
    }

    /// Gives back a candidate that had its place already.
    pub(super) fn give_back_placed(&mut self, drawn: Drawn, id: &str) {
        if let (None, Some((owner, _))) = (&drawn.repeats, &drawn.likeness) {
            self.spread.leaders.take_back(owner, id);
        }
        self.spread.given_back.push_front(drawn);
    }
}
