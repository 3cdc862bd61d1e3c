//! RFC 0020 §3.5: quality signals, the floor that an intent declares, and when a candidate meets it.
//!
//! Met or exceeded: the latency is a ceiling, every other signal a floor. INVARIANT: a signal that is missing or
//! cannot be read is not met.

use crate::fields::Field;
use crate::pattern::matches;
use crate::refusal::Refusal;
use crate::value::Value;

/// The names of the signals, in the order of the section.
pub(crate) const SIGNALS: [&str; 5] =
    ["performance_score", "conformance_level", "latency_p99_ms", "provider_reputation", "cooling_off_minutes"];

const LEVEL: &str = "^[A-Z][0-9](-[A-Z]+)?$";

/// Quality signals: what a floor declares, or what is known of a candidate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quality {
    pub(crate) performance_score: Option<f64>,
    pub(crate) conformance_level: Option<Level>,
    pub(crate) latency_p99_ms: Option<f64>,
    pub(crate) provider_reputation: Option<f64>,
    pub(crate) cooling_off_minutes: Option<f64>,
}

/// A conformance level such as `L3` or `L3-NC`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    letter: String,
    pub(crate) digit: u32,
    suffix: String,
}

impl Level {
    fn parse(text: &str) -> Option<Level> {
        if matches(LEVEL, text) != Ok(true) {
            return None;
        }
        let (letter, rest) = text.split_at_checked(1)?;
        let (digit, suffix) = rest.split_at_checked(1)?;
        Some(Level { letter: letter.to_owned(), digit: digit.parse().ok()?, suffix: suffix.to_owned() })
    }

    /// Levels are ordered only inside one family: the same letter and the same suffix.
    fn meets(&self, floor: &Level) -> bool {
        self.letter == floor.letter && self.suffix == floor.suffix && self.digit >= floor.digit
    }
}

impl Quality {
    /// Reads the quality floor of an intent.
    pub(crate) fn read_floor(block: &Field) -> Result<Quality, Refusal> {
        let fields = block.closed(&SIGNALS)?;
        let fraction = |name: &str| fields.optional(name).map(|field| field.fraction()).transpose();
        let integer = |name: &str| fields.optional(name).map(|field| field.integer(0.0)).transpose();
        let level = |field: Field| Level::parse(field.text()?).ok_or_else(|| field.refusal("invalid_value"));
        Ok(Quality {
            performance_score: fraction("performance_score")?,
            conformance_level: fields.optional("conformance_level").map(level).transpose()?,
            latency_p99_ms: integer("latency_p99_ms")?,
            provider_reputation: fraction("provider_reputation")?,
            cooling_off_minutes: integer("cooling_off_minutes")?,
        })
    }

    /// The signals of a candidate: those beside its record, and a latency that the record itself discloses.
    pub(crate) fn of_candidate(beside: Option<&Value>, record: &Value) -> Quality {
        let given = |name: &str| beside.and_then(|signals| signals.member(name));
        let fraction = |name: &str| given(name).and_then(Value::number).filter(|number| (0.0..=1.0).contains(number));
        let disclosed = |block: &str| record.member(block).and_then(|block| block.member("latency_p99_ms"));
        let amount = |value: Option<&Value>| value.and_then(Value::number).filter(|number| *number >= 0.0);
        Quality {
            performance_score: fraction("performance_score"),
            conformance_level: given("conformance_level").and_then(Value::text).and_then(Level::parse),
            latency_p99_ms: amount(given("latency_p99_ms"))
                .or_else(|| amount(disclosed("cost_disclosure")))
                .or_else(|| amount(disclosed("sla"))),
            provider_reputation: fraction("provider_reputation"),
            cooling_off_minutes: amount(given("cooling_off_minutes")),
        }
    }

