//! The direction of dependencies: a crate uses what lies below it, never sideways, never up.
//!
//! The table is the one in ARCHITECTURE.md. Tests may look further down than the product does, and may compare with the
//! twin; the twin itself knows none of us.

use super::Finding;
use anyhow::{Context, Result};
use serde::Deserialize;

/// A crate's place in the house.
struct Room {
    name: &'static str,
    floor: Floor,
    uses: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Floor {
    /// Part of the product, counted from the ground.
    Product(u8),
    /// For the work on it.
    Work,
}

const fn room(name: &'static str, floor: u8, uses: &'static [&'static str]) -> Room {
    Room { name, floor: Floor::Product(floor), uses }
}

const fn work(name: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, floor: Floor::Work, uses }
}

const BELOW_NODE: &[&str] =
    &["feed", "host", "payment", "index", "store", "agent", "description", "schema", "aql", "trust", "json"];
const BELOW_SERVER: &[&str] =
    &["node", "feed", "host", "payment", "index", "store", "agent", "description", "schema", "aql", "trust", "json"];
const BELOW_CLI: &[&str] = &[
    "server",
    "probe",
    "node",
    "feed",
    "host",
    "payment",
    "index",
    "store",
    "agent",
    "description",
    "schema",
    "aql",
    "trust",
    "json",
];
const BELOW_CLI_AND_TWIN: &[&str] = &[
    "server",
    "probe",
    "node",
    "feed",
    "host",
    "payment",
    "index",
    "store",
    "agent",
    "description",
    "schema",
    "aql",
    "trust",
    "json",
    "reference",
    "corpus",
];

const ROOMS: &[Room] = &[
    room("json", 0, &[]),
    room("trust", 1, &["json"]),
    room("aql", 2, &["json"]),
    room("schema", 2, &["trust", "json"]),
    room("description", 2, &["trust", "json"]),
    room("agent", 2, &["json"]),
    room("store", 3, &["json"]),
    room("index", 3, &["aql", "json"]),
    room("feed", 3, &["aql", "trust", "json"]),
    room("payment", 3, &["aql", "trust", "json"]),
    room("host", 3, &["description", "schema", "json"]),
    room("node", 4, BELOW_NODE),
    room("server", 5, BELOW_SERVER),
    room("probe", 5, &["node", "schema", "aql", "trust", "json"]),
    room("cli", 6, BELOW_CLI),
    work("reference", &[]),
    work("corpus", &[]),
    work("conformance", BELOW_CLI_AND_TWIN),
    work("bench", &["conformance", "aql", "trust", "json"]),
    work("xtask", BELOW_CLI_AND_TWIN),
];

/// One crate of ours names another in its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who depends.
    pub from: String,
    /// On whom; empty for a crate without edges, so that it is still looked up in the table.
    pub to: String,
    /// Whether only its tests do.
    pub for_tests: bool,
}

/// The edges between crates of ours, from the output of `cargo metadata --no-deps`.
pub fn edges(metadata: &str) -> Result<Vec<Edge>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        dependencies: Vec<Dependency>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        name: String,
        kind: Option<String>,
        path: Option<String>,
    }
    let metadata: Metadata = serde_json::from_str(metadata).context("`cargo metadata` cannot be read")?;
    let mut edges = Vec::new();
    for package in &metadata.packages {
        let from = short(&package.name);
        edges.push(Edge { from: from.clone(), to: String::new(), for_tests: false });
        for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_some()) {
            let for_tests = dependency.kind.as_deref() == Some("dev");
            edges.push(Edge { from: from.clone(), to: short(&dependency.name), for_tests });
        }
    }
    Ok(edges)
}

/// `rialto-aql` is `aql`; the package that carries the binary's name is `cli`.
fn short(package: &str) -> String {
    match package {
        "rialto" => "cli".to_owned(),
        _ => package.trim_start_matches("rialto-").to_owned(),
    }
}

