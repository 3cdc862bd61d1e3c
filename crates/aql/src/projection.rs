//! RFC 0020 §3.3, A.3 R4: exactly what crosses the boundary.
//!
//! What `include` reaches is kept with everything below it; what `exclude` reaches is removed with everything below
//! it. An include that reaches nothing, or nothing that is left, is a projection failure. Array positions keep their
//! meaning: holes are `null`, a missing tail is cut (`docs/decisions`).

use crate::limits::Limits;
use crate::path::{Path, Segment};
use crate::read::Place;
use crate::refusal::{Code, Refusal};
use json::{Node, Writer};
use std::ops::ControlFlow;

/// The contract about what a response shows.
#[derive(Clone, Debug)]
pub struct Projection {
    include: Vec<Path>,
    exclude: Vec<Path>,
}

/// What a projection keeps of one document.
#[derive(Clone, Debug)]
pub struct Projected<'a> {
    root: Node<'a>,
    marks: Vec<Mark>,
}

/// How a value fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Not in the answer.
    Absent,
    /// In the answer only as the way to something below.
    Way,
    /// In the answer, with something below it removed.
    Partial,
    /// In the answer, all of it.
    Whole,
}

impl Projection {
    pub(crate) fn read(place: &Place<'_>, limits: &Limits) -> Result<Self, Refusal> {
        place.closed(&["include", "exclude"])?;
        let include = place.required("include")?;
        let includes = include.elements()?;
        if includes.is_empty() {
            return include.refuse(Code::EmptyList, "at least one pointer belongs here");
        }
        let excludes = place.member("exclude").map_or_else(|| Ok(Vec::new()), |exclude| exclude.elements())?;
        let count = includes.len() + excludes.len();
        if count > limits.pointers {
            return Err(Refusal::limit(Code::TooManyPointers, place.at.clone(), "pointers", limits.pointers, count));
        }
        let paths = |places: &[Place<'_>]| -> Result<Vec<Path>, Refusal> {
            places.iter().map(|pointer| Path::read(pointer.string()?, &pointer.at, limits)).collect()
        };
        Ok(Self { include: paths(&includes)?, exclude: paths(&excludes)? })
    }

    /// What must be in the answer.
    pub fn include(&self) -> &[Path] {
        &self.include
    }

    /// What must not be in the answer.
    pub fn exclude(&self) -> &[Path] {
        &self.exclude
    }

    /// Whether nothing at a path can be shown, whatever the record; `false` where it takes the record to know.
    pub fn hides(&self, path: &Path) -> bool {
        let parts_from = |included: &Path| {
            // Plain names up to the first difference; whatever else stands there may mean anything.
            let names = |pair: (&Segment, &Segment)| match pair {
                (Segment::Name { key: left, .. }, Segment::Name { key: right, .. }) => Some(left != right),
                _ => None,
            };
            included.segments().iter().zip(path.segments()).map_while(names).any(|differ| differ)
        };
        self.include.iter().all(parts_from)
    }

    /// Applies the projection; or the includes that cannot be supplied, as written.
    pub fn apply<'a>(&self, root: Node<'a>, visits: &mut u64) -> Result<Projected<'a>, Vec<String>> {
        let sets = self.sets(root, visits);
        let mut supplied = |path: &Path| {
            let flow = path.reach(root, visits, |node| match sets.removed(node) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            });
            flow.is_break()
        };
        let failed: Vec<String> =
            self.include.iter().filter(|path| !supplied(path)).map(|path| path.text().to_owned()).collect();
        if failed.is_empty() { Ok(sets.project(root)) } else { Err(failed) }
    }

    /// Applies what can be applied, for a record that is refused anyway.
    pub(crate) fn apply_partly<'a>(&self, root: Node<'a>, visits: &mut u64) -> Projected<'a> {
        self.sets(root, visits).project(root)
    }

    fn sets(&self, root: Node<'_>, visits: &mut u64) -> Sets {
        let mut sets = Sets { nodes: vec![0; root.position() + 1] };
        if !self.exclude.is_empty() {
            sets.fill(root, &self.exclude, EXCLUDED, visits);
            sets.spread(root, EXCLUDED);
        }
        sets.fill(root, &self.include, INCLUDED, visits);
        sets
    }
}

const INCLUDED: u8 = 1;
const EXCLUDED: u8 = 2;

