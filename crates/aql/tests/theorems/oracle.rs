//! RFC 0020 A.2: when a candidate is an answer, read from the text and asked of the twin.
//!
//! Constraints, decimals and projections are the twin's; cost and quality are written out once more here, so that
//! neither engine vouches for itself.

use json::{Value, json};
use reference::Limits;
use std::cmp::Ordering;

/// What A.2 says about one candidate.
#[derive(Debug)]
pub(crate) struct Standing {
    /// The constraint tree holds.
    pub(crate) constraints: bool,
    /// How the cost stands to the budget.
    pub(crate) cost: Cost,
    /// Every declared signal is met.
    pub(crate) quality: bool,
    /// What the projection shows, when every include can be supplied.
    pub(crate) payload: Option<Value>,
}

/// How a declared cost stands to a budget.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// There is no budget, or it is enough.
    Fits,
    /// The budget is too small.
    Over,
    /// Nothing is declared in the currency of the budget.
    Undefined,
}

impl Standing {
    /// The standing of a candidate, a bare record or one with its cost and quality beside it.
    ///
    /// `None` when the twin refuses the intent.
    pub(crate) fn of(intent: &Value, candidate: &Value) -> Option<Self> {
        reference::read_intent(&twin(intent)).ok()?;
        let record = record(candidate);
        let evaluation = reference::evaluate(&twin(&intent["constraints"]), &twin(record)).ok()?;
        let projected = reference::project(&twin(&intent["projection"]), &twin(record)).ok()?;
        Some(Self {
            constraints: evaluation.holds,
            cost: cost(intent, candidate),
            quality: meets(&intent["quality_floor"], candidate),
            payload: projected.ok().map(|payload| plain(&payload)),
        })
    }

    /// Whether the candidate belongs to the answer set.
    pub(crate) fn answers(&self) -> bool {
        self.is_found() && self.cost == Cost::Fits
    }

    /// Whether nothing but the budget speaks against the candidate.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.is_found() && self.cost == Cost::Over
    }

    fn is_found(&self) -> bool {
        self.constraints && self.quality && self.payload.is_some()
    }
}

/// A value as the twin reads it.
pub(crate) fn twin(value: &Value) -> reference::Value {
    reference::parse(value.to_string().as_bytes(), &Limits::document()).unwrap()
}

fn plain(value: &reference::Value) -> Value {
    let text = reference::canonical(value);
    json::Document::parse(text.as_bytes(), &json::Limits::DOCUMENT).unwrap().root().to_value()
}

fn is_wrapper(candidate: &Value) -> bool {
    let known = |name: &String| ["id", "record", "cost", "quality"].contains(&name.as_str());
    candidate["record"].is_object() && candidate.as_object().unwrap().keys().all(known)
}

fn record(candidate: &Value) -> &Value {
    if is_wrapper(candidate) { &candidate["record"] } else { candidate }
}

fn beside<'a>(candidate: &'a Value, name: &str) -> Option<&'a Value> {
    if is_wrapper(candidate) { candidate.get(name) } else { None }
}

fn cost(intent: &Value, candidate: &Value) -> Cost {
    let Some(budget) = intent.get("budget") else { return Cost::Fits };
    let currency = &budget["currency"];
    let declared = match beside(candidate, "cost") {
        Some(given) => amount(given, currency),
        None => own_cost(intent["category"].as_str().unwrap(), record(candidate), currency),
    };
    match declared {
        None => Cost::Undefined,
        Some(amount) if order(&json!(amount), &budget["amount"]) == Ordering::Greater => Cost::Over,
        Some(_) => Cost::Fits,
    }
}

fn order(left: &Value, right: &Value) -> Ordering {
    reference::order(&twin(left), &twin(right)).unwrap()
}

/// What a record itself declares, in the place that its category has for it.
fn own_cost(category: &str, record: &Value, currency: &Value) -> Option<String> {
    let priced = match category {
        "commercial" | "knowledge" => record.get("price"),
        "action" | "delegation" => record.get("cost"),
        _ => None,
    };
    match priced {
        Some(cost) if category != "commercial" && category != "knowledge" && cost["type"] == "free" => {
            Some("0".to_owned())
        }
        Some(price) => amount(price, currency),
        None => {
            let models = record["pricing"]["models"].as_array().into_iter().flatten();
            let price = |model: &Value| match model["type"].as_str() {
                Some("free") => Some("0".to_owned()),
                Some("per_call") => amount(model, currency),
                _ => None,
            };
            models.filter_map(price).min_by(|left, right| order(&json!(left), &json!(right)))
        }
    }
}

/// The amount of a price in a currency, where it is a plain decimal of at most eighteen digits on each side.
fn amount(price: &Value, currency: &Value) -> Option<String> {
    let text = price.get("amount")?.as_str()?;
    let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| (1..=18).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    (price.get("currency")? == currency && digits(integer) && digits(fraction)).then(|| text.to_owned())
}

fn meets(floor: &Value, candidate: &Value) -> bool {
    let given = |name: &str| beside(candidate, "quality").and_then(|quality| quality.get(name));
    let declared = |block: &str| record(candidate).get(block)?.get("latency_p99_ms").filter(|it| it.is_number());
    floor.as_object().into_iter().flatten().all(|(name, floor)| {
        let signal = match name.as_str() {
            "latency_p99_ms" => {
                given(name).or_else(|| declared("cost_disclosure")).or_else(|| declared("sla")).and_then(Value::as_f64)
            }
            "conformance_level" => {
                let (level, floor) = (given(name).and_then(Value::as_str), floor.as_str().unwrap());
                return level.is_some_and(|level| reaches(level, floor));
            }
            _ => given(name).and_then(Value::as_f64),
        };
        let floor = floor.as_f64().unwrap();
        signal.is_some_and(|signal| if name == "latency_p99_ms" { signal <= floor } else { signal >= floor })
    })
}

/// Levels are ordered by their digit among those of one letter and one suffix.
fn reaches(level: &str, floor: &str) -> bool {
    let family = |level: &str| (level[..1].to_owned(), level[2..].to_owned());
    family(level) == family(floor) && level[1..2] >= floor[1..2]
}
