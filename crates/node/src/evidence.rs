//! RFC 0020 §3.5: what others say about a candidate's quality.
//!
//! A piece of evidence is a record that somebody signed about somebody else, or about one record of theirs, in one of
//! three forms (`form`). Nobody's word about himself counts. What the words about a subject add up to is the formula
//! `rialto.evidence` 1.2 of `docs/decisions/0054` and `0065`: each issuer speaks once, with its latest word, and where it
//! judged several interactions with their mean, the older ones for less; all issuers of one domain weigh as much as one,
//! and all that the node has not known for long together little beside the others; scores are averaged over issuers,
//! latency and cooling-off time are the worst that were seen, the conformance level is the one attested last. What is
//! past its date is as if it had not been said.

mod form;

pub(crate) use form::{Issuer, check, issuer, subject};

use aql::{Instant, Signals};
use form::read;
use json::Node;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Withdrawn words that are remembered for answers whose pages are still being read.
const RETIRED_MAX: usize = 16_384;
/// Words of one issuer about one subject.
pub(crate) const WORDS_MAX: usize = 16;
/// Issuers that speak about one subject.
pub(crate) const ISSUERS_MAX: usize = 1_024;
/// Days after which a judgement of an interaction weighs half.
const HALF_LIFE_DAYS: f64 = 365.0;
/// Seconds for which an issuer is new to the node.
const NEW_SECONDS: i64 = 30 * 24 * 3_600;
/// What all new issuers together weigh at most, where others have spoken, too (RFC 0009 A.3).
const NEW_SHARE: f64 = 0.05;

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
    /// When the words of each owner that stand came, in milliseconds since 1970, and how many came then.
    arrivals: HashMap<String, BTreeMap<i64, u32>>,
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
    /// Whose name the issuer's is: all names of one domain have one owner.
    root: String,
    /// When it came, in milliseconds since 1970; what an operator brought in came long ago.
    came: i64,
    signals: Signals,
    valid_from: Option<Instant>,
    valid_until: Option<Instant>,
    /// The interaction that is judged, and when it was; a word about the subject as such has none.
    interaction: Option<(String, Instant)>,
}

impl Evidence {
    /// Takes a record of evidence in; one that says nothing about anybody else is kept by the store alone.
    pub(crate) fn insert(&mut self, source: u64, came: i64, publisher: &str, record: Node<'_>) {
        let Some((subject, word)) = read(source, came, publisher, record) else { return };
        *self.arrivals.entry(word.root.clone()).or_default().entry(came).or_default() += 1;
        self.sources.insert(source, subject.clone());
        self.subjects.entry(subject).or_default().standing.push(word);
    }

    /// Which bound another word of an issuer about a subject would pass, if any: its name, and how much is allowed.
    pub(crate) fn is_full(&self, subject: &str, issuer: &str) -> Option<(&'static str, usize)> {
        let words = &self.subjects.get(subject)?.standing;
        let own = words.iter().filter(|word| word.issuer == issuer).count();
        if own >= WORDS_MAX {
            return Some(("evidence.words", WORDS_MAX));
        }
        let full = own == 0 && words.len() >= ISSUERS_MAX && {
            let issuers: std::collections::HashSet<&str> = words.iter().map(|word| word.issuer.as_str()).collect();
            issuers.len() >= ISSUERS_MAX
        };
        full.then_some(("evidence.issuers", ISSUERS_MAX))
    }

    /// Takes a record out that the change `at` withdrew or replaced; questions about earlier moments still see it.
    pub(crate) fn remove(&mut self, source: u64, at: u64) {
        let Some(subject) = self.sources.remove(&source) else { return };
        let Some(words) = self.subjects.get_mut(&subject) else { return };
        let Some(position) = words.standing.iter().position(|word| word.source == source) else { return };
        let word = words.standing.remove(position);
        depart(&mut self.arrivals, &word);
        words.gone.push_back((at, word));
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
        let heard = |signal: fn(&Signals) -> Option<f64>| opinions(&words, moment, signal);
        let worst = |signal| heard(signal).into_iter().map(|opinion| opinion.value);
        let is_new = |root: &str| self.is_new(root, moment);
        Some(Signals {
            performance_score: weighed(heard(|signals| signals.performance_score), is_new),
            provider_reputation: weighed(heard(|signals| signals.provider_reputation), is_new),
            latency_p99_ms: worst(|signals: &Signals| signals.latency_p99_ms).reduce(f64::max),
            conformance_level: words.iter().find_map(|word| word.signals.conformance_level.clone()),
            cooling_off_minutes: worst(|signals: &Signals| signals.cooling_off_minutes).reduce(f64::min),
        })
    }

