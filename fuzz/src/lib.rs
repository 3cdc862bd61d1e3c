//! What the fuzz targets share: texts and documents made from bytes, and the answers of both engines in one shape.
//!
//! A target reads its input as text where a person should be able to write a seed, and as a row of choices
//! (`conformance::chance`) where the question has a structure that random text would hardly ever hit.

use conformance::chance::Chance;
use serde_json::Value;

/// What an engine says: something, or a refusal as code and place.
pub type Answer<T> = Result<T, (String, String)>;

/// A refusal of `json` as code and place.
pub fn unread(error: &json::ParseError) -> (String, String) {
    (error.code.name().to_owned(), error.at.to_string())
}

/// A refusal of `aql` as code and place.
pub fn refused(refusal: &aql::Refusal) -> (String, String) {
    (refusal.code.name().to_owned(), refusal.at.to_string())
}

/// A refusal of the twin as code and place.
pub fn twin_refused(refusal: &reference::Refusal) -> (String, String) {
    (refusal.code.to_owned(), refusal.at.clone())
}

/// The bytes as text; what is no UTF-8 is replaced.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One word for each byte: random bytes become texts that are full of syntax.
pub fn spell(bytes: &[u8], words: &[&str]) -> String {
    bytes.iter().filter_map(|byte| words.get(usize::from(*byte) % words.len())).copied().collect()
}

/// The first characters of a text.
pub fn head(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// The first line of a text, and the rest.
pub fn first_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// The document of a value that is small enough for every limit.
#[track_caller]
pub fn document(value: &Value) -> json::Document {
    json::Document::of(value).expect("generated values are readable")
}

/// The same value for the twin.
#[track_caller]
pub fn twin_value(value: &Value) -> reference::Value {
    let text = value.to_string();
    reference::parse(text.as_bytes(), &reference::Limits::document()).expect("generated values are readable")
}

/// The place of every value of a document, outermost first.
pub fn places(value: &Value) -> Vec<json::Pointer> {
    let mut found = Vec::new();
    walk(value, json::Pointer::root(), &mut found);
    found
}

fn walk(value: &Value, at: json::Pointer, found: &mut Vec<json::Pointer>) {
    found.push(at.clone());
    match value {
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(position, element)| walk(element, at.child(position), found));
        }
        Value::Object(members) => members.iter().for_each(|(name, member)| walk(member, at.child(name), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One of the places of a value.
pub fn place(chance: &mut Chance<'_>, value: &Value) -> json::Pointer {
    // The low byte alone would reach only the first 256 places, which is enough for what is generated.
    chance.pick(&places(value)).cloned().unwrap_or_default()
}
