//! The door out: the one place that asks somebody else, first of all for the DID documents that RFC 0020 A.3 R1 needs.
//!
//! Whom we ask is chosen by strangers. So the URL is checked before anything is sent, a name is resolved once, every
//! address of the answer is checked, and the connection goes to the addresses that were checked and to no other. Where
//! an errand may be sent on, every hop is checked like the first. No proxy, no content encoding, no connection kept.
//! Whom the person at the terminal or the operator names is asked on a [`Line`] instead.
//!
//! INVARIANT: nothing a peer sent is part of an error; bodies stay within the bound while they arrive.

mod policy;
mod errand;
mod pace;
mod cache;
mod dids;
mod inquiry;
mod line;
mod client;
mod hosted;

pub use client::{Client, ClientError};
pub use dids::{DidError, Dids};
pub use errand::Errand;
pub use hosted::Hosted;
pub use inquiry::{Inquiry, Response};
pub use line::{Line, Message, Reply};
pub use policy::DoorPolicy;
pub(crate) use policy::registrable;

use pace::Pace;
use policy::{Destination, Reach};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION};
use reqwest::{StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout};

/// More addresses of one name are not tried.
const ADDRESSES_MAX: usize = 16;

/// Names that the system looks up at a time. It cannot be told to stop, and its threads are those of the store.
const LOOKUPS_MAX: usize = 64;

/// What is added to the time for connecting, so that a place that refuses and one that is silent take equally long.
const SILENCE_MARGIN: Duration = Duration::from_millis(500);

