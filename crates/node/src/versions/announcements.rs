//! RFC 0024 §3.5: announcements that a version goes, kept as records of the node in its change log.
//!
//! Each announcement is a record of its own. Of several about one version the latest date counts, and the notice begins
//! when the store received it, whatever it says itself; so no restart, import or later announcement can bring a date
//! closer (decisions/0128).
//!
//! INVARIANT: a version stays at least ninety days after the change log has its announcement.

use super::{RESPONSE, Versions};
use crate::catalog::{Catalog, parsed};
use crate::clock::instant;
use crate::collection::{Collection, record_of};
use crate::identity::Identity;
use crate::refusal::{Class, Error, Refusal};
use aql::Constraints;
use json::{Document, Instant, Node, Pointer, Value, json};
use schema::{Code, Deprecation, Entry, SchemaId, Version};
use store::{Kind, Record, Store};

/// What the name of an announcement begins with; nobody but the node publishes under it.
pub(crate) const ANNOUNCEMENT: &str = "urn:rialto:announcement:";

/// What kind of receipt it is.
const TYPE: &str = "rialto.deprecation";

/// That a version goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Of which schema.
    pub schema: SchemaId,
    /// Which version.
    pub version: Version,
    /// Since when it is known, when it goes and what follows.
    pub deprecation: Deprecation,
    /// The record that says so.
    pub record: String,
}

impl Announcement {
    /// The record; `publisher` is the node.
    pub(crate) fn to_record(&self, publisher: &str) -> Value {
        let mut record = json!({
            "receipt_id": self.record,
            "type": TYPE,
            "tool_did": publisher,
            "timestamp": self.deprecation.announced_at().to_string(),
            "schema": self.schema.as_str(),
            "version": self.version.to_string(),
            "sunset": self.deprecation.sunset().to_string(),
        });
        if let (Some(members), Some(successor)) = (record.as_object_mut(), self.deprecation.successor) {
            members.insert("successor".to_owned(), json!(successor.to_string()));
        }
        record
    }

    /// Reads a record that came at a moment.
    pub(crate) fn read(record: Node<'_>, now: Instant) -> Result<Self, Error> {
        let text = |name: &str| record.get(name).and_then(Node::as_str);
        let wrong = |name: &str, code: Code, detail: &str| {
            let at = Pointer::root().child("record").child(name);
            Error::from(Refusal::new(Class::InvalidInput, code.name(), detail).at(at))
        };
        if text("type") != Some(TYPE) {
            return Err(wrong("type", Code::InvalidValue, "the end of a version is announced as `rialto.deprecation`"));
        }
        let schema = text("schema").and_then(SchemaId::parse);
        let schema = schema.ok_or_else(|| wrong("schema", Code::IdentifierInvalid, "the schema's permanent URL"))?;
        let version = |name: &'static str| text(name).map(|text| Version::parse(text).ok_or(name)).transpose();
        let invalid = |name: &str| wrong(name, Code::VersionInvalid, "a version such as `1.2` belongs here");
        let announced = version("version").map_err(invalid)?.ok_or_else(|| invalid("version"))?;
        let sunset = text("sunset").and_then(Instant::parse_rfc3339);
        let sunset =
            sunset.ok_or_else(|| wrong("sunset", Code::InvalidTimestamp, "RFC 3339 with an offset, please"))?;
        let mut deprecation = Deprecation::announce(now, sunset).map_err(beneath_record)?;
        deprecation.successor = version("successor").map_err(invalid)?;
        let id = text("receipt_id").unwrap_or_default().to_owned();
        Ok(Self { schema, version: announced, deprecation, record: id })
    }
}

/// What the announcement of an end at `sunset` would be; `now` it is made.
pub(crate) fn dated(
    schema: &SchemaId,
    version: Version,
    (now, sunset): (Instant, Instant),
    successor: Option<Version>,
) -> Result<Announcement, Error> {
    let mut deprecation = Deprecation::announce(now, sunset)?;
    deprecation.successor = successor;
    let name = trust::Digest::of(format!("{schema} {version} {sunset}").as_bytes()).to_string();
    let record = format!("{ANNOUNCEMENT}{}", name.trim_start_matches("sha256:"));
    Ok(Announcement { schema: schema.clone(), version, deprecation, record })
}

