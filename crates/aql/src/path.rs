//! RFC 0020 §3.2: paths, JSON Pointers extended by `*` and `**`.
//!
//! A path reaches a *set* of values. A descendant operator is walked once per document with a set of states, so
//! that any number of them costs one visit per value (A.7).

use crate::limits::Limits;
use crate::refusal::{Code, Refusal};
use json::{Key, Near, Node, Pointer};
use std::ops::ControlFlow;

/// Segments of a path whatever the limits say: a set of states is one word.
const STATES_MAX: usize = 63;

/// Where to look in a document.
#[derive(Clone, Debug)]
pub struct Path {
    text: Box<str>,
    segments: Box<[Segment]>,
    plain: bool,
    descends: bool,
}

/// One step of a path.
#[derive(Clone, Debug)]
pub enum Segment {
    /// A member by name; on an array, an element by index.
    Name {
        /// The decoded name, ready for look-ups.
        key: Key,
        /// The name as an array index, when it is one.
        index: Option<usize>,
    },
    /// `*`: every member or element.
    Each,
    /// `**`: this value and everything below it.
    Descend,
}

/// A step down from a value, as a set of states takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Child<'a> {
    /// A member of an object.
    Member(&'a str),
    /// An element of an array.
    Element(usize),
    /// A child of either that no segment names.
    Unnamed,
}

impl Path {
    /// Reads a path as written in a constraint or a projection.
    pub fn read(text: &str, at: &Pointer, limits: &Limits) -> Result<Self, Refusal> {
        if text.len() > limits.path_bytes {
            return Err(Refusal::limit(Code::PathTooLong, at.clone(), "path_bytes", limits.path_bytes, text.len()));
        }
        let segments = if text.is_empty() || text == "/" { Vec::new() } else { segments(text, at)? };
        let max = limits.path_segments.min(STATES_MAX);
        if segments.len() > max {
            let got = segments.len();
            return Err(Refusal::limit(Code::PathTooComplex, at.clone(), "path_segments", max, got));
        }
        let descends = |segment: &Segment| matches!(segment, Segment::Descend);
        let descendants = segments.iter().filter(|segment| descends(segment)).count();
        if descendants > limits.path_descendants {
            let max = limits.path_descendants;
            return Err(Refusal::limit(Code::PathTooComplex, at.clone(), "path_descendants", max, descendants));
        }
        if segments.windows(2).any(|pair| pair.iter().all(descends)) {
            return Err(Refusal::new(Code::PathTooComplex, at.clone(), "`**` twice in a row means `**` once"));
        }
        let plain = segments.iter().all(|segment| matches!(segment, Segment::Name { .. }));
        Ok(Self { text: text.into(), segments: segments.into(), plain, descends: descendants > 0 })
    }

    /// The path as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The steps of the path; none for the whole document.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether the path names at most one value in any document.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Shows every value that the path reaches, in document order, until told to stop.
    ///
    /// `visits` counts the values looked at.
    pub fn reach<'a, B>(
        &self,
        root: Node<'a>,
        visits: &mut u64,
        show: impl FnMut(Node<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.reach_from(0, root, visits, &mut [], show)
    }

    /// Goes on from a value that the first `done` segments reach; `near` has a memory for each segment after those.
    pub(crate) fn reach_from<'a, B>(
        &self,
        done: usize,
        node: Node<'a>,
        visits: &mut u64,
        near: &mut [Near],
        mut show: impl FnMut(Node<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if self.descends {
            return self.walk(node, self.rest(1 << done), visits, &mut show);
        }
        follow(self.segments.get(done..).unwrap_or_default(), node, visits, near, &mut show)
    }

    /// The leading segments without a wildcard; other paths may begin with the same ones.
    pub(crate) fn plain_prefix(&self) -> impl Iterator<Item = (&Key, Option<usize>)> {
        self.segments.iter().map_while(|segment| match segment {
            Segment::Name { key, index } => Some((key, *index)),
            Segment::Each | Segment::Descend => None,
        })
    }

    /// Adds the states that a descendant operator reaches without a step.
    fn rest(&self, mut states: u64) -> u64 {
        for (position, segment) in self.segments.iter().enumerate() {
            if states >> position & 1 == 1 && matches!(segment, Segment::Descend) {
                states |= 1 << (position + 1);
            }
        }
        states
    }

