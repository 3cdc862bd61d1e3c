//! Records come in: a publication or a withdrawal, signed by whoever may speak for the record.
//!
//! The order of checks is that of an intent. One commit writes the record, the entry of the change log and the mark
//! that makes a repetition harmless; the acknowledgement is signed after it is on disk and in the index.

use crate::collection::record_of;
use crate::descriptions;
use crate::evidence::{self, Issuer};
use crate::gate::{self, Restrictions};
use crate::node::Node;
use crate::quota::Purpose;
use crate::refusal::{Class, Error, Refusal};
use crate::resolve::verify;
use crate::versions::{self, ANNOUNCEMENT, Announcement, MEMBERS, announced, not_taken_back};
use aql::Instant;
use json::{Document, Limits, Pointer, json};
use std::sync::Arc;
use store::{Batch, Cause, CommitError, Committed, Hash, Kind, Mark, Marked, Outcome, Put, Withdrawal};
use tracing::{Instrument, debug_span};
use trust::{Did, DidDocument, Signed};

/// Seconds after its issue that a publication may still arrive.
pub(crate) const WINDOW_SECONDS: i64 = 24 * 3600;
/// Seconds by which a publisher's clock may be ahead.
pub(crate) const SKEW_SECONDS: i64 = 300;
/// Bytes of a record's id; the longest that an address can carry comfortably.
pub(crate) const ID_BYTES_MAX: usize = 1_024;

/// Bytes that the actions of one manifest may take over from it, all together.
pub(crate) const INHERITED_BYTES_MAX: usize = 4 << 20;

const NAME: &str = "urn:rialto:publication:";

/// A message about a record whose cheap checks have passed.
struct Publication {
    document: Document,
    digest: Hash,
    name: String,
    publisher: Did,
    issued_at: Instant,
    asks: Asks,
}

/// A record as the public sees it.
#[derive(Clone, Debug)]
pub enum Exhibit {
    /// Everybody may see all of it: the bytes that came, with the publisher's signature where there is one.
    Original(store::Record),
    /// Parts are restricted: a signed document of the node, which is not the publisher's and does not look like it.
    View {
        /// What kind the record is.
        kind: Kind,
        /// Who signed the original.
        publisher: String,
        /// The hash of what is shown; nothing hidden is in it.
        digest: Hash,
        /// The signed document.
        bytes: Vec<u8>,
    },
}

enum Asks {
    Put { id: String, kind: Kind, body: Vec<u8>, restrictions: Restrictions },
    Withdraw { id: String },
}

impl Node {
    /// Keeps a record that its publisher signed.
    pub async fn publish(self: &Arc<Self>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.deal_with(bytes, None).await
    }

    /// Withdraws a record that its publisher no longer stands for.
    pub async fn withdraw(self: &Arc<Self>, id: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.deal_with(bytes, Some(id)).await
    }

    async fn deal_with(self: &Arc<Self>, bytes: &[u8], withdraws: Option<&str>) -> Result<Vec<u8>, Error> {
        let publication = debug_span!("receive").in_scope(|| read(bytes, withdraws))?;
        check_window(publication.issued_at, self.clock.now())?;
        match self.store.marked(publication.publisher.as_str(), &publication.name, publication.digest)? {
            Marked::Same(committed) => return Ok(self.acknowledge(&publication, &committed)),
            Marked::Other => return Err(reused().into()),
            Marked::New => {}
        }
        let keys = self.keys_of(&publication.publisher).await?;
        self.check_evidence(&publication, &keys).await?;
        let place = self.place()?;
        let (batch, announces) = self
            .work(|| {
                verify(&publication.document, &keys)?;
                self.charge(&publication.publisher, Purpose::Message)?;
                if let Asks::Put { id, kind, restrictions, .. } = &publication.asks {
                    check_authority(*kind, record_of(&publication.document), publication.publisher.as_str())?;
                    self.check_audience(restrictions, id, &publication.document)?;
                }
                let announces = self.check_announcement(&publication)?;
                Ok((publication.batch(self.clock.millis()), announces))
            })
            .await?;
        let node = Arc::clone(self);
        self.to_the_end(async move {
            let _place = place;
            let committed = node.commit(batch).instrument(debug_span!("commit")).await?.map_err(commit_refused)?;
            for schema in publication.schemas() {
                node.versions.count(schema, None, Some(publication.publisher.as_str()), node.clock.millis());
            }
            node.level().instrument(debug_span!("index")).await?;
            if announces {
                node.versions.adopt(announced(&node.store, &node.catalog)?);
            }
            Ok(debug_span!("sign").in_scope(|| node.acknowledge(&publication, &committed)))
        })
        .await
    }

