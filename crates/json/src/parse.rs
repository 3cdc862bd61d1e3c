//! Bytes to [`Document`] within [`Limits`].
//!
//! One pass, no recursion, so that depth costs memory and never the stack. Whatever two readers could understand
//! differently is refused: a signature must cover one reading only. Of several flaws the first in reading order is
//! named, so that every reader names the same one.
//!
//! INVARIANT: numbers are finite and within ±(2^53 − 1), object keys are distinct and in RFC 8785 order.

use crate::Pointer;
use crate::document::{Document, SHORT_MAX, Slot, Span};
use crate::shape::{Name, Names, Shapes, hash};
use std::collections::HashSet;

/// Named bounds for one kind of input.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What is bounded, as it stands in the limits table: `intent` or `document`.
    pub subject: &'static str,
    /// Bytes of input.
    pub bytes: u32,
    /// Nested containers; the outermost counts one.
    pub depth: u32,
    /// Values of any kind.
    pub nodes: u32,
    /// Members per object.
    pub keys: u32,
    /// Decoded bytes of a member name.
    pub key_bytes: u32,
    /// Decoded bytes of a string.
    pub string_bytes: u32,
}

/// The longest number literal anybody needs: a double has 17 significant digits.
const NUMBER_CHARS_MAX: usize = 32;

/// The largest integer that IEEE doubles and RFC 8785 agree about.
pub(crate) const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

impl Limits {
    /// For intents: a question is short, and strangers send it.
    pub const INTENT: Self = Self {
        subject: "intent",
        bytes: 64 * 1024,
        depth: 32,
        nodes: 4_000,
        keys: 1_024,
        key_bytes: 256,
        string_bytes: 8 * 1024,
    };

    /// For stored documents: manifests, offers, knowledge nodes, receipts.
    pub const DOCUMENT: Self = Self {
        subject: "document",
        bytes: 256 * 1024,
        depth: 64,
        nodes: 20_000,
        keys: 1_024,
        key_bytes: 256,
        string_bytes: 64 * 1024,
    };

    /// For documents we wrote ourselves: as strict, and roomy.
    pub const OURS: Self = Self {
        subject: "own document",
        bytes: 64 * 1024 * 1024,
        depth: 256,
        nodes: 4_000_000,
        keys: 100_000,
        key_bytes: 64 * 1024,
        string_bytes: 64 * 1024 * 1024,
    };
}

/// Why bytes are not a document; stable names for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Not RFC 8259 JSON.
    Syntax,
    /// More bytes than allowed.
    TooLarge,
    /// More nested containers than allowed.
    TooDeep,
    /// More values than allowed.
    TooManyNodes,
    /// More members in one object than allowed.
    TooManyKeys,
    /// A longer member name than allowed.
    KeyTooLong,
    /// A longer string than allowed.
    StringTooLong,
    /// Two members of one name.
    DuplicateKey,
    /// A number that doubles cannot hold faithfully.
    NumberOutOfRange,
    /// A longer number literal than allowed.
    NumberTooLong,
    /// Invalid UTF-8 or a lone surrogate.
    InvalidUnicode,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "json_syntax",
            Self::TooLarge => "json_too_large",
            Self::TooDeep => "json_too_deep",
            Self::TooManyNodes => "json_too_many_nodes",
            Self::TooManyKeys => "json_too_many_keys",
            Self::KeyTooLong => "json_key_too_long",
            Self::StringTooLong => "json_string_too_long",
            Self::DuplicateKey => "json_duplicate_key",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::NumberTooLong => "number_too_long",
            Self::InvalidUnicode => "invalid_unicode",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Syntax => "this is not RFC 8259 JSON",
            Self::TooLarge => "too many bytes",
            Self::TooDeep => "too many nested containers",
            Self::TooManyNodes => "too many values",
            Self::TooManyKeys => "too many members in one object",
            Self::KeyTooLong => "the member name is too long",
            Self::StringTooLong => "the string is too long",
            Self::DuplicateKey => "two members have this name",
            Self::NumberOutOfRange => "the number does not fit a double faithfully (at most 2^53 - 1, not vanishing)",
            Self::NumberTooLong => "the number literal is too long",
            Self::InvalidUnicode => "the text is not valid Unicode",
        }
    }
}

