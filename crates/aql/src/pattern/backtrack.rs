//! RFC 0020 A.1, A.7: lookaround and backreferences, as ECMA-262 §22.2.2 performs them, with counted steps.
//!
//! A program of small instructions and an explicit stack of choices: no recursion over the subject, so a long one
//! costs memory up to the step limit and never the stack.

use super::OutOfSteps;
use super::class::{self, Class, has};
use super::syntax::Syntax;

/// A compiled pattern for the backtracking engine.
#[derive(Clone, Debug)]
pub(super) struct Program {
    code: Vec<Op>,
    captures: usize,
    registers: usize,
}

#[derive(Clone, Debug)]
enum Op {
    /// Take one character of the class, in the direction of travel.
    Class {
        class: Class,
        backward: bool,
    },
    Start,
    End,
    WordBoundary {
        negated: bool,
    },
    /// Try `first`; on failure `second`.
    Split {
        first: usize,
        second: usize,
    },
    Jump(usize),
    /// Remember where a group begins or ends.
    Open {
        group: usize,
    },
    Close {
        group: usize,
        backward: bool,
    },
    /// ECMA-262 RepeatMatcher: a new round forgets the captures of the last one.
    Forget(Vec<usize>),
    /// Remember where a round begins, and fail a round that takes nothing.
    Mark(usize),
    Progress(usize),
    Backreference {
        group: usize,
        backward: bool,
    },
    /// Run the code up to its `Accept`, then go on at `next`.
    Look {
        negated: bool,
        next: usize,
    },
    Accept,
}

/// What one instruction weighs; classes add their ranges.
const OP_BYTES: usize = 64;

/// Compiles a pattern, or says that it would not fit.
pub(super) fn compile(syntax: &Syntax, bytes: usize) -> Option<Program> {
    let mut captures = Vec::new();
    syntax.captures(&mut captures);
    let groups = captures.iter().max().map_or(0, |&last| last as usize);
    let mut compiler = Compiler { code: Vec::new(), registers: 0, bytes: 0, limit: bytes };
    compiler.emit(syntax, false)?;
    compiler.push(Op::Accept)?;
    Some(Program { code: compiler.code, captures: groups + 1, registers: compiler.registers })
}

struct Compiler {
    code: Vec<Op>,
    registers: usize,
    bytes: usize,
    limit: usize,
}

impl Compiler {
    fn push(&mut self, op: Op) -> Option<usize> {
        self.bytes += OP_BYTES
            + match &op {
                Op::Class { class, .. } => class.ranges().len() * 8,
                Op::Forget(groups) => groups.len() * 8,
                _ => 0,
            };
        if self.bytes > self.limit {
            return None;
        }
        self.code.push(op);
        Some(self.code.len() - 1)
    }

    fn emit(&mut self, syntax: &Syntax, backward: bool) -> Option<()> {
        match syntax {
            Syntax::Empty => {}
            Syntax::Class(class) => {
                self.push(Op::Class { class: class.clone(), backward })?;
            }
            Syntax::Start => {
                self.push(Op::Start)?;
            }
            Syntax::End => {
                self.push(Op::End)?;
            }
            Syntax::WordBoundary { negated } => {
                self.push(Op::WordBoundary { negated: *negated })?;
            }
            Syntax::Group { capture: None, inner } => self.emit(inner, backward)?,
            Syntax::Group { capture: Some(group), inner } => {
                let group = *group as usize;
                self.push(Op::Open { group })?;
                self.emit(inner, backward)?;
                self.push(Op::Close { group, backward })?;
            }
            Syntax::Backreference(group) => {
                self.push(Op::Backreference { group: *group as usize, backward })?;
            }
            Syntax::Look { behind, negated, inner } => {
                let look = self.push(Op::Look { negated: *negated, next: 0 })?;
                self.emit(inner, *behind)?;
                self.push(Op::Accept)?;
                let after = self.code.len();
                if let Some(Op::Look { next, .. }) = self.code.get_mut(look) {
                    *next = after;
                }
            }
            Syntax::Concat(parts) if backward => parts.iter().rev().try_for_each(|part| self.emit(part, backward))?,
            Syntax::Concat(parts) => parts.iter().try_for_each(|part| self.emit(part, backward))?,
            Syntax::Alternate(parts) => self.alternate(parts, backward)?,
            Syntax::Repeat { inner, min, max, greedy } => self.repeat(inner, *min, *max, *greedy, backward)?,
        }
        Some(())
    }

