//! RFC 0024 §3.2 and RFC 0024 §8 from the side of whoever asks: the handshake on first contact, remembered with its
//! evidence, and a downgrade that nobody announced refused.
//!
//! What is remembered of a provider is the entry of its profile, the digest of the manifest it stood in and the moment;
//! the agreement is computed from that again, so that the memory can be checked by whoever reads it.
//!
//! INVARIANT: an agreement below a remembered one is used only when the end of that version had been announced.

use crate::environment;
use crate::failure::Failure;
use crate::output;
use crate::peer::Peer;
use json::{Document, Instant, Limits, Pointer, Value, json};
use schema::{Agreement, Code, CompatibilityProfile, Disagreement, Entry, Permits, SchemaId, Version};
use std::collections::BTreeSet;
use std::path::PathBuf;
use trust::Digest;

/// The file of the memory, in the user's data directory.
const FILE: &str = "versions.json";

/// Seconds after which a remembered provider is asked for its profile again.
const REMEMBERED_SECONDS: i64 = 24 * 3_600;

/// Providers that are remembered; the oldest agreement makes room.
const AGREEMENTS_MAX: usize = 1_000;

/// The versions of the intent that this program writes and reads.
pub(crate) const OURS: [&str; 2] = ["1.2", "1.3"];

/// What is asked of a provider.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) schema: SchemaId,
    pub(crate) ours: BTreeSet<Version>,
    pub(crate) permits: Permits,
}

impl Wanted {
    /// Whether this program speaks for itself; what would be with other versions is not remembered.
    fn is_own(&self) -> bool {
        self.ours.iter().map(Version::to_string).eq(OURS)
    }

    /// The handshake before an intent.
    pub(crate) fn intent() -> Option<Self> {
        let ours = OURS.iter().filter_map(|version| Version::parse(version)).collect();
        Some(Self { schema: SchemaId::parse(node::versions::INTENT)?, ours, permits: Permits::default() })
    }
}

/// What was agreed with a provider, and from what that follows.
pub(crate) struct Met {
    pub(crate) agreement: Agreement,
    /// What the provider said.
    pub(crate) entry: Entry,
    /// The memory of it.
    pub(crate) evidence: Value,
}

/// What is known of providers.
struct Memory {
    path: Option<PathBuf>,
    agreements: Vec<Value>,
}

/// How a handshake is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// What is remembered counts for a day.
    Remembered,
    /// The provider is asked again.
    Now,
}

/// Agrees with a provider about the version of a schema; nothing when it publishes no profile of it (RFC 0024 §7).
pub(crate) fn agree(peer: &Peer, wanted: &Wanted, when: When, now: Instant) -> Result<Option<Met>, Failure> {
    let before = Memory::open().recall(peer.address(), wanted).filter(|_| wanted.is_own());
    if let Some(met) = before.as_ref().filter(|_| when == When::Remembered)
        && met.is_of_today(now)
    {
        return Ok(before);
    }
    let manifest = peer.manifest()?;
    let manifest = manifest.as_ref().map(|(bytes, did)| (bytes.as_slice(), did.as_str()));
    agree_on(peer.address(), manifest, wanted, now)
}

/// The same with whoever is at an address, by the manifest that was found there and the DID that it names.
pub(crate) fn agree_on(
    address: &str,
    manifest: Option<(&[u8], &str)>,
    wanted: &Wanted,
    now: Instant,
) -> Result<Option<Met>, Failure> {
    let mut memory = Memory::open();
    let before = memory.recall(address, wanted).filter(|_| wanted.is_own());
    let entry = manifest.map(|(bytes, did)| Ok((entry(bytes, &wanted.schema)?, bytes, did))).transpose()?;
    let Some((Some(entry), bytes, did)) = entry else {
        return match before {
            None => Ok(None),
            Some(before) => Err(vanished(address, &before)),
        };
    };
    let Wanted { schema, ours, permits } = wanted;
    let agreed = match &before {
        Some(before) => schema::negotiate_again(&before.agreement, ours, &entry, *permits, now),
        None => schema::negotiate(schema, ours, &entry, *permits, now),
    };
    let agreement = agreed.map_err(|disagreement| refused(address, &disagreement))?;
    let evidence = json!({
        "address": address, "did": did, "schema": schema.as_str(), "agreed_at": now.to_string(),
        "ours": ours.iter().map(Version::to_string).collect::<Vec<_>>(),
        "permit_upgrade": permits.upgrade, "permit_downgrade": permits.downgrade,
        "manifest_sha256": Digest::of(bytes).to_string(),
        "profile": profile_of(schema, &entry),
        "version": agreement.version.to_string(), "answer": agreement.answer.to_string(),
    });
    if wanted.is_own() {
        memory.remember(evidence.clone());
    }
    Ok(Some(Met { agreement, entry, evidence }))
}

