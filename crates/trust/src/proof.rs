//! Data Integrity proofs inside a document: the suite `eddsa-jcs-2022` in the two forms that are in use.
//!
//! Both sign SHA-256 of the proof's options, then SHA-256 of the document without its `proof`, each in RFC 8785 form.
//! The form of the W3C writes `z` and base58btc and has the document's `@context` among the options; the form of the
//! agents' own library writes base64url and signs the options as they stand. Which one it is shows in the value
//! (decisions/0171).
//!
//! INVARIANT: a proof holds only by an Ed25519 key that the signer's document lists under `assertionMethod`.

use crate::{Algorithm, DidDocument, Digest, PublicKey, SigningKey, encoding};
use json::{Node, Value, json};

/// The member that carries the proof.
const PROOF: &str = "proof";
/// The member that carries the signature.
const PROOF_VALUE: &str = "proofValue";
/// The member that explains the terms.
const CONTEXT: &str = "@context";
/// The longest base58 text of 64 bytes.
const BASE58_CHARS_MAX: usize = 88;

/// How a proof is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofForm {
    /// As the agents' own library writes it, old versions of which read nothing else.
    #[default]
    Sdk,
    /// As the W3C text has it.
    W3c,
}

/// A proof that holds: its form, and the key that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// How it is written.
    pub form: ProofForm,
    /// Who made it.
    pub key: &'a PublicKey,
}

/// Why a proof does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofProblem {
    /// There is none, or several.
    #[error("there is no proof; add one of type `DataIntegrityProof`")]
    Missing,
    /// Another kind of proof.
    #[error("the proof is of another kind; use `DataIntegrityProof` with `eddsa-jcs-2022` for `assertionMethod`")]
    Kind,
    /// A key that may not make it.
    #[error("the proof's key is no Ed25519 key that the document lists under `assertionMethod`")]
    Key,
    /// The value is no signature.
    #[error("`proofValue` is no signature; write 64 bytes as `z` and base58btc, or as base64url without padding")]
    Encoding,
    /// The signature does not hold.
    #[error("the proof does not hold for this document; make it again after the last change")]
    Invalid,
}

/// Checks the proof of a document against the document of whoever claims to have made it.
pub fn verify<'a>(document: Node<'_>, signer: &'a DidDocument) -> Result<Proof<'a>, ProofProblem> {
    let proof = document.get(PROOF).filter(|proof| proof.is_object()).ok_or(ProofProblem::Missing)?;
    let text = |name: &str| proof.get(name).and_then(Node::as_str);
    let kind = (text("type"), text("cryptosuite"), text("proofPurpose"));
    if kind != (Some("DataIntegrityProof"), Some("eddsa-jcs-2022"), Some("assertionMethod")) {
        return Err(ProofProblem::Kind);
    }
    let named = text("verificationMethod").ok_or(ProofProblem::Key)?;
    let fragment = named.strip_prefix(signer.did().as_str()).unwrap_or(named).strip_prefix('#');
    let mut keys = signer.asserting_keys().filter(|(_, key)| key.algorithm() == Algorithm::EdDsa);
    let (_, key) = keys.find(|(name, _)| Some(*name) == fragment).ok_or(ProofProblem::Key)?;
    let (form, signature) = text(PROOF_VALUE).and_then(read_value).ok_or(ProofProblem::Encoding)?;
    let hashed = hashed(options(proof.to_value(), document.get(CONTEXT).map(Node::to_value), form), || {
        json::canonical_without(document, PROOF)
    });
    if key.verifies(&hashed, &signature) { Ok(Proof { form, key }) } else { Err(ProofProblem::Invalid) }
}

/// Checks the older proof of an Agent Description, which signs the whole document with the proof in it, all but its value,
/// through SHA-256; `host` is where it was found, and must be the one that the proof names, if it names one.
pub fn verify_embedded(document: Node<'_>, signer: &DidDocument, host: &str) -> Result<(), ProofProblem> {
    let proof = document.get(PROOF).filter(|proof| proof.is_object()).ok_or(ProofProblem::Missing)?;
    let text = |name: &str| proof.get(name).and_then(Node::as_str);
    let named_elsewhere = proof.get("domain").is_some_and(|domain| domain.as_str() != Some(host));
    if text("proofPurpose") != Some("assertionMethod")
        || named_elsewhere
        || (proof.get("domain").is_some() && proof.get("challenge").is_none())
    {
        return Err(ProofProblem::Kind);
    }
    let named = text("verificationMethod").ok_or(ProofProblem::Key)?;
    let fragment = named.strip_prefix(signer.did().as_str()).unwrap_or(named).strip_prefix('#');
    let (_, key) = signer.asserting_keys().find(|(name, _)| Some(*name) == fragment).ok_or(ProofProblem::Key)?;
    let signature = text(PROOF_VALUE).and_then(encoding::decode_url).ok_or(ProofProblem::Encoding)?;
    let mut value = document.to_value();
    if let Some(members) = value.get_mut(PROOF).and_then(Value::as_object_mut) {
        members.remove(PROOF_VALUE);
    }
    let canonical = json::canonical_value(&value);
    let digest = Digest::of(&canonical);
    // Whoever has an elliptic curve that hashes by itself either hashes twice or leaves it to the curve.
    let once = key.algorithm() != Algorithm::EdDsa && key.verifies(&canonical, &signature);
    if once || key.verifies(digest.as_bytes(), &signature) { Ok(()) } else { Err(ProofProblem::Invalid) }
}

