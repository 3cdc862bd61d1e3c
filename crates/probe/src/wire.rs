//! One exchange with a node: a request out, a reply in. Everything else here is about what is said.

use anyhow::Result;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Bytes of a reply that are read; a page of an answer is smaller by far.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// How long one exchange may take.
const EXCHANGE_TIME: Duration = Duration::from_secs(30);

/// How often a message is sent again when its connection was closed.
const RETRIES: usize = 3;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole address.
    pub url: &'a str,
    /// What the body is said to be.
    pub media_type: &'a str,
    /// The body; empty for none.
    pub body: &'a [u8],
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body, as it came.
    pub body: Vec<u8>,
}

/// Somebody who exchanges messages with a node; several threads do so at once.
pub trait Exchange: Send + Sync {
    /// Sends a request and waits for its reply.
    fn exchange(&self, request: &Request<'_>) -> Result<Reply>;
}

/// HTTP, with TLS where the address asks for it.
pub struct Http {
    runtime: Runtime,
    client: Client,
}

impl Http {
    /// A client that trusts the certificates that this machine trusts.
    pub fn new() -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(EXCHANGE_TIME)
            .user_agent(concat!("rialto-conformance/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { runtime, client })
    }
}

impl Exchange for Http {
    fn exchange(&self, request: &Request<'_>) -> Result<Reply> {
        // A node may close an idle connection just when it is used again. Every message here may be sent twice: the
        // same bytes have the same effect once.
        for _ in 0..RETRIES {
            match self.once(request) {
                Err(error) if error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_request) => {}
                done => return done,
            }
        }
        self.once(request)
    }
}

impl Http {
    fn once(&self, request: &Request<'_>) -> Result<Reply> {
        let method = Method::from_bytes(request.method.as_bytes())?;
        let mut sending = self.client.request(method, request.url);
        if request.method != "GET" {
            sending = sending.header(CONTENT_TYPE, request.media_type).body(request.body.to_vec());
        }
        self.runtime.block_on(async {
            let mut response = sending.send().await?;
            let (status, mut body) = (response.status().as_u16(), Vec::new());
            while let Some(chunk) = response.chunk().await? {
                anyhow::ensure!(body.len() + chunk.len() <= REPLY_BYTES_MAX, "{}: too long a reply", request.url);
                body.extend_from_slice(&chunk);
            }
            Ok(Reply { status, body })
        })
    }
}