/// Makes outbound requests within a policy.
pub struct Door {
    client: reqwest::Client,
    policy: DoorPolicy,
    reach: Reach,
    pace: Pace,
    /// The same for what is brought to subscribers.
    bringing: Pace,
    /// Whether nobody is trusted, so that nobody can be asked.
    rootless: bool,
    /// When it is told at the earliest that nobody answers properly: a stranger is not to find out which ports are open.
    silence: Duration,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Door")
    }
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
    ///
    /// Where there are no certificates to trust, there is a door all the same, and it refuses every errand by name.
    pub fn new(policy: DoorPolicy) -> Result<Self, DoorError> {
        Self::trusting(roots(), policy)
    }

    fn trusting(roots: RootCertStore, policy: DoorPolicy) -> Result<Self, DoorError> {
        let rootless = roots.is_empty() && !policy.private_networks;
        let (reach, lookup) = (policy.reach(), SystemLookup::new(!policy.private_networks));
        Ok(Self { rootless, ..Self::with(policy, reach, Arc::new(lookup), roots)? })
    }

    /// Whether nobody can be asked, since there are no certificates to trust.
    pub fn is_rootless(&self) -> bool {
        self.rootless
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
        let silence = if policy.private_networks { Duration::ZERO } else { policy.connect + SILENCE_MARGIN };
        let (pace, bringing) = (Pace::new(&policy), Pace::new(&policy.bringing()));
        Ok(Self { client, reach, pace, bringing, policy, rootless: false, silence })
    }

    /// What is found at a URL.
    pub async fn fetch(&self, errand: Errand, url: &str, now: Instant) -> Result<Vec<u8>, FetchError> {
        self.run(errand, url, Sent::Nothing, now).await.map(|came| came.body)
    }

    /// What is answered to a document that is sent to a URL, whatever the status; nobody is sent on.
    pub async fn send(
        &self,
        errand: Errand,
        url: &str,
        parcel: &Parcel<'_>,
        now: Instant,
    ) -> Result<Answered, FetchError> {
        let came = self.run(errand, url, Sent::Parcel(parcel), now).await?;
        let retry_after = came.retry_after();
        Ok(Answered { status: came.status, retry_after, body: came.body })
    }

    /// Everything that came back to a request of any method, whatever the status. What proves its sender or changes
    /// something is not sent on; the rest goes on as far as its errand allows.
    pub async fn inquire(&self, errand: Errand, inquiry: &Inquiry<'_>, now: Instant) -> Result<Response, FetchError> {
        self.run(errand, inquiry.url, Sent::Inquiry(inquiry), now).await
    }

    /// Whether an address may be asked at all, as far as that is known before anybody looks for it.
    pub fn check(&self, url: &str) -> Result<(), FetchError> {
        self.policy.admit(url, self.reach).map(|_| ())
    }

    /// Another door to the same places, for whoever waits longer and comes more often.
    pub(crate) fn beside(&self, total: Duration, per_minute: u32) -> Result<Self, DoorError> {
        let parallel_per_host = self.policy.parallel;
        Self::new(DoorPolicy { total, per_minute, parallel_per_host, ..self.policy.clone() })
    }

    async fn run(&self, errand: Errand, url: &str, sent: Sent<'_>, now: Instant) -> Result<Response, FetchError> {
        let (destination, begun) = (self.policy.admit(url, self.reach)?, tokio::time::Instant::now());
        if self.rootless {
            return Err(FetchError::NoRoots);
        }
        let (pace, total) = match errand {
            Errand::Webhook => (&self.bringing, self.policy.bring),
            _ => (&self.pace, self.policy.total),
        };
        let _place = pace.place().ok_or(FetchError::RateLimited)?;
        let mut admitted = false;
        let asking = async {
            if !pace.count(&destination, now) {
                return Err(FetchError::RateLimited);
            }
            let _turn = pace.turn(&destination).await.ok_or(FetchError::RateLimited)?;
            admitted = true;
            self.follow(errand, destination, sent, now).await
        };
        let outcome = match timeout(total, asking).await {
            Ok(outcome) => outcome,
            Err(_) if admitted => Err(FetchError::Timeout),
            Err(_) => Err(FetchError::RateLimited),
        };
        if matches!(outcome, Err(FetchError::Unreachable | FetchError::NotTls)) {
            sleep_until(begun + self.silence).await;
        }
        outcome
    }

    /// Asks, and asks again where it is sent on, as often as the errand allows.
    async fn follow(
        &self,
        errand: Errand,
        mut destination: Destination,
        sent: Sent<'_>,
        now: Instant,
    ) -> Result<Response, FetchError> {
        for _ in 0..sent.redirects_max(errand) {
            match self.ask(errand, &destination, sent).await? {
                Asked::Found(found) => return Ok(found),
                Asked::Elsewhere(location) => destination = self.policy.hop(&destination, &location, self.reach)?,
            }
            if !self.pace.count(&destination, now) {
                return Err(FetchError::RateLimited);
            }
        }
        match self.ask(errand, &destination, sent).await? {
            Asked::Found(found) => Ok(found),
            Asked::Elsewhere(_) => Err(FetchError::Redirect),
        }
    }

    /// Asks with TLS; on this machine, in a test network, also without when nobody there speaks it.
    async fn ask(&self, errand: Errand, destination: &Destination, sent: Sent<'_>) -> Result<Asked, FetchError> {
        let outcome = self.exchange(errand, destination.url().clone(), sent).await;
        match (outcome, destination.plain()) {
            (Err(FetchError::NotTls | FetchError::Unreachable), Some(plain)) => {
                self.exchange(errand, plain, sent).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn exchange(&self, errand: Errand, url: Url, sent: Sent<'_>) -> Result<Asked, FetchError> {
        let request = sent.request(&self.client, url.clone())?;
        let response = request.send().await.map_err(|error| diagnose(&error))?;
        let status = response.status();
        let location = || response.headers().get(LOCATION).and_then(|field| field.to_str().ok());
        let wanted = match (sent, status) {
            // Whoever sends judges by the status alone; a body that nobody asked for is not waited for.
            (Sent::Parcel(parcel), status) => parcel.is_question && status.is_success(),
            (Sent::Inquiry(_), StatusCode::NOT_MODIFIED) => false,
            (Sent::Nothing | Sent::Inquiry(_), status) if status.is_redirection() => {
                return location().map(|text| Asked::Elsewhere(text.to_owned())).ok_or(FetchError::Redirect);
            }
            (Sent::Inquiry(_), _) | (Sent::Nothing, StatusCode::OK) => true,
            (Sent::Nothing, StatusCode::GONE) => return Err(FetchError::Gone),
            (Sent::Nothing, _) => return Err(FetchError::Status),
        };
        let fields = response.headers().clone();
        let body = match wanted {
            false => Vec::new(),
            true if !fields.get_all(CONTENT_ENCODING).iter().all(identity) => return Err(FetchError::ContentEncoding),
            true => read(response, errand.bytes_max()).await?,
        };
        Ok(Asked::Found(Response::new(url.into(), status.as_u16(), fields, body)))
    }
}

/// What goes out.
#[derive(Clone, Copy)]
enum Sent<'a> {
    /// The question for a document.
    Nothing,
    Parcel(&'a Parcel<'a>),
    Inquiry(&'a Inquiry<'a>),
}

impl Sent<'_> {
    fn request(self, client: &reqwest::Client, url: Url) -> Result<reqwest::RequestBuilder, FetchError> {
        Ok(match self {
            Self::Nothing => client.get(url),
            Self::Parcel(parcel) => {
                let headers = parcel.headers.iter();
                let request = headers.fold(client.post(url), |request, (name, value)| request.header(*name, value));
                request.body(parcel.body.to_vec())
            }
            Self::Inquiry(inquiry) => inquiry.request(client, url)?,
        })
    }

    fn redirects_max(self, errand: Errand) -> usize {
        match self {
            Self::Inquiry(inquiry) if inquiry.is_for_its_address() => 0,
            Self::Nothing | Self::Parcel(_) | Self::Inquiry(_) => errand.redirects_max(),
        }
    }
}

