//! RFC 0020 B.2: from a payment back to the question that authorised it, every signature and every link.
//!
//! INVARIANT: a story without a flaw is one in which each document is signed by whom it says, belongs to the one before
//! it, and in which no more was settled than the intent allows.

use crate::account::State;
use crate::confirmation::{Confirmation, Status};
use crate::keyring::{Keyring, digest};
use crate::mandate::Mandate;
use crate::receipt::Receipt;
use crate::refusal::{Code, Refusal};
use crate::session::{Request, Session};
use crate::story::{Payment, Story};
use aql::{Amount, Intent, Limits};
use json::{Document, Node, Pointer, Value, json};
use std::collections::HashSet;
use trust::{Did, Digest};

/// What was found on the way through a story.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The documents as a tree: intent, answers, and payments with what belongs to them.
    pub tree: Value,
    /// What is wrong; nothing when the story is sound.
    pub flaws: Vec<Flaw>,
}

/// A document that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Which document: `intent`, `answers/0`, `payments/1/session` and so on.
    pub document: String,
    /// Where in it.
    pub at: Pointer,
    /// The stable code.
    pub code: &'static str,
    /// In words.
    pub detail: String,
}

/// Follows a story; `receipts` are all receipts of its principal, in their order.
pub fn trace(story: &Story, receipts: &[&Document], keys: &Keyring) -> Trace {
    let mut flaws = Flaws(Vec::new());
    let intent = flaws.take("intent", read_intent(&story.intent, keys));
    let mut earlier = 0;
    for (number, answer) in story.answers.iter().enumerate() {
        let name = format!("answers/{number}");
        flaws.take(&name, check_answer(answer, &story.intent, keys));
        if let Some(intent) = &intent {
            let audit = aql::audit(intent, answer.root(), &Limits::STANDARD, earlier);
            for violation in &audit.violations {
                let detail = violation.detail.clone();
                flaws
                    .push(&name, Refusal::new(Code::Below(violation.rule.name()), detail).placed(violation.at.clone()));
            }
        }
        earlier += answer.root().get("candidates").map_or(0, Node::len);
    }
    let offered: HashSet<&str> = story
        .answers
        .iter()
        .flat_map(|answer| answer.root().get("candidates").into_iter().flat_map(Node::elements))
        .filter_map(|candidate| candidate.get("candidate_id").and_then(Node::as_str))
        .collect();
    let mut settled = 0u128;
    let mut payments = Vec::new();
    for (number, payment) in story.payments.iter().enumerate() {
        let name = format!("payments/{number}");
        settled = settled.saturating_add(follow(payment, &name, story, &offered, keys, &mut flaws).units());
        if let Some(receipt) = &payment.receipt {
            flaws.take(&format!("{name}/receipt"), check_chain(receipt, receipts));
        }
        payments.push(described(payment));
    }
    if let Some(budget) = intent.as_ref().and_then(|intent| intent.budget.as_ref())
        && settled > budget.ceiling.amount.units()
    {
        let detail = format!("{} was settled of {}", Amount::from_units(settled), budget.ceiling);
        flaws.push("intent", Refusal::new(Code::BudgetExceeded, detail).at(&["budget", "amount"]));
    }
    let answers: Vec<Value> = story.answers.iter().map(|answer| named(answer, "response_id", "resolver_did")).collect();
    let tree = json!({
        "intent": named(&story.intent, "intent_id", "issuer_did"),
        "answers": answers,
        "payments": payments,
        "settled": Amount::from_units(settled).to_string(),
    });
    Trace { tree, flaws: flaws.0 }
}

struct Flaws(Vec<Flaw>);

impl Flaws {
    fn push(&mut self, document: &str, refusal: Refusal) {
        let Refusal { code, at, detail } = refusal;
        self.0.push(Flaw { document: document.to_owned(), at, code: code.name(), detail });
    }

    fn take<T>(&mut self, document: &str, outcome: Result<T, Refusal>) -> Option<T> {
        outcome.map_err(|refusal| self.push(document, refusal)).ok()
    }
}

fn did_of(document: &Document, member: &str) -> Result<Did, Refusal> {
    let text = document.root().get(member).and_then(Node::as_str).unwrap_or_default();
    Did::parse(text).map_err(|error| Refusal::new(Code::Below(error.code()), error.to_string()).at(&[member]))
}

fn read_intent(document: &Document, keys: &Keyring) -> Result<Intent, Refusal> {
    keys.check(document, &did_of(document, "issuer_did")?)?;
    Ok(Intent::read(document.root(), &Limits::STANDARD)?)
}

fn check_answer(answer: &Document, intent: &Document, keys: &Keyring) -> Result<(), Refusal> {
    keys.check(answer, &did_of(answer, "resolver_did")?)?;
    same(answer, "intent_id", intent.root().get("intent_id"))
}

/// Whether a member has the value that another document says it has.
fn same(document: &Document, member: &str, expected: Option<Node<'_>>) -> Result<(), Refusal> {
    match document.root().get(member).map(json::canonical) == expected.map(json::canonical) {
        true => Ok(()),
        false => Err(Refusal::new(Code::LinkBroken, format!("`{member}` names something else")).at(&[member])),
    }
}

