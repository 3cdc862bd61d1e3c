//! What is said to a request that proves nobody (ANP-02): `WWW-Authenticate`, `Accept-Signature`, and after a proof
//! `Authentication-Info`; both sides of it.

use super::error::AuthError;
use super::legacy::parts;

/// What a signature must cover and say, for whoever signs next.
pub const ACCEPT_SIGNATURE: &str =
    r#"sig1=("@method" "@target-uri" "@authority" "content-digest");created;expires;nonce;keyid"#;

/// The scheme of a challenge.
const SCHEME: &str = "DIDWba";

/// What a server says to a request that proves nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Whose challenge it is: the name of the host.
    pub realm: String,
    /// What is wrong, one word of a closed list.
    pub error: Option<String>,
    /// The same in words.
    pub description: Option<String>,
    /// A nonce to sign with.
    pub nonce: Option<String>,
}

impl Challenge {
    /// The challenge that follows from an error.
    pub fn new(realm: &str, error: &AuthError, nonce: Option<String>) -> Self {
        let description = error.word().map(|_| error.to_string().replace(['"', '\\'], "'"));
        Self { realm: realm.replace(['"', '\\'], ""), error: error.word().map(str::to_owned), description, nonce }
    }

    /// Reads `WWW-Authenticate`; `None` when it asks for something else.
    pub fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ')?;
        let parts = if scheme.eq_ignore_ascii_case(SCHEME) { parts(rest)? } else { return None };
        let part = |name: &str| parts.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Some(Self {
            realm: part("realm").unwrap_or_default(),
            error: part("error"),
            description: part("error_description"),
            nonce: part("nonce"),
        })
    }

    /// Whether signing once more may help.
    pub fn may_help_to_sign_again(&self) -> bool {
        let lost = ["invalid_did", "invalid_verification_method", "forbidden_did"];
        self.nonce.is_some() || !self.error.as_deref().is_some_and(|error| lost.contains(&error))
    }
}

impl std::fmt::Display for Challenge {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{SCHEME} realm=\"{}\"", self.realm)?;
        let rest = [("error", &self.error), ("error_description", &self.description), ("nonce", &self.nonce)];
        for (name, value) in rest {
            if let Some(value) = value {
                write!(out, ", {name}=\"{value}\"")?;
            }
        }
        Ok(())
    }
}

/// The components that `Accept-Signature` asks for.
pub fn wanted_components(accept_signature: &str) -> Vec<&str> {
    accept_signature.split('"').skip(1).step_by(2).filter(|name| !name.is_empty()).take(32).collect()
}

/// `Authentication-Info` with a token for the next requests.
pub fn authentication_info(token: &str, seconds: i64) -> String {
    format!("access_token=\"{token}\", token_type=\"Bearer\", expires_in={seconds}")
}

/// Reads `Authentication-Info`: a bearer token and the seconds for which it is good, an hour where nothing is said.
pub fn read_authentication_info(text: &str) -> Option<(&str, i64)> {
    let parts = parts(text)?;
    let part = |name: &str| parts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let bearer = part("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let token = part("access_token").filter(|token| bearer && is_token(token))?;
    Some((token, part("expires_in").map_or(Some(super::TOKEN_SECONDS), |seconds| seconds.parse().ok())?))
}

/// Whether a text can be a token of RFC 6750.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_reads_back() {
        let cases = [
            (AuthError::Missing, None, true, r#"DIDWba realm="node.example""#),
            (
                AuthError::Signature,
                Some("n1"),
                true,
                r#"DIDWba realm="node.example", error="invalid_signature", error_description="the signature does not hold for this method, address and body; sign what is sent, to where it is sent", nonce="n1""#,
            ),
            (
                AuthError::Forbidden,
                None,
                false,
                r#"DIDWba realm="node.example", error="forbidden_did", error_description="this DID may not do that here""#,
            ),
        ];
        for (error, nonce, again, text) in cases {
            let challenge = Challenge::new("node.example", &error, nonce.map(str::to_owned));
            assert_eq!(challenge.to_string(), text);
            assert_eq!(Challenge::read(text).as_ref(), Some(&challenge));
            assert_eq!(challenge.may_help_to_sign_again(), again, "{text}");
        }
        assert_eq!(Challenge::read("Basic realm=\"x\""), None);
        assert_eq!(Challenge::read("DIDWba"), None);
    }

    #[test]
    fn no_error_has_a_quotation_mark() {
        let did = AuthError::Did(crate::DidError::Fingerprint);
        let errors = [AuthError::Missing, AuthError::ContentDigest, AuthError::Signature, did];
        for error in errors {
            let challenge = Challenge::new("a\"b", &error, None).to_string();
            assert_eq!(challenge.matches('"').count() % 2, 0, "{challenge}");
            assert!(Challenge::read(&challenge).is_some(), "{challenge}");
        }
    }

    #[test]
    fn what_a_server_wants_covered_is_read() {
        assert_eq!(wanted_components(ACCEPT_SIGNATURE), super::super::COMPONENTS);
        assert_eq!(wanted_components("sig1=()"), [""; 0]);
    }

    #[test]
    fn a_token_is_told_as_the_library_reads_it() {
        assert_eq!(authentication_info("t", 3600), r#"access_token="t", token_type="Bearer", expires_in=3600"#);
        for (text, read) in [
            (authentication_info("t.u-v", 60).as_str(), Some(("t.u-v", 60))),
            (r#"access_token="t""#, Some(("t", 3600))),
            (r#"access_token="t", token_type="Mac""#, None),
            (r#"access_token="t", expires_in="soon""#, None),
            (r#"access_token="t u""#, None),
            (r#"token_type="Bearer""#, None),
            ("", None),
        ] {
            assert_eq!(read_authentication_info(text), read, "{text}");
        }
    }
}
