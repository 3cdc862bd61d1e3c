//! Agent Descriptions as records: asked for, explained, told of and taken back like manifests (decisions/0190).

use crate::answers::{Tally, compare};
use crate::feeds::{journal, settle, value};
use crate::market::{Market, intent_about};
use crate::world::{World, code, did, ids, intent, manifest, parse, person, publication, sign, unique};
use conformance::chance::Chance;
use conformance::generate;
use json::{Value, json};
use node::{Described, Error, Found, Linked, Terms};
use trust::{Did, DidDocument};

/// A description of an agent at a path of a host; `with` overrides its members.
fn description(host: &str, path: &str, with: Value) -> Value {
    let url = format!("https://{host}/{path}/ad.json");
    let mut ad = json!({
        "@context": ["https://agent-network-protocol.com/ad#",
            {"@vocab": "https://schema.org/", "@language": "en", "ad": "https://agent-network-protocol.com/ad#"}],
        "@type": "ad:AgentDescription",
        "@id": url,
        "name": "Hotel",
        "did": format!("did:wba:{host}"),
        "securityDefinitions": {"didwba_sc": {"scheme": "didwba", "did": format!("did:wba:{host}")}},
        "security": "didwba_sc",
        "products": [
            {"@type": "Product", "name": "Suite", "@id": format!("https://{host}/products/suite.json")},
            {"@type": "Product", "name": "Room", "@id": format!("https://{host}/products/room.json")},
        ],
        "interfaces": [{
            "@type": "ad:APIInterface", "@id": format!("{url}#book"), "name": "Booking", "description": "Books rooms",
            "protocol": "JSON-RPC 2.0", "url": "interface.json",
        }],
        "mood": {"weather": "sunny"},
    });
    ad.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    ad
}

fn interface() -> Value {
    json!({
        "openrpc": "1.3.2", "info": {"title": "Booking", "version": "1.0.0"},
        "servers": [{"url": "https://h.example/rpc"}],
        "methods": [{
            "name": "book", "description": "Books a room",
            "params": [{"name": "nights", "required": true, "schema": {"type": "integer"}}],
            "result": {"name": "booking", "schema": {"type": "object"}},
        }],
    })
}

fn linked(url: &str, document: &Value) -> Linked {
    Linked { url: url.to_owned(), bytes: document.to_string().into_bytes() }
}

impl World {
    fn describe(&self, ad: &Value, linked: &[Linked]) -> Result<Described, Error> {
        let bytes = serde(ad);
        let url = ad["@id"].as_str().unwrap_or("https://h.example/x/ad.json");
        self.node().describe(&Found { url, bytes: &bytes, linked, keys: None, vouched_by: None })
    }

    /// The record that the node made of a description.
    fn described(&self, id: &str) -> Value {
        let kept = self.node().store().record(id).unwrap().unwrap();
        parse(&kept.body).root().get("record").unwrap().to_value()
    }
}

