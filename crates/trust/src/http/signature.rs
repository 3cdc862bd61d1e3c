//! RFC 9421 signatures over requests, as ANP-02 uses them: ours made, others' checked.
//!
//! Ours have the parameters `created`, `expires`, `nonce`, `keyid` in this order and no other, because the agents' own
//! library writes them anew before it checks. Of others' the text of the parameters counts as it came.
//!
//! INVARIANT: [`Signature::verify`] builds the signed text from the request that is being answered and from nothing that
//! the sender says about it.

use super::error::AuthError;
use super::fields::{Bare, Item, Member, Parameters, dictionary};
use super::message::{Headers, Request, base, content_digest};
use super::{Proved, check_nonce, check_time, remembered_until};
use crate::encoding::{encode, encode_padded};
use crate::{Algorithm, Binding, DidDocument, DidError, DidUrl, Digest, PublicKey, SecretKey};

/// What our signatures cover; the digest only where there is a body.
pub const COMPONENTS: [&str; 4] = ["@method", "@target-uri", "@authority", CONTENT_DIGEST];

const CONTENT_DIGEST: &str = "content-digest";

/// The label of our signatures.
const LABEL: &str = "sig1";

/// With what, as whom, when and for how long a request is signed.
#[derive(Clone, Copy, Debug)]
pub struct Signing<'a> {
    /// The key.
    pub key: &'a SecretKey,
    /// The absolute name of the key in its DID document.
    pub keyid: &'a str,
    /// Now, in seconds since 1970.
    pub created: i64,
    /// The end, in seconds since 1970.
    pub expires: i64,
    /// Something that was never signed before: chance, or what a challenge gave.
    pub nonce: &'a str,
}

/// Signs a request: the header fields to add to it, names in lower case.
///
/// `components` is what to cover, [`COMPONENTS`] or what a challenge asks for. What the request does not have is left
/// out, and a body's digest is covered whether it was asked for or not.
pub fn sign(request: &Request<'_>, signing: &Signing<'_>, components: &[&str]) -> Vec<(&'static str, String)> {
    let digest = (!request.body.is_empty()).then(|| content_digest(request.body));
    let mut covered: Vec<(&str, String)> = Vec::new();
    let asked = components.iter().copied().chain(digest.is_some().then_some(CONTENT_DIGEST));
    for name in asked {
        let value = if name == CONTENT_DIGEST { digest.clone() } else { request.component(name) };
        if let (Some(value), false) = (value, covered.iter().any(|(known, _)| *known == name)) {
            covered.push((name, value));
        }
    }
    let names: Vec<String> = covered.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let Signing { key, keyid, created, expires, nonce } = signing;
    let parameters =
        format!("({});created={created};expires={expires};nonce=\"{nonce}\";keyid=\"{keyid}\"", names.join(" "));
    let base = base(covered.iter().map(|(name, value)| (*name, value.as_str())), &parameters);
    let signature = encode_padded(&key.sign(base.as_bytes()));
    let mut fields =
        vec![("signature-input", format!("{LABEL}={parameters}")), ("signature", format!("{LABEL}=:{signature}:"))];
    fields.extend(digest.map(|digest| (CONTENT_DIGEST, digest)));
    fields
}

/// A signature over a request that nobody has checked yet.
#[derive(Debug)]
pub struct Signature<'a> {
    key: DidUrl,
    covered: Vec<String>,
    parameters: &'a str,
    created: i64,
    expires: Option<i64>,
    nonce: Option<String>,
    algorithm: Option<String>,
    value: Vec<u8>,
}

impl<'a> Signature<'a> {
    /// Finds the one signature of a request whose key is named by a DID; there may be others on it, made on the way.
    pub(super) fn find(headers: &Headers<'a>) -> Result<Option<Self>, AuthError> {
        let malformed = AuthError::Request("Signature-Input and Signature are no pair of dictionaries");
        let (input, values) = match (headers.only("signature-input")?, headers.only("signature")?) {
            (None, None) => return Ok(None),
            (Some(input), Some(values)) => (input, values),
            _ => return Err(malformed),
        };
        let inputs = dictionary(input).ok_or(malformed.clone())?;
        let values = dictionary(values).ok_or(malformed.clone())?;
        let mut ours = inputs.into_iter().filter_map(|(label, member)| match member {
            Member::List { items, parameters, written } => {
                let keyid = text(&parameters, "keyid").filter(|keyid| keyid.starts_with("did:"))?.to_owned();
                Some((label, keyid, items, parameters, written))
            }
            Member::Item(_) => None,
        });
        let Some((label, keyid, items, parameters, written)) = ours.next() else {
            let elsewhere = headers.only("authorization")?.is_some();
            let nameless =
                AuthError::Request("keyid is missing or no DID URL; write the DID, # and the name of the key");
            return if elsewhere { Ok(None) } else { Err(nameless) };
        };
        if ours.next().is_some() {
            return Err(AuthError::Request("two signatures name a DID; send one"));
        }
        let value = values.into_iter().find_map(|(known, member)| match member {
            Member::Item(Item { value: Bare::Bytes(bytes), .. }) if known == label => Some(bytes),
            _ => None,
        });
        let optional = |name: &str| match integer(&parameters, name) {
            None if parameters.iter().any(|(known, _)| *known == name) => Err(malformed.clone()),
            found => Ok(found),
        };
        Ok(Some(Self {
            key: read_keyid(&keyid)?,
            covered: covered(items)?,
            created: optional("created")?.ok_or(AuthError::Request("created is missing; say when you signed"))?,
            expires: optional("expires")?,
            nonce: text(&parameters, "nonce").map(str::to_owned),
            algorithm: text(&parameters, "alg").map(str::to_owned),
            parameters: written,
            value: value.ok_or(malformed.clone())?,
        }))
    }

