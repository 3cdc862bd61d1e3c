//! RFC 0020 A.3 R5, RFC 0020 §3.4: an answer as a table, with the reasons beside it.

use super::table::{Align, Cell, Table};
use super::text::{NO_BREAK, shorten, shown, wrap};
use super::{BAD, DIM, GOOD, PLAIN, STRONG, WARN, count, paint};
use aql::{
    Allocation, Amount, Budget, Candidate, Contribution, Intent, Judgement, Leaf, Match, Outcome, Rejection, Resolution,
};
use std::cmp::Reverse;
use std::ops::ControlFlow;

/// An identifier longer than this is cut; nobody copies it by hand.
const ID_MAX: usize = 120;

/// An operand longer than this is cut.
const OPERAND_MAX: usize = 48;

/// How much of an answer is shown.
pub(crate) struct Layout {
    pub(crate) width: usize,
    pub(crate) rejected_max: usize,
    /// How to see more of the rejected.
    pub(crate) hint: &'static str,
}

/// The whole answer.
pub(crate) fn show(intent: &Intent, resolution: &Resolution<'_>, layout: &Layout) -> String {
    let mut text = matches(intent, resolution, layout);
    text.push_str(&rejections(intent, resolution, layout));
    text.push_str(&shares(intent, resolution, layout));
    text
}

fn matches(intent: &Intent, resolution: &Resolution<'_>, layout: &Layout) -> String {
    let (found, left_out) = (resolution.matches.len(), resolution.left_out);
    let all = found + left_out + resolution.rejections.len();
    let heading = match found {
        0 => paint(WARN, format!("no answer among {}", count(all, "candidate"))),
        found => format!("{} among {}", paint(STRONG, count(found, "answer")), count(all, "candidate")),
    };
    let note = match left_out {
        0 => String::new(),
        left_out => paint(DIM, format!(", {left_out} more left out by {}", what_limits(intent))),
    };
    let mut text = format!("{heading}{note}\n");
    if found == 0 {
        return text;
    }
    let mut headings = vec![("#", Align::Right), ("candidate", Align::Left), ("score", Align::Right)];
    // Without a budget there is no currency to ask a price in.
    headings.extend(intent.budget.as_ref().map(|_| ("cost", Align::Right)));
    headings.push(("why", Align::Left));
    let mut table = Table::new(1, &headings);
    for found in &resolution.matches {
        table.row(match_row(intent, found));
    }
    text.push_str(&table.draw(layout.width));
    text
}

fn match_row(intent: &Intent, found: &Match<'_>) -> Vec<Cell> {
    let over = found.judgement.over_budget;
    let mut row = vec![
        Cell::from(found.rank.to_string()),
        Cell::new(id(found.candidate), if over { WARN } else { GOOD }),
        Cell::from(format!("{:.4}", found.ranking.score)),
    ];
    let mut why = strongest(&found.ranking.contributions);
    if let Some(budget) = &intent.budget {
        let cost = found.judgement.cost.map_or("none".to_owned(), |cost| money(cost, budget));
        row.push(Cell::new(cost, if over { WARN } else { PLAIN }));
        if over {
            why = format!("over the budget of {}; {why}", money(budget.ceiling.amount, budget));
        }
    }
    row.push(Cell::new(why, if over { WARN } else { PLAIN }));
    row
}

/// What brought the score, strongest first.
fn strongest(contributions: &[Contribution]) -> String {
    let mut inputs: Vec<_> = contributions.iter().filter(|input| input.contribution > 0.0).collect();
    inputs.sort_by(|left, right| right.contribution.total_cmp(&left.contribution));
    let name = |name: &'static str| name.trim_end_matches("_score").trim_start_matches("provider_");
    let words: Vec<String> = inputs
        .iter()
        .take(3)
        .map(|input| format!("{}{NO_BREAK}+{:.2}", name(input.name), input.contribution))
        .collect();
    if words.is_empty() { "nothing is known of its quality".to_owned() } else { words.join(", ") }
}

fn what_limits(intent: &Intent) -> &'static str {
    match intent.resolution_policy {
        aql::ResolutionPolicy::SingleBest => "single_best",
        aql::ResolutionPolicy::RankedSet | aql::ResolutionPolicy::FullSet => "top_k",
    }
}

