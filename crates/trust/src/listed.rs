//! Documents with a list of signatures, each `by` somebody: receipts (RFC 0013 §3.5), conformance receipts (RFC 0019)
//! and procurement intents (RFC 0013 §3.4).
//!
//! A signature covers the RFC 8785 bytes of the document without the members that are named when it is read.
//!
//! INVARIANT: nobody signs twice in one list, so one name costs one check.

use crate::{Algorithm, Did, DidDocument, Problem, SignatureError, Verified, encoding};
use json::{Document, Node, Pointer, Value};

/// The member that carries the list.
const SIGNATURES: &str = "signatures";

/// A document whose signatures nobody has checked yet.
#[derive(Debug)]
pub struct SignedList<'a> {
    document: &'a Document,
    without: Vec<&'a str>,
    entries: Vec<Entry<'a>>,
}

#[derive(Debug)]
struct Entry<'a> {
    at: Pointer,
    signer: Did,
    by: &'a str,
    algorithm: Algorithm,
    value: Vec<u8>,
}

impl<'a> SignedList<'a> {
    /// Finds the signatures of a document; they cover it without `signatures` and without the member `beside`.
    pub fn read(document: &'a Document, beside: &'a str) -> Result<Self, SignatureError> {
        let list = document.root().get(SIGNATURES).filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| SignatureError::new(place(), Problem::SignatureMissing))?;
        let entries = list.elements().enumerate().map(|(position, entry)| Entry::read(entry, place().child(position)));
        let entries: Vec<Entry<'a>> = entries.collect::<Result<_, _>>()?;
        for (position, entry) in entries.iter().enumerate() {
            if entries.iter().take(position).any(|earlier| earlier.signer == entry.signer) {
                return Err(SignatureError::new(entry.at.child("by"), Problem::KidAmbiguous));
            }
        }
        Ok(Self { document, without: vec![SIGNATURES, beside], entries })
    }

    /// Who claims to have signed.
    pub fn signers(&self) -> impl Iterator<Item = &Did> {
        self.entries.iter().map(|entry| &entry.signer)
    }

    /// Checks the signature of one of them.
    pub fn verify_with(&self, signer: &DidDocument) -> Result<Verified<&'a Document>, SignatureError> {
        let entry = self.entries.iter().find(|entry| entry.signer == *signer.did());
        let entry = entry.ok_or_else(|| SignatureError::new(place(), Problem::SignatureMissing))?;
        let refuse = |member: &str, problem| SignatureError::new(entry.at.child(member), problem);
        let kid = entry.by.contains('#').then_some(entry.by);
        let key = signer.signing_key(kid).map_err(|problem| refuse("by", problem))?;
        if key.algorithm() != entry.algorithm {
            return Err(refuse("alg", Problem::AlgKeyMismatch));
        }
        if entry.value.len() != entry.algorithm.signature_bytes() {
            return Err(refuse("value", Problem::SignatureEncoding));
        }
        let mut body = self.document.root().to_value();
        if let Value::Object(members) = &mut body {
            members.retain(|name, _| !self.without.contains(&name.as_str()));
        }
        if !key.verifies(&json::canonical_value(&body), &entry.value) {
            return Err(refuse("value", Problem::SignatureInvalid));
        }
        Ok(Verified::of(self.document, signer.did().clone()))
    }
}

/// Keys of one signer that are tried when a signature does not say which one made it.
const KEYS_TRIED: usize = 8;

/// Checks a signature that stands alone as a text in a member, such as `issuer_signature` (RFC 0009 §3.2).
///
/// It covers the document without that member and does not name its key, so that each key of the signer is tried.
pub fn verify_member<'a>(
    document: &'a Document,
    member: &str,
    signer: &DidDocument,
) -> Result<Verified<&'a Document>, SignatureError> {
    let refuse = |problem| SignatureError::new(Pointer::root().child(member), problem);
    let value = document.root().get(member).and_then(Node::as_str).ok_or_else(|| refuse(Problem::SignatureMissing))?;
    let value = encoding::decode(value).ok_or_else(|| refuse(Problem::SignatureEncoding))?;
    let bytes = json::canonical_without(document.root(), member);
    let mut keys = signer.signing_keys().map(|(_, key)| key).take(KEYS_TRIED);
    match keys.any(|key| key.verifies(&bytes, &value)) {
        true => Ok(Verified::of(document, signer.did().clone())),
        false => Err(refuse(Problem::SignatureInvalid)),
    }
}

impl<'a> Entry<'a> {
    fn read(entry: Node<'a>, at: Pointer) -> Result<Self, SignatureError> {
        let text = |name: &str| entry.get(name).and_then(Node::as_str);
        let by = text("by").unwrap_or_default();
        let named = by.split('#').next().unwrap_or_default();
        let signer = Did::parse(named).map_err(|error| SignatureError::new(at.child("by"), error))?;
        let algorithm = text("alg").and_then(Algorithm::read);
        let algorithm = algorithm.ok_or_else(|| SignatureError::new(at.child("alg"), Problem::AlgNotAllowed))?;
        let value = text("value").and_then(encoding::decode);
        let value = value.ok_or_else(|| SignatureError::new(at.child("value"), Problem::SignatureEncoding))?;
        Ok(Self { at, signer, by, algorithm, value })
    }
}

