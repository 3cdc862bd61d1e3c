//! Keys in and out, in every form.

use super::*;
use json::Document;

const ED25519: &str = "z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const P256: &str = "zDnaeVuZeVRqvscGkiEoR9PFFra2xZUMp97ZPuGFK1VLU7iYN";
const P384: &str = "z82Lm3E6hNMpCovkE3i4zDhcCkxkNZzkXfy5wS6gm66h42E8K3hPuDuJRfao8731HJ5hwBm";

fn jwks() -> [(&'static str, Value, Algorithm); 3] {
    [
        (
            ED25519,
            json!({"kty": "OKP", "crv": "Ed25519", "x": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}),
            Algorithm::EdDsa,
        ),
        (
            P256,
            json!({
                "kty": "EC", "crv": "P-256",
                "x": "UVw9brnjlrkE0_7Kf1T9zQzB6Ze_N13KUVrQpsO0A18", "y": "RTa-OlDzGPv5pUdZAqIhUCvvDVfgjFOyzApW8X2fk1Q",
            }),
            Algorithm::Es256,
        ),
        (
            P384,
            json!({
                "kty": "EC", "crv": "P-384",
                "x": "x28ig92pXNSbDtnnM9KQRHTjchbxJOE9LJq0zwECHEmtnKuz0Ll0ma7y8KsxP6Ao",
                "y": "Jrwfg0UbXIlip1yv9zWI1EAKYpZDYVT7NDw5PpEEimx7y63IPNil8m_q6IMVb5Kh",
            }),
            Algorithm::Es384,
        ),
    ]
}

fn read_jwk(jwk: &Value) -> Result<PublicKey, KeyError> {
    PublicKey::from_jwk(Document::of(jwk).unwrap().root())
}

#[test]
fn multibase_and_jwk_are_two_spellings_of_one_key() {
    for (multibase, jwk, algorithm) in jwks() {
        let key = PublicKey::from_multibase(multibase).unwrap();
        assert_eq!(read_jwk(&jwk).as_ref(), Ok(&key));
        assert_eq!(key.to_jwk(), jwk);
        assert_eq!(key.to_multibase(), multibase);
        assert_eq!(key.algorithm(), algorithm);
        assert_eq!(format!("{key:?}"), format!("PublicKey({multibase})"));
    }
    assert_ne!(PublicKey::from_multibase(ED25519), PublicKey::from_multibase(P256));
}

#[test]
fn a_seed_gives_the_key_of_the_vector() {
    let key = SigningKey::from_seed(std::array::from_fn(|position| position as u8));
    assert_eq!(key.did_key().as_str(), format!("did:key:{ED25519}"));
    assert_eq!(key.key_id().to_string(), format!("did:key:{ED25519}#{ED25519}"));
    assert_eq!(key.public().to_multibase(), ED25519);
    let signature = key.sign(b"bytes");
    assert!(key.public().verifies(b"bytes", &signature));
    assert!(!key.public().verifies(b"bytes.", &signature));
    assert!(!key.public().verifies(b"bytes", &signature[..63]));
}

#[test]
fn a_nonce_point_of_small_order_is_refused() {
    // Made with the nonce zero: the equation holds, but whoever sees it can compute the private key.
    let signature = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABdDlt-ltqFs23OgYrOqJLgW2_wcKNm-uU-vmcqwt_jCg";
    assert!(!PublicKey::from_multibase(ED25519).unwrap().verifies(b"bytes", &decode_url(signature).unwrap()));
}

#[test]
fn printing_a_signing_key_shows_its_name_only() {
    let key = SigningKey::from_seed([0x41; 32]);
    let printed = format!("{key:?} {key:#?}");
    assert_eq!(printed, format!("SigningKey({0}) SigningKey({0})", key.did_key()));
    for secret in ["41, 41", "65, 65", "4141", "AAAA"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn keys_that_are_none_are_refused() {
    for (multibase, error) in [
        ("z6MkeTG3bFFSLYVU7VqhgZxqr6YzpaGrQtFMh1uvqGy1vDnP", KeyError::Weak), // order 4
        ("z6MkeXATEjyXENzBXBxgC5EHk2JE5aqd7qMGGtDpLUH1e2Sj", KeyError::Weak), // the identity
        ("z6MkvYDV6cfbwNp6jpaZGAcYpZgdfuK59wb3FKdA8t7sBVka", KeyError::Weak), // the identity, y = p + 1
        ("z6Mkvg2JPc7mj3oXZCpWHB9ScRB6BvScZqnrR4Ew9Gjrd75G", KeyError::Point), // y = p + 3
        ("z6Mkeb4rtEhc8DUtvt5ehaVjdx3TLbQPpnTArkXhqfb1Mq75", KeyError::Point), // y = 2 is not on the curve
        ("zDnafPbWkyo6jFkV4RV9fpun9SESXJxHnNjmgMR7HbFcmfaHC", KeyError::Point), // SEC1 tag 5
        ("zDnaf6NCPV1M8ThkHrQNFbjbrF1e14TeTdXhasN9xjLC19d2v", KeyError::Point), // SEC1 tag 4
        ("zDnaehfHR8Q5U7ckmLQfuZ3eGEypooJ46zzjRQ1AR9asDvdnv", KeyError::Point), // x beyond the field
        ("zDnadoyLJe2pfjUYTdAKesX7NfKRF3p88mNX8wrJSZpavNn47", KeyError::Point), // all zero
        (
            "z4oJ8bQWmdRbkhWsbC85S7BkLD7dfZ2tm3eZ2mtA6C4j3Si19XLij1UD1qzaFYQM9fC7x1Yh2PMdnGkM8PoBnndDLwzHH",
            KeyError::Length,
        ),
        ("z2DQV2TSJFGUYseu2wM5iGq72rUh7VFxZ51dv7G6NwUV2Lp", KeyError::Length), // 31 bytes
        ("z6LSbgC4DpuCf7zxewhFPnYcyBm3YgxjEEovsehvWqZzTm8z", KeyError::Unsupported),
        ("", KeyError::Multibase),
        ("z", KeyError::Multibase),
    ] {
        assert_eq!(PublicKey::from_multibase(multibase), Err(error), "{multibase}");
    }
    assert!(PublicKey::from_multibase("z6MkeeyGXjRh23ycLaCdD5mBXsngbbyAXjZ5ScqbLru15dmR").is_ok(), "y = 3 is a point");
    assert_eq!(PublicKey::from_bytes(Algorithm::EdDsa, &[9; 31]), Err(KeyError::Length));
    assert_eq!(PublicKey::from_bytes(Algorithm::Es256, &[0]), Err(KeyError::Point));
}

/// The plain way: a point is written anew, and the bytes compared.
#[test]
fn a_key_is_read_from_the_one_encoding_that_it_is_written_in() {
    let mut read = 0;
    for low in 0..=255 {
        for (fill, sign) in [(0x00, 0x00), (0x00, 0x80), (0xff, 0x00), (0xff, 0x80), (0x55, 0x00), (0x55, 0x80)] {
            let mut bytes = [fill; 32];
            (bytes[0], bytes[31]) = (low, fill & 0x7f | sign);
            let plain = ed25519_dalek::VerifyingKey::from_bytes(&bytes)
                .is_ok_and(|key| !key.is_weak() && key.to_edwards().compress().as_bytes() == &bytes);
            assert_eq!(PublicKey::from_bytes(Algorithm::EdDsa, &bytes).is_ok(), plain, "{bytes:?}");
            read += usize::from(plain);
        }
    }
    assert!((300..1_200).contains(&read), "{read} of 1,536 are keys");
}

#[test]
fn a_jwk_is_public_complete_and_canonical() {
    let flawed = |position: usize, member: &str, value: Value| {
        let mut jwk = jwks()[position].1.clone();
        jwk[member] = value;
        read_jwk(&jwk)
    };
    let x = "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg";
    assert_eq!(flawed(0, "d", json!("AAAA")), Err(KeyError::Private));
    assert_eq!(flawed(0, "d", json!(null)), Err(KeyError::Private));
    assert_eq!(flawed(0, "x", json!(format!("{x}="))), Err(KeyError::Jwk));
    assert_eq!(flawed(0, "x", json!(x.replace('_', "/"))), Err(KeyError::Jwk));
    assert_eq!(flawed(0, "x", json!("A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbh")), Err(KeyError::Jwk), "a stray bit");
    assert_eq!(flawed(0, "x", json!(7)), Err(KeyError::Jwk));
    assert_eq!(flawed(0, "x", json!("AAAA")), Err(KeyError::Length));
    assert_eq!(flawed(0, "x", json!(encode(&[0; 32]))), Err(KeyError::Weak));
    assert_eq!(flawed(0, "kty", json!("okp")), Err(KeyError::Unsupported));
    assert_eq!(flawed(0, "kty", json!(null)), Err(KeyError::Jwk));
    assert_eq!(flawed(0, "crv", json!("X25519")), Err(KeyError::Unsupported));
    assert_eq!(flawed(0, "use", json!("enc")), Err(KeyError::Unsupported));
    assert!(flawed(0, "use", json!("sig")).is_ok());
    assert_eq!(flawed(1, "crv", json!("P-521")), Err(KeyError::Unsupported));
    assert_eq!(flawed(1, "crv", json!("secp256k1")), Err(KeyError::Point), "a point of another curve");
    assert_eq!(flawed(1, "crv", json!("P-384")), Err(KeyError::Length));
    assert_eq!(flawed(1, "y", jwks()[1].1["x"].clone()), Err(KeyError::Point), "not on the curve");
    assert_eq!(flawed(1, "y", json!(encode(&[0xff; 32]))), Err(KeyError::Point), "beyond the field");
    assert_eq!(flawed(1, "y", json!(encode(&[1; 31]))), Err(KeyError::Length));
    assert_eq!(read_jwk(&json!([])), Err(KeyError::Jwk));
}

#[test]
fn only_raw_ecdsa_signatures_are_read() {
    let key = PublicKey::from_multibase(P256).unwrap();
    let der = encode(&[0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01]);
    assert!(!key.verifies(b"", &decode_url(&der).unwrap()));
    assert!(!key.verifies(b"", &[0; 64]), "zero r and s");
    assert!(!key.verifies(b"", &[1; 96]), "the length of ES384");
    assert!(!key.verifies(b"", &[]));
}

#[test]
fn a_point_has_one_spelling_where_its_y_is_below_the_prime() {
    let mut prime = [0xff; 32];
    (prime[0], prime[31]) = (0xed, 0x7f);
    for (lowest, middle) in
        [0, 0xec, 0xed, 0xee, 0xff].into_iter().flat_map(|low| [0, 0xfe, 0xff].map(|mid| (low, mid)))
    {
        for highest in [0, 0x7e, 0x7f, 0x80, 0xfe, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[15], bytes[31]) = (lowest, middle, highest);
            let mut y = bytes;
            y[31] &= 0x7f;
            assert_eq!(is_reduced(&bytes), y.iter().rev().lt(prime.iter().rev()), "{lowest} {middle} {highest}");
        }
    }
}

#[test]
fn points_of_small_order_are_known_by_their_encoding() {
    let weak = |bytes: &[u8; 32]| ed25519_dalek::VerifyingKey::from_bytes(bytes).unwrap().is_weak();
    for y in SMALL_ORDER {
        let mut negative = y;
        negative[31] |= 0x80;
        assert!(weak(&y) && is_of_small_order(&y));
        assert!(weak(&negative) && is_of_small_order(&negative));
    }
    for seed in 0..200 {
        let key = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]).verifying_key();
        assert!(!weak(key.as_bytes()) && !is_of_small_order(key.as_bytes()));
    }
}

#[test]
fn a_signature_holds_when_it_holds_strictly() {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let (key, message) = (secret.verifying_key(), b"the same bytes");
    let good = secret.sign(message).to_bytes();
    let starts = SMALL_ORDER.iter().map(|y| [y.as_slice(), &good[32..]].concat());
    let flips = (0..512).map(|bit| {
        let mut flipped = good.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    });
    for signature in starts.chain(flips).chain([good.to_vec()]) {
        let strictly = ed25519_dalek::Signature::from_slice(&signature).unwrap();
        let strictly = key.verify_strict(message, &strictly).is_ok();
        assert_eq!(PublicKey(Material::Ed25519(key)).verifies(message, &signature), strictly);
    }
}
