//! Long runs that live in crates of their own: their binaries are built for release and called with the given arguments.

use crate::run;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// All conformance cases against the crates that they are about, or over HTTP.
pub fn conformance(root: &Path, arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|argument| argument == "--http") {
        build_product(root)?;
    }
    run::run(&mut binary(root, "conformance", arguments))
}

/// The differential run of a crate against its twin.
pub fn diff(root: &Path, arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((subject, rest)) if subject == "schema" => run::run(&mut example(root, "refute", rest)),
        Some((subject, rest)) if subject == "schema-suite" => run::run(&mut example(root, "suite", rest)),
        Some((subject, rest)) if subject == "payment" => {
            run::run(&mut example_of(root, "rialto-payment", "histories", rest))
        }
        _ => run::run(&mut binary(root, "diff", arguments)),
    }
}

/// The crash loop, over the product's own binary.
pub fn crash<S: AsRef<str>>(root: &Path, arguments: &[S]) -> Result<()> {
    build_product(root)?;
    run::run(&mut binary(root, "crash", arguments))
}

/// The attacks, over the product's own binary.
pub fn attack<S: AsRef<str>>(root: &Path, arguments: &[S]) -> Result<()> {
    build_product(root)?;
    run::run(&mut binary(root, "attack", arguments))
}

/// Honest callers beside hostile ones, over the product's own binary.
pub fn load<S: AsRef<str>>(root: &Path, arguments: &[S]) -> Result<()> {
    build_product(root)?;
    run::run(&mut binary_of(root, "rialto-bench", "load", arguments))
}

fn build_product(root: &Path) -> Result<()> {
    run::run(&mut run::cargo(root, &["build", "--quiet", "--release", "--package", "rialto"]))
}

/// The measurements; those of the node use the product's own binary.
pub fn bench(root: &Path, arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((subject, rest)) if subject == "node" => {
            build_product(root)?;
            run::run(&mut binary_of(root, "rialto-bench", "bench-node", rest))
        }
        Some((subject, rest)) if subject == "agent" => {
            run::run(&mut example_of(root, "rialto-node", "bench-agent", rest))
        }
        Some((subject, rest)) if subject == "did" => {
            build_product(root)?;
            run::run(&mut binary_of(root, "rialto-bench", "did", rest))
        }
        Some((subject, rest)) if subject == "feed" => {
            // Nobody else needs the peer, nor what this binary does without.
            let only = ["--no-default-features", "--features", "peers"];
            run::run(&mut binary_with(root, "rialto-conformance", &only, "bench-feed", rest))
        }
        Some((subject, rest)) if subject == "schema" => run::run(&mut example(root, "bench", rest)),
        _ => run::run(&mut binary(root, "bench", arguments)),
    }
}

/// A binary of the conformance crate.
pub fn binary<S: AsRef<str>>(root: &Path, name: &str, arguments: &[S]) -> Command {
    binary_of(root, "rialto-conformance", name, arguments)
}

/// A program beside the schema crate, which needs nothing of the rest of the house.
fn example<S: AsRef<str>>(root: &Path, name: &str, arguments: &[S]) -> Command {
    example_of(root, "rialto-schema", name, arguments)
}

fn example_of<S: AsRef<str>>(root: &Path, package: &str, name: &str, arguments: &[S]) -> Command {
    let mut command = run::cargo(root, &["run", "--quiet", "--release", "--package", package, "--example", name, "--"]);
    command.args(arguments.iter().map(AsRef::as_ref));
    command
}

fn binary_of<S: AsRef<str>>(root: &Path, package: &str, name: &str, arguments: &[S]) -> Command {
    binary_with(root, package, &[], name, arguments)
}

fn binary_with<S: AsRef<str>>(root: &Path, package: &str, features: &[&str], name: &str, arguments: &[S]) -> Command {
    let mut command = run::cargo(root, &["run", "--quiet", "--release", "--package", package]);
    command.args(features).args(["--bin", name, "--"]).args(arguments.iter().map(AsRef::as_ref));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_after_the_dashes() {
        let command = binary(Path::new("."), "diff", &["aql", "--n", "5"]);
        assert!(run::spelled(&command).ends_with("--bin diff -- aql --n 5"), "{}", run::spelled(&command));
        let command = example(Path::new("."), "refute", &["--n", "5"]);
        assert!(run::spelled(&command).ends_with("--package rialto-schema --example refute -- --n 5"));
        let command = binary_of(Path::new("."), "rialto-bench", "bench-node", &["--manifests", "10"]);
        let spelled = run::spelled(&command);
        assert!(spelled.ends_with("--package rialto-bench --bin bench-node -- --manifests 10"), "{spelled}");
    }
}
