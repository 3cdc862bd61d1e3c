//! The environment: the only place where its variables are read, apart from `RIALTO_KEY`, which clap reads.

use std::env::{home_dir, var_os};
use std::path::PathBuf;

/// Where our files live: `RIALTO_HOME`, else `rialto` in the XDG data directory.
pub(crate) fn data_directory() -> Option<PathBuf> {
    let set = |name: &str| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("RIALTO_HOME").or_else(|| {
        let shared = || home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/share"));
        // The XDG specification ignores relative paths.
        let data = set("XDG_DATA_HOME").filter(|path| path.is_absolute()).or_else(shared);
        data.map(|data| data.join("rialto"))
    })
}

/// A variable that the operator's file names.
pub(crate) fn variable(name: &str) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// The width that the caller asks for.
pub(crate) fn columns() -> Option<usize> {
    var_os("COLUMNS")?.to_str()?.parse().ok()
}
