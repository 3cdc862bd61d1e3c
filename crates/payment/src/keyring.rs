//! RFC 0020 B.2: whose word a payment document is.
//!
//! A did:key is its own key; the documents of other DIDs are brought along by the caller, who fetched them.

use crate::refusal::{Code, Refusal};
use json::{Document, Node, Value, json};
use trust::{Algorithm, Did, DidDocument, Digest, Signed, SignedList, SigningKey, encoding};

/// The keys of those who sign.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    documents: Vec<DidDocument>,
}

impl Keyring {
    /// The same with the keys of one more.
    #[must_use]
    pub fn with(mut self, document: DidDocument) -> Self {
        self.documents.push(document);
        self
    }

    /// The keys of a signer.
    pub fn of(&self, did: &Did) -> Result<DidDocument, Refusal> {
        let known = self.documents.iter().find(|document| document.did() == did).cloned();
        known.map_or_else(|| DidDocument::of_key(did), Ok).map_err(|error| {
            Refusal::new(Code::Below(error.code()), format!("the keys of {did} are not known: {error}"))
        })
    }

    /// Checks the one signature of a document.
    pub(crate) fn check(&self, document: &Document, signer: &Did) -> Result<(), Refusal> {
        Ok(Signed::read(document)?.verify_with(&self.of(signer)?).map(|_| ())?)
    }

    /// Checks the signature of one of those who are listed.
    pub(crate) fn check_listed(&self, document: &Document, signer: &Did) -> Result<(), Refusal> {
        Ok(SignedList::read(document, "signatures")?.verify_with(&self.of(signer)?).map(|_| ())?)
    }
}

/// The digest of a document as it is linked to: its canonical form, signatures included.
pub fn digest(document: Node<'_>) -> Digest {
    Digest::of(&json::canonical(document))
}

/// Adds a signature to the list of a document we built; it covers all but that list.
pub fn sign_listed(body: &mut Value, key: &SigningKey) {
    let signature = signature(body, key);
    let Value::Object(members) = body else { return };
    match members.get_mut("signatures").and_then(Value::as_array_mut) {
        Some(list) => list.push(signature),
        None => {
            members.insert("signatures".to_owned(), json!([signature]));
        }
    }
}

fn signature(body: &Value, key: &SigningKey) -> Value {
    let mut covered = body.clone();
    if let Value::Object(members) = &mut covered {
        members.remove("signatures");
    }
    let value = encoding::encode(&key.sign(&json::canonical_value(&covered)));
    json!({"by": key.key_id().to_string(), "alg": Algorithm::EdDsa.name(), "value": value})
}
