//! RFC 0024 §5: reading the members of closed documents, each mistake with its place.

use crate::refusal::{Code, Refusal};
use json::Instant;

/// A value and where it stands.
pub(crate) type At<'a> = json::At<'a, Refusal>;

/// What this text reads beside objects, lists and texts.
pub(crate) trait Values: Sized {
    /// The elements of an array member; none when it is absent.
    fn list(&self, name: &str) -> Result<Vec<Self>, Refusal>;
    /// A truth value that is false when nobody says it.
    fn flag(&self, name: &str) -> Result<bool, Refusal>;
    fn integer(&self) -> Result<u64, Refusal>;
    fn instant(&self) -> Result<Instant, Refusal>;
}

impl Values for At<'_> {
    fn list(&self, name: &str) -> Result<Vec<Self>, Refusal> {
        self.member(name).map_or(Ok(Vec::new()), |list| list.elements())
    }

    fn flag(&self, name: &str) -> Result<bool, Refusal> {
        self.member(name).map_or(Ok(false), |flag| flag.boolean())
    }

    fn integer(&self) -> Result<u64, Refusal> {
        self.node.as_u64().map_or_else(|| self.refuse(Code::InvalidValue, "a whole number belongs here"), Ok)
    }

    fn instant(&self) -> Result<Instant, Refusal> {
        let instant = Instant::parse_rfc3339(self.string()?);
        instant.map_or_else(
            || self.refuse(Code::InvalidTimestamp, "an RFC 3339 date and time with an offset belongs here"),
            Ok,
        )
    }
}