/// The announcement as a publication that the node signed.
pub(crate) fn publication(announcement: &Announcement, identity: &Identity, now: Instant) -> Vec<u8> {
    let name = announcement.record.trim_start_matches(ANNOUNCEMENT);
    identity.sign(json!({
        "publication_id": format!("urn:rialto:publication:{name}:{now}"),
        "kind": Kind::Receipt.name(),
        "record": announcement.to_record(identity.did().as_str()),
        "publisher_did": identity.did().as_str(),
        "issued_at": now.to_string(),
    }))
}

/// Everything that was announced, as the store received it.
pub(crate) fn announced(store: &Store, catalog: &Catalog) -> Result<Vec<Announcement>, Error> {
    let leaf = json!({"path": "/type", "operator": "eq", "value": TYPE});
    let leaf = Document::of(&leaf).map_err(Error::fault)?;
    let constraints = Constraints::read(leaf.root(), Pointer::root(), &aql::Limits::STANDARD)?;
    let numbers: Vec<u64> = {
        let indexes = catalog.indexes()?;
        let index = indexes.of(Collection::Receipts);
        let found = index.enumerate(&constraints)?.possible;
        found.iter().filter_map(|unit| index.source(unit)).collect()
    };
    let mut all = Vec::new();
    for number in numbers {
        let Some(record) = store.by_number(number)?.filter(|record| record.id.starts_with(ANNOUNCEMENT)) else {
            continue;
        };
        all.extend(read_kept(&record)?);
    }
    Ok(all)
}

fn read_kept(record: &Record) -> Result<Option<Announcement>, Error> {
    let body = parsed(&record.body)?;
    match Announcement::read(record_of(&body), instant(record.received_at)) {
        Ok(announcement) => Ok(Some(announcement)),
        Err(error) => {
            tracing::warn!(%error, record = record.id, "an announcement in the store counts for nothing");
            Ok(None)
        }
    }
}

impl Versions {
    /// Whether something may be announced: the version is one of ours, another one is left, and no date comes closer.
    pub(crate) fn consider(&self, announcement: &Announcement) -> Result<(), Error> {
        let Announcement { schema, version, deprecation, .. } = announcement;
        let refused = |code: Code, name: &str, detail: String| {
            let at = Pointer::root().child("record").child(name);
            Err(Refusal::new(Class::Conflict, code.name(), detail).at(at).into())
        };
        let Some(entry) = self.entry(schema) else {
            return refused(Code::ProfileInvalid, "schema", "this node uses no such schema".to_owned());
        };
        if schema.as_str() == RESPONSE {
            let detail = "the versions of the answer go with those of the intent; announce that";
            return refused(Code::ProfileInvalid, "schema", detail.to_owned());
        }
        let Entry { accepts, produces, default, .. } = &entry;
        if !accepts.contains(version) && !produces.contains(version) {
            let detail = format!("version {version} is neither accepted nor produced here");
            return refused(Code::VersionNotAccepted, "version", detail);
        }
        if *default == Some(*version) {
            let detail = format!("version {version} is what whoever names none gets; the default stays");
            return refused(Code::ProfileInvalid, "version", detail);
        }
        if let Some(successor) = deprecation.successor.filter(|next| !produces.contains(next) || next == version) {
            return refused(Code::VersionNotProduced, "successor", format!("version {successor} does not follow it"));
        }
        if let Some(known) = self.deprecation(schema, *version) {
            known.postponed(deprecation.sunset()).map_err(beneath_record)?;
        }
        Ok(())
    }
}

/// A place in an announcement is a place beneath `record` for whoever publishes it.
fn beneath_record(refusal: schema::Refusal) -> Error {
    let at = Pointer::parse(&format!("/record{}", refusal.at.as_str())).unwrap_or_default();
    schema::Refusal { at, ..refusal }.into()
}

/// An announcement is not taken back; a later date can be announced.
pub(crate) fn not_taken_back() -> Refusal {
    let detail = "an announced end is not taken back; announce a later date, which may be far";
    Refusal::new(Class::Conflict, Code::DeprecationReduced.name(), detail).at(Pointer::root().child("withdraw"))
}
