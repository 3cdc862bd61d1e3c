//! What a DID document must say, and which keys it lets sign.

use super::*;
use json::Document;

const DID: &str = "did:web:example.com";
const ED25519: &str = "z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const P256: &str = "zDnaeVuZeVRqvscGkiEoR9PFFra2xZUMp97ZPuGFK1VLU7iYN";

fn method(id: &str, key: &str) -> Value {
    json!({"id": id, "type": "Multikey", "controller": DID, "publicKeyMultibase": key})
}

fn sample() -> Value {
    json!({
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": DID,
        "verificationMethod": [method("did:web:example.com#a", ED25519), method("#b", P256), method("#agree", ED25519)],
        "assertionMethod": ["#a", "did:web:elsewhere.example#a"],
        "authentication": ["did:web:example.com#b", method("#c", ED25519)],
        "keyAgreement": ["#agree"],
        "service": [{"id": "#ad", "type": "AgentDescription", "serviceEndpoint": "https://example.com/ad.json"}],
    })
}

fn read(value: &Value) -> Result<DidDocument, SignatureError> {
    DidDocument::read(Document::of(value).unwrap().root(), &Did::parse(DID).unwrap())
}

#[test]
fn the_services_that_describe_the_agent_lead_to_its_descriptions() {
    let mut value = sample();
    value["service"] = json!([
        {"id": "#ad", "type": "AgentDescription", "serviceEndpoint": "https://example.com/ad.json"},
        {"id": "#site", "type": "LinkedDomains", "serviceEndpoint": "https://example.com/"},
        {"id": "#more", "type": ["Other", "AgentDescription"], "serviceEndpoint": ["https://a.example/", "https://b.example/"]},
    ]);
    let document = read(&value).unwrap();
    let expected = ["https://example.com/ad.json", "https://a.example/", "https://b.example/"];
    assert_eq!(document.descriptions().collect::<Vec<_>>(), expected);
}

/// Changes the sample at a place and expects a refusal there.
#[track_caller]
fn refused(place: &str, value: Value, at: &str) {
    let mut flawed = sample();
    match flawed.pointer_mut(place) {
        Some(slot) => *slot = value,
        None => {
            let (parent, name) = place.rsplit_once('/').unwrap();
            flawed.pointer_mut(parent).unwrap()[name] = value;
        }
    }
    let error = read(&flawed).expect_err("should be refused");
    assert_eq!((error.code(), error.at.as_str()), ("did_document_invalid", at), "{error}");
}

fn code(document: &DidDocument, kid: Option<&str>) -> String {
    match document.signing_key(kid) {
        Ok(key) => key.to_multibase(),
        Err(problem) => problem.code().to_owned(),
    }
}

