//! RFC 0020 Appendix B: every case of `conformance/payment` against this crate.

use crate::stage::{self, Stage, WANTED, agent, answer, did, document, intent_body, listed, mandate_body, merge};
use aql::{Amount, Intent, Limits, Money};
use json::Document;
use payment::wallet::Holdings;
use payment::{Accounts, Keyring, Mandate, Planned, Refusal, Step, Terms, trace};
use serde_json::{Value, json};
use trust::{Did, Digest};

type Outcome = Result<Value, Value>;

fn refused(refusal: Refusal) -> Value {
    json!({"code": refusal.code.name(), "at": refusal.at.as_str()})
}

fn changed(mut base: Value, change: &Value) -> Value {
    merge(&mut base, change);
    base
}

fn intent(case: &Value) -> Document {
    stage::signed(changed(intent_body(), &with_default(case, "intent")), &stage::principal())
}

fn with_default(case: &Value, name: &str) -> Value {
    case.get(name).cloned().unwrap_or_else(|| json!({}))
}

fn holdings(file: &Value) -> Holdings {
    Holdings::read(&document(&file["holdings"])).unwrap()
}

/// The request of a case: for one planned session, with the members that the case changes.
fn request(case: &Value, change: &Value, intent: &Document, mandate: &Mandate) -> Document {
    let planned = Planned {
        offer_ref: "urn:oap:offer:a".to_owned(),
        counterparty: Did::parse("did:web:a.example").unwrap(),
        amount: Money { amount: Amount::parse("50.00").unwrap(), currency: "EUR".to_owned() },
    };
    let mut body = changed(payment::request(intent.root(), &planned, mandate, &WANTED), change);
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    if case.get("raw_key").is_none() {
        let key = payment::idempotency_key(&text("intent_id"), &text("offer_ref"), &mandate.agent);
        body["idempotency_key"] = json!(key.to_string());
    }
    stage::signed(body, &agent())
}

/// The words of a session that a case may expect.
fn shown(session: &Document) -> Value {
    let whole = session.root().to_value();
    let names = ["status", "kind", "instrument_id", "intent_id", "bank_account_verified"];
    names.iter().map(|name| ((*name).to_owned(), whole[*name].clone())).collect::<serde_json::Map<_, _>>().into()
}

/// What a wallet says to a request, after those before it were granted.
fn wallet(file: &Value, case: &Value) -> Outcome {
    let mut stage = Stage::new(holdings(file));
    let intent = intent(case);
    let mandate = stage.mandate(changed(mandate_body(), &with_default(case, "mandate"))).map_err(refused)?;
    let permitted = Mandate::read(&mandate).unwrap();
    for before in case["before"].as_array().into_iter().flatten() {
        stage.session(&request(case, before, &intent, &permitted)).unwrap();
    }
    let session =
        stage.session(&request(case, &with_default(case, "request"), &intent, &permitted)).map_err(refused)?;
    let again = Mandate::read(&mandate).unwrap();
    assert_eq!(format!("{permitted:?}"), format!("{again:?}"), "a session changed the mandate");
    Ok(shown(&session))
}

