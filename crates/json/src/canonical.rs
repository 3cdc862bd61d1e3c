//! RFC 8785: the bytes that are signed and hashed.

use crate::document::Slot;
use crate::{Kind, Node, Value};
use std::cmp::Ordering;

/// The canonical bytes of a value.
pub fn canonical(node: Node<'_>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.node(node);
    writer.finish()
}

/// The canonical bytes of an object without one of its members; what a signature covers.
pub fn canonical_without(node: Node<'_>, member: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.object();
    for (name, value) in node.members().filter(|(name, _)| *name != member) {
        writer.name(name);
        writer.node(value);
    }
    writer.end_object();
    writer.finish()
}

/// The canonical bytes of a value we built.
pub fn canonical_value(value: &Value) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.value(value);
    writer.finish()
}

/// A number in millionths, where it is the nearest double to so many of them; scores are.
///
/// With at most fifteen digits no two decimals have the same nearest double, so these digits are the shortest.
fn millionths(number: f64) -> Option<u64> {
    if !(1e-6..1e9).contains(&number) {
        return None;
    }
    let millionths = (number * 1e6 + 0.5) as u64;
    (millionths as f64 / 1e6 == number).then_some(millionths)
}

/// RFC 8785 §3.2.2.2: where the first byte is that cannot stand as it is.
///
/// Whole chunks are looked at without asking byte by byte, which the processor does at once.
fn position_of_special(bytes: &[u8]) -> Option<usize> {
    const CHUNK: usize = 16;
    let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let (chunks, _) = bytes.as_chunks::<CHUNK>();
    let plain = |chunk: &&[u8; CHUNK]| !chunk.iter().fold(false, |special, &byte| special | is_special(byte));
    let passed = chunks.iter().take_while(plain).count() * CHUNK;
    let rest = bytes.get(passed..).unwrap_or_default();
    rest.iter().position(|&byte| is_special(byte)).map(|place| passed + place)
}

/// RFC 8785 §3.2.3: names are ordered by their UTF-16 code units.
///
/// UTF-8 bytes order text by code point. The two orders part only where one name has a code point beyond the basic
/// plane (a surrogate pair, from D800) and the other one of the last 8,192 inside it (from E000).
pub fn compare_keys(left: &str, right: &str) -> Ordering {
    let mismatch = left.bytes().zip(right.bytes()).find(|(left, right)| left != right);
    match mismatch {
        None => left.len().cmp(&right.len()),
        Some((left @ 0xEE.., right @ 0xEE..)) if (left >= 0xF0) != (right >= 0xF0) => right.cmp(&left),
        Some((left, right)) => left.cmp(&right),
    }
}

/// Writes canonical JSON piece by piece.
///
/// The caller brings members in [`compare_keys`] order; debug builds check it.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Whether the next value or name follows another one.
    follows: bool,
    #[cfg(debug_assertions)]
    names: Vec<Option<String>>,
}

impl Writer {
    /// A writer with room for so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Opens an object.
    pub fn object(&mut self) {
        self.open(b'{');
        #[cfg(debug_assertions)]
        self.names.push(None);
    }

    /// Closes the innermost object.
    pub fn end_object(&mut self) {
        self.close(b'}');
        #[cfg(debug_assertions)]
        self.names.pop();
    }

    /// Opens an array.
    pub fn array(&mut self) {
        self.open(b'[');
    }

    /// Closes the innermost array.
    pub fn end_array(&mut self) {
        self.close(b']');
    }

    /// Writes the name of the next member.
    pub fn name(&mut self, name: &str) {
        #[cfg(debug_assertions)]
        if let Some(last) = self.names.last_mut() {
            let in_order = last.as_deref().is_none_or(|last| compare_keys(last, name) == Ordering::Less);
            debug_assert!(in_order, "`{name}` after {last:?} is not canonical order");
            *last = Some(name.to_owned());
        }
        self.separate();
        self.text(name);
        self.bytes.push(b':');
        self.follows = false;
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.separate();
        self.text(text);
        self.follows = true;
    }

