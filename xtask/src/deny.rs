//! Licences, bans and sources of dependencies, as `deny.toml` says.
//!
//! Advisories are left out here: they need a database from the network, and a gate must give the same answer offline.

use crate::run;
use anyhow::Result;
use std::path::Path;

/// Runs cargo-deny, and installs it first where it is missing.
pub fn deny(root: &Path) -> Result<()> {
    if !run::succeeds(&mut run::cargo(root, &["deny", "--version"])) {
        println!("    cargo-deny is missing and is installed now");
        run::run(&mut run::cargo(root, &["install", "--locked", "cargo-deny"]))?;
    }
    run::run(&mut run::cargo(root, &["deny", "check", "bans", "licenses", "sources"]))
}
