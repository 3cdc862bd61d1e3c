//! RFC 0020 A.3 R1 and R6: cases about the node itself, written as steps of an exchange.
//!
//! `conformance/README.md` describes the steps. Texts in braces stand for what only a run knows: `{run}`,
//! `{did:first}`, `{now+60}`, `{node}`, `{i}`, and `{name/pointer}` for a part of an earlier reply.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use crate::corpus::Case;
use crate::inclusion;
use crate::live::{Live, Outcome, is_signed, signed};
use crate::receiver::Receiver;
use crate::shown;
use crate::target::{OAP_JSON, Said};
use crate::wire::Request;
use anyhow::{Context, Result, bail, ensure};
use aql::Instant;
use json::{Document, Value, json};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::cell::OnceCell;
use std::collections::HashMap;
use trust::Signed;

/// A message that was sent and what came back.
struct Turn {
    method: &'static str,
    url: String,
    body: Vec<u8>,
    said: Said,
    /// Candidates of the pages before.
    earlier: usize,
    /// Whether it is an intent of RFC 0020, whose answer can be held against it.
    intent: bool,
}

/// The course of a case.
struct Course<'a> {
    live: &'a Live,
    run: String,
    turns: HashMap<String, Turn>,
    /// Where events are brought, once a step wants it.
    receiver: OnceCell<Receiver>,
}

/// The node may not bring anything to this machine, so nothing can be said about how it does.
#[derive(Debug)]
struct OutOfReach;

impl std::fmt::Display for OutOfReach {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the node brings nothing to this machine")
    }
}

/// Walks through the steps of a case; the first that fails ends it.
pub(crate) fn put(live: &Live, case: &Case) -> Result<Outcome> {
    let steps = case.input("steps").as_array().context("a case without steps")?;
    let publishes = steps.iter().any(|step| step.get("publish").is_some());
    if publishes && live.target.records.is_none() {
        return Ok(Outcome::NotPut("the node has no endpoint for records".into()));
    }
    if live.target.explain.is_none() && steps.iter().any(|step| step.get("explain").is_some()) {
        return Ok(Outcome::NotPut("the node has no endpoint for explanations".into()));
    }
    if live.target.subscribe.is_none() && steps.iter().any(|step| step.get("subscribe").is_some()) {
        return Ok(Outcome::NotPut("the node has no endpoint for standing intents".into()));
    }
    if case.requirement.starts_with("ADP-") && live.target.manifest["endpoints"]["agent_descriptions"].is_null() {
        return Ok(Outcome::NotPut("the node publishes no agents".into()));
    }
    let mut course = Course { live, run: live.parties.fresh(), turns: HashMap::new(), receiver: OnceCell::new() };
    for (position, step) in steps.iter().enumerate() {
        if let Err(error) = course.take(step) {
            if error.downcast_ref::<OutOfReach>().is_some() {
                return Ok(Outcome::NotPut(OutOfReach.to_string()));
            }
            return Ok(Outcome::Failed(format!("step {}: {error:#}", position + 1)));
        }
    }
    Ok(Outcome::Passed)
}

