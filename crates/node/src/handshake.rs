//! RFC 0024 §3.2 and RFC 0024 §8 from the side of whoever asks: the handshake with a provider, remembered with its
//! evidence, and a downgrade that nobody announced refused.
//!
//! What is remembered of a provider is the entry of its profile, the digest of the manifest it stood in and the moment;
//! the agreement is computed from that again, so that the memory can be checked by whoever reads it (decisions/0131).
//! Whoever fetches manifests, a person's program or a crawler, brings the bytes.
//!
//! INVARIANT: an agreement below a remembered one is used only when the end of that version had been announced.

use json::{Document, Instant, Limits, Value, json};
use schema::{Agreement, Code, CompatibilityProfile, Disagreement, Entry, Permits, SchemaId, Version};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;
use trust::Digest;

/// Seconds after which a remembered provider is asked for its profile again.
pub const REMEMBERED_SECONDS: i64 = 24 * 3_600;

/// Providers that are remembered; the oldest agreement makes room.
const AGREEMENTS_MAX: usize = 1_000;

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The schema.
    pub schema: SchemaId,
    /// The versions that this side writes and reads.
    pub ours: BTreeSet<Version>,
    /// Whether answers may come in another one.
    pub permits: Permits,
}

/// A provider as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Provider<'a> {
    /// Its address.
    pub address: &'a str,
    /// What it calls itself, and its manifest; nothing when it publishes none.
    pub manifest: Option<(&'a str, &'a [u8])>,
}

/// What was agreed with a provider, and from what that follows.
#[derive(Clone, Debug)]
pub struct Met {
    /// The versions.
    pub agreement: Agreement,
    /// What the provider said.
    pub entry: Entry,
    /// The memory of it.
    pub evidence: Value,
}

/// Why there is no agreement.
#[derive(Debug, Error)]
pub enum Parting {
    /// The manifest cannot be read.
    #[error("the provider's manifest cannot be used: {0}")]
    Unreadable(json::ParseError),
    /// Its profile breaks a rule.
    #[error("the provider's manifest cannot be used: {0}")]
    Profile(schema::Refusal),
    /// No version would do, or only less than before.
    #[error("{0}")]
    Disagreement(#[from] Box<Disagreement>),
    /// There was a profile, and this version was agreed.
    #[error("no versions are published any more, and {0} was agreed before")]
    Vanished(Version),
}

impl Parting {
    /// The stable code, where the words of RFC 0024 have one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Unreadable(_) => None,
            Self::Profile(refusal) => Some(refusal.code),
            Self::Disagreement(disagreement) => Some(disagreement.code),
            Self::Vanished(_) => Some(Code::DowngradeRefused),
        }
    }
}

impl Met {
    /// Whether it still counts without asking again.
    pub fn is_of_today(&self, now: Instant) -> bool {
        let agreed = self.evidence.get("agreed_at").and_then(Value::as_str).and_then(Instant::parse_rfc3339);
        agreed.is_some_and(|agreed| agreed <= now && now < agreed.plus(REMEMBERED_SECONDS))
    }
}

/// What is known of providers.
#[derive(Debug, Default)]
pub struct Memory {
    agreements: Vec<Value>,
}

