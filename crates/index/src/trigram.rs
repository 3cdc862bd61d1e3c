//! Rare and long texts by the runs of three bytes in them, in a file that is read where it is needed.
//!
//! A column's trigrams stand in blocks: first what each list is (trigram, count, length, checksum), then the lists.
//! Only the first trigram of each block is kept in memory. What trigrams find is possible, never certain.

use crate::Unit;
use crate::bytes::{Put, Reader, position, u32_at, u64_at};
use crate::deal::{add, deal, starts};
use crate::error::IndexError;
use crate::posting::sorted_set;
use roaring::RoaringBitmap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Trigrams of a block.
const BLOCK: usize = 64;
/// The most that a block says about its lists: five bytes each for a step, a count and a length, and a checksum.
const CONTENTS_MAX: usize = 8 + BLOCK * 19;
/// Trigrams of a needle that are looked up.
const LOOKED_UP_MAX: usize = 8;
/// So few units are not narrowed further.
const ENOUGH: usize = 32;
/// A trigram that this share of a column has does not help.
const SHARE: u64 = 32;

/// The bytes of a trigram as a number.
fn trigram(window: &[u8]) -> u32 {
    window.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Trigrams whose first twelve bits are the same are sorted together.
const GROUPS: usize = 1 << 12;
/// So few pairs are sorted one by one, not counted.
const COUNTED_MIN: usize = 512;

/// Shows the trigrams of texts in their order, each with its units; texts come in the order of their units.
///
/// There are hundreds of trigrams for each document. They are dealt out by one half of their bits and then by the
/// other, which keeps the order of units and touches each of them twice only.
pub(crate) fn each_trigram(
    texts: &[(Unit, &str)],
    mut show: impl FnMut(u32, &[Unit]) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let windows = || texts.iter().flat_map(|(unit, text)| text.as_bytes().windows(3).map(|window| (*unit, window)));
    let mut places = vec![0; GROUPS];
    windows().for_each(|(_, window)| add(&mut places, (trigram(window) >> 12) as usize));
    let ends = starts(&mut places);
    let mut pairs = vec![(0, 0); *ends.last().unwrap_or(&0)];
    for (unit, window) in windows() {
        let trigram = trigram(window);
        deal(&mut pairs, &mut places, (trigram >> 12) as usize, ((trigram & 0xfff) as u16, unit));
    }
    let (mut start, mut sorted, mut units) = (0, Vec::new(), Vec::new());
    for (group, end) in ends.into_iter().enumerate() {
        let group_pairs = pairs.get_mut(start..end).unwrap_or_default();
        start = end;
        for same in sort_by_rest(group_pairs, &mut sorted).chunk_by(|left, right| left.0 == right.0) {
            units.clear();
            units.extend(same.iter().map(|(_, unit)| *unit));
            units.dedup();
            let rest = same.first().map_or(0, |(rest, _)| u32::from(*rest));
            show((group as u32) << 12 | rest, &units)?;
        }
    }
    Ok(())
}

/// A pair of the last twelve bits of a trigram and a unit.
type Pair = (u16, Unit);

/// Sorts pairs that come in the order of their units.
fn sort_by_rest<'a>(pairs: &'a mut [Pair], sorted: &'a mut Vec<Pair>) -> &'a [Pair] {
    if pairs.len() < COUNTED_MIN {
        pairs.sort_unstable();
        return pairs;
    }
    let mut places = vec![0; GROUPS];
    pairs.iter().for_each(|(rest, _)| add(&mut places, usize::from(*rest)));
    starts(&mut places);
    sorted.clear();
    sorted.resize(pairs.len(), (0, 0));
    pairs.iter().for_each(|pair| deal(sorted, &mut places, usize::from(pair.0), *pair));
    sorted
}

/// Where the trigrams of a column are told about in the segment's main file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrigramsHead {
    at: u32,
    /// Blocks, of which each has an entry, and one more entry tells where they end.
    blocks: u32,
}

