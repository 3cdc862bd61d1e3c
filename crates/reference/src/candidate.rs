//! RFC 0020 A.2: a candidate, what it is called and what it costs in the currency of the intent.
//!
//! A candidate is a bare record, or a record with what is known beside it: its id, its cost, its quality signals.

use crate::decimal::Decimal;
use crate::pointer::Path;
use crate::quality::Quality;
use crate::refusal::{Refusal, element_place};
use crate::value::Value;

/// Where a record carries its own id, in the order in which it is looked for.
const ID_POINTERS: [&str; 5] = ["/tool/did", "/offer_id", "/id", "/tool/id", "/action_id"];

const WRAPPER_MEMBERS: [&str; 4] = ["id", "record", "cost", "quality"];

/// A candidate that is not judged yet.
#[derive(Debug)]
pub(crate) struct Candidate<'v> {
    pub(crate) id: String,
    pub(crate) record: &'v Value,
    pub(crate) quality: Quality,
    /// The cost beside the record, which then alone counts.
    cost: Option<&'v Value>,
}

impl<'v> Candidate<'v> {
    /// Reads the candidate at a position, counted from 0.
    pub(crate) fn read(value: &'v Value, position: usize) -> Result<Candidate<'v>, Refusal> {
        let Value::Object(members) = value else {
            return Err(Refusal { code: "wrong_type", at: element_place("/candidates", position) });
        };
        let wrapped = value.member("record").filter(|record| {
            let known = members.iter().all(|(key, _)| WRAPPER_MEMBERS.contains(&key.as_str()));
            known && matches!(record, Value::Object(_))
        });
        let beside = |name: &str| wrapped.and_then(|_| value.member(name));
        let record = wrapped.unwrap_or(value);
        let id = beside("id").and_then(Value::text).or_else(|| own_id(record));
        Ok(Candidate {
            id: id.map_or_else(|| format!("line-{}", position + 1), str::to_owned),
            record,
            quality: Quality::of_candidate(beside("quality"), record),
            cost: beside("cost"),
        })
    }

    /// The declared cost in a currency, or none if it is undefined.
    pub(crate) fn cost(&self, category: &str, currency: &str) -> Option<Decimal> {
        match self.cost {
            Some(Value::Array(prices)) => prices.iter().filter_map(|price| amount_in(price, currency)).min(),
            Some(price) => amount_in(price, currency),
            None => self.own_cost(category, currency),
        }
    }

    fn own_cost(&self, category: &str, currency: &str) -> Option<Decimal> {
        match category {
            "commercial" | "knowledge" => match self.record.member("price") {
                Some(price) => amount_in(price, currency),
                None => self.cheapest_model(currency),
            },
            "action" | "delegation" => match self.record.member("cost") {
                Some(cost) if is_free(cost) => Some(Decimal::zero()),
                Some(cost) => amount_in(cost, currency),
                None => self.cheapest_model(currency),
            },
            _ => self.cheapest_model(currency),
        }
    }

    /// The cheapest pricing model: free, or so much per call.
    fn cheapest_model(&self, currency: &str) -> Option<Decimal> {
        let Some(Value::Array(models)) = self.record.member("pricing").and_then(|pricing| pricing.member("models"))
        else {
            return None;
        };
        let amount = |model: &Value| match model.member("type").and_then(Value::text) {
            Some("free") => Some(Decimal::zero()),
            Some("per_call") => amount_in(model, currency),
            Some(_) | None => None,
        };
        models.iter().filter_map(amount).min()
    }
}

fn own_id(record: &Value) -> Option<&str> {
    ID_POINTERS.iter().find_map(|pointer| {
        let reached = Path::read(pointer, "").ok()?.reach(record);
        reached.first()?.value.text()
    })
}

fn is_free(cost: &Value) -> bool {
    cost.member("type").and_then(Value::text) == Some("free")
}

/// The amount of a price, if it can be read and is in this currency.
fn amount_in(price: &Value, currency: &str) -> Option<Decimal> {
    if price.member("currency").and_then(Value::text) == Some(currency) {
        Decimal::parse_amount(price.member("amount")?.text()?)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check_id(candidate: &str, id: &str) {
        assert_eq!(Candidate::read(&value(candidate), 6).unwrap().id, id, "{candidate}");
    }

    #[test]
    fn an_id_is_given_or_found_or_made() {
        check_id(r#"{"id":"given","record":{"id":"own"}}"#, "given");
        check_id(r#"{"record":{"id":"own"}}"#, "own");
        check_id(r#"{"id":5,"record":{"id":"own"}}"#, "own");
        check_id(r#"{"tool":{"did":"a","id":"d"},"offer_id":"b","id":"c","action_id":"e"}"#, "a");
        check_id(r#"{"tool":{"id":"d"},"offer_id":"b","id":"c","action_id":"e"}"#, "b");
        check_id(r#"{"tool":{"id":"d"},"id":"c","action_id":"e"}"#, "c");
        check_id(r#"{"tool":{"id":"d"},"id":7,"action_id":"e"}"#, "d");
        check_id(r#"{"action_id":"e"}"#, "e");
        check_id("{}", "line-7");
    }

    #[test]
    fn a_wrapper_has_a_record_and_nothing_unknown() {
        let record = |candidate: &str, record: &str| {
            assert_eq!(*Candidate::read(&value(candidate), 0).unwrap().record, value(record), "{candidate}");
        };
        record(r#"{"record":{"a":1}}"#, r#"{"a":1}"#);
        record(r#"{"id":"x","record":{},"cost":{},"quality":{}}"#, "{}");
        record(r#"{"record":{"a":1},"b":2}"#, r#"{"record":{"a":1},"b":2}"#);
        record(r#"{"record":[1]}"#, r#"{"record":[1]}"#);
        record(r#"{"id":"x","cost":{}}"#, r#"{"id":"x","cost":{}}"#);
        let refusal = Candidate::read(&value("[]"), 3).unwrap_err();
        assert_eq!(refusal, Refusal::new("wrong_type", "/candidates/3"));
    }

    #[track_caller]
    fn check_cost(candidate: &str, category: &str, cost: Option<&str>) {
        let candidate = value(candidate);
        let found = Candidate::read(&candidate, 0).unwrap().cost(category, "EUR");
        assert_eq!(found, cost.map(|cost| Decimal::parse(cost).unwrap()), "{candidate:?}");
    }

    #[test]
    fn a_cost_beside_the_record_alone_counts() {
        let free = r#"{"pricing":{"models":[{"type":"free"}]}}"#;
        let beside = |cost: &str| format!(r#"{{"record":{free},"cost":{cost}}}"#);
        check_cost(&beside(r#"{"amount":"5.00","currency":"EUR"}"#), "discovery", Some("5"));
        check_cost(&beside(r#"{"amount":"5.00","currency":"USD"}"#), "discovery", None);
        check_cost(&beside(r#"{"amount":5,"currency":"EUR"}"#), "discovery", None);
        check_cost(&beside(r#"{"amount":"-5","currency":"EUR"}"#), "discovery", None);
        check_cost(&beside(r#"{"amount":"5"}"#), "discovery", None);
        check_cost(&beside("null"), "discovery", None);
        check_cost(&beside("[]"), "discovery", None);
        let list =
            r#"[{"amount":"9","currency":"USD"},{"amount":"7","currency":"EUR"},{"amount":"6","currency":"EUR"}]"#;
        check_cost(&beside(list), "discovery", Some("6"));
        check_cost(&format!(r#"{{"record":{free}}}"#), "discovery", Some("0"));
    }

    #[test]
    fn the_cheapest_model_counts() {
        let models = |models: &str| format!(r#"{{"pricing":{{"models":[{models}]}}}}"#);
        let (five, two, dollars, free, outcome) = (
            r#"{"type":"per_call","amount":"5","currency":"EUR"}"#,
            r#"{"type":"per_call","amount":"2.50","currency":"EUR"}"#,
            r#"{"type":"per_call","amount":"1","currency":"USD"}"#,
            r#"{"type":"free"}"#,
            r#"{"type":"outcome","amount":"1","currency":"EUR"}"#,
        );
        for category in ["discovery", "subscription", "commercial", "knowledge", "action", "delegation"] {
            check_cost(&models(&format!("{five},{two},{dollars}")), category, Some("2.5"));
            check_cost(&models(&format!("{five},{free}")), category, Some("0"));
            check_cost(&models(dollars), category, None);
            check_cost(&models(outcome), category, None);
            check_cost(&models(""), category, None);
            check_cost(r#"{"pricing":{"models":{}}}"#, category, None);
            check_cost("{}", category, None);
        }
    }

    #[test]
    fn each_category_has_its_own_price() {
        let both = r#"{"price":{"amount":"3","currency":"EUR"},"cost":{"type":"per_call","amount":"4","currency":"EUR"},"pricing":{"models":[{"type":"free"}]}}"#;
        for (category, cost) in [
            ("commercial", "3"),
            ("knowledge", "3"),
            ("action", "4"),
            ("delegation", "4"),
            ("discovery", "0"),
            ("subscription", "0"),
        ] {
            check_cost(both, category, Some(cost));
        }
        check_cost(r#"{"cost":{"type":"free"}}"#, "action", Some("0"));
        check_cost(r#"{"cost":{"type":"free"}}"#, "commercial", None);
        check_cost(r#"{"price":{"type":"free"}}"#, "commercial", None);
        check_cost(
            r#"{"price":{"amount":"3","currency":"USD"},"pricing":{"models":[{"type":"free"}]}}"#,
            "commercial",
            None,
        );
        check_cost(r#"{"cost":{"amount":"1000000000000000000","currency":"EUR"}}"#, "action", None);
    }
}
