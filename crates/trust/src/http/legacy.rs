//! The older header of ANP: `Authorization: DIDWba …`, a signature over who, for which host, when, and a nonce.
//!
//! It covers neither method nor path nor body, so that whoever catches it can ask something else with it; it is taken
//! only where the operator says so, and only for requests without a body (decisions/0172).

use super::error::AuthError;
use super::signature::{authenticating_key, read_keyid};
use super::{Proved, check_nonce, check_time, remembered_until};
use crate::encoding::{decode_url, encode};
use crate::{DidDocument, DidUrl, Digest, SecretKey};
use json::{Instant, Value, json};

/// The member that names the host, in new headers and in the first ones.
const AUDIENCE: &str = "aud";
const SERVICE: &str = "service";

/// An older header that nobody has checked yet.
#[derive(Debug)]
pub struct Legacy<'a> {
    key: DidUrl,
    nonce: &'a str,
    timestamp: &'a str,
    created: i64,
    /// Under which names the host may stand, in the order in which they are tried.
    members: &'static [&'static str],
    value: Vec<u8>,
}

impl<'a> Legacy<'a> {
    /// Reads what stands behind `DIDWba`.
    pub(super) fn read(text: &'a str) -> Result<Self, AuthError> {
        let parts = parts(text).ok_or(AuthError::Request("the header is DIDWba and name=value pairs in quotes"))?;
        let part = |name: &str| parts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let needed = |name: &str| part(name).ok_or(AuthError::Request("a part of the DIDWba header is missing"));
        let (did, method) = (needed("did")?, needed("verification_method")?);
        let fragment = method.strip_prefix(did).unwrap_or(method);
        let key = read_keyid(&format!("{did}#{}", fragment.strip_prefix('#').unwrap_or(fragment)))?;
        let (nonce, timestamp) = (needed("nonce")?, needed("timestamp")?);
        check_nonce(nonce)?;
        let created =
            Instant::parse_rfc3339(timestamp).ok_or(AuthError::Timestamp("timestamp is no RFC 3339 moment"))?;
        let members: &[&str] = match part("v").map(version) {
            // The first clients wrote no version and `service`; the library takes their silence for `aud`.
            None => &[SERVICE, AUDIENCE],
            Some(Some(version)) if version >= (1, 1) => &[AUDIENCE],
            Some(Some(_)) => &[SERVICE],
            Some(None) => return Err(AuthError::Request("v is a version such as 1.1")),
        };
        let value = decode_url(needed("signature")?).ok_or(AuthError::Request("signature is no base64url"))?;
        Ok(Self { key, nonce, timestamp, created: created.seconds(), members, value })
    }

    /// The key that is said to have made it.
    pub fn key(&self) -> &DidUrl {
        &self.key
    }

    /// Whether it is in time; `now` in seconds since 1970.
    pub fn check(&self, now: i64) -> Result<(), AuthError> {
        check_time(self.created, None, now)
    }

    /// Checks it with the document of the signer; `hosts` are our names, without ports.
    pub fn verify(&self, signer: &DidDocument, hosts: &[&str]) -> Result<Proved, AuthError> {
        let key = authenticating_key(signer, &self.key)?;
        let did = self.key.did().as_str();
        for host in hosts {
            for member in self.members {
                if key.verifies(&signed(did, self.nonce, self.timestamp, member, host), &self.value) {
                    let once = format!("nonce:{}", self.nonce);
                    return Ok(Proved { key: self.key.clone(), once, until: remembered_until(self.created) });
                }
            }
        }
        Err(AuthError::Signature)
    }
}

/// Our own header for a server that knows no other; `timestamp` is a moment of RFC 3339 in UTC.
pub fn legacy_header(key: &SecretKey, name: &DidUrl, host: &str, nonce: &str, timestamp: &str) -> String {
    let did = name.did().as_str();
    let signature = encode(&key.sign(&signed(did, nonce, timestamp, AUDIENCE, host)));
    format!(
        "DIDWba v=\"1.1\", did=\"{did}\", nonce=\"{nonce}\", timestamp=\"{timestamp}\", \
         verification_method=\"{}\", signature=\"{signature}\"",
        name.fragment()
    )
}

