//! RFC 0020 B.2: the settlement confirmation, which inherits the `intent_id` of its session (RFC 0032 §3.5).
//!
//! The wallet signs first, the agent adds its signature when the confirmation is the one that its session asks for.
//!
//! INVARIANT: only a confirmation with both signatures is one.

use crate::keyring::{Keyring, sign_listed};
use crate::money;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use crate::session::Session;
use aql::Money;
use json::{Document, Instant, Node, Value, json};
use trust::{Did, SigningKey};

/// How a settlement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The money has moved.
    Settled,
    /// It has not.
    Failed,
    /// It is on its way.
    PendingFinality,
}

impl Status {
    const ALL: [(&'static str, Self); 3] =
        [("settled", Self::Settled), ("failed", Self::Failed), ("pending_finality", Self::PendingFinality)];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, status)| *status == self).map_or("", |(name, _)| name)
    }
}

/// Why a settlement failed, in the published words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is not enough money.
    InsufficientFunds,
    /// The rail could not do it.
    ExecutionFailed,
}

impl Error {
    fn word(self) -> &'static str {
        match self {
            Self::InsufficientFunds => "insufficient_funds",
            Self::ExecutionFailed => "instrument_execution_failed",
        }
    }
}

/// What a wallet says about a settlement.
#[derive(Clone, Debug)]
pub struct Settlement<'a> {
    /// A name that was never used, without its prefix.
    pub id: &'a str,
    /// A UUID of the transaction, for the rails that want one.
    pub uetr: &'a str,
    /// When it happened.
    pub at: Instant,
    /// The rail of the instrument.
    pub rail: &'a str,
    /// Why it failed, where it did.
    pub error: Option<Error>,
}

impl Settlement<'_> {
    /// The confirmation for a session, without signatures.
    pub fn confirmation(&self, session: &Session) -> Value {
        let status = if self.error.is_some() { Status::Failed } else { Status::Settled };
        let mut body = json!({
            "confirmation_id": format!("urn:oap:settlement:{}", self.id),
            "session_id": session.session_id,
            "mandate_id": session.mandate_id,
            "status": status.name(),
            "instrument_id": session.instrument_id,
            "rail": self.rail,
            "settlement_reference": self.id,
            "settled_amount": money::value(&session.amount),
            "settlement_timestamp": self.at.to_string(),
            "finality": finality(self.rail),
        });
        if let Value::Object(members) = &mut body {
            if let Some(intent_id) = &session.intent_id {
                members.insert("intent_id".to_owned(), json!(intent_id));
            }
            if self.rail.starts_with("sepa_") || self.rail.starts_with("swift_") {
                members.insert("iso20022_uetr".to_owned(), json!(self.uetr));
            }
            if let Some(error) = self.error {
                let detail = json!({"code": error.word(), "detail": "the instrument did not move the money"});
                members.insert("error".to_owned(), detail);
            }
        }
        body
    }
}

fn finality(rail: &str) -> &'static str {
    match rail {
        "sepa_instant" => "irrevocable_on_confirmation",
        "sepa_credit_transfer" => "irrevocable_d1",
        "lightning_network" => "irrevocable_on_preimage",
        "evm_stablecoin" => "irrevocable_on_finalized_block",
        _ => "pending",
    }
}

/// A confirmation that was read.
#[derive(Clone, Debug)]
pub struct Confirmation {
    /// Its name.
    pub confirmation_id: String,
    /// Of which session.
    pub session_id: String,
    /// Which question was paid for, where one was.
    pub intent_id: Option<String>,
    /// Under which mandate, where it says so.
    pub mandate_id: Option<String>,
    /// How it ended.
    pub status: Status,
    /// By which instrument.
    pub instrument_id: String,
    /// How much.
    pub amount: Money,
    /// When.
    pub at: Instant,
    /// The published word for what went wrong, where something did.
    pub error: Option<String>,
}

const MEMBERS: [&str; 16] = [
    "confirmation_id",
    "session_id",
    "mandate_id",
    "intent_id",
    "status",
    "instrument_id",
    "rail",
    "settlement_reference",
    "settled_amount",
    "settlement_timestamp",
    "finality",
    "iso20022_uetr",
    "fx",
    "instrument_details",
    "error",
    "signatures",
];

impl Confirmation {
    /// Reads a confirmation and proves that wallet and agent both signed it.
    pub fn verified(document: &Document, wallet: &Did, agent: &Did, keys: &Keyring) -> Result<Self, Refusal> {
        let confirmation = Self::by_wallet(document, wallet, keys)?;
        keys.check_listed(document, agent)?;
        Ok(confirmation)
    }

    /// Reads a confirmation and proves that the wallet signed it; the agent has yet to.
    pub fn by_wallet(document: &Document, wallet: &Did, keys: &Keyring) -> Result<Self, Refusal> {
        let confirmation = Self::read(document)?;
        keys.check_listed(document, wallet)?;
        Ok(confirmation)
    }

    /// Reads a confirmation that nobody has proved yet.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&MEMBERS)?;
        root.signatures()?;
        for name in ["settlement_reference", "finality"] {
            root.text(name)?;
        }
        Ok(Self {
            confirmation_id: root.urn("confirmation_id", "urn:oap:settlement:")?,
            session_id: root.urn("session_id", "urn:oap:session:")?,
            intent_id: root.member("intent_id").map(|_| root.urn("intent_id", "urn:oap:intent:")).transpose()?,
            mandate_id: root.member("mandate_id").map(|_| root.urn("mandate_id", "urn:oap:mandate:")).transpose()?,
            status: root.word("status", &Status::ALL)?,
            instrument_id: root.text("instrument_id")?,
            amount: root.money("settled_amount", "value")?,
            at: root.instant("settlement_timestamp")?,
            error: root.member("error").map(|error| error.text("code")).transpose()?,
        })
    }

    /// Whether this settles that session; `intent_id` is required once the session has one.
    pub fn check_settles(&self, session: &Session) -> Result<(), Refusal> {
        let broken = |name: &str| {
            let detail = format!("`{name}` of the confirmation is not that of its session");
            Err(Refusal::new(Code::LinkBroken, detail).at(&[name]))
        };
        match () {
            () if self.session_id != session.session_id => broken("session_id"),
            () if self.intent_id != session.intent_id => broken("intent_id"),
            () if self.mandate_id.as_ref().is_some_and(|id| *id != session.mandate_id) => broken("mandate_id"),
            () if self.instrument_id != session.instrument_id => broken("instrument_id"),
            () if self.amount != session.amount => broken("settled_amount"),
            () => Ok(()),
        }
    }
}

/// The agent's signature under a confirmation that settles its session.
pub fn countersign(
    document: &Document,
    session: &Session,
    keys: &Keyring,
    key: &SigningKey,
) -> Result<Document, Refusal> {
    Confirmation::by_wallet(document, &session.wallet, keys)?.check_settles(session)?;
    let mut body = document.root().to_value();
    let own = key.did_key();
    let signed = |entry: Node<'_>| {
        entry.get("by").and_then(Node::as_str).is_some_and(|by| by.split('#').next() == Some(own.as_str()))
    };
    let mut entries = document.root().get("signatures").into_iter().flat_map(Node::elements);
    if !entries.any(signed) {
        sign_listed(&mut body, key);
    }
    Ok(Document::of(&body)?)
}
