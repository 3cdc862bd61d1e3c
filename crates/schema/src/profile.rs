//! RFC 0024 §3.1 and §4.1: the Compatibility Profile, which versions a provider reads, writes and translates.
//!
//! INVARIANT: a profile that was read names a default that is produced, and mappings and dates only for its versions.

use crate::deprecation::Deprecation;
use crate::identifier::SchemaId;
use crate::mapping::Directionality;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use crate::version::Version;
use json::{Node, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use trust::Digest;

/// Schemas of one profile; more than any provider speaks.
pub(crate) const SCHEMAS_MAX: usize = 256;

/// Versions in one list.
pub(crate) const VERSIONS_MAX: usize = 64;

/// Mappings listed for one schema.
pub(crate) const MAPPINGS_MAX: usize = 1_024;

/// The `schema_compatibility` block of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompatibilityProfile {
    /// What holds for each schema.
    pub schemas: BTreeMap<SchemaId, Entry>,
}

/// What a provider does with one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Versions it reads.
    pub accepts: BTreeSet<Version>,
    /// Versions it writes.
    pub produces: BTreeSet<Version>,
    /// The version it writes for whoever does not say; a profile that was read always has one.
    pub default: Option<Version>,
    /// The mappings it has prepared.
    pub mappings: Vec<MappingLink>,
    /// Versions that will go.
    pub deprecations: BTreeMap<Version, Deprecation>,
}

/// Where a mapping lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingLink {
    /// Version it reads.
    pub from: Version,
    /// Version it writes.
    pub to: Version,
    /// Its address.
    pub url: String,
    /// What it must hash to.
    pub digest: Option<Digest>,
    /// Whether it also leads back; one way when nobody says.
    pub directionality: Directionality,
}

impl CompatibilityProfile {
    /// Reads the block.
    pub fn read(node: Node<'_>) -> Result<Self, Refusal> {
        let at = At::root(node);
        let members = at.members()?;
        if members.len() > SCHEMAS_MAX {
            return Err(Refusal::limit(Code::ProfileInvalid, at.at, "profile.schemas", SCHEMAS_MAX, members.len()));
        }
        let mut schemas = BTreeMap::new();
        for (name, entry) in members {
            schemas.insert(SchemaId::of(&entry, name)?, Entry::read(&entry)?);
        }
        Ok(Self { schemas })
    }

    /// The block as it stands in a manifest.
    pub fn to_value(&self) -> Value {
        let entries = self.schemas.iter().map(|(schema, entry)| (schema.as_str().to_owned(), entry.to_value()));
        Value::Object(entries.collect())
    }
}

impl Entry {
    fn read(at: &At<'_>) -> Result<Self, Refusal> {
        at.closed(&["accepts", "produces", "default", "mappings", "deprecations"])?;
        let accepts = versions(&at.required("accepts")?)?;
        let produces = versions(&at.required("produces")?)?;
        let default = at.required("default")?;
        let version = Version::read(&default)?;
        if !produces.contains(&version) {
            return default.refuse(Code::ProfileInvalid, "the default is one of `produces`");
        }
        let mut entry = Self { accepts, produces, default: Some(version), ..Self::default() };
        let links = at.list("mappings")?;
        if links.len() > MAPPINGS_MAX {
            let place = at.at.child("mappings");
            return Err(Refusal::limit(Code::ProfileInvalid, place, "profile.mappings", MAPPINGS_MAX, links.len()));
        }
        for link in &links {
            entry.mappings.push(MappingLink::read(link, &entry)?);
        }
        for (name, deprecation) in at.member("deprecations").map_or(Ok(Vec::new()), |list| list.members())? {
            let Some(version) = Version::parse(name) else {
                return deprecation.refuse(Code::VersionInvalid, "an entry here is named by a version such as `1.2`");
            };
            entry.check_known(version, &deprecation)?;
            entry.deprecations.insert(version, Deprecation::read(&deprecation)?);
        }
        Ok(entry)
    }

    fn check_known(&self, version: Version, at: &At<'_>) -> Result<(), Refusal> {
        if self.accepts.contains(&version) || self.produces.contains(&version) {
            return Ok(());
        }
        at.refuse(Code::ProfileInvalid, "this version is neither accepted nor produced")
    }

