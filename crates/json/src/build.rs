//! Building a document out of values of others, flat from the start.
//!
//! A translation takes most of its values from a document that was read already; writing them and reading them again
//! would cost more than everything else it does. What is new goes through the same rules as in the parser.
//!
//! A slot is written by a function of its own for each kind, straight to where it stays, and everything that is handed
//! around meanwhile is a number: a slot that is put together from its parts and moved as a whole right after makes the
//! processor wait, and that was a third of a translation.
//!
//! INVARIANT: numbers are finite and within ±(2^53 − 1); an object has as many values as its shape has names.

use crate::document::{Document, Node, SHORT_MAX, Slot, Span};
use crate::parse::INTEGER_MAX;
use crate::shape::{Form, Growing};
use serde_json::Value;

/// A document that is being built; its room is used again by the next one.
#[derive(Debug, Default)]
pub struct Builder {
    slots: Slots,
    text: String,
    /// Finished values that wait for their places.
    pieces: Slots,
    /// Values whose container is still open.
    pending: Vec<Pending>,
    /// Values of the last document.
    room: usize,
    /// Bytes of the names of all objects.
    names: usize,
    /// The shapes of what is built.
    shapes: Growing,
    /// The families of documents that were copied from, the last one first.
    met: Vec<Met>,
}

/// Another family, and where its shapes stand among ours.
#[derive(Debug, Default)]
struct Met {
    family: u64,
    places: Vec<Option<Placed>>,
}

/// A shape among ours.
#[derive(Clone, Copy, Debug)]
struct Placed {
    position: u32,
    /// Bytes of its names.
    bytes: u32,
}

/// Families whose shapes are remembered: that of the sources, that of what a mapping brings, our own.
const FAMILIES_MET_MAX: usize = 4;

/// A value whose container is still open.
#[derive(Clone, Copy, Debug)]
enum Pending {
    /// It is finished.
    Ready(Piece),
    /// It is copied when its container closes, so that it is written once.
    Copied(u32),
}

/// A finished value that waits for its place in the document that is being built.
#[derive(Clone, Copy, Debug)]
pub struct Piece(u32);

/// A container that is still open: where its values begin.
#[derive(Clone, Copy, Debug)]
pub struct Open(usize);

/// Slots, each written where it stays.
#[derive(Debug, Default)]
struct Slots(Vec<Slot>);

/// Not inlined, so that no two kinds are put together in one place and moved from there.
impl Slots {
    #[inline(never)]
    fn null(&mut self) {
        self.0.push(Slot::Null);
    }

    #[inline(never)]
    fn bool(&mut self, value: bool) {
        self.0.push(Slot::Bool(value));
    }

    #[inline(never)]
    fn number(&mut self, number: f64) {
        self.0.push(Slot::Number(number));
    }

    #[inline(never)]
    fn short(&mut self, len: u8, bytes: &[u8; SHORT_MAX]) {
        self.0.push(Slot::Short { len, bytes: *bytes });
    }

    #[inline(never)]
    fn long(&mut self, span: Span) {
        self.0.push(Slot::Long(span));
    }

    #[inline(never)]
    fn array(&mut self, first: u32, len: u32) {
        self.0.push(Slot::Array { first, len });
    }

    #[inline(never)]
    fn object(&mut self, first: u32, len: u32, shape: u32) {
        self.0.push(Slot::Object { first, len, shape });
    }

    #[inline]
    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Moves a value here that was written just now: by its parts, since what is read wider than it was written waits.
    fn moved(&mut self, slot: Option<&mut Slot>) {
        let Some(slot) = slot else { return self.null() };
        match slot {
            Slot::Null => self.null(),
            Slot::Bool(value) => self.bool(*value),
            Slot::Number(number) => self.number(*number),
            Slot::Short { len, bytes } => self.short(*len, bytes),
            Slot::Long(span) => self.long(*span),
            Slot::Array { first, len } => self.array(*first, *len),
            Slot::Object { first, len, shape } => self.object(*first, *len, *shape),
        }
        *slot = Slot::Null;
    }
}

impl Builder {
    /// Forgets what was begun.
    pub fn clear(&mut self) {
        self.slots.0.clear();
        self.text.clear();
        self.empty();
    }

    /// Ready for the next document, whose numbers may be those of another family.
    fn empty(&mut self) {
        self.pieces.0.clear();
        self.pending.clear();
        self.names = 0;
        if self.shapes.is_full() {
            self.shapes = Growing::default();
            self.met.clear();
        }
    }

