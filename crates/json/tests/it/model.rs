//! A document says of each of its values what it is, by every way there is to ask; a [`Value`] knows the answers.

use crate::spelling::{Speller, choices, value};
use json::{
    Document, Key, Kind, Limits, Near, Node, Shapes, Text, Value, canonical, canonical_value, compare_keys, json,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Check = Result<(), TestCaseError>;

/// What stays with whoever asks many documents: one memory for each name.
type Nears = BTreeMap<String, Near>;

fn kind(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::Number(_) => Kind::Number,
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    }
}

fn check_text(node: Node<'_>, value: &Value) -> Check {
    prop_assert_eq!(node.as_str(), value.as_str());
    prop_assert_eq!(node.text_bytes(), value.as_str().map_or(0, str::len));
    let text = value.as_str().unwrap_or_default();
    prop_assert_eq!(node.is_text(&Text::new(text)), value.is_string());
    // A text of the same length, longer ones, a shorter one: none of them is it.
    let mut last = text.chars();
    let shorter = last.next_back().map(|_| last.as_str().to_owned());
    let others = [format!("{text}\0"), format!("{text}{}", "x".repeat(30)), "x".repeat(text.len())];
    for other in others.into_iter().chain(shorter).filter(|other| other != text) {
        prop_assert!(!node.is_text(&Text::new(&other)), "{:?} is not {:?}", text, other);
    }
    Ok(())
}

fn check_scalar(node: Node<'_>, value: &Value) -> Check {
    prop_assert_eq!(node.kind(), kind(value));
    prop_assert_eq!((node.is_null(), node.is_object()), (value.is_null(), value.is_object()));
    prop_assert_eq!(node.as_bool(), value.as_bool());
    prop_assert_eq!(node.as_f64(), value.as_f64());
    let whole = value.as_f64().filter(|number| number.trunc() == *number && *number >= 0.0);
    prop_assert_eq!(node.as_u64(), whole.map(|number| number as u64));
    check_text(node, value)
}

fn check_container(node: Node<'_>, value: &Value, nears: &mut Nears) -> Check {
    let (elements, members) = (value.as_array(), value.as_object());
    let count = elements.map_or(0, Vec::len) + members.map_or(0, serde_json::Map::len);
    prop_assert_eq!((node.len(), node.is_empty()), (count, count == 0));
    prop_assert_eq!(node.children().size_hint(), (count, Some(count)));
    let told = [node.elements().size_hint(), node.members().size_hint()];
    let lens = [elements.map_or(0, Vec::len), members.map_or(0, serde_json::Map::len)];
    prop_assert_eq!(told, lens.map(|len| (len, Some(len))));
    prop_assert!(node.at(count).is_none() && node.get("no such name").is_none());
    for position in 0..=count {
        prop_assert_eq!(node.child(position).map(canonical), node.children().nth(position).map(canonical));
    }
    check_names(node, value)?;
    let inside: Vec<Vec<u8>> = node.children().map(canonical).collect();
    let found: Vec<Vec<u8>> = node.elements().chain(node.members().map(|(_, member)| member)).map(canonical).collect();
    prop_assert_eq!(inside, found);
    for (name, member) in members.into_iter().flatten() {
        let (key, near) = (Key::new(name), nears.entry(name.clone()).or_default());
        let ways = [node.get(name), node.get_key(&key), node.get_near(&key, near), node.step(name)];
        for way in ways {
            prop_assert_eq!(way.map(canonical), Some(canonical_value(member)));
        }
    }
    // Names that stood in other objects.
    for (name, near) in nears.iter_mut().filter(|(name, _)| !members.is_some_and(|members| members.contains_key(*name)))
    {
        prop_assert!(node.get_near(&Key::new(name), near).is_none());
    }
    Ok(())
}

