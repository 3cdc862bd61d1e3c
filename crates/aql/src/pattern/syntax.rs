//! RFC 0020 A.1: the grammar of ECMA-262 patterns with the `u` flag.
//!
//! Annex B's leniency belongs to patterns without the flag and is refused, with the place.

use super::class::{self, Class};
use super::property;

/// A pattern as a tree.
#[derive(Clone, Debug)]
pub(super) enum Syntax {
    Empty,
    Class(Class),
    Start,
    End,
    WordBoundary {
        negated: bool,
    },
    /// Capturing when it has a number.
    Group {
        capture: Option<u32>,
        inner: Box<Syntax>,
    },
    Backreference(u32),
    Look {
        behind: bool,
        negated: bool,
        inner: Box<Syntax>,
    },
    Repeat {
        inner: Box<Syntax>,
        min: u32,
        max: Option<u32>,
        greedy: bool,
    },
    Concat(Vec<Syntax>),
    Alternate(Vec<Syntax>),
}

impl Syntax {
    /// Whether a finite automaton can decide it.
    pub(super) fn is_regular(&self) -> bool {
        match self {
            Self::Empty | Self::Class(_) | Self::Start | Self::End | Self::WordBoundary { .. } => true,
            Self::Backreference(_) | Self::Look { .. } => false,
            Self::Group { inner, .. } | Self::Repeat { inner, .. } => inner.is_regular(),
            Self::Concat(parts) | Self::Alternate(parts) => parts.iter().all(Self::is_regular),
        }
    }

    /// The numbers of the capturing groups inside.
    pub(super) fn captures(&self, found: &mut Vec<u32>) {
        match self {
            Self::Group { capture, inner } => {
                found.extend(capture);
                inner.captures(found);
            }
            Self::Look { inner, .. } | Self::Repeat { inner, .. } => inner.captures(found),
            Self::Concat(parts) | Self::Alternate(parts) => parts.iter().for_each(|part| part.captures(found)),
            Self::Empty
            | Self::Class(_)
            | Self::Start
            | Self::End
            | Self::WordBoundary { .. }
            | Self::Backreference(_) => {}
        }
    }
}

/// Why a text is no pattern, and at which character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Error {
    pub(super) kind: ErrorKind,
    pub(super) position: usize,
    pub(super) message: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorKind {
    Invalid,
    Unsupported,
    TooLarge,
}

/// Nested groups; deeper patterns would only test our stack.
const NESTING_MAX: usize = 64;

pub(super) fn parse(source: &str) -> Result<Syntax, Error> {
    let characters: Vec<char> = source.chars().collect();
    let mut parser = Parser { names: group_names(&characters), ..Parser::at(&characters, 0) };
    let syntax = parser.disjunction()?;
    match parser.peek() {
        None => Ok(syntax),
        Some(_) => parser.invalid("`)` without its `(`"),
    }
}

/// Counts the capturing groups ahead of parsing, because a reference may stand before its group.
fn group_names(characters: &[char]) -> Vec<Option<String>> {
    let mut names = Vec::new();
    let (mut position, mut in_class) = (0, false);
    while let Some(&character) = characters.get(position) {
        match character {
            '\\' => position += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                match (characters.get(position + 1), characters.get(position + 2), characters.get(position + 3)) {
                    (Some('?'), Some('<'), Some(next)) if *next != '=' && *next != '!' => {
                        // What is no name is refused when the parser comes to it.
                        names.push(Parser::at(characters, position + 3).group_name().ok());
                    }
                    (Some('?'), _, _) => {}
                    _ => names.push(None),
                }
            }
            _ => {}
        }
        position += 1;
    }
    names
}

struct Parser<'a> {
    characters: &'a [char],
    position: usize,
    groups: u32,
    nesting: usize,
    disjunctions: u32,
    /// The alternatives that enclose this place: which disjunction, which of its alternatives.
    branch: Vec<(u32, u32)>,
    names: Vec<Option<String>>,
    seen: Vec<(String, Vec<(u32, u32)>)>,
}