/// A limit that was passed, for the refusal that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Its name in the limits table.
    pub name: String,
    /// What is allowed.
    pub max: u64,
    /// What came; at least this much where counting stopped early.
    pub got: u64,
}

/// Why bytes are not a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} at `{at}` (byte {offset})", .code.meaning())]
pub struct ParseError {
    /// What is wrong.
    pub code: Code,
    /// The value that was being read.
    pub at: Pointer,
    /// The byte at which reading stopped.
    pub offset: usize,
    /// The limit that was passed, if one was.
    pub limit: Option<Exceeded>,
}

pub(crate) fn parse(bytes: &[u8], limits: &Limits, shapes: &mut Shapes) -> Result<Document, ParseError> {
    if bytes.len() > limits.bytes as usize {
        let limit = exceeded(limits, "bytes", limits.bytes, bytes.len());
        return Err(ParseError { code: Code::TooLarge, at: Pointer::root(), offset: 0, limit: Some(limit) });
    }
    shapes.begin();
    match std::str::from_utf8(bytes) {
        Ok(text) => Parser::new(text, limits, shapes).document(),
        Err(error) => {
            // Reading the valid part finds an earlier flaw, or the value in which the bad bytes stand.
            let valid = std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default();
            let at = match Parser::new(valid, limits, shapes).document() {
                Ok(_) => Pointer::root(),
                Err(found) if found.code == Code::Syntax && found.offset == valid.len() => found.at,
                Err(earlier) => return Err(earlier),
            };
            Err(ParseError { code: Code::InvalidUnicode, at, offset: error.valid_up_to(), limit: None })
        }
    }
}

/// A text that is a JSON number and nothing else, within the bounds of documents.
pub fn number(text: &str) -> Option<f64> {
    let mut shapes = Shapes::default();
    let mut parser = Parser::empty(text, &Limits::DOCUMENT, &mut shapes);
    match parser.number() {
        Ok(Slot::Number(number)) if parser.position == text.len() => Some(number),
        _ => None,
    }
}

fn exceeded(limits: &Limits, what: &str, max: u32, got: usize) -> Exceeded {
    Exceeded { name: format!("{}.{what}", limits.subject), max: u64::from(max), got: got as u64 }
}

/// An open container: where its finished children begin.
struct Frame {
    object: bool,
    values: usize,
    names: usize,
    name_text: usize,
}

struct Parser<'a> {
    input: &'a str,
    position: usize,
    limits: &'a Limits,
    known: &'a mut Shapes,
    frames: Vec<Frame>,
    /// Finished values and names of all open containers.
    pending: Vec<Slot>,
    pending_names: Vec<Name>,
    /// The texts of the pending names.
    name_text: String,
    /// Whether the innermost container, and not one of its children, is being read.
    between: bool,
    slots: Vec<Slot>,
    text: String,
    nodes: usize,
}

type Failure = (Code, Option<Exceeded>);

impl<'a> Parser<'a> {
    fn new(input: &'a str, limits: &'a Limits, known: &'a mut Shapes) -> Self {
        Self {
            pending: Vec::with_capacity(32),
            pending_names: Vec::with_capacity(32),
            name_text: String::with_capacity(256),
            slots: Vec::with_capacity(input.len() / 16),
            text: String::with_capacity(input.len() / 2),
            ..Self::empty(input, limits, known)
        }
    }

    /// Without room for anything yet.
    fn empty(input: &'a str, limits: &'a Limits, known: &'a mut Shapes) -> Self {
        Self {
            input,
            position: 0,
            limits,
            known,
            frames: Vec::new(),
            pending: Vec::new(),
            pending_names: Vec::new(),
            name_text: String::new(),
            between: false,
            slots: Vec::new(),
            text: String::new(),
            nodes: 0,
        }
    }

