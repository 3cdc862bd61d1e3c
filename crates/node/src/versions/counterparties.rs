//! RFC 0024 §6, level V3: mappings that counterparties bring, so that they are read in versions of their own.
//!
//! The rule is that of RFC 0024 §3.3: the publisher of the destination schema signed it, or somebody whom the operator
//! pinned as that; everybody else is refused before his keys are asked for. A mapping is kept with the keys that it was
//! proved with. It serves the way in only: answers come in a version of ours, which the request has to permit.
//!
//! INVARIANT: what a counterparty's mapping made conforms to the schema of the version it leads to, and its issuer is the
//! one who signed the message.

use super::{INTENT, Node};
use crate::refusal::{Class, Error, Refusal};
use json::{Document, Limits, Pointer, json};
use schema::{Code, Edition, MAPPING_LIMITS, Mapping, Publishers, SchemaId, Trusted, Version, admit};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use trust::{Did, DidDocument, Digest};

/// The folder of what was brought, in the data folder.
pub(crate) const COUNTERPARTIES: &str = "mappings";

/// Mappings of counterparties that are kept.
pub(crate) const MAPPINGS_MAX: usize = 64;

/// What counterparties brought.
#[derive(Debug)]
pub(super) struct Counterparties {
    folder: PathBuf,
    publishers: Publishers,
    kept: RwLock<Vec<Arc<Trusted>>>,
}

impl Counterparties {
    /// Admits again what the folder has; whom the operator no longer pins is no longer believed.
    pub(super) fn open(data: &Path, publishers: Publishers) -> Result<Self, Error> {
        let folder = data.join(COUNTERPARTIES);
        let mut kept = Vec::new();
        if folder.is_dir() {
            let files = std::fs::read_dir(&folder).map_err(Error::fault)?;
            let mut paths: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
            paths.sort();
            for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
                match read_kept(path, &publishers) {
                    Ok(mapping) => kept.push(Arc::new(mapping)),
                    Err(error) => tracing::warn!(%error, file = %path.display(), "a mapping is not used"),
                }
            }
        }
        Ok(Self { folder, publishers, kept: RwLock::new(kept) })
    }

    /// The mapping that reads a version; `other` is its schema where that is not the node's `own`.
    pub(super) fn find(&self, other: Option<&SchemaId>, own: &str, version: Version) -> Option<Arc<Trusted>> {
        let schema = other.map_or(own, SchemaId::as_str);
        let reads = |edition: &Edition| edition.schema.as_str() == schema && edition.version == version;
        let leads = |edition: &Edition| edition.schema.as_str() == own;
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let fits = |trusted: &&Arc<Trusted>| {
            trusted.mapping().source().is_some_and(reads) && trusted.mapping().destination().is_some_and(leads)
        };
        kept.iter().find(fits).cloned()
    }

    pub(super) fn knows(&self, other: Option<&SchemaId>, own: &str, version: Version) -> bool {
        self.find(other, own, version).is_some()
    }

    /// Whether whoever signed can be the right one; asked before anybody's keys are.
    fn check_publisher(&self, mapping: &Mapping) -> Result<Did, Error> {
        let right = mapping.destination().and_then(|destination| self.publishers.of(&destination.schema));
        match (right, mapping.publisher()) {
            (Some(right), Some(publisher)) if right == *publisher => Ok(right),
            _ => {
                let detail = "the publisher of the destination schema signs a mapping; this is somebody else";
                let refusal = Refusal::new(Class::Unprocessable, Code::MappingUntrusted.name(), detail);
                Err(refusal.at(Pointer::root().child("publisher_did")).into())
            }
        }
    }

    fn take(&self, document: &Document, keys: &DidDocument) -> Result<Arc<Trusted>, Error> {
        let mapping = Mapping::read(document.root())?;
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &Mapping| known.source() == mapping.source() && known.destination() == mapping.destination();
        let known = kept.iter().find(|known| same(known.mapping())).cloned();
        let pinned = known.as_ref().map(|known| known.mapping().digest());
        let trusted = Arc::new(admit(document, keys, &self.publishers, pinned.as_ref())?);
        if let Some(known) = known {
            return Ok(known);
        }
        if kept.len() >= MAPPINGS_MAX {
            let detail = "the node keeps no more mappings; its operator has to make room";
            let refusal = Refusal::new(Class::Unprocessable, Code::MappingTooLarge.name(), detail);
            return Err(refusal.limited("mappings.counterparties", MAPPINGS_MAX as u64, kept.len() as u64 + 1).into());
        }
        self.write(document, keys, &trusted.mapping().digest())?;
        kept.push(Arc::clone(&trusted));
        Ok(trusted)
    }

    fn write(&self, document: &Document, keys: &DidDocument, digest: &Digest) -> Result<(), Error> {
        let name = digest.to_string();
        let path = self.folder.join(format!("{}.json", name.trim_start_matches("sha256:")));
        let kept = json!({"mapping": document.root().to_value(), "signer": keys.to_value()});
        let beside = path.with_extension("new");
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| std::fs::write(&beside, json::canonical_value(&kept)))
            .and_then(|()| std::fs::rename(&beside, &path));
        written.map_err(|error| Error::fault(format!("{}: {error}", path.display())))
    }
}

