//! The language from outside: audits of answers, what an evaluation may cost, patterns that would hang, hostile intents, who repeats whom.

#[cfg(test)]
mod advice;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod batches;
#[cfg(test)]
mod corners;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod fuel;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod likeness;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod patterns;

/// A complete intent with these constraints.
#[cfg(test)]
fn intent(constraints: json::Value) -> json::Value {
    json::json!({
        "intent_id": "urn:oap:intent:outside",
        "issuer_did": "did:key:z6Mk",
        "category": "discovery",
        "constraints": constraints,
        "projection": {"include": ["/name"]},
        "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
    })
}

/// An intent as it is read from a stranger's bytes.
#[cfg(test)]
fn read(intent: &json::Value) -> aql::Intent {
    aql::Intent::parse(intent.to_string().as_bytes(), &aql::Limits::STANDARD).unwrap().0
}

/// A candidate of this record.
#[cfg(test)]
fn candidate(id: &str, record: json::Value) -> aql::Candidate {
    let document = json::Document::of(&json::json!({"id": id, "record": record})).unwrap();
    aql::Candidate::read(document, 1).unwrap()
}
