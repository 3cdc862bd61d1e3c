//! RFC 0020 §3.7: what a whole question runs into.

use crate::world::{World, did, intent, manifest, person, sign};
use aql::{Constraints, Evaluator, Fuel, Limits};
use conformance::chance::Chance;
use json::{Document, Pointer, Value, json};

fn leaf(path: &str, operator: &str, value: Value) -> Value {
    json!({"path": path, "operator": operator, "value": value})
}

fn exactly(count: u64) -> Value {
    json!({"at_least": count, "at_most": count})
}

#[track_caller]
fn explain(world: &World, with: Value) -> Value {
    let message = sign(intent(&person(1), with), &person(1));
    world.explain(&message, None).unwrap()
}

/// Twelve tools: number, colour by turns, a date in each month, a price.
fn tools() -> World {
    let (world, owner) = (World::new(), person(2));
    let tool = |number: usize| {
        let colour = ["red", "green", "blue"][number % 3];
        let price = json!({"type": "per_call", "amount": format!("{number}"), "currency": "EUR"});
        let record = json!({
            "n": number, "colour": colour, "since": format!("2026-{:02}-01T00:00:00Z", number + 1),
            "weight": format!("{number}.50"), "hidden": {"n": number},
            "pricing": {"models": if number < 11 { json!([price]) } else { json!([]) }},
            "sla": {"latency_p99_ms": number * 10},
        });
        manifest(&owner, &format!("t{number:02}"), record)
    };
    world.import("manifest", &(0..12).map(tool).collect::<Vec<_>>());
    world
}

fn id(number: usize) -> String {
    format!("did:web:t{number:02}.example")
}

