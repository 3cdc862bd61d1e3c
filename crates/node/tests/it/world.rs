//! A node in a folder of its own, people with keys, and a clock that is set by hand.

use aql::{Audit, Intent, Limits};
use json::{Document, Value, json};
use node::{Clock, Config, DoorPolicy, Error, Node};
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use trust::SigningKey;

/// 2026-03-01T12:00:00Z, in milliseconds since 1970.
pub(crate) const NOON: i64 = 1_772_366_400_000;

pub(crate) struct World {
    node: Option<Arc<Node>>,
    pub(crate) config: Config,
    pub(crate) millis: Arc<AtomicI64>,
    pub(crate) runtime: Runtime,
    /// Gone with the world.
    _folder: TempDir,
}

/// Somebody with a key.
pub(crate) fn person(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

pub(crate) fn did(key: &SigningKey) -> String {
    key.did_key().to_string()
}

pub(crate) fn sign(mut body: Value, key: &SigningKey) -> Vec<u8> {
    trust::sign(&mut body, key).unwrap();
    json::canonical_value(&body)
}

/// A number that nobody else got.
pub(crate) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An intent of a person with a name of its own; `with` overrides its members.
pub(crate) fn intent(issuer: &SigningKey, with: Value) -> Value {
    let mut intent = json!({
        "intent_id": format!("urn:oap:intent:{}", unique()),
        "issuer_did": did(issuer),
        "category": "discovery",
        "constraints": {"path": "/tool/did", "operator": "exists", "value": true},
        "projection": {"include": ["/tool/did"]},
        "validity": {"from": "2026-03-01T11:00:00Z", "to": "2026-03-01T13:00:00Z"},
    });
    intent.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    intent
}

/// A publication of a person with a name of its own.
pub(crate) fn publication(publisher: &SigningKey, kind: &str, record: Value) -> Value {
    json!({
        "publication_id": format!("urn:rialto:publication:{}", unique()),
        "kind": kind,
        "record": record,
        "publisher_did": did(publisher),
        "issued_at": "2026-03-01T12:00:00Z",
    })
}

pub(crate) fn withdrawal(publisher: &SigningKey, id: &str) -> Value {
    json!({
        "publication_id": format!("urn:rialto:publication:{}", unique()),
        "withdraw": id,
        "publisher_did": did(publisher),
        "issued_at": "2026-03-01T12:00:00Z",
    })
}

/// A manifest of a tool that its publisher stands for.
pub(crate) fn manifest(publisher: &SigningKey, name: &str, with: Value) -> Value {
    let mut manifest = json!({
        "oap_version": "1.0",
        "tool": {"did": format!("did:web:{name}.example"), "publisher": {"did": did(publisher)}},
    });
    manifest.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    manifest
}

/// The code of a refusal; a fault is a bug.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> &'static str {
    match outcome {
        Err(Error::Refusal(refusal)) => refusal.code,
        other => panic!("no refusal: {other:?}"),
    }
}