/// The edges the table does not allow.
pub fn check(edges: &[Edge]) -> Vec<Finding> {
    edges.iter().filter_map(|edge| judge(edge).map(|problem| Finding::new(edge.from.as_str(), problem))).collect()
}

fn judge(edge: &Edge) -> Option<String> {
    let Edge { from, to, for_tests } = edge;
    let find = |name: &str| ROOMS.iter().find(|room| room.name == name);
    let Some(lower) = find(from) else {
        return Some("has no row in the table of floors; give it one in xtask/src/tidy/floors.rs".to_owned());
    };
    if to.is_empty() {
        return None;
    }
    let Some(used) = find(to) else {
        return Some(format!("uses `{to}`, which has no row in the table of floors"));
    };
    if lower.uses.contains(&used.name) {
        return None;
    }
    match (lower.floor, used.floor) {
        (Floor::Work, _) if lower.name == "reference" => Some(format!("uses `{to}`; the twin shares no code with us")),
        (Floor::Product(_), Floor::Work)
            if *for_tests && matches!(used.name, "reference" | "corpus" | "conformance") =>
        {
            None
        }
        (Floor::Product(from), Floor::Product(to)) if *for_tests && to < from => None,
        (Floor::Product(from), Floor::Product(used)) if used > from => {
            Some(format!("uses `{to}`, which points upward from floor {from} to floor {used}"))
        }
        (Floor::Product(from), Floor::Product(used)) if used == from => {
            Some(format!("uses `{to}`, which points sideways on floor {from}"))
        }
        _ => Some(format!("uses `{to}`, which its row in the table of floors does not name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_edge(from: &str, to: &str, for_tests: bool, problem: Option<&str>) {
        let edge = Edge { from: from.to_owned(), to: to.to_owned(), for_tests };
        let findings = check(&[edge]);
        match problem {
            None => assert_eq!(findings, []),
            Some(problem) => assert!(findings[0].problem.contains(problem), "{findings:?}"),
        }
    }

    #[test]
    fn downward_edges_are_fine() {
        check_edge("aql", "json", false, None);
        check_edge("cli", "aql", false, None);
        check_edge("conformance", "reference", false, None);
        check_edge("xtask", "conformance", false, Some("does not name"));
    }

    #[test]
    fn upward_and_sideways_edges_are_found() {
        check_edge("json", "trust", false, Some("upward from floor 0 to floor 1"));
        check_edge("aql", "schema", false, Some("sideways on floor 2"));
        check_edge("index", "store", false, Some("sideways"));
        check_edge("aql", "trust", false, Some("does not name"));
        check_edge("store", "node", true, Some("upward"));
    }

    #[test]
    fn tests_may_compare_with_the_twin_and_the_twin_stays_alone() {
        check_edge("aql", "reference", true, None);
        check_edge("aql", "reference", false, Some("does not name"));
        check_edge("aql", "trust", true, None);
        check_edge("reference", "json", false, Some("shares no code"));
        check_edge("reference", "json", true, Some("shares no code"));
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        check_edge("attic", "", false, Some("no row"));
        check_edge("cli", "attic", false, Some("no row"));
    }

    #[test]
    fn every_row_uses_only_lower_rows() {
        for room in ROOMS {
            let Floor::Product(floor) = room.floor else { continue };
            for used in room.uses {
                let used = ROOMS.iter().find(|room| room.name == *used).unwrap();
                assert!(matches!(used.floor, Floor::Product(lower) if lower < floor), "{} {}", room.name, used.name);
            }
        }
    }

    #[test]
    fn edges_come_from_the_manifests() {
        let metadata = r#"{"packages":[{"name":"rialto","dependencies":[
            {"name":"rialto-aql","kind":null,"path":"crates/aql"},
            {"name":"rialto-json","kind":"dev","path":"crates/json"},
            {"name":"serde","kind":null}]}]}"#;
        let edge = |to: &str, for_tests| Edge { from: "cli".to_owned(), to: to.to_owned(), for_tests };
        assert_eq!(edges(metadata).unwrap(), [edge("", false), edge("aql", false), edge("json", true)]);
    }
}
