//! RFC 0020 B.3: `rialto pay` that is killed, and many of them at once: money neither lost nor doubled.

use crate::market::Market;
use json::{Value, json};
use std::time::Duration;

const OFFERS: [(&str, &str); 3] = [("arno", "40.00"), ("brenta", "20.00"), ("cecina", "10.00")];

/// What the wallet's own book says was settled, session by session.
fn settled(market: &Market) -> Vec<String> {
    let mut sessions: Vec<String> = market
        .book()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|entry| entry["step"] == "settle" && entry["confirmation"]["status"] == "settled")
        .map(|entry| entry["confirmation"]["session_id"].as_str().unwrap().to_owned())
        .collect();
    sessions.sort();
    sessions.dedup();
    sessions
}

#[test]
fn a_payment_that_is_killed_again_and_again_is_made_once() {
    let market = Market::new("killed", &OFFERS, None);
    market.ask(&json!({}));
    market.permit(&json!({}));
    let paths = market.paths();
    for millis in (0..24).map(|step| step * 6) {
        let mut child = market.agent.command(&[], &market.pay(&paths, &[])).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        let _ = child.kill();
        child.wait().unwrap();
    }
    market.agent.run(&market.pay(&paths, &[])).exits(0);
    assert_eq!(settled(&market).len(), 3);
    let traced = market.agent.run(&["trace", &market.intent_id(), "--json"]).exits(0).json();
    assert_eq!(traced["intents"][0]["tree"]["settled"], json!("100"));
}

#[test]
fn eight_agents_that_pay_the_same_answer_at_once_pay_it_once() {
    let market = Market::new("together", &OFFERS, None);
    market.ask(&json!({}));
    market.permit(&json!({}));
    let paths = market.paths();
    let children: Vec<_> =
        (0..8).map(|_| market.agent.command(&[], &market.pay(&paths, &["--json"])).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(settled(&market).len(), 3);
    let report = market.agent.run(&["spending", "--json"]).exits(0).json();
    assert_eq!(report["totals"]["EUR"], json!("100"));
}
