//! The public Python library `anp`, installed by name and unmodified, against this crate: both ways, two versions.

use crate::library::Library;
use json::{Document, Limits};
use serde_json::{Value, json};
use trust::http::{COMPONENTS, Credentials, Headers, Request, Signing, legacy_header, sign};
use trust::{
    Did, DidDocument, DidUrl, ProofForm, Secp256k1Key, SecretKey, SigningKey, bound_name, wba_document, wba_name,
};

const TARGET: &str = "https://node.example/agents/calc/rpc?x=1";
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"add","params":{"a":10,"b":20}}"#;

fn ed25519(number: u8) -> SecretKey {
    SigningKey::from_seed([number; 32]).into()
}

fn secp256k1(number: u8) -> SecretKey {
    Secp256k1Key::from_scalar([number; 32]).unwrap().into()
}

fn read(document: &Value) -> DidDocument {
    let did = Did::parse(document["id"].as_str().unwrap()).unwrap();
    let parsed = Document::parse(document.to_string().as_bytes(), &Limits::DOCUMENT).unwrap();
    DidDocument::read(parsed.root(), &did).unwrap_or_else(|error| panic!("{error}: {document:#}"))
}

/// Publishes a document of ours and lets the library's verifier judge what its key signs.
fn verdicts(library: &mut Library, did: &Did, key: &SecretKey, form: ProofForm) -> Vec<Value> {
    let document = wba_document(did, key, None, "2026-01-01T00:00:00Z", form).unwrap();
    let url = did.document_url().unwrap();
    let path = url.split_once(&format!(":{}", library.port)).unwrap().1;
    let now = library.ask(&json!({"do": "publish", "path": path, "document": document}))["now"].as_i64().unwrap();
    let keyid = format!("{did}#key-1");
    let mut verdicts = Vec::new();
    for (number, (method, body)) in [("GET", ""), ("POST", BODY)].into_iter().enumerate() {
        let request = Request { method, target: TARGET, headers: Headers::new(&[]), body: body.as_bytes() };
        let nonce = format!("{did}-{number}-{form:?}");
        let signing = Signing { key, keyid: &keyid, created: now, expires: now + 60, nonce: &nonce };
        let headers: serde_json::Map<String, Value> = sign(&request, &signing, &COMPONENTS)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let ask = json!({"do": "verify", "method": method, "url": TARGET, "headers": headers, "body": body});
        verdicts.push(library.ask(&ask));
        // Nobody can use it twice, there as here.
        assert_eq!(library.ask(&ask)["refused"], 401);
    }
    let name = DidUrl::parse(&keyid).unwrap();
    let time = json::Instant::from_unix(now, 0).to_string();
    let header = legacy_header(key, &name, "node.example", &format!("legacy{form:?}"), &time);
    let headers = json!({"Authorization": header});
    verdicts
        .push(library.ask(&json!({"do": "verify", "method": "GET", "url": TARGET, "headers": headers, "body": ""})));
    verdicts
}

fn the_library_accepts_ours(version: &str, reads_w3c: bool) {
    let mut library = Library::start(version, "crate");
    let host = format!("localhost:{}", library.port);
    let names = [
        (wba_name(&host, &[]).unwrap(), ed25519(1)),
        (wba_name(&host, &["user", "plain"]).unwrap(), secp256k1(2)),
        (bound_name(&host, &["user", "alice"], &ed25519(3)).unwrap(), ed25519(3)),
        (bound_name(&host, &["user", "bob"], &secp256k1(4)).unwrap(), secp256k1(4)),
    ];
    for (did, key) in &names {
        for verdict in verdicts(&mut library, did, key, ProofForm::Sdk) {
            assert_eq!(verdict, json!({"did": did.as_str()}), "{version}");
        }
    }
    let (did, key) = (bound_name(&host, &["user", "carol"], &ed25519(5)).unwrap(), ed25519(5));
    for verdict in verdicts(&mut library, &did, &key, ProofForm::W3c) {
        assert_eq!(verdict.get("did").is_some(), reads_w3c, "{version}: {verdict}");
    }
}

fn we_accept_the_librarys(version: &str) {
    let mut library = Library::start(version, "crate");
    for (profile, segments) in [
        ("e1", json!(["user", "alice"])),
        ("e1", json!(null)),
        ("k1", json!(["user", "bob"])),
        ("plain_legacy", json!(["user", "dave"])),
        ("plain_legacy", json!(null)),
    ] {
        let made = json!({"do": "create", "port": library.port, "profile": profile, "segments": segments});
        let document = library.ask(&made)["document"].take();
        let signer = read(&document);
        // A secp256k1 signature has a high s half of the time, so there are several.
        for number in 0..8 {
            let (method, body) = if number % 2 == 0 { ("GET", "") } else { ("POST", BODY) };
            let ask = json!({"do": "sign", "document": document, "method": method, "url": TARGET, "body": body});
            let answer = library.ask(&ask);
            let fields: Vec<(String, String)> = answer["headers"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.to_lowercase(), value.as_str().unwrap().to_owned()))
                .collect();
            let fields: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let headers = Headers::new(&fields);
            let Credentials::Signature(signature) = Credentials::read(&headers).unwrap() else { panic!("{answer}") };
            signature.check(!body.is_empty(), answer["now"].as_i64().unwrap()).unwrap();
            let request = Request { method, target: "", headers, body: body.as_bytes() };
            let proved = signature.verify(&signer, &request, &[TARGET.to_owned()]).unwrap();
            assert_eq!(proved.did().as_str(), document["id"], "{version}");
            let elsewhere = signature.verify(&signer, &request, &["https://node.example/other".to_owned()]);
            assert_eq!(elsewhere.unwrap_err().code(), "invalid_signature");
        }
        let answer = library.ask(&json!({"do": "legacy", "document": document, "host": "node.example"}));
        let fields = [("authorization", answer["header"].as_str().unwrap())];
        let Credentials::Legacy(legacy) = Credentials::read(&Headers::new(&fields)).unwrap() else {
            panic!("{answer}")
        };
        legacy.check(answer["now"].as_i64().unwrap()).unwrap();
        assert_eq!(legacy.verify(&signer, &["node.example"]).unwrap().did().as_str(), document["id"], "{version}");
    }
}

#[test]
fn anp_0_9_2_both_ways() {
    the_library_accepts_ours("0.9.2", false);
    we_accept_the_librarys("0.9.2");
}

#[test]
fn anp_1_0_7_both_ways() {
    the_library_accepts_ours("1.0.7", true);
    we_accept_the_librarys("1.0.7");
}
