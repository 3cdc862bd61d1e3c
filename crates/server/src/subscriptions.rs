//! RFC 0020 §3.6: intents that stay open, from a path to a job.

use crate::connection::Invitation;
use crate::routes::{Asked, Asking, Name, Shared, blocking};
use crate::{reply, request, sse, ws};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Response, Uri};
use json::Limits;
use node::{Class, Endpoint, Error, POLL_MS_MAX, Refusal, Secret, Terms, Transport, versions};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Events that one poll brings at most.
const EVENTS_MAX: usize = 100;

/// How a caller wants to be told; what it does not say is as usual.
pub(crate) fn terms(base: String, query: &HashMap<String, String>, headers: &HeaderMap) -> Result<Terms, Refusal> {
    let snapshot = match query.get("snapshot").map(String::as_str) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(invalid("`snapshot` is `true` or `false`")),
    };
    let transport = query.get("transport").map_or(Some(Transport::default()), |name| Transport::parse(name));
    let transport = transport.ok_or_else(|| invalid("`transport` is `sse`, `websocket`, `poll` or `webhook`"))?;
    let endpoint = match (transport, query.get("endpoint")) {
        (Transport::Webhook, Some(url)) => Some(Endpoint { url: url.clone(), secret: secret(headers)? }),
        (Transport::Webhook, None) => {
            return Err(invalid("with `transport=webhook` the address belongs into `endpoint`"));
        }
        (_, Some(_)) => return Err(invalid("`endpoint` belongs to `transport=webhook`")),
        (_, None) => None,
    };
    Ok(Terms { base, snapshot, transport, endpoint })
}

/// What a subscriber wants messages to be signed with, in a header field: addresses are written into logs.
fn secret(headers: &HeaderMap) -> Result<Option<Secret>, Refusal> {
    let Some(field) = headers.get("webhook-secret") else { return Ok(None) };
    let secret = field.to_str().ok().and_then(Secret::read);
    secret.map(Some).ok_or_else(|| invalid("`webhook-secret` is `whsec_` and 24 to 64 bytes in base64"))
}

fn invalid(detail: &str) -> Refusal {
    Refusal::new(Class::InvalidInput, "invalid_value", detail)
}

pub(crate) async fn subscribe(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let subscribed = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        shared.node.subscribe(&bytes, &terms(shared.base(&headers, &uri), &query, &headers)?).await
    };
    shared.reply(&asked, subscribed.await)
}

pub(crate) async fn state(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
) -> Response<Body> {
    let found = async {
        let (node, name) = (Arc::clone(&shared.node), request::name(name)?);
        blocking(move || node.subscription(&name)).await
    };
    shared.reply(&asked, found.await)
}

pub(crate) async fn control(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let obeyed = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        let heard = shared.node.hear(versions::CONTROL, &bytes)?;
        let answer =
            shared.node.control(&request::name(name)?, heard.payload()).await.map_err(|error| heard.place(error))?;
        shared.node.record_version(&heard, answer)
    };
    shared.reply(&asked, obeyed.await)
}

/// The journal: as a stream for those who ask for one, else what is there after a cursor.
pub(crate) async fn events(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
    name: Name,
    invitation: Option<Extension<Invitation>>,
    socket: ws::Asked,
    headers: HeaderMap,
) -> Response<Body> {
    let told = async {
        let name = request::name(name)?;
        let after = place(&shared, &name, &query, &headers).await?;
        if let (Some(socket), Some(Extension(invitation))) = (ws::wanted(socket, &headers), &invitation) {
            let follower = shared.node.follow(&name, after.as_deref()).await?;
            return Ok(ws::follow(socket, Arc::clone(&shared.node), follower, invitation.stay()));
        }
        match invitation.filter(|_| sse::is_wanted(headers.get(ACCEPT))) {
            Some(Extension(invitation)) => {
                let follower = shared.node.follow(&name, after.as_deref()).await?;
                let (outlet, response) = sse::open();
                tokio::spawn(sse::send(follower, outlet, invitation.stay(), asked.patience.silence));
                Ok(response)
            }
            None => {
                let (patience, limit) = patience(&query)?;
                Ok(reply::signed(shared.node.poll(&name, after.as_deref(), patience, limit).await?))
            }
        }
    };
    told.await.unwrap_or_else(|error: Error| reply::refused(&shared.node, &asked.id, &error))
}

/// After which cursor the caller goes on: as the address says, else as its last event says.
async fn place(
    shared: &Shared,
    name: &str,
    query: &HashMap<String, String>,
    headers: &HeaderMap,
) -> Result<Option<String>, Error> {
    if let Some(from) = query.get("replay_from").cloned() {
        let (node, name, first) = (Arc::clone(&shared.node), name.to_owned(), from.clone());
        blocking(move || node.check_replay(&name, &first)).await?;
        return Ok(from.parse::<u64>().ok().map(|from| from.saturating_sub(1).to_string()));
    }
    Ok(query.get("after").map(String::as_str).or_else(|| sse::last(headers)).map(str::to_owned))
}

/// How long a poll waits, and for how many events.
fn patience(query: &HashMap<String, String>) -> Result<(Duration, usize), Refusal> {
    let number = |name: &str, usual: u64| query.get(name).map_or(Ok(usual), |text| text.parse::<u64>());
    let seconds = number("wait", 0).map_err(|_| invalid("`wait` is a whole number of seconds"))?;
    let limit = number("limit", EVENTS_MAX as u64).ok().filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| invalid("`limit` is a whole number from 1 on"))?;
    let patience = Duration::from_millis(seconds.saturating_mul(1_000).min(POLL_MS_MAX));
    Ok((patience, usize::try_from(limit).unwrap_or(EVENTS_MAX).min(EVENTS_MAX)))
}