impl<'a> Parser<'a> {
    fn at(characters: &'a [char], position: usize) -> Self {
        Self {
            characters,
            position,
            groups: 0,
            nesting: 0,
            disjunctions: 0,
            branch: Vec::new(),
            names: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += 1;
        Some(character)
    }

    fn eat(&mut self, expected: &str) -> bool {
        let ahead = self.characters.iter().skip(self.position);
        let found = expected.chars().eq(ahead.copied().take(expected.len()));
        if found {
            self.position += expected.len();
        }
        found
    }

    fn fail<T>(&self, kind: ErrorKind, message: &'static str) -> Result<T, Error> {
        Err(Error { kind, position: self.position, message })
    }

    fn invalid<T>(&self, message: &'static str) -> Result<T, Error> {
        self.fail(ErrorKind::Invalid, message)
    }

    fn disjunction(&mut self) -> Result<Syntax, Error> {
        if self.nesting > NESTING_MAX {
            return self.fail(ErrorKind::TooLarge, "groups are nested too deeply");
        }
        self.disjunctions += 1;
        self.branch.push((self.disjunctions, 0));
        let mut alternatives = vec![self.alternative()?];
        while self.eat("|") {
            if let Some((_, alternative)) = self.branch.last_mut() {
                *alternative += 1;
            }
            alternatives.push(self.alternative()?);
        }
        self.branch.pop();
        Ok(match alternatives.len() {
            1 => alternatives.remove(0),
            _ => Syntax::Alternate(alternatives),
        })
    }

    fn alternative(&mut self) -> Result<Syntax, Error> {
        let mut terms = Vec::new();
        while let Some(character) = self.peek() {
            if character == '|' || character == ')' {
                break;
            }
            terms.push(self.term()?);
        }
        Ok(match terms.len() {
            0 => Syntax::Empty,
            1 => terms.remove(0),
            _ => Syntax::Concat(terms),
        })
    }

    fn term(&mut self) -> Result<Syntax, Error> {
        if let Some(assertion) = self.assertion()? {
            return match self.peek() {
                Some('*' | '+' | '?' | '{') => self.invalid("an assertion cannot be repeated"),
                _ => Ok(assertion),
            };
        }
        let atom = self.atom()?;
        self.quantified(atom)
    }

    fn assertion(&mut self) -> Result<Option<Syntax>, Error> {
        if self.eat("^") {
            return Ok(Some(Syntax::Start));
        }
        if self.eat("$") {
            return Ok(Some(Syntax::End));
        }
        if self.eat("\\b") {
            return Ok(Some(Syntax::WordBoundary { negated: false }));
        }
        if self.eat("\\B") {
            return Ok(Some(Syntax::WordBoundary { negated: true }));
        }
        for (opening, behind, negated) in
            [("(?=", false, false), ("(?!", false, true), ("(?<=", true, false), ("(?<!", true, true)]
        {
            if self.eat(opening) {
                let inner = Box::new(self.inside()?);
                return Ok(Some(Syntax::Look { behind, negated, inner }));
            }
        }
        Ok(None)
    }

    /// What stands up to the closing parenthesis.
    fn inside(&mut self) -> Result<Syntax, Error> {
        self.nesting += 1;
        let inner = self.disjunction()?;
        self.nesting -= 1;
        if self.eat(")") { Ok(inner) } else { self.invalid("`(` without its `)`") }
    }

    fn atom(&mut self) -> Result<Syntax, Error> {
        match self.take() {
            Some('.') => Ok(Syntax::Class(class::dot())),
            Some('(') => self.group(),
            Some('[') => self.class(),
            Some('\\') => self.atom_escape(),
            Some('*' | '+' | '?') => self.back(|parser| parser.invalid("there is nothing to repeat here")),
            Some('{') => self.back(|parser| parser.invalid("a literal `{` is written `\\{`")),
            Some('}') => self.back(|parser| parser.invalid("a literal `}` is written `\\}`")),
            Some(']') => self.back(|parser| parser.invalid("a literal `]` is written `\\]`")),
            Some(character) => Ok(Syntax::Class(class::single(character))),
            None => self.invalid("the pattern ends too early"),
        }
    }

    /// Reports at the character just taken.
    fn back<T>(&mut self, report: impl Fn(&Self) -> Result<T, Error>) -> Result<T, Error> {
        self.position -= 1;
        report(self)
    }

    fn group(&mut self) -> Result<Syntax, Error> {
        if self.eat("?:") {
            let inner = Box::new(self.inside()?);
            return Ok(Syntax::Group { capture: None, inner });
        }
        if self.eat("?<") {
            let name = self.group_name()?;
            self.name_group(name)?;
        } else if self.peek() == Some('?') {
            let mut after = self.characters.iter().skip(self.position + 1);
            let modifiers = after.clone().take_while(|character| matches!(character, 'a'..='z' | '-')).count();
            return match after.nth(modifiers) {
                Some(':') if modifiers > 0 => {
                    self.fail(ErrorKind::Unsupported, "modifiers such as `(?i:` are not supported")
                }
                _ => self.invalid("`(?` opens no known group"),
            };
        }
        self.groups += 1;
        let capture = Some(self.groups);
        let inner = Box::new(self.inside()?);
        Ok(Syntax::Group { capture, inner })
    }

    /// A name may be used again only where one of its groups at most can take part.
    fn name_group(&mut self, name: String) -> Result<(), Error> {
        if let Some((_, other)) = self.seen.iter().find(|(seen, _)| *seen == name) {
            let apart = |(mine, theirs): (&(u32, u32), &(u32, u32))| mine.0 == theirs.0 && mine.1 != theirs.1;
            return match self.branch.iter().zip(other).any(apart) {
                true => self.fail(ErrorKind::Unsupported, "one name in several alternatives is not supported"),
                false => self.invalid("two groups have this name"),
            };
        }
        self.seen.push((name, self.branch.clone()));
        Ok(())
    }

    fn group_name(&mut self) -> Result<String, Error> {
        let mut name = String::new();
        loop {
            let letter = match self.take() {
                Some('>') if !name.is_empty() => return Ok(name),
                Some('\\') if self.eat("u") => self.unicode_escape()?,
                other => other,
            };
            match letter {
                Some(first) if name.is_empty() && class::begins_name(first) => name.push(first),
                Some(next) if !name.is_empty() && class::continues_name(next) => name.push(next),
                _ => return self.invalid("this is no group name"),
            }
        }
    }

    fn quantified(&mut self, atom: Syntax) -> Result<Syntax, Error> {
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(atom),
            _ => return Ok(atom),
        };
        self.position += 1;
        self.repeat(atom, min, max)
    }

