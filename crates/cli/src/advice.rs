//! What to do about a refusal: the advice of `spec/refusals.toml`, carried in the binary.

use serde::Deserialize;

const REFUSALS: &str = include_str!("../../../spec/refusals.toml");

#[derive(Deserialize)]
struct Refusals {
    family: Vec<Family>,
}

#[derive(Deserialize)]
struct Family {
    refusal: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    code: String,
    advice: String,
}

/// The advice for a code.
pub(crate) fn on(code: &str) -> Option<String> {
    let refusals: Refusals = toml::from_str(REFUSALS).ok()?;
    let mut entries = refusals.family.into_iter().flat_map(|family| family.refusal);
    entries.find(|entry| entry.code == code).map(|entry| as_help(&entry.advice))
}

/// In the list advice is a sentence; behind `help:` it goes on in lower case and without a full stop.
fn as_help(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_refusal_has_advice() {
        for code in ["unknown_operator", "json_duplicate_key", "signature_invalid", "intent_expired"] {
            let advice = on(code).unwrap();
            assert!(!advice.ends_with('.') && advice.starts_with(char::is_lowercase), "{advice}");
        }
        assert_eq!(on("no_such_code"), None);
    }
}
