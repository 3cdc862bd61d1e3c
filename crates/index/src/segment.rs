//! A sealed part: one file that is read into memory as it is, and one with trigrams that stays where it is.
//!
//! | In the file | |
//! |---|---|
//! | frame | magic, format |
//! | columns | units of values, then the tables that refer to them |
//! | facts, rows | one for each unit; a row says where it came from, where its fact ends, and how that begins |
//! | directory | units, and where everything stands |
//! | frame | position of the directory, checksum |
//!
//! INVARIANT: a segment never changes; what has died since it was written is known elsewhere.

use crate::bytes::{self, Put, Reader, position, u32_at, u64_at};
use crate::current;
use crate::error::IndexError;
use crate::fresh::{Fresh, FreshColumn};
use crate::keyed::{Keyed, KeyedHead, KeyedWriter};
use crate::part::{Column, Lookup, Part, Scan, Set, Table, Verdict};
use crate::paths::PathId;
use crate::posting::{Collector, Gathered, Growing, NOWHERE, Rising, Stored, write_set};
use crate::texts::{Texts, TextsHead, TextsWriter, Walk};
use crate::trigram::{Trigrams, TrigramsFile, TrigramsHead, TrigramsWriter, each_trigram};
use crate::{GLANCE, Unit};
use roaring::RoaringBitmap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A text with more units than this is asked by itself; others are covered by trigrams.
const RARE_MAX: u64 = 4;

/// Bytes of a row: whoever ranks many units reads one row of each, and memory is fetched once for it.
const ROW: usize = SOURCE + END + GLANCE;
const SOURCE: usize = 8;
const END: usize = 4;

/// A sealed run of units.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) units: Range<Unit>,
    /// How many units were alive when it was written.
    pub(crate) filed: u32,
    pub(crate) checksum: u32,
    name: PathBuf,
    bytes: Vec<u8>,
    loose: RoaringBitmap,
    facts_at: usize,
    rows_at: usize,
    pub(crate) columns: Vec<ColumnHead>,
    pub(crate) trigrams: TrigramsFile,
}

/// Where a column stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ColumnHead {
    pub(crate) path: u32,
    sets: [u32; Set::COUNT],
    tables: [KeyedHead; Table::COUNT],
    texts: TextsHead,
    trigrams: TrigramsHead,
}

/// The two files of a segment.
pub(crate) fn files(folder: &Path, id: u64) -> [PathBuf; 2] {
    [folder.join(format!("{id:010}.values")), folder.join(format!("{id:010}.trigrams"))]
}

/// A segment that is being written.
#[derive(Debug)]
pub(crate) struct Builder {
    folder: Option<PathBuf>,
    id: u64,
    units: Range<Unit>,
    pub(crate) out: Vec<u8>,
    pub(crate) trigrams: TrigramsWriter,
    columns: Vec<ColumnHead>,
}

impl Builder {
    /// Starts a segment in a folder, or in memory when there is none; it will have about so many bytes.
    pub(crate) fn new(folder: Option<&Path>, id: u64, units: Range<Unit>, size: usize) -> Result<Self, IndexError> {
        let files = folder.map(|folder| files(folder, id));
        let trigrams = TrigramsWriter::create(files.as_ref().map(|[_, trigrams]| trigrams.as_path()))?;
        let folder = folder.map(Path::to_owned);
        let mut out = bytes::begin();
        // A buffer that grows is copied again and again, each time into memory that the system has to clear first.
        out.reserve(size);
        Ok(Self { folder, id, units, out, trigrams, columns: Vec::new() })
    }

