//! From a path to a job.

use crate::caller::{self, Head};
use crate::connection::Invitation;
use crate::docs::{self, Pages};
use crate::listen::{Here, Patience};
use crate::metrics::Metrics;
use crate::sources::{Source, Sources};
use crate::standing::Line;
use crate::{agents, engagements, reply, request, sse, subscriptions, telemetry, ws};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{MatchedPath, Path, Query, Request, State};
use axum::http::header::{ACCEPT, HOST, HeaderValue, ORIGIN};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use json::{Limits, json};
use node::{Class, Engagements, Error, Node, Refusal, versions};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::SemaphorePermit;
use tracing::Instrument;

/// What every route can reach.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) node: Arc<Node>,
    pub(crate) pages: Arc<Pages>,
    metrics: Arc<Metrics>,
    /// How this node is reached, when its operator said so.
    base: Option<Arc<str>>,
    scheme: &'static str,
    /// Whether the node's agents are served here.
    has_agents: bool,
}

/// A request: its name, for log lines and refusals, and how long it is waited for.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) patience: Patience,
}

/// The routes of a node. `base` is the address it is known by; without one the asker's own words are used.
pub fn router(node: Arc<Node>, base: Option<&str>, tls: bool) -> Router {
    let scheme = if tls { "https" } else { "http" };
    let base = base.map(|base| Arc::from(base.trim_end_matches('/')));
    let shared = Shared {
        node,
        pages: Arc::new(Pages::new()),
        metrics: Arc::new(Metrics::new()),
        base,
        scheme,
        has_agents: true,
    };
    of(routes().into_iter().chain(engagements::routes()), shared)
}

/// The routes of a node that hosts agents.
pub fn hosting(node: Arc<Node>, engagements: Arc<Engagements>, base: Option<&str>, tls: bool) -> Router {
    router(node, base, tls).layer(Extension(engagements))
}

/// How a node is doing and nothing else, for a listener of its own that strangers do not reach; plain HTTP.
pub fn vital(node: Arc<Node>) -> Router {
    let (pages, metrics) = (Arc::new(Pages::default()), Arc::new(Metrics::new()));
    let shared = Shared { node, pages, metrics, base: None, scheme: "http", has_agents: false };
    of([("/health", get(health))].into_iter(), shared)
}

/// The routes of a node in the wallet role: payments, and how it is doing.
pub fn wallet(node: Arc<Node>, wallet: Arc<node::Wallet>, base: Option<&str>, tls: bool) -> Router {
    let scheme = if tls { "https" } else { "http" };
    let base = base.map(|base| Arc::from(base.trim_end_matches('/')));
    let (pages, metrics) = (Arc::default(), Arc::new(Metrics::new()));
    let shared = Shared { node, pages, metrics, base, scheme, has_agents: false };
    let usual = routes().into_iter().filter(|(path, _)| crate::wallet::USUAL.contains(path));
    of(crate::wallet::routes().into_iter().chain(usual), shared).layer(Extension(wallet))
}

fn of(routes: impl Iterator<Item = (&'static str, MethodRouter<Shared>)>, shared: Shared) -> Router {
    routes
        .fold(Router::new(), |router, (path, job)| router.route(path, job))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(shared.clone(), observe))
        .with_state(shared)
}