impl Memory {
    /// What a file holds; nothing when there is none.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read?,
        };
        let kept = Document::parse(&bytes, &Limits::OURS).map_err(std::io::Error::other)?.root().to_value();
        let agreements = kept.get("agreements").and_then(Value::as_array).cloned();
        Ok(Self { agreements: agreements.ok_or_else(|| std::io::Error::other("`agreements` is missing"))? })
    }

    /// Writes it down, whole or not at all.
    pub fn keep(&self, path: &Path) -> std::io::Result<()> {
        let text = format!("{:#}\n", json!({"agreements": self.agreements}));
        let beside: PathBuf = path.with_extension("new");
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&beside, text)?;
        std::fs::rename(&beside, path)
    }

    /// What was agreed with a provider, computed from what it had said.
    pub fn recall(&self, address: &str, schema: &SchemaId) -> Option<Met> {
        let is = |kept: &&Value, name: &str, value: &str| kept.get(name).and_then(Value::as_str) == Some(value);
        let here = |kept: &&Value| is(kept, "address", address) && is(kept, "schema", schema.as_str());
        let kept = self.agreements.iter().find(here)?;
        let profile = Document::of(kept.get("profile")?).ok()?;
        let entry = CompatibilityProfile::read(profile.root()).ok()?.schemas.remove(schema)?;
        let ours = kept.get("ours")?.as_array()?.iter().filter_map(|version| Version::parse(version.as_str()?));
        let flag = |name: &str| kept.get(name).and_then(Value::as_bool).unwrap_or_default();
        let permits = Permits { upgrade: flag("permit_upgrade"), downgrade: flag("permit_downgrade") };
        let at = Instant::parse_rfc3339(kept.get("agreed_at")?.as_str()?)?;
        let agreement = schema::negotiate(schema, &ours.collect(), &entry, permits, at).ok()?;
        Some(Met { agreement, entry, evidence: kept.clone() })
    }

    /// Agrees with a provider and remembers it; nothing when it never published a profile of the schema (RFC 0024 §7).
    ///
    /// Whoever offers less than before without having announced it is refused, and what was remembered stays.
    pub fn meet(&mut self, provider: Provider<'_>, wanted: &Wanted, now: Instant) -> Result<Option<Met>, Parting> {
        let before = self.recall(provider.address, &wanted.schema);
        let met = agree(provider, wanted, before.as_ref(), now)?;
        if let Some(met) = &met {
            self.remember(met.evidence.clone());
        }
        Ok(met)
    }

    fn remember(&mut self, evidence: Value) {
        let same = |kept: &Value| ["address", "schema"].iter().all(|name| kept.get(name) == evidence.get(name));
        self.agreements.retain(|kept| !same(kept));
        self.agreements.push(evidence);
        let over = self.agreements.len().saturating_sub(AGREEMENTS_MAX);
        self.agreements.drain(..over);
    }
}

/// Agrees with a provider about the version of a schema, not below what was agreed before; nothing is remembered.
pub fn agree(
    provider: Provider<'_>,
    wanted: &Wanted,
    before: Option<&Met>,
    now: Instant,
) -> Result<Option<Met>, Parting> {
    let Wanted { schema, ours, permits } = wanted;
    let found = match provider.manifest {
        Some((did, bytes)) => entry(bytes, schema)?.map(|entry| (entry, did, bytes)),
        None => None,
    };
    let Some((entry, did, bytes)) = found else {
        return before.map_or(Ok(None), |before| Err(Parting::Vanished(before.agreement.version)));
    };
    let agreement = match before {
        Some(before) => schema::negotiate_again(&before.agreement, ours, &entry, *permits, now)?,
        None => schema::negotiate(schema, ours, &entry, *permits, now)?,
    };
    let mut profile = CompatibilityProfile::default();
    profile.schemas.insert(schema.clone(), entry.clone());
    let evidence = json!({
        "address": provider.address, "did": did, "schema": schema.as_str(), "agreed_at": now.to_string(),
        "ours": ours.iter().map(Version::to_string).collect::<Vec<_>>(),
        "permit_upgrade": permits.upgrade, "permit_downgrade": permits.downgrade,
        "manifest_sha256": Digest::of(bytes).to_string(),
        "profile": profile.to_value(),
        "version": agreement.version.to_string(), "answer": agreement.answer.to_string(),
    });
    Ok(Some(Met { agreement, entry, evidence }))
}