    fn document(mut self) -> Result<Document, ParseError> {
        match self.read() {
            Ok(()) => {
                let family = self.known.family().clone();
                Ok(Document { slots: self.slots.into(), text: self.text.into(), family })
            }
            Err(failure) => {
                // Names are compared when their object closes, so one that stands twice may have passed unseen.
                let (code, limit) = if self.return_to_duplicate() { (Code::DuplicateKey, None) } else { failure };
                Err(ParseError { code, at: self.place(), offset: self.position, limit })
            }
        }
    }

    /// The value being read: the innermost open member or element, or their container between two of them.
    fn place(&self) -> Pointer {
        let mut place = Pointer::root();
        for (depth, frame) in self.frames.iter().enumerate() {
            let inner = self.frames.get(depth + 1);
            if inner.is_none() && self.between {
                break;
            }
            if frame.object {
                let names_end = inner.map_or(self.pending_names.len(), |inner| inner.names);
                if let Some(name) = self.pending_names.get(frame.names..names_end).and_then(<[Name]>::last) {
                    place.push(name.span.of(&self.name_text));
                }
            } else {
                let values_end = inner.map_or(self.pending.len(), |inner| inner.values);
                place.push(values_end.saturating_sub(frame.values));
            }
        }
        place
    }

    /// Goes back to the first name of an open object that stands there twice, if there is one.
    fn return_to_duplicate(&mut self) -> bool {
        let twice = self.frames.iter().enumerate().find_map(|(depth, frame)| {
            let end = self.frames.get(depth + 1).map_or(self.pending_names.len(), |inner| inner.names);
            let mut seen = HashSet::new();
            let mut names = self.pending_names.get(frame.names..end)?.iter();
            let position = names.position(|name| !seen.insert(name.span.of(&self.name_text)))?;
            Some((depth, frame.names + position))
        });
        let Some((depth, name)) = twice else { return false };
        self.frames.truncate(depth + 1);
        self.pending_names.truncate(name + 1);
        self.between = false;
        true
    }

