//! RFC 0020 §3.7: one decision in full, for a person who asks why.

use super::resolution::{condition, id, money};
use super::text::{shorten, shown};
use super::{BAD, DIM, GOOD, STRONG, WARN, paint};
use crate::explanation::Explanation;
use aql::{Outcome, RANKING_ID, RANKING_VERSION};
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

/// The whole explanation.
pub(crate) fn show(explanation: &Explanation<'_>) -> String {
    let mut text = heading(explanation);
    text.push_str(&section("constraints", &constraints(explanation)));
    text.push_str(&section("cost", &cost(explanation)));
    text.push_str(&section("quality floor", &quality(explanation)));
    text.push_str(&section("projection", &projection(explanation)));
    text.push_str(&section(&format!("score by {RANKING_ID} {RANKING_VERSION}"), &score(explanation)));
    text
}

fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{lines}", paint(STRONG, title))
}

fn heading(explanation: &Explanation<'_>) -> String {
    let outcome = explanation.judgement.outcome;
    let style = match outcome {
        Outcome::Accept => GOOD,
        Outcome::OverBudget | Outcome::BelowQualityFloor => WARN,
        Outcome::Reject => BAD,
    };
    let place = match (explanation.rank, &explanation.ranking) {
        (Some(rank), _) => format!(", rank {rank} of {}", explanation.answers),
        (None, Some(_)) => ", left out: the answer has no room for it".to_owned(),
        (None, None) => String::new(),
    };
    format!(
        "{}\n{}{place}\n{}\n",
        paint(STRONG, id(explanation.candidate)),
        paint(style, outcome.name()),
        shown(&explanation.judgement.explanation),
    )
}

fn constraints(explanation: &Explanation<'_>) -> Vec<String> {
    let evaluations = explanation.record.root().get("constraint_evaluations");
    let evaluations = evaluations.into_iter().flat_map(Node::elements);
    let leaves = explanation.intent.constraints.leaves();
    let mut lines = Vec::new();
    for (number, (leaf, evaluation)) in leaves.iter().zip(evaluations).enumerate() {
        let passed = evaluation.get("passed").and_then(Node::as_bool).unwrap_or(false);
        let mark = match (passed != leaf.negated, explanation.judgement.failing.contains(&number)) {
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

fn score(explanation: &Explanation<'_>) -> Vec<String> {
    let Some(ranking) = &explanation.ranking else { return Vec::new() };
    let mut lines: Vec<String> = ranking
        .contributions
        .iter()
        .map(|input| {
            format!("{:<20} {:>8.4} × {:.2}  = {:.4}", input.name, input.value, input.weight, input.contribution)
        })
        .collect();
    lines.push(format!("{:<20} {:>15}  = {}", "score", "", paint(STRONG, format!("{:.4}", ranking.score))));
    lines
}
