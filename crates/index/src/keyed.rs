//! Values that are filed by a key of 64 bits: sorted keys, beside them their units.
//!
//! Ranges over many keys would touch every unit in them. Where a unit has at most one value, *rungs* help: sets of all
//! units below certain keys, so that a range is the difference of two rungs and a few units near its ends. The other way
//! round, *places* say for each unit which key it has, so that a few units can be asked for theirs.

use crate::Unit;
use crate::bytes::{Put, Reader, position, u32_at, u64_at};
use crate::error::IndexError;
use crate::posting::{Collector, Gathered, Stored, write_set};
use roaring::RoaringBitmap;
use std::ops::Range;

/// Smaller tables have no rungs.
const RUNGS_MIN: u64 = 8_192;
const RUNGS: u64 = 64;
/// Places are worth their room when at least one unit in so many has a key.
const SPARSE: u64 = 16;
/// The place of a unit without a key; also when only its lowest bytes are written.
const NO_PLACE: u32 = u32::MAX;

/// Bytes of a place among so many entries: the fewer there are, the more of them are near when they are asked for.
fn place_bytes(entries: usize) -> usize {
    match entries {
        ..0xff => 1,
        0xff..0xffff => 2,
        _ => 4,
    }
}

/// Where a table stands in its file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyedHead {
    keys_at: u32,
    refs_at: u32,
    len: u32,
    /// The units of all keys, counted for each key.
    units: u32,
    rungs_at: u32,
    rungs: u32,
    places_at: u32,
    /// One for each unit of the file, or none at all.
    places: u32,
}

impl KeyedHead {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let places = [self.places_at, self.places];
        [self.keys_at, self.refs_at, self.len, self.units, self.rungs_at, self.rungs]
            .iter()
            .chain(&places)
            .for_each(|number| out.put_u32(*number));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            keys_at: reader.u32()?,
            refs_at: reader.u32()?,
            len: reader.u32()?,
            units: reader.u32()?,
            rungs_at: reader.u32()?,
            rungs: reader.u32()?,
            places_at: reader.u32()?,
            places: reader.u32()?,
        })
    }
}

/// A table on its way into a file.
#[derive(Debug, Default)]
pub(crate) struct KeyedWriter {
    keys: Vec<u8>,
    refs: Vec<u8>,
    units: u64,
}

impl KeyedWriter {
    /// Adds a key above the last one; without units there is nothing to add.
    pub(crate) fn push(&mut self, key: u64, units: &mut Gathered, out: &mut Vec<u8>) -> Result<(), IndexError> {
        let count = units.len();
        if count > 0 {
            self.refs.put_u32(units.write(out)?);
            self.keys.put_u64(key);
            self.units += count;
        }
        Ok(())
    }

    /// Ends the table; with the units of the file when no unit has two of the keys.
    pub(crate) fn finish(self, single: Option<&Range<Unit>>, out: &mut Vec<u8>) -> Result<KeyedHead, IndexError> {
        let (rungs, places) = match single {
            Some(span) if self.units >= RUNGS_MIN => (self.rungs(span, out)?, self.places(span, out)?),
            _ => (Vec::new(), Vec::new()),
        };
        let units = u32::try_from(self.units).unwrap_or(u32::MAX);
        let keys_at = position(out)?;
        out.extend_from_slice(&self.keys);
        let refs_at = position(out)?;
        out.extend_from_slice(&self.refs);
        let rungs_at = position(out)?;
        rungs.iter().flat_map(|(entry, set)| [entry, set]).for_each(|number| out.put_u32(*number));
        let places_at = position(out)?;
        let bytes = place_bytes(self.refs.len() / 4);
        places.iter().for_each(|place| out.extend(place.to_le_bytes().iter().take(bytes)));
        position(out)?;
        let (len, rungs, places) = ((self.refs.len() / 4) as u32, rungs.len() as u32, places.len() as u32);
        Ok(KeyedHead { keys_at, refs_at, len, units, rungs_at, rungs, places_at, places })
    }