    /// The states in which the path stands at the root of a document.
    pub(crate) fn start(&self) -> u64 {
        self.rest(1)
    }

    /// Whether a value in these states is reached.
    pub(crate) fn arrives(&self, states: u64) -> bool {
        states >> self.segments.len() & 1 == 1
    }

    /// The states one step further down.
    pub(crate) fn enter(&self, states: u64, child: Child<'_>) -> u64 {
        let mut entered = 0;
        for (position, segment) in self.awaited(states) {
            match segment {
                Segment::Each => entered |= 1 << (position + 1),
                Segment::Descend => entered |= 1 << position,
                Segment::Name { key, index } => {
                    let named = match child {
                        Child::Member(name) => key.name() == name,
                        Child::Element(place) => *index == Some(place),
                        Child::Unnamed => false,
                    };
                    entered |= u64::from(named) << (position + 1);
                }
            }
        }
        self.rest(entered)
    }

    /// The segments that come next in these states, with their numbers.
    pub(crate) fn awaited(&self, states: u64) -> impl Iterator<Item = (usize, &Segment)> {
        self.segments.iter().enumerate().filter(move |(position, _)| states >> position & 1 == 1)
    }

    /// Visits `node` once with every state in which the path can be there.
    fn walk<'a, B>(
        &self,
        node: Node<'a>,
        states: u64,
        visits: &mut u64,
        show: &mut impl FnMut(Node<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        *visits += 1;
        if states >> self.segments.len() & 1 == 1 {
            show(node)?;
        }
        let (mut every, mut named) = (0, 0);
        for (position, segment) in self.segments.iter().enumerate().filter(|(position, _)| states >> position & 1 == 1)
        {
            match segment {
                Segment::Name { .. } => named |= 1 << position,
                Segment::Each => every |= 1 << (position + 1),
                Segment::Descend => every |= 1 << position,
            }
        }
        if every == 0 && named == 0 {
            return ControlFlow::Continue(());
        }
        let every = self.rest(every);
        if node.is_object() {
            for (name, child) in node.members() {
                let states = self.advance(named, every, |key, _| key.name() == name);
                if states != 0 {
                    self.walk(child, states, visits, show)?;
                }
            }
        } else {
            for (position, child) in node.elements().enumerate() {
                let states = self.advance(named, every, |_, index| index == Some(position));
                if states != 0 {
                    self.walk(child, states, visits, show)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn advance(&self, named: u64, every: u64, names: impl Fn(&Key, Option<usize>) -> bool) -> u64 {
        let mut states = every;
        let mut left = named;
        while left != 0 {
            let position = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Some(Segment::Name { key, index }) = self.segments.get(position)
                && names(key, *index)
            {
                states |= 1 << (position + 1);
            }
        }
        if states == every { every } else { self.rest(states) }
    }
}

/// Follows a path without descendant operators; it reaches each value by one way only.
fn follow<'a, B>(
    segments: &[Segment],
    node: Node<'a>,
    visits: &mut u64,
    near: &mut [Near],
    show: &mut impl FnMut(Node<'a>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    *visits += 1;
    let (mine, deeper) = match near.split_first_mut() {
        Some((mine, deeper)) => (Some(mine), deeper),
        None => (None, &mut [][..]),
    };
    match segments.split_first() {
        None => show(node),
        Some((Segment::Name { key, index }, rest)) => match step(node, key, *index, mine) {
            Some(child) => follow(rest, child, visits, deeper, show),
            None => ControlFlow::Continue(()),
        },
        Some((Segment::Each | Segment::Descend, rest)) => {
            node.children().try_for_each(|child| follow(rest, child, visits, deeper, show))
        }
    }
}

/// One step by name, or by index on an array.
pub(crate) fn step<'a>(node: Node<'a>, key: &Key, index: Option<usize>, near: Option<&mut Near>) -> Option<Node<'a>> {
    match (node.is_object(), near) {
        (true, Some(near)) => node.get_near(key, near),
        (true, None) => node.get_key(key),
        (false, _) => node.at(index?),
    }
}

fn segments(text: &str, at: &Pointer) -> Result<Vec<Segment>, Refusal> {
    let invalid = |detail: String| Refusal::new(Code::InvalidPointer, at.clone(), detail);
    let Some(rest) = text.strip_prefix('/') else {
        return Err(invalid("a path is empty or starts with `/`".to_owned()));
    };
    rest.split('/')
        .map(|raw| match raw {
            "*" => Ok(Segment::Each),
            "**" => Ok(Segment::Descend),
            name => {
                let name = Pointer::segments(&format!("/{name}")).next().transpose();
                let name = name.map_err(|error| invalid(error.to_string()))?.unwrap_or_default();
                Ok(Segment::Name { index: Pointer::as_index(&name), key: Key::new(&name) })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, json};

    fn path(text: &str) -> Path {
        Path::read(text, &Pointer::root(), &Limits::STANDARD).unwrap()
    }

    fn reached(text: &str, document: json::Value) -> Vec<json::Value> {
        let document = Document::of(&document).unwrap();
        let mut found = Vec::new();
        let flow: ControlFlow<()> = path(text).reach(document.root(), &mut 0, |node| {
            found.push(node.to_value());
            ControlFlow::Continue(())
        });
        assert_eq!(flow, ControlFlow::Continue(()));
        found
    }

    #[test]
    fn wildcards_reach_children_and_descendants_once() {
        let document = json!({"a": [{"x": 1}, {"x": null}], "b": {"x": 2, "c": {"x": 3}}});
        assert_eq!(reached("/a/*/x", document.clone()), [json!(1), json!(null)]);
        assert_eq!(reached("/b/*", document.clone()), [json!({"x": 3}), json!(2)]);
        assert_eq!(reached("/**/x", document.clone()), [json!(1), json!(null), json!(3), json!(2)]);
        assert_eq!(reached("/b/**/c/**", document.clone()), [json!({"x": 3}), json!(3)]);
        for whole in ["", "/"] {
            assert_eq!(reached(whole, document.clone()), std::slice::from_ref(&document));
        }
        assert_eq!(reached("/**", json!([1, [2]])), [json!([1, [2]]), json!(1), json!([2]), json!(2)]);
    }

    #[test]
    fn indices_have_no_leading_zeros_and_names_are_decoded() {
        assert_eq!(reached("/a/1", json!({"a": [1, 2]})), [json!(2)]);
        assert!(reached("/a/01", json!({"a": [1, 2]})).is_empty());
        assert!(reached("/a/-", json!({"a": [1, 2]})).is_empty());
        assert_eq!(reached("/a~1b/m~0n", json!({"a/b": {"m~n": 5}})), [json!(5)]);
        assert_eq!(reached("/1", json!({"1": 7})), [json!(7)]);
        assert_eq!(reached("/a/", json!({"a": {"": 3}})), [json!(3)]);
    }

    #[test]
    fn any_number_of_descendant_operators_costs_one_visit_per_value() {
        let limits = Limits { path_descendants: 8, ..Limits::STANDARD };
        let mut document = json!({"y": 1});
        for _ in 0..100 {
            document = json!({"a": document});
        }
        let document = Document::of(&document).unwrap();
        let path = Path::read("/**/a/**/a/**/a/**/y", &Pointer::root(), &limits).unwrap();
        let (mut visits, mut found) = (0, 0);
        let _: ControlFlow<()> = path.reach(document.root(), &mut visits, |_| {
            found += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((visits, found), (document.nodes() as u64, 1));
    }

    #[test]
    fn paths_beyond_the_bounds_are_refused() {
        let refused = |text: &str| Path::read(text, &Pointer::root(), &Limits::STANDARD).unwrap_err().code.name();
        assert_eq!(refused("a"), "invalid_pointer");
        assert_eq!(refused("/a~2"), "invalid_pointer");
        assert_eq!(refused(&format!("/{}", "a".repeat(512))), "path_too_long");
        assert_eq!(refused(&"/a".repeat(33)), "path_too_complex");
        assert_eq!(refused("/**/a/**/b/**"), "path_too_complex");
        assert_eq!(refused("/**/**/x"), "path_too_complex");
    }
}
