//! RFC 0024 §6: what a node does about versions, where one exchange does not show it: its profile as a whole, a mapping
//! for every pair, warnings exactly where they are due, mappings of others, and how long the handshake takes.
//!
//! INVARIANT: the floor is the one that `spec/profiles/versioning.json` declares.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use crate::corpus::Case;
use crate::embedded;
use crate::examine::Negotiation;
use crate::live::{Live, Outcome, is_signed, signed};
use crate::target::{Said, Target};
use crate::wire::Request;
use anyhow::{Context, Result, bail, ensure};
use json::{Document, Value, json};
use schema::{CompatibilityProfile, Entry, Mapping, SchemaId, Version};
use std::time::{Duration, Instant};
use trust::SigningKey;

/// The intent of RFC 0020, whose versions are tried.
const INTENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent.schema.json";

/// What a counterparty of a run asks in; the same in every run, so that a node keeps one mapping of it.
const THEIRS: &str = "https://schemas.example/rialto-probe/question.json";

/// Looks at what a case names.
pub(crate) fn put(live: &Live, case: &Case) -> Result<Outcome> {
    match case.input("check").as_str().unwrap_or_default() {
        "profile" => profile_is_whole(live),
        "warnings" => warnings_are_due(live),
        "pairs" => every_pair_is_mapped(live),
        "strangers" => strangers_are_refused(live),
        "counterparty" => match &live.publisher {
            Some(publisher) => counterparty_is_read(live, publisher),
            None => Ok(Outcome::NotPut("no key was given whose mappings the node's operator trusts (--schema-publisher there, --publisher-key here)".into())),
        },
        "latency" => handshake_is_quick(live),
        other => bail!("nobody knows the check `{other}`"),
    }
}

fn profile(target: &Target) -> Result<CompatibilityProfile> {
    let block = target.manifest.get("schema_compatibility").context("the manifest has no `schema_compatibility`")?;
    let document = Document::of(block)?;
    CompatibilityProfile::read(document.root()).context("the profile cannot be read")
}

fn intent_entry(target: &Target) -> Result<Entry> {
    let id = SchemaId::parse(INTENT).context("the intent's schema has a name")?;
    profile(target)?.schemas.remove(&id).context("the profile says nothing of the intent")
}

fn profile_is_whole(live: &Live) -> Result<Outcome> {
    let entry = intent_entry(&live.target)?;
    ensure!(entry.default.is_some_and(|default| entry.accepts.contains(&default)), "the default is not accepted");
    let url = live.target.url("");
    let home = ["http://127.", "http://localhost", "http://[::1]"].iter().any(|home| url.starts_with(home));
    ensure!(home || url.starts_with("https://"), "the profile is published without TLS");
    Ok(Outcome::Passed)
}

/// An answer in a version, proved and audited.
fn asked_in(live: &Live, version: Version) -> Result<Said> {
    let said = live.ask_intent(&question(live, json!({"schema_version": version.to_string()}))?)?;
    ensure!(said.status == 200, "version {version} is accepted and refused: {}", said.brief());
    let answered = said.value["schema_version"].as_str().and_then(Version::parse);
    ensure!(answered == Some(version), "asked in {version}, answered in {}", said.value["schema_version"]);
    Ok(said)
}

/// An intent that finds nothing; `with` is added before it is signed.
fn question(live: &Live, with: Value) -> Result<Value> {
    let mut intent = json!({
        "intent_id": format!("urn:oap:intent:{}", live.parties.fresh()), "issuer_did": live.parties.did(),
        "category": "discovery", "projection": {"include": ["/x_case"]}, "validity": live.parties.window(),
        "constraints": {"path": "/x_case", "operator": "eq", "value": "nobody has this"},
    });
    for (name, value) in with.as_object().into_iter().flatten() {
        intent[name] = value.clone();
    }
    signed(&intent, &live.parties.first)
}

fn warnings_are_due(live: &Live) -> Result<Outcome> {
    let entry = intent_entry(&live.target)?;
    for version in entry.accepts.iter().filter(|version| entry.produces.contains(version)) {
        let warning = asked_in(live, *version)?.value["deprecation_warning"].clone();
        match entry.deprecations.get(version) {
            None => ensure!(warning.is_null(), "version {version} stays, and its answer warns"),
            Some(deprecation) => {
                let told = (warning["sunset"].as_str(), warning["version"].as_str().and_then(Version::parse));
                let due = deprecation.sunset().to_string();
                ensure!(
                    told == (Some(&due), Some(*version)),
                    "version {version} goes on {due}, the answer says {warning}"
                );
            }
        }
    }
    Ok(Outcome::Passed)
}

fn every_pair_is_mapped(live: &Live) -> Result<Outcome> {
    let mut seen = 0;
    for (schema, entry) in &profile(&live.target)?.schemas {
        if let Some((from, to)) = entry.unmapped_pairs().first() {
            bail!("{schema}: no mapping leads from {from} to {to}");
        }
        for link in &entry.mappings {
            let url = live.target.here(&link.url);
            let said = live.target.send(&Request { method: "GET", url: &url, media_type: "", body: &[] })?;
            ensure!(said.status == 200, "{url}: status {}", said.status);
            is_signed(&said).with_context(|| url.clone())?;
            let document = Document::of(&said.value)?;
            let mapping = Mapping::read(document.root()).with_context(|| url.clone())?;
            let ends = [mapping.source(), mapping.destination()].map(|end| end.map(|end| (&end.schema, end.version)));
            ensure!(ends == [Some((schema, link.from)), Some((schema, link.to))], "{url} leads elsewhere");
            ensure!(link.digest.is_none_or(|digest| digest == mapping.digest()), "{url} has another digest");
            seen += 1;
        }
    }
    ensure!(seen > 0, "the node accepts one version of each schema and maps none");
    Ok(Outcome::Passed)
}