    /// Which entry each unit of a file has; nothing when hardly any has one.
    fn places(&self, span: &Range<Unit>, out: &[u8]) -> Result<Vec<u32>, IndexError> {
        if self.units * SPARSE < span.len() as u64 {
            return Ok(Vec::new());
        }
        let mut places = vec![NO_PLACE; span.len()];
        let (refs, _) = self.refs.as_chunks::<4>();
        for (entry, reference) in refs.iter().enumerate() {
            let units = Stored::at(out, u32::from_le_bytes(*reference)).ok_or(IndexError::TooLarge)?;
            let mark = |unit: Unit| {
                if let Some(place) = places.get_mut(unit.wrapping_sub(span.start) as usize) {
                    *place = entry as u32;
                }
            };
            units.for_each(mark).ok_or(IndexError::TooLarge)?;
        }
        Ok(places)
    }

    /// Writes the sets below certain entries, the last of them below the end.
    fn rungs(&self, span: &Range<Unit>, out: &mut Vec<u8>) -> Result<Vec<(u32, u32)>, IndexError> {
        let (refs, _) = self.refs.as_chunks::<4>();
        let mut below = Collector::new(span);
        let (mut rungs, mut count, mut last) = (Vec::new(), 0, 0);
        for (entry, reference) in refs.iter().enumerate() {
            let units = Stored::at(out, u32::from_le_bytes(*reference)).ok_or(IndexError::TooLarge)?;
            count += units.len();
            below.add(units).ok_or(IndexError::TooLarge)?;
            if count - last >= self.units.div_ceil(RUNGS) || entry + 1 == refs.len() {
                last = count;
                rungs.push((entry as u32 + 1, write_set(below.snapshot(), out)?));
            }
        }
        Ok(rungs)
    }
}

/// A table in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<'a> {
    /// The whole file.
    file: &'a [u8],
    keys: &'a [u8],
    refs: &'a [u8],
    rungs: &'a [u8],
    places: &'a [u8],
    units: u64,
}

impl<'a> Keyed<'a> {
    pub(crate) fn new(file: &'a [u8], head: &KeyedHead) -> Option<Self> {
        let run = |at: u32, len: u32, size: usize| file.get(at as usize..)?.get(..len as usize * size);
        Some(Self {
            file,
            keys: run(head.keys_at, head.len, 8)?,
            refs: run(head.refs_at, head.len, 4)?,
            rungs: run(head.rungs_at, head.rungs, 8)?,
            places: run(head.places_at, head.places, place_bytes(head.len as usize))?,
            units: u64::from(head.units),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.refs.len() / 4
    }

    pub(crate) fn key(&self, entry: usize) -> Option<u64> {
        u64_at(self.keys, entry * 8)
    }

    /// The units of an entry.
    pub(crate) fn stored(&self, entry: usize) -> Option<Stored<'a>> {
        Stored::at(self.file, u32_at(self.refs, entry * 4)?)
    }

    /// The units of a key; no units when the table does not have it.
    pub(crate) fn find(&self, key: u64) -> Option<Stored<'a>> {
        let entry = self.below(key);
        if self.key(entry) == Some(key) { self.stored(entry) } else { Some(Stored::List(&[])) }
    }

    /// How many keys are below this one.
    fn below(&self, key: u64) -> usize {
        let (keys, _) = self.keys.as_chunks::<8>();
        keys.partition_point(|known| u64::from_le_bytes(*known) < key)
    }

    fn entries(&self, first: u64, last: u64) -> Range<usize> {
        let start = self.below(first);
        start..last.checked_add(1).map_or(self.len(), |after| self.below(after)).max(start)
    }

    /// About how many units have a key from `first` to `last`.
    pub(crate) fn between_len(&self, first: u64, last: u64) -> u64 {
        let entries = self.entries(first, last);
        if entries.len() == self.len() {
            return self.units;
        }
        if entries.is_empty() {
            return 0;
        }
        let share = self.share_below(entries.end) - self.share_below(entries.start);
        (share * self.units as f64).ceil() as u64 + 1
    }

