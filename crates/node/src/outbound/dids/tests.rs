//! DIDs against servers of our own, and against spellings that must not leave the house.

use super::super::tests::{Answer, Names, Server, door, ok, reply, start, test_network};
use super::super::{DoorPolicy, Lookup};
use super::*;
use rustls::RootCertStore;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const KEY: &str = "z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";

fn document(did: &str) -> Vec<u8> {
    let method = format!("{did}#key-1");
    let value = json::json!({
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": did,
        "verificationMethod": [
            {"id": method, "type": "Multikey", "controller": did, "publicKeyMultibase": KEY},
        ],
        "assertionMethod": [method],
    });
    value.to_string().into_bytes()
}

/// Answers each path below `/users/` with the document of its DID.
fn documents(method: &'static str) -> impl Fn(&str) -> Answer + Send + Sync + 'static {
    move |path| {
        let (port, path) = path.trim_start_matches('/').split_once('/').unwrap();
        let segments = path.trim_end_matches("/did.json").replace('/', ":");
        ok(&document(&format!("did:{method}:localhost%3A{port}:{port}:{segments}")))
    }
}

/// The DID whose document `documents` gives: it carries its port in the path, which the server cannot know otherwise.
fn did_at(server: &Server, method: &str, name: &str) -> Did {
    Did::parse(&format!("did:{method}:localhost%3A{0}:{0}:users:{name}", server.port)).unwrap()
}

fn dids() -> Dids {
    Dids::new(Arc::new(door(test_network())))
}

fn later(now: Instant, seconds: u64) -> Instant {
    now + Duration::from_secs(seconds)
}

async fn code(dids: &Dids, did: &Did, now: Instant) -> &'static str {
    dids.resolve(did, now).await.map_or_else(|error| error.code(), |_| "found")
}

