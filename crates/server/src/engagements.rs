//! OAS Server: the agents of a node, engagements with them, and reviews, from a path to a job.
//!
//! `GET /agents/{name}` gives the document as it is stored; `POST` begins an engagement and answers 303 to the address
//! where its state is JSON. What an engagement says is shown when it is released and not before, so a stream tells how it
//! stands and never what a model is just writing.
//!
//! INVARIANT: an engagement is told of to its caller and to the owner of the agent; everybody else hears the same as of
//! one that is not there.

use crate::caller::{self, Head};
use crate::connection::{Invitation, Stay};
use crate::listen::Here;
use crate::routes::{Asked, Asking, Name, Shared, blocking};
use crate::sse::{self, Outlet};
use crate::{reply, request};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, ETAG, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::routing::{MethodRouter, get, post};
use json::{Document, Limits, Value, json};
use node::{Caller, Class, Decided, Engagements, Error, HEARTBEAT_MS, Refusal, Settled, WAIT_MS_MAX};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Every path of agents and what it does.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Shared>); 12] {
    [
        ("/agents", get(list)),
        ("/agents/{name}", get(document).post(begin)),
        ("/engagements", get(mine)),
        ("/engagements/{id}", get(state)),
        ("/engagements/{id}/messages", post(say)),
        ("/engagements/{id}/cancel", post(cancel)),
        ("/engagements/{id}/credentials", post(credentials)),
        ("/engagements/{id}/outcome", post(outcome)),
        ("/engagements/{id}/audit", get(audit)),
        ("/engagements/{id}/reviews/{review}", get(review).post(decide)),
        ("/reviews", get(reviews)),
        ("/mcp", post(mcp)),
    ]
}

/// What is known of a request before its body is read.
pub(crate) struct Coming {
    asked: Asked,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    here: Here,
    invitation: Option<Invitation>,
    hosting: Option<Arc<Engagements>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Coming {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let asked = parts.extensions.get::<Asked>().cloned();
        Ok(Self {
            asked: asked.unwrap_or_else(|| Asked { id: request::own_id(), patience: crate::Patience::default() }),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
            here: parts.extensions.get::<Here>().copied().unwrap_or_default(),
            invitation: parts.extensions.get::<Invitation>().cloned(),
            hosting: parts.extensions.get::<Arc<Engagements>>().cloned(),
        })
    }
}

/// An answer, or a refusal that is an answer already.
type Answered = Result<Response<Body>, Box<Response<Body>>>;

impl Coming {
    fn refused(&self, shared: &Shared, error: impl Into<Error>) -> Box<Response<Body>> {
        Box::new(reply::refused(&shared.node, &self.asked.id, &error.into()))
    }

    /// The engagements of this node; none where it hosts nobody.
    fn hosting(&self, shared: &Shared) -> Result<Arc<Engagements>, Box<Response<Body>>> {
        let detail = "this node hosts no agents; `rialto serve --agents DIR` does";
        let none = || Refusal::new(Class::NotFound, "agent_not_found", detail);
        self.hosting.clone().ok_or_else(|| self.refused(shared, none()))
    }

    async fn body(&self, shared: &Shared, body: Body) -> Result<Vec<u8>, Box<Response<Body>>> {
        let read = request::body(&self.headers, body, &Limits::DOCUMENT, self.asked.patience.body).await;
        read.map_err(|error| self.refused(shared, error))
    }

    /// Who sends this; nobody where nobody says so.
    async fn caller(&self, shared: &Shared, body: &[u8]) -> Result<Option<Caller>, Box<Response<Body>>> {
        let says = self.headers.contains_key(AUTHORIZATION) || self.headers.contains_key("signature-input");
        if says { self.somebody(shared, body).await.map(Some) } else { Ok(None) }
    }

    /// Who sends this; the answer to nobody says what is missing.
    async fn somebody(&self, shared: &Shared, body: &[u8]) -> Result<Caller, Box<Response<Body>>> {
        let head = Head { method: &self.method, uri: &self.uri, headers: &self.headers, here: self.here };
        caller::prove(shared, &self.asked, &head, body).await
    }

