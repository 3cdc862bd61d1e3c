//! RFC 0020 Appendix B: the addresses of the wallet role.

use crate::reply;
use crate::request;
use crate::routes::{Asked, Name, Shared, blocking};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::routing::{MethodRouter, get, post};
use json::Limits;
use node::{Error, Wallet};
use std::sync::Arc;

/// Every path of the role and what it does.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Shared>); 6] {
    [
        ("/oap/payment/mandates", post(mandate)),
        ("/oap/payment/sessions", post(session)),
        ("/oap/payment/sessions/{id}", get(state)),
        ("/oap/payment/sessions/{id}/confirm", about(Wallet::confirm)),
        ("/oap/payment/sessions/{id}/execute", about(Wallet::execute)),
        ("/oap/payment/sessions/{id}/confirmation", about(Wallet::countersigned)),
    ]
}

/// What a wallet says beside that, as every node does.
pub(crate) const USUAL: [&str; 5] =
    ["/.well-known/did.json", "/health", "/metrics", "/refusals.json", "/schemas/{name}"];

async fn mandate(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Extension(wallet): Extension<Arc<Wallet>>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let taken = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        wallet.mandate(bytes).await
    };
    shared.reply(&asked, taken.await)
}

async fn session(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Extension(wallet): Extension<Arc<Wallet>>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let granted = async {
        let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
        wallet.session(bytes, shared.base(&headers, &uri)).await
    };
    match granted.await {
        Ok(bytes) => {
            let mut response = reply::signed(bytes);
            *response.status_mut() = StatusCode::CREATED;
            response
        }
        Err(error) => reply::refused(&shared.node, &asked.id, &error),
    }
}

async fn state(
    State(shared): State<Shared>,
    Extension(asked): Extension<Asked>,
    Extension(wallet): Extension<Arc<Wallet>>,
    name: Name,
) -> Response<Body> {
    let found = async {
        let name = request::name(name)?;
        blocking(move || wallet.state(&name)).await
    };
    shared.reply(&asked, found.await)
}

/// A signed message about the session that the address names, and what the wallet does with it.
fn about<F>(job: impl Fn(Arc<Wallet>, String, Vec<u8>) -> F + Clone + Send + Sync + 'static) -> MethodRouter<Shared>
where
    F: Future<Output = Result<Vec<u8>, Error>> + Send + 'static,
{
    let handle = async move |State(shared): State<Shared>,
                             Extension(asked): Extension<Asked>,
                             Extension(wallet): Extension<Arc<Wallet>>,
                             name: Name,
                             headers: HeaderMap,
                             body: Body| {
        let done = async {
            let bytes = request::body(&headers, body, &Limits::INTENT, asked.patience.body).await?;
            job(wallet, request::name(name)?, bytes).await
        };
        shared.reply(&asked, done.await)
    };
    post(handle)
}
