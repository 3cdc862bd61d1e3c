//! RFC 0024 §3.2 and RFC 0024 §8 at the terminal: the handshake before a question, whoever asks it.
//!
//! What is agreed and remembered is `node::handshake`'s to say; here the manifest is fetched, the memory has its file in
//! the user's data directory, and whatever goes wrong is told in words. A node that refuses the agreed version is met once
//! more.

use crate::environment;
use crate::failure::Failure;
use crate::output;
use crate::peer::Peer;
use json::{Instant, Pointer};
use node::handshake::{Memory, Met, Parting, Provider, Wanted, agree as agree_once};
use schema::{Agreement, Code, Disagreement, Permits, SchemaId, Version};
use std::path::Path;

/// The file of the memory, in the user's data directory.
const FILE: &str = "versions.json";

/// The versions of the intent that this program writes and reads.
pub(crate) const OURS: [&str; 2] = ["1.2", "1.3"];

/// The handshake before an intent.
fn intent() -> Option<Wanted> {
    let ours = OURS.iter().filter_map(|version| Version::parse(version)).collect();
    Some(Wanted { schema: SchemaId::parse(node::versions::INTENT)?, ours, permits: Permits::default() })
}

/// Whether this program speaks for itself; what would be with other versions is not remembered.
fn is_own(wanted: &Wanted) -> bool {
    wanted.ours.iter().map(Version::to_string).eq(OURS)
}

/// How a handshake is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// What is remembered counts for a day.
    Remembered,
    /// The provider is asked again.
    Now,
}

/// Where it is remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the file.
    InFile,
    /// Nowhere: the node is gone with the program.
    Nowhere,
}

/// Asks an intent in the version that is agreed first, as RFC 0024 §3.2 has it; when the node has changed its mind, once
/// more.
pub(crate) fn in_agreement<T>(
    peer: &Peer,
    kept: Kept,
    now: Instant,
    mut ask: impl FnMut(Option<&Agreement>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(wanted) = intent() else { return ask(None) };
    let met = match kept {
        Kept::InFile => agree(peer, &wanted, When::Remembered, now)?,
        Kept::Nowhere => fresh(peer, &wanted, now)?,
    };
    let agreed = met.as_ref().map(|met| &met.agreement);
    agreed.into_iter().for_each(warn);
    match ask(agreed) {
        Err(failure) if agreed.is_some() && kept == Kept::InFile && is_over(&failure) => {
            let met = agree(peer, &wanted, When::Now, now)?;
            let agreed = met.as_ref().map(|met| &met.agreement);
            agreed.into_iter().for_each(warn);
            ask(agreed)
        }
        asked => asked,
    }
}

/// Agrees with a provider about the version of a schema; nothing when it publishes no profile of it (RFC 0024 §7).
pub(crate) fn agree(peer: &Peer, wanted: &Wanted, when: When, now: Instant) -> Result<Option<Met>, Failure> {
    if !is_own(wanted) {
        return fresh(peer, wanted, now);
    }
    let path = environment::data_directory().map(|folder| folder.join(FILE));
    let mut memory = path.as_deref().map(opened).unwrap_or_default();
    let before = memory.recall(peer.address(), &wanted.schema).filter(|_| when == When::Remembered);
    if let Some(met) = before.filter(|met| met.is_of_today(now)) {
        return Ok(Some(met));
    }
    let manifest = peer.manifest()?;
    meet(&mut memory, path.as_deref(), provider(peer, manifest.as_ref()), wanted, now)
}

/// Agrees with whoever is at an address about the intent, by the manifest that was found there and the DID in it.
pub(crate) fn greet(address: &str, did: &str, manifest: &[u8], now: Instant) -> Result<(), Failure> {
    let Some(wanted) = intent() else { return Ok(()) };
    let path = environment::data_directory().map(|folder| folder.join(FILE));
    let mut memory = path.as_deref().map(opened).unwrap_or_default();
    let provider = Provider { address, manifest: Some((did, manifest)) };
    let met = meet(&mut memory, path.as_deref(), provider, &wanted, now)?;
    met.iter().for_each(|met| warn(&met.agreement));
    Ok(())
}

fn meet(
    memory: &mut Memory,
    path: Option<&Path>,
    provider: Provider<'_>,
    wanted: &Wanted,
    now: Instant,
) -> Result<Option<Met>, Failure> {
    let address = provider.address;
    let met = memory.meet(provider, wanted, now).map_err(|parting| parted(address, &parting))?;
    if let (Some(path), Some(_)) = (path, &met)
        && let Err(error) = memory.keep(path)
    {
        output::warn(&format!("what was agreed cannot be remembered in {}: {error}", path.display()));
    }
    Ok(met)
}

/// The handshake as if for the first time, remembered nowhere.
fn fresh(peer: &Peer, wanted: &Wanted, now: Instant) -> Result<Option<Met>, Failure> {
    let manifest = peer.manifest()?;
    agree_once(provider(peer, manifest.as_ref()), wanted, None, now).map_err(|parting| parted(peer.address(), &parting))
}

fn provider<'a>(peer: &'a Peer, manifest: Option<&'a (Vec<u8>, String)>) -> Provider<'a> {
    let manifest = manifest.map(|(bytes, did)| (did.as_str(), bytes.as_slice()));
    Provider { address: peer.address(), manifest }
}

/// What is known; an unreadable memory is none.
fn opened(path: &Path) -> Memory {
    Memory::open(path).unwrap_or_else(|_| {
        output::warn(&format!("{FILE} cannot be read; what was agreed with providers is forgotten"));
        Memory::default()
    })
}

/// Whether a refusal of the node means that the handshake has to be done again.
fn is_over(failure: &Failure) -> bool {
    let over = [Code::VersionNotAccepted, Code::VersionNotProduced, Code::VersionWithdrawn];
    failure.code().is_some_and(|code| over.iter().any(|known| known.name() == code))
}

/// Says that a version in use will go.
fn warn(agreement: &Agreement) {
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

/// Why there is no agreement, in words.
fn parted(address: &str, parting: &Parting) -> Failure {
    match parting {
        Parting::Unreadable(_) => Failure::refused(parting.to_string()),
        Parting::Profile(refusal) => {
            let at = Pointer::root().child("schema_compatibility");
            Failure::refused(parting.to_string()).coded(refusal.code.name(), &at)
        }
        Parting::Disagreement(disagreement) => refused(address, disagreement),
        Parting::Vanished(version) => {
            let message = format!("{address} publishes no versions any more, and {version} was agreed with it before");
            let failure = Failure::refused(message).coded(Code::DowngradeRefused.name(), &Pointer::root());
            failure.help("ask the provider; somebody may stand in between")
        }
    }
}

/// Why there is no agreement, and what would work.
fn refused(address: &str, disagreement: &Disagreement) -> Failure {
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

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, Value, json};

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
