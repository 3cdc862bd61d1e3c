//! Signatures over requests: what holds, and everything that must not.

use super::*;
use crate::http::Credentials;
use crate::{Did, Secp256k1Key, SigningKey, bound_name, wba_document, wba_name};
use json::{Document, json};
use proptest::prelude::*;

const NOW: i64 = 1_733_402_096;
const TARGET: &str = "https://api.example.com/orders?x=1";
const BODY: &[u8] = br#"{"jsonrpc":"2.0"}"#;

fn ed25519(number: u8) -> SecretKey {
    SigningKey::from_seed([number; 32]).into()
}

/// A signer: its document and its key.
struct Party {
    document: DidDocument,
    key: SecretKey,
    keyid: String,
}

fn party(did: Did, key: SecretKey) -> Party {
    let value = wba_document(&did, &key, None, "2026-01-01T00:00:00Z", Default::default()).unwrap();
    let document = DidDocument::read(Document::of(&value).unwrap().root(), &did).unwrap();
    Party { document, key, keyid: format!("{did}#key-1") }
}

fn bare() -> Party {
    party(wba_name("example.com", &[]).unwrap(), ed25519(1))
}

fn signed(party: &Party, body: &[u8], components: &[&str]) -> Vec<(&'static str, String)> {
    let request = Request { method: "POST", target: TARGET, headers: Headers::new(&[]), body };
    let signing = Signing { key: &party.key, keyid: &party.keyid, created: NOW, expires: NOW + 60, nonce: "abc123" };
    sign(&request, &signing, components)
}

struct Sent<'a> {
    method: &'a str,
    target: &'a str,
    body: &'a [u8],
    now: i64,
}

const SENT: Sent<'static> = Sent { method: "POST", target: TARGET, body: BODY, now: NOW };

