//! RFC 0024 §3.5: how a version goes. It is announced at least ninety days ahead, its date never comes closer, and it
//! stays until then.
//!
//! INVARIANT: between the two dates of a [`Deprecation`] lie at least [`NOTICE_DAYS_MIN`] days.

use crate::identifier::SchemaId;
use crate::profile::{CompatibilityProfile, Entry};
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use crate::version::Version;
use json::{Instant, Pointer, Value, json};

/// The least notice that the text allows.
pub const NOTICE_DAYS_MIN: i64 = 90;

/// The notice we give; the core protocol asks for as much elsewhere.
pub const NOTICE_DAYS_USUAL: i64 = 180;

const DAY_SECONDS: i64 = 86_400;

/// A version that will go: since when that is known, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecation {
    announced_at: Instant,
    sunset: Instant,
    /// The version to move to.
    pub successor: Option<Version>,
    /// Where a mapping to it lies.
    pub mapping: Option<String>,
}

impl Deprecation {
    /// Announces, `now`, that a version goes at `sunset`.
    pub fn announce(now: Instant, sunset: Instant) -> Result<Self, Refusal> {
        Self::dated(now, sunset, &Pointer::root())
    }

    fn dated(announced_at: Instant, sunset: Instant, at: &Pointer) -> Result<Self, Refusal> {
        if sunset < announced_at.plus(NOTICE_DAYS_MIN * DAY_SECONDS) {
            let detail = format!("a version stays at least {NOTICE_DAYS_MIN} days after its end is announced");
            return Err(Refusal::new(Code::NoticeTooShort, at.child("sunset"), detail));
        }
        Ok(Self { announced_at, sunset, successor: None, mapping: None })
    }

    /// When it was announced.
    pub fn announced_at(&self) -> Instant {
        self.announced_at
    }

    /// When the version goes.
    pub fn sunset(&self) -> Instant {
        self.sunset
    }

    /// Whether the version may be gone.
    pub fn is_past(&self, now: Instant) -> bool {
        now >= self.sunset
    }

    /// The same announcement with another date, which is never closer.
    pub fn postponed(&self, sunset: Instant) -> Result<Self, Refusal> {
        if sunset < self.sunset {
            let detail = "an announced date never comes closer; the old one stays";
            return Err(Refusal::new(Code::DeprecationReduced, Pointer::root().child("sunset"), detail));
        }
        Ok(Self { sunset, ..self.clone() })
    }

    /// Reads one entry of a profile.
    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        at.closed(&["deprecated", "announced_at", "sunset", "successor", "mapping"])?;
        let marked = at.required("deprecated")?;
        if !marked.boolean()? {
            return marked
                .refuse(Code::InvalidValue, "an entry here says `true`; leave it out for a version that stays");
        }
        let (announced_at, sunset) = (at.required("announced_at")?.instant()?, at.required("sunset")?.instant()?);
        let successor = at.member("successor").map(|version| Version::read(&version)).transpose()?;
        let mapping = at.member("mapping").map(|url| url.string().map(str::to_owned)).transpose()?;
        Ok(Self { successor, mapping, ..Self::dated(announced_at, sunset, &at.at)? })
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({"deprecated": true});
        self.write(&mut value);
        value
    }

    /// The `deprecation_warning` of every answer that uses the version.
    pub fn warning(&self, schema: &SchemaId, version: Version) -> Value {
        let mut value = json!({"schema": schema.as_str(), "version": version.to_string()});
        self.write(&mut value);
        value
    }

    fn write(&self, value: &mut Value) {
        let Value::Object(members) = value else { return };
        members.insert("announced_at".to_owned(), json!(self.announced_at.to_string()));
        members.insert("sunset".to_owned(), json!(self.sunset.to_string()));
        if let Some(successor) = self.successor {
            members.insert("successor".to_owned(), json!(successor.to_string()));
        }
        if let Some(mapping) = &self.mapping {
            members.insert("mapping".to_owned(), json!(mapping));
        }
    }
}

/// Whether a profile may take the place of the one before it: no date closer, nothing gone before its time.
pub fn succeed(before: &CompatibilityProfile, after: &CompatibilityProfile, now: Instant) -> Result<(), Refusal> {
    for (schema, old) in &before.schemas {
        let at = Pointer::root().child(schema);
        let empty = Entry::default();
        succeed_entry(old, after.schemas.get(schema).unwrap_or(&empty), now, &at)?;
    }
    Ok(())
}

fn succeed_entry(old: &Entry, new: &Entry, now: Instant, at: &Pointer) -> Result<(), Refusal> {
    for version in old.accepts.iter().filter(|version| !new.accepts.contains(version)) {
        if !old.deprecations.get(version).is_some_and(|deprecation| deprecation.is_past(now)) {
            let detail = format!("version {version} goes before an announced date; keep accepting it until then");
            return Err(Refusal::new(Code::WithdrawnEarly, at.child("accepts"), detail));
        }
    }
    for (version, announced) in &old.deprecations {
        let reduced = new.deprecations.get(version).is_some_and(|later| later.sunset < announced.sunset);
        if reduced {
            let place = at.child("deprecations").child(version).child("sunset");
            let detail = format!("the date of version {version} was {}; it never comes closer", announced.sunset);
            return Err(Refusal::new(Code::DeprecationReduced, place, detail));
        }
    }
    for (version, fresh) in new.deprecations.iter().filter(|(version, _)| !old.deprecations.contains_key(version)) {
        // An announcement that claims to be older than it is would shorten the notice.
        if fresh.sunset < now.plus(NOTICE_DAYS_MIN * DAY_SECONDS) {
            let place = at.child("deprecations").child(version).child("sunset");
            let detail = format!("version {version} was not announced before; give it {NOTICE_DAYS_MIN} days from now");
            return Err(Refusal::new(Code::NoticeTooShort, place, detail));
        }
    }
    Ok(())
}
