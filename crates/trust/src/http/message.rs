//! A request as it is signed: its components (RFC 9421 §2), the signature base (RFC 9421 §2.5), the digest of its body
//! (RFC 9530).
//!
//! INVARIANT: a component has one value or none; a request that could be read in two ways has no value there.

use super::FIELD_BYTES_MAX;
use super::error::AuthError;
use super::fields::{Bare, Member, dictionary};
use crate::Digest;
use crate::encoding::encode_padded;
use sha2::{Digest as _, Sha512};

/// The header fields of a request, names in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a>(&'a [(&'a str, &'a str)]);

impl<'a> Headers<'a> {
    /// The fields in the order in which they came.
    pub fn new(fields: &'a [(&'a str, &'a str)]) -> Self {
        Self(fields)
    }

    /// The value of a field that may stand once.
    pub(super) fn only(&self, name: &str) -> Result<Option<&'a str>, AuthError> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(AuthError::Request("a header field that proves something stands twice"));
        }
        match first {
            Some(value) if value.len() > FIELD_BYTES_MAX => {
                Err(AuthError::Request("a header field that proves something has more than 8 KiB"))
            }
            first => Ok(first),
        }
    }

    /// All values of a field, joined as RFC 9421 §2.1 joins them.
    fn joined(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.values(name).map(str::trim).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole address, as the sender calls it.
    pub target: &'a str,
    /// Its header fields.
    pub headers: Headers<'a>,
    /// Its body, as it is sent.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// The value of a component; `None` when the request has none, or when we do not know the component.
    pub(super) fn component(&self, name: &str) -> Option<String> {
        let derived = match name {
            "@method" => self.method.to_ascii_uppercase(),
            "@target-uri" => self.target.to_owned(),
            "@authority" => split(self.target)?.1.to_ascii_lowercase(),
            "@scheme" => split(self.target)?.0.to_ascii_lowercase(),
            "@request-target" => origin_form(split(self.target)?.2),
            "@path" => path_and_query(split(self.target)?.2).0,
            "@query" => format!("?{}", path_and_query(split(self.target)?.2).1.unwrap_or_default()),
            name if name.starts_with('@') => return None,
            name => return self.headers.joined(name),
        };
        Some(derived)
    }

    /// Whether every digest that `content-digest` gives is that of the body, and one of them is of a kind we know.
    pub(super) fn digest_holds(&self) -> Result<(), AuthError> {
        let field = self.headers.joined("content-digest");
        let field = field.ok_or(AuthError::Request("content-digest is covered and there is no Content-Digest"))?;
        let malformed = AuthError::Request("Content-Digest is no dictionary of digests");
        let members = if field.len() > FIELD_BYTES_MAX { None } else { dictionary(&field) };
        let mut known = 0;
        for (name, member) in members.ok_or(malformed.clone())? {
            let Member::Item(item) = member else { return Err(malformed) };
            let Bare::Bytes(given) = item.value else { return Err(malformed) };
            let ours = match name {
                "sha-256" => Digest::of(self.body).as_bytes().to_vec(),
                "sha-512" => Sha512::digest(self.body).to_vec(),
                _ => continue,
            };
            if ours != given {
                return Err(AuthError::ContentDigest);
            }
            known += 1;
        }
        if known == 0 { Err(AuthError::Request("Content-Digest has neither sha-256 nor sha-512")) } else { Ok(()) }
    }
}

/// Scheme, authority and the rest of an absolute address.
fn split(target: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    Some((scheme, authority, rest))
}

fn path_and_query(rest: &str) -> (String, Option<&str>) {
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    (if path.is_empty() { "/".to_owned() } else { path.to_owned() }, query)
}

fn origin_form(rest: &str) -> String {
    match path_and_query(rest) {
        (path, Some(query)) => format!("{path}?{query}"),
        (path, None) => path,
    }
}

/// RFC 9530: the digest of a body as a header field.
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", encode_padded(Digest::of(body).as_bytes()))
}

