//! Documents as bytes that are read back without being parsed.
//!
//! A slot is sixteen bytes in memory and sixteen here, and the names of objects are left out: a number says which of the
//! [`Packer`]'s shapes an object has. So reading one back is a copy and a look at each slot. It is for bytes that we wrote
//! ourselves and that a checksum stands beside: what is checked here keeps every place inside the document and every value
//! within the rules of [`Document`]; that no value stands in two containers is the checksum's word.
//!
//! INVARIANT: a shape keeps its number for as long as anything that was packed with it is read.

use crate::document::{Document, SHORT_MAX, Slot, Span};
use crate::parse::INTEGER_MAX;
use crate::shape::{Family, Growing, Shape};

/// Bytes of a slot.
const SLOT: usize = 16;

const NULL: u8 = 0;
const BOOL: u8 = 1;
const NUMBER: u8 = 2;
const SHORT: u8 = 3;
const LONG: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;

/// Packs documents, and knows the shapes of all that it packed.
#[derive(Debug, Default)]
pub struct Packer {
    shapes: Growing,
    /// The family of the last document, and what its numbers are here.
    near: (u64, Vec<Option<u32>>),
}

impl Packer {
    /// Appends a document to `bytes`; says no, and appends nothing, when there is no room for its names.
    pub fn pack(&mut self, document: &Document, bytes: &mut Vec<u8>) -> bool {
        let begin = bytes.len();
        bytes.reserve(4 + document.slots.len() * SLOT + document.text.len());
        bytes.extend((document.slots.len() as u32).to_le_bytes());
        for slot in &document.slots {
            let Some(packed) = self.slot(slot, &document.family) else {
                bytes.truncate(begin);
                return false;
            };
            bytes.extend(packed);
        }
        bytes.extend(document.text.as_bytes());
        true
    }

    fn slot(&mut self, slot: &Slot, family: &Family) -> Option<[u8; SLOT]> {
        Some(match slot {
            Slot::Null => of(NULL, [0; 3]),
            Slot::Bool(value) => of(BOOL, [u32::from(*value), 0, 0]),
            Slot::Number(number) => {
                let bits = number.to_bits();
                of(NUMBER, [0, bits as u32, (bits >> 32) as u32])
            }
            Slot::Short { len, bytes } => {
                let mut packed = [0; SLOT];
                let (head, rest) = packed.split_at_mut(SLOT - SHORT_MAX);
                head.copy_from_slice(&[SHORT, *len]);
                rest.copy_from_slice(bytes);
                packed
            }
            Slot::Long(span) => of(LONG, [span.start, span.len, 0]),
            Slot::Array { first, len } => of(ARRAY, [*first, *len, 0]),
            Slot::Object { first, len, shape } => of(OBJECT, [*first, *len, self.number(family, *shape)?]),
        })
    }

    /// The number of a shape here; none when it is new and there is no room.
    fn number(&mut self, family: &Family, shape: u32) -> Option<u32> {
        if self.near.0 != family.number() {
            self.near = (family.number(), Vec::new());
        }
        if let Some(Some(number)) = self.near.1.get(shape as usize) {
            return Some(*number);
        }
        let names = family.get(shape)?;
        let full = self.shapes.is_full();
        let number = if full { self.shapes.find(names)? } else { self.shapes.position(names) };
        if self.near.1.len() <= shape as usize {
            self.near.1.resize(shape as usize + 1, None);
        }
        if let Some(near) = self.near.1.get_mut(shape as usize) {
            *near = Some(number);
        }
        Some(number)
    }

    /// How many shapes there are; what was packed so far has numbers below that.
    pub fn count(&self) -> usize {
        self.shapes.count()
    }

    /// The names of a shape.
    pub fn shape(&self, number: usize) -> Option<&Shape> {
        self.shapes.family().get(u32::try_from(number).ok()?).map(|shape| &**shape)
    }

    /// Takes up the next shape of an earlier packer; says no when it cannot have its number.
    pub fn learn<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let number = self.count();
        Shape::of(names).is_some_and(|shape| self.shapes.position(&shape) as usize == number)
    }

    /// Reads back what was packed so far.
    pub fn unpacker(&self) -> Unpacker {
        Unpacker(self.shapes.family().clone())
    }
}

/// Reads back what a [`Packer`] packed.
#[derive(Clone, Debug, Default)]
pub struct Unpacker(Family);

