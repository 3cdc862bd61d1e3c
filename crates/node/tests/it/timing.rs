//! Whether the time of an answer tells what a hidden field holds (`docs/reliability/gate.md`).
//!
//! Two nodes hold the same records but for what is hidden, and are asked the same in turns, whoever comes first by
//! chance. Welch's t says whether the times of one are not those of the other; the slowest tenth is left out, since it
//! is the machine's.

#![expect(clippy::disallowed_methods, reason = "how long an answer takes is measured here")]

use crate::world::{World, did, intent, person, publication, sign};
use json::{Value, json};
use std::time::Instant;

/// Pairs that every run times; `RIALTO_TIMING` asks for more.
const PAIRS: usize = 100;
/// Beyond this the times differ: chance alone does it once in a hundred thousand runs.
const T_MAX: f64 = 4.5;
const RECORDS: usize = 30;

fn pairs() -> usize {
    std::env::var("RIALTO_TIMING").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(PAIRS)
}

/// A market whose records keep something to themselves, which is all that differs.
fn market(hidden: &Value) -> World {
    let world = World::new();
    for number in 0..RECORDS {
        let mut record = json!({"id": format!("urn:x:{number}"), "@type": "oap.knowledge", "number": number});
        if !hidden.is_null() {
            record["internal"] = hidden.clone();
        }
        let mut message = publication(&person(2), "knowledge", record);
        message["restricted"] = json!([{"path": "/internal", "audience": [did(&person(3))]}]);
        world.publish(&sign(message, &person(2))).unwrap();
    }
    world
}

/// A question about the hidden field; its answer is the same everywhere.
fn question() -> Vec<u8> {
    let hidden = json!({"path": "/internal/floor", "operator": "lt", "value": 50});
    let asked = json!({
        "category": "knowledge", "projection": {"include": ["/id"]},
        "constraints": {"all_of": [{"path": "/number", "operator": "lt", "value": 10}, {"not": hidden}]},
    });
    sign(intent(&person(1), asked), &person(1))
}

/// Nanoseconds that a node takes.
fn timed(world: &World, message: &[u8]) -> f64 {
    let begun = Instant::now();
    world.answer(message, None).unwrap();
    begun.elapsed().as_nanos() as f64
}

/// What two samples of times say.
struct Told {
    /// Welch's t, without the slowest tenth of either.
    t: f64,
    /// The means of the rest, in nanoseconds.
    means: [f64; 2],
}

fn welch(mut left: Vec<f64>, mut right: Vec<f64>) -> Told {
    let moments = |sample: &mut Vec<f64>| {
        sample.sort_by(f64::total_cmp);
        sample.truncate(sample.len() * 9 / 10);
        let count = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / count;
        let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    };
    let ((left, left_error), (right, right_error)) = (moments(&mut left), moments(&mut right));
    Told { t: (left - right) / (left_error + right_error).sqrt(), means: [left, right] }
}

/// Pairs after which two other nodes take over: where the memory of one happens to lie is not where that of the next
/// does, and whoever is made first is not always of the same side.
const ROUND: usize = 5_000;

fn told(left: &Value, right: &Value, pairs: usize) -> Told {
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    for round in 0..pairs.div_ceil(ROUND) {
        let (left, right) = if round % 2 == 0 {
            let left = market(left);
            (left, market(right))
        } else {
            let right = market(right);
            (market(left), right)
        };
        let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
        time(&left, &right, ROUND.min(pairs - round * ROUND), &mut of_left, &mut of_right);
        let Told { t, means: [of_one, of_other] } = welch(of_left.clone(), of_right.clone());
        // One round that says more than all others is about its two nodes, or about the machine.
        println!("  round {round}: {:.0} ns, t {t:.2}", of_one - of_other);
        lefts.append(&mut of_left);
        rights.append(&mut of_right);
    }
    welch(lefts, rights)
}

fn time(left: &World, right: &World, pairs: usize, lefts: &mut Vec<f64>, rights: &mut Vec<f64>) {
    for number in 0..pairs + 50 {
        let message = question();
        // The order changes, and not in step with anything.
        let (first, second) = if trust::Digest::of(&message).as_bytes()[0] & 1 == 0 {
            let first = timed(left, &message);
            (first, timed(right, &message))
        } else {
            let second = timed(right, &message);
            (timed(left, &message), second)
        };
        // The first questions fill caches.
        if number >= 50 {
            lefts.push(first);
            rights.push(second);
        }
    }
}

#[test]
fn the_time_of_an_answer_does_not_tell_what_a_hidden_field_holds() {
    let pairs = pairs();
    for (what, left, right) in [
        // What the measurement itself adds: the two sides are the same.
        ("the same", json!({"floor": 17}), json!({"floor": 17})),
        ("another value", json!({"floor": 17}), json!({"floor": 93})),
        ("a value or none", json!({"floor": 17}), Value::Null),
    ] {
        // What a busy machine does to one run it does not do to three.
        let same = (0..3).any(|_| {
            let Told { t, means: [left, right] } = told(&left, &right, pairs);
            println!("{what}: {pairs} pairs, t {t:.2}, means {left:.0} ns and {right:.0} ns");
            t.abs() < T_MAX
        });
        assert!(same, "{what}");
    }
}

#[test]
fn times_that_differ_are_told_apart() {
    let sample = |mean: f64| (0..300).map(|n| mean + f64::from(n % 17)).collect::<Vec<f64>>();
    assert!(welch(sample(100.0), sample(100.0)).t.abs() < 0.1);
    assert!(welch(sample(100.0), sample(103.0)).t < -T_MAX);
}
