//! RFC 8259: the community's parsing cases, with every verdict that is ours alone written down.

use json::{Document, Limits};
use std::collections::BTreeMap;

/// Valid JSON that we refuse, because two readers could understand it differently.
const STRICTER: [(&str, &str); 8] = [
    // Beyond 2^53 neighbouring integers share a double.
    ("y_number", "number_out_of_range"),
    ("y_number_real_capital_e", "number_out_of_range"),
    ("y_number_real_exponent", "number_out_of_range"),
    ("y_number_real_fraction_exponent", "number_out_of_range"),
    ("y_object_extreme_numbers", "number_out_of_range"),
    // A double has 17 digits; a literal of more than 32 characters promises what nobody keeps.
    ("y_number_double_close_to_zero", "number_too_long"),
    // Which of the two members counts would be the reader's choice.
    ("y_object_duplicated_key", "json_duplicate_key"),
    ("y_object_duplicated_key_and_value", "json_duplicate_key"),
];

/// What RFC 8259 leaves to the reader; we take none of it.
const LEFT_OPEN: [(&str, &str); 35] = [
    ("i_number_double_huge_neg_exp", "number_out_of_range"),
    ("i_number_huge_exp", "number_too_long"),
    ("i_number_neg_int_huge_exp", "number_out_of_range"),
    ("i_number_pos_double_huge_exp", "number_out_of_range"),
    ("i_number_real_neg_overflow", "number_out_of_range"),
    ("i_number_real_pos_overflow", "number_out_of_range"),
    ("i_number_real_underflow", "number_out_of_range"),
    ("i_number_too_big_neg_int", "number_out_of_range"),
    ("i_number_too_big_pos_int", "number_out_of_range"),
    ("i_number_very_big_negative_int", "number_too_long"),
    ("i_object_key_lone_2nd_surrogate", "invalid_unicode"),
    ("i_string_1st_surrogate_but_2nd_missing", "invalid_unicode"),
    ("i_string_1st_valid_surrogate_2nd_invalid", "invalid_unicode"),
    ("i_string_UTF-16LE_with_BOM", "invalid_unicode"),
    ("i_string_UTF-8_invalid_sequence", "invalid_unicode"),
    ("i_string_UTF8_surrogate_U+D800", "invalid_unicode"),
    ("i_string_incomplete_surrogate_and_escape_valid", "invalid_unicode"),
    ("i_string_incomplete_surrogate_pair", "invalid_unicode"),
    ("i_string_incomplete_surrogates_escape_valid", "invalid_unicode"),
    ("i_string_invalid_lonely_surrogate", "invalid_unicode"),
    ("i_string_invalid_surrogate", "invalid_unicode"),
    ("i_string_invalid_utf-8", "invalid_unicode"),
    ("i_string_inverted_surrogates_U+1D11E", "invalid_unicode"),
    ("i_string_iso_latin_1", "invalid_unicode"),
    ("i_string_lone_second_surrogate", "invalid_unicode"),
    ("i_string_lone_utf8_continuation_byte", "invalid_unicode"),
    ("i_string_not_in_unicode_range", "invalid_unicode"),
    ("i_string_overlong_sequence_2_bytes", "invalid_unicode"),
    ("i_string_overlong_sequence_6_bytes", "invalid_unicode"),
    ("i_string_overlong_sequence_6_bytes_null", "invalid_unicode"),
    ("i_string_truncated-utf-8", "invalid_unicode"),
    ("i_string_utf16BE_no_BOM", "json_syntax"),
    ("i_string_utf16LE_no_BOM", "json_syntax"),
    ("i_structure_500_nested_arrays", "json_too_deep"),
    ("i_structure_UTF-8_BOM_empty_object", "json_syntax"),
];

#[test]
fn every_parsing_case_has_its_verdict() {
    let Some(folder) = crate::beside("JSONTestSuite/test_parsing") else { return };
    let mut counts = BTreeMap::<char, usize>::new();
    let (mut stricter, mut left_open) = (BTreeMap::new(), BTreeMap::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let verdict = match Document::parse(&std::fs::read(&path).unwrap(), &Limits::DOCUMENT) {
            Ok(_) => "accepted",
            Err(error) => error.code.name(),
        };
        let kind = name.chars().next().unwrap();
        *counts.entry(kind).or_default() += 1;
        match kind {
            'y' if verdict != "accepted" => drop(stricter.insert(name, verdict)),
            'y' => {}
            'n' => assert!(["json_syntax", "invalid_unicode", "json_too_deep"].contains(&verdict), "{name}: {verdict}"),
            _ => drop(left_open.insert(name, verdict)),
        }
    }
    assert_eq!(counts, BTreeMap::from([('i', 35), ('n', 188), ('y', 95)]));
    let table = |rows: &[(&str, &'static str)]| -> BTreeMap<String, &str> {
        rows.iter().map(|(name, verdict)| ((*name).to_owned(), *verdict)).collect()
    };
    assert_eq!(stricter, table(&STRICTER));
    assert_eq!(left_open, table(&LEFT_OPEN));
}
