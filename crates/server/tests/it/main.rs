//! The door in, over real connections: a node behind its router behind a socket.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]
#![expect(clippy::disallowed_methods, reason = "how long the node waits is measured here")]

mod agents;
mod caller;
mod edge;
mod engagements;
mod hosting;
mod interface;
mod owed;
mod routes;
mod sockets;
mod subscriptions;
#[cfg(feature = "otel")]
mod telemetry;
mod tls;
mod versions;
mod webhooks;

use json::{Document, Limits, Value, json};
use node::{Clock, Config, Node};
use reqwest::{Method, StatusCode};
use server::{Bounds, Listening, Patience, Tls};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use trust::SigningKey;

/// 2026-05-01T12:00:00Z, when everything here happens.
const NOW: i64 = 1_777_636_800_000;

/// A node that serves, and a client of it.
struct House {
    url: String,
    node: Arc<Node>,
    client: reqwest::Client,
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<()>>,
}

/// An answer as it came.
struct Answer {
    status: StatusCode,
    headers: reqwest::header::HeaderMap,
    bytes: Vec<u8>,
}

impl House {
    async fn open() -> Self {
        Self::with(Patience::default(), None, None).await
    }

    async fn with(patience: Patience, tls: Option<Tls>, public_url: Option<&str>) -> Self {
        Self::built(patience, tls, public_url, |bounds| bounds, |_| {}).await
    }

    async fn bounded(bound: impl FnOnce(Bounds) -> Bounds) -> Self {
        Self::built(Patience::default(), None, None, bound, |_| {}).await
    }

    async fn configured(configure: impl FnOnce(&mut Config)) -> Self {
        Self::built(Patience::default(), None, None, |bounds| bounds, configure).await
    }

    async fn built(
        patience: Patience,
        tls: Option<Tls>,
        public_url: Option<&str>,
        bound: impl FnOnce(Bounds) -> Bounds,
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::Set(Arc::new(AtomicI64::new(NOW)));
        let mut config = Config {
            data: folder.path().to_owned(),
            clock,
            door: node::DoorPolicy { private_networks: true, ..node::DoorPolicy::default() },
            ..Config::default()
        };
        configure(&mut config);
        let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
        let listening = Listening::on("127.0.0.1:0".parse().unwrap(), tls).await.unwrap().with_patience(patience);
        let bounds = bound(listening.bounds());
        let listening = listening.with_bounds(bounds);
        let url = listening.url();
        let router = server::router(Arc::clone(&node), public_url, listening.is_tls());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server::serve(listening, Arc::clone(&node), router, async {
            let _ = stopped.await;
        }));
        let tls = client_tls(rustls::RootCertStore::empty(), rustls::DEFAULT_VERSIONS);
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap();
        Self { url, node, client, folder, stop: Some(stop), served: Some(served) }
    }

    /// Asks the node to stop and waits until it has.
    async fn close(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.served.take().unwrap().await.unwrap();
    }

    /// Host and port.
    fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).timeout(Duration::from_secs(20))
    }

    async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self.request(method, path).header("content-type", "application/json");
        Answer::of(request.body(body.to_string())).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body).await
    }

    /// Publishes a record and expects it to be kept.
    async fn publish(&self, name: &str, kind: &str, record: Value) -> Value {
        let body = publication(&provider(), name, kind, record);
        self.post("/oap/records", &body).await.ok(&self.node)
    }
}

impl Answer {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, bytes: response.bytes().await.unwrap().to_vec() }
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no `{name}`")).to_str().unwrap()
    }

    fn json(&self) -> Value {
        let read = Document::parse(&self.bytes, &Limits::OURS);
        read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes))).root().to_value()
    }

    /// A document that the node signed: checked, in canonical form.
    #[track_caller]
    fn signed(&self, node: &Node) -> Value {
        let value = self.json();
        assert_eq!(self.bytes, json::canonical_value(&value), "canonical");
        assert!(self.header("content-type").starts_with("application/oap+json"));
        let document = Document::of(&value).unwrap();
        let keys =
            trust::DidDocument::read(Document::of(&node.identity().document()).unwrap().root(), node.identity().did());
        trust::Signed::read(&document).unwrap().verify_with(&keys.unwrap()).unwrap();
        value
    }

    #[track_caller]
    fn ok(&self, node: &Node) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", String::from_utf8_lossy(&self.bytes));
        self.signed(node)
    }

    /// A refusal: the status, a signed envelope that our schema allows, and the code.
    #[track_caller]
    fn refused(&self, node: &Node, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.bytes));
        let envelope = self.signed(node);
        interface::valid("oap-response-envelope.schema.json", &envelope);
        assert_eq!(envelope["error"]["details"]["code"], code, "{envelope:#}");
        assert_eq!(envelope["request_id"], self.header("oap-request-id"), "the envelope names the request");
        envelope
    }
}

fn client_tls(
    roots: rustls::RootCertStore,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn provider() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

fn asker() -> SigningKey {
    SigningKey::from_seed([2; 32])
}

fn sign(mut body: Value, key: &SigningKey) -> Value {
    trust::sign(&mut body, key).unwrap();
    body
}

fn publication(key: &SigningKey, name: &str, kind: &str, record: Value) -> Value {
    let body = json!({
        "publication_id": format!("urn:rialto:publication:{name}"),
        "kind": kind,
        "record": record,
        "publisher_did": key.did_key().as_str(),
        "issued_at": "2026-05-01T11:59:00Z",
    });
    sign(body, key)
}

fn withdrawal(key: &SigningKey, name: &str, id: &str) -> Value {
    let body = json!({
        "publication_id": format!("urn:rialto:publication:{name}"),
        "withdraw": id,
        "publisher_did": key.did_key().as_str(),
        "issued_at": "2026-05-01T11:59:30Z",
    });
    sign(body, key)
}

/// A manifest of the provider, as far as questions here look at it.
fn manifest() -> Value {
    json!({
        "oap_version": "1.0",
        "tool": {"did": provider().did_key().as_str(), "name": "Lagoon Translations", "categories": ["translation"]},
        "pricing": {"models": [{"type": "per_call", "amount": "0.20", "currency": "EUR"}]},
        "risk_class": "minimal",
    })
}

fn intent(name: &str) -> Value {
    let body = json!({
        "intent_id": format!("urn:oap:intent:{name}"),
        "issuer_did": asker().did_key().as_str(),
        "category": "discovery",
        "constraints": {"path": "/tool/categories", "operator": "contains", "value": "translation"},
        "projection": {"include": ["/tool/did", "/tool/name"]},
        "budget": {"amount": "0.50", "currency": "EUR", "allocation": "single_winner"},
        "validity": {"from": "2026-05-01T11:55:00Z", "to": "2026-05-01T12:55:00Z"},
    });
    sign(body, &asker())
}

/// An id as it stands in an address.
fn escaped(id: &str) -> String {
    id.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
