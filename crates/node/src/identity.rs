//! RFC 0020 A.3 R6: who this node is, and its signature under everything it says.
//!
//! Keys follow one another. A new one is announced in the DID document before it signs, so that nobody who remembers
//! the document for a while meets a key that is not in it; the old one stays there with the moment since which it no
//! longer counts, so that what it signed can be checked for ever (decisions/0061).
//!
//! INVARIANT: at every moment one key signs, and the document of that moment lists it.

mod keys;

pub use keys::Rotation;
pub(crate) use keys::{FILES, Keys, rotate};

use crate::clock::{Clock, instant};
use json::{Value, json};
use trust::http::AccessToken;
use trust::{Algorithm, Did, DidError, DidUrl, ProofForm, PublicKey, SecretKey, SigningKey, encoding};

/// The fragment of the node's first key when the node has a name of its own.
const KEY_NAME: &str = "node-key";

/// The node's name and keys.
#[derive(Debug)]
pub struct Identity {
    did: Did,
    current: Held,
    /// The key that follows, and from when on, in milliseconds since 1970.
    next: Option<(Held, i64)>,
    retired: Vec<Retired>,
    clock: Clock,
}

/// A key to sign with, and its name.
#[derive(Debug)]
struct Held {
    key: SigningKey,
    kid: String,
}

/// A key that signed once.
#[derive(Clone, Debug)]
pub(crate) struct Retired {
    pub(crate) key: PublicKey,
    /// In milliseconds since 1970.
    pub(crate) since: i64,
}

impl Identity {
    /// A node that is called by its key, and so by another name with each key.
    pub(crate) fn of_key(keys: Keys, clock: Clock) -> Self {
        let key = keys.current;
        let (did, kid) = (key.did_key(), key.key_id().to_string());
        Self { did, current: Held { key, kid }, next: None, retired: Vec::new(), clock }
    }

    #[cfg(test)]
    pub(crate) fn of_seed(seed: [u8; 32]) -> Self {
        Self::of_key(Keys { current: SigningKey::from_seed(seed), next: None, retired: Vec::new() }, Clock::System)
    }

    /// A node that is called by the address where it publishes its keys.
    pub(crate) fn named(keys: Keys, did: Did, clock: Clock) -> Self {
        let held = |key: SigningKey, number: usize| Held { key, kid: key_name(&did, number) };
        let earlier = keys.retired.len();
        let next = keys.next.map(|(key, from)| (held(key, earlier + 1), from));
        Self { current: held(keys.current, earlier), next, retired: keys.retired, did, clock }
    }

    /// What the node is called.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// The DID document that lets others check the node's signatures, now and of the past.
    pub fn document(&self) -> Value {
        self.document_of(&self.did)
    }

