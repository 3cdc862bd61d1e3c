//! ADP Overview: what agents say of themselves, kept as records that intents ask for like manifests (decisions/0190).
//!
//! A description is named by the address where it stands. Stored are the bytes as they came and, beside them, one record
//! in which its own words, its products with the documents behind them, its interfaces down to their operations, and
//! everything that was found wrong with it can be asked for. Whoever changes it is whoever the address belongs to: what was
//! fetched there counts, and what its agent sends counts when the agent's DID lists the address.
//!
//! INVARIANT: a record that says it is a description was made in this room. No other record says so, or has such a name.

mod record;

use crate::catalog::{Catalog, parsed};
use crate::collection::{Collection, record_of};
use crate::node::Node;
use crate::publish::{ID_BYTES_MAX, commit_refused};
use crate::refusal::{Class, Error, Refusal};
use aql::Constraints;
use description::{Finding, Grade, Mode, Reading};
use json::{Document, Limits, Node as JsonNode, Pointer, Value, json};
use store::{Batch, Kind, Outcome, Put, Record, Store, Withdrawal};
use trust::{Did, DidDocument};
use url::Url;

/// Bytes of a description that is kept; its record must fit a stored document, too.
pub(crate) const KEPT_BYTES_MAX: u32 = Limits::DOCUMENT.bytes;
/// Findings that a refusal repeats.
pub(crate) const FINDINGS_TOLD_MAX: usize = 16;

/// How the names of descriptions begin, and of nothing else.
const NAME: &str = "agent:";
/// The member by which an intent tells descriptions from manifests.
const TYPE: &str = "record_type";
/// What stands there.
const DESCRIPTION: &str = "agent_description";
/// What a stored body with a description in it says of itself.
const BODY: &str = "rialto.description";

/// A description as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Where it stands, after redirects.
    pub url: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// What it leads to, as far as somebody fetched it.
    pub linked: &'a [Linked],
    /// The document of the DID that it names, where somebody resolved it.
    pub keys: Option<&'a DidDocument>,
    /// Who proved to have sent it, where somebody did.
    pub vouched_by: Option<&'a Did>,
}

/// A document that a description leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The address, as the description's link has it.
    pub url: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What came of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The name of its record.
    pub id: String,
    /// Who the agent is, where it says so.
    pub did: Option<Did>,
    /// The how-manieth record of this name.
    pub revision: u64,
    /// The change that brought it; none when nothing changed.
    pub sequence: Option<u64>,
    /// Whether it also stands before whoever goes by the letter of the text.
    pub strict: bool,
    /// How many things were found.
    pub findings: usize,
}

/// A description that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The name of its record.
    pub id: String,
    /// Where it stands.
    pub url: String,
    /// Who the agent is, where it says so.
    pub did: Option<String>,
    /// The how-manieth record of this name.
    pub revision: u64,
    /// The bytes as they came.
    pub bytes: Vec<u8>,
    /// Who proved to have sent it, where somebody did.
    pub vouched_by: Option<String>,
}

impl Node {
    /// Keeps a description, or its next revision; what it was before is told to whoever wants to know. It waits for the
    /// disk.
    pub fn describe(&self, found: &Found<'_>) -> Result<Described, Error> {
        let place = Place::read(found.url)?;
        let reading = read(found, &place)?;
        check_voucher(&reading, found.vouched_by)?;
        // Whoever vouched for these very bytes still does when somebody else finds them.
        let kept = self.kept_at(&place)?.filter(|kept| kept.bytes == found.bytes);
        let vouched_by = found.vouched_by.map(|did| did.as_str().to_owned()).or(kept.and_then(|kept| kept.vouched_by));
        let record = record::of(&reading, found, vouched_by.as_deref(), &place)?;
        let body = body(&reading, &record)?;
        let put = Put { id: place.id.clone(), kind: Kind::Description, publisher: place.publisher.clone(), body };
        let batch = Batch { puts: vec![put], at: self.clock.millis(), ..Batch::default() };
        let outcome = self.change(batch)?;
        let (revision, sequence) = match outcome {
            Outcome::Changed { sequence, revision, .. } => (revision, Some(sequence)),
            Outcome::Unchanged { revision } => (revision, None),
        };
        let (strict, findings) = (reading.findings.passes(Mode::Strict), &reading.findings);
        let findings = findings.all().len() + findings.omitted();
        Ok(Described { id: place.id, did: reading.agent.did, revision, sequence, strict, findings })
    }

