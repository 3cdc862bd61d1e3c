//! How anything leaves this machine: through a client that is handed in, with bounds for every exchange.
//!
//! INVARIANT: a request is never shown with its header fields, since credentials travel there.

use crate::Pending;
use std::fmt;
use std::time::Duration;

/// Sends requests for tools and models; nobody is ever sent on to another address.
pub trait Http: Send + Sync {
    /// Sends a request and waits for the head of the answer.
    fn send(&self, request: Request) -> Pending<'_, Result<Response, HttpError>>;
}

/// What is sent.
pub struct Request {
    /// Such as `POST`.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Header fields by name, credentials among them.
    pub headers: Vec<(String, String)>,
    /// The body, where there is one.
    pub body: Option<Vec<u8>>,
    /// How long all of it may take, the body of the answer included.
    pub time: Duration,
    /// Bytes that the body of the answer may have.
    pub bytes_max: usize,
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Request({})", self.method)
    }
}

/// What came back.
pub struct Response {
    /// The status of HTTP.
    pub status: u16,
    /// Header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// What follows.
    pub body: Box<dyn Body>,
}

impl fmt::Debug for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Response({})", self.status)
    }
}

/// The body of an answer while it arrives; it ends with an error as soon as it is longer than was asked for.
pub trait Body: Send {
    /// The next bytes; `None` at the end.
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>>;
}

impl Response {
    /// The value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the request succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the body is a stream of events.
    pub fn is_events(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    }

    /// All of the body.
    pub async fn whole(mut self) -> Result<Vec<u8>, HttpError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.body.next().await? {
            whole.extend(bytes);
        }
        Ok(whole)
    }
}

/// Why there is no answer. It says what happened and nothing of what was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The address may not be asked, or not now; nothing was sent.
    #[error("{0}")]
    Refused(&'static str),
    /// No connection; nothing was sent.
    #[error("nobody answers")]
    Unreachable,
    /// The connection ended after the request was sent.
    #[error("the connection ended before the answer did")]
    Lost,
    /// Not within the time.
    #[error("there was no answer in time")]
    Timeout,
    /// More bytes than asked for.
    #[error("the answer is longer than asked for")]
    TooLarge,
    /// An answer that is not understood here: sent elsewhere, or compressed.
    #[error("{0}")]
    Unusable(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_without_its_header_fields() {
        let request = Request {
            method: "POST".to_owned(),
            url: "https://a.example/".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer marker".to_owned())],
            body: Some(b"marker".to_vec()),
            time: Duration::ZERO,
            bytes_max: 0,
        };
        assert_eq!(format!("{request:?}"), "Request(POST)");
    }
}
