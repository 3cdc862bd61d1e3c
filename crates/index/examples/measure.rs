//! Files synthetic manifests and tells what filing, sealing, merging, opening and asking cost.
//!
//! Times are processor time of the one thread that works, so that a busy machine does not change them much.
//!
//! `cargo run --release -p rialto-index --example measure -- 1000000`

use aql::{Constraints, Limits};
use conformance::chance::Chance;
use index::Index;
use json::{Document, Pointer, Shapes, Value, json};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

const CATEGORIES: [&str; 20] = [
    "translation",
    "weather",
    "maps",
    "payments",
    "search",
    "vision",
    "speech",
    "storage",
    "email",
    "calendar",
    "travel",
    "finance",
    "legal",
    "health",
    "music",
    "games",
    "news",
    "sports",
    "education",
    "energy",
];
const WORDS: [&str; 24] = [
    "fast",
    "reliable",
    "global",
    "secure",
    "private",
    "open",
    "simple",
    "modern",
    "answers",
    "requests",
    "documents",
    "images",
    "numbers",
    "routes",
    "prices",
    "people",
    "agents",
    "with",
    "without",
    "about",
    "for",
    "every",
    "small",
    "large",
];
/// How many units the node lets grow before it seals them.
const SEAL_AT: usize = 32_768;

fn manifest(chance: &mut Chance<'_>, number: usize) -> Value {
    let words = |chance: &mut Chance<'_>, count: usize| -> String {
        (0..count).map(|_| chance.word(&WORDS)).collect::<Vec<_>>().join(" ")
    };
    let key = format!("z6Mk{:016x}{:016x}", chance.bits(), chance.bits());
    let category = chance.word(&CATEGORIES);
    json!({
        "tool": {
            "did": format!("did:key:{key}"),
            "id": format!("urn:tool:{category}:{number}"),
            "name": format!("{} {}", words(chance, 2), number % 50_000),
            "version": format!("{}.{}.{}", chance.below(4), chance.below(10), chance.below(20)),
            "description": words(chance, 40),
            "homepage": format!("https://{key}.example/{category}"),
        },
        "category": category,
        "tags": [chance.word(&WORDS), chance.word(&WORDS), chance.word(&CATEGORIES)],
        "regions": [chance.word(&["eu", "us", "ap", "sa"]), "global"],
        "operations": [
            {"name": "query", "method": "POST", "idempotent": true, "latency_ms": chance.below(2_000)},
            {"name": "status", "method": "GET", "idempotent": true, "latency_ms": chance.below(200)},
        ],
        "price": {
            "amount": format!("{}.{:02}", chance.below(100), chance.below(100)),
            "currency": chance.word(&["EUR", "USD", "CHF"]),
            "model": chance.word(&["per_call", "subscription"]),
        },
        "quality": {
            "availability": 0.9 + chance.below(1_000) as f64 / 10_000.0,
            "latency_ms": chance.below(1_000_000) as f64 / 1_000.0,
            "score": chance.below(101),
        },
        "auth": {"type": "none", "required": false},
        "terms": {"url": "https://terms.example/standard/2026", "jurisdiction": chance.word(&["CH", "DE", "US"])},
        "schema": {"input": "https://schemas.example/query/v1", "output": "https://schemas.example/answer/v1"},
        "limits": {"per_minute": 60 * 10u32.pow(chance.below(3) as u32), "bytes": 1 << chance.below(20)},
        "published_at": format!(
            "2026-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            1 + chance.below(12), 1 + chance.below(28), chance.below(24), chance.below(60), chance.below(60)
        ),
        "signature": {
            "alg": "Ed25519",
            "value": (0..5).map(|_| format!("{:016x}", chance.bits())).collect::<String>(),
        },
    })
}

/// The processor time that this thread has used.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse::<usize>())?;
    let folder = tempfile::tempdir()?;
    let mut index = Index::open(folder.path())?;
    file_all(&mut index, count)?;
    println!("memory before merging: {} bytes a document", index.memory() / count);
    ask_all(&index, "before merging")?;
    let start = now();
    while let Some(merging) = index.merge_all() {
        index.adopt(merging.run()?)?;
    }
    println!("merge_all: {:?}", now() - start);
    tell_size(folder.path(), &index, count)?;
    ask_all(&index, "merged")?;
    drop(index);
    let start = now();
    let index = Index::open(folder.path())?;
    println!("open: {:?}, applied {}", now() - start, index.applied());
    Ok(())
}

