//! What a document can have, as keys; and the filters filed under them.
//!
//! A key is a keyed hash of 96 bits and stands for what was hashed: nobody who does not know its secret makes two of
//! them meet. With each filter stands its row, and in a long list the rows with the same first mark stand together, so
//! that those of which the document has not even that are passed over at once.
//!
//! INVARIANT: a key is kept as long as some filter asks for it or rules it out.

use super::paths::PathId;
use super::rows::{ALL_MARKS, Present, Row, push, remove};
use super::slab::Slab;
use aql::Literal;
use aql::key::number_key;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use json::{Kind, Node};
use std::hash::{BuildHasher, Hash, Hasher};

/// What of a value at a path a key is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum About {
    /// It is a scalar, this one.
    Equal,
    /// It is an array or an object, this one.
    Container,
    /// It is an array with this element, or a text with this text in it.
    Element,
    /// It is there.
    Exists,
    /// It is a text that this pattern matches.
    Pattern,
}

/// Something that a document has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    hash: u64,
    check: u32,
}

/// The keys that filters mention.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    all: Slab<Filed>,
    table: HashTable<u32>,
    secret: Secret,
    marks: Marks,
}

/// What keys are made with; nobody outside learns it.
#[derive(Clone, Debug)]
struct Secret([[u64; 3]; 2]);

impl Default for Secret {
    fn default() -> Self {
        Self(std::array::from_fn(|_| {
            let state = RandomState::default();
            std::array::from_fn(|place| state.hash_one(place))
        }))
    }
}

/// A key in the making: two hashes that go along a value side by side, each with words of the secret of its own.
///
/// A word or two of the value are multiplied with what came before and what is secret, and the halves of the product are
/// folded together, as in the hash functions of this kind. Both at once cost little more than one.
struct Making<'a> {
    secret: &'a Secret,
    state: [u64; 2],
}

impl Making<'_> {
    #[inline(always)]
    fn mix(&mut self, left: u64, right: u64) {
        for (state, [_, secret, _]) in self.state.iter_mut().zip(&self.secret.0) {
            *state = fold(*state ^ left, *secret ^ right);
        }
    }

    #[inline(always)]
    fn finish(self) -> Key {
        let Self { secret: Secret([[.., one], [.., two]]), state: [hash, check] } = self;
        Key { hash: fold(hash, *one), check: fold(check, *two) as u32 }
    }
}

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// Texts are written with their length, so that their last words may have bytes of those before once more.
impl Hasher for Making<'_> {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            self.mix_block(block);
        }
        match (rest.len(), bytes.last_chunk::<16>()) {
            (0, _) => {}
            (_, Some(last)) => self.mix_block(last),
            (..8, None) => {
                let word = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
                match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
                    (Some(first), Some(last)) => {
                        self.mix(u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
                    }
                    _ => self.mix(rest.iter().fold(0, word), 0),
                }
            }
            (_, None) => {
                let first = rest.first_chunk().copied().map_or(0, u64::from_le_bytes);
                self.mix(first, rest.last_chunk().copied().map_or(0, u64::from_le_bytes));
            }
        }
    }

    #[inline(always)]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    #[inline(always)]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        self.mix(number, 0);
    }

    fn finish(&self) -> u64 {
        let [hash, _] = self.state;
        hash
    }
}

impl Making<'_> {
    #[inline(always)]
    fn mix_block(&mut self, block: &[u8; 16]) {
        let whole = u128::from_le_bytes(*block);
        self.mix(whole as u64, (whole >> 64) as u64);
    }
}

/// A key, who mentions it, and the filters that are filed under it.
#[derive(Clone, Debug)]
pub(crate) struct Filed {
    hash: u64,
    check: u32,
    /// How often filters ask for it.
    pub(crate) asked: u32,
    /// How often filters rule it out.
    excluded: u32,
    /// Its mark, once a row asks for it; and that of its absence.
    mark: u16,
    absence: u16,
    list: List,
}

impl Filed {
    fn is(&self, key: Key) -> bool {
        self.hash == key.hash && self.check == key.check
    }