    /// Writes a number as ECMAScript does (RFC 8785 §3.2.2.3).
    pub fn number(&mut self, number: f64) {
        self.separate();
        self.follows = true;
        if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_991.0 {
            self.bytes.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
        } else if let Some(millionths) = millionths(number) {
            self.decimal(millionths);
        } else {
            self.bytes.extend_from_slice(ryu_js::Buffer::new().format(number).as_bytes());
        }
    }

    /// Writes millionths that are no whole number.
    fn decimal(&mut self, millionths: u64) {
        let mut buffer = itoa::Buffer::new();
        self.bytes.extend_from_slice(buffer.format(millionths / 1_000_000).as_bytes());
        self.bytes.push(b'.');
        // A one before the six digits keeps their zeros.
        let digits = buffer.format(1_000_000 + millionths % 1_000_000).trim_end_matches('0');
        self.bytes.extend_from_slice(digits.get(1..).unwrap_or_default().as_bytes());
    }

    /// Writes a truth value.
    pub fn bool(&mut self, value: bool) {
        self.word(if value { "true" } else { "false" });
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.word("null");
    }

    /// Writes a value of a document.
    pub fn node(&mut self, node: Node<'_>) {
        match node.slot() {
            Slot::Null => self.null(),
            Slot::Bool(value) => self.bool(*value),
            Slot::Number(number) => self.number(*number),
            Slot::Short { .. } | Slot::Long(_) => self.string(node.as_str().unwrap_or_default()),
            Slot::Array { .. } => {
                self.array();
                node.elements().for_each(|element| self.node(element));
                self.end_array();
            }
            Slot::Object { .. } => {
                self.object();
                for (name, value) in node.members() {
                    self.name(name);
                    self.node(value);
                }
                self.end_object();
            }
        }
        debug_assert!(node.kind() != Kind::Object || self.bytes.ends_with(b"}"));
    }

