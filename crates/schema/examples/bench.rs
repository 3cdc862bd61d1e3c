//! What negotiation and translation cost, beside JSONata: `cargo xtask bench schema --report docs/bench/schema.md`.

use json::{Document, Instant as Moment};
use schema::{CompatibilityProfile, Mapping, Permits, SchemaId, Validator, Version, negotiate, serve};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let report = arguments.iter().position(|argument| argument == "--report").and_then(|at| arguments.get(at + 1));
    let (source, mapping) = (source(), mapping());
    let read = Mapping::read(Document::of(&mapping)?.root())?;
    let translation = read.translate(&source)?;
    let text = source.to_string();

    let mut rows = Vec::new();
    let schema = SchemaId::parse("https://schemas.example/v1.0/action.json").ok_or("no identifier")?;
    let versions: Vec<String> = (0..12).map(|minor| format!("1.{minor}")).collect();
    let profile = json!({schema.as_str(): {"accepts": versions, "produces": versions, "default": "1.11"}});
    let profile = CompatibilityProfile::read(Document::of(&profile)?.root())?;
    let entry = profile.schemas.get(&schema).ok_or("no entry")?;
    let ours: BTreeSet<Version> = ["1.3", "1.5", "2.0"].iter().filter_map(|text| Version::parse(text)).collect();
    let now = Moment::from_unix(1_780_000_000, 0);
    rows.push((
        "negotiate, 12 versions against 3",
        best(20_000, || drop(black_box(negotiate(&schema, &ours, entry, Permits::default(), now)))),
    ));
    let asked = Version::parse("1.5");
    rows.push((
        "serve a request",
        best(20_000, || drop(black_box(serve(&schema, entry, asked, Permits::default(), now)))),
    ));
    rows.push(("apply the mapping", best(10_000, || drop(black_box(read.translate(&source))))));
    rows.push((
        "parse, apply and write canonically",
        best(5_000, || {
            let document =
                Document::parse(text.as_bytes(), &json::Limits::DOCUMENT).map(|document| document.root().to_value());
            let written = document.ok().and_then(|document| read.translate(&document).ok());
            drop(black_box(written.map(|translation| json::canonical_value(&translation.document))));
        }),
    ));
    rows.push((
        "read the mapping",
        best(2_000, || drop(black_box(Document::of(&mapping).map(|document| Mapping::read(document.root()).is_ok())))),
    ));
    rows.push((
        "compile a schema of three members",
        best(500, || {
            drop(black_box(Validator::compile(
                &json!({"properties": {"a": {"type": "string"}, "b": {"minimum": 1}, "c": {}}}),
            )))
        }),
    ));

    let mut table = format!(
        "{} rules, a document of {} bytes, one thread, wall clock, best of 30 rounds\n\n| work | µs |\n|---|---|\n",
        rules(&mapping),
        text.len()
    );
    rows.iter().for_each(|(name, seconds)| table.push_str(&format!("| {name} | {:.2} |\n", seconds * 1e6)));
    let applied = rows.get(2).map_or(f64::NAN, |row| row.1);
    match jsonata(&source, &translation.document) {
        Ok((version, seconds)) => table.push_str(&format!(
            "| the same translation in JSONata {version}, evaluated in Node.js | {:.2} |\n\nJSONata takes {:.0} times as long. Its expression is compiled once, its result is compared with ours, and it reports no loss.\n",
            seconds * 1e6,
            seconds / applied
        )),
        Err(error) => table.push_str(&format!("\nJSONata was not measured: {error}\n")),
    }
    println!("{table}");
    if let Some(path) = report {
        std::fs::write(
            path,
            format!("# What negotiation and translation cost\n\n`cargo xtask bench schema`\n\n{table}"),
        )?;
    }
    Ok(())
}

/// Seconds for one piece of work: the best of several rounds.
#[expect(clippy::disallowed_methods, reason = "a program that measures")]
fn best(times: u32, mut work: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..30 {
        let start = Instant::now();
        (0..times / 10).for_each(|_| work());
        least = least.min(start.elapsed().as_secs_f64() / f64::from(times / 10));
    }
    least
}

fn rules(mapping: &Value) -> usize {
    let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let inner: usize = list(mapping, "rules").iter().filter_map(|rule| rule.get("body")).map(rules).sum();
    ["rules", "constants", "derived"].iter().map(|name| list(mapping, name).len()).sum::<usize>() + inner
}

fn source() -> Value {
    let words = "Work done by people who know the trade, with a price for each call and a record of each step. ";
    let action = |id: &str, rpm: u32| {
        json!({"id": id, "ver": "1.2.0", "sum": format!("{id} for translation work"), "rpm": rpm, "conc": 4, "safe": true,
            "input": {"type": "object", "properties": {"text": {"type": "string"}, "language": {"type": "string"}}},
            "output": {"type": "object", "properties": {"result": {"type": "string"}}}})
    };
    json!({
        "oap_version": "1.1",
        "tool": {
            "id": "translation-7", "did": "did:web:translation-7.example", "title": "Translation house", "release": "2.4.1",
            "vendor": {"did": "did:web:translation-7.example", "company": "House Ltd", "checked": true},
            "topics": ["translation", "legal", "b2b"], "text_humans": words.repeat(3), "text_agents": words.repeat(3),
        },
        "actions": [action("quote", 60), action("deliver", 30)],
        "sla": {"uptime": "0.995", "latency_seconds": 0.4, "regions": "eu-central,eu-west"},
        "risk": "low", "countries": ["DE", "FR", "NL"], "price": {"cents": "1250", "currency": "EUR"},
        "policy": {"keeps_data": false, "days": 30, "shares": false}, "contact": "desk@translation-7.example",
    })
}