fn read_kept(path: &Path, publishers: &Publishers) -> Result<Trusted, Error> {
    let bytes = std::fs::read(path).map_err(Error::fault)?;
    let kept = Document::parse(&bytes, &Limits::OURS)?;
    let part = |name: &str| kept.root().get(name).ok_or_else(|| Error::fault(format!("`{name}` is missing")));
    let (mapping, signer) = (part("mapping")?.to_document(), part("signer")?);
    let did = signer.get("id").and_then(json::Node::as_str).unwrap_or_default();
    let did = Did::parse(did).map_err(Error::fault)?;
    let keys = DidDocument::read(signer, &did).map_err(Error::fault)?;
    Ok(admit(&mapping, &keys, publishers, None)?)
}

impl Node {
    /// Takes a mapping that somebody brings, so that messages in its source's version are read here.
    pub async fn bring_mapping(self: &Arc<Self>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let document = Document::parse(bytes, &MAPPING_LIMITS)?;
        let mapping = Mapping::read(document.root())?;
        self.check_ends(&mapping)?;
        let publisher = self.versions.counterparties.check_publisher(&mapping)?;
        let keys = self.keys_of(&publisher).await?;
        let node = Arc::clone(self);
        self.off_thread(move || {
            let trusted = node.versions.counterparties.take(&document, &keys)?;
            node.versions.count(super::MAPPING, None, Some(publisher.as_str()), node.clock.millis());
            let mapping = trusted.mapping();
            let edition = |edition: Option<&Edition>| {
                edition.map(
                    |Edition { schema, version }| json!({"schema": schema.as_str(), "version": version.to_string()}),
                )
            };
            let output = json!({
                "type": "oap.mapping.ack",
                "mapping_id": mapping.id(),
                "mapping_hash": mapping.digest().to_string(),
                "source": edition(mapping.source()),
                "destination": edition(mapping.destination()),
                "resolver_did": node.identity.did().as_str(),
            });
            Ok(node.envelope(mapping.id(), output, node.clock.millis()))
        })
        .await
    }

    /// A mapping leads from a version that the node does not speak to one of the intent that it does.
    fn check_ends(&self, mapping: &Mapping) -> Result<(), Error> {
        let accepts =
            SchemaId::parse(INTENT).and_then(|intent| self.versions.entry(&intent)).unwrap_or_default().accepts;
        let ours = |edition: &Edition| edition.schema.as_str() == INTENT && accepts.contains(&edition.version);
        let refused = |name: &str, detail: &str| {
            let refusal = Refusal::new(Class::Unprocessable, Code::RouteMissing.name(), detail);
            Err(refusal.at(Pointer::root().child(name)).into())
        };
        if !mapping.destination().is_some_and(ours) {
            return refused("destination", "mappings are taken that lead to an accepted version of the intent");
        }
        if mapping.source().is_none_or(ours) {
            return refused("source", "this version is read here by a mapping of the node's own");
        }
        Ok(())
    }
}
