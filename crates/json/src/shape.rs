//! The names of an object, shared by all objects that have the same ones.
//!
//! Records of a kind have the same members. Keeping the names once makes documents half as large, saves sorting them
//! again for every object, and keeps them in the processor's cache while many documents are asked the same question.
//!
//! INVARIANT: the names of a shape are distinct and in RFC 8785 order.

use crate::canonical::compare_keys;
use crate::document::Span;
use foldhash::fast::RandomState;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

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
        Some(Arc::new(Self { names: placed.into(), text: text.into() }))
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

/// Where one key stood in the last object that was asked for it.
///
/// Objects of one shape are answered without looking at a name. The shape is held, so that its address is its own.
#[derive(Clone, Debug, Default)]
pub struct Near {
    shape: Option<Arc<Shape>>,
    position: Option<u32>,
}

impl Near {
    #[inline]
    pub(crate) fn find(&mut self, key: &Key, shape: &Arc<Shape>) -> Option<usize> {
        if !self.shape.as_ref().is_some_and(|known| Arc::ptr_eq(known, shape)) {
            self.learn(key, shape);
        }
        debug_assert!(self.position.is_none_or(|position| shape.name(position as usize) == &*key.name));
        self.position.map(|position| position as usize)
    }

    #[cold]
    fn learn(&mut self, key: &Key, shape: &Arc<Shape>) {
        self.position = shape.find(key.hash, &key.name).map(|position| position as u32);
        self.shape = Some(shape.clone());
    }
}

/// Shapes seen so far; parsing through one shares them between documents.
#[derive(Debug, Default)]
pub struct Shapes {
    /// By the names in the order in which they were written.
    written: HashMap<u64, Vec<Written>, RandomState>,
    /// By the names in RFC 8785 order.
    sorted: HashMap<u64, Vec<Arc<Shape>>, RandomState>,
    entries: usize,
    /// A spelling that found no room.
    last: Written,
}

/// One spelling of a shape: for each name as written, where it stands in the shape.
#[derive(Debug, Default)]
struct Written {
    order: Box<[u32]>,
    shape: Arc<Shape>,
}

/// What strangers can make us remember.
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

    fn digest(&self, order: impl Iterator<Item = u32>) -> u64 {
        let hash = |position: u32| self.names.get(position as usize).map_or(0, |name| u64::from(name.hash));
        order.fold(0xcbf2_9ce4_8422_2325, |state: u64, position| {
            (state.rotate_left(5) ^ hash(position)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
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
        Shape { names, text: text.into() }
    }
}

impl Shapes {
    /// Whether there is no room for another spelling; whoever keeps shapes for long begins anew then.
    pub fn is_full(&self) -> bool {
        self.entries >= ENTRIES_MAX
    }

    /// The shape of some names, and for each name where it stands in it; or the position of a name that stands twice.
    pub(crate) fn of(&mut self, names: &Names<'_>) -> Result<(&Arc<Shape>, &[u32]), usize> {
        let digest = names.digest(0..names.names.len() as u32);
        let place = match self.known(digest, names) {
            Some(place) => place,
            None => {
                let written = self.read(names)?;
                self.keep(digest, written)
            }
        };
        let written = self.written.get(&digest).and_then(|bucket| bucket.get(place)).unwrap_or(&self.last);
        Ok((&written.shape, &written.order))
    }

    /// Where this spelling is kept.
    fn known(&self, digest: u64, names: &Names<'_>) -> Option<usize> {
        let fits = |written: &Written| {
            let same = |(position, place): (usize, &u32)| written.shape.name(*place as usize) == names.get(position);
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
        Ok(Written { order, shape: self.sorted(names, &sorted) })
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

    /// The shape that other spellings of the same names may have made already.
    fn sorted(&mut self, names: &Names<'_>, order: &[u32]) -> Arc<Shape> {
        let shape = names.shape(order);
        let same = |known: &&Arc<Shape>| {
            known.len() == shape.len() && (0..shape.len()).all(|place| known.name(place) == shape.name(place))
        };
        let digest = names.digest(order.iter().copied());
        if let Some(known) = self.sorted.get(&digest).and_then(|bucket| bucket.iter().find(same)) {
            return known.clone();
        }
        let shape = Arc::new(shape);
        if self.entries < ENTRIES_MAX {
            let bucket = self.sorted.entry(digest).or_default();
            if bucket.len() < BUCKET_MAX {
                bucket.push(shape.clone());
            }
        }
        shape
    }
}

#[cfg(test)]
mod tests {
    use crate::document::Slot;
    use crate::{Document, Limits, Shapes};
    use std::sync::Arc;

    #[test]
    fn objects_with_the_same_names_share_their_shape_in_any_order() {
        let mut shapes = Shapes::default();
        let mut parse = |text: &str| Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
        let (one, two, other) = (parse(r#"{"a":1,"b":2}"#), parse(r#"{"b":3,"a":4}"#), parse(r#"{"a":1,"c":2}"#));
        let same = |left: &Document, right: &Document| match (left.root().slot(), right.root().slot()) {
            (Slot::Object { shape: left, .. }, Slot::Object { shape: right, .. }) => Arc::ptr_eq(left, right),
            _ => false,
        };
        assert!(same(&one, &two) && !same(&one, &other));
        assert_eq!(two.root().get("a").unwrap().as_f64(), Some(4.0));
        assert_eq!(two.root().members().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn what_strangers_can_make_us_remember_is_bounded() {
        let mut shapes = Shapes::default();
        for number in 0..super::ENTRIES_MAX + 100 {
            let text = format!(r#"{{"a{number}":1,"b":2}}"#);
            let document = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
            assert_eq!(document.root().get(&format!("a{number}")).unwrap().as_f64(), Some(1.0));
        }
        assert_eq!((shapes.written.len(), shapes.sorted.len()), (super::ENTRIES_MAX, super::ENTRIES_MAX));
        assert!(shapes.is_full());
    }

    #[test]
    fn a_spelling_is_remembered_once_and_told_from_those_that_share_its_hash() {
        let mut shapes = Shapes::default();
        assert!(!shapes.is_full());
        for _ in 0..3 {
            for (number, text) in [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":1}"#].iter().enumerate() {
                Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
                assert!(shapes.entries > number && shapes.entries <= 3, "{text}: {}", shapes.entries);
            }
        }
        assert_eq!((shapes.entries, shapes.sorted.len()), (3, 2));
        // These two names have the same hash, so that their objects have the same digest.
        for name in ["gebbmqd", "iwyafmn", "gebbmqd"] {
            let text = format!(r#"{{"{name}":7}}"#);
            let document = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
            assert_eq!(crate::canonical(document.root()), text.as_bytes());
        }
        assert_eq!((shapes.entries, shapes.sorted.len()), (5, 3));
    }

    #[test]
    fn shared_shapes_change_nothing_but_memory() {
        let mut shapes = Shapes::default();
        for text in [r#"{"b":{"x":1,"a":2},"a":[{"x":3,"a":4},{"a":5,"x":6}]}"#, r#"{"costarring":1,"liquid":2}"#, "{}"]
        {
            for _ in 0..2 {
                let shared = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
                let alone = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
                assert_eq!(crate::canonical(shared.root()), crate::canonical(alone.root()));
            }
        }
        let twice = Document::parse_with(br#"{"x":{"a":1,"a":2}}"#, &Limits::DOCUMENT, &mut shapes).unwrap_err();
        assert_eq!(twice.at.as_str(), "/x/a");
    }
}
