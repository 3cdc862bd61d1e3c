//! Reading the members of closed documents, each mistake with its place.
//!
//! Every text has documents whose members are all known, and codes of its own for what is wrong with them. How they are
//! read is the same everywhere, so it stands here once, over the [`Refuse`] of whoever reads.

use crate::{Code, Exceeded, Kind, Node, ParseError, Pointer};
use std::marker::PhantomData;

/// Mistakes that every text knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A required member is absent.
    MissingField,
    /// A member that the closed document does not have.
    UnknownField,
    /// Another JSON type than the member takes.
    WrongType,
    /// The right type with content that the member does not take.
    InvalidValue,
}

/// The codes of a text.
pub trait Codes: From<Mistake> {
    /// The words about a member that is not known.
    fn unknown(_name: &str, known: &[&str]) -> String {
        format!("there is no such member here; known are {}", known.join(", "))
    }
}

/// How a text refuses.
pub trait Refuse: Sized {
    /// Its codes.
    type Code: Codes;

    /// What is wrong, where, and what would be right.
    fn refuse(code: Self::Code, at: Pointer, detail: String) -> Self;
}

/// Something that is refused: what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at `{at}`")]
pub struct Refusal<C> {
    /// What is wrong.
    pub code: C,
    /// The place in the document.
    pub at: Pointer,
    /// What is wrong, in words, and what would be right.
    pub detail: String,
    /// The limit that was passed, if one was.
    pub limit: Option<Exceeded>,
}

impl<C> Refusal<C> {
    /// A refusal of what stands at a place.
    pub fn new(code: C, at: Pointer, detail: impl Into<String>) -> Self {
        Self { code, at, detail: detail.into(), limit: None }
    }

    /// The same, because there is too much of something.
    pub fn limit(code: C, at: Pointer, name: &str, max: usize, got: usize) -> Self {
        let limit = Exceeded { name: name.to_owned(), max: max as u64, got: got as u64 };
        Self { code, at, detail: format!("{name} is at most {max}, here {got}"), limit: Some(limit) }
    }
}

impl<C: From<Code>> From<ParseError> for Refusal<C> {
    fn from(error: ParseError) -> Self {
        let detail = error.to_string();
        let detail = detail.split(" at `").next().unwrap_or_default().to_owned();
        Self { code: error.code.into(), at: error.at, detail, limit: error.limit }
    }
}

impl<C: Codes> Refuse for Refusal<C> {
    type Code = C;

    fn refuse(code: C, at: Pointer, detail: String) -> Self {
        Self::new(code, at, detail)
    }
}

/// A value and where it stands; `R` is how its text refuses.
#[derive(Clone, Debug)]
pub struct At<'a, R> {
    /// The value.
    pub node: Node<'a>,
    /// Where it stands.
    pub at: Pointer,
    refusal: PhantomData<fn() -> R>,
}

impl<'a, R: Refuse> At<'a, R> {
    /// The outermost value.
    pub fn root(node: Node<'a>) -> Self {
        Self::new(node, Pointer::root())
    }

    /// A value at a place.
    pub fn new(node: Node<'a>, at: Pointer) -> Self {
        Self { node, at, refusal: PhantomData }
    }

    /// Refuses this value.
    pub fn refuse<T>(&self, code: impl Into<R::Code>, detail: impl Into<String>) -> Result<T, R> {
        Err(R::refuse(code.into(), self.at.clone(), detail.into()))
    }

    /// Refuses this value because something else belongs here.
    pub fn wrong_type<T>(&self, expected: &str) -> Result<T, R> {
        self.refuse(Mistake::WrongType, format!("{expected} belongs here, not {}", self.node.kind().name()))
    }

    /// An object.
    pub fn object(&self) -> Result<(), R> {
        if self.node.is_object() { Ok(()) } else { self.wrong_type("an object") }
    }

    /// An object that has no member beyond those named.
    pub fn closed(&self, members: &[&str]) -> Result<(), R> {
        self.object()?;
        match self.node.members().find(|(name, _)| !members.contains(name)) {
            Some((name, _)) => {
                let code = Mistake::UnknownField.into();
                Err(R::refuse(code, self.at.child(name), R::Code::unknown(name, members)))
            }
            None => Ok(()),
        }
    }

    /// A member, if it is there.
    pub fn member(&self, name: &str) -> Option<Self> {
        self.node.get(name).map(|node| Self::new(node, self.at.child(name)))
    }

    /// A member that has to be there.
    pub fn required(&self, name: &str) -> Result<Self, R> {
        self.member(name).ok_or_else(|| {
            let detail = format!("the member `{name}` is missing");
            R::refuse(Mistake::MissingField.into(), self.at.child(name), detail)
        })
    }

    /// The members of an object with their places.
    pub fn members(&self) -> Result<Vec<(&'a str, Self)>, R> {
        self.object()?;
        Ok(self.node.members().map(|(name, node)| (name, Self::new(node, self.at.child(name)))).collect())
    }

    /// The elements of an array with their places.
    pub fn elements(&self) -> Result<Vec<Self>, R> {
        if self.node.kind() != Kind::Array {
            return self.wrong_type("an array");
        }
        let place = |(position, node): (usize, Node<'a>)| Self::new(node, self.at.child(position));
        Ok(self.node.elements().enumerate().map(place).collect())
    }

    /// A text.
    pub fn string(&self) -> Result<&'a str, R> {
        self.node.as_str().map_or_else(|| self.wrong_type("a string"), Ok)
    }

    /// A truth value.
    pub fn boolean(&self) -> Result<bool, R> {
        self.node.as_bool().map_or_else(|| self.wrong_type("a boolean"), Ok)
    }
}