    /// Whether the oldest word of an owner that stands came a short while ago.
    fn is_new(&self, root: &str, moment: Moment) -> bool {
        let first = self.arrivals.get(root).and_then(|came| came.keys().next());
        first.is_none_or(|first| first.div_euclid(1_000) + NEW_SECONDS > moment.now.seconds())
    }
}

impl Word {
    fn counts(&self, moment: Moment) -> bool {
        self.source <= moment.sequence
            && self.valid_from.is_none_or(|from| from <= moment.now)
            && self.valid_until.is_none_or(|until| moment.now <= until)
    }

    /// What the word weighs: one, or for an interaction half of it after a year, a quarter after two.
    fn weight(&self, moment: Moment) -> f64 {
        let Some((_, at)) = &self.interaction else { return 1.0 };
        let days = (moment.now.seconds() - at.seconds()).max(0) / 86_400;
        // Rounded, so that every machine counts alike.
        ((-(days as f64) / HALF_LIFE_DAYS).exp2() * 1e6).round() / 1e6
    }
}

/// Takes the arrival of a word that no longer stands out of the list.
fn depart(arrivals: &mut HashMap<String, BTreeMap<i64, u32>>, word: &Word) {
    let Some(came) = arrivals.get_mut(&word.root) else { return };
    if let Some(count) = came.get_mut(&word.came) {
        *count -= 1;
        if *count == 0 {
            came.remove(&word.came);
        }
    }
    if came.is_empty() {
        arrivals.remove(&word.root);
    }
}

/// What one issuer says about one signal, what that weighs, and whose name it is.
struct Opinion<'a> {
    value: f64,
    weight: f64,
    root: &'a str,
}

/// What each issuer says about one signal; `words` has the last one first.
///
/// The order is that of the issuers' last words, the earliest first.
fn opinions<'a>(words: &[&'a Word], moment: Moment, signal: fn(&Signals) -> Option<f64>) -> Vec<Opinion<'a>> {
    let mut issuers: BTreeMap<&str, Vec<(&Word, f64)>> = BTreeMap::new();
    for (word, value) in words.iter().filter_map(|word| Some((*word, signal(&word.signals)?))) {
        let said = issuers.entry(word.issuer.as_str()).or_default();
        // One word about the subject as such, and one about each interaction: the latest.
        let about = |word: &Word| word.interaction.as_ref().map(|(name, _)| name.clone());
        if !said.iter().any(|(known, _)| about(known) == about(word)) {
            said.push((word, value));
        }
    }
    let mut roots: BTreeMap<&str, u32> = BTreeMap::new();
    for (word, _) in issuers.values().filter_map(|said| said.first()) {
        *roots.entry(word.root.as_str()).or_default() += 1;
    }
    let mut opinions: Vec<(u64, Opinion<'a>)> = issuers
        .into_values()
        .filter_map(|said| {
            let weighed: Vec<(f64, f64)> = said.iter().map(|(word, value)| (*value, word.weight(moment))).collect();
            let weight = weighed.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
            let latest = said.first()?.0;
            // However many names one owner has, together they weigh as much as one.
            let names = roots.get(latest.root.as_str()).copied().unwrap_or(1);
            let (value, weight) = (mean(&weighed)?, weight / f64::from(names));
            Some((latest.source, Opinion { value, weight, root: &latest.root }))
        })
        .collect();
    opinions.sort_unstable_by_key(|(source, _)| *source);
    opinions.into_iter().map(|(_, opinion)| opinion).collect()
}

