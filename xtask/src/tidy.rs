//! Tidiness: rules about the house that the compiler does not know.
//!
//! The same function serves `cargo xtask tidy` and the test in `tests/tidy.rs`. Rules are pure functions from texts to
//! findings; only this file asks cargo and reads the tree.
//!
//! INVARIANT: every finding says where, what, and how to mend it; all are collected before the run fails.

pub mod codes;
pub mod dependencies;
pub mod floors;
pub mod text;

use crate::refusals::Refusals;
use crate::run::{capture, cargo};
use crate::{corpus, files};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::Path;

/// Something untidy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A file, with its line where there is one, or a crate.
    pub at: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl Finding {
    fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { at: at.into(), problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.at, self.problem)
    }
}

/// Everything untidy below `root`.
pub fn findings(root: &Path) -> Result<Vec<Finding>> {
    let files = files::all(root)?;
    let mut findings = Vec::new();

    let metadata = capture(&mut cargo(root, &["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    findings.extend(floors::check(&floors::edges(&metadata)?));

    for file in &files {
        findings.extend(text::check(file));
    }

    findings.extend(codes::check(&Refusals::among(&files)?, &files, &corpus::cases(&files)?));

    let lock = files.iter().find(|file| file.path == "Cargo.lock").context("`Cargo.lock` is missing")?;
    findings.extend(dependencies::check_packages(&dependencies::locked(&lock.text)?));
    let built = ["tree", "--workspace", "--target", "all", "--edges", "all", "--prefix", "none", "--format", "{p}"];
    findings.extend(dependencies::check_built(&capture(&mut cargo(root, &built))?));
    let features = ["tree", "--workspace", "--edges", "features", "--invert", "serde_json"];
    findings.extend(dependencies::check_features(&capture(&mut cargo(root, &features))?));
    Ok(findings)
}

/// Prints the findings and fails when there is one.
pub fn command(root: &Path) -> Result<()> {
    let findings = findings(root)?;
    for finding in &findings {
        println!("    {finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("one untidy place"),
        count => bail!("{count} untidy places"),
    }
}