/// An entry is the first trigram of a block and where the block stands.
const ENTRY: usize = 12;

impl TrigramsHead {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.at);
        out.put_u32(self.blocks);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { at: reader.u32()?, blocks: reader.u32()? })
    }
}

/// A file of trigrams that is being written.
#[derive(Debug)]
pub(crate) struct TrigramsWriter {
    sink: Sink,
    written: u64,
    entries: Vec<u8>,
    contents: Vec<u8>,
    lists: Vec<u8>,
    count: usize,
    last: u32,
}

#[derive(Debug)]
enum Sink {
    Memory(Vec<u8>),
    File(BufWriter<File>, PathBuf),
}

impl TrigramsWriter {
    /// Writes to a new file, or to memory when there is none.
    pub(crate) fn create(file: Option<&Path>) -> Result<Self, IndexError> {
        let sink = match file {
            None => Sink::Memory(Vec::new()),
            Some(path) => {
                let open = File::options().read(true).write(true).create(true).truncate(true).open(path);
                Sink::File(BufWriter::with_capacity(1 << 20, open.map_err(IndexError::io(path))?), path.to_owned())
            }
        };
        let (entries, contents, lists) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { sink, written: 0, entries, contents, lists, count: 0, last: 0 })
    }

    /// Adds a trigram above the last one of the column, with its units in order.
    pub(crate) fn push(&mut self, trigram: u32, units: &[Unit]) -> Result<(), IndexError> {
        if units.is_empty() {
            return Ok(());
        }
        if self.count == BLOCK {
            self.end_block()?;
        }
        if self.count == 0 {
            self.entries.put_u32(trigram);
            self.entries.put_u64(self.written);
            self.last = trigram;
        }
        let start = self.lists.len();
        let mut last = 0;
        for unit in units {
            self.lists.put_varint(unit.wrapping_sub(last));
            last = *unit;
        }
        let list = self.lists.get(start..).unwrap_or_default();
        self.contents.put_varint(trigram - self.last);
        self.contents.put_varint(units.len() as u32);
        self.contents.put_varint(list.len() as u32);
        self.contents.put_u32(crc32fast::hash(list));
        self.last = trigram;
        self.count += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), IndexError> {
        let mut head = Vec::with_capacity(8);
        head.put_u32(self.contents.len() as u32);
        head.put_u32(crc32fast::hash(&self.contents));
        for bytes in [&head, &self.contents, &self.lists] {
            match &mut self.sink {
                Sink::Memory(out) => out.extend_from_slice(bytes),
                Sink::File(out, path) => out.write_all(bytes).map_err(IndexError::io(path))?,
            }
            self.written += bytes.len() as u64;
        }
        self.contents.clear();
        self.lists.clear();
        self.count = 0;
        Ok(())
    }

    /// Ends a column and tells about it in the main file.
    pub(crate) fn end_column(&mut self, out: &mut Vec<u8>) -> Result<TrigramsHead, IndexError> {
        if self.count > 0 {
            self.end_block()?;
        }
        let head = TrigramsHead { at: position(out)?, blocks: (self.entries.len() / ENTRY) as u32 };
        if head.blocks > 0 {
            out.append(&mut self.entries);
            out.put_u32(u32::MAX);
            out.put_u64(self.written);
        }
        Ok(head)
    }

    pub(crate) fn finish(self) -> Result<TrigramsFile, IndexError> {
        let blob = match self.sink {
            Sink::Memory(bytes) => Blob::Memory(bytes),
            Sink::File(out, path) => {
                let file = out.into_inner().map_err(|error| IndexError::io(&path)(error.into_error()))?;
                file.sync_all().map_err(IndexError::io(&path))?;
                Blob::File(file, path)
            }
        };
        Ok(TrigramsFile { blob, len: self.written })
    }
}

/// A file of trigrams.
#[derive(Debug)]
pub(crate) struct TrigramsFile {
    blob: Blob,
    pub(crate) len: u64,
}

