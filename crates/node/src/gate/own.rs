//! RFC 0020 A.3 R2: the candidates that look different to the issuer of an intent.
//!
//! The index knows the public view. For somebody whom restrictions name, the units of those records are taken out of
//! whatever the index says, and the issuer's own views of them stand in their place, each asked by itself. They have
//! numbers beyond those of the index, so that everything after this treats both alike.

use super::{Named, VIEW_BYTES_MAX, VIEWS_MAX, View, Viewer, named};
use crate::catalog::{actions_of, parsed};
use crate::collection::{Action, Collection, signer};
use crate::fact;
use crate::indexes::Indexes;
use crate::refusal::Error;
use aql::{Constraints, Evaluator, Fuel};
use index::{Bounds, Unit};
use json::{Document, Node};
use roaring::RoaringBitmap;
use store::Store;

/// The first number of an own view; the index gives none beyond it.
const FIRST: Unit = index::UNITS_MAX;

/// What looks different to somebody in one collection.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Units of the index that the own views replace.
    taken: RoaringBitmap,
    shown: Vec<Shown>,
}

#[derive(Debug)]
struct Shown {
    source: u64,
    fact: Vec<u8>,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    Record(View),
    Action(Action),
}

impl Shown {
    fn record(&self) -> Node<'_> {
        match &self.seen {
            Seen::Record(view) => view.record(),
            Seen::Action(action) => action.document.root(),
        }
    }
}

/// For each own view whether constraints hold and the truth of each leaf; nothing where that costs too much.
pub(crate) type Truths = Vec<Option<(bool, Vec<bool>)>>;

impl Own {
    /// The views that a viewer has of his own in a collection.
    pub(crate) fn of(indexes: &Indexes, store: &Store, collection: Collection, viewer: &Viewer) -> Result<Self, Error> {
        let Viewer::Named(did) = viewer else { return Ok(Self::default()) };
        let from = match collection {
            Collection::Actions => Collection::Manifests,
            other => other,
        };
        let records = within_bounds(named(indexes, did.as_str())?);
        let sources: Vec<u64> =
            records.iter().filter(|named| named.collection == from as u8).map(|named| named.source).collect();
        if sources.is_empty() {
            return Ok(Self::default());
        }
        let index = indexes.of(collection);
        let mut own = Self::default();
        for (source, body) in bodies(store, &sources)? {
            own.taken.extend(index.units_of(source));
            let signer = signer(&body).map(str::to_owned);
            own.show(source, collection, signer.as_deref(), View::of(body, viewer)?);
        }
        Ok(own)
    }

    fn show(&mut self, source: u64, collection: Collection, signer: Option<&str>, view: View) {
        if collection == Collection::Actions {
            let actions = actions_of(signer, view.record()).into_iter();
            self.shown.extend(actions.map(|(action, fact)| Shown { source, fact, seen: Seen::Action(action) }));
            return;
        }
        let id = aql::own_id(view.record()).unwrap_or_default();
        let fact = fact::encode(collection, 0, &id, signer, view.record());
        self.shown.push(Shown { source, fact, seen: Seen::Record(view) });
    }

    fn get(&self, unit: Unit) -> Option<&Shown> {
        self.shown.get(usize::try_from(unit.checked_sub(FIRST)?).ok()?)
    }

    /// The numbers of the own views.
    fn units(&self) -> impl Iterator<Item = (Unit, &Shown)> {
        (FIRST..).zip(&self.shown)
    }

    /// The fact and the source of an own view.
    pub(crate) fn fact(&self, unit: Unit) -> Option<(&[u8], u64)> {
        self.get(unit).map(|shown| (&*shown.fact, shown.source))
    }

    /// All facts, for an answer whose later pages come when these views are gone.
    pub(crate) fn facts(&self) -> impl Iterator<Item = (Unit, &[u8])> {
        self.units().map(|(unit, shown)| (unit, &*shown.fact))
    }

    /// Whether a viewer sees what everybody sees.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.shown.is_empty()
    }

    /// The units of a source that the viewer sees.
    pub(crate) fn units_of(&self, source: u64) -> impl Iterator<Item = Unit> {
        self.units().filter(move |(_, shown)| shown.source == source).map(|(unit, _)| unit)
    }

    /// Whether a unit is an own view, and not one of the index.
    pub(crate) fn is_own(unit: Unit) -> bool {
        unit >= FIRST
    }

    /// Whether the index speaks of this unit in vain.
    pub(crate) fn replaces(&self, unit: Unit) -> bool {
        self.taken.contains(unit)
    }

    /// Puts the own views in the place of the units that they replace.
    pub(crate) fn add_all(&self, units: &mut RoaringBitmap) {
        *units -= &self.taken;
        units.extend(self.units().map(|(unit, _)| unit));
    }

    /// Asks every own view.
    pub(crate) fn ask(&self, constraints: &Constraints) -> Truths {
        let mut evaluator = Evaluator::new(Fuel::STANDARD);
        let mut ask = |shown: &Shown| {
            let holds = evaluator.evaluate(constraints, shown.record()).ok()?;
            Some((holds, evaluator.leaves.clone()))
        };
        self.shown.iter().map(&mut ask).collect()
    }

    /// Puts what was asked of the own views in the place of what the index says; `reading` reads it.
    pub(crate) fn amend(&self, bounds: &mut Bounds, truths: &Truths, reading: impl Fn(bool, &[bool]) -> bool) {
        bounds.certain -= &self.taken;
        bounds.possible -= &self.taken;
        for ((unit, _), truth) in self.units().zip(truths) {
            let holds = truth.as_ref().map(|(holds, leaves)| reading(*holds, leaves));
            if holds == Some(true) {
                bounds.certain.insert(unit);
            }
            // Whoever cannot be asked within bounds may satisfy anything; a judgement will say why not.
            if holds != Some(false) {
                bounds.possible.insert(unit);
            }
        }
    }
}

/// Records as a viewer sees them whom they name, in the order given.
///
/// They are cut from what the store has, anew each time: nothing that others read has anything of them.
pub(crate) fn own_views(store: &Store, sources: &[u64], viewer: &Viewer) -> Result<Vec<View>, Error> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    bodies(store, sources)?.into_iter().map(|(_, body)| View::of(body, viewer)).collect()
}

fn bodies(store: &Store, sources: &[u64]) -> Result<Vec<(u64, Document)>, Error> {
    let read = |(&source, body): (&u64, Option<Vec<u8>>)| {
        let missing = || Error::fault(format!("the record {source} is missing"));
        Ok((source, parsed(&body.ok_or_else(missing)?)?))
    };
    sources.iter().zip(store.bodies(sources)?).map(read).collect()
}

/// As many records as one viewer may have; the rest he sees as everybody does.
fn within_bounds(records: Vec<Named>) -> Vec<Named> {
    let (mut views, mut bytes) = (0, 0);
    let fits = |named: &Named| {
        (views, bytes) = (views + 1, bytes + named.weight);
        views <= VIEWS_MAX && bytes <= VIEW_BYTES_MAX
    };
    records.into_iter().take_while(fits).collect()
}
