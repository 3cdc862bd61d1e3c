//! RFC 0020 §3.7: the IntentResponse, written once, in canonical form.
//!
//! The bytes written here, without the signature, are the bytes that are signed; the signature is put into them and
//! they are sent. Nothing is serialised twice.

use crate::candidate::Candidate;
use crate::decision::{Decision, plain_evaluations};
use crate::evaluate::EvaluationError;
use crate::intent::Intent;
use crate::resolve::{Judgement, Match, Ranking, Resolution};
use json::Instant;
use json::Writer;

/// Bytes that a candidate mostly takes in an answer, with the reasons; a guess, for the room to begin with.
const ENTRY_BYTES: usize = 1_536;

/// Who answers, and when.
#[derive(Clone, Copy, Debug)]
pub struct Responder<'a> {
    /// The name of the response, `urn:oap:intent-response:…`.
    pub response_id: &'a str,
    /// The DID whose key signs.
    pub resolver_did: &'a str,
    /// When the candidates were judged.
    pub evaluated_at: Instant,
    /// How many rejected candidates are named.
    pub rejected_max: usize,
    /// Where the next page begins, when there is one.
    pub next_cursor: Option<&'a str>,
    /// What was agreed about versions.
    pub recorded: Recorded<'a>,
}

/// What an answer records of the agreement about versions (RFC 0024 §8); nothing when nobody spoke of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded<'a> {
    /// The version that the answer is in.
    pub schema_version: Option<&'a str>,
    /// That a version in use will go.
    pub deprecation_warning: Option<&'a json::Value>,
}

impl Responder<'_> {
    /// Writes the response body in canonical form, with the text of the signature member in its place.
    ///
    /// `signature` is `None` for the bytes to be signed.
    pub fn write(
        &self,
        intent: &Intent,
        resolution: &Resolution<'_>,
        signature: Option<&json::Value>,
    ) -> Result<Vec<u8>, EvaluationError> {
        let named = resolution.matches.len() + resolution.rejections.len().min(self.rejected_max);
        let mut writer = Writer::with_room((1 + named) * ENTRY_BYTES);
        let evaluated_at = self.evaluated_at.to_string();
        let plain = plain_evaluations(intent);
        let plain = plain.as_deref();
        writer.object();
        writer.name("candidates");
        writer.array();
        for (position, found) in resolution.matches.iter().enumerate() {
            self.write_match(intent, found, (position, &evaluated_at, plain), &mut writer)?;
        }
        writer.end_array();
        if let Some(warning) = self.recorded.deprecation_warning {
            writer.name("deprecation_warning");
            writer.value(warning);
        }
        writer.name("evaluated_at");
        writer.string(&evaluated_at);
        writer.name("intent_id");
        writer.string(&intent.intent_id);
        if let Some(cursor) = self.next_cursor {
            writer.name("next_cursor");
            writer.string(cursor);
        }
        if !resolution.rejections.is_empty() {
            writer.name("rejected");
            writer.array();
            for (position, rejection) in resolution.rejections.iter().take(self.rejected_max).enumerate() {
                let id = format!("{}#rejected-{}", self.response_id, position + 1);
                writer.object();
                writer.name("candidate_id");
                writer.string(&rejection.candidate.id);
                writer.name("decision_record");
                let named = (id.as_str(), evaluated_at.as_str());
                decision(intent, rejection.candidate, &rejection.judgement, None, named)
                    .write_with(plain, &mut writer)?;
                writer.end_object();
            }
            writer.end_array();
        }
        writer.name("resolver_did");
        writer.string(self.resolver_did);
        writer.name("resolver_role");
        writer.string("provider");
        writer.name("response_id");
        writer.string(self.response_id);
        if let Some(version) = self.recorded.schema_version {
            writer.name("schema_version");
            writer.string(version);
        }
        if let Some(signature) = signature {
            writer.name("signature");
            writer.value(signature);
        }
        writer.end_object();
        Ok(writer.finish())
    }

    fn write_match(
        &self,
        intent: &Intent,
        found: &Match<'_>,
        (position, evaluated_at, plain): (usize, &str, Option<&[u8]>),
        writer: &mut Writer,
    ) -> Result<(), EvaluationError> {
        let id = format!("{}#candidate-{}", self.response_id, position + 1);
        writer.object();
        writer.name("candidate_id");
        writer.string(&found.candidate.id);
        writer.name("decision_record");
        let ranking = Some((&found.ranking, found.rank));
        decision(intent, found.candidate, &found.judgement, ranking, (&id, evaluated_at)).write_with(plain, writer)?;
        if found.judgement.over_budget {
            writer.name("over_budget");
            writer.bool(true);
        }
        writer.name("payload");
        writer.canonical(found.judgement.payload.as_deref().unwrap_or(b"{}"));
        writer.name("rank");
        writer.number(found.rank as f64);
        writer.name("score");
        writer.number(found.ranking.score);
        writer.end_object();
        Ok(())
    }
}

fn decision<'a>(
    intent: &'a Intent,
    candidate: &'a Candidate,
    judgement: &'a Judgement,
    ranking: Option<(&'a Ranking, usize)>,
    (decision_id, evaluated_at): (&'a str, &'a str),
) -> Decision<'a> {
    Decision { decision_id, evaluated_at, intent, candidate, judgement, ranking }
}
