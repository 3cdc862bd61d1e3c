//! Everything that must not be reached, tried at full length: the tests called `ssrf_` in the crate `node`, and a table
//! of what they counted.

use crate::run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::Path;

/// What one test counted.
#[derive(Debug, Deserialize)]
struct Part {
    part: String,
    tries: u64,
    sites: u64,
    forbidden_connections: u64,
}

/// The tests that count, in the order of the table.
const PARTS: [&str; 6] = ["straight", "messages", "registrations", "agents", "redirects", "rebinding"];

/// Runs the tests at full length and prints the rows for `docs/reliability/ssrf.md`.
pub fn command(root: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut tests = run::cargo(root, &["nextest", "run", "--package", "rialto-node", "--lib", "ssrf_"]);
    run::run(tests.env("RIALTO_SSRF", folder.path()))?;
    let parts =
        PARTS.iter().map(|part| read(&folder.path().join(format!("{part}.json")))).collect::<Result<Vec<_>>>()?;
    print!("{}", table(&parts));
    let forbidden: u64 = parts.iter().map(|part| part.forbidden_connections).sum();
    ensure!(forbidden == 0, "{forbidden} forbidden connections");
    Ok(())
}

fn read(path: &Path) -> Result<Part> {
    let text = std::fs::read_to_string(path).with_context(|| format!("`{}` was not counted", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn table(parts: &[Part]) -> String {
    let mut table = String::from("| Way | Sites | Tries | Forbidden connections |\n|---|---|---|---|\n");
    for Part { part, tries, sites, forbidden_connections } in parts {
        table.push_str(&format!("| {part} | {sites} | {tries} | {forbidden_connections} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_way() {
        let told = r#"{"part":"straight","tries":12,"sites":6,"forbidden_connections":0}"#;
        let part: Part = serde_json::from_str(told).unwrap();
        assert!(table(&[part]).ends_with("| straight | 6 | 12 | 0 |\n"));
    }
}
