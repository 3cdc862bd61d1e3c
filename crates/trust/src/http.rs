//! Who sends this HTTP request: proved by a DID, as ANP-02 has it, on RFC 9421 signatures and RFC 9530 digests.
//!
//! A request carries a signature by a key that the sender's DID document lists under `authentication`, or a bearer token
//! that an earlier signature earned, or, where the operator lets it in, the older header of ANP. Reading comes first,
//! with all that needs no keys (form, coverage, time); then somebody finds the DID document; then the proof is checked;
//! and last, by whoever keeps them, the nonce is used up, so that a forger cannot burn the nonces of others.
//!
//! INVARIANT: a request is proved only when its method, its address and its body are covered, or when it has no body and
//! the older header was allowed for it.

mod challenge;
mod error;
mod fields;
mod legacy;
mod message;
mod signature;
mod token;

pub use challenge::{ACCEPT_SIGNATURE, Challenge, authentication_info, read_authentication_info, wanted_components};
pub use error::AuthError;
pub use legacy::{Legacy, legacy_header};
pub use message::{Headers, Request, base, content_digest};
pub use signature::{COMPONENTS, Signature, Signing, sign};
pub use token::{AccessToken, TOKEN_SECONDS};

use crate::{Did, DidUrl};

/// Seconds after it was made that a proof may still arrive.
pub const WINDOW_SECONDS: i64 = 300;
/// Seconds by which a sender's clock may be ahead.
pub const SKEW_SECONDS: i64 = 60;
/// Bytes of a nonce.
pub const NONCE_BYTES_MAX: usize = 256;
/// Bytes of a header field that is read for a proof.
pub const FIELD_BYTES_MAX: usize = 8 * 1024;

/// What a request brings to show who sends it; nobody has checked it yet.
#[derive(Debug)]
pub enum Credentials<'a> {
    /// A signature over the request.
    Signature(Box<Signature<'a>>),
    /// The older header.
    Legacy(Box<Legacy<'a>>),
    /// A token that an earlier proof earned.
    Bearer(&'a str),
}

impl<'a> Credentials<'a> {
    /// Finds what a request brings. A signature counts before a token, since it says more.
    pub fn read(headers: &Headers<'a>) -> Result<Self, AuthError> {
        if let Some(signature) = Signature::find(headers)? {
            return Ok(Self::Signature(Box::new(signature)));
        }
        let authorization = headers.only("authorization")?.ok_or(AuthError::Missing)?;
        let (scheme, rest) = authorization.split_once(' ').unwrap_or((authorization, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return Ok(Self::Bearer(rest.trim()));
        }
        if scheme.eq_ignore_ascii_case("didwba") {
            return Legacy::read(rest).map(|legacy| Self::Legacy(Box::new(legacy)));
        }
        Err(AuthError::Missing)
    }
}

/// A request whose sender is proved, once its nonce turns out to be new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// Who sends it.
    pub key: DidUrl,
    /// What is used up by it: the nonce, or the digest of what was signed where there is none.
    pub once: String,
    /// Until when it must be remembered, in seconds since 1970.
    pub until: i64,
}

impl Proved {
    /// Who sends it.
    pub fn did(&self) -> &Did {
        self.key.did()
    }
}

/// Whether a moment lies in the window of a proof, all in seconds since 1970.
fn check_time(created: i64, expires: Option<i64>, now: i64) -> Result<(), AuthError> {
    if created > now.saturating_add(SKEW_SECONDS) {
        return Err(AuthError::Timestamp("the proof was made in the future; set the clock right"));
    }
    if created < now.saturating_sub(WINDOW_SECONDS) {
        return Err(AuthError::Timestamp("the proof is older than 300 seconds; sign the request again"));
    }
    match expires {
        Some(expires) if expires < created => Err(AuthError::Timestamp("the proof ends before it begins")),
        Some(expires) if expires < now => Err(AuthError::Timestamp("the proof has expired; sign the request again")),
        _ => Ok(()),
    }
}

/// Until when a nonce must be remembered: as long as a request with it could pass the check of its time.
fn remembered_until(created: i64) -> i64 {
    created.saturating_add(WINDOW_SECONDS + SKEW_SECONDS)
}

fn check_nonce(nonce: &str) -> Result<(), AuthError> {
    let plain = nonce.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if plain && (1..=NONCE_BYTES_MAX).contains(&nonce.len()) {
        Ok(())
    } else {
        Err(AuthError::Nonce("a nonce is 1 to 256 characters of ASCII"))
    }
}
