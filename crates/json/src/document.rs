//! A parsed document: flat, immutable, its objects in RFC 8785 key order.
//!
//! All values of a container lie side by side, the names of an object are kept apart and shared, and nothing is
//! allocated per value. Evaluation over many documents is bound by memory, so this form is what makes it fast.
//!
//! INVARIANT: [`Document::parse`] reads one strictly and within limits; a [`crate::Builder`] makes one out of those, under
//! the same rules. There is no third way.

use crate::parse::{Limits, ParseError, parse};
use crate::pointer::index;
use crate::shape::{Family, Key, Near, Shape, ShapeId, Shapes, hash};
use serde_json::Value;
use std::sync::Arc;

/// A parsed, immutable JSON document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The outermost value is the last slot: children are complete before their container.
    pub(crate) slots: Box<[Slot]>,
    pub(crate) text: Box<str>,
    /// The names of its objects, and of others.
    pub(crate) family: Family,
}

/// The document `null`.
impl Default for Document {
    fn default() -> Self {
        Self { slots: [Slot::Null].into(), text: "".into(), family: Family::default() }
    }
}

/// One value; containers name the run of slots that holds their children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Null,
    Bool(bool),
    Number(f64),
    /// A text short enough to stand in the slot itself, as most values that people ask for are.
    Short {
        len: u8,
        bytes: [u8; SHORT_MAX],
    },
    Long(Span),
    Array {
        first: u32,
        len: u32,
    },
    /// As many members as its shape has names; the shape is told by its position in the document's family.
    Object {
        first: u32,
        len: u32,
        shape: u32,
    },
}

/// What fits into a slot beside its tag and a length.
pub(crate) const SHORT_MAX: usize = 14;

/// How far a glance goes: the top of a record is laid down last, its outer members right before it.
const GLANCE_SLOTS: usize = 64;

/// A run of bytes in the document's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Document {
    /// Reads bytes strictly and within `limits`.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, ParseError> {
        parse(bytes, limits, &mut Shapes::default())
    }

    /// Reads bytes strictly and within `limits`, sharing the names of objects with other documents.
    pub fn parse_with(bytes: &[u8], limits: &Limits, shapes: &mut Shapes) -> Result<Self, ParseError> {
        parse(bytes, limits, shapes)
    }

    /// Roughly the bytes of memory that it holds by itself; the names of its objects are shared.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.slots) + self.text.len() + size_of::<Self>()
    }

    /// The document of a value we built ourselves; it is written and read back, so our own words obey the same rules.
    pub fn of(value: &Value) -> Result<Self, ParseError> {
        Self::parse(value.to_string().as_bytes(), &Limits::OURS)
    }

    /// The outermost value.
    #[inline]
    pub fn root(&self) -> Node<'_> {
        Node { document: self, position: self.slots.len().saturating_sub(1) as u32 }
    }

    /// The value at a [`Node::position`] of this document.
    #[inline]
    pub fn node(&self, position: usize) -> Option<Node<'_>> {
        (position < self.slots.len()).then_some(Node { document: self, position: position as u32 })
    }

    /// How many values the document holds, itself included.
    pub fn nodes(&self) -> usize {
        self.slots.len()
    }
}

impl Span {
    #[inline]
    pub(crate) fn of(self, text: &str) -> &str {
        let start = self.start as usize;
        text.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// A text to compare many values with, in the form that they have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// It would stand in a slot.
    Short {
        /// Bytes that count.
        len: u8,
        /// Padded with zeros.
        bytes: [u8; SHORT_MAX],
    },
    /// It would not.
    Long(Box<str>),
}

impl Text {
    /// Prepares a text.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; SHORT_MAX];
        match bytes.get_mut(..text.len()) {
            Some(slot) => {
                slot.copy_from_slice(text.as_bytes());
                Self::Short { len: text.len() as u8, bytes }
            }
            None => Self::Long(text.into()),
        }
    }
}

/// What kind of JSON value a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// a number
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

impl Kind {
    /// The word people use for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A value inside a document.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    document: &'a Document,
    position: u32,
}

