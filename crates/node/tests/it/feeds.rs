//! What subscribers are told adds up to what an answer says.

use crate::world::{NOON, World, did, intent, person, sign};
use json::{Document, Value, json};
use node::Terms;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A little chance that is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn color(dice: &mut Dice) -> &'static str {
    ["red", "blue", "green"][dice.roll(3) as usize]
}

fn leaf(dice: &mut Dice) -> Value {
    match dice.roll(5) {
        0 => json!({"path": "/color", "operator": "eq", "value": color(dice)}),
        1 => json!({"path": "/size", "operator": "lt", "value": dice.roll(6)}),
        2 => json!({"path": "/size", "operator": "gte", "value": dice.roll(6)}),
        3 => json!({"path": "/extra", "operator": "exists", "value": true}),
        _ => json!({"path": "/color", "operator": "matches", "value": "^(re|gr)"}),
    }
}

fn tree(dice: &mut Dice) -> Value {
    match dice.roll(4) {
        0 => json!({"not": leaf(dice)}),
        1 => json!({"any_of": [leaf(dice), leaf(dice)]}),
        2 => json!({"all_of": [leaf(dice), {"not": leaf(dice)}]}),
        _ => leaf(dice),
    }
}

fn record(dice: &mut Dice, number: u64) -> Value {
    let mut record = json!({
        "tool": {"did": format!("did:web:t{number}.example"), "publisher": {"did": did(&person(1))}},
        "color": color(dice),
        "size": dice.roll(6),
        // Outside of what anybody sees.
        "noise": dice.roll(1_000),
    });
    if dice.roll(2) == 0 {
        record["extra"] = json!(dice.roll(3));
    }
    record
}

pub(crate) fn value(bytes: &[u8]) -> Value {
    Document::parse(bytes, &json::Limits::OURS).unwrap().root().to_value()
}

/// Everything of a journal, in order and without gaps.
pub(crate) fn journal(world: &World, id: &str) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = events.len().to_string();
        let page = world.runtime.block_on(world.node().poll(id, Some(&after), Duration::ZERO, 100)).unwrap();
        let page = value(&page)["events"].as_array().unwrap().clone();
        if page.is_empty() {
            return events;
        }
        for event in page {
            assert_eq!(event["cursor"], json!(events.len() + 1), "a gap");
            events.push(event);
        }
    }
}