    /// The document of an agent that the node publishes: the same keys, under the agent's name.
    pub(crate) fn document_of(&self, did: &Did) -> Value {
        let now = self.clock.millis();
        let method = |kid: &str, key: &PublicKey| {
            json!({
                "id": named_by(did, kid),
                "type": "Ed25519VerificationKey2020",
                "controller": did.as_str(),
                "publicKeyMultibase": key.to_multibase(),
            })
        };
        let revoked = |kid: &str, key: &PublicKey, since: i64| {
            let mut method = method(kid, key);
            if let Some(members) = method.as_object_mut() {
                members.insert("revoked".to_owned(), json!(instant(since).to_string()));
            }
            method
        };
        let mut signing = vec![&self.current];
        let mut past: Vec<Value> = self
            .retired
            .iter()
            .enumerate()
            .map(|(number, retired)| revoked(&key_name(&self.did, number), &retired.key, retired.since))
            .collect();
        match &self.next {
            Some((next, from)) if *from <= now => {
                past.push(revoked(&self.current.kid, &self.current.key.public(), *from));
                signing = vec![next];
            }
            Some((next, _)) => signing.push(next),
            None => {}
        }
        let names: Vec<String> = signing.iter().map(|held| named_by(did, &held.kid)).collect();
        let mut methods: Vec<Value> = signing.iter().map(|held| method(&held.kid, &held.key.public())).collect();
        methods.extend(past);
        json!({
            "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/ed25519-2020/v1"],
            "id": did.as_str(),
            "verificationMethod": methods,
            "authentication": names,
            "assertionMethod": names,
        })
    }

    /// Adds a proof to something that an agent of the node says.
    pub(crate) fn prove(&self, document: &mut Value, did: &Did, created: &str) {
        let held = self.held();
        trust::prove(document, &held.key, &named_by(did, &held.kid), created, ProofForm::Sdk);
    }

    /// The key that signs now.
    fn held(&self) -> &Held {
        match &self.next {
            Some((next, from)) if *from <= self.clock.millis() => next,
            _ => &self.current,
        }
    }

    /// The key that signs now, for requests to others, and its name.
    pub(crate) fn request_key(&self) -> Result<(DidUrl, SecretKey), DidError> {
        let held = self.held();
        Ok((DidUrl::parse(&held.kid)?, SecretKey::from(held.key.clone())))
    }

    /// The public half of the key that signs now.
    pub(crate) fn public(&self) -> PublicKey {
        self.held().key.public()
    }

    /// A token for somebody who proved to be the sender of a request; it ends when the key is another one.
    pub(crate) fn access_token(&self, token: &AccessToken) -> String {
        token.sign(&self.held().key)
    }

    /// The signature member for a body in canonical form.
    pub(crate) fn signature(&self, body: &[u8]) -> Value {
        let held = self.held();
        json!({
            "alg": Algorithm::EdDsa.name(),
            "kid": held.kid,
            "value": encoding::encode(&held.key.sign(body)),
        })
    }

    /// Signs a body whose canonical form would have `signature` as its last member, without writing it again.
    pub(crate) fn sign_last(&self, mut body: Vec<u8>) -> Vec<u8> {
        let signature = json::canonical_value(&self.signature(&body));
        body.pop();
        body.extend_from_slice(b",\"signature\":");
        body.extend_from_slice(&signature);
        body.push(b'}');
        body
    }

    /// The header fields of a message that is brought to a subscriber.
    pub(crate) fn webhook_headers(
        &self,
        message: &feed::webhook::Message<'_>,
        secrets: &[feed::webhook::Secret],
    ) -> Vec<(&'static str, String)> {
        let held = self.held();
        message.headers(&held.key, &held.kid, secrets)
    }

    /// Signs a receipt, whose signatures stand in a list.
    pub(crate) fn sign_receipt(&self, mut receipt: Value) -> Value {
        let held = self.held();
        let value = encoding::encode(&held.key.sign(&json::canonical_value(&receipt)));
        if let Some(members) = receipt.as_object_mut() {
            let signature = json!({"by": held.kid, "alg": Algorithm::EdDsa.name(), "value": value});
            members.insert("signatures".to_owned(), json!([signature]));
        }
        receipt
    }

    /// Signs an object and writes it in canonical form.
    pub(crate) fn sign(&self, mut body: Value) -> Vec<u8> {
        let signature = self.signature(&json::canonical_value(&body));
        if let Some(members) = body.as_object_mut() {
            members.insert("signature".to_owned(), signature);
        }
        json::canonical_value(&body)
    }
}

/// What a key of the node is called by somebody who has it, too.
fn named_by(did: &Did, kid: &str) -> String {
    let fragment = kid.split_once('#').map_or(kid, |(_, fragment)| fragment);
    format!("{did}#{fragment}")
}

/// The name of the key that followed so many others.
fn key_name(did: &Did, earlier: usize) -> String {
    match earlier {
        0 => format!("{did}#{KEY_NAME}"),
        earlier => format!("{did}#{KEY_NAME}-{}", earlier + 1),
    }
}
