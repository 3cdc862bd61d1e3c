//! What is looked at before a message is read: its type, its encoding, its size, the time it takes.

use crate::routes::Name;
use axum::body::Body;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, IF_NONE_MATCH};
use http_body_util::BodyExt;
use node::{Class, Error, Refusal};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Characters of a caller's own request id that are taken over.
const ID_CHARS_MAX: usize = 64;

/// The name of a request: the caller's, when it is a plain word, else one of ours.
pub(crate) fn id(headers: &HeaderMap) -> String {
    let given = ["oap-request-id", "x-request-id"].iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let plain = |id: &&str| {
        (1..=ID_CHARS_MAX).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    given.filter(plain).map(str::to_owned).unwrap_or_else(own_id)
}

/// A name for a request that has none.
#[expect(clippy::disallowed_methods, reason = "a request id is chance, and this is where requests are named")]
pub(crate) fn own_id() -> String {
    let mut bytes = [0; 16];
    // Without chance two requests share a name in the log; nothing else hangs on it.
    let _ = getrandom::fill(&mut bytes);
    trust::encoding::encode(&bytes)
}

/// A little chance, so that not everybody comes back at the same moment.
#[expect(clippy::disallowed_methods, reason = "when somebody is to come again is chance")]
pub(crate) fn jitter() -> u8 {
    let mut byte = [0];
    // Without chance everybody comes back at the earliest moment.
    let _ = getrandom::fill(&mut byte);
    let [jitter] = byte;
    jitter
}

/// The body of a message, within its limit.
pub(crate) async fn body(
    headers: &HeaderMap,
    mut body: Body,
    limits: &json::Limits,
    patience: Duration,
) -> Result<Vec<u8>, Error> {
    check_type(headers)?;
    let max = u64::from(limits.bytes);
    let too_large = |got: u64| {
        let detail = format!("a message to this address has at most {max} bytes");
        Refusal::new(Class::TooLarge, "json_too_large", detail).limited(&format!("{}.bytes", limits.subject), max, got)
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(announced) = announced.filter(|announced| *announced > max) {
        return Err(too_large(announced).into());
    }
    let (mut read, begun) = (Vec::new(), Instant::now());
    loop {
        // A body may take a while, and after that no longer than its bytes at the slowest pace.
        let earned = Duration::from_secs(read.len() as u64 / node::EDGE.body_bytes_per_second);
        let Ok(frame) = timeout_at(begun + patience + earned, body.frame()).await else {
            let slow = "the message did not arrive in time; send it again";
            return Err(Refusal::new(Class::Timeout, "request_timeout", slow).into());
        };
        match frame.transpose() {
            Ok(None) => return Ok(read),
            Ok(Some(frame)) => read.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Err(_) => {
                let detail = "the message broke off; send it again";
                return Err(Refusal::new(Class::InvalidInput, "body_incomplete", detail).into());
            }
        }
        if read.len() as u64 > max {
            return Err(too_large(read.len() as u64).into());
        }
    }
}

/// What the address names, once its escapes are read.
pub(crate) fn name(name: Name) -> Result<String, Refusal> {
    let detail = "the end of the address is no UTF-8 once its escapes are read";
    name.map(|Path(name)| name).map_err(|_| Refusal::new(Class::InvalidInput, "invalid_value", detail))
}

/// Whether a cached copy that the caller names is the one that would be sent.
pub(crate) fn has(headers: &HeaderMap, etag: &str) -> bool {
    let named = headers.get_all(IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    named.flat_map(|tags| tags.split(',')).map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(CONTENT_ENCODING) {
        let detail = "messages are read as they are; send them without a content encoding";
        return Err(Refusal::new(Class::UnsupportedMedia, "content_encoding_not_supported", detail));
    }
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let mut parts = given.split(';').map(str::trim);
    let named = parts.next().unwrap_or_default().to_ascii_lowercase();
    let utf8 = parts
        .all(|part| !part.to_ascii_lowercase().starts_with("charset") || part.to_ascii_lowercase().contains("utf-8"));
    if ["application/json", "application/oap+json"].contains(&named.as_str()) && utf8 {
        return Ok(());
    }
    let detail = "send `Content-Type: application/json` or `application/oap+json`, in UTF-8";
    Err(Refusal::new(Class::UnsupportedMedia, "content_type_not_supported", detail))
}