    /// The rows under this key of which a document may pass some.
    #[inline]
    pub(crate) fn rows<'a>(&'a self, present: &Present, out: &mut Vec<&'a [Row]>) {
        self.list.rows(present, out);
    }

    /// Tells the rows that the document has it; says whether some filter stands here.
    #[inline]
    pub(crate) fn mark(&self, present: &mut Present) -> bool {
        present.set(self.mark);
        if self.absence != 0 {
            present.clear(self.absence);
        }
        !matches!(self.list, List::Empty)
    }
}

/// Marks that are given out.
#[derive(Clone, Debug, Default)]
struct Marks {
    free: Vec<u16>,
    next: u16,
}

impl Marks {
    fn take(&mut self) -> Option<u16> {
        self.free.pop().or_else(|| {
            self.next = self.next.checked_add(1).filter(|next| usize::from(*next) < ALL_MARKS)?;
            Some(self.next)
        })
    }
}

/// The filters under a key; there are millions of keys, and under most of them stands one or none.
#[derive(Clone, Debug)]
enum List {
    Empty,
    One(Row),
    #[expect(clippy::box_collection, reason = "a list as such would take more room than a row")]
    Many(Box<Vec<Row>>),
    /// Too many to walk.
    Grouped(Box<Groups>),
}

/// Rows with the same first mark stand together.
#[derive(Clone, Debug, Default)]
struct Groups {
    /// In order.
    marks: Vec<u16>,
    rows: Vec<Vec<Row>>,
}

/// Rows from which on a list is grouped.
const GROUPED: usize = 32;
/// Groups whose marks are asked for together.
const ASKED: usize = 64;

fn first_mark(row: &Row) -> u16 {
    let [first, ..] = row.marks;
    first
}

impl Groups {
    fn push(&mut self, row: Row) {
        let place = self.marks.binary_search(&first_mark(&row)).unwrap_or_else(|place| {
            self.marks.insert(place, first_mark(&row));
            self.rows.insert(place, Vec::new());
            place
        });
        if let Some(rows) = self.rows.get_mut(place) {
            push(rows, row);
        }
    }

    fn remove(&mut self, slot: u32, first: u16) {
        let Ok(place) = self.marks.binary_search(&first) else { return };
        let Some(rows) = self.rows.get_mut(place) else { return };
        remove(rows, slot);
        if rows.is_empty() {
            self.marks.remove(place);
            self.rows.remove(place);
        }
    }
}

impl List {
    fn push(&mut self, row: Row) {
        match self {
            Self::Empty => *self = Self::One(row),
            Self::One(first) => {
                let mut rows = Vec::with_capacity(2);
                [*first, row].into_iter().for_each(|row| push(&mut rows, row));
                *self = Self::Many(Box::new(rows));
            }
            Self::Many(rows) if rows.len() < GROUPED => push(rows, row),
            Self::Many(rows) => {
                let mut groups = Groups::default();
                rows.iter().for_each(|row| groups.push(*row));
                groups.push(row);
                *self = Self::Grouped(Box::new(groups));
            }
            Self::Grouped(groups) => groups.push(row),
        }
    }

    fn remove(&mut self, slot: u32, first: u16) {
        let is_empty = match self {
            Self::Empty => false,
            Self::One(_) => true,
            Self::Many(rows) => {
                remove(rows, slot);
                rows.is_empty()
            }
            Self::Grouped(groups) => {
                groups.remove(slot, first);
                groups.marks.is_empty()
            }
        };
        if is_empty {
            *self = Self::Empty;
        }
    }

    #[inline]
    fn rows<'a>(&'a self, present: &Present, out: &mut Vec<&'a [Row]>) {
        match self {
            Self::Empty => {}
            Self::One(row) => out.push(std::slice::from_ref(row)),
            Self::Many(rows) => out.push(rows),
            Self::Grouped(groups) => {
                for (marks, rows) in groups.marks.chunks(ASKED).zip(groups.rows.chunks(ASKED)) {
                    let bit = |bits: u64, mark: &u16| bits >> 1 | u64::from(present.has(*mark)) << (ASKED - 1);
                    let mut here = marks.iter().fold(0, bit) >> (ASKED - marks.len());
                    while here != 0 {
                        out.extend(rows.get(here.trailing_zeros() as usize).map(Vec::as_slice));
                        here &= here - 1;
                    }
                }
            }
        }
    }
}