/// With blanks, so that what is kept is not what we would write.
fn serde(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

fn asking(constraints: Value, include: Value) -> Value {
    json!({"constraints": constraints, "projection": {"include": include}})
}

fn leaf(path: &str, value: Value) -> Value {
    json!({"path": path, "operator": "eq", "value": value})
}

#[test]
fn everything_about_an_agent_can_be_asked_for() {
    let world = World::new();
    let room = json!({"name": "Room", "offers": {"price": "120.00", "priceCurrency": "EUR"}, "breakfast": true});
    let behind = [
        linked("https://h.example/products/room.json", &room),
        linked("https://h.example/agents/1/interface.json", &interface()),
        Linked { url: "https://h.example/products/suite.json".into(), bytes: b"<html>".to_vec() },
    ];
    let ad = description("h.example", "agents/1", json!({}));
    let told = world.describe(&ad, &behind).unwrap();
    assert_eq!((told.id.as_str(), told.revision), ("agent:https://h.example/agents/1/ad.json", 1));
    world.put(&person(1), "manifest", manifest(&person(1), "a", json!({"name": "Hotel"})));
    let cases = [
        leaf("/record_type", json!("agent_description")),
        leaf("/did", json!("did:wba:h.example")),
        leaf("/document/mood/weather", json!("sunny")),
        leaf("/products/*/document/breakfast", json!(true)),
        json!({"path": "/products/*/document/offers/price", "operator": "lt", "value": "150"}),
        leaf("/products/0/document_state", json!("unreadable")),
        leaf("/interfaces/*/operations/*/name", json!("book")),
        leaf("/interfaces/*/operations/*/params/*/type", json!("integer")),
        leaf("/interfaces/*/definition", json!("linked")),
        leaf("/interfaces/*/url", json!("https://h.example/agents/1/interface.json")),
        leaf("/schemes/*", json!("didwba")),
        leaf("/access", json!("demanding")),
        leaf("/accepted/strict", json!(true)),
        json!({"all_of": [leaf("/name", json!("Hotel")), {"path": "/record_type", "operator": "exists", "value": true}]}),
    ];
    for constraints in cases {
        let page = world.ask(&person(2), asking(constraints.clone(), json!(["/url"])));
        assert_eq!(ids(&page), [told.id.as_str()], "{constraints}");
        assert_eq!(page["candidates"][0]["payload"], json!({"url": "https://h.example/agents/1/ad.json"}));
    }
    let both = world.ask(&person(2), asking(leaf("/name", json!("Hotel")), json!(["/name"])));
    assert_eq!(ids(&both).len(), 2);
    let tool = json!({"not": leaf("/record_type", json!("agent_description"))});
    assert_eq!(ids(&world.ask(&person(2), asking(tool, json!(["/name"])))), ["did:web:a.example"]);
    let kept = world.node().description("https://h.example:443/agents/1/ad.json#top").unwrap().unwrap();
    assert_eq!((kept.bytes, kept.did.as_deref()), (serde(&ad), Some("did:wba:h.example")));
    assert_eq!(world.node().descriptions_of("https://h.example").unwrap(), ["https://h.example/agents/1/ad.json"]);
}

#[test]
fn findings_can_be_asked_for_and_what_the_lenient_refuse_is_refused() {
    let world = World::new();
    let mut ad = description("h.example", "agents/1", json!({"created": "yesterday"}));
    ad.as_object_mut().unwrap().remove("securityDefinitions");
    ad.as_object_mut().unwrap().remove("security");
    let told = world.describe(&ad, &[]).unwrap();
    assert!(!told.strict && told.findings > 2);
    let finding =
        json!({"all_of": [leaf("/findings/*/rule", json!("R15")), leaf("/findings/*/place", json!("/created"))]});
    assert_eq!(ids(&world.ask(&person(2), asking(finding, json!(["/findings"])))), [told.id.as_str()]);
    assert_eq!(ids(&world.ask(&person(2), asking(leaf("/access", json!("unspecified")), json!(["/id"])))), [told.id]);
    let before = world.node().store().sequence();
    for (with, refused) in [
        (json!({"name": 7}), "description_invalid"),
        (json!({"security": "nobody"}), "description_invalid"),
        (json!({"securityDefinitions": {"didwba_sc": {"scheme": "didwba", "password": "x"}}}), "description_invalid"),
        (json!({"mood": "x".repeat(300_000)}), "description_too_large"),
        (json!({"mood": vec![0; 19_940]}), "description_too_large"),
    ] {
        assert_eq!(code(world.describe(&description("h.example", "agents/2", with), &[])), refused);
    }
    let ad = serde(&description("h.example", "agents/1", json!({})));
    for (url, bytes, refused) in [
        ("urn:x", ad.as_slice(), "invalid_value"),
        ("https://user@h.example/", &ad, "invalid_value"),
        ("https://h.example/ad.json", b"{", "json_syntax"),
        (&format!("https://h.example/{}", "x".repeat(1_100)), &ad, "invalid_value"),
    ] {
        let found = Found { url, bytes, linked: &[], keys: None, vouched_by: None };
        assert_eq!(code(world.node().describe(&found)), refused, "{url}");
    }
    assert_eq!(world.node().store().sequence(), before, "a refusal changes nothing");
}

#[test]
fn a_description_is_its_agents_own_and_nobody_elses() {
    let world = World::new();
    let ad = description("h.example", "agents/1", json!({}));
    let bytes = serde(&ad);
    let (own, other) = ("did:wba:h.example".parse::<Name>().unwrap().0, "did:wba:b.example".parse::<Name>().unwrap().0);
    let found = |vouched_by| Found {
        url: "https://h.example/agents/1/ad.json",
        bytes: &bytes,
        linked: &[],
        keys: None,
        vouched_by,
    };
    assert_eq!(code(world.node().describe(&found(Some(&other)))), "description_not_yours");
    assert!(world.node().describe(&found(Some(&own))).is_ok());
    // Nobody takes the name of a description, or says to be one.
    let name = "agent:https://b.example/ad.json";
    for record in [
        json!({"id": name, "name": "Hotel"}),
        json!({"tool": {"did": "did:web:x.example"}, "record_type": "agent_description", "accepted": {"strict": true}}),
    ] {
        let message = sign(publication(&person(1), "manifest", record), &person(1));
        assert_eq!(code(world.publish(&message)), "record_type_reserved");
    }
    let message = sign(publication(&person(1), "description", ad), &person(1));
    assert_eq!(code(world.publish(&message)), "invalid_value");
}

/// A DID in a test.
struct Name(Did);

impl std::str::FromStr for Name {
    type Err = trust::DidError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Did::parse(text).map(Self)
    }
}

