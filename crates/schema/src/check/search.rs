//! RFC 0024 §3.4: looking for a document that conforms to one schema and not to another, and making it small.

use super::Undeclared;
use super::sample::Sampler;
use crate::refusal::Refusal;
use crate::validate::Validator;
use json::{Pointer, Value};

/// Documents that are tried.
const TRIES: usize = 4_000;

/// A document and where it does not conform, if one is found.
pub(crate) fn counterexample(
    from: &Value,
    to: &Value,
    undeclared: Undeclared,
) -> Result<Option<(Value, Pointer)>, Refusal> {
    let (one, other) = (Validator::compile(from)?, Validator::compile(to)?);
    let refutes = |document: &Value| one.is_valid(document) && !other.is_valid(document);
    let mut sampler = Sampler::new(1, &[from, to], undeclared == Undeclared::Strict);
    let mut last = Value::Null;
    for round in 0..TRIES {
        let document = match round % 4 {
            0 | 1 => sampler.document(from),
            2 => sampler.changed(&last, 0),
            _ if undeclared == Undeclared::Strict => sampler.any(2),
            _ => sampler.changed(&last, 0),
        };
        if refutes(&document) {
            let small = smaller(document, &refutes);
            let at = other.check(&small).err().map(|refusal| refusal.at).unwrap_or_default();
            return Ok(Some((small, at)));
        }
        if one.is_valid(&document) {
            last = document;
        }
    }
    Ok(None)
}

/// The document without whatever it can do without.
fn smaller(mut document: Value, refutes: &impl Fn(&Value) -> bool) -> Value {
    for _ in 0..64 {
        match cuts(&document).into_iter().find(|cut| refutes(cut)) {
            Some(cut) => document = cut,
            None => break,
        }
    }
    document
}

/// The document with one thing less, in every way.
fn cuts(document: &Value) -> Vec<Value> {
    let mut cuts = Vec::new();
    match document {
        Value::Object(members) => {
            for name in members.keys() {
                let mut fewer = members.clone();
                fewer.remove(name);
                cuts.push(Value::Object(fewer));
            }
            for (name, value) in members {
                for cut in cuts_below(value) {
                    let mut less = members.clone();
                    less.insert(name.clone(), cut);
                    cuts.push(Value::Object(less));
                }
            }
        }
        Value::Array(elements) => {
            for position in 0..elements.len() {
                let mut fewer = elements.clone();
                fewer.remove(position);
                cuts.push(Value::Array(fewer));
            }
            for (position, value) in elements.iter().enumerate() {
                for cut in cuts_below(value) {
                    let mut less = elements.clone();
                    if let Some(element) = less.get_mut(position) {
                        *element = cut;
                    }
                    cuts.push(Value::Array(less));
                }
            }
        }
        _ => {}
    }
    cuts
}

fn cuts_below(value: &Value) -> Vec<Value> {
    if value.is_object() || value.is_array() { cuts(value) } else { Vec::new() }
}

/// A text that probably matches a pattern of the usual kinds.
pub(crate) fn spelled(pattern: &str, extra: usize) -> String {
    let characters: Vec<char> = pattern.chars().collect();
    let mut text = String::new();
    alternatives(&characters, &mut 0, extra, &mut text);
    text
}

/// Reads the first alternative up to a closing bracket and skips the others.
fn alternatives(pattern: &[char], position: &mut usize, extra: usize, text: &mut String) {
    let mut writing = true;
    while let Some(character) = pattern.get(*position) {
        *position += 1;
        let mut piece = String::new();
        match character {
            '^' | '$' => continue,
            ')' => return,
            '|' => {
                writing = false;
                continue;
            }
            '(' => {
                if pattern.get(*position) == Some(&'?') {
                    *position += 2;
                }
                alternatives(pattern, position, extra, &mut piece);
            }
            '[' => piece.push(class(pattern, position)),
            '.' => piece.push('x'),
            '\\' => {
                let escaped = pattern.get(*position).copied().unwrap_or('x');
                *position += 1;
                piece.push(match escaped {
                    'd' => '1',
                    'w' | 'S' | 'D' => 'a',
                    's' => ' ',
                    other => other,
                });
            }
            other => piece.push(*other),
        }
        let times = repeats(pattern, position, extra);
        if writing {
            text.push_str(&piece.repeat(times));
        }
    }
}

/// A character of a class such as `[a-z0-9]`.
fn class(pattern: &[char], position: &mut usize) -> char {
    let negated = pattern.get(*position) == Some(&'^');
    let first = pattern.get(*position + usize::from(negated)).copied().unwrap_or('x');
    while let Some(character) = pattern.get(*position) {
        *position += 1;
        match character {
            '\\' => *position += 1,
            ']' => break,
            _ => {}
        }
    }
    match (negated, first) {
        (true, _) => 'x',
        (false, '\\') => '1',
        (false, first) => first,
    }
}

/// How often the piece before is written.
fn repeats(pattern: &[char], position: &mut usize, extra: usize) -> usize {
    match pattern.get(*position) {
        Some('+') => {
            *position += 1;
            1 + extra
        }
        Some('*') => {
            *position += 1;
            extra
        }
        Some('?') => {
            *position += 1;
            extra.min(1)
        }
        Some('{') => {
            let digits: String =
                pattern.iter().skip(*position + 1).take_while(|digit| digit.is_ascii_digit()).collect();
            while let Some(character) = pattern.get(*position) {
                *position += 1;
                if *character == '}' {
                    break;
                }
            }
            digits.parse().map_or(1, |times: usize| times.clamp(usize::from(times > 0), 200))
        }
        _ => 1,
    }
}