    fn alternate(&mut self, parts: &[Syntax], backward: bool) -> Option<()> {
        let mut exits = Vec::new();
        for (position, part) in parts.iter().enumerate() {
            if position + 1 == parts.len() {
                self.emit(part, backward)?;
                continue;
            }
            let split = self.push(Op::Jump(0))?;
            self.emit(part, backward)?;
            exits.push(self.push(Op::Jump(0))?);
            self.set(split, Op::Split { first: split + 1, second: self.code.len() });
        }
        let end = self.code.len();
        exits.into_iter().for_each(|exit| self.set(exit, Op::Jump(end)));
        Some(())
    }

    fn repeat(&mut self, inner: &Syntax, min: u32, max: Option<u32>, greedy: bool, backward: bool) -> Option<()> {
        let mut groups = Vec::new();
        inner.captures(&mut groups);
        let groups: Vec<usize> = groups.into_iter().map(|group| group as usize).collect();
        for _ in 0..min {
            self.round(inner, &groups, backward)?;
        }
        let Some(max) = max else { return self.unbounded(inner, &groups, greedy, backward) };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Op::Jump(0))?);
            self.checked_round(inner, &groups, backward)?;
        }
        let end = self.code.len();
        splits.into_iter().for_each(|split| self.set(split, choice(split + 1, end, greedy)));
        Some(())
    }

    fn unbounded(&mut self, inner: &Syntax, groups: &[usize], greedy: bool, backward: bool) -> Option<()> {
        let split = self.push(Op::Jump(0))?;
        self.checked_round(inner, groups, backward)?;
        self.push(Op::Jump(split))?;
        self.set(split, choice(split + 1, self.code.len(), greedy));
        Some(())
    }

    fn round(&mut self, inner: &Syntax, groups: &[usize], backward: bool) -> Option<()> {
        if !groups.is_empty() {
            self.push(Op::Forget(groups.to_vec()))?;
        }
        // A counted round of something that emits nothing still costs, or `(?:){4294967295}` would run for ever.
        self.bytes += 1;
        (self.bytes <= self.limit).then_some(())?;
        self.emit(inner, backward)
    }

    fn checked_round(&mut self, inner: &Syntax, groups: &[usize], backward: bool) -> Option<()> {
        let register = self.registers;
        self.registers += 1;
        self.push(Op::Mark(register))?;
        self.round(inner, groups, backward)?;
        self.push(Op::Progress(register)).map(|_| ())
    }

    fn set(&mut self, position: usize, op: Op) {
        if let Some(slot) = self.code.get_mut(position) {
            *slot = op;
        }
    }
}

fn choice(body: usize, exit: usize, greedy: bool) -> Op {
    if greedy { Op::Split { first: body, second: exit } } else { Op::Split { first: exit, second: body } }
}

/// What to restore when a way fails.
enum Undo {
    Choice { op: usize, position: usize },
    Capture { group: usize, span: Span },
    Register { register: usize, position: usize },
}

/// Where a group began and what it matched; a group may be open again while its last match still stands.
#[derive(Clone, Copy, Default)]
struct Span {
    open: usize,
    matched: Option<(usize, usize)>,
}

struct Machine<'a> {
    program: &'a Program,
    subject: &'a str,
    captures: Vec<Span>,
    registers: Vec<usize>,
    undo: Vec<Undo>,
    steps: u64,
    limit: u64,
}

impl Program {
    /// Whether the pattern matches from some position; takes what it spends from `steps`.
    pub(super) fn is_match(&self, subject: &str, steps: &mut u64) -> Result<bool, OutOfSteps> {
        let mut machine = Machine {
            program: self,
            subject,
            captures: vec![Span::default(); self.captures],
            registers: vec![0; self.registers],
            undo: Vec::new(),
            steps: 0,
            limit: *steps,
        };
        let starts = subject.char_indices().map(|(position, _)| position).chain([subject.len()]);
        let mut found = Ok(false);
        for start in starts {
            machine.captures.fill(Span::default());
            machine.undo.clear();
            match machine.run(0, start) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    found = Ok(true);
                    break;
                }
                Err(error) => {
                    found = Err(error);
                    break;
                }
            }
        }
        *steps = steps.saturating_sub(machine.steps);
        found
    }
}

