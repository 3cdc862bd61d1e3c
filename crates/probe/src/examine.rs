//! RFC 0020 §7, RFC 0024 §6: examines a live node and says, requirement by requirement, whether it meets levels Q1 to
//! Q3, S1 to S3 of the subscription mechanics that Q3 names, and V1 to V3 of versions.

use crate::completeness::{self, Completeness};
use crate::corpus::{Case, Corpus};
use crate::live::{Live, Outcome};
use crate::receipt::About;
use crate::requirement::Requirement;
use crate::surface::{self, Surface};
use crate::target::Target;
use anyhow::Result;
use json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trust::SigningKey;

/// How an examination is done.
pub struct Settings {
    /// Only cases and requirements whose id contains this.
    pub only: Option<String>,
    /// Messages under way at once.
    pub connections: usize,
    /// Thirty-two random bytes, from which the keys of the run are made.
    pub seed: [u8; 32],
    /// Tells the seconds since 1970.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// The key of somebody whose mappings the node's operator trusts; without it V3 cannot be shown.
    pub publisher: Option<SigningKey>,
}

/// What became of one requirement.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What is demanded.
    pub requirement: Requirement,
    /// Cases that the node answers as they say.
    pub passed: usize,
    /// Cases that it does not, with what it said.
    pub failed: Vec<(String, String)>,
    /// Cases that cannot be put over HTTP, by reason.
    pub not_put: BTreeMap<String, usize>,
}

/// Whether a level is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Every case of it that can be put passes, and each requirement that a node can show is shown.
    Met,
    /// Some case fails.
    NotMet,
    /// Nothing fails, and something that must be shown could not be.
    NotShown,
}

impl Level {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotMet, _) | (_, Self::NotMet) => Self::NotMet,
            (Self::Met, Self::Met) => Self::Met,
            (Self::NotShown, _) | (_, Self::NotShown) => Self::NotShown,
        }
    }

    /// The name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not_met",
            Self::NotShown => "not_shown",
        }
    }
}

/// How long the handshake of RFC 0024 §3.2 takes, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiation {
    /// How many were timed, one after the other.
    pub handshakes: usize,
    /// Half of them take no longer.
    pub p50_us: u64,
    /// Nor do 95 of 100 take longer than this.
    pub p95_us: u64,
    /// What the versioning profile allows for those.
    pub floor_us: u64,
}

impl Negotiation {
    fn to_value(self) -> Value {
        json!({"handshakes": self.handshakes, "p50_us": self.p50_us, "p95_us": self.p95_us, "floor_us": self.floor_us})
    }
}

/// What became of an examination.
#[derive(Clone, Debug)]
pub struct Examination {
    /// Who was examined.
    pub did: String,
    /// Whether records could be published; without, only refusals are tried.
    pub has_records: bool,
    /// One for each requirement that has a case, in the order of the list.
    pub findings: Vec<Finding>,
    /// Requirements of a feed that no case can show over plain requests.
    pub unshown: Vec<Requirement>,
    /// Records that could not be withdrawn in the end.
    pub left_behind: Vec<String>,
    /// How much of known answers came back; nothing when it was not asked for, or no record could be published.
    pub completeness: Option<Completeness>,
    /// What the core protocol asks of every tool.
    pub surface: Surface,
    /// How long the handshake about versions takes; nothing when it was not asked for, or the node knows none.
    pub negotiation: Option<Negotiation>,
    pub(crate) about: About,
    /// Whether every case was meant.
    pub(crate) is_whole: bool,
}

/// What the completeness ratio is called where only a part of the examination is asked for.
const COMPLETENESS: &str = "aql_completeness_ratio";

/// Puts every case to a node; `progress` hears how many are done, and of how many.
pub fn examine(target: Target, settings: Settings, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Examination> {
    let corpus = Corpus::embedded()?;
    let only = settings.only.as_deref().unwrap_or_default();
    let meant = |case: &&Case| case.id.contains(only) || case.requirement.contains(only);
    let (mut cases, alone): (Vec<&Case>, Vec<&Case>) =
        corpus.cases().map(|(_, case)| case).filter(meant).partition(|case| case.kind != "measure");
    let (did, has_records) = (target.did().to_owned(), target.records.is_some());
    let about = About::of(&target.url(""), &target.manifest);
    let mut live = Live::new(target, settings.seed, settings.clock);
    live.publisher = settings.publisher;
    let mut outcomes = share(settings.connections, &cases, |case| live.put(case), progress);
    // What is measured is measured when nothing else is asked.
    outcomes.extend(alone.iter().map(|case| live.put(case)));
    cases.extend(alone);
    let surface = surface::look(&live);
    let measured = has_records && COMPLETENESS.contains(only);
    let completeness = measured.then(|| completeness::measure(&live, settings.connections)).transpose()?;
    let published = live.take_published();
    let withdrawn = share(settings.connections, &published, |(id, by)| live.withdraw(id, by), &|_, _| {});
    let left_behind = withdrawn.into_iter().filter_map(|done| done.err().map(|error| format!("{error:#}"))).collect();
    let (mut findings, mut unshown) = (Vec::new(), Vec::new());
    for requirement in Requirement::all()? {
        if requirement.scope == "feed" && !corpus.cases().any(|(_, case)| case.requirement == requirement.id) {
            unshown.push(requirement);
            continue;
        }
        let mut finding = Finding { requirement, passed: 0, failed: Vec::new(), not_put: BTreeMap::new() };
        for (case, outcome) in
            cases.iter().zip(&outcomes).filter(|(case, _)| case.requirement == finding.requirement.id)
        {
            match outcome {
                Outcome::Passed => finding.passed += 1,
                Outcome::Failed(why) => finding.failed.push((case.id.clone(), why.clone())),
                Outcome::NotPut(why) => *finding.not_put.entry(why.clone()).or_default() += 1,
            }
        }
        if finding.cases() > 0 {
            findings.push(finding);
        }
    }
    let (is_whole, negotiation) = (only.is_empty(), live.timed());
    Ok(Examination {
        did,
        has_records,
        findings,
        unshown,
        left_behind,
        completeness,
        surface,
        negotiation,
        about,
        is_whole,
    })
}

/// Does a job for every element, several at once, and gives the results in the order of the elements.
pub(crate) fn share<T: Sync, R: Send>(
    threads: usize,
    all: &[T],
    job: impl Fn(&T) -> R + Sync,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(all.len())));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((position, element)) = {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    all.get(position).map(|element| (position, element))
                } {
                    let result = job(element);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((position, result));
                    progress(done.len(), all.len());
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, result)| result).collect()
}

