//! Where others can read along there is TLS, and only 1.3.

use crate::{Answer, House, client_tls};
use reqwest::Method;
use server::{Patience, Tls};
use std::path::{Path, PathBuf};

/// A certificate for this machine, its key, and who trusts it.
pub(crate) fn certificate(folder: &tempfile::TempDir) -> (PathBuf, PathBuf, rustls::RootCertStore) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    open_to(&key, 0o640);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    (chain, key, roots)
}

fn open_to(key: &Path, mode: u32) {
    std::fs::set_permissions(key, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_1_3_is_spoken_and_nothing_older() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, key, roots) = certificate(&folder);
    let tls = Tls::read(&chain, &key).unwrap();
    let mut house = House::with(Patience::default(), Some(tls), None).await;
    for (version, answered) in [(&rustls::version::TLS13, true), (&rustls::version::TLS12, false)] {
        let config = client_tls(roots.clone(), &[version]);
        house.client = reqwest::Client::builder().tls_backend_preconfigured(config).no_proxy().build().unwrap();
        let sent = house.request(Method::GET, "/health").send().await;
        assert_eq!(sent.is_ok(), answered, "{sent:?}");
    }
    let config = client_tls(roots, &[&rustls::version::TLS13]);
    house.client = reqwest::Client::builder().tls_backend_preconfigured(config).no_proxy().build().unwrap();
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    assert!(manifest["endpoints"]["intent"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    let plain = house.client.get(house.url.replace("https", "http")).send().await;
    assert!(plain.is_err(), "plain HTTP gets no answer where TLS is spoken");
    // Whoever has no certificate is known by his address only, so any name will do here.
    let named = Answer::of(house.request(Method::GET, "/health").header("host", "node.example")).await;
    assert_eq!(named.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_cannot_be_used_is_said_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, key, _) = certificate(&folder);
    let missing = folder.path().join("missing.pem");
    let wrong = Tls::read(&chain, &missing).err().unwrap();
    assert!(wrong.to_string().contains("missing.pem"), "{wrong}");
    open_to(&key, 0o644);
    let open = Tls::read(&chain, &key).err().unwrap().to_string();
    assert!(open.contains("mode 644") && open.contains("chmod o="), "{open}");
    open_to(&key, 0o600);
    std::fs::write(&chain, "rubbish").unwrap();
    assert!(Tls::read(&chain, &key).is_err());
}
