//! What is built or copied holds what was asked for and nothing else, and its size is known before it is written.

use json::{Builder, Document, Form, Kind, Map, Node, Piece, Value, canonical, json};
use proptest::prelude::*;

fn document(value: &Value) -> Document {
    Document::of(value).unwrap()
}

/// Everything in a value, itself included.
fn inside(value: &Value) -> Vec<&Value> {
    let mut found = vec![value];
    let mut next = 0;
    while let Some(value) = found.get(next).copied() {
        found.extend(value.as_array().into_iter().flatten());
        found.extend(value.as_object().into_iter().flat_map(Map::values));
        next += 1;
    }
    found
}

/// Values of which each scalar has as many bytes as are counted for its kind.
fn measured() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Bool(false)),
        (10_000_000..99_999_999).prop_map(Value::from),
        "[a-z]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,60}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Checks what a builder says about a value before it is finished, and the document after it.
fn check_sizes(value: &Value, make: impl Fn(&mut Builder) -> Piece) {
    let mut builder = Builder::default();
    let root = make(&mut builder);
    let (most, bulk) = (builder.written_at_most(), builder.bulk());
    let document = builder.finish(root);
    let written = canonical(document.root()).len();
    // A comma is counted behind the last value of each container, too.
    let filled = inside(value).iter().filter(|value| children(value) > 0).count();
    assert_eq!(document.written_bytes(), written + filled, "{value}");
    assert!(document.written_bytes() <= most, "{} above {most}: {value}", document.written_bytes());
    // Texts of at most fourteen bytes stand in their values; the outermost value has no place yet.
    let texts = inside(value).into_iter().filter_map(|value| value.as_str()).map(str::len).filter(|len| *len > 14);
    assert_eq!(bulk, document.nodes() - 1 + texts.sum::<usize>(), "{value}");
    assert!(bulk <= written, "{bulk} above {written}: {value}");
}

fn children(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len) + value.as_object().map_or(0, Map::len)
}

