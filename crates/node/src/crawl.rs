//! ANP-08: agents of others looked for, read and kept: lists of descriptions page by page, descriptions, and what they
//! lead to.
//!
//! One loop owns everything that is known; what it sends out are single requests, at most one at a time to a host, as far
//! apart as the host and the operator want, through the door. What was found is remembered with its validators, so that a
//! host that changed nothing sends nothing, and a crawl that was cut off goes on where it was (decisions/0201).
//!
//! INVARIANT: a description that names a DID is kept only when that DID stands behind it; and what is not answered, or
//! not allowed to be asked, changes nothing that is kept.

mod report;
mod robots;
mod state;
mod visit;

pub use report::{Agent, Finding, Outcome, Report};

use crate::descriptions::{Found, Linked, listed};
use crate::node::Node;
use crate::outbound::DidError;
use crate::refusal::Error;
use description::{LinkKind, Origin, Page, Reading, Stop, Unbound, WELL_KNOWN, Walk};
use json::Document;
use report::Bound;
use robots::Robots;
use state::State;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use url::Url;
use visit::{Job, Landed, Task, Visit};

/// Times that one request is made before it is given up.
const TRIES: u8 = 3;

/// The longest that a host is waited for which asks for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the door is left alone that says it has too much to do.
const BREATH: Duration = Duration::from_secs(2);

/// Descriptions that wait for what they lead to, at a time; while there are more, no further one is read.
const PENDING_MAX: usize = 64;

/// Where a node of the core protocol says what it speaks.
const MANIFEST: &str = "/.well-known/oap-tool.json";

/// What is crawled, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whence.
    pub seeds: Vec<Seed>,
    /// How much at most.
    pub bounds: Bounds,
    /// Requests to one host in a minute.
    pub per_minute: NonZeroU32,
    /// Hosts that are asked at a time.
    pub parallel: usize,
    /// Whether a crawl that was cut off is forgotten.
    pub anew: bool,
}

/// Where a crawl begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seed {
    /// A domain that lists its agents.
    Domain(Url),
    /// The description of an agent.
    Description(Url),
}

impl Seed {
    /// Reads a domain or an address.
    pub fn parse(text: &str) -> Option<Self> {
        if description::is_web(text) {
            let url = Url::parse(text).ok()?;
            let is_domain = url.path() == "/" || url.path() == WELL_KNOWN;
            return Some(if is_domain { Self::Domain(url.join("/").ok()?) } else { Self::Description(url) });
        }
        let url = Url::parse(&format!("https://{text}/")).ok()?;
        let plain = !text.is_empty() && !text.contains(['/', '@', '?', '#', ' ']);
        plain.then_some(Self::Domain(url))
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Domain(url) | Self::Description(url) => url.as_str(),
        }
    }
}

/// How much a crawl takes in at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Pages of lists.
    pub pages: usize,
    /// Descriptions.
    pub agents: usize,
    /// Documents that descriptions lead to.
    pub documents: usize,
    /// Documents that one description leads to.
    pub documents_per_agent: usize,
    /// Hosts.
    pub hosts: usize,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Seconds.
    pub seconds: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            pages: 1_000,
            agents: 10_000,
            documents: 50_000,
            documents_per_agent: 20,
            hosts: 1_000,
            bytes: 1 << 30,
            seconds: 3_600,
        }
    }
}

/// Who listens while a crawl runs.
pub trait Listener {
    /// Hears how far it is.
    fn progress(&mut self, report: &Report, waiting: usize);

    /// Meets a node of the core protocol for the first time in this crawl; a host that is not agreed with is left alone.
    /// The reason has a stable code.
    fn greet(&mut self, origin: &str, manifest: &[u8]) -> Result<(), (String, String)>;
}