/// What is sent to somebody.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<'a> {
    /// The header fields beside the usual ones.
    pub headers: &'a [(&'static str, String)],
    /// The document.
    pub body: &'a [u8],
    /// Whether what comes back is read.
    pub is_question: bool,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status of HTTP.
    pub status: u16,
    /// Seconds for which the other side wants to be left alone.
    pub retry_after: Option<u64>,
    /// The body, where it was wanted.
    pub body: Vec<u8>,
}

/// What came of asking once.
enum Asked {
    Found(Response),
    /// As the other side wrote it, unchecked.
    Elsewhere(String),
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
async fn read(mut response: reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, FetchError> {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No https URL without user information.
    #[error("this is no https address without user information")]
    Url,
    /// A place the policy does not reach.
    #[error("the address leads outside the public internet")]
    HostForbidden,
    /// A port the policy does not reach.
    #[error("the address names a port that is not asked")]
    PortForbidden,
    /// Too many requests to this domain, or too many waiting.
    #[error("too many requests wait to be sent")]
    RateLimited,
    /// Nobody is trusted, so nobody is asked.
    #[error("there are no CA certificates to trust")]
    NoRoots,
    /// No such name, or nobody answers properly.
    #[error("nobody answers")]
    Unreachable,
    /// Not within the time.
    #[error("there was no answer in time")]
    Timeout,
    /// A certificate that proves nothing.
    #[error("a certificate that proves nothing was shown")]
    Certificate,
    /// Something else than TLS.
    #[error("nobody speaks TLS")]
    NotTls,
    /// Sent elsewhere.
    #[error("we were sent elsewhere")]
    Redirect,
    /// Compressed.
    #[error("a compressed reply came")]
    ContentEncoding,
    /// More bytes than asked for.
    #[error("a reply longer than asked for came")]
    TooLarge,
    /// It was here and is gone for good.
    #[error("what was there is gone for good")]
    Gone,
    /// Any other status than success.
    #[error("the reply was no success")]
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
    // Who does not accept in time and who refuses are the same to a stranger who wants to know our neighbours.
    if error.is_timeout() && !error.is_connect() { FetchError::Timeout } else { FetchError::Unreachable }
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
    places: Arc<Semaphore>,
}

impl SystemLookup {
    fn new(absolute: bool) -> Self {
        Self { absolute, places: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let name = if self.absolute { format!("{name}.") } else { name.to_owned() };
        let places = Arc::clone(&self.places);
        Box::pin(async move {
            let place = places.acquire_owned().await.map_err(io::Error::other)?;
            // A task of its own: whoever asked may give up, and the place is taken until the system is done.
            let looking = tokio::spawn(async move {
                let found = tokio::net::lookup_host((name, 0)).await;
                drop(place);
                found.map(|found| found.map(|found| found.ip()).collect())
            });
            looking.await.map_err(io::Error::other)?
        })
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
mod spellings;
#[cfg(test)]
mod ssrf;
#[cfg(test)]
mod tests;