fn place() -> Pointer {
    Pointer::root().child(SIGNATURES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;
    use json::json;

    fn person(number: u8) -> SigningKey {
        SigningKey::from_seed([number; 32])
    }

    fn signed(body: &Value, by: &[(SigningKey, bool)]) -> Value {
        let bytes = json::canonical_value(body);
        let entry = |(key, whole): &(SigningKey, bool)| {
            let by = if *whole { key.key_id().to_string() } else { key.did_key().to_string() };
            json!({"by": by, "alg": "EdDSA", "value": encoding::encode(&key.sign(&bytes))})
        };
        let mut document = body.clone();
        document["signatures"] = by.iter().map(entry).collect();
        document
    }

    fn check(document: &Value, signer: u8) -> Result<(), (&'static str, String)> {
        let document = Document::of(document).unwrap();
        let keys = DidDocument::of_key(&person(signer).did_key()).unwrap();
        let list = SignedList::read(&document, "peer_witnesses");
        let verified = list.and_then(|list| list.verify_with(&keys).map(|verified| verified.signer().clone()));
        verified
            .map(|signer| assert_eq!(signer, *keys.did()))
            .map_err(|error| (error.code(), error.at.as_str().to_owned()))
    }

    #[test]
    fn each_signer_of_a_list_is_checked_by_itself() {
        let mut document = signed(&json!({"a": 1}), &[(person(1), true), (person(2), false)]);
        document["peer_witnesses"] = json!([{"added": "later"}]);
        assert_eq!(check(&document, 1), Ok(()));
        assert_eq!(check(&document, 2), Ok(()));
        assert_eq!(check(&document, 3), Err(("signature_missing", "/signatures".into())));
        document["a"] = json!(2);
        assert_eq!(check(&document, 2), Err(("signature_invalid", "/signatures/1/value".into())));
    }

    #[test]
    fn a_signature_in_a_member_covers_the_rest() {
        let keys = |number| DidDocument::of_key(&person(number).did_key()).unwrap();
        let mut record = json!({"subject": "did:web:a", "score": 1});
        let value = encoding::encode(&person(1).sign(&json::canonical_value(&record)));
        record["issuer_signature"] = json!(value);
        let code = |record: &Value, number| {
            let document = Document::of(record).unwrap();
            verify_member(&document, "issuer_signature", &keys(number)).err().map(|error| error.code())
        };
        assert_eq!(code(&record, 1), None);
        assert_eq!(code(&record, 2), Some("signature_invalid"));
        record["score"] = json!(2);
        assert_eq!(code(&record, 1), Some("signature_invalid"));
        record["issuer_signature"] = json!("...");
        assert_eq!(code(&record, 1), Some("signature_encoding"));
        record["issuer_signature"] = json!({});
        assert_eq!(code(&record, 1), Some("signature_missing"));
    }

    #[test]
    fn a_list_that_proves_nothing_is_refused_with_its_place() {
        let good = signed(&json!({"a": 1}), &[(person(1), true)]);
        let cases = [
            ("/signatures", json!([]), "signature_missing", "/signatures"),
            ("/signatures", json!("x"), "signature_missing", "/signatures"),
            ("/signatures/0/by", json!("nobody"), "invalid_did", "/signatures/0/by"),
            (
                "/signatures/0/by",
                json!(format!("{}#other", person(1).did_key())),
                "kid_not_authorized",
                "/signatures/0/by",
            ),
            ("/signatures/0/alg", json!("none"), "alg_not_allowed", "/signatures/0/alg"),
            ("/signatures/0/alg", json!("ES256"), "alg_key_mismatch", "/signatures/0/alg"),
            (
                "/signatures/0/value",
                json!("PLACEHOLDER_NOT_FOR_PRODUCTION"),
                "signature_encoding",
                "/signatures/0/value",
            ),
            ("/signatures/0/value", json!("placeholder:x"), "signature_encoding", "/signatures/0/value"),
            ("/signatures/0/value", json!("AAAA"), "signature_encoding", "/signatures/0/value"),
        ];
        for (pointer, value, code, at) in cases {
            let mut document = good.clone();
            *document.pointer_mut(pointer).unwrap() = value.clone();
            assert_eq!(check(&document, 1), Err((code, at.to_owned())), "{pointer} {value}");
        }
        let twice = signed(&json!({"a": 1}), &[(person(1), true), (person(1), false)]);
        assert_eq!(check(&twice, 1), Err(("kid_not_authorized", "/signatures/1/by".into())));
    }
}