    /// The same answer to somebody who said nobody's name and found nothing: that may be why.
    async fn or_ask_who<T>(
        &self,
        shared: &Shared,
        caller: Option<&Caller>,
        body: &[u8],
        outcome: Result<T, Error>,
    ) -> Result<T, Box<Response<Body>>> {
        match outcome {
            Ok(value) => Ok(value),
            Err(Error::Refusal(refusal)) if caller.is_none() && refusal.class == Class::NotFound => {
                match self.somebody(shared, body).await {
                    Err(asked) => Err(asked),
                    Ok(_) => Err(self.refused(shared, *refusal)),
                }
            }
            Err(error) => Err(self.refused(shared, error)),
        }
    }
}

fn did(caller: Option<&Caller>) -> Option<String> {
    caller.map(|caller| caller.did.as_str().to_owned())
}

fn answered(answered: Answered, caller: Option<&Caller>) -> Response<Body> {
    match (answered, caller) {
        (Ok(response), Some(caller)) => caller::with_token(response, caller),
        (Ok(response), None) => response,
        (Err(response), _) => *response,
    }
}

fn with(mut response: Response<Body>, name: HeaderName, value: &str) -> Response<Body> {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn list(State(shared): State<Shared>, coming: Coming) -> Response<Body> {
    let hosting = coming.hosting(&shared);
    let base = shared.base(&coming.headers, &coming.uri);
    let listed = hosting.map(|hosting| {
        let agents: Vec<Value> = hosting
            .hosted()
            .map(|hosted| {
                let agent = &hosted.agent;
                let address = format!("{base}/agents/{}", agent.name);
                let mut listed = json!({
                    "name": agent.name.as_str(), "description": agent.description, "owner": agent.owner,
                    "document": agent.digest(), "address": address,
                });
                if let Some(members) = listed.as_object_mut() {
                    // By this other servers refer to it; the text knows it for https alone.
                    if let Some(rest) = address.strip_prefix("https://") {
                        members.insert("reference".to_owned(), json!(format!("oagent://{rest}")));
                    }
                    let withheld = hosting.withheld(agent);
                    if !withheld.is_empty() {
                        let listed = withheld.iter().map(node::Withheld::to_value).collect();
                        members.insert("withheld_tools".to_owned(), listed);
                    }
                }
                listed
            })
            .collect();
        reply::json(&json!({"agents": agents}))
    });
    answered(listed, None)
}

/// The document of an agent, byte for byte.
async fn document(State(shared): State<Shared>, coming: Coming, name: Name) -> Response<Body> {
    let found = || -> Answered {
        let hosting = coming.hosting(&shared)?;
        let name = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let agent = &hosting.agent(&name).map_err(|error| coming.refused(&shared, error))?.agent;
        let etag = format!("\"sha256:{}\"", agent.digest());
        let mut response = if request::has(&coming.headers, &etag) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let yaml = HeaderValue::from_static("application/yaml; charset=utf-8");
            reply::with_type(StatusCode::OK, yaml, agent.source().to_vec())
        };
        response = with(response, ETAG, &etag);
        Ok(with(response, CACHE_CONTROL, "no-cache"))
    };
    answered(found(), None)
}

async fn begin(State(shared): State<Shared>, coming: Coming, name: Name, body: Body) -> Response<Body> {
    let mut who = None;
    let begun: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let name = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let bytes = coming.body(&shared, body).await?;
        hosting.agent(&name).map_err(|error| coming.refused(&shared, error))?;
        who = coming.caller(&shared, &bytes).await?;
        if who.is_none() && !hosting.welcomes_strangers() {
            who = Some(coming.somebody(&shared, &bytes).await?);
        }
        let text = text(&bytes).map_err(|error| coming.refused(&shared, error))?;
        let begun = hosting.begin(&name, did(who.as_ref()).as_deref(), &text).await;
        let id = begun.map_err(|error| coming.refused(&shared, error))?;
        Ok(see_other(&shared, &coming, &id))
    }
    .await;
    answered(begun, who.as_ref())
}

/// Where the state of an engagement is.
fn see_other(shared: &Shared, coming: &Coming, id: &str) -> Response<Body> {
    let location = format!("{}/engagements/{id}", shared.base(&coming.headers, &coming.uri));
    let mut response = reply::json(&json!({"engagement": id, "location": location}));
    *response.status_mut() = StatusCode::SEE_OTHER;
    with(with(response, LOCATION, &location), CACHE_CONTROL, "no-store")
}

