//! RFC 0020 §5: what a restriction takes away, and what it may not.

use super::*;
use json::Value;

const BUYER: &str = "did:web:buyer.example";
const OTHER: &str = "did:web:other.example";

fn publication(record: &Value, restricted: &Value) -> Document {
    let publication = json!({
        "publication_id": "urn:rialto:publication:1", "publisher_did": "did:web:p.example", "record": record,
        "restricted": restricted, "signature": {},
    });
    Document::of(&publication).unwrap()
}

fn viewer(did: &str) -> Viewer {
    if did.is_empty() { Viewer::Public } else { Viewer::Named(Did::parse(did).unwrap()) }
}

#[track_caller]
fn check(restricted: &Value, seen_by: &str, expected: &Value) {
    let record = json!({
        "id": "urn:x", "price": {"amount": "1", "currency": "EUR", "floor": "0.5"},
        "models": [{"n": 1, "margin": 2}, {"n": 3}, {"n": 4, "margin": 5}], "a/b": {"~": 1},
    });
    let view = View::of(publication(&record, restricted), &viewer(seen_by)).unwrap();
    let mut expected_record = record.clone();
    expected_record.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
    expected_record.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(
        view.record().to_value(),
        read_again(&json::canonical_value(&expected_record)).unwrap().root().to_value()
    );
}

fn restriction(path: &str, audience: &[&str]) -> Value {
    json!({"path": path, "audience": audience})
}

#[test]
fn a_view_is_the_record_without_what_is_restricted() {
    let price = json!([restriction("/price", &[BUYER])]);
    check(&price, "", &json!({"price": null}));
    check(&price, OTHER, &json!({"price": null}));
    check(&price, BUYER, &json!({}));
    check(&json!([restriction("/price/floor", &[BUYER])]), "", &json!({"price": {"amount": "1", "currency": "EUR"}}));
    check(&json!([restriction("/a~1b/~0", &[BUYER])]), "", &json!({"a/b": {}}));
    check(&json!([restriction("/nothing/here", &[BUYER])]), "", &json!({}));
}

#[test]
fn an_element_that_is_hidden_is_not_there_and_the_next_takes_its_place() {
    let second = json!([restriction("/models/1", &[BUYER])]);
    check(&second, "", &json!({"models": [{"n": 1, "margin": 2}, {"n": 4, "margin": 5}]}));
    let all = json!([restriction("/models/*", &[BUYER])]);
    check(&all, "", &json!({"models": []}));
    let margins = json!([restriction("/models/*/margin", &[BUYER])]);
    check(&margins, "", &json!({"models": [{"n": 1}, {"n": 3}, {"n": 4}]}));
    check(&json!([restriction("/**/margin", &[BUYER])]), "", &json!({"models": [{"n": 1}, {"n": 3}, {"n": 4}]}));
}

#[test]
fn a_value_under_two_restrictions_is_for_those_whom_both_name() {
    let two = json!([restriction("/price", &[BUYER, OTHER]), restriction("/price/floor", &[OTHER])]);
    check(&two, "", &json!({"price": null}));
    check(&two, BUYER, &json!({"price": {"amount": "1", "currency": "EUR"}}));
    check(&two, OTHER, &json!({}));
    let inner = json!([restriction("/price", &[OTHER]), restriction("/price/floor", &[BUYER])]);
    check(&inner, BUYER, &json!({"price": null}));
}

#[track_caller]
fn check_refused(restricted: Value, code: &str, at: &str) {
    let record = json!({"id": "urn:x", "tool": {"did": "did:web:t.example", "name": "t"}, "price": 1});
    let publication = publication(&record, &restricted);
    let outcome = Restrictions::read(publication.root())
        .and_then(|restrictions| Ok(restrictions.check(record_of(&publication))?));
    let Err(Error::Refusal(refusal)) = outcome else { panic!("{restricted} was taken") };
    assert_eq!((refusal.code, refusal.at.as_str()), (code, at), "{restricted}");
}

#[test]
fn a_restriction_is_read_strictly() {
    check_refused(json!({}), "wrong_type", "/restricted");
    check_refused(json!([]), "empty_list", "/restricted");
    check_refused(json!(["/price"]), "missing_field", "/restricted/0/path");
    check_refused(json!([{"path": "/price"}]), "missing_field", "/restricted/0/audience");
    check_refused(json!([{"path": "/price", "audience": [BUYER], "until": 1}]), "unknown_field", "/restricted/0/until");
    check_refused(json!([{"path": 1, "audience": [BUYER]}]), "wrong_type", "/restricted/0/path");
    check_refused(json!([restriction("price", &[BUYER])]), "invalid_pointer", "/restricted/0/path");
    check_refused(json!([restriction("/price", &[])]), "empty_list", "/restricted/0/audience");
    check_refused(json!([restriction("/price", &[BUYER, "buyer"])]), "invalid_did", "/restricted/0/audience/1");
    check_refused(json!([{"path": "/price", "audience": [1]}]), "wrong_type", "/restricted/0/audience/0");
    let many: Vec<Value> = (0..=RESTRICTIONS_MAX).map(|_| restriction("/price", &[BUYER])).collect();
    check_refused(json!(many), "list_too_long", "/restricted");
    let crowd = vec![BUYER; AUDIENCE_MAX + 1];
    check_refused(json!([restriction("/price", &crowd)]), "list_too_long", "/restricted/0/audience");
}

#[test]
fn a_record_keeps_its_name() {
    for path in ["", "/", "/**", "/tool", "/tool/did", "/*/did", "/**/did"] {
        check_refused(
            json!([restriction("/price", &[BUYER]), restriction(path, &[BUYER])]),
            "record_name_restricted",
            "/restricted/1/path",
        );
    }
    // Another name that it has does not matter.
    let publication =
        publication(&json!({"id": "urn:x", "tool": {"did": "did:web:t"}}), &json!([restriction("/id", &[BUYER])]));
    let restrictions = Restrictions::read(publication.root()).unwrap();
    assert!(restrictions.check(record_of(&publication)).is_ok());
}

#[test]
fn restrictions_look_at_no_more_than_they_may() {
    let wide: Vec<Value> = (0..4_000).map(|number| json!({"n": number})).collect();
    let record = json!({"id": "urn:x", "wide": wide});
    let many: Vec<Value> = (0..16).map(|number| restriction(&format!("/**/n{number}"), &[BUYER])).collect();
    let publication = publication(&record, &json!(many));
    let refusal = Restrictions::read(publication.root()).unwrap().check(record_of(&publication)).unwrap_err();
    let limit = refusal.limit.unwrap();
    assert_eq!((refusal.code, &*limit.name, limit.max), ("path_too_complex", "restriction_visits", 65_536));
    assert!(limit.got > limit.max);
}

#[test]
fn a_manifest_weighs_what_its_actions_repeat() {
    let weigh = |actions: usize| {
        let actions: Vec<Value> = (0..actions).map(|number| json!({"id": number.to_string()})).collect();
        let record = json!({"tool": {"did": "did:web:t", "categories": ["x".repeat(1_000)]}, "actions": actions});
        weight(&publication(&record, &json!([restriction("/price", &[BUYER])])))
    };
    assert!(weigh(10) > 10_000 && weigh(1) < 2_500);
}
