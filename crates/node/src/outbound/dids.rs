//! From a DID to its document (RFC 0020 A.3 R1), through the door where it must be.
//!
//! A `did:key` is its own document; `did:web` and `did:wba` name the place of theirs. What was found is remembered for
//! five minutes at most, which bounds how long a withdrawn key is still believed; what was not found for one, apart
//! from the rest, so that failures push no document out. Who asks while a fetch is under way shares it.
//!
//! INVARIANT: a document is handed out only when its `id` is the DID, and never after its time.

use super::cache::{Bounds, Cache};
use super::{Door, Errand, FetchError};
use crate::refusal::Class;
use json::{Document, Limits};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use trust::{Did, DidDocument, Method};

const DOCUMENT_LIMITS: Limits = Limits { subject: "did_document", ..Limits::INTENT };

const FOUND: Bounds = Bounds { keep: Duration::from_secs(300), entries: 10_000, bytes: 64 * 1024 * 1024 };

const NOT_FOUND: Bounds = Bounds { keep: Duration::from_secs(60), entries: 10_000, bytes: 16 * 1024 * 1024 };

type Found = Result<Arc<DidDocument>, DidError>;

/// Finds DID documents and remembers them.
#[derive(Clone)]
pub struct Dids {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Dids {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Dids")
    }
}

struct Shared {
    door: Arc<Door>,
    memory: Mutex<Memory>,
}

struct Memory {
    found: Cache<Did, Arc<DidDocument>>,
    not_found: Cache<Did, DidError>,
    under_way: HashMap<Did, watch::Receiver<Option<Found>>>,
}

impl Dids {
    /// Finds documents through this door.
    pub fn new(door: Arc<Door>) -> Self {
        let memory = Memory { found: Cache::new(FOUND), not_found: Cache::new(NOT_FOUND), under_way: HashMap::new() };
        Self { shared: Arc::new(Shared { door, memory: Mutex::new(memory) }) }
    }

    /// The document of a DID, good for checking a signature now.
    pub async fn resolve(&self, did: &Did, now: Instant) -> Result<Arc<DidDocument>, DidError> {
        match did.method() {
            Method::Key => Ok(Arc::new(DidDocument::of_key(did).map_err(DidError::Invalid)?)),
            Method::Web | Method::Wba => self.remember_or_fetch(did, now).await,
            Method::Other => Err(DidError::MethodNotSupported),
        }
    }

    async fn remember_or_fetch(&self, did: &Did, now: Instant) -> Found {
        let mut landing = match self.remembered(did, now) {
            Remembered::Here(found) => return found,
            Remembered::UnderWay(landing) => landing,
        };
        let landed = landing.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        landed.unwrap_or(Err(DidError::Unresolvable))
    }

    /// What is known, or the fetch that will know; under one lock, so that nobody starts a second one.
    fn remembered(&self, did: &Did, now: Instant) -> Remembered {
        let mut memory = self.shared.memory();
        if let Some(document) = memory.found.get(did, now) {
            return Remembered::Here(Ok(document));
        }
        if let Some(error) = memory.not_found.get(did, now) {
            return Remembered::Here(Err(error));
        }
        // A fetch that is gone without a result was torn away; the next one takes its place.
        if let Some(landing) = memory.under_way.get(did).filter(|landing| landing.has_changed().is_ok()) {
            return Remembered::UnderWay(landing.clone());
        }
        let (sender, landing) = watch::channel(None);
        memory.under_way.insert(did.clone(), landing.clone());
        // A task of its own: whoever asked first may hang up, and the others still wait.
        let (shared, did) = (Arc::clone(&self.shared), did.clone());
        tokio::spawn(async move {
            let found = shared.fetch(&did, now).await;
            sender.send_replace(Some(found));
        });
        Remembered::UnderWay(landing)
    }
}

enum Remembered {
    Here(Found),
    UnderWay(watch::Receiver<Option<Found>>),
}

impl Shared {
    /// Fetches, and remembers before anybody is told.
    async fn fetch(&self, did: &Did, now: Instant) -> Found {
        let fetched = self.fetch_document(did, now).await;
        let mut memory = self.memory();
        memory.under_way.remove(did);
        match fetched {
            Ok((document, bytes)) => {
                let document = Arc::new(document);
                memory.not_found.remove(did);
                memory.found.put(did.clone(), Arc::clone(&document), bytes, now);
                Ok(document)
            }
            Err(error) => {
                if error.is_about_the_did() {
                    memory.not_found.put(did.clone(), error.clone(), did.as_str().len(), now);
                }
                Err(error)
            }
        }
    }

    async fn fetch_document(&self, did: &Did, now: Instant) -> Result<(DidDocument, usize), DidError> {
        let url = did.document_url().ok_or(DidError::MethodNotSupported)?;
        let body = self.door.fetch(Errand::DidDocument, &url, now).await?;
        let document =
            Document::parse(&body, &DOCUMENT_LIMITS).map_err(|error| DidError::DocumentNotJson(error.code))?;
        let document =
            DidDocument::read(document.root(), did).map_err(|error| DidError::DocumentInvalid(error.problem))?;
        Ok((document, body.len()))
    }

