//! What a running node owns, and how it starts and stops.

use crate::catalog::{Catalog, SEAL_AT};
use crate::clock::{Clock, instant};
use crate::folder::STORE;
use crate::identity::{self, Identity};
use crate::lanes::{Costly, Lane};
use crate::outbound::{Dids, Door, DoorPolicy};
use crate::refusal::{Class, Error, Refusal};
use crate::replies::Replies;
use crate::resolve::{Pages, delegates};
use aql::{Constraints, OverBudget};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use json::{Value, json};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use store::Store;
use tokio::sync::Semaphore;
use trust::Did;

/// How a node is to be run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where everything is kept.
    pub data: PathBuf,
    /// The address under which others reach the node; without one it is called by its key.
    pub public_url: Option<String>,
    /// Messages of one issuer in a second; no bound when absent.
    pub requests_per_second: Option<NonZeroU32>,
    /// Where candidates go that cost more than the budget.
    pub over_budget: OverBudget,
    /// Whom the node may ask.
    pub door: DoorPolicy,
    /// What tells the time.
    pub clock: Clock,
    /// Who answers for the node.
    pub operator: Operator,
}

/// Who answers for a node, as its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The name in law.
    pub name: String,
    /// Where people write to.
    pub contact_email: String,
    /// The countries whose law holds, as ISO 3166 codes of two letters.
    pub jurisdictions: Vec<String>,
}

impl Default for Operator {
    /// Nobody in particular: a name that promises nothing, an address that cannot exist, and no known country.
    fn default() -> Self {
        Self {
            name: "the operator of this node".into(),
            contact_email: "operator@node.invalid".into(),
            jurisdictions: vec!["ZZ".into()],
        }
    }
}

/// A node: answers, publishes, explains.
#[derive(Debug)]
pub struct Node {
    pub(crate) store: Store,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) replies: Replies,
    pub(crate) pages: Pages,
    pub(crate) identity: Identity,
    pub(crate) dids: Dids,
    pub(crate) clock: Clock,
    pub(crate) over_budget: OverBudget,
    /// What the category delegation demands of a manifest.
    pub(crate) delegates: Constraints,
    pub(crate) data: PathBuf,
    pub(crate) operator: Operator,
    pub(crate) requests_per_second: Option<NonZeroU32>,
    /// Held by whoever withdraws everything of a principal.
    pub(crate) deleting: Mutex<()>,
    quota: Option<DefaultKeyedRateLimiter<String>>,
    /// Jobs that run at once; more would only wait for the processors.
    workers: Semaphore,
    costly: Costly,
    keeper: Option<Keeper>,
}

/// Issuers that the quota remembers before it forgets those who have been quiet.
const ISSUERS_MAX: usize = 65_536;

/// Jobs that run at once on so many processors; a server needs two threads more.
pub fn turns(processors: usize) -> usize {
    processors.max(2)
}

