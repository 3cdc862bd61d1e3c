//! RFC 0020 §5: the same question gets the same answer, and a name means one question.

use crate::world::{NOON, World, code, intent, manifest, person, sign};
use json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn world() -> World {
    let world = World::new();
    world.put(&person(2), "manifest", manifest(&person(2), "a", json!({})));
    world
}

#[test]
fn the_same_bytes_get_the_same_answer() {
    let mut world = world();
    let message = sign(intent(&person(1), json!({})), &person(1));
    let answer = world.answer(&message, None).unwrap();
    world.audited(&message, &answer, 0);
    world.put(&person(2), "manifest", manifest(&person(2), "b", json!({})));
    world.millis.store(NOON + 60_000, Ordering::Release);
    assert_eq!(world.answer(&message, None).unwrap(), answer);
    world.reopen();
    assert_eq!(world.answer(&message, None).unwrap(), answer);
    world.crash();
    assert_eq!(world.answer(&message, None).unwrap(), answer);
}

#[test]
fn a_name_means_one_question_of_one_issuer() {
    let mut world = world();
    let first = intent(&person(1), json!({}));
    let same_name = |number: u8| {
        let members = json!({"intent_id": first["intent_id"], "resolution_policy": "single_best"});
        sign(intent(&person(number), members), &person(number))
    };
    world.answer(&sign(first.clone(), &person(1)), None).unwrap();
    assert_eq!(code(world.answer(&same_name(1), None)), "intent_id_reused");
    world.answer(&same_name(4), None).unwrap();
    world.reopen();
    assert_eq!(code(world.answer(&same_name(1), None)), "intent_id_reused");
    // Once the intent has expired its name is free, and its window is closed.
    world.millis.store(NOON + 3 * 3_600_000, Ordering::Release);
    assert_eq!(code(world.answer(&sign(first.clone(), &person(1)), None)), "intent_expired");
    let later = json!({"from": "2026-03-01T14:00:00Z", "to": "2026-03-01T16:00:00Z"});
    let reused = json!({"intent_id": first["intent_id"], "validity": later});
    world.answer(&sign(intent(&person(1), reused), &person(1)), None).unwrap();
}

#[test]
fn a_clock_that_is_turned_back_opens_no_window_again() {
    let mut world = world();
    let message = sign(intent(&person(1), json!({})), &person(1));
    world.answer(&message, None).unwrap();
    let day = 24 * 3_600_000;
    world.millis.store(NOON + 2 * day, Ordering::Release);
    assert_eq!(code(world.answer(&message, None)), "intent_expired");
    // While it runs, over a restart, and over a kill, which leaves the last mark behind.
    world.millis.store(NOON, Ordering::Release);
    assert_eq!(code(world.answer(&message, None)), "intent_expired");
    world.reopen();
    assert_eq!(code(world.answer(&message, None)), "intent_expired");
    world.crash();
    assert_eq!(code(world.answer(&message, None)), "intent_expired");
}

#[test]
fn of_fifty_who_ask_the_same_at_once_all_hear_one_answer() {
    let world = world();
    let message = Arc::new(sign(intent(&person(1), json!({})), &person(1)));
    let answers: HashSet<Vec<u8>> = world.runtime.block_on(async {
        let ask = || {
            let (node, message) = (Arc::clone(world.node()), Arc::clone(&message));
            tokio::spawn(async move { node.answer(&message, None).await.unwrap() })
        };
        let asked: Vec<_> = (0..50).map(|_| ask()).collect();
        let mut answers = HashSet::new();
        for answer in asked {
            answers.insert(answer.await.unwrap());
        }
        answers
    });
    assert_eq!(answers.len(), 1);
}
