//! What assertions see, what they cannot, and that none of them does harm.

use super::*;
use std::time::{Duration, Instant};

fn object() -> Value {
    json!({
        "started_at": "2026-11-16T12:00:00Z",
        "user": {"id": "u-1", "email": "ada@example.org"},
        "recent": {"_name": "crm", "crm": {"inputs": {"id": 7, "rate": 1.0, "share": 0.5}}, "a-b": {"inputs": {}}},
        "history": {
            "_list": ["crm", "a-b"], "_total": 2,
            "crm": [{"inputs": {"id": 7}, "outputs": {"name": "Ada", "tags": ["x", "y"]}}],
            "a-b": [{"inputs": {}}],
        },
    })
}

fn compile(source: &str) -> Result<Assertion, Invalid> {
    Assertion::compile(source, &Scope::of(&["crm".to_owned(), "a-b".to_owned()]))
}

#[track_caller]
fn check(source: &str, result: &str) {
    let held = compile(source).unwrap().holds(&object());
    assert_eq!(held.as_ref().map_or_else(|failing| failing.name(), |()| "true"), result, "{source}: {held:?}");
}

#[test]
fn all_ways_to_name_a_tool_are_one() {
    for source in [
        "recent.a-b.inputs == {}",
        "recent[\"a-b\"].inputs == {}",
        "recent.`a-b`.inputs == {}",
        "has(recent.a-b.inputs) && !has(recent.a-b.outputs)",
        "history.crm.[0].inputs.id == 7 && history.crm[0].outputs.name == 'Ada'",
        "history.a-b.size() == 1 && size(history.a-b) - 1 == 0",
        "history._total == size(history._list) && history._total + 1 < 10",
        "recent._name == 'crm' && user.email.endsWith('@example.org')",
        "started_at > timestamp('2026-01-01T00:00:00Z') && started_at.getFullYear() == 2026",
        "history.crm.all(call, call.inputs.id > 0) && history.crm.exists(call, 'x' in call.outputs.tags)",
        "recent.crm.inputs.rate == 1 && recent.crm.inputs.rate + 1 == 2 && recent.crm.inputs.share < 1.0",
        "recent.crm.?outputs.orValue('none') == 'none'",
        "user.id.matches('^u-[0-9]+$')",
    ] {
        check(source, "true");
    }
}

#[test]
fn on_a_thread_with_room_an_expression_is_judged_as_anywhere_else() {
    let judged = || {
        has_room();
        let deep = format!("{}1{} == 1", "(".repeat(100), ")".repeat(100));
        let nested = format!("{}true", "!".repeat(22));
        check(&nested, "true");
        assert_eq!(compile(&deep).map(|read| read.holds(&object())).is_ok(), {
            let elsewhere = std::thread::spawn(move || compile(&deep).map(|read| read.holds(&object())).is_ok());
            elsewhere.join().unwrap()
        });
        check("history.crm.all(call, call.inputs.id > 0) && user.id.matches('^u-[0-9]+$')", "true");
        check("recent.crm.inputs.nothing == 7", "error");
        // What the engine gives up on is a failure, and the thread goes on.
        assert!(apart(|| panic!("the engine gave up")).is_none_or(|()| false));
        check("recent.crm.inputs.id == 7", "true");
    };
    std::thread::Builder::new().stack_size(ROOMY_STACK_BYTES).spawn(judged).unwrap().join().unwrap();
}

#[test]
fn only_true_is_true() {
    for (source, result) in [
        ("false", "false"),
        ("1", "not_boolean"),
        ("'true'", "not_boolean"),
        ("null", "not_boolean"),
        ("[true]", "not_boolean"),
        ("user", "not_boolean"),
        ("now > started_at", "error"),
        ("inputs.id == 7", "error"),
        ("env('HOME') == ''", "error"),
        ("recent.crm.outputs.name == 'Ada'", "error"),
        ("history.crm[1].inputs.id == 7", "error"),
        ("1 / 0 == 1", "error"),
        ("history._total + 1.5 > 1.0", "error"),
        ("9223372036854775807 + 1 > 0", "error"),
        ("user.id.matches('(')", "error"),
        ("recent.crm.inputs.id.nothing()", "error"),
        ("recent.crm.inputs.id && true", "error"),
        ("user.missing || true", "true"),
        ("user.missing && false", "false"),
    ] {
        check(source, result);
    }
}

#[test]
fn what_is_no_expression_is_refused_when_it_is_read() {
    for source in
        ["", "1 +", "a b", "has(recent[\"a-b\"])", "'open", "recent.crm.", "x = 1", "@tick(1)", "`a`", "T{a: 1}"]
    {
        assert_eq!(compile(source).unwrap_err().code, Code::AssertionSyntax, "{source}");
    }
}

