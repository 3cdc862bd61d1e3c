//! RFC 0020 A.3 to A.6: the node's answer is the one that asking every candidate gives.

use crate::market::Market;
use crate::world::{World, did, person, sign, unique};
use aql::{Candidate, Constraints, Evaluator, Fuel, Intent, Limits, OverBudget, Resolution};
use conformance::chance::Chance;
use json::{Value, json};
use node::Error;

/// A random intent over a market, named and signed.
fn random_intent(chance: &mut Chance<'_>, market: &Market) -> Vec<u8> {
    let records = match chance.below(3) {
        0 => &market.manifests,
        1 => &market.offers,
        _ => &market.knowledge,
    };
    let record = chance.pick(records).cloned().unwrap_or_default();
    rename(crate::market::intent_about(chance, &record))
}

/// The same question under a new name.
fn rename(mut intent: Value) -> Vec<u8> {
    intent.as_object_mut().unwrap().remove("signature");
    intent["intent_id"] = json!(format!("urn:oap:intent:{}", unique()));
    intent["issuer_did"] = json!(did(&person(1)));
    sign(intent, &person(1))
}

/// What a client can compare: id, place, score, flag and payload of each candidate.
fn told(pages: &[Value]) -> Vec<Value> {
    let entry = |entry: &Value| {
        json!([entry["candidate_id"], entry["rank"], entry["score"], entry["over_budget"], entry["payload"]])
    };
    pages.iter().flat_map(|page| page["candidates"].as_array().unwrap()).map(entry).collect()
}

fn expected(resolution: &Resolution<'_>) -> Vec<Value> {
    let entry = |found: &aql::Match<'_>| {
        let payload = crate::world::parse(found.judgement.payload.as_ref().unwrap()).root().to_value();
        let flag = if found.judgement.over_budget { json!(true) } else { Value::Null };
        // As the answer would be read back.
        let number =
            |number: f64| crate::world::parse(json::canonical_value(&json!(number)).as_slice()).root().to_value();
        json!([found.candidate.id, number(found.rank as f64), number(found.ranking.score), flag, payload])
    };
    resolution.matches.iter().map(entry).collect()
}

/// Rejected candidates must be rejected by the twin, for the same reason; of a small market all are named.
#[track_caller]
fn compare_rejections(pages: &[Value], resolution: &Resolution<'_>, all: bool) {
    let mut expected: Vec<(&str, &str, &str)> = resolution
        .rejections
        .iter()
        .map(|found| (&*found.candidate.id, found.judgement.outcome.name(), &*found.judgement.explanation))
        .collect();
    expected.sort_unstable();
    let named = pages.iter().flat_map(|page| page["rejected"].as_array().into_iter().flatten());
    let told: Vec<(&str, &str, &str)> = named
        .map(|entry| {
            let record = &entry["decision_record"];
            let text = |value: &'static str| record[value].as_str().unwrap();
            (entry["candidate_id"].as_str().unwrap(), text("outcome"), text("explanation"))
        })
        .collect();
    if all {
        assert_eq!(told, expected[..expected.len().min(node::REJECTED)]);
    } else {
        assert!(told.iter().all(|one| expected.binary_search(one).is_ok()), "{told:?}");
    }
}

/// Counts of an explanation, around the true ones.
#[track_caller]
fn compare_counts(explanation: &Value, constraints: &Constraints, candidates: &[Candidate]) {
    let (mut all, mut leaves) = (0, vec![0; constraints.leaves().len()]);
    let mut evaluator = Evaluator::new(Fuel::OWN);
    for candidate in candidates {
        all += u64::from(evaluator.evaluate(constraints, candidate.record()).unwrap());
        leaves.iter_mut().zip(&evaluator.leaves).for_each(|(count, holds)| *count += u64::from(*holds));
    }
    let surrounds = |told: &Value, count: u64| {
        told["at_least"].as_u64().unwrap() <= count && count <= told["at_most"].as_u64().unwrap()
    };
    assert!(surrounds(&explanation["satisfied"], all), "{all} {explanation}");
    for (leaf, count) in explanation["leaves"].as_array().unwrap().iter().zip(leaves) {
        assert!(surrounds(&leaf["satisfied"], count), "{count} {leaf}");
        assert!(leaf["without"]["at_most"].as_u64().unwrap() >= all, "{leaf}");
    }
}

/// What came of comparing many questions.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) compared: usize,
    pub(crate) matches: usize,
    pages: usize,
    refused: usize,
    pub(crate) out_of_fuel: usize,
}

