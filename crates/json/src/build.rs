//! Building a document out of values of others, flat from the start.
//!
//! A translation takes most of its values from a document that was read already; writing them and reading them again
//! would cost more than everything else it does. What is new goes through the same rules as in the parser.
//!
//! INVARIANT: numbers are finite and within ±(2^53 − 1); an object has as many values as its [`Shape`] has names.

use crate::document::{Document, Node, SHORT_MAX, Slot, Span};
use crate::parse::INTEGER_MAX;
use crate::shape::Shape;
use serde_json::Value;
use std::sync::Arc;

/// A document that is being built; its room is used again by the next one.
#[derive(Debug, Default)]
pub struct Builder {
    slots: Vec<Slot>,
    text: String,
    /// Values whose container is still open.
    pending: Vec<Pending>,
    /// Values of the last document.
    room: usize,
}

/// A value whose container is still open.
#[derive(Debug)]
enum Pending {
    /// It is finished.
    Ready(Slot),
    /// It is copied when its container closes, so that it is written once.
    Copied(u32),
}

/// A finished value that waits for its place.
#[derive(Debug)]
pub struct Piece(Slot);

/// A container that is still open: where its values begin.
#[derive(Clone, Copy, Debug)]
pub struct Open(usize);

impl Builder {
    /// Forgets what was begun.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.text.clear();
        self.pending.clear();
    }

    /// How many values and bytes of text there are; never more than the document has bytes when it is written.
    #[inline]
    pub fn bulk(&self) -> usize {
        self.slots.len() + self.text.len()
    }

    /// A value of another document, with everything in it.
    #[inline]
    pub fn copy(&mut self, node: Node<'_>) -> Piece {
        Piece(self.copied(node.slot(), node.document()))
    }

    #[inline]
    fn copied(&mut self, slot: &Slot, from: &Document) -> Slot {
        match slot {
            Slot::Array { first, len } => {
                let first = self.copied_run(*first, *len as usize, from);
                Slot::Array { first, len: *len }
            }
            Slot::Object { first, shape } => {
                let first = self.copied_run(*first, shape.len(), from);
                Slot::Object { first, shape: shape.clone() }
            }
            Slot::Null | Slot::Bool(_) | Slot::Number(_) | Slot::Short { .. } | Slot::Long(_) => {
                scalar(slot, from, &mut self.text)
            }
        }
    }

    fn copied_run(&mut self, first: u32, len: usize, from: &Document) -> u32 {
        let run = from.slots.get(first as usize..first as usize + len).unwrap_or_default();
        if !run.iter().any(|slot| matches!(slot, Slot::Array { .. } | Slot::Object { .. })) {
            let laid = self.slots.len() as u32;
            let text = &mut self.text;
            self.slots.extend(run.iter().map(|slot| scalar(slot, from, text)));
            return laid;
        }
        let open = self.open();
        for (slot, position) in run.iter().zip(first..) {
            self.push_slot(slot, position, from);
        }
        self.lay(open, from)
    }

    /// Containers are copied at once, since what they hold lies before their neighbours.
    #[inline]
    fn push_slot(&mut self, slot: &Slot, position: u32, from: &Document) {
        let pending = match slot {
            Slot::Array { .. } | Slot::Object { .. } => Pending::Ready(self.copied(slot, from)),
            Slot::Null | Slot::Bool(_) | Slot::Number(_) | Slot::Short { .. } | Slot::Long(_) => {
                Pending::Copied(position)
            }
        };
        self.pending.push(pending);
    }

    /// Lays the values of a container side by side; those that are copied come out of `from`.
    fn lay(&mut self, open: Open, from: &Document) -> u32 {
        let first = self.slots.len() as u32;
        let (slots, text) = (&mut self.slots, &mut self.text);
        slots.extend(self.pending.drain(open.0.min(self.pending.len())..).map(|pending| match pending {
            Pending::Ready(slot) => slot,
            Pending::Copied(position) => {
                from.slots.get(position as usize).map_or(Slot::Null, |slot| scalar(slot, from, text))
            }
        }));
        first
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> Piece {
        self.text_of([text])
    }

    /// A text made of several, one after the other.
    pub fn text_of<'t>(&mut self, parts: impl IntoIterator<Item = &'t str>) -> Piece {
        let start = self.text.len();
        parts.into_iter().for_each(|part| self.text.push_str(part));
        let len = self.text.len() - start;
        let mut bytes = [0; SHORT_MAX];
        match (bytes.get_mut(..len), self.text.as_bytes().get(start..)) {
            (Some(slot), Some(text)) => slot.copy_from_slice(text),
            _ => return Piece(Slot::Long(Span { start: start as u32, len: len as u32 })),
        }
        self.text.truncate(start);
        Piece(Slot::Short { len: len as u8, bytes })
    }

    /// A number, if a document can hold it.
    pub fn number(&self, number: f64) -> Option<Piece> {
        // Zero has no sign here: it is not written either.
        (number.abs() <= INTEGER_MAX).then_some(Piece(Slot::Number(number + 0.0)))
    }

    /// A truth value.
    pub fn bool(&self, value: bool) -> Piece {
        Piece(Slot::Bool(value))
    }

    /// The value `null`.
    pub fn null(&self) -> Piece {
        Piece(Slot::Null)
    }

    /// A value we built, if a document can hold its numbers.
    pub fn value(&mut self, value: &Value) -> Option<Piece> {
        match value {
            Value::Null => Some(self.null()),
            Value::Bool(value) => Some(self.bool(*value)),
            Value::Number(number) => self.number(number.as_f64()?),
            Value::String(text) => Some(self.text(text)),
            Value::Array(elements) => {
                let open = self.open();
                for element in elements {
                    let element = self.value(element)?;
                    self.push(element);
                }
                Some(self.array(open, &Document::default()))
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by(|left, right| crate::compare_keys(left.0, right.0));
                let shape = Shape::of(members.iter().map(|(name, _)| name.as_str()))?;
                let open = self.open();
                for (_, value) in members {
                    let value = self.value(value)?;
                    self.push(value);
                }
                Some(self.object(open, &shape, &Document::default()))
            }
        }
    }

    /// Opens a container; what is pushed from now on stands in it, until it is closed.
    #[inline]
    pub fn open(&self) -> Open {
        Open(self.pending.len())
    }

    /// The next value of the innermost open container.
    #[inline]
    pub fn push(&mut self, piece: Piece) {
        self.pending.push(Pending::Ready(piece.0));
    }

    /// The next value of the innermost open container: a value of the document that closing it will be given, too.
    #[inline]
    pub fn push_copy(&mut self, node: Node<'_>) {
        self.push_slot(node.slot(), node.position() as u32, node.document());
    }

    /// How many values were pushed since a container was opened.
    #[inline]
    pub fn pushed(&self, open: Open) -> usize {
        self.pending.len().saturating_sub(open.0)
    }

    /// Closes an array; what was only to be copied into it comes out of `from`.
    #[inline]
    pub fn array(&mut self, open: Open, from: &Document) -> Piece {
        let len = self.pushed(open) as u32;
        Piece(Slot::Array { first: self.lay(open, from), len })
    }

    /// Closes an object whose values were pushed in the order of its names; see [`Builder::array`] for `from`.
    ///
    /// A value too many is left out and one too few is `null`, so that no name has the value of another object.
    #[inline]
    pub fn object(&mut self, open: Open, shape: &Arc<Shape>, from: &Document) -> Piece {
        debug_assert_eq!(self.pushed(open), shape.len(), "as many values as names");
        if self.pushed(open) != shape.len() {
            self.pending.resize_with(open.0 + shape.len(), || Pending::Ready(Slot::Null));
        }
        Piece(Slot::Object { first: self.lay(open, from), shape: shape.clone() })
    }

    /// The object that was closed last, with one more member; none if it has that name, or was not the last.
    pub fn with_member(&mut self, object: &Piece, name: &str, value: Piece) -> Option<Piece> {
        let Slot::Object { first, shape } = &object.0 else { return None };
        let position = shape.gap(name)?;
        if *first as usize + shape.len() != self.slots.len() {
            return None;
        }
        let before = (0..position).map(|place| shape.name(place));
        let after = (position..shape.len()).map(|place| shape.name(place));
        let longer = Shape::of(before.chain([name]).chain(after))?;
        let open = self.open();
        self.pending.extend(self.slots.drain(*first as usize..).map(Pending::Ready));
        self.pending.insert(open.0 + position, Pending::Ready(value.0));
        Some(self.object(open, &longer, &Document::default()))
    }

    /// The document of a finished value; the builder is empty again.
    pub fn finish(&mut self, root: Piece) -> Document {
        self.slots.push(root.0);
        self.pending.clear();
        // Documents of a kind have as many values as each other, and then nothing is moved; their texts differ in length.
        let slots = std::mem::replace(&mut self.slots, Vec::with_capacity(self.room));
        self.room = slots.len();
        let document = Document { slots: slots.into(), text: self.text.as_str().into() };
        self.text.clear();
        document
    }
}

