//! RFC 0020 A.1: timestamps, in the profile of RFC 3339.
//!
//! Texts are ordered against fixed moments and against each other as the twin orders them; a validity window is read or
//! refused alike; and an instant that RFC 3339 can write is printed so that it reads back.

#![no_main]

use aql::{Category, Instant, Limits, Validity};
use fuzzing::{document, first_line, head, refused, spell, text, twin_refused, twin_value};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use std::cmp::Ordering;

const CHARS_MAX: usize = 80;

#[rustfmt::skip]
const WORDS: [&str; 44] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "-", ":", ".", "T", "t", "Z", "z", "+", "\n", " ", "0000", "1900",
    "2000", "2024", "2026", "9999", "-01", "-02", "-12", "-28", "-29", "-30", "-31", "-00", "T00:00:00", "T23:59:60",
    "T23:59:59", "T24:00:00", "+00:00", "-00:00", "+23:59", "-23:59", "+24:00", ".999999999",
];

const MOMENTS: [&str; 7] = [
    "0000-01-01",
    "1969-12-31T23:59:59.999999999Z",
    "2000-02-29T12:00:00+12:00",
    "2016-12-31T23:59:60Z",
    "2026-01-01",
    "2026-01-01T00:00:00.5-23:59",
    "9999-12-31T23:59:59.999999999Z",
];

fuzz_target!(|data: &[u8]| {
    // A first byte beyond ASCII asks for words, so that seeds can be written by hand.
    let text = match data.split_first() {
        Some((0x80.., rest)) => spell(rest, &WORDS),
        _ => text(data),
    };
    let (left, right) = first_line(&text);
    let (left, right) = (head(left, CHARS_MAX), head(right, CHARS_MAX));
    check_order(left, right);
    for text in [left, right] {
        MOMENTS.iter().for_each(|moment| check_order(text, moment));
        check_print(text);
        check_window(text);
    }
});

fn check_order(left: &str, right: &str) {
    let (one, other) = (document(&json!(left)), document(&json!(right)));
    let order = aql::order(one.root(), other.root());
    assert_eq!(
        order,
        aql::order(other.root(), one.root()).map(Ordering::reverse),
        "{left:?} and {right:?}, turned round"
    );
    assert_eq!(
        order,
        reference::order(&twin_value(&json!(left)), &twin_value(&json!(right))),
        "{left:?} and {right:?}"
    );
    if let (Some(left), Some(right)) = (Instant::parse(left), Instant::parse(right)) {
        assert_eq!(order, Some(left.cmp(&right)), "{left} and {right}");
    }
}

fn check_print(text: &str) {
    let Some(instant) = Instant::parse(text) else {
        assert_eq!(Instant::parse_rfc3339(text), None, "{text:?}");
        return;
    };
    assert!(Instant::parse_rfc3339(text).is_none_or(|strict| strict == instant), "{text:?}");
    assert_eq!(instant.plus(1).plus(-1), instant);
    assert!(instant.plus(1) > instant);
    // An offset can lead out of the years 0000 to 9999, where RFC 3339 has no spelling in UTC.
    let bound = |text: &str| Instant::parse(text).expect("a bound is a timestamp");
    if instant < bound("0000-01-01") || instant > bound("9999-12-31T23:59:59.999999999Z") {
        return;
    }
    let printed = instant.to_string();
    assert_eq!(Instant::parse_rfc3339(&printed), Some(instant), "{text:?} is printed as {printed:?}");
    let twin = reference::order(&twin_value(&json!(text)), &twin_value(&json!(printed)));
    assert_eq!(twin, Some(Ordering::Equal), "{text:?} is printed as {printed:?}");
}

/// A window that begins with the text and ends late, so that one thing at most is wrong with it.
fn check_window(text: &str) {
    let validity = json!({"from": text, "to": "9999-12-31T23:59:59Z"});
    let (read, now) = (document(&validity), Instant::parse("2026-01-01T00:00:00Z").expect("now is a timestamp"));
    let fast = Validity::of(read.root()).map_err(|refusal| refused(&refusal));
    let twin = reference::window(&twin_value(&validity), "discovery", "2026-01-01T00:00:00Z");
    let twin = twin.map_err(|refusal| twin_refused(&refusal));
    match fast {
        Err(refusal) => assert_eq!(twin, Err(refusal), "{text:?}"),
        Ok(window) => {
            let checked =
                window.check(Category::Discovery, now, &Limits::STANDARD).map_err(|refusal| refused(&refusal));
            assert_eq!(checked.is_ok(), twin.is_ok(), "{text:?}: aql {checked:?}, reference {twin:?}");
            assert_eq!(window.from(), Instant::parse(text).expect("the window was read"));
        }
    }
}