/// RFC 9421 §2.5: what is signed, a line for each component and one for the parameters.
pub fn base<'c>(components: impl IntoIterator<Item = (&'c str, &'c str)>, parameters: &str) -> String {
    let mut base = String::new();
    for (name, value) in components {
        base.push('"');
        base.push_str(name);
        base.push_str("\": ");
        base.push_str(value);
        base.push('\n');
    }
    base.push_str("\"@signature-params\": ");
    base.push_str(parameters);
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(target: &'a str, fields: &'a [(&'a str, &'a str)], body: &'a [u8]) -> Request<'a> {
        Request { method: "post", target, headers: Headers::new(fields), body }
    }

    #[test]
    fn components_are_those_of_the_address() {
        let request = request("https://Example.com:8443/a/b?x=1&y=2", &[("x-a", " 1 "), ("X-A", "2")], b"");
        for (name, value) in [
            ("@method", Some("POST")),
            ("@target-uri", Some("https://Example.com:8443/a/b?x=1&y=2")),
            ("@authority", Some("example.com:8443")),
            ("@scheme", Some("https")),
            ("@request-target", Some("/a/b?x=1&y=2")),
            ("@path", Some("/a/b")),
            ("@query", Some("?x=1&y=2")),
            ("x-a", Some("1, 2")),
            ("x-b", None),
            ("@status", None),
            ("@query-param", None),
        ] {
            assert_eq!(request.component(name).as_deref(), value, "{name}");
        }
        let bare = super::Request { target: "https://example.com", ..request };
        assert_eq!(bare.component("@path").as_deref(), Some("/"));
        assert_eq!(bare.component("@query").as_deref(), Some("?"));
    }

    #[test]
    fn a_digest_is_that_of_the_body() {
        let body = br#"{"hello": "world"}"#;
        let sha256 = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
        let sha512 =
            "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:";
        assert_eq!(content_digest(body), sha256);
        let both = format!("{sha256}, {sha512}");
        let half = format!("{sha256}, sha-512=:AAAA:");
        for (field, expected) in [
            (sha256, Ok(())),
            (sha512, Ok(())),
            (&both, Ok(())),
            (&half, Err("invalid_content_digest")),
            ("sha-256=:AAAA:", Err("invalid_content_digest")),
            ("md5=:AAAA:", Err("invalid_request")),
            ("sha-256", Err("invalid_request")),
            ("sha-256=(\"x\")", Err("invalid_request")),
            ("", Err("invalid_request")),
        ] {
            let fields = [("content-digest", field)];
            let held = request("https://a/", &fields, body).digest_holds().map_err(|error| error.code());
            assert_eq!(held, expected, "{field}");
        }
        assert_eq!(request("https://a/", &[], body).digest_holds().unwrap_err().code(), "invalid_request");
        // Space before a comma counts, too.
        let long = |bytes: usize| format!("{sha256}{}, x=:AAAA:", " ".repeat(bytes - sha256.len() - 10));
        for (bytes, expected) in [(FIELD_BYTES_MAX, Ok(())), (FIELD_BYTES_MAX + 1, Err("invalid_request"))] {
            let field = long(bytes);
            let fields = [("content-digest", field.as_str())];
            let held = request("https://a/", &fields, body).digest_holds().map_err(|error| error.code());
            assert_eq!((field.len(), held), (bytes, expected));
        }
    }

    #[test]
    fn a_field_that_proves_something_stands_once() {
        let twice = [("authorization", "Bearer a"), ("Authorization", "Bearer b")];
        assert_eq!(Headers::new(&twice).only("authorization").unwrap_err().code(), "invalid_request");
        let longest = "x".repeat(FIELD_BYTES_MAX);
        let fits = [("signature", longest.as_str())];
        assert_eq!(Headers::new(&fits).only("signature"), Ok(Some(longest.as_str())));
        let long = "x".repeat(FIELD_BYTES_MAX + 1);
        let long = [("signature", long.as_str())];
        assert_eq!(Headers::new(&long).only("signature").unwrap_err().code(), "invalid_request");
        assert_eq!(Headers::new(&long).only("other"), Ok(None));
    }
}
