//! RFC 0020 §3.6: the standing filters, and which of them a document satisfies.
//!
//! Each filter is filed under one condition that every document satisfying it fulfils, the one that fewest documents
//! are likely to fulfil. A document looks up what it has, which leads to few filters, and those are evaluated by the
//! predicates of `aql`. Predicates and paths are kept once, however many filters share them.
//!
//! INVARIANT: what is found is what evaluating every filter would find.

mod slab;
mod paths;
mod predicates;
mod program;
mod conditions;
mod keys;
mod ranges;
mod texts;

use aql::key::{Ordered, number_key};
use aql::{Constraints, Fuel, Meter, Predicate};
use conditions::{Condition, Cover, Deriver, Table};
use json::{Kind, Node};
use keys::{About, Entry, Keys, Marks, Present, mark};
use paths::{Asks, PathId, Paths, Reached};
use predicates::{Predicates, turn};
use program::{Part, Program, parts};
use ranges::{Ranges, Side};
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use texts::Texts;

/// The standing filters.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    filters: Slab<Filter>,
    slots: HashMap<u64, u32>,
    paths: Paths,
    predicates: Predicates,
    keys: Keys,
    ranges: HashMap<(PathId, Table), Ranges>,
    texts: Texts,
    /// Filters that say nothing about what a document has.
    unfiled: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Filter {
    id: u64,
    /// The half of its key, if it is filed under just one.
    under: u32,
    /// Which of its covers it is filed under.
    cover: u16,
    program: Program,
}

/// Whom a document concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Filters that the document satisfies, in rising order.
    pub satisfied: Vec<u64>,
    /// Filters that ran out of fuel or steps before they were decided, in rising order.
    pub undecided: Vec<u64>,
    /// How many filters had to be evaluated.
    pub evaluated: usize,
}

impl Audience {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many filters there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many filters every document is asked about, because they say only what it must not have.
    pub fn unfiled(&self) -> usize {
        self.unfiled.len()
    }

    /// Adds a standing filter, or puts it in the place of the one that has the same id.
    pub fn insert(&mut self, id: u64, constraints: &Constraints) {
        self.remove(id);
        let leaves = constraints.leaves();
        let numbers: Vec<(u32, u8)> = leaves
            .iter()
            .map(|leaf| {
                let number = self.predicates.intern(leaf, &mut self.paths, &mut self.texts);
                (number, turn(&leaf.predicate))
            })
            .collect();
        let program = Program::of(constraints.tree(), &|leaf| numbers.get(leaf).copied().unwrap_or_default());
        let covers = self.covers(&program);
        self.mention(&covers);
        let cover = self.cheapest(&covers);
        let under = match covers.get(cover).map(Vec::as_slice) {
            Some([Condition::Key { key, .. }]) => *key as u32,
            _ => 0,
        };
        let slot = self.filters.insert(Filter { id, under, cover: cover as u16, program });
        self.slots.insert(id, slot);
        self.file(slot, &covers, cover);
    }