/// Every path and what it does; the same list as in `openapi.json`.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Shared>); 37] {
    [
        ("/oap/intent", post(intent)),
        ("/oap/intent/socket", get(intent_socket)),
        ("/oap/subscribe", post(subscriptions::subscribe)),
        ("/oap/subscriptions/{id}", get(subscriptions::state).delete(subscriptions::control)),
        ("/oap/subscriptions/{id}/events", get(subscriptions::events)),
        ("/oap/subscriptions/{id}/control", post(subscriptions::control)),
        ("/oap/explain", post(explain)),
        ("/oap/decisions/{id}", get(decision)),
        ("/oap/consumption/{id}", get(consumption)),
        ("/oap/metering", get(metering)),
        ("/oap/records", post(publish)),
        ("/oap/records/{id}", get(record).delete(withdraw)),
        ("/oap/invoke", post(invoke)),
        ("/oap/audit", get(audit)),
        ("/oap/data/delete", post(delete_data)),
        ("/oap/incident", get(incidents)),
        ("/oap/discover", post(discover)),
        ("/oap/conformance-receipt", get(conformance_receipt)),
        ("/oap-conformance-receipt.json", get(conformance_receipt)),
        ("/oap/receipt-verify", post(verify_receipt)),
        ("/oap/receipt-chain/export", get(receipt_chain)),
        ("/oap/mappings", post(bring_mapping)),
        ("/oap/mappings/{name}", get(mapping)),
        ("/.well-known/oap-tool.json", get(manifest)),
        ("/.well-known/did.json", get(did_document)),
        ("/.well-known/agent-descriptions", get(agents::list)),
        ("/agents/{name}/ad.json", get(agents::description)),
        ("/agents/{name}/interface.json", get(agents::interface)),
        ("/agents/{name}/did.json", get(agents::did_document)),
        ("/agents/{name}/rpc", post(agents::rpc)),
        ("/whoami", get(whoami).post(whoami)),
        ("/health", get(health)),
        ("/metrics", get(metrics)),
        ("/openapi.json", get(docs::openapi)),
        ("/docs", get(docs::page)),
        ("/refusals.json", get(docs::refusals)),
        ("/schemas/{name}", get(docs::schema)),
    ]
}

/// Names, times, counts and logs each request, and ends those that take too long.
async fn observe(State(shared): State<Shared>, mut request: Request, next: Next) -> Response<Body> {
    let (id, begun) = (request::id(request.headers()), now());
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let patience = request.extensions().get::<Patience>().copied().unwrap_or_default();
    let (method, version) = (telemetry::known(request.method()), request.version());
    let span = telemetry::request_span(request.headers(), method, &route, &id);
    let from = request.extensions().get::<(Arc<Sources>, Source)>().cloned();
    let here = request.extensions().get::<Here>().copied().unwrap_or_default();
    let meant = shared.is_meant(request.headers(), request.uri(), here);
    let foreign = shared.is_foreign(request.headers(), request.uri());
    request.extensions_mut().insert(Asked { id: id.clone(), patience });
    let answered = async {
        let _place = match from.as_ref().map(|(sources, source)| admit(sources, *source, &route)).transpose() {
            Ok(place) => place,
            Err(refusal) => return reply::refused(&shared.node, &id, &refusal.into()),
        };
        if !meant {
            return reply::refused(&shared.node, &id, &misdirected().into());
        }
        if foreign {
            return reply::refused(&shared.node, &id, &of_another_origin().into());
        }
        let answer = tokio::time::timeout(patience.answer, next.run(request)).await;
        answer.unwrap_or_else(|_| reply::refused(&shared.node, &id, &overdue().into()))
    };
    let answered = answered.instrument(span.clone());
    let response = match &from {
        Some((sources, source)) if !VITAL.contains(&route.as_str()) => {
            let answered = sources.within(*source, answered);
            let response = sources.standings.in_turn(*source, Line::Request, answered).await;
            let response = response.unwrap_or_else(|| reply::refused(&shared.node, &id, &Refusal::overloaded().into()));
            sources.standings.note(*source, agents::judged(&response));
            sources.standings.send_away(*source, version, response)
        }
        _ => answered.await,
    };
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    span.record("http.response.status_code", status);
    shared.metrics.count(&route, status, took);
    tracing::debug!(request_id = %id, method, route, status, micros = took.as_micros(), "answered");
    reply::named(response, &id)
}

#[expect(clippy::disallowed_methods, reason = "how long a request took is measured here")]
fn now() -> Instant {
    Instant::now()
}

/// What is looked at to see how a node is doing; it must be told just when there is no room for anything else.
const VITAL: [&str; 2] = ["/health", "/metrics"];

/// Whether a request of a source may go on, with the place that it takes.
fn admit<'a>(sources: &'a Sources, source: Source, route: &str) -> Result<Option<SemaphorePermit<'a>>, Refusal> {
    sources.count(source)?;
    let place = sources.begin();
    if place.is_none() && !VITAL.contains(&route) { Err(Refusal::overloaded()) } else { Ok(place) }
}

