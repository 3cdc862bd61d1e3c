//! The corpus is the same every time, about as large as promised, and as uneven as a market.

use bench::corpus::{Corpus, category};
use bench::intent::intent;
use bench::question::{Asker, Kind};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

fn lines(seed: u64, count: u64) -> Vec<String> {
    let corpus = Corpus::new(seed);
    let line = |number| {
        let mut line = String::new();
        corpus.write(number, &mut line);
        line
    };
    (0..count).map(line).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_memory_and_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifests.ndjson");
    let bytes = Corpus::new(3).write_file(200, &path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(bytes as usize, text.len());
    assert_eq!(text.lines().collect::<Vec<_>>(), lines(3, 200));
    assert_ne!(lines(3, 200), lines(4, 200));
}

#[test]
fn manifests_are_about_as_large_as_promised_and_have_names_of_their_own() {
    let lines = lines(1, 3_000);
    let mean = lines.iter().map(String::len).sum::<usize>() / lines.len();
    assert!((1_250..1_400).contains(&mean), "{mean}");
    let (mut names, mut dids) = (HashSet::new(), HashSet::new());
    for (number, line) in lines.iter().enumerate() {
        assert!(!line.contains(['\\', '\t', '\n']), "COPY would read `{line}` differently");
        let manifest: Value = serde_json::from_str(line).unwrap();
        assert!(leaves(&manifest) >= 20, "{line}");
        assert!(names.insert(manifest["tool"]["name"].to_string()));
        assert!(dids.insert(manifest["tool"]["did"].to_string()));
        assert_eq!(manifest["tool"]["did"], Corpus::new(1).facts(number as u64).did());
        assert!(manifest["published_at"].as_str() <= manifest["updated_at"].as_str());
    }
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(leaves).sum(),
        Value::Array(elements) => elements.iter().map(leaves).sum(),
        _ => 1,
    }
}

#[test]
fn frequent_categories_are_much_more_frequent_than_rare_ones() {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    let corpus = Corpus::new(1);
    for number in 0..20_000 {
        *counts.entry(corpus.facts(number).category).or_default() += 1;
    }
    assert!(counts[&0] > 50 * counts.get(&280).copied().unwrap_or_default(), "{counts:?}");
    let expected = corpus.category_share(0) * 20_000.0;
    assert!((counts[&0] as f64 - expected).abs() < 0.1 * expected, "{} {expected}", counts[&0]);
    assert_eq!(category(0), "logistics.quotes");
}

#[test]
fn questions_are_distinct_readable_and_the_same_for_the_same_seed() {
    let corpus = Corpus::new(1);
    let draw = || {
        let mut asker = Asker::new(&corpus, 5_000, 1);
        Kind::ALL.map(|kind| (0..50).map(|_| asker.ask(kind)).collect::<Vec<_>>()).concat()
    };
    let questions = draw();
    let mut seen = HashSet::new();
    let now = aql::Instant::from_unix(1_790_000_000, 0);
    for (question, again) in questions.iter().zip(draw()) {
        assert_eq!(question.constraints, again.constraints);
        assert!(seen.insert((question.constraints.to_string(), question.ceiling.clone())));
        let document = json::Document::of(&intent(question, "urn:oap:intent:a", "did:key:z6Mk", now)).unwrap();
        let read = aql::Intent::read(document.root(), &aql::Limits::STANDARD).unwrap();
        assert_eq!(read.budget.and_then(|budget| budget.top_k()), Some(10));
        read.validity.check(read.category, now, &aql::Limits::STANDARD).unwrap();
    }
    for kind in Kind::ALL {
        let of_kind = questions.iter().filter(|question| question.kind == kind);
        let constraints: HashSet<String> = of_kind.map(|question| question.constraints.to_string()).collect();
        assert!(constraints.len() >= 40, "{} varies little: {}", kind.name(), constraints.len());
    }
}
