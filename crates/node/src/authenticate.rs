//! Who sends this HTTP request (ANP-02): asked by whoever serves HTTP, before a job that is not for everybody.
//!
//! The order is the one of an intent: what costs nothing first (form, coverage, time), then the DID document, then the
//! signature, then the sender's quota, and last the nonce, on disk before anybody is let in. So no forger burns nonces,
//! and a request is nobody's a second time, not after a restart and not when both come at once (decisions/0174).
//!
//! INVARIANT: a [`Caller`] is made here and nowhere else.

use crate::chance;
use crate::clock::Clock;
use crate::node::Node;
use crate::outbound::DidError;
use crate::publish::commit_refused;
use crate::quota::Purpose;
use crate::refusal::{Class, Error, Refusal};
use std::sync::Arc;
use store::{Batch, CommitError, Hash, Mark};
use tracing::{Instrument, debug_span};
use trust::http::{AccessToken, AuthError, Challenge, Credentials, Headers, Proved, Request};
use trust::{Did, DidUrl};

/// A request that is to be somebody's.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// Every address of ours under which it may have been sent, whole, the likeliest first.
    pub targets: &'a [String],
    /// Its header fields, names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// Its body, as it came.
    pub body: &'a [u8],
}

/// Somebody who proved to be the sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who.
    pub did: Did,
    /// A token for the next requests; whoever came with one gets no other.
    pub token: Option<String>,
}

impl Caller {
    /// Lets nobody on but this one.
    pub fn must_be(&self, did: &Did) -> Result<(), Refusal> {
        if self.did == *did { Ok(()) } else { Err(refusal(&AuthError::Forbidden)) }
    }
}

/// Why nobody is proved, and what to say so that the next try succeeds.
#[derive(Clone, Debug)]
pub struct Unproved {
    /// The refusal, or our own fault.
    pub error: Error,
    /// What stands beside a refusal for want of proof.
    pub challenge: Option<Challenge>,
}

/// What can be in the way of a proof.
enum Obstacle {
    Auth(AuthError),
    Did(DidError),
    Other(Error),
}

