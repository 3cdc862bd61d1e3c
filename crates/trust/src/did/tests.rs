//! The grammar of DIDs, as tables.

use super::*;

const KEY: &str = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const FINGERPRINT: &str = "1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y";

#[track_caller]
fn refused(text: &str) {
    let error = Did::parse(text).expect_err("should be refused");
    assert_eq!(error.code(), "invalid_did", "{text}");
}

#[track_caller]
fn lies_at(did: &str, url: &str) {
    let did = Did::parse(did).unwrap();
    assert_eq!(did.document_url().as_deref(), Some(url));
}

#[test]
fn a_did_has_a_lower_case_method_and_an_identifier() {
    for (text, method) in [
        (KEY, Method::Key),
        ("did:web:example.com", Method::Web),
        ("did:wba:example.com", Method::Wba),
        ("did:plc:ewvi7nxzyoun6zhxrhs64oiz", Method::Other),
        ("did:ethr:0x1:0xb9c5714089478a327f09197987f16f9e5d936e8a", Method::Other),
        ("did:example:a%20b::c", Method::Other),
    ] {
        let did = Did::parse(text).unwrap();
        assert_eq!((did.as_str(), did.method()), (text, method));
        assert_eq!((did.to_string().as_str(), format!("{did:?}")), (text, format!("Did({text})")));
        assert_eq!(did.key().is_some(), method == Method::Key);
    }
    for text in [
        "",
        "did",
        "did:",
        "did:web",
        "did:web:",
        "did::x",
        "web:example.com",
        "DID:web:example.com",
        "did:Web:example.com",
        "did:KEY:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd",
        " did:web:example.com",
        "did:web:example.com ",
        "did:web:example.com\n",
        "did:example:a:",
        "did:example:a b",
        "did:example:ä",
        "did:exämple:a",
        "did:example:a%2",
        "did:example:a%",
        "did:example:a%g0",
        "did:example:%ä0",
        "did:example:a/b",
        "did:example:a?b",
        "did:example:a#b",
        "did:example:a;b",
        "did:example:a\0",
        "did:ex-ample:a",
    ] {
        refused(text);
    }
}

#[test]
fn a_did_is_at_most_2048_bytes_long() {
    let longest = format!("did:web:example.com:{}", "a".repeat(2048 - 20));
    assert_eq!(longest.len(), 2048);
    assert!(Did::parse(&longest).is_ok());
    assert_eq!(Did::parse(&format!("{longest}a")), Err(DidError::TooLong));
}

#[test]
fn did_key_is_z_and_a_known_key() {
    for id in [
        "6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd", // no multibase prefix
        "Z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd", // another one
        "u7QEDoQe_884Qvh1w3RjnS8CZZ-TWMJulDV8d3IZkElUxuA", // base64url
        "1.1:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd", // a version
        "z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvV0", // 0 is no base58 digit
        "z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd%41", // an escape
        "z",                                               // nothing
        "zK36",                                            // only a prefix
        "z2DQV2TSJFGUYseu2wM5iGq72rUh7VFxZ51dv7G6NwUV2Lp", // 31 bytes
        "zQebfPRx3FmWg5fr99gVQnZ7Cgq6ad6UHxw8B9Jck4nh5D7Ku", // 33 bytes
        "z16MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd", // a zero in front
        "zQhVUSeLmuut4bfSCgcS1T3WnoL8ajWjXJL6qgG9wiTWapHNo", // a longer varint
        "z6LSbgC4DpuCf7zxewhFPnYcyBm3YgxjEEovsehvWqZzTm8z", // X25519
        "zQ3shVc2UkAfJCdc1TR8E66J85h48P43r93q8jGPkPpjF9Ef9", // secp256k1
        "z2xyuLjNaTKHq85arpDY9Py2h4EQSEM7vJQ7nK1PBRL3gfZrJtgd7qckMBsjyLbNG99Av2P39gBDd9r5ggRdR2NpqUZbn7iii6cC", // RSA
        &format!("z{}", "2".repeat(2000)),                 // long
    ] {
        refused(&format!("did:key:{id}"));
    }
}

#[test]
fn the_examples_of_the_did_key_text_are_read_and_written_alike() {
    for did in [
        "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp",
        "did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG",
        "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169",
        "did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv",
        "did:key:z82Lm1MpAkeJcix9K8TMiLd5NMAhnwkjjCBeWHXyu3U4oT2MVJJKXkcVBgjGhnLBn2Kaau9",
        "did:key:z82LkvCwHNreneWpsgPEbV3gu1C6NFJEBg4srfJ5gdxEsMGRJUz2sG9FE42shbn2xkZJh54",
    ] {
        let read = Did::parse(did).unwrap();
        assert_eq!(Did::of_key(read.key().unwrap().clone()), read);
        assert_eq!(read.document_url(), None);
    }
}

