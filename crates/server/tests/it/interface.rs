//! What is described is what is: paths, methods, schemas and examples of `openapi.json`.

use crate::House;
use json::{Value, json};
use jsonschema::{Registry, Validator};
use reqwest::{Method, StatusCode};
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/schemas"))
}

pub(crate) fn read(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap();
    json::Document::parse(&bytes, &json::Limits::OURS).unwrap().root().to_value()
}

pub(crate) fn names() -> impl Iterator<Item = String> {
    std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap())
}

fn registry() -> Registry<'static> {
    let mut registry = Registry::new();
    for name in names() {
        let schema = read(&folder().join(name));
        let id = schema["$id"].as_str().unwrap().to_owned();
        registry = registry.add(id, schema).unwrap();
    }
    registry.prepare().unwrap()
}

fn validator(registry: &Registry<'static>, schema: &Value) -> Validator {
    jsonschema::options().with_registry(registry).offline().should_validate_formats(true).build(schema).unwrap()
}

/// Checks a document against one of our schemas.
#[track_caller]
pub(crate) fn valid(schema: &str, instance: &Value) {
    let problems = problems(&json!({"$ref": read(&folder().join(schema))["$id"]}), instance);
    assert!(problems.is_empty(), "{schema}: {}\n{instance:#}", problems.join("; "));
}

fn problems(schema: &Value, instance: &Value) -> Vec<String> {
    let registry = registry();
    let errors = validator(&registry, schema);
    errors.iter_errors(instance).map(|error| format!("{error} at {}", error.instance_path())).collect()
}

fn openapi() -> Value {
    read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json")))
}

/// Every place in the description that has a schema and an example.
fn bodies() -> Vec<(String, Value)> {
    let openapi = openapi();
    let mut bodies = Vec::new();
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap().iter();
            let sent = operation.get("requestBody").map(|body| ("request", body)).into_iter();
            for (what, body) in sent.chain(responses.map(|(status, body)| (status.as_str(), body))) {
                for (media_type, content) in body.get("content").and_then(Value::as_object).into_iter().flatten() {
                    bodies.push((format!("{method} {path} {what} {media_type}"), content.clone()));
                }
            }
        }
    }
    bodies
}

/// A schema of the description with its addresses turned into the ids of our schemas.
fn with_ids(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match value.as_str().and_then(|text| text.strip_prefix("/schemas/")) {
                Some(file) if name == "$ref" => (name.clone(), read(&folder().join(file))["$id"].clone()),
                _ => (name.clone(), with_ids(value)),
            })
            .collect(),
        Value::Array(elements) => elements.iter().map(with_ids).collect(),
        other => other.clone(),
    }
}

#[test]
fn our_schemas_are_schemas_and_name_only_each_other() {
    let registry = registry();
    for name in names() {
        let schema = read(&folder().join(&name));
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        validator(&registry, &schema);
    }
}

#[test]
fn every_example_is_allowed_by_its_schema() {
    let mut examples = 0;
    for (what, content) in bodies() {
        let Some(example) = content.get("example") else { continue };
        let schema = content.get("schema").unwrap_or_else(|| panic!("{what} has an example and no schema"));
        let problems = problems(&with_ids(schema), example);
        assert!(problems.is_empty(), "{what}: {}", problems.join("; "));
        examples += 1;
    }
    assert!(examples >= 20, "{examples}");
}

/// A schema that allows everything would let the test above pass.
#[test]
fn schemas_refuse_what_is_not_described() {
    for (what, content) in bodies() {
        let Some(example) = content.get("example").filter(|example| example.is_object()) else { continue };
        if content["schema"].get("$ref").is_none() || what.contains("invoke request") {
            continue;
        }
        let mut strange = example.clone();
        strange["surprise"] = json!(true);
        assert!(!problems(&with_ids(&content["schema"]), &strange).is_empty(), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_router_does_what_is_described_and_nothing_else() {
    let house = House::open().await;
    let openapi = house.get("/openapi.json").await.json();
    assert_eq!(openapi["openapi"], "3.1.0");
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        let described: BTreeSet<String> =
            methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        let path = path.replace("{id}", "urn%3Ax").replace("{name}", "oap-intent.schema.json");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = house.send(method.parse::<Method>().unwrap(), &path, &json!({})).await;
            let done = answer.status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(done, described.contains(method), "{method} {path}: {}", answer.status);
            let nowhere =
                answer.status == StatusCode::NOT_FOUND && answer.bytes.windows(12).any(|word| word == b"no_such_path");
            assert!(!nowhere, "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_description_points_to_is_served() {
    let house = House::open().await;
    for name in names() {
        let answer = house.get(&format!("/schemas/{name}")).await;
        assert!(answer.header("content-type").starts_with("application/schema+json"), "{name}");
        assert_eq!(answer.json(), read(&folder().join(&name)));
    }
    let described: BTreeSet<String> = house
        .get("/refusals.json")
        .await
        .json()
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|family| family["codes"].as_array().unwrap())
        .map(|refusal| refusal["code"].as_str().unwrap().to_owned())
        .collect();
    assert!(described.contains("misdirected_request") && described.contains("json_too_large"));
    for (what, content) in bodies() {
        if let Some(code) = content.pointer("/example/error/details/code") {
            assert!(described.contains(code.as_str().unwrap()), "{what}: {code}");
        }
    }
    let page = house.get("/docs").await;
    let text = String::from_utf8_lossy(&page.bytes);
    assert!(
        text.contains(&format!("curl -sS {}/health", house.url)) && !text.contains(":7420"),
        "examples name this node"
    );
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
}

/// Every document in a value that somebody signed, itself included.
fn signed_in(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            if members.get("signature").is_some_and(|signature| signature.get("kid").is_some()) {
                found.push(value.clone());
            }
            members.values().for_each(|member| signed_in(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| signed_in(element, found)),
        _ => {}
    }
}

#[test]
fn every_signed_example_is_the_word_of_its_signer() {
    let (mut signed, mut wrong) = (Vec::new(), Vec::new());
    for (what, content) in bodies() {
        let mut found = Vec::new();
        content.get("example").into_iter().for_each(|example| signed_in(example, &mut found));
        signed.extend(found.into_iter().map(|example| (what.clone(), example)));
    }
    assert!(signed.len() >= 30, "{}", signed.len());
    for (what, example) in signed {
        let key = example["signature"]["kid"].as_str().unwrap();
        let did = trust::Did::parse(key.split('#').next().unwrap()).unwrap();
        let keys = trust::DidDocument::of_key(&did).unwrap();
        let document = json::Document::of(&example).unwrap();
        if let Err(error) = trust::Signed::read(&document).and_then(|signed| signed.verify_with(&keys)) {
            wrong.push(format!("{what}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifest_in_the_description_has_the_limits_of_a_node() {
    let house = House::open().await;
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    let described = openapi()["paths"]["/.well-known/oap-tool.json"]["get"]["responses"]["200"].clone();
    let example = described["content"].as_object().unwrap().values().next().unwrap()["example"].clone();
    let described = example["limits"].as_object().unwrap();
    for family in ["mapping", "mappings", "profile", "schema"] {
        assert!(described.contains_key(family), "{family}");
    }
    for (family, limits) in described {
        for (name, limit) in limits.as_object().unwrap() {
            assert_eq!(&manifest["limits"][family][name], limit, "{family}.{name}");
        }
    }
}
