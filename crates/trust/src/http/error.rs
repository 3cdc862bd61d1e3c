//! Why a request proves nobody: the closed list of ANP-02, as it stands in a challenge and in a refusal.
//!
//! INVARIANT: messages echo nothing of the request and have no quotation mark, since callers read them with a pattern.

use crate::DidError;

/// Why nobody is proved to be the sender of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// It brings nothing.
    #[error("nobody signed this request; sign it with a key of your DID, or send the token you were given")]
    Missing,
    /// What it brings is not written as it must be, or does not cover enough.
    #[error("{0}")]
    Request(&'static str),
    /// The digest is not that of the body.
    #[error("Content-Digest is not the digest of the body; compute it over the bytes that are sent")]
    ContentDigest,
    /// The key is not there, or not for this.
    #[error("{0}")]
    VerificationMethod(&'static str),
    /// The name is none.
    #[error("{0}")]
    Did(#[from] DidError),
    /// The signature does not hold.
    #[error("the signature does not hold for this method, address and body; sign what is sent, to where it is sent")]
    Signature,
    /// Too early or too late.
    #[error("{0}")]
    Timestamp(&'static str),
    /// Used before, or none.
    #[error("{0}")]
    Nonce(&'static str),
    /// The token is not one of ours, or over.
    #[error("{0}")]
    AccessToken(&'static str),
    /// Proved, and not let in.
    #[error("this DID may not do that here")]
    Forbidden,
}

impl AuthError {
    /// A nonce that came before.
    pub const REPLAYED: Self = Self::Nonce("this nonce was used before; sign the request again with a new one");

    /// The stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "authentication_required",
            Self::Request(_) => "invalid_request",
            Self::ContentDigest => "invalid_content_digest",
            Self::VerificationMethod(_) => "invalid_verification_method",
            Self::Did(error) => error.code(),
            Self::Signature => "invalid_signature",
            Self::Timestamp(_) => "request_timestamp",
            Self::Nonce(_) => "invalid_nonce",
            Self::AccessToken(_) => "invalid_access_token",
            Self::Forbidden => "forbidden_did",
        }
    }

    /// The word for it in a challenge; nothing is wrong with a request that brings nothing.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Missing => None,
            Self::Did(_) => Some("invalid_did"),
            // A refusal of that name is about the window of an intent.
            Self::Timestamp(_) => Some("invalid_timestamp"),
            other => Some(other.code()),
        }
    }
}