    /// Starts a column above the last one; `many` says whether a unit can have several values there.
    pub(crate) fn column(&mut self, path: u32, many: bool) -> ColumnBuilder<'_> {
        let head = ColumnHead { path, sets: [NOWHERE; Set::COUNT], ..ColumnHead::default() };
        ColumnBuilder { builder: self, many, head }
    }

    /// Writes the rest and makes it durable.
    pub(crate) fn finish<'a>(
        mut self,
        loose: RoaringBitmap,
        filed: u32,
        facts: impl Iterator<Item = &'a [u8]>,
        sources: impl Iterator<Item = u64>,
    ) -> Result<Segment, IndexError> {
        let out = &mut self.out;
        let loose = write_set(loose, out)?;
        let facts_at = position(out)?;
        let mut rows = Vec::with_capacity(self.units.len() * ROW);
        for (fact, source) in facts.zip(sources) {
            out.extend_from_slice(fact);
            rows.put_u64(source);
            rows.put_u32(position(out)?);
            let glance = fact.get(..GLANCE).unwrap_or(fact);
            rows.extend_from_slice(glance);
            rows.resize(rows.len() + GLANCE - glance.len(), 0);
        }
        let rows_at = position(out)?;
        out.append(&mut rows);
        let directory_at = position(out)?;
        let heads = [self.units.start, self.units.end, filed, loose, facts_at, rows_at];
        heads.iter().for_each(|number| out.put_u32(*number));
        out.put_u32(self.columns.len() as u32);
        self.columns.iter().for_each(|column| column.write(out));
        out.put_u32(directory_at);
        position(out)?;
        bytes::end(out);
        let [values, _] = files(self.folder.as_deref().unwrap_or(Path::new("")), self.id);
        let trigrams = self.trigrams.finish()?;
        if let Some(folder) = &self.folder {
            write_durably(&values, &self.out)?;
            // The names must not come later than the file that will name them.
            current::sync(folder)?;
        }
        Segment::read(self.id, values, self.out, trigrams)
    }
}

/// Writes a whole file and waits until it is on the disk.
pub(crate) fn write_durably(file: &Path, bytes: &[u8]) -> Result<(), IndexError> {
    let write = || {
        let mut out = File::create(file)?;
        out.write_all(bytes)?;
        out.sync_all()
    };
    write().map_err(IndexError::io(file))
}

/// A column that is being written.
#[derive(Debug)]
pub(crate) struct ColumnBuilder<'a> {
    pub(crate) builder: &'a mut Builder,
    many: bool,
    head: ColumnHead,
}

impl ColumnBuilder<'_> {
    pub(crate) fn set(&mut self, set: Set, units: RoaringBitmap) -> Result<(), IndexError> {
        let written = write_set(units, &mut self.builder.out)?;
        if let Some(head) = self.head.sets.get_mut(set as usize) {
            *head = written;
        }
        Ok(())
    }

    pub(crate) fn table(&mut self, table: Table, writer: KeyedWriter) -> Result<(), IndexError> {
        let single = (!self.many && table != Table::Longs).then_some(&self.builder.units);
        let written = writer.finish(single, &mut self.builder.out)?;
        if let Some(head) = self.head.tables.get_mut(table as usize) {
            *head = written;
        }
        Ok(())
    }

    pub(crate) fn texts(&mut self, writer: TextsWriter) -> Result<(), IndexError> {
        self.head.texts = writer.finish(&mut self.builder.out)?;
        Ok(())
    }

    /// Ends the column; its trigrams are those pushed since it began.
    pub(crate) fn finish(mut self) -> Result<(), IndexError> {
        self.head.trigrams = self.builder.trigrams.end_column(&mut self.builder.out)?;
        self.builder.columns.push(self.head);
        Ok(())
    }
}

/// Writes a frozen part as a segment.
pub(crate) fn seal(
    fresh: &Fresh,
    many: impl Fn(PathId) -> bool,
    folder: Option<&Path>,
    id: u64,
) -> Result<Segment, IndexError> {
    let units = fresh.first()..fresh.end();
    let mut builder = Builder::new(folder, id, units.clone(), fresh.memory())?;
    for (path, column) in fresh.columns.iter().enumerate() {
        if let Some(column) = column {
            seal_column(column, builder.column(path as u32, many(path)))?;
        }
    }
    let facts = units.clone().map(|unit| fresh.fact(unit).unwrap_or_default());
    builder.finish(fresh.loose.clone(), units.len() as u32, facts, fresh.sources.iter().copied())
}

