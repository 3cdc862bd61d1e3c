//! RFC 0020 A.3 R5: a thousand copies have one place in front, and all of them are in the answer (decisions/0255).

use crate::world::{World, ids, intent, parse, person, sign};
use json::{Value, json};
use std::collections::BTreeSet;

/// An offer of a shop; copies differ in their numbers, and whoever copies promises more.
fn offer(shop: &str, number: usize, title: &str, latency_p99_ms: u32) -> Value {
    json!({
        "offer_id": format!("urn:{shop}:{number}"), "provider_did": format!("did:web:{shop}.example:desk:{number}"),
        "title": title, "text": format!("{title}, edition {number}, rowed with care"), "kind": "boat",
        "sla": {"latency_p99_ms": latency_p99_ms}, "regions": ["lagoon", "canal"], "seats": 6, "roof": true,
        "terms": {"cancel": "free until the day before", "pay": "on board", "rain": "the roof is closed"},
    })
}

fn question(with: &Value) -> Vec<u8> {
    let mut asked = json!({"category": "commercial", "projection": {"include": ["/title"]},
        "constraints": {"path": "/kind", "operator": "eq", "value": "boat"}});
    asked.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    sign(intent(&person(1), asked), &person(1))
}

#[test]
fn a_thousand_copies_have_one_place_on_a_page() {
    let world = World::new();
    let copies = (0..1_000).map(|number| offer("copies", number, "Gondola", 1 + number as u32 % 7));
    let others = (0..250).map(|number| offer(&format!("shop{number}"), number, "Gondola", 400));
    world.import("offer", &copies.chain(others).collect::<Vec<_>>());
    for policy in ["ranked_set", "full_set"] {
        let pages = world.pages(&question(&json!({"resolution_policy": policy}))).unwrap();
        let of_copies = |page: &Value| ids(page).iter().filter(|id| id.starts_with("urn:copies:")).count();
        assert_eq!(pages[..3].iter().map(of_copies).collect::<Vec<_>>(), [1, 0, 49], "{policy}");
        assert_eq!(ids(&pages[0])[0], "urn:copies:0");
        let all: BTreeSet<String> = pages.iter().flat_map(ids).collect();
        assert_eq!((pages.len(), all.len()), (13, 1_250), "nothing is lost and nothing is there twice");
        // Whoever waits is told why, and a copy of somebody else waits for nobody.
        let told = |page: usize, place: usize| pages[page]["candidates"][place]["decision_record"].clone();
        let (first, waiting) = (told(0, 99), told(2, 60));
        assert!(waiting["explanation"].as_str().unwrap().ends_with("it repeats urn:copies:0"), "{waiting}");
        assert_eq!(waiting["ranking_function"]["inputs"][5]["name"], "repetition");
        assert_eq!(waiting["ranking_function"]["rank"], 261);
        assert_eq!(first["ranking_function"]["inputs"].as_array().unwrap().len(), 5);
    }
    // Whoever asks why is told the same.
    let explained = world.explain(&question(&json!({})), Some("urn:copies:105")).unwrap();
    assert!(explained["decision_record"]["explanation"].as_str().unwrap().ends_with("urn:copies:0"), "{explained}");
    assert_eq!(explained["decision_record"]["ranking_function"]["rank"], 252);
}

#[test]
fn what_is_withdrawn_between_pages_still_waits_its_turn() {
    let world = World::new();
    let owner = person(3);
    for number in 0..150 {
        let mut offer = offer("copies", number, "Gondola", 5);
        offer.as_object_mut().unwrap().remove("provider_did");
        world.put(&owner, "offer", offer);
    }
    let others: Vec<Value> = (0..80).map(|number| offer(&format!("shop{number}"), number, "Barge", 400)).collect();
    world.import("offer", &others);
    let message = question(&json!({}));
    let first = parse(&world.answer(&message, None).unwrap()).root().to_value();
    let cursor = first["next_cursor"].as_str().unwrap();
    assert!(ids(&first)[1..81].iter().all(|id| id.starts_with("urn:shop")));
    world.take_back(&owner, "urn:copies:140");
    let second = parse(&world.answer(&message, Some(cursor)).unwrap()).root().to_value();
    let mut all: Vec<String> = [ids(&first), ids(&second)].concat();
    assert!(all.contains(&"urn:copies:140".to_owned()));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 200);
}

#[test]
fn a_repetition_that_fits_comes_before_what_is_over_budget() {
    let world = World::new();
    let priced = |shop: &str, number: usize, title: &str, amount: &str| {
        let mut offer = offer(shop, number, title, 5);
        offer["price"] = json!({"amount": amount, "currency": "EUR"});
        offer
    };
    let copies = (0..90).map(|number| priced("copies", number, "Gondola", "1.00"));
    let dear = (0..5).map(|number| priced(&format!("shop{number}"), number, "Barge", "9.00"));
    world.import("offer", &copies.chain(dear).collect::<Vec<_>>());
    let budget = json!({"amount": "5.00", "currency": "EUR", "allocation": "single_winner"});
    let answer = world.answer(&question(&json!({"budget": budget, "resolution_policy": "full_set"})), None).unwrap();
    let found = ids(&parse(&answer).root().to_value());
    let dear = found.iter().position(|id| id.starts_with("urn:shop"));
    assert_eq!((found.len(), dear), (95, Some(90)), "{found:?}");
}
