//! RFC 0024 §5: reading the members of closed documents, each mistake with its place.

use crate::refusal::{Code, Refusal};
use json::{Instant, Kind, Node, Pointer};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) place: Pointer,
}

impl<'a> At<'a> {
    pub(crate) fn root(node: Node<'a>) -> Self {
        Self { node, place: Pointer::root() }
    }

    pub(crate) fn refuse<T>(&self, code: Code, detail: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::new(code, self.place.clone(), detail))
    }

    pub(crate) fn wrong_type<T>(&self, expected: &str) -> Result<T, Refusal> {
        self.refuse(Code::WrongType, format!("{expected} belongs here, not {}", self.node.kind().name()))
    }

    pub(crate) fn object(&self) -> Result<(), Refusal> {
        if self.node.is_object() { Ok(()) } else { self.wrong_type("an object") }
    }

    /// An object that has no member beyond those named.
    pub(crate) fn closed(&self, members: &[&str]) -> Result<(), Refusal> {
        self.object()?;
        match self.node.members().find(|(name, _)| !members.contains(name)) {
            Some((name, _)) => {
                let detail = format!("there is no such member here; known are {}", members.join(", "));
                Err(Refusal::new(Code::UnknownField, self.place.child(name), detail))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        self.node.get(name).map(|node| Self { node, place: self.place.child(name) })
    }

    pub(crate) fn required(&self, name: &str) -> Result<Self, Refusal> {
        let missing =
            || Refusal::new(Code::MissingField, self.place.child(name), format!("the member `{name}` is missing"));
        self.member(name).ok_or_else(missing)
    }

    /// The members of an object with their places.
    pub(crate) fn members(&self) -> Result<Vec<(&'a str, Self)>, Refusal> {
        self.object()?;
        Ok(self.node.members().map(|(name, node)| (name, Self { node, place: self.place.child(name) })).collect())
    }

    pub(crate) fn elements(&self) -> Result<Vec<Self>, Refusal> {
        if self.node.kind() != Kind::Array {
            return self.wrong_type("an array");
        }
        let place = |(position, node): (usize, Node<'a>)| Self { node, place: self.place.child(position) };
        Ok(self.node.elements().enumerate().map(place).collect())
    }

    /// The elements of an array member; none when it is absent.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<Self>, Refusal> {
        self.member(name).map_or(Ok(Vec::new()), |list| list.elements())
    }

    pub(crate) fn string(&self) -> Result<&'a str, Refusal> {
        self.node.as_str().map_or_else(|| self.wrong_type("a string"), Ok)
    }

    pub(crate) fn boolean(&self) -> Result<bool, Refusal> {
        self.node.as_bool().map_or_else(|| self.wrong_type("a boolean"), Ok)
    }

    /// A truth value that is false when nobody says it.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        self.member(name).map_or(Ok(false), |flag| flag.boolean())
    }

    pub(crate) fn integer(&self) -> Result<u64, Refusal> {
        self.node.as_u64().map_or_else(|| self.refuse(Code::InvalidValue, "a whole number belongs here"), Ok)
    }

    pub(crate) fn instant(&self) -> Result<Instant, Refusal> {
        let instant = Instant::parse_rfc3339(self.string()?);
        instant.map_or_else(
            || self.refuse(Code::InvalidTimestamp, "an RFC 3339 date and time with an offset belongs here"),
            Ok,
        )
    }
}
