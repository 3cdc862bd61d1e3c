//! RFC 0020 §3.6: the standing intents of a node, who reads along, and the one task that tells them.
//!
//! | Room | Job |
//! |---|---|
//! | `subscribe` | a standing intent comes in, and what its issuer asks of it later |
//! | `deliver` | the change log becomes events, one transaction at a time |
//! | `follow` | a reader goes along a journal |
//! | `webhooks` | events are brought to an address that agreed |
//! | `tree` | the proof that a manifest is in the tree of public ones |
//!
//! INVARIANT: whoever changes a standing intent holds the state's lock from reading it to the commit, so that a journal
//! has one writer at a time.

mod deliver;
mod follow;
mod subscribe;
mod tree;
mod webhooks;

pub use follow::{Follower, Heard};
pub use subscribe::Terms;
pub use webhooks::{Brought, Endpoint};
pub(crate) use webhooks::{Postman, limits as webhook_limits};

use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::gate::Viewer;
use crate::identity::Identity;
use crate::outbound::registrable;
use crate::refusal::Error;
use aql::{Intent, Limits, OverBudget, Signals};
use feed::{Audience, Bucket, rate};
use json::Document;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Event, Phase, Sequence, Standing, Store, Subscription};
use tokio::sync::broadcast;
use tree::Tree;
use trust::Did;
use url::Url;
use webhooks::Webhooks;

/// Standing intents that are read at once when a node starts.
const STRIDE: usize = 1_000;
/// Events that a reader may be behind before it reads them from the journal.
const RECENT: usize = 64;
/// How long the task sleeps when nobody wants to know anything.
const REST: Duration = Duration::from_secs(3600);
/// How long a subscriber is told anything before it is looked at again whether his key is still his.
const RECHECK: Duration = Duration::from_secs(300);

/// The standing intents, and what is needed to tell them anything.
#[derive(Debug)]
pub(crate) struct Feeds {
    store: Arc<Store>,
    catalog: Arc<Catalog>,
    identity: Arc<Identity>,
    clock: Clock,
    over_budget: OverBudget,
    retention_days: u32,
    state: Mutex<State>,
    readers: Mutex<HashMap<u64, Readers>>,
    /// When the key behind each standing intent was last looked at; not written here, when the node was started.
    checks: Mutex<HashMap<u64, Arc<Checked>>>,
    opened: Instant,
    /// When everything in the log had last been delivered, in milliseconds since 1970; nought until then.
    level_at: AtomicI64,
    webhooks: Webhooks,
    /// Whether the tree must be made again.
    felled: AtomicBool,
    /// Told when the first standing intent comes, and at the end.
    roused: Condvar,
    stopping: AtomicBool,
}

/// Everything that changes.
#[derive(Debug)]
struct State {
    audience: Audience,
    live: HashMap<u64, Live>,
    /// The standing intents of each issuer; restricted values may make a record look different to it.
    issuers: HashMap<String, BTreeSet<u64>>,
    principals: HashMap<String, Account>,
    domains: HashMap<String, usize>,
    /// Those for whom something waits.
    lagging: BTreeSet<u64>,
    /// Those whose journals have no room.
    full: BTreeSet<u64>,
    /// Principals without a standing intent, until the minute in which they were told something is over.
    parted: BTreeSet<String>,
    /// Everything up to this change was delivered.
    position: Sequence,
    /// What of it is on disk.
    persisted: Sequence,
    /// When the clock was last looked at for each standing intent.
    kept_at: i64,
    /// The number of the next standing intent.
    next: u64,
    /// When journals were last looked through for what is too old.
    swept_at: i64,
    /// How far the tree over public manifests has grown.
    tree: Tree,
}

/// How much of the node one principal uses.
#[derive(Debug, Default)]
struct Account {
    subscriptions: usize,
    /// Of them, those whose filters only exclude.
    unfiled: usize,
    told: Bucket,
}

/// A standing intent that is not over.
#[derive(Debug)]
struct Live {
    id: String,
    issuer: String,
    principal: String,
    domain: Option<String>,
    start: Sequence,
    expires_at: i64,
    standing: Standing,
    intent: Intent,
    viewer: Viewer,
    /// Whether its filter only says what a record must not have.
    unfiled: bool,
    /// Whether its journal began with the answer as it stood.
    is_whole: bool,
    /// Records on which its filter ran out of fuel.
    undecided: u64,
}

impl Live {
    /// Whether it depends on what others say of a record.
    fn asks_others(&self) -> bool {
        self.intent.quality_floor != Signals::default()
    }
}

/// Those who read a journal just now.
#[derive(Debug)]
struct Readers {
    sender: broadcast::Sender<Signal>,
    count: usize,
}