fn misdirected() -> Refusal {
    let detail = "this node is not known by the name in `Host`; use the address in its manifest";
    Refusal::new(Class::Misdirected, "misdirected_request", detail)
}

fn of_another_origin() -> Refusal {
    let detail = "pages of other origins are told nothing; ask from a program, or from a page of this node";
    Refusal::new(Class::PolicyBlock, "origin_not_allowed", detail)
}

fn overdue() -> Refusal {
    let detail = "the answer took too long; it may still be made, so send the same message again";
    Refusal::new(Class::Overdue, "answer_timeout", detail)
}

/// The last part of the address.
pub(crate) type Name = Result<Path<String>, PathRejection>;
/// What stands after the question mark.
pub(crate) type Asking = Query<HashMap<String, String>>;

async fn intent(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
    (method, uri): (Method, Uri),
    (invitation, here): (Option<Extension<Invitation>>, Option<Extension<Here>>),
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let bytes = match request::body(&headers, body, &Limits::INTENT, asked.patience.body).await {
        Ok(bytes) => bytes,
        Err(error) => return reply::refused(&shared.node, &asked.id, &error),
    };
    // Who sends it is of interest only where an intent must be meant for this node.
    let head = Head {
        method: &method,
        uri: &uri,
        headers: &headers,
        here: here.map(|Extension(here)| here).unwrap_or_default(),
    };
    let caller = match shared.node.binds_audience() && agents::is_proved(&headers) {
        false => None,
        true => match caller::prove(&shared, &asked, &head, &bytes).await {
            Ok(caller) => Some(caller.did),
            Err(response) => return *response,
        },
    };
    let answered = async {
        // decisions/0094: an intent that stays open is acknowledged, whatever its sender takes; its journal is streamed.
        let streamed = sse::is_wanted(headers.get(ACCEPT)) && !shared.node.stays_open(&bytes);
        if let Some(Extension(invitation)) = invitation.filter(|_| streamed) {
            let mut stream = shared.node.stream_for(caller.as_ref(), &bytes, sse::last(&headers)).await?;
            // Here the first page counts as any other request, and a refusal comes before any stream.
            stream.begin().await?;
            let (outlet, response) = sse::open();
            let response = shared.noticed(response, stream.notice());
            let stay = invitation.stay();
            tokio::spawn(stay.guest.clone().within(sse::answer(stream, outlet, stay)));
            return Ok(response);
        }
        let terms = subscriptions::terms(shared.base(&headers, &uri), &query, &headers)?;
        let cursor = query.get("cursor").map(String::as_str);
        let answer = shared.node.answer_or_subscribe_for(caller.as_ref(), &bytes, cursor, &terms).await?;
        Ok(shared.signed(answer))
    };
    answered.await.unwrap_or_else(|error| reply::refused(&shared.node, &asked.id, &error))
}

/// An intent over a WebSocket.
async fn intent_socket(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
    invitation: Option<Extension<Invitation>>,
    socket: ws::Asked,
    headers: HeaderMap,
) -> Response<Body> {
    match (ws::wanted(socket, &headers), invitation) {
        (Some(socket), Some(Extension(invitation))) => {
            let (node, last) = (Arc::clone(&shared.node), query.get("after").cloned());
            ws::answer(socket, node, last, asked.patience.body, invitation.stay())
        }
        _ => {
            let detail = "an intent is posted, or sent as the first message of a WebSocket";
            let refusal = Refusal::new(Class::InvalidInput, "upgrade_required", detail);
            reply::refused(&shared.node, &asked.id, &refusal.into())
        }
    }
}

async fn explain(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let explained = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        let heard = shared.node.hear(versions::EXPLAIN, &bytes)?;
        let answer = shared.node.explain(heard.payload()).await.map_err(|error| heard.place(error))?;
        shared.node.record_version(&heard, answer)
    };
    shared.reply(&asked, explained.await)
}

async fn decision(State(shared): State<Shared>, Extension(asked): Extension<Asked>, name: Name) -> Response<Body> {
    let found = async {
        let (node, name) = (Arc::clone(&shared.node), request::name(name)?);
        blocking(move || node.decision(&name)).await
    };
    shared.reply(&asked, found.await)
}

