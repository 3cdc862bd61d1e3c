//! `rialto schema diff`: what changed between two schemas, rule by rule (RFC 0024 §3.4).

use super::File;
use crate::failure::{Exit, Failure};
use crate::output::text::{json_line, shorten, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, count, paint};
use json::{Value, json};
use schema::{Change, Effect};
use std::path::PathBuf;

/// Show what changed from one version of a schema to another
///
/// Every change has a stable rule id and an effect: it narrows what conforms, widens it, does neither, or it depends.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto schema diff spec/families/oap-intent-1.2.schema.json spec/schemas/oap-intent.schema.json

Exits with 0 whatever changed; `rialto schema check` says whether it matters.")]
pub(crate) struct Diff {
    /// The old schema
    old: PathBuf,

    /// The new schema
    new: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (old, new) = (File::read(&self.old)?, File::read(&self.new)?);
        let changes = schema::compare(&old.value, &new.value);
        let additive = schema::additive(&old.value, &new.value).is_ok();
        output::print(&if self.json { as_json(&changes, additive) } else { described(&changes, additive) })?;
        Ok(Exit::Fine)
    }
}

fn as_json(changes: &[Change], additive: bool) -> String {
    let entry = |change: &Change| json!({"rule": change.rule, "at": change.at.as_str(), "effect": change.effect.name(), "old": change.old, "new": change.new});
    let entries: Vec<Value> = changes.iter().map(entry).collect();
    json_line(&json::canonical_value(&json!({"additive": additive, "changes": entries})))
}

fn described(changes: &[Change], additive: bool) -> String {
    let mut text = String::new();
    for change in changes {
        let style = match change.effect {
            Effect::Narrows => BAD,
            Effect::Widens => GOOD,
            Effect::Neutral => DIM,
            Effect::Either => WARN,
        };
        let side = |value: &Option<Value>| {
            value.as_ref().map_or_else(|| "nothing".to_owned(), |value| shorten(&shown(&value.to_string()), 40))
        };
        text.push_str(&format!(
            "{:<8} {} {}\n         {}\n",
            paint(style, change.effect.name()),
            paint(STRONG, &change.rule),
            shown(change.at.as_str()),
            paint(DIM, format!("{} → {}", side(&change.old), side(&change.new)))
        ));
    }
    let summary = match (changes.len(), additive) {
        (0, _) => "nothing changed".to_owned(),
        (number, true) => format!("{}, all additive (RFC 0024 §3.4): the version may stay", count(number, "change")),
        (number, false) => {
            format!("{}, not all additive (RFC 0024 §3.4): this is a new version", count(number, "change"))
        }
    };
    text + &summary + "\n"
}
