//! The schemas and documents of the JSON Schema Test Suite against the workbench: `cargo xtask diff schema-suite`.
//!
//! The suite is not kept here; it is installed by name, inside the source package of `jsonschema` at PyPI. Three things
//! are shown with its draft 2020-12: the validator says of every document what the suite says; a document never refutes
//! what was proved about two of its schemas; and every counterexample is one for a validator that was built plainly.

use schema::{Sampler, Undeclared, Validator, Verdict, check, proves};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// A schema of the suite that the validator takes.
struct Schema {
    value: Value,
    validator: Validator,
}

/// What was read and what became of it.
#[derive(Default)]
struct Suite {
    schemas: Vec<Schema>,
    documents: Vec<Value>,
    refused: usize,
    judged: usize,
    wrong: Vec<String>,
}

#[expect(clippy::disallowed_methods, reason = "a program beside the crate: it takes arguments and shows seconds")]
fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, usual: usize| {
        let position = arguments.iter().position(|argument| argument == name);
        position.and_then(|position| arguments.get(position + 1)?.parse().ok()).unwrap_or(usual)
    };
    let (tries, checks, start) = (option("--n", 200_000), option("--checks", 500), Instant::now());
    let suite = installed()?;
    println!(
        "suite  {} schemas, {} of them refused; {} documents judged, {} otherwise than the suite does",
        suite.schemas.len() + suite.refused,
        suite.refused,
        suite.judged,
        suite.wrong.len()
    );
    suite.wrong.iter().for_each(|wrong| println!("  {wrong}"));
    let refuted = refute(&suite, tries, option("--seed", 1) as u64);
    let unproved = examine(&suite, checks);
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(if suite.wrong.len() + refuted + unproved == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn installed() -> Result<Suite, Failure> {
    let folder = std::env::temp_dir().join(format!("rialto-suite-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let run = |command: &mut Command| -> Result<(), Failure> {
        let output = command.current_dir(&folder).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into()),
        }
    };
    let download = ["download", "--quiet", "--no-deps", "--no-binary", "jsonschema", "jsonschema"];
    let read = run(Command::new("pip").args(download))
        .and_then(|()| run(Command::new("sh").args(["-c", "tar -xzf jsonschema-*.tar.gz --strip-components=1"])))
        .and_then(|()| Suite::read(&folder.join("json/tests/draft2020-12")));
    std::fs::remove_dir_all(&folder)?;
    read
}

impl Suite {
    fn read(folder: &Path) -> Result<Self, Failure> {
        let mut files: Vec<_> =
            std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        let mut suite = Self::default();
        for file in &files {
            // By default a format says nothing in this draft; here it does.
            let judges = file.file_stem().is_none_or(|name| name != "format");
            let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(file)?)?;
            groups.iter().for_each(|group| suite.take(group, judges));
        }
        Ok(suite)
    }

    fn take(&mut self, group: &Value, judges: bool) {
        let tests = group.get("tests").and_then(Value::as_array);
        let Some((schema, tests)) = group.get("schema").zip(tests) else { return };
        self.documents.extend(tests.iter().filter_map(|test| test.get("data").cloned()));
        let validator = match Validator::compile(schema) {
            Ok(validator) => validator,
            // What leads out of the document, and metaschemas that nobody fetches.
            Err(_) => {
                self.refused += 1;
                return;
            }
        };
        for test in tests.iter().filter(|_| judges) {
            self.judged += 1;
            if Some(test.get("data").is_some_and(|data| validator.is_valid(data)))
                != test.get("valid").and_then(Value::as_bool)
            {
                self.wrong.push(format!("{}: {}", name(group), name(test)));
            }
        }
        self.schemas.push(Schema { value: schema.clone(), validator });
    }

    fn pairs(&self) -> impl Iterator<Item = (&Schema, &Schema)> {
        self.schemas.iter().flat_map(|from| self.schemas.iter().map(move |to| (from, to)))
    }
}

fn name(value: &Value) -> &str {
    value.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// Holds documents of the suite and others against what was proved; how many refute it.
fn refute(suite: &Suite, tries: usize, seed: u64) -> usize {
    let proved: Vec<_> =
        suite.pairs().filter(|(from, to)| proves(&from.value, &to.value, Undeclared::Strict)).collect();
    let each = tries.div_ceil(proved.len().max(1));
    let (mut tried, mut conforming, mut refuted) = (0, 0, 0);
    for (number, (from, to)) in (0_u64..).zip(&proved) {
        let mut sampler = Sampler::new(seed + number, &[&from.value, &to.value], true);
        for round in 0..each {
            let made;
            let document = match suite.documents.get(round) {
                Some(document) => document,
                None => {
                    made = if round % 2 == 0 { sampler.document(&from.value) } else { sampler.any(3) };
                    &made
                }
            };
            tried += 1;
            if from.validator.is_valid(document) {
                conforming += 1;
                if !to.validator.is_valid(document) {
                    refuted += 1;
                    println!("{document} refutes what was proved\n  from {}\n  to   {}", from.value, to.value);
                }
            }
        }
    }
    let pairs = suite.schemas.len() * suite.schemas.len();
    println!(
        "proofs {tried} documents ({conforming} conforming) against {} proofs of {pairs} pairs: {refuted} refuted",
        proved.len()
    );
    refuted
}

/// Asks for verdicts about pairs spread over the suite; how many counterexamples are none.
fn examine(suite: &Suite, checks: usize) -> usize {
    let pairs: Vec<_> = suite.pairs().collect();
    let stride = (pairs.len() / checks.max(1)).max(1);
    let (mut compatible, mut broken, mut unknown, mut none) = (0, 0, 0, 0);
    for (from, to) in pairs.iter().step_by(stride) {
        match check(&from.value, &to.value, Undeclared::Strict) {
            Ok(Verdict::Compatible) => compatible += 1,
            Ok(Verdict::Unknown { .. }) => unknown += 1,
            Ok(Verdict::Broken { counterexample, .. }) => {
                broken += 1;
                let plain = |schema: &Value| {
                    jsonschema::options()
                        .should_validate_formats(true)
                        .build(schema)
                        .map(|one| one.is_valid(&counterexample))
                };
                if !matches!((plain(&from.value), plain(&to.value)), (Ok(true), Ok(false))) {
                    none += 1;
                    println!("{counterexample} is no counterexample\n  from {}\n  to   {}", from.value, to.value);
                }
            }
            Err(refusal) => {
                none += 1;
                println!("{refusal}\n  from {}\n  to   {}", from.value, to.value);
            }
        }
    }
    println!(
        "checks {compatible} compatible, {broken} broken, {unknown} unknown: {none} counterexamples that are none"
    );
    none
}
