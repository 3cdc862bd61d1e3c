//! RFC 0020 §3.2: all paths that filters look at, as one tree of steps that a document is walked along once.
//!
//! A step is a state: a value is in as many states as there are beginnings of paths that lead to it. Before the first
//! `**` there is one way into a state, and the document is followed along the steps. A `**` leaves a state behind in
//! everything below, so only from there on a state can be reached in two ways, and all states of a value are one set.
//!
//! INVARIANT: a step is kept as long as some path ends in it or leads through it.

use super::slab::Slab;
use aql::{Path, Segment};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use json::{Key, Kind, Node, ShapeId};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// The step in which a path ends; it stands for the path.
pub(crate) type PathId = u32;

const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;

/// Steps by name that are tried one by one.
const FEW_MAX: usize = 32;

/// Steps by name that are compared sooner than a name is hashed.
const SCANNED_MAX: usize = 4;

/// All paths.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    steps: Slab<Step>,
    /// Steps by name, under the step before and the name.
    named: HashTable<u32>,
    /// The same steps where the name is an index, for arrays.
    indexed: HashMap<(u32, usize), u32, RandomState>,
    hasher: RandomState,
    /// How often steps by name came or went.
    version: u64,
}

#[derive(Clone, Debug)]
struct Step {
    before: u32,
    by: By,
    each: u32,
    descend: u32,
    /// Steps by name from here, and how many of those names are indices.
    named: u32,
    indexed: u32,
    /// The steps by name themselves, unless there were too many of them once.
    few: Option<Vec<(Key, u32)>>,
    /// Predicates whose path ends here.
    users: u32,
    plain: bool,
    asks: Asks,
}

#[derive(Clone, Debug)]
enum By {
    Name(Box<str>, Option<usize>),
    Each,
    Descend,
}

/// How many conditions want to know what of the values at a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asks {
    pub(crate) equal: u32,
    pub(crate) containers: u32,
    pub(crate) elements: u32,
    pub(crate) exists: u32,
    pub(crate) patterns: u32,
    /// Predicates that search texts.
    pub(crate) texts: u32,
    /// The comparisons with numbers, and with moments.
    pub(crate) ranges: [Option<u32>; 2],
}

impl Step {
    fn new(before: u32, by: By, plain: bool) -> Self {
        let asks = Asks::default();
        Self {
            before,
            by,
            each: NONE,
            descend: NONE,
            named: 0,
            indexed: 0,
            few: Some(Vec::new()),
            users: 0,
            plain,
            asks,
        }
    }

    fn is_idle(&self) -> bool {
        self.users == 0 && self.named == 0 && self.each == NONE && self.descend == NONE
    }
}

impl Default for Paths {
    fn default() -> Self {
        let mut steps = Slab::default();
        steps.insert(Step::new(NONE, By::Each, true));
        let (named, indexed, hasher) = (HashTable::new(), HashMap::default(), RandomState::default());
        Self { steps, named, indexed, hasher, version: 0 }
    }
}

impl Paths {
    /// Counts one more user of a path.
    pub(crate) fn intern(&mut self, path: &Path) -> PathId {
        let last = path.segments().iter().fold(ROOT, |step, segment| self.step(step, segment));
        if let Some(step) = self.steps.get_mut(last) {
            step.users += 1;
        }
        last
    }

    /// Counts one user less, and forgets the steps that lead nowhere then.
    pub(crate) fn release(&mut self, path: PathId) {
        if let Some(step) = self.steps.get_mut(path) {
            step.users -= 1;
        }
        let mut last = path;
        while last != ROOT && self.steps.get(last).is_some_and(Step::is_idle) {
            last = self.forget(last);
        }
    }

    /// Whether a path reaches one value at most.
    pub(crate) fn is_plain(&self, path: PathId) -> bool {
        self.steps.get(path).is_some_and(|step| step.plain)
    }

    #[inline]
    pub(crate) fn asks(&self, path: PathId) -> Option<&Asks> {
        self.steps.get(path).map(|step| &step.asks)
    }

    pub(crate) fn asks_mut(&mut self, path: PathId) -> Option<&mut Asks> {
        self.steps.get_mut(path).map(|step| &mut step.asks)
    }

    fn step(&mut self, before: u32, segment: &Segment) -> u32 {
        let known = match segment {
            Segment::Name { key, .. } => self.by_name(before, key.name()),
            Segment::Each => self.steps.get(before).map(|step| step.each).filter(|step| *step != NONE),
            Segment::Descend => self.steps.get(before).map(|step| step.descend).filter(|step| *step != NONE),
        };
        known.unwrap_or_else(|| self.make(before, segment))
    }

