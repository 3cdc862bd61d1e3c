//! What we write passes strict, is read back as it was meant, and is read by lenient clients of both texts.

use description::{
    Access, Activation, Definition, Draft, DraftDefinition, DraftInterface, DraftOwner, DraftResource, Form,
    InterfaceKind, Mode, Requirement, Rule, read,
};
use json::Instant;
use proptest::prelude::*;
use serde_json::json;
use trust::Did;

fn interfaces() -> Vec<DraftInterface> {
    let interface = |definition, file: &str| DraftInterface {
        name: "Tides".to_owned(),
        description: "Asks for tides.".to_owned(),
        url: format!("https://ferry.example/agents/tides/{file}"),
        definition,
    };
    let rpc = json!({"openrpc": "1.3.2", "servers": [{"url": "https://ferry.example/rpc"}], "methods": [
        {"name": "high_water", "description": "When water is high.", "params": [], "result": {"name": "t", "schema": {}}}]});
    vec![
        interface(DraftDefinition::OpenRpc(rpc), "interface.json"),
        interface(DraftDefinition::OpenApi, "openapi.yaml"),
        interface(DraftDefinition::Words, "words.yaml"),
    ]
}

fn draft() -> Draft {
    Draft {
        url: "https://ferry.example/agents/tides/ad.json".to_owned(),
        name: "Tide Tables".to_owned(),
        did: Did::parse("did:wba:ferry.example:agents:tides").unwrap(),
        description: "Says when a ferry can land.".to_owned(),
        version: Some("1.0.0".to_owned()),
        language: "en".to_owned(),
        created: Instant::parse("2026-01-31T12:00:00Z"),
        modified: Instant::parse("2026-02-01T12:00:00Z"),
        owner: Some(DraftOwner::Organization("Ferry Works".to_owned(), Some("https://ferry.example".to_owned()))),
        products: Vec::new(),
        services: Vec::new(),
        interfaces: interfaces(),
    }
}

#[test]
fn our_own_description_passes_strict_with_one_warning_about_the_newer_protocol() {
    let written = draft().write();
    let reading = read(written.to_string().as_bytes(), None).unwrap();
    assert_eq!(reading.form, Form::Hybrid);
    let found: Vec<_> = reading.findings.of(Mode::Strict).map(|(_, finding)| finding.rule).collect();
    assert_eq!(found, [Rule::R31]);
    assert_eq!(reading.findings.of(Mode::Lenient).count(), 0);
    let demands = Access::Demands(vec![Requirement::DidWba(reading.agent.did.clone())]);
    assert_eq!(reading.access(&Activation::Absent), demands);
    let kinds: Vec<_> = reading.agent.interfaces.iter().map(|interface| interface.kind.clone()).collect();
    assert_eq!(kinds, [InterfaceKind::Api, InterfaceKind::Api, InterfaceKind::Api, InterfaceKind::NaturalLanguage]);
    let embedded = reading.agent.interfaces.iter().find_map(|interface| interface.content.clone()).unwrap();
    let definition = Definition::read(embedded.find(reading.document().root()).unwrap()).unwrap();
    assert_eq!(definition.operations.len(), 1);
    assert!(definition.findings.all().is_empty());
}

#[test]
fn clients_of_the_newer_text_find_what_they_look_for() {
    let written = draft().write();
    assert!(written["name"].is_string() && written["description"].is_string());
    let structured: Vec<_> = written["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|interface| interface["type"] == "StructuredInterface" && interface["protocol"] == "openrpc")
        .collect();
    assert_eq!(structured.len(), 1);
    assert_eq!(structured[0]["content"]["methods"][0]["name"], "high_water");
}

fn words() -> impl Strategy<Value = String> {
    "\\PC{0,20}[a-zA-Z]\\PC{0,20}"
}

fn resource() -> impl Strategy<Value = DraftResource> {
    (words(), words(), "[a-z0-9/-]{0,20}").prop_map(|(name, description, path)| DraftResource {
        name,
        description,
        url: format!("https://ferry.example/{path}"),
    })
}

proptest! {
    #[test]
    fn whatever_is_drafted_passes_strict_and_says_what_was_meant(
        name in words(), description in words(), segment in "[a-z][a-z0-9-]{0,12}",
        language in "[a-z]{2}(-[A-Z]{2})?", version in proptest::option::of(words()),
        person in any::<bool>(), products in prop::collection::vec(resource(), 0..3),
        services in prop::collection::vec(resource(), 0..3),
    ) {
        let url = format!("https://ferry.example/agents/{segment}/ad.json");
        let did = Did::parse(&format!("did:wba:ferry.example:agents:{segment}")).unwrap();
        let owner = if person { DraftOwner::Person(name.clone(), None) } else { DraftOwner::Organization(name.clone(), None) };
        let draft = Draft {
            url: url.clone(), name: name.clone(), did: did.clone(), description, version, language,
            owner: Some(owner), products, services, ..draft()
        };
        let bytes = draft.write().to_string();
        let reading = read(bytes.as_bytes(), None).unwrap();
        prop_assert!(reading.findings.passes(Mode::Strict), "{:?}", reading.findings);
        prop_assert_eq!(reading.agent.name, Some(name));
        prop_assert_eq!(reading.agent.did, Some(did));
        prop_assert_eq!(reading.agent.id, Some(url));
        prop_assert_eq!(reading.agent.resources.len(), draft.products.len() + draft.services.len());
        prop_assert_eq!(reading.agent.interfaces.len(), 4);
    }
}

#[test]
fn what_is_called_by_json_rpc_becomes_openrpc_without_references() {
    let document = json!({"openrpc": "1.3.2", "info": {"title": "Tides", "version": "2"}, "servers": [{"url": "https://ferry.example/rpc"}],
        "methods": [{"name": "high_water", "params": [{"name": "harbour", "schema": {"$ref": "#/components/schemas/Name"}}],
            "result": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Name"}}}}],
        "components": {"schemas": {"Name": {"type": "string"}}}});
    let definition = Definition::parse(document.to_string().as_bytes()).unwrap();
    let written = definition.to_openrpc();
    assert!(!written.to_string().contains("$ref"));
    let again = Definition::parse(written.to_string().as_bytes()).unwrap();
    assert!(again.findings.all().is_empty(), "{:?}", again.findings);
    assert_eq!(again.operations[0].params_schema(), definition.operations[0].params_schema());
    assert_eq!(again.operations[0].result, definition.operations[0].result);
}