impl Node {
    /// Opens the store, brings the index level with it, and is ready.
    ///
    /// `progress` hears how many changes of the log are read, and of how many.
    pub fn open(config: &Config, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, Error> {
        let store = open_store(config)?;
        Self::on(store, config, progress)
    }

    /// Opens a node after throwing away what can be made again from the log, so that it is made again.
    pub fn rebuild(config: &Config, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, Error> {
        // The open store is the proof that no other node uses the folder.
        let store = open_store(config)?;
        Catalog::discard(&config.data)?;
        Self::on(store, config, progress)
    }

    fn on(store: Store, config: &Config, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, Error> {
        let catalog = Arc::new(Catalog::open(&config.data, &store, progress)?);
        let replies = Replies::open(&config.data.join("replies"), config.clock.millis())
            .map_err(|error| cannot_use(&config.data, &error))?;
        let key = identity::key_of(&config.data)?;
        let identity = match config.public_url.as_deref().map(did_of).transpose()?.flatten() {
            Some(did) => Identity::named(key, did),
            None => Identity::of_key(key),
        };
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            store,
            replies,
            pages: Pages::default(),
            identity,
            dids: Dids::new(Arc::new(Door::new(config.door.clone()).map_err(Error::fault)?)),
            clock: config.clock.clone(),
            over_budget: config.over_budget,
            delegates: delegates()?,
            data: config.data.clone(),
            operator: config.operator.clone(),
            requests_per_second: config.requests_per_second,
            deleting: Mutex::default(),
            quota: config.requests_per_second.map(|rate| RateLimiter::keyed(Quota::per_second(rate))),
            workers: Semaphore::new(turns(processors)),
            costly: Costly::start()?,
            keeper: Some(Keeper::start(&catalog)?),
            catalog,
        })
    }

    /// Writes to disk what can be made again from the log, so that the next start is quick.
    pub fn close(mut self) -> Result<(), Error> {
        self.keeper.take();
        self.catalog.close()
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The clock it goes by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The truth it answers from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How many candidates of each collection are there.
    pub fn counts(&self) -> Result<Vec<(&'static str, u64)>, Error> {
        use crate::collection::Collection::{Actions, Evidence, Knowledge, Manifests, Offers, Receipts};
        let index = self.catalog.index()?;
        let named = [
            ("manifests", Manifests),
            ("offers", Offers),
            ("knowledge", Knowledge),
            ("receipts", Receipts),
            ("evidence", Evidence),
            ("actions", Actions),
        ];
        Ok(named.into_iter().map(|(name, collection)| (name, index.count(collection.label()))).collect())
    }

    /// Runs a job that computes, when it is its turn.
    ///
    /// It runs where it stands: handing it to another thread would cost more than most answers take. There are more
    /// threads than turns, so that somebody is always free to serve the others.
    pub(crate) async fn work<T>(&self, job: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let _turn = self.workers.acquire().await.map_err(Error::fault)?;
        job()
    }

    /// Runs the answer to a question in its lane.
    pub(crate) async fn work_in<T: Send + 'static>(
        &self,
        lane: Lane,
        job: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match lane {
            Lane::Cheap => self.work(job).await,
            Lane::Costly => self.costly.run(job).await,
        }
    }

    pub(crate) fn check_quota(&self, issuer: &str) -> Result<(), Error> {
        let Some(quota) = &self.quota else { return Ok(()) };
        // The table is swept when it is large, so that invented names do not fill it.
        if quota.len() > ISSUERS_MAX {
            quota.retain_recent();
        }
        quota.check_key(&issuer.to_owned()).map_err(|_| {
            let mut refusal = Refusal::new(
                Class::RateLimited,
                "too_many_requests",
                "this issuer sends more than the node answers; wait",
            );
            refusal.retry_after_ms = Some(1_000);
            refusal.into()
        })
    }

    /// Something this node says, in the core protocol's signed envelope.
    pub(crate) fn envelope(&self, request_id: &str, output: Value, at: i64) -> Vec<u8> {
        let response_id = format!("urn:rialto:response:{}", trust::Digest::of(request_id.as_bytes()));
        self.identity.sign(json!({
            "oap_version": "1.0",
            "request_id": request_id,
            "response_id": response_id,
            "timestamp": instant(at).to_string(),
            "status": "ok",
            "output": output,
        }))
    }

    /// A refusal in the core protocol's signed envelope: code, place, limit, and nothing of the message.
    pub fn refuse(&self, request_id: &str, refusal: &Refusal) -> Vec<u8> {
        let mut details = json!({
            "type": "oap.error",
            "code": refusal.code,
            "pointer": refusal.at.as_str(),
            "resolver_did": self.identity.did().as_str(),
        });
        if let Some(members) = details.as_object_mut() {
            if let Some(limit) = &refusal.limit {
                members.insert("limit".into(), json!({"name": limit.name, "max": limit.max, "got": limit.got}));
            }
            if let Some(retry) = refusal.retry_after_ms {
                members.insert("retry_after_ms".into(), json!(retry));
            }
        }
        self.identity.sign(json!({
            "oap_version": "1.0",
            "request_id": request_id,
            "response_id": format!("urn:rialto:refusal:{request_id}"),
            "timestamp": self.clock.now().to_string(),
            "status": "error",
            "error": {"code": refusal.class.name(), "message": refusal.detail, "details": details},
        }))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The keeper holds the catalog; it must be gone before the files may be opened again.
        self.keeper.take();
    }
}

fn open_store(config: &Config) -> Result<Store, Error> {
    std::fs::create_dir_all(&config.data).map_err(|error| cannot_use(&config.data, &error))?;
    Store::open(&config.data.join(STORE)).map_err(Error::fault)
}

/// Runs a job where waiting for the disk holds nobody up; it stays inside the span of its request.
pub(crate) async fn off_thread<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(job)).await.map_err(Error::fault)?
}

/// The DID of an address: did:web for a public one, none for plain HTTP, which proves nothing.
fn did_of(url: &str) -> Result<Option<Did>, Error> {
    let Some(host) = url.strip_prefix("https://") else { return Ok(None) };
    let host = host.trim_end_matches('/').replace(':', "%3A").replace('/', ":");
    Did::parse(&format!("did:web:{host}")).map(Some).map_err(|error| Error::fault(format!("`{url}`: {error}")))
}

fn cannot_use(folder: &Path, error: &std::io::Error) -> Error {
    Error::fault(format!("the data folder {} cannot be used: {error}", folder.display()))
}

/// Writes the index to disk while the node goes on.
#[derive(Debug)]
struct Keeper {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(catalog: &Arc<Catalog>) -> Result<Self, Error> {
        let catalog = Arc::clone(catalog);
        let (stop, stopped) = channel();
        let run = move || {
            while stopped.recv_timeout(Duration::from_millis(500)) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = catalog.seal(SEAL_AT) {
                    tracing::error!(%error, "the index cannot be written to disk; questions go on from memory");
                }
            }
        };
        let thread = std::thread::Builder::new().name("index-keeper".into()).spawn(run).map_err(Error::fault)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
