//! RFC 0024 §3.3: the body of a mapping, compiled: every place that its rules read or write is in one tree.
//!
//! The rules say what they do in words about places; a [`Program`] has the places resolved together, the constants laid
//! down as a document and the names of what it writes in order, so that applying it is one walk over the source and one
//! over the destination. Lists that begin at an index stay with `translate`, which is slow and says what is meant.
//!
//! INVARIANT: a place of a body is in exactly one [`Block`]; blocks within lists are never active twice at once.

use super::function::{Derivation, Function};
use super::path::{Path, Segment};
use super::rule::{Body, Case, Direction, Op, Over};
use crate::value::same;
use json::{Document, Form, Key, Node, Value};
use std::ops::Range;

/// A compiled body with those inside it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    places: Vec<Place>,
    /// Every value that the mapping brings, as elements of one list.
    constants: Document,
    pub(crate) top: Block,
    /// Names of objects that are written, the first without any.
    pub(crate) forms: Vec<Form>,
    /// How many unions lie within each other: each counts once more what is in it.
    pub(crate) unions: usize,
}

/// The form of an object without members.
pub(crate) const NOTHING: usize = 0;

/// The rules of one object, or of each element of a list.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The tree of its places, the root first.
    pub(crate) places: Range<usize>,
    pub(crate) jobs: Vec<Job>,
    /// Whether what no rule mentions is carried over.
    pub(crate) keeps: bool,
}

/// A place that the rules of a body speak of.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) path: Vec<Segment>,
    pub(crate) fate: Fate,
    /// What lies below, in the order of names.
    pub(crate) below: Vec<(Key, usize)>,
    /// Whether rules take or write this place or one below it.
    pub(crate) planned: bool,
    /// Whether that holds for one below it.
    pub(crate) planned_below: bool,
    /// Whether a rule reads this place or one below it.
    pub(crate) read: bool,
    /// Whether a rule writes here.
    pub(crate) written: bool,
    /// Those below that something is written to, and which form an object has that has all of them.
    pub(crate) filled: Vec<usize>,
    pub(crate) form: usize,
    /// Whether a tag lies below that nobody sees.
    pub(crate) hides: bool,
}

/// What becomes of a value that stands at a place of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// As the body says for what nobody mentions.
    Open,
    /// A rule takes it and answers for it.
    Taken,
    /// Something else is written there.
    Covered,
    /// It is left out; nothing is lost when it is that constant.
    Unset(Option<usize>),
    /// It is the tag of a union: it is not there.
    Hidden,
}

/// What is done, in this order.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    /// A rule.
    Carry { from: usize, to: usize, act: Act },
    /// A value computed from several.
    Derive { to: usize, from: Vec<usize>, function: Derivation },
    /// A value that the mapping brings.
    Bring { to: usize, value: usize, when_absent: bool },
}

/// What happens to a value on the way.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Nothing.
    Copy { default: Option<usize> },
    /// One of some values becomes one of others.
    Exchange { pairs: Vec<Pair>, default: Option<usize> },
    /// A function of it.
    Convert { function: Function, inverse: Option<Function> },
    /// Each element of a list, or each member of an object.
    Each { over: Over, block: Block },
    /// A union is told in the other way.
    Union { direction: Direction, tag: String, kinds: Vec<Kind> },
}

/// A value of the source and what it becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Whether the way back leads to another value.
    pub(crate) merged: bool,
}

/// One kind of a union.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) tag: String,
    pub(crate) member: String,
    /// The form of an object that has this member only.
    pub(crate) form: usize,
    pub(crate) block: Block,
}

impl Program {
    /// Compiles a body; none if it needs what only the slow way can do.
    pub(crate) fn of(body: &Body) -> Option<Self> {
        let mut compiler = Compiler::default();
        compiler.form([])?;
        let top = compiler.block(body, None)?;
        let constants = Document::built(&Value::Array(compiler.constants))?;
        let (places, forms) = (compiler.places, compiler.forms);
        Some(Self { places, constants, top, forms, unions: unions(body) })
    }

    #[inline]
    pub(crate) fn place(&self, id: usize) -> Option<&Place> {
        self.places.get(id)
    }

    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(crate) fn constant(&self, id: usize) -> Option<Node<'_>> {
        self.constants.root().at(id)
    }
}

