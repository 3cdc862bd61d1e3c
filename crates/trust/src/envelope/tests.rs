//! The envelope, piece by piece.

use super::*;

fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

fn signed() -> Value {
    let mut body = json!({"issuer_did": key().did_key().as_str(), "n": 1, "nested": {"signature": "mine"}});
    sign(&mut body, &key()).unwrap();
    body
}

fn verdict(value: &Value) -> (String, String) {
    let document = Document::of(value).unwrap();
    match verify_did_key(&document, "issuer_did") {
        Ok(verified) => ("ok".to_owned(), verified.signer().to_string()),
        Err(error) => (error.code().to_owned(), error.at.to_string()),
    }
}

#[track_caller]
fn refused(place: &str, value: Value, code: &str, at: &str) {
    let mut flawed = signed();
    match flawed.pointer_mut(place) {
        Some(slot) => *slot = value,
        None => {
            let (parent, name) = place.rsplit_once('/').unwrap();
            flawed.pointer_mut(parent).unwrap()[name] = value;
        }
    }
    assert_eq!(verdict(&flawed), (code.to_owned(), at.to_owned()));
}

#[test]
fn what_we_sign_verifies() {
    let value = signed();
    assert_eq!(verdict(&value), ("ok".to_owned(), key().did_key().to_string()));
    assert_eq!(value["signature"]["alg"], "EdDSA");
    assert_eq!(value["signature"]["kid"], key().key_id().to_string());
    assert_eq!(value["signature"]["value"].as_str().unwrap().len(), 86);
}

#[test]
fn signing_again_replaces_the_signature() {
    let (first, mut second) = (signed(), signed());
    sign(&mut second, &key()).unwrap();
    assert_eq!(first, second);
}

#[test]
fn only_what_readers_accept_is_signed() {
    assert_eq!(sign(&mut json!([1]), &key()), Err(SignError::NotAnObject));
    let mut body = json!({"n": 9_007_199_254_740_993_u64});
    let error = sign(&mut body, &key()).unwrap_err();
    assert!(matches!(&error, SignError::Unreadable(error) if error.at.as_str() == "/n"), "{error}");
    assert_eq!(body.get("signature"), None);
}

#[test]
fn a_stripped_signature_is_missing() {
    for (place, value, at) in [
        ("/signature", json!(null), "/signature"),
        ("/signature", json!("x"), "/signature"),
        ("/signature", json!([]), "/signature"),
        ("/signature", json!({}), "/signature/value"),
        ("/signature/value", json!(""), "/signature/value"),
        ("/signature/value", json!(null), "/signature/value"),
        ("/signature/value", json!(7), "/signature/value"),
    ] {
        refused(place, value, "signature_missing", at);
    }
    let mut flawed = signed();
    flawed.as_object_mut().unwrap().remove("signature");
    assert_eq!(verdict(&flawed).0, "signature_missing");
    assert_eq!(verdict(&json!([])).0, "signature_missing");
    assert_eq!(verdict(&json!("signature")).0, "signature_missing");
}

#[test]
fn the_algorithm_is_allowed_and_fits_the_key() {
    for name in [json!("none"), json!("HS256"), json!("eddsa"), json!(""), json!(null), json!(["EdDSA"])] {
        refused("/signature/alg", name, "alg_not_allowed", "/signature/alg");
    }
    refused("/signature/alg", json!("ES256"), "alg_key_mismatch", "/signature/alg");
    refused("/signature/alg", json!("ES384"), "alg_key_mismatch", "/signature/alg");
    let mut unnamed = signed();
    unnamed["signature"].as_object_mut().unwrap().remove("alg");
    assert_eq!(verdict(&unnamed), ("alg_not_allowed".to_owned(), "/signature/alg".to_owned()));
}

#[test]
fn kid_names_a_key_of_the_signer_or_is_absent() {
    let name = key().key_id().fragment().to_owned();
    for kid in [format!("#{name}"), name] {
        let mut value = signed();
        value["signature"]["kid"] = json!(kid);
        assert_eq!(verdict(&value).0, "ok");
    }
    let mut value = signed();
    value["signature"].as_object_mut().unwrap().remove("kid");
    assert_eq!(verdict(&value).0, "ok");
    let stranger = SigningKey::from_seed([8; 32]).key_id().to_string();
    for kid in [json!(stranger), json!("#key-1"), json!(""), json!(null), json!(1), json!("x".repeat(10_240))] {
        refused("/signature/kid", kid, "kid_not_authorized", "/signature/kid");
    }
}

#[test]
fn the_value_is_canonical_base64_of_the_whole_signature() {
    let value = signed()["signature"]["value"].as_str().unwrap().to_owned();
    let standard = value.replace('-', "+").replace('_', "/");
    for text in [format!("{value}=="), standard.clone(), format!("{standard}==")] {
        let mut other = signed();
        other["signature"]["value"] = json!(text);
        assert_eq!(verdict(&other).0, "ok", "{text}");
    }
    for text in
        [format!("{value}="), format!(" {value}"), format!("{value}\n"), format!("{value}==="), value[..85].to_owned()]
    {
        refused("/signature/value", json!(text), "signature_encoding", "/signature/value");
    }
    for text in [&value[..84], &format!("{value}AA")[..88], "AAAA"] {
        refused("/signature/value", json!(text), "signature_encoding", "/signature/value");
    }
    for text in [&"A".repeat(86), &encoding::encode(&[0xff; 64])] {
        refused("/signature/value", json!(text), "signature_invalid", "/signature/value");
    }
}