impl Keys {
    /// The key of a value of a document.
    #[inline]
    pub(crate) fn of_node(&self, path: PathId, about: About, node: Node<'_>) -> Key {
        self.make(path, about, |state| write_node(node, state))
    }

    /// The key of a constant of a filter.
    pub(crate) fn of_literal(&self, path: PathId, about: About, literal: &Literal) -> Key {
        self.make(path, about, |state| write_literal(literal, state))
    }

    pub(crate) fn of_pattern(&self, path: PathId, source: &str) -> Key {
        self.make(path, About::Pattern, |state| source.hash(state))
    }

    pub(crate) fn of_path(&self, path: PathId) -> Key {
        self.make(path, About::Exists, |_| {})
    }

    #[inline]
    fn make(&self, path: PathId, about: About, write: impl Fn(&mut Making<'_>)) -> Key {
        let state = self.secret.0.map(|[first, ..]| first ^ (u64::from(path) << 8 | about as u64));
        let mut making = Making { secret: &self.secret, state };
        write(&mut making);
        Making::finish(making)
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&Filed> {
        self.all.get(self.number(key)?)
    }

    #[inline]
    pub(crate) fn by_number(&self, number: u32) -> Option<&Filed> {
        self.all.get(number)
    }

    /// The number of a key that some filter mentions.
    #[inline]
    pub(crate) fn number(&self, key: Key) -> Option<u32> {
        let is_it = |number: &u32| self.all.get(*number).is_some_and(|filed| filed.is(key));
        self.table.find(key.hash, is_it).copied()
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Filed> {
        self.all.get_mut(self.number(key)?)
    }

    fn used(&mut self, key: Key) -> Option<&mut Filed> {
        let number = self.number(key).unwrap_or_else(|| {
            let Key { hash, check } = key;
            let new = Filed { hash, check, asked: 0, excluded: 0, mark: 0, absence: 0, list: List::Empty };
            let (number, all) = (self.all.insert(new), &self.all);
            self.table.insert_unique(hash, number, |number| all.get(*number).map_or(0, |filed| filed.hash));
            number
        });
        self.all.get_mut(number)
    }

    /// Counts one more filter that asks for a key.
    pub(crate) fn ask(&mut self, key: Key) {
        if let Some(filed) = self.used(key) {
            filed.asked += 1;
        }
    }

    /// Counts one more filter that rules a key out.
    pub(crate) fn exclude(&mut self, key: Key) {
        if let Some(filed) = self.used(key) {
            filed.excluded += 1;
        }
    }

    /// Takes one [`Self::ask`] back.
    pub(crate) fn unask(&mut self, key: Key, empty: &mut Present) {
        if let Some(filed) = self.get_mut(key) {
            filed.asked -= 1;
        }
        self.forget_unused(key, empty);
    }

    /// Takes one [`Self::exclude`] back.
    pub(crate) fn unexclude(&mut self, key: Key, empty: &mut Present) {
        if let Some(filed) = self.get_mut(key) {
            filed.excluded -= 1;
        }
        self.forget_unused(key, empty);
    }

    fn forget_unused(&mut self, key: Key, empty: &mut Present) {
        if self.get(key).is_none_or(|filed| filed.asked > 0 || filed.excluded > 0) {
            return;
        }
        let is_it = |number: &u32| self.all.get(*number).is_some_and(|filed| filed.is(key));
        let Ok(entry) = self.table.find_entry(key.hash, is_it) else { return };
        let (number, _) = entry.remove();
        let Some(filed) = self.all.remove(number) else { return };
        empty.clear(filed.absence);
        empty.set(0);
        self.marks.free.extend([filed.mark, filed.absence].into_iter().filter(|mark| *mark != 0));
    }

    /// The mark of a key, as long as there are some left.
    pub(crate) fn mark(&mut self, key: Key) -> Option<u16> {
        let filed = self.all.get_mut(self.number(key)?)?;
        if filed.mark == 0 {
            filed.mark = self.marks.take()?;
        }
        Some(filed.mark)
    }

    /// The mark of a key's absence, which a document without anything has.
    pub(crate) fn mark_of_absence(&mut self, key: Key, empty: &mut Present) -> Option<u16> {
        let filed = self.all.get_mut(self.number(key)?)?;
        if filed.absence == 0 {
            filed.absence = self.marks.take()?;
            empty.set(filed.absence);
        }
        Some(filed.absence)
    }

    /// Files a filter under a key that it asks for, and tells the key's number.
    pub(crate) fn file(&mut self, key: Key, row: Row) -> Option<u32> {
        let number = self.number(key)?;
        self.all.get_mut(number)?.list.push(row);
        Some(number)
    }

    /// Takes a filter out of the list under a key, where it stands with that first mark.
    pub(crate) fn unfile(&mut self, number: u32, slot: u32, first: u16) {
        if let Some(filed) = self.all.get_mut(number) {
            filed.list.remove(slot, first);
        }
    }
}

#[inline]
fn write_text(text: &str, state: &mut impl Hasher) {
    state.write_u64(3 << 56 | text.len() as u64);
    state.write(text.as_bytes());
}

#[inline]
fn write_number(number: f64, state: &mut impl Hasher) {
    state.write_u8(2);
    state.write_u64(number_key(number));
}

pub(crate) fn write_literal(literal: &Literal, state: &mut impl Hasher) {
    match literal {
        Literal::Text(text, _) => write_text(text, state),
        Literal::Number(number) => write_number(*number, state),
        Literal::Other(document) => write_node(document.root(), state),
    }
}

/// Writes a value so that values that are equal are written alike, and no two others.
#[inline]
fn write_node(node: Node<'_>, state: &mut impl Hasher) {
    match node.kind() {
        Kind::Null => 0u8.hash(state),
        Kind::Bool => (1u8, node.as_bool()).hash(state),
        Kind::Number => write_number(node.as_f64().unwrap_or_default(), state),
        Kind::String => write_text(node.as_str().unwrap_or_default(), state),
        Kind::Array | Kind::Object => write_container(node, state),
    }
}

fn write_container(node: Node<'_>, state: &mut impl Hasher) {
    (4 + u8::from(node.is_object()), node.len()).hash(state);
    for (name, member) in node.members() {
        write_text(name, state);
        write_node(member, state);
    }
    node.elements().for_each(|element| write_node(element, state));
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::Document;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn texts_of_every_length_that_differ_in_one_byte_have_different_keys() {
        let (keys, mut seen, mut count) = (Keys::default(), BTreeSet::new(), 0);
        for len in 0..70 {
            for place in 0..=len {
                let text: String = (0..len).map(|number| if number == place { 'b' } else { 'a' }).collect();
                let document = Document::of(&json!(text)).unwrap();
                seen.insert(keys.of_node(1, About::Equal, document.root()));
                count += 1;
            }
        }
        assert_eq!(seen.len(), count);
        assert_eq!(seen.iter().map(|key| key.hash).collect::<BTreeSet<_>>().len(), count);
        // Of so many halves two may meet, once in a thousand times, but not many.
        assert!(seen.iter().map(|key| key.check).collect::<BTreeSet<_>>().len() > count - 5);
    }

    #[test]
    fn a_value_has_another_key_elsewhere_and_in_another_form() {
        let keys = Keys::default();
        let values =
            [json!(1), json!("1"), json!([1]), json!([[1]]), json!({"1": 1}), json!(true), json!(null), json!("")];
        let mut seen = BTreeSet::new();
        for value in &values {
            let document = Document::of(value).unwrap();
            for (path, about) in [(1, About::Equal), (2, About::Equal), (1, About::Element)] {
                seen.insert(keys.of_node(path, about, document.root()));
            }
        }
        assert_eq!(seen.len(), 3 * values.len());
    }
}
