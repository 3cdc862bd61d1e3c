//! OAS Agent: assertions, as text. None of them does harm, and each says the same twice.

#![no_main]

use agent::Assertion;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::sync::LazyLock;

static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    let calls: Vec<Value> =
        (0..40).map(|id| json!({"inputs": {"id": id, "t": "x"}, "outputs": {"n": [id, 0.5]}})).collect();
    json!({
        "started_at": "2026-01-01T00:00:00Z",
        "user": {"id": "u", "email": "a@b.example"},
        "recent": {"_name": "crm", "crm": {"inputs": {"id": 1}}, "a-b": {"inputs": {"l": [1, 2, 3]}}},
        "history": {"_list": ["crm", "a-b"], "_total": 2, "crm": calls, "a-b": []},
    })
});

fuzz_target!(|data: &[u8]| {
    let text = fuzzing::text(data);
    let Ok(assertion) = Assertion::read(&text, &["crm", "a-b", "a.b"]) else { return };
    let held = assertion.holds(&OBJECT);
    assert_eq!(held, assertion.holds(&OBJECT), "{text}");
    let selected = assertion.select(&OBJECT);
    if held.is_ok() {
        assert_eq!(selected, Ok(json!(true)), "{text}");
    }
    let _ = assertion.holds_for_output(&OBJECT);
});
