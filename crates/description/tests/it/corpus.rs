//! ADP Table 1, ADP Table 5, ADP Table 2: every case of `conformance/description` against this crate.

use description::{
    Access, Activation, Call, Definition, Findings, Link, Mode, Origin, Page, Reading, Requirement, Unbound,
};
use json::{Document, Pointer};
use serde_json::{Map, Value, json};

fn refused(code: &str, at: &Pointer) -> Value {
    json!({"code": code, "at": at.as_str()})
}

/// The bytes that a case puts: a text, a document, or the base with changes.
fn bytes(theme: &Value, case: &Value) -> Vec<u8> {
    if let Some(text) = case["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(document) = case.get("document") {
        return document.to_string().into_bytes();
    }
    let mut document = theme["base"].clone();
    for (at, value) in case["change"].as_object().unwrap() {
        change(&mut document, at, value);
    }
    document.to_string().into_bytes()
}

fn change(document: &mut Value, at: &str, value: &Value) {
    let (above, name) = at.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(above).unwrap() {
        Value::Object(members) if value == "{absent}" => assert!(members.remove(&name).is_some(), "{at}"),
        Value::Object(members) => assert!(members.insert(name, value.clone()).as_ref() != Some(value), "{at}"),
        Value::Array(elements) => elements[name.parse::<usize>().unwrap()] = value.clone(),
        _ => panic!("nothing can be put at `{at}`"),
    }
}

fn told(findings: &Findings, mode: Mode) -> Value {
    let line = |(grade, finding): (description::Grade, &description::Finding)| {
        format!("{} {} {}", finding.rule.number(), grade.name(), finding.at).trim_end().to_owned()
    };
    let mut lines: Vec<String> = findings.of(mode).map(line).collect();
    lines.sort();
    json!(lines)
}

fn demanded(requirement: &Requirement) -> Value {
    match requirement {
        Requirement::DidWba(Some(did)) => json!(format!("didwba {did}")),
        Requirement::DidWba(None) => json!("didwba"),
        Requirement::Other(scheme) => json!(scheme),
        Requirement::OneOf(ways) => {
            json!({"one_of": ways.iter().map(|way| way.iter().map(demanded).collect()).collect::<Vec<Vec<Value>>>()})
        }
    }
}

fn access(reading: &Reading, at: &str) -> Value {
    let interfaces = reading.agent.interfaces.iter().map(|interface| (&interface.at, &interface.security));
    let resources = reading.agent.resources.iter().map(|resource| (&resource.at, &resource.security));
    let own = interfaces.chain(resources).find(|(place, _)| place.as_str() == at).map(|(_, own)| own);
    assert_eq!(own.is_none(), at.is_empty(), "`{at}` is no element");
    match reading.access(own.unwrap_or(&Activation::Absent)) {
        Access::Unspecified => json!("unspecified"),
        Access::Public => json!("public"),
        Access::Denied => json!("denied"),
        Access::Demands(requirements) => requirements.iter().map(demanded).collect(),
    }
}