#[test]
fn only_listed_methods_sign() {
    let document = read(&sample()).unwrap();
    assert_eq!(document.did().as_str(), DID);
    assert_eq!(document.signing_keys().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
    for (kid, expected) in [
        ("did:web:example.com#a", ED25519),
        ("#a", ED25519),
        ("a", ED25519),
        ("#b", P256),
        ("c", ED25519),
        ("#agree", "kid_not_authorized"),
        ("did:web:example.com#agree", "kid_not_authorized"),
        ("did:web:elsewhere.example#a", "kid_not_authorized"),
        ("did:web:example.com:x#a", "kid_not_authorized"),
        ("did:web:example.com", "kid_not_authorized"),
        ("did:web:example.com#", "kid_not_authorized"),
        ("did:web:example.com/p#a", "kid_not_authorized"),
        ("DID:web:example.com#a", "kid_not_authorized"),
        ("did:web:example.com#a#a", "kid_not_authorized"),
        ("##a", "kid_not_authorized"),
        ("", "kid_not_authorized"),
        ("#", "kid_not_authorized"),
        (" a", "kid_not_authorized"),
        ("a\0", "kid_not_authorized"),
        (&"a".repeat(10_000), "kid_not_authorized"),
        ("#withdrawn", "key_not_found"),
        ("#A", "key_not_found"),
        ("%61", "key_not_found"),
        ("#ad", "key_not_found"),
    ] {
        assert_eq!(code(&document, Some(kid)), expected, "{kid:?}");
    }
    assert_eq!(code(&document, None), "kid_not_authorized", "three keys could be meant");
}

#[test]
fn without_kid_the_only_key_signs() {
    let mut value = sample();
    value["authentication"] = json!([]);
    assert_eq!(code(&read(&value).unwrap(), None), ED25519);
    value["assertionMethod"] = json!([]);
    let document = read(&value).unwrap();
    assert_eq!(code(&document, None), "key_not_found");
    assert_eq!(code(&document, Some("#a")), "kid_not_authorized");
}

#[test]
fn the_document_is_about_the_did_and_nobody_else() {
    refused("/id", json!("did:web:Example.com"), "/id");
    refused("/id", json!("did:web:example.com#"), "/id");
    refused("/id", json!(null), "/id");
    refused("/verificationMethod/0/id", json!("did:web:elsewhere.example#a"), "/verificationMethod/0/id");
    refused("/verificationMethod/0/id", json!("a"), "/verificationMethod/0/id");
    refused("/verificationMethod/0/id", json!("#"), "/verificationMethod/0/id");
    refused("/verificationMethod/0/id", json!(1), "/verificationMethod/0/id");
    refused("/verificationMethod/0/controller", json!("did:web:elsewhere.example"), "/verificationMethod/0/controller");
    refused("/verificationMethod/2/controller", json!([DID]), "/verificationMethod/2/controller");
    refused("/verificationMethod/0/type", json!(null), "/verificationMethod/0/type");
    refused("/verificationMethod/0", json!("#a"), "/verificationMethod/0/id");
    let other = DidDocument::read(Document::of(&json!([])).unwrap().root(), &Did::parse(DID).unwrap());
    assert_eq!(other.unwrap_err().at.as_str(), "/id");
    // Another name for the same subject is no other subject.
    let mut aliased = sample();
    aliased["alsoKnownAs"] = json!(["did:web:elsewhere.example"]);
    assert_eq!(code(&read(&aliased).unwrap(), Some("did:web:elsewhere.example#a")), "kid_not_authorized");
}

#[test]
fn no_name_is_given_twice() {
    refused("/verificationMethod/1/id", json!("#a"), "/verificationMethod/1/id");
    refused("/authentication/1/id", json!("did:web:example.com#a"), "/authentication/1/id");
    refused("/keyAgreement/0", method("#c", P256), "/keyAgreement/0/id");
}

#[test]
fn lists_are_arrays_of_references_and_methods() {
    refused("/verificationMethod", json!({}), "/verificationMethod");
    refused("/assertionMethod", json!("#a"), "/assertionMethod");
    refused("/authentication", json!(null), "/authentication");
    refused("/keyAgreement", json!(7), "/keyAgreement");
    refused("/assertionMethod/0", json!(1), "/assertionMethod/0/id");
    let many: Vec<Value> = (0..65).map(|position| method(&format!("#m{position}"), ED25519)).collect();
    refused("/verificationMethod", json!(many), "/verificationMethod/64");
}

#[test]
fn a_list_may_refer_to_a_method_another_list_carries() {
    let mut value = sample();
    value["assertionMethod"] = json!(["#d"]);
    value["capabilityInvocation"] = json!([method("#d", P256)]);
    assert_eq!(code(&read(&value).unwrap(), Some("#d")), P256);
}

#[test]
fn a_broken_signing_key_breaks_the_document() {
    let key = "/verificationMethod/0/publicKeyMultibase";
    refused(key, json!("z6MkeTG3bFFSLYVU7VqhgZxqr6YzpaGrQtFMh1uvqGy1vDnP"), key);
    refused(key, json!(7), key);
    refused(key, json!("m7QEDoQ"), key);
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"});
    refused("/verificationMethod/0/publicKeyJwk", jwk, "/verificationMethod/0");
    let mut private = sample();
    private["verificationMethod"][0] = json!({
        "id": "#a", "type": "JsonWebKey2020", "controller": DID,
        "publicKeyJwk": {"kty": "OKP", "crv": "Ed25519", "x": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg", "d": "AAAA"},
    });
    assert_eq!(read(&private).unwrap_err().at.as_str(), "/verificationMethod/0/publicKeyJwk");
}

#[test]
fn kinds_of_keys_we_do_not_know_are_passed_over() {
    let mut value = sample();
    // An agreement key in an odd form, a curve we do not use, and an old base58 member.
    value["verificationMethod"][2]["publicKeyMultibase"] = json!("z!");
    value["verificationMethod"][1]["publicKeyMultibase"] = json!("zQ3shVc2UkAfJCdc1TR8E66J85h48P43r93q8jGPkPpjF9Ef9");
    value["authentication"][1] =
        json!({"id": "#c", "type": "Ed25519VerificationKey2018", "controller": DID, "publicKeyBase58": "x"});
    let document = read(&value).unwrap();
    assert_eq!(code(&document, Some("#b")), "key_not_found");
    assert_eq!(code(&document, Some("#c")), "key_not_found");
    assert_eq!(code(&document, None), ED25519, "one usable key is left");
}

#[test]
fn a_jwk_method_signs_as_well() {
    let mut value = sample();
    value["verificationMethod"][0] = json!({
        "id": "#oap-signing", "type": "JsonWebKey2020", "controller": DID,
        "publicKeyJwk": {"kty": "OKP", "crv": "Ed25519", "x": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"},
    });
    value["assertionMethod"] = json!(["did:web:example.com#oap-signing"]);
    assert_eq!(code(&read(&value).unwrap(), Some("oap-signing")), ED25519);
}

#[test]
fn the_document_of_a_did_key_needs_no_network() {
    for (key, kind) in [(ED25519, "Ed25519VerificationKey2020"), (P256, "JsonWebKey2020")] {
        let did = Did::parse(&format!("did:key:{key}")).unwrap();
        let document = DidDocument::of_key(&did).unwrap();
        assert_eq!(code(&document, None), key);
        for kid in [format!("{did}#{key}"), format!("#{key}"), key.to_owned()] {
            assert_eq!(code(&document, Some(&kid)), key);
        }
        for kid in ["#key-1", "key-1", did.as_str(), "#z6MkeeyGXjRh23ycLaCdD5mBXsngbbyAXjZ5ScqbLru15dmR"] {
            assert_eq!(code(&document, Some(kid)), "kid_not_authorized");
        }
        // What we publish is what we read.
        let written = document.to_value();
        assert_eq!(written["verificationMethod"][0]["type"], kind);
        assert_eq!(written["assertionMethod"], json!([format!("{did}#{key}")]));
        assert_eq!(DidDocument::read(Document::of(&written).unwrap().root(), &did).unwrap(), document);
    }
    let error = DidDocument::of_key(&Did::parse(DID).unwrap()).unwrap_err();
    assert_eq!(error.code(), "did_method_unsupported");
}

#[test]
fn a_revoked_method_signs_no_more_and_is_remembered() {
    let mut value = sample();
    let revoked = |id: &str, key: &str| {
        let mut method = method(id, key);
        method["revoked"] = json!("2026-05-01T12:00:00Z");
        method
    };
    // Unlisted, listed all the same, and one that was never for signing.
    value["verificationMethod"].as_array_mut().unwrap().push(revoked("#old", P256));
    value["verificationMethod"].as_array_mut().unwrap().push(revoked("#broken", "z6MkBroken"));
    value["verificationMethod"][1] = revoked("#b", P256);
    value["verificationMethod"][2] = revoked("#agree", ED25519);
    let document = read(&value).unwrap();
    assert_eq!(document.signing_keys().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "c"]);
    for (kid, expected, remembered) in [
        ("#old", "key_retired", true),
        ("#b", "key_retired", true),
        ("#agree", "kid_not_authorized", false),
        ("#broken", "kid_not_authorized", false),
        ("#a", ED25519, false),
        ("#nobody", "key_not_found", false),
    ] {
        assert_eq!(code(&document, Some(kid)), expected, "{kid}");
        let retired = document.retired_key(kid).map(|(key, since)| (key.to_multibase(), since.to_owned()));
        let known = remembered.then(|| (P256.to_owned(), "2026-05-01T12:00:00Z".to_owned()));
        assert_eq!(retired, known, "{kid}");
    }
}

#[test]
fn what_a_revoked_method_that_cannot_be_read_does_depends_on_who_lists_it() {
    const BROKEN: &str = "z6MkeTG3bFFSLYVU7VqhgZxqr6YzpaGrQtFMh1uvqGy1vDnP";
    const UNKNOWN_KIND: &str = "z6MkBroken";
    let revoked = |key: &str| {
        let mut method = method("#odd", key);
        method["revoked"] = json!("2026-05-01T12:00:00Z");
        method
    };
    for (key, is_listed, expected) in [
        (BROKEN, false, Ok("kid_not_authorized")),
        (BROKEN, true, Err("/verificationMethod/3/publicKeyMultibase")),
        (UNKNOWN_KIND, false, Ok("kid_not_authorized")),
        (UNKNOWN_KIND, true, Ok("key_not_found")),
        (P256, false, Ok("key_retired")),
        (P256, true, Ok("key_retired")),
    ] {
        let mut value = sample();
        value["verificationMethod"].as_array_mut().unwrap().push(revoked(key));
        if is_listed {
            value["assertionMethod"].as_array_mut().unwrap().push(json!("#odd"));
        }
        let found = read(&value).map(|document| code(&document, Some("#odd"))).map_err(|error| error.at.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{key}, {is_listed}");
    }
}

#[test]
fn each_context_is_named_once_in_the_order_of_the_keys() {
    let document = read(&sample()).unwrap();
    assert_eq!(document.signing_keys().count(), 3, "two kinds of keys, one of them twice");
    let expected = json!([
        "https://www.w3.org/ns/did/v1",
        "https://w3id.org/security/suites/ed25519-2020/v1",
        "https://w3id.org/security/suites/jws-2020/v1",
    ]);
    assert_eq!(document.to_value()["@context"], expected);
}