fn seal_column(column: &FreshColumn, mut builder: ColumnBuilder<'_>) -> Result<(), IndexError> {
    for set in Set::ALL {
        builder.set(set, column.sets.get(set as usize).map(Rising::to_set).unwrap_or_default())?;
    }
    let mut units = Gathered::default();
    for table in Table::ALL {
        let mut writer = KeyedWriter::default();
        for (key, growing) in column.tables.get(table as usize).into_iter().flatten() {
            units.clear();
            units.add_growing(growing);
            writer.push(*key, &mut units, &mut builder.builder.out)?;
        }
        builder.table(table, writer)?;
    }
    let mut texts: Vec<(&str, &Growing)> = column.texts().collect();
    texts.sort_unstable_by_key(|(text, _)| *text);
    let mut writer = TextsWriter::default();
    let mut covered: Vec<(Unit, &str)> = column.longs().collect();
    for (text, growing) in texts {
        let rare = growing.len() <= RARE_MAX;
        if rare {
            covered.extend(growing.to_set().iter().map(|unit| (unit, text)));
        }
        units.clear();
        units.add_growing(growing);
        writer.push(text.as_bytes(), rare, &mut units, &mut builder.builder.out)?;
    }
    builder.texts(writer)?;
    covered.sort_unstable_by_key(|(unit, _)| *unit);
    each_trigram(&covered, |trigram, units| builder.builder.trigrams.push(trigram, units))?;
    builder.finish()
}

impl ColumnHead {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.path);
        self.sets.iter().for_each(|set| out.put_u32(*set));
        self.tables.iter().for_each(|table| table.write(out));
        self.texts.write(out);
        self.trigrams.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut head = Self { path: reader.u32()?, ..Self::default() };
        for set in &mut head.sets {
            *set = reader.u32()?;
        }
        for table in &mut head.tables {
            *table = KeyedHead::read(reader)?;
        }
        head.texts = TextsHead::read(reader)?;
        head.trigrams = TrigramsHead::read(reader)?;
        Some(head)
    }
}

impl Segment {
    /// Opens the segment that has these checksum and length of trigrams.
    pub(crate) fn open(folder: &Path, id: u64, checksum: u32, trigrams_len: u64) -> Result<Self, IndexError> {
        let [values, trigrams] = files(folder, id);
        let bytes = std::fs::read(&values).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => IndexError::damaged(&values),
            _ => IndexError::io(&values)(error),
        })?;
        let trigrams = TrigramsFile::open(&trigrams, trigrams_len)?;
        let segment = Self::read(id, values, bytes, trigrams)?;
        if segment.checksum == checksum { Ok(segment) } else { Err(segment.damaged()) }
    }

    fn read(id: u64, name: PathBuf, bytes: Vec<u8>, trigrams: TrigramsFile) -> Result<Self, IndexError> {
        let (_, checksum) = bytes::framed(&bytes, &name)?;
        let damaged = IndexError::damaged(&name);
        Self::directory(id, name, bytes, checksum, trigrams).ok_or(damaged)
    }

    fn directory(id: u64, name: PathBuf, bytes: Vec<u8>, checksum: u32, trigrams: TrigramsFile) -> Option<Self> {
        let directory_at = u32_at(&bytes, bytes.len().checked_sub(8)?)?;
        let mut reader = Reader::new(bytes.get(directory_at as usize..)?);
        let units = reader.u32()?..reader.u32()?;
        let filed = reader.u32()?;
        let loose = Stored::at(&bytes, reader.u32()?)?.to_set()?;
        let (facts_at, rows_at) = (reader.u32()? as usize, reader.u32()? as usize);
        let count = reader.u32()?;
        let mut columns = Vec::new();
        for _ in 0..count {
            columns.push(ColumnHead::read(&mut reader)?);
        }
        (units.start < units.end).then_some(())?;
        Some(Self { id, units, filed, checksum, name, loose, facts_at, rows_at, columns, trigrams, bytes })
    }

    /// The bytes of its main file.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.columns.len() * size_of::<ColumnHead>() + self.trigrams.memory()
    }

    pub(crate) fn damaged(&self) -> IndexError {
        IndexError::damaged(&self.name)
    }

    fn offset(&self, unit: Unit) -> Option<usize> {
        self.units.contains(&unit).then(|| (unit - self.units.start) as usize)
    }

    fn rows(&self) -> &[[u8; ROW]] {
        self.bytes.get(self.rows_at..self.rows_at + self.units.len() * ROW).unwrap_or_default().as_chunks().0
    }

    pub(crate) fn fact(&self, unit: Unit) -> Option<&[u8]> {
        let (rows, offset) = (self.rows(), self.offset(unit)?);
        let start = match offset.checked_sub(1) {
            Some(before) => fact_end(rows.get(before)?),
            None => self.facts_at,
        };
        self.bytes.get(start..fact_end(rows.get(offset)?))
    }

    pub(crate) fn source(&self, unit: Unit) -> Option<u64> {
        self.rows().get(self.offset(unit)?).map(source_of)
    }

    pub(crate) fn glance(&self, unit: Unit) -> Option<(&[u8], u64)> {
        let row = self.rows().get(self.offset(unit)?)?;
        Some((row.get(SOURCE + END..)?, source_of(row)))
    }

    /// The units of a source; they are neighbours, because sources rise.
    pub(crate) fn units_of(&self, source: u64) -> Range<Unit> {
        let rows = self.rows();
        let start = rows.partition_point(|row| source_of(row) < source) as Unit;
        let end = rows.partition_point(|row| source_of(row) <= source) as Unit;
        self.units.start + start..self.units.start + end
    }
}