#[test]
fn a_guardrail_sees_the_output_of_its_tool_and_nothing_else() {
    let holds = |source: &str, output: &Value| {
        Assertion::compile(source, &Scope::output()).unwrap().holds_for_output(output).is_ok()
    };
    let output = json!({"flagged": false, "score": 0.1, "odd-name": 1});
    assert!(holds("!flagged && score < 0.5 && output.flagged == false && output['odd-name'] == 1", &output));
    assert!(!holds("user.id == 'u-1'", &output));
    assert!(holds("output == 'fine'", &json!("fine")));
    assert!(holds("output == 1", &json!({"output": 1})));
    assert!(!holds("flagged == false", &json!({"error": "down"})));
}

#[test]
fn what_is_selected_becomes_json() {
    for (source, value) in [
        ("history.crm.map(call, call.outputs.name)", json!(["Ada"])),
        ("{'n': history._total, 'half': 0.5}", json!({"n": 2, "half": 0.5})),
        ("started_at", json!("2026-11-16T12:00:00Z")),
        ("recent.a-b", json!({"inputs": {}})),
        ("null", json!(null)),
    ] {
        assert_eq!(compile(source).unwrap().select(&object()).unwrap(), value, "{source}");
    }
    for source in
        ["duration('1s')", "b'x'", "{1: 2}", "1.0 / 0.0", "9007199254740993", "recent.nobody", "optional.none()"]
    {
        assert!(compile(source).unwrap().select(&object()).is_err(), "{source}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it has to end, and soon")]
fn hostile_expressions_are_refused_before_they_run() {
    let chain = |part: &str, count: usize| vec![part; count].join("");
    let many = |part: &str, join: &str, count: usize| vec![part; count].join(join);
    for source in [
        many("1", "+", 1_500),
        many("1", "+", 1_000),
        many("true", "&&", 400),
        format!("user{}", chain(".a", 1_000)),
        format!("{}1{}", chain("[", 500), chain("]", 500)),
        format!("{}1", chain("true?1:", 200)),
        format!("user{}", chain("[0]", 500)),
        "x".repeat(2_049),
        "[1].all(a, [1].all(b, [1].all(c, true)))".to_owned(),
        format!("{}true{}", chain("[1,2,3,4,5,6,7,8,9,0].all(x, ", 7), chain(")", 7)),
    ] {
        let started = Instant::now();
        let invalid = compile(&source).unwrap_err();
        assert_eq!(invalid.code, Code::AssertionTooComplex, "{} bytes: {invalid:?}", source.len());
        assert!(started.elapsed() < Duration::from_secs(20));
    }
    // These the parser takes away by itself.
    check(&format!("{}true{}", chain("(", 1_000), chain(")", 1_000)), "true");
    check(&format!("{}true", chain("!", 1_000)), "true");
    check(&format!("{}1 == 1", chain("-", 1_000)), "true");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it has to end, and soon")]
fn a_costly_expression_runs_out_and_the_process_lives() {
    let long: Vec<Value> = (0..2_000).map(Value::from).collect();
    let object = json!({"recent": {"crm": {"inputs": {"list": long, "text": "a".repeat(100_000)}}}, "history": {}});
    let list = "recent.crm.inputs.list";
    let text = "recent.crm.inputs.text";
    for source in [
        format!("{list}.all(a, {list}.all(b, a + b >= 0))"),
        format!("{list}.exists(a, {list}.exists(b, a + b < 0))"),
        format!("{list}.map(a, {list}.map(b, a + b)).size() > 0"),
        format!("{list}.filter(a, {list}.exists_one(b, a == b)).size() > 0"),
        format!("{list}.all(a, ({text} + {text} + {text} + {text}).size() > a)"),
        format!("{list}.all(a, {text}.matches('(a*)*b|c' + string(a)) || true)"),
    ] {
        let started = Instant::now();
        assert_eq!(compile(&source).unwrap().holds(&object), Err(Failing::Budget), "{source}");
        assert!(started.elapsed() < Duration::from_secs(20), "{source}");
    }
    check("user.id.matches('(((a{100}){100}){100}){100}')", "error");
    let pattern = format!("user.id.matches('{}')", "a".repeat(1_001));
    check(&pattern, "error");
    assert_eq!(compile(&format!("{text} + {text} + {text}")).unwrap().select(&object), Err(Failing::Budget));
}

#[test]
fn loops_of_the_size_that_policies_have_are_no_matter() {
    let calls: Vec<Value> = (0..50).map(|id| json!({"inputs": {"id": id, "note": "x".repeat(200)}})).collect();
    let object = json!({"history": {"crm": calls, "_total": 50}, "recent": {}});
    let source = "history.crm.all(a, history.crm.exists(b, b.inputs.id == a.inputs.id)) && history._total == 50";
    assert_eq!(compile(source).unwrap().holds(&object), Ok(()));
}
