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
}

impl List {
    fn as_slice(&self) -> &[Entry] {
        match self {
            Self::Empty => &[],
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Many(entries) => entries,
        }
    }

    fn push(&mut self, entry: Entry) {
        match self {
            Self::Empty => *self = Self::One(entry),
            Self::One(first) => *self = Self::Many(Box::new(vec![*first, entry])),
            Self::Many(entries) => entries.push(entry),
        }
    }

    fn of(entries: Vec<Entry>) -> Self {
        match entries.as_slice() {
            [] => Self::Empty,
            [entry] => Self::One(*entry),
            _ => Self::Many(Box::new(entries)),
        }
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
        let mut state = self.hasher.build_hasher();
        (path, side, bound).hash(&mut state);
        mark(state.finish())
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
    /// its slot by then is asked and decides.
    pub(crate) fn unfile(&mut self, key: u64, is_filed: impl Fn(u32) -> bool) {
        let Some(filed) = self.table.find_mut(key, |filed| filed.key == key) else { return };
        filed.gone += 1;
        if filed.gone as usize * 2 > filed.list.as_slice().len() {
            filed.gone = 0;
            // A slot that stands here twice was given out again, and the later entry has the marks of its filter.
            let mut entries: Vec<Entry> = filed.list.as_slice().iter().rev().copied().collect();
            entries.sort_by_key(|entry| entry.slot);
            entries.dedup_by_key(|entry| entry.slot);
            entries.retain(|entry| is_filed(entry.slot));
            entries.shrink_to_fit();
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
    marks: Vec<u64>,
    lists: Vec<&'a [Entry]>,
}

const MARK_WORDS: usize = 1 << (16 - 6);

impl<'a> Present<'a> {
    pub(crate) fn new() -> Self {
        let mut present = Self { marks: vec![0; MARK_WORDS], lists: Vec::new() };
        present.set(NO_MARK);
        present
    }

    /// Looks up the keys of a document.
    pub(crate) fn look_up(&mut self, mut document: Vec<u64>, keys: &'a Keys) {
        document.sort_unstable();
        document.dedup();
        for filed in document.into_iter().filter_map(|key| keys.get(key)) {
            self.set(mark(filed.key));
            self.lists.push(filed.list.as_slice());
        }
    }

    pub(crate) fn set(&mut self, mark: u16) {
        if let Some(word) = self.marks.get_mut(usize::from(mark >> 6)) {
            *word |= 1 << (mark & 63);
        }
    }

    /// Whether the document has all that these marks stand for, as far as marks can tell.
    #[inline]
    pub(crate) fn has(&self, marks: &Marks) -> bool {
        let has = |mark: u16| self.marks.get(usize::from(mark >> 6)).is_some_and(|word| word >> (mark & 63) & 1 == 1);
        let [first, second, third, fourth, one, other] = *marks;
        has(first) && has(second) && has(third) && has(fourth) && (has(one) || has(other))
    }

    /// The filters in the lists that have all their marks.
    pub(crate) fn candidates(&self, out: &mut Vec<u32>) {
        for list in &self.lists {
            out.extend(list.iter().filter(|entry| self.has(&entry.marks)).map(|entry| entry.slot));
        }
    }
}
