//! RFC 0020 B.2: the receipt of a settlement: its `action_id` is the intent's id, and each names the one before it.
//!
//! Receipts are chained for each principal. `input_hash` is the digest of the session, `output_hash` that of the
//! confirmation, so that a receipt proves both.

use crate::chain::GENESIS;
use crate::confirmation::Confirmation;
use crate::keyring::{Keyring, digest};
use crate::mandate::Mandate;
use crate::money::written;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use json::{Document, Instant, Node, Value, json};
use trust::{Did, Digest};

/// The receipt for a settled session, without its signature; `previous` is the digest of the principal's last receipt.
pub fn receipt(
    id: &str,
    now: Instant,
    mandate: &Mandate,
    session: Node<'_>,
    confirmation: &Document,
    previous: Option<Digest>,
) -> Result<Value, Refusal> {
    let settled = Confirmation::read(confirmation)?;
    let mut body = json!({
        "receipt_id": format!("urn:oap:receipt:{id}"),
        "type": "settlement",
        "timestamp": now.to_string(),
        "principal_did": mandate.principal.as_str(),
        "agent_did": mandate.agent.as_str(),
        "tool_did": mandate.wallet.as_str(),
        "input_hash": digest(session).to_string(),
        "output_hash": digest(confirmation.root()).to_string(),
        "previous_receipt_hash": previous.map_or_else(|| GENESIS.to_owned(), |digest| digest.to_string()),
    });
    if let Value::Object(members) = &mut body {
        if let Some(intent_id) = &settled.intent_id {
            members.insert("action_id".to_owned(), json!(intent_id));
        }
        // The published receipt has room for three letters only.
        if settled.amount.currency.len() == 3 {
            let cost = json!({"amount": written(settled.amount.amount), "currency": settled.amount.currency});
            members.insert("cost".to_owned(), cost);
        }
    }
    Ok(body)
}

/// A receipt that was read.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Its name.
    pub receipt_id: String,
    /// When it was made.
    pub at: Instant,
    /// Whose money it was.
    pub principal: Did,
    /// Who paid.
    pub agent: Did,
    /// Which question was paid for, where one was.
    pub action_id: Option<String>,
    /// The digest of the session.
    pub input_hash: Digest,
    /// The digest of the confirmation.
    pub output_hash: Digest,
    /// The digest of the receipt before, if there is one.
    pub previous: Option<Digest>,
}

const MEMBERS: [&str; 12] = [
    "receipt_id",
    "type",
    "timestamp",
    "principal_did",
    "agent_did",
    "tool_did",
    "action_id",
    "input_hash",
    "output_hash",
    "cost",
    "previous_receipt_hash",
    "signatures",
];

impl Receipt {
    /// Reads a receipt of a settlement and proves that its agent signed it.
    pub fn verified(document: &Document, keys: &Keyring) -> Result<Self, Refusal> {
        let receipt = Self::read(document)?;
        keys.check_listed(document, &receipt.agent)?;
        Ok(receipt)
    }

    /// Reads a receipt of a settlement that nobody has proved yet.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&MEMBERS)?;
        root.signatures()?;
        root.word("type", &[("settlement", ())])?;
        let previous = root.required("previous_receipt_hash")?;
        Ok(Self {
            receipt_id: root.urn("receipt_id", "urn:oap:receipt:")?,
            at: root.instant("timestamp")?,
            principal: root.did("principal_did")?,
            agent: root.did("agent_did")?,
            action_id: root.member("action_id").map(|_| root.text("action_id")).transpose()?,
            input_hash: root.digest("input_hash")?,
            output_hash: root.digest("output_hash")?,
            previous: match previous.string()? {
                GENESIS => None,
                _ => Some(root.digest("previous_receipt_hash")?),
            },
        })
    }

    /// Whether this is the receipt of that session and confirmation.
    pub fn check_proves(&self, session: Node<'_>, confirmation: Node<'_>) -> Result<(), Refusal> {
        let broken = |name: &str, of: &str| {
            let detail = format!("`{name}` of the receipt is not that of its {of}");
            Err(Refusal::new(Code::LinkBroken, detail).at(&[name]))
        };
        let intent_id = confirmation.get("intent_id").and_then(Node::as_str);
        match () {
            () if self.input_hash != digest(session) => broken("input_hash", "session"),
            () if self.output_hash != digest(confirmation) => broken("output_hash", "confirmation"),
            () if self.action_id.as_deref() != intent_id => broken("action_id", "confirmation"),
            () => Ok(()),
        }
    }
}
