//! RFC 0020 A.5: how much of a known answer a node returns, measured on records whose answers are known by construction.
//!
//! Every record is made from its number, and every question says of each number whether it belongs to the answer. No
//! engine is asked what is true, so a mistake that two engines share is found as well.

use crate::examine::share;
use crate::live::{Live, signed};
use anyhow::{Context, Result, bail};
use aql::Instant;
use json::{Value, json};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeSet;

/// Records of the set; more than a page of an answer holds.
const RECORDS: u64 = 150;
/// Pages of one answer that are read.
const PAGES_MAX: usize = 64;
/// 2026-01-01T00:00:00Z, the hour of the first record.
const FIRST_HOUR: i64 = 1_767_225_600;

/// What came back of what there was to be found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completeness {
    /// Questions that were asked.
    pub questions: usize,
    /// True answers, added up over the questions.
    pub true_answers: usize,
    /// True answers that were returned.
    pub returned: usize,
    /// Records that were returned and are no answer.
    pub unexpected: usize,
    /// What went wrong with a question, in words.
    pub flaws: Vec<String>,
}

impl Completeness {
    /// True answers returned by true answers, `aql_completeness_ratio` of RFC 0020 A.5.
    pub fn ratio(&self) -> f64 {
        match self.true_answers {
            0 => 0.0,
            all => (self.returned as f64 / all as f64 * 1e6).floor() / 1e6,
        }
    }

    /// Whether every true answer came back, and nothing else.
    pub fn is_whole(&self) -> bool {
        self.true_answers > 0 && self.returned == self.true_answers && self.unexpected == 0 && self.flaws.is_empty()
    }

    /// The measurement for programs.
    pub fn to_value(&self) -> Value {
        json!({
            "aql_completeness_ratio": self.ratio(), "questions": self.questions, "true_answers": self.true_answers,
            "returned": self.returned, "unexpected": self.unexpected, "flaws": self.flaws,
        })
    }

    fn add(mut self, other: Self) -> Self {
        self.questions += other.questions;
        self.true_answers += other.true_answers;
        self.returned += other.returned;
        self.unexpected += other.unexpected;
        self.flaws.extend(other.flaws);
        self
    }
}

/// A question and the numbers of the records that answer it.
type Known = (Value, fn(u64) -> bool);

/// Publishes the set, asks every question to its last page, and counts.
pub(crate) fn measure(live: &Live, connections: usize) -> Result<Completeness> {
    let word = live.parties.fresh();
    let numbers: Vec<u64> = (0..RECORDS).collect();
    let publish = |number: &u64| live.publish("first", "manifest", &record(&word, *number)).map(drop);
    share(connections, &numbers, publish, &|_, _| {}).into_iter().collect::<Result<Vec<_>>>()?;
    let asked = share(connections, &questions(), |known| ask(live, &word, known), &|_, _| {});
    Ok(asked.into_iter().fold(Completeness::default(), Completeness::add))
}

fn ask(live: &Live, word: &str, (tree, belongs): &Known) -> Completeness {
    let wanted: BTreeSet<String> = (0..RECORDS).filter(|number| belongs(*number)).map(|n| id(word, n)).collect();
    let mut counted = Completeness { questions: 1, true_answers: wanted.len(), ..Completeness::default() };
    match found(live, word, tree) {
        Ok(found) => {
            counted.returned = wanted.intersection(&found).count();
            counted.unexpected = found.difference(&wanted).count();
        }
        Err(error) => counted.flaws.push(format!("{tree}: {error:#}")),
    }
    counted
}

/// The ids in every page of the answer.
fn found(live: &Live, word: &str, tree: &Value) -> Result<BTreeSet<String>> {
    let marker = json!({"path": "/x_case", "operator": "eq", "value": word});
    let intent = json!({
        "intent_id": format!("urn:oap:intent:{}", live.parties.fresh()), "issuer_did": live.parties.did(),
        "category": "discovery", "constraints": {"all_of": [marker, tree]}, "projection": {"include": ["/number"]},
        "resolution_policy": "full_set", "validity": live.parties.window(),
    });
    let intent = signed(&intent, &live.parties.first)?;
    let (mut ids, mut earlier) = (BTreeSet::new(), 0);
    let mut said = live.ask_intent(&intent)?;
    for _ in 0..PAGES_MAX {
        if said.status != 200 {
            bail!("{}", said.brief());
        }
        let candidates =
            said.value.get("candidates").and_then(Value::as_array).context("an answer without candidates")?;
        earlier += candidates.len();
        ids.extend(candidates.iter().filter_map(|one| one.get("candidate_id")?.as_str().map(str::to_owned)));
        let Some(cursor) = said.value.get("next_cursor").and_then(Value::as_str) else { return Ok(ids) };
        let url = format!("{}?cursor={}", live.target.intent, utf8_percent_encode(cursor, NON_ALPHANUMERIC));
        let bytes = intent.to_string().into_bytes();
        said = live.target.post(&url, &bytes)?;
        if said.status == 200 {
            live.audit(&bytes, &said, earlier)?;
        }
    }
    bail!("an answer has more than {PAGES_MAX} pages")
}

fn id(word: &str, number: u64) -> String {
    format!("urn:rialto:case:{word}-{number}")
}

/// The hour of a record.
fn hour(number: u64) -> String {
    Instant::from_unix(FIRST_HOUR + 3_600 * number.cast_signed(), 0).to_string()
}

fn colour(number: u64) -> &'static str {
    match number % 3 {
        0 => "red",
        1 => "green",
        _ => "blue",
    }
}

