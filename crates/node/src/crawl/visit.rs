//! One request of the crawler, from the turn of its host to what it brought.

use super::state::Known;
use crate::clock::Clock;
use crate::outbound::{DidError, Dids, Door, Errand, FetchError, Inquiry, Response};
use std::sync::Arc;
use std::time::Duration;
use trust::{DidDocument, Method};
use url::Url;

/// Bytes of a validator that are kept.
const VALIDATOR_BYTES_MAX: usize = 1_024;

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// What the host lets programs read.
    Robots,
    /// Whether the domain is a node of the core protocol.
    Manifest { domain: String },
    /// A page of a domain's list.
    Page { domain: String },
    /// A description.
    Agent { listed_by: Option<String> },
    /// Something that a description leads to.
    Linked { agent: String },
}

/// A request that waits for its turn.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) job: Job,
    pub(super) url: Url,
    pub(super) tries: u8,
}

impl Task {
    pub(super) fn new(job: Job, url: Url) -> Self {
        Self { job, url, tries: 0 }
    }
}

/// A request on its way.
pub(super) struct Visit {
    pub(super) door: Arc<Door>,
    pub(super) dids: Dids,
    pub(super) origin: String,
    pub(super) task: Task,
    /// What was found there before.
    pub(super) known: Option<(Known, Vec<u8>)>,
}

/// A request that came back.
pub(super) struct Landed {
    pub(super) origin: String,
    pub(super) task: Task,
    pub(super) reply: Result<Found, Failure>,
    pub(super) bytes_read: u64,
}

/// A document.
pub(super) struct Found {
    /// Where, after all hops.
    pub(super) url: String,
    pub(super) body: Vec<u8>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Whether the host sent it, and not only said that nothing changed.
    pub(super) is_new: bool,
    /// The keys of the DID that a description names.
    pub(super) keys: Option<Result<Arc<DidDocument>, DidError>>,
}

impl Found {
    /// What was found before this crawl was cut off.
    pub(super) fn again(url: &str, body: Vec<u8>) -> Self {
        Self { url: url.to_owned(), body, etag: None, last_modified: None, is_new: false, keys: None }
    }
}

/// Why there is no document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    reason: Reason,
    /// Whether it may be tried again, and after how long, if the host says so.
    pub(super) pause: Option<Option<Duration>>,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    Fetch(FetchError),
    Status(u16),
    /// The host says that nothing changed, and nobody asked.
    Unasked,
}

impl Failure {
    fn fetch(error: FetchError) -> Self {
        let again = matches!(error, FetchError::RateLimited | FetchError::Timeout);
        Self { reason: Reason::Fetch(error), pause: again.then_some(None) }
    }

    fn status(response: &Response) -> Self {
        let pause = [429, 503].contains(&response.status).then(|| response.retry_after().map(Duration::from_secs));
        Self { reason: Reason::Status(response.status), pause }
    }

    /// Whether the host says that there is no such document.
    pub(super) fn is_absent(self) -> bool {
        match self.reason {
            Reason::Status(status) => (400..500).contains(&status) && status != 429,
            Reason::Fetch(error) => error == FetchError::Redirect,
            Reason::Unasked => false,
        }
    }

    /// Whether the document was taken away.
    pub(super) fn is_gone(self) -> bool {
        matches!(self.reason, Reason::Status(404 | 410))
    }

    /// The stable name for programs.
    pub(super) fn code(self) -> &'static str {
        match self.reason {
            Reason::Fetch(_) | Reason::Unasked => "agent_unreachable",
            Reason::Status(_) => "agent_document_absent",
        }
    }

    pub(super) fn words(self) -> String {
        match self.reason {
            Reason::Fetch(error) => error.to_string(),
            Reason::Status(status) => format!("the host answers {status}"),
            Reason::Unasked => "the host says that nothing changed, and nobody knows what was there".to_owned(),
        }
    }
}

impl Visit {
    pub(super) async fn run(self) -> Landed {
        let Self { door, dids, origin, task, known } = self;
        let (reply, bytes_read) = fetch(&door, &task, known).await;
        let reply = match (reply, &task.job) {
            (Ok(found), Job::Agent { .. }) => with_keys(&dids, found).await,
            (reply, _) => reply,
        };
        Landed { origin, task, reply, bytes_read }
    }
}

async fn fetch(door: &Door, task: &Task, known: Option<(Known, Vec<u8>)>) -> (Result<Found, Failure>, u64) {
    let (errand, accept) = match task.job {
        Job::Robots => (Errand::Robots, "text/plain, */*;q=0.1"),
        Job::Page { .. } | Job::Agent { .. } => (Errand::Description, "application/json, application/ld+json"),
        Job::Manifest { .. } | Job::Linked { .. } => {
            (Errand::Linked, "application/json, application/ld+json, application/yaml;q=0.9, */*;q=0.5")
        }
    };
    let mut headers = vec![("accept", accept.to_owned())];
    if let Some((known, _)) = &known {
        headers.extend(known.etag.iter().map(|etag| ("if-none-match", etag.clone())));
        headers.extend(known.last_modified.iter().map(|moment| ("if-modified-since", moment.clone())));
    }
    let inquiry = Inquiry { method: "GET", url: task.url.as_str(), headers: &headers, body: &[] };
    let response = match door.inquire(errand, &inquiry, Clock::monotonic()).await {
        Ok(response) => response,
        Err(error) => return (Err(Failure::fetch(error)), 0),
    };
    let bytes = response.body.len() as u64;
    let validator = |name: &str| {
        let value = response.field(name).filter(|value| (1..=VALIDATOR_BYTES_MAX).contains(&value.len()));
        value.map(str::to_owned)
    };
    let (etag, last_modified) = (validator("etag"), validator("last-modified"));
    let found = match (response.status, known) {
        (200, _) => Ok(Found { url: response.url, body: response.body, etag, last_modified, is_new: true, keys: None }),
        (304, Some((known, body))) => {
            let Known { etag, last_modified, .. } = known;
            Ok(Found { url: response.url, body, etag, last_modified, is_new: false, keys: None })
        }
        (304, None) => Err(Failure { reason: Reason::Unasked, pause: None }),
        _ => Err(Failure::status(&response)),
    };
    (found, bytes)
}

/// A description with the keys of the DID that it names.
async fn with_keys(dids: &Dids, mut found: Found) -> Result<Found, Failure> {
    let did = description::read(&found.body, None).ok().and_then(|reading| reading.agent.did);
    if let Some(did) = did.filter(|did| matches!(did.method(), Method::Wba | Method::Web)) {
        let keys = dids.resolve(&did, Clock::monotonic()).await;
        if matches!(keys, Err(DidError::ResolutionRateLimited)) {
            return Err(Failure::fetch(FetchError::RateLimited));
        }
        found.keys = Some(keys);
    }
    Ok(found)
}
