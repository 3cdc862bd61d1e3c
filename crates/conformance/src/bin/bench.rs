//! What evaluation costs: `cargo xtask bench aql`.
//!
//! CPU time of one thread, since the machine is shared; the peer's figure is the public JavaScript reference's for
//! the same shape of work: an 11-leaf tree over 100,000 manifests.

use anyhow::{Context, Result};
use aql::{Constraints, Evaluator, Fuel, Limits, Path, Pattern};
use clap::Parser;
use json::{Document, Pointer, Shapes};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Measures evaluation.
#[derive(Parser)]
struct Arguments {
    /// What to measure.
    #[arg(value_parser = ["aql"])]
    what: String,
    /// How many manifests.
    #[arg(long, default_value_t = 100_000)]
    manifests: usize,
    /// How often each figure is taken; the best counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measures the first row only, for a profiler.
    #[arg(long)]
    evaluate_only: bool,
    /// Writes the table as Markdown, too.
    #[arg(long)]
    report: Option<PathBuf>,
}

/// Seconds that the public JavaScript reference needs for 100,000 manifests.
const PEER_SECONDS: f64 = 2.47;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let texts: Vec<Vec<u8>> =
        (0..arguments.manifests).map(|number| manifest(number).to_string().into_bytes()).collect();
    let bytes: usize = texts.iter().map(Vec::len).sum();
    let mut shapes = Shapes::default();
    let documents: Vec<Document> = texts.iter().map(|text| parse(text, &mut shapes)).collect::<Result<_>>()?;
    let tree = Document::of(&tree())?;
    let constraints = Constraints::read(tree.root(), Pointer::root(), &Limits::STANDARD)?;
    let peer = PEER_SECONDS * arguments.manifests as f64 / 100_000.0;
    let mut table = format!(
        "{} manifests of {} bytes, {} leaves, one thread, CPU time, best of {}\n\n| work | seconds | per manifest | peer (JavaScript, {peer:.2} s) |\n|---|---|---|---|\n",
        arguments.manifests,
        bytes / arguments.manifests.max(1),
        constraints.leaves().len(),
        arguments.rounds
    );
    let mut row = |name: &str, seconds: f64| -> Result<()> {
        let each = seconds / arguments.manifests as f64 * 1e6;
        writeln!(table, "| {name} | {seconds:.4} | {each:.2} µs | {:.0}× |", peer / seconds)?;
        Ok(())
    };
    let mut found = 0;
    let parsed = best(arguments.rounds, || {
        let mut evaluator = Evaluator::new(Fuel::OWN);
        found = 0;
        let roots = documents.iter().map(Document::root);
        let asked = evaluator.evaluate_all(&constraints, roots, |holds, _| found += usize::from(holds));
        std::hint::black_box(asked).unwrap_or_default();
    });
    row("evaluate parsed documents", parsed)?;
    if arguments.evaluate_only {
        println!("{table}");
        return Ok(());
    }
    let mut found_singly = 0;
    let singly = best(arguments.rounds, || {
        let mut evaluator = Evaluator::new(Fuel::OWN);
        let mut holds = |document: &Document| evaluator.evaluate(&constraints, document.root()) == Ok(true);
        found_singly = documents.iter().filter(|document| holds(document)).count();
    });
    row("evaluate them one by one", singly)?;
    let mut found_from_bytes = 0;
    let from_bytes = best(arguments.rounds, || {
        let mut evaluator = Evaluator::new(Fuel::OWN);
        let mut holds = |text: &Vec<u8>| {
            parse(text, &mut shapes).is_ok_and(|document| evaluator.evaluate(&constraints, document.root()) == Ok(true))
        };
        found_from_bytes = texts.iter().filter(|text| holds(text)).count();
    });
    anyhow::ensure!(found == found_from_bytes && found == found_singly, "three ways to evaluate disagree");
    row("parse and evaluate", from_bytes)?;
    writeln!(
        table,
        "\n{found} manifests satisfy the tree. The peer is the public JavaScript reference of RFC 0020: a figure \
         measured with it earlier for an 11-leaf tree over 100,000 manifests of 2.7 kB, in process, CPU time; it is not \
         run here, so this is no ratio of one run. Documents are asked in batches in the first row.\n"
    )?;
    edges(&mut table, arguments.rounds)?;
    refusals(&mut table, arguments.rounds)?;
    println!("{table}");
    if let Some(path) = arguments.report {
        let (what, manifests, rounds) = (&arguments.what, arguments.manifests, arguments.rounds);
        let command = format!("cargo xtask bench {what} --manifests {manifests} --rounds {rounds}");
        std::fs::write(&path, format!("# What evaluation costs\n\n`{command}`\n\n{table}"))?;
    }
    Ok(())
}