    fn read(&mut self) -> Result<(), Failure> {
        loop {
            // One value; a container that opens with content goes round again for its first child.
            if self.value()? {
                continue;
            }
            // After a finished value: close what closes, or go on to the next child.
            loop {
                self.between = true;
                let Some(frame) = self.frames.last() else {
                    self.slots.extend(self.pending.pop());
                    self.blank();
                    return if self.position == self.input.len() { Ok(()) } else { syntax() };
                };
                let object = frame.object;
                self.blank();
                match (self.take(), object) {
                    (Some(b','), true) => {
                        self.blank();
                        self.name()?;
                        break;
                    }
                    (Some(b','), false) => break,
                    (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                    (found, _) => return self.unexpected(found),
                }
            }
        }
    }

    /// Reads a scalar or an empty container (`false`), or opens a container up to its first child (`true`).
    fn value(&mut self) -> Result<bool, Failure> {
        self.blank();
        self.between = false;
        self.nodes += 1;
        if self.nodes > self.limits.nodes as usize {
            return self.passed(Code::TooManyNodes, "nodes", self.limits.nodes, self.nodes);
        }
        let slot = match self.peek() {
            Some(b'{') => return self.open(true, b'}'),
            Some(b'[') => return self.open(false, b']'),
            Some(b'"') => {
                self.position += 1;
                let span = self.string(false)?;
                self.text_slot(span)
            }
            Some(b't') => self.word("true", Slot::Bool(true))?,
            Some(b'f') => self.word("false", Slot::Bool(false))?,
            Some(b'n') => self.word("null", Slot::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return syntax(),
        };
        self.pending.push(slot);
        Ok(false)
    }

    /// Takes a short text out of the document's text and into its slot.
    fn text_slot(&mut self, span: Span) -> Slot {
        let mut bytes = [0; SHORT_MAX];
        let text = span.of(&self.text).as_bytes();
        match bytes.get_mut(..text.len()) {
            Some(slot) => slot.copy_from_slice(text),
            None => return Slot::Long(span),
        }
        self.text.truncate(span.start as usize);
        Slot::Short { len: span.len as u8, bytes }
    }

    fn open(&mut self, object: bool, end: u8) -> Result<bool, Failure> {
        self.position += 1;
        if self.frames.len() >= self.limits.depth as usize {
            return self.passed(Code::TooDeep, "depth", self.limits.depth, self.frames.len() + 1);
        }
        let (values, names, name_text) = (self.pending.len(), self.pending_names.len(), self.name_text.len());
        self.frames.push(Frame { object, values, names, name_text });
        self.between = true;
        self.blank();
        if self.peek() == Some(end) {
            self.position += 1;
            self.close()?;
            return Ok(false);
        }
        if object {
            self.name()?;
        }
        Ok(true)
    }

    /// Reads `"name":` of the next member.
    fn name(&mut self) -> Result<(), Failure> {
        match self.take() {
            Some(b'"') => {}
            found => return self.unexpected(found),
        }
        let span = self.string(true)?;
        let hash = hash(span.of(&self.name_text).as_bytes());
        self.pending_names.push(Name { hash, span });
        let open = self.frames.last().map_or(0, |frame| frame.names);
        let keys = self.pending_names.len() - open;
        if keys > self.limits.keys as usize {
            self.between = false;
            return self.passed(Code::TooManyKeys, "keys", self.limits.keys, keys);
        }
        self.blank();
        match self.take() {
            Some(b':') => Ok(()),
            found => self.unexpected(found),
        }
    }

    /// Lays the children of the innermost container side by side and puts the container in their place.
    fn close(&mut self) -> Result<(), Failure> {
        let Some(frame) = self.frames.last() else { return syntax() };
        let (object, values, names, name_text) = (frame.object, frame.values, frame.names, frame.name_text);
        let (first, len) = (self.slots.len(), self.pending.len() - values);
        let slot = if object {
            let written = self.pending_names.get(names..).unwrap_or_default();
            match self.known.of(&Names { names: written, text: &self.name_text }) {
                Ok((shape, order)) => {
                    self.slots.resize(first + len, Slot::Null);
                    let run = self.slots.get_mut(first..).unwrap_or_default();
                    for (child, &place) in self.pending.drain(values..).zip(order) {
                        if let Some(slot) = run.get_mut(place as usize) {
                            *slot = child;
                        }
                    }
                    Slot::Object { first: first as u32, len: len as u32, shape }
                }
                Err(twin) => {
                    // The refusal points at the second of the two.
                    self.pending_names.truncate(names + twin + 1);
                    self.between = false;
                    return Err((Code::DuplicateKey, None));
                }
            }
        } else {
            self.slots.extend(self.pending.drain(values..));
            Slot::Array { first: first as u32, len: len as u32 }
        };
        self.pending_names.truncate(names);
        self.name_text.truncate(name_text);
        self.frames.pop();
        self.pending.push(slot);
        Ok(())
    }

    /// Reads the rest of a string after its opening quote: a name, or into the document's text.
    fn string(&mut self, name: bool) -> Result<Span, Failure> {
        let start = self.target(name).len();
        let read = self.characters(name);
        let len = self.target(name).len() - start;
        let (code, what, max) = match name {
            true => (Code::KeyTooLong, "key_bytes", self.limits.key_bytes),
            false => (Code::StringTooLong, "string_bytes", self.limits.string_bytes),
        };
        // Also when something is wrong further on: the limit was passed before that.
        if len > max as usize {
            return self.passed(code, what, max, len);
        }
        read.map(|()| Span { start: start as u32, len: len as u32 })
    }

    fn characters(&mut self, name: bool) -> Result<(), Failure> {
        loop {
            let rest = self.input.as_bytes().get(self.position..).unwrap_or_default();
            let end = self.position + plain(rest);
            let plain_text = self.input.get(self.position..end).unwrap_or_default();
            self.target(name).push_str(plain_text);
            self.position = end;
            match self.take() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => {
                    let character = self.escape()?;
                    self.target(name).push(character);
                }
                found => return self.unexpected(found),
            }
        }
    }

    fn target(&mut self, name: bool) -> &mut String {
        if name { &mut self.name_text } else { &mut self.text }
    }

    fn escape(&mut self) -> Result<char, Failure> {
        Ok(match self.take() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => self.unicode_escape()?,
            found => return self.unexpected(found),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, Failure> {
        let unit = self.hex4()?;
        let code = match unit {
            0xD800..=0xDBFF => {
                if !self.input.get(self.position..).unwrap_or_default().starts_with("\\u") {
                    return Err((Code::InvalidUnicode, None));
                }
                self.position += 2;
                let low = self.hex4()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return Err((Code::InvalidUnicode, None));
                }
                0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).ok_or((Code::InvalidUnicode, None))
    }

    fn hex4(&mut self) -> Result<u32, Failure> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else { return syntax() };
            self.position += 1;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Slot, Failure> {
        let start = self.position;
        let negative = self.peek() == Some(b'-');
        if negative {
            self.position += 1;
        }
        let integer = self.digits();
        let leading_zero = self.input.as_bytes().get(self.position - integer) == Some(&b'0');
        if integer > 1 && leading_zero {
            self.position -= integer - 1;
            return syntax();
        }
        if integer == 0 {
            return syntax();
        }
        let mut plain = true;
        if self.peek() == Some(b'.') {
            plain = false;
            self.position += 1;
            if self.digits() == 0 {
                return syntax();
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            plain = false;
            self.position += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.position += 1;
            }
            if self.digits() == 0 {
                return syntax();
            }
        }
        let literal = self.input.get(start..self.position).unwrap_or_default();
        if literal.len() > NUMBER_CHARS_MAX {
            return self.passed(Code::NumberTooLong, "number_chars", NUMBER_CHARS_MAX as u32, literal.len());
        }
        let number = if plain && integer <= 15 {
            // Up to fifteen digits an integer is exact; this is most numbers there are.
            let magnitude = literal
                .bytes()
                .filter(u8::is_ascii_digit)
                .fold(0.0, |value, digit| value * 10.0 + f64::from(digit - b'0'));
            if negative { -magnitude } else { magnitude }
        } else {
            literal.parse::<f64>().map_err(|_| (Code::Syntax, None))?
        };
        let vanished = number == 0.0
            && literal
                .bytes()
                .take_while(|&byte| byte != b'e' && byte != b'E')
                .any(|byte| (b'1'..=b'9').contains(&byte));
        if number.abs() > INTEGER_MAX || vanished {
            return Err((Code::NumberOutOfRange, None));
        }
        Ok(Slot::Number(number))
    }

    /// Passes over digits and counts them.
    fn digits(&mut self) -> usize {
        let rest = self.input.as_bytes().get(self.position..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.position += count;
        count
    }

    fn word(&mut self, word: &str, slot: Slot) -> Result<Slot, Failure> {
        for byte in word.bytes() {
            match self.take() {
                Some(found) if found == byte => {}
                found => return self.unexpected(found),
            }
        }
        Ok(slot)
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.input.as_bytes().get(self.position).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.position += 1;
        Some(byte)
    }

    /// Stops at the byte just taken, or at the end.
    fn unexpected<T>(&mut self, found: Option<u8>) -> Result<T, Failure> {
        self.position -= usize::from(found.is_some());
        syntax()
    }

    fn passed<T>(&self, code: Code, what: &str, max: u32, got: usize) -> Result<T, Failure> {
        Err((code, Some(exceeded(self.limits, what, max, got))))
    }
}

/// How many bytes at the beginning stand for themselves in a string: up to a quote, an escape or a control character.
///
/// Eight at a time: a byte that a subtraction lends to is below what was subtracted, and the first to borrow is no
/// neighbour's doing.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    for (position, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quote, escape) = (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
        let found = below(word, 0x20) | below(quote, 1) | below(escape, 1);
        if found != 0 {
            return position * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let special = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < 0x20;
    words.len() * 8 + rest.iter().position(special).unwrap_or(rest.len())
}

fn syntax<T>() -> Result<T, Failure> {
    Err((Code::Syntax, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, code: &str, at: &str) {
        refused_bytes(text.as_bytes(), &Limits::DOCUMENT, code, at);
    }

    #[track_caller]
    fn refused_bytes(bytes: &[u8], limits: &Limits, code: &str, at: &str) {
        let error = Document::parse(bytes, limits).expect_err("should be refused");
        assert_eq!((error.code.name(), error.at.as_str()), (code, at), "{error}");
    }

    #[test]
    fn plain_bytes_are_counted_eight_at_a_time_as_one_at_a_time() {
        let special = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        for around in [b'a', 0x20, 0x21, 0x7f, 0x80, 0x9f, 0xa2, 0xdc, 0xff] {
            for (at, byte) in (0..19).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                let mut bytes = [around; 20];
                bytes[at] = byte;
                // What follows must not change what is found first.
                bytes[19] = b'"';
                let expected = bytes.iter().position(|&byte| special(byte)).unwrap();
                assert_eq!(plain(&bytes), expected, "{byte} at {at} among {around}");
            }
        }
        assert_eq!((plain(b""), plain(b"seven b"), plain(b"eight by"), plain(b"nine byte")), (0, 7, 8, 9));
    }

    #[test]
    fn duplicate_keys_are_refused_in_every_spelling() {
        refused(r#"{"a":1,"b":2,"a":3}"#, "json_duplicate_key", "/a");
        refused(r#"{"x":[{"a":1,"\u0061":2}]}"#, "json_duplicate_key", "/x/0/a");
        refused(r#"{"":1,"":2}"#, "json_duplicate_key", "/");
    }

    #[test]
    fn numbers_stay_where_doubles_are_faithful() {
        refused(r#"{"n":9007199254740992}"#, "number_out_of_range", "/n");
        refused("[-9007199254740993]", "number_out_of_range", "/0");
        refused("1e400", "number_out_of_range", "");
        refused("1e300", "number_out_of_range", "");
        refused("[0,1e-400]", "number_out_of_range", "/1");
        refused("123456789012345678901234567890123", "number_too_long", "");
        for (text, number) in [
            ("9007199254740991", 9_007_199_254_740_991.0),
            ("-0", -0.0),
            ("0e-400", 0.0),
            ("1.5e3", 1500.0),
            ("333333333.33333329", 333_333_333.333_333_3),
            ("-12", -12.0),
        ] {
            let document = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
            assert_eq!(document.root().as_f64().unwrap().to_bits(), f64::to_bits(number), "{text}");
        }
    }

    #[test]
    fn surrogates_come_in_pairs() {
        refused(r#"{"s":"\ud800"}"#, "invalid_unicode", "/s");
        refused(r#"["\udc00\ud800"]"#, "invalid_unicode", "/0");
        refused(r#""\ud800A""#, "invalid_unicode", "");
        let document = Document::parse(br#""\ud83d\ude00\u0000""#, &Limits::DOCUMENT).unwrap();
        assert_eq!(document.root().as_str(), Some("\u{1f600}\0"));
        refused_bytes(b"{\"a\":[1,\"\xff\"]}", &Limits::DOCUMENT, "invalid_unicode", "/a/1");
    }

    #[test]
    fn limits_are_named_with_what_came() {
        let deep = format!("{}1{}", "[".repeat(33), "]".repeat(33));
        let error = Document::parse(deep.as_bytes(), &Limits::INTENT).unwrap_err();
        assert_eq!(error.code, Code::TooDeep);
        assert_eq!(error.limit, Some(Exceeded { name: "intent.depth".into(), max: 32, got: 33 }));
        refused_bytes("[".repeat(60_000).as_bytes(), &Limits::INTENT, "json_too_deep", &"/0".repeat(32));
        refused_bytes(&vec![b' '; 65_537], &Limits::INTENT, "json_too_large", "");
        refused_bytes(format!("[{}0]", "0,".repeat(4000)).as_bytes(), &Limits::INTENT, "json_too_many_nodes", "/3999");
        refused_bytes(format!("[\"{}\"]", "x".repeat(8193)).as_bytes(), &Limits::INTENT, "json_string_too_long", "/0");
        refused_bytes(format!("{{\"{}\":1}}", "k".repeat(257)).as_bytes(), &Limits::INTENT, "json_key_too_long", "");
        let keys: Vec<String> = (0..1025).map(|n| format!("\"k{n}\":0")).collect();
        refused_bytes(format!("{{{}}}", keys.join(",")).as_bytes(), &Limits::INTENT, "json_too_many_keys", "/k1024");
    }

    #[test]
    fn only_rfc_8259_is_json() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{'a':1}",
            "{a:1}",
            "[1 2]",
            "nul",
            "NaN",
            "+1",
            "01",
            "1.",
            ".5",
            "1e",
            "--1",
            "\"\t\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "[1]]",
            "// c\n1",
            "\u{feff}1",
            "[",
            "\"abc",
            "{\"a\"}",
            "{\"a\":}",
            "]",
            "1,2",
        ] {
            assert_eq!(Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap_err().code, Code::Syntax, "{text:?}");
        }
    }

    #[test]
    fn the_first_of_several_flaws_is_named() {
        refused(r#"{"b":1,"b":2,"a":1,"a":2}"#, "json_duplicate_key", "/b");
        refused(r#"{"a":1,"a":{"b":1,"b":2}}"#, "json_duplicate_key", "/a");
        refused(r#"{"a":1,"b":[{"c":1,"c":2}],"a":2}"#, "json_duplicate_key", "/b/0/c");
        refused(r#"{"x":[0,{"a":1,"a":[tru"#, "json_duplicate_key", "/x/1/a");
        refused(r#"{"a":9007199254740992,"b":1,"b":2}"#, "number_out_of_range", "/a");
        refused_bytes(b"[tru,\"\xff\"]", &Limits::DOCUMENT, "json_syntax", "/0");
        refused_bytes(b"[tru\xff\"]", &Limits::DOCUMENT, "invalid_unicode", "/0");
        refused_bytes(b"[01\xff]", &Limits::DOCUMENT, "json_syntax", "/0");
        refused_bytes(b"[\"\\u12\xff\"]", &Limits::DOCUMENT, "invalid_unicode", "/0");
        refused_bytes(b"[\"a\n\xff\"]", &Limits::DOCUMENT, "json_syntax", "/0");
        refused_bytes(b"{\"a\":1}\xff", &Limits::DOCUMENT, "invalid_unicode", "");
        refused_bytes(b"{\"a\":1,\"a\":2,\xff", &Limits::DOCUMENT, "json_duplicate_key", "/a");
        let long = format!("[\"{}\\q", "x".repeat(8193));
        refused_bytes(long.as_bytes(), &Limits::INTENT, "json_string_too_long", "/0");
        let long = format!("[\"{}\\q", "x".repeat(8192));
        refused_bytes(long.as_bytes(), &Limits::INTENT, "json_syntax", "/0");
    }

    #[test]
    fn the_place_of_a_flaw_is_the_value_being_read() {
        refused(r#"{"a":{"b":[1,2,x]}}"#, "json_syntax", "/a/b/2");
        refused(r#"{"a":1,"b":tru}"#, "json_syntax", "/b");
        refused(r#"[[],{"k":"\q"}]"#, "json_syntax", "/1/k");
        refused(r#"{"a":1,}"#, "json_syntax", "");
        refused(r#"[["x" "y"]]"#, "json_syntax", "/0");
        refused(r#"{"a":{"b":1"#, "json_syntax", "/a");
        refused(r#"{"a":1,"b" 2}"#, "json_syntax", "");
    }
}