fn file_all(index: &mut Index, count: usize) -> Result<(), Box<dyn Error>> {
    let mut chance = Chance::seeded(1);
    let mut shapes = Shapes::default();
    let (mut inserting, mut sealing, mut merging, mut bytes) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
    let mut done = 0;
    while done < count {
        let mut batch = Vec::new();
        for number in done..count.min(done + SEAL_AT) {
            let text = manifest(&mut chance, number).to_string();
            bytes += text.len();
            batch.push(Document::parse_with(text.as_bytes(), &json::Limits::DOCUMENT, &mut shapes)?);
        }
        let start = now();
        for (offset, document) in batch.iter().enumerate() {
            let sequence = (done + offset + 1) as u64;
            index.insert(sequence, &[7; 40], document.root())?;
            index.advance(sequence);
        }
        inserting += now() - start;
        done += batch.len();
        let start = now();
        if let Some(frozen) = index.freeze(1) {
            index.adopt(frozen.run()?)?;
        }
        sealing += now() - start;
        let start = now();
        while let Some(neighbours) = index.mergeable() {
            index.adopt(neighbours.run()?)?;
        }
        merging += now() - start;
    }
    println!("{count} documents of {} bytes", bytes / count);
    let each = |time: Duration| time.as_nanos() as f64 / 1_000.0 / count as f64;
    println!(
        "insert {:.1} µs, seal {:.1} µs, merge {:.1} µs a document",
        each(inserting),
        each(sealing),
        each(merging)
    );
    Ok(())
}

fn tell_size(folder: &Path, index: &Index, count: usize) -> Result<(), Box<dyn Error>> {
    println!("memory: {} bytes a document", index.memory() / count);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let len = entry.metadata()?.len();
        println!("{}: {} MB, {} bytes a document", entry.file_name().display(), len >> 20, len as usize / count);
    }
    Ok(())
}

fn ask_all(index: &Index, when: &str) -> Result<(), Box<dyn Error>> {
    let leaf = |path: &str, operator: &str, value: Value| json!({"path": path, "operator": operator, "value": value});
    let questions = [
        ("eq", leaf("/category", "eq", json!("maps"))),
        ("eq and eq", json!([leaf("/category", "eq", json!("maps")), leaf("/price/currency", "eq", json!("EUR"))])),
        (
            "eq and eq and range",
            json!([
                leaf("/category", "eq", json!("maps")),
                leaf("/price/currency", "eq", json!("EUR")),
                leaf("/quality/latency_ms", "lt", json!(40)),
            ]),
        ),
        (
            "eq and eq and half a range",
            json!([
                leaf("/category", "eq", json!("maps")),
                leaf("/limits/per_minute", "eq", json!(60)),
                leaf("/quality/latency_ms", "lt", json!(500)),
            ]),
        ),
        ("range 5 %", leaf("/quality/latency_ms", "lt", json!(50))),
        ("range 60 %", leaf("/quality/latency_ms", "gt", json!(400))),
        ("decimal range 10 %", leaf("/price/amount", "lt", json!("10.00"))),
        ("moments", leaf("/published_at", "within", json!(["2026-03-01", "2026-03-08"]))),
        ("unique text", leaf("/tool/id", "eq", json!("urn:tool:maps:123"))),
        ("** eq", leaf("/**/currency", "eq", json!("CHF"))),
        ("* eq", leaf("/operations/*/name", "eq", json!("status"))),
        ("tag", leaf("/tags", "contains", json!("reliable"))),
        ("not eq", json!({"not": leaf("/category", "eq", json!("maps"))})),
        ("ne", leaf("/category", "ne", json!("maps"))),
        ("contains, rare", leaf("/tool/did", "contains", json!("abcdef1"))),
        ("contains, long text", leaf("/tool/description", "contains", json!("large large large large large"))),
        ("matches, prefix", leaf("/tool/name", "matches", json!("^fast global 12"))),
        ("matches, few texts", leaf("/category", "matches", json!("^[a-m].*s$"))),
        (
            "eq and contains",
            json!([leaf("/category", "eq", json!("maps")), leaf("/tool/homepage", "contains", json!("abcd"))]),
        ),
    ];
    println!("{when}:");
    for (name, value) in questions {
        let document = Document::of(&value)?;
        let constraints = Constraints::read(document.root(), Pointer::root(), &Limits::STANDARD)
            .map_err(|refusal| format!("{name}: {refusal:?}"))?;
        let mut times = Vec::new();
        let mut bounds = index.enumerate(&constraints)?;
        for _ in 0..15 {
            let start = now();
            bounds = index.enumerate(&constraints)?;
            times.push(now() - start);
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        println!(
            "  {name:28} {:9.1} µs   {} certain, {} open",
            median.as_nanos() as f64 / 1_000.0,
            bounds.certain.len(),
            bounds.possible.len() - bounds.certain.len()
        );
    }
    Ok(())
}