    /// Which of the shapes here an object of another document has.
    #[inline]
    fn placed(&mut self, from: &Document, shape: u32) -> Placed {
        let met = self.met.first().filter(|met| met.family == from.family.number());
        match met.and_then(|met| *met.places.get(shape as usize)?) {
            Some(placed) => placed,
            None => self.meet(from, shape),
        }
    }

    #[cold]
    fn meet(&mut self, from: &Document, shape: u32) -> Placed {
        let family = from.family.number();
        let at = self.met.iter().position(|met| met.family == family).unwrap_or_else(|| {
            self.met.truncate(FAMILIES_MET_MAX - 1);
            self.met.push(Met { family, places: Vec::new() });
            self.met.len() - 1
        });
        self.met.swap(0, at);
        let names = from.family.get(shape).cloned().unwrap_or_default();
        let placed = Placed { position: self.shapes.position(&names), bytes: names.text_bytes() as u32 };
        if let Some(Met { places, .. }) = self.met.first_mut() {
            places.resize(places.len().max(shape as usize + 1), None);
            places.get_mut(shape as usize).into_iter().for_each(|place| *place = Some(placed));
        }
        placed
    }

    /// At least [`Document::written_bytes`] of what is finished with this; known without counting.
    #[inline]
    pub fn written_at_most(&self) -> usize {
        // A scalar has at most 16 bytes beside its text; what a container adds for each child is at most 4.
        20 * (self.slots.0.len() + 1) + self.text.len() + self.names
    }

    /// How many values and bytes of text there are; never more than the document has bytes when it is written.
    #[inline]
    pub fn bulk(&self) -> usize {
        self.slots.0.len() + self.text.len()
    }

    /// A value of another document, with everything in it.
    #[inline]
    pub fn copy(&mut self, node: Node<'_>) -> Piece {
        let from = node.document();
        match node.slot() {
            Slot::Array { first, len } => {
                let first = self.copied_run(*first, *len as usize, from);
                self.pieces.array(first, *len);
            }
            Slot::Object { first, len, shape } => {
                let first = self.copied_run(*first, *len as usize, from);
                let shape = self.placed(from, *shape);
                self.names += shape.bytes as usize;
                self.pieces.object(first, *len, shape.position);
            }
            slot => scalar(slot, from, &mut self.pieces, &mut self.text),
        }
        self.last()
    }

    /// The piece that was finished just now.
    #[inline]
    fn last(&self) -> Piece {
        Piece(self.pieces.len().saturating_sub(1))
    }

    fn copied_run(&mut self, first: u32, len: usize, from: &Document) -> u32 {
        let run = from.slots.get(first as usize..first as usize + len).unwrap_or_default();
        let start = beginning(run, first, from);
        if let Some(laid) = self.copied_block(start, first, len, from) {
            return laid;
        }
        let open = self.open();
        for position in first..first + len as u32 {
            if let Some(node) = from.node(position as usize) {
                self.push_copy(node);
            }
        }
        self.lay(open, from)
    }

    /// Copies a run and everything in it as it lies there, from `start` on; none when something else lies between.
    ///
    /// A container comes after its children. So when every run of a block is inside it, and the runs are together as
    /// long as the block, then what it holds hangs together and nothing else is in it.
    fn copied_block(&mut self, start: u32, first: u32, len: usize, from: &Document) -> Option<u32> {
        let (base, text, names) = (self.slots.len(), self.text.len(), self.names);
        let block = from.slots.get(start as usize..first as usize + len)?;
        let (mut owned, mut inside) = (len, true);
        for slot in block {
            match slot {
                Slot::Array { first, len } => {
                    owned += *len as usize;
                    inside &= *first >= start;
                    self.slots.array(first.wrapping_sub(start).wrapping_add(base), *len);
                }
                Slot::Object { first, len, shape } => {
                    owned += *len as usize;
                    inside &= *first >= start;
                    let shape = self.placed(from, *shape);
                    self.names += shape.bytes as usize;
                    self.slots.object(first.wrapping_sub(start).wrapping_add(base), *len, shape.position);
                }
                slot => scalar(slot, from, &mut self.slots, &mut self.text),
            }
        }
        if inside && owned == block.len() {
            return Some(first - start + base);
        }
        self.slots.0.truncate(base as usize);
        self.text.truncate(text);
        self.names = names;
        None
    }

