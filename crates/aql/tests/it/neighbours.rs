//! RFC 0020 §3.1 to §3.5, A.1: what the index, the node and the payments ask of the language beside its answers.

use crate::{candidate, intent, read};
use aql::key::{Ordered, decimal_key, is_first_of_key, moment_key, number_key};
use aql::{
    Amount, Bound, Candidate, Category, Code, Constraints, Decision, EvaluationError, Evaluator, Fuel, Instant, Intent,
    Level, Limits, Literal, Money, Outcome, OverBudget, Pattern, PaymentConstraints, Predicate, Refusal, Signals,
    Validity,
};
use json::{Document, Pointer, Value, json};
use std::cmp::Ordering;

fn leaves(constraints: &Value) -> Constraints {
    let document = Document::of(constraints).unwrap();
    Constraints::read(document.root(), Pointer::root(), &Limits::STANDARD).unwrap()
}

#[test]
fn a_list_knows_its_members_however_long_it_is() {
    let texts = |count: usize| (0..count).map(|number| json!(format!("t{number}"))).collect::<Vec<Value>>();
    let numbers = |count: usize| (0..count).map(|number| json!(number)).collect::<Vec<Value>>();
    let cases = [
        (Vec::new(), 0),
        (texts(1), 1),
        (texts(8), 8),
        (texts(9), 9),
        ([texts(9), numbers(3)].concat(), 12),
        ([texts(20), texts(20)].concat(), 20),
        (numbers(30), 30),
    ];
    for (members, expected) in cases {
        let read = leaves(&json!({"path": "/a", "operator": "in", "value": members}));
        let Predicate::In(list) = &read.leaves()[0].predicate else { panic!("`in` reads a list") };
        assert_eq!((list.len(), list.is_empty()), (expected, expected == 0), "{members:?}");
        let found: Vec<Literal> = list.literals().collect();
        assert_eq!(found.len(), expected);
        for (operator, is_listed) in [("in", true), ("not_in", false)] {
            let read = leaves(&json!({"path": "/a", "operator": operator, "value": members}));
            for (value, is_member) in members.iter().map(|member| (member.clone(), true)).chain([
                (json!("nowhere"), false),
                (json!(-1), false),
                (json!(null), false),
            ]) {
                let document = Document::of(&json!({"a": value})).unwrap();
                let holds = Evaluator::new(Fuel::OWN).evaluate(&read, document.root());
                assert_eq!(holds, Ok(is_member == is_listed), "{operator} {value} {members:?}");
            }
        }
    }
}

#[test]
fn a_list_is_charged_for_what_is_compared_one_by_one() {
    let texts = |count: usize| json!((0..count).map(|number| format!("t{number}")).collect::<Vec<_>>());
    let numbers = |count: usize| json!((0..count).collect::<Vec<_>>());
    let visits = |members: &Value, record: &Value| {
        let read = leaves(&json!({"path": "/a", "operator": "in", "value": members}));
        let mut evaluator = Evaluator::new(Fuel::OWN);
        evaluator.evaluate(&read, Document::of(record).unwrap().root()).unwrap();
        evaluator.meter.visits
    };
    let least = visits(&json!([]), &json!({"a": "nowhere"}));
    // A block of eight costs one visit; texts of a list with more than eight members are not walked at all.
    for (members, charge) in
        [(texts(7), 0), (texts(8), 1), (texts(9), 0), (texts(100), 0), (numbers(7), 0), (numbers(100), 12)]
    {
        assert_eq!(visits(&members, &json!({"a": "nowhere"})) - least, charge, "{members}");
    }
}

#[test]
fn two_predicates_are_equal_when_they_are_written_alike() {
    let values = [json!("a"), json!("b"), json!(1), json!(2), json!(null), json!([1]), json!({"a": 1})];
    let read = |value: &Value| leaves(&json!({"path": "/a", "operator": "eq", "value": value})).leaves()[0].clone();
    for (left, one) in values.iter().enumerate() {
        for (right, other) in values.iter().enumerate() {
            assert_eq!(read(one).predicate == read(other).predicate, left == right, "{one} and {other}");
        }
    }
    let pattern = |source: &str| Pattern::read(source, &Pointer::root(), &Limits::STANDARD).unwrap();
    assert_eq!(pattern("^a+$").source(), "^a+$");
    assert!(pattern("a") == pattern("a") && pattern("a") != pattern("[a]"));
    assert!(pattern("(?=a)").is_bounded() && pattern(r"(a)\1").is_bounded() && !pattern("(a)+").is_bounded());
}

