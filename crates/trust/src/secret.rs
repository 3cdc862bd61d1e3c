//! Keys of ours that prove who sends a request (ANP-03): Ed25519, and secp256k1 for names that end in `k1_`.
//!
//! INVARIANT: a secret is wiped from memory when dropped, and printing it shows only its public half.

use crate::{Algorithm, KeyError, PublicKey, SigningKey};
use k256::ecdsa::signature::Signer as _;
use std::fmt;
use zeroize::Zeroize as _;

/// A key to sign requests with.
pub enum SecretKey {
    /// The kind that signs documents, too.
    Ed25519(SigningKey),
    /// The kind of `k1_` names.
    Secp256k1(Secp256k1Key),
}

/// A secp256k1 key.
pub struct Secp256k1Key(k256::ecdsa::SigningKey);

impl Secp256k1Key {
    /// The key of a 32-byte scalar; chance gives one that is none about once in 2^128 times.
    pub fn from_scalar(mut scalar: [u8; 32]) -> Result<Self, KeyError> {
        let key = k256::ecdsa::SigningKey::from_slice(&scalar).map_err(|_| KeyError::Point);
        scalar.zeroize();
        key.map(Self)
    }
}

impl SecretKey {
    /// The public half.
    pub fn public(&self) -> Result<PublicKey, KeyError> {
        match self {
            Self::Ed25519(key) => Ok(key.public()),
            Self::Secp256k1(key) => {
                PublicKey::from_bytes(Algorithm::Es256k, key.0.verifying_key().to_sec1_point(true).as_bytes())
            }
        }
    }

    /// Signs bytes: pure Ed25519, or ECDSA over their SHA-256 as r‖s, without chance (RFC 6979).
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Ed25519(key) => key.sign(bytes).to_vec(),
            Self::Secp256k1(key) => {
                let signature: k256::ecdsa::Signature = key.0.sign(bytes);
                signature.to_bytes().to_vec()
            }
        }
    }
}

impl From<SigningKey> for SecretKey {
    fn from(key: SigningKey) -> Self {
        Self::Ed25519(key)
    }
}

impl From<Secp256k1Key> for SecretKey {
    fn from(key: Secp256k1Key) -> Self {
        Self::Secp256k1(key)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.public() {
            Ok(public) => write!(out, "SecretKey({})", public.to_multibase()),
            Err(_) => out.write_str("SecretKey"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scalar 01 02 … 20.
    fn key() -> SecretKey {
        Secp256k1Key::from_scalar(std::array::from_fn(|position| position as u8 + 1)).unwrap().into()
    }

    #[test]
    fn a_scalar_gives_the_key_and_the_thumbprint_of_the_vector() {
        let public = key().public().unwrap();
        assert_eq!(public.to_jwk()["x"], "hL91YiYrvWlACFdI875q-lKuMXFVGB7OMbZjUcz_pLA");
        assert_eq!(public.to_jwk()["y"], "jMQ9Y7KFnUaf7hXzHJ7bUyQmbm_QQH6HOC1g_EURrNg");
        assert_eq!(public.thumbprint(), "sHVsPsw-yovOh9b_K7fFCws-lXIyEPLYkQerigODPfg");
        assert_eq!(PublicKey::from_multibase(&public.to_multibase()), Ok(public.clone()));
        assert_eq!(format!("{:?}", key()), format!("SecretKey({})", public.to_multibase()));
        assert_eq!(Secp256k1Key::from_scalar([0; 32]).err(), Some(KeyError::Point));
        assert_eq!(Secp256k1Key::from_scalar([0xff; 32]).err(), Some(KeyError::Point));
    }

    #[test]
    fn a_signature_holds_with_a_high_and_with_a_low_s() {
        let public = key().public().unwrap();
        let signature = key().sign(b"bytes");
        assert!(public.verifies(b"bytes", &signature));
        assert!(!public.verifies(b"other", &signature));
        let twin = k256::ecdsa::Signature::from_slice(&signature).unwrap();
        let (r, s) = twin.split_scalars();
        let twin = k256::ecdsa::Signature::from_scalars(r.to_bytes(), (-*s).to_bytes()).unwrap();
        assert_ne!(twin.to_bytes().to_vec(), signature);
        assert!(public.verifies(b"bytes", &twin.to_bytes()));
    }
}