async fn consumption(State(shared): State<Shared>, Extension(asked): Extension<Asked>, name: Name) -> Response<Body> {
    let found = async {
        let (node, name) = (Arc::clone(&shared.node), request::name(name)?);
        blocking(move || node.consumption(&name)).await
    };
    shared.reply(&asked, found.await)
}

async fn metering(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
) -> Response<Body> {
    let metered = async {
        let provider = query.get("provider_did").cloned().ok_or_else(|| {
            Refusal::new(Class::InvalidInput, "missing_field", "say whose nodes: `?provider_did=did:…`")
        })?;
        let node = Arc::clone(&shared.node);
        blocking(move || node.metering(&provider)).await
    };
    shared.reply(&asked, metered.await)
}

async fn publish(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let published = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT, asked.patience.body).await?;
        let heard = shared.node.hear(versions::PUBLICATION, &bytes)?;
        let answer = shared.node.publish(heard.payload()).await.map_err(|error| heard.place(error))?;
        shared.node.record_version(&heard, answer)
    };
    shared.reply(&asked, published.await)
}

async fn withdraw(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let withdrawn = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT, asked.patience.body).await?;
        let heard = shared.node.hear(versions::WITHDRAWAL, &bytes)?;
        let answer =
            shared.node.withdraw(&request::name(name)?, heard.payload()).await.map_err(|error| heard.place(error))?;
        shared.node.record_version(&heard, answer)
    };
    shared.reply(&asked, withdrawn.await)
}

async fn record(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
    headers: HeaderMap,
) -> Response<Body> {
    let found = async {
        let (node, name) = (Arc::clone(&shared.node), request::name(name)?);
        blocking(move || node.record(&name)).await
    };
    match found.await {
        Ok(record) => reply::record(record, &headers),
        Err(error) => reply::refused(&shared.node, &asked.id, &error),
    }
}

async fn invoke(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let invoked = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT, asked.patience.body).await?;
        let heard = shared.node.hear(versions::REQUEST, &bytes)?;
        let answer = shared.node.invoke(heard.payload()).await.map_err(|error| heard.place(error))?;
        shared.node.record_version(&heard, answer)
    };
    shared.reply(&asked, invoked.await)
}

async fn audit(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
) -> Response<Body> {
    let audited = async {
        let principal = query.get("principal_did").cloned().ok_or_else(|| {
            Refusal::new(Class::InvalidInput, "missing_field", "say whose receipts: `?principal_did=did:…`")
        })?;
        let limit = query.get("limit").map_or(Ok(node::AUDIT_MAX), |limit| limit.parse()).map_err(|_| {
            Refusal::new(Class::InvalidInput, "invalid_value", "`limit` is a whole number, at most 100")
        })?;
        let node = Arc::clone(&shared.node);
        blocking(move || node.audit(&principal, limit)).await
    };
    shared.reply(&asked, audited.await)
}

async fn delete_data(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let deleted = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        let heard = shared.node.hear(versions::DELETION, &bytes)?;
        let answer = shared.node.delete_data(heard.payload()).await.map_err(|error| heard.place(error))?;
        shared.node.record_version(&heard, answer)
    };
    shared.reply(&asked, deleted.await)
}

async fn incidents(State(shared): State<Shared>, Extension(asked): Extension<Asked>) -> Response<Body> {
    let node = Arc::clone(&shared.node);
    let told = blocking(move || Ok(node.incidents())).await;
    shared.reply(&asked, told)
}

async fn discover(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    uri: Uri,
    body: Body,
) -> Response<Body> {
    let discovered = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        let (node, base) = (Arc::clone(&shared.node), shared.base(&headers, &uri));
        blocking(move || {
            let heard = node.hear(versions::DISCOVER, &bytes)?;
            let answer = node.discover(heard.payload(), &base).map_err(|error| heard.place(error))?;
            node.record_version(&heard, answer)
        })
        .await
    };
    shared.reply(&asked, discovered.await)
}