    /// Takes a description back that no longer stands at its address, or that its agent took back; says whether there
    /// was one. It waits for the disk.
    pub fn withdraw_description(&self, url: &str) -> Result<bool, Error> {
        let place = Place::read(url)?;
        if self.kept_at(&place)?.is_none() {
            return Ok(false);
        }
        let withdrawal = Withdrawal { id: place.id, publisher: place.publisher };
        let batch = Batch { withdrawals: vec![withdrawal], at: self.clock.millis(), ..Batch::default() };
        Ok(matches!(self.change(batch)?, Outcome::Changed { .. }))
    }

    /// The description that is kept of an address.
    pub fn description(&self, url: &str) -> Result<Option<Kept>, Error> {
        self.kept_at(&Place::read(url)?)
    }

    /// The addresses of all descriptions that are kept of an origin, such as `https://agents.example`.
    pub fn descriptions_of(&self, origin: &str) -> Result<Vec<String>, Error> {
        let found = with_member(&self.catalog, &self.store, "origin", origin)?;
        let mut urls: Vec<String> =
            found.iter().filter_map(|record| record.id.strip_prefix(NAME)).map(str::to_owned).collect();
        urls.sort_unstable();
        Ok(urls)
    }

    fn kept_at(&self, place: &Place) -> Result<Option<Kept>, Error> {
        let Some(record) = self.store.record(&place.id)? else { return Ok(None) };
        let body = parsed(&record.body)?;
        let root = body.root();
        let original = root.get("original").and_then(JsonNode::as_str).unwrap_or_default();
        let said = |name: &str| Some(root.get("record")?.get(name)?.as_str()?.to_owned());
        Ok(Some(Kept {
            id: record.id,
            url: place.url.to_string(),
            did: said("did"),
            revision: record.revision,
            bytes: original.as_bytes().to_vec(),
            vouched_by: said("vouched_by"),
        }))
    }

    /// One change, on disk and in the index.
    fn change(&self, batch: Batch) -> Result<Outcome, Error> {
        let committed = self.store.commit(batch).map_err(commit_refused)?;
        self.catalog.read_to(&self.store, self.store.sequence())?;
        committed.outcomes.into_iter().next().ok_or_else(|| Error::fault("a change without an outcome"))
    }
}

/// Where a description stands, and what follows from it.
pub(crate) struct Place {
    pub(crate) url: Url,
    pub(crate) id: String,
    /// The host, by its did:web; whoever has the address has the record.
    publisher: String,
}

impl Place {
    pub(crate) fn read(url: &str) -> Result<Self, Refusal> {
        let refuse =
            |detail: &str| Refusal::new(Class::InvalidInput, "invalid_value", detail).at(Pointer::root().child("url"));
        let no_address = || refuse("a description stands at an http or https address with a host and without a user");
        let mut parsed = Url::parse(url).ok().filter(|_| description::is_web(url)).ok_or_else(no_address)?;
        parsed.set_fragment(None);
        let (id, host) = (format!("{NAME}{parsed}"), parsed.host_str().unwrap_or_default());
        if id.len() > ID_BYTES_MAX {
            return Err(refuse("this address is too long").limited(
                "descriptions.id_bytes",
                ID_BYTES_MAX as u64,
                id.len() as u64,
            ));
        }
        let port = parsed.port().map(|port| format!("%3A{port}")).unwrap_or_default();
        let publisher = format!("did:web:{host}{port}");
        Ok(Self { url: parsed, id, publisher })
    }
}

/// Reads a description as the lenient do, and refuses what they refuse.
fn read(found: &Found<'_>, place: &Place) -> Result<Reading, Error> {
    let bytes = found.bytes.len();
    if bytes > KEPT_BYTES_MAX as usize {
        let refusal = too_large().limited("descriptions.bytes", KEPT_BYTES_MAX.into(), bytes as u64);
        return Err(refusal.into());
    }
    let listed = found.keys.map(listed).transpose()?;
    let did_document = listed.as_ref().map(Document::root);
    let reading = description::read(found.bytes, Some(&description::Origin { url: place.url.as_str(), did_document }))?;
    if reading.findings.passes(Mode::Lenient) {
        return Ok(reading);
    }
    let grave = reading.findings.of(Mode::Lenient).filter(|(grade, _)| *grade == Grade::Error);
    let told: Vec<Value> = grave.map(|(_, finding)| found_at(finding)).take(FINDINGS_TOLD_MAX).collect();
    let detail =
        "the description cannot be used as it is; `rialto describe` says what is wrong with it, and how to mend it";
    let refusal = Refusal::new(Class::InvalidInput, "description_invalid", detail);
    Err(refusal.saying("findings", json!(told)).into())
}

