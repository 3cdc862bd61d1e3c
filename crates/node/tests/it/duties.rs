//! RFC 0020 §3.6: chains, policies, deliveries and procurement, as a node deals with them.

use crate::world::{NOON, World, code, did, ids, intent, manifest, parse, person, sign, unique};
use json::{Value, json};
use node::Error;
use std::sync::atomic::Ordering;
use trust::{Digest, SigningKey, encoding, sign_token};

/// A token from one person to another for this node.
fn token(world: &World, from: u8, to: u8, more: Value) -> Value {
    let now = NOON / 1_000;
    let mut claims = json!({
        "iss": did(&person(from)), "sub": did(&person(to)), "aud": world.node().identity().did().as_str(),
        "iat": now, "exp": now + 300, "jti": format!("del_{}", unique()),
        "delegation_depth": 1, "max_delegation_depth": 3, "scope": {"actions": ["draw"]},
    });
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jwt": sign_token(&claims, &person(from))})
}

fn refused(outcome: Result<Vec<u8>, Error>) -> (&'static str, String) {
    match outcome {
        Err(Error::Refusal(refusal)) => (refusal.code, refusal.at.as_str().to_owned()),
        other => panic!("no refusal: {other:?}"),
    }
}

/// Asks in a category for everything, with more members.
fn asked(world: &World, issuer: &SigningKey, category: &str, more: Value) -> Result<Value, Error> {
    let mut with = json!({"category": category, "projection": {"include": ["/"]},
        "constraints": {"path": "", "operator": "exists", "value": true}});
    with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let message = sign(intent(issuer, with), issuer);
    let answer = world.answer(&message, None)?;
    Ok(world.audited(&message, &answer, 0))
}

fn with_actions(world: &World) {
    let actions = json!({"delegation": {"supported": true, "max_delegation_depth": 2}, "actions": [
        {"id": "draw", "side_effects": "read"},
        {"id": "publish", "side_effects": "irreversible", "irreversibility_class": "public_disclosure",
            "irreversibility_cooling_off_seconds": 3_600},
        {"id": "marry", "side_effects": "irreversible", "irreversibility_class": "legal_status_change",
            "irreversibility_cooling_off_seconds": 3_600},
        {"id": "sell", "side_effects": "write", "requires_consent": true},
    ]});
    world.put(&person(2), "manifest", manifest(&person(2), "a", actions));
}

fn record_of(world: &World, entry: &Value) -> Value {
    let name = entry["decision_record"]["policy_decision_ref"].as_str().unwrap();
    let said = world.opened(&world.node().decision(name).unwrap());
    assert_eq!((&said["type"], &said["policy_decision"]["decision_id"]), (&json!("oap.policy_decision"), &json!(name)));
    said["policy_decision"].clone()
}

fn entry<'a>(page: &'a Value, list: &str, id: &str) -> &'a Value {
    page[list].as_array().unwrap().iter().find(|entry| entry["candidate_id"] == json!(id)).unwrap()
}

#[test]
fn an_action_is_returned_with_the_policy_decision_about_it() {
    let mut world = World::new();
    with_actions(&world);
    let page = asked(&world, &person(1), "action", json!({})).unwrap();
    for _ in 0..2 {
        let check = |list: &str, name: &str, outcome: &str, layers: usize| {
            let record = record_of(&world, entry(&page, list, &format!("did:web:a.example#{name}")));
            assert_eq!(record["outcome"], json!(outcome), "{name}");
            assert_eq!(record["layers_evaluated"], json!(["L1", "L2", "L3", "L4"][..layers]), "{name}");
            record
        };
        check("candidates", "draw", "allow", 4);
        check("candidates", "sell", "require_consent", 4);
        let publish = check("candidates", "publish", "allow_with_conditions", 4);
        assert_eq!(publish["conditions"].as_array().unwrap().len(), 1);
        let marry = check("rejected", "marry", "block", 1);
        assert_eq!(marry["applied_rules"], json!(["platform.cooling_off_too_short"]));
        world.crash();
    }
    let blocked = &entry(&page, "rejected", "did:web:a.example#marry")["decision_record"];
    assert_eq!(blocked["explanation"], json!("policy_block: platform.cooling_off_too_short"));
    let response = page["response_id"].as_str().unwrap();
    assert_eq!(code(world.node().decision(&format!("{response}#policy-9"))), "decision_not_found");
    let discovery = asked(&world, &person(1), "discovery", json!({})).unwrap();
    assert_eq!(discovery["candidates"][0]["decision_record"].get("policy_decision_ref"), None);
}

