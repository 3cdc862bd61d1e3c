//! Documents that mean harm: large, deep, full of flaws, full of references, or just random.

use description::{
    Access, Activation, DEFINITION_LIMITS, Definition, FINDINGS_MAX, INLINED_NODES_MAX, Mode, OPERATIONS_MAX, Rule,
    parse_yaml, read,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn findings_are_bounded_and_the_verdict_counts_all() {
    let interfaces: Vec<Value> = (0..1_000).map(|_| json!(7)).collect();
    let reading = read(json!({"name": "x", "interfaces": interfaces}).to_string().as_bytes(), None).unwrap();
    assert_eq!(reading.findings.all().len(), FINDINGS_MAX);
    assert!(reading.findings.omitted() > 700);
    let mut flaws: Vec<Value> = (0..FINDINGS_MAX).map(|_| json!(7)).collect();
    flaws.push(json!({"security": "nobody"}));
    let plain = json!({"protocolType": "ANP", "name": "x", "security": "s", "securityDefinitions": {"s": {"scheme": "didwba"}}, "interfaces": flaws});
    let reading = read(plain.to_string().as_bytes(), None).unwrap();
    assert!(!reading.findings.of(Mode::Lenient).any(|(_, finding)| finding.rule == Rule::R23), "it is not kept");
    assert!(!reading.findings.passes(Mode::Lenient), "it counts all the same");
}

#[test]
fn combinations_that_multiply_are_denied() {
    let mut definitions = Map::new();
    for level in 0..4 {
        let names: Vec<String> = (0..60).map(|n| format!("{}-{n}", level + 1)).collect();
        for n in 0..60 {
            definitions.insert(format!("{level}-{n}"), json!({"scheme": "combo", "oneOf": names}));
        }
    }
    for n in 0..60 {
        definitions.insert(format!("4-{n}"), json!({"scheme": "didwba"}));
    }
    let document = json!({"name": "x", "security": "0-0", "securityDefinitions": definitions});
    let reading = read(document.to_string().as_bytes(), None).unwrap();
    assert_eq!(reading.access(&Activation::Absent), Access::Denied);
}

#[test]
fn references_that_double_are_stopped() {
    let mut schemas = Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/S{}", n + 1)});
        schemas.insert(format!("S{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    schemas.insert("S40".to_owned(), json!({"type": "string"}));
    let document = json!({"openrpc": "1.3.2", "components": {"schemas": schemas}, "methods": [
        {"name": "m", "description": "d", "params": [], "result": {"schema": {"$ref": "#/components/schemas/S0"}}}]});
    let definition = Definition::parse(document.to_string().as_bytes()).unwrap();
    assert!(!definition.findings.passes(Mode::Strict));
    assert!(definition.operations[0].result.as_ref().unwrap().to_string().len() < INLINED_NODES_MAX * 40);
}

#[test]
fn a_chain_of_references_ends() {
    let mut schemas = Map::new();
    for n in 0..500 {
        schemas.insert(format!("S{n}"), json!({"$ref": format!("#/components/schemas/S{}", n + 1)}));
    }
    let document = json!({"openrpc": "1.3.2", "components": {"schemas": schemas}, "methods": [
        {"$ref": "#/components/schemas/S0"},
        {"name": "m", "params": [{"$ref": "#/methods/1/params/0"}], "result": {"schema": {"$ref": "#/components/schemas/S0"}}}]});
    let definition = Definition::parse(document.to_string().as_bytes()).unwrap();
    assert!(definition.findings.all().iter().any(|finding| finding.rule == Rule::I6));
}

#[test]
fn operations_are_bounded() {
    let methods: Vec<Value> = (0..OPERATIONS_MAX + 5).map(|n| json!({"name": format!("m{n}")})).collect();
    let definition = Definition::parse(json!({"openrpc": "1.3.2", "methods": methods}).to_string().as_bytes()).unwrap();
    assert_eq!(definition.operations.len(), OPERATIONS_MAX);
    assert!(definition.findings.worst(Mode::Lenient).is_some());
    assert!(!definition.findings.passes(Mode::Lenient));
}

#[test]
fn a_bomb_of_aliases_is_refused_at_its_fuse() {
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (name, inner) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        bomb.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{inner}"); 9].join(", ")));
    }
    let refusal = parse_yaml(bomb.as_bytes()).unwrap_err();
    assert_eq!((refusal.code.name(), refusal.position), ("yaml_alias_not_allowed", Some((1, 7))));
}

#[test]
fn depth_nodes_and_bytes_are_bounded_in_yaml_as_in_json() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    let depth = DEFINITION_LIMITS.depth as usize;
    assert!(parse_yaml(format!("a: {}", deep(depth - 1)).as_bytes()).is_ok());
    let refusal = parse_yaml(format!("a: {}", deep(depth)).as_bytes()).unwrap_err();
    assert_eq!((refusal.code.name(), refusal.limit.unwrap().max), ("json_too_deep", depth as u64));
    assert!(parse_yaml(deep(100_000).as_bytes()).is_err());
    let many = "- x\n".repeat(DEFINITION_LIMITS.nodes as usize);
    assert_eq!(parse_yaml(many.as_bytes()).unwrap_err().code.name(), "json_too_many_nodes");
    let large = format!("a: {}\n", "x".repeat(DEFINITION_LIMITS.bytes as usize));
    assert_eq!(parse_yaml(large.as_bytes()).unwrap_err().code.name(), "json_too_large");
    assert_eq!(parse_yaml(&[0x61, 0x3a, 0x20, 0xff]).unwrap_err().code.name(), "yaml_syntax");
}

/// Documents of words that mean something here.
fn document() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "https://agent-network-protocol.com/ad#",
        "didwba",
        "nosec",
        "combo",
        "s",
        "t",
        "did:wba:a.example",
        "YAML",
        "https://a.example/x",
        "#/methods/0",
        "ad:APIInterface",
        "2026-01-01T00:00:00Z",
        "ANP",
        "en",
        "",
        "not a uri",
    ]);
    let leaf = prop_oneof![
        words.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        Just(Value::Null)
    ];
    let names = prop::sample::select(vec![
        "@context",
        "@type",
        "@id",
        "@language",
        "@vocab",
        "ad",
        "name",
        "did",
        "description",
        "version",
        "created",
        "modified",
        "owner",
        "products",
        "services",
        "Infomations",
        "interfaces",
        "security",
        "securityDefinitions",
        "scheme",
        "oneOf",
        "allOf",
        "s",
        "t",
        "protocol",
        "protocolType",
        "url",
        "type",
        "content",
        "ad:security",
        "openrpc",
        "openapi",
        "methods",
        "params",
        "schema",
        "properties",
        "result",
        "$ref",
        "paths",
        "/x",
        "get",
        "parameters",
        "responses",
        "200",
        "items",
        "next",
        "password",
    ]);
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|members| Value::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_is_read_the_places_of_findings_are_places_of_the_document(document in document()) {
        let bytes = document.to_string();
        if let Ok(reading) = read(bytes.as_bytes(), None) {
            prop_assert_eq!(reading.bytes(), bytes.as_bytes());
            for finding in reading.findings.all() {
                let at = finding.at.as_str();
                let above = at.rsplit_once('/').map_or("", |(above, _)| above);
                prop_assert!(document.pointer(above).is_some(), "{} at {}", finding.rule.number(), at);
            }
            for interface in &reading.agent.interfaces {
                reading.access(&interface.security);
            }
        }
        let _ = Definition::parse(bytes.as_bytes());
        let _ = description::Page::read(bytes.as_bytes(), "https://a.example/");
    }

    #[test]
    fn json_is_the_same_document_as_yaml(document in document()) {
        let bytes = document.to_string();
        let yaml = parse_yaml(bytes.as_bytes());
        if let Ok(read) = yaml {
            prop_assert_eq!(read.root().to_value(), document);
        } else {
            prop_assert!(false, "{:?} {}", yaml.err(), bytes);
        }
    }

    #[test]
    fn random_text_does_no_harm(text in "\\PC{0,200}|[-:&*!|>{}\\[\\],'\"#% \na-c0-9]{0,120}") {
        let _ = parse_yaml(text.as_bytes());
        let _ = Definition::parse(text.as_bytes());
    }
}
