//! RFC 0020 §7: a live node as an implementation of the language, reached over HTTP.
//!
//! INVARIANT: every reply is held to its signature, and every answer to the audit of RFC 0020 §3.7, whatever the case
//! is about; a case passes only when both hold.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use crate::corpus::Case;
use crate::examine::Negotiation;
use crate::implementation::{Answer, Implementation};
use crate::parties::{Clock, Parties};
use crate::question::{Question, expected};
use crate::target::{OAP_JSON, Said, Target};
use crate::wire::Request;
use crate::{agrees, shown, steps};
use anyhow::{Context, Result, bail};
use aql::{Category, Instant, Intent, Limits};
use json::{Document, Value, json};
use std::sync::{Mutex, PoisonError};
use trust::SigningKey;

/// The DID, the name and the window that cases of the corpus have when they are not the point.
const DESK: &str = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const DESK_INTENT: &str = "urn:oap:intent:translation-desk-1";
const DESK_WINDOW: (&str, &str) = ("2026-06-01T08:00:00Z", "2026-06-01T20:00:00Z");

/// Codes that are said while bytes become a document.
const OF_JSON: [&str; 11] = [
    "json_syntax",
    "json_too_large",
    "json_too_deep",
    "json_too_many_nodes",
    "json_too_many_keys",
    "json_key_too_long",
    "json_string_too_long",
    "json_duplicate_key",
    "number_out_of_range",
    "number_too_long",
    "invalid_unicode",
];

/// Codes that are said only after an intent was read to its end.
const AFTER_READING: [&str; 11] = [
    "intent_expired",
    "intent_not_yet_valid",
    "validity_too_long",
    "category_not_supported",
    "delegation_invalid",
    "query_budget_exceeded",
    "regex_budget_exceeded",
    "signature_missing",
    "invalid_did",
    // What a version is good for is judged by the handshake, not by the reader.
    "schema_version_invalid",
    "schema_version_not_accepted",
];

/// Seconds by which the edge of a window is missed, since clocks go on while a message travels.
const NEARLY: i64 = 5;

/// A node and the keys it is examined with.
pub struct Live {
    pub(crate) target: Target,
    pub(crate) parties: Parties,
    published: Mutex<Vec<(String, String)>>,
    /// Whose mappings the node's operator trusts, where that is known.
    pub(crate) publisher: Option<SigningKey>,
    timing: Mutex<Option<Negotiation>>,
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// It cannot be put over HTTP, and why.
    NotPut(String),
}

const NO_RECORDS: &str = "the node has no endpoint for records, so nothing can be published to ask for";

impl Live {
    /// Makes keys for a run from 32 random bytes; `clock` tells the seconds since 1970.
    pub fn new(target: Target, seed: [u8; 32], clock: Clock) -> Self {
        let parties = Parties::new(seed, clock);
        Self { target, parties, published: Mutex::default(), publisher: None, timing: Mutex::default() }
    }

    /// Notes how long the handshake takes.
    #[cfg(feature = "http")]
    pub(crate) fn time(&self, timing: Negotiation) {
        *self.timing.lock().unwrap_or_else(PoisonError::into_inner) = Some(timing);
    }

