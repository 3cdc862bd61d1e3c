//! Keys: ours to sign with (Ed25519), theirs to verify with (Ed25519, P-256, P-384, secp256k1).
//!
//! INVARIANT: a [`PublicKey`] is a point of its curve in its one canonical encoding, and no Ed25519 key is of small
//! order; under such a key almost any signature holds.

use crate::encoding::{decode_url, encode};
use crate::{Algorithm, Did, DidUrl, Digest};
use ed25519_dalek::Signer as _;
use json::{Node, Value, json};
use p256::ecdsa::signature::Verifier as _;
use std::fmt;
use zeroize::Zeroize as _;

/// An Ed25519 key to sign with. It is wiped from memory when dropped, a copy of it too, and printing it shows only its
/// name.
#[derive(Clone)]
pub struct SigningKey {
    secret: ed25519_dalek::SigningKey,
    did: Did,
}

impl SigningKey {
    /// The key of a 32-byte seed; where the seed comes from, and wiping it there, is the caller's care.
    pub fn from_seed(mut seed: [u8; 32]) -> Self {
        let secret = ed25519_dalek::SigningKey::from_bytes(&seed);
        seed.zeroize();
        let did = Did::of_key(PublicKey(Material::Ed25519(secret.verifying_key())));
        Self { secret, did }
    }

    /// The did:key of this key.
    pub fn did_key(&self) -> Did {
        self.did.clone()
    }

    /// The name of this key as `kid`: its did:key, `#`, and the key once more.
    pub fn key_id(&self) -> DidUrl {
        DidUrl::of_key(&self.did)
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(Material::Ed25519(self.secret.verifying_key()))
    }

    /// Signs bytes (RFC 8032, pure Ed25519).
    pub fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.secret.sign(bytes).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SigningKey({})", self.did)
    }
}

/// A key to verify with.
#[derive(Clone)]
pub struct PublicKey(Material);

#[derive(Clone)]
enum Material {
    Ed25519(ed25519_dalek::VerifyingKey),
    P256(p256::ecdsa::VerifyingKey),
    P384(p384::ecdsa::VerifyingKey),
    Secp256k1(k256::ecdsa::VerifyingKey),
}

/// The longest multibase text we decode; base58 costs the square of its length, and a P-384 key has 71 characters.
const MULTIBASE_CHARS_MAX: usize = 128;

/// Multicodec prefixes as they stand in front of a key.
const ED25519_PREFIX: [u8; 2] = [0xed, 0x01];
const P256_PREFIX: [u8; 2] = [0x80, 0x24];
const P384_PREFIX: [u8; 2] = [0x81, 0x24];
const SECP256K1_PREFIX: [u8; 2] = [0xe7, 0x01];

