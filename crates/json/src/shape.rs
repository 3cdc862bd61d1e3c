//! The names of an object, shared by all objects that have the same ones.
//!
//! Records of a kind have the same members. Keeping the names once makes documents half as large, saves sorting them
//! again for every object, and keeps them in the processor's cache while many documents are asked the same question.
//!
//! An object says by a number which shape of its document's family it has, and the document holds the family as a whole.
//! So documents are copied, translated and thrown away without counting a reference for each of their objects, and two
//! objects have the same names when two numbers are the same (decisions/0250).
//!
//! INVARIANT: the names of a shape are distinct and in RFC 8785 order. A family only grows, and no other has its number:
//! what a [`ShapeId`] means never changes.

use crate::canonical::compare_keys;
use crate::document::Span;
use foldhash::fast::RandomState;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::atomic::{self, AtomicU64};
use std::sync::{Arc, OnceLock};

/// A member name with its hash, made once and looked up many times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    hash: u32,
    name: Box<str>,
}

impl Key {
    /// Prepares a decoded member name for look-ups.
    pub fn new(name: &str) -> Self {
        Self { hash: hash(name.as_bytes()), name: name.into() }
    }

    /// The member name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn hash(&self) -> u32 {
        self.hash
    }
}

/// Eight bytes at a time, with the length; a collision costs one text comparison and an object is scanned linearly
/// anyway, so nobody gains by one.
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    let mix = |state: u64, word: u64| (state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    (mix(state, rest) >> 32) as u32
}

/// A name: its hash and where its text stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) hash: u32,
    pub(crate) span: Span,
}

/// The sorted names of an object.
#[derive(Debug, Default)]
pub struct Shape {
    names: Box<[Name]>,
    text: Box<str>,
    /// Of all hashes, to find shapes with the same names.
    digest: u64,
}

impl Shape {
    /// The shape of names that are distinct and in RFC 8785 order; none for others.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<Arc<Self>> {
        let (mut text, mut last) = (String::new(), None);
        let mut placed = Vec::new();
        for name in names {
            if last.is_some_and(|last| compare_keys(last, name) != Ordering::Less) {
                return None;
            }
            last = Some(name);
            let span = Span { start: text.len() as u32, len: name.len() as u32 };
            placed.push(Name { hash: hash(name.as_bytes()), span });
            text.push_str(name);
        }
        Some(Arc::new(Self::new(placed, text)))
    }

    fn new(names: Vec<Name>, text: String) -> Self {
        let digest = digest(names.iter().map(|name| name.hash));
        Self { names: names.into(), text: text.into(), digest }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|place| self.name(place) == other.name(place))
    }

    /// Roughly the bytes of memory that it holds.
    fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.names) + self.text.len()
    }

    /// The name at a position; the empty one beyond the last.
    #[inline]
    pub fn name(&self, position: usize) -> &str {
        self.names.get(position).map_or("", |name| name.span.of(&self.text))
    }

    /// How many names there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no name.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Where a prepared name stands.
    pub fn position(&self, key: &Key) -> Option<usize> {
        self.find(key.hash, &key.name)
    }

    /// The bytes of all names together.
    #[inline]
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Where a name would stand that is not there.
    pub(crate) fn gap(&self, name: &str) -> Option<usize> {
        let place = (0..self.len()).find(|&place| compare_keys(self.name(place), name) != Ordering::Less);
        match place {
            Some(place) if self.name(place) == name => None,
            place => Some(place.unwrap_or(self.len())),
        }
    }

    /// Where a name stands.
    pub(crate) fn find(&self, hash: u32, wanted: &str) -> Option<usize> {
        let is_it = |name: &Name| name.hash == hash && name.span.of(&self.text) == wanted;
        self.names.iter().position(is_it)
    }
}