impl<'a> Node<'a> {
    /// What kind of value this is.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.slot() {
            Slot::Null => Kind::Null,
            Slot::Bool(_) => Kind::Bool,
            Slot::Number(_) => Kind::Number,
            Slot::Short { .. } | Slot::Long(_) => Kind::String,
            Slot::Array { .. } => Kind::Array,
            Slot::Object { .. } => Kind::Object,
        }
    }

    /// The text, if this is a string.
    #[inline]
    pub fn as_str(self) -> Option<&'a str> {
        match self.slot() {
            Slot::Short { len, bytes } => std::str::from_utf8(bytes.get(..usize::from(*len))?).ok(),
            Slot::Long(span) => Some(span.of(&self.document.text)),
            _ => None,
        }
    }

    /// Whether this is just that text.
    #[inline]
    pub fn is_text(self, text: &Text) -> bool {
        match (self.slot(), text) {
            // Padding is zero on both sides, so short texts are equal when their slots are.
            (Slot::Short { len, bytes }, Text::Short { len: wanted_len, bytes: wanted }) => {
                len == wanted_len && bytes == wanted
            }
            (Slot::Long(span), Text::Long(wanted)) => {
                span.len as usize == wanted.len() && span.of(&self.document.text) == &**wanted
            }
            _ => false,
        }
    }

    /// How many bytes the text has; none when this is no text.
    #[inline]
    pub fn text_bytes(self) -> usize {
        match self.slot() {
            Slot::Short { len, .. } => usize::from(*len),
            Slot::Long(span) => span.len as usize,
            _ => 0,
        }
    }

    /// The number, if this is one.
    #[inline]
    pub fn as_f64(self) -> Option<f64> {
        match self.slot() {
            Slot::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number as an integer, if it is one without a fraction and not negative.
    pub fn as_u64(self) -> Option<u64> {
        match self.slot() {
            // The parser keeps numbers within ±(2^53 − 1), so the cast is exact.
            Slot::Number(number) if number.fract() == 0.0 && *number >= 0.0 => Some(*number as u64),
            _ => None,
        }
    }

    /// The truth value, if this is one.
    pub fn as_bool(self) -> Option<bool> {
        match self.slot() {
            Slot::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        matches!(self.slot(), Slot::Null)
    }

    /// Whether this is an object.
    #[inline]
    pub fn is_object(self) -> bool {
        matches!(self.slot(), Slot::Object { .. })
    }

    /// How many elements or members a container has; zero for scalars.
    pub fn len(self) -> usize {
        match self.slot() {
            Slot::Array { len, .. } | Slot::Object { len, .. } => *len as usize,
            _ => 0,
        }
    }

    /// Whether there is nothing inside.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The member of an object.
    pub fn get(self, name: &str) -> Option<Self> {
        self.find(hash(name.as_bytes()), name)
    }

    /// The member of an object, by a prepared key.
    pub fn get_key(self, key: &Key) -> Option<Self> {
        self.find(key.hash(), key.name())
    }

    fn find(self, hash: u32, name: &str) -> Option<Self> {
        let (first, shape) = self.shape()?;
        shape.find(hash, name).map(|position| self.sibling(first, position))
    }

    /// The member of an object, by a prepared key, remembering where it stands in objects of this shape.
    ///
    /// A memory belongs to one key: use it with that key only.
    #[inline]
    pub fn get_near(self, key: &Key, near: &mut Near) -> Option<Self> {
        let Slot::Object { first, shape, .. } = self.slot() else { return None };
        near.find(key, &self.document.family, *shape).map(|position| self.sibling(*first, position))
    }

    fn shape(self) -> Option<(u32, &'a Shape)> {
        match self.slot() {
            Slot::Object { first, shape, .. } => Some((*first, self.document.family.get(*shape)?)),
            _ => None,
        }
    }

    /// The names of an object.
    #[inline]
    pub fn names(self) -> Option<&'a Arc<Shape>> {
        match self.slot() {
            Slot::Object { shape, .. } => self.document.family.get(*shape),
            _ => None,
        }
    }

    /// Which names an object has; to be compared without looking at them.
    #[inline]
    pub fn shape_id(self) -> Option<ShapeId> {
        match self.slot() {
            Slot::Object { shape, .. } => Some(self.document.family.id(*shape)),
            _ => None,
        }
    }

    /// The value directly inside a container, counted in document order.
    #[inline]
    pub fn child(self, position: usize) -> Option<Self> {
        let (first, len) = match self.slot() {
            Slot::Array { first, len } | Slot::Object { first, len, .. } => (*first, *len as usize),
            _ => return None,
        };
        (position < len).then_some(self.sibling(first, position))
    }

    pub(crate) fn document(self) -> &'a Document {
        self.document
    }

    /// The element of an array.
    #[inline]
    pub fn at(self, position: usize) -> Option<Self> {
        match self.slot() {
            Slot::Array { first, len } if position < *len as usize => Some(self.sibling(*first, position)),
            _ => None,
        }
    }

    /// One RFC 6901 step: a member by name, or an element by an index without leading zeros.
    pub fn step(self, segment: &str) -> Option<Self> {
        match self.slot() {
            Slot::Object { .. } => self.get(segment),
            Slot::Array { .. } => self.at(index(segment)?),
            _ => None,
        }
    }

    /// The elements of an array, in order; nothing for other values.
    #[inline]
    pub fn elements(self) -> Elements<'a> {
        let (first, len) = match self.slot() {
            Slot::Array { first, len } => (*first, *len),
            _ => (0, 0),
        };
        Elements { document: self.document, positions: first..first + len }
    }

    /// The members of an object, in RFC 8785 key order; nothing for other values.
    pub fn members(self) -> Members<'a> {
        let (first, len) = match self.slot() {
            Slot::Object { first, len, .. } => (*first, *len),
            _ => (0, 0),
        };
        let values = Elements { document: self.document, positions: first..first + len };
        Members { values: values.enumerate(), shape: self.shape().map(|(_, shape)| shape) }
    }

    /// The values directly inside a container, in document order.
    #[inline]
    pub fn children(self) -> Elements<'a> {
        let (first, len) = match self.slot() {
            Slot::Array { first, len } | Slot::Object { first, len, .. } => (*first, *len),
            _ => (0, 0),
        };
        Elements { document: self.document, positions: first..first + len }
    }

    /// Which value of its document this is, below [`Document::nodes`]; a set of nodes is a set of these.
    #[inline]
    pub fn position(self) -> usize {
        self.position as usize
    }

    /// The value at another position of the same document.
    #[inline]
    pub fn elsewhere(self, position: usize) -> Self {
        Self { document: self.document, position: position as u32 }
    }

    /// Looks at the neighbourhood of this value, one glance for each line of memory, and tells nothing of use.
    ///
    /// The glances do not wait for each other, so a document that is not in the cache arrives in one delay instead of
    /// one for every step of a question.
    #[inline]
    pub fn glance(self) -> usize {
        let end = self.position as usize + 1;
        let near = self.document.slots.get(end.saturating_sub(GLANCE_SLOTS)..end).unwrap_or_default();
        near.iter().step_by(4).filter(|slot| matches!(slot, Slot::Null)).count()
    }

    /// The value as a tree for building other documents.
    pub fn to_value(self) -> Value {
        match self.slot() {
            Slot::Null => Value::Null,
            Slot::Bool(value) => Value::Bool(*value),
            Slot::Number(number) => number_value(*number),
            Slot::Short { .. } | Slot::Long(_) => Value::String(self.as_str().unwrap_or_default().to_owned()),
            Slot::Array { .. } => Value::Array(self.elements().map(Node::to_value).collect()),
            Slot::Object { .. } => {
                Value::Object(self.members().map(|(name, node)| (name.to_owned(), node.to_value())).collect())
            }
        }
    }

    /// This value as a document of its own.
    pub fn to_document(self) -> Document {
        // What was read strictly once is canonical JSON, so reading it again cannot fail.
        Document::parse(&crate::canonical(self), &Limits::OURS).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn slot(self) -> &'a Slot {
        self.document.slots.get(self.position as usize).unwrap_or(&Slot::Null)
    }

    #[inline]
    fn sibling(self, first: u32, offset: usize) -> Self {
        Self { document: self.document, position: first + offset as u32 }
    }
}

