//! The eight kinds of question, each as an intent and as SQL.
//!
//! RFC 0020 §3.2 in one hand, `jsonb` in the other: both ask the same of the same records, and the ten ids must be the
//! same. Constants are those of a manifest drawn at random, so that every question has an answer and frequent values
//! are asked for as often as they occur.
//!
//! INVARIANT: no two questions of a run have the same constraints and budget.

use crate::corpus::{CATEGORIES, Corpus, Facts, category, country};
use aql::Instant;
use conformance::chance::Chance;
use serde_json::{Value, json};
use std::collections::HashSet;

/// What kind of question it is; a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Six equalities, each common, that few records satisfy together.
    SelectiveConjunction,
    /// Equalities and ranges together.
    ConjunctionWithRanges,
    /// Ranges alone.
    RangeOnly,
    /// Any element of an array.
    ArrayWildcard,
    /// Any depth.
    Descendant,
    /// A pattern over names.
    RegularExpression,
    /// What is not so, in a window of time.
    NegationWithTime,
    /// One record in twenty matches.
    Broad,
}

/// A question with its constants.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its kind.
    pub kind: Kind,
    /// What a manifest must satisfy.
    pub constraints: Value,
    /// The most that is paid, in EUR.
    pub ceiling: String,
    /// The constants of the SQL, from `$2` on.
    pub constants: Vec<String>,
}

impl Kind {
    /// All eight, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::SelectiveConjunction,
        Self::ConjunctionWithRanges,
        Self::RangeOnly,
        Self::ArrayWildcard,
        Self::Descendant,
        Self::RegularExpression,
        Self::NegationWithTime,
        Self::Broad,
    ];

    /// What the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SelectiveConjunction => "selective conjunction",
            Self::ConjunctionWithRanges => "conjunction with ranges",
            Self::RangeOnly => "range only",
            Self::ArrayWildcard => "array wildcard",
            Self::Descendant => "`**`",
            Self::RegularExpression => "regular expression",
            Self::NegationWithTime => "negation with time",
            Self::Broad => "broad (5 % match)",
        }
    }

    /// Whether an index leaves only a handful of records to look at.
    pub fn is_selective(self) -> bool {
        match self {
            Self::SelectiveConjunction | Self::ConjunctionWithRanges | Self::ArrayWildcard => true,
            Self::RangeOnly | Self::Descendant | Self::RegularExpression | Self::NegationWithTime | Self::Broad => {
                false
            }
        }
    }

    /// The ten best, with `$1` the ceiling and the constants of a question from `$2` on.
    pub fn best_sql(self) -> String {
        BEST_OF.replace("priced", &format!("({}) AS priced", self.priced()))
    }

    /// How many records match.
    pub fn count_sql(self) -> String {
        format!("SELECT count(*) FROM ({}) AS priced WHERE $1::numeric IS NOT NULL", self.priced())
    }

    fn priced(self) -> String {
        format!("{PRICED} AND {}", self.condition())
    }

    fn condition(self) -> &'static str {
        match self {
            Self::SelectiveConjunction | Self::ConjunctionWithRanges => "body @> $2::jsonb AND body @@ $3::jsonpath",
            Self::ArrayWildcard => "body @? $2::jsonpath AND body @? $3::jsonpath AND body @? $4::jsonpath",
            Self::RangeOnly | Self::Descendant | Self::RegularExpression | Self::NegationWithTime | Self::Broad => {
                "body @@ $2::jsonpath"
            }
        }
    }
}