/// Whether a refusal of the node means that the handshake has to be done again.
pub(crate) fn is_over(failure: &Failure) -> bool {
    let over = [Code::VersionNotAccepted, Code::VersionNotProduced, Code::VersionWithdrawn];
    failure.code().is_some_and(|code| over.iter().any(|known| known.name() == code))
}

/// Says that a version in use will go.
pub(crate) fn warn(agreement: &Agreement) {
    if let Some((version, deprecation)) = &agreement.deprecation {
        let successor = deprecation.successor.map(|next| format!("; {next} follows it")).unwrap_or_default();
        output::warn(&format!("version {version} of the schema is withdrawn on {}{successor}", deprecation.sunset()));
    }
}

/// An answer in another version than agreed is discarded (RFC 0024 §8).
pub(crate) fn check(agreement: &Agreement, answer: json::Node<'_>, address: &str) -> Result<(), Failure> {
    let answered = answer.get("schema_version").and_then(json::Node::as_str).map(Version::parse);
    let held = match answered {
        Some(None) => Err(Code::VersionInvalid),
        Some(version) => agreement.holds_for(version),
        None => agreement.holds_for(None),
    };
    held.map_err(|code| {
        let at = Pointer::root().child("schema_version");
        let message = format!("{address} answers in another version than {}, which was agreed", agreement.answer);
        Failure::refused(message).coded(code.name(), &at).help(ADVICE)
    })
}

const ADVICE: &str = "the answer is discarded; ask the provider, and look who stands in between";

impl Met {
    fn is_of_today(&self, now: Instant) -> bool {
        let agreed = self.evidence.get("agreed_at").and_then(Value::as_str).and_then(Instant::parse_rfc3339);
        agreed.is_some_and(|agreed| agreed <= now && now < agreed.plus(REMEMBERED_SECONDS))
    }
}

impl Memory {
    /// What is known; an unreadable memory is none.
    fn open() -> Self {
        let path = environment::data_directory().map(|folder| folder.join(FILE));
        let read = path.as_ref().and_then(|path| std::fs::read(path).ok());
        let document = read.as_deref().map(|bytes| Document::parse(bytes, &Limits::OURS));
        if matches!(document, Some(Err(_))) {
            output::warn(&format!("{FILE} cannot be read; what was agreed with providers is forgotten"));
        }
        let kept = document.and_then(Result::ok).map(|document| document.root().to_value());
        let agreements = kept.as_ref().and_then(|kept| kept.get("agreements")?.as_array().cloned());
        Self { path, agreements: agreements.unwrap_or_default() }
    }

    /// What was agreed, computed from what the provider had said.
    fn recall(&self, address: &str, wanted: &Wanted) -> Option<Met> {
        let is = |kept: &&Value, name: &str, value: &str| kept.get(name).and_then(Value::as_str) == Some(value);
        let schema = wanted.schema.as_str();
        let kept = self.agreements.iter().find(|kept| is(kept, "address", address) && is(kept, "schema", schema))?;
        let profile = Document::of(kept.get("profile")?).ok()?;
        let entry = CompatibilityProfile::read(profile.root()).ok()?.schemas.remove(&wanted.schema)?;
        let ours = kept.get("ours")?.as_array()?.iter().filter_map(|version| Version::parse(version.as_str()?));
        let flag = |name: &str| kept.get(name).and_then(Value::as_bool).unwrap_or_default();
        let permits = Permits { upgrade: flag("permit_upgrade"), downgrade: flag("permit_downgrade") };
        let at = Instant::parse_rfc3339(kept.get("agreed_at")?.as_str()?)?;
        let agreement = schema::negotiate(&wanted.schema, &ours.collect(), &entry, permits, at).ok()?;
        Some(Met { agreement, entry, evidence: kept.clone() })
    }