fn plan(case: &Value) -> Outcome {
    let intent = intent(case);
    let read = Intent::read(intent.root(), &Limits::STANDARD).map_err(|refusal| refused(refusal.into()))?;
    let offers: Vec<Value> = case["offers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| stage::offer(offer[0].as_str().unwrap(), offer[1].as_str().unwrap(), offer[2].as_f64().unwrap()))
        .collect();
    let answer = answer(&intent, &offers);
    let terms = if case["terms"] == "price" { Terms::Price } else { Terms::Share };
    let plan = payment::plan(&read, &[answer.root()], terms).map_err(refused)?;
    let short = |offer_ref: &str| offer_ref.trim_start_matches("urn:oap:offer:").to_owned();
    let sessions: Vec<Value> = plan
        .sessions
        .iter()
        .map(|planned| json!([short(&planned.offer_ref), planned.amount.amount.to_string()]))
        .collect();
    let left: Vec<Value> = plan.left_out.iter().map(|left| json!([short(&left.offer_ref), left.why.name()])).collect();
    assert!(plan.total() <= read.budget.unwrap().ceiling.amount);
    Ok(json!({"sessions": sessions, "left_out": left}))
}

/// The members of the request that an agent sends.
fn asks(case: &Value) -> Outcome {
    let intent = intent(case);
    let mandate = listed(mandate_body(), &stage::principal());
    let permitted = Mandate::read(&mandate).unwrap();
    let body = request(case, &json!({}), &intent, &permitted).root().to_value();
    let expected = case["expect"].as_object().unwrap();
    Ok(expected.keys().map(|name| (name.clone(), body[name].clone())).collect::<serde_json::Map<_, _>>().into())
}

/// A whole chain; what its documents say, or what a trace says when one of them was made anew with other words.
fn flow(file: &Value, case: &Value) -> Outcome {
    let mut stage = Stage::new(holdings(file));
    let intent = intent(case);
    let answer = answer(&intent, &[stage::offer("a", "40.00", 0.9)]);
    let mandate = stage.mandate(changed(mandate_body(), &with_default(case, "mandate"))).map_err(refused)?;
    stage.pay(&intent, &answer, &mandate).map_err(refused)?;
    let intent_id = intent.root().get("intent_id").unwrap().as_str().unwrap();
    let mut story = stage.ledger.story(intent_id).unwrap().clone();
    let payment = &mut story.payments[0];
    if let Some(forged) = case.get("forged") {
        let resign = |document: &Document, keys: &[trust::SigningKey]| {
            let mut body = changed(document.root().to_value(), &forged["change"]);
            body.as_object_mut().unwrap().remove("signatures");
            keys.iter().for_each(|key| payment::sign_listed(&mut body, key));
            document_of(&body)
        };
        let (wallet, agent) = (stage::wallet(), agent());
        match forged["document"].as_str().unwrap() {
            "confirmation" => {
                payment.confirmation = payment.confirmation.as_ref().map(|it| resign(it, &[wallet, agent]));
            }
            "confirmation by the wallet alone" => {
                payment.confirmation = payment.confirmation.as_ref().map(|it| resign(it, &[wallet]));
            }
            "receipt" => payment.receipt = payment.receipt.as_ref().map(|it| resign(it, &[agent])),
            other => panic!("{other}"),
        }
        let principal = did(&stage::principal());
        let found = trace(&story, &stage.ledger.receipts(&principal), &Keyring::default());
        let flaw = found.flaws.first().expect("nothing was found");
        return Err(json!({"code": flaw.code, "at": flaw.at.as_str()}));
    }
    let [session, confirmation, receipt] = [&payment.session, &payment.confirmation, &payment.receipt]
        .map(|document| document.as_ref().unwrap().root().to_value());
    Ok(json!({
        "session": session["intent_id"],
        "confirmation": confirmation["intent_id"],
        "receipt": receipt["action_id"],
        "type": receipt["type"],
        "status": confirmation["status"],
        "signatures": confirmation["signatures"].as_array().unwrap().len(),
    }))
}

fn document_of(value: &Value) -> Document {
    document(value)
}

/// What an agent's account says to steps, one word for each.
fn ledger(case: &Value) -> Outcome {
    let money =
        |text: &Value| Money { amount: Amount::parse(text.as_str().unwrap()).unwrap(), currency: "EUR".to_owned() };
    let mut accounts = Accounts::default();
    accounts.apply(&Step::Open { intent_id: "i", budget: &money(&case["budget"]) }).unwrap();
    let mut said = Vec::new();
    for step in case["steps"].as_array().unwrap() {
        let key = Digest::of(step[1].as_str().unwrap().as_bytes());
        let attempt = accounts.payment(key).map_or(1, |paid| paid.attempt);
        let outcome = match step[0].as_str().unwrap() {
            "reserve" => accounts.apply(&Step::Reserve { intent_id: "i", key, amount: &money(&step[2]) }),
            "grant" => accounts.apply(&Step::Grant { key, attempt, session_id: step[1].as_str().unwrap() }),
            "settle" => accounts.apply(&Step::Settle { key, attempt }),
            "fail" => accounts.apply(&Step::Fail { key, attempt }),
            "release" => accounts.apply(&Step::Release { key, attempt }),
            other => panic!("{other}"),
        };
        said.push(outcome.err().map_or("done", |refusal| refusal.code.name()));
    }
    let account = accounts.account("i").unwrap();
    Ok(json!({"said": said, "settled": account.settled.to_string(), "left": account.left().to_string()}))
}

/// Puts a case to the crate, and says what came out otherwise.
pub(crate) fn judge(theme: &Value, case: &Value) -> Option<String> {
    let outcome = match case["kind"].as_str().unwrap() {
        "wallet" => wallet(theme, case),
        "plan" => plan(case),
        "request" => asks(case),
        "flow" => flow(theme, case),
        "ledger" => ledger(case),
        other => panic!("{other}"),
    };
    let got = outcome.unwrap_or_else(|refused| refused);
    let expected = case["expect"].as_object().unwrap();
    let agrees = expected.iter().all(|(name, value)| got.get(name) == Some(value));
    let refuses = expected.contains_key("code") == got.get("code").is_some();
    (!agrees || !refuses).then(|| format!("expected {}, got {got}", case["expect"]))
}

#[test]
fn every_case_holds() {
    let verdicts = corpus::put("payment", "", judge).unwrap();
    assert_eq!(corpus::surprises(&verdicts), [""; 0]);
    assert!(verdicts.len() >= 60, "{}", verdicts.len());
}