/// What is signed: the hash of the canonical form, which ECDSA hashes once more.
fn signed(did: &str, nonce: &str, timestamp: &str, member: &str, host: &str) -> [u8; 32] {
    let object: Value = json!({"did": did, "nonce": nonce, "timestamp": timestamp, member: host});
    *Digest::of(&json::canonical_value(&object)).as_bytes()
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Pairs of names and quoted values without escapes, each name once.
pub(super) fn parts(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        let name = name.trim();
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if !plain || parts.iter().any(|(known, _)| *known == name) {
            return None;
        }
        parts.push((name, value.trim()));
        rest = after.trim();
        if !rest.is_empty() {
            rest = rest.strip_prefix(',')?.trim();
        }
    }
    (!parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Did, SigningKey};

    const NOW: i64 = 1_733_402_096;
    const TIME: &str = "2024-12-05T12:34:56Z";

    fn key() -> SecretKey {
        SigningKey::from_seed([7; 32]).into()
    }

    fn signer() -> DidDocument {
        DidDocument::of_key(&Did::of_key(key().public().unwrap())).unwrap()
    }

    fn header(host: &str) -> String {
        let name = DidUrl::of_key(signer().did());
        legacy_header(&key(), &name, host, "abc123", TIME).strip_prefix("DIDWba ").unwrap().to_owned()
    }

    fn check(header: &str, now: i64) -> Result<String, &'static str> {
        let code = |error: AuthError| error.code();
        let legacy = Legacy::read(header).map_err(code)?;
        legacy.check(now).map_err(code)?;
        legacy.verify(&signer(), &["example.org"]).map(|proved| proved.once).map_err(code)
    }

    #[test]
    fn a_header_of_ours_is_read() {
        assert_eq!(check(&header("example.org"), NOW).as_deref(), Ok("nonce:abc123"));
        assert_eq!(check(&header("elsewhere.example"), NOW), Err("invalid_signature"));
        assert_eq!(check(&header("example.org"), NOW + 301), Err("request_timestamp"));
        assert_eq!(check(&header("example.org"), NOW - 61), Err("request_timestamp"));
    }

    #[test]
    fn the_host_stands_under_the_name_that_the_version_says() {
        let (did, fragment) = (signer().did().to_string(), signer().did().id().to_owned());
        let with = |version: &str, member: &str| {
            let signature = encode(&key().sign(&signed(&did, "n", TIME, member, "example.org")));
            format!(
                "{version}did=\"{did}\", nonce=\"n\", timestamp=\"{TIME}\", verification_method=\"{fragment}\", \
                 signature=\"{signature}\""
            )
        };
        for (version, member, expected) in [
            ("", "service", Ok("nonce:n")),
            ("", "aud", Ok("nonce:n")),
            ("v=\"1.0\", ", "service", Ok("nonce:n")),
            ("v=\"1.0\", ", "aud", Err("invalid_signature")),
            ("v=\"1.1\", ", "aud", Ok("nonce:n")),
            ("v=\"1.1\", ", "service", Err("invalid_signature")),
            ("v=\"1.10\", ", "aud", Ok("nonce:n")),
            ("v=\"x\", ", "aud", Err("invalid_request")),
        ] {
            assert_eq!(
                check(&with(version, member), NOW).as_deref().map_err(|code| *code),
                expected,
                "{version} {member}"
            );
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let good = header("example.org");
        for (bad, code) in [
            (String::new(), "invalid_request"),
            ("did".to_owned(), "invalid_request"),
            (good.replace("nonce=\"abc123\", ", ""), "invalid_request"),
            (format!("{good}, did=\"x\""), "invalid_request"),
            (format!("{good}, a b=\"x\""), "invalid_request"),
            (format!("{good}, =\"x\""), "invalid_request"),
            (good.replace("nonce=\"abc123\"", "nonce=\"\""), "invalid_nonce"),
            (good.replace("did=\"did:key", "did=\"DID:key"), "invalid_did"),
            (good.replace("verification_method=\"", "verification_method=\"x"), "invalid_verification_method"),
            (good.replace(TIME, "yesterday"), "request_timestamp"),
            (good.replace("signature=\"", "signature=\"*"), "invalid_request"),
            (good.replace("abc123", "abc124"), "invalid_signature"),
        ] {
            assert_eq!(check(&bad, NOW), Err(code), "{bad}");
        }
    }
}
