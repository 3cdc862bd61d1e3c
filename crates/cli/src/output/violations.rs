//! RFC 0020 §3.3, §5: where an answer breaks its question, for people.

use super::text::{shown, wrap};
use super::{BAD, DIM, STRONG, count, paint, width};
use crate::files::Text;
use aql::{Audit, Violation};

/// Violations that people are shown; programs get them all.
const SHOWN_MAX: usize = 40;

/// Every violation with its place in the answer, and their number; nothing when there is none.
pub(crate) fn show(audit: &Audit, answer: &Text) -> String {
    let told = audit.violations.iter().take(SHOWN_MAX).map(|violation| told(violation, answer));
    let mut text: String = told.collect();
    let all = audit.violations.len() + audit.untold;
    if all > SHOWN_MAX {
        text.push_str(&format!("\n{} more; --json lists them\n", all - SHOWN_MAX));
    }
    if all > 0 {
        text.push_str(&format!("\n{}\n", paint(BAD, count(all, "violation"))));
    }
    text
}

fn told(violation: &Violation, answer: &Text) -> String {
    let position = answer.locate(&violation.at).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
    let at = if violation.at.as_str().is_empty() { "the root" } else { violation.at.as_str() };
    let place = format!("at {at}, {}", violation.rule.section());
    let mut text = format!(
        "\n{} {} {}\n  {}\n",
        paint(BAD, "violation:"),
        paint(STRONG, violation.rule.name()),
        shown(&format!("{}{position}", answer.name)),
        paint(DIM, shown(&place))
    );
    for line in wrap(&shown(&violation.detail), width().saturating_sub(2)) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}