/// The mean of opinions; those of new owners have their share and no more, unless nobody else has spoken.
fn weighed(opinions: Vec<Opinion<'_>>, is_new: impl Fn(&str) -> bool) -> Option<f64> {
    let (new, known): (Vec<_>, Vec<_>) = opinions.iter().partition(|opinion| is_new(opinion.root));
    let sum = |opinions: &[&Opinion<'_>]| opinions.iter().map(|opinion| opinion.weight).sum::<f64>();
    let most = sum(&known) * NEW_SHARE / (1.0 - NEW_SHARE);
    let scale = if most > 0.0 && sum(&new) > most { most / sum(&new) } else { 1.0 };
    let share = |opinion: &Opinion<'_>| if is_new(opinion.root) { scale } else { 1.0 };
    let weighed: Vec<_> = opinions.iter().map(|opinion| (opinion.value, opinion.weight * share(opinion))).collect();
    mean(&weighed)
}

/// The mean of values by their weights; nothing when nothing weighs.
fn mean(weighed: &[(f64, f64)]) -> Option<f64> {
    let weights: f64 = weighed.iter().map(|(_, weight)| weight).sum();
    (weights > 0.0).then(|| weighed.iter().map(|(value, weight)| value * weight).sum::<f64>() / weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aql::Level;
    use json::{Document, json};

    fn at(sequence: u64) -> Moment {
        Moment { now: Instant::parse_rfc3339("2026-03-01T00:00:00Z").unwrap(), sequence }
    }

    fn say(evidence: &mut Evidence, source: u64, issuer: &str, mut record: json::Value) {
        record["subject_did"] = json!("did:web:s");
        evidence.insert(source, 0, issuer, Document::of(&record).unwrap().root());
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

    /// RFC 0009 A.3: however many names an owner has, beside ten others he moves a score by a share of one in eleven.
    #[test]
    fn many_names_of_one_domain_weigh_as_much_as_one() {
        let mut evidence = Evidence::default();
        for honest in 0..10 {
            say(&mut evidence, honest, &format!("did:key:h{honest}"), json!({"performance_score": 0.2}));
        }
        for name in 0..900 {
            let issuer = format!("did:web:n{name}.owner.example");
            say(&mut evidence, 100 + name, &issuer, json!({"performance_score": 1.0}));
        }
        let score = evidence.about("did:web:s", at(2_000)).unwrap().performance_score.unwrap();
        assert!(score - 0.2 <= 1.0 / 11.0, "{score}");
        assert!((score - 3.0 / 11.0).abs() < 1e-9, "{score}");
        // Two domains are two owners.
        say(&mut evidence, 5_000, "did:web:another.example", json!({"performance_score": 1.0}));
        let score = evidence.about("did:web:s", at(6_000)).unwrap().performance_score.unwrap();
        assert!((score - 4.0 / 12.0).abs() < 1e-9, "{score}");
    }

    /// RFC 0009 A.3: however many new names there are, unrelated to each other, beside known ones they are a twentieth.
    #[test]
    fn names_that_nobody_knew_yesterday_are_a_twentieth_together() {
        let mut evidence = Evidence::default();
        let now = at(0).now.seconds() * 1_000;
        let mut say = |source: u64, came: i64, issuer: &str, score: f64| {
            let record = json!({"subject_did": "did:web:s", "performance_score": score});
            evidence.insert(source, came, issuer, Document::of(&record).unwrap().root());
        };
        let score = |evidence: &Evidence| evidence.about("did:web:s", at(99_999)).unwrap().performance_score.unwrap();
        for honest in 0..10 {
            say(honest, now - NEW_SECONDS * 1_000, &format!("did:key:h{honest}"), 0.2);
        }
        for fresh in 0..10_000 {
            say(100 + fresh, now - NEW_SECONDS * 1_000 + 1_000, &format!("did:key:f{fresh}"), 1.0);
        }
        assert!((score(&evidence) - (0.2 + 0.8 * NEW_SHARE)).abs() < 1e-9, "{}", score(&evidence));
        // Where nobody else has spoken, they are heard; and an owner is as old as the oldest word that stands.
        (0..9).for_each(|source| evidence.remove(source, 20_001));
        assert!((score(&evidence) - (0.2 + 0.8 * NEW_SHARE)).abs() < 1e-9, "{}", score(&evidence));
        evidence.remove(9, 20_001);
        assert_eq!(score(&evidence), 1.0);
        assert!(!evidence.arrivals.contains_key("did:key:h9") && evidence.arrivals.contains_key("did:key:f9"));
    }

    fn performance(evidence: &mut Evidence, source: u64, issuer: &str, receipt: &str, score: f64, issued_at: &str) {
        let record = json!({
            "record_id": format!("rep_{source}"), "issuer": issuer, "subject": "did:web:s",
            "interaction_receipt": receipt, "interaction_type": "invocation",
            "dimensions": {"timeliness": {"score": score, "max": 5}, "accuracy": {"score": score, "max": 5}},
            "issued_at": issued_at,
        });
        evidence.insert(source, 0, "did:key:relay", Document::of(&record).unwrap().root());
    }

    #[test]
    fn judgements_of_interactions_are_averaged_and_older_ones_weigh_less() {
        let mut evidence = Evidence::default();
        let score = |evidence: &Evidence| evidence.about("did:web:s", at(9)).unwrap().performance_score;
        performance(&mut evidence, 1, "did:key:a", "r1", 5.0, "2026-03-01T00:00:00Z");
        assert_eq!(score(&evidence), Some(1.0));
        performance(&mut evidence, 2, "did:key:a", "r2", 0.0, "2025-03-01T00:00:00Z");
        assert_eq!(score(&evidence), Some(1.0 / 1.5), "a year old, so it weighs half");
        performance(&mut evidence, 3, "did:key:a", "r2", 5.0, "2025-03-01T00:00:00Z");
        assert_eq!(score(&evidence), Some(1.0), "the latest word about an interaction counts");
        performance(&mut evidence, 4, "did:key:b", "r3", 0.0, "2026-03-01T00:00:00Z");
        assert_eq!(score(&evidence), Some(0.5), "each issuer counts once");
        say(&mut evidence, 5, "did:key:c", json!({"performance_score": 0.5}));
        assert_eq!(score(&evidence), Some(0.5));
        let signals = evidence.about("did:web:s", at(9)).unwrap();
        assert_eq!(signals.provider_reputation, Some(0.5));
        performance(&mut evidence, 6, "did:web:s", "r4", 5.0, "2026-03-01T00:00:00Z");
        assert_eq!(score(&evidence), Some(0.5), "nobody for himself, whoever brings it");
    }

    #[test]
    fn a_conformance_receipt_of_somebody_else_attests_a_level_for_ninety_days() {
        let receipt = |signer: &str, timestamp: &str, failed: u64, validity: json::Value| {
            json!({
                "receipt_id": "urn:oap:conformance:1", "type": "conformance", "timestamp": timestamp,
                "implementation": {"did": "did:web:s", "name": "s", "version": "1"},
                "claimed_levels": ["L1", "L3", "W2"], "validity": validity,
                "results_summary": {"total": 9, "passed": 9 - failed, "failed": failed},
                "signatures": [{"by": "did:web:s#k", "alg": "EdDSA", "value": "x"}, {"by": signer, "alg": "EdDSA", "value": "x"}],
            })
        };
        let open = json!({});
        let cases = [
            (receipt("did:key:a", "2025-12-01T00:00:00Z", 0, open.clone()), Some("L3")),
            (receipt("did:key:a", "2025-11-30T00:00:00Z", 0, open.clone()), None),
            (receipt("did:key:a", "2026-02-01T00:00:00Z", 1, open.clone()), None),
            (receipt("did:web:s", "2026-02-01T00:00:00Z", 0, open), None),
            (receipt("did:key:a", "2026-02-01T00:00:00Z", 0, json!({"not_after": "2026-02-20T00:00:00Z"})), None),
            (receipt("did:key:a", "2026-02-01T00:00:00Z", 0, json!({"not_before": "2026-03-02T00:00:00Z"})), None),
            (receipt("did:key:a", "2026-02-01T00:00:00Z", 0, json!({"not_after": "2030-01-01T00:00:00Z"})), Some("L3")),
        ];
        for (record, level) in cases {
            let mut evidence = Evidence::default();
            evidence.insert(1, 0, "did:web:s", Document::of(&record).unwrap().root());
            let known = evidence.about("did:web:s", at(1)).and_then(|signals| signals.conformance_level);
            assert_eq!(known, level.and_then(Level::parse), "{record}");
        }
    }

    #[test]
    fn there_is_room_for_so_many_words_and_issuers() {
        let mut evidence = Evidence::default();
        for source in 0..WORDS_MAX as u64 {
            assert_eq!(evidence.is_full("did:web:s", "did:key:a"), None);
            say(&mut evidence, source, "did:key:a", json!({}));
        }
        assert_eq!(evidence.is_full("did:web:s", "did:key:a"), Some(("evidence.words", WORDS_MAX)));
        for issuer in 1..ISSUERS_MAX as u64 {
            assert_eq!(evidence.is_full("did:web:s", "did:key:b"), None);
            say(&mut evidence, 1_000 + issuer, &format!("did:key:i{issuer}"), json!({}));
        }
        assert_eq!(evidence.is_full("did:web:s", "did:key:b"), Some(("evidence.issuers", ISSUERS_MAX)));
        assert_eq!(evidence.is_full("did:web:s", "did:key:i1"), None);
        evidence.remove(0, 9_999);
        assert_eq!(evidence.is_full("did:web:s", "did:key:a"), None);
    }
}
