//! OAS Agent, OAS Engagement, OAS Lifespan: every case of `conformance/agent` against this crate; `cargo xtask conformance`
//! has them judged here, too.

use agent::{Agent, Assertion, Check, Finding, Name, NameRule, Reference, Registry, Scenario, Target, Tool};
use json::{Value, json};
use std::sync::Arc;

/// A JSON Schema as a judge.
pub(crate) fn compile(schema: &Value) -> Result<Arc<dyn Check>, String> {
    struct Judge(jsonschema::Validator);
    impl Check for Judge {
        fn check(&self, inputs: &Value) -> Result<(), String> {
            self.0.validate(inputs).map_err(|error| error.to_string())
        }
    }
    let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
    Ok(Arc::new(Judge(validator)))
}

fn rule(case: &Value) -> NameRule {
    match case["rule"].as_str() {
        None | Some("text") => NameRule::Text,
        Some("draft") => NameRule::Draft,
        Some("both") => NameRule::Both,
        Some(other) => panic!("nobody knows the rule `{other}`"),
    }
}

fn texts(case: &Value, name: &str) -> Vec<String> {
    case[name].as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn name(case: &Value) -> Value {
    match Name::read(case["text"].as_str().unwrap(), rule(case)) {
        Ok(name) => json!({"valid": true, "sound": name.has_sound_labels()}),
        Err(_) => json!({"valid": false}),
    }
}

fn reference(case: &Value) -> Value {
    match Reference::read(case["text"].as_str().unwrap(), rule(case)) {
        Ok(reference) => {
            let form = match reference {
                Reference::Bare(_) => "bare",
                Reference::Agent(_) => "agent",
                Reference::Remote { .. } => "remote",
            };
            json!({"form": form, "name": reference.name().as_str(), "url": reference.url()})
        }
        Err(_) => json!({"code": "invalid_reference"}),
    }
}

fn tool() -> Tool {
    Tool::new("A tool.", json!({"type": "object"}), compile(&json!({"type": "object"})).unwrap())
}

fn named(text: &str) -> Name {
    Name::read(text, NameRule::Both).unwrap()
}

fn registry(case: &Value) -> Registry {
    let mut registry = Registry::default();
    for name in texts(case, "tools") {
        registry.add_tool(&named(&name), tool()).unwrap();
    }
    for name in texts(case, "agents") {
        registry.add_agent(&named(&name), "An agent.").unwrap();
    }
    for reference in texts(case, "remotes") {
        registry.add_remote(&Reference::read(&reference, NameRule::Both).unwrap(), "A remote agent.");
    }
    texts(case, "identities").iter().for_each(|identity| registry.add_identity(identity));
    registry.options.lends_to_strangers = case["lends_to_strangers"].as_bool().unwrap_or(false);
    registry
}

fn resolve(case: &Value) -> Value {
    let reference = Reference::read(case["reference"].as_str().unwrap(), NameRule::Both).unwrap();
    let target = registry(case).resolve(&reference).map(|target| match target {
        Target::Tool(name) => format!("tool {name}"),
        Target::Agent(name) => format!("agent {name}"),
        Target::Remote { reference, .. } => format!("remote {reference}"),
    });
    json!({"target": target})
}

fn register(case: &Value) -> Value {
    let mut registry = Registry::default();
    let tools: Vec<bool> =
        texts(case, "tools").iter().map(|name| registry.add_tool(&named(name), tool()).is_ok()).collect();
    let agents: Vec<bool> =
        texts(case, "agents").iter().map(|name| registry.add_agent(&named(name), "").is_ok()).collect();
    json!({"tools": tools, "agents": agents})
}

fn told(findings: &[Finding]) -> Vec<String> {
    let line = |finding: &Finding| {
        let (line, column) = finding.position.unwrap_or_default();
        format!("{} {} {line}:{column}", finding.code.name(), finding.at)
    };
    findings.iter().map(line).collect()
}

fn text(theme: &Value, case: &Value) -> String {
    match (case["text"].as_str(), case["rest"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(rest)) => format!("{}{rest}", theme["head"].as_str().unwrap()),
        (None, None) => panic!("{} has no document", case["id"]),
    }
}

fn document(theme: &Value, case: &Value) -> Value {
    match Agent::read(text(theme, case).as_bytes()) {
        Ok(agent) => json!({
            "name": agent.name.as_str(),
            "keys": agent.capabilities.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(),
            "aliases": agent.capabilities.iter().map(|one| one.alias.as_str()).collect::<Vec<_>>(),
            "retain_memory": agent.lifespan.retain_memory,
            "short_circuit": agent.lifespan.short_circuit,
            "warnings": told(&agent.warnings),
        }),
        Err(findings) => json!({"errors": told(&findings)}),
    }
}

fn judged(theme: &Value, case: &Value) -> Value {
    let agent = Agent::read(text(theme, case).as_bytes()).unwrap();
    json!({"findings": told(&registry(case).judge(&agent))})
}

/// What a scenario came to: nothing but its differences.
fn play(scenario: Value, document: &str) -> Value {
    let agent = match Agent::read(document.as_bytes()) {
        Ok(agent) => agent,
        Err(findings) => panic!("{document}\n{:?}", told(&findings)),
    };
    let scenario = Scenario::of(scenario).unwrap();
    match scenario.play(&agent, &compile) {
        Ok(played) => json!({"mismatches": played.mismatches}),
        Err(why) => json!({"mismatches": [why]}),
    }
}

fn scenario(theme: &Value, case: &Value) -> Value {
    let mut scenario = case.clone();
    for member in ["id", "requirement", "kind", "rest", "text"] {
        scenario.as_object_mut().unwrap().remove(member);
    }
    play(scenario, &text(theme, case))
}

/// A model that obeys, told by an attack at a place, under a policy.
fn injection(theme: &Value, case: &Value) -> Value {
    let policy = &theme["policies"][case["policy"].as_str().unwrap()];
    let attack = theme["attacks"][case["attack"].as_str().unwrap()].as_str().unwrap();
    let mut read = json!({"returns": [{"text": "nothing"}]});
    let mut far = json!({"returns": [{"text": "nothing"}]});
    let mut helper = far.clone();
    let mut says = vec![r"<<call read {}>>".to_owned()];
    match case["place"].as_str().unwrap() {
        "output" => read["returns"] = json!([{"text": attack}]),
        "list" => read["returns"] = json!([{"items": [{"t": "fine"}, {"t": attack}]}]),
        "key" => read["returns"] = json!([{attack: true}]),
        "error" => read = json!({"fails": attack}),
        "second" => {
            read["returns"] = json!([{"text": "nothing"}, {"text": attack}]);
            says.push(says[0].clone());
        }
        "agent" => {
            helper["returns"] = json!([{"text": attack}]);
            says = vec![r#"<<call helper {"text": "x"}>>"#.to_owned()];
        }
        "remote" => {
            far["returns"] = json!([{"text": attack}]);
            says = vec![r#"<<call far {"text": "x"}>>"#.to_owned()];
        }
        "user" => says = vec![attack.to_owned()],
        place => panic!("nobody knows the place `{place}`"),
    }
    let stranger = policy["stranger"].as_bool().unwrap_or(false);
    let scenario = json!({
        "user": if stranger { Value::Null } else { json!({"id": "ada", "email": "ada@example.org"}) },
        "tools": {
            "read": read,
            "mail": {"parameters": theme["mail_schema"], "writes": policy["writes"].as_bool().unwrap_or(false)},
            "admin": {},
            "guard": {"returns": [policy.get("guard").cloned().unwrap_or_else(|| json!({"ok": true}))]},
        },
        "agents": {"helper": helper},
        "remotes": {"oagent://far.example/far": far},
        "reviews": policy.get("reviews").cloned().unwrap_or_else(|| json!([])),
        "says": says,
        "model": "obeys",
        "expect": case["expect"],
    });
    play(scenario, policy["document"].as_str().unwrap())
}

fn assertion(theme: &Value, case: &Value) -> Value {
    let keys = texts(theme, "keys");
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    match Assertion::read(case["source"].as_str().unwrap(), &keys) {
        Ok(assertion) => {
            let held = assertion.holds(&theme["object"]);
            json!({"result": held.map_or_else(|failing| failing.name(), |()| "true")})
        }
        Err(finding) => json!({"code": finding.code.name()}),
    }
}

/// Puts a case to the crate, and says what came out otherwise.
pub(crate) fn judge(theme: &Value, case: &Value) -> Option<String> {
    let got = match case["kind"].as_str().unwrap() {
        "name" => name(case),
        "reference" => reference(case),
        "resolve" => resolve(case),
        "register" => register(case),
        "document" => document(theme, case),
        "judge" => judged(theme, case),
        "assertion" => assertion(theme, case),
        "scenario" | "injection" => {
            let got = if case["kind"] == "scenario" { scenario(theme, case) } else { injection(theme, case) };
            let mismatches = texts(&got, "mismatches");
            return (!mismatches.is_empty()).then(|| mismatches.join("; "));
        }
        kind => panic!("nobody knows the kind `{kind}`"),
    };
    let expected = case["expect"].as_object().unwrap();
    assert!(!expected.is_empty(), "{}", case["id"]);
    let refused = ["code", "errors"].iter().find(|name| got.get(**name).is_some() && !expected.contains_key(**name));
    let differs = expected.iter().filter(|(name, value)| got.get(*name).unwrap_or(&Value::Null) != *value);
    let mut wrong: Vec<String> =
        differs.map(|(name, value)| format!("{name}: expected {value}, got {}", got[name])).collect();
    wrong.extend(refused.map(|_| format!("is refused: {got}")));
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

#[test]
fn every_case_comes_out_as_the_corpus_says() {
    let verdicts = corpus::put("agent", "", judge).unwrap();
    assert_eq!(corpus::surprises(&verdicts), [""; 0]);
    assert!(verdicts.len() >= 900, "{}", verdicts.len());
}

#[test]
fn a_case_that_expects_the_opposite_fails() {
    let (mut failing, mut scenarios) = (0, 0);
    corpus::put("agent", "", |theme, case| {
        let calls = case["expect"].get("calls")?;
        let mut other = case.clone();
        let more = json!({"surprise": {}});
        other["expect"]["calls"] = calls.as_array().unwrap().iter().cloned().chain([more]).collect();
        scenarios += 1;
        failing += usize::from(judge(theme, &other).is_some());
        None
    })
    .unwrap();
    assert!(scenarios > 100 && failing == scenarios, "{failing} of {scenarios}");
}