    /// Takes a filter away; says whether there was one.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(slot) = self.slots.remove(&id) else { return false };
        let Some(filter) = self.filters.remove(slot) else { return false };
        let covers = self.covers(&filter.program);
        self.unfile(slot, &covers, usize::from(filter.cover));
        self.unmention(&covers);
        for number in filter.program.predicates() {
            self.predicates.release(number, &mut self.paths, &mut self.texts);
        }
        true
    }

    fn covers(&self, program: &Program) -> Vec<Cover> {
        let deriver = Deriver { paths: &self.paths, predicates: &self.predicates, keys: &self.keys };
        deriver.covers(program.words())
    }

    fn mention(&mut self, covers: &[Cover]) {
        for condition in covers.iter().flatten() {
            match *condition {
                Condition::Key { path, about, key } => {
                    self.keys.mention(key);
                    if let Some(count) = self.paths.asks_mut(path).map(|asks| asks.about(about)) {
                        *count += 1;
                    }
                }
                Condition::Range { path, table, first, last } => {
                    self.ranges.entry((path, table)).or_default().mention(first, last);
                    if let Some(asks) = self.paths.asks_mut(path) {
                        asks.ranges += 1;
                    }
                }
            }
        }
    }

    fn unmention(&mut self, covers: &[Cover]) {
        for condition in covers.iter().flatten() {
            match *condition {
                Condition::Key { path, about, key } => {
                    self.keys.unmention(key);
                    if let Some(count) = self.paths.asks_mut(path).map(|asks| asks.about(about)) {
                        *count -= 1;
                    }
                }
                Condition::Range { path, table, .. } => {
                    if let Some(ranges) = self.ranges.get_mut(&(path, table)) {
                        ranges.mentions -= 1;
                        if ranges.mentions == 0 {
                            self.ranges.remove(&(path, table));
                        }
                    }
                    if let Some(asks) = self.paths.asks_mut(path) {
                        asks.ranges -= 1;
                    }
                }
            }
        }
    }

    /// The cover that leads fewest documents to the filter.
    fn cheapest(&self, covers: &[Cover]) -> usize {
        let cost = |cover: &Cover| cover.iter().map(|condition| self.cost(condition)).sum::<f64>();
        let costs = covers.iter().map(cost).enumerate();
        costs.min_by(|(_, left), (_, right)| left.total_cmp(right)).map_or(0, |(place, _)| place)
    }

    /// About how many filters a document would meet for nothing. Documents are like the questions about them: what
    /// many ask for, many have.
    fn cost(&self, condition: &Condition) -> f64 {
        match *condition {
            Condition::Key { path, about, key } => {
                let mentions = self.keys.get(key).map_or(0, |filed| filed.mentions);
                let all = self.paths.asks(path).count(about);
                f64::from(mentions) * f64::from(mentions) / f64::from(all.max(1))
            }
            Condition::Range { path, table, first, last } => {
                let ranges = self.ranges.get(&(path, table));
                ranges.map_or(0.0, |ranges| RANGE_COST * ranges.share(first, last) * f64::from(ranges.mentions))
            }
        }
    }

    fn file(&mut self, slot: u32, covers: &[Cover], chosen: usize) {
        let Some(cover) = covers.get(chosen) else {
            self.unfiled.insert(slot);
            return;
        };
        let marks = self.marks(covers, chosen);
        for condition in cover {
            match *condition {
                Condition::Key { key, .. } => self.keys.file(key, Entry { slot, marks }),
                Condition::Range { path, table, first, last } => {
                    self.ranges.entry((path, table)).or_default().insert(first, last, slot, marks);
                }
            }
        }
    }

    fn unfile(&mut self, slot: u32, covers: &[Cover], chosen: usize) {
        let Some(cover) = covers.get(chosen) else {
            self.unfiled.remove(&slot);
            return;
        };
        for condition in cover {
            match *condition {
                Condition::Key { key, .. } => {
                    if let Some(entries) = self.keys.unfile(key) {
                        let entries = self.tidied(key, entries);
                        self.keys.tidy(key, entries);
                    }
                }
                Condition::Range { path, table, first, last } => {
                    if let Some(ranges) = self.ranges.get_mut(&(path, table)) {
                        ranges.remove(first, last, slot);
                    }
                }
            }
        }
    }

    /// The entries of filters that are filed under a key, each once.
    fn tidied(&mut self, key: u64, mut entries: Vec<Entry>) -> Vec<Entry> {
        entries.retain(|entry| self.is_filed(entry.slot, key));
        entries.sort_by_key(|entry| entry.slot);
        let same = |left: &Entry, right: &Entry| left.slot == right.slot;
        let once = |some: &[Entry]| match some {
            [entry] => Some(*entry),
            // The slot was given out again, and which of the marks are those of its filter is forgotten.
            [entry, ..] => {
                let covers = self.covers(&self.filters.get(entry.slot)?.program);
                let chosen = usize::from(self.filters.get(entry.slot)?.cover);
                Some(Entry { slot: entry.slot, marks: self.marks(&covers, chosen) })
            }
            [] => None,
        };
        entries.chunk_by(same).filter_map(once).collect()
    }

    fn is_filed(&self, slot: u32, key: u64) -> bool {
        let Some(filter) = self.filters.get(slot) else { return false };
        if filter.under != 0 {
            return filter.under == key as u32;
        }
        let covers = self.covers(&filter.program);
        let here = |condition: &Condition| matches!(condition, Condition::Key { key: known, .. } if *known == key);
        covers.get(usize::from(filter.cover)).is_some_and(|cover| cover.iter().any(here))
    }

    /// The marks of the rarest other things that the filter's documents have, and of one choice between two.
    fn marks(&mut self, covers: &[Cover], chosen: usize) -> Marks {
        let (mut known, mut choice) = (Vec::with_capacity(2 * covers.len()), None);
        for (_, cover) in covers.iter().enumerate().filter(|(place, _)| *place != chosen) {
            match *cover.as_slice() {
                [one] => self.marks_of(one, &mut known),
                [one, other] if choice.is_none() => {
                    let (mut marks, mut others) = (Vec::new(), Vec::new());
                    self.marks_of(one, &mut marks);
                    self.marks_of(other, &mut others);
                    choice = rarest(&marks).zip(rarest(&others));
                }
                _ => {}
            }
        }
        known.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let mut known = known.into_iter().map(|(_, mark)| mark);
        let mut marks = Marks::default();
        if let [.., one, other] = &mut marks
            && let Some(choice) = choice
        {
            (*one, *other) = choice;
        }
        for place in marks.iter_mut().take(4) {
            *place = known.next().unwrap_or_default();
        }
        if let [.., one, other] = &mut marks
            && choice.is_none()
        {
            *one = known.next().unwrap_or_default();
            *other = *one;
        }
        marks
    }

    /// The marks of a condition, each with the part of all documents that is likely to have it.
    fn marks_of(&mut self, condition: Condition, out: &mut Vec<(f64, u16)>) {
        match condition {
            Condition::Key { path, about, key } => {
                let mentions = self.keys.get(key).map_or(0, |filed| filed.mentions);
                let share = f64::from(mentions) / f64::from(self.paths.asks(path).count(about).max(1));
                out.push((if about == About::Exists { 1.0 } else { share }, mark(key)));
            }
            Condition::Range { path, table, first, last } => {
                let Some(ranges) = self.ranges.get_mut(&(path, table)) else { return };
                let ends = [(Side::Above, first, (first, u64::MAX)), (Side::Below, last, (0, last))];
                for (side, bound, (from, to)) in ends.into_iter().filter(|(_, _, side)| *side != (0, u64::MAX)) {
                    let share = ranges.share(from, to);
                    let keys = &self.keys;
                    out.push((share, ranges.mark(side, bound, || keys.mark_of_bound(path, side, bound))));
                }
            }
        }
    }

    /// The filters that a document satisfies; each predicate may spend `fuel` on it.
    pub fn of(&self, document: Node<'_>, fuel: Fuel) -> Found {
        let reached = self.paths.walk(document);
        let memory = vec![Remembered::default(); MEMORY];
        let mut asked = Asked { audience: self, document, reached, fuel, patterns: HashMap::new(), memory };
        let candidates = asked.candidates();
        let mut found = Found { evaluated: candidates.len(), ..Found::default() };
        for some in candidates.chunks(TOGETHER) {
            self.glance(some);
            for filter in some.iter().filter_map(|slot| self.filters.get(*slot)) {
                match asked.all(filter.program.words()) {
                    Truth::Yes => found.satisfied.push(filter.id),
                    Truth::Unknown => found.undecided.push(filter.id),
                    Truth::No => {}
                }
            }
        }
        found.satisfied.sort_unstable();
        found.undecided.sort_unstable();
        found
    }

    /// Looks at some filters and then at their predicates, so that the processor waits for their memory at the same time
    /// instead of one after the other.
    fn glance(&self, slots: &[u32]) {
        let filters = || slots.iter().filter_map(|slot| self.filters.get(*slot));
        std::hint::black_box(filters().map(|filter| filter.program.words().len()).sum::<usize>());
        let predicates = filters().flat_map(|filter| filter.program.predicates());
        let shared = predicates.filter_map(|number| self.predicates.get(number));
        std::hint::black_box(shared.fold(0, |sum: u32, shared| sum.wrapping_add(shared.path)));
    }

    /// The ranges at a path that a value could lie in, and its key among them.
    fn ordered(&self, path: PathId, node: Node<'_>) -> Option<(&Ranges, u64)> {
        let (table, key) = match node.as_f64() {
            Some(number) => (Table::Numbers, number_key(number)),
            None => match Ordered::of(node.as_str()?)? {
                Ordered::Decimal(key) => (Table::Numbers, key),
                Ordered::Moment(key) => (Table::Moments, key),
            },
        };
        Some((self.ranges.get(&(path, table))?, key))
    }
}

