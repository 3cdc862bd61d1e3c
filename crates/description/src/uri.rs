//! RFC 3986: identifiers and links of a description, as text; nothing is decoded and nothing is asked.

use fluent_uri::{Iri, IriRef, Uri, UriRef};

/// Whether this is a URI with its scheme.
pub(crate) fn is_uri(text: &str) -> bool {
    Uri::parse(text).is_ok()
}

/// Whether this names a namespace: a URI, also with letters beyond ASCII.
pub(crate) fn is_iri(text: &str) -> bool {
    Iri::parse(text).is_ok()
}

/// Whether this is an `anyURI`: a URI or a reference to one, not empty.
pub(crate) fn is_any_uri(text: &str) -> bool {
    !text.is_empty() && IriRef::parse(text).is_ok()
}

/// Whether this is an http or https URL with a host and without a user.
pub fn is_web(text: &str) -> bool {
    web(text).is_some()
}

/// Whether two URLs have scheme, host and port in common.
pub fn same_origin(left: &str, right: &str) -> bool {
    let origin = |text: &str| web(text).map(|url| (url.scheme, url.host, url.port));
    origin(left).is_some() && origin(left) == origin(right)
}

/// The host of an http or https URL, in lower case.
pub(crate) fn host(text: &str) -> Option<String> {
    web(text).map(|url| url.host)
}

/// The http or https URL that a reference means; `base` is where it stands.
pub(crate) fn resolve(base: Option<&str>, reference: &str) -> Option<String> {
    if is_web(reference) {
        return Some(reference.to_owned());
    }
    let base = Uri::parse(base?).ok()?;
    let url = UriRef::parse(reference).ok()?.resolve_against(&base.strip_fragment()).ok()?.into_string();
    is_web(&url).then_some(url)
}

struct Web {
    scheme: &'static str,
    host: String,
    port: u16,
}

fn web(text: &str) -> Option<Web> {
    let uri = Uri::parse(text).ok()?;
    let (scheme, default) = match uri.scheme().as_str().to_ascii_lowercase().as_str() {
        "https" => ("https", 443),
        "http" => ("http", 80),
        _ => return None,
    };
    let authority = uri.authority()?;
    if authority.has_userinfo() || authority.host().is_empty() {
        return None;
    }
    let port = authority.port_to_u16().ok()?.unwrap_or(default);
    Some(Web { scheme, host: authority.host().to_ascii_lowercase(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_from_where_they_stand() {
        let base = Some("https://a.example/agents/x/ad.json#top");
        for (reference, url) in [
            ("interface.json", Some("https://a.example/agents/x/interface.json")),
            ("/p/1", Some("https://a.example/p/1")),
            ("#rpc", Some("https://a.example/agents/x/ad.json#rpc")),
            ("http://b.example/", Some("http://b.example/")),
            ("did:wba:a.example", None),
            ("urn:x:y", None),
            ("https://user:word@a.example/", None),
            ("https:///path", None),
            ("not a link", None),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), url, "{reference}");
        }
        assert_eq!(resolve(None, "/p/1"), None);
        assert_eq!(resolve(Some("urn:x:y"), "/p/1"), None);
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert!(same_origin("https://A.example/x", "https://a.example:443/y"));
        for other in ["http://a.example/", "https://b.example/", "https://a.example:8443/", "urn:a"] {
            assert!(!same_origin("https://a.example/", other), "{other}");
        }
    }
}