    fn to_value(&self) -> Value {
        let list = |versions: &BTreeSet<Version>| versions.iter().map(Version::to_string).collect::<Vec<_>>();
        let links: Vec<Value> = self.mappings.iter().map(MappingLink::to_value).collect();
        let mut value = json!({"accepts": list(&self.accepts), "produces": list(&self.produces), "mappings": links});
        if let Value::Object(members) = &mut value {
            if let Some(default) = self.default {
                members.insert("default".to_owned(), json!(default.to_string()));
            }
            if !self.deprecations.is_empty() {
                let entries = self.deprecations.iter().map(|(version, entry)| (version.to_string(), entry.to_value()));
                members.insert("deprecations".to_owned(), Value::Object(entries.collect()));
            }
        }
        value
    }

    /// RFC 0024 §6, level V2: the pairs of accepted versions that no mapping of this entry leads between.
    pub fn unmapped_pairs(&self) -> Vec<(Version, Version)> {
        let pairs = self.accepts.iter().flat_map(|from| self.accepts.iter().map(move |to| (*from, *to)));
        let leads = |(from, to): (Version, Version)| self.mappings.iter().any(|link| link.leads(from, to));
        pairs.filter(|(from, to)| from != to).filter(|pair| !leads(*pair)).collect()
    }
}

impl MappingLink {
    fn read(at: &At<'_>, entry: &Entry) -> Result<Self, Refusal> {
        at.closed(&["from", "to", "url", "sha256", "directionality"])?;
        let (from, to) = (at.required("from")?, at.required("to")?);
        let (source, destination) = (Version::read(&from)?, Version::read(&to)?);
        entry.check_known(source, &from)?;
        entry.check_known(destination, &to)?;
        if source == destination {
            return to.refuse(Code::ProfileInvalid, "a mapping leads to another version");
        }
        let url = at.required("url")?;
        let text = url.string()?;
        if !text.starts_with("https://") && !is_loopback(text) {
            return url.refuse(Code::InvalidValue, "an `https` address belongs here");
        }
        let digest = match at.member("sha256") {
            None => None,
            Some(digest) => match Digest::read(digest.string()?) {
                Some(read) => Some(read),
                None => return digest.refuse(Code::InvalidValue, "`sha256:` and 64 hexadecimal digits belong here"),
            },
        };
        let directionality = at
            .member("directionality")
            .map_or(Ok(Directionality::Unidirectional), |word| Directionality::read(&word))?;
        Ok(Self { from: source, to: destination, url: text.to_owned(), digest, directionality })
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"from": self.from.to_string(), "to": self.to.to_string(), "url": self.url});
        if let Value::Object(members) = &mut value {
            if let Some(digest) = &self.digest {
                members.insert("sha256".to_owned(), json!(digest.to_string()));
            }
            if self.directionality == Directionality::Bidirectional {
                members.insert("directionality".to_owned(), json!(self.directionality.name()));
            }
        }
        value
    }

    fn leads(&self, from: Version, to: Version) -> bool {
        let back = self.directionality == Directionality::Bidirectional && (self.to, self.from) == (from, to);
        (self.from, self.to) == (from, to) || back
    }
}

/// Plain HTTP is spoken with this machine only, where nobody stands in between (decisions/0127).
fn is_loopback(url: &str) -> bool {
    let host = url.strip_prefix("http://").and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, after)| port(after)).map_or(host, |(name, _)| name);
    let digits =
        |name: &str| name.starts_with("127.") && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    name == "localhost" || name == "[::1]" || digits(name)
}

fn versions(at: &At<'_>) -> Result<BTreeSet<Version>, Refusal> {
    let elements = at.elements()?;
    if elements.is_empty() {
        return at.refuse(Code::EmptyList, "at least one version belongs here");
    }
    if elements.len() > VERSIONS_MAX {
        let place = at.at.clone();
        return Err(Refusal::limit(Code::ProfileInvalid, place, "profile.versions", VERSIONS_MAX, elements.len()));
    }
    elements.iter().map(Version::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine() {
        for url in ["http://localhost/a", "http://127.0.0.1:7420/a", "http://[::1]:1/a", "http://[::1]/a"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://node.example/a",
            "http://127.0.0.1.node.example/a",
            "http://127.0.0.1@node.example/a",
            "http://localhost:1@node.example/a",
            "http://[::2]/a",
            "ftp://localhost/a",
            "",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
