//! YAML as the texts use it: the values of JSON in another spelling.
//!
//! The core schema of YAML 1.2 decides what a plain scalar is; a key is the text that stands there, so `200:` is "200".
//! What makes YAML more than JSON is refused: anchors and aliases, merge keys, tags, several documents, keys that are no
//! scalars, infinity. So what is read is as large as what was written (decisions/0163). Where each value stands is kept,
//! so that whoever judges it can point at a line.
//!
//! INVARIANT: no recursion, and no more values than the limit before anything is built from them.

use crate::{Document, Exceeded, Limits, Map, ParseError, Pointer};
use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span};
use serde_json::Value;
use std::collections::HashMap;

/// Why bytes are refused; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The bytes are no acceptable JSON; the JSON code says why.
    Json(crate::Code),
    /// The bytes are no YAML.
    Syntax,
    /// An anchor, an alias or a merge key.
    Alias,
    /// A tag.
    Tag,
    /// A key twice in one mapping.
    DuplicateKey,
    /// More than one document.
    ManyDocuments,
    /// Something that JSON does not have.
    NotJson,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json(code) => code.name(),
            Self::Syntax => "yaml_syntax",
            Self::Alias => "yaml_alias_not_allowed",
            Self::Tag => "yaml_tag_not_allowed",
            Self::DuplicateKey => "yaml_duplicate_key",
            Self::ManyDocuments => "yaml_many_documents",
            Self::NotJson => "yaml_not_json",
        }
    }
}

/// Something that is refused: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at `{at}`")]
pub struct Refusal {
    /// What is wrong.
    pub code: Code,
    /// The place in the document.
    pub at: Pointer,
    /// Line and column, from 1, where they are known.
    pub position: Option<(usize, usize)>,
    /// What is wrong, in words, and what would be right.
    pub detail: String,
    /// The limit that was passed, if one was.
    pub limit: Option<Exceeded>,
}

impl Refusal {
    fn new(code: Code, at: Pointer, detail: &str) -> Self {
        Self { code, at, position: None, detail: detail.to_owned(), limit: None }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        let detail = error.to_string();
        let detail = detail.split(" at `").next().unwrap_or_default().to_owned();
        Self { code: Code::Json(error.code), at: error.at, position: None, detail, limit: error.limit }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// In the line, without quotes; a list or a map, too.
    Plain,
    /// In quotes of either kind.
    Quoted,
    /// Line by line after a `|`.
    Literal,
    /// As a paragraph after a `>`.
    Folded,
}

/// Where a value is written; lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The line and column of its name, where it has one.
    pub key: Option<(usize, usize)>,
    /// The line and column at which the value begins.
    pub value: (usize, usize),
    /// How it is written.
    pub style: Style,
}

/// A document, and where its values are written.
#[derive(Clone, Debug, Default)]
pub struct Yaml {
    /// What it says.
    pub document: Document,
    marks: Option<Marked>,
}

impl Yaml {
    /// Where the value at this place is written.
    pub fn mark(&self, at: &Pointer) -> Option<Mark> {
        Marked::find(self.marks.as_ref(), at)
    }
}

/// The marks of a value and of what is inside it, as a tree beside the document: places spelled out one by one would
/// take far more room than what was written.
#[derive(Clone, Debug)]
struct Marked {
    mark: Mark,
    elements: Vec<Marked>,
    members: HashMap<String, Marked>,
}

impl Marked {
    fn new(mark: Mark) -> Self {
        Self { mark, elements: Vec::new(), members: HashMap::new() }
    }

    fn find(root: Option<&Self>, at: &Pointer) -> Option<Mark> {
        let mut here = root?;
        for segment in Pointer::segments(at.as_str()) {
            let segment = segment.ok()?;
            let element = Pointer::as_index(&segment).and_then(|index| here.elements.get(index));
            here = element.or_else(|| here.members.get(&segment))?;
        }
        Some(here.mark)
    }
}