/// Lets time pass until nothing waits for anybody.
pub(crate) fn settle(world: &World, ids: &[String]) {
    for _ in 0..600 {
        let level = world.node().standing().unwrap().1 == 0;
        let waits = |id: &String| value(&world.node().subscription(id).unwrap())["waiting"] != json!(0);
        if level && !ids.iter().any(waits) {
            return;
        }
        if level {
            world.millis.fetch_add(20_000, Ordering::AcqRel);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("delivery does not come to rest");
}

#[test]
fn what_is_told_adds_up_to_the_answer_whatever_happens_in_between() {
    for seed in 0..4 {
        let mut dice = Dice(seed);
        let mut world = World::new();
        let (publisher, issuer) = (person(1), person(2));
        let projection = json!({"include": ["/tool/did", "/color", "/size"]});
        let (mut ids, mut questions, mut known) = (Vec::new(), Vec::new(), BTreeMap::new());
        for step in 0..120_u64 {
            match dice.roll(24) {
                0 | 1 if ids.len() < 12 => {
                    let constraints = tree(&mut dice);
                    let rate = [1, 5, 6_000][dice.roll(3) as usize];
                    let open = intent(
                        &issuer,
                        json!({
                            "category": "subscription", "constraints": constraints, "projection": projection,
                            "max_event_rate_per_minute": rate,
                            "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-05-01T00:00:00Z"},
                        }),
                    );
                    let terms = Terms { snapshot: true, ..Terms::default() };
                    let ack = world.runtime.block_on(world.node().subscribe(&sign(open, &issuer), &terms)).unwrap();
                    ids.push(value(&ack)["subscription_id"].as_str().unwrap().to_owned());
                    questions.push(constraints);
                }
                2 => world.reopen(),
                3 => world.crash(),
                4 => {
                    world.millis.fetch_add(10_000, Ordering::AcqRel);
                }
                5..=8 => {
                    let id = format!("did:web:t{}.example", dice.roll(8));
                    if world.node().record(&id).is_ok() {
                        world.take_back(&publisher, &id);
                    }
                }
                _ => {
                    let number = dice.roll(8);
                    let record = record(&mut dice, number);
                    world.put(&publisher, "manifest", record);
                }
            }
            // What was told stays told.
            if step % 20 == 0 {
                for id in &ids {
                    let (now, before) = (journal(&world, id), known.remove(id).unwrap_or_default());
                    let before: Vec<Value> = before;
                    assert_eq!(now[..before.len()], before[..], "a cursor has two contents");
                    known.insert(id.clone(), now);
                }
            }
        }
        settle(&world, &ids);
        world.millis.store(NOON + 1_000, Ordering::Release);
        for (id, constraints) in ids.iter().zip(&questions) {
            let mut set = BTreeMap::new();
            for event in journal(&world, id) {
                let record = event["manifest_id"].as_str().unwrap().to_owned();
                match event["set_change"].as_str().unwrap() {
                    "entered" => assert!(set.insert(record, event["payload"].clone()).is_none(), "{event:#}"),
                    "changed" => assert!(set.insert(record, event["payload"].clone()).is_some(), "{event:#}"),
                    _ => assert!(set.remove(&record).is_some(), "{event:#}"),
                }
            }
            let asked = json!({"constraints": constraints, "projection": projection, "resolution_policy": "full_set"});
            let answer = world.ask(&issuer, asked);
            let found: BTreeMap<String, Value> = answer["candidates"]
                .as_array()
                .unwrap()
                .iter()
                .map(|found| (found["candidate_id"].as_str().unwrap().to_owned(), found["payload"].clone()))
                .collect();
            assert_eq!(set, found, "seed {seed}: {constraints}");
        }
        assert!(world.node().store().check().unwrap().flaws.is_empty());
    }
}

/// What somebody says of a tool, for a while.
fn word(judge: &trust::SigningKey, number: u64, score: f64, until: &str) -> Value {
    json!({
        "id": format!("urn:x:evidence:{number}"), "subject_did": format!("did:web:t{number}.example"),
        "issuer_did": did(judge), "performance_score": score, "valid_until": until,
    })
}

/// Subscribes to whatever is well spoken of.
fn well_spoken_of(world: &World, issuer: &trust::SigningKey, rate: u64) -> String {
    let open = intent(
        issuer,
        json!({
            "category": "subscription", "constraints": {"path": "/tool/did", "operator": "exists", "value": true},
            "projection": {"include": ["/tool/did", "/color"]}, "max_event_rate_per_minute": rate,
            "quality_floor": {"performance_score": 0.5},
            "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-05-01T00:00:00Z"},
        }),
    );
    let terms = Terms { snapshot: true, ..Terms::default() };
    let ack = world.runtime.block_on(world.node().subscribe(&sign(open, issuer), &terms)).unwrap();
    value(&ack)["subscription_id"].as_str().unwrap().to_owned()
}

fn told(events: &[Value]) -> Vec<(&str, &str)> {
    events.iter().map(|event| (event["set_change"].as_str().unwrap(), event["event_type"].as_str().unwrap())).collect()
}

