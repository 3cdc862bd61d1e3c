//! RFC 0020 A.3 R2: the part of the index that still grows, in memory.

use crate::Unit;
use crate::deal::{add, deal, starts};
use crate::error::IndexError;
use crate::key::{Filed, Ordered, TEXT_MAX, long_key};
use crate::part::{Column, Lookup, Part, Scan, Set, Table, Verdict};
use crate::paths::{PathId, Paths};
use crate::posting::{Growing, Rising};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use json::Node;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::BuildHasher;
use std::ops::Range;

/// Documents whose values are filed together.
const TOGETHER: usize = 128;

/// A document to be filed.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Where it came from; sources rise, and several documents may share one.
    pub source: u64,
    /// What the caller wants to know of it at a glance.
    pub fact: &'a [u8],
    /// What is filed.
    pub document: Node<'a>,
}

/// A value on its way into its column.
struct Value<'a> {
    path: PathId,
    unit: Unit,
    filed: Filed<'a>,
}

/// Lists a value and everything below it; says whether there are paths for all of it.
fn list<'a>(paths: &mut Paths, unit: Unit, node: Node<'a>, path: PathId, values: &mut Vec<Value<'a>>) -> bool {
    let filed = Filed::of(node);
    values.push(Value { path, unit, filed });
    let mut room = true;
    match filed {
        Filed::Object => {
            for (name, child) in node.members() {
                room &= paths.member(path, name).is_some_and(|path| list(paths, unit, child, path, values));
            }
        }
        Filed::Array if !node.is_empty() => {
            match paths.element(path) {
                Some(path) => node.elements().for_each(|child| room &= list(paths, unit, child, path, values)),
                None => room = false,
            }
            if let Some(child) = node.elements().next().filter(|_| paths.has_first(path)) {
                room &= paths.first(path).is_some_and(|first| list(paths, unit, child, first, values));
            }
        }
        Filed::Array | Filed::Null | Filed::Bool(_) | Filed::Number(_) | Filed::Text(_) => {}
    }
    room
}

/// Units that were filed since the last part was frozen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fresh {
    first: Unit,
    pub(crate) columns: Vec<Option<Box<FreshColumn>>>,
    pub(crate) loose: RoaringBitmap,
    pub(crate) sources: Vec<u64>,
    facts: Vec<u8>,
    /// Where the fact of each unit ends.
    ends: Vec<usize>,
    /// Roughly the bytes that the columns hold.
    memory: usize,
}

/// Units by what they have at one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreshColumn {
    pub(crate) sets: [Rising; Set::COUNT],
    pub(crate) tables: [BTreeMap<u64, Growing>; Table::COUNT],
    texts: HashTable<FreshText>,
    /// Long texts; only their trigrams will be kept.
    longs: Vec<(Unit, Range<usize>)>,
    /// All texts, one after the other, so that none is allocated by itself.
    written: String,
    hasher: RandomState,
}

/// A text that is filed whole, and its units.
#[derive(Clone, Debug)]
struct FreshText {
    start: usize,
    len: u8,
    units: Growing,
}

impl Fresh {
    pub(crate) fn starting_at(first: Unit) -> Self {
        Self { first, ..Self::default() }
    }

    pub(crate) fn first(&self) -> Unit {
        self.first
    }

    pub(crate) fn len(&self) -> usize {
        self.sources.len()
    }

    pub(crate) fn end(&self) -> Unit {
        self.first + self.len() as Unit
    }

