//! Fixed vectors: the Ed25519 ones by another implementation, the elliptic ones by a third.

use json::{Document, Limits, Value, json};
use trust::{Algorithm, Did, Digest, PublicKey, SigningKey, encoding, sign, verify_did_key};

const DID: &str = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const BODY: &str = r#"{"budget":{"allocation":"single_winner","amount":"1.50","currency":"EUR"},"category":"discovery","constraints":{"all_of":[{"operator":"eq","path":"/oap_version","value":"1.0"},{"not":{"operator":"eq","path":"/risk_class","value":"high"}},{"operator":"lte","path":"/sla/latency_p95_ms","value":300}]},"intent_id":"urn:oap:intent:vector-1","issuer_did":"did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd","projection":{"exclude":["/tool/publisher"],"include":["/tool/did","/tool/name"]},"quality_floor":{"performance_score":0.7},"resolution_policy":"ranked_set","validity":{"from":"2026-01-01T00:00:00Z","to":"2036-01-01T00:00:00Z"}}"#;
const SIGNATURE: &str = "Yz0yqThjB32WvkWnx1wGZnqQe2n5kbzooRHceElEzbS6m6xYSl64iy7tmImUMRLUFaslBiX4QrigC0a5qnDhBg";

fn key() -> SigningKey {
    SigningKey::from_seed(std::array::from_fn(|position| position as u8))
}

fn read(text: &str) -> Document {
    Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap()
}