impl Node {
    /// Crawls; what is found becomes records, what is gone is withdrawn.
    pub async fn crawl(&self, plan: &Plan, listener: &mut dyn Listener) -> Result<Report, Error> {
        let mut state = State::open(&self.data)?;
        let seeds: Vec<String> = plan.seeds.iter().map(|seed| seed.as_str().to_owned()).collect();
        let mut report = Report::default();
        report.goes_on = state.begin(&seeds, plan.anew)?;
        let mut crawl = Crawl {
            node: self,
            plan,
            listener,
            state,
            hosts: BTreeMap::new(),
            walks: BTreeMap::new(),
            pending: BTreeMap::new(),
            met: BTreeSet::new(),
            report,
            running: JoinSet::new(),
        };
        crawl.seed()?;
        crawl.run().await?;
        crawl.finish()
    }
}

/// A crawl under way.
struct Crawl<'a> {
    node: &'a Node,
    plan: &'a Plan,
    listener: &'a mut dyn Listener,
    state: State,
    hosts: BTreeMap<String, Host>,
    /// By the origin of the domain.
    walks: BTreeMap<String, Listing>,
    /// Descriptions that wait for what they lead to, by their addresses.
    pending: BTreeMap<String, Pending>,
    /// Descriptions that this crawl has met.
    met: BTreeSet<String>,
    report: Report,
    running: JoinSet<Landed>,
}

/// A host and what is wanted of it.
struct Host {
    waiting: VecDeque<Task>,
    robots: Option<Robots>,
    is_busy: bool,
    /// Not before this moment.
    next: Instant,
}

/// The list of a domain, as far as it was read.
struct Listing {
    walk: Walk,
    agents: BTreeSet<String>,
}

/// A description that waits for what it leads to.
struct Pending {
    url: String,
    bytes: Vec<u8>,
    keys: Option<std::sync::Arc<trust::DidDocument>>,
    wanted: BTreeSet<String>,
    linked: Vec<Linked>,
    listed_by: Option<String>,
}

