//! What we depend on: safe versions, the one set of JSON features that keeps signatures stable, no second crypto stack.

use super::Finding;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Below these a published advisory applies. A name ending in `*` stands for a family.
const FLOORS: &[(&str, &str, &str)] = &[
    ("h2", "0.4.16", "RUSTSEC-2026-0258, 2024-0332, 2024-0003"),
    ("rustls", "0.23.18", "RUSTSEC-2024-0399, 2024-0336"),
    ("rustls-webpki", "0.103.13", "RUSTSEC-2026-0049, 0098, 0099, 0104"),
    ("hickory-*", "0.26.1", "RUSTSEC-2026-0118, 0119"),
    ("rmcp", "1.4.0", "RUSTSEC-2026-0189"),
    ("tungstenite", "0.20.1", "RUSTSEC-2023-0065"),
    ("ed25519-dalek", "2.0.0", "RUSTSEC-2022-0093"),
    ("curve25519-dalek", "4.1.3", "RUSTSEC-2024-0344"),
    ("regex", "1.5.5", "RUSTSEC-2022-0013"),
    ("idna", "1.0.3", "RUSTSEC-2024-0421"),
    ("url", "2.5.4", "RUSTSEC-2024-0421"),
    ("sqlx", "0.8.1", "RUSTSEC-2024-0363"),
    ("time", "0.3.47", "RUSTSEC-2026-0009"),
    ("bytes", "1.11.1", "RUSTSEC-2026-0007"),
    ("tracing-subscriber", "0.3.20", "RUSTSEC-2025-0055"),
    ("redb", "4.4.0", "crashes mended in 4.2 and 4.3"),
];

/// What must not be in the build at all, on any platform.
const ABSENT: &[(&str, &str)] = &[
    ("ring", "RustCrypto checks signatures and aws-lc-rs speaks TLS; a third stack is one too many"),
    ("openssl-sys", "no system library decides what a signature means"),
    ("sonic-rs", "its parser is not the one our limits are measured on"),
    ("ssi", "its did:web resolver speaks plain http to private addresses"),
    ("serde_yml", "RUSTSEC-2025-0068"),
    ("yaml-rust", "RUSTSEC-2024-0320"),
];

/// JSON features that change what a number or an object is, for everybody in the build.
const FEATURES_ABSENT: &[&str] = &["arbitrary_precision", "preserve_order"];

/// Without it one double in four is read wrongly by one unit in the last place.
const FEATURE_PRESENT: &str = "float_roundtrip";

/// A package of `Cargo.lock`.
#[derive(Debug, Deserialize)]
pub struct Locked {
    name: String,
    version: String,
}

/// The packages of `Cargo.lock`.
pub fn locked(lock: &str) -> Result<Vec<Locked>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    let lock: Lock = toml::from_str(lock).context("`Cargo.lock` cannot be read")?;
    Ok(lock.package)
}

/// Packages below their floor.
pub fn check_packages(locked: &[Locked]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Locked { name, version } in locked {
        for (floor_name, floor, because) in FLOORS {
            let meant = match floor_name.strip_suffix('*') {
                Some(family) => name.starts_with(family),
                None => name == floor_name,
            };
            if meant && numbers(version) < numbers(floor) {
                let problem = format!("{name} {version} is below {floor} ({because}): run `cargo update -p {name}`");
                findings.push(Finding::new("Cargo.lock", problem));
            }
        }
    }
    findings
}

/// Packages that must not be there, from `cargo tree --target all --edges all --prefix none`.
///
/// The lock cannot be asked: it also names what a feature would only configure if somebody else brought it, and rustls
/// would configure ring.
pub fn check_built(tree: &str) -> Vec<Finding> {
    let built: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let mut findings = Vec::new();
    for (name, because) in ABSENT.iter().filter(|(name, _)| built.contains(name)) {
        let problem = format!("{name} must not be here: {because}; `cargo tree -i {name}` shows who asks");
        findings.push(Finding::new("Cargo.toml", problem));
    }
    findings
}

/// Major, minor, patch; what follows a `-` or `+` is left out, so a pre-release counts as its release.
fn numbers(version: &str) -> [u64; 3] {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = plain.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// The features of serde_json, from `cargo tree --edges features --invert serde_json`.
pub fn check_features(tree: &str) -> Vec<Finding> {
    let enabled = |feature: &str| tree.contains(&format!("serde_json feature \"{feature}\""));
    let mut findings = Vec::new();
    for feature in FEATURES_ABSENT.iter().filter(|feature| enabled(feature)) {
        let problem = format!(
            "feature `{feature}` is on: it changes what a document means; `cargo tree -e features -i serde_json` shows who asks"
        );
        findings.push(Finding::new("serde_json", problem));
    }
    if !enabled(FEATURE_PRESENT) {
        findings
            .push(Finding::new("serde_json", format!("feature `{FEATURE_PRESENT}` is off: doubles are read wrongly")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lock: &str) -> Vec<String> {
        check_packages(&locked(lock).unwrap()).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("0.103.13") > numbers("0.103.9"));
        assert!(numbers("1.1.2+spec-1.1.0") < numbers("1.1.10"));
        assert_eq!(numbers("4.4"), numbers("4.4.0"));
    }

    #[test]
    fn a_package_below_its_floor_is_found() {
        let lock = "[[package]]\nname = \"bytes\"\nversion = \"1.10.1\"\n\
                    [[package]]\nname = \"hickory-proto\"\nversion = \"0.25.0\"\n\
                    [[package]]\nname = \"url\"\nversion = \"2.5.7\"\n";
        let found = found(lock);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("bytes 1.10.1 is below 1.11.1"));
        assert!(found[1].contains("hickory-proto"));
    }

    #[test]
    fn features_that_change_meaning_are_found() {
        let good = "serde_json v1.0.154\n├── serde_json feature \"float_roundtrip\"\n";
        assert_eq!(check_features(good), []);
        let bad = "serde_json v1.0.154\n├── serde_json feature \"preserve_order\"\n";
        assert_eq!(check_features(bad).len(), 2);
    }

    #[test]
    fn a_banned_package_is_found_by_its_whole_name() {
        assert_eq!(check_built("ring-buffer v1.0.0\nbytes v1.12.1 (*)\n"), []);
        assert_eq!(check_built("bytes v1.12.1\nring v0.17.14\nring v0.17.14 (*)\n").len(), 1);
    }
}
