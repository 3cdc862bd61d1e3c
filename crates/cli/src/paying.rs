//! RFC 0020 B.2 and B.3: one payment taken to its end, from wherever it stands in the ledger.
//!
//! Each turn looks at the ledger, asks the wallet for what is next, and writes the outcome down. Everything that is asked
//! of the wallet has the same effect however often it is asked, so a run that was cut off is simply run again.

use crate::failure::Failure;
use crate::ledger::{Kept, refused};
use crate::purse::{Purse, Said};
use crate::{chance, clock};
use json::{Document, Value};
use payment::{Code, Keyring, Mandate, Paid, Planned, Refusal, Request, Session, State, Wanted, idempotency_key};
use trust::{Digest, SigningKey};

/// An agent who pays.
pub(crate) struct Payer<'a> {
    pub(crate) key: &'a SigningKey,
    pub(crate) keys: &'a Keyring,
    pub(crate) purse: &'a Purse,
    pub(crate) intent: &'a Document,
    pub(crate) mandate: &'a Mandate,
    pub(crate) mandate_document: &'a Document,
    pub(crate) wanted: &'a Wanted<'a>,
}

/// How a payment stands at the end of a run.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Settled, with a receipt.
    Paid { session_id: String, receipt_id: String },
    /// The principal has to say yes.
    Waiting { session_id: String },
    /// The wallet, or our own ledger, says no.
    Refused { code: String, message: String },
    /// The wallet could not move the money.
    Failed { code: String },
}

/// Turns after which something is wrong: each one brings a payment further, unless others work on it, too.
const TURNS_MAX: usize = 32;