    /// How long the handshake takes, where it was timed.
    pub(crate) fn timed(&self) -> Option<Negotiation> {
        *self.timing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a case and says what became of it.
    pub(crate) fn put(&self, case: &Case) -> Outcome {
        let done = match case.kind.as_str() {
            "refuse" | "accept" => self.put_intent(case),
            "window" => self.put_window(case),
            "verify" => self.put_signature(case),
            "parse" => self.put_bytes(case),
            "steps" => steps::put(self, case),
            #[cfg(feature = "http")]
            "versions" | "measure" => crate::versions::put(self, case),
            _ => self.put_question(case),
        };
        done.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
    }

    fn put_question(&self, case: &Case) -> Result<Outcome> {
        if self.target.records.is_none() {
            return Ok(Outcome::NotPut(NO_RECORDS.into()));
        }
        let question = match Question::of(case, &self.parties) {
            Ok(question) => question,
            Err(reason) => return Ok(Outcome::NotPut(reason)),
        };
        match self.ask(case, &question)? {
            Ok(found) => Ok(compare(&expected(case), &question.read(case, found))),
            Err(refused) => Ok(compare(&expected(case), &refused)),
        }
    }

    /// Publishes what a question is about, asks it, and gathers what is said about its records.
    fn ask(&self, case: &Case, question: &Question) -> Result<Result<Value, Value>> {
        if !question.is_refused() {
            for dressed in &question.records {
                self.publish(&dressed.by, dressed.kind, &dressed.record)?;
                if let Some(said) = &dressed.evidence {
                    let mut evidence = said.clone();
                    evidence.insert("id".into(), json!(format!("urn:rialto:evidence:{}", self.parties.fresh())));
                    evidence.insert("subject_did".into(), json!(dressed.id));
                    evidence.insert("issuer_did".into(), json!(self.parties.second.did_key().as_str()));
                    self.publish("second", "evidence", &Value::Object(evidence))?;
                }
            }
        }
        let intent = signed(&question.intent, &self.parties.first)?;
        let said = self.ask_intent(&intent)?;
        if let Some((code, at)) = said.refusal() {
            return Ok(Err(json!({"code": code, "at": at})));
        }
        let ours = |found: &Value| {
            question.records.iter().any(|dressed| found.get("candidate_id") == Some(&json!(dressed.id)))
        };
        let mut found = json!({});
        for list in ["candidates", "rejected"] {
            let entries = shown::list(&said.value, list);
            found[list] = entries.iter().filter(|entry| ours(entry)).map(shown::entry).collect();
        }
        let named = |list: &str| {
            shown::list(&found, list).iter().filter_map(|entry| entry.get("id").cloned()).collect::<Vec<_>>()
        };
        let (mut told, wanted) = (named("candidates"), shown::list(&case.expect, "rejected").len());
        told.extend(named("rejected"));
        let alone = case.kind != "resolve";
        let missing: Vec<_> = question.records.iter().filter(|dressed| !told.contains(&json!(dressed.id))).collect();
        if alone || named("rejected").len() < wanted {
            for dressed in missing {
                let entry = self.explained(&intent, &dressed.id)?;
                // Who satisfied everything and has no place is left out by the policy, and is not among the rejected.
                let left_out = ["accept", "over_budget"].iter().any(|word| entry.get("outcome") == Some(&json!(word)));
                if (alone || !left_out)
                    && let Some(rejected) = found.get_mut("rejected").and_then(Value::as_array_mut)
                {
                    rejected.push(entry);
                }
            }
        }
        Ok(Ok(found))
    }

    /// The decision record of a candidate that an answer does not name.
    fn explained(&self, intent: &Value, id: &str) -> Result<Value> {
        let Some(explain) = &self.target.explain else {
            bail!("the answer does not name `{id}`, and the node explains nothing")
        };
        let said = self.target.post(explain, json!({"intent": intent, "candidate_id": id}).to_string().as_bytes())?;
        is_signed(&said)?;
        let record = said.value.pointer("/output/decision_record");
        let record = record.with_context(|| format!("`{id}` was published and is not explained: {}", said.brief()))?;
        Ok(shown::entry(&json!({"candidate_id": id, "decision_record": record})))
    }

    /// Posts an intent; the reply is signed, and an answer keeps every rule that can be checked from outside.
    pub(crate) fn ask_intent(&self, intent: &Value) -> Result<Said> {
        let bytes = intent.to_string().into_bytes();
        let said = self.target.post(&self.target.intent, &bytes)?;
        is_signed(&said)?;
        if said.status == 200 {
            self.audit(&bytes, &said, 0)?;
        } else if said.refusal().is_none() {
            bail!("the reply is neither an answer nor a refusal: {}", said.brief());
        }
        Ok(said)
    }

    /// Holds an answer against its intent.
    pub(crate) fn audit(&self, intent: &[u8], said: &Said, earlier: usize) -> Result<()> {
        let Ok((intent, _)) = Intent::parse(intent, &Limits::STANDARD) else {
            bail!("an intent was answered that must be refused")
        };
        if intent.category == Category::Subscription {
            // It has no answer; what it gets is a promise.
            let promised =
                said.value["intent_id"] == json!(intent.intent_id) && said.value["subscription_id"].is_string();
            return if promised { Ok(()) } else { bail!("a standing intent is not acknowledged") };
        }
        let answer = Document::parse(&said.bytes, &json::Limits::OURS)?;
        let audit = aql::audit(&intent, answer.root(), &Limits::STANDARD, earlier);
        match audit.violations.first() {
            None => Ok(()),
            Some(first) => bail!("the answer breaks a rule: {} at `{}`", first.detail, first.at.as_str()),
        }
    }

    /// Publishes a record and waits until it is acknowledged.
    pub(crate) fn publish(&self, by: &str, kind: &str, record: &Value) -> Result<Said> {
        let records = self.target.records.as_ref().context(NO_RECORDS)?;
        let publication = self.publication(by, kind, record, None)?;
        let said = self.target.post(records, publication.to_string().as_bytes())?;
        is_signed(&said)?;
        let id = said.value.pointer("/output/record_id").and_then(Value::as_str);
        let id = id.with_context(|| format!("a record is not acknowledged: {}", said.brief()))?;
        self.remember(id, by);
        Ok(said)
    }

    /// Notes that a record is there, so that it is withdrawn in the end.
    pub(crate) fn remember(&self, id: &str, by: &str) {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).push((id.to_owned(), by.to_owned()));
    }

