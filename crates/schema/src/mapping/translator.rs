//! RFC 0024 §3.3 "can compute the destination document": a mapping applied many times, from document to document.
//!
//! A [`Translator`] walks the source along the places of its [`Program`] and writes the destination flat, in order, out
//! of values that it only borrows. It remembers where names stand in the objects it has seen, as `aql::Evaluator` does,
//! and spells the places of a report only when somebody reads it. [`Mapping::translate`] is its plain twin: wherever
//! the fast way meets something that it was not made for, that one answers instead.
//!
//! INVARIANT: document and report are those of [`Mapping::translate`].

use super::Mapping;
use super::function::{Derivation, Function};
use super::path::Segment;
use super::program::{Act, Block, Fate, Job, Kind, NOTHING, Pair, Place, Program};
use super::rule::{Direction, Over};
use super::translate::{Loss, LossKind, OUTPUT_BYTES_FREE, OUTPUT_FACTOR_MAX};
use crate::refusal::Refusal;
use crate::value::same;
use json::{Builder, Document, Form, Node, Open, Piece, Pointer, Shape, ShapeId};
use std::sync::Arc;

/// A mapping, ready to be applied to one document after the other.
#[derive(Debug)]
pub struct Translator {
    mapping: Mapping,
    programs: Vec<Option<Program>>,
    memories: Vec<Memory>,
    builder: Builder,
}

/// What a mapping made of a document; derived, and signed by nobody.
#[derive(Debug)]
pub struct Translated<'t> {
    document: Document,
    report: Report<'t>,
}

#[derive(Debug)]
enum Report<'t> {
    /// Told by the slow way.
    Told(Vec<Loss>),
    /// Noted; the places are spelled when they are asked for.
    Noted { translator: &'t Translator, source: &'t Document, between: Vec<Document> },
}

/// The fast way met something that it was not made for.
struct Unusual;

impl Translator {
    /// Prepares a mapping.
    pub fn new(mapping: &Mapping) -> Self {
        let programs: Vec<Option<Program>> = mapping.steps.iter().map(|step| Program::of(&step.body)).collect();
        let memories = programs.iter().map(|program| Memory::of(program.as_ref())).collect();
        Self { mapping: mapping.clone(), programs, memories, builder: Builder::default() }
    }

    /// The mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Whether each of its steps has a fast way.
    pub fn is_compiled(&self) -> bool {
        self.programs.iter().all(Option::is_some)
    }

    /// Computes the destination document.
    pub fn translate<'t>(&'t mut self, source: &'t Document) -> Result<Translated<'t>, Refusal> {
        let mut between = Vec::new();
        let Ok(document) = self.run(source, &mut between) else {
            return translate_slowly(&self.mapping, source);
        };
        Ok(Translated { document, report: Report::Noted { translator: self, source, between } })
    }

    fn run(&mut self, source: &Document, between: &mut Vec<Document>) -> Result<Document, Unusual> {
        let mut last = None;
        for (program, memory) in self.programs.iter().zip(&mut self.memories) {
            if let Some(document) = last.take() {
                between.push(document);
            }
            let program = program.as_ref().ok_or(Unusual)?;
            let made = apply(program, between.last().unwrap_or(source), memory, &mut self.builder);
            if made.is_err() {
                self.builder.clear();
                memory.pieces.fill_with(Put::default);
                memory.members.clear();
            }
            last = Some(made?);
        }
        last.ok_or(Unusual)
    }
}

fn translate_slowly<'t>(mapping: &Mapping, source: &Document) -> Result<Translated<'t>, Refusal> {
    let translation = mapping.translate(&source.root().to_value())?;
    let document = match Document::built(&translation.document) {
        Some(document) => document,
        // Numbers that no document holds are refused with the words of the parser.
        None => Document::of(&translation.document)?,
    };
    Ok(Translated { document, report: Report::Told(translation.losses) })
}

impl Translated<'_> {
    /// The document in the destination's version.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The document by itself, without the report.
    pub fn into_document(self) -> Document {
        self.document
    }

    /// Whether nothing was lost and nothing brought in.
    pub fn is_faithful(&self) -> bool {
        match &self.report {
            Report::Told(losses) => losses.is_empty(),
            Report::Noted { translator, .. } => translator.memories.iter().all(|memory| memory.notes.is_empty()),
        }
    }

    /// What was lost or brought in.
    pub fn losses(&self) -> Vec<Loss> {
        let (translator, source, between) = match &self.report {
            Report::Told(losses) => return losses.clone(),
            Report::Noted { translator, source, between } => (translator, *source, between),
        };
        let sources = std::iter::once(source).chain(between);
        let steps = translator.programs.iter().flatten().zip(&translator.memories).zip(sources);
        steps.enumerate().flat_map(|(step, ((program, memory), source))| memory.spell(program, source, step)).collect()
    }
}

