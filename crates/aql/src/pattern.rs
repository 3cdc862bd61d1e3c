//! RFC 0020 A.1: `matches`, an ECMA-262 regular expression with the `u` flag, unanchored.
//!
//! Patterns come from strangers, so none may hang or lie. What a finite automaton can express runs on a linear
//! engine; lookaround and backreferences run on a backtracking engine that follows ECMA-262 step by step and counts
//! its steps. Out of steps is an error and never "no match": under `not` that would become a match.

mod backtrack;
mod class;
mod linear;
mod property;
mod syntax;

use crate::limits::Limits;
use crate::refusal::{Code, Refusal};
use json::Pointer;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Box<str>,
    engine: Engine,
    literals: Literals,
}

/// What every subject that matches must have, as far as it is known.
#[derive(Clone, Debug, Default)]
struct Literals {
    prefix: Box<str>,
    required: Box<[Box<[u8]>]>,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(Box<regex_automata::meta::Regex>),
    Backtrack(Box<backtrack::Program>),
}

/// The backtracking engine ran out of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSteps;

/// Two patterns with the same source mean the same.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Pattern {
    /// Reads and compiles a pattern.
    pub fn read(source: &str, at: &Pointer, limits: &Limits) -> Result<Self, Refusal> {
        let characters = source.chars().count();
        if characters > limits.pattern_chars {
            return Err(Refusal::limit(
                Code::RegexTooLarge,
                at.clone(),
                "pattern_chars",
                limits.pattern_chars,
                characters,
            ));
        }
        let refuse = |error: syntax::Error| {
            let code = match error.kind {
                syntax::ErrorKind::Invalid => Code::InvalidRegex,
                syntax::ErrorKind::Unsupported => Code::RegexFeatureUnsupported,
                syntax::ErrorKind::TooLarge => Code::RegexTooLarge,
            };
            Refusal::new(code, at.clone(), format!("{} (character {} of the pattern)", error.message, error.position))
        };
        let syntax = syntax::parse(source).map_err(refuse)?;
        let too_large = || {
            let detail = format!("the pattern compiles to more than pattern_bytes ({})", limits.pattern_bytes);
            Refusal::new(Code::RegexTooLarge, at.clone(), detail)
        };
        let (engine, literals) = if syntax.is_regular() {
            let (regex, literals) = linear::compile(&syntax, limits.pattern_bytes).ok_or_else(too_large)?;
            (Engine::Linear(Box::new(regex)), literals)
        } else {
            let program = backtrack::compile(&syntax, limits.pattern_bytes).ok_or_else(too_large)?;
            (Engine::Backtrack(Box::new(program)), Literals::default())
        };
        Ok(Self { source: source.into(), engine, literals })
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern matches somewhere in the subject; `steps` is what the backtracking engine may still spend.
    pub fn is_match(&self, subject: &str, steps: &mut u64) -> Result<bool, OutOfSteps> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(subject)),
            Engine::Backtrack(program) => program.is_match(subject, steps),
        }
    }

    /// What every subject that matches begins with; often nothing.
    pub fn prefix(&self) -> &str {
        &self.literals.prefix
    }

    /// Every subject that matches contains one of these; nothing is known when there are none.
    pub fn required(&self) -> &[Box<[u8]>] {
        &self.literals.required
    }

    /// Whether the pattern needs the bounded backtracking engine.
    pub fn is_bounded(&self) -> bool {
        matches!(self.engine, Engine::Backtrack(_))
    }
}

#[cfg(test)]
mod tests;