/// When the key behind a standing intent was last looked at, for all who read its journal, however often they come.
#[derive(Debug)]
struct Checked(Mutex<Instant>);

impl Checked {
    /// Whether it is time again; whoever is told so looks at it.
    fn is_due(&self) -> bool {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = at.elapsed() >= RECHECK;
        if due {
            *at = Clock::monotonic();
        }
        due
    }
}

/// What readers hear.
#[derive(Clone, Debug)]
enum Signal {
    /// One more event.
    Event(Arc<Event>),
    /// It is over.
    Ended,
}

/// Parts of a running node that delivery works with.
pub(crate) struct Parts {
    pub(crate) store: Arc<Store>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) clock: Clock,
    pub(crate) over_budget: OverBudget,
    pub(crate) retention_days: u32,
}

impl Feeds {
    /// Reads the standing intents that are not over; the log is not read again.
    pub(crate) fn open(parts: Parts) -> Result<Arc<Self>, Error> {
        let Parts { store, catalog, identity, clock, over_budget, retention_days } = parts;
        let position = store.delivered()?.unwrap_or_else(|| store.sequence());
        let mut state = State {
            audience: Audience::new(),
            live: HashMap::new(),
            issuers: HashMap::new(),
            principals: HashMap::new(),
            domains: HashMap::new(),
            lagging: BTreeSet::new(),
            full: BTreeSet::new(),
            parted: BTreeSet::new(),
            position,
            persisted: position,
            kept_at: 0,
            next: 1,
            swept_at: 0,
            tree: Tree::open(&store)?,
        };
        let (mut number, mut brought) = (0, store.webhooks()?.into_iter().collect::<HashMap<_, _>>());
        let mut webhooks = Vec::new();
        loop {
            let some = store.subscriptions_after(number, STRIDE)?;
            let Some(last) = some.last() else { break };
            number = last.number;
            state.next = number + 1;
            for some in &some {
                webhooks.extend(brought.remove(&some.number).map(|webhook| (some.number, some.id.clone(), webhook)));
                state.recall(&some.principal, told_lately(&store, some, clock.millis())?);
            }
            for subscription in some.into_iter().filter(|some| some.standing.phase != Phase::Ended) {
                if store.pending_count(subscription.number)? > 0 {
                    state.lagging.insert(subscription.number);
                }
                let document = Document::parse(&subscription.intent, &Limits::STANDARD.json).map_err(Error::fault)?;
                let intent = Intent::read(document.root(), &Limits::STANDARD).map_err(Error::fault)?;
                state.take_in(subscription, intent)?;
            }
        }
        Ok(Arc::new(Self {
            store,
            catalog,
            identity,
            clock,
            over_budget,
            retention_days,
            state: Mutex::new(state),
            readers: Mutex::default(),
            checks: Mutex::default(),
            opened: Clock::monotonic(),
            level_at: AtomicI64::new(0),
            webhooks: Webhooks::new(webhooks),
            felled: AtomicBool::new(false),
            roused: Condvar::new(),
            stopping: AtomicBool::new(false),
        }))
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.state.lock().map_err(|_| Error::fault("delivery ended in the middle of a step; start the node again"))
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<u64, Readers>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checks(&self) -> MutexGuard<'_, HashMap<u64, Arc<Checked>>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the key behind a standing intent was last looked at.
    fn checked(&self, number: u64) -> Arc<Checked> {
        let unknown = || Arc::new(Checked(Mutex::new(self.opened)));
        Arc::clone(self.checks().entry(number).or_insert_with(unknown))
    }

    /// Tells those who read along, and whoever brings it.
    fn signal(&self, number: u64, signal: Signal) {
        self.webhooks.ring(number);
        if matches!(signal, Signal::Ended) {
            self.checks().remove(&number);
        }
        if let Some(readers) = self.readers().get(&number) {
            // Nobody listens when all have just gone.
            let _ = readers.sender.send(signal);
        }
    }

    /// Days for which events are kept.
    pub(crate) fn retention_days(&self) -> u32 {
        self.retention_days
    }

    /// Figures about what is brought to subscribers.
    pub(crate) fn brought_figures(&self) -> Brought {
        self.webhooks.figures()
    }

    /// How many journals are full, so that their subscribers are told nothing.
    pub(crate) fn full_journals(&self) -> Result<usize, Error> {
        Ok(self.state()?.full.len())
    }

    /// How many standing intents there are, and how many changes of the log they are not told of yet.
    pub(crate) fn gauge(&self) -> Result<(usize, u64), Error> {
        let state = self.state()?;
        let behind = if state.live.is_empty() { 0 } else { self.store.sequence().saturating_sub(state.position) };
        Ok((state.live.len(), behind))
    }
}

impl State {
    fn take_in(&mut self, subscription: Subscription, intent: Intent) -> Result<(), Error> {
        let is_whole = intent.quality_floor != Signals::default() && began_whole(&subscription.acknowledgement);
        let Subscription { number, id, issuer, principal, start, expires_at, standing, .. } = subscription;
        let did = Did::parse(&issuer).map_err(Error::fault)?;
        let domain = domain_of(&did);
        let filed = self.audience.len() - self.audience.unfiled();
        self.audience.insert(number, &intent.constraints);
        let unfiled = self.audience.len() - self.audience.unfiled() == filed;
        self.issuers.entry(issuer.clone()).or_default().insert(number);
        let account = self.principals.entry(principal.clone()).or_default();
        account.subscriptions += 1;
        account.unfiled += usize::from(unfiled);
        if let Some(domain) = &domain {
            *self.domains.entry(domain.clone()).or_default() += 1;
        }
        let viewer = Viewer::Named(did);
        let live = Live {
            id,
            issuer,
            principal,
            domain,
            start,
            expires_at,
            standing,
            intent,
            viewer,
            unfiled,
            is_whole,
            undecided: 0,
        };
        self.live.insert(number, live);
        Ok(())
    }

