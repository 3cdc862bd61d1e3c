//! The cases under `conformance/` put to a crate, and what is told of them.
//!
//! A case is data. What its kind means is known to the tests of the crate that it is put to, which hand a judge to
//! [`put`]; the program behind `cargo xtask conformance` does the same for all of them and tells the verdicts in one way.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// What came of one case.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Who was asked.
    pub implementation: String,
    /// What its file is about.
    pub theme: String,
    /// Its name in the corpus.
    pub id: String,
    /// The requirement of `spec/requirements.toml` that it answers.
    pub requirement: String,
    /// Whether it came out as it says.
    pub passed: bool,
    /// What nobody expected: a failure, or that a case passes which is listed as failing.
    pub surprise: Option<String>,
}

/// Puts the cases of a corpus whose id contains `only` to a judge, who is given the file with the case and says what came
/// out otherwise.
pub fn put(
    corpus: &str,
    only: &str,
    mut judge: impl FnMut(&Value, &Value) -> Option<String>,
) -> Result<Vec<Verdict>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(corpus);
    let mut files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.sort();
    let mut verdicts = Vec::new();
    for file in &files {
        let theme: Value = serde_json::from_slice(&std::fs::read(file)?)?;
        let text = |value: &Value, name: &str| match value.get(name).and_then(Value::as_str) {
            Some(text) => Ok(text.to_owned()),
            None => Err(format!("{}: `{name}` is missing in {value}", file.display())),
        };
        let cases = theme.get("cases").and_then(Value::as_array).ok_or("a file without cases")?;
        for case in cases {
            let id = text(case, "id")?;
            if !id.contains(only) {
                continue;
            }
            let surprise = judge(&theme, case);
            verdicts.push(Verdict {
                implementation: corpus.to_owned(),
                theme: text(&theme, "theme")?,
                id,
                requirement: text(case, "requirement")?,
                passed: surprise.is_none(),
                surprise,
            });
        }
    }
    Ok(verdicts)
}

/// What nobody expected, a paragraph for each case.
pub fn surprises(verdicts: &[Verdict]) -> Vec<String> {
    let told = |verdict: &Verdict| {
        let Verdict { implementation, theme, id, requirement, surprise, .. } = verdict;
        Some(format!("{implementation} {id} ({theme}, {requirement}): {}", surprise.as_ref()?))
    };
    verdicts.iter().filter_map(told).collect()
}

/// The verdicts for people: theme by theme, requirement by requirement, what nobody expected, and how many there are.
pub fn tables(verdicts: &[Verdict]) -> String {
    let themes = counted(verdicts, |verdict| (verdict.implementation.as_str(), verdict.theme.as_str()));
    let requirements = counted(verdicts, |verdict| verdict.requirement.as_str());
    let lines = themes
        .iter()
        .map(|((who, theme), (passed, all))| format!("{who:<12} {theme:<56} {passed:>5} of {all}"))
        .chain([String::new()])
        .chain(requirements.iter().map(|(name, (passed, all))| format!("{name:<20} {passed:>5} of {all}")))
        .chain(surprises(verdicts).into_iter().map(|told| format!("\n{told}")));
    let passed = verdicts.iter().filter(|verdict| verdict.passed).count();
    let last = format!("\nconformance: {passed} passed, {} failed", verdicts.len() - passed);
    lines.chain([last]).collect::<Vec<_>>().join("\n")
}

/// The verdicts for programs.
pub fn to_value(verdicts: &[Verdict]) -> Vec<Value> {
    let told = |verdict: &Verdict| {
        let Verdict { implementation, theme, id, requirement, passed, surprise } = verdict;
        json!({
            "implementation": implementation, "theme": theme, "case": id, "requirement": requirement,
            "passed": passed, "expected_to_fail": *passed == surprise.is_some(),
        })
    };
    verdicts.iter().map(told).collect()
}

/// How many passed of how many, under each heading.
fn counted<'v, K: Ord>(verdicts: &'v [Verdict], heading: impl Fn(&'v Verdict) -> K) -> BTreeMap<K, (usize, usize)> {
    let mut counts: BTreeMap<K, (usize, usize)> = BTreeMap::new();
    for verdict in verdicts {
        let (passed, all) = counts.entry(heading(verdict)).or_default();
        *passed += usize::from(verdict.passed);
        *all += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_put_once_and_failures_are_told_under_theme_and_requirement() {
        let mut seen = std::collections::BTreeSet::new();
        let verdicts = put("wba", "", |theme, case| {
            assert!(theme["cases"].as_array().unwrap().contains(case));
            assert!(seen.insert(case["id"].to_string()));
            case["id"].as_str().unwrap().ends_with('e').then(|| "came out otherwise".to_owned())
        })
        .unwrap();
        let failed = verdicts.iter().filter(|verdict| !verdict.passed).count();
        assert!(verdicts.len() >= 100 && failed > 0 && failed < verdicts.len(), "{failed} of {}", verdicts.len());
        assert_eq!(surprises(&verdicts).len(), failed);
        let tables = tables(&verdicts);
        let last = format!("conformance: {} passed, {failed} failed", verdicts.len() - failed);
        assert!(tables.ends_with(&last), "{tables}");
        assert!(
            verdicts.iter().all(|verdict| tables.contains(&verdict.requirement) && tables.contains(&verdict.theme))
        );
        assert_eq!(to_value(&verdicts).iter().filter(|verdict| verdict["passed"] == false).count(), failed);
    }

    #[test]
    fn some_cases_are_chosen_by_a_part_of_their_name_and_no_folder_is_an_error() {
        let one = put("wba", "", |_, _| None).unwrap().pop().unwrap();
        assert!(put("wba", &one.id, |_, _| None).unwrap().iter().any(|verdict| verdict.id == one.id));
        assert!(put("wba", "no case has this in its name", |_, _| None).unwrap().is_empty());
        assert!(put("nowhere", "", |_, _| None).is_err());
    }

    #[test]
    fn what_is_listed_as_failing_and_passes_is_a_surprise() {
        let listed = |passed: bool, surprise: Option<&str>| {
            let told = || "x".to_owned();
            let surprise = surprise.map(str::to_owned);
            Verdict { implementation: told(), theme: told(), id: told(), requirement: told(), passed, surprise }
        };
        let verdicts =
            [listed(true, Some("passes")), listed(false, None), listed(true, None), listed(false, Some("no"))];
        let expected: Vec<Value> =
            to_value(&verdicts).iter().map(|verdict| verdict["expected_to_fail"].clone()).collect();
        assert_eq!(expected, [true, true, false, false]);
        assert_eq!(surprises(&verdicts).len(), 2);
    }
}