#[test]
fn a_bound_stands_to_values_of_its_kind_only() {
    let kinds: [(Value, &[Value]); 3] = [
        (json!(5), &[json!(4.5), json!("5.0"), json!(6)]),
        (json!("5.00000000000000000001"), &[json!(5), json!("5.00000000000000000001"), json!("5.1")]),
        (json!("2026-01-02"), &[json!("2026-01-01"), json!("2026-01-02T00:00:00Z"), json!("2026-01-03")]),
    ];
    for (bound, values) in &kinds {
        let document = Document::of(bound).unwrap();
        let read = Bound::of(document.root()).unwrap();
        let order = |value: &Value| read.compare(Document::of(value).unwrap().root());
        let found: Vec<Option<Ordering>> = values.iter().map(order).collect();
        assert_eq!(found, [Some(Ordering::Less), Some(Ordering::Equal), Some(Ordering::Greater)], "{bound}");
        for stranger in [json!(null), json!(true), json!([5]), json!({"a": 5}), json!("five")] {
            assert_eq!(order(&stranger), None, "{bound} and {stranger}");
        }
    }
    let moment = Bound::of(Document::of(&json!("2026-01-02")).unwrap().root()).unwrap();
    assert_eq!(moment.compare(Document::of(&json!(5)).unwrap().root()), None);
}

#[test]
fn moments_that_share_a_key_are_told_from_the_first_of_them() {
    let moment = |text: &str| Instant::parse(text).unwrap();
    let cases = [
        ("2026-01-01T00:00:00Z", true),
        ("2026-01-01T00:00:00.000000031Z", false),
        ("2026-01-01T00:00:00.000000032Z", true),
        ("2026-01-01T00:00:00.000000033Z", false),
    ];
    for (text, is_first) in cases {
        assert_eq!(is_first_of_key(moment(text)), is_first, "{text}");
    }
    let key = |text: &str| moment_key(moment(text));
    assert_eq!(key("2026-01-01T00:00:00Z"), key("2026-01-01T00:00:00.000000031Z"));
    assert!(key("2026-01-01T00:00:00.000000031Z") < key("2026-01-01T00:00:00.000000032Z"));
    assert!(key("2026-01-01T00:00:00.999999999Z") < key("2026-01-01T00:00:01Z"));
    // One second is as many keys as a second of nanoseconds has, whichever second it is.
    assert_eq!(key("1970-01-01T00:00:01Z") - key("1970-01-01"), 1 << 25);
    assert_eq!(key("1970-01-01") - key("1969-12-31T23:59:59Z"), 1 << 25);
}

#[test]
fn texts_with_an_order_have_the_key_of_their_value() {
    for (text, number) in [("12.50", 12.5), ("-12.50", -12.5), ("0", 0.0), ("-0.0", 0.0), ("007", 7.0)] {
        assert_eq!(decimal_key(text), Some(number_key(number)), "{text}");
        assert_eq!(Ordered::of(text), Some(Ordered::Decimal(number_key(number))), "{text}");
    }
    for text in ["", "-", "1.", ".5", "--1", "1e3", "+1", "1.2.3", "1.x", "x.1"] {
        assert_eq!(decimal_key(text), None, "{text}");
        assert_eq!(Ordered::of(text), None, "{text}");
    }
    let moment = "2026-01-01T12:00:00Z";
    assert_eq!(Ordered::of(moment), Some(Ordered::Moment(moment_key(Instant::parse(moment).unwrap()))));
}

