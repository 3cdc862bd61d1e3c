//! RFC 0020 §3.6: standing intents as many people would leave them, over the market of `market`.
//!
//! Each is drawn from a manifest that somebody may have had in mind, with five to ten leaves. Frequent things are asked
//! for as often as they occur, constants are shared where people round, and most intents match hardly anything. Where
//! the peer `a-tree` can say the same, an intent knows its words for it.

use crate::chance::Chance;
use crate::market::{Corpus, Facts, country};
use aql::Instant;
use serde_json::{Value, json};

/// Draws standing intents.
#[derive(Debug)]
pub struct Population {
    corpus: Corpus,
    manifests: u64,
    chance: Chance<'static>,
    /// Intents that say only what a manifest must not have; a node takes few of them.
    negations: usize,
}

/// A standing intent.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its constraints.
    pub constraints: Value,
    /// The same in the words of `a-tree`, where it has them.
    pub peer: Option<String>,
}

/// Intents of negations alone that a population has at most.
pub const NEGATIONS_MAX: usize = 1_000;

impl Population {
    /// The intents of a seed, over the first `manifests` manifests of a corpus.
    pub fn new(corpus: Corpus, manifests: u64, seed: u64) -> Self {
        Self { corpus, manifests, chance: Chance::seeded(seed ^ 0x7374_616e), negations: 0 }
    }

    /// The next intent.
    pub fn draw(&mut self) -> Standing {
        let example = self.corpus.facts(self.chance.bits() % self.manifests.max(1));
        match self.chance.below(10_000) {
            0..5_500 => self.market(&example),
            5_500..7_200 => self.provider(&example),
            7_200..8_000 => self.action(&example),
            8_000..8_600 => self.alternatives(&example),
            8_600..9_400 => self.ranges(&example),
            9_400..9_740 => self.news(&example),
            9_740..9_900 => self.anywhere(&example),
            9_900..9_998 => self.patterns(&example),
            _ if self.negations < NEGATIONS_MAX => self.negations(&example),
            _ => self.market(&example),
        }
    }