#[test]
fn what_the_agents_own_document_says_is_in_the_record() {
    let world = World::new();
    let key = person(9);
    let name = Did::parse("did:wba:h.example").unwrap();
    let url = "https://h.example/agents/1/ad.json";
    let document = json!({
        "id": name.as_str(),
        "verificationMethod": [{
            "id": format!("{name}#key-1"), "type": "Multikey", "controller": name.as_str(),
            "publicKeyMultibase": key.public().to_multibase(),
        }],
        "assertionMethod": ["#key-1"], "authentication": ["#key-1"],
        "service": [{"id": "#ad", "type": "AgentDescription", "serviceEndpoint": url}],
    });
    let keys = DidDocument::read(parse(document.to_string().as_bytes()).root(), &name).unwrap();
    let mut ad = description("h.example", "agents/1", json!({}));
    trust::prove(&mut ad, &key, &format!("{name}#key-1"), "2026-03-01T12:00:00Z", trust::ProofForm::Sdk);
    let mut altered = ad.clone();
    altered["name"] = json!("Other");
    let unproved = description("h.example", "agents/1", json!({}));
    for (ad, url, keys, bound, proof) in [
        (&ad, url, Some(&keys), true, "verified"),
        (&altered, url, Some(&keys), true, "failed"),
        (&unproved, url, Some(&keys), true, "absent"),
        (&ad, url, None, false, "unchecked"),
        (&ad, "https://copy.example/ad.json", Some(&keys), false, "verified"),
    ] {
        let bytes = serde(ad);
        let told = world.node().describe(&Found { url, bytes: &bytes, linked: &[], keys, vouched_by: None }).unwrap();
        let record = world.described(&told.id);
        assert_eq!((&record["bound"], &record["proof"]), (&json!(bound), &json!(proof)), "{url} {proof}");
    }
}

