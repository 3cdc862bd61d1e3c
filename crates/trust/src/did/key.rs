//! did:key: the identifier is the key itself, in base58btc multibase.

use crate::{KeyError, PublicKey};

/// The key of a did:key. Versions (`did:key:1.1:z...`) would be a second spelling and are refused.
pub(super) fn read(id: &str) -> Result<PublicKey, KeyError> {
    PublicKey::from_multibase(id)
}

/// The did:key of a key.
pub(super) fn write(key: &PublicKey) -> String {
    format!("did:key:{}", key.to_multibase())
}
