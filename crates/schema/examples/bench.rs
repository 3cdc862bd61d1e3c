//! What negotiation and translation cost, beside JSONata: `cargo xtask bench schema --report docs/bench/schema.md`.

use json::{Document, Instant as Moment, Limits, Shapes};
use schema::{
    CompatibilityProfile, Mapping, Permits, SchemaId, Translator, Validator, Version, compose, negotiate, serve,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// Documents that are translated in turn, all of one kind and none like the other.
const DOCUMENTS: u32 = 64;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let report = arguments.iter().position(|argument| argument == "--report").and_then(|at| arguments.get(at + 1));
    let mapping = mapping();
    let read = Mapping::read(Document::of(&mapping)?.root())?;
    let values: Vec<Value> = (0..DOCUMENTS).map(source).collect();
    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
    let expected: Vec<Value> =
        values.iter().map(|value| Ok(read.translate(value)?.document)).collect::<Result<_, Failure>>()?;

    let mut rows = negotiation()?;
    let applied = rows.len();
    rows.extend(translation(&read, &values, &texts, &expected)?);
    rows.extend(cards()?);
    rows.push((
        "read the mapping",
        best(|_| Document::of(&mapping).map(|document| Mapping::read(document.root()).is_ok())),
    ));
    rows.push(("prepare a translator", best(|_| Translator::new(&read))));
    let three = json!({"properties": {"a": {"type": "string"}, "b": {"minimum": 1}, "c": {}}});
    rows.push(("compile a schema of three members", best(|_| Validator::compile(&three))));

    let bytes = texts.iter().map(String::len).sum::<usize>() / texts.len();
    let mut table = format!(
        "{} rules, {DOCUMENTS} documents of {bytes} bytes in turn, one thread, wall clock, best of {ROUNDS} rounds\n\n| work | µs |\n|---|---|\n",
        rules(&mapping),
    );
    rows.iter().for_each(|(name, seconds)| table.push_str(&format!("| {name} | {:.2} |\n", seconds * 1e6)));
    let ours = |row: usize| rows.get(applied + row).map_or(f64::NAN, |row| row.1);
    match jsonata(&values, &expected) {
        Ok((version, objects, texts)) => table.push_str(&format!(
            "| JSONata {version}, object to object | {:.2} |\n| JSONata {version}, text to text | {:.2} |\n\nJSONata takes {:.0} times as long from object to object and {:.0} times from text to text.\n",
            objects * 1e6,
            texts * 1e6,
            objects / ours(0),
            texts / ours(3),
        )),
        Err(error) => table.push_str(&format!("\nJSONata was not measured: {error}\n")),
    }
    println!("{table}");
    if let Some(path) = report {
        std::fs::write(
            path,
            format!("# What translating between versions costs\n\n`cargo xtask bench schema`\n\n{table}"),
        )?;
    }
    Ok(())
}