#[test]
fn changes_of_a_description_are_told_and_it_is_explained() {
    let mut world = World::new();
    let issuer = person(2);
    let wanted = leaf("/products/*/name", json!("Suite"));
    let open = intent(
        &issuer,
        json!({
            "category": "subscription", "constraints": wanted, "projection": {"include": ["/name"]},
            "max_event_rate_per_minute": 6_000,
            "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-05-01T00:00:00Z"},
        }),
    );
    let ack = world.runtime.block_on(world.node().subscribe(&sign(open, &issuer), &Terms::default())).unwrap();
    let id = value(&ack)["subscription_id"].as_str().unwrap().to_owned();
    let ad = |with| description("h.example", "agents/1", with);
    let first = world.describe(&ad(json!({})), &[]).unwrap();
    let again = world.describe(&ad(json!({})), &[]).unwrap();
    assert_eq!((first.revision, again.revision, again.sequence), (1, 1, None));
    assert_eq!(world.describe(&ad(json!({"name": "Inn"})), &[]).unwrap().revision, 2);
    settle(&world, std::slice::from_ref(&id));
    world.reopen();
    assert!(world.node().withdraw_description("https://h.example/agents/1/ad.json").unwrap());
    assert!(!world.node().withdraw_description("https://h.example/agents/1/ad.json").unwrap());
    assert_eq!(world.describe(&ad(json!({"name": "Inn again"})), &[]).unwrap().revision, 3);
    assert_eq!(world.describe(&ad(json!({"products": []})), &[]).unwrap().revision, 4);
    settle(&world, std::slice::from_ref(&id));
    let told: Vec<(String, Value)> = journal(&world, &id)
        .into_iter()
        .map(|event| {
            assert_eq!(event["manifest_id"], json!(first.id));
            node::check_inclusion(parse(event.to_string().as_bytes()).root()).unwrap();
            (event["set_change"].as_str().unwrap().to_owned(), event["payload"]["name"].clone())
        })
        .collect();
    let expected = [("entered", "Hotel"), ("changed", "Inn"), ("left", ""), ("entered", "Inn again"), ("left", "")];
    let expected: Vec<(String, Value)> = expected
        .iter()
        .map(|(change, name)| ((*change).to_owned(), if name.is_empty() { Value::Null } else { json!(name) }))
        .collect();
    assert_eq!(told, expected);
    let question = sign(intent(&issuer, asking(wanted, json!(["/name"]))), &issuer);
    let why = world.explain(&question, Some(&first.id)).unwrap();
    assert_eq!(why["held"], json!(true));
    assert_eq!(why["decision_record"]["outcome"], json!("reject"), "{why}");
}

#[test]
fn words_about_an_agent_count_for_its_descriptions() {
    let world = World::new();
    let issuer = person(2);
    let told = world.describe(&description("h.example", "agents/1", json!({})), &[]).unwrap();
    let open = intent(
        &issuer,
        json!({
            "category": "subscription", "constraints": leaf("/name", json!("Hotel")),
            "projection": {"include": ["/name"]}, "quality_floor": {"performance_score": 0.5},
            "max_event_rate_per_minute": 6_000,
            "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-05-01T00:00:00Z"},
        }),
    );
    let ack = world.runtime.block_on(world.node().subscribe(&sign(open, &issuer), &Terms::default())).unwrap();
    let id = value(&ack)["subscription_id"].as_str().unwrap().to_owned();
    let floor = json!({
        "constraints": leaf("/name", json!("Hotel")), "projection": {"include": ["/name"]},
        "quality_floor": {"performance_score": 0.5},
    });
    assert!(ids(&world.ask(&issuer, floor.clone())).is_empty());
    let word = json!({
        "id": format!("urn:e:{}", unique()), "issuer_did": did(&person(3)), "subject_did": "did:wba:h.example",
        "performance_score": 0.9,
    });
    world.import("evidence", &[word]);
    assert_eq!(ids(&world.ask(&issuer, floor)), [told.id.as_str()]);
    settle(&world, std::slice::from_ref(&id));
    let events = journal(&world, &id);
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["set_change"], &events[0]["manifest_id"]), (&json!("entered"), &json!(told.id)));
}

/// A random description with random documents behind it.
fn random(chance: &mut Chance<'_>, number: usize) -> (Value, Vec<Linked>) {
    let host = format!("h{}.example", chance.below(3));
    let mut with = generate::record(chance);
    with["name"] = json!(chance.word(&["Hotel", "Inn", "Airline"]));
    for member in ["products", "services", "interfaces", "security", "securityDefinitions", "owner", "did", "tool"] {
        with.as_object_mut().unwrap().remove(member);
    }
    if chance.one_in(4) {
        with["modified"] = json!(chance.word(&["2026-01-01T00:00:00Z", "never"]));
    }
    if chance.one_in(3) {
        // An agent may say what it likes; it becomes nobody else by it.
        with["tool"] = json!({"did": "did:web:t0", "categories": ["x"]});
        with["actions"] = json!([{"id": "act0"}]);
    }
    let path = format!("agents/{number}");
    let room = generate::record(chance);
    let mut behind = vec![linked(&format!("https://{host}/products/room.json"), &room)];
    if chance.one_in(2) {
        behind.push(linked(&format!("https://{host}/{path}/interface.json"), &interface()));
    }
    (description(&host, &path, with), behind)
}

