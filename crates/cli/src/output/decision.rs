//! RFC 0020 §3.7: one decision in full, for a person who asks why.

use super::resolution::{condition, id, money};
use super::text::{shorten, shown};
use super::{BAD, DIM, GOOD, STRONG, WARN, paint};
use crate::explanation::Explanation;
use crate::page;
use aql::Intent;
use json::{Node, Value};

/// A value longer than this is cut.
const VALUE_MAX: usize = 60;

/// How something fared.
#[derive(Clone, Copy)]
enum Mark {
    Good,
    Bad,
    /// Not as wished, and not to blame.
    Idle,
}

impl Mark {
    fn of(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }

    fn sign(self) -> String {
        match self {
            Self::Good => paint(GOOD, "✓"),
            Self::Bad => paint(BAD, "✗"),
            Self::Idle => paint(DIM, "○"),
        }
    }
}

/// One decision: its record, and what else is known of it here.
pub(crate) struct Decided<'a> {
    pub(crate) intent: &'a Intent,
    pub(crate) candidate_id: &'a str,
    pub(crate) record: Node<'a>,
    /// Behind the outcome: the place in the answer.
    pub(crate) place: String,
    /// What only whoever has the candidate can say.
    pub(crate) at_hand: Option<&'a Explanation<'a>>,
}

/// The whole explanation of a candidate that is at hand.
pub(crate) fn show(explanation: &Explanation<'_>) -> String {
    let place = match (explanation.rank, &explanation.ranking) {
        (Some(rank), _) => format!(", rank {rank} of {}", explanation.answers),
        (None, Some(_)) => ", left out: the answer has no room for it".to_owned(),
        (None, None) => String::new(),
    };
    show_decided(&Decided {
        intent: explanation.intent,
        candidate_id: &explanation.candidate.id,
        record: explanation.record.root(),
        place,
        at_hand: Some(explanation),
    })
}

/// What a decision record tells.
pub(crate) fn show_record(intent: &Intent, candidate_id: &str, record: Node<'_>) -> String {
    let rank = record.get("ranking_function").and_then(|ranking| ranking.get("rank")?.as_u64());
    let place = rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
    show_decided(&Decided { intent, candidate_id, record, place, at_hand: None })
}

fn show_decided(decided: &Decided<'_>) -> String {
    let mut text = heading(decided);
    text.push_str(&section("constraints", &constraints(decided)));
    if let Some(explanation) = decided.at_hand {
        text.push_str(&section("cost", &cost(explanation)));
        text.push_str(&section("quality floor", &quality(explanation)));
        text.push_str(&section("projection", &projection(explanation)));
    }
    if let Some(ranking) = decided.record.get("ranking_function") {
        let name = |name: &str| ranking.get(name).and_then(Node::as_str).map(shown).unwrap_or_default();
        let title = format!("score by {} {}", name("function_id"), name("function_version"));
        text.push_str(&section(&title, &score(ranking)));
    }
    text
}

fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{lines}", paint(STRONG, title))
}

fn heading(decided: &Decided<'_>) -> String {
    let text = |name: &str| decided.record.get(name).and_then(Node::as_str).unwrap_or_default();
    let style = match text("outcome") {
        "accept" => GOOD,
        "over_budget" | "below_quality_floor" => WARN,
        _ => BAD,
    };
    format!(
        "{}\n{}{}\n{}\n",
        paint(STRONG, id(decided.candidate_id)),
        paint(style, shown(text("outcome"))),
        decided.place,
        shown(text("explanation")),
    )
}

fn constraints(decided: &Decided<'_>) -> Vec<String> {
    let evaluations = decided.record.get("constraint_evaluations");
    let evaluations = evaluations.into_iter().flat_map(Node::elements);
    let leaves = decided.intent.constraints.leaves();
    let failing = page::failing(decided.intent, Some(decided.record));
    let mut lines = Vec::new();
    for (number, (leaf, evaluation)) in leaves.iter().zip(evaluations).enumerate() {
        let passed = evaluation.get("passed").and_then(Node::as_bool).unwrap_or(false);
        let mark = match (passed != leaf.negated, failing.contains(&number)) {
            (true, _) => Mark::Good,
            (false, true) => Mark::Bad,
            (false, false) => Mark::Idle,
        };
        let reason = evaluation.get("reason").and_then(Node::as_str).unwrap_or("satisfied");
        let found = match evaluation.get("candidate_value") {
            Some(value) => format!("found {}", value_text(value)),
            None if reason.ends_with("nothing at this path") => String::new(),
            None => "its value is outside the projection".to_owned(),
        };
        let said = [reason, &found].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("; ");
        lines.push(format!("{} {}", mark.sign(), condition(leaf)));
        lines.push(format!("    {}", paint(DIM, said)));
    }
    lines
}

fn value_text(value: Node<'_>) -> String {
    shorten(&shown(&String::from_utf8_lossy(&json::canonical(value))), VALUE_MAX)
}

fn cost(explanation: &Explanation<'_>) -> Vec<String> {
    let Some(budget) = &explanation.intent.budget else { return Vec::new() };
    let ceiling = money(budget.ceiling.amount, budget);
    let line = match explanation.judgement.cost {
        None => format!("{} no price in {}, of {ceiling}", Mark::Bad.sign(), budget.ceiling.currency),
        Some(cost) => {
            let fits = cost <= budget.ceiling.amount;
            format!("{} {} of {ceiling}", Mark::of(fits).sign(), money(cost, budget))
        }
    };
    vec![line]
}

fn quality(explanation: &Explanation<'_>) -> Vec<String> {
    let line = |floor: crate::explanation::Floor| {
        let found = floor.found.as_ref().map_or("unknown".to_owned(), signal_text);
        let wanted = signal_text(&floor.floor);
        format!("{} {:<20} {found:<8} {} {wanted}", Mark::of(floor.met).sign(), floor.signal, floor.bound)
    };
    explanation.floors().into_iter().map(line).collect()
}

/// A level without its quotes, a number without a needless fraction.
fn signal_text(value: &Value) -> String {
    match value {
        Value::String(text) => shown(text),
        other => String::from_utf8_lossy(&json::canonical_value(other)).into_owned(),
    }
}

fn projection(explanation: &Explanation<'_>) -> Vec<String> {
    let line = |(pointer, supplied): (&str, bool)| {
        let note = if supplied { String::new() } else { paint(DIM, "  the record does not supply it") };
        format!("{} {}{note}", Mark::of(supplied).sign(), shown(pointer))
    };
    explanation.includes().into_iter().map(line).collect()
}

fn score(ranking: Node<'_>) -> Vec<String> {
    let number = |node: Node<'_>, name: &str| node.get(name).and_then(Node::as_f64).unwrap_or_default();
    let line = |input: Node<'_>| {
        let name = input.get("name").and_then(Node::as_str).map(shown).unwrap_or_default();
        let (value, weight) = (number(input, "value"), number(input, "weight"));
        format!("{name:<20} {value:>8.4} × {weight:.2}  = {:.4}", number(input, "contribution"))
    };
    let mut lines: Vec<String> = ranking.get("inputs").into_iter().flat_map(Node::elements).map(line).collect();
    let score = format!("{:.4}", number(ranking, "score"));
    lines.push(format!("{:<20} {:>15}  = {}", "score", "", paint(STRONG, score)));
    lines
}
