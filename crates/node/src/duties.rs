//! What the core protocol asks of every tool, whatever it does: an audit of receipts, deletion on request, incidents.
//!
//! The node answers from what it keeps and claims nothing beyond it: receipts that somebody published, records that a
//! principal published, incidents that the operator wrote down.

use crate::clock::instant;
use crate::collection::Collection;
use crate::node::Node;
use crate::publish::{SKEW_SECONDS, WINDOW_SECONDS, check_plain, check_window, commit_refused, missing, text};
use crate::quota::Purpose;
use crate::refusal::{Class, Error, Refusal};
use crate::resolve::verify;
use crate::versions::{self, ANNOUNCEMENT, MEMBERS};
use aql::{Constraints, Instant};
use json::{Document, Limits, Pointer, Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use store::{Batch, Hash, Mark, Marked, Operation, Withdrawal};
use trust::{Did, Signed};

/// Receipts in one audit.
pub const AUDIT_MAX: usize = 100;
/// The operator's list of incidents, one in a line, in the data folder.
pub(crate) const INCIDENTS_FILE: &str = "incidents.ndjson";
/// Bytes of that list that are shown.
const INCIDENTS_BYTES: u64 = 256 * 1024;
/// Changes of the log that are looked through at once.
const STRIDE: usize = 4_096;
/// Records that one commit withdraws.
const WITHDRAWALS: usize = 256;

const REQUEST: &str = "urn:rialto:deletion:";
const REQUEST_MEMBERS: [&str; 4] = ["request_id", "principal_did", "issued_at", "signature"];

/// A request for deletion whose cheap checks have passed.
struct Deletion {
    document: Document,
    digest: Hash,
    name: String,
    principal: Did,
    issued_at: Instant,
}

impl Node {
    /// The latest published receipts that name a principal, signed.
    pub fn audit(&self, principal: &str, limit: usize) -> Result<Vec<u8>, Error> {
        let leaf = json!({"path": "/principal_did", "operator": "eq", "value": principal});
        let leaf = Document::of(&leaf).map_err(Error::fault)?;
        let constraints = Constraints::read(leaf.root(), Pointer::root(), &aql::Limits::STANDARD)?;
        let mut numbers: Vec<u64> = {
            let indexes = self.catalog.indexes()?;
            let index = indexes.of(Collection::Receipts);
            let found = index.enumerate(&constraints)?.possible;
            found.iter().filter_map(|unit| index.source(unit)).collect()
        };
        numbers.sort_unstable_by(|left, right| right.cmp(left));
        let total = numbers.len();
        numbers.truncate(limit.min(AUDIT_MAX));
        let mut receipts = Vec::with_capacity(numbers.len());
        for number in numbers {
            receipts.push(self.catalog.view(&self.store, number)?.record().to_value());
        }
        Ok(self.identity.sign(json!({
            "type": "oap.audit",
            "tool_did": self.identity.did().as_str(),
            "principal_did": principal,
            "at": self.clock.now().to_string(),
            "receipts": receipts,
            "total": total,
        })))
    }

    /// The incidents that the operator disclosed, signed, and whether the node can write just now.
    pub fn incidents(&self) -> Vec<u8> {
        self.identity.sign(json!({
            "type": "oap.incidents",
            "tool_did": self.identity.did().as_str(),
            "at": self.clock.now().to_string(),
            "state": if self.store.is_stopped() { "read_only" } else { "ok" },
            "incidents": self.disclosed(),
        }))
    }

    /// What stands in the operator's list; a line that cannot be read is told to the log and left out.
    fn disclosed(&self) -> Vec<Value> {
        let path = self.data.join(INCIDENTS_FILE);
        let mut text = String::new();
        match std::fs::File::open(&path).and_then(|file| file.take(INCIDENTS_BYTES).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => tracing::warn!(%error, file = INCIDENTS_FILE, "the list of incidents cannot be read"),
        }
        let read = |line: &str| match Document::parse(line.as_bytes(), &Limits::INTENT) {
            Ok(incident) if incident.root().is_object() => Some(incident.root().to_value()),
            _ => {
                tracing::warn!(file = INCIDENTS_FILE, "a line of the list of incidents is no JSON object");
                None
            }
        };
        text.lines().filter(|line| !line.trim().is_empty()).filter_map(read).collect()
    }

    /// Withdraws every record of a principal who asks for it under signature, and signs a deletion receipt.
    pub async fn delete_data(self: &Arc<Self>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let deletion = read(bytes)?;
        check_window(deletion.issued_at, self.clock.now())?;
        match self.store.marked(deletion.principal.as_str(), &deletion.name, deletion.digest)? {
            Marked::Same(committed) => return Ok(self.deletion_receipt(&deletion, committed.at)),
            Marked::Other => return Err(reused().into()),
            Marked::New => {}
        }
        let keys = self.keys_of(&deletion.principal).await?;
        let node = Arc::clone(self);
        self.work(move || {
            verify(&deletion.document, &keys)?;
            node.charge(&deletion.principal, Purpose::Message)?;
            // The whole log is looked through, so one at a time.
            let _alone = node.deleting.try_lock().map_err(|_| busy())?;
            let at = node.clock.millis();
            node.withdraw_all(&deletion, at)?;
            node.versions.forget(deletion.principal.as_str());
            // Who asked to be forgotten is not named here either.
            node.versions.count(versions::DELETION, None, None, at);
            Ok(node.deletion_receipt(&deletion, at))
        })
        .await
    }

    fn withdraw_all(&self, deletion: &Deletion, at: i64) -> Result<(), Error> {
        let publisher = deletion.principal.as_str();
        let ids = self.published_by(publisher)?;
        let withdrawal = |id: &String| Withdrawal { id: id.clone(), publisher: publisher.to_owned() };
        for some in ids.chunks(WITHDRAWALS) {
            let withdrawals = some.iter().map(withdrawal).collect();
            self.store.commit(Batch { puts: Vec::new(), withdrawals, mark: None, at }).map_err(commit_refused)?;
        }
        // The mark comes last: a request that was interrupted is carried out when it is sent again.
        let mark = Mark {
            issuer: publisher.to_owned(),
            name: deletion.name.clone(),
            digest: deletion.digest,
            expires_at: (deletion.issued_at.seconds() + WINDOW_SECONDS + SKEW_SECONDS).saturating_mul(1_000),
        };
        let last = Batch { puts: Vec::new(), withdrawals: Vec::new(), mark: Some(mark), at };
        self.store.commit(last).map_err(commit_refused)?;
        self.catalog.read_to(&self.store, self.store.sequence())
    }

    /// The ids of the active records of a publisher, from the log.
    fn published_by(&self, publisher: &str) -> Result<Vec<String>, Error> {
        let (mut ids, mut sequence) = (BTreeMap::new(), 0);
        loop {
            let changes = self.store.changes_after(sequence, STRIDE)?;
            let Some(last) = changes.last() else { break };
            sequence = last.sequence;
            for change in changes.into_iter().filter(|change| change.publisher == publisher) {
                ids.insert(change.id, change.operation == Operation::Put);
            }
        }
        // What the node announced stays announced, even if it asks itself.
        let active = ids.into_iter().filter(|(id, active)| *active && !id.starts_with(ANNOUNCEMENT));
        Ok(active.map(|(id, _)| id).collect())
    }

    /// Says what was done, and no more: records are withdrawn, their history stays in the log.
    fn deletion_receipt(&self, deletion: &Deletion, at: i64) -> Vec<u8> {
        let at = instant(at).to_string();
        self.identity.sign(json!({
            "receipt_id": format!("urn:oap:deletion:{}", trust::Digest::of(deletion.name.as_bytes())),
            "tool_did": self.identity.did().as_str(),
            "principal_did": deletion.principal.as_str(),
            "request_received_at": at,
            "completed_at": at,
            "method": "tombstone",
            "scope": {"data_classes": ["records published by the principal"]},
        }))
    }
}

fn read(bytes: &[u8]) -> Result<Deletion, Error> {
    let document = Document::parse(bytes, &Limits::INTENT)?;
    let root = document.root();
    if !root.is_object() {
        return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a request for deletion is an object").into());
    }
    if let Some((name, _)) = root.members().find(|(name, _)| !REQUEST_MEMBERS.contains(name) && !MEMBERS.contains(name))
    {
        let detail = format!("a request for deletion has {}", REQUEST_MEMBERS.join(", "));
        return Err(Refusal::new(Class::InvalidInput, "unknown_field", detail).at(Pointer::root().child(name)).into());
    }
    let name = text(&document, "request_id")?;
    if !name.strip_prefix(REQUEST).is_some_and(|rest| !rest.is_empty() && rest.len() <= 256) {
        let detail = "a name such as `urn:rialto:deletion:…` belongs here";
        let at = Pointer::root().child("request_id");
        return Err(Refusal::new(Class::InvalidInput, "invalid_value", detail).at(at).into());
    }
    check_plain(&name, Pointer::root().child("request_id"))?;
    let issued_at = crate::publish::issued_at(&document)?;
    root.get("principal_did").ok_or_else(|| missing("principal_did"))?;
    let principal = Signed::read(&document)?.issuer("principal_did")?;
    Ok(Deletion { digest: Hash::of(bytes), name, principal, issued_at, document })
}

fn reused() -> Refusal {
    let detail = "another message of yours has this `request_id`; give each a name of its own";
    Refusal::new(Class::Conflict, "request_id_reused", detail).at(Pointer::root().child("request_id"))
}

fn busy() -> Refusal {
    let detail = "another deletion is under way; send the same request again in a moment";
    Refusal::new(Class::RateLimited, "too_many_requests", detail).retry_after(1_000)
}