#[test]
fn every_change_of_the_body_breaks_the_signature() {
    refused("/n", json!(2), "signature_invalid", "/signature/value");
    refused("/more", json!(null), "signature_invalid", "/signature/value");
    refused("/nested/signature", json!(null), "signature_invalid", "/signature/value");
}

#[test]
fn the_issuer_is_a_did_key() {
    let stranger = SigningKey::from_seed([8; 32]).did_key();
    refused("/issuer_did", json!("did:web:example.com"), "did_method_unsupported", "/issuer_did");
    refused("/issuer_did", json!("did:plc:abc"), "did_method_unsupported", "/issuer_did");
    refused("/issuer_did", json!("did:key:z6Mk"), "invalid_did", "/issuer_did");
    refused("/issuer_did", json!(null), "invalid_did", "/issuer_did");
    refused("/issuer_did", json!(stranger.as_str()), "kid_not_authorized", "/signature/kid");
    let mut headless = signed();
    headless.as_object_mut().unwrap().remove("issuer_did");
    assert_eq!(verdict(&headless), ("invalid_did".to_owned(), "/issuer_did".to_owned()));
}

#[test]
fn a_missing_key_and_an_unclear_one_have_their_places() {
    let mut value = signed();
    value["signature"].as_object_mut().unwrap().remove("kid");
    let document = Document::of(&value).unwrap();
    let did = key().did_key();
    let verify = |keys: &Value| {
        let keys = DidDocument::read(Document::of(keys).unwrap().root(), &did).unwrap();
        let error = Signed::read(&document).unwrap().verify_with(&keys).unwrap_err();
        (error.code(), error.at.to_string())
    };
    let mut keys = DidDocument::of_key(&did).unwrap().to_value();
    let mut twin = keys["verificationMethod"][0].clone();
    twin["id"] = json!("#twin");
    keys["authentication"] = json!([twin]);
    assert_eq!(verify(&keys), ("kid_not_authorized", "/signature/kid".to_owned()));
    assert_eq!(verify(&json!({"id": did.as_str()})), ("key_not_found", "/signature".to_owned()));
}

#[test]
fn verified_values_keep_their_signer() {
    let value = signed();
    let document = Document::of(&value).unwrap();
    let signed = Signed::read(&document).unwrap();
    assert_eq!((signed.alg(), signed.kid()), (Algorithm::EdDsa, Some(key().key_id().to_string().as_str())));
    assert_eq!(signed.issuer("issuer_did").unwrap(), key().did_key());
    let verified = signed.verify_own("issuer_did").unwrap();
    let number = verified.map(|document| document.root().get("n").and_then(Node::as_f64));
    assert_eq!((number.value(), number.signer()), (&Some(1.0), &key().did_key()));
    let number = number.try_map(|number| number.ok_or("no number")).unwrap();
    assert_eq!(number.clone().into_value(), 1.0);
    assert_eq!(number.try_map(|_| Err::<(), _>("no")), Err("no"));
}

#[test]
fn refusals_echo_nothing() {
    let mut value = signed();
    value["signature"]["kid"] = json!("ECHO".repeat(100));
    value["issuer_did"] = json!(key().did_key().as_str());
    let document = Document::of(&value).unwrap();
    let text = verify_did_key(&document, "issuer_did").unwrap_err().to_string();
    assert!(!text.contains("ECHO") && text.ends_with("at `/signature/kid`"), "{text}");
}

#[test]
fn a_retired_key_proves_what_is_older_and_nothing_else() {
    const SINCE: &str = "2026-05-01T12:00:00Z";
    let did = Did::parse("did:web:example.com").unwrap();
    let method = |name: &str, seed: u8| {
        json!({"id": format!("{did}#{name}"), "type": "Multikey", "controller": did.as_str(),
            "publicKeyMultibase": SigningKey::from_seed([seed; 32]).public().to_multibase()})
    };
    let mut old = method("one", 7);
    old["revoked"] = json!(SINCE);
    let keys = json!({"id": did.as_str(), "verificationMethod": [old, method("two", 8)], "assertionMethod": ["#two"]});
    let keys = DidDocument::read(Document::of(&keys).unwrap().root(), &did).unwrap();
    let signed = |name: &str, seed: u8| {
        let mut body = json!({"n": 1});
        sign(&mut body, &SigningKey::from_seed([seed; 32])).unwrap();
        body["signature"]["kid"] = json!(format!("{did}#{name}"));
        Document::of(&body).unwrap()
    };
    let kept = |document: &Document, before: bool| {
        let verified = Signed::read(document).unwrap().verify_kept(&keys, |since| since == SINCE && before);
        verified.map_or_else(|error| error.code(), |_| "ok")
    };
    assert_eq!(kept(&signed("one", 7), true), "ok");
    assert_eq!(kept(&signed("one", 7), false), "key_retired");
    assert_eq!(kept(&signed("one", 8), true), "signature_invalid");
    assert_eq!(kept(&signed("two", 8), false), "ok");
    let now = Signed::read(&signed("one", 7)).unwrap().verify_with(&keys).map(|_| ());
    assert_eq!(now.unwrap_err().code(), "key_retired");
}