/// Structural equality (RFC 0020 A.1 `eq`): member order is no difference, `1` is `1.0`, nothing is cast.
impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.slot(), other.slot()) {
            (Slot::Null, Slot::Null) => true,
            (Slot::Bool(left), Slot::Bool(right)) => left == right,
            (Slot::Number(left), Slot::Number(right)) => left == right,
            (Slot::Short { .. }, Slot::Short { .. }) | (Slot::Long(_), Slot::Long(_)) => {
                self.as_str() == other.as_str()
            }
            (Slot::Array { len: left, .. }, Slot::Array { len: right, .. }) => {
                left == right && self.elements().eq(other.elements())
            }
            // Members stand in one order in every document, so equal objects are equal member by member.
            (Slot::Object { len: left, .. }, Slot::Object { len: right, .. }) => {
                left == right && self.members().eq(other.members())
            }
            _ => false,
        }
    }
}

fn number_value(number: f64) -> Value {
    // An integer is written as one, so that `1.0` and `1` build the same value.
    if number.fract() == 0.0 { Value::from(number as i64) } else { Value::from(number) }
}

/// The values inside a container.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    document: &'a Document,
    positions: std::ops::Range<u32>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    #[inline]
    fn next(&mut self) -> Option<Node<'a>> {
        self.positions.next().map(|position| Node { document: self.document, position })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl ExactSizeIterator for Elements<'_> {}