fn binding(origin: Option<&Origin<'_>>, reading: &Reading) -> &'static str {
    match origin.map(|origin| origin.binds(&reading.agent)) {
        None | Some(Err(Unbound::NoDid)) => "no did",
        Some(Ok(())) => "bound",
        Some(Err(Unbound::NoDocument)) => "no document",
        Some(Err(Unbound::NotListed)) => "not listed",
        Some(Err(Unbound::OtherHost)) => "other host",
    }
}

fn describe(theme: &Value, case: &Value) -> Value {
    let bytes = bytes(theme, case);
    let document = case["origin"].get("did_document").map(|document| Document::of(document).unwrap());
    let did_document = document.as_ref().map(Document::root);
    let origin = case["origin"]["url"].as_str().map(|url| Origin { url, did_document });
    let reading = match description::read(&bytes, origin.as_ref()) {
        Ok(reading) => reading,
        Err(error) => return refused(error.code.name(), &error.at),
    };
    let link = |link: &Link| format!("{} {} {}", link.kind.name(), link.at, link.url);
    let places = case["expect"]["access"].as_object().cloned().unwrap_or_default();
    let access: Map<String, Value> = places.keys().map(|at| (at.clone(), access(&reading, at))).collect();
    json!({
        "strict": told(&reading.findings, Mode::Strict),
        "lenient": told(&reading.findings, Mode::Lenient),
        "form": reading.form.name(),
        "did": reading.agent.did.as_ref().map(ToString::to_string),
        "name": reading.agent.name,
        "description": reading.agent.description,
        "protocol": reading.agent.interfaces.first().and_then(|interface| interface.protocol.clone()),
        "links": reading.links.iter().map(link).collect::<Vec<_>>(),
        "access": access,
        "binding": binding(origin.as_ref(), &reading),
        "kept": reading.bytes() == bytes,
    })
}

fn define(theme: &Value, case: &Value) -> Value {
    let definition = match Definition::parse(&bytes(theme, case)) {
        Ok(definition) => definition,
        Err(refusal) => return refused(refusal.code.name(), &refusal.at),
    };
    let operation = |operation: &description::Operation| {
        let call = match &operation.call {
            Call::Rpc => "json-rpc".to_owned(),
            Call::Http { method, path } => format!("{method} {path}"),
            Call::Words => "words".to_owned(),
        };
        json!({"name": operation.name, "call": call, "params": operation.params_schema(), "result": operation.result})
    };
    json!({
        "strict": told(&definition.findings, Mode::Strict),
        "lenient": told(&definition.findings, Mode::Lenient),
        "format": definition.format.name(),
        "servers": definition.servers,
        "operations": definition.operations.iter().map(operation).collect::<Vec<_>>(),
    })
}

fn page(theme: &Value, case: &Value) -> Value {
    match Page::read(&bytes(theme, case), case["url"].as_str().unwrap()) {
        Ok(page) => json!({
            "strict": told(&page.findings, Mode::Strict),
            "lenient": told(&page.findings, Mode::Lenient),
            "items": page.items.iter().map(|item| item.url.as_str()).collect::<Vec<_>>(),
            "next": page.next,
        }),
        Err(error) => refused(error.code.name(), &error.at),
    }
}

/// What a case says must come out, with its findings in order.
fn expected(case: &Value) -> Map<String, Value> {
    let mut expected = case["expect"].as_object().unwrap().clone();
    for mode in ["strict", "lenient"] {
        if let Some(Value::Array(lines)) = expected.get_mut(mode) {
            lines.sort_by(|left, right| left.as_str().cmp(&right.as_str()));
        }
    }
    expected
}

/// Puts a case to the crate, and says what came out otherwise.
pub(crate) fn judge(theme: &Value, case: &Value) -> Option<String> {
    let got = match case["kind"].as_str().unwrap() {
        "describe" => describe(theme, case),
        "definition" => define(theme, case),
        "page" => page(theme, case),
        kind => panic!("nobody knows the kind `{kind}`"),
    };
    let expected = expected(case);
    assert!(!expected.is_empty(), "{}", case["id"]);
    if got.get("code").is_some() && !expected.contains_key("code") {
        return Some(format!("is refused: {got}"));
    }
    let (name, value) = expected.iter().find(|(name, value)| got.get(*name) != Some(value))?;
    Some(format!("{name}\n  expected {value}\n  got      {}", got[name]))
}

#[test]
fn every_case_comes_out_as_the_corpus_says() {
    let verdicts = corpus::put("description", "", judge).unwrap();
    assert_eq!(corpus::surprises(&verdicts), [""; 0]);
    assert!(verdicts.len() >= 200, "{}", verdicts.len());
}

#[test]
fn every_rule_that_can_be_broken_is_broken_somewhere() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/description");
    let texts: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    // These say what the others mean, and cannot be broken by a document.
    let meanings = ["R25", "R26", "R41", "R42"];
    for rule in description::Rule::ALL.iter().map(|rule| rule.number()) {
        let broken = texts
            .iter()
            .any(|text| ["error", "warning", "info"].iter().any(|g| text.contains(&format!("\"{rule} {g}"))));
        assert_eq!(broken, !meanings.contains(&rule), "{rule}");
    }
}
