//! RFC 0020 B.3: the agent's ledger: every step of every payment, as a log whose lines are chained.
//!
//! A line is prepared first, written by whoever keeps the log, and then accepted. Preparing and accepting judge it in
//! the same way, so a log that is read again is checked again. Who signed the documents in it is `trace`'s business.
//!
//! INVARIANT: a step is on disk before its effect is asked for; so after a crash everything can be asked for again.

use crate::account::{Accounts, Paid, State, Step};
use crate::chain::{Flaw, Tip, document, lines};
use crate::confirmation::{Confirmation, Status};
use crate::keyring::digest;
use crate::mandate::Mandate;
use crate::receipt::Receipt;
use crate::refusal::{Code, Refusal};
use crate::session::{Request, Session};
use crate::story::{Payment, Story};
use aql::{Intent, Limits, Money};
use json::{Document, Instant, Map, Node, json};
use std::collections::{BTreeMap, HashMap};
use trust::Digest;

/// A line that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    bytes: Vec<u8>,
}

impl Line {
    /// The line in canonical form, without its end.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What an agent has reserved, paid and proved.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    tip: Tip,
    accounts: Accounts,
    stories: BTreeMap<String, Story>,
    /// Where the latest attempt of a payment stands.
    places: HashMap<Digest, (String, usize)>,
    /// The last receipt of each principal.
    receipts: BTreeMap<String, Digest>,
}

/// What a line says, once it was judged.
enum Change {
    Open { intent: Document, intent_id: String, budget: Money },
    Answer { intent_id: String, answer: Document },
    Reserve { intent_id: String, key: Digest, amount: Money, mandate: Document, request: Document },
    Grant { key: Digest, attempt: u32, session_id: String, session: Document },
    Settle { key: Digest, attempt: u32, confirmation: Document },
    Fail { key: Digest, attempt: u32, confirmation: Document },
    Release { key: Digest, attempt: u32, reason: String },
    Lapse { key: Digest, attempt: u32, reason: String },
    Receipt { key: Digest, attempt: u32, principal: String, receipt: Document },
}

impl Ledger {
    /// Reads a log from its beginning; what is wrong with it is told, and what follows is read all the same.
    pub fn replay(log: &[u8]) -> (Self, Vec<Flaw>) {
        let mut ledger = Self::default();
        let flaws = lines(log).filter_map(|line| ledger.accept(line)).collect();
        (ledger, flaws)
    }

    /// Where the log ends.
    pub fn tip(&self) -> &Tip {
        &self.tip
    }

    /// The money of all intents.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// All intents with what came of them.
    pub fn stories(&self) -> impl Iterator<Item = (&str, &Story)> {
        self.stories.iter().map(|(intent_id, story)| (intent_id.as_str(), story))
    }

    /// One intent with what came of it.
    pub fn story(&self, intent_id: &str) -> Option<&Story> {
        self.stories.get(intent_id)
    }

    /// The latest attempt of a payment.
    pub fn payment(&self, key: Digest) -> Option<&Payment> {
        let (intent_id, position) = self.places.get(&key)?;
        self.stories.get(intent_id)?.payments.get(*position)
    }

    /// The digest of the last receipt of a principal.
    pub fn last_receipt(&self, principal: &str) -> Option<Digest> {
        self.receipts.get(principal).copied()
    }

    /// All receipts of a principal, in their order.
    pub fn receipts(&self, principal: &str) -> Vec<&Document> {
        let all =
            self.stories.values().flat_map(|story| &story.payments).filter_map(|payment| payment.receipt.as_ref());
        let of = |receipt: &&Document| receipt.root().get("principal_did").and_then(Node::as_str) == Some(principal);
        let mut by_previous: HashMap<&str, &Document> = HashMap::new();
        for receipt in all.filter(of) {
            let previous = receipt.root().get("previous_receipt_hash").and_then(Node::as_str).unwrap_or_default();
            by_previous.insert(previous, receipt);
        }
        let (mut ordered, mut previous) = (Vec::new(), crate::chain::GENESIS.to_owned());
        while let Some(receipt) = by_previous.remove(previous.as_str()) {
            ordered.push(receipt);
            previous = digest(receipt.root()).to_string();
        }
        ordered
    }