fn digest(hashes: impl Iterator<Item = u32>) -> u64 {
    hashes.fold(0xcbf2_9ce4_8422_2325, |state: u64, hash| {
        (state.rotate_left(5) ^ u64::from(hash)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Which names an object has: objects with the same one have the same names, and it is never given to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapeId {
    family: u64,
    position: u32,
}

/// The shapes of documents that were read or built beside each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// Zero while there is no shape.
    number: u64,
    shapes: Arc<[OnceLock<Arc<Shape>>]>,
}

/// The number of the next family.
static NEXT_FAMILY: AtomicU64 = AtomicU64::new(1);

impl Family {
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    pub(crate) fn id(&self, position: u32) -> ShapeId {
        ShapeId { family: self.number, position }
    }

    #[inline]
    pub(crate) fn get(&self, position: u32) -> Option<&Arc<Shape>> {
        self.shapes.get(position as usize)?.get()
    }

    /// Room for twice as many; the shapes keep their positions, and documents that were made before their smaller table.
    #[cold]
    fn grow(&mut self) {
        if self.number == 0 {
            self.number = NEXT_FAMILY.fetch_add(1, atomic::Ordering::Relaxed);
        }
        let room = (2 * self.shapes.len()).max(ROOM_MIN);
        let slot = |position: usize| self.get(position as u32).cloned().map_or_else(OnceLock::new, OnceLock::from);
        self.shapes = (0..room).map(slot).collect();
    }
}

/// A family that takes shapes in.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    family: Family,
    len: usize,
    memory: usize,
    by_digest: HashMap<u64, Vec<u32>, RandomState>,
}

impl Growing {
    /// Whether the next document should begin another family.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len >= SHAPES_MAX || self.memory >= SHAPES_MEMORY_MAX
    }

    #[inline]
    pub(crate) fn family(&self) -> &Family {
        &self.family
    }

    /// How many shapes were taken in.
    pub(crate) fn count(&self) -> usize {
        self.len
    }

    /// Where a shape with the names of this one stands.
    pub(crate) fn find(&self, shape: &Shape) -> Option<u32> {
        let same = |position: &&u32| self.family.get(**position).is_some_and(|known| known.is_same(shape));
        self.by_digest.get(&shape.digest)?.iter().find(same).copied()
    }

    /// The same; it is taken in if there is none.
    pub(crate) fn position(&mut self, shape: &Arc<Shape>) -> u32 {
        self.find(shape).unwrap_or_else(|| self.take(shape.clone()))
    }

    fn take(&mut self, shape: Arc<Shape>) -> u32 {
        if self.len == self.family.shapes.len() {
            self.family.grow();
        }
        let position = self.len as u32;
        let bucket = self.by_digest.entry(shape.digest).or_default();
        if bucket.len() < BUCKET_MAX {
            bucket.push(position);
        }
        self.len += 1;
        self.memory += shape.memory();
        if let Some(place) = self.family.shapes.get(position as usize) {
            place.get_or_init(|| shape);
        }
        position
    }
}

/// Names to make objects with, and where the builder that made the last one keeps them.
#[derive(Clone, Debug)]
pub struct Form {
    shape: Arc<Shape>,
    id: ShapeId,
}

impl Form {
    /// The form of names that are distinct and in RFC 8785 order; none for others.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<Self> {
        Some(Self { shape: Shape::of(names)?, id: ShapeId::default() })
    }

    /// The names.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where the names stand in a family that grows.
    #[inline]
    pub(crate) fn position(&mut self, growing: &mut Growing) -> u32 {
        if self.id.family == 0 || self.id.family != growing.family.number {
            self.learn(growing);
        }
        self.id.position
    }

    #[cold]
    fn learn(&mut self, growing: &mut Growing) {
        let position = growing.position(&self.shape);
        self.id = growing.family.id(position);
    }
}

/// Where one key stood in the last object that was asked for it.
///
/// Objects of one shape are answered without looking at a name.
#[derive(Clone, Debug, Default)]
pub struct Near {
    shape: ShapeId,
    position: Option<u32>,
}

impl Near {
    #[inline]
    pub(crate) fn find(&mut self, key: &Key, family: &Family, shape: u32) -> Option<usize> {
        if self.shape != family.id(shape) {
            self.learn(key, family, shape);
        }
        debug_assert!(self.position.is_none_or(|position| {
            family.get(shape).is_some_and(|shape| shape.name(position as usize) == &*key.name)
        }));
        self.position.map(|position| position as usize)
    }

    #[cold]
    fn learn(&mut self, key: &Key, family: &Family, shape: u32) {
        let position = family.get(shape).and_then(|shape| shape.find(key.hash, &key.name));
        self.position = position.map(|position| position as u32);
        self.shape = family.id(shape);
    }
}

/// Shapes seen so far; parsing through one shares them between documents.
///
/// A document holds the shapes of the others with its own, so whoever has seen very many begins anew with the next one.
#[derive(Debug, Default)]
pub struct Shapes {
    /// By the names in the order in which they were written.
    written: HashMap<u64, Vec<Written>, RandomState>,
    shapes: Growing,
    entries: usize,
    /// A spelling that found no room.
    last: Written,
}

/// One spelling of a shape: for each name as written, where it stands in the shape.
#[derive(Debug, Default)]
struct Written {
    order: Box<[u32]>,
    shape: u32,
}

/// Shapes that documents of a family share, but for what one document brings at once.
const SHAPES_MAX: usize = 16_384;
/// Bytes of memory that they have, with the same exception.
const SHAPES_MEMORY_MAX: usize = 8 * 1024 * 1024;
/// What a family has room for at first.
const ROOM_MIN: usize = 8;
/// Spellings that strangers can make us remember.
const ENTRIES_MAX: usize = 16_384;
/// Shapes under one hash; more of them are an attack or a miracle.
const BUCKET_MAX: usize = 8;