#[tokio::test]
async fn a_did_key_needs_no_door() {
    let names = Names::new(&[]);
    let dids = shut(&names);
    let did = Did::parse(&format!("did:key:{KEY}")).unwrap();
    let document = dids.resolve(&did, start()).await.unwrap();
    assert_eq!((document.did(), document.signing_keys().count()), (&did, 1));
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn documents_of_did_web_and_did_wba_are_found() {
    for method in ["web", "wba"] {
        let server = Server::plain(documents(method)).await;
        let did = did_at(&server, method, "alice");
        let document = dids().resolve(&did, start()).await.unwrap();
        assert_eq!(document.did(), &did);
        assert_eq!(document.signing_keys().map(|(name, _)| name).collect::<Vec<_>>(), ["key-1"]);
    }
}

#[tokio::test]
async fn another_method_is_not_looked_up() {
    let did = Did::parse("did:plc:ewvi7nxzyoun6zhxrhs64oiz").unwrap();
    assert_eq!(code(&dids(), &did, start()).await, "did_method_unsupported");
}

#[tokio::test]
async fn every_bad_document_has_its_code_and_repeats_nothing() {
    const SECRET: &str = "hunter2-from-the-inner-network";
    let secret = SECRET.as_bytes();
    let header = format!("X-Secret: {SECRET}\r\nContent-Length: {}\r\n", secret.len());
    let twice = format!("{{\"id\":\"{SECRET}\",\"id\":\"{SECRET}\"}}");
    let large = [secret, &vec![b' '; 64 * 1024]].concat();
    let redirect = format!("Location: https://{SECRET}.example/\r\nContent-Length: 0\r\n");
    for (answer, expected) in [
        (ok(&document(&format!("did:web:{SECRET}.example"))), "did_document_invalid"),
        (ok(format!("{{\"id\":[\"{SECRET}\"]}}").as_bytes()), "did_document_invalid"),
        (ok(twice.as_bytes()), "did_document_invalid"),
        (ok(secret), "did_document_invalid"),
        (ok(b""), "did_document_invalid"),
        (ok(b"\xff\xfe\x00garbage"), "did_document_invalid"),
        (ok(&[b'['; 5_000]), "did_document_invalid"),
        (ok(&large), "did_document_too_large"),
        (reply("404 Not Found", &header, secret), "did_unresolvable"),
        (reply("500 Oops", &header, secret), "did_unresolvable"),
        (reply("410 Gone", &header, secret), "did_deactivated"),
        (reply("302 Found", &redirect, b""), "redirect_forbidden"),
        (reply("200 OK", &format!("Content-Encoding: gzip\r\n{header}"), secret), "content_encoding_not_supported"),
        (Answer::Whole(format!("{SECRET}\r\n\r\n").into_bytes()), "did_unresolvable"),
    ] {
        let server = Server::plain(move |_| answer.clone()).await;
        let did = did_at(&server, "web", "alice");
        let error = dids().resolve(&did, start()).await.unwrap_err();
        assert_eq!(error.code(), expected);
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    }
}

#[tokio::test]
async fn who_drips_is_an_upstream_timeout() {
    let server = Server::plain(|_| Answer::Drip(b"HTTP/1.1 200 OK\r\n\r\n{".to_vec())).await;
    let policy = DoorPolicy { total: Duration::from_millis(300), ..test_network() };
    let dids = Dids::new(Arc::new(door(policy)));
    assert_eq!(code(&dids, &did_at(&server, "web", "alice"), start()).await, "upstream_timeout");
}

#[tokio::test]
async fn who_proves_its_name_to_nobody_fails_tls_verification() {
    let server = Server::self_signed(documents("web")).await;
    assert_eq!(code(&dids(), &did_at(&server, "web", "alice"), start()).await, "tls_verification_failed");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_document_is_kept_five_minutes_and_not_longer() {
    let server = Server::plain(documents("web")).await;
    let (dids, did, now) = (dids(), did_at(&server, "web", "alice"), start());
    for (second, requests) in [(0, 1), (1, 1), (299, 1), (300, 2), (599, 2), (600, 3)] {
        assert_eq!(code(&dids, &did, later(now, second)).await, "found");
        assert_eq!(server.requests(), requests, "after {second} s");
    }
}

#[tokio::test]
async fn a_failure_is_kept_one_minute_and_then_asked_again() {
    let calls = AtomicUsize::new(0);
    let good = documents("web");
    let server = Server::plain(move |path| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => reply("404 Not Found", "Content-Length: 0\r\n", b""),
        _ => good(path),
    })
    .await;
    let (dids, did, now) = (dids(), did_at(&server, "web", "alice"), start());
    for (second, outcome, requests) in
        [(0, "did_unresolvable", 1), (59, "did_unresolvable", 1), (60, "found", 2), (61, "found", 2)]
    {
        assert_eq!(code(&dids, &did, later(now, second)).await, outcome, "after {second} s");
        assert_eq!(server.requests(), requests, "after {second} s");
    }
}

#[tokio::test]
async fn a_withdrawn_document_is_believed_until_its_time_and_never_after() {
    let calls = AtomicUsize::new(0);
    let good = documents("web");
    let server = Server::plain(move |path| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => good(path),
        _ => reply("410 Gone", "Content-Length: 0\r\n", b""),
    })
    .await;
    let (dids, did, now) = (dids(), did_at(&server, "web", "alice"), start());
    assert_eq!(code(&dids, &did, now).await, "found");
    assert_eq!(code(&dids, &did, later(now, 300)).await, "did_deactivated");
    // Somebody whose clock reads an earlier moment: the good document is still good for them, the failure hides nothing.
    assert_eq!(code(&dids, &did, later(now, 299)).await, "found");
    assert_eq!(code(&dids, &did, later(now, 359)).await, "did_deactivated");
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn ten_thousand_questions_about_one_did_are_one_fetch() {
    const ASKERS: usize = 10_000;
    let gate = Arc::new(Semaphore::new(0));
    let (held, good) = (Arc::clone(&gate), documents("web"));
    let server = Server::plain(move |path| match good(path) {
        Answer::Whole(bytes) => Answer::Gated(bytes, Arc::clone(&held)),
        other => other,
    })
    .await;
    let (dids, did, now) = (dids(), did_at(&server, "web", "alice"), start());
    let asking = Arc::new(AtomicUsize::new(0));
    let mut askers = JoinSet::new();
    for _ in 0..ASKERS {
        let (dids, did, asking) = (dids.clone(), did.clone(), Arc::clone(&asking));
        askers.spawn(async move {
            asking.fetch_add(1, Ordering::SeqCst);
            code(&dids, &did, now).await
        });
    }
    while asking.load(Ordering::SeqCst) < ASKERS || server.requests() == 0 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(ASKERS);
    while let Some(outcome) = askers.join_next().await {
        assert_eq!(outcome.unwrap(), "found");
    }
    assert_eq!(server.requests(), 1);
    assert!(dids.shared.memory().under_way.is_empty());
}

#[tokio::test]
async fn who_hangs_up_does_not_take_the_fetch_along() {
    let gate = Arc::new(Semaphore::new(0));
    let (held, good) = (Arc::clone(&gate), documents("web"));
    let server = Server::plain(move |path| match good(path) {
        Answer::Whole(bytes) => Answer::Gated(bytes, Arc::clone(&held)),
        other => other,
    })
    .await;
    let (dids, did, now) = (dids(), did_at(&server, "web", "alice"), start());
    let first = tokio::spawn({
        let (dids, did) = (dids.clone(), did.clone());
        async move { code(&dids, &did, now).await }
    });
    while server.requests() == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gate.add_permits(1);
    assert_eq!(code(&dids, &did, now).await, "found");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn random_names_of_one_domain_are_asked_sixty_times_a_minute() {
    let names = Names::new(&[]);
    let (dids, now) = (shut(&names), start());
    let mut limited = 0;
    for number in 0..10_000 {
        let did = Did::parse(&format!("did:web:r{number}.victim.com")).unwrap();
        limited += usize::from(code(&dids, &did, now).await == "did_resolution_rate_limited");
    }
    assert_eq!((names.asked(), limited), (60, 9_940));
    // It says nothing about the DID, so it is not remembered.
    let did = Did::parse("did:web:r9999.victim.com").unwrap();
    assert_eq!(code(&dids, &did, later(now, 60)).await, "did_unresolvable");
}

/// Dids behind the door of a release, with a resolver that counts.
fn shut(names: &Arc<Names>) -> Dids {
    let (policy, lookup) = (DoorPolicy::default(), Arc::clone(names) as Arc<dyn Lookup>);
    let reach = policy.reach();
    let door = Door::with(policy, reach, lookup, RootCertStore::empty()).unwrap();
    Dids::new(Arc::new(Door { silence: Duration::ZERO, ..door }))
}

#[tokio::test]
async fn spellings_that_lead_astray_are_refused_without_a_packet() {
    let names = Names::new(&[]);
    let dids = shut(&names);
    let long = "a".repeat(2_048);
    let mut checked = 0;
    for (id, expected) in [
        ("127.0.0.1", "did_host_forbidden"),
        ("127.0.0.1%3A6379", "did_host_forbidden"),
        ("127.0.0.1%3A8443", "did_host_forbidden"),
        ("127.1", "did_host_forbidden"),
        ("0x7f.1", "did_host_forbidden"),
        ("0x7f000001", "did_host_forbidden"),
        ("2130706433", "did_host_forbidden"),
        ("0177.0.0.1", "did_host_forbidden"),
        ("0", "did_host_forbidden"),
        ("0.0.0.0", "did_host_forbidden"),
        ("10.0.0.1", "did_host_forbidden"),
        ("192.168.0.1", "did_host_forbidden"),
        ("172.16.0.1:users:alice", "did_host_forbidden"),
        ("169.254.169.254", "did_host_forbidden"),
        ("169.254.169.254:latest:meta-data", "did_host_forbidden"),
        ("8.8.8.8", "did_host_forbidden"),
        ("localhost", "did_host_forbidden"),
        ("localhost%3A8443", "did_host_forbidden"),
        ("a.localhost", "did_host_forbidden"),
        ("metadata", "did_host_forbidden"),
        ("metadata.google.internal", "did_host_forbidden"),
        ("kubernetes.default.svc.cluster.local", "did_host_forbidden"),
        ("printer.local", "did_host_forbidden"),
        ("router.home.arpa", "did_host_forbidden"),
        ("db.corp", "did_host_forbidden"),
        ("x.onion", "did_host_forbidden"),
        ("example.com%3A22", "did_port_forbidden"),
        ("example.com%3A25", "did_port_forbidden"),
        ("example.com%3A80", "did_port_forbidden"),
        ("example.com%3A1023", "did_port_forbidden"),
        ("example.com%3A2375", "did_port_forbidden"),
        ("example.com%3A6379", "did_port_forbidden"),
        ("example.com%3A9200:a", "did_port_forbidden"),
        ("example.com%3A11211", "did_port_forbidden"),
        ("256.256.256.256", "invalid_did"),
        ("1.2.3.4.5", "invalid_did"),
        ("xn--a.com", "invalid_did"),
        ("localhost.", "invalid_did"),
        ("LOCALHOST", "invalid_did"),
        ("①②⑦.0.0.1", "invalid_did"),
        ("127。0。0。1", "invalid_did"),
        ("[::1]", "invalid_did"),
        ("[::ffff:10.0.0.1]", "invalid_did"),
        ("[64:ff9b::a9fe:a9fe]", "invalid_did"),
        ("[fe80::1%25eth0]", "invalid_did"),
        ("%5B%3A%3A1%5D", "invalid_did"),
        ("%31%32%37.0.0.1", "invalid_did"),
        ("user%40127.0.0.1", "invalid_did"),
        ("example.com%40127.0.0.1", "invalid_did"),
        ("example.com%2F..%2Fx", "invalid_did"),
        ("example.com%3Fq", "invalid_did"),
        ("example.com%23f", "invalid_did"),
        ("example.com%5Cx", "invalid_did"),
        ("example.com%00", "invalid_did"),
        ("example.com%0d%0aHost%3a", "invalid_did"),
        ("example.com:..", "invalid_did"),
        ("example.com:%2e%2e", "invalid_did"),
        ("example.com:a%2Fb", "invalid_did"),
        ("example.com::a", "invalid_did"),
        ("example.com:", "invalid_did"),
        ("example.com%3A", "invalid_did"),
        ("example.com%3A0", "invalid_did"),
        ("example.com%3A99999", "invalid_did"),
        ("example.com%3a443", "invalid_did"),
        ("example.com/x", "invalid_did"),
        ("example.com?x", "invalid_did"),
        ("example.com#x", "invalid_did"),
        ("example.com\\x", "invalid_did"),
        ("example.com x", "invalid_did"),
        ("", "invalid_did"),
        (long.as_str(), "invalid_did"),
    ] {
        for method in ["web", "wba"] {
            let error = match Did::parse(&format!("did:{method}:{id}")) {
                Ok(did) => dids.resolve(&did, start()).await.unwrap_err(),
                Err(error) => error.into(),
            };
            assert_eq!(error.code(), expected, "did:{method}:{id}");
            checked += 1;
        }
    }
    assert!(checked >= 120, "{checked}");
    assert_eq!(names.asked(), 0);
}
