//! RFC 0024 §3.3: mappings there and back, one after the other, and what they say about loss.

use crate::random::{Chance, document, mapping};
use json::Document;
use proptest::prelude::*;
use schema::{Mapping, Translation, Translator, compose};
use serde_json::{Value, json};

pub(crate) fn read(value: &Value) -> Result<Mapping, schema::Refusal> {
    Mapping::read(Document::of(value).unwrap().root())
}

/// A value without a place, and without what stands empty around it then.
fn without(value: Value, path: &[String]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    match value {
        Value::Object(mut members) => {
            if let Some(left) = members.remove(first).and_then(|inner| without(inner, rest)) {
                members.insert(first.clone(), left);
            }
            (!members.is_empty()).then_some(Value::Object(members))
        }
        Value::Array(mut elements) => {
            if let Some(element) = first.parse::<usize>().ok().and_then(|index| elements.get_mut(index)) {
                *element = without(element.take(), rest).unwrap_or(Value::Null);
            }
            // What a mask hides at the end of a list may be there or not.
            while elements.last().is_some_and(Value::is_null) {
                elements.pop();
            }
            (!elements.is_empty()).then_some(Value::Array(elements))
        }
        other => Some(other),
    }
}

fn masked(value: &Value, masks: &[String]) -> Value {
    let mut value = Some(value.clone());
    for mask in masks {
        let path: Vec<String> = json::Pointer::segments(mask).map(Result::unwrap).collect();
        value = value.and_then(|value| without(value, &path));
    }
    value.unwrap_or_else(|| json!({}))
}

/// The document comes back, outside what the two reports name.
fn there_and_back(mapping: &Mapping, source: &Value) -> Result<(), TestCaseError> {
    let Ok(there) = mapping.translate(source) else { return Ok(()) };
    let inverse = mapping.invert().unwrap();
    let Ok(back) = inverse.translate(&there.document) else { return Ok(()) };
    let lost = there.losses.iter().filter_map(|loss| loss.from.as_ref());
    let brought = back.losses.iter().filter_map(|loss| loss.to.as_ref());
    let masks: Vec<String> = lost.chain(brought).map(ToString::to_string).collect();
    prop_assert_eq!(
        json::canonical_value(&masked(source, &masks)),
        json::canonical_value(&masked(&back.document, &masks)),
        "\nmapping {}\nsource {}\nthere {}\nback {}\nmasks {:?}",
        mapping.to_value(),
        source,
        there.document,
        back.document,
        masks
    );
    Ok(())
}

/// The fast way says what the slow one says, word for word, whatever it remembers of other documents.
fn both_ways(translator: &mut Translator, source: &Document) -> Result<(), TestCaseError> {
    let slow = translator.mapping().translate(&source.root().to_value());
    let described = format!("mapping {}\nsource {}", translator.mapping().to_value(), source.root().to_value());
    match (translator.translate(source), slow) {
        (Ok(fast), Ok(slow)) => {
            let bytes = String::from_utf8(json::canonical(fast.document().root())).unwrap();
            prop_assert_eq!(bytes.as_bytes(), json::canonical_value(&slow.document), "{}\ngave {}", described, bytes);
            prop_assert_eq!(fast.is_faithful(), slow.losses.is_empty());
            prop_assert_eq!(fast.losses(), slow.losses, "{}", described);
        }
        (fast, slow) => prop_assert_eq!(fast.err(), slow.err(), "{}", described),
    }
    Ok(())
}