    /// A poisoned lock guards nothing half-done here: every change is whole before the next can fail.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no document for a DID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DidError {
    /// A method whose documents we cannot find.
    #[error("documents of this DID method are not looked up; use `did:key`, `did:web` or `did:wba`")]
    MethodNotSupported,
    /// No DID, or one whose host is none.
    #[error("{0}")]
    Invalid(#[from] trust::DidError),
    /// A host outside the public internet.
    #[error("the DID leads outside the public internet; use a host name whose every address is public")]
    HostForbidden,
    /// A port we do not ask.
    #[error("the DID names a port that is not asked; use 443 or a port from 1024 on that no other service is known by")]
    PortForbidden,
    /// Nothing there.
    #[error("the DID document could not be fetched; serve it with status 200 where the DID says")]
    Unresolvable,
    /// Not strict JSON; the code says why.
    #[error("the DID document is not JSON as it is read here (`{}`); publish it as one JSON object", .0.name())]
    DocumentNotJson(json::Code),
    /// Not the document of this DID.
    #[error("the DID document cannot be used: {0}")]
    DocumentInvalid(trust::Problem),
    /// Too long.
    #[error("the DID document is too large; at most 64 KiB are read")]
    DocumentTooLarge,
    /// Too slow.
    #[error("the DID's host took too long; it has 2 seconds to accept and 5 seconds to answer in full")]
    UpstreamTimeout,
    /// No trust in the host.
    #[error("the DID's host could not prove its name over TLS; give it a certificate of a public authority")]
    TlsVerificationFailed,
    /// Sent elsewhere.
    #[error("the DID's host redirects; serve the document itself where the DID says")]
    RedirectForbidden,
    /// Compressed.
    #[error("the DID document is sent with a content encoding; send it as it is")]
    ContentEncodingNotSupported,
    /// Too often.
    #[error("too many DIDs of this domain are being looked up; try again in a minute")]
    ResolutionRateLimited,
    /// Nobody can be asked.
    #[error("this node trusts no CA certificates and asks nobody; use a `did:key`, or tell its operator")]
    TlsRootsMissing,
    /// Withdrawn by its owner.
    #[error("the DID has been deactivated: its host says the document is gone; sign with another DID")]
    Deactivated,
}

impl DidError {
    /// The stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MethodNotSupported => "did_method_unsupported",
            Self::Invalid(_) => "invalid_did",
            Self::HostForbidden => "did_host_forbidden",
            Self::PortForbidden => "did_port_forbidden",
            Self::Unresolvable => "did_unresolvable",
            Self::DocumentNotJson(_) | Self::DocumentInvalid(_) => "did_document_invalid",
            Self::DocumentTooLarge => "did_document_too_large",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::TlsVerificationFailed => "tls_verification_failed",
            Self::RedirectForbidden => "redirect_forbidden",
            Self::ContentEncodingNotSupported => "content_encoding_not_supported",
            Self::ResolutionRateLimited => "did_resolution_rate_limited",
            Self::TlsRootsMissing => "tls_roots_missing",
            Self::Deactivated => "did_deactivated",
        }
    }

    /// Whose mistake it is: the sender's, who names what is none or may not be asked; the host's, who lets us down; or
    /// nobody's, when there is a document and it proves nothing.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::MethodNotSupported | Self::Invalid(_) | Self::HostForbidden | Self::PortForbidden => {
                Class::InvalidInput
            }
            Self::DocumentNotJson(_) | Self::DocumentInvalid(_) | Self::Deactivated => Class::AuthRequired,
            Self::ResolutionRateLimited => Class::RateLimited,
            Self::Unresolvable
            | Self::DocumentTooLarge
            | Self::UpstreamTimeout
            | Self::TlsVerificationFailed
            | Self::TlsRootsMissing
            | Self::RedirectForbidden
            | Self::ContentEncodingNotSupported => Class::Upstream,
        }
    }

    /// Whether asking again soon would end alike. What we refused for our own sake says nothing about the DID.
    fn is_about_the_did(&self) -> bool {
        !matches!(self, Self::ResolutionRateLimited | Self::TlsRootsMissing)
    }
}

impl From<FetchError> for DidError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Url => Self::Invalid(trust::DidError::Host),
            FetchError::HostForbidden => Self::HostForbidden,
            FetchError::PortForbidden => Self::PortForbidden,
            FetchError::RateLimited => Self::ResolutionRateLimited,
            FetchError::NoRoots => Self::TlsRootsMissing,
            // Who speaks no TLS is as good as nobody: which ports of a place are open is nobody's business.
            FetchError::Unreachable | FetchError::NotTls | FetchError::Status => Self::Unresolvable,
            FetchError::Timeout => Self::UpstreamTimeout,
            FetchError::Certificate => Self::TlsVerificationFailed,
            FetchError::Redirect => Self::RedirectForbidden,
            FetchError::ContentEncoding => Self::ContentEncodingNotSupported,
            FetchError::TooLarge => Self::DocumentTooLarge,
            FetchError::Gone => Self::Deactivated,
        }
    }
}

#[cfg(test)]
mod tests;