/// What a step works with, kept from one document to the next.
#[derive(Debug, Default)]
struct Memory {
    /// For each place, the value of the source that stands there.
    found: Vec<Option<u32>>,
    /// For each place, what is written there.
    pieces: Vec<Put>,
    recipes: Vec<Option<Box<Recipe>>>,
    /// The forms of the program, with what the builder notes in them.
    forms: Vec<Form>,
    /// Which members the objects that are being written have, or lack.
    members: Vec<u32>,
    notes: Vec<Note>,
    frames: Vec<Frame>,
    /// Spells numbers to compare them with texts.
    writer: json::Writer,
}

/// What is written at a place.
#[derive(Clone, Copy, Debug, Default)]
enum Put {
    #[default]
    Nothing,
    /// A value of the source as it is.
    Copy(u32),
    Piece(Piece),
}

/// How the members of a source object and the places of a program go together, for one shape.
#[derive(Debug, Default)]
struct Recipe {
    id: Option<ShapeId>,
    names: Option<Arc<Shape>>,
    /// In the order of names.
    entries: Vec<Entry>,
    /// Which of the entries the last object had that was written from it, and its form.
    wrote: Vec<u32>,
    form: Option<Form>,
    /// Which places the last object lacked that was written out of them alone, and its form.
    missing: Vec<u32>,
    filled_form: Option<Form>,
}

/// A member of a source object, a place below, or both.
#[derive(Clone, Copy, Debug)]
struct Entry {
    member: Option<u32>,
    place: Option<u32>,
    way: Way,
}

/// What a walk over the source does with a member, as far as its place alone says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// No rule speaks of it.
    Free,
    /// It is not there.
    Hidden,
    /// A rule takes it as a whole.
    Taken,
    /// Rules take or write here or below; whether one reads, too.
    Planned { read: bool },
    /// Rules only read here or below.
    Read,
}

impl Way {
    fn of(place: &Place) -> Self {
        match place.fate {
            Fate::Hidden => Self::Hidden,
            Fate::Taken if place.below.is_empty() => Self::Taken,
            _ if place.planned => Self::Planned { read: place.read },
            _ if place.read => Self::Read,
            _ => Self::Free,
        }
    }
}

/// A loss whose places are not spelled yet.
#[derive(Clone, Copy, Debug)]
struct Note {
    kind: LossKind,
    why: &'static str,
    from: Spot,
    to: Spot,
}

#[derive(Clone, Copy, Debug)]
enum Spot {
    Nowhere,
    /// A value of the source.
    Value(u32),
    /// A place of the program, within a frame.
    Place {
        frame: u32,
        place: u32,
    },
}

/// Where a block works: on which value, and where its result goes.
#[derive(Clone, Copy, Debug)]
struct Frame {
    above: u32,
    value: u32,
    to: u32,
    step: Below,
}

/// What comes after the place that the frame's list or union is written to.
#[derive(Clone, Copy, Debug)]
enum Below {
    Nothing,
    Index(u32),
    /// The name that the value has in the source.
    SameName,
    /// The member of a union: this kind of the rule that writes there.
    Kind(u32),
}

/// What becomes of values that no rule takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Kept,
    Dropped,
    /// Somebody else answers for it.
    Passed,
}

struct Run<'a> {
    program: &'a Program,
    source: &'a Document,
    memory: &'a mut Memory,
    builder: &'a mut Builder,
    /// How much may be built before somebody has to count.
    room: usize,
}

fn apply(
    program: &Program,
    source: &Document,
    memory: &mut Memory,
    builder: &mut Builder,
) -> Result<Document, Unusual> {
    memory.notes.clear();
    memory.frames.clear();
    let root = source.root();
    memory.frames.push(Frame { above: 0, value: root.position() as u32, to: 0, step: Below::Nothing });
    let mut run = Run { program, source, memory, builder, room: OUTPUT_BYTES_FREE };
    let made = run.block(&program.top, root, 0)?;
    let made = match made {
        Some(made) => made,
        None => run.empty()?,
    };
    let at_most = run.builder.written_at_most();
    let document = run.builder.finish(made);
    // What was put there is part of what is there, once for itself and once for each union around it.
    let times = |bytes: usize| bytes.saturating_mul(1 + program.unions);
    if times(at_most) <= OUTPUT_BYTES_FREE {
        return Ok(document);
    }
    let most = times(document.written_bytes());
    match most <= OUTPUT_BYTES_FREE || most <= allowed(source) {
        true => Ok(document),
        // Near the bound the slow way counts exactly.
        false => Err(Unusual),
    }
}

fn allowed(source: &Document) -> usize {
    source.written_bytes().saturating_mul(OUTPUT_FACTOR_MAX).saturating_add(OUTPUT_BYTES_FREE)
}

