//! did:key: the identifier is the key itself, in base58btc multibase.

use crate::{KeyError, PublicKey};

/// The key of a did:key. Versions (`did:key:1.1:z...`) would be a second spelling and are refused.
pub(super) fn read(id: &str) -> Result<PublicKey, KeyError> {
    let key = PublicKey::from_multibase(id)?;
    // A did:key is there to sign documents, and nobody signs one with secp256k1.
    if key.algorithm().signs_documents() { Ok(key) } else { Err(KeyError::Unsupported) }
}

/// The did:key of a key.
pub(super) fn write(key: &PublicKey) -> String {
    format!("did:key:{}", key.to_multibase())
}
