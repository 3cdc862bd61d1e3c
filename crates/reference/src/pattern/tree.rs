//! ECMA-262 §22.2.1: the pieces of a pattern as a tree.
//!
//! The library has judged the pieces before, so that what cannot happen in a valid pattern is refused here without
//! further distinction.

use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;

use regress::Regex;

use super::compile;
use super::names::NamedGroup;
use super::syntax::Piece;

/// A node of a pattern.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// One character, exactly this one.
    Character(char),
    /// One character out of a class.
    Class(Class),
    Assertion(Assertion),
    /// All of them, one after the other.
    Sequence(Vec<Node>),
    /// The first of them with which the whole pattern matches.
    Choice(Vec<Node>),
    /// A capture, numbered from 1.
    Capture(usize, Box<Node>),
    Repeat(Box<Repeat>),
    /// What one of these captures captured; at most one of them took part.
    Reference(Vec<usize>),
    Look(Box<Look>),
}

/// A set of characters, as the library understands it.
#[derive(Debug, Clone)]
pub(super) struct Class(Regex);

impl Class {
    /// Whether a character belongs to the class.
    pub(super) fn holds(&self, character: char) -> bool {
        self.0.find(&character.to_string()).is_some()
    }
}

/// What is true of a position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Assertion {
    Start,
    End,
    WordBoundary,
    NoWordBoundary,
}

/// A quantified node.
#[derive(Debug, Clone)]
pub(super) struct Repeat {
    pub(super) body: Node,
    pub(super) min: usize,
    /// The greatest count, or none if there is no bound.
    pub(super) max: Option<usize>,
    pub(super) greedy: bool,
    /// The captures inside, which each repetition forgets.
    pub(super) captures: Range<usize>,
}

/// A lookahead or lookbehind.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) body: Node,
    pub(super) behind: bool,
    pub(super) negative: bool,
}

impl Node {
    /// The number of atoms, with every counted repetition written out.
    pub(super) fn size(&self) -> usize {
        match self {
            Node::Character(_) | Node::Class(_) | Node::Assertion(_) | Node::Reference(_) => 1,
            Node::Sequence(nodes) | Node::Choice(nodes) => nodes.iter().map(Node::size).fold(0, usize::saturating_add),
            Node::Capture(_, body) => body.size(),
            Node::Look(look) => look.body.size(),
            Node::Repeat(repeat) => {
                let times = repeat.max.unwrap_or(1).max(repeat.min).max(1);
                repeat.body.size().max(1).saturating_mul(times)
            }
        }
    }

    /// Whether a reference stands anywhere in the node.
    pub(super) fn refers_back(&self) -> bool {
        match self {
            Node::Reference(_) => true,
            Node::Character(_) | Node::Class(_) | Node::Assertion(_) => false,
            Node::Sequence(nodes) | Node::Choice(nodes) => nodes.iter().any(Node::refers_back),
            Node::Capture(_, body) => body.refers_back(),
            Node::Look(look) => look.body.refers_back(),
            Node::Repeat(repeat) => repeat.body.refers_back(),
        }
    }
}

/// Reads the pieces of a pattern, and says how many captures there are.
pub(super) fn read(pieces: &[Piece], names: &[NamedGroup]) -> Result<(Node, usize), &'static str> {
    let mut reader = Reader { pieces: pieces.iter().peekable(), names, captures: 0 };
    let tree = reader.choice()?;
    if reader.pieces.peek().is_some() { Err("invalid_regex") } else { Ok((tree, reader.captures)) }
}

struct Reader<'p> {
    pieces: Peekable<Iter<'p, Piece>>,
    names: &'p [NamedGroup],
    captures: usize,
}

impl Reader<'_> {
    /// Alternatives up to the end of the group.
    fn choice(&mut self) -> Result<Node, &'static str> {
        let mut alternatives = vec![self.sequence()?];
        while self.pieces.next_if(|piece| **piece == Piece::Or).is_some() {
            alternatives.push(self.sequence()?);
        }
        Ok(Node::Choice(alternatives))
    }

    /// Terms up to the end of the alternative.
    fn sequence(&mut self) -> Result<Node, &'static str> {
        let mut terms = Vec::new();
        while let Some(piece) = self.pieces.next_if(|piece| !matches!(piece, Piece::Or | Piece::Close)) {
            let captures_before = self.captures;
            let term = self.term(piece)?;
            let quantifier = self.pieces.next_if(|piece| matches!(piece, Piece::Quantifier(_)));
            match quantifier {
                Some(quantifier) => {
                    let captures = captures_before + 1..self.captures + 1;
                    terms.push(Node::Repeat(Box::new(repeat(term, &quantifier.text(), captures))));
                }
                None => terms.push(term),
            }
        }
        Ok(Node::Sequence(terms))
    }

    fn term(&mut self, piece: &Piece) -> Result<Node, &'static str> {
        match piece {
            Piece::One(text) => one(text),
            Piece::Assertion(text) => match text.as_str() {
                "^" => Ok(Node::Assertion(Assertion::Start)),
                "$" => Ok(Node::Assertion(Assertion::End)),
                "\\b" => Ok(Node::Assertion(Assertion::WordBoundary)),
                _ => Ok(Node::Assertion(Assertion::NoWordBoundary)),
            },
            Piece::Capture(_) => {
                self.captures += 1;
                let number = self.captures;
                Ok(Node::Capture(number, Box::new(self.group()?)))
            }
            Piece::Open("(?:") => self.group(),
            Piece::Open(form) => {
                let (behind, negative) = (form.contains('<'), form.contains('!'));
                Ok(Node::Look(Box::new(Look { body: self.group()?, behind, negative })))
            }
            Piece::Numbered(number) => Ok(Node::Reference(vec![number.parse().map_err(|_| "invalid_regex")?])),
            Piece::Named(name) => {
                let numbers = self.names.iter().filter(|group| group.name == *name).map(|group| group.number);
                Ok(Node::Reference(numbers.collect()))
            }
            Piece::Quantifier(_) | Piece::Close | Piece::Or => Err("invalid_regex"),
        }
    }

    /// The inside of a group, and its end.
    fn group(&mut self) -> Result<Node, &'static str> {
        let body = self.choice()?;
        let closed = self.pieces.next_if(|piece| **piece == Piece::Close).is_some();
        if closed { Ok(body) } else { Err("invalid_regex") }
    }
}

fn one(text: &str) -> Result<Node, &'static str> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if character != '.' => Ok(Node::Character(character)),
        _ => Ok(Node::Class(Class(compile(&format!("^{text}$"))?))),
    }
}

fn repeat(body: Node, quantifier: &str, captures: Range<usize>) -> Repeat {
    let lazy = quantifier.len() > 1 && quantifier.ends_with('?');
    let (min, max) = match quantifier.trim_end_matches('?') {
        "*" => (0, None),
        "+" => (1, None),
        "" => (0, Some(1)),
        braced => {
            let numbers = braced.trim_start_matches('{').trim_end_matches('}');
            match numbers.split_once(',') {
                None => (count(numbers), Some(count(numbers))),
                Some((min, "")) => (count(min), None),
                Some((min, max)) => (count(min), Some(count(max))),
            }
        }
    };
    Repeat { body, min, max, greedy: !lazy, captures }
}

/// A count; one beyond all bounds is the greatest there is.
fn count(digits: &str) -> usize {
    digits.parse().unwrap_or(usize::MAX)
}
