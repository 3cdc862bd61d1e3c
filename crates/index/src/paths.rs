//! RFC 0020 §3.2: the paths that records have, as a tree; array elements of one array share a path.
//!
//! Strangers invent paths, so there is a bound. A record with a path beyond it is *loose*: always possible, never
//! certain.

use aql::{Path, Segment};
use std::collections::HashMap;

/// A path that some record has.
pub(crate) type PathId = usize;

/// The paths of an index; a real market has a few hundred.
pub(crate) const PATHS_MAX: usize = 65_536;

/// The tree of paths.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    nodes: Vec<PathNode>,
}

#[derive(Clone, Debug, Default)]
struct PathNode {
    members: HashMap<Box<str>, PathId>,
    element: Option<PathId>,
    /// Whether the way here leads through an array, so that one record can have many values here.
    many: bool,
}

/// A path that a question reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) path: PathId,
    /// Whether every value filed there is one that the question means; an index into an array is not filed.
    pub(crate) exact: bool,
}

impl Default for Paths {
    fn default() -> Self {
        Self { nodes: vec![PathNode::default()] }
    }
}

impl Paths {
    pub(crate) const ROOT: PathId = 0;

    pub(crate) fn is_many(&self, path: PathId) -> bool {
        self.nodes.get(path).is_some_and(|node| node.many)
    }

    /// The path of a member, made when it is new; `None` when there is no room for it.
    pub(crate) fn member(&mut self, path: PathId, name: &str) -> Option<PathId> {
        let node = self.nodes.get(path)?;
        if let Some(&known) = node.members.get(name) {
            return Some(known);
        }
        let id = self.add(node.many)?;
        self.nodes.get_mut(path)?.members.insert(name.into(), id);
        Some(id)
    }

    /// The path of the elements of an array.
    pub(crate) fn element(&mut self, path: PathId) -> Option<PathId> {
        if let Some(known) = self.nodes.get(path)?.element {
            return Some(known);
        }
        let id = self.add(true)?;
        self.nodes.get_mut(path)?.element = Some(id);
        Some(id)
    }

    pub(crate) fn known_element(&self, path: PathId) -> Option<PathId> {
        self.nodes.get(path)?.element
    }

    fn add(&mut self, many: bool) -> Option<PathId> {
        if self.nodes.len() >= PATHS_MAX {
            return None;
        }
        self.nodes.push(PathNode { many, ..PathNode::default() });
        Some(self.nodes.len() - 1)
    }

    /// The paths that a question reaches, each once; exact when some way to it is.
    pub(crate) fn reached(&self, path: &Path) -> Vec<Reached> {
        let mut found = Vec::new();
        let mut seen = HashMap::new();
        self.follow(path.segments(), Reached { path: Self::ROOT, exact: true }, &mut seen, &mut found);
        found
    }

    fn follow(
        &self,
        segments: &[Segment],
        here: Reached,
        seen: &mut HashMap<(PathId, usize, bool), ()>,
        found: &mut Vec<Reached>,
    ) {
        // A descendant operator reaches a path by many ways; one visit for each state is enough.
        if seen.insert((here.path, segments.len(), here.exact), ()).is_some() {
            return;
        }
        let Some(node) = self.nodes.get(here.path) else { return };
        let to = |path: PathId| Reached { path, exact: here.exact };
        let children = || node.members.values().copied().chain(node.element);
        match segments.split_first() {
            None => keep(here, found),
            Some((Segment::Name { key, index }, rest)) => {
                if let Some(&member) = node.members.get(key.name()) {
                    self.follow(rest, to(member), seen, found);
                }
                if let (Some(element), Some(_)) = (node.element, index) {
                    self.follow(rest, Reached { path: element, exact: false }, seen, found);
                }
            }
            Some((Segment::Each, rest)) => children().for_each(|child| self.follow(rest, to(child), seen, found)),
            Some((Segment::Descend, rest)) => {
                self.follow(rest, here, seen, found);
                children().for_each(|child| self.follow(segments, to(child), seen, found));
            }
        }
    }
}

fn keep(here: Reached, found: &mut Vec<Reached>) {
    match found.iter_mut().find(|known| known.path == here.path) {
        Some(known) => known.exact |= here.exact,
        None => found.push(here),
    }
}
