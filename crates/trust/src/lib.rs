//! Who said it: DIDs, keys, signatures, and [`Verified`], the mark of a document whose signer is proved.
//!
//! RFC 0020 lets nobody ask or answer without a signature (RFC 0020 §3.1, RFC 0020 A.3 R1 and R6). This crate decides
//! whether one holds. Fetching a DID document is the caller's errand; here it is only read.
//!
//! INVARIANT: no IO, clock, randomness or logging in this crate; seeds of keys are handed in.

mod did;
mod document;

mod algorithm;
mod key;
mod secret;

mod envelope;
mod listed;
mod proof;
mod delegation;
mod error;
pub mod http;
mod wba;

mod digest;
pub mod encoding;
pub mod merkle;

pub use algorithm::Algorithm;
pub use delegation::{
    Chain, ChainError, ChainProblem, DELEGATION_LINKS_MAX, DELEGATION_SECONDS_MAX, Delegation, Scope, Token, sign_token,
};
pub use did::{Binding, Did, DidError, DidUrl, Method};
pub use digest::Digest;
pub use document::{DidDocument, DocumentProblem};
pub use envelope::{SignError, Signed, Verified, sign, verify_did_key};
pub use error::{Problem, SignatureError};
pub use key::{KeyError, PublicKey, SigningKey};
pub use listed::{SignedList, verify_member};
pub use proof::{
    Proof, ProofForm, ProofProblem, prove, verify as verify_proof, verify_embedded as verify_embedded_proof,
};
pub use secret::{Secp256k1Key, SecretKey};
pub use wba::{bound_name, document as wba_document, name as wba_name};