    fn jurisdiction(&mut self, example: &Facts) -> &'static str {
        country(self.chance.pick(&example.jurisdictions).copied().unwrap_or_default())
    }

    /// Bounds as people write them: round, a little above what they saw.
    fn latency(&mut self, example: &Facts) -> u32 {
        let above = example.latency_p95_ms + self.chance.below(100) as u32;
        if self.chance.one_in(4) { above } else { above.next_multiple_of(50) }
    }

    fn market(&mut self, example: &Facts) -> Standing {
        let (jurisdiction, latency) = (self.jurisdiction(example), self.latency(example));
        let mut leaves = vec![
            contains("/tool/categories", "categories", &example.category_name()),
            contains("/jurisdictions", "jurisdictions", jurisdiction),
            equal("/risk_class", "risk", example.risk_class()),
            compare("/sla/latency_p95_ms", "latency", "lte", latency.into()),
            compare("/data_policy/retention_days", "retention", "lte", example.retention_days.into()),
        ];
        let chance = &mut self.chance;
        if chance.one_in(2) {
            leaves.push(equal("/data_policy/training_on_principal_data", "training", example.training()));
        }
        if chance.one_in(2) {
            leaves.push(uptime(example));
        }
        if chance.one_in(3) {
            leaves.push(flag("/trust/publisher_verified", "verified", example.verified));
        }
        if chance.one_in(4) {
            leaves.push(price(example));
        }
        if chance.one_in(4) {
            leaves.push(not(contains("/jurisdictions", "jurisdictions", country(chance.below(48)))));
        }
        all(leaves)
    }

    fn provider(&mut self, example: &Facts) -> Standing {
        let watched = if self.chance.one_in(3) {
            let others = (0..2 + self.chance.below(3)).map(|_| self.corpus.facts(self.chance.bits() % self.manifests));
            let dids: Vec<String> = std::iter::once(example.did()).chain(others.map(|other| other.did())).collect();
            let quoted: Vec<String> = dids.iter().map(|did| format!("'{did}'")).collect();
            let peer = format!("did in [{}]", quoted.join(","));
            leaf("/tool/did", "in", json!(dids), Some(peer))
        } else {
            equal("/tool/did", "did", &example.did())
        };
        let latency = self.latency(example);
        all(vec![
            watched,
            compare("/sla/latency_p95_ms", "latency", "lte", latency.into()),
            uptime(example),
            compare("/trust/incidents_last_90d", "incidents", "lte", 2),
            equal("/risk_class", "risk", example.risk_class()),
        ])
    }

    fn action(&mut self, example: &Facts) -> Standing {
        let (action, effect) = example.first_action();
        let latency = self.latency(example);
        all(vec![
            equal_each("/actions/*/id", "actions", &action),
            equal_each("/actions/*/side_effects", "effects", effect),
            equal_each("/jurisdictions/*", "jurisdictions", self.jurisdiction(example)),
            compare("/sla/latency_p95_ms", "latency", "lte", latency.into()),
            compare("/data_policy/retention_days", "retention", "lt", i64::from(example.retention_days) + 30),
        ])
    }

    fn alternatives(&mut self, example: &Facts) -> Standing {
        let other = self.corpus.facts(self.chance.bits() % self.manifests);
        let latency = self.latency(example);
        all(vec![
            any(vec![
                contains("/tool/categories", "categories", &example.category_name()),
                contains("/tool/categories", "categories", &other.category_name()),
            ]),
            any(vec![
                all(vec![
                    contains("/jurisdictions", "jurisdictions", self.jurisdiction(example)),
                    flag("/trust/publisher_verified", "verified", true),
                ]),
                contains("/jurisdictions", "jurisdictions", self.jurisdiction(&other)),
            ]),
            compare("/sla/latency_p95_ms", "latency", "lte", latency.into()),
            not(equal("/risk_class", "risk", "high")),
        ])
    }

    /// No value to look up: a window of latency, and bounds on what comes with it.
    fn ranges(&mut self, example: &Facts) -> Standing {
        let from = example.latency_p95_ms.saturating_sub(self.chance.below(20) as u32);
        let since = example.updated - self.chance.below(90 * 86_400) as i64;
        all(vec![
            compare("/sla/latency_p95_ms", "latency", "gte", from.into()),
            compare("/sla/latency_p95_ms", "latency", "lt", i64::from(from) + 10 + self.chance.below(30) as i64),
            uptime(example),
            compare("/data_policy/retention_days", "retention", "lte", example.retention_days.into()),
            after(since),
        ])
    }

    fn news(&mut self, example: &Facts) -> Standing {
        let from = example.updated - self.chance.below(20_000) as i64;
        let window = [Instant::from_unix(from, 0).to_string(), Instant::from_unix(from + 43_200, 0).to_string()];
        let peer = format!("updated >= {from} and updated <= {}", from + 43_200);
        all(vec![
            leaf("/updated_at", "within", json!(window), Some(peer)),
            not(contains("/jurisdictions", "jurisdictions", country(6 + self.chance.below(42)))),
            not(equal("/data_policy/training_on_principal_data", "training", "by_default")),
            not(equal("/risk_class", "risk", "high")),
            compare("/trust/incidents_last_90d", "incidents", "lte", 1),
        ])
    }

    fn anywhere(&mut self, example: &Facts) -> Standing {
        let (action, _) = example.first_action();
        let latency = self.latency(example);
        all(vec![
            leaf("/**/id", "eq", json!(action), None),
            leaf("/**/country", "eq", json!(self.jurisdiction(example)), None),
            compare("/sla/latency_p95_ms", "latency", "lte", latency.into()),
            uptime(example),
            flag("/trust/publisher_verified", "verified", example.verified),
        ])
    }

    /// Nothing but patterns; people who write some write much the same.
    fn patterns(&mut self, example: &Facts) -> Standing {
        let matches = |path: &str, pattern: String| leaf(path, "matches", json!(pattern), None);
        let (first, second, trade) = (example.first_word(), example.second_word(), example.trade_word());
        all(vec![
            match self.chance.one_in(2) {
                true => matches("/tool/name", format!("^{first} [A-Z][a-z]+ {trade} ")),
                false => matches("/tool/name", format!("{second} {trade} [0-9]+$")),
            },
            matches("/tool/publisher/legal_name", "Ltd$".to_owned()),
            matches("/tool/version", "^[1-3]\\.".to_owned()),
            matches("/endpoints/invoke", "^https://".to_owned()),
            matches("/tool/did", "^did:web:".to_owned()),
        ])
    }

    fn negations(&mut self, example: &Facts) -> Standing {
        self.negations += 1;
        all(vec![
            not(equal("/risk_class", "risk", "high")),
            not(contains("/jurisdictions", "jurisdictions", country(self.chance.below(8)))),
            not(contains("/tool/categories", "categories", &example.category_name())),
            not(equal("/data_policy/training_on_principal_data", "training", "by_default")),
            not(compare("/sla/latency_p95_ms", "latency", "gt", 100 + 50 * self.chance.below(6) as i64)),
        ])
    }
}

