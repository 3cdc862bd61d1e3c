//! did:wba identities of our own (ANP-03): their names and the documents to publish.
//!
//! INVARIANT: names of keys are absolute in what we write, because the agents' own library compares them as text.

use crate::{Algorithm, Did, DidError, KeyError, ProofForm, SecretKey, prove};
use json::{Value, json};

/// The name of the key in our documents.
const KEY: &str = "key-1";

/// A name at a host: `host` with its port behind `:`, if any, and path segments.
pub fn name(host: &str, segments: &[&str]) -> Result<Did, DidError> {
    let parts: Vec<String> = std::iter::once(host.replacen(':', "%3A", 1))
        .chain(segments.iter().map(|segment| (*segment).to_owned()))
        .collect();
    Did::parse(&format!("did:wba:{}", parts.join(":")))
}

/// The name at a host that ends in the fingerprint of a key: `e1_` for Ed25519, `k1_` for secp256k1.
pub fn bound_name(host: &str, segments: &[&str], key: &SecretKey) -> Result<Did, DidError> {
    let public = key.public()?;
    let prefix = match public.algorithm() {
        Algorithm::EdDsa => "e1",
        Algorithm::Es256k => "k1",
        Algorithm::Es256 | Algorithm::Es384 => return Err(KeyError::Unsupported.into()),
    };
    let last = format!("{prefix}_{}", public.thumbprint());
    name(host, &[segments, &[last.as_str()]].concat())
}

/// The document of a name whose one key is this one; `created` is a moment of RFC 3339, `description` the address of the
/// agent's description.
///
/// With an Ed25519 key it carries a proof in the form that is asked for, which `e1_` names need.
pub fn document(
    did: &Did,
    key: &SecretKey,
    description: Option<&str>,
    created: &str,
    form: ProofForm,
) -> Result<Value, DidError> {
    let public = key.public()?;
    let id = format!("{did}#{KEY}");
    let (mut contexts, method) = (
        vec!["https://www.w3.org/ns/did/v1"],
        match public.algorithm() {
            Algorithm::EdDsa => json!({
                "id": id, "type": "Multikey", "controller": did.as_str(), "publicKeyMultibase": public.to_multibase(),
            }),
            _ => json!({
                "id": id, "type": "EcdsaSecp256k1VerificationKey2019", "controller": did.as_str(),
                "publicKeyJwk": public.to_jwk(),
            }),
        },
    );
    match public.algorithm() {
        Algorithm::EdDsa => {
            contexts.extend(["https://w3id.org/security/data-integrity/v2", "https://w3id.org/security/multikey/v1"])
        }
        _ => contexts.extend([
            "https://w3id.org/security/suites/jws-2020/v1",
            "https://w3id.org/security/suites/secp256k1-2019/v1",
        ]),
    }
    let mut document = json!({
        "@context": contexts,
        "id": did.as_str(),
        "verificationMethod": [method],
        "authentication": [id],
        "assertionMethod": [id],
    });
    if let (Some(url), Some(members)) = (description, document.as_object_mut()) {
        let service = json!({"id": format!("{did}#ad"), "type": "AgentDescription", "serviceEndpoint": url});
        members.insert("service".to_owned(), json!([service]));
    }
    if let SecretKey::Ed25519(key) = key {
        prove(&mut document, key, &id, created, form);
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DidDocument, Secp256k1Key, SigningKey};
    use json::Document;

    const CREATED: &str = "2026-01-01T00:00:00Z";

    fn ed25519() -> SecretKey {
        SigningKey::from_seed(std::array::from_fn(|position| position as u8)).into()
    }

    fn secp256k1(number: u8) -> SecretKey {
        Secp256k1Key::from_scalar([number; 32]).unwrap().into()
    }

    fn code(document: &Value, did: &Did) -> Result<(), (String, String)> {
        let read = DidDocument::read(Document::of(document).unwrap().root(), did);
        read.map(|_| ()).map_err(|error| (error.problem.to_string(), error.at.as_str().to_owned()))
    }

    #[test]
    fn names_are_those_of_the_vector() {
        assert_eq!(name("example.com", &[]).unwrap().as_str(), "did:wba:example.com");
        let did = bound_name("example.com:8800", &["user", "alice"], &ed25519()).unwrap();
        let expected = "did:wba:example.com%3A8800:user:alice:e1_1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y";
        assert_eq!(did.as_str(), expected);
        assert!(bound_name("example.com", &["user"], &secp256k1(1)).unwrap().as_str().contains(":k1_"));
        for (host, segments) in
            [("", &["a"][..]), ("exa mple", &["a"]), ("a.b:0", &["a"]), ("a.b", &["a/b"]), ("a.b", &[])]
        {
            assert!(bound_name(host, segments, &ed25519()).is_err(), "{host} {segments:?}");
        }
    }

    #[test]
    fn what_we_publish_is_what_we_read() {
        for form in [ProofForm::Sdk, ProofForm::W3c] {
            let did = bound_name("example.com", &["a"], &ed25519()).unwrap();
            let document = document(&did, &ed25519(), Some("https://example.com/ad.json"), CREATED, form).unwrap();
            assert_eq!(code(&document, &did), Ok(()));
            assert_eq!(
                document["@context"],
                json!([
                    "https://www.w3.org/ns/did/v1",
                    "https://w3id.org/security/data-integrity/v2",
                    "https://w3id.org/security/multikey/v1"
                ]),
                "each word of the document is explained"
            );
        }
        let did = bound_name("example.com", &["a"], &secp256k1(1)).unwrap();
        let document = document(&did, &secp256k1(1), None, CREATED, ProofForm::Sdk).unwrap();
        assert_eq!(code(&document, &did), Ok(()));
        assert_eq!(document.get("proof"), None);
    }

    #[test]
    fn a_bound_name_needs_the_key_it_is_named_after() {
        let other = SecretKey::from(SigningKey::from_seed([9; 32]));
        let did = bound_name("example.com", &["a"], &ed25519()).unwrap();
        let mut stolen = document(&did, &other, None, CREATED, ProofForm::Sdk).unwrap();
        assert_eq!(code(&stolen, &did).unwrap_err().1, "/proof");
        assert!(code(&stolen, &did).unwrap_err().0.contains("fingerprint of another key"));
        stolen.as_object_mut().unwrap().remove("proof");
        assert!(code(&stolen, &did).unwrap_err().0.contains("no proof"));
        let mut altered = document(&did, &ed25519(), None, CREATED, ProofForm::Sdk).unwrap();
        altered["service"] = json!([]);
        assert!(code(&altered, &did).unwrap_err().0.contains("does not hold"));

        let did = bound_name("example.com", &["a"], &secp256k1(1)).unwrap();
        let stolen = document(&did, &secp256k1(2), None, CREATED, ProofForm::Sdk).unwrap();
        assert_eq!(code(&stolen, &did).unwrap_err().1, "/authentication");
        let mut unlisted = document(&did, &secp256k1(1), None, CREATED, ProofForm::Sdk).unwrap();
        unlisted["authentication"] = json!([]);
        assert_eq!(code(&unlisted, &did).unwrap_err().1, "/authentication");
        // Without a binding there is nothing to prove.
        let plain = name("example.com", &["a"]).unwrap();
        let mut bare = document(&plain, &ed25519(), None, CREATED, ProofForm::Sdk).unwrap();
        bare.as_object_mut().unwrap().remove("proof");
        assert_eq!(code(&bare, &plain), Ok(()));
    }
}
