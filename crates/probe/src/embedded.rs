//! The corpus and the requirements, inside the program, so that a node can be examined from anywhere.

/// The text of a file beside `crates/`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../conformance/", $name)))),*]
    };
}

/// Every theme, by its place under `conformance/`.
pub(crate) const THEMES: &[(&str, &str)] = files![
    "aql/allocation.json",
    "aql/boolean.json",
    "aql/budget.json",
    "aql/candidates.json",
    "aql/canonical.json",
    "aql/categories.json",
    "aql/contains.json",
    "aql/decimals.json",
    "aql/decision-records.json",
    "aql/equality.json",
    "aql/existential.json",
    "aql/exists.json",
    "aql/intent-document.json",
    "aql/intent-limits.json",
    "aql/intervals.json",
    "aql/matches.json",
    "aql/membership.json",
    "aql/operands.json",
    "aql/ordering.json",
    "aql/over-budget.json",
    "aql/payment-constraints.json",
    "aql/pointers.json",
    "aql/projection.json",
    "aql/quality.json",
    "aql/resolve-outcomes.json",
    "aql/resolve-policies.json",
    "aql/resolve-ranking.json",
    "aql/resolve-repetition.json",
    "aql/signatures.json",
    "aql/strict-json.json",
    "aql/theorems.json",
    "aql/timestamps.json",
    "aql/type-table.json",
    "aql/validity.json",
    "node/agents.json",
    "node/answers.json",
    "node/confidentiality.json",
    "node/duties.json",
    "node/identity.json",
    "node/limits.json",
    "node/pages.json",
    "node/records.json",
    "node/routing.json",
    "node/standing.json",
    "node/versions.json",
];

/// The floors of the versioning profile.
#[cfg(feature = "http")]
pub(crate) const VERSIONING: &str = include_str!("../../../spec/profiles/versioning.json");

/// What the texts demand.
pub(crate) const REQUIREMENTS: &str = include_str!("../../../spec/requirements.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_corpus_is_inside() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let mut there = BTreeSet::new();
        for folder in ["aql", "node"] {
            for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
                there.insert(format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()));
            }
        }
        assert_eq!(THEMES.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), there);
    }
}