    /// Writes a value we built.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => self.number(number.as_f64().unwrap_or_default()),
            Value::String(text) => self.string(text),
            Value::Array(elements) => {
                self.array();
                elements.iter().for_each(|element| self.value(element));
                self.end_array();
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by(|left, right| compare_keys(left.0, right.0));
                self.object();
                for (name, value) in members {
                    self.name(name);
                    self.value(value);
                }
                self.end_object();
            }
        }
    }

    /// Writes a value whose canonical bytes were made before.
    pub fn canonical(&mut self, bytes: &[u8]) {
        self.separate();
        self.bytes.extend_from_slice(bytes);
        self.follows = true;
    }

    /// The bytes written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Whether a text is just as a number is written; the room of the writer is used again.
    pub fn spells(&mut self, number: f64, text: &str) -> bool {
        self.bytes.clear();
        self.follows = false;
        self.number(number);
        self.bytes == text.as_bytes()
    }

    fn open(&mut self, bracket: u8) {
        self.separate();
        self.bytes.push(bracket);
        self.follows = false;
    }

    fn close(&mut self, bracket: u8) {
        self.bytes.push(bracket);
        self.follows = true;
    }

    fn word(&mut self, word: &str) {
        self.separate();
        self.bytes.extend_from_slice(word.as_bytes());
        self.follows = true;
    }

    fn separate(&mut self) {
        if self.follows {
            self.bytes.push(b',');
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes.push(b'"');
        let mut rest = text.as_bytes();
        // Runs without escapes are copied whole; most strings are one such run.
        while let Some(plain) = position_of_special(rest) {
            let (run, tail) = rest.split_at(plain);
            self.bytes.extend_from_slice(run);
            if let Some((&special, tail)) = tail.split_first() {
                self.escaped(special);
                rest = tail;
            }
        }
        self.bytes.extend_from_slice(rest);
        self.bytes.push(b'"');
    }

    fn escaped(&mut self, byte: u8) {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x09 => b't',
            0x0A => b'n',
            0x0C => b'f',
            0x0D => b'r',
            other => {
                self.bytes.extend_from_slice(format!("\\u{other:04x}").as_bytes());
                return;
            }
        };
        self.bytes.extend_from_slice(&[b'\\', short]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Limits};
    use proptest::prelude::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let document = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
        assert_eq!(String::from_utf8(canonical(document.root())).unwrap(), expected);
        assert_eq!(canonical_value(&document.root().to_value()), expected.as_bytes());
    }

    #[test]
    fn numbers_read_as_ecmascript_prints_them() {
        check(
            "[1.0, 1e0, -0, -0.0, 4.50, 2e-3, 1e-7, 0.000001, 333333333.33333329, 100, 9007199254740991]",
            "[1,1,0,0,4.5,0.002,1e-7,0.000001,333333333.3333333,100,9007199254740991]",
        );
    }

    #[test]
    fn large_numbers_of_the_published_vector_print_as_ecmascript_prints_them() {
        for (number, expected) in [
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (5e-324, "5e-324"),
        ] {
            let mut writer = Writer::default();
            writer.number(number);
            assert_eq!(writer.finish(), expected.as_bytes());
        }
    }

    #[test]
    fn short_decimals_print_as_the_long_way_prints_them() {
        let mut numbers =
            vec![1e-6, 9.99999e-7, 0.1, 0.3, 0.1 + 0.2, 0.15, 999_999_999.999_999, 1e9 + 0.5, -0.5, 1.000_001];
        // Numbers without a pattern: millionths of all sizes, their neighbours, and others.
        let mut state = 1_u64;
        for round in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 14 >> (round % 50)) as f64 / 1e6;
            numbers.extend([number, number.next_up(), number.next_down(), f64::from_bits(state)]);
        }
        for number in numbers.into_iter().filter(|number| number.is_finite()) {
            let mut writer = Writer::default();
            writer.number(number);
            assert_eq!(writer.finish(), ryu_js::Buffer::new().format(number).as_bytes(), "{number:e}");
        }
    }

    #[test]
    fn a_space_stands_as_it_is() {
        check(r#""a b\u0020\u001f\u007f\/""#, "\"a b \\u001f\u{7f}/\"");
    }

    #[test]
    fn bytes_that_were_made_before_stand_among_others() {
        let mut writer = Writer::default();
        writer.array();
        writer.number(1.0);
        writer.canonical(b"{\"a\":[2]}");
        writer.canonical(b"3");
        writer.end_array();
        assert_eq!(writer.finish(), b"[1,{\"a\":[2]},3]");
    }

    #[test]
    fn names_are_ordered_by_utf_16() {
        check(
            r#"{"\ue000":1,"\ud83d\ude00":2,"é":3,"€":4,"b":5,"a":6,"":7,"ab":8}"#,
            "{\"\":7,\"a\":6,\"ab\":8,\"b\":5,\"é\":3,\"€\":4,\"\u{1f600}\":2,\"\u{e000}\":1}",
        );
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        check(
            r#""\u0000\u0008\t\n\f\r\u001f\"\\\/\u007f\u2028é""#,
            "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\u{7f}\u{2028}é\"",
        );
    }

    #[test]
    fn the_signature_is_left_out_at_the_top_only() {
        let document = Document::of(&json!({"b": {"signature": 1}, "signature": {}, "a": 2})).unwrap();
        assert_eq!(canonical_without(document.root(), "signature"), br#"{"a":2,"b":{"signature":1}}"#);
    }

    proptest! {
        #[test]
        fn key_order_equals_utf_16_order(left in ".*", right in ".*") {
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            prop_assert_eq!(compare_keys(&left, &right), units(&left).cmp(&units(&right)));
        }

        #[test]
        fn what_is_written_reads_back_the_same(number in proptest::num::f64::NORMAL, text in ".*") {
            prop_assume!(number.abs() < 9e15 && number.abs() > 1e-300);
            let written = canonical_value(&json!({ text.clone(): number, "a": [text] }));
            if let Ok(document) = Document::parse(&written, &Limits::DOCUMENT) {
                prop_assert_eq!(canonical(document.root()), written);
            }
        }
    }
}
