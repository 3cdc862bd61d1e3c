//! RFC 0020 §3.5: the quality floor and the signals it is measured against.
//!
//! Met or exceeded: latency is a ceiling, the others are floors; a missing signal is not met.

use crate::read::{Place, Values};
use crate::refusal::{Code, Refusal};
use json::Node;

/// Values of the five signals: as a floor, or as what is known of a candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// RFC 0009, from 0 to 1.
    pub performance_score: Option<f64>,
    /// RFC 0019.
    pub conformance_level: Option<Level>,
    /// Milliseconds; lower is better.
    pub latency_p99_ms: Option<f64>,
    /// Aggregated from performance records, from 0 to 1.
    pub provider_reputation: Option<f64>,
    /// RFC 0017.
    pub cooling_off_minutes: Option<f64>,
}

/// A conformance level such as `L3` or `L1-NC`; levels are ordered inside one family only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    family: char,
    grade: u8,
    suffix: Option<String>,
}

impl Level {
    /// Reads a letter, a digit, and a suffix of capital letters if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, suffix) = match text.split_once('-') {
            Some((head, suffix)) => (head, Some(suffix)),
            None => (text, None),
        };
        let named = |suffix: &str| !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_uppercase());
        match head.as_bytes() {
            [family @ b'A'..=b'Z', grade @ b'0'..=b'9'] if suffix.is_none_or(named) => {
                Some(Self { family: char::from(*family), grade: grade - b'0', suffix: suffix.map(str::to_owned) })
            }
            _ => None,
        }
    }

    fn meets(&self, floor: &Self) -> bool {
        self.family == floor.family && self.suffix == floor.suffix && self.grade >= floor.grade
    }

    /// The digit, as a part of five.
    pub(crate) fn part(&self) -> f64 {
        (f64::from(self.grade) / 5.0).min(1.0)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}{}", self.family, self.grade)?;
        self.suffix.iter().try_for_each(|suffix| write!(out, "-{suffix}"))
    }
}

impl Signals {
    const MEMBERS: [&'static str; 5] =
        ["performance_score", "conformance_level", "latency_p99_ms", "provider_reputation", "cooling_off_minutes"];

    /// Reads a floor of an intent, or signals beside a record.
    pub(crate) fn read(place: &Place<'_>) -> Result<Self, Refusal> {
        place.closed(&Self::MEMBERS)?;
        let fraction = |name: &str| place.member(name).map(|member| member.fraction()).transpose();
        let count =
            |name: &str| place.member(name).map(|member| member.integer(0).map(|count| count as f64)).transpose();
        Ok(Self {
            performance_score: fraction("performance_score")?,
            conformance_level: place.member("conformance_level").map(|level| read_level(&level)).transpose()?,
            latency_p99_ms: count("latency_p99_ms")?,
            provider_reputation: fraction("provider_reputation")?,
            cooling_off_minutes: count("cooling_off_minutes")?,
        })
    }

    /// Signals with the latency that the record itself declares, when nothing better is known.
    #[must_use]
    pub(crate) fn or_declared_latency(mut self, record: Node<'_>) -> Self {
        let declared =
            |block: &str| record.get(block)?.get("latency_p99_ms")?.as_f64().filter(|latency| *latency >= 0.0);
        self.latency_p99_ms = self.latency_p99_ms.or_else(|| declared("cost_disclosure")).or_else(|| declared("sla"));
        self
    }

    /// Whether a candidate meets every declared floor.
    pub fn is_met_by(&self, candidate: &Self) -> bool {
        let reached = |floor: Option<f64>, signal: Option<f64>| {
            floor.is_none_or(|floor| signal.is_some_and(|signal| signal >= floor))
        };
        let within = |ceiling: f64| candidate.latency_p99_ms.is_some_and(|latency| latency <= ceiling);
        let level = |floor: &Level| candidate.conformance_level.as_ref().is_some_and(|level| level.meets(floor));
        reached(self.performance_score, candidate.performance_score)
            && self.latency_p99_ms.is_none_or(within)
            && reached(self.provider_reputation, candidate.provider_reputation)
            && reached(self.cooling_off_minutes, candidate.cooling_off_minutes)
            && self.conformance_level.as_ref().is_none_or(level)
    }

    /// The declared floors that the candidate does not meet, in words.
    pub fn unmet(&self, candidate: &Self) -> Vec<String> {
        let mut unmet = Vec::new();
        let mut number = |name: &str, floor: Option<f64>, signal: Option<f64>, ceiling: bool| {
            let Some(floor) = floor else { return };
            match signal {
                None => unmet.push(format!("{name} is not known")),
                Some(signal) if ceiling && signal > floor => unmet.push(format!("{name} {signal} is above {floor}")),
                Some(signal) if !ceiling && signal < floor => unmet.push(format!("{name} {signal} is below {floor}")),
                Some(_) => {}
            }
        };
        number("performance_score", self.performance_score, candidate.performance_score, false);
        number("latency_p99_ms", self.latency_p99_ms, candidate.latency_p99_ms, true);
        number("provider_reputation", self.provider_reputation, candidate.provider_reputation, false);
        number("cooling_off_minutes", self.cooling_off_minutes, candidate.cooling_off_minutes, false);
        match (&self.conformance_level, &candidate.conformance_level) {
            (Some(_), None) => unmet.push("conformance_level is not known".to_owned()),
            (Some(floor), Some(level)) if !level.meets(floor) => {
                unmet.push(format!("conformance_level {level} does not reach {floor}"));
            }
            _ => {}
        }
        unmet
    }
}

fn read_level(place: &Place<'_>) -> Result<Level, Refusal> {
    let text = place.string()?;
    Level::parse(text)
        .map_or_else(|| place.refuse(Code::InvalidValue, "a level such as `L3` or `L1-NC` belongs here"), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_inside_one_family() {
        let meets = |level: &str, floor: &str| Level::parse(level).unwrap().meets(&Level::parse(floor).unwrap());
        assert!(meets("L3", "L2") && meets("L2", "L2") && meets("L2-NC", "L1-NC"));
        assert!(!meets("L1", "L2") && !meets("Q3", "L1") && !meets("L3-NC", "L1") && !meets("L3", "L1-NC"));
        for text in ["", "L", "3", "l3", "L33", "L3-", "L3-nc", "gold"] {
            assert_eq!(Level::parse(text), None, "{text}");
        }
    }

    #[test]
    fn latency_is_a_ceiling_and_the_rest_are_floors() {
        let floor = Signals { performance_score: Some(0.7), latency_p99_ms: Some(100.0), ..Signals::default() };
        let met = Signals { performance_score: Some(0.7), latency_p99_ms: Some(100.0), ..Signals::default() };
        assert!(floor.unmet(&met).is_empty());
        let slow = Signals { latency_p99_ms: Some(101.0), ..met.clone() };
        assert_eq!(floor.unmet(&slow), ["latency_p99_ms 101 is above 100"]);
        assert_eq!(floor.unmet(&Signals::default()).len(), 2);
        for signals in [met, slow, Signals::default()] {
            assert_eq!(floor.is_met_by(&signals), floor.unmet(&signals).is_empty(), "{signals:?}");
        }
    }
}
