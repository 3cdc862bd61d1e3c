//! A record on its way to a node, in the words and with the signature of whoever stands for it.

use crate::chance;
use crate::failure::Failure;
use crate::files::Text;
use aql::Instant;
use json::{Node, Value, json};
use store::Kind;
use trust::{Did, SigningKey};

/// A message about a record, ready to be sent.
pub(crate) struct Publication {
    pub(crate) publication_id: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether there was something beside the record that is not sent.
    pub(crate) left_behind: bool,
}

/// A part of a record that only some may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restriction {
    path: String,
    audience: Vec<String>,
}

impl Restriction {
    /// Reads `PATH=DID[,DID]`; a DID has no equals sign, so the last one parts the two.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (path, audience) = text.rsplit_once('=').ok_or("write PATH=DID, such as /pricing=did:web:buyer.example")?;
        let audience: Vec<String> = audience.split(',').map(str::to_owned).collect();
        match audience.iter().find_map(|did| Did::parse(did).err()) {
            Some(error) => Err(error.to_string()),
            None => Ok(Self { path: path.to_owned(), audience }),
        }
    }

    fn to_value(&self) -> Value {
        json!({"path": self.path, "audience": self.audience})
    }
}

/// Wraps a record and signs it; a publication that is signed already is sent as it is.
pub(crate) fn of_record(
    text: &Text,
    kind: Option<Kind>,
    restrictions: &[Restriction],
    key: &SigningKey,
    now: Instant,
) -> Result<Publication, Failure> {
    let document = text.document(&json::Limits::DOCUMENT)?;
    let root = document.root();
    if let (Some(name), Some(_)) = (root.get("publication_id").and_then(Node::as_str), root.get("signature")) {
        if !restrictions.is_empty() {
            return Err(Failure::refused(format!("{} is signed already, so nothing can be restricted", text.name))
                .help("publish the record itself with --restrict, or leave --restrict out"));
        }
        let bytes = text.bytes.clone();
        return Ok(Publication { publication_id: name.to_owned(), bytes, left_behind: false });
    }
    // The form of imports: a record with what others say of it beside.
    let record = root.get("record").filter(|record| record.is_object());
    let left_behind = record.is_some() && root.get("quality").is_some();
    // What stands beside a record as restricted must never be dropped.
    let beside = record.and_then(|_| root.get("restricted")).map(|listed| listed.to_value());
    let restricted = beside.iter().flat_map(|listed| listed.as_array().into_iter().flatten()).cloned();
    let restricted: Vec<Value> = restricted.chain(restrictions.iter().map(Restriction::to_value)).collect();
    if restricted.is_empty() && beside.is_some() {
        return Err(Failure::refused(format!("{}: `restricted` is no list of restrictions", text.name))
            .help("write [{\"path\": \"/pricing\", \"audience\": [\"did:web:buyer.example\"]}]"));
    }
    let record = record.unwrap_or(root);
    let kind = kind.or_else(|| node::kind_of(record)).ok_or_else(|| {
        Failure::refused(format!("{} does not show what kind of record it is", text.name))
            .help("say it with --kind manifest, offer, knowledge, receipt or evidence")
    })?;
    let mut asks = vec![("kind", json!(kind.name())), ("record", record.to_value())];
    if !restricted.is_empty() {
        asks.push(("restricted", json!(restricted)));
    }
    let (publication_id, bytes) = signed(asks, key, now, &text.name)?;
    Ok(Publication { publication_id, bytes, left_behind })
}

/// Says that a record is no longer stood for.
pub(crate) fn of_withdrawal(id: &str, key: &SigningKey, now: Instant) -> Result<Publication, Failure> {
    let (publication_id, bytes) = signed(vec![("withdraw", json!(id))], key, now, id)?;
    Ok(Publication { publication_id, bytes, left_behind: false })
}

fn signed(asks: Vec<(&str, Value)>, key: &SigningKey, now: Instant, name: &str) -> Result<(String, Vec<u8>), Failure> {
    let publication_id = format!("urn:rialto:publication:{}", chance::uuid()?);
    let mut message = json!({
        "publication_id": publication_id,
        "publisher_did": key.did_key().as_str(),
        "issued_at": now.to_string(),
    });
    if let Some(members) = message.as_object_mut() {
        members.extend(asks.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    trust::sign(&mut message, key).map_err(|error| Failure::refused(format!("{name}: {error}")))?;
    Ok((publication_id, json::canonical_value(&message)))
}
