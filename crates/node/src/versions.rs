//! RFC 0024 §3.1 and §3.2: the versions that this node reads and writes, what a request says about them, and what the
//! signed answer records.
//!
//! A request that says nothing about versions is read and answered in the default one, and its answer says nothing
//! either, so that it stays valid for the published schema (decisions/0126). A signature is verified over the message
//! as it came; what a mapping makes of it is read, and signed by nobody.
//!
//! INVARIANT: what goes out in another version than the node's own, and what comes in so, conforms to the schema of that
//! version.

mod announcements;
mod counterparties;
mod mappings;
mod usage;

pub use announcements::Announcement;
pub(crate) use announcements::{ANNOUNCEMENT, announced, dated, not_taken_back, publication};
pub(crate) use counterparties::{COUNTERPARTIES, MAPPINGS_MAX};
pub(crate) use usage::{ISSUERS_MAX, VERSIONS_FILE};

use crate::clock::Clock;
use crate::identity::Identity;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use counterparties::Counterparties;
use json::{Document, Instant, Pointer, Value, json};
use mappings::Families;
use memchr::memmem;
use schema::{
    Code, CompatibilityProfile, Deprecation, Disagreement, Entry, Exchange, Form, NegotiatedRequest, Publishers,
    SchemaId, Version,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use usage::Usage;

/// The intent of RFC 0020.
pub const INTENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent.schema.json";
/// The answer to it; it counts its versions like the intent.
pub(crate) const RESPONSE: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent-response.schema.json";
/// The procurement intent of RFC 0013.
pub(crate) const PROCUREMENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-procurement-intent.schema.json";
/// The core protocol's envelope of a request.
pub const REQUEST: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-request-envelope.schema.json";
/// A receipt of the core protocol.
pub const RECEIPT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-receipt.schema.json";
/// What a provider says of itself.
pub(crate) const MANIFEST: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-manifest.schema.json";
/// A mapping between two versions.
pub(crate) const MAPPING: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-schema-mapping.schema.json";
/// What others say about the quality of a provider.
pub(crate) const EVIDENCE: &str = "urn:rialto:schema:evidence";
/// A record, signed by whoever publishes it.
pub const PUBLICATION: &str = "urn:rialto:schema:publication";
/// A record, taken back.
pub const WITHDRAWAL: &str = "urn:rialto:schema:withdrawal";
/// A question about an answer.
pub const EXPLAIN: &str = "urn:rialto:schema:explain-request";
/// What an issuer asks of a subscription.
pub const CONTROL: &str = "urn:rialto:schema:subscription-control";
/// A principal who wants everything withdrawn.
pub const DELETION: &str = "urn:rialto:schema:deletion-request";
/// A wish in plain words.
pub const DISCOVER: &str = "urn:rialto:schema:discover-request";

/// Schemas of which the node speaks one version, and which it is not asked in another.
const SINGLE: [&str; 31] = [
    PROCUREMENT,
    REQUEST,
    RECEIPT,
    PUBLICATION,
    WITHDRAWAL,
    EXPLAIN,
    CONTROL,
    DELETION,
    DISCOVER,
    "https://openagentprotocol.eu/schemas/v1.0/oap-aql-decision.schema.json",
    "https://openagentprotocol.eu/schemas/v1.0/oap-compatibility-profile.schema.json",
    "https://openagentprotocol.eu/schemas/v1.0/oap-conformance-receipt.schema.json",
    "https://openagentprotocol.eu/schemas/v1.0/oap-deletion-receipt.schema.json",
    MANIFEST,
    "https://openagentprotocol.eu/schemas/v1.0/oap-response-envelope.schema.json",
    MAPPING,
    "https://openagentprotocol.eu/schemas/v1.0/oap-settlement-confirmation.schema.json",
    "urn:rialto:schema:audit",
    "urn:rialto:schema:discover",
    EVIDENCE,
    "urn:rialto:schema:heartbeat",
    "urn:rialto:schema:incidents",
    "urn:rialto:schema:ledger-entry",
    "urn:rialto:schema:manifest-event",
    "urn:rialto:schema:payment-session",
    "urn:rialto:schema:payment-session-request",
    "urn:rialto:schema:receipt-chain",
    "urn:rialto:schema:receipt-verification",
    "urn:rialto:schema:subscription-ack",
    "urn:rialto:schema:subscription-events",
    "urn:rialto:schema:subscription-state",
];
/// The version of those.
const SINGLE_VERSION: &str = "1.0";

/// The members in which a request speaks of versions (RFC 0024 §5); every message may have them.
pub(crate) const MEMBERS: [&str; 3] = ["schema_version", "version_negotiation", "schema_id"];

/// Bytes without which no message speaks of versions; an escape may hide them.
const SIGNS: [&str; 3] = ["schema_version", "version_negotiation", "\\u"];

/// Everything the node knows about versions.
#[derive(Debug)]
pub(crate) struct Versions {
    families: Families,
    /// What is accepted and produced, with the dates; addresses of mappings come in where it is published.
    profile: RwLock<Arc<CompatibilityProfile>>,
    /// Which record announced the end of which version.
    records: RwLock<BTreeMap<(SchemaId, Version), String>>,
    counterparties: Counterparties,
    usage: Usage,
    /// Where mappings lie, when the node has a public address.
    public_url: Option<String>,
}

/// A message and what it says about its version, decided.
#[derive(Clone, Debug)]
pub struct Heard<'a> {
    payload: Cow<'a, [u8]>,
    /// Nothing when the message says nothing.
    exchange: Option<Exchange>,
    /// The schema that the version counts in, when it is not the address's own.
    other: Option<SchemaId>,
    form: Form,
}