/// What a user says: `{"text": …}`, or the text alone.
fn text(bytes: &[u8]) -> Result<String, Error> {
    let document = Document::parse(bytes, &Limits::DOCUMENT)?;
    let root = document.root().to_value();
    let text = match &root {
        Value::String(text) => Some(text.as_str()),
        Value::Object(members) if members.len() == 1 => members.get("text").and_then(Value::as_str),
        _ => None,
    };
    let wanted = "write `{\"text\": …}`, or the text alone, and nothing else";
    Ok(text.ok_or_else(|| Refusal::new(Class::InvalidInput, "engagement_input_invalid", wanted))?.to_owned())
}

async fn mine(State(shared): State<Shared>, coming: Coming) -> Response<Body> {
    let mut who = None;
    let listed: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let caller = who.insert(coming.somebody(&shared, &[]).await?).did.as_str().to_owned();
        let listed = blocking(move || hosting.engagements(&caller)).await;
        let listed = listed.map_err(|error| coming.refused(&shared, error))?;
        Ok(reply::json(&json!({"engagements": listed})))
    }
    .await;
    answered(listed, who.as_ref())
}

async fn state(State(shared): State<Shared>, coming: Coming, Query(query): Asking, name: Name) -> Response<Body> {
    let mut who = None;
    let told: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let id = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        who = coming.caller(&shared, &[]).await?;
        let caller = did(who.as_ref());
        let seen = look(&hosting, &id, caller.clone()).await;
        let seen = coming.or_ask_who(&shared, who.as_ref(), &[], seen).await?;
        if let Some(invitation) = coming.invitation.clone().filter(|_| sse::is_wanted(coming.headers.get(ACCEPT))) {
            let (outlet, response) = sse::open();
            tokio::spawn(stream(hosting, id, caller, seen, outlet, invitation.stay()));
            return Ok(response);
        }
        let patience = patience(&query).map_err(|refusal| coming.refused(&shared, refusal))?;
        let (mut state, mut steps) = seen;
        if !patience.is_zero() {
            let known = request::has(&coming.headers, &tag(steps)).then_some(steps);
            let waited = hosting.wait(&id, known, patience).await;
            waited.map_err(|error| coming.refused(&shared, error))?;
            let seen = look(&hosting, &id, caller).await;
            (state, steps) = seen.map_err(|error| coming.refused(&shared, error))?;
        }
        Ok(shown(&coming, &state, steps))
    }
    .await;
    answered(told, who.as_ref())
}

async fn look(hosting: &Arc<Engagements>, id: &str, caller: Option<String>) -> Result<(Value, u64), Error> {
    let (hosting, id) = (Arc::clone(hosting), id.to_owned());
    blocking(move || hosting.state(&id, caller.as_deref())).await
}

fn tag(steps: u64) -> String {
    format!("\"step-{steps}\"")
}

fn shown(coming: &Coming, state: &Value, steps: u64) -> Response<Body> {
    let etag = tag(steps);
    let mut response = if request::has(&coming.headers, &etag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply::json(state)
    };
    if state.get("status") == Some(&json!("running")) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response = with(response, ETAG, &etag);
    with(response, CACHE_CONTROL, "no-store")
}

/// How long a caller waits for a change.
fn patience(query: &HashMap<String, String>) -> Result<Duration, Refusal> {
    let detail = "`wait` is a whole number of seconds";
    let wrong = |_| Refusal::new(Class::InvalidInput, "invalid_value", detail);
    let seconds = query.get("wait").map_or(Ok(0), |text| text.parse::<u64>()).map_err(wrong)?;
    Ok(Duration::from_millis(seconds.saturating_mul(1_000).min(WAIT_MS_MAX)))
}

/// Tells how an engagement stands, each time that it stands otherwise, until it is over or the reader goes.
async fn stream(
    hosting: Arc<Engagements>,
    id: String,
    caller: Option<String>,
    seen: (Value, u64),
    outlet: Outlet,
    mut stay: Stay,
) {
    let (mut state, mut steps) = seen;
    let mut told = Value::Null;
    loop {
        if state != told {
            let frame = sse::frame(Some(steps), "status", &json::canonical_value(&state));
            if outlet.send(frame).await.is_err() {
                return;
            }
            told = state.clone();
        }
        if [json!("failed"), json!("cancelled")].contains(told.get("status").unwrap_or(&Value::Null)) {
            return;
        }
        let waited = tokio::select! {
            waited = hosting.wait(&id, Some(steps), Duration::from_millis(HEARTBEAT_MS)) => waited,
            () = outlet.closed() => return,
            () = stay.stopping() => return,
        };
        let next = match waited {
            Ok(()) => look(&hosting, &id, caller.clone()).await,
            Err(error) => Err(error),
        };
        match next {
            Ok((_, same)) if same == steps => {
                if outlet.send(axum::body::Bytes::from_static(b": still there\n\n")).await.is_err() {
                    return;
                }
            }
            Ok(next) => (state, steps) = next,
            Err(error) => return tracing::warn!(%error, "a stream breaks off"),
        }
    }
}

