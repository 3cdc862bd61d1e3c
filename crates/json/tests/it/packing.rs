//! What was packed is read back; bytes that no packer writes are not.

use crate::spelling::value;
use json::{Document, Packer, Value, canonical, canonical_value, json};
use proptest::prelude::*;

fn packed(packer: &mut Packer, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(packer.pack(&Document::of(value).unwrap(), &mut bytes));
    bytes
}

/// A value with texts that are longer than a slot, everywhere.
fn with_long_texts(value: &Value) -> Value {
    let long = |text: &str| format!("{text} and what makes it longer than a slot");
    match value {
        Value::String(text) => Value::from(long(text)),
        Value::Array(elements) => elements.iter().map(with_long_texts).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (long(name), with_long_texts(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_one_packer_packed_is_read_back(values in prop::collection::vec(value(), 1..4)) {
        let mut packer = Packer::default();
        let values: Vec<Value> = values.iter().flat_map(|value| [value.clone(), with_long_texts(value)]).collect();
        let all: Vec<Vec<u8>> = values.iter().map(|value| packed(&mut packer, value)).collect();
        for (value, bytes) in values.iter().zip(&all) {
            let document = packer.unpacker().unpack(bytes);
            prop_assert_eq!(document.map(|document| canonical(document.root())), Some(canonical_value(value)));
        }
    }
}

#[test]
fn a_text_that_stands_otherwise_than_it_was_packed_is_not_read() {
    // A count of four bytes, then three slots of sixteen, then the long text.
    let (value, short, long) = (json!(["ab", "a text that is longer than a slot"]), 4, 20);
    let mut packer = Packer::default();
    let good = packed(&mut packer, &value);
    let unpacked = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        packer.unpacker().unpack(&bytes).map(|document| document.root().to_value())
    };
    assert_eq!(unpacked(short + 2, b'A'), Some(json!(["Ab", "a text that is longer than a slot"])));
    assert_eq!(unpacked(long + 8, 32), Some(json!(["ab", "a text that is longer than a slo"])));
    assert_eq!(unpacked(long + 8, 15), Some(json!(["ab", "a text that is "])));
    for (at, byte, why) in [
        (short + 2, 0xff, "a short text that is no UTF-8"),
        (short + 4, b'c', "a byte behind a short text"),
        (long + 4, 1, "a long text that ends beyond the last byte"),
        (long + 8, 34, "a long text of one byte more than there are"),
        (long + 8, 14, "a long text that would have been a short one"),
    ] {
        assert_eq!(unpacked(at, byte), None, "{why}");
    }
}