    /// Which share of the units have one of the entries before this one; rungs stand at equal shares.
    fn share_below(&self, entry: usize) -> f64 {
        let (rungs, _) = self.rungs.as_chunks::<8>();
        let after = rungs.partition_point(|rung| rung_entry(rung) <= entry);
        let at = |rung: Option<&[u8; 8]>| rung.map(rung_entry);
        let start = after.checked_sub(1).and_then(|before| at(rungs.get(before))).unwrap_or(0);
        let end = at(rungs.get(after)).unwrap_or(self.len()).max(start + 1);
        let within = (entry - start) as f64 / (end - start) as f64;
        ((after as f64 + within) / rungs.len().max(1) as f64).min(1.0)
    }

    /// A set of all units with a key up to `last`, and of few others; nothing where that is most of them.
    pub(crate) fn up_to(&self, last: u64) -> Option<Stored<'a>> {
        let (rungs, _) = self.rungs.as_chunks::<8>();
        let end = self.below(last.checked_add(1)?);
        let after = rungs.partition_point(|rung| rung_entry(rung) < end);
        let rung = rungs.get(after).filter(|_| after * 4 < rungs.len() * 3)?;
        Stored::at(self.file, u32_at(rung, 4)?)
    }

    /// Those of some rising units that have a key from `first` to `last`; `None` when there are no places to look at.
    pub(crate) fn between_among(&self, first: u64, last: u64, units: &[Unit], start: Unit) -> Option<Vec<Unit>> {
        if self.refs.is_empty() {
            return Some(Vec::new());
        }
        if self.places.is_empty() {
            return None;
        }
        let entries = self.entries(first, last);
        Some(match place_bytes(self.len()) {
            1 => placed::<1>(self.places, &entries, units, start),
            2 => placed::<2>(self.places, &entries, units, start),
            _ => placed::<4>(self.places, &entries, units, start),
        })
    }

    /// The units with a key from `first` to `last`; `span` are the units of the file.
    pub(crate) fn between(&self, first: u64, last: u64, span: &Range<Unit>) -> Option<RoaringBitmap> {
        let entries = self.entries(first, last);
        if self.is_short(&entries) {
            return self.collect(entries, span).map(Collector::finish);
        }
        let mut set = self.all_below(entries.end, span)?;
        if entries.start > 0 {
            set -= self.all_below(entries.start, span)?;
        }
        Some(set)
    }

    /// The same as a list.
    pub(crate) fn between_list(&self, first: u64, last: u64, span: &Range<Unit>) -> Option<Vec<Unit>> {
        let entries = self.entries(first, last);
        match self.is_short(&entries) {
            true => self.collect(entries, span).map(Collector::into_list),
            false => Some(self.between(first, last, span)?.iter().collect()),
        }
    }

    /// Whether taking entries one by one is as fast as climbing from rung to rung.
    fn is_short(&self, entries: &Range<usize>) -> bool {
        let a_rung = self.len() / (self.rungs.len() / 8).max(1);
        self.rungs.is_empty() || entries.len() <= 2 * a_rung
    }

    fn collect(&self, entries: Range<usize>, span: &Range<Unit>) -> Option<Collector> {
        let mut collector = Collector::expecting(entries.len(), span);
        let refs = self.refs.get(entries.start * 4..entries.end * 4)?;
        let (refs, _) = refs.as_chunks::<4>();
        for reference in refs {
            collector.add(Stored::at(self.file, u32::from_le_bytes(*reference))?)?;
        }
        Some(collector)
    }

    /// The units of all entries before this one, by the nearest rung.
    fn all_below(&self, entry: usize, span: &Range<Unit>) -> Option<RoaringBitmap> {
        let (rungs, _) = self.rungs.as_chunks::<8>();
        let after = rungs.partition_point(|rung| rung_entry(rung) < entry);
        let set = |rung: &[u8; 8]| Stored::at(self.file, u32_at(rung, 4)?)?.to_set();
        let lower = after.checked_sub(1).and_then(|before| rungs.get(before));
        let start = lower.map_or(0, rung_entry);
        match rungs.get(after).map(|upper| (rung_entry(upper), upper)) {
            Some((end, upper)) if end - entry.min(end) < entry.saturating_sub(start) => {
                Some(set(upper)? - self.collect(entry..end, span)?.finish())
            }
            _ => {
                let rest = self.collect(start..entry, span)?.finish();
                Some(match lower {
                    Some(lower) => set(lower)? | rest,
                    None => rest,
                })
            }
        }
    }
}