impl Heard<'_> {
    /// The message without what stood around it, as its sender signed it.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    pub(crate) fn exchange(&self) -> Option<&Exchange> {
        self.exchange.as_ref()
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// A refusal of the message, with its place in what was sent.
    pub fn place(&self, error: Error) -> Error {
        beneath(self.form, error)
    }
}

/// What the headers of an answer repeat of the warning in it.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Since when it is known that the version goes.
    pub announced_at: Instant,
    /// When it goes.
    pub sunset: Instant,
    /// The id of the record that announced it.
    pub record: String,
}

impl Versions {
    pub(crate) fn open(
        data: &Path,
        identity: &Identity,
        pinned: &[(SchemaId, trust::Did)],
        public_url: Option<&str>,
        clock: &Clock,
    ) -> Result<Self, Error> {
        let mut publishers = Publishers::default();
        for (schema, publisher) in pinned {
            publishers.pin(schema.clone(), publisher.clone());
        }
        let families = Families::prepare(identity)?;
        let counterparties = Counterparties::open(data, publishers)?;
        Ok(Self {
            profile: RwLock::new(Arc::new(families.profile()?)),
            families,
            records: RwLock::default(),
            counterparties,
            usage: Usage::open(data, clock.millis()),
            public_url: public_url.filter(|url| url.starts_with("https://")).map(str::to_owned),
        })
    }