fn rejections(intent: &Intent, resolution: &Resolution<'_>, layout: &Layout) -> String {
    let all = resolution.rejections.len();
    if all == 0 {
        return String::new();
    }
    let mut text = paragraph(&format!("{all} rejected: {}", kinds(&resolution.rejections)), layout);
    // Whoever asked wants to know what almost fitted, not which record stands first in the file.
    let mut nearest: Vec<&Rejection<'_>> = resolution.rejections.iter().collect();
    // People name the topic first, so a late failure is a nearer miss than an early one.
    nearest.sort_by_key(|rejection| {
        let failing = &rejection.judgement.failing;
        (failing.len(), Reverse(failing.first().copied()))
    });
    nearest.truncate(layout.rejected_max);
    if nearest.is_empty() {
        return text;
    }
    if nearest.len() < all {
        let misses = if nearest.len() == 1 {
            "the nearest miss".to_owned()
        } else {
            format!("the {} nearest misses", nearest.len())
        };
        text.push_str(&format!("{}\n", paint(DIM, misses + layout.hint)));
    }
    let mut table = Table::new(0, &[("candidate", Align::Left), ("outcome", Align::Left), ("why", Align::Left)]);
    for rejection in &nearest {
        let outcome = rejection.judgement.outcome;
        let style = if outcome == Outcome::Reject { BAD } else { WARN };
        table.row(vec![
            id(rejection.candidate).into(),
            Cell::new(outcome.name(), style),
            reason(intent, rejection.candidate, &rejection.judgement).into(),
        ]);
    }
    text + &table.draw(layout.width)
}

/// How many fell to what.
fn kinds(rejections: &[Rejection<'_>]) -> String {
    let kind = |judgement: &Judgement| match judgement.outcome {
        Outcome::BelowQualityFloor => "by the quality floor",
        Outcome::OverBudget => "over budget",
        Outcome::Accept | Outcome::Reject if !judgement.failing.is_empty() => "by constraints",
        Outcome::Accept | Outcome::Reject if judgement.explanation.starts_with("cost_undefined") => "without a price",
        Outcome::Accept | Outcome::Reject => "by the projection",
    };
    let number = |name: &str| rejections.iter().filter(|rejection| kind(&rejection.judgement) == name).count();
    let kinds = ["by constraints", "by the quality floor", "without a price", "by the projection", "over budget"];
    let counted: Vec<_> = kinds.iter().map(|name| (number(name), name)).filter(|(number, _)| *number > 0).collect();
    match counted.as_slice() {
        [(_, name)] => format!("all {name}"),
        several => several.iter().map(|(number, name)| format!("{number} {name}")).collect::<Vec<_>>().join(", "),
    }
}

fn reason(intent: &Intent, candidate: &Candidate, judgement: &Judgement) -> String {
    let mut failing = judgement.failing.iter().filter_map(|number| intent.constraints.leaves().get(*number));
    match failing.next() {
        None => shown(&judgement.explanation),
        Some(leaf) => {
            let nothing = leaf.path.reach(candidate.record(), &mut 0, |_| ControlFlow::Break(())).is_continue();
            let nothing = if nothing { " (nothing there)" } else { "" };
            let more = match failing.count() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!("{}{nothing}{more}", condition(leaf))
        }
    }
}

/// A leaf as people would say it.
pub(crate) fn condition(leaf: &Leaf) -> String {
    let not = if leaf.negated { "not " } else { "" };
    format!("{not}{} {} {}", shown(leaf.path.text()), leaf.operator.name(), operand(leaf))
}

fn operand(leaf: &Leaf) -> String {
    let text = String::from_utf8_lossy(&json::canonical_value(&leaf.value)).into_owned();
    shorten(&shown(&text), OPERAND_MAX)
}

fn shares(intent: &Intent, resolution: &Resolution<'_>, layout: &Layout) -> String {
    let Some(budget) = &intent.budget else { return String::new() };
    let shares = resolution.shares(intent);
    if shares.is_empty() {
        return String::new();
    }
    let policy = match budget.allocation {
        Allocation::SingleWinner => "single_winner",
        Allocation::RankedTopK { .. } => "ranked_top_k",
        Allocation::ProportionalQuality => "proportional_quality",
    };
    let places: Vec<String> = (1..)
        .zip(&shares)
        .map(|(rank, share)| format!("{}{NO_BREAK}to{NO_BREAK}#{rank}", share.amount.with_scale(budget.scale())))
        .collect();
    let ceiling = money(budget.ceiling.amount, budget);
    paragraph(&format!("budget of {ceiling} as {policy}: {}", places.join(", ")), layout)
}

/// A line of its own, after an empty one.
fn paragraph(words: &str, layout: &Layout) -> String {
    let lines: String = wrap(words, layout.width).iter().map(|line| format!("{line}\n")).collect();
    format!("\n{lines}")
}

/// A candidate's name, made harmless.
pub(crate) fn id(candidate: &Candidate) -> String {
    shorten(&shown(&candidate.id), ID_MAX)
}

/// An amount with cents, or with as many digits as it has.
pub(crate) fn money(amount: Amount, budget: &Budget) -> String {
    let shortest = amount.to_string();
    let digits = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let text = if digits > budget.scale() { shortest } else { amount.with_scale(budget.scale()) };
    format!("{text} {}", budget.ceiling.currency)
}