    fn by_name(&self, before: u32, name: &str) -> Option<u32> {
        let is_it = |step: &u32| match self.steps.get(*step) {
            Some(Step { before: known, by: By::Name(known_name, _), .. }) => *known == before && **known_name == *name,
            _ => false,
        };
        self.named.find(self.hasher.hash_one((before, name)), is_it).copied()
    }

    fn make(&mut self, before: u32, segment: &Segment) -> u32 {
        let plain = self.is_plain(before) && matches!(segment, Segment::Name { .. });
        let by = match segment {
            Segment::Name { key, index } => By::Name(key.name().into(), *index),
            Segment::Each => By::Each,
            Segment::Descend => By::Descend,
        };
        let made = self.steps.insert(Step::new(before, by, plain));
        if let Segment::Name { key, index } = segment {
            self.version += 1;
            let hash = self.hasher.hash_one((before, key.name()));
            let (steps, hasher) = (&self.steps, &self.hasher);
            self.named.insert_unique(hash, made, |step| match steps.get(*step) {
                Some(Step { before, by: By::Name(name, _), .. }) => hasher.hash_one((*before, &**name)),
                _ => 0,
            });
            if let Some(index) = index {
                self.indexed.insert((before, *index), made);
            }
        }
        if let Some(step) = self.steps.get_mut(before) {
            match segment {
                Segment::Name { key, index } => {
                    step.named += 1;
                    step.indexed += u32::from(index.is_some());
                    step.few = step.few.take().filter(|few| few.len() < FEW_MAX);
                    step.few.iter_mut().for_each(|few| few.push((key.clone(), made)));
                }
                Segment::Each => step.each = made,
                Segment::Descend => step.descend = made,
            }
        }
        made
    }

    /// Forgets a step; tells the one before it.
    fn forget(&mut self, number: u32) -> u32 {
        let Some(step) = self.steps.remove(number) else { return ROOT };
        if let By::Name(name, index) = &step.by {
            self.version += 1;
            let hash = self.hasher.hash_one((step.before, &**name));
            if let Ok(entry) = self.named.find_entry(hash, |known| *known == number) {
                entry.remove();
            }
            if let Some(index) = index {
                self.indexed.remove(&(step.before, *index));
            }
        }
        if let Some(before) = self.steps.get_mut(step.before) {
            match &step.by {
                By::Name(_, index) => {
                    before.named -= 1;
                    before.indexed -= u32::from(index.is_some());
                    before.few.iter_mut().for_each(|few| few.retain(|(_, step)| *step != number));
                }
                By::Each => before.each = NONE,
                By::Descend => before.descend = NONE,
            }
        }
        step.before
    }

    /// Everything that some path reaches in a document.
    pub(crate) fn walk(&self, document: Node<'_>, near: &mut Near, reached: &mut Reached) {
        if near.version != self.version {
            near.version = self.version;
            near.ways.clear();
        }
        reached.0.clear();
        let mut walk = Walk { paths: self, states: Vec::new(), near, reached: &mut reached.0 };
        walk.follow(document, ROOT);
    }

    /// Where the steps by name from a state lead in an object.
    fn ways(&self, node: Node<'_>, state: u32, step: &Step) -> Vec<(u32, u32)> {
        match (&step.few, node.names()) {
            (Some(few), Some(names)) if few.len() <= 2 * node.len() => {
                few.iter().filter_map(|(key, next)| Some((names.position(key)? as u32, *next))).collect()
            }
            _ => {
                let next = |(place, (name, _))| Some((place, self.by_name(state, name)?));
                (0..).zip(node.members()).filter_map(next).collect()
            }
        }
    }
}

/// Where steps led in the last objects that were walked: documents of a kind have the same names, so for most of them no
/// name is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Near {
    version: u64,
    ways: HashMap<u32, Ways, foldhash::fast::RandomState>,
}

/// Which members of an object of some shape a state goes on to, and in which states.
#[derive(Clone, Debug, Default)]
struct Ways {
    shape: ShapeId,
    members: Vec<(u32, u32)>,
}

/// Which path reaches which values, by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached(Vec<(PathId, u32)>);

impl Reached {
    /// Puts paths in order, and the values of a path together.
    pub(crate) fn sort(&mut self) {
        self.0.sort_unstable();
    }

    /// The values of a path, once they are sorted.
    #[inline]
    pub(crate) fn by(&self, path: PathId) -> impl Iterator<Item = u32> {
        let start = self.0.partition_point(|(known, _)| *known < path);
        let rest = self.0.get(start..).unwrap_or_default();
        rest.iter().take_while(move |(known, _)| *known == path).map(|(_, position)| *position)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<(PathId, u32)> {
        self.0.get(place).copied()
    }
}

struct Walk<'a> {
    paths: &'a Paths,
    /// The states of the value at hand and of those above it.
    states: Vec<u32>,
    near: &'a mut Near,
    reached: &'a mut Vec<(PathId, u32)>,
}

