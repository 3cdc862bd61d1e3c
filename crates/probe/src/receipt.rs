//! RFC 0019, RFC 0020 A.5: what an examination found, as a conformance receipt that its examiner signs.
//!
//! The published schema is open, so the levels of RFC 0020 §7 and the completeness ratio stand beside what it names;
//! `claimed_levels` has the core protocol's levels alone, since its pattern allows no others (decisions/0110).

use crate::embedded::THEMES;
use crate::examine::{Examination, Level};
use anyhow::{Result, ensure};
use aql::Instant;
use json::{Value, json};
use trust::{Algorithm, Digest, SigningKey, encoding};

/// How long a receipt holds, in seconds.
const VALID_SECONDS: i64 = 90 * 24 * 3_600;
/// The version of the texts that the corpus was written for.
const SPEC_VERSION: &str = "1.0";
/// The one name that the schema allows for a suite.
const SUITE: &str = "oap-conformance-test-suite";

/// Who was examined, where, and as what.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest: Digest,
}

impl About {
    pub(crate) fn of(url: &str, manifest: &Value) -> Self {
        let text = |name: &str| manifest.pointer(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        Self {
            url: url.to_owned(),
            name: text("/tool/name"),
            version: text("/tool/version"),
            manifest: Digest::of(&json::canonical_value(manifest)),
        }
    }
}

impl Examination {
    /// The receipt of a whole examination, signed by `examiner` at `now`; `name` is random.
    pub fn receipt(&self, examiner: &SigningKey, now: Instant, name: &str) -> Result<Value> {
        let Some(completeness) = self.completeness.as_ref().filter(|_| self.is_whole) else {
            anyhow::bail!("only a whole examination gets a receipt, and the node must take records for it");
        };
        let levels = self.surface.levels();
        ensure!(
            !levels.is_empty(),
            "level L0 is not met, and a receipt must claim a level: {}",
            self.surface.l0.join("; ")
        );
        let (passed, failed, skipped) = self.totals();
        let met = [("Q1", self.q1()), ("Q2", self.q2())].into_iter().filter(|(_, level)| *level == Level::Met);
        let did = examiner.did_key();
        let mut receipt = json!({
            "receipt_id": format!("urn:oap:conformance:{name}"),
            "type": "conformance",
            "timestamp": now.to_string(),
            "implementation": {"did": self.did, "name": self.about.name, "version": self.about.version},
            "suite": {
                "name": SUITE,
                "version": format!("{}+rialto.corpus", env!("CARGO_PKG_VERSION")),
                "spec_version": SPEC_VERSION,
            },
            "target": {"uri": self.about.url, "manifest_hash": self.about.manifest.to_string()},
            "claimed_levels": levels,
            "results_summary": {
                "total": passed + failed + skipped, "passed": passed, "failed": failed, "skipped": skipped,
            },
            "fixtures_hash": fixtures().to_string(),
            "results_hash": Digest::of(&json::canonical_value(&self.to_value())).to_string(),
            "attestor": {"did": did.as_str(), "method": if did.as_str() == self.did { "self" } else { "live_witness" }},
            "validity": {"not_before": now.to_string(), "not_after": now.plus(VALID_SECONDS).to_string()},
            "previous_receipt_hash": "genesis",
            "aql_levels": met.map(|(name, _)| name).collect::<Vec<_>>(),
            "aql_completeness_ratio": completeness.ratio(),
            "aql_completeness": {
                "questions": completeness.questions, "true_answers": completeness.true_answers,
                "returned": completeness.returned, "unexpected": completeness.unexpected,
            },
        });
        let value = encoding::encode(&examiner.sign(&json::canonical_value(&receipt)));
        if let Some(members) = receipt.as_object_mut() {
            let by = examiner.key_id().to_string();
            members.insert("signatures".into(), json!([{"by": by, "alg": Algorithm::EdDsa.name(), "value": value}]));
        }
        Ok(receipt)
    }
}

/// The digest of every file of the corpus, its path and its text.
fn fixtures() -> Digest {
    let bytes: Vec<u8> = THEMES.iter().flat_map(|(path, text)| [path.as_bytes(), text.as_bytes()].concat()).collect();
    Digest::of(&bytes)
}
