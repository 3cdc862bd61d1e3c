//! RFC 0020 §3.1: a draft is an intent without what a machine can fill in: its id, its issuer, its window.

use aql::Instant;
use json::{Node, Value, json};
use trust::Did;

/// How long a filled-in window stays open.
const WINDOW_SECONDS: i64 = 3_600;

/// What a draft may lack.
pub(crate) struct Missing {
    pub(crate) intent_id: String,
    pub(crate) issuer: Did,
    pub(crate) now: Instant,
}

/// A completed draft, and what it lacked.
pub(crate) struct Completed {
    pub(crate) intent: Value,
    pub(crate) filled: Vec<String>,
}

/// Whether an object reads like an intent, signed or not: it has two of the three members that make the question.
pub(crate) fn is_intent(root: Node<'_>) -> bool {
    ["category", "constraints", "projection"].iter().filter(|name| root.get(name).is_some()).count() >= 2
}

/// A new intent id.
pub(crate) fn intent_id(uuid: &str) -> String {
    format!("urn:oap:intent:{uuid}")
}

/// Fills in what is missing; what is there stays as it is, even where it is wrong.
pub(crate) fn complete(root: Node<'_>, missing: Missing) -> Completed {
    let mut completed = Completed { intent: root.to_value(), filled: Vec::new() };
    let from = Instant::from_unix(missing.now.seconds(), 0);
    let to = from.plus(WINDOW_SECONDS);
    let fillings = [
        ("intent_id", json!(missing.intent_id), missing.intent_id.clone()),
        ("issuer_did", json!(missing.issuer.as_str()), missing.issuer.to_string()),
        ("validity", json!({"from": from.to_string(), "to": to.to_string()}), format!("{from} to {to}")),
    ];
    if let Value::Object(members) = &mut completed.intent {
        for (name, value, words) in fillings {
            if !members.contains_key(name) {
                members.insert(name.to_owned(), value);
                completed.filled.push(format!("{name} {words}"));
            }
        }
    }
    completed
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::Document;

    fn completed(draft: Value) -> Completed {
        let issuer = Did::parse("did:web:issuer.example").unwrap();
        let now = Instant::parse("2026-11-15T12:00:00.5Z").unwrap();
        let document = Document::of(&draft).unwrap();
        complete(document.root(), Missing { intent_id: intent_id("1"), issuer, now })
    }

    #[test]
    fn what_is_missing_is_filled_in() {
        let done = completed(json!({"category": "discovery"}));
        let validity = json!({"from": "2026-11-15T12:00:00Z", "to": "2026-11-15T13:00:00Z"});
        assert_eq!(
            done.intent,
            json!({"category": "discovery", "intent_id": "urn:oap:intent:1", "issuer_did": "did:web:issuer.example",
                "validity": validity})
        );
        assert_eq!(done.filled.len(), 3);
    }

    #[test]
    fn what_is_there_stays() {
        let draft = json!({"intent_id": 5, "issuer_did": "did:web:other.example", "validity": null});
        let done = completed(draft.clone());
        assert_eq!((done.intent, done.filled.len()), (draft, 0));
    }

    #[test]
    fn answers_and_offers_are_no_intents() {
        let is = |value| is_intent(Document::of(&value).unwrap().root());
        assert!(is(json!({"category": "discovery", "constraints": {}})));
        assert!(!is(json!({"intent_id": "urn:oap:intent:1", "candidates": []})));
        assert!(!is(json!({"offer_id": "o", "category": "x"})));
        assert!(!is(json!([])));
    }
}
