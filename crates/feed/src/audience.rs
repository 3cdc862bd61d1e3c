//! RFC 0020 §3.6: the standing filters, and which of them a document satisfies.
//!
//! Each filter is filed under one condition that every document satisfying it fulfils, the one that fewest documents
//! are likely to fulfil. Beside it stands what else it asks for, in a row that is asked at once; for most filters the
//! row says all, and the others are evaluated by the predicates of `aql`. Predicates and paths are kept once, however
//! many filters share them.
//!
//! INVARIANT: what is found is what evaluating every filter would find.

mod slab;
mod paths;
mod predicates;
mod program;
mod terms;
mod rows;
mod keys;
mod ranges;
mod texts;
mod filing;
mod asking;

use aql::{Constraints, Fuel};
use asking::{Asked, Room, Truth};
use filing::Places;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use json::Node;
use keys::Keys;
use paths::Paths;
use predicates::{Predicates, turn};
use program::Program;
use ranges::Ranges;
use rows::{Present, Row};
use slab::Slab;
use std::hash::BuildHasher;
use terms::Deriver;
use texts::Texts;

/// The standing filters.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    filters: Slab<Filter>,
    /// The ids of the filters, by slot.
    ids: Vec<u64>,
    /// The slots of the filters, by id.
    slots: HashTable<u32>,
    hasher: RandomState,
    paths: Paths,
    predicates: Predicates,
    keys: Keys,
    ranges: Slab<Ranges>,
    texts: Texts,
    /// Filters that say nothing about what a document has.
    unfiled: Vec<Row>,
    /// A document without anything, before those rows.
    empty: Present,
    registers: Vec<u8>,
    registers_used: u8,
    /// What asking wrote down last.
    room: Option<Box<Room>>,
}

#[derive(Clone, Debug)]
struct Filter {
    places: Places,
    program: Program,
}

/// Whom a document concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Filters that the document satisfies, in rising order.
    pub satisfied: Vec<u64>,
    /// Filters that ran out of fuel or steps before they were decided, in rising order.
    pub undecided: Vec<u64>,
    /// How many filters had to be evaluated, because their rows left a doubt.
    pub evaluated: usize,
}

impl Audience {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many filters there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many filters every document is asked about, because they say only what it must not have.
    pub fn unfiled(&self) -> usize {
        self.unfiled.len()
    }

    /// Adds a standing filter, or puts it in the place of the one that has the same id.
    pub fn insert(&mut self, id: u64, constraints: &Constraints) {
        self.remove(id);
        let leaves = constraints.leaves();
        let numbers: Vec<(u32, u8)> = leaves
            .iter()
            .map(|leaf| {
                let number = self.predicates.intern(leaf, &mut self.paths, &mut self.texts);
                (number, turn(&leaf.predicate))
            })
            .collect();
        let program = Program::of(constraints.tree(), &|leaf| numbers.get(leaf).copied().unwrap_or_default());
        let mut deriver = self.deriver();
        let choices = deriver.choices(program.words());
        let needs = deriver.needs;
        let slot = self.filters.insert(Filter { places: Places::Unfiled, program });
        self.name(slot, id);
        self.count(&needs);
        let places = self.file(slot, choices);
        if let Some(filter) = self.filters.get_mut(slot) {
            filter.places = places;
        }
    }

    /// Takes a filter away; says whether there was one.
    pub fn remove(&mut self, id: u64) -> bool {
        let is_it = |slot: &u32| self.ids.get(*slot as usize) == Some(&id);
        let Ok(entry) = self.slots.find_entry(self.hasher.hash_one(id), is_it) else { return false };
        let (slot, _) = entry.remove();
        let Some(filter) = self.filters.remove(slot) else { return false };
        let mut deriver = self.deriver();
        deriver.choices(filter.program.words());
        let needs = deriver.needs;
        self.unfile(slot, &filter.places);
        self.count_back(&needs);
        for number in filter.program.predicates() {
            self.predicates.release(number, &mut self.paths, &mut self.texts);
        }
        true
    }

    fn name(&mut self, slot: u32, id: u64) {
        self.ids.resize(self.ids.len().max(slot as usize + 1), 0);
        if let Some(place) = self.ids.get_mut(slot as usize) {
            *place = id;
        }
        let (ids, hasher) = (&self.ids, &self.hasher);
        let hash = |slot: &u32| ids.get(*slot as usize).map_or(0, |id| hasher.hash_one(id));
        self.slots.insert_unique(hasher.hash_one(id), slot, hash);
    }

    fn deriver(&self) -> Deriver<'_> {
        let (paths, predicates, keys) = (&self.paths, &self.predicates, &self.keys);
        Deriver { paths, predicates, keys, needs: Vec::with_capacity(16) }
    }

    /// The filters that a document satisfies; each predicate may spend `fuel` on it.
    pub fn of(&mut self, document: Node<'_>, fuel: Fuel) -> Found {
        let mut room = self.room.take().unwrap_or_default();
        let found = self.find(&mut room, document, fuel);
        self.room = Some(room);
        found
    }

    fn find(&self, room: &mut Room, document: Node<'_>, fuel: Fuel) -> Found {
        let mut asked = Asked::new(self, room, document, fuel);
        asked.meet();
        let met = asked.met();
        let mut found = Found { evaluated: met.likely.len(), ..Found::default() };
        found.satisfied.reserve(met.sure.len() + met.likely.len());
        let id = |slot: &u32| self.ids.get(*slot as usize).copied().unwrap_or_default();
        found.satisfied.extend(met.sure.iter().map(id));
        for some in met.likely.chunks(TOGETHER) {
            self.glance(some);
            for slot in some {
                let Some(filter) = self.filters.get(*slot) else { continue };
                match asked.all(filter.program.words()) {
                    Truth::Yes => found.satisfied.push(id(slot)),
                    Truth::Unknown => found.undecided.push(id(slot)),
                    Truth::No => {}
                }
            }
        }
        asked.give_back(met);
        // Mostly they are in order already, since slots are given out as ids come.
        if !found.satisfied.is_sorted() {
            found.satisfied.sort_unstable();
        }
        found.satisfied.dedup();
        found.undecided.sort_unstable();
        found
    }

    /// Looks at some filters and then at their predicates, so that the processor waits for their memory at the same time
    /// instead of one after the other.
    fn glance(&self, slots: &[u32]) {
        let filters = || slots.iter().filter_map(|slot| self.filters.get(*slot));
        std::hint::black_box(filters().map(|filter| filter.program.words().len()).sum::<usize>());
        let predicates = filters().flat_map(|filter| filter.program.predicates());
        let shared = predicates.filter_map(|number| self.predicates.get(number));
        std::hint::black_box(shared.fold(0, |sum: u32, shared| sum.wrapping_add(shared.path)));
    }
}

/// Filters that are looked at together.
const TOGETHER: usize = 32;