/// A mapping from a counterparty's question to the node's highest version of the intent.
fn mapping(live: &Live, publisher: &SigningKey) -> Result<Value> {
    let highest = *intent_entry(&live.target)?.accepts.last().context("no version is accepted")?;
    Ok(json!({
        "mapping_id": format!("urn:oap:mapping:rialto-probe-0.9-to-{highest}"),
        "source": {"schema": THEIRS, "version": "0.9"},
        "destination": {"schema": INTENT, "version": highest.to_string()},
        "directionality": "unidirectional", "passthrough": true,
        "rules": [{"op": "move", "from": "/where", "to": "/constraints"}],
        "publisher_did": publisher.did_key().as_str(), "published_at": "2026-05-04T00:00:00Z",
    }))
}

/// Brings a mapping to the node.
fn bring(live: &Live, mapping: &Value) -> Result<Said> {
    let told = live.target.manifest.pointer("/endpoints/mappings").and_then(Value::as_str);
    let url = live.target.here(told.context("the manifest names no endpoint for mappings")?);
    let said = live.target.post(&url, mapping.to_string().as_bytes())?;
    is_signed(&said)?;
    Ok(said)
}

fn strangers_are_refused(live: &Live) -> Result<Outcome> {
    let stranger = &live.parties.second;
    let unsigned = mapping(live, stranger)?;
    for (what, mapping) in [("unsigned", unsigned.clone()), ("signed by a stranger", signed(&unsigned, stranger)?)] {
        let said = bring(live, &mapping)?;
        let code = said.refusal().map(|(code, _)| code);
        ensure!(code == Some("mapping_untrusted"), "a mapping {what} is not refused as such: {}", said.brief());
    }
    Ok(Outcome::Passed)
}

fn counterparty_is_read(live: &Live, publisher: &SigningKey) -> Result<Outcome> {
    let said = bring(live, &signed(&mapping(live, publisher)?, publisher)?)?;
    ensure!(said.status == 200, "a mapping of a trusted publisher is refused: {}", said.brief());
    let mut theirs = question(live, json!({}))?;
    let members = theirs.as_object_mut().context("an intent is an object")?;
    members.remove("signature");
    let constraints = members.remove("constraints").unwrap_or_default();
    members.insert("where".to_owned(), constraints);
    let message = json!({
        "schema_id": THEIRS, "schema_version": "0.9", "version_negotiation": {"permit_upgrade": true},
        "payload": signed(&theirs, &live.parties.first)?,
    });
    let said = live.target.post(&live.target.intent, message.to_string().as_bytes())?;
    is_signed(&said)?;
    ensure!(said.status == 200, "a question that the mapping translates is refused: {}", said.brief());
    ensure!(said.value["intent_id"] == theirs["intent_id"], "the answer is to another question");
    Ok(Outcome::Passed)
}

/// The floor of the versioning profile: how many handshakes, and how long most of them may take.
fn floor() -> Result<(usize, u64)> {
    let profile: Value = serde_json::from_str(embedded::VERSIONING)?;
    let number = |name: &str| profile["negotiation"][name].as_u64();
    let handshakes = number("handshakes").context("the profile declares no number of handshakes")?;
    Ok((usize::try_from(handshakes)?, number("p95_ms").context("the profile declares no floor")?))
}

fn handshake_is_quick(live: &Live) -> Result<Outcome> {
    let (handshakes, floor_ms) = floor()?;
    let mut took: Vec<Duration> = (0..handshakes).map(|_| handshake(live)).collect::<Result<_>>()?;
    took.sort();
    let of_100 = |part: usize| -> Result<u64> {
        let took = took.get(handshakes * part / 100).context("no handshake was timed")?;
        Ok(u64::try_from(took.as_micros())?)
    };
    let (p50_us, p95_us, floor_us) = (of_100(50)?, of_100(95)?, floor_ms * 1_000);
    live.time(Negotiation { handshakes, p50_us, p95_us, floor_us });
    ensure!(p95_us <= floor_us, "95 of 100 handshakes take up to {p95_us} µs, and the floor is {floor_us} µs");
    Ok(Outcome::Passed)
}

#[expect(clippy::disallowed_methods, reason = "how long a handshake takes is measured here")]
fn handshake(live: &Live) -> Result<Duration> {
    let begun = Instant::now();
    let url = live.target.url("/.well-known/oap-tool.json");
    let manifest = live.target.send(&Request { method: "GET", url: &url, media_type: "", body: &[] })?.value;
    let accepts = manifest["schema_compatibility"][INTENT]["accepts"].as_array().cloned().unwrap_or_default();
    let highest = accepts.iter().filter_map(|version| Version::parse(version.as_str()?)).max();
    let highest = highest.context("the profile accepts no version of the intent")?;
    let intent = question(live, json!({"schema_version": highest.to_string()}))?;
    let said = live.target.post(&live.target.intent, intent.to_string().as_bytes())?;
    ensure!(said.status == 200, "the handshake ends in a refusal: {}", said.brief());
    Ok(begun.elapsed())
}
