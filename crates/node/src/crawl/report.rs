//! What a crawl brought, for whoever started it.
//!
//! INVARIANT: lists are bounded; what is left out is counted.

use description::{Findings, Grade, Mode};
use json::{Value, json};
use std::collections::BTreeSet;
use trust::Did;

/// Entries of one list.
const ENTRIES_MAX: usize = 10_000;

/// What a crawl brought.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether it went on where another had been cut off.
    pub goes_on: bool,
    /// Pages of lists that were read.
    pub pages: u64,
    /// Descriptions that were read.
    pub agents: u64,
    /// Documents that were wanted because descriptions lead to them.
    pub documents: u64,
    /// Hosts.
    pub hosts: u64,
    /// Nodes of the core protocol among them.
    pub nodes: u64,
    /// Requests, those for robots.txt included.
    pub requests: u64,
    /// Documents that had not changed since the last time.
    pub unmodified: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Agents that were done with before the crawl was cut off.
    pub done_before: u64,
    /// What ended it early, if something did; the next crawl goes on from there.
    pub stopped: Option<&'static str>,
    /// What became of each agent.
    pub told: Vec<Agent>,
    /// How many agents there are of each outcome.
    pub outcomes: [u64; 6],
    /// What is to be said about what was found.
    pub findings: Vec<Finding>,
    /// Findings that are not in the list.
    pub omitted: u64,
    met: BTreeSet<Bound>,
}

/// What became of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The address of its description.
    pub url: String,
    /// Who it is.
    pub did: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, where that is not plain.
    pub why: String,
}

/// What may become of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is kept for the first time.
    New,
    /// It is kept in another form than before.
    Changed,
    /// It is kept as before.
    Unchanged,
    /// It is gone.
    Withdrawn,
    /// It was read and not kept.
    Refused,
    /// It could not be read.
    Unread,
}

impl Outcome {
    /// All of them, in the order of the counts.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Changed, Self::Unchanged, Self::Withdrawn, Self::Refused, Self::Unread];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
            Self::Unread => "unread",
        }
    }
}

/// Something that is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// About what.
    pub url: String,
    /// A stable code, or the number of a rule.
    pub code: String,
    /// In words.
    pub words: String,
}

/// How much is taken in at most, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bound {
    Pages,
    Agents,
    Documents,
    DocumentsPerAgent,
    Hosts,
    Bytes,
    Seconds,
}

impl Bound {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pages => "crawl.pages",
            Self::Agents => "crawl.agents",
            Self::Documents => "crawl.documents",
            Self::DocumentsPerAgent => "crawl.documents_per_agent",
            Self::Hosts => "crawl.hosts",
            Self::Bytes => "crawl.bytes",
            Self::Seconds => "crawl.seconds",
        }
    }
}

impl Agent {
    pub(super) fn new(url: &str, did: Option<&Did>, outcome: Outcome, why: &str) -> Self {
        Self { url: url.to_owned(), did: did.map(ToString::to_string), outcome, why: why.to_owned() }
    }
}

impl Report {
    /// How many agents had an outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        let place = Outcome::ALL.iter().position(|known| *known == outcome);
        place.and_then(|place| self.outcomes.get(place)).copied().unwrap_or_default()
    }

    pub(super) fn told(&mut self, agent: Agent) {
        let place = Outcome::ALL.iter().position(|known| *known == agent.outcome);
        if let Some(count) = place.and_then(|place| self.outcomes.get_mut(place)) {
            *count += 1;
        }
        if self.told.len() < ENTRIES_MAX {
            self.told.push(agent);
        }
    }

    pub(super) fn find(&mut self, url: &str, code: &str, words: &str) {
        if self.findings.len() == ENTRIES_MAX {
            self.omitted += 1;
            return;
        }
        self.findings.push(Finding { url: url.to_owned(), code: code.to_owned(), words: words.to_owned() });
    }

    /// A bound was met; it is said once.
    pub(super) fn bounded(&mut self, bound: Bound, url: &str) {
        if self.met.insert(bound) {
            self.find(url, bound.name(), "there is more, and no more is taken in");
        }
    }

    /// What a lenient reader minds in a document.
    pub(super) fn judge(&mut self, url: &str, findings: &Findings) {
        for (grade, finding) in findings.of(Mode::Lenient).filter(|(grade, _)| *grade >= Grade::Warning) {
            let words = format!("{} at `{}`: {}", grade.name(), finding.at, finding.message);
            self.find(url, finding.rule.number(), &words);
        }
        self.omitted += findings.omitted() as u64;
    }

    /// The report for programs.
    pub fn to_value(&self) -> Value {
        let agent = |agent: &Agent| json!({"url": agent.url, "did": agent.did, "outcome": agent.outcome.name(), "why": agent.why});
        let finding = |finding: &Finding| json!({"url": finding.url, "code": finding.code, "message": finding.words});
        let counts: json::Map =
            Outcome::ALL.iter().map(|one| (one.name().to_owned(), json!(self.count(*one)))).collect();
        json!({
            "goes_on": self.goes_on, "stopped": self.stopped, "pages": self.pages, "descriptions": self.agents,
            "documents": self.documents, "hosts": self.hosts, "nodes": self.nodes, "requests": self.requests,
            "unmodified": self.unmodified, "bytes": self.bytes, "done_before": self.done_before, "outcomes": counts,
            "agents": self.told.iter().map(agent).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(), "omitted": self.omitted,
        })
    }
}
