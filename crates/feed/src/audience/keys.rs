//! What a document can have, as keys; and the filters filed under them.
//!
//! A key is a keyed hash: who makes two of them meet makes a filter be asked for nothing, and no more. With each filter
//! stand the marks of more things that its documents have, so that nearly all of a long list is passed over without a
//! look at the filters.
//!
//! INVARIANT: a key is kept as long as some filter mentions it.

use super::paths::PathId;
use super::ranges::Side;
use aql::Literal;
use aql::key::number_key;
use hashbrown::HashTable;
use json::{Kind, Node};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

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

/// The keys that filters mention.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    table: HashTable<Filed>,
    pub(crate) hasher: RandomState,
}

/// A key, how many filters mention it, and those that are filed under it.
#[derive(Clone, Debug)]
pub(crate) struct Filed {
    key: u64,
    pub(crate) mentions: u32,
    /// Entries of filters that are gone.
    gone: u32,
    list: List,
}

/// The filters under a key; there are millions of keys, and under most of them stands one or none.
#[derive(Clone, Debug)]
enum List {
    Empty,
    One(Entry),
    #[expect(clippy::box_collection, reason = "a list as such would take more room than an entry")]
    Many(Box<Vec<Entry>>),
    /// Too many to walk: those with the same first mark stand together.
    #[expect(clippy::box_collection, reason = "a map as such would take more room than an entry")]
    Grouped(Box<BTreeMap<u16, Vec<Entry>>>),
}

/// Entries from which on a list is grouped.
const GROUPED: usize = 256;

impl List {
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Many(entries) => entries.len(),
            Self::Grouped(groups) => groups.values().map(Vec::len).sum(),
        }
    }

    fn push(&mut self, entry: Entry) {
        match self {
            Self::Empty => *self = Self::One(entry),
            Self::One(first) => *self = Self::Many(Box::new(vec![*first, entry])),
            Self::Many(entries) if entries.len() < GROUPED => entries.push(entry),
            Self::Many(entries) => {
                entries.push(entry);
                *self = Self::of(std::mem::take(entries));
            }
            Self::Grouped(groups) => groups.entry(entry.first_mark()).or_default().push(entry),
        }
    }

    fn of(mut entries: Vec<Entry>) -> Self {
        match entries.as_slice() {
            [] => Self::Empty,
            [entry] => Self::One(*entry),
            some if some.len() <= GROUPED => {
                entries.shrink_to_fit();
                Self::Many(Box::new(entries))
            }
            many => {
                let mut groups: BTreeMap<u16, Vec<Entry>> = BTreeMap::new();
                many.iter().for_each(|entry| groups.entry(entry.first_mark()).or_default().push(*entry));
                Self::Grouped(Box::new(groups))
            }
        }
    }

    /// All entries, in no particular order.
    fn entries(&self) -> Vec<Entry> {
        match self {
            Self::Empty => Vec::new(),
            Self::One(entry) => vec![*entry],
            Self::Many(entries) => entries.to_vec(),
            Self::Grouped(groups) => groups.values().flatten().copied().collect(),
        }
    }
}

impl Entry {
    fn first_mark(&self) -> u16 {
        let [first, ..] = self.marks;
        first
    }
}

/// A filter in a list, with the marks of what else its documents have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    pub(crate) marks: Marks,
}

/// Marks beside a filter; its documents have the first four, and one of the last two.
pub(crate) type Marks = [u16; 6];

/// The mark that every document has.
pub(crate) const NO_MARK: u16 = 0;

/// The mark of a key.
pub(crate) fn mark(key: u64) -> u16 {
    ((key >> 24) as u16).max(1)
}

impl Default for Keys {
    fn default() -> Self {
        Self { table: HashTable::new(), hasher: RandomState::new() }
    }
}

impl Keys {
    /// The key of a value of a document.
    pub(crate) fn of_node(&self, path: PathId, about: About, node: Node<'_>) -> u64 {
        self.make(path, about, |state| write_node(node, state))
    }

    /// The key of a constant of a filter.
    pub(crate) fn of_literal(&self, path: PathId, about: About, literal: &Literal) -> u64 {
        self.make(path, about, |state| write_literal(literal, state))
    }

    pub(crate) fn of_pattern(&self, path: PathId, source: &str) -> u64 {
        self.make(path, About::Pattern, |state| source.hash(state))
    }

    /// The mark of one side of a bound at a path.
    pub(crate) fn mark_of_bound(&self, path: PathId, side: Side, bound: u64) -> u16 {
        mark(self.hasher.hash_one((path, side, bound)))
    }

    pub(crate) fn of_path(&self, path: PathId) -> u64 {
        self.make(path, About::Exists, |_| {})
    }