/// Reads YAML within `limits`.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Yaml, Refusal> {
    if bytes.len() > limits.bytes as usize {
        return Err(exceeded(limits, crate::Code::TooLarge, "bytes", limits.bytes, bytes.len(), Pointer::root()));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| Refusal::new(Code::Syntax, Pointer::root(), "this is no UTF-8"))?;
    let mut loader = Loader::new(limits);
    loader.load(text)?;
    let (value, marks) = loader.done.map_or((Value::Null, None), |(value, marked)| (value, Some(marked)));
    match Document::parse(value.to_string().as_bytes(), limits) {
        Ok(document) => Ok(Yaml { document, marks }),
        Err(error) => {
            let position = Marked::find(marks.as_ref(), &error.at).map(|mark| mark.value);
            Err(Refusal { position, ..Refusal::from(error) })
        }
    }
}

fn exceeded(limits: &Limits, code: crate::Code, name: &str, max: u32, got: usize, at: Pointer) -> Refusal {
    let name = format!("{}.{name}", limits.subject);
    let detail = format!("{name} is at most {max}, here {got}");
    let limit = Exceeded { name, max: u64::from(max), got: got as u64 };
    Refusal { code: Code::Json(code), at, position: None, detail, limit: Some(limit) }
}

/// A container that is not complete.
struct Open {
    container: Container,
    marked: Marked,
}

enum Container {
    List(Vec<Value>),
    Map(Map, Option<String>),
}

/// Builds a value from the events of the parser.
struct Loader<'a> {
    limits: &'a Limits,
    open: Vec<Open>,
    nodes: usize,
    documents: usize,
    key_at: Option<(usize, usize)>,
    done: Option<(Value, Marked)>,
}

