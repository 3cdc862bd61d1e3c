//! RFC 0020 §3.1 `issuer_did`: arbitrary text as a DID.
//!
//! What is accepted is written back letter by letter, a did:key is the one name of its key, and the address of a
//! document is made of a host, a port and plain segments only: nothing in it can point elsewhere than it seems to.

#![no_main]

use fuzzing::text;
use libfuzzer_sys::fuzz_target;
use trust::{Did, DidDocument, DidUrl, Method};

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    if let Ok(did) = Did::parse(&text) {
        check(&did, &text);
    }
    if let Ok(url) = DidUrl::parse(&text) {
        assert_eq!(url.to_string(), text);
        assert_eq!(Did::parse(url.did().as_str()).as_ref(), Ok(url.did()));
        assert!(!url.fragment().is_empty() && !url.fragment().contains('#'));
    }
});

fn check(did: &Did, text: &str) {
    assert_eq!(did.as_str(), text);
    assert_eq!(did.to_string(), text);
    let mut parts = text.splitn(3, ':');
    assert_eq!(parts.next(), Some("did"));
    let (method, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    assert!(!id.is_empty() && text.is_ascii() && !text.contains(['/', '?', '#', '@', '\\', ' ']), "{text:?}");
    let expected = match method {
        "key" => Method::Key,
        "web" => Method::Web,
        "wba" => Method::Wba,
        _ => Method::Other,
    };
    assert_eq!(did.method(), expected);

    match did.key() {
        Some(key) => {
            assert_eq!(expected, Method::Key);
            assert_eq!(Did::of_key(key.clone()).as_str(), text, "a key has two names");
            let document = DidDocument::of_key(did).expect("a did:key has its document");
            assert_eq!(document.signing_keys().count(), 1);
        }
        None => {
            assert_ne!(expected, Method::Key);
            assert!(DidDocument::of_key(did).is_err());
        }
    }
    match did.document_url() {
        Some(url) => check_address(&url, id),
        None => assert!(!matches!(expected, Method::Web | Method::Wba)),
    }
}

/// Takes the address apart again and lays it beside the DID.
fn check_address(url: &str, id: &str) {
    let rest = url.strip_prefix("https://").expect("documents are fetched over https");
    let (authority, path) = rest.split_once('/').expect("an address has a path");
    let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    let label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(plain) && !label.starts_with('-') && !label.ends_with('-')
    };
    assert!(host.len() <= 253 && host.split('.').all(label), "{url}");
    if let Some(port) = port {
        let number: u16 = port.parse().expect("a port is a number");
        assert!(number > 0 && number.to_string() == port, "{url}");
    }
    let directory = path.strip_suffix("/did.json").expect("the document has one name");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(plain);
    assert!(directory.split('/').all(segment), "{url}");

    let authority = authority.replace(':', "%3A");
    let written = match directory {
        ".well-known" if !id.contains(':') => authority,
        segments => format!("{authority}:{}", segments.replace('/', ":")),
    };
    assert_eq!(written, id, "the address belongs to another DID");
}