/// What a manifest says of a schema; nothing when it says nothing.
fn entry(manifest: &[u8], schema: &SchemaId) -> Result<Option<Entry>, Parting> {
    let manifest = Document::parse(manifest, &Limits::OURS).map_err(Parting::Unreadable)?;
    let Some(block) = manifest.root().get("schema_compatibility") else { return Ok(None) };
    Ok(CompatibilityProfile::read(block).map_err(Parting::Profile)?.schemas.remove(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::INTENT;

    const ADDRESS: &str = "https://node.example";

    fn wanted() -> Wanted {
        let ours = ["1.2", "1.3"].iter().filter_map(|text| Version::parse(text)).collect();
        Wanted { schema: SchemaId::parse(INTENT).unwrap(), ours, permits: Permits::default() }
    }

    fn manifest(versions: &[&str], more: Value) -> Vec<u8> {
        let mut entry = json!({"accepts": versions, "produces": versions, "default": versions.last()});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"schema_compatibility": {INTENT: entry}}).to_string().into_bytes()
    }

    fn meet(memory: &mut Memory, manifest: &[u8], at: &str) -> Result<Option<Met>, Parting> {
        let provider = Provider { address: ADDRESS, manifest: Some(("did:web:node.example", manifest)) };
        memory.meet(provider, &wanted(), Instant::parse_rfc3339(at).unwrap())
    }

    #[test]
    fn what_was_agreed_is_remembered_with_what_it_follows_from() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/versions.json");
        let mut memory = Memory::open(&path).unwrap();
        let bytes = manifest(&["1.2", "1.3"], json!({}));
        let met = meet(&mut memory, &bytes, "2026-05-01T12:00:00Z").unwrap().unwrap();
        assert_eq!(met.agreement.version.to_string(), "1.3");
        memory.keep(&path).unwrap();
        let recalled = Memory::open(&path).unwrap().recall(ADDRESS, &wanted().schema).unwrap();
        assert_eq!((recalled.agreement, recalled.evidence.clone()), (met.agreement, met.evidence));
        assert_eq!(recalled.evidence["manifest_sha256"], json!(Digest::of(&bytes).to_string()));
        let is_of_today = |at: &str| met_at(&recalled.evidence, at);
        assert!(is_of_today("2026-05-02T11:59:59Z") && !is_of_today("2026-05-02T12:00:00Z"));
        std::fs::write(&path, "{").unwrap();
        assert!(Memory::open(&path).is_err());
    }

    fn met_at(evidence: &Value, at: &str) -> bool {
        let mut memory = Memory::default();
        memory.remember(evidence.clone());
        memory.recall(ADDRESS, &wanted().schema).unwrap().is_of_today(Instant::parse_rfc3339(at).unwrap())
    }

    #[test]
    fn less_than_before_is_refused_again_and_again_unless_it_was_announced() {
        let mut memory = Memory::default();
        meet(&mut memory, &manifest(&["1.2", "1.3"], json!({})), "2026-05-01T12:00:00Z").unwrap();
        let less = manifest(&["1.2"], json!({}));
        for _ in 0..2 {
            let parting = meet(&mut memory, &less, "2026-05-02T12:00:00Z").unwrap_err();
            assert_eq!(parting.code(), Some(Code::DowngradeRefused));
        }
        let gone = meet(&mut memory, b"{}", "2026-05-02T12:00:00Z").unwrap_err();
        assert!(matches!(gone, Parting::Vanished(version) if version.to_string() == "1.3"));
        let silent = Provider { address: ADDRESS, manifest: None };
        let now = Instant::parse_rfc3339("2026-05-02T12:00:00Z").unwrap();
        assert!(matches!(memory.meet(silent, &wanted(), now), Err(Parting::Vanished(_))));
        let announced = json!({"deprecations": {"1.3": {
            "deprecated": true, "announced_at": "2026-05-03T00:00:00Z", "sunset": "2026-09-01T00:00:00Z",
        }}});
        meet(&mut memory, &manifest(&["1.2", "1.3"], announced), "2026-05-03T12:00:00Z").unwrap();
        let met = meet(&mut memory, &less, "2026-09-02T00:00:00Z").unwrap().unwrap();
        assert_eq!(met.agreement.version.to_string(), "1.2");
    }

    #[test]
    fn whoever_never_published_a_profile_is_asked_in_its_default() {
        let mut memory = Memory::default();
        assert!(meet(&mut memory, b"{}", "2026-05-01T12:00:00Z").unwrap().is_none());
        let broken = manifest(&["x"], json!({}));
        assert!(matches!(meet(&mut memory, &broken, "2026-05-01T12:00:00Z"), Err(Parting::Profile(_))));
        assert!(matches!(meet(&mut memory, b"{", "2026-05-01T12:00:00Z"), Err(Parting::Unreadable(_))));
        assert!(memory.agreements.is_empty());
    }

    #[test]
    fn the_oldest_agreement_makes_room() {
        let mut memory = Memory::default();
        for number in 0..AGREEMENTS_MAX + 2 {
            memory.remember(json!({"address": format!("https://{number}.example"), "schema": INTENT}));
        }
        assert_eq!(memory.agreements.len(), AGREEMENTS_MAX);
        assert_eq!(memory.agreements[0]["address"], "https://2.example");
    }
}
