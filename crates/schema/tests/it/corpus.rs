//! RFC 0024: every case of `conformance/schema` against this crate; `cargo xtask conformance` has them judged here, too.

use json::{Document, Instant};
use schema::{
    Agreement, CompatibilityProfile, Deprecation, Disagreement, Entry, Form, Mapping, NegotiatedRequest, Permits,
    Publishers, Refusal, SchemaId, Translator, Validator, Version,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Instant as Clock;
use trust::{Did, DidDocument, SigningKey};

type Outcome = Result<Value, Value>;

fn refused(refusal: Refusal) -> Value {
    let limit = refusal.limit.map(|limit| limit.name);
    json!({"code": refusal.code.name(), "at": refusal.at.as_str(), "limit": limit})
}

fn read(value: &Value) -> Result<Mapping, Refusal> {
    Mapping::read(document(value).root())
}

/// Fills in what a case abbreviates: `$times`, `$text`, `$nest` and `$numbered`.
fn expanded(value: &Value) -> Value {
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or_default() as usize;
    match value {
        Value::Object(members) if members.contains_key("$times") => {
            (0..number(value, "$times")).map(|index| numbered(&expanded(&value["of"]), index)).collect()
        }
        Value::Object(members) if members.contains_key("$text") => {
            json!(value["$text"].as_str().unwrap().repeat(number(value, "times")))
        }
        Value::Object(members) if members.contains_key("$nest") => {
            let around = expanded(&value["around"]);
            (0..number(value, "$nest")).fold(expanded(&value["core"]), |inner, _| nested(&around, &inner))
        }
        Value::Object(members) => {
            let mut whole = Map::new();
            for (name, value) in members {
                if name == "$numbered" {
                    let (name, of) = (expanded(&value["name"]), expanded(&value["of"]));
                    for index in number(value, "from")..=number(value, "to") {
                        let name = numbered(&name, index);
                        whole.insert(name.as_str().unwrap().to_owned(), numbered(&of, index));
                    }
                } else {
                    whole.insert(name.clone(), expanded(value));
                }
            }
            Value::Object(whole)
        }
        Value::Array(elements) => elements.iter().map(expanded).collect(),
        other => other.clone(),
    }
}

/// Puts a number in: `{i}`, `{before}` and `{next}`; a text that is `{i}` alone becomes the number itself.
fn numbered(value: &Value, index: usize) -> Value {
    match value {
        Value::String(text) if text == "{i}" => json!(index),
        Value::String(text) => {
            let text = text.replace("{i}", &index.to_string()).replace("{next}", &(index + 1).to_string());
            json!(text.replace("{before}", &index.saturating_sub(1).to_string()))
        }
        Value::Array(elements) => elements.iter().map(|element| numbered(element, index)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), numbered(value, index))).collect())
        }
        other => other.clone(),
    }
}

fn nested(around: &Value, inner: &Value) -> Value {
    match around {
        Value::String(text) if text == "{inner}" => inner.clone(),
        Value::Array(elements) => elements.iter().map(|element| nested(element, inner)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), nested(value, inner))).collect())
        }
        other => other.clone(),
    }
}

#[expect(clippy::boxed_local, reason = "it comes in a box")]
fn disagreed(disagreement: Box<Disagreement>) -> Value {
    let mut value = disagreement.to_value();
    value["code"] = json!(disagreement.code.name());
    value
}

fn document(value: &Value) -> Document {
    Document::of(value).unwrap()
}

fn instant(case: &Value, name: &str) -> Instant {
    let text = case[name].as_str().unwrap_or("2026-06-01T00:00:00Z");
    Instant::parse_rfc3339(text).unwrap()
}

fn versions(value: &Value) -> BTreeSet<Version> {
    value.as_array().unwrap().iter().map(|text| Version::parse(text.as_str().unwrap()).unwrap()).collect()
}

fn permits(case: &Value) -> Permits {
    let flag = |name: &str| case["permits"][name].as_bool().unwrap_or(false);
    Permits { upgrade: flag("permit_upgrade"), downgrade: flag("permit_downgrade") }
}

const SCHEMA: &str = "https://schemas.example/v1.0/action.json";

fn id() -> SchemaId {
    SchemaId::parse(SCHEMA).unwrap()
}

fn profile(value: &Value) -> Result<CompatibilityProfile, Value> {
    CompatibilityProfile::read(document(value).root()).map_err(refused)
}

fn entry(value: &Value) -> Entry {
    profile(&json!({SCHEMA: value})).unwrap().schemas.remove(&id()).unwrap()
}

fn agreed(agreement: Agreement) -> Value {
    let deprecated = agreement.deprecation.map(|(version, _)| version.to_string());
    json!({"version": agreement.version.to_string(), "answer": agreement.answer.to_string(), "deprecated": deprecated})
}

