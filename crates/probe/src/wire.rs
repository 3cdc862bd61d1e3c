//! One exchange with a node: a request out, a reply in. Everything else here is about what is said.

use anyhow::Result;

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

    /// The same, asking for a stream of events; its body is read to its end.
    fn exchange_for_stream(&self, request: &Request<'_>) -> Result<Reply> {
        self.exchange(request)
    }

    /// Asks for a WebSocket and reads its texts until the node closes it.
    fn texts_of_socket(&self, url: &str) -> Result<Vec<Vec<u8>>> {
        anyhow::bail!("{url}: no sockets are opened here")
    }
}

#[cfg(feature = "http")]
pub use http::Http;

#[cfg(feature = "http")]
mod http {
    use super::{Exchange, Reply, Request};
    use anyhow::{Context, Result};
    use node::{FetchError, Line, Message};
    use std::time::Duration;
    use tokio::runtime::Runtime;

    /// Bytes of a reply that are read; a page of an answer is smaller by far.
    const REPLY_BYTES_MAX: usize = 16 << 20;
    /// How long one exchange may take.
    const EXCHANGE_TIME: Duration = Duration::from_secs(30);
    /// How often a message is sent again when its connection was closed.
    const RETRIES: usize = 3;

    /// HTTP, with TLS where the address asks for it.
    pub struct Http {
        runtime: Runtime,
        line: Line,
    }

    impl Http {
        /// A client that trusts the certificates that this machine trusts.
        pub fn new() -> Result<Self> {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            Ok(Self { runtime, line: Line::new(EXCHANGE_TIME, REPLY_BYTES_MAX)? })
        }

        fn once(&self, request: &Request<'_>, accept: &str) -> Result<Reply, FetchError> {
            let headers = [("accept", accept), ("content-type", request.media_type)];
            let sends = request.method != "GET";
            let message = Message {
                method: request.method,
                url: request.url,
                headers: headers.get(..if sends { 2 } else { 1 }).unwrap_or_default(),
                body: sends.then_some(request.body),
            };
            let node::Reply { status, body } = self.runtime.block_on(self.line.exchange(&message))?;
            Ok(Reply { status, body })
        }
    }

    impl Http {
        fn patiently(&self, request: &Request<'_>, accept: &str) -> Result<Reply> {
            // A node may close an idle connection just when it is used again. Every message here may be sent twice:
            // the same bytes have the same effect once.
            for _ in 0..RETRIES {
                match self.once(request, accept) {
                    Err(FetchError::Unreachable) => {}
                    done => return done.with_context(|| request.url.to_owned()),
                }
            }
            self.once(request, accept).with_context(|| request.url.to_owned())
        }
    }

    impl Exchange for Http {
        fn exchange(&self, request: &Request<'_>) -> Result<Reply> {
            self.patiently(request, "application/oap+json, application/json, */*")
        }

        fn exchange_for_stream(&self, request: &Request<'_>) -> Result<Reply> {
            self.patiently(request, "text/event-stream")
        }

        fn texts_of_socket(&self, url: &str) -> Result<Vec<Vec<u8>>> {
            self.runtime.block_on(self.line.texts_of_socket(url)).with_context(|| url.to_owned())
        }
    }
}
