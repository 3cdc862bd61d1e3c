//! The public conformance tests of CEL, those without protobuf messages, against our assertions.
//!
//! They are read where they lie beside the project; where they do not, the test says that it was skipped.
//! `docs/openagentspec.md` has the last result. A test becomes an assertion of ours: the expression compared with the value that it should have.

use agent::{Assertion, Code, Failing};
use json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A value of the text format of protocol buffers.
#[derive(Clone, Debug)]
enum Proto {
    Message(Vec<(String, Proto)>),
    Text(Vec<u8>),
    Word(String),
}

impl Proto {
    fn all<'a>(&'a self, name: &str) -> std::vec::IntoIter<&'a Proto> {
        let fields = match self {
            Self::Message(fields) => fields.as_slice(),
            _ => &[],
        };
        let named = fields.iter().filter(|(field, _)| field == name).map(|(_, value)| value);
        named.collect::<Vec<_>>().into_iter()
    }

    fn get<'a>(&'a self, name: &str) -> Option<&'a Proto> {
        self.all(name).next()
    }

    fn text(&self) -> String {
        match self {
            Self::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Word(word) => word.clone(),
            Self::Message(_) => String::new(),
        }
    }

    fn only(&self) -> Option<(&str, &Proto)> {
        match self {
            Self::Message(fields) => fields.first().map(|(name, value)| (name.as_str(), value)),
            _ => None,
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ';');
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = &comment[comment.find('\n').unwrap_or(comment.len())..],
                None => return,
            }
        }
    }

    fn take(&mut self, mark: char) -> bool {
        self.blank();
        let found = self.rest.strip_prefix(mark);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn word(&mut self) -> String {
        self.blank();
        let inside = self.rest.starts_with('[');
        let ends = |c: char| if inside { c == ']' } else { !(c.is_alphanumeric() || "_.+-".contains(c)) };
        let end = self.rest.find(ends).unwrap_or(self.rest.len()) + usize::from(inside);
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    fn message(&mut self) -> Proto {
        let mut fields = Vec::new();
        loop {
            self.blank();
            if self.rest.is_empty() || self.rest.starts_with(['}', '>']) {
                return Proto::Message(fields);
            }
            let name = self.word();
            assert!(!name.is_empty(), "{:.60}", self.rest);
            self.take(':');
            if self.take('[') {
                while !self.take(']') {
                    let value = self.value();
                    fields.push((name.clone(), value));
                }
            } else {
                let value = self.value();
                fields.push((name, value));
            }
        }
    }

    fn value(&mut self) -> Proto {
        self.blank();
        for (open, close) in [('{', '}'), ('<', '>')] {
            if self.take(open) {
                let message = self.message();
                assert!(self.take(close), "{:.60}", self.rest);
                return message;
            }
        }
        if !self.rest.starts_with(['"', '\'']) {
            return Proto::Word(self.word());
        }
        let mut bytes = Vec::new();
        while self.rest.starts_with(['"', '\'']) {
            self.quoted(&mut bytes);
            self.blank();
        }
        Proto::Text(bytes)
    }

    fn quoted(&mut self, bytes: &mut Vec<u8>) {
        let quote = self.rest.as_bytes()[0];
        let text = self.rest.as_bytes();
        let mut at = 1;
        while text[at] != quote {
            if text[at] != b'\\' {
                bytes.push(text[at]);
                at += 1;
                continue;
            }
            at += 1;
            let digits = |radix: u32, most: usize, from: usize| {
                let digits: String =
                    text[from..].iter().take(most).map(|b| *b as char).take_while(|c| c.is_digit(radix)).collect();
                (u32::from_str_radix(&digits, radix).unwrap(), digits.len())
            };
            match text[at] {
                b'n' => bytes.push(b'\n'),
                b't' => bytes.push(b'\t'),
                b'r' => bytes.push(b'\r'),
                b'a' => bytes.push(7),
                b'b' => bytes.push(8),
                b'f' => bytes.push(12),
                b'v' => bytes.push(11),
                b'0'..=b'7' => {
                    let (value, length) = digits(8, 3, at);
                    bytes.push(value as u8);
                    at += length - 1;
                }
                b'x' => {
                    let (value, length) = digits(16, 2, at + 1);
                    bytes.push(value as u8);
                    at += length;
                }
                letter @ (b'u' | b'U') => {
                    let (value, length) = digits(16, if letter == b'u' { 4 } else { 8 }, at + 1);
                    let character = char::from_u32(value).unwrap();
                    bytes.extend(character.to_string().as_bytes());
                    at += length;
                }
                other => bytes.push(other),
            }
            at += 1;
        }
        self.rest = &self.rest[at + 1..];
    }
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// The value as CEL writes it; nothing for messages.
fn literal(value: &Proto) -> Option<String> {
    let (kind, inner) = value.only()?;
    Some(match kind {
        "int64_value" => format!("({})", inner.text()),
        "uint64_value" => format!("{}u", inner.text()),
        "double_value" => match inner.text().to_lowercase().as_str() {
            "nan" => return None,
            "inf" | "infinity" => "double('inf')".to_owned(),
            "-inf" | "-infinity" => "double('-inf')".to_owned(),
            text => format!("double('{text}')"),
        },
        "bool_value" => inner.text(),
        "null_value" => "null".to_owned(),
        "string_value" => {
            let text = inner.text();
            let characters = text.chars().map(|c| format!("\\U{:08x}", c as u32));
            format!("'{}'", characters.collect::<String>())
        }
        "bytes_value" => match inner {
            Proto::Text(bytes) => format!("b'{}'", escaped(bytes)),
            _ => return None,
        },
        "type_value" => inner.text(),
        "list_value" => {
            let values: Option<Vec<String>> = inner.all("values").map(literal).collect();
            format!("[{}]", values?.join(", "))
        }
        "map_value" => {
            let entry =
                |entry: &Proto| Some(format!("{}: {}", literal(entry.get("key")?)?, literal(entry.get("value")?)?));
            let entries: Option<Vec<String>> = inner.all("entries").map(entry).collect();
            format!("{{{}}}", entries?.join(", "))
        }
        _ => return None,
    })
}

/// The value as JSON; nothing where JSON has none or would change its type.
fn bound(value: &Proto) -> Option<Value> {
    let (kind, inner) = value.only()?;
    match kind {
        "int64_value" => inner.text().parse::<i64>().ok().map(Value::from),
        "bool_value" => Some(Value::from(inner.text() == "true")),
        "null_value" => Some(Value::Null),
        "string_value" => Some(Value::from(inner.text())),
        "double_value" => inner.text().parse::<f64>().ok().filter(|n| n.fract() != 0.0).map(Value::from),
        "list_value" => inner.all("values").map(bound).collect(),
        "map_value" => {
            let entry =
                |entry: &Proto| Some((bound(entry.get("key")?)?.as_str()?.to_owned(), bound(entry.get("value")?)?));
            inner.all("entries").map(entry).collect::<Option<Map>>().map(Value::Object)
        }
        _ => None,
    }
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    Passed,
    Missed,
    /// Larger or deeper than an assertion may be.
    Bounds,
    /// It needs something of protobuf, or a variable that JSON cannot hold.
    Outside,
}

fn ours(test: &Proto) -> Came {
    let source = test.get("expr").map(Proto::text).unwrap_or_default();
    let messages = ["google.protobuf", "TestAllTypes", "GlobalEnum", "NestedEnum", "cel.expr", "proto."];
    let outside = messages.iter().any(|word| source.contains(word)) || test.get("container").is_some();
    let unlike = ["typed_result", "unknown", "any_unknowns"].iter().any(|field| test.get(field).is_some());
    if outside || unlike || test.get("disable_macros").is_some() {
        return Came::Outside;
    }
    let mut variables = Map::new();
    for binding in test.all("bindings") {
        let name = binding.get("key").map(Proto::text).unwrap_or_default();
        match binding.get("value").and_then(|value| value.get("value")).and_then(bound) {
            Some(value) if !name.contains('.') => variables.insert(name, value),
            _ => return Came::Outside,
        };
    }
    let fails = test.get("eval_error").is_some() || test.get("any_eval_errors").is_some();
    let asked = match test.get("value") {
        None if fails => source,
        None => format!("({source}\n)"),
        Some(value) => match (literal(value), value.only()) {
            (Some(literal), _) => format!("({source}\n) == {literal}"),
            (None, Some(("double_value", _))) => format!("string(({source}\n)) == 'NaN'"),
            (None, _) => return Came::Outside,
        },
    };
    let held = match Assertion::read(&asked, &[]) {
        Ok(assertion) => assertion.holds(&Value::Object(variables)),
        Err(finding) if finding.code == Code::AssertionTooComplex => return Came::Bounds,
        Err(_) => Err(Failing::Error("no expression".to_owned())),
    };
    let passed = if fails { matches!(held, Err(Failing::Error(_))) } else { held.is_ok() };
    match (passed, held) {
        (true, _) => Came::Passed,
        (false, Err(Failing::Budget)) => Came::Bounds,
        (false, _) => Came::Missed,
    }
}

/// Files about functions beyond standard CEL, none of which is offered.
const EXTENSIONS: [&str; 8] =
    ["bindings_ext", "block_ext", "encoders_ext", "macros2", "math_ext", "network_ext", "proto2_ext", "string_ext"];

/// Tests of standard CEL that we miss, each with its reason in the documentation.
const MISSED: &[&str] = &[
    "optionals/optionals/empty_map_optFlatMap_hasValue",
    "optionals/optionals/map_empty_submap_optFlatMap_hasValue",
    "optionals/optionals/map_optindex_optFlatMap_optional_ofNonZeroValue_hasValue",
    "optionals/optionals/map_submap_optFlatMap_value",
    "optionals/optionals/map_submap_subkey_optFlatMap_value",
    "optionals/optionals/none_optMap_hasValue",
    "optionals/optionals/optional_of_optMap_value",
];

/// Tests of standard CEL that are larger or deeper than an assertion may be.
const BEYOND: &[&str] =
    &["parse/repeat/add_sub", "parse/repeat/conditional", "parse/repeat/index", "parse/repeat/mul_div"];

#[test]
fn standard_cel_is_standard_cel() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora/cel-spec/tests/simple/testdata");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return eprintln!("skipped: the tests of CEL are not at {}", folder.display());
    };
    let mut counts: BTreeMap<(bool, Came), usize> = BTreeMap::new();
    let (mut missed, mut beyond) = (Vec::new(), Vec::new());
    for path in
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "textproto"))
    {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let document = Reader { rest: &text }.message();
        let extension = EXTENSIONS.contains(&file.as_str());
        for section in document.all("section") {
            for test in section.all("test") {
                let came = ours(test);
                *counts.entry((extension, came)).or_default() += 1;
                let name = |proto: &Proto| proto.get("name").map(Proto::text).unwrap_or_default();
                let named = || format!("{file}/{}/{}", name(section), name(test));
                match came {
                    Came::Missed if !extension => missed.push(named()),
                    Came::Bounds if !extension => beyond.push(named()),
                    Came::Passed | Came::Missed | Came::Bounds | Came::Outside => {}
                }
            }
        }
    }
    missed.sort();
    beyond.sort();
    assert_eq!(missed, MISSED, "{counts:?}");
    assert_eq!(beyond, BEYOND, "{counts:?}");
    assert_eq!(counts[&(false, Came::Passed)], 1_118, "{counts:?}");
}
