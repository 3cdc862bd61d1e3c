//! RFC 0020 §3.1 `signature`, RFC 0020 A.3 R1 and R6: the envelope around every question and answer.
//!
//! A signature covers the RFC 8785 bytes of the whole document without its top-level `signature`. Nothing smaller is
//! ever signed, so there is no part that could be lifted into another document. What stands inside `signature` itself
//! is not covered: `alg` and `kid` must agree with the signer's document, and nothing else there is read.
//!
//! INVARIANT: [`Verified`] is made by the check in this file and by the one in `listed`, and nowhere else.

use crate::{Algorithm, Did, DidDocument, DidError, Problem, PublicKey, SignatureError, SigningKey, encoding};
use json::{Document, Node, Pointer, Value, json};

/// The member that carries the signature.
const SIGNATURE: &str = "signature";

/// A document that carries a signature nobody has checked yet.
#[derive(Debug)]
pub struct Signed<'a> {
    document: &'a Document,
    algorithm: Algorithm,
    kid: Option<&'a str>,
    value: Vec<u8>,
}

impl<'a> Signed<'a> {
    /// Finds the signature of a document.
    pub fn read(document: &'a Document) -> Result<Self, SignatureError> {
        let signature = document.root().get(SIGNATURE).filter(|signature| signature.is_object());
        let signature = signature.ok_or_else(|| SignatureError::new(place(), Problem::SignatureMissing))?;
        let value = signature.get("value").and_then(Node::as_str).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| SignatureError::new(place().child("value"), Problem::SignatureMissing))?;
        let algorithm = signature.get("alg").and_then(Node::as_str).and_then(Algorithm::read);
        let algorithm = algorithm.ok_or_else(|| SignatureError::new(place().child("alg"), Problem::AlgNotAllowed))?;
        let kid = match signature.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().ok_or_else(|| refused_kid(Problem::KidNotAuthorized))?),
        };
        let value = encoding::decode(value)
            .ok_or_else(|| SignatureError::new(place().child("value"), Problem::SignatureEncoding))?;
        Ok(Self { document, algorithm, kid, value })
    }

    /// The algorithm the document names.
    pub fn alg(&self) -> Algorithm {
        self.algorithm
    }

    /// The key the document names, as written.
    pub fn kid(&self) -> Option<&'a str> {
        self.kid
    }

    /// The DID in a member such as `issuer_did`: whose document [`Signed::verify_with`] needs.
    pub fn issuer(&self, member: &str) -> Result<Did, SignatureError> {
        let text = self.document.root().get(member).and_then(Node::as_str).ok_or(DidError::Syntax);
        text.and_then(Did::parse).map_err(|error| SignatureError::new(Pointer::root().child(member), error))
    }

    /// Checks the signature against the keys of the signer.
    ///
    /// The caller resolved `signer` from the member that names the issuer, see [`Signed::issuer`].
    pub fn verify_with(self, signer: &DidDocument) -> Result<Verified<&'a Document>, SignatureError> {
        let key = signer.signing_key(self.kid).map_err(|problem| match (&problem, self.kid) {
            (Problem::KeyNotFound, None) => SignatureError::new(place(), problem),
            _ => refused_kid(problem),
        })?;
        self.verify_by(key, signer)
    }

    /// The same for something that is kept: a key that the signer has retired since counts, too, when `was_before` says
    /// that the document is older than the moment of retirement, which it is given as the signer's document writes it.
    pub fn verify_kept(
        self,
        signer: &DidDocument,
        was_before: impl FnOnce(&str) -> bool,
    ) -> Result<Verified<&'a Document>, SignatureError> {
        match self.kid.and_then(|kid| signer.retired_key(kid)) {
            Some((key, since)) if was_before(since) => self.verify_by(key, signer),
            _ => self.verify_with(signer),
        }
    }

    fn verify_by(self, key: &PublicKey, signer: &DidDocument) -> Result<Verified<&'a Document>, SignatureError> {
        if key.algorithm() != self.algorithm {
            return Err(SignatureError::new(place().child("alg"), Problem::AlgKeyMismatch));
        }
        if self.value.len() != self.algorithm.signature_bytes() {
            return Err(SignatureError::new(place().child("value"), Problem::SignatureEncoding));
        }
        let bytes = json::canonical_without(self.document.root(), SIGNATURE);
        if !key.verifies(&bytes, &self.value) {
            return Err(SignatureError::new(place().child("value"), Problem::SignatureInvalid));
        }
        Ok(Verified { value: self.document, signer: signer.did().clone() })
    }

    /// Checks the signature of a document whose issuer is a did:key, which needs nobody else.
    pub fn verify_own(self, issuer_member: &str) -> Result<Verified<&'a Document>, SignatureError> {
        let issuer = self.issuer(issuer_member)?;
        let keys = DidDocument::of_key(&issuer)
            .map_err(|error| SignatureError::new(Pointer::root().child(issuer_member), error))?;
        self.verify_with(&keys)
    }
}

/// Reads and checks a document whose issuer, named in `issuer_member`, is a did:key.
pub fn verify_did_key<'a>(
    document: &'a Document,
    issuer_member: &str,
) -> Result<Verified<&'a Document>, SignatureError> {
    Signed::read(document)?.verify_own(issuer_member)
}

/// A value whose signer is proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    value: T,
    signer: Did,
}

impl<T> Verified<T> {
    /// What the check of a list of signatures proved.
    pub(crate) fn of(value: T, signer: Did) -> Self {
        Self { value, signer }
    }

    /// Who signed it.
    pub fn signer(&self) -> &Did {
        &self.signer
    }

    /// What was signed.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// What was signed, without the proof.
    pub fn into_value(self) -> T {
        self.value
    }

    /// What the signed value says, read as another type; `read` must look at nothing else.
    pub fn map<U>(self, read: impl FnOnce(T) -> U) -> Verified<U> {
        Verified { value: read(self.value), signer: self.signer }
    }

    /// Like [`Verified::map`], where reading can fail.
    pub fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Verified<U>, E> {
        Ok(Verified { value: read(self.value)?, signer: self.signer })
    }
}

/// Signs an object we built: puts `signature` into it, in place of an older one.
///
/// The object is read back as its receiver will read it, so that nothing is signed that no reader accepts.
pub fn sign(body: &mut Value, key: &SigningKey) -> Result<(), SignError> {
    let document = Document::of(body)?;
    let Value::Object(members) = body else { return Err(SignError::NotAnObject) };
    let value = key.sign(&json::canonical_without(document.root(), SIGNATURE));
    let signature = json!({
        "alg": Algorithm::EdDsa.name(),
        "kid": key.key_id().to_string(),
        "value": encoding::encode(&value),
    });
    members.insert(SIGNATURE.to_owned(), signature);
    Ok(())
}

/// Why a value of ours cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// Only objects carry signatures.
    #[error("only an object can be signed")]
    NotAnObject,
    /// No reader would accept it.
    #[error("no reader would accept the document: {0}")]
    Unreadable(#[from] json::ParseError),
}

fn place() -> Pointer {
    Pointer::root().child(SIGNATURE)
}

fn refused_kid(problem: Problem) -> SignatureError {
    SignatureError::new(place().child("kid"), problem)
}

#[cfg(test)]
mod tests;
