//! RFC 0020 B-01 to B-09: the wallet cases of `conformance/payment`, put to a running wallet over HTTP.

use crate::market::{merge, start_wallet};
use crate::node::Node;
use crate::run::Home;
use json::{Document, Value, json};
use payment::{Mandate, Planned, Wanted};
use std::path::Path;
use trust::{Did, SigningKey};

/// Those who take part in one case; each case has people of its own, so that no case spends another's money.
struct People {
    principal: SigningKey,
    agent: SigningKey,
}

fn post(wallet: &Node, path: &str, body: &Value) -> Value {
    let text = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    serde_json::from_str(&wallet.send(&(head + &text))).unwrap()
}

/// The refusal in an envelope, or the document itself.
fn said(reply: &Value) -> Value {
    match reply.pointer("/error/details") {
        Some(details) => json!({"code": details["code"], "at": details["pointer"]}),
        None => reply.clone(),
    }
}

fn changed(case: &Value, name: &str, mut base: Value) -> Value {
    merge(&mut base, &case.get(name).cloned().unwrap_or_else(|| json!({})));
    base
}

fn intent(case: &Value) -> Value {
    let base = json!({
        "intent_id": "urn:oap:intent:lunch-1",
        "payment_constraints": {
            "allowed_instruments": ["sepa-instant", "sepa-ct"],
            "disallowed_instruments": ["lightning_network"],
            "preferred_instrument": "sepa-ct",
            "max_single_payment": {"amount": "80.00", "currency": "EUR"}
        }
    });
    changed(case, "intent", base)
}

fn mandate(case: &Value, people: &People, wallet: &Node) -> Document {
    let base = json!({
        "mandate_id": format!("urn:oap:mandate:{}", case["id"].as_str().unwrap()),
        "version": "1.0",
        "principal_did": people.principal.did_key().as_str(),
        "agent_did": people.agent.did_key().as_str(),
        "wallet_did": wallet.did,
        "constraints": {
            "max_single_payment": {"amount": "200.00", "currency": "EUR"},
            "max_daily_spend": {"amount": "300.00", "currency": "EUR"},
            "max_monthly_spend": {"amount": "1000.00", "currency": "EUR"},
            "allowed_instruments": ["sepa-instant", "sepa-ct", "card"]
        },
        "validity": {"not_before": "2026-01-01T00:00:00Z", "not_after": "2099-12-31T23:59:59Z"}
    });
    let mut body = changed(case, "mandate", base);
    // The corpus lives on a day in June; here it is today.
    if body["validity"]["not_before"] == "2026-06-02T00:00:00Z" {
        body["validity"]["not_before"] = json!("2099-01-01T00:00:00Z");
    }
    payment::sign_listed(&mut body, &people.principal);
    Document::of(&body).unwrap()
}

fn request(case: &Value, change: &Value, people: &People, mandate: &Mandate) -> Value {
    let planned = Planned {
        offer_ref: "urn:oap:offer:a".to_owned(),
        counterparty: Did::parse("did:web:a.example").unwrap(),
        amount: payment::money(aql::Amount::parse("50.00").unwrap(), "EUR"),
    };
    let wanted = Wanted { instrument_id: None, commerce_primitive: "retail_purchase", purpose: "lunch for forty" };
    let intent = Document::of(&intent(case)).unwrap();
    let mut body = payment::request(intent.root(), &planned, mandate, &wanted);
    merge(&mut body, change);
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    if case.get("raw_key").is_none() {
        let key = payment::idempotency_key(&text("intent_id"), &text("offer_ref"), &mandate.agent);
        body["idempotency_key"] = json!(key.to_string());
    }
    trust::sign(&mut body, &people.agent).unwrap();
    body
}

/// What the wallet says to a case.
fn put(case: &Value, number: u8, wallet: &Node) -> Value {
    let people = People {
        principal: SigningKey::from_seed([number; 32]),
        agent: SigningKey::from_seed([number.wrapping_add(100); 32]),
    };
    let document = mandate(case, &people, wallet);
    let registered = post(wallet, "/oap/payment/mandates", &document.root().to_value());
    if registered.get("error").is_some() {
        return said(&registered);
    }
    let mandate = Mandate::read(&document).unwrap();
    let send = |change: &Value| post(wallet, "/oap/payment/sessions", &request(case, change, &people, &mandate));
    for before in case["before"].as_array().into_iter().flatten() {
        let granted = send(before);
        assert!(granted.get("session_id").is_some(), "{}: {granted}", case["id"]);
    }
    said(&send(&case.get("request").cloned().unwrap_or_else(|| json!({}))))
}

#[test]
fn every_wallet_case_holds_over_http() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/payment");
    let (mut wallet, mut cases, mut failures) = (None, 0_u8, Vec::new());
    let home = Home::new("paying-cases");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file: Value = serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        for case in file["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "wallet") {
            let wallet = wallet.get_or_insert_with(|| start_wallet(&home, Some(&file["holdings"])));
            cases += 1;
            let got = put(case, cases, wallet);
            let expected = case["expect"].as_object().unwrap();
            let agrees = expected.iter().all(|(name, value)| got.get(name) == Some(value));
            if !agrees || (expected.contains_key("code") != got.get("code").is_some()) {
                failures.push(format!("{}: {got}", case["id"]));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(cases > 50, "{cases}");
}
