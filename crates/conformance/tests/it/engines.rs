//! RFC 0020 A.6: the two engines on random questions, a little of what the differential run does at length.

use conformance::chance::Chance;
use conformance::differential::{compare_evaluations, compare_projection, compare_resolution, round};
use conformance::patterns::{Compared, Peer};
use conformance::{Answer, Case, Fast, Implementation, Twin, generate};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn two_thousand_rounds_without_a_difference() {
    let mut compared = 0;
    for seed in 0..2_000 {
        match round(&mut Chance::seeded(seed)) {
            Ok(count) => compared += count,
            Err(difference) => panic!("seed {seed}: {difference:?}"),
        }
    }
    assert!(compared >= 16_000, "{compared}");
}

#[test]
fn a_difference_is_seen() {
    // Only the fast engine counts its visits, so a question that is too dear parts the two.
    let mut run = vec![0; 500];
    run.push(1);
    let tree = json!({"path": "/v", "operator": "contains", "value": run});
    let difference = compare_evaluations(&tree, &[json!({"v": vec![0; 5_000]})]).unwrap_err();
    assert_eq!(difference.fast, json!({"refused": {"code": "query_budget_exceeded"}}));
    assert_eq!(difference.twin, json!({"holds": false, "leaves": [false]}));
}

#[test]
fn neighbours_are_compared_in_every_pair() {
    let neighbours = [
        json!(null),
        json!(false),
        json!(0),
        json!(-0.0),
        json!(1),
        json!("1"),
        json!("1.0"),
        json!("01"),
        json!(0.1),
        json!("0.1"),
        json!("0.10000000000000000000001"),
        json!(1e-7),
        json!("0.0000001"),
        json!("1e-7"),
        json!(""),
        json!("2026-01-01"),
        json!("2026-01-01T00:00:00Z"),
        json!("2026-01-01T01:00:00+01:00"),
        json!("2025-12-31T23:59:60Z"),
        json!("2026-01-01T00:00:00.1Z"),
        json!([]),
        json!([1]),
        json!([[1]]),
        json!({}),
        json!({"a": 1}),
        json!(["1", 1]),
    ];
    for operand in &neighbours {
        for operator in
            ["eq", "ne", "lt", "lte", "gt", "gte", "contains", "before", "after", "in", "not_in", "within", "outside"]
        {
            let operand = match operator {
                "in" | "not_in" => json!([operand]),
                "within" | "outside" => json!([operand, "2026-06-01"]),
                _ => operand.clone(),
            };
            let tree = json!({"path": "/v", "operator": operator, "value": operand});
            let records: Vec<Value> = neighbours.iter().map(|value| json!({"v": value})).collect();
            let difference = compare_evaluations(&tree, &records).err();
            assert!(difference.is_none(), "{difference:?}");
        }
    }
}