#[derive(Debug)]
enum Blob {
    Memory(Vec<u8>),
    File(File, PathBuf),
}

impl TrigramsFile {
    pub(crate) fn open(path: &Path, len: u64) -> Result<Self, IndexError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => IndexError::damaged(path),
            _ => IndexError::io(path)(error),
        })?;
        let found = file.metadata().map_err(IndexError::io(path))?.len();
        if found == len {
            Ok(Self { blob: Blob::File(file, path.to_owned()), len })
        } else {
            Err(IndexError::damaged(path))
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match &self.blob {
            Blob::Memory(bytes) => bytes.len(),
            Blob::File(..) => 0,
        }
    }

    fn damaged(&self) -> IndexError {
        match &self.blob {
            Blob::Memory(_) => IndexError::Damaged("trigrams".into()),
            Blob::File(_, path) => IndexError::damaged(path),
        }
    }

    fn read(&self, at: u64, len: usize) -> Result<Vec<u8>, IndexError> {
        if at.checked_add(len as u64).is_none_or(|end| end > self.len) {
            return Err(self.damaged());
        }
        match &self.blob {
            Blob::Memory(bytes) => {
                bytes.get(at as usize..at as usize + len).map(<[u8]>::to_vec).ok_or_else(|| self.damaged())
            }
            Blob::File(file, path) => {
                let mut bytes = vec![0; len];
                match file.read_exact_at(&mut bytes, at) {
                    Ok(()) => Ok(bytes),
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.damaged()),
                    Err(error) => Err(IndexError::io(path)(error)),
                }
            }
        }
    }
}

/// What a block says about one list.
#[derive(Clone, Copy, Debug)]
struct Listed {
    trigram: u32,
    count: u32,
    at: u64,
    len: usize,
    checksum: u32,
}

/// The trigrams of one column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trigrams<'a> {
    entries: &'a [u8],
    file: &'a TrigramsFile,
}

impl<'a> Trigrams<'a> {
    pub(crate) fn new(main: &'a [u8], head: &TrigramsHead, file: &'a TrigramsFile) -> Option<Self> {
        let entries = if head.blocks == 0 { 0 } else { head.blocks as usize + 1 };
        Some(Self { entries: main.get(head.at as usize..)?.get(..entries * ENTRY)?, file })
    }

    fn blocks(&self) -> usize {
        (self.entries.len() / ENTRY).saturating_sub(1)
    }

    /// Where a block starts, and where the next one does.
    fn block(&self, block: usize) -> Option<(u64, u64)> {
        let start = u64_at(self.entries, block * ENTRY + 4)?;
        let end = u64_at(self.entries, (block + 1) * ENTRY + 4)?;
        (start <= end).then_some((start, end))
    }

    /// What a block lists.
    fn contents(&self, block: usize) -> Result<Vec<Listed>, IndexError> {
        let damaged = || self.file.damaged();
        let (start, end) = self.block(block).ok_or_else(damaged)?;
        let head = self.file.read(start, CONTENTS_MAX.min((end - start) as usize))?;
        let mut reader = Reader::new(&head);
        let (len, checksum) = (reader.u32().ok_or_else(damaged)?, reader.u32().ok_or_else(damaged)?);
        let contents = reader.take(len as usize).ok_or_else(damaged)?;
        if crc32fast::hash(contents) != checksum {
            return Err(damaged());
        }
        let first = u32_at(self.entries, block * ENTRY).ok_or_else(damaged)?;
        listed(contents, first, start + 8 + u64::from(len)).ok_or_else(damaged)
    }

    fn look_up(&self, trigram: u32) -> Result<Option<Listed>, IndexError> {
        let (entries, _) = self.entries.as_chunks::<ENTRY>();
        let blocks = entries.get(..self.blocks()).unwrap_or_default();
        let after = blocks.partition_point(|entry| u32_at(entry, 0).is_some_and(|first| first <= trigram));
        match after.checked_sub(1) {
            None => Ok(None),
            Some(block) => Ok(self.contents(block)?.into_iter().find(|listed| listed.trigram == trigram)),
        }
    }