    /// An account for an intent; nothing when there is one for the same intent.
    pub fn open(&self, intent: &Document, now: Instant) -> Result<Option<Line>, Refusal> {
        let id = intent.root().get("intent_id").and_then(Node::as_str).unwrap_or_default();
        match self.stories.get(id) {
            Some(story) if digest(story.intent.root()) == digest(intent.root()) => Ok(None),
            Some(_) => Err(Refusal::new(Code::PaymentConflict, "the ledger knows another intent by this name")),
            None => self.prepare(now, "open", [("intent", json!(intent.root().to_value()))]).map(Some),
        }
    }

    /// An answer to an intent; nothing when it is known.
    pub fn answer(&self, intent_id: &str, answer: &Document, now: Instant) -> Result<Option<Line>, Refusal> {
        let known = self.stories.get(intent_id).into_iter().flat_map(|story| &story.answers);
        if known.into_iter().any(|known| digest(known.root()) == digest(answer.root())) {
            return Ok(None);
        }
        let members = [("intent_id", json!(intent_id)), ("answer", answer.root().to_value())];
        self.prepare(now, "answer", members).map(Some)
    }

    /// Sets money aside for a request.
    pub fn reserve(&self, mandate: &Document, request: &Document, now: Instant) -> Result<Line, Refusal> {
        let members = [("mandate", mandate.root().to_value()), ("request", request.root().to_value())];
        self.prepare(now, "reserve", members)
    }

    /// Notes the session that the wallet granted.
    pub fn grant(&self, key: Digest, attempt: u32, session: &Document, now: Instant) -> Result<Line, Refusal> {
        self.about(now, "grant", key, attempt, ("session", session.root().to_value()))
    }

    /// Notes how the settlement ended: settled or failed.
    pub fn settle(&self, key: Digest, attempt: u32, confirmation: &Document, now: Instant) -> Result<Line, Refusal> {
        self.about(now, "settle", key, attempt, ("confirmation", confirmation.root().to_value()))
    }

    /// Gives a session up that is over unused, for the reason the wallet gave.
    pub fn lapse(&self, key: Digest, attempt: u32, reason: &str, now: Instant) -> Result<Line, Refusal> {
        self.about(now, "lapse", key, attempt, ("reason", json!(reason)))
    }

    /// Gives a request up that was refused, for the reason the wallet gave.
    pub fn release(&self, key: Digest, attempt: u32, reason: &str, now: Instant) -> Result<Line, Refusal> {
        self.about(now, "release", key, attempt, ("reason", json!(reason)))
    }

    /// Notes the receipt of a settled payment.
    pub fn receipt(&self, key: Digest, attempt: u32, receipt: &Document, now: Instant) -> Result<Line, Refusal> {
        self.about(now, "receipt", key, attempt, ("receipt", receipt.root().to_value()))
    }

    fn about(
        &self,
        now: Instant,
        step: &str,
        key: Digest,
        attempt: u32,
        member: (&str, json::Value),
    ) -> Result<Line, Refusal> {
        let members = [("idempotency_key", json!(key.to_string())), ("attempt", json!(attempt)), member];
        self.prepare(now, step, members)
    }

    fn prepare<const N: usize>(
        &self,
        now: Instant,
        step: &str,
        members: [(&str, json::Value); N],
    ) -> Result<Line, Refusal> {
        let members: Map = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let bytes = self.tip.line(now, step, members);
        let entry = Document::parse(&bytes, &json::Limits::OURS)?;
        self.judge(&entry)?;
        Ok(Line { bytes })
    }

    /// Takes over a line that was written; says what is wrong with it.
    pub fn accept(&mut self, line: &[u8]) -> Option<Flaw> {
        let (tip, entry, flaw) = self.tip.follow(line);
        self.tip = tip;
        let impossible = |refusal: Refusal| Flaw::Impossible(self.tip.number(), refusal.detail);
        let applied = match entry.as_ref().map(|entry| self.judge(entry)) {
            Some(Ok(change)) => {
                self.apply(change).map_err(|refusal| Flaw::Impossible(self.tip.number(), refusal.detail))
            }
            Some(Err(refusal)) => Err(impossible(refusal)),
            None => Ok(()),
        };
        flaw.or(applied.err())
    }