    /// Files documents under the next numbers.
    pub(crate) fn insert(&mut self, paths: &mut Paths, documents: &[New<'_>]) {
        let mut values = Vec::new();
        for together in documents.chunks(TOGETHER) {
            for new in together {
                let unit = self.end();
                self.sources.push(new.source);
                self.facts.extend_from_slice(new.fact);
                self.ends.push(self.facts.len());
                if !list(paths, unit, new.document, Paths::ROOT, &mut values) {
                    self.loose.insert(unit);
                }
            }
            self.file(&values, together.len() > 1);
            values.clear();
        }
    }

    /// Files values, each column by itself where they are of many documents: then a column is in the processor's reach
    /// when its next value comes.
    fn file(&mut self, values: &[Value<'_>], by_column: bool) {
        if !by_column {
            values.iter().for_each(|value| self.memory += self.column_mut(value.path).insert(value.unit, value.filed));
            return;
        }
        let mut places = vec![0; values.iter().map(|value| value.path + 1).max().unwrap_or_default()];
        values.iter().for_each(|value| add(&mut places, value.path));
        starts(&mut places);
        let mut order = vec![0_u32; values.len()];
        values.iter().zip(0..).for_each(|(value, number)| deal(&mut order, &mut places, value.path, number));
        let mut ordered = order.iter().filter_map(|number| values.get(*number as usize)).peekable();
        while let Some(first) = ordered.next() {
            let column = self.column_mut(first.path);
            let mut memory = column.insert(first.unit, first.filed);
            while let Some(value) = ordered.next_if(|value| value.path == first.path) {
                memory += column.insert(value.unit, value.filed);
            }
            self.memory += memory;
        }
    }

    fn column_mut(&mut self, path: PathId) -> &mut FreshColumn {
        if self.columns.len() <= path {
            self.columns.resize_with(path + 1, || None);
        }
        #[expect(clippy::indexing_slicing, reason = "the columns were just made to reach this far")]
        self.columns[path].get_or_insert_default()
    }

    pub(crate) fn fact(&self, unit: Unit) -> Option<&[u8]> {
        let position = unit.checked_sub(self.first)? as usize;
        let start = position.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.facts.get(start..*self.ends.get(position)?)
    }

    pub(crate) fn source(&self, unit: Unit) -> Option<u64> {
        self.sources.get(unit.checked_sub(self.first)? as usize).copied()
    }

    /// The units of a source; they are neighbours, because sources rise.
    pub(crate) fn units_of(&self, source: u64) -> Range<Unit> {
        let start = self.sources.partition_point(|known| *known < source) as Unit;
        let end = self.sources.partition_point(|known| *known <= source) as Unit;
        self.first + start..self.first + end
    }

    /// Roughly the bytes it holds.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.facts.len() + self.len() * 16 + self.columns.len() * size_of::<FreshColumn>()
    }
}

impl Part for Fresh {
    type Column<'a> = &'a FreshColumn;

    fn len(&self) -> u64 {
        self.sources.len() as u64
    }

    fn column(&self, path: PathId) -> Option<&FreshColumn> {
        self.columns.get(path)?.as_deref()
    }

    fn common(&self, _: &[(PathId, Lookup<'_>)], _: &[(PathId, u64)]) -> Result<Option<Vec<Unit>>, IndexError> {
        Ok(None)
    }

    fn loose(&self) -> &RoaringBitmap {
        &self.loose
    }
}

impl FreshText {
    fn of<'a>(&self, written: &'a str) -> &'a str {
        written.get(self.start..self.start + usize::from(self.len)).unwrap_or_default()
    }
}

/// Roughly what one more unit costs in a set or a list, and what a new key or text costs beside itself.
const UNIT_MEMORY: usize = 4;
const ENTRY_MEMORY: usize = 64;

impl FreshColumn {
    /// Files a value; tells roughly the bytes that this takes.
    fn insert(&mut self, unit: Unit, value: Filed<'_>) -> usize {
        let present = self.mark(Set::Present, unit);
        present
            + match value {
                Filed::Null => self.mark(Set::Nulls, unit),
                Filed::Bool(true) => self.mark(Set::Trues, unit),
                Filed::Bool(false) => self.mark(Set::Falses, unit),
                Filed::Array => self.mark(Set::Arrays, unit),
                Filed::Object => self.mark(Set::Objects, unit),
                Filed::Number(key) => self.key(Table::Numbers, key, unit),
                Filed::Text(text) => self.insert_text(unit, text),
            }
    }