    /// Whether a publication announces the end of a version, which only the node itself may, and within the rules.
    fn check_announcement(&self, publication: &Publication) -> Result<bool, Error> {
        match &publication.asks {
            Asks::Put { id, kind, .. } if id.starts_with(ANNOUNCEMENT) => {
                if *kind != Kind::Receipt || publication.publisher != *self.identity.did() {
                    let detail = "what begins with this name is announced by the node itself";
                    let at = Pointer::root().child("record").child("receipt_id");
                    return Err(Refusal::new(Class::PolicyBlock, "publisher_not_authorized", detail).at(at).into());
                }
                let announcement = Announcement::read(record_of(&publication.document), self.clock.now())?;
                self.versions.consider(&announcement)?;
                Ok(true)
            }
            Asks::Withdraw { id } if id.starts_with(ANNOUNCEMENT) => Err(not_taken_back().into()),
            Asks::Put { .. } | Asks::Withdraw { .. } => Ok(false),
        }
    }

    /// Evidence may carry the signature of somebody else, and there is room for so much of it about one subject.
    async fn check_evidence(&self, publication: &Publication, keys: &DidDocument) -> Result<(), Error> {
        let Asks::Put { id, kind: Kind::Evidence, .. } = &publication.asks else { return Ok(()) };
        let record = record_of(&publication.document);
        let publisher = publication.publisher.as_str();
        let signer = match evidence::issuer(record, publisher)? {
            Issuer::Publisher => None,
            Issuer::Signer(signer) => Some(signer),
        };
        let issuer = signer.as_ref().map_or(publisher, Did::as_str);
        if let Some(subject) = evidence::subject(record)
            && self.store.record(id)?.is_none()
            && let Some((limit, max)) = self.catalog.evidence()?.is_full(subject, issuer)
        {
            let detail = "as much is said about this subject as the node keeps; withdraw what no longer matters";
            let refusal = Refusal::new(Class::Unprocessable, "evidence_full", detail);
            let at = Pointer::root().child("record");
            return Err(refusal.at(at).limited(limit, max as u64, max as u64 + 1).into());
        }
        let Some(signer) = signer else { return Ok(()) };
        // Nobody is asked for another's keys on the word of a stranger.
        verify(&publication.document, keys)?;
        let keys = self.keys_of(&signer).await?;
        evidence::check(&record.to_document(), &keys).map_err(|error| {
            let at = Pointer::parse(&format!("/record{}", error.at.as_str())).unwrap_or_default();
            Refusal::new(Class::AuthRequired, error.code(), error.problem.to_string()).at(at).into()
        })
    }

    /// Says what became of a publication; the same words each time.
    fn acknowledge(&self, publication: &Publication, committed: &Committed) -> Vec<u8> {
        let (sequence, revision) = match committed.outcomes.first() {
            Some(Outcome::Changed { sequence, revision, .. }) => (Some(*sequence), *revision),
            Some(Outcome::Unchanged { revision }) => (None, *revision),
            None => (None, 0),
        };
        let (id, kind, state) = match &publication.asks {
            Asks::Put { id, kind, .. } => (id, Some(kind.name()), "active"),
            Asks::Withdraw { id } => (id, None, "withdrawn"),
        };
        let mut output = json!({
            "type": "oap.record.ack",
            "publication_id": publication.name,
            "record_id": id,
            "revision": revision,
            "state": state,
            "record_hash": format!("sha256:{}", publication.digest),
            "resolver_did": self.identity.did().as_str(),
        });
        if let Some(members) = output.as_object_mut() {
            members.extend(kind.map(|kind| ("kind".to_owned(), json!(kind))));
            members.extend(sequence.map(|sequence| ("sequence".to_owned(), json!(sequence))));
        }
        self.envelope(&publication.name, output, committed.at)
    }

