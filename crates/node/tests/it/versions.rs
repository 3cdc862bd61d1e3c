//! RFC 0024 in the node: what it publishes, how it is asked in a version, how a version goes, whose mappings it takes.

use crate::world::{World, code, did, ids, intent, manifest, parse, person, sign};
use json::{Document, Instant, Value, json};
use node::folder::{self, Ending};
use node::versions::INTENT;
use node::{Class, Error};
use schema::{CompatibilityProfile, Mapping, SchemaId, Version};
use std::sync::atomic::Ordering;
use trust::SigningKey;

const DAY: i64 = 86_400_000;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

/// A node with one tool.
fn world() -> World {
    let world = World::new();
    world.put(&person(1), "manifest", manifest(&person(1), "tool", json!({})));
    world
}

fn ending(version_text: &str, sunset: &str) -> Ending {
    Ending {
        schema: SchemaId::parse(INTENT).unwrap(),
        version: version(version_text),
        sunset: Instant::parse_rfc3339(sunset).unwrap(),
        successor: Some(version("1.3")),
    }
}

/// Announces, under the node's own key, that a version goes.
fn announce(world: &World, version: &str, sunset: &str) -> Result<Vec<u8>, Error> {
    let did = world.node().identity().did().clone();
    let (_, message) = folder::announcement(&world.config.data, &did, world.node().clock(), &ending(version, sunset))?;
    world.publish(&message)
}

fn wrapped(version: &str, payload: &[u8], permits: Value) -> Vec<u8> {
    let payload = parse(payload).root().to_value();
    json::canonical_value(&json!({"schema_version": version, "version_negotiation": permits, "payload": payload}))
}

