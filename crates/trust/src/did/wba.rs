//! did:wba: did:web's places, and path identifiers that end in the fingerprint of a key (ANP-03).
//!
//! Whether the fingerprint fits the document is checked where the document is read; here only its form is.

use super::DidError;
use super::web::Location;
use crate::encoding::decode_url;

/// The bytes of a SHA-256 JWK thumbprint (RFC 7638).
const FINGERPRINT_BYTES: usize = 32;

/// What the last segment of a did:wba says about the keys of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding<'a> {
    /// `e1_`: the document carries a proof by the Ed25519 key of this thumbprint.
    E1(&'a str),
    /// `k1_`: the secp256k1 key of this thumbprint authenticates.
    K1(&'a str),
}

/// Reads the part behind `did:wba:`.
///
/// A last segment that starts like a fingerprint and is none would quietly escape the binding, so it is refused.
pub(super) fn read(id: &str) -> Result<Location<'_>, DidError> {
    let location = Location::read(id)?;
    match binding(&location) {
        Some(Binding::E1(text) | Binding::K1(text)) if location.depth() < 2 || !is_fingerprint(text) => {
            Err(DidError::Fingerprint)
        }
        _ => Ok(location),
    }
}

/// What the last segment begins like.
pub(super) fn binding<'a>(location: &Location<'a>) -> Option<Binding<'a>> {
    let last = location.last_segment()?;
    let e1 = last.strip_prefix("e1_").map(Binding::E1);
    e1.or_else(|| last.strip_prefix("k1_").map(Binding::K1))
}

fn is_fingerprint(text: &str) -> bool {
    decode_url(text).is_some_and(|bytes| bytes.len() == FINGERPRINT_BYTES)
}