fn verdict(document: &Value) -> String {
    match verify_did_key(&Document::of(document).unwrap(), "issuer_did") {
        Ok(verified) => verified.signer().to_string(),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn the_key_of_the_vector() {
    assert_eq!(key().did_key().as_str(), DID);
    assert_eq!(key().public().to_jwk()["x"], "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg");
    let bytes: Vec<u8> = encoding::decode("A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg").unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8");
    assert_eq!(PublicKey::from_bytes(Algorithm::EdDsa, &bytes).unwrap(), key().public());
}

#[test]
fn the_signed_intent() {
    let canonical = json::canonical(read(BODY).root());
    assert_eq!((canonical.as_slice(), canonical.len()), (BODY.as_bytes(), 638));
    assert_eq!(
        Digest::of(&canonical).to_string(),
        "sha256:04e0235524056e51430a4648fc0f7cb83a45e204ca12450a49a7c6e0e498fd38"
    );
    assert_eq!(encoding::encode(&key().sign(&canonical)), SIGNATURE);

    let mut intent = read(BODY).root().to_value();
    sign(&mut intent, &key()).unwrap();
    assert_eq!(intent["signature"]["value"], SIGNATURE);
    assert_eq!(verdict(&intent), DID);
    // Member order and the spelling of numbers and letters on the wire are no part of what is signed.
    let wire = BODY.replace("300", "3.00e2").replace("discovery", "disc\\u006fvery").replacen('{', "{ \n", 1);
    let wire =
        wire[..wire.len() - 1].to_owned() + &format!(r#","signature":{{"value":"{SIGNATURE}","alg":"EdDSA"}}}}"#);
    assert_eq!(verify_did_key(&read(&wire), "issuer_did").unwrap().signer().as_str(), DID);
}

#[test]
fn numbers_and_key_order() {
    // The vector has numbers our reader refuses, so it is built.
    let value = json!({
        "b": 1, "a": [1e21, 1e-7, 0.1, 100, -0.0, 333_333_333.333_333_3, 9_007_199_254_740_993_u64],
        "\u{20ac}": "\u{20ac}$\u{f}\nA'B\"\\\"/", "\u{1f600}": 1, "\u{e000}": 2, "é": "é", "nested": {"z": null, "y": true},
    });
    assert_eq!(
        Digest::of(&json::canonical_value(&value)).to_string(),
        "sha256:181f92b147ac4095e8ed673e01bd7965df627d408157596ba269eecb5227efa0"
    );
}

#[test]
fn the_receipt_chain() {
    let mut receipt = json!({
        "receipt_id": "urn:oap:receipt:vector-0", "type": "invocation", "timestamp": "2026-01-01T00:00:00.000Z",
        "principal_did": DID, "agent_did": DID, "tool_did": DID, "action_id": "ping", "previous_receipt_hash": "genesis",
    });
    let value = encoding::encode(&key().sign(&json::canonical_value(&receipt)));
    assert_eq!(value, "IGvoIpM8XQWZqyl3JI_TvdRW3FWMJmME4N3V-xhUUSE78YLrQyLe03GtFQ-82fZB1JmzpvHAswSO2HUovDRjCg");
    receipt["signatures"] = json!([{"by": key().key_id().to_string(), "alg": "EdDSA", "value": value}]);
    assert_eq!(
        Digest::of(&json::canonical_value(&receipt)).to_string(),
        "sha256:80689284c2d8dcd631506c379b7122bc819374574455d7e8d00d3cc1c9ffcb62"
    );
}

struct Elliptic {
    alg: &'static str,
    key: &'static str,
    low: &'static str,
    high: &'static str,
    der: &'static str,
}

const ELLIPTIC: [Elliptic; 2] = [
    Elliptic {
        alg: "ES256",
        key: "zDnaeVuZeVRqvscGkiEoR9PFFra2xZUMp97ZPuGFK1VLU7iYN",
        low: "4Nz97Tc5yrHlJ-B52qgl4c4-7H9Zc2ch7f_U6mtepcA8j_P2Zq0Xoh3Zfk6I3w1fZon79yIOZBuomMeJeiPgWQ",
        high: "4Nz97Tc5yrHlJ-B52qgl4c4-7H9Zc2ch7f_U6mtepcDDcAwImVLoXuImgbF3IPKgVlz-toUJOmlLIQM5gj9E-A",
        der: "MEUCIQDg3P3tNznKseUn4HnaqCXhzj7sf1lzZyHt_9Tqa16lwAIgPI_z9matF6Id2X5OiN8NX2aJ-_ciDmQbqJjHiXoj4Fk",
    },
    Elliptic {
        alg: "ES384",
        key: "z82Lm3E6hNMpCovkE3i4zDhcCkxkNZzkXfy5wS6gm66h42E8K3hPuDuJRfao8731HJ5hwBm",
        low: "Yr__8PL7JDEPzl-E3YfOEZqqBaqViJTwOVACqRwiXxTFWUH34TV79btr-uXd3N0hfGtIYhskswiff-BNMky8ZvndKqxJOYljXCY6alNTLa_wfCyo3sicxkxZeWxpLYah",
        high: "Yr__8PL7JDEPzl-E3YfOEZqqBaqViJTwOVACqRwiXxTFWUH34TV79btr-uXd3N0hg5S3neTbTPdggB-yzbNDmQYi1VO2xnacaz0TF6DkAC9nneEJaegKtKCSn_5jl6LS",
        der: "MGQCMGK___Dy-yQxD85fhN2HzhGaqgWqlYiU8DlQAqkcIl8UxVlB9-E1e_W7a_rl3dzdIQIwfGtIYhskswiff-BNMky8ZvndKqxJOYljXCY6alNTLa_wfCyo3sicxkxZeWxpLYah",
    },
];

#[test]
fn elliptic_signatures_are_raw_and_hold_with_either_s() {
    for vector in ELLIPTIC {
        let did = format!("did:key:{}", vector.key);
        let document = |alg: &str, value: &str| {
            json!({
                "issuer_did": did, "intent_id": format!("urn:oap:intent:{}", vector.alg.to_lowercase()),
                "amount": 4.5, "tags": ["b", "a", null, true], "€": {"z": 1, "a": "\n"},
                "signature": {"alg": alg, "kid": format!("{did}#{}", vector.key), "value": value},
            })
        };
        assert_eq!(verdict(&document(vector.alg, vector.low)), did);
        assert_eq!(verdict(&document(vector.alg, vector.high)), did);
        assert_eq!(verdict(&document(vector.alg, vector.der)), "signature_encoding");
        assert_eq!(verdict(&document("EdDSA", vector.low)), "alg_key_mismatch");
        let other = if vector.alg == "ES256" { "ES384" } else { "ES256" };
        assert_eq!(verdict(&document(other, vector.low)), "alg_key_mismatch");
        let mut changed = document(vector.alg, vector.low);
        changed["amount"] = json!(4.6);
        assert_eq!(verdict(&changed), "signature_invalid");
    }
}

#[test]
fn a_digest_that_was_signed_is_not_the_document_that_was_signed() {
    // did:wba signs the SHA-256 of canonical bytes; such a signature must not pass for one over the bytes themselves.
    let mut intent = read(BODY).root().to_value();
    let value = encoding::encode(&key().sign(Digest::of(BODY.as_bytes()).as_bytes()));
    intent["signature"] = json!({"alg": "EdDSA", "value": value});
    assert_eq!(verdict(&intent), "signature_invalid");
}

#[test]
fn a_signed_document_inside_another_proves_nothing() {
    let mut intent = read(BODY).root().to_value();
    sign(&mut intent, &key()).unwrap();
    let wrapped = json!({"issuer_did": DID, "payload": intent});
    assert_eq!(verdict(&wrapped), "signature_missing");
    let lifted = json!({"issuer_did": DID, "payload": intent, "signature": intent["signature"]});
    assert_eq!(verdict(&lifted), "signature_invalid");
}

#[test]
fn the_did_of_a_vector_names_its_key() {
    let did = Did::parse(DID).unwrap();
    assert_eq!(did.key(), Some(&key().public()));
    assert_eq!(key().key_id().did(), &did);
}