#[test]
fn did_web_and_did_wba_name_the_place_of_their_document() {
    for method in ["web", "wba"] {
        let at = |id: &str, url: &str| lies_at(&format!("did:{method}:{id}"), url);
        at("example.com", "https://example.com/.well-known/did.json");
        at("localhost", "https://localhost/.well-known/did.json");
        at("localhost%3A8443", "https://localhost:8443/.well-known/did.json");
        at("example.com%3A65535:a", "https://example.com:65535/a/did.json");
        at("a-1.xn--bcher-kva.example:Users:al.ice_2-x", "https://a-1.xn--bcher-kva.example/Users/al.ice_2-x/did.json");
        at("example.com:a:...:.b:well-known", "https://example.com/a/.../.b/well-known/did.json");
        at("192.0.2.1", "https://192.0.2.1/.well-known/did.json");
    }
    assert_eq!(Did::parse("did:plc:abc").unwrap().document_url(), None);
}

#[test]
fn nothing_but_the_port_is_percent_encoded() {
    for id in [
        "example.com%40evil.example",
        "user%40example.com",
        "example.com%2Fa",
        "example.com%3Fq",
        "example.com%23f",
        "example.com%5Ca",
        "example.com%00",
        "example.com%2e",
        "%65xample.com",
        "example.com:%2e%2e",
        "example.com:a%2Fb",
        "example.com:a%2fb",
        "example.com:%2E",
        "example.com:a%20b",
        "example.com:%41",
        "example.com:a%3A1",
        "example.com%3a443",
        "example.com%253A443",
        "example.com%3A443%3A1",
        "example.com%3A80:a%00",
    ] {
        refused(&format!("did:web:{id}"));
        refused(&format!("did:wba:{id}"));
    }
}

#[test]
fn hosts_ports_and_segments_have_one_spelling() {
    let long_label = format!("{}.com", "a".repeat(64));
    let long_host = "a.".repeat(126) + "ab";
    assert_eq!(long_host.len(), 254);
    for id in [
        "Example.com",
        "example.com.",
        ".example.com",
        "example..com",
        "-a.com",
        "a-.com",
        "exa_mple.com",
        "exa~mple.com",
        "[::1]",
        "::1",
        "user@example.com",
        "example.com/a",
        "example.com?q",
        "example.com#f",
        "example.com\\a",
        "ex*mple.com",
        "%3A443",
        "example.com%3A",
        "example.com%3A0",
        "example.com%3A0443",
        "example.com%3A65536",
        "example.com%3A-1",
        "example.com%3A+1",
        "example.com%3A1e3",
        "example.com%3A99999999999",
        "example.com%3A44 3",
        "example.com:",
        "example.com::a",
        "example.com:a:",
        "example.com:a::b",
        "example.com:.",
        "example.com:..",
        "example.com:a:..:b",
        "example.com:a~b",
        "example.com:a@b",
        "example.com:a+b",
        "example.com:ä",
        "",
        ":a",
        &long_label,
        &long_host,
    ] {
        refused(&format!("did:web:{id}"));
        refused(&format!("did:wba:{id}"));
    }
}

#[test]
fn the_fingerprint_of_a_did_wba_is_whole() {
    let user = "did:wba:example.com%3A3000:user:alice";
    for kind in ["e1", "k1"] {
        lies_at(
            &format!("{user}:{kind}_{FINGERPRINT}"),
            &format!("https://example.com:3000/user/alice/{kind}_{FINGERPRINT}/did.json"),
        );
        // One character less, one more, a stray bit at the end, a foreign character.
        for text in [
            "",
            "X",
            &FINGERPRINT[1..],
            &format!("{FINGERPRINT}A"),
            &FINGERPRINT.replace("4Y", "4Z"),
            &FINGERPRINT.replace('J', "."),
        ] {
            refused(&format!("{user}:{kind}_{text}"));
        }
        // Below the host there is somebody, and then the fingerprint.
        refused(&format!("did:wba:example.com:{kind}_{FINGERPRINT}"));
        assert!(Did::parse(&format!("did:wba:example.com:alice:{kind}_{FINGERPRINT}")).is_ok());
        // Only the last segment is a fingerprint, and only in did:wba.
        assert!(Did::parse(&format!("{user}:{kind}_x:y")).is_ok());
        assert!(Did::parse(&format!("did:web:example.com:{kind}_x")).is_ok());
    }
    assert!(Did::parse("did:wba:example.com:user:e2_x").is_ok());
}

#[test]
fn a_did_url_splits_at_its_fragment() {
    let url = DidUrl::parse("did:web:example.com:a#key-1").unwrap();
    assert_eq!((url.did().as_str(), url.fragment()), ("did:web:example.com:a", "key-1"));
    assert_eq!(url.to_string(), "did:web:example.com:a#key-1");
    for text in [
        "did:web:example.com",
        "did:web:example.com#",
        "#key-1",
        "did:web:example.com#a#b",
        "did:web:example.com/p#a",
        "did:web:example.com?q=1#a",
        "did:web:example.com#a b",
        "did:web:example.com#ä",
        "did:web:example.com#<a>",
    ] {
        assert_eq!(DidUrl::parse(text).unwrap_err().code(), "invalid_did", "{text}");
    }
}

#[test]
fn dids_are_compared_as_text() {
    use std::collections::HashSet;
    let set: HashSet<Did> =
        ["did:web:a.b", "did:web:a.b", "did:wba:a.b", KEY, KEY].iter().map(|did| Did::parse(did).unwrap()).collect();
    assert_eq!(set.len(), 3);
}