fn unions(body: &Body) -> usize {
    let depth = |op: &Op| match op {
        Op::Each { body, .. } => unions(body),
        Op::Variant { cases, .. } => 1 + cases.iter().map(|case| unions(&case.body)).max().unwrap_or(0),
        Op::Copy { .. } | Op::Move { .. } | Op::Rename { .. } | Op::Enum { .. } | Op::Convert { .. } => 0,
    };
    body.rules.iter().map(|rule| depth(&rule.op)).max().unwrap_or(0)
}

#[derive(Default)]
struct Compiler {
    places: Vec<Place>,
    constants: Vec<Value>,
    forms: Vec<Form>,
}

/// What a rule does at a place.
#[derive(Clone, Copy)]
enum Use {
    Reads,
    Writes,
    Is(Fate),
}

impl Compiler {
    fn block(&mut self, body: &Body, hidden: Option<&str>) -> Option<Block> {
        let root = self.places.len();
        self.places.push(Place::new(Vec::new()));
        self.fates(body, root)?;
        if let Some(tag) = hidden {
            let place = self.step(root, &Segment::Name(tag.into()))?;
            self.places.get_mut(place)?.fate = Fate::Hidden;
            self.places.get_mut(root)?.hides = true;
        }
        let mut jobs = Vec::new();
        for rule in &body.rules {
            let (from, to) = (self.at(root, &rule.from, Use::Reads)?, self.at(root, &rule.to, Use::Writes)?);
            jobs.push(Job::Carry { from, to, act: Act::Copy { default: self.given(&rule.op) } });
        }
        for derived in &body.derived {
            let from = derived.from.iter().map(|path| self.at(root, path, Use::Reads)).collect::<Option<_>>()?;
            let to = self.at(root, &derived.to, Use::Writes)?;
            jobs.push(Job::Derive { to, from, function: derived.function.clone() });
        }
        for constant in &body.constants {
            let simple = !constant.to.segments().is_empty() && !self.touched(body, &constant.to);
            if constant.when_absent && !simple {
                return None;
            }
            let (to, value) = (self.at(root, &constant.to, Use::Writes)?, self.constant(&constant.value));
            jobs.push(Job::Bring { to, value, when_absent: constant.when_absent });
        }
        let places = root..self.places.len();
        places.clone().rev().try_for_each(|place| self.settle(place))?;
        // The places of a body lie together, so those of bodies inside it come after all of its own.
        for (rule, job) in body.rules.iter().zip(&mut jobs) {
            if let Job::Carry { act, .. } = job
                && let Some(other) = self.act(&rule.op)?
            {
                *act = other;
            }
        }
        Some(Block { places, jobs, keeps: body.passthrough })
    }

    /// As the plan of the slow way does it, and in the same order.
    fn fates(&mut self, body: &Body, root: usize) -> Option<()> {
        let constants = body.constants.iter().filter(|constant| !constant.when_absent).map(|constant| &constant.to);
        let derived = body.derived.iter().map(|derived| &derived.to);
        for path in body.rules.iter().map(|rule| &rule.to).chain(derived).chain(constants) {
            self.at(root, path, Use::Is(Fate::Covered))?;
        }
        for rule in body.rules.iter().filter(|rule| body.takes(rule)) {
            self.at(root, &rule.from, Use::Is(Fate::Taken))?;
        }
        for unset in &body.unset {
            let value = unset.value.as_ref().map(|value| self.constant(value));
            self.at(root, &unset.at, Use::Is(Fate::Unset(value)))?;
        }
        Some(())
    }

    /// Whether anything else is written at a place, around it or below it.
    fn touched(&self, body: &Body, path: &Path) -> bool {
        let rules = body.rules.iter().map(|rule| &rule.to).chain(body.derived.iter().map(|derived| &derived.to));
        let mut all = rules.chain(body.constants.iter().map(|constant| &constant.to));
        let meets = |other: &Path| {
            !std::ptr::eq(other, path)
                && other.segments().iter().zip(path.segments()).all(|(other, segment)| other == segment)
        };
        all.any(meets)
    }

    fn at(&mut self, root: usize, path: &Path, used: Use) -> Option<usize> {
        let mut id = root;
        for segment in path.segments() {
            let planned = matches!(used, Use::Is(_));
            let place = self.places.get_mut(id)?;
            place.planned |= planned;
            place.planned_below |= planned;
            place.read |= matches!(used, Use::Reads);
            id = self.step(id, segment)?;
        }
        let place = self.places.get_mut(id)?;
        match used {
            Use::Reads => place.read = true,
            Use::Writes => place.written = true,
            Use::Is(fate) => {
                place.planned = true;
                place.fate = fate;
            }
        }
        Some(id)
    }

