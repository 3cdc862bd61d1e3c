//! RFC 0020 §3.1: intents, as text and as valid ones with one flaw.
//!
//! Text is accepted by both engines or refused by both; where it is no JSON, the code and the place agree as well. A
//! document with several flaws may be refused for any of them, so codes and places beyond JSON are compared where
//! there is one flaw at most: a generated intent that both accept, changed in one place.

#![no_main]

use aql::{Intent, Limits};
use conformance::chance::Chance;
use conformance::generate;
use fuzzing::{Answer, place, refused, twin_refused};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((0x80.., choices)) => changed_in_one_place(&mut Chance::from_bytes(choices)),
    _ => as_text(data),
});

fn as_text(bytes: &[u8]) {
    let is_json = reference::parse(bytes, &reference::Limits::intent()).is_ok();
    let (fast, twin) = answers(bytes);
    if engines_may_differ(&fast, &twin) {
        return;
    }
    assert_eq!(fast.is_ok(), twin.is_ok(), "aql {fast:?}, reference {twin:?}");
    if !is_json {
        assert_eq!(fast, twin);
    }
}

fn changed_in_one_place(chance: &mut Chance<'_>) {
    let mut intent = whole_intent(chance);
    let (fast, twin) = answers(intent.to_string().as_bytes());
    assert_eq!(fast.is_ok(), twin.is_ok(), "aql {fast:?}, reference {twin:?}: {intent}");
    if fast.is_err() {
        return;
    }
    let at = place(chance, &intent);
    change(chance, &mut intent, at.as_str());
    let (fast, twin) = answers(intent.to_string().as_bytes());
    let found = |code: &str| [&fast, &twin].iter().any(|answer| matches!(answer, Err((named, _)) if named == code));
    // Another category can break two rules at once, and so does another value in place of the whole intent.
    let two_flaws = found("event_rate_missing") && found("payment_constraints_misplaced");
    let missing = REQUIRED.iter().filter(|name| intent.get(name).is_none()).count();
    if engines_may_differ(&fast, &twin) {
        return;
    }
    assert_eq!(fast.is_ok(), twin.is_ok(), "aql {fast:?}, reference {twin:?}: {intent}");
    if !two_flaws && missing < 2 {
        assert_eq!(fast, twin, "after a change at `{at}`: {intent}");
    }
}

const REQUIRED: [&str; 6] = ["intent_id", "issuer_did", "category", "constraints", "projection", "validity"];

fn answers(bytes: &[u8]) -> (Answer<()>, Answer<()>) {
    let fast = Intent::parse(bytes, &Limits::STANDARD).map(|_| ()).map_err(|refusal| refused(&refusal));
    let value = reference::parse(bytes, &reference::Limits::intent());
    let twin = value.and_then(|value| reference::read_intent(&value).map(|_| ()));
    (fast, twin.map_err(|refusal| twin_refused(&refusal)))
}

/// What a pattern weighs and which rare features are read is each engine's own affair.
fn engines_may_differ(fast: &Answer<()>, twin: &Answer<()>) -> bool {
    let code = |answer: &Answer<()>| answer.as_ref().err().map(|(code, _)| code.clone()).unwrap_or_default();
    [code(fast), code(twin)].iter().any(|code| code == "regex_too_large" || code == "regex_feature_unsupported")
}

