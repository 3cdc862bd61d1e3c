//! ADP Overview, ADP Interface, ANP-08: the agents of the node as HTTP: the list, descriptions, interfaces, DID documents,
//! calls.
//!
//! What introduces an agent is for everybody. A call is somebody's, as the description demands, unless the operator
//! lets signed intents in without. Refusals inside a call go out with 200, since known clients read nothing else; for
//! whoever counts refusals they are what they are.

use crate::caller::{self, Head};
use crate::listen::Here;
use crate::reply;
use crate::request;
use crate::routes::{Asked, Asking, Name, Shared};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use json::Value;
use node::{Caller, Class, Error, Node, RPC_LIMITS, Refusal, Rpc};

/// What a response that says 200 is for whoever counts refusals.
#[derive(Clone, Copy, Debug)]
struct Judged(StatusCode);

/// The status that counts.
pub(crate) fn judged(response: &Response<Body>) -> StatusCode {
    response.extensions().get::<Judged>().map_or(response.status(), |judged| judged.0)
}

pub(crate) async fn list(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Query(query): Asking,
    headers: HeaderMap,
    uri: Uri,
) -> Response<Body> {
    let page = query.get("page").map_or(Ok(1), |page| page.parse());
    let wrong = || Refusal::new(Class::InvalidInput, "invalid_value", "`page` is a whole number from 1");
    let page = page.map_err(|_| Error::from(wrong()));
    shown(&shared, &asked, page.and_then(|page| shared.node.agents_page(page, &shared.base(&headers, &uri))))
}

pub(crate) async fn description(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
    headers: HeaderMap,
    uri: Uri,
) -> Response<Body> {
    let written = of_agent(&shared, name, &headers, &uri, Node::agent_description);
    match written {
        Ok(bytes) => fresh(reply::with_type(StatusCode::OK, reply::JSON, bytes)),
        Err(error) => reply::refused(&shared.node, &asked.id, &error),
    }
}

pub(crate) async fn interface(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
    headers: HeaderMap,
    uri: Uri,
) -> Response<Body> {
    let written = of_agent(&shared, name, &headers, &uri, Node::agent_interface);
    shown(&shared, &asked, written)
}

pub(crate) async fn did_document(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    name: Name,
    headers: HeaderMap,
    uri: Uri,
) -> Response<Body> {
    let written = of_agent(&shared, name, &headers, &uri, Node::agent_document);
    shown(&shared, &asked, written)
}

/// Something of an agent, written for the address under which the asker reached the node.
fn of_agent<T>(
    shared: &Shared,
    name: Name,
    headers: &HeaderMap,
    uri: &Uri,
    write: impl FnOnce(&Node, &str, &str) -> Result<T, Error>,
) -> Result<T, Error> {
    write(&shared.node, &request::name(name)?, &shared.base(headers, uri))
}

fn shown(shared: &Shared, asked: &Asked, written: Result<Value, Error>) -> Response<Body> {
    match written {
        Ok(value) => fresh(reply::json(&value)),
        Err(error) => reply::refused(&shared.node, &asked.id, &error),
    }
}

/// Keys and agents may be others at any moment.
fn fresh(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[expect(clippy::too_many_arguments, reason = "each is a part of the request that is looked at")]
pub(crate) async fn rpc(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    here: Option<Extension<Here>>,
    name: Name,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let read = async {
        let name = request::name(name)?;
        shared.node.is_agent(&name)?;
        Ok((name, request::body(&headers, body, &RPC_LIMITS, asked.patience.body).await?))
    };
    let (name, bytes) = match read.await {
        Ok(read) => read,
        Err(error) => return reply::refused(&shared.node, &asked.id, &error),
    };
    let here = here.map(|Extension(here)| here).unwrap_or_default();
    let head = Head { method: &method, uri: &uri, headers: &headers, here };
    let caller = match shared.node.answers_anonymous() && !is_proved(&headers) {
        true => None,
        false => match caller::prove(&shared, &asked, &head, &bytes).await {
            Ok(caller) => Some(caller),
            Err(response) => return *response,
        },
    };
    let answer = shared.node.rpc(&name, &bytes, caller.as_ref().map(|caller| &caller.did), &asked.id).await;
    answered(answer, caller.as_ref())
}

/// Whether a request comes with anything that is to prove its sender.
/// Whether a request claims to be somebody's.
pub(crate) fn is_proved(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key(HeaderName::from_static("signature-input"))
}

fn answered(answer: Rpc, caller: Option<&Caller>) -> Response<Body> {
    let mut response = match answer.bytes {
        Some(bytes) => reply::with_type(StatusCode::OK, reply::JSON, bytes),
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
    };
    if let Some(class) = answer.refused {
        response.extensions_mut().insert(Judged(reply::status(class)));
    }
    match caller {
        Some(caller) => caller::with_token(response, caller),
        None => response,
    }
}