    /// Lays the values of a container side by side; those that are copied come out of `from`.
    fn lay(&mut self, open: Open, from: &Document) -> u32 {
        let first = self.slots.len();
        for pending in self.pending.drain(open.0.min(self.pending.len())..) {
            match pending {
                Pending::Ready(piece) => self.slots.moved(self.pieces.0.get_mut(piece.0 as usize)),
                Pending::Copied(position) => {
                    let slot = from.slots.get(position as usize).unwrap_or(&Slot::Null);
                    scalar(slot, from, &mut self.slots, &mut self.text);
                }
            }
        }
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
            (Some(short), Some(text)) => {
                short.copy_from_slice(text);
                self.pieces.short(len as u8, &bytes);
                self.text.truncate(start);
            }
            _ => self.pieces.long(Span { start: start as u32, len: len as u32 }),
        }
        self.last()
    }

    /// A number, if a document can hold it.
    pub fn number(&mut self, number: f64) -> Option<Piece> {
        // Zero has no sign here: it is not written either.
        (number.abs() <= INTEGER_MAX).then(|| {
            self.pieces.number(number + 0.0);
            self.last()
        })
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) -> Piece {
        self.pieces.bool(value);
        self.last()
    }

    /// The value `null`.
    pub fn null(&mut self) -> Piece {
        self.pieces.null();
        self.last()
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
                let mut form = Form::of(members.iter().map(|(name, _)| name.as_str()))?;
                let open = self.open();
                for (_, value) in members {
                    let value = self.value(value)?;
                    self.push(value);
                }
                Some(self.object(open, &mut form, &Document::default()))
            }
        }
    }

    /// Opens a container; what is pushed from now on stands in it, until it is closed.
    #[inline]
    pub fn open(&self) -> Open {
        Open(self.pending.len())
    }

    /// The next value of the innermost open container; a piece that was used already is `null`.
    #[inline]
    pub fn push(&mut self, piece: Piece) {
        self.pending.push(Pending::Ready(piece));
    }

    /// The next value of the innermost open container: a value of the document that closing it will be given, too.
    ///
    /// Containers are copied at once, since what they hold lies before their neighbours.
    #[inline]
    pub fn push_copy(&mut self, node: Node<'_>) {
        match node.slot() {
            Slot::Array { .. } | Slot::Object { .. } => {
                let piece = self.copy(node);
                self.push(piece);
            }
            Slot::Null | Slot::Bool(_) | Slot::Number(_) | Slot::Short { .. } | Slot::Long(_) => {
                self.pending.push(Pending::Copied(node.position() as u32));
            }
        }
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
        let first = self.lay(open, from);
        self.pieces.array(first, len);
        self.last()
    }

    /// Closes an object whose values were pushed in the order of its names; see [`Builder::array`] for `from`.
    ///
    /// A value too many is left out and one too few is `null`, so that no name has the value of another object.
    #[inline]
    pub fn object(&mut self, open: Open, form: &mut Form, from: &Document) -> Piece {
        let placed = Placed { position: form.position(&mut self.shapes), bytes: form.shape().text_bytes() as u32 };
        self.object_of(open, placed, form.shape().len(), from)
    }

    /// Closes an object that has the names of another one; see [`Builder::object`].
    pub fn object_like(&mut self, open: Open, like: Node<'_>, from: &Document) -> Option<Piece> {
        let Slot::Object { len, shape, .. } = like.slot() else { return None };
        let placed = self.placed(like.document(), *shape);
        Some(self.object_of(open, placed, *len as usize, from))
    }

    #[inline]
    fn object_of(&mut self, open: Open, shape: Placed, len: usize, from: &Document) -> Piece {
        debug_assert_eq!(self.pushed(open), len, "as many values as names");
        while self.pushed(open) < len {
            let null = self.null();
            self.push(null);
        }
        self.pending.truncate(open.0 + len);
        self.names += shape.bytes as usize;
        let first = self.lay(open, from);
        self.pieces.object(first, len as u32, shape.position);
        self.last()
    }

    /// The object that was closed last, with one more member; none if it has that name, or was not the last.
    pub fn with_member(&mut self, object: Piece, name: &str, value: Piece) -> Option<Piece> {
        let Some(Slot::Object { first, shape, .. }) = self.pieces.0.get(object.0 as usize) else { return None };
        let shape = self.shapes.family().get(*shape)?;
        let position = shape.gap(name)?;
        if *first as usize + shape.len() != self.slots.0.len() {
            return None;
        }
        let before = (0..position).map(|place| shape.name(place));
        let after = (position..shape.len()).map(|place| shape.name(place));
        let mut longer = Form::of(before.chain([name]).chain(after))?;
        let (open, first, len) = (self.open(), *first as usize, shape.len());
        for number in 0..=len {
            if number == position {
                self.push(value);
            }
            if number < len {
                self.pieces.moved(self.slots.0.get_mut(first + number));
                self.push(self.last());
            }
        }
        self.slots.0.truncate(first);
        Some(self.object(open, &mut longer, &Document::default()))
    }

    /// The document of a finished value; the builder is empty again.
    pub fn finish(&mut self, root: Piece) -> Document {
        self.slots.moved(self.pieces.0.get_mut(root.0 as usize));
        // Documents of a kind have as many values as each other, and then nothing is moved; their texts differ in length.
        let slots = std::mem::replace(&mut self.slots.0, Vec::with_capacity(self.room));
        self.room = slots.len();
        let family = self.shapes.family().clone();
        let document = Document { slots: slots.into(), text: self.text.as_str().into(), family };
        self.text.clear();
        self.empty();
        document
    }
}