fn parse(text: &[u8], shapes: &mut Shapes) -> Result<Document> {
    Ok(Document::parse_with(text, &json::Limits::DOCUMENT, shapes)?)
}

/// The least CPU time of several rounds.
fn best(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        let start = cpu_seconds();
        work();
        least = least.min(cpu_seconds() - start);
    }
    least
}

/// What this thread has spent on a processor.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The cases that hurt other engines.
fn edges(table: &mut String, rounds: usize) -> Result<()> {
    writeln!(table, "| edge | seconds |\n|---|---|")?;
    let pattern = Pattern::read("^(a+)+$", &Pointer::root(), &Limits::STANDARD)?;
    let subject = format!("{}!", "a".repeat(1_000_000));
    let seconds = best(rounds, || {
        let _ = std::hint::black_box(pattern.is_match(&subject, &mut 1));
    });
    writeln!(table, "| `^(a+)+$` over a million characters | {seconds:.6} |")?;
    for depth in [100, 200] {
        let mut value = json!({"y": 1});
        for _ in 0..depth {
            value = json!({"a": value});
        }
        let document = Document::of(&value)?;
        let limits = Limits { path_descendants: 8, ..Limits::STANDARD };
        let path = Path::read("/**/a/**/a/**/a/**/y", &Pointer::root(), &limits)?;
        let mut visits = 0;
        let seconds = best(rounds, || {
            visits = 0;
            let _: std::ops::ControlFlow<()> =
                path.reach(document.root(), &mut visits, |_| std::ops::ControlFlow::Continue(()));
        });
        writeln!(
            table,
            "| four `**` over a document {depth} deep ({visits} visits for {} values) | {seconds:.6} |",
            document.nodes()
        )?;
    }
    Ok(())
}

