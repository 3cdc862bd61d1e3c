//! RFC 0020 §3.5: what others say about a candidate's quality.
//!
//! A piece of evidence is a record that somebody signed about somebody else, or about one record of theirs. Nobody's
//! word about himself counts. For each signal the latest word of each issuer counts once: scores are averaged, latency
//! and cooling-off time are the worst that were seen, the conformance level is the one attested last. What is past its
//! date is as if it had not been said.

use aql::{Instant, Level, Signals};
use json::Node;
use std::collections::{HashMap, HashSet, VecDeque};

/// Withdrawn words that are remembered for answers whose pages are still being read.
const RETIRED_MAX: usize = 16_384;

/// The moment that a question is answered for, however long its pages take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// The last change that counts.
    pub(crate) sequence: u64,
}

/// What is known about everybody.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    subjects: HashMap<String, Words>,
    sources: HashMap<u64, String>,
    /// Whose words went, the first to go first.
    retired: VecDeque<String>,
    /// The last change that took a word away which is forgotten since.
    forgotten: u64,
}

/// What is said about one subject.
#[derive(Debug, Default)]
struct Words {
    /// In the order in which it was said.
    standing: Vec<Word>,
    /// What no longer counts, the first to go first.
    gone: VecDeque<(u64, Word)>,
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
        self.subjects.entry(subject.to_owned()).or_default().standing.push(word);
    }

    /// Takes a record out that the change `at` withdrew or replaced; questions about earlier moments still see it.
    pub(crate) fn remove(&mut self, source: u64, at: u64) {
        let Some(subject) = self.sources.remove(&source) else { return };
        let Some(words) = self.subjects.get_mut(&subject) else { return };
        let Some(position) = words.standing.iter().position(|word| word.source == source) else { return };
        words.gone.push_back((at, words.standing.remove(position)));
        self.retired.push_back(subject);
        while self.retired.len() > RETIRED_MAX {
            self.forget_one();
        }
    }

    fn forget_one(&mut self) {
        let Some(subject) = self.retired.pop_front() else { return };
        let Some(words) = self.subjects.get_mut(&subject) else { return };
        if let Some((at, _)) = words.gone.pop_front() {
            self.forgotten = self.forgotten.max(at);
        }
        if words.standing.is_empty() && words.gone.is_empty() {
            self.subjects.remove(&subject);
        }
    }

    /// Whether nobody said anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// Whether everything that was known at a moment is still known.
    pub(crate) fn reaches(&self, moment: Moment) -> bool {
        self.forgotten <= moment.sequence
    }

    /// What is known about a subject at a moment; nothing when nobody's word counts.
    pub(crate) fn about(&self, subject: &str, moment: Moment) -> Option<Signals> {
        let said = self.subjects.get(subject)?;
        // Changes rise, so those that still counted then are the last to have gone.
        let later = said.gone.iter().rev().take_while(|(at, _)| *at > moment.sequence).map(|(_, word)| word);
        let mut words: Vec<&Word> = said.standing.iter().chain(later).filter(|word| word.counts(moment)).collect();
        if words.is_empty() {
            return None;
        }
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.source));
        Some(Signals {
            performance_score: mean(&latest(&words, |signals| signals.performance_score)),
            provider_reputation: mean(&latest(&words, |signals| signals.provider_reputation)),
            latency_p99_ms: latest(&words, |signals| signals.latency_p99_ms).into_iter().reduce(f64::max),
            conformance_level: words.iter().find_map(|word| word.signals.conformance_level.clone()),
            cooling_off_minutes: latest(&words, |signals| signals.cooling_off_minutes).into_iter().reduce(f64::min),
        })
    }
}

impl Word {
    fn counts(&self, moment: Moment) -> bool {
        self.source <= moment.sequence && self.valid_until.is_none_or(|until| moment.now <= until)
    }
}