impl PublicKey {
    /// Reads raw bytes: 32 for Ed25519, a compressed or uncompressed SEC1 point for the others.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, KeyError> {
        let material = match algorithm {
            Algorithm::EdDsa => Material::Ed25519(read_ed25519(bytes)?),
            Algorithm::Es256 => {
                let bytes = plain_point(bytes)?;
                Material::P256(p256::ecdsa::VerifyingKey::from_sec1_bytes(bytes).map_err(|_| KeyError::Point)?)
            }
            Algorithm::Es384 => {
                let bytes = plain_point(bytes)?;
                Material::P384(p384::ecdsa::VerifyingKey::from_sec1_bytes(bytes).map_err(|_| KeyError::Point)?)
            }
            Algorithm::Es256k => {
                let bytes = plain_point(bytes)?;
                Material::Secp256k1(k256::ecdsa::VerifyingKey::from_sec1_bytes(bytes).map_err(|_| KeyError::Point)?)
            }
        };
        Ok(Self(material))
    }

    /// Reads `publicKeyMultibase`: `z`, base58btc, a multicodec prefix and the key.
    pub fn from_multibase(text: &str) -> Result<Self, KeyError> {
        let digits = text.strip_prefix('z').ok_or(KeyError::Multibase)?;
        if digits.len() > MULTIBASE_CHARS_MAX {
            return Err(KeyError::Multibase);
        }
        let bytes = bs58::decode(digits).into_vec().map_err(|_| KeyError::Multibase)?;
        let (prefix, key) = bytes.split_first_chunk::<2>().ok_or(KeyError::Multibase)?;
        let (algorithm, len) = match *prefix {
            ED25519_PREFIX => (Algorithm::EdDsa, 32),
            P256_PREFIX => (Algorithm::Es256, 33),
            P384_PREFIX => (Algorithm::Es384, 49),
            SECP256K1_PREFIX => (Algorithm::Es256k, 33),
            _ => return Err(KeyError::Unsupported),
        };
        if key.len() != len {
            return Err(KeyError::Length);
        }
        Self::from_bytes(algorithm, key)
    }

    /// Writes `publicKeyMultibase`.
    pub fn to_multibase(&self) -> String {
        let (prefix, key) = match &self.0 {
            Material::Ed25519(key) => (ED25519_PREFIX, key.to_bytes().to_vec()),
            Material::P256(key) => (P256_PREFIX, key.to_sec1_point(true).as_bytes().to_vec()),
            Material::P384(key) => (P384_PREFIX, key.to_sec1_point(true).as_bytes().to_vec()),
            Material::Secp256k1(key) => (SECP256K1_PREFIX, key.to_sec1_point(true).as_bytes().to_vec()),
        };
        format!("z{}", bs58::encode([prefix.as_slice(), &key].concat()).into_string())
    }

    /// Reads `publicKeyJwk` (RFC 7517, RFC 8037).
    pub fn from_jwk(jwk: Node<'_>) -> Result<Self, KeyError> {
        let text = |name: &str| jwk.get(name).and_then(Node::as_str);
        if jwk.get("d").is_some() {
            return Err(KeyError::Private);
        }
        if jwk.get("use").is_some_and(|purpose| purpose.as_str() != Some("sig")) {
            return Err(KeyError::Unsupported);
        }
        let coordinate = |name: &str, len: usize| {
            let bytes = decode_url(text(name).ok_or(KeyError::Jwk)?).ok_or(KeyError::Jwk)?;
            if bytes.len() == len { Ok(bytes) } else { Err(KeyError::Length) }
        };
        let point = |len: usize| Ok([vec![0x04], coordinate("x", len)?, coordinate("y", len)?].concat());
        match (text("kty").ok_or(KeyError::Jwk)?, text("crv")) {
            ("OKP", Some("Ed25519")) => Self::from_bytes(Algorithm::EdDsa, &coordinate("x", 32)?),
            ("EC", Some("P-256")) => Self::from_bytes(Algorithm::Es256, &point(32)?),
            ("EC", Some("P-384")) => Self::from_bytes(Algorithm::Es384, &point(48)?),
            ("EC", Some("secp256k1")) => Self::from_bytes(Algorithm::Es256k, &point(32)?),
            _ => Err(KeyError::Unsupported),
        }
    }

    /// Writes `publicKeyJwk`.
    pub fn to_jwk(&self) -> Value {
        let elliptic = |curve: &str, uncompressed: &[u8]| {
            let coordinates = uncompressed.get(1..).unwrap_or_default();
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)})
        };
        match &self.0 {
            Material::Ed25519(key) => json!({"kty": "OKP", "crv": "Ed25519", "x": encode(key.as_bytes())}),
            Material::P256(key) => elliptic("P-256", key.to_sec1_point(false).as_bytes()),
            Material::P384(key) => elliptic("P-384", key.to_sec1_point(false).as_bytes()),
            Material::Secp256k1(key) => elliptic("secp256k1", key.to_sec1_point(false).as_bytes()),
        }
    }

    /// The thumbprint of the key (RFC 7638, SHA-256), which is the name of it that fits into a DID.
    pub fn thumbprint(&self) -> String {
        // The members of our JWK are the required ones and no other, so that its canonical form is what is hashed.
        encode(Digest::of(&json::canonical_value(&self.to_jwk())).as_bytes())
    }

    /// The one algorithm this key is made for.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Material::Ed25519(_) => Algorithm::EdDsa,
            Material::P256(_) => Algorithm::Es256,
            Material::P384(_) => Algorithm::Es384,
            Material::Secp256k1(_) => Algorithm::Es256k,
        }
    }

    /// Whether this key made `signature` over `bytes`.
    ///
    /// ECDSA signatures are r‖s and hold with a high and a low s alike, so the bytes of a signature identify nothing.
    #[must_use]
    pub fn verifies(&self, bytes: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            // What `verify_strict` means, without computing the point that the signature begins with: no key here is of
            // small order, and the library compares the encodings of that point, of which only the canonical one passes.
            Material::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature).is_ok_and(|signature| {
                !is_of_small_order(signature.r_bytes()) && key.verify(bytes, &signature).is_ok()
            }),
            Material::P256(key) => p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(bytes, &signature).is_ok()),
            Material::P384(key) => p384::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(bytes, &signature).is_ok()),
            // The library takes a low s only, and half of what other libraries make has a high one.
            Material::Secp256k1(key) => k256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(bytes, &signature.normalize_s()).is_ok()),
        }
    }
}