/// What strangers send to hurt; each is refused with a code, a place and, where one was passed, a limit.
fn refusals(table: &mut String, rounds: usize) -> Result<()> {
    let leaf = r#"{"path":"/a","operator":"eq","value":1}"#;
    let intent = |constraints: &str| {
        format!(
            r#"{{"intent_id":"urn:oap:intent:b","issuer_did":"did:key:z6Mk","category":"discovery","constraints":{constraints},"projection":{{"include":["/"]}},"validity":{{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T01:00:00Z"}}}}"#
        )
    };
    let wide = Limits { json: json::Limits::OURS, ..Limits::STANDARD };
    let hostile = [
        ("20,000 nested arrays", "[".repeat(20_000), Limits::STANDARD),
        ("an intent of 2 MB", intent(&format!("[{leaf}{}]", format!(",{leaf}").repeat(50_000))), Limits::STANDARD),
        (
            "10,000 leaves, where bytes are no limit",
            intent(&format!("[{leaf}{}]", format!(",{leaf}").repeat(9_999))),
            wide.clone(),
        ),
        ("a path of 100 kB, where bytes are no limit", intent(&leaf.replace("/a", &"/a".repeat(50_000))), wide),
        ("`1e400`", intent(&leaf.replace(":1}", ":1e400}")), Limits::STANDARD),
        ("duplicate keys", intent(&leaf.replace(r#""value""#, r#""value":1,"v\u0061lue""#)), Limits::STANDARD),
    ];
    writeln!(table, "\n| refused | code | at | limit | seconds |\n|---|---|---|---|---|")?;
    for (name, text, limits) in hostile {
        let mut refused = None;
        let seconds = best(rounds, || refused = aql::Intent::parse(text.as_bytes(), &limits).err());
        let refused = refused.context("a hostile intent was read")?;
        let at: String = refused.at.as_str().chars().take(40).collect();
        let limit = refused
            .limit
            .map_or_else(String::new, |limit| format!("{} {} (here {})", limit.name, limit.max, limit.got));
        writeln!(table, "| {name} | `{}` | `{at}` | {limit} | {seconds:.6} |", refused.code.name())?;
    }
    Ok(())
}

/// Eleven leaves of the kinds that people ask with.
fn tree() -> Value {
    let leaf = |path: &str, operator: &str, value: Value| json!({"path": path, "operator": operator, "value": value});
    json!({"all_of": [
        leaf("/oap_version", "eq", json!("1.0")),
        leaf("/risk_class", "in", json!(["minimal", "limited"])),
        leaf("/sla/latency_p95_ms", "lte", json!(400)),
        leaf("/sla/uptime_target", "gte", json!(0.99)),
        leaf("/tool/categories", "contains", json!("translation")),
        leaf("/jurisdictions/*", "eq", json!("DE")),
        {"any_of": [
            leaf("/trust/gdpr_compliant", "eq", json!(true)),
            leaf("/data_policy/retention_days", "lt", json!(30)),
        ]},
        {"not": leaf("/data_policy/training_on_principal_data", "eq", json!("by_default"))},
        leaf("/pricing/models/*/amount", "lte", json!("0.50")),
        leaf("/tool/name", "matches", json!("^[A-M]")),
    ]})
}

/// A manifest of about two kilobytes.
fn manifest(number: usize) -> Value {
    let pick = |choices: &[&'static str], salt: usize| {
        let mixed = number.wrapping_mul(2_654_435_761).wrapping_add(salt.wrapping_mul(40_503)) >> 7;
        choices.get(mixed % choices.len().max(1)).copied().unwrap_or_default()
    };
    let trades = ["translation", "logistics", "weather", "legal", "imaging", "accounting"];
    let (trade, other) = (pick(&trades, 1), pick(&trades, 2));
    let host = format!("{trade}-{number}.example");
    let action = |name: &str| {
        json!({
            "id": name, "version": "1.2.0", "summary": format!("{name} for {trade} work"), "side_effects": "read",
            "idempotent": true, "rate_limit": {"rpm": 60, "concurrent": 4}, "latency_p95_ms": 120 + number % 400,
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}, "language": {"type": "string"}}},
            "output_schema": {"type": "object", "properties": {"result": {"type": "string"}}},
        })
    };
    json!({
        "oap_version": "1.0",
        "tool": {
            "id": format!("{trade}-{number}"), "did": format!("did:web:{host}"), "version": "2.4.1",
            "name": format!("{}{trade} house {number}", pick(&["A", "F", "K", "P", "T"], 3)),
            "publisher": {"did": format!("did:web:{host}"), "legal_name": format!("House {number} Ltd"), "verified": number.is_multiple_of(3)},
            "categories": [trade, other, "b2b"],
            "description_for_humans": "Work done by people who know the trade, with a price for each call and a record of each step.",
            "description_for_agents": "Call with the material and the wanted form; the answer carries a receipt and the sources it used.",
        },
        "endpoints": {
            "invoke": format!("https://{host}/oap/invoke"), "audit": format!("https://{host}/oap/audit"),
            "data_delete": format!("https://{host}/oap/data/delete"), "incident": format!("https://{host}/oap/incident"),
        },
        "auth": [{"method": "oap_trust_token"}],
        "actions": [action("quote"), action("deliver")],
        "sla": {"uptime_target": 0.98 + (number % 20) as f64 / 1000.0, "latency_p95_ms": 100 + number % 600, "latency_p99_ms": 900, "max_call_duration_ms": 60_000, "regions": ["eu-central", pick(&["eu-west", "us-east"], 4)]},
        "trust": {"publisher_verified": number.is_multiple_of(3), "data_residency": [pick(&["EU", "US"], 5)], "gdpr_compliant": !number.is_multiple_of(4)},
        "data_policy": {"stores_principal_data": false, "retention_days": number % 90, "shares_with_third_parties": false, "training_on_principal_data": pick(&["never", "with_consent", "by_default"], 6), "lawful_bases": ["contract"]},
        "risk_class": pick(&["minimal", "limited", "high"], 7),
        "jurisdictions": [pick(&["DE", "FR", "NL"], 8), pick(&["AT", "DE", "BE"], 9)],
        "pricing": {"models": [{"type": "per_call", "amount": format!("0.{:02}", number % 100), "currency": "EUR"}]},
        "governance": {"dispute_resolution_url": format!("https://{host}/disputes"), "contact_email": format!("desk@{host}")},
    })
}
