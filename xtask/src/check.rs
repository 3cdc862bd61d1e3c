//! Everything that can be judged without running the product: form, lints, documentation, tidiness, generated pages.

use crate::run::{Steps, cargo, run};
use crate::{generate, tidy};
use anyhow::Result;
use std::path::Path;

/// All checks, with a summary of what they took.
pub fn check(root: &Path) -> Result<()> {
    let mut steps = Steps::default();
    check_with(root, &mut steps)?;
    steps.summary();
    Ok(())
}

/// All checks as steps of a longer run.
pub fn check_with(root: &Path, steps: &mut Steps) -> Result<()> {
    steps.step("formatting", || run(&mut cargo(root, &["fmt", "--all", "--check"])))?;
    steps.step("tidiness", || tidy::command(root))?;
    steps.step("generated pages", || generate::settle(root, generate::PAGES, true))?;
    steps.step("lints", || {
        run(&mut cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    })?;
    steps.step("documentation", || {
        let mut doc = cargo(root, &["doc", "--quiet", "--no-deps", "--workspace"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })
}