/// The names of one object as they were written, over a common text.
pub(crate) struct Names<'a> {
    pub(crate) names: &'a [Name],
    pub(crate) text: &'a str,
}

impl Names<'_> {
    fn get(&self, position: usize) -> &str {
        self.names.get(position).map_or("", |name| name.span.of(self.text))
    }

    /// The positions of the names in RFC 8785 order, or the position of a name that stands twice.
    fn sort(&self) -> Result<Vec<u32>, usize> {
        let mut order: Vec<u32> = (0..self.names.len() as u32).collect();
        let name = |position: &u32| self.get(*position as usize);
        order.sort_unstable_by(|left, right| compare_keys(name(left), name(right)).then(left.cmp(right)));
        match order.windows(2).find(|pair| matches!(pair, [left, right] if name(left) == name(right))) {
            Some(pair) => Err(pair.last().map_or(0, |position| *position as usize)),
            None => Ok(order),
        }
    }

    fn shape(&self, order: &[u32]) -> Shape {
        let mut text = String::new();
        let place = |&position: &u32| {
            let (start, name) = (text.len() as u32, self.get(position as usize));
            text.push_str(name);
            Name { hash: hash(name.as_bytes()), span: Span { start, len: name.len() as u32 } }
        };
        let names = order.iter().map(place).collect();
        Shape::new(names, text)
    }
}

impl Shapes {
    /// Begins anew if there is too much of what was seen; between two documents, since the numbers change.
    pub(crate) fn begin(&mut self) {
        if self.entries >= ENTRIES_MAX || self.shapes.is_full() {
            *self = Self::default();
        }
    }

    /// The shapes that what was read has numbers of.
    pub(crate) fn family(&self) -> &Family {
        self.shapes.family()
    }

    /// The shape of some names, and for each name where it stands in it; or the position of a name that stands twice.
    pub(crate) fn of(&mut self, names: &Names<'_>) -> Result<(u32, &[u32]), usize> {
        let digest = digest(names.names.iter().map(|name| name.hash));
        let place = match self.known(digest, names) {
            Some(place) => place,
            None => {
                let written = self.read(names)?;
                self.keep(digest, written)
            }
        };
        let written = self.written.get(&digest).and_then(|bucket| bucket.get(place)).unwrap_or(&self.last);
        Ok((written.shape, &written.order))
    }

    /// Where this spelling is kept.
    fn known(&self, digest: u64, names: &Names<'_>) -> Option<usize> {
        let fits = |written: &Written| {
            let Some(shape) = self.family().get(written.shape) else { return false };
            let same = |(position, place): (usize, &u32)| shape.name(*place as usize) == names.get(position);
            written.order.len() == names.names.len() && written.order.iter().enumerate().all(same)
        };
        self.written.get(&digest)?.iter().position(fits)
    }

    /// Sorts the names of a spelling that is not known.
    fn read(&mut self, names: &Names<'_>) -> Result<Written, usize> {
        let sorted = names.sort()?;
        let mut order = vec![0; sorted.len()].into_boxed_slice();
        for (place, &position) in sorted.iter().enumerate() {
            if let Some(slot) = order.get_mut(position as usize) {
                *slot = place as u32;
            }
        }
        // Other spellings of the same names may have made the shape already.
        let shape = self.shapes.position(&Arc::new(names.shape(&sorted)));
        Ok(Written { order, shape })
    }

    /// Keeps a spelling where there is room, else only until the next one.
    fn keep(&mut self, digest: u64, written: Written) -> usize {
        let bucket = self.written.entry(digest).or_default();
        if self.entries < ENTRIES_MAX && bucket.len() < BUCKET_MAX {
            self.entries += 1;
            bucket.push(written);
            return bucket.len() - 1;
        }
        if bucket.is_empty() {
            self.written.remove(&digest);
        }
        self.last = written;
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Document, Limits};

