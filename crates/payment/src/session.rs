//! RFC 0020 B.1 and B.2: the payment session: what an agent asks of a wallet, and what the wallet grants.
//!
//! The request carries the intent's `payment_constraints`, unaltered, as `intent_payment_constraints`, and the
//! `intent_id` at its top level, also under the name `intent_ref` that RFC 0032 §3.4 gives it. The agent signs the request, the
//! wallet the session.

use crate::keyring::{Keyring, digest};
use crate::mandate::{Mandate, PRIMITIVES};
use crate::money;
use crate::plan::Planned;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use aql::{Money, PaymentConstraints};
use json::{Document, Instant, Node, Value, json};
use trust::{Did, Digest};

/// How long a session may be used.
pub const STANDARD_SECONDS: i64 = 60 * 60;
/// How long a parametric session may be used.
pub const PARAMETRIC_SECONDS: i64 = 168 * 60 * 60;

/// SHA-256 over intent, offer and agent: the same payment always has the same key.
pub fn idempotency_key(intent_id: &str, offer_ref: &str, agent: &Did) -> Digest {
    Digest::of([intent_id, offer_ref, agent.as_str()].concat().as_bytes())
}

/// What an agent asks for beyond what its plan says.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The instrument; the wallet chooses where none is named.
    pub instrument_id: Option<&'a str>,
    /// What the payment is for.
    pub commerce_primitive: &'a str,
    /// In words.
    pub purpose: &'a str,
}

/// The request for a planned session, without its signature.
pub fn request(intent: Node<'_>, planned: &Planned, mandate: &Mandate, wanted: &Wanted<'_>) -> Value {
    let intent_id = intent.get("intent_id").and_then(Node::as_str).unwrap_or_default();
    let key = idempotency_key(intent_id, &planned.offer_ref, &mandate.agent);
    let mut request = json!({
        "mandate_id": mandate.mandate_id,
        "agent_did": mandate.agent.as_str(),
        "intent_id": intent_id,
        "intent_ref": intent_id,
        "offer_ref": planned.offer_ref,
        "amount": money::value(&planned.amount),
        "counterparty_did": planned.counterparty.as_str(),
        "purpose": wanted.purpose,
        "commerce_primitive": wanted.commerce_primitive,
        "idempotency_key": key.to_string(),
    });
    if let Value::Object(members) = &mut request {
        if let Some(block) = intent.get("payment_constraints") {
            members.insert("intent_payment_constraints".to_owned(), block.to_value());
        }
        if let Some(instrument) = wanted.instrument_id {
            members.insert("instrument_id".to_owned(), json!(instrument));
        }
    }
    request
}

/// A session request that was read.
#[derive(Clone, Debug)]
pub struct Request {
    /// Under which mandate.
    pub mandate_id: String,
    /// Who asks.
    pub agent: Did,
    /// Which question it pays for, where it pays for one.
    pub intent_id: Option<String>,
    /// What it pays for.
    pub offer_ref: String,
    /// How much.
    pub amount: Money,
    /// By which instrument; the wallet chooses where none is named.
    pub instrument_id: Option<String>,
    /// Who is paid.
    pub counterparty: Did,
    /// Why, in words.
    pub purpose: String,
    /// What kind of trade it is.
    pub commerce_primitive: String,
    /// The name of this payment, whoever repeats it.
    pub idempotency_key: Digest,
    /// What the intent asks of its payments.
    pub constraints: PaymentConstraints,
    /// The digest of the whole request.
    pub digest: Digest,
}

const REQUEST: [&str; 13] = [
    "mandate_id",
    "agent_did",
    "intent_id",
    "intent_ref",
    "offer_ref",
    "amount",
    "instrument_id",
    "counterparty_did",
    "purpose",
    "commerce_primitive",
    "idempotency_key",
    "intent_payment_constraints",
    "signature",
];

impl Request {
    /// Reads a request and proves that its agent signed it.
    pub fn verified(document: &Document, keys: &Keyring) -> Result<Self, Refusal> {
        let request = Self::read(document)?;
        keys.check(document, &request.agent)?;
        Ok(request)
    }