impl From<AuthError> for Obstacle {
    fn from(error: AuthError) -> Self {
        Self::Auth(error)
    }
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Node {
    /// Who sends a request.
    pub async fn authenticate(self: &Arc<Self>, presented: &Presented<'_>) -> Result<Caller, Unproved> {
        let realm = presented.targets.first().map_or(self.identity.did().as_str(), |target| host_of(target));
        self.prove(presented).await.map_err(|obstacle| obstacle.told(realm))
    }

    async fn prove(self: &Arc<Self>, presented: &Presented<'_>) -> Result<Caller, Obstacle> {
        let now = self.clock.millis() / 1_000;
        let headers = Headers::new(presented.headers);
        let request = Request { method: presented.method, target: "", headers, body: presented.body };
        let proved = match Credentials::read(&headers)? {
            Credentials::Bearer(token) => {
                let (audience, key) = (self.identity.did(), self.identity.public());
                let token = self.work(|| Ok(AccessToken::verify(token, audience, &key, now))).await??;
                self.charge(&token.subject, Purpose::Message)?;
                return Ok(Caller { did: token.subject, token: None });
            }
            Credentials::Signature(signature) => {
                signature.check(!presented.body.is_empty(), now)?;
                let keys = self.document_of(signature.key()).await?;
                self.work(|| Ok(signature.verify(&keys, &request, presented.targets))).await??
            }
            Credentials::Legacy(legacy) => {
                self.check_legacy(presented)?;
                legacy.check(now)?;
                let keys = self.document_of(legacy.key()).await?;
                let hosts: Vec<&str> = presented.targets.iter().map(|target| host_of(target)).collect();
                self.work(|| Ok(legacy.verify(&keys, &hosts))).await??
            }
        };
        self.admit(proved, now).await
    }

    /// The older header covers next to nothing, so it opens only what nobody can alter.
    fn check_legacy(&self, presented: &Presented<'_>) -> Result<(), AuthError> {
        if !self.legacy_authentication {
            return Err(AuthError::Request("the DIDWba header is not taken here; sign the request as RFC 9421 has it"));
        }
        let reads = ["GET", "HEAD"].contains(&presented.method) && presented.body.is_empty();
        let altered = AuthError::Request("the DIDWba header covers no body and no method; sign the request instead");
        if reads { Ok(()) } else { Err(altered) }
    }

    async fn document_of(&self, key: &DidUrl) -> Result<Arc<trust::DidDocument>, Obstacle> {
        self.dids.resolve(key.did(), Clock::monotonic()).await.map_err(Obstacle::Did)
    }

    /// Uses the nonce up and gives a token; of several who come with one nonce, one is let in.
    async fn admit(self: &Arc<Self>, proved: Proved, now: i64) -> Result<Caller, Obstacle> {
        self.charge(proved.did(), Purpose::Message)?;
        let mark = Mark {
            issuer: proved.did().to_string(),
            name: format!("urn:rialto:request:{}:{}", proved.key.fragment(), proved.once),
            // Chance, so that the same request again is another message of the same name, and never the same message.
            digest: Hash::of(&chance::bytes::<16>()?),
            expires_at: proved.until.saturating_mul(1_000),
        };
        let batch = Batch { mark: Some(mark), at: self.clock.millis(), ..Batch::default() };
        let _place = self.place()?;
        match self.commit(batch).instrument(debug_span!("nonce")).await? {
            Ok(_) => {}
            Err(CommitError::NameTaken { .. }) => return Err(AuthError::REPLAYED.into()),
            Err(error) => return Err(commit_refused(error).into()),
        }
        let did = proved.did().clone();
        let token = AccessToken {
            subject: did.clone(),
            audience: self.identity.did().clone(),
            issued: now,
            name: chance::name()?,
        };
        Ok(Caller { did, token: Some(self.identity.access_token(&token)) })
    }
}

impl Obstacle {
    /// The refusal, and beside it the challenge where another proof may help.
    fn told(self, realm: &str) -> Unproved {
        let (error, refusal) = match self {
            Self::Other(error) => return Unproved { error, challenge: None },
            Self::Auth(error) => {
                let refusal = refusal(&error);
                (Some(error), refusal)
            }
            Self::Did(error) => match error.class() {
                Class::RateLimited => {
                    let refusal = Refusal::new(Class::RateLimited, error.code(), error.to_string());
                    return Unproved { error: refusal.retry_after(LOOK_AGAIN_MS).into(), challenge: None };
                }
                // Whatever is wrong with the document, nobody is proved by it.
                _ => (None, Refusal::new(Class::AuthRequired, error.code(), error.to_string())),
            },
        };
        let nonce = chance::name().ok();
        let challenge = match error {
            Some(error) => Challenge::new(realm, &error, nonce),
            None => Challenge {
                realm: realm.to_owned(),
                error: Some("invalid_did".to_owned()),
                description: Some(refusal.detail.replace(['"', '\\'], "'")),
                nonce: None,
            },
        };
        Unproved { error: refusal.into(), challenge: Some(challenge) }
    }
}

fn refusal(error: &AuthError) -> Refusal {
    let class = if *error == AuthError::Forbidden { Class::PolicyBlock } else { Class::AuthRequired };
    Refusal::new(class, error.code(), error.to_string())
}

/// Milliseconds after which a domain may be asked again for its documents.
const LOOK_AGAIN_MS: u64 = 60_000;

/// The host of an absolute address, without its port.
fn host_of(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rfind(':') {
        Some(colon) if !authority.ends_with(']') => authority.get(..colon).unwrap_or_default(),
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stands_between_scheme_and_port() {
        for (target, host) in [
            ("https://node.example:8443/a?b", "node.example"),
            ("https://node.example/a", "node.example"),
            ("http://[::1]:7420/", "[::1]"),
            ("http://localhost", "localhost"),
        ] {
            assert_eq!(host_of(target), host);
        }
    }
}