/// Those of some rising units whose places, of so many bytes each, are among entries.
fn placed<const BYTES: usize>(places: &[u8], entries: &Range<usize>, units: &[Unit], start: Unit) -> Vec<Unit> {
    let (places, _) = places.as_chunks::<BYTES>();
    let (mut found, mut count) = (units.to_vec(), 0);
    for unit in units {
        let mut place = [0; 4];
        match places.get(unit.wrapping_sub(start) as usize) {
            Some(bytes) => place.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
            None => place = NO_PLACE.to_le_bytes(),
        }
        // Put down in any case, as nobody foresees whether it counts; see `sieve`.
        if let Some(slot) = found.get_mut(count) {
            *slot = *unit;
        }
        count += usize::from(entries.contains(&(u32::from_le_bytes(place) as usize)));
    }
    found.truncate(count);
    found
}

/// The entry up to which a rung reaches.
fn rung_entry(rung: &[u8; 8]) -> usize {
    u32_at(rung, 0).unwrap_or_default() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posting::Growing;

    #[track_caller]
    fn check(count: u32, keys: u64, single: bool) {
        let span = 100..100 + count;
        let key_of = |unit: Unit| u64::from(unit.wrapping_mul(2_654_435_761)) % keys * 10;
        let mut entries = std::collections::BTreeMap::<u64, Growing>::new();
        for unit in span.clone() {
            entries.entry(key_of(unit)).and_modify(|units| units.push(unit)).or_insert(Growing::One(unit));
        }
        let (mut out, mut writer, mut gathered) = (crate::bytes::begin(), KeyedWriter::default(), Gathered::default());
        for (key, units) in &entries {
            gathered.clear();
            gathered.add_growing(units);
            writer.push(*key, &mut gathered, &mut out).unwrap();
        }
        let head = writer.finish(single.then_some(&span), &mut out).unwrap();
        let keyed = Keyed::new(&out, &head).unwrap();
        for (first, last) in [(0, u64::MAX), (0, 95), (5, 5), (keys * 3, keys * 7), (keys, u64::MAX), (9, 3)] {
            let expected: RoaringBitmap = span.clone().filter(|unit| (first..=last).contains(&key_of(*unit))).collect();
            assert_eq!(keyed.between(first, last, &span), Some(expected.clone()), "{first} to {last}");
            let listed: Vec<Unit> = expected.iter().collect();
            assert_eq!(keyed.between_list(first, last, &span), Some(listed), "{first} to {last}");
            if let Some(up_to) = keyed.up_to(last) {
                let (up_to, below) = (up_to.to_set().unwrap(), span.clone().filter(|unit| key_of(*unit) <= last));
                assert!(single && below.collect::<RoaringBitmap>().is_subset(&up_to), "up to {last}");
            }
            let every_third: Vec<Unit> = span.clone().step_by(3).collect();
            let among = keyed.between_among(first, last, &every_third, span.start);
            let found: Vec<Unit> = every_third.into_iter().filter(|unit| expected.contains(*unit)).collect();
            assert!(among.is_none_or(|among| single && among == found), "{first} to {last}");
        }
        let expected: RoaringBitmap = span.clone().filter(|unit| key_of(*unit) == 20).collect();
        assert_eq!(keyed.find(20).and_then(Stored::to_set), Some(expected));
        assert_eq!(keyed.find(21).map(Stored::len), Some(0));
        assert_eq!(keyed.between_len(0, u64::MAX), u64::from(count));
    }

    #[test]
    fn ranges_are_the_same_with_and_without_rungs() {
        for single in [false, true] {
            check(500, 100, single);
            check(20_000, 7, single);
            [254, 255, 256, 1_000, 65_534, 65_535].into_iter().for_each(|keys| check(80_000, keys, single));
            check(70_000, 1_000_000_000, single);
        }
    }
}
