//! RFC 0020 A.1 `contains`, `matches`: predicates that search texts, found by what a text must have in it.
//!
//! Each stands under one run of at most three bytes for every literal of which a matching text has one, the rarest run
//! it has. A pattern without literals is asked about every text at its path.

use super::paths::PathId;
use aql::{Literal, Pattern, Predicate};
use foldhash::quality::RandomState;
use memchr::memmem;
use std::collections::HashMap;

/// Bytes of the longest run.
const RUN_MAX: usize = 3;

/// Text-searching predicates of all paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    runs: HashMap<(PathId, u32), Vec<u32>, RandomState>,
    paths: HashMap<PathId, AtPath, RandomState>,
}

#[derive(Clone, Debug, Default)]
struct AtPath {
    /// How often runs of each length are used.
    lengths: [u32; RUN_MAX],
    /// Predicates without literals.
    loose: Vec<u32>,
}

/// Whether a predicate searches texts.
pub(crate) fn searches(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Contains(Literal::Text(needle, _)) => !needle.is_empty(),
        Predicate::Matches(_) => true,
        Predicate::Contains(Literal::Number(_) | Literal::Other(_))
        | Predicate::Eq(_)
        | Predicate::Ne(_)
        | Predicate::Compare(..)
        | Predicate::In(_)
        | Predicate::NotIn(_)
        | Predicate::Before(_)
        | Predicate::After(_)
        | Predicate::Within(..)
        | Predicate::Outside(..)
        | Predicate::Exists => false,
    }
}

/// Literals of which every text that passes has one; nothing is known when there are none.
fn literals(predicate: &Predicate) -> Vec<&[u8]> {
    match predicate {
        Predicate::Contains(Literal::Text(needle, _)) => vec![needle.as_bytes()],
        Predicate::Matches(pattern) => {
            let (prefix, required) = (pattern.prefix().as_bytes(), pattern.required());
            let shortest = required.iter().map(|literal| literal.len()).min().unwrap_or_default();
            match prefix.len().max(shortest) {
                0 => Vec::new(),
                longest if longest == prefix.len() => vec![prefix],
                _ => required.iter().map(|literal| &**literal).collect(),
            }
        }
        _ => Vec::new(),
    }
}

/// Whether a text has the literals that a pattern asks for, which is quicker to find out than whether it matches.
pub(crate) fn may_match(pattern: &Pattern, text: &str) -> bool {
    let has = |literal: &[u8]| memmem::find(text.as_bytes(), literal).is_some();
    let required = pattern.required();
    text.starts_with(pattern.prefix()) && (required.is_empty() || required.iter().any(|literal| has(literal)))
}

fn runs(text: &[u8], len: usize) -> impl Iterator<Item = u32> {
    text.windows(len).map(run)
}

fn run(bytes: &[u8]) -> u32 {
    bytes.iter().fold(bytes.len() as u32, |run, byte| run << 8 | u32::from(*byte))
}

impl Texts {
    pub(crate) fn insert(&mut self, number: u32, path: PathId, predicate: &Predicate) {
        let literals = literals(predicate);
        let at_path = self.paths.entry(path).or_default();
        if literals.is_empty() {
            at_path.loose.push(number);
        }
        for literal in literals {
            let len = literal.len().min(RUN_MAX);
            if let Some(count) = at_path.lengths.get_mut(len - 1) {
                *count += 1;
            }
            let count = |run: &u32| self.runs.get(&(path, *run)).map_or(0, Vec::len);
            if let Some(rarest) = runs(literal, len).min_by_key(count) {
                self.runs.entry((path, rarest)).or_default().push(number);
            }
        }
    }

    pub(crate) fn remove(&mut self, number: u32, path: PathId, predicate: &Predicate) {
        let literals = literals(predicate);
        let Some(at_path) = self.paths.get_mut(&path) else { return };
        at_path.loose.retain(|known| *known != number);
        for literal in literals {
            let len = literal.len().min(RUN_MAX);
            if let Some(count) = at_path.lengths.get_mut(len - 1) {
                *count -= 1;
            }
            for run in runs(literal, len) {
                let Some(list) = self.runs.get_mut(&(path, run)) else { continue };
                if let Some(place) = list.iter().position(|known| *known == number) {
                    list.swap_remove(place);
                    if list.is_empty() {
                        self.runs.remove(&(path, run));
                    }
                    break;
                }
            }
        }
        if at_path.loose.is_empty() && at_path.lengths == [0; RUN_MAX] {
            self.paths.remove(&path);
        }
    }

    /// The predicates that a text at a path may satisfy.
    pub(crate) fn possible(&self, path: PathId, text: &str) -> Vec<u32> {
        let Some(at_path) = self.paths.get(&path) else { return Vec::new() };
        let mut possible = at_path.loose.clone();
        for (len, _) in (1..).zip(at_path.lengths).filter(|(_, count)| *count > 0) {
            let lists = runs(text.as_bytes(), len).filter_map(|run| self.runs.get(&(path, run)));
            lists.for_each(|list| possible.extend_from_slice(list));
        }
        possible.sort_unstable();
        possible.dedup();
        possible
    }
}