    /// Reads a request that nobody has proved yet.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&REQUEST)?;
        root.signature()?;
        let intent_id = root.member("intent_id").map(|_| root.urn("intent_id", "urn:oap:intent:")).transpose()?;
        if let Some(reference) = root.member("intent_ref")
            && Some(reference.string()?) != intent_id.as_deref()
        {
            return reference
                .refuse(Code::LinkBroken, "`intent_ref` and `intent_id` name the same intent, or neither is there");
        }
        let block = root.member("intent_payment_constraints");
        if let (Some(block), None) = (&block, &intent_id) {
            return block.refuse(Code::LinkBroken, "constraints of an intent come with its `intent_id`");
        }
        let constraints = block.map(|block| PaymentConstraints::of(block.node, block.at)).transpose()?;
        let primitive = root.text("commerce_primitive")?;
        if !PRIMITIVES.contains(&primitive.as_str()) {
            return root.required("commerce_primitive")?.refuse(Code::InvalidValue, "this is no commerce primitive");
        }
        let request = Self {
            mandate_id: root.urn("mandate_id", "urn:oap:mandate:")?,
            agent: root.did("agent_did")?,
            offer_ref: root.text("offer_ref")?,
            amount: root.money("amount", "value")?,
            instrument_id: root.member("instrument_id").map(|_| root.text("instrument_id")).transpose()?,
            counterparty: root.did("counterparty_did")?,
            purpose: root.text("purpose")?,
            commerce_primitive: primitive,
            idempotency_key: root.digest("idempotency_key")?,
            constraints: constraints.unwrap_or_default(),
            digest: digest(document.root()),
            intent_id,
        };
        match &request.intent_id {
            Some(id) if request.idempotency_key != idempotency_key(id, &request.offer_ref, &request.agent) => {
                let detail = "the key is the SHA-256 of `intent_id`, `offer_ref` and `agent_did`, one after the other";
                Err(Refusal::new(Code::IdempotencyKeyInvalid, detail).at(&["idempotency_key"]))
            }
            _ => Ok(request),
        }
    }
}

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// It may be executed.
    Authorized,
    /// The principal has to say yes first.
    PendingPrincipalConfirmation,
    /// The principal said no.
    Rejected,
    /// The money has moved.
    Settled,
    /// The money could not be moved.
    Failed,
    /// Nobody used it in time.
    Expired,
}

impl SessionStatus {
    const ALL: [(&'static str, Self); 6] = [
        ("authorized", Self::Authorized),
        ("pending_principal_confirmation", Self::PendingPrincipalConfirmation),
        ("rejected", Self::Rejected),
        ("settled", Self::Settled),
        ("failed", Self::Failed),
        ("expired", Self::Expired),
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, status)| *status == self).map_or("", |(name, _)| name)
    }
}

/// A session as a wallet grants it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its name.
    pub session_id: String,
    /// How it stands.
    pub status: SessionStatus,
    /// Who holds the money.
    pub wallet: Did,
    /// Under which mandate.
    pub mandate_id: String,
    /// Which question it pays for, where it pays for one.
    pub intent_id: Option<String>,
    /// What it pays for.
    pub offer_ref: String,
    /// Who is paid.
    pub counterparty: Did,
    /// How much.
    pub amount: Money,
    /// By which instrument.
    pub instrument_id: String,
    /// When it was granted.
    pub created_at: Instant,
    /// Until when it may be used.
    pub expires_at: Instant,
    /// The digest of the request that it answers.
    pub request_hash: Digest,
}

const SESSION: [&str; 20] = [
    "session_id",
    "status",
    "kind",
    "wallet_did",
    "mandate_id",
    "agent_did",
    "intent_id",
    "offer_ref",
    "counterparty_did",
    "amount",
    "instrument_id",
    "commerce_primitive",
    "bank_account_verified",
    "idempotency_key",
    "request_hash",
    "created_at",
    "expires_at",
    "execute_endpoint",
    "confirm_endpoint",
    "signature",
];