#[test]
fn a_record_that_was_told_leaves_once_however_old_what_others_say_has_become() {
    let mut world = World::new();
    let (publisher, issuer, judge) = (person(1), person(2), person(3));
    let tool = |number: u64| {
        json!({
            "tool": {"did": format!("did:web:t{number}.example"), "publisher": {"did": did(&publisher)}}, "color": "red",
        })
    };
    for number in 0..3 {
        world.put(&publisher, "manifest", tool(number));
        world.put(&judge, "evidence", word(&judge, number, 0.9, "2026-03-01T13:00:00Z"));
    }
    // One that begins with the answer, and one that saw it come.
    let begins = well_spoken_of(&world, &issuer, 6_000);
    let ids = [begins.clone()];
    settle(&world, &ids);
    assert_eq!(told(&journal(&world, &begins)), [("entered", "created"); 3]);
    // Nobody says anything any more; that is no event.
    world.millis.store(NOON + 2 * 3_600_000, Ordering::Release);
    world.crash();
    world.take_back(&publisher, "did:web:t0.example");
    world.put(&publisher, "manifest", {
        let mut record = tool(1);
        record["color"] = json!("blue");
        record
    });
    world.put(&judge, "evidence", word(&judge, 2, 0.8, "2026-04-01T00:00:00Z"));
    settle(&world, &ids);
    let events = journal(&world, &begins);
    assert_eq!(told(&events[3..]), [("left", "withdrawn"), ("left", "superseded")], "the third is there and was told");
    world.put(&judge, "evidence", word(&judge, 1, 0.8, "2026-04-01T00:00:00Z"));
    settle(&world, &ids);
    let events = journal(&world, &begins);
    assert_eq!(told(&events[5..]), [("entered", "recertified")]);
    assert_eq!(events[5]["payload"]["color"], "blue");
    assert!(world.node().store().check().unwrap().flaws.is_empty());
}

#[test]
fn what_is_told_adds_up_also_where_what_others_say_grows_old() {
    for seed in 0..4 {
        let mut dice = Dice(seed);
        let mut world = World::new();
        let (publisher, issuer, judge) = (person(1), person(2), person(3));
        let ids: Vec<String> = [1, 5, 6_000].iter().map(|rate| well_spoken_of(&world, &issuer, *rate)).collect();
        for _ in 0..120 {
            let number = dice.roll(6);
            let id = format!("did:web:t{number}.example");
            match dice.roll(12) {
                0 => world.crash(),
                1 | 2 => {
                    world.millis.fetch_add(600_000, Ordering::AcqRel);
                }
                3 | 4 if world.node().record(&id).is_ok() => {
                    world.take_back(&publisher, &id);
                }
                5..=8 => {
                    let until = world.millis.load(Ordering::Acquire) / 1_000 + 300 + dice.roll(1_200) as i64;
                    let until = aql::Instant::from_unix(until, 0).to_string();
                    let score = dice.roll(10) as f64 / 10.0;
                    world.put(&judge, "evidence", word(&judge, number, score, &until));
                }
                _ => {
                    let record = record(&mut dice, number);
                    world.put(&publisher, "manifest", record);
                }
            }
        }
        settle(&world, &ids);
        for id in &ids {
            let mut set = std::collections::BTreeSet::new();
            for event in journal(&world, id) {
                let record = event["manifest_id"].as_str().unwrap().to_owned();
                match event["set_change"].as_str().unwrap() {
                    "entered" => assert!(set.insert(record), "seed {seed}: {event:#}"),
                    "changed" => assert!(set.contains(&record), "seed {seed}: {event:#}"),
                    _ => assert!(set.remove(&record), "seed {seed}: {event:#}"),
                }
            }
            for record in &set {
                assert!(world.node().record(record).is_ok(), "seed {seed}: {record} is gone and was never told to be");
            }
            // What is well spoken of now was told.
            let seconds = world.millis.load(Ordering::Acquire) / 1_000;
            let at = |seconds: i64| aql::Instant::from_unix(seconds, 0).to_string();
            let asked = json!({
                "resolution_policy": "full_set", "quality_floor": {"performance_score": 0.5},
                "validity": {"from": at(seconds - 60), "to": at(seconds + 600)},
            });
            let answer = world.ask(&issuer, asked);
            for found in answer["candidates"].as_array().unwrap() {
                assert!(set.contains(found["candidate_id"].as_str().unwrap()), "seed {seed}: {found:#}");
            }
        }
        assert!(world.node().store().check().unwrap().flaws.is_empty());
    }
}
