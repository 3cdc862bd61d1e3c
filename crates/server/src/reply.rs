//! What the node says, as HTTP: one place knows which refusal has which status.

use crate::request;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use node::versions::Notice;
use node::{Class, Error, Exhibit, Node, Refusal};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::{Duration, UNIX_EPOCH};

/// The media type of signed documents.
const OAP_JSON: HeaderValue = HeaderValue::from_static("application/oap+json; charset=utf-8");
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A signed document.
pub(crate) fn signed(bytes: Vec<u8>) -> Response<Body> {
    with_type(StatusCode::OK, OAP_JSON, bytes)
}

/// A document that needs no signature.
pub(crate) fn json(value: &json::Value) -> Response<Body> {
    with_type(StatusCode::OK, JSON, json::canonical_value(value))
}

/// Anything else.
pub(crate) fn with_type(status: StatusCode, media_type: HeaderValue, bytes: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// The same reply, with what RFC 9745, RFC 8594 and RFC 8288 have programs look for: since when the version is
/// deprecated, when it goes, and the record that announced it, which lies at this node.
pub(crate) fn deprecated(mut response: Response<Body>, notice: &Notice, base: &str) -> Response<Body> {
    let seconds = u64::try_from(notice.sunset.seconds()).unwrap_or_default();
    let sunset = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    let record = utf8_percent_encode(&notice.record, NON_ALPHANUMERIC);
    let told = [
        ("deprecation", format!("@{}", notice.announced_at.seconds())),
        ("sunset", sunset),
        ("link", format!("<{base}/oap/records/{record}>; rel=\"deprecation\"; type=\"application/json\"")),
    ];
    for (name, value) in told {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// The same reply, with the name of its request.
pub(crate) fn named(mut response: Response<Body>, id: &str) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(HeaderName::from_static("oap-request-id"), id);
    }
    response
}

/// The signed envelope of a refusal; a fault is told to the log, and only that it happened to the caller.
pub(crate) fn refused(node: &Node, request_id: &str, error: &Error) -> Response<Body> {
    match error {
        Error::Refusal(refusal) => {
            let mut response = with_type(status(refusal.class), OAP_JSON, node.refuse(request_id, refusal));
            if let Some(retry) = refusal.retry_after_ms {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry.div_ceil(1_000)));
            }
            response
        }
        Error::Fault(fault) | Error::Exposed(fault) => {
            tracing::error!(request_id, fault, "a job failed");
            let detail = "the node failed here, and its operator is told; the same message may be sent again";
            let refusal = Refusal::new(Class::Internal, "internal_error", detail);
            with_type(status(refusal.class), OAP_JSON, node.refuse(request_id, &refusal))
        }
    }
}

pub(crate) fn status(class: Class) -> StatusCode {
    match class {
        Class::InvalidInput => StatusCode::BAD_REQUEST,
        Class::AuthRequired => StatusCode::UNAUTHORIZED,
        Class::PolicyBlock => StatusCode::FORBIDDEN,
        Class::NotFound => StatusCode::NOT_FOUND,
        Class::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Class::Timeout => StatusCode::REQUEST_TIMEOUT,
        Class::Misdirected => StatusCode::MISDIRECTED_REQUEST,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Gone => StatusCode::GONE,
        Class::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Class::UnsupportedMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Class::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        Class::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Class::Upstream => StatusCode::BAD_GATEWAY,
        Class::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Class::Overdue => StatusCode::GATEWAY_TIMEOUT,
        Class::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A record as the public sees it, or the word that the caller's copy of it is still right.
pub(crate) fn record(exhibit: Exhibit, headers: &HeaderMap) -> Response<Body> {
    let (media_type, digest, bytes, kind, publisher, place) = match exhibit {
        Exhibit::Original(record) => {
            let place = Some((record.revision, record.number));
            (JSON, store::Hash::of(&record.body), record.body, record.kind, record.publisher, place)
        }
        Exhibit::View { kind, publisher, digest, bytes } => (OAP_JSON, digest, bytes, kind, publisher, None),
    };
    let etag = format!("\"sha256:{digest}\"");
    let mut response = if request::has(headers, &etag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        with_type(StatusCode::OK, media_type, bytes)
    };
    let mut told = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    };
    told("etag", etag);
    // A record can be replaced or withdrawn at any moment: ask, and a copy costs nothing.
    told("cache-control", "no-cache".to_owned());
    told("oap-record-kind", kind.name().to_owned());
    if let Some((revision, number)) = place {
        told("oap-record-revision", revision.to_string());
        told("oap-record-sequence", number.to_string());
    }
    told("oap-record-publisher", publisher);
    response
}