    fn profile(&self) -> Arc<CompatibilityProfile> {
        Arc::clone(&self.profile.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes over what was announced; a date never comes closer, because the latest one counts.
    pub(crate) fn adopt(&self, mut announced: Vec<Announcement>) {
        announced.sort_by_key(|announcement| announcement.deprecation.announced_at());
        let mut profile = (*self.profile()).clone();
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        for Announcement { schema, version, mut deprecation, record } in announced {
            let Some(entry) = profile.schemas.get_mut(&schema) else { continue };
            if let Some(known) = entry.deprecations.get(&version) {
                let Ok(postponed) = known.postponed(deprecation.sunset()) else { continue };
                deprecation = postponed;
            }
            deprecation.mapping = self.address_of(&schema, version, deprecation.successor);
            let mut of_answer = deprecation.clone();
            of_answer.mapping = None;
            entry.deprecations.insert(version, deprecation);
            // The answer counts its versions like the intent, so they go together.
            let answer = SchemaId::parse(RESPONSE).filter(|_| schema.as_str() == INTENT);
            if let Some(entry) = answer.and_then(|answer| profile.schemas.get_mut(&answer)) {
                entry.deprecations.insert(version, of_answer);
            }
            records.insert((schema, version), record);
        }
        *self.profile.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(profile);
    }

    /// Where the mapping to a version's successor lies.
    fn address_of(&self, schema: &SchemaId, from: Version, to: Option<Version>) -> Option<String> {
        let base = self.public_url.as_ref()?;
        let name = self.families.name_of(schema, from, to?)?;
        Some(format!("{}/oap/mappings/{name}", base.trim_end_matches('/')))
    }

    /// What is announced about a version.
    pub(crate) fn deprecation(&self, schema: &SchemaId, version: Version) -> Option<Deprecation> {
        self.profile().schemas.get(schema)?.deprecations.get(&version).cloned()
    }

    /// What the headers say of a warning.
    pub(crate) fn notice(&self, warning: json::Node<'_>) -> Option<Notice> {
        let text = |name: &str| warning.get(name).and_then(json::Node::as_str);
        let (schema, version) = (SchemaId::parse(text("schema")?)?, Version::parse(text("version")?)?);
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        Some(Notice {
            announced_at: Instant::parse_rfc3339(text("announced_at")?)?,
            sunset: Instant::parse_rfc3339(text("sunset")?)?,
            record: records.get(&(schema, version))?.clone(),
        })
    }

    pub(crate) fn entry(&self, schema: &SchemaId) -> Option<Entry> {
        self.profile().schemas.get(schema).cloned()
    }

    /// The block of the manifest, with what is gone left out.
    pub(crate) fn published(&self, base: &str, now: Instant) -> Value {
        let mut profile = (*self.profile()).clone();
        for (schema, entry) in &mut profile.schemas {
            entry.mappings = self.families.links(schema, base);
            let gone: Vec<Version> =
                entry.deprecations.iter().filter(|(_, date)| date.is_past(now)).map(|(version, _)| *version).collect();
            for version in gone {
                entry.accepts.remove(&version);
                entry.produces.remove(&version);
                entry.deprecations.remove(&version);
                entry.mappings.retain(|link| link.from != version && link.to != version);
            }
        }
        profile.to_value()
    }

    /// Counts a message, or a document in one, of somebody whose signature holds; whoever need not sign has no name.
    pub(crate) fn count(&self, schema: &str, exchange: Option<&Exchange>, issuer: Option<&str>, now: i64) {
        let usual = || self.profile().schemas.get(&SchemaId::parse(schema)?)?.default;
        if let Some(version) = exchange.map(|exchange| exchange.request).or_else(usual) {
            self.usage.count(schema, version, issuer, now);
        }
    }

    /// Forgets that somebody ever asked.
    pub(crate) fn forget(&self, issuer: &str) {
        self.usage.forget(issuer);
    }

    /// Writes down who uses what, now and then.
    pub(crate) fn keep(&self, now: i64) {
        self.usage.keep(|| self.profile().to_value(), now);
    }

    /// Writes it down at once.
    pub(crate) fn keep_now(&self, now: i64) {
        self.usage.keep_now(|| self.profile().to_value(), now);
    }

    /// An intent that came in another version than the node's own, as one of the node's own; nothing when it is that.
    pub(crate) fn inbound(&self, heard: &Heard<'_>, source: json::Node<'_>) -> Result<Option<Inward>, Error> {
        let Some(exchange) = &heard.exchange else { return Ok(None) };
        let brought = self.counterparties.find(heard.other.as_ref(), INTENT, exchange.request);
        let (version, arrived) = match brought {
            None if self.families.native(INTENT) == Some(exchange.request) => return Ok(None),
            None => (exchange.request, source.to_value()),
            Some(mapping) => {
                let led = mapping.mapping().destination().map_or(exchange.request, |edition| edition.version);
                (led, mapping.translate(&source.to_value())?.document)
            }
        };
        let translated = self.families.inward(INTENT, version, &arrived)?;
        Ok(Some(Inward { arrived: (version, arrived), translated }))
    }

    /// Holds what was translated against the schemas of its versions.
    pub(crate) fn check_inward(&self, inward: &Inward) -> Result<(), Error> {
        let (version, arrived) = &inward.arrived;
        self.families.check(INTENT, *version, arrived)?;
        match (&inward.translated, self.families.native(INTENT)) {
            (Some(translated), Some(native)) => self.families.check(INTENT, native, translated),
            _ => Ok(()),
        }
    }

    /// An answer of the node in the version that was agreed.
    pub(crate) fn outbound(&self, exchange: Option<&Exchange>, answer: Vec<u8>) -> Result<Vec<u8>, Error> {
        match exchange {
            Some(exchange) => self.families.outward(RESPONSE, exchange.answer, answer),
            None => Ok(answer),
        }
    }

    /// Holds a signed answer against the schema of its version, where that is not the node's own.
    pub(crate) fn check_outward(&self, exchange: Option<&Exchange>, answer: &[u8]) -> Result<(), Error> {
        let Some(exchange) = exchange.filter(|exchange| self.families.native(RESPONSE) != Some(exchange.answer)) else {
            return Ok(());
        };
        let answer = Document::parse(answer, &json::Limits::OURS).map_err(Error::fault)?;
        self.families.check(RESPONSE, exchange.answer, &answer.root().to_value()).map_err(Error::fault)
    }
}

/// A message on its way into the node's own version.
#[derive(Debug)]
pub(crate) struct Inward {
    /// In the first version that the node knows, and which that is.
    arrived: (Version, Value),
    /// In the node's own, where that is another one.
    translated: Option<Value>,
}

impl Inward {
    /// The message in the node's own version.
    pub(crate) fn value(&self) -> &Value {
        self.translated.as_ref().unwrap_or(&self.arrived.1)
    }
}

impl Node {
    /// Reads what a message says about versions, and decides in which it is read and answered.
    pub fn hear<'a>(&self, schema: &str, bytes: &'a [u8]) -> Result<Heard<'a>, Error> {
        let plain = Heard { payload: Cow::Borrowed(bytes), exchange: None, other: None, form: Form::Bare };
        if !SIGNS.iter().any(|sign| memmem::find(bytes, sign.as_bytes()).is_some()) {
            return Ok(plain);
        }
        // What is no document is refused by whoever reads it, in its own words.
        let Ok(document) = Document::parse(bytes, &AROUND) else { return Ok(plain) };
        if !document.root().is_object() || !speaks(document.root()) {
            return Ok(plain);
        }
        let request = NegotiatedRequest::read(document.root())?;
        let heard = self.agree(schema, &request)?;
        Ok(match request.form {
            Form::Bare => Heard { payload: plain.payload, ..heard },
            Form::Wrapped => {
                let payload = Cow::Owned(json::canonical(request.payload));
                Heard { payload, form: Form::Wrapped, ..heard }
            }
        })
    }

