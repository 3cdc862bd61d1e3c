//! RFC 0020 §3.1 `signature.alg`: the closed set of algorithms.
//!
//! ES256K (RFC 8812) is no member of that set: a secp256k1 key proves who sends an HTTP request, and signs no document.
//!
//! INVARIANT: each kind of key has exactly one algorithm. The name in a document only has to agree with the key, so
//! leaving it outside the signed bytes gives nobody a choice.

use std::fmt;

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Pure Ed25519 (RFC 8032).
    EdDsa,
    /// ECDSA on P-256 with SHA-256, as r‖s (RFC 7518 §3.4).
    Es256,
    /// ECDSA on P-384 with SHA-384, as r‖s (RFC 7518 §3.4).
    Es384,
    /// ECDSA on secp256k1 with SHA-256, as r‖s (RFC 8812); never in a document.
    Es256k,
}

impl Algorithm {
    /// Reads the name as it stands in documents; case counts.
    pub fn read(name: &str) -> Option<Self> {
        match name {
            "EdDSA" => Some(Self::EdDsa),
            "ES256" => Some(Self::Es256),
            "ES384" => Some(Self::Es384),
            _ => None,
        }
    }

    /// The name as it stands in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es256k => "ES256K",
        }
    }

    /// Whether it may stand under a document.
    pub(crate) fn signs_documents(self) -> bool {
        Self::read(self.name()).is_some()
    }

    /// How long a signature is.
    pub fn signature_bytes(self) -> usize {
        match self {
            Self::EdDsa | Self::Es256 | Self::Es256k => 64,
            Self::Es384 => 96,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_closed_and_names_are_exact() {
        for algorithm in [Algorithm::EdDsa, Algorithm::Es256, Algorithm::Es384] {
            assert_eq!(Algorithm::read(algorithm.name()), Some(algorithm));
            assert_eq!(algorithm.to_string(), algorithm.name());
            assert!(algorithm.signs_documents());
        }
        assert!(!Algorithm::Es256k.signs_documents());
        for name in
            ["", "none", "None", "HS256", "RS256", "PS256", "ES512", "ES256K", "eddsa", "EDDSA", "Ed25519", "EdDSA "]
        {
            assert_eq!(Algorithm::read(name), None, "{name}");
        }
    }
}
