//! RFC 0024 §3.3 and RFC 0024 §6, level V2: the mappings between the versions of a schema, every pair of them, and what
//! they make of messages.
//!
//! Adjacent versions have a mapping that people wrote; the others are composed of those. All go through the gate that a
//! stranger's would, pinned to this node, which signs them.
//!
//! INVARIANT: between any two versions of a family there is a mapping, or the node does not start.

use super::{INTENT, RESPONSE, SINGLE, SINGLE_VERSION};
use crate::identity::Identity;
use crate::refusal::Error;
use json::{Document, Limits, Value, json};
use schema::{
    CompatibilityProfile, Edition, Entry, Mapping, MappingLink, Publishers, SchemaId, Trusted, Validator, Version,
    admit, route,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use trust::{Did, DidDocument};

/// When the mappings were published: with the text of 1.3, so that a restart changes no byte of them.
const PUBLISHED_AT: &str = "2026-05-04T00:00:00Z";

/// A schema of which the node speaks several versions, as it is written down.
struct Written {
    schema: &'static str,
    /// What its mappings are called by.
    name: &'static str,
    /// The version that the node itself reads and writes, and what others get when they name none.
    native: &'static str,
    /// Every version, with the text of its schema where documents are held against it.
    versions: &'static [(&'static str, Option<&'static str>)],
    /// Mappings between neighbours.
    mappings: &'static [&'static str],
}

const FAMILIES: [Written; 2] = [
    Written {
        schema: INTENT,
        name: "oap-intent",
        native: "1.3",
        versions: &[
            ("1.2", Some(include_str!("../../../../spec/families/oap-intent-1.2.schema.json"))),
            ("1.3", Some(include_str!("../../../../spec/schemas/oap-intent.schema.json"))),
        ],
        mappings: &[include_str!("../../../../spec/families/oap-intent-1.3-to-1.2.json")],
    },
    Written {
        schema: RESPONSE,
        name: "oap-intent-response",
        native: "1.3",
        versions: &[
            ("1.2", Some(include_str!("../../../../spec/families/oap-intent-response-1.2.schema.json"))),
            ("1.3", None),
        ],
        mappings: &[include_str!("../../../../spec/families/oap-intent-response-1.3-to-1.2.json")],
    },
];

/// The schemas of several versions.
#[derive(Debug)]
pub(super) struct Families(BTreeMap<SchemaId, Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    native: Version,
    versions: BTreeMap<Version, Option<Judge>>,
    pairs: BTreeMap<(Version, Version), Trusted>,
}

/// A schema that is compiled when something is held against it.
#[derive(Debug)]
struct Judge {
    text: &'static str,
    compiled: OnceLock<Validator>,
}

impl Judge {
    fn check(&self, document: &Value) -> Result<(), Error> {
        let validator = match self.compiled.get() {
            Some(validator) => validator,
            None => {
                let schema = parsed(self.text)?.root().to_value();
                let compiled = Validator::compile(&schema).map_err(Error::fault)?;
                self.compiled.get_or_init(|| compiled)
            }
        };
        Ok(validator.check(document)?)
    }
}

impl Families {
    /// Reads what is written down, composes what is missing, and admits all of it.
    pub(super) fn prepare(identity: &Identity) -> Result<Self, Error> {
        let document = Document::of(&identity.document()).map_err(Error::fault)?;
        let keys = DidDocument::read(document.root(), identity.did()).map_err(Error::fault)?;
        let families = FAMILIES.iter().map(|written| {
            let schema = id(written.schema)?;
            let family = Family::prepare(written, &schema, identity, &keys)?;
            Ok((schema, family))
        });
        families.collect::<Result<_, Error>>().map(Self)
    }

    /// What the node accepts and produces before anything is announced.
    pub(super) fn profile(&self) -> Result<CompatibilityProfile, Error> {
        let mut profile = CompatibilityProfile::default();
        for (schema, family) in &self.0 {
            let versions = family.versions.keys().copied();
            let (accepts, produces) = (versions.clone().collect(), versions.collect());
            let entry = Entry { accepts, produces, default: Some(family.native), ..Entry::default() };
            profile.schemas.insert(schema.clone(), entry);
        }
        let only = version(SINGLE_VERSION)?;
        for schema in SINGLE {
            let (accepts, produces) = ([only].into(), [only].into());
            profile.schemas.insert(id(schema)?, Entry { accepts, produces, default: Some(only), ..Entry::default() });
        }
        Ok(profile)
    }

