//! A market in miniature: a principal, an agent, a resolver and a wallet, each with a key of its own.

use aql::{Candidate, Fuel, Intent, Limits, OverBudget, Responder};
use json::{Document, Instant};
use payment::wallet::{Book, Executing, Granting, Holdings};
use payment::{Keyring, Ledger, Mandate, Plan, Refusal, Request, Session, Terms, Wanted};
use serde_json::{Value, json};
use trust::{Digest, SigningKey};

pub(crate) fn now() -> Instant {
    Instant::parse_rfc3339("2026-06-01T12:00:00Z").unwrap()
}

pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

pub(crate) fn principal() -> SigningKey {
    key(1)
}

pub(crate) fn agent() -> SigningKey {
    key(2)
}

pub(crate) fn wallet() -> SigningKey {
    key(3)
}

pub(crate) fn resolver() -> SigningKey {
    key(4)
}

pub(crate) fn did(key: &SigningKey) -> String {
    key.did_key().as_str().to_owned()
}

pub(crate) fn document(value: &Value) -> Document {
    Document::of(value).unwrap()
}

pub(crate) fn signed(mut value: Value, key: &SigningKey) -> Document {
    trust::sign(&mut value, key).unwrap();
    document(&value)
}

pub(crate) fn listed(mut value: Value, key: &SigningKey) -> Document {
    payment::sign_listed(&mut value, key);
    document(&value)
}