fn leaf(path: &str, operator: &str, value: Value, peer: Option<String>) -> Standing {
    Standing { constraints: json!({"path": path, "operator": operator, "value": value}), peer }
}

fn contains(path: &str, attribute: &str, value: &str) -> Standing {
    leaf(path, "contains", json!(value), Some(format!("{attribute} one of ['{value}']")))
}

fn equal_each(path: &str, attribute: &str, value: &str) -> Standing {
    leaf(path, "eq", json!(value), Some(format!("{attribute} one of ['{value}']")))
}

fn equal(path: &str, attribute: &str, value: &str) -> Standing {
    leaf(path, "eq", json!(value), Some(format!("{attribute} = '{value}'")))
}

fn flag(path: &str, attribute: &str, value: bool) -> Standing {
    let peer = if value { attribute.to_owned() } else { format!("(not {attribute})") };
    leaf(path, "eq", json!(value), Some(peer))
}

fn compare(path: &str, attribute: &str, operator: &str, value: i64) -> Standing {
    let sign = match operator {
        "lt" => "<",
        "lte" => "<=",
        "gt" => ">",
        _ => ">=",
    };
    leaf(path, operator, json!(value), Some(format!("{attribute} {sign} {value}")))
}

fn uptime(example: &Facts) -> Standing {
    let peer = format!("uptime >= {}", example.uptime_in_ten_thousandths());
    leaf("/sla/uptime_target", "gte", json!(example.uptime()), Some(peer))
}

/// Some price in the list is low enough; `a-tree` has no lists of amounts that can be compared.
fn price(example: &Facts) -> Standing {
    let amount = example.first_price().unwrap_or_else(|| "1.000".to_owned());
    leaf("/pricing/models/*/amount", "lte", json!(amount), None)
}

fn after(moment: i64) -> Standing {
    leaf("/updated_at", "after", json!(Instant::from_unix(moment, 0).to_string()), Some(format!("updated > {moment}")))
}

fn not(inner: Standing) -> Standing {
    Standing {
        constraints: json!({"not": inner.constraints}),
        peer: inner.peer.map(|words| format!("(not ({words}))")),
    }
}

fn all(parts: Vec<Standing>) -> Standing {
    joined(parts, "all_of", " and ")
}

fn any(parts: Vec<Standing>) -> Standing {
    joined(parts, "any_of", " or ")
}

fn joined(parts: Vec<Standing>, combinator: &str, word: &str) -> Standing {
    let peer: Option<Vec<String>> = parts.iter().map(|part| part.peer.clone()).collect();
    let constraints: Vec<Value> = parts.into_iter().map(|part| part.constraints).collect();
    Standing {
        constraints: json!({combinator: constraints}),
        peer: peer.map(|words| format!("({})", words.join(word))),
    }
}
