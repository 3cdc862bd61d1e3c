//! RFC 0020 §3.1: reading the members of a closed object, each mistake with its place.

use crate::refusal::{Code, Refusal};
use json::{Kind, Node, Pointer};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) at: Pointer,
}

impl<'a> Place<'a> {
    pub(crate) fn root(node: Node<'a>) -> Self {
        Self { node, at: Pointer::root() }
    }

    pub(crate) fn refuse<T>(&self, code: Code, detail: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::new(code, self.at.clone(), detail))
    }

    fn wrong_type<T>(&self, expected: &str) -> Result<T, Refusal> {
        self.refuse(Code::WrongType, format!("{expected} belongs here, not {}", self.node.kind().name()))
    }

    /// An object that has no member beyond those named.
    pub(crate) fn closed(&self, members: &[&str]) -> Result<(), Refusal> {
        if self.node.kind() != Kind::Object {
            return self.wrong_type("an object");
        }
        match self.node.members().find(|(name, _)| !members.contains(name)) {
            Some((name, _)) => {
                let detail = format!("there is no member `{}` here; known are {}", shorten(name), members.join(", "));
                Err(Refusal::new(Code::UnknownField, self.at.child(name), detail))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        self.node.get(name).map(|node| Self { node, at: self.at.child(name) })
    }

    pub(crate) fn required(&self, name: &str) -> Result<Self, Refusal> {
        let missing =
            || Refusal::new(Code::MissingField, self.at.child(name), format!("the member `{name}` is missing"));
        self.member(name).ok_or_else(missing)
    }

    pub(crate) fn elements(&self) -> Result<Vec<Self>, Refusal> {
        if self.node.kind() != Kind::Array {
            return self.wrong_type("an array");
        }
        let place = |(position, node): (usize, Node<'a>)| Self { node, at: self.at.child(position) };
        Ok(self.node.elements().enumerate().map(place).collect())
    }

    pub(crate) fn string(&self) -> Result<&'a str, Refusal> {
        self.node.as_str().map_or_else(|| self.wrong_type("a string"), Ok)
    }

    pub(crate) fn boolean(&self) -> Result<bool, Refusal> {
        self.node.as_bool().map_or_else(|| self.wrong_type("a boolean"), Ok)
    }

    pub(crate) fn number(&self) -> Result<f64, Refusal> {
        self.node.as_f64().map_or_else(|| self.wrong_type("a number"), Ok)
    }

    pub(crate) fn integer(&self, from: u64) -> Result<u64, Refusal> {
        self.number()?;
        match self.node.as_u64() {
            Some(integer) if integer >= from => Ok(integer),
            _ => self.refuse(Code::InvalidValue, format!("an integer of at least {from} belongs here")),
        }
    }

    pub(crate) fn fraction(&self) -> Result<f64, Refusal> {
        let number = self.number()?;
        match (0.0..=1.0).contains(&number) {
            true => Ok(number),
            false => self.refuse(Code::InvalidValue, "a number from 0 to 1 belongs here"),
        }
    }

    /// One of a closed set of words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Refusal> {
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

    pub(crate) fn strings(&self) -> Result<Vec<String>, Refusal> {
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
