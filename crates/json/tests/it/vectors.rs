//! RFC 8259, RFC 8785: our own vectors, which need nobody else's data.

use json::{Document, Limits, canonical};

/// What is read, and its canonical bytes.
const READ: [(&str, &str); 24] = [
    ("null", "null"),
    (" \t\r\n true \n", "true"),
    ("-0", "0"),
    ("-0.0e-9", "0"),
    ("1E0", "1"),
    ("10e-1", "1"),
    ("0.1e1", "1"),
    ("1.0000000000000002", "1.0000000000000002"),
    ("123456789.125", "123456789.125"),
    ("1e-6", "0.000001"),
    ("1e-7", "1e-7"),
    ("-1.5e-10", "-1.5e-10"),
    ("5e-324", "5e-324"),
    ("9007199254740991e0", "9007199254740991"),
    ("0.30000000000000004", "0.30000000000000004"),
    (r#""\u0041\/\u00e9\ud834\udd1e""#, "\"A/é\u{1d11e}\""),
    (r#""\u0000\u001f\u007f\u0080""#, "\"\\u0000\\u001f\u{7f}\u{80}\""),
    (r#""\u005c\u0022""#, r#""\\\"""#),
    ("[ ]", "[]"),
    ("{ }", "{}"),
    ("[1 , [2,{ }] ]", "[1,[2,{}]]"),
    (r#"{"b":1,"a":{"d":2,"c":3}}"#, r#"{"a":{"c":3,"d":2},"b":1}"#),
    (r#"{"10":0,"9":0,"":0,"A":0,"a":0}"#, r#"{"":0,"10":0,"9":0,"A":0,"a":0}"#),
    ("{\"\u{ffff}\":0,\"\u{10000}\":0,\"\u{d7ff}\":0}", "{\"\u{d7ff}\":0,\"\u{10000}\":0,\"\u{ffff}\":0}"),
];

/// What is refused: the text, the code and the place.
const REFUSED: [(&str, &str, &str); 34] = [
    ("", "json_syntax", ""),
    ("{\"a\":1}}", "json_syntax", ""),
    ("[1,2", "json_syntax", ""),
    ("[1,,2]", "json_syntax", "/1"),
    ("[,1]", "json_syntax", "/0"),
    ("{\"a\":1,}", "json_syntax", ""),
    ("{\"a\" 1}", "json_syntax", ""),
    ("{1:1}", "json_syntax", ""),
    ("[[1}]", "json_syntax", "/0"),
    ("{\"a\":{\"b\":1]}", "json_syntax", "/a"),
    ("[TRUE]", "json_syntax", "/0"),
    ("[-]", "json_syntax", "/0"),
    ("[1.e3]", "json_syntax", "/0"),
    ("[0x1]", "json_syntax", ""),
    ("[-Infinity]", "json_syntax", "/0"),
    ("[\"a\u{1}\"]", "json_syntax", "/0"),
    ("[\"a\nb\"]", "json_syntax", "/0"),
    ("[\"\\u12\"]", "json_syntax", "/0"),
    ("[\"\\a\"]", "json_syntax", "/0"),
    ("[\"", "json_syntax", "/0"),
    ("[1]\u{a0}", "json_syntax", ""),
    ("\u{feff}[1]", "json_syntax", ""),
    ("[/*1*/]", "json_syntax", "/0"),
    (r#"{"x":{"y":[0,{"z":1,"z":1}]}}"#, "json_duplicate_key", "/x/y/1/z"),
    (r#"{"a/b~":1,"\u0061\/b\u007e":2}"#, "json_duplicate_key", "/a~1b~0"),
    (r#"[["\ud800"]]"#, "invalid_unicode", "/0/0"),
    (r#"["\ud800\u0041"]"#, "invalid_unicode", "/0"),
    (r#"["\udfff"]"#, "invalid_unicode", "/0"),
    (r#"{"\ud800":1}"#, "invalid_unicode", ""),
    ("[1,9007199254740993]", "number_out_of_range", "/1"),
    ("{\"n\":-1e16}", "number_out_of_range", "/n"),
    ("[1e-400]", "number_out_of_range", "/0"),
    ("[1e999999999999999999]", "number_out_of_range", "/0"),
    ("[0.0000000000000000000000000000001]", "number_too_long", "/0"),
];

#[test]
fn what_is_read_has_its_canonical_bytes() {
    for (text, expected) in READ {
        let document = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
        assert_eq!(String::from_utf8(canonical(document.root())).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_refused_is_refused_where_it_is_wrong() {
    for (text, code, at) in REFUSED {
        let error = Document::parse(text.as_bytes(), &Limits::DOCUMENT).expect_err(text);
        assert_eq!((error.code.name(), error.at.as_str()), (code, at), "{text:?}");
        assert!(error.offset <= text.len(), "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    for (bytes, at) in [
        (b"\xff".as_slice(), ""),
        (b"[\"\x80\"]", "/0"),
        (b"{\"k\":\"\xc0\xaf\"}", "/k"),
        (b"{\"k\":[1,\"\xed\xa0\x80\"]}", "/k/1"),
        (b"[\"\xf4\x90\x80\x80\"]", "/0"),
        (b"[\"abc\xe2\x82", "/0"),
    ] {
        let error = Document::parse(bytes, &Limits::DOCUMENT).unwrap_err();
        assert_eq!((error.code.name(), error.at.as_str()), ("invalid_unicode", at), "{bytes:?}");
    }
}