    /// A signed publication; `restricted` says what only some may see.
    pub(crate) fn publication(&self, by: &str, kind: &str, record: &Value, restricted: Option<Value>) -> Result<Value> {
        let key = self.parties.key(by);
        let mut publication = json!({
            "publication_id": format!("urn:rialto:publication:{}", self.parties.fresh()),
            "kind": kind, "record": record,
            "publisher_did": key.did_key().as_str(), "issued_at": self.parties.time(0),
        });
        if let (Some(members), Some(restricted)) = (publication.as_object_mut(), restricted) {
            members.insert("restricted".to_owned(), restricted);
        }
        signed(&publication, &key)
    }

    /// A signed withdrawal.
    pub(crate) fn withdrawal(&self, by: &str, id: &str) -> Result<Value> {
        let key = self.parties.key(by);
        let withdrawal = json!({
            "publication_id": format!("urn:rialto:publication:{}", self.parties.fresh()),
            "withdraw": id, "publisher_did": key.did_key().as_str(), "issued_at": self.parties.time(0),
        });
        signed(&withdrawal, &key)
    }

    /// What was published and is still to be withdrawn.
    pub(crate) fn take_published(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.published.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Withdraws a record; one that a case withdrew already is gone.
    pub(crate) fn withdraw(&self, id: &str, by: &str) -> Result<()> {
        let url = self.target.record(id).context(NO_RECORDS)?;
        let body = self.withdrawal(by, id)?.to_string();
        let said =
            self.target.send(&Request { method: "DELETE", url: &url, media_type: OAP_JSON, body: body.as_bytes() })?;
        match said.status {
            200 | 404 | 410 => Ok(()),
            _ => bail!("`{id}` was published and cannot be withdrawn: {}", said.brief()),
        }
    }

    /// Intents that must be read, or refused while they are read.
    fn put_intent(&self, case: &Case) -> Result<Outcome> {
        let bytes = match case.bytes() {
            Some(bytes) => bytes,
            None => self.at_its_desk(case)?,
        };
        let said = self.target.post(&self.target.intent, &bytes)?;
        is_signed(&said)?;
        if case.kind == "accept" {
            if said.status == 200 {
                self.audit(&bytes, &said, 0)?;
                return Ok(Outcome::Passed);
            }
            let read = said.refusal().is_some_and(|(code, _)| {
                AFTER_READING.contains(&code) || code.starts_with("did_") || code.starts_with("alg_")
            });
            return Ok(if read { Outcome::Passed } else { Outcome::Failed(said.brief()) });
        }
        Ok(compare(&case.expect, &refusal(&said)))
    }

    /// The intent of a case as one that was issued now and signed, where that does not change what the case is about.
    fn at_its_desk(&self, case: &Case) -> Result<Vec<u8>> {
        let plain = case.input("intent");
        let mut intent = plain.clone();
        if let Some(members) = intent.as_object_mut().filter(|members| !members.contains_key("signature")) {
            let now = [
                ("issuer_did", json!(DESK), json!(self.parties.did())),
                ("intent_id", json!(DESK_INTENT), json!(format!("urn:oap:intent:{}", self.parties.fresh()))),
                ("validity", json!({"from": DESK_WINDOW.0, "to": DESK_WINDOW.1}), self.parties.window()),
            ];
            for (name, desk, ours) in now {
                if members.get(name) == Some(&desk) {
                    members.insert(name.to_owned(), ours);
                }
            }
            if let Ok(signed) = signed(&intent, &self.parties.first) {
                let bytes = signed.to_string().into_bytes();
                let read = Intent::parse(&bytes, &Limits::STANDARD);
                let said = read.err().map(|refused| json!({"code": refused.code.name(), "at": refused.at.as_str()}));
                if agrees(&case.expect, &said.unwrap_or_else(|| json!({}))) {
                    return Ok(bytes);
                }
            }
        }
        Ok(plain.to_string().into_bytes())
    }

    /// Windows, moved so that they lie to now as they lay to the moment of the case.
    fn put_window(&self, case: &Case) -> Result<Outcome> {
        let instant = |text: &Value| Instant::parse(text.as_str().unwrap_or_default()).context("a case without a time");
        let validity = case.input("validity");
        let member = |name: &str| validity.get(name).unwrap_or(&Value::Null);
        let (from, to, now) = (instant(member("from"))?, instant(member("to"))?, instant(case.input("now"))?);
        let real = self.parties.now();
        let (mut from, mut to) = (real + from.seconds() - now.seconds(), real + to.seconds() - now.seconds());
        match case.expect.get("code").and_then(Value::as_str) {
            Some("intent_expired") => to -= NEARLY,
            Some("intent_not_yet_valid") => from += NEARLY,
            None if to <= real + NEARLY => to = real + NEARLY,
            None if from > real => from -= NEARLY,
            _ => {}
        }
        let time = |seconds| Instant::from_unix(seconds, 0).to_string();
        let mut intent = json!({
            "intent_id": format!("urn:oap:intent:{}", self.parties.fresh()), "issuer_did": self.parties.did(),
            "category": case.input("category"), "constraints": {"path": "/x_case", "operator": "eq", "value": "none"},
            "projection": {"include": ["/x_case"]}, "validity": {"from": time(from), "to": time(to)},
        });
        if case.input("category") == "subscription" {
            intent["max_event_rate_per_minute"] = json!(1);
        }
        let said = self.ask_intent(&signed(&intent, &self.parties.first)?)?;
        let no_feed = said.refusal().is_some_and(|(code, _)| code == "category_not_supported");
        let answer = if no_feed { json!({}) } else { refusal(&said) };
        Ok(compare(&case.expect, &answer))
    }

    /// Signatures: what is wrong with them stays wrong when the window is moved; what is right is signed again.
    fn put_signature(&self, case: &Case) -> Result<Outcome> {
        let mut document = case.input("document").clone();
        if document.pointer("/validity/from") == Some(&json!(DESK_WINDOW.0)) {
            document["validity"] = self.parties.window();
        }
        if case.expect.get("signer").is_some() {
            if case.expect.get("signer") != Some(&json!(DESK)) {
                return Ok(Outcome::NotPut(
                    "the key that signed the case is not at hand, and it is no Ed25519 key".into(),
                ));
            }
            let value = document.pointer("/signature/value").and_then(Value::as_str).unwrap_or_default().to_owned();
            let kid = document.pointer("/signature/kid").and_then(Value::as_str).map(str::to_owned);
            document["issuer_did"] = json!(self.parties.did());
            document["intent_id"] = json!(format!("urn:oap:intent:{}", self.parties.fresh()));
            document = signed(&document, &self.parties.first)?;
            respell(&mut document, &value, kid.as_deref(), &self.parties.did());
        }
        let bytes = document.to_string().into_bytes();
        if let Err(refused) = Intent::parse(&bytes, &Limits::STANDARD)
            && case.expect.get("code") != Some(&json!(refused.code.name()))
        {
            let reason = format!(
                "the document is refused as an intent ({}) before its signature is looked at",
                refused.code.name()
            );
            return Ok(Outcome::NotPut(reason));
        }
        let said = self.target.post(&self.target.intent, &bytes)?;
        is_signed(&said)?;
        if case.expect.get("signer").is_some() {
            // A chain is looked at after the signature over it: whoever finds it wanting has verified the signature.
            let verified = said.status == 200 || said.refusal().is_some_and(|(code, _)| code == "delegation_invalid");
            return Ok(if verified { Outcome::Passed } else { Outcome::Failed(said.brief()) });
        }
        Ok(compare(&case.expect, &refusal(&said)))
    }

    /// Bytes: refused as they are, or published inside a record and read back in their canonical form.
    fn put_bytes(&self, case: &Case) -> Result<Outcome> {
        let bytes = case.bytes().unwrap_or_default();
        let (of_intent, records) = (case.input("limits") == "intent", self.target.records.as_ref());
        let door = if of_intent { Some(&self.target.intent) } else { records };
        let Some(door) = door else { return Ok(Outcome::NotPut(NO_RECORDS.into())) };
        let canonical = case.expect.get("canonical");
        if let (Some(canonical), false) = (canonical, of_intent)
            && let Some(publication) = self.around(&bytes)
        {
            return self.read_back(&publication, canonical);
        }
        let said = self.target.post(door, &bytes)?;
        is_signed(&said)?;
        let refused = said.refusal().map(|(code, _)| code);
        match canonical {
            None => Ok(compare(&case.expect, &refusal(&said))),
            // At the edge of a limit there is no room for anything around it: it is refused for what it is not.
            Some(_) if refused.is_some_and(|code| !OF_JSON.contains(&code)) => Ok(Outcome::Passed),
            Some(_) => Ok(Outcome::Failed(said.brief())),
        }
    }

    /// A signed publication whose record has the bytes in it as they are; `None` when there is no room.
    fn around(&self, bytes: &[u8]) -> Option<Around> {
        let id = format!("urn:rialto:case:{}", self.parties.fresh());
        let head = format!(
            r#"{{"publication_id":"urn:rialto:publication:{id}","kind":"manifest","publisher_did":"{}","issued_at":"{}","record":{{"id":"{id}","x_case":"{id}","v":"#,
            self.parties.did(),
            self.parties.time(0)
        );
        let body = [head.as_bytes(), bytes, b"}"].concat();
        let whole = [body.as_slice(), b"}"].concat();
        let document = Document::parse(&whole, &json::Limits::DOCUMENT).ok()?;
        let value = trust::encoding::encode(&self.parties.first.sign(&json::canonical(document.root())));
        let signature = json!({"alg": "EdDSA", "kid": self.parties.first.key_id().to_string(), "value": value});
        let bytes = [body.as_slice(), b",\"signature\":", signature.to_string().as_bytes(), b"}"].concat();
        Document::parse(&bytes, &json::Limits::DOCUMENT).ok()?;
        Some(Around { id, bytes })
    }

    fn read_back(&self, publication: &Around, canonical: &Value) -> Result<Outcome> {
        let records = self.target.records.as_ref().context(NO_RECORDS)?;
        let said = self.target.post(records, &publication.bytes)?;
        is_signed(&said)?;
        if said.status != 200 {
            return Ok(Outcome::Failed(format!("a record is not acknowledged: {}", said.brief())));
        }
        self.remember(&publication.id, "first");
        let intent = json!({
            "intent_id": format!("urn:oap:intent:{}", self.parties.fresh()), "issuer_did": self.parties.did(),
            "category": "discovery", "constraints": {"path": "/x_case", "operator": "eq", "value": publication.id},
            "projection": {"include": ["/v"]}, "validity": self.parties.window(),
        });
        let said = self.ask_intent(&signed(&intent, &self.parties.first)?)?;
        let found = said.value.pointer("/candidates/0/payload/v").map(json::canonical_value);
        let found = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(compare(&json!({"canonical": canonical}), &json!({"canonical": found})))
    }
}

struct Around {
    id: String,
    bytes: Vec<u8>,
}

impl Implementation for Live {
    fn name(&self) -> &str {
        self.target.did()
    }