#[test]
fn an_explanation_goes_through_the_same_policies() {
    let world = World::new();
    with_actions(&world);
    let with = json!({"category": "action", "projection": {"include": ["/"]},
        "constraints": {"path": "/action_id", "operator": "exists", "value": true}});
    let message = sign(intent(&person(1), with), &person(1));
    let why = |name: &str| world.explain(&message, Some(&format!("did:web:a.example#{name}"))).unwrap();
    assert_eq!(why("draw")["policy_decision"]["outcome"], json!("allow"));
    let marry = why("marry");
    assert_eq!(marry["decision_record"]["outcome"], json!("reject"));
    assert_eq!(marry["decision_record"]["policy_decision_ref"], marry["policy_decision"]["decision_id"]);
}

#[test]
fn the_operator_s_rules_are_read_at_the_start() {
    let mut world = World::new();
    with_actions(&world);
    let rules = world.config.data.join("policy.json");
    std::fs::write(&rules, r#"{"blocked_side_effects": ["write"]}"#).unwrap();
    world.reopen();
    let page = asked(&world, &person(1), "action", json!({})).unwrap();
    let sell = entry(&page, "rejected", "did:web:a.example#sell");
    assert_eq!(record_of(&world, sell)["layers_evaluated"], json!(["L1", "L2", "L3"]));
    std::fs::write(&rules, "{").unwrap();
    let broken =
        node::Node::open(&node::Config { data: world.config.data.clone(), ..Default::default() }, &mut |_, _| {});
    assert!(broken.is_err());
}

#[test]
fn a_chain_ends_at_the_agent_or_at_the_issuer_and_nowhere_else() {
    let world = World::new();
    with_actions(&world);
    let (issuer, agent) = (person(1), person(3));
    let ask = |more: Value| asked(&world, &issuer, "action", more);
    // The issuer gives authority to an agent, or uses the authority that it got.
    let given = ask(json!({"agent_did": did(&agent), "delegation_chain": [token(&world, 1, 3, json!({}))]})).unwrap();
    assert_eq!(ids(&given), ["did:web:a.example#draw"], "the others lie outside of the scope");
    assert_eq!(
        entry(&given, "rejected", "did:web:a.example#sell")["decision_record"]["explanation"],
        json!("policy_block: personal.action_outside_delegation")
    );
    let used = ask(json!({"delegation_chain": [token(&world, 4, 1, json!({}))]})).unwrap();
    assert_eq!(ids(&used), ["did:web:a.example#draw"]);
    assert_eq!(ids(&ask(json!({"delegation_chain": []})).unwrap()).len(), 3);
    let ends = [
        json!({"delegation_chain": [token(&world, 1, 3, json!({}))]}),
        json!({"agent_did": did(&agent), "delegation_chain": [token(&world, 4, 1, json!({}))]}),
        json!({"agent_did": did(&agent), "delegation_chain": [token(&world, 4, 3, json!({}))]}),
    ];
    for more in ends {
        let with = json!({"category": "action"});
        let mut message = intent(&issuer, with);
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let before = world.written();
        let outcome = refused(world.answer(&sign(message, &issuer), None));
        assert_eq!(outcome, ("delegation_invalid", "/delegation_chain".into()));
        assert_eq!(world.written(), before, "a refused intent leaves nothing behind");
    }
}

#[test]
fn a_token_that_does_not_hold_is_told_with_its_place() {
    let world = World::new();
    let issuer = person(1);
    let cases = [
        (json!({"aud": "did:web:elsewhere.example"}), "/delegation_chain/0/jwt"),
        (json!({"exp": NOON / 1_000}), "/delegation_chain/0/jwt"),
        (json!({"delegation_depth": 4}), "/delegation_chain/0/jwt"),
        (json!({"iss": did(&person(9))}), "/delegation_chain/0/jwt"),
    ];
    for (more, at) in cases {
        let chain = json!([token(&world, 4, 1, more.clone())]);
        let message = sign(intent(&issuer, json!({"delegation_chain": chain})), &issuer);
        assert_eq!(refused(world.answer(&message, None)), ("delegation_invalid", at.into()), "{more}");
    }
    // A chain is looked at after the signature of whoever brings it.
    let mut forged = intent(&issuer, json!({"delegation_chain": [{"jwt": "a.b.c"}]}));
    assert_eq!(refused(world.answer(&sign(forged.clone(), &issuer), None)).0, "delegation_invalid");
    trust::sign(&mut forged, &issuer).unwrap();
    forged["category"] = json!("action");
    assert_eq!(refused(world.answer(forged.to_string().as_bytes(), None)).0, "signature_invalid");
}

#[test]
fn a_delegate_asks_for_no_more_than_it_may_spend() {
    let world = World::new();
    with_actions(&world);
    let chain = || json!([token(&world, 4, 1, json!({"scope": {"actions": ["draw"], "max_cost_eur": "2.50"}}))]);
    let ask = |budget: Option<(&str, &str)>| {
        let mut more = json!({"category": "discovery", "delegation_chain": chain()});
        if let Some((amount, currency)) = budget {
            more["budget"] = json!({"amount": amount, "currency": currency, "allocation": "single_winner"});
        }
        world.answer(&sign(intent(&person(1), more), &person(1)), None)
    };
    assert!(ask(Some(("2.5", "EUR"))).is_ok());
    for budget in [None, Some(("2.51", "EUR")), Some(("1", "USD"))] {
        assert_eq!(refused(ask(budget)), ("delegation_scope_exceeded", "/budget".into()));
    }
}

#[test]
fn a_delegated_task_says_whose_cost_it_is() {
    let world = World::new();
    with_actions(&world);
    let paid = |chain: Value| {
        let page = asked(&world, &person(1), "delegation", json!({"delegation_chain": chain})).unwrap();
        record_of(&world, &page["candidates"][0])["conditions"][0].as_str().unwrap().to_owned()
    };
    assert!(paid(json!([])).ends_with(&did(&person(1))));
    assert!(paid(json!([token(&world, 4, 1, json!({}))])).ends_with(&did(&person(4))));
    assert!(paid(json!([token(&world, 4, 1, json!({"billing": "sub_agent"}))])).ends_with(&did(&person(1))));
    // The tool takes two levels, and the chain has used them up.
    let deep = json!([token(&world, 4, 5, json!({})), token(&world, 5, 1, json!({"delegation_depth": 2}))]);
    let page = asked(&world, &person(1), "delegation", json!({"delegation_chain": deep})).unwrap();
    assert!(ids(&page).is_empty());
}

fn with_knowledge(world: &World) -> SigningKey {
    let provider = person(6);
    for (name, metering) in
        [("k1", json!({"unit": "byte", "price_per_unit": "0.5", "currency": "EUR"})), ("k2", json!({}))]
    {
        let record = json!({"id": format!("urn:k:{name}"), "@type": "oap.knowledge", "publisher_did": did(&provider),
            "text": "abc", "metering": metering});
        world.put(&provider, "knowledge", record);
    }
    provider
}

#[test]
fn a_delivery_of_knowledge_is_proved_cited_and_counted_once() {
    let mut world = World::new();
    let provider = with_knowledge(&world);
    let with = json!({"category": "knowledge", "projection": {"include": ["/text"]},
        "constraints": {"path": "/text", "operator": "eq", "value": "abc"}});
    let message = sign(intent(&person(1), with.clone()), &person(1));
    let answer = world.answer(&message, None).unwrap();
    let page = world.audited(&message, &answer, 0);
    let response = page["response_id"].as_str().unwrap().to_owned();
    let metered = |world: &World| world.opened(&world.node().metering(&did(&provider)).unwrap())["sums"].clone();
    let expected = json!([
        {"unit": "byte", "nodes": 1, "count": 14, "amount": "7", "currency": "EUR"},
        {"unit": "knowledge_node", "nodes": 1, "count": 1},
    ]);
    for _ in 0..2 {
        let said = world.opened(&world.node().consumption(&response).unwrap());
        let receipts = said["receipts"].as_array().unwrap();
        assert_eq!(receipts.len(), 2);
        for receipt in receipts {
            check_receipt(&world, receipt, &page, &provider, &message);
            let alone = world.opened(&world.node().consumption(receipt["receipt_id"].as_str().unwrap()).unwrap());
            assert_eq!(alone["receipts"], json!([receipt]));
        }
        // The same question again is no second delivery.
        assert_eq!(world.answer(&message, None).unwrap(), answer);
        assert_eq!(metered(&world), expected);
        world.crash();
    }
    let again = sign(intent(&person(1), with), &person(1));
    world.answer(&again, None).unwrap();
    assert_eq!(metered(&world)[0]["count"], json!(28));
    let unguessed = format!("{}x", &response[..response.len() - 1]);
    for unknown in [unguessed.as_str(), "urn:oap:receipt:0-0-0-x", "x"] {
        assert_eq!(code(world.node().consumption(unknown)), "receipt_not_found", "{unknown}");
    }
}

fn check_receipt(world: &World, receipt: &Value, page: &Value, provider: &SigningKey, message: &[u8]) {
    let document = json::Document::of(receipt).unwrap();
    let keys = trust::DidDocument::of_key(world.node().identity().did()).unwrap();
    trust::SignedList::read(&document, "signatures").unwrap().verify_with(&keys).unwrap();
    assert_eq!(receipt["input_hash"], json!(Digest::of(message).to_string()));
    assert_eq!((&receipt["principal_did"], &receipt["agent_did"]), (&json!(did(&person(1))), &json!(did(&person(1)))));
    let proof = &receipt["consumption_proof"];
    let cited = &receipt["citations"][0];
    assert_eq!(proof["knowledge_node_ids"], json!([cited["knowledge_node_id"]]));
    assert_eq!((&cited["provider_did"], &cited["contribution_weight"]), (&json!(did(provider)), &json!(1)));
    let payload = &entry(page, "candidates", cited["knowledge_node_id"].as_str().unwrap())["payload"];
    let digest = Digest::of(&json::canonical_value(payload)).to_string();
    assert_eq!((&proof["content_hash"], &cited["output_segment_hash"]), (&json!(digest), &json!(digest)));
}

#[test]
fn an_empty_answer_delivers_nothing() {
    let world = World::new();
    let page = asked(&world, &person(1), "knowledge", json!({})).unwrap();
    assert_eq!(code(world.node().consumption(page["response_id"].as_str().unwrap())), "receipt_not_found");
}

/// A procurement intent of one person, by whoever signs it.
fn procurement(principal: u8, agent: u8, signers: &[u8], more: Value) -> Vec<u8> {
    let mut body = json!({
        "intent_id": format!("urn:oap:intent:{}", unique()), "category": "physical_goods",
        "issued_at": "2026-03-01T11:30:00Z", "expires_at": "2026-03-01T13:00:00Z",
        "principal_did": did(&person(principal)), "agent_did": did(&person(agent)),
        "constraints": {"product_identifier": {"gtin": "12345678"}},
        "budget": {"max_amount": "80", "currency": "EUR"},
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let bytes = json::canonical_value(&body);
    let signature = |number: &u8| {
        let key = person(*number);
        json!({"by": key.key_id().to_string(), "alg": "EdDSA", "value": encoding::encode(&key.sign(&bytes))})
    };
    body["signatures"] = signers.iter().map(signature).collect();
    json::canonical_value(&body)
}

fn with_offers(world: &World) {
    let offers = [
        ("cheap", "60", json!({})),
        ("dear", "81", json!({})),
        ("other", "60", json!({"goods_identification": {"gtin": "87654321"}})),
        ("late", "50", json!({"delivery_commitment": {"committed_by": "2026-03-20T00:00:00Z"}})),
        ("taken", "50", json!({"intent_id": "urn:oap:intent:somebody-else"})),
        ("gone", "50", json!({"valid_until": "2026-03-01T12:30:00Z"})),
        ("dollars", "50", json!({"price": {"amount": "50", "currency": "USD"}})),
    ];
    for (name, amount, more) in offers {
        let mut offer = json!({"offer_id": format!("urn:oap:offer:{name}"), "provider_did": did(&person(2)),
            "goods_identification": {"gtin": "12345678"}, "price": {"amount": amount, "currency": "EUR"},
            "delivery_commitment": {"committed_by": "2026-03-05T00:00:00Z"}});
        offer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.put(&person(2), "offer", offer);
    }
}

fn procured(world: &World, message: &[u8]) -> Vec<String> {
    let answer = world.answer(message, None).unwrap();
    assert_eq!(world.answer(message, None).unwrap(), answer, "the same question, the same answer");
    let document = parse(&answer);
    trust::verify_did_key(&document, "resolver_did").unwrap();
    let page = document.root().to_value();
    assert_eq!(page["intent_id"], parse(message).root().to_value()["intent_id"]);
    ids(&page).iter().map(|id| id.trim_start_matches("urn:oap:offer:").to_owned()).collect()
}

#[test]
fn a_procurement_intent_finds_the_offers_within_its_cap() {
    let world = World::new();
    with_offers(&world);
    assert_eq!(procured(&world, &procurement(1, 1, &[1], json!({}))), ["late", "cheap"]);
    let cases = [
        (json!({"delivery_by": "2026-03-06T00:00:00Z"}), vec!["cheap"]),
        (json!({"excluded_providers": [did(&person(2))]}), vec![]),
        (json!({"delivery_address_did": "did:key:z", "size": "43"}), vec![]),
    ];
    for (constraints, expected) in cases {
        let mut wanted = json!({"product_identifier": {"gtin": "12345678"}});
        wanted.as_object_mut().unwrap().extend(constraints.as_object().unwrap().clone());
        assert_eq!(procured(&world, &procurement(1, 1, &[1], json!({"constraints": wanted}))), expected);
    }
    let elsewhere = json!({"broadcast_to": ["did:web:elsewhere.example"]});
    assert!(procured(&world, &procurement(1, 1, &[1], elsewhere)).is_empty());
    let reputation = json!({"ranking_policy": {"weight_price": 1, "minimum_reputation_score": 0.5}});
    assert!(procured(&world, &procurement(1, 1, &[1], reputation)).is_empty());
}

#[test]
fn alternatives_are_tried_in_their_order_when_nobody_offers_what_is_wanted() {
    let world = World::new();
    with_offers(&world);
    let wanted = json!({"product_identifier": {"gtin": "12345678"}, "delivery_by": "2026-03-02T00:00:00Z"});
    let later = |to: Value| json!({"relax_field": "delivery_by", "to_value": to});
    let cases = [
        (json!([]), vec![]),
        (json!([later(json!("2026-03-03T00:00:00Z")), later(json!("2026-03-06T00:00:00Z"))]), vec!["cheap"]),
        (json!([later(json!(null))]), vec!["late", "cheap"]),
    ];
    for (fallbacks, expected) in cases {
        let more = json!({"constraints": wanted, "fallbacks": fallbacks});
        assert_eq!(procured(&world, &procurement(1, 1, &[1], more)), expected);
    }
}

#[test]
fn a_procurement_intent_is_signed_by_its_principal_or_by_an_agent_with_a_chain() {
    let world = World::new();
    with_offers(&world);
    assert!(!procured(&world, &procurement(1, 3, &[1], json!({}))).is_empty());
    let chain = json!({"delegation_chain": [token(&world, 1, 3, json!({}))]});
    assert!(!procured(&world, &procurement(1, 3, &[3], chain)).is_empty());
    let other = json!({"delegation_chain": [token(&world, 4, 3, json!({}))]});
    let cases = [
        (procurement(1, 3, &[3], json!({})), "delegation_invalid", "/delegation_chain"),
        (procurement(1, 3, &[3], other), "delegation_invalid", "/delegation_chain"),
        (procurement(1, 3, &[5], json!({})), "signature_missing", "/signatures"),
        (procurement(1, 3, &[], json!({})), "signature_missing", "/signatures"),
    ];
    for (message, code, at) in cases {
        assert_eq!(refused(world.answer(&message, None)), (code, at.to_owned()));
    }
    let mut changed = parse(&procurement(1, 1, &[1], json!({}))).root().to_value();
    changed["budget"]["max_amount"] = json!("8000");
    let outcome = refused(world.answer(changed.to_string().as_bytes(), None));
    assert_eq!(outcome, ("signature_invalid", "/signatures/0/value".into()));
    let first = parse(&procurement(1, 1, &[1], json!({}))).root().to_value();
    let name = json!({"intent_id": first["intent_id"]});
    world.answer(first.to_string().as_bytes(), None).unwrap();
    let reused = procurement(1, 1, &[1], json!({"intent_id": name["intent_id"], "category": "digital_goods"}));
    assert_eq!(refused(world.answer(&reused, None)), ("intent_id_reused", "/intent_id".into()));
}

#[test]
fn what_a_procurement_intent_may_not_say_is_refused_with_its_place() {
    let world = World::new();
    let cases = [
        (json!({"constraints": {"query": "shoes"}}), "procurement_unsupported", "/constraints/query"),
        (
            json!({"constraints": {"product_identifier": {"free_text_description": "shoes"}}}),
            "procurement_unsupported",
            "/constraints/product_identifier/free_text_description",
        ),
        (json!({"constraints": {"mood": "good"}}), "procurement_unsupported", "/constraints/mood"),
        (json!({"constraints": {"quantity": 0}}), "invalid_value", "/constraints/quantity"),
        (json!({"constraints": {"delivery_by": "soon"}}), "invalid_timestamp", "/constraints/delivery_by"),
        (json!({"constraints": []}), "wrong_type", "/constraints"),
        (json!({"budget": {"currency": "EUR"}}), "missing_field", "/budget/max_amount"),
        (json!({"budget": {"max_amount": "1e3", "currency": "EUR"}}), "invalid_decimal", "/budget/max_amount"),
        (json!({"budget": {"max_amount": "1", "currency": "euro"}}), "invalid_value", "/budget/currency"),
        (json!({"expires_at": "2026-03-01T11:59:59Z"}), "intent_expired", "/expires_at"),
        (json!({"expires_at": "2026-03-03T11:59:59Z"}), "validity_too_long", "/expires_at"),
        (json!({"intent_id": "x"}), "invalid_value", "/intent_id"),
        (json!({"extra": 1}), "unknown_field", "/extra"),
        (
            json!({"fallbacks": [{"relax_field": "color", "to_value": "red"}]}),
            "invalid_value",
            "/fallbacks/0/relax_field",
        ),
        (json!({"fallbacks": vec![json!({"relax_field": "x"}); 17]}), "list_too_long", "/fallbacks"),
        (
            json!({"ranking_policy": {"minimum_reputation_score": 2}}),
            "invalid_value",
            "/ranking_policy/minimum_reputation_score",
        ),
        (json!({"principal_did": "me"}), "invalid_did", "/principal_did"),
    ];
    for (more, code, at) in cases {
        let message = procurement(1, 1, &[1], more.clone());
        assert_eq!(refused(world.answer(&message, None)), (code, at.to_owned()), "{more}");
    }
}

/// A performance record of RFC 0009, signed inside by whoever issues it.
fn performance(issuer: u8, subject: &str, score: f64, tampered: bool) -> Value {
    let mut record = json!({
        "record_id": format!("rep_{}", unique()), "issuer": did(&person(issuer)), "subject": subject,
        "interaction_receipt": "rec_1", "interaction_type": "invocation",
        "dimensions": {"accuracy": {"score": score, "max": 5}}, "issued_at": "2026-03-01T10:00:00Z",
    });
    let value = encoding::encode(&person(issuer).sign(&json::canonical_value(&record)));
    record["issuer_signature"] = json!(value);
    if tampered {
        record["dimensions"]["accuracy"]["score"] = json!(5);
    }
    record
}

fn conformance(signer: u8, subject: &str) -> Value {
    let mut receipt = json!({
        "receipt_id": format!("urn:oap:conformance:{}", unique()), "type": "conformance",
        "timestamp": "2026-02-01T10:00:00Z", "implementation": {"did": subject, "name": "a", "version": "1.0.0"},
        "claimed_levels": ["L2"], "results_summary": {"total": 1, "passed": 1, "failed": 0},
    });
    let key = person(signer);
    let value = encoding::encode(&key.sign(&json::canonical_value(&receipt)));
    receipt["signatures"] = json!([{"by": key.key_id().to_string(), "alg": "EdDSA", "value": value}]);
    receipt
}

fn published(world: &World, publisher: u8, record: Value) -> Result<Vec<u8>, Error> {
    world.publish(&sign(crate::world::publication(&person(publisher), "evidence", record), &person(publisher)))
}

#[test]
fn evidence_counts_for_whoever_signed_it_whoever_brings_it() {
    let mut world = World::new();
    let tool = did(&person(7));
    world.put(&person(7), "manifest", json!({"tool": {"did": tool}}));
    let above = |world: &World, floor: Value| ids(&world.ask(&person(1), json!({"quality_floor": floor}))).len();
    // The tool itself may bring what others signed, and nothing else counts.
    published(&world, 7, performance(7, &tool, 5.0, false)).unwrap();
    assert_eq!(above(&world, json!({"performance_score": 0.1})), 0);
    published(&world, 7, performance(5, &tool, 4.0, false)).unwrap();
    assert_eq!(above(&world, json!({"performance_score": 0.8, "provider_reputation": 0.8})), 1);
    assert_eq!(above(&world, json!({"performance_score": 0.81})), 0);
    published(&world, 7, conformance(7, &tool)).unwrap();
    assert_eq!(above(&world, json!({"conformance_level": "L2"})), 0, "its own attestation");
    published(&world, 7, conformance(5, &tool)).unwrap();
    for _ in 0..2 {
        assert_eq!(above(&world, json!({"conformance_level": "L2"})), 1);
        world.crash();
    }
    world.millis.store(NOON + 62 * 86_400_000, Ordering::Release);
    let later = json!({"validity": {"from": "2026-05-02T11:00:00Z", "to": "2026-05-02T13:00:00Z"},
        "quality_floor": {"conformance_level": "L2"}});
    assert!(ids(&world.ask(&person(1), later)).is_empty(), "ninety days are over");
}

#[test]
fn evidence_that_its_issuer_did_not_sign_is_refused() {
    let world = World::new();
    let tool = "did:web:a.example";
    let mut unsigned = performance(5, tool, 1.0, false);
    unsigned.as_object_mut().unwrap().remove("issuer_signature");
    let mut receipt = conformance(5, tool);
    receipt["claimed_levels"] = json!(["L5"]);
    let mut placeholder = conformance(5, tool);
    placeholder["signatures"][0]["value"] = json!("PLACEHOLDER_NOT_FOR_PRODUCTION");
    let mut nobody = conformance(5, tool);
    nobody["signatures"] = json!([]);
    let mut wrong = performance(5, tool, 1.0, false);
    wrong["dimensions"]["accuracy"]["max"] = json!(0);
    let cases = [
        (performance(5, tool, 1.0, true), "signature_invalid", "/record/issuer_signature"),
        (unsigned.clone(), "signature_missing", "/record/issuer_signature"),
        (receipt, "signature_invalid", "/record/signatures/0/value"),
        (placeholder, "signature_encoding", "/record/signatures/0/value"),
        (nobody, "invalid_evidence", "/record/signatures"),
        (wrong, "invalid_evidence", "/record/dimensions"),
    ];
    for (record, code, at) in cases {
        assert_eq!(refused(published(&world, 6, record)), (code, at.to_owned()));
    }
    published(&world, 5, unsigned).unwrap();
}

#[test]
fn so_much_is_kept_about_one_subject_and_no_more() {
    let world = World::new();
    let word = |number: u32| json!({"id": format!("urn:e:{number}"), "subject_did": "did:web:a.example"});
    for number in 0..16 {
        published(&world, 5, word(number)).unwrap();
    }
    match published(&world, 5, word(16)) {
        Err(Error::Refusal(refusal)) => {
            assert_eq!(refusal.code, "evidence_full");
            assert_eq!(refusal.limit.map(|limit| (limit.name, limit.max)), Some(("evidence.words".into(), 16)));
        }
        other => panic!("{other:?}"),
    }
    published(&world, 5, json!({"id": "urn:e:1", "subject_did": "did:web:a.example", "performance_score": 1})).unwrap();
    published(&world, 6, word(17)).unwrap();
}