impl Finding {
    /// Cases of the requirement.
    pub fn cases(&self) -> usize {
        self.passed + self.failed.len() + self.unput()
    }

    /// Cases that could not be put.
    pub fn unput(&self) -> usize {
        self.not_put.values().sum()
    }
}

impl Examination {
    /// Whether level Q1 is met.
    pub fn q1(&self) -> Level {
        self.meets("Q1")
    }

    /// Whether level Q2 is met, to which everything of Q1 belongs.
    pub fn q2(&self) -> Level {
        self.q1().and(self.meets("Q2"))
    }

    /// Whether level Q3 is met, to which everything of Q2 belongs.
    pub fn q3(&self) -> Level {
        self.q2().and(self.meets("Q3"))
    }

    /// Every level with whether it is met; each includes those before it of its letter.
    pub fn levels(&self) -> [(&'static str, Level); 9] {
        let (s1, s2, s3) = (self.meets("S1"), self.meets("S2"), self.meets("S3"));
        let levels = [("Q1", self.q1()), ("Q2", self.q2()), ("Q3", self.q3())];
        let [q1, q2, q3] = levels;
        let (v1, v2, v3) = (self.meets("V1"), self.meets("V2"), self.meets("V3"));
        let of_feeds = [("S1", s1), ("S2", s1.and(s2)), ("S3", s1.and(s2).and(s3))];
        let of_versions = [("V1", v1), ("V2", v1.and(v2)), ("V3", v1.and(v2).and(v3))];
        let ([s1, s2, s3], [v1, v2, v3]) = (of_feeds, of_versions);
        [q1, q2, q3, s1, s2, s3, v1, v2, v3]
    }

    /// Whether the requirements that a level adds are met: none fails, and each that can be shown over HTTP is shown.
    fn meets(&self, level: &str) -> Level {
        let counting = || self.findings.iter().filter(|finding| finding.requirement.level == level);
        if counting().any(|finding| !finding.failed.is_empty()) {
            return Level::NotMet;
        }
        let shown =
            |finding: &Finding| finding.passed > 0 || (self.has_records && finding.requirement.scope == "language");
        let all = self.unshown.iter().all(|requirement| requirement.level != level);
        if all && counting().next().is_some() && counting().all(shown) { Level::Met } else { Level::NotShown }
    }

    /// Passed, failed and not put, in all.
    pub fn totals(&self) -> (usize, usize, usize) {
        let add = |(passed, failed, not_put): (usize, usize, usize), finding: &Finding| {
            (passed + finding.passed, failed + finding.failed.len(), not_put + finding.unput())
        };
        self.findings.iter().fold((0, 0, 0), add)
    }

    /// The examination for programs.
    pub fn to_value(&self) -> Value {
        let (passed, failed, not_put) = self.totals();
        let finding = |finding: &Finding| {
            let Requirement { id, section, level, scope, text } = &finding.requirement;
            let failed: Vec<Value> =
                finding.failed.iter().map(|(case, why)| json!({"case": case, "why": why})).collect();
            json!({
                "requirement": id, "section": section, "level": level, "scope": scope, "text": text,
                "passed": finding.passed, "failed": failed, "not_applicable": finding.not_put,
            })
        };
        json!({
            "did": self.did,
            "record_endpoint": self.has_records,
            "q1": self.q1().name(),
            "q2": self.q2().name(),
            "levels": self.levels().map(|(name, level)| (name.to_owned(), json!(level.name()))).into_iter().collect::<json::Value>(),
            "unshown": self.unshown.iter().map(|requirement| json!({"requirement": requirement.id, "level": requirement.level,
                "text": requirement.text})).collect::<Vec<_>>(),
            "passed": passed, "failed": failed, "not_applicable": not_put,
            "requirements": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "left_behind": self.left_behind,
            "completeness": self.completeness.as_ref().map(Completeness::to_value),
            "surface": self.surface.to_value(),
            "negotiation": self.negotiation.map(Negotiation::to_value),
        })
    }
}