    fn units(&self, listed: &Listed) -> Result<Vec<Unit>, IndexError> {
        let list = self.file.read(listed.at, listed.len)?;
        decode(&list, listed).ok_or_else(|| self.file.damaged())
    }

    /// Units with a text that may contain one of the needles; `None` when too many would, of so many.
    pub(crate) fn candidates(&self, needles: &[Box<[u8]>], of: u64) -> Result<Option<RoaringBitmap>, IndexError> {
        let mut sum = RoaringBitmap::new();
        for needle in needles {
            match self.candidates_of(needle, of)? {
                Some(units) => sum |= units,
                None => return Ok(None),
            }
        }
        Ok((!needles.is_empty()).then_some(sum))
    }

    fn candidates_of(&self, needle: &[u8], of: u64) -> Result<Option<RoaringBitmap>, IndexError> {
        let windows = needle.len().saturating_sub(2);
        if windows == 0 {
            return Ok(None);
        }
        let mut lists = Vec::new();
        for window in needle.windows(3).step_by(windows.div_ceil(LOOKED_UP_MAX)) {
            match self.look_up(trigram(window))? {
                Some(listed) => lists.push(listed),
                None => return Ok(Some(RoaringBitmap::new())),
            }
        }
        lists.sort_unstable_by_key(|listed| listed.count);
        if lists.first().is_some_and(|rarest| u64::from(rarest.count) > of / SHARE + ENOUGH as u64) {
            return Ok(None);
        }
        let mut common: Option<Vec<Unit>> = None;
        for listed in &lists {
            if common.as_ref().is_some_and(|common| common.len() <= ENOUGH) {
                break;
            }
            let units = self.units(listed)?;
            common = Some(match common {
                None => units,
                Some(common) => intersection(&common, &units),
            });
        }
        Ok(common.as_deref().map(sorted_set))
    }
}

/// What two lists that rise have in common.
fn intersection(left: &[Unit], right: &[Unit]) -> Vec<Unit> {
    let mut right = right.iter().peekable();
    let is_there = |unit: &&Unit| {
        while right.next_if(|other| other < unit).is_some() {}
        right.peek() == Some(unit)
    };
    left.iter().filter(is_there).copied().collect()
}

fn listed(contents: &[u8], first: u32, mut at: u64) -> Option<Vec<Listed>> {
    let mut reader = Reader::new(contents);
    let (mut all, mut trigram) = (Vec::with_capacity(BLOCK), first);
    while !reader.is_empty() {
        trigram = trigram.checked_add(reader.varint()?)?;
        let (count, len, checksum) = (reader.varint()?, reader.varint()? as usize, reader.u32()?);
        all.push(Listed { trigram, count, at, len, checksum });
        at = at.checked_add(len as u64)?;
    }
    Some(all)
}

fn decode(list: &[u8], listed: &Listed) -> Option<Vec<Unit>> {
    if crc32fast::hash(list) != listed.checksum {
        return None;
    }
    let mut reader = Reader::new(list);
    let (mut units, mut unit) = (Vec::with_capacity(list.len().min(listed.count as usize)), 0u32);
    while !reader.is_empty() {
        unit = unit.checked_add(reader.varint()?)?;
        units.push(unit);
    }
    Some(units)
}

/// A walk through the trigrams of a column, block by block.
#[derive(Debug)]
pub(crate) struct TrigramsWalk<'a> {
    trigrams: Trigrams<'a>,
    block: usize,
    /// The lists of the block, as they stand in the file from `start` on.
    bytes: Vec<u8>,
    start: u64,
    listed: std::vec::IntoIter<Listed>,
    here: Option<Listed>,
}