/// Adds a proof to a document; `method` is the absolute name of the key, `created` a moment of RFC 3339.
pub fn prove(document: &mut Value, key: &SigningKey, method: &str, created: &str, form: ProofForm) {
    let context = document.get(CONTEXT).cloned();
    let mut proof = json!({
        "type": "DataIntegrityProof",
        "created": created,
        "verificationMethod": method,
        "proofPurpose": "assertionMethod",
        "cryptosuite": "eddsa-jcs-2022",
    });
    proof = options(proof, context, form);
    if let Some(members) = document.as_object_mut() {
        members.remove(PROOF);
    }
    let signature = key.sign(&hashed(proof.clone(), || json::canonical_value(document)));
    let value = match form {
        ProofForm::Sdk => encoding::encode(&signature),
        ProofForm::W3c => format!("z{}", bs58::encode(signature).into_string()),
    };
    if let (Some(proof), Some(members)) = (proof.as_object_mut(), document.as_object_mut()) {
        proof.insert(PROOF_VALUE.to_owned(), json!(value));
        members.insert(PROOF.to_owned(), Value::Object(proof.clone()));
    }
}

/// What is hashed of a proof: all but its value, and in the W3C form the document's context whether or not it says so.
fn options(mut proof: Value, context: Option<Value>, form: ProofForm) -> Value {
    if let Some(members) = proof.as_object_mut() {
        members.remove(PROOF_VALUE);
        if let (ProofForm::W3c, Some(context)) = (form, context) {
            members.insert(CONTEXT.to_owned(), context);
        }
    }
    proof
}

fn hashed(options: Value, document: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let (options, document) = (Digest::of(&json::canonical_value(&options)), Digest::of(&document()));
    [options.as_bytes().as_slice(), document.as_bytes()].concat()
}

