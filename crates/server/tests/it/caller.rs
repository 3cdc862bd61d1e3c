//! Who sends a request, over real connections: the headers of ANP-02, and DID documents that others host.

use crate::{Answer, House, NOW};
use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use json::{Value, json};
use reqwest::Method;
use std::collections::HashMap;
use std::sync::Arc;
use trust::http::{COMPONENTS, Challenge, Headers, Request, Signing, sign, wanted_components};
use trust::{Did, ProofForm, Secp256k1Key, SecretKey, SigningKey, bound_name, wba_document, wba_name};

const SECONDS: i64 = NOW / 1_000;

fn ed25519(number: u8) -> SecretKey {
    SigningKey::from_seed([number; 32]).into()
}

fn secp256k1(number: u8) -> SecretKey {
    Secp256k1Key::from_scalar([number; 32]).unwrap().into()
}

/// Somebody with a key that has a name.
struct Party {
    did: Did,
    key: SecretKey,
}

impl Party {
    fn keyid(&self) -> String {
        format!("{}#key-1", self.did)
    }
}

/// Documents at their paths, on a port of this machine.
async fn host(make: impl FnOnce(&str) -> Vec<(Did, Value)>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
    let path = |did: &Did| did.document_url().unwrap().split_once(&authority).unwrap().1.to_owned();
    let documents: HashMap<String, String> =
        make(&authority).into_iter().map(|(did, document)| (path(&did), document.to_string())).collect();
    let serve = async |State(documents): State<Arc<HashMap<String, String>>>, uri: Uri| match documents.get(uri.path())
    {
        Some(document) => (axum::http::StatusCode::OK, document.clone()),
        None => (axum::http::StatusCode::NOT_FOUND, String::new()),
    };
    let router = Router::new().fallback(serve).with_state(Arc::new(documents));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
}

/// Sends a request that is signed for `target`, with more fields.
async fn send(house: &House, party: &Party, nonce: &str, signed_for: &str, body: Option<&str>) -> Answer {
    let (method, bytes) = match body {
        Some(body) => (Method::POST, body.as_bytes()),
        None => (Method::GET, b"".as_slice()),
    };
    let request = Request { method: method.as_str(), target: signed_for, headers: Headers::new(&[]), body: bytes };
    let keyid = party.keyid();
    let signing = Signing { key: &party.key, keyid: &keyid, created: SECONDS, expires: SECONDS + 60, nonce };
    let mut sent = house.request(method.clone(), "/whoami?x=1");
    for (name, value) in sign(&request, &signing, &COMPONENTS) {
        sent = sent.header(name, value);
    }
    if let Some(body) = body {
        sent = sent.header("content-type", "application/json").body(body.to_owned());
    }
    Answer::of(sent).await
}

