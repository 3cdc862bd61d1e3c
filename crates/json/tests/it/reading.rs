//! Closed documents: what is there is read with its place, and each mistake has its code, its place and its words.

use json::{At, Codes, Document, Mistake, Refusal, Value, json};

/// The codes of a text that knows no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(Mistake);

impl From<Mistake> for Code {
    fn from(mistake: Mistake) -> Self {
        Self(mistake)
    }
}

impl Codes for Code {}

type Here<'a> = At<'a, Refusal<Code>>;
type Reader = fn(&Here<'_>) -> Result<(), Refusal<Code>>;

/// What belongs to each way of reading.
const READERS: [(&str, Reader); 6] = [
    ("an object", |here| here.object()),
    ("an object", |here| here.closed(&[])),
    ("an object", |here| here.members().map(|_| ())),
    ("an array", |here| here.elements().map(|_| ())),
    ("a string", |here| here.string().map(|_| ())),
    ("a boolean", |here| here.boolean().map(|_| ())),
];

#[track_caller]
fn refused<T: std::fmt::Debug>(read: Result<T, Refusal<Code>>, mistake: Mistake, at: &str, words: &str) {
    let refusal = read.expect_err("should be refused");
    assert_eq!((refusal.code, refusal.at.as_str(), refusal.detail.as_str()), (Code(mistake), at, words));
    assert_eq!(refusal.limit, None);
}

#[test]
fn each_way_of_reading_takes_one_kind_and_names_the_others() {
    let kinds = [
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!(1), "a number"),
        (json!("x"), "a string"),
        (json!([]), "an array"),
        (json!({}), "an object"),
    ];
    for (value, kind) in kinds {
        let document = Document::of(&json!({ "it": value })).unwrap();
        let here = Here::root(document.root()).required("it").unwrap();
        for (expected, read) in READERS {
            if kind == expected {
                read(&here).unwrap();
            } else {
                let words = format!("{expected} belongs here, not {kind}");
                refused(read(&here), Mistake::WrongType, "/it", &words);
            }
        }
    }
}

#[test]
fn what_is_there_is_read_with_its_place() {
    let value = json!({"name": "a text", "open": true, "shut": false, "a/list": ["x", {"y": 1}]});
    let document = Document::of(&value).unwrap();
    let root = Here::root(document.root());
    let inside = |name: &str| root.member(name).unwrap();
    assert_eq!(inside("name").string().unwrap(), "a text");
    assert_eq!(["open", "shut"].map(|name| inside(name).boolean().unwrap()), [true, false]);

    let placed = |here: &Here<'_>| (here.at.as_str().to_owned(), here.node.to_value());
    let members: Vec<(&str, (String, Value))> =
        root.members().unwrap().iter().map(|(name, here)| (*name, placed(here))).collect();
    let expected = [("a/list", "/a~1list"), ("name", "/name"), ("open", "/open"), ("shut", "/shut")];
    assert_eq!(members, expected.map(|(name, at)| (name, (at.to_owned(), value[name].clone()))));

    let elements: Vec<(String, Value)> = inside("a/list").elements().unwrap().iter().map(placed).collect();
    assert_eq!(elements, [("/a~1list/0".to_owned(), json!("x")), ("/a~1list/1".to_owned(), json!({"y": 1}))]);
    assert!(root.member("list").is_none() && inside("name").member("name").is_none());
}

#[test]
fn a_closed_document_has_what_it_must_and_nothing_else() {
    let document = Document::of(&json!({"a": {"b": 1, "c/d": 2}})).unwrap();
    let root = Here::root(document.root());
    root.closed(&["z", "a"]).unwrap();
    let inner = root.required("a").unwrap();
    inner.closed(&["b", "c/d"]).unwrap();
    let words = "there is no such member here; known are b, e";
    refused(inner.closed(&["b", "e"]), Mistake::UnknownField, "/a/c~1d", words);
    refused(inner.required("e"), Mistake::MissingField, "/a/e", "the member `e` is missing");
}