async fn bring_mapping(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let brought = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT, asked.patience.body).await?;
        shared.node.bring_mapping(&bytes).await
    };
    shared.reply(&asked, brought.await)
}

async fn mapping(State(shared): State<Shared>, Extension(asked): Extension<Asked>, name: Name) -> Response<Body> {
    let found = request::name(name).map_err(Error::from).and_then(|name| shared.node.mapping(&name));
    shared.reply(&asked, found)
}

async fn conformance_receipt(State(shared): State<Shared>, Extension(asked): Extension<Asked>) -> Response<Body> {
    let node = Arc::clone(&shared.node);
    let shown = blocking(move || node.conformance_receipt()).await;
    shared.reply(&asked, shown)
}

async fn verify_receipt(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let verified = async {
        let bytes = request::body(&headers, body, &Limits::DOCUMENT, asked.patience.body).await?;
        let node = Arc::clone(&shared.node);
        blocking(move || {
            let heard = node.hear(versions::RECEIPT, &bytes)?;
            let answer = node.verify_receipt(heard.payload()).map_err(|error| heard.place(error))?;
            node.record_version(&heard, answer)
        })
        .await
    };
    shared.reply(&asked, verified.await)
}

async fn receipt_chain(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
) -> Response<Body> {
    let node = Arc::clone(&shared.node);
    match blocking(move || node.receipt_chain(query.get("cursor").map(String::as_str))).await {
        Ok(lines) => reply::with_type(StatusCode::OK, HeaderValue::from_static("application/x-ndjson"), lines),
        Err(error) => reply::refused(&shared.node, &asked.id, &error),
    }
}

async fn manifest(State(shared): State<Shared>, headers: HeaderMap, uri: Uri) -> Response<Body> {
    reply::json(&shared.node.manifest(&shared.base(&headers, &uri)))
}

async fn did_document(State(shared): State<Shared>, headers: HeaderMap, uri: Uri) -> Response<Body> {
    reply::json(&match shared.has_agents {
        true => shared.node.document(&shared.base(&headers, &uri)),
        false => shared.node.identity().document(),
    })
}

/// Says who proved to be the sender, and gives a token for the next requests.
async fn whoami(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    here: Option<Extension<Here>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let body = match method == Method::POST {
        true => request::body(&headers, body, &Limits::INTENT, asked.patience.body).await,
        false => Ok(Vec::new()),
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return reply::refused(&shared.node, &asked.id, &error),
    };
    let here = here.map(|Extension(here)| here).unwrap_or_default();
    let head = Head { method: &method, uri: &uri, headers: &headers, here };
    match caller::prove(&shared, &asked, &head, &body).await {
        Ok(who) => caller::with_token(reply::json(&json!({"did": who.did.as_str()})), &who),
        Err(response) => *response,
    }
}

