//! RFC 0020 §3.1 `issuer_did`: decentralised identifiers.
//!
//! A DID is compared as text, so what could spell one identity in two ways is refused rather than folded: nothing is
//! percent-decoded, trimmed or lower-cased.
//!
//! INVARIANT: only [`Did::parse`] and a key make a [`Did`], so each one obeys the grammar of its method.

mod key;
mod wba;
mod web;

pub use wba::Binding;

use crate::{KeyError, PublicKey};
use std::fmt;
use std::hash::{Hash, Hasher};

/// The longest DID we read: a host name and a handful of path segments fit many times.
const DID_BYTES_MAX: usize = 2048;

/// A decentralised identifier, well-formed for its method.
#[derive(Clone)]
pub struct Did {
    text: Box<str>,
    subject: Subject,
}

/// What the method-specific part says.
#[derive(Clone)]
enum Subject {
    Key(Box<PublicKey>),
    Web,
    Wba,
    Other,
}

/// How the keys of a DID are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `did:key`: the identifier is the key.
    Key,
    /// `did:web`: a document at a well-known place of a host.
    Web,
    /// `did:wba`: the same place, read by agents of the ANP family.
    Wba,
    /// A method whose documents somebody else must find.
    Other,
}

impl Did {
    /// Reads a DID as written.
    pub fn parse(text: &str) -> Result<Self, DidError> {
        if text.len() > DID_BYTES_MAX {
            return Err(DidError::TooLong);
        }
        let (method, id) = split(text).ok_or(DidError::Syntax)?;
        let subject = match method {
            "key" => Subject::Key(Box::new(key::read(id)?)),
            "web" => web::Location::read(id).map(|_| Subject::Web)?,
            "wba" => wba::read(id).map(|_| Subject::Wba)?,
            _ => Subject::Other,
        };
        Ok(Self { text: text.into(), subject })
    }

    /// The `did:key` of a public key.
    pub fn of_key(key: PublicKey) -> Self {
        Self { text: key::write(&key).into(), subject: Subject::Key(Box::new(key)) }
    }

    /// The DID as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How its keys are found.
    pub fn method(&self) -> Method {
        match self.subject {
            Subject::Key(_) => Method::Key,
            Subject::Web => Method::Web,
            Subject::Wba => Method::Wba,
            Subject::Other => Method::Other,
        }
    }

    /// The key a `did:key` carries; other methods carry none.
    pub fn key(&self) -> Option<&PublicKey> {
        match &self.subject {
            Subject::Key(key) => Some(key),
            Subject::Web | Subject::Wba | Subject::Other => None,
        }
    }

    /// Where the document of a `did:web` or `did:wba` lies; other methods have no such place.
    pub fn document_url(&self) -> Option<String> {
        match self.subject {
            Subject::Web | Subject::Wba => web::Location::read(self.id()).ok().map(|location| location.document_url()),
            Subject::Key(_) | Subject::Other => None,
        }
    }

    /// The key that the name itself is bound to, for a `did:wba` that ends in a fingerprint.
    pub fn binding(&self) -> Option<Binding<'_>> {
        match self.subject {
            Subject::Wba => wba::read(self.id()).ok().and_then(|location| wba::binding(&location)),
            Subject::Key(_) | Subject::Web | Subject::Other => None,
        }
    }

    /// The part behind `did:<method>:`.
    pub(crate) fn id(&self) -> &str {
        split(&self.text).map_or("", |(_, id)| id)
    }
}

/// Splits a DID into method and method-specific part after the generic grammar (W3C DID Core §3.1).
fn split(text: &str) -> Option<(&str, &str)> {
    let (method, id) = text.strip_prefix("did:")?.split_once(':')?;
    let named = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let closed = !id.is_empty() && !id.ends_with(':');
    (named && closed && id.split('%').skip(1).all(opens_with_hex) && id.bytes().all(is_id_byte)).then_some((method, id))
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte)
}

fn opens_with_hex(text: &str) -> bool {
    text.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2
}

impl fmt::Display for Did {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Debug for Did {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Did({})", self.text)
    }
}

impl PartialEq for Did {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Did {}

impl Hash for Did {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// One thing inside a DID's document, mostly a key: the DID, `#` and a fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DidUrl {
    did: Did,
    fragment: Box<str>,
}

impl DidUrl {
    /// Reads a DID URL that has a fragment and neither path nor query.
    pub fn parse(text: &str) -> Result<Self, DidError> {
        let (did, fragment) = text.split_once('#').ok_or(DidError::Fragment)?;
        if !is_fragment(fragment) {
            return Err(DidError::Fragment);
        }
        Ok(Self { did: Did::parse(did)?, fragment: fragment.into() })
    }

    /// The name of a did:key's only key, which is the key once more.
    pub(crate) fn of_key(did: &Did) -> Self {
        Self { did: did.clone(), fragment: did.id().into() }
    }

    /// Whose it is.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// Its name inside the document, without `#`.
    pub fn fragment(&self) -> &str {
        &self.fragment
    }
}

impl fmt::Display for DidUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}#{}", self.did, self.fragment)
    }
}

/// Whether this may stand behind `#` (RFC 3986 §3.5); nothing in it is decoded.
pub(crate) fn is_fragment(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    !text.is_empty() && text.len() <= DID_BYTES_MAX && text.bytes().all(allowed)
}

/// Why a text is no DID we can work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DidError {
    /// More bytes than a DID may have.
    #[error("the DID is too long; at most 2048 bytes are read")]
    TooLong,
    /// Not the generic grammar.
    #[error("this is no DID; write `did:`, a method in lower case, `:` and its identifier in plain ASCII")]
    Syntax,
    /// No host in a did:web or did:wba.
    #[error("the DID names no host; write lower-case host labels separated by dots")]
    Host,
    /// A port that is none.
    #[error("the DID's port is none; write `%3A` and a number from 1 to 65535")]
    Port,
    /// A path segment that could be read in two ways.
    #[error("a path segment of the DID is empty or unclear; use only letters, digits, `-`, `_` and `.`")]
    Segment,
    /// An `e1_` or `k1_` segment without a fingerprint.
    #[error("the last segment of the DID is no key fingerprint; write `e1_` or `k1_` and 43 base64url characters")]
    Fingerprint,
    /// No key in a did:key.
    #[error("the DID carries no key: {0}")]
    Key(#[from] KeyError),
    /// Not a DID URL with a fragment.
    #[error("this names no part of a DID document; write the DID, `#` and a name")]
    Fragment,
    /// A method that needs its document here, or that we do not know.
    #[error("the DID carries no key of its own; use `did:key`, or bring its resolved document")]
    MethodUnsupported,
}

impl DidError {
    /// The stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong
            | Self::Syntax
            | Self::Host
            | Self::Port
            | Self::Segment
            | Self::Fingerprint
            | Self::Key(_)
            | Self::Fragment => "invalid_did",
            Self::MethodUnsupported => "did_method_unsupported",
        }
    }
}

#[cfg(test)]
mod tests;