impl Session {
    /// Reads a session and proves that the wallet it names signed it.
    pub fn verified(document: &Document, keys: &Keyring) -> Result<Self, Refusal> {
        let session = Self::read(document)?;
        keys.check(document, &session.wallet)?;
        Ok(session)
    }

    /// Reads a session that nobody has proved yet.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&SESSION)?;
        root.signature()?;
        root.word("kind", &[("standard", ()), ("parametric", ())])?;
        Ok(Self {
            session_id: root.urn("session_id", "urn:oap:session:")?,
            status: root.word("status", &SessionStatus::ALL)?,
            wallet: root.did("wallet_did")?,
            mandate_id: root.urn("mandate_id", "urn:oap:mandate:")?,
            intent_id: root.member("intent_id").map(|_| root.urn("intent_id", "urn:oap:intent:")).transpose()?,
            offer_ref: root.text("offer_ref")?,
            counterparty: root.did("counterparty_did")?,
            amount: root.money("amount", "value")?,
            instrument_id: root.text("instrument_id")?,
            created_at: root.instant("created_at")?,
            expires_at: root.instant("expires_at")?,
            request_hash: root.digest("request_hash")?,
        })
    }

    /// Whether this is the session that a request asked for.
    pub fn check_answers(&self, request: &Request, mandate: &Mandate) -> Result<(), Refusal> {
        let broken = |name: &str| {
            let detail = format!("`{name}` of the session is not that of its request");
            Err(Refusal::new(Code::LinkBroken, detail).at(&[name]))
        };
        match () {
            () if self.request_hash != request.digest => broken("request_hash"),
            () if self.wallet != mandate.wallet => broken("wallet_did"),
            () if self.mandate_id != request.mandate_id => broken("mandate_id"),
            () if self.intent_id != request.intent_id => broken("intent_id"),
            () if self.offer_ref != request.offer_ref => broken("offer_ref"),
            () if self.counterparty != request.counterparty => broken("counterparty_did"),
            () if self.amount != request.amount => broken("amount"),
            () if request.instrument_id.as_ref().is_some_and(|wanted| *wanted != self.instrument_id) => {
                broken("instrument_id")
            }
            () => Ok(()),
        }
    }
}

/// What a principal says about a session that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Which session.
    pub session_id: String,
    /// Who says it.
    pub principal: Did,
    /// Whether the session may go on.
    pub approved: bool,
}

/// A principal's word on a session, without its signature.
pub fn approval(session_id: &str, principal: &Did, approved: bool, now: Instant) -> Value {
    json!({
        "session_id": session_id,
        "principal_did": principal.as_str(),
        "decision": if approved { "approve" } else { "reject" },
        "timestamp": now.to_string(),
    })
}

impl Approval {
    /// Reads a principal's word and proves it.
    pub fn verified(document: &Document, keys: &Keyring) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&["session_id", "principal_did", "decision", "timestamp", "signature"])?;
        root.signature()?;
        root.instant("timestamp")?;
        let approval = Self {
            session_id: root.urn("session_id", "urn:oap:session:")?,
            principal: root.did("principal_did")?,
            approved: root.word("decision", &[("approve", true), ("reject", false)])?,
        };
        keys.check(document, &approval.principal)?;
        Ok(approval)
    }
}

/// An agent's word that a session is to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Which session.
    pub session_id: String,
    /// Who says it.
    pub agent: Did,
}

/// An agent's word that a session is to be executed, without its signature.
pub fn execution(session_id: &str, agent: &Did) -> Value {
    json!({"session_id": session_id, "agent_did": agent.as_str(), "action": "execute"})
}

impl Execution {
    /// Reads an agent's word and proves it.
    pub fn verified(document: &Document, keys: &Keyring) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&["session_id", "agent_did", "action", "signature"])?;
        root.signature()?;
        root.word("action", &[("execute", ())])?;
        let execution = Self { session_id: root.urn("session_id", "urn:oap:session:")?, agent: root.did("agent_did")? };
        keys.check(document, &execution.agent)?;
        Ok(execution)
    }
}
