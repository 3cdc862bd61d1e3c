//! RFC 0020 §3.2: the paths that records have, as a tree; array elements of one array share a path.
//!
//! Many a question means the first element of a list, so that one is filed by itself as well: of the outermost array on
//! a way, hence no value more than twice.
//!
//! Strangers invent paths, so there is a bound. A record with a path beyond it is *loose*: always possible, never
//! certain.

use crate::bytes::{Put, Reader};
use aql::{Path, Segment};
use foldhash::quality::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

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
    members: HashMap<Box<str>, PathId, RandomState>,
    element: Option<PathId>,
    first: Option<PathId>,
    way: Way,
}

/// How a path comes to a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Straight,
    /// Through the first element of an array.
    First,
    /// Through all elements of an array, so that one record can have many values there.
    Many,
}

/// How a path goes on from the one above it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Element,
    First,
    Member(&'a str),
}

/// In the file a name is written by its length and this; what is less stands for the steps without one.
const NAMED: u32 = 2;

/// A path that a question reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) path: PathId,
    /// Whether every value filed there is one that the question means; of the indexes into an array only the first is
    /// filed.
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
        self.nodes.get(path).is_some_and(|node| node.way == Way::Many)
    }

    /// For each path whether one record can have many values there.
    pub(crate) fn many(&self) -> Arc<[bool]> {
        self.nodes.iter().map(|node| node.way == Way::Many).collect()
    }

    /// The path of a member, made when it is new; `None` when there is no room for it.
    pub(crate) fn member(&mut self, path: PathId, name: &str) -> Option<PathId> {
        let node = self.nodes.get(path)?;
        if let Some(&known) = node.members.get(name) {
            return Some(known);
        }
        let id = self.add(node.way)?;
        self.nodes.get_mut(path)?.members.insert(name.into(), id);
        Some(id)
    }

    /// The path of the elements of an array.
    pub(crate) fn element(&mut self, path: PathId) -> Option<PathId> {
        if let Some(known) = self.nodes.get(path)?.element {
            return Some(known);
        }
        let id = self.add(Way::Many)?;
        self.nodes.get_mut(path)?.element = Some(id);
        Some(id)
    }

    /// Whether the first elements of arrays here are filed by themselves as well.
    pub(crate) fn has_first(&self, path: PathId) -> bool {
        self.nodes.get(path).is_some_and(|node| node.way == Way::Straight)
    }

    /// The path of the first element of an array, where it has one of its own.
    pub(crate) fn first(&mut self, path: PathId) -> Option<PathId> {
        if let Some(known) = self.nodes.get(path)?.first {
            return Some(known);
        }
        if !self.has_first(path) {
            return None;
        }
        let id = self.add(Way::First)?;
        self.nodes.get_mut(path)?.first = Some(id);
        Some(id)
    }

    pub(crate) fn known_element(&self, path: PathId) -> Option<PathId> {
        self.nodes.get(path)?.element
    }

    fn add(&mut self, way: Way) -> Option<PathId> {
        if self.nodes.len() >= PATHS_MAX {
            return None;
        }
        self.nodes.push(PathNode { way, ..PathNode::default() });
        Some(self.nodes.len() - 1)
    }

    /// Writes the tree: for each path but the root the one above it and its name, in the order of their numbers.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut above = vec![(0, Step::Element); self.nodes.len()];
        for (path, node) in self.nodes.iter().enumerate() {
            let members = node.members.iter().map(|(name, child)| (*child, Step::Member(name)));
            let elements = node.element.map(|child| (child, Step::Element));
            for (child, step) in members.chain(elements).chain(node.first.map(|child| (child, Step::First))) {
                if let Some(slot) = above.get_mut(child) {
                    *slot = (path, step);
                }
            }
        }
        out.put_u32(self.nodes.len() as u32);
        for (parent, step) in above.iter().skip(1) {
            out.put_u32(*parent as u32);
            match step {
                Step::Element => out.put_varint(0),
                Step::First => out.put_varint(1),
                Step::Member(name) => {
                    out.put_varint(name.len() as u32 + NAMED);
                    out.extend_from_slice(name.as_bytes());
                }
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut paths = Self::default();
        let count = reader.u32()? as usize;
        while paths.nodes.len() < count {
            let parent = reader.u32()? as usize;
            let made = match reader.varint()? {
                0 => paths.element(parent),
                1 => paths.first(parent),
                named => {
                    let name = reader.take((named - NAMED) as usize)?;
                    paths.member(parent, std::str::from_utf8(name).ok()?)
                }
            };
            // A path that was there before would give the later ones other numbers.
            (made? + 1 == paths.nodes.len()).then_some(())?;
        }
        Some(paths)
    }

    /// Roughly the bytes it holds.
    pub(crate) fn memory(&self) -> usize {
        self.nodes.len() * (size_of::<PathNode>() + 48)
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
                match (index, node.first, node.element) {
                    (Some(0), Some(first), _) => self.follow(rest, to(first), seen, found),
                    (Some(_), _, Some(element)) => {
                        self.follow(rest, Reached { path: element, exact: false }, seen, found);
                    }
                    _ => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_reads_as_it_was_written() {
        let mut paths = Paths::default();
        let tags = paths.member(Paths::ROOT, "tags").unwrap();
        let element = paths.element(tags).unwrap();
        let empty = paths.member(element, "").unwrap();
        let first = paths.first(tags).unwrap();
        let mut out = Vec::new();
        paths.write(&mut out);
        let mut read = Paths::read(&mut Reader::new(&out)).unwrap();
        assert_eq!((read.member(0, "tags"), read.element(tags), read.member(element, "")), (Some(1), Some(2), Some(3)));
        assert!(read.is_many(empty) && !read.is_many(tags) && read.nodes.len() == 5);
        assert!(read.first(tags) == Some(first) && !read.is_many(first) && read.first(first).is_none());
        assert!((0..out.len()).all(|len| Paths::read(&mut Reader::new(&out[..len])).is_none()));
    }
}
