//! RFC 0020 A.3 R5, RFC 0020 §3.4: an answer as a table, with the reasons beside it.

use super::table::{Align, Cell, Table};
use super::text::{NO_BREAK, shorten, shown, wrap};
use super::{BAD, DIM, GOOD, PLAIN, STRONG, WARN, count, paint};
use crate::page::{Found, Miss, Page};
use aql::{Allocation, Amount, Budget, Intent, Leaf, Outcome};
use std::cmp::Reverse;

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
pub(crate) fn show(intent: &Intent, page: &Page, layout: &Layout) -> String {
    let mut text = matches(intent, page, layout);
    text.push_str(&rejections(intent, page, layout));
    text.push_str(&shares(intent, page, layout));
    text
}

fn matches(intent: &Intent, page: &Page, layout: &Layout) -> String {
    let mut text = heading(intent, page);
    if page.found.is_empty() {
        return text;
    }
    let mut headings = vec![("#", Align::Right), ("candidate", Align::Left), ("score", Align::Right)];
    // Without a budget there is no currency to ask a price in.
    headings.extend(intent.budget.as_ref().map(|_| ("cost", Align::Right)));
    headings.push(("why", Align::Left));
    let mut table = Table::new(1, &headings);
    for found in &page.found {
        table.row(match_row(intent, found));
    }
    text.push_str(&table.draw(layout.width));
    text
}

fn heading(intent: &Intent, page: &Page) -> String {
    let among = page.census.as_ref().map(|census| format!(" among {}", count(census.candidates, "candidate")));
    let among = among.unwrap_or_default();
    let answers = match page.found.len() {
        0 => paint(WARN, format!("no answer{among}")),
        found => format!("{}{among}", paint(STRONG, count(found, "answer"))),
    };
    let note = match page.census.as_ref().map_or(0, |census| census.left_out) {
        0 if page.more => paint(DIM, ", and there are more"),
        0 => String::new(),
        left_out => paint(DIM, format!(", {left_out} more left out by {}", what_limits(intent))),
    };
    format!("{answers}{note}\n")
}

fn match_row(intent: &Intent, found: &Found) -> Vec<Cell> {
    let over = found.over_budget;
    let mut row = vec![
        Cell::from(found.rank.to_string()),
        Cell::new(id(&found.id), if over { WARN } else { GOOD }),
        Cell::from(format!("{:.4}", found.score)),
    ];
    let mut why = strongest(&found.inputs);
    if let Some(budget) = &intent.budget {
        let cost = found.cost.map_or("none".to_owned(), |cost| money(cost, budget));
        row.push(Cell::new(cost, if over { WARN } else { PLAIN }));
        if over {
            why = format!("over the budget of {}; {why}", money(budget.ceiling.amount, budget));
        }
    }
    row.push(Cell::new(why, if over { WARN } else { PLAIN }));
    row
}

/// What brought the score, strongest first.
fn strongest(inputs: &[(String, f64, f64)]) -> String {
    let mut inputs: Vec<_> = inputs.iter().filter(|(_, _, contribution)| *contribution > 0.0).collect();
    inputs.sort_by(|left, right| right.2.total_cmp(&left.2));
    let name = |name: &str| shown(name.trim_end_matches("_score").trim_start_matches("provider_"));
    let words: Vec<String> = inputs
        .iter()
        .take(3)
        .map(|(input, _, contribution)| format!("{}{NO_BREAK}+{contribution:.2}", name(input)))
        .collect();
    if words.is_empty() { "nothing is known of its quality".to_owned() } else { words.join(", ") }
}

fn what_limits(intent: &Intent) -> &'static str {
    match intent.resolution_policy {
        aql::ResolutionPolicy::SingleBest => "single_best",
        aql::ResolutionPolicy::RankedSet | aql::ResolutionPolicy::FullSet => "top_k",
    }
}

fn rejections(intent: &Intent, page: &Page, layout: &Layout) -> String {
    let all = page.misses.len();
    if all == 0 {
        return String::new();
    }
    // A node names some of those it looked at; only who looked at all can say how many there were.
    let rejected = if page.census.is_some() { "rejected" } else { "of the rejected are named" };
    let mut text = paragraph(&format!("{all} {rejected}: {}", kinds(&page.misses)), layout);
    // Whoever asked wants to know what almost fitted, not which record stands first in the file.
    let mut nearest: Vec<&Miss> = page.misses.iter().collect();
    // People name the topic first, so a late failure is a nearer miss than an early one.
    nearest.sort_by_key(|miss| (miss.failing.len(), Reverse(miss.failing.first().copied())));
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
    for miss in &nearest {
        let style = if miss.outcome == Outcome::Reject.name() { BAD } else { WARN };
        table.row(vec![id(&miss.id).into(), Cell::new(shown(&miss.outcome), style), reason(intent, miss).into()]);
    }
    text + &table.draw(layout.width)
}

/// How many fell to what.
fn kinds(misses: &[Miss]) -> String {
    let kind = |miss: &Miss| match miss.outcome.as_str() {
        "below_quality_floor" => "by the quality floor",
        "over_budget" => "over budget",
        _ if !miss.failing.is_empty() => "by constraints",
        _ if miss.explanation.starts_with("cost_undefined") => "without a price",
        _ => "by the projection",
    };
    let number = |name: &str| misses.iter().filter(|miss| kind(miss) == name).count();
    let kinds = ["by constraints", "by the quality floor", "without a price", "by the projection", "over budget"];
    let counted: Vec<_> = kinds.iter().map(|name| (number(name), name)).filter(|(number, _)| *number > 0).collect();
    match counted.as_slice() {
        [(_, name)] => format!("all {name}"),
        several => several.iter().map(|(number, name)| format!("{number} {name}")).collect::<Vec<_>>().join(", "),
    }
}

fn reason(intent: &Intent, miss: &Miss) -> String {
    let mut failing = miss.failing.iter().filter_map(|number| intent.constraints.leaves().get(*number));
    match failing.next() {
        None => shown(&miss.explanation),
        Some(leaf) => {
            let nothing = if miss.nothing_there { " (nothing there)" } else { "" };
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
    value(&leaf.value)
}

/// A value of somebody's, short and harmless.
pub(crate) fn value(value: &json::Value) -> String {
    let text = String::from_utf8_lossy(&json::canonical_value(value)).into_owned();
    shorten(&shown(&text), OPERAND_MAX)
}

fn shares(intent: &Intent, page: &Page, layout: &Layout) -> String {
    let Some(budget) = &intent.budget else { return String::new() };
    let shares = page.shares(intent);
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
        .map(|(rank, share)| format!("{}{NO_BREAK}to{NO_BREAK}#{rank}", share.with_scale(budget.scale())))
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
pub(crate) fn id(candidate: &str) -> String {
    shorten(&shown(candidate), ID_MAX)
}

/// An amount with cents, or with as many digits as it has.
pub(crate) fn money(amount: Amount, budget: &Budget) -> String {
    let shortest = amount.to_string();
    let digits = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let text = if digits > budget.scale() { shortest } else { amount.with_scale(budget.scale()) };
    format!("{text} {}", budget.ceiling.currency)
}