fn target(house: &House) -> String {
    format!("{}/whoami?x=1", house.url)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_name_is_proved_by_its_document() {
    let house = House::open().await;
    let mut parties = Vec::new();
    host(|authority| {
        let kinds = [
            (wba_name(authority, &[]).unwrap(), ed25519(1), ProofForm::Sdk),
            (wba_name(authority, &["user", "alice"]).unwrap(), secp256k1(2), ProofForm::Sdk),
            (bound_name(authority, &["user"], &ed25519(3)).unwrap(), ed25519(3), ProofForm::Sdk),
            (bound_name(authority, &["user"], &ed25519(4)).unwrap(), ed25519(4), ProofForm::W3c),
            (bound_name(authority, &["user"], &secp256k1(5)).unwrap(), secp256k1(5), ProofForm::Sdk),
        ];
        let mut documents = Vec::new();
        for (did, key, form) in kinds {
            documents.push((did.clone(), wba_document(&did, &key, None, "2026-05-01T00:00:00Z", form).unwrap()));
            parties.push(Party { did, key });
        }
        documents
    })
    .await;
    for party in &parties {
        for (nonce, body) in [("n1", None), ("n2", Some(r#"{"jsonrpc":"2.0"}"#))] {
            let answer = send(&house, party, nonce, &target(&house), body).await;
            assert_eq!(answer.status, 200, "{}: {}", party.did, String::from_utf8_lossy(&answer.bytes));
            assert_eq!(answer.json(), json!({"did": party.did.as_str()}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_does_not_show_the_key_of_its_name_proves_nobody() {
    let house = House::open().await;
    let mut parties = Vec::new();
    host(|authority| {
        let mut documents = Vec::new();
        for (named_after, key) in [(ed25519(1), ed25519(2)), (secp256k1(1), secp256k1(2))] {
            let did = bound_name(authority, &["user"], &named_after).unwrap();
            documents
                .push((did.clone(), wba_document(&did, &key, None, "2026-05-01T00:00:00Z", ProofForm::Sdk).unwrap()));
            parties.push(Party { did, key });
        }
        let nowhere = wba_name(authority, &["nobody"]).unwrap();
        parties.push(Party { did: nowhere, key: ed25519(1) });
        documents
    })
    .await;
    for (party, code) in parties.iter().zip(["did_document_invalid", "did_document_invalid", "did_unresolvable"]) {
        let answer = send(&house, party, "n1", &target(&house), None).await;
        answer.refused(&house.node, 401, code);
        let challenge = Challenge::read(answer.header("www-authenticate")).unwrap();
        assert_eq!(challenge.error.as_deref(), Some("invalid_did"));
        assert!(!challenge.may_help_to_sign_again());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_brings_nothing_is_told_what_to_bring_and_then_gets_a_token() {
    let house = House::open().await;
    let nobody = house.get("/whoami").await;
    nobody.refused(&house.node, 401, "authentication_required");
    assert_eq!(nobody.header("cache-control"), "no-store");
    assert_eq!(wanted_components(nobody.header("accept-signature")), COMPONENTS);
    let challenge = Challenge::read(nobody.header("www-authenticate")).unwrap();
    assert_eq!((challenge.realm.as_str(), challenge.error.as_deref()), ("127.0.0.1", None));

    let key = SigningKey::from_seed([1; 32]);
    let did = key.did_key();
    let keyid = key.key_id().to_string();
    let party = Party { did: did.clone(), key: key.into() };
    let request = Request { method: "GET", target: &target(&house), headers: Headers::new(&[]), body: b"" };
    let nonce = challenge.nonce.unwrap();
    let signing = Signing { key: &party.key, keyid: &keyid, created: SECONDS, expires: SECONDS + 60, nonce: &nonce };
    let fields = sign(&request, &signing, &wanted_components(nobody.header("accept-signature")));
    let with = |fields: &[(&'static str, String)]| {
        fields.iter().fold(house.request(Method::GET, "/whoami?x=1"), |sent, (name, value)| sent.header(*name, value))
    };
    let proved = Answer::of(with(&fields)).await;
    assert_eq!((proved.status.as_u16(), proved.json()), (200, json!({"did": did.as_str()})));
    assert_eq!(proved.header("cache-control"), "no-store");
    let token = proved.header("authentication-info").split('"').nth(1).unwrap().to_owned();
    assert_eq!(proved.header("authorization"), format!("Bearer {token}"));

    let again = Answer::of(with(&fields)).await;
    again.refused(&house.node, 401, "invalid_nonce");
    let bearing =
        |token: &str| house.request(Method::GET, "/whoami").header("authorization", format!("Bearer {token}"));
    let by_token = Answer::of(bearing(&token)).await;
    assert_eq!((by_token.status.as_u16(), by_token.json()), (200, json!({"did": did.as_str()})));
    assert_eq!(by_token.headers.get("authentication-info"), None);
    let other = House::open().await;
    let foreign =
        Answer::of(other.request(Method::GET, "/whoami").header("authorization", format!("Bearer {token}"))).await;
    foreign.refused(&other.node, 401, "invalid_access_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_signed_for_another_address_or_body_is_nobodys() {
    let house = House::with(server::Patience::default(), None, Some("https://node.example/")).await;
    let mut party = None;
    host(|authority| {
        let did = wba_name(authority, &[]).unwrap();
        let document = wba_document(&did, &ed25519(1), None, "2026-05-01T00:00:00Z", ProofForm::Sdk).unwrap();
        party = Some(Party { did: did.clone(), key: ed25519(1) });
        vec![(did, document)]
    })
    .await;
    let party = party.unwrap();
    for (number, (signed_for, code)) in [
        ("https://node.example/whoami?x=1", None),
        ("https://node.example:443/whoami?x=1", None),
        ("https://node.example/whoami", Some("invalid_signature")),
        ("https://node.example/whoami?x=2", Some("invalid_signature")),
        ("https://evil.example/whoami?x=1", Some("invalid_signature")),
        ("http://node.example/whoami?x=1", Some("invalid_signature")),
        // The node has a name, so that what it is called on this machine is no name of it.
        (target(&house).as_str(), Some("invalid_signature")),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = send(&house, &party, &format!("n{number}"), signed_for, Some("{}")).await;
        match code {
            None => assert_eq!(answer.status, 200, "{signed_for}"),
            Some(code) => drop(answer.refused(&house.node, 401, code)),
        }
    }
}

/// Posts an intent under a signature of the request.
async fn post_signed(house: &House, by: fn() -> SigningKey, nonce: &str, signed_for: &str, intent: &Value) -> Answer {
    let body = intent.to_string();
    let did = by().did_key();
    let keyid = format!("{did}#{}", did.as_str().trim_start_matches("did:key:"));
    let request = Request { method: "POST", target: signed_for, headers: Headers::new(&[]), body: body.as_bytes() };
    let key: SecretKey = by().into();
    let signing = Signing { key: &key, keyid: &keyid, created: SECONDS, expires: SECONDS + 60, nonce };
    let mut sent = house.request(Method::POST, "/oap/intent").header("content-type", "application/json");
    for (name, value) in sign(&request, &signing, &COMPONENTS) {
        sent = sent.header(name, value);
    }
    Answer::of(sent.body(body)).await
}

/// decisions/0256.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_decided_about_when_its_issuer_sent_it_here() {
    let house = House::configured(|config| config.audience_binding = true).await;
    let action = |name: &str| {
        let mut intent = crate::intent(name);
        intent.as_object_mut().unwrap().remove("signature");
        intent["category"] = json!("action");
        crate::sign(intent, &crate::asker())
    };
    let here = format!("{}/oap/intent", house.url);
    let refused = house.post("/oap/intent", &action("a")).await;
    let told = refused.refused(&house.node, 401, "audience_binding_required");
    assert_eq!(told["error"]["details"]["pointer"], "/category", "{told}");
    post_signed(&house, crate::asker, "n1", &here, &action("a")).await.ok(&house.node);
    // Signed for another node, sent by another, or sent a second time: none of it is meant for this one.
    let elsewhere = post_signed(&house, crate::asker, "n2", "https://other.example/oap/intent", &action("b")).await;
    assert_eq!(elsewhere.status.as_u16(), 401);
    let another = post_signed(&house, crate::provider, "n3", &here, &action("b")).await;
    another.refused(&house.node, 401, "audience_binding_required");
    assert_eq!(post_signed(&house, crate::asker, "n1", &here, &action("a")).await.status.as_u16(), 401);
    // Whoever asks for anything else is answered as ever, and so is everybody without the switch.
    house.post("/oap/intent", &crate::intent("c")).await.ok(&house.node);
    let open = House::open().await;
    open.post("/oap/intent", &action("d")).await.ok(&open.node);
}
