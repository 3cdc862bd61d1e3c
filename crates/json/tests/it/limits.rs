//! Limits are exact: what reaches a limit is read, one more is refused and names it.

use crate::spelling::{Speller, choices, value};
use json::{Code, Document, Exceeded, Limits, Value};
use proptest::prelude::*;

/// Checks a text that reaches a limit and one that passes it by one.
#[track_caller]
fn exact(limits: &Limits, fits: &str, passes: &str, code: Code, name: &str, max: u32) {
    if let Err(error) = Document::parse(fits.as_bytes(), limits) {
        panic!("{name} of {max} is refused: {error}");
    }
    let error = Document::parse(passes.as_bytes(), limits).unwrap_err();
    let name = format!("{}.{name}", limits.subject);
    let limit = Exceeded { name, max: u64::from(max), got: u64::from(max) + 1 };
    assert_eq!((error.code, error.limit), (code, Some(limit)));
}

#[test]
fn the_published_limits_are_exact() {
    for limits in [Limits::INTENT, Limits::DOCUMENT] {
        let nested = |levels: u32| format!("{}{}", "[".repeat(levels as usize), "]".repeat(levels as usize));
        exact(&limits, &nested(limits.depth), &nested(limits.depth + 1), Code::TooDeep, "depth", limits.depth);

        let list = |values: u32| format!("[{}0]", "0,".repeat(values as usize - 2));
        exact(&limits, &list(limits.nodes), &list(limits.nodes + 1), Code::TooManyNodes, "nodes", limits.nodes);

        let object = |members: u32| {
            let members: Vec<String> = (0..members).map(|number| format!("\"{number}\":0")).collect();
            format!("{{\"inner\":{{{}}}}}", members.join(","))
        };
        exact(&limits, &object(limits.keys), &object(limits.keys + 1), Code::TooManyKeys, "keys", limits.keys);

        // Two bytes of text for six of input: what counts is what was meant.
        let escaped =
            |bytes: u32| format!("{}{}", "\\u00e9".repeat(bytes as usize / 2), "a".repeat(bytes as usize % 2));
        let key = |bytes: u32| format!("{{\"{}\":0}}", escaped(bytes));
        exact(
            &limits,
            &key(limits.key_bytes),
            &key(limits.key_bytes + 1),
            Code::KeyTooLong,
            "key_bytes",
            limits.key_bytes,
        );

        let string = |bytes: u32| format!("[\"{}\"]", escaped(bytes));
        let max = limits.string_bytes;
        exact(&limits, &string(max), &string(max + 1), Code::StringTooLong, "string_bytes", max);

        let blank = |bytes: u32| format!("{}1", " ".repeat(bytes as usize - 1));
        exact(&limits, &blank(limits.bytes), &blank(limits.bytes + 1), Code::TooLarge, "bytes", limits.bytes);

        let number = |letters: u32| format!("[0.{}]", "1".repeat(letters as usize - 2));
        exact(&limits, &number(32), &number(33), Code::NumberTooLong, "number_chars", 32);
    }
}

#[test]
fn the_largest_numbers_are_exact() {
    for (fits, passes) in [
        ("9007199254740991", "9007199254740992"),
        ("-9007199254740991", "-9007199254740992"),
        ("9007199254740991.0", "9007199254740992.0"),
        ("9.007199254740991e15", "9.007199254740992e15"),
        ("5e-324", "2e-324"),
    ] {
        assert!(Document::parse(fits.as_bytes(), &Limits::DOCUMENT).is_ok(), "{fits}");
        let error = Document::parse(passes.as_bytes(), &Limits::DOCUMENT).unwrap_err();
        assert_eq!(error.code, Code::NumberOutOfRange, "{passes}");
    }
}

