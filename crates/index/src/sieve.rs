//! Units of a stored set, without making the set.
//!
//! A set stands in its file in the portable form of Roaring: a head with the upper halves and sizes of the containers,
//! then the containers, each of them a sorted list, 2^16 bits, or runs. Whoever has a few units and wants to know which
//! of them are in a set of a million reads just the places where they would stand.

use crate::Unit;
use crate::bytes::{Reader, u32_at};

const WITH_RUNS: u32 = 12_347;
const WITHOUT_RUNS: u32 = 12_346;
/// Fewer containers with runs have no table of positions.
const POSITIONS_MIN: usize = 4;
/// Longer lists are written as bits.
const LIST_MAX: usize = 4_096;
/// 2^16 bits, eight bytes at a time: a processor tests a bit of such a word in one step.
type Words = [[u8; 8]; 1_024];
const BITS_BYTES: usize = size_of::<Words>();
/// The bits of a unit that its container shares.
const UPPER: Unit = 0xffff_0000;
/// Lists so many times longer than what is looked for are searched, others are walked.
const SEARCHED: usize = 16;
/// Units are spread evenly enough that most stand this near to where they would stand if they were.
const NEAR: usize = 64;

/// The units that share their upper half.
#[derive(Clone, Copy)]
enum Container<'a> {
    List(&'a [[u8; 2]]),
    Bits(&'a Words),
    /// First unit and length less one of each run.
    Runs(&'a [[u8; 4]]),
}

/// Shows the upper half and the container of each group of units, in order.
fn each_container<'a>(bytes: &'a [u8], mut show: impl FnMut(Unit, Container<'a>)) -> Option<()> {
    let mut reader = Reader::new(bytes);
    let cookie = reader.u32()?;
    let (count, flags) = match cookie & 0xffff {
        WITH_RUNS => {
            let count = (cookie >> 16) as usize + 1;
            (count, Some(reader.take(count.div_ceil(8))?))
        }
        _ if cookie == WITHOUT_RUNS => (reader.u32()? as usize, None),
        _ => return None,
    };
    let heads = reader.take(count.checked_mul(4)?)?;
    if flags.is_none() || count >= POSITIONS_MIN {
        reader.take(count * 4)?;
    }
    for number in 0..count {
        let head = u32_at(heads, number * 4)?;
        let (upper, len) = (head << 16, (head >> 16) as usize + 1);
        let runs = flags.is_some_and(|flags| flags.get(number / 8).is_some_and(|byte| byte >> (number % 8) & 1 == 1));
        let container = if runs {
            let count = reader.take(2)?.first_chunk().copied().map(u16::from_le_bytes)?;
            Container::Runs(reader.take(usize::from(count) * 4)?.as_chunks().0)
        } else if len > LIST_MAX {
            Container::Bits(reader.take(BITS_BYTES)?.as_chunks().0.first_chunk()?)
        } else {
            Container::List(reader.take(len * 2)?.as_chunks().0)
        };
        show(upper, container);
    }
    Some(())
}

impl Container<'_> {
    /// How long a list is, where it is one.
    fn list_len(&self) -> Option<usize> {
        match self {
            Self::List(list) => Some(list.len()),
            Self::Bits(_) | Self::Runs(_) => None,
        }
    }

    /// Keeps the rising units, without their upper half, that are here.
    fn keep(self, units: &mut Vec<u16>) {
        match self {
            Self::Bits(bits) => keep_bits([bits], units),
            Self::List(list) if units.len() * SEARCHED < list.len() => units.retain(|unit| holds(list, *unit)),
            Self::List(list) => {
                let mut bits = [[0; 8]; 1_024];
                for unit in list.iter().map(|unit| u16::from_le_bytes(*unit)) {
                    if let Some(byte) = bits.as_flattened_mut().get_mut(usize::from(unit >> 3)) {
                        *byte |= 1 << (unit & 7);
                    }
                }
                keep_bits([&bits], units);
            }
            Self::Runs(mut runs) => units.retain(|unit| {
                runs = runs.get(runs.partition_point(|run| ends(run).1 < *unit)..).unwrap_or_default();
                runs.first().is_some_and(|run| ends(run).0 <= *unit)
            }),
        }
    }

    /// All units, without their upper half.
    fn list(self, units: &mut Vec<u16>) {
        match self {
            Self::List(list) => units.extend(list.iter().map(|unit| u16::from_le_bytes(*unit))),
            Self::Bits(bits) => list_bits(bits.iter().map(|word| u64::from_le_bytes(*word)), units),
            Self::Runs(runs) => runs.iter().for_each(|run| {
                let (first, last) = ends(run);
                units.extend(first..=last);
            }),
        }
    }
}

/// Whether a unit stands in a rising list.
fn holds(list: &[[u8; 2]], unit: u16) -> bool {
    let number = |unit: &[u8; 2]| u16::from_le_bytes(*unit);
    let expected = (list.len() * usize::from(unit)) >> 16;
    let near = list.get(expected.saturating_sub(NEAR)..(expected + NEAR).min(list.len())).unwrap_or_default();
    let between =
        near.first().is_some_and(|first| number(first) <= unit) && near.last().is_some_and(|last| number(last) >= unit);
    if between { near } else { list }.binary_search_by_key(&unit, number).is_ok()
}

/// One if the bit of a unit is set in all of some, else nought.
#[inline(always)]
fn is_set<const N: usize>(bits: [&Words; N], unit: u16) -> usize {
    let word = |bits: &Words| bits.get(usize::from(unit >> 6)).map_or(0, |word| u64::from_le_bytes(*word));
    let all = bits.into_iter().fold(u64::MAX, |all, bits| all & word(bits));
    (all >> (unit & 63) & 1) as usize
}

/// Keeps the units whose bits are set. Every unit is put down, and the next one over it where it does not count: whether
/// it does cannot be foreseen, and a processor that guesses wrong loses more time than it takes.
fn keep_bits<const N: usize>(bits: [&Words; N], units: &mut Vec<u16>) {
    let mut kept = 0;
    for position in 0..units.len() {
        let Some(&unit) = units.get(position) else { break };
        if let Some(place) = units.get_mut(kept) {
            *place = unit;
        }
        kept += is_set(bits, unit);
    }
    units.truncate(kept);
}

/// Lists the units of a list whose bits are set, in the same way.
fn list_kept<const N: usize>(list: &[[u8; 2]], bits: [&Words; N], units: &mut Vec<u16>) {
    units.resize(list.len(), 0);
    let mut kept = 0;
    for unit in list.iter().map(|unit| u16::from_le_bytes(*unit)) {
        if let Some(place) = units.get_mut(kept) {
            *place = unit;
        }
        kept += is_set(bits, unit);
    }
    units.truncate(kept);
}

fn list_bits(words: impl Iterator<Item = u64>, units: &mut Vec<u16>) {
    for (number, mut word) in words.enumerate() {
        while word != 0 {
            units.push((number as u16) << 6 | word.trailing_zeros() as u16);
            word &= word - 1;
        }
    }
}

/// All units of a set, in order.
pub(crate) fn list(bytes: &[u8], units: &mut Vec<Unit>) -> Option<()> {
    let mut lower = Vec::new();
    each_container(bytes, |upper, container| {
        lower.clear();
        container.list(&mut lower);
        units.extend(lower.iter().map(|lower| upper | Unit::from(*lower)));
    })
}

/// Those of some rising units that are in a set.
pub(crate) fn among(bytes: &[u8], mut units: &[Unit], found: &mut Vec<Unit>) -> Option<()> {
    let mut lower = Vec::new();
    each_container(bytes, |upper, container| {
        let (_, from) = units.split_at(units.partition_point(|unit| *unit < upper));
        let (here, after) = from.split_at(from.partition_point(|unit| unit & UPPER == upper));
        units = after;
        lower.clear();
        lower.extend(here.iter().map(|unit| *unit as u16));
        container.keep(&mut lower);
        found.extend(lower.iter().map(|lower| upper | Unit::from(*lower)));
    })
}

/// The units that several sets have in common, in order.
pub(crate) fn common(sets: &[&[u8]]) -> Option<Vec<Unit>> {
    let mut containers = Vec::with_capacity(sets.len());
    for bytes in sets {
        let mut of_set = Vec::new();
        each_container(bytes, |upper, container| of_set.push((upper, container)))?;
        containers.push(of_set);
    }
    let (mut found, mut lower, mut here) = (Vec::new(), Vec::new(), Vec::new());
    let Some((first, others)) = containers.split_first() else { return Some(found) };
    let mut others: Vec<&[(Unit, Container<'_>)]> = others.iter().map(Vec::as_slice).collect();
    for (upper, container) in first {
        here.clear();
        here.push(*container);
        for other in &mut others {
            *other = other.get(other.partition_point(|(known, _)| known < upper)..).unwrap_or_default();
            here.extend(other.first().filter(|(known, _)| known == upper).map(|(_, container)| *container));
        }
        if here.len() == sets.len() {
            meet(&mut here, &mut lower);
            found.extend(lower.iter().map(|lower| upper | Unit::from(*lower)));
        }
    }
    Some(found)
}

/// The units that several containers have in common: the shortest list decides, or else the bits of all.
///
/// Bits are asked before the other lists: a unit is found there at a glance, so that a list is searched for the few that
/// are left and is not walked for all.
fn meet(containers: &mut [Container<'_>], units: &mut Vec<u16>) {
    units.clear();
    let shortest = containers.iter().filter_map(Container::list_len).min();
    containers.sort_by_key(|container| match container {
        Container::List(list) if Some(list.len()) == shortest => 0,
        Container::Bits(_) => 1,
        Container::List(list) => 2 + list.len(),
        Container::Runs(_) => 2 + LIST_MAX,
    });
    // Bits are asked two at a time where there are two: what is left is written once.
    let mut rest = match &*containers {
        [Container::List(list), Container::Bits(one), Container::Bits(other), rest @ ..] => {
            list_kept(list, [one, other], units);
            rest
        }
        [Container::List(list), Container::Bits(bits), rest @ ..] => {
            list_kept(list, [bits], units);
            rest
        }
        [Container::Bits(first), rest @ ..] => {
            let (mut words, mut rest) = (first.map(u64::from_le_bytes), rest);
            while let [Container::Bits(bits), others @ ..] = rest {
                words.iter_mut().zip(*bits).for_each(|(word, other)| *word &= u64::from_le_bytes(*other));
                rest = others;
            }
            list_bits(words.into_iter(), units);
            rest
        }
        [first, rest @ ..] => {
            first.list(units);
            rest
        }
        [] => &[],
    };
    while !units.is_empty() {
        rest = match rest {
            [Container::Bits(one), Container::Bits(other), rest @ ..] => {
                keep_bits([one, other], units);
                rest
            }
            [first, rest @ ..] => {
                first.keep(units);
                rest
            }
            [] => break,
        };
    }
}

/// The first and the last unit of a run, without their upper half.
fn ends(&[first_low, first_high, len_low, len_high]: &[u8; 4]) -> (u16, u16) {
    let first = u16::from_le_bytes([first_low, first_high]);
    (first, first.saturating_add(u16::from_le_bytes([len_low, len_high])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use roaring::RoaringBitmap;

    fn written(set: &RoaringBitmap) -> Vec<u8> {
        let mut bytes = Vec::new();
        set.serialize_into(&mut bytes).unwrap();
        bytes
    }

    #[track_caller]
    fn check(set: &RoaringBitmap, asked: &[Unit]) {
        let (bytes, mut all, mut found) = (written(set), Vec::new(), Vec::new());
        list(&bytes, &mut all).unwrap();
        assert_eq!(all, set.iter().collect::<Vec<_>>());
        among(&bytes, asked, &mut found).unwrap();
        assert_eq!(found, asked.iter().copied().filter(|unit| set.contains(*unit)).collect::<Vec<_>>());
        for cut in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            assert_eq!(list(&bytes[..cut], &mut Vec::new()), None, "cut at {cut}");
        }
    }

    /// Containers of every form, side by side.
    fn sets() -> impl Strategy<Value = RoaringBitmap> {
        let run = (0..400_000_u32, 1..70_000_u32).prop_map(|(start, len)| (start..start + len).collect());
        let steps = (0..400_000_u32, 1..9_000_u32, 2..40_u32);
        let steps = steps.prop_map(|(start, count, step)| (0..count).map(|number| start + number * step).collect());
        let single = (0..400_000_u32).prop_map(|unit| RoaringBitmap::from_iter([unit]));
        prop::collection::vec(prop_oneof![run, steps, single], 1..5).prop_map(|parts: Vec<RoaringBitmap>| {
            let mut set = parts.iter().fold(RoaringBitmap::new(), |sum, part| sum | part);
            set.optimize();
            set
        })
    }

    proptest! {
        #[test]
        fn a_set_is_asked_as_if_it_had_been_read(set in sets(), asked in prop::collection::btree_set(0..500_000_u32, 0..3_000)) {
            let asked: Vec<Unit> = asked.into_iter().collect();
            check(&set, &asked);
            let mut plain = set.clone();
            plain.remove_run_compression();
            check(&plain, &asked);
            check(&set, &set.iter().collect::<Vec<_>>());
        }

        #[test]
        fn what_sets_have_in_common_is_found_without_reading_them(sets in prop::collection::vec(sets(), 1..5)) {
            let bytes: Vec<Vec<u8>> = sets.iter().map(written).collect();
            let expected = sets.iter().skip(1).fold(sets[0].clone(), |all, set| all & set);
            let found = common(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
            prop_assert_eq!(found, expected.iter().collect::<Vec<_>>());
        }
    }
}
