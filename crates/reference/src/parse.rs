//! RFC 8259 read strictly, as RFC 0020 A.1 needs it: one document, one meaning.
//!
//! Whatever two readers could understand differently is refused: duplicate keys, lone surrogates, numbers that a
//! double cannot carry. INVARIANT: no value is deeper than `Limits::depth`, which is checked before descending,
//! so the recursion is bounded.

#[cfg(test)]
mod tests;

use crate::refusal::{Refusal, element_place, member_place};
use crate::value::Value;

/// How large a document may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The greatest length of the whole text in bytes.
    pub bytes: usize,
    /// The greatest nesting of containers; the outermost one has depth 1.
    pub depth: usize,
    /// The greatest number of values.
    pub nodes: usize,
    /// The greatest number of members in one object.
    pub keys: usize,
    /// The greatest length of a decoded key in bytes.
    pub key_bytes: usize,
    /// The greatest length of a decoded string in bytes.
    pub string_bytes: usize,
}

impl Limits {
    /// The limits for an intent.
    pub fn intent() -> Limits {
        Limits { bytes: 64 * 1024, depth: 32, nodes: 4_000, keys: 1_024, key_bytes: 256, string_bytes: 8 * 1024 }
    }

    /// The limits for a stored document.
    pub fn document() -> Limits {
        Limits { bytes: 256 * 1024, depth: 64, nodes: 20_000, keys: 1_024, key_bytes: 256, string_bytes: 64 * 1024 }
    }
}

/// The greatest length of a number as it is written.
const NUMBER_CHARS_MAX: usize = 32;

/// The greatest number, 2^53 - 1: up to it every integer has a double of its own.
const NUMBER_MAX: f64 = 9_007_199_254_740_991.0;