/// `rialto.rank` 1.0 without evidence, where only latency and price count: every input, every contribution and their
/// sum are rounded to six decimals, halves away from zero; what fits comes first, then score, cost and id decide.
const BEST_OF: &str = "\
SELECT id, score, jsonb_build_object(
    'tool', jsonb_build_object('did', body#>'{tool,did}', 'name', body#>'{tool,name}'),
    'sla', body->'sla',
    'pricing', jsonb_build_object('models', body#>'{pricing,models}')) AS payload
FROM (
    SELECT id, body,
        floor((
            floor(floor((1 - least((body#>>'{sla,latency_p99_ms}')::float8, 10000) / 10000) * 1e6::float8 + 0.5)
                / 1e6::float8 * 0.1::float8 * 1e6::float8 + 0.5) / 1e6::float8
            + floor(floor((1 - least(cost::float8 / $1::numeric::float8, 1)) * 1e6::float8 + 0.5)
                / 1e6::float8 * 0.15::float8 * 1e6::float8 + 0.5) / 1e6::float8
        ) * 1e6::float8 + 0.5) / 1e6::float8 AS score
    FROM priced
    ORDER BY cost > $1::numeric, score DESC, cost, id
    LIMIT 10) AS best";

/// The lowest price per call in EUR, as `aql` finds the cost of a manifest; a record without one is no match.
const PRICED: &str = "\
SELECT id, body, cost FROM manifest
CROSS JOIN LATERAL (
    SELECT min(CASE WHEN model->>'type' = 'free' THEN 0 ELSE (model->>'amount')::numeric END) AS cost
    FROM jsonb_array_elements(body#>'{pricing,models}') AS model
    WHERE model->>'type' = 'free' OR (model->>'type' = 'per_call' AND model->>'currency' = 'EUR')) AS price
WHERE cost IS NOT NULL";

/// Draws questions of all kinds over the first `count` manifests of a corpus.
#[derive(Debug)]
pub struct Asker<'a> {
    corpus: &'a Corpus,
    count: u64,
    chance: Chance<'static>,
    asked: HashSet<String>,
}

impl<'a> Asker<'a> {
    /// Whoever starts from the same seed asks the same questions.
    pub fn new(corpus: &'a Corpus, count: u64, seed: u64) -> Self {
        Self { corpus, count, chance: Chance::seeded(seed ^ 0x71_75_65_73), asked: HashSet::new() }
    }

    /// A question that was not asked before.
    pub fn ask(&mut self, kind: Kind) -> Question {
        loop {
            let (constraints, constants) = match kind {
                Kind::SelectiveConjunction => self.selective_conjunction(),
                Kind::ConjunctionWithRanges => self.conjunction_with_ranges(),
                Kind::RangeOnly => self.range_only(),
                Kind::ArrayWildcard => self.array_wildcard(),
                Kind::Descendant => self.descendant(),
                Kind::RegularExpression => self.regular_expression(),
                Kind::NegationWithTime => self.negation_with_time(),
                Kind::Broad => self.broad(),
            };
            let ceiling = format!("{}.{:02}", self.chance.below(8), 5 + self.chance.below(95));
            if self.asked.insert(format!("{constraints} {ceiling}")) {
                return Question { kind, constraints, ceiling, constants };
            }
        }
    }

    /// A manifest of the corpus that has a cost; frequent values are asked for as often as they occur.
    fn example(&mut self, wanted: impl Fn(&Facts) -> bool) -> Facts {
        const TRIES: usize = 500;
        let mut found = self.corpus.facts(self.chance.bits() % self.count.max(1));
        for _ in 0..TRIES {
            if found.has_euro_price() && wanted(&found) {
                break;
            }
            found = self.corpus.facts(self.chance.bits() % self.count.max(1));
        }
        found
    }

    fn jurisdiction(&mut self, example: &Facts) -> &'static str {
        country(self.chance.pick(&example.jurisdictions).copied().unwrap_or_default())
    }

    fn selective_conjunction(&mut self) -> (Value, Vec<String>) {
        let example = self.example(|_| true);
        let (category, country) = (category(example.category), self.jurisdiction(&example));
        let (risk, training, effect) = (example.risk_class(), example.training(), example.first_action().1);
        let constraints = json!({"all_of": [
            leaf("/tool/categories", "contains", json!(category)),
            leaf("/jurisdictions", "contains", json!(country)),
            leaf("/risk_class", "eq", json!(risk)),
            leaf("/data_policy/training_on_principal_data", "eq", json!(training)),
            leaf("/actions/0/side_effects", "eq", json!(effect)),
            leaf("/trust/publisher_verified", "eq", json!(example.verified)),
        ]});
        let contained = json!({
            "tool": {"categories": [category]},
            "jurisdictions": [country],
            "risk_class": risk,
            "data_policy": {"training_on_principal_data": training},
            "actions": [{"side_effects": effect}],
            "trust": {"publisher_verified": example.verified},
        });
        let first = format!(r#"$.actions[0].side_effects == "{effect}""#);
        (constraints, vec![contained.to_string(), first])
    }

    fn conjunction_with_ranges(&mut self) -> (Value, Vec<String>) {
        let example = self.example(|_| true);
        let (category, country) = (category(example.category), self.jurisdiction(&example));
        let latency = example.latency_p95_ms + self.chance.below(100) as u32;
        let (uptime, retention) = (example.uptime(), example.retention_days + 1 + self.chance.below(30) as u32);
        let constraints = json!({"all_of": [
            leaf("/tool/categories", "contains", json!(category)),
            leaf("/jurisdictions", "contains", json!(country)),
            leaf("/sla/latency_p95_ms", "lte", json!(latency)),
            leaf("/sla/uptime_target", "gte", json!(uptime)),
            leaf("/data_policy/retention_days", "lt", json!(retention)),
        ]});
        let contained = json!({"tool": {"categories": [category]}, "jurisdictions": [country]});
        let ranges = format!(
            "$.sla.latency_p95_ms <= {latency} && $.sla.uptime_target >= {uptime} && $.data_policy.retention_days < {retention}"
        );
        (constraints, vec![contained.to_string(), ranges])
    }

    fn range_only(&mut self) -> (Value, Vec<String>) {
        let example = self.example(|_| true);
        let from = example.latency_p95_ms.saturating_sub(self.chance.below(6) as u32);
        let (to, uptime, retention) = (from + 12, example.uptime(), example.retention_days);
        let constraints = json!({"all_of": [
            leaf("/sla/latency_p95_ms", "gte", json!(from)),
            leaf("/sla/latency_p95_ms", "lt", json!(to)),
            leaf("/sla/uptime_target", "gte", json!(uptime)),
            leaf("/data_policy/retention_days", "lte", json!(retention)),
        ]});
        let ranges = format!(
            "$.sla.latency_p95_ms >= {from} && $.sla.latency_p95_ms < {to} && $.sla.uptime_target >= {uptime} && $.data_policy.retention_days <= {retention}"
        );
        (constraints, vec![ranges])
    }

    fn array_wildcard(&mut self) -> (Value, Vec<String>) {
        let example = self.example(|_| true);
        let (action, effect) = example.first_action();
        let country = self.jurisdiction(&example);
        let constraints = json!({"all_of": [
            leaf("/actions/*/id", "eq", json!(action)),
            leaf("/actions/*/side_effects", "eq", json!(effect)),
            leaf("/jurisdictions/*", "eq", json!(country)),
        ]});
        let constants = vec![
            format!(r#"$.actions[*] ? (@.id == "{action}")"#),
            format!(r#"$.actions[*] ? (@.side_effects == "{effect}")"#),
            format!(r#"$.jurisdictions[*] ? (@ == "{country}")"#),
        ];
        (constraints, constants)
    }

    fn descendant(&mut self) -> (Value, Vec<String>) {
        let example = self.example(|_| true);
        let (action, _) = example.first_action();
        let constraints = leaf("/**/id", "eq", json!(action));
        (constraints, vec![format!(r#"strict $.**.id == "{action}""#)])
    }

    fn regular_expression(&mut self) -> (Value, Vec<String>) {
        let example = self.example(|_| true);
        let (first, second, trade) = (example.first_word(), example.second_word(), example.trade_word());
        let pattern = match self.chance.one_in(2) {
            true => format!("^{first} [A-Z][a-z]+ {trade} "),
            false => format!("{second} {trade} [0-9]*{}$", example.last_digit()),
        };
        let constraints = leaf("/tool/name", "matches", json!(pattern));
        (constraints, vec![format!(r#"$.tool.name like_regex "{pattern}""#)])
    }

    fn negation_with_time(&mut self) -> (Value, Vec<String>) {
        let country = country(self.chance.below(6));
        let home = |facts: &Facts| facts.jurisdictions.iter().all(|rank| self::country(*rank) != country);
        let example = self.example(home);
        let from = example.updated - self.chance.below(20_000) as i64;
        let (from, to) = (Instant::from_unix(from, 0), Instant::from_unix(from + 43_200, 0));
        let unwanted = ["never", "with_consent", "by_default"].into_iter().find(|other| *other != example.training());
        let unwanted = unwanted.unwrap_or_default();
        let constraints = json!({"all_of": [
            leaf("/updated_at", "within", json!([from.to_string(), to.to_string()])),
            {"not": leaf("/data_policy/training_on_principal_data", "eq", json!(unwanted))},
            {"not": leaf("/jurisdictions", "contains", json!(country))},
        ]});
        let condition = format!(
            r#"$.updated_at >= "{from}" && $.updated_at <= "{to}" && !($.data_policy.training_on_principal_data == "{unwanted}") && !($.jurisdictions[*] == "{country}")"#
        );
        (constraints, vec![condition])
    }

    fn broad(&mut self) -> (Value, Vec<String>) {
        // A third of the manifests have a second category, and a ninth have no price in EUR.
        const SHARE: f64 = 0.05 / (4.0 / 3.0) / (8.0 / 9.0);
        let (mut ranks, mut share) = (Vec::new(), 0.0);
        while share < SHARE {
            let rank = 8 + self.chance.below(CATEGORIES - 8);
            if !ranks.contains(&rank) {
                ranks.push(rank);
                share += self.corpus.category_share(rank);
            }
        }
        let categories: Vec<String> = ranks.into_iter().map(category).collect();
        let alternatives: Vec<String> =
            categories.iter().map(|category| format!(r#"$.tool.categories[*] == "{category}""#)).collect();
        let constraints = leaf("/tool/categories/*", "in", json!(categories));
        (constraints, vec![alternatives.join(" || ")])
    }
}

fn leaf(path: &str, operator: &str, value: Value) -> Value {
    json!({"path": path, "operator": operator, "value": value})
}