    /// A record as everybody may see it: as it was received, or what its restrictions leave of it, in the node's words.
    pub fn record(&self, id: &str) -> Result<Exhibit, Error> {
        let unknown = || Refusal::new(Class::NotFound, "record_not_found", "no active record has this id");
        let listed = self.store.listed(id)?.ok_or_else(unknown)?;
        // The body of a restricted record is not touched.
        let view = self.catalog.views(&self.store, &[listed.number])?.pop().ok_or_else(unknown)?;
        if !view.is_cut() {
            return Ok(Exhibit::Original(self.store.by_number(listed.number)?.ok_or_else(unknown)?));
        }
        let shown = view.record();
        let digest = Hash::of(&json::canonical(shown));
        // Neither revision, place in the log nor time of arrival: they would tell when something hidden changed.
        let output = json!({
            "type": "oap.record.view",
            "record_id": id,
            "kind": listed.kind.name(),
            "publisher_did": listed.publisher,
            "record": shown.to_value(),
            "resolver_did": self.identity.did().as_str(),
        });
        let bytes = self.envelope(id, output, self.clock.millis());
        Ok(Exhibit::View { kind: listed.kind, publisher: listed.publisher, digest, bytes })
    }
}

impl Publication {
    /// The schemas of the message and of what it publishes, as far as the node publishes one.
    fn schemas(&self) -> impl Iterator<Item = &'static str> {
        let (message, document) = match &self.asks {
            Asks::Withdraw { .. } => (versions::WITHDRAWAL, None),
            Asks::Put { kind: Kind::Manifest, .. } => (versions::PUBLICATION, Some(versions::MANIFEST)),
            Asks::Put { kind: Kind::Receipt, .. } => (versions::PUBLICATION, Some(versions::RECEIPT)),
            Asks::Put { kind: Kind::Evidence, .. } => (versions::PUBLICATION, Some(versions::EVIDENCE)),
            Asks::Put { kind: Kind::Offer | Kind::Knowledge | Kind::Description, .. } => (versions::PUBLICATION, None),
        };
        [message].into_iter().chain(document)
    }

    fn batch(&self, at: i64) -> Batch {
        let publisher = self.publisher.as_str().to_owned();
        let mark = Mark {
            issuer: publisher.clone(),
            name: self.name.clone(),
            digest: self.digest,
            expires_at: (self.issued_at.seconds() + WINDOW_SECONDS + SKEW_SECONDS).saturating_mul(1_000),
        };
        let (mut puts, mut withdrawals) = (Vec::new(), Vec::new());
        match &self.asks {
            Asks::Put { id, kind, body, .. } => {
                puts.push(Put { id: id.clone(), kind: *kind, publisher, body: body.clone() });
            }
            Asks::Withdraw { id } => withdrawals.push(Withdrawal { id: id.clone(), publisher }),
        }
        Batch { puts, withdrawals, mark: Some(mark), at }
    }
}

/// Nobody publishes in another's name.
pub(crate) fn check_authority(kind: Kind, record: json::Node<'_>, publisher: &str) -> Result<(), Error> {
    let own = |path: &[&str]| path.iter().try_fold(record, |node, name| node.get(name)).and_then(json::Node::as_str);
    let named = match kind {
        Kind::Manifest => vec![own(&["tool", "did"]), own(&["tool", "publisher", "did"])],
        Kind::Offer => vec![own(&["provider_did"]), own(&["broker_did"])],
        Kind::Knowledge => vec![own(&["publisher_did"])],
        Kind::Receipt => vec![own(&["principal_did"]), own(&["agent_did"]), own(&["tool_did"])],
        Kind::Evidence => vec![own(&["issuer_did"])],
        // Nobody publishes one; it is read where it stands.
        Kind::Description => vec![Some("")],
    };
    if named.iter().all(Option::is_none) || named.contains(&Some(publisher)) {
        return Ok(());
    }
    let detail = "the record names somebody else as the one who stands for it; let them sign, or correct the record";
    let at = Pointer::root().child("publisher_did");
    Err(Refusal::new(Class::PolicyBlock, "publisher_not_authorized", detail).at(at).into())
}

const PUT: [&str; 7] = ["publication_id", "kind", "record", gate::MEMBER, "publisher_did", "issued_at", "signature"];
const WITHDRAW: [&str; 5] = ["publication_id", "withdraw", "publisher_did", "issued_at", "signature"];

