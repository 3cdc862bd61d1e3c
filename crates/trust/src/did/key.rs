//! did:key: the identifier is the key itself, in base58btc multibase.

use crate::{KeyError, PublicKey};
use std::cell::RefCell;

/// Keys that a thread remembers.
const REMEMBERED: usize = 256;

/// A key and the text that it was read from.
type Read = (Box<str>, PublicKey);

thread_local! {
    /// Keys that were read last. To read one is to take a root in the field of its curve,
    /// and whoever asks is named several times in a message and often in many.
    static LAST: RefCell<Vec<Option<Read>>> = const { RefCell::new(Vec::new()) };
}

/// The key of a did:key. Versions (`did:key:1.1:z...`) would be a second spelling and are refused.
pub(super) fn read(id: &str) -> Result<PublicKey, KeyError> {
    LAST.with_borrow_mut(|last| {
        // The end of a key differs from that of another by chance, unless somebody chooses it; then one is read again.
        let end =
            id.bytes().rev().take(8).fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        last.resize_with(REMEMBERED, || None);
        let Some(place) = last.get_mut(end % REMEMBERED) else { return read_anew(id) };
        if let Some((text, key)) = place
            && **text == *id
        {
            return Ok(key.clone());
        }
        let key = read_anew(id)?;
        *place = Some((id.into(), key.clone()));
        Ok(key)
    })
}

fn read_anew(id: &str) -> Result<PublicKey, KeyError> {
    let key = PublicKey::from_multibase(id)?;
    // A did:key is there to sign documents, and nobody signs one with secp256k1.
    if key.algorithm().signs_documents() { Ok(key) } else { Err(KeyError::Unsupported) }
}

/// The did:key of a key.
pub(super) fn write(key: &PublicKey) -> String {
    format!("did:key:{}", key.to_multibase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;

    /// More keys than are remembered, each read again when others have come in between.
    #[test]
    fn a_remembered_key_is_the_key_that_was_read() {
        let names: Vec<String> = (0_u16..600)
            .map(|number| {
                let [low, high] = number.to_le_bytes();
                let mut seed = [7; 32];
                seed[..2].copy_from_slice(&[low, high]);
                SigningKey::from_seed(seed).public().to_multibase()
            })
            .collect();
        for round in 0..3 {
            for name in names.iter().chain(&names[round * 100..round * 100 + 100]) {
                assert_eq!(read(name).unwrap().to_multibase(), *name);
                assert_eq!(read(name).unwrap().to_multibase(), read_anew(name).unwrap().to_multibase());
            }
        }
    }

    /// What is no key is none the second time either, also where its end is that of a key.
    #[test]
    fn what_is_no_key_is_not_remembered() {
        let name = SigningKey::from_seed([1; 32]).public().to_multibase();
        read(&name).unwrap();
        let other = format!("z11{}", &name[3..]);
        for _ in 0..2 {
            assert!(read(&other).is_err());
            assert!(read(&name).is_ok());
        }
    }
}
