//! RFC 0020 §3.1 `signature`, A.3 R1: signed documents and what becomes of them on the way.
//!
//! Arbitrary bytes never verify unless the body is one that a key of this file signed. A document signed here verifies,
//! also when it is written otherwise; after any change of its bytes it verifies only if body and signature are still
//! the same, and only with a `kid` that names the key.

#![no_main]

use conformance::chance::Chance;
use conformance::generate;
use json::{Document, Limits, canonical_without};
use libfuzzer_sys::fuzz_target;
use p256::ecdsa::signature::Signer as _;
use serde_json::{Value, json};
use trust::{Algorithm, Did, PublicKey, Signed, SigningKey, encoding};

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((0x80.., choices)) => {
        let mut chance = Chance::from_bytes(choices);
        if chance.one_in(6) { elliptic(&mut chance) } else { edwards(&mut chance) }
    }
    _ => as_bytes(data),
});

/// The key of the seeds; its secret is as public as this line.
fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

fn as_bytes(bytes: &[u8]) {
    let Ok(document) = Document::parse(bytes, &Limits::DOCUMENT) else { return };
    for member in ["issuer_did", "resolver_did"] {
        let Ok(signed) = Signed::read(&document) else { return };
        let Ok(verified) = signed.verify_own(member) else { continue };
        assert_eq!(verified.signer(), &key().did_key(), "nobody here knows the key of this signer");
        // Ed25519 signatures are a function of key and bytes, so signing again proves that this one was made so.
        let made = key().sign(&canonical_without(document.root(), "signature"));
        assert_eq!(value(&document), Some(made.to_vec()), "this was never signed");
    }
}

fn edwards(chance: &mut Chance<'_>) {
    let key = key();
    let mut body = generate::record(chance);
    body["issuer_did"] = json!(key.did_key().as_str());
    trust::sign(&mut body, &key).expect("a record can be signed");
    check(chance, &body, key.did_key());
}

fn elliptic(chance: &mut Chance<'_>) {
    let secret = p256::ecdsa::SigningKey::from_slice(&[7; 32]).expect("this is a scalar of the curve");
    let point = secret.verifying_key().to_sec1_point(true);
    let did = Did::of_key(PublicKey::from_bytes(Algorithm::Es256, point.as_bytes()).expect("a key has a point"));
    let mut body = generate::record(chance);
    body["issuer_did"] = json!(did.as_str());
    let bytes = json::canonical_value(&body);
    let signature: p256::ecdsa::Signature = secret.sign(&bytes);
    body["signature"] = json!({"alg": "ES256", "value": encoding::encode(&signature.to_bytes())});
    check(chance, &body, did);
}

fn check(chance: &mut Chance<'_>, signed: &Value, did: Did) {
    let original = fuzzing::document(signed);
    for spelling in [signed.to_string(), format!("{signed:#}"), fuzzing::text(&json::canonical(original.root()))] {
        let document = Document::parse(spelling.as_bytes(), &Limits::OURS).expect("it is the same document");
        assert_eq!(signer(&document), Some(did.clone()), "{spelling}");
    }
    let changed = change(chance, signed);
    let Ok(document) = Document::parse(&changed, &Limits::OURS) else { return };
    if let Some(signer) = signer(&document) {
        let text = fuzzing::text(&changed);
        assert_eq!(signer, did, "{text}");
        let body = |document: &Document| canonical_without(document.root(), "signature");
        assert_eq!(body(&document), body(&original), "another body verifies: {text}");
        let alg = document.root().get("signature").and_then(|signature| signature.get("alg")?.as_str());
        let es256 = did.key().is_some_and(|key| key.algorithm() == Algorithm::Es256);
        assert_eq!(alg, Some(if es256 { "ES256" } else { "EdDSA" }), "{text}");
        // An ECDSA signature has a second form; an Ed25519 signature has one only.
        assert!(es256 || value(&document) == value(&original), "another signature verifies: {text}");
        let kid = document.root().get("signature").and_then(|signature| signature.get("kid"));
        let fragment = did.as_str().trim_start_matches("did:key:");
        let names = [format!("{did}#{fragment}"), format!("#{fragment}"), fragment.to_owned()];
        let named = kid.is_none_or(|kid| kid.as_str().is_some_and(|kid| names.iter().any(|name| name == kid)));
        assert!(named, "a foreign `kid` verifies: {text}");
    }
}

fn signer(document: &Document) -> Option<Did> {
    let signed = Signed::read(document).ok()?;
    signed.verify_own("issuer_did").ok().map(|verified| verified.signer().clone())
}

fn value(document: &Document) -> Option<Vec<u8>> {
    encoding::decode(document.root().get("signature")?.get("value")?.as_str()?)
}

/// The bytes of the document, a few of them changed; or one member of it, or of its signature.
fn change(chance: &mut Chance<'_>, signed: &Value) -> Vec<u8> {
    let mut changed = signed.clone();
    match chance.below(5) {
        0 => {
            let at = fuzzing::place(chance, signed);
            if let Some(place) = changed.pointer_mut(at.as_str()) {
                *place = generate::scalar(chance);
            }
        }
        1 => {
            let name = chance.word(&["alg", "kid", "value", "x"]);
            changed["signature"][name] = match chance.below(4) {
                0 => {
                    json!(chance.word(&["EdDSA", "ES256", "ES384", "none", "HS256", "", "#key-1", "did:key:z6Mk#z6Mk"]))
                }
                1 => json!(format!("{}=", signed["signature"]["value"].as_str().unwrap_or_default())),
                2 => json!(signed["signature"]["kid"].as_str().map(|kid| kid.split('#').next_back())),
                _ => generate::value(chance, 1),
            };
        }
        _ => {
            let mut bytes = signed.to_string().into_bytes();
            for _ in 0..1 + chance.below(3) {
                let (high, low, byte) = (chance.below(256), chance.below(256), chance.below(256));
                let position = (high * 256 + low) % bytes.len();
                match chance.below(3) {
                    0 => bytes[position] = byte as u8,
                    1 => bytes[position] ^= 1 << (byte % 8),
                    _ => {
                        bytes.remove(position);
                    }
                }
            }
            return bytes;
        }
    }
    changed.to_string().into_bytes()
}
