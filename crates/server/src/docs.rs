//! The interface described for programs (OpenAPI 3.1) and for people, the refusal codes, and the schemas we publish.

mod page;

use crate::reply;
use crate::routes::{Asked, Name, Shared};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::HeaderValue;
use axum::http::{HeaderMap, Response, StatusCode, Uri};

const OPENAPI: &str = include_str!("../openapi.json");
/// Written by `cargo xtask generate` from `spec/refusals.toml`.
const REFUSALS: &str = include_str!("../refusals.json");

macro_rules! schemas {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../../spec/schemas/", $name)))),*] };
}

/// The schemas of the documents that go in and out.
const SCHEMAS: [(&str, &str); 31] = schemas![
    "oap-intent.schema.json",
    "oap-intent-response.schema.json",
    "oap-aql-decision.schema.json",
    "oap-response-envelope.schema.json",
    "oap-request-envelope.schema.json",
    "oap-manifest.schema.json",
    "oap-deletion-receipt.schema.json",
    "oap-conformance-receipt.schema.json",
    "oap-compatibility-profile.schema.json",
    "oap-schema-mapping.schema.json",
    "oap-settlement-confirmation.schema.json",
    "rialto-payment-session-request.schema.json",
    "rialto-payment-session.schema.json",
    "rialto-ledger-entry.schema.json",
    "rialto-publication.schema.json",
    "rialto-withdrawal.schema.json",
    "rialto-evidence.schema.json",
    "rialto-explain-request.schema.json",
    "rialto-deletion-request.schema.json",
    "rialto-audit.schema.json",
    "rialto-incidents.schema.json",
    "rialto-subscription-ack.schema.json",
    "rialto-subscription-control.schema.json",
    "rialto-subscription-events.schema.json",
    "rialto-subscription-state.schema.json",
    "rialto-manifest-event.schema.json",
    "rialto-heartbeat.schema.json",
    "rialto-discover-request.schema.json",
    "rialto-discover.schema.json",
    "rialto-receipt-verification.schema.json",
    "rialto-receipt-chain.schema.json",
];

/// Earlier versions of schemas, which stay where they are (RFC 0024 §3.4).
const EARLIER: [(&str, &str); 2] = [
    ("oap-intent-1.2.schema.json", include_str!("../../../spec/families/oap-intent-1.2.schema.json")),
    ("oap-intent-response-1.2.schema.json", include_str!("../../../spec/families/oap-intent-response-1.2.schema.json")),
];

/// The address in the examples of `openapi.json`.
const EXAMPLE_BASE: &str = "http://127.0.0.1:7420";

/// The pages for people, made once.
#[derive(Default)]
pub(crate) struct Pages {
    docs: String,
}

impl Pages {
    pub(crate) fn new() -> Self {
        Self { docs: page::render(OPENAPI, REFUSALS, SCHEMAS.iter().map(|(name, _)| *name)) }
    }
}

pub(crate) async fn openapi() -> Response<Body> {
    reply::with_type(StatusCode::OK, HeaderValue::from_static("application/json; charset=utf-8"), OPENAPI)
}

pub(crate) async fn refusals() -> Response<Body> {
    reply::with_type(StatusCode::OK, HeaderValue::from_static("application/json; charset=utf-8"), REFUSALS)
}

pub(crate) async fn page(State(shared): State<Shared>, headers: HeaderMap, uri: Uri) -> Response<Body> {
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    // Whoever reads the page can try its examples as they stand: they name the address that was asked.
    let docs = shared.pages.docs.replace(EXAMPLE_BASE, &shared.base(&headers, &uri));
    let mut response = reply::with_type(StatusCode::OK, html, docs);
    // The page is ours alone: it runs nothing, loads nothing from elsewhere and is framed by nobody.
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    response.headers_mut().insert("content-security-policy", HeaderValue::from_static(policy));
    response
}

pub(crate) async fn schema(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
) -> Response<Body> {
    let name = name.map(|axum::extract::Path(name)| name).unwrap_or_default();
    match SCHEMAS.iter().chain(&EARLIER).find(|(known, _)| *known == name) {
        Some((_, schema)) => {
            let media_type = HeaderValue::from_static("application/schema+json; charset=utf-8");
            reply::with_type(StatusCode::OK, media_type, *schema)
        }
        None => {
            let detail = "there is no schema of this name; `/docs` lists them";
            let refusal = node::Refusal::new(node::Class::NotFound, "no_such_path", detail);
            reply::refused(&shared.node, &asked.id, &refusal.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::Value;
    use std::collections::BTreeSet;

    fn read(text: &str) -> Value {
        json::Document::parse(text.as_bytes(), &json::Limits::OURS).unwrap().root().to_value()
    }

    #[test]
    fn the_description_and_the_router_have_the_same_paths() {
        let described = read(OPENAPI);
        let described: BTreeSet<&str> = described["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let routed = crate::routes::routes().into_iter().chain(crate::engagements::routes());
        let routed: BTreeSet<&str> = routed.map(|(path, _)| path).collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn every_schema_of_the_project_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/schemas");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let served: BTreeSet<String> = SCHEMAS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files.collect::<BTreeSet<String>>(), served);
    }

    #[test]
    fn the_page_names_every_path_code_and_schema_and_runs_nothing() {
        let page = Pages::new().docs;
        for (path, _) in crate::routes::routes() {
            assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        }
        for family in read(REFUSALS).as_array().unwrap() {
            for refusal in family["codes"].as_array().unwrap() {
                let code = refusal["code"].as_str().unwrap();
                assert!(page.contains(&format!("id=\"code-{code}\"")), "{code}");
            }
        }
        assert!(SCHEMAS.iter().all(|(name, _)| page.contains(&format!("href=\"/schemas/{name}\""))));
        assert!(!page.contains("<script") && !page.contains("{{") && !page.contains("src="));
    }
}
