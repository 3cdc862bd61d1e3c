//! RFC 0020 §3.1, §3.7: what is emitted and what is accepted is valid under our schemas, and under the published ones
//! wherever nothing of our additions is in use.
//!
//! The published schemas lie beside the project, if at all. Nothing is fetched.

use crate::{repository, the_corpus};
use aql::{Candidate, Fuel, Intent, Limits, OverBudget, Responder};
use conformance::Case;
use json::Document;
use jsonschema::{Registry, Validator};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trust::SigningKey;

const INTENT: &str = "oap-intent.schema.json";
const RESPONSE: &str = "oap-intent-response.schema.json";
const DECISION: &str = "oap-aql-decision.schema.json";

/// The three schemas of one folder, which know each other.
struct Schemas {
    folder: PathBuf,
    registry: Registry<'static>,
}

impl Schemas {
    fn read(folder: PathBuf) -> Self {
        let schemas = [INTENT, RESPONSE, DECISION].map(|name| schema(&folder, name));
        let registry = schemas.into_iter().fold(Registry::new(), |registry, schema| {
            let id = schema["$id"].as_str().unwrap().to_owned();
            registry.add(id, schema).unwrap()
        });
        Self { folder, registry: registry.prepare().unwrap() }
    }

    fn ours() -> Self {
        Self::read(repository("spec/schemas"))
    }

    fn published() -> Option<Self> {
        let folder = repository("../shared/schemas");
        if !folder.is_dir() {
            println!("skipped: the published schemas are not beside the project");
            return None;
        }
        Some(Self::read(folder))
    }

    fn validator(&self, name: &str) -> Validator {
        let schema = json!({"$ref": schema(&self.folder, name)["$id"]});
        let options = jsonschema::options().with_registry(&self.registry).offline().should_validate_formats(true);
        options.build(&schema).unwrap()
    }
}

fn schema(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

#[track_caller]
fn valid(validator: &Validator, instance: &Value, what: &str) {
    let errors: Vec<String> =
        validator.iter_errors(instance).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {}", errors.join("; "));
}

fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

/// Resolves and signs as a node does; nothing when the intent or a candidate is refused.
fn respond(intent: &Value, candidates: &[Value], over_budget: OverBudget) -> Option<Value> {
    let intent = Intent::read(Document::of(intent).unwrap().root(), &Limits::STANDARD).ok()?;
    let read = |(position, value)| Candidate::read(Document::of(value).unwrap(), position + 1).ok();
    let candidates: Vec<Candidate> = candidates.iter().enumerate().map(read).collect::<Option<_>>()?;
    let resolution = aql::resolve(&intent, &candidates, over_budget, Fuel::STANDARD).ok()?;
    let (key, did) = (key(), key().did_key().to_string());
    let responder = Responder {
        response_id: "urn:oap:intent-response:schema-test",
        resolver_did: &did,
        evaluated_at: intent.validity.from(),
        rejected_max: usize::MAX,
        next_cursor: None,
        recorded: aql::Recorded::default(),
    };
    let mut body: Value = serde_json::from_slice(&responder.write(&intent, &resolution, None).unwrap()).unwrap();
    trust::sign(&mut body, &key).unwrap();
    let sent = responder.write(&intent, &resolution, Some(&body["signature"])).unwrap();
    assert_eq!(sent, json::canonical_value(&body), "what is sent is what was signed, with the signature in its place");
    let document = Document::parse(&sent, &json::Limits::OURS).unwrap();
    assert_eq!(trust::verify_did_key(&document, "resolver_did").unwrap().signer().as_str(), did);
    Some(body)
}

/// Every response to the corpus and to the examples, with a name for it.
fn responses() -> Vec<(String, Value)> {
    let corpus = the_corpus();
    let mut responses = Vec::new();
    for (_, case) in corpus.cases().filter(|(_, case)| case.kind == "resolve") {
        let over_budget = if case.input("over_budget") == "reject" { OverBudget::Reject } else { OverBudget::Flag };
        let candidates = case.input("candidates").as_array().unwrap();
        let response = respond(case.input("intent"), candidates, over_budget);
        assert_eq!(response.is_none(), case.expect.get("code").is_some(), "{}", case.id);
        responses.extend(response.map(|response| (case.id.clone(), response)));
    }
    // What stays open is acknowledged, not answered.
    for (name, intent) in examples().into_iter().filter(|(_, intent)| intent["category"] != "subscription") {
        let market = match intent["category"].as_str() {
            Some("commercial") => "offers",
            Some("knowledge") => "knowledge",
            _ => "manifests",
        };
        let text = std::fs::read_to_string(repository("examples/market").join(format!("{market}.ndjson"))).unwrap();
        let candidates: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let response = respond(&intent, &candidates, OverBudget::Flag).unwrap();
        assert!(!response["candidates"].as_array().unwrap().is_empty(), "{name} finds something");
        responses.push((name, response));
    }
    responses
}

/// The drafts among the examples, completed and signed.
fn examples() -> Vec<(String, Value)> {
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(repository("examples/intents")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut intent: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            intent["intent_id"] = json!(format!("urn:oap:intent:{name}"));
            intent["issuer_did"] = json!(key().did_key().to_string());
            intent["validity"] = json!({"from": "2026-06-01T08:00:00Z", "to": "2026-06-01T20:00:00Z"});
            trust::sign(&mut intent, &key()).unwrap();
            examples.push((name, intent));
        }
    }
    examples.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(examples.len(), 11);
    examples
}