#[test]
fn odd_candidates_are_judged_alike() {
    let intent = |category: &str| {
        json!({
            "intent_id": "urn:oap:intent:odd", "issuer_did": "did:key:z6Mk", "category": category,
            "constraints": {"path": "", "operator": "exists", "value": true},
            "projection": {"include": ["/"]},
            "budget": {"amount": "5.00", "currency": "EUR", "allocation": "proportional_quality"},
            "quality_floor": {"latency_p99_ms": 500},
            "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T12:00:00Z"},
        })
    };
    let (cheap, dear) = (json!({"amount": "1", "currency": "EUR"}), json!({"amount": "9", "currency": "EUR"}));
    let fast = json!({"sla": {"latency_p99_ms": 100}});
    let priced = |name: &str, price: &Value| {
        let mut record = fast.clone();
        record[name] = price.clone();
        record
    };
    let models = |models: Value| priced("pricing", &json!({"models": models}));
    let candidates = [
        json!({"record": fast, "cost": [dear, {"amount": "2", "currency": "USD"}]}),
        json!({"record": fast, "cost": [{"amount": "2", "currency": "USD"}, cheap]}),
        json!({"record": fast, "cost": [dear, cheap]}),
        json!({"record": fast, "cost": [cheap, dear, {"amount": "0.5", "currency": "EUR", "per": "call"}]}),
        json!({"record": fast, "cost": {"amount": "1", "currency": "EUR", "per": "call"}}),
        json!({"record": fast, "cost": []}),
        json!({"record": fast, "cost": "1 EUR"}),
        json!({"record": fast, "cost": {"amount": "1.", "currency": "EUR"}}),
        json!({"record": fast, "cost": cheap, "other": 1}),
        json!({"record": [1], "cost": cheap}),
        json!({"record": {"sla": {"latency_p99_ms": -1}}, "cost": cheap}),
        json!({"record": {"sla": {"latency_p99_ms": "100"}}, "cost": cheap}),
        json!({"record": {"sla": {"latency_p99_ms": 900}, "cost_disclosure": {"latency_p99_ms": 100.5}}, "cost": cheap}),
        json!({"record": fast, "cost": cheap, "quality": {"latency_p99_ms": 501}}),
        priced("price", &cheap),
        priced("price", &dear),
        priced("price", &json!({"type": "free"})),
        priced("cost", &json!({"type": "free"})),
        priced("cost", &cheap),
        models(json!([{"type": "free"}])),
        models(
            json!([{"type": "per_call", "amount": "7", "currency": "EUR"}, {"type": "per_call", "amount": "3", "currency": "EUR"}]),
        ),
        models(json!([{"type": "monthly", "amount": "1", "currency": "EUR"}])),
        models(json!({"type": "free"})),
        json!({"id": 7, "tool": {"did": 7, "id": "t"}, "sla": {"latency_p99_ms": 1}}),
    ];
    for category in ["discovery", "commercial", "knowledge", "action", "delegation"] {
        for reject in [false, true] {
            let difference = compare_resolution(&intent(category), &candidates, reject).err();
            assert!(difference.is_none(), "{difference:?}");
        }
    }
}

/// What an engine makes of bytes under the limits of a stored document.
fn parsed(engine: &dyn Implementation, bytes: &[u8]) -> Value {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let case = Case {
        id: "bytes".to_owned(),
        requirement: String::new(),
        why: String::new(),
        kind: "parse".to_owned(),
        expect: json!({}),
        inputs: [("hex".to_owned(), json!(hex))].into_iter().collect(),
    };
    match engine.answer(&case) {
        Answer::Result(answer) => answer,
        Answer::NoOpinion => panic!("both engines read JSON"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_readers_say_the_same_of_damaged_documents(
        seed in any::<u64>(),
        flaws in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3u8), 0..4),
    ) {
        let letters = b"{}[]\",:\\0123456789.eE+-truefalsn/u \t\n\xff\xc3\x00dD8";
        let mut bytes = generate::value(&mut Chance::seeded(seed), 4).to_string().into_bytes();
        for (place, letter, kind) in flaws {
            let (place, letter) = (place.index(bytes.len().max(1)), letters[letter.index(letters.len())]);
            match kind {
                0 if place < bytes.len() => bytes[place] = letter,
                1 => bytes.insert(place.min(bytes.len()), letter),
                _ if place < bytes.len() => drop(bytes.remove(place)),
                _ => {}
            }
        }
        prop_assert_eq!(parsed(&Fast, &bytes), parsed(&Twin, &bytes), "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn both_projections_say_the_same(seed in any::<u64>()) {
        let mut chance = Chance::seeded(seed);
        let record = generate::record(&mut chance);
        let difference = compare_projection(&generate::projection(&mut chance, &record), &record).err();
        prop_assert!(difference.is_none(), "{:?}", difference);
    }
}

/// `cargo xtask diff patterns` asks more.
#[test]
fn patterns_mean_what_they_mean_to_the_regular_expressions_of_others() {
    let (mut peer, mut sum) = (Peer::start().unwrap(), Compared::default());
    for seed in 1..=25 {
        sum.add(peer.compare(&mut Chance::seeded(seed)).unwrap());
    }
    assert!(sum.pairs > 50_000 && sum.invalid > 100, "{sum:?}");
    assert!(sum.unsupported * 100 < sum.pairs && sum.out_of_steps * 1_000 < sum.pairs, "{sum:?}");
}
