//! OAS Names & References, remote agents: which version of another server's document an engagement goes by.
//!
//! A document is read when the node starts and again when it is no longer fresh. A changed one is a changed definition,
//! whichever of its words changed: it is in quarantine for engagements that begin from then on, and those under way keep
//! the one that they began with, over a restart too, because every version is kept by its digest.
//!
//! INVARIANT: an engagement is never shown two versions of one agent.

use super::Engagements;
use crate::refusal::Error;
use agent::{Agent, Begun, Reference};
use host::{Http, RemoteAgent, State, Tool, ToolError};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Journal, Spec};

/// The pause after a document that could not be read.
const PAUSE: Duration = Duration::from_secs(60);

/// The agents of other servers that those of this node refer to.
pub(super) struct Remotes {
    http: Arc<dyn Http>,
    /// How long a call may take.
    time: Duration,
    /// The last version of each, by reference.
    last: Mutex<BTreeMap<String, Last>>,
    /// Versions that engagements under way go by, by digest.
    earlier: Mutex<HashMap<String, Arc<Tool>>>,
}

/// The last version of a document.
#[derive(Clone)]
struct Last {
    digest: String,
    etag: Option<String>,
    fresh: Duration,
    document: Vec<u8>,
}

impl Remotes {
    pub(super) fn new(http: Arc<dyn Http>, time: Duration) -> Self {
        Self { http, time, last: Mutex::default(), earlier: Mutex::default() }
    }

    /// Reads an agent for the first time.
    pub(super) async fn read(&self, reference: &str) -> Result<Tool, ToolError> {
        let read = host::remote_agent(reference, &self.http).await?;
        let (last, tool) = Last::of(read);
        self.put(reference, last);
        Ok(tool.within(self.time))
    }

    fn put(&self, reference: &str, last: Last) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(reference.to_owned(), last);
    }

    fn get(&self, reference: &str) -> Option<Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).get(reference).cloned()
    }

    fn references(&self) -> Vec<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Last {
    fn of(read: RemoteAgent) -> (Self, Tool) {
        let digest = store::Hash::of(&read.document).to_string();
        (Self { digest, etag: read.etag, fresh: read.fresh, document: read.document }, read.tool)
    }
}

impl Engagements {
    /// Reads every document again, each in its time.
    pub(super) fn keep_fresh(self: &Arc<Self>) {
        for reference in self.remotes.references() {
            let this = Arc::downgrade(self);
            let mut wait = self.remotes.get(&reference).map_or(PAUSE, |last| last.fresh);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(wait).await;
                    let Some(this) = this.upgrade() else { return };
                    wait = match this.read_again(&reference).await {
                        Ok(_) => this.remotes.get(&reference).map_or(PAUSE, |last| last.fresh),
                        Err(error) => {
                            tracing::warn!(reference, %error, "the document of a remote agent cannot be read again");
                            PAUSE
                        }
                    };
                }
            });
        }
    }

    /// Reads the document of a remote agent again; whether it is another one.
    pub async fn read_again(&self, reference: &str) -> Result<bool, Error> {
        let Some(known) = self.remotes.get(reference) else { return Ok(false) };
        let read = host::remote_agent_since(reference, &self.remotes.http, known.etag.as_deref()).await;
        let Some(read) = read.map_err(Error::fault)? else { return Ok(false) };
        let (last, tool) = Last::of(read);
        let changed = last.digest != known.digest;
        self.remotes.put(reference, last);
        if changed {
            self.keep_versions()?;
            self.toolbox.add(tool.within(self.remotes.time));
            tracing::warn!(reference, "the document of a remote agent is another one");
        }
        Ok(changed)
    }

    /// Keeps the last version of every document in the store.
    pub(super) fn keep_versions(&self) -> Result<(), Error> {
        let at = self.node.clock().millis();
        let last = self.remotes.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if last.is_empty() {
            return Ok(());
        }
        let spec =
            |(reference, last): (String, Last)| Spec { digest: last.digest, agent: reference, at, body: last.document };
        let specs = last.into_iter().map(spec).collect();
        self.node.store.note(Journal { specs, ..Journal::default() }).map(drop).map_err(Error::fault)
    }

    /// The versions that an engagement with an agent begins with; one in quarantine is none.
    pub(super) fn versions(&self, agent: &Agent) -> BTreeMap<String, String> {
        let remote = agent.capabilities.iter().map(|capability| &capability.reference);
        let remote = remote.filter(|reference| matches!(reference, Reference::Remote { .. }));
        let version = |reference: &Reference| {
            let reference = reference.to_string();
            let tool = self.tool(&reference).filter(|tool| *tool.state() == State::Ready);
            let last = tool.and_then(|_| self.remotes.get(&reference))?;
            Some((reference, last.digest))
        };
        remote.filter_map(version).collect()
    }

    /// A remote agent in the version that an engagement goes by; nothing where it began with none.
    pub(super) fn version(&self, begun: &Begun, reference: &str) -> Option<Arc<Tool>> {
        let digest = begun.remotes.get(reference)?;
        if self.remotes.get(reference).is_some_and(|last| last.digest == *digest) {
            return self.toolbox.tool(reference);
        }
        let mut earlier = self.remotes.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = earlier.get(digest) {
            return Some(Arc::clone(tool));
        }
        let spec = self.node.store.spec(digest).ok().flatten()?;
        let tool = host::remote_agent_of(reference, &self.remotes.http, &spec.body).ok()?;
        let tool = Arc::new(tool.within(self.remotes.time));
        earlier.insert(digest.clone(), Arc::clone(&tool));
        Some(tool)
    }
}
