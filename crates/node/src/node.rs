//! What a running node owns, and how it starts and stops.

use crate::agents::Agents;
use crate::announce::Edge;
use crate::catalog::Catalog;
use crate::clock::{Clock, Kept, instant};
use crate::collection::Collection;
use crate::feeds::{Brought, Courier, Feeds, Parts, Postman};
use crate::filer::Filer;
use crate::folder::{METER, STORE};
use crate::identity::{Identity, Keys};
use crate::lanes::{Costly, Lane, stands_back};
use crate::meter::Meter;
use crate::outbound::{Dids, Door, DoorPolicy};
use crate::policy::Rules;
use crate::quota::{Ledger, Purpose, Quotas};
use crate::refusal::{Error, Refusal};
use crate::replies::Replies;
use crate::resolve::{Accepted, Pages, delegates};
use crate::source;
use crate::tokens::Tokens;
use crate::versions::{Versions, announced};
use crate::witness::Witness;
use aql::{Constraints, OverBudget};
use feed::subscription::{RETENTION_DAYS, RETENTION_DAYS_MIN};
use json::{Value, json};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Batch, CommitError, Committed, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use tokio::time::Instant;
use tracing::Instrument;
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
    /// Somebody whose signature nobody can check and whose discovery intents are answered all the same: the issuer of
    /// the public suite's probe. For a node on loopback only.
    pub unverified_issuer: Option<Did>,
    /// What tells the time.
    pub clock: Clock,
    /// Who answers for the node.
    pub operator: Operator,
    /// Days for which subscribers can read again what they were told; a month when absent, a week at least.
    pub feed_retention_days: Option<u32>,
    /// Questions of one owner in a day that differ; no bound when absent.
    pub questions_per_day: Option<NonZeroU32>,
    /// A file outside the data folder that remembers how far the history had come.
    pub witness: Option<PathBuf>,
    /// Who publishes a schema, where that is not the host of its URL.
    pub schema_publishers: Vec<(schema::SchemaId, Did)>,
    /// Whether the node is called did:wba, not did:web, by the address under which others reach it.
    pub wba: bool,
    /// Whether the older authentication header of ANP is taken, for requests that only read.
    pub legacy_authentication: bool,
    /// Whether signed intents are also answered as calls that nobody proves to have sent.
    pub anonymous_search: bool,
    /// Whether intents for actions are decided about only when they are meant for this node (decisions/0256).
    pub audience_binding: bool,
    /// The bounds at the edge, as the manifest tells them; whoever serves keeps them.
    pub edge: Edge,
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
    pub(crate) store: Arc<Store>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) replies: Replies,
    pub(crate) meter: Meter,
    pub(crate) pages: Pages,
    pub(crate) tokens: Tokens,
    pub(crate) identity: Arc<Identity>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) dids: Dids,
    /// What is sent to addresses that others chose goes through it.
    pub(crate) door: Arc<Door>,
    pub(crate) clock: Clock,
    pub(crate) unverified_issuer: Option<Did>,
    pub(crate) over_budget: OverBudget,
    /// What the category delegation demands of a manifest.
    pub(crate) delegates: Constraints,
    pub(crate) data: PathBuf,
    pub(crate) operator: Operator,
    pub(crate) edge: Edge,
    /// What the operator does not let through.
    pub(crate) rules: Rules,
    pub(crate) requests_per_second: Option<NonZeroU32>,
    pub(crate) legacy_authentication: bool,
    anonymous_search: bool,
    pub(crate) audience_binding: bool,
    /// Those it publishes beside itself.
    pub(crate) agents: Agents,
    /// When it began, in milliseconds since 1970; what it says of itself is as old.
    pub(crate) began: i64,
    /// Held by whoever withdraws everything of a principal.
    pub(crate) deleting: Mutex<()>,
    quota: Option<Quotas>,
    ledger: Option<Ledger>,
    witness: Option<Arc<Witness>>,
    turns: Turns,
    /// Whose threads wait for the disk.
    threads: OnceLock<tokio::runtime::Handle>,
    costly: Costly,
    filer: Filer,
    keeper: Option<Keeper>,
    courier: Option<Courier>,
    postman: Option<Postman>,
}