#[test]
fn every_leaf_is_counted_alone_and_left_out() {
    let world = tools();
    let constraints = json!([
        leaf("/colour", "eq", json!("red")),
        {"not": leaf("/n", "lt", json!(6))},
        {"any_of": [leaf("/n", "eq", json!(7)), leaf("/n", "eq", json!(10))]},
    ]);
    let said = explain(&world, json!({"constraints": constraints}));
    assert_eq!((&said["type"], &said["satisfied"]), (&json!("oap.explanation"), &exactly(0)));
    let counts: Vec<(Value, Value, Value)> = said["leaves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|leaf| (leaf["satisfied"].clone(), leaf["without"].clone(), leaf["negated"].clone()))
        .collect();
    let (no, yes) = (json!(false), json!(true));
    assert_eq!(
        counts,
        [
            (exactly(4), exactly(2), no.clone()),
            (exactly(6), exactly(0), yes),
            (exactly(1), exactly(2), no.clone()),
            (exactly(1), exactly(2), no),
        ]
    );
    let shown = &said["leaves"][1];
    assert_eq!((&shown["path"], &shown["operator"], &shown["value"]), (&json!("/n"), &json!("lt"), &json!(6)));
    // Those that fail one part come first, ranked as the answer would rank them.
    let nearest: Vec<(&str, &Value)> = said["nearest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|near| (near["candidate_id"].as_str().unwrap(), &near["failing"]))
        .collect();
    let expected = [(7, json!([0])), (10, json!([0])), (6, json!([2, 3])), (9, json!([2, 3])), (0, json!([1, 2, 3]))];
    assert_eq!(nearest.len(), 5);
    for ((near, failing), (number, leaves)) in nearest.into_iter().zip(&expected) {
        assert_eq!((near, failing), (&*id(*number), leaves));
    }
    let changes = json!([
        {"leaf": 0, "drop": true, "satisfied": exactly(2)},
        {"leaf": 2, "drop": true, "satisfied": exactly(2)},
    ]);
    assert_eq!(said["relaxations"], changes);
}

#[track_caller]
fn check_move(with: Value, expected: Value) {
    let said = explain(&tools(), with);
    assert_eq!(said["relaxations"][0], expected, "{}", said["relaxations"]);
}

#[test]
fn a_bound_moves_to_the_nearest_value_that_lets_somebody_in() {
    let show = json!({"include": ["/n", "/since", "/weight"]});
    let with = |bound: Value| json!({"constraints": [bound, leaf("/colour", "eq", json!("blue"))], "projection": show});
    let moved = |operator: &str, to: Value, count: u64| json!({"leaf": 0, "operator": operator, "to": to, "satisfied": exactly(count)});
    check_move(with(leaf("/n", "gt", json!(11))), moved("gte", json!(11), 1));
    check_move(with(leaf("/n", "gte", json!(9))), moved("gte", json!(8), 2));
    check_move(with(leaf("/n", "lt", json!(2))), moved("lte", json!(2), 1));
    check_move(with(leaf("/n", "lte", json!(4))), moved("lte", json!(5), 2));
    check_move(with(leaf("/weight", "lte", json!("2.4"))), moved("lte", json!("2.50"), 1));
    check_move(with(leaf("/since", "before", json!("2026-02-01"))), moved("lte", json!("2026-03-01T00:00:00Z"), 1));
    check_move(with(leaf("/since", "after", json!("2026-12-31"))), moved("gte", json!("2026-12-01T00:00:00Z"), 1));
}

#[test]
fn a_moved_bound_tells_nothing_that_an_answer_would_hide() {
    let world = tools();
    let moves = |projection: Value| {
        let bound = leaf("/hidden/n", "gte", json!(50));
        let said = explain(&world, json!({"constraints": bound, "projection": projection}));
        let changes = said["relaxations"].as_array().unwrap().clone();
        assert_eq!(changes.last().unwrap()["drop"], true);
        changes.iter().filter(|change| change["drop"].is_null()).cloned().collect::<Vec<_>>()
    };
    assert_eq!(moves(json!({"include": ["/hidden/n"]}))[0]["to"], 11);
    for hiding in [
        json!({"include": ["/n"]}),
        json!({"include": ["/"], "exclude": ["/hidden"]}),
        json!({"include": ["/hidden", "/none"]}),
        json!({"include": ["/"], "exclude": ["/**/n"]}),
    ] {
        assert!(moves(hiding.clone()).is_empty(), "{hiding}");
    }
}

#[test]
fn floors_and_budgets_say_whom_they_keep_out() {
    let world = tools();
    let judge = person(5);
    for number in 0..4 {
        let word = json!({"id": format!("urn:e:{number}"), "issuer_did": did(&judge), "subject_did": id(number),
            "performance_score": 0.2 + 0.2 * number as f64});
        world.put(&judge, "evidence", word);
    }
    let said = explain(&world, json!({"quality_floor": {"performance_score": 0.5, "latency_p99_ms": 20}}));
    assert_eq!(said["satisfied"], exactly(12));
    let expected = json!({
        "removed": exactly(11),
        "floors": [
            {"signal": "performance_score", "removed": exactly(10)},
            {"signal": "latency_p99_ms", "removed": exactly(9)},
        ],
    });
    assert_eq!(said["quality"], expected);
    assert!(said["budget"].is_null());
    let budget = json!({"amount": "4", "currency": "EUR", "allocation": "single_winner"});
    let said = explain(&world, json!({"budget": budget}));
    let expected = json!({"over_budget": exactly(6), "without_price": exactly(1), "cheapest": "5", "currency": "EUR"});
    assert_eq!(said["budget"], expected);
    assert!(said["quality"].is_null());
    let hidden = explain(&world, json!({"budget": budget, "projection": {"include": ["/none"]}}));
    assert!(hidden["budget"]["cheapest"].is_null(), "no answer would say it");
}

#[test]
fn a_question_of_another_category_counts_its_own_candidates() {
    let (world, owner) = (World::new(), person(2));
    for number in 0..6 {
        let record =
            json!({"n": number, "delegation": {"supported": number > 2}, "actions": [{"id": "x"}, {"id": "y"}]});
        world.put(&owner, "manifest", manifest(&owner, &format!("t{number:02}"), record));
    }
    let count = |category: &str, path: &str| {
        let with = json!({"category": category, "constraints": leaf(path, "exists", json!(true))});
        explain(&world, with)["leaves"][0].clone()
    };
    let counts = |leaf: Value| (leaf["satisfied"].clone(), leaf["without"].clone());
    assert_eq!(counts(count("delegation", "/n")), (exactly(3), exactly(3)));
    assert_eq!(counts(count("action", "/id")), (exactly(12), exactly(12)));
    assert_eq!(counts(count("commercial", "/n")), (exactly(0), exactly(0)));
}

/// How many records satisfy constraints.
fn brute_force(constraints: &[Value], records: &[Value]) -> u64 {
    if constraints.is_empty() {
        return records.len() as u64;
    }
    let document = Document::of(&json!(constraints)).unwrap();
    let constraints = Constraints::read(document.root(), Pointer::root(), &Limits::STANDARD).unwrap();
    let mut evaluator = Evaluator::new(Fuel::OWN);
    let holds = |record: &&Value| evaluator.evaluate(&constraints, Document::of(record).unwrap().root()).unwrap();
    records.iter().filter(holds).count() as u64
}

#[track_caller]
fn surrounds(told: &Value, count: u64) {
    let (least, most) = (told["at_least"].as_u64().unwrap(), told["at_most"].as_u64().unwrap());
    assert!(least <= count && count <= most, "{least} ≤ {count} ≤ {most}");
}

/// A random part: mostly comparisons, so that bounds move.
fn part(chance: &mut Chance<'_>) -> Value {
    let field = chance.word(&["/x", "/y", "/list/*", "/when", "/**"]);
    let operator = match field {
        "/when" => chance.word(&["before", "after", "lt", "gte"]),
        _ => chance.word(&["lt", "lte", "gt", "gte", "eq"]),
    };
    let value = match field {
        "/when" => json!(format!("2026-{:02}-01", 1 + chance.below(12))),
        _ if chance.one_in(3) => json!(format!("{}.5", chance.below(9))),
        _ => json!(chance.below(10)),
    };
    let one = leaf(field, operator, value);
    match chance.below(6) {
        0 => json!({"not": one}),
        1 => json!({"any_of": [one, leaf("/y", "gt", json!(chance.below(10)))]}),
        _ => one,
    }
}

#[test]
fn counts_surround_the_truth_and_changes_bring_what_they_promise() {
    let mut chance = Chance::seeded(7);
    let (mut moved, mut dropped, mut near) = (0, 0, 0);
    for count in [5, 40, 300] {
        let record = |number: usize, chance: &mut Chance<'_>| {
            let mut value = |below: usize| match chance.below(4) {
                0 => json!(format!("{}.50", chance.below(below))),
                _ => json!(chance.below(below)),
            };
            let record = json!({"x": value(10), "y": value(10), "list": [value(10), value(10)]});
            let mut record = manifest(&person(2), &format!("t{number:03}"), record);
            record["when"] = json!(format!("2026-{:02}-15", 1 + chance.below(12)));
            record
        };
        let records: Vec<Value> = (0..count).map(|number| record(number, &mut chance)).collect();
        let world = World::new();
        world.import("manifest", &records);
        for _ in 0..40 {
            let parts: Vec<Value> = (0..1 + chance.below(4)).map(|_| part(&mut chance)).collect();
            let said = explain(&world, json!({"constraints": parts, "projection": {"include": ["/"]}}));
            let all = brute_force(&parts, &records);
            surrounds(&said["satisfied"], all);
            let without = |left_out: u64| {
                let rest = parts.iter().enumerate().filter(|(number, _)| *number as u64 != left_out);
                rest.map(|(_, part)| part.clone()).collect::<Vec<_>>()
            };
            let leaves = said["leaves"].as_array().unwrap();
            for leaf in leaves {
                surrounds(&leaf["without"], brute_force(&without(leaf["part"].as_u64().unwrap()), &records));
            }
            for change in said["relaxations"].as_array().unwrap() {
                let part = leaves[change["leaf"].as_u64().unwrap() as usize]["part"].as_u64().unwrap();
                let mut changed = without(part);
                if change["drop"].is_null() {
                    let old = &parts[part as usize];
                    let bound =
                        leaf(old["path"].as_str().unwrap(), change["operator"].as_str().unwrap(), change["to"].clone());
                    changed.push(bound);
                    assert!(brute_force(&changed, &records) > all, "{change}");
                    moved += 1;
                } else {
                    dropped += 1;
                }
                surrounds(&change["satisfied"], brute_force(&changed, &records));
            }
            for candidate in said["nearest"].as_array().unwrap() {
                let failing = candidate["failing"].as_array().unwrap();
                assert!(!failing.is_empty(), "{candidate}");
                near += 1;
            }
        }
    }
    assert!(moved > 40 && dropped > 100 && near > 200, "{moved} {dropped} {near}");
}

#[test]
fn a_crowd_is_counted_without_loading_it() {
    let world = World::new();
    let records: Vec<Value> =
        (0..2_000).map(|number| manifest(&person(2), &format!("t{number:04}"), json!({"n": number % 50}))).collect();
    world.import("manifest", &records);
    let said =
        explain(&world, json!({"constraints": [leaf("/n", "gte", json!(1_000))], "projection": {"include": ["/n"]}}));
    assert_eq!(said["satisfied"], exactly(0));
    assert_eq!(said["relaxations"][0], json!({"leaf": 0, "operator": "gte", "to": 49, "satisfied": exactly(40)}));
    assert_eq!(said["relaxations"][1], json!({"leaf": 0, "drop": true, "satisfied": exactly(2_000)}));
    assert_eq!(said["nearest"].as_array().unwrap().len(), 5);
    // More parts than are looked at one by one.
    let many: Vec<Value> = (0..100).map(|number| leaf("/n", "ne", json!(number))).collect();
    let said = explain(&world, json!({"constraints": many}));
    assert_eq!(said["satisfied"], exactly(0));
    let leaves = said["leaves"].as_array().unwrap();
    assert_eq!((leaves.len(), &leaves[99]["satisfied"]), (100, &exactly(2_000)));
    assert_eq!(leaves.iter().filter(|leaf| leaf["without"].is_object()).count(), 64);
}