impl Walk<'_> {
    /// Follows the steps from a value in the one state it has.
    fn follow(&mut self, node: Node<'_>, state: u32) {
        let Some(step) = self.paths.steps.get(state) else { return };
        if step.users > 0 {
            self.reached.push((state, node.position() as u32));
        }
        if step.named > 0 {
            self.follow_names(node, state, step);
        }
        if step.each != NONE {
            node.children().for_each(|child| self.follow(child, step.each));
        }
        if step.descend != NONE {
            self.states.push(step.descend);
            self.rest(0, 0);
            self.visit(node, 0);
            self.states.clear();
        }
    }

    fn follow_names(&mut self, node: Node<'_>, state: u32, step: &Step) {
        match node.kind() {
            Kind::Object => {
                let Some(shape) = node.shape_id() else { return };
                let ways = self.near.ways.entry(state).or_default();
                if ways.shape != shape {
                    *ways = Ways { shape, members: self.paths.ways(node, state, step) };
                }
                // Out of the way, since what comes below has ways of its own.
                let members = std::mem::take(&mut ways.members);
                for (place, next) in &members {
                    if let Some(child) = node.child(*place as usize) {
                        self.follow(child, *next);
                    }
                }
                if let Some(ways) = self.near.ways.get_mut(&state) {
                    ways.members = members;
                }
            }
            Kind::Array if step.indexed > 0 => {
                for (position, child) in node.elements().enumerate() {
                    if let Some(next) = self.paths.indexed.get(&(state, position)) {
                        self.follow(child, *next);
                    }
                }
            }
            Kind::Array | Kind::Null | Kind::Bool | Kind::Number | Kind::String => {}
        }
    }

    /// Visits a value whose states begin at `first`.
    fn visit(&mut self, node: Node<'_>, first: usize) {
        let end = self.states.len();
        let here = self.states.get(first..end).unwrap_or_default();
        let arrived = here.iter().filter(|state| self.paths.steps.get(**state).is_some_and(|step| step.users > 0));
        self.reached.extend(arrived.map(|state| (*state, node.position() as u32)));
        match node.kind() {
            Kind::Object => {
                for (name, child) in node.members() {
                    self.enter(first..end, child, |paths, state, step| match &step.few {
                        Some(few) if few.len() <= SCANNED_MAX => {
                            few.iter().find(|(key, _)| key.name() == name).map(|(_, next)| *next)
                        }
                        _ => paths.by_name(state, name),
                    });
                }
            }
            Kind::Array => {
                for (position, child) in node.elements().enumerate() {
                    self.enter(first..end, child, |paths, state, step| {
                        if step.indexed > 0 { paths.indexed.get(&(state, position)).copied() } else { None }
                    });
                }
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => {}
        }
    }

    /// Visits a child in the states that follow from those of its parent.
    fn enter(
        &mut self,
        from: std::ops::Range<usize>,
        child: Node<'_>,
        named: impl Fn(&Paths, u32, &Step) -> Option<u32>,
    ) {
        let start = self.states.len();
        let each = |walk: &Self, place: usize| {
            let state = walk.states.get(place).copied()?;
            walk.paths.steps.get(state).map(|step| (state, step))
        };
        for place in from.clone() {
            if let Some((state, Step { by: By::Descend, .. })) = each(self, place) {
                self.states.push(state);
            }
        }
        let stayed = self.states.len();
        if let Some(stayed) = self.states.get_mut(start..) {
            stayed.sort_unstable();
        }
        for place in from {
            let Some((state, step)) = each(self, place) else { continue };
            if let Some(next) = named(self.paths, state, step) {
                self.states.push(next);
            }
            if step.each != NONE {
                self.states.push(step.each);
            }
        }
        self.rest(start, stayed);
        if self.states.len() > start {
            self.visit(child, start);
        }
        self.states.truncate(start);
    }

    /// Adds what `**` reaches without a step, unless it is there already.
    fn rest(&mut self, start: usize, stayed: usize) {
        let mut place = stayed;
        while let Some(step) = self.states.get(place).and_then(|state| self.paths.steps.get(*state)) {
            let known = self.states.get(start..stayed).unwrap_or_default();
            if step.descend != NONE && known.binary_search(&step.descend).is_err() {
                self.states.push(step.descend);
            }
            place += 1;
        }
    }
}