fn negotiate(case: &Value) -> Outcome {
    let agreement = schema::negotiate(
        &id(),
        &versions(&case["ours"]),
        &entry(&case["theirs"]),
        permits(case),
        instant(case, "now"),
    );
    Ok(agreed(agreement.map_err(disagreed)?))
}

fn negotiate_again(case: &Value) -> Outcome {
    let ours = versions(&case["ours"]);
    let before =
        schema::negotiate(&id(), &ours, &entry(&case["before"]), permits(case), instant(case, "then")).unwrap();
    let again = schema::negotiate_again(&before, &ours, &entry(&case["theirs"]), permits(case), instant(case, "now"));
    Ok(agreed(again.map_err(disagreed)?))
}

fn answered(case: &Value) -> Outcome {
    let before = negotiate_agreement(case);
    let version = case["answered"].as_str().map(|text| Version::parse(text).unwrap());
    before.holds_for(version).map_err(|code| json!({"code": code.name()}))?;
    Ok(json!({}))
}

fn negotiate_agreement(case: &Value) -> Agreement {
    let theirs = entry(&case["theirs"]);
    schema::negotiate(&id(), &versions(&case["ours"]), &theirs, permits(case), instant(case, "now")).unwrap()
}

fn serve(case: &Value) -> Outcome {
    let requested = case["requested"].as_str().map(|text| Version::parse(text).unwrap());
    let exchange = schema::serve(&id(), &entry(&case["entry"]), requested, permits(case), instant(case, "now"));
    let exchange = exchange.map_err(disagreed)?;
    Ok(
        json!({"request": exchange.request.to_string(), "answer": exchange.answer.to_string(), "warning": exchange.warning}),
    )
}

fn request(case: &Value) -> Outcome {
    let document = document(&case["request"]);
    let request = NegotiatedRequest::read(document.root()).map_err(refused)?;
    let form = match request.form {
        Form::Wrapped => "wrapped",
        Form::Bare => "bare",
    };
    Ok(json!({
        "form": form,
        "version": request.version.map(|version| version.to_string()),
        "permit_upgrade": request.permits.upgrade,
        "permit_downgrade": request.permits.downgrade,
        "payload": request.payload.to_value(),
    }))
}

fn announce(case: &Value) -> Outcome {
    let deprecation = Deprecation::announce(instant(case, "now"), instant(case, "sunset")).map_err(refused)?;
    let deprecation = match case.get("moved_to") {
        Some(_) => deprecation.postponed(instant(case, "moved_to")).map_err(refused)?,
        None => deprecation,
    };
    Ok(json!({"sunset": deprecation.sunset().to_string(), "past": deprecation.is_past(instant(case, "asked"))}))
}

fn succeed(case: &Value) -> Outcome {
    let (before, after) = (profile(&json!({SCHEMA: case["before"]}))?, profile(&json!({SCHEMA: case["after"]}))?);
    schema::succeed(&before, &after, instant(case, "now")).map_err(refused)?;
    Ok(json!({}))
}

fn losses(translation: &schema::Translation) -> Vec<Value> {
    translation.losses.iter().map(schema::Loss::to_value).collect()
}

fn translate(case: &Value) -> Outcome {
    let mapping = read(&case["mapping"]).map_err(refused)?;
    let mapping = if case["back"] == true { mapping.invert().map_err(refused)? } else { mapping };
    let translation = mapping.translate(&case["document"]);
    both_ways(&mapping, &case["document"], &translation);
    let translation = translation.map_err(refused)?;
    if let Some(schema) = case.get("destination_schema") {
        schema::Validator::compile(schema).map_err(refused)?.check(&translation.document).map_err(refused)?;
    }
    Ok(json!({"document": translation.document, "losses": losses(&translation)}))
}

/// The fast way says the same.
fn both_ways(mapping: &Mapping, source: &Value, slow: &Result<schema::Translation, Refusal>) {
    let (mut translator, source) = (Translator::new(mapping), document(source));
    match (translator.translate(&source), slow) {
        (Ok(fast), Ok(slow)) => {
            assert_eq!(json::canonical(fast.document().root()), json::canonical_value(&slow.document));
            assert_eq!(fast.losses(), slow.losses);
        }
        (fast, slow) => assert_eq!(fast.err().as_ref(), slow.as_ref().err()),
    }
}

fn validator(case: &Value) -> Outcome {
    let validator = Validator::compile(&case["schema"]).map_err(refused)?;
    Ok(json!({"valid": case.get("document").map(|document| validator.is_valid(document))}))
}