impl Machine<'_> {
    /// Runs from an instruction until its `Accept`, or until every way has failed.
    fn run(&mut self, start: usize, at: usize) -> Result<Option<usize>, OutOfSteps> {
        let floor = self.undo.len();
        let (mut op, mut position) = (start, at);
        loop {
            self.steps += 1;
            if self.steps > self.limit {
                return Err(OutOfSteps);
            }
            match self.step(op, position)? {
                Next::Go { op: next, position: moved } => (op, position) = (next, moved),
                Next::Accepted => return Ok(Some(position)),
                Next::Failed => match self.back(floor) {
                    Some((next, moved)) => (op, position) = (next, moved),
                    None => return Ok(None),
                },
            }
        }
    }

    /// Undoes up to the latest choice above `floor`.
    fn back(&mut self, floor: usize) -> Option<(usize, usize)> {
        while self.undo.len() > floor {
            match self.undo.pop()? {
                Undo::Choice { op, position } => return Some((op, position)),
                Undo::Capture { group, span } => self.restore(group, span),
                Undo::Register { register, position } => {
                    if let Some(slot) = self.registers.get_mut(register) {
                        *slot = position;
                    }
                }
            }
        }
        None
    }

    fn step(&mut self, op: usize, position: usize) -> Result<Next, OutOfSteps> {
        let program = self.program;
        let Some(instruction) = program.code.get(op) else { return Ok(Next::Failed) };
        let go = |position: usize| Next::Go { op: op + 1, position };
        let when = |holds: bool| if holds { go(position) } else { Next::Failed };
        Ok(match instruction {
            Op::Class { class, backward } => match self.neighbour(position, *backward) {
                Some(character) if has(class, character) => go(moved(position, character.len_utf8(), *backward)),
                _ => Next::Failed,
            },
            Op::Start => when(position == 0),
            Op::End => when(position == self.subject.len()),
            Op::WordBoundary { negated } => {
                let is_word = |character: Option<char>| character.is_some_and(|found| has(&class::word(), found));
                let boundary = is_word(self.neighbour(position, true)) != is_word(self.neighbour(position, false));
                when(boundary != *negated)
            }
            Op::Split { first, second } => {
                self.undo.push(Undo::Choice { op: *second, position });
                Next::Go { op: *first, position }
            }
            Op::Jump(target) => Next::Go { op: *target, position },
            Op::Open { group } => {
                self.change(*group, |span| Span { open: position, ..span });
                go(position)
            }
            Op::Close { group, backward } => {
                self.change(*group, |span| {
                    let ends = if *backward { (position, span.open) } else { (span.open, position) };
                    Span { matched: Some(ends), ..span }
                });
                go(position)
            }
            Op::Forget(groups) => {
                groups.iter().for_each(|&group| self.change(group, |span| Span { matched: None, ..span }));
                go(position)
            }
            Op::Mark(register) => {
                if let Some(slot) = self.registers.get_mut(*register) {
                    self.undo.push(Undo::Register { register: *register, position: *slot });
                    *slot = position;
                }
                go(position)
            }
            Op::Progress(register) => when(self.registers.get(*register) != Some(&position)),
            Op::Backreference { group, backward } => self.backreference(op, *group, position, *backward),
            Op::Look { negated, next } => {
                let floor = self.undo.len();
                let found = self.run(op + 1, position)?.is_some();
                if found && !*negated {
                    // The way found stands: its captures stay, its other choices are gone.
                    self.keep_captures(floor);
                } else {
                    while self.back(floor).is_some() {}
                }
                if found == *negated { Next::Failed } else { Next::Go { op: *next, position } }
            }
            Op::Accept => Next::Accepted,
        })
    }

    /// Drops the choices above `floor` and keeps what restores captures, for a failure further out.
    fn keep_captures(&mut self, floor: usize) {
        let kept = self.undo.split_off(floor);
        self.undo.extend(kept.into_iter().filter(|undo| !matches!(undo, Undo::Choice { .. })));
    }

    /// ECMA-262 BackreferenceMatcher: a group that has not taken part matches the empty text.
    fn backreference(&mut self, op: usize, group: usize, position: usize, backward: bool) -> Next {
        let matched = self.captures.get(group).and_then(|span| span.matched);
        let text = matched.and_then(|(start, end)| self.subject.get(start..end)).unwrap_or_default();
        // A long comparison is not one step.
        self.steps += text.len() as u64 / 64;
        let (before, after) = self.subject.split_at_checked(position).unwrap_or_default();
        let holds = if backward { before.ends_with(text) } else { after.starts_with(text) };
        if holds { Next::Go { op: op + 1, position: moved(position, text.len(), backward) } } else { Next::Failed }
    }

    fn neighbour(&self, position: usize, backward: bool) -> Option<char> {
        let (before, after) = self.subject.split_at_checked(position)?;
        if backward { before.chars().next_back() } else { after.chars().next() }
    }

    fn change(&mut self, group: usize, new: impl FnOnce(Span) -> Span) {
        if let Some(&span) = self.captures.get(group) {
            self.undo.push(Undo::Capture { group, span });
            self.restore(group, new(span));
        }
    }

    fn restore(&mut self, group: usize, span: Span) {
        if let Some(slot) = self.captures.get_mut(group) {
            *slot = span;
        }
    }
}

enum Next {
    Go { op: usize, position: usize },
    Accepted,
    Failed,
}

fn moved(position: usize, bytes: usize, backward: bool) -> usize {
    if backward { position.saturating_sub(bytes) } else { position + bytes }
}
