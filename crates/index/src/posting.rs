//! The units that have one value.

use crate::Unit;
use crate::bytes::{Put, Reader, position};
use crate::error::IndexError;
use crate::sieve;
use roaring::RoaringBitmap;
use std::ops::Range;

/// Lists beyond this are kept as a set.
const FEW_MAX: usize = 64;
/// Units that wait until they are put into a set together: a set takes a run of them much faster than one by one.
const TAIL_MAX: usize = 512;

/// A set of units that come in their order.
///
/// INVARIANT: the tail rises, and lies above the set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rising {
    set: RoaringBitmap,
    tail: Vec<Unit>,
}

impl Rising {
    /// Adds a unit that is not below the last one.
    #[inline]
    pub(crate) fn push(&mut self, unit: Unit) {
        if self.tail.last() == Some(&unit) {
            return;
        }
        if self.tail.len() >= TAIL_MAX {
            self.flush();
        }
        self.tail.push(unit);
    }

    /// The last unit stays, to be known when it comes again.
    fn flush(&mut self) {
        let last = self.tail.pop();
        self.set |= sorted_set(&self.tail);
        self.tail.clear();
        self.tail.extend(last);
    }

    pub(crate) fn len(&self) -> u64 {
        self.set.len() + self.tail.len() as u64
    }

    pub(crate) fn contains(&self, unit: Unit) -> bool {
        self.set.contains(unit) || self.tail.binary_search(&unit).is_ok()
    }

    pub(crate) fn to_set(&self) -> RoaringBitmap {
        let tail = sorted_set(&self.tail);
        if self.set.is_empty() { tail } else { &self.set | tail }
    }

    pub(crate) fn add_to(&self, set: &mut RoaringBitmap) {
        *set |= &self.set;
        *set |= sorted_set(&self.tail);
    }
}

/// Units with one value in the part that still grows; most values belong to one unit only.
#[derive(Clone, Debug)]
pub(crate) enum Growing {
    One(Unit),
    Few(Vec<Unit>),
    Many(Box<Rising>),
}

impl Growing {
    /// Adds a unit that is not below the last one.
    pub(crate) fn push(&mut self, unit: Unit) {
        match self {
            Self::One(first) if *first != unit => *self = Self::Few(vec![*first, unit]),
            Self::Few(units) if units.last() != Some(&unit) => {
                units.push(unit);
                if units.len() > FEW_MAX {
                    let tail = std::mem::take(units);
                    *self = Self::Many(Box::new(Rising { set: RoaringBitmap::new(), tail }));
                }
            }
            Self::Many(units) => units.push(unit),
            Self::One(_) | Self::Few(_) => {}
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Few(units) => units.len() as u64,
            Self::Many(units) => units.len(),
        }
    }

    pub(crate) fn to_set(&self) -> RoaringBitmap {
        match self {
            Self::One(unit) => RoaringBitmap::from_iter([*unit]),
            Self::Few(units) => sorted_set(units),
            Self::Many(units) => units.to_set(),
        }
    }

    pub(crate) fn contains(&self, unit: Unit) -> bool {
        match self {
            Self::One(only) => *only == unit,
            Self::Few(units) => units.binary_search(&unit).is_ok(),
            Self::Many(units) => units.contains(unit),
        }
    }

    pub(crate) fn add_to(&self, set: &mut RoaringBitmap) {
        match self {
            Self::One(unit) => {
                set.insert(*unit);
            }
            Self::Few(units) => set.extend(units.iter().copied()),
            Self::Many(units) => units.add_to(set),
        }
    }
}

/// Where the units of a value stand in a file: the unit itself, or a position with this bit.
const ELSEWHERE: u32 = 1 << 31;
/// No units.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// The bit of a count that says that a set follows, not a list.
const AS_SET: u32 = 1 << 31;
/// Shorter lists are not tried as sets.
const LIST_MIN: usize = 16;

/// Units with one value, on their way into a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// Few units, in order.
    few: Vec<Unit>,
    /// Many units; when there are some, the few belong to them.
    many: RoaringBitmap,
}

impl Gathered {
    pub(crate) fn clear(&mut self) {
        self.few.clear();
        if !self.many.is_empty() {
            self.many = RoaringBitmap::new();
        }
    }