/// The form of a value and its 64 bytes. A text that is `z` and exactly the base58 of 64 bytes is the W3C's; a base64url
/// text may begin with `z` as well.
fn read_value(text: &str) -> Option<(ProofForm, Vec<u8>)> {
    if let Some(digits) = text.strip_prefix('z').filter(|digits| digits.len() <= BASE58_CHARS_MAX)
        && let Ok(bytes) = bs58::decode(digits).into_vec()
        && bytes.len() == 64
    {
        return Some((ProofForm::W3c, bytes));
    }
    let bytes = encoding::decode_url(text).filter(|bytes| bytes.len() == 64)?;
    Some((ProofForm::Sdk, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Did;
    use json::Document;

    const DID: &str = "did:web:example.com";

    fn key(number: u8) -> SigningKey {
        SigningKey::from_seed([number; 32])
    }

    fn signer() -> DidDocument {
        let method = |name: &str, number: u8| json!({"id": format!("{DID}#{name}"), "type": "Multikey", "controller": DID, "publicKeyMultibase": key(number).public().to_multibase()});
        let value = json!({
            "id": DID,
            "verificationMethod": [method("a", 1), method("b", 2)],
            "assertionMethod": [format!("{DID}#a")],
            "authentication": ["#b"],
        });
        DidDocument::read(Document::of(&value).unwrap().root(), &Did::parse(DID).unwrap()).unwrap()
    }

    fn sample(number: u8, method: &str, form: ProofForm) -> Value {
        let mut value = json!({"@context": ["https://www.w3.org/ns/did/v1"], "name": "n", "list": [1, 2]});
        prove(&mut value, &key(number), &format!("{DID}#{method}"), "2026-01-01T00:00:00Z", form);
        value
    }

    fn check(value: &Value) -> Result<ProofForm, ProofProblem> {
        verify(Document::of(value).unwrap().root(), &signer()).map(|proof| proof.form)
    }

    #[test]
    fn both_forms_are_written_and_read() {
        for form in [ProofForm::Sdk, ProofForm::W3c] {
            let mut value = sample(1, "a", form);
            assert_eq!(check(&value), Ok(form));
            assert_eq!(value["proof"].get(CONTEXT).is_some(), form == ProofForm::W3c);
            // A verifier of the W3C form adds the context where the proof leaves it out.
            value["proof"].as_object_mut().unwrap().remove(CONTEXT);
            assert_eq!(check(&value), Ok(form));
            value["proof"]["verificationMethod"] = json!("#a");
            assert_eq!(check(&value), Err(ProofProblem::Invalid), "the options are signed");
        }
    }

    #[test]
    fn the_older_proof_covers_the_document_with_itself() {
        let mut value = json!({"name": "n", "did": DID, "proof": {
            "type": "Ed25519Signature2020", "created": "2026-01-01T00:00:00Z", "proofPurpose": "assertionMethod",
            "verificationMethod": format!("{DID}#a"), "domain": "example.com", "challenge": "x",
        }});
        let digest = Digest::of(&json::canonical_value(&value));
        value["proof"][PROOF_VALUE] = json!(encoding::encode(&key(1).sign(digest.as_bytes())));
        let check = |value: &Value, host: &str| verify_embedded(Document::of(value).unwrap().root(), &signer(), host);
        assert_eq!(check(&value, "example.com"), Ok(()));
        assert_eq!(check(&value, "copy.example"), Err(ProofProblem::Kind), "it names another host");
        for (place, with, problem) in [
            ("/name", json!("m"), ProofProblem::Invalid),
            ("/proof/created", json!("2027-01-01T00:00:00Z"), ProofProblem::Invalid),
            ("/proof/verificationMethod", json!(format!("{DID}#b")), ProofProblem::Key),
            ("/proof/proofPurpose", json!("authentication"), ProofProblem::Kind),
            ("/proof/proofValue", json!("%"), ProofProblem::Encoding),
            ("/proof", json!(null), ProofProblem::Missing),
        ] {
            let mut altered = value.clone();
            *altered.pointer_mut(place).unwrap() = with;
            assert_eq!(check(&altered, "example.com"), Err(problem), "{place}");
        }
        value["proof"].as_object_mut().unwrap().remove("challenge");
        assert_eq!(check(&value, "example.com"), Err(ProofProblem::Kind), "a host without a challenge");
    }

    #[test]
    fn a_curve_that_hashes_by_itself_may_sign_the_document_or_its_digest_and_others_the_digest() {
        let did = crate::wba_name("example.com", &[]).unwrap();
        let secp256k1 = crate::Secp256k1Key::from_scalar([2; 32]).unwrap();
        for (key, hashes) in [(crate::SecretKey::from(key(1)), false), (crate::SecretKey::from(secp256k1), true)] {
            let signer = crate::wba_document(&did, &key, None, "2026-01-01T00:00:00Z", ProofForm::Sdk).unwrap();
            let signer = DidDocument::read(Document::of(&signer).unwrap().root(), &did).unwrap();
            let mut value = json!({"name": "n", "proof": {
                "type": "older", "created": "2026-01-01T00:00:00Z", "proofPurpose": "assertionMethod",
                "verificationMethod": format!("{did}#key-1"),
            }});
            let canonical = json::canonical_value(&value);
            for (signed, holds) in
                [(Digest::of(&canonical).as_bytes().as_slice(), true), (&canonical, hashes), (b"another", false)]
            {
                value["proof"][PROOF_VALUE] = json!(encoding::encode(&key.sign(signed)));
                let held = verify_embedded(Document::of(&value).unwrap().root(), &signer, "example.com");
                assert_eq!(held, if holds { Ok(()) } else { Err(ProofProblem::Invalid) }, "{hashes}");
            }
        }
    }

    #[test]
    fn a_proof_made_again_takes_the_place_of_the_old_one() {
        let mut value = sample(1, "a", ProofForm::W3c);
        prove(&mut value, &key(1), &format!("{DID}#a"), "2026-01-02T00:00:00Z", ProofForm::Sdk);
        assert_eq!(check(&value), Ok(ProofForm::Sdk));
    }

    #[test]
    fn what_proves_nothing_is_told_apart() {
        let cases = [
            ("/proof", json!(null), ProofProblem::Missing),
            ("/proof", json!([]), ProofProblem::Missing),
            ("/proof/type", json!("Ed25519Signature2020"), ProofProblem::Kind),
            ("/proof/cryptosuite", json!("eddsa-rdfc-2022"), ProofProblem::Kind),
            ("/proof/proofPurpose", json!("authentication"), ProofProblem::Kind),
            ("/proof/verificationMethod", json!("did:web:example.com#b"), ProofProblem::Key),
            ("/proof/verificationMethod", json!("did:web:elsewhere.example#a"), ProofProblem::Key),
            ("/proof/verificationMethod", json!("a"), ProofProblem::Key),
            ("/proof/proofValue", json!("AAAA"), ProofProblem::Encoding),
            ("/proof/proofValue", json!("z"), ProofProblem::Encoding),
            ("/proof/proofValue", json!("z".repeat(100_000)), ProofProblem::Encoding),
            ("/proof/created", json!("2026-01-02T00:00:00Z"), ProofProblem::Invalid),
            ("/list/1", json!(3), ProofProblem::Invalid),
            ("/@context/0", json!("https://elsewhere.example"), ProofProblem::Invalid),
        ];
        for (place, value, problem) in cases {
            for form in [ProofForm::Sdk, ProofForm::W3c] {
                let mut document = sample(1, "a", form);
                *document.pointer_mut(place).unwrap() = value.clone();
                assert_eq!(check(&document), Err(problem), "{place} {form:?}");
            }
        }
        assert_eq!(check(&sample(2, "a", ProofForm::Sdk)), Err(ProofProblem::Invalid));
        assert_eq!(check(&sample(2, "b", ProofForm::Sdk)), Err(ProofProblem::Key), "a key for requests");
    }
}
