//! RFC 0020 A.3 R1: why a signed document is refused, and where.
//!
//! INVARIANT: messages echo nothing of the input, so a refusal never repeats a stranger's words under our signature.

use crate::{DidError, DocumentProblem};
use json::Pointer;

/// Why a signature, or what it leans on, is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at `{at}`")]
pub struct SignatureError {
    /// The place: in the signed document, or in the DID document for `did_document_invalid`.
    pub at: Pointer,
    /// What is wrong there.
    pub problem: Problem,
}

impl SignatureError {
    pub(crate) fn new(at: Pointer, problem: impl Into<Problem>) -> Self {
        Self { at, problem: problem.into() }
    }

    /// Whether the message is not written as it must be, whoever signed it.
    pub fn is_form(&self) -> bool {
        self.problem.is_form()
    }

    /// The stable name for programs.
    pub fn code(&self) -> &'static str {
        self.problem.code()
    }
}

/// What can be wrong with a signature or its signer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no signature.
    #[error("there is no signature; sign the document and add `signature` with `alg` and `value`")]
    SignatureMissing,
    /// The value is not base64, or not of the algorithm's length.
    #[error(
        "the signature is not canonical base64 of the algorithm's length; write 64 bytes (96 for ES384) as base64url \
         without padding"
    )]
    SignatureEncoding,
    /// Not one of the three algorithms.
    #[error("the algorithm is not allowed; use `EdDSA`, `ES256` or `ES384`")]
    AlgNotAllowed,
    /// An algorithm the signer's key is not made for.
    #[error("the algorithm does not fit the signer's key; name the algorithm the key is made for")]
    AlgKeyMismatch,
    /// No key of the signer that may sign.
    #[error(
        "this names no key that may sign for the signer; name one listed under `assertionMethod` or `authentication`"
    )]
    KidNotAuthorized,
    /// Several keys could be meant.
    #[error("the signer has several keys; add `kid` to say which one signed")]
    KidAmbiguous,
    /// The bytes were not signed by this key.
    #[error("the signature does not verify; sign the RFC 8785 form of the document without its `signature`")]
    SignatureInvalid,
    /// The signer's document has no key we can use here.
    #[error("the signer's document has no usable key for this; sign with an Ed25519, P-256 or P-384 key it lists")]
    KeyNotFound,
    /// The signer has retired the key.
    #[error("the signer has retired this key; sign with one that the signer's document lists for it")]
    KeyRetired,
    /// The signer's name.
    #[error("{0}")]
    Did(#[from] DidError),
    /// The signer's document.
    #[error("{0}")]
    Document(#[from] DocumentProblem),
}

impl Problem {
    /// Whether the message is not written as it must be; all else is about what its signature proves.
    fn is_form(&self) -> bool {
        match self {
            Self::SignatureEncoding | Self::AlgNotAllowed | Self::Did(_) => true,
            Self::SignatureMissing
            | Self::AlgKeyMismatch
            | Self::KidNotAuthorized
            | Self::KidAmbiguous
            | Self::SignatureInvalid
            | Self::KeyNotFound
            | Self::KeyRetired
            | Self::Document(_) => false,
        }
    }

    /// The stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SignatureMissing => "signature_missing",
            Self::SignatureEncoding => "signature_encoding",
            Self::AlgNotAllowed => "alg_not_allowed",
            Self::AlgKeyMismatch => "alg_key_mismatch",
            Self::KidNotAuthorized | Self::KidAmbiguous => "kid_not_authorized",
            Self::SignatureInvalid => "signature_invalid",
            Self::KeyNotFound => "key_not_found",
            Self::KeyRetired => "key_retired",
            Self::Did(error) => error.code(),
            Self::Document(_) => "did_document_invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_wrongly_is_told_from_what_is_not_proved() {
        for (problem, is_form) in [
            (Problem::SignatureEncoding, true),
            (Problem::AlgNotAllowed, true),
            (Problem::Did(DidError::MethodUnsupported), true),
            (Problem::SignatureMissing, false),
            (Problem::AlgKeyMismatch, false),
            (Problem::KidNotAuthorized, false),
            (Problem::SignatureInvalid, false),
            (Problem::KeyRetired, false),
            (Problem::Document(DocumentProblem::OtherSubject), false),
        ] {
            let error = SignatureError::new(Pointer::root(), problem);
            assert_eq!(error.is_form(), is_form, "{error:?}");
        }
    }
}
