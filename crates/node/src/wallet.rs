//! RFC 0020 Appendix B: the wallet role, for development and tests: mandates, sessions and settlements without a bank
//! behind them.
//!
//! What is granted and settled is decided in `payment::wallet`; here it is proved who asks, signed by the node's key and
//! written down before it is told.

use crate::chance;
use crate::clock::Clock;
use crate::log::Log;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use json::{Document, Limits, json};
use payment::wallet::{Book, Executing, Granting, Holdings};
use payment::{Approval, Code, Confirmation, Execution, Keyring, Mandate, Request, Session};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trust::Did;

/// The log in the data folder.
const BOOK: &str = "wallet.ndjson";

/// A wallet in the hands of a node.
#[derive(Debug)]
pub struct Wallet {
    node: Arc<Node>,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    book: Book,
    log: Log,
}

impl Wallet {
    /// Opens the wallet of a node on its data folder; a book that somebody changed is refused.
    pub fn open(node: Arc<Node>, data: &Path, holdings: Holdings) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::fault(format!("the wallet's book cannot be used: {error}"));
        let mut log = Log::open(data, BOOK).map_err(failed)?;
        let lines = log.unread().map_err(failed)?;
        let (book, flaws) = Book::replay(node.identity().did().clone(), holdings, &lines);
        if let Some(flaw) = flaws.first() {
            return Err(Error::fault(format!("the wallet's book is not sound: {}", flaw.describe())));
        }
        if !log.ends_at_its_head().map_err(failed)? {
            return Err(Error::fault("the wallet's book is not sound: it does not end where it ended last"));
        }
        Ok(Self { node, kept: Mutex::new(Kept { book, log }) })
    }

    /// How many mandates and sessions there are.
    pub fn counts(&self) -> (usize, usize) {
        self.kept().book.counts()
    }

    /// Takes in a mandate that its principal signed.
    pub async fn mandate(self: Arc<Self>, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let document = Document::parse(&bytes, &Limits::INTENT)?;
        let mandate = Mandate::read(&document)?;
        Mandate::verified(&document, &self.keys_of(&mandate.principal).await?)?;
        let this = Arc::clone(&self);
        self.node
            .off_thread(move || {
                let mut kept = this.kept();
                let now = this.node.clock.now();
                if let Some(line) = kept.book.mandate(&document, now)? {
                    kept.write(&line)?;
                }
                let told = json!({
                    "type": "oap.payment.mandate.ack",
                    "mandate_id": mandate.mandate_id,
                    "wallet_did": this.node.identity.did().as_str(),
                });
                Ok(this.node.identity.sign(told))
            })
            .await
    }

    /// Grants a session that an agent asks for, or says why not.
    pub async fn session(self: Arc<Self>, bytes: Vec<u8>, base: String) -> Result<Vec<u8>, Error> {
        let document = Document::parse(&bytes, &Limits::INTENT)?;
        let read = Request::read(&document)?;
        let request = Request::verified(&document, &self.keys_of(&read.agent).await?)?;
        let this = Arc::clone(&self);
        self.node
            .off_thread(move || {
                let mut kept = this.kept();
                let (now, name) = (this.node.clock.now(), chance::name()?);
                let body = match kept.book.session(&request, &name, &base, now)? {
                    Granting::Known(session) => return Ok(json::canonical(session.root())),
                    Granting::New(body) => body,
                };
                let signed = this.node.identity.sign(body);
                let line = kept.book.grant(&Document::parse(&signed, &Limits::OURS)?, now);
                kept.write(&line)?;
                Ok(signed)
            })
            .await
    }

    /// How a session stands.
    pub fn state(&self, session_id: &str) -> Result<Vec<u8>, Error> {
        let body = self.kept().book.state(session_id, self.node.clock.now())?;
        Ok(self.node.identity.sign(body))
    }

    /// Hears the principal's word on a session that waits for it.
    pub async fn confirm(self: Arc<Self>, session_id: String, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let document = Document::parse(&bytes, &Limits::INTENT)?;
        let principal = named(document.root(), "principal_did")?;
        let approval = Approval::verified(&document, &self.keys_of(&principal).await?)?;
        same(&approval.session_id, &session_id)?;
        let this = Arc::clone(&self);
        self.node
            .off_thread(move || {
                let mut kept = this.kept();
                if let Some(line) = kept.book.confirm(&approval, &document, this.node.clock.now())? {
                    kept.write(&line)?;
                }
                drop(kept);
                this.state(&session_id)
            })
            .await
    }

    /// Moves the money of a session; the confirmation has the wallet's signature and waits for the agent's.
    pub async fn execute(self: Arc<Self>, session_id: String, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let document = Document::parse(&bytes, &Limits::INTENT)?;
        let agent = named(document.root(), "agent_did")?;
        let execution = Execution::verified(&document, &self.keys_of(&agent).await?)?;
        same(&execution.session_id, &session_id)?;
        let this = Arc::clone(&self);
        self.node
            .off_thread(move || {
                let mut kept = this.kept();
                let now = this.node.clock.now();
                let (name, uetr) = (chance::name()?, uuid()?);
                let body = match kept.book.execute(&session_id, &execution.agent, &name, &uetr, now)? {
                    Executing::Known(confirmation) => return Ok(json::canonical(confirmation.root())),
                    Executing::New(body) => body,
                };
                let signed = this.node.identity.sign_receipt(body);
                let line = kept.book.settle(&Document::of(&signed)?, now)?;
                kept.write(&line)?;
                Ok(json::canonical_value(&signed))
            })
            .await
    }

    /// Keeps the confirmation that the agent signed, too.
    pub async fn countersigned(self: Arc<Self>, session_id: String, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let document = Document::parse(&bytes, &Limits::INTENT)?;
        let read = Confirmation::read(&document)?;
        same(&read.session_id, &session_id)?;
        let state = Document::parse(&self.state(&session_id)?, &Limits::OURS)?;
        let (session, agent) = (Session::read(&state)?, named(state.root(), "agent_did")?);
        let own = Document::of(&self.node.identity.document())?;
        let own = trust::DidDocument::read(own.root(), self.node.identity.did())?;
        let keys = self.keys_of(&agent).await?.with(own);
        Confirmation::verified(&document, &session.wallet, &agent, &keys)?;
        let this = Arc::clone(&self);
        self.node
            .off_thread(move || {
                let mut kept = this.kept();
                let known = json::canonical(kept.book.confirmation(&session_id)?.root());
                if known != json::canonical(document.root()) {
                    let line = kept.book.settle(&document, this.node.clock.now())?;
                    kept.write(&line)?;
                }
                drop(kept);
                this.state(&session_id)
            })
            .await
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A line is accepted after it was written, so a job that broke off left nothing half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keys_of(&self, did: &Did) -> Result<Keyring, Error> {
        if did.key().is_some() {
            return Ok(Keyring::default());
        }
        let document = self.node.dids.resolve(did, Clock::monotonic()).await.map_err(|error| {
            Refusal::new(Class::AuthRequired, error.code(), "the keys of the signer cannot be found")
        })?;
        Ok(Keyring::default().with(document.as_ref().clone()))
    }
}