impl Unpacker {
    /// The document in some bytes; none when they are not what a packer with these shapes writes.
    pub fn unpack(&self, bytes: &[u8]) -> Option<Document> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count);
        let (packed, text) = rest.split_at_checked((count as usize).checked_mul(SLOT)?)?;
        let text = std::str::from_utf8(text).ok()?;
        let (packed, _) = packed.as_chunks::<SLOT>();
        let mut slots = Vec::with_capacity(packed.len());
        packed.iter().all(|packed| self.add(packed, text, &mut slots)).then_some(())?;
        (!slots.is_empty()).then(|| Document { slots: slots.into(), text: text.into(), family: self.0.clone() })
    }

    /// Adds a slot, each kind straight to where it stays; says no to one that is not sound.
    ///
    /// Children stand before their container, so that nothing contains itself.
    #[inline]
    fn add(&self, packed: &[u8; SLOT], text: &str, slots: &mut Vec<Slot>) -> bool {
        let [kind, first, second, third] = words(packed);
        let is_before = |first: u32, len: u32| first as usize + len as usize <= slots.len();
        match kind as u8 {
            NULL => slots.push(Slot::Null),
            BOOL => slots.push(Slot::Bool(first == 1)),
            NUMBER => {
                let number = f64::from_bits(u64::from(second) | u64::from(third) << 32);
                // What is no number is not below anything.
                if number.abs() <= INTEGER_MAX {
                    slots.push(Slot::Number(number));
                } else {
                    return false;
                }
            }
            SHORT => {
                let [_, len, bytes @ ..] = *packed;
                let Some((text, rest)) = bytes.split_at_checked(usize::from(len)) else { return false };
                if rest.iter().any(|byte| *byte != 0) || !(text.is_ascii() || std::str::from_utf8(text).is_ok()) {
                    return false;
                }
                slots.push(Slot::Short { len, bytes });
            }
            LONG => {
                let (start, end) = (first as usize, first as usize + second as usize);
                if second as usize <= SHORT_MAX || text.get(start..end).is_none() {
                    return false;
                }
                slots.push(Slot::Long(Span { start: first, len: second }));
            }
            ARRAY if is_before(first, second) => slots.push(Slot::Array { first, len: second }),
            OBJECT if is_before(first, second) && self.0.get(third).is_some_and(|it| it.len() == second as usize) => {
                slots.push(Slot::Object { first, len: second, shape: third });
            }
            _ => return false,
        }
        true
    }
}

fn words(packed: &[u8; SLOT]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(packed.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// A kind and three words.
fn of(kind: u8, words: [u32; 3]) -> [u8; SLOT] {
    let mut packed = [0; SLOT];
    for (place, word) in packed.as_chunks_mut::<4>().0.iter_mut().zip([u32::from(kind)].into_iter().chain(words)) {
        *place = word.to_le_bytes();
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Shapes, canonical};

    const TEXTS: [&str; 5] = [
        "null",
        r#"{"a":[true,false,null,-0.5,9007199254740991,"","fourteen bytes","fifteen bytes!!"],"b":{"a":{},"c":[]}}"#,
        r#"[{"x":1,"y":"ü"},{"y":2,"x":"a text that is longer than a slot"},{"z":"\u0000"}]"#,
        r#""a text that stands by itself and is long""#,
        "[[[[]]]]",
    ];

    fn read(text: &str) -> Document {
        Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap()
    }

    fn packed(packer: &mut Packer, document: &Document) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(packer.pack(document, &mut bytes));
        bytes
    }

    #[test]
    fn what_was_packed_is_read_back_also_with_shapes_that_were_learned_again() {
        let (mut packer, mut shapes) = (Packer::default(), Shapes::default());
        let mut pack = |text: &str| {
            let alone = packed(&mut packer, &read(text));
            let among = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
            assert_eq!(packed(&mut packer, &among), alone);
            alone
        };
        let all: Vec<Vec<u8>> = TEXTS.iter().map(|text| pack(text)).collect();
        let mut later = Packer::default();
        for number in 0..packer.count() {
            let shape = packer.shape(number).unwrap();
            assert!(later.learn((0..shape.len()).map(|place| shape.name(place))));
        }
        for (text, bytes) in TEXTS.iter().zip(&all) {
            let expected = canonical(read(text).root());
            assert_eq!(canonical(packer.unpacker().unpack(bytes).unwrap().root()), expected);
            let again = later.unpacker().unpack(bytes).unwrap();
            assert_eq!(canonical(again.root()), expected);
            assert_eq!(packed(&mut later, &again), *bytes);
        }
    }

    #[test]
    fn shapes_are_learned_in_their_order_or_not_at_all() {
        let mut packer = Packer::default();
        assert!(packer.learn(["a", "b"]) && packer.learn(["b"]));
        assert!(!packer.learn(["b", "a"]) && !packer.learn(["a", "a"]) && !packer.learn(["a", "b"]));
        assert_eq!(packer.count(), 2);
    }

    #[test]
    fn damaged_bytes_make_a_sound_document_or_none() {
        let mut packer = Packer::default();
        for text in TEXTS {
            let (good, unpacker) = (packed(&mut packer, &read(text)), packer.unpacker());
            for length in 0..good.len() {
                sound(unpacker.unpack(&good[..length]));
            }
            for (at, flip) in (0..good.len()).flat_map(|at| [1, 2, 4, 16, 128, 255].map(|flip| (at, flip))) {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                sound(unpacker.unpack(&bytes));
            }
        }
        assert!(packer.unpacker().unpack(&[]).is_none() && packer.unpacker().unpack(&[0; 4]).is_none());
    }

    /// Whatever came out of damaged bytes can be written, and its bytes are a document.
    fn sound(document: Option<Document>) {
        if let Some(document) = document {
            let bytes = canonical(document.root());
            assert_eq!(canonical(Document::parse(&bytes, &Limits::OURS).unwrap().root()), bytes);
        }
    }

    #[test]
    fn a_packer_without_room_goes_on_with_the_names_that_it_knows() {
        let mut packer = Packer::default();
        let mut number = 0;
        while packed_or_not(&mut packer, &format!(r#"{{"n{number}":0}}"#)) {
            number += 1;
        }
        assert!(number > 1_000 && packer.count() == number);
        assert!(packed_or_not(&mut packer, r#"{"n7":"still known"}"#) && packed_or_not(&mut packer, "[1]"));
        assert!(!packed_or_not(&mut packer, r#"[{"n7":1},{"new":2}]"#));
    }

    fn packed_or_not(packer: &mut Packer, text: &str) -> bool {
        let mut bytes = b"before".to_vec();
        let packed = packer.pack(&read(text), &mut bytes);
        assert_eq!(bytes.len() > 6, packed);
        packed
    }
}