    fn answer(&self, case: &Case) -> Answer {
        match self.put(case) {
            Outcome::Passed => Answer::Result(expected(case)),
            Outcome::Failed(why) => Answer::Result(json!({"failed": why})),
            Outcome::NotPut(_) => Answer::NoOpinion,
        }
    }
}

/// A document with a signature.
pub(crate) fn signed(document: &Value, key: &SigningKey) -> Result<Value> {
    let mut document = document.clone();
    trust::sign(&mut document, key)?;
    Ok(document)
}

/// Every reply is signed by the node.
pub(crate) fn is_signed(said: &Said) -> Result<()> {
    match &said.unsigned {
        None => Ok(()),
        Some(why) => bail!("the reply (status {}) is not signed by the node: {why}", said.status),
    }
}

/// The refusal in a reply, as cases expect it; nothing when it is an answer.
fn refusal(said: &Said) -> Value {
    said.refusal().map_or_else(|| json!({}), |(code, at)| json!({"code": code, "at": at}))
}

fn compare(expected: &Value, answer: &Value) -> Outcome {
    if agrees(expected, answer) && (expected.get("code").is_some() || answer.get("code").is_none()) {
        return Outcome::Passed;
    }
    Outcome::Failed(format!("expected {expected}, the node says {answer}"))
}

/// Writes a signature in the spelling that another one has.
fn respell(document: &mut Value, like: &str, kid: Option<&str>, did: &str) {
    let Some(signature) = document.get_mut("signature").and_then(Value::as_object_mut) else { return };
    if let Some(value) = signature.get("value").and_then(Value::as_str) {
        let mut value = value.to_owned();
        if like.contains(['+', '/']) {
            value = value.replace('-', "+").replace('_', "/");
        }
        if like.ends_with('=') {
            value.push_str("==");
        }
        signature.insert("value".into(), json!(value));
    }
    signature.remove("kid");
    let fragment = |did: &str| did.trim_start_matches("did:key:").to_owned();
    if let Some(kid) = kid {
        signature.insert("kid".into(), json!(kid.replace(&fragment(DESK), &fragment(did))));
    }
}