    fn step(&mut self, id: usize, segment: &Segment) -> Option<usize> {
        let Segment::Name(name) = segment else { return None };
        let next = self.places.len();
        let place = self.places.get_mut(id)?;
        if let Some((_, known)) = place.below.iter().find(|(key, _)| key.name() == &**name) {
            return Some(*known);
        }
        place.below.push((Key::new(name), next));
        let path = place.path.iter().cloned().chain([segment.clone()]).collect();
        self.places.push(Place::new(path));
        Some(next)
    }

    /// Orders what lies below a place when all of it is known; those below it are settled already.
    fn settle(&mut self, id: usize) -> Option<()> {
        let mut below = std::mem::take(&mut self.places.get_mut(id)?.below);
        below.sort_by(|left, right| json::compare_keys(left.0.name(), right.0.name()));
        let fills =
            |place: &usize| self.places.get(*place).is_some_and(|place| place.written || !place.filled.is_empty());
        let filled: Vec<usize> = below.iter().map(|(_, place)| *place).filter(fills).collect();
        let form = match filled.is_empty() {
            true => NOTHING,
            false => {
                let names = below.iter().filter(|(_, place)| filled.contains(place)).map(|(key, _)| key.name());
                self.form(names)?
            }
        };
        let place = self.places.get_mut(id)?;
        (place.below, place.filled, place.form) = (below, filled, form);
        Some(())
    }

    fn form<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Option<usize> {
        self.forms.push(Form::of(names)?);
        Some(self.forms.len() - 1)
    }

    fn constant(&mut self, value: &Value) -> usize {
        self.constants.push(value.clone());
        self.constants.len() - 1
    }

    fn given(&mut self, op: &Op) -> Option<usize> {
        match op {
            Op::Copy { default } | Op::Move { default } | Op::Rename { default } => {
                default.as_ref().map(|default| self.constant(default))
            }
            Op::Enum { .. } | Op::Convert { .. } | Op::Each { .. } | Op::Variant { .. } => None,
        }
    }

    /// What an operation does, where it does more than to copy.
    fn act(&mut self, op: &Op) -> Option<Option<Act>> {
        Some(Some(match op {
            Op::Copy { .. } | Op::Move { .. } | Op::Rename { .. } => return Some(None),
            Op::Enum { pairs, default } => Act::Exchange {
                pairs: pairs.iter().map(|pair| self.pair(pairs, pair)).collect(),
                default: default.as_ref().map(|default| self.constant(default)),
            },
            Op::Convert { function } => Act::Convert { function: function.clone(), inverse: function.inverse() },
            Op::Each { from_index, to_index, .. } if from_index + to_index > 0 => return None,
            Op::Each { over, body, .. } => Act::Each { over: *over, block: self.block(body, None)? },
            Op::Variant { direction, tag, cases } => Act::Union {
                direction: *direction,
                tag: tag.clone(),
                kinds: cases.iter().map(|case| self.kind(*direction, tag, case)).collect::<Option<_>>()?,
            },
        }))
    }

    fn pair(&mut self, pairs: &[(Value, Value)], (from, to): &(Value, Value)) -> Pair {
        let back = pairs.iter().find(|(_, other)| same(other, to)).map(|(from, _)| from);
        let merged = !back.is_some_and(|back| same(back, from));
        Pair { from: self.constant(from), to: self.constant(to), merged }
    }

    fn kind(&mut self, direction: Direction, tag: &str, case: &Case) -> Option<Kind> {
        let hidden = match direction {
            Direction::TagToMember => Some(tag),
            Direction::MemberToTag => None,
        };
        let block = self.block(&case.body, hidden)?;
        let form = self.form([case.member.as_str()])?;
        Some(Kind { tag: case.tag.clone(), member: case.member.clone(), form, block })
    }
}

impl Place {
    fn new(path: Vec<Segment>) -> Self {
        Self {
            path,
            fate: Fate::Open,
            below: Vec::new(),
            planned: false,
            planned_below: false,
            read: false,
            written: false,
            filled: Vec::new(),
            form: NOTHING,
            hides: false,
        }
    }

    /// Whether nothing is read, taken or written below, so that a value stays as it is.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.planned_below && self.filled.is_empty() && !self.hides
    }
}