    pub(crate) fn add_growing(&mut self, units: &Growing) {
        match units {
            Growing::One(unit) => self.few.push(*unit),
            Growing::Few(units) => self.few.extend_from_slice(units),
            Growing::Many(units) => units.add_to(&mut self.many),
        }
    }

    /// Adds units that lie above those that are in; only the living ones, when that matters.
    pub(crate) fn add_stored(&mut self, units: Stored<'_>, living: Option<&RoaringBitmap>) -> Option<()> {
        let lives = |unit: &Unit| living.is_none_or(|living| living.contains(*unit));
        match units {
            Stored::One(_) | Stored::List(_) => {
                units.for_each(|unit| self.few.extend(Some(unit).filter(lives)))?;
            }
            Stored::Set(_, bytes) => {
                let set = read_set(bytes)?;
                self.many |= match living {
                    Some(living) => set & living,
                    None => set,
                };
            }
        }
        Some(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.few.len() as u64 + self.many.len()
    }

    pub(crate) fn into_set(mut self) -> RoaringBitmap {
        self.many.extend(self.few);
        self.many
    }

    /// Writes the units in the smallest form and says where they stand.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> Result<u32, IndexError> {
        if self.many.is_empty() {
            return match self.few.as_slice() {
                [] => Ok(NOWHERE),
                [unit] => Ok(*unit),
                few if few.len() < LIST_MIN => write_list(few, out),
                few => write_set(sorted_set(few), out),
            };
        }
        self.many.extend(self.few.drain(..));
        write_set(std::mem::take(&mut self.many), out)
    }
}

fn write_list(units: &[Unit], out: &mut Vec<u8>) -> Result<u32, IndexError> {
    let at = position(out)?;
    out.put_u32(units.len() as u32);
    units.iter().for_each(|unit| out.put_u32(*unit));
    Ok(at | ELSEWHERE)
}

pub(crate) fn write_set(mut set: RoaringBitmap, out: &mut Vec<u8>) -> Result<u32, IndexError> {
    match (set.len(), set.min()) {
        (0, _) | (_, None) => return Ok(NOWHERE),
        (1, Some(unit)) => return Ok(unit),
        _ => {}
    }
    set.optimize();
    let size = set.serialized_size();
    if size as u64 >= 4 * set.len() {
        return write_list(&set.iter().collect::<Vec<Unit>>(), out);
    }
    let at = position(out)?;
    out.put_u32(set.len() as u32 | AS_SET);
    out.put_u32(size as u32);
    // A vector takes everything.
    set.serialize_into(&mut *out).map_err(|_| IndexError::TooLarge)?;
    Ok(at | ELSEWHERE)
}