async fn say(State(shared): State<Shared>, coming: Coming, name: Name, body: Body) -> Response<Body> {
    let mut who = None;
    let said: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let id = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let bytes = coming.body(&shared, body).await?;
        who = coming.caller(&shared, &bytes).await?;
        let text = text(&bytes).map_err(|error| coming.refused(&shared, error))?;
        let said = hosting.say(&id, did(who.as_ref()).as_deref(), &text).await;
        coming.or_ask_who(&shared, who.as_ref(), &bytes, said).await?;
        Ok(see_other(&shared, &coming, &id))
    }
    .await;
    answered(said, who.as_ref())
}

async fn cancel(State(shared): State<Shared>, coming: Coming, name: Name, body: Body) -> Response<Body> {
    let mut who = None;
    let ended: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let id = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let bytes = coming.body(&shared, body).await?;
        who = coming.caller(&shared, &bytes).await?;
        let ended = hosting.cancel(&id, did(who.as_ref()).as_deref()).await;
        coming.or_ask_who(&shared, who.as_ref(), &bytes, ended).await?;
        Ok(see_other(&shared, &coming, &id))
    }
    .await;
    answered(ended, who.as_ref())
}

async fn credentials(State(shared): State<Shared>, coming: Coming, name: Name, body: Body) -> Response<Body> {
    let mut who = None;
    let tried: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let id = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let bytes = coming.body(&shared, body).await?;
        let caller = who.insert(coming.somebody(&shared, &bytes).await?).did.as_str().to_owned();
        let tried = hosting.credentials_arrived(&id, Some(&caller)).await;
        tried.map_err(|error| coming.refused(&shared, error))?;
        Ok(see_other(&shared, &coming, &id))
    }
    .await;
    answered(tried, who.as_ref())
}

async fn outcome(State(shared): State<Shared>, coming: Coming, name: Name, body: Body) -> Response<Body> {
    let mut who = None;
    let settled: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let id = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let bytes = coming.body(&shared, body).await?;
        let caller = who.insert(coming.somebody(&shared, &bytes).await?).did.as_str().to_owned();
        let settled = settled(&bytes).map_err(|error| coming.refused(&shared, error));
        let (call, settled) = settled?;
        let done = hosting.settle(&id, call, &caller, settled).await;
        done.map_err(|error| coming.refused(&shared, error))?;
        Ok(see_other(&shared, &coming, &id))
    }
    .await;
    answered(settled, who.as_ref())
}

/// `{"call": n, "decision": "repeat"}`, or `output` with a value, or `failed` with a reason.
fn settled(bytes: &[u8]) -> Result<(usize, Settled), Error> {
    let document = Document::parse(bytes, &Limits::DOCUMENT)?;
    let root = document.root().to_value();
    let detail =
        "write `{\"call\": n, \"decision\": \"repeat\" | \"output\" | \"failed\", \"output\": …, \"reason\": …}`";
    let wrong = || Refusal::new(Class::InvalidInput, "engagement_input_invalid", detail);
    let call = root.get("call").and_then(Value::as_u64).and_then(|call| usize::try_from(call).ok());
    let settled = match root.get("decision").and_then(Value::as_str) {
        Some("repeat") => Some(Settled::Repeat),
        Some("output") => root.get("output").cloned().map(Settled::Output),
        Some("failed") => root.get("reason").and_then(Value::as_str).map(|reason| Settled::Failed(reason.to_owned())),
        _ => None,
    };
    Ok(call.zip(settled).ok_or_else(wrong)?)
}

