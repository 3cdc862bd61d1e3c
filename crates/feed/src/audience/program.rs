//! RFC 0020 §3.2, A.1: a constraint tree in a few words, its leaves shared with other filters.
//!
//! A filter is asked about few documents and there are millions of filters, so what counts is that it lies in one line
//! of memory. The first two bits of a word say what it is; the rest is the number of a predicate, or how many words
//! follow that belong to it.

use aql::Tree;

/// A constraint tree over numbered predicates.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Most filters.
    Short { len: u8, words: [u32; SHORT_MAX] },
    /// The others.
    Long(Box<[u32]>),
}

const SHORT_MAX: usize = 9;

const KIND: u32 = 30;
const LEAF: u32 = 0;
const ALL: u32 = 1;
const ANY: u32 = 2;
const NOT: u32 = 3;
const REST: u32 = (1 << KIND) - 1;

/// One node of the tree; the words of its children, where it has some.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    Leaf(u32),
    All(&'a [u32]),
    Any(&'a [u32]),
    Not(&'a [u32]),
}

impl Program {
    /// Writes a tree; `leaf` tells the predicate of a leaf, and how early it should be asked among its siblings.
    pub(crate) fn of(tree: &Tree, leaf: &impl Fn(usize) -> (u32, u8)) -> Self {
        let mut words = Vec::with_capacity(16);
        write(tree, leaf, &mut words);
        let mut short = [0; SHORT_MAX];
        match short.get_mut(..words.len()) {
            Some(place) => {
                place.copy_from_slice(&words);
                Self::Short { len: words.len() as u8, words: short }
            }
            None => Self::Long(words.into()),
        }
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u32] {
        match self {
            Self::Short { len, words } => words.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(words) => words,
        }
    }

    /// The predicates of its leaves, as often as they stand there.
    #[inline]
    pub(crate) fn predicates(&self) -> impl Iterator<Item = u32> + '_ {
        self.words().iter().filter(|word| *word >> KIND == LEAF).copied()
    }
}

/// The nodes that stand side by side in some words.
#[inline]
pub(crate) fn parts(mut words: &[u32]) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        let (word, rest) = words.split_first()?;
        let kind = word >> KIND;
        if kind == LEAF {
            words = rest;
            return Some(Part::Leaf(*word));
        }
        let (inner, rest) = rest.split_at_checked((word & REST) as usize)?;
        words = rest;
        Some(match kind {
            ALL => Part::All(inner),
            ANY => Part::Any(inner),
            _ => Part::Not(inner),
        })
    })
}

/// After every leaf that is cheap, and before those that were looked up already.
const INNER_TURN: u8 = 2;

fn write(tree: &Tree, leaf: &impl Fn(usize) -> (u32, u8), words: &mut Vec<u32>) {
    let place = words.len();
    let kind = match tree {
        Tree::Leaf(number) => {
            words.push(leaf(*number).0);
            return;
        }
        Tree::AllOf(parts) | Tree::AnyOf(parts) => {
            words.push(0);
            let turn = |part: &&Tree| if let Tree::Leaf(number) = part { leaf(*number).1 } else { INNER_TURN };
            let mut sorted: Vec<&Tree> = parts.iter().collect();
            sorted.sort_by_key(turn);
            sorted.into_iter().for_each(|part| write(part, leaf, words));
            if matches!(tree, Tree::AllOf(_)) { ALL } else { ANY }
        }
        Tree::Not(inner) => {
            words.push(0);
            write(inner, leaf, words);
            NOT
        }
    };
    let len = (words.len() - place - 1) as u32;
    if let Some(word) = words.get_mut(place) {
        *word = kind << KIND | len;
    }
}
