//! RFC 0020 A.3 R6, RFC 0020 §3.7: an answer is signed as it is written.

use crate::chance;
use crate::failure::Failure;
use aql::{Instant, Intent, Resolution, Responder};
use json::{Document, Limits, Pointer, json};
use trust::{Algorithm, SigningKey, encoding};

/// The signed response, in canonical form.
pub(crate) fn sign(
    intent: &Intent,
    resolution: &Resolution<'_>,
    key: &SigningKey,
    now: Instant,
    rejected_max: usize,
) -> Result<Vec<u8>, Failure> {
    let response_id = format!("urn:oap:intent-response:{}", chance::uuid()?);
    let resolver = key.did_key();
    let responder = Responder {
        response_id: &response_id,
        resolver_did: resolver.as_str(),
        evaluated_at: now,
        rejected_max,
        next_cursor: None,
        recorded: aql::Recorded::default(),
    };
    let write = |signature: Option<&json::Value>| responder.write(intent, resolution, signature).map_err(unanswered);
    let body = write(None)?;
    let signature = json!({
        "alg": Algorithm::EdDsa.name(),
        "kid": key.key_id().to_string(),
        "value": encoding::encode(&key.sign(&body)),
    });
    let response = write(Some(&signature))?;
    check(&response, &body)?;
    Ok(response)
}

/// Whoever receives the response computes the signed bytes again; they must be the ones we signed.
fn check(response: &[u8], body: &[u8]) -> Result<(), Failure> {
    let fault = |what: String| Failure::refused(format!("the response would not verify: {what}"));
    let document = Document::parse(response, &Limits::OURS).map_err(|error| {
        fault(error.to_string()).help("ask for fewer answers: single_best, ranked_top_k, or narrower constraints")
    })?;
    if json::canonical_without(document.root(), "signature") != body {
        return Err(fault("its canonical form is not what was signed".to_owned()));
    }
    let verified = trust::verify_did_key(&document, "resolver_did");
    verified.map(|_| ()).map_err(|error| fault(error.to_string()))
}

/// An evaluation that ran out of steps has no answer.
pub(crate) fn unanswered(error: aql::EvaluationError) -> Failure {
    Failure::refused(error.to_string()).coded(error.code(), &Pointer::root().child("constraints"))
}