/// Holds an answer and its explanation against asking every candidate of the market that the issuer sees.
pub(crate) fn compare(world: &World, market: &Market, message: &[u8], tally: &mut Tally) {
    let read = Intent::parse(message, &Limits::STANDARD);
    let intent = match read {
        Ok((intent, _)) => intent,
        Err(refusal) => {
            assert_eq!(crate::world::code(world.answer(message, None)), refusal.code.name());
            tally.refused += 1;
            return;
        }
    };
    let pages = match world.pages(message) {
        Ok(pages) => pages,
        Err(Error::Refusal(refusal)) => {
            assert!(["regex_budget_exceeded", "query_budget_exceeded"].contains(&refusal.code), "{refusal:?}");
            tally.out_of_fuel += 1;
            return;
        }
        Err(fault) => panic!("{fault}"),
    };
    let candidates = market.candidates(intent.category.name());
    let resolution = aql::resolve(&intent, &candidates, OverBudget::Flag, Fuel::OWN).unwrap();
    assert_eq!(told(&pages), expected(&resolution), "{}", String::from_utf8_lossy(message));
    compare_rejections(&pages, &resolution, candidates.len() <= 64);
    let explanation = world.explain(message, None).unwrap();
    compare_counts(&explanation, &intent.constraints, &candidates);
    tally.compared += 1;
    tally.matches += resolution.matches.len();
    tally.pages += pages.len();
}

#[test]
fn answers_equal_the_slow_twin() {
    let mut tally = Tally::default();
    for (seed, (records, questions)) in [(6, 60), (60, 50), (65, 50), (180, 60)].into_iter().enumerate() {
        let mut chance = Chance::seeded(seed as u64);
        let market = Market::random(&mut chance, records);
        let world = World::new();
        market.import_into(&world);
        for _ in 0..questions {
            compare(&world, &market, &random_intent(&mut chance, &market), &mut tally);
        }
    }
    assert!(tally.compared > 150 && tally.matches > 1_000 && tally.out_of_fuel < 5, "{tally:?}");
}

/// An answer without what differs each time: names, times, cursor, signature.
fn lasting(mut page: Value) -> Vec<u8> {
    for member in ["intent_id", "response_id", "evaluated_at", "next_cursor", "signature"] {
        page.as_object_mut().unwrap().remove(member);
    }
    for list in ["candidates", "rejected"] {
        for entry in page[list].as_array_mut().into_iter().flatten() {
            for member in ["decision_id", "evaluated_at", "policy_decision_ref"] {
                entry["decision_record"].as_object_mut().unwrap().remove(member);
            }
        }
    }
    if page["rejected"].is_null() {
        page.as_object_mut().unwrap().remove("rejected");
    }
    json::canonical_value(&page)
}

#[test]
fn a_restart_changes_no_answer() {
    let mut chance = Chance::seeded(99);
    let market = Market::random(&mut chance, 120);
    let mut world = World::new();
    market.import_into(&world);
    // Some records are replaced and withdrawn again, so that the index has dead units, too.
    let publisher = person(3);
    for number in 0..30 {
        let record = json!({"offer_id": format!("urn:extra:{number}"), "a": number});
        world.put(&publisher, "offer", record.clone());
        world.put(&publisher, "offer", record);
        world.take_back(&publisher, &format!("urn:extra:{number}"));
    }
    let questions: Vec<Value> = std::iter::repeat_with(|| random_intent(&mut chance, &market))
        .filter(|message| Intent::parse(message, &Limits::STANDARD).is_ok())
        .take(25)
        .map(|message| crate::world::parse(&message).root().to_value())
        .collect();
    let ask = |world: &World| -> Vec<Vec<Vec<u8>>> {
        let pages = |question: &Value| world.pages(&rename(question.clone())).unwrap_or_default();
        questions.iter().map(|question| pages(question).into_iter().map(lasting).collect()).collect()
    };
    let before = ask(&world);
    assert!(before.iter().flatten().map(Vec::len).sum::<usize>() > 50_000);
    world.reopen();
    assert!(before == ask(&world), "after a close");
    world.crash();
    assert!(before == ask(&world), "after a crash");
    world.forget_index();
    assert!(before == ask(&world), "after the index was made again");
    world.reopen();
    world.reopen();
    assert!(before == ask(&world), "after two more starts");
}

#[test]
fn nodes_with_the_same_records_say_the_same_whatever_came_first() {
    let mut chance = Chance::seeded(7);
    let market = Market::random(&mut chance, 400);
    let mut offers = market.offers.clone();
    let nodes = [World::new(), World::new()];
    nodes[0].import("offer", &offers);
    offers.reverse();
    nodes[1].import("offer", &offers);
    let budget = json!({"amount": "5", "currency": "EUR", "allocation": "single_winner"});
    let (mut compared, mut rejected) = (0, 0);
    for floor in [json!({}), json!({"latency_p99_ms": 100})] {
        let with = json!({"category": "commercial", "constraints": {"path": "/offer_id", "operator": "ne", "value": ""},
            "budget": budget, "quality_floor": floor, "projection": {"include": ["/offer_id"]}});
        let question = crate::world::intent(&person(1), with);
        let [left, right] = nodes.each_ref().map(|world| world.pages(&rename(question.clone())).unwrap());
        for (mut left, mut right) in left.into_iter().zip(right) {
            rejected += left["rejected"].as_array().map_or(0, Vec::len);
            for page in [&mut left, &mut right] {
                page.as_object_mut().unwrap().remove("resolver_did");
            }
            assert_eq!(String::from_utf8(lasting(left)), String::from_utf8(lasting(right)));
            compared += 1;
        }
    }
    assert!(compared >= 2 && rejected >= 5, "{compared} pages, {rejected} rejected");
}