/// Every intent that is accepted, signed where the case leaves the signature out.
fn accepted_intents() -> Vec<(String, Value)> {
    let corpus = the_corpus();
    let asked = |case: &Case| match case.kind.as_str() {
        "accept" => {
            case.bytes().map(|bytes| serde_json::from_slice(&bytes).unwrap()).or(Some(case.input("intent").clone()))
        }
        "resolve" if case.expect.get("code").is_none() => Some(case.input("intent").clone()),
        _ => None,
    };
    let mut intents: Vec<(String, Value)> =
        corpus.cases().filter_map(|(_, case)| Some((case.id.clone(), asked(case)?))).collect();
    for (id, intent) in &mut intents {
        assert!(Intent::parse(intent.to_string().as_bytes(), &Limits::STANDARD).is_ok(), "{id}");
        if intent.get("signature").is_none() {
            trust::sign(intent, &key()).unwrap();
        }
    }
    intents.extend(examples());
    intents
}

/// Whether an intent uses something that the published schema does not have: a member, or a spelling of constraints.
fn uses_an_addition(intent: &Value) -> bool {
    fn in_tree(node: &Value) -> bool {
        let parts = |name: &str| node[name].as_array().is_some_and(|parts| parts.iter().any(in_tree));
        node.is_array()
            || node["path"] == ""
            || parts("all_of")
            || parts("any_of")
            || node.get("not").is_some_and(in_tree)
    }
    let members = ["payment_constraints", "schema_id", "schema_version", "version_negotiation"];
    members.iter().any(|member| intent.get(member).is_some()) || in_tree(&intent["constraints"])
}

fn records(response: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["candidates", "rejected"].map(|list| response[list].as_array().into_iter().flatten());
    lists.into_iter().flatten().map(|entry| &entry["decision_record"])
}

#[test]
fn every_response_is_valid() {
    let responses = responses();
    assert!(responses.len() > 200, "{}", responses.len());
    for schemas in [Some(Schemas::ours()), Schemas::published()].into_iter().flatten() {
        let validator = schemas.validator(RESPONSE);
        for (name, response) in &responses {
            valid(&validator, response, name);
        }
    }
}

#[test]
fn every_decision_record_is_valid_by_itself() {
    let responses = responses();
    for schemas in [Some(Schemas::ours()), Schemas::published()].into_iter().flatten() {
        let validator = schemas.validator(DECISION);
        let mut count = 0;
        for (name, response) in &responses {
            for record in records(response) {
                valid(&validator, record, name);
                count += 1;
            }
        }
        assert!(count > 1_000, "{count}");
    }
}

#[test]
fn every_accepted_intent_is_valid() {
    let intents = accepted_intents();
    assert!(intents.len() > 300, "{}", intents.len());
    let validator = Schemas::ours().validator(INTENT);
    for (name, intent) in &intents {
        valid(&validator, intent, name);
    }
    let Some(published) = Schemas::published() else { return };
    let validator = published.validator(INTENT);
    let plain: Vec<_> = intents.iter().filter(|(_, intent)| !uses_an_addition(intent)).collect();
    assert!(plain.len() > 200 && plain.len() < intents.len());
    for (name, intent) in plain {
        valid(&validator, intent, name);
    }
    let added = intents.iter().filter(|(_, intent)| uses_an_addition(intent));
    for (name, intent) in added {
        assert!(!validator.is_valid(intent), "{name} uses no addition after all");
    }
}

#[test]
fn the_schemas_refuse_what_is_not_emitted() {
    let (_, response) = responses().into_iter().find(|(_, response)| response["candidates"][0].is_object()).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut response = response.clone();
        change(&mut response);
        response
    };
    let wrong = [
        changed(&|response| drop(response.as_object_mut().unwrap().remove("signature"))),
        changed(&|response| response["note"] = json!("hello")),
        changed(&|response| response["response_id"] = json!("urn:oap:intent:x")),
        changed(&|response| response["evaluated_at"] = json!("yesterday")),
        changed(&|response| response["resolver_role"] = json!("guesser")),
        changed(&|response| response["candidates"][0]["rank"] = json!(0)),
        changed(&|response| response["candidates"][0]["payload"] = json!([])),
        changed(&|response| response["candidates"][0]["note"] = json!(1)),
        changed(&|response| response["candidates"][0]["decision_record"]["outcome"] = json!("perhaps")),
        changed(&|response| drop(response["candidates"][0].as_object_mut().unwrap().remove("decision_record"))),
        changed(&|response| {
            response["candidates"][0]["decision_record"]["constraint_evaluations"][0]["passed"] = json!(1)
        }),
    ];
    for schemas in [Some(Schemas::ours()), Schemas::published()].into_iter().flatten() {
        let validator = schemas.validator(RESPONSE);
        for response in &wrong {
            assert!(!validator.is_valid(response), "{response}");
        }
    }
}

#[test]
fn our_schemas_carry_the_published_names() {
    let Some(published) = Schemas::published() else { return };
    let ours = Schemas::ours();
    for name in [INTENT, RESPONSE, DECISION] {
        assert_eq!(schema(&ours.folder, name)["$id"], schema(&published.folder, name)["$id"]);
    }
}
