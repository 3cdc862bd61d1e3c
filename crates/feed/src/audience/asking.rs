//! RFC 0020 §3.6: one document before all filters.

use super::Audience;
use super::keys::{About, Key};
use super::paths::{Asks, Near, PathId, Reached};
use super::program::{Part, parts};
use super::rows::{Met, Point, Present, Ranged, Row};
use super::texts;
use aql::key::{Ordered, number_key};
use aql::{Fuel, Meter, Predicate};
use json::{Kind, Node};
use std::collections::HashMap;

/// What a constraint says of a document; "unknown" comes from a leaf that ran out of fuel and that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Truth {
    No,
    Unknown,
    Yes,
}

/// One document before all filters.
pub(crate) struct Asked<'a> {
    audience: &'a Audience,
    document: Node<'a>,
    room: &'a mut Room,
    fuel: Fuel,
    /// Patterns that match some text at their path; the others do not.
    patterns: HashMap<u32, Truth>,
    /// Leaves that were asked already: filters that are asked about one document have many of them in common.
    memory: Vec<Remembered>,
}

/// What asking writes down, kept from one document to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    near: Near,
    reached: Reached,
    present: Present,
    /// The keys of the document, and the numbers of those that some filter mentions.
    keys: Vec<Key>,
    numbers: Vec<u32>,
    /// Its values, for those who compare them.
    ordered: Vec<(u32, Point)>,
    pub(crate) met: Met,
}

/// The truth of a predicate.
#[derive(Clone, Copy, Debug, Default)]
struct Remembered(u32, Option<Truth>);

/// Predicates that are remembered; a later one takes the place of an earlier one.
const MEMORY: usize = 256;

impl<'a> Asked<'a> {
    pub(crate) fn new(audience: &'a Audience, room: &'a mut Room, document: Node<'a>, fuel: Fuel) -> Self {
        Self { audience, document, room, fuel, patterns: HashMap::new(), memory: Vec::new() }
    }

    /// Finds all filters that the document may satisfy.
    pub(crate) fn meet(&mut self) {
        let Room { near, reached, .. } = &mut *self.room;
        self.audience.paths.walk(self.document, near, reached);
        self.look();
        self.show();
        self.walk();
    }

    /// Takes out whom the document met, by slot.
    pub(crate) fn met(&mut self) -> Met {
        let mut met = std::mem::take(&mut self.room.met);
        met.sure.sort_unstable();
        met.likely.sort_unstable();
        met.likely.dedup();
        if !met.likely.is_empty() {
            self.room.reached.sort();
        }
        met
    }

    /// Takes the room back.
    pub(crate) fn give_back(&mut self, met: Met) {
        self.room.met = met;
    }

    /// Finds the keys and the values of the document.
    fn look(&mut self) {
        let audience = self.audience;
        self.room.keys.clear();
        self.room.ordered.clear();
        let mut last = None;
        for place in 0..self.room.reached.len() {
            let Some((path, position)) = self.room.reached.get(place) else { break };
            let Some(asks) = audience.paths.asks(path) else { continue };
            let node = self.document.elsewhere(position as usize);
            if asks.exists > 0 && last != Some(path) {
                self.room.keys.push(audience.keys.of_path(path));
            }
            last = Some(path);
            self.keys(path, asks, node);
            if asks.ranges != [None, None] {
                self.room.ordered.extend(point(asks, node));
            }
        }
    }

