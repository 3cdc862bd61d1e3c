//! RFC 8259, RFC 8785: what holds of every document.

use crate::spelling::{Speller, choices, value};
use json::{Code, Document, Limits, Pointer, Value, canonical, canonical_value};
use proptest::prelude::*;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn read(text: &str) -> Result<Document, json::ParseError> {
    Document::parse(text.as_bytes(), &Limits::DOCUMENT)
}

/// Codes for what is JSON to others and not to us.
const STRICTER: [Code; 3] = [Code::DuplicateKey, Code::NumberOutOfRange, Code::NumberTooLong];

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn every_spelling_is_read_as_the_value_it_means(value in value(), choices in choices()) {
        let text = Speller::spell(&choices, &value);
        let others: Value = serde_json::from_str(&text).unwrap();
        let document = read(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        prop_assert_eq!(canonical(document.root()), canonical_value(&value));
        prop_assert_eq!(canonical(document.root()), canonical_value(&others));
        prop_assert_eq!(canonical_value(&document.root().to_value()), canonical_value(&value));
    }

    #[test]
    fn what_is_accepted_is_accepted_by_others_with_the_same_meaning(
        value in value(),
        choices in choices(),
        flaws in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3u8), 1..4),
    ) {
        // Bytes that matter in JSON, and two that are no text.
        let letters = b"{}[]\",:\\0123456789.eE+-truefalsn/u \t\n\xff\xc3\x00dD8";
        let mut bytes = Speller::spell(&choices, &value).into_bytes();
        for (place, letter, kind) in flaws {
            if bytes.is_empty() {
                break;
            }
            let (place, letter) = (place.index(bytes.len()), letters[letter.index(letters.len())]);
            match kind {
                0 => bytes[place] = letter,
                1 => bytes.insert(place, letter),
                _ => drop(bytes.remove(place)),
            }
        }
        let (ours, others) = (Document::parse(&bytes, &Limits::DOCUMENT), serde_json::from_slice::<Value>(&bytes));
        match (ours, others) {
            (Ok(document), Ok(value)) => prop_assert_eq!(canonical(document.root()), canonical_value(&value)),
            (Ok(_), Err(error)) => prop_assert!(false, "accepted against {}: {:?}", error, String::from_utf8_lossy(&bytes)),
            (Err(error), Ok(_)) => prop_assert!(STRICTER.contains(&error.code), "{}: {:?}", error, String::from_utf8_lossy(&bytes)),
            (Err(error), Err(_)) => {
                prop_assert!(error.offset <= bytes.len());
                prop_assert!(Pointer::parse(error.at.as_str()).is_ok());
            }
        }
    }

    #[test]
    fn a_member_twice_is_refused_wherever_it_stands(value in value(), choices in choices(), object in 0..64usize) {
        if let Some((text, at)) = Speller::spell_twice(&choices, &value, object) {
            let error = read(&text).expect_err(&text);
            prop_assert_eq!((error.code, error.at.as_str()), (Code::DuplicateKey, at.as_str()), "{}", text);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "nothing but the duplicate is wrong: {}", text);
        }
    }

    #[test]
    fn the_canonical_form_is_a_fixpoint(value in value(), choices in choices()) {
        let written = canonical_value(&value);
        let again = Document::parse(&written, &Limits::DOCUMENT).unwrap();
        prop_assert_eq!(&canonical(again.root()), &written);
        let spelled = read(&Speller::spell(&choices, &value)).unwrap();
        prop_assert_eq!(&canonical(spelled.root()), &written);
        prop_assert!(spelled.root() == again.root());
        prop_assert_eq!(spelled.nodes(), again.nodes());
        let others: Value = serde_json::from_slice(&written).unwrap();
        prop_assert_eq!(canonical_value(&others), written);
    }

    #[test]
    fn every_value_is_found_at_its_place(value in value()) {
        let document = Document::of(&value).unwrap();
        let mut places = vec![(Pointer::root(), &value)];
        while let Some((place, value)) = places.pop() {
            let node = place.find(document.root());
            prop_assert_eq!(node.map(canonical), Some(canonical_value(value)), "{}", place);
            match value {
                Value::Array(elements) => {
                    places.extend(elements.iter().enumerate().map(|(position, element)| (place.child(position), element)));
                    prop_assert!(place.child(elements.len()).find(document.root()).is_none());
                }
                Value::Object(members) => places.extend(members.iter().map(|(name, value)| (place.child(name), value))),
                _ => {}
            }
        }
    }
}
