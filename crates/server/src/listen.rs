//! Connections: plain HTTP on loopback only, TLS everywhere else, bounds for all, and an end without cutting anybody off.
//!
//! INVARIANT: nobody waits long to be let in, and only whoever was mostly refused waits at all. Whoever comes when the
//! house is full is told so, or hung up on.

use crate::back::{self, Back};
use crate::connection::{Invitation, Progress, Unsaid, Watched};
use crate::sources::{Bounds, Guest, Present, Source, Sources};
use crate::standing::Line;
use crate::{reply, request};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use node::{Class, EDGE, Node, Refusal};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

/// Connections beyond the bound that are told so; the rest is hung up on.
const TURNED_AWAY_MAX: usize = 256;

/// How long a caller is waited for, and a caller waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the head of a request, from its first byte on, and for the first byte of a connection.
    pub head: Duration,
    /// For the next request on an open connection, and for a caller who takes nothing of the answer.
    pub idle: Duration,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For the body of a request, beside the time that its bytes may take.
    pub body: Duration,
    /// For an answer, from the head of the request on.
    pub answer: Duration,
    /// For requests under way when the node stops.
    pub farewell: Duration,
    /// For the next event of a journal, before a stream says that there is none.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_millis(EDGE.head_ms),
            idle: Duration::from_millis(EDGE.idle_ms),
            handshake: Duration::from_millis(EDGE.head_ms),
            body: Duration::from_millis(EDGE.body_ms),
            answer: Duration::from_millis(node::CALL_MS_MAX),
            farewell: Duration::from_secs(10),
            silence: Duration::from_millis(node::HEARTBEAT_MS),
        }
    }
}