impl<'a> Run<'a> {
    /// Applies the rules of a block to a value.
    fn block(&mut self, block: &'a Block, value: Node<'a>, frame: u32) -> Result<Option<Piece>, Unusual> {
        self.memory.found.get_mut(block.places.clone()).unwrap_or_default().fill(None);
        let root = block.places.start;
        self.walk(root, value, if block.keeps { Rest::Kept } else { Rest::Dropped });
        for job in &block.jobs {
            self.job(job, block, value, frame)?;
            self.check_room()?;
        }
        let made = self.write(root, block.keeps.then_some(value))?;
        let stays = value.is_object() && self.place(root)?.fate == Fate::Open;
        match made {
            None if stays => self.empty().map(Some),
            made => Ok(made),
        }
    }

    /// Stops in time what would grow beyond its bound.
    #[inline]
    fn check_room(&mut self) -> Result<(), Unusual> {
        if self.builder.bulk() > self.room {
            self.room = allowed(self.source);
            if self.builder.bulk() > self.room {
                return Err(Unusual);
            }
        }
        Ok(())
    }

    #[inline]
    fn place(&self, id: usize) -> Result<&'a Place, Unusual> {
        self.program.place(id).ok_or(Unusual)
    }

    fn empty(&mut self) -> Result<Piece, Unusual> {
        let open = self.builder.open();
        self.object(open, NOTHING)
    }

    /// Closes an object of one of the program's forms.
    #[inline]
    fn object(&mut self, open: Open, form: usize) -> Result<Piece, Unusual> {
        let form = self.memory.forms.get_mut(form).ok_or(Unusual)?;
        Ok(self.builder.object(open, form, self.source))
    }

    /// Notes where the values stand that rules read, and what is left over and has no place.
    fn walk(&mut self, id: usize, value: Node<'a>, rest: Rest) {
        let Some(place) = self.program.place(id) else { return };
        if let Some(found) = self.memory.found.get_mut(id) {
            *found = Some(value.position() as u32);
        }
        let rest = match (rest, place.fate) {
            (Rest::Passed, _) | (_, Fate::Taken | Fate::Hidden) => Rest::Passed,
            (_, Fate::Unset(constant)) => {
                if constant.and_then(|constant| self.program.constant(constant)) != Some(value) {
                    self.lose(value, "unset");
                }
                Rest::Passed
            }
            (Rest::Kept, Fate::Open) => Rest::Kept,
            (Rest::Kept | Rest::Dropped, Fate::Open | Fate::Covered) => Rest::Dropped,
        };
        let planned = place.planned_below && is_filled(place, value);
        if rest == Rest::Dropped && !planned {
            self.lose(value, "no_place");
        }
        if place.below.is_empty() || !(planned || place.read) {
            return;
        }
        let rest = if planned { rest } else { Rest::Passed };
        let Some(recipe) = self.recipe(id, place, value) else { return };
        for entry in &recipe.entries {
            let Some(member) = entry.member.and_then(|member| value.child(member as usize)) else { continue };
            let below = entry.place.unwrap_or_default() as usize;
            match entry.way {
                Way::Hidden => {}
                Way::Taken => {
                    if let Some(found) = self.memory.found.get_mut(below) {
                        *found = Some(member.position() as u32);
                    }
                }
                Way::Planned { read } if rest != Rest::Passed || read => self.walk(below, member, rest),
                way => {
                    if rest == Rest::Dropped {
                        self.lose(member, "no_place");
                    }
                    if way == Way::Read {
                        self.walk(below, member, Rest::Passed);
                    }
                }
            }
        }
        self.keep_recipe(id, recipe);
    }

    /// How a source object fits the places below this one; taken out, to be put back.
    fn recipe(&mut self, id: usize, place: &Place, value: Node<'a>) -> Option<Box<Recipe>> {
        let shape = value.shape_id()?;
        let mut recipe = self.memory.recipes.get_mut(id)?.take().unwrap_or_default();
        if recipe.id != Some(shape) {
            recipe.learn(self.program, place, value.names()?);
            recipe.id = Some(shape);
        }
        Some(recipe)
    }

    fn keep_recipe(&mut self, id: usize, recipe: Box<Recipe>) {
        if let Some(kept) = self.memory.recipes.get_mut(id) {
            *kept = Some(recipe);
        }
    }

    fn found(&self, id: usize) -> Option<Node<'a>> {
        let position = (*self.memory.found.get(id)?)?;
        self.source.node(position as usize)
    }

    fn constant(&mut self, id: usize) -> Result<Piece, Unusual> {
        let constant = self.program.constant(id).ok_or(Unusual)?;
        Ok(self.builder.copy(constant))
    }

    fn put(&mut self, id: usize, piece: Put) {
        if let Some(place) = self.memory.pieces.get_mut(id) {
            *place = piece;
        }
    }

    fn note(&mut self, kind: LossKind, why: &'static str, from: Spot, to: Spot) {
        self.memory.notes.push(Note { kind, why, from, to });
    }

    fn lose(&mut self, value: Node<'a>, why: &'static str) {
        self.note(LossKind::Dropped, why, spot(value), Spot::Nowhere);
    }

    fn job(&mut self, job: &'a Job, block: &Block, value: Node<'a>, frame: u32) -> Result<(), Unusual> {
        let at = |place: usize| Spot::Place { frame, place: place as u32 };
        match job {
            Job::Carry { from, to, act: act @ Act::Copy { .. } } => match self.memory.found.get(*from) {
                Some(Some(position)) => self.put(*to, Put::Copy(*position)),
                _ => {
                    if let Some(piece) = self.carry(*from, *to, act, frame)? {
                        self.put(*to, Put::Piece(piece));
                    }
                }
            },
            Job::Carry { from, to, act } => {
                if let Some(piece) = self.carry(*from, *to, act, frame)? {
                    self.put(*to, Put::Piece(piece));
                }
            }
            Job::Derive { to, from, function } => {
                if let Some(piece) = self.derive(function, from) {
                    self.put(*to, Put::Piece(piece));
                    self.note(LossKind::Invented, "derived", Spot::Nowhere, at(*to));
                }
            }
            Job::Bring { to, value: constant, when_absent } => {
                if *when_absent && block.keeps && self.is_left(block.places.start, *to, value)? {
                    return Ok(());
                }
                match when_absent {
                    true => self.note(LossKind::Invented, "default", at(*to), at(*to)),
                    false => self.note(LossKind::Invented, "constant", Spot::Nowhere, at(*to)),
                }
                let piece = self.constant(*constant)?;
                self.put(*to, Put::Piece(piece));
            }
        }
        Ok(())
    }

    /// Carries one value over.
    fn carry(&mut self, from: usize, to: usize, act: &'a Act, frame: u32) -> Result<Option<Piece>, Unusual> {
        let at = |place: usize| Spot::Place { frame, place: place as u32 };
        let Some(value) = self.found(from) else {
            let Act::Copy { default: Some(default) } = act else { return Ok(None) };
            self.note(LossKind::Invented, "default", at(from), at(to));
            return self.constant(*default).map(Some);
        };
        match act {
            Act::Copy { .. } => Ok(Some(self.builder.copy(value))),
            Act::Exchange { pairs, default } => self.exchange(pairs, *default, value, at(to)),
            Act::Convert { function, inverse } => {
                let converted = self.convert(function, inverse.as_ref(), value);
                match &converted {
                    None => self.lose(value, "not_convertible"),
                    Some((_, Back::Same)) => {}
                    Some((_, Back::Other)) => self.note(LossKind::Changed, "conversion", spot(value), at(to)),
                }
                Ok(converted.map(|(piece, _)| piece))
            }
            Act::Each { over: Over::Elements, block } if value.kind() == json::Kind::Array => {
                let open = self.builder.open();
                for (index, element) in value.elements().enumerate() {
                    let below = self.frame(frame, element, to, Below::Index(index as u32));
                    let piece = self.block(block, element, below)?;
                    // The others keep their places.
                    let piece = piece.unwrap_or_else(|| self.builder.null());
                    self.builder.push(piece);
                    self.check_room()?;
                }
                Ok(Some(self.builder.array(open, self.source)))
            }
            Act::Each { over: Over::Members, block } if value.is_object() => {
                self.members(block, value, to, frame).map(Some)
            }
            Act::Each { .. } => {
                self.lose(value, "not_a_list");
                Ok(None)
            }
            Act::Union { direction, tag, kinds } => match direction {
                Direction::TagToMember => self.tag_to_member(value, tag, kinds, to, frame),
                Direction::MemberToTag => self.member_to_tag(value, tag, kinds, to, frame),
            },
        }
    }

    fn exchange(
        &mut self,
        pairs: &[Pair],
        default: Option<usize>,
        value: Node<'a>,
        to: Spot,
    ) -> Result<Option<Piece>, Unusual> {
        let known = pairs.iter().find(|pair| self.program.constant(pair.from) == Some(value));
        match (known, default) {
            (Some(pair), _) => {
                if pair.merged {
                    self.note(LossKind::Changed, "merged", spot(value), to);
                }
                self.constant(pair.to).map(Some)
            }
            (None, Some(default)) => {
                self.note(LossKind::Changed, "not_in_map", spot(value), to);
                self.constant(default).map(Some)
            }
            (None, None) => {
                self.lose(value, "not_in_map");
                Ok(None)
            }
        }
    }

    fn frame(&mut self, above: u32, value: Node<'a>, to: usize, step: Below) -> u32 {
        self.memory.frames.push(Frame { above, value: value.position() as u32, to: to as u32, step });
        self.memory.frames.len() as u32 - 1
    }

    fn members(&mut self, block: &'a Block, value: Node<'a>, to: usize, frame: u32) -> Result<Piece, Unusual> {
        let open = self.builder.open();
        let mut kept = Vec::new();
        for (name, member) in value.members() {
            let below = self.frame(frame, member, to, Below::SameName);
            if let Some(piece) = self.block(block, member, below)? {
                self.builder.push(piece);
                kept.push(name);
            }
            self.check_room()?;
        }
        match kept.len() == value.len() {
            true => self.builder.object_like(open, value, self.source).ok_or(Unusual),
            false => Ok(self.builder.object(open, &mut Form::of(kept).ok_or(Unusual)?, self.source)),
        }
    }

    fn tag_to_member(
        &mut self,
        value: Node<'a>,
        tag: &str,
        kinds: &'a [Kind],
        to: usize,
        frame: u32,
    ) -> Result<Option<Piece>, Unusual> {
        let told = value.get(tag).and_then(Node::as_str);
        let Some((number, kind)) = kinds.iter().enumerate().find(|(_, kind)| Some(kind.tag.as_str()) == told) else {
            self.lose(value, "unknown_kind");
            return Ok(None);
        };
        let below = self.frame(frame, value, to, Below::Kind(number as u32));
        let inner = self.block(&kind.block, value, below)?;
        let inner = inner.map_or_else(|| self.empty(), Ok)?;
        let open = self.builder.open();
        self.builder.push(inner);
        self.object(open, kind.form).map(Some)
    }

    fn member_to_tag(
        &mut self,
        value: Node<'a>,
        tag: &str,
        kinds: &'a [Kind],
        to: usize,
        frame: u32,
    ) -> Result<Option<Piece>, Unusual> {
        let Some((kind, inner)) = kinds.iter().find_map(|kind| Some((kind, value.get(&kind.member)?))) else {
            self.lose(value, "unknown_kind");
            return Ok(None);
        };
        for (_, member) in value.members().filter(|(name, _)| *name != kind.member) {
            self.lose(member, "no_place");
        }
        let below = self.frame(frame, inner, to, Below::Nothing);
        let inner = self.block(&kind.block, inner, below)?;
        let inner = inner.map_or_else(|| self.empty(), Ok)?;
        let tag_text = self.builder.text(&kind.tag);
        // Something else than an object, or a tag that is there already: the slow way has words for it.
        self.builder.with_member(inner, tag, tag_text).map(Some).ok_or(Unusual)
    }

    fn derive(&mut self, function: &Derivation, from: &[usize]) -> Option<Piece> {
        let first = from.iter().find_map(|place| self.found(*place));
        match function {
            Derivation::Concat(separator) => {
                let texts: Option<Vec<&str>> = from.iter().map(|place| self.found(*place)?.as_str()).collect();
                Some(self.builder.text_of(joined(texts?.into_iter(), separator)))
            }
            Derivation::FirstPresent => first.map(|value| self.builder.copy(value)),
            Derivation::Count => match first?.kind() {
                json::Kind::Array | json::Kind::Object => self.builder.number(first?.len() as f64),
                json::Kind::Null | json::Kind::Bool | json::Kind::Number | json::Kind::String => None,
            },
            Derivation::Part(separator, index) => {
                let part = first?.as_str()?.split(separator.as_str()).nth(*index)?;
                Some(self.builder.text(part))
            }
        }
    }

    /// The value of a function, and whether the way back leads to the same.
    fn convert(&mut self, function: &Function, inverse: Option<&Function>, value: Node<'a>) -> Option<(Piece, Back)> {
        let builder = &mut *self.builder;
        match (function, value.kind()) {
            (Function::StringToNumber, json::Kind::String) => {
                let text = value.as_str()?;
                let number = json::number(text)?;
                let back = self.memory.writer.spells(number, text);
                Some((builder.number(number)?, Back::when(back)))
            }
            (Function::Negate, json::Kind::Bool) => Some((builder.bool(!value.as_bool()?), Back::Same)),
            (Function::Multiply(by), json::Kind::Number) => {
                let (number, by) = (value.as_f64()?, *by as f64);
                Some((builder.number(number * by)?, Back::when(number * by / by == number)))
            }
            (Function::Divide(by), json::Kind::Number) => {
                let (number, by) = (value.as_f64()?, *by as f64);
                Some((builder.number(number / by)?, Back::when(number / by * by == number)))
            }
            (Function::Split(separator), json::Kind::String) => {
                let open = builder.open();
                let mut push = |part: &str| {
                    let part = builder.text(part);
                    builder.push(part);
                };
                let mut letters = separator.chars();
                match (letters.next(), letters.next()) {
                    // One letter is found faster than a text of one letter.
                    (Some(letter), None) => value.as_str()?.split(letter).for_each(&mut push),
                    _ => value.as_str()?.split(separator.as_str()).for_each(&mut push),
                }
                Some((builder.array(open, self.source), Back::Same))
            }
            (Function::AddPrefix(prefix), json::Kind::String) => {
                Some((builder.text_of([prefix.as_str(), value.as_str()?]), Back::Same))
            }
            (Function::StripPrefix(prefix), json::Kind::String) => {
                Some((builder.text(value.as_str()?.strip_prefix(prefix.as_str())?), Back::Same))
            }
            (Function::WrapArray, _) => {
                let open = builder.open();
                builder.push_copy(value);
                Some((builder.array(open, self.source), Back::Same))
            }
            _ => {
                let value = value.to_value();
                let converted = function.apply(&value)?;
                let back = inverse.and_then(|inverse| inverse.apply(&converted));
                Some((builder.value(&converted)?, Back::when(back.is_some_and(|back| same(&back, &value)))))
            }
        }
    }

    /// Whether the source leaves something at a place that a default waits for.
    fn is_left(&mut self, id: usize, wanted: usize, value: Node<'a>) -> Result<bool, Unusual> {
        let path = &self.place(wanted)?.path;
        let (mut id, mut value) = (id, value);
        for segment in path {
            let place = self.place(id)?;
            let Segment::Name(name) = segment else { return Err(Unusual) };
            let below = place.below.iter().find(|(key, _)| key.name() == &**name).ok_or(Unusual)?.1;
            match value.get(name) {
                Some(member) if place.fate == Fate::Open => (id, value) = (below, member),
                _ => return Ok(false),
            }
        }
        self.leaves(id, value)
    }

    /// Whether rules leave anything of a value that is carried over.
    fn leaves(&self, id: usize, value: Node<'a>) -> Result<bool, Unusual> {
        let place = self.place(id)?;
        if place.fate != Fate::Open || !place.planned_below || !is_filled(place, value) {
            return Ok(place.fate == Fate::Open);
        }
        for (name, member) in value.members() {
            let below = place.below.iter().find(|(key, _)| key.name() == name);
            if below.map_or(Ok(true), |(_, below)| self.leaves(*below, member))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Pushes what belongs to a place into the open container; whether there is anything.
    fn push(&mut self, id: usize, source: Option<Node<'a>>) -> Result<bool, Unusual> {
        match self.take(id) {
            Put::Nothing => {}
            Put::Copy(position) => {
                self.builder.push_copy(self.source.node(position as usize).ok_or(Unusual)?);
                return Ok(true);
            }
            Put::Piece(piece) => {
                self.builder.push(piece);
                return Ok(true);
            }
        }
        let place = self.place(id)?;
        match source {
            Some(value) if place.fate == Fate::Open && place.is_plain() => {
                self.builder.push_copy(value);
                Ok(true)
            }
            source => {
                let piece = self.rest(id, place, source, false)?;
                let pushed = piece.is_some();
                piece.into_iter().for_each(|piece| self.builder.push(piece));
                Ok(pushed)
            }
        }
    }

    fn take(&mut self, id: usize) -> Put {
        self.memory.pieces.get_mut(id).map(std::mem::take).unwrap_or_default()
    }

    /// The result of a block: what was put at its root or below, and what is carried over of the source.
    fn write(&mut self, root: usize, source: Option<Node<'a>>) -> Result<Option<Piece>, Unusual> {
        match self.take(root) {
            Put::Piece(piece) => Ok(Some(piece)),
            Put::Copy(position) => {
                let value = self.source.node(position as usize).ok_or(Unusual)?;
                Ok(Some(self.builder.copy(value)))
            }
            Put::Nothing => self.rest(root, self.place(root)?, source, true),
        }
    }

    /// What is put below a place, and what is carried over of the source.
    fn rest(
        &mut self,
        id: usize,
        place: &'a Place,
        source: Option<Node<'a>>,
        root: bool,
    ) -> Result<Option<Piece>, Unusual> {
        match source.filter(|_| place.fate == Fate::Open) {
            Some(value) if place.is_plain() => Ok(Some(self.builder.copy(value))),
            Some(value) if is_filled(place, value) => self.write_merged(id, place, value),
            Some(value) => {
                let filled = self.write_filled(id, place)?;
                match (filled, value.is_object()) {
                    (None, true) => self.empty().map(Some),
                    (None, false) => Ok(Some(self.builder.copy(value))),
                    // An empty object at the root of a body is no news when it is filled; all else is covered.
                    (filled, true) if root => Ok(filled),
                    (Some(_), _) => Err(Unusual),
                }
            }
            None => self.write_filled(id, place),
        }
    }

    /// An object of the source with what is put into it.
    fn write_merged(&mut self, id: usize, place: &'a Place, value: Node<'a>) -> Result<Option<Piece>, Unusual> {
        let Some(mut recipe) = self.recipe(id, place, value) else { return Err(Unusual) };
        let (open, begin) = (self.builder.open(), self.memory.members.len());
        for (number, entry) in recipe.entries.iter().enumerate() {
            let member = entry.member.and_then(|member| value.child(member as usize));
            let pushed = match (entry.place, member) {
                (Some(place), member) => self.push(place as usize, member)?,
                (None, Some(member)) => {
                    self.builder.push_copy(member);
                    true
                }
                (None, None) => false,
            };
            if pushed {
                self.memory.members.push(number as u32);
            }
        }
        let members = self.memory.members.get(begin..).unwrap_or_default();
        if recipe.form.is_none() || recipe.wrote != members {
            recipe.form = recipe.written_form(place, members);
            recipe.wrote = members.to_vec();
        }
        self.memory.members.truncate(begin);
        let made = match &mut recipe.form {
            Some(form) if !form.shape().is_empty() => Some(self.builder.object(open, form, self.source)),
            Some(_) => None,
            None => return Err(Unusual),
        };
        self.keep_recipe(id, recipe);
        Ok(made)
    }

    /// An object of nothing but what is put into it.
    fn write_filled(&mut self, id: usize, place: &'a Place) -> Result<Option<Piece>, Unusual> {
        if place.filled.is_empty() {
            return Ok(None);
        }
        let (open, begin) = (self.builder.open(), self.memory.members.len());
        for (number, below) in place.filled.iter().enumerate() {
            if !self.push(*below, None)? {
                self.memory.members.push(number as u32);
            }
        }
        let count = self.builder.pushed(open);
        let made = if count == 0 {
            None
        } else if count == place.filled.len() {
            Some(self.object(open, place.form)?)
        } else {
            let missing = self.memory.members.get(begin..).unwrap_or_default();
            let recipe = self.memory.recipes.get_mut(id).ok_or(Unusual)?.get_or_insert_default();
            if recipe.filled_form.is_none() || recipe.missing != missing {
                let all = self.memory.forms.get(place.form).ok_or(Unusual)?.shape();
                let there = (0..all.len()).filter(|member| !missing.contains(&(*member as u32)));
                recipe.filled_form = Form::of(there.map(|member| all.name(member)));
                recipe.missing = missing.to_vec();
            }
            let form = recipe.filled_form.as_mut().ok_or(Unusual)?;
            Some(self.builder.object(open, form, self.source))
        };
        self.memory.members.truncate(begin);
        Ok(made)
    }
}

/// Whether the way back leads to the value that was converted.
#[derive(Clone, Copy)]
enum Back {
    Same,
    Other,
}

impl Back {
    fn when(same: bool) -> Self {
        if same { Self::Same } else { Self::Other }
    }
}

fn spot(value: Node<'_>) -> Spot {
    Spot::Value(value.position() as u32)
}

fn joined<'t>(texts: impl Iterator<Item = &'t str>, separator: &'t str) -> impl Iterator<Item = &'t str> {
    texts.enumerate().flat_map(move |(position, text)| [if position == 0 { "" } else { separator }, text])
}

/// Whether a value is an object with at least one member that is seen.
fn is_filled(place: &Place, value: Node<'_>) -> bool {
    if !place.hides {
        return value.is_object() && !value.is_empty();
    }
    // The tag of a union is there, or it would be no union of this kind.
    let Some(names) = value.names() else { return false };
    let hidden = |(key, _): &(json::Key, usize)| names.position(key).is_some();
    names.len() > usize::from(place.below.iter().any(hidden))
}

impl Recipe {
    /// Goes through both lists of names side by side.
    fn learn(&mut self, program: &Program, place: &Place, names: &Arc<Shape>) {
        let way = |id: &usize| program.place(*id).map_or(Way::Free, Way::of);
        let empty = |id: &usize| Entry { member: None, place: Some(*id as u32), way: way(id) };
        self.entries.clear();
        self.form = None;
        let mut below = place.below.iter().peekable();
        for member in 0..names.len() {
            let name = names.name(member);
            while let Some((_, id)) =
                below.next_if(|(key, _)| json::compare_keys(key.name(), name) == std::cmp::Ordering::Less)
            {
                self.entries.push(empty(id));
            }
            let free = Entry { member: Some(member as u32), place: None, way: Way::Free };
            let here = below.next_if(|(key, _)| key.name() == name).map(|(_, id)| empty(id));
            self.entries.push(Entry { member: free.member, ..here.unwrap_or(free) });
        }
        self.entries.extend(below.map(|(_, id)| empty(id)));
        self.names = Some(names.clone());
    }

    fn written_form(&self, place: &Place, members: &[u32]) -> Option<Form> {
        let names = self.names.as_ref()?;
        let name = |number: &u32| -> Option<&str> {
            let entry = self.entries.get(*number as usize)?;
            match (entry.member, entry.place) {
                (Some(member), _) => Some(names.name(member as usize)),
                (None, Some(id)) => {
                    place.below.iter().find(|(_, below)| *below == id as usize).map(|(key, _)| key.name())
                }
                (None, None) => None,
            }
        };
        Form::of(members.iter().map(name).collect::<Option<Vec<&str>>>()?)
    }
}

impl Memory {
    fn of(program: Option<&Program>) -> Self {
        let places = program.map_or(0, Program::places);
        Self {
            found: vec![None; places],
            pieces: std::iter::repeat_with(Put::default).take(places).collect(),
            recipes: std::iter::repeat_with(|| None).take(places).collect(),
            forms: program.map_or_else(Vec::new, |program| program.forms.clone()),
            ..Self::default()
        }
    }

    /// The notes of a step as the report has them.
    fn spell(&self, program: &Program, source: &Document, step: usize) -> Vec<Loss> {
        if self.notes.is_empty() {
            return Vec::new();
        }
        let speller = Speller { memory: self, program, source, parents: parents(source) };
        let loss = |note: &Note| Loss {
            kind: note.kind,
            from: speller.from(note.from),
            to: speller.to(note.to),
            why: note.why,
            step,
        };
        self.notes.iter().map(loss).collect()
    }
}

/// For each value of a document, the container that it stands in.
fn parents(document: &Document) -> Vec<usize> {
    let mut parents = vec![usize::MAX; document.nodes()];
    for container in (0..document.nodes()).filter_map(|position| document.node(position)) {
        for child in container.children() {
            if let Some(parent) = parents.get_mut(child.position()) {
                *parent = container.position();
            }
        }
    }
    parents
}

struct Speller<'a> {
    memory: &'a Memory,
    program: &'a Program,
    source: &'a Document,
    parents: Vec<usize>,
}