    fn make(&self, path: PathId, about: About, write: impl FnOnce(&mut std::hash::DefaultHasher)) -> u64 {
        let mut state = self.hasher.build_hasher();
        (path, about).hash(&mut state);
        write(&mut state);
        state.finish()
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&Filed> {
        self.table.find(key, |filed| filed.key == key)
    }

    /// Counts one more mention.
    pub(crate) fn mention(&mut self, key: u64) {
        let new = || Filed { key, mentions: 0, gone: 0, list: List::Empty };
        let entry = self.table.entry(key, |filed| filed.key == key, |filed| filed.key);
        entry.or_insert_with(new).get_mut().mentions += 1;
    }

    /// Counts one mention less, and forgets a key without any.
    pub(crate) fn unmention(&mut self, key: u64) {
        if let Ok(mut entry) = self.table.find_entry(key, |filed| filed.key == key) {
            entry.get_mut().mentions -= 1;
            if entry.get().mentions == 0 {
                entry.remove();
            }
        }
    }

    /// Files a filter under a key that it mentions.
    pub(crate) fn file(&mut self, key: u64, entry: Entry) {
        if let Some(filed) = self.table.find_mut(key, |filed| filed.key == key) {
            filed.list.push(entry);
        }
    }

    /// Takes note that a filter under a key is gone; its entry stays for a while and does no harm, because whoever has
    /// its slot by then is asked and decides. Gives the list back when half of it is of that kind, to be tidied.
    #[must_use]
    pub(crate) fn unfile(&mut self, key: u64) -> Option<Vec<Entry>> {
        let filed = self.table.find_mut(key, |filed| filed.key == key)?;
        filed.gone += 1;
        (filed.gone as usize * 2 > filed.list.len()).then(|| filed.list.entries())
    }

    /// Puts a list in order again.
    pub(crate) fn tidy(&mut self, key: u64, entries: Vec<Entry>) {
        if let Some(filed) = self.table.find_mut(key, |filed| filed.key == key) {
            filed.gone = 0;
            filed.list = List::of(entries);
        }
    }
}

fn write_text(text: &str, state: &mut impl Hasher) {
    (3u8, text).hash(state);
}

fn write_number(number: f64, state: &mut impl Hasher) {
    (2u8, number_key(number)).hash(state);
}

pub(crate) fn write_literal(literal: &Literal, state: &mut impl Hasher) {
    match literal {
        Literal::Text(text, _) => write_text(text, state),
        Literal::Number(number) => write_number(*number, state),
        Literal::Other(document) => write_node(document.root(), state),
    }
}

/// Writes a value so that values that are equal are written alike.
fn write_node(node: Node<'_>, state: &mut impl Hasher) {
    match node.kind() {
        Kind::Null => 0u8.hash(state),
        Kind::Bool => (1u8, node.as_bool()).hash(state),
        Kind::Number => write_number(node.as_f64().unwrap_or_default(), state),
        Kind::String => write_text(node.as_str().unwrap_or_default(), state),
        Kind::Array => {
            (4u8, node.len()).hash(state);
            node.elements().for_each(|element| write_node(element, state));
        }
        Kind::Object => {
            (5u8, node.len()).hash(state);
            for (name, member) in node.members() {
                name.hash(state);
                write_node(member, state);
            }
        }
    }
}

/// The marks of what a document has, and the lists under its keys.
pub(crate) struct Present<'a> {
    marks: Box<[u64; MARK_WORDS]>,
    lists: Vec<&'a List>,
}

const MARK_WORDS: usize = 1 << (16 - 6);

impl<'a> Present<'a> {
    pub(crate) fn new() -> Self {
        let mut present = Self { marks: Box::new([0; MARK_WORDS]), lists: Vec::new() };
        present.set(NO_MARK);
        present
    }

    /// Looks up the keys of a document.
    pub(crate) fn look_up(&mut self, mut document: Vec<u64>, keys: &'a Keys) {
        document.sort_unstable();
        document.dedup();
        for filed in document.into_iter().filter_map(|key| keys.get(key)) {
            self.set(mark(filed.key));
            self.lists.push(&filed.list);
        }
    }

    pub(crate) fn set(&mut self, mark: u16) {
        if let Some(word) = self.marks.get_mut(usize::from(mark >> 6)) {
            *word |= 1 << (mark & 63);
        }
    }

    #[inline(always)]
    fn has_mark(&self, mark: u16) -> bool {
        self.marks.get(usize::from(mark >> 6)).is_some_and(|word| word >> (mark & 63) & 1 == 1)
    }

    /// Whether the document has all that these marks stand for, as far as marks can tell.
    #[inline(always)]
    pub(crate) fn has(&self, marks: &Marks) -> bool {
        let [first, second, third, fourth, one, other] = *marks;
        self.has_mark(first)
            && self.has_mark(second)
            && self.has_mark(third)
            && self.has_mark(fourth)
            && (self.has_mark(one) || self.has_mark(other))
    }

    /// The filters in the lists that have all their marks.
    pub(crate) fn candidates(&self, out: &mut Vec<u32>) {
        for list in &self.lists {
            match list {
                List::Empty => {}
                List::One(entry) => self.walk(std::slice::from_ref(entry), out),
                List::Many(entries) => self.walk(entries, out),
                List::Grouped(groups) => {
                    groups
                        .iter()
                        .filter(|(mark, _)| self.has_mark(**mark))
                        .for_each(|(_, group)| self.walk(group, out));
                }
            }
        }
    }

    fn walk(&self, entries: &[Entry], out: &mut Vec<u32>) {
        for entry in entries {
            if self.has(&entry.marks) {
                out.push(entry.slot);
            }
        }
    }
}
