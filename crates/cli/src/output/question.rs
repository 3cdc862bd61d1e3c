//! RFC 0020 §3.7: what a question as a whole runs into, as a node tells it.
//!
//! A node may say less than all of this; whatever is there is shown.

use super::resolution::{condition, id, value};
use super::table::{Align, Cell, Table};
use super::text::{shown, wrap};
use super::{BAD, DIM, GOOD, PLAIN, STRONG, WARN, paint};
use aql::Intent;
use json::Node;

/// The whole explanation.
pub(crate) fn show(intent: &Intent, output: Node<'_>, width: usize) -> String {
    let mut text = satisfied(output);
    text.push_str(&leaves(intent, output, width));
    text.push_str(&nearest(intent, output, width));
    text.push_str(&relaxations(intent, output, width));
    text.push_str(&beyond_conditions(output, width));
    text
}

fn satisfied(output: Node<'_>) -> String {
    match Count::read(output.get("satisfied")) {
        None => String::new(),
        Some(Count { at_most: 0, .. }) => format!("{}\n", paint(WARN, "no candidate satisfies all the conditions")),
        Some(found) if found.at_least == 1 && found.at_most == 1 => {
            "1 candidate satisfies all the conditions\n".to_owned()
        }
        Some(found) => format!("{found} candidates satisfy all the conditions\n"),
    }
}

/// Which condition lets how many through, and how many there would be without it.
fn leaves(intent: &Intent, output: Node<'_>, width: usize) -> String {
    let entries: Vec<Node<'_>> = output.get("leaves").into_iter().flat_map(Node::elements).collect();
    if entries.is_empty() {
        return String::new();
    }
    let headings =
        [("#", Align::Right), ("alone", Align::Right), ("without", Align::Right), ("condition", Align::Left)];
    let mut table = Table::new(0, &headings);
    let all = Count::read(output.get("satisfied"));
    for (number, entry) in entries.iter().enumerate() {
        let (alone, without) = (Count::read(entry.get("satisfied")), Count::read(entry.get("without")));
        let cell = |count: &Option<Count>| count.as_ref().map_or("?".to_owned(), Count::to_string);
        let negated = entry.get("negated").and_then(Node::as_bool).unwrap_or(false);
        // A node counts what a leaf itself finds; under `not` those are the ones kept out.
        let found = if negated { format!("not {}", cell(&alone)) } else { cell(&alone) };
        let empty = !negated && alone.as_ref().is_some_and(|alone| alone.at_most == 0);
        let helps = match (&all, &without) {
            (Some(all), Some(without)) => without.at_least > all.at_most,
            _ => false,
        };
        let condition = intent.constraints.leaves().get(number).map(condition).unwrap_or_default();
        table.row(vec![
            Cell::from((number + 1).to_string()),
            Cell::new(found, if empty { BAD } else { PLAIN }),
            Cell::new(cell(&without), if helps { GOOD } else { PLAIN }),
            Cell::from(condition),
        ]);
    }
    let legend = "how many candidates satisfy each condition alone, and how many the question without it";
    format!("\n{}{}", paragraph(legend, width), table.draw(width))
}

fn nearest(intent: &Intent, output: Node<'_>, width: usize) -> String {
    let entries: Vec<Node<'_>> = output.get("nearest").into_iter().flat_map(Node::elements).collect();
    if entries.is_empty() {
        return String::new();
    }
    let mut table = Table::new(0, &[("candidate", Align::Left), ("lacks", Align::Left)]);
    for entry in &entries {
        let failing = entry.get("failing").into_iter().flat_map(Node::elements).filter_map(Node::as_u64);
        let leaf = |number: u64| intent.constraints.leaves().get(usize::try_from(number).ok()?);
        let lacks: Vec<String> = failing.filter_map(leaf).map(condition).collect();
        let name = entry.get("candidate_id").and_then(Node::as_str).unwrap_or_default();
        table.row(vec![Cell::from(id(name)), Cell::from(lacks.join("; "))]);
    }
    format!("\n{}\n{}", paint(STRONG, nearest_title(entries.len())), table.draw(width))
}

fn nearest_title(misses: usize) -> String {
    if misses == 1 { "the nearest miss".to_owned() } else { format!("the {misses} nearest misses") }
}

fn relaxations(intent: &Intent, output: Node<'_>, width: usize) -> String {
    let entries: Vec<Node<'_>> = output.get("relaxations").into_iter().flat_map(Node::elements).collect();
    let lines: Vec<String> = entries.iter().filter_map(|entry| relaxation(intent, *entry)).collect();
    if lines.is_empty() {
        return String::new();
    }
    let room = width.saturating_sub(2);
    let lines = lines.iter().flat_map(|line| wrap(line, room));
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{lines}", paint(STRONG, "the smallest changes that let more through"))
}

fn relaxation(intent: &Intent, entry: Node<'_>) -> Option<String> {
    let leaf = usize::try_from(entry.get("leaf")?.as_u64()?).ok()?;
    let leaf = intent.constraints.leaves().get(leaf)?;
    let change = match entry.get("to") {
        Some(to) => {
            let not = if leaf.negated { "not " } else { "" };
            let operator = entry.get("operator").and_then(Node::as_str).unwrap_or(leaf.operator.name());
            let changed = format!("{} {} {}", shown(leaf.path.text()), shown(operator), value(&to.to_value()));
            format!("{not}{changed} instead of {}", value(&leaf.value))
        }
        None => format!("without {}", condition(leaf)),
    };
    let found = Count::read(entry.get("satisfied")).map(|found| format!(": {found}")).unwrap_or_default();
    Some(change + &found)
}

/// What else keeps out those that satisfy the conditions: the quality floor and the budget.
fn beyond_conditions(output: Node<'_>, width: usize) -> String {
    let mut lines = Vec::new();
    if let Some(quality) = output.get("quality") {
        for floor in quality.get("floors").into_iter().flat_map(Node::elements) {
            let signal = floor.get("signal").and_then(Node::as_str).map(shown).unwrap_or_default();
            lines.extend(Count::read(floor.get("removed")).map(|kept_out| format!("{signal} keeps out {kept_out}")));
        }
    }
    if let Some(budget) = output.get("budget") {
        let text = |name: &str| budget.get(name).and_then(Node::as_str).map(shown);
        let told = |name: &str| Count::read(budget.get(name)).filter(|count| count.at_most > 0);
        let cheapest = text("cheapest").zip(text("currency"));
        let cheapest = cheapest.map(|(amount, currency)| format!(", the cheapest for {amount} {currency}"));
        lines.extend(told("over_budget").map(|over| format!("{over} over budget{}", cheapest.unwrap_or_default())));
        lines.extend(
            told("without_price").map(|unpriced| format!("{unpriced} without a price in the budget's currency")),
        );
    }
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().flat_map(|line| wrap(line, width.saturating_sub(2)));
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{lines}", paint(STRONG, "of those that satisfy the conditions"))
}

fn paragraph(words: &str, width: usize) -> String {
    wrap(words, width).iter().map(|line| format!("{}\n", paint(DIM, line))).collect()
}

/// A number that is known exactly, or between two bounds.
struct Count {
    at_least: usize,
    at_most: usize,
}

impl Count {
    fn read(node: Option<Node<'_>>) -> Option<Self> {
        let bound = |name: &str| usize::try_from(node?.get(name)?.as_u64()?).ok();
        Some(Self { at_least: bound("at_least")?, at_most: bound("at_most")? })
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at_least == self.at_most {
            write!(out, "{}", self.at_least)
        } else {
            write!(out, "{} to {}", self.at_least, self.at_most)
        }
    }
}
