//! Puts every corpus to its crate, and that of the language to the twin, too: `cargo xtask conformance`; or all that a node
//! can show to one over HTTP: `--http`.

use anyhow::Context;
use clap::Parser;
use conformance::crash::{Program, clock};
use conformance::{Corpus, Fast, Implementation, Report, Twin, run};
use corpus::Verdict;
use probe::{Http, Level, Settings, Target};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use trust::SigningKey;

mod cases;
/// Whom the cases of payments are about.
#[path = "../../../../payment/tests/it/stage.rs"]
#[expect(clippy::unwrap_used, reason = "it is part of tests")]
mod stage;

/// A corpus beside that of the language, and who says what comes of its cases.
type Judged = (&'static str, fn(&Value, &Value) -> Option<String>);

const JUDGED: [Judged; 5] = [
    ("agent", cases::agent::judge),
    ("description", cases::description::judge),
    ("payment", cases::payment::judge),
    ("schema", cases::schema::judge),
    ("wba", cases::wba::judge),
];

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
    let only = arguments.only.as_deref().unwrap_or_default();
    if !only.is_empty() {
        corpus.themes.iter_mut().for_each(|(_, cases)| cases.retain(|case| case.id.contains(only)));
        corpus.expected_failures.clear();
    }
    let implementations: [&dyn Implementation; 2] = [&Fast, &Twin];
    let report = run(&corpus, &implementations);
    let mut verdicts = told(&report);
    for (name, judge) in JUDGED {
        verdicts.extend(corpus::put(name, only, judge).map_err(|error| anyhow::anyhow!("{name}: {error}"))?);
    }
    let green = report.stale.is_empty() && corpus::surprises(&verdicts).is_empty();
    if arguments.json {
        println!("{}", json!({"green": green, "verdicts": corpus::to_value(&verdicts)}));
    } else {
        for entry in &report.stale {
            println!("expected-failures.toml lists `{entry}`, which nothing answers to\n");
        }
        println!("{}", corpus::tables(&verdicts));
    }
    Ok(if green { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What came of the corpus of the language, in the words that are common to all.
fn told(report: &Report<'_>) -> Vec<Verdict> {
    let one = |verdict: &conformance::Verdict<'_>| {
        let what = if verdict.passed { "passes, but is listed as failing" } else { "fails" };
        let answer = verdict.answer.as_ref().map(ToString::to_string).unwrap_or_default();
        let told =
            || format!("{what}\n  {}\n  expected {}\n  answered {answer}", verdict.case.why, verdict.case.expect);
        Verdict {
            implementation: verdict.implementation.clone(),
            theme: verdict.theme.to_owned(),
            id: verdict.case.id.clone(),
            requirement: verdict.case.requirement.clone(),
            passed: verdict.passed,
            surprise: (verdict.passed == verdict.expected_to_fail).then(told),
        }
    };
    report.verdicts.iter().map(one).collect()
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
