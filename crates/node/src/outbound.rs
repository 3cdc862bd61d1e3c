//! The door out: the one place that asks somebody else, first of all for the DID documents that RFC 0020 A.3 R1 needs.
//!
//! Whom we ask is chosen by strangers. So the URL is checked before anything is sent, a name is resolved once, every
//! address of the answer is checked, and the connection goes to the addresses that were checked and to no other. No
//! proxy, no redirect, no content encoding, no connection kept.
//!
//! INVARIANT: nothing a peer sent is part of an error; bodies stay within the bound while they arrive.

mod policy;
mod pace;
mod cache;
mod dids;
mod client;

pub use client::{Client, ClientError, Reply};
pub use dids::{DidError, Dids};
pub use policy::DoorPolicy;

use pace::Pace;
use policy::{Destination, Reach};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// More addresses of one name are not tried.
const ADDRESSES_MAX: usize = 16;

/// Makes outbound requests within a policy.
pub struct Door {
    client: reqwest::Client,
    policy: DoorPolicy,
    reach: Reach,
    pace: Pace,
}

/// Why there is no door.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Nobody to trust.
    #[error("no CA certificates were found; install the system's bundle or name one in `SSL_CERT_FILE`")]
    NoRoots,
    /// TLS or the client cannot be set up.
    #[error("the outbound client cannot be set up: {0}")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
}

impl Door {
    /// A door that asks the system for names and for the certificates to trust.
    pub fn new(policy: DoorPolicy) -> Result<Self, DoorError> {
        let roots = roots();
        if roots.is_empty() && !policy.private_networks {
            return Err(DoorError::NoRoots);
        }
        let (reach, lookup) = (policy.reach(), SystemLookup { absolute: !policy.private_networks });
        Self::with(policy, reach, Arc::new(lookup), roots)
    }

    /// A door whose names, addresses and roots are chosen by the caller.
    fn with(
        policy: DoorPolicy,
        reach: Reach,
        lookup: Arc<dyn Lookup>,
        roots: RootCertStore,
    ) -> Result<Self, DoorError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/*+json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(roots)?)
            .dns_resolver(Checked { lookup, reach })
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .https_only(!policy.private_networks)
            .pool_max_idle_per_host(0)
            .connect_timeout(policy.connect)
            .user_agent(concat!("rialto/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .build()
            .map_err(|error| DoorError::Setup(error.into()))?;
        Ok(Self { client, reach, pace: Pace::new(&policy), policy })
    }

    /// The body found at a URL, if it has at most `bytes_max` bytes.
    pub(crate) async fn fetch(&self, url: &str, bytes_max: usize, now: Instant) -> Result<Vec<u8>, FetchError> {
        let destination = self.policy.admit(url, self.reach)?;
        if !self.pace.count(&destination, now) {
            return Err(FetchError::RateLimited);
        }
        let mut admitted = false;
        let asking = async {
            let _turn = self.pace.turn(&destination).await.ok_or(FetchError::RateLimited)?;
            admitted = true;
            self.ask(&destination, bytes_max).await
        };
        match timeout(self.policy.total, asking).await {
            Ok(outcome) => outcome,
            Err(_) if admitted => Err(FetchError::Timeout),
            Err(_) => Err(FetchError::RateLimited),
        }
    }

    /// Asks with TLS; on this machine, in a test network, also without when nobody there speaks it.
    async fn ask(&self, destination: &Destination, bytes_max: usize) -> Result<Vec<u8>, FetchError> {
        let outcome = self.get(destination.url().clone(), bytes_max).await;
        match (outcome, destination.plain()) {
            (Err(FetchError::NotTls | FetchError::Unreachable), Some(plain)) => self.get(plain, bytes_max).await,
            (outcome, _) => outcome,
        }
    }

    async fn get(&self, url: Url, bytes_max: usize) -> Result<Vec<u8>, FetchError> {
        let response = self.client.get(url).send().await.map_err(|error| diagnose(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::GONE => return Err(FetchError::Gone),
            status if status.is_redirection() => return Err(FetchError::Redirect),
            _ => return Err(FetchError::Status),
        }
        if !response.headers().get_all(CONTENT_ENCODING).iter().all(identity) {
            return Err(FetchError::ContentEncoding);
        }
        read(response, bytes_max).await
    }
}

/// The certificates that the system trusts.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, DoorError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| DoorError::Setup(error.into()))?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

/// Whether a content encoding changes nothing.
fn identity(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"identity")
}

/// Reads a body, and stops as soon as it is too long.
async fn read(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, FetchError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| diagnose(&error))? {
        if body.len() + chunk.len() > bytes_max {
            return Err(FetchError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Why nothing was fetched. It says what happened and nothing of what was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchError {
    /// No https URL without user information.
    Url,
    /// A place the policy does not reach.
    HostForbidden,
    /// A port the policy does not reach.
    PortForbidden,
    /// Too many requests to this domain, or too many waiting.
    RateLimited,
    /// No such name, or nobody answers properly.
    Unreachable,
    /// Not within the time.
    Timeout,
    /// A certificate that proves nothing.
    Certificate,
    /// Something else than TLS.
    NotTls,
    /// Sent elsewhere.
    Redirect,
    /// Compressed.
    ContentEncoding,
    /// More bytes than asked for.
    TooLarge,
    /// It was here and is gone for good.
    Gone,
    /// Any other status than success.
    Status,
}

/// What went wrong below, found in the chain of causes.
fn diagnose(error: &reqwest::Error) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.is::<Forbidden>() {
            return FetchError::HostForbidden;
        }
        if let Some(tls) = current.downcast_ref::<rustls::Error>() {
            let certificate = matches!(tls, rustls::Error::InvalidCertificate(_));
            return if certificate { FetchError::Certificate } else { FetchError::NotTls };
        }
        cause = beneath(current);
    }
    if error.is_timeout() { FetchError::Timeout } else { FetchError::Unreachable }
}

/// The next cause; `io::Error` hides the one it wraps from `source`.
fn beneath<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// Finds the addresses of a name.
trait Lookup: Send + Sync {
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// The system's resolver.
struct SystemLookup {
    /// Whether names are taken as they are. Otherwise the system may try them inside its own search domains first.
    absolute: bool,
}

impl Lookup for SystemLookup {
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let name = if self.absolute { format!("{name}.") } else { name.to_owned() };
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// Resolves a name and hands on what was checked: the address that was judged is the one that is dialled.
struct Checked {
    lookup: Arc<dyn Lookup>,
    reach: Reach,
}

/// One of the addresses lies where we may not go. The others are not used either: who mixes them means harm.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to a forbidden address")]
struct Forbidden;

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (answer, reach) = (self.lookup.lookup(name.as_str()), self.reach);
        Box::pin(async move {
            let addresses = answer.await?;
            if !addresses.iter().all(|address| reach(*address)) {
                return Err(Forbidden.into());
            }
            // The port 0 stands for the one of the URL.
            let dialled = addresses.into_iter().take(ADDRESSES_MAX).map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(dialled) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
