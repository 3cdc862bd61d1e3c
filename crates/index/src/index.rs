//! RFC 0020 A.3 R2: the index as its users see it.
//!
//! Units stand in three places, in the order of their numbers: in segments, in a frozen part that is being written,
//! and in the fresh part. A question goes to all of them. Dead units keep their numbers; merging forgets the rest.

use crate::answer::{Answer, Bounds};
use crate::current::{self, CurrentWriter};
use crate::error::{Full, IndexError};
use crate::fresh::{Fresh, New};
use crate::part::Part;
use crate::paths::Paths;
use crate::plan::Question;
use crate::segment::{Segment, files};
use crate::work::{Lease, Made, Making, Merging, Sealing};
use crate::{GLANCE, Unit};
use aql::{Constraints, Tree};
use json::Node;
use roaring::{MultiOps, RoaringBitmap};
use std::borrow::Borrow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Unit numbers below this fit where a position in a file could stand.
pub const UNITS_MAX: Unit = 1 << 31;
/// Neighbours of similar size that are worth merging: fewer would be written more often, more would be asked longer.
const NEIGHBOURS: usize = 8;
/// Segments are not merged beyond this, so that positions in them fit into 31 bits.
const MERGED_BYTES_MAX: usize = 3 << 29;
/// A smaller segment is not written again for its dead.
const REWRITE_MIN: u32 = 1_024;

/// Documents by path and value.
#[derive(Debug, Default)]
pub struct Index {
    folder: Option<PathBuf>,
    paths: Paths,
    segments: Vec<Held<Arc<Segment>>>,
    frozen: Option<Held<Arc<Fresh>>>,
    fresh: Held<Fresh>,
    applied: u64,
    /// The change up to which the frozen part and the segments know everything.
    frozen_to: u64,
    /// The change up to which the segments know everything.
    sealed_to: u64,
    /// Whether documents came since the last change was said to be in.
    unconfirmed: bool,
    next_id: AtomicU64,
    sealing: Arc<AtomicBool>,
    merging: Arc<AtomicBool>,
}

/// A part with its living units.
#[derive(Debug, Default)]
struct Held<P> {
    part: P,
    living: RoaringBitmap,
}

impl<P> Held<P> {
    fn bury(&mut self, units: Range<Unit>) {
        if !units.is_empty() {
            self.living.remove_range(units);
        }
    }

    fn add_answer<Q: Part>(
        &self,
        sum: Answer<RoaringBitmap>,
        question: &Question<'_>,
        tree: &Tree,
    ) -> Result<Answer<RoaringBitmap>, IndexError>
    where
        P: Borrow<Q>,
    {
        if self.living.is_empty() {
            return Ok(sum);
        }
        Ok(sum.or(question.ask(tree, self.part.borrow(), &self.living)?))
    }
}

