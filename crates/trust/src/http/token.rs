//! Bearer tokens (RFC 6750) that a proved request earns: JWTs (RFC 7519, RFC 9068) of the node for itself.
//!
//! A token is for one audience: the node that gave it. Where several nodes share a host name, callers bring one node's
//! token to the other, and then it must be told to be none (decisions/0173).
//!
//! INVARIANT: the header is the one that we write, byte for byte, so that nothing in a token says how to check it.

use super::error::AuthError;
use crate::{Did, PublicKey, SigningKey, encoding};
use json::{Document, Limits, Node, json};

/// Seconds for which a token is good.
pub const TOKEN_SECONDS: i64 = 3600;
/// Bytes of a token.
const TOKEN_BYTES_MAX: usize = 4 * 1024;
/// Another type than that of delegation tokens, so that neither is taken for the other.
const TYPE: &str = "at+jwt";

/// Who may ask without a signature, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// Who proved to be the sender.
    pub subject: Did,
    /// Who gave it, and for whom it is.
    pub audience: Did,
    /// When, in seconds since 1970.
    pub issued: i64,
    /// Its name.
    pub name: String,
}

impl AccessToken {
    /// Writes and signs it.
    pub fn sign(&self, key: &SigningKey) -> String {
        let claims = json!({
            "aud": self.audience.as_str(),
            "exp": self.issued.saturating_add(TOKEN_SECONDS),
            "iat": self.issued,
            "iss": self.audience.as_str(),
            "jti": self.name,
            "sub": self.subject.as_str(),
        });
        let signed = format!("{}.{}", header(), encoding::encode(&json::canonical_value(&claims)));
        let signature = encoding::encode(&key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Reads a token that `audience` gave with its key, if it is good at `now`.
    pub fn verify(text: &str, audience: &Did, key: &PublicKey, now: i64) -> Result<Self, AuthError> {
        let foreign = AuthError::AccessToken("this token is none of this node; sign the request");
        let signed = text.rsplit_once('.').filter(|_| text.len() <= TOKEN_BYTES_MAX);
        let (signed, signature) = signed.ok_or(foreign.clone())?;
        let claims = signed.strip_prefix(header().as_str()).and_then(|rest| rest.strip_prefix('.'));
        let claims = claims.and_then(encoding::decode_url).ok_or(foreign.clone())?;
        let signature = encoding::decode_url(signature).ok_or(foreign.clone())?;
        if !key.verifies(signed.as_bytes(), &signature) {
            return Err(foreign);
        }
        let document = Document::parse(&claims, &Limits::INTENT).map_err(|_| foreign.clone())?;
        let text = |name: &str| document.root().get(name).and_then(Node::as_str);
        let seconds = |name: &str| document.root().get(name).and_then(Node::as_u64).and_then(|s| i64::try_from(s).ok());
        let ours = (text("iss"), text("aud")) == (Some(audience.as_str()), Some(audience.as_str()));
        let (Some(issued), Some(expires), true) = (seconds("iat"), seconds("exp"), ours) else { return Err(foreign) };
        if expires <= now {
            return Err(AuthError::AccessToken("the token has expired; sign the request"));
        }
        let subject = text("sub").and_then(|did| Did::parse(did).ok()).ok_or(foreign.clone())?;
        let name = text("jti").ok_or(foreign)?.to_owned();
        Ok(Self { subject, audience: audience.clone(), issued, name })
    }
}

fn header() -> String {
    encoding::encode(&json::canonical_value(&json!({"alg": "EdDSA", "typ": TYPE})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> SigningKey {
        SigningKey::from_seed([number; 32])
    }

    fn token(audience: &str) -> AccessToken {
        let did = |text: &str| Did::parse(text).unwrap();
        AccessToken {
            subject: did("did:wba:example.com:alice"),
            audience: did(audience),
            issued: 1_000,
            name: "t1".to_owned(),
        }
    }

    fn check(text: &str, now: i64) -> Result<AccessToken, String> {
        let audience = Did::parse("did:wba:node.example").unwrap();
        AccessToken::verify(text, &audience, &key(1).public(), now).map_err(|error| {
            assert_eq!(error.code(), "invalid_access_token");
            error.to_string()
        })
    }

    #[test]
    fn a_token_is_good_for_an_hour_at_its_audience() {
        let good = token("did:wba:node.example");
        let text = good.sign(&key(1));
        let header = encoding::decode_url(text.split_once('.').unwrap().0).unwrap();
        assert_eq!(header, br#"{"alg":"EdDSA","typ":"at+jwt"}"#);
        assert_eq!(check(&text, 1_000).as_ref(), Ok(&good));
        assert_eq!(check(&text, 4_599).as_ref(), Ok(&good));
        assert!(check(&text, 4_600).unwrap_err().contains("expired"));
    }

    #[test]
    fn what_another_node_gave_is_no_token_here() {
        for text in [
            token("did:wba:node.example").sign(&key(2)),
            token("did:wba:other.example").sign(&key(1)),
            crate::sign_token(&json!({"aud": "did:wba:node.example", "iss": "did:wba:node.example"}), &key(1)),
            String::new(),
            "a.b.c".to_owned(),
            "x".repeat(5_000),
        ] {
            assert!(check(&text, 1_000).unwrap_err().contains("none of this node"), "{text}");
        }
        let good = token("did:wba:node.example").sign(&key(1));
        for (position, _) in good.char_indices() {
            let mut bytes = good.clone().into_bytes();
            bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
            assert!(check(&String::from_utf8(bytes).unwrap(), 1_000).is_err(), "{position}");
        }
    }
}
