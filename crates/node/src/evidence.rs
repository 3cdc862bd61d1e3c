//! RFC 0020 §3.5: what others say about a candidate's quality.
//!
//! A piece of evidence is a record that somebody signed about somebody else, or about one record of theirs. Nobody's word about himself counts. For
//! each signal the latest word of each issuer counts once: scores are averaged, latency and cooling-off time are
//! the worst that were seen, the conformance level is the one attested last. What is past its date is as if it had not been said.

use aql::{Instant, Level, Signals};
use json::Node;
use std::collections::HashMap;

/// What is known about everybody.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    subjects: HashMap<String, Vec<Word>>,
    sources: HashMap<u64, String>,
}

/// What one issuer said about one subject.
#[derive(Clone, Debug)]
struct Word {
    source: u64,
    issuer: String,
    signals: Signals,
    valid_until: Option<Instant>,
}

impl Evidence {
    /// Takes a record of evidence in; one that says nothing about anybody else is kept by the store alone.
    pub(crate) fn insert(&mut self, source: u64, issuer: &str, record: Node<'_>) {
        let Some(subject) = record.get("subject_did").and_then(Node::as_str).filter(|subject| *subject != issuer)
        else {
            return;
        };
        let word = Word {
            source,
            issuer: issuer.to_owned(),
            signals: signals(record),
            valid_until: record.get("valid_until").and_then(Node::as_str).and_then(Instant::parse_rfc3339),
        };
        self.sources.insert(source, subject.to_owned());
        self.subjects.entry(subject.to_owned()).or_default().push(word);
    }

    /// Takes a record out that was withdrawn or replaced.
    pub(crate) fn remove(&mut self, source: u64) {
        let Some(subject) = self.sources.remove(&source) else { return };
        if let Some(words) = self.subjects.get_mut(&subject) {
            words.retain(|word| word.source != source);
            if words.is_empty() {
                self.subjects.remove(&subject);
            }
        }
    }

    /// Whether nobody said anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// What is known about a subject now.
    pub(crate) fn about(&self, subject: &str, now: Instant) -> Option<Signals> {
        let valid = |word: &&Word| word.valid_until.is_none_or(|until| now <= until);
        let mut latest: HashMap<&str, &Word> = HashMap::new();
        for word in self.subjects.get(subject)?.iter().filter(valid) {
            let known = latest.entry(&word.issuer).or_insert(word);
            if known.source < word.source {
                *known = word;
            }
        }
        let mut words: Vec<&Word> = latest.into_values().collect();
        words.sort_unstable_by_key(|word| word.source);
        let numbers = |signal: fn(&Signals) -> Option<f64>| -> Vec<f64> {
            words.iter().filter_map(|word| signal(&word.signals)).collect()
        };
        Some(Signals {
            performance_score: mean(&numbers(|signals| signals.performance_score)),
            provider_reputation: mean(&numbers(|signals| signals.provider_reputation)),
            latency_p99_ms: numbers(|signals| signals.latency_p99_ms).into_iter().reduce(f64::max),
            conformance_level: words.iter().rev().find_map(|word| word.signals.conformance_level.clone()),
            cooling_off_minutes: numbers(|signals| signals.cooling_off_minutes).into_iter().reduce(f64::min),
        })
    }
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn signals(record: Node<'_>) -> Signals {
    let number = |name: &str| record.get(name).and_then(Node::as_f64);
    let fraction = |name: &str| number(name).filter(|value| (0.0..=1.0).contains(value));
    Signals {
        performance_score: fraction("performance_score"),
        provider_reputation: fraction("provider_reputation"),
        latency_p99_ms: number("latency_p99_ms").filter(|latency| *latency >= 0.0),
        conformance_level: record.get("conformance_level").and_then(Node::as_str).and_then(Level::parse),
        cooling_off_minutes: number("cooling_off_minutes").filter(|minutes| *minutes >= 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, json};

    #[test]
    fn each_issuer_counts_once_and_nobody_for_himself() {
        let mut evidence = Evidence::default();
        let now = Instant::parse_rfc3339("2026-03-01T00:00:00Z").unwrap();
        let mut say = |source, issuer: &str, score: f64, until: &str| {
            let record = json!({"subject_did": "did:web:s", "performance_score": score, "latency_p99_ms": source * 10,
                "valid_until": until});
            evidence.insert(source, issuer, Document::of(&record).unwrap().root());
        };
        say(1, "did:key:a", 0.2, "2027-01-01T00:00:00Z");
        say(2, "did:key:b", 0.5, "2027-01-01T00:00:00Z");
        say(3, "did:key:a", 0.9, "2027-01-01T00:00:00Z");
        say(4, "did:web:s", 1.0, "2027-01-01T00:00:00Z");
        say(5, "did:key:c", 0.0, "2026-01-01T00:00:00Z");
        let signals = evidence.about("did:web:s", now).unwrap();
        assert_eq!((signals.performance_score, signals.latency_p99_ms), (Some(0.7), Some(30.0)));
        evidence.remove(3);
        assert_eq!(evidence.about("did:web:s", now).unwrap().performance_score, Some(0.35));
        [1, 2, 5].iter().for_each(|source| evidence.remove(*source));
        assert!(evidence.is_empty() && evidence.about("did:web:s", now).is_none());
    }
}