impl Index {
    /// Opens the index in a folder, which is made when it is not there.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        std::fs::create_dir_all(folder).map_err(IndexError::io(folder))?;
        let mut index = Self { folder: Some(folder.to_owned()), ..Self::default() };
        if let Some(current) = current::read(folder)? {
            index.applied = current.applied;
            (index.frozen_to, index.sealed_to) = (current.applied, current.applied);
            index.paths = current.paths;
            index.fresh.part = Fresh::starting_at(current.next_unit);
            for named in current.segments {
                let segment = Segment::open(folder, named.id, named.checksum, named.trigrams_len)?;
                *index.next_id.get_mut() = named.id.saturating_add(1).max(*index.next_id.get_mut());
                index.segments.push(Held { part: Arc::new(segment), living: named.living });
            }
        }
        current::sweep(folder, index.segments.iter().map(|held| held.part.id))?;
        Ok(index)
    }

    /// Removes all files of an index.
    pub fn discard(folder: &Path) -> Result<(), IndexError> {
        current::discard(folder)
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
    pub fn insert(&mut self, source: u64, fact: &[u8], document: Node<'_>) -> Result<(), Full> {
        self.insert_all(&[New { source, fact, document }])
    }

    /// Files documents, all of them or none; faster than one after the other.
    pub fn insert_all(&mut self, documents: &[New<'_>]) -> Result<(), Full> {
        let room = UNITS_MAX.saturating_sub(self.fresh.part.end());
        if documents.is_empty() {
            return Ok(());
        }
        if documents.len() > room as usize {
            return Err(Full);
        }
        let first = self.fresh.part.end();
        self.fresh.part.insert(&mut self.paths, documents);
        self.fresh.living.insert_range(first..self.fresh.part.end());
        self.unconfirmed = true;
        Ok(())
    }

    /// All units of a source stop being alive; saying it again changes nothing.
    pub fn remove(&mut self, source: u64) {
        for held in &mut self.segments {
            held.bury(held.part.units_of(source));
        }
        if let Some(held) = &mut self.frozen {
            held.bury(held.part.units_of(source));
        }
        self.fresh.bury(self.fresh.part.units_of(source));
    }

    /// Everything up to this change is in.
    pub fn advance(&mut self, sequence: u64) {
        self.applied = self.applied.max(sequence);
        self.unconfirmed = false;
    }

    /// The living units.
    pub fn alive(&self) -> RoaringBitmap {
        self.living().fold(RoaringBitmap::new(), |alive, units| alive | units)
    }

    /// How many living units there are.
    pub fn count(&self) -> u64 {
        self.living().map(RoaringBitmap::len).sum()
    }

    fn living(&self) -> impl Iterator<Item = &RoaringBitmap> {
        let sealed = self.segments.iter().map(|held| &held.living);
        sealed.chain(self.frozen.iter().map(|held| &held.living)).chain([&self.fresh.living])
    }

    /// How many units are not on the disk yet.
    pub fn unsealed(&self) -> usize {
        self.frozen.as_ref().map_or(0, |held| held.part.len()) + self.fresh.part.len()
    }

    /// Living units that certainly and possibly satisfy a constraint tree.
    pub fn enumerate(&self, constraints: &Constraints) -> Result<Bounds, IndexError> {
        self.ask(constraints, constraints.tree())
    }

    /// Living units that possibly satisfy a constraint tree, and those of them that perhaps do not.
    pub fn possible(&self, constraints: &Constraints) -> Result<(RoaringBitmap, RoaringBitmap), IndexError> {
        let Answer { certain, open } = self.answer(constraints, constraints.tree())?;
        Ok(if open.is_empty() { (certain, open) } else { (certain | &open, open) })
    }

    /// The same for one leaf by itself.
    pub fn leaf_bounds(&self, constraints: &Constraints, leaf: usize) -> Result<Bounds, IndexError> {
        self.ask(constraints, &Tree::Leaf(leaf))
    }

    fn ask(&self, constraints: &Constraints, tree: &Tree) -> Result<Bounds, IndexError> {
        self.answer(constraints, tree).map(Bounds::from)
    }

    fn answer(&self, constraints: &Constraints, tree: &Tree) -> Result<Answer<RoaringBitmap>, IndexError> {
        let question = Question::new(constraints.leaves(), &self.paths);
        let mut sum = Answer::default();
        for held in &self.segments {
            sum = held.add_answer::<Segment>(sum, &question, tree)?;
        }
        if let Some(held) = &self.frozen {
            sum = held.add_answer::<Fresh>(sum, &question, tree)?;
        }
        self.fresh.add_answer::<Fresh>(sum, &question, tree)
    }

    /// What the caller filed with a living unit.
    pub fn fact(&self, unit: Unit) -> Option<&[u8]> {
        match self.segment_of(unit) {
            Some(segment) => segment.fact(unit),
            None => {
                let frozen = self.frozen.as_ref().and_then(|held| held.part.fact(unit));
                frozen.or_else(|| self.fresh.part.fact(unit))
            }
        }
    }

    /// How the fact of a living unit begins, [`GLANCE`] bytes of it or all, and the unit's source.
    ///
    /// A short fact may be followed by zeros.
    pub fn glance(&self, unit: Unit) -> Option<(&[u8], u64)> {
        match self.segment_of(unit) {
            Some(segment) => segment.glance(unit),
            None => {
                let fact = self.fact(unit)?;
                Some((fact.get(..GLANCE).unwrap_or(fact), self.source(unit)?))
            }
        }
    }

    /// The source of a unit.
    pub fn source(&self, unit: Unit) -> Option<u64> {
        match self.segment_of(unit) {
            Some(segment) => segment.source(unit),
            None => {
                let frozen = self.frozen.as_ref().and_then(|held| held.part.source(unit));
                frozen.or_else(|| self.fresh.part.source(unit))
            }
        }
    }

    fn segment_of(&self, unit: Unit) -> Option<&Segment> {
        let position = self.segments.partition_point(|held| held.part.units.end <= unit);
        self.segments.get(position).map(|held| &*held.part)
    }

    /// The units of a source, dead or alive.
    pub fn units_of(&self, source: u64) -> impl Iterator<Item = Unit> {
        let sealed = self.segments.iter().map(move |held| held.part.units_of(source));
        let frozen = self.frozen.iter().map(move |held| held.part.units_of(source));
        sealed.chain(frozen).chain([self.fresh.part.units_of(source)]).flatten()
    }

    /// Roughly the bytes of memory that it holds.
    pub fn memory(&self) -> usize {
        let sealed = self.segments.iter().map(|held| held.part.memory()).sum::<usize>();
        let frozen = self.frozen.as_ref().map_or(0, |held| held.part.memory());
        sealed + frozen + self.fresh.part.memory() + self.paths.memory()
    }

    /// Whether [`Index::freeze`] would freeze something, or give back what was frozen before.
    pub fn is_ready(&self, at_least: usize) -> bool {
        self.frozen.is_some() || (self.fresh.part.len() >= at_least.max(1) && !self.unconfirmed)
    }

    /// Freezes the fresh part when it holds so many units and no change is half in; run what comes back and adopt it.
    ///
    /// One part is written at a time. A part whose writing failed comes back first, whatever its size.
    pub fn freeze(&mut self, at_least: usize) -> Option<Sealing> {
        if !self.is_ready(at_least) {
            return None;
        }
        let making = self.making(&self.sealing)?;
        if self.frozen.is_none() {
            let fresh = Held { part: Fresh::starting_at(self.fresh.part.end()), living: RoaringBitmap::new() };
            let Held { part, living } = std::mem::replace(&mut self.fresh, fresh);
            self.frozen = Some(Held { part: Arc::new(part), living });
            self.frozen_to = self.applied;
        }
        self.frozen.as_ref().map(|held| Sealing { making, frozen: held.part.clone() })
    }

    /// Neighbouring segments of similar size, or one that is mostly dead; nothing while others are being merged.
    pub fn mergeable(&self) -> Option<Merging> {
        self.merging(self.similar().or_else(|| self.mostly_dead())?)
    }

    /// As many segments as may become one; nothing when there is only one, or while others are being merged.
    pub fn merge_all(&self) -> Option<Merging> {
        let runs = (0..self.segments.len()).map(|start| self.fitting(start..self.segments.len()));
        self.merging(runs.max_by_key(|run| run.len()).filter(|run| run.len() > 1)?)
    }

    /// The smallest neighbours first: each level is four times as large as the one before.
    fn similar(&self) -> Option<Range<usize>> {
        let level = |held: &Held<Arc<Segment>>| held.part.units.len().max(1).ilog(4);
        let levels: Vec<u32> = self.segments.iter().map(level).collect();
        let mut tried = levels.clone();
        tried.sort_unstable();
        tried.dedup();
        tried.into_iter().find_map(|limit| {
            let starts = (0..levels.len()).filter(|start| levels.get(*start).is_some_and(|level| *level <= limit));
            let run = |start: usize| {
                let len = levels.iter().skip(start).take_while(|level| **level <= limit).count();
                self.fitting(start..start + len)
            };
            starts.map(run).find(|run| run.len() >= NEIGHBOURS)
        })
    }

    /// The beginning of a run that may become one segment.
    fn fitting(&self, run: Range<usize>) -> Range<usize> {
        let sizes = self.segments.iter().skip(run.start).take(run.len()).scan(0, |sum, held| {
            *sum += held.part.size();
            Some(*sum)
        });
        run.start..run.start + sizes.take_while(|sum| *sum <= MERGED_BYTES_MAX).count()
    }

    fn mostly_dead(&self) -> Option<Range<usize>> {
        let is_mostly_dead = |held: &Held<Arc<Segment>>| {
            held.part.filed >= REWRITE_MIN && held.living.len() * 2 < u64::from(held.part.filed)
        };
        self.segments.iter().position(is_mostly_dead).map(|position| position..position + 1)
    }

    fn merging(&self, run: Range<usize>) -> Option<Merging> {
        let making = self.making(&self.merging)?;
        let held = self.segments.get(run)?;
        let living = held.iter().map(|held| &held.living).union();
        let segments = held.iter().map(|held| held.part.clone()).collect();
        Some(Merging { making, segments, living })
    }

    fn making(&self, taken: &Arc<AtomicBool>) -> Option<Making> {
        let lease = Lease::take(taken)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Some(Making { lease, folder: self.folder.clone(), id, many: self.paths.many() })
    }

    /// Puts a made segment in the place of what it was made from, and makes that durable.
    pub fn adopt(&mut self, made: Made) -> Result<(), IndexError> {
        let units = made.segment.units.clone();
        let frozen = self.frozen.take_if(|held| (held.part.first()..held.part.end()) == units);
        if let Some(frozen) = frozen {
            self.segments.push(Held { part: Arc::new(made.segment), living: frozen.living });
            self.sealed_to = self.frozen_to;
            return self.save();
        }
        let replaced = self.replace(made.segment)?;
        self.save()?;
        let folder = self.folder.iter();
        folder.flat_map(|folder| replaced.iter().flat_map(|id| files(folder, *id))).try_for_each(current::remove)
    }

    /// Puts a segment in the place of those that have the same units; tells which ones those were.
    fn replace(&mut self, segment: Segment) -> Result<Vec<u64>, IndexError> {
        let start = self.segments.iter().position(|held| held.part.units.start == segment.units.start);
        let end = self.segments.iter().position(|held| held.part.units.end == segment.units.end);
        let (Some(start), Some(end)) = (start, end.filter(|end| start.is_some_and(|start| start <= *end))) else {
            return Err(IndexError::Misplaced);
        };
        let mut living = RoaringBitmap::new();
        let mut replaced = Vec::new();
        for held in self.segments.drain(start..=end) {
            living |= held.living;
            replaced.push(held.part.id);
        }
        self.segments.insert(start, Held { part: Arc::new(segment), living });
        Ok(replaced)
    }

    /// Makes durable what is known about the segments; adopting does it, and a clean stop after nothing but removals.
    pub fn save(&mut self) -> Result<(), IndexError> {
        if self.frozen.is_none() && self.fresh.part.len() == 0 {
            self.sealed_to = self.applied;
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        let next_unit = self.frozen.as_ref().map_or(self.fresh.part.first(), |held| held.part.first());
        let mut writer = CurrentWriter::new(self.sealed_to, next_unit, &self.paths, self.segments.len());
        for Held { part, living } in &self.segments {
            writer.segment(part.id, part.checksum, part.trigrams.len, living)?;
        }
        writer.replace(folder)
    }
}