impl Crawl<'_> {
    fn seed(&mut self) -> Result<(), Error> {
        for seed in &self.plan.seeds {
            match seed {
                Seed::Domain(url) => {
                    let domain = url.origin().ascii_serialization();
                    self.enqueue(Job::Manifest { domain }, url.join(MANIFEST).map_err(Error::fault)?)?;
                }
                Seed::Description(url) => self.meet(url.clone(), None)?,
            }
        }
        Ok(())
    }

    /// Sends requests out and takes in what they bring, until nothing is left or a bound is met.
    async fn run(&mut self) -> Result<(), Error> {
        let end = Instant::now() + Duration::from_secs(self.plan.bounds.seconds);
        loop {
            let now = Instant::now();
            if now >= end {
                self.report.stopped = Some(Bound::Seconds.name());
            }
            if self.report.bytes > self.plan.bounds.bytes {
                self.report.stopped = Some(Bound::Bytes.name());
            }
            let next = if self.report.stopped.is_none() { self.dispatch(now)? } else { None };
            if self.running.is_empty() && next.is_none() {
                return Ok(());
            }
            let landed = tokio::select! {
                Some(landed) = self.running.join_next(), if !self.running.is_empty() => Some(landed),
                () = sleep_until(next.unwrap_or(end).min(end)), if next.is_some() => None,
            };
            if let Some(landed) = landed {
                self.land(landed.map_err(Error::fault)?)?;
                let waiting = self.hosts.values().map(|host| host.waiting.len()).sum();
                self.listener.progress(&self.report, waiting);
            }
        }
    }

    /// Sends out whatever may go now; says when the next one may.
    fn dispatch(&mut self, now: Instant) -> Result<Option<Instant>, Error> {
        self.bar()?;
        let is_full = self.pending.len() >= PENDING_MAX;
        let (mut next, mut ready) = (None, Vec::new());
        for (origin, host) in &mut self.hosts {
            let place = host.waiting.iter().position(|task| !is_full || !matches!(task.job, Job::Agent { .. }));
            let Some(place) = place.filter(|_| !host.is_busy) else { continue };
            if host.next > now {
                next = Some(next.map_or(host.next, |known: Instant| known.min(host.next)));
                continue;
            }
            // Whoever waits for a place waits for somebody to come back.
            if self.running.len() + ready.len() >= self.plan.parallel.max(1) {
                break;
            }
            let task = match &host.robots {
                None => Url::parse(&format!("{origin}/robots.txt")).ok().map(|url| Task::new(Job::Robots, url)),
                Some(_) => host.waiting.remove(place),
            };
            host.is_busy = task.is_some();
            ready.extend(task.map(|task| (origin.clone(), task)));
        }
        ready.into_iter().for_each(|(origin, task)| self.send_out(origin, task));
        Ok(next)
    }

    /// What hosts do not let us read is done with, and needs no turn. That may bring new wishes, so it is looked at again.
    fn bar(&mut self) -> Result<(), Error> {
        loop {
            let mut barred = Vec::new();
            for host in self.hosts.values_mut() {
                let Some(robots) = &host.robots else { continue };
                let (allowed, refused) = host.waiting.drain(..).partition(|task| robots.allows(&path_of(&task.url)));
                host.waiting = allowed;
                barred.extend::<VecDeque<Task>>(refused);
            }
            if barred.is_empty() {
                return Ok(());
            }
            for Task { job, url, .. } in barred {
                self.report.find(url.as_str(), "robots_disallowed", "the host does not let programs read this");
                self.settle_without(job, &url)?;
            }
        }
    }

    fn send_out(&mut self, origin: String, task: Task) {
        let known = self.state.known.get(task.url.as_str()).cloned();
        let known = known.and_then(|known| Some((known, self.state.body(task.url.as_str())?)));
        let visit = Visit { door: self.node.door.clone(), dids: self.node.dids.clone(), origin, task, known };
        self.running.spawn(visit.run());
    }

    fn enqueue(&mut self, job: Job, url: Url) -> Result<(), Error> {
        let origin = url.origin().ascii_serialization();
        if !self.hosts.contains_key(&origin) && self.hosts.len() >= self.plan.bounds.hosts {
            self.report.bounded(Bound::Hosts, url.as_str());
            return self.settle_without(job, &url);
        }
        let host = self.hosts.entry(origin).or_insert_with(|| Host {
            waiting: VecDeque::new(),
            robots: None,
            is_busy: false,
            next: Instant::now(),
        });
        let task = Task::new(job, url);
        match task.job {
            // Whoever waits for it is in memory.
            Job::Linked { .. } => host.waiting.push_front(task),
            Job::Robots | Job::Manifest { .. } | Job::Page { .. } | Job::Agent { .. } => host.waiting.push_back(task),
        }
        Ok(())
    }

    /// An agent that somebody named: a seed, or the list of a domain.
    fn meet(&mut self, mut url: Url, listed_by: Option<String>) -> Result<(), Error> {
        url.set_fragment(None);
        if self.met.contains(url.as_str()) {
            return Ok(());
        }
        if self.met.len() >= self.plan.bounds.agents {
            self.report.bounded(Bound::Agents, url.as_str());
            return Ok(());
        }
        self.met.insert(url.to_string());
        if self.state.done.contains(url.as_str()) {
            self.report.done_before += 1;
            return Ok(());
        }
        self.enqueue(Job::Agent { listed_by }, url)
    }

    /// Takes in what a request brought.
    fn land(&mut self, landed: Landed) -> Result<(), Error> {
        self.report.requests += 1;
        self.report.bytes += landed.bytes_read;
        let Landed { origin, mut task, reply, .. } = landed;
        let delay = self.hosts.get(&origin).and_then(|host| host.robots.as_ref()?.delay()).unwrap_or_default();
        let spacing = (Duration::from_secs(60) / self.plan.per_minute.get()).max(delay);
        let Some(host) = self.hosts.get_mut(&origin) else { return Ok(()) };
        (host.is_busy, host.next) = (false, Instant::now() + spacing);
        if let Err(visit::Failure { pause: Some(pause), .. }) = &reply
            && task.tries + 1 < TRIES
        {
            task.tries += 1;
            host.next = Instant::now() + pause.unwrap_or(BREATH).clamp(BREATH, PATIENCE);
            host.waiting.push_front(task);
            return Ok(());
        }
        if let Ok(found) = &reply
            && found.is_new
        {
            let (etag, modified) = (found.etag.as_deref(), found.last_modified.as_deref());
            self.state.found(task.url.as_str(), &found.body, etag, modified)?;
        }
        self.report.unmodified += u64::from(reply.as_ref().is_ok_and(|found| !found.is_new));
        match (task.job, reply) {
            (Job::Robots, reply) => self.heed(&origin, reply),
            (Job::Manifest { domain }, reply) => self.greeted(&domain, reply.ok())?,
            (Job::Page { domain }, Ok(found)) => self.read_page(&domain, &task.url, &found)?,
            (Job::Page { domain }, Err(failure)) => {
                self.walks.remove(&domain);
                self.report.find(task.url.as_str(), failure.code(), &failure.words());
            }
            (Job::Agent { listed_by }, Ok(found)) => self.read_agent(&task.url, found, listed_by)?,
            (Job::Agent { .. }, Err(failure)) => self.lose(&task.url, &failure)?,
            (Job::Linked { agent }, reply) => self.take_linked(&agent, &task.url, reply)?,
        }
        Ok(())
    }

    /// RFC 9309: no file allows everything, and a host that cannot say allows nothing.
    fn heed(&mut self, origin: &str, reply: Result<visit::Found, visit::Failure>) {
        let robots = match reply {
            Ok(found) => Robots::read(&found.body),
            Err(failure) if failure.is_absent() => Robots::open(),
            Err(failure) => {
                self.report.find(&format!("{origin}/robots.txt"), failure.code(), &failure.words());
                Robots::closed()
            }
        };
        if let Some(host) = self.hosts.get_mut(origin) {
            host.robots = Some(robots);
        }
    }

    /// The first word with a domain: whether it speaks a version that we understand, where it speaks of versions.
    fn greeted(&mut self, domain: &str, manifest: Option<visit::Found>) -> Result<(), Error> {
        if let Some(manifest) = manifest {
            match self.listener.greet(domain, &manifest.body) {
                Ok(()) => self.report.nodes += 1,
                Err((code, words)) => {
                    self.report.find(domain, &code, &words);
                    return Ok(());
                }
            }
        }
        let url = Url::parse(&format!("{domain}{WELL_KNOWN}")).map_err(Error::fault)?;
        self.walks.insert(domain.to_owned(), Listing { walk: Walk::begin(url.as_str()), agents: BTreeSet::new() });
        self.turn_to(domain, url)
    }

    /// The next page of a list; one that was read before the crawl was cut off is not asked for again.
    fn turn_to(&mut self, domain: &str, url: Url) -> Result<(), Error> {
        if self.report.pages >= self.plan.bounds.pages as u64 {
            self.report.bounded(Bound::Pages, url.as_str());
            self.walks.remove(domain);
            return Ok(());
        }
        let before = self.state.done.contains(url.as_str()).then(|| self.state.body(url.as_str())).flatten();
        match before {
            Some(body) => self.read_page(domain, &url, &visit::Found::again(url.as_str(), body)),
            None => self.enqueue(Job::Page { domain: domain.to_owned() }, url),
        }
    }

    fn read_page(&mut self, domain: &str, asked: &Url, found: &visit::Found) -> Result<(), Error> {
        self.report.pages += 1;
        self.state.done(asked.as_str())?;
        let page = match Page::read(&found.body, &found.url) {
            Ok(page) => page,
            Err(error) => {
                self.report.find(asked.as_str(), error.code.name(), &error.to_string());
                self.walks.remove(domain);
                return Ok(());
            }
        };
        self.report.judge(asked.as_str(), &page.findings);
        let Some(mut listing) = self.walks.remove(domain) else { return Ok(()) };
        for item in &page.items {
            let Ok(mut url) = Url::parse(&item.url) else { continue };
            url.set_fragment(None);
            listing.agents.insert(url.to_string());
            self.meet(url, Some(domain.to_owned()))?;
        }
        match listing.walk.onward(&page) {
            Ok(next) => {
                self.walks.insert(domain.to_owned(), listing);
                self.turn_to(domain, Url::parse(&next).map_err(Error::fault)?)
            }
            Err(Stop::End) if page.findings.passes(description::Mode::Lenient) => self.unlist(domain, &listing),
            Err(stop) => {
                let words = match stop {
                    Stop::Again => "the list leads back to itself",
                    Stop::TooManyPages => "the list has more pages than are read",
                    Stop::TooManyItems => "the list has more entries than are taken",
                    Stop::End => return Ok(()),
                };
                self.report.find(asked.as_str(), "list_not_read_to_its_end", words);
                Ok(())
            }
        }
    }

    /// Agents that a domain listed and lists no more.
    fn unlist(&mut self, domain: &str, listing: &Listing) -> Result<(), Error> {
        let gone = |(url, kept): (&String, &state::KeptAgent)| {
            let ours = kept.listed_by.as_deref() == Some(domain) && !listing.agents.contains(url);
            (ours && !self.met.contains(url)).then(|| url.clone())
        };
        let gone: Vec<String> = self.state.kept.iter().filter_map(gone).collect();
        gone.into_iter().try_for_each(|url| self.withdraw(&url, "its domain lists it no more"))
    }

    fn withdraw(&mut self, url: &str, why: &str) -> Result<(), Error> {
        let Some(kept) = self.state.kept.get(url).cloned() else { return Ok(()) };
        self.node.withdraw_description(&kept.at)?;
        self.state.withdrawn(url)?;
        self.report.told(Agent::new(url, None, Outcome::Withdrawn, why));
        Ok(())
    }

    /// A description that is not there. What is gone is withdrawn; what is only not answered stays as it was.
    fn lose(&mut self, url: &Url, failure: &visit::Failure) -> Result<(), Error> {
        self.state.done(url.as_str())?;
        if failure.is_gone() && self.state.kept.contains_key(url.as_str()) {
            return self.withdraw(url.as_str(), "it is no longer at its address");
        }
        self.report.find(url.as_str(), failure.code(), &failure.words());
        self.report.told(Agent::new(url.as_str(), None, Outcome::Unread, &failure.words()));
        Ok(())
    }

    fn read_agent(&mut self, asked: &Url, found: visit::Found, listed_by: Option<String>) -> Result<(), Error> {
        self.report.agents += 1;
        let keys = match found.keys {
            Some(Ok(keys)) => Some(keys),
            Some(Err(DidError::Deactivated)) => {
                self.refuse(asked, DidError::Deactivated.code(), "its DID is no more")?;
                return self.withdraw(asked.as_str(), "its DID is no more");
            }
            Some(Err(error)) => {
                // Whoever cannot be asked today stood behind it yesterday, maybe.
                return self.refuse(asked, error.code(), &error.to_string());
            }
            None => None,
        };
        let document = keys.as_deref().map(listed).transpose()?;
        let origin = Origin { url: &found.url, did_document: document.as_ref().map(Document::root) };
        let reading = match description::read(&found.body, Some(&origin)) {
            Ok(reading) => reading,
            Err(error) => return self.refuse(asked, error.code.name(), &error.to_string()),
        };
        if reading.agent.did.is_some()
            && let Err(unbound) = origin.binds(&reading.agent)
        {
            let why = match unbound {
                Unbound::NoDid | Unbound::NoDocument => "the document of its DID is another's",
                Unbound::NotListed => "the document of its DID does not list this address",
                Unbound::OtherHost => "it is on another host than its DID",
            };
            self.refuse(asked, "agent_description_unbound", why)?;
            return self.withdraw(asked.as_str(), why);
        }
        self.report.judge(asked.as_str(), &reading.findings);
        let wanted = self.wanted(&reading, &found.url);
        let agent = asked.as_str().to_owned();
        let pending = Pending {
            url: found.url,
            bytes: found.body,
            keys,
            wanted: wanted.iter().map(Url::to_string).collect(),
            linked: Vec::new(),
            listed_by,
        };
        self.pending.insert(agent.clone(), pending);
        for url in wanted {
            self.enqueue(Job::Linked { agent: agent.clone() }, url)?;
        }
        self.keep_if_whole(&agent)
    }

    fn refuse(&mut self, url: &Url, code: &str, why: &str) -> Result<(), Error> {
        self.report.find(url.as_str(), code, why);
        self.report.told(Agent::new(url.as_str(), None, Outcome::Refused, why));
        self.state.done(url.as_str())
    }

    /// What a description leads to and is worth fetching: no owners, nothing that is embedded, and only so many.
    fn wanted(&mut self, reading: &Reading, own: &str) -> Vec<Url> {
        let embedded = |link: &description::Link| {
            let interfaces = reading.agent.interfaces.iter();
            interfaces.filter(|one| one.content.is_some()).any(|one| one.at.child("url") == link.at)
        };
        let mut wanted: Vec<Url> = Vec::new();
        for link in reading.links.iter().filter(|link| link.kind != LinkKind::Owner && !embedded(link)) {
            let Ok(mut url) = Url::parse(&link.url) else { continue };
            url.set_fragment(None);
            if url.as_str() == own || wanted.contains(&url) {
                continue;
            }
            if wanted.len() == self.plan.bounds.documents_per_agent {
                self.report.bounded(Bound::DocumentsPerAgent, own);
                break;
            }
            if self.report.documents >= self.plan.bounds.documents as u64 {
                self.report.bounded(Bound::Documents, own);
                break;
            }
            self.report.documents += 1;
            wanted.push(url);
        }
        wanted
    }

    fn take_linked(
        &mut self,
        agent: &str,
        url: &Url,
        reply: Result<visit::Found, visit::Failure>,
    ) -> Result<(), Error> {
        let Some(pending) = self.pending.get_mut(agent) else { return Ok(()) };
        pending.wanted.remove(url.as_str());
        match reply {
            Ok(found) => pending.linked.push(Linked { url: url.to_string(), bytes: found.body }),
            Err(failure) => self.report.find(url.as_str(), failure.code(), &failure.words()),
        }
        self.keep_if_whole(agent)
    }

    /// A job that will not be done; nobody waits for it.
    fn settle_without(&mut self, job: Job, url: &Url) -> Result<(), Error> {
        match job {
            Job::Robots => Ok(()),
            Job::Manifest { domain } => self.greeted(&domain, None),
            Job::Page { domain } => {
                self.walks.remove(&domain);
                Ok(())
            }
            Job::Agent { .. } => {
                self.report.told(Agent::new(url.as_str(), None, Outcome::Unread, "it was not asked for"));
                self.state.done(url.as_str())
            }
            Job::Linked { agent } => {
                if let Some(pending) = self.pending.get_mut(&agent) {
                    pending.wanted.remove(url.as_str());
                }
                self.keep_if_whole(&agent)
            }
        }
    }

    /// Keeps a description once everything that it leads to is there, or will not come.
    fn keep_if_whole(&mut self, agent: &str) -> Result<(), Error> {
        if self.pending.get(agent).is_none_or(|pending| !pending.wanted.is_empty()) {
            return Ok(());
        }
        let Some(mut pending) = self.pending.remove(agent) else { return Ok(()) };
        // The order of arrival is no change.
        pending.linked.sort_by(|left, right| left.url.cmp(&right.url));
        let found = Found {
            url: &pending.url,
            bytes: &pending.bytes,
            linked: &pending.linked,
            keys: pending.keys.as_deref(),
            vouched_by: None,
        };
        match self.node.describe(&found) {
            Ok(described) => {
                let outcome = match (described.sequence, described.revision) {
                    (None, _) => Outcome::Unchanged,
                    (Some(_), 1) => Outcome::New,
                    (Some(_), _) => Outcome::Changed,
                };
                self.state.kept(agent, &pending.url, pending.listed_by.as_deref())?;
                self.state.done(agent)?;
                self.report.told(Agent::new(agent, described.did.as_ref(), outcome, ""));
                Ok(())
            }
            Err(Error::Refusal(refusal)) => {
                self.report.find(agent, refusal.code, &refusal.detail);
                self.report.told(Agent::new(agent, None, Outcome::Refused, &refusal.detail));
                self.state.done(agent)
            }
            Err(error) => Err(error),
        }
    }

    fn finish(mut self) -> Result<Report, Error> {
        self.report.hosts = self.hosts.len() as u64;
        if self.report.stopped.is_none() {
            self.state.end()?;
        }
        Ok(self.report)
    }
}

fn path_of(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}