#[test]
fn what_a_record_costs_in_every_currency_holds_what_it_costs_in_one() {
    let price = |amount: &str, currency: &str| json!({"amount": amount, "currency": currency});
    let model =
        |kind: &str, amount: &str, currency: &str| json!({"type": kind, "amount": amount, "currency": currency});
    let models = json!({"models": [model("per_call", "3", "EUR"), model("per_call", "2.50", "EUR"),
        model("per_call", "1", "USD"), model("subscription", "0.10", "EUR")]});
    let free = json!({"models": [model("per_call", "3", "EUR"), {"type": "free"}]});
    // What the record says, and what it costs in euros: sold or taught, done or handed on, and found or followed.
    let cases: [(Value, [Option<&str>; 3]); 8] = [
        (json!({"price": price("4.20", "EUR"), "pricing": models}), [Some("4.2"), Some("2.5"), Some("2.5")]),
        (json!({"price": price("4.20", "USD"), "pricing": models}), [None, Some("2.5"), Some("2.5")]),
        (json!({"cost": price("5", "EUR"), "pricing": models}), [Some("2.5"), Some("5"), Some("2.5")]),
        (json!({"cost": {"type": "free"}, "pricing": models}), [Some("2.5"), Some("0"), Some("2.5")]),
        (json!({"cost": {"type": "metered"}, "pricing": models}), [Some("2.5"), None, Some("2.5")]),
        (json!({"price": {"type": "free"}, "pricing": free}), [None, Some("0"), Some("0")]),
        (json!({"pricing": {"models": []}}), [None; 3]),
        (json!({"pricing": "on request", "price": "4 EUR"}), [None; 3]),
    ];
    let kinds = [
        [Category::Commercial, Category::Knowledge],
        [Category::Action, Category::Delegation],
        [Category::Discovery, Category::Subscription],
    ];
    for (record, expected) in &cases {
        let document = Document::of(record).unwrap();
        for (categories, expected) in kinds.iter().zip(expected) {
            let expected = expected.and_then(Amount::parse);
            for category in categories {
                let costs = category.costs(document.root());
                assert_eq!(category.cost(document.root(), "EUR"), expected, "{} {record}", category.name());
                assert_eq!(costs.in_currency("EUR"), expected, "{} {record}", category.name());
                let elsewhere = (category.cost(document.root(), "CHF"), costs.in_currency("CHF"));
                let nothing = costs.free.then_some(Amount::ZERO);
                assert_eq!(elsewhere, (nothing, nothing), "{} {record}", category.name());
            }
        }
    }
}

#[test]
fn names_on_the_wire_lead_back_to_what_they_name() {
    for (name, category) in Category::ALL {
        assert_eq!(category.name(), name);
    }
    for (name, outcome) in Outcome::ALL {
        assert_eq!(outcome.name(), name);
    }
    for level in ["L0", "L3", "L9", "Q1", "L1-NC"] {
        assert_eq!(Level::parse(level).unwrap().to_string(), level);
    }
    assert_eq!(EvaluationError::RegexBudgetExceeded.code(), "regex_budget_exceeded");
    assert_eq!(EvaluationError::QueryBudgetExceeded.code(), "query_budget_exceeded");
}

#[test]
fn a_refusal_names_the_section_that_it_follows_from() {
    for (code, section) in [
        (Code::Json(json::Code::Syntax), "RFC 0020 §3.1"),
        (Code::MissingField, "RFC 0020 §3.1"),
        (Code::EmptyList, "RFC 0020 §3.2"),
        (Code::InvalidPointer, "RFC 0020 §3.2"),
        (Code::UnknownOperator, "RFC 0020 A.8"),
        (Code::InvalidRegex, "RFC 0020 A.1"),
        (Code::ListTooLong, "RFC 0020 A.7"),
        (Code::TooManyPointers, "RFC 0020 §3.3"),
        (Code::InvalidDecimal, "RFC 0020 §3.4"),
        (Code::IntentExpired, "RFC 0020 §3.1"),
        (Code::EventRateMissing, "RFC 0020 §3.6"),
        (Code::PaymentConstraintsMisplaced, "RFC 0020 B.1"),
        (Code::AlgNotAllowed, "RFC 0020 §3.1"),
    ] {
        assert_eq!(code.section(), section, "{}", code.name());
    }
}

/// The refusal of a window at a moment, as its code and, where it is about a limit, that limit and what came.
fn window(category: &str, from: &str, to: &str, now: &str) -> Option<(&'static str, Option<(u64, u64)>)> {
    let mut question = intent(json!({"path": "/a", "operator": "exists", "value": true}));
    question["category"] = json!(category);
    question["validity"] = json!({"from": from, "to": to});
    question["max_event_rate_per_minute"] = json!(1);
    let checked = read(&question).check_window(Instant::parse(now).unwrap(), &Limits::STANDARD);
    let told = |refusal: Refusal| {
        assert_eq!(refusal.at.as_str(), "/validity");
        (refusal.code.name(), refusal.limit.map(|limit| (limit.max, limit.got)))
    };
    checked.err().map(told)
}

