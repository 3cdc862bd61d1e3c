//! Numbers and texts that are read or written by themselves are those of a document.

use json::{Document, Limits, Value, Writer, canonical_value, json, number};

const TEXTS: [&str; 30] = [
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1.5",
    "-12.25",
    "1.5e3",
    "1E+2",
    "1e-7",
    "999999999999999",
    "1234567890123456",
    "9007199254740991",
    "-9007199254740991",
    "9007199254740992",
    "0.1234567890123456789012345678901",
    "0.12345678901234567890123456789012",
    "1e400",
    "1e-400",
    "",
    "-",
    "+1",
    "01",
    "1.",
    "1e",
    "1x",
    "1,2",
    "NaN",
    "true",
    "\"1\"",
];

#[test]
fn a_text_is_a_number_when_a_document_of_it_is_one() {
    for text in TEXTS {
        let document = Document::parse(text.as_bytes(), &Limits::DOCUMENT).ok();
        let expected = document.and_then(|document| document.root().as_f64());
        assert_eq!(number(text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        // Space belongs to documents, not to numbers.
        for spaced in [format!(" {text}"), format!("{text} "), format!("{text}\n")] {
            assert_eq!(number(&spaced), None, "{spaced:?}");
        }
    }
}

#[test]
fn a_text_spells_a_number_when_it_is_written_so() {
    let mut writer = Writer::default();
    writer.string("what was written before does not count");
    for (text, other) in TEXTS.into_iter().flat_map(|text| TEXTS.map(|other| (text, other))) {
        if let Some(number) = number(text) {
            let written = canonical_value(&Value::from(number));
            assert_eq!(writer.spells(number, other), written == other.as_bytes(), "{text} as {other}");
        }
    }
    assert!(writer.spells(1_500.0, "1500") && !writer.spells(1_500.0, "1.5e3"));
}

#[test]
fn every_byte_that_cannot_stand_as_it_is_is_escaped_however_many_there_are() {
    for special in ['"', '\\', '\n', '\u{1}', '\u{1f}'] {
        for (left, right) in (0..40).flat_map(|left| (left..40).map(move |right| (left, right))) {
            let mut letters = ['x'; 40];
            letters[left] = special;
            letters[right] = special;
            let text: String = letters.iter().collect();
            let expected = serde_json::to_string(&text).unwrap();
            assert_eq!(canonical_value(&json!(text)), expected.as_bytes(), "{special:?} at {left} and {right}");
        }
    }
}