/// Which values the two lists reach; the root of a document has its highest position.
struct Sets {
    nodes: Vec<u8>,
}

impl Sets {
    fn fill(&mut self, root: Node<'_>, paths: &[Path], bit: u8, visits: &mut u64) {
        for path in paths {
            let _: ControlFlow<()> = path.reach(root, visits, |node| {
                self.set(node, bit);
                ControlFlow::Continue(())
            });
        }
    }

    fn set(&mut self, node: Node<'_>, bit: u8) {
        if let Some(flags) = self.nodes.get_mut(node.position()) {
            *flags |= bit;
        }
    }

    fn has(&self, node: Node<'_>, bit: u8) -> bool {
        self.nodes.get(node.position()).is_some_and(|flags| flags & bit != 0)
    }

    /// What is removed takes everything below it along.
    fn spread(&mut self, node: Node<'_>, bit: u8) {
        let removed = self.has(node, bit);
        for child in node.children() {
            if removed {
                self.set(child, bit);
            }
            self.spread(child, bit);
        }
    }

    fn removed(&self, node: Node<'_>) -> bool {
        self.has(node, EXCLUDED)
    }

    fn project<'a>(&self, root: Node<'a>) -> Projected<'a> {
        let mut marks = vec![Mark::Absent; self.nodes.len()];
        self.mark(root, false, &mut marks);
        Projected { root, marks }
    }

    fn mark(&self, node: Node<'_>, above: bool, marks: &mut [Mark]) -> Mark {
        let mark = if self.removed(node) {
            Mark::Absent
        } else {
            let included = above || self.has(node, INCLUDED);
            let (mut any, mut whole) = (false, true);
            for child in node.children() {
                let below = self.mark(child, included, marks);
                any |= below != Mark::Absent;
                whole &= below == Mark::Whole;
            }
            match (included, any, whole) {
                (true, _, true) => Mark::Whole,
                (true, _, false) => Mark::Partial,
                (false, true, _) => Mark::Way,
                (false, false, _) => Mark::Absent,
            }
        };
        if let Some(slot) = marks.get_mut(node.position()) {
            *slot = mark;
        }
        mark
    }
}

impl Projected<'_> {
    fn mark(&self, node: Node<'_>) -> Mark {
        self.marks.get(node.position()).copied().unwrap_or(Mark::Absent)
    }

    /// Whether a value is in the answer with everything below it.
    pub fn shows(&self, node: Node<'_>) -> bool {
        self.mark(node) == Mark::Whole
    }

    /// Writes the payload, in canonical form.
    pub fn write(&self, writer: &mut Writer) {
        match self.mark(self.root) {
            Mark::Absent => {
                writer.object();
                writer.end_object();
            }
            _ => self.write_node(self.root, writer),
        }
    }

    fn write_node(&self, node: Node<'_>, writer: &mut Writer) {
        if self.mark(node) == Mark::Whole {
            writer.node(node);
        } else if node.is_object() {
            writer.object();
            for (name, child) in node.members().filter(|(_, child)| self.mark(*child) != Mark::Absent) {
                writer.name(name);
                self.write_node(child, writer);
            }
            writer.end_object();
        } else {
            let kept = node.elements().enumerate().filter(|(_, child)| self.mark(*child) != Mark::Absent).last();
            writer.array();
            for child in node.elements().take(kept.map_or(0, |(last, _)| last + 1)) {
                match self.mark(child) {
                    Mark::Absent => writer.null(),
                    _ => self.write_node(child, writer),
                }
            }
            writer.end_array();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, Pointer, json};

    #[test]
    fn what_is_hidden_whatever_the_record_is_hidden_in_any() {
        let path = |text: &str| Path::read(text, &Pointer::root(), &Limits::STANDARD).unwrap();
        let document = Document::of(&json!({"include": ["/tool/name", "/sla", "/list/*/price"]})).unwrap();
        let projection = Projection::read(&Place::root(document.root()), &Limits::STANDARD).unwrap();
        for hidden in ["/tool/did", "/risk", "/tool/names/0", "/slas"] {
            assert!(projection.hides(&path(hidden)), "{hidden}");
        }
        // The same, below, above, and where it takes the record to know.
        for other in ["/tool/name", "/sla/uptime", "/tool", "/list/0/name", "/*/did", "/**", "/list/*/price/amount"] {
            assert!(!projection.hides(&path(other)), "{other}");
        }
    }
}