/// The members of an object.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    values: std::iter::Enumerate<Elements<'a>>,
    shape: Option<&'a Shape>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (position, value) = self.values.next()?;
        Some((self.shape?.name(position), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }
}

impl ExactSizeIterator for Members<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(value: Value) -> Document {
        Document::of(&value).unwrap()
    }

    #[test]
    fn a_slot_is_two_words() {
        assert_eq!(std::mem::size_of::<Slot>(), 16);
    }

    #[test]
    fn members_are_found_by_name_and_listed_in_key_order() {
        let document = document(json!({"b": 1, "a": {"x": [true, null]}, "\u{1f600}": 2, "\u{e000}": 3}));
        let root = document.root();
        assert_eq!(root.get("b").unwrap().as_f64(), Some(1.0));
        assert_eq!(root.get_key(&Key::new("a")).unwrap().get("x").unwrap().at(0).unwrap().as_bool(), Some(true));
        assert!(root.get("c").is_none());
        assert_eq!(root.members().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "\u{1f600}", "\u{e000}"]);
    }

    #[test]
    fn names_that_share_a_hash_are_told_apart() {
        // Found by search: these two names have the same hash.
        let (left, right) = ("gebbmqd", "iwyafmn");
        assert_eq!(hash(left.as_bytes()), hash(right.as_bytes()));
        let document = document(json!({"gebbmqd": 1, "iwyafmn": 2}));
        assert_eq!(document.root().get(left).unwrap().as_f64(), Some(1.0));
        assert_eq!(document.root().get(right).unwrap().as_f64(), Some(2.0));
    }

    #[test]
    fn equality_is_structural() {
        let same = [(json!({"a": 1, "b": [1, {}]}), json!({"b": [1.0, {}], "a": 1.0})), (json!(-0.0), json!(0))];
        for (left, right) in same {
            assert!(document(left).root() == document(right).root());
        }
        let different = [
            (json!("1"), json!(1)),
            (json!([1, 2]), json!([2, 1])),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!({"a": 1}), json!({"a": 2})),
            (json!({"a": 1}), json!({"b": 1})),
            (json!(null), json!(false)),
            (json!([]), json!({})),
        ];
        for (left, right) in different {
            assert!(document(left).root() != document(right).root());
        }
    }

    #[test]
    fn a_value_survives_the_way_there_and_back() {
        let value = json!({"a": [1, 2.5, "x", null, true], "b": {}});
        assert_eq!(document(value.clone()).root().to_value(), value);
    }
}