impl Kept {
    /// Writes a line down before it counts.
    fn write(&mut self, line: &[u8]) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::fault(format!("the wallet's book cannot be written: {error}"));
        self.log.hold().and_then(|mut held| held.append(line)).map_err(failed)?;
        match self.book.accept(line) {
            None => Ok(()),
            Some(flaw) => Err(Error::fault(format!("the wallet's book: {}", flaw.describe()))),
        }
    }
}

fn named(root: json::Node<'_>, member: &str) -> Result<Did, Error> {
    let text = root.get(member).and_then(json::Node::as_str).unwrap_or_default();
    let at = json::Pointer::root().child(member);
    Did::parse(text).map_err(|error| Refusal::new(Class::InvalidInput, error.code(), error.to_string()).at(at).into())
}

fn same(said: &str, addressed: &str) -> Result<(), Error> {
    match said == addressed {
        true => Ok(()),
        false => {
            Err(payment::Refusal::new(Code::LinkBroken, "the address names another session").at(&["session_id"]).into())
        }
    }
}

/// A random UUID (RFC 9562, version 4).
fn uuid() -> Result<String, Error> {
    let bits = u128::from_be_bytes(chance::bytes()?) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let mut text = format!("{bits:032x}");
    for position in [20, 16, 12, 8] {
        text.insert(position, '-');
    }
    Ok(text)
}

impl From<payment::Refusal> for Error {
    fn from(refusal: payment::Refusal) -> Self {
        Refusal::new(class(refusal.code), refusal.code.name(), refusal.detail).at(refusal.at).into()
    }
}

fn class(code: Code) -> Class {
    match code {
        Code::Below(code) if code.starts_with("signature_") || code.starts_with("key_") || code.starts_with("kid_") => {
            Class::AuthRequired
        }
        Code::Below("json_too_large") => Class::TooLarge,
        Code::Below(_)
        | Code::MissingField
        | Code::UnknownField
        | Code::WrongType
        | Code::InvalidValue
        | Code::InvalidDecimal
        | Code::InvalidTimestamp
        | Code::NothingToPay
        | Code::CounterpartyUnknown
        | Code::LinkBroken
        | Code::IdempotencyKeyInvalid => Class::InvalidInput,
        Code::PaymentConflict
        | Code::SessionClosed
        | Code::AlreadyPaid
        | Code::PaymentUnderWay
        | Code::StepOutOfOrder
        | Code::ConfirmationRequired => Class::Conflict,
        Code::MandateUnknown | Code::SessionUnknown => Class::NotFound,
        Code::SessionExpired => Class::Gone,
        Code::WalletFull => Class::Unavailable,
        Code::MandateExpired
        | Code::MandateNotYetValid
        | Code::MandateLimitSingle
        | Code::MandateLimitDaily
        | Code::MandateLimitMonthly
        | Code::IntentLimitSingle
        | Code::InstrumentNotPermitted
        | Code::InstrumentUnavailable
        | Code::PrimitiveNotPermitted
        | Code::CurrencyMismatch
        | Code::CounterpartyBlocked
        | Code::JurisdictionBlocked
        | Code::CategoryBlocked
        | Code::BankAccountUnbound
        | Code::BudgetExceeded => Class::PolicyBlock,
    }
}
