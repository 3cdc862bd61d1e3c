//! RFC 8259 and the refusals of the strict reader, as tables.

use super::*;
use crate::canonical::canonical;

#[track_caller]
fn check(text: &str, expected: &str) {
    let value = parse(text.as_bytes(), &Limits::document()).unwrap();
    assert_eq!(canonical(&value), expected, "{text}");
}

#[track_caller]
fn check_refused(bytes: impl AsRef<[u8]>, limits: &Limits, code: &str, at: &str) {
    let refusal = parse(bytes.as_ref(), limits).unwrap_err();
    assert_eq!((refusal.code, refusal.at.as_str()), (code, at), "{}", String::from_utf8_lossy(bytes.as_ref()));
}

#[track_caller]
fn check_code(bytes: impl AsRef<[u8]>, code: &str, at: &str) {
    check_refused(bytes, &Limits::document(), code, at);
}

#[test]
fn every_kind_of_value_is_read() {
    check(" null ", "null");
    check("\t[true,\r\nfalse]", "[true,false]");
    check(r#"{"b":{"c":[]},"a":{}}"#, r#"{"a":{},"b":{"c":[]}}"#);
    check(r#""\"\\\/\b\f\n\r\tA\u00e9""#, "\"\\\"\\\\/\\b\\f\\n\\r\\tA\u{e9}\"");
    check(r#""\ud83d\uDE00""#, "\"\u{1f600}\"");
    check(r#""\u0000""#, r#""\u0000""#);
    check("\"\u{ffff}\u{10ffff}\"", "\"\u{ffff}\u{10ffff}\"");
}

#[test]
fn every_spelling_of_a_number_is_read() {
    for (text, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0e-5", "0"),
        ("0e400", "0"),
        ("1.50", "1.5"),
        ("1E2", "100"),
        ("1e+2", "100"),
        ("1e-2", "0.01"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("5e-324", "5e-324"),
        ("0.100000000000000005551115123125", "0.1"),
    ] {
        check(text, expected);
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "NaN",
        "Infinity",
        "+1",
        ".5",
        "'a'",
        "// x\n1",
        "1 2",
        "[1]]",
        "\u{feff}1",
        "-",
        "01",
        "-01",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\",
        "\"\n\"",
        "\"\u{0}\"",
        "\"\u{1f}\"",
        "\u{a0}1",
        "\u{c}1",
        "[",
        "{",
        "[1 2]",
        "[,1]",
        "{1:2}",
        "{\"a\"}",
        "{,}",
        "{\"a\":1,}",
    ] {
        check_refused(text, &Limits::intent(), "json_syntax", if text == "[" || text == "[,1]" { "/0" } else { "" });
    }
}

#[test]
fn a_syntax_flaw_is_placed_at_the_value_being_read() {
    check_code(r#"{"a":tru}"#, "json_syntax", "/a");
    check_code(r#"{"a":}"#, "json_syntax", "/a");
    check_code(r#"{"a":[1,]}"#, "json_syntax", "/a/1");
    check_code(r#"{"a":[01]}"#, "json_syntax", "/a/0");
    check_code(r#"{"a":[1 2]}"#, "json_syntax", "/a");
    check_code(r#"{"x/y":"\q"}"#, "json_syntax", "/x~1y");
}

#[test]
fn numbers_that_a_double_cannot_carry_are_refused() {
    for text in
        ["9007199254740992", "-9007199254740993", "1e16", "1e300", "1e400", "-1e400", "1e-400", "0.0001e-330", "2e-324"]
    {
        check_code(text, "number_out_of_range", "");
    }
    check_code(r#"{"n":[0,1e400]}"#, "number_out_of_range", "/n/1");
    check_code(format!("0.{}", "1".repeat(31)), "number_too_long", "");
    check_code(format!("[-{}]", "1".repeat(32)), "number_too_long", "/0");
    check(&format!("0.{}", "1".repeat(30)), "0.1111111111111111");
}

#[test]
fn what_is_no_text_is_refused() {
    for text in
        [r#""\ud800""#, r#""\udc00""#, r#""\ud800x""#, r#""\ud800\n""#, r#""\udc00\ud800""#, r#""\ud800\ud800""#]
    {
        check_code(text, "invalid_unicode", "");
    }
    check_code(b"{\"a\":\"\xff\"}", "invalid_unicode", "/a");
    check_code(b"[\"ok\",\"\xc0\x80\"]", "invalid_unicode", "/1");
    check_code(b"\"\xed\xa0\x80\"", "invalid_unicode", "");
    check_code(b"\"\xe2\x82\"", "invalid_unicode", "");
    check_code(b"[\xff]", "invalid_unicode", "/0");
    check_code(b"{\"\xff\":1}", "invalid_unicode", "");
    check_code(b"1\xff", "invalid_unicode", "");
}

#[test]
fn keys_are_compared_decoded() {
    check_code(r#"{"a":1,"a":2}"#, "json_duplicate_key", "/a");
    check_code(r#"{"o":[{"a":1,"\u0061":2}]}"#, "json_duplicate_key", "/o/0/a");
    check_code(r#"{"a/b":1,"b":0,"a\/b":2}"#, "json_duplicate_key", "/a~1b");
    check(r#"{"a":1,"A":2}"#, r#"{"A":2,"a":1}"#);
}

#[test]
fn each_limit_is_the_last_size_allowed() {
    let small = Limits { bytes: 40, depth: 2, nodes: 5, keys: 2, key_bytes: 3, string_bytes: 4 };
    for (fits, breaks, code, at) in [
        (format!("1{}", " ".repeat(39)), format!("1{}", " ".repeat(40)), "json_too_large", ""),
        ("[[1]]".to_owned(), "[0,[[]]]".to_owned(), "json_too_deep", "/1/0"),
        (r#"{"a":[]}"#.to_owned(), r#"{"a":[{}]}"#.to_owned(), "json_too_deep", "/a/0"),
        ("[1,2,3,4]".to_owned(), "[1,2,3,4,5]".to_owned(), "json_too_many_nodes", "/4"),
        (r#"{"a":1,"b":2}"#.to_owned(), r#"[{"a":1,"b":2,"c":3}]"#.to_owned(), "json_too_many_keys", "/0/c"),
        (r#"{"abc":1}"#.to_owned(), r#"[{"abcd":1}]"#.to_owned(), "json_key_too_long", "/0"),
        (r#"{"\u20ac":1}"#.to_owned(), r#"{"a\u20ac":1}"#.to_owned(), "json_key_too_long", ""),
        (r#"["abcd"]"#.to_owned(), r#"["abcde"]"#.to_owned(), "json_string_too_long", "/0"),
        (r#""\u20acx""#.to_owned(), r#""\u20acxy""#.to_owned(), "json_string_too_long", ""),
    ] {
        assert!(parse(fits.as_bytes(), &small).is_ok(), "{fits}");
        check_refused(breaks, &small, code, at);
    }
}

#[test]
fn the_limits_are_the_published_ones() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(deep(32).as_bytes(), &Limits::intent()).is_ok());
    check_refused(deep(33), &Limits::intent(), "json_too_deep", &"/0".repeat(32));
    assert!(parse(deep(64).as_bytes(), &Limits::document()).is_ok());
    check_refused(deep(65), &Limits::document(), "json_too_deep", &"/0".repeat(64));
    check_code("[".repeat(100_000), "json_too_deep", &"/0".repeat(64));
    check_refused(format!("[{}1]", "1,".repeat(3_999)), &Limits::intent(), "json_too_many_nodes", "/3999");
    assert!(parse(format!("[{}1]", "1,".repeat(3_998)).as_bytes(), &Limits::intent()).is_ok());
    check_refused(format!("\"{}\"", "x".repeat(8_193)), &Limits::intent(), "json_string_too_long", "");
    check_refused(" ".repeat(65_537), &Limits::intent(), "json_too_large", "");
}