    fn insert_text(&mut self, unit: Unit, text: &str) -> usize {
        let filed = if text.len() > TEXT_MAX {
            let start = self.write(text);
            self.longs.push((unit, start..start + text.len()));
            self.mark(Set::Longs, unit) + self.key(Table::Longs, long_key(text), unit) + text.len()
        } else {
            self.whole_text(unit, text)
        };
        filed
            + match Ordered::of(text) {
                Some(Ordered::Decimal(key)) => self.key(Table::Decimals, key, unit),
                Some(Ordered::Moment(key)) => self.key(Table::Moments, key, unit),
                None => 0,
            }
    }

    fn whole_text(&mut self, unit: Unit, text: &str) -> usize {
        let hash = self.hasher.hash_one(text);
        if let Some(known) = self.texts.find_mut(hash, |known| known.of(&self.written) == text) {
            known.units.push(unit);
            return UNIT_MEMORY;
        }
        let new = FreshText { start: self.write(text), len: text.len() as u8, units: Growing::One(unit) };
        self.texts.insert_unique(hash, new, |known| self.hasher.hash_one(known.of(&self.written)));
        text.len() + ENTRY_MEMORY
    }

    fn write(&mut self, text: &str) -> usize {
        self.written.push_str(text);
        self.written.len() - text.len()
    }

    fn find(&self, text: &str) -> Option<&Growing> {
        let hash = self.hasher.hash_one(text);
        self.texts.find(hash, |known| known.of(&self.written) == text).map(|known| &known.units)
    }

    /// The texts that are filed whole, in no order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &Growing)> {
        self.texts.iter().map(|text| (text.of(&self.written), &text.units))
    }

    /// Texts that are too long for that, each with its unit, in the order of units.
    pub(crate) fn longs(&self) -> impl Iterator<Item = (Unit, &str)> {
        self.longs.iter().map(|(unit, range)| (*unit, self.written.get(range.clone()).unwrap_or_default()))
    }

    fn mark(&mut self, set: Set, unit: Unit) -> usize {
        if let Some(units) = self.sets.get_mut(set as usize) {
            units.push(unit);
        }
        UNIT_MEMORY
    }

    fn key(&mut self, table: Table, key: u64, unit: Unit) -> usize {
        let Some(table) = self.tables.get_mut(table as usize) else { return 0 };
        match table.entry(key) {
            Entry::Occupied(mut known) => {
                known.get_mut().push(unit);
                UNIT_MEMORY
            }
            Entry::Vacant(new) => {
                new.insert(Growing::One(unit));
                ENTRY_MEMORY
            }
        }
    }

    fn growing(&self, at: Lookup<'_>) -> Option<&Growing> {
        match at {
            Lookup::Set(_) => None,
            Lookup::Key(table, key) => self.tables.get(table as usize)?.get(&key),
            Lookup::Text(text) => self.find(text),
        }
    }

    fn entries(&self, table: Table, first: u64, last: u64) -> impl Iterator<Item = &Growing> {
        let table = self.tables.get(table as usize).filter(|_| first <= last);
        table.into_iter().flat_map(move |table| table.range(first..=last)).map(|(_, units)| units)
    }
}

impl Column for &FreshColumn {
    fn units(&self, at: Lookup<'_>) -> Result<RoaringBitmap, IndexError> {
        Ok(match at {
            Lookup::Set(set) => self.sets.get(set as usize).map(Rising::to_set).unwrap_or_default(),
            at => self.growing(at).map(Growing::to_set).unwrap_or_default(),
        })
    }

    fn count(&self, at: Lookup<'_>) -> u64 {
        match at {
            Lookup::Set(set) => self.sets.get(set as usize).map_or(0, Rising::len),
            at => self.growing(at).map_or(0, Growing::len),
        }
    }