/// Units with one value, in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored<'a> {
    One(Unit),
    List(&'a [u8]),
    /// How many, and the set as it is written.
    Set(u32, &'a [u8]),
}

impl<'a> Stored<'a> {
    /// Finds the units that a reference means; nothing when it means none.
    pub(crate) fn at(bytes: &'a [u8], reference: u32) -> Option<Self> {
        if reference & ELSEWHERE == 0 {
            return Some(Self::One(reference));
        }
        if reference == NOWHERE {
            return Some(Self::List(&[]));
        }
        let mut reader = Reader::new(bytes.get((reference & !ELSEWHERE) as usize..)?);
        let count = reader.u32()?;
        if count & AS_SET == 0 {
            return reader.take(count as usize * 4).map(Self::List);
        }
        let size = reader.u32()? as usize;
        reader.take(size).map(|set| Self::Set(count & !AS_SET, set))
    }

    pub(crate) fn len(self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::List(units) => units.len() as u64 / 4,
            Self::Set(count, _) => u64::from(count),
        }
    }

    pub(crate) fn to_set(self) -> Option<RoaringBitmap> {
        match self {
            Self::One(unit) => Some(RoaringBitmap::from_iter([unit])),
            Self::List(_) => {
                let mut set = RoaringBitmap::new();
                self.for_each(|unit| {
                    set.insert(unit);
                })?;
                Some(set)
            }
            Self::Set(_, bytes) => {
                let mut set = read_set(bytes)?;
                // Runs are small in a file and slow in arithmetic with other forms.
                set.remove_run_compression();
                Some(set)
            }
        }
    }

    /// Those of some rising units that are here.
    pub(crate) fn among(self, units: &[Unit]) -> Option<Vec<Unit>> {
        let mut found = Vec::new();
        match self {
            Self::One(unit) => found.extend(units.binary_search(&unit).is_ok().then_some(unit)),
            Self::List(_) => self.for_each(|unit| found.extend(units.binary_search(&unit).is_ok().then_some(unit)))?,
            Self::Set(_, bytes) => sieve::among(bytes, units, &mut found)?,
        }
        Some(found)
    }

    /// The units that are in all of several.
    pub(crate) fn common(all: &[Self]) -> Option<Vec<Unit>> {
        let sets: Vec<&[u8]> = all.iter().filter_map(|stored| stored.as_set()).collect();
        let mut lists = all.iter().filter(|stored| stored.as_set().is_none());
        let mut units = match lists.next() {
            Some(list) => list.to_list()?,
            None => return sieve::common(&sets),
        };
        for list in lists {
            units = list.among(&units)?;
        }
        for set in sets {
            let mut found = Vec::new();
            sieve::among(set, &units, &mut found)?;
            units = found;
        }
        Some(units)
    }

    fn as_set(&self) -> Option<&[u8]> {
        match self {
            Self::Set(_, bytes) => Some(bytes),
            Self::One(_) | Self::List(_) => None,
        }
    }

    fn to_list(self) -> Option<Vec<Unit>> {
        let mut units = Vec::new();
        self.for_each(|unit| units.push(unit))?;
        Some(units)
    }

    /// Shows each unit.
    #[inline]
    pub(crate) fn for_each(self, mut show: impl FnMut(Unit)) -> Option<()> {
        match self {
            Self::One(unit) => show(unit),
            Self::List(units) => {
                let (units, _) = units.as_chunks::<4>();
                units.iter().for_each(|unit| show(u32::from_le_bytes(*unit)));
            }
            Self::Set(_, bytes) => {
                let mut units = Vec::new();
                sieve::list(bytes, &mut units)?;
                units.into_iter().for_each(show);
            }
        }
        Some(())
    }
}

/// Reads a set as it was written; the checksum of the file has shown that it is.
fn read_set(bytes: &[u8]) -> Option<RoaringBitmap> {
    RoaringBitmap::deserialize_unchecked_from(bytes).ok()
}

/// Collects the units of many values: few in a list, many in one bit for each unit that there could be.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    first: Unit,
    span: usize,
    list: Vec<Unit>,
    bits: Vec<u8>,
    sets: RoaringBitmap,
}

impl Collector {
    pub(crate) fn new(units: &Range<Unit>) -> Self {
        Self::expecting(0, units)
    }

