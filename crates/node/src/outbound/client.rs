//! A client of one node, which the person at the terminal names.
//!
//! They chose whom we ask, so no address is judged; what comes back is bounded all the same. Plain HTTP is spoken with
//! this machine only: elsewhere others could read along.

use super::{DoorError, FetchError, Line, Message, Reply, roots};
use rustls::RootCertStore;
use std::time::Duration;
use url::{Host, Url};

/// How long an exchange may take.
const TOTAL: Duration = Duration::from_secs(60);
/// Bytes of a reply; what a reader of documents takes at most.
const REPLY_BYTES_MAX: usize = json::Limits::OURS.bytes as usize;

/// Talks to one node.
#[derive(Clone, Debug)]
pub struct Client {
    line: Line,
    base: Url,
}

/// Why nothing was said.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No address that can be asked.
    #[error("`{0}` is no address of a node")]
    Address(String),
    /// Others could read along.
    #[error("plain http is spoken with this machine only, and `{0}` is elsewhere")]
    PlainHttp(String),
    /// No client can be made.
    #[error(transparent)]
    Setup(#[from] DoorError),
    /// The exchange failed.
    #[error("{reason} at {base}")]
    Exchange {
        /// Who was asked.
        base: String,
        /// What happened.
        reason: &'static str,
        /// What may help.
        advice: &'static str,
    },
}

impl ClientError {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Address(_) => "write it like https://node.example or http://127.0.0.1:7420",
            Self::PlainHttp(_) => "use its https address",
            Self::Setup(_) => "check the system's CA certificates",
            Self::Exchange { advice, .. } => advice,
        }
    }
}

impl Client {
    /// A client of the node at an address: https anywhere, http on loopback.
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address(address.to_owned());
        let base = Url::parse(address).map_err(|_| wrong())?;
        let bare = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        let host = base.host().filter(|_| bare).ok_or_else(wrong)?;
        let roots = match base.scheme() {
            "https" => roots(),
            "http" if is_loopback(&host) => RootCertStore::empty(),
            "http" => return Err(ClientError::PlainHttp(host.to_string())),
            _ => return Err(wrong()),
        };
        if roots.is_empty() && base.scheme() == "https" {
            return Err(DoorError::NoRoots.into());
        }
        Ok(Self { line: Line::trusting(roots, TOTAL, REPLY_BYTES_MAX)?, base })
    }

    /// The address as it is shown.
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Reads what stands at a path.
    pub async fn get(&self, path: &[&str]) -> Result<Reply, ClientError> {
        self.get_where(path, &[]).await
    }

    /// Reads what stands at a path; `query` says more.
    pub async fn get_where(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Reply, ClientError> {
        self.exchange("GET", self.url(path, query)?, None).await
    }

    /// Sends a document to a path; `cursor` asks for a later page.
    pub async fn post(&self, path: &[&str], cursor: Option<&str>, body: Vec<u8>) -> Result<Reply, ClientError> {
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        self.post_where(path, cursor.as_slice(), body).await
    }

    /// Sends a document to a path; `query` says more.
    pub async fn post_where(&self, path: &[&str], query: &[(&str, &str)], body: Vec<u8>) -> Result<Reply, ClientError> {
        self.exchange("POST", self.url(path, query)?, Some(body)).await
    }

    /// Sends a document that asks for an end.
    pub async fn delete(&self, path: &[&str], body: Vec<u8>) -> Result<Reply, ClientError> {
        self.exchange("DELETE", self.url(path, &[])?, Some(body)).await
    }

    /// Reads a document that lies at this same host, under its certificate; nothing when the URL leads elsewhere.
    pub async fn get_own(&self, url: &str) -> Result<Option<Reply>, ClientError> {
        match Url::parse(url) {
            Ok(url) if url.scheme() == "https" && url.origin() == self.base.origin() => {
                self.exchange("GET", url, None).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, ClientError> {
        let mut url = self.base.clone();
        let wrong = || ClientError::Address(self.base.to_string());
        url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn exchange(&self, method: &str, url: Url, body: Option<Vec<u8>>) -> Result<Reply, ClientError> {
        let headers = [("accept", "application/oap+json, application/json"), ("content-type", "application/oap+json")];
        let message = Message { method, url: url.as_str(), headers: &headers, body: body.as_deref() };
        self.line.exchange(&message).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: FetchError) -> ClientError {
        let (reason, advice) = match error {
            FetchError::Timeout => ("there was no answer in time", "try again, or look at the node's log"),
            FetchError::Certificate => {
                ("a certificate that proves nothing was shown", "check the name in the address, and the node's chain")
            }
            FetchError::NotTls => ("nobody speaks TLS", "on this machine use http://, or give the node a certificate"),
            FetchError::Redirect => ("we were sent elsewhere", "name the address where the node itself is"),
            FetchError::ContentEncoding => ("a compressed reply came", "name the address where the node itself is"),
            FetchError::TooLarge => ("a reply longer than any document came", "ask for fewer answers"),
            FetchError::Url
            | FetchError::HostForbidden
            | FetchError::PortForbidden
            | FetchError::RateLimited
            | FetchError::NoRoots
            | FetchError::Unreachable
            | FetchError::Gone
            | FetchError::Status => {
                ("nobody answers", "start a node with `rialto serve`, or name another one with --to URL")
            }
        };
        ClientError::Exchange { base: self.address().to_owned(), reason, advice }
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        for address in ["http://127.0.0.1:7420", "http://127.8.8.8", "http://[::1]:1", "http://localhost:7420/"] {
            assert!(Client::new(address).is_ok(), "{address}");
        }
        for address in ["http://node.example", "http://10.0.0.1", "http://localhost.example", "http://[::2]"] {
            assert!(matches!(Client::new(address), Err(ClientError::PlainHttp(_))), "{address}");
        }
        for address in ["node.example", "ftp://127.0.0.1", "http://u:p@127.0.0.1", "http://127.0.0.1/?a=b", ""] {
            assert!(matches!(Client::new(address), Err(ClientError::Address(_))), "{address}");
        }
    }

    #[test]
    fn a_path_is_put_together_from_its_parts() {
        let client = Client::new("http://127.0.0.1:7420/under/").unwrap();
        assert_eq!(client.address(), "http://127.0.0.1:7420/under");
        let url = client.url(&["oap", "records", "did:web:a.example/b?c#d%é"], &[("cursor", "x&y")]).unwrap();
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:7420/under/oap/records/did:web:a.example%2Fb%3Fc%23d%25%C3%A9?cursor=x%26y"
        );
    }
}
