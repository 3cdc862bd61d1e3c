//! From the question to the receipt: paid, traced, reported; refused, confirmed, failed; and run again.

use crate::market::{Market, merge};
use json::{Value, json};

const OFFERS: [(&str, &str); 3] = [("arno", "40.00"), ("brenta", "20.00"), ("cecina", "10.00")];

fn outcomes(told: &Value) -> Vec<String> {
    told["sessions"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_answer_is_paid_once_and_every_payment_leads_back_to_its_intent() {
    let market = Market::new("whole", &OFFERS, None);
    market.ask(&json!({}));
    market.permit(&json!({}));
    let (paths, intent_id) = (market.paths(), market.intent_id());
    let planned = market.agent.run(&market.pay(&paths, &["--dry-run", "--json"])).exits(0).json();
    assert_eq!(outcomes(&planned), ["planned", "planned", "planned"]);
    market.agent.run(&["trace", &intent_id]).exits(1).complains("knows no such intent");
    let paid = market.agent.run(&market.pay(&paths, &["--json"])).exits(0).json();
    assert_eq!(outcomes(&paid), ["paid", "paid", "paid"]);
    assert_eq!(paid["intent_id"], json!(intent_id));
    let again = market.agent.run(&market.pay(&paths, &["--json"])).exits(0).json();
    assert_eq!(again, paid);
    let traced = market.agent.run(&["trace", &intent_id, "--json"]).exits(0).json();
    assert_eq!((&traced["sound"], &traced["intents"][0]["tree"]["settled"]), (&json!(true), &json!("100")));
    market.agent.run(&["trace", &intent_id]).exits(0).says("every signature and link holds: 3 payments, 100 settled");
    let report = market.agent.run(&["spending", "--json"]).exits(0).json();
    assert_eq!((&report["totals"]["EUR"], report["payments"].as_array().unwrap().len()), (&json!("100"), 3));
    assert!(report["payments"].as_array().unwrap().iter().all(|one| one["intent_id"] == json!(intent_id)));
    let none = market.agent.run(&["spending", "--to", "2026-01-01", "--json"]).exits(0).json();
    assert_eq!(none["payments"], json!([]));
    market.agent.run(&["spending"]).exits(0).says("3 payments:");
    // The wallet keeps the session under the intent's name, also over a restart.
    let session = paid["sessions"][0]["session_id"].as_str().unwrap();
    let market = market.restart_wallet();
    let state: Value = serde_json::from_str(&market.wallet.get(&format!("/oap/payment/sessions/{session}"))).unwrap();
    assert_eq!((&state["status"], &state["intent_id"]), (&json!("settled"), &json!(intent_id)));
    assert_eq!(state["instrument_id"], json!("sepa-ct"));
}

#[test]
fn what_somebody_changed_is_found_and_named() {
    let market = Market::new("changed", &OFFERS[..1], None);
    market.ask(&json!({}));
    market.permit(&json!({}));
    let (paths, intent_id) = (market.paths(), market.intent_id());
    market.agent.run(&market.pay(&paths, &[])).exits(0).says("paid");
    let log = market.agent.read("ledger.ndjson");
    let lines: Vec<&str> = log.lines().collect();
    for (number, (words, instead)) in [
        ("\"category\":\"commercial\"", "\"category\":\"discovery\""),
        ("\"rank\":1", "\"rank\":2"),
        ("\"max_daily_spend\":{\"amount\":\"300.00\"", "\"max_daily_spend\":{\"amount\":\"900.00\""),
        ("\"status\":\"authorized\"", "\"status\":\"settled\""),
        ("\"finality\":\"irrevocable_d1\"", "\"finality\":\"pending\""),
        ("\"type\":\"settlement\"", "\"type\":\"invocation\""),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(lines[number].contains(words), "{words} is not in line {}", number + 1);
        let changed: String = lines
            .iter()
            .enumerate()
            .map(|(at, line)| if at == number { line.replace(words, instead) } else { (*line).to_owned() } + "\n")
            .collect();
        market.agent.file("ledger.ndjson", &changed);
        let found = market.agent.run(&["trace", &intent_id, "--json"]).exits(1).json();
        assert_eq!(found["sound"], json!(false), "{words}");
        assert!(!found["ledger_flaws"].as_array().unwrap().is_empty(), "{words}: {found}");
        market
            .agent
            .run(&market.pay(&paths, &[]))
            .exits(3)
            .complains("nothing is paid from a ledger that is not sound");
    }
    let shorter: String = lines.iter().take(lines.len() - 1).map(|line| format!("{line}\n")).collect();
    market.agent.file("ledger.ndjson", &shorter);
    market.agent.run(&["trace", &intent_id]).exits(1).complains("does not end where it ended last");
    market.agent.file("ledger.ndjson", &log);
    market.agent.run(&["trace", &intent_id]).exits(0);
}

#[test]
fn a_principal_confirms_what_is_above_the_threshold() {
    let market = Market::new("confirm", &OFFERS[..2], None);
    market.ask(&json!({}));
    market.permit(&json!({"constraints": {"require_confirmation_above": {"amount": "40.00", "currency": "EUR"}}}));
    let paths = market.paths();
    let told = market.agent.run(&market.pay(&paths, &["--json"])).exits(0).json();
    assert_eq!(outcomes(&told), ["waiting", "paid"]);
    let session = told["sessions"][0]["session_id"].as_str().unwrap();
    let confirm = ["confirm", session, "--to", &market.wallet.url, "--wallet", &market.wallet.did];
    market.agent.run(&confirm).exits(1).complains("only the principal");
    market.principal.run(&confirm).exits(0).says("authorized");
    let told = market.agent.run(&market.pay(&paths, &["--json"])).exits(0).json();
    assert_eq!(outcomes(&told), ["paid", "paid"]);
}

#[test]
fn a_refused_payment_frees_its_money_and_says_why() {
    let market = Market::new("refused", &OFFERS[..1], None);
    market.ask(&json!({}));
    market.permit(&json!({"constraints": {"max_single_payment": {"amount": "49.99", "currency": "EUR"}}}));
    let paths = market.paths();
    let told = market.agent.run(&market.pay(&paths, &["--json"])).exits(1).json();
    assert_eq!(told["sessions"][0]["code"], json!("mandate_limit_exceeded_single"));
    market.agent.run(&market.pay(&paths, &["--instrument", "card"])).exits(1).says("mandate_limit_exceeded_single");
    // A wider mandate, and the same payment goes through at the next attempt.
    market.permit(&json!({}));
    let told = market.agent.run(&market.pay(&paths, &["--json"])).exits(0).json();
    assert_eq!(outcomes(&told), ["paid"]);
    let traced = market.agent.run(&["trace", &market.intent_id(), "--json"]).exits(0).json();
    assert_eq!(traced["intents"][0]["tree"]["payments"].as_array().unwrap().len(), 3);
}

#[test]
fn money_that_cannot_be_moved_is_not_spent() {
    let holdings = json!({"instruments": [
        {"instrument_id": "sepa-ct", "rail": "sepa_credit_transfer", "currency": "EUR", "balance": "60.00"}
    ]});
    let market = Market::new("failed", &OFFERS[..2], Some(&holdings));
    market.ask(&json!({}));
    market.permit(&json!({}));
    let paths = market.paths();
    let told = market.agent.run(&market.pay(&paths, &["--json"])).exits(1).json();
    assert_eq!(outcomes(&told), ["paid", "failed"]);
    assert_eq!(told["sessions"][1]["code"], json!("insufficient_funds"));
    let traced = market.agent.run(&["trace", &market.intent_id(), "--json"]).exits(0).json();
    assert_eq!(traced["intents"][0]["tree"]["settled"], json!("50"));
}

#[test]
fn nothing_is_paid_for_what_is_not_proved() {
    let market = Market::new("unproved", &OFFERS[..1], None);
    market.ask(&json!({}));
    market.permit(&json!({}));
    let paths = market.paths();
    let answer: Value = serde_json::from_str(&market.agent.read("answer.json")).unwrap();
    let mut forged = answer.clone();
    merge(&mut forged, &json!({"intent_id": "urn:oap:intent:other"}));
    market.agent.file("answer.json", &forged.to_string());
    market.agent.run(&market.pay(&paths, &[])).exits(1).complains("signature_invalid");
    market.agent.file("answer.json", &answer.to_string());
    // Somebody else's key, and a wallet that the mandate does not name.
    market.principal.run(&market.pay(&paths, &[])).exits(1).complains("the key is another's");
    let [answer, question, mandate] = &paths;
    let elsewhere = ["pay", answer, "--intent", question, "--mandate", mandate, "--to", &market.resolver.url];
    market.agent.run(&elsewhere).exits(1).complains("is not the wallet of the mandate");
}
