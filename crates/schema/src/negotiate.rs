//! RFC 0024 §3.2: the handshake, from the side of whoever asks and from the side of whoever answers.
//!
//! INVARIANT: an [`Agreement`] names a version that both sides know; nothing is translated that nobody permitted.

use crate::deprecation::Deprecation;
use crate::identifier::SchemaId;
use crate::profile::Entry;
use crate::refusal::Code;
use crate::version::Version;
use json::{Instant, Value, json};
use std::collections::BTreeSet;

/// What the request lets the provider do (`version_negotiation`); nothing when nobody says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// The answer may come in a later version.
    pub upgrade: bool,
    /// The answer may come in an earlier version.
    pub downgrade: bool,
}

/// The version that both sides use from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// What it is the version of.
    pub schema: SchemaId,
    /// What requests are written in; it goes into `schema_version`.
    pub version: Version,
    /// What answers come in.
    pub answer: Version,
    /// That one of the two will go.
    pub deprecation: Option<(Version, Deprecation)>,
}

/// Why there is no agreement, and what would work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.detail())]
pub struct Disagreement {
    /// Which rule stands in the way.
    pub code: Code,
    /// What it is about.
    pub schema: SchemaId,
    /// The version in question, where there is one.
    pub requested: Option<Version>,
    /// What the provider reads today.
    pub accepts: BTreeSet<Version>,
    /// What it writes today.
    pub produces: BTreeSet<Version>,
    /// What it writes for whoever does not say.
    pub default: Option<Version>,
    /// Requests that would be answered: a version, and what they would have to permit.
    pub would_work: Vec<(Version, Permits)>,
}

impl Disagreement {
    fn new(code: Code, schema: &SchemaId, entry: &Entry, requested: Option<Version>, now: Instant) -> Box<Self> {
        let here = Now { entry, now };
        let would_work = here.accepts().filter_map(|version| Some((version, here.least_permits(version)?))).collect();
        Box::new(Self {
            code,
            schema: schema.clone(),
            requested,
            accepts: here.accepts().collect(),
            produces: here.produces().collect(),
            default: entry.default,
            would_work,
        })
    }

    fn detail(&self) -> String {
        let list =
            |versions: &BTreeSet<Version>| versions.iter().map(Version::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "no agreement about the version: accepted are {}; produced are {}",
            list(&self.accepts),
            list(&self.produces)
        )
    }

    /// The details of the structured error.
    pub fn to_value(&self) -> Value {
        let list = |versions: &BTreeSet<Version>| versions.iter().map(Version::to_string).collect::<Vec<_>>();
        let way = |(version, permits): &(Version, Permits)| {
            let permits = json!({"permit_upgrade": permits.upgrade, "permit_downgrade": permits.downgrade});
            json!({"schema_version": version.to_string(), "version_negotiation": permits})
        };
        let mut value = json!({
            "schema": self.schema.as_str(),
            "accepts": list(&self.accepts),
            "produces": list(&self.produces),
            "would_work": self.would_work.iter().map(way).collect::<Vec<_>>(),
        });
        if let Value::Object(members) = &mut value {
            let versions = [("requested", self.requested), ("default", self.default)];
            for (name, version) in versions.into_iter().filter_map(|(name, version)| Some((name, version?))) {
                members.insert(name.to_owned(), json!(version.to_string()));
            }
        }
        value
    }
}

/// A profile's entry at a moment: what has gone by then is not there.
#[derive(Clone, Copy)]
struct Now<'a> {
    entry: &'a Entry,
    now: Instant,
}

impl<'a> Now<'a> {
    fn stays(self, version: &Version) -> bool {
        !self.entry.deprecations.get(version).is_some_and(|deprecation| deprecation.is_past(self.now))
    }

