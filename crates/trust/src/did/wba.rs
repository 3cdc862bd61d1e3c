//! did:wba: did:web's places, and path identifiers that end in the fingerprint of a key (ANP-03).
//!
//! Whether the fingerprint fits the document is checked where the document is read; here only its form is.

use super::DidError;
use super::web::Location;
use crate::encoding::decode_url;

/// The bytes of a SHA-256 JWK thumbprint (RFC 7638).
const FINGERPRINT_BYTES: usize = 32;

/// Reads the part behind `did:wba:`.
///
/// A last segment that starts like a fingerprint and is none would quietly escape the binding, so it is refused.
pub(super) fn read(id: &str) -> Result<Location<'_>, DidError> {
    let location = Location::read(id)?;
    let fingerprint = location.last_segment().and_then(|last| last.strip_prefix("e1_").or(last.strip_prefix("k1_")));
    match fingerprint {
        Some(text) if location.depth() < 2 || !is_fingerprint(text) => Err(DidError::Fingerprint),
        _ => Ok(location),
    }
}

fn is_fingerprint(text: &str) -> bool {
    decode_url(text).is_some_and(|bytes| bytes.len() == FINGERPRINT_BYTES)
}
