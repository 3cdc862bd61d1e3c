//! Who sends this request: asks the node, and says as HTTP what it answers (ANP-02, RFC 9110 §11).
//!
//! A signature covers the address that the sender called. What that was, a stranger's header must not tell us: it is the
//! address that the operator gave, or without one an address of this machine.

use crate::listen::Here;
use crate::reply;
use crate::routes::{Asked, Shared};
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, Response, Uri};
use node::{Caller, Presented};
use trust::http::{ACCEPT_SIGNATURE, TOKEN_SECONDS, authentication_info};

/// A request as far as its sender signs it, without the body.
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) here: Here,
}

/// Who sends a request, or what is answered to somebody who proved nothing.
pub(crate) async fn prove(
    shared: &Shared,
    asked: &Asked,
    head: &Head<'_>,
    body: &[u8],
) -> Result<Caller, Box<Response<Body>>> {
    // What is no text is no proof either, and whoever covered it signed something else.
    let fields: Vec<(&str, &str)> =
        head.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let address = shared.address(head.headers, head.uri, head.here);
    let targets = address.map(|address| targets(&address, head.uri)).unwrap_or_default();
    let presented = Presented { method: head.method.as_str(), targets: &targets, headers: &fields, body };
    shared.node.authenticate(&presented).await.map_err(|unproved| {
        let mut response = reply::refused(&shared.node, &asked.id, &unproved.error);
        if let Some(challenge) = unproved.challenge {
            let headers = response.headers_mut();
            if let Ok(challenge) = HeaderValue::from_str(&challenge.to_string()) {
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
            headers.insert(HeaderName::from_static("accept-signature"), HeaderValue::from_static(ACCEPT_SIGNATURE));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        Box::new(response)
    })
}

/// The same answer with the token that the caller earned: where the text has it, and where old clients look for it.
pub(crate) fn with_token(mut response: Response<Body>, caller: &Caller) -> Response<Body> {
    let headers = response.headers_mut();
    if let Some(token) = &caller.token {
        let info = authentication_info(token, TOKEN_SECONDS);
        if let (Ok(info), Ok(bearer)) =
            (HeaderValue::from_str(&info), HeaderValue::from_str(&format!("Bearer {token}")))
        {
            headers.insert(HeaderName::from_static("authentication-info"), info);
            headers.insert(AUTHORIZATION, bearer);
        }
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Every whole address that means this path at ours. RFC 9110 §4.2.3 has them equal: with the usual port and without it,
/// and without a path where there is only `/`.
fn targets(address: &str, uri: &Uri) -> Vec<String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut targets = Vec::new();
    for address in [Some(address.to_owned()), with_port(address)].into_iter().flatten() {
        targets.push(format!("{address}{path}"));
        if path == "/" {
            targets.push(address);
        }
    }
    targets
}

/// The same address with the usual port of its scheme, when it names none.
fn with_port(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let port = if scheme == "https" { 443 } else { 80 };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let bare = authority.rfind(':').is_none_or(|_| authority.ends_with(']'));
    bare.then(|| format!("{scheme}://{authority}:{port}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_several_spellings() {
        let all = |address: &str, uri: &str| targets(address, &uri.parse().unwrap());
        assert_eq!(all("https://a.example", "/x?y=1"), ["https://a.example/x?y=1", "https://a.example:443/x?y=1"]);
        assert_eq!(all("http://a.example:8080", "/"), ["http://a.example:8080/", "http://a.example:8080"]);
        assert_eq!(all("http://[::1]", "/x"), ["http://[::1]/x", "http://[::1]:80/x"]);
        assert_eq!(all("https://a.example/p", "/x"), ["https://a.example/p/x", "https://a.example:443/p/x"]);
    }
}