    /// What a line says, when it follows from what is known.
    fn judge(&self, entry: &Document) -> Result<Change, Refusal> {
        let root = entry.root();
        let text = |name: &str| root.get(name).and_then(Node::as_str).unwrap_or_default();
        let key = Digest::read(text("idempotency_key"));
        let attempt = root.get("attempt").and_then(Node::as_u64).and_then(|attempt| u32::try_from(attempt).ok());
        let about = || key.zip(attempt).ok_or_else(|| Refusal::new(Code::MissingField, "the entry names no payment"));
        let change = match text("step") {
            "open" => Self::judge_open(document(entry, "intent")?)?,
            "answer" => self.judge_answer(text("intent_id"), document(entry, "answer")?)?,
            "reserve" => self.judge_reserve(document(entry, "mandate")?, document(entry, "request")?)?,
            "grant" => self.judge_grant(about()?, document(entry, "session")?)?,
            "settle" => self.judge_settle(about()?, document(entry, "confirmation")?)?,
            "release" => {
                let (key, attempt) = about()?;
                Change::Release { key, attempt, reason: text("reason").to_owned() }
            }
            "lapse" => {
                let (key, attempt) = about()?;
                Change::Lapse { key, attempt, reason: text("reason").to_owned() }
            }
            "receipt" => self.judge_receipt(about()?, document(entry, "receipt")?)?,
            _ => return Err(Refusal::new(Code::InvalidValue, "there is no such step").at(&["step"])),
        };
        change.step().map_or(Ok(()), |step| self.accounts.check(&step))?;
        Ok(change)
    }

    fn judge_open(intent: Document) -> Result<Change, Refusal> {
        let read = Intent::read(intent.root(), &Limits::STANDARD)?;
        let budget = read.budget.map(|budget| budget.ceiling);
        let budget =
            budget.ok_or_else(|| Refusal::new(Code::NothingToPay, "the intent has no budget").at(&["budget"]))?;
        Ok(Change::Open { intent, intent_id: read.intent_id, budget })
    }

    fn judge_answer(&self, intent_id: &str, answer: Document) -> Result<Change, Refusal> {
        let to = answer.root().get("intent_id").and_then(Node::as_str);
        if to != Some(intent_id) || !self.stories.contains_key(intent_id) {
            return Err(Refusal::new(Code::LinkBroken, "the answer is to another intent").at(&["answer", "intent_id"]));
        }
        Ok(Change::Answer { intent_id: intent_id.to_owned(), answer })
    }

    fn judge_reserve(&self, mandate: Document, request: Document) -> Result<Change, Refusal> {
        let (permitted, asked) = (Mandate::read(&mandate)?, Request::read(&request)?);
        let intent_id = asked.intent_id.clone();
        let intent_id = intent_id.ok_or_else(|| Refusal::new(Code::MissingField, "a session is for an intent"))?;
        if permitted.mandate_id != asked.mandate_id || permitted.agent != asked.agent {
            return Err(Refusal::new(Code::LinkBroken, "the request is under another mandate").at(&["mandate_id"]));
        }
        let story = self.stories.get(&intent_id);
        let block = story.and_then(|story| story.intent.root().get("payment_constraints")).map(json::canonical);
        let copied = request.root().get("intent_payment_constraints").map(json::canonical);
        if block != copied {
            let detail = "the request carries the intent's constraints as they are";
            return Err(Refusal::new(Code::LinkBroken, detail).at(&["intent_payment_constraints"]));
        }
        Ok(Change::Reserve { intent_id, key: asked.idempotency_key, amount: asked.amount, mandate, request })
    }

    fn judge_grant(&self, (key, attempt): (Digest, u32), session: Document) -> Result<Change, Refusal> {
        let payment = self.known(key, attempt)?;
        let (granted, asked) = (Session::read(&session)?, Request::read(&payment.request)?);
        granted.check_answers(&asked, &Mandate::read(&payment.mandate)?)?;
        Ok(Change::Grant { key, attempt, session_id: granted.session_id, session })
    }

    fn judge_settle(&self, (key, attempt): (Digest, u32), confirmation: Document) -> Result<Change, Refusal> {
        let session = self.session(key, attempt)?;
        let settled = Confirmation::read(&confirmation)?;
        settled.check_settles(&Session::read(session)?)?;
        match settled.status {
            Status::Settled => Ok(Change::Settle { key, attempt, confirmation }),
            Status::Failed => Ok(Change::Fail { key, attempt, confirmation }),
            Status::PendingFinality => {
                Err(Refusal::new(Code::StepOutOfOrder, "the money is still on its way").at(&["status"]))
            }
        }
    }