/// Changes a document as RFC 7396 says.
pub(crate) fn merge(base: &mut Value, change: &Value) {
    let (Value::Object(members), Value::Object(changes)) = (&mut *base, change) else {
        *base = change.clone();
        return;
    };
    for (name, value) in changes {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

pub(crate) fn intent_body() -> Value {
    json!({
        "intent_id": "urn:oap:intent:lunch-1",
        "issuer_did": did(&principal()),
        "agent_did": did(&agent()),
        "category": "commercial",
        "constraints": {"path": "/goods_identification/service_code", "operator": "eq", "value": "LUNCH"},
        "projection": {"include": ["/offer_id", "/provider_did", "/price"]},
        "budget": {
            "amount": "100.00", "currency": "EUR", "allocation": "ranked_top_k", "top_k": 3,
            "distribution": [0.5, 0.3, 0.2]
        },
        "validity": {"from": "2026-06-01T08:00:00Z", "to": "2026-06-01T20:00:00Z"},
        "payment_constraints": {
            "allowed_instruments": ["sepa-instant", "sepa-ct"],
            "disallowed_instruments": ["lightning_network"],
            "preferred_instrument": "sepa-ct",
            "max_single_payment": {"amount": "80.00", "currency": "EUR"}
        }
    })
}

pub(crate) fn mandate_body() -> Value {
    json!({
        "mandate_id": "urn:oap:mandate:lunch",
        "version": "1.0",
        "principal_did": did(&principal()),
        "agent_did": did(&agent()),
        "wallet_did": did(&wallet()),
        "constraints": {
            "max_single_payment": {"amount": "200.00", "currency": "EUR"},
            "max_daily_spend": {"amount": "300.00", "currency": "EUR"},
            "max_monthly_spend": {"amount": "1000.00", "currency": "EUR"},
            "allowed_instruments": ["sepa-instant", "sepa-ct", "card"]
        },
        "validity": {"not_before": "2026-01-01T00:00:00Z", "not_after": "2026-12-31T23:59:59Z"}
    })
}

/// A candidate of a market: its name, its price and its score.
pub(crate) fn offer(name: &str, price: &str, score: f64) -> Value {
    json!({
        "record": {
            "offer_id": format!("urn:oap:offer:{name}"),
            "provider_did": format!("did:web:{name}.example"),
            "price": {"amount": price, "currency": "EUR"},
            "goods_identification": {"service_code": "LUNCH"}
        },
        "quality": {"performance_score": score}
    })
}

/// The answer of a resolver.
pub(crate) fn answer(intent: &Document, offers: &[Value]) -> Document {
    let read = Intent::read(intent.root(), &Limits::STANDARD).unwrap();
    let candidates: Vec<Candidate> = offers
        .iter()
        .enumerate()
        .map(|(number, offer)| Candidate::read(document(offer), number + 1).unwrap())
        .collect();
    let resolution = aql::resolve(&read, &candidates, OverBudget::Flag, Fuel::STANDARD).unwrap();
    let responder = Responder {
        response_id: "urn:oap:intent-response:1",
        resolver_did: &did(&resolver()),
        evaluated_at: now(),
        rejected_max: 20,
        next_cursor: None,
        recorded: aql::Recorded::default(),
    };
    let bytes = responder.write(&read, &resolution, None).unwrap();
    signed(serde_json::from_slice(&bytes).unwrap(), &resolver())
}

pub(crate) const WANTED: Wanted<'static> =
    Wanted { instrument_id: None, commerce_primitive: "retail_purchase", purpose: "lunch for forty" };

/// An agent with a ledger beside a wallet with a book.
pub(crate) struct Stage {
    pub(crate) keys: Keyring,
    pub(crate) ledger: Ledger,
    pub(crate) log: Vec<u8>,
    pub(crate) book: Book,
    pub(crate) names: u32,
}

impl Stage {
    pub(crate) fn new(holdings: Holdings) -> Self {
        let book = Book::new(wallet().did_key(), holdings);
        Self { keys: Keyring::default(), ledger: Ledger::default(), log: Vec::new(), book, names: 0 }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn write(&mut self, line: &payment::Line) {
        self.log.extend([line.bytes(), b"\n"].concat());
        assert_eq!(self.ledger.accept(line.bytes()), None);
    }

    /// A mandate that the wallet knows.
    pub(crate) fn mandate(&mut self, body: Value) -> Result<Document, Refusal> {
        let mandate = listed(body, &principal());
        Mandate::verified(&mandate, &self.keys)?;
        if let Some(line) = self.book.mandate(&mandate, now())? {
            assert_eq!(self.book.accept(&line), None);
        }
        Ok(mandate)
    }

    /// A session for a request, as a wallet grants it.
    pub(crate) fn session(&mut self, request: &Document) -> Result<Document, Refusal> {
        let read = Request::verified(request, &self.keys)?;
        let name = self.name();
        let body = match self.book.session(&read, &name, "https://wallet.example", now())? {
            Granting::Known(session) => return Ok(session.root().to_document()),
            Granting::New(body) => body,
        };
        let session = signed(body, &wallet());
        let line = self.book.grant(&session, now());
        assert_eq!(self.book.accept(&line), None);
        Ok(session)
    }

    /// The confirmation of a session with both signatures.
    pub(crate) fn execute(&mut self, session: &Document) -> Result<Document, Refusal> {
        let (read, name) = (Session::verified(session, &self.keys)?, self.name());
        let uetr = "00000000-0000-4000-8000-000000000001";
        let half = match self.book.execute(&read.session_id, &agent().did_key(), &name, uetr, now())? {
            Executing::Known(confirmation) => confirmation.root().to_document(),
            Executing::New(body) => listed(body, &wallet()),
        };
        let line = self.book.settle(&half, now())?;
        assert_eq!(self.book.accept(&line), None);
        payment::countersign(&half, &read, &self.keys, &agent())
    }

    /// Everything from an intent and its answer to the receipts; gives the plan.
    pub(crate) fn pay(&mut self, intent: &Document, answer: &Document, mandate: &Document) -> Result<Plan, Refusal> {
        let read = Intent::read(intent.root(), &Limits::STANDARD)?;
        let plan = payment::plan(&read, &[answer.root()], Terms::Share)?;
        if let Some(line) = self.ledger.open(intent, now())? {
            self.write(&line);
        }
        if let Some(line) = self.ledger.answer(&read.intent_id, answer, now())? {
            self.write(&line);
        }
        let permitted = Mandate::read(mandate)?;
        for planned in &plan.sessions {
            let request = signed(payment::request(intent.root(), planned, &permitted, &WANTED), &agent());
            self.pay_one(mandate, &permitted, &request)?;
        }
        Ok(plan)
    }

    fn pay_one(&mut self, mandate: &Document, permitted: &Mandate, request: &Document) -> Result<(), Refusal> {
        let key: Digest = Request::read(request)?.idempotency_key;
        let line = self.ledger.reserve(mandate, request, now())?;
        self.write(&line);
        let session = self.session(request)?;
        let line = self.ledger.grant(key, 1, &session, now())?;
        self.write(&line);
        let confirmation = self.execute(&session)?;
        let line = self.ledger.settle(key, 1, &confirmation, now())?;
        self.write(&line);
        let previous = self.ledger.last_receipt(permitted.principal.as_str());
        let name = self.name();
        let receipt = payment::receipt(&name, now(), permitted, session.root(), &confirmation, previous)?;
        let line = self.ledger.receipt(key, 1, &listed(receipt, &agent()), now())?;
        self.write(&line);
        Ok(())
    }
}