#[test]
fn a_window_is_open_from_its_first_moment_to_its_last() {
    let (from, to) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    for category in ["discovery", "subscription"] {
        for (now, expected) in [
            (from, None),
            (to, None),
            ("2026-01-01T12:00:00Z", None),
            ("2026-01-02T00:00:00.000000001Z", Some(("intent_expired", None))),
            ("2025-12-31T23:55:00Z", None),
            ("2025-12-31T23:54:59.999999999Z", Some(("intent_not_yet_valid", None))),
        ] {
            assert_eq!(window(category, from, to, now), expected, "{category} {now}");
        }
    }
    let day = 24 * 3_600;
    for (category, to, expected) in [
        ("discovery", "2026-01-02T00:00:00.000000001Z", Some(("validity_too_long", Some((day, day))))),
        ("discovery", "2026-01-02T00:00:07Z", Some(("validity_too_long", Some((day, day + 7))))),
        ("subscription", "2026-01-02T00:00:07Z", None),
        ("subscription", "2026-04-03T00:00:00Z", None),
        ("subscription", "2026-04-03T00:00:01Z", Some(("validity_too_long", Some((92 * day, 92 * day + 1))))),
    ] {
        assert_eq!(window(category, from, to, from), expected, "{category} {to}");
    }
}

#[test]
fn a_window_is_read_by_itself() {
    let read = |value: Value| Validity::of(Document::of(&value).unwrap().root());
    let window = read(json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"})).unwrap();
    assert_eq!(window.from().to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(window.to().to_string(), "2026-01-01T01:00:00Z");
    for (value, at) in [
        (json!({"from": "2026-01-01T00:00:00Z"}), "/validity/to"),
        (json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}), "/validity/to"),
        (json!({"from": "2026-01-01", "to": "2026-01-02T00:00:00Z"}), "/validity/from"),
    ] {
        assert_eq!(read(value.clone()).unwrap_err().at.as_str(), at, "{value}");
    }
}

#[test]
fn payment_constraints_are_read_member_by_member() {
    let whole = json!({
        "allowed_instruments": ["sepa-ct", "card"], "disallowed_instruments": ["card"],
        "preferred_instrument": "sepa-ct", "max_single_payment": {"amount": "12.50", "currency": "EUR"},
        "require_bank_account_vc": true, "allowed_commerce_primitives": ["escrow"],
        "settlement_currency_preference": "EUR", "auction_parametric_session": true,
    });
    let read = |value: &Value| {
        PaymentConstraints::of(Document::of(value).unwrap().root(), Pointer::root().child("intent_payment_constraints"))
    };
    let found = read(&whole).unwrap();
    assert_eq!(found.allowed_instruments.as_deref(), Some(&["sepa-ct".to_owned(), "card".to_owned()][..]));
    assert_eq!(found.disallowed_instruments, ["card"]);
    assert_eq!(found.preferred_instrument.as_deref(), Some("sepa-ct"));
    assert_eq!(found.max_single_payment.map(|money| money.to_string()).as_deref(), Some("12.5 EUR"));
    assert_eq!(found.allowed_commerce_primitives.as_deref(), Some(&["escrow".to_owned()][..]));
    assert_eq!(found.settlement_currency_preference.as_deref(), Some("EUR"));
    assert!(found.require_bank_account_vc && found.auction_parametric_session);
    assert_eq!(read(&json!({})), Ok(PaymentConstraints::default()));
    for (name, value) in [
        ("allowed_instruments", json!("sepa-ct")),
        ("disallowed_instruments", json!([1])),
        ("preferred_instrument", json!(1)),
        ("max_single_payment", json!({"amount": "12.50"})),
        ("require_bank_account_vc", json!("yes")),
        ("settlement_currency_preference", json!("eur")),
        ("auction_parametric_session", json!(0)),
        ("something_else", json!(true)),
    ] {
        let refusal = read(&json!({name: value})).unwrap_err();
        let begins = format!("/intent_payment_constraints/{name}");
        assert!(refusal.at.as_str().starts_with(&begins), "{name}: {refusal:?}");
    }
}