fn source_of(row: &[u8; ROW]) -> u64 {
    u64_at(row, 0).unwrap_or_default()
}

fn fact_end(row: &[u8; ROW]) -> usize {
    u32_at(row, SOURCE).unwrap_or_default() as usize
}

impl Part for Segment {
    type Column<'a> = SealedColumn<'a>;

    fn len(&self) -> u64 {
        self.units.len() as u64
    }

    fn column(&self, path: PathId) -> Option<SealedColumn<'_>> {
        let position = self.columns.binary_search_by_key(&(path as u32), |column| column.path).ok()?;
        self.columns.get(position).map(|head| SealedColumn { segment: self, head })
    }

    fn common(
        &self,
        values: &[(PathId, Lookup<'_>)],
        bounds: &[(PathId, u64)],
    ) -> Result<Option<Vec<Unit>>, IndexError> {
        let mut stored = Vec::with_capacity(values.len() + bounds.len());
        for (path, at) in values {
            let Some(column) = self.column(*path) else { return Ok(Some(Vec::new())) };
            stored.push(column.checked(column.stored(*at))?);
        }
        for (path, last) in bounds {
            let table = self.column(*path).and_then(|column| column.table(Table::Numbers));
            stored.extend(table.and_then(|table| table.up_to(*last)));
        }
        Stored::common(&stored).map(Some).ok_or_else(|| self.damaged())
    }

    fn loose(&self) -> &RoaringBitmap {
        &self.loose
    }
}

/// The values at one path of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedColumn<'a> {
    segment: &'a Segment,
    head: &'a ColumnHead,
}