    /// Where the mappings of a schema lie.
    pub(super) fn links(&self, schema: &SchemaId, base: &str) -> Vec<MappingLink> {
        let Some(family) = self.0.get(schema) else { return Vec::new() };
        let link = |(&(from, to), trusted): (&(Version, Version), &Trusted)| MappingLink {
            from,
            to,
            url: format!("{base}/oap/mappings/{}", family.mapping_name(from, to)),
            digest: Some(trusted.mapping().digest()),
            directionality: trusted.mapping().directionality(),
        };
        family.pairs.iter().map(link).collect()
    }

    pub(super) fn name_of(&self, schema: &SchemaId, from: Version, to: Version) -> Option<String> {
        let family = self.0.get(schema)?;
        family.pairs.contains_key(&(from, to)).then(|| family.mapping_name(from, to))
    }

    /// A mapping by its name.
    pub(super) fn mapping(&self, name: &str) -> Option<&Mapping> {
        self.0.values().find_map(|family| {
            let named = |(from, to): &(Version, Version)| family.mapping_name(*from, *to) == name;
            family.pairs.iter().find(|(pair, _)| named(pair)).map(|(_, trusted)| trusted.mapping())
        })
    }

    /// The version that the node itself speaks; nothing for a schema that has only one.
    pub(super) fn native(&self, schema: &str) -> Option<Version> {
        self.family(schema).map(|family| family.native)
    }

    /// A document in the node's own version; nothing when it is in that already.
    pub(super) fn inward(&self, schema: &str, from: Version, source: &Value) -> Result<Option<Value>, Error> {
        let Some(family) = self.family(schema).filter(|family| family.native != from) else { return Ok(None) };
        Ok(Some(family.pair(from, family.native)?.translate(source)?.document))
    }

    /// A document of the node, in canonical form, in another version.
    pub(super) fn outward(&self, schema: &str, to: Version, source: Vec<u8>) -> Result<Vec<u8>, Error> {
        let other = |family: &&Family| family.native != to && family.versions.contains_key(&to);
        let Some(family) = self.family(schema).filter(other) else { return Ok(source) };
        let source = Document::parse(&source, &Limits::OURS).map_err(Error::fault)?;
        // What the node cannot say in a version it promised is the node's fault.
        let translated = family.pair(family.native, to)?.translate(&source.root().to_value()).map_err(Error::fault)?;
        Ok(json::canonical_value(&translated.document))
    }

    /// Holds a document against the schema of its version.
    pub(super) fn check(&self, schema: &str, version: Version, document: &Value) -> Result<(), Error> {
        let judge = self.family(schema).and_then(|family| family.versions.get(&version));
        judge.and_then(Option::as_ref).map_or(Ok(()), |judge| judge.check(document))
    }

    fn family(&self, schema: &str) -> Option<&Family> {
        self.0.get(&SchemaId::parse(schema)?)
    }
}

impl Family {
    fn prepare(written: &Written, schema: &SchemaId, identity: &Identity, keys: &DidDocument) -> Result<Self, Error> {
        let mut publishers = Publishers::default();
        publishers.pin(schema.clone(), identity.did().clone());
        let read = |text: &&str| Mapping::read(parsed(text)?.root()).map_err(Error::fault);
        let adjacent = written.mappings.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        let mut versions = BTreeMap::new();
        for (number, text) in written.versions {
            versions.insert(version(number)?, text.map(|text| Judge { text, compiled: OnceLock::new() }));
        }
        let mut pairs = BTreeMap::new();
        for (from, mapping) in every_pair(schema, &adjacent, versions.keys().copied().collect())? {
            let signed = identity.sign(document(&mapping, identity.did()));
            let signed = Document::parse(&signed, &schema::MAPPING_LIMITS).map_err(Error::fault)?;
            pairs.insert(from, admit(&signed, keys, &publishers, None).map_err(Error::fault)?);
        }
        Ok(Self { name: written.name, native: version(written.native)?, versions, pairs })
    }

    fn mapping_name(&self, from: Version, to: Version) -> String {
        format!("{}-{from}-to-{to}", self.name)
    }

    fn pair(&self, from: Version, to: Version) -> Result<&Trusted, Error> {
        self.pairs.get(&(from, to)).ok_or_else(|| Error::fault(format!("no mapping leads from {from} to {to}")))
    }
}