    fn let_go(&mut self, number: u64) -> Option<Live> {
        let live = self.live.remove(&number)?;
        self.audience.remove(number);
        self.lagging.remove(&number);
        self.full.remove(&number);
        if let Some(numbers) = self.issuers.get_mut(&live.issuer) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.issuers.remove(&live.issuer);
            }
        }
        if let Some(account) = self.principals.get_mut(&live.principal) {
            account.subscriptions -= 1;
            account.unfiled -= usize::from(live.unfiled);
            if account.subscriptions == 0 {
                self.parted.insert(live.principal.clone());
            }
        }
        if let Some(domain) = &live.domain
            && let Some(count) = self.domains.get_mut(domain)
        {
            *count -= 1;
            if *count == 0 {
                self.domains.remove(domain);
            }
        }
        Some(live)
    }

    /// Counts what a principal was told before the node was started.
    fn recall(&mut self, principal: &str, times: Vec<i64>) {
        if !times.is_empty() {
            self.principals.entry(principal.to_owned()).or_default().told.recall(times);
            self.parted.insert(principal.to_owned());
        }
    }

    /// Forgets principals who have no standing intent and were told nothing for a minute. Whoever withdraws and begins
    /// anew is told no more for it.
    fn forget_parted(&mut self, now: i64) {
        let principals = &mut self.principals;
        self.parted.retain(|principal| {
            let Some(account) = principals.get_mut(principal) else { return false };
            let parted = account.subscriptions == 0;
            let over = parted && account.told.is_idle(now);
            if over {
                principals.remove(principal);
            }
            parted && !over
        });
    }
}

/// Whether a subscriber was promised to begin with the answer as it stood.
fn began_whole(acknowledgement: &[u8]) -> bool {
    let document = Document::parse(acknowledgement, &json::Limits::OURS);
    document.is_ok_and(|document| document.root().get("snapshot").is_some())
}

/// When a subscriber was told something in the last minute.
fn told_lately(store: &Store, subscription: &Subscription, now: i64) -> Result<Vec<i64>, Error> {
    let standing = &subscription.standing;
    let mut times = Vec::new();
    if standing.phase == Phase::Ended && rate::wait(standing.ended_at, now) == 0 {
        return Ok(times);
    }
    for cursor in (standing.first..=standing.cursor).rev() {
        match store.event_time(subscription.number, cursor)? {
            // What a journal began with does not count, and stands before the rest.
            Some(at) if at > 0 && rate::wait(at, now) > 0 => times.push(at),
            _ => break,
        }
    }
    Ok(times)
}

/// The registrable domain that a DID lives in, when it lives in one.
fn domain_of(did: &Did) -> Option<String> {
    let url = Url::parse(&did.document_url()?).ok()?;
    url.host_str().map(|host| registrable(host).to_owned())
}

/// The task that delivers, until this is dropped.
#[derive(Debug)]
pub(crate) struct Courier {
    feeds: Arc<Feeds>,
    thread: Option<JoinHandle<()>>,
}

impl Courier {
    pub(crate) fn start(feeds: &Arc<Feeds>) -> Result<Self, Error> {
        let task = Arc::clone(feeds);
        let run = move || task.deliver_until_stopped();
        let thread = std::thread::Builder::new().name("feed-courier".into()).spawn(run).map_err(Error::fault)?;
        Ok(Self { feeds: Arc::clone(feeds), thread: Some(thread) })
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.feeds.stopping.store(true, Ordering::Release);
        // Taken and given back, so that the task does not look before the flag is up and sleep after.
        drop(self.feeds.state.lock());
        self.feeds.roused.notify_all();
        self.feeds.store.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
