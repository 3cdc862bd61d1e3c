//! RFC 0020 A.3 R2: the index.

use crate::answer::{Answer, Bounds};
use crate::error::{Full, IndexError};
use crate::fresh::Fresh;
use crate::paths::Paths;
use crate::plan::Question;
use crate::{LABELS_MAX, Label, Unit};
use aql::{Constraints, Tree};
use json::Node;
use roaring::RoaringBitmap;
use std::path::Path;

/// Unit numbers below this fit where a position in a file could stand.
const UNITS_MAX: usize = 1 << 31;

/// Documents by path and value.
#[derive(Debug, Default)]
pub struct Index {
    paths: Paths,
    fresh: Held<Fresh>,
    applied: u64,
}

/// A part with its living units.
#[derive(Debug, Default)]
struct Held<P> {
    part: P,
    living: [RoaringBitmap; LABELS_MAX],
}

impl<P> Held<P> {
    fn living(&self, label: Label) -> Option<&RoaringBitmap> {
        self.living.get(usize::from(label)).filter(|units| !units.is_empty())
    }

    fn bury(&mut self, units: std::ops::Range<Unit>) {
        if !units.is_empty() {
            self.living.iter_mut().for_each(|living| {
                living.remove_range(units.clone());
            });
        }
    }
}

impl Index {
    /// Opens the index in a folder, which is made when it is not there.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        std::fs::create_dir_all(folder).map_err(IndexError::io(folder))?;
        Ok(Self::default())
    }

    /// Removes all files of an index.
    pub fn discard(folder: &Path) -> Result<(), IndexError> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(IndexError::io(folder)(error)),
            _ => Ok(()),
        }
    }

    /// An index without files.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// The change up to which it has read.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Files a document; sources rise, and several documents may share one.
    pub fn insert(&mut self, source: u64, label: Label, fact: &[u8], document: Node<'_>) -> Result<Unit, Full> {
        let living = self.fresh.living.get_mut(usize::from(label)).ok_or(Full)?;
        if self.fresh.part.end() as usize >= UNITS_MAX {
            return Err(Full);
        }
        let unit = self.fresh.part.insert(&mut self.paths, source, fact, document);
        living.insert(unit);
        Ok(unit)
    }

    /// All units of a source stop being alive; asking for it again changes nothing.
    pub fn remove(&mut self, source: u64) {
        let units = self.fresh.part.units_of(source);
        self.fresh.bury(units);
    }

    /// Everything up to this change is in.
    pub fn advance(&mut self, sequence: u64) {
        self.applied = self.applied.max(sequence);
    }

    /// The living units of a collection.
    pub fn alive(&self, label: Label) -> RoaringBitmap {
        self.fresh.living(label).cloned().unwrap_or_default()
    }

    /// Living units that certainly and possibly satisfy a constraint tree.
    pub fn enumerate(&self, constraints: &Constraints, label: Label) -> Result<Bounds, IndexError> {
        self.ask(constraints, constraints.tree(), label)
    }

    /// The same for one leaf by itself.
    pub fn leaf_bounds(&self, constraints: &Constraints, leaf: usize, label: Label) -> Result<Bounds, IndexError> {
        self.ask(constraints, &Tree::Leaf(leaf), label)
    }

    fn ask(&self, constraints: &Constraints, tree: &Tree, label: Label) -> Result<Bounds, IndexError> {
        let question = Question::new(constraints.leaves(), &self.paths);
        let mut sum = Answer::default();
        if let Some(living) = self.fresh.living(label) {
            sum = sum.or(question.ask(tree, &self.fresh.part, living)?);
        }
        Ok(sum.into())
    }

    /// What the caller filed with a living unit.
    pub fn fact(&self, unit: Unit) -> Option<&[u8]> {
        self.fresh.part.fact(unit)
    }

    /// The source of a unit.
    pub fn source(&self, unit: Unit) -> Option<u64> {
        self.fresh.part.source(unit)
    }

    /// The units of a source, dead or alive.
    pub fn units_of(&self, source: u64) -> impl Iterator<Item = Unit> {
        self.fresh.part.units_of(source)
    }

    /// Roughly the bytes of memory that it holds.
    pub fn memory(&self) -> usize {
        self.fresh.part.memory()
    }
}

/// A part that waits to be written.
#[derive(Debug)]
pub enum Sealing {}

/// Segments that wait to be merged.
#[derive(Debug)]
pub enum Merging {}

/// A segment that waits to be adopted.
#[derive(Debug)]
pub enum Made {}

impl Sealing {
    /// Writes the segment.
    pub fn run(self) -> Result<Made, IndexError> {
        match self {}
    }
}

impl Merging {
    /// Writes the merged segment.
    pub fn run(self) -> Result<Made, IndexError> {
        match self {}
    }
}

impl Index {
    /// Freezes the fresh part when it holds at least so many units.
    pub fn freeze(&mut self, _at_least: usize) -> Option<Sealing> {
        None
    }

    /// Neighbouring segments of similar size.
    pub fn mergeable(&self) -> Option<Merging> {
        None
    }

    /// All segments.
    pub fn merge_all(&self) -> Option<Merging> {
        None
    }

    /// Takes a made segment in.
    pub fn adopt(&mut self, made: Made) -> Result<(), IndexError> {
        match made {}
    }
}