impl Course<'_> {
    fn take(&mut self, step: &Value) -> Result<()> {
        for i in 0..step["times"].as_u64().unwrap_or(1) {
            let turn = self.send(step, i)?;
            self.check(step, &turn, i).with_context(|| turn.said.brief())?;
            if let Some(name) = step["name"].as_str() {
                self.turns.insert(name.to_owned(), turn);
            }
        }
        Ok(())
    }

    fn receiver(&self) -> Result<&Receiver> {
        if self.receiver.get().is_none() {
            let _ = self.receiver.set(Receiver::open()?);
        }
        self.receiver.get().context("there is no receiver")
    }

    /// What was brought so far, waited for until it is enough.
    fn received(&self, count: u64) -> Result<Turn> {
        let received = self.receiver()?.wait(usize::try_from(count)?, &self.live.target.keys)?;
        let value = json!({"received": received});
        let said = Said { status: 200, bytes: value.to_string().into_bytes(), value, unsigned: None };
        Ok(Turn { method: "GET", url: String::new(), body: Vec::new(), said, earlier: 0, intent: false })
    }

    fn send(&self, step: &Value, i: u64) -> Result<Turn> {
        if let Some(count) = step["received"].as_u64() {
            return self.received(count);
        }
        let target = &self.live.target;
        let by = step["by"].as_str().unwrap_or("first");
        let media_type = step["media_type"].as_str().unwrap_or(OAP_JSON);
        let (mut earlier, mut is_intent) = (0, true);
        let (method, url, body) = if let Some(intent) = step.get("ask") {
            let intent = self.intent(&self.fill(intent, i)?, by)?;
            let cursor = step["cursor"].as_str().map(|cursor| self.text(cursor, i, true)).transpose()?;
            let url =
                cursor.map_or_else(|| target.intent.clone(), |cursor| format!("{}?cursor={cursor}", target.intent));
            ("POST", url, self.body(step, intent)?)
        } else if let Some(record) = step.get("publish") {
            let mut record = self.fill(record, i)?;
            if step["unmarked"] != json!(true) {
                record["x_case"] = json!(self.run);
                if step["times"].is_u64() {
                    // Many records of one owner that hardly differ would come after the first of them.
                    record["x_marks"] = (0..MARKS).map(|mark| json!(format!("{i} {mark}"))).collect();
                }
            }
            let kind = step["kind"].as_str().unwrap_or("manifest");
            let restricted = step.get("restricted").map(|listed| self.fill(listed, i)).transpose()?;
            let publication = self.live.publication(by, kind, &record, restricted)?;
            let records = target.records.clone().context("no endpoint for records")?;
            ("POST", records, self.body(step, publication)?)
        } else if let Some(id) = step["withdraw"].as_str() {
            let id = self.text(id, i, false)?;
            let withdrawal = self.live.withdrawal(by, &id)?;
            ("DELETE", target.record(&id).context("no endpoint for records")?, self.body(step, withdrawal)?)
        } else if let Some(name) = step["again"].as_str() {
            let before = self.turn(name)?;
            (earlier, is_intent) = (before.earlier, before.intent);
            (before.method, before.url.clone(), before.body.clone())
        } else if let Some(name) = step["next"].as_str() {
            let before = self.turn(name)?;
            earlier = before.earlier + shown::list(&before.said.value, "candidates").len();
            let cursor = before.said.value["next_cursor"].as_str().context("the page before has no next_cursor")?;
            let cursor = utf8_percent_encode(cursor, NON_ALPHANUMERIC);
            ("POST", format!("{}?cursor={cursor}", target.intent), before.body.clone())
        } else if let Some(question) = step.get("explain") {
            let asked: Value = serde_json::from_slice(&self.turn(question["of"].as_str().unwrap_or_default())?.body)?;
            let mut body = json!({"intent": asked});
            if let Some(id) = question.get("candidate_id") {
                body["candidate_id"] = self.fill(id, i)?;
            }
            let explain = target.explain.clone().context("no endpoint for explanations")?;
            ("POST", explain, self.body(step, body)?)
        } else if let Some(wanted) = step.get("procure") {
            is_intent = false;
            let wanted = self.procurement(&self.fill(wanted, i)?, by)?;
            ("POST", target.intent.clone(), self.body(step, wanted)?)
        } else if let Some(intent) = step.get("subscribe") {
            is_intent = false;
            let mut said = self.fill(intent, i)?;
            said["category"] = json!("subscription");
            if said.get("max_event_rate_per_minute").is_none() {
                said["max_event_rate_per_minute"] = json!(600);
            }
            let subscribe = target.subscribe.clone().context("no endpoint for standing intents")?;
            let url = if step["snapshot"] == json!(true) {
                format!("{subscribe}?snapshot=true")
            } else if step["webhook"] == json!(true) {
                let endpoint = utf8_percent_encode(&self.receiver()?.url(), NON_ALPHANUMERIC).to_string();
                format!("{subscribe}?transport=webhook&endpoint={endpoint}")
            } else if let Some(endpoint) = step["endpoint"].as_str() {
                format!("{subscribe}?transport=webhook&endpoint={}", utf8_percent_encode(endpoint, NON_ALPHANUMERIC))
            } else {
                subscribe
            };
            ("POST", url, self.body(step, self.intent(&said, by)?)?)
        } else if let Some(control) = step.get("control") {
            is_intent = false;
            let ack = &self.turn(step["of"].as_str().unwrap_or_default())?.said.value;
            let mut message = json!({
                "control_id": format!("urn:rialto:control:{}", self.live.parties.fresh()),
                "subscription_id": ack["subscription_id"], "issuer_did": self.live.parties.key(by).did_key().as_str(),
                "issued_at": self.live.parties.time(0),
            });
            for (name, value) in self.fill(control, i)?.as_object().into_iter().flatten() {
                message[name] = value.clone();
            }
            let url = ack["control_url"].as_str().context("the acknowledgement has no control_url")?;
            let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
            let url = target.url(path.context("the control_url has no path")?);
            ("POST", url, self.body(step, signed(&message, &self.live.parties.key(by))?)?)
        } else if let Some(path) = step["get"].as_str() {
            ("GET", target.url(&self.text(path, i, true)?), Vec::new())
        } else if let Some(path) = step["post"].as_str() {
            ("POST", target.url(path), step["text"].as_str().unwrap_or_default().as_bytes().to_vec())
        } else {
            bail!("nothing is done: {step}")
        };
        let request = Request { method, url: &url, media_type, body: &body };
        let said = if step["stream"] == json!(true) {
            target.stream(&request)?
        } else if step["socket"] == json!(true) {
            target.socket(&url)?
        } else {
            target.send(&request)?
        };
        if step["webhook"] == json!(true) && said.refusal().is_some_and(|(code, _)| code == "webhook_forbidden") {
            return Err(anyhow::Error::msg(OutOfReach));
        }
        if said.status == 200 && step.get("publish").is_some() {
            self.live.remember(said.value["output"]["record_id"].as_str().unwrap_or_default(), by);
        }
        Ok(Turn { method, url, body, said, earlier, intent: is_intent })
    }

    /// A signed intent: what the step says, and for the rest an open question for the records of this case.
    fn intent(&self, said: &Value, by: &str) -> Result<Value> {
        let parties = &self.live.parties;
        let key = parties.key(by);
        let mut intent = json!({
            "intent_id": format!("urn:oap:intent:{}", parties.fresh()), "issuer_did": key.did_key().as_str(),
            "category": "discovery", "constraints": {"path": "/x_case", "operator": "eq", "value": self.run},
            "projection": {"include": ["/"]}, "validity": parties.window(),
        });
        for (name, value) in said.as_object().into_iter().flatten() {
            intent[name] = value.clone();
        }
        signed(&intent, &key)
    }

    /// A procurement intent of RFC 0013: what the step says, and for the rest one that is open now.
    fn procurement(&self, said: &Value, by: &str) -> Result<Value> {
        let parties = &self.live.parties;
        let did = parties.key(by).did_key();
        let mut intent = json!({
            "intent_id": format!("urn:oap:intent:{}", parties.fresh()), "category": "physical_goods",
            "issued_at": parties.time(-60), "expires_at": parties.time(600),
            "principal_did": did.as_str(), "agent_did": did.as_str(),
            "constraints": {}, "budget": {"max_amount": "10", "currency": "EUR"},
        });
        for (name, value) in said.as_object().into_iter().flatten() {
            intent[name] = value.clone();
        }
        Ok(self.signed_inside(intent, "signatures", by))
    }

    /// A document with a signature in a member: in a list of `signatures`, or as a text alone.
    fn signed_inside(&self, mut document: Value, member: &str, by: &str) -> Value {
        let key = self.live.parties.key(by);
        let value = trust::encoding::encode(&key.sign(&json::canonical_value(&document)));
        document[member] = match member {
            "signatures" => json!([{"by": key.key_id().to_string(), "alg": "EdDSA", "value": value}]),
            _ => json!(value),
        };
        document
    }

    /// A delegation token: what the case says, and for the rest one from `by` for this node that counts now.
    ///
    /// `iat` and `exp` are seconds from now.
    fn token(&self, said: &Value, by: &str) -> Value {
        let parties = &self.live.parties;
        let key = parties.key(by);
        let mut claims = json!({
            "iss": key.did_key().as_str(), "aud": self.live.target.did(), "iat": 0, "exp": 300,
            "jti": format!("del_{}", parties.fresh()), "delegation_depth": 1, "max_delegation_depth": 3,
            "scope": {"actions": ["draw"]},
        });
        for (name, value) in said.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        for name in ["iat", "exp"] {
            claims[name] = json!(parties.now() + claims[name].as_i64().unwrap_or_default());
        }
        json!({"jwt": trust::sign_token(&claims, &key)})
    }

    /// The bytes of a message, changed after it was signed where the step says so.
    fn body(&self, step: &Value, mut document: Value) -> Result<Vec<u8>> {
        for (pointer, value) in step["change"].as_object().into_iter().flatten() {
            let (parent, name) = pointer.rsplit_once('/').context("a change names a member")?;
            let parent = document.pointer_mut(parent).and_then(Value::as_object_mut);
            let parent = parent.with_context(|| format!("there is no `{pointer}` to change"))?;
            if value == "{absent}" {
                parent.remove(name);
            } else {
                parent.insert(name.to_owned(), self.fill(value, 0)?);
            }
        }
        if let Some(mut wrapper) = step.get("wrap").map(|wrapper| self.fill(wrapper, 0)).transpose()? {
            wrapper["payload"] = document;
            document = wrapper;
        }
        let mut body = document.to_string().into_bytes();
        if let Some(length) = step["bytes"].as_u64() {
            ensure!(body.len() as u64 <= length, "the message is longer than {length} bytes already");
            // Blanks are outside of what is signed.
            body.resize(usize::try_from(length)?, b' ');
        }
        Ok(body)
    }

    fn check(&self, step: &Value, turn: &Turn, i: u64) -> Result<()> {
        let expect = self.fill(&step["expect"], i)?;
        let said = &turn.said;
        let (status, wanted) = (said.status, expect["status"].as_u64().unwrap_or(200));
        ensure!(u64::from(status) == wanted, "status {wanted} is expected");
        if expect["signed"] != json!(false) {
            is_signed(said)?;
        }
        // Each event of a journal is proved by itself, whoever brings it.
        for event in said.value["events"].as_array().into_iter().flatten() {
            let document = Document::of(event)?;
            Signed::read(&document)?.verify_with(&self.live.target.keys).context("an event does not verify alone")?;
        }
        if expect["included"] == json!(true) {
            said.value["events"].as_array().into_iter().flatten().try_for_each(inclusion::check)?;
        }
        let streams = step["stream"] == json!(true);
        let asks = !streams && turn.intent && turn.method == "POST" && turn.url.starts_with(&self.live.target.intent);
        if status == 200 && asks {
            self.live.audit(&unwrapped(&turn.body), said, turn.earlier)?;
            self.check_window(turn)?;
        }
        let details = &said.value["error"]["details"];
        for (name, found) in
            [("code", &details["code"]), ("at", &details["pointer"]), ("class", &said.value["error"]["code"])]
        {
            if let Some(wanted) = expect.get(name) {
                ensure!(wanted == found, "{name} {wanted} is expected, not {found}");
            }
        }
        if let Some(limit) = expect.get("limit") {
            ensure!(crate::agrees(limit, &details["limit"]), "limit {limit} is expected, not {}", details["limit"]);
        }
        self.check_parts(&expect, said)?;
        self.check_lists(&expect, said)?;
        if let Some(wanted) = expect.get("total") {
            let total = turn.earlier + shown::list(&said.value, "candidates").len();
            ensure!(wanted == &json!(total), "{total} candidates came so far, and {wanted} are expected");
        }
        if let Some(name) = expect["same_as"].as_str() {
            ensure!(self.turn(name)?.said.bytes == said.bytes, "the same bytes are expected as in `{name}`");
        }
        if let Some(name) = expect["other_than"].as_str() {
            ensure!(self.turn(name)?.said.bytes != said.bytes, "other bytes are expected than in `{name}`");
        }
        Ok(())
    }

    /// An answer is made inside the window of its intent.
    fn check_window(&self, turn: &Turn) -> Result<()> {
        let asked: Value = serde_json::from_slice(&unwrapped(&turn.body))?;
        let time = |value: &Value| value.as_str().and_then(Instant::parse_rfc3339);
        let made = time(&turn.said.value["evaluated_at"]).context("the answer does not say when it was made")?;
        let closes = time(&asked["validity"]["to"]).context("the intent has no end")?;
        ensure!(made <= closes, "the answer was made after the window had closed");
        Ok(())
    }

    fn check_parts(&self, expect: &Value, said: &Said) -> Result<()> {
        for (pointer, wanted) in expect["has"].as_object().into_iter().flatten() {
            let found = self.find(&said.value, pointer).with_context(|| format!("`{pointer}` is missing"))?;
            let same = json::canonical_value(found) == json::canonical_value(wanted);
            ensure!(same, "`{pointer}` is {found}, and {wanted} is expected");
        }
        for pointer in expect["present"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            ensure!(self.find(&said.value, pointer).is_some(), "`{pointer}` is missing");
        }
        for pointer in expect["absent"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            ensure!(said.value.pointer(pointer).is_none(), "`{pointer}` must not be there");
        }
        for pointer in expect["covers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let mut forged = said.value.clone();
            *forged.pointer_mut(pointer).with_context(|| format!("`{pointer}` is missing"))? = json!("forged");
            let document = Document::of(&forged)?;
            let verified = Signed::read(&document).and_then(|signed| signed.verify_with(&self.live.target.keys));
            ensure!(verified.is_err(), "the signature does not cover `{pointer}`");
        }
        Ok(())
    }

    fn check_lists(&self, expect: &Value, said: &Said) -> Result<()> {
        for (list, name) in [("candidates", "ids"), ("rejected", "rejected_ids")] {
            let Some(wanted) = expect.get(name) else { continue };
            // Others may have records here, too: only those of this case are compared.
            let entries = said.value[list].as_array().cloned().unwrap_or_default();
            let ids: Vec<Value> = entries.iter().map(|entry| entry["candidate_id"].clone()).collect();
            let ids: Vec<Value> =
                ids.into_iter().filter(|id| id.as_str().is_some_and(|id| id.contains(self.run.as_str()))).collect();
            ensure!(&json!(ids) == wanted, "{list} are {}, and {wanted} are expected", json!(ids));
        }
        for (pointer, wanted) in expect["count"].as_object().into_iter().flatten() {
            let found = said.value.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len) as u64;
            ensure!(Some(found) == wanted.as_u64(), "`{pointer}` has {found} elements, and {wanted} are expected");
        }
        for (pointer, most) in expect["at_most"].as_object().into_iter().flatten() {
            let found = said.value.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len) as u64;
            ensure!(most.as_u64().is_some_and(|most| found <= most), "`{pointer}` has {found} elements");
        }
        if let Some(most) = expect["bytes_at_most"].as_u64() {
            ensure!(said.bytes.len() as u64 <= most, "the reply has {} bytes", said.bytes.len());
        }
        Ok(())
    }

    fn turn(&self, name: &str) -> Result<&Turn> {
        self.turns.get(name).with_context(|| format!("no step is called `{name}`"))
    }

    /// A value of the case with everything filled in that only the run knows.
    fn fill(&self, value: &Value, i: u64) -> Result<Value> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(inner) if inner.contains('/') && !inner.contains('{') => self.part(inner)?,
                _ => json!(self.text(text, i, false)?),
            },
            Value::Array(list) => list.iter().map(|element| self.fill(element, i)).collect::<Result<_>>()?,
            Value::Object(members) if members.contains_key("$times") => {
                let of = members.get("of").unwrap_or(&Value::Null);
                (0..members["$times"].as_u64().unwrap_or_default()).map(|i| self.fill(of, i)).collect::<Result<_>>()?
            }
            Value::Object(members) if members.contains_key("$token") => {
                self.token(&self.fill(&members["$token"], i)?, value["by"].as_str().unwrap_or("first"))
            }
            Value::Object(members) if members.contains_key("$signed") => {
                let (member, by) = (value["member"].as_str(), value["by"].as_str());
                let document = self.fill(&members["$signed"], i)?;
                self.signed_inside(document, member.unwrap_or("signatures"), by.unwrap_or("first"))
            }
            Value::Object(members) if members.contains_key("$text") => {
                let times = members.get("times").and_then(Value::as_u64).unwrap_or(1);
                json!(members["$text"].as_str().unwrap_or_default().repeat(usize::try_from(times)?))
            }
            Value::Object(members) => {
                let filled = members.iter().map(|(name, value)| Ok((name.clone(), self.fill(value, i)?)));
                Value::Object(filled.collect::<Result<_>>()?)
            }
            other => other.clone(),
        })
    }

    /// A text with its braces filled in.
    fn text(&self, text: &str, i: u64, for_address: bool) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (inner, after) = after.split_once('}').with_context(|| format!("a brace stays open in `{text}`"))?;
            filled.push_str(before);
            let parties = &self.live.parties;
            let word = match inner {
                "run" => self.run.clone(),
                "node" => self.live.target.did().to_owned(),
                "i" => format!("{i:03}"),
                _ => {
                    if let Some(name) = inner.strip_prefix("did:") {
                        parties.key(name).did_key().as_str().to_owned()
                    } else if let Some(which) = inner.strip_prefix("version:") {
                        version(&self.live.target.manifest, which)?
                    } else if let Some(seconds) = inner.strip_prefix("now") {
                        parties.time(if seconds.is_empty() { 0 } else { seconds.parse()? })
                    } else {
                        self.part(inner)?.as_str().map(str::to_owned).context("no text to fill in")?
                    }
                }
            };
            if for_address {
                filled.push_str(&utf8_percent_encode(&word, NON_ALPHANUMERIC).to_string());
            } else {
                filled.push_str(&word);
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// A part of an earlier reply, `name/pointer`; `manifest/pointer` is a part of the node's manifest.
    fn part(&self, inner: &str) -> Result<Value> {
        let (name, pointer) = inner.split_once('/').with_context(|| format!("`{{{inner}}}` stands for nothing"))?;
        let whole = if name == "manifest" { &self.live.target.manifest } else { &self.turn(name)?.said.value };
        self.find(whole, &format!("/{pointer}")).cloned().with_context(|| format!("`{inner}` is not there"))
    }

    /// The value at a pointer, in which `mine` stands for the first entry of this case, since others have records, too.
    fn find<'v>(&self, whole: &'v Value, pointer: &str) -> Option<&'v Value> {
        let Some((list, rest)) = pointer.split_once("/mine/") else { return whole.pointer(pointer) };
        let ours = |entry: &&Value| entry["candidate_id"].as_str().is_some_and(|id| id.contains(self.run.as_str()));
        whole.pointer(list)?.as_array()?.iter().find(ours)?.pointer(&format!("/{rest}"))
    }
}

/// The message inside of what may stand around it (RFC 0024 §4.2).
fn unwrapped(body: &[u8]) -> Vec<u8> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    message.get("payload").map_or_else(|| body.to_vec(), |payload| payload.to_string().into_bytes())
}

/// Values that tell records apart which are published many at once.
const MARKS: u64 = 16;

/// A version of the intent that the manifest accepts: `lowest`, `highest` or `default`.
fn version(manifest: &Value, which: &str) -> Result<String> {
    const INTENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent.schema.json";
    let entry = &manifest["schema_compatibility"][INTENT];
    let numbers = |version: &&str| -> Vec<u64> { version.split('.').filter_map(|part| part.parse().ok()).collect() };
    let accepted = entry["accepts"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let found = match which {
        "lowest" => accepted.min_by_key(numbers),
        "highest" => accepted.max_by_key(numbers),
        "default" => entry["default"].as_str(),
        _ => bail!("`{which}` is no way to choose a version"),
    };
    found.map(str::to_owned).context("the manifest has no versions of the intent")
}
