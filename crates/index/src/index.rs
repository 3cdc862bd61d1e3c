//! RFC 0020 A.3 R2: the index, and the two bounds of a constraint tree.

use crate::column::Column;
use crate::key::Filed;
use crate::leaf;
use crate::paths::{PathId, Paths};
use aql::{Constraints, Leaf, Tree};
use json::Node;
use roaring::RoaringBitmap;

/// Records by path and value. Records have numbers; their meaning is the caller's.
#[derive(Clone, Debug, Default)]
pub struct Index {
    paths: Paths,
    columns: Vec<Column>,
    records: RoaringBitmap,
    /// Records with paths that found no room.
    loose: RoaringBitmap,
}

/// Two sets around an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Records that satisfy the question.
    pub certain: RoaringBitmap,
    /// Records that may satisfy it; no other does.
    pub possible: RoaringBitmap,
}

impl Bounds {
    pub(crate) fn exact(set: RoaringBitmap) -> Self {
        Self { possible: set.clone(), certain: set }
    }

    pub(crate) fn possible(set: RoaringBitmap) -> Self {
        Self { certain: RoaringBitmap::new(), possible: set }
    }

    /// Adds records about which nothing certain is known; what is certain stays possible.
    pub(crate) fn or_possible(mut self, set: &RoaringBitmap) -> Self {
        self.possible |= set;
        self.possible |= &self.certain;
        self
    }
}

impl Index {
    /// Files a record under a number that is not in use.
    pub fn insert(&mut self, number: u32, record: Node<'_>) {
        self.records.insert(number);
        if !self.file(number, record, Paths::ROOT, true) {
            self.loose.insert(number);
        }
    }

    /// Takes a record out again; it must be the one that was filed.
    pub fn remove(&mut self, number: u32, record: Node<'_>) {
        if self.records.remove(number) {
            self.file(number, record, Paths::ROOT, false);
            self.loose.remove(number);
        }
    }

    /// All records.
    pub fn records(&self) -> &RoaringBitmap {
        &self.records
    }

    /// Files a value and everything below it; says whether all of it found room.
    fn file(&mut self, number: u32, node: Node<'_>, path: PathId, add: bool) -> bool {
        if self.columns.len() <= path {
            self.columns.resize_with(path + 1, Column::default);
        }
        if let Some(column) = self.columns.get_mut(path) {
            column.set(number, &Filed::of(node), add);
        }
        let mut room = true;
        if node.is_object() {
            for (name, child) in node.members() {
                room &= self.paths.member(path, name).is_some_and(|path| self.file(number, child, path, add));
            }
        } else {
            for child in node.elements() {
                room &= self.paths.element(path).is_some_and(|path| self.file(number, child, path, add));
            }
        }
        room
    }

    /// The records that certainly and possibly satisfy a constraint tree.
    pub fn enumerate(&self, constraints: &Constraints) -> Bounds {
        self.tree(constraints.tree(), constraints.leaves())
    }

    fn tree(&self, tree: &Tree, leaves: &[Leaf]) -> Bounds {
        match tree {
            Tree::AllOf(parts) => {
                let all = Bounds::exact(self.records.clone());
                parts.iter().map(|part| self.tree(part, leaves)).fold(all, |mut common, part| {
                    common.certain &= part.certain;
                    common.possible &= part.possible;
                    common
                })
            }
            Tree::AnyOf(parts) => {
                parts.iter().map(|part| self.tree(part, leaves)).fold(Bounds::default(), |mut sum, part| {
                    sum.certain |= part.certain;
                    sum.possible |= part.possible;
                    sum
                })
            }
            // What is not possible certainly fails, and what is certain cannot.
            Tree::Not(inner) => {
                let inner = self.tree(inner, leaves);
                Bounds { certain: &self.records - &inner.possible, possible: &self.records - &inner.certain }
            }
            Tree::Leaf(number) => {
                leaves.get(*number).map_or_else(|| Bounds::possible(self.records.clone()), |leaf| self.leaf(leaf))
            }
        }
    }

    fn leaf(&self, leaf: &Leaf) -> Bounds {
        let mut sum = Bounds::default();
        for reached in self.paths.reached(&leaf.path) {
            let Some(column) = self.columns.get(reached.path) else { continue };
            let elements = self.paths.known_element(reached.path).and_then(|path| self.columns.get(path));
            let found = leaf::bounds(&leaf.predicate, column, elements, self.paths.is_many(reached.path));
            if reached.exact {
                sum.certain |= found.certain;
                sum.possible |= found.possible;
            } else {
                // One element is meant and all are filed together: a value that differs may be the one.
                let negative = matches!(leaf.predicate, aql::Predicate::Ne(_) | aql::Predicate::NotIn(_));
                sum.possible |= if negative { &column.present } else { &found.possible };
            }
        }
        sum.certain -= &self.loose;
        sum.possible |= &self.loose;
        sum
    }
}