/// Why nobody can be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// As asked for.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Plain HTTP where others can read along.
    #[error(
        "plain HTTP is served on loopback only, and {0} is not; give a certificate and its key, or listen on 127.0.0.1"
    )]
    PlainHttp(SocketAddr),
    /// The certificate or its key cannot be used.
    #[error("{path}: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A certificate and its key, ready to be shown.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// Reads PEM files. TLS 1.3 and nothing older.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, ServeError> {
        let wrong = |path: &Path, reason: String| ServeError::Certificate { path: path.to_owned(), reason };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
            .map_err(|error| wrong(certificate, error.to_string()))?;
        check_private(key).map_err(|reason| wrong(key, reason))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| wrong(certificate, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| wrong(certificate, error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// The key of a certificate may be shared with a group, as many systems do, and with nobody else.
#[cfg(unix)]
fn check_private(key: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(key).map_err(|error| error.to_string())?.permissions().mode() & 0o777;
    let close = format!("anybody can read it (mode {mode:03o}); close it with `chmod o= {}`", key.display());
    if mode & 0o007 == 0 { Ok(()) } else { Err(close) }
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), String> {
    Ok(())
}

/// An address that is listened on; nobody is served yet.
pub struct Listening {
    listener: TcpListener,
    tls: Option<Tls>,
    address: SocketAddr,
    patience: Patience,
    bounds: Bounds,
}

impl Listening {
    /// Takes an address. Without a certificate it must be loopback.
    pub async fn on(address: SocketAddr, tls: Option<Tls>) -> Result<Self, ServeError> {
        if tls.is_none() && !address.ip().is_loopback() {
            return Err(ServeError::PlainHttp(address));
        }
        let failed = |error| ServeError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let bounds = Bounds::at(address.ip());
        Ok(Self { listener, tls, address, patience: Patience::default(), bounds })
    }

    /// The same with other times to wait.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The bounds as they are.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The address as others write it.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Whether connections are encrypted.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }
}

/// Serves until `stop` ends; then finishes what is under way, as long as patience lasts.
pub async fn serve(listening: Listening, node: Arc<Node>, router: Router, stop: impl Future<Output = ()>) {
    let (graceful, patience) = (GracefulShutdown::new(), listening.patience);
    let (stopping, stopped) = watch::channel(false);
    node.waits_on(&Handle::current());
    let foremost = node.bring_foremost();
    let back = listening
        .bounds
        .source_connections
        .and_then(|_| Back::open().inspect_err(|error| tracing::warn!(%error, "there is no back room")).ok());
    let house = House {
        node,
        router,
        patience,
        tls: listening.tls.clone(),
        sources: Sources::new(listening.bounds),
        places: Arc::new(Semaphore::new(listening.bounds.connections)),
        turned_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
        stopped,
        back: back.as_ref().map(Back::door),
    };
    tokio::pin!(stop);
    loop {
        tokio::select! {
            accepted = listening.listener.accept() => match accepted {
                Ok((stream, from)) => house.receive(stream, from.ip(), graceful.watcher()),
                Err(error) => {
                    // Out of descriptors, mostly: others must go before anybody can come.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = &mut stop => break,
        }
    }
    drop((listening, foremost));
    // Streams have no end of their own; they are told that this is it.
    let _ = stopping.send(true);
    if tokio::time::timeout(patience.farewell, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still under way and are cut off");
    }
}

/// The address of this machine at which a connection arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Here(pub(crate) Option<IpAddr>);

/// What every connection needs.
#[derive(Clone)]
struct House {
    node: Arc<Node>,
    router: Router,
    tls: Option<Tls>,
    patience: Patience,
    sources: Arc<Sources>,
    places: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
    /// For whoever was mostly refused, where sources are known.
    back: Option<back::Door>,
}

/// Why a connection may stay, or what it is told.
enum Admission {
    Welcome { _place: OwnedSemaphorePermit, _present: Present },
    Full { _place: OwnedSemaphorePermit, refusal: Refusal },
}

impl House {
    /// Lets somebody in, tells them that there is no room, or hangs up.
    fn receive(&self, stream: TcpStream, from: IpAddr, watcher: Watcher) {
        let source = Source::of(from);
        let Some(admission) = self.admit(source).map(Arc::new) else { return };
        let (house, here) = (self.clone(), Here(stream.local_addr().ok().map(|here| here.ip().to_canonical())));
        let serve = async move |stream: TcpStream| {
            let _ = stream.set_nodelay(true);
            let conversation = async {
                match &house.tls {
                    None => house.converse(stream, source, here, &admission, watcher).await,
                    Some(tls) => {
                        if let Some(stream) = shake_hands(stream, tls, house.patience).await {
                            house.converse(stream, source, here, &admission, watcher).await;
                        }
                    }
                }
            };
            // Whose turn does not come is hung up on.
            let _ = house.sources.standings.in_turn(source, Line::Connection, conversation).await;
        };
        match self.back.as_ref().filter(|_| self.sources.standings.is_for_the_back(source)) {
            Some(back) => back.take(stream, serve),
            None => drop(tokio::spawn(serve(stream))),
        }
    }

    fn admit(&self, source: Source) -> Option<Admission> {
        let refusal = match (self.sources.enter(source), Arc::clone(&self.places).try_acquire_owned()) {
            (Some(present), Ok(place)) => return Some(Admission::Welcome { _place: place, _present: present }),
            (None, _) => too_many_connections(self.sources.bounds()),
            (_, Err(_)) => Refusal::overloaded(),
        };
        let place = Arc::clone(&self.turned_away).try_acquire_owned().ok()?;
        Some(Admission::Full { _place: place, refusal })
    }

    async fn converse<S>(&self, stream: S, source: Source, here: Here, admission: &Arc<Admission>, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (patience, sources, progress) = (self.patience, Arc::clone(&self.sources), Progress::new());
        let (node, router, begun) = (Arc::clone(&self.node), self.router.clone(), progress.clone());
        let full = match &**admission {
            Admission::Welcome { .. } => None,
            Admission::Full { refusal, .. } => Some(refusal.clone()),
        };
        let closes = full.is_some();
        let invitation = Invitation {
            progress: progress.clone(),
            place: Arc::clone(admission) as _,
            stop: self.stopped.clone(),
            guest: Guest::new(&self.sources, source),
        };
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            let under_way = begun.begin();
            let (node, full, mut router) = (Arc::clone(&node), full.clone(), router.clone());
            request.extensions_mut().insert(patience);
            request.extensions_mut().insert(here);
            request.extensions_mut().insert((Arc::clone(&sources), source));
            request.extensions_mut().insert(invitation.clone());
            async move {
                let _under_way = under_way;
                match full {
                    Some(refusal) => Ok(turned_away(&node, &request, refusal)),
                    None => router.call(request).await,
                }
            }
        });
        let (speaker, listed) = (Arc::clone(&self.node), Arc::clone(&self.sources));
        let stream = Watched::new(stream, progress, patience, move |unsaid| {
            listed.standings.note_broken(source);
            said(&speaker, unsaid)
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            // The stream itself is watched, and with a word to whoever is slow.
            .header_read_timeout(None)
            .keep_alive(!closes)
            .max_headers(EDGE.headers)
            .max_buf_size(EDGE.head_bytes);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(node::STREAMS_MAX)
            .max_header_list_size(u32::try_from(EDGE.head_bytes).unwrap_or(u32::MAX))
            .keep_alive_interval(Duration::from_secs(20));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            self.sources.standings.note_broken(source);
            tracing::debug!(%error, "a connection ended badly");
        }
    }
}

async fn shake_hands(stream: TcpStream, tls: &Tls, patience: Patience) -> Option<TlsStream<TcpStream>> {
    let shaken = tokio::time::timeout(patience.handshake, tls.0.accept(stream)).await.ok()?;
    shaken.inspect_err(|error| tracing::debug!(%error, "no TLS")).ok()
}

/// What somebody is told for whom there is no room.
fn turned_away(node: &Node, request: &Request<Incoming>, refusal: Refusal) -> Response<Body> {
    let id = request::id(request.headers());
    reply::named(reply::refused(node, &id, &refusal.into()), &id)
}

fn too_many_connections(bounds: Bounds) -> Refusal {
    let detail = "this source has as many connections as the node gives to one; close some";
    let most = bounds.source_connections.unwrap_or(EDGE.source_connections) as u64;
    let refusal = Refusal::new(Class::RateLimited, "too_many_connections", detail);
    refusal.limited("edge.source_connections", most, most + 1).retry_after(1_000)
}

/// The signed reply in place of one that the library would send without a word.
fn said(node: &Node, unsaid: Unsaid) -> Vec<u8> {
    let refusal = match unsaid {
        Unsaid::SlowHead => {
            let detail = "the head of the request did not arrive in time; send it again";
            Refusal::new(Class::Timeout, "request_timeout", detail)
        }
        Unsaid::Malformed => {
            Refusal::new(Class::InvalidInput, "http_malformed", "this is no HTTP request as RFC 9112 writes it")
        }
        Unsaid::HeadTooLarge => {
            let (bytes, fields) = (EDGE.head_bytes, EDGE.headers);
            let detail = format!("the head of a request has at most {bytes} bytes and {fields} fields");
            Refusal::new(Class::TooLarge, "head_too_large", detail)
        }
        Unsaid::AddressTooLong => {
            Refusal::new(Class::TooLarge, "address_too_long", "the address of the request is longer than any of ours")
        }
    };
    let id = request::own_id();
    unsaid.reply(&id, &node.refuse(&id, &refusal))
}
