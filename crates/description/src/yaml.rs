//! YAML as the texts use it for interface definitions: the values of JSON in another spelling.
//!
//! The core schema of YAML 1.2 decides what a plain scalar is; a key is the text that stands there, so `200:` is "200".
//! What makes YAML more than JSON is refused: anchors and aliases, merge keys, tags, several documents, keys that are no
//! scalars, infinity. So what is read is as large as what was written (decisions/0163).
//!
//! INVARIANT: no recursion, and no more values than the limit before anything is built from them.

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span};
use json::{Document, Exceeded, Limits, Map, ParseError, Pointer, Value};

/// How large the definition of an interface may be, in YAML and in JSON.
pub const DEFINITION_LIMITS: Limits = Limits { subject: "interface definition", bytes: 512 * 1024, ..Limits::DOCUMENT };

/// Why a document about an interface is refused; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The bytes are no acceptable JSON; the JSON code says why.
    Json(json::Code),
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
    /// No form of interface definition that we know.
    Unknown,
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
            Self::Unknown => "interface_unknown",
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
    pub(crate) fn new(code: Code, at: Pointer, detail: &str) -> Self {
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

/// Reads YAML into a document.
pub fn parse_yaml(bytes: &[u8]) -> Result<Document, Refusal> {
    if bytes.len() > DEFINITION_LIMITS.bytes as usize {
        return Err(exceeded(json::Code::TooLarge, "bytes", DEFINITION_LIMITS.bytes, bytes.len(), Pointer::root()));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| Refusal::new(Code::Syntax, Pointer::root(), "this is no UTF-8"))?;
    let value = Loader::default().load(text)?;
    Ok(Document::parse(value.to_string().as_bytes(), &DEFINITION_LIMITS)?)
}

fn exceeded(code: json::Code, name: &str, max: u32, got: usize, at: Pointer) -> Refusal {
    let name = format!("{}.{name}", DEFINITION_LIMITS.subject);
    let detail = format!("{name} is at most {max}, here {got}");
    let limit = Exceeded { name, max: u64::from(max), got: got as u64 };
    Refusal { code: Code::Json(code), at, position: None, detail, limit: Some(limit) }
}

/// A container that is not complete.
enum Open {
    List(Vec<Value>),
    Map(Map, Option<String>),
}

/// Builds a value from the events of the parser.
#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    nodes: usize,
    documents: usize,
    done: Option<Value>,
}

impl Loader {
    fn load(mut self, text: &str) -> Result<Value, Refusal> {
        let mut options = Options::default();
        options.set_emit_comments(false);
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.map_err(|error| self.unreadable(&error))?;
            self.take(event).map_err(|mut refusal| {
                refusal.position = Some(position(&span));
                refusal
            })?;
        }
        Ok(self.done.unwrap_or(Value::Null))
    }

    fn unreadable(&self, error: &ScanError) -> Refusal {
        let marker = error.marker();
        let refusal = Refusal::new(Code::Syntax, self.at(), "this is no YAML");
        Refusal { position: Some((marker.line(), marker.col() + 1)), ..refusal }
    }

    fn take(&mut self, event: Event<'_>) -> Result<(), Refusal> {
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
            Event::Scalar(text, style, ..) => self.scalar(&text, style),
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map(Map::new(), None)),
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
            match open {
                Open::List(values) => at.push(values.len()),
                Open::Map(_, Some(key)) => at.push(key),
                Open::Map(_, None) => {}
            }
        }
        at
    }

    fn count(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        if self.nodes > DEFINITION_LIMITS.nodes as usize {
            return Err(exceeded(json::Code::TooManyNodes, "nodes", DEFINITION_LIMITS.nodes, self.nodes, self.at()));
        }
        Ok(())
    }

    fn begin(&mut self, container: Open) -> Result<(), Refusal> {
        self.count()?;
        if let Some(Open::Map(_, None)) = self.open.last() {
            return Err(self.refused(Code::NotJson, "a key is a text"));
        }
        if self.open.len() == DEFINITION_LIMITS.depth as usize {
            return Err(exceeded(
                json::Code::TooDeep,
                "depth",
                DEFINITION_LIMITS.depth,
                self.open.len() + 1,
                self.at(),
            ));
        }
        self.open.push(container);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Refusal> {
        let value = match self.open.pop() {
            Some(Open::List(values)) => Value::Array(values),
            Some(Open::Map(members, _)) => Value::Object(members),
            None => Value::Null,
        };
        self.put(value);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), Refusal> {
        if let Some(Open::Map(members, key @ None)) = self.open.last_mut() {
            if members.contains_key(text) {
                *key = Some(text.to_owned());
                return Err(self.refused(Code::DuplicateKey, "this key stands here twice"));
            }
            if text == "<<" && style == ScalarStyle::Plain {
                return Err(self.aliased());
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        self.count()?;
        let value = match style {
            ScalarStyle::Plain => plain(text).ok_or_else(|| {
                self.refused(Code::NotJson, "JSON has no such number; write a finite one within ±(2^53 − 1), or a text")
            })?,
            _ => Value::from(text),
        };
        self.put(value);
        Ok(())
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Open::List(values)) => values.push(value),
            Some(Open::Map(members, key)) => {
                if let Some(key) = key.take() {
                    members.insert(key, value);
                }
            }
            None => self.done = Some(value),
        }
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