/// The measures of a value: depth, values, members of one object, bytes of a name, bytes of a string.
fn measure(value: &Value) -> [u32; 5] {
    let below = |children: &mut dyn Iterator<Item = &Value>| {
        children.map(measure).fold([0, 0, 0, 0, 0], |all, one| {
            [all[0].max(one[0]), all[1] + one[1], all[2].max(one[2]), all[3].max(one[3]), all[4].max(one[4])]
        })
    };
    match value {
        Value::Array(elements) => {
            let [depth, nodes, keys, key_bytes, string_bytes] = below(&mut elements.iter());
            [depth + 1, nodes + 1, keys, key_bytes, string_bytes]
        }
        Value::Object(members) => {
            let [depth, nodes, keys, key_bytes, string_bytes] = below(&mut members.values());
            let longest = members.keys().map(|name| name.len() as u32).max().unwrap_or(0);
            [depth + 1, nodes + 1, keys.max(members.len() as u32), key_bytes.max(longest), string_bytes]
        }
        Value::String(text) => [0, 1, 0, 0, text.len() as u32],
        Value::Null | Value::Bool(_) | Value::Number(_) => [0, 1, 0, 0, 0],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_fits_its_own_measures_and_nothing_smaller(value in value(), choices in choices()) {
        let text = Speller::spell(&choices, &value);
        let [depth, nodes, keys, key_bytes, string_bytes] = measure(&value);
        let own = Limits { bytes: text.len() as u32, depth, nodes, keys, key_bytes, string_bytes, ..Limits::OURS };
        prop_assert!(Document::parse(text.as_bytes(), &own).is_ok(), "{:?}: {}", own, text);
        let smaller = [
            (Limits { bytes: own.bytes.saturating_sub(1), ..own.clone() }, own.bytes, Code::TooLarge),
            (Limits { depth: depth.saturating_sub(1), ..own.clone() }, depth, Code::TooDeep),
            (Limits { nodes: nodes.saturating_sub(1), ..own.clone() }, nodes, Code::TooManyNodes),
            (Limits { keys: keys.saturating_sub(1), ..own.clone() }, keys, Code::TooManyKeys),
            (Limits { key_bytes: key_bytes.saturating_sub(1), ..own.clone() }, key_bytes, Code::KeyTooLong),
            (Limits { string_bytes: string_bytes.saturating_sub(1), ..own.clone() }, string_bytes, Code::StringTooLong),
        ];
        for (limits, measure, code) in smaller.into_iter().filter(|(_, measure, _)| *measure > 0) {
            let error = Document::parse(text.as_bytes(), &limits).expect_err("one too many");
            prop_assert_eq!(error.code, code, "{}", text);
            let limit = error.limit.expect("the limit is named");
            prop_assert_eq!((limit.max, limit.got), (u64::from(measure) - 1, u64::from(measure)), "{}", text);
        }
    }
}

/// The limits table is published in manifests and papers; whoever changes a number changes it there, too.
#[test]
fn the_bounds_are_those_that_are_published() {
    let numbers = |limits: &Limits| {
        let Limits { bytes, depth, nodes, keys, key_bytes, string_bytes, .. } = *limits;
        [bytes, depth, nodes, keys, key_bytes, string_bytes]
    };
    assert_eq!(numbers(&Limits::INTENT), [65_536, 32, 4_000, 1_024, 256, 8_192]);
    assert_eq!(numbers(&Limits::DOCUMENT), [262_144, 64, 20_000, 1_024, 256, 65_536]);
    assert_eq!(numbers(&Limits::OURS), [67_108_864, 256, 4_000_000, 100_000, 65_536, 67_108_864]);
}

#[test]
fn an_error_says_in_words_what_is_wrong_and_where() {
    let told = |text: &str| Document::parse(text.as_bytes(), &Limits::INTENT).unwrap_err().to_string();
    for (text, words) in [
        (r#"{"a":}"#, "this is not RFC 8259 JSON at `/a` (byte 5)"),
        (r#"{"a":1,"a":2}"#, "two members have this name at `/a`"),
        (r#"{"a":9007199254740993}"#, "the number does not fit a double faithfully"),
        (r#"{"a":"\ud800"}"#, "the text is not valid Unicode at `/a`"),
        (&format!("[{}]", "0".to_owned() + &",0".repeat(4_000)), "too many values"),
        (&"[".repeat(40), "too many nested containers"),
        (&" ".repeat(70_000), "too many bytes"),
        (&format!(r#""{}""#, "x".repeat(9_000)), "the string is too long"),
        (&format!(r#"{{"{}":1}}"#, "x".repeat(300)), "the member name is too long"),
        (&"1".repeat(40), "the number literal is too long"),
        (&object(1_025), "too many members in one object"),
    ] {
        assert!(told(text).contains(words), "{words}: {}", told(text));
    }
}

fn object(members: usize) -> String {
    let members: Vec<String> = (0..members).map(|number| format!(r#""{number}":1"#)).collect();
    format!("{{{}}}", members.join(","))
}