impl<'a> TrigramsWalk<'a> {
    pub(crate) fn new(trigrams: Trigrams<'a>) -> Result<Self, IndexError> {
        let listed = Vec::new().into_iter();
        let mut walk = Self { trigrams, block: 0, bytes: Vec::new(), start: 0, listed, here: None };
        walk.step()?;
        Ok(walk)
    }

    /// The trigram at which the walk is.
    pub(crate) fn trigram(&self) -> Option<u32> {
        self.here.map(|listed| listed.trigram)
    }

    /// The units of the trigram at which the walk is.
    pub(crate) fn units(&self) -> Result<Vec<Unit>, IndexError> {
        let Some(listed) = self.here else { return Ok(Vec::new()) };
        let start = (listed.at - self.start) as usize;
        let list = self.bytes.get(start..).and_then(|rest| rest.get(..listed.len));
        list.and_then(|list| decode(list, &listed)).ok_or_else(|| self.trigrams.file.damaged())
    }

    pub(crate) fn step(&mut self) -> Result<(), IndexError> {
        self.here = self.listed.next();
        while self.here.is_none() && self.block < self.trigrams.blocks() {
            let (start, end) = self.trigrams.block(self.block).ok_or_else(|| self.trigrams.file.damaged())?;
            self.listed = self.trigrams.contents(self.block)?.into_iter();
            self.bytes = self.trigrams.file.read(start, (end - start) as usize)?;
            (self.start, self.here) = (start, self.listed.next());
            self.block += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(texts: &[(Unit, &str)]) -> (Vec<u8>, TrigramsHead, TrigramsFile) {
        let mut writer = TrigramsWriter::create(None).unwrap();
        each_trigram(texts, |trigram, units| writer.push(trigram, units)).unwrap();
        let mut main = crate::bytes::begin();
        let head = writer.end_column(&mut main).unwrap();
        (main, head, writer.finish().unwrap())
    }

    fn texts() -> Vec<(Unit, String)> {
        (0..3_000u32).map(|unit| (unit, format!("text {} of many", unit.wrapping_mul(2_654_435_761)))).collect()
    }

    #[test]
    fn candidates_miss_nothing_and_are_few() {
        let texts = texts();
        let (main, head, file) = file(&texts.iter().map(|(unit, text)| (*unit, text.as_str())).collect::<Vec<_>>());
        let trigrams = Trigrams::new(&main, &head, &file).unwrap();
        for needle in ["54435", "t 123", "99999", "absent", "7 of"] {
            let found = trigrams.candidates(&[needle.as_bytes().into()], 1_000_000).unwrap().unwrap();
            let truth: RoaringBitmap =
                texts.iter().filter(|(_, text)| text.contains(needle)).map(|(unit, _)| *unit).collect();
            assert!(truth.is_subset(&found), "{needle}");
            assert!(found.len() < 600, "{needle} {}", found.len());
        }
        assert_eq!(trigrams.candidates(&[b"te".as_slice().into()], 3_000).unwrap(), None);
        assert_eq!(trigrams.candidates(&[b"many".as_slice().into()], 3_000).unwrap(), None);
        assert_eq!(trigrams.candidates(&[], 3_000).unwrap(), None);
    }

    #[test]
    fn a_walk_shows_every_trigram_in_order() {
        let texts = texts();
        let texts: Vec<(Unit, &str)> = texts.iter().map(|(unit, text)| (*unit, text.as_str())).collect();
        let (main, head, file) = file(&texts);
        let mut walk = TrigramsWalk::new(Trigrams::new(&main, &head, &file).unwrap()).unwrap();
        let mut walked = Vec::new();
        while let Some(trigram) = walk.trigram() {
            walked.extend(walk.units().unwrap().into_iter().map(|unit| (trigram, unit)));
            walk.step().unwrap();
        }
        let mut expected: Vec<(u32, Unit)> = texts
            .iter()
            .flat_map(|(unit, text)| text.as_bytes().windows(3).map(|window| (trigram(window), *unit)))
            .collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(walked, expected);
    }
}
