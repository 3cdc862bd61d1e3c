//! RFC 0020 §3.1: one complete intent, and what becomes of it with one member changed.

use super::*;
use crate::parse::value;

/// The smallest intent with one member put in, or taken out if the text is empty.
pub(crate) fn intent_with(name: &str, text: &str) -> Value {
    let Value::Object(mut members) = value(
        r#"{"intent_id":"urn:oap:intent:1","issuer_did":"did:web:issuer.example","category":"discovery",
            "constraints":{"path":"/a","operator":"exists","value":true},"projection":{"include":["/"]},
            "validity":{"from":"2026-05-04T12:00:00Z","to":"2026-05-04T13:00:00Z"}}"#,
    ) else {
        panic!("an intent is an object")
    };
    members.retain(|(key, _)| key != name);
    if !text.is_empty() {
        members.push((name.to_owned(), value(text)));
    }
    Value::object(members)
}

#[track_caller]
fn check(name: &str, text: &str) {
    read_intent(&intent_with(name, text)).unwrap();
}

#[track_caller]
fn check_refused(name: &str, text: &str, code: &'static str, at: &str) {
    assert_eq!(read_intent(&intent_with(name, text)).unwrap_err(), Refusal::new(code, at), "{name}: {text}");
}

#[test]
fn the_document_is_a_closed_object() {
    for text in ["[]", "null", "1", r#""intent""#] {
        assert_eq!(read_intent(&value(text)).unwrap_err(), Refusal::new("wrong_type", ""));
    }
    check_refused("nonce", "1", "unknown_field", "/nonce");
    check_refused("__proto__", "{}", "unknown_field", "/__proto__");
    for name in ["intent_id", "issuer_did", "category", "constraints", "projection", "validity"] {
        check_refused(name, "", "missing_field", &format!("/{name}"));
    }
}

#[test]
fn parties_are_named() {
    check("intent_id", r#""urn:oap:intent:x:y""#);
    check_refused("intent_id", r#""urn:oap:intent:""#, "invalid_value", "/intent_id");
    check_refused("intent_id", r#""intent_01H""#, "invalid_value", "/intent_id");
    check_refused("intent_id", "1", "wrong_type", "/intent_id");
    check("issuer_did", r#""did:key:z6Mk""#);
    for did in ["did:web:", "did::x", "did:Web:x", "web:x", " did:web:x"] {
        check_refused("issuer_did", &format!("\"{did}\""), "invalid_value", "/issuer_did");
    }
    check("agent_did", r#""did:web:agent.example""#);
    check_refused("agent_did", r#""agent""#, "invalid_value", "/agent_did");
    check_refused("agent_did", "null", "wrong_type", "/agent_did");
    check("delegation_chain", r#"[{"jwt":"x"}]"#);
    check("delegation_chain", "[]");
    check_refused("delegation_chain", r#"["x"]"#, "wrong_type", "/delegation_chain/0");
    check_refused("delegation_chain", "{}", "wrong_type", "/delegation_chain");
}

#[test]
fn categories_and_policies_are_closed() {
    for category in ["commercial", "knowledge", "action", "delegation", "discovery"] {
        check("category", &format!("\"{category}\""));
    }
    check_refused("category", r#""search""#, "invalid_value", "/category");
    check_refused("category", "[]", "wrong_type", "/category");
    check_refused("category", r#""subscription""#, "event_rate_missing", "/max_event_rate_per_minute");
    for policy in ["single_best", "ranked_set", "full_set"] {
        check("resolution_policy", &format!("\"{policy}\""));
    }
    assert_eq!(read_intent(&intent_with("", "")).unwrap().resolution_policy, "ranked_set");
    check_refused("resolution_policy", r#""best""#, "invalid_value", "/resolution_policy");
    check_refused("resolution_policy", "{}", "wrong_type", "/resolution_policy");
}

#[test]
fn blocks_are_read_with_their_places() {
    check_refused("constraints", "[]", "empty_list", "/constraints");
    check_refused("constraints", r#"[{"not":{}}]"#, "missing_field", "/constraints/0/not/path");
    check_refused("projection", r#"{"include":[]}"#, "empty_list", "/projection/include");
    check_refused("budget", "{}", "missing_field", "/budget/amount");
    check_refused("quality_floor", r#"{"x":1}"#, "unknown_field", "/quality_floor/x");
    check_refused("validity", "{}", "missing_field", "/validity/from");
    check("quality_floor", "{}");
}

#[test]
fn the_event_rate_is_a_positive_integer() {
    check("max_event_rate_per_minute", "1");
    check("max_event_rate_per_minute", "60.0");
    check_refused("max_event_rate_per_minute", "0", "invalid_value", "/max_event_rate_per_minute");
    check_refused("max_event_rate_per_minute", "1.5", "invalid_value", "/max_event_rate_per_minute");
    check_refused("max_event_rate_per_minute", r#""1""#, "wrong_type", "/max_event_rate_per_minute");
}

#[test]
fn a_signature_has_a_shape() {
    check("signature", r#"{"alg":"EdDSA","value":"x"}"#);
    check("signature", r#"{"alg":"ES384","value":"","kid":"k"}"#);
    check_refused("signature", r#""x""#, "wrong_type", "/signature");
    check_refused("signature", r#"{"value":"x"}"#, "missing_field", "/signature/alg");
    check_refused("signature", r#"{"alg":"none","value":"x"}"#, "alg_not_allowed", "/signature/alg");
    check_refused("signature", r#"{"alg":"EdDSA"}"#, "missing_field", "/signature/value");
    check_refused("signature", r#"{"alg":"EdDSA","value":1}"#, "wrong_type", "/signature/value");
    check_refused("signature", r#"{"alg":"EdDSA","value":"x","kid":1}"#, "wrong_type", "/signature/kid");
    check_refused("signature", r#"{"alg":"EdDSA","value":"x","sig":1}"#, "unknown_field", "/signature/sig");
}

#[test]
fn payment_constraints_are_commercial() {
    check_refused("payment_constraints", "{}", "payment_constraints_misplaced", "/payment_constraints");
    let commercial = |block: &str| {
        let Value::Object(mut members) = intent_with("category", r#""commercial""#) else { panic!("an object") };
        members.push(("payment_constraints".to_owned(), value(block)));
        read_intent(&Value::object(members))
    };
    assert!(commercial(r#"{"preferred_instrument":"sepa-ct"}"#).is_ok());
    assert_eq!(commercial(r#"{"x":1}"#).unwrap_err(), Refusal::new("unknown_field", "/payment_constraints/x"));
}

#[test]
fn version_members_are_typed() {
    check("schema_version", r#""1.3""#);
    check("schema_id", r#""https://schemas.example/intent""#);
    check("version_negotiation", r#"{"permit_upgrade":true,"permit_downgrade":false}"#);
    check_refused("schema_version", "1.3", "wrong_type", "/schema_version");
    check_refused("schema_id", "{}", "wrong_type", "/schema_id");
    check_refused("version_negotiation", "true", "wrong_type", "/version_negotiation");
    check_refused(
        "version_negotiation",
        r#"{"permit_upgrade":1}"#,
        "wrong_type",
        "/version_negotiation/permit_upgrade",
    );
    check_refused("version_negotiation", r#"{"x":true}"#, "unknown_field", "/version_negotiation/x");
}