fn check_all_sizes(value: &Value) {
    let read = document(value);
    check_sizes(value, |builder| builder.copy(read.root()));
    check_sizes(value, |builder| builder.value(value).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_size_of_what_is_built_is_known_before_it_is_written(value in measured()) {
        check_all_sizes(&value);
    }
}

#[test]
fn names_and_texts_count_wherever_they_stand() {
    let (name, text) = ("n".repeat(100), "t".repeat(200));
    for value in [
        json!(false),
        json!(text),
        json!([text, text]),
        json!({ &name: false }),
        json!([{ &name: false }, { &name: text }]),
        json!({ &name: { &name: [] , "other": {} } }),
    ] {
        check_all_sizes(&value);
    }
}

#[test]
fn copies_of_many_documents_keep_their_names() {
    let value = |number: usize| json!({ format!("a{number}"): [{ format!("b{number}"): number }], "same": {} });
    let read: Vec<Document> = (0..6).map(|number| document(&value(number))).collect();
    let mut builder = Builder::default();
    // Twice with one builder, which knows the names by then.
    for _ in 0..2 {
        let open = builder.open();
        for source in read.iter().chain(&read).chain(read.iter().rev()) {
            let copy = builder.copy(source.root());
            builder.push(copy);
        }
        let list = builder.array(open, &Document::default());
        let expected: Value = (0..6).chain(0..6).chain((0..6).rev()).map(value).collect();
        assert_eq!(builder.finish(list).root().to_value(), expected);
    }
}

/// A container of finished values.
fn container(builder: &mut Builder, kind: Kind, values: &[Piece]) -> Piece {
    let open = builder.open();
    values.iter().for_each(|piece| builder.push(*piece));
    match kind {
        Kind::Object => {
            let names: Vec<String> = (0..values.len()).map(|number| format!("n{number}")).collect();
            let mut form = Form::of(names.iter().map(String::as_str)).unwrap();
            builder.object(open, &mut form, &Document::default())
        }
        _ => builder.array(open, &Document::default()),
    }
}

fn texts<const COUNT: usize>(builder: &mut Builder, text: &str) -> [Piece; COUNT] {
    [(); COUNT].map(|()| builder.text(text))
}

/// Checks that a copy has all of a value, and not the strangers that lie between its parts.
#[track_caller]
fn check_copy(builder: &mut Builder, node: Node<'_>) {
    let copy = builder.copy(node);
    let copied = builder.finish(copy);
    let value = node.to_value();
    assert_eq!(copied.root().to_value(), value);
    assert_eq!(copied.nodes(), inside(&value).len(), "{value}");
}

#[test]
fn a_copy_leaves_out_what_lies_between_its_parts() {
    for kind in [Kind::Array, Kind::Object] {
        let mut builder = Builder::default();
        let three = texts::<3>(&mut builder, "a part");
        let inner = container(&mut builder, kind, &three);
        let stranger = texts::<1>(&mut builder, "a stranger");
        container(&mut builder, Kind::Array, &stranger);
        let last = builder.null();
        let root = container(&mut builder, Kind::Array, &[inner, last]);
        let mixed = builder.finish(root);
        check_copy(&mut builder, mixed.root());
    }
}

#[test]
fn a_copy_has_what_lies_before_all_its_other_parts() {
    let kinds = [Kind::Array, Kind::Object];
    for (outer, inner) in kinds.into_iter().flat_map(|outer| kinds.map(|inner| (outer, inner))) {
        let mut builder = Builder::default();
        let two = texts::<2>(&mut builder, "finished first");
        let deep = container(&mut builder, inner, &two);
        let one = texts::<1>(&mut builder, "finished second");
        let early = container(&mut builder, outer, &one);
        // As many strangers as there are values that lie elsewhere.
        let strangers = texts::<2>(&mut builder, "a stranger");
        let strangers = container(&mut builder, Kind::Array, &strangers);
        let late = container(&mut builder, outer, &[deep]);
        let pair = container(&mut builder, Kind::Array, &[early, late]);
        let root = container(&mut builder, Kind::Array, &[strangers, pair]);
        let mixed = builder.finish(root);
        for node in [mixed.root(), mixed.root().at(0).unwrap(), mixed.root().at(1).unwrap()] {
            check_copy(&mut builder, node);
        }
    }
}

#[test]
fn a_builder_forgets_what_was_begun() {
    let value = json!({"a": ["a text that is longer than a slot"], "b": 1});
    let mut builder = Builder::default();
    let piece = builder.value(&value).unwrap();
    builder.open();
    builder.push(piece);
    builder.clear();
    assert_eq!((builder.bulk(), builder.pushed(Builder::default().open())), (0, 0));
    let root = builder.value(&value).unwrap();
    let document = builder.finish(root);
    assert_eq!((document.root().to_value(), document.nodes()), (value.clone(), inside(&value).len()));
}

#[test]
fn an_object_can_have_the_names_of_another() {
    let source = document(&json!({"list": [1], "name": "x", "note": "a text that is longer than a slot"}));
    let mut builder = Builder::default();
    let open = builder.open();
    for piece in [builder.bool(true), builder.null()] {
        builder.push(piece);
    }
    builder.push_copy(source.root().get("note").unwrap());
    let object = builder.object_like(open, source.root(), &source).unwrap();
    let expected = json!({"list": true, "name": null, "note": "a text that is longer than a slot"});
    assert_eq!(builder.finish(object).root().to_value(), expected);

    let open = builder.open();
    assert!(builder.object_like(open, source.root().get("list").unwrap(), &source).is_none());
}

#[test]
fn one_more_member_stands_where_its_name_belongs() {
    for name in ["", "a", "b", "bb", "c", "d", "e", "\u{e000}", "\u{1f600}"] {
        let mut value = json!({"a": 1, "c": [2], "d": {"x": 3}});
        let is_new = value.get(name).is_none();
        let source = document(&value);
        let mut builder = Builder::default();
        let object = builder.copy(source.root());
        let more = builder.text("more");
        let longer = builder.with_member(object, name, more);
        assert_eq!(longer.is_some(), is_new, "{name}");
        if let Some(longer) = longer {
            value[name] = json!("more");
            assert_eq!(builder.finish(longer).root().to_value(), value);
        }
    }
}