    fn remember(&mut self, evidence: Value) {
        let same = |kept: &Value| ["address", "schema"].iter().all(|name| kept.get(name) == evidence.get(name));
        self.agreements.retain(|kept| !same(kept));
        self.agreements.push(evidence);
        let over = self.agreements.len().saturating_sub(AGREEMENTS_MAX);
        self.agreements.drain(..over);
        let Some(path) = &self.path else { return };
        let text = format!("{:#}\n", json!({"agreements": self.agreements}));
        let beside = path.with_extension("new");
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&beside, text))
            .and_then(|()| std::fs::rename(&beside, path));
        if let Err(error) = written {
            output::warn(&format!("what was agreed cannot be remembered in {}: {error}", path.display()));
        }
    }
}

/// What a manifest says of a schema; nothing when it says nothing.
fn entry(manifest: &[u8], schema: &SchemaId) -> Result<Option<Entry>, Failure> {
    let unreadable = |what: String| Failure::refused(format!("the provider's manifest cannot be used: {what}"));
    let manifest = Document::parse(manifest, &Limits::OURS).map_err(|error| unreadable(error.to_string()))?;
    let Some(block) = manifest.root().get("schema_compatibility") else { return Ok(None) };
    let profile = CompatibilityProfile::read(block);
    let profile = profile.map_err(|refusal| {
        unreadable(refusal.to_string()).coded(refusal.code.name(), &Pointer::root().child("schema_compatibility"))
    })?;
    Ok(profile.schemas.get(schema).cloned())
}

fn profile_of(schema: &SchemaId, entry: &Entry) -> Value {
    let mut profile = CompatibilityProfile::default();
    profile.schemas.insert(schema.clone(), entry.clone());
    profile.to_value()
}

/// Why there is no agreement, and what would work.
pub(crate) fn refused(address: &str, disagreement: &Disagreement) -> Failure {
    let way = |(version, permits): &(Version, Permits)| match (permits.upgrade, permits.downgrade) {
        (true, _) => format!("{version} with --permit-upgrade"),
        (_, true) => format!("{version} with --permit-downgrade"),
        (false, false) => version.to_string(),
    };
    let ways: Vec<String> = disagreement.would_work.iter().map(way).collect();
    let message = match disagreement.code {
        Code::DowngradeRefused => {
            format!("{address} suddenly offers less than was agreed with it before, and never announced it")
        }
        _ => format!("{address} and this program have no version in common: {disagreement}"),
    };
    let failure = Failure::refused(message).coded(disagreement.code.name(), &Pointer::root().child("schema_version"));
    if disagreement.code == Code::DowngradeRefused || ways.is_empty() {
        return failure.help("ask the provider; somebody may stand in between");
    }
    failure.help(format!("the provider would answer in {}", ways.join(", ")))
}

fn vanished(address: &str, before: &Met) -> Failure {
    let version = before.agreement.version;
    let message = format!("{address} publishes no versions any more, and {version} was agreed with it before");
    let failure = Failure::refused(message).coded(Code::DowngradeRefused.name(), &Pointer::root());
    failure.help("ask the provider; somebody may stand in between")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_answer(agreed: (&str, &str), answer: Value, code: Option<&str>) {
        let version = |text: &str| Version::parse(text).unwrap();
        let schema = SchemaId::parse(node::versions::INTENT).unwrap();
        let agreement = Agreement { schema, version: version(agreed.0), answer: version(agreed.1), deprecation: None };
        let document = Document::of(&answer).unwrap();
        let checked = check(&agreement, document.root(), "https://node.example");
        assert_eq!(checked.err().as_ref().and_then(Failure::code), code, "{answer}");
    }

    #[test]
    fn an_answer_in_another_version_than_agreed_is_discarded() {
        check_answer(("1.3", "1.3"), json!({"schema_version": "1.3"}), None);
        check_answer(("1.3", "1.3"), json!({"schema_version": "1.3.0"}), None);
        check_answer(("1.3", "1.3"), json!({}), None);
        check_answer(("1.3", "1.3"), json!({"schema_version": "1.2"}), Some("schema_version_unexpected"));
        check_answer(("1.3", "1.3"), json!({"schema_version": "newest"}), Some("schema_version_invalid"));
        check_answer(("1.2", "1.3"), json!({}), Some("schema_version_unexpected"));
    }
}