fn check(fields: &[(&'static str, String)], signer: &DidDocument, sent: &Sent<'_>) -> Result<Proved, &'static str> {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let headers = Headers::new(&fields);
    let code = |error: AuthError| error.code();
    let Credentials::Signature(signature) = Credentials::read(&headers).map_err(code)? else { return Err("other") };
    signature.check(!sent.body.is_empty(), sent.now).map_err(code)?;
    let request = Request { method: sent.method, target: "", headers, body: sent.body };
    signature.verify(signer, &request, &["https://wrong.example/".to_owned(), sent.target.to_owned()]).map_err(code)
}

/// Changes one field and expects a refusal.
#[track_caller]
fn refused(field: &str, from: &str, to: &str, code: &str) {
    let party = bare();
    let mut fields = signed(&party, BODY, &COMPONENTS);
    let (_, value) = fields.iter_mut().find(|(name, _)| *name == field).unwrap();
    assert!(value.contains(from), "{value}");
    *value = value.replace(from, to);
    assert_eq!(check(&fields, &party.document, &SENT).err(), Some(code), "{field}: {from} -> {to}");
}

#[test]
fn requests_of_every_kind_of_name_are_proved() {
    let secp = || SecretKey::from(Secp256k1Key::from_scalar([3; 32]).unwrap());
    for party in [
        bare(),
        party(wba_name("example.com:8443", &["a", "b"]).unwrap(), ed25519(2)),
        party(bound_name("example.com", &["user"], &ed25519(2)).unwrap(), ed25519(2)),
        party(bound_name("example.com", &["user"], &secp()).unwrap(), secp()),
        party(wba_name("example.com", &[]).unwrap(), secp()),
    ] {
        let proved = check(&signed(&party, BODY, &COMPONENTS), &party.document, &SENT).unwrap();
        assert_eq!((proved.key.to_string(), proved.once.as_str()), (party.keyid.clone(), "nonce:abc123"));
        assert_eq!(proved.until, NOW + 360);
        let fields = signed(&party, b"", &COMPONENTS);
        assert_eq!(fields.len(), 2, "no digest without a body");
        assert!(check(&fields, &party.document, &Sent { body: b"", ..SENT }).is_ok());
    }
}

#[test]
fn the_parameters_stand_in_the_order_that_the_library_writes_them_in() {
    let fields = signed(&bare(), BODY, &COMPONENTS);
    let expected = r#"sig1=("@method" "@target-uri" "@authority" "content-digest");created=1733402096;expires=1733402156;nonce="abc123";keyid="did:wba:example.com#key-1""#;
    assert_eq!(fields[0], ("signature-input", expected.to_owned()));
    // A challenge asks for other components: what the request lacks is left out, and the digest is always there.
    let fields = signed(&bare(), BODY, &["@method", "content-type", "@target-uri", "@status"]);
    assert!(fields[0].1.starts_with(r#"sig1=("@method" "@target-uri" "content-digest");created"#), "{}", fields[0].1);
}

#[test]
fn another_method_address_or_body_breaks_it() {
    let party = bare();
    let fields = signed(&party, BODY, &COMPONENTS);
    let code = |sent: &Sent<'_>| check(&fields, &party.document, sent).err();
    assert_eq!(code(&SENT), None);
    assert_eq!(code(&Sent { method: "PUT", ..SENT }), Some("invalid_signature"));
    assert_eq!(code(&Sent { target: "https://api.example.com/orders?x=2", ..SENT }), Some("invalid_signature"));
    assert_eq!(code(&Sent { target: "https://api.example.com:8443/orders?x=1", ..SENT }), Some("invalid_signature"));
    assert_eq!(code(&Sent { target: "http://api.example.com/orders?x=1", ..SENT }), Some("invalid_signature"));
    assert_eq!(code(&Sent { body: b"{}", ..SENT }), Some("invalid_content_digest"));
    assert_eq!(code(&Sent { body: b"", ..SENT }), Some("invalid_content_digest"));
}

#[test]
fn what_is_not_covered_is_refused_before_anybody_is_asked() {
    let party = bare();
    let code = |body: &[u8], components: &[&str]| {
        // A body's digest is covered by our signer whatever is asked, so the list is cut afterwards.
        let mut fields = signed(&party, body, components);
        if !components.contains(&"content-digest") {
            fields[0].1 = fields[0].1.replace(r#" "content-digest""#, "");
        }
        check(&fields, &party.document, &Sent { body, ..SENT }).err()
    };
    assert_eq!(code(BODY, &["@method"]), Some("invalid_request"));
    assert_eq!(code(BODY, &["@method", "content-digest"]), Some("invalid_request"));
    assert_eq!(code(BODY, &["@target-uri", "content-digest"]), Some("invalid_request"));
    assert_eq!(code(BODY, &["@method", "@target-uri"]), Some("invalid_request"));
    assert_eq!(code(b"", &["@method", "@target-uri"]), None);
    assert_eq!(code(BODY, &["@method", "@target-uri", "content-digest"]), None);
}

#[test]
fn time_has_two_ends() {
    let party = bare();
    let fields = signed(&party, BODY, &COMPONENTS);
    let code = |now: i64| check(&fields, &party.document, &Sent { now, ..SENT }).err();
    assert_eq!((code(NOW - 60), code(NOW - 61)), (None, Some("request_timestamp")));
    assert_eq!((code(NOW + 60), code(NOW + 61)), (None, Some("request_timestamp")));
    let signing = Signing { key: &party.key, keyid: &party.keyid, created: NOW, expires: NOW + 9_999_999, nonce: "n" };
    let request = Request { method: "POST", target: TARGET, headers: Headers::new(&[]), body: BODY };
    let fields = sign(&request, &signing, &COMPONENTS);
    let code = |now: i64| check(&fields, &party.document, &Sent { now, ..SENT }).err();
    assert_eq!((code(NOW + 300), code(NOW + 301)), (None, Some("request_timestamp")), "whatever `expires` says");
    refused("signature-input", "expires=1733402156", "expires=1733402095", "request_timestamp");
    refused("signature-input", "expires=1733402156", "expires=\"later\"", "invalid_request");
    let fields = sign(&request, &Signing { expires: NOW, ..signing }, &COMPONENTS);
    let code = |now: i64| check(&fields, &party.document, &Sent { now, ..SENT }).err();
    assert_eq!(
        (code(NOW), code(NOW + 1)),
        (None, Some("request_timestamp")),
        "it ends in the second in which it begins"
    );
}

#[test]
fn a_key_counts_only_where_it_is_listed() {
    let did = wba_name("example.com", &[]).unwrap();
    let method = |name: &str, number: u8| json!({"id": format!("{did}#{name}"), "type": "Multikey", "controller": did.as_str(), "publicKeyMultibase": ed25519(number).public().unwrap().to_multibase()});
    let value = json!({
        "id": did.as_str(),
        "verificationMethod": [method("says", 1), method("asks", 2)],
        "assertionMethod": ["#says"],
        "authentication": ["#asks"],
    });
    let document = DidDocument::read(Document::of(&value).unwrap().root(), &did).unwrap();
    let code = |name: &str, number: u8| {
        let party = Party { document: document.clone(), key: ed25519(number), keyid: format!("{did}#{name}") };
        check(&signed(&party, BODY, &COMPONENTS), &party.document, &SENT).err()
    };
    assert_eq!(code("asks", 2), None);
    assert_eq!(code("asks", 1), Some("invalid_signature"));
    assert_eq!(code("says", 1), Some("invalid_verification_method"));
    assert_eq!(code("nobody", 1), Some("invalid_verification_method"));
}

#[test]
fn a_name_that_ends_in_k1_signs_with_its_own_key() {
    let key = || SecretKey::from(Secp256k1Key::from_scalar([3; 32]).unwrap());
    let did = bound_name("example.com", &["user"], &key()).unwrap();
    let mut value = wba_document(&did, &key(), None, "", Default::default()).unwrap();
    let second = json!({"id": format!("{did}#key-2"), "type": "Multikey", "controller": did.as_str(), "publicKeyMultibase": ed25519(1).public().unwrap().to_multibase()});
    value["authentication"].as_array_mut().unwrap().push(second);
    let document = DidDocument::read(Document::of(&value).unwrap().root(), &did).unwrap();
    let party = |key, name: &str| Party { document: document.clone(), key, keyid: format!("{did}#{name}") };
    let code = |party: &Party| check(&signed(party, BODY, &COMPONENTS), &party.document, &SENT).err();
    assert_eq!(code(&party(key(), "key-1")), None);
    assert_eq!(code(&party(ed25519(1), "key-2")), Some("invalid_verification_method"));
}

#[test]
fn foreign_orders_parameters_and_labels_are_read_as_they_came() {
    let party = bare();
    let by_hand = |parameters: &str, label: &str| {
        let values = [("@method", "POST"), ("@target-uri", TARGET), ("@authority", "api.example.com")];
        let text = format!(r#"("@method" "@target-uri" "@authority"){parameters}"#);
        let signature = encode_padded(&party.key.sign(base(values, &text).as_bytes()));
        vec![("signature-input", format!("{label}={text}")), ("signature", format!("{label}=:{signature}:"))]
    };
    let sent = Sent { body: b"", ..SENT };
    let code = |parameters: &str| check(&by_hand(parameters, "x"), &party.document, &sent).err();
    let keyid = &party.keyid;
    assert_eq!(code(&format!(r#";keyid="{keyid}";alg="ed25519";nonce="n";created={NOW};tag="t""#)), None);
    assert_eq!(code(&format!(r#"; keyid="{keyid}"; created={NOW}; nonce="n""#)), None);
    assert_eq!(
        code(&format!(r#";created={NOW};keyid="{keyid}";alg="ecdsa-p256-sha256""#)),
        Some("invalid_verification_method")
    );
    // Without a nonce, what was signed is what is used up.
    let proved = check(&by_hand(&format!(r#";created={NOW};keyid="{keyid}""#), "x"), &party.document, &sent).unwrap();
    assert!(proved.once.starts_with("base:"), "{}", proved.once);
    // A signature that somebody added on the way is passed over.
    let mut two = by_hand(&format!(r#";created={NOW};keyid="{keyid}";nonce="n""#), "x");
    two[0].1 = format!(r#"proxy=("@method");created=1;keyid="edge", {}"#, two[0].1);
    two[1].1 = format!("proxy=:AAAA:, {}", two[1].1);
    assert!(check(&two, &party.document, &sent).is_ok());
    two[0].1 = two[0].1.replace("\"edge\"", "\"did:web:edge.example#k\"");
    assert_eq!(check(&two, &party.document, &sent).err(), Some("invalid_request"));
}

#[test]
fn what_is_malformed_is_refused_with_the_word_for_it() {
    refused("signature-input", "sig1=", "sig2=", "invalid_request");
    refused("signature-input", "created=1733402096;", "", "invalid_request");
    refused("signature-input", "created=1733402096", "created=\"now\"", "invalid_request");
    refused("signature-input", "created=1733402096", "created=1733402097", "invalid_signature");
    refused("signature-input", "\"@authority\"", "\"@authority\" \"@authority\"", "invalid_request");
    refused("signature-input", "\"@authority\"", "\"@authority\";req", "invalid_request");
    refused("signature-input", "\"@authority\"", "\"@Authority\"", "invalid_request");
    refused("signature-input", "\"@authority\"", "\"@authority\" \"Content-Digest\"", "invalid_request");
    refused("signature-input", "\"@authority\"", "\"@status\"", "invalid_request");
    refused("signature-input", "\"@authority\"", "\"date\"", "invalid_request");
    refused("signature-input", ";keyid=\"did:wba:example.com#key-1\"", "", "invalid_request");
    refused("signature-input", "did:wba:example.com#key-1", "key-1", "invalid_request");
    refused("signature-input", "did:wba:example.com#key-1", "did:wba:example.com", "invalid_verification_method");
    refused("signature-input", "did:wba:example.com#key-1", "did:wba:Example.com#key-1", "invalid_did");
    refused("signature-input", "#key-1", "#key-2", "invalid_verification_method");
    refused("signature-input", "nonce=\"abc123\"", "nonce=\"\"", "invalid_nonce");
    refused("signature-input", "nonce=\"abc123\"", "nonce=\"abc124\"", "invalid_signature");
    refused("signature-input", "(", "", "invalid_request");
    refused("signature", "sig1=:", "sig1=", "invalid_request");
    refused("content-digest", "sha-256=:", "sha-256=:AAAA", "invalid_content_digest");
    refused("content-digest", "sha-256=:", "sha-256=", "invalid_request");
    refused("content-digest", "sha-256", "md5", "invalid_request");
    let party = bare();
    let mut fields = signed(&party, BODY, &COMPONENTS);
    fields.retain(|(name, _)| *name != "content-digest");
    assert_eq!(check(&fields, &party.document, &SENT).err(), Some("invalid_request"));
    fields.retain(|(name, _)| *name != "signature");
    assert_eq!(check(&fields, &party.document, &SENT).err(), Some("invalid_request"));
    assert_eq!(check(&[], &party.document, &SENT).err(), Some("authentication_required"));
}

#[test]
fn no_single_changed_character_survives() {
    let party = bare();
    let fields = signed(&party, BODY, &COMPONENTS);
    for (number, (_, value)) in fields.iter().enumerate() {
        for (position, _) in value.char_indices() {
            let mut changed = fields.clone();
            let mut bytes = value.clone().into_bytes();
            bytes[position] = if bytes[position] == b'a' { b'b' } else { b'a' };
            changed[number].1 = String::from_utf8(bytes).unwrap();
            // The label is not signed; it only has to be the same in both fields.
            assert!(check(&changed, &party.document, &SENT).is_err(), "{}", changed[number].1);
        }
    }
}

proptest! {
    #[test]
    fn rubbish_proves_nobody_and_breaks_nothing(
        input in r#"(sig1=)?[()"@;=, a-z0-9:.#?*_-]{0,80}"#,
        value in r#"(sig1=:)?[A-Za-z0-9+/=:, "]{0,60}"#,
        digest in r#"(sha-256=:)?[A-Za-z0-9+/=:, ]{0,60}"#,
    ) {
        let party = bare();
        let fields = [("signature-input", input), ("signature", value), ("content-digest", digest)];
        prop_assert!(check(&fields, &party.document, &SENT).is_err());
    }
}