    /// The names of the signals of a floor that these signals do not meet.
    pub(crate) fn unmet(&self, floor: &Quality) -> Vec<&'static str> {
        let at_least = |floor: Option<f64>, signal: Option<f64>| match (floor, signal) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(floor), Some(signal)) => signal >= floor,
        };
        let at_most = |ceiling: Option<f64>, signal: Option<f64>| match (ceiling, signal) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ceiling), Some(signal)) => signal <= ceiling,
        };
        let level_met = match (&floor.conformance_level, &self.conformance_level) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(floor), Some(level)) => level.meets(floor),
        };
        let met = [
            at_least(floor.performance_score, self.performance_score),
            level_met,
            at_most(floor.latency_p99_ms, self.latency_p99_ms),
            at_least(floor.provider_reputation, self.provider_reputation),
            at_least(floor.cooling_off_minutes, self.cooling_off_minutes),
        ];
        SIGNALS.into_iter().zip(met).filter(|(_, met)| !met).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check_floor(block: &str, refused: Option<(&str, &str)>) {
        let block = value(block);
        let refusal = Quality::read_floor(&Field::new(&block, "/quality_floor")).err();
        let refusal = refusal.as_ref().map(|refusal| (refusal.code, refusal.at.as_str()));
        assert_eq!(refusal, refused);
    }

    #[test]
    fn a_floor_is_closed_and_typed() {
        check_floor("{}", None);
        check_floor(
            r#"{"performance_score":0,"conformance_level":"L3-NC","latency_p99_ms":0,"provider_reputation":1,"cooling_off_minutes":60.0}"#,
            None,
        );
        check_floor("1", Some(("wrong_type", "/quality_floor")));
        check_floor(r#"{"speed":1}"#, Some(("unknown_field", "/quality_floor/speed")));
        check_floor(r#"{"performance_score":1.1}"#, Some(("invalid_value", "/quality_floor/performance_score")));
        check_floor(r#"{"provider_reputation":"1"}"#, Some(("wrong_type", "/quality_floor/provider_reputation")));
        check_floor(r#"{"latency_p99_ms":1.5}"#, Some(("invalid_value", "/quality_floor/latency_p99_ms")));
        check_floor(r#"{"latency_p99_ms":-1}"#, Some(("invalid_value", "/quality_floor/latency_p99_ms")));
        check_floor(r#"{"cooling_off_minutes":null}"#, Some(("wrong_type", "/quality_floor/cooling_off_minutes")));
        for level in ["L", "3", "l3", "L33", "L3-", "L3-nc", "LL3", "L3-NC-X"] {
            let block = format!(r#"{{"conformance_level":"{level}"}}"#);
            check_floor(&block, Some(("invalid_value", "/quality_floor/conformance_level")));
        }
        check_floor(r#"{"conformance_level":3}"#, Some(("wrong_type", "/quality_floor/conformance_level")));
    }

    #[track_caller]
    fn check(floor: &str, beside: &str, record: &str, unmet: &[&str]) {
        let (floor, beside, record) = (value(floor), value(beside), value(record));
        let floor = Quality::read_floor(&Field::new(&floor, "")).unwrap();
        assert_eq!(Quality::of_candidate(Some(&beside), &record).unmet(&floor), unmet);
    }

    #[test]
    fn the_latency_is_a_ceiling_and_the_rest_are_floors() {
        check(r#"{"latency_p99_ms":100}"#, r#"{"latency_p99_ms":100}"#, "{}", &[]);
        check(r#"{"latency_p99_ms":100}"#, r#"{"latency_p99_ms":101}"#, "{}", &["latency_p99_ms"]);
        check(r#"{"performance_score":0.8}"#, r#"{"performance_score":0.8}"#, "{}", &[]);
        check(r#"{"performance_score":0.8}"#, r#"{"performance_score":0.79}"#, "{}", &["performance_score"]);
        check(r#"{"provider_reputation":0.8}"#, r#"{"provider_reputation":0.9}"#, "{}", &[]);
        check(r#"{"cooling_off_minutes":60}"#, r#"{"cooling_off_minutes":59}"#, "{}", &["cooling_off_minutes"]);
    }

    #[test]
    fn levels_are_ordered_inside_one_family() {
        for (level, met) in [
            ("L3", true),
            ("L4", true),
            ("L2", false),
            ("Q3", false),
            ("M9", false),
            ("L3-NC", false),
            ("L4-NC", false),
        ] {
            let beside = format!(r#"{{"conformance_level":"{level}"}}"#);
            check(r#"{"conformance_level":"L3"}"#, &beside, "{}", if met { &[] } else { &["conformance_level"] });
        }
        check(r#"{"conformance_level":"L3-NC"}"#, r#"{"conformance_level":"L4-NC"}"#, "{}", &[]);
    }

    #[test]
    fn a_missing_signal_is_not_met() {
        let all = r#"{"performance_score":0,"conformance_level":"L0","latency_p99_ms":9,"provider_reputation":0,"cooling_off_minutes":0}"#;
        check(all, "{}", "{}", &SIGNALS);
        check(all, "null", "{}", &SIGNALS);
        let unreadable = r#"{"performance_score":2,"conformance_level":"x","latency_p99_ms":"1","provider_reputation":null,"cooling_off_minutes":-1}"#;
        check(all, unreadable, "{}", &SIGNALS);
        check("{}", "{}", "{}", &[]);
    }

    #[test]
    fn only_the_latency_is_taken_from_the_record() {
        let floor = r#"{"latency_p99_ms":100}"#;
        let record = r#"{"cost_disclosure":{"latency_p99_ms":200},"sla":{"latency_p99_ms":50}}"#;
        check(floor, "{}", record, &["latency_p99_ms"]);
        check(floor, r#"{"latency_p99_ms":99}"#, record, &[]);
        check(floor, "{}", r#"{"sla":{"latency_p99_ms":50}}"#, &[]);
        check(r#"{"performance_score":0}"#, "{}", r#"{"performance_score":1}"#, &["performance_score"]);
    }
}