    fn counted(&mut self, atom: Syntax) -> Result<Syntax, Error> {
        self.position += 1;
        let Some(min) = self.count() else { return self.invalid("a literal `{` is written `\\{`") };
        let max = if self.eat(",") { self.count() } else { Some(min) };
        if !self.eat("}") {
            return self.invalid("a repetition ends with `}`");
        }
        if max.is_some_and(|max| max < min) {
            return self.invalid("a repetition counts upward");
        }
        self.repeat(atom, min, max)
    }

    fn repeat(&mut self, atom: Syntax, min: u32, max: Option<u32>) -> Result<Syntax, Error> {
        let greedy = !self.eat("?");
        if let Some('*' | '+' | '?' | '{') = self.peek() {
            return self.invalid("there is nothing to repeat here");
        }
        Ok(Syntax::Repeat { inner: Box::new(atom), min, max, greedy })
    }

    fn count(&mut self) -> Option<u32> {
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            self.position += 1;
            value = Some(value.unwrap_or(0u32).saturating_mul(10).saturating_add(digit));
        }
        value
    }

    fn atom_escape(&mut self) -> Result<Syntax, Error> {
        match self.peek() {
            Some('1'..='9') => {
                let number = self.count().unwrap_or_default();
                if number as usize > self.names.len() {
                    return self.invalid("there is no group of this number");
                }
                Ok(Syntax::Backreference(number))
            }
            Some('k') => {
                self.position += 1;
                if !self.eat("<") {
                    return self.invalid("`\\k` is followed by `<name>`");
                }
                let name = self.group_name()?;
                match self.names.iter().position(|group| group.as_deref() == Some(&name)) {
                    Some(position) => Ok(Syntax::Backreference(position as u32 + 1)),
                    None => self.invalid("there is no group of this name"),
                }
            }
            _ => Ok(Syntax::Class(match self.class_escape()? {
                Some(class) => class,
                None => self.character_escape(false)?.map_or_else(class::none, class::single),
            })),
        }
    }

    /// `\d`, `\D`, `\s`, `\S`, `\w`, `\W`, `\p{…}`, `\P{…}`.
    fn class_escape(&mut self) -> Result<Option<Class>, Error> {
        let class = match self.peek() {
            Some('d') => class::digit(),
            Some('D') => class::negated(class::digit()),
            Some('s') => class::space(),
            Some('S') => class::negated(class::space()),
            Some('w') => class::word(),
            Some('W') => class::negated(class::word()),
            Some(letter @ ('p' | 'P')) => {
                self.position += 1;
                if !self.eat("{") {
                    return self.invalid("`\\p` is followed by `{property}`");
                }
                let start = self.position;
                while self.peek().is_some_and(|character| character != '}') {
                    self.position += 1;
                }
                let body: String = self.characters.get(start..self.position).unwrap_or_default().iter().collect();
                if self.peek() != Some('}') {
                    return self.invalid("a property ends with `}`");
                }
                let class = match property::read(&body) {
                    Ok(class) => class,
                    Err(ErrorKind::Unsupported) => {
                        return self.fail(ErrorKind::Unsupported, "this Unicode property is not supported");
                    }
                    Err(kind) => return self.fail(kind, "this is no Unicode property"),
                };
                if letter == 'p' { class } else { class::negated(class) }
            }
            _ => return Ok(None),
        };
        self.position += 1;
        Ok(Some(class))
    }

    /// An escaped character; `None` for a lone surrogate, which no text contains.
    fn character_escape(&mut self, in_class: bool) -> Result<Option<char>, Error> {
        let character = match self.take() {
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('b') if in_class => '\u{8}',
            Some('-') if in_class => '-',
            Some('c') => match self.take() {
                Some(letter) if letter.is_ascii_alphabetic() => char::from(letter as u8 % 32),
                _ => return self.back(|parser| parser.invalid("`\\c` is followed by a letter")),
            },
            Some('0') => match self.peek() {
                Some('0'..='9') => return self.invalid("octal escapes do not exist; write `\\xHH`"),
                _ => '\0',
            },
            Some('x') => match self.hex(2).and_then(char::from_u32) {
                Some(character) => character,
                None => return self.invalid("`\\x` is followed by two hexadecimal digits"),
            },
            Some('u') => return self.unicode_escape(),
            Some(
                syntax @ ('^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '/'),
            ) => syntax,
            Some(_) => return self.back(|parser| parser.invalid("this character needs no backslash")),
            None => return self.invalid("the pattern ends with a backslash"),
        };
        Ok(Some(character))
    }

    fn unicode_escape(&mut self) -> Result<Option<char>, Error> {
        const MESSAGE: &str = "`\\u` is followed by four hexadecimal digits or `{code point}`";
        if self.eat("{") {
            let start = self.position;
            let mut value = 0u32;
            while let Some(digit) = self.peek().and_then(|character| character.to_digit(16)) {
                self.position += 1;
                value = value.saturating_mul(16).saturating_add(digit);
            }
            let empty = start == self.position;
            if empty || value > 0x10_FFFF || !self.eat("}") {
                return self.invalid(MESSAGE);
            }
            return Ok(char::from_u32(value));
        }
        let Some(unit) = self.hex(4) else { return self.invalid(MESSAGE) };
        if let 0xD800..=0xDBFF = unit {
            let after = self.position;
            if self.eat("\\u")
                && let Some(low @ 0xDC00..=0xDFFF) = self.hex(4)
            {
                return Ok(char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)));
            }
            self.position = after;
        }
        Ok(char::from_u32(unit))
    }

    fn hex(&mut self, count: usize) -> Option<u32> {
        let digits = self.characters.get(self.position..self.position + count)?;
        let value = digits.iter().try_fold(0, |value, digit| Some(value * 16 + digit.to_digit(16)?))?;
        self.position += count;
        Some(value)
    }

    fn class(&mut self) -> Result<Syntax, Error> {
        let negated = self.eat("^");
        let mut class = class::none();
        loop {
            if self.eat("]") {
                return Ok(Syntax::Class(if negated { class::negated(class) } else { class }));
            }
            let start = self.class_atom()?;
            let next = self.characters.get(self.position + 1);
            if self.peek() != Some('-') || next == Some(&']') {
                class.union(&start.into_class());
                continue;
            }
            self.position += 1;
            let end = self.class_atom()?;
            match (start, end) {
                (ClassAtom::Character(start), ClassAtom::Character(end)) if start > end => {
                    return self.invalid("a range runs upward");
                }
                (ClassAtom::Character(start), ClassAtom::Character(end)) => {
                    class.union(&code_points(start, end));
                }
                _ => return self.invalid("a class cannot begin or end a range"),
            }
        }
    }

    fn class_atom(&mut self) -> Result<ClassAtom, Error> {
        match self.take() {
            Some('\\') => match self.class_escape()? {
                Some(class) => Ok(ClassAtom::Class(class)),
                None => self.class_character_escape(),
            },
            Some(character) => Ok(ClassAtom::Character(character as u32)),
            None => self.invalid("`[` without its `]`"),
        }
    }

    fn class_character_escape(&mut self) -> Result<ClassAtom, Error> {
        let start = self.position;
        match self.character_escape(true)? {
            Some(character) => Ok(ClassAtom::Character(character as u32)),
            // A lone surrogate still bounds a range; read its number again.
            None => {
                let digits: String = self.characters.get(start + 1..self.position).unwrap_or_default().iter().collect();
                let digits = digits.trim_start_matches('{').trim_end_matches('}');
                Ok(ClassAtom::Character(u32::from_str_radix(digits, 16).unwrap_or(0xD800)))
            }
        }
    }
}

enum ClassAtom {
    /// A code point, surrogates included.
    Character(u32),
    Class(Class),
}

impl ClassAtom {
    fn into_class(self) -> Class {
        match self {
            Self::Character(code) => code_points(code, code),
            Self::Class(class) => class,
        }
    }
}

/// The characters in a range of code points; surrogates are no characters.
fn code_points(start: u32, end: u32) -> Class {
    let first = if (0xD800..=0xDFFF).contains(&start) { 0xE000 } else { start };
    let last = if (0xD800..=0xDFFF).contains(&end) { 0xD7FF } else { end };
    match (char::from_u32(first), char::from_u32(last)) {
        (Some(first), Some(last)) if first <= last => class::range(first, last),
        _ => class::none(),
    }
}
