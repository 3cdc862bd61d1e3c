//! RFC 0020 A.1, `matches`: a regular expression of ECMA-262 with the `u` flag, searched for anywhere.
//!
//! The text is cut into pieces (`syntax`), its names are checked (`names`), it becomes a tree (`tree`), and the tree
//! is matched as the standard says (`matcher`). The library judges what is valid syntax and which characters a class
//! holds, and nothing else: its own search takes all memory on patterns as short as `(?:(?:a?){1,2}){0,2}d`.

mod matcher;
mod names;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;

use regress::{Flags, Regex};

use crate::refusal::Refusal;

/// The most characters that a pattern may have.
const PATTERN_CHARS_MAX: usize = 1_000;

/// The most atoms that a pattern may have once its counted repetitions are written out. A compiled pattern may have
/// 256 KiB, and a compiled atom takes at least about 32 bytes.
const SIZE_MAX: usize = 256 * 1024 / 32;

/// Whether a pattern is found in a text.
pub fn matches(pattern: &str, subject: &str) -> Result<bool, Refusal> {
    let found = Pattern::read(pattern).and_then(|pattern| pattern.is_found_in(subject));
    found.map_err(|code| Refusal::new(code, ""))
}

/// A pattern that was read without a flaw.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    tree: tree::Node,
    captures: usize,
}

impl Pattern {
    /// Reads a pattern, or names the broken rule.
    pub(crate) fn read(text: &str) -> Result<Pattern, &'static str> {
        if text.chars().count() > PATTERN_CHARS_MAX {
            return Err("regex_too_large");
        }
        let pieces = syntax::split(text)?;
        let names = names::named_groups(&pieces)?;
        compile(&pieces.iter().map(syntax::Piece::text).collect::<String>())?;
        let (tree, captures) = tree::read(&pieces, &names)?;
        if tree.size() > SIZE_MAX { Err("regex_too_large") } else { Ok(Pattern { tree, captures }) }
    }

    /// Whether the pattern is found in a text, unless that takes too many steps.
    pub(crate) fn is_found_in(&self, subject: &str) -> Result<bool, &'static str> {
        matcher::is_found(&self.tree, self.captures, subject)
    }
}

/// The library's reading of a pattern.
fn compile(text: &str) -> Result<Regex, &'static str> {
    let flags = Flags { unicode: true, ..Flags::default() };
    Regex::with_flags(text, flags).map_err(|_| "invalid_regex")
}