/// Jobs that run or wait for their turn; whoever comes on top is told so at once.
const JOBS_MAX: usize = 1_024;
/// How long a job waits for its turn.
const TURN_TIME: Duration = Duration::from_secs(2);
/// Jobs that wait for the disk at a time, fewer than there are threads for that.
const DISK_JOBS_MAX: usize = 256;

/// Threads for a server on so many processors, and so the jobs that run at once: with more, they would only take the
/// processors from each other (decisions/0330).
pub fn threads(processors: usize) -> usize {
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
        let clock = Kept::open(&config.clock, &config.data, last_change(&store)?);
        let began = clock.millis();
        let replies = Replies::open(&config.data.join("replies"), clock.millis())
            .map_err(|error| cannot_use(&config.data, &error))?;
        let meter =
            Meter::open(&config.data.join(METER), clock.millis()).map_err(|error| cannot_use(&config.data, &error))?;
        let method = if config.wba { "wba" } else { "web" };
        let did = config.public_url.as_deref().map(|url| did_of(url, method)).transpose()?.flatten();
        if config.unverified_issuer.is_some() && did.is_some() {
            return Err(Error::fault("a node with a public name answers nobody whose signature cannot be checked"));
        }
        let keys = Keys::open(&config.data)?.settle(&config.data, clock.millis(), did.is_some())?;
        let identity = match did {
            Some(did) => Identity::named(keys, did, clock.clone()),
            None => Identity::of_key(keys, clock.clone()),
        };
        let door = Door::new(config.door.clone()).map_err(Error::fault)?;
        if door.is_rootless() {
            tracing::warn!(
                "no CA certificates were found, so only did:key can be verified; install the system's bundle or name one \
                 in SSL_CERT_FILE"
            );
        }
        let pinned = &config.schema_publishers;
        let versions = Arc::new(Versions::open(&config.data, &identity, pinned, config.public_url.as_deref(), &clock)?);
        versions.adopt(announced(&store, &catalog)?);
        let (store, identity, door) = (Arc::new(store), Arc::new(identity), Arc::new(door));
        let witness = config.witness.as_deref().map(|path| Witness::open(path, &store, identity.did())).transpose()?;
        let witness = witness.map(Arc::new);
        let dids = Dids::new(Arc::clone(&door));
        let feeds = Feeds::open(Parts {
            store: Arc::clone(&store),
            catalog: Arc::clone(&catalog),
            identity: Arc::clone(&identity),
            clock: config.clock.clone(),
            over_budget: config.over_budget,
            retention_days: config.feed_retention_days.unwrap_or(RETENTION_DAYS).max(RETENTION_DAYS_MIN),
        })?;
        Ok(Self {
            store: Arc::clone(&store),
            courier: Some(Courier::start(&feeds)?),
            postman: Some(Postman::start(&feeds, Arc::clone(&door), dids.clone())?),
            feeds,
            replies,
            meter,
            pages: Pages::default(),
            tokens: Tokens::default(),
            identity,
            dids,
            door,
            keeper: Some(Keeper::start(&catalog, &versions, &clock, witness.clone(), &store)?),
            versions,
            witness,
            ledger: config.questions_per_day.map(Ledger::new),
            clock,
            unverified_issuer: config.unverified_issuer.clone(),
            over_budget: config.over_budget,
            delegates: delegates()?,
            data: config.data.clone(),
            operator: config.operator.clone(),
            edge: config.edge,
            rules: Rules::in_folder(&config.data)?,
            requests_per_second: config.requests_per_second,
            legacy_authentication: config.legacy_authentication,
            anonymous_search: config.anonymous_search,
            audience_binding: config.audience_binding,
            agents: Agents::default(),
            began,
            deleting: Mutex::default(),
            quota: config.requests_per_second.map(Quotas::new),
            turns: Turns::default(),
            threads: OnceLock::new(),
            costly: Costly::start()?,
            filer: Filer::start(&catalog, &store)?,
            catalog,
        })
    }

    /// Writes to disk what can be made again from the log, so that the next start is quick.
    pub fn close(mut self) -> Result<(), Error> {
        self.courier.take();
        self.postman.take();
        self.keeper.take();
        self.clock.keep_now();
        self.versions.keep_now(self.clock.millis());
        if let Some(witness) = &self.witness {
            witness.note(&self.store)?;
        }
        self.catalog.close()
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Jobs that wait for the disk are run on the threads of this runtime, whoever asks for them; the first word counts.
    pub fn waits_on(&self, threads: &tokio::runtime::Handle) {
        self.threads.get_or_init(|| threads.clone());
    }

    /// The clock it goes by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether calls are answered that nobody proves to have sent.
    pub fn answers_anonymous(&self) -> bool {
        self.anonymous_search
    }

    /// Whether intents for actions are decided about only when they are meant for this node.
    pub fn binds_audience(&self) -> bool {
        self.audience_binding
    }

    /// Whether what is on disk does not get into the index, so that answers miss it.
    pub fn is_behind(&self) -> bool {
        self.filer.is_behind()
    }

    /// The truth it answers from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How many standing intents there are, and how many changes of the log they are not told of yet.
    pub fn standing(&self) -> Result<(usize, u64), Error> {
        self.feeds.gauge()
    }

    /// How many journals of standing intents are full, so that their subscribers are told nothing.
    pub fn full_journals(&self) -> Result<usize, Error> {
        self.feeds.full_journals()
    }

    /// Figures about what is brought to subscribers.
    pub fn brought(&self) -> Brought {
        self.feeds.brought_figures()
    }

    /// How many candidates of each collection are there.
    pub fn counts(&self) -> Result<Vec<(&'static str, u64)>, Error> {
        let indexes = self.catalog.indexes()?;
        // How much is restricted is nobody's business.
        let told = Collection::ALL.into_iter().filter(|collection| *collection != Collection::Restricted);
        Ok(told.map(|collection| (collection.name(), indexes.of(collection).count())).collect())
    }

    /// Runs a job that computes, when it is its turn.
    ///
    /// It runs where it stands: handing it to another thread would cost more than most answers take.
    pub(crate) async fn work<T>(&self, job: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        // Whoever stands back is one thread, which takes its turns by itself.
        let _turn = if stands_back() { None } else { Some(self.turns.take().await?) };
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

    /// Runs a job where waiting for the disk holds nobody up; it stays inside the span of its request.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.place()?;
        let span = tracing::Span::current();
        let job = source::carried(job);
        let job = move || {
            // The place is given back when the job ends, not when somebody stops waiting for it.
            let _place = place;
            span.in_scope(job)
        };
        // What is written is waited for by others: it is never done at a low priority.
        self.threads().spawn_blocking(job).await.map_err(Error::fault)?
    }

    /// A place among those who wait for the disk; whoever finds none is told so at once.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        Ok(Arc::clone(&self.turns.disk).try_acquire_owned().map_err(|_| Refusal::overloaded())?)
    }

    fn threads(&self) -> tokio::runtime::Handle {
        self.threads.get().cloned().unwrap_or_else(tokio::runtime::Handle::current)
    }

    /// Writes a batch; nobody's thread waits for the disk.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Result<Committed, CommitError>, Error> {
        let (reply, committed) = oneshot::channel();
        self.store.commit_then(batch, move |committed| drop(reply.send(committed)));
        committed.await.map_err(|_| Error::fault("the store has stopped writing"))
    }

    /// Waits until everything that is on disk is in the index.
    pub(crate) async fn level(&self) -> Result<(), Error> {
        self.filer.level().await
    }

    /// Does something to its end, also when whoever asked for it has gone meanwhile, and never at a low priority.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        deed: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.threads().spawn(deed.in_current_span()).await.map_err(Error::fault)?
    }

    /// Counts a message of somebody whose signature holds; nobody can use up another's quota.
    pub(crate) fn charge(&self, issuer: &Did, purpose: Purpose) -> Result<(), Error> {
        let charge = |quota: &Quotas| quota.charge(issuer, purpose, source::current(), self.clock.millis());
        Ok(self.quota.as_ref().map_or(Ok(()), charge)?)
    }

    /// Counts a question of somebody whose signature holds, where the operator answers so many in a day.
    pub(crate) fn charge_question(&self, accepted: &Accepted) -> Result<(), Error> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let question = accepted.document.root().get("constraints").map(json::canonical).unwrap_or_default();
        Ok(ledger.charge(&accepted.issuer, &question, self.clock.millis())?)
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
            if let Some((name, said)) = refusal.said.as_deref() {
                members.insert((*name).into(), said.clone());
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
        // They hold files; they must be gone before those may be opened again.
        self.courier.take();
        self.postman.take();
        self.keeper.take();
    }
}

