//! The interface described for programs (OpenAPI 3.1) and for people, and the schemas we publish.

use crate::reply;
use crate::routes::Shared;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::HeaderValue;
use axum::http::{Response, StatusCode};

const OPENAPI: &str = include_str!("../openapi.json");
const PAGE: &str = include_str!("../docs.html");

/// The schemas of the documents that go in and out.
const SCHEMAS: [(&str, &str); 3] = [
    ("oap-intent.schema.json", include_str!("../../../spec/schemas/oap-intent.schema.json")),
    ("oap-intent-response.schema.json", include_str!("../../../spec/schemas/oap-intent-response.schema.json")),
    ("oap-aql-decision.schema.json", include_str!("../../../spec/schemas/oap-aql-decision.schema.json")),
];

pub(crate) async fn openapi() -> Response<Body> {
    reply::with_type(StatusCode::OK, HeaderValue::from_static("application/json; charset=utf-8"), OPENAPI)
}

pub(crate) async fn page() -> Response<Body> {
    let mut response = reply::with_type(StatusCode::OK, HeaderValue::from_static("text/html; charset=utf-8"), PAGE);
    // The page is ours alone: nothing is loaded from elsewhere.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
    response.headers_mut().insert("content-security-policy", HeaderValue::from_static(policy));
    response
}

pub(crate) async fn schema(State(shared): State<Shared>, Path(name): Path<String>) -> Response<Body> {
    match SCHEMAS.iter().find(|(known, _)| *known == name) {
        Some((_, schema)) => {
            let media_type = HeaderValue::from_static("application/schema+json; charset=utf-8");
            reply::with_type(StatusCode::OK, media_type, *schema)
        }
        None => {
            let refusal = node::Refusal::new(node::Class::NotFound, "no_such_path", "there is no schema of this name");
            reply::refused(&shared.node, "", &refusal.into())
        }
    }
}