pub(crate) fn parse(bytes: &[u8]) -> Document {
    Document::parse(bytes, &json::Limits::OURS).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(set: impl FnOnce(&mut Config)) -> Self {
        let (folder, millis) = (tempfile::tempdir().unwrap(), Arc::new(AtomicI64::new(NOON)));
        let door = DoorPolicy { private_networks: true, ..DoorPolicy::default() };
        let clock = Clock::Set(Arc::clone(&millis));
        let mut config = Config { data: folder.path().join("data"), clock, door, ..Config::default() };
        set(&mut config);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = Some(Arc::new(Node::open(&config, &mut |_, _| {}).unwrap()));
        Self { node, config, millis, runtime, _folder: folder }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.node.as_ref().unwrap()
    }

    fn leave(&mut self) -> Node {
        Arc::try_unwrap(self.node.take().unwrap()).unwrap()
    }

    fn enter(&mut self) {
        self.node = Some(Arc::new(Node::open(&self.config, &mut |_, _| {}).unwrap()));
    }

    /// Stops the node in an orderly way and starts it again.
    pub(crate) fn reopen(&mut self) {
        self.leave().close().unwrap();
        self.enter();
    }

    /// Drops the node as it is and starts it again.
    pub(crate) fn crash(&mut self) {
        drop(self.leave());
        self.enter();
    }

    /// Stops the node, changes its database behind its back, and starts it again.
    pub(crate) fn alter_store(&mut self, statement: &str) {
        drop(self.leave());
        let database = rusqlite::Connection::open(self.config.data.join("store/rialto.db")).unwrap();
        database.execute_batch(statement).unwrap();
        drop(database);
        self.enter();
    }

    /// Starts it again without the index.
    pub(crate) fn forget_index(&mut self) {
        drop(self.leave());
        self.node = Some(Arc::new(Node::rebuild(&self.config, &mut |_, _| {}).unwrap()));
    }

    pub(crate) fn answer(&self, message: &[u8], cursor: Option<&str>) -> Result<Vec<u8>, Error> {
        self.runtime.block_on(self.node().answer(message, cursor))
    }

    pub(crate) fn explain(&self, message: &[u8], candidate: Option<&str>) -> Result<Value, Error> {
        let mut request = json!({"intent": parse(message).root().to_value()});
        if let Some(candidate) = candidate {
            request["candidate_id"] = json!(candidate);
        }
        let answer = self.runtime.block_on(self.node().explain(&json::canonical_value(&request)))?;
        Ok(self.opened(&answer))
    }

    pub(crate) fn publish(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.runtime.block_on(self.node().publish(message))
    }

    pub(crate) fn withdraw(&self, id: &str, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.runtime.block_on(self.node().withdraw(id, message))
    }

    /// Publishes a record that must be taken.
    #[track_caller]
    pub(crate) fn put(&self, publisher: &SigningKey, kind: &str, record: Value) -> Value {
        let acknowledged = self.publish(&sign(publication(publisher, kind, record), publisher)).unwrap();
        self.opened(&acknowledged)
    }

    #[track_caller]
    pub(crate) fn take_back(&self, publisher: &SigningKey, id: &str) -> Value {
        let acknowledged = self.withdraw(id, &sign(withdrawal(publisher, id), publisher)).unwrap();
        self.opened(&acknowledged)
    }

    /// Brings bare records in at once.
    #[track_caller]
    pub(crate) fn import(&self, kind: &str, records: &[Value]) {
        let lines: Vec<u8> =
            records.iter().flat_map(|record| [json::canonical_value(record), vec![b'\n']].concat()).collect();
        let imported = self.node().import(Cursor::new(lines), store::Kind::parse(kind), &mut |_| {}).unwrap();
        assert_eq!((imported.refused, imported.lines), (0, records.len() as u64));
    }

    /// What a signed envelope of this node says.
    #[track_caller]
    pub(crate) fn opened(&self, envelope: &[u8]) -> Value {
        let document = parse(envelope);
        let keys = trust::DidDocument::of_key(self.node().identity().did()).unwrap();
        trust::Signed::read(&document).unwrap().verify_with(&keys).unwrap();
        let said = document.root().to_value();
        assert_eq!((&said["oap_version"], &said["status"]), (&json!("1.0"), &json!("ok")));
        said["output"].clone()
    }

    /// Reads an answer that must be signed by this node and break no rule; `before` candidates stood on earlier pages.
    #[track_caller]
    pub(crate) fn audited(&self, message: &[u8], answer: &[u8], before: usize) -> Value {
        let document = parse(answer);
        let verified = trust::verify_did_key(&document, "resolver_did").unwrap();
        assert_eq!(verified.signer(), self.node().identity().did());
        assert_eq!(json::canonical(document.root()), answer, "the answer is not in canonical form");
        let (intent, _) = Intent::parse(message, &Limits::STANDARD).unwrap();
        let Audit { violations, untold, .. } = aql::audit(&intent, document.root(), &Limits::STANDARD, before);
        assert!(violations.is_empty() && untold == 0, "{violations:?}\n{}", String::from_utf8_lossy(message));
        document.root().to_value()
    }

    /// All pages of the answer to an intent, each of them audited.
    #[track_caller]
    pub(crate) fn pages(&self, message: &[u8]) -> Result<Vec<Value>, Error> {
        let (mut pages, mut before, mut cursor) = (Vec::new(), 0, None::<String>);
        loop {
            let answer = self.answer(message, cursor.as_deref())?;
            let page = self.audited(message, &answer, before);
            before += page["candidates"].as_array().unwrap().len();
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            pages.push(page);
            if cursor.is_none() {
                return Ok(pages);
            }
        }
    }

    /// Asks with a new intent and returns its only page.
    #[track_caller]
    pub(crate) fn ask(&self, issuer: &SigningKey, with: Value) -> Value {
        let message = sign(intent(issuer, with), issuer);
        let mut pages = self.pages(&message).unwrap();
        assert_eq!(pages.len(), 1);
        pages.remove(0)
    }

    /// Bytes in the folder of answers and the last change of the store: what a refused message must not move.
    pub(crate) fn written(&self) -> (u64, u64) {
        let files = std::fs::read_dir(self.config.data.join("replies")).unwrap();
        let bytes = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        (bytes, self.node().store().sequence())
    }
}

/// The ids of the candidates of a page.
pub(crate) fn ids(page: &Value) -> Vec<String> {
    page["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["candidate_id"].as_str().unwrap().to_owned())
        .collect()
}
