//! Which requirements have a conformance case, and which are still to come.
//!
//! INVARIANT: a requirement that must be covered today without a case, a case without a requirement and a repeated
//! case id all turn the run red.

use crate::corpus::{self, CaseFile, Requirement};
use crate::files::{self, TextFile};
use anyhow::{Result, bail};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Whether a requirement must be covered today: all of the language, of versions, of agents, of identity and of payments, and of a
/// node what levels Q1 and Q2 and the limits ask.
fn is_due(requirement: &Requirement) -> bool {
    match requirement.scope.as_str() {
        "language" | "schema" | "provider" | "description" | "agent" | "hosting" | "identity" | "payment" => true,
        "node" => ["Q1", "Q2", "L"].contains(&requirement.level.as_str()),
        _ => false,
    }
}

/// What the corpus covers.
#[derive(Debug, Serialize)]
pub struct Coverage {
    /// Cases in all.
    pub cases: usize,
    /// Cases by theme.
    pub themes: BTreeMap<String, usize>,
    /// Requirements by scope.
    pub scopes: BTreeMap<String, Scope>,
    /// Requirements that must be covered today and have no case.
    pub missing: Vec<Missing>,
    /// Flaws of the corpus itself.
    pub flaws: Vec<String>,
}

/// The requirements of one scope.
#[derive(Debug, Default, Serialize)]
pub struct Scope {
    /// How many there are.
    pub requirements: usize,
    /// How many have a case, or a test where a case is impossible.
    pub covered: usize,
    /// How many must have one today.
    pub due: usize,
}

/// A requirement nobody has shown yet.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// Its id.
    pub id: String,
    /// The clause.
    pub section: String,
    /// What must hold.
    pub text: String,
}

impl Coverage {
    /// Whether nothing that must be covered today is open.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.flaws.is_empty()
    }
}

/// Prints the coverage and fails when something is open.
pub fn command(root: &Path, json: bool) -> Result<()> {
    let files = files::all(root)?;
    let coverage = measure(&corpus::requirements(&files)?, &corpus::cases(&files)?, &files);
    if json {
        println!("{}", serde_json::to_string_pretty(&coverage)?);
    } else {
        print(&coverage);
    }
    if !coverage.is_complete() {
        bail!("requirements without a case: {}; flaws: {}", coverage.missing.len(), coverage.flaws.len());
    }
    Ok(())
}

fn print(coverage: &Coverage) {
    println!("{:>6}  theme", "cases");
    for (theme, cases) in &coverage.themes {
        println!("{cases:>6}  {theme}");
    }
    println!("{:>6}  in all\n", coverage.cases);
    for (name, scope) in &coverage.scopes {
        let Scope { requirements, covered, due } = scope;
        let note = if requirements == due { String::new() } else { format!("; {due} must have one today") };
        println!("{name}: {covered} of {requirements} requirements have a case{note}");
    }
    for Missing { id, section, text } in &coverage.missing {
        println!("no case: {id} ({section}) {text}");
    }
    for flaw in &coverage.flaws {
        println!("flaw: {flaw}");
    }
}

/// Compares requirements and cases; `files` serve to look up the tests some requirements name.
pub fn measure(requirements: &[Requirement], corpus: &[CaseFile], files: &[TextFile]) -> Coverage {
    let mut coverage =
        Coverage { cases: 0, themes: BTreeMap::new(), scopes: BTreeMap::new(), missing: Vec::new(), flaws: Vec::new() };
    let mut known = BTreeSet::new();
    for Requirement { id, .. } in requirements {
        if !known.insert(id.as_str()) {
            coverage.flaws.push(format!("requirement `{id}` stands twice"));
        }
    }
    let mut answered = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for file in corpus {
        *coverage.themes.entry(file.theme.clone()).or_default() += file.cases.len();
        coverage.cases += file.cases.len();
        for case in &file.cases {
            answered.insert(case.requirement.as_str());
            if !ids.insert(case.id.as_str()) {
                coverage.flaws.push(format!("{}: case `{}` stands twice", file.path, case.id));
            }
            if !known.contains(case.requirement.as_str()) {
                let flaw = format!("{}: case `{}` names unknown `{}`", file.path, case.id, case.requirement);
                coverage.flaws.push(flaw);
            }
        }
    }
    for requirement in requirements {
        let mut covered = answered.contains(requirement.id.as_str());
        if let Some(test) = &requirement.test {
            covered |= exists(test, files);
            if !exists(test, files) {
                coverage.flaws.push(format!("`{}` names a test that is not there: `{test}`", requirement.id));
            }
        }
        let scope = coverage.scopes.entry(requirement.scope.clone()).or_default();
        scope.requirements += 1;
        scope.covered += usize::from(covered);
        scope.due += usize::from(is_due(requirement));
        if !covered && is_due(requirement) {
            let Requirement { id, section, text, .. } = requirement;
            coverage.missing.push(Missing { id: id.clone(), section: section.clone(), text: text.clone() });
        }
    }
    coverage
}

/// Whether `file::function` is there.
fn exists(test: &str, files: &[TextFile]) -> bool {
    let Some((path, function)) = test.split_once("::") else { return false };
    let function = format!("fn {function}(");
    files.iter().any(|file| file.path == path && file.text.contains(&function))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIREMENTS: &str = r#"
requirement = [
    { id = "A", text = "a", section = "RFC 0020 §3.1", level = "Q1", scope = "language" },
    { id = "B", text = "b", section = "RFC 0020 A.7", level = "Q1", scope = "language", test = "tests/t.rs::cost" },
    { id = "C", text = "c", section = "RFC 0020 §3.7", level = "Q3", scope = "node" },
    { id = "D", text = "d", section = "RFC 0020 §7", level = "Q1", scope = "node" },
]
"#;

    fn measured(cases: &str, test: &str) -> Coverage {
        let files = [
            TextFile::new(corpus::REQUIREMENTS, REQUIREMENTS),
            TextFile::new("conformance/aql/x.json", cases),
            TextFile::new("tests/t.rs", test),
        ];
        measure(&corpus::requirements(&files).unwrap(), &corpus::cases(&files).unwrap(), &files)
    }

    #[test]
    fn a_case_or_a_test_covers() {
        let cases = r#"{"theme":"x","section":"s","cases":[
            {"id":"one","requirement":"A","expect":{}},{"id":"two","requirement":"D","expect":{}}]}"#;
        let coverage = measured(cases, "fn cost() {}");
        assert!(coverage.is_complete(), "{coverage:?}");
        assert_eq!(coverage.scopes["language"].covered, 2);
        assert_eq!((coverage.scopes["node"].covered, coverage.scopes["node"].due), (1, 1));
        assert_eq!(coverage.themes["x"], 2);
    }

    #[test]
    fn gaps_strangers_and_repetitions_are_found() {
        let cases = r#"{"theme":"x","section":"s","cases":[
            {"id":"one","requirement":"Z","expect":{}},{"id":"one","requirement":"C","expect":{}}]}"#;
        let coverage = measured(cases, "fn other() {}");
        let missing: Vec<&str> = coverage.missing.iter().map(|missing| missing.id.as_str()).collect();
        assert_eq!(missing, ["A", "B", "D"], "a node owes Q1 and Q2 today, and Q3 later");
        assert_eq!(coverage.flaws.len(), 3, "{:?}", coverage.flaws);
    }
}