/// Filters that are looked at together.
const TOGETHER: usize = 32;

/// A list under a key is walked faster than the ranges around one.
const RANGE_COST: f64 = 4.0;

impl Asks {
    fn about(&mut self, about: About) -> &mut u32 {
        match about {
            About::Equal => &mut self.equal,
            About::Container => &mut self.containers,
            About::Element => &mut self.elements,
            About::Exists => &mut self.exists,
            About::Pattern => &mut self.patterns,
        }
    }

    fn count(mut self, about: About) -> u32 {
        *self.about(about)
    }
}

/// What a constraint says of a document; "unknown" comes from a leaf that ran out of fuel and that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    No,
    Unknown,
    Yes,
}

/// One document before all filters.
struct Asked<'a> {
    audience: &'a Audience,
    document: Node<'a>,
    reached: Reached,
    fuel: Fuel,
    /// Patterns that match some text at their path; the others do not.
    patterns: HashMap<u32, Truth>,
    /// Leaves that were asked already: filters that are asked about one document have many of them in common.
    memory: Vec<Remembered>,
}

/// The truth of a predicate.
#[derive(Clone, Copy, Debug, Default)]
struct Remembered(u32, Option<Truth>);

/// Predicates that are remembered; a later one takes the place of an earlier one.
const MEMORY: usize = 2048;

