//! RFC 0020 §3.1 `full_set`: pages of one moment.

use crate::world::{World, code, ids, intent, manifest, person, sign};
use json::{Value, json};
use std::collections::HashSet;

const MATCHES: usize = 350;

fn crowd() -> World {
    let world = World::new();
    let records: Vec<Value> = (0..MATCHES)
        .map(|number| manifest(&person(2), &format!("t{number:03}"), json!({"sla": {"latency_p99_ms": number % 7}})))
        .collect();
    world.import("manifest", &records);
    world
}

fn everything(number: u8) -> Vec<u8> {
    sign(intent(&person(number), json!({"resolution_policy": "full_set"})), &person(number))
}

#[track_caller]
fn check_whole(pages: &[Value]) {
    let sizes: Vec<usize> = pages.iter().map(|page| ids(page).len()).collect();
    assert_eq!(sizes, [100, 100, 100, 50]);
    let ranks: Vec<u64> = pages
        .iter()
        .flat_map(|page| page["candidates"].as_array().unwrap())
        .map(|entry| entry["rank"].as_u64().unwrap())
        .collect();
    assert_eq!(ranks, (1..=MATCHES as u64).collect::<Vec<_>>());
    let found: HashSet<String> = pages.iter().flat_map(ids).collect();
    assert_eq!(found, (0..MATCHES).map(|number| format!("did:web:t{number:03}.example")).collect());
}

#[test]
fn every_match_stands_on_one_page() {
    let world = crowd();
    check_whole(&world.pages(&everything(1)).unwrap());
    assert_eq!(ids(&world.ask(&person(1), json!({"resolution_policy": "single_best"}))), ["did:web:t000.example"]);
}

#[test]
fn pages_are_whole_where_the_index_cannot_tell() {
    let world = crowd();
    // A pattern that looks back is asked of every record: names with a digit twice in a row are 19 of 100.
    let twice = json!({"path": "/tool/did", "operator": "matches", "value": r"(\d)\1"});
    let is_it = |number: &usize| format!("{number:03}").as_bytes().windows(2).any(|pair| pair[0] == pair[1]);
    for (constraints, expected) in [
        (twice.clone(), (0..MATCHES).filter(is_it).collect::<Vec<_>>()),
        (json!({"not": [twice]}), (0..MATCHES).filter(|number| !is_it(number)).collect()),
    ] {
        let question = intent(&person(1), json!({"resolution_policy": "full_set", "constraints": constraints}));
        let pages = world.pages(&sign(question, &person(1))).unwrap();
        let mut sizes: Vec<usize> = pages.iter().map(|page| ids(page).len()).collect();
        assert!(sizes.pop().is_some_and(|last| last <= 100) && sizes.iter().all(|size| *size == 100), "{sizes:?}");
        let found: Vec<String> = pages.iter().flat_map(ids).collect();
        let names: HashSet<&String> = found.iter().collect();
        let expected: Vec<String> = expected.iter().map(|number| format!("did:web:t{number:03}.example")).collect();
        assert_eq!((names.len(), names), (found.len(), expected.iter().collect()));
    }
}

#[test]
fn pages_show_the_moment_of_the_first() {
    let mut world = crowd();
    for reopened in [false, true] {
        let message = everything(1);
        let (mut pages, mut before, mut cursor) = (Vec::new(), 0, None::<String>);
        for page in 0..4 {
            let answer = world.answer(&message, cursor.as_deref()).unwrap();
            let read = world.audited(&message, &answer, before);
            before += ids(&read).len();
            cursor = read["next_cursor"].as_str().map(str::to_owned);
            pages.push(read);
            disturb(&world, page + if reopened { 4 } else { 0 });
        }
        assert!(cursor.is_none());
        check_whole(&pages);
        let now = world.pages(&everything(1)).unwrap();
        assert_eq!(now.iter().map(|page| ids(page).len()).sum::<usize>(), MATCHES);
        // What was disturbed is put back, and the next round begins with dead units in the index.
        world.reopen();
    }
}

/// Publishes, replaces, withdraws and judges while somebody reads pages.
fn disturb(world: &World, round: usize) {
    let (operator, judge) = (person(2), person(9));
    let extra = format!("x{round}");
    world.put(&operator, "manifest", manifest(&operator, &extra, json!({})));
    for number in [round, 100 + round, 345 - round] {
        let name = format!("t{number:03}");
        let id = format!("did:web:{name}.example");
        world.take_back(&operator, &id);
        let changed = json!({"sla": {"latency_p99_ms": number % 7}, "round": round});
        world.put(&operator, "manifest", manifest(&operator, &name, changed.clone()));
        world.put(&operator, "manifest", manifest(&operator, &name, changed));
        let word = json!({"id": format!("urn:e:{number}"), "issuer_did": crate::world::did(&judge),
            "subject_did": format!("did:web:t{:03}.example", number + 4), "performance_score": 1.0});
        world.put(&judge, "evidence", word);
    }
    world.take_back(&operator, &format!("did:web:{extra}.example"));
}

#[test]
fn a_page_asked_for_again_is_the_same_bytes() {
    let mut world = crowd();
    let message = everything(1);
    let first = world.answer(&message, None).unwrap();
    let cursor = world.audited(&message, &first, 0)["next_cursor"].as_str().unwrap().to_owned();
    let second = world.answer(&message, Some(&cursor)).unwrap();
    world.audited(&message, &second, 100);
    assert_eq!(world.answer(&message, None).unwrap(), first);
    assert_eq!(world.answer(&message, Some(&cursor)).unwrap(), second);
    world.crash();
    assert_eq!(world.answer(&message, None).unwrap(), first);
    assert_eq!(world.answer(&message, Some(&cursor)).unwrap(), second);
}

#[test]
fn a_cursor_is_good_for_its_own_intent_once() {
    let world = crowd();
    let message = everything(1);
    let first = world.answer(&message, None).unwrap();
    let cursor = world.audited(&message, &first, 0)["next_cursor"].as_str().unwrap().to_owned();
    let written = world.written();
    for other in [everything(1), everything(4)] {
        assert_eq!(code(world.answer(&other, Some(&cursor))), "invalid_cursor", "foreign");
    }
    let altered: String = cursor.chars().rev().collect();
    for wrong in [altered.as_str(), "", "x", &cursor[1..], &format!("{cursor}A")] {
        assert_eq!(code(world.answer(&message, Some(wrong))), "invalid_cursor", "{wrong}");
    }
    assert_eq!(world.written(), written);
    assert!(world.answer(&message, Some(&cursor)).is_ok());
    // The used cursor leads nowhere but to the page that it gave.
    assert_eq!(code(world.answer(&everything(1), Some(&cursor))), "invalid_cursor", "used");
}