type Row = (&'static str, f64);

fn negotiation() -> Result<Vec<Row>, Failure> {
    let schema = SchemaId::parse("https://schemas.example/v1.0/action.json").ok_or("no identifier")?;
    let versions: Vec<String> = (0..12).map(|minor| format!("1.{minor}")).collect();
    let profile = json!({schema.as_str(): {"accepts": versions, "produces": versions, "default": "1.11"}});
    let profile = CompatibilityProfile::read(Document::of(&profile)?.root())?;
    let entry = profile.schemas.get(&schema).ok_or("no entry")?;
    let ours: BTreeSet<Version> = ["1.3", "1.5", "2.0"].iter().filter_map(|text| Version::parse(text)).collect();
    let (now, asked) = (Moment::from_unix(1_780_000_000, 0), Version::parse("1.5"));
    Ok(vec![
        (
            "negotiate, 12 versions against 3",
            best(|_| negotiate(&schema, &ours, entry, Permits::default(), now).is_ok()),
        ),
        ("serve a request", best(|_| serve(&schema, entry, asked, Permits::default(), now).is_ok())),
    ])
}

fn translation(read: &Mapping, values: &[Value], texts: &[String], expected: &[Value]) -> Result<Vec<Row>, Failure> {
    let mut shapes = Shapes::default();
    let mut parse = |text: &String| Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes);
    let shared: Vec<Document> = texts.iter().map(&mut parse).collect::<Result<_, _>>()?;
    let alone: Vec<Document> =
        texts.iter().map(|text| Document::parse(text.as_bytes(), &Limits::DOCUMENT)).collect::<Result<_, _>>()?;
    let mut translator = Translator::new(read);
    for (document, expected) in shared.iter().zip(expected) {
        if translator.translate(document)?.document().root() != Document::of(expected)?.root() {
            return Err("the two ways differ".into());
        }
    }
    let mut chain = Translator::new(&compose(read, &Mapping::read(Document::of(&second())?.root())?)?);
    let mut bytes_to_bytes = |text: &String| -> Option<Vec<u8>> {
        let document = Document::parse_with(text.as_bytes(), &Limits::DOCUMENT, &mut shapes).ok()?;
        Some(json::canonical(translator.translate(&document).ok()?.document().root()))
    };
    let text_to_text = best(|round| texts.get(round).and_then(&mut bytes_to_bytes));
    let mut apply =
        |documents: &[Document]| best(|round| Some(translator.translate(documents.get(round)?).ok()?.into_document()));
    let (first, own) = (apply(&shared), apply(&alone));
    Ok(vec![
        ("apply the mapping, document to document", first),
        ("the same, each document with names of its own", own),
        (
            "apply the mapping and spell the report of losses",
            best(|round| Some(translator.translate(shared.get(round)?).ok()?.losses())),
        ),
        ("parse, apply and write canonically", text_to_text),
        (
            "apply it composed with another of three rules",
            best(|round| Some(chain.translate(shared.get(round)?).ok()?.into_document())),
        ),
        (
            "apply the mapping the slow way, on trees",
            best(|round| values.get(round).map(|value| read.translate(value).is_ok())),
        ),
    ])
}

/// Cards of A2A, whose mapping puts members into a list by index: applied to trees, since it is not compiled.
fn cards() -> Result<Vec<Row>, Failure> {
    let mapping = include_str!("../../../spec/families/a2a-card-0.3-to-1.0.json");
    let (there, _) = Mapping::parse(mapping.as_bytes())?;
    let cards: Vec<Value> = serde_json::from_str(include_str!("../../../examples/a2a/cards-0.3.json"))?;
    let texts: Vec<String> = cards.iter().map(Value::to_string).collect();
    let parsed: Vec<Document> =
        texts.iter().map(|text| Document::parse(text.as_bytes(), &Limits::DOCUMENT)).collect::<Result<_, _>>()?;
    let mut translator = Translator::new(&there);
    if translator.is_compiled() {
        return Err("lists by index are compiled now; measure them as such".into());
    }
    let parse = |round: usize| {
        let text = texts.get(round % texts.len())?;
        Document::parse(text.as_bytes(), &Limits::DOCUMENT).ok()
    };
    Ok(vec![
        (
            "a card of A2A 0.3 becomes one of 1.0, document to document, by the slow way",
            best(|round| Some(translator.translate(parsed.get(round % parsed.len())?).ok()?.into_document())),
        ),
        ("parse such a card", best(parse)),
    ])
}

/// Rounds of measuring; many short ones, so that some are left alone by whatever else the machine does.
const ROUNDS: u32 = 300;

/// Seconds for one piece of work, what it makes thrown away included: the best of several rounds over all documents.
#[expect(clippy::disallowed_methods, reason = "a program that measures")]
fn best<T>(mut work: impl FnMut(usize) -> T) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..4 * DOCUMENTS).for_each(|round| drop(black_box(work((round % DOCUMENTS) as usize))));
        least = least.min(start.elapsed().as_secs_f64() / f64::from(4 * DOCUMENTS));
    }
    least
}

