//! RFC 0020 A.3 R5: sketches, owners and leaders to the bit, since a node keeps sketches and meets them again
//! (decisions/0255).

use aql::{LEADERS_MAX, Leaders, NEAR_BITS, house, owner, sketch};
use json::{Document, Value, json};

#[track_caller]
fn drawn(record: &Value, expected: u64) {
    let drawn = sketch(Document::of(record).unwrap().root());
    assert_eq!(drawn, expected, "{drawn:016x} {record}");
}

/// The numbers come from another program, written after the decision.
#[test]
fn sketches_are_the_same_in_every_build() {
    drawn(&json!({}), 0);
    drawn(&json!(null), 0xcea4_a67a_8195_d95a);
    drawn(&json!(true), 0xd9ec_ad09_2ad4_9f46);
    drawn(&json!(false), 0x85f9_403d_30ba_059d);
    drawn(&json!(1.5), 0x8fca_5cfa_3fe5_c672);
    drawn(&json!(""), 0x8e08_39c5_6205_0fde);
    drawn(&json!("Tide tables"), 0x1f80_46bc_aae4_7aca);
    drawn(&json!("0.10"), 0xc87b_f507_53ff_ee12);
    drawn(&json!("Été café 9!"), 0xfef4_7534_7062_433c);
    drawn(&json!(["a", "b"]), 0x8284_0004_90a3_f903);
    drawn(&json!(["a", "b", "c"]), 0xc28c_8014_b0ef_f953);
    drawn(&json!({"ab": ""}), 0xfaf3_220f_d023_ad5d);
    drawn(
        &json!({"name": "Boat 7", "seats": 8, "covered": true, "crew": null,
            "price": {"amount": "3.00", "currency": "EUR"}, "days": ["mon", "wed"]}),
        0xd283_2c76_00a1_99d2,
    );
}

#[test]
fn what_means_the_same_votes_the_same() {
    for nought in [json!(0), json!(0.0), json!(-0.0)] {
        drawn(&nought, 0x0877_fb9d_2aaf_5442);
    }
    for tides in
        [json!("Tide tables"), json!("tide-TABLES 7"), json!(["Tide tables"]), json!(["tidetables", "Tide tables!"])]
    {
        drawn(&tides, 0x1f80_46bc_aae4_7aca);
    }
    for member in [json!({"a": "b"}), json!({"a": ["b"]}), json!({"a": ["b", [["B"]]], "id": "c"})] {
        drawn(&member, 0x2e24_c433_39f0_1453);
    }
    let silent = json!({"id": "x", "name": "Boat", "did": "d", "tool_did": 1, "offer_id": 2, "action_id": 3,
        "manifest_id": 4, "sla": {"a": 1}, "cost_disclosure": 5});
    drawn(&silent, 0x7a67_bd70_e3a1_a7ce);
    drawn(&json!({"name": "Boat"}), 0x7a67_bd70_e3a1_a7ce);
}

#[test]
fn a_long_text_votes_with_its_beginning() {
    drawn(&json!("a".repeat(256)), 0x02c1_752c_5063_d5db);
    drawn(&json!("a".repeat(256) + "b"), 0x02c1_752c_5063_d5db);
    drawn(&json!("7".repeat(256)), 0x0c89_472f_c387_5ec6);
    drawn(&json!("7".repeat(256) + "8"), 0x0c89_472f_c387_5ec6);
    let (shorter, whole) = (json!("a".repeat(255)), json!("a".repeat(256)));
    let of = |text: &Value| sketch(Document::of(text).unwrap().root());
    assert_ne!(of(&shorter), of(&whole));
}

#[test]
fn an_owner_is_the_publisher_then_whom_the_record_names_then_the_candidate() {
    let mut record = json!({
        "did": "did:web:e.example", "publisher_did": "did:web:d.example", "provider_did": "did:web:c.example:shop",
        "tool_did": "did:wba:B.example", "tool": {"did": "did:key:z6Mk#z6Mk"},
    });
    let of = |publisher, record: &Value| owner(publisher, Document::of(record).unwrap().root(), "urn:x:candidate");
    assert_eq!(of(Some("did:web:p.example%3A1:x"), &record), "p.example");
    for (named, expected) in [
        ("tool", "did:key:z6Mk"),
        ("tool_did", "b.example"),
        ("provider_did", "c.example"),
        ("publisher_did", "d.example"),
        ("did", "e.example"),
    ] {
        assert_eq!(of(None, &record), expected);
        // What is no text names nobody.
        record[named] = json!(7);
    }
    assert_eq!(of(None, &record), "urn:x:candidate");
}

#[test]
fn a_house_is_told_by_its_host() {
    assert_eq!(house("did:web:a.example"), house("did:wba:A.Example%3a99:b"));
    assert_ne!(house("did:web:a.example"), house("did:web:b.a.example"));
    assert_eq!(house("did:key:z6Mk"), house("did:key:z6Mk#other"));
    assert_ne!(house("did:key:z6Mk"), house("did:key:Z6Mk"));
    assert_eq!(house(""), "");
}

#[test]
fn leaders_are_as_many_as_they_may_be_and_the_first_is_named() {
    let (mut leaders, close) = (Leaders::default(), (1 << NEAR_BITS) - 1);
    (1..LEADERS_MAX).for_each(|number| leaders.add("a".to_owned(), u64::MAX, &number.to_string()));
    leaders.add("a".to_owned(), 0, "last");
    assert_eq!((leaders.repeated("a", u64::MAX), leaders.repeated("a", 0)), (Some("1"), Some("last")));
    // One more has no place there, and one with somebody else.
    leaders.add("a".to_owned(), u64::MAX >> 32, "beyond");
    leaders.add("b".to_owned(), u64::MAX >> 32, "b");
    assert_eq!(leaders.repeated("a", u64::MAX >> 32), None);
    assert_eq!((leaders.repeated("b", u64::MAX >> 32), leaders.repeated("c", 0)), (Some("b"), None));
    // Near enough is near in either direction, and not one bit more.
    assert_eq!((leaders.repeated("a", close), leaders.repeated("a", close << 1 | 1)), (Some("last"), None));
    assert_eq!((leaders.repeated("a", !close), leaders.repeated("a", !(close << 1 | 1))), (Some("1"), None));
}

#[test]
fn only_the_last_leader_is_taken_back_and_only_by_its_name() {
    let mut leaders = Leaders::default();
    leaders.add("a".to_owned(), 0, "first");
    leaders.add("a".to_owned(), u64::MAX, "second");
    leaders.take_back("a", "first");
    leaders.take_back("b", "second");
    assert_eq!((leaders.repeated("a", 0), leaders.repeated("a", u64::MAX)), (Some("first"), Some("second")));
    leaders.take_back("a", "second");
    assert_eq!((leaders.repeated("a", 0), leaders.repeated("a", u64::MAX)), (Some("first"), None));
    leaders.take_back("a", "first");
    assert_eq!(leaders.repeated("a", 0), None);
}