async fn health(State(shared): State<Shared>) -> Response<Body> {
    let status = match (shared.node.store().is_stopped(), shared.node.is_behind()) {
        (_, true) => "index_behind",
        (true, false) => "read_only",
        (false, false) => "ok",
    };
    let mut response = reply::json(&json!({
        "status": status,
        "sequence": shared.node.store().sequence(),
        "did": shared.node.identity().did().as_str(),
        "version": env!("CARGO_PKG_VERSION"),
    }));
    if status != "ok" {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

async fn metrics(State(shared): State<Shared>) -> Response<Body> {
    let text = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    reply::with_type(StatusCode::OK, text, shared.metrics.text(&shared.node))
}

async fn nowhere(State(shared): State<Shared>, Extension(asked): Extension<Asked>) -> Response<Body> {
    let detail = "there is nothing at this address; `/docs` lists what there is";
    let refusal = Refusal::new(Class::NotFound, "no_such_path", detail);
    reply::refused(&shared.node, &asked.id, &refusal.into())
}

async fn not_allowed(State(shared): State<Shared>, Extension(asked): Extension<Asked>) -> Response<Body> {
    let detail = "this address does not do that; `/docs` lists what it does";
    let refusal = Refusal::new(Class::MethodNotAllowed, "method_not_allowed", detail);
    reply::refused(&shared.node, &asked.id, &refusal.into())
}

/// Work that waits for the disk, away from the threads that serve connections.
pub(crate) async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(node::source::carried(job)).await.map_err(Error::fault)?
}

impl Shared {
    pub(crate) fn reply(&self, asked: &Asked, outcome: Result<Vec<u8>, Error>) -> Response<Body> {
        match outcome {
            Ok(bytes) => self.signed(bytes),
            Err(error) => reply::refused(&self.node, &asked.id, &error),
        }
    }

    /// A signed answer, with the headers that repeat a warning in it.
    pub(crate) fn signed(&self, answer: Vec<u8>) -> Response<Body> {
        let notice = self.node.notice(&answer);
        self.noticed(reply::signed(answer), notice)
    }

    fn noticed(&self, response: Response<Body>, notice: Option<versions::Notice>) -> Response<Body> {
        match notice {
            Some(notice) => reply::deprecated(response, &notice, self.base.as_deref().unwrap_or_default()),
            None => response,
        }
    }

    /// The address under which the asker reached the node.
    pub(crate) fn base(&self, headers: &HeaderMap, uri: &Uri) -> String {
        if let Some(base) = &self.base {
            return base.to_string();
        }
        let plain = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
        let host = authority(headers, uri).filter(plain).unwrap_or("localhost");
        format!("{}://{host}", self.scheme)
    }

    /// The address that is this node's for sure: the operator's, or where there is none the one that was called on this
    /// machine. Any other name may be somebody else's, and what was signed for somebody else proves nothing here.
    pub(crate) fn address(&self, headers: &HeaderMap, uri: &Uri, here: Here) -> Option<String> {
        if let Some(base) = &self.base {
            return Some(base.to_string());
        }
        let called = authority(headers, uri).filter(|called| is_at_home(host_of(called), here))?;
        Some(format!("{}://{called}", self.scheme))
    }

    /// Whether a request comes from a browser's page of another origin, which has no business here.
    fn is_foreign(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let ours = self.base(headers, uri);
        headers.get_all(ORIGIN).iter().any(|origin| !origin.as_bytes().eq_ignore_ascii_case(ours.as_bytes()))
    }

    /// Whether a request names this node. A stranger's page can let its own name lead to our address, so on loopback,
    /// and where the operator said how the node is called, other names are refused. An address in digits is ours when
    /// it is loopback or the one at which the connection arrived.
    fn is_meant(&self, headers: &HeaderMap, uri: &Uri, here: Here) -> bool {
        let Some(host) = authority(headers, uri).map(host_of) else { return false };
        // Two names are one too many: whoever stands before the node may have believed the other one.
        if headers.get_all(HOST).iter().count() > 1 {
            return false;
        }
        let ours = match &self.base {
            Some(base) => base.split_once("://").map(|(_, rest)| host_of(rest)),
            None if self.scheme == "https" => return true,
            None => None,
        };
        is_at_home(host, here) || ours.is_some_and(|ours| host.eq_ignore_ascii_case(ours))
    }
}

/// Whether a host is this machine: loopback by name or in digits, or the address at which the connection arrived.
fn is_at_home(host: &str, here: Here) -> bool {
    let digits = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let at_home = |digits: IpAddr| digits.is_loopback() || Some(digits.to_canonical()) == here.0;
    digits.is_some_and(at_home) || host.eq_ignore_ascii_case("localhost")
}

/// Whom a request is addressed to, with the port.
fn authority<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let named = uri.authority().map(axum::http::uri::Authority::as_str);
    named.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()))
}

/// The name in an authority, without port and path.
fn host_of(authority: &str) -> &str {
    let authority = authority.split('/').next().unwrap_or_default();
    match authority.rfind(':') {
        Some(colon) if !authority.ends_with(']') => authority.get(..colon).unwrap_or_default(),
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_without_its_port() {
        let cases = [
            ("node.example:8443", "node.example"),
            ("node.example/oap", "node.example"),
            ("[::1]:7420", "[::1]"),
            ("[::1]", "[::1]"),
            ("localhost", "localhost"),
        ];
        for (authority, host) in cases {
            assert_eq!(host_of(authority), host);
        }
    }
}