impl Payer<'_> {
    /// Takes a planned payment to its end.
    pub(crate) fn pay(&self, kept: &mut Kept, planned: &Planned) -> Result<Outcome, Failure> {
        let intent_id = self.intent.root().get("intent_id").and_then(json::Node::as_str).unwrap_or_default();
        let key = idempotency_key(intent_id, &planned.offer_ref, &self.mandate.agent);
        for _ in 0..TURNS_MAX {
            let known = kept.ledger().accounts().payment(key).map(|Paid { state, attempt, .. }| (*state, *attempt));
            let outcome = match known {
                None | Some((State::Released, _)) => self.reserve(kept, planned)?,
                Some((State::Reserved, attempt)) => self.ask(kept, key, attempt)?,
                Some((State::Granted, attempt)) => self.execute(kept, key, attempt)?,
                Some((State::Settled, attempt)) => self.receipt(kept, key, attempt)?,
                Some((State::Receipted, _)) => Some(paid(kept, key)),
                Some((State::Failed, _)) => Some(failed(kept, key)),
            };
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
        Err(Failure::files("the payment does not come to an end; somebody else works on it, too"))
    }

    fn reserve(&self, kept: &mut Kept, planned: &Planned) -> Result<Option<Outcome>, Failure> {
        let body = payment::request(self.intent.root(), planned, self.mandate, self.wanted);
        let request = self.signed(body)?;
        let reserved = kept.step(|ledger| ledger.reserve(self.mandate_document, &request, clock::now()).map(Some))?;
        Ok(match reserved {
            Ok(()) => None,
            // Somebody else was faster: what they wrote has been read, and says how to go on.
            Err(Refusal { code: Code::PaymentUnderWay | Code::AlreadyPaid | Code::SessionClosed, .. }) => None,
            Err(refusal) => Some(no(&refusal)),
        })
    }

    fn ask(&self, kept: &mut Kept, key: Digest, attempt: u32) -> Result<Option<Outcome>, Failure> {
        let Some(payment) = kept.ledger().payment(key) else { return Ok(None) };
        let (request, address) = (payment.request.root().to_document(), self.purse.address());
        match self.purse.post(&["oap", "payment", "sessions"], &json::canonical(request.root()), self.keys)? {
            Said::Document(document) => {
                let checked = Session::verified(&document, self.keys)
                    .and_then(|session| session.check_answers(&Request::read(&request)?, self.mandate));
                checked.map_err(|refusal| refused(address, &refusal))?;
                self.take(kept, |ledger| ledger.grant(key, attempt, &document, clock::now()))
            }
            Said::No(no) => {
                self.take(kept, |ledger| ledger.release(key, attempt, &no.code, clock::now()))?;
                Ok(Some(Outcome::Refused { code: no.code, message: no.message }))
            }
        }
    }

    fn execute(&self, kept: &mut Kept, key: Digest, attempt: u32) -> Result<Option<Outcome>, Failure> {
        let session = kept.ledger().payment(key).and_then(|payment| payment.session.as_ref());
        let Some(document) = session.map(|session| session.root().to_document()) else { return Ok(None) };
        let address = self.purse.address();
        let session = Session::read(&document).map_err(|refusal| refused(address, &refusal))?;
        let body = self.signed(payment::execution(&session.session_id, &self.mandate.agent))?;
        let path = ["oap", "payment", "sessions", &session.session_id, "execute"];
        match self.purse.post(&path, &json::canonical(body.root()), self.keys)? {
            Said::Document(half) => {
                let whole = payment::countersign(&half, &session, self.keys, self.key);
                let whole = whole.map_err(|refusal| refused(address, &refusal))?;
                self.take(kept, |ledger| ledger.settle(key, attempt, &whole, clock::now()))?;
                // The wallet has what counts for it; its copy with our signature is a courtesy.
                let path = ["oap", "payment", "sessions", &session.session_id, "confirmation"];
                let _ = self.purse.post(&path, &json::canonical(whole.root()), self.keys);
                Ok(None)
            }
            Said::No(no) => match no.code.clone().as_str() {
                "principal_confirmation_required" => Ok(Some(Outcome::Waiting { session_id: session.session_id })),
                "session_expired" => self.take(kept, |ledger| ledger.lapse(key, attempt, &no.code, clock::now())),
                "session_closed" => {
                    self.take(kept, |ledger| ledger.lapse(key, attempt, &no.code, clock::now()))?;
                    Ok(Some(Outcome::Refused { code: no.code, message: no.message }))
                }
                _ => Err(no.failure(address)),
            },
        }
    }

    fn receipt(&self, kept: &mut Kept, key: Digest, attempt: u32) -> Result<Option<Outcome>, Failure> {
        let name = chance::uuid()?;
        self.take(kept, |ledger| {
            let payment = ledger.payment(key);
            let parts = payment.and_then(|payment| Some((payment.session.as_ref()?, payment.confirmation.as_ref()?)));
            let (session, confirmation) =
                parts.ok_or_else(|| Refusal::new(Code::StepOutOfOrder, "there is nothing to receipt"))?;
            let previous = ledger.last_receipt(self.mandate.principal.as_str());
            let mut body = payment::receipt(&name, clock::now(), self.mandate, session.root(), confirmation, previous)?;
            payment::sign_listed(&mut body, self.key);
            ledger.receipt(key, attempt, &Document::of(&body)?, clock::now())
        })
    }

    /// Writes a step down; when somebody else took it first, the ledger says how to go on.
    fn take(
        &self,
        kept: &mut Kept,
        prepare: impl FnOnce(&payment::Ledger) -> Result<payment::Line, Refusal>,
    ) -> Result<Option<Outcome>, Failure> {
        match kept.step(|ledger| prepare(ledger).map(Some))? {
            Ok(()) => Ok(None),
            Err(refusal) if refusal.code == Code::StepOutOfOrder => Ok(None),
            Err(refusal) => Err(refused("the ledger", &refusal)),
        }
    }

    fn signed(&self, mut body: Value) -> Result<Document, Failure> {
        trust::sign(&mut body, self.key).map_err(|error| Failure::refused(error.to_string()))?;
        Document::of(&body).map_err(|error| Failure::refused(error.to_string()))
    }
}

fn no(refusal: &Refusal) -> Outcome {
    Outcome::Refused { code: refusal.code.name().to_owned(), message: refusal.detail.clone() }
}

fn text(document: Option<&Document>, member: &str) -> String {
    let text = document.and_then(|document| document.root().get(member)?.as_str());
    text.unwrap_or_default().to_owned()
}

fn paid(kept: &Kept, key: Digest) -> Outcome {
    let payment = kept.ledger().payment(key);
    Outcome::Paid {
        session_id: text(payment.and_then(|payment| payment.session.as_ref()), "session_id"),
        receipt_id: text(payment.and_then(|payment| payment.receipt.as_ref()), "receipt_id"),
    }
}

fn failed(kept: &Kept, key: Digest) -> Outcome {
    let confirmation = kept.ledger().payment(key).and_then(|payment| payment.confirmation.as_ref());
    let error = confirmation.and_then(|confirmation| payment::Confirmation::read(confirmation).ok()?.error);
    Outcome::Failed { code: error.unwrap_or_else(|| "instrument_execution_failed".to_owned()) }
}