fn rules(mapping: &Value) -> usize {
    let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let inner: usize = list(mapping, "rules").iter().filter_map(|rule| rule.get("body")).map(rules).sum();
    ["rules", "constants", "derived"].iter().map(|name| list(mapping, name).len()).sum::<usize>() + inner
}

fn source(number: u32) -> Value {
    let words = "Work done by people who know the trade, with a price for each call and a record of each step. ";
    let action = |id: &str, rpm: u32| {
        json!({"id": id, "ver": format!("1.2.{number}"), "sum": format!("{id} for translation work"), "rpm": rpm + number, "conc": 4, "safe": true,
            "input": {"type": "object", "properties": {"text": {"type": "string"}, "language": {"type": "string"}}},
            "output": {"type": "object", "properties": {"result": {"type": "string"}}}})
    };
    json!({
        "oap_version": "1.1",
        "tool": {
            "id": format!("house-{number}"), "did": format!("did:web:translation-{number}.example"), "title": "Translation house", "release": "2.4.1",
            "vendor": {"did": format!("did:web:translation-{number}.example"), "company": "House Ltd", "checked": true},
            "topics": ["translation", "legal", "b2b"], "text_humans": words.repeat(3), "text_agents": words.repeat(3),
        },
        "actions": [action("quote", 60), action("deliver", 30)],
        "sla": {"uptime": format!("0.9{}", 1 + number % 9), "latency_seconds": 0.4, "regions": "eu-central,eu-west"},
        "risk": "low", "countries": ["DE", "FR", "NL"], "price": {"cents": "1250", "currency": "EUR"},
        "policy": {"keeps_data": false, "days": 30, "shares": false}, "contact": format!("desk@translation-{number}.example"),
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

/// A further step, which most members go through as they are.
fn second() -> Value {
    let edition = |version: &str| json!({"schema": "https://schemas.example/v1.0/tool.json", "version": version});
    json!({
        "mapping_id": "urn:oap:mapping:tool-1.2-to-1.3", "source": edition("1.2"), "destination": edition("1.3"),
        "directionality": "bidirectional", "passthrough": true,
        "rules": [
            {"op": "rename", "from": "/risk_class", "to": "risk"},
            {"op": "move", "from": "/data_policy/retention_days", "to": "/retention/days"},
            {"op": "convert", "from": "/sla/latency_p95_ms", "to": "/sla/latency_seconds", "fn": "divide", "args": {"by": 1000}},
        ],
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
  const {expression, sources, expected} = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
  const compiled = jsonata(expression), texts = sources.map(source => JSON.stringify(source));
  for (let i = 0; i < sources.length; i++)
    assert.deepStrictEqual(JSON.parse(JSON.stringify(await compiled.evaluate(sources[i]))), expected[i]);
  const best = async work => {
    let least = Infinity;
    for (let round = 0; round < 300; round++) {
      const start = process.hrtime.bigint();
      for (let i = 0; i < sources.length; i++) await work(i);
      least = Math.min(least, Number(process.hrtime.bigint() - start) / sources.length);
    }
    return least / 1e9;
  };
  const objects = await best(i => compiled.evaluate(sources[i]));
  const whole = await best(async i => JSON.stringify(await compiled.evaluate(JSON.parse(texts[i]))));
  console.log(require("jsonata/package.json").version, objects, whole);
})();
"#;

/// Runs JSONata on the same documents; it is installed by name into a folder of its own.
fn jsonata(sources: &[Value], expected: &[Value]) -> Result<(String, f64, f64), Failure> {
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
        json!({"expression": EXPRESSION, "sources": sources, "expected": expected}).to_string(),
    )?;
    std::fs::write(folder.join("run.js"), SCRIPT)?;
    let installed =
        run(Command::new("npm").args(["install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", "jsonata"]));
    let measured = installed.and_then(|_| run(Command::new("node").args(["run.js", "case.json"])));
    std::fs::remove_dir_all(&folder)?;
    let measured = measured?;
    let mut figures = measured.split_whitespace();
    let mut figure = || figures.next().ok_or("no figures");
    Ok((figure()?.to_owned(), figure()?.parse()?, figure()?.parse()?))
}