fn open_store(config: &Config) -> Result<Store, Error> {
    store::make_folder(&config.data).map_err(|error| cannot_use(&config.data, &error))?;
    Store::open(&config.data.join(STORE)).map_err(Error::fault)
}

/// When the last change was made, in milliseconds since 1970: the node has been at least there.
fn last_change(store: &Store) -> Result<i64, Error> {
    let last = store.changes_after(store.sequence().saturating_sub(1), 1)?;
    Ok(last.first().map(|change| change.at).unwrap_or_default())
}

/// Who runs, who waits, and how many.
#[derive(Debug)]
struct Turns {
    jobs: Semaphore,
    disk: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        let [jobs, disk] = [JOBS_MAX, DISK_JOBS_MAX].map(Semaphore::new);
        Self { jobs, disk: Arc::new(disk) }
    }
}

impl Turns {
    /// Waits for a turn, and not for long: whoever is told soon can go elsewhere.
    ///
    /// Threads take jobs in the order in which they came. So it is enough to stand in line once: everybody who was heard
    /// meanwhile is counted, and whoever waited too long knows it.
    async fn take(&self) -> Result<SemaphorePermit<'_>, Error> {
        let job = self.jobs.try_acquire().map_err(|_| Refusal::overloaded())?;
        let came = Instant::now();
        tokio::task::yield_now().await;
        if came.elapsed() > TURN_TIME {
            return Err(Refusal::overloaded().into());
        }
        Ok(job)
    }
}