/// Follows one payment; gives what was settled.
fn follow(
    payment: &Payment,
    name: &str,
    story: &Story,
    offered: &HashSet<&str>,
    keys: &Keyring,
    flaws: &mut Flaws,
) -> Amount {
    let intent = story.intent.root();
    let at = |document: &str| format!("{name}/{document}");
    let mandate = flaws.take(&at("mandate"), check_mandate(payment, intent, keys));
    let request = flaws.take(&at("request"), check_request(payment, intent, offered, keys));
    let session = payment.session.as_ref().and_then(|document| {
        let checked = || {
            let session = Session::verified(document, keys)?;
            if let (Some(request), Some(mandate)) = (&request, &mandate) {
                session.check_answers(request, mandate)?;
                mandate.check_window(session.created_at)?;
            }
            Ok(session)
        };
        flaws.take(&at("session"), checked())
    });
    let confirmation = payment.confirmation.as_ref().and_then(|document| {
        let checked = || {
            let wallet = session.as_ref().map(|session| &session.wallet).or(mandate.as_ref().map(|it| &it.wallet));
            let agent = request.as_ref().map(|request| &request.agent).or(mandate.as_ref().map(|it| &it.agent));
            let confirmation = match (wallet, agent) {
                (Some(wallet), Some(agent)) => Confirmation::verified(document, wallet, agent, keys)?,
                _ => Confirmation::read(document)?,
            };
            session.as_ref().map_or(Ok(()), |session| confirmation.check_settles(session))?;
            Ok(confirmation)
        };
        flaws.take(&at("confirmation"), checked())
    });
    if let (Some(receipt), Some(session), Some(settled)) = (&payment.receipt, &payment.session, &payment.confirmation) {
        let checked = || {
            let receipt = Receipt::verified(receipt, keys)?;
            receipt.check_proves(session.root(), settled.root())
        };
        flaws.take(&at("receipt"), checked());
        flaws.take(&at("receipt"), same(receipt, "principal_did", payment.mandate.root().get("principal_did")));
        flaws.take(&at("receipt"), same(receipt, "action_id", intent.get("intent_id")));
    }
    if payment.state == State::Settled {
        let detail = "the payment is settled and has no receipt yet; `rialto pay` again writes it";
        flaws.push(&at("receipt"), Refusal::new(Code::MissingField, detail));
    }
    match confirmation {
        Some(confirmation) if confirmation.status == Status::Settled => confirmation.amount.amount,
        _ => Amount::ZERO,
    }
}

fn check_mandate(payment: &Payment, intent: Node<'_>, keys: &Keyring) -> Result<Mandate, Refusal> {
    let mandate = Mandate::verified(&payment.mandate, keys)?;
    match intent.get("issuer_did").and_then(Node::as_str) == Some(mandate.principal.as_str()) {
        true => Ok(mandate),
        false => Err(Refusal::new(Code::LinkBroken, "the principal is not the intent's issuer").at(&["principal_did"])),
    }
}

fn check_request(
    payment: &Payment,
    intent: Node<'_>,
    offered: &HashSet<&str>,
    keys: &Keyring,
) -> Result<Request, Refusal> {
    let request = Request::verified(&payment.request, keys)?;
    same(&payment.request, "intent_id", intent.get("intent_id"))?;
    same(&payment.request, "mandate_id", payment.mandate.root().get("mandate_id"))?;
    same(&payment.request, "agent_did", payment.mandate.root().get("agent_did"))?;
    same(&payment.request, "intent_payment_constraints", intent.get("payment_constraints"))?;
    if request.idempotency_key != payment.key {
        return Err(Refusal::new(Code::LinkBroken, "the ledger has another key").at(&["idempotency_key"]));
    }
    match offered.contains(request.offer_ref.as_str()) {
        true => Ok(request),
        false => Err(Refusal::new(Code::LinkBroken, "no answer names this candidate").at(&["offer_ref"])),
    }
}

/// Whether a receipt is a link of its principal's chain.
fn check_chain(receipt: &Document, receipts: &[&Document]) -> Result<(), Refusal> {
    let own = digest(receipt.root());
    let mut previous: Option<Digest> = None;
    for link in receipts {
        let this = digest(link.root());
        if this == own {
            return match Receipt::read(receipt)?.previous == previous {
                true => Ok(()),
                false => Err(broken_chain()),
            };
        }
        previous = Some(this);
    }
    Err(broken_chain())
}

fn broken_chain() -> Refusal {
    let detail = "the receipt does not follow the principal's receipt before it";
    Refusal::new(Code::LinkBroken, detail).at(&["previous_receipt_hash"])
}

fn named(document: &Document, id: &str, by: &str) -> Value {
    let text = |name: &str| document.root().get(name).and_then(Node::as_str);
    let by = text(by).map_or_else(|| signers(document), str::to_owned);
    json!({"id": text(id), "by": by, "digest": digest(document.root()).to_string()})
}

/// Those who stand in the list of signatures.
fn signers(document: &Document) -> String {
    let list = document.root().get("signatures").into_iter().flat_map(Node::elements);
    let names: Vec<&str> = list.filter_map(|entry| entry.get("by")?.as_str()?.split('#').next()).collect();
    names.join(" and ")
}

fn described(payment: &Payment) -> Value {
    let request = payment.request.root();
    let text = |name: &str| request.get(name).and_then(Node::as_str);
    let mut value = json!({
        "offer_ref": text("offer_ref"),
        "counterparty_did": text("counterparty_did"),
        "amount": request.get("amount").map(Node::to_value),
        "attempt": payment.attempt,
        "state": format!("{:?}", payment.state).to_lowercase(),
        "mandate": named(&payment.mandate, "mandate_id", "principal_did"),
        "request": named(&payment.request, "idempotency_key", "agent_did"),
    });
    if let Value::Object(members) = &mut value {
        let parts = [
            ("session", &payment.session, "session_id", "wallet_did"),
            ("confirmation", &payment.confirmation, "confirmation_id", "signatures"),
            ("receipt", &payment.receipt, "receipt_id", "agent_did"),
        ];
        for (name, document, id, by) in parts {
            if let Some(document) = document {
                members.insert(name.to_owned(), named(document, id, by));
            }
        }
        if let Some(reason) = &payment.released {
            members.insert("released".to_owned(), json!(reason));
        }
    }
    value
}