/// Writes a value down that holds no others, with its text where the copy has its texts.
#[inline]
fn scalar(slot: &Slot, from: &Document, to: &mut Slots, text: &mut String) {
    match slot {
        Slot::Long(span) => {
            let start = text.len() as u32;
            text.push_str(span.of(&from.text));
            to.long(Span { start, len: span.len });
        }
        Slot::Array { .. } | Slot::Object { .. } => to.null(),
        Slot::Null | Slot::Bool(_) | Slot::Number(_) | Slot::Short { .. } => to.0.push(*slot),
    }
}

/// Where the values inside a run begin, in a document whose containers were finished one after the other.
#[inline]
fn beginning<'a>(mut run: &'a [Slot], mut first: u32, from: &'a Document) -> u32 {
    loop {
        let inner = run.iter().filter_map(|slot| match slot {
            Slot::Array { first, len } | Slot::Object { first, len, .. } if *len > 0 => Some((*first, *len as usize)),
            _ => None,
        });
        let Some((earliest, len)) = inner.min_by_key(|(first, _)| *first).filter(|(inner, _)| *inner < first) else {
            return first;
        };
        run = from.slots.get(earliest as usize..earliest as usize + len).unwrap_or_default();
        first = earliest;
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
        let names = |shape: u32| self.family.get(shape).map_or(0, |shape| shape.text_bytes());
        let bytes = |slot: &Slot| match slot {
            Slot::Null | Slot::Bool(_) => 5,
            Slot::Number(_) => 8,
            Slot::Short { len, .. } => usize::from(*len) + 2,
            Slot::Long(span) => span.len as usize + 2,
            Slot::Array { len, .. } => 2 + *len as usize,
            Slot::Object { len, shape, .. } => 2 + names(*shape) + 4 * *len as usize,
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

        #[test]
        fn a_copy_of_what_was_laid_out_of_order_holds_nothing_else(values in prop::collection::vec(value(), 1..4)) {
            let read: Vec<Document> = values.iter().map(|value| Document::of(value).unwrap()).collect();
            let mut builder = Builder::default();
            // Pieces that are finished long before they are used, and one that never is.
            builder.copy(read[0].root());
            let pieces: Vec<Piece> = read.iter().map(|read| builder.copy(read.root())).collect();
            let open = builder.open();
            pieces.iter().rev().for_each(|piece| builder.push(*piece));
            let list = builder.array(open, &Document::default());
            let most = builder.written_at_most();
            let mixed = builder.finish(list);
            prop_assert!(mixed.written_bytes() <= most);
            let copy = builder.copy(mixed.root());
            let most = builder.written_at_most();
            let copied = builder.finish(copy);
            prop_assert!(copied.written_bytes() <= most);
            prop_assert!(copied.root() == mixed.root());
            prop_assert_eq!(copied.nodes(), read.iter().map(Document::nodes).sum::<usize>() + 1);
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
        assert!(builder.with_member(object, "a", a).is_none());
        let longer = builder.with_member(object, "b", b).unwrap();
        let document = builder.finish(longer);
        assert_eq!(canonical(document.root()), br#"{"a":1,"b":"new","c":[2]}"#);
    }
}
