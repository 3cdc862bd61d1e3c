//! RFC 0020 A.1: the predicates of all filters, each kept once.

use super::keys::write_literal;
use super::paths::{PathId, Paths};
use super::slab::Slab;
use super::texts::{Texts, searches};
use aql::{Bound, Leaf, List, Predicate};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash, Hasher};

/// A predicate at a path, and how many leaves are it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) path: PathId,
    users: u32,
    pub(crate) predicate: Predicate,
}

/// All predicates, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predicates {
    all: Slab<Shared>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl Predicates {
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Shared> {
        self.all.get(number)
    }

    /// The number of a leaf's predicate, which has one more user now.
    pub(crate) fn intern(&mut self, leaf: &Leaf, paths: &mut Paths, texts: &mut Texts) -> u32 {
        let path = paths.intern(&leaf.path);
        let hash = digest(&self.hasher, path, &leaf.predicate);
        let is_it = |shared: &Shared| shared.path == path && shared.predicate == leaf.predicate;
        if let Some(known) = self.table.find(hash, |number| self.all.get(*number).is_some_and(is_it)).copied() {
            paths.release(path);
            if let Some(shared) = self.all.get_mut(known) {
                shared.users += 1;
            }
            return known;
        }
        let number = self.all.insert(Shared { path, users: 1, predicate: leaf.predicate.clone() });
        let (all, hasher) = (&self.all, &self.hasher);
        self.table.insert_unique(hash, number, |number| {
            all.get(*number).map_or(0, |shared| digest(hasher, shared.path, &shared.predicate))
        });
        if searches(&leaf.predicate) {
            texts.insert(number, path, &leaf.predicate);
            if let Some(asks) = paths.asks_mut(path) {
                asks.texts += 1;
            }
        }
        number
    }

    /// Takes one user away, and forgets a predicate without any.
    pub(crate) fn release(&mut self, number: u32, paths: &mut Paths, texts: &mut Texts) {
        let Some(shared) = self.all.get_mut(number) else { return };
        shared.users -= 1;
        if shared.users > 0 {
            return;
        }
        let Some(shared) = self.all.remove(number) else { return };
        let hash = digest(&self.hasher, shared.path, &shared.predicate);
        if let Ok(entry) = self.table.find_entry(hash, |known| *known == number) {
            entry.remove();
        }
        if searches(&shared.predicate) {
            texts.remove(number, shared.path, &shared.predicate);
            if let Some(asks) = paths.asks_mut(shared.path) {
                asks.texts -= 1;
            }
        }
        paths.release(shared.path);
    }
}

/// How early a predicate should be asked among its siblings: what was not looked up comes first, and what is costly last.
pub(crate) fn turn(predicate: &Predicate) -> u8 {
    match predicate {
        Predicate::Compare(..)
        | Predicate::Before(_)
        | Predicate::After(_)
        | Predicate::Within(..)
        | Predicate::Outside(..) => 0,
        Predicate::Ne(_) | Predicate::In(_) | Predicate::NotIn(_) => 1,
        Predicate::Eq(_) | Predicate::Contains(_) | Predicate::Exists => 3,
        Predicate::Matches(_) => 4,
    }
}

fn digest(hasher: &RandomState, path: PathId, predicate: &Predicate) -> u64 {
    let mut state = hasher.build_hasher();
    (path, std::mem::discriminant(predicate)).hash(&mut state);
    match predicate {
        Predicate::Eq(literal) | Predicate::Ne(literal) | Predicate::Contains(literal) => {
            write_literal(literal, &mut state);
        }
        Predicate::In(list) | Predicate::NotIn(list) => sum(hasher, list).hash(&mut state),
        Predicate::Compare(comparison, bound) => {
            std::mem::discriminant(comparison).hash(&mut state);
            match bound {
                Bound::Number(number) => aql::key::number_key(*number).hash(&mut state),
                Bound::Decimal(text) => text.hash(&mut state),
                Bound::Instant(moment) => moment.hash(&mut state),
            }
        }
        Predicate::Matches(pattern) => pattern.source().hash(&mut state),
        Predicate::Before(moment) | Predicate::After(moment) => moment.hash(&mut state),
        Predicate::Within(start, end) | Predicate::Outside(start, end) => (start, end).hash(&mut state),
        Predicate::Exists => {}
    }
    state.finish()
}

/// The members of a list have no order.
fn sum(hasher: &RandomState, list: &List) -> u64 {
    list.literals().fold(0, |sum: u64, literal| {
        let mut state = hasher.build_hasher();
        write_literal(&literal, &mut state);
        sum.wrapping_add(state.finish())
    })
}