fn pairs(case: &Value) -> Outcome {
    let pairs = entry(&case["entry"]).unmapped_pairs();
    Ok(json!(pairs.iter().map(|(from, to)| format!("{from}>{to}")).collect::<Vec<_>>()))
}

fn compose(case: &Value) -> Outcome {
    let mappings: Vec<Mapping> =
        case["mappings"].as_array().unwrap().iter().map(|value| read(value).unwrap()).collect();
    let mut mappings = mappings.into_iter();
    let first = mappings.next().unwrap();
    let all = mappings.try_fold(first, |all, next| schema::compose(&all, &next)).map_err(refused)?;
    let translation = all.translate(&case["document"]);
    both_ways(&all, &case["document"], &translation);
    let translation = translation.map_err(refused)?;
    Ok(json!({"document": translation.document, "steps": all.steps()}))
}

/// Signs with a key of a seed, as the DID that the case names, and lets somebody decide.
fn admit(case: &Value) -> Outcome {
    let key = SigningKey::from_seed([case["seed"].as_u64().unwrap_or(1) as u8; 32]);
    let mapping = read(&case["mapping"]).unwrap();
    let did = key.did_key();
    let mut signed = mapping.sign(did.clone(), instant(case, "published_at"), &key).unwrap();
    if let Some(changes) = case["change"].as_object() {
        for (pointer, value) in changes {
            *signed.pointer_mut(pointer).unwrap() = value.clone();
        }
    }
    if case["unsigned"] == true {
        signed.as_object_mut().unwrap().remove("signature");
    }
    let mut publishers = Publishers::default();
    if let Some(seed) = case["publisher_seed"].as_u64() {
        publishers.pin(id(), SigningKey::from_seed([seed as u8; 32]).did_key());
    }
    let pinned = case.get("pinned").map(|value| read(value).unwrap().digest());
    let signer = DidDocument::of_key(&Did::parse(did.as_str()).unwrap()).unwrap();
    schema::admit(&document(&signed), &signer, &publishers, pinned.as_ref()).map_err(refused)?;
    Ok(json!({}))
}

fn additive(case: &Value) -> Outcome {
    schema::additive(&case["old"], &case["new"]).map_err(refused)?;
    Ok(json!({}))
}

fn answer(case: &Value) -> Outcome {
    match case["kind"].as_str().unwrap() {
        "version" => {
            let version = |name: &str| Version::parse(case[name].as_str().unwrap()).ok_or(json!({"valid": false}));
            Ok(json!({"less": version("left")? < version("right")?, "same": version("left")? == version("right")?}))
        }
        "profile" => Ok(profile(&case["profile"])?.to_value()),
        "negotiate" => negotiate(case),
        "negotiate_again" => negotiate_again(case),
        "answered" => answered(case),
        "serve" => serve(case),
        "request" => request(case),
        "announce" => announce(case),
        "succeed" => succeed(case),
        "mapping" => read(&case["mapping"]).map(|_| json!({})).map_err(refused),
        "translate" => translate(case),
        "pairs" => pairs(case),
        "compose" => compose(case),
        "admit" => admit(case),
        "additive" => additive(case),
        "schema" => validator(case),
        other => panic!("no such kind: {other}"),
    }
}

/// What is expected is there; more may be.
fn agrees(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(name, value)| got.get(name).is_some_and(|got| agrees(value, got)))
        }
        _ => expected == got,
    }
}

/// Puts a case to the crate, and says what came out otherwise.
#[expect(clippy::disallowed_methods, reason = "some cases say how long they may take")]
pub(crate) fn judge(_: &Value, case: &Value) -> Option<String> {
    let full = expanded(case);
    let start = Clock::now();
    let got = answer(&full).unwrap_or_else(|refused| refused);
    let millis = start.elapsed().as_millis() as u64;
    // An exact document is meant exactly.
    let exact = full["expect"].get("document").is_none_or(|document| *document == got["document"]);
    let refuses = full["expect"].get("code").is_some() == got.get("code").is_some();
    // Without optimisation and with others beside it, everything takes longer.
    let slower = if cfg!(debug_assertions) { 50 } else { 1 };
    let late = case["within_ms"].as_u64().is_some_and(|within| millis > within * slower);
    match agrees(&full["expect"], &got) && exact && refuses {
        true => late.then(|| format!("took {millis} ms")),
        false => Some(format!("expected {}, got {got}", case["expect"])),
    }
}

#[test]
fn every_case_comes_out_as_the_corpus_says() {
    let verdicts = corpus::put("schema", "", judge).unwrap();
    assert_eq!(corpus::surprises(&verdicts), [""; 0]);
    assert!(verdicts.len() >= 200, "{}", verdicts.len());
    assert!(verdicts.iter().filter(|verdict| verdict.id.starts_with("bomb-")).count() >= 30);
}
