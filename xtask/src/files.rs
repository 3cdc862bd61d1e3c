//! The text files of the repository, without what builds and fuzzing leave behind.
//!
//! The tree is walked instead of asking git, so that an exported copy is judged like a clone.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// A text file and its place below the top, written with `/`.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Such as `crates/json/src/lib.rs`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl TextFile {
    /// A file that exists only in a test.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether the name ends like this, such as `.rs`.
    pub fn ends(&self, suffix: &str) -> bool {
        self.path.ends_with(suffix)
    }
}

/// Hidden folders that belong to the repository; editors' folders do not.
const HIDDEN_KEPT: &[&str] = &[".cargo", ".ci", ".config", ".github"];

/// What `.gitignore` leaves out.
const LEFT_OUT: &[&str] = &["target", "fuzz/target", "fuzz/artifacts", "fuzz/corpus", "fuzz/coverage"];

/// Every UTF-8 file below `root`, sorted by path.
pub fn all(root: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

fn walk(root: &Path, below: &str, files: &mut Vec<TextFile>) -> Result<()> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN_KEPT.contains(&name.as_str());
            if !hidden && !LEFT_OUT.contains(&path.as_str()) {
                walk(root, &path, files)?;
            }
        } else if kind.is_file() && !path.ends_with(".snap.new") {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read `{path}`"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile { path, text });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_file_is_found_and_build_output_is_not() {
        let files = all(&crate::root()).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/files.rs"));
        assert!(files.iter().all(|file| !file.path.starts_with("target/") && !file.path.starts_with(".git/")));
        assert!(files.is_sorted_by(|left, right| left.path < right.path));
    }
}