/// What a DID document says about where its agent is described.
pub(crate) fn listed(keys: &DidDocument) -> Result<Document, Error> {
    let services = keys.descriptions().map(|url| json!({"type": "AgentDescription", "serviceEndpoint": url}));
    let document = json!({"id": keys.did().as_str(), "service": services.collect::<Vec<_>>()});
    Document::of(&document).map_err(Error::fault)
}

/// Nobody sends another's description.
fn check_voucher(reading: &Reading, vouched_by: Option<&Did>) -> Result<(), Refusal> {
    match (vouched_by, &reading.agent.did) {
        (None, _) => Ok(()),
        (Some(sender), Some(did)) if sender == did => Ok(()),
        (Some(_), _) => Err(not_yours()),
    }
}

pub(crate) fn not_yours() -> Refusal {
    let detail = "the description names another DID than the one that sends this; let the agent itself do it";
    Refusal::new(Class::PolicyBlock, "description_not_yours", detail)
}

/// One finding, as records and refusals tell it.
fn found_at(finding: &Finding) -> Value {
    let mut told =
        json!({"rule": finding.rule.number(), "place": finding.at.as_str(), "message": finding.message.as_ref()});
    if let Some(members) = told.as_object_mut() {
        for (name, mode) in [("strict", Mode::Strict), ("lenient", Mode::Lenient)] {
            members.extend(finding.grade(mode).map(|grade| (name.to_owned(), json!(grade.name()))));
        }
    }
    told
}

/// What is stored: the bytes as they came, and the record.
fn body(reading: &Reading, record: &[u8]) -> Result<Vec<u8>, Error> {
    let original = std::str::from_utf8(reading.bytes()).map_err(Error::fault)?;
    let mut writer = json::Writer::default();
    writer.object();
    writer.name("original");
    writer.string(original);
    writer.name("record");
    writer.canonical(record);
    writer.name("type");
    writer.string(BODY);
    writer.end_object();
    Ok(writer.finish())
}

pub(crate) fn too_large() -> Refusal {
    let detail = "the description is larger than what is kept; shorten it, or put parts of it behind links";
    Refusal::new(Class::TooLarge, "description_too_large", detail)
}

/// Whether a stored body is a description with its record.
pub(crate) fn is_kept(root: JsonNode<'_>) -> bool {
    root.get("type").and_then(JsonNode::as_str) == Some(BODY)
        && root.get("original").is_some_and(|original| original.as_str().is_some())
        && root.get("record").is_some_and(JsonNode::is_object)
}

/// Whether a record says that it is a description.
pub(crate) fn is_one(record: JsonNode<'_>) -> bool {
    record.get(TYPE).and_then(JsonNode::as_str) == Some(DESCRIPTION)
}

/// Nobody calls a record of another kind a description, by its name or by what it says.
pub(crate) fn check_no_claim(record: JsonNode<'_>, id: &str, at: Pointer) -> Result<(), Refusal> {
    let at = match () {
        () if is_one(record) => at.child(TYPE),
        () if id.starts_with(NAME) => at,
        () => return Ok(()),
    };
    let detail = "only what a node read at an agent's address is an agent description; name and call this otherwise";
    Err(Refusal::new(Class::InvalidInput, "record_type_reserved", detail).at(at))
}

/// The descriptions of an agent.
pub(crate) fn of_agent(catalog: &Catalog, store: &Store, did: &str) -> Result<Vec<Record>, Error> {
    with_member(catalog, store, "did", did)
}

/// The descriptions whose record has a text as one of its members.
fn with_member(catalog: &Catalog, store: &Store, name: &str, text: &str) -> Result<Vec<Record>, Error> {
    let leaf = |name: &str, text: &str| json!({"path": format!("/{name}"), "operator": "eq", "value": text});
    let tree = Document::of(&json!({"all_of": [leaf(TYPE, DESCRIPTION), leaf(name, text)]})).map_err(Error::fault)?;
    let constraints = Constraints::read(tree.root(), Pointer::root(), &aql::Limits::STANDARD)?;
    let sources: Vec<u64> = {
        let indexes = catalog.indexes()?;
        let index = indexes.of(Collection::Manifests);
        index.enumerate(&constraints)?.possible.iter().filter_map(|unit| index.source(unit)).collect()
    };
    let mut found = Vec::new();
    for source in sources {
        let Some(record) = store.by_number(source)?.filter(|record| record.kind == Kind::Description) else { continue };
        // What is possible is not certain.
        let body = parsed(&record.body)?;
        if record_of(&body).get(name).and_then(JsonNode::as_str) == Some(text) {
            found.push(record);
        }
    }
    Ok(found)
}