fn profile(world: &World) -> CompatibilityProfile {
    let manifest = world.node().manifest("https://node.example");
    let document = Document::of(&manifest["schema_compatibility"]).unwrap();
    CompatibilityProfile::read(document.root()).unwrap()
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> node::Refusal {
    match outcome {
        Err(Error::Refusal(refusal)) => *refusal,
        other => panic!("no refusal: {other:?}"),
    }
}

#[test]
fn the_manifest_has_a_profile_with_mappings_for_every_pair() {
    let profile = profile(&World::new());
    assert!(profile.schemas.len() >= 28, "{}", profile.schemas.len());
    assert!(profile.schemas.values().all(|entry| entry.unmapped_pairs().is_empty()));
    let intent = &profile.schemas[&SchemaId::parse(INTENT).unwrap()];
    assert_eq!(intent.default, Some(version("1.3")));
    assert_eq!(intent.accepts, [version("1.2"), version("1.3")].into());
    assert_eq!(intent.mappings.len(), 2);
}

#[test]
fn an_intent_is_answered_in_the_version_it_names_around_it_or_inside_it() {
    let world = world();
    let asker = person(2);
    for spoken in ["1.2", "1.3", "1.2.0"] {
        let bare = sign(intent(&asker, json!({"schema_version": spoken})), &asker);
        let page = world.audited(&bare, &world.answer(&bare, None).unwrap(), 0);
        assert_eq!(version(page["schema_version"].as_str().unwrap()), version(spoken));
        assert_eq!(ids(&page), ["did:web:tool.example"]);
        let inner = sign(intent(&asker, json!({})), &asker);
        let around = wrapped(spoken, &inner, json!({}));
        let page = world.audited(&inner, &world.answer(&around, None).unwrap(), 0);
        assert_eq!(version(page["schema_version"].as_str().unwrap()), version(spoken));
        assert_eq!(page["deprecation_warning"], Value::Null);
    }
}

#[test]
fn whoever_says_nothing_about_versions_hears_nothing_about_them() {
    let page = world().ask(&person(2), json!({}));
    assert!(page.get("schema_version").is_none() && page.get("deprecation_warning").is_none());
}

#[test]
fn the_same_message_gets_the_same_bytes_and_another_wrapper_is_another_message() {
    let world = world();
    let inner = sign(intent(&person(2), json!({})), &person(2));
    let around = wrapped("1.2", &inner, json!({}));
    let answer = world.answer(&around, None).unwrap();
    assert_eq!(world.answer(&around, None).unwrap(), answer);
    assert_eq!(code(world.answer(&wrapped("1.3", &inner, json!({})), None)), "intent_id_reused");
}

#[test]
fn a_version_that_is_not_spoken_is_refused_with_what_would_work() {
    let world = world();
    let asker = person(2);
    for permits in [json!({}), json!({"permit_upgrade": true, "permit_downgrade": true})] {
        let ask = json!({"schema_version": "9.9", "version_negotiation": permits});
        let refused = refusal(world.answer(&sign(intent(&asker, ask), &asker), None));
        assert_eq!((refused.class, refused.code), (Class::Conflict, "schema_version_not_accepted"));
        assert_eq!(refused.at.as_str(), "/schema_version");
        let told = world.node().refuse("r", &refused);
        let versions = parse(&told).root().to_value()["error"]["details"]["versions"].clone();
        assert_eq!((&versions["accepts"], &versions["default"]), (&json!(["1.2", "1.3"]), &json!("1.3")));
        assert_eq!(versions["would_work"][0]["schema_version"], "1.2");
    }
    let other = json!({"schema_version": "1.3", "schema_id": "https://schemas.example/question.json"});
    let refused = refusal(world.answer(&sign(intent(&asker, other), &asker), None));
    assert_eq!((refused.code, refused.at.as_str()), ("schema_version_not_accepted", "/schema_id"));
    let draft = sign(intent(&asker, json!({"schema_version": "v1"})), &asker);
    assert_eq!(code(world.answer(&draft, None)), "schema_version_invalid");
    // A refusal writes nothing and uses up no name.
    assert_eq!(world.written().0, 0);
}

#[test]
fn what_a_version_does_not_have_is_refused_in_it() {
    let world = world();
    let asker = person(2);
    let paid = |version: &str| {
        json!({
            "category": "commercial", "schema_version": version, "payment_constraints": {"allowed_instruments": ["sepa"]},
            "projection": {"include": ["/offer_id"]},
        })
    };
    let refused = refusal(world.answer(&sign(intent(&asker, paid("1.2")), &asker), None));
    assert_eq!((refused.class, refused.code), (Class::InvalidInput, "schema_violation"));
    assert!(world.answer(&sign(intent(&asker, paid("1.3")), &asker), None).is_ok());
    // The reader's own words come first.
    let flawed = json!({"schema_version": "1.2", "category": "gossip"});
    let refused = refusal(world.answer(&sign(intent(&asker, flawed), &asker), None));
    assert_eq!((refused.code, refused.at.as_str()), ("invalid_value", "/category"));
}

#[test]
fn a_signature_is_checked_over_the_message_as_it_came() {
    let world = world();
    let mut message = intent(&person(2), json!({}));
    trust::sign(&mut message, &person(2)).unwrap();
    message["schema_version"] = json!("1.2");
    assert_eq!(code(world.answer(&json::canonical_value(&message), None)), "signature_invalid");
}

#[test]
fn a_limit_of_the_intent_holds_inside_a_wrapper_too() {
    let world = world();
    let mut deep = json!(1);
    for _ in 0..json::Limits::INTENT.depth {
        deep = json!([deep]);
    }
    let inner = json!({"constraints": deep});
    let message = json!({"schema_version": "1.3", "payload": inner});
    assert_eq!(code(world.answer(message.to_string().as_bytes(), None)), "json_too_deep");
    // Whoever sent a wrapper finds the place beneath it.
    let message = json!({"schema_version": "1.3", "payload": intent(&person(2), json!({"category": "gossip"}))});
    let refused = refusal(world.answer(message.to_string().as_bytes(), None));
    assert_eq!((refused.code, refused.at.as_str()), ("invalid_value", "/payload/category"));
}

#[test]
fn every_way_to_ask_records_the_version() {
    let world = world();
    let asker = person(2);
    let spoken = json!({"schema_version": "1.2"});
    let message = sign(intent(&asker, spoken.clone()), &asker);
    assert_eq!(world.explain(&message, Some("did:web:tool.example")).unwrap()["held"], true);
    let invocation = json!({
        "oap_version": "1.0", "request_id": "01JT0000000000000000000000", "timestamp": "2026-03-01T12:00:00Z",
        "principal_did": did(&asker), "agent_did": did(&asker), "action": "resolve_intent",
        "input": parse(&sign(intent(&asker, spoken.clone()), &asker)).root().to_value(),
        "context": {"locale": "en", "currency": "EUR", "jurisdiction_user": "ZZ", "jurisdiction_agent": "ZZ"},
    });
    let answer = world.runtime.block_on(world.node().invoke(&sign(invocation, &asker))).unwrap();
    assert_eq!(world.opened(&answer)["schema_version"], "1.2");
    let parts = world.runtime.block_on(async {
        let message = sign(intent(&asker, spoken.clone()), &asker);
        let mut stream = world.node().stream(&message, None).await.unwrap();
        let mut parts = Vec::new();
        while let Some(part) = stream.next().await.unwrap() {
            parts.push(parse(&part.bytes).root().to_value());
        }
        parts
    });
    let candidate = parts.iter().find(|part| part.get("candidates").is_some()).unwrap();
    assert_eq!(candidate["schema_version"], "1.2");
    let standing = json!({"schema_version": "1.2", "category": "subscription", "max_event_rate_per_minute": 6});
    let standing = sign(intent(&asker, standing), &asker);
    let subscribe = || world.runtime.block_on(world.node().subscribe(&standing, &node::Terms::default())).unwrap();
    let acknowledged = subscribe();
    assert_eq!(parse(&acknowledged).root().to_value()["schema_version"], "1.2");
    assert_eq!(subscribe(), acknowledged);
}

#[test]
fn a_deprecated_version_warns_in_every_answer_until_it_is_gone() {
    let mut world = world();
    let asker = person(2);
    announce(&world, "1.2", "2026-06-01T00:00:00Z").unwrap();
    let ask = |world: &World, spoken: &str| {
        let window = json!({"from": world.node().clock().now().to_string(),
            "to": world.node().clock().now().plus(600).to_string()});
        let message = sign(intent(&asker, json!({"schema_version": spoken, "validity": window})), &asker);
        world.answer(&message, None).map(|answer| world.audited(&message, &answer, 0))
    };
    let check = |world: &World, sunset: &str| {
        let warning = ask(world, "1.2").unwrap()["deprecation_warning"].clone();
        assert_eq!((&warning["version"], &warning["sunset"]), (&json!("1.2"), &json!(sunset)));
        assert_eq!((&warning["schema"], &warning["successor"]), (&json!(INTENT), &json!("1.3")));
        assert!(ask(world, "1.3").unwrap().get("deprecation_warning").is_none());
    };
    check(&world, "2026-06-01T00:00:00Z");
    world.reopen();
    check(&world, "2026-06-01T00:00:00Z");
    assert_eq!(code(announce(&world, "1.2", "2026-05-31T23:59:59Z")), "deprecation_reduced");
    check(&world, "2026-06-01T00:00:00Z");
    announce(&world, "1.2", "2026-09-01T00:00:00Z").unwrap();
    world.crash();
    check(&world, "2026-09-01T00:00:00Z");
    world.forget_index();
    check(&world, "2026-09-01T00:00:00Z");
    let noticed = ask(&world, "1.2").unwrap();
    let notice = world.node().notice(&json::canonical_value(&noticed)).unwrap();
    assert_eq!(notice.sunset.to_string(), "2026-09-01T00:00:00Z");
    let record = world.node().record(&notice.record).unwrap();
    let node::Exhibit::Original(record) = record else { panic!("{record:?}") };
    assert!(String::from_utf8_lossy(&record.body).contains("2026-09-01T00:00:00Z"));
    // 2026-09-01 is 184 days after noon of the first of March.
    world.millis.fetch_add(183 * DAY, Ordering::AcqRel);
    check(&world, "2026-09-01T00:00:00Z");
    world.millis.fetch_add(DAY, Ordering::AcqRel);
    let refused = refusal(ask(&world, "1.2"));
    assert_eq!((refused.class, refused.code), (Class::Gone, "schema_version_withdrawn"));
    assert!(ask(&world, "1.3").is_ok());
    let entry = &profile(&world).schemas[&SchemaId::parse(INTENT).unwrap()];
    assert_eq!((entry.accepts.len(), entry.mappings.len()), (1, 0));
}

#[test]
fn an_announcement_keeps_the_rules_and_only_the_node_makes_one() {
    let world = world();
    assert_eq!(code(announce(&world, "1.2", "2026-05-29T12:00:00Z")), "deprecation_notice_too_short");
    assert_eq!(code(announce(&world, "1.3", "2027-01-01T00:00:00Z")), "profile_invalid");
    assert_eq!(code(announce(&world, "1.1", "2027-01-01T00:00:00Z")), "schema_version_not_accepted");
    let did_of_node = world.node().identity().did().clone();
    let mut answer = ending("1.2", "2027-01-01T00:00:00Z");
    answer.schema = SchemaId::parse(&INTENT.replace("intent", "intent-response")).unwrap();
    let (_, message) = folder::announcement(&world.config.data, &did_of_node, world.node().clock(), &answer).unwrap();
    assert_eq!(code(world.publish(&message)), "profile_invalid");
    let stranger = person(3);
    let record = json!({
        "receipt_id": "urn:rialto:announcement:mine", "type": "rialto.deprecation", "tool_did": did(&stranger),
        "schema": INTENT, "version": "1.2", "sunset": "2027-01-01T00:00:00Z",
    });
    let message = sign(crate::world::publication(&stranger, "receipt", record), &stranger);
    assert_eq!(code(world.publish(&message)), "publisher_not_authorized");
    assert!(world.ask(&person(2), json!({"schema_version": "1.2"})).get("deprecation_warning").is_none());
}

#[test]
fn an_announcement_can_be_made_in_a_folder_that_no_node_has_open() {
    let world = world();
    let (data, clock) = (world.config.data.clone(), world.config.clock.clone());
    let copy = tempfile::tempdir().unwrap();
    assert!(folder::deprecate(&data, &clock, &ending("1.2", "2026-12-01T00:00:00Z")).is_err(), "it is open");
    let mut config = world.config.clone();
    drop(world);
    config.data = copy.path().join("data");
    drop(node::Node::open(&config, &mut |_, _| {}).unwrap());
    let announced = folder::deprecate(&config.data, &clock, &ending("1.2", "2026-12-01T00:00:00Z")).unwrap();
    assert_eq!(announced.deprecation.announced_at().to_string(), "2026-03-01T12:00:00Z");
    let closer = folder::deprecate(&config.data, &clock, &ending("1.2", "2026-11-30T00:00:00Z"));
    assert_eq!(code(closer), "deprecation_reduced");
    let node = node::Node::open(&config, &mut |_, _| {}).unwrap();
    let manifest = node.manifest("https://node.example");
    assert_eq!(manifest["schema_compatibility"][INTENT]["deprecations"]["1.2"]["sunset"], "2026-12-01T00:00:00Z");
}

#[test]
fn mappings_are_signed_by_the_node_and_do_what_they_say() {
    let world = World::new();
    for link in &profile(&world).schemas[&SchemaId::parse(INTENT).unwrap()].mappings {
        let name = link.url.rsplit('/').next().unwrap();
        let bytes = world.node().mapping(name).unwrap();
        let document = parse(&bytes);
        let verified = trust::verify_did_key(&document, "publisher_did").unwrap();
        assert_eq!(verified.signer(), world.node().identity().did());
        let mapping = Mapping::read(document.root()).unwrap();
        assert_eq!(Some(mapping.digest()), link.digest);
        assert_eq!(mapping.source().unwrap().version, link.from);
    }
    assert_eq!(code(world.node().mapping("oap-intent-1.2-to-9.9")), "mapping_not_found");
}

/// How much a version of a schema is used.
fn used<'a>(told: &'a Value, schema: &str, version: &str) -> &'a Value {
    let is = |count: &&Value| count["schema"] == schema && count["version"] == version;
    told["usage"].as_array().unwrap().iter().find(is).unwrap_or(&Value::Null)
}