fn mapping() -> Value {
    let edition = |version: &str| json!({"schema": "https://schemas.example/v1.0/tool.json", "version": version});
    let copy = |from: &str, to: &str| json!({"op": "copy", "from": from, "to": to});
    json!({
        "mapping_id": "urn:oap:mapping:tool-1.1-to-1.2", "source": edition("1.1"), "destination": edition("1.2"),
        "directionality": "bidirectional",
        "rules": [
            copy("/tool/id", "/tool/id"), copy("/tool/did", "/tool/did"), copy("/tool/title", "/tool/name"),
            copy("/tool/release", "/tool/version"), copy("/tool/vendor/did", "/tool/publisher/did"),
            copy("/tool/vendor/company", "/tool/publisher/legal_name"),
            copy("/tool/topics", "/tool/categories"), copy("/tool/text_humans", "/tool/description_for_humans"),
            copy("/tool/text_agents", "/tool/description_for_agents"),
            {"op": "each", "from": "/actions", "to": "/actions", "body": {"passthrough": true, "rules": [
                {"op": "rename", "from": "/ver", "to": "version"}, {"op": "rename", "from": "/sum", "to": "summary"},
                {"op": "move", "from": "/rpm", "to": "/rate_limit/rpm"}]}},
            {"op": "convert", "from": "/sla/uptime", "to": "/sla/uptime_target", "fn": "string_to_number"},
            {"op": "convert", "from": "/sla/latency_seconds", "to": "/sla/latency_p95_ms", "fn": "multiply", "args": {"by": 1000}},
            {"op": "convert", "from": "/sla/regions", "to": "/sla/regions", "fn": "split", "args": {"separator": ","}},
            {"op": "enum", "from": "/risk", "to": "/risk_class", "map": [["low", "minimal"], ["medium", "limited"], ["high", "high"]]},
            copy("/countries", "/jurisdictions"), copy("/policy/days", "/data_policy/retention_days"),
        ],
        "constants": [{"to": "/oap_version", "value": "1.2"}],
    })
}

/// The same translation, written for JSONata.
const EXPRESSION: &str = r#"{
  "oap_version": "1.2",
  "tool": {"id": tool.id, "did": tool.did, "name": tool.title, "version": tool.release,
    "publisher": {"did": tool.vendor.did, "legal_name": tool.vendor.company}, "categories": tool.topics,
    "description_for_humans": tool.text_humans, "description_for_agents": tool.text_agents},
  "actions": actions.{"id": id, "version": ver, "summary": sum, "rate_limit": {"rpm": rpm}, "conc": conc, "safe": safe, "input": input, "output": output},
  "sla": {"uptime_target": $number(sla.uptime), "latency_p95_ms": sla.latency_seconds * 1000, "regions": $split(sla.regions, ",")},
  "risk_class": $lookup({"low": "minimal", "medium": "limited", "high": "high"}, risk),
  "jurisdictions": countries, "data_policy": {"retention_days": policy.days}
}"#;

const SCRIPT: &str = r#"
const jsonata = require("jsonata"), assert = require("assert"), fs = require("fs");
(async () => {
  const {expression, source, expected} = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
  const compiled = jsonata(expression);
  assert.deepStrictEqual(JSON.parse(JSON.stringify(await compiled.evaluate(source))), expected);
  let best = Infinity;
  for (let round = 0; round < 30; round++) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < 300; i++) await compiled.evaluate(source);
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 300);
  }
  console.log(require("jsonata/package.json").version, best / 1e9);
})();
"#;

/// Runs JSONata on the same document; it is installed by name into a folder of its own.
fn jsonata(source: &Value, expected: &Value) -> Result<(String, f64), Failure> {
    let folder = std::env::temp_dir().join(format!("rialto-jsonata-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let run = |command: &mut Command| -> Result<String, Failure> {
        let output = command.current_dir(&folder).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => Err(String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join(" ").into()),
        }
    };
    std::fs::write(
        folder.join("case.json"),
        json!({"expression": EXPRESSION, "source": source, "expected": expected}).to_string(),
    )?;
    std::fs::write(folder.join("run.js"), SCRIPT)?;
    let installed =
        run(Command::new("npm").args(["install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", "jsonata"]));
    let measured = installed.and_then(|_| run(Command::new("node").args(["run.js", "case.json"])));
    std::fs::remove_dir_all(&folder)?;
    let measured = measured?;
    let (version, seconds) = measured.trim().split_once(' ').ok_or("no figures")?;
    Ok((version.to_owned(), seconds.parse()?))
}
