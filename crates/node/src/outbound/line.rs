//! A line to somebody whom the person at the terminal or the operator named.
//!
//! They chose whom we ask, so no address is judged; what comes back is bounded all the same, and nobody is sent on.

use super::{DoorError, FetchError, diagnose, identity, read, roots, tls};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use rustls::RootCertStore;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(5);

/// Exchanges messages; connections are kept open between them.
#[derive(Clone, Debug)]
pub struct Line {
    http: reqwest::Client,
    bytes_max: usize,
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole address.
    pub url: &'a str,
    /// Header fields, by name.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, where there is one.
    pub body: Option<&'a [u8]>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Line {
    /// A line that trusts what this machine trusts; an exchange takes at most this long, a reply has at most so many
    /// bytes.
    pub fn new(total: Duration, bytes_max: usize) -> Result<Self, DoorError> {
        Self::trusting(roots(), total, bytes_max)
    }

    pub(super) fn trusting(roots: RootCertStore, total: Duration, bytes_max: usize) -> Result<Self, DoorError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // The name of this machine means this machine, whatever a resolver says.
        let here = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(roots)?)
            .resolve_to_addrs("localhost", &here)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .timeout(total)
            .user_agent(concat!("rialto/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .build()
            .map_err(|error| DoorError::Setup(error.into()))?;
        Ok(Self { http, bytes_max })
    }

    /// The client beneath, for those who read a reply while it arrives.
    pub(super) fn client(&self) -> &reqwest::Client {
        &self.http
    }

    /// Asks for a WebSocket (RFC 6455) and reads its texts until the other side closes it; nothing is said back.
    pub async fn texts_of_socket(&self, url: &str) -> Result<Vec<Vec<u8>>, FetchError> {
        let fields = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            // It proves that a WebSocket is meant, and need not be a secret.
            ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ];
        let url = reqwest::Url::parse(url).map_err(|_| FetchError::Url)?;
        let request = fields.iter().fold(self.http.get(url), |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.map_err(|error| diagnose(&error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(FetchError::Status);
        }
        let mut socket = response.upgrade().await.map_err(|error| diagnose(&error))?;
        let (mut texts, mut text, mut read) = (Vec::new(), Vec::new(), 0);
        loop {
            let [first, second] = bytes(&mut socket).await?;
            let length = match second {
                126 => usize::from(u16::from_be_bytes(bytes(&mut socket).await?)),
                127 => usize::try_from(u64::from_be_bytes(bytes(&mut socket).await?)).unwrap_or(usize::MAX),
                length => usize::from(length),
            };
            read += length.min(self.bytes_max);
            if read >= self.bytes_max {
                return Err(FetchError::TooLarge);
            }
            let mut piece = vec![0; length];
            socket.read_exact(&mut piece).await.map_err(|_| FetchError::Unreachable)?;
            match first & 0x0f {
                0 | 1 => text.extend(piece),
                8 => return Ok(texts),
                _ => continue,
            }
            if first & 0x80 != 0 {
                texts.push(std::mem::take(&mut text));
            }
        }
    }

    /// Sends a message and waits for all of the reply.
    pub async fn exchange(&self, message: &Message<'_>) -> Result<Reply, FetchError> {
        let method = Method::from_bytes(message.method.as_bytes()).map_err(|_| FetchError::Url)?;
        let url = reqwest::Url::parse(message.url).map_err(|_| FetchError::Url)?;
        let headers = message.headers.iter();
        let request =
            headers.fold(self.http.request(method, url), |request, (name, value)| request.header(*name, *value));
        let request = match message.body {
            Some(body) => request.body(body.to_vec()),
            None => request,
        };
        let response = request.send().await.map_err(|error| diagnose(&error))?;
        if !response.headers().get_all(CONTENT_ENCODING).iter().all(identity) {
            return Err(FetchError::ContentEncoding);
        }
        let status = response.status();
        // 303 is an answer that says where what was made can be seen; the others mean that nothing was done here.
        if status.is_redirection() && status != reqwest::StatusCode::SEE_OTHER {
            return Err(FetchError::Redirect);
        }
        let body = read(response, self.bytes_max).await?;
        Ok(Reply { status: status.as_u16(), body })
    }
}

async fn bytes<const N: usize>(socket: &mut reqwest::Upgraded) -> Result<[u8; N], FetchError> {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes).await.map_err(|_| FetchError::Unreachable)?;
    Ok(bytes)
}
