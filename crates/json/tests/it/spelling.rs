//! Values at random, and the many ways to write one of them.

use json::Value;
use proptest::prelude::*;
use std::fmt::Write as _;

/// Any value whose numbers are within our range.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i32>().prop_map(Value::from),
        (-9e15..9e15f64).prop_map(Value::from),
        (-1.0..1.0f64).prop_map(Value::from),
        prop::sample::select(vec![0.1, -0.0, 1e-7, 5e-324, 1e-300, 4.5, 9_007_199_254_740_991.0]).prop_map(Value::from),
    ];
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, text().prop_map(Value::from),];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Texts with everything that a writer may escape, and names from both sides of the surrogates.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        ".{0,6}",
        prop::collection::vec(any::<char>(), 0..4).prop_map(|letters| letters.into_iter().collect()),
        prop::sample::select(vec![
            "\"\\/",
            "\u{8}\t\n\u{c}\r",
            "\0\u{1f}\u{7f}",
            "\u{e000}",
            "\u{1f600}",
            "e\u{301}",
            "é"
        ])
        .prop_map(str::to_owned),
    ]
}

/// Choices, for as long as there are any; then the plainest spelling.
pub(crate) fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..400)
}

/// Writes a value in one of the many ways that mean it.
pub(crate) struct Speller<'a> {
    choices: std::slice::Iter<'a, u8>,
    /// Counts objects; the one that is to have a member twice, and where the two are, once it is written.
    objects: usize,
    twice: Option<usize>,
    pub(crate) duplicate: Option<String>,
    pub(crate) text: String,
}

impl<'a> Speller<'a> {
    pub(crate) fn new(choices: &'a [u8]) -> Self {
        Self { choices: choices.iter(), objects: 0, twice: None, duplicate: None, text: String::new() }
    }

    /// Writes a value.
    pub(crate) fn spell(choices: &'a [u8], value: &Value) -> String {
        let mut speller = Self::new(choices);
        speller.value(value, "");
        speller.text
    }

    /// Writes a value with one member twice, in an object that has members; gives the text and the place.
    pub(crate) fn spell_twice(choices: &'a [u8], value: &Value, object: usize) -> Option<(String, String)> {
        let mut speller = Self::new(choices);
        let objects = count_objects(value);
        speller.twice = Some(object.checked_rem(objects)?);
        speller.value(value, "");
        Some((speller.text, speller.duplicate?))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(*choice) % bound)
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\n", "\t\r\n "][self.below(6)];
        self.text.push_str(space);
    }

    pub(crate) fn value(&mut self, value: &Value, at: &str) {
        self.space();
        match value {
            Value::String(text) => self.string(text),
            Value::Array(elements) => self.array(elements, at),
            Value::Object(members) => self.object(members, at),
            Value::Number(number) => self.number(number),
            Value::Null | Value::Bool(_) => self.text.push_str(&value.to_string()),
        }
        self.space();
    }

    fn number(&mut self, number: &serde_json::Number) {
        let plain = number.to_string();
        let spelled = match self.below(4) {
            1 if !plain.contains(['.', 'e']) => format!("{plain}.0"),
            2 if !plain.contains(['.', 'e']) => format!("{plain}e0"),
            3 if !plain.contains('e') => format!("{plain}E+00"),
            _ => plain,
        };
        self.text.push_str(&spelled);
    }

    fn array(&mut self, elements: &[Value], at: &str) {
        self.text.push('[');
        for (position, element) in elements.iter().enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            self.value(element, &format!("{at}/{position}"));
        }
        if elements.is_empty() {
            self.space();
        }
        self.text.push(']');
    }

    fn object(&mut self, members: &serde_json::Map<String, Value>, at: &str) {
        let number = self.objects;
        self.objects += usize::from(!members.is_empty());
        let mut members: Vec<(&String, &Value)> = members.iter().collect();
        let turn = self.below(members.len().max(1));
        members.rotate_left(turn);
        if self.twice == Some(number) && !members.is_empty() {
            let (source, place) = (self.below(members.len()), self.below(members.len() + 1));
            let (name, value) = members[source];
            self.duplicate = Some(format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")));
            let other = if self.below(2) == 0 { value } else { &Value::Null };
            members.insert(place, (name, other));
        }
        self.text.push('{');
        for (position, (name, value)) in members.iter().enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            self.space();
            self.string(name);
            self.space();
            self.text.push(':');
            self.value(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")));
        }
        if members.is_empty() {
            self.space();
        }
        self.text.push('}');
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for letter in text.chars() {
            let short = match letter {
                '"' | '\\' | '/' => Some(letter),
                '\u{8}' => Some('b'),
                '\u{c}' => Some('f'),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                _ => None,
            };
            let must = letter < ' ' || letter == '"' || letter == '\\';
            match (self.below(4), short) {
                (0 | 1, _) if !must => self.text.push(letter),
                (0..=2, Some(short)) => self.text.extend(['\\', short]),
                (choice, _) => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        let _ = if choice % 2 == 1 {
                            write!(self.text, "\\u{unit:04x}")
                        } else {
                            write!(self.text, "\\u{unit:04X}")
                        };
                    }
                }
            }
        }
        self.text.push('"');
    }
}

/// How many objects have members.
fn count_objects(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(count_objects).sum(),
        Value::Object(members) => usize::from(!members.is_empty()) + members.values().map(count_objects).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