    fn among(&self, at: Lookup<'_>, units: &[Unit]) -> Result<Vec<Unit>, IndexError> {
        let has = |unit: &Unit| match at {
            Lookup::Set(set) => self.sets.get(set as usize).is_some_and(|units| units.contains(*unit)),
            at => self.growing(at).is_some_and(|units| units.contains(*unit)),
        };
        Ok(units.iter().copied().filter(has).collect())
    }

    fn between(&self, table: Table, first: u64, last: u64) -> Result<RoaringBitmap, IndexError> {
        let mut units = Vec::new();
        let mut set = RoaringBitmap::new();
        for entry in self.entries(table, first, last) {
            match entry {
                Growing::One(unit) => units.push(*unit),
                Growing::Few(few) => units.extend_from_slice(few),
                Growing::Many(many) => many.add_to(&mut set),
            }
        }
        units.sort_unstable();
        set |= RoaringBitmap::from_iter(units);
        Ok(set)
    }

    fn between_len(&self, table: Table, first: u64, last: u64) -> u64 {
        // Counting would cost as much as asking, and this part is small.
        let entries = self.tables.get(table as usize).map_or(0, BTreeMap::len) as u64;
        if first > last { 0 } else { entries }
    }

    /// This part is small.
    fn between_among(&self, _: Table, _: u64, _: u64, _: &[Unit]) -> Result<Option<Vec<Unit>>, IndexError> {
        Ok(None)
    }

    fn texts(&self) -> u64 {
        self.texts.len() as u64
    }

    fn scan(
        &self,
        scan: Scan<'_>,
        ask: &mut dyn FnMut(&str) -> Verdict,
    ) -> Result<(RoaringBitmap, RoaringBitmap), IndexError> {
        let (mut yes, mut unknown) = (RoaringBitmap::new(), RoaringBitmap::new());
        let prefix = match scan {
            Scan::Prefix(prefix) => prefix,
            Scan::Uncovered => "",
        };
        for (text, units) in FreshColumn::texts(self).filter(|(text, _)| text.starts_with(prefix)) {
            match ask(text) {
                Verdict::Yes => units.add_to(&mut yes),
                Verdict::Unknown => units.add_to(&mut unknown),
                Verdict::No => {}
            }
        }
        Ok((yes, unknown))
    }

    /// Nothing is covered yet.
    fn candidates(&self, _: &[Box<[u8]>]) -> Result<Option<RoaringBitmap>, IndexError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::seal;
    use json::Document;

    #[test]
    fn together_documents_are_filed_as_one_after_the_other() {
        let record = |number: u64| {
            let texts = [number % 3, number % 7, number].map(|value| value.to_string());
            let later = if number > 200 { "new" } else { "old" };
            serde_json::json!({
                "texts": texts, "number": number % 11, later: [{"a": null}, {"b": [number.is_multiple_of(2), {}]}],
                "at": format!("2026-01-01T00:00:{:02}Z", number % 60), "long": "x".repeat(number as usize % 90),
            })
        };
        let documents: Vec<Document> = (0..300).map(|number| Document::of(&record(number)).unwrap()).collect();
        let news = documents.iter().zip(1..);
        let news = news.map(|(document, source)| New { source, fact: b"fact", document: document.root() });
        let news: Vec<New<'_>> = news.collect();
        let sealed = |chunk: usize| {
            let (mut fresh, mut paths) = (Fresh::starting_at(5), Paths::default());
            news.chunks(chunk).for_each(|news| fresh.insert(&mut paths, news));
            let segment = seal(&fresh, |path| paths.is_many(path), None, 0).unwrap();
            (segment.checksum, fresh.memory())
        };
        let expected = sealed(1);
        [2, 7, TOGETHER, TOGETHER + 1, 300]
            .into_iter()
            .for_each(|chunk| assert_eq!(sealed(chunk), expected, "{chunk}"));
    }
}