impl<'a> SealedColumn<'a> {
    pub(crate) fn stored_set(&self, set: Set) -> Option<Stored<'a>> {
        Stored::at(&self.segment.bytes, *self.head.sets.get(set as usize)?)
    }

    pub(crate) fn table(&self, table: Table) -> Option<Keyed<'a>> {
        Keyed::new(&self.segment.bytes, self.head.tables.get(table as usize)?)
    }

    pub(crate) fn all_texts(&self) -> Option<Texts<'a>> {
        Texts::new(&self.segment.bytes, &self.head.texts)
    }

    pub(crate) fn trigrams(&self) -> Option<Trigrams<'a>> {
        Trigrams::new(&self.segment.bytes, &self.head.trigrams, &self.segment.trigrams)
    }

    fn stored(&self, at: Lookup<'_>) -> Option<Stored<'a>> {
        match at {
            Lookup::Set(set) => self.stored_set(set),
            Lookup::Key(table, key) => self.table(table)?.find(key),
            Lookup::Text(text) => self.all_texts()?.find(text),
        }
    }

    pub(crate) fn checked<T>(&self, read: Option<T>) -> Result<T, IndexError> {
        read.ok_or_else(|| self.segment.damaged())
    }

    fn ask_texts(
        &self,
        scan: Scan<'_>,
        ask: &mut dyn FnMut(&str) -> Verdict,
    ) -> Option<(RoaringBitmap, RoaringBitmap)> {
        let texts = self.all_texts()?;
        let (mut yes, mut unknown) = (Collector::new(&self.segment.units), Collector::new(&self.segment.units));
        let mut hear = |walk: &Walk<'_>| {
            match ask(std::str::from_utf8(walk.text()).ok()?) {
                Verdict::Yes => yes.add(walk.stored()?)?,
                Verdict::Unknown => unknown.add(walk.stored()?)?,
                Verdict::No => {}
            }
            Some(())
        };
        match scan {
            Scan::Uncovered => {
                for mut walk in texts.walks_of_uncovered() {
                    while walk.next()? {
                        if !walk.is_covered() {
                            hear(&walk)?;
                        }
                    }
                }
            }
            Scan::Prefix(prefix) => {
                let prefix = prefix.as_bytes();
                let (mut walk, mut inside) = (texts.walk_from(prefix)?, false);
                while walk.next()? {
                    // What a text shares with one that begins so need not be compared.
                    inside = (inside && walk.common() >= prefix.len()) || walk.text().starts_with(prefix);
                    if inside {
                        hear(&walk)?;
                    } else if walk.text() > prefix {
                        break;
                    }
                }
            }
        }
        Some((yes.finish(), unknown.finish()))
    }
}

impl Column for SealedColumn<'_> {
    fn units(&self, at: Lookup<'_>) -> Result<RoaringBitmap, IndexError> {
        self.checked(self.stored(at).and_then(Stored::to_set))
    }

    fn count(&self, at: Lookup<'_>) -> u64 {
        self.stored(at).map_or(0, Stored::len)
    }

    fn among(&self, at: Lookup<'_>, units: &[Unit]) -> Result<Vec<Unit>, IndexError> {
        self.checked(self.stored(at).and_then(|stored| stored.among(units)))
    }

    fn between(&self, table: Table, first: u64, last: u64) -> Result<RoaringBitmap, IndexError> {
        self.checked(self.table(table).and_then(|table| table.between(first, last, &self.segment.units)))
    }

    fn between_list(&self, table: Table, first: u64, last: u64) -> Result<Vec<Unit>, IndexError> {
        self.checked(self.table(table).and_then(|table| table.between_list(first, last, &self.segment.units)))
    }

    fn between_len(&self, table: Table, first: u64, last: u64) -> u64 {
        self.table(table).map_or(0, |table| table.between_len(first, last))
    }

    fn between_among(
        &self,
        table: Table,
        first: u64,
        last: u64,
        units: &[Unit],
    ) -> Result<Option<Vec<Unit>>, IndexError> {
        let table = self.checked(self.table(table))?;
        Ok(table.between_among(first, last, units, self.segment.units.start))
    }

    fn texts(&self) -> u64 {
        self.all_texts().map_or(0, |texts| texts.len() as u64)
    }

    fn scan(
        &self,
        scan: Scan<'_>,
        ask: &mut dyn FnMut(&str) -> Verdict,
    ) -> Result<(RoaringBitmap, RoaringBitmap), IndexError> {
        self.checked(self.ask_texts(scan, ask))
    }

    fn candidates(&self, needles: &[Box<[u8]>]) -> Result<Option<RoaringBitmap>, IndexError> {
        self.checked(self.trigrams())?.candidates(needles, self.count(Lookup::Set(Set::Present)))
    }
}