fn read(bytes: &[u8], withdraws: Option<&str>) -> Result<Publication, Error> {
    let document = Document::parse(bytes, &Limits::DOCUMENT)?;
    let root = document.root();
    if !root.is_object() {
        return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a publication is an object").into());
    }
    let known: &[&str] = if withdraws.is_some() { &WITHDRAW } else { &PUT };
    if let Some((name, _)) = root.members().find(|(name, _)| !known.contains(name) && !MEMBERS.contains(name)) {
        let detail = format!("a publication has {}", known.join(", "));
        let at = Pointer::root().child(name);
        return Err(Refusal::new(Class::InvalidInput, "unknown_field", detail).at(at).into());
    }
    let name = text(&document, "publication_id")?;
    if !name.strip_prefix(NAME).is_some_and(|rest| !rest.is_empty() && name.len() <= ID_BYTES_MAX) {
        return Err(invalid("publication_id", "a name such as `urn:rialto:publication:…` belongs here").into());
    }
    check_plain(&name, Pointer::root().child("publication_id"))?;
    let issued_at = issued_at(&document)?;
    let signed = Signed::read(&document)?;
    let publisher = signed.issuer("publisher_did")?;
    let asks = match withdraws {
        Some(id) if text(&document, "withdraw")? == id => Asks::Withdraw { id: id.to_owned() },
        Some(_) => return Err(invalid("withdraw", "the address names another record than the message").into()),
        None => {
            let kind = Kind::parse(&text(&document, "kind")?)
                .filter(|kind| *kind != Kind::Description)
                .ok_or_else(|| invalid("kind", "manifest, offer, knowledge, receipt or evidence belongs here"))?;
            let (id, restrictions) = (record_id(&document, kind)?, Restrictions::read(document.root())?);
            restrictions.check(record_of(&document))?;
            check_inheritance(kind, record_of(&document))?;
            Asks::Put { id, kind, body: bytes.to_vec(), restrictions }
        }
    };
    Ok(Publication { digest: Hash::of(bytes), name, publisher, issued_at, asks, document })
}

/// Whether a message was issued lately.
pub(crate) fn check_window(issued_at: Instant, now: Instant) -> Result<(), Refusal> {
    let at = Pointer::root().child("issued_at");
    if issued_at > now.plus(SKEW_SECONDS) {
        let detail = "this was issued in the future; set the clock, or wait";
        return Err(Refusal::new(Class::InvalidInput, "publication_not_yet_valid", detail).at(at));
    }
    if issued_at.plus(WINDOW_SECONDS) < now {
        let detail = "this was issued more than a day ago; sign it again with the time of now";
        return Err(Refusal::new(Class::InvalidInput, "publication_expired", detail).at(at));
    }
    Ok(())
}

/// When a message was issued.
pub(crate) fn issued_at(document: &Document) -> Result<Instant, Error> {
    let wrong = || Refusal { code: "invalid_timestamp", ..invalid("issued_at", "RFC 3339 with an offset, please") };
    Ok(Instant::parse_rfc3339(&text(document, "issued_at")?).ok_or_else(wrong)?)
}

/// What a record in a publication is called.
fn record_id(document: &Document, kind: Kind) -> Result<String, Error> {
    let at = Pointer::root().child("record");
    let record = document.root().get("record").ok_or_else(|| missing("record"))?;
    if !record.is_object() {
        return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a record is an object").at(at).into());
    }
    // Receipts and performance records have names of their own texts.
    let own = |name: &str| record.get(name).and_then(json::Node::as_str).map(str::to_owned);
    let other = || match kind {
        Kind::Receipt | Kind::Evidence => own("receipt_id").or_else(|| own("record_id")),
        Kind::Manifest | Kind::Offer | Kind::Knowledge | Kind::Description => None,
    };
    let id = aql::own_id(record).or_else(other).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
    let detail = "a record has a name of its own: `tool.did`, `offer_id` or `id`, of at most 1,024 bytes";
    let without = || Refusal::new(Class::InvalidInput, "record_without_id", detail).at(at.clone());
    let id = id.ok_or_else(without)?;
    check_plain(&id, at.clone())?;
    descriptions::check_no_claim(record, &id, at)?;
    Ok(id)
}

