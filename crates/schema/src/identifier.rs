//! RFC 0024 §2 "Schema Identifier": the permanent URL of a schema, and who counts as its publisher.
//!
//! The text gives a publisher no name; decisions/0120 makes it the did:web of the URL's host, unless a DID is pinned.

use crate::read::At;
use crate::refusal::{Code, Refusal};
use std::collections::BTreeMap;
use std::fmt;
use trust::Did;

/// The permanent URL of a schema, or a URN where a schema has no host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(String);

/// Longer than any URL that people publish under.
const IDENTIFIER_BYTES_MAX: usize = 2_048;

impl SchemaId {
    /// Reads an identifier: `https` with a host, or `urn`; no fragment, no user, no blanks.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() <= IDENTIFIER_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        let named = match text.strip_prefix("https://") {
            Some(rest) => authority(rest).is_some(),
            None => text.strip_prefix("urn:").is_some_and(|rest| rest.contains(':')),
        };
        (plain && named && !text.contains('#')).then(|| Self(text.to_owned()))
    }

    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        Self::of(at, at.string()?)
    }

    pub(crate) fn of(at: &At<'_>, text: &str) -> Result<Self, Refusal> {
        let wanted = "the permanent `https` URL of a schema belongs here";
        Self::parse(text).map_or_else(|| at.refuse(Code::IdentifierInvalid, wanted), Ok)
    }

    /// The identifier as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The did:web of the host that publishes it; a URN has none.
    fn host_did(&self) -> Option<Did> {
        let authority = authority(self.0.strip_prefix("https://")?)?.to_ascii_lowercase();
        Did::parse(&format!("did:web:{}", authority.replace(':', "%3A"))).ok()
    }
}

/// Host and port of what follows `https://`.
fn authority(rest: &str) -> Option<&str> {
    let authority = rest.split(['/', '?']).next()?;
    (!authority.is_empty() && !authority.starts_with(':') && !authority.contains('@')).then_some(authority)
}

impl fmt::Display for SchemaId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Who publishes which schema.
#[derive(Clone, Debug, Default)]
pub struct Publishers {
    pinned: BTreeMap<SchemaId, Did>,
}

impl Publishers {
    /// Says that a schema is published by this DID, whoever its host is.
    pub fn pin(&mut self, schema: SchemaId, publisher: Did) {
        self.pinned.insert(schema, publisher);
    }

    /// The publisher of a schema: pinned, else its host.
    pub fn of(&self, schema: &SchemaId) -> Option<Did> {
        self.pinned.get(schema).cloned().or_else(|| schema.host_did())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_publisher_is_the_host_unless_pinned() {
        let mut publishers = Publishers::default();
        for (id, did) in [
            ("https://schemas.example/v1.0/action.json", Some("did:web:schemas.example")),
            ("https://Schemas.Example:8443/a", Some("did:web:schemas.example%3A8443")),
            ("urn:rialto:schema:withdrawal", None),
        ] {
            let found = publishers.of(&SchemaId::parse(id).unwrap());
            assert_eq!(found.as_ref().map(Did::as_str), did, "{id}");
        }
        let id = SchemaId::parse("urn:rialto:schema:withdrawal").unwrap();
        publishers.pin(id.clone(), Did::parse("did:web:rialto.example").unwrap());
        assert_eq!(publishers.of(&id).unwrap().as_str(), "did:web:rialto.example");
    }

    #[test]
    fn what_is_no_permanent_url_is_refused() {
        for id in [
            "",
            "http://schemas.example/a",
            "https://",
            "https:///a",
            "https://me@schemas.example/a",
            "https://schemas.example/a#b",
            "https://schemas.example/a b",
            "schemas.example/a",
            "urn:x",
        ] {
            assert!(SchemaId::parse(id).is_none(), "{id:?}");
        }
    }
}
