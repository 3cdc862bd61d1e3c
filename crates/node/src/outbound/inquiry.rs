//! A request of any method, and all that came back: for whoever calls an agent or visits a host again.
//!
//! INVARIANT: a request that proves who sent it, or that is no GET, stays at the address it was made for.

use super::FetchError;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Url};

/// What is asked of somebody.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole address.
    pub url: &'a str,
    /// Header fields beside the usual ones, names in lower case.
    pub headers: &'a [(&'a str, String)],
    /// The body; empty where there is none.
    pub body: &'a [u8],
}

/// Header fields that are worth something at one address only.
const PROVING: [&str; 3] = ["authorization", "signature", "cookie"];

impl Inquiry<'_> {
    /// Whether it may not be sent on to another address.
    pub(super) fn is_for_its_address(&self) -> bool {
        self.method != "GET" || self.headers.iter().any(|(name, _)| PROVING.contains(name))
    }

    pub(super) fn request(&self, client: &Client, url: Url) -> Result<RequestBuilder, FetchError> {
        let method = Method::from_bytes(self.method.as_bytes()).map_err(|_| FetchError::Url)?;
        let headers = self.headers.iter();
        let request = headers.fold(client.request(method, url), |request, (name, value)| request.header(*name, value));
        Ok(if self.body.is_empty() { request } else { request.body(self.body.to_vec()) })
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Response {
    /// Where it came from, after all hops.
    pub url: String,
    /// The status of HTTP.
    pub status: u16,
    /// The body; empty where nothing was changed.
    pub body: Vec<u8>,
    fields: HeaderMap,
}

impl Response {
    pub(super) fn new(url: String, status: u16, fields: HeaderMap, body: Vec<u8>) -> Self {
        Self { url, status, body, fields }
    }

    /// A header field that is text; of several of one name, the first.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|field| field.to_str().ok())
    }

    /// Seconds for which the other side wants to be left alone.
    pub fn retry_after(&self) -> Option<u64> {
        self.field(RETRY_AFTER.as_str()).and_then(feed::webhook::retry_after)
    }

    /// Whether the body is said to be JSON.
    pub fn is_json(&self) -> bool {
        let kind = self.field(CONTENT_TYPE.as_str()).unwrap_or_default();
        kind.split(';').next().is_some_and(|kind| kind.trim().to_ascii_lowercase().ends_with("json"))
    }
}
