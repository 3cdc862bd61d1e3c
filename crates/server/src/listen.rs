//! Connections: plain HTTP on loopback only, TLS everywhere else, and an end without cutting anybody off.

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 4_096;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// Header fields of a request.
const HEADERS_MAX: usize = 64;

/// How long a caller is waited for, and a caller waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the head of a request, and for the next request on an open connection.
    pub head: Duration,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For the body of a request.
    pub body: Duration,
    /// For an answer, from the head of the request on.
    pub answer: Duration,
    /// For requests under way when the node stops.
    pub farewell: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(5),
            handshake: Duration::from_secs(5),
            body: Duration::from_secs(10),
            answer: Duration::from_millis(node::CALL_MS_MAX),
            farewell: Duration::from_secs(10),
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

/// An address that is listened on; nobody is served yet.
pub struct Listening {
    listener: TcpListener,
    tls: Option<Tls>,
    address: SocketAddr,
    patience: Patience,
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
        Ok(Self { listener, tls, address, patience: Patience::default() })
    }

    /// The same with other times to wait.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
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
pub async fn serve(listening: Listening, router: Router, stop: impl Future<Output = ()>) {
    let (graceful, patience) = (GracefulShutdown::new(), listening.patience);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::pin!(stop);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let stream = tokio::select! {
            accepted = listening.listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, mostly: others must go before anybody can come.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let (router, tls, watcher) = (router.clone(), listening.tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            // The HTTP library begins to count with the first byte; whoever says nothing is not waited for.
            if tokio::time::timeout(patience.head, stream.peek(&mut [0])).await.is_err() {
                return;
            }
            match tls {
                None => converse(stream, router, watcher, patience).await,
                Some(tls) => {
                    if let Some(stream) = shake_hands(stream, &tls, patience).await {
                        converse(stream, router, watcher, patience).await;
                    }
                }
            }
        });
    }
    drop(listening);
    if tokio::time::timeout(patience.farewell, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still under way and are cut off");
    }
}

async fn shake_hands(stream: TcpStream, tls: &Tls, patience: Patience) -> Option<TlsStream<TcpStream>> {
    let shaken = tokio::time::timeout(patience.handshake, tls.0.accept(stream)).await.ok()?;
    shaken.inspect_err(|error| tracing::debug!(%error, "no TLS")).ok()
}

async fn converse<S>(stream: S, router: Router, watcher: Watcher, patience: Patience)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(patience);
        router.clone().call(request)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(node::STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .keep_alive_interval(Duration::from_secs(20));
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended badly");
    }
}
