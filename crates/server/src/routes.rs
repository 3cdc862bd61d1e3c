//! From a path to a job.

use crate::metrics::Metrics;
use crate::{docs, reply, request};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{HOST, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use json::{Limits, json};
use node::{Class, Error, Node, Refusal};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// What every route can reach.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) node: Arc<Node>,
    metrics: Arc<Metrics>,
    /// How this node is reached, when its operator said so.
    base: Option<Arc<str>>,
    scheme: &'static str,
}

/// The name of a request, for its log lines and its refusals.
#[derive(Clone)]
struct RequestId(String);

/// The routes of a node. `base` is the address it is known by; without one the asker's own words are used.
pub fn router(node: Arc<Node>, base: Option<&str>, tls: bool) -> Router {
    let scheme = if tls { "https" } else { "http" };
    let shared = Shared { node, metrics: Arc::new(Metrics::new()), base: base.map(Arc::from), scheme };
    Router::new()
        .route("/oap/intent", post(intent))
        .route("/oap/explain", post(explain))
        .route("/oap/decisions/{id}", get(decision))
        .route("/oap/records", post(publish))
        .route("/oap/records/{id}", get(record).delete(withdraw))
        .route("/.well-known/oap-tool.json", get(manifest))
        .route("/.well-known/did.json", get(did_document))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::page))
        .route("/schemas/{name}", get(docs::schema))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(shared.clone(), observe))
        .with_state(shared)
}

/// Names, times, counts and logs each request.
async fn observe(State(shared): State<Shared>, mut request: Request, next: Next) -> Response<Body> {
    let (id, begun) = (request::id(request.headers()), now());
    let route = route_of(request.uri().path());
    let method = request.method().clone();
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    shared.metrics.count(route, status, took);
    tracing::debug!(request_id = %id, %method, route, status, micros = took.as_micros(), "answered");
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("oap-request-id"), id);
    }
    response
}

#[expect(clippy::disallowed_methods, reason = "how long a request took is measured here")]
fn now() -> Instant {
    Instant::now()
}

/// The route without what callers put into it, so that figures stay few.
fn route_of(path: &str) -> &'static str {
    const ROUTES: [&str; 12] = [
        "/oap/intent",
        "/oap/explain",
        "/oap/decisions/",
        "/oap/records/",
        "/oap/records",
        "/.well-known/oap-tool.json",
        "/.well-known/did.json",
        "/health",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/schemas/",
    ];
    let fits = |route: &&&str| path == **route || (route.ends_with('/') && path.starts_with(**route));
    ROUTES.iter().find(fits).copied().unwrap_or("other")
}

type Id = axum::Extension<RequestId>;

async fn intent(
    State(shared): State<Shared>,
    axum::Extension(RequestId(id)): Id,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let answered = async {
        let bytes = request::body(&headers, body, &Limits::INTENT).await?;
        shared.node.answer(&bytes, query.get("cursor").map(String::as_str)).await
    };
    shared.reply(&id, answered.await)
}

async fn explain(
    State(shared): State<Shared>,
    axum::Extension(RequestId(id)): Id,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let explained = async {
        let bytes = request::body(&headers, body, &Limits::INTENT).await?;
        shared.node.explain(&bytes).await
    };
    shared.reply(&id, explained.await)
}

async fn decision(
    State(shared): State<Shared>,
    axum::Extension(RequestId(id)): Id,
    Path(name): Path<String>,
) -> Response<Body> {
    let node = Arc::clone(&shared.node);
    let found = blocking(move || node.decision(&name)).await;
    shared.reply(&id, found)
}

async fn publish(
    State(shared): State<Shared>,
    axum::Extension(RequestId(id)): Id,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let published = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT).await?;
        shared.node.publish(&bytes).await
    };
    shared.reply(&id, published.await)
}

async fn withdraw(
    State(shared): State<Shared>,
    axum::Extension(RequestId(id)): Id,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let withdrawn = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT).await?;
        shared.node.withdraw(&name, &bytes).await
    };
    shared.reply(&id, withdrawn.await)
}

async fn record(
    State(shared): State<Shared>,
    axum::Extension(RequestId(id)): Id,
    Path(name): Path<String>,
) -> Response<Body> {
    let node = Arc::clone(&shared.node);
    let found = blocking(move || node.record(&name)).await;
    match found {
        Ok(record) => reply::record(record),
        Err(error) => reply::refused(&shared.node, &id, &error),
    }
}

async fn manifest(State(shared): State<Shared>, headers: HeaderMap) -> Response<Body> {
    reply::json(&shared.node.manifest(&shared.base(&headers)))
}

async fn did_document(State(shared): State<Shared>) -> Response<Body> {
    reply::json(&shared.node.identity().document())
}

async fn health(State(shared): State<Shared>) -> Response<Body> {
    let stopped = shared.node.store().is_stopped();
    let mut response = reply::json(&json!({
        "status": if stopped { "read_only" } else { "ok" },
        "sequence": shared.node.store().sequence(),
        "did": shared.node.identity().did().as_str(),
        "version": env!("CARGO_PKG_VERSION"),
    }));
    if stopped {
        *response.status_mut() = axum::http::StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

async fn metrics(State(shared): State<Shared>) -> Response<Body> {
    let text = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    reply::with_type(axum::http::StatusCode::OK, text, shared.metrics.text(&shared.node))
}

async fn nowhere(State(shared): State<Shared>, axum::Extension(RequestId(id)): Id) -> Response<Body> {
    let detail = "there is nothing at this address; `/docs` lists what there is";
    let refusal = Refusal::new(Class::NotFound, "no_such_path", detail);
    reply::refused(&shared.node, &id, &refusal.into())
}

async fn not_allowed(State(shared): State<Shared>, axum::Extension(RequestId(id)): Id) -> Response<Body> {
    let detail = "this address does not do that; `/docs` lists what it does";
    let refusal = Refusal::new(Class::MethodNotAllowed, "method_not_allowed", detail);
    reply::refused(&shared.node, &id, &refusal.into())
}

/// Work that waits for the disk, away from the threads that serve connections.
async fn blocking<T: Send + 'static>(job: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(job).await.map_err(Error::fault)?
}

impl Shared {
    fn reply(&self, id: &str, outcome: Result<Vec<u8>, Error>) -> Response<Body> {
        match outcome {
            Ok(bytes) => reply::signed(bytes),
            Err(error) => reply::refused(&self.node, id, &error),
        }
    }

    /// The address under which the asker reached the node.
    fn base(&self, headers: &HeaderMap) -> String {
        if let Some(base) = &self.base {
            return base.to_string();
        }
        let plain = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(plain).unwrap_or("localhost");
        format!("{}://{host}", self.scheme)
    }
}