    /// The same for a message inside another one, which has no wrapper of its own.
    pub(crate) fn hear_inside(&self, schema: &str, node: json::Node<'_>) -> Result<Heard<'static>, Error> {
        if !node.is_object() || !speaks(node) {
            return Ok(Heard { payload: Cow::Borrowed(&[]), exchange: None, other: None, form: Form::Bare });
        }
        self.agree(schema, &NegotiatedRequest::read(node)?)
    }

    fn agree(&self, schema: &str, request: &NegotiatedRequest<'_>) -> Result<Heard<'static>, Error> {
        let own = SchemaId::parse(schema).ok_or_else(|| Error::fault(format!("`{schema}` names no schema")))?;
        let mut entry = self.versions.entry(&own).ok_or_else(|| Error::fault(format!("`{schema}` is not used")))?;
        let other = request.schema.clone().filter(|named| *named != own);
        let brought =
            request.version.filter(|version| self.versions.counterparties.knows(other.as_ref(), schema, *version));
        entry.accepts.extend(brought);
        if other.is_some() && brought.is_none() {
            return Err(of_another_schema(&own, &entry).into());
        }
        let agreed = schema::serve(&own, &entry, request.version, request.permits, self.clock.now());
        let other = other.filter(|_| brought.is_some());
        Ok(Heard { payload: Cow::Borrowed(&[]), exchange: Some(agreed?), other, form: Form::Bare })
    }

    /// The answer to a message, with the version that was agreed under its signature.
    pub fn record_version(&self, heard: &Heard<'_>, answer: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.recorded(heard.exchange(), answer)
    }

    /// The same, where the versions are known.
    pub(crate) fn recorded(&self, exchange: Option<&Exchange>, answer: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Some(exchange) = exchange else { return Ok(answer) };
        let mut answer = Document::parse(&answer, &json::Limits::OURS).map_err(Error::fault)?.root().to_value();
        if let Some(members) = answer.as_object_mut() {
            members.remove("signature");
        }
        record(exchange, &mut answer);
        Ok(self.identity.sign(answer))
    }

    /// What the headers say of the warning in a signed answer; nothing when there is none.
    pub fn notice(&self, answer: &[u8]) -> Option<Notice> {
        if self.versions.records.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return None;
        }
        memmem::find(answer, b"\"deprecation_warning\"")?;
        let answer = Document::parse(answer, &json::Limits::OURS).ok()?;
        let root = answer.root();
        // An invocation carries the answer inside its envelope.
        let warning = root.get("deprecation_warning").or_else(|| root.get("output")?.get("deprecation_warning"))?;
        self.versions.notice(warning)
    }

    /// A mapping that the node has prepared, signed.
    pub fn mapping(&self, name: &str) -> Result<Vec<u8>, Error> {
        let unknown = || {
            let detail = "no mapping has this name; `schema_compatibility` in the manifest lists them";
            Refusal::new(Class::NotFound, "mapping_not_found", detail)
        };
        let mapping = self.versions.families.mapping(name).ok_or_else(unknown)?;
        Ok(self.identity.sign(mappings::document(mapping, self.identity.did())))
    }
}

/// Bounds around a message and what may stand around it; the message itself is read within its own.
const AROUND: json::Limits = json::Limits {
    depth: json::Limits::DOCUMENT.depth + 1,
    nodes: json::Limits::DOCUMENT.nodes + 8,
    ..json::Limits::DOCUMENT
};

/// Writes into an answer which version it is in, and whether that one goes.
pub(crate) fn record(exchange: &Exchange, answer: &mut Value) {
    if let Some(members) = answer.as_object_mut() {
        members.insert("schema_version".to_owned(), json!(exchange.answer.to_string()));
        members.extend(exchange.warning.clone().map(|warning| ("deprecation_warning".to_owned(), warning)));
    }
}

/// A place in a wrapped message is a place beneath `payload` for whoever sent it.
pub(crate) fn beneath(form: Form, error: Error) -> Error {
    match error {
        Error::Refusal(refusal) if form == Form::Wrapped && !refusal.at.as_str().is_empty() => {
            let at = Pointer::parse(&format!("/payload{}", refusal.at.as_str())).unwrap_or_default();
            (*refusal).at(at).into()
        }
        error => error,
    }
}

fn speaks(node: json::Node<'_>) -> bool {
    ["schema_version", "version_negotiation"].iter().any(|name| node.get(name).is_some())
}

fn of_another_schema(own: &SchemaId, entry: &Entry) -> Refusal {
    let list =
        |versions: &std::collections::BTreeSet<Version>| versions.iter().map(Version::to_string).collect::<Vec<_>>();
    let detail = "messages of another schema go to this address, and no mapping from this one was brought here";
    let told = json!({"schema": own.as_str(), "accepts": list(&entry.accepts), "produces": list(&entry.produces)});
    let refusal = Refusal::new(Class::Conflict, Code::VersionNotAccepted.name(), detail);
    refusal.at(Pointer::root().child("schema_id")).saying("versions", told)
}

impl From<Box<Disagreement>> for Error {
    fn from(disagreement: Box<Disagreement>) -> Self {
        let class = class_of(disagreement.code);
        let refusal = Refusal::new(class, disagreement.code.name(), disagreement.to_string());
        refusal.at(Pointer::root().child("schema_version")).saying("versions", disagreement.to_value()).into()
    }
}

impl From<schema::Refusal> for Error {
    fn from(refused: schema::Refusal) -> Self {
        let mut refusal = Refusal::new(class_of(refused.code), refused.code.name(), refused.detail).at(refused.at);
        refusal.limit = refused.limit.map(Box::new);
        refusal.into()
    }
}

fn class_of(code: Code) -> Class {
    match code {
        Code::Json(json) if json.name() == "json_too_large" => Class::TooLarge,
        Code::Json(_)
        | Code::MissingField
        | Code::UnknownField
        | Code::WrongType
        | Code::InvalidValue
        | Code::EmptyList
        | Code::InvalidTimestamp
        | Code::InvalidPointer
        | Code::VersionInvalid
        | Code::IdentifierInvalid
        | Code::ProfileInvalid
        | Code::SchemaViolation => Class::InvalidInput,
        Code::VersionNotAccepted
        | Code::VersionNotProduced
        | Code::DowngradeRefused
        | Code::VersionUnexpected
        | Code::NoticeTooShort
        | Code::DeprecationReduced
        | Code::WithdrawnEarly
        | Code::ChangedIncompatibly => Class::Conflict,
        Code::VersionWithdrawn => Class::Gone,
        Code::MappingUntrusted
        | Code::FunctionUnknown
        | Code::MappingTooLarge
        | Code::RulesOverlap
        | Code::NotInvertible
        | Code::ProtectedField
        | Code::MappingCycle
        | Code::RouteMissing
        | Code::OutputTooLarge
        | Code::SchemaTooComplex
        | Code::SchemaInvalid => Class::Unprocessable,
    }
}