/// The names of an object by themselves, in their order; other values have none.
fn check_names(node: Node<'_>, value: &Value) -> Check {
    let mut expected: Option<Vec<&String>> = value.as_object().map(|members| members.keys().collect());
    expected.iter_mut().for_each(|names| names.sort_by(|left, right| compare_keys(left, right)));
    prop_assert_eq!(node.names().is_some(), expected.is_some());
    let Some((shape, expected)) = node.names().zip(expected) else { return Ok(()) };
    prop_assert_eq!((shape.len(), shape.is_empty()), (expected.len(), expected.is_empty()));
    prop_assert_eq!(shape.position(&Key::new("no such name")), None);
    for (position, name) in expected.into_iter().enumerate() {
        prop_assert_eq!(shape.name(position), name);
        prop_assert_eq!(shape.position(&Key::new(name)), Some(position));
    }
    Ok(())
}

/// Everything about a value and what is in it.
fn check(node: Node<'_>, value: &Value, nears: &mut Nears, positions: &mut BTreeSet<usize>) -> Check {
    check_scalar(node, value)?;
    check_container(node, value, nears)?;
    prop_assert!(positions.insert(node.position()), "two values at one position");
    prop_assert_eq!(canonical(node.to_document().root()), canonical_value(value));
    match value {
        Value::Array(elements) => {
            for (position, element) in elements.iter().enumerate() {
                let inner = node.at(position).ok_or_else(|| TestCaseError::fail("an element is missing"))?;
                check(inner, element, nears, positions)?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let inner = node.get(name).ok_or_else(|| TestCaseError::fail("a member is missing"))?;
                check(inner, member, nears, positions)?;
            }
        }
        _ => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_answers_as_the_value_does(values in prop::collection::vec((value(), choices()), 1..4)) {
        let (mut shapes, mut nears) = (Shapes::default(), Nears::new());
        for (value, choices) in values {
            let text = Speller::spell(&choices, &value);
            let document = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).unwrap();
            let mut positions = BTreeSet::new();
            check(document.root(), &value, &mut nears, &mut positions)?;
            prop_assert_eq!(positions, (0..document.nodes()).collect::<BTreeSet<_>>());
            for position in 0..document.nodes() {
                let node = document.node(position).map(canonical);
                prop_assert_eq!(node, Some(canonical(document.root().elsewhere(position))));
            }
            prop_assert!(document.node(document.nodes()).is_none());
        }
    }
}

#[test]
fn long_texts_are_told_apart_as_short_ones_are() {
    for length in [0, 1, 13, 14, 15, 16, 17, 40] {
        let text = "y".repeat(length);
        let value = json!([text, format!("{text}z"), "z".repeat(length), 1]);
        let document = Document::of(&value).unwrap();
        for (number, wanted) in [(0, true), (1, false), (2, length == 0), (3, false)] {
            assert_eq!(document.root().at(number).unwrap().is_text(&Text::new(&text)), wanted, "{length}");
        }
        let bytes: Vec<usize> = document.root().elements().map(Node::text_bytes).collect();
        assert_eq!(bytes, [length, length + 1, length, 0]);
    }
}

#[test]
fn each_kind_has_its_word() {
    let values = [json!(null), json!(true), json!(1), json!("x"), json!([]), json!({})];
    let words = ["null", "a boolean", "a number", "a string", "an array", "an object"];
    for (value, word) in values.iter().zip(words) {
        assert_eq!(Document::of(value).unwrap().root().kind().name(), word);
    }
}

#[test]
fn a_document_says_how_much_memory_it_holds() {
    let memory = |value: &Value| Document::of(value).unwrap().memory();
    let empty = memory(&json!([]));
    assert!(empty >= size_of::<Document>() + 16);
    assert_eq!(memory(&json!([1, 2, 3])), empty + 3 * 16);
    assert_eq!(memory(&json!(["x".repeat(1_000), 2])), empty + 2 * 16 + 1_000);
}

#[test]
fn a_number_with_a_leading_zero_is_refused_behind_the_zero() {
    for (text, offset) in [("012", 1), ("[-00123]", 3), ("{\"a\":01}", 6)] {
        let error = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap_err();
        assert_eq!((error.code, error.offset), (json::Code::Syntax, offset), "{text}");
    }
}
