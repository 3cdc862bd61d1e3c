//! RFC 0020 B.2: the wallet's book: mandates, sessions and settlements, as a log whose lines are chained.
//!
//! A line is prepared, written and then accepted, as in the agent's ledger. The `intent_id` of a request stands in its
//! session and, from there, in the confirmation.
//!
//! INVARIANT: a session is executed once; whoever asks again gets the same confirmation.

use super::{Grant, Holdings, Spent, decide};
use crate::chain::{Flaw, Tip, document, lines};
use crate::confirmation::{Confirmation, Error, Settlement, Status};
use crate::keyring::digest;
use crate::mandate::Mandate;
use crate::money::{self, sum};
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use crate::session::{Approval, Request, Session, SessionStatus};
use aql::Amount;
use json::{Document, Instant, Map, Node, Value, json};
use std::collections::{BTreeMap, HashMap};
use trust::{Did, Digest};

/// Mandates that a wallet keeps.
pub const MANDATES_MAX: usize = 10_000;
/// Sessions of one mandate that may be open at a time.
pub const SESSIONS_OPEN_MAX: usize = 100;

/// Everything a wallet has promised.
#[derive(Clone, Debug)]
pub struct Book {
    wallet: Did,
    holdings: Holdings,
    tip: Tip,
    mandates: BTreeMap<String, (Mandate, Digest)>,
    sessions: BTreeMap<String, Held>,
    /// The latest session of each payment.
    keys: HashMap<(String, Digest), String>,
}

#[derive(Clone, Debug)]
struct Held {
    session: Session,
    document: Document,
    request: Digest,
    agent: Did,
    status: SessionStatus,
    confirmation: Option<Document>,
}

/// What comes of a request for a session.
#[derive(Debug)]
pub enum Granting<'a> {
    /// It was granted before; this is the session.
    Known(&'a Document),
    /// A session to be signed and written down.
    New(Value),
}

/// What comes of an execution.
#[derive(Debug)]
pub enum Executing<'a> {
    /// It was executed before; this is the confirmation.
    Known(&'a Document),
    /// A confirmation to be signed and written down.
    New(Value),
}

impl Book {
    /// An empty book.
    pub fn new(wallet: Did, holdings: Holdings) -> Self {
        let (tip, mandates, sessions, keys) = (Tip::default(), BTreeMap::new(), BTreeMap::new(), HashMap::new());
        Self { wallet, holdings, tip, mandates, sessions, keys }
    }

    /// Reads a log from its beginning.
    pub fn replay(wallet: Did, holdings: Holdings, log: &[u8]) -> (Self, Vec<Flaw>) {
        let mut book = Self::new(wallet, holdings);
        let flaws = lines(log).filter_map(|line| book.accept(line)).collect();
        (book, flaws)
    }

    /// Where the log ends.
    pub fn tip(&self) -> &Tip {
        &self.tip
    }

    /// Who may confirm a session: the principal of its mandate.
    pub fn principal(&self, session_id: &str) -> Option<&Did> {
        let held = self.sessions.get(session_id)?;
        self.mandates.get(&held.session.mandate_id).map(|(mandate, _)| &mandate.principal)
    }