/// Reads one JSON document, and nothing after it.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, Refusal> {
    if bytes.len() > limits.bytes {
        return Err(Refusal::new("json_too_large", ""));
    }
    let mut reader = Reader { bytes, position: 0, nodes: 0, limits };
    reader.skip_space();
    let value = reader.value("", 0)?;
    reader.skip_space();
    if reader.peek().is_some() { Err(reader.unexpected("")) } else { Ok(value) }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    nodes: usize,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn value(&mut self, at: &str, depth: usize) -> Result<Value, Refusal> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(Refusal::new("json_too_many_nodes", at));
        }
        match self.peek() {
            Some(b'n') => self.word("null", Value::Null, at),
            Some(b't') => self.word("true", Value::Bool(true), at),
            Some(b'f') => self.word("false", Value::Bool(false), at),
            Some(b'"') => Ok(Value::String(self.string(self.limits.string_bytes, "json_string_too_long", at)?)),
            Some(b'-' | b'0'..=b'9') => Ok(Value::Number(self.number(at)?)),
            Some(b'[' | b'{') if depth >= self.limits.depth => Err(Refusal::new("json_too_deep", at)),
            Some(b'[') => self.array(at, depth + 1),
            Some(b'{') => self.object(at, depth + 1),
            Some(_) | None => Err(self.unexpected(at)),
        }
    }

    fn array(&mut self, at: &str, depth: usize) -> Result<Value, Refusal> {
        self.expect(b'[', at)?;
        self.skip_space();
        let mut elements = Vec::new();
        if self.skip_if(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            self.skip_space();
            elements.push(self.value(&element_place(at, elements.len()), depth)?);
            self.skip_space();
            if self.skip_if(b']') {
                return Ok(Value::Array(elements));
            }
            self.expect(b',', at)?;
        }
    }

    fn object(&mut self, at: &str, depth: usize) -> Result<Value, Refusal> {
        self.expect(b'{', at)?;
        self.skip_space();
        let mut members: Vec<(String, Value)> = Vec::new();
        if self.skip_if(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            let key = self.string(self.limits.key_bytes, "json_key_too_long", at)?;
            let place = member_place(at, &key);
            if members.iter().any(|(earlier, _)| *earlier == key) {
                return Err(Refusal::new("json_duplicate_key", &place));
            }
            if members.len() == self.limits.keys {
                return Err(Refusal::new("json_too_many_keys", &place));
            }
            self.skip_space();
            self.expect(b':', at)?;
            self.skip_space();
            let value = self.value(&place, depth)?;
            members.push((key, value));
            self.skip_space();
            if self.skip_if(b'}') {
                return Ok(Value::object(members));
            }
            self.expect(b',', at)?;
        }
    }

    fn word(&mut self, word: &str, value: Value, at: &str) -> Result<Value, Refusal> {
        for byte in word.bytes() {
            self.expect(byte, at)?;
        }
        Ok(value)
    }

    fn number(&mut self, at: &str) -> Result<f64, Refusal> {
        let start = self.position;
        self.skip_if(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits(at)?;
        if leading_zero && whole > 1 {
            return Err(Refusal::new("json_syntax", at));
        }
        if self.skip_if(b'.') {
            self.digits(at)?;
        }
        let mantissa_end = self.position;
        if self.skip_if(b'e') || self.skip_if(b'E') {
            if !self.skip_if(b'+') {
                self.skip_if(b'-');
            }
            self.digits(at)?;
        }
        if self.position - start > NUMBER_CHARS_MAX {
            return Err(Refusal::new("number_too_long", at));
        }
        let text: String = self.bytes.iter().take(self.position).skip(start).map(|byte| char::from(*byte)).collect();
        let number: f64 = text.parse().map_err(|_| Refusal::new("json_syntax", at))?;
        let written_as_zero = !self.bytes.iter().take(mantissa_end).skip(start).any(|byte| matches!(byte, b'1'..=b'9'));
        if number.abs() > NUMBER_MAX || (number == 0.0 && !written_as_zero) {
            return Err(Refusal::new("number_out_of_range", at));
        }
        Ok(number)
    }

    /// Skips one or more digits and says how many.
    fn digits(&mut self, at: &str) -> Result<usize, Refusal> {
        let start = self.position;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        if self.position == start { Err(self.unexpected(at)) } else { Ok(self.position - start) }
    }

    fn string(&mut self, bytes_max: usize, too_long: &'static str, at: &str) -> Result<String, Refusal> {
        self.expect(b'"', at)?;
        let mut text = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.position += 1;
                    text.push(self.escape(at)?);
                }
                None | Some(0..=0x1f) => return Err(Refusal::new("json_syntax", at)),
                Some(_) => text.push(self.character(at)?),
            }
            if text.len() > bytes_max {
                return Err(Refusal::new(too_long, at));
            }
        }
    }

    fn escape(&mut self, at: &str) -> Result<char, Refusal> {
        let letter = self.peek();
        let character = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.position += 1;
                return self.unicode_escape(at);
            }
            Some(_) | None => return Err(self.unexpected(at)),
        };
        self.position += 1;
        Ok(character)
    }

    /// What follows `\u`: one code unit, or a surrogate pair written as two escapes.
    fn unicode_escape(&mut self, at: &str) -> Result<char, Refusal> {
        let first = self.code_unit(at)?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.skip_if(b'\\') {
            if !self.skip_if(b'u') {
                return Err(Refusal::new("invalid_unicode", at));
            }
            units.push(self.code_unit(at)?);
        }
        let decoded: Result<Vec<char>, _> = char::decode_utf16(units).collect();
        match decoded.as_deref() {
            Ok([character]) => Ok(*character),
            Ok(_) | Err(_) => Err(Refusal::new("invalid_unicode", at)),
        }
    }

    fn code_unit(&mut self, at: &str) -> Result<u16, Refusal> {
        let mut unit: u16 = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit.and_then(|digit| u16::try_from(digit).ok()) else {
                return Err(self.unexpected(at));
            };
            unit = unit * 16 + digit;
            self.position += 1;
        }
        Ok(unit)
    }

    /// One character as it stands in the text.
    fn character(&mut self, at: &str) -> Result<char, Refusal> {
        let Some(character) = self.character_here() else {
            return Err(Refusal::new("invalid_unicode", at));
        };
        self.position += character.len_utf8();
        Ok(character)
    }

    fn character_here(&self) -> Option<char> {
        (1..=4).find_map(|length| {
            let bytes = self.bytes.get(self.position..self.position + length)?;
            std::str::from_utf8(bytes).ok()?.chars().next()
        })
    }

    /// The refusal of what stands here: it is no text at all, or it is text in the wrong place.
    fn unexpected(&self, at: &str) -> Refusal {
        let broken = self.peek().is_some() && self.character_here().is_none();
        Refusal::new(if broken { "invalid_unicode" } else { "json_syntax" }, at)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn skip_if(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.position += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8, at: &str) -> Result<(), Refusal> {
        if self.skip_if(byte) { Ok(()) } else { Err(self.unexpected(at)) }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }
}

/// The value of a text that a test wrote.
#[cfg(test)]
#[track_caller]
pub(crate) fn value(text: &str) -> Value {
    parse(text.as_bytes(), &Limits::document()).unwrap()
}
