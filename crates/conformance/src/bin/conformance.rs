//! Runs the corpus against `aql` and `reference`, or against a node over HTTP: `cargo xtask conformance [--http]`.

use anyhow::Context;
use clap::Parser;
use conformance::crash::{Program, clock};
use conformance::{Corpus, Fast, Implementation, Report, Twin, run};
use probe::{Http, Level, Settings, Target};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use trust::SigningKey;

/// The intent of RFC 0020.
const INTENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent.schema.json";

/// Runs the conformance corpus.
#[derive(Parser)]
struct Arguments {
    /// The folder of the corpus.
    #[arg(long, default_value = "conformance/aql")]
    corpus: PathBuf,
    /// Only cases whose id contains this.
    #[arg(long)]
    only: Option<String>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Put the cases over HTTP to the node beside this program, on an empty folder.
    #[arg(long)]
    http: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.http {
        return over_http(&arguments);
    }
    let mut corpus = Corpus::read(&arguments.corpus)?;
    if let Some(only) = &arguments.only {
        corpus.themes.iter_mut().for_each(|(_, cases)| cases.retain(|case| case.id.contains(only)));
        corpus.expected_failures.clear();
    }
    let implementations: [&dyn Implementation; 2] = [&Fast, &Twin];
    let report = run(&corpus, &implementations);
    if arguments.json {
        print_json(&report)
    } else {
        print_table(&report)
    }
    Ok(if report.is_green() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What `rialto conformance` says of a node that was started for this.
fn over_http(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let binary = std::env::current_exe()?.parent().context("this program is nowhere")?.join("rialto");
    let folder = tempfile::tempdir()?;
    // Somebody whose mappings the operator trusts, so that V3 can be shown.
    let publisher = SigningKey::from_seed([9; 32]);
    let pinned = format!("{INTENT}={}", publisher.did_key());
    let program = Program::new(&binary, folder.path()).with(&["--schema-publisher".to_owned(), pinned]);
    let (node, _) = program.serve()?;
    let target = Target::at(&node.url, Box::new(Http::new()?))?;
    let settings = Settings {
        only: arguments.only.clone(),
        connections: 16,
        seed: [7; 32],
        clock: Arc::new(clock),
        publisher: Some(publisher),
    };
    let examined = probe::examine(target, settings, &|_, _| {})?;
    let (passed, failed, not_put) = examined.totals();
    if arguments.json {
        println!("{}", examined.to_value());
    } else {
        for (case, why) in examined.findings.iter().flat_map(|finding| &finding.failed) {
            println!("{case}: {why}");
        }
        println!("conformance over HTTP: {passed} passed, {failed} failed, {not_put} cannot be put");
    }
    Ok(if examined.q2() == Level::Met && failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_table(report: &Report<'_>) {
    let mut counts: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for verdict in &report.verdicts {
        let entry = counts.entry((verdict.implementation.as_str(), verdict.theme)).or_default();
        entry.0 += usize::from(verdict.passed);
        entry.1 += 1;
    }
    for ((implementation, theme), (passed, all)) in &counts {
        println!("{implementation:<10} {theme:<24} {passed:>4} of {all}");
    }
    for verdict in report.surprises() {
        let what = if verdict.passed { "passes, but is listed as failing" } else { "fails" };
        println!("\n{} {}: {what}\n  {}", verdict.implementation, verdict.case.id, verdict.case.why);
        println!("  expected {}", verdict.case.expect);
        println!("  answered {}", verdict.answer.as_ref().map(ToString::to_string).unwrap_or_default());
    }
    for entry in &report.stale {
        println!("\nexpected-failures.toml lists `{entry}`, which nothing answers to");
    }
    let passed = report.verdicts.iter().filter(|verdict| verdict.passed).count();
    println!("\nconformance: {passed} passed, {} failed", report.verdicts.len() - passed);
}

fn print_json(report: &Report<'_>) {
    let verdicts = report.verdicts.iter().map(|verdict| {
        serde_json::json!({
            "implementation": verdict.implementation, "theme": verdict.theme, "case": verdict.case.id,
            "requirement": verdict.case.requirement, "passed": verdict.passed, "expected_to_fail": verdict.expected_to_fail,
        })
    });
    println!("{}", serde_json::json!({"green": report.is_green(), "verdicts": verdicts.collect::<Vec<_>>()}));
}