/// Few in every run; more when somebody asks for them.
fn cases() -> u32 {
    option_env!("RIALTO_CASES").and_then(|cases| cases.parse().ok()).unwrap_or(4_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn back_after_there_is_where_we_were_outside_the_reported_loss(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        if let Ok(mapping) = read(&mapping(&mut chance, "1.0", "1.1")) {
            for _ in 0..8 {
                there_and_back(&mapping, &document(&mut chance, 3))?;
            }
        }
    }

    #[test]
    fn a_composed_mapping_does_what_its_parts_do_one_after_the_other(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        let first = read(&mapping(&mut chance, "1.0", "1.1"));
        let second = read(&mapping(&mut chance, "1.1", "2.0"));
        let (Ok(first), Ok(second)) = (first, second) else { return Ok(()) };
        // What is composed is also what it is after a journey.
        let composed = read(&compose(&first, &second).unwrap().to_value()).unwrap();
        for _ in 0..4 {
            let source = document(&mut chance, 3);
            let Ok(there) = first.translate(&source) else { continue };
            let Ok(further) = second.translate(&there.document) else { continue };
            prop_assert_eq!(composed.translate(&source).unwrap().document, further.document);
        }
    }

    #[test]
    fn the_fast_way_gives_the_document_and_the_report_of_the_slow_one(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        let (first, second) = (mapping(&mut chance, "1.0", "1.1"), mapping(&mut chance, "1.1", "2.0"));
        let (Ok(first), second) = (read(&first), read(&second)) else { return Ok(()) };
        let mut mappings = vec![first.invert().unwrap(), first.clone()];
        mappings.extend(second.iter().map(|second| compose(&first, second).unwrap()));
        let mut shapes = json::Shapes::default();
        let documents: Vec<Document> = (0..6).map(|round| {
            let bytes = document(&mut chance, 3).to_string();
            match round % 2 {
                0 => Document::parse(bytes.as_bytes(), &json::Limits::DOCUMENT).unwrap(),
                _ => Document::parse_with(bytes.as_bytes(), &json::Limits::DOCUMENT, &mut shapes).unwrap(),
            }
        }).collect();
        for mapping in mappings {
            let mut translator = Translator::new(&mapping);
            // Twice, so that what is remembered is used.
            for source in documents.iter().chain(&documents) {
                both_ways(&mut translator, source)?;
            }
        }
    }

    #[test]
    fn a_mapping_is_read_as_it_was_written(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        if let Ok(mapping) = read(&mapping(&mut chance, "1.0", "1.1")) {
            let again = read(&mapping.to_value()).unwrap();
            prop_assert_eq!(again.to_value(), mapping.to_value());
            prop_assert_eq!(again.digest(), mapping.digest());
            let turned = read(&mapping.invert().unwrap().to_value()).unwrap();
            prop_assert_eq!(turned.to_value(), mapping.invert().unwrap().to_value());
        }
    }
}

#[test]
fn the_generator_makes_mappings_that_are_accepted() {
    let accepted = (0..1_000).filter(|seed| read(&mapping(&mut Chance(*seed), "1.0", "1.1")).is_ok()).count();
    assert!(accepted > 300, "{accepted} of 1000");
    let read = (0..1_000).filter_map(|seed| read(&mapping(&mut Chance(seed), "1.0", "1.1")).ok());
    let fast = read.filter(|mapping| Translator::new(mapping).is_compiled()).count();
    assert!(fast * 3 > accepted, "{fast} of {accepted} have a fast way");
}

/// The report of a translation, entry by entry.
pub(crate) fn told(translation: &Translation) -> Vec<(String, String)> {
    let place = |place: &Option<json::Pointer>| place.as_ref().map(ToString::to_string).unwrap_or_default();
    let entry =
        |loss: &schema::Loss| (loss.kind.name().to_owned(), format!("{}>{}", place(&loss.from), place(&loss.to)));
    translation.losses.iter().map(entry).collect()
}

#[test]
fn the_shortest_way_is_taken_and_ways_back_count() {
    let edge = |from: &str, to: &str| {
        let mut value = mapping(&mut Chance(1), from, to);
        for name in ["constants", "unset", "derived"] {
            value.as_object_mut().unwrap().remove(name);
        }
        value["rules"] = json!([]);
        value["passthrough"] = json!(true);
        read(&value).unwrap()
    };
    let edges = [edge("1.0", "1.1"), edge("1.1", "1.2"), edge("1.2", "2.0"), edge("1.0", "1.2")];
    let edition = |version: &str| schema::Edition {
        schema: schema::SchemaId::parse("https://schemas.example/thing.json").unwrap(),
        version: schema::Version::parse(version).unwrap(),
    };
    let way = |from: &str, to: &str| schema::route(&edges, &edition(from), &edition(to));
    assert_eq!(way("1.0", "2.0").unwrap().steps(), 2);
    assert_eq!(way("2.0", "1.1").unwrap().steps(), 2);
    assert_eq!(way("1.1", "1.0").unwrap().steps(), 1);
    assert_eq!(way("1.0", "3.0").unwrap_err().code.name(), "mapping_route_missing");
    assert_eq!(way("1.0", "1.0").unwrap_err().code.name(), "mapping_route_missing");
}
