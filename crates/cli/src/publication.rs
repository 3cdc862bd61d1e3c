//! A record on its way to a node, in the words and with the signature of whoever stands for it.

use crate::chance;
use crate::failure::Failure;
use crate::files::Text;
use aql::Instant;
use json::{Node, Value, json};
use store::Kind;
use trust::SigningKey;

/// A message about a record, ready to be sent.
pub(crate) struct Publication {
    pub(crate) publication_id: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether there was something beside the record that is not sent.
    pub(crate) left_behind: bool,
}

/// Wraps a record and signs it; a publication that is signed already is sent as it is.
pub(crate) fn of_record(
    text: &Text,
    kind: Option<Kind>,
    key: &SigningKey,
    now: Instant,
) -> Result<Publication, Failure> {
    let document = text.document(&json::Limits::DOCUMENT)?;
    let root = document.root();
    if let (Some(name), Some(_)) = (root.get("publication_id").and_then(Node::as_str), root.get("signature")) {
        let bytes = text.bytes.clone();
        return Ok(Publication { publication_id: name.to_owned(), bytes, left_behind: false });
    }
    // The form of imports: a record with what others say of it beside.
    let record = root.get("record").filter(|record| record.is_object());
    let left_behind = record.is_some() && root.get("quality").is_some();
    let record = record.unwrap_or(root);
    let kind = kind.or_else(|| node::kind_of(record)).ok_or_else(|| {
        Failure::refused(format!("{} does not show what kind of record it is", text.name))
            .help("say it with --kind manifest, offer, knowledge, receipt or evidence")
    })?;
    let asks = [("kind", json!(kind.name())), ("record", record.to_value())];
    let (publication_id, bytes) = signed(asks, key, now, &text.name)?;
    Ok(Publication { publication_id, bytes, left_behind })
}

/// Says that a record is no longer stood for.
pub(crate) fn of_withdrawal(id: &str, key: &SigningKey, now: Instant) -> Result<Publication, Failure> {
    let (publication_id, bytes) = signed([("withdraw", json!(id))], key, now, id)?;
    Ok(Publication { publication_id, bytes, left_behind: false })
}

fn signed<const N: usize>(
    asks: [(&str, Value); N],
    key: &SigningKey,
    now: Instant,
    name: &str,
) -> Result<(String, Vec<u8>), Failure> {
    let publication_id = format!("urn:rialto:publication:{}", chance::uuid()?);
    let mut message = json!({
        "publication_id": publication_id,
        "publisher_did": key.did_key().as_str(),
        "issued_at": now.to_string(),
    });
    if let Some(members) = message.as_object_mut() {
        members.extend(asks.map(|(name, value)| (name.to_owned(), value)));
    }
    trust::sign(&mut message, key).map_err(|error| Failure::refused(format!("{name}: {error}")))?;
    Ok((publication_id, json::canonical_value(&message)))
}
