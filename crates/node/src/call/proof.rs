//! ANP-02 from the side of whoever calls: requests are signed, challenges answered once, tokens kept and brought along.
//!
//! A token is kept for the origin that gave it and shown to no other, so that neighbours on one host do not get it.
//!
//! INVARIANT: a signature of ours covers method, address, host and body, whatever a challenge asks for.

use super::{CallError, Visitor};
use crate::chance;
use crate::clock::Clock;
use crate::outbound::{Errand, Inquiry, Response};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use trust::http::{
    COMPONENTS, Challenge, Headers, Request, Signing, TOKEN_SECONDS, WINDOW_SECONDS, legacy_header,
    read_authentication_info, sign, wanted_components,
};
use trust::{DidUrl, SecretKey};
use url::Url;

/// Tokens that are kept at a time.
const TOKENS_MAX: usize = 1_024;

/// Seconds before its end from which on a token is not used any more.
const TOKEN_MARGIN: i64 = 30;

/// Requests that one exchange may take: with a token, signed, and signed as the challenge says.
const ATTEMPTS: usize = 3;

/// As whom we call.
#[derive(Debug)]
pub struct Credentials {
    /// The name of the key in our DID document.
    pub key_id: DidUrl,
    /// The key.
    pub key: SecretKey,
    /// Whether the older header is sent, for servers that know no other; it covers neither address nor body.
    pub legacy: bool,
}

/// What earlier proofs earned, by origin: a token and its end in seconds since 1970.
pub(super) type Tokens = BTreeMap<String, (String, i64)>;

/// A request that somebody put together.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) method: String,
    pub(super) url: Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Visitor {
    /// Sends a request; with `proved`, as us, as often as the other side's challenge makes sense.
    pub(super) async fn send(&self, errand: Errand, prepared: &Prepared, proved: bool) -> Result<Response, CallError> {
        let Some(credentials) = self.credentials.as_ref().filter(|_| proved) else {
            return self.exchange(errand, prepared, &[]).await;
        };
        let origin = prepared.url.origin().ascii_serialization();
        let mut challenge = None;
        for attempt in 1.. {
            let token = self.token(&origin).filter(|_| challenge.is_none());
            let fields = match &token {
                Some(token) => vec![("authorization", format!("Bearer {token}"))],
                None => self.proof(credentials, prepared, challenge.as_ref())?,
            };
            let response = self.exchange(errand, prepared, &fields).await?;
            if response.status != 401 {
                self.keep_token(&origin, &response);
                return Ok(response);
            }
            let asked = Asked::read(&response);
            // Whoever is not told what was wrong with a token may still be let in by a signature.
            let again = token.is_some() || asked.as_ref().is_some_and(|asked| asked.challenge.may_help_to_sign_again());
            if !again || attempt == ATTEMPTS || (token.is_none() && challenge.is_some()) {
                return Ok(response);
            }
            self.forget_token(&origin);
            challenge = asked.filter(|_| token.is_none());
        }
        Err(CallError::Fault("nothing was sent".to_owned()))
    }

    async fn exchange(
        &self,
        errand: Errand,
        prepared: &Prepared,
        proof: &[(&'static str, String)],
    ) -> Result<Response, CallError> {
        let own = prepared.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let headers: Vec<(&str, String)> = own.chain(proof.iter().cloned()).collect();
        let (method, url) = (prepared.method.as_str(), prepared.url.as_str());
        let inquiry = Inquiry { method, url, headers: &headers, body: &prepared.body };
        let answered = self.door.inquire(errand, &inquiry, Clock::monotonic()).await;
        answered.map_err(|error| CallError::Unreached { url: url.to_owned(), error })
    }

    /// The header fields that prove who sends a request.
    fn proof(
        &self,
        credentials: &Credentials,
        prepared: &Prepared,
        asked: Option<&Asked>,
    ) -> Result<Vec<(&'static str, String)>, CallError> {
        let now = self.clock.millis() / 1_000;
        let nonce = match asked.and_then(|asked| asked.challenge.nonce.clone()) {
            Some(nonce) if is_nonce(&nonce) => nonce,
            _ => chance::name()?,
        };
        if credentials.legacy {
            let host = prepared.url.host_str().unwrap_or_default();
            let timestamp = json::Instant::from_unix(now, 0).to_string();
            let header = legacy_header(&credentials.key, &credentials.key_id, host, &nonce, &timestamp);
            return Ok(vec![("authorization", header)]);
        }
        let fields: Vec<(&str, &str)> =
            prepared.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let request = Request {
            method: &prepared.method,
            target: prepared.url.as_str(),
            headers: Headers::new(&fields),
            body: &prepared.body,
        };
        let wanted = asked.map(|asked| wanted_components(&asked.components)).unwrap_or_default();
        // Whoever asks for less than all of it would get a signature that is good elsewhere.
        let covered: Vec<&str> = COMPONENTS.into_iter().chain(wanted).collect();
        let keyid = credentials.key_id.to_string();
        let signing = Signing {
            key: &credentials.key,
            keyid: &keyid,
            created: now,
            expires: now + WINDOW_SECONDS,
            nonce: &nonce,
        };
        Ok(sign(&request, &signing, &covered))
    }

    fn token(&self, origin: &str) -> Option<String> {
        let now = self.clock.millis() / 1_000;
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(origin).filter(|(_, end)| now + TOKEN_MARGIN < *end).map(|(token, _)| token.clone())
    }

    fn forget_token(&self, origin: &str) {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).remove(origin);
    }

    /// Takes the token that a proof earned; older servers give it in a header of requests.
    fn keep_token(&self, origin: &str, response: &Response) {
        if response.status != 200 {
            return;
        }
        let older = || Some((response.field("authorization")?.strip_prefix("Bearer ")?, TOKEN_SECONDS));
        let given = response.field("authentication-info").and_then(read_authentication_info).or_else(older);
        let Some((token, seconds)) = given else { return };
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        let end = (self.clock.millis() / 1_000).saturating_add(seconds);
        tokens.insert(origin.to_owned(), (token.to_owned(), end));
    }
}

/// What the other side wants to see.
struct Asked {
    challenge: Challenge,
    components: String,
}

impl Asked {
    fn read(response: &Response) -> Option<Self> {
        let challenge = Challenge::read(response.field("www-authenticate")?)?;
        Some(Self { challenge, components: response.field("accept-signature").unwrap_or_default().to_owned() })
    }
}

/// Whether what a challenge gives can stand between quotation marks.
fn is_nonce(nonce: &str) -> bool {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    (1..=trust::http::NONCE_BYTES_MAX).contains(&nonce.len()) && nonce.bytes().all(plain)
}