    /// Sets marks and registers; they are complete then.
    fn show(&mut self) {
        let (audience, Room { present, keys, numbers, ordered, .. }) = (self.audience, &mut *self.room);
        present.become_like(&audience.empty);
        numbers.clear();
        numbers.extend(keys.iter().filter_map(|key| audience.keys.number(*key)));
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|number| audience.keys.by_number(*number).is_some_and(|filed| filed.mark(present)));
        for (number, point) in ordered {
            if let Some(ranges) = audience.ranges.get(*number) {
                ranges.show(*point, present);
            }
        }
    }

    /// Walks the rows where the document leads.
    fn walk(&mut self) {
        let (audience, Room { present, numbers, ordered, met, .. }) = (self.audience, &mut *self.room);
        let (mut rows, mut around) = (Vec::with_capacity(64), Vec::with_capacity(32));
        rows.push(audience.unfiled.as_slice());
        for filed in numbers.iter().filter_map(|number| audience.keys.by_number(*number)) {
            filed.rows(present, &mut rows);
        }
        for (number, point) in ordered {
            if let Some(ranges) = audience.ranges.get(*number) {
                ranges.rows(*point, &mut around);
            }
        }
        // One look at the beginning of each, so that the processor waits for all of them at the same time.
        let beginnings = rows.iter().filter_map(|rows| rows.first()).map(Row::slot);
        let others = around.iter().filter_map(|(_, rows)| rows.first()).map(Ranged::slot);
        std::hint::black_box(beginnings.chain(others).fold(0, |sum, slot| sum ^ slot));
        met.clear();
        rows.iter().for_each(|rows| present.walk(rows, met));
        around.iter().for_each(|(point, rows)| present.walk_ranges(rows, *point, met));
    }

    /// The keys of one value.
    fn keys(&mut self, path: PathId, asks: &Asks, node: Node<'_>) {
        let (keys, out) = (&self.audience.keys, &mut self.room.keys);
        match node.kind() {
            Kind::Array | Kind::Object if asks.containers > 0 => out.push(keys.of_node(path, About::Container, node)),
            Kind::Array | Kind::Object => {}
            Kind::Null | Kind::Bool | Kind::Number | Kind::String if asks.equal > 0 => {
                out.push(keys.of_node(path, About::Equal, node));
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => {}
        }
        if asks.elements > 0 {
            out.extend(node.elements().map(|element| keys.of_node(path, About::Element, element)));
        }
        if asks.texts > 0
            && let Some(text) = node.as_str()
        {
            self.search(path, node, text);
        }
    }

    /// Asks a text, once for each predicate that it may satisfy, and adds the keys of those that it does.
    fn search(&mut self, path: PathId, node: Node<'_>, text: &str) {
        let (audience, out) = (self.audience, &mut self.room.keys);
        for number in audience.texts.possible(path, text) {
            let Some(shared) = audience.predicates.get(number) else { continue };
            if let Predicate::Matches(pattern) = &shared.predicate
                && !texts::may_match(pattern, text)
            {
                continue;
            }
            let truth = match shared.predicate.passes(node, &mut Meter::new(self.fuel)) {
                Ok(false) => continue,
                Ok(true) => Truth::Yes,
                Err(_) => Truth::Unknown,
            };
            match &shared.predicate {
                Predicate::Contains(literal) => out.push(audience.keys.of_literal(path, About::Element, literal)),
                Predicate::Matches(pattern) => {
                    out.push(audience.keys.of_pattern(path, pattern.source()));
                    let known = self.patterns.entry(number).or_insert(truth);
                    *known = truth.max(*known);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn all(&mut self, words: &[u32]) -> Truth {
        let mut truth = Truth::Yes;
        for part in parts(words) {
            truth = truth.min(self.part(part));
            if truth == Truth::No {
                break;
            }
        }
        truth
    }

    fn any(&mut self, words: &[u32]) -> Truth {
        let mut truth = Truth::No;
        for part in parts(words) {
            truth = truth.max(self.part(part));
            if truth == Truth::Yes {
                break;
            }
        }
        truth
    }

    fn part(&mut self, part: Part<'_>) -> Truth {
        match part {
            Part::Leaf(number) => self.leaf(number),
            Part::All(inner) => self.all(inner),
            Part::Any(inner) => self.any(inner),
            Part::Not(inner) => match self.all(inner) {
                Truth::No => Truth::Yes,
                Truth::Unknown => Truth::Unknown,
                Truth::Yes => Truth::No,
            },
        }
    }

    #[inline]
    fn leaf(&mut self, number: u32) -> Truth {
        self.memory.resize(MEMORY, Remembered::default());
        let place = number as usize % MEMORY;
        if let Some(Remembered(known, Some(truth))) = self.memory.get(place)
            && *known == number
        {
            return *truth;
        }
        let truth = self.ask(number);
        if let Some(place) = self.memory.get_mut(place) {
            *place = Remembered(number, Some(truth));
        }
        truth
    }

    /// A leaf holds when some value that its path reaches passes.
    fn ask(&self, number: u32) -> Truth {
        let Some(shared) = self.audience.predicates.get(number) else { return Truth::No };
        if matches!(shared.predicate, Predicate::Matches(_)) {
            return self.patterns.get(&number).copied().unwrap_or(Truth::No);
        }
        let (mut truth, mut meter) = (Truth::No, Meter::new(self.fuel));
        for position in self.room.reached.by(shared.path) {
            match shared.predicate.passes(self.document.elsewhere(position as usize), &mut meter) {
                Ok(true) => return Truth::Yes,
                Ok(false) => {}
                Err(_) => truth = Truth::Unknown,
            }
        }
        truth
    }
}

/// The comparisons at a path that a value takes part in, and how it does.
fn point(asks: &Asks, node: Node<'_>) -> Option<(u32, Point)> {
    let [numbers, moments] = asks.ranges;
    if let Some(number) = node.as_f64() {
        let key = number_key(number);
        return Some((numbers?, Point { key, whole: key as u32 == 0 }));
    }
    match Ordered::of(node.as_str()?)? {
        Ordered::Decimal(key) => Some((numbers?, Point { key, whole: false })),
        Ordered::Moment(key) => Some((moments?, Point { key, whole: false })),
    }
}