/// What each issuer said last about one signal, in the order in which it was said; `words` has the last one first.
fn latest(words: &[&Word], signal: fn(&Signals) -> Option<f64>) -> Vec<f64> {
    let mut heard = HashSet::new();
    let said = words.iter().filter_map(|word| Some((&word.issuer, signal(&word.signals)?)));
    let mut numbers: Vec<f64> = said.filter(|(issuer, _)| heard.insert(*issuer)).map(|(_, number)| number).collect();
    numbers.reverse();
    numbers
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

    fn at(sequence: u64) -> Moment {
        Moment { now: Instant::parse_rfc3339("2026-03-01T00:00:00Z").unwrap(), sequence }
    }

    fn say(evidence: &mut Evidence, source: u64, issuer: &str, mut record: json::Value) {
        record["subject_did"] = json!("did:web:s");
        evidence.insert(source, issuer, Document::of(&record).unwrap().root());
    }

    #[test]
    fn each_issuer_counts_once_and_nobody_for_himself() {
        let mut evidence = Evidence::default();
        let mut score = |source, issuer: &str, score: f64, until: &str| {
            let record = json!({"performance_score": score, "latency_p99_ms": source * 10, "valid_until": until});
            say(&mut evidence, source, issuer, record);
        };
        score(1, "did:key:a", 0.2, "2027-01-01T00:00:00Z");
        score(2, "did:key:b", 0.5, "2027-01-01T00:00:00Z");
        score(3, "did:key:a", 0.9, "2027-01-01T00:00:00Z");
        score(4, "did:web:s", 1.0, "2027-01-01T00:00:00Z");
        score(5, "did:key:c", 0.0, "2026-01-01T00:00:00Z");
        let signals = evidence.about("did:web:s", at(5)).unwrap();
        assert_eq!((signals.performance_score, signals.latency_p99_ms), (Some(0.7), Some(30.0)));
        evidence.remove(3, 6);
        assert_eq!(evidence.about("did:web:s", at(6)).unwrap().performance_score, Some(0.35));
        [1, 2, 5].iter().for_each(|source| evidence.remove(*source, 7));
        assert_eq!(evidence.about("did:web:s", at(7)), None);
    }

    #[test]
    fn a_word_about_one_signal_leaves_the_others_standing() {
        let mut evidence = Evidence::default();
        say(&mut evidence, 1, "did:key:a", json!({"performance_score": 0.4, "conformance_level": "L2"}));
        say(&mut evidence, 2, "did:key:a", json!({"latency_p99_ms": 70}));
        let signals = evidence.about("did:web:s", at(2)).unwrap();
        assert_eq!((signals.performance_score, signals.latency_p99_ms), (Some(0.4), Some(70.0)));
        assert_eq!(signals.conformance_level, Level::parse("L2"));
    }

    #[test]
    fn what_has_expired_is_as_if_it_had_not_been_said() {
        let mut evidence = Evidence::default();
        let record = json!({"performance_score": 0.4, "valid_until": "2026-02-28T23:59:59Z"});
        say(&mut evidence, 1, "did:key:a", record);
        assert_eq!(evidence.about("did:web:s", at(1)), None);
    }

    #[test]
    fn an_earlier_moment_sees_what_was_said_then() {
        let mut evidence = Evidence::default();
        let score =
            |evidence: &Evidence, sequence| evidence.about("did:web:s", at(sequence)).unwrap().performance_score;
        say(&mut evidence, 1, "did:key:a", json!({"performance_score": 0.4}));
        evidence.remove(1, 2);
        say(&mut evidence, 2, "did:key:a", json!({"performance_score": 0.8}));
        assert_eq!((score(&evidence, 1), score(&evidence, 2)), (Some(0.4), Some(0.8)));
        for source in 3..3 + RETIRED_MAX as u64 {
            assert!(evidence.reaches(at(1)));
            say(&mut evidence, source, "did:key:b", json!({}));
            evidence.remove(source, source);
        }
        assert!(!evidence.reaches(at(1)) && evidence.reaches(at(2)));
    }
}