async fn audit(State(shared): State<Shared>, coming: Coming, name: Name) -> Response<Body> {
    let mut who = None;
    let told: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let id = request::name(name).map_err(|refusal| coming.refused(&shared, refusal))?;
        let caller = who.insert(coming.somebody(&shared, &[]).await?).did.as_str().to_owned();
        let told = blocking(move || hosting.audit(&id, &caller)).await;
        told.map(|trail| reply::json(&trail)).map_err(|error| coming.refused(&shared, error))
    }
    .await;
    answered(told, who.as_ref())
}

async fn reviews(State(shared): State<Shared>, coming: Coming, Query(query): Asking) -> Response<Body> {
    let mut who = None;
    let listed: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let caller = who.insert(coming.somebody(&shared, &[]).await?).did.as_str().to_owned();
        let after = query.get("after").cloned();
        let listed = blocking(move || hosting.reviews(&caller, after.as_deref())).await;
        let listed = listed.map_err(|error| coming.refused(&shared, error))?;
        Ok(reply::json(&match listed.next {
            Some(next) => json!({"reviews": listed.reviews, "next": next}),
            None => json!({"reviews": listed.reviews}),
        }))
    }
    .await;
    answered(listed, who.as_ref())
}

/// The agents as tools of MCP: one message in, one answer out, no session.
async fn mcp(State(shared): State<Shared>, coming: Coming, body: Body) -> Response<Body> {
    let mut who = None;
    let told: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let bytes = coming.body(&shared, body).await?;
        who = coming.caller(&shared, &bytes).await?;
        if who.is_none() && !hosting.welcomes_strangers() {
            who = Some(coming.somebody(&shared, &bytes).await?);
        }
        let (status, answer) = hosting.mcp(did(who.as_ref()).as_deref(), &bytes).await;
        let mut response = answer.map_or_else(|| Response::new(Body::empty()), |answer| reply::json(&answer));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        Ok(response)
    }
    .await;
    answered(told, who.as_ref())
}

/// The two names of a review's address.
type Names = Result<Path<(String, String)>, PathRejection>;

fn names(names: Names) -> Result<(String, String), Refusal> {
    let detail = "the end of the address is no UTF-8 once its escapes are read";
    names.map(|Path(names)| names).map_err(|_| Refusal::new(Class::InvalidInput, "invalid_value", detail))
}

async fn review(State(shared): State<Shared>, coming: Coming, named: Names) -> Response<Body> {
    let mut who = None;
    let told: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let (id, review) = names(named).map_err(|refusal| coming.refused(&shared, refusal))?;
        let caller = who.insert(coming.somebody(&shared, &[]).await?).did.as_str().to_owned();
        let told = blocking(move || hosting.review(&id, &review, &caller)).await;
        told.map(|review| reply::json(&review)).map_err(|error| coming.refused(&shared, error))
    }
    .await;
    answered(told, who.as_ref())
}

async fn decide(State(shared): State<Shared>, coming: Coming, named: Names, request: Request) -> Response<Body> {
    let mut who = None;
    let told: Answered = async {
        let hosting = coming.hosting(&shared)?;
        let (id, review) = names(named).map_err(|refusal| coming.refused(&shared, refusal))?;
        let bytes = coming.body(&shared, request.into_body()).await?;
        let caller = who.insert(coming.somebody(&shared, &bytes).await?).did.as_str().to_owned();
        let decided = decided(&bytes).map_err(|error| coming.refused(&shared, error))?;
        let done = hosting.decide(&id, &review, &caller, decided).await;
        done.map_err(|error| coming.refused(&shared, error))?;
        Ok(see_other(&shared, &coming, &id))
    }
    .await;
    answered(told, who.as_ref())
}

/// `{"decision": "approve" | "reject", "digest": …, "reason": …}`.
fn decided(bytes: &[u8]) -> Result<Decided, Error> {
    let document = Document::parse(bytes, &Limits::DOCUMENT)?;
    let root = document.root().to_value();
    let text = |name: &str| root.get(name).and_then(Value::as_str).map(str::to_owned);
    let detail = "write `{\"decision\": \"approve\" | \"reject\", \"digest\": …, \"reason\": …}`";
    let wrong = || Refusal::new(Class::InvalidInput, "engagement_input_invalid", detail);
    let approve = match text("decision").as_deref() {
        Some("approve") => true,
        Some("reject") => false,
        _ => return Err(wrong().into()),
    };
    let digest = text("digest").ok_or_else(wrong)?;
    Ok(Decided { approve, digest, reason: text("reason") })
}