/// Each action of a manifest is a candidate of its own, with a copy of what the manifest says for all of them; many
/// actions under long lists would grow a document a thousand times.
fn check_inheritance(kind: Kind, record: json::Node<'_>) -> Result<(), Refusal> {
    let actions = record.get("actions").filter(|_| kind == Kind::Manifest).map_or(0, json::Node::len);
    let tool = record.get("tool").and_then(|tool| tool.get("categories"));
    let shared = [tool, record.get("oap_version"), record.get("risk_class")].into_iter().flatten();
    let each: usize = shared.map(|member| json::canonical(member).len()).sum();
    let bytes = each.saturating_mul(actions);
    if bytes <= INHERITED_BYTES_MAX {
        return Ok(());
    }
    let detail = "every action has a copy of `tool.categories`, and together they are too long; shorten the list";
    let at = Pointer::root().child("record").child("actions");
    let refusal = Refusal::new(Class::TooLarge, "actions_too_large", detail).at(at);
    Err(refusal.limited("actions.inherited_bytes", INHERITED_BYTES_MAX as u64, bytes as u64))
}

/// Logs, addresses and other programs end a name at a control character, and see another one.
pub(crate) fn check_plain(name: &str, at: Pointer) -> Result<(), Refusal> {
    if !name.contains(char::is_control) {
        return Ok(());
    }
    let detail = "a name has no control characters";
    Err(Refusal::new(Class::InvalidInput, "invalid_unicode", detail).at(at))
}

pub(crate) fn text(document: &Document, name: &str) -> Result<String, Error> {
    let member = document.root().get(name).ok_or_else(|| missing(name))?;
    let wrong =
        || Refusal::new(Class::InvalidInput, "wrong_type", "a text belongs here").at(Pointer::root().child(name));
    Ok(member.as_str().map(str::to_owned).ok_or_else(wrong)?)
}

pub(crate) fn missing(name: &str) -> Refusal {
    let detail = format!("the message needs `{name}`");
    Refusal::new(Class::InvalidInput, "missing_field", detail).at(Pointer::root().child(name))
}

fn invalid(name: &str, detail: &str) -> Refusal {
    Refusal::new(Class::InvalidInput, "invalid_value", detail).at(Pointer::root().child(name))
}

fn reused() -> Refusal {
    let detail = "another message of yours has this `publication_id`; give each a name of its own";
    Refusal::new(Class::Conflict, "publication_id_reused", detail).at(Pointer::root().child("publication_id"))
}

pub(crate) fn commit_refused(error: CommitError) -> Error {
    let (class, code) = match &error {
        CommitError::NotThePublisher { .. } => (Class::PolicyBlock, "publisher_not_authorized"),
        CommitError::OtherKind { .. } => (Class::Conflict, "record_kind_differs"),
        CommitError::NoSuchRecord { .. } => (Class::NotFound, "record_not_found"),
        CommitError::NameTaken { .. } => return reused().into(),
        CommitError::CannotWrite { cause, reason } => {
            tracing::error!(%reason, "the store cannot write");
            return cannot_write(*cause).into();
        }
    };
    let detail = match class {
        Class::PolicyBlock => "somebody else published this record; nobody else may change it",
        Class::Conflict => "this record is of another kind, and stays so",
        _ => "there is no such record",
    };
    Refusal::new(class, code, detail).into()
}

/// Milliseconds after which it may be worth trying a disk again that had no room.
const ROOM_RETRY_MS: u64 = 5_000;

pub(crate) fn cannot_write(cause: Cause) -> Refusal {
    let (code, detail, retry) = match cause {
        Cause::Full => (
            "storage_full",
            "the node's disk is full; what was acknowledged is safe, try again later",
            Some(ROOM_RETRY_MS),
        ),
        Cause::ReadOnly => (
            "storage_read_only",
            "the node's disk is read-only; what was acknowledged is safe, try again later",
            Some(ROOM_RETRY_MS),
        ),
        Cause::RolledBack => (
            "history_rollback_detected",
            "the node's history is not the one that it had; nothing is taken in until its operator has looked",
            None,
        ),
        Cause::Failed => (
            "storage_unavailable",
            "the node's disk failed, and nothing is written until the node is started again; what was acknowledged is safe",
            None,
        ),
    };
    let mut refusal = Refusal::new(Class::Unavailable, code, detail);
    refusal.retry_after_ms = retry;
    refusal
}