    /// The key that is said to have made it.
    pub fn key(&self) -> &DidUrl {
        &self.key
    }

    /// What needs no key: whether enough is covered, and whether it is in time; `now` in seconds since 1970.
    pub fn check(&self, has_body: bool, now: i64) -> Result<(), AuthError> {
        let covers = |name: &str| self.covered.iter().any(|covered| covered == name);
        if !covers("@method") || !covers("@target-uri") {
            return Err(AuthError::Request("the signature must cover @method and @target-uri"));
        }
        if has_body && !covers(CONTENT_DIGEST) {
            return Err(AuthError::Request("the signature must cover content-digest, since there is a body"));
        }
        check_time(self.created, self.expires, now)?;
        self.nonce.as_deref().map_or(Ok(()), check_nonce)
    }

    /// Checks it with the document of the signer. `targets` are the addresses under which this request may have been
    /// meant; each is tried in the place of the request's own.
    pub fn verify(&self, signer: &DidDocument, request: &Request<'_>, targets: &[String]) -> Result<Proved, AuthError> {
        let key = authenticating_key(signer, &self.key)?;
        if self.algorithm.as_deref().is_some_and(|named| named != registered(key.algorithm())) {
            return Err(AuthError::VerificationMethod("alg is not what this kind of key signs with; leave it out"));
        }
        if self.covered.iter().any(|name| name == CONTENT_DIGEST) {
            request.digest_holds()?;
        }
        for target in targets {
            let base = self.base(&Request { target, ..*request })?;
            if key.verifies(base.as_bytes(), &self.value) {
                let unnamed = || format!("base:{}", encode(Digest::of(base.as_bytes()).as_bytes()));
                let once = self.nonce.as_ref().map_or_else(unnamed, |nonce| format!("nonce:{nonce}"));
                return Ok(Proved { key: self.key.clone(), once, until: remembered_until(self.created) });
            }
        }
        Err(AuthError::Signature)
    }

    fn base(&self, request: &Request<'_>) -> Result<String, AuthError> {
        let value = |name: &String| request.component(name);
        let values: Option<Vec<String>> = self.covered.iter().map(value).collect();
        let values = values.ok_or(AuthError::Request("a covered component is not in the request, or not read here"))?;
        let components = self.covered.iter().map(String::as_str).zip(values.iter().map(String::as_str));
        Ok(base(components, self.parameters))
    }
}

/// The names of covered components: texts in lower case without parameters, each once.
fn covered(items: Vec<Item<'_>>) -> Result<Vec<String>, AuthError> {
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let plain = |name: &&str| !name.bytes().any(|byte| byte.is_ascii_uppercase() || b"\"\\".contains(&byte));
        let name = item.value.as_text().filter(plain).filter(|_| item.parameters.is_empty());
        let name = name.ok_or(AuthError::Request("covered components are names in lower case without parameters"))?;
        if names.iter().any(|known| known == name) {
            return Err(AuthError::Request("a component is covered twice"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn text<'p>(parameters: &'p Parameters<'_>, name: &str) -> Option<&'p str> {
    parameters.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_text())
}

fn integer(parameters: &Parameters<'_>, name: &str) -> Option<i64> {
    parameters.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_integer())
}

/// The absolute name of a key.
pub(super) fn read_keyid(keyid: &str) -> Result<DidUrl, AuthError> {
    DidUrl::parse(keyid).map_err(|error| match error {
        DidError::Fragment => AuthError::VerificationMethod("the key is named by the DID, # and its name there"),
        error => error.into(),
    })
}

/// The key that a name means, if it may prove who sends a request; where the DID is bound to a secp256k1 key, that one.
pub(super) fn authenticating_key<'d>(signer: &'d DidDocument, named: &DidUrl) -> Result<&'d PublicKey, AuthError> {
    let unlisted = "the key is not listed under authentication in the DID document, or of a kind that is not read";
    let mut keys = signer.authenticating_keys().filter(|_| signer.did() == named.did());
    let (_, key) = keys.find(|(name, _)| *name == named.fragment()).ok_or(AuthError::VerificationMethod(unlisted))?;
    match signer.did().binding() {
        Some(Binding::K1(thumbprint)) if key.thumbprint() != thumbprint => {
            Err(AuthError::VerificationMethod("a DID that ends in k1_ proves itself with the key it is named after"))
        }
        _ => Ok(key),
    }
}

/// The name of an algorithm among HTTP signatures; secp256k1 has none there and gets one of the same pattern.
fn registered(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::EdDsa => "ed25519",
        Algorithm::Es256 => "ecdsa-p256-sha256",
        Algorithm::Es384 => "ecdsa-p384-sha384",
        Algorithm::Es256k => "ecdsa-secp256k1-sha256",
    }
}

#[cfg(test)]
mod tests;