    fn accepts(self) -> impl DoubleEndedIterator<Item = Version> + 'a {
        self.entry.accepts.iter().copied().filter(move |version| self.stays(version))
    }

    fn produces(self) -> impl DoubleEndedIterator<Item = Version> + 'a {
        self.entry.produces.iter().copied().filter(move |version| self.stays(version))
    }

    /// The version of the answer: the same, else the nearest later or earlier one that is permitted.
    fn answer(self, version: Version, permits: Permits) -> Option<Version> {
        let same = self.produces().find(|produced| *produced == version);
        let later = || self.produces().find(|produced| permits.upgrade && *produced > version);
        let earlier = || self.produces().rev().find(|produced| permits.downgrade && *produced < version);
        same.or_else(later).or_else(earlier)
    }

    fn least_permits(self, version: Version) -> Option<Permits> {
        let [none, upgrade, downgrade] = [(false, false), (true, false), (false, true)];
        let ways = [none, upgrade, downgrade].map(|(upgrade, downgrade)| Permits { upgrade, downgrade });
        ways.into_iter().find(|permits| self.answer(version, *permits).is_some())
    }

    fn deprecation(self, versions: [Version; 2]) -> Option<(Version, Deprecation)> {
        let entry = self.entry;
        versions.into_iter().find_map(|version| Some((version, entry.deprecations.get(&version)?.clone())))
    }
}

/// The consumer's side: the highest version that we know and the provider accepts.
pub fn negotiate(
    schema: &SchemaId,
    ours: &BTreeSet<Version>,
    theirs: &Entry,
    permits: Permits,
    now: Instant,
) -> Result<Agreement, Box<Disagreement>> {
    let here = Now { entry: theirs, now };
    let refuse = |code, version| Disagreement::new(code, schema, theirs, version, now);
    let common = here.accepts().rev().find(|version| ours.contains(version));
    let version = common.ok_or_else(|| refuse(Code::VersionNotAccepted, None))?;
    // The answer has to be one that we can read, too.
    let answer = here.answer(version, permits).filter(|answer| ours.contains(answer));
    let answer = answer.ok_or_else(|| refuse(Code::VersionNotProduced, Some(version)))?;
    Ok(Agreement { schema: schema.clone(), version, answer, deprecation: here.deprecation([version, answer]) })
}

/// The handshake with somebody we know already: less than before is refused, unless its time had been announced.
pub fn negotiate_again(
    before: &Agreement,
    ours: &BTreeSet<Version>,
    theirs: &Entry,
    permits: Permits,
    now: Instant,
) -> Result<Agreement, Box<Disagreement>> {
    let agreed = negotiate(&before.schema, ours, theirs, permits, now);
    let announced = before.deprecation.as_ref().is_some_and(|(_, deprecation)| deprecation.is_past(now));
    let less = match &agreed {
        Ok(agreement) => agreement.version < before.version || agreement.answer < before.answer,
        Err(_) => true,
    };
    // What we have given up ourselves is no downgrade of theirs.
    let still_ours = ours.contains(&before.version) && ours.contains(&before.answer);
    if less && still_ours && !announced {
        let requested = Some(before.version);
        return Err(Disagreement::new(Code::DowngradeRefused, &before.schema, theirs, requested, now));
    }
    agreed
}

impl Agreement {
    /// RFC 0024 §8: an answer in another version than agreed is discarded; one without a version is in the agreed one
    /// only where nothing else could be meant.
    pub fn holds_for(&self, answered: Option<Version>) -> Result<(), Code> {
        match answered {
            Some(version) if version == self.answer => Ok(()),
            None if self.version == self.answer => Ok(()),
            _ => Err(Code::VersionUnexpected),
        }
    }
}

/// The provider's side: how a request is read and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The version that the request is written in.
    pub request: Version,
    /// The version that the answer is written in; it goes into `schema_version` of the signed answer.
    pub answer: Version,
    /// The `deprecation_warning` of the answer.
    pub warning: Option<Value>,
}

/// The provider's side of the handshake: which version is read, which is written.
pub fn serve(
    schema: &SchemaId,
    entry: &Entry,
    requested: Option<Version>,
    permits: Permits,
    now: Instant,
) -> Result<Exchange, Box<Disagreement>> {
    let here = Now { entry, now };
    let refuse = |code| Err(Disagreement::new(code, schema, entry, requested, now));
    let Some(request) = requested.or(entry.default) else { return refuse(Code::VersionNotAccepted) };
    if !here.stays(&request) {
        return refuse(Code::VersionWithdrawn);
    }
    // Whoever does not say a version operates at the default, which is one that we produce.
    if requested.is_some() && !entry.accepts.contains(&request) {
        return refuse(Code::VersionNotAccepted);
    }
    let Some(answer) = here.answer(request, permits) else { return refuse(Code::VersionNotProduced) };
    let deprecation = here.deprecation([request, answer]);
    let warning = deprecation.map(|(version, deprecation)| deprecation.warning(schema, version));
    Ok(Exchange { request, answer, warning })
}
