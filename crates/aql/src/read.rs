//! RFC 0020 §3.1: reading the members of a closed object, each mistake with its place.

use crate::refusal::{Code, Refusal};

/// A value and where it stands.
pub(crate) type Place<'a> = json::At<'a, Refusal>;

/// What this text reads beside objects, lists and texts.
pub(crate) trait Values {
    fn number(&self) -> Result<f64, Refusal>;
    fn integer(&self, from: u64) -> Result<u64, Refusal>;
    fn fraction(&self) -> Result<f64, Refusal>;
    /// One of a closed set of words.
    fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Refusal>;
    fn strings(&self) -> Result<Vec<String>, Refusal>;
}

impl Values for Place<'_> {
    fn number(&self) -> Result<f64, Refusal> {
        self.node.as_f64().map_or_else(|| self.wrong_type("a number"), Ok)
    }

    fn integer(&self, from: u64) -> Result<u64, Refusal> {
        self.number()?;
        match self.node.as_u64() {
            Some(integer) if integer >= from => Ok(integer),
            _ => self.refuse(Code::InvalidValue, format!("an integer of at least {from} belongs here")),
        }
    }

    fn fraction(&self) -> Result<f64, Refusal> {
        let number = self.number()?;
        match (0.0..=1.0).contains(&number) {
            true => Ok(number),
            false => self.refuse(Code::InvalidValue, "a number from 0 to 1 belongs here"),
        }
    }

    fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Refusal> {
        let text = self.string()?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let detail = format!("`{}` is none of {}", shorten(text), known.join(", "));
                self.refuse(Code::InvalidValue, detail)
            }
        }
    }

    fn strings(&self) -> Result<Vec<String>, Refusal> {
        self.elements()?.iter().map(|element| element.string().map(str::to_owned)).collect()
    }
}

/// What we repeat of a stranger's words is short.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A DID, as far as the language looks at it; `trust` reads the rest.
pub(crate) fn did(place: &Place<'_>) -> Result<String, Refusal> {
    let text = place.string()?;
    let mut parts = text.splitn(3, ':');
    let method =
        |method: &str| !method.is_empty() && method.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    match (parts.next(), parts.next(), parts.next()) {
        (Some("did"), Some(name), Some(rest)) if method(name) && is_line(rest) => Ok(text.to_owned()),
        _ => place.refuse(Code::InvalidValue, "a DID such as `did:key:z6Mk…` belongs here"),
    }
}

/// Text that is not empty and stays on one line, as `.+` means it in the published schemas.
pub(crate) fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\r', '\u{2028}', '\u{2029}'])
}

/// A currency code: three to five capital letters.
pub(crate) fn currency(place: &Place<'_>) -> Result<String, Refusal> {
    let text = place.string()?;
    let fits = (3..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase());
    if fits {
        Ok(text.to_owned())
    } else {
        place.refuse(Code::InvalidValue, "a currency is three to five capital letters")
    }
}