/// The DID of an address: did:web or did:wba for a public one, none for plain HTTP, which proves nothing.
fn did_of(url: &str, method: &str) -> Result<Option<Did>, Error> {
    let Some(host) = url.strip_prefix("https://") else { return Ok(None) };
    let host = host.trim_end_matches('/').replace(':', "%3A").replace('/', ":");
    Did::parse(&format!("did:{method}:{host}")).map(Some).map_err(|error| Error::fault(format!("`{url}`: {error}")))
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
    fn start(
        catalog: &Arc<Catalog>,
        versions: &Arc<Versions>,
        clock: &Clock,
        witness: Option<Arc<Witness>>,
        store: &Arc<Store>,
    ) -> Result<Self, Error> {
        let (catalog, versions) = (Arc::clone(catalog), Arc::clone(versions));
        let (clock, store) = (clock.clone(), Arc::clone(store));
        let (stop, stopped) = channel();
        let run = move || {
            while stopped.recv_timeout(Duration::from_millis(500)) == Err(RecvTimeoutError::Timeout) {
                clock.keep();
                if let Some(Err(error)) = witness.as_ref().map(|witness| witness.note(&store)) {
                    tracing::error!(%error, "how far the history has come cannot be written down");
                }
                versions.keep(clock.millis());
                if let Err(error) = catalog.keep() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_when_everybody_is_busy_is_told_so_and_nobody_hangs() {
        let turns = Turns::default();
        let told = |turn: Result<SemaphorePermit<'_>, Error>| match turn {
            Ok(_) => false,
            Err(Error::Refusal(refusal)) => (refusal.code, refusal.retry_after_ms) == ("overloaded", Some(1_000)),
            Err(other) => panic!("{other:?}"),
        };
        // As many as may wait are served, the others are told at once.
        let all = futures((0..JOBS_MAX + 10).map(|_| turns.take())).await;
        assert_eq!(all.into_iter().filter_map(|turn| told(turn).then_some(())).count(), 10);
        // While the first in line works for too long, the next one's time runs out.
        let working = async {
            let turn = turns.take().await;
            tokio::time::advance(TURN_TIME * 2).await;
            turn
        };
        let (first, second) = tokio::join!(biased; working, turns.take());
        assert!(!told(first) && told(second));
        assert!(turns.take().await.is_ok());
    }

    /// All of them at once, to the end.
    async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
        let mut all: Vec<_> = all.map(Box::pin).collect();
        let mut done = Vec::new();
        std::future::poll_fn(|context| {
            all.retain_mut(|future| match future.as_mut().poll(context) {
                std::task::Poll::Ready(value) => {
                    done.push(value);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        done
    }
}