type Pairs = Vec<((Version, Version), Mapping)>;

/// A mapping for every ordered pair of versions: written, turned round, or composed along the shortest way.
fn every_pair(schema: &SchemaId, adjacent: &[Mapping], versions: Vec<Version>) -> Result<Pairs, Error> {
    let edition = |version: Version| Edition { schema: schema.clone(), version };
    let mut pairs = Vec::new();
    for from in &versions {
        for to in versions.iter().filter(|to| *to != from) {
            let mapping = route(adjacent, &edition(*from), &edition(*to)).map_err(Error::fault)?;
            pairs.push(((*from, *to), mapping));
        }
    }
    Ok(pairs)
}

/// A mapping as the node publishes it, ready to be signed.
pub(super) fn document(mapping: &Mapping, publisher: &Did) -> Value {
    let mut value = mapping.to_value();
    if let Some(members) = value.as_object_mut() {
        members.insert("publisher_did".to_owned(), json!(publisher.as_str()));
        members.insert("published_at".to_owned(), json!(PUBLISHED_AT));
    }
    value
}

fn parsed(text: &str) -> Result<Document, Error> {
    Document::parse(text.as_bytes(), &Limits::OURS).map_err(Error::fault)
}

fn id(text: &str) -> Result<SchemaId, Error> {
    SchemaId::parse(text).ok_or_else(|| Error::fault(format!("`{text}` names no schema")))
}

fn version(text: &str) -> Result<Version, Error> {
    Version::parse(text).ok_or_else(|| Error::fault(format!("`{text}` is no version")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(from: &str, to: &str, rule: Value) -> Mapping {
        let edition = |version: &str| json!({"schema": "https://schemas.example/a.json", "version": version});
        let value = json!({
            "mapping_id": format!("urn:oap:mapping:{from}-{to}"), "source": edition(from), "destination": edition(to),
            "directionality": "bidirectional", "passthrough": true, "rules": [rule],
        });
        Mapping::read(Document::of(&value).unwrap().root()).unwrap()
    }

    #[test]
    fn what_nobody_wrote_is_composed_both_ways() {
        let moved = |from: &str, to: &str| json!({"op": "move", "from": from, "to": to});
        let adjacent = [mapping("1.0", "1.1", moved("/a", "/b")), mapping("1.1", "1.2", moved("/b", "/c"))];
        let (schema, versions) = (id("https://schemas.example/a.json").unwrap(), ["1.0", "1.1", "1.2"]);
        let versions = versions.iter().map(|text| version(text).unwrap()).collect();
        let pairs: BTreeMap<_, _> = every_pair(&schema, &adjacent, versions).unwrap().into_iter().collect();
        assert_eq!(pairs.len(), 6);
        let there = &pairs[&(version("1.0").unwrap(), version("1.2").unwrap())];
        assert_eq!(there.steps(), 2);
        assert_eq!(there.translate(&json!({"a": 1})).unwrap().document, json!({"c": 1}));
        let back = &pairs[&(version("1.2").unwrap(), version("1.0").unwrap())];
        assert_eq!(back.translate(&json!({"c": 1})).unwrap().document, json!({"a": 1}));
    }

    #[test]
    fn a_version_without_a_way_to_it_stops_the_node() {
        let (schema, versions) = (id("https://schemas.example/a.json").unwrap(), ["1.0", "1.1"]);
        let versions = versions.iter().map(|text| version(text).unwrap()).collect();
        assert!(every_pair(&schema, &[], versions).is_err());
    }

    #[test]
    fn the_nodes_own_mappings_pass_the_gate_of_strangers() {
        let families = Families::prepare(&Identity::of_seed([7; 32])).unwrap();
        assert_eq!(families.links(&id(INTENT).unwrap(), "https://node.example").len(), 2);
        let profile = families.profile().unwrap();
        for schema in [INTENT, RESPONSE] {
            let schema = id(schema).unwrap();
            let mut entry = profile.schemas[&schema].clone();
            entry.mappings = families.links(&schema, "https://node.example");
            assert!(entry.unmapped_pairs().is_empty());
        }
        // What is published can be read.
        let value = profile.to_value();
        assert_eq!(CompatibilityProfile::read(Document::of(&value).unwrap().root()).unwrap(), profile);
    }
}
