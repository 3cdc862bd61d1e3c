//! What a node can do, measured over HTTP beside PostgreSQL: `cargo xtask bench node`.
//!
//! One run writes a corpus, brings it into both, asks both the same eight kinds of question, and prints one table.
//! The node is used as anybody uses it: its binary, its socket, signed intents, verified answers.

pub mod run;

pub use conformance::market as corpus;
pub mod question;
pub mod intent;

pub mod http;
pub mod load;
pub mod node;
pub mod peer;
pub mod shares;

pub mod figures;
pub mod report;
pub mod growth;
pub mod chart;
mod clock;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Lets the account that PostgreSQL runs under pass through a temporary folder of ours.
pub fn open_to_others(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}