/// An intent with every member that a choice puts in.
fn whole_intent(chance: &mut Chance<'_>) -> Value {
    let record = generate::record(chance);
    let mut intent = generate::intent(chance, &record);
    for (name, value) in [
        ("agent_did", json!("did:web:agent.example")),
        ("delegation_chain", json!([{}, {"a": 1}])),
        ("schema_version", json!("0.1.0")),
        ("schema_id", json!("urn:schema:intent")),
        ("version_negotiation", json!({"permit_upgrade": true, "permit_downgrade": false})),
        ("signature", json!({"alg": "EdDSA", "value": "AA", "kid": "#key-1"})),
        ("max_event_rate_per_minute", json!(6)),
    ] {
        if chance.one_in(4) {
            intent[name] = value;
        }
    }
    if chance.one_in(6) && intent.get("max_event_rate_per_minute").is_some() {
        intent["category"] = json!("subscription");
    }
    if intent["category"] == "commercial" && chance.one_in(2) {
        intent["payment_constraints"] = json!({
            "allowed_instruments": ["sepa-ct", "card"], "disallowed_instruments": ["cash"],
            "preferred_instrument": "card", "allowed_commerce_primitives": ["purchase"],
            "settlement_currency_preference": "EUR", "require_bank_account_vc": true,
            "max_single_payment": {"amount": "10.00", "currency": "EUR"}, "auction_parametric_session": false,
        });
    }
    intent
}

#[rustfmt::skip]
const WORDS: [&str; 48] = [
    "", "/", "/a", "a", "/a~", "/**/x/**", "/**/**", "/*/b", "eq", "in", "not_in", "matches", "before", "within",
    "lt", "exists", "EQ", "starts_with", "commercial", "subscription", "discovery", "EUR", "eur", "ABCDEF", "10.00",
    "-1", "1e3", "0.0000000000000000001", "1000000000000000000", "single_best", "ranked_top_k", "single_winner",
    "proportional_quality", "2026-01-01T00:00:00Z", "2026-01-01", "2026-01-02T00:00:00+01:00", "2025-12-31T23:59:60Z",
    "urn:oap:intent:", "urn:oap:intent:x", "did:key:", "did:a:b", "did:a:b\nc", "DID:a:b", "L3", "L1-NC", "l3", "(",
    "ES384",
];

const NUMBERS: [f64; 12] = [0.0, -0.0, 1.0, 2.0, 3.0, 0.3, 0.7, -1.0, 1.5, 1_000.0, 1_001.0, 9_007_199_254_740_991.0];

fn change(chance: &mut Chance<'_>, intent: &mut Value, at: &str) {
    let kind = chance.below(9);
    if kind == 0 {
        return remove(intent, at);
    }
    let Some(value) = intent.pointer_mut(at) else { return };
    match (kind, value) {
        (1, value) => *value = generate::scalar(chance),
        (2, value) => *value = generate::value(chance, 1),
        (3, Value::Object(members)) => {
            let name =
                chance.word(&["x", "", "path", "any_of", "not", "from", "include", "a/b~c", "validity", "\u{1f600}"]);
            members.insert(name.to_owned(), generate::scalar(chance));
        }
        (4, value) => *value = json!(chance.word(&WORDS)),
        (5, value) => *value = json!(chance.pick(&NUMBERS)),
        (6, Value::Array(elements)) => {
            let times = *chance.pick(&[2, 9, 129, 257, 1_001]).unwrap_or(&2);
            let element = elements.first().cloned().unwrap_or_default();
            elements.resize(times, element);
        }
        (7, value) => {
            for _ in 0..1 + chance.below(18) {
                *value = json!({"not": value.take()});
            }
        }
        (_, Value::String(text)) => {
            let times = *chance.pick(&[2, 33, 257, 600]).unwrap_or(&2);
            *text = if chance.one_in(2) { text.repeat(times) } else { "/a".repeat(times) };
            text.truncate(
                text.char_indices().map(|(start, _)| start).take_while(|start| *start < 4_000).last().unwrap_or(0),
            );
        }
        (_, Value::Array(elements)) => elements.reverse(),
        (_, value) => *value = Value::Null,
    }
}

fn remove(intent: &mut Value, at: &str) {
    let Some((above, last)) = at.rsplit_once('/') else { return };
    match intent.pointer_mut(above) {
        Some(Value::Object(members)) => {
            members.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(elements)) => {
            if let Some(position) = last.parse().ok().filter(|position| *position < elements.len()) {
                elements.remove(position);
            }
        }
        _ => {}
    }
}