impl<'a> Loader<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self { limits, open: Vec::new(), nodes: 0, documents: 0, key_at: None, done: None }
    }

    fn load(&mut self, text: &str) -> Result<(), Refusal> {
        let mut options = Options::default();
        options.set_emit_comments(false);
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.map_err(|error| self.unreadable(&error))?;
            let position = position(&span);
            self.take(event, position).map_err(|mut refusal| {
                refusal.position = Some(position);
                refusal
            })?;
        }
        Ok(())
    }

    fn mark(&mut self, value: (usize, usize), style: Style) -> Marked {
        Marked::new(Mark { key: self.key_at.take(), value, style })
    }

    fn unreadable(&self, error: &ScanError) -> Refusal {
        let marker = error.marker();
        let refusal = Refusal::new(Code::Syntax, self.at(), "this is no YAML");
        Refusal { position: Some((marker.line(), marker.col() + 1)), ..refusal }
    }

    fn take(&mut self, event: Event<'_>, position: (usize, usize)) -> Result<(), Refusal> {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(self.refused(Code::ManyDocuments, "one file holds one document"));
                }
                Ok(())
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) | Event::Anchor(..) => Err(self.aliased()),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                Err(self.aliased())
            }
            Event::Scalar(.., Some(_)) | Event::SequenceStart(.., Some(_)) | Event::MappingStart(.., Some(_)) => {
                Err(self.refused(Code::Tag, "a value is written without a tag"))
            }
            Event::Scalar(text, style, ..) => self.scalar(&text, style, position),
            Event::SequenceStart(..) => self.begin(Container::List(Vec::new()), position),
            Event::MappingStart(..) => self.begin(Container::Map(Map::new(), None), position),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            // What is left is about the presentation, such as comments.
            _ => Ok(()),
        }
    }

    fn aliased(&self) -> Refusal {
        self.refused(Code::Alias, "what stands elsewhere is written out; anchors, aliases and merge keys are not read")
    }

    fn refused(&self, code: Code, detail: &str) -> Refusal {
        Refusal::new(code, self.at(), detail)
    }

    /// Where the next value will stand.
    fn at(&self) -> Pointer {
        let mut at = Pointer::root();
        for open in &self.open {
            match &open.container {
                Container::List(values) => at.push(values.len()),
                Container::Map(_, Some(key)) => at.push(key),
                Container::Map(_, None) => {}
            }
        }
        at
    }

    fn count(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        let max = self.limits.nodes;
        if self.nodes > max as usize {
            return Err(exceeded(self.limits, crate::Code::TooManyNodes, "nodes", max, self.nodes, self.at()));
        }
        Ok(())
    }

    fn begin(&mut self, container: Container, position: (usize, usize)) -> Result<(), Refusal> {
        self.count()?;
        if let Some(Container::Map(_, None)) = self.open.last().map(|open| &open.container) {
            return Err(self.refused(Code::NotJson, "a key is a text"));
        }
        let (depth, max) = (self.open.len() + 1, self.limits.depth);
        if depth > max as usize {
            return Err(exceeded(self.limits, crate::Code::TooDeep, "depth", max, depth, self.at()));
        }
        let marked = self.mark(position, Style::Plain);
        self.open.push(Open { container, marked });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Refusal> {
        if let Some(Open { container, marked }) = self.open.pop() {
            let value = match container {
                Container::List(values) => Value::Array(values),
                Container::Map(members, _) => Value::Object(members),
            };
            self.put(value, marked);
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, position: (usize, usize)) -> Result<(), Refusal> {
        let container = self.open.last_mut().map(|open| &mut open.container);
        if let Some(Container::Map(members, key @ None)) = container {
            if members.contains_key(text) {
                *key = Some(text.to_owned());
                return Err(self.refused(Code::DuplicateKey, "this key stands here twice"));
            }
            if text == "<<" && style == ScalarStyle::Plain {
                return Err(self.aliased());
            }
            *key = Some(text.to_owned());
            self.key_at = Some(position);
            return Ok(());
        }
        self.count()?;
        let marked = self.mark(position, written(style));
        let value = match style {
            ScalarStyle::Plain => plain(text).ok_or_else(|| {
                self.refused(Code::NotJson, "JSON has no such number; write a finite one within ±(2^53 − 1), or a text")
            })?,
            _ => Value::from(text),
        };
        self.put(value, marked);
        Ok(())
    }

    fn put(&mut self, value: Value, inner: Marked) {
        let Some(Open { container, marked }) = self.open.last_mut() else {
            self.done = Some((value, inner));
            return;
        };
        match container {
            Container::List(values) => {
                values.push(value);
                marked.elements.push(inner);
            }
            Container::Map(members, key) => {
                if let Some(key) = key.take() {
                    marked.members.insert(key.clone(), inner);
                    members.insert(key, value);
                }
            }
        }
    }
}

fn written(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

fn position(span: &Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

/// The largest integer that doubles and RFC 8785 agree about.
const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// The value of a plain scalar by the core schema; `None` when it is a number that JSON does not have.
fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if [".inf", ".Inf", ".INF"].contains(&unsigned) || [".nan", ".NaN", ".NAN"].contains(&text) {
        return None;
    }
    let radix = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix)?;
        let fits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        fits.then(|| i64::from_str_radix(digits, radix).ok())
    };
    if let Some(number) = radix("0o", 8).or_else(|| radix("0x", 16)) {
        return integer(number?);
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return integer(text.strip_prefix('+').unwrap_or(text).parse().ok()?);
    }
    if is_float(unsigned) {
        let number: f64 = text.parse().ok()?;
        let whole = number.fract() != 0.0 || number.abs() <= INTEGER_MAX as f64;
        return serde_number(number).filter(|_| whole);
    }
    Some(Value::from(text))
}

fn integer(number: i64) -> Option<Value> {
    (-INTEGER_MAX..=INTEGER_MAX).contains(&number).then(|| Value::from(number))
}

fn serde_number(number: f64) -> Option<Value> {
    Some(Value::from(number)).filter(|value| !value.is_null())
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    mantissa && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

#[cfg(test)]
mod tests;