fn read_ed25519(bytes: &[u8]) -> Result<ed25519_dalek::VerifyingKey, KeyError> {
    let bytes: &[u8; 32] = bytes.try_into().map_err(|_| KeyError::Length)?;
    let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::Point)?;
    if key.is_weak() {
        return Err(KeyError::Weak);
    }
    // The library reads the few points that have two encodings in either; one key has one name here.
    if is_reduced(bytes) { Ok(key) } else { Err(KeyError::Point) }
}

/// RFC 8032 §5.1.3: whether y is below the field's prime, 2^255 - 19. Writing the point anew would tell the same and take
/// an inversion; the other second spelling, a sign for x = 0, belongs to weak keys alone.
fn is_reduced(&[lowest, ref middle @ .., highest]: &[u8; 32]) -> bool {
    lowest < 0xed || highest & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

/// The points whose order divides eight, by y in canonical form; each y belongs to a point and its negative.
const SMALL_ORDER: [[u8; 32]; 5] = {
    let mut points = [[0; 32]; 5];
    points[1][0] = 1;
    points[2] = [0xff; 32];
    (points[2][0], points[2][31]) = (0xec, 0x7f);
    points[3] = *b"\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f\
        \x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a";
    points[4] = *b"\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0\
        \xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05";
    points
};

/// Whether a canonical encoding is one of a point of small order.
fn is_of_small_order(point: &[u8; 32]) -> bool {
    let mut y = *point;
    if let Some(highest) = y.last_mut() {
        *highest &= 0x7f;
    }
    SMALL_ORDER.contains(&y)
}

/// SEC1 knows the point at infinity and a compact form, too; only the compressed and the full form are read.
fn plain_point(bytes: &[u8]) -> Result<&[u8], KeyError> {
    if let Some(2..=4) = bytes.first() { Ok(bytes) } else { Err(KeyError::Point) }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PublicKey({})", self.to_multibase())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Material::Ed25519(left), Material::Ed25519(right)) => left == right,
            (Material::P256(left), Material::P256(right)) => left == right,
            (Material::P384(left), Material::P384(right)) => left == right,
            (Material::Secp256k1(left), Material::Secp256k1(right)) => left == right,
            (Material::Ed25519(_) | Material::P256(_) | Material::P384(_) | Material::Secp256k1(_), _) => false,
        }
    }
}

impl Eq for PublicKey {}

/// Why bytes or a description are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not `z` and base58btc.
    #[error("a key is written as `z` and base58btc")]
    Multibase,
    /// Not a JWK.
    #[error("a JWK has `kty`, `crv` and coordinates in base64url without padding")]
    Jwk,
    /// A private key where a public one belongs.
    #[error("this is a private key; replace it, and publish only the public half of the new one")]
    Private,
    /// A kind of key we do not verify with.
    #[error("this kind of key is not supported; use Ed25519, P-256 or P-384")]
    Unsupported,
    /// Too many or too few bytes.
    #[error(
        "the key has a wrong length; use 32 bytes for Ed25519, compressed points or full coordinates for the others"
    )]
    Length,
    /// Not a point of the curve, or not in its canonical form.
    #[error("the key is no point of its curve in canonical form; export it again")]
    Point,
    /// An Ed25519 point of small order.
    #[error("the key is weak: it is of small order; make a new one")]
    Weak,
}

#[cfg(test)]
mod tests;