fn rarest(marks: &[(f64, u16)]) -> Option<u16> {
    marks.iter().min_by(|(left, _), (right, _)| left.total_cmp(right)).map(|(_, mark)| *mark)
}

impl Asked<'_> {
    /// The slots of all filters that the document may satisfy, each once.
    fn candidates(&mut self) -> Vec<u32> {
        let audience = self.audience;
        let (mut present, mut keys, mut ordered, mut last) = (Present::new(), Vec::new(), Vec::new(), None);
        let reached: Vec<(PathId, u32)> = self.reached.iter().collect();
        for (path, position) in reached {
            let asks = audience.paths.asks(path);
            let node = self.document.elsewhere(position as usize);
            if asks.exists > 0 && last != Some(path) {
                keys.push(audience.keys.of_path(path));
            }
            last = Some(path);
            self.keys(path, asks, node, &mut keys);
            if asks.ranges > 0 {
                ordered.extend(audience.ordered(path, node));
            }
        }
        present.look_up(keys, &audience.keys);
        ordered.iter().for_each(|(ranges, key)| ranges.set_marks(*key, &mut present));
        // Marks are complete from here on.
        let mut candidates: Vec<u32> = audience.unfiled.iter().copied().collect();
        ordered.iter().for_each(|(ranges, key)| ranges.holding(*key, &present, &mut candidates));
        present.candidates(&mut candidates);
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    /// The keys of one value.
    fn keys(&mut self, path: PathId, asks: Asks, node: Node<'_>, out: &mut Vec<u64>) {
        let keys = &self.audience.keys;
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
            self.search(path, node, text, out);
        }
    }

    /// Asks a text, once for each predicate that it may satisfy, and adds the keys of those that it does.
    fn search(&mut self, path: PathId, node: Node<'_>, text: &str, out: &mut Vec<u64>) {
        let audience = self.audience;
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

    fn all(&mut self, words: &[u32]) -> Truth {
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
        for position in self.reached.by(shared.path) {
            match shared.predicate.passes(self.document.elsewhere(position as usize), &mut meter) {
                Ok(true) => return Truth::Yes,
                Ok(false) => {}
                Err(_) => truth = Truth::Unknown,
            }
        }
        truth
    }
}