impl Speller<'_> {
    fn from(&self, spot: Spot) -> Option<Pointer> {
        match spot {
            Spot::Nowhere => None,
            Spot::Value(position) => Some(self.value(position as usize)),
            Spot::Place { frame, place } => {
                let above = self.memory.frames.get(frame as usize)?;
                Some(self.extend(self.value(above.value as usize), place))
            }
        }
    }

    fn to(&self, spot: Spot) -> Option<Pointer> {
        match spot {
            Spot::Nowhere | Spot::Value(_) => None,
            Spot::Place { frame, place } => Some(self.extend(self.destination(frame), place)),
        }
    }

    fn extend(&self, above: Pointer, place: u32) -> Pointer {
        let path = self.program.place(place as usize).map_or(&[][..], |place| &place.path);
        path.iter().fold(above, |pointer, segment| pointer.child(segment))
    }

    /// Where the result of a frame stands.
    fn destination(&self, frame: u32) -> Pointer {
        let Some(here) = self.memory.frames.get(frame as usize).filter(|_| frame > 0) else { return Pointer::root() };
        let above = self.extend(self.destination(here.above), here.to);
        match here.step {
            Below::Nothing => above,
            Below::Index(index) => above.child(index),
            Below::SameName => above.child(self.segment(here.value as usize)),
            Below::Kind(number) => above.child(self.kind(here, number)),
        }
    }

    /// The member that a union is told by, of the rule that writes where the frame does.
    fn kind(&self, frame: &Frame, number: u32) -> &str {
        kind_of(&self.program.top, frame.to as usize, number as usize).unwrap_or_default()
    }

    fn value(&self, position: usize) -> Pointer {
        match self.parents.get(position) {
            Some(&parent) if parent != usize::MAX => self.value(parent).child(self.segment(position)),
            _ => Pointer::root(),
        }
    }

    /// The name or the index of a value in its container.
    fn segment(&self, position: usize) -> String {
        let parent = self.parents.get(position).and_then(|parent| self.source.node(*parent));
        let Some(parent) = parent else { return String::new() };
        let index = parent.child(0).map_or(0, |first| position.saturating_sub(first.position()));
        match parent.names() {
            Some(names) => names.name(index).to_owned(),
            None => index.to_string(),
        }
    }
}

fn kind_of(block: &Block, to: usize, number: usize) -> Option<&str> {
    block.jobs.iter().find_map(|job| match job {
        Job::Carry { to: place, act: Act::Union { kinds, .. }, .. } if *place == to => {
            kinds.get(number).map(|kind| kind.member.as_str())
        }
        Job::Carry { act: Act::Union { kinds, .. }, .. } => {
            kinds.iter().find_map(|kind| kind_of(&kind.block, to, number))
        }
        Job::Carry { act: Act::Each { block, .. }, .. } => kind_of(block, to, number),
        Job::Carry { .. } | Job::Derive { .. } | Job::Bring { .. } => None,
    })
}
