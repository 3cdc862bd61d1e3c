//! RFC 0020 §3.3, §5: what an issuer writes down about a resolver, to be shown to others.
//!
//! RFC 0009 has no published schema for its records; `docs/performance-record.md` describes ours.

use crate::chance;
use crate::failure::Failure;
use crate::output::text::json_lines;
use aql::{Audit, Checked, Instant, Violation};
use json::{Value, json};
use trust::{Did, Digest, SigningKey};

/// The two documents that a record speaks of.
pub(crate) struct Observed<'a> {
    /// The intent's own name.
    pub(crate) intent_id: &'a str,
    /// Over the signed bytes of the intent.
    pub(crate) intent_digest: Digest,
    /// The response's own name, where it has one.
    pub(crate) response_id: Option<&'a str>,
    /// Over the signed bytes of the response.
    pub(crate) response_digest: Digest,
    /// Who answered, proved by signature.
    pub(crate) resolver: &'a Did,
}

/// The signed record, indented.
pub(crate) fn record(
    observed: &Observed<'_>,
    audit: &Audit,
    key: &SigningKey,
    now: Instant,
) -> Result<String, Failure> {
    let mut record = json!({
        "type": "rialto.performance_record",
        "record_id": format!("urn:rialto:performance-record:{}", chance::uuid()?),
        "issuer_did": key.did_key().as_str(),
        "subject_did": observed.resolver.as_str(),
        "intent_id": observed.intent_id,
        "intent_digest": observed.intent_digest.to_string(),
        "response_digest": observed.response_digest.to_string(),
        "observed_at": now.to_string(),
        "checked": checked(&audit.checked),
        "violations": violations(&audit.violations),
        "violations_untold": audit.untold,
    });
    if let (Some(members), Some(response_id)) = (record.as_object_mut(), observed.response_id) {
        members.insert("response_id".to_owned(), json!(response_id));
    }
    trust::sign(&mut record, key).map_err(|error| Failure::refused(format!("the record: {error}")))?;
    Ok(json_lines(&format!("{record:#}")))
}

/// How much was looked at, for programs.
pub(crate) fn checked(checked: &Checked) -> Value {
    json!({
        "candidates": checked.candidates,
        "leaves_open": checked.leaves_open,
        "leaves_rejected": checked.leaves_rejected,
        "leaves_settled": checked.leaves_settled,
        "rejected": checked.rejected,
        "scores": checked.scores,
    })
}

/// What was found, for programs.
pub(crate) fn violations(violations: &[Violation]) -> Vec<Value> {
    let entry = |violation: &Violation| {
        json!({
            "at": violation.at.as_str(),
            "code": violation.rule.name(),
            "message": violation.detail,
            "section": violation.rule.section(),
        })
    };
    violations.iter().map(entry).collect()
}