/// The record of a number.
fn record(word: &str, number: u64) -> Value {
    let mut record = json!({
        "id": id(word, number), "x_case": word, "number": number, "name": format!("item-{number:03}"),
        "tags": [colour(number), "all"], "fee": format!("{number}.50"), "since": hour(number),
        "deep": {"levels": [{"v": number % 7}, {"w": null}]},
    });
    if let Some(members) = record.as_object_mut().filter(|_| !number.is_multiple_of(5)) {
        members.insert("even".to_owned(), json!(number.is_multiple_of(2)));
    }
    record
}

/// Every operator, alone and beneath the three ways to join, with what answers it.
fn questions() -> Vec<Known> {
    let leaf = |path: &str, operator: &str, value: Value| json!({"path": path, "operator": operator, "value": value});
    let number = |operator: &str, value: u64| leaf("/number", operator, json!(value));
    vec![
        (leaf("/number", "exists", json!(true)), |_| true),
        (number("eq", 7), |n| n == 7),
        (number("ne", 7), |n| n != 7),
        (number("lt", 30), |n| n < 30),
        (number("lte", 30), |n| n <= 30),
        (number("gt", 119), |n| n > 119),
        (number("gte", 119), |n| n >= 119),
        (leaf("/number", "in", json!([1, 2, 149, 500])), |n| [1, 2, 149].contains(&n)),
        (leaf("/number", "not_in", json!([1, 2, 149, 500])), |n| ![1, 2, 149].contains(&n)),
        (leaf("/name", "contains", json!("-01")), |n| (10..20).contains(&n)),
        (leaf("/tags", "contains", json!("red")), |n| n % 3 == 0),
        (leaf("/tags/*", "eq", json!("blue")), |n| n % 3 == 2),
        (leaf("/tags/*", "ne", json!("red")), |_| true),
        (leaf("/tags/0", "ne", json!("red")), |n| n % 3 != 0),
        (leaf("/name", "matches", json!("^item-1[0-4]")), |n| n >= 100),
        (leaf("/name", "matches", json!("(\\d)\\1$")), |n| n % 10 == n / 10 % 10),
        (leaf("/since", "before", json!(hour(20))), |n| n < 20),
        (leaf("/since", "after", json!(hour(130))), |n| n > 130),
        (leaf("/since", "within", json!([hour(40), hour(60)])), |n| (40..=60).contains(&n)),
        (leaf("/since", "outside", json!([hour(40), hour(60)])), |n| !(40..=60).contains(&n)),
        (leaf("/fee", "lte", json!("12.50")), |n| n <= 12),
        (leaf("/fee", "gt", json!("12.5")), |n| n > 12),
        (leaf("/deep/levels/*/v", "in", json!([0, 1])), |n| n % 7 < 2),
        (leaf("/**/v", "eq", json!(3)), |n| n % 7 == 3),
        (leaf("/deep/levels/1/w", "eq", json!(null)), |_| true),
        (leaf("/even", "exists", json!(true)), |n| n % 5 != 0),
        (json!({"not": leaf("/even", "exists", json!(true))}), |n| n % 5 == 0),
        (json!({"not": leaf("/even", "eq", json!(true))}), |n| n % 5 == 0 || n % 2 == 1),
        (json!({"not": {"not": number("lt", 30)}}), |n| n < 30),
        (json!({"any_of": [number("lt", 10), number("gte", 140)]}), |n| !(10..140).contains(&n)),
        (json!({"all_of": [number("gte", 40), number("lt", 100), leaf("/tags", "contains", json!("green"))]}), |n| {
            (40..100).contains(&n) && n % 3 == 1
        }),
        (
            json!({"all_of": [
                {"any_of": [leaf("/even", "eq", json!(false)), number("lte", 3)]},
                {"not": {"all_of": [leaf("/tags", "contains", json!("red")), number("gt", 75)]}},
            ]}),
            |n| ((n % 5 != 0 && n % 2 == 1) || n <= 3) && !(n % 3 == 0 && n > 75),
        ),
        (leaf("/number", "eq", json!("7")), |_| false),
        (leaf("/nowhere/**", "exists", json!(true)), |_| false),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast;
    use aql::OverBudget;

    /// The engine is no judge of what is true here, but where it differs one of the two is wrong.
    #[test]
    fn the_engine_of_this_house_finds_every_known_answer() {
        let candidates: Vec<Value> =
            (0..RECORDS).map(|number| json!({"id": id("w", number), "record": record("w", number)})).collect();
        let mut answers = 0;
        for (tree, belongs) in questions() {
            let intent = json!({
                "intent_id": "urn:oap:intent:x", "issuer_did": "did:key:z", "category": "discovery",
                "constraints": tree, "projection": {"include": ["/number"]}, "resolution_policy": "full_set",
                "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
            });
            let found = fast::resolve(&intent, &candidates, OverBudget::Flag).unwrap();
            let found: BTreeSet<&str> =
                found["candidates"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
            let known: Vec<String> = (0..RECORDS).filter(|n| belongs(*n)).map(|n| id("w", n)).collect();
            assert_eq!(found, known.iter().map(String::as_str).collect(), "{tree}");
            answers += known.len();
        }
        assert!(answers > 1_500, "{answers}");
    }

    #[test]
    fn one_answer_short_is_no_longer_whole() {
        let whole = Completeness { questions: 3, true_answers: 300, returned: 300, ..Completeness::default() };
        assert!(whole.is_whole() && whole.ratio() == 1.0);
        let short = Completeness { returned: 299, ..whole.clone() };
        assert!(!short.is_whole() && short.ratio() < 1.0);
        assert!(!Completeness { unexpected: 1, ..whole }.is_whole());
        assert!(!Completeness::default().is_whole());
    }
}