    fn parse(text: &str, shapes: &mut Shapes) -> Document {
        Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, shapes).unwrap()
    }

    #[test]
    fn objects_with_the_same_names_share_their_shape_in_any_order() {
        let mut shapes = Shapes::default();
        let mut parse = |text: &str| parse(text, &mut shapes);
        let (one, two, other) = (parse(r#"{"a":1,"b":2}"#), parse(r#"{"b":3,"a":4}"#), parse(r#"{"a":1,"c":2}"#));
        let same =
            |left: &Document, right: &Document| left.root().shape_id().unwrap() == right.root().shape_id().unwrap();
        assert!(same(&one, &two) && !same(&one, &other));
        assert_eq!(two.root().get("a").unwrap().as_f64(), Some(4.0));
        assert_eq!(two.root().members().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Document::of(&serde_json::json!([])).unwrap().root().shape_id(), None);
    }

    #[test]
    fn a_family_keeps_its_numbers_while_it_grows() {
        let mut shapes = Shapes::default();
        let texts: Vec<String> = (0..5 * ROOM_MIN).map(|number| format!(r#"{{"a{number}":1}}"#)).collect();
        let read: Vec<Document> = texts.iter().map(|text| parse(text, &mut shapes)).collect();
        for (text, early) in texts.iter().zip(&read) {
            let late = parse(text, &mut shapes);
            assert_eq!(early.root().shape_id(), late.root().shape_id());
            assert_eq!(crate::canonical(early.root()), text.as_bytes());
            assert_ne!(parse(text, &mut Shapes::default()).root().shape_id(), late.root().shape_id());
        }
    }

    #[test]
    fn what_strangers_can_make_us_remember_is_bounded() {
        let (mut shapes, mut families) = (Shapes::default(), std::collections::BTreeSet::new());
        let first = parse(r#"{"a":1}"#, &mut shapes);
        for number in 0..ENTRIES_MAX + 100 {
            let document = parse(&format!(r#"{{"a{number}":1,"b":2}}"#), &mut shapes);
            assert_eq!(document.root().get(&format!("a{number}")).unwrap().as_f64(), Some(1.0));
            families.insert(document.root().shape_id().unwrap().family);
            assert!(shapes.entries <= ENTRIES_MAX && shapes.shapes.len <= SHAPES_MAX);
        }
        assert_eq!((families.len(), shapes.shapes.len, shapes.written.len()), (2, 101, 101));
        assert_eq!(first.root().get("a").unwrap().as_f64(), Some(1.0));
        // Long names fill the room long before.
        let mut last = 0;
        for number in 0..2 * SHAPES_MEMORY_MAX / 40_000 {
            let name = "x".repeat(200);
            let names: Vec<String> = (0..200).map(|place| format!("\"{place}{number}{name}\":0")).collect();
            last = parse(&format!("{{{}}}", names.join(",")), &mut shapes).root().shape_id().unwrap().family;
            assert!(shapes.shapes.memory < SHAPES_MEMORY_MAX + 60_000);
        }
        assert!(!families.contains(&last));
    }

    #[test]
    fn a_builder_that_has_seen_too_many_names_begins_anew() {
        let mut builder = Builder::default();
        let mut form = Form::of(["kept"]).unwrap();
        let mut families = std::collections::BTreeSet::new();
        for number in 0..SHAPES_MAX + 10 {
            let source = Document::parse(format!(r#"[{{"a{number}":{{}}}}]"#).as_bytes(), &Limits::DOCUMENT).unwrap();
            let open = builder.open();
            builder.push_copy(source.root());
            let object = builder.object(open, &mut form, &source);
            let document = builder.finish(object);
            assert_eq!(crate::canonical(document.root()), format!(r#"{{"kept":[{{"a{number}":{{}}}}]}}"#).as_bytes());
            families.insert(document.root().shape_id().unwrap().family);
        }
        assert_eq!(families.len(), 2);
    }

    #[test]
    fn a_spelling_is_remembered_once_and_told_from_those_that_share_its_hash() {
        let mut shapes = Shapes::default();
        for _ in 0..3 {
            for (number, text) in [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":1}"#].iter().enumerate() {
                parse(text, &mut shapes);
                assert!(shapes.entries > number && shapes.entries <= 3, "{text}: {}", shapes.entries);
            }
        }
        assert_eq!((shapes.entries, shapes.shapes.len), (3, 2));
        // These two names have the same hash, so that their objects have the same digest.
        for name in ["gebbmqd", "iwyafmn", "gebbmqd"] {
            let text = format!(r#"{{"{name}":7}}"#);
            assert_eq!(crate::canonical(parse(&text, &mut shapes).root()), text.as_bytes());
        }
        assert_eq!((shapes.entries, shapes.shapes.len, shapes.shapes.by_digest.len()), (5, 4, 3));
    }

    #[test]
    fn shared_shapes_change_nothing_but_memory() {
        let mut shapes = Shapes::default();
        for text in [r#"{"b":{"x":1,"a":2},"a":[{"x":3,"a":4},{"a":5,"x":6}]}"#, r#"{"costarring":1,"liquid":2}"#, "{}"]
        {
            for _ in 0..2 {
                let shared = parse(text, &mut shapes);
                let alone = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
                assert_eq!(crate::canonical(shared.root()), crate::canonical(alone.root()));
            }
        }
        let twice = Document::parse_with(br#"{"x":{"a":1,"a":2}}"#, &Limits::DOCUMENT, &mut shapes).unwrap_err();
        assert_eq!(twice.at.as_str(), "/x/a");
    }
}