#[test]
fn a_candidate_is_the_same_however_it_comes() {
    let record = json!({"id": "own", "sla": {"latency_p99_ms": 40}, "price": {"amount": "2", "currency": "EUR"}});
    let publication = Document::of(&json!({"record": record, "published_at": "2026-01-01T00:00:00Z"})).unwrap();
    let signals = Signals { performance_score: Some(0.5), ..Signals::default() };
    let bare = Candidate::new("own".into(), Document::of(&record).unwrap(), None, signals.clone());
    let published = Candidate::published("own".into(), publication, signals.clone());
    for found in [&bare, &published] {
        assert_eq!(found.record().to_value(), record);
        assert_eq!(found.cost(Category::Commercial, "EUR"), Amount::parse("2"));
        let quality = found.quality();
        assert_eq!((quality.performance_score, quality.latency_p99_ms), (Some(0.5), Some(40.0)));
    }
    // What is known better than the record says it counts.
    let known = Signals { latency_p99_ms: Some(7.0), ..signals };
    let bare = Candidate::new("own".into(), Document::of(&record).unwrap(), None, known);
    assert_eq!(bare.quality().latency_p99_ms, Some(7.0));
    assert_eq!(candidate("named", record).id, "named");
}

#[test]
fn what_a_record_calls_itself_is_asked_in_order() {
    let cases = [
        (json!({"tool": {"did": "d", "id": "t"}, "offer_id": "o", "id": "i", "action_id": "a"}), Some("d")),
        (json!({"tool": {"id": "t"}, "offer_id": "o", "id": "i", "action_id": "a"}), Some("o")),
        (json!({"tool": {"id": "t"}, "id": "i", "action_id": "a"}), Some("i")),
        (json!({"tool": {"id": "t"}, "action_id": "a"}), Some("t")),
        (json!({"action_id": "a"}), Some("a")),
        (json!({"id": 7, "action_id": "a"}), Some("a")),
        (json!({"name": "n"}), None),
    ];
    for (record, expected) in cases {
        let document = Document::of(&record).unwrap();
        assert_eq!(aql::own_id(document.root()).as_deref(), expected, "{record}");
    }
    let line = |value: Value| Candidate::read(Document::of(&value).unwrap(), 12).map(|read| read.id);
    assert_eq!(line(json!({"name": "n"})).as_deref(), Ok("line-12"));
    assert_eq!(line(json!({"record": {"id": "i"}})).as_deref(), Ok("i"));
    assert_eq!(line(json!({"record": {"id": "i"}, "id": "given"})).as_deref(), Ok("given"));
    assert!(line(json!([1])).is_err() && line(json!({"record": {}, "id": 7})).is_err());
}

#[test]
fn only_ranks_and_policies_that_there_are_leave_room() {
    let mut question = intent(json!({"path": "/a", "operator": "exists", "value": true}));
    for (policy, expected) in [("single_best", 1), ("ranked_set", usize::MAX), ("full_set", usize::MAX)] {
        question["resolution_policy"] = json!(policy);
        assert_eq!(read(&question).room(), expected, "{policy}");
    }
    question["budget"] =
        json!({"amount": "1", "currency": "EUR", "allocation": "ranked_top_k", "top_k": 2, "distribution": [0.5, 0.5]});
    assert_eq!(read(&question).room(), 2);
    question["resolution_policy"] = json!("single_best");
    assert_eq!(read(&question).room(), 1);
    let read: Result<(Intent, Document), Refusal> =
        Intent::parse(question.to_string().replace("single_best", "best").as_bytes(), &Limits::STANDARD);
    assert_eq!(read.unwrap_err().at.as_str(), "/resolution_policy");
}

#[test]
fn a_decision_about_a_candidate_without_a_place_names_none() {
    let question = read(&intent(json!({"path": "/name", "operator": "exists", "value": true})));
    let market = [candidate("one", json!({"name": "one"}))];
    let resolution = aql::resolve(&question, &market, OverBudget::Flag, Fuel::STANDARD).unwrap();
    let found = &resolution.matches[0];
    for rank in [0, 1, 2] {
        let decision = Decision {
            decision_id: "d",
            evaluated_at: "2026-01-01T00:00:00Z",
            intent: &question,
            candidate: found.candidate,
            judgement: &found.judgement,
            ranking: Some((&found.ranking, rank)),
        };
        let mut writer = json::Writer::default();
        decision.write(&mut writer).unwrap();
        let written = Document::parse(&writer.finish(), &json::Limits::OURS).unwrap().root().to_value();
        assert_eq!(written["ranking_function"].get("rank"), (rank > 0).then(|| json!(rank)).as_ref());
    }
}