#[test]
fn answers_about_descriptions_equal_the_slow_twin() {
    let mut tally = Tally::default();
    for (seed, (records, questions)) in [(5, 40), (40, 40), (90, 40)].into_iter().enumerate() {
        let mut chance = Chance::seeded(700 + seed as u64);
        let mut market = Market::random(&mut chance, records);
        let mut world = World::new();
        market.import_into(&world);
        for number in 0..records {
            let (ad, behind) = random(&mut chance, number);
            let Ok(told) = world.describe(&ad, &behind) else { continue };
            market.described.push(world.described(&told.id));
        }
        // Some change and some go, so that the index has dead units.
        for _ in 0..records / 4 {
            let number = chance.below(market.described.len());
            let url = market.described[number]["url"].as_str().unwrap().to_owned();
            assert!(world.node().withdraw_description(&url).unwrap());
            market.described.remove(number);
        }
        assert!(market.described.len() * 3 > records, "hardly a description was accepted");
        for question in 0..questions {
            let record = chance.pick(&market.described).cloned().unwrap();
            let mut message = intent_about(&mut chance, &record);
            message.as_object_mut().unwrap().remove("signature");
            message["intent_id"] = json!(format!("urn:oap:intent:{}", unique()));
            message["issuer_did"] = json!(did(&person(1)));
            message["category"] = json!("discovery");
            compare(&world, &market, &sign(message, &person(1)), &mut tally);
            if question == questions / 2 {
                world.forget_index();
            }
        }
    }
    assert!(tally.compared > 80 && tally.matches > 200 && tally.out_of_fuel < 5, "{tally:?}");
}

/// The documents of the corpus: those of its cases, and the base of each file with what a case changes.
fn corpus() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/description");
    let mut documents = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let theme = value(&std::fs::read(file.unwrap().path()).unwrap());
        for case in theme["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "describe") {
            if let Some(text) = case["text"].as_str() {
                documents.push(text.as_bytes().to_vec());
                continue;
            }
            let mut document = case.get("document").unwrap_or(&theme["base"]).clone();
            for (at, with) in case["change"].as_object().into_iter().flatten() {
                let (above, name) = at.rsplit_once('/').unwrap();
                match document.pointer_mut(above) {
                    Some(Value::Object(members)) if with == "{absent}" => drop(members.remove(name)),
                    Some(Value::Object(members)) => drop(members.insert(name.replace("~1", "/"), with.clone())),
                    _ => {}
                }
            }
            documents.push(serde(&document));
        }
    }
    documents
}

#[test]
fn what_the_lenient_accept_is_kept_and_everything_else_is_refused() {
    let world = World::new();
    let documents = corpus();
    let (mut kept, mut refused) = (0, 0);
    for (number, bytes) in documents.iter().enumerate() {
        let url = format!("https://h.example/{number}/ad.json");
        let origin = description::Origin { url: &url, did_document: None };
        let reading = description::read(bytes, Some(&origin));
        let accepted = reading.as_ref().is_ok_and(|reading| reading.findings.passes(description::Mode::Lenient));
        let found = Found { url: &url, bytes, linked: &[], keys: None, vouched_by: None };
        match world.node().describe(&found) {
            Ok(told) => {
                assert!(accepted, "{}", String::from_utf8_lossy(bytes));
                let reading = reading.unwrap();
                let record = world.described(&told.id);
                assert_eq!(record["findings"].as_array().unwrap().len(), reading.findings.all().len());
                assert_eq!(record["accepted"]["strict"], json!(told.strict));
                assert_eq!(record["document"], reading.document().root().to_value());
                assert_eq!(world.node().description(&url).unwrap().unwrap().bytes, *bytes);
                kept += 1;
            }
            Err(Error::Refusal(refusal)) => {
                assert!(!accepted || refusal.code == "description_too_large", "{refusal:?}");
                refused += 1;
            }
            Err(fault) => panic!("{fault}: {}", String::from_utf8_lossy(bytes)),
        }
    }
    assert!(kept > 80 && refused > 20, "{kept} kept, {refused} refused");
    let asked = intent(&person(2), asking(leaf("/record_type", json!("agent_description")), json!(["/id"])));
    let pages = world.pages(&sign(asked, &person(2))).unwrap();
    assert_eq!(pages.iter().map(|page| page["candidates"].as_array().unwrap().len()).sum::<usize>(), kept);
}
