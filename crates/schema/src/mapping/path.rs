//! RFC 0024 §3.3: the places that a mapping reads and writes, as RFC 6901 pointers.
//!
//! A segment of digits is an element of an array, never a member: writing must know what to make (decisions/0123).

use crate::read::At;
use crate::refusal::{Code, Refusal};
use json::{Pointer, Value};
use std::fmt;

/// Bytes of one pointer.
pub(crate) const PATH_BYTES_MAX: usize = 512;

/// Segments of one pointer.
pub(crate) const PATH_SEGMENTS_MAX: usize = 32;

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A member of an object.
    Name(Box<str>),
    /// An element of an array.
    Index(usize),
}

impl fmt::Display for Segment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => out.write_str(name),
            Self::Index(index) => write!(out, "{index}"),
        }
    }
}

/// A place in a document that a mapping speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(Vec<Segment>);

impl Path {
    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        let text = at.string()?;
        if text.len() > PATH_BYTES_MAX {
            let place = at.at.clone();
            return Err(Refusal::limit(Code::MappingTooLarge, place, "mapping.path_bytes", PATH_BYTES_MAX, text.len()));
        }
        if let Err(error) = Pointer::parse(text) {
            return at.refuse(Code::InvalidPointer, error.to_string());
        }
        let segments: Result<Vec<String>, _> = Pointer::segments(text).collect();
        let segments = segments.or_else(|error| at.refuse(Code::InvalidPointer, error.to_string()))?;
        if segments.len() > PATH_SEGMENTS_MAX {
            let (place, got) = (at.at.clone(), segments.len());
            return Err(Refusal::limit(Code::MappingTooLarge, place, "mapping.path_segments", PATH_SEGMENTS_MAX, got));
        }
        Ok(Self(segments.into_iter().map(segment).collect()))
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    pub(crate) fn pointer(&self) -> Pointer {
        self.0.iter().fold(Pointer::root(), |pointer, segment| pointer.child(segment))
    }

    /// The place beside this one with another name; nothing beside the root or an element.
    pub(crate) fn renamed(&self, name: &str) -> Option<Self> {
        let (last, parents) = self.0.split_last()?;
        matches!((last, segment(name.to_owned())), (Segment::Name(_), Segment::Name(_)))
            .then(|| Self(parents.iter().cloned().chain([Segment::Name(name.into())]).collect()))
    }

    /// The name that a value has here, for people and for rules about names.
    pub(crate) fn last_name(&self) -> Option<&str> {
        match self.0.last()? {
            Segment::Name(name) => Some(name),
            Segment::Index(_) => None,
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(&**name),
            Segment::Index(_) => None,
        })
    }

    /// The value here, if there is one.
    pub(crate) fn find<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, segment| match (segment, value) {
            (Segment::Name(name), Value::Object(members)) => members.get(&**name),
            (Segment::Index(index), Value::Array(elements)) => elements.get(*index),
            _ => None,
        })
    }
}

fn segment(text: String) -> Segment {
    match Pointer::as_index(&text) {
        Some(index) => Segment::Index(index),
        None => Segment::Name(text.into()),
    }
}