    /// A collector for about so many values.
    pub(crate) fn expecting(values: usize, units: &Range<Unit>) -> Self {
        // Sets are made of runs of 2^16 numbers; whole runs are turned into sets fastest.
        let first = units.start & !0xffff;
        let span = (units.end - first) as usize;
        let bits = if values > list_max(span) { vec![0; span / 8 + 1] } else { Vec::new() };
        Self { first, span, list: Vec::new(), bits, sets: RoaringBitmap::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, units: Stored<'_>) -> Option<()> {
        match units {
            Stored::Set(count, _) if count as usize > LARGE_MIN => self.sets |= units.to_set()?,
            Stored::One(_) | Stored::List(_) | Stored::Set(..) => units.for_each(|unit| self.push(unit))?,
        }
        Some(())
    }

    #[inline]
    fn push(&mut self, unit: Unit) {
        if !self.bits.is_empty() {
            return self.mark(unit);
        }
        self.list.push(unit);
        if self.list.len() > list_max(self.span) {
            self.bits.resize(self.span / 8 + 1, 0);
            for unit in std::mem::take(&mut self.list) {
                self.mark(unit);
            }
        }
    }

    #[inline]
    fn mark(&mut self, unit: Unit) {
        let bit = unit.wrapping_sub(self.first);
        if let Some(byte) = self.bits.get_mut(bit as usize / 8) {
            *byte |= 1 << (bit % 8);
        }
    }

    pub(crate) fn finish(mut self) -> RoaringBitmap {
        let units = if self.bits.is_empty() {
            self.list.sort_unstable();
            self.list.dedup();
            sorted_set(&self.list)
        } else {
            RoaringBitmap::from_lsb0_bytes(self.first, &self.bits)
        };
        if self.sets.is_empty() { units } else { self.sets | units }
    }

    /// The units in their order, without making a set of them.
    pub(crate) fn into_list(mut self) -> Vec<Unit> {
        if !self.sets.is_empty() {
            return self.finish().iter().collect();
        }
        if self.bits.is_empty() {
            self.list.sort_unstable();
            self.list.dedup();
            return self.list;
        }
        let mut units = Vec::new();
        for (number, word) in self.bits.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
            let mut word = u64::from_le_bytes(bytes);
            while word != 0 {
                units.push(self.first + (number as Unit * 64 + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        units
    }

    /// The set so far.
    pub(crate) fn snapshot(&self) -> RoaringBitmap {
        self.clone().finish()
    }
}

/// Larger sets are joined as a whole.
const LARGE_MIN: usize = 4_096;

/// Longer lists are sorted more slowly than bits are set.
fn list_max(span: usize) -> usize {
    span / 1024 + 32
}

/// The set of units that rise.
pub(crate) fn sorted_set(units: &[Unit]) -> RoaringBitmap {
    // Units that do not rise are taken one by one.
    RoaringBitmap::from_sorted_iter(units.iter().copied()).unwrap_or_else(|_| units.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(units: &[Unit], out: &mut Vec<u8>) -> u32 {
        let mut gathered = Gathered::default();
        gathered.few.extend_from_slice(units);
        gathered.write(out).unwrap()
    }

    #[test]
    fn every_form_of_units_reads_as_it_was_written() {
        let mut out = vec![0; 12];
        let sparse: Vec<Unit> = (0..40).map(|number| number * 70_000).collect();
        let dense: Vec<Unit> = (5..20_000).collect();
        let cases = [vec![], vec![7], vec![7, 9], sparse, dense, (0..9_000).map(|number| number * 3).collect()];
        for units in cases {
            let reference = stored(&units, &mut out);
            let read = Stored::at(&out, reference).unwrap();
            let expected: RoaringBitmap = units.iter().copied().collect();
            assert_eq!((read.to_set().unwrap(), read.len()), (expected.clone(), units.len() as u64));
            let mut collector = Collector::new(&(0..3_000_000));
            collector.add(read).unwrap();
            assert_eq!(collector.finish(), expected);
            let (mut again, living) = (Gathered::default(), (0..10).collect());
            again.add_stored(read, Some(&living)).unwrap();
            assert_eq!(again.len(), (expected & living).len());
        }
    }

    #[test]
    fn one_unit_takes_no_room_and_a_run_takes_little() {
        let mut out = Vec::new();
        stored(&[5], &mut out);
        assert!(out.is_empty());
        stored(&(0..100_000).collect::<Vec<Unit>>(), &mut out);
        assert!(out.len() < 64, "{}", out.len());
    }

    #[test]
    fn growing_units_are_kept_once_and_in_order() {
        let mut growing = Growing::One(3);
        for end in [4, 5, 60, 70, 200, 580, 2_000, 70_000, 140_000] {
            (growing.len() as Unit + 2..end).flat_map(|unit| [unit, unit]).for_each(|unit| growing.push(unit));
            let expected: RoaringBitmap = (3..end).collect();
            assert_eq!((growing.len(), growing.to_set()), (expected.len(), expected.clone()));
            assert!((0..end + 9).all(|unit| growing.contains(unit) == expected.contains(unit)));
            let (mut set, mut gathered) = (RoaringBitmap::from_iter([1, 5]), Gathered::default());
            growing.add_to(&mut set);
            gathered.add_growing(&growing);
            assert_eq!((set, gathered.into_set()), (&expected | RoaringBitmap::from_iter([1, 5]), expected));
        }
    }
}