/// A value that holds no others, with its text where the copy has its texts.
#[inline]
fn scalar(slot: &Slot, from: &Document, text: &mut String) -> Slot {
    match slot {
        Slot::Long(span) => {
            let start = text.len() as u32;
            text.push_str(span.of(&from.text));
            Slot::Long(Span { start, len: span.len })
        }
        Slot::Short { len, bytes } => Slot::Short { len: *len, bytes: *bytes },
        Slot::Number(number) => Slot::Number(*number),
        Slot::Bool(value) => Slot::Bool(*value),
        Slot::Null | Slot::Array { .. } | Slot::Object { .. } => Slot::Null,
    }
}

impl Piece {
    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        matches!(self.0, Slot::Object { .. })
    }
}

impl Document {
    /// The document of a value we built, if a document can hold its numbers.
    pub fn built(value: &Value) -> Option<Self> {
        let mut builder = Builder::default();
        let root = builder.value(value)?;
        Some(builder.finish(root))
    }

    /// About as many bytes as the document has when it is written; found without walking it.
    pub fn written_bytes(&self) -> usize {
        let bytes = |slot: &Slot| match slot {
            Slot::Null | Slot::Bool(_) => 5,
            Slot::Number(_) => 8,
            Slot::Short { len, .. } => usize::from(*len) + 2,
            Slot::Long(span) => span.len as usize + 2,
            Slot::Array { len, .. } => 2 + *len as usize,
            Slot::Object { shape, .. } => 2 + shape.text_bytes() + 4 * shape.len(),
        };
        self.slots.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, canonical};
    use proptest::prelude::*;
    use serde_json::json;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1000i64..1000).prop_map(Value::from),
            (-1e6..1e6).prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-c\u{e000}\u{1f600}]{0,3}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_built_or_copied_is_what_would_have_been_read(value in value()) {
            let read = Document::of(&value).unwrap();
            let built = Document::built(&value).unwrap();
            prop_assert!(built.root() == read.root());
            prop_assert_eq!(canonical(built.root()), canonical(read.root()));
            let mut builder = Builder::default();
            let open = builder.open();
            let copy = builder.copy(read.root());
            builder.push(copy);
            builder.push_copy(read.root());
            let list = builder.array(open, &read);
            let twice = builder.finish(list);
            prop_assert!(twice.root().elements().all(|element| element == read.root()));
            prop_assert_eq!(twice.nodes(), 2 * read.nodes() + 1);
        }
    }

    #[test]
    fn numbers_beyond_doubles_are_not_taken() {
        assert!(Document::built(&json!(1e300)).is_none());
        assert!(Document::built(&json!([9_007_199_254_740_992_u64])).is_none());
        assert_eq!(Document::built(&json!(-0.0)).unwrap().root().as_f64().map(f64::is_sign_negative), Some(false));
    }

    #[test]
    fn a_member_is_put_where_its_name_belongs() {
        let source = Document::parse(br#"{"a":1,"c":[2]}"#, &Limits::DOCUMENT).unwrap();
        let mut builder = Builder::default();
        let object = builder.copy(source.root());
        let (b, a) = (builder.text("new"), builder.null());
        assert!(builder.with_member(&object, "a", a).is_none());
        let longer = builder.with_member(&object, "b", b).unwrap();
        let document = builder.finish(longer);
        assert_eq!(canonical(document.root()), br#"{"a":1,"b":"new","c":[2]}"#);
    }
}