#[test]
fn a_member_that_there_is_not_is_named_beside_those_there_are() {
    let mut question = intent(json!({"path": "/a", "operator": "exists", "value": true}));
    question["projection"]["inclde"] = json!([]);
    let refusal = Intent::parse(question.to_string().as_bytes(), &Limits::STANDARD).unwrap_err();
    assert_eq!((refusal.code, refusal.at.as_str()), (Code::UnknownField, "/projection/inclde"));
    assert!(refusal.detail.contains("`inclde`") && refusal.detail.contains("include, exclude"), "{refusal}");
}

#[test]
fn who_is_refused_without_his_record_is_refused_as_with_it() {
    let mut question = intent(json!({"path": "/name", "operator": "exists", "value": true}));
    question["quality_floor"] = json!({"performance_score": 0.5});
    question["budget"] = json!({"amount": "10", "currency": "EUR", "allocation": "single_winner"});
    let question = read(&question);
    let signals = |score: Option<f64>| Signals { performance_score: score, ..Signals::default() };
    for (score, price, outcome, explanation) in [
        (None, Some("1"), Some(Outcome::BelowQualityFloor), "quality: performance_score is not known"),
        (Some(0.4), Some("1"), Some(Outcome::BelowQualityFloor), "quality: performance_score 0.4 is below 0.5"),
        (
            Some(0.4),
            Some("11"),
            Some(Outcome::BelowQualityFloor),
            "quality: performance_score 0.4 is below 0.5 | over_budget: costs 11 of 10 EUR",
        ),
        (Some(0.5), None, Some(Outcome::Reject), "cost_undefined: no price in EUR is declared"),
        (Some(0.5), Some("1"), None, ""),
        (Some(0.5), Some("11"), None, ""),
    ] {
        let cost = price.and_then(Amount::parse);
        let found = aql::refuse(&question, &signals(score), cost);
        assert_eq!(found.as_ref().map(|judgement| judgement.outcome), outcome, "{score:?} {price:?}");
        let record = Document::of(&json!({"name": "one"})).unwrap();
        let costs = cost.map(|amount| Money { amount, currency: "EUR".to_owned() }).into_iter().collect();
        let whole = Candidate::new("one".into(), record, Some(costs), signals(score));
        let mut evaluator = Evaluator::new(Fuel::STANDARD);
        let mut judged = aql::judge(&question, &whole, OverBudget::Flag, &mut evaluator).unwrap();
        match found {
            Some(found) => assert_eq!((found.explanation.as_str(), &found), (explanation, &judged)),
            None => {
                assert!(judged.payload.is_some() && judged.is_match(OverBudget::Flag));
                judged.block("a policy forbids it".into());
                assert_eq!((judged.outcome, judged.over_budget), (Outcome::Reject, false));
                assert_eq!((judged.explanation.as_str(), &judged.payload), ("a policy forbids it", &None));
            }
        }
    }
}

#[test]
fn a_rejection_names_the_leaves_that_made_the_tree_fail() {
    let leaf = |path: &str| json!({"path": path, "operator": "exists", "value": true});
    let (here, gone) = (leaf("/name"), leaf("/gone"));
    let market = [candidate("one", json!({"name": "one"}))];
    let cases: [(Value, &[usize], &str); 7] = [
        (json!([here, gone]), &[1], "constraints: /gone exists"),
        (json!([gone, here, gone]), &[0, 2], "constraints: /gone exists, /gone exists"),
        (json!({"any_of": [gone, leaf("/lost")]}), &[0, 1], "constraints: /gone exists, /lost exists"),
        (json!([{"any_of": [here, gone]}, {"not": here}]), &[2], "constraints: not /name exists"),
        (json!({"not": [gone, here]}), &[1], "constraints: not /name exists"),
        (json!({"not": {"all_of": [here, {"not": gone}]}}), &[0, 1], "constraints: not /name exists, /gone exists"),
        (json!({"not": {"not": gone}}), &[0], "constraints: /gone exists"),
    ];
    for (constraints, failing, explanation) in cases {
        let question = read(&intent(constraints.clone()));
        let mut evaluator = Evaluator::new(Fuel::STANDARD);
        let judged = aql::judge(&question, &market[0], OverBudget::Flag, &mut evaluator).unwrap();
        assert_eq!((judged.failing.as_slice(), judged.explanation.as_str()), (failing, explanation), "{constraints}");
        assert_eq!(question.constraints.failing(&judged.leaves), failing, "{constraints}");
    }
}
