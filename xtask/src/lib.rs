//! Chores of the house: the gate, tidiness, generated pages, and the long runs.
//!
//! Everything a person or a machine types begins with `cargo xtask`; `main.rs` is the list of commands. The rules of
//! `tidy` live in a library so that a test can call the same function as the command.
//!
//! INVARIANT: nothing here is needed to use the product; nothing in the product needs anything here.

pub mod check;
pub mod coverage;
pub mod delegate;
pub mod deny;
pub mod fuzz;
pub mod generate;
pub mod model;
pub mod mutants;
pub mod refusals;
pub mod spec_map;
pub mod ssrf;
pub mod test;
pub mod tidy;
pub mod webhooks;

pub mod citation;
pub mod corpus;
pub mod files;
pub mod run;

use std::path::PathBuf;

/// The top of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), std::path::Path::to_path_buf)
}