    fn judge_receipt(&self, (key, attempt): (Digest, u32), receipt: Document) -> Result<Change, Refusal> {
        let read = Receipt::read(&receipt)?;
        let payment = self.known(key, attempt)?;
        if let Some(confirmation) = &payment.confirmation {
            read.check_proves(self.session(key, attempt)?.root(), confirmation.root())?;
        }
        let principal = read.principal.as_str().to_owned();
        if read.previous != self.receipts.get(&principal).copied() {
            let detail = "the receipt does not follow the principal's last one";
            return Err(Refusal::new(Code::LinkBroken, detail).at(&["previous_receipt_hash"]));
        }
        Ok(Change::Receipt { key, attempt, principal, receipt })
    }

    /// A payment at this attempt; whoever acts on another one is late, whatever the documents say.
    fn known(&self, key: Digest, attempt: u32) -> Result<&Payment, Refusal> {
        let late = || Refusal::new(Code::StepOutOfOrder, "there is no such payment, or it is at another attempt");
        self.payment(key).filter(|payment| payment.attempt == attempt).ok_or_else(late)
    }

    fn session(&self, key: Digest, attempt: u32) -> Result<&Document, Refusal> {
        let session = self.known(key, attempt)?.session.as_ref();
        session.ok_or_else(|| Refusal::new(Code::StepOutOfOrder, "the payment has no session"))
    }

    fn apply(&mut self, change: Change) -> Result<(), Refusal> {
        if let Some(step) = change.step() {
            self.accounts.apply(&step)?;
        }
        match change {
            Change::Open { intent, intent_id, .. } => {
                self.stories.insert(intent_id, Story { intent, answers: Vec::new(), payments: Vec::new() });
            }
            Change::Answer { intent_id, answer } => {
                if let Some(story) = self.stories.get_mut(&intent_id) {
                    story.answers.push(answer);
                }
            }
            Change::Reserve { intent_id, key, mandate, request, .. } => {
                let attempt = self.accounts.payment(key).map_or(1, |Paid { attempt, .. }| *attempt);
                if let Some(story) = self.stories.get_mut(&intent_id) {
                    self.places.insert(key, (intent_id, story.payments.len()));
                    story.payments.push(Payment::new(key, attempt, mandate, request));
                }
            }
            Change::Grant { key, session, .. } => {
                self.note(key, State::Granted, |payment| payment.session = Some(session))
            }
            Change::Settle { key, confirmation, .. } => {
                self.note(key, State::Settled, |payment| payment.confirmation = Some(confirmation));
            }
            Change::Fail { key, confirmation, .. } => {
                self.note(key, State::Failed, |payment| payment.confirmation = Some(confirmation));
            }
            Change::Release { key, reason, .. } | Change::Lapse { key, reason, .. } => {
                self.note(key, State::Released, |payment| payment.released = Some(reason));
            }
            Change::Receipt { key, principal, receipt, .. } => {
                self.receipts.insert(principal, digest(receipt.root()));
                self.note(key, State::Receipted, |payment| payment.receipt = Some(receipt));
            }
        }
        Ok(())
    }

    fn note(&mut self, key: Digest, state: State, change: impl FnOnce(&mut Payment)) {
        let place = self.places.get(&key);
        let story = place.and_then(|(intent_id, position)| Some((self.stories.get_mut(intent_id)?, *position)));
        if let Some(payment) = story.and_then(|(story, position)| story.payments.get_mut(position)) {
            payment.state = state;
            change(payment);
        }
    }
}

impl Change {
    fn step(&self) -> Option<Step<'_>> {
        Some(match self {
            Self::Open { intent_id, budget, .. } => Step::Open { intent_id, budget },
            Self::Answer { .. } => return None,
            Self::Reserve { intent_id, key, amount, .. } => Step::Reserve { intent_id, key: *key, amount },
            Self::Grant { key, attempt, session_id, .. } => Step::Grant { key: *key, attempt: *attempt, session_id },
            Self::Settle { key, attempt, .. } => Step::Settle { key: *key, attempt: *attempt },
            Self::Fail { key, attempt, .. } => Step::Fail { key: *key, attempt: *attempt },
            Self::Release { key, attempt, .. } => Step::Release { key: *key, attempt: *attempt },
            Self::Lapse { key, attempt, .. } => Step::Lapse { key: *key, attempt: *attempt },
            Self::Receipt { key, attempt, .. } => Step::Receipt { key: *key, attempt: *attempt },
        })
    }
}

impl Payment {
    fn new(key: Digest, attempt: u32, mandate: Document, request: Document) -> Self {
        let (session, confirmation, receipt, released) = (None, None, None, None);
        Self { key, attempt, state: State::Reserved, mandate, request, session, confirmation, receipt, released }
    }
}