    /// How many mandates and sessions there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.mandates.len(), self.sessions.len())
    }

    /// A mandate whose principal was proved; nothing when it is known.
    pub fn mandate(&self, mandate: &Document, now: Instant) -> Result<Option<Vec<u8>>, Refusal> {
        let read = Mandate::read(mandate)?;
        if read.wallet != self.wallet {
            return Err(Refusal::new(Code::LinkBroken, "the mandate is for another wallet").at(&["wallet_did"]));
        }
        read.check_window(now)?;
        match self.mandates.get(&read.mandate_id) {
            Some((_, known)) if *known == digest(mandate.root()) => Ok(None),
            Some(_) => Err(Refusal::new(Code::PaymentConflict, "another mandate has this name").at(&["mandate_id"])),
            None if self.mandates.len() >= MANDATES_MAX => {
                Err(Refusal::new(Code::WalletFull, "the wallet keeps no more mandates"))
            }
            None => Ok(Some(self.line(now, "mandate", [("mandate", mandate.root().to_value())]))),
        }
    }

    /// A session for a request whose agent was proved; `id` is a name that was never used.
    pub fn session(&self, request: &Request, id: &str, base: &str, now: Instant) -> Result<Granting<'_>, Refusal> {
        let (mandate, _) = self.mandates.get(&request.mandate_id).ok_or_else(|| {
            Refusal::new(Code::MandateUnknown, "the wallet does not know this mandate").at(&["mandate_id"])
        })?;
        let known = self.keys.get(&(request.mandate_id.clone(), request.idempotency_key));
        if let Some(held) = known.and_then(|id| self.sessions.get(id)) {
            match held.status_at(now) {
                SessionStatus::Expired => {}
                SessionStatus::Rejected => {
                    return Err(Refusal::new(Code::SessionClosed, "the principal refused this payment"));
                }
                _ if held.request == request.digest => return Ok(Granting::Known(&held.document)),
                _ => {
                    let detail = "the key was used for another request";
                    return Err(Refusal::new(Code::PaymentConflict, detail).at(&["idempotency_key"]));
                }
            }
        }
        let open = self.of(&request.mandate_id).filter(|held| held.is_open(now)).count();
        if open >= SESSIONS_OPEN_MAX {
            return Err(Refusal::new(Code::WalletFull, format!("{open} sessions of this mandate are open")));
        }
        let grant = decide(request, mandate, &self.holdings, self.spent(&request.mandate_id, now), now)?;
        Ok(Granting::New(self.granted(request, &grant, id, base, now)))
    }

    fn granted(&self, request: &Request, grant: &Grant<'_>, id: &str, base: &str, now: Instant) -> Value {
        let session_id = format!("urn:oap:session:{id}");
        let at = format!("{base}/oap/payment/sessions/{session_id}");
        let mut body = json!({
            "session_id": session_id,
            "status": grant.status.name(),
            "kind": if grant.parametric { "parametric" } else { "standard" },
            "wallet_did": self.wallet.as_str(),
            "mandate_id": request.mandate_id,
            "agent_did": request.agent.as_str(),
            "offer_ref": request.offer_ref,
            "counterparty_did": request.counterparty.as_str(),
            "amount": money::value(&request.amount),
            "instrument_id": grant.instrument.id,
            "commerce_primitive": request.commerce_primitive,
            "bank_account_verified": grant.bank_account_verified,
            "idempotency_key": request.idempotency_key.to_string(),
            "request_hash": request.digest.to_string(),
            "created_at": now.to_string(),
            "expires_at": grant.expires_at.to_string(),
            "execute_endpoint": format!("{at}/execute"),
            "confirm_endpoint": format!("{at}/confirm"),
        });
        if let (Value::Object(members), Some(intent_id)) = (&mut body, &request.intent_id) {
            members.insert("intent_id".to_owned(), json!(intent_id));
        }
        body
    }

    /// The line for a session that was signed.
    pub fn grant(&self, session: &Document, now: Instant) -> Vec<u8> {
        self.line(now, "session", [("session", session.root().to_value())])
    }

    /// How a session stands, to be signed anew.
    pub fn state(&self, session_id: &str, now: Instant) -> Result<Value, Refusal> {
        let held = self.held(session_id)?;
        let mut body = held.document.root().to_value();
        if let Value::Object(members) = &mut body {
            members.remove("signature");
            members.insert("status".to_owned(), json!(held.status_at(now).name()));
        }
        Ok(body)
    }

    /// The principal's word on a session that waits; nothing when it was said before.
    pub fn confirm(&self, approval: &Approval, word: &Document, now: Instant) -> Result<Option<Vec<u8>>, Refusal> {
        let held = self.held(&approval.session_id)?;
        if self.principal(&approval.session_id) != Some(&approval.principal) {
            let detail = "only the principal of the mandate confirms its sessions";
            return Err(Refusal::new(Code::LinkBroken, detail).at(&["principal_did"]));
        }
        match (held.status_at(now), approval.approved) {
            (SessionStatus::PendingPrincipalConfirmation, _) => {
                Ok(Some(self.line(now, "approval", [("approval", word.root().to_value())])))
            }
            (SessionStatus::Authorized | SessionStatus::Settled | SessionStatus::Failed, true)
            | (SessionStatus::Rejected, false) => Ok(None),
            (SessionStatus::Expired, _) => Err(expired()),
            (status, _) => Err(Refusal::new(Code::SessionClosed, format!("the session is {} already", status.name()))),
        }
    }

    /// Moves the money of a session; `id` and `uetr` are names that were never used.
    pub fn execute(
        &self,
        session_id: &str,
        agent: &Did,
        id: &str,
        uetr: &str,
        now: Instant,
    ) -> Result<Executing<'_>, Refusal> {
        let held = self.held(session_id)?;
        if held.agent != *agent {
            return Err(Refusal::new(Code::LinkBroken, "another agent asked for this session").at(&["agent_did"]));
        }
        if let Some(confirmation) = &held.confirmation {
            return Ok(Executing::Known(confirmation));
        }
        match held.status_at(now) {
            SessionStatus::Authorized => {}
            SessionStatus::Expired => return Err(expired()),
            SessionStatus::PendingPrincipalConfirmation => {
                let detail = "the principal has to confirm this session first";
                return Err(Refusal::new(Code::ConfirmationRequired, detail));
            }
            SessionStatus::Rejected | SessionStatus::Settled | SessionStatus::Failed => {
                return Err(Refusal::new(Code::SessionClosed, "the principal refused this payment"));
            }
        }
        let instrument = self.holdings.instruments.iter().find(|one| one.id == held.session.instrument_id);
        let error = match instrument {
            Some(one) if one.failing => Some(Error::ExecutionFailed),
            Some(one) if one.balance.is_some_and(|balance| !self.covers(&one.id, balance, held)) => {
                Some(Error::InsufficientFunds)
            }
            Some(_) => None,
            None => Some(Error::ExecutionFailed),
        };
        let rail = instrument.map_or("card_network", |one| one.rail.as_str());
        let settlement = Settlement { id, uetr, at: now, rail, error };
        Ok(Executing::New(settlement.confirmation(&held.session)))
    }

    /// Whether what is on an instrument is enough for one more session.
    fn covers(&self, instrument: &str, balance: Amount, next: &Held) -> bool {
        let settled = self.sessions.values().filter(|held| held.status == SessionStatus::Settled);
        let spent = settled
            .filter(|held| held.session.instrument_id == instrument)
            .try_fold(Amount::ZERO, |all, held| sum(all, held.session.amount.amount));
        spent.and_then(|spent| sum(spent, next.session.amount.amount)).is_some_and(|all| all <= balance)
    }

    /// The line for a confirmation that the wallet signed, or that both did.
    pub fn settle(&self, confirmation: &Document, now: Instant) -> Result<Vec<u8>, Refusal> {
        let read = Confirmation::read(confirmation)?;
        let held = self.held(&read.session_id)?;
        read.check_settles(&held.session)?;
        if let Some(known) = &held.confirmation
            && unsigned(known) != unsigned(confirmation)
        {
            return Err(Refusal::new(Code::PaymentConflict, "the session has another confirmation"));
        }
        Ok(self.line(now, "settle", [("confirmation", confirmation.root().to_value())]))
    }

    /// The confirmation of a session.
    pub fn confirmation(&self, session_id: &str) -> Result<&Document, Refusal> {
        let confirmation = self.held(session_id)?.confirmation.as_ref();
        confirmation.ok_or_else(|| Refusal::new(Code::SessionUnknown, "the session was not executed yet"))
    }

    fn held(&self, session_id: &str) -> Result<&Held, Refusal> {
        let unknown = || Refusal::new(Code::SessionUnknown, "the wallet has no such session");
        self.sessions.get(session_id).ok_or_else(unknown)
    }

    fn of<'a>(&'a self, mandate_id: &'a str) -> impl Iterator<Item = &'a Held> {
        self.sessions.values().filter(move |held| held.session.mandate_id == mandate_id)
    }

    /// What the sessions of a mandate have taken or may still take, by the day on which they were granted.
    fn spent(&self, mandate_id: &str, now: Instant) -> Spent {
        let today = now.to_string();
        let same =
            |held: &Held, length: usize| held.session.created_at.to_string().get(..length) == today.get(..length);
        let total = |length: usize| {
            let counted = self.of(mandate_id).filter(|held| held.status == SessionStatus::Settled || held.is_open(now));
            let amounts = counted.filter(|held| same(held, length)).map(|held| held.session.amount.amount.units());
            Amount::from_units(amounts.fold(0, u128::saturating_add))
        };
        Spent { day: total("2026-01-01".len()), month: total("2026-01".len()) }
    }

    fn line<const N: usize>(&self, now: Instant, step: &str, members: [(&str, Value); N]) -> Vec<u8> {
        let members: Map = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.tip.line(now, step, members)
    }

    /// Takes over a line that was written; says what is wrong with it.
    pub fn accept(&mut self, line: &[u8]) -> Option<Flaw> {
        let (tip, entry, flaw) = self.tip.follow(line);
        self.tip = tip;
        let number = self.tip.number();
        let applied = entry.map_or(Ok(()), |entry| self.apply(&entry));
        flaw.or_else(|| applied.err().map(|refusal| Flaw::Impossible(number, refusal.detail)))
    }

    fn apply(&mut self, entry: &Document) -> Result<(), Refusal> {
        match entry.root().get("step").and_then(Node::as_str).unwrap_or_default() {
            "mandate" => {
                let mandate = document(entry, "mandate")?;
                let read = Mandate::read(&mandate)?;
                self.mandates.insert(read.mandate_id.clone(), (read, digest(mandate.root())));
            }
            "session" => self.apply_session(document(entry, "session")?)?,
            "approval" => {
                let word = document(entry, "approval")?;
                let root = At::root(word.root());
                let approved = root.word("decision", &[("approve", true), ("reject", false)])?;
                let status = if approved { SessionStatus::Authorized } else { SessionStatus::Rejected };
                self.known(&root.text("session_id")?)?.status = status;
            }
            "settle" => {
                let confirmation = document(entry, "confirmation")?;
                let read = Confirmation::read(&confirmation)?;
                let held = self.known(&read.session_id)?;
                held.status = match read.status {
                    Status::Settled => SessionStatus::Settled,
                    Status::Failed | Status::PendingFinality => SessionStatus::Failed,
                };
                held.confirmation = Some(confirmation);
            }
            _ => return Err(Refusal::new(Code::InvalidValue, "there is no such step").at(&["step"])),
        }
        Ok(())
    }

    fn apply_session(&mut self, document: Document) -> Result<(), Refusal> {
        let session = Session::read(&document)?;
        let root = At::root(document.root());
        let (agent, key) = (root.did("agent_did")?, root.digest("idempotency_key")?);
        let (request, status) = (session.request_hash, session.status);
        self.keys.insert((session.mandate_id.clone(), key), session.session_id.clone());
        let id = session.session_id.clone();
        let held = Held { session, document, request, agent, status, confirmation: None };
        self.sessions.insert(id, held);
        Ok(())
    }

    fn known(&mut self, session_id: &str) -> Result<&mut Held, Refusal> {
        let unknown = || Refusal::new(Code::SessionUnknown, "the wallet has no such session");
        self.sessions.get_mut(session_id).ok_or_else(unknown)
    }
}

impl Held {
    fn status_at(&self, now: Instant) -> SessionStatus {
        match self.status {
            SessionStatus::Authorized | SessionStatus::PendingPrincipalConfirmation
                if now > self.session.expires_at =>
            {
                SessionStatus::Expired
            }
            status => status,
        }
    }

    fn is_open(&self, now: Instant) -> bool {
        matches!(self.status_at(now), SessionStatus::Authorized | SessionStatus::PendingPrincipalConfirmation)
    }
}

fn expired() -> Refusal {
    Refusal::new(Code::SessionExpired, "the session was not used in time; ask for a new one")
}

/// A document without its list of signatures.
fn unsigned(document: &Document) -> Vec<u8> {
    json::canonical_without(document.root(), "signatures")
}