#[test]
fn every_message_and_every_document_in_one_is_counted_under_its_schema() {
    let mut world = world();
    let question = sign(intent(&person(2), json!({"schema_version": "1.2"})), &person(2));
    let explain = json::canonical_value(&json!({"intent": parse(&question).root().to_value()}));
    world.runtime.block_on(world.node().explain(&explain)).unwrap();
    world.node().discover(br#"{"intent":"translate"}"#, "https://node.example").unwrap();
    world.reopen();
    let told = folder::usage(&world.config.data).unwrap();
    let messages = |schema: &str, version: &str| used(&told, schema, version)["messages"].clone();
    let manifest = "https://openagentprotocol.eu/schemas/v1.0/oap-manifest.schema.json";
    assert_eq!((messages("urn:rialto:schema:publication", "1.0"), messages(manifest, "1.0")), (json!(1), json!(1)));
    assert_eq!((messages(INTENT, "1.2"), messages("urn:rialto:schema:explain-request", "1.0")), (json!(1), json!(1)));
    let wished = used(&told, "urn:rialto:schema:discover-request", "1.0");
    assert_eq!((&wished["messages"], &wished["issuers"]), (&json!(1), &json!([])));
}

#[test]
fn who_uses_which_version_is_counted_for_the_operator() {
    let mut world = world();
    world.ask(&person(2), json!({"schema_version": "1.2"}));
    world.ask(&person(2), json!({}));
    world.ask(&person(3), json!({"schema_version": "1.2"}));
    world.reopen();
    let told = folder::usage(&world.config.data).unwrap();
    let of = |version: &str| used(&told, INTENT, version);
    assert_eq!((&of("1.2")["messages"], &of("1.3")["messages"]), (&json!(2), &json!(1)));
    let issuers: Vec<&Value> = of("1.2")["issuers"].as_array().unwrap().iter().map(|issuer| &issuer["did"]).collect();
    assert!(issuers.contains(&&json!(did(&person(2)))) && issuers.contains(&&json!(did(&person(3)))));
    let deletion = json!({
        "request_id": "urn:rialto:deletion:1", "principal_did": did(&person(2)), "issued_at": "2026-03-01T12:00:00Z",
    });
    world.runtime.block_on(world.node().delete_data(&sign(deletion, &person(2)))).unwrap();
    world.reopen();
    assert!(!folder::usage(&world.config.data).unwrap().to_string().contains(&did(&person(2))));
}

const THEIRS: &str = "https://counterparty.example/question.json";

/// A mapping from a counterparty's question to our intent; `rule` is one more.
fn theirs(publisher: &SigningKey, rule: Value) -> Vec<u8> {
    let mapping = json!({
        "mapping_id": "urn:oap:mapping:question-0.9-to-intent-1.3",
        "source": {"schema": THEIRS, "version": "0.9"}, "destination": {"schema": INTENT, "version": "1.3"},
        "directionality": "unidirectional", "passthrough": true,
        "rules": [{"op": "move", "from": "/where", "to": "/constraints"}, rule],
        "publisher_did": did(publisher), "published_at": "2026-02-01T00:00:00Z",
    });
    sign(mapping, publisher)
}

fn question(asker: &SigningKey) -> Vec<u8> {
    let mut question = intent(asker, json!({}));
    let members = question.as_object_mut().unwrap();
    let constraints = members.remove("constraints").unwrap();
    members.insert("where".to_owned(), constraints);
    let payload = parse(&sign(question, asker)).root().to_value();
    let permits = json!({"permit_upgrade": true});
    let message = json!({
        "schema_id": THEIRS, "schema_version": "0.9", "version_negotiation": permits, "payload": payload,
    });
    json::canonical_value(&message)
}

#[test]
fn a_counterparty_is_read_by_the_mapping_of_whoever_the_operator_trusts() {
    let publisher = person(9);
    let pin = (SchemaId::parse(INTENT).unwrap(), publisher.did_key());
    let mut world = World::with(|config| config.schema_publishers = vec![pin.clone()]);
    world.put(&person(1), "manifest", manifest(&person(1), "tool", json!({})));
    let bring = |world: &World, mapping: &[u8]| world.runtime.block_on(world.node().bring_mapping(mapping));
    let asker = person(2);
    assert_eq!(code(world.answer(&question(&asker), None)), "schema_version_not_accepted");
    let plain = json!({"op": "copy", "from": "/category", "to": "/category"});
    // Somebody else, nobody, altered, and greedy.
    assert_eq!(code(bring(&world, &theirs(&person(8), plain.clone()))), "mapping_untrusted");
    let mut altered = parse(&theirs(&publisher, plain.clone())).root().to_value();
    altered["rules"][0]["from"] = json!("/whither");
    assert_eq!(code(bring(&world, &json::canonical_value(&altered))), "mapping_untrusted");
    altered.as_object_mut().unwrap().remove("signature");
    assert_eq!(code(bring(&world, &json::canonical_value(&altered))), "mapping_untrusted");
    let greedy = json!({"op": "copy", "from": "/note", "to": "/issuer_did"});
    assert_eq!(code(bring(&world, &theirs(&publisher, greedy))), "mapping_protected_field");
    assert_eq!(code(world.answer(&question(&asker), None)), "schema_version_not_accepted");

    let acknowledged = world.opened(&bring(&world, &theirs(&publisher, plain.clone())).unwrap());
    assert_eq!(acknowledged["source"], json!({"schema": THEIRS, "version": "0.9"}));
    bring(&world, &theirs(&publisher, plain)).unwrap();
    let other = json!({"op": "copy", "from": "/projection", "to": "/projection"});
    assert_eq!(code(bring(&world, &theirs(&publisher, other))), "mapping_untrusted");
    for _ in 0..2 {
        let answer = parse(&world.answer(&question(&asker), None).unwrap()).root().to_value();
        assert_eq!(answer["schema_version"], "1.2", "the nearest later version");
        assert_eq!(ids(&answer), ["did:web:tool.example"]);
        world.reopen();
    }
    // Without the permit there is no answer in a version of theirs.
    let mut strict = parse(&question(&asker)).root().to_value();
    strict["version_negotiation"] = json!({});
    assert_eq!(code(world.answer(&json::canonical_value(&strict), None)), "schema_version_not_produced");
    // Whom the operator no longer pins is no longer believed.
    world.config.schema_publishers.clear();
    world.reopen();
    assert_eq!(code(world.answer(&question(&asker), None)), "schema_version_not_accepted");
}

#[test]
fn a_mapping_leads_to_the_intent_from_what_the_node_does_not_speak() {
    let publisher = person(9);
    let pin = (SchemaId::parse(INTENT).unwrap(), publisher.did_key());
    let world = World::with(|config| config.schema_publishers = vec![pin]);
    let bring = |from: (&str, &str), to: (&str, &str)| {
        let mapping = json!({
            "mapping_id": "urn:oap:mapping:x", "directionality": "unidirectional", "passthrough": true, "rules": [],
            "source": {"schema": from.0, "version": from.1}, "destination": {"schema": to.0, "version": to.1},
            "publisher_did": did(&publisher), "published_at": "2026-02-01T00:00:00Z",
        });
        refusal(world.runtime.block_on(world.node().bring_mapping(&sign(mapping, &publisher))))
    };
    let check = |refused: node::Refusal, at: &str| {
        assert_eq!((refused.class, refused.code), (Class::Unprocessable, "mapping_route_missing"));
        assert_eq!(refused.at.as_str(), at);
    };
    check(bring((THEIRS, "0.9"), (THEIRS, "1.0")), "/destination");
    check(bring((THEIRS, "0.9"), (INTENT, "1.4")), "/destination");
    check(bring((INTENT, "1.2"), (INTENT, "1.3")), "/source");
}
