//! did:web: a host, maybe a port, maybe a path; its document lies there.
//!
//! `%3A` before the port is the only percent sign there may be: whoever decodes less than the next reader fetches from
//! another place than the one that was checked.
//!
//! INVARIANT: what [`Location::read`] lets through contains no character that means something else in a URL.

use super::DidError;

/// Where a document lies. Whether we may go there (addresses, ports) is the fetcher's question.
pub(super) struct Location<'a> {
    host: &'a str,
    port: Option<u16>,
    segments: Vec<&'a str>,
}

impl<'a> Location<'a> {
    /// Reads the part behind `did:web:`.
    pub(super) fn read(id: &'a str) -> Result<Self, DidError> {
        let mut parts = id.split(':');
        let authority = parts.next().unwrap_or_default();
        let (host, port) = match authority.split_once("%3A") {
            Some((host, port)) => (host, Some(read_port(port).ok_or(DidError::Port)?)),
            None => (authority, None),
        };
        if !is_host(host) {
            return Err(DidError::Host);
        }
        let segments: Vec<&str> = parts.collect();
        if !segments.iter().all(|segment| is_segment(segment)) {
            return Err(DidError::Segment);
        }
        Ok(Self { host, port, segments })
    }

    /// The address of the document.
    pub(super) fn document_url(&self) -> String {
        let mut url = format!("https://{}", self.host);
        if let Some(port) = self.port {
            url.push_str(&format!(":{port}"));
        }
        if self.segments.is_empty() {
            url.push_str("/.well-known");
        }
        for segment in &self.segments {
            url.push('/');
            url.push_str(segment);
        }
        url + "/did.json"
    }

    /// The last path segment.
    pub(super) fn last_segment(&self) -> Option<&'a str> {
        self.segments.last().copied()
    }

    /// How many path segments there are.
    pub(super) fn depth(&self) -> usize {
        self.segments.len()
    }
}

/// RFC 1123 labels. Upper case would be a second spelling of the same host.
fn is_host(host: &str) -> bool {
    host.len() <= 253 && host.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let plain = label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    plain && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

fn read_port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

fn is_segment(segment: &str) -> bool {
    let plain = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    plain && !segment.is_empty() && segment != "." && segment != ".."
}
