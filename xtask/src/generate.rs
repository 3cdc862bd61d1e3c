//! Generated pages: written by one command, compared by the gate.
//!
//! INVARIANT: a page follows from the tree alone, so that writing twice changes nothing.

use crate::files::{self, TextFile};
use crate::{refusals, spec_map};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// A generated page: where it stands and how it is made.
#[derive(Clone, Copy)]
pub struct Page {
    /// Such as `docs/spec-map.md`.
    pub path: &'static str,
    make: fn(&[TextFile]) -> Result<String>,
}

/// The map from section to file.
pub const SPEC_MAP: Page = Page { path: "docs/spec-map.md", make: |files| Ok(spec_map::page(files)) };

/// Every refusal code, its meaning, what to do.
pub const REFUSALS: Page = Page { path: "docs/refusals.md", make: refusals::page };

/// The same for programs.
pub const REFUSALS_JSON: Page = Page { path: "crates/server/refusals.json", make: refusals::json };

/// All of them.
pub const PAGES: &[Page] = &[SPEC_MAP, REFUSALS, REFUSALS_JSON];

/// Writes the pages, or with `check` only compares and fails on the first stale one.
pub fn settle(root: &Path, pages: &[Page], check: bool) -> Result<()> {
    let files = files::all(root)?;
    for page in pages {
        let fresh = (page.make)(&files)?;
        let path = root.join(page.path);
        if check {
            let stands = files.iter().find(|file| file.path == page.path).map(|file| file.text.as_str());
            if let Some(difference) = difference(stands.unwrap_or_default(), &fresh) {
                bail!("`{}` is stale ({difference}): run `cargo xtask generate` and commit the result", page.path);
            }
            println!("    {} is in step", page.path);
        } else {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&path, fresh).with_context(|| format!("cannot write `{}`", page.path))?;
            println!("    wrote {}", page.path);
        }
    }
    Ok(())
}

/// The first line that differs, in words.
fn difference(stands: &str, fresh: &str) -> Option<String> {
    if stands == fresh {
        return None;
    }
    let mut number = 1;
    let (mut old, mut new) = (stands.lines(), fresh.lines());
    loop {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => number += 1,
            (old, new) => {
                let old = old.unwrap_or("nothing");
                let new = new.unwrap_or("nothing");
                return Some(format!("line {number} has `{old}` where `{new}` belongs"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differing_line_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n").as_deref(), Some("line 2 has `b` where `c` belongs"));
        assert_eq!(difference("", "a\n").as_deref(), Some("line 1 has `nothing` where `a` belongs"));
    }

    #[test]
    fn writing_then_checking_agrees() {
        let folder = std::env::temp_dir().join(format!("xtask-generate-{}", std::process::id()));
        fs::create_dir_all(folder.join("crates/aql/src")).unwrap();
        fs::write(folder.join("crates/aql/src/lib.rs"), "//! RFC 0020 §3.1: a room.\n").unwrap();
        assert!(settle(&folder, &[SPEC_MAP], true).is_err());
        settle(&folder, &[SPEC_MAP], false).unwrap();
        settle(&folder, &[SPEC_MAP], true).unwrap();
        fs::write(folder.join("crates/aql/src/lib.rs"), "//! RFC 0020 §3.2: a room.\n").unwrap();
        let error = settle(&folder, &[SPEC_MAP], true).unwrap_err().to_string();
        assert!(error.contains("cargo xtask generate"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
