//! RFC 0024: every case of `conformance/schema` against this crate.

use crate::mappings::read;
use json::{Document, Instant};
use schema::{
    Agreement, CompatibilityProfile, Deprecation, Disagreement, Entry, Form, Mapping, NegotiatedRequest, Permits,
    Publishers, Refusal, SchemaId, Version,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trust::{Did, DidDocument, SigningKey};

type Outcome = Result<Value, Value>;

fn refused(refusal: Refusal) -> Value {
    json!({"code": refusal.code.name(), "at": refusal.at.as_str()})
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
    let translation = mapping.translate(&case["document"]).map_err(refused)?;
    if let Some(schema) = case.get("destination_schema") {
        schema::Validator::compile(schema).map_err(refused)?.check(&translation.document).map_err(refused)?;
    }
    Ok(json!({"document": translation.document, "losses": losses(&translation)}))
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
    let translation = all.translate(&case["document"]).map_err(refused)?;
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

#[test]
fn every_case_comes_out_as_the_corpus_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/schema");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in &files {
        let theme: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for case in theme["cases"].as_array().unwrap() {
            let got = answer(case).unwrap_or_else(|refused| refused);
            count += 1;
            // An exact document is meant exactly.
            let exact = case["expect"].get("document").is_none_or(|document| *document == got["document"]);
            let refuses = case["expect"].get("code").is_some() == got.get("code").is_some();
            if !agrees(&case["expect"], &got) || !exact || !refuses {
                wrong.push(format!("{}: expected {}, got {got}", case["id"], case["expect"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 100, "{count}");
}
