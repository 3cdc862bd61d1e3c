//! What we send and keep is what `spec/schemas` says.

use crate::stage::{Stage, answer, intent_body, mandate_body, offer, principal, signed};
use json::Document;
use payment::wallet::Holdings;
use serde_json::Value;
use std::path::Path;

fn validator(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/schemas").join(name);
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn check(validator: &jsonschema::Validator, document: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}\n{document:#}");
}

#[test]
fn requests_sessions_confirmations_and_entries_are_as_their_schemas_say() {
    let mut stage = Stage::new(Holdings::usual());
    let intent = signed(intent_body(), &principal());
    let answer = answer(&intent, &[offer("a", "40.00", 0.9), offer("b", "20.00", 0.8)]);
    let mandate = stage.mandate(mandate_body()).unwrap();
    stage.pay(&intent, &answer, &mandate).unwrap();
    let story = stage.ledger.story("urn:oap:intent:lunch-1").unwrap();
    let value = |document: &Document| document.root().to_value();
    let [request, session, confirmation, entry] = [
        "rialto-payment-session-request.schema.json",
        "rialto-payment-session.schema.json",
        "oap-settlement-confirmation.schema.json",
        "rialto-ledger-entry.schema.json",
    ]
    .map(validator);
    for payment in &story.payments {
        check(&request, &value(&payment.request));
        check(&session, &value(payment.session.as_ref().unwrap()));
        check(&confirmation, &value(payment.confirmation.as_ref().unwrap()));
    }
    let lines: Vec<&[u8]> = payment::lines(&stage.log).collect();
    assert_eq!(lines.len(), 2 + 2 * 4);
    for line in lines {
        let mut value: Value = serde_json::from_slice(line).unwrap();
        check(&entry, &value);
        value["previous"] = Value::Null;
        assert!(!entry.is_valid(&value));
    }
}
