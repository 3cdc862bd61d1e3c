//! Neighbouring segments become one: the same values with the same units, without those that have died.

use crate::Unit;
use crate::error::IndexError;
use crate::keyed::{Keyed, KeyedWriter};
use crate::part::{Part, Set, Table};
use crate::paths::PathId;
use crate::posting::Gathered;
use crate::segment::{Builder, ColumnBuilder, SealedColumn, Segment};
use crate::texts::{TextsWriter, Walk};
use crate::trigram::TrigramsWalk;
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap};
use std::path::Path;
use std::sync::Arc;

/// Merges segments whose units follow one another; `living` are the units that stay.
pub(crate) fn merge(
    segments: &[Arc<Segment>],
    living: &RoaringBitmap,
    many: impl Fn(PathId) -> bool,
    folder: Option<&Path>,
    id: u64,
) -> Result<Segment, IndexError> {
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Err(IndexError::Misplaced) };
    let units = first.units.start..last.units.end;
    // While nothing has died, nothing needs to be looked up.
    let some_died = living.len() < units.len() as u64;
    let merger = Merger { segments, living: some_died.then_some(living) };
    let size = segments.iter().map(|segment| segment.size()).sum();
    let mut builder = Builder::new(folder, id, units.clone(), size)?;
    let paths: BTreeSet<u32> = segments.iter().flat_map(|segment| &segment.columns).map(|column| column.path).collect();
    for path in paths {
        merger.column(path, many(path as PathId), &mut builder)?;
    }
    let mut loose = RoaringBitmap::new();
    segments.iter().for_each(|segment| loose |= segment.loose());
    let fact = |unit: Unit| {
        let segment = segments.iter().find(|segment| segment.units.contains(&unit))?;
        if living.contains(unit) { segment.fact(unit) } else { None }
    };
    let facts = units.clone().map(|unit| fact(unit).unwrap_or_default());
    let sources =
        segments.iter().flat_map(|segment| segment.units.clone().map(|unit| segment.source(unit).unwrap_or_default()));
    builder.finish(loose & living, living.len() as u32, facts, sources)
}

struct Merger<'a> {
    segments: &'a [Arc<Segment>],
    living: Option<&'a RoaringBitmap>,
}

impl Merger<'_> {
    fn column(&self, path: u32, many: bool, builder: &mut Builder) -> Result<(), IndexError> {
        let columns = self.segments.iter().filter_map(|segment| segment.column(path as PathId));
        let columns: Vec<SealedColumn<'_>> = columns.collect();
        let present = self.set(&columns, Set::Present)?;
        if present.is_empty() {
            return Ok(());
        }
        let mut builder = builder.column(path, many);
        builder.set(Set::Present, present)?;
        for set in Set::ALL.into_iter().filter(|set| *set != Set::Present) {
            builder.set(set, self.set(&columns, set)?)?;
        }
        for table in Table::ALL {
            self.table(&columns, table, &mut builder)?;
        }
        self.texts(&columns, &mut builder)?;
        self.trigrams(&columns, &mut builder)?;
        builder.finish()
    }

    fn set(&self, columns: &[SealedColumn<'_>], set: Set) -> Result<RoaringBitmap, IndexError> {
        let mut units = Gathered::default();
        for column in columns {
            column.checked(column.stored_set(set).and_then(|stored| units.add_stored(stored, self.living)))?;
        }
        Ok(units.into_set())
    }

    fn table(
        &self,
        columns: &[SealedColumn<'_>],
        table: Table,
        builder: &mut ColumnBuilder<'_>,
    ) -> Result<(), IndexError> {
        let mut inputs = Vec::new();
        for column in columns {
            let keyed = column.checked(column.table(table))?;
            inputs.extend(KeyedWalk::new(keyed, *column));
        }
        let (mut writer, mut units) = (KeyedWriter::default(), Gathered::default());
        while let Some(key) = inputs.iter().map(|input| input.key).min() {
            units.clear();
            for input in inputs.iter_mut().filter(|input| input.key == key) {
                let stored = input.keyed.stored(input.entry);
                input.column.checked(stored.and_then(|stored| units.add_stored(stored, self.living)))?;
                input.step();
            }
            inputs.retain(|input| !input.is_done());
            writer.push(key, &mut units, &mut builder.builder.out)?;
        }
        builder.table(table, writer)
    }

    fn texts(&self, columns: &[SealedColumn<'_>], builder: &mut ColumnBuilder<'_>) -> Result<(), IndexError> {
        let mut inputs = BinaryHeap::new();
        for (number, column) in columns.iter().enumerate() {
            let mut walk = column.checked(column.all_texts())?.walk();
            if column.checked(walk.next())? {
                inputs.push(TextsWalk { walk, column: *column, number });
            }
        }
        let (mut writer, mut units, mut text) = (TextsWriter::default(), Gathered::default(), Vec::new());
        while let Some(least) = inputs.peek() {
            text.clear();
            text.extend_from_slice(least.walk.text());
            units.clear();
            let mut covered = true;
            while let Some(mut input) = inputs.peek_mut().filter(|input| input.walk.text() == text) {
                let TextsWalk { walk, column, .. } = &mut *input;
                column.checked(walk.stored().and_then(|stored| units.add_stored(stored, self.living)))?;
                // Trigrams lead to all units only if they did so in every segment.
                covered &= walk.is_covered();
                if !column.checked(walk.next())? {
                    PeekMut::pop(input);
                }
            }
            writer.push(&text, covered, &mut units, &mut builder.builder.out)?;
        }
        builder.texts(writer)
    }

    fn trigrams(&self, columns: &[SealedColumn<'_>], builder: &mut ColumnBuilder<'_>) -> Result<(), IndexError> {
        let mut inputs = Vec::new();
        for column in columns {
            inputs.push(TrigramsWalk::new(column.checked(column.trigrams())?)?);
        }
        let mut units = Vec::new();
        while let Some(trigram) = inputs.iter().filter_map(TrigramsWalk::trigram).min() {
            units.clear();
            for input in inputs.iter_mut().filter(|input| input.trigram() == Some(trigram)) {
                units.append(&mut input.units()?);
                input.step()?;
            }
            if let Some(living) = self.living {
                units.retain(|unit| living.contains(*unit));
            }
            builder.builder.trigrams.push(trigram, &units)?;
        }
        Ok(())
    }
}

/// A walk through the texts of a segment. The greatest has the least text; of those with the same one, it is of the
/// first segment, whose units come first.
struct TextsWalk<'a> {
    walk: Walk<'a>,
    column: SealedColumn<'a>,
    number: usize,
}

impl Ord for TextsWalk<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.walk.text().cmp(self.walk.text()).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for TextsWalk<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TextsWalk<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for TextsWalk<'_> {}

/// A walk through the keys of a table that has some.
struct KeyedWalk<'a> {
    keyed: Keyed<'a>,
    column: SealedColumn<'a>,
    entry: usize,
    key: u64,
}

impl<'a> KeyedWalk<'a> {
    fn new(keyed: Keyed<'a>, column: SealedColumn<'a>) -> Option<Self> {
        keyed.key(0).map(|key| Self { keyed, column, entry: 0, key })
    }

    fn step(&mut self) {
        self.entry += 1;
        self.key = self.keyed.key(self.entry).unwrap_or_default();
    }

    fn is_done(&self) -> bool {
        self.entry >= self.keyed.len()
    }
}
